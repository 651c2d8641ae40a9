"""What does an existing DP-SGD run guarantee?

A model was trained with Opacus (or anything else that adds Gaussian noise to sums of clipped gradients of Poisson samples). Three
numbers decide what that guarantees: the noise multiplier, the sample rate and the number of steps. Neither the model nor the rows are
needed.
"""

from __future__ import annotations

import semidp

# 5,000 steps on samples of 500 of 27,000 rows, with noise of 2.744 times the clip norm.
noise_multiplier, sample_rate, steps, delta = 2.744140625, 500 / 27000, 5000, 1e-5

# Most libraries state epsilon for data sets that differ by a row added or removed. If a row may instead be exchanged for any other,
# which is what people mean by "whatever I had answered", the same noise guarantees less. An epsilon means nothing without its
# adjacency, so both are printed.
run = semidp.account(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps, delta=delta, adjacency="add-remove")
print(f"One row added or removed: epsilon {run.epsilon:.3f} at delta {delta}.")
print(f"One row exchanged:        epsilon {run.other_adjacency.epsilon:.3f} at delta {delta}.")

# Two accountants computed the first number. The one by Renyi divergences is what many libraries print; it is right, and larger than
# it needs to be.
print(f"By privacy loss distributions {run.accountants.pld:.3f}, by Renyi divergences {run.accountants.rdp:.3f}.")

# How much noise would have been enough to promise epsilon 2 if a row is exchanged?
enough = semidp.calibrate(epsilon=2, delta=delta, sample_rate=sample_rate, steps=steps, adjacency="replace-one")
print(f"For epsilon 2 under replace-one the noise multiplier has to be {enough.noise_multiplier:.3f}.")

# The same rows were used in a second run, with more noise, and one count was published with Laplace noise of scale 20. Guarantees add
# up, but not by adding epsilons: an accountant composes what was really done.
together = semidp.Accountant(adjacency="add-remove")
together.poisson_gaussian(noise_multiplier, sample_rate, steps)
together.poisson_gaussian(4.0, sample_rate, 2000)
together.laplace(20.0)
second = semidp.Accountant(adjacency="add-remove").poisson_gaussian(4.0, sample_rate, 2000)
naive = run.epsilon + second.epsilon(delta) + 1 / 20
print(f"Everything together: epsilon {together.epsilon(delta):.3f}; the sum of the parts would be {naive:.3f}.")

# A certificate holds the events, so that anybody can recompute the guarantee.
certificate = together.certificate(delta)
print(f"The certificate of {len(together)} events holds: {certificate.verify().valid}.")

# If somebody improves on the truth, it does not.
certificate["guarantee"]["epsilon"] = 1.0
print(f"After somebody wrote epsilon 1 into it: {certificate.verify().valid}.")
