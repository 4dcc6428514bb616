"""What the page carries is what the library measures, and nothing that rests on few people."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import localparity as lp
from localparity.auditing._document import Document
from localparity.report.page._data import PageModel, pack, round_cutoffs
from strategies import People, people


def unpack(text: str) -> NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(text), dtype="<u4") / (2**32 - 1)


def page_model(audit: lp.Audit, limit: int = 1) -> PageModel:
    return PageModel("model", Document(audits={"model": audit}, min_group_size=limit))


def test_packing_loses_less_than_the_page_promises() -> None:
    fractions = np.random.default_rng(0).random(10_000)
    assert np.abs(unpack(pack(fractions)) - fractions).max() < 2e-10
    assert pack(np.array([-1e-8, 1.0 + 1e-8])) == pack(np.array([0.0, 1.0]))


@pytest.mark.filterwarnings("ignore:the scores lie between")
@settings(max_examples=25)
@given(people(n_groups=3))
def test_every_cutoff_has_the_shares_of_the_library(people: People) -> None:
    audit = lp.audit(None, people.scores, sensitive_features=people.groups, n_resamples=0)
    model = page_model(audit)
    data = model.data()
    assert len(model.groups) == 3
    cutoffs = np.array(data["cutoffs"])
    assert audit.answer.cutoff is None or audit.answer.cutoff == cutoffs[data["at"]]
    for group, shares in zip(model.groups, data["shares"], strict=True):
        scores = people.scores[people.groups == group]
        above = (scores[None, :] > cutoffs[:, None]).mean(axis=1)
        assert unpack(shares) == pytest.approx(above, abs=1e-9)


def test_the_opening_cutoff_has_the_answer_s_shares_and_intervals() -> None:
    census = lp.datasets.make_census(3000, random_state=0)
    audit = lp.audit(None, census.score, sensitive_features=census.sensitive_features, random_state=0)
    model, answer = page_model(audit, 10), audit.answer
    data = model.data()
    for row in answer.groups:
        place = [str(group) for group in model.groups].index(row.name)
        share = unpack(data["shares"][place])[data["at"]]
        assert share == pytest.approx(row.share_above, abs=1e-9)
        assert row.low is not None
        assert data["radii"][place] >= share - row.low - 1e-9
        assert model.first_share(model.groups[place]) == pytest.approx((share, row.low, row.high), abs=1e-9)
    assert answer.first is not None
    assert data["names"] == [answer.first.name, "Female"]
    curves = model.curves()
    assert curves is not None
    assert curves.rates[0] - curves.rates[1] == pytest.approx(answer.gap, abs=1e-3)


def test_everyone_and_other_ranges() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.uniform(300, 850, 500), rng.integers(0, 3, 500)
    asked: dict[str, Any] = {"compare": "to_overall", "score_range": (300, 850), "n_resamples": 0}
    model = page_model(lp.audit(None, scores, sensitive_features=groups, **asked))
    data = model.data()
    assert "everyone" in data["names"]
    everyone = unpack(data["shares"][data["sides"][data["names"].index("everyone")]])
    above = (scores[None, :] > np.array(data["cutoffs"])[:, None]).mean(axis=1)
    assert everyone == pytest.approx(above, abs=1e-9)


def test_one_small_group_takes_nothing_away() -> None:
    """The page of groups of 3,500, 2,500 and 12 people had no curve at all."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["big", "middle", "tiny"], [900, 600, 12])
    scores = np.where(groups == "tiny", 0.9 + 0.1 * rng.random(groups.size), rng.random(groups.size))
    audit = lp.audit(None, scores, sensitive_features=groups, n_resamples=99, random_state=0)
    model = page_model(audit, 10)
    assert "tiny people" in audit.answer.headline.lower()
    assert model.groups == ["big", "middle"]
    assert sorted(model.data()["names"]) == ["big", "middle"]
    assert model.curves() is not None
    for group, packed in zip(model.groups, model.data()["shares"], strict=True):
        own = scores[groups == group]
        above = (own[None, :] > model.cutoffs[:, None]).mean(axis=1)
        assert 0.0 < np.abs(unpack(packed) - above).max() <= model.off[group] + 1e-9 < 0.04


