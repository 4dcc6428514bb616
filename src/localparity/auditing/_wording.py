"""What an audit found, in plain words."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from localparity._types import Group, HigherIs
from localparity.auditing._findings import TOO_COARSE, Finding, GroupSummary, PairSummary
from localparity.auditing._missing import mostly_missing, what_could_be
from localparity.auditing._steps import Step, next_steps
from localparity.counts._comparison import EVERYONE, group_text
from localparity.counts._score_counts import copies_of, copies_sentence, strata_of, with_everyone
from localparity.metrics import Interval, Window
from localparity.metrics._gap_curve import curve_between
from localparity.metrics._window import capitalised, percent
from localparity.uncertainty._permutation import least_p_value, p_value_text, share_of_audits
from localparity.uncertainty._resampling import least_resamples

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit, DecideBy


_MOST_NAMES = 12
_FEW_ROWS = 30.0

CRITERION_WORDS = {
    "demographic_parity": "everyone (demographic parity)",
    "equal_opportunity": "label 1 (equal opportunity)",
    "predictive_equality": "label 0 (predictive equality)",
    "equalized_odds": "label 0 or 1, the worse (equalized odds)",
}

COMPARE_WORDS = {
    "between_groups": "every pair of groups",
    "to_overall": "each group with everyone",
}


@dataclass(frozen=True)
class Verdict:
    """Whether there is a disparity, how large and where, and how sure that is.

    Attributes
    ----------
    status : str
        "found" where a disparity is significant, "not found" where a test that could have found one did not,
        "undecided" where there was no such test or there are too few people.
    headline, where, how_sure : str
        A sentence or two each.
    notes : tuple of str
        What else must be said beside it: the largest estimate where it is another, groups too small to judge.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> found.verdict.status
    'undecided'
    """

    status: Literal["found", "not found", "undecided"]
    headline: str
    where: str
    how_sure: str
    notes: tuple[str, ...]


def pair_text(groups: Sequence[Group]) -> str:
    """Two groups in a table's cell; a name that runs from right to left keeps to itself.

    Examples
    --------
    >>> pair_text(("Female", "Male"))
    'Female and Male'
    """
    return " and ".join(_kept_apart(group_text(group)) for group in groups)


def _kept_apart(name: str) -> str:
    right_to_left = any(unicodedata.bidirectional(character) in {"R", "AL", "AN"} for character in name)
    return f"\u2068{name}\u2069" if right_to_left else name


def pair_name(audit: Audit, pair: PairSummary) -> str:
    """A pair in a table's cell, with how many people it has."""
    return " and ".join(f"{name} ({rows:,})" for name, rows in _people(audit, pair))


def between_text(audit: Audit, pair: PairSummary) -> str:
    """A pair in a sentence, with how many people it has."""
    one, many = ("person", "people") if audit.counts.clusters is None else ("row", "rows")
    names = [f"{name} ({rows:,} {one if rows == 1 else many})" for name, rows in _people(audit, pair)]
    return " and ".join(names) + ("" if pair.label is None else f" among people with label {pair.label}")


def _people(audit: Audit, pair: PairSummary) -> list[tuple[str, int]]:
    """The names of two groups, each with its rows among the people compared."""
    rows = {group.group: group.rows for group in audit.groups if group.label == pair.label}
    rows.setdefault(EVERYONE, sum(rows.values()))
    return [(_kept_apart(group_text(group)), rows[group]) for group in pair.groups]


def p_value_at(audit: Audit, place: int, p_value: float | None) -> str:
    """A p-value at one of an audit's epsilons, or a dash where nothing was tested there."""
    tested = None if audit.findings[place].vacuous else p_value
    return p_value_text(tested, least_p_value(audit.n_resamples))


def interval_text(interval: Interval) -> str:
    """An interval.

    Examples
    --------
    >>> from localparity.results import Interval
    >>> interval_text(Interval(0.1, 0.2, 0.3, 0.95))
    '10.00% to 30.00%'
    """
    return f"{percent(interval.low)} to {percent(interval.high)}"


