"""
MCDP at every epsilon
=====================

A wider window asks for more: the gap has to stay large over all of it. So MCDP falls as epsilon grows, in
steps, and the whole profile comes out of one pass over the sorted scores. The band holds the whole true
profile with 95% probability; the dotted line is what is expected under parity.
"""

import matplotlib.pyplot as plt
import numpy as np

import localparity as lp

census = lp.datasets.make_census(2000, random_state=0)
display = lp.report.McdpProfileDisplay.from_predictions(
    lp.Predictions.from_arrays(None, census.score, sensitive_features=census.sensitive_features),
    random_state=0,
)

# The census is invented, so its true MCDP is known.
epsilons = np.linspace(0.0, 0.4, 41)
truth = [lp.datasets.census_mcdp(epsilon) for epsilon in epsilons]
display.ax_.plot(epsilons, truth, color="black", lw=1, ls="--")
display.ax_.annotate("the truth", (epsilons[20], truth[20]), (6, 6), textcoords="offset points")
plt.show()
