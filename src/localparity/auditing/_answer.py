"""What an audit answers, in words and numbers: made once, and shown by every form of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from localparity._text import (
    capitalised,
    closed_run,
    group_text,
    number_text,
    outward_points,
    points,
    points_text,
    round_number_in,
    whole_percent,
)
from localparity._types import FloatArray, Group
from localparity.auditing._findings import PairSummary
from localparity.auditing._missing import mostly_missing
from localparity.auditing._wording import (
    BoundResult,
    Step,
    bound_pair,
    bound_result,
    named_pair,
    next_steps,
    window_of,
)
from localparity.counts._comparison import EVERYONE
from localparity.counts._disclosure import DISCLOSURE_LIMIT, all_disclosed
from localparity.counts._score_counts import Stratum, copies_of, copies_sentence, strata_of, with_everyone
from localparity.metrics import Window
from localparity.metrics._gap_curve import curve_between
from localparity.uncertainty._impact import shared_error

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit, DecideBy


Status = Literal["disparity", "none found", "undecided"]
PairState = Literal["clear", "differs, size unknown", "not shown"]

FEW_PEOPLE = 50
"""The share of a group of fewer people says little."""
MOST_PAIRS = 600
"""An answer lists no more pairs than this; it counts all of them."""


@dataclass(frozen=True, kw_only=True)
class GroupShare:
    """A group and the share of it that scores above the cutoff of an answer.

    Attributes
    ----------
    name : str
        The group.
    people : int
        How many rows it has among the people compared.
    share_above : float or None
        The share that scores above the cutoff; None where an answer has no cutoff.
    low, high : float or None
        The ends of its interval, which hold at all cutoffs and for all groups together; None with weights or
        clusters.
    few : bool
        Whether it has so few people that its share says little.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, groups = [0.1, 0.4, 0.6, 0.9], ["a", "a", "b", "b"]
    >>> answer = lp.audit(None, scores, sensitive_features=groups, random_state=0).answer
    >>> [(group.name, group.people, group.share_above) for group in answer.groups]
    [('b', 2, 1.0), ('a', 2, 0.0)]
    """

    name: str
    people: int
    share_above: float | None
    low: float | None
    high: float | None
    few: bool


@dataclass(frozen=True, kw_only=True)
class PairGap:
    """Two groups and how much they differ, at the epsilon of an answer.

    Attributes
    ----------
    higher, lower : str
        The group that is more likely to score above the cutoff where they differ most, and the other one.
    people : tuple of int
        How many rows each of them has.
    label : int or None
        The label of the people compared.
    gap, low, high : float
        MCDP of the pair and the ends of its interval, as fractions.
    p_value : float or None
        The p-value against parity, adjusted for all pairs; None without a test.
    state : str
        "clear" where the interval keeps clear of 0; "differs, size unknown" where the test rejects parity and
        the interval does not; else "not shown".
    too_small : bool
        Whether only a gap of more than half the people could have been told from chance.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, groups = [0.1, 0.4, 0.6, 0.9], ["a", "a", "b", "b"]
    >>> answer = lp.audit(None, scores, sensitive_features=groups, random_state=0).answer
    >>> answer.largest.names, answer.largest.gap, answer.largest.state
    ('b - a', 1.0, 'not shown')
    """

    higher: str
    lower: str
    people: tuple[int, int]
    label: int | None
    gap: float
    low: float
    high: float
    p_value: float | None
    state: PairState
    too_small: bool

    @property
    def names(self) -> str:
        """The two groups, the higher first."""
        return f"{self.higher} - {self.lower}"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an audit found, how sure that is and what can be done, in sentences and in numbers.

    Sentences round percentages to whole ones, intervals outward; the numbers are the library's, as fractions.

    Attributes
    ----------
    about : tuple of str
        What was audited, in a few words each: the file, the people, the scores, the groups.
    status : str
        "disparity", "none found" or "undecided".
    headline, rates, sure : str
        What was found, in one sentence; the two shares behind it; and how sure it is.
    bound : BoundResult or None
        Whether the bound holds, where there is one.
    verdict : str or None
        The same in a sentence, with the pair and its people.
    unknown : str or None
        What could be if the people without a group were counted.
    by_outcome : tuple of str
        The shares of the same two groups at the same cutoff, by label, where there are labels.
    caveats : str
        What is taken for granted, and who was left out.
    next_steps : tuple of Step
        What can be done, each with an option of the same command or a command.
    epsilon : float
        The half-width of the windows that all numbers are about.
    cutoff : float or None
        The cutoff at which the groups differ most; None where they do not differ at all.
    first, second : GroupShare or None
        The two groups of the headline, the one with the larger share above the cutoff first.
    gap, low, high : float
        MCDP of this pair and the ends of its interval.
    p_value : float or None
        Its p-value.
    groups : tuple of GroupShare
        All groups, from the largest share above the cutoff to the smallest.
    pairs : tuple of PairGap
        The pairs: clear ones first, by the lower end of the interval; those too small to judge last.
    states : dict
        How many of all pairs are in each state.
    largest : PairGap
        The pair with the largest gap, whose MCDP is that of the audit.
    auc, average_precision : float or None
        How well the scores tell the labels, where there are labels.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(5000, random_state=0)
    >>> audit = lp.audit(None, census.score, sensitive_features=census.sensitive_features, random_state=0)
    >>> print(audit.answer.headline)
    Male people are 30 points more likely than Female people to score above 0.2512
    >>> print(audit.answer.rates, "|", audit.answer.sure)
    76% against 46% | True gap 25 to 33 points (95%). Chance: fewer than 1 in 1,000.
    """

    about: tuple[str, ...]
    status: Status
    headline: str
    rates: str
    sure: str
    bound: BoundResult | None
    verdict: str | None
    unknown: str | None
    by_outcome: tuple[str, ...]
    caveats: str
    next_steps: tuple[Step, ...]
    epsilon: float
    cutoff: float | None
    first: GroupShare | None
    second: GroupShare | None
    gap: float
    low: float
    high: float
    p_value: float | None
    groups: tuple[GroupShare, ...]
    pairs: tuple[PairGap, ...]
    states: Mapping[str, int]
    largest: PairGap
    auc: float | None = None
    average_precision: float | None = None

    @property
    def cutoff_text(self) -> str:
        """The cutoff as sentences have it; "" where there is none."""
        return "" if self.cutoff is None else number_text(self.cutoff, 6)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, how sure it is, and what else must be said of it."""
        said = (f"{self.headline}.", f"{self.rates}. {self.sure}", self.verdict, self.unknown)
        return (*filter(None, said), *(f"{line}." for line in self.by_outcome), self.caveats)

    @property
    def bound_lines(self) -> tuple[str, ...]:
        """The verdict on the bound and what it rests on, for a test that fails."""
        return (self.verdict or "", f"{self.headline}.", f"{self.rates}. {self.sure}")

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain dictionaries, without the pairs and the bound, which the audit has."""
        plain = asdict(replace(self, pairs=(), bound=None))
        del plain["pairs"], plain["bound"]
        return plain


