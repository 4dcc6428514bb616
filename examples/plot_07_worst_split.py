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
ax.plot(splits, mcdp, "o-", ms=3, label="MCDP(0) at this split")
ax.axvline(found.split, color="#CC79A7", label=f"the worst split, {found.split:g}")
ax.axhline(found.test.null_quantiles[0.95], color="#6B7280", ls=":", label="chance alone, 95% of the time")
ax.set_xlabel("people at or below this age against people above it")
ax.set_ylabel("MCDP(0)")
ax.set_ylim(0, None)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
print(f"{found.window.sentence} p-value {found.p_value:.3f}")
