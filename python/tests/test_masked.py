"""Masked cells of NumPy's masked arrays are missing, whatever lies below the mask."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from semidp import LinearRegression, LogisticRegression, PublicData, _cells, _rows, _tables, errors, mean, randomize
from semidp.model_selection import select_on_public

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(1200, 3))
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.1 * RANDOM.normal(size=1200)
CODES = (NUMBERS > 0).astype(int)
HOLES = RANDOM.uniform(size=(1200, 3)) < 0.2
BUDGET: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "random_state": 1}


@pytest.fixture(autouse=True)
def _every_other_warning_is_an_error() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", errors.SemidpWarning)
        yield


def masked(values: Any, mask: Any) -> Any:
    """Below the mask lies what must not be read."""
    return np.ma.array(np.where(mask, np.asarray(77, dtype=values.dtype), values), mask=mask)


def holes(values: Any, mask: Any) -> Any:
    return np.where(mask, np.nan, values)


def test_masked_cells_of_rows_are_missing() -> None:
    public: dict[str, Any] = {"X_public": X[:200], "y_public": NUMBERS[:200]}
    hidden, missing = masked(X[200:], HOLES[200:]), holes(X[200:], HOLES[200:])
    plain, other = (LinearRegression(**BUDGET).fit(rows, NUMBERS[200:], **public) for rows in (missing, hidden))
    np.testing.assert_array_equal(plain.coef_, other.coef_)
    np.testing.assert_array_equal(plain.predict(missing), other.predict(hidden))
    as_rows = LinearRegression(**BUDGET).fit(list(hidden), NUMBERS[200:], **public)
    np.testing.assert_array_equal(plain.coef_, as_rows.coef_)
    for kind in (np.float32, np.int64, object):
        whole = masked((10 * X[200:]).astype(kind), HOLES[200:])
        expected = holes((10 * X[200:]).astype(kind).astype(float), HOLES[200:])
        one, two = (mean(rows, X_public=10 * X[:200], **BUDGET) for rows in (whole, expected))
        np.testing.assert_array_equal(one.mean, two.mean)
        assert one["unreadable_cells"] == two["unreadable_cells"]


def test_a_mask_changes_its_own_cell() -> None:
    for kind in (np.int64, np.bool_, np.float32, np.float64, np.uint8):
        none = _tables.unmasked(np.ma.array(np.ones((5, 2), dtype=kind), mask=False))
        one = np.ma.array(np.ones((5, 2), dtype=kind), mask=False)
        one[0, 0] = np.ma.masked
        read = _tables.unmasked(one)
        assert read.dtype == none.dtype and type(read) is np.ndarray
        assert np.isnan(read[0, 0]) and np.isfinite(read).sum() == 9
    plain = np.ones(3)
    assert _tables.unmasked(plain) is plain


@pytest.mark.parametrize(("kind", "labels"), [(LinearRegression, NUMBERS), (LogisticRegression, CODES), (LogisticRegression, CODES.astype(str)), (LogisticRegression, CODES > 0)])
def test_masked_labels_are_missing(kind: Any, labels: Any) -> None:
    public: dict[str, Any] = {"X_public": X[:200], "y_public": labels[:200]}
    mask = HOLES[200:, 0]
    hidden = np.ma.array(labels[200:], mask=mask)
    hidden.data[mask] = labels[200]
    missing = labels[200:].astype(object)
    missing[mask] = None
    plain, other, column = (kind(**BUDGET).fit(X[200:], y, **public) for y in (missing, hidden, hidden[:, None].ravel()))
    np.testing.assert_array_equal(plain.coef_, other.coef_)
    np.testing.assert_array_equal(plain.coef_, column.coef_)
    assert plain.score(X[200:], missing) == plain.score(X[200:], hidden)


def test_masked_cells_of_public_rows_are_missing() -> None:
    hidden, missing = masked(X[:200], HOLES[:200]), holes(X[:200], HOLES[:200])
    labels = np.ma.array(NUMBERS[:200], mask=HOLES[:200, 0])
    labels.data[labels.mask] = 1e6
    for one, two in ((hidden, missing), (list(hidden), missing)):
        np.testing.assert_array_equal(*(mean(X[200:], X_public=public, **BUDGET).mean for public in (one, two)))
        models = [
            LinearRegression(**BUDGET).fit(X[200:], NUMBERS[200:], X_public=public, y_public=y)
            for public, y in ((one, labels), (two, labels.filled(np.nan)))
        ]
        np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    chosen = [
        select_on_public(LinearRegression(epsilon=1.0, delta=1e-6), {"l2": [None, 0.1]}, PublicData(rows, y)).best_score
        for rows, y in ((hidden, labels), (missing[~labels.mask], NUMBERS[:200][~labels.mask]))
    ]
    assert chosen[0] == pytest.approx(chosen[1], abs=0.2)


def test_masked_rows_of_people_are_missing() -> None:
    hidden, missing = masked(X, HOLES), holes(X, HOLES)
    assert list(randomize(hidden, epsilon=2.0, radius=3.0, random_state=1)) == list(randomize(missing, epsilon=2.0, radius=3.0, random_state=1))
    assert list(randomize(hidden[:, :1], epsilon=2.0, radius=3.0, random_state=1)) == list(randomize(missing[:, :1], epsilon=2.0, radius=3.0, random_state=1))
    one, two = (mean(column, X_public=X[:200, 0], **BUDGET).mean for column in (hidden[200:, 0], missing[200:, 0]))
    np.testing.assert_array_equal(one, two)


def test_masked_fields_are_missing() -> None:
    record = np.ma.array([(1.0,), (77.0,)], dtype=[("a", float)], mask=[(False,), (True,)])
    np.testing.assert_array_equal(_tables.unmasked(record), [1.0, np.nan])
    pair = np.ma.array([(1.0, 2.0)] * 50, dtype=[("a", float), ("b", float)], mask=[(False, True)] * 50)
    with pytest.raises(errors.SemidpError):
        mean(pair, X_public=X[:200, :2], epsilon=1.0, delta=1e-6)
    with pytest.raises(errors.SemidpError):
        LinearRegression(**BUDGET).fit(pair, NUMBERS[:50], X_public=X[:200, :2], y_public=NUMBERS[:200])


def test_a_masked_cell_of_a_list_is_missing() -> None:
    cells = [np.ma.masked, np.ma.array(5.0, mask=True), np.ma.array(5.0)]
    np.testing.assert_array_equal(np.asarray(_rows.coerced([[cell, 1.0] for cell in cells]))[:, 0], [np.nan, np.nan, 5.0])
    assert [_cells.text(cell) for cell in cells[:2]] == [None, None]
    assert [_cells.key(cell) for cell in cells[:2]] == [None, None]
    assert _rows.missing_labels(_rows.label_array(cells)).tolist() == [True, True, False]


def test_strict_checks_see_masks() -> None:
    with pytest.raises(errors.InvalidParameterError, match="NaN"):
        LinearRegression(**BUDGET, strict=True).fit(masked(X[200:], HOLES[200:]), NUMBERS[200:], X_public=X[:200], y_public=NUMBERS[:200])
    with pytest.raises(errors.InvalidParameterError, match="NaN"):
        LogisticRegression(**BUDGET, strict=True).fit(X[200:], np.ma.array(CODES[200:], mask=HOLES[200:, 0]), X_public=X[:200], y_public=CODES[:200])
