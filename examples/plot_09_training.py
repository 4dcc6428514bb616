"""
Training with a penalty on the local disparity
==============================================

`LocalParityClassifier` adds MCDP of smoothed distributions, times a strength, to the loss. A larger strength
lowers the disparity at the cost of average precision. The sensitive feature is needed to fit, but not to
predict.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import average_precision_score

import localparity as lp

people = lp.datasets.make_census(4000, random_state=0)
others = lp.datasets.make_census(4000, random_state=1)

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
for strength in (0.0, 0.1, 0.3):
    model = lp.models.LocalParityClassifier("diffmcdp", strength, steps=100, random_state=0)
    model.fit(people.data, people.target, sensitive_features=people.sensitive_features)
    scores = model.predict_proba(others.data)[:, 1]
    rows = lp.Predictions.from_arrays(others.target, scores, sensitive_features=others.sensitive_features)
    found, precision = lp.mcdp_interval(rows), average_precision_score(others.target, scores)
    ends = [[found.estimate - found.low], [found.high - found.estimate]]
    ax.errorbar(found.estimate, precision, xerr=ends, fmt="o", capsize=3)
    ax.annotate(f"strength {strength:g}", (found.estimate, precision), (3, 7), textcoords="offset points")

for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
ax.set(xlabel="MCDP(0) and its 95% interval", ylabel="average precision", xlim=(0, None))
plt.show()