def verdict_of(audit: Audit) -> Verdict:
    """The verdict on an audit.

    A disparity is found where some pair's adjusted p-value at some epsilon is small enough or its interval
    keeps clear of 0. Of the pairs for which that is so, the one that stands out most from chance is named.
    What people without a group could change is said too, and first where they are most.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(5000, random_state=0)
    >>> audit = lp.audit(None, census.score, sensitive_features=census.sensitive_features, random_state=0)
    >>> print(verdict_of(audit).headline)
    There is a disparity: MCDP(0) is 30.02%, between Female (2,253 people) and Male (2,747 people).
    """
    found, could_be = _verdict(audit), what_could_be(audit)
    if could_be is None:
        return found
    if not mostly_missing(audit):
        return replace(found, notes=(could_be, *found.notes))
    known = f"Among the people whose group is known, {found.headline[0].lower()}{found.headline[1:]}"
    status = "undecided" if found.status == "not found" else found.status
    return replace(found, status=status, headline=f"{could_be} {known}")


def _verdict(audit: Audit) -> Verdict:
    """The verdict on the people whose group is known."""
    pair, place, found = named_pair(audit)
    if found:
        return Verdict(
            "found",
            _found_headline(audit, pair, place),
            _where(audit, pair, audit.findings[place].epsilon),
            _how_sure(audit, pair, place),
            (*_other_pairs(audit, found, pair, place), *_notes(audit, found, place)),
        )
    judged = not pair.too_small
    largest = mcdp_text(audit, 0)
    if not is_worst(audit, pair, 0):
        gap = f"{percent(pair.mcdp[0])}, between {between_text(audit, pair)}"
        largest = f"of the pairs that are large enough to judge, the largest gap is {gap}; {largest}"
    vacuous = audit.findings[0].vacuous
    if vacuous:
        epsilon = audit.findings[0].epsilon
        headline = f"Nothing was tested: the scores span no window of epsilon {epsilon:g} in the score range."
    elif not audit.tested:
        headline = f"Whether there is a disparity was not tested; {largest}."
    elif not judged:
        headline = f"There are too few people to distinguish a disparity from chance; {largest}."
    else:
        headline = f"No disparity can be distinguished from chance at these sizes; {largest}."
    return Verdict(
        "not found" if judged and audit.tested and not vacuous else "undecided",
        headline,
        _where(audit, pair, audit.findings[0].epsilon),
        _how_sure(audit, pair, 0),
        _notes(audit, [], 0),
    )


def named_pair(audit: Audit) -> tuple[PairSummary, int, list[PairSummary]]:
    """The pair that a verdict names, the place of the epsilon, and all pairs with a disparity there.

    Where no pair has one, it is the worst of those that are large enough to judge.
    """
    for place in range(len(audit.findings)):
        found = [pair for pair in audit.pairs if pair.significant_at(place, by_test=audit.tested)]
        if found:
            return max(found, key=lambda pair: pair.mcdp[place] / pair.radius), place, found
    judged = [pair for pair in audit.pairs if not pair.too_small]
    return max(judged or audit.pairs, key=lambda pair: pair.mcdp[0]), 0, []


def mcdp_text(audit: Audit, place: int) -> str:
    """MCDP of an audit at one of its epsilons: how large, and between whom."""
    finding = audit.findings[place]
    among = ", the largest of all pairs," if len(audit.pairs) > 1 else ""
    between = between_text(audit, audit.worst_pair(finding))
    return f"MCDP({finding.epsilon:g}){among} is {percent(finding.mcdp)}, between {between}"


def is_worst(audit: Audit, pair: PairSummary, place: int) -> bool:
    """Whether MCDP of the audit is that of a pair."""
    window = audit.findings[place].window
    return (pair.groups, pair.label) == (window.groups, window.label)


def _found_headline(audit: Audit, pair: PairSummary, place: int) -> str:
    """The pair that stands out most from chance, and the worst where that is another."""
    if is_worst(audit, pair, place):
        return f"There is a disparity: {mcdp_text(audit, place)}."
    epsilon = audit.findings[place].epsilon
    at = f" at epsilon {epsilon:g}" if epsilon else ""
    gap = f"{percent(pair.mcdp[place])}, between {between_text(audit, pair)}"
    return f"There is a disparity: the clearest gap{at} is {gap}; {mcdp_text(audit, place)}."


