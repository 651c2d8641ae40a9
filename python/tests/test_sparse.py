"""Sparse matrices whose arrays are not what they should be: no crash, and one entry concerns its own row."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from semidp import LogisticRegression, _tables, errors

X = sp.random(1200, 40, density=0.2, format="csr", random_state=1)
LABELS = (np.asarray(X @ np.random.default_rng(0).normal(size=40)) > 0).astype(int)
BUDGET: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "random_state": 1}


def broken(form: str, part: str, place: int, value: int) -> Any:
    """A matrix with one wrong number, that SciPy did not check."""
    matrix = X[200:].asformat(form, copy=True)
    getattr(matrix, part)[place] = value
    return matrix


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_every_format_is_read_alike(form: str) -> None:
    read = _tables.by_rows(X.asformat(form), "X")
    assert read.format == "csr" and read.has_canonical_format
    np.testing.assert_array_equal(read.toarray(), X.toarray())


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("value", [-1, 2**30])
@pytest.mark.parametrize("place", [0, 3, -1])
def test_wrong_offsets_are_refused(form: str, value: int, place: int) -> None:
    with pytest.raises(errors.ShapeError, match="offsets") as refused:
        LogisticRegression(**BUDGET).fit(broken(form, "indptr", place, value), LABELS[200:], X_public=X[:200], y_public=LABELS[:200])
    assert refused.value.parameter == "X" and str(2**30) not in str(refused.value)


def test_no_wrong_offset_crashes() -> None:
    """In a process of its own, as what SciPy makes of them may end it."""
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_sparse import *
for form in ("csr", "csc"):
    for value in (-(2**31), 2**31 - 1, 7):
        try:
            LogisticRegression(**BUDGET).fit(broken(form, "indptr", 5, value), LABELS[200:], X_public=X[:200], y_public=LABELS[:200])
        except errors.ShapeError:
            print("refused")
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.split() == ["refused"] * 6, done.stderr


@pytest.mark.parametrize(("form", "part"), [("csr", "indices"), ("csc", "indices"), ("coo", "col"), ("coo", "row"), ("bsr", "indices")])
def test_an_entry_beyond_the_matrix_is_left_out(form: str, part: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", errors.NotPrivateWarning)
        plain = LogisticRegression(**BUDGET).fit(X[200:], LABELS[200:], X_public=X[:200], y_public=LABELS[:200]).coef_
        for value in (-1, 2**30, -(2**31)):
            matrix = broken(form, part, 5, value)
            other = LogisticRegression(**BUDGET).fit(matrix, LABELS[200:], X_public=X[:200], y_public=LABELS[:200]).coef_
            assert np.linalg.norm(other - plain) < 0.1 * np.linalg.norm(plain)
            changed = np.abs(_tables.by_rows(matrix, "X").toarray() - X[200:].toarray()).sum(axis=1)
            assert (changed > 0).sum() == 1


def test_what_a_matrix_says_of_its_order_is_not_believed() -> None:
    matrix = sp.csr_matrix((np.ones(4), np.array([1, 1, 3, 0]), np.array([0, 2, 4])), shape=(2, 4))
    matrix.has_canonical_format = True
    read = _tables.by_rows(matrix, "X")
    assert read.indices.tolist() == [1, 0, 3] and read.data.tolist() == [2.0, 1.0, 1.0]
    assert matrix.indices.tolist() == [1, 1, 3, 0]


def test_cells_of_objects_are_read_one_by_one() -> None:
    matrix = sp.csr_matrix(np.eye(3))
    matrix.data = np.array([1, "x", 10**5000], dtype=object)
    np.testing.assert_array_equal(_tables.by_rows(matrix, "X").data, [1.0, np.nan, np.nan])


#: Entries that a DOK or LIL matrix takes without a look at them.
ODD_ENTRIES: list[Any] = ["39 years (Ada)", 10**400, 1j, [1.0, 2.0], None, {"secret": 1}, np.array([1.0]), object()]


def dok_with(place: Any, entry: Any) -> Any:
    matrix = X[200:].todok(copy=True)
    matrix.pop((7, 1), None)
    matrix.setdefault(place, entry)
    return matrix


def lil_with(part: str, row: Any) -> Any:
    matrix = X[200:].tolil(copy=True)
    getattr(matrix, part)[7] = row
    return matrix


def changed_rows(matrix: Any) -> list[int]:
    read = _tables.by_rows(matrix, "X")
    assert read.dtype == np.float64 and read.has_canonical_format
    plain = X[200:].toarray()
    return np.flatnonzero((read.toarray() != plain).any(axis=1)).tolist()  # type: ignore[no-any-return]


def test_an_odd_entry_of_a_dictionary_of_keys_is_missing() -> None:
    plain = LogisticRegression(**BUDGET).fit(X[200:], LABELS[200:], X_public=X[:200], y_public=LABELS[:200])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", errors.NotPrivateWarning)
        for entry in ODD_ENTRIES:
            matrix = dok_with((7, 1), entry)
            assert np.isnan(_tables.by_rows(matrix, "X").toarray()[7, 1]) and changed_rows(matrix) == [7]
            other = LogisticRegression(**BUDGET).fit(matrix, LABELS[200:], X_public=X[:200], y_public=LABELS[:200])
            assert np.linalg.norm(other.coef_ - plain.coef_) < 0.1 * np.linalg.norm(plain.coef_)
            assert plain.predict(matrix).shape == (1000,)


@pytest.mark.parametrize("place", [(7, 99), (-1, 1), (7, -1), (10**30, 1), ("Ada", 1), (7, None), (7,), "Ada", 5, (7, 1.5)], ids=str)
def test_an_odd_key_of_a_dictionary_of_keys_is_left_out(place: Any) -> None:
    assert changed_rows(dok_with(place, 1.0)) in ([], [7])


@pytest.mark.parametrize(
    ("part", "row"),
    [
        ("data", ["SECRET", 1.0]), ("data", [10**400, 1.0]), ("data", [1j]), ("data", [[1.0]]), ("data", None), ("data", "SECRET"), ("data", []),
        ("rows", None), ("rows", ["SECRET", 1]), ("rows", [0, 10**30]), ("rows", [0, 99]), ("rows", [-1]), ("rows", [1.5]), ("rows", 5), ("rows", [0]),
        ("data", [1.0] * 1000), ("rows", list(range(1000))),
    ],
    ids=lambda part: str(part)[:12],
)  # fmt: skip
def test_an_odd_row_of_lists_changes_itself(part: str, row: Any) -> None:
    """In a process of its own, as SciPy writes beyond its arrays where the two lists of a row differ in length."""
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_sparse import *
warnings.simplefilter("error"); warnings.simplefilter("ignore", errors.NotPrivateWarning)
matrix = lil_with({part!r}, {row!r})
assert changed_rows(matrix) in ([], [7]), changed_rows(matrix)
LogisticRegression(**BUDGET).fit(matrix, LABELS[200:], X_public=X[:200], y_public=LABELS[:200])
print("fitted")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.split(), "SECRET" in done.stderr) == (0, ["fitted"], False), done.stderr


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_an_odd_entry_of_objects_is_missing(form: str) -> None:
    for entry in ODD_ENTRIES:
        matrix = sp.csr_matrix(np.arange(1.0, 10.0).reshape(3, 3)).asformat(form)
        cells = matrix.data.astype(object)
        cells[tuple(0 if size == 1 else 1 for size in cells.shape)] = entry
        matrix.data = cells
        read = _tables.by_rows(matrix, "X").toarray()
        assert np.isnan(read).sum() <= 1 and read.dtype == np.float64
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.SemidpWarning)
            model = LogisticRegression(epsilon=1.0, delta=1e-6, clip_norm=1.0, learning_rate=0.1, classes=[0, 1])
            model.fit(matrix, [0, 1, 0])


@pytest.mark.parametrize(
    ("form", "part", "value"),
    [
        ("coo", "coords", (np.array(["SECRET", 0, 10**30], dtype=object), np.arange(3))),
        ("coo", "coords", (np.arange(3), np.array([None, 0.5, 1], dtype=object))),
        ("csr", "indices", np.array(["SECRET", 0, 1], dtype=object)),
        ("csc", "indices", np.array([-1.0, 0.0, np.nan])),
    ],
)
def test_odd_indices_are_left_out(form: str, part: str, value: Any) -> None:
    matrix = sp.csr_matrix(np.diag([1.0, 2.0, 3.0])).asformat(form)
    setattr(matrix, part, value)
    assert _tables.by_rows(matrix, "X").nnz <= 2


@pytest.mark.parametrize(
    ("form", "part", "value"),
    [
        ("lil", "rows", np.empty(2, dtype=object)),
        ("lil", "data", [[1.0]] * 3),
        ("bsr", "data", np.ones(3)),
        ("bsr", "data", np.ones((3, 0, 0))),
        ("bsr", "data", np.ones((3, 2, 2))),
        ("dia", "offsets", np.array([0, 1])),
        ("dia", "data", np.ones(3)),
        ("csr", "data", np.ones((3, 3))),
        ("coo", "data", np.ones(2)),
    ],
)
def test_arrays_that_make_no_matrix_are_refused(form: str, part: str, value: Any) -> None:
    matrix = sp.csr_matrix(np.eye(3)).asformat(form)
    setattr(matrix, part, value)
    with pytest.raises(errors.ShapeError) as refused:
        _tables.by_rows(matrix, "X")
    assert refused.value.parameter == "X"


def test_only_matrices_are_read() -> None:
    with pytest.raises(errors.SemidpError):
        _tables.by_rows(sp.coo_array(np.ones(3)), "X")
    with pytest.raises(errors.UnsupportedTypeError, match="Complex"):
        LogisticRegression(**BUDGET).fit(sp.lil_matrix(X[200:].astype(complex)), LABELS[200:], X_public=X[:200], y_public=LABELS[:200])


def test_diagonals_are_read_where_they_are() -> None:
    for shape, offsets in (((4, 3), [-3, -1, 0, 2]), ((3, 5), [-2, 0, 4]), ((3, 3), [-7, 9])):
        cells = np.arange(1.0, 1 + 5 * len(offsets)).reshape(len(offsets), 5)
        matrix = sp.dia_matrix((cells, offsets), shape=shape)
        np.testing.assert_array_equal(_tables.by_rows(matrix, "X").toarray(), matrix.toarray())
