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
