"""Reports, the client's memory, and the server's sums."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from semidp.errors import (
    BudgetRefusedError,
    InvalidParameterError,
    NotPrivateWarning,
    SemidpError,
    SemidpWarning,
    ShapeError,
    UnsupportedTypeError,
)
from semidp.local import Reports, aggregate, randomize

RANDOM = np.random.default_rng(2)
PEOPLE = RANDOM.uniform(0.1, 0.5, size=(400, 2))
PUBLIC = RANDOM.uniform(0.1, 0.5, size=(60, 2))


def seeded(rows: Any, **options: Any) -> Reports:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return randomize(rows, random_state=5, **{"epsilon": 4.0, "radius": 1.0, **options})


def test_one_report_a_row(tmp_path: Path) -> None:
    reports = randomize(PEOPLE, radius=1.0, epsilon=2.0, mechanism="duchi", round="spring", memory=tmp_path / "memory")
    assert len(reports) == 400
    assert len(set(reports)) == 400
    report = json.loads(reports[0])
    assert (report["round"], report["epsilon"], report["mechanism"]) == ("spring", 2.0, "duchi")
    assert reports.certificate.epsilon == 2.0
    assert reports.certificate["guarantee"]["trust"] == "local"
    assert reports.certificate["random_source"] == "operating-system"
    assert reports.certificate.verify().valid
    assert "out" not in reports.answer


def test_the_memory_gives_the_same_reports_again(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    first = randomize(PEOPLE, radius=1.0, epsilon=2.0, memory=memory)
    again = randomize(PEOPLE, radius=1.0, epsilon=2.0, memory=str(memory))
    assert again == first
    assert (first.answer.charged_epsilon, again.answer.charged_epsilon) == (2.0, 0.0)
    with pytest.raises(BudgetRefusedError, match="another epsilon"):
        randomize(PEOPLE, radius=1.0, epsilon=3.0, memory=memory)
    asked_again = randomize(PEOPLE, radius=1.0, epsilon=2.0, memory=memory, again=True)
    assert asked_again != first
    assert asked_again.certificate.epsilon == 4.0
    next_round = randomize(PEOPLE, radius=1.0, epsilon=1.0, memory=memory, round="2")
    assert next_round.answer.total_epsilon == 5.0


def test_without_a_memory_every_call_is_a_fresh_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.warns(SemidpWarning, match="memory") as warned:
        first, second = (randomize(PEOPLE, radius=1.0, epsilon=2.0) for _ in range(2))
    assert warned[0].filename == __file__
    assert first != second
    assert os.listdir(tmp_path) == []
    assert "memory" not in first.answer
    with pytest.raises(InvalidParameterError) as refused:
        randomize(PEOPLE, radius=1.0, epsilon=2.0, again=True)
    assert refused.value.parameter == "memory"


def test_a_seed_is_not_private() -> None:
    with pytest.warns(NotPrivateWarning, match="random_state"):
        reports = randomize(PEOPLE, radius=1.0, epsilon=2.0, random_state=1)
    assert reports.certificate["random_source"] == "seeded"
    assert seeded(PEOPLE) == seeded(PEOPLE, threads=1)


def test_the_same_as_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", PEOPLE)
    np.save(tmp_path / "public.npy", PUBLIC)
    (tmp_path / "centre.json").write_text("[0.25, 0.3]")
    common = ["--centre", str(tmp_path / "centre.json"), "--json"]
    out = tmp_path / "reports.jsonl"
    client = ["--data", str(tmp_path / "data.npy"), "--epsilon", "4", "--radius", "0.5", "--seed", "5", "--out", str(out), *common]
    server = ["--reports", str(out), "--public", str(tmp_path / "public.npy"), "--estimator", "semi-ldp-uniform", *common]
    for words in (["randomize", *client], ["aggregate", *server]):
        line = [sys.executable, "-m", "semidp", "local", *words]
        printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    reports = seeded(PEOPLE, radius=0.5, centre=np.array([0.25, 0.3]))
    assert reports == out.read_text().splitlines()
    answer = aggregate(reports, X_public=PUBLIC, centre=[0.25, 0.3], estimator="semi-ldp-uniform")
    assert answer == json.loads(printed)


def test_the_mean_is_where_it_should_be() -> None:
    rows = np.tile(PEOPLE, (20, 1))
    answer = aggregate(seeded(rows), X_public=PUBLIC, expect_reports=len(rows))
    assert isinstance(answer.mean, np.ndarray)
    assert answer.estimator == "semi-ldp-weighted"
    assert np.linalg.norm(answer.mean - rows.mean(axis=0)) < 5 * answer.predicted_mse**0.5
    assert answer.certificate.epsilon == 4.0
    assert answer.influence > 0
    alone = aggregate(seeded(rows), std=0.2)
    assert alone.estimator == "ldp"
    assert alone.confidence_interval is None


def test_reports_in_every_form(tmp_path: Path) -> None:
    reports = seeded(PEOPLE)
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_text("\n".join(reports[:100]) + "\n")
    packed.write_bytes(gzip.compress(("\n".join(reports[100:250]) + "\n").encode()))
    expected = aggregate(reports)
    for form in ([plain, packed, *reports[250:]], [str(plain), str(packed), *(f"{line}\n" for line in reports[250:])]):
        # Sums of numbers in another order differ in their last bits.
        assert aggregate(form, expect_reports=400).mean == pytest.approx(expected.mean, rel=1e-12)
    assert aggregate(plain).reports == 100
    assert aggregate(tuple(reports)) == expected


def test_public_rows_alone() -> None:
    answer = aggregate([], X_public=PUBLIC)
    assert answer.mean == pytest.approx(PUBLIC.mean(axis=0), rel=1e-6)
    assert answer.certificate.epsilon == 0


def test_data_frames() -> None:
    names = ["x", "y"]
    expected = seeded(pd.DataFrame(PEOPLE, columns=names))
    assert expected == seeded(pl.from_numpy(PEOPLE, schema=names)) == seeded(PEOPLE)
    with_text = pd.DataFrame(PEOPLE, columns=names).assign(name="somebody")
    with pytest.raises(InvalidParameterError) as refused:
        seeded(with_text)
    assert refused.value.parameter == "columns"
    assert seeded(with_text, columns=["y", "x"]) == seeded(PEOPLE[:, ::-1])
    assert seeded(PEOPLE, columns=[1]) == seeded(PEOPLE[:, [1]])
    answer = aggregate(expected, X_public=pd.DataFrame(PUBLIC, columns=names))
    assert answer["columns"] == names


def test_an_answer_is_a_centre() -> None:
    guess = aggregate([], X_public=PUBLIC)
    reports = seeded(PEOPLE, centre=guess, radius=0.3)
    assert reports == seeded(PEOPLE, centre=guess.mean, radius=0.3)
    answer = aggregate(reports, centre=guess, X_public=PUBLIC)
    assert np.linalg.norm(answer.mean - PEOPLE.mean(axis=0)) < 5 * answer.predicted_mse**0.5


def test_a_schema_or_public_rows_say_what_columns_mean() -> None:
    schema = {"format": "semidp-schema/1", "columns": [{"name": "x1", "kind": "number", "impute": 0.0, "range": [0.0, 0.2]}]}
    assert seeded(PEOPLE, schema=schema) == seeded(np.minimum(PEOPLE[:, [1]], 0.2))
    people, letters = (pd.DataFrame({"letter": ["a", "b"] * 50}) for _ in range(2))
    report = json.loads(seeded(people, X_public=letters, columns=["letter"])[0])
    assert report["dimension"] == len(aggregate([], X_public=letters, columns=["letter"]).mean) >= 2


def test_missing_cells_count_as_the_centre() -> None:
    holes = PEOPLE.copy()
    holes[:, 1] = np.nan
    filled = PEOPLE.copy()
    filled[:, 1] = 0.25
    assert seeded(holes, centre=[0.0, 0.25]) == seeded(filled, centre=[0.0, 0.25])


def test_reports_can_be_kept() -> None:
    reports = seeded(PEOPLE[:3])
    again = pickle.loads(pickle.dumps(reports))
    assert again == reports
    assert again.certificate == reports.certificate


@pytest.mark.parametrize(
    ("options", "kind", "parameter"),
    [
        ({"X": None}, InvalidParameterError, "X"),
        ({"X": PEOPLE[:0]}, InvalidParameterError, "X"),
        ({"X": PEOPLE[None]}, ShapeError, "X"),
        ({"X": ["Rumpelstiltskin"]}, ShapeError, "X"),
        ({"epsilon": -1}, InvalidParameterError, "epsilon"),
        ({"mechanism": "laplace"}, InvalidParameterError, "mechanism"),
        ({"mechanism": "privunit"}, InvalidParameterError, "mechanism"),
        ({"radius": None}, InvalidParameterError, "radius"),
        ({"radius": 0}, InvalidParameterError, "radius"),
        ({"round": ""}, InvalidParameterError, "round"),
        ({"centre": [1.0]}, InvalidParameterError, "centre"),
        ({"centre": [1.0, float("nan")]}, InvalidParameterError, "centre"),
        ({"centre": {"median": [1.0, 2.0]}}, InvalidParameterError, "centre"),
        ({"memory": "/nowhere/at/all"}, InvalidParameterError, "memory"),
        ({"columns": ["a,b"]}, InvalidParameterError, "columns"),
        ({"random_state": -1}, InvalidParameterError, "random_state"),
    ],
)
def test_what_is_wrong_with_a_question_is_named(options: dict[str, Any], kind: type[SemidpError], parameter: str) -> None:
    with pytest.raises(kind) as refused:
        randomize(**{"X": PEOPLE, "epsilon": 1.0, "radius": 1.0, **options})
    assert refused.value.parameter == parameter
    for hidden in ("--", "Rumpelstiltskin", "semidp-"):
        assert hidden not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "options", "parameter", "match"),
    [
        (lambda lines: lines[:1] * 2, {}, "reports", "line 2: its id was there before"),
        (lambda lines: [*lines, lines[0][:-9]], {}, "reports", "line 401"),
        (lambda lines: [*lines, lines[0].replace('"round":"1"', '"round":"2"')], {}, "reports", "line 401: its round"),
        (lambda lines: ["{}"], {}, "reports", "line 1"),
        (lambda lines: [], {}, "reports", "at least one report"),
        (lambda lines: [3], {}, "reports", "lines of text or paths"),
        (lambda lines: "/nowhere/at/all", {}, "reports", "cannot read"),
        (lambda lines: "a,b", {}, "reports", "commas"),
        (lambda lines: lines, {"expect_reports": 3}, "expect_reports", "400"),
        (lambda lines: lines, {"centre": [0.0, 0.0]}, "centre", "subtracted nothing"),
        (lambda lines: lines, {"estimator": "median"}, "estimator", "one of"),
        (lambda lines: lines, {"estimator": "throw-away"}, "estimator", "rows that are not there"),
        (lambda lines: lines, {"std": -1}, "std", "finite"),
        (lambda lines: lines, {"X_public": PUBLIC[:, :1]}, "reports", "1 columns"),
    ],
)
def test_what_is_wrong_with_reports_is_named(change: Any, options: dict[str, Any], parameter: str, match: str) -> None:
    with pytest.raises(InvalidParameterError, match=match) as refused:
        aggregate(change(list(seeded(PEOPLE))), **options)
    assert refused.value.parameter == parameter
    for hidden in ("--", "semidp-"):
        assert hidden not in str(refused.value)
