"""Choosing by public rows alone, at no cost.

Cross-validation on private rows spends the budget anew in every fit, and its scores tell about those rows what no guarantee covers. Here
some public rows play the part of the private ones, others stay public, and the rest are scored.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold

from ._public import PublicData
from ._rows import rows_at
from .errors import InvalidParameterError, SemidpWarning

#: The largest epsilon that stand-ins are given: noise hardly matters there, and accountants still answer.
_LARGEST_EPSILON = 50.0


@dataclass(frozen=True)
class Selection:
    """What was chosen, and how everything fared.

    ``estimator`` is unfitted and has the best parameters. ``results`` has an entry for each setting, the best first.
    """

    best_params: dict[str, Any]
    best_score: float
    estimator: Any = field(repr=False)
    results: list[dict[str, Any]] = field(repr=False)


def select_on_public(
    estimator: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    public: PublicData,
    *,
    n_private: int | None = None,
    cv: Any = 3,
    scoring: Any = None,
    stand_ins: float = 0.5,
    random_state: int = 0,
) -> Selection:
    """Chooses hyper-parameters by public rows alone: no private row is looked at, and nothing is spent.

    Parameters
    ----------
    estimator : one of semidp's, unfitted; it is not changed.
    grid : values to try by parameter, as for scikit-learn's ``ParameterGrid``.
    public : the public rows.
    n_private : how many private rows the final fit will have. If given, stand-ins get so much more epsilon that noise matters to
        them as much as it will matter then. (Under add-remove that number is secret: give a public guess.)
    cv : folds, or a splitter of scikit-learn.
    scoring : as in scikit-learn; the estimator's own ``score`` by default.
    stand_ins : the share of the training rows of a fold that play the part of private rows.
    random_state : of the splits and of the stand-ins' noise, which protects nobody.

    >>> import numpy as np
    >>> from semidp import LinearRegression, PublicData
    >>> from semidp.model_selection import select_on_public
    >>> rows = np.random.default_rng(0)
    >>> X = rows.normal(size=(600, 3)); y = X @ [1.0, 2.0, 3.0] + rows.normal(size=600)
    >>> chosen = select_on_public(LinearRegression(epsilon=1.0, delta=1e-6), {"l2": [None, 100.0]}, PublicData(X, y), n_private=20_000)
    >>> chosen.best_params
    {'l2': None}
    """
    if not isinstance(public, PublicData):
        raise InvalidParameterError("public must be a PublicData(X, y)", parameter="public")
    if not 0 < stand_ins < 1:
        raise InvalidParameterError("stand_ins must be a number between 0 and 1", parameter="stand_ins")
    X, y = public.X, public.y
    if isinstance(y, np.ma.MaskedArray):
        # Public rows without a label teach nothing.
        known = np.flatnonzero(~np.ma.getmaskarray(y).ravel())
        X, y = rows_at(X, known), y.ravel()[known]
    y = np.asarray(y)
    score = check_scoring(estimator, scoring)
    folds = StratifiedKFold if is_classifier(estimator) else KFold
    splitter = folds(cv, shuffle=True, random_state=random_state) if isinstance(cv, int) else cv
    splits = list(splitter.split(np.zeros(len(y)), y))
    results = []
    for parameters in ParameterGrid(grid):
        scores = [
            _fold(clone(estimator).set_params(**parameters), X, y, fold, n_private, score, stand_ins, random_state) for fold in splits
        ]
        mean, error = float(np.mean(scores)), float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else 0.0
        results.append({"params": parameters, "mean_score": mean, "standard_error": error, "scores": scores})
    results.sort(key=lambda result: -result["mean_score"])
    best = results[0]
    return Selection(dict(best["params"]), best["mean_score"], clone(estimator).set_params(**best["params"]), results)


def _fold(
    model: Any,
    X: Any,
    y: npt.NDArray[Any],
    fold: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]],
    n_private: int | None,
    score: Any,
    share: float,
    seed: int,
) -> float:
    training, held_out = fold
    training = np.random.default_rng(seed).permutation(training)
    private, public = np.split(training, [max(1, round(share * len(training)))])
    model.set_params(random_state=seed, ledger=None, dataset=None, checkpoint=None, resume=None, strict=False)
    # Stand-ins are public: their noise need not hide anybody.
    model.set_params(allow_weak_noise=True)
    if n_private is not None and model.epsilon is not None:
        model.set_params(epsilon=min(_LARGEST_EPSILON, model.epsilon * max(1.0, n_private / len(private))))
    if is_classifier(model) and model.classes is None:
        model.set_params(classes=np.unique(y))
    with warnings.catch_warnings():
        # All of these rows are public: there is nothing to warn of.
        warnings.simplefilter("ignore", SemidpWarning)
        model.fit(rows_at(X, private), y[private], X_public=rows_at(X, public), y_public=y[public])
        return float(score(model, rows_at(X, held_out), y[held_out]))
