"""Differential privacy where public data helps for free.

The guarantee ("semi-DP") covers the private rows only, for every possible content of the public rows. Estimators take private rows
as ``X`` and ``y``, public ones as ``X_public`` and ``y_public``:

>>> import numpy as np, semidp
>>> rows = np.random.default_rng(0)
>>> X = rows.normal(size=(3000, 4)); y = X.sum(axis=1) + rows.normal(size=3000)
>>> model = semidp.LinearRegression(epsilon=1.0, delta=1e-6)
>>> model = model.fit(X[100:], y[100:], X_public=X[:100], y_public=y[:100])
>>> model.certificate_.adjacency
'replace-one'
"""

from __future__ import annotations

from . import errors, model_selection
from ._ask import Answer, Certificate
from ._audit import audit
from ._estimators import HuberRegressor, LinearRegression, LinearSVC, LogisticRegression
from ._mean import mean
from ._native import __version__
from ._plan import plan
from ._public import PublicData
from .accounting import Accountant, account, calibrate, verify
from .local import aggregate, randomize

__all__ = [
    "Accountant",
    "Answer",
    "Certificate",
    "HuberRegressor",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PublicData",
    "__version__",
    "account",
    "aggregate",
    "audit",
    "calibrate",
    "errors",
    "mean",
    "model_selection",
    "plan",
    "randomize",
    "verify",
]
