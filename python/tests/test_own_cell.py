"""What a cell counts as depends on that cell alone: not on its neighbours, and no error or warning reveals it."""

from __future__ import annotations

import decimal
import fractions
import itertools
import traceback
import warnings
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from semidp import LinearRegression, LogisticRegression, _cells, _rows, _tables, errors, mean, randomize

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(1200, 3))
NUMBERS = X @ [1.0, -2.0, 0.5] + 0.1 * RANDOM.normal(size=1200)
CODES = (NUMBERS > 0).astype(int)


class Hostile:
    """Raises what it knows whatever it is asked."""

    def _raise(self, *_: Any) -> Any:
        raise ValueError("a secret")

    __float__ = __int__ = __index__ = __str__ = __repr__ = __eq__ = __ne__ = __hash__ = __len__ = __iter__ = __getitem__ = __array__ = __bool__ = _raise  # type: ignore[assignment]


class Liar(float):
    def __ne__(self, other: object) -> bool:
        raise ValueError("a secret")

    __hash__ = None  # type: ignore[assignment]


class WrongTypes:
    def __float__(self) -> Any:
        return "a secret"

    def __str__(self) -> Any:
        return 5

    def __hash__(self) -> Any:
        return "a secret"


GRID: list[Any] = [
    0, 1, 1.0, True, False, "1", "1.0", " 1 ", "a", "nan", "", np.str_("a"), np.str_("1"), b"1", b"a", np.int8(1), np.uint64(2**63), 2**63,
    float(2**63), 2**53, 2**53 + 1, np.float32(0.1), 0.1, np.float64(0.1), "0.1", np.float16(0.1), np.longdouble(1) / 10, np.longdouble("1e4000"),
    None, float("nan"), float("inf"), -0.0, 10**400, 10**5000, 1j, 1 + 0j, np.complex128(1), [1], (1, 2), {"a": 1}, {1}, np.array([1.0]),
    np.array(1.0), memoryview(b"1"), timedelta(1), np.timedelta64(1, "ns"), np.datetime64("2024-01-01"), pd.NA, pd.NaT, pd.Timestamp(1),
    decimal.Decimal("0.1"), decimal.Decimal("sNaN"), fractions.Fraction(1, 2), "\ud800", object(), Hostile(), Liar(1.0), WrongTypes(),
]  # fmt: skip
CLASSES: list[Any] = [
    np.array([0, 1]), np.array([False, True]), np.array([0.1, 1.0]), np.array([0.1, 1.0], dtype=np.float32), np.array(["a", "b"]),
    np.array(["0", "1"]), np.array(["1", "1.0"]), np.array([2**53, 2**53 + 1]), np.array([1, 2**63], dtype=np.uint64), np.array([1.0, np.nan]),
    np.array([b"1", b"a"]), np.array(["1", "a"], dtype=object), np.array([0, 1], dtype=np.int8), np.array(["nan", "x"]),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _every_warning_is_an_error() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", errors.NotPrivateWarning)
        yield


def place(classes: Any, labels: Any) -> list[int]:
    found, is_known = _cells.places(classes, labels)
    return [int(each) for each in np.where(is_known, found, -1)]


def test_the_place_of_a_label_is_its_own() -> None:
    for classes in CLASSES:
        alone = [place(classes, _rows.label_array([label]))[0] for label in GRID]
        assert place(classes, _rows.label_array(GRID)) == alone
        assert place(classes, _rows.label_array(GRID[::-1])) == alone[::-1]
        for one, other in itertools.permutations(range(len(GRID)), 2):
            assert place(classes, _rows.label_array([GRID[one], GRID[other]]))[0] == alone[one], (classes, GRID[one])


def test_a_search_of_arrays_finds_what_single_labels_find() -> None:
    plain = [cell for cell in GRID if isinstance(cell, (bool, int, float, str, bytes, np.generic)) and not isinstance(cell, Liar)]
    for classes, one, other in itertools.product(CLASSES, plain, plain):
        for made in (lambda cells: np.array(cells), lambda cells: np.array(cells[:1])):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    labels = made([one, other])
                except (OverflowError, TypeError, ValueError):
                    continue
            if labels.dtype.kind in "biufUSO":
                assert place(classes, labels) == [place(classes, _cells.objects([cell]))[0] for cell in labels], (classes, labels)


def test_the_classes_of_some_labels() -> None:
    assert place(np.array(["a", "1"]), _rows.label_array(deque(["a", 1, 2.5, "1.0"]))) == [0, 1, -1, 1]
    assert place(np.array(["a", "b"]), _rows.label_array(["a", 1, np.str_("b"), None, ["a"], "c"])) == [0, -1, 1, -1, 0, -1]
    assert place(np.array([0, 1]), _rows.label_array([1, 1.0, True, "1", "1.0", np.int8(1), b"1", 1.5, None, 1j])) == [1] * 6 + [-1] * 4
    assert place(np.array([0.1, 1.0]), _rows.label_array([0.1, np.float32(0.1)])) == [0, -1]
    assert place(np.array([1.0, np.nan]), _rows.label_array([None, np.nan, "nan", 1])) == [-1, -1, -1, 0]


@pytest.mark.parametrize(
    "made",
    [list, tuple, deque, _cells.objects, lambda cells: [[cell] for cell in cells], lambda cells: pd.Series(_cells.objects(cells), dtype=object), lambda cells: pd.DataFrame({"a": _cells.objects(cells)})],
    ids=["list", "tuple", "deque", "objects", "rows", "series", "frame"],
)
def test_the_number_of_a_cell_is_its_own(made: Callable[[Any], Any]) -> None:
    alone = [_cells.number(cell) for cell in GRID]
    cells = [1.5, 2.5, 3.5] * len(GRID)
    for order in (1, -1):
        read = np.asarray(_rows.coerced(made((GRID + cells)[::order]))).ravel()[::order]
        assert read.dtype == np.float64
        np.testing.assert_array_equal(read, alone + cells)
    for cell, number in zip(GRID, alone, strict=True):
        np.testing.assert_array_equal(np.asarray(_rows.coerced(made([cell, *cells]))).ravel()[0], number)


def test_the_numbers_of_some_cells() -> None:
    cells: list[Any] = [1, 2**63, 0.5, np.float32(0.1), True, "2", b"3", 10**400, 10**5000, 1j, [1], np.array([1.0]), timedelta(1), Hostile(), Liar(1.0)]
    nan = np.nan
    expected = [1.0, 2.0**63, 0.5, float(np.float32(0.1)), 1.0, 2.0, 3.0, *[nan] * 8]
    np.testing.assert_array_equal(_rows.coerced(cells), expected)
    # A declared type is a public fact.
    single = np.array([0.1, 1e-30], dtype=np.float32)
    assert _rows.coerced(single) is single
    assert _cells.floats(np.array([1, 2], dtype=np.int8)).dtype == np.float64
    np.testing.assert_array_equal(_cells.floats(np.array(["1", "x", "0.1"])), [1.0, nan, 0.1])
    assert np.isinf(_cells.floats(np.array(["1e4000", "1"], dtype=np.longdouble))[0])


def test_the_type_of_a_frame_changes_no_number() -> None:
    columns = {"a": np.array([0.1, 3.0], dtype=np.float32), "b": np.array([1, 2], dtype=np.int8), "c": np.array([2**53 + 1, 5])}
    expected = np.column_stack([column.astype(np.float64) for column in columns.values()])
    for frame in (pd.DataFrame(columns), pd.DataFrame(columns).astype(object), pl.DataFrame(columns), pa.table(columns)):
        np.testing.assert_array_equal(np.asarray(_rows.coerced(frame)), expected)


def test_a_column_of_objects_leaves_the_precision_of_the_others() -> None:
    wide = pd.DataFrame({"a": np.float32([0.1, 0.2]), "t": [1_700_000_001, 1_700_000_002]})
    odd = wide.assign(t=pd.Series([1_700_000_001, "x"], dtype=object))
    np.testing.assert_array_equal(_rows.coerced(odd)[0], _rows.coerced(wide)[0])
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abc"))
    odd = frame.assign(a=pd.Series(with_first(frame["a"], "q"), dtype=object))
    read = np.asarray(_rows.coerced(odd))
    np.testing.assert_array_equal(read[1:], frame.to_numpy()[1:])
    np.testing.assert_array_equal(read[0], [np.nan, *frame.to_numpy()[0, 1:]])
    assert np.asarray(_rows.coerced(frame.astype(object))).dtype == np.float64


def test_a_gap_leaves_the_precision_of_the_others() -> None:
    for kind, made in ((np.float32, pa.float32()), (np.float64, pa.float64())):
        for column in (pa.array([0.1, 0.2], type=made), pa.array([0.1, None], type=made), pa.chunked_array([[None, None]], type=made)):
            assert _tables.numbers_of(column).dtype == _tables.numbers_of(pl.from_arrow(column)).dtype == kind


def test_rows_of_any_length() -> None:
    nan = np.nan
    rows: list[Any] = [[1, 2], [3], [4, 5, 6], 7, [], None, "89", np.array([8.0, 9.0]), np.ones((2, 2)), Hostile(), {"a": 1}, (10, "11")]
    read = [[1, 2], [3, nan], [4, 5], [7, nan], [nan, nan], [nan, nan], [89, nan], [8, 9], [nan, nan], [nan, nan], [nan, nan], [10, 11]]
    np.testing.assert_array_equal(_cells.matrix_of(rows, 2), read)
    for row, values in zip(rows, read, strict=True):
        # Without a public width it is that of more than half of the rows.
        np.testing.assert_array_equal(_cells.matrix_of([row, [0, 0], [0, 0]], None), [values, [0, 0], [0, 0]])
    assert _cells.matrix_of([[1], [2, 3]], None) is None
    assert _cells.matrix_of([1, 2, [3]], None).shape == (3,)  # type: ignore[union-attr]
    with pytest.raises(errors.ShapeError, match="rows of one length") as refused:
        mean([[1], [2, 3]], radius=1.0, epsilon=1.0, delta=1e-6)
    assert refused.value.parameter == "X"


ODD: list[Any] = [1j, [1], np.array([1.0, 2.0]), memoryview(b"secret"), timedelta(1), {"secret": 1}, 10**5000, "secret", "\ud800", Hostile(), Liar(1.0), WrongTypes(), None]
ODD_ROWS: list[Any] = [[], [1.0], [1.0] * 9, None, "secret", 5, Hostile(), {"secret": 1}, np.ones((2, 2))]


def with_first(values: Any, first: Any) -> list[Any]:
    return [first, *list(values)[1:]]


def test_an_odd_cell_of_a_list_changes_its_own_row() -> None:
    rows = [list(map(float, row)) for row in X]
    public: dict[str, Any] = {"X_public": X[:200], "y_public": NUMBERS[:200]}
    budget: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "random_state": 1}
    plain = LinearRegression(**budget).fit(rows[200:], NUMBERS[200:], **public).coef_
    means = mean(rows[200:], X_public=X[:200], **budget).mean
    for first in [*([cell, 0.0, 0.0] for cell in ODD), *ODD_ROWS]:
        odd = with_first(rows[200:], first)
        assert np.linalg.norm(LinearRegression(**budget).fit(odd, NUMBERS[200:], **public).coef_ - plain) < 0.05
        assert np.linalg.norm(mean(odd, X_public=X[:200], **budget).mean - means) < 0.05
        assert len(randomize(odd, epsilon=1.0, radius=1.0, random_state=1)) == 1000
        LinearRegression(epsilon=8.0, delta=1e-6, clip_norm=1.0, learning_rate=0.1).fit(odd, NUMBERS[200:])


