"""Plans against closed forms, and the names of what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from semidp._plan import plan
from semidp.errors import InvalidParameterError

ENTRIES = json.loads((Path(__file__).parents[2] / "testdata" / "reference.json").read_text())["entries"]


def by_name(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry["function"] == "weighted_gaussian"])
def test_the_error_of_a_mean(entry: dict[str, Any]) -> None:
    given = entry["inputs"]
    answer = plan(
        "mean", n_private=given["npriv"], n_public=given["npub"], dim=given["d"], radius=given["B"], std=given["V"], rho=given["rho"]
    )
    found = by_name(answer.estimators, "weighted-gaussian")
    assert found["mse"] == pytest.approx(entry["output"]["mse"], rel=1e-9)
    assert found["private_weight"] == pytest.approx(entry["output"]["r"], rel=1e-9)


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry["function"] == "privunit_opt"][:12])
def test_the_error_of_a_report(entry: dict[str, Any]) -> None:
    answer = plan("local", dim=entry["inputs"]["d"], epsilon=entry["inputs"]["eps"])
    assert by_name(answer.randomizers, "privunit")["mse"] == pytest.approx(entry["output"]["mse"], rel=1e-6)


def test_training() -> None:
    answer = plan("train", n_private=27000, n_public=3000, dim=2000, epsilon=2, delta=1e-5, steps=5000, expected_batch=500)
    assert answer.best == "semi-dp-sgd"
    assert answer.steps == 5000


def test_the_same_as_the_command_line() -> None:
    line = "plan mean --n-private 900 --n-public 100 --dim 5 --radius 2 --epsilon 1 --delta 1e-6 --exact --json".split()
    printed = subprocess.run([sys.executable, "-m", "semidp", *line], capture_output=True, text=True, check=True).stdout
    assert plan("mean", n_private=900, n_public=100, dim=5, radius=2, epsilon=1, delta=1e-6, exact=True) == json.loads(printed)


def test_charts_are_drawn(tmp_path: Path) -> None:
    plan("mean", n_private=900, n_public=100, dim=5, radius=2, rho=0.1, plot=tmp_path)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".svg", ".svg"]


@pytest.mark.parametrize(
    ("what", "options", "parameter"),
    [
        ("median", {}, "what"),
        ("mean", {"n_private": 1, "n_public": 1, "dim": 1, "radius": 1, "rho": 1, "colour": "red"}, "colour"),
        ("mean", {"n_private": 1, "n_public": 1, "dim": 1, "radius": 1, "rho": 1, "json": True}, "json"),
        ("mean", {"n_public": 1, "dim": 1, "radius": 1, "rho": 1}, "n_private"),
        ("mean", {"n_private": -1, "n_public": 1, "dim": 1, "radius": 1, "rho": 1}, "n_private"),
        ("mean", {"n_private": 1, "n_public": 1, "dim": 1, "rho": 1}, "radius"),
        ("mean", {"n_private": 1, "n_public": 1, "dim": 1, "radius": 1, "rho": 1, "target": "sample"}, "target"),
        ("mean", {"n_private": 1, "n_public": 1, "dim": 1, "radius": 1, "rho": 1, "adjacency": "add-remove"}, "adjacency"),
        ("train", {"n_private": 9, "n_public": 9, "dim": 1, "epsilon": 1, "delta": 1e-5, "steps": 0}, "steps"),
        ("local", {"dim": 3}, "epsilon"),
        ("local", {"dim": 3, "epsilon": 1, "delta": 1e-5}, "delta"),
    ],
)
def test_wrong_options_are_named(what: Any, options: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InvalidParameterError) as refused:
        plan(what, **options)
    assert refused.value.parameter == parameter
    assert "--" not in str(refused.value)
