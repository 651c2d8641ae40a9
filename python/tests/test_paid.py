"""An answer that was paid for is not lost: not to a warning that is an error, and not to Ctrl-C."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from semidp import LinearRegression, LogisticRegression, _ask, _native, errors, mean

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(1200, 3))
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.1 * RANDOM.normal(size=1200)
#: A delta of 0.2 rows is warned of.
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 2e-4}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    _native.ask(["ledger", "init", f"--ledger={path}", "--dataset=people", "--epsilon=10", "--delta=1e-2"])
    return path


def runs(ledger: Path) -> int:
    """How many runs were paid for."""
    return len(_native.ask(["ledger", "show", f"--ledger={ledger}"])[0]["datasets"][0]["debits"])


def files(ledger: Path) -> list[str]:
    return sorted(path.name for path in ledger.parent.iterdir())


@pytest.mark.parametrize("made", [np.array, np.ndarray.tolist, pd.DataFrame], ids=["array", "list", "frame"])
def test_a_warning_that_is_an_error_loses_no_answer(ledger: Path, made: Any) -> None:
    private, public = made(X[200:]), made(X[:200])
    before = files(ledger)
    for _ in range(3):
        with warnings.catch_warnings(), pytest.raises(errors.SemidpWarning, match="delta"):
            warnings.simplefilter("error")
            mean(private, X_public=public, ledger=ledger, dataset="people", **BUDGET)
        assert runs(ledger) == 1 and len(files(ledger)) > len(before)
    with pytest.warns(errors.SemidpWarning):
        paid = mean(private, X_public=public, ledger=ledger, dataset="people", **BUDGET)
    assert runs(ledger) == 1 and files(ledger) == before
    # The run has ended: the next call is another one.
    with pytest.warns(errors.SemidpWarning):
        another = mean(private, X_public=public, ledger=ledger, dataset="people", **BUDGET)
    assert runs(ledger) == 2 and np.all(another.mean != paid.mean)


def test_the_same_answer_comes_after_a_warning_that_was_an_error(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    ask = _native.ask

    def watched(*arguments: Any) -> Any:
        parts = ask(*arguments)
        seen.append(parts[0])
        return parts

    monkeypatch.setattr(_native, "ask", watched)
    for action in ("error", "error", "ignore"):
        with warnings.catch_warnings():
            warnings.simplefilter(action)  # type: ignore[arg-type]
            try:
                mean(X[200:], X_public=X[:200], ledger=ledger, dataset="people", **BUDGET)
            except errors.SemidpWarning:
                assert action == "error"
    assert len(seen) == 3 and seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_ctrl_c_loses_no_answer(ledger: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = _native.ask

    def interrupted(*arguments: Any) -> Any:
        ask(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(*((_native, "ask") if where == "inside" else (_ask, "tell")), interrupted if where == "inside" else _interrupt)
        with pytest.raises(KeyboardInterrupt):
            mean(X[200:], X_public=X[:200], ledger=ledger, dataset="people", **BUDGET)
    assert runs(ledger) == 1
    with pytest.warns(errors.SemidpWarning):
        answer = mean(X[200:], X_public=X[:200], ledger=ledger, dataset="people", **BUDGET)
    assert runs(ledger) == 1 and answer.certificate.epsilon <= 1


def _interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("kind", "labels"), [(LinearRegression, NUMBERS), (LogisticRegression, NUMBERS > 0)])
def test_a_fitted_model_stays_if_a_warning_is_an_error(kind: Any, labels: Any) -> None:
    model = kind(**BUDGET)
    for count in (1, 2):
        with warnings.catch_warnings(), pytest.raises(errors.SemidpWarning):
            warnings.simplefilter("error")
            model.fit(X[200:], labels[200:], X_public=X[:200], y_public=labels[:200])
        assert np.isfinite(model.predict(X).astype(float)).all() and model.certificate_.epsilon <= 1
        assert len(model._fits) == count
    # A fit that fails before it spends anything leaves nothing behind, as ever.
    with pytest.raises(errors.InvalidParameterError):
        model.set_params(epsilon=-1.0).fit(X[200:], labels[200:], X_public=X[:200], y_public=labels[:200])
    assert not hasattr(model, "coef_")
