"""
Boosted trees with a penalty
============================

The same penalty as an objective for XGBoost: every tree sees all rows, so the worst threshold is found
exactly in each round. The trees are fitted on one census and shown on another.
"""

import matplotlib.pyplot as plt

import localparity as lp

people = lp.datasets.make_census(6000, random_state=0)
others = lp.datasets.make_census(6000, random_state=1)
features, new = (part.data.astype({"occupation": "category"}) for part in (people, others))

models = {}
for strength in (0.0, 0.2, 0.5):
    model = lp.models.LocalParityXGBClassifier(
        strength, n_estimators=60, learning_rate=0.1, booster_params={"max_depth": 3}, random_state=0
    )
    model.fit(features, people.target, sensitive_features=people.sensitive_features)
    scores = model.predict_proba(new)[:, 1]
    models[f"strength {strength:g}"] = lp.Predictions.from_arrays(
        others.target, scores, sensitive_features=others.sensitive_features
    )

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
lp.report.TradeOffDisplay.from_predictions(models, ax=ax)
plt.show()
