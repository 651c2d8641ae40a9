"""The estimators: what they learn, what they promise, and what they refuse."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFECV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import semidp
from semidp import PublicData, errors

REGRESSORS = [semidp.LinearRegression, semidp.HuberRegressor]
CLASSIFIERS = [semidp.LogisticRegression, semidp.LinearSVC]
PUBLIC = 300


def rows(seed: int = 0, count: int = 4000, columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, columns)) * [1.0, 10.0, 0.1, 3.0][:columns] + [0.0, 5.0, 100.0, -2.0][:columns]
    score = (X - X.mean(axis=0)) / X.std(axis=0) @ np.array([1.0, -2.0, 0.5, 1.5])[:columns]
    return X, score + draw.normal(size=count)


def fitted(kind: Any, y: np.ndarray | None = None, X: Any = None, **parameters: Any) -> Any:
    if X is None:
        X, made = rows()
        y = made if y is None else y
    assert y is not None
    is_free = parameters.get("algorithm") in ("throw-away", "non-private")
    if not is_free and "rho" not in parameters:
        parameters.setdefault("epsilon", 1.0)
        if parameters.get("trust") != "local":
            parameters.setdefault("delta", 1e-6)
    return kind(**parameters).fit(X[PUBLIC:], y[PUBLIC:], X_public=X[:PUBLIC], y_public=y[:PUBLIC])


@pytest.mark.parametrize("kind", REGRESSORS)
def test_regressors_learn_and_certify(kind: Any) -> None:
    X, y = rows()
    model = fitted(kind, epsilon=2.0, delta=1e-6)
    assert model.score(X, y) > 0.85
    assert model.coef_.shape == (4,) and isinstance(model.intercept_, float)
    # The plain formula, on rows within the public range.
    inside = ((X >= X[:PUBLIC].min(axis=0)) & (X <= X[:PUBLIC].max(axis=0))).all(axis=1)
    np.testing.assert_allclose(model.predict(X[inside]), X[inside] @ model.coef_ + model.intercept_, atol=1e-4)
    assert model.certificate_.epsilon <= 2.0 and model.certificate_.delta == 1e-6
    assert model.certificate_.verify().valid
    assert model.hyperparameters_["noise_multiplier"]["source"] == "calibration"


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classifiers_learn_and_certify(kind: Any) -> None:
    X, y = rows()
    names = np.where(y > 0, "yes", "no")
    model = fitted(kind, names, X, epsilon=2.0)
    assert list(model.classes_) == ["no", "yes"] and model.coef_.shape == (1, 4)
    assert model.score(X, names) > 0.8
    assert set(model.predict(X)) == {"no", "yes"}
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "yes")).all()
    assert model.certificate_.verify().valid


def test_many_classes_are_a_softmax() -> None:
    X, y = rows()
    three = np.digitize(y, [-1.0, 1.0])
    model = fitted(semidp.LogisticRegression, three, X, epsilon=3.0)
    assert model.predict_proba(X).shape == (4000, 3) and model.coef_.shape == (3, 4)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert model.score(X, three) > 0.6
    with pytest.raises(errors.InvalidParameterError, match="two"):
        fitted(semidp.LinearSVC, three, X)


def test_public_rows_help() -> None:
    """The promise of the whole project: on few private rows the public ones make the difference."""
    X, y = rows(columns=4)
    with pytest.warns(errors.NotPrivateWarning):
        helped = fitted(semidp.LinearRegression, epsilon=0.1, random_state=1)
        alone = semidp.LinearRegression(epsilon=0.1, delta=1e-6, random_state=1, clip_norm=1.0, learning_rate=0.1, feature_range=(-50, 150)).fit(X, y)
    assert helped.score(X, y) > alone.score(X, y) + 0.1


def test_results_are_those_of_the_command_line(tmp_path: Path) -> None:
    X, y = rows()
    for precision, y in ((np.float32, y), (np.float64, (y > 0).astype(float))):
        X = X.astype(precision)
        together = np.column_stack([X, y]).astype(precision)
        np.save(tmp_path / "private.npy", together[PUBLIC:])
        np.save(tmp_path / "public.npy", together[:PUBLIC])
        is_class = precision is np.float64
        command = ["train", "--private", "private.npy", "--public", "public.npy", "--target", "x4", "--epsilon", "1", "--delta", "1e-6"]
        command += ["--task", "classification" if is_class else "regression", "--seed", "7", "--out", "model.json", "--checkpoint", "none"]
        subprocess.run([sys.executable, "-m", "semidp", *command, "--quiet", "--json"], cwd=tmp_path, check=True, capture_output=True)
        expected = json.loads((tmp_path / "model.json").read_text())
        kind = semidp.LogisticRegression if is_class else semidp.LinearRegression
        with pytest.warns(errors.NotPrivateWarning):
            model = fitted(kind, together[:, -1], X, epsilon=1.0, delta=1e-6, random_state=7)
        assert json.loads(model.model_)["weights"] == expected["weights"]
        # Predictions, too.
        np.save(tmp_path / "rows.npy", X)
        subprocess.run(
            [sys.executable, "-m", "semidp", "predict", "--model", "model.json", "--data", "rows.npy", "--out", "p.csv", "--quiet"],
            cwd=tmp_path, check=True, capture_output=True,
        )
        predicted = pd.read_csv(tmp_path / "p.csv")["prediction"].to_numpy()
        np.testing.assert_array_equal(model.predict(X).astype(float), predicted)
        (tmp_path / "model.json").unlink()


def test_a_saved_model_is_read_by_the_command_line(tmp_path: Path) -> None:
    model = fitted(semidp.LinearRegression)
    model.save_model(tmp_path / "model.json")
    X, y = rows()
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    # The label is called y here; the file of arrays calls it x4.
    assert json.loads((tmp_path / "model.json").read_text())["target"]["column"] == "y"


def test_seeds_repeat_and_the_operating_system_does_not() -> None:
    with pytest.warns(errors.NotPrivateWarning, match="NOT private"):
        fitted(semidp.LinearRegression, random_state=np.random.default_rng(3))
        fitted(semidp.HuberRegressor, random_state=np.random.RandomState(3), huber_delta=np.float64(1.5))
        first, second = (fitted(semidp.LinearRegression, random_state=3) for _ in range(2))
    assert (first.coef_ == second.coef_).all()
    assert first.certificate_["random_source"] == "seeded" and "seeded" in repr(first.certificate_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = (fitted(semidp.LinearRegression) for _ in range(2))
    assert (one.coef_ != other.coef_).all()
    assert one.certificate_["random_source"] == "operating-system"


def test_arrays_are_the_same_whatever_they_are_in() -> None:
    X, y = rows()
    names = ["age", "hours", "rate", "gain"]
    with pytest.warns(errors.NotPrivateWarning):
        expected = fitted(semidp.LinearRegression, y, X, random_state=1)
        frame = pd.DataFrame(X, columns=names)
        from_pandas = fitted(semidp.LinearRegression, y, _slices(frame), random_state=1)
        from_polars = fitted(semidp.LinearRegression, y, pl.DataFrame(X, schema=names), random_state=1)
        by_columns = fitted(semidp.LinearRegression, y, np.asfortranarray(X), random_state=1)
        reversed_twice = fitted(semidp.LinearRegression, y, X[:, ::-1].copy()[:, ::-1], random_state=1)
        arrow = pa.table({name: X[:, place] for place, name in enumerate(names)})
        from_arrow = semidp.LinearRegression(epsilon=1.0, delta=1e-6, random_state=1).fit(
            arrow.slice(PUBLIC), y[PUBLIC:], X_public=arrow.slice(0, PUBLIC), y_public=y[:PUBLIC]
        )
        in_place = fitted(semidp.LinearRegression, y, X, random_state=1, copy_X=True)
    for model in (from_pandas, from_polars, by_columns, reversed_twice, from_arrow, in_place):
        np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert list(from_pandas.feature_names_in_) == names and list(from_polars.feature_names_in_) == names
    np.testing.assert_array_equal(from_pandas.predict(frame), expected.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        from_pandas.predict(frame.rename(columns={"age": "years"}))


class _slices:
    """A data frame that is sliced by rows like an array."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __getitem__(self, rows: slice) -> pd.DataFrame:
        return self.frame.iloc[rows]