def test_an_odd_label_changes_its_own_row() -> None:
    budget: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "random_state": 1}
    for kind, labels in ((LinearRegression, NUMBERS), (LogisticRegression, CODES)):
        public: dict[str, Any] = {"X_public": X[:200], "y_public": labels[:200]}
        plain = kind(**budget).fit(X[200:], labels[200:], **public).coef_
        for odd in ODD:
            for made in (list, _cells.objects, lambda cells: pd.Series(_cells.objects(cells))):
                other = kind(**budget).fit(X[200:], made(with_first(labels[200:].tolist(), odd)), **public).coef_
                assert np.linalg.norm(other - plain) < 0.05 * np.linalg.norm(plain)


def test_text_that_is_no_text_is_missing() -> None:
    offsets, text = pa.py_buffer(np.array([0, 1, 7, 8], dtype=np.int32).tobytes()), pa.py_buffer(b"1secre\xff3")
    broken = pa.Array.from_buffers(pa.string(), 3, [None, offsets, text])
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], type=pa.int32()), broken)
    for column in (broken, pa.chunked_array([broken]), dictionary, pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([broken])))):
        np.testing.assert_array_equal(_tables.numbers_of(column), [1.0, np.nan, 3.0])
        codes, values = _tables.categories_of(column)
        assert codes.tolist() == [0, -1, 1] and values == ["1", "3"]
        assert _rows.label_array(column).tolist() == ["1", None, "3"]


