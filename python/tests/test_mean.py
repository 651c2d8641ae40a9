"""Means of arrays and data frames: the same as of files, and never a private value where it does not belong."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from semidp import _native
from semidp._ask import Certificate
from semidp._mean import MeanAnswer, mean
from semidp.accounting import Accountant, verify
from semidp.errors import (
    BudgetRefusedError,
    InvalidParameterError,
    LedgerError,
    MalformedSchemaError,
    MissingColumnsError,
    NotPrivateWarning,
    SemidpError,
    SemidpWarning,
    ShapeError,
    StrictError,
    TooFewPublicRowsError,
    UnsuitableError,
    UnsupportedTypeError,
)
from semidp.local import randomize

RANDOM = np.random.default_rng(1)
X = RANDOM.normal([5.0, -2.0, 0.5], [1.0, 3.0, 0.1], size=(3000, 3))
PUBLIC = RANDOM.normal([5.0, -2.0, 0.5], [1.0, 3.0, 0.1], size=(150, 3))
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}

#: Most tests draw from a seed, which every answer warns of; one of them makes sure that it does.
pytestmark = pytest.mark.filterwarnings("ignore::semidp.errors.NotPrivateWarning")


def seeded(private: Any, public: Any, **options: Any) -> MeanAnswer:
    return mean(private, X_public=public, random_state=11, **{**BUDGET, **options})


def test_the_mean_is_where_it_should_be() -> None:
    # By chance too many clipped rows are found in at most one of 70 releases, and there is no interval.
    answers = (mean(X, X_public=PUBLIC, **BUDGET) for _ in range(6))
    answer = next(one for one in answers if one["status"] == [None] * 3)
    interval = answer.confidence_interval
    assert interval is not None
    assert isinstance(answer.mean, np.ndarray)
    assert answer.mean.shape == (3,)
    assert interval.shape == (3, 2)
    assert np.all((interval[:, 0] < answer.mean) & (answer.mean < interval[:, 1]))
    # The noise is the operating system's: a bound that no draw misses in practice.
    assert np.all(np.abs(answer.mean - X.mean(axis=0)) < 10 * np.array(answer["standard_error"]))
    assert answer["mean"] == answer.mean.tolist()
    assert isinstance(answer.certificate, Certificate)
    assert answer.certificate.epsilon <= 1
    assert answer.certificate["random_source"] == "operating-system"
    assert answer["columns"] == ["x0", "x1", "x2"]


def test_noise_is_fresh() -> None:
    first, second = (mean(X, X_public=PUBLIC, **BUDGET) for _ in range(2))
    assert np.all(first.mean != second.mean)


def test_a_seed_is_not_private() -> None:
    with pytest.warns(NotPrivateWarning, match="random_state") as warned:
        answer = mean(X, X_public=PUBLIC, random_state=3, **BUDGET)
    assert warned[0].filename == __file__
    assert answer.certificate["random_source"] == "seeded"
    assert seeded(X, PUBLIC) == seeded(X, PUBLIC)
    assert seeded(X, PUBLIC) == mean(X, X_public=PUBLIC, random_state=np.int64(11), threads=1, **BUDGET)


@pytest.mark.parametrize(
    ("kind", "options", "line"),
    [
        (np.float64, {}, []),
        (np.float32, {}, []),
        (
            np.float64,
            {"columns": ["x0", "x2"], "confidence": 0.9, "idealised": True, "strict": True},
            ["--columns", "x0,x2", "--confidence", "0.9", "--idealised", "--strict"],
        ),
        (
            np.float64,
            {"radius": 12.5, "std": 3.5, "estimator": "weighted-gaussian", "private_weight": 1e-4, "target": "empirical"},
            "--radius 12.5 --std 3.5 --estimator weighted-gaussian --private-weight 1e-4 --target empirical".split(),
        ),
        (np.float64, {"centre": "origin", "scale": "none", "radius": 20}, "--centre origin --scale none --radius 20".split()),
    ],
)
def test_bit_for_bit_the_same_as_the_command_line(tmp_path: Path, kind: type, options: dict[str, Any], line: list[str]) -> None:
    np.save(tmp_path / "private.npy", X.astype(kind))
    np.save(tmp_path / "public.npy", PUBLIC.astype(kind))
    files = ["--private", str(tmp_path / "private.npy"), "--public", str(tmp_path / "public.npy")]
    words = ["mean", *files, "--epsilon", "1", "--delta", "1e-6", "--seed", "11", "--json", *line]
    printed = subprocess.run([sys.executable, "-m", "semidp", *words], capture_output=True, text=True, check=True).stdout
    assert seeded(X.astype(kind), PUBLIC.astype(kind), **options) == json.loads(printed)


def test_the_layout_of_an_array_does_not_matter() -> None:
    expected = seeded(X, PUBLIC)
    wide = np.zeros((3000, 7))
    wide[:, 1::2] = X
    for same in (np.asfortranarray(X), wide[:, 1::2], X[::-1][::-1], X.astype(">f8"), X.tolist(), X.astype(object)):
        assert seeded(same, PUBLIC) == expected


def test_one_dimension_is_one_column() -> None:
    expected = seeded(X[:, :1], PUBLIC[:, :1])
    assert seeded(X[:, 0], PUBLIC[:, 0]) == expected
    assert seeded(X[:, 0].tolist(), PUBLIC[:, :1]) == expected
    assert expected.mean.shape == (1,)


def test_whole_numbers_and_truth_values_are_numbers() -> None:
    whole = np.column_stack([RANDOM.integers(0, 9, 500), RANDOM.integers(0, 2, 500)])
    expected = seeded(whole[50:].astype(float), whole[:50].astype(float))
    assert seeded(whole[50:], whole[:50].astype(np.uint8)) == expected
    truths = whole[:, 1].astype(bool)
    assert seeded(truths[50:], truths[:50]) == seeded(whole[50:, 1], whole[:50, 1])


NAMES = ["age", "balance", "share"]


def frames(rows: Any) -> list[Any]:
    frame = pd.DataFrame(rows, columns=NAMES)
    return [frame, pl.from_numpy(rows, schema=NAMES), pa.table({name: rows[:, at] for at, name in enumerate(NAMES)})]


def test_data_frames_of_every_library() -> None:
    expected = seeded(*(frames(rows)[0] for rows in (X, PUBLIC)))
    assert expected["columns"] == NAMES
    assert expected["mean"] == seeded(X, PUBLIC)["mean"]
    for private in frames(X):
        for public in frames(PUBLIC):
            assert seeded(private, public) == expected
    # An array has the names of the data frame beside it.
    assert seeded(X, frames(PUBLIC)[0]) == expected
    assert seeded(frames(X)[1], PUBLIC) == expected


def test_data_frames_are_matched_by_name() -> None:
    private, public = frames(X)[0], frames(PUBLIC)[0]
    moved = private[["share", "age", "balance"]].assign(other=1.0)
    assert seeded(moved, public) == seeded(private, public)
    chosen = seeded(private, public, columns=["share"])
    assert chosen["columns"] == ["share"]
    assert chosen.mean == pytest.approx(0.5, abs=0.05)


def test_series_are_columns() -> None:
    private, public = (frames(rows)[0]["age"] for rows in (X, PUBLIC))
    assert seeded(private, public) == seeded(private.to_frame(), public.to_frame())
    assert seeded(private.rename(None), PUBLIC[:, 0])["columns"] == ["x0"]


def test_columns_of_text_become_shares() -> None:
    letters = RANDOM.choice(["a", "b"], p=[0.7, 0.3], size=4000)
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        private, public = make({"letter": letters[100:]}), make({"letter": letters[:100]})
        answer = seeded(private, public, columns=["letter"])
        shares = dict(zip(answer["columns"], answer.mean, strict=True))
        assert shares["letter=a"] == pytest.approx(0.7, abs=0.1)
    # They are left out unless they are named.
    both = pd.DataFrame({"letter": letters, "number": np.arange(4000.0)})
    assert seeded(both[100:], both[:100])["columns"] == ["number"]


def test_missing_cells_are_imputed_by_what_is_public() -> None:
    holes = X.copy()
    holes[::2, 1] = np.nan
    filled = np.where(np.isnan(holes), PUBLIC.mean(axis=0), holes)
    paper = {"estimator": "weighted-gaussian"}
    assert seeded(holes, PUBLIC, **paper).mean == pytest.approx(seeded(filled, PUBLIC, **paper).mean, rel=1e-6)
    nullable = pd.DataFrame({"age": pd.array([1, None, 3] * 100, dtype="Int64")})
    public = pd.DataFrame({"age": [1.0, 2.0, 3.0] * 10})
    assert seeded(nullable, public).mean == pytest.approx(2, abs=0.3)
    assert seeded(pl.DataFrame({"age": [1, None, 3] * 100}), public) == seeded(nullable, public)


def test_missing_cells_are_counted() -> None:
    holes = X.copy()
    holes[:, 1] = np.where(holes[:, 1] > 0, np.nan, holes[:, 1])
    with pytest.warns(SemidpWarning, match="private cells of column x1 are missing"):
        answer = seeded(holes, PUBLIC)
    cells = answer["unreadable_cells"]
    assert abs(cells[1]["estimate"] - np.isnan(holes).sum()) < 10 * cells[1]["standard_error"]
    assert [column["significant"] for column in cells] == [False, True, False]
    interval = answer.confidence_interval
    assert interval is not None
    assert interval[1, 0] - 0.5 < np.nanmean(holes[:, 1]) < interval[1, 1] + 0.5


def test_a_shift_is_reported_and_assumed_away_only_by_name() -> None:
    shifted = PUBLIC + X.std(axis=0)
    with pytest.warns(SemidpWarning, match="differ by more than chance in x0, x1, x2"):
        answer = seeded(X, shifted)
    interval = answer.confidence_interval
    assert interval is not None
    assert np.all((interval[:, 0] < X.mean(axis=0)) & (X.mean(axis=0) < interval[:, 1]))
    same = "public and private rows come from the same population"
    assert same not in answer.certificate["assumptions"]
    with pytest.warns(SemidpWarning, match="leave out assume"):
        pooled = seeded(X, shifted, assume="same-population")
    assert same in pooled.certificate["assumptions"]
    with pytest.raises(InvalidParameterError) as refused:
        mean(X, X_public=PUBLIC, assume="anything", **BUDGET)
    assert refused.value.parameter == "assume"


def test_dropped_columns_are_named() -> None:
    frame = pd.DataFrame({"letter": ["a", "b"] * 500, "number": np.arange(1000.0)})
    with pytest.warns(SemidpWarning, match="left out: letter"):
        answer = mean(frame[100:], X_public=frame[:100], **BUDGET)
    assert "letter" in answer["notes"][0]


def test_public_rows_alone() -> None:
    answer = mean(X_public=PUBLIC, **BUDGET)
    assert answer.mean == pytest.approx(PUBLIC.mean(axis=0), rel=1e-6)
    assert answer.certificate.epsilon == 0
    assert answer.estimator == "throw-away"


def test_private_rows_alone() -> None:
    answer = mean(X, radius=12, epsilon=1.0)
    assert answer.confidence_interval is None
    assert answer.mean == pytest.approx(X.mean(axis=0), abs=0.5)
    with_text = pd.DataFrame({"a": X[:, 0], "text": "t"})
    assert mean(with_text, columns=["a"], radius=12, epsilon=1.0)["columns"] == ["a"]
    with pytest.raises(InvalidParameterError) as refused:
        mean(with_text, radius=12, epsilon=1.0)
    assert refused.value.parameter == "columns"
    with pytest.raises(InvalidParameterError, match="public rows") as refused:
        mean(X, epsilon=1.0)
    assert refused.value.parameter == "radius"


def test_a_schema_as_a_dictionary_or_a_file(tmp_path: Path) -> None:
    columns = [{"name": "x0", "kind": "number", "impute": 4.0, "range": [0, 5]}]
    schema = {"format": "semidp-schema/1", "columns": columns}
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema))
    clipped = seeded(X, None, schema=schema, radius=12)
    assert clipped["columns"] == ["x0"]
    assert clipped.mean[0] == pytest.approx(np.minimum(X[:, 0], 5).mean(), abs=0.2)
    assert seeded(X, None, schema=path, radius=12) == clipped
    with pytest.raises(MalformedSchemaError):
        seeded(X, PUBLIC, schema={"format": "another"})


def test_places_of_columns() -> None:
    assert seeded(X, PUBLIC, columns=[0, 2]) == seeded(X, PUBLIC, columns=["x0", "x2"])


def test_answers_can_be_kept(tmp_path: Path) -> None:
    answer = seeded(X, PUBLIC)
    again = pickle.loads(pickle.dumps(answer))
    assert again == answer
    assert np.array_equal(again.mean, answer.mean)
    answer.save(tmp_path / "answer.json")
    with pytest.warns(NotPrivateWarning):
        assert verify(tmp_path / "answer.json", allow_seeded=True).valid
    assert Accountant().compose(answer).epsilon(1e-6) <= 1


def test_a_ledger_is_debited(tmp_path: Path) -> None:
    ledger = str(tmp_path / "budget.ledger")
    _native.ask(["ledger", "init", "--ledger", ledger, "--dataset", "rows", "--epsilon", "1.5", "--delta", "1e-5"])
    mean(X, X_public=PUBLIC, ledger=ledger, dataset="rows", **BUDGET)
    with pytest.raises(BudgetRefusedError):
        mean(X, X_public=PUBLIC, ledger=ledger, dataset="rows", **BUDGET)
    with pytest.raises(LedgerError):
        mean(X, X_public=PUBLIC, ledger=ledger, dataset="others", **BUDGET)
    with pytest.raises(InvalidParameterError) as refused:
        mean(X, X_public=PUBLIC, ledger=ledger, **BUDGET)
    assert refused.value.parameter == "dataset"


@pytest.mark.parametrize(
    ("options", "kind", "parameter"),
    [
        ({"X_public": PUBLIC[:, :2]}, ShapeError, "X_public"),
        ({"X_public": PUBLIC[None]}, ShapeError, "X_public"),
        ({"X": 5.0}, ShapeError, "X"),
        ({"X": scipy.sparse.csr_matrix(X)}, UnsupportedTypeError, "X"),
        ({"X_public": scipy.sparse.csr_array(PUBLIC)}, UnsupportedTypeError, "X_public"),
        ({"X": X + 1j}, UnsupportedTypeError, "X"),
        ({"epsilon": None}, InvalidParameterError, "epsilon"),
        ({"epsilon": -1}, InvalidParameterError, "epsilon"),
        ({"rho": 1}, InvalidParameterError, "epsilon"),
        ({"delta": 2}, InvalidParameterError, "delta"),
        ({"radius": -1}, InvalidParameterError, "radius"),
        ({"std": 0}, InvalidParameterError, "std"),
        ({"centre": "mean"}, InvalidParameterError, "centre"),
        ({"scale": "private"}, InvalidParameterError, "scale"),
        ({"target": "sample"}, InvalidParameterError, "target"),
        ({"private_weight": 2}, InvalidParameterError, "private_weight"),
        ({"confidence": 1}, InvalidParameterError, "confidence"),
        ({"threads": 0}, InvalidParameterError, "threads"),
        ({"random_state": -1}, InvalidParameterError, "random_state"),
        ({"random_state": "today"}, InvalidParameterError, "random_state"),
        ({"columns": ["a,b"]}, InvalidParameterError, "columns"),
        ({"columns": ["none"]}, MissingColumnsError, None),
        ({"estimator": "median"}, UnsuitableError, None),
        ({"X_public": PUBLIC[:5]}, TooFewPublicRowsError, None),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, Any], kind: type[SemidpError], parameter: str | None) -> None:
    with pytest.raises(kind) as refused:
        mean(**{"X": X, "X_public": PUBLIC, **BUDGET, **options})
    assert refused.value.parameter == parameter
    assert "--" not in str(refused.value).replace("`semidp schema --public FILE`", "")


def test_no_private_value_is_told() -> None:
    secret, hidden = "Rumpelstiltskin", 61803.39887
    rows = X.copy()
    rows[7, 1] = hidden
    holes = rows.copy()
    holes[8, 2] = np.nan
    texts = rows.astype(object)
    texts[9, 0] = secret
    frame = pd.DataFrame({"x0": [secret] * 20, "x1": 1.0, "x2": 2.0})
    mixed = pd.DataFrame(texts, columns=["x0", "x1", "x2"])
    names = ["x0", "x1", "x2"]
    attempts: list[tuple[Any, dict[str, Any]]] = [
        (texts, {}),
        (texts.astype(str), {}),
        ([secret], {}),
        ([[hidden, secret, 0.0]], {}),
        (holes, {"strict": True}),
        (rows[:, :2], {}),
        (frame, {"columns": names}),
        (frame, {"columns": names, "strict": True}),
        (mixed, {"columns": names, "strict": True}),
        (rows, {"epsilon": -1}),
    ]
    public = pd.DataFrame(PUBLIC, columns=names)
    refusals = 0
    for private, options in attempts:
        try:
            mean(private, X_public=public, **{**BUDGET, **options})
        except SemidpError as error:
            refusals += 1
            # Neither in the message nor in what a log would print of it, what came before it included.
            error.__suppress_context__ = False
            told = "".join(traceback.format_exception(error)) + repr(error.args) + str(error.hint)
            assert secret not in told
            assert str(hidden)[:5] not in told
    assert refusals >= 6
    with pytest.raises(StrictError, match="x2"):
        mean(holes, X_public=PUBLIC, strict=True, **BUDGET)


@pytest.mark.parametrize("none", [[], ()])
def test_no_columns_at_all_are_refused(none: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    for call in (
        lambda: mean(rows[100:], X_public=rows[:100], columns=none, epsilon=1.0, delta=1e-6),
        lambda: mean(rows[100:], radius=1.0, columns=none, epsilon=1.0, delta=1e-6),
        lambda: randomize(rows, columns=none, epsilon=1.0, radius=1.0),
        lambda: mean(rows.tolist(), radius=1.0, columns=none, epsilon=1.0, delta=1e-6),
    ):
        with pytest.raises(InvalidParameterError, match="columns must name at least one column") as refused:
            call()
        assert refused.value.parameter == "columns"
