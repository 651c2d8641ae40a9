"""Cells of private rows, one by one: what a cell counts as depends on that cell alone.

NumPy chooses one type for all cells of a list, warns of single cells, and quotes them in errors. Each of these is an exact fact about a row. So
cells of lists and of arrays of objects are read one at a time, by functions that are defined for everything: a cell that cannot be
read is missing. Only a type that the container declares, such as that of an array of float32, decides for all cells.
"""

from __future__ import annotations

import operator
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

Arguments = ParamSpec("Arguments")
Read = TypeVar("Read")
_NAN = float("nan")
#: Whole numbers below it need no check.
_LARGE = 2**62
#: The place of what is no place.
NOWHERE = -1
_NO_LENGTH = -1
#: What ``float`` takes although it is no number.
_NO_NUMBERS = (complex, np.complexfloating, np.datetime64, np.timedelta64)
#: Containers that are one cell each, and no rows.
_NO_ROWS = (str, bytes, bytearray, memoryview, Mapping, set, frozenset)


@contextmanager
def quiet() -> Iterator[None]:
    """No warning of a conversion goes further: each of them is about single cells."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def total(otherwise: Any) -> Callable[[Callable[Arguments, Read]], Callable[Arguments, Read]]:
    """Makes a function of a cell defined for every object: ``otherwise`` where the cell raises anything, SystemExit and GeneratorExit too.

    Only a KeyboardInterrupt goes on, as it is Ctrl-C: as a new one, without text and context, as a cell may have raised it.
    """

    def decorated(read: Callable[Arguments, Read]) -> Callable[Arguments, Read]:
        @wraps(read)
        def guarded(*arguments: Arguments.args, **named: Arguments.kwargs) -> Read:
            try:
                return read(*arguments, **named)
            except KeyboardInterrupt:
                pass
            except BaseException:  # whatever a cell does when it is asked
                return otherwise  # type: ignore[no-any-return]
            # Not inside the handler, or the error of the cell would hang on the new one as its context.
            raise KeyboardInterrupt

        return guarded

    return decorated


@total(True)
def is_missing(cell: Any) -> bool:
    """Whether a cell stands for nothing: ``None``, NaN, what NumPy and pandas have for it, or an object that does not even say whether it equals itself."""
    kind = type(cell)
    if cell is None or kind.__name__ in ("NAType", "NaTType"):
        return True
    if issubclass(kind, np.ma.MaskedArray):
        return bool(cell.ndim == 0 and cell.mask)
    return issubclass(kind, (float, np.floating)) and bool(cell != cell)


def number(cell: Any) -> float:
    """A cell as a number; NaN if it is none."""
    kind = type(cell)
    # The usual ones, which raise nothing.
    if kind is float or kind is np.float64:
        return float(cell)
    if kind is int and -_LARGE < cell < _LARGE:
        return float(cell)
    return _number(cell)


@total(_NAN)
def _number(cell: Any) -> float:
    kind = type(cell)
    if issubclass(kind, (complex, np.complexfloating)):
        # One complex cell makes those beside it complex, too.
        return float(cell.real) if cell.imag == 0 else _NAN
    if issubclass(kind, _NO_NUMBERS) or (issubclass(kind, np.ndarray) and cell.ndim > 0) or is_missing(cell):
        return _NAN
    return float(cell)


@total(None)
def text(cell: Any) -> str | None:
    """A cell as the text of a category; ``None`` if it is missing. A whole number has no point, whatever type other cells gave its column."""
    if is_missing(cell):
        return None
    if issubclass(type(cell), (float, np.floating)) and float(cell).is_integer():
        cell = int(cell)
    # What is no Unicode is replaced: an error about it would quote the cell.
    return str.encode(str(cell), "utf-8", "replace").decode()


def index(cell: Any) -> int:
    """A cell as the place of a row or column; −1 if it is none."""
    kind = type(cell)
    if (kind is int or kind is np.int32 or kind is np.int64) and 0 <= cell < _LARGE:
        return int(cell)
    return _index(cell)


@total(NOWHERE)
def _index(cell: Any) -> int:
    if issubclass(type(cell), (float, np.floating)):
        return int(cell) if float(cell).is_integer() else NOWHERE
    place = operator.index(cell)
    return place if 0 <= place <= np.iinfo(np.int64).max else NOWHERE


#: An offset that no matrix has.
_NO_OFFSET = int(np.iinfo(np.int64).min // 2)


@total(_NO_OFFSET)
def offset(cell: Any) -> int:
    """A cell as the offset of a diagonal."""
    place = operator.index(cell)
    return place if abs(place) <= -_NO_OFFSET else _NO_OFFSET


@total((NOWHERE, NOWHERE))
def indices(cell: Any) -> tuple[int, int]:
    """A cell as the row and column of an entry; −1 for what is neither."""
    row, column = cell
    return index(row), index(column)


def key(label: Any) -> Any:
    """What a label is looked up by: a number where it is one or reads as one, and else itself; ``None`` if it is missing."""
    plain = plain_key(label)
    if not issubclass(type(plain), str):
        return plain
    value = _number(plain)
    return plain if value != value else value


@total(None)
def plain_key(label: Any) -> Any:
    """What a label is looked up by where ``"1"`` and ``"1.0"`` are two classes; ``None`` if it is missing or cannot be looked up."""
    kind = type(label)
    if is_missing(label) or issubclass(kind, (complex, np.complexfloating)):
        return None
    if issubclass(kind, np.generic) and not issubclass(kind, (np.datetime64, np.timedelta64)):
        label = label.item()
    hash(label)
    return label


def places(classes: npt.NDArray[Any], labels: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The place of each label among sorted classes, and whether it is one of them.

    Where a label goes depends on that label and the classes alone: 1, 1.0 and ``"1"`` are the same, unless ``"1"`` and ``"1.0"`` are two
    classes. Arrays whose declared types can be compared without rounding are searched at once, with the same outcome.
    """
    listed = classes.tolist()
    keys = [key(value) for value in listed]
    if _compare_exactly(classes, labels, keys):
        found = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
        return found, np.asarray(classes[found] == labels)
    looked_up_by: Callable[[Any], Any] = key
    if len(set(keys)) < len(keys):
        looked_up_by, keys = plain_key, [plain_key(value) for value in listed]
    # A class that is missing has no labels.
    known = {value: place for place, value in enumerate(keys) if value is not None}

    @total(NOWHERE)
    def place(label: Any) -> int:
        return known.get(looked_up_by(label), NOWHERE)

    with quiet():
        found = np.fromiter(map(place, labels.tolist()), dtype=np.intp, count=len(labels))
    return np.maximum(found, 0), found >= 0


