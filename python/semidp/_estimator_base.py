"""What the estimators have in common: from arrays to a trained model with a certificate."""

from __future__ import annotations

import inspect
import json
import math
import os
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from . import _memory, _native, _tables
from ._ask import Answer, Certificate, end, release, tell, words
from ._files import Files, write_whole
from ._parameters import FLAGS, PASSED_ON, pair, seed_of
from .accounting import Accountant
from ._public import PublicData, surroundings
from ._rows import coerced, finite_frame, label_vector, missing_labels, rows_at, without_values
from .errors import (
    InvalidParameterError,
    PrivacyLeakWarning,
    PrivateScoreWarning,
    PublicDataRequiredError,
    PublicRowsNotTransformedWarning,
    SemidpError,
    SemidpWarning,
)

Self = TypeVar("Self", bound="PrivateLinearModel")

#: What stands on a certificate after checks whose outcome depends on private rows.
CHECKED = (
    "a check of the private rows came first (missing or infinite numbers, unknown labels): that it passed, or that it failed, "
    "is covered by no guarantee"
)
CLASSES_LEAKED = "the list of classes was taken from private labels: it is covered by no guarantee"
SELECTED = (
    "this model was fitted by a cross-validation or search on private rows: scores and choices made by them are covered by no guarantee"
)
TRANSFORMED = (
    "the rows were transformed by steps that were fitted on private rows ({}): the guarantee is about the transformed rows, as if that "
    "transformation were public, and does not cover it"
)
WRAPPED = "this model was fitted inside {}: how that chose, copied or transformed private rows, and how often it fitted, is covered by no guarantee"

