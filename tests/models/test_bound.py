"""A bound that is met by a search, and with a confidence by a test that nothing before it looked at."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import localparity as lp
from known_truth import Fall, KnownTruthClassifier, draw_people
from localparity.models import BoundNotMetWarning, LocalParityClassifier, LocalParityLGBMClassifier
from localparity.models._bound import BoundCheck, find_sequence, search_strength
from localparity.models._rows import check_training_rows
from localparity.results import Trial

BOUND = 0.2


class Recorder:
    """Trials of models whose MCDP is a function of the strength, with a margin above it."""

    def __init__(self, margin: float, rate: float = 1.0) -> None:
        self.margin, self.rate, self.whole = margin, rate, list[float]()

    def __call__(self, strength: float, title: str, *, short: bool = False) -> tuple[float, Trial]:
        if not short:
            self.whole.append(strength)
        value = 0.4 / (1.0 + self.rate * strength)
        upper = value + self.margin
        return strength, Trial(strength, 1.0 - strength, value, upper, upper <= BOUND)


@pytest.mark.parametrize("rate", [0.3, 1.0, 10.0])
def test_the_search_itself_looks_at_the_estimates(rate: float) -> None:
    plain, sure = Recorder(0.0, rate), Recorder(0.05, rate)
    search_strength(plain, BOUND)
    search_strength(sure, BOUND)
    assert plain.whole == sure.whole


@pytest.mark.parametrize(("margin", "more"), [(0.0, 0), (0.002, 0), (0.05, 1), (0.15, 2), (0.5, 2)])
def test_a_sequence_starts_with_a_fit_that_is_well_within_the_bound(margin: float, more: int) -> None:
    searched, ordered = Recorder(margin, 10.0), Recorder(margin, 10.0)
    search_strength(searched, BOUND)
    sequence = find_sequence(ordered, BOUND)
    assert len(sequence) - len(searched.whole) == more
    uppers = [trial.bounded for _, trial in sequence]
    assert uppers == sorted(uppers)
    assert max(ordered.whole) == pytest.approx(3.0**more * max(searched.whole), rel=0.01)


def test_a_sequence_that_starts_without_a_penalty_gets_one() -> None:
    sequence = find_sequence(
        lambda strength, title, *, short=False: (strength, Trial(strength, 0.5, 0.1, 0.19, True)), BOUND
    )
    assert sorted(strength for strength, _ in sequence) == [0.0, 0.15, 0.45]


def test_weights_of_one_are_no_weights() -> None:
    people = lp.datasets.make_census(600, random_state=0)
    rows = check_training_rows(None, people.data, people.target, people.sensitive_features)
    options: dict[str, Any] = {
        "sensitive_features": people.sensitive_features,
        "side": "upper",
        "confidence": 0.9,
    }
    check = BoundCheck(rows, BOUND, 0.0, "demographic_parity", 0.9)
    expected = lp.mcdp_interval(None, people.score, **options)
    trial = check(0.0, people.score)
    assert (trial.mcdp, trial.bounded, trial.met) == (
        expected.estimate,
        expected.high,
        expected.high <= BOUND,
    )
    weights = np.linspace(0.5, 1.5, 600)
    weighted = check._replace(rows=rows._replace(weights=weights))(0.0, people.score)
    expected = lp.mcdp_interval(None, people.score, sample_weight=weights, random_state=0, **options)
    assert weighted.bounded == expected.high


def fits(kind: Any, X: Any, y: Any, groups: Any, **options: Any) -> tuple[Any, list[Any]]:
    """A fitted classifier, and the strength and content of every model that was trained."""
    made = []

    class Recorded(kind):
        def _train(self, *arguments: Any, **given: Any) -> Any:
            model = super()._train(*arguments, **given)
            made.append((arguments[1], model.dump()))
            return model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundNotMetWarning)
        return Recorded(random_state=3, **options).fit(X, y, sensitive_features=groups), made


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (LocalParityLGBMClassifier, {"n_estimators": 20, "n_jobs": 1}),
        (LocalParityLGBMClassifier, {"n_estimators": 20, "n_jobs": 1, "patience": 2}),
        (LocalParityClassifier, {"steps": 12, "patience": 1, "device": "cpu"}),
    ],
)
def test_nothing_but_the_test_looks_at_the_people_held_out(kind: Any, options: dict[str, Any]) -> None:
    people = lp.datasets.make_census(1500, random_state=0)
    X, y, groups = people.data, people.target, people.sensitive_features
    rows = check_training_rows(None, X, y, groups)
    _, held_out = rows.split(0.2, 3, by_class=False)
    others, flipped = X.copy(), y.copy()
    others.iloc[held_out, :3] = 1000.0
    others.iloc[held_out, 3] = "another"
    flipped[held_out] = 1 - flipped[held_out]
    options = options | {"max_mcdp": 0.2, "confidence": 0.9}
    with warnings.catch_warnings():
        warnings.simplefilter("error", lp.models.UnseenValuesWarning)
        first, made = fits(kind, X, y, groups, **options)
        second, again = fits(kind, others, flipped, groups, **options)
    assert made == again
    assert first.trials_ != second.trials_


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_the_most_accurate_that_passed_is_kept(criterion: str) -> None:
    people = draw_people(8000, np.random.default_rng(0))
    model = KnownTruthClassifier(Fall(0.4, 0.02), max_mcdp=BOUND, confidence=0.9, criterion=criterion)
    model.fit(**people)
    assert model.bound_met_
    passed = [trial for trial in model.trials_ if trial.met]
    assert [trial.met for trial in model.trials_[:-1]] == [True] * (len(model.trials_) - 1)
    assert model.strength_ == max(passed, key=lambda trial: trial.average_precision).strength
    assert all(trial.mcdp < trial.bounded for trial in model.trials_)
    assert model.promise_.startswith("With probability 0.9, MCDP(0)")
    assert f"{8000 // 5:,} people held out" in model.promise_


def test_a_first_model_that_fails_is_kept_with_a_warning() -> None:
    people = draw_people(3000, np.random.default_rng(1))
    model = KnownTruthClassifier(Fall(0.4, 0.3), max_mcdp=BOUND, confidence=0.9)
    with pytest.warns(
        BoundNotMetWarning, match=r"max_mcdp=0.2 .*confidence=0.9.* within 0\.\d+ from 600 people"
    ):
        model.fit(**people)
    (trial,) = model.trials_
    assert (model.bound_met_, model.strength_) == (False, trial.strength)
    assert model.promise_.startswith("max_mcdp=0.2 was not met. With probability 0.9, MCDP(0) is at most 0.")


def test_people_held_out_are_drawn_by_class_only_where_classes_are_compared() -> None:
    groups, labels = np.repeat(["a", "b"], 200), np.tile([0, 0, 0, 1], 100)
    rows = check_training_rows(None, np.zeros((400, 1)), labels, groups)
    for by_class, is_spread in ((True, False), (False, True)):
        shares = [rows.take(rows.split(0.2, seed, by_class=by_class)[1]).labels.sum() for seed in range(20)]
        assert (np.ptp(shares) > 0) == is_spread


def test_a_class_that_the_people_held_out_use_up_is_an_error() -> None:
    labels, groups = np.zeros(40, dtype=int), np.repeat(["a", "b"], 20)
    labels[0] = 1
    rows = check_training_rows(None, np.zeros((40, 1)), labels, groups)
    for seed in range(10):
        assert 0 in rows.split(0.5, seed)[0]  # by class, a lone row stays in the training part
    with pytest.raises(ValueError, match=r"y has too few rows of a class for validation_fraction=0.5"):
        [rows.split(0.5, seed, by_class=False) for seed in range(10)]
