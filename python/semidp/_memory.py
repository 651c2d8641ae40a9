"""Which memory rows lie in.

Public rows that are the private ones void the comparison of the two, and are refused. Only metadata is compared: addresses, shapes and strides,
the files of mapped arrays, and the identity of row objects. A cell is never asked anything.
"""

from __future__ import annotations

import contextlib
import importlib
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _cells
from ._tables import frame_column, frame_names, is_frame, is_sparse
from .errors import InvalidParameterError

#: A device and a number of its file system; ``None`` is the memory of this process.
_File = tuple[int, int] | None
#: Attributes in which extension arrays of pandas hold one value a row.
_PARTS = ("_ndarray", "_data", "_pa_array", "_codes", "sp_values", "_left", "_right")
#: Bits a row in the first buffer of Arrow arrays whose cells have no fixed width: offsets and views.
_VARIABLE = {"string": 32, "binary": 32, "large_string": 64, "large_binary": 64, "string_view": 128, "binary_view": 128}
#: Fewest arrays with equal distances that are compared as one.
_SHORTEST_RUN = 3


class _Extent(NamedTuple):
    """Where some cells lie. Addresses, strides and the width of a cell are in bits, as booleans of Arrow have one."""

    start: int
    file: _File
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    width: int

    @property
    def low(self) -> int:
        return self.start + sum(min(0, stride * (size - 1)) for size, stride in zip(self.shape, self.strides, strict=True))

    @property
    def high(self) -> int:
        return self.start + self.width + sum(max(0, stride * (size - 1)) for size, stride in zip(self.shape, self.strides, strict=True))


class _Addresses:
    """What NumPy takes for an array at the addresses of an extent. Nothing is there: it must never be read."""

    def __init__(self, extent: _Extent) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (extent.start, True),
            "shape": extent.shape,
            "strides": extent.strides,
            "typestr": f"|V{extent.width}",
        }


def refuse_shared(private: Any, public: Any) -> None:
    """Refuses public rows that are the private ones: the same object, arrays and columns that overlap in memory, or lists with a row in common.

    Values are never compared. The guarantee holds for every content of the public rows, so that an answer which depends on whether they
    equal the private ones would itself tell neighbouring private data apart.
    """
    if private is None or public is None:
        return
    if private is public or _share(private, public):
        raise InvalidParameterError(
            "X_public must not be the rows of X: they share memory",
            hint="give X and X_public rows of their own: split the data into two parts that do not overlap",
            parameter="X_public",
        )


def _share(private: Any, public: Any) -> bool:
    ours, our_rows = _places(private)
    theirs, their_rows = _places(public)
    return not our_rows.isdisjoint(their_rows) or any(_overlap(one, other) for one, other in _candidates(ours, theirs))


def _candidates(ours: Sequence[_Extent], theirs: Sequence[_Extent]) -> Iterator[tuple[_Extent, _Extent]]:
    """The pairs whose bounds overlap."""
    listed = [(extent.low, extent.high, side, extent) for side, extents in enumerate((ours, theirs)) for extent in extents]
    open_extents: tuple[list[tuple[int, _Extent]], list[tuple[int, _Extent]]] = ([], [])
    for low, high, side, extent in sorted(listed, key=lambda item: item[0]):
        for other in open_extents:
            other[:] = [item for item in other if item[0] > low]
        for _, found in open_extents[1 - side]:
            if found.file == extent.file:
                yield (found, extent)
        open_extents[side].append((high, extent))


def _overlap(one: _Extent, other: _Extent) -> bool:
    """Whether two extents have a cell in common; also where this is too hard to tell."""
    # The stubs of NumPy know two of the values that this parameter takes.
    most_work: Any = 100_000
    try:
        return bool(np.shares_memory(np.asarray(_Addresses(one)), np.asarray(_Addresses(other)), max_work=most_work))
    except (RuntimeError, OverflowError):
        return True


def _places(data: Any) -> tuple[list[_Extent], set[int]]:
    """Where rows lie, and the identities of those that are objects of their own."""
    starts: dict[tuple[Any, ...], list[int]] = {}
    rows: set[int] = set()
    for part in _parts(data):
        if isinstance(part, _Extent):
            starts.setdefault(part[1:], []).append(part.start)
        else:
            rows.add(part)
    return [extent for layout, listed in starts.items() for extent in _merged(layout, listed)], rows


def _merged(layout: tuple[Any, ...], starts: list[int]) -> Iterator[_Extent]:
    """Columns and rows of one matrix as the matrix that they are: a thousand of them are one comparison then."""
    places = np.unique(np.array(starts, dtype=np.int64))
    distances = np.diff(places)
    file, shape, strides, width = layout
    first = 0
    # A run ends where the distance to the next place is another one.
    for end in [*(np.flatnonzero(distances[1:] != distances[:-1]) + 1).tolist(), len(places) - 1]:
        if end < first:
            continue
        count = end - first + 1
        if count >= _SHORTEST_RUN:
            yield _Extent(int(places[first]), file, (count, *shape), (int(distances[first]), *strides), width)
        else:
            yield from (_Extent(int(place), *layout) for place in places[first : end + 1])
        first = end + 1


