"""
Several groups and their intersections
======================================

With more than two groups every pair is compared, and the audit lists all pairs, the worst first. Give several
columns, and the groups are the combinations that occur. The more groups there are, the smaller they get, so
what is expected of the worst pair under parity belongs beside it, and each pair has its own p-value.
"""

import matplotlib.pyplot as plt
import numpy as np

import localparity as lp

census = lp.datasets.make_census(20_000, random_state=0)
people = {"sex": census.sensitive_features, "occupation": census.data["occupation"]}
audit = lp.audit(
    None, census.score, sensitive_features=people, epsilons=[0.05], n_resamples=199, random_state=0
)

ranked = sorted(audit.groups, key=lambda summary: summary.mean_score)
names = [", ".join(summary.group) for summary in ranked]
place = {summary.group: i for i, summary in enumerate(ranked)}
found = np.full((len(names), len(names)), np.nan)
for pair in audit.pairs:
    first, second = (place[group] for group in pair.groups)
    found[max(first, second), min(first, second)] = 100 * pair.mcdp[0]

figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
ax.imshow(found, cmap="cividis", vmin=0)
ax.set_xticks(range(len(names)), names, rotation=40, ha="right")
ax.set_yticks(range(len(names)), names)
for (row, column), value in np.ndenumerate(found):
    if np.isfinite(value):
        colour = "white" if value < np.nanmax(found) / 2 else "black"
        ax.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour)
ax.spines[:].set_visible(False)
ax.set_title("MCDP(0.05) of each pair, in points")
plt.show()

# %%
# The worst of the 28 pairs, what is expected under parity of the worst of 28, and the answer:

(finding,) = audit.findings
print(finding.window.sentence)
print(f"expected under parity: {100 * finding.test.null_mean:.1f} points")
print(*audit.answer.sentences, sep="\n")