def window_of(audit: Audit, pair: PairSummary, epsilon: float) -> Window:
    """Where the gap of a pair is largest, for windows of a half-width."""
    if epsilon == audit.findings[0].epsilon:
        return pair.window
    stratum = strata_of(audit.counts, audit.comparison)[pair.label]
    sides = with_everyone(stratum) if audit.comparison.compare == "to_overall" else stratum
    return curve_between(audit.counts, sides, pair.groups, pair.label).worst_window(epsilon)


def _where(audit: Audit, pair: PairSummary, epsilon: float) -> str:
    return window_of(audit, pair, epsilon).sentence_for(audit.higher_is)


def _how_sure(audit: Audit, pair: PairSummary, place: int) -> str:
    whose = "Its" if is_worst(audit, pair, place) else f"For {pair_text(pair.groups)}, the"
    interval = interval_text(pair.intervals[place])
    sentence = f"{whose} {100 * audit.confidence:g}% interval goes from {interval}"
    if pair.p_values is None or audit.findings[place].vacuous:
        return sentence + "; no test against parity was made."
    adjusted = "adjusted " if len(audit.pairs) * len(audit.findings) > 1 else ""
    p_value = p_value_at(audit, place, pair.p_values[place])
    sentence += f"; the {adjusted}p-value against parity is {p_value}. "
    if pair.intervals[place].low == 0.0 and pair.significant_at(place, by_test=audit.tested):
        sentence += "The test rejects parity, but not by how much: the interval reaches down to 0. "
    if not audit.tested:
        needed = least_resamples(audit.confidence)
        sentence += f"With {audit.n_resamples} resamples it cannot be small enough: {needed} are needed. "
    if place:
        return sentence.rstrip()
    if pair.detectable is None:
        return sentence + "At these group sizes not even a measured gap of 100% would be significant."
    at = f"MCDP({audit.findings[0].epsilon:g})"
    return sentence + f"At these group sizes a measured {at} is significant above {percent(pair.detectable)}."


def _other_pairs(
    audit: Audit, found: Sequence[PairSummary], named: PairSummary, place: int
) -> tuple[str, ...]:
    """How many pairs differ, and which of them most."""
    if len(audit.pairs) == 1:
        return ()
    largest = max(found, key=lambda pair: pair.mcdp[place])
    how_many = f"{len(found):,} of {len(audit.pairs):,} pairs"
    sentence = f"A disparity can be distinguished from chance for {how_many}"
    if largest is named:
        return (f"{sentence}, of which this is the largest.",)
    if is_worst(audit, largest, place):
        return (f"{sentence}, both of these among them.",)
    at = f"{percent(largest.mcdp[place])} between {between_text(audit, largest)}"
    return (f"{sentence}; the largest of them is {at}.",)


def _notes(audit: Audit, found: Sequence[PairSummary], place: int) -> tuple[str, ...]:
    """The largest estimate where it is not significant, and the groups too small to judge."""
    notes = []
    largest = audit.worst_pair(audit.findings[place])
    if found and largest not in found:
        why = "rests on too few people to judge" if largest.too_small else "is not significant"
        notes.append(f"The largest gap of all, between {pair_text(largest.groups)}, {why}.")
    small = [group for group in audit.groups if group.too_small]
    if small and len(small) < len(audit.groups):
        notes.append(
            f"Too small to judge, since only a measured gap above {100 * TOO_COARSE:g} points would be "
            f"significant: {_listed(small)}."
        )
    return tuple(notes)