def _parts(data: Any) -> Iterator[_Extent | int]:
    """The extents of rows, and the identities of row objects. What cannot be found out is left out: the guarantee does not rest on it."""
    if isinstance(data, np.ndarray):
        yield from _of_array(data)
        if data.dtype.kind == "O" and data.ndim == 1:
            yield from _of_rows(data.tolist())
    elif is_sparse(data):
        entries = getattr(data, "data", None)
        if isinstance(entries, np.ndarray):
            yield from _parts(entries)
        if data.format == "dok":
            yield id(getattr(data, "_dict", data))
    elif is_frame(data):
        for place in range(len(frame_names(data))):
            yield from _of_column(frame_column(data, place))
    elif _cells.is_list(data):
        yield from _of_rows(data)
    elif hasattr(data, "dtype") or hasattr(data, "type"):
        yield from _of_column(data)
    else:
        yield from _of_buffer(data)


def _of_rows(rows: Iterable[Any]) -> Iterator[_Extent | int]:
    """Rows of a list. Cells, tuples and other constants may be the same object by chance."""
    for row in rows:
        kind = type(row)
        if issubclass(kind, np.ndarray):
            yield from _of_row(row)
        elif issubclass(kind, (list, bytearray)) or (not issubclass(kind, (str, tuple, float, int)) and _is_mutable(kind)):
            yield id(row)


@_cells.total(())
def _of_row(row: npt.NDArray[Any]) -> Sequence[_Extent]:
    return list(_of_array(row)) if row.ndim > 0 else ()


@_cells.total(False)
def _is_mutable(kind: type[Any]) -> bool:
    return any("__setitem__" in vars(base) for base in type.mro(kind))


def _of_array(array: npt.NDArray[Any]) -> Iterator[_Extent]:
    if array.size == 0 or array.itemsize == 0:
        return
    address = int(array.__array_interface__["data"][0])
    shape, strides, width = array.shape, tuple(8 * stride for stride in array.strides), 8 * array.itemsize
    yield _Extent(8 * address, None, shape, strides, width)
    mapped = _mapped(array)
    if mapped is not None:
        file, first = mapped
        yield _Extent(8 * (address - first), file, shape, strides, width)


def _mapped(array: npt.NDArray[Any]) -> tuple[_File, int] | None:
    """The file that an array is a view of, and the address at which its first byte would be."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and isinstance(base.base, mmap.mmap) and base.filename is not None:
            with contextlib.suppress(OSError):
                found = os.stat(base.filename)
                return (found.st_dev, found.st_ino), int(base.__array_interface__["data"][0]) - int(base.offset)
            return None
        base = base.base
    return None


def _of_column(column: Any) -> Iterator[_Extent | int]:
    """A column of pandas, polars or Arrow."""
    try:
        if isinstance(column, np.ndarray):
            yield from _of_array(column)
        elif hasattr(column, "get_chunks"):
            yield from _of_polars(column)
        elif hasattr(column, "to_pylist"):
            yield from _of_arrow(column)
        else:
            array = getattr(column, "array", column)
            found = [part for part in (getattr(array, name, None) for name in _PARTS) if part is not None]
            for part in found if found else [np.asarray(column)]:
                if part is not column:
                    yield from _of_column(part)
    except Exception:  # of a library that has other parts than these
        return


def _of_polars(series: Any) -> Iterator[_Extent]:
    if str(series.dtype).startswith(("Categorical", "Enum")):
        series = series.to_physical()
    try:
        arrow: Any = importlib.import_module("pyarrow")
    except ImportError:
        for piece in series.get_chunks():
            yield from _of_array(piece.to_numpy(allow_copy=False))
        return
    # polars has one buffer for all columns that hold nothing but `False`.
    constant = importlib.import_module("polars").repeat(False, 1, eager=True)
    shared = {extent.start for extent in _of_arrow(arrow.chunked_array(constant))}
    yield from (extent for extent in _of_arrow(arrow.chunked_array(series)) if extent.width > 1 or extent.start not in shared)


def _of_arrow(column: Any) -> Iterator[_Extent]:
    """The buffer of each piece that has a place for each row: numbers, codes of a dictionary, or where texts begin."""
    for piece in getattr(column, "chunks", [column]):
        piece = getattr(piece, "storage", piece)
        width = _VARIABLE.get(str(piece.type)) or _fixed_width(piece.type)
        buffers = piece.buffers()
        if width and len(piece) and len(buffers) > 1 and buffers[1] is not None:
            yield _Extent(8 * buffers[1].address + piece.offset * width, None, (len(piece),), (width,), width)


def _fixed_width(kind: Any) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0


def _of_buffer(data: Any) -> Iterator[_Extent]:
    """What shows its memory: a view of memory, an array of another library."""
    try:
        if not isinstance(data, (str, bytes)):
            yield from _of_array(np.asarray(data))
    except Exception:  # which the next check refuses
        return