def test_categories_are_read_one_by_one() -> None:
    column = pd.Series(_cells.objects(GRID), dtype=object)
    codes, values = _tables.categories_of(column)
    texts = [_cells.text(cell) for cell in GRID]
    assert [None if code < 0 else values[code] for code in codes] == texts
    assert _cells.text(1.0) == _cells.text(1) == _cells.text("1") == "1"
    assert _cells.text(10**5000) is None and _cells.text(Hostile()) is None and _cells.text(WrongTypes()) is None


def test_no_cell_is_in_an_error() -> None:
    """Strict checks refuse rows, and say no more than that."""
    for cell in ODD:
        odd = with_first([list(row) for row in X[200:]], [cell, 0.0, 0.0])
        objects = np.empty((1000, 3), dtype=object)
        objects[:] = X[200:]
        objects[0, 0] = cell
        for rows in (odd, objects):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = LinearRegression(epsilon=1.0, delta=1e-6, strict=True)
                try:
                    model.fit(rows, NUMBERS[200:], X_public=X[:200], y_public=NUMBERS[:200])
                except errors.SemidpError as refused:
                    assert "secret" not in "".join(traceback.format_exception(refused))
                else:
                    assert isinstance(cell, (Liar, list, np.ndarray))


def test_a_cell_cannot_word_the_error() -> None:
    class Worded:
        def __float__(self) -> float:
            raise ValueError("Found array with a secret")

    class Error(ValueError):
        def __str__(self) -> str:
            raise RuntimeError("a secret")

    class Raising:
        def __float__(self) -> float:
            raise Error

    objects = X[200:].astype(object)
    for cell in (Worded(), Raising()):
        objects[0, 0] = cell
        with warnings.catch_warnings(), pytest.raises(errors.SemidpError) as refused:
            warnings.simplefilter("ignore")
            LinearRegression(epsilon=1.0, delta=1e-6, strict=True).fit(objects, NUMBERS[200:], X_public=X[:200], y_public=NUMBERS[:200])
        assert "secret" not in "".join(traceback.format_exception(refused.value))