def answer_of(audit: Audit, max_mcdp: float | None = None, decide_by: DecideBy = "estimate") -> Answer:
    """The answer of an audit, with a verdict where there is a bound."""
    pair, place, found = named_pair(audit)
    spot = _Spot.of(audit, pair, audit.findings[place].epsilon)
    bound = None if max_mcdp is None else bound_result(audit, max_mcdp, decide_by)
    pairs = _pairs(audit, place)
    worst = audit.worst_pair(audit.findings[place])
    interval = pair.intervals[place]
    status = _status(audit, pair, bool(found))
    words = _Words(audit, pair, place, spot, status)
    known = words.headline()
    headline, rates = known, words.rates()
    if mostly_missing(audit):
        status, headline = "undecided", words.cannot_be_told()
        rates = f"Among the people whose {words.column} is known: {known}; {rates}"
    auc, average_precision = accuracy(audit)
    return Answer(
        about=_about(audit),
        status=status,
        headline=headline,
        rates=rates,
        sure=words.sure(),
        bound=bound,
        verdict=None if bound is None else _verdict(audit, bound, pair, place),
        unknown=words.unknown(),
        by_outcome=words.by_outcome(),
        caveats=_caveats(audit),
        next_steps=_next(audit, bound),
        epsilon=audit.findings[place].epsilon,
        cutoff=spot.cutoff,
        first=spot.first,
        second=spot.second,
        gap=pair.mcdp[place],
        low=interval.low,
        high=interval.high,
        p_value=None if pair.p_values is None else pair.p_values[place],
        groups=spot.groups,
        pairs=pairs[:MOST_PAIRS],
        states=dict.fromkeys(get_args(PairState), 0) | Counter(row.state for row in pairs),
        largest=_pair_gap(audit, worst, place, _people_of(audit)),
        auc=auc,
        average_precision=average_precision,
    )


