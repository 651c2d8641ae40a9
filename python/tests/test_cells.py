"""What one private cell may do: change its own row, and nothing else.

NumPy and pandas choose one type for a whole column or array by its cells. If that type decided how rows are read, one row would decide it for
all of them, and no noise is made for that.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from semidp import LinearRegression, LogisticRegression, PublicData, errors, mean, randomize

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(1200, 3))
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.1 * RANDOM.normal(size=1200)
CLASSES = np.where(NUMBERS > 0, "yes", "no").astype(object)
CODES = (NUMBERS > 0).astype(int)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.SemidpWarning)
        yield


def fitted(kind: type[Any], rows: Any, labels: Any, public_rows: Any, public_labels: Any) -> Any:
    """A model in which noise hardly matters, and whose bits show every difference."""
    model = kind(epsilon=8.0, delta=1e-6, strict=False, random_state=1)
    return model.fit(rows, labels, X_public=public_rows, y_public=public_labels)


def with_first(values: Any, first: Any) -> Any:
    changed = list(values)
    changed[0] = first
    return changed


#: Labels of all people but the first, in the types that libraries make of them, and what the first may be in place of a label.
LABELS: list[tuple[str, Any, Any, Callable[[Any], Any]]] = [
    ("objects", CLASSES, None, lambda labels: np.array(labels, dtype=object)),
    ("list of text and a number", CLASSES, 7.5, list),
    ("series of text", CLASSES, None, pd.Series),
    ("list of numbers and text", CODES, "x", lambda labels: [label if isinstance(label, str) else int(label) for label in labels]),
    ("array that NumPy made text", CODES, "x", np.array),
    ("numbers that pandas made floats", CODES, None, lambda labels: pd.Series(labels, dtype=float)),
    ("no label at all", CODES, [1, 2], lambda labels: pd.Series(labels, dtype=object)),
]


@pytest.mark.parametrize(("name", "labels", "odd", "made"), LABELS, ids=[case[0] for case in LABELS])
def test_an_odd_label_leaves_out_its_own_row(name: str, labels: Any, odd: Any, made: Callable[[Any], Any]) -> None:
    public = labels[:200].astype(str) if labels.dtype == object else labels[:200]
    odd_one = fitted(LogisticRegression, X[200:], made(with_first(labels[200:], odd)), X[:200], public)
    plain = fitted(LogisticRegression, X[200:], labels[200:], X[:200], public)
    nothing = fitted(LogisticRegression, X[200:], np.full(1000, None, dtype=object), X[:200], public)
    moved = np.linalg.norm(odd_one.coef_ - plain.coef_)
    assert moved < 0.05 * np.linalg.norm(nothing.coef_ - plain.coef_), name


def test_a_missing_number_in_a_category_changes_its_own_row() -> None:
    codes = RANDOM.integers(1, 4, size=1200)
    # The public rows have it the other way round, so that it shows whether private ones were read.
    labels, public_labels = NUMBERS[200:] + codes[200:], NUMBERS[:200] - codes[:200]
    public = pd.DataFrame({"c": codes[:200].astype(str), "n": X[:200, 0]})
    private = pd.DataFrame({"c": codes[200:], "n": X[200:, 0]})
    holes = private.astype({"c": float})
    holes.loc[0, "c"] = np.nan
    plain, odd, none = (
        fitted(LinearRegression, rows, labels, public, public_labels).predict(private)
        for rows in (private, holes, private.assign(c=np.nan))
    )
    assert np.linalg.norm(odd - plain) < 0.2 * np.linalg.norm(none - plain)


@pytest.mark.parametrize("made", [list, np.array], ids=["lists", "array that NumPy made text"])
def test_a_cell_of_text_is_one_missing_number(made: Callable[[Any], Any]) -> None:
    rows = [list(row) for row in X[200:]]
    odd = [["Rumpelstiltskin", *rows[0][1:]], *rows[1:]]
    plain = fitted(LinearRegression, rows, NUMBERS[200:], X[:200], NUMBERS[:200]).coef_
    other = fitted(LinearRegression, made(odd), NUMBERS[200:], X[:200], NUMBERS[:200]).coef_
    assert np.linalg.norm(other - plain) < 0.05


@pytest.mark.parametrize("public", [X[:200], pd.DataFrame(X[:200], columns=list("abc"))], ids=["array", "frame"])
def test_a_cell_of_text_in_a_frame_is_not_refused(public: Any) -> None:
    private = pd.DataFrame(X[200:], columns=list("abc"))
    odd = private.assign(a=pd.Series(with_first(X[200:, 0], "q"), dtype=object))
    plain, other = (fitted(LinearRegression, rows, NUMBERS[200:], public, NUMBERS[:200]).coef_ for rows in (private, odd))
    assert np.linalg.norm(other - plain) < 0.05
    with pytest.raises(errors.UnsupportedTypeError):
        LinearRegression(epsilon=1.0, delta=1e-6, strict=True).fit(odd, NUMBERS[200:], X_public=pd.DataFrame(X[:200], columns=list("abc")), y_public=NUMBERS[:200])


def test_means_have_the_columns_that_public_rows_or_users_say() -> None:
    names = ["a", "b", "c"]
    private, public = pd.DataFrame(X[200:], columns=names), pd.DataFrame(X[:200], columns=names)
    odd = private.assign(a=pd.Series(with_first(X[200:, 0], "q"), dtype=object))
    budget: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "random_state": 1}
    for more in ({"X_public": public}, {"X_public": X[:200]}, {"radius": 10.0, "columns": names}):
        plain, other = mean(private, **budget, **more), mean(odd, **budget, **more)
        assert plain["columns"] == other["columns"]
        assert np.linalg.norm(plain.mean - other.mean) < 0.05
    array = odd.to_numpy(dtype=object)
    assert np.linalg.norm(mean(array, X_public=X[:200], **budget).mean - mean(X[200:], X_public=X[:200], **budget).mean) < 0.05


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_reports_hang_on_nobody_else(library: Callable[[Any], Any]) -> None:
    people = {"a": [0.1] * 50, "b": [0.2] * 50}
    odd = library({"a": ["x", *map(str, people["a"][1:])], "b": people["b"]})
    with pytest.raises(errors.InvalidParameterError) as refused:
        randomize(odd, epsilon=1.0)
    assert refused.value.parameter == "columns"
    dimensions = {json.loads(randomize(rows, epsilon=1.0, radius=1.0, columns=["a", "b"])[7])["dimension"] for rows in (library(people), odd)}
    assert dimensions == {2}


def test_the_number_of_rows_is_secret_under_add_remove() -> None:
    model = LogisticRegression(epsilon=1.0, delta=1e-6, adjacency="add-remove", sample_rate=0.1, expected_batch=100.0, strict=False)
    private = X[200:]
    for rows, labels in [(private, CODES[200:-1]), (private, np.c_[CODES, CODES][200:]), (private[:, :0], CODES[200:]), (private[0], CODES[200:])]:
        with pytest.raises(errors.SemidpError) as refused:
            model.fit(rows, labels, X_public=X[:200], y_public=CODES[:200])
        assert "1000" not in str(refused.value) and "999" not in str(refused.value)


def test_rows_in_an_opaque_object_are_transformed_by_nobody() -> None:
    import sklearn
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    with sklearn.config_context(enable_metadata_routing=True):
        steps = [("scale", FrozenEstimator(StandardScaler().fit(X[:200]))), ("model", LinearRegression(epsilon=1.0, delta=1e-6, random_state=1))]
        pipeline = Pipeline(steps, transform_input=["X_public"])
        with pytest.warns(errors.PublicRowsNotTransformedWarning):
            pipeline.fit(X[200:], NUMBERS[200:], public=PublicData(X[:200], NUMBERS[:200]))
        with warnings.catch_warnings():
            warnings.simplefilter("error", errors.PublicRowsNotTransformedWarning)
            pipeline.fit(X[200:], NUMBERS[200:], X_public=X[:200], y_public=NUMBERS[:200])


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"strict": "no"}, "strict"),
        ({"fit_intercept": "no"}, "fit_intercept"),
        ({"on_step": 5}, "on_step"),
        ({"target_range": (0.0, 1.0)}, "target_range"),
        ({"feature_range": (0.0, 1.0)}, "feature_range"),
        ({"feature_range": 5}, "feature_range"),
        ({"epsilon": 1.0, "rho": 1.0}, "rho"),
    ],
    ids=str,
)
def test_what_no_command_sees_is_checked(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(errors.InvalidParameterError) as refused:
        budget: dict[str, Any] = {} if "rho" in parameters else {"epsilon": 1.0, "delta": 1e-6}
        LinearRegression(**{**budget, **parameters}).fit(X[200:], NUMBERS[200:], X_public=X[:200], y_public=NUMBERS[:200])
    assert refused.value.parameter == name


def test_tables_and_columns_are_named() -> None:
    public = pd.DataFrame(X[:200], columns=list("abc")).assign(a=pd.Series([None] * 200, dtype=object))
    with pytest.raises(errors.EmptyColumnError) as refused:
        LinearRegression(epsilon=1.0, delta=1e-6, strict=False).fit(pd.DataFrame(X[200:], columns=list("abc")), NUMBERS[200:], X_public=public, y_public=NUMBERS[:200])
    assert refused.value.parameter == "X_public"
    assert "columns" not in str(refused.value.hint)
    with pytest.raises(errors.InvalidParameterError) as refused_labels:
        LinearRegression(epsilon=1.0, delta=1e-6).fit(X[200:], NUMBERS[200:], X_public=X[:200], y_public=np.full(200, 3.0))
    assert refused_labels.value.parameter == "y_public"
    with pytest.raises(errors.SemidpError) as refused_constant:
        LinearRegression(epsilon=1.0, delta=1e-6).fit(X[200:], NUMBERS[200:], X_public=np.ones((200, 3)), y_public=NUMBERS[:200])
    assert refused_constant.value.parameter != "there"