def _compare_exactly(classes: npt.NDArray[Any], labels: npt.NDArray[Any], keys: list[Any]) -> bool:
    """Whether types alone say that ``==`` of these arrays is that of the keys. ``keys`` are those of the classes, which are public."""
    kinds = {array.dtype.kind for array in (classes, labels)}
    if kinds == {"U"}:
        # Text that reads as a number is looked up as one.
        return all(isinstance(value, str) for value in keys)
    if kinds <= set("biu"):
        return np.result_type(classes, labels).kind in "biu"
    widest = {"b": 1, "i": 4, "u": 4, "f": 8}
    return all(array.dtype.itemsize <= widest.get(array.dtype.kind, 0) for array in (classes, labels))


def floats(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array as numbers: of float32 or float64 itself, of other numbers as float64, of objects, complex ones and text cell by cell. Of other types itself."""
    if array.dtype in (np.float32, np.float64) or array.dtype.kind not in "biufcOUS":
        return array
    with quiet():
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
        return vector(array.ravel().tolist(), number, np.float64).reshape(array.shape)


def vector(cells: Sequence[Any], read: Callable[[Any], Any], kind: Any) -> npt.NDArray[Any]:
    """What is read from each of some cells."""
    return np.fromiter(map(read, cells), dtype=kind, count=len(cells))


def objects(cells: Iterable[Any]) -> npt.NDArray[Any]:
    """A vector of cells as they are, nested ones too."""
    listed = list(cells)
    made = np.empty(len(listed), dtype=object)
    for place, cell in enumerate(listed):
        made[place] = cell
    return made


def is_list(values: Any) -> bool:
    """Whether it is a collection of Python without a type for all of its members: a list, a tuple, a deque, ..."""
    if isinstance(values, (list, tuple)):
        return True
    has_type = any(hasattr(values, name) for name in ("dtype", "__array__", "__array_interface__", "__dataframe__", "__arrow_c_array__"))
    if has_type or isinstance(values, _NO_ROWS) or not isinstance(values, Collection):
        return False
    try:
        memoryview(values)  # type: ignore[arg-type]
    except TypeError:
        return True
    return False


def labels_of(listed: Iterable[Any]) -> npt.NDArray[Any]:
    """A vector of labels as they are. One in a list or tuple of its own is that label."""
    return objects(label[0] if type(label) in (list, tuple) and len(label) == 1 else label for label in listed)


def matrix_of(rows: Sequence[Any], width: int | None) -> npt.NDArray[np.float64] | None:
    """Rows of a list as numbers, each read on its own: cells that are not there are missing, and those beyond the width are left out.

    Public facts say how many columns there are, if any do. Otherwise it is the number of cells that more than half of the rows have, and
    ``None`` is returned if no number has this majority. A single row decides that only where half of the rows are odd, as in lists of two
    rows. If more than half are no rows but cells, this is one column, and a vector.
    """
    with quiet():
        lengths = Counter(map(_length, rows))
        common = next((length for length, votes in lengths.items() if 2 * votes > len(rows)), _NO_LENGTH)
        if common is None or (not rows and width is None):
            return vector(rows, number, np.float64)
        columns = common if width is None else width
        if columns == _NO_LENGTH:
            return None
        made = np.full((len(rows), columns), _NAN)
        for place, row in enumerate(rows):
            cells = cells_of(row, columns)
            made[place, : len(cells)] = [number(cell) for cell in cells]
        return made


@total(0)
def _length(row: Any) -> int | None:
    """The number of cells of a row; ``None`` of a cell."""
    return len(row) if _is_row(row) else None


@total(())
def cells_of(row: Any, width: int) -> Sequence[Any]:
    """The first cells of a row. What is no row is a cell."""
    return list(islice(iter(row), width)) if _is_row(row) else [row][:width]


def _is_row(row: Any) -> bool:
    kind = type(row)
    if issubclass(kind, np.ndarray):
        return bool(row.ndim == 1)
    return not issubclass(kind, _NO_ROWS) and hasattr(kind, "__len__") and hasattr(kind, "__iter__")


def of_column(column: Any) -> list[Any]:
    """The cells of a column of a data frame. Those that its library cannot show are missing."""
    for listed in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, listed):
            try:
                return list(getattr(column, listed)())
            except Exception:  # a cell of text that is no text, for example; which one is found below
                break
    else:
        return list(column)
    at = (lambda place: column.iloc[place]) if hasattr(column, "iloc") else (lambda place: column[place])
    return [_shown(at, place) for place in range(len(column))]


@total(None)
def _shown(at: Callable[[int], Any], place: int) -> Any:
    cell = at(place)
    return cell.as_py() if hasattr(cell, "as_py") else cell
