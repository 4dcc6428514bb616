"""Groups compared within strata: among people of one job, region or year.

Groups that are spread over strata in different ways may differ overall and in no stratum, or the other way
round. The standardised gap is the mean of the strata's gaps, each with its share of all people compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from localparity._types import ArrayLike, Criterion, FloatArray, Group, Groups, ScoreRange, Seed
from localparity._validation import Grouping, as_count, as_epsilons, as_groups, as_vector, is_unknown
from localparity.counts._comparison import Comparison, group_text
from localparity.counts._inputs import input_counts
from localparity.counts._score_counts import ScoreCounts
from localparity.metrics._gap_curve import GapCurve
from localparity.metrics._gap_curves import curve_between
from localparity.metrics._window import Window, percent
from localparity.uncertainty._permutation import least_p_value, p_value_text
from localparity.uncertainty._resampling import Draws
from localparity.uncertainty._strata import (
    PairPValues,
    StratumPeople,
    StratumTest,
    hide_few,
    joined,
    pairs_of,
    people_of,
    standardised_curve,
    together,
    totals_of,
)

_TURN_ERROR = 0.05
"""How often a sign is said to turn where the groups are alike, within strata or overall."""


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
    >>> found = lp.within_strata(
    ...     None, scores, sensitive_features=sex, control_features=job, n_resamples=0
    ... )
    >>> [(each.stratum, each.mcdp) for each in found.strata]
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
        MCDP of the standardised gap of the worst pair at each epsilon: the mean of the strata's gaps, each
        with its share of all people compared.
    window, overall_window : Window
        Where the standardised gap is largest at the first epsilon, and where the gap of that pair is largest
        with strata put together, of the people compared in a stratum.
    strata : tuple of StratumSummary
        Every stratum, the worst first.
    left_out, rows_left_out : int
        The strata in which fewer than two groups have enough people, and the rows that are in no comparison.
    rows_without_stratum : int
        The rows among these that have no value of a control feature.
    p_value, worst_p_value : float or None
        How often groups dealt at random within strata give as large a standardised gap to any pair; as large
        a gap to any pair in any stratum, each studentised by its sizes. None where no test was made.
    window_p_value : float or None
        The p-value of the pair in `window`, adjusted for all pairs.
    n_resamples : int
        How often groups were dealt for the p-values, none of which is below ``1 / (n_resamples + 1)``.
    turned : bool
        Whether the group with the lower scores within strata is the one with the higher scores overall, by
        two tests of the pair, one that deals its two groups at random within strata and one that deals them
        overall. Both p-values, times the number of pairs, are at most 0.05: if the two groups are alike
        within strata or overall, that happens in at most 5% of samples. False where no test was made.

    Examples
    --------
    >>> import localparity as lp
    >>> scores = [0.2, 0.4, 0.3, 0.5] * 20 + [0.7, 0.9, 0.6, 0.8] * 20
    >>> sex = ["f", "m", "f", "m"] * 40
    >>> job = ["cook"] * 80 + ["nurse"] * 80
    >>> found = lp.within_strata(
    ...     None, scores, sensitive_features=sex, control_features=job, random_state=0
    ... )
    >>> found.overall, found.standardised, found.p_value < 0.01, found.turned
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
        found = [
            f"Within {len(self.strata):,} strata the standardised {at} is {percent(self.standardised[0])} "
            f"between {_pair(self.window)}{own}; overall {at} is {percent(self.overall[0])}"
            f"{among if self.rows_left_out else ''}."
        ]
        worst = self.strata[0]
        own = self._p_values(worst.p_value, self.worst_p_value, "of any pair in any stratum")
        found.append(
            f"The worst stratum is {group_text(worst.stratum)}, where it is {percent(worst.mcdp[0])} between "
            f"{_pair(worst.window)}{own}."
        )
        if self.turned:
            found.append(self.turn)
        few = self.rows_left_out - self.rows_without_stratum
        if few:
            strata = f", those of {self.left_out:,} strata among them," if self.left_out else ""
            found.append(
                f"{few:,} rows are in no comparison{strata} since too few people are of their group there, "
                "or since the few could be told from the others."
            )
        if self.rows_without_stratum:
            have, count = ("row has", "counts") if self.rows_without_stratum == 1 else ("rows have", "count")
            found.append(f"{self.rows_without_stratum:,} {have} no stratum and {count} overall only.")
        return tuple(found)

    def _p_values(self, own: float | None, any_pair: float | None, of_any: str) -> str:
        """The p-value of the pair that was named, and that of any where it is another."""
        if own is None or any_pair is None:
            return ""
        texts = [p_value_text(each, least_p_value(self.n_resamples)) for each in (own, any_pair)]
        if texts[0] == texts[1]:
            return f" (p-value {texts[0]})"
        return f" (p-value of this pair {texts[0]}, {of_any} {texts[1]})"


def _pair(window: Window) -> str:
    return " and ".join(map(group_text, window.groups))


def within_strata(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: Groups,
    control_features: Groups,
    epsilon: float | Sequence[float] | FloatArray = 0.0,
    criterion: Criterion = "demographic_parity",
    sample_weight: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    min_group_size: int = 1,
    n_resamples: int = 1000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> WithinStrata:
    """Compare groups among people who have the same values of control features, such as job, region or year.

    Parameters
    ----------
    y_true : array-like or None
        Labels 0 and 1; None where the criterion does not need them.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    control_features : array-like, data frame or mapping of columns
        The stratum of each row. Of several columns, the strata are the combinations that occur.
    epsilon : float or sequence of float
        The half-width of the windows, as a fraction of the score range; the test is at the first.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    sample_weight : array-like, optional
        Weights that are not negative; there is no test with weights.
    score_range : tuple of float
        The lowest and the highest score there can be.
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
    >>> found = lp.within_strata(
    ...     None, scores, sensitive_features=sex, control_features=job, random_state=0
    ... )
    >>> print(found.sentences[0])
    Within 2 strata the standardised MCDP(0) is 50.00% between f and m (p-value <= 0.001); overall MCDP(0) is
    50.00%.
    """
    comparison = Comparison(criterion, min_group_size=min_group_size)
    rows = as_vector(y_score, "y_score").size
    groups = as_groups(sensitive_features, rows)
    control = as_groups(control_features, rows, "control_features", at_least=1)
    both = {"group": groups.codes, "stratum": control.codes}
    arrays = {"sample_weight": sample_weight, "score_range": score_range}
    counts = input_counts(comparison, y_true, y_score, both, **arrays)
    names = strata_names(counts, groups, control)
    draws = Draws(as_count(n_resamples, "n_resamples", at_least=0), random_state, n_jobs)
    return strata_compared(counts, names, comparison, np.atleast_1d(as_epsilons(epsilon)), draws)


def strata_names(
    counts: ScoreCounts, groups: Grouping, control: Grouping
) -> dict[Group, tuple[Group, Group]]:
    """The group and the stratum of each pair of codes that rows were counted by."""
    codes: Any = counts.groups
    return {pair: (groups.names[pair[0]], control.names[pair[1]]) for pair in codes}


def strata_compared(
    counts: ScoreCounts,
    names: Mapping[Group, tuple[Group, Group]],
    comparison: Comparison,
    epsilons: FloatArray,
    draws: Draws,
    *,
    disclosure_limit: int = 1,
) -> WithinStrata:
    """Compare groups within strata, of counts whose groups are both; `names` tells the two apart.

    Of each group, nobody is left out or at least `disclosure_limit` people are.
    """
    if counts.rank_error > 0.0:
        raise ValueError("control_features needs counts of every score; there are too many: round the scores")
    totals = totals_of(counts, names, comparison)
    strata = {key: (group, stratum) for key, (group, stratum) in names.items() if not is_unknown(stratum)}
    people = hide_few(people_of(counts, strata, comparison), totals, disclosure_limit)
    if not people:
        raise ValueError(
            f"control_features leaves no stratum with two groups of at least {comparison.min_group_size} rows"
        )
    first = float(epsilons[0])
    pooled, within = [], []
    for everyone in together(people):
        of_label = [each for each in people if each.label == everyone.label]
        for pair in pairs_of(of_label):
            pooled.append(standardised_curve(counts, [everyone], pair))
            within.append(standardised_curve(counts, of_label, pair))
    worst = int(np.argmax([curve.mcdp(first) for curve in within]))
    tested = draws.n_resamples > 0 and counts.exchangeable
    standardised, strata_p = StratumTest.of(counts, people, first).p_values(draws) if tested else ({}, {})
    summaries = [_summary(counts, each, epsilons, strata_p) for each in people]
    known = sum(totals_of(counts.without(set(names) - set(strata)), names, comparison).values())
    windows = [curves[worst].worst_window(first) for curves in (within, pooled)]
    differ = windows[0].lower is not None and windows[0].lower == windows[1].higher
    of_pair = [each.of_pair(within[worst].groups) for each in people if each.label == within[worst].label]
    return WithinStrata(
        epsilons=tuple(epsilons.tolist()),
        overall=_worst(_overall_curves(counts, names, comparison), epsilons),
        pooled=_worst(pooled, epsilons),
        standardised=_worst(within, epsilons),
        window=windows[0],
        overall_window=windows[1],
        strata=tuple(sorted(summaries, key=lambda each: [-value for value in each.mcdp])),
        left_out=len({stratum for _, stratum in strata.values()} - {each.stratum for each in people}),
        rows_left_out=sum(totals.values()) - sum(each.rows for each in people),
        rows_without_stratum=sum(totals.values()) - known,
        p_value=min(standardised.values(), default=None),
        worst_p_value=min(strata_p.values(), default=None),
        window_p_value=standardised.get((None, windows[0].label, within[worst].groups)),
        n_resamples=draws.n_resamples if tested else 0,
        turned=differ and tested and _both_significant(counts, of_pair, len(within), first, draws),
    )


def _both_significant(
    counts: ScoreCounts, people: Sequence[StratumPeople], n_pairs: int, epsilon: float, draws: Draws
) -> bool:
    """Whether the two groups of a pair, the worst of so many, differ within strata as well as overall."""
    draws = draws._replace(on_resample=None)
    within = [each for each in people if len(each.atoms) > 1]
    tests = (StratumTest.of(counts, some, epsilon) for some in (within, together(people)))
    return all(n_pairs * min(test.p_values(draws)[0].values()) <= _TURN_ERROR for test in tests)


def _overall_curves(
    counts: ScoreCounts, names: Mapping[Group, tuple[Group, Group]], comparison: Comparison
) -> list[GapCurve]:
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
    counts: ScoreCounts, people: StratumPeople, epsilons: FloatArray, p_values: PairPValues
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