def test_sparse_rows_stay_sparse_and_learn() -> None:
    draw = np.random.default_rng(0)
    X = sp.random(6000, 400, density=0.02, format="csr", random_state=1)
    y = (X @ draw.normal(size=400) + 0.1 * draw.normal(size=6000) > 0).astype(int)
    for form in (X, sp.csr_array(X), X.tocsc()):
        model = semidp.LogisticRegression(epsilon=8.0, delta=1e-6).fit(form[500:], y[500:], X_public=form[:500], y_public=y[:500])
        assert model.score(X, y) > 0.75
    # Zeros are where they were, so that the formula holds without a shift.
    saved = json.loads(model.model_)
    assert all(feature["shift"] == 0.0 for feature in saved["features"])
    inside = sp.csr_matrix(X)
    inside.data = np.clip(inside.data, None, 0.5 * inside.data.max())
    gap = model.decision_function(inside) - (inside @ model.coef_[0] + model.intercept_[0])
    assert np.median(np.abs(gap)) < 1e-4


def test_columns_of_text_become_indicators() -> None:
    draw = np.random.default_rng(0)
    kinds = draw.choice(["a", "b", "c"], size=3000)
    frame = pd.DataFrame({"x": draw.normal(size=3000), "kind": kinds})
    y = frame["x"].to_numpy() + 3.0 * (kinds == "b") + 0.1 * draw.normal(size=3000)
    model = semidp.LinearRegression(epsilon=2.0, delta=1e-6).fit(frame[200:], y[200:], X_public=frame[:200], y_public=y[:200])
    assert model.encoded_feature_names_ == ["x", "kind=a", "kind=b", "kind=c", "kind=other"]
    assert model.score(frame, y) > 0.95
    polars = pl.DataFrame({"x": frame["x"].to_numpy(), "kind": kinds.tolist()})
    np.testing.assert_array_equal(model.predict(polars), model.predict(frame))
    unseen = frame.assign(kind="never seen")
    assert np.isfinite(model.predict(unseen)).all()


