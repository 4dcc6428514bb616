"""
A sensitive feature that is a number
====================================

Age has no two groups. `worst_split` searches all splits into people at or below an age and people above it,
and its p-value counts in that it searched. Here people up to 34 score lower, by construction.
"""

import matplotlib.pyplot as plt
import numpy as np

import localparity as lp

rng = np.random.default_rng(0)
age = rng.integers(18, 80, 5000)
scores = rng.beta(2, 4, 5000) * np.where(age < 35, 0.5, 1.0)

found = lp.worst_split(
    lp.Predictions.from_arrays(None, scores, sensitive_features=age), n_resamples=199, random_state=0
)
splits = range(24, 75)
mcdp = [lp.mcdp(None, scores, sensitive_features=age <= split) for split in splits]

figure, ax = plt.subplots(layout="constrained")
ax.plot(splits, mcdp, "o-", ms=3)
ax.annotate(f"worst split: {found.split:g}", (found.split, max(mcdp)), (8, 0), textcoords="offset points")
chance = found.test.null_quantiles[0.95]
ax.axhline(chance, color="#6B7280", ls=":")
ax.annotate("chance alone, 95% of the time", (splits[0], chance), (0, 4), textcoords="offset points")
ax.set_xlabel("people at or below this age against people above it")
ax.set_ylabel("MCDP(0)")
ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
ax.set_ylim(0, None)
plt.show()

# %%
print(f"{found.window.sentence} p-value {found.p_value:.3f}")
