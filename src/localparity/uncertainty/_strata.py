"""Groups compared within strata: among people of one job, region or year.

Groups that are spread over strata in different ways may differ overall and in no stratum, or the other way
round. The standardised gap is the mean of the strata's gaps, each with its share of all people compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from localparity._text import group_text, p_value_text, percent
from localparity._types import Criterion, FloatArray, Group, Groups, IntArray, Seed
from localparity._validation import Grouping, InputError, as_count, as_epsilons, as_groups, is_missing_group
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._score_counts import ScoreCounts, as_counts, checked_data
from localparity.metrics._gap_curve import GapCurve, curve_between, units_of
from localparity.metrics._profile import Window, mcdp_of
from localparity.predictions import Predictions
from localparity.uncertainty._permutation import Dealer, least_p_value, p_value_of
from localparity.uncertainty._resampling import Draws, repeat

_MOST_THRESHOLDS = 512
"""The test compares the data and the resamples at up to so many thresholds."""
_TURN_ERROR = 0.05
"""How often a sign is said to turn where the groups are alike, within strata or overall."""

Pair = tuple[Group, Group]
Names = Mapping[Group, tuple[Group, Group]]
"""The group and the stratum of each key that rows were counted by."""
ByPair = dict[tuple[Group | None, int | None, Pair], float]
"""By stratum, or None for the mean over strata; by label; and by the two groups."""
Totals = Mapping[tuple[Group, int | None], int]
"""How many rows each group has of each label."""


@dataclass(frozen=True, eq=False)
class StratumPeople:
    """The people of a label in a stratum, by group; groups that are too small are not among them."""

    stratum: Group
    label: int | None
    atoms: Mapping[Group, Atoms]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(atoms.size for atoms in self.atoms.values())

    @property
    def weight(self) -> float:
        """How much all rows weigh."""
        return float(sum(atoms.weights.sum() for atoms in self.atoms.values()))

    def has(self, pair: Pair) -> bool:
        """Whether both groups of a pair are there."""
        return pair[0] in self.atoms and pair[1] in self.atoms


def people_of(counts: ScoreCounts, names: Names, comparison: Comparison) -> list[StratumPeople]:
    """The people of each label in each stratum where two groups have enough of them."""
    people = []
    for label in comparison.labels:
        strata: dict[Group, dict[Group, Atoms]] = {}
        for key, (group, stratum) in names.items():
            labels = (label,) if label is not None else (None, 0, 1)
            atoms = Atoms.join(counts.atoms[key, y] for y in labels if (key, y) in counts.atoms)
            if atoms.size >= comparison.min_group_size:
                strata.setdefault(stratum, {})[group] = atoms
        people += [StratumPeople(stratum, label, some) for stratum, some in strata.items() if len(some) > 1]
    return people


def hide_few(people: Sequence[StratumPeople], totals: Totals, limit: int) -> list[StratumPeople]:
    """Leave out more people of a group where those left out are fewer than a limit.

    The total of a group is known from elsewhere: what holds for the few would follow from a difference.
    """
    for (group, label), total in totals.items():
        of_group = [stratum for stratum in people if stratum.label == label and group in stratum.atoms]
        left_out = total - sum(stratum.atoms[group].size for stratum in of_group)
        if of_group and 0 < left_out < limit:
            smallest = min(of_group, key=lambda stratum: stratum.atoms[group].size)
            others = {name: atoms for name, atoms in smallest.atoms.items() if name != group}
            left = [replace(stratum, atoms=others) if stratum is smallest else stratum for stratum in people]
            return hide_few([stratum for stratum in left if len(stratum.atoms) > 1], totals, limit)
    return list(people)


def totals_of(counts: ScoreCounts, names: Names, comparison: Comparison) -> Totals:
    """How many rows the named keys have of each group and of each label that is compared."""
    totals: dict[tuple[Group, int | None], int] = {}
    for (key, y), atoms in counts.atoms.items():
        for label in comparison.labels if key in names else ():
            if label is None or label == y:
                cell = (names[key][0], label)
                totals[cell] = totals.get(cell, 0) + atoms.size
    return totals


def joined(counts: ScoreCounts, names: Names) -> ScoreCounts:
    """The counts of the groups, strata put together."""
    parts: dict[tuple[Group, int | None], list[Atoms]] = {}
    for (key, label), atoms in counts.atoms.items():
        parts.setdefault((names[key][0], label), []).append(atoms)
    return replace(counts, atoms={key: Atoms.join(some) for key, some in parts.items()})


def together(people: Sequence[StratumPeople]) -> list[StratumPeople]:
    """The people of each label, strata put together."""
    parts: dict[int | None, dict[Group, list[Atoms]]] = {}
    for stratum in people:
        for group, atoms in stratum.atoms.items():
            parts.setdefault(stratum.label, {}).setdefault(group, []).append(atoms)
    return [
        StratumPeople(None, label, {group: Atoms.join(some) for group, some in of_label.items()})
        for label, of_label in parts.items()
    ]


def pairs_of(people: Sequence[StratumPeople]) -> list[Pair]:
    """The pairs of groups that are together in some stratum."""
    pairs = (pair for stratum in people for pair in combinations(sorted(stratum.atoms, key=str), 2))
    return list(dict.fromkeys(pairs))


def standardised_curve(counts: ScoreCounts, people: Sequence[StratumPeople], pair: Pair) -> GapCurve:
    """The mean of the strata's gaps of a pair, each with its share of all people compared."""
    some = [stratum for stratum in people if stratum.has(pair)]
    knots = np.unique(np.concatenate([stratum.atoms[group].scores for stratum in some for group in pair]))
    shares = np.array([stratum.weight for stratum in some]) / sum(stratum.weight for stratum in some)
    gap = np.zeros(knots.size)
    for share, stratum in zip(shares.tolist(), some, strict=True):
        first, second = (stratum.atoms[group].shares_at_or_below(knots) for group in pair)
        gap += share * (first - second)
    gap[-1] = 0.0  # which rounding may have missed
    first_size, second_size = (float(sum(stratum.atoms[group].size for stratum in some)) for group in pair)
    return GapCurve(
        knots,
        gap,
        pair,
        (first_size, second_size),
        label=some[0].label,
        score_range=counts.score_range,
        resolution=counts.resolution,
        exchangeable=False,
    )


