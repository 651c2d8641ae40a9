"""Logistic regression on census rows, most of them private.

UCI Adult (Becker and Kohavi, 1996) asks who earns more than 50,000 dollars. Suppose that 2% of the people agreed that their rows are
public, and that the others are promised epsilon 0.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import semidp

FOLDER = Path(__file__).parents[2] / "testdata" / "adult"
COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain capital-loss "
    "hours-per-week native-country income"
).split()


def people(name: str) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    rows = pd.read_csv(FOLDER / name, names=COLUMNS, skipinitialspace=True, na_values="?", comment="|")
    return rows.drop(columns=["income", "fnlwgt", "education"]), (rows["income"].str.rstrip(".") == ">50K").to_numpy()


X, y = people("adult.data.gz")
X_test, y_test = people("adult.test.gz")
volunteers = np.random.default_rng(1).random(len(X)) < 0.02
public = semidp.PublicData(X[volunteers], y[volunteers])
private = X[~volunteers], y[~volunteers]
print(f"{len(private[0]):,} private and {volunteers.sum():,} public people, {X.shape[1]} columns.")

# Text and numbers go in as they are: which categories there are, how numbers are scaled and what stands in for a missing cell is
# learned from the public people, never from the private ones.
models = {
    "public rows alone (throw-away), epsilon 0": semidp.LogisticRegression(algorithm="throw-away"),
    "everybody private (dp-sgd), epsilon 0.1": semidp.LogisticRegression(algorithm="dp-sgd", epsilon=0.1, delta=1e-6),
    "semi-DP (the autopilot), epsilon 0.1": semidp.LogisticRegression(epsilon=0.1, delta=1e-6),
}
for name, model in models.items():
    model.fit(*private, public=public)
    print(f"AUC {roc_auc_score(y_test, model.decision_function(X_test)):.4f}  {name}")

# What the last one did, and where every number in it came from.
print(f"\nThe autopilot took {model.algorithm_}:")
for name, choice in list(model.hyperparameters_.items())[:8]:
    print(f"  {name} = {choice['value']} ({choice['source']})")

# The promise, and a check of it that needs neither the rows nor trust in us.
certificate = model.certificate_
print(f"\n{certificate}")
print("It follows from what was done:", certificate.verify().valid)
