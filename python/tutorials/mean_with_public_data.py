"""The mean of private rows, and what public rows do for it.

A hospital holds 5,000 private records. 200 other people have agreed to be public. How much do these 200 help, and what is promised
to the 5,000? All rows here are made up.
"""

from __future__ import annotations

import numpy as np
import semidp

random = np.random.default_rng(8)
columns = ["systolic", "diastolic", "heart rate"]
truth = np.array([128.0, 81.0, 72.0])
rows = random.normal(truth, [15.0, 10.0, 9.0], size=(5200, 3))
X_public, X_private = rows[:200], rows[200:]

# Before anybody touches a private row: what can be expected? Rows lie within about 5 standard deviations of each other, all columns
# together, and the error is in the same units, squared.
prediction = semidp.plan("mean", n_private=5000, n_public=200, dim=3, radius=5, std=np.sqrt(3), epsilon=0.5, delta=1e-6, exact=True)
print(f"The best estimator will be {prediction.best}.")
print(f"Throwing the private rows away would have {prediction.gain['throw-away']:.1f} times its error.")

# The estimate. Everything that has to be known beforehand (centre, radius, scales, weights) is learned from the public rows, which costs
# no privacy. The private rows come first and are not called public: what is not called public is protected.
answer = semidp.mean(X_private, X_public=X_public, epsilon=0.5, delta=1e-6)
intervals = answer.confidence_interval
assert intervals is not None
print()
print("column      private and public   95% interval       public alone   truth")
for name, estimate, (low, high), public, true in zip(
    columns, answer.mean, intervals, X_public.mean(axis=0), truth, strict=True
):
    print(f"{name:<10}  {estimate:18.2f}   {low:6.2f} to {high:6.2f}   {public:12.2f}   {true:5.1f}")

# What is promised, and whether it follows from what was done. The certificate can be saved, sent, and checked by anybody.
certificate = answer.certificate
print()
print(f"Promised: epsilon {certificate.epsilon} at delta {certificate.delta}, {certificate.adjacency} adjacency.")
print(f"Recomputed from its events, the certificate holds: {certificate.verify().valid}.")

# The noise comes from the operating system's generator, so that another run gives another answer, and costs another epsilon.
# Two answers together:
both = semidp.Accountant().compose(answer).compose(answer)
print(f"Asking twice costs epsilon {both.epsilon(delta=1e-6):.3f}.")
