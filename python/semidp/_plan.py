"""How good a result will be, before any private row is read."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

from ._ask import Answer, ask
from .errors import InvalidParameterError

#: What is no parameter of ours although every command takes it.
_OF_THE_SHELL = ("help", "json", "quiet", "version")


@overload
def plan(
    what: Literal["mean"],
    *,
    n_private: int,
    n_public: int,
    dim: int,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    radius: float | None = None,
    std: float | None = None,
    moment: float | None = None,
    moment_bound: float | None = None,
    target: str = "population",
    exact: bool = False,
    plot: str | os.PathLike[str] | None = None,
    adjacency: str = "replace-one",
    trust: str | None = None,
) -> Answer: ...


@overload
def plan(
    what: Literal["train"],
    *,
    n_private: int,
    n_public: int,
    dim: int,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    steps: int | None = None,
    expected_batch: float | None = None,
    public_batch: int | None = None,
    clip_norm: float | None = None,
    gradient_std: float | None = None,
    lipschitz: float | None = None,
    diameter: float | None = None,
    strong_convexity: float | None = None,
    plot: str | os.PathLike[str] | None = None,
    adjacency: str = "replace-one",
    trust: str | None = None,
) -> Answer: ...


@overload
def plan(
    what: Literal["local"],
    *,
    dim: int,
    epsilon: float,
    n_private: int | None = None,
    n_public: int | None = None,
    radius: float | None = None,
    std: float | None = None,
    mean_norm: float | None = None,
) -> Answer: ...


def plan(what: str, **options: Any) -> Answer:
    """Predicts how good a result will be, from counts and a budget. No private row is read.

    ``plan("mean", ...)`` predicts the error of every mean estimator, ``plan("train", ...)`` the noise of every training algorithm and
    the best rates there are, ``plan("local", ...)`` the error of randomised reports and of means of them.

    Parameters
    ----------
    what : ``"mean"``, ``"train"`` or ``"local"``.
    n_private, n_public : numbers of rows.
    dim : number of columns, or of coordinates of the model.
    epsilon, delta, rho : the budget: ``epsilon`` at ``delta``, pure ``epsilon``, or ``rho`` of zCDP; for reports pure ``epsilon``.
    adjacency, trust : as in :func:`semidp.account`; not for ``"local"``.
    plot : a folder to draw charts (SVG) into; not for ``"local"``.
    radius : mean and local: every row lies within this distance of a public centre.
    std : mean and local: root of a row's total variance; the largest it can be by default.
    moment, moment_bound : mean: in place of ``radius``, the order of a bounded moment of the distance, and the bound of its root.
    target : mean: ``"population"`` or ``"empirical"``.
    exact : mean: only estimators whose guarantee holds for the released bits.
    steps, expected_batch, public_batch, clip_norm : train: as for the run.
    gradient_std : train: root of a row's total gradient variance.
    lipschitz, diameter, strong_convexity : train: constants of the loss and of the set of models, for the rates.
    mean_norm : local: the length of the mean vector; 0 by default, where reports are furthest off.

    Returns
    -------
    Answer : ``estimators`` or ``algorithms`` or ``randomizers``, ``best``, ``rates`` and more.

    Examples
    --------
    >>> answer = plan("mean", n_private=9000, n_public=1000, dim=20, radius=5, std=2, rho=0.01)
    >>> answer.best, round(answer.gain["throw-away"], 2)
    ('weighted-gaussian', 3.38)
    """
    return ask(named("plan", what, ("mean", "train", "local"), options), options)


def named(command: str, what: str, known: tuple[str, ...], options: dict[str, Any]) -> str:
    """A command and the one of its parts that was asked for."""
    if what not in known:
        raise InvalidParameterError(f"what must be one of {', '.join(known)}, got {what!r}", parameter="what")
    for name in _OF_THE_SHELL:
        if name in options:
            raise InvalidParameterError(f"{name} must be left out: there is no such parameter", parameter=name)
    return f"{command} {what}"
