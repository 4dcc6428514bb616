"""
One model, three questions
==========================

Which people are compared is a choice. Demographic parity compares everyone; equal opportunity the people with
label 1, predictive equality those with label 0. The same scores can be far apart by one criterion and close
by another, and no criterion is the right one everywhere.
"""

import matplotlib.pyplot as plt

import localparity as lp

census = lp.datasets.make_census(20_000, random_state=0)
criteria = ["demographic_parity", "equal_opportunity", "predictive_equality"]

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
for criterion, ax in zip(criteria, axes, strict=True):
    display = lp.report.GapCurveDisplay.from_predictions(
        lp.Predictions.from_arrays(census.target, census.score, sensitive_features=census.sensitive_features),
        criterion=criterion,
        epsilon=0.05,
        ax=ax,
    )
    ax.set_title(f"{criterion.replace('_', ' ')}: {100 * display.curve.mcdp(0.05):.1f}%", fontsize=11)
    ax.label_outer()
plt.show()
