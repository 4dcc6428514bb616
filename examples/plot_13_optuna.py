"""
A bound as a constraint of Optuna
=================================

Twelve fits of penalised trees twice: at twelve strengths, and where Optuna looks when the strength, the
learning rate and the size of the trees may vary and MCDP(0) must stay below 10%. Both are shown on rows
that were not trained on.
"""

import matplotlib.pyplot as plt
import numpy as np
import optuna
from sklearn.metrics import average_precision_score

import localparity as lp

optuna.logging.set_verbosity(optuna.logging.WARNING)
census = lp.datasets.make_census(3000, random_state=0)
X, y, sex = census.data, census.target, census.sensitive_features
train = np.arange(3000) < 1500


def measure(strength, learning_rate=0.1, **booster_params):
    """MCDP(0) and average precision of the rows that are not trained on."""
    options = {"n_estimators": 40, "learning_rate": learning_rate, "booster_params": booster_params}
    model = lp.models.LocalParityLGBMClassifier(strength, random_state=0, **options)
    model.fit(X[train], y[train], sensitive_features=sex[train])
    scores = model.predict_proba(X[~train])[:, 1]
    mcdp = lp.mcdp(None, scores, sensitive_features=sex[~train])
    return mcdp, average_precision_score(y[~train], scores)


def objective(trial):
    """Average precision; MCDP is a constraint."""
    strength = trial.suggest_float("strength", 0.01, 3.0, log=True)
    learning_rate = trial.suggest_float("learning_rate", 0.02, 0.3, log=True)
    leaves = trial.suggest_int("num_leaves", 2, 31, log=True)
    mcdp, average_precision = measure(strength, learning_rate, num_leaves=leaves)
    trial.set_constraint("mcdp", mcdp - 0.1)
    return average_precision


grid = [measure(strength) for strength in np.geomspace(0.01, 3.0, 12)]
sampler = optuna.samplers.TPESampler(n_startup_trials=5, seed=0)
study = optuna.create_study(direction="maximize", sampler=sampler)
study.optimize(objective, n_trials=12)
trials = [(trial.constraints["mcdp"] + 0.1, trial.value) for trial in study.trials]

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.axvspan(0.0, 0.1, color="#009E73", alpha=0.1, lw=0)
ax.text(0.01, 0.02, "within the bound", color="#009E73", transform=ax.transAxes)
for points, name, colour in ((grid, "twelve strengths", "#0072B2"), (trials, "Optuna", "#D55E00")):
    ax.scatter(*zip(*points, strict=True), color=colour)
    ax.annotate(name, max(points), (0, 8), textcoords="offset points", ha="right", color=colour)
ax.set(xlabel="MCDP(0)", ylabel="average precision", xlim=(0.0, None))
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
plt.show()