def _listed(groups: Sequence[GroupSummary]) -> str:
    """Groups with their rows, the first few of many."""
    names = [f"{group_text(group.group)} ({group.rows:,})" for group in groups[:_MOST_NAMES]]
    more = len(groups) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def assumptions_of(audit: Audit) -> tuple[str, ...]:
    """What an audit's intervals and p-values take for granted, and over what they hold.

    Examples
    --------
    >>> import localparity as lp
    >>> audit = lp.audit(None, [0.1, 0.9], sensitive_features=["a", "b"], epsilons=[0], n_resamples=0)
    >>> assumptions_of(audit)[0]
    'Rows are assumed to be independent: one row for each person.'
    """
    rows = "Rows are assumed to be independent: one row for each person."
    if audit.counts.clusters is not None:
        rows = "Rows of one cluster may depend on each other; clusters are assumed to be independent."
    copies = copies_of(audit.counts)
    if copies > 1:
        rows = f"{copies_sentence(copies)}; intervals and p-values take them for people, and are too sure."
    scores = "The scores are assumed not to come from a model that was trained on these rows."
    found = [rows, scores]
    if not audit.counts.exchangeable:
        found.append(
            "Intervals and p-values come from the multiplier bootstrap, which holds in large samples; people "
            "whom no row stands for, such as those of whom a design takes hardly any, are unknown to it."
        )
        few = [_group_name(group, label) for group, label in _of_few_rows(audit)]
        if few:
            found.append(
                f"Few rows carry most of the weight of {', '.join(few)}: there the confidence is approximate."
            )
    found += _on_what_scale(audit)
    found.append(over_what(audit))
    found.append("Nothing is adjusted for several models, criteria or looks at the same people.")
    return tuple(found)


def _on_what_scale(audit: Audit) -> list[str]:
    """What an epsilon and a threshold are shares of, where that is not a range that was given."""
    if audit.scale == "rank":
        return [
            "Scores are replaced by their ranks, the share of the people compared at or below them: an "
            "epsilon is a share of people, and a threshold of 0.9 is the score that the top 10% exceed. "
            "Intervals hold on the scale that these ranks make."
        ]
    if audit.scale == "data":
        low, high = audit.score_range
        return [
            f"The score range, {low:g} to {high:g}, is that of these scores, rounded: an epsilon is a share "
            "of it, and of another range for other scores."
        ]
    return []


def over_what(audit: Audit) -> str:
    """Over what the intervals and p-values hold together."""
    p_values = " and p-values" if audit.n_resamples else ""
    many = [(len(audit.pairs), "pairs"), (len(audit.findings), "epsilons")]
    over = " and ".join(f"{number:,} {things}" for number, things in many if number > 1)
    if not over:
        return f"Intervals{p_values} hold for this pair and epsilon."
    if audit.method == "finite_sample":
        one = "at one epsilon" if len(audit.pairs) == 1 else "for one pair, or the worst, at one epsilon"
        return f"Lower ends{p_values} are adjusted for {over}; an upper end holds {one}."
    return f"Intervals{p_values} are adjusted for {over}."


def _of_few_rows(audit: Audit) -> list[tuple[Group, int | None]]:
    """The groups whose sampling error rests on few heavy rows or clusters."""
    found = []
    for label, stratum in strata_of(audit.counts, audit.comparison).items():
        degrees = [atoms.degrees for atoms in stratum.values()]
        if audit.counts.clusters is not None:
            degrees = audit.counts.clusters.among(list(stratum), label).degrees.tolist()
        found += [(group, label) for group, few in zip(stratum, degrees, strict=True) if few < _FEW_ROWS]
    return found


def _group_name(group: Group, label: int | None) -> str:
    return group_text(group) + ("" if label is None else f" with label {label}")


__all__ = ["HigherIs", "Verdict", "assumptions_of", "verdict_of"]


# Six questions about an audit, each answered in words that need no statistics.


SHOWN_EPSILON = 0.05
"""The half-width of the window that a page opens on."""


@dataclass(frozen=True)
class Answer:
    """A question, the answer in a word or two, and the answer in a sentence or two."""

    question: str
    short: str
    text: str


