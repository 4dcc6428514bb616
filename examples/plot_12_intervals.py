"""
How long intervals are
======================

The lower end of an interval allows for the search over thresholds and pairs: MCDP is a maximum, and a maximum
is often too large. The upper end need not, since one threshold is the worst in the population, whatever the
sample. So the upper end is closer to the estimate, and an upper bound alone is closer still.
"""

import matplotlib.pyplot as plt
import numpy as np

import localparity as lp

sizes = np.geomspace(30, 30_000, 13).astype(int)
distances = {"lower end of an interval": [], "upper end of an interval": [], "upper bound alone": []}
for size in sizes:
    # The scores of one group have the distribution function y, those of the other y squared.
    places = (np.arange(size) + 0.5) / size
    scores, groups = np.concatenate([places, np.sqrt(places)]), np.repeat(["a", "b"], size)
    both, upper = (
        lp.mcdp_interval(None, scores, sensitive_features=groups, side=side) for side in ("both", "upper")
    )
    distances["lower end of an interval"].append(both.estimate - both.low)
    distances["upper end of an interval"].append(both.high - both.estimate)
    distances["upper bound alone"].append(upper.high - upper.estimate)

figure, ax = plt.subplots(layout="constrained")
for (label, values), style in zip(distances.items(), ("o-", "s--", "^:"), strict=True):
    (line,) = ax.plot(sizes, values, style)
    place = (sizes[-1], values[-1])
    ax.annotate(label, place, (6, 0), textcoords="offset points", va="center", color=line.get_color())
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xlabel("people in each of two groups")
ax.set_ylabel("distance from MCDP(0), at 95%")
ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
ax.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2])
plt.show()
