"""The parameters of estimators: their names and types, and what the commands behind them do not check."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np

from .errors import InvalidParameterError

#: Parameters that go to the command `train` under their own names.
PASSED_ON = (
    "epsilon",
    "delta",
    "rho",
    "adjacency",
    "trust",
    "algorithm",
    "clip_norm",
    "sampling",
    "sample_rate",
    "expected_batch",
    "steps",
    "learning_rate",
    "alpha",
    "public_gradient",
    "public_batch",
    "average",
    "l2",
    "domain",
    "ledger",
    "dataset",
    "resume",
    "threads",
)

#: Parameters that are either true or false.
FLAGS = ("fit_intercept", "strict", "copy_X", "allow_weak_noise")


class Parameters(TypedDict, total=False):
    """The parameters that all estimators have, for type checkers; the documentation is that of the estimators."""

    epsilon: float | None
    delta: float | None
    rho: float | None
    adjacency: str
    trust: str
    algorithm: str
    fit_intercept: bool
    clip_norm: float | None
    sampling: str | None
    sample_rate: float | None
    expected_batch: float | None
    steps: int | None
    learning_rate: float | None
    alpha: float | str | None
    public_gradient: str | None
    public_batch: int | None
    average: str | None
    start: str | None
    l2: float | None
    domain: str
    feature_range: tuple[float, float] | None
    schema: dict[str, Any] | str | os.PathLike[str] | None
    strict: bool
    allow_weak_noise: bool
    ledger: str | os.PathLike[str] | None
    dataset: str | None
    checkpoint: str | os.PathLike[str] | None
    resume: str | os.PathLike[str] | None
    on_step: Callable[[int, int], object] | None
    random_state: Any
    threads: int | None
    copy_X: bool


def pair(given: Any, name: str) -> tuple[float, float]:
    """Least and greatest."""
    try:
        least, greatest = map(float, given)
    except (TypeError, ValueError):
        least, greatest = float("nan"), float("nan")
    if not -float("inf") < least < greatest < float("inf"):
        raise InvalidParameterError(f"{name} must be a pair of numbers, the least first", parameter=name)
    return least, greatest


def seed_of(random_state: Any) -> int | None:
    """The seed that a ``random_state`` stands for; ``None`` is the operating system's generator."""
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if not 0 <= random_state <= 2**53:
            raise InvalidParameterError("random_state must be None, or a whole number from 0 to 2^53", parameter="random_state")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**53))
    raise InvalidParameterError("random_state must be None, a whole number, or a generator of NumPy", parameter="random_state")