def stratum_p_values(
    counts: ScoreCounts, people: Sequence[StratumPeople], epsilon: float, draws: Draws
) -> tuple[ByPair, ByPair]:
    """The adjusted p-values of the standardised gaps, and of the gaps in each stratum.

    They say how often dealing groups at random within strata gives as large a gap, studentised, to any pair.
    """
    scores = np.unique(np.concatenate([atoms.scores for each in people for atoms in each.atoms.values()]))
    if scores.size > _MOST_THRESHOLDS:
        scores = scores[np.linspace(0, scores.size - 1, _MOST_THRESHOLDS).astype(np.int64)]
    cells = []
    for stratum in people:
        below = [
            atoms.below()[np.searchsorted(atoms.scores, scores, side="right")]
            for atoms in stratum.atoms.values()
        ]
        cells.append(np.diff(np.array(below), axis=1, prepend=0))
    thresholds = units_of(scores, counts.score_range, counts.resolution)

    def mcdp(gap: FloatArray) -> float:
        if epsilon <= 0.0:
            return float(np.abs(gap).max())
        at = np.array([epsilon])
        return float(mcdp_of(thresholds, gap, at, counts.resolution, counts.score_range)[0])

    dealers = [Dealer(people.sum(axis=1), people.sum(axis=0)) for people in cells]

    def deal(stream: np.random.Generator) -> FloatArray:
        dealt = _studentised(people, [dealer.deal(stream) for dealer in dealers], mcdp)
        return np.array([max(measured.values()) for measured in dealt])

    null = repeat(deal, draws, 2)
    standardised, within = (
        {key: p_value_of(seen, null[:, column]) for key, seen in measured.items()}
        for column, measured in enumerate(_studentised(people, cells, mcdp))
    )
    return standardised, within