def signed(kind: type[Any]) -> type[Any]:
    """Spells out the parameters that a constructor passes on as ``**parameters``, where scikit-learn looks for them."""
    own = inspect.signature(kind.__init__)
    common = inspect.signature(PrivateLinearModel.__init__).parameters.values()
    listed = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    known = {each.name for each in listed}
    listed += [each for each in common if each.name not in known]
    kind.__init__.__signature__ = own.replace(parameters=listed)
    return kind


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """A linear model of private rows, with the help of public ones.

    Subclasses say what is predicted and which loss is minimised.
    """

    #: With metadata routing, these reach `fit` through pipelines and searches without further ado.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"X_public": True, "y_public": True, "public": True}
    _task: ClassVar[str]

    certificate_: Certificate
    answer_: Answer
    model_: str
    n_features_in_: int

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        adjacency: str = "replace-one",
        trust: str = "central",
        algorithm: str = "auto",
        fit_intercept: bool = True,
        clip_norm: float | None = None,
        sampling: str | None = None,
        sample_rate: float | None = None,
        expected_batch: float | None = None,
        steps: int | None = None,
        learning_rate: float | None = None,
        alpha: float | str | None = None,
        public_gradient: str | None = None,
        public_batch: int | None = None,
        average: str | None = None,
        start: str | None = None,
        l2: float | None = None,
        domain: str = "everywhere",
        feature_range: tuple[float, float] | None = None,
        schema: dict[str, Any] | str | os.PathLike[str] | None = None,
        strict: bool = False,
        allow_weak_noise: bool = False,
        ledger: str | os.PathLike[str] | None = None,
        dataset: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: str | os.PathLike[str] | None = None,
        on_step: Callable[[int, int], object] | None = None,
        random_state: Any = None,
        threads: int | None = None,
        copy_X: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.adjacency = adjacency
        self.trust = trust
        self.algorithm = algorithm
        self.fit_intercept = fit_intercept
        self.clip_norm = clip_norm
        self.sampling = sampling
        self.sample_rate = sample_rate
        self.expected_batch = expected_batch
        self.steps = steps
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.public_gradient = public_gradient
        self.public_batch = public_batch
        self.average = average
        self.start = start
        self.l2 = l2
        self.domain = domain
        self.feature_range = feature_range
        self.schema = schema
        self.strict = strict
        self.allow_weak_noise = allow_weak_noise
        self.ledger = ledger
        self.dataset = dataset
        self.checkpoint = checkpoint
        self.resume = resume
        self.on_step = on_step
        self.random_state = random_state
        self.threads = threads
        self.copy_X = copy_X

    # What subclasses decide.

    def _loss(self, classes: int) -> str | None:
        raise NotImplementedError

    def _encode_labels(self, y: Any, public_y: Any, leaks: list[str]) -> None:
        """Learns what labels there are. Public ones first: private ones are looked at only with a warning."""

    def _labels(self, y: Any, name: str) -> tuple[npt.NDArray[Any], bool]:
        """Labels as the native half takes them, and whether they are classes."""
        raise NotImplementedError

    def _label_schema(self) -> dict[str, Any]:
        raise NotImplementedError

    def _classes_count(self) -> int:
        return 0

    # Fitting.

    def fit(
        self: Self,
        X: Any,
        y: Any,
        *,
        X_public: Any = None,
        y_public: Any = None,
        public: PublicData | None = None,
    ) -> Self:
        """Trains on private rows ``X`` and ``y``, with the help of public rows.

        Parameters
        ----------
        X, y : the **private** rows and their labels. Every argument that is not called public is private, so that a forgotten
            one fails safe.
        X_public, y_public : the public rows and their labels.
        public : both of them in a :class:`PublicData`, which cross-validation never slices.
        """
        self._forget()
        X_public, y_public = self._public(X_public, y_public, public)
        not_covered = self._look_around(X_public is not None, public is not None)
        try:
            said, pending = self._fit(X, y, X_public, y_public, not_covered)
        except BaseException:
            self._forget()
            raise
        try:
            # From here on the model is there, and stays if a warning is an error.
            total = self._add_up()
            tell(said, stacklevel=2)
            end(pending, stacklevel=2)
        finally:
            release(pending)
        if total is not None:
            warnings.warn(total, SemidpWarning, stacklevel=2)
        return self

    def _fit(
        self, X: Any, y: Any, X_public: Any, y_public: Any, not_covered: list[str]
    ) -> tuple[list[str], _native.Pending | None]:
        """Fits. Returns what to warn of, and the run if it can be repeated at no cost until it is ended."""
        self._check_own_parameters(X_public is not None)
        _memory.refuse_shared(X, X_public)
        X, X_public = _tables.whole(X), _tables.whole(X_public)
        numeric = self._numeric(X, X_public)
        X, y = self._validated(X, y, numeric, _tables.width_of(X_public, self.schema, has_label=True))
        if X_public is not None:
            X_public, y_public = self._validated_public(X_public, y_public, numeric is not None)
        self._encode_labels(y, y_public, not_covered)
        if self.strict:
            not_covered.append(CHECKED)
            warnings.warn(
                "strict=True checks private rows: whether it refuses them is an exact fact about single rows, which no guarantee covers; "
                "strict=False, the default, treats such rows like all others",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        names = self._column_names()
        label = _tables.LABEL
        while label in names:
            label += "_"
        tables = {"private": self._table(X, y, names, label, "y", numeric)}
        if X_public is not None:
            tables["public"] = self._table(X_public, y_public, names, label, "y_public", numeric)
        pending = None
        try:
            text, (answer, said, pending) = self._train(tables, label, names, not_covered)
            self.answer_ = Answer(answer)
            self.certificate_ = Certificate(self.answer_["certificate"])
            self._take(text)
        except BaseException:
            release(pending)
            raise
        return said, pending

    def _add_up(self) -> str | None:
        """Says what this object has spent in all its fits, where no ledger adds them up."""
        has_guarantee = self.certificate_["guarantee"]["epsilon"] is not None
        if self.ledger is not None or (has_guarantee and not self.certificate_["events"]):
            return None
        # A list of its own, so that copies of this object go on by themselves.
        self._fits = [*getattr(self, "_fits", []), self.certificate_]
        covered = [fit for fit in self._fits if fit["guarantee"]["epsilon"] is not None]
        if len(self._fits) < 2 or not covered:
            return None
        outside = len(self._fits) - len(covered)
        return (
            f"this object has fitted private rows {len(self._fits)} times without a ledger: if they were the same rows, {len(covered)} fits "
            f"together cost {_total(covered)}"
            + (f", and {outside} of them (algorithm='non-private') had no guarantee at all" if outside else "")
            + "; ledger=... and dataset=... keep count, and refuse what is too much"
        )

    def _warn_of_score(self) -> None:
        warnings.warn(
            "this score is exact: if the rows are private, it is a release that NO epsilon covers",
            PrivateScoreWarning,
            stacklevel=3,
        )

    def _check_own_parameters(self, has_public: bool) -> None:
        """Refuses what the command would not see."""
        for name in FLAGS:
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InvalidParameterError(f"{name} must be True or False", parameter=name)
        if self.on_step is not None and not callable(self.on_step):
            raise InvalidParameterError("on_step must be a function of the steps done and of all steps", parameter="on_step")
        if self.epsilon is None and self.rho is None and self._spends(has_public):
            raise InvalidParameterError(
                "epsilon must be given, or rho: nobody else chooses what may be spent on private rows",
                hint=f"{type(self).__name__}(epsilon=1.0, delta=1e-6), with delta far below one over the number of private rows",
                parameter="epsilon",
            )
        if self.rho is None and self.delta is None and self._spends(has_public) and not self._is_local():
            raise InvalidParameterError(
                "delta must be given with epsilon: training adds Gaussian noise, which has one",
                hint=f"{type(self).__name__}(epsilon={self.epsilon!r}, delta=1e-6), far below one over the number of private rows",
                parameter="delta",
            )
        if self.epsilon is not None and self.rho is not None:
            raise InvalidParameterError("epsilon and rho must not both be given: each is a budget", parameter="rho")
        for name in ("feature_range", "target_range"):
            given = getattr(self, name, None)
            if given is None:
                continue
            pair(given, name)
            if has_public:
                raise InvalidParameterError(f"{name} must be left out with public rows, which teach it", parameter=name)
            if self.schema is not None:
                raise InvalidParameterError(f"{name} must be left out with a schema, which says it", parameter=name)

    def _spends(self, has_public: bool) -> bool:
        """Whether a fit needs a budget."""
        return self.algorithm != "non-private" and not (self.algorithm == "throw-away" and has_public)

    def _is_local(self) -> bool:
        return self.trust == "local" or "ldp" in str(self.algorithm)

    def _numeric(self, X: Any, X_public: Any) -> list[bool] | None:
        """Which columns are numbers, if not all are. The schema says so, or the public rows: a cell of a private row never does."""
        if self.schema is not None and _tables.is_frame(X):
            numbers = _tables.numbers_of_schema(self.schema)
            numeric = [numbers.get(name, True) for name in _tables.frame_names(X)]
        elif X_public is not None and _tables.is_frame(X_public):
            places = range(len(_tables.frame_names(X_public)))
            numeric = [_tables.is_numeric(_tables.frame_column(X_public, place)) for place in places]
        else:
            return None
        return None if all(numeric) else numeric

    def _forget(self) -> None:
        """A fit that fails must not leave some of the last one behind."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _look_around(self, has_public: bool, is_opaque: bool) -> list[str]:
        """Warns of what is done to private rows around this fit, and says what no guarantee covers for it."""
        around = surroundings(is_opaque)
        not_covered = []

        def leak(text: str, line: str) -> None:
            warnings.warn(text, PrivacyLeakWarning, stacklevel=4)
            not_covered.append(line)

        if has_public and around.private_only:
            warnings.warn(
                f"the steps before this one ({', '.join(around.private_only)}) were applied to the private rows only, not to the public ones: "
                'give them as X_public to a Pipeline(transform_input=["X_public"]) with metadata routing, or transform them yourself',
                PublicRowsNotTransformedWarning,
                stacklevel=3,
            )
        if around.fitted_steps:
            steps = ", ".join(around.fitted_steps)
            leak(
                f"the steps before this one ({steps}) were fitted on private rows, which no guarantee covers: fit them on public rows and freeze "
                "them (sklearn.frozen.FrozenEstimator), or leave scaling to this estimator, which does it from public rows",
                TRANSFORMED.format(steps),
            )
        if around.is_cross_validated:
            leak(
                "cross-validation on private rows: every fit spends the budget anew, and neither the scores nor what is chosen by "
                "them is covered by any guarantee; semidp.model_selection.select_on_public chooses by public rows",
                SELECTED,
            )
        if around.others:
            others = ", ".join(around.others)
            leak(f"what {others} does with private rows, and how often it fits, is covered by no guarantee", WRAPPED.format(others))
        return not_covered

    def _public(self, X_public: Any, y_public: Any, public: PublicData | None) -> tuple[Any, Any]:
        if public is not None:
            if X_public is not None or y_public is not None:
                raise InvalidParameterError("public must not be given beside X_public and y_public", parameter="public")
            if not isinstance(public, PublicData):
                raise InvalidParameterError("public must be a PublicData(X, y)", parameter="public")
            return public.X, public.y
        for name, given, other in (("X_public", X_public, "y_public"), ("y_public", y_public, "X_public")):
            if given is None and (X_public is not None or y_public is not None):
                raise InvalidParameterError(f"{name} must be given with {other}", parameter=name)
        return X_public, y_public

    def _validated(self, X: Any, y: Any, numeric: list[bool] | None, width: int | None) -> tuple[Any, Any]:
        """Private rows as a matrix of numbers where they lie, or as the data frame that they are; and a label each."""
        if y is None:
            raise InvalidParameterError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs labels", parameter="y"
            )
        X = self._read(X, numeric, width, reset=True)
        return X, label_vector(y, _tables.rows_of(X), "y", self.strict, self._is_counted())

    def _is_counted(self) -> bool:
        """Whether the number of private rows is public."""
        return self.adjacency != "add-remove"

    def _read(self, X: Any, numeric: list[bool] | None, width: int | None, *, reset: bool) -> Any:
        """Rows to be protected, or to be predicted: of the right shape, and finite if the check is strict. Lists have rows of this width."""

        def checked(read: Callable[[], Any]) -> Any:
            return without_values("X", read, self._is_counted())

        if _tables.is_frame(X):
            checked(lambda: validate_data(self, X, skip_check_array=True, reset=reset))
            if numeric is not None:
                if self.strict and len(numeric) == self.n_features_in_ and not finite_frame(X, numeric):
                    raise InvalidParameterError("Input X contains NaN or infinity.", parameter="X")
                return X
            data = checked(lambda: _as_matrix(X if self.strict else coerced(X)))
            return checked(lambda: check_array(data, input_name="X", **self._checks()))
        if numeric is not None:
            raise InvalidParameterError("X must be a data frame, as X_public is", parameter="X")
        data = X if self.strict and not _tables.is_sparse(X) else checked(lambda: coerced(X, width))
        return checked(lambda: validate_data(self, data, reset=reset, **self._checks()))

    def _checks(self) -> dict[str, Any]:
        """What scikit-learn is asked to check of private rows. Under add-remove whether there are any is secret, too."""
        fewest = 1 if self.strict or self._is_counted() else 0
        return {
            "accept_sparse": "csr",
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": self.strict,
            "ensure_min_samples": fewest,
        }

    def _validated_public(self, X_public: Any, y_public: Any, by_columns: bool) -> tuple[Any, Any]:
        seen = _tables.frame_names(X_public) if _tables.is_frame(X_public) else None
        if by_columns and seen is None:
            raise InvalidParameterError("X_public must be a data frame, as X is", parameter="X_public")
        if by_columns:
            X, columns = X_public, len(seen or [])
        else:
            try:
                checks = {**self._checks(), "ensure_all_finite": False, "ensure_min_samples": 1}
                X = _tables.by_rows(X_public, "X_public") if _tables.is_sparse(X_public) else _as_matrix(X_public)
                X = check_array(X, input_name="X_public", **checks)
            except (TypeError, ValueError) as error:
                raise InvalidParameterError(f"X_public must be a matrix of numbers: {error}", parameter="X_public") from None
            columns = X.shape[1]
        if columns != self.n_features_in_:
            raise InvalidParameterError(
                f"X_public must have as many columns as X, {self.n_features_in_}, got {columns}", parameter="X_public"
            )
        named = getattr(self, "feature_names_in_", None)
        if named is not None and seen is not None and list(named) != seen:
            raise InvalidParameterError("X_public must have the columns of X, in their order", parameter="X_public")
        y = label_vector(y_public, _tables.rows_of(X), "y_public", strict=False)
        known = ~missing_labels(y)
        if not known.all():
            # As on the command line, public rows without a label teach nothing.
            X, y = rows_at(X, np.flatnonzero(known)), y[known]
        if y.dtype.kind == "O" and len(y):
            y = np.asarray(y.tolist())
        if len(y) == 0:
            raise InvalidParameterError("y_public must have a label for at least one row", parameter="y_public")
        return X, y

    def _column_names(self) -> list[str]:
        named = [str(name) for name in getattr(self, "feature_names_in_", [])]
        # Names that are no names would be left out.
        usable = bool(named) and all(named) and len(set(named)) == len(named)
        return named if usable else [f"x{place}" for place in range(self.n_features_in_)]

    def _table(
        self, X: Any, y: Any, names: list[str], label: str, name: str, numeric: list[bool] | None
    ) -> _native.Table:
        labels, are_classes = self._labels(y, name)
        where = "X" if name == "y" else "X_public"
        made = _tables.table(X, names, name=where, may_be_copied=bool(self.copy_X), numeric=numeric)
        if are_classes:
            made.add_category(label, labels.tolist(), [str(code) for code in range(self._classes_count())])
        else:
            made.add_numbers([label], _tables.matrix(labels))
        return made

    def _train(
        self, tables: dict[str, _native.Table], label: str, names: list[str], not_covered: list[str]
    ) -> tuple[str, _native.Parts]:
        has_public = "public" in tables
        if not has_public and self.algorithm in ("throw-away", "pda-md", "optimal-gain", "pda-first-order"):
            raise PublicDataRequiredError(f"X_public must be given for algorithm {self.algorithm!r}", parameter="X_public")
        is_noisy = self.algorithm not in ("throw-away", "non-private")
        if not has_public and is_noisy and (self.clip_norm is None or self.learning_rate is None):
            raise PublicDataRequiredError(
                "X_public must be given, or clip_norm and learning_rate, which would be learned from it",
                hint="fit(X, y, X_public=..., y_public=...); without public rows give clip_norm, learning_rate and, where features are not "
                "of order 1, feature_range",
                parameter="X_public",
            )
        classes = self._classes_count()
        options: dict[str, Any] = {name: getattr(self, name) for name in PASSED_ON}
        if not self._spends(has_public):
            options.update(epsilon=None, delta=None, rho=None)
        options.update(
            task=self._task,
            target=label,
            classes=[str(code) for code in range(classes)] if classes else None,
            loss=self._loss(classes),
            warm_start=self.start,
            no_intercept=not self.fit_intercept,
            allow_weak_noise=bool(self.allow_weak_noise),
            seed=seed_of(self.random_state),
            out="model",
            checkpoint=None if self.resume is not None else "none" if self.checkpoint is None else self.checkpoint,
        )
        schema: dict[str, Any] | str | os.PathLike[str] | None = self.schema
        if schema is None and not has_public:
            schema = self._plain_schema(names, label)
        with Files() as files:
            options["schema"] = files.json_unless_path("schema", schema)
            return _native.train(words("train", options), tables, self.on_step, not_covered)

    def _plain_schema(self, names: list[str], label: str) -> dict[str, Any]:
        """What columns mean where no public rows tell: numbers, within the given range."""
        number: dict[str, Any] = {"kind": "number", "impute": 0.0}
        if self.feature_range is not None:
            least, greatest = pair(self.feature_range, "feature_range")
            number.update(impute=(least + greatest) / 2, range=[least, greatest])
        columns = [{**number, "name": name} for name in names]
        return {"format": "semidp-schema/1", "columns": [*columns, {**self._label_schema(), "name": label}]}

    # The fitted model.

    def _take(self, text: str) -> None:
        """Takes what the model says into attributes."""
        self.model_ = text
        saved = json.loads(text)
        self.algorithm_ = saved["algorithm"]
        self.hyperparameters_ = dict(self.answer_["hyperparameters"])
        names, features = self._column_names(), saved["features"]
        outputs = saved["outputs"]
        weights = np.asarray(saved["weights"], dtype=np.float64).reshape(outputs, -1)
        intercept = weights[:, -1] if saved["has_intercept"] else np.zeros(outputs)
        target = saved["target"]
        unit, middle = (target["scale"], target["shift"]) if target["kind"] == "number" else (1.0, 0.0)
        columns = [column["name"] for column in saved["schema"]["columns"]]
        if all(feature["kind"] == "number" for feature in features):
            coef = np.zeros((outputs, len(names)))
            place = {name: at for at, name in enumerate(names)}
            for at, feature in enumerate(features):
                slope = weights[:, at] / feature["scale"]
                coef[:, place[columns[feature["column"]]]] = slope
                intercept = intercept - slope * feature["shift"]
            self.encoded_feature_names_ = names
        else:
            coef = weights[:, : len(features)].copy()
            self.encoded_feature_names_ = saved["feature_names"]
        self._set_coefficients(coef * unit, intercept * unit + middle)

    def _set_coefficients(self, coef: npt.NDArray[np.float64], intercept: npt.NDArray[np.float64]) -> None:
        self.coef_ = coef
        self.intercept_: npt.NDArray[np.float64] | float = intercept

    def _scores(self, X: Any) -> npt.NDArray[np.float64]:
        """Scores of rows, by the very arithmetic of the command `predict`."""
        check_is_fitted(self)
        kinds = [feature["kind"] for feature in json.loads(self.model_)["features"]]
        numeric = None
        if "indicator" in kinds:
            meant = {column["name"]: column["kind"] for column in json.loads(self.model_)["schema"]["columns"]}
            numeric = [meant[name] == "number" for name in self._column_names()]
        X = self._read(_tables.whole(X), numeric, self.n_features_in_, reset=False)
        if _tables.rows_of(X) == 0:
            raise InvalidParameterError("X must have at least one row", parameter="X")
        return _native.Model(self.model_).scores(_tables.table(X, self._column_names(), numeric=numeric))

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file that the commands ``semidp predict`` and ``semidp evaluate`` read. Only a model is replaced."""
        check_is_fitted(self)
        write_whole(path, "model", self.model_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = not self.strict
        return tags


def _total(fits: list[Certificate]) -> str:
    """What some fits cost together, for the same rows.

    Neighbours under replace-one are two steps apart under add-remove: (ε, δ) there is (2ε, (1 + e^ε) δ) here.
    """
    adjacencies = sorted({str(fit.adjacency) for fit in fits})
    costs = [_composed([fit for fit in fits if fit.adjacency == adjacency], adjacency) for adjacency in adjacencies]
    if len(adjacencies) > 1:
        costs = [
            (2 * epsilon, (1 + math.exp(min(epsilon, 700.0))) * delta) if adjacency == "add-remove" else (epsilon, delta)
            for (epsilon, delta), adjacency in zip(costs, adjacencies, strict=True)
        ]
    epsilon, delta = sum(epsilon for epsilon, _ in costs), min(1.0, sum(delta for _, delta in costs))
    where = adjacencies[0] if len(adjacencies) == 1 else "replace-one, fits under add-remove converted"
    return f"epsilon {_rounded_up(epsilon)} at delta {_rounded_up(delta)} ({where})"


def _composed(fits: list[Certificate], adjacency: str) -> tuple[float, float]:
    """Epsilon and delta of some fits under one adjacency."""
    delta = max(fit.delta for fit in fits)
    try:
        accountant = Accountant(adjacency=adjacency)
        for fit in fits:
            accountant.compose(fit)
        return accountant.epsilon(delta), delta
    except SemidpError:
        # No accountant knows all of these events together.
        return sum(fit.epsilon for fit in fits), sum(fit.delta for fit in fits)


def _rounded_up(number: float) -> str:
    """A number in three digits, not below it."""
    text = f"{number:.3g}"
    if float(text) >= number or not math.isfinite(number):
        return text
    return f"{float(text) + 10.0 ** (math.floor(math.log10(abs(number))) - 2):.3g}"


def _as_matrix(X: Any) -> Any:
    """A table of Arrow, or of numbers of polars, as a matrix; everything else scikit-learn understands by itself."""
    if not _tables.is_frame(X) or not (hasattr(X, "column_names") or hasattr(X, "get_column")):
        return X
    columns = [_tables.frame_column(X, place) for place in range(len(_tables.frame_names(X)))]
    if not columns or not (hasattr(X, "column_names") or all(map(_tables.is_numeric, columns))):
        return X
    return np.column_stack([_tables.numbers_of(column) for column in columns])
