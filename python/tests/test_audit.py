"""Audits see what there is to see, and never more than was promised."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from semidp._audit import audit
from semidp.errors import InvalidParameterError


def test_a_randomizer(tmp_path: Path) -> None:
    picture = tmp_path / "attack.svg"
    answer = audit("randomizer", mechanism="duchi", dim=1, epsilon=1.0, trials=20_000, plot=picture)
    assert 0.8 < answer.audited_epsilon_lower_bound <= answer.claimed_epsilon == 1.0
    assert answer.verdict == "consistent"
    assert answer.true_positive_rate > answer.false_positive_rate
    assert picture.read_text().startswith("<svg")


def test_a_mean() -> None:
    answer = audit("mean", n_private=90, n_public=10, dim=3, epsilon=2.0, delta=1e-5, estimator="gaussian", trials=5000)
    assert 1.0 < answer.audited_epsilon_lower_bound <= answer.claimed_epsilon <= 2.0
    assert answer.method == "gaussian-dp"


def test_tracing() -> None:
    answer = audit("mean", n_private=8, n_public=2, dim=300, rho=0.5, attack="tracing", threshold="sharper", trials=2)
    assert answer.attack == "tracing"


def test_training() -> None:
    settings: dict[str, Any] = dict(algorithm="semi-dp-sgd", start="none", fit_intercept=False, clip_norm=1.0, steps=5)
    answer = audit("train", n_private=100, n_public=40, dim=10, epsilon=2.0, delta=1e-5, trials=2, **settings)
    assert answer.audited_epsilon_lower_bound <= answer.claimed_epsilon <= 2.0
    assert answer.algorithm == "semi-dp-sgd"


def test_settings_reach_the_audit() -> None:
    options: dict[str, Any] = dict(mechanism="privunit", dim=5, epsilon=2.0, trials=500)
    first = audit("randomizer", random_state=1, **options)
    assert first == audit("randomizer", random_state=1, threads=1, **options)
    assert first != audit("randomizer", random_state=2, **options)
    assert audit("randomizer", confidence=0.999, **options).confidence == 0.999


def test_the_same_as_the_command_line() -> None:
    line = "audit randomizer --mechanism privunitg --dim 4 --epsilon 1 --trials 500 --seed 3 --json".split()
    printed = subprocess.run([sys.executable, "-m", "semidp", *line], capture_output=True, text=True, check=True).stdout
    assert audit("randomizer", mechanism="privunitg", dim=4, epsilon=1, trials=500, random_state=3) == json.loads(printed)


SHAPE: dict[str, Any] = {"n_private": 90, "n_public": 10, "dim": 5, "epsilon": 1, "delta": 1e-5}


@pytest.mark.parametrize(
    ("what", "options", "parameter"),
    [
        ("model", {}, "what"),
        ("mean", {**SHAPE, "colour": 1}, "colour"),
        ("mean", {**SHAPE, "quiet": True}, "quiet"),
        ("mean", {**SHAPE, "trials": 0}, "trials"),
        ("mean", {**SHAPE, "confidence": 1}, "confidence"),
        ("mean", {**SHAPE, "threshold": "paper"}, "threshold"),
        ("mean", {**SHAPE, "attack": "guess"}, "attack"),
        ("mean", {**SHAPE, "random_state": -1}, "random_state"),
        ("train", {**SHAPE, "algorithm": "sgd"}, "algorithm"),
        ("train", {**SHAPE, "start": "warm"}, "start"),
        ("train", {**SHAPE, "fit_intercept": "no"}, "fit_intercept"),
        ("randomizer", {"dim": 2, "epsilon": 1}, "mechanism"),
        ("randomizer", {"dim": 2, "epsilon": 1, "mechanism": "laplace"}, "mechanism"),
        ("randomizer", {"dim": 2, "epsilon": 1, "mechanism": "duchi", "plot": "/nowhere/at/all.svg"}, "plot"),
    ],
)
def test_wrong_options_are_named(what: Any, options: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InvalidParameterError) as refused:
        audit(what, **options)
    assert refused.value.parameter == parameter
    assert "--" not in str(refused.value)
