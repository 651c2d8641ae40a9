"""Attacks on a promise, on rows that are made up for it."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

from ._ask import Answer, ask
from ._parameters import seed_of
from ._plan import named
from .errors import InvalidParameterError

#: What other names the command has for our parameters.
_OPTIONS = {"random_state": "seed", "start": "warm_start"}


@overload
def audit(
    what: Literal["mean"],
    *,
    n_private: int,
    n_public: int,
    dim: int,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    radius: float | None = None,
    estimator: str = "auto",
    attack: str = "pair",
    threshold: str | None = None,
    reference_rows: int | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    threads: int | None = None,
    plot: str | os.PathLike[str] | None = None,
    adjacency: str = "replace-one",
    trust: str | None = None,
) -> Answer: ...


@overload
def audit(
    what: Literal["train"],
    *,
    n_private: int,
    n_public: int,
    dim: int,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    algorithm: str = "auto",
    attack: str = "canaries",
    loss: str | None = None,
    clip_norm: float | None = None,
    sampling: str | None = None,
    sample_rate: float | None = None,
    expected_batch: float | None = None,
    steps: int | None = None,
    public_batch: int | None = None,
    learning_rate: float | None = None,
    alpha: float | str | None = None,
    public_gradient: str | None = None,
    average: str | None = None,
    domain: str | None = None,
    l2: float | None = None,
    start: str | None = None,
    hessian_regularisation: float | None = None,
    randomizer: str | None = None,
    schedule: str | None = None,
    fit_intercept: bool = True,
    trials: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    threads: int | None = None,
    plot: str | os.PathLike[str] | None = None,
    adjacency: str = "replace-one",
    trust: str | None = None,
) -> Answer: ...


@overload
def audit(
    what: Literal["randomizer"],
    *,
    mechanism: str,
    dim: int,
    epsilon: float,
    attack: str = "pair",
    inputs: str | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    threads: int | None = None,
    plot: str | os.PathLike[str] | None = None,
) -> Answer: ...


def audit(what: str, **options: Any) -> Answer:
    """Attacks a mechanism on made-up rows and concludes from how often it succeeds what epsilon is at least.

    An audit can show that a promise is broken; it cannot show that it is kept. No private row is read.

    Parameters
    ----------
    what : ``"mean"``, ``"train"`` or ``"randomizer"``.
    n_private, n_public, dim : mean and train: numbers of rows and columns, as many as the run has; randomizer: ``dim`` only.
    epsilon, delta, rho : the claim: ``epsilon`` at ``delta``, pure ``epsilon``, or ``rho`` of zCDP; for randomizers pure ``epsilon``.
    adjacency, trust : as in :func:`semidp.account`; not for randomizers.
    radius, estimator : mean: as in :func:`semidp.mean`.
    attack : mean: ``"pair"``, which of two neighbouring data sets was it, or ``"tracing"``, was this row among them; train: \
 ``"canaries"``, which of many rows were learned from; either: ``"replay"``, do sums before noise change by more than the declared sensitivity, or \
 anything else at all, when one row does; randomizer: ``"pair"``, which of two opposite vectors was it, or ``"low-bits"``, do the low-order bits of \
 reports tell more than they may.
    inputs : randomizer: the two vectors of the low-bits attack: ``"axis"``, ``"sparse"`` or ``"dense"``.
    threshold, reference_rows : mean: how the tracing attack decides, and how many other rows the attacker knows.
    mechanism : randomizer: ``"rank-privunit"``, ``"duchi"``, ``"privunit"`` or ``"privunitg"``.
    algorithm, loss, clip_norm, sampling, sample_rate, expected_batch, steps, public_batch, learning_rate, alpha, public_gradient, average, \
domain, l2, start, hessian_regularisation, randomizer, schedule, fit_intercept : train: the settings of the run.
    trials : runs of the mechanism; more of them make the bound tighter.
    confidence : how sure the bound is: a kept promise is called broken with at most one minus this chance.
    random_state : a number that makes the audit reproducible; nothing private hangs on it.
    threads : one a core by default; makes no difference to the result.
    plot : where to draw how well the attack does beside the best that the promise allows (SVG).

    Returns
    -------
    Answer : ``claimed_epsilon``, ``audited_epsilon_lower_bound``, ``verdict``, ``true_positive_rate``, ``false_positive_rate`` and more.

    Examples
    --------
    >>> answer = audit("randomizer", mechanism="duchi", dim=3, epsilon=1.0, trials=2000)
    >>> 0.3 < answer.audited_epsilon_lower_bound <= answer.claimed_epsilon
    True
    """
    command = named("audit", what, ("mean", "train", "randomizer"), options)
    if "random_state" in options:
        options["random_state"] = seed_of(options["random_state"])
    if "fit_intercept" in options:
        if not isinstance(options["fit_intercept"], bool):
            raise InvalidParameterError("fit_intercept must be True or False", parameter="fit_intercept")
        options["no_intercept"] = not options.pop("fit_intercept")
    return ask(command, {_OPTIONS.get(name, name): value for name, value in options.items()})
