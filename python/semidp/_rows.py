"""Rows and labels as users hand them over, checked without a word about what is in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from . import _cells, _tables
from .errors import InvalidParameterError, SemidpError, ShapeError, UnsupportedTypeError

Read = TypeVar("Read")

#: Beginnings of what scikit-learn and NumPy say about shapes and types alone. Everything else may quote a cell.
_HARMLESS = re.compile(
    r"Input \w+ contains (NaN|infinity)|Found array with|Expected 2D array|Complex data not supported|Sparse data was passed|"
    r"Found input variables with inconsistent|X has \d+ features?, but|The feature names should match|y should be a 1d array|"
    r"float\(\) argument must be a string or a real number, not '\w+'$|Unknown label type: [a-z-]+\b"
)


def without_values(name: str, read: Callable[[], Read], is_counted: bool = True) -> Read:
    """What ``read`` returns. Of what it raises, only what cannot quote a cell goes further, and no number if that of rows is secret."""
    try:
        return read()
    except SemidpError:
        raise
    except KeyboardInterrupt:
        told = None
    except BaseException as error:  # a cell may raise SystemExit, too
        line = _first_line(error)
        told = line if _HARMLESS.match(line) else f"{name} must be rows of numbers; some cells, or its type, cannot be read as such"
        if not is_counted:
            told = re.sub(r"\b\d+\b", "*", told)
        is_type = isinstance(error, TypeError)
    # Not inside the handler, or the error above would hang on the new one as its context.
    if told is None:
        raise KeyboardInterrupt
    if told.startswith("Expected 2D array"):
        raise ShapeError(
            f"{name} must be a matrix: {told.rstrip(':.')}. Reshape your data: a row each, a column for each feature.", parameter=name
        )
    if "contains NaN" in told or "contains infinity" in told:
        hint = "strict=False replaces missing and infinite numbers by what public rows say"
        raise InvalidParameterError(told.split(" NaN")[0] + " NaN." if "NaN" in told else told, hint=hint, parameter=name)
    kind = UnsupportedTypeError if is_type or told.startswith(f"{name} must be rows") else InvalidParameterError
    raise kind(told, parameter=name)


def _first_line(error: BaseException) -> str:
    """The first line of an error of a library: what follows is often the array. Nothing of one that a cell raised itself."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    is_known = where.partition(".")[0] in ("sklearn", "numpy", "scipy", "semidp") and type(error).__str__ is Exception.__str__
    return (str(error).splitlines() or [""])[0] if is_known else ""


def label_vector(y: Any, rows: int, name: str, strict: bool, is_counted: bool = True) -> npt.NDArray[Any]:
    """One label a row. A missing one is refused in a strict check, and NaN or ``None`` otherwise."""

    def read() -> npt.NDArray[Any]:
        return np.asarray(column_or_1d(label_array(y), warn=True))

    labels = without_values(name, read, is_counted)
    if labels.shape[0] != rows:
        counts = f": {[rows, labels.shape[0]]}" if is_counted else ""
        raise InvalidParameterError(
            f"{name} must have a label for each row: Found input variables with inconsistent numbers of samples{counts}", parameter=name
        )
    if labels.dtype.kind == "c":
        raise UnsupportedTypeError(f"{name} must not be complex. Complex data not supported", parameter=name)
    if strict and missing_labels(labels).any():
        what = "infinity" if labels.dtype.kind == "f" and np.isinf(labels).any() else "NaN"
        raise InvalidParameterError(f"Input {name} contains {what}.", hint="strict=False leaves such rows out", parameter=name)
    return labels


def weight_vector(weights: Any, rows: int) -> npt.NDArray[np.float64]:
    """One weight a row. What is no finite number weighs zero."""
    read = _cells.floats(label_vector(weights, rows, "sample_weight", strict=False))
    if read.dtype.kind != "f":
        raise UnsupportedTypeError("sample_weight must hold numbers", parameter="sample_weight")
    return np.where(np.isfinite(read), read, 0.0).astype(np.float64)


def missing_labels(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which labels are missing or no finite number."""
    if labels.dtype.kind == "f":
        return np.asarray(~np.isfinite(labels), dtype=np.bool_)
    if labels.dtype.kind == "O":
        return _cells.vector(labels.tolist(), _cells.is_missing, np.bool_)
    return np.zeros(len(labels), dtype=np.bool_)


def rows_at(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Some rows of an array, a list or a data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "column_names"):
        return X.take(rows)
    return (X if hasattr(X, "shape") else np.asarray(X))[rows]


def finite_frame(frame: Any, numeric: Sequence[bool]) -> bool:
    """Whether all cells of the columns of numbers are there and finite."""
    columns = (_tables.frame_column(frame, place) for place, is_number in enumerate(numeric) if is_number)
    return all(bool(np.isfinite(_tables.numbers_of(column)).all()) for column in columns)


def label_array(values: Any) -> npt.NDArray[Any]:
    """Labels as an array. What its container declares to be numbers is that; in everything else a label is what it is, whatever others are."""
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(_tables.unmasked(values, as_labels=True))
    if isinstance(values, np.ndarray):
        return values
    if _cells.is_list(values):
        return _cells.labels_of(values)
    if _tables.is_frame(values) and len(_tables.frame_names(values)) == 1:
        values = _tables.frame_column(values, 0)
    if isinstance(getattr(values, "dtype", None), np.dtype) or _tables.is_frame(values) or _tables.is_sparse(values):
        return np.asarray(values)
    if hasattr(values, "to_pylist") or hasattr(values, "to_numpy"):
        is_float = _tables.type_name(values).startswith(("float", "double"))
        return _tables.numbers_of(values) if is_float else _cells.objects(_cells.of_column(values))
    return np.asarray(values)


def coerced(X: Any, width: int | None = None, name: str = "X") -> Any:
    """Rows as numbers, NaN where a cell is none. What holds float32 or float64 alone stays as it is.

    Rows in a list have as many cells as public facts say, ``width``; see :func:`semidp._cells.matrix_of`.
    """
    X = _tables.unmasked(X)
    if _tables.is_sparse(X):
        return _tables.by_rows(X, name)
    if _tables.is_frame(X):
        places = range(len(_tables.frame_names(X)))
        columns = [_tables.frame_column(X, place) for place in places]
        kinds = {str(getattr(column, "dtype", None)) for column in columns}
        if kinds in ({"float32"}, {"float64"}) or all(kind.startswith("Sparse[float") for kind in kinds):
            return X
        for column, column_name in zip(columns, _tables.frame_names(X), strict=True):
            _tables.refuse_other_types(column, column_name, name)
        numbers = [_tables.numbers_of(column) for column in columns]
        # One cell makes a column of pandas one of objects. That must not change how the others are read, so all are widened.
        with _cells.quiet():
            return np.column_stack([each.astype(np.float64, copy=False) for each in numbers])
    if _cells.is_list(X):
        rows = _cells.matrix_of(list(X), width)
        if rows is None:
            raise ShapeError(
                f"{name} must have rows of one length: no number of cells is that of more than half of the rows",
                hint="an array says how many columns it has, as do public rows and a schema",
                parameter=name,
            )
        return rows
    if hasattr(X, "dtype") and hasattr(X, "to_numpy"):
        return _tables.numbers_of(X)
    if getattr(getattr(X, "dtype", None), "kind", None) in ("m", "M"):
        raise UnsupportedTypeError(f"{name} must hold numbers, got dates or times", parameter=name)
    try:
        array = np.asarray(X)
        return array if array.dtype.kind == "c" else _cells.floats(array)
    except Exception:  # no rows at all, which the next check refuses
        return X
