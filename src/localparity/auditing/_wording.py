"""What an audit found, in plain words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from localparity._text import (
    capitalised,
    group_text,
    interval_text,
    isolated,
    p_value_text,
    pair_text,
    percent,
    share_of_audits,
)
from localparity._types import Group
from localparity.auditing._findings import TOO_COARSE, Finding, GroupSummary, PairSummary
from localparity.auditing._missing import mostly_missing, what_could_be
from localparity.auditing._provenance import target_of
from localparity.counts._comparison import EVERYONE
from localparity.counts._score_counts import copies_of, copies_sentence, strata_of, with_everyone
from localparity.metrics import Interval, Window
from localparity.metrics._gap_curve import curve_between
from localparity.metrics._within import within_bound
from localparity.uncertainty._permutation import least_p_value
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
    return [(isolated(group_text(group)), rows[group]) for group in pair.groups]


def p_value_at(audit: Audit, place: int, p_value: float | None) -> str:
    """A p-value at one of an audit's epsilons, or a dash where nothing was tested there."""
    tested = None if audit.findings[place].too_wide else p_value
    return p_value_text(tested, least_p_value(audit.n_resamples))


def verdict_of(audit: Audit) -> Verdict:
    """The verdict on an audit.

    A disparity is found where some pair's adjusted p-value at some epsilon is small enough or its interval
    keeps clear of 0. Of the pairs for which that is so, the one that stands out most from chance is named.
    What people without a group could change is said too, and first where they are most.
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
    too_wide = audit.findings[0].too_wide
    if too_wide:
        epsilon = audit.findings[0].epsilon
        headline = f"Nothing was tested: the scores span no window of epsilon {epsilon:g} in the score range."
    elif not audit.has_test:
        headline = f"Whether there is a disparity was not tested; {largest}."
    elif not judged:
        headline = f"There are too few people to distinguish a disparity from chance; {largest}."
    else:
        headline = f"No disparity can be distinguished from chance at these sizes; {largest}."
    return Verdict(
        "not found" if judged and audit.has_test and not too_wide else "undecided",
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
        found = [pair for pair in audit.pairs if pair.significant_at(place, by_test=audit.has_test)]
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
    if pair.p_values is None or audit.findings[place].too_wide:
        return sentence + "; no test against parity was made."
    adjusted = "adjusted " if len(audit.pairs) * len(audit.findings) > 1 else ""
    p_value = p_value_at(audit, place, pair.p_values[place])
    sentence += f"; the {adjusted}p-value against parity is {p_value}. "
    if pair.intervals[place].low == 0.0 and pair.significant_at(place, by_test=audit.has_test):
        sentence += "The test rejects parity, but not by how much: the interval reaches down to 0. "
    if not audit.has_test:
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
    """What an audit's intervals and p-values take for granted, and over what they hold."""
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


# Six questions about an audit, each answered in words that need no statistics.


SHOWN_EPSILON = 0.05
"""The half-width of the window that a page opens on."""


@dataclass(frozen=True)
class QuestionAnswer:
    """A question, the answer in a word or two, and the answer in a sentence or two."""

    question: str
    short: str
    text: str

    @property
    def sentence(self) -> str:
        """The answer, short and long."""
        return f"{self.short}. {self.text}" if self.text else self.short


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
    word: str

    @property
    def compared(self) -> str:
        """What was compared."""
        name = f"MCDP({self.epsilon:g})"
        return name if self.decide_by == "estimate" else f"the {self.decide_by} end of {name}"


_ENDS = {"estimate": "estimate", "upper": "high", "lower": "low"}


def bound_pair(audit: Audit, decide_by: str) -> PairSummary:
    """The pair whose MCDP, or an end of its interval, is compared with a bound."""
    if decide_by == "estimate":
        return audit.worst_pair(audit.findings[0])
    return max(audit.pairs, key=lambda pair: getattr(pair.intervals[0], _ENDS[decide_by]))


def bound_result(audit: Audit, max_mcdp: float, decide_by: DecideBy) -> BoundResult:
    """Whether an audit is within a bound, with what was compared."""
    finding = audit.findings[0]
    within = audit.passes(max_mcdp, decide_by=decide_by)
    end = _ENDS[decide_by]
    pair = bound_pair(audit, decide_by)
    clear = within or decide_by != "estimate" or pair.significant_at(0, by_test=audit.has_test)
    return BoundResult(
        max_mcdp=max_mcdp,
        decide_by=decide_by,
        epsilon=finding.epsilon,
        value=getattr(finding.interval, end),
        within=within,
        between=between_text(audit, pair),
        could_be_chance=not clear,
        word=_word(finding.interval, max_mcdp),
    )


