"""
Scores repaired until a bound holds
===================================

`ScoreRepair` draws the groups' distributions towards each other only where they are further apart than the
bound, and keeps the order of people within each group. It needs the group at prediction. The repair is fitted
on half of the people and shown on the other half.
"""

import matplotlib.pyplot as plt
import numpy as np

import localparity as lp

census = lp.datasets.make_census(20_000, random_state=0)
scores, sex = census.score, census.sensitive_features
fitted = np.arange(scores.size) < 10_000

repair = lp.models.ScoreRepair(max_mcdp=0.10)
repair.fit(scores[fitted], sensitive_features=sex[fitted])
repaired = repair.transform(scores[~fitted], sensitive_features=sex[~fitted])

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for shown, title, ax in ((scores[~fitted], "as made", axes[0]), (repaired, "repaired", axes[1])):
    lp.report.SharesDisplay.from_predictions(
        lp.Predictions.from_arrays(None, shown, sensitive_features=sex[~fitted]), ax=ax
    )
    mcdp = lp.mcdp(None, shown, sensitive_features=sex[~fitted])
    ax.set_title(f"{title}: MCDP(0) = {100 * mcdp:.1f}%", loc="left", fontsize=11)
    ax.label_outer()
plt.show()

# %%
# The bound holds for the people fitted on. New people come close to it and may exceed it; with a `confidence`
# the repair aims lower, so that the bound holds for the population with that probability. What is promised:

print(repair.promise_)
