"""What an audit answers, in words and numbers: made once, and shown by every form of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from localparity._text import group_text, number_text, points, round_number_in
from localparity._types import FloatArray, Group
from localparity._validation import InputError, as_choice, as_fraction, setting
from localparity.auditing._findings import Finding, PairSummary
from localparity.auditing._missing import mostly_missing
from localparity.auditing._wording import (
    Step,
    Words,
    between_text,
    caveats_of,
    next_steps,
    subject_of,
    verdict_sentence,
)
from localparity.counts._comparison import EVERYONE
from localparity.counts._disclosure import DISCLOSURE_LIMIT, all_disclosed
from localparity.counts._score_counts import Stratum, strata_of, with_everyone
from localparity.metrics import Window
from localparity.metrics._gap_curve import curve_between
from localparity.metrics._within import Verdict, verdict_on, within_bound
from localparity.uncertainty._impact import shared_error

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit


Status = Literal["disparity", "none found", "undecided"]
PairState = Literal["clear", "differs, size unknown", "not shown"]
_STATES: tuple[PairState, ...] = get_args(PairState)

FEW_PEOPLE = 50
"""The share of a group of fewer people says little."""
_TENTH = 0.001
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


DecideBy = Literal["estimate", "upper", "lower"]
NotAssessed = Literal["fail", "allow"]


@dataclass(frozen=True, kw_only=True)
class BoundResult:
    """A bound, what was compared with it, between whom, the verdict, and whether a pipeline passes.

    `not_assessed` names the groups that must be assessed and were not; with any, the verdict is not "within".
    """

    max_mcdp: float
    decide_by: DecideBy
    epsilon: float
    value: float
    verdict: Verdict
    passes: bool
    not_assessed: tuple[str, ...]
    between: str
    could_be_chance: bool

    @property
    def compared(self) -> str:
        """What was compared."""
        name = f"MCDP({self.epsilon:g})"
        return name if self.decide_by == "estimate" else f"the {self.decide_by} end of {name}"


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
    Males are 30 points more likely than Females to score above 0.251
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


def answer_of(
    audit: Audit,
    max_mcdp: float | None = None,
    decide_by: DecideBy = "estimate",
    *,
    required_groups: Sequence[str] = (),
    not_assessed: NotAssessed = "fail",
) -> Answer:
    """The answer of an audit, with a verdict where there is a bound."""
    pair, place, _ = named_pair(audit)
    people = _people_of(audit)
    pairs = sorted(
        (_pair_gap(audit, other, place, people) for other in audit.pairs),
        key=lambda row: (row.too_small, _STATES.index(row.state), -row.low, -row.gap),
    )
    exactly = "." in points(pair.mcdp[place], max_mcdp)
    spot = Spot.of(audit, pair, audit.findings[place].epsilon, exactly=exactly)
    requirement: dict[str, Any] = {"required_groups": required_groups, "not_assessed": not_assessed}
    said = said_of(audit, spot, max_mcdp, decide_by, **requirement)
    words = Words(audit, pair, place, spot, said["status"], max_mcdp)
    auc, average_precision = accuracy(audit)
    passes = said["bound"] is not None and said["bound"].passes
    return Answer(
        **said,
        about=subject_of(audit),
        unknown=words.unknown(),
        by_outcome=words.by_outcome(),
        caveats=caveats_of(audit),
        next_steps=next_steps(audit, said["status"], max_mcdp, within=passes),
        cutoff=spot.cutoff,
        first=spot.first,
        second=spot.second,
        groups=spot.groups,
        pairs=tuple(pairs[:MOST_PAIRS]),
        auc=auc,
        average_precision=average_precision,
    )


def said_of(
    audit: Audit,
    spot: Spot,
    max_mcdp: float | None,
    decide_by: DecideBy,
    *,
    required_groups: Sequence[str],
    not_assessed: NotAssessed,
) -> dict[str, Any]:
    """The part of an answer that follows from the pairs of an audit and the shares at a spot."""
    pair, place, differing = named_pair(audit)
    people = _people_of(audit)
    status: Status = "disparity" if differing else "undecided"
    if not differing and audit.has_test and not audit.findings[0].too_wide and not pair.too_small:
        status = "none found"
    words = Words(audit, pair, place, spot, status, max_mcdp)
    headline, rates, sure = words.headline(), words.rates(), words.sure()
    if mostly_missing(audit):
        rates = f"Among people whose {words.column} is known: {headline}. {rates}"
        status, headline = "undecided", words.cannot_be_told()
    bound, verdict = None, None
    if max_mcdp is not None:
        requirement: dict[str, Any] = {"required_groups": required_groups, "not_assessed": not_assessed}
        bound = bound_result(audit, max_mcdp, decide_by=decide_by, **requirement)
        compared, allowed = bound_pair(audit, decide_by), not_assessed == "allow"
        worst, surest = _pair_gap(audit, compared, 0, people), None
        if bound.verdict == "above" and within_bound(worst.low, max_mcdp):  # as of few people
            surest = _pair_gap(audit, bound_pair(audit, "lower"), 0, people)
        elif compared != pair:
            surest = _pair_gap(audit, pair, place, people)
        verdict = verdict_sentence(audit, bound, worst, surest, allowed=allowed)
    interval, states = pair.intervals[place], dict.fromkeys(_STATES, 0)
    return {
        "status": status,
        "headline": headline,
        "rates": rates,
        "sure": sure,
        "bound": bound,
        "verdict": verdict,
        "epsilon": audit.findings[place].epsilon,
        "gap": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "p_value": None if pair.p_values is None else pair.p_values[place],
        "states": states | Counter(_pair_gap(audit, one, place, people).state for one in audit.pairs),
        "largest": _pair_gap(audit, audit.worst_pair(audit.findings[place]), place, people),
    }


def named_pair(audit: Audit) -> tuple[PairSummary, int, list[PairSummary]]:
    """The clearest pair, or else the worst that can be judged, its epsilon's place, and all clear pairs."""
    for place in range(len(audit.findings)):
        found = [pair for pair in audit.pairs if pair.significant_at(place, by_test=audit.has_test)]
        if found:
            return max(found, key=lambda pair: pair.mcdp[place] / pair.radius), place, found
    judged = [pair for pair in audit.pairs if not pair.too_small]
    return max(judged or audit.pairs, key=lambda pair: pair.mcdp[0]), 0, []


