"""The estimators: linear models in the manner of scikit-learn."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, ClassVar, TypeVar, Unpack

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.multiclass import check_classification_targets

from . import _cells, _tables
from ._estimator_base import CLASSES_LEAKED, PrivateLinearModel, signed
from ._parameters import Parameters, pair
from ._rows import label_vector, missing_labels, weight_vector, without_values
from .errors import InvalidParameterError, PrivacyLeakWarning, UnknownClassError, UnsupportedTypeError

_PARAMETERS = """
    Parameters
    ----------
    epsilon, delta, rho : the budget of a fit, which must be given: ``epsilon`` at ``delta`` (none with local trust, where epsilon is pure), or
        ``rho`` of zCDP, in which case epsilon is stated at ``delta``. An object that fits more than once spends it each time.
    adjacency : ``"replace-one"`` (the number of private rows is public) or ``"add-remove"`` (it is secret; ``sample_rate`` and
        ``expected_batch`` must be given).
    trust : ``"central"``, or ``"local"``: each private row is randomised on its own before anybody sees it.
    algorithm : ``"auto"``, the autopilot, or a name from ``semidp train --help``.
    fit_intercept : whether scores have a constant term of their own. Columns, and numbers to predict, are centred about their public means
        either way, so that in the units of the columns ``intercept_`` is what that leaves.{own}
    clip_norm, sampling, sample_rate, expected_batch, steps, learning_rate, alpha, public_gradient, public_batch, average, start, l2, domain :
        hyper-parameters, each chosen from public rows, counts and theory unless given (``start`` is the command line's ``--warm-start``).
    feature_range : least and greatest value of every feature, for fits without public rows. Numbers beyond are moved to the nearer end.
    schema : what columns mean, as ``semidp schema`` writes it (a dictionary or a path), the labels in a column ``y``; learned from public rows
        unless given.
    strict : ``False``, the default, replaces missing and infinite numbers in private rows by what public rows say, and leaves rows with unknown
        labels out of all sums. ``True`` refuses such rows: whether the check passes is an exact fact about private rows that no guarantee
        covers, and a warning and the certificate say so.
    allow_weak_noise : accept Gaussian noise below 0.3 times the clip norm, in which a single step shows whether a row took part in it.
    ledger, dataset : the ledger that pays, and the name of the private rows in it.
    checkpoint, resume : where to keep the run while it lasts, and where to go on from.
    on_step : called before the first step and after each with the number of steps done and of all steps. An exception ends the fit; what
        was spent stays spent.
    random_state : ``None`` draws from the operating system. A number makes the fit reproducible and **not private**.
    threads : at most so many; it makes no difference to the result.
    copy_X : large arrays are read where they lie in every step. ``True`` lets the kernel keep an encoded copy of its own (four bytes
        a cell): more memory for faster steps, and the same result.

    Attributes
    ----------
    coef_, intercept_ : the model in the units of the columns. Rows are moved into the range of the public rows first.
    certificate_ : what is promised about the private rows; ``certificate_.verify()`` recomputes it.
    algorithm_, hyperparameters_ : what was chosen, and where each choice came from.
    answer_ : everything that ``semidp train --json`` would say.
    model_ : the text of the model file; ``save_model`` writes it.{attributes}
"""


Kind = TypeVar("Kind", bound=type[Any])


def _finished(kind: Kind) -> Kind:
    """Puts the common parameters where a docstring says ``{parameters}``, and into the signature of the constructor."""
    signed(kind)
    own = "".join(text for name, text in _OWN.items() if name in inspect.signature(kind.__init__).parameters)
    attributes = _CLASSES_FOUND if kind._task == "classification" else ""
    shared = _PARAMETERS.replace("{own}", own).replace("{attributes}", attributes)
    kind.__doc__ = (kind.__doc__ or "").replace("{parameters}", shared.strip())
    return kind


_OWN = {
    "classes": """
    classes : all classes that there are. By default those of the public labels; without public labels those of the private ones,
        with a :class:`~semidp.errors.PrivacyLeakWarning`.""",
    "target_range": """
    target_range : least and greatest label, for fits without public rows, which teach centre and scale of the labels.""",
    "huber_delta": """
    huber_delta : where the loss turns from quadratic to linear, in standard deviations of the public labels.""",
}
_CLASSES_FOUND = """
    classes_ : the classes, in the order of the columns of ``predict_proba``."""


def _floats(labels: npt.NDArray[Any]) -> Any:
    """Numbers in double precision; ``None`` if some are no numbers. No error quotes them."""

    @_cells.total(None)
    def read() -> Any:
        with _cells.quiet():
            return labels.astype(np.float64, copy=False)

    return read()


def _distinct(labels: Any, name: str) -> npt.NDArray[Any]:
    """The classes that labels have."""
    if labels.dtype.kind == "O":
        labels = without_values(name, lambda: np.asarray(labels[~missing_labels(labels)].tolist()))
    without_values(name, lambda: check_classification_targets(labels))
    return without_values(name, lambda: np.unique(labels))


class _Regressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """A number is predicted."""

    _task: ClassVar[str] = "regression"

    def __init__(self, *, target_range: tuple[float, float] | None = None, **parameters: Unpack[Parameters]) -> None:
        super().__init__(**parameters)
        self.target_range = target_range

    def _labels(self, y: Any, name: str) -> tuple[npt.NDArray[Any], bool]:
        labels = np.asarray(y)
        if labels.dtype != np.float32:
            # Without a strict check, a private label that is no number counts as missing.
            is_total = name == "y" and not self.strict and labels.dtype.kind in "OUS"
            labels = _cells.floats(labels) if is_total else _floats(labels)
        if labels is None:
            raise InvalidParameterError(f"{name} must hold numbers", parameter=name)
        if name == "y_public" and float(np.ptp(labels)) == 0.0:
            raise InvalidParameterError("y_public must vary: it teaches the scale of the labels", parameter="y_public")
        return labels, False

    def _label_schema(self) -> dict[str, Any]:
        if self.target_range is None:
            return {"kind": "number", "impute": 0.0}
        least, greatest = pair(self.target_range, "target_range")
        return {"kind": "number", "impute": (least + greatest) / 2, "range": [least, greatest]}

    def _set_coefficients(self, coef: npt.NDArray[np.float64], intercept: npt.NDArray[np.float64]) -> None:
        self.coef_ = coef[0]
        self.intercept_ = float(intercept[0])

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The predicted numbers, a row each."""
        return np.ascontiguousarray(self._scores(X)[:, 0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R squared of the predictions for these rows, exactly: of private rows that is a release which no epsilon covers.

        Rows whose target is missing, infinite or no number are left out. NaN if fewer than two rows are left.
        """
        self._warn_of_score()
        predicted = self.predict(X)
        targets = _cells.floats(label_vector(y, len(predicted), "y", False, self._is_counted()))
        if targets.dtype.kind != "f":
            raise UnsupportedTypeError("y must hold numbers", parameter="y")
        weights = None if sample_weight is None else weight_vector(sample_weight, len(predicted))
        is_known = np.isfinite(targets) if weights is None else np.isfinite(targets) & (weights != 0)
        if is_known.sum() < 2:
            return float("nan")
        known_weights = None if weights is None else weights[is_known]
        with _cells.quiet():
            return without_values("y", lambda: float(r2_score(targets[is_known], predicted[is_known], sample_weight=known_weights)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class _Classifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    """One of some classes is predicted."""

    _task: ClassVar[str] = "classification"
    classes_: npt.NDArray[Any]

    def __init__(self, *, classes: Any = None, **parameters: Unpack[Parameters]) -> None:
        super().__init__(**parameters)
        self.classes = classes

    def _encode_labels(self, y: Any, public_y: Any, leaks: list[str]) -> None:
        if self.classes is not None:
            self.classes_ = without_values("classes", lambda: np.unique(np.asarray(self.classes)))
        elif public_y is not None:
            self.classes_ = _distinct(public_y, "y_public")
        else:
            self.classes_ = _distinct(y, "y")
            leaks.append(CLASSES_LEAKED)
            warnings.warn(
                "the classes are taken from the private labels, which no guarantee covers: give classes=[...], or public labels",
                PrivacyLeakWarning,
                stacklevel=4,
            )
        if len(self.classes_) < 2:
            where = "classes" if self.classes is not None else "y_public" if public_y is not None else "y"
            raise InvalidParameterError(
                f"{where} must have at least two classes; the number of classes has to be greater than one, got {len(self.classes_)} class",
                parameter=where,
            )

    def _labels(self, y: Any, name: str) -> tuple[npt.NDArray[Any], bool]:
        y = np.asarray(y)
        places, is_known = _cells.places(self.classes_, y)
        if not is_known.all() and (name == "y_public" or self.strict):
            where = "classes" if self.classes is not None else "the public labels"
            raise UnknownClassError(
                f"{name} must hold classes that {where} have; it has others",
                hint="give classes=[...] with all of them; strict=False leaves such private rows out of all sums",
                parameter=name,
            )
        return np.where(is_known, places, -1).astype(np.int32), True

    def _label_schema(self) -> dict[str, Any]:
        return {"kind": "category", "values": [str(code) for code in range(self._classes_count())]}

    def _classes_count(self) -> int:
        return len(self.classes_)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """The scores of each row: one for two classes, and else one a class."""
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return np.ascontiguousarray(scores[:, -1] - scores[:, 0] if scores.shape[1] == 2 else scores[:, 0])
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of the largest score, a row each."""
        places = self._predicted_places(X)
        return np.asarray(self.classes_[places])

    def _predicted_places(self, X: Any) -> npt.NDArray[np.intp]:
        """The place of each row's class among the classes."""
        scores = self.decision_function(X)
        return np.asarray((scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of the predictions for these rows, exactly: of private rows that is a release which no epsilon covers.

        A label that is missing or none of the classes counts as wrong.
        """
        self._warn_of_score()
        predicted = self._predicted_places(X)
        places, is_known = _cells.places(self.classes_, label_vector(y, len(predicted), "y", False, self._is_counted()))
        is_right = is_known & (places == predicted)
        if sample_weight is None:
            return float(is_right.mean())
        weights = weight_vector(sample_weight, len(predicted))
        return float(weights[is_right].sum() / weights.sum()) if weights.sum() != 0 else float("nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


@_finished
class LinearRegression(_Regressor):
    """Least squares on private rows, with the help of public ones.

    {parameters}

    Examples
    --------
    >>> import numpy as np, warnings
    >>> from semidp import LinearRegression
    >>> rows = np.random.default_rng(0)
    >>> X = rows.normal(size=(5000, 3)); y = X @ [1.0, -2.0, 0.5] + 3 + 0.1 * rows.normal(size=5000)
    >>> model = LinearRegression(epsilon=1.0, delta=1e-6)
    >>> model = model.fit(X[200:], y[200:], X_public=X[:200], y_public=y[:200])
    >>> bool(model.score(X, y) > 0.99), bool(model.certificate_.epsilon <= 1.0)
    (True, True)
    """

    def _loss(self, classes: int) -> str | None:
        return "squared"


@_finished
class HuberRegressor(_Regressor):
    """Robust regression by Huber's loss on private rows, with the help of public ones.

    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> from semidp import HuberRegressor
    >>> rows = np.random.default_rng(0)
    >>> X = rows.normal(size=(5000, 3)); y = X @ [1.0, -2.0, 0.5] + rows.standard_t(df=2, size=5000)
    >>> model = HuberRegressor(epsilon=2.0, delta=1e-6).fit(X[300:], y[300:], X_public=X[:300], y_public=y[:300])
    >>> bool(abs(model.coef_ - [1.0, -2.0, 0.5]).max() < 0.2)
    True
    """

    def __init__(
        self,
        *,
        huber_delta: float = 1.0,
        target_range: tuple[float, float] | None = None,
        **parameters: Unpack[Parameters],
    ) -> None:
        super().__init__(target_range=target_range, **parameters)
        self.huber_delta = huber_delta

    def _loss(self, classes: int) -> str | None:
        try:
            delta = float(self.huber_delta)
        except (TypeError, ValueError):
            delta = float("nan")
        if not 0 < delta < float("inf"):
            raise InvalidParameterError("huber_delta must be a number above 0", parameter="huber_delta")
        return f"huber:{delta!r}"


@_finished
class LogisticRegression(_Classifier):
    """Logistic regression, softmax for more than two classes, on private rows with the help of public ones.

    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> from semidp import LogisticRegression
    >>> rows = np.random.default_rng(0)
    >>> X = rows.normal(size=(5000, 3)); y = np.where(X @ [1.0, -2.0, 0.5] > rows.logistic(size=5000), "yes", "no")
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6)
    >>> model = model.fit(X[200:], y[200:], X_public=X[:200], y_public=y[:200])
    >>> bool(model.score(X, y) > 0.75), model.predict_proba(X).shape
    (True, (5000, 2))
    """

    def _loss(self, classes: int) -> str | None:
        return "logistic" if classes == 2 else "softmax"

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, a row each."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        parts = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(parts / parts.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Its logarithm."""
        return np.asarray(np.log(self.predict_proba(X)))


@_finished
class LinearSVC(_Classifier):
    """A linear support vector machine for two classes (hinge loss) on private rows, with the help of public ones.

    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> from semidp import LinearSVC
    >>> rows = np.random.default_rng(0)
    >>> X = rows.normal(size=(5000, 3)); y = X @ [1.0, -2.0, 0.5] > 0.3 * rows.normal(size=5000)
    >>> model = LinearSVC(epsilon=2.0, delta=1e-6).fit(X[300:], y[300:], X_public=X[:300], y_public=y[:300])
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    def _loss(self, classes: int) -> str | None:
        if classes > 2:
            raise InvalidParameterError(
                "Only binary classification is supported. classes must be two for LinearSVC: the type of the target is multiclass; "
                "LogisticRegression takes more",
                parameter="classes",
            )
        return "hinge"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
