"""
Training with a penalty on the local disparity
==============================================

`LocalParityClassifier` adds MCDP of smoothed distributions, times a strength, to the loss. A larger strength
lowers the disparity at the cost of average precision. The sensitive feature is needed to fit, but not to
predict.
"""

import matplotlib.pyplot as plt

import localparity as lp

people = lp.datasets.make_census(4000, random_state=0)
others = lp.datasets.make_census(4000, random_state=1)

models = {}
for strength in (0.0, 0.1, 0.3):
    model = lp.models.LocalParityClassifier("diffmcdp", strength, steps=100, random_state=0)
    model.fit(people.data, people.target, sensitive_features=people.sensitive_features)
    scores = model.predict_proba(others.data)[:, 1]
    models[f"strength {strength:g}"] = lp.Predictions.from_arrays(
        others.target, scores, sensitive_features=others.sensitive_features
    )

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
lp.report.TradeOffDisplay.from_predictions(models, ax=ax)
plt.show()