def _studentised(
    people: Sequence[StratumPeople], cells: Sequence[IntArray], mcdp: Callable[[FloatArray], float]
) -> tuple[ByPair, ByPair]:
    """The studentised MCDP of each pair's standardised gap, and of its gap in each stratum."""
    shares = [np.cumsum(rows, axis=1) / rows.sum(axis=1, keepdims=True) for rows in cells]
    row_of = [{group: row for row, group in enumerate(stratum.atoms)} for stratum in people]
    standardised, within = ByPair(), ByPair()
    for label in dict.fromkeys(stratum.label for stratum in people):
        of_label = [index for index, stratum in enumerate(people) if stratum.label == label]
        for pair in pairs_of([people[index] for index in of_label]):
            both = [index for index in of_label if people[index].has(pair)]
            weights = np.array([people[index].rows for index in both], dtype=np.float64)
            weights /= weights.sum()
            mean, variance = np.zeros(cells[0].shape[1]), 0.0
            for weight, index in zip(weights.tolist(), both, strict=True):
                one, other = (row_of[index][group] for group in pair)
                gap = shares[index][one] - shares[index][other]
                sizes = cells[index].sum(axis=1)
                spread = 1.0 / sizes[one] + 1.0 / sizes[other]
                within[people[index].stratum, label, pair] = mcdp(gap) / np.sqrt(spread)
                mean += weight * gap
                variance += weight**2 * spread
            standardised[None, label, pair] = mcdp(mean) / np.sqrt(variance)
    return standardised, within


@dataclass(frozen=True, kw_only=True)
class StratumSummary:
    """The worst pair of groups within one stratum.

    Attributes
    ----------
    stratum, label : hashable, int or None
        The value of the control feature, and the label of the people compared.
    rows : int
        How many rows were compared.
    mcdp : tuple of float
        MCDP of the worst pair at each epsilon.
    window : Window
        Where the gap is largest at the first epsilon, and between whom.
    p_value : float or None
        The p-value of this pair in this stratum, adjusted for all pairs and strata; None where no test was
        made.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex, job = [0.2, 0.4, 0.6, 0.7], ["f", "m", "f", "m"], ["cook", "cook", "nurse", "nurse"]
    >>> rows = lp.Predictions.from_arrays(None, scores, sensitive_features=sex)
    >>> strata = lp.within_strata(rows, job, n_resamples=0).strata
    >>> [(stratum.stratum, stratum.mcdp) for stratum in strata]
    [('cook', (1.0,)), ('nurse', (1.0,))]
    """

    stratum: Group
    label: int | None
    rows: int
    mcdp: tuple[float, ...]
    window: Window
    p_value: float | None