def _status(audit: Audit, pair: PairSummary, found: bool) -> Status:
    if found:
        return "disparity"
    tested = audit.has_test and not audit.findings[0].too_wide and not pair.too_small
    return "none found" if tested else "undecided"


# Where two groups differ most: one cutoff, and the share of each group above it.


@dataclass(frozen=True)
class _Spot:
    """The window of a pair, a cutoff in it at which the pair differs by its MCDP, and all shares there."""

    window: Window
    cutoff: float | None
    groups: tuple[GroupShare, ...]
    first: GroupShare | None
    second: GroupShare | None

    @classmethod
    def of(cls, audit: Audit, pair: PairSummary, epsilon: float) -> _Spot:
        """The spot of a pair."""
        window = window_of(audit, pair, epsilon)
        stratum = strata_of(audit.counts, audit.comparison)[pair.label]
        sides = with_everyone(stratum) if audit.comparison.compare == "to_overall" else stratum
        cutoff = None if window.gap == 0.0 else _cutoff_in(audit, sides, window)
        shares = _shares(audit, sides, cutoff, pair.label)
        first, second = (shares[group] for group in pair.groups)
        if cutoff is None:
            return cls(window, None, tuple(shares[group] for group in stratum), None, None)
        if (first.share_above or 0.0) < (second.share_above or 0.0):
            first, second = second, first
        ranked = sorted((shares[group] for group in stratum), key=lambda row: -(row.share_above or 0.0))
        return cls(window, cutoff, tuple(ranked), first, second)


def _cutoff_in(audit: Audit, sides: Stratum, window: Window) -> float:
    """A cutoff of a window at which the gap is MCDP: with as few digits as there can be."""
    curve = curve_between(audit.counts, sides, window.groups, window.label)
    inside = np.flatnonzero((curve.knots >= window.low) & (curve.knots < window.high))
    place = inside[np.argmin(np.abs(curve.gap[inside]))]
    low, high = float(curve.knots[place]), float(curve.knots[place + 1])
    if window.higher is not None and np.ptp(np.abs(curve.gap[inside])) == 0.0:
        low, high = window.low, window.high
    exact = window.whole or curve.cells is not None
    return low if exact else round_number_in(low, high)


