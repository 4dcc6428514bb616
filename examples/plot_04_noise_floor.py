"""
What is expected under parity
=============================

Two samples from one and the same distribution differ by chance, and MCDP is a maximum, so it is above 0 even
where the groups do not differ at all. How far above depends mostly on the smaller group. An MCDP of 5% is
nothing to speak of with 300 people in a group, and much with 30,000.
"""

import matplotlib.pyplot as plt
import numpy as np

import localparity as lp

sizes = np.geomspace(30, 30_000, 10).astype(int)
floors = [lp.noise_floor([size, 30_000], n_resamples=200, random_state=0) for size in sizes]

figure, ax = plt.subplots(layout="constrained")
average, most = ([floor.mean for floor in floors], [floor.quantiles[0.95] for floor in floors])
ax.plot(sizes, average, "o-")
ax.annotate(
    "on average", (sizes[3], average[3]), (-6, -12), textcoords="offset points", ha="right", color="C0"
)
ax.plot(sizes, most, "s--")
ax.annotate("95% of the time at most", (sizes[3], most[3]), (6, 6), textcoords="offset points", color="C1")
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xlabel("people in the smaller group, beside 30,000 in the other")
ax.set_ylabel("MCDP(0) between groups that do not differ")
ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
ax.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2])
plt.show()
