"""Public rows that are the private ones are refused, by where they lie and never by what they say."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pytest

import semidp
from semidp import _memory
from semidp.errors import InvalidParameterError, SemidpWarning
from semidp.local import aggregate, randomize

pd = pytest.importorskip("pandas")

ROWS = np.arange(600.0).reshape(200, 3) % 17
WHOLE = ROWS.astype(np.int64)
FRAME = pd.DataFrame({"a": np.arange(200) % 7, "b": np.arange(200.0) % 5})


@pytest.mark.parametrize(
    ("private", "public"),
    [
        (ROWS, ROWS),
        (ROWS, ROWS[:50]),
        (ROWS[:, ::-1], ROWS),
        (ROWS[100:], ROWS[:101]),
        (WHOLE, WHOLE),
        (WHOLE, WHOLE[10:60]),
        (FRAME, FRAME),
        (FRAME, FRAME.iloc[:50]),
        (FRAME, FRAME[["b", "a"]].iloc[:0:-1]),
    ],
)
def test_rows_that_share_memory_are_refused(private: Any, public: Any) -> None:
    if private is FRAME and public is not FRAME and not any(
        np.shares_memory(private[name].values, public[name].values) for name in ("a", "b")
    ):
        pytest.skip("this pandas copies here: nothing is shared")
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(InvalidParameterError, match="X_public"):
        semidp.mean(private, X_public=public, **budget)
    with pytest.raises(InvalidParameterError, match="X_public"):
        randomize(private, X_public=public, epsilon=1.0)
    labels = np.arange(len(private)) % 3 * 1.0
    with pytest.raises(InvalidParameterError, match="X_public"):
        semidp.LinearRegression(**budget).fit(private, labels, X_public=public, y_public=labels[: len(public)])


@pytest.mark.parametrize(
    ("private", "public"),
    [(ROWS[100:], ROWS[:100]), (ROWS[::2], ROWS[1::2]), (ROWS, ROWS.copy()), (FRAME.iloc[50:], FRAME.iloc[:50])],
)
def test_rows_of_their_own_are_taken_whatever_they_hold(private: Any, public: Any) -> None:
    answer = semidp.mean(private, X_public=public, epsilon=1.0, delta=1e-6)
    assert answer["n_private"] == len(private)


def test_invalid_reports_are_left_out_and_counted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SemidpWarning)
        reports = randomize(ROWS / 40.0, epsilon=2.0, mechanism="duchi", radius=1.0, random_state=1)
    lines = ["{garbage", *reports, reports[0]]
    known: dict[str, Any] = {"round": "1", "mechanism": "duchi", "dimension": 3, "epsilon": 2.0, "radius": 1.0}
    answer = aggregate(lines, skip_invalid=True, **known)
    assert answer["skipped_reports"] == 2
    assert np.array_equal(answer.mean, aggregate(list(reports)).mean)
    with pytest.raises(InvalidParameterError, match="must be given with skip_invalid"):
        aggregate(lines, skip_invalid=True)


pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

NUMBERS = {"a": np.arange(200.0) % 7, "b": np.arange(200.0) % 5}
POLARS, ARROW = pl.DataFrame(NUMBERS), pa.table(NUMBERS)
MASKED = pd.DataFrame(NUMBERS).astype("Float64")
WHOLE_MASKED = pd.DataFrame(WHOLE[:, :2], columns=["a", "b"]).astype("Int64")
BACKED = pd.DataFrame(NUMBERS).astype("double[pyarrow]")
TEXT = ["u", "v", "a text longer than twelve bytes", "w"] * 50
LISTS = ROWS.tolist()
CODES = pd.DataFrame(WHOLE, columns=["a", "b", "c"], copy=False)


def texts(kind: Any) -> Any:
    return pd.DataFrame({"a": pd.Series(TEXT, dtype=kind)})


def mapped(path: Any) -> Any:
    np.save(path, ROWS)
    return np.load(path, mmap_mode="r")


SHARED: dict[str, tuple[Any, Any]] = {
    "whole numbers of a frame and its array": (CODES, WHOLE),
    "an array and the frame around it": (WHOLE, CODES),
    "another name": (FRAME, FRAME.rename(columns={"a": "x", "b": "y"}).copy(deep=False)),
    "masked floats, shallow": (MASKED, MASKED.copy(deep=False)),
    "masked floats, view": (MASKED, MASKED.iloc[:50]),
    "masked integers, view": (WHOLE_MASKED, WHOLE_MASKED.iloc[10:60]),
    "pandas on Arrow, shallow": (BACKED, BACKED.copy(deep=False)),
    "pandas on Arrow, view": (BACKED, BACKED.iloc[3:]),
    "polars clone": (POLARS, POLARS.clone()),
    "polars slice": (POLARS, POLARS[5:]),
    "polars select": (POLARS, POLARS.select(["b", "a"])),
    "polars in two pieces": (POLARS, pl.concat([POLARS[:20], POLARS[100:]], rechunk=False)),
    "polars and its Arrow": (POLARS, POLARS.to_arrow()),
    "Arrow slice": (ARROW, ARROW.slice(5)),
    "Arrow select": (ARROW, ARROW.select(["a", "b"])),
    "Arrow and its pandas": (ARROW, ARROW.to_pandas(split_blocks=True)),
    "Arrow batch": (ARROW, ARROW.to_batches()[0]),
    "two series": (pd.Series(ROWS[:, 0], copy=False), pd.Series(ROWS[:, 0], copy=False)),
    "a list of the same rows": (LISTS, LISTS[:]),
    "a tuple of the same rows": (LISTS, tuple(LISTS)),
    "a list of views": (list(ROWS), ROWS),
    "two lists of views": (list(ROWS), list(ROWS[100:])),
    "a view of memory": (memoryview(ROWS), ROWS),
}


@pytest.mark.parametrize("name", SHARED)
def test_shared_memory_is_found_in_every_container(name: str) -> None:
    private, public = SHARED[name]
    for one, other in ((private, public), (public, private)):
        with pytest.raises(InvalidParameterError, match="share memory"):
            _memory.refuse_shared(one, other)
    with pytest.raises(InvalidParameterError, match="share memory"):
        semidp.mean(private, X_public=public, epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidParameterError, match="share memory"):
        randomize(private, X_public=public, epsilon=1.0)
    count = len(private)
    labels = np.arange(count) % 3 * 1.0
    public_count = public.num_rows if hasattr(public, "num_rows") else len(public)
    with pytest.raises(InvalidParameterError, match="share memory"):
        semidp.LinearRegression(epsilon=1.0, delta=1e-6).fit(private, labels, X_public=public, y_public=labels[:public_count])


@pytest.mark.parametrize("kind", ["string[python]", "string[pyarrow]", "category", object])
def test_shared_columns_of_text_are_found(kind: Any) -> None:
    frame = texts(kind)
    for public in (frame.copy(deep=False), frame.iloc[:50]):
        with pytest.raises(InvalidParameterError, match="share memory"):
            semidp.mean(frame, X_public=public, epsilon=1.0, delta=1e-6, columns=["a"])
    _memory.refuse_shared(frame.iloc[50:], frame.iloc[:50])
    _memory.refuse_shared(texts(kind), texts(kind))


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Boolean, pl.Decimal(10, 2)])
def test_shared_columns_of_polars_are_found(kind: Any) -> None:
    def made() -> Any:
        return pl.DataFrame({"a": [True, False] * 100 if kind == pl.Boolean else [1, 2] * 100 if kind == pl.Decimal(10, 2) else TEXT}).cast(kind)

    frame = made()
    for public in (frame.clone(), frame[:50]):
        with pytest.raises(InvalidParameterError, match="share memory"):
            _memory.refuse_shared(frame, public)
    _memory.refuse_shared(frame[51:], frame[:51])
    _memory.refuse_shared(frame, made())
    # polars has one buffer for all columns that hold nothing but `False`.
    _memory.refuse_shared(pl.DataFrame({"a": pl.repeat(False, 50, eager=True)}), pl.DataFrame({"a": pl.repeat(False, 60, eager=True)}))


def test_a_file_that_is_mapped_twice_is_found(tmp_path: Any) -> None:
    one, other = mapped(tmp_path / "rows.npy"), np.load(tmp_path / "rows.npy", mmap_mode="r")
    (tmp_path / "link.npy").symlink_to(tmp_path / "rows.npy")
    linked = np.load(tmp_path / "link.npy", mmap_mode="r")
    assert not np.shares_memory(one, other)
    for public in (other, other[50:], np.asarray(other)[:, ::-1], linked, list(other[50:])):
        with pytest.raises(InvalidParameterError, match="share memory"):
            semidp.mean(one, X_public=public, epsilon=1.0, delta=1e-6)
        with pytest.raises(InvalidParameterError, match="share memory"):
            _memory.refuse_shared(public, one)
    for private, public in ((one[100:], other[:100]), (one[::2], other[1::2]), (one, mapped(tmp_path / "another.npy"))):
        _memory.refuse_shared(private, public)


@pytest.mark.parametrize(
    ("private", "public"),
    [
        (CODES.iloc[100:], CODES.iloc[:100]),
        (CODES.iloc[100:], WHOLE[:100]),
        (CODES.iloc[::2], WHOLE[1::2]),
        (np.asfortranarray(ROWS)[100:], np.asfortranarray(ROWS)[:100]),
        (MASKED.iloc[50:], MASKED.iloc[:50]),
        (BACKED.iloc[50:], BACKED.iloc[:50]),
        (POLARS[51:], POLARS[:51]),
        (POLARS[51:], POLARS[:51].to_arrow()),
        (ARROW.slice(51), ARROW.slice(0, 51)),
        (LISTS[100:], LISTS[:100]),
        (list(ROWS)[100:], list(ROWS)[:100]),
        (list(ROWS)[100:], ROWS[:100]),
        ([1.0, 2.0, None], [1.0, 2.0, None]),
        ([(1.0, 2.0)], [(1.0, 2.0)]),
        ([np.ma.masked, 1.0], [np.ma.masked, 1.0]),
        (FRAME[["a"]], FRAME[["b"]]),
        (ROWS[:0], ROWS[:0]),
        (pd.DataFrame(ROWS), pd.DataFrame(ROWS.copy())),
        (POLARS, pl.DataFrame({name: values.copy() for name, values in NUMBERS.items()})),
    ],
)
def test_parts_that_do_not_overlap_are_taken(private: Any, public: Any) -> None:
    _memory.refuse_shared(private, public)
    _memory.refuse_shared(public, private)


def test_columns_by_the_thousand_are_compared_in_no_time() -> None:
    block = np.zeros((200, 2000))
    started = time.perf_counter()
    _memory.refuse_shared(pd.DataFrame(block[100:], copy=False), pd.DataFrame(block[:100], copy=False))
    apart = [pd.concat([pd.DataFrame({str(place): np.zeros(100 + place % 7)[:100]}) for place in range(1000)], axis=1) for _ in range(2)]
    _memory.refuse_shared(*apart)
    assert time.perf_counter() - started < 10


def test_no_cell_is_asked_anything() -> None:
    class Hostile(list):  # type: ignore[type-arg]
        def _raise(self, *_: Any) -> Any:
            raise SystemExit("a secret")

        __eq__ = __len__ = __iter__ = __hash__ = __getitem__ = __array__ = __bool__ = __getattr__ = _raise  # type: ignore[assignment]

    hostile = Hostile()
    _memory.refuse_shared([hostile, [1.0]], [[1.0], Hostile()])
    with pytest.raises(InvalidParameterError, match="share memory"):
        _memory.refuse_shared([hostile, [1.0]], [[1.0], hostile])
