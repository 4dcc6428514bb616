"""What the page carries is what the library measures."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import localparity as lp
from localparity.counts._comparison import CRITERIA
from localparity.report.page._data import MOST_VIEWS, PageModel, Plan, Words, pack, round_thresholds
from strategies import People, people


def unpack(text: str) -> NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(text), dtype="<u4") / (2**32 - 1)


def plan_page(audits: dict[str, lp.Audit], limit: int) -> tuple[Plan, list[dict[str, Any]]]:
    """How fine the page is, and what it shows of each model."""
    models = [PageModel(name, audit, limit) for name, audit in audits.items()]
    plan, words = Plan.of(models), Words()
    shown = [model.data(plan, words) for model in models]
    return plan, [one | {"told": words.data()} for one in shown]


def told(data: dict[str, Any], view: dict[str, Any], place: int) -> str:
    """The sentence that the page's script puts together."""
    words = data["told"]

    def word(places: str) -> str:
        text: str = words["words"][
            int.from_bytes(base64.b64decode(places[4 * place : 4 * place + 4]), "little")
        ]
        return text

    run = words["runs"][int(view["forms"][place])].format(word(view["lows"]), word(view["highs"]))
    names = data["pairs"][view["pair"]]
    parts = words["sentences"][view["sentences"][view["sign"][place]]]
    filled = [
        (names[part] if part != "" else "")
        if i % 2
        else part.replace("{run}", run).replace("{points}", word(view["points"]))
        for i, part in enumerate(parts)
    ]
    return "".join(filled)


def test_packing_loses_less_than_the_page_promises() -> None:
    fractions = np.random.default_rng(0).random(10_000)
    assert np.abs(unpack(pack(fractions)) - fractions).max() < 2e-10
    assert pack(np.array([-1e-8, 1.0 + 1e-8])) == pack(np.array([0.0, 1.0]))


@pytest.mark.filterwarnings("ignore:the scores lie between")
@settings(max_examples=25)
@given(people(n_groups=3))
def test_every_slider_position_has_the_values_of_the_library(people: People) -> None:
    audit = lp.audit(
        None, people.scores, sensitive_features=people.groups, epsilons=[0, 0.033], n_resamples=0
    )
    plan, (data,) = plan_page({"model": audit}, 1)
    assert 0.033 in plan.epsilons
    assert len(data["views"]) == len(data["pairs"]) == 3
    for view in data["views"]:
        pair = [int(name) for name in data["pairs"][view["pair"]]]
        kept = np.isin(people.groups, pair)
        profile = lp.mcdp_profile(None, people.scores[kept], sensitive_features=people.groups[kept])
        assert unpack(view["mcdp"]) == pytest.approx(profile(plan.epsilons), abs=1e-9)
        for side, group in zip(view["sides"], pair, strict=True):
            scores = people.scores[people.groups == group]
            rates = (scores[None, :] > np.array(data["thresholds"])[:, None]).mean(axis=1)
            assert unpack(data["sides"][side]["rates"]) == pytest.approx(rates, abs=1e-9)
        for place in range(0, plan.epsilons.size, 25):
            window = lp.gap_curve(
                lp.Predictions.from_arrays(None, people.scores, sensitive_features=people.groups),
                groups=(pair[0], pair[1]),
            ).worst_window(plan.epsilons[place])
            assert told(data, view, place) == window.sentence
            assert {"+": pair[0], "-": pair[1], "x": None, "0": None}[view["sign"][place]] == window.lower


def labelled(n_groups: int, *, criterion: Any, rows: int = 4000) -> lp.Audit:
    rng = np.random.default_rng(0)
    predictions = lp.Predictions.from_arrays(
        rng.integers(0, 2, rows), rng.random(rows), sensitive_features=rng.integers(0, n_groups, rows)
    )
    counts = lp.ScoreCounts.from_predictions(predictions)
    return lp.audit(counts, criterion=criterion, n_resamples=0, threshold=0.123)


def test_with_labels_every_criterion_can_be_chosen() -> None:
    audit = labelled(2, criterion="demographic_parity")
    _, (data,) = plan_page({"model": audit}, 1)
    assert data["criteria"] == list(CRITERIA)
    assert {view["label"] for view in data["views"]} == {None, 0, 1}
    assert 0.123 in data["thresholds"]


def test_a_group_without_one_label_leaves_that_criterion_out() -> None:
    predictions = lp.Predictions.from_arrays(
        [0, 1, 0, 0], [0.1, 0.2, 0.3, 0.4], sensitive_features=["a", "a", "b", "b"]
    )
    audit = lp.audit(lp.ScoreCounts.from_predictions(predictions), n_resamples=0)
    _, (data,) = plan_page({"model": audit}, 1)
    assert data["criteria"] == ["demographic_parity", "predictive_equality"]