def test_classes_come_from_public_labels_or_arguments() -> None:
    X, y = rows()
    labels = np.digitize(y, [-1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(semidp.LogisticRegression, labels, X)
        # Some classes are not in the public rows.
        two = labels[:PUBLIC] != 1
        model = semidp.LogisticRegression(classes=[0, 1, 2], epsilon=3.0, delta=1e-6).fit(
            X[PUBLIC:], labels[PUBLIC:], X_public=X[:PUBLIC][two], y_public=labels[:PUBLIC][two]
        )
        assert list(model.classes_) == [0, 1, 2]
    with pytest.warns(errors.PrivacyLeakWarning, match="classes"):
        leaking = semidp.LogisticRegression(epsilon=1.0, delta=1e-6, clip_norm=1.0, learning_rate=0.5, feature_range=(-50, 150)).fit(X, labels)
    assert any("classes" in line for line in leaking.certificate_["not_covered"])


def test_labels_beyond_the_known_classes() -> None:
    X, y = rows()
    labels = (y > 0).astype(int)
    labels[-1] = 5
    with pytest.raises(errors.UnknownClassError) as refused:
        fitted(semidp.LogisticRegression, labels, X, strict=True)
    assert refused.value.parameter == "y" and "5" not in str(refused.value)
    model = fitted(semidp.LogisticRegression, labels, X, strict=False)
    assert list(model.classes_) == [0, 1]
    assert "not_covered" not in model.certificate_


def test_strict_checks_stand_on_the_certificate() -> None:
    X, y = rows()
    X = X.copy()
    with pytest.warns(errors.PrivacyLeakWarning, match="strict=True"):
        model = fitted(semidp.LinearRegression, y, X, strict=True)
    for certificate in (model.certificate_, model.answer_["certificate"], json.loads(model.model_)["certificate"]):
        assert any("check of the private rows" in line for line in certificate["not_covered"])
    X[-1, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fitted(semidp.LinearRegression, y, X, strict=True)
    # By default one cell refuses nothing.
    relaxed = fitted(semidp.LinearRegression, y, X)
    assert np.isfinite(relaxed.predict(X)).all() and "not_covered" not in relaxed.certificate_


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"epsilon": "much"}, "epsilon"),
    ({"epsilon": 0.5, "rho": 0.1}, "rho"),
    ({"delta": 1.5}, "delta"),
    ({"rho": -1.0}, "rho"),
    ({"steps": 0}, "steps"),
    ({"steps": True}, "steps"),
    ({"clip_norm": 0.0}, "clip_norm"),
    ({"learning_rate": -1.0}, "learning_rate"),
    ({"algorithm": "magic"}, "algorithm"),
    ({"alpha": 2.0}, "alpha"),
    ({"domain": "ball:-1"}, "domain"),
    ({"random_state": -1}, "random_state"),
    ({"random_state": 2**60}, "random_state"),
    ({"feature_range": (0.0, 1.0)}, "feature_range"),
    ({"threads": 0}, "threads"),
    ({"dataset": "x"}, "ledger"),
]


