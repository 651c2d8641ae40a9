"""Every example in the documentation of the package is right, and every public name has documentation."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import warnings

import pytest
import semidp

MODULES = sorted(
    {"semidp", *(module.name for module in pkgutil.iter_modules(semidp.__path__, "semidp.") if not module.name.endswith(("__main__", "_native")))}
)

#: Functions and classes without which the package would not be one.
WITH_EXAMPLES = {
    "semidp.accounting": ["account", "calibrate", "verify", "Accountant"],
    "semidp.local": ["randomize", "aggregate"],
    "semidp._mean": ["mean"],
    "semidp._plan": ["plan"],
    "semidp._audit": ["audit"],
}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    # Warnings about seeds are part of what some examples show.
    with warnings.catch_warnings():
        found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


@pytest.mark.parametrize("name", sorted(WITH_EXAMPLES))
def test_there_are_examples(name: str) -> None:
    module = importlib.import_module(name)
    for public in WITH_EXAMPLES[name]:
        assert ">>>" in (inspect.getdoc(getattr(module, public)) or ""), public


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for public, value in vars(module).items():
        if public.startswith("_") or getattr(value, "__module__", None) != name:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            assert value.__doc__, public