@dataclass(frozen=True, kw_only=True)
class BoundResult:
    """A bound, what was compared with it, between whom it was measured, and whether it holds.

    What is above a bound may not be distinguishable from chance; an estimate that is not says so.
    """

    max_mcdp: float
    decide_by: str
    epsilon: float
    value: float
    within: bool
    between: str
    could_be_chance: bool

    @property
    def compared(self) -> str:
        """What was compared."""
        name = f"MCDP({self.epsilon:g})"
        return name if self.decide_by == "estimate" else f"the {self.decide_by} end of {name}"

    @property
    def sentence(self) -> str:
        """What was compared, and how it came out."""
        relation = "within" if self.within else "above"
        doubt = ", but could be chance" if self.could_be_chance else ""
        value = f"{percent(self.value)} between {self.between}"
        return f"{self.compared} is {value}, {relation} the bound of {percent(self.max_mcdp)}{doubt}"


def bound_result(audit: Audit, max_mcdp: float, decide_by: DecideBy) -> BoundResult:
    """Whether an audit is within a bound, with what was compared."""
    finding = audit.findings[0]
    within = audit.passes(max_mcdp, decide_by=decide_by)
    end = {"estimate": "estimate", "upper": "high", "lower": "low"}[decide_by]
    pair = audit.worst_pair(finding)
    if decide_by != "estimate":
        pair = max(audit.pairs, key=lambda pair: getattr(pair.intervals[0], end))
    clear = within or decide_by != "estimate" or pair.significant_at(0, by_test=audit.tested)
    return BoundResult(
        max_mcdp=max_mcdp,
        decide_by=decide_by,
        epsilon=finding.epsilon,
        value=getattr(finding.interval, end),
        within=within,
        between=between_text(audit, pair),
        could_be_chance=not clear,
    )


def bound_lines(audit: Audit, bound: BoundResult) -> tuple[str, ...]:
    """What was compared with a bound, between whom, where it was measured, and how sure it is.

    Examples
    --------
    >>> import localparity as lp
    >>> audit = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> for line in bound_lines(audit, bound_result(audit, 0.1, "estimate")):
    ...     print(line)
    MCDP(0) is 100.00% between a (2 people) and b (2 people), above the bound of 10.00%, but could be chance.
    With a threshold from 0.4 up to, but not including, 0.6, people in a are at least 100.0 points more likely
    to be at or below it than people in b.
    The 95% interval is 0.00% to 100.00%, the p-value against parity 0.3487.
    """
    finding = audit.finding(bound.epsilon)
    tested = ""
    if finding.test is not None:
        tested = f", the p-value against parity {p_value_at(audit, 0, finding.test.p_value)}"
    return (
        f"{capitalised(bound.sentence)}.",
        finding.window.sentence_for(audit.higher_is),
        f"The {100 * finding.interval.confidence:g}% interval is {interval_text(finding.interval)}{tested}.",
    )


def shown_finding(audit: Audit) -> Finding:
    """The finding whose window is shown first: of the epsilon nearest to 0.05 that windows fit in."""
    fitting = [finding for finding in audit.findings if not finding.vacuous] or audit.findings
    return min(fitting, key=lambda finding: abs(finding.epsilon - SHOWN_EPSILON))


@dataclass(frozen=True)
class Answers:
    """The answers of an audit.

    Attributes
    ----------
    answers : tuple of Answer
        Is there a disparity; how large and where; for whom; how sure; within the bound or not; what now.
    steps : tuple of Step
        What can be done now.
    bound : BoundResult or None
        The bound, where there is one.
    """

    answers: tuple[Answer, ...]
    steps: tuple[Step, ...]
    bound: BoundResult | None

    @classmethod
    def of(cls, audit: Audit, max_mcdp: float | None = None, decide_by: DecideBy = "estimate") -> Answers:
        """Answer the questions.

        Examples
        --------
        >>> import localparity as lp
        >>> census = lp.datasets.make_census(5000, random_state=0)
        >>> audit = lp.audit(
        ...     None, census.score, sensitive_features=census.sensitive_features, random_state=0
        ... )
        >>> for answer in Answers.of(audit, max_mcdp=0.1).answers[::4]:
        ...     print(answer.question, answer.short)
        Is there a disparity? Yes
        Is it within the bound? No
        """
        bound = None if max_mcdp is None else bound_result(audit, max_mcdp, decide_by)
        pair, place, found = named_pair(audit)
        most = None if bound is None else bound.max_mcdp
        steps = next_steps(audit, most, within=bound is not None and bound.within)
        answers = (
            _whether(audit),
            _how_large(audit, pair, bool(found)),
            _for_whom(audit, pair, len(found)),
            _sureness(audit, pair, place),
            _within(bound),
            Answer("What now?", steps[0].text, " ".join(f"{step.text}." for step in steps[1:])),
        )
        return cls(answers, steps, bound)

    def to_list(self) -> list[dict[str, Any]]:
        """The answers as plain dictionaries, the last with the steps."""
        plain = [asdict(answer) for answer in self.answers]
        plain[-1]["steps"] = [asdict(step) for step in self.steps]
        return plain


