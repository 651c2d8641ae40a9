"""Arrays and data frames as the tables of the native half.

Numbers are handed over where they lie: float32 and float64 matrices by rows or by columns are never copied. Columns of text
become categories.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _cells, _native
from .errors import ShapeError, UnsupportedTypeError

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
    """A batch of Arrow as a table, which scikit-learn knows the names of, and masked cells as missing ones; anything else as it is."""
    arrow = sys.modules.get("pyarrow")
    return arrow.Table.from_batches([data]) if arrow is not None and isinstance(data, arrow.RecordBatch) else unmasked(data)


def unmasked(data: Any, as_labels: bool = False) -> Any:
    """An array with a mask as one without, its masked cells missing; anything else as it is. Lists of such arrays, too.

    The declared type alone decides that of the result, whether a cell is masked or not: whole numbers become float64, or objects as labels.
    """
    if isinstance(data, (list, tuple)) and any(issubclass(type(row), np.ma.MaskedArray) for row in data):
        return [unmasked(row) if issubclass(type(row), np.ma.MaskedArray) else row for row in data]
    if not isinstance(data, np.ma.MaskedArray):
        return data
    if data.dtype.names is not None:
        # Of several fields nothing is read.
        return unmasked(data[data.dtype.names[0]], as_labels) if len(data.dtype.names) == 1 else np.ma.getdata(data)
    values, mask = np.ma.getdata(data), np.ma.getmaskarray(data)
    if values.dtype.kind in "mMV":
        return values
    with _cells.quiet():
        if values.dtype.kind in "fc":
            values = values.copy()
        elif as_labels or values.dtype.kind not in "biu":
            values = values.astype(object)
        else:
            values = values.astype(np.float64)
    values[mask] = None if values.dtype.kind == "O" else np.nan
    return values


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
            try:
                return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
            except Exception:  # of a type that NumPy has none for, as whole numbers of 128 bits
                return _cells.objects(_cells.of_column(column))
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

    SciPy follows no structure that was not checked here, and converts no cell. An entry that is in no row or column of the matrix is left out: that
    of a private row is no reason to refuse all others. An entry that is no number is missing.
    """
    if len(data.shape) != 2:
        raise ShapeError(f"{name} must be a matrix, got {len(data.shape)} dimensions", parameter=name)
    if data.shape[1] > np.iinfo(np.int32).max:
        raise ShapeError(f"{name} must have fewer than 2^31 columns", parameter=name)
    if getattr(getattr(data, "dtype", None), "kind", None) == "c":
        raise UnsupportedTypeError(f"{name} must not be complex. Complex data not supported", parameter=name)
    readers = {"dok": _of_keys, "lil": _of_lists, "coo": _of_coordinates, "dia": _of_diagonals}
    with _cells.quiet():
        if data.format in readers:
            rows = readers[data.format](data, name)
        else:
            checked = _within(data, name)
            rows = checked if checked.format == "csr" else checked.tocsr()
    # A copy that knows nothing yet of its order, whatever was said of the matrix.
    rows = _compressed(rows, rows.data, rows.indices, rows.indptr)
    if not rows.has_canonical_format:
        rows = rows.copy()
        with _cells.quiet():
            rows.sum_duplicates()
    return rows


def _of_triples(shape: tuple[int, int], rows: npt.NDArray[Any], columns: npt.NDArray[Any], entries: npt.NDArray[Any]) -> Any:
    """A matrix compressed by rows of the entries that are within its shape."""
    is_within = (rows >= 0) & (rows < shape[0]) & (columns >= 0) & (columns < shape[1])
    matrices: Any = importlib.import_module("scipy.sparse")
    return matrices.csr_matrix((entries[is_within], (rows[is_within], columns[is_within])), shape=shape)


def _of_keys(data: Any, name: str) -> Any:
    """A dictionary of keys. Neither keys nor entries are checked when they are put there."""
    items = list(data.items())
    places = np.array([_cells.indices(key) for key, _ in items], dtype=np.int64).reshape(-1, 2)
    return _of_triples(data.shape, places[:, 0], places[:, 1], _cells.vector([entry for _, entry in items], _cells.number, np.float64))