class Exits:
    """Raises whatever it is asked, in classes that most handlers let through."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def _raise(self, *_: Any) -> Any:
        raise self.kind("a secret")

    __float__ = __int__ = __index__ = __str__ = __repr__ = __eq__ = __ne__ = __hash__ = __len__ = __iter__ = __getitem__ = __array__ = __bool__ = _raise  # type: ignore[assignment]


class Cancelled(BaseException):
    pass


def raising(first: Any) -> list[tuple[Callable[[], Any], Any]]:
    """Calls with such a cell, row or label."""
    budget: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "random_state": 1}
    rows, public = [list(map(float, row)) for row in X[200:]], {"X_public": X[:200], "y_public": NUMBERS[:200]}
    objects = X[200:].astype(object)
    objects[0, 0] = first
    frame = pd.DataFrame({name: pd.Series(list(objects[:, place]), dtype=object) for place, name in enumerate("abc")})
    fitted = LinearRegression(**budget).fit(rows, NUMBERS[200:], **public)
    named = LinearRegression(**budget).fit(pd.DataFrame(rows, columns=list("abc")), NUMBERS[200:], **public)
    classes = LogisticRegression(**budget).fit(rows, CODES[200:], X_public=X[:200], y_public=CODES[:200])
    calls: list[Any] = []
    for odd in ([[first, 0.0, 0.0], *rows[1:]], [first, *rows[1:]], objects, frame):
        calls += [
            lambda odd=odd: LinearRegression(**budget).fit(odd, NUMBERS[200:], **public),
            lambda odd=odd: (named if odd is frame else fitted).predict(odd),
            lambda odd=odd: mean(odd, X_public=pd.DataFrame(X[:200], columns=list("abc")) if odd is frame else X[:200], **budget),
            lambda odd=odd: randomize(odd, epsilon=1.0, radius=1.0, random_state=1, columns=["a", "b", "c"] if odd is frame else None),
        ]
    for made in (list, _cells.objects, lambda cells: pd.Series(_cells.objects(cells))):
        calls += [
            lambda made=made: LinearRegression(**budget).fit(rows, made(with_first(NUMBERS[200:], first)), **public),
            lambda made=made: LogisticRegression(**budget).fit(rows, made(with_first(CODES[200:], first)), X_public=X[:200], y_public=CODES[:200]),
            lambda made=made: fitted.score(rows, made(with_first(NUMBERS[200:], first))),
            lambda made=made: classes.score(rows, made(with_first(CODES[200:], first))),
        ]
    return calls


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, Cancelled, MemoryError, RecursionError, StopIteration])
def test_a_cell_cannot_end_the_process(kind: type[BaseException]) -> None:
    warnings.simplefilter("ignore", errors.PrivateScoreWarning)
    for call in raising(Exits(kind)):
        call()


def test_a_cell_that_interrupts_is_not_quoted() -> None:
    """Ctrl-C comes as an exception inside whatever runs, so that it cannot be told from that of a cell."""
    warnings.simplefilter("ignore", errors.PrivateScoreWarning)
    for call in raising(Exits(KeyboardInterrupt)):
        try:
            call()
        except KeyboardInterrupt as stopped:
            assert "secret" not in "".join(traceback.format_exception(stopped)) and not stopped.args
    with pytest.raises(KeyboardInterrupt):
        mean([Exits(KeyboardInterrupt), 1.0, 2.0], radius=1.0, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, KeyboardInterrupt])
def test_a_strict_check_quotes_no_exit(kind: type[BaseException]) -> None:
    objects = X[200:].astype(object)
    objects[0, 0] = Exits(kind)
    with warnings.catch_warnings(), pytest.raises((errors.SemidpError, KeyboardInterrupt)) as refused:
        warnings.simplefilter("ignore")
        LinearRegression(epsilon=1.0, delta=1e-6, strict=True).fit(objects, NUMBERS[200:], X_public=X[:200], y_public=NUMBERS[:200])
    assert "secret" not in "".join(traceback.format_exception(refused.value))