def _whether(audit: Audit) -> Answer:
    question = "Is there a disparity?"
    if audit.verdict.status == "found" and mostly_missing(audit):
        return Answer(question, "Yes, among people whose group is known", what_could_be(audit) or "")
    if audit.verdict.status == "found":
        return Answer(
            question, "Yes", "The groups' scores differ by more than chance explains with this many people."
        )
    if audit.verdict.status == "not found":
        return Answer(
            question,
            "None found",
            "What differs is no more than chance would show with this many people. A smaller disparity than "
            "this audit can see may still be there.",
        )
    return Answer(question, "Cannot be told", audit.verdict.headline)


def _how_large(audit: Audit, pair: PairSummary, found: bool) -> Answer:
    question = "How large, and where?"
    window = window_of(audit, pair, shown_finding(audit).epsilon)
    if window.gap == 0.0:
        window = pair.window
    text = window.sentence_for(audit.higher_is)
    if window.gap < pair.window.gap:
        text += f" At the worst single threshold the difference is {_points(pair.window.gap)}."
    if not is_worst(audit, pair, 0):
        clearest = "clearest gap" if found else "largest gap between groups that are large enough to judge"
        text = f"This is the {clearest}. {text} {capitalised(mcdp_text(audit, 0))}."
    if not mostly_missing(audit):
        text = " ".join(filter(None, (text, what_could_be(audit))))
    return Answer(question, _points(pair.window.gap), text)


def _points(gap: float) -> str:
    return f"{100.0 * gap:.1f} points"


def _for_whom(audit: Audit, pair: PairSummary, found: int) -> Answer:
    window, whose = pair.window, ""
    if window.lower is not None and window.higher is not None:
        lower = group_text(window.lower)
        outcome = "" if audit.higher_is is None else f", and a higher score is the {audit.higher_is} outcome"
        whose = f"{lower} has the lower scores there{outcome}."
    others = ""
    if len(audit.pairs) > 1:
        many = "pair differs" if found == 1 else "pairs differ"
        others = f" Of {len(audit.pairs):,} pairs compared, {found:,} {many} by more than chance explains."
    return Answer("For whom?", between_text(audit, pair), (whose + others).strip())


def _sureness(audit: Audit, pair: PairSummary, place: int) -> Answer:
    interval = pair.intervals[place]
    at = audit.findings[place].epsilon
    which = "the largest difference between them" + (f" that lasts over {2 * at:g}" if at else "")
    short = f"{100 * interval.low:.1f} to {100 * interval.high:.1f} points"
    sentence = f"With {100 * interval.confidence:g}% confidence, {which} lies in this interval."
    if pair.p_values is None or not audit.tested or audit.findings[place].vacuous:
        return Answer("How sure is that?", short, sentence + " It was not tested.")
    p_value = pair.p_values[place]
    often = share_of_audits(p_value, audit.n_resamples)
    chance = f"If the groups did not differ, chance alone would show as much in {often}"
    return Answer(
        "How sure is that?", short, f"{sentence} {chance} (p-value {p_value_at(audit, place, p_value)})."
    )


def _within(bound: BoundResult | None) -> Answer:
    question = "Is it within the bound?"
    if bound is None:
        return Answer(question, "No bound was set", "Set the most that you accept with --max-mcdp.")
    return Answer(question, "Yes" if bound.within else "No", f"{capitalised(bound.sentence)}.")