def window_of(audit: Audit, pair: PairSummary, epsilon: float) -> Window:
    """Where the gap of a pair is largest, for windows of a half-width."""
    if epsilon == audit.findings[0].epsilon:
        return pair.window
    sides = _sides(audit, pair.label)
    return curve_between(audit.counts, sides, pair.groups, pair.label).worst_window(epsilon)


def _sides(audit: Audit, label: int | None) -> Stratum:
    """The scores of each group of a label, and of everyone where groups are compared with everyone."""
    stratum = strata_of(audit.counts, audit.comparison)[label]
    return with_everyone(stratum) if audit.comparison.compare == "to_overall" else stratum


# Where two groups differ most: one cutoff, and the share of each group above it.


@dataclass(frozen=True)
class Spot:
    """The window of a pair, a cutoff in it at which the pair differs by its MCDP, and all shares there."""

    window: Window
    cutoff: float | None
    groups: tuple[GroupShare, ...]
    first: GroupShare | None
    second: GroupShare | None

    @classmethod
    def of(cls, audit: Audit, pair: PairSummary, epsilon: float, *, exactly: bool) -> Spot:
        """The spot of a pair."""
        window = window_of(audit, pair, epsilon)
        sides = _sides(audit, pair.label)
        cutoff = None if window.gap == 0.0 else _cutoff_in(audit, sides, window, exactly=exactly)
        shares = _shares(audit, sides, cutoff, pair.label)
        ranked = sorted((shares[group] for group in sides if group is not EVERYONE), key=_below)
        if cutoff is None:
            return cls(window, None, tuple(ranked), None, None)
        first, second = sorted((shares[group] for group in pair.groups), key=_below)
        return cls(window, cutoff, tuple(ranked), first, second)


def _below(row: GroupShare) -> float:
    return -(row.share_above or 0.0)


def _cutoff_in(audit: Audit, sides: Stratum, window: Window, *, exactly: bool) -> float:
    """A cutoff with few digits at which the gap is MCDP, to a tenth of a point or exactly."""
    curve = curve_between(audit.counts, sides, window.groups, window.label)
    inside = np.flatnonzero((curve.knots >= window.low) & (curve.knots < window.high))
    place = inside[np.argmin(np.abs(curve.gap[inside]))]
    if window.whole or curve.cells is not None:
        return float(curve.knots[place])
    largest = curve.gap[place]
    differs = np.abs(curve.gap - largest) > (0.0 if exactly else min(_TENTH, 0.01 * abs(largest)))
    other = np.flatnonzero(differs | (np.round(100.0 * curve.gap) != np.round(100.0 * largest)))
    first, last = other[other < place].max(initial=-1) + 1, other[other > place].min(initial=curve.gap.size)
    return round_number_in(float(curve.knots[first]), float(curve.knots[min(last, curve.knots.size - 1)]))


