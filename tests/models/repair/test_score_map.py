"""The map against numpy's straight lines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity.models.repair._maps import ScoreMap

UNIT = st.floats(0, 1, allow_subnormal=False)


@given(st.lists(UNIT, min_size=1, max_size=12, unique=True), st.data())
def test_is_made_of_straight_lines(knots: list[float], data: st.DataObject) -> None:
    values = sorted(data.draw(st.lists(UNIT, min_size=len(knots), max_size=len(knots))))
    scores = np.array(data.draw(st.lists(UNIT, min_size=1, max_size=20)) + knots)
    found = ScoreMap(np.array(sorted(knots)), np.array(values))(scores)
    xs, ys = np.array(sorted(knots)), np.array(values)
    if xs[0] > 0.0:
        xs, ys = np.append(0.0, xs), np.append(0.0, ys)
    if xs[-1] < 1.0:
        xs, ys = np.append(xs, 1.0), np.append(ys, 1.0)
    inside = np.isin(scores, xs)
    np.testing.assert_array_equal(found[inside], ys[np.searchsorted(xs, scores[inside])])
    np.testing.assert_allclose(found, np.interp(scores, xs, ys), atol=1e-9)
    order = np.argsort(scores)
    assert (np.diff(found[order]) >= 0.0).all()


@pytest.mark.parametrize("score_range", [(0.0, 1.0), (-3.0, 5.0)])
def test_between_knots_that_stay_every_score_stays(score_range: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    knots = np.sort(rng.uniform(*score_range, 50))
    scores = rng.uniform(*score_range, 1000)
    np.testing.assert_array_equal(ScoreMap(knots, knots, score_range)(scores), scores)


def test_knots_that_crowd_together_are_found_too() -> None:
    knots = np.linspace(0.0, 1e-6, 10_000)
    found = ScoreMap(knots, knots + 0.5)(knots[::-1].copy())
    np.testing.assert_array_equal(found, knots[::-1] + 0.5)
