"""Whether a promise fails in one draw from a known distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import localparity as lp
from benchmarks import _designs as designs
from benchmarks._designs import Design, Drawn, Rng
from blind_designs import BlindDesign, BlindPeople
from localparity.metrics._gap_curve import gap_curves
from localparity.models import GroupBlindRepair, ScoreRepair
from localparity.uncertainty._bands import upper_ends
from localparity.uncertainty._intervals import measured_pair


def misses(design: Design, truth: float, **options: Any) -> Callable[[Rng], bool]:
    """Whether the interval misses the truth."""

    def fails(rng: Rng) -> bool:
        drawn = design(rng)
        given = {"n_resamples": 199, "random_state": rng, **drawn.options, **options}
        found = lp.mcdp_interval(drawn.labels, drawn.scores, sensitive_features=drawn.groups, **given)
        return not found.low - 1e-9 <= truth <= found.high + 1e-9

    return fails


def misses_some_pair(design: Design, **options: Any) -> Callable[[Rng], bool]:
    """Whether the interval of some pair at some epsilon excludes 0, the truth of all."""

    def fails(rng: Rng) -> bool:
        audit = audit_of(design(rng), rng, **options)
        return any(interval.low > 0.0 for pair in audit.pairs for interval in pair.intervals)

    return fails


def audit_of(drawn: Drawn, rng: Rng, **options: Any) -> lp.Audit:
    given = {"n_resamples": 99, "random_state": rng, **drawn.options, **options}
    return lp.audit(drawn.labels, drawn.scores, sensitive_features=drawn.groups, **given)


def rejects(design: Design, **options: Any) -> Callable[[Rng], bool]:
    """Whether the test rejects at 5%."""

    def fails(rng: Rng) -> bool:
        drawn = design(rng)
        given = {"n_resamples": 99, "random_state": rng, **drawn.options, **options}
        found = lp.permutation_test(drawn.labels, drawn.scores, sensitive_features=drawn.groups, **given)
        return found.p_value <= 0.05

    return fails


def accepts(design: Design, **options: Any) -> Callable[[Rng], bool]:
    """Whether the test does not find a disparity that is there."""
    rejected = rejects(design, **options)
    return lambda rng: not rejected(rng)


def rejects_somewhere(design: Design, **options: Any) -> Callable[[Rng], bool]:
    """Whether an audit has a p-value of at most 5% at any of its epsilons."""

    def fails(rng: Rng) -> bool:
        audit = audit_of(design(rng), rng, **options)
        return any(finding.test is not None and finding.test.p_value <= 0.05 for finding in audit.findings)

    return fails


def finds(design: Design, **options: Any) -> Callable[[Rng], bool]:
    """Whether the verdict says that there is a disparity."""
    return lambda rng: audit_of(design(rng), rng, **options).answer.status == "disparity"


def finds_alike(size: int, low: float, high: float) -> Callable[[Rng], bool]:
    """Whether two groups that are alike are told apart because a third lies between two scores."""

    def fails(rng: Rng) -> bool:
        scores = np.concatenate([rng.random(400), rng.uniform(low, high, size)])
        audit = audit_of(Drawn(scores, np.repeat([0, 1, 2], [200, 200, size])), rng)
        (alike,) = [pair for pair in audit.pairs if set(pair.groups) == {0, 1}]
        return any(alike.significant_at(place, by_test=True) for place in range(4))

    return fails


def soft_misses(design: designs.SoftDesign, truth: float) -> Callable[[Rng], bool]:
    """Whether the interval between groups that are known as probabilities misses the truth."""

    def fails(rng: Rng) -> bool:
        high, first = design(rng)
        given = {"group_probabilities": np.column_stack([first, 1.0 - first]), "n_resamples": 199}
        found = lp.soft_groups(np.where(high, 0.9, 0.1), **given, random_state=rng).bounds[0].interval
        return not found.low - 1e-9 <= truth <= found.high + 1e-9

    return fails


def turns(size: int, *jobs: designs.Job) -> Callable[[Rng], bool]:
    """Whether a sign is said to turn between two jobs and overall."""
    design = designs.in_jobs(size, *jobs)

    def fails(rng: Rng) -> bool:
        scores, groups, job = design(rng)
        rows = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
        return lp.within_strata(rows, job, n_resamples=99, random_state=rng).turned

    return fails


def does_not_turn(size: int, *jobs: designs.Job) -> Callable[[Rng], bool]:
    """Whether a sign that turns is not said to."""
    turned = turns(size, *jobs)
    return lambda rng: not turned(rng)


def splits(rng: Rng) -> bool:
    """Whether the clearest split of an age that says nothing is significant."""
    age, scores = rng.integers(18, 70, 120), rng.random(120)
    found = lp.worst_split(
        lp.Predictions.from_arrays(None, scores, sensitive_features=age), n_resamples=99, random_state=rng
    )
    return (found.clearest or found).p_value <= 0.05


def band_misses(groups: int) -> Callable[[Rng], bool]:
    """Whether the drawn band of the worst pair, of many groups at parity, leaves out 0 somewhere."""

    def fails(rng: Rng) -> bool:
        sizes = [2000, *[100] * groups]
        drawn = designs.powers(sizes, [1.0] * len(sizes))(rng)
        rows = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups)
        counts = lp.ScoreCounts.from_predictions(rows)
        display = lp.report.GapCurveDisplay.from_predictions(counts, ax=Figure().subplots())
        return bool(np.abs(display.curve.gap).max() > display.radius)

    return fails


def _population(size: int = 20_001) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two groups as their distributions have them: y and y squared."""
    places = (np.arange(size) + 0.5) / size
    return np.concatenate([places, np.sqrt(places)]), np.repeat([0, 1], size)