def _shares(audit: Audit, sides: Stratum, cutoff: float | None, label: int | None) -> dict[Group, GroupShare]:
    """The share of each group above a cutoff, with the interval of Dvoretzky, Kiefer and Wolfowitz."""
    small = {group.group for group in audit.groups if group.label == label and group.too_small}
    error = shared_error(audit.confidence, len(sides))
    has_ends = cutoff is not None and audit.counts.exchangeable and audit.counts.rank_error == 0.0
    rows = {}
    for group, atoms in sides.items():
        share = None if cutoff is None else atoms.share_above(cutoff)
        low = high = None
        if has_ends and share is not None:
            low, high = share_ends(share, atoms.size, error)
        few = group in small or atoms.effective_size < FEW_PEOPLE
        rows[group] = GroupShare(
            name=group_text(group), people=atoms.size, share_above=share, low=low, high=high, few=few
        )
    return rows


def share_ends(share: float, people: int, error: float) -> tuple[float, float]:
    """The ends of the interval of a share, which all cutoffs have together."""
    radius = math.sqrt(math.log(2.0 / error) / (2.0 * people))
    return max(share - radius, 0.0), min(share + radius, 1.0)


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


def accuracy(audit: Audit) -> tuple[float | None, float | None]:
    """The area under the ROC curve and average precision of all people together; None without both labels."""
    counts = audit.counts
    # Where people of one label are compared, nothing is said of a few people who have the other.
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


# The bound.


_ENDS = {"estimate": "estimate", "upper": "high", "lower": "low"}


def bound_pair(audit: Audit, decide_by: str) -> PairSummary:
    """The pair whose MCDP, or an end of its interval, is compared with a bound."""
    if decide_by == "estimate":
        return audit.worst_pair(audit.findings[0])
    return max(audit.pairs, key=lambda pair: getattr(pair.intervals[0], _ENDS[decide_by]))


def bound_result(
    audit: Audit,
    max_mcdp: float,
    *,
    epsilon: float | None = None,
    decide_by: DecideBy = "estimate",
    required_groups: Sequence[str] = (),
    not_assessed: NotAssessed = "fail",
) -> BoundResult:
    """The verdict of an audit on a bound, with what was compared; no other place decides."""
    max_mcdp = as_fraction(max_mcdp, "max_mcdp")
    decide_by = as_choice(decide_by, "decide_by", get_args(DecideBy))
    as_choice(not_assessed, "not_assessed", get_args(NotAssessed))
    finding = audit.findings[0] if epsilon is None else audit.finding(epsilon)
    if finding.too_wide:
        name = setting("score_range")
        raise InputError(
            f"MCDP({finding.epsilon:g}) is 0 whatever the groups: the scores span no window so "
            f"wide in {name} {audit.score_range}; give a smaller epsilon or the right {name}"
        )
    value = getattr(finding.interval, _ENDS[decide_by])
    holds, unseen = within_bound(value, max_mcdp), _not_assessed(audit, finding, max_mcdp, required_groups)
    verdict, pair = verdict_on(finding.interval, max_mcdp), bound_pair(audit, decide_by)
    clear = holds or decide_by != "estimate" or pair.significant_at(0, by_test=audit.has_test)
    return BoundResult(
        max_mcdp=max_mcdp,
        decide_by=decide_by,
        epsilon=finding.epsilon,
        value=value,
        verdict="undecided" if unseen and verdict == "within" else verdict,
        passes=holds and (not unseen or not_assessed == "allow"),
        not_assessed=unseen,
        between=between_text(audit, pair),
        could_be_chance=not clear,
    )


def _not_assessed(
    audit: Audit, finding: Finding, max_mcdp: float, required: Sequence[str]
) -> tuple[str, ...]:
    """The groups that are required, each that occurs unless some are listed, and were not assessed."""
    left_out = {group_text(left.group): left.fewer_than for left in audit.left_out}
    small = {name: f"{name} (fewer than {limit:,} people)" for name, limit in left_out.items()}
    names = [small[name] for name in (required or small) if name in small]
    compared = {group_text(group.group) for group in audit.groups}
    names += [f"{name} (nobody)" for name in required if name not in compared | small.keys()]
    missing, bounds = audit.missing_rows, audit.unknown_groups
    if missing.groups and missing.missing_groups != "group":
        place = audit.findings.index(finding)
        if bounds is None or not within_bound(bounds.bounds[place].high, max_mcdp):
            who = "people" if audit.counts.clusters is None else "rows"
            names.append(f"{missing.groups:,} {who} without a group")
    return tuple(names)