@pytest.mark.parametrize(("parameters", "name"), WRONG, ids=lambda value: str(value))
def test_wrong_parameters_are_named(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(errors.InvalidParameterError) as refused:
        fitted(semidp.LinearRegression, **parameters)
    assert refused.value.parameter == name
    assert name in str(refused.value) and "--" not in str(refused.value)
    assert isinstance(refused.value, (ValueError, errors.SemidpError))


def test_wrong_rows_are_named() -> None:
    X, y = rows()
    model = semidp.LinearRegression(epsilon=1.0, delta=1e-6)
    private, public = (X[PUBLIC:], y[PUBLIC:]), (X[:PUBLIC], y[:PUBLIC])
    for public_rows, name in [
        ({"X_public": public[0][:, :3], "y_public": public[1]}, "X_public"),
        ({"X_public": public[0], "y_public": public[1][:5]}, "y_public"),
        ({"X_public": public[0]}, "y_public"),
        ({"y_public": public[1]}, "X_public"),
        ({"public": public}, "public"),
        ({"public": PublicData(*public), "X_public": public[0]}, "public"),
        ({"X_public": public[0], "y_public": ["a"] * PUBLIC}, "y_public"),
    ]:
        with pytest.raises(errors.InvalidParameterError) as refused:
            model.fit(*private, **public_rows)
        assert refused.value.parameter == name, public_rows.keys()
    for algorithm in ("auto", "semi-dp-sgd", "optimal-gain", "throw-away", "pda-md"):
        with pytest.raises(errors.PublicDataRequiredError) as missing:
            semidp.LinearRegression(epsilon=1.0, delta=1e-6, algorithm=algorithm).fit(*private)
        assert missing.value.parameter == "X_public"
    with pytest.raises(errors.InvalidParameterError) as one_class:
        semidp.LogisticRegression(epsilon=1.0, delta=1e-6).fit(X, y > 0, X_public=X[:20].copy(), y_public=np.zeros(20))
    assert one_class.value.parameter == "y_public"


def test_cells_stay_out_of_errors() -> None:
    X, y = rows()
    secret = X.astype(object)
    secret[-1, 0] = "a secret"
    for kind in (semidp.LinearRegression, semidp.LogisticRegression):
        with pytest.raises(ValueError) as refused:
            fitted(kind, (y > 0).astype(int), secret, strict=True)
        assert "secret" not in _everything(refused.value)
    labels = [*map(str, y > 0)]
    labels[-1] = "a secret"
    for kind in (semidp.LogisticRegression, semidp.LinearRegression):
        with pytest.raises(ValueError) as refused:
            fitted(kind, np.array(labels), X, strict=True)
        assert "secret" not in _everything(refused.value)


def test_whole_arrays_stay_out_of_errors() -> None:
    """scikit-learn likes to show the array."""
    X, y = rows()
    X = X.copy()
    X[-3:, 0] = 31.4159
    public = PublicData(X[:PUBLIC], y[:PUBLIC])
    model = fitted(semidp.LinearRegression, y, X)

    class Cell:
        def __float__(self) -> float:
            raise ValueError("31.4159")

    strange = X.astype(object)
    strange[-1, 0] = Cell()
    for wrong in (X[:, 0], X[-1, 0], X + 1j, X[None], strange):
        with pytest.raises(errors.SemidpError) as refused:
            semidp.LinearRegression(epsilon=1.0, delta=1e-6, strict=True).fit(wrong, y, public=public)
        assert "31.4" not in _everything(refused.value), wrong
    with pytest.raises(errors.SemidpError) as refused:
        semidp.LinearRegression(epsilon=1.0, delta=1e-6).fit(X, y + 31.4159j, public=public)
    assert "31.4" not in _everything(refused.value)
    with pytest.raises(errors.SemidpError, match="Reshape your data") as refused:
        model.predict(X[-1])
    assert "31.4" not in _everything(refused.value)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(text="x").astype({"text": object})
    frame.loc[len(frame) - 1, "text"] = "SECRET\ud800"
    fitted(semidp.LinearRegression, y, _slices(frame))


def test_without_strict_checks_no_cell_is_refused() -> None:
    X, y = rows(count=1500)
    X[-5:, 0] = [np.inf, -np.inf, np.nan, 1e300, 0.0]
    labels = y.copy()
    labels[-3:] = [np.nan, np.inf, -np.inf]
    model = fitted(semidp.LinearRegression, labels, X, strict=False)
    assert np.isfinite(model.coef_).all() and "not_covered" not in model.certificate_
    strange = X.astype(object)
    strange[-1] = ["text", None, (1, 2), {}]
    assert np.isfinite(fitted(semidp.LinearRegression, y, strange, strict=False).coef_).all()
    classes = (y > 0).astype(object)
    classes[-2:] = [None, "never seen"]
    fitted(semidp.LogisticRegression, classes, X, strict=False)
    masked = pd.DataFrame({"a": pd.array(X[:, 3], dtype="Float64"), "b": pd.array(y > 0, dtype="boolean"), "c": ["u", "v", "w"] * 500})
    masked = masked.astype({"c": "string"})
    masked.iloc[-1] = [pd.NA, pd.NA, pd.NA]
    fitted(semidp.LinearRegression, y, _slices(masked), strict=False)
    arrow = pa.RecordBatch.from_pandas(masked)
    fitted_on = semidp.LinearRegression(epsilon=1.0, delta=1e-6, strict=False).fit(
        arrow.slice(PUBLIC), y[PUBLIC:], X_public=arrow.slice(0, PUBLIC), y_public=y[:PUBLIC]
    )
    assert fitted_on.encoded_feature_names_ == ["a", "b", "c=u", "c=v", "c=w", "c=other"]
    # Types that differ from those of the public rows: theirs decide.
    other = masked.astype(object)
    other.iloc[-2] = ["text", "text", 5]
    fitted_on.fit(other[PUBLIC:], y[PUBLIC:], X_public=masked[:PUBLIC], y_public=y[:PUBLIC])
    # A strict check sees numbers beside text, too.
    with pytest.raises(errors.InvalidParameterError, match="NaN"):
        fitted(semidp.LinearRegression, y, _slices(masked), strict=True)


def test_columns_are_what_they_say() -> None:
    X, y = rows()
    table = pa.table({name: X[:, place] for place, name in enumerate("abcd")})
    with pytest.raises(errors.InvalidParameterError, match="in their order"):
        semidp.LinearRegression(epsilon=1.0, delta=1e-6).fit(
            table.slice(PUBLIC), y[PUBLIC:], X_public=table.slice(0, PUBLIC).select(list("dcba")), y_public=y[:PUBLIC]
        )
    unnamed = pd.DataFrame(X, columns=["", "b", "c", "d"])
    assert fitted(semidp.LinearRegression, y, _slices(unnamed)).coef_[0] != 0.0
    sparse = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=list("abcd"))
    assert fitted(semidp.LinearRegression, y, _slices(sparse)).coef_.shape == (4,)
    dated = pd.DataFrame(X, columns=list("abcd")).assign(day=pd.Timestamp("2024-01-01"), text="x")
    with pytest.raises(errors.UnsupportedTypeError, match="day"):
        fitted(semidp.LinearRegression, y, _slices(dated))
    unaligned = np.ndarray(X.shape, "f8", b"\0" + X.tobytes(), offset=1)
    for same in (unaligned, X.astype(">f8")):
        with pytest.warns(errors.NotPrivateWarning):
            np.testing.assert_array_equal(
                fitted(semidp.LinearRegression, y, same, random_state=1).coef_, fitted(semidp.LinearRegression, y, X, random_state=1).coef_
            )


def _everything(error: BaseException | None) -> str:
    """An error and all that hangs on it."""
    return "" if error is None else f"{error!r} {error} {_everything(error.__context__)} {_everything(error.__cause__)}"