def repair_breaks(
    sizes: tuple[int, int], bound: float, *, epsilon: float = 0.0, weights: bool = False
) -> Callable[[Rng], bool]:
    """Whether a repair with a confidence of 0.9 leaves its population above the bound."""
    people, groups = _population()

    def fails(rng: Rng) -> bool:
        drawn = designs.powers(sizes, (1.0, 2.0))(rng)
        given = {"sample_weight": rng.lognormal(0.0, 0.5, drawn.scores.size)} if weights else {}
        repair = ScoreRepair(max_mcdp=bound, epsilon=epsilon, confidence=0.9, random_state=0)
        repair.fit(drawn.scores, sensitive_features=drawn.groups, **given)
        moved = repair.transform(people, sensitive_features=groups)
        return lp.mcdp(None, moved, sensitive_features=groups, epsilon=epsilon) > bound + 1e-4

    return fails


def blind_breaks(
    design: BlindDesign, size: int, bound: float, *, noise: float = 0.0, **options: Any
) -> Callable[[Rng], bool]:
    """Whether a group-blind repair with a confidence of 0.9 leaves its population above the bound.

    In the population everyone counts for each group and label by their probabilities. Where the bound is out
    of reach nothing is promised. `noise` makes the probabilities that the repair is given wrong.
    """
    people = design(np.random.default_rng(0), 30_000)
    wrong = noise * np.random.default_rng(1).normal(size=2)

    def given(drawn: BlindPeople) -> dict[str, Any]:
        tables = {"demographic_parity": drawn.chances, "equal_opportunity": drawn.probabilities[1:]}
        table = tables[options.get("criterion", "demographic_parity")] ** np.exp(wrong[0])
        return {"group_probabilities": table / table.sum(axis=-1, keepdims=True)}

    def fails(rng: Rng) -> bool:
        drawn = design(rng, size)
        repair = GroupBlindRepair(bound, confidence=0.9, min_group_size=5, random_state=0, **options)
        scores = drawn.scores ** np.exp(wrong[1])
        try:
            repair.fit(scores, drawn.labels, sensitive_features=drawn.groups, **given(drawn))
        except ValueError as error:
            if "out of reach" not in str(error):
                raise
            return False
        return _blind_mcdp(repair, people, people.scores ** np.exp(wrong[1]), **given(people)) > bound

    return fails


def _blind_mcdp(repair: GroupBlindRepair, people: BlindPeople, scores: NDArray[Any], **given: Any) -> float:
    """MCDP of a population in which everyone belongs to every group, by the probabilities."""
    moved = repair.transform(scores, **given)
    weights = people.chances
    if repair.criterion == "equal_opportunity":
        weights = people.scores[:, None] * people.probabilities[1]
    n_groups = weights.shape[1]
    return lp.mcdp(
        None,
        np.repeat(moved, n_groups),
        sensitive_features=np.tile(np.arange(n_groups), moved.size),
        sample_weight=weights.ravel(),
        epsilon=repair.epsilon,
    )


def upper_misses(design: Design, truth: float, epsilon: float = 0.0) -> Callable[[Rng], bool]:
    """Whether the upper end of MCDP alone, at a confidence of 0.9, is below the truth."""

    def fails(rng: Rng) -> bool:
        drawn = design(rng)
        rows = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups)
        interval = lp.mcdp_interval(rows, epsilon=epsilon, confidence=0.9, side="upper")
        return interval.high < truth - 1e-9

    return fails


def misses_everyone(
    shares: tuple[float, ...], low: tuple[float, ...], size: int, **options: Any
) -> Callable[[Rng], bool]:
    """Whether the interval of groups with everyone misses, where the groups' shares are drawn too."""
    apart = np.abs(np.array(low) - np.dot(shares, low))
    design = designs.shares_drawn(shares, low, size)
    return misses(design, float(apart.max()), compare="to_overall", **options)


