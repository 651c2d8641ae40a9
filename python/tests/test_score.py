"""Scores are computed from labels that are read one by one: none is refused, and none is quoted."""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, r2_score

from semidp import LinearRegression, LogisticRegression, errors

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(1200, 3))
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.1 * RANDOM.normal(size=1200)
CODES = (NUMBERS > 0).astype(int)
ODD: list[Any] = ["SECRET", 1j, None, [1, 2], {"SECRET": 1}, 10**400, float("nan"), object()]
BUDGET: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "random_state": 1}


@pytest.fixture(autouse=True)
def _every_other_warning_is_an_error() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", errors.NotPrivateWarning)
        warnings.simplefilter("ignore", errors.PrivateScoreWarning)
        yield


def model(kind: Any) -> Any:
    labels = NUMBERS if kind is LinearRegression else CODES
    return kind(**BUDGET).fit(X[200:], labels[200:], X_public=X[:200], y_public=labels[:200])


def objects(labels: Any, *odd: Any) -> Any:
    made = np.empty(len(labels), dtype=object)
    made[:] = labels.tolist()
    for place, cell in enumerate(odd):
        made[place] = cell
    return made


CONTAINERS = [lambda labels: labels, list, lambda labels: pd.Series(labels, dtype=object), lambda labels: labels[:, None].tolist()]


def test_unknown_labels_count_as_wrong() -> None:
    fitted = model(LogisticRegression)
    predicted = fitted.predict(X)
    for made in CONTAINERS:
        assert fitted.score(X, made(objects(CODES))) == accuracy_score(CODES, predicted)
        for odd in ODD:
            right = predicted == CODES
            right[0] = False
            assert fitted.score(X, made(objects(CODES, odd))) == right.mean()
    assert fitted.score(X, CODES.astype(str)) == accuracy_score(CODES, predicted)
    assert fitted.score(X, np.full(1200, "SECRET")) == 0.0


def test_rows_without_a_readable_target_are_left_out() -> None:
    fitted = model(LinearRegression)
    predicted = fitted.predict(X)
    for made in CONTAINERS:
        assert fitted.score(X, made(objects(NUMBERS))) == pytest.approx(r2_score(NUMBERS, predicted), abs=1e-12)
        for odd in ODD:
            assert fitted.score(X, made(objects(NUMBERS, odd))) == pytest.approx(r2_score(NUMBERS[1:], predicted[1:]), abs=1e-12)
    assert fitted.score(X, np.array(["SECRET", *map(repr, NUMBERS[1:].tolist())])) == pytest.approx(r2_score(NUMBERS[1:], predicted[1:]), abs=1e-12)
    assert np.isnan(fitted.score(X, ["SECRET"] * 1199 + [1.0]))
    # Squares beyond the largest number: no warning, and no error.
    assert isinstance(fitted.score(X, np.r_[1e308, -1e308, NUMBERS[2:]]), float)


@pytest.mark.parametrize(("kind", "labels", "metric"), [(LinearRegression, NUMBERS, r2_score), (LogisticRegression, CODES, accuracy_score)])
def test_weights_are_read_one_by_one(kind: Any, labels: Any, metric: Any) -> None:
    fitted = model(kind)
    weights = RANDOM.uniform(size=1200)
    expected = metric(labels, fitted.predict(X), sample_weight=weights)
    assert fitted.score(X, labels, sample_weight=weights) == pytest.approx(expected, abs=1e-12)
    expected = metric(labels[1:], fitted.predict(X)[1:], sample_weight=weights[1:])
    for odd in ("SECRET", None, float("inf"), 1j):
        assert fitted.score(X, labels, sample_weight=objects(weights, odd)) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(fitted.score(X, labels, sample_weight=["SECRET"] * 1200))


@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_no_error_of_a_score_quotes_a_label(kind: Any) -> None:
    fitted = model(kind)
    secret = np.full((1200, 2), "SECRET", dtype=object)
    for labels in (secret, ["SECRET"] * 3, "SECRET", {"SECRET"}, None, np.full((1200, 1, 1), "SECRET"), np.full(1200, 1j), {"SECRET": 1}):
        with pytest.raises(errors.SemidpError) as refused:
            fitted.score(X, labels)
        assert "SECRET" not in "".join(traceback.format_exception(refused.value))
        assert refused.value.parameter == "y"
    with pytest.raises(errors.SemidpError) as refused:
        fitted.score(X, CODES, sample_weight=["SECRET"])
    assert "SECRET" not in str(refused.value) and refused.value.parameter == "sample_weight"
