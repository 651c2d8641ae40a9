"""Rows and labels as users hand them over, checked without a word about what is in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from . import _tables
from .errors import InvalidParameterError, SemidpError, ShapeError, UnsupportedTypeError

Read = TypeVar("Read")

#: Beginnings of what scikit-learn and NumPy say about shapes and types alone. Everything else may quote a cell.
_HARMLESS = re.compile(
    r"Input \w+ contains (NaN|infinity)|Found array with|Expected 2D array|Complex data not supported|Sparse data was passed|"
    r"Found input variables with inconsistent|X has \d+ features?, but|The feature names should match|y should be a 1d array|"
    r"float\(\) argument must be a string or a real number, not '\w+'$|Unknown label type: [a-z-]+\b"
)


def without_values(name: str, read: Callable[[], Read]) -> Read:
    """What ``read`` returns. Of what it raises, only what cannot quote a cell goes further."""
    try:
        return read()
    except SemidpError:
        raise
    except Exception as error:
        # The first line: what follows is often the array.
        line = (str(error).splitlines() or [""])[0]
        told = line if _HARMLESS.match(line) else f"{name} must be rows of numbers; some cells, or its type, cannot be read as such"
        is_type = isinstance(error, TypeError)
    # Not inside the handler, or the error above would hang on the new one as its context.
    if told.startswith("Expected 2D array"):
        raise ShapeError(
            f"{name} must be a matrix: {told.rstrip(':.')}. Reshape your data: a row each, a column for each feature.", parameter=name
        )
    if "contains NaN" in told or "contains infinity" in told:
        hint = "strict=False replaces missing and infinite numbers by what public rows say"
        raise InvalidParameterError(told.split(" NaN")[0] + " NaN." if "NaN" in told else told, hint=hint, parameter=name)
    kind = UnsupportedTypeError if is_type or told.startswith(f"{name} must be rows") else InvalidParameterError
    raise kind(told, parameter=name)


def label_vector(y: Any, rows: int, name: str, strict: bool) -> npt.NDArray[Any]:
    """One label a row. A missing one is refused in a strict check, and NaN or ``None`` otherwise."""

    def read() -> npt.NDArray[Any]:
        values = y
        if hasattr(values, "to_pylist"):
            values = values.to_pylist()
        values = np.asarray(values)
        return np.asarray(column_or_1d(values, warn=True))

    labels = without_values(name, read)
    if labels.shape[0] != rows:
        raise InvalidParameterError(
            f"{name} must have a label for each row: Found input variables with inconsistent numbers of samples: {[rows, labels.shape[0]]}",
            parameter=name,
        )
    if labels.dtype.kind == "c":
        raise UnsupportedTypeError(f"{name} must not be complex. Complex data not supported", parameter=name)
    if strict and missing_labels(labels).any():
        what = "infinity" if labels.dtype.kind == "f" and np.isinf(labels).any() else "NaN"
        raise InvalidParameterError(f"Input {name} contains {what}.", hint="strict=False leaves such rows out", parameter=name)
    return labels


def missing_labels(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which labels are missing or no finite number."""
    if labels.dtype.kind == "f":
        return np.asarray(~np.isfinite(labels), dtype=np.bool_)
    if labels.dtype.kind == "O":
        return np.array([_tables.is_missing(value) for value in labels], dtype=np.bool_)
    return np.zeros(len(labels), dtype=np.bool_)


def rows_at(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    """Some rows of an array, a list or a data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "column_names"):
        return X.take(rows)
    return (X if hasattr(X, "shape") else np.asarray(X))[rows]


def finite_frame(frame: Any) -> bool:
    """Whether all numbers of a frame are there and finite."""
    columns = (_tables.frame_column(frame, place) for place in range(len(_tables.frame_names(frame))))
    return all(bool(np.isfinite(_tables.numbers_of(column)).all()) for column in columns if _tables.is_numeric(column))


def coerced(X: Any) -> Any:
    """An array of objects as numbers, NaN where a cell is none; anything else as it is."""
    array = X if _tables.is_sparse(X) or _tables.is_frame(X) else np.asarray(X)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "OUS" or array.ndim != 2:
        return X
    return np.column_stack([_tables.numbers_of(array[:, place]) for place in range(array.shape[1])]) if array.size else array.astype(float)