def test_callbacks_see_steps_and_may_stop() -> None:
    seen: list[tuple[int, int]] = []
    X, y = rows()
    model = fitted(semidp.LinearRegression, on_step=lambda step, steps: seen.append((step, steps)))
    assert seen[0][0] == 0 and seen[-1][0] == seen[-1][1] == len(seen) - 1

    class Enough(Exception):
        pass

    def stop(step: int, steps: int) -> None:
        if step == 3:
            raise Enough

    with pytest.raises(Enough):
        model.set_params(on_step=stop).fit(X[PUBLIC:], y[PUBLIC:], X_public=X[:PUBLIC], y_public=y[:PUBLIC])
    # Nothing is poisoned: the next fit goes all the way.
    assert fitted(semidp.LinearRegression).score(X, y) > 0.8


def test_interrupts_are_heard() -> None:
    script = """
import numpy as np, semidp, os, signal, threading
rows = np.random.default_rng(0); X = rows.normal(size=(20000, 20)); y = X.sum(axis=1)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    semidp.LinearRegression(epsilon=1.0, delta=1e-6, algorithm="semi-dp-sgd", steps=1_000_000, sampling="poisson", expected_batch=100).fit(
        X[200:], y[200:], X_public=X[:200], y_public=y[:200])
except KeyboardInterrupt:
    print("heard")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "heard", done.stderr


def test_clones_and_pickles() -> None:
    X, y = rows()
    model = fitted(semidp.LogisticRegression, (y > 0).astype(int), X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.certificate_ == model.certificate_ and again.certificate_.verify().valid
    fresh = clone(model)
    assert not hasattr(fresh, "coef_") and fresh.get_params() == model.get_params()


def test_pipelines_that_learn_from_private_rows_are_marked() -> None:
    X, y = rows()
    private, public = (X[PUBLIC:], y[PUBLIC:]), {"X_public": X[:PUBLIC], "y_public": y[:PUBLIC]}
    plain = make_pipeline(StandardScaler(), semidp.LinearRegression(epsilon=1.0, delta=1e-6))
    with pytest.warns(errors.PublicRowsNotTransformedWarning, match="standardscaler"), pytest.warns(errors.PrivacyLeakWarning):
        plain.fit(*private, **{f"linearregression__{name}": value for name, value in public.items()})
    assert any("standardscaler" in line for line in plain[-1].certificate_["not_covered"])
    frozen = FrozenEstimator(StandardScaler().fit(X[:PUBLIC]))
    with sklearn.config_context(enable_metadata_routing=True):
        for outer in (False, True):
            fitted_on_private = Pipeline([("scale", StandardScaler()), ("model", semidp.LinearRegression(epsilon=1.0, delta=1e-6))], transform_input=["X_public"])
            if outer:
                inner = Pipeline([("model", semidp.LinearRegression(epsilon=1.0, delta=1e-6))])
                fitted_on_private = Pipeline([("scale", StandardScaler()), ("inner", inner)], transform_input=["X_public"])
            with pytest.warns(errors.PrivacyLeakWarning, match="fitted on private rows"):
                fitted_on_private.fit(*private, **public)
            last = fitted_on_private[-1]
            certificate = (last[-1] if outer else last).certificate_
            assert any("scale" in line for line in certificate["not_covered"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for step in (frozen, "passthrough"):
                routed = Pipeline([("scale", step), ("model", semidp.LinearRegression(epsilon=1.0, delta=1e-6, strict=False))], transform_input=["X_public"])
                routed.fit(*private, **public)
                assert r2_score(y, routed.predict(X)) > 0.85
                assert "not_covered" not in routed[-1].certificate_


class OwnTransformer(StandardScaler):  # type: ignore[misc]
    pass


CENTRED = FunctionTransformer(lambda rows: rows - rows.mean(axis=0))


@pytest.mark.parametrize(
    "frozen",
    [
        CENTRED,
        Pipeline([("scale", StandardScaler()), ("centre", CENTRED)]),
        FeatureUnion([("same", StandardScaler()), ("centre", CENTRED)]),
        ColumnTransformer([("centre", CENTRED, [0, 1])]),
        FrozenEstimator(CENTRED),
        Pipeline([("frozen", FrozenEstimator(CENTRED))]),
        OwnTransformer(),
        Pipeline([("own", OwnTransformer())]),
    ],
    ids=lambda step: str(step)[:30],
)
def test_a_frozen_function_is_not_trusted(frozen: Any) -> None:
    X, y = rows()
    with sklearn.config_context(enable_metadata_routing=True):
        step = FrozenEstimator(frozen.fit(X[:PUBLIC], y[:PUBLIC]))
        pipeline = Pipeline([("step", step), ("model", semidp.LinearRegression(epsilon=1.0, delta=1e-6))], transform_input=["X_public"])
        with pytest.warns(errors.PrivacyLeakWarning, match="step"):
            pipeline.fit(X[PUBLIC:], y[PUBLIC:], X_public=X[:PUBLIC], y_public=y[:PUBLIC])
    assert any("step" in line for line in pipeline[-1].certificate_["not_covered"])


@pytest.mark.parametrize("frozen", [StandardScaler(), Pipeline([("scale", StandardScaler()), ("norm", Normalizer())]), FeatureUnion([("scale", StandardScaler())])], ids=lambda step: str(step)[:30])
def test_frozen_steps_of_scikit_learn_are_trusted(frozen: Any) -> None:
    X, y = rows()
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error", errors.PrivacyLeakWarning)
        step = FrozenEstimator(frozen.fit(X[:PUBLIC], y[:PUBLIC]))
        pipeline = Pipeline([("step", step), ("model", semidp.LinearRegression(epsilon=1.0, delta=1e-6))], transform_input=["X_public"])
        pipeline.fit(X[PUBLIC:], y[PUBLIC:], X_public=X[:PUBLIC], y_public=y[:PUBLIC])


@pytest.mark.parametrize("step", [FunctionTransformer(), FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), StandardScaler()])
def test_steps_count_as_fitted_unless_they_work_row_by_row(step: Any) -> None:
    X, y = rows()

    class Normaliser(Normalizer):  # type: ignore[misc]
        """A subclass may do anything."""

    for one, is_marked in ((step, True), (Normaliser(), True), (Normalizer(), False)):
        model = make_pipeline(one, semidp.LinearRegression(epsilon=1.0, delta=1e-6))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model.fit(X[PUBLIC:], y[PUBLIC:], linearregression__X_public=X[:PUBLIC], linearregression__y_public=y[:PUBLIC])
        assert any(issubclass(one.category, errors.PrivacyLeakWarning) for one in seen) == is_marked
        assert ("not_covered" in model[-1].certificate_) == is_marked


def test_one_private_cell_refuses_nothing_by_default() -> None:
    """The outcome of a check that may fail is an exact bit about one private row."""
    X, y = rows(count=1500)
    labels = np.where(y > 0, "yes", "no").astype(object)
    for kind, wanted in ((semidp.LinearRegression, y.astype(object)), (semidp.LogisticRegression, labels)):
        for cell, label in ((np.nan, None), (np.inf, wanted[-1]), (1.0, "never seen"), (1.0, np.nan)):
            changed, odd = X.copy(), wanted.copy()
            changed[-1, 0], odd[-1] = cell, label
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                public = {"X_public": X[:PUBLIC], "y_public": wanted[:PUBLIC].tolist()}
                model = kind(epsilon=1.0, delta=1e-6).fit(changed[PUBLIC:], odd[PUBLIC:], **public)
            assert "not_covered" not in model.certificate_


@pytest.mark.parametrize("kind", REGRESSORS + CLASSIFIERS)
def test_nobody_else_chooses_a_budget(kind: Any) -> None:
    X, y = rows()
    labels = y if kind in REGRESSORS else (y > 0).astype(int)
    data: dict[str, Any] = {"X_public": X[:PUBLIC], "y_public": labels[:PUBLIC]}
    for parameters, name in (({}, "epsilon"), ({"delta": 1e-6}, "epsilon"), ({"epsilon": 1.0}, "delta")):
        with pytest.raises(errors.InvalidParameterError) as refused:
            kind(**parameters).fit(X[PUBLIC:], labels[PUBLIC:], **data)
        assert refused.value.parameter == name and "delta=1e-6" in str(refused.value.hint)
    assert clone(kind()).get_params()["epsilon"] is None


def test_repeated_fits_of_one_object_add_up() -> None:
    X, y = rows()
    model = semidp.LinearRegression(epsilon=1.0, delta=1e-6)
    data = (X[PUBLIC:], y[PUBLIC:])
    public = {"X_public": X[:PUBLIC], "y_public": y[:PUBLIC]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*data, **public)
        clone(model).fit(*data, **public)
    with pytest.warns(errors.SemidpWarning, match="2 times without a ledger") as seen:
        model.fit(*data, **public)
    accountant = semidp.Accountant().compose(model.certificate_, 2)
    total = accountant.epsilon(1e-6)
    told = next(str(one.message) for one in seen if "without a ledger" in str(one.message))
    stated = float(told.split("together cost epsilon ")[1].split(" ")[0])
    # The two fits differ in nothing but their noise; three digits are told.
    assert abs(stated / total - 1) < 0.02 and 1.0 < stated < 2.0


def test_fits_under_two_adjacencies_add_up() -> None:
    X, y = rows()
    data = (X[PUBLIC:], y[PUBLIC:])
    public = {"X_public": X[:PUBLIC], "y_public": y[:PUBLIC]}
    secret: dict[str, Any] = {"adjacency": "add-remove", "sample_rate": 0.1, "expected_batch": 370.0}
    model = semidp.LinearRegression(epsilon=1.0, delta=1e-6, **secret).fit(*data, **public)
    model.set_params(adjacency="replace-one", sample_rate=None, expected_batch=None)
    with pytest.warns(errors.SemidpWarning, match="2 times without a ledger.*2 fits together cost epsilon") as seen:
        model.fit(*data, **public)
    told = next(str(one.message) for one in seen if "without a ledger" in str(one.message))
    found = re.search(r"together cost epsilon (\S+) at delta (\S+) \((\S+),", told)
    assert found is not None
    ours, theirs = model._fits
    # Two neighbours under add-remove are between neighbours under replace-one.
    epsilon = 2 * ours.epsilon + theirs.epsilon
    delta = (1 + np.exp(ours.epsilon)) * ours.delta + theirs.delta
    assert epsilon <= float(found[1]) < 1.02 * epsilon and delta <= float(found[2]) < 1.02 * delta and found[3] == "replace-one"
    assert "add-remove" in told


def test_fits_without_a_guarantee_are_named_beside_the_total() -> None:
    X, y = rows()
    data = (X[PUBLIC:], y[PUBLIC:])
    public = {"X_public": X[:PUBLIC], "y_public": y[:PUBLIC]}
    model = semidp.LinearRegression(epsilon=1.0, delta=1e-6).fit(*data, **public)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.SemidpWarning)
        model.set_params(algorithm="non-private").fit(*data, **public)
    with pytest.warns(errors.SemidpWarning, match="3 times without a ledger.*2 fits together.*1 of them .* no guarantee"):
        model.set_params(algorithm="auto").fit(*data, **public)
    throw_away = semidp.LinearRegression(algorithm="throw-away")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        throw_away.fit(*data, **public).fit(*data, **public)


def test_scores_warn_that_no_epsilon_covers_them() -> None:
    X, y = rows()
    for kind, labels in ((semidp.LinearRegression, y), (semidp.LogisticRegression, y > 0)):
        model = fitted(kind, labels, X)
        with pytest.warns(errors.PrivateScoreWarning, match="NO epsilon"):
            model.score(X, labels)


def test_dangerous_budgets_warn_and_weak_noise_needs_consent() -> None:
    X, y = rows()
    with pytest.warns(errors.SemidpWarning, match="delta 0.01 is too large"):
        model = fitted(semidp.LinearRegression, y, X, epsilon=1.0, delta=0.01)
    assert "delta 0.01" in model.certificate_["notes"][0]
    with pytest.warns(errors.SemidpWarning, match="epsilon 20"):
        fitted(semidp.LinearRegression, y, X, epsilon=20.0)
    weak: dict[str, Any] = {"epsilon": 1.0, "delta": 0.08, "algorithm": "semi-dp-sgd", "steps": 10, "sample_rate": 0.01}
    with pytest.raises(errors.WeakNoiseError) as refused:
        fitted(semidp.LinearRegression, y, X, **weak)
    assert refused.value.parameter == "noise_multiplier" and "allow_weak_noise" in str(refused.value.hint)
    with pytest.warns(errors.SemidpWarning):
        fitted(semidp.LinearRegression, y, X, allow_weak_noise=True, **weak)


def test_seeded_certificates_are_not_valid() -> None:
    with pytest.warns(errors.NotPrivateWarning):
        certificate = fitted(semidp.LinearRegression, random_state=1).certificate_
    assert not certificate.verify().valid
    with pytest.warns(errors.NotPrivateWarning):
        assert certificate.verify(allow_seeded=True).valid


@pytest.mark.parametrize(
    "wrapped",
    [
        CalibratedClassifierCV(semidp.LogisticRegression(epsilon=5.0, delta=1e-6, classes=[0, 1], clip_norm=1.0, learning_rate=0.5), cv=2),
        BaggingClassifier(semidp.LogisticRegression(epsilon=5.0, delta=1e-6, classes=[0, 1], clip_norm=1.0, learning_rate=0.5), n_estimators=2),
        RFECV(semidp.LogisticRegression(epsilon=5.0, delta=1e-6, classes=[0, 1], clip_norm=1.0, learning_rate=0.5), cv=2),
    ],
    ids=lambda wrapped: type(wrapped).__name__,
)
def test_other_wrappers_are_marked(wrapped: Any) -> None:
    X, y = rows(count=600)
    with pytest.warns(errors.PrivacyLeakWarning):
        wrapped.fit((X - X.mean(axis=0)) / X.std(axis=0), (y > 0).astype(int))


def test_a_failed_fit_leaves_nothing_behind() -> None:
    X, y = rows()
    model = fitted(semidp.LogisticRegression, y > 0, X)
    model.set_params(epsilon=-1.0)
    with pytest.raises(errors.InvalidParameterError):
        model.fit(X[PUBLIC:], np.where(y > 0, "a", "b")[PUBLIC:], X_public=X[:PUBLIC], y_public=np.where(y > 0, "a", "b")[:PUBLIC])
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(sklearn.exceptions.NotFittedError):
        model.predict(X)


def test_cross_validation_warns_and_never_slices_public_data() -> None:
    X, y = rows(count=1200)
    public = PublicData(X[:600], y[:600])
    with pytest.warns(errors.PrivacyLeakWarning, match="cross-validation"):
        scores = cross_val_score(semidp.LinearRegression(epsilon=5.0, delta=1e-6), X[600:], y[600:], cv=3, params={"public": public})
    assert scores.min() > 0.7
    with pytest.warns(errors.PrivacyLeakWarning), sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(semidp.LinearRegression(epsilon=5.0, delta=1e-6), {"l2": [None, 0.1]}, cv=2)
        search.fit(X[600:], y[600:], public=public)
    assert any("cross-validation" in line for line in search.best_estimator_.certificate_["not_covered"])
    # Outside of it nobody is warned.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        semidp.LinearRegression(epsilon=1.0, delta=1e-6).fit(X[600:], y[600:], public=public)


def test_selection_on_public_rows() -> None:
    from semidp.model_selection import select_on_public

    X, y = rows(count=900)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = select_on_public(semidp.LinearRegression(epsilon=1.0, delta=1e-6), {"l2": [None, 1000.0]}, PublicData(X, y), n_private=10_000)
    assert chosen.best_params == {"l2": None} and chosen.estimator.l2 is None
    assert chosen.results[0]["mean_score"] > chosen.results[1]["mean_score"] + 0.2
    classes = select_on_public(semidp.LogisticRegression(epsilon=1.0, delta=1e-6), [{"steps": [20]}], PublicData(pd.DataFrame(X), y > 0), cv=2)
    assert classes.best_score > 0.7
    with pytest.raises(errors.InvalidParameterError, match="public"):
        select_on_public(semidp.LinearRegression(epsilon=1.0, delta=1e-6), {}, (X, y))  # type: ignore[arg-type]


def test_other_budgets_adjacencies_and_algorithms(tmp_path: Path) -> None:
    X, y = rows()
    by_rho = fitted(semidp.LinearRegression, rho=0.1)
    assert by_rho.certificate_["guarantee"]["rho"] <= 0.1
    added = fitted(semidp.LinearRegression, adjacency="add-remove", sample_rate=0.05, expected_batch=185.0)
    assert added.certificate_.adjacency == "add-remove"
    free = fitted(semidp.LinearRegression, algorithm="throw-away")
    assert free.certificate_.epsilon == 0.0 and "not_covered" not in free.certificate_
    local = fitted(semidp.LinearRegression, trust="local", epsilon=4.0)
    assert local.certificate_["guarantee"]["trust"] == "local"
    with pytest.warns(errors.DeclassifiedWarning):
        opened = fitted(semidp.LinearRegression, algorithm="non-private")
    assert opened.certificate_.epsilon == float("inf") and opened.score(X, y) > 0.88


def test_ledgers_pay_and_refuse(tmp_path: Path) -> None:
    ledger = tmp_path / "budget.ledger"
    init = ["ledger", "init", "--ledger", str(ledger), "--dataset", "rows", "--epsilon", "1.1", "--delta", "1e-5"]
    subprocess.run([sys.executable, "-m", "semidp", *init], check=True, capture_output=True)
    fitted(semidp.LinearRegression, epsilon=1.0, ledger=ledger, dataset="rows")
    with pytest.raises(errors.BudgetRefusedError):
        fitted(semidp.LinearRegression, epsilon=1.0, ledger=ledger, dataset="rows")


def test_interrupted_fits_go_on(tmp_path: Path) -> None:
    kept = tmp_path / "run.checkpoint"
    parameters = {"epsilon": 1.0, "steps": 50, "sampling": "poisson", "random_state": 5}

    def stop(step: int, steps: int) -> None:
        if step == 20:
            raise KeyboardInterrupt

    with pytest.warns(errors.NotPrivateWarning):
        whole = fitted(semidp.LinearRegression, checkpoint=tmp_path / "other.checkpoint", **parameters)
        with pytest.raises(KeyboardInterrupt):
            fitted(semidp.LinearRegression, checkpoint=kept, on_step=stop, **parameters)
        assert kept.exists()
        resumed = fitted(semidp.LinearRegression, resume=kept, **parameters)
        np.testing.assert_array_equal(resumed.coef_, whole.coef_)
        assert not kept.exists()
        # Who goes on cannot leave out what the beginning had to say.
        with pytest.raises(KeyboardInterrupt):
            fitted(semidp.LinearRegression, checkpoint=kept, on_step=stop, **parameters)
        with pytest.raises(errors.SemidpError, match="not covered"):
            fitted(semidp.LinearRegression, resume=kept, strict=True, **parameters)


def test_large_arrays_are_not_copied() -> None:
    """80 MB of rows: what a fit adds to the process is far less."""
    script = """