def _shares(audit: Audit, sides: Stratum, cutoff: float | None, label: int | None) -> dict[Group, GroupShare]:
    """The share of each group above a cutoff, with an interval where rows are independent and weigh 1.

    The ends are those of Dvoretzky, Kiefer and Wolfowitz, which hold at every cutoff, also a chosen one.
    """
    small = {group.group for group in audit.groups if group.label == label and group.too_small}
    error = shared_error(audit.confidence, len(sides))
    has_ends = cutoff is not None and audit.counts.exchangeable and audit.counts.rank_error == 0.0
    rows = {}
    for group, atoms in sides.items():
        share = None if cutoff is None else atoms.share_above(cutoff)
        low = high = None
        if has_ends and share is not None:
            radius = math.sqrt(math.log(2.0 / error) / (2.0 * atoms.size))
            low, high = max(share - radius, 0.0), min(share + radius, 1.0)
        few = group in small or atoms.effective_size < FEW_PEOPLE
        rows[group] = GroupShare(
            name=group_text(group), people=atoms.size, share_above=share, low=low, high=high, few=few
        )
    return rows


def _pairs(audit: Audit, place: int) -> tuple[PairGap, ...]:
    """All pairs, the clear ones first."""
    order, people = list(get_args(PairState)), _people_of(audit)
    rows = [_pair_gap(audit, pair, place, people) for pair in audit.pairs]
    return tuple(sorted(rows, key=lambda row: (row.too_small, order.index(row.state), -row.low, -row.gap)))


def _people_of(audit: Audit) -> dict[tuple[Group, int | None], int]:
    """How many rows each group has of each label that is compared, and everyone."""
    people = {(group.group, group.label): group.rows for group in audit.groups}
    for label in audit.comparison.labels:
        together = sum(group.rows for group in audit.groups if group.label == label)
        people.setdefault((EVERYONE, label), together)
    return people


def _pair_gap(
    audit: Audit, pair: PairSummary, place: int, people: Mapping[tuple[Group, int | None], int]
) -> PairGap:
    interval = pair.intervals[place]
    state: PairState = "clear" if interval.low > 0.0 else "not shown"
    if state == "not shown" and pair.significant_at(place, by_test=audit.has_test):
        state = "differs, size unknown"
    window = pair.window
    groups = pair.groups if window.higher is None else (window.higher, window.lower)
    return PairGap(
        higher=group_text(groups[0]),
        lower=group_text(groups[1]),
        people=(people[groups[0], pair.label], people[groups[1], pair.label]),
        label=pair.label,
        gap=pair.mcdp[place],
        low=interval.low,
        high=interval.high,
        p_value=None if pair.p_values is None else pair.p_values[place],
        state=state,
        too_small=pair.too_small,
    )


# The sentences.


