"""The objective's value against its definition, and its derivatives against finite differences."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from localparity.models import MCDPObjective
from training_oracles import scanned_gaps, scanned_mcdp, smoothed_gap

CASES = {
    "demographic_parity": (None,),
    "equal_opportunity": (1,),
    "predictive_equality": (0,),
    "equalized_odds": (0, 1),
}


def draw(rows: int, seed: int, groups: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, groups, rows)
    labels = (rng.random(rows) < 0.3 + 0.3 * codes / groups).astype(int)
    margins = rng.normal(0.4 * codes + 1.5 * labels - 1.0, 1.3)
    return labels, codes, margins, rng.integers(1, 4, rows).astype(float)


def logistic(margins: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-margins))


def disparity(objective: MCDPObjective, margins: np.ndarray) -> float:
    return objective._worst(margins)[2].value


def value(
    objective: MCDPObjective, labels: np.ndarray, margins: np.ndarray, weights: np.ndarray | float = 1.0
) -> float:
    """The objective at margins."""
    loss = float(np.sum(weights * (np.logaddexp(0.0, margins) - labels * margins)))
    return loss + objective.strength * float(np.sum(weights * np.ones(labels.size))) * disparity(
        objective, margins
    )


def defined(
    labels: np.ndarray, groups: np.ndarray, margins: np.ndarray, *, criterion: str, epsilon: float
) -> float:
    """The largest disparity of a pair of groups among those compared, by a scan."""
    found = []
    for label in CASES[criterion]:
        among = np.ones(labels.size, dtype=bool) if label is None else labels == label
        for pair in combinations(np.unique(groups), 2):
            gaps = scanned_gaps(logistic(margins[among]), groups[among], *pair, 20.0, 4001)
            found.append(scanned_mcdp(gaps, epsilon))
    return max(found)


@pytest.mark.parametrize("criterion", CASES)
@pytest.mark.parametrize("epsilon", [1e-9, 0.05])
@pytest.mark.parametrize("groups", [2, 3])
def test_the_disparity_is_the_definition(criterion: str, epsilon: float, groups: int) -> None:
    labels, codes, margins, _ = draw(300, groups, groups)
    objective = MCDPObjective(
        labels,
        sensitive_features=codes,
        strength=1.0,
        temperature=20.0,
        epsilon=epsilon,
        criterion=criterion,
    )
    expected = defined(labels, codes, margins, criterion=criterion, epsilon=epsilon)
    assert disparity(objective, margins) == pytest.approx(expected, abs=5e-4 if epsilon > 0.01 else 1e-5)


@pytest.mark.parametrize("criterion", CASES)
@pytest.mark.parametrize("options", [{"epsilon": 0.05}, {}])
def test_the_gradient_agrees_with_finite_differences(criterion: str, options: dict[str, Any]) -> None:
    labels, codes, margins, weights = draw(150, 4, 3)
    objective = MCDPObjective(
        labels,
        sensitive_features=codes,
        strength=0.8,
        temperature=20.0,
        criterion=criterion,
        sample_weight=weights,
        **options,
    )
    gradient, hessian = objective(margins)
    step = 1e-5
    for row in range(0, 150, 7):
        moved = np.eye(150)[row] * step
        ends = [value(objective, labels, margins + sign * moved, weights) for sign in (1.0, -1.0)]
        difference = (ends[0] - ends[1]) / (2.0 * step)
        assert gradient[row] == pytest.approx(difference, rel=1e-6, abs=3e-6)
    assert (hessian > 0.0).all()


def test_the_hessian_agrees_with_finite_differences_at_a_held_threshold() -> None:
    labels, codes, margins, _ = draw(120, 1)
    strength, temperature = 0.8, 20.0
    objective = MCDPObjective(
        labels, sensitive_features=codes, strength=strength, temperature=temperature, epsilon=1e-9
    )
    gaps = scanned_gaps(logistic(margins), codes, 0, 1, temperature, 100_001)
    threshold = float(np.argmax(np.abs(gaps))) / 100_000

    def held(at: np.ndarray) -> float:
        gap = abs(smoothed_gap(logistic(at), codes, 0, 1, threshold, temperature))
        return float(np.sum(np.logaddexp(0.0, at) - labels * at)) + strength * 120 * gap

    hessian, step = objective(margins)[1], 1e-3
    plain = logistic(margins) * (1.0 - logistic(margins))
    exact = np.empty(120)
    for row in range(120):
        moved = np.eye(120)[row] * step
        exact[row] = (held(margins + moved) + held(margins - moved) - 2.0 * held(margins)) / step**2
    assert exact.min() < 0.0 < hessian.min()
    np.testing.assert_allclose(hessian - plain, np.abs(exact - plain), atol=2e-3)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9])
def test_that_the_threshold_moves_hardly_shows_with_many_rows(epsilon: float) -> None:
    labels, codes, margins, _ = draw(30_000, 2)
    objective = MCDPObjective(
        labels, sensitive_features=codes, strength=0.5, temperature=20.0, epsilon=epsilon
    )
    hessian, step = objective(margins)[1], 1e-3
    for row in range(5):
        moved = np.eye(1, 30_000, row)[0] * step
        difference = (objective(margins + moved)[0][row] - objective(margins - moved)[0][row]) / (2.0 * step)
        plain = logistic(margins[row]) * (1.0 - logistic(margins[row]))
        assert hessian[row] - plain == pytest.approx(abs(difference - plain), abs=0.02)


def test_weights_count_as_repeated_rows() -> None:
    labels, codes, margins, weights = draw(100, 3)
    times = weights.astype(int)
    weighted = MCDPObjective(labels, sensitive_features=codes, strength=0.7, sample_weight=weights)
    repeated = MCDPObjective(
        np.repeat(labels, times), sensitive_features=np.repeat(codes, times), strength=0.7
    )
    assert disparity(weighted, margins) == pytest.approx(
        disparity(repeated, np.repeat(margins, times)), rel=1e-12
    )
    gradient = weighted(margins)[0]
    np.testing.assert_allclose(
        np.repeat(gradient / weights, times), repeated(np.repeat(margins, times))[0], atol=1e-10
    )


def test_without_strength_it_is_the_logistic_loss() -> None:
    labels, codes, margins, _ = draw(50, 5)
    gradient, hessian = MCDPObjective(labels, sensitive_features=codes, strength=0.0)(margins)
    np.testing.assert_allclose(gradient, logistic(margins) - labels)
    np.testing.assert_allclose(hessian, logistic(margins) * (1.0 - logistic(margins)))


def test_extreme_margins_are_no_trouble() -> None:
    objective = MCDPObjective([0, 1, 0, 1], sensitive_features=[0, 0, 1, 1], strength=1.0)
    for margins in ([-1e4, 1e4, -1e4, 1e4], [0.0, 0.0, 0.0, 0.0], [-800.0, -800.0, 800.0, 800.0]):
        gradient, hessian = objective(np.asarray(margins, dtype=np.float32))
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()


def test_stock_boosters_take_it() -> None:
    import lightgbm
    import xgboost

    labels, codes, _, _ = draw(2000, 6)
    rng = np.random.default_rng(0)
    features = np.column_stack([labels + rng.normal(size=2000), 2 * codes + 0.5 * rng.normal(size=2000)])
    for strength, least, most in ((0.0, 0.12, 1.0), (1.0, 0.0, 0.1)):
        objective = MCDPObjective(labels, sensitive_features=codes, strength=strength, temperature=20.0)
        data = xgboost.DMatrix(features, labels)
        by_xgboost = xgboost.train({"nthread": 1, "base_score": 0.0}, data, 40, obj=objective)
        by_lightgbm = lightgbm.train(
            {"objective": objective, "verbose": -1, "num_threads": 1}, lightgbm.Dataset(features, labels), 40
        )
        for margins in (by_xgboost.predict(data), by_lightgbm.predict(features)):
            assert least <= disparity(objective, margins) <= most


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strength": -1}, r"strength.*-1"),
        ({"strength": "much"}, r"strength.*'much'"),
        ({"temperature": 0}, r"temperature.*4096.*0"),
        ({"temperature": 1e6}, r"temperature.*4096.*1e\+06"),
        ({"epsilon": -0.1}, r"epsilon must be .* got -0\.1"),
        ({"criterion": "fair"}, r"criterion.*'fair'"),
        ({"criterion": "equal_opportunity"}, "group 'b' has no rows with y_true = 1"),
        ({"sample_weight": [1, 1, 0, 0]}, "group 'b' has no rows"),
        ({"sample_weight": [1, 1, 1]}, "sample_weight has 3 rows"),
        ({"sensitive_features": ["a"] * 4}, r"sensitive_features.*'a'"),
        ({"sensitive_features": None}, r"sensitive_features.*None"),
        ({"y_true": [0, 1, 2, 0]}, r"y_true.*2 at row 2"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    given = {"y_true": [0, 1, 0, 0], "sensitive_features": ["a", "a", "b", "b"], **options}
    with pytest.raises(ValueError, match=message):
        MCDPObjective(given.pop("y_true"), **given)


def test_margins_that_are_refused() -> None:
    objective = MCDPObjective([0, 1, 0, 1], sensitive_features=[0, 0, 1, 1])
    with pytest.raises(ValueError, match="margins has 3 rows, y_true has 4"):
        objective([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"margins.*nan at row 2"):
        objective(np.array([0.0, 0.0, np.nan, 0.0]))
    with pytest.raises(ValueError, match=r"margins.*nan at row 1"):
        objective([0.0, np.nan, 0.0, 0.0])
