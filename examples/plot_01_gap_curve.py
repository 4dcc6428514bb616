"""
Where two groups are treated most differently
=============================================

The gap at a threshold is how much more likely one group is than the other to score at or below it. Here a
model scores an invented census; it never saw sex, but occupation and hours stand in for it.
"""

import matplotlib.pyplot as plt

import localparity as lp

census = lp.datasets.make_census(20_000, random_state=0)
scores, sex = census.score, census.sensitive_features

figure, (above, below) = plt.subplots(2, 1, figsize=(7, 7), sharex=True, layout="constrained")
lp.report.SharesDisplay.from_predictions(
    lp.Predictions.from_arrays(None, scores, sensitive_features=sex), epsilon=0.05, ax=above
)
lp.report.GapCurveDisplay.from_predictions(
    lp.Predictions.from_arrays(None, scores, sensitive_features=sex), epsilon=0.05, ax=below
)
above.set_xlabel("")
plt.show()

# %%
# The shaded run is where the gap stays large over a whole window of half-width 0.05. In words:

print(lp.mcdp_profile(None, scores, sensitive_features=sex).worst_window(0.05).sentence)