@dataclass(frozen=True)
class _Words:
    """The sentences about the pair that an answer names."""

    audit: Audit
    pair: PairSummary
    place: int
    spot: _Spot
    status: Status

    @property
    def column(self) -> str:
        """The column of the groups, or what it is called where it has no name."""
        return " and ".join(column_of(self.audit, "group")) or "group"

    def headline(self) -> str:
        """What was found, in one sentence."""
        if self.status == "disparity":
            return self._difference()
        if self.status == "none found":
            return "No difference was found that chance would not explain"
        epsilon = self.audit.findings[0].epsilon
        if self.audit.findings[0].too_wide:
            why = f"span no window of epsilon {epsilon:g}" if epsilon else "are all the same"
            return f"Cannot be told: the scores {why}"
        if not self.audit.has_test:
            return "Cannot be told: nothing was tested"
        return "Cannot be told: there are too few people"

    def cannot_be_told(self) -> str:
        """What is said first where most people have no group."""
        missing, known = self.audit.missing_rows.groups, self.audit.counts.size
        share = whole_percent(missing / (missing + known))
        return f"Cannot be told: {share} of {missing + known:,} people have no recorded {self.column}"

    def _difference(self) -> str:
        first, second, window = self.spot.first, self.spot.second, self.spot.window
        among = among_label(self.audit, self.pair.label)
        if self.audit.higher_is is not None:
            among = f", which is the {self.audit.higher_is} outcome{among}"
        epsilon = self.audit.findings[self.place].epsilon
        if first is None or second is None:  # which a test of many windows may find where one shows nothing
            return f"{_people(window.groups[0])} and {_people(window.groups[1])} differ{among}"
        names = [_people(group) for group in window.groups]
        if first.name != group_text(window.groups[0]):
            names.reverse()
        if names[0].startswith("people "):
            names[0] = capitalised(names[0])
        if epsilon == 0.0:
            than = f"{points(window.gap)} more likely than {names[1]}"
            return f"{names[0]} are {than} to score above {self._cutoff()}{among}"
        low, high = closed_run(window.low, window.high, whole=window.whole)
        run = f"every cutoff from {low} to {high}" if low != high else f"a cutoff of {low}"
        least = points_text(window.gap)
        if window.gap >= 0.01:
            least = f"at least {points(math.floor(100.0 * window.gap + _ROUNDING) / 100.0)}"
        if window.higher is None:
            return f"{names[0]} and {names[1]} differ by {least} at {run}{among}"
        return f"{names[0]} are {least} more likely than {names[1]} to score above {run}{among}"

    def _cutoff(self) -> str:
        cutoff = self.spot.cutoff
        assert cutoff is not None
        if self.audit.scale == "rank":
            return f"{number_text(100.0 * cutoff, 4)}% of people"
        return number_text(cutoff, 6)

    def rates(self) -> str:
        """The shares of the two groups above the cutoff."""
        first, second = self.spot.first, self.spot.second
        if first is None or second is None or first.share_above is None or second.share_above is None:
            return "No cutoff has a gap between the groups"
        shares = against(first.share_above, second.share_above)
        if self.status == "disparity":
            at = "" if self.audit.findings[self.place].epsilon == 0.0 else f" above {self._cutoff()}"
            return f"{shares}{at}"
        gap = f"{points(self.pair.mcdp[self.place])} between {first.name} and {second.name}"
        return f"Largest gap{self._judged()}: {gap}, {shares} above {self._cutoff()}"

    def _judged(self) -> str:
        small = any(pair.too_small for pair in self.audit.pairs) and not self.pair.too_small
        return " that can be judged" if small else ""

    def sure(self) -> str:
        """How sure it is, with what a test could have found where it found nothing."""
        if self.audit.findings[self.place].too_wide:
            return "Nothing was tested."
        interval, sentences = self.pair.intervals[self.place], []
        at = f"{outward_points(interval.low, interval.high)} ({100.0 * interval.confidence:g}%)"
        if self.status == "disparity" and interval.low == 0.0:
            sentences.append(f"They differ, but by how much is not known: {at}.")
        else:
            sentences.append(f"True gap {at}.")
        if self.pair.p_values is None:
            sentences.append("Not tested.")
        elif not self.audit.has_test:
            sentences.append(f"{self.audit.n_resamples} resamples are too few for a test.")
        else:
            sentences.append(f"Chance: {chance(self.pair.p_values[self.place], self.audit.n_resamples)}.")
        if self.status != "disparity" and self.audit.has_test:
            least = self.pair.detectable
            needed = "No measured gap" if least is None else f"Only a measured gap above {points(least)}"
            sentences.append(f"{needed} would have been told from chance.")
        return " ".join(sentences)

    def unknown(self) -> str | None:
        """What could be if the people without a group were counted."""
        bounds = self.audit.unknown_groups
        if bounds is None:
            if not mostly_missing(self.audit):
                return None
            return f"The people without a recorded {self.column} were left out."
        share = whole_percent(bounds.unknown / (bounds.unknown + bounds.known))
        could = outward_points(bounds.bounds[0].low, bounds.bounds[0].high)
        return (
            f"{share} of people have no recorded {self.column}. Depending on who they are, the largest gap "
            f"could be anywhere from {could}."
        )

    def by_outcome(self) -> tuple[str, ...]:
        """The same two groups at the same cutoff, by label; none where few people have a label."""
        counts, cutoff = self.audit.counts, self.spot.cutoff
        first, second = self.spot.first, self.spot.second
        if self.pair.label is not None or not counts.labelled or cutoff is None or first is None:
            return ()
        assert second is not None
        sides = [[counts.atoms.get((group, label)) for group in self.pair.groups] for label in (0, 1)]
        limit = max(self.audit.comparison.min_group_size, DISCLOSURE_LIMIT)
        lines = []
        for label, atoms in zip((0, 1), sides, strict=True):
            if any(one is None or one.size < limit for one in atoms):
                return ()
            shares = {
                group_text(group): one.share_above(cutoff)
                for group, one in zip(self.pair.groups, atoms, strict=True)
                if one is not None
            }
            both = " against ".join(whole_percent(shares[row.name]) for row in (first, second))
            lines.append(f"{label_text(self.audit, label)}: {both} above {self._cutoff()}")
        return tuple(lines)


