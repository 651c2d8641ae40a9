"""Arrays and data frames as the tables of the native half.

Numbers are handed over where they lie: float32 and float64 matrices by rows or by columns are never copied. Columns of text
become categories.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _cells, _native
from .errors import InvalidParameterError, ShapeError, UnsupportedTypeError

#: The name of the label among the columns.
LABEL = "y"


def is_sparse(data: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(data))


def is_frame(data: Any) -> bool:
    """Whether it is a table with named columns: of pandas, of polars, or of Arrow."""
    return not isinstance(data, np.ndarray) and (
        hasattr(data, "columns") and hasattr(data, "shape") and not is_sparse(data)
        or hasattr(data, "column_names") and hasattr(data, "num_rows")
    )


def whole(data: Any) -> Any:
    """A batch of Arrow as a table, which scikit-learn knows the names of; anything else as it is."""
    arrow = sys.modules.get("pyarrow")
    return arrow.Table.from_batches([data]) if arrow is not None and isinstance(data, arrow.RecordBatch) else data


def frame_names(frame: Any) -> list[str]:
    """The names of the columns."""
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return [str(name) for name in names]


def frame_column(frame: Any, place: int) -> Any:
    """A column as a series or array of its library."""
    if hasattr(frame, "column_names"):
        return frame.column(place)
    if hasattr(frame, "iloc"):
        return frame.iloc[:, place]
    return frame[:, place] if hasattr(frame, "get_column") else frame[frame.columns[place]]


def type_name(column: Any) -> str:
    """The type of a column of a frame in lower case, whatever its library; that of the numbers for pandas' sparse ones."""
    kind = getattr(column, "dtype", None)
    text = str(column.type if kind is None else kind).lower()
    return text[len("sparse[") :] if text.startswith("sparse[") else text


def refuse_shared(private: Any, public: Any) -> None:
    """Refuses public rows that are the private ones: the same object, or arrays and columns that overlap in memory.

    Values are never compared. The guarantee holds for every content of the public rows, so that an answer which depends on whether they
    equal the private ones would itself tell neighbouring private data apart.
    """
    if private is None or public is None:
        return
    known = dict(_buffers(private))
    pairs = [(known[name], theirs) for name, theirs in _buffers(public) if name in known]
    if private is public or any(_overlap(ours, theirs) for ours, theirs in pairs):
        raise InvalidParameterError(
            "X_public must not be the rows of X: they share memory",
            hint="give X and X_public rows of their own: split the data into two parts that do not overlap",
            parameter="X_public",
        )


def _buffers(data: Any) -> list[tuple[str, npt.NDArray[Any]]]:
    """The arrays that hold the cells, by column where each has its own, as far as they can be seen without a copy."""
    if isinstance(data, np.ndarray):
        return [("", data)]
    if is_sparse(data):
        return [("", data.data)] if isinstance(getattr(data, "data", None), np.ndarray) else []
    if is_frame(data) and hasattr(data, "iloc"):
        columns = [(name, frame_column(data, place)) for place, name in enumerate(frame_names(data))]
        values = [(name, getattr(column, "values", None)) for name, column in columns]
        return [(name, array) for name, array in values if isinstance(array, np.ndarray)]
    return []