@dataclass(frozen=True, kw_only=True)
class WithinStrata:
    """Groups compared within strata.

    Attributes
    ----------
    epsilons : tuple of float
        The half-widths of windows.
    overall : tuple of float
        MCDP at each epsilon, strata put together: that of the whole audit.
    pooled : tuple of float
        The same of the people alone who are compared in a stratum.
    standardised : tuple of float
        The same of the mean of the strata's gaps, each with its share of all people compared.
    window, overall_window : Window
        Where the standardised gap is largest at the first epsilon, and where the gap of that pair is largest
        with strata put together, of the people compared in a stratum.
    strata : tuple of StratumSummary
        Every stratum, the largest MCDP first.
    left_out, rows_left_out : int
        The strata in which fewer than two groups have enough people, and the rows that are in no comparison.
    rows_without_stratum : int
        The rows among these that have no value of a control feature.
    p_value, worst_p_value : float or None
        How often groups dealt at random within strata give any pair as large a standardised gap, and as large
        a gap in any stratum, each studentised by its sizes. None where no test was made.
    window_p_value : float or None
        The p-value of the pair in `window`, adjusted for all pairs.
    n_resamples : int
        How often groups were dealt for the p-values, none of which is below ``1 / (n_resamples + 1)``.
    turned : bool
        Whether the group with the lower scores within strata is the one with the higher scores overall, by
        two tests of the pair, within strata and overall. If the groups are alike in either way, that happens
        in at most 5% of samples. False where no test was made.

    Examples
    --------
    >>> import localparity as lp
    >>> scores = [0.2, 0.4, 0.3, 0.5] * 20 + [0.7, 0.9, 0.6, 0.8] * 20
    >>> sex, job = ["f", "m", "f", "m"] * 40, ["cook"] * 80 + ["nurse"] * 80
    >>> rows = lp.Predictions.from_arrays(None, scores, sensitive_features=sex)
    >>> within = lp.within_strata(rows, job, random_state=0)
    >>> within.overall, within.standardised, within.p_value < 0.01, within.turned
    ((0.5,), (0.5,), True, False)
    """

    epsilons: tuple[float, ...]
    overall: tuple[float, ...]
    pooled: tuple[float, ...]
    standardised: tuple[float, ...]
    window: Window
    overall_window: Window
    strata: tuple[StratumSummary, ...]
    left_out: int
    rows_left_out: int
    rows_without_stratum: int
    p_value: float | None
    worst_p_value: float | None
    window_p_value: float | None
    n_resamples: int = 0
    turned: bool = False

    @property
    def turn(self) -> str:
        """What a sign that turns means, in words."""
        lower, higher = (group_text(group) for group in (self.window.lower, self.window.higher))
        return (
            f"The sign turns: within strata {lower} has the lower scores, overall {higher} has, each tested "
            f"at the {100 * _TURN_ERROR:g}% level. What differs overall comes from how the groups are spread "
            "over the strata (Simpson's paradox)."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in words."""
        at = f"MCDP({self.epsilons[0]:g})"
        own = self._p_values(self.window_p_value, self.p_value, "of any pair")
        among = f" ({percent(self.pooled[0])} among the people compared within strata)"
        sentences = [
            f"Within {len(self.strata):,} strata the standardised {at} is {percent(self.standardised[0])} "
            f"between {_pair(self.window)}{own}; overall {at} is {percent(self.overall[0])}"
            f"{among if self.rows_left_out else ''}."
        ]
        worst = self.strata[0]
        own = self._p_values(worst.p_value, self.worst_p_value, "of any pair in any stratum")
        sentences.append(
            f"The worst stratum is {group_text(worst.stratum)}, where it is {percent(worst.mcdp[0])} between "
            f"{_pair(worst.window)}{own}."
        )
        if self.turned:
            sentences.append(self.turn)
        few = self.rows_left_out - self.rows_without_stratum
        if few:
            strata = f"{self.left_out:,} {'stratum' if self.left_out == 1 else 'strata'}"
            strata = f", those of {strata} among them," if self.left_out else ""
            sentences.append(
                f"{few:,} rows are in no comparison{strata} since their group has too few people there, "
                "or since the few could be told from the others."
            )
        if self.rows_without_stratum:
            have, count = ("row has", "counts") if self.rows_without_stratum == 1 else ("rows have", "count")
            sentences.append(f"{self.rows_without_stratum:,} {have} no stratum and {count} overall only.")
        return tuple(sentences)

    def _p_values(self, own: float | None, any_pair: float | None, of_any: str) -> str:
        """The p-value of the pair that was named, and that of any where it is another."""
        if own is None or any_pair is None:
            return ""
        texts = [p_value_text(value, least_p_value(self.n_resamples)) for value in (own, any_pair)]
        if texts[0] == texts[1]:
            return f" (p-value {texts[0]})"
        return f" (p-value of this pair {texts[0]}, {of_any} {texts[1]})"


def _pair(window: Window) -> str:
    return " and ".join(map(group_text, window.groups))


def within_strata(
    data: Predictions,
    control_features: Groups,
    *,
    epsilon: float | Sequence[float] | FloatArray = 0.0,
    criterion: Criterion = "demographic_parity",
    min_group_size: int = 1,
    n_resamples: int = 1000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> WithinStrata:
    """Compare groups among people who have the same values of control features, such as job, region or year.

    Parameters
    ----------
    data : Predictions
        The people, as `Predictions.from_arrays` makes them; with weights there is no test.
    control_features : array-like, data frame or mapping of columns
        The stratum of each row. Of several columns, the strata are the combinations that occur.
    epsilon : float or sequence of float
        The half-width of the windows, as a fraction of the score range; the test is at the first.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    min_group_size : int
        A group with fewer rows in a stratum is left out there; a stratum with one group is left out.
    n_resamples : int
        How many times groups are dealt out at random within strata; 0 leaves the test out.
    random_state : int, Generator or None
        The same seed gives the same result.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.

    Returns
    -------
    WithinStrata

    Examples
    --------
    >>> import localparity as lp
    >>> scores = [0.2, 0.4, 0.3, 0.5] * 20 + [0.7, 0.9, 0.6, 0.8] * 20
    >>> sex, job = ["f", "m", "f", "m"] * 40, ["cook"] * 80 + ["nurse"] * 80
    >>> rows = lp.Predictions.from_arrays(None, scores, sensitive_features=sex)
    >>> print(lp.within_strata(rows, job, random_state=0).sentences[0])
    Within 2 strata the standardised MCDP(0) is 50.00% between f and m (p-value <= 0.001); overall MCDP(0) is
    50.00%.
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    if not isinstance(data, Predictions):
        raise InputError(f"must be Predictions, got {type(data).__name__}", argument="data")
    checked_data(data, comparison)
    control = as_groups(control_features, len(data), "control_features", at_least=1)
    groups = Grouping(data.group_codes, data.groups)
    both = as_groups({"group": groups.codes, "stratum": control.codes}, len(data))
    labels = data.labels if comparison.needs_labels else None
    counts = as_counts(replace(data, group_codes=both.codes, groups=both.names, labels=labels))
    names = strata_names(counts, groups, control)
    draws = Draws(as_count(n_resamples, "n_resamples", at_least=0), random_state, n_jobs)
    return strata_compared(counts, names, comparison, np.atleast_1d(as_epsilons(epsilon)), draws)


def strata_names(counts: ScoreCounts, groups: Grouping, control: Grouping) -> Names:
    """The group and the stratum of each pair of codes that rows were counted by."""
    codes: Any = counts.groups
    return {pair: (groups.names[pair[0]], control.names[pair[1]]) for pair in codes}


def strata_compared(
    counts: ScoreCounts,
    names: Names,
    comparison: Comparison,
    epsilons: FloatArray,
    draws: Draws,
    *,
    fewest_left_out: int = 1,
) -> WithinStrata:
    """Compare groups within strata, of counts whose groups are both; `names` tells the two apart.

    Of each group, nobody is left out or at least `fewest_left_out` people are.
    """
    if counts.rank_error > 0.0:
        raise InputError(
            "needs counts of every score; there are too many: round the scores", "control_features"
        )
    totals = totals_of(counts, names, comparison)
    nowhere = {key: name for key, name in names.items() if is_missing_group(name[1])}
    strata = {key: name for key, name in names.items() if key not in nowhere}
    people = hide_few(people_of(counts, strata, comparison), totals, fewest_left_out)
    if not people:
        raise ValueError(
            f"control_features leaves no stratum with two groups of at least {comparison.min_group_size} rows"
        )
    first = float(epsilons[0])
    pooled, within = [], []
    for everyone in together(people):
        of_label = [stratum for stratum in people if stratum.label == everyone.label]
        for pair in pairs_of(of_label):
            pooled.append(standardised_curve(counts, [everyone], pair))
            within.append(standardised_curve(counts, of_label, pair))
    worst = int(np.argmax([curve.mcdp(first) for curve in within]))
    tested = draws.n_resamples > 0 and counts.exchangeable
    standardised, strata_p = stratum_p_values(counts, people, first, draws) if tested else ({}, {})
    summaries = [_summary(counts, stratum, epsilons, strata_p) for stratum in people]
    windows = [curves[worst].worst_window(first) for curves in (within, pooled)]
    differ = windows[0].lower is not None and windows[0].lower == windows[1].higher
    of_pair = [
        replace(some, atoms={group: some.atoms[group] for group in windows[0].groups if group in some.atoms})
        for some in people
        if some.label == windows[0].label
    ]
    return WithinStrata(
        epsilons=tuple(epsilons.tolist()),
        overall=_worst(_overall_curves(counts, names, comparison), epsilons),
        pooled=_worst(pooled, epsilons),
        standardised=_worst(within, epsilons),
        window=windows[0],
        overall_window=windows[1],
        strata=tuple(sorted(summaries, key=lambda summary: [-value for value in summary.mcdp])),
        left_out=len({stratum for _, stratum in strata.values()} - {some.stratum for some in people}),
        rows_left_out=sum(totals.values()) - sum(some.rows for some in people),
        rows_without_stratum=sum(totals_of(counts, nowhere, comparison).values()),
        p_value=min(standardised.values(), default=None),
        worst_p_value=min(strata_p.values(), default=None),
        window_p_value=standardised.get((None, windows[0].label, within[worst].groups)),
        n_resamples=draws.n_resamples if tested else 0,
        turned=differ and tested and _both_significant(counts, of_pair, first, draws, n_pairs=len(within)),
    )


def _both_significant(
    counts: ScoreCounts, people: Sequence[StratumPeople], epsilon: float, draws: Draws, *, n_pairs: int
) -> bool:
    """Whether the two groups of a pair, the worst of so many, differ within strata as well as overall."""
    within = [some for some in people if len(some.atoms) > 1]
    return all(
        n_pairs * min(stratum_p_values(counts, some, epsilon, draws)[0].values()) <= _TURN_ERROR
        for some in (within, together(people))
    )


def _overall_curves(counts: ScoreCounts, names: Names, comparison: Comparison) -> list[GapCurve]:
    """The curves of all pairs, strata put together, as an audit of everyone has them."""
    everyone = joined(counts, names)
    nobody = {group: (group, None) for group in everyone.groups}
    return [
        curve_between(everyone, dict(people.atoms), pair, people.label)
        for people in people_of(everyone, nobody, replace(comparison, min_group_size=1))
        for pair in pairs_of([people])
    ]


def _worst(curves: Sequence[GapCurve], epsilons: FloatArray) -> tuple[float, ...]:
    return tuple(np.max([curve.mcdp_at(epsilons) for curve in curves], axis=0).tolist())


def _summary(
    counts: ScoreCounts, people: StratumPeople, epsilons: FloatArray, p_values: ByPair
) -> StratumSummary:
    """The worst pair of a stratum."""
    first = float(epsilons[0])
    curves = [standardised_curve(counts, [people], pair) for pair in pairs_of([people])]
    worst = max(curves, key=lambda curve: curve.mcdp(first))
    return StratumSummary(
        stratum=people.stratum,
        label=people.label,
        rows=people.rows,
        mcdp=_worst(curves, epsilons),
        window=worst.worst_window(first),
        p_value=p_values.get((people.stratum, people.label, worst.groups)),
    )
