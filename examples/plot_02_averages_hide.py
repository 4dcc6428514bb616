"""
Equal on average, unequal at a threshold
========================================

Two groups whose mean scores are equal can still be treated very differently: here one group's scores are
spread out and the other's are bunched in the middle. The difference of means sees nothing; the gap is large
on both sides of the middle, in opposite directions, and MCDP finds the larger side.
"""

import matplotlib.pyplot as plt
import numpy as np

import localparity as lp

rng = np.random.default_rng(0)
group = np.repeat(["bunched", "spread"], 20_000)
scores = np.concatenate([rng.beta(8, 8, 20_000), rng.beta(1.5, 1.5, 20_000)])

lp.report.GapCurveDisplay.from_predictions(
    lp.Predictions.from_arrays(None, scores, sensitive_features=group), epsilon=0.05
)
plt.show()

# %%
# In points, the difference of means, then MCDP at two half-widths of windows:

print(f"difference of means {100 * lp.delta_dp(None, scores, sensitive_features=group):.1f}")
for epsilon in (0.0, 0.05):
    found = lp.mcdp(None, scores, sensitive_features=group, epsilon=epsilon)
    print(f"MCDP({epsilon:g}) {100 * found:.1f}")
