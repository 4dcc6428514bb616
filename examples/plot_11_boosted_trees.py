"""
Boosted trees with a penalty
============================

The same penalty as an objective for XGBoost: every tree sees all rows, so the worst threshold is found
exactly in each round. The trees are fitted on one census and shown on another.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import average_precision_score

import localparity as lp

people = lp.datasets.make_census(6000, random_state=0)
others = lp.datasets.make_census(6000, random_state=1)
features, new = (part.data.astype({"occupation": "category"}) for part in (people, others))

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
for strength in (0.0, 0.2, 0.5):
    model = lp.models.LocalParityXGBClassifier(
        strength, n_estimators=60, learning_rate=0.1, booster_params={"max_depth": 3}, random_state=0
    )
    model.fit(features, people.target, sensitive_features=people.sensitive_features)
    scores = model.predict_proba(new)[:, 1]
    rows = lp.Predictions.from_arrays(others.target, scores, sensitive_features=others.sensitive_features)
    found, precision = lp.mcdp_interval(rows), average_precision_score(others.target, scores)
    ends = [[found.estimate - found.low], [found.high - found.estimate]]
    ax.errorbar(found.estimate, precision, xerr=ends, fmt="o", capsize=3)
    ax.annotate(f"strength {strength:g}", (found.estimate, precision), (3, 7), textcoords="offset points")

for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
ax.set(xlabel="MCDP(0) and its 95% interval", ylabel="average precision", xlim=(0, None))
plt.show()
