"""Accounting against reference values that others computed, and the accountant's manners."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from semidp._ask import Answer, Certificate
from semidp.accounting import Accountant, account, calibrate, verify
from semidp.errors import (
    InvalidParameterError,
    MalformedCertificateError,
    MalformedEventError,
    NoGuaranteeError,
    OutOfRangeError,
    UnknownEventError,
)

ENTRIES = json.loads((Path(__file__).parents[2] / "testdata" / "reference.json").read_text())["entries"]


def reference(function: str) -> list[Any]:
    entries = [pytest.param(e["inputs"], e["output"], id=str(at)) for at, e in enumerate(ENTRIES) if e["function"] == function]
    assert entries, f"no reference values of {function}"
    return entries


@pytest.mark.parametrize(("inputs", "output"), reference("gaussian_delta"))
def test_delta_of_the_gaussian_mechanism(inputs: dict[str, float], output: float) -> None:
    found = account(noise_multiplier=1 / inputs["mu"], steps=1, epsilon=inputs["eps"], adjacency="add-remove").delta
    assert output <= found * (1 + 1e-9)
    assert found == pytest.approx(output, rel=1e-3, abs=1e-15)


@pytest.mark.parametrize(("inputs", "output"), reference("analytic_gaussian_sigma"))
def test_noise_of_the_gaussian_mechanism(inputs: dict[str, float], output: float) -> None:
    if inputs["eps"] == 0:
        # Not a budget, but a question that has an answer.
        sigma = output / inputs["sensitivity"]
        assert account(noise_multiplier=sigma, steps=1, epsilon=0, adjacency="add-remove").delta == pytest.approx(inputs["delta"], rel=1e-3)
        return
    found = calibrate(epsilon=inputs["eps"], delta=inputs["delta"], steps=1, adjacency="add-remove").noise_multiplier
    assert found == pytest.approx(output / inputs["sensitivity"], rel=1e-4)
    assert found >= output * (1 - 1e-9)


@pytest.mark.parametrize(("inputs", "output"), reference("sigma_table"))
@pytest.mark.parametrize(("adjacency", "name"), [("add-remove", "tight_addremove_q_exact"), ("replace-one", "tight_replace_q_exact")])
def test_noise_of_training(inputs: dict[str, float], output: dict[str, float], adjacency: str, name: str) -> None:
    budget = {"epsilon": inputs["eps"], "delta": inputs["delta"]}
    found = calibrate(**budget, sample_rate=inputs["q_exact"], steps=int(inputs["steps"]), adjacency=adjacency)
    assert found.epsilon <= inputs["eps"]
    assert found.noise_multiplier == pytest.approx(output[name], rel=1e-3)


@pytest.mark.parametrize(("inputs", "output"), reference("opacus_epsilon"))
def test_both_accountants_beside_those_of_opacus(inputs: dict[str, float], output: dict[str, float]) -> None:
    run = account(
        noise_multiplier=inputs["noise_multiplier"],
        sample_rate=inputs["q"],
        steps=int(inputs["steps"]),
        delta=inputs["delta"],
        adjacency="add-remove",
    )
    assert run.accountants.pld <= output["prv_upper"]
    assert run.accountants.pld == pytest.approx(output["prv_upper"], abs=0.012)
    assert run.accountants.rdp == pytest.approx(output["rdp"], rel=1e-2)


def test_events_are_the_same_as_options() -> None:
    by_options = account(noise_multiplier=1.5, sample_rate=0.02, steps=300, delta=1e-6)
    event = {"event": "poisson-gaussian", "noise_multiplier": 1.5, "sample_rate": 0.02, "count": np.int64(300)}
    assert account(events=[event], delta=1e-6).epsilon == by_options.epsilon


def test_events_may_be_in_a_file(tmp_path: Path) -> None:
    events = [{"event": "laplace", "noise_multiplier": 4.0, "dimension": 2}]
    path = tmp_path / "events.json"
    path.write_text(json.dumps(events))
    assert account(events=path).epsilon == account(events=events).epsilon == 0.5


def test_steps_are_found_for_a_noise() -> None:
    answer = calibrate(epsilon=2, delta=1e-5, noise_multiplier=3.0, sample_rate=0.01)
    more = account(noise_multiplier=3.0, sample_rate=0.01, steps=answer.steps + max(1, answer.steps // 100), delta=1e-5)
    assert answer.epsilon <= 2 < more.epsilon


def test_a_budget_in_rho() -> None:
    answer = calibrate(rho=0.5, steps=10, adjacency="add-remove")
    # rho = steps / (2 noise^2).
    assert answer.noise_multiplier == pytest.approx(10**0.5, rel=1e-9)


def test_numbers_of_numpy_are_numbers() -> None:
    plain = account(noise_multiplier=2.0, steps=7, delta=1e-6)
    assert account(noise_multiplier=np.float32(2), steps=np.int32(7), delta=np.float64(1e-6)) == plain


def test_the_same_as_the_command_line() -> None:
    line = "calibrate --epsilon 2 --delta 1e-5 --sample-rate 0.05 --steps 200 --json".split()
    printed = subprocess.run([sys.executable, "-m", "semidp", *line], capture_output=True, text=True, check=True).stdout
    assert calibrate(epsilon=2, delta=1e-5, sample_rate=0.05, steps=200) == json.loads(printed)


# Certificates.


@pytest.fixture(scope="module")
def answer() -> Answer:
    return calibrate(epsilon=1, delta=1e-6, sample_rate=0.1, steps=20)


def test_certificates_are_verified_in_every_form(answer: Answer, tmp_path: Path) -> None:
    path = tmp_path / "a certificate.json"
    answer.certificate.save(path)
    for form in (answer, answer.certificate, dict(answer["certificate"]), answer.to_json(), path, str(path)):
        found = verify(form)
        assert found.valid
        assert found.epsilon == pytest.approx(answer.epsilon, rel=1e-3)
    assert answer.certificate.verify().valid
    assert os.listdir(tmp_path) == [path.name]


def test_a_certificate_that_claims_too_much_is_found(answer: Answer) -> None:
    forged = json.loads(answer.certificate.to_json())
    forged["guarantee"]["epsilon"] *= 0.99
    found = verify(forged)
    assert found.valid is False
    assert any("epsilon" in objection for objection in found.objections)


def test_an_answer_that_claims_more_than_its_certificate_is_found(answer: Answer) -> None:
    forged = Answer(json.loads(answer.to_json()))
    forged["noise_multiplier"] /= 2
    assert verify(forged["certificate"]).valid
    assert verify(forged).valid is False


def test_what_is_no_certificate_is_refused(tmp_path: Path) -> None:
    for nothing in ({}, "{", '{"format": "semidp-certificate/9"}', {"certificate": {"format": 3}}):
        with pytest.raises(MalformedCertificateError):
            verify(nothing)
    with pytest.raises(InvalidParameterError, match="cannot read") as refused:
        verify(tmp_path / "none.json")
    assert refused.value.parameter == "certificate"
    with pytest.raises(InvalidParameterError) as refused:
        verify(3)  # type: ignore[arg-type]
    assert refused.value.parameter == "certificate"


# The accountant.


def test_composition_is_that_of_all_events_together() -> None:
    accountant = Accountant(adjacency="add-remove").poisson_gaussian(1.2, 0.01, 500).gaussian(10.0, count=2).laplace(5.0, 3).zcdp(0.001)
    assert accountant.events == [
        {"event": "poisson-gaussian", "noise_multiplier": 1.2, "sample_rate": 0.01, "count": 500},
        {"event": "gaussian", "noise_multiplier": 10.0, "count": 2},
        {"event": "laplace", "noise_multiplier": 5.0, "dimension": 3, "count": 1},
        {"event": "zcdp", "rho": 0.001, "count": 1},
    ]
    expected = account(events=accountant.events, delta=1e-5, adjacency="add-remove")
    assert accountant.epsilon(1e-5) == expected.epsilon
    assert len(accountant) == 4


def test_every_kind_of_event() -> None:
    accountant = (
        Accountant()
        .gaussian(50.0)
        .poisson_gaussian(5.0, 0.01, 10)
        .fixed_size_gaussian(5.0, 0.01, 10)
        .one_pass_gaussian(50.0, 4)
        .laplace(100.0)
        .k_norm(100.0, 3)
        .pure(0.01)
    )
    names = ["gaussian", "poisson-gaussian", "fixed-size-gaussian", "one-pass-gaussian", "laplace", "k-norm", "pure"]
    assert [event["event"] for event in accountant.events] == names
    alone = [Accountant().compose(event).epsilon(1e-6) for event in accountant.events]
    assert max(alone) < accountant.epsilon(1e-6)


def test_pure_events_add_up_exactly() -> None:
    accountant = Accountant().pure(0.25, count=3).laplace(8.0)
    assert accountant.epsilon(delta=0) == 1.0
    assert Accountant(adjacency="add-remove").laplace(8.0).epsilon(delta=0) == 0.125


def test_one_gaussian_is_as_good_as_its_parts() -> None:
    # Two of noise sqrt(2) z tell what one of noise z tells.
    split = Accountant().gaussian(8.0 * 2**0.5, count=2)
    assert split.epsilon(1e-6) == pytest.approx(Accountant().gaussian(8.0).epsilon(1e-6), rel=1e-4)


def test_epsilon_and_delta_are_inverse() -> None:
    accountant = Accountant().poisson_gaussian(2.0, 0.05, 100).pure(0.1)
    assert accountant.delta(accountant.epsilon(1e-5)) == pytest.approx(1e-5, rel=1e-2)


def test_nothing_costs_nothing() -> None:
    assert Accountant().epsilon(1e-6) == 0
    assert Accountant().delta(0.5) == 0
    assert len(Accountant()) == 0
    assert Accountant().certificate(1e-6).verify().valid


def test_equal_events_are_counted() -> None:
    accountant = Accountant()
    for _ in range(3):
        accountant.gaussian(20.0).pure(0.1)
    assert accountant == Accountant().pure(0.1, count=3).gaussian(20.0, count=3)
    assert accountant != Accountant().pure(0.1, count=3).gaussian(20.0, count=2)
    assert Accountant() != Accountant(adjacency="add-remove")
    assert Accountant() != "Accountant()"
    assert repr(accountant) == "Accountant(adjacency='replace-one', events=2)"


def test_events_are_a_copy() -> None:
    accountant = Accountant().gaussian(20.0)
    accountant.events[0]["noise_multiplier"] = 2000.0
    accountant.events.clear()
    assert accountant.events[0]["noise_multiplier"] == 20.0


def test_certificates_contribute_their_events() -> None:
    first, second = (calibrate(epsilon=1, delta=1e-6, sample_rate=rate, steps=100) for rate in (0.01, 0.02))
    accountant = Accountant().compose(first).compose(second.certificate, count=2)
    assert [event["count"] for event in accountant.events] == [100, 200]
    assert 1 < accountant.epsilon(1e-6) < 3
    certificate = accountant.certificate(1e-6)
    assert isinstance(certificate, Certificate)
    assert certificate.verify().valid
    assert certificate["events"] == accountant.events


def test_what_no_guarantee_covers_is_not_forgotten() -> None:
    certificate = calibrate(epsilon=1, delta=1e-6, steps=10).certificate
    certificate["not_covered"] = ["a peek"]
    certificate["random_source"] = "seeded"
    with pytest.warns(UserWarning, match="seed"):
        composed = Accountant().compose(certificate).compose(certificate).certificate(1e-6)
        assert composed.verify(allow_seeded=True).valid
    assert not composed.verify().valid
    assert composed["not_covered"] == ["a peek"]
    assert composed["random_source"] == "seeded"


def test_other_adjacencies_are_refused() -> None:
    other = calibrate(epsilon=1, delta=1e-6, steps=10, adjacency="add-remove")
    accountant = Accountant().pure(0.1)
    for form in (other, other.certificate):
        with pytest.raises(InvalidParameterError, match="replace-one adjacency.*add-remove"):
            accountant.compose(form)
    assert accountant == Accountant().pure(0.1)


def test_certificates_that_promise_nothing_are_refused() -> None:
    certificate = calibrate(epsilon=1, delta=1e-6, steps=10).certificate
    certificate["guarantee"]["epsilon"] = None
    with pytest.raises(InvalidParameterError, match="promise"):
        Accountant().compose(certificate)


@pytest.mark.parametrize(
    ("method", "arguments", "parameter"),
    [
        ("gaussian", {"noise_multiplier": 0}, "noise_multiplier"),
        ("gaussian", {"noise_multiplier": float("nan")}, "noise_multiplier"),
        ("gaussian", {"noise_multiplier": float("inf")}, "noise_multiplier"),
        ("gaussian", {"noise_multiplier": "1"}, "noise_multiplier"),
        ("gaussian", {"noise_multiplier": None}, "noise_multiplier"),
        ("gaussian", {"noise_multiplier": 1, "count": 0}, "count"),
        ("gaussian", {"noise_multiplier": 1, "count": -2}, "count"),
        ("gaussian", {"noise_multiplier": 1, "count": 1.5}, "count"),
        ("gaussian", {"noise_multiplier": 1, "count": True}, "count"),
        ("gaussian", {"noise_multiplier": 1, "count": 10**12}, "count"),
        ("poisson_gaussian", {"noise_multiplier": -1, "sample_rate": 0.1, "steps": 1}, "noise_multiplier"),
        ("poisson_gaussian", {"noise_multiplier": 1, "sample_rate": 0, "steps": 1}, "sample_rate"),
        ("poisson_gaussian", {"noise_multiplier": 1, "sample_rate": 1.5, "steps": 1}, "sample_rate"),
        ("poisson_gaussian", {"noise_multiplier": 1, "sample_rate": 0.1, "steps": 0}, "steps"),
        ("fixed_size_gaussian", {"noise_multiplier": 1, "sample_rate": 2, "steps": 1}, "sample_rate"),
        ("one_pass_gaussian", {"noise_multiplier": 1, "blocks": 0}, "blocks"),
        ("laplace", {"noise_multiplier": 1, "dimension": 0}, "dimension"),
        ("k_norm", {"noise_multiplier": 1, "dimension": 1.5}, "dimension"),
        ("pure", {"epsilon": -0.1}, "epsilon"),
        ("zcdp", {"rho": -0.1}, "rho"),
        ("compose", {"what": 3}, "what"),
        ("compose", {"what": {}}, "what"),
        ("epsilon", {"delta": 1.5}, "delta"),
        ("delta", {"epsilon": -1}, "epsilon"),
    ],
)
def test_wrong_parameters_are_named_and_change_nothing(method: str, arguments: dict[str, Any], parameter: str) -> None:
    accountant = Accountant().pure(0.1)
    with pytest.raises(InvalidParameterError) as refused:
        getattr(accountant, method)(**arguments)
    assert refused.value.parameter == parameter
    assert refused.value.message.startswith(parameter)
    assert accountant == Accountant().pure(0.1)


def test_what_is_no_event_is_refused() -> None:
    accountant = Accountant(adjacency="add-remove")
    for nothing in ({"event": "gauss"}, {"event": "gaussian"}, {"event": "gaussian", "noise": 1}):
        with pytest.raises(MalformedEventError):
            accountant.compose(nothing)
    with pytest.raises(NoGuaranteeError):
        accountant.fixed_size_gaussian(1.0, 0.1, 1)
    with pytest.raises(InvalidParameterError) as refused:
        Accountant(adjacency="substitute")
    assert refused.value.parameter == "adjacency"
    assert len(accountant) == 0


def test_a_certificate_is_taken_whole_or_not_at_all() -> None:
    certificate = Accountant().pure(0.1).gaussian(9.0).certificate(1e-6)
    certificate["events"][1]["noise_multiplier"] = -9.0
    accountant = Accountant()
    with pytest.raises(InvalidParameterError):
        accountant.compose(certificate)
    assert len(accountant) == 0


def test_too_little_noise_is_an_event_without_an_epsilon() -> None:
    accountant = Accountant().gaussian(1e-4)
    with pytest.raises(OutOfRangeError):
        accountant.epsilon(1e-6)


def test_gaussian_noise_is_never_pure() -> None:
    with pytest.raises(UnknownEventError):
        Accountant().gaussian(5.0).epsilon(delta=0)


def test_accountants_can_be_kept() -> None:
    accountant = Accountant().gaussian(5.0).pure(0.5)
    assert pickle.loads(pickle.dumps(accountant)) == accountant


@pytest.mark.parametrize(
    ("function", "arguments", "parameter"),
    [
        (account, {"noise_multiplier": 1, "steps": 3}, "delta"),
        (account, {"noise_multiplier": 1, "steps": 3, "epsilon": 1, "delta": 1e-5}, "epsilon"),
        (account, {"noise_multiplier": 1, "delta": 1e-5}, "steps"),
        (account, {"steps": 3, "delta": 1e-5}, "noise_multiplier"),
        (account, {"noise_multiplier": 1, "steps": 2.5, "delta": 1e-5}, "steps"),
        (account, {"noise_multiplier": 1, "steps": 3, "delta": 1e-5, "sampling": "shuffle"}, "sampling"),
        (account, {"noise_multiplier": 1, "steps": 3, "delta": 1e-5, "sampling": "poisson"}, "sample_rate"),
        (account, {"noise_multiplier": 1, "steps": 3, "delta": 1e-5, "mechanism": "cauchy"}, "mechanism"),
        (account, {"noise_multiplier": 1, "steps": 3, "delta": 1e-5, "dimension": 2}, "dimension"),
        (account, {"noise_multiplier": 1, "steps": 3, "delta": 1e-5, "trust": "nobody"}, "trust"),
        (account, {"noise_multiplier": object(), "steps": 3, "delta": 1e-5}, "noise_multiplier"),
        (account, {"events": [{"event": "pure", "epsilon": 1}], "steps": 3}, "steps"),
        (calibrate, {"steps": 3}, "epsilon"),
        (calibrate, {"epsilon": 1, "rho": 1, "steps": 3}, "epsilon"),
        (calibrate, {"epsilon": float("inf"), "delta": 1e-5, "steps": 3}, "epsilon"),
        (calibrate, {"epsilon": 1, "delta": 1e-5, "steps": 3, "adjacency": "both"}, "adjacency"),
    ],
)
def test_wrong_options_are_named(function: Any, arguments: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InvalidParameterError) as refused:
        function(**arguments)
    assert refused.value.parameter == parameter
    assert "--" not in str(refused.value)
