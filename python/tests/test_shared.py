"""Public rows that are the private ones are refused, by where they lie and never by what they say."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import semidp
from semidp.errors import InvalidParameterError, SemidpWarning
from semidp.local import aggregate, randomize

pd = pytest.importorskip("pandas")

ROWS = np.arange(600.0).reshape(200, 3) % 17
WHOLE = ROWS.astype(np.int64)
FRAME = pd.DataFrame({"a": np.arange(200) % 7, "b": np.arange(200.0) % 5})


@pytest.mark.parametrize(
    ("private", "public"),
    [
        (ROWS, ROWS),
        (ROWS, ROWS[:50]),
        (ROWS[:, ::-1], ROWS),
        (ROWS[100:], ROWS[:101]),
        (WHOLE, WHOLE),
        (WHOLE, WHOLE[10:60]),
        (FRAME, FRAME),
        (FRAME, FRAME.iloc[:50]),
        (FRAME, FRAME[["b", "a"]].iloc[:0:-1]),
    ],
)
def test_rows_that_share_memory_are_refused(private: Any, public: Any) -> None:
    if private is FRAME and public is not FRAME and not any(
        np.shares_memory(private[name].values, public[name].values) for name in ("a", "b")
    ):
        pytest.skip("this pandas copies here: nothing is shared")
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(InvalidParameterError, match="X_public"):
        semidp.mean(private, X_public=public, **budget)
    with pytest.raises(InvalidParameterError, match="X_public"):
        randomize(private, X_public=public, epsilon=1.0)
    labels = np.arange(len(private)) % 3 * 1.0
    with pytest.raises(InvalidParameterError, match="X_public"):
        semidp.LinearRegression(**budget).fit(private, labels, X_public=public, y_public=labels[: len(public)])


@pytest.mark.parametrize(
    ("private", "public"),
    [(ROWS[100:], ROWS[:100]), (ROWS[::2], ROWS[1::2]), (ROWS, ROWS.copy()), (FRAME.iloc[50:], FRAME.iloc[:50])],
)
def test_rows_of_their_own_are_taken_whatever_they_hold(private: Any, public: Any) -> None:
    answer = semidp.mean(private, X_public=public, epsilon=1.0, delta=1e-6)
    assert answer["n_private"] == len(private)


def test_invalid_reports_are_left_out_and_counted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SemidpWarning)
        reports = randomize(ROWS / 40.0, epsilon=2.0, mechanism="duchi", radius=1.0, random_state=1)
    lines = ["{garbage", *reports, reports[0]]
    known: dict[str, Any] = {"round": "1", "mechanism": "duchi", "dimension": 3, "epsilon": 2.0, "radius": 1.0}
    answer = aggregate(lines, skip_invalid=True, **known)
    assert answer["skipped_reports"] == 2
    assert np.array_equal(answer.mean, aggregate(list(reports)).mean)
    with pytest.raises(InvalidParameterError, match="must be given with skip_invalid"):
        aggregate(lines, skip_invalid=True)
