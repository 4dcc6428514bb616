"""
A model in use, watched by the day
==================================

`Monitor` keeps a sketch of some 50 kilobytes for each group and day, in a folder. Here the scores of one
group start to drift on the fifth day. The error bars are 95% intervals that count in both chance and the
sketch's error. An alarm is raised when one day, or the evidence of all days so far, shows that MCDP has been
above the bound.
"""

import tempfile
from datetime import UTC, datetime

import matplotlib.pyplot as plt
import numpy as np

import localparity as lp

rng = np.random.default_rng(0)
monitor = lp.monitoring.Monitor(tempfile.mkdtemp(), every="day")
for day in range(1, 11):
    sex = rng.choice(["Female", "Male"], 20_000)
    drift = 0.25 * max(0, day - 4)
    scores = rng.beta(2.0 + drift * (sex == "Male"), 4.0)
    batch = lp.Predictions.from_arrays(None, scores, sensitive_features=sex)
    monitor.append(batch, at=datetime(2026, 5, day, tzinfo=UTC), batch_id=f"day {day}")

watch = lp.monitoring.Watch(epsilon=0.05, max_mcdp=0.10)
series = monitor.series(watch)

days, mcdp = [point.period[-2:] for point in series], [point.interval.estimate for point in series]
low, high = zip(*((point.interval.low, point.interval.high) for point in series), strict=True)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(days, low, high, alpha=0.2, lw=0)
ax.plot(days, mcdp, "o-")
for day, value, point in zip(days, mcdp, series, strict=True):
    if point.alarm:
        ax.plot(day, value, "o", color="C1", ms=9)
ax.annotate("alarm", (days[-1], mcdp[-1]), (-10, 0), textcoords="offset points", ha="right", color="C1")
ax.axhline(watch.max_mcdp, color="black", lw=1, ls="--")
ax.annotate("bound 10%", (days[0], watch.max_mcdp), (0, 4), textcoords="offset points")
ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
ax.set(xlabel="day of May 2026", ylabel="MCDP(0.05) and its 95% interval", ylim=(0, None))
plt.show()

# %%
# The days with an alarm, and for how many days the evidence has been growing. The probability that the
# monitor ever raises a false one is at most 5%:

print([(point.period, point.alarm.periods) for point in series if point.alarm])

# %%
# Everyone since the start; with a probability of 95% no such interval, however often one looks, ever misses:

print(monitor.since_start(watch).interval)