def test_more_pairs_than_fit_leave_the_least_bad_out() -> None:
    audit = labelled(30, criterion="equalized_odds")
    _, (data,) = plan_page({"model": audit}, 1)
    assert len(data["views"]) == MOST_VIEWS
    assert data["criteria"] == ["equal_opportunity", "predictive_equality", "equalized_odds"]
    assert data["pairs"][0] == [str(group) for group in audit.pairs[0].groups]


def test_everyone_and_other_ranges() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.uniform(300, 850, 500), rng.integers(0, 3, 500)
    audit = lp.audit(
        None, scores, sensitive_features=groups, compare="to_overall", score_range=(300, 850), n_resamples=0
    )
    _, (data,) = plan_page({"model": audit}, 1)
    assert {pair[1] for pair in data["pairs"]} == {"everyone"}
    everyone = data["views"][0]["sides"][1]
    rates = (scores[None, :] > np.array(data["thresholds"])[:, None]).mean(axis=1)
    assert unpack(data["sides"][everyone]["rates"]) == pytest.approx(rates, abs=1e-9)


def test_a_group_too_small_for_steps_is_not_drawn() -> None:
    """Its people would all stand at one score, and the page would say that all of them are above it."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "few"], [900, 600, 18])
    labels = np.where(np.arange(groups.size) % 30, 0, 1)
    predictions = lp.Predictions.from_arrays(labels, rng.random(groups.size), sensitive_features=groups)
    audit = lp.audit(lp.ScoreCounts.from_predictions(predictions), n_resamples=0, min_group_size=10)
    model = PageModel("model", audit, 10)
    data = model.data(Plan.of([model]), Words())
    assert model.undrawn == ["few"]
    assert data["pairs"] == [["a", "b"]]
    assert not data["whole"]
    assert data["criteria"] == ["demographic_parity"]  # of label 1 there are 20 of a group
    for side, group in zip(data["sides"], data["pairs"][0], strict=True):
        scores = np.asarray(predictions.scores)[groups == group]
        rates = (scores[None, :] > np.array(data["thresholds"])[:, None]).mean(axis=1)
        assert 0.0 < np.abs(unpack(side["rates"]) - rates).max() <= side["off"] + 1e-9 < 0.04


def test_a_model_of_small_groups_has_nothing_to_draw() -> None:
    rng = np.random.default_rng(0)
    audit = lp.audit(None, rng.random(40), sensitive_features=["a", "b"] * 20, n_resamples=0)
    model = PageModel("model", audit, 10)
    assert (model.pairs, model.undrawn) == ([], ["a", "b"])
    assert Plan.of([model]).listed >= 1


@pytest.mark.parametrize(
    ("score_range", "most", "whole", "some"),
    [
        ((1.0, 10.0), 1000, True, [7.0]),
        ((1.0, 10.0), 1000, False, [7.0, 7.01]),
        ((300.0, 850.0), 200, True, [300.0, 700.0]),
        ((0.0, 1.0), 1000, False, [0.07, 0.57, 0.999]),
        ((0.0, 1.0), 50, False, [0.06]),
        ((-3.7, 4.1), 200, False, [0.0, -3.7, 4.1, 0.05]),
        ((0.0, 1e-120), 50, False, [0.0]),
        ((1e9, 1e9 + 1e-3), 50, False, [1e9]),
        ((-1.5e308, 1.5e308), 50, False, [0.0]),
    ],
)
def test_thresholds_are_numbers_that_people_type(
    score_range: tuple[float, float], most: int, whole: bool, some: list[float]
) -> None:
    """A threshold of 7 that was typed became 7.003."""
    found = round_thresholds(score_range, most, whole=whole)
    assert set(some) <= set(found.tolist())
    assert (found[0], found[-1]) == score_range
    assert np.all(np.diff(found) > 0)
    assert found.size <= most + 3
    assert not whole or np.all(found == np.rint(found))


def test_whole_scores_are_drawn_at_whole_thresholds() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], [300, 25])
    scores = np.where(groups == "a", rng.integers(1, 11, 325), rng.integers(4, 11, 325))
    audit = lp.audit(
        None, scores, sensitive_features=groups, score_range=(1, 10), n_resamples=0, method="finite_sample"
    )
    _, (model,) = plan_page({"": audit}, 10)
    assert model["thresholds"] == list(range(1, 11))
    for view in model["views"]:
        points = 1.0 + 9.0 * unpack(view["x"])
        assert np.allclose(points, np.rint(points), atol=1e-6)