def _word(interval: Interval, max_mcdp: float) -> str:
    """What is known of the true MCDP and a bound."""
    if within_bound(interval.high, max_mcdp):
        return "within"
    return "undecided" if within_bound(interval.low, max_mcdp) else "above"


def shown_finding(audit: Audit) -> Finding:
    """The finding whose window is shown first: of the epsilon nearest to 0.05 that windows fit in."""
    fitting = [finding for finding in audit.findings if not finding.too_wide] or audit.findings
    return min(fitting, key=lambda finding: abs(finding.epsilon - SHOWN_EPSILON))


@dataclass(frozen=True)
class Answers:
    """The answers of an audit."""

    answers: tuple[QuestionAnswer, ...]
    steps: tuple[Step, ...]
    bound: BoundResult | None

    @classmethod
    def of(cls, audit: Audit, max_mcdp: float | None = None, decide_by: DecideBy = "estimate") -> Answers:
        """Answer the questions."""
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
            QuestionAnswer("What now?", steps[0].text, " ".join(f"{step.text}." for step in steps[1:])),
        )
        return cls(answers, steps, bound)

    def to_list(self) -> list[dict[str, Any]]:
        """The answers as plain dictionaries, the last with the steps."""
        plain = [asdict(answer) for answer in self.answers]
        plain[-1]["steps"] = [asdict(step) for step in self.steps]
        return plain


def _whether(audit: Audit) -> QuestionAnswer:
    question = "Is there a disparity?"
    if audit.verdict.status == "found" and mostly_missing(audit):
        return QuestionAnswer(question, "Yes, among people whose group is known", what_could_be(audit) or "")
    if audit.verdict.status == "found":
        return QuestionAnswer(
            question, "Yes", "The groups' scores differ by more than chance explains with this many people."
        )
    if audit.verdict.status == "not found":
        return QuestionAnswer(
            question,
            "None found",
            "What differs is no more than chance would show with this many people. A smaller disparity than "
            "this audit can see may still be there.",
        )
    return QuestionAnswer(question, "Cannot be told", audit.verdict.headline)


def _how_large(audit: Audit, pair: PairSummary, found: bool) -> QuestionAnswer:
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
    return QuestionAnswer(question, _points(pair.window.gap), text)


def _points(gap: float) -> str:
    return f"{100.0 * gap:.1f} points"


def _for_whom(audit: Audit, pair: PairSummary, found: int) -> QuestionAnswer:
    window, whose = pair.window, ""
    if window.lower is not None and window.higher is not None:
        lower = group_text(window.lower)
        outcome = "" if audit.higher_is is None else f", and a higher score is the {audit.higher_is} outcome"
        whose = f"{lower} has the lower scores there{outcome}."
    others = ""
    if len(audit.pairs) > 1:
        many = "pair differs" if found == 1 else "pairs differ"
        others = f" Of {len(audit.pairs):,} pairs compared, {found:,} {many} by more than chance explains."
    return QuestionAnswer("For whom?", between_text(audit, pair), (whose + others).strip())


def _sureness(audit: Audit, pair: PairSummary, place: int) -> QuestionAnswer:
    interval = pair.intervals[place]
    at = audit.findings[place].epsilon
    which = "the largest difference between them" + (f" that lasts over {2 * at:g}" if at else "")
    short = f"{100 * interval.low:.1f} to {100 * interval.high:.1f} points"
    sentence = f"With {100 * interval.confidence:g}% confidence, {which} lies in this interval."
    if pair.p_values is None or not audit.has_test or audit.findings[place].too_wide:
        return QuestionAnswer("How sure is that?", short, sentence + " It was not tested.")
    p_value = pair.p_values[place]
    often = share_of_audits(p_value, audit.n_resamples)
    chance = f"If the groups did not differ, chance alone would show as much in {often}"
    return QuestionAnswer(
        "How sure is that?", short, f"{sentence} {chance} (p-value {p_value_at(audit, place, p_value)})."
    )


def _within(bound: BoundResult | None) -> QuestionAnswer:
    question = "Is it within the bound?"
    if bound is None:
        return QuestionAnswer(question, "No bound was set", "Set the most that you accept with --max-mcdp.")
    return QuestionAnswer(question, "Yes" if bound.within else "No", "")


# What can be done after an audit: commands that work on the same file, with what the audit was told.


_USUAL_BOUND = 0.05
_FEWEST_FEATURES = 2
"""A file with fewer columns beside scores, groups and classes is one of scores, not of people to fit on."""
_ELSEWHERE = "Fit a model within the bound, with localparity repair, where its features and classes are"


@dataclass(frozen=True)
class Step:
    """What can be done, and the command that does it; "" where no command can."""

    text: str
    command: str