_ROUNDING = 1e-9


def against(first: float, second: float) -> str:
    """Two shares; with a decimal where whole percentages would differ by another number of points.

    Examples
    --------
    >>> against(0.59, 0.35), against(0.594, 0.356)
    ('59% against 35%', '59.4% against 35.6%')
    """
    agree = round(100.0 * first) - round(100.0 * second) == round(100.0 * (first - second))
    decimals = 0 if agree else 1
    return f"{100.0 * first:.{decimals}f}% against {100.0 * second:.{decimals}f}%"


def chance(p_value: float, n_resamples: int) -> str:
    """How often chance alone would show as much, were the groups alike.

    Examples
    --------
    >>> chance(1 / 1001, 1000), chance(0.0041, 1000), chance(0.41, 1000)
    ('fewer than 1 in 1,000', '5 in 1,000', '41 in 100')
    """
    if p_value <= 1.0 / (1 + n_resamples) * (1.0 + _ROUNDING):
        return f"fewer than 1 in {n_resamples:,}"
    of = 1000 if p_value < 0.01 else 100
    return f"{math.ceil(of * p_value - _ROUNDING):,} in {of:,}"


def column_of(audit: Audit, use: str) -> list[str]:
    """The columns of a use, where the audit knows their names."""
    columns = {} if audit.provenance is None else audit.provenance.columns
    name = columns.get(use, [])
    return [name] if isinstance(name, str) else list(name)


def label_text(audit: Audit, label: int) -> str:
    """The people of a label, by the column that says so."""
    (name,) = column_of(audit, "label") or column_of(audit, "target") or ["label"]
    return f"{name} = {label}"


def among_label(audit: Audit, label: int | None) -> str:
    """The people of a label, at the end of a sentence."""
    return "" if label is None else f", among people with {label_text(audit, label)}"


def _people(group: Group) -> str:
    """The people of a group, in a sentence."""
    if group is EVERYONE:
        return "people overall"
    name = group_text(group)
    return f"{name} people" if name and name[0].isalpha() else f"people of group {name}"


def _about(audit: Audit) -> tuple[str, ...]:
    """The file, the people, the scores and the groups."""
    files = () if audit.provenance is None else audit.provenance.files
    parts = [PurePath(files[0].name).name] if len(files) == 1 else []
    if len(files) > 1:
        parts.append(f"{len(files)} files")
    rows = "people" if audit.counts.clusters is None else "rows"
    parts.append(f"{audit.rows:,} {rows}")
    low, high = (number_text(end, 6) for end in audit.score_range)
    (score,) = column_of(audit, "score") or ["scores"]
    scale = {"score": f"{low}-{high}", "data": f"{low}-{high} (range of the data)", "rank": "as ranks"}
    parts.append(f"{score} {scale[audit.scale]}")
    groups = column_of(audit, "group")
    return (*parts, *([f"by {' x '.join(groups)}"] if groups else []))


