"""An attack on a promise.

A proof says what epsilon is at most; an attack shows what it is at least. An audit runs the real mechanism many times on rows that are
made up to be found, never on yours, and turns the attacker's hits and misses into a lower bound.
"""

from __future__ import annotations

import os
import tempfile

import semidp

# People randomise their own vectors with epsilon 2. The attacker sees a report and guesses which of two opposite vectors it is of.
with tempfile.TemporaryDirectory() as folder:
    picture = os.path.join(folder, "attack.svg")
    report = semidp.audit("randomizer", mechanism="duchi", dim=2, epsilon=2, trials=20_000, plot=picture)
    print(f"Claimed: epsilon {report.claimed_epsilon}. Shown: at least {report.audited_epsilon_lower_bound:.2f}.")
    print(f"A picture of how well the attack does has {os.path.getsize(picture)} bytes.")
print(f"Verdict: {report.verdict}. {report.meaning}")

# A mean of 90 private and 10 public rows. The attacker knows all rows but one.
mean = semidp.audit("mean", n_private=90, n_public=10, dim=5, epsilon=1, delta=1e-5, estimator="weighted-gaussian")
print(f"A private mean: claimed {mean.claimed_epsilon:.2f}, at least {mean.audited_epsilon_lower_bound:.2f} by {mean.method}.")

# The bound is far lower for a whole training run: canaries have to be found in a model. That says something of the attack, and
# nothing of the promise; only a bound *above* the claim would.
model = semidp.audit("train", n_private=300, n_public=100, dim=40, epsilon=4, delta=1e-5, steps=20, trials=10)
print(f"A private model: claimed {model.claimed_epsilon:.2f}, at least {model.audited_epsilon_lower_bound:.2f} by {model.method}.")

# In the other direction an audit is blind: with few trials it shows little, however much leaks.
few = semidp.audit("randomizer", mechanism="duchi", dim=2, epsilon=2, trials=50)
print(f"The same randomizer with 50 trials in place of 20,000: at least {few.audited_epsilon_lower_bound:.2f}.")