def test_a_share_of_few_people_is_not_told() -> None:
    """At the answer's cutoff shares are exact, but where few people of a group are above or below it."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], [1000, 1000, 40])
    scores = np.round(np.where(groups == "b", 0.3, 0.0) + 0.7 * rng.random(groups.size), 3)
    scores[groups == "c"] = np.where(np.arange(40) < 37, 0.01, 0.99)
    audit = lp.audit(None, scores, sensitive_features=groups, n_resamples=99, random_state=0)
    model = page_model(audit, 10)
    place = model.data()["at"]
    exact = np.mean(scores[groups == "c"] > model.cutoff)
    assert 0.0 < exact < 0.1
    assert abs(model.shares("c")[place] - exact) > 0.01
    assert page_model(audit, 1).shares("c")[place] == pytest.approx(exact, abs=1e-12)


def test_a_model_of_small_groups_has_nothing_to_draw() -> None:
    rng = np.random.default_rng(0)
    audit = lp.audit(None, rng.random(40), sensitive_features=["a", "b"] * 20, n_resamples=0)
    model = page_model(audit, 10)
    assert (model.pair, model.groups, model.curves()) == (None, [], None)
    assert model.data()["sides"] == []


def test_with_nothing_found_there_is_no_window_and_no_bracket() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.random(2000), np.repeat(["a", "b"], 1000)
    none = page_model(lp.audit(None, scores, sensitive_features=groups, random_state=0)).curves()
    assert none is not None
    assert none.window is None
    drawn = none.drawing().svg(none.label)
    assert 'class="chance"' in drawn
    assert "within chance" in drawn
    assert "bracket" not in drawn
    apart = page_model(
        lp.audit(None, scores * 0.8 + 0.2 * (groups == "a"), sensitive_features=groups)
    ).curves()
    assert apart is not None
    assert apart.window is not None
    drawn = apart.drawing().svg(apart.label)
    assert 'class="chance"' not in drawn
    assert 'class="bracket"' in drawn


@pytest.mark.parametrize(
    ("score_range", "most", "whole", "some"),
    [
        ((1.0, 10.0), 1000, True, [7.0]),
        ((1.0, 10.0), 1000, False, [7.0, 7.01]),
        ((300.0, 850.0), 200, True, [300.0, 700.0]),
        ((0.0, 1.0), 100, False, [0.07, 0.57, 0.99]),
        ((0.0, 1.0), 50, False, [0.06]),
        ((-3.7, 4.1), 200, False, [0.0, -3.7, 4.1, 0.05]),
        ((0.0, 1e-120), 50, False, [0.0]),
        ((1e9, 1e9 + 1e-3), 50, False, [1e9]),
        ((-1.5e308, 1.5e308), 50, False, [0.0]),
    ],
)
def test_cutoffs_are_numbers_that_people_type(
    score_range: tuple[float, float], most: int, whole: bool, some: list[float]
) -> None:
    """A cutoff of 7 that was typed became 7.003."""
    cutoffs = round_cutoffs(score_range, most, whole=whole)
    assert set(some) <= set(cutoffs.tolist())
    assert (cutoffs[0], cutoffs[-1]) == score_range
    assert np.all(np.diff(cutoffs) > 0)
    assert cutoffs.size <= most + 3
    assert not whole or np.all(cutoffs == np.rint(cutoffs))


def test_whole_scores_are_drawn_at_whole_cutoffs() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], [300, 250])
    scores = np.where(groups == "a", rng.integers(1, 11, 550), rng.integers(4, 11, 550))
    audit = lp.audit(
        None, scores, sensitive_features=groups, score_range=(1, 10), n_resamples=0, method="finite_sample"
    )
    model = page_model(audit, 10)
    assert model.cutoffs.tolist() == list(range(1, 11))
    curves = model.curves()
    assert curves is not None
    assert np.array_equal(curves.cutoffs, np.rint(curves.cutoffs))
    assert curves.drawing().svg("").count("<circle") == 2 * curves.cutoffs.size


@pytest.mark.parametrize("score_range", [(0.0, 1e-7), (-1.5e305, 1.5e305), (1e9, 1e9 + 1e-3)])
def test_ranges_at_the_ends_of_floats_are_drawn(score_range: tuple[float, float]) -> None:
    low, high = score_range
    part = np.random.default_rng(0).random(400)
    scores = np.clip(low * (1.0 - part) + high * part, low, high)
    audit = lp.audit(
        None, scores, sensitive_features=["a", "b"] * 200, score_range=score_range, n_resamples=0
    )
    curves = page_model(audit, 10).curves()
    assert curves is not None
    assert "nan" not in curves.drawing().svg(curves.label)