def _of_lists(data: Any, name: str) -> Any:
    """Lists of columns and entries, row by row. Those of a row may differ in length: what has no partner is left out."""
    count, width = data.shape
    if any(not isinstance(part, np.ndarray) or part.shape != (count,) for part in (data.rows, data.data)):
        raise ShapeError(f"{name} must have a list of columns and one of entries for each row", parameter=name)
    rows: list[int] = []
    columns: list[int] = []
    entries: list[float] = []
    for row, (ours, theirs) in enumerate(zip(data.rows.tolist(), data.data.tolist(), strict=True)):
        for column, entry in zip(_cells.cells_of(ours, width), _cells.cells_of(theirs, width)):
            rows.append(row)
            columns.append(_cells.index(column))
            entries.append(_cells.number(entry))
    return _of_triples(data.shape, np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64), np.array(entries, dtype=np.float64))


def _of_coordinates(data: Any, name: str) -> Any:
    """A list of coordinates."""
    rows, columns, entries = _places(data.row), _places(data.col), _entries(data.data)
    if any(part.ndim != 1 for part in (rows, columns, entries)) or not len(rows) == len(columns) == len(entries):
        raise ShapeError(f"{name} must have a row and a column for each entry", parameter=name)
    return _of_triples(data.shape, rows, columns, entries)


def _of_diagonals(data: Any, name: str) -> Any:
    """Diagonals, each with an entry for every column."""
    offsets, entries = _places(data.offsets, _cells.offset), _entries(data.data)
    if offsets.ndim != 1 or entries.ndim != 2 or len(offsets) != len(entries):
        raise ShapeError(f"{name} must have an offset for each of its diagonals", parameter=name)
    rows, columns, found = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [entries[:0].ravel()]
    for offset, diagonal in zip(offsets.tolist(), entries, strict=True):
        places = np.arange(max(0, offset), max(0, offset, min(len(diagonal), data.shape[1], data.shape[0] + offset)), dtype=np.int64)
        rows.append(places - offset)
        columns.append(places)
        found.append(diagonal[places])
    return _of_triples(data.shape, np.concatenate(rows), np.concatenate(columns), np.concatenate(found))


def _places(array: Any, read: Callable[[Any], int] = _cells.index) -> npt.NDArray[Any]:
    """An array of rows, columns or offsets as whole numbers; one that no matrix has where there is none."""
    array = np.asarray(array)
    if array.dtype.kind in "iu":
        return np.asarray(array.astype(np.int64) if array.dtype == np.uint64 else array)
    return _cells.vector(array.ravel().tolist(), read, np.int64).reshape(array.shape)


def _entries(array: Any) -> npt.NDArray[Any]:
    """Entries as numbers, NaN where one is none."""
    array = np.asarray(array)
    return _cells.floats(array) if array.dtype.kind in "biufcOUS" else np.full(array.shape, np.nan)


def _compressed(like: Any, data: Any, indices: Any, indptr: Any) -> Any:
    """A matrix of the same format and shape with other arrays. Nothing of them is looked at."""
    # That of a matrix of blocks is taken from its arrays.
    made = like.__class__(like.shape, blocksize=data.shape[1:]) if like.format == "bsr" else like.__class__(like.shape)
    made.data, made.indices, made.indptr = data, indices, indptr
    return made


def _within(data: Any, name: str) -> Any:
    """A compressed matrix whose entries are all within its shape, and are numbers."""
    if data.format not in ("csr", "csc", "bsr"):
        raise UnsupportedTypeError(f"{name} must be a sparse matrix in one of SciPy's formats", parameter=name)
    major, minor = data.shape if data.format != "csc" else data.shape[::-1]
    indptr, indices, entries = np.asarray(data.indptr), _places(data.indices), _entries(data.data)
    if entries.ndim != (3 if data.format == "bsr" else 1):
        raise ShapeError(f"{name} must have a number for each of its entries", parameter=name)
    if data.format == "bsr":
        height, width = entries.shape[1:]
        if height < 1 or width < 1 or major % height or minor % width:
            raise ShapeError(f"{name} must have blocks that divide its shape", parameter=name)
        major, minor = major // height, minor // width
    if (
        any(part.ndim != 1 for part in (indptr, indices))
        or indptr.dtype.kind not in "iu"
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
    kind = np.int64 if max(minor, len(indices)) > np.iinfo(np.int32).max else np.int32
    return _compressed(data, entries, indices.astype(kind, copy=False), indptr.astype(kind, copy=False))


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
