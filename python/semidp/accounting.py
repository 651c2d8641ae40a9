"""What noise costs, how much of it a budget needs, and whether a certificate holds."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

from ._ask import Answer, Certificate, ask
from ._files import Files, is_path
from .errors import InvalidParameterError, MalformedEventError, OutOfRangeError, UnknownEventError

__all__ = ["Accountant", "account", "calibrate", "verify"]

#: One access to the private rows, and how often it happens, as in
#: ``{"event": "poisson-gaussian", "noise_multiplier": 1, "sample_rate": 0.01, "count": 100}``.
Event: TypeAlias = Mapping[str, Any]


def account(
    *,
    noise_multiplier: float | None = None,
    sample_rate: float | None = None,
    steps: int | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    sampling: str | None = None,
    mechanism: str | None = None,
    dimension: int | None = None,
    adjacency: str = "replace-one",
    trust: str | None = None,
    events: Sequence[Event] | str | os.PathLike[str] | None = None,
) -> Answer:
    """What a given noise costs: epsilon at a ``delta``, or delta at an ``epsilon``.

    Parameters
    ----------
    noise_multiplier : noise std (Laplace, K-norm: scale) on the *sum* of clipped contributions, over the clip norm.
    sample_rate : chance that a private row takes part in a step: the expected batch over the number of private rows.
    steps : number of noisy releases; with ``sampling="one-pass"`` the number of blocks.
    delta, epsilon : exactly one of them; the answer has the other.
    sampling : ``"poisson"``, ``"fixed-size"``, ``"one-pass"`` or ``"none"``; Poisson if there is a ``sample_rate`` below 1.
    mechanism : ``"gaussian"`` (the default), ``"laplace"`` or ``"k-norm"``.
    dimension : number of coordinates that get Laplace or K-norm noise.
    adjacency : which data sets must look alike: ``"replace-one"`` or ``"add-remove"``.
    trust : who sees the private rows: ``"central"`` (the default) or ``"local"``.
    events : a list of events, or the path of a JSON file of them, in place of everything that describes one mechanism.

    Returns
    -------
    Answer : ``epsilon``, ``delta``, ``accountants``, ``other_adjacency``, ``certificate`` and more.

    Examples
    --------
    >>> answer = account(noise_multiplier=2.744, sample_rate=500 / 27000, steps=5000, delta=1e-5)
    >>> round(answer.epsilon, 3), round(answer.other_adjacency.epsilon, 3)
    (4.148, 1.984)
    >>> run = {"event": "gaussian", "noise_multiplier": 8.0, "count": 10}
    >>> round(account(events=[run, {"event": "pure", "epsilon": 0.1}], delta=1e-6).epsilon, 3)
    3.779
    """
    options: dict[str, Any] = dict(
        noise_multiplier=noise_multiplier,
        sample_rate=sample_rate,
        steps=steps,
        delta=delta,
        epsilon=epsilon,
        sampling=sampling,
        mechanism=mechanism,
        dimension=dimension,
        adjacency=adjacency,
        trust=trust,
    )
    with Files() as files:
        return ask("account", {**options, "events": files.json_unless_path("events", events)})


def calibrate(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    steps: int | None = None,
    noise_multiplier: float | None = None,
    sample_rate: float | None = None,
    sampling: str | None = None,
    mechanism: str | None = None,
    dimension: int | None = None,
    adjacency: str = "replace-one",
    trust: str | None = None,
) -> Answer:
    """The least noise that a budget needs; with ``noise_multiplier``, the most steps that it allows.

    Parameters
    ----------
    epsilon, delta : the budget; without ``delta`` it is pure.
    rho : the budget in zCDP instead; ``delta`` then says where to state the epsilon that it gives.
    steps : number of noisy releases; with ``sampling="one-pass"`` the number of blocks.
    noise_multiplier : fixes the noise, to find the number of steps.
    sample_rate, sampling, mechanism, dimension, adjacency, trust : as in :func:`account`.

    Returns
    -------
    Answer : ``noise_multiplier`` (never too small: the ``epsilon`` beside it is at most what was asked for), ``steps``,
        ``certificate`` and more.

    Examples
    --------
    >>> answer = calibrate(epsilon=2, delta=1e-5, sample_rate=500 / 27000, steps=5000, adjacency="add-remove")
    >>> round(answer.noise_multiplier, 3), answer.epsilon <= 2
    (2.725, True)
    """
    options = dict(locals())
    return ask("calibrate", options)


def verify(
    certificate: Mapping[str, Any] | str | os.PathLike[str],
    *,
    signer: str | os.PathLike[str] | None = None,
    allow_seeded: bool = False,
) -> Answer:
    """Recomputes the guarantee of a certificate from its events, with both accountants, and compares them with what else it states.

    Parameters
    ----------
    certificate : a certificate or an answer that holds one, as a dictionary, as JSON, or as the path of a file.
    signer : the file of the institution's public key (``semidp keygen``): a certificate that it did not sign, or that was altered since, is
        not valid.
    allow_seeded : accept noise that was drawn from a seed, for tests and demonstrations: it is **not private**.

    Returns
    -------
    Answer : ``valid``, the recomputed ``epsilon``, ``claimed_epsilon``, and ``objections``: each claim that does not follow. A
        certificate that does not hold is no error: ``valid`` is false.

    Examples
    --------
    >>> certificate = calibrate(epsilon=1, delta=1e-6, steps=10).certificate
    >>> verify(certificate).valid
    True
    >>> certificate["guarantee"]["epsilon"] = 0.5
    >>> verify(certificate).valid
    False
    """
    with Files() as files:
        if isinstance(certificate, str) and certificate.lstrip().startswith("{"):
            path: str | os.PathLike[str] = files.lines("certificate", [certificate])
        elif is_path(certificate):
            path = certificate  # type: ignore[assignment]
        elif isinstance(certificate, Mapping):
            path = files.json("certificate", certificate)
        else:
            raise InvalidParameterError(
                f"certificate must be a dictionary, JSON, or a path, got a {type(certificate).__name__}", parameter="certificate"
            )
        # An absolute path, as one that begins with a dash would be taken for an option.
        return ask(["verify", os.path.abspath(path)], {"signer": signer, "allow_seeded": allow_seeded})


class Accountant:
    """Adds up what several runs on the same private rows cost together.

    Parameters
    ----------
    adjacency : which data sets must look alike, for all runs: ``"replace-one"`` or ``"add-remove"``.

    Every method that adds something returns the accountant, so that calls can be chained; what is refused changes nothing.
    Events of the same parameters are kept as one with a larger ``count``, and ``len`` is the number of different ones.

    Examples
    --------
    >>> accountant = Accountant(adjacency="add-remove")
    >>> accountant.poisson_gaussian(1.1, sample_rate=0.01, steps=1000).gaussian(20.0)
    Accountant(adjacency='add-remove', events=2)
    >>> round(accountant.epsilon(delta=1e-5), 2)
    1.53
    >>> accountant.certificate(delta=1e-5).verify().valid
    True
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *, adjacency: str = "replace-one") -> None:
        self._adjacency = str(adjacency)
        self._events: list[dict[str, Any]] = []
        self._not_covered: list[str] = []
        self._is_seeded = False
        # A wrong adjacency should be known now.
        self.epsilon(delta=0.0)

    @property
    def adjacency(self) -> str:
        """Which data sets must look alike."""
        return self._adjacency

    @property
    def events(self) -> list[dict[str, Any]]:
        """What was added so far, as a copy."""
        return [dict(event) for event in self._events]

    def gaussian(self, noise_multiplier: float, count: int = 1) -> Accountant:
        """Gaussian noise on a sum over all rows."""
        return self._add("gaussian", count, noise_multiplier=noise_multiplier)

    def poisson_gaussian(self, noise_multiplier: float, sample_rate: float, steps: int) -> Accountant:
        """Steps of DP-SGD: Gaussian noise on samples that each row joins independently."""
        return self._add("poisson-gaussian", steps, "steps", noise_multiplier=noise_multiplier, sample_rate=sample_rate)

    def fixed_size_gaussian(self, noise_multiplier: float, sample_rate: float, steps: int) -> Accountant:
        """The same on samples of a fixed size; replace-one only."""
        return self._add("fixed-size-gaussian", steps, "steps", noise_multiplier=noise_multiplier, sample_rate=sample_rate)

    def one_pass_gaussian(self, noise_multiplier: float, blocks: int, count: int = 1) -> Accountant:
        """Gaussian noise on each of several disjoint blocks; ``count`` is the number of passes."""
        return self._add("one-pass-gaussian", count, noise_multiplier=noise_multiplier, blocks=blocks)

    def laplace(self, noise_multiplier: float, dimension: int = 1, count: int = 1) -> Accountant:
        """Laplace noise on a sum over all rows, clipped in l1 norm."""
        return self._add("laplace", count, noise_multiplier=noise_multiplier, dimension=dimension)

    def k_norm(self, noise_multiplier: float, dimension: int, count: int = 1) -> Accountant:
        """Noise of density exp(-norm/scale) on a sum over all rows, clipped in l2 norm."""
        return self._add("k-norm", count, noise_multiplier=noise_multiplier, dimension=dimension)

    def pure(self, epsilon: float, count: int = 1) -> Accountant:
        """Anything that is epsilon-DP under the adjacency of the accountant."""
        return self._add("pure", count, epsilon=epsilon)

    def zcdp(self, rho: float, count: int = 1) -> Accountant:
        """Anything that is rho-zCDP under the adjacency of the accountant."""
        return self._add("zcdp", count, rho=rho)

    def compose(self, what: Mapping[str, Any], count: int = 1) -> Accountant:
        """Adds an event, all events of a certificate, or those of an answer that holds one, ``count`` times.

        What a certificate says is covered by no guarantee, or that its noise came from a seed, stands on the certificate of the
        accountant, too.
        """
        if not isinstance(what, Mapping):
            raise InvalidParameterError(
                f"what must be an event, a certificate, or an answer that holds one, got a {type(what).__name__}", parameter="what"
            )
        if "event" in what:
            return self._take([what], count)
        certificate = what.get("certificate", what)
        if not isinstance(certificate, Mapping) or "events" not in certificate or "guarantee" not in certificate:
            raise InvalidParameterError("what must be an event, a certificate, or an answer that holds one", parameter="what")
        guarantee = certificate["guarantee"]
        if not isinstance(guarantee, Mapping) or not {"adjacency", "epsilon"} <= set(guarantee):
            raise InvalidParameterError("what must be a certificate whose guarantee has an adjacency and an epsilon", parameter="what")
        adjacency = guarantee["adjacency"]
        if guarantee["epsilon"] is None:
            raise InvalidParameterError("what must promise something: this certificate does not", parameter="what")
        if adjacency != self._adjacency:
            raise InvalidParameterError(
                f"what must be a promise under {self._adjacency} adjacency, as this accountant is, got {adjacency}", parameter="what"
            )
        self._take(certificate["events"], count)
        self._not_covered += [line for line in certificate.get("not_covered", []) if line not in self._not_covered]
        self._is_seeded |= certificate.get("random_source") == "seeded"
        return self

    def epsilon(self, delta: float) -> float:
        """The epsilon of everything so far, at this delta."""
        return float(self._ask(delta=delta).epsilon)

    def delta(self, epsilon: float) -> float:
        """The delta of everything so far, at this epsilon."""
        return float(self._ask(epsilon=epsilon).delta)

    def certificate(self, delta: float) -> Certificate:
        """What is promised of everything so far, with all that the promise rests on."""
        made: Certificate = self._ask(delta=delta).certificate
        if self._not_covered:
            made["not_covered"] = list(self._not_covered)
        if self._is_seeded:
            made["random_source"] = "seeded"
        return made

    def _ask(self, *, delta: float | None = None, epsilon: float | None = None) -> Answer:
        # Where nothing happened nothing is spent, which is an event, too.
        events = self._events or [{"event": "pure", "epsilon": 0}]
        return account(events=events, adjacency=self._adjacency, delta=delta, epsilon=epsilon)

    def _add(self, name: str, count: int, count_name: str = "count", **parameters: float) -> Accountant:
        return self._take([{"event": name, **parameters}], count, count_name)

    def _take(self, events: Sequence[Event], count: int, count_name: str = "count") -> Accountant:
        changed = self.events
        for event in events:
            for name, value in {**event, count_name: count}.items():
                _refuse_other_than_number(name, value)
            added = {**event, "count": event.get("count", 1) * count}
            self._check(added, count_name)
            same = [known for known in changed if {**known, "count": 0} == {**added, "count": 0}]
            if same:
                same[0]["count"] += added["count"]
                self._check(same[0], count_name)
            else:
                changed.append(added)
        self._events = changed
        return self

    def _check(self, event: Event, count_name: str) -> None:
        """Asks for the pure epsilon of an event: few have one, but only what is an event is understood that far."""
        try:
            account(events=[event], adjacency=self._adjacency, delta=0)
        except (OutOfRangeError, UnknownEventError):
            return
        except (MalformedEventError, InvalidParameterError) as error:
            refused = re.fullmatch(r"events: (?:event \d+: )?(\w+) (must .*)", error.message, re.DOTALL)
            if refused is None:
                raise
            name = count_name if refused[1] == "steps" else refused[1]
            raise InvalidParameterError(f"{name} {refused[2]}", parameter=name) from None

    def __len__(self) -> int:
        return len(self._events)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Accountant):
            return NotImplemented

        def told(accountant: Accountant) -> tuple[object, ...]:
            events = sorted(sorted(event.items()) for event in accountant._events)
            return (accountant._adjacency, events, sorted(accountant._not_covered), accountant._is_seeded)

        return told(self) == told(other)

    def __repr__(self) -> str:
        return f"Accountant(adjacency={self._adjacency!r}, events={len(self)})"


def _refuse_other_than_number(name: str, value: Any) -> None:
    if name == "event":
        return
    if name in ("blocks", "count", "dimension", "steps"):
        is_right, wanted = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1, "a whole number >= 1"
    else:
        is_right, wanted = isinstance(value, Real) and not isinstance(value, bool), "a number"
    if not is_right:
        raise InvalidParameterError(f"{name} must be {wanted}, got {value!r}", parameter=name)
