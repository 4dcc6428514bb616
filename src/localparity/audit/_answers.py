"""Six questions about an audit, each answered in words that need no statistics."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from localparity.audit._findings import Finding, PairSummary
from localparity.audit._steps import Step, next_steps
from localparity.audit._wording import interval_text, named_pair, p_value_text, pair_name, window_of
from localparity.counts._comparison import group_text
from localparity.metrics._window import percent

if TYPE_CHECKING:
    from localparity.audit._audit import Audit, DecideBy

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
    """A bound, what was compared with it, and whether it holds."""

    max_mcdp: float
    decide_by: str
    epsilon: float
    value: float
    within: bool

    @property
    def compared(self) -> str:
        """What was compared."""
        name = f"MCDP({self.epsilon:g})"
        return name if self.decide_by == "estimate" else f"the {self.decide_by} end of {name}"

    @property
    def sentence(self) -> str:
        """What was compared, and how it came out."""
        relation = "within" if self.within else "above"
        return f"{self.compared} is {percent(self.value)}, {relation} the bound of {percent(self.max_mcdp)}"


def bound_result(audit: Audit, max_mcdp: float, decide_by: DecideBy) -> BoundResult:
    """Whether an audit is within a bound, with what was compared."""
    finding = audit.findings[0]
    within = audit.passes(max_mcdp, decide_by=decide_by)
    value = {"estimate": finding.mcdp, "upper": finding.interval.high, "lower": finding.interval.low}
    return BoundResult(
        max_mcdp=max_mcdp,
        decide_by=decide_by,
        epsilon=finding.epsilon,
        value=value[decide_by],
        within=within,
    )


def bound_lines(audit: Audit, bound: BoundResult) -> tuple[str, ...]:
    """What was compared with a bound, where it was measured, between whom, and how sure it is.

    Examples
    --------
    >>> import localparity as lp
    >>> audit = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> for line in bound_lines(audit, bound_result(audit, 0.1, "estimate")):
    ...     print(line)
    MCDP(0) is 100.00%, above the bound of 10.00%.
    With a threshold from 0.4 up to, but not including, 0.6, people in a are at least 100.0 points more likely
    to be at or below it than people in b.
    The 95% interval is 0.00% to 100.00%, the p-value against parity 0.3487.
    Compared: a (2 rows), b (2 rows).
    """
    finding = audit.finding(bound.epsilon)
    groups = {group.group: group.rows for group in audit.groups if group.label == finding.window.label}
    pair = [group for group in finding.window.groups if group in groups]
    rows = ", ".join(f"{group_text(group)} ({groups[group]:,} rows)" for group in pair)
    test = finding.test
    tested = "" if test is None else f", the p-value against parity {p_value_text(test.p_value)}"
    return (
        f"{bound.sentence[0].upper()}{bound.sentence[1:]}.",
        finding.window.sentence_for(audit.higher_is),
        f"The {100 * finding.interval.confidence:g}% interval is {interval_text(finding.interval)}{tested}.",
        f"Compared: {rows}.",
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
            _how_large(audit, pair),
            _for_whom(audit, pair, len(found)),
            _how_sure(audit, pair, place),
            _within(audit, bound),
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


def _how_large(audit: Audit, pair: PairSummary) -> Answer:
    question = "How large, and where?"
    window = window_of(audit, pair, shown_finding(audit).epsilon)
    if window.gap == 0.0:
        window = pair.window
    single = ""
    if window.gap < pair.window.gap:
        single = f" At the worst single threshold the difference is {_points(pair.window.gap)}."
    return Answer(question, _points(pair.window.gap), window.sentence_for(audit.higher_is) + single)


def _points(gap: float) -> str:
    return f"{100.0 * gap:.1f} points"


def _for_whom(audit: Audit, pair: PairSummary, found: int) -> Answer:
    first, second = (group_text(group) for group in pair.groups)
    among = "" if pair.label is None else f", among people with label {pair.label}"
    window, whose = pair.window, ""
    if window.lower is not None and window.higher is not None:
        lower = group_text(window.lower)
        outcome = "" if audit.higher_is is None else f", and a higher score is the {audit.higher_is} outcome"
        whose = f"{lower} has the lower scores there{outcome}."
    others = ""
    if len(audit.pairs) > 1:
        many = "pair differs" if found == 1 else "pairs differ"
        others = f" Of {len(audit.pairs):,} pairs compared, {found:,} {many} by more than chance explains."
    short = f"{first} compared with {second}"
    return Answer("For whom?", short + among, (whose + others).strip())


def _how_sure(audit: Audit, pair: PairSummary, place: int) -> Answer:
    interval = pair.intervals[place]
    at = audit.findings[place].epsilon
    which = "the largest difference" if at == 0.0 else f"the largest difference that lasts over {2 * at:g}"
    short = f"{100 * interval.low:.1f} to {100 * interval.high:.1f} points"
    sentence = f"With {100 * interval.confidence:g}% confidence, {which} lies in this interval."
    if pair.p_values is None or not audit.tested:
        return Answer("How sure is that?", short, sentence + " It was not tested.")
    p_value = pair.p_values[place]
    chance = f" If the groups did not differ, chance alone would show as much in {percent(p_value)} of audits"
    text = f"{sentence}{chance} (p-value {p_value_text(p_value)})."
    return Answer("How sure is that?", short, text)


def _within(audit: Audit, bound: BoundResult | None) -> Answer:
    question = "Is it within the bound?"
    if bound is None:
        return Answer(question, "No bound was set", "Set the most that you accept with --max-mcdp.")
    sentence = bound.sentence[0].upper() + bound.sentence[1:] + "."
    worst = audit.worst_pair(audit.findings[0])
    if worst != named_pair(audit)[0]:
        sentence += f" That is the largest of all pairs, {pair_name(worst)}."
    return Answer(question, "Yes" if bound.within else "No", sentence)
