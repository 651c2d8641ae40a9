"""Public rows as an argument that nobody slices, and what was done to private rows on the way to a fit."""

from __future__ import annotations

import sys
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


#: Calls between a user's `fit` and the estimator's; a pipeline in a search in a pipeline has some twenty.
_DEPTH = 60


def untransformed_by() -> str | None:
    """The pipeline's steps that were applied to private rows alone, if the caller is being fitted by such a pipeline."""
    frame = sys._getframe(2)
    for _ in range(_DEPTH):
        if frame is None:
            return None
        owner: Any = frame.f_locals.get("self")
        if frame.f_code.co_name == "fit" and hasattr(owner, "steps") and hasattr(owner, "transform_input"):
            taken = owner.transform_input or []
            before = [name for name, step in owner.steps[:-1] if step is not None and step != "passthrough"]
            return ", ".join(before) if before and "X_public" not in taken else None
        frame = frame.f_back  # type: ignore[assignment]
    return None


def is_cross_validated() -> bool:
    """Whether the caller is being fitted by a cross-validation or a search of scikit-learn."""
    frame = sys._getframe(2)
    for _ in range(_DEPTH):
        if frame is None:
            return False
        where = str(frame.f_globals.get("__name__", ""))
        if where.startswith("sklearn.model_selection"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