import numpy as np, semidp, resource
rows = np.random.default_rng(0)
X = rows.random(size=(1_000_000, 20), dtype=np.float32); y = X.sum(axis=1) + rows.random(size=1_000_000, dtype=np.float32)
public = rows.random(size=(500, 20), dtype=np.float32)
def fit(X, y): semidp.LinearRegression(epsilon=1.0, delta=1e-6, steps=3).fit(X, y, X_public=public, y_public=public.sum(axis=1))
fit(X[:2000], y[:2000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fit(X, y)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / X.nbytes)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.5, done.stdout


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_rows_to_predict_must_be_there(adjacency: str) -> None:
    X, y = rows()
    more: dict[str, Any] = {"adjacency": adjacency, "sample_rate": 0.1, "expected_batch": 370.0} if adjacency == "add-remove" else {}
    model = fitted(semidp.LinearRegression, y, X, **more)
    for empty in (X[:0], pd.DataFrame(X[:0])):
        with pytest.raises(errors.SemidpError, match="at least one row|minimum of 1 is required") as refused:
            model.predict(empty)
        assert refused.value.parameter == "X" and "schema" not in str(refused.value)


def test_whole_numbers_of_128_bits_are_read() -> None:
    X, y = rows()
    codes = np.arange(4000) % 9
    wide = pl.DataFrame({"a": X[:, 0], "b": pl.Series(codes, dtype=pl.Int128)})
    plain = np.column_stack([X[:, 0], codes])
    models = [fitted(semidp.LinearRegression, y, made, random_state=1) for made in (wide, plain)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    answers = [semidp.mean(made[PUBLIC:], X_public=made[:PUBLIC], epsilon=1.0, delta=1e-6, random_state=1).mean for made in (wide, plain)]
    np.testing.assert_array_equal(*answers)
