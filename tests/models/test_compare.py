"""Methods side by side: who chooses, who reports, and what is recommended."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score

import localparity as lp
from localparity._progress import Forecast
from localparity._text import capitalised
from localparity.models import _compare, compare
from localparity.models._bound import Bound
from localparity.models._compare import (
    METHODS,
    CompareMethod,
    CompareSettings,
    ComparisonRows,
    repair_candidate,
    train_candidate,
)
from localparity.models._frontier import Frontier
from localparity.models._outcomes import measure_shortfalls
from localparity.models._rows import check_training_rows
from localparity.results import Measured, ModelCard, ModelComparison, Outcome

CENSUS = lp.datasets.make_census(1600, random_state=0)
QUICK: dict[str, Any] = {"network_steps": 5, "n_resamples": 30, "max_mcdp": 0.1, "random_state": 0}
BLIND = "group-blind repair"
NAMES = ["ERM", "DiffMCDP", "boosted trees", "penalised boosted trees"]


@pytest.fixture(scope="module")
def found() -> ModelComparison:
    return compare(
        CENSUS.data,
        np.where(CENSUS.target == 1, "yes", "no"),
        sensitive_features=CENSUS.sensitive_features,
        **QUICK,
    )


def test_there_is_one_forecast_of_the_whole_time_and_no_network_unasked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work: list[tuple[str, float, float]] = []

    class Heard(Forecast):
        def __exit__(self, *error: object) -> None:
            work.append((self.doing, self.done, self.total))

    monkeypatch.setattr(_compare, "Forecast", Heard)
    monkeypatch.setitem(METHODS, "group-blind repair", METHODS["boosted trees"]._replace(is_repair=True))
    quick = {name: value for name, value in QUICK.items() if name != "network_steps"}
    found = compare(CENSUS.data, CENSUS.target, sensitive_features=CENSUS.sensitive_features, **quick)
    assert not any(name.startswith(("ERM", "DiffMCDP")) for name in found.models)
    assert work == [("comparing 3 methods", pytest.approx(work[0][2]), work[0][2])]


def test_every_method_and_its_repair_is_there(found: ModelComparison) -> None:
    assert [outcome.name for outcome in found.outcomes] == [
        *(text for name in NAMES for text in (name, f"{name}, repaired")),
        BLIND,
    ]
    assert found.rows == (800, 400, 400)
    assert found.left_out == {}
    for outcome in found.outcomes:
        test = outcome.test
        assert (test.mcdp, test.average_precision) in outcome.settings
        assert test.interval is not None
        assert test.interval.low <= test.mcdp == test.interval.estimate <= test.interval.high
        assert outcome.met == (outcome.validation.mcdp <= 0.1)
        assert test.noise_floor is not None
        assert 0.02 < test.noise_floor < 0.15


def test_a_repair_lowers_the_disparity(found: ModelComparison) -> None:
    trees, mended = (one for one in found.outcomes if one.method == "boosted trees")
    assert mended.test.mcdp < trees.test.mcdp
    assert mended.setting.startswith("repaired to")


def test_what_is_given_up_beyond_the_frontier(found: ModelComparison) -> None:
    frontier = found.frontier
    assert frontier is not None
    assert frontier.rows == found.rows[2]
    for one in found.outcomes:
        if one.repaired:
            assert one.shortfall is None
        else:
            reached = frontier.average_precision_at(one.test.mcdp)
            assert one.shortfall == pytest.approx(reached - one.test.average_precision)
    without = found.recommended_without_group
    sentence = frontier.describe(without.test.mcdp, without.test.average_precision)
    assert f"{capitalised(without.name)} {sentence}." in found.recommendation


def test_without_a_frontier_nothing_is_said_of_it() -> None:
    fair = outcome("DiffMCDP", 0.7, 0.04)
    assert measure_shortfalls([fair], None) == (fair,)
    assert "gives up" not in comparison(fair).recommendation
    line = Frontier((0.0,), (0.03,), (0.72,), (0.7,), (0.74,), 0.02, 0.0, "demographic_parity", 0.95, 9)
    with_line = replace(comparison(fair), frontier=line)
    assert "DiffMCDP gives up 2.0 points of AP more than needed at its MCDP." in with_line.recommendation


def test_groups_too_small_for_a_frontier_are_left_out_of_it() -> None:
    rng = np.random.default_rng(0)
    groups = np.where(np.arange(400) < 40, "few", "many")
    made = compare(rng.normal(size=(400, 2)), rng.integers(0, 2, 400), sensitive_features=groups, **QUICK)
    assert made.frontier is None
    assert "min_group_size=30" in made.left_out["frontier"]


def test_the_recommendation_is_made_on_validation_data(found: ModelComparison) -> None:
    met = [one for one in found.outcomes if one.met]
    assert found.recommended == max(met, key=lambda one: one.validation.average_precision)
    assert found.recommended.method in found.recommendation
    assert not found.recommended_without_group.repaired
    plain = found.to_dict()
    assert plain["recommended"] == found.recommended.name
    assert len(plain["outcomes"]) == 9


def test_the_same_seed_gives_the_same_comparison(found: ModelComparison) -> None:
    again = compare(CENSUS.data, CENSUS.target, sensitive_features=CENSUS.sensitive_features, **QUICK)
    assert again == found


def outcome(
    method: str, precision: float, disparity: float, *, is_repaired: bool = False, noise_floor: float = 0.01
) -> Outcome:
    interval = lp.results.Interval(0.5 * disparity, disparity, 1.5 * disparity, 0.95)
    measured = Measured(2, precision, disparity, interval, noise_floor)
    return Outcome(method, is_repaired, "", measured, disparity <= 0.05, measured, ((disparity, precision),))


def measured_on_test(one: Outcome, **changes: Any) -> Outcome:
    return replace(one, test=replace(one.test, **changes))


def comparison(*outcomes: Outcome) -> ModelComparison:
    return ModelComparison(outcomes, 0.05, 0.0, "demographic_parity", (4, 2, 2), {})


def test_what_is_recommended() -> None:
    free, fair = outcome("ERM", 0.9, 0.3), outcome("DiffMCDP", 0.7, 0.04)
    mended = outcome("ERM", 0.8, 0.05, is_repaired=True)
    assert comparison(free, fair).recommendation == (
        "Use DiffMCDP, with AP 70.00% and MCDP 4.00% (2.00% to 6.00%) on test data, within the bound of 5.00%. "
        "No model is known to be within it for new people."
    )
    told = comparison(free, fair, mended).recommendation
    assert told.startswith("Use ERM, repaired, with AP 80.00%")
    assert "Also within the bound on test data: DiffMCDP (AP 70.00%, MCDP 4.00%)." in told
    assert "It needs the group at prediction; without it, the best is DiffMCDP" in told
    assert "without it, the nearest is ERM, with AP 90.00%" in comparison(free, mended).recommendation
    assert comparison(free).recommendation.startswith(
        "No model is within the bound of 5.00% on validation data; the nearest is ERM"
    )
    assert (
        "With so few rows 9.00% is expected under parity, above the bound: only more rows can tell."
        in comparison(outcome("DiffMCDP", 0.7, 0.04, noise_floor=0.09)).recommendation
    )


def test_what_is_within_the_bound_on_test_data_is_named_where_the_recommended_is_not() -> None:
    above = measured_on_test(outcome("ERM", 0.9, 0.04), mcdp=0.0536)
    fair, mended = outcome("DiffMCDP", 0.7, 0.04), outcome("ERM", 0.8, 0.03, is_repaired=True)
    found = comparison(above, fair, mended)
    assert found.recommended == above
    assert found.within_on_test == (mended, fair)
    told = found.recommendation
    assert told.startswith(
        "No clear choice: the model chosen on validation data is above the bound of 5.00%: "
        "ERM, with AP 90.00% and MCDP 5.36%"
    )
    assert (
        "Within the bound on test data: ERM, repaired (AP 80.00%, MCDP 3.00%); "
        "DiffMCDP (AP 70.00%, MCDP 4.00%). To choose among these by the test data, test the choice on other "
        "data." in told
    )
    assert found.to_dict()["within_on_test"] == ["ERM, repaired", "DiffMCDP"]
    assert "No model is within the bound on test data." in comparison(above).recommendation
    assert "test the choice" not in comparison(fair, mended).recommendation


def test_a_promise_goes_first() -> None:
    free, fair = outcome("ERM", 0.9, 0.04), outcome("DiffMCDP", 0.7, 0.03)
    sure = replace(fair, promise="With probability 0.95, it holds.")
    told = comparison(free, sure).recommendation
    assert comparison(free, sure).recommended == sure
    assert told.startswith("Use DiffMCDP,")
    assert "It is within the bound of 5.00% for new people with probability 0.95." in told
    assert "No model is known" not in told
    mended = replace(outcome("ERM", 0.8, 0.04, is_repaired=True), promise="With probability 0.95, it holds.")
    assert "without it, the best is ERM, with AP 90.00%" in comparison(free, mended).recommendation


@pytest.mark.parametrize(("max_mcdp", "is_promised"), [(0.6, True), (0.05, False)])
def test_settings_that_pass_the_test_are_promised(
    max_mcdp: float, is_promised: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_compare, "METHODS", {"boosted trees": METHODS["boosted trees"]})
    options = QUICK | {"max_mcdp": max_mcdp, "confidence": 0.9}
    made = compare(CENSUS.data, CENSUS.target, sensitive_features=CENSUS.sensitive_features, **options)
    words = "With probability 0.9, MCDP(0) is at most 0.6 in the population that the 400 people held out"
    for one in made.outcomes:
        assert one.promise.startswith(words) is is_promised
        card = made.card(one).promise or ""
        assert card.startswith(words) is is_promised
        assert f"{one.validation.mcdp:.4f}" in card
    assert ("with probability 0.9" in made.recommendation) is is_promised


def test_methods_share_the_error_rate() -> None:
    everyone = check_training_rows(None, CENSUS.data, CENSUS.target, CENSUS.sensitive_features)
    asked = CompareSettings(Bound(0.1), 0, "lightgbm", 5, 0.9, 30)
    report = _compare._Candidates(ComparisonRows(everyone, everyone, everyone), asked)
    assert report.tested.confidence == pytest.approx(1.0 - 0.1 / 9.0)  # nine outcomes, as above


def test_the_choice_does_not_look_at_the_test_part() -> None:
    first, second = outcome("ERM", 0.9, 0.04), outcome("DiffMCDP", 0.8, 0.04)
    flipped = measured_on_test(second, average_precision=0.99)
    assert comparison(first, flipped).recommended.method == "ERM"


def test_a_figure_of_every_outcome(found: ModelComparison) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    display = found.plot()
    assert {one.name for one in found.outcomes} < {text.get_text() for text in display.ax_.texts}
    assert display.ax_.get_ylabel() == "average precision on test data"
    pyplot.close(display.figure_)


class Fixed(lp.models.LocalParityLGBMClassifier):
    """Scores that leave the groups far apart, whatever the features."""

    def predict_proba(self, X: Any) -> Any:
        spread = np.random.default_rng(len(X)).random(len(X))
        scores = 0.3 * (X["age"].to_numpy() > 40) + 0.3 * spread
        return np.column_stack([1.0 - scores, scores])


def test_a_repair_is_judged_on_the_half_it_was_not_fitted_on() -> None:
    older = np.where(CENSUS.data["age"] > 40, "older", "younger")
    table = CENSUS.data.astype({"occupation": "category"})
    everyone = check_training_rows(None, table, CENSUS.target, older)
    rest, test_rows = everyone.hold_out(0.25, 0)
    parts = ComparisonRows(*rest.hold_out(1 / 3, 0), test_rows)
    asked = CompareSettings(Bound(0.1), 0, "lightgbm", 5)
    plain = train_candidate("as is", Fixed(n_estimators=2, n_jobs=1, random_state=0), parts)
    strict = repair_candidate(plain, 0.0, parts, asked)
    assert strict.setting == "as is, repaired to 0%"
    judged = lp.mcdp(None, strict.validation, sensitive_features=parts.validation.groups)
    assert 0.0 < judged < 0.25  # not exactly 0, as on the people it was fitted on
    assert average_precision_score(parts.test.labels, strict.test) > 0.0
    assert isinstance(strict.model, lp.models.RepairedClassifier)
    scores = strict.model.predict_proba(parts.test.features, sensitive_features=parts.test.named_groups)
    np.testing.assert_array_equal(scores[:, 1], strict.test)


def test_the_winner_is_a_fitted_model_that_is_saved_with_its_card(
    found: ModelComparison, tmp_path: Path
) -> None:
    for outcome in (found.recommended, found.recommended_without_group):
        folder = tmp_path / outcome.name
        found.save(folder, outcome=outcome)
        again, card = lp.load(folder), ModelCard.read(folder)
        assert list(again.classes_) == ["no", "yes"]
        groups = {"sensitive_features": CENSUS.sensitive_features} if outcome.repaired else {}
        table = CENSUS.data.astype({"occupation": "category"})
        np.testing.assert_array_equal(
            again.predict_proba(table, **groups),
            found.models[outcome.name].predict_proba(table, **groups),
        )
        assert (card.needs_group, card.max_mcdp) == (outcome.repaired, 0.1)
        assert card.held_out == outcome.test
        assert card.fitted_on is not None
        assert card.fitted_on.rows == 1200
        assert f"{outcome.validation.mcdp:.4f}" in str(card.promise)
    assert found.model is found.models[found.recommended.name]
    assert "models" not in found.to_dict()


def test_test_scores_are_those_of_the_models(found: ModelComparison) -> None:
    rows = check_training_rows(
        None,
        CENSUS.data.astype({"occupation": "category"}),
        CENSUS.target,
        CENSUS.sensitive_features,
    )
    test = rows.hold_out(0.25, 0, by_class=False)[1]
    for outcome in found.outcomes:
        groups = {"sensitive_features": test.named_groups} if outcome.repaired else {}
        scores = found.models[outcome.name].predict_proba(test.features, **groups)[:, 1]
        assert lp.mcdp(None, scores, sensitive_features=test.groups) == outcome.test.mcdp


def test_refusals_name_groups_by_their_names() -> None:
    occupation = np.where(np.arange(1600) < 6, "rare", CENSUS.sensitive_features)
    made = compare(CENSUS.data, CENSUS.target, sensitive_features=occupation, **QUICK)
    assert made.left_out
    for reason in made.left_out.values():
        assert re.search("'(rare|Female|Male)'", reason), reason


def test_a_recommendation_says_that_it_is_above_the_bound_on_test_data() -> None:
    fair = outcome("DiffMCDP", 0.7, 0.04)
    worse = measured_on_test(fair, mcdp=0.06)
    assert "No model is within the bound on test data." in comparison(worse).recommendation
    assert "above the bound" not in comparison(fair).recommendation


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_mcdp": 1.5}, "max_mcdp.*1.5"),
        ({"booster": "forest"}, "booster.*'forest'"),
        ({"criterion": "fair"}, "criterion.*'fair'"),
        ({"epsilon": -1.0}, r"epsilon must be .* got -1"),
        ({"network_steps": 0}, "network_steps.*0"),
        ({"confidence": 2.0}, "confidence.*2"),
        ({"n_resamples": 0}, "n_resamples.*0"),
        ({"random_state": -1}, "random_state.*-1"),
        ({"y": CENSUS.target * 0}, "y must have two classes"),
        ({"sensitive_features": ["a"] * 1600}, "sensitive_features.*'a'"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    given = {"X": CENSUS.data, "y": CENSUS.target, "sensitive_features": CENSUS.sensitive_features, **options}
    with pytest.raises(ValueError, match=message):
        compare(given.pop("X"), given.pop("y"), **given)


@pytest.mark.slow
def test_other_criteria_windows_and_boosters() -> None:
    made = compare(
        CENSUS.data,
        CENSUS.target,
        sensitive_features=CENSUS.sensitive_features,
        sample_weight=np.ones(1600),
        criterion="equal_opportunity",
        epsilon=0.02,
        booster="xgboost",
        **QUICK,
    )
    assert made.criterion == "equal_opportunity"
    assert len(made.outcomes) + len(made.left_out) == 9


@pytest.mark.slow
def test_arrays_frames_of_polars_and_generators_are_taken() -> None:
    numbers = CENSUS.data.select_dtypes("number")
    options = {**QUICK, "sensitive_features": CENSUS.sensitive_features}
    found = [
        compare(rows, CENSUS.target, **options | {"random_state": state})
        for rows, state in (
            (numbers, 3),
            (pl.from_pandas(numbers), 3),
            (numbers.to_numpy(), np.random.default_rng(0)),
        )
    ]
    assert found[0] == found[1]
    assert found[2].rows == (800, 400, 400)


@pytest.mark.parametrize(("bounds", "left_out"), [((0.1, 0.0), False), ((0.0,), True)])
def test_a_method_with_a_bound_of_its_own_is_not_repaired_and_may_be_out_of_reach(
    bounds: tuple[float, ...], left_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bounded(lp.models.LocalParityLGBMClassifier):
        def _fit_rows(self, rows: Any) -> Any:
            if self.max_mcdp == 0.0:
                raise ValueError("max_mcdp=0 is out of reach")
            self.set_params(max_mcdp=None)
            return super()._fit_rows(rows)

    made = CompareMethod(
        lambda _: {f"bound {bound}": Bounded(max_mcdp=bound, n_estimators=2) for bound in bounds}, True
    )
    monkeypatch.setattr(_compare, "METHODS", {"boosted trees": METHODS["boosted trees"], "own": made})
    found = compare(CENSUS.data, CENSUS.target, sensitive_features=CENSUS.sensitive_features, **QUICK)
    names = [one.name for one in found.outcomes]
    assert names == ["boosted trees", "boosted trees, repaired", *([] if left_out else ["own"])]
    assert found.left_out == ({"own": "max_mcdp=0 is out of reach"} if left_out else {})