def next_steps(audit: Audit, max_mcdp: float | None, *, within: bool) -> tuple[Step, ...]:
    """What the finding calls for, the most pressing first."""
    most = _USUAL_BOUND if max_mcdp is None else max_mcdp
    watch = Step("Watch the scores as new people are scored", _watch(audit, most))
    status = audit.verdict.status
    if status == "undecided":
        return (Step("Find out how many people it takes", _plan(audit, most)), *_that_work(watch))
    if status == "not found" and (max_mcdp is None or within):
        return (watch,)
    repair = _fit(audit, most, "repair", "repaired")
    if max_mcdp is not None and within:
        return (watch, *_that_work(Step("Or fit a model with a smaller disparity", repair)))
    if not repair:
        return (Step(_ELSEWHERE, ""), *_that_work(watch))
    train = Step("Or train one with a penalty on the disparity", _fit(audit, most, "train", "trained"))
    return (Step("Fit a model whose scores are repaired to a bound", repair), *_that_work(train, watch))


def _that_work(*steps: Step) -> tuple[Step, ...]:
    return tuple(step for step in steps if step.command)


def _plan(audit: Audit, most: float) -> str:
    sizes = ",".join(str(group.rows) for group in audit.groups[:20])
    return f"localparity plan --group-sizes {sizes}" + (f" --mcdp {most:g}" if 0.0 < most < 1.0 else "")


def _watch(audit: Audit, most: float) -> str:
    """The command that appends the file to a monitor; "" where a file has no scores."""
    columns, file = _columns(audit), audit.file
    if file is not None and "score" not in columns:
        return ""
    comparison = audit.comparison
    options = {
        "score": columns.get("score", "SCORE"),
        "group": columns.get("group", ["GROUP"]),
        "score_range": _range_text(audit),
        "label": columns.get("label", "LABEL") if comparison.needs_labels else None,
        "criterion": None if comparison.criterion == "demographic_parity" else comparison.criterion,
        "compare": None if comparison.compare == "between_groups" else comparison.compare,
        "epsilon": audit.findings[0].epsilon or None,
    }
    if file is not None:
        missing = dict(file.missing)
        if missing.get("missing_groups") == "bound":
            missing["missing_groups"] = "drop"
        options |= {**file.reading, **missing}
    return _command("monitor append history", _files(audit), options, max_mcdp=most)


def _fit(audit: Audit, most: float, command: str, out: str) -> str:
    """A command that fits a model; "" where the file lacks what that takes."""
    columns, file = _columns(audit), audit.file
    target = target_of(columns)
    options: dict[str, Any] = {"target": target or "TARGET", "group": columns.get("group", ["GROUP"])}
    if file is not None:
        lacking = audit.missing_rows.groups or audit.missing_rows.labels or audit.missing_rows.weights
        if (
            target is None
            or lacking
            or len(file.features) < _FEWEST_FEATURES
            or not {"encoding", "sheet"} >= set(file.reading)
        ):
            return ""
        unused = [columns[use] for use in ("score", "cluster") if use in columns]
        label = [columns["label"]] if columns.get("label", target) != target else []
        options |= {"weight": columns.get("weight"), "drop": [*unused, *label, *file.others], **file.reading}
    criterion = audit.comparison.criterion
    options["criterion"] = None if criterion == "demographic_parity" else criterion
    options["epsilon"] = audit.findings[0].epsilon or None
    return _command(command, _files(audit), options, max_mcdp=most, out=out)


def _columns(audit: Audit) -> dict[str, Any]:
    return {} if audit.provenance is None else dict(audit.provenance.columns)


def _files(audit: Audit) -> list[str]:
    if audit.file is not None:
        return list(audit.file.paths)
    named = [] if audit.provenance is None else [file.name for file in audit.provenance.files]
    return named if len(named) == 1 else ["FILE"]


def _range_text(audit: Audit) -> str | None:
    """The score range as a command takes it, where it is not 0 to 1."""
    if audit.file is None and audit.scale == "rank":
        return "LOW,HIGH"
    low, high = audit.score_range if audit.file is None else audit.file.score_range
    return None if (low, high) == (0.0, 1.0) else f"{low:.15g},{high:.15g}"


def _command(name: str, files: list[str], options: Mapping[str, Any], **last: Any) -> str:
    """A command as a shell takes it, without the options that are None."""
    words = ["localparity", *name.split(), *files]
    for option, value in (dict(options) | last).items():
        flag = "--missing-value" if option == "missing_values" else f"--{option.replace('_', '-')}"
        if value is True:
            words.append(flag)
        for one in _values(value):
            words += [flag, f"{one:g}" if isinstance(one, float) else str(one)]
    return shlex.join(words)


def _values(value: Any) -> list[Any]:
    """One value or several; none where there is no value, or only a flag."""
    if value is None or isinstance(value, bool):
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