def _verdict(audit: Audit, bound: BoundResult, named: PairSummary, place: int) -> str:
    """Whether the bound holds, of which pair, and which gap is the clearest where that is another."""
    people, compared = _people_of(audit), bound_pair(audit, bound.decide_by)
    pair = _pair_gap(audit, compared, 0, people)
    limit = f"the bound of {points(bound.max_mcdp)}"
    size = f"{points(pair.gap, bound.max_mcdp)} ({outward_points(pair.low, pair.high, unit=False)})"
    between = f"{pair.higher} ({pair.people[0]:,} people) and {pair.lower} ({pair.people[1]:,} people)"
    start = "Within" if bound.within else "Above"
    by = "" if bound.decide_by == "estimate" else f" by the {bound.decide_by} end"
    sentences = [f"{start} {limit}{by}: {between} differ by {size}{among_label(audit, pair.label)}."]
    if bound.could_be_chance:
        sentences.append("That could be chance.")
    elif bound.word == "undecided":
        sentences.append(f"The true gap may be {'above' if bound.within else 'within'} it.")
    if named != compared:
        clearest = _pair_gap(audit, named, place, people)
        size = f"{points(clearest.gap)} ({outward_points(clearest.low, clearest.high, unit=False)})"
        sentences.append(f"Clearest gap: {clearest.higher} and {clearest.lower}, {size}.")
    return " ".join(sentences)


def _caveats(audit: Audit) -> str:
    """What is taken for granted, who was left out, and what was done with rows that lack a value."""
    rows = "one row per person" if audit.counts.clusters is None else "clusters do not depend on each other"
    parts = [f"Assumes {rows}, and scores not trained on these rows."]
    copies = copies_of(audit.counts)
    if copies > 1:
        parts = [
            f"{copies_sentence(copies)}, so this is too sure.",
            "Assumes scores not trained on these rows.",
        ]
    if audit.left_out:
        names = [group_text(left.group) for left in audit.left_out]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        parts.append(f"Left out (fewer than {audit.left_out[0].fewer_than:,} people): {shown}.")
    bounded = audit.missing_rows.missing_groups == "bound"
    parts += replace(audit.missing_rows, groups=0).sentences if bounded else audit.missing_rows.sentences
    return " ".join(parts)


def _next(audit: Audit, bound: BoundResult | None) -> tuple[Step, ...]:
    """Options of the same command first, then other commands."""
    if audit.provenance is None or not audit.provenance.call.startswith("localparity "):
        options = [Step("", 'audit.to_html("page.html")'), Step("", "audit.to_json()")]
        options += [Step("", "audit.passes(0.10)")] if bound is None else []
    else:
        options = [Step("charts", "--report page.html"), Step("", "--json")]
        options += [Step("pass/fail", "--max-mcdp 0.10")] if bound is None else []
    within = bound is not None and bound.within
    return (*options, *next_steps(audit, None if bound is None else bound.max_mcdp, within=within))


def accuracy(audit: Audit) -> tuple[float | None, float | None]:
    """The area under the ROC curve and average precision of all people together; None without both labels.

    Where people of one label are compared, nothing is said of a few people who have the other.
    """
    counts = audit.counts
    everyone = audit.comparison.criterion == "demographic_parity" or all_disclosed(counts, DISCLOSURE_LIMIT)
    if not counts.labelled or counts.rank_error > 0.0 or not everyone:
        return None, None
    scores = np.unique(np.concatenate([atoms.scores for atoms in counts.atoms.values()]))
    weights: dict[Any, FloatArray] = {0: np.zeros(scores.size), 1: np.zeros(scores.size)}
    for (_, label), atoms in counts.atoms.items():
        np.add.at(weights[label], np.searchsorted(scores, atoms.scores), atoms.weights)
    negative, positive = (weights[label][::-1] for label in (0, 1))
    if not negative.sum() or not positive.sum():
        return None, None
    below = negative.sum() - np.cumsum(negative)
    auc = (positive * (below + 0.5 * negative)).sum() / (positive.sum() * negative.sum())
    precision = np.cumsum(positive) / np.cumsum(positive + negative)
    return float(auc), float((precision * positive).sum() / positive.sum())
