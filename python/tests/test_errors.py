"""Every failure has a class, names its parameter, survives a pickle, and speaks of Python."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from semidp import _native, errors
from semidp._ask import tell, words
from semidp.errors import (
    BudgetRefusedError,
    DeclassifiedWarning,
    InputError,
    InternalError,
    InvalidParameterError,
    LedgerError,
    MalformedEventError,
    NotPrivateWarning,
    SemidpError,
    SemidpWarning,
    ShapeError,
    _exception,
)

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and value.__module__ == errors.__name__]


def test_every_class_is_exported() -> None:
    assert sorted(kind.__name__ for kind in CLASSES) == sorted(errors.__all__)
    assert list(errors.__all__) == sorted(errors.__all__)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_has_its_place(kind: type[Exception]) -> None:
    assert kind.__doc__
    assert issubclass(kind, SemidpWarning if kind.__name__.endswith("Warning") else SemidpError)


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if issubclass(kind, SemidpError)])
def test_errors_can_be_pickled(kind: type[SemidpError]) -> None:
    error = kind("steps must be more", hint="take more", parameter="steps")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.message, again.hint, again.parameter) == (str(error), "steps must be more", "take more", "steps")
    assert str(error) == "steps must be more\nhint: take more"
    assert str(kind("alone")) == "alone"


def test_what_callers_can_put_right_is_a_value_error() -> None:
    assert issubclass(InvalidParameterError, ValueError)
    assert issubclass(ShapeError, InputError)
    assert not issubclass(BudgetRefusedError, ValueError)
    assert not issubclass(InternalError, ValueError)


def test_every_variant_of_the_native_half_has_a_class() -> None:
    crates = Path(__file__).parents[2] / "crates"
    variants = set()
    for name in ("semidp-accounting", "semidp-core", "semidp-ledger", "semidp-table", "semidp"):
        text = (crates / name / "src" / "error.rs").read_text()
        body = re.search(r"pub enum Error \{\n(.*?)\n\}\n", text, re.DOTALL)
        assert body is not None, name
        variants |= set(re.findall(r"^    ([A-Z]\w+)(?: \{|,)", body[1], re.MULTILINE))
    assert "InvalidParameter" in variants
    assert len(variants) > 40
    for variant in sorted(variants):
        assert type(_exception(variant, "something", None)) is not SemidpError, variant


@pytest.mark.parametrize(
    ("variant", "message", "kind", "parameter", "said"),
    [
        ("InvalidParameter", "sample-rate must be > 0, got 0", InvalidParameterError, "sample_rate", "sample_rate must be > 0, got 0"),
        ("Input", "--steps must be given", InvalidParameterError, "steps", "steps must be given"),
        ("Input", "--epsilon and --rho must not both be given", InvalidParameterError, "epsilon", "epsilon and rho must not both be given"),
        ("Input", "--public must be given with --schema", InvalidParameterError, "X_public", "X_public must be given with schema"),
        ("Input", "unexpected argument '--foo' found", InvalidParameterError, "foo", "foo must be left out: there is no such parameter"),
        (
            "Input",
            "invalid value 'x' for '--public-gradient <RULE>' [possible values: raw, clip]",
            InvalidParameterError,
            "public_gradient",
            "public_gradient must be one of raw, clip, got `x`",
        ),
        (
            "Input",
            "the following required arguments were not provided: --n-private <N> --dim <D>",
            InvalidParameterError,
            "n_private",
            "n_private must be given",
        ),
        (
            "Input",
            "the argument '--events <FILE>' cannot be used with '--steps <T>'",
            InvalidParameterError,
            "events",
            "events must not be given with steps",
        ),
        ("Input", "a value is required for '--steps <T>' but none was supplied", InvalidParameterError, "steps", "steps must have a value"),
        (
            "MalformedEvent",
            "--events: event 3: noise-multiplier must be > 0",
            MalformedEventError,
            "events",
            "events: event 3: noise_multiplier must be > 0",
        ),
        ("Input", "column a must vary", InputError, None, "column a must vary"),
        ("Unreadable", "memory:12/private cannot be read", errors.UnreadableError, None, "X cannot be read"),
        ("BudgetRefused", "the budget is spent", BudgetRefusedError, None, "the budget is spent"),
        ("NotALedger", "not a ledger", LedgerError, None, "not a ledger"),
        ("Internal", "internal error", InternalError, None, "internal error"),
        ("NeverHeardOf", "new", SemidpError, None, "new"),
    ],
)
def test_failures_in_the_words_of_python(variant: str, message: str, kind: type, parameter: str | None, said: str) -> None:
    error = _exception(variant, message, None)
    assert type(error) is kind
    assert (error.parameter, error.message) == (parameter, said)


def test_hints_in_the_words_of_python() -> None:
    error = _exception("Input", "no", "give --sample-rate 0.01, --delta 1e-5 or --radius; `semidp schema --public FILE` writes one, see --seed")
    assert error.hint == "give sample_rate=0.01, delta=1e-5 or radius; `semidp schema --public FILE` writes one, see random_state"
    assert _exception("Input", "no", "every command explains itself: `semidp --help`").hint is None


def test_the_native_half_raises_these() -> None:
    with pytest.raises(InvalidParameterError) as refused:
        _native.ask(["account", "--noise-multiplier=0", "--steps=1", "--delta=1e-5"])
    assert refused.value.parameter == "noise_multiplier"
    with pytest.raises(InputError):
        _native.ask(["no-such-command"])


def test_warnings_have_their_classes() -> None:
    for text, kind in (
        ("--seed makes the noise reproducible: the result is NOT private", NotPrivateWarning),
        ("the private rows were used as it is", DeclassifiedWarning),
        ("take care", SemidpWarning),
    ):
        with pytest.warns(SemidpWarning) as warned:
            tell([text], stacklevel=1)
        assert type(warned[0].message) is kind
        assert "--" not in str(warned[0].message)


def test_words_of_options() -> None:
    import numpy as np

    options: dict[str, Any] = {
        "clip_norm": 0.1,
        "steps": np.int64(3),
        "delta": 1e-300,
        "exact": True,
        "strict": np.False_,
        "plot": Path("a b"),
        "columns": ["x", "y"],
        "rho": None,
        "radius": np.float32(0.5),
    }
    said = ["plan", "mean", "--clip-norm=0.1", "--steps=3", "--delta=1e-300", "--exact", "--plot=a b", "--columns=x,y", "--radius=0.5"]
    assert words("plan mean", options) == said
    assert words(["verify", "a b"], {}) == ["verify", "a b"]


@pytest.mark.parametrize("option", ["algorithm", "sampling", "trust", "average", "domain", "estimator", "mechanism"])
def test_the_word_must_is_no_value(option: str) -> None:
    error = _exception("InvalidParameter", f"--{option} must be auto, got `foo`", f"add --{option} auto")
    assert error.message == f"{option} must be auto, got `foo`" and error.hint == f"add {option}='auto'"
    assert error.parameter == option