def misses_majority(share: float, size: int) -> Callable[[Rng], bool]:
    """Whether the interval of the larger of two groups, which do not overlap, with everyone misses."""
    design = designs.shares_drawn((share, 1.0 - share), (1.0, 0.0), size)

    def fails(rng: Rng) -> bool:
        audit = audit_of(design(rng), rng, compare="to_overall", epsilons=[0.0], n_resamples=0)
        (interval,) = next(pair.intervals for pair in audit.pairs if pair.groups[0] == 0)
        return not interval.low <= 1.0 - share <= interval.high

    return fails


def upper_misses_somewhere(
    design: Design, truth: Callable[[float], float], **options: Any
) -> Callable[[Rng], bool]:
    """Whether the upper end at any of many epsilons, at a confidence of 0.9, is below the truth."""
    epsilons = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.29])

    def fails(rng: Rng) -> bool:
        drawn = design(rng)
        rows = lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups)
        curves = gap_curves(lp.ScoreCounts.from_predictions(rows), lp.Comparison(**options))
        ends = upper_ends([measured_pair(curve, epsilons) for curve in curves], 0.1).max(axis=0)
        assert (np.diff(ends) <= 0.0).all()
        return bool((ends < np.array([truth(epsilon) for epsilon in epsilons.tolist()]) - 1e-9).any())

    return fails


def sketch_rejects(sizes: tuple[int, ...], k: int, **options: Any) -> Callable[[Rng], bool]:
    """Whether the test of a sketch of groups at parity rejects at 5%."""

    def fails(rng: Rng) -> bool:
        sketch = lp.monitoring.ScoreSketch(k=k)
        groups = np.repeat(np.arange(len(sizes)), sizes)
        sketch.update(lp.Predictions.from_arrays(None, rng.random(groups.size), sensitive_features=groups))
        found = lp.permutation_test(sketch.counts(), n_resamples=39, random_state=rng, **options)
        return found.p_value <= 0.05

    return fails


def weighted_repair_breaks(sizes: tuple[int, ...], bound: float, spread: float) -> Callable[[Rng], bool]:
    """Whether a repair of groups that do not overlap, with weights, leaves its population above the bound."""
    number = len(sizes)
    places = (np.arange(4001) + 0.5) / 4001
    people = np.concatenate([(place + places) / number for place in range(number)])
    owners = np.repeat(np.arange(number), places.size)

    def fails(rng: Rng) -> bool:
        groups = np.repeat(np.arange(number), sizes)
        scores = (groups + rng.random(groups.size)) / number
        repair = ScoreRepair(max_mcdp=bound, confidence=0.9, random_state=0)
        weights = rng.lognormal(0.0, spread, groups.size)
        repair.fit(scores, sensitive_features=groups, sample_weight=weights)
        moved = repair.transform(people, sensitive_features=owners)
        return lp.mcdp(None, moved, sensitive_features=owners) > bound + 1e-3

    return fails


def repaired_misses(share: float) -> Callable[[Rng], bool]:
    """Whether the interval of repaired scores, of new people, misses: what `compare` reports."""
    people, groups = _population()
    design = designs.powers((500, 500), (1.0, 2.0))

    def fails(rng: Rng) -> bool:
        fitted, new = design(rng), design(rng)
        repair = ScoreRepair(max_mcdp=0.1 * share).fit(fitted.scores, sensitive_features=fitted.groups)
        truth = lp.mcdp(None, repair.transform(people, sensitive_features=groups), sensitive_features=groups)
        found = lp.mcdp_interval(
            None,
            repair.transform(new.scores, sensitive_features=new.groups),
            sensitive_features=new.groups,
            method="bootstrap",
            n_resamples=199,
            random_state=rng,
        )
        return not found.low <= truth <= found.high

    return fails


def sketch_bounds_miss(rng: Rng) -> bool:
    """Whether the 99% bounds of two merged sketches, of other sizes and places, miss their rows' MCDP."""
    many, few = int(rng.integers(20_000, 60_000)), int(rng.integers(2_000, 15_000))
    scores = np.concatenate([0.5 * rng.random(2 * many), 0.5 + 0.5 * rng.random(2 * few)])
    groups = np.concatenate([np.repeat([0, 1], many), np.repeat([0, 1], few)])
    parts = []
    for part in (slice(None, 2 * many), slice(2 * many, None)):
        parts.append(lp.monitoring.ScoreSketch(k=512))
        parts[-1].update(lp.Predictions.from_arrays(None, scores[part], sensitive_features=groups[part]))
    bounds = lp.mcdp_bounds(parts[0].merge(parts[1]).counts(0.99))
    return not bounds.low <= lp.mcdp(None, scores, sensitive_features=groups) <= bounds.high
