"""Public rows as an argument that nobody slices, and what was done to private rows on the way to a fit."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from .errors import InvalidParameterError


class PublicData:
    """Public rows and their labels in one opaque object.

    Cross-validation cuts every argument of ``fit`` that is as long as ``X`` into the same folds, public rows included. This object
    has no length, so that all of its rows reach every fit.

    >>> from semidp import PublicData
    >>> PublicData([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    PublicData(rows=2)
    """

    __slots__ = ("X", "y")

    def __init__(self, X: Any, y: Any) -> None:
        rows = [len(part) if hasattr(part, "__len__") and not hasattr(part, "shape") else part.shape[0] for part in (X, y)]
        if rows[0] != rows[1]:
            raise InvalidParameterError(f"y must have a label for each of the {rows[0]} rows of X, got {rows[1]}", parameter="y")
        self.X = X
        self.y = y

    def __repr__(self) -> str:
        rows = self.y.shape[0] if hasattr(self.y, "shape") else len(self.y)
        return f"PublicData(rows={rows})"

    def __deepcopy__(self, memo: dict[int, Any]) -> PublicData:
        # It is never changed, and `clone` should not copy rows.
        return self


#: Parts of scikit-learn that hand a call on and change nothing.
_HARMLESS = ("sklearn.base", "sklearn.pipeline", "sklearn.utils", "sklearn._config", "sklearn.frozen")
#: A step that keeps what it was fitted on before. What it does to rows is that of the step in it.
_FROZEN = "sklearn.frozen._frozen.FrozenEstimator"
#: Steps of scikit-learn that look at all rows they transform at once, fitted or not.
_JOINT = frozenset(
    {
        "sklearn.preprocessing._function_transformer.FunctionTransformer",
        "sklearn.decomposition._nmf.NMF",
        "sklearn.decomposition._nmf.MiniBatchNMF",
    }
)
#: Steps of scikit-learn that learn nothing from the rows they are given, and treat each row on its own. Every other step counts as fitted on
#: private rows: a FunctionTransformer among them, whose function is handed all rows at once, and any class of somebody else's.
_FIXED = frozenset(
    {
        "sklearn.preprocessing._data.Normalizer",
        "sklearn.preprocessing._data.Binarizer",
        "sklearn.feature_extraction.text.HashingVectorizer",
        "sklearn.feature_extraction._hash.FeatureHasher",
    }
)


def _is_fixed(step: Any) -> bool:
    """Whether a step is one of those; a subclass of theirs, which may do anything, is not."""
    name = _class_name(step)
    return _is_fixed_if_frozen(step.estimator) if name == _FROZEN else name in _FIXED


def _is_fixed_if_frozen(step: Any) -> bool:
    """Whether a fitted step of scikit-learn, and all steps in it, treat each row on its own when they transform."""
    if isinstance(step, (list, tuple)):
        return all(_is_fixed_if_frozen(part) for part in step)
    if not hasattr(step, "get_params"):
        return True
    name = _class_name(step)
    if not name.startswith("sklearn.") or name in _JOINT:
        return False
    # Pipelines, unions and transformers of columns have their steps among their parameters.
    return all(_is_fixed_if_frozen(value) for value in step.get_params(deep=False).values())


def _class_name(step: Any) -> str:
    return f"{type(step).__module__}.{type(step).__qualname__}"


@dataclass
class Surroundings:
    """Who is fitting: what happens to private rows around an estimator is not covered by its guarantee."""

    #: Steps of pipelines that were fitted on private rows.
    fitted_steps: list[str] = field(default_factory=list)
    #: Those that were applied to private rows and not to ``X_public``.
    private_only: list[str] = field(default_factory=list)
    is_cross_validated: bool = False
    #: Other parts of scikit-learn that fit, copy or transform.
    others: list[str] = field(default_factory=list)


def surroundings(is_opaque: bool) -> Surroundings:
    """Looks at all calls above the caller's. Public rows in an opaque object are transformed by nobody."""
    found = Surroundings()
    pipelines: set[int] = set()
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        where = str(frame.f_globals.get("__name__", ""))
        owner: Any = frame.f_locals.get("self")
        if where == "sklearn.pipeline" and hasattr(owner, "steps") and hasattr(owner, "transform_input") and id(owner) not in pipelines:
            pipelines.add(id(owner))
            before = [(name, step) for name, step in owner.steps[:-1] if step is not None and not isinstance(step, str)]
            found.fitted_steps += [name for name, step in before if not _is_fixed(step)]
            if is_opaque or "X_public" not in (owner.transform_input or []):
                found.private_only += [name for name, _ in before]
        elif where.startswith("sklearn.model_selection"):
            found.is_cross_validated = True
        elif where.startswith("sklearn.") and not where.startswith(_HARMLESS):
            name = where if owner is None else type(owner).__name__
            if name not in found.others:
                found.others.append(name)
        frame = frame.f_back
    return found