def _overlap(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> bool:
    """Whether two arrays have an element in common; also where this is too hard to tell."""
    # The stubs of NumPy know two of the values that this parameter takes.
    most_work: Any = 100_000
    try:
        return bool(np.shares_memory(ours, theirs, max_work=most_work))
    except (RuntimeError, OverflowError):
        return True


_NUMBERS = re.compile(r"(u?int\d*|float\d*|bool(ean)?|double|half(_?float)?|decimal\w*)(\W|$)")
_TEXT = re.compile(r"(object|str|string\w*|large_string|utf8|category|categorical|dictionary|enum|null)(\W|$)")


def is_numeric(column: Any) -> bool:
    """Whether a column of a frame holds numbers or booleans."""
    return _NUMBERS.match(type_name(column)) is not None


def refuse_other_types(column: Any, column_name: str, name: str) -> None:
    """Refuses a column of a frame whose type says that it holds neither numbers nor text."""
    if not is_numeric(column) and not _TEXT.match(type_name(column)) and not type_name(column).startswith("complex"):
        raise UnsupportedTypeError(
            f"{name} must have columns of numbers or text; column {column_name} is of type {type_name(column)}", parameter=name
        )


def numbers_of_schema(schema: Any) -> dict[str, bool]:
    """Which columns a schema, or the file of one, says to be numbers. Nothing of what is no schema: the command refuses that."""
    try:
        if not isinstance(schema, dict):
            with open(schema, encoding="utf-8") as file:
                schema = json.load(file)
        return {str(column["name"]): column["kind"] == "number" for column in schema["columns"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def has_text(frame: Any) -> bool:
    """Whether some column of a frame is no number."""
    return any(not is_numeric(frame_column(frame, place)) for place in range(len(frame_names(frame))))


def numbers_of(column: Any) -> npt.NDArray[Any]:
    """A column of numbers as a vector, missing ones NaN. Of text, what reads as a number; nothing is refused, and nothing told."""
    values = _values(column)
    if values.dtype in (np.float32, np.float64):
        return values
    if values.dtype.kind not in "biufcOUS":
        return np.full(len(values), np.nan)
    # Whatever form gaps give the column: a gap must not change the precision in which the other cells are read.
    return _cells.floats(values).astype(np.float32 if type_name(column) in ("float", "float32") else np.float64, copy=False)


def _values(column: Any) -> npt.NDArray[Any]:
    """A column as its library has it: numbers where its type says that it holds them, and else cells. Gaps change no other cell."""
    if isinstance(column, np.ndarray):
        return column
    is_number = is_numeric(column)
    with _cells.quiet():
        if is_number and hasattr(column, "to_pylist"):
            # Of Arrow: vectors with gaps have no other form that keeps them apart.
            return np.asarray(column) if column.null_count == 0 else _cells.objects(_cells.of_column(column))
        if is_number and hasattr(column, "array") and getattr(column.dtype, "na_value", None) is not None:
            # Of pandas, with a mask.
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        if is_number:
            return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    return _cells.objects(_cells.of_column(column))


def categories_of(column: Any) -> tuple[npt.NDArray[np.int32], list[str]]:
    """A column of text as codes and values, −1 where a cell is missing."""
    known: dict[str, int] = {}
    with _cells.quiet():
        texts = [_cells.text(cell) for cell in _cells.of_column(column)]
    codes = [-1 if text is None else known.setdefault(text, len(known)) for text in texts]
    return np.array(codes, dtype=np.int32), list(known)


def matrix(data: Any) -> npt.NDArray[Any]:
    """A matrix of float32 or float64, the very array if it is one that can be read where it lies."""
    array = np.asarray(data)
    if array.dtype not in (np.float32, np.float64):
        with _cells.quiet():
            array = array.astype(np.float64)
    if array.ndim == 1:
        array = array[:, None]
    fits = array.flags.aligned and array.dtype.isnative and all(
        stride >= 0 and stride % array.itemsize == 0 for stride in array.strides
    )
    return array if fits else np.require(array.astype(array.dtype.newbyteorder("="), copy=False), requirements=["C", "A"])


def by_rows(data: Any, name: str) -> Any:
    """A sparse matrix compressed by rows, that lists each column of a row once and in order.

    What its arrays must be for their lengths and offsets is checked before SciPy follows them. An entry that is in no row or column of the matrix is
    left out: that of a private row is no reason to refuse all others.
    """
    if data.shape[1] > np.iinfo(np.int32).max:
        raise ShapeError(f"{name} must have fewer than 2^31 columns", parameter=name)
    if data.format in ("csr", "csc", "bsr"):
        data = _within(data, name)
    elif data.format == "coo":
        data = _coordinates_within(data, name)
    # Other formats hold no offsets; what they make may still have entries beyond the last column.
    rows = data if data.format == "csr" else _within(data.tocsr(), name)
    if rows.dtype not in (np.float32, np.float64) and rows.dtype.kind in "biufOUS":
        rows = _compressed(rows, _cells.floats(rows.data), rows.indices, rows.indptr)
    # A copy that knows nothing yet of its order, whatever was said of the matrix.
    rows = _compressed(rows, rows.data, rows.indices, rows.indptr)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _compressed(like: Any, data: Any, indices: Any, indptr: Any) -> Any:
    """A matrix of the same format and shape with other arrays. Nothing of them is looked at."""
    made = like.__class__(like.shape, blocksize=like.blocksize) if like.format == "bsr" else like.__class__(like.shape)
    made.data, made.indices, made.indptr = data, indices, indptr
    return made


def _within(data: Any, name: str) -> Any:
    """A compressed matrix whose entries are all within its shape."""
    major, minor = data.shape if data.format != "csc" else data.shape[::-1]
    if data.format == "bsr":
        major, minor = major // data.blocksize[0], minor // data.blocksize[1]
    indptr, indices, entries = (np.asarray(part) for part in (data.indptr, data.indices, data.data))
    if (
        any(part.ndim != 1 or part.dtype.kind not in "iu" for part in (indptr, indices))
        or len(indptr) != major + 1
        or len(entries) < len(indices)
        or indptr[0] != 0
        or int(indptr[-1]) > len(indices)
        or bool(np.any(indptr[1:] < indptr[:-1]))
    ):
        raise ShapeError(f"{name} must have offsets that increase from 0 to the number of its entries, one more than it has rows", parameter=name)
    indices, entries = indices[: indptr[-1]], entries[: indptr[-1]]
    is_within = (indices >= 0) & (indices < minor)
    if not is_within.all():
        # As many as come before each offset.
        indptr = np.concatenate([[0], np.cumsum(is_within)])[indptr]
        indices, entries = indices[is_within], entries[is_within]
    elif len(entries) == len(data.data) and len(indices) == len(data.indices):
        return data
    kind = np.int64 if max(minor, len(indices)) > np.iinfo(np.int32).max else np.int32
    return _compressed(data, entries, indices.astype(kind), indptr.astype(kind))


def _coordinates_within(data: Any, name: str) -> Any:
    """The same of a list of coordinates."""
    if not len(data.row) == len(data.col) == len(data.data):
        raise ShapeError(f"{name} must have a row and a column for each entry", parameter=name)
    is_within = (data.row >= 0) & (data.row < data.shape[0]) & (data.col >= 0) & (data.col < data.shape[1])
    return data if is_within.all() else data.__class__((data.data[is_within], (data.row[is_within], data.col[is_within])), shape=data.shape)


def _matrix_or_none(data: Any) -> npt.NDArray[Any] | None:
    """What NumPy says of a cell that it cannot convert quotes the cell, so that nothing of it is kept, not even as a context."""
    try:
        return matrix(data)
    except (TypeError, ValueError):
        return None


def width_of(public: Any, schema: Any = None, has_label: bool = False) -> int | None:
    """The number of columns by public facts: by public rows, or else by a schema. ``None`` without either."""
    if public is not None:
        if is_frame(public):
            return len(frame_names(public))
        if hasattr(public, "shape"):
            return int(public.shape[1]) if len(public.shape) == 2 else 1
        first = next(iter(public), None)
        return len(first) if isinstance(first, Sized) and not isinstance(first, str) else 1
    names = [] if schema is None else [name for name in numbers_of_schema(schema) if not has_label or name != LABEL]
    return width_of_names(names) or len(names) or None


def width_of_names(names: Sequence[str]) -> int | None:
    """The number of columns of an array that has all of these; ``None`` of other names than those of arrays, ``x0``, ``x1``, ..."""
    places = [name.removeprefix("x") for name in names]
    return 1 + max(map(int, places)) if places and all(place.isdecimal() for place in places) else None


def rows_of(data: Any) -> int:
    """The number of rows."""
    return int(data.num_rows) if hasattr(data, "num_rows") else int(data.shape[0])


def table(
    data: Any,
    names: Sequence[str] | None = None,
    label: npt.NDArray[np.float64] | None = None,
    name: str = "X",
    may_be_copied: bool = False,
    numeric: Sequence[bool | None] | None = None,
) -> _native.Table:
    """Rows as a table, and their labels as its last column. ``names`` are those of the columns, ``x0``, ``x1``, ... by default.

    ``numeric`` says which columns of a frame are numbers, if somebody else's types decide; otherwise its own do. Columns of which it says
    nothing are left out.
    """
    rows = rows_of(data)
    made = _native.Table(rows, may_be_copied)
    if is_frame(data):
        for place, column_name in enumerate(names if names is not None else frame_names(data)):
            if numeric is not None and numeric[place] is None:
                continue
            column = frame_column(data, place)
            refuse_other_types(column, column_name, name)
            if is_numeric(column) if numeric is None else numeric[place]:
                made.add_numbers([column_name], matrix(numbers_of(column)))
            else:
                codes, values = categories_of(column)
                made.add_category(column_name, codes.tolist(), values)
    elif is_sparse(data):
        data = by_rows(data, name)
        names = names if names is not None else [f"x{place}" for place in range(data.shape[1])]
        made.add_sparse(
            names,
            np.ascontiguousarray(data.indptr, dtype=np.int64),
            np.ascontiguousarray(data.indices, dtype=np.int32),
            np.ascontiguousarray(data.data),
        )
    else:
        array = _matrix_or_none(data)
        if array is None:
            raise UnsupportedTypeError(f"{name} must hold numbers, or be a data frame", parameter=name)
        if array.ndim != 2:
            raise ShapeError(f"{name} must be a matrix, got {array.ndim} dimensions", parameter=name)
        names = names if names is not None else [f"x{place}" for place in range(array.shape[1])]
        made.add_numbers(names, array)
    if label is not None:
        made.add_numbers([LABEL], matrix(label))
    return made
