"""What an audit of some sizes finds, against the test itself and known distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, kstwobign

import localparity as lp
from localparity.uncertainty import _power
from localparity.uncertainty._power import Critical, Threshold, _about, _binomial, needed_to_reject
from localparity.uncertainty._resampling import Draws

QUICK: dict[str, Any] = {"n_resamples": 400, "random_state": 0}
UNIFORMS = np.random.default_rng(0).random((3, 4000))


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_power, "_DRAWS", 2000)


def mcdp(sizes: list[int], **options: Any) -> float:
    found = lp.minimum_detectable(sizes, **{**QUICK, **options}).mcdp
    assert found is not None
    return found


ONE, EPSILONS = np.zeros(1), np.array([0.0, 0.01, 0.05, 0.1])


@pytest.mark.compiled
def test_what_is_needed_to_reject_follows_kolmogorov() -> None:
    found = needed_to_reject(np.array([5000, 10**8]), 0.0, ONE, 0.95, Draws(400, 0))
    assert found.dealt == pytest.approx(kstwobign.ppf(0.95), rel=0.08)
    assert found.confirmed == 0.0
    assert _about(2, 0.95).dealt == pytest.approx(kstwobign.ppf(0.95), rel=1e-3)


def test_what_is_needed_to_reject_is_what_the_test_needs() -> None:
    sizes = np.array([30, 40])
    groups = np.repeat([0, 1], sizes)
    test = lp.permutation_test(
        None, np.arange(70) / 70, sensitive_features=groups, n_resamples=400, random_state=0
    )
    needed = needed_to_reject(sizes, 0.0, ONE, 0.95, Draws(400, 0))
    assert needed.gaps(sizes) == pytest.approx([test.null_quantiles[0.95]], rel=0.1)


@pytest.mark.parametrize("epsilons", [ONE, EPSILONS])
def test_what_is_needed_is_what_an_audit_calls_significant(epsilons: Any) -> None:
    sizes = np.array([15, 30, 60])
    # Groups that are far apart, so that the bootstrap has to confirm it.
    scores = np.concatenate(
        [np.linspace(0.0, 1.0, size) ** power for size, power in zip(sizes, (4, 1, 1), strict=True)]
    )
    options: dict[str, Any] = {"epsilons": epsilons, "n_resamples": 400, "random_state": 0}
    audit = lp.audit(None, scores, sensitive_features=np.repeat([0, 1, 2], sizes), **options)
    assert audit.answer.status == "disparity"
    needed = needed_to_reject(sizes, 0.0, epsilons, 0.95, Draws(400, 0)).gaps(sizes)
    detectable = {tuple(sorted(pair.groups)): pair.detectable for pair in audit.pairs}
    assert needed == pytest.approx([detectable[pair] for pair in ((0, 1), (0, 2), (1, 2))], rel=0.1)


def test_windows_and_people_close_to_a_threshold_ask_for_more() -> None:
    sizes, draws = np.array([100, 200]), Draws(2000, 0)
    one, several, close = (
        needed_to_reject(sizes, gap, epsilons, 0.95, draws).dealt
        for gap, epsilons in ((0.0, ONE), (0.0, EPSILONS), (0.9, EPSILONS))
    )
    assert one < several < close


@pytest.mark.parametrize(("size", "share"), [(1, 0.5), (7, 0.0), (7, 1.0), (50, 0.01), (900, 0.6)])
def test_numbers_are_binomial(size: int, share: float) -> None:
    uniforms = UNIFORMS[0]
    assert _binomial(size, share, uniforms).tolist() == binom.ppf(uniforms, size, share).clip(0).tolist()


def test_numbers_of_very_many_are_nearly_binomial() -> None:
    found = _binomial(4 * 10**6, 0.3, UNIFORMS[0])
    assert np.abs(found - binom.ppf(UNIFORMS[0], 4 * 10**6, 0.3)).max() <= 2


def test_at_parity_the_power_is_about_the_level() -> None:
    threshold = Threshold(Critical(float(kstwobign.ppf(0.9))), UNIFORMS[:2])
    assert 0.05 < threshold._power_at(np.array([400, 400]), np.array([0.5, 0.5])) < 0.11


def test_the_hardest_is_near_the_middle_and_others_help_little() -> None:
    sizes = np.array([100, 100, 100])
    threshold = Threshold(Critical(1.6), UNIFORMS)
    below = threshold.hardest(sizes, (0, 1), 0.3)
    assert below[0] - below[1] == pytest.approx(0.3)
    assert 0.2 < below[1] < below[0] < 0.8
    assert below[2] == pytest.approx(below[:2].mean())
    # A small group beside large ones is hardest to find where these are alike.
    below = threshold.hardest(np.array([10, 1000, 1000]), (0, 1), 0.6)
    assert below[2] == pytest.approx(below[1])


@pytest.mark.compiled
def test_more_people_find_less_and_more_is_asked_of_higher_power_and_confidence() -> None:
    here = mcdp([100, 200])
    assert mcdp([200, 400]) < here < mcdp([50, 100])
    assert mcdp([100, 200], power=0.5) < here < mcdp([100, 200], power=0.95)
    assert mcdp([100, 200], confidence=0.8) < here < mcdp([100, 200], confidence=0.99)
    assert mcdp([100, 200, 200]) > here
    assert mcdp([100, 200], epsilons=[0]) < here


@pytest.mark.compiled
def test_the_normal_approximation_comes_near() -> None:
    # At one threshold a gap has a standard deviation of sqrt(p (1 - p) 2 / n).
    size = 2000
    expected = (kstwobign.ppf(0.95) + 0.8416 * 0.5) * np.sqrt(2 / size)
    assert mcdp([size, size], n_resamples=2000, epsilons=[0]) == pytest.approx(expected, rel=0.04)


def test_pairs_are_named_by_their_places() -> None:
    found = lp.minimum_detectable([50, 1, 40], **QUICK)
    assert found.mcdp is None
    assert set(found.pairs) == {(0, 1), (0, 2), (1, 2)}
    assert found.pairs[0, 1] is None
    large = found.pairs[0, 2]
    assert large is not None
    assert 0.0 < large < 0.6
    assert (found.group_sizes, found.power, found.confidence) == ((50, 1, 40), 0.8, 0.95)
    alike = lp.minimum_detectable([60, 60, 60], **QUICK)
    assert set(alike.pairs.values()) == {alike.mcdp}


@pytest.mark.parametrize(("sizes", "wanted"), [([3, 5], 0.3), ([1, 1, 4], 0.4)])
def test_the_rows_needed_find_what_is_wanted(sizes: list[int], wanted: float) -> None:
    options = {**QUICK, "n_resamples": 1000}
    needed = lp.rows_needed(sizes, mcdp=wanted, **options)
    found = lp.minimum_detectable(needed, **{**options, "random_state": 1}).mcdp
    assert found == pytest.approx(wanted, rel=0.1)
    assert np.array(needed) / sum(needed) == pytest.approx(np.array(sizes) / sum(sizes), abs=0.03)


def test_a_seed_seeds_whatever_runs_at_a_time() -> None:
    one, other = (lp.minimum_detectable([30, 60], **QUICK, n_jobs=jobs) for jobs in (1, 3))
    assert one == other
    assert lp.rows_needed([1, 2], mcdp=0.5, **QUICK) == lp.rows_needed([1, 2], mcdp=0.5, **QUICK, n_jobs=2)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([5], {}, r"group_sizes.*got 1"),
        (5, {}, r"group_sizes.*got 1"),
        ([5, 0], {}, r"group_sizes.*0"),
        ([5, 2.5], {}, r"group_sizes.*2\.5"),
        ([10**12, 10**12], {}, r"group_sizes.*2e\+12"),
        ([5, 5], {"power": 1.0}, r"power.*1"),
        ([5, 5], {"confidence": 0.0}, r"confidence.*0"),
        ([5, 5], {"n_resamples": 5}, r"n_resamples.*19.*5"),
        ([5, 5], {"epsilons": [0.1, 0.05]}, r"epsilons must contain 0, got \[0\.05, 0\.1\]"),
    ],
)
def test_what_cannot_be_planned_is_an_error(sizes: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.minimum_detectable(sizes, **options)
    with pytest.raises(ValueError, match=message):
        lp.rows_needed(sizes, mcdp=0.5, **options)


@pytest.mark.parametrize("wanted", [0.0, 1e-5, 1.5])
def test_an_mcdp_that_cannot_be_found_is_an_error(wanted: float) -> None:
    with pytest.raises(ValueError, match=f"mcdp.*{wanted:g}"):
        lp.rows_needed([5, 5], mcdp=wanted)


@pytest.mark.parametrize(("shares", "mcdp"), [((1, 1), 0.3), ((1, 9), 0.3), ((1, 1, 2), 0.5)])
def test_as_many_rows_as_are_needed_find_it(shares: tuple[int, ...], mcdp: float) -> None:
    """Of 67 and 67 people, which were said to find 0.3 in 80% of audits, 76% did."""
    needed = lp.rows_needed(shares, mcdp=mcdp, n_resamples=2000, random_state=0)
    found = lp.minimum_detectable(needed, n_resamples=2000, random_state=1).mcdp
    assert found is not None
    assert found <= 1.02 * mcdp
