"""The sentences about an audit: what was found, how sure it is, what is assumed and what can be done next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from localparity._text import (
    capitalised,
    cutoffs_text,
    group_text,
    isolated,
    number_text,
    outward_points,
    p_value_text,
    people_named,
    points,
    points_text,
    whole_percent,
)
from localparity._types import Group
from localparity.auditing._explain import LEAST_GROUP
from localparity.auditing._missing import NOTHING_MISSING, mostly_missing
from localparity.auditing._provenance import AuditedFile, target_of
from localparity.counts._comparison import EVERYONE
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.counts._score_counts import copies_of, copies_sentence, strata_of
from localparity.metrics._within import verdict_on, verdict_text, within_bound
from localparity.uncertainty._permutation import least_p_value

if TYPE_CHECKING:
    from localparity.auditing._answer import BoundResult, PairGap, Spot, Status
    from localparity.auditing._audit import Audit
    from localparity.auditing._findings import PairSummary


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
            "Intervals and p-values come from the multiplier bootstrap, which holds in large samples. It "
            "knows nothing about people that no row stands for, such as those that a design hardly samples."
        )
        few = _of_few_rows(audit)
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
        one = "at one epsilon" if len(audit.pairs) == 1 else "for one pair, or for the worst, at one epsilon"
        return f"Lower ends{p_values} allow for {over}. Each upper end holds {one}."
    return f"Intervals{p_values} allow for {over}."


def _of_few_rows(audit: Audit) -> list[str]:
    """The names of the groups whose sampling error rests on few heavy rows or clusters."""
    names: list[str] = []
    for label, stratum in strata_of(audit.counts, audit.comparison).items():
        degrees = [atoms.degrees for atoms in stratum.values()]
        if audit.counts.clusters is not None:
            degrees = audit.counts.clusters.among(list(stratum), label).degrees.tolist()
        small = [group for group, few in zip(stratum, degrees, strict=True) if few < _FEW_ROWS]
        names += [group_text(group) + ("" if label is None else f" with label {label}") for group in small]
    return names


# The sentences of an answer.


@dataclass(frozen=True)
class Words:
    """The sentences about the pair that an answer names."""

    audit: Audit
    pair: PairSummary
    place: int
    spot: Spot
    status: Status
    max_mcdp: float | None = None

    @property
    def column(self) -> str:
        """The column of the groups, or what it is called where it has no name."""
        return " and ".join(column_of(self.audit, "group")) or "group"

    def headline(self) -> str:
        """What was found, in one sentence."""
        if self.status == "disparity":
            return self._difference()
        if self.status == "none found":
            return "No difference beyond chance was found"
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
        names = [_people_of(group) for group in window.groups]
        if first is not None and first.name != group_text(window.groups[0]):
            names.reverse()
        names[0] = capitalised(names[0])
        if first is None or second is None:  # which a test of many windows may find where one shows nothing
            return f"{names[0]} and {names[1]} differ{among}"
        if epsilon == 0.0:
            than = f"{points(window.gap, self.max_mcdp)} more likely than {names[1]}"
            return f"{names[0]} are {than} to score above {self._cutoff()}{among}"
        run = cutoffs_text(window.low, window.high, whole=window.whole)
        least = points_text(window.gap)
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
        found = self.pair.mcdp[self.place]
        size = points(found, self.max_mcdp)
        shares = against(first.share_above, second.share_above, exactly="." in size)
        if self.status == "disparity":
            at = "" if self.audit.findings[self.place].epsilon == 0.0 else f" above {self._cutoff()}"
            return f"{shares}{at}"
        read = round(100.0 * first.share_above, 1) - round(100.0 * second.share_above, 1)
        if "." in shares and "." not in size and math.floor(read + 0.5) != round(100.0 * found):
            size = f"{100.0 * found:.1f} points"  # the difference of the shares as they are read
        gap = f"{size} between {first.name} and {second.name}"
        small = any(pair.too_small for pair in self.audit.pairs) and not self.pair.too_small
        judged = " that can be judged" if small else ""
        return f"Largest gap{judged}: {gap}, {shares} above {self._cutoff()}"

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
            sizes = "any measured gap" if least is None else f"measured gaps up to {points(least)}"
            sentences.append(f"In groups of these sizes, {sizes} could be chance.")
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
        first = self.spot.first
        if self.pair.label is not None or not counts.labelled or cutoff is None or first is None:
            return ()
        sides = [[counts.atoms.get((group, label)) for group in self.pair.groups] for label in (0, 1)]
        limit = max(self.audit.comparison.min_group_size, DISCLOSURE_LIMIT)
        lines = []
        for label, atoms in enumerate(sides):
            shares = [one.share_above(cutoff) for one in atoms if one is not None and one.size >= limit]
            if len(shares) < 2:
                return ()
            if first.name != group_text(self.pair.groups[0]):
                shares.reverse()
            both = " against ".join(map(whole_percent, shares))
            lines.append(f"{label_text(self.audit, label)}: {both} above {self._cutoff()}")
        return tuple(lines)


_ROUNDING = 1e-9


def against(first: float, second: float, *, exactly: bool = False) -> str:
    """Two shares; with a decimal where whole percentages would differ by another number of points.

    Examples
    --------
    >>> against(0.59, 0.35), against(0.594, 0.356)
    ('59% against 35%', '59.4% against 35.6%')
    """
    agree = round(100.0 * first) - round(100.0 * second) == round(100.0 * (first - second))
    decimals = 0 if agree and not exactly else 1
    return f"{100.0 * first:.{decimals}f}% against {100.0 * second:.{decimals}f}%"


def chance(p_value: float, n_resamples: int) -> str:
    """How often chance alone would show as much, were the groups alike.

    Examples
    --------
    >>> chance(1 / 1001, 1000), chance(0.041, 1000), chance(0.003, 1000)
    ('fewer than 1 in 1,000', '41 in 1,000', '3 in 1,000')
    """
    if p_value <= 1.0 / (1 + n_resamples) * (1.0 + _ROUNDING):
        return f"fewer than 1 in {n_resamples:,}"
    of = max(10 ** (1 - math.floor(math.log10(p_value))), 100)
    often = math.ceil(of * p_value - _ROUNDING)
    if of > 100 and often % 10 == 0:
        often, of = often // 10, of // 10
    return f"{often:,} in {of:,}"


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


def _people_of(group: Group) -> str:
    """The people of a group, in a sentence."""
    return "people overall" if group is EVERYONE else people_named(group_text(group))


def subject_of(audit: Audit) -> tuple[str, ...]:
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


def verdict_sentence(
    audit: Audit, bound: BoundResult, pair: PairGap, surest: PairGap | None, *, allowed: bool
) -> str:
    """Whether the bound holds, of which pair, and another pair that shows it or has the clearest gap.

    `allowed` is whether groups may go unassessed.
    """
    limit = capitalised(verdict_text(bound.verdict, f"the bound of {points(bound.max_mcdp)}"))
    people = "people" if audit.counts.clusters is None else "rows"
    between = f"{pair.higher} ({pair.people[0]:,} {people}) and {pair.lower} ({pair.people[1]:,})"
    size = f"{points(pair.gap, bound.max_mcdp)} ({outward_points(pair.low, pair.high, unit=False)})"
    found = f"{between} differ by {size}{among_label(audit, pair.label)}."
    missed = f"Not assessed, which {'is allowed' if allowed else 'fails'}: {'; '.join(bound.not_assessed)}."
    assessed = verdict_on(audit.finding(bound.epsilon).interval, bound.max_mcdp)
    sentences = [f"{limit}: {found}"]
    if bound.could_be_chance:
        sentences.append("That could be chance.")
    if assessed != bound.verdict:  # only those who were not assessed leave it undecided
        sentences = [f"{limit}. {missed} The others are {assessed} it: {found}"]
    elif bound.not_assessed:
        sentences.append(missed)
    elif bound.verdict == "undecided":
        end = "estimate" if bound.decide_by == "estimate" else f"{bound.decide_by} end"
        sentences.append(f"The {end} {'passes' if bound.passes else 'fails'}.")
    if surest is not None:
        size = f"{points(surest.gap)} ({outward_points(surest.low, surest.high, unit=False)})"
        shows = bound.verdict == "above" and within_bound(pair.low, bound.max_mcdp)
        name = "Clearly above it" if shows else "Clearest gap"
        sentences.append(f"{name}: {surest.higher} and {surest.lower}, {size}.")
    return " ".join(sentences)


def caveats_of(audit: Audit) -> str:
    """What is taken for granted, who was left out, and what was done with rows that lack a value."""
    rows = "one row per person" if audit.counts.clusters is None else "independent clusters"
    large = "" if audit.counts.exchangeable else " and large groups"
    parts = [f"Assumes {rows}{large}, and scores not trained on these rows."]
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


# What can be done after an audit: options of the same call, and commands that work on the same files.


_USUAL_BOUND = 0.05
_FEWEST_FEATURES = 2
"""A file with fewer columns next to scores, groups and classes is one of scores, not of people to fit on."""
_ELSEWHERE = "Fit a model within a bound: localparity repair takes a file of features and labels"


@dataclass(frozen=True)
class Step:
    """What can be done, and the option, call or command that does it; "" where there is none."""

    text: str
    command: str


def next_steps(
    audit: Audit, status: str, max_mcdp: float | None, *, within: bool = False
) -> tuple[Step, ...]:
    """Options of the same command, or calls of the audit, then the commands that the finding asks for."""
    if audit.provenance is not None and audit.provenance.call.startswith("localparity "):
        again = [Step("charts", "--report page.html"), Step("", "--json")]
        again += [Step("pass/fail", "--max-mcdp 0.10")] if max_mcdp is None else []
        typed = audit.provenance.call.split()
        again = [step for step in again if step.command.split()[0] not in typed]
    else:
        again = [Step("", 'audit.to_html("page.html")'), Step("", "audit.to_json()")]
        again += [Step("", "audit.passes(0.10)")] if max_mcdp is None else []
    return (*again, *_commands(audit, status, max_mcdp, within))


def _commands(audit: Audit, status: str, max_mcdp: float | None, within: bool) -> tuple[Step, ...]:
    """Commands on the audited files, the most pressing first; arrays have none."""
    most = _USUAL_BOUND if max_mcdp is None else max_mcdp
    if status == "undecided":
        steps = (
            [] if audit.findings[0].too_wide else [Step("See how many people it takes", _plan(audit, most))]
        )
    elif max_mcdp is not None and within:
        fit = Step("Or fit a model with a smaller disparity", _fit(audit, most, "repair", "repaired"))
        return _that_work(_watch(audit, most), fit)
    elif status == "none found" and max_mcdp is None:
        steps = []
    else:
        why = Step("Find out which features carry the gap", _explain(audit))
        steps = [
            why,
            Step(
                "Fit a model and repair its scores to meet a bound", _fit(audit, most, "repair", "repaired")
            ),
            Step("Or train one that is penalised for the disparity", _fit(audit, most, "train", "trained")),
        ]
        if not steps[1].command:
            return (*_that_work(why), Step(_ELSEWHERE, ""), *_that_work(_watch(audit, most)))
    return _that_work(*steps, _watch(audit, most))


def _that_work(*steps: Step) -> tuple[Step, ...]:
    return tuple(step for step in steps if step.command)


def _plan(audit: Audit, most: float) -> str:
    sizes = ",".join(str(group.rows) for group in audit.groups[:20])
    return f"localparity plan --group-sizes {sizes}" + (f" --mcdp {most:g}" if 0.0 < most < 1.0 else "")


def _watch(audit: Audit, most: float) -> Step:
    """Append the files to a monitor, where they have scores."""
    text, file, columns = "Watch new scores as they come in", audit.file, _columns(audit)
    if file is None or "score" not in columns:
        return Step(text, "")
    comparison, missing = audit.comparison, dict(file.missing)
    if missing.get("missing_groups") == "bound":
        missing["missing_groups"] = "drop"
    low, high = file.score_range
    options = {
        "score": columns["score"],
        "group": columns["group"],
        "score_range": None if (low, high) == (0.0, 1.0) else f"{low:.15g},{high:.15g}",
        "label": columns["label"] if comparison.needs_labels else None,
        "compare": None if comparison.compare == "between_groups" else comparison.compare,
        **_question(audit),
        **file.reading,
        **missing,
    }
    return Step(text, _command("monitor append history", file, options, max_mcdp=most))


def _explain(audit: Audit) -> str:
    """A command that explains the gap; "" where the file lacks what that takes."""
    columns, file, missing = _columns(audit), audit.file, audit.missing_rows
    if (
        file is None
        or "score" not in columns
        or not file.features
        or not {"encoding", "sheet"} >= set(file.reading)
    ):
        return ""
    if sum(group.rows >= LEAST_GROUP for group in audit.groups) < 2:
        return ""
    if missing != NOTHING_MISSING or audit.comparison.criterion == "equalized_odds":
        return ""
    low, high = file.score_range
    options = {use: columns.get(use) for use in ("score", "group", "label", "weight", "cluster")}
    options["features"] = ",".join(file.features)
    options["score_range"] = None if (low, high) == (0.0, 1.0) else f"{low:.15g},{high:.15g}"
    return _command("explain", file, {**options, **file.reading, "criterion": _question(audit)["criterion"]})


def _fit(audit: Audit, most: float, command: str, out: str) -> str:
    """A command that fits a model; "" where the file lacks what that takes."""
    columns, file = _columns(audit), audit.file
    target = target_of(columns)
    missing = audit.missing_rows
    if file is None or target is None or missing.groups or missing.labels or missing.weights:
        return ""
    if len(file.features) < _FEWEST_FEATURES or not {"encoding", "sheet"} >= set(file.reading):
        return ""
    unused = [columns[use] for use in ("score", "cluster") if use in columns]
    label = [columns["label"]] if columns.get("label", target) != target else []
    options = {
        "target": target,
        "group": columns["group"],
        "weight": columns.get("weight"),
        "drop": [*unused, *label, *file.others],
        **file.reading,
        **_question(audit),
    }
    return _command(command, file, options, max_mcdp=most, out=out)


def _question(audit: Audit) -> dict[str, Any]:
    criterion = audit.comparison.criterion
    return {
        "criterion": None if criterion == "demographic_parity" else criterion,
        "epsilon": audit.findings[0].epsilon or None,
    }


def _columns(audit: Audit) -> dict[str, Any]:
    return {} if audit.provenance is None else dict(audit.provenance.columns)


def _command(name: str, file: AuditedFile, options: Mapping[str, Any], **last: Any) -> str:
    """A command as a shell takes it, without the options that are None."""
    words = ["localparity", *name.split(), *file.paths]
    for option, value in (dict(options) | last).items():
        flag = "--missing-value" if option == "missing_values" else f"--{option.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not None:
            values = value if isinstance(value, list | tuple) else [value]
            words += [word for one in values for word in (flag, _word(one))]
    return shlex.join(words)


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
