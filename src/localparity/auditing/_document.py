"""The audits of one model or several as one document, from which every form of it is written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from localparity._text import capitalised, group_text, percent, points, round_inward
from localparity._validation import InputError, as_count
from localparity._version import __version__
from localparity.auditing._answer import Answer, DecideBy, NotAssessed, answer_of
from localparity.auditing._missing import bounds_sentences, breakdown_of
from localparity.auditing._tables import (
    Section,
    findings_table,
    groups_table,
    models_table,
    pairs_table,
    scoring_facts,
    scoring_tables,
    shares_table,
    strata_table,
)
from localparity.auditing._wording import COMPARE_WORDS, CRITERION_WORDS
from localparity.counts import ScoreCounts
from localparity.counts._disclosure import DISCLOSURE_LIMIT, check_disclosure, shown_counts
from localparity.counts._score_counts import strata_of
from localparity.metrics import ScoringRates
from localparity.uncertainty import ImpactRatioCurve, SafeCutoffs

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit
    from localparity.auditing._explain import Explanation
    from localparity.auditing._paired_models import PairedModels
    from localparity.auditing._policy import PolicyFile


# What an audit says of selection ratios: which cutoffs keep them large enough, and where they are lowest.


MOST_LISTED = 600
"""No form of a document lists more rows of pairs than this."""
MIN_RATIO = 0.8
"""The four-fifths rule: the ratio that is drawn where no other is asked for."""
_MOST_NUMBERS = 20_000_000
_MOST_PEOPLE = 0.75
FEW_CUTOFFS = 10
"""Fewer cutoffs than this, of more, are so few that a curve through them would say what is not known."""
_FEW_TO_CHOOSE_FROM = 50


@dataclass(frozen=True)
class RatioResult:
    """The ratios of an audit at so few cutoffs that they may be handed on, and what follows from them."""

    curve: ImpactRatioCurve
    safe: SafeCutoffs
    min_group_size: int
    cutoffs: int

    @classmethod
    def of(
        cls, audit: Audit, min_ratio: float, min_group_size: int, cutoff: float | None = None
    ) -> RatioResult:
        """The ratios of an audit; at the cutoff of its answer, if they may be shown there."""
        every = audit.impact_ratios()
        curve = every.disclosed(min_group_size, cutoff=cutoff)
        return cls(curve, curve.safe_cutoffs(min_ratio), min_group_size, every.cutoffs.size)

    @property
    def _least_selected(self) -> float:
        """The lowest rate of any group at any safe cutoff; 0 where none is safe."""
        cutoffs = self.curve.cutoffs
        ranges = self.safe.by_estimate if self.safe.by_band is None else self.safe.by_band
        inside = [(cutoffs >= run.low) & ((cutoffs < run.high) | run.up_to_top) for run in ranges]
        return float(self.curve.rates[:, np.any(inside, axis=0)].min(initial=1.0)) if inside else 0.0

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is safe, where the ratio is lowest, and what that rests on."""
        found = [self.safe.sentence, self.safe.worst_sentence]
        best = self.safe.best
        if best is not None and best.accuracy is not None and best.best_cutoff is not None:
            found.insert(
                1,
                f"The most accurate of them, {round_inward(best.best_cutoff, best.high)[0]}, gets "
                f"{percent(best.accuracy)} of the labels right.",
            )
        if self._least_selected >= _MOST_PEOPLE:
            share = f"{math.floor(100.0 * self._least_selected)}%"
            found.insert(-1, f"These cutoffs select at least {share} of every group.")
        selected = "above" if self.curve.higher_is == "better" else "at or below"
        over = "the group with the highest rate" if self.curve.reference is None else "the reference group"
        how = f"People {selected} a cutoff are selected; a ratio is a group's rate over that of {over}."
        if self.curve.confidence is None:
            sure = "Rows with weights or clusters have no intervals of ratios: these numbers are estimates."
        else:
            sure = "Intervals of ratios hold for all groups and cutoffs together, if rows are independent."
        none_safe = not (self.safe.by_estimate if self.safe.by_band is None else self.safe.by_band)
        computed = self.curve.cutoffs.size
        if computed < (self.cutoffs if none_safe else min(_FEW_TO_CHOOSE_FROM, self.cutoffs)):
            found.append(
                f"Ratios are computed at only {computed:,} of {self.cutoffs:,} cutoffs, so that each step "
                f"of every group has at least {self.min_group_size} people. Without its small groups, an "
                "audit has more."
            )
        return (*found, f"{how} {sure}")

    def to_dict(self) -> dict[str, Any]:
        """The ratios as plain dictionaries and lists."""
        curve = self.curve.to_dict(min_group_size=self.min_group_size)
        return {"sentences": list(self.sentences), "safe_cutoffs": self.safe.to_dict(), **curve}


FORMAT, FORMAT_VERSION = "localparity-audit", 5


def plain_audit(audit: Audit) -> dict[str, Any]:
    """Everything that an audit says, as plain dictionaries and lists."""
    bare = replace(audit, counts=ScoreCounts({}), pairs=(), unknown_groups=None, file=None)
    found: dict[str, Any] = asdict(bare)
    del found["counts"], found["library"], found["file"]
    found = {**found.pop("comparison"), **found}
    for finding, plain in zip(audit.findings, found["findings"], strict=True):
        plain["window"]["sentence"] = finding.window.sentence_for(audit.higher_is)
    # A page of pairs is written field by field: there may be half a million.
    found["pairs"] = [
        {
            **vars(pair),
            "intervals": [{"low": each.low, "high": each.high} for each in pair.intervals],
            "window": vars(pair.window),
            "too_small": pair.too_small,
        }
        for pair in audit.pairs
    ]
    if audit.unknown_groups is not None:
        found["unknown_groups"] = audit.unknown_groups.to_dict()
    told = {"answer": audit.answer.to_dict(), "assumptions": list(audit.assumptions)}
    return found | {"rows": audit.rows, "confidence": audit.confidence} | told


def pair_records(audit: Audit) -> list[dict[str, Any]]:
    """All pairs at all epsilons, a row for each."""
    return [
        {
            "group_a": pair.groups[0],
            "group_b": pair.groups[1],
            "label": pair.label,
            "epsilon": finding.epsilon,
            "mcdp": pair.mcdp[i],
            "low": pair.intervals[i].low,
            "high": pair.intervals[i].high,
            "p_value": None if pair.p_values is None else pair.p_values[i],
            "too_small": pair.too_small,
            "abcc": pair.abcc,
            "delta_dp": pair.delta_dp,
        }
        for pair in audit.pairs
        for i, finding in enumerate(audit.findings)
    ]


# What was audited: the lines that head every form of an audit.


_MOST_FILES = 20
_MOST_GROUPS = 6


def header_rows(audit: Audit) -> list[tuple[str, str]]:
    """The files, rows, groups, time, call and versions, each under its name."""
    found = audit.provenance
    files = () if found is None else found.files
    rows = [("File" if len(files) == 1 else f"File {i}", file.name) for i, file in enumerate(files, 1)]
    names = list(dict.fromkeys(group_text(group.group) for group in audit.groups))
    more = f" and {len(names) - _MOST_GROUPS:,} more" if len(names) > _MOST_GROUPS else ""
    rows = rows[:_MOST_FILES]
    rows += [
        ("Rows compared", f"{audit.rows:,}"),
        ("Groups", f"{len(names):,}: {', '.join(names[:_MOST_GROUPS])}{more}"),
        ("People compared", CRITERION_WORDS[audit.comparison.criterion]),
        ("Pairs compared", COMPARE_WORDS[audit.comparison.compare]),
    ]
    left_out = [f"{left}." for left in audit.left_out] + list(audit.missing_rows.sentences)
    if left_out:
        rows.append(("Left out", " ".join(left_out)))
    if found is not None:
        columns = [(use, [name] if isinstance(name, str) else name) for use, name in found.columns.items()]
        rows.append(("Columns", "; ".join(f"{use} {', '.join(names)}" for use, names in columns)))
        rows += [("Date", found.date), ("Call", found.call)]
        rows += [
            ("sha256" if len(files) == 1 else f"sha256 of file {i}", file.sha256 or "unknown")
            for i, file in enumerate(files[:_MOST_FILES], 1)
        ]
    seed = None if found is None else found.seed
    version = __version__ if found is None else found.version
    return [
        *rows,
        ("Resamples", f"{audit.n_resamples:,}" + ("" if seed is None else f", seed {seed}")),
        ("Version", f"localparity {version}" + ("" if found is None else f", Python {found.python}")),
    ]


class DocumentKeywords(TypedDict, total=False):
    """Fields of a `Document`, for functions that take them as keyword arguments."""

    title: str
    paired: PairedModels | None
    max_mcdp: float | None
    decide_by: DecideBy
    required_groups: Sequence[str]
    not_assessed: NotAssessed
    min_group_size: int
    explanation: Explanation | None


@dataclass(frozen=True, kw_only=True)
class Document:
    """What is known of some models, by their names, whatever form it takes.

    `decide_by`, `required_groups` and `not_assessed` are as in `Audit.passes`; no group rests on fewer people
    than `min_group_size`; a `min_ratio` asks for the ratios of selection rates; an `explanation` says what
    carries the gap.
    """

    audits: Mapping[str, Audit]
    title: str = "Local disparity audit"
    paired: PairedModels | None = None
    max_mcdp: float | None = None
    decide_by: DecideBy = "estimate"
    required_groups: Sequence[str] = ()
    not_assessed: NotAssessed = "fail"
    min_group_size: int = DISCLOSURE_LIMIT
    min_ratio: float | None = None
    explanation: Explanation | None = None
    scoring: Mapping[str, ScoringRates] = field(default_factory=dict)
    selection: Mapping[str, ScoringRates] = field(default_factory=dict)
    policy: PolicyFile | None = None

    def __post_init__(self) -> None:
        if not self.audits:
            raise InputError("must have at least one model, got none", "audits")
        own = (audit.comparison.min_group_size for audit in self.audits.values())
        limit = max(as_count(self.min_group_size, "min_group_size"), *own)
        object.__setattr__(self, "min_group_size", limit)

    @property
    def first(self) -> Audit:
        """The first model's audit."""
        return next(iter(self.audits.values()))

    def answer(self, name: str) -> Answer:
        """What a model's audit found, with the verdict on the bound where there is one."""
        return self._answer_of[name]

    @cached_property
    def _answer_of(self) -> dict[str, Answer]:
        return {
            name: answer_of(
                audit,
                self.max_mcdp,
                self.decide_by,
                required_groups=self.required_groups,
                not_assessed=self.not_assessed,
            )
            for name, audit in self.audits.items()
        }

    @cached_property
    def short_names(self) -> dict[str, str]:
        """The models' names without their folders, where these tell them apart."""
        short = {name: PurePath(name).name or name for name in self.audits}
        return short if len(set(short.values())) == len(short) else {name: name for name in short}

    @property
    def differs_least(self) -> str:
        """The model with the smallest MCDP."""
        return min(self._answer_of, key=lambda name: self._answer_of[name].largest.gap)

    @property
    def models_headline(self) -> str:
        """Which of several models differs least, and whether that is within the bound."""
        answers, name = self._answer_of, self.differs_least
        least = points(answers[name].largest.gap, self.max_mcdp)
        bound, headline = answers[name].bound, f"{self.short_names[name]} differs least: {least}"
        if bound is None:
            return headline
        limit = f"the bound of {points(bound.max_mcdp)}"
        verdicts = [one.bound.verdict for one in answers.values() if one.bound is not None]
        if bound.verdict == "above":
            return f"{headline}, still above {limit}"
        unknown = f", {verdicts.count('undecided'):,} undecided" if "undecided" in verdicts else ""
        return f"{headline}; {verdicts.count('within'):,} of {len(answers):,} within {limit}{unknown}"

    def ratios(self, name: str) -> RatioResult | None:
        """The selection ratios of a model, where they are asked for."""
        return self._ratios.get(name)

    @cached_property
    def _ratios(self) -> dict[str, RatioResult]:
        least, limit = self.min_ratio, self.min_group_size
        if least is None:
            return {}
        return {
            name: RatioResult.of(audit, least, limit, self.answer(name).cutoff)
            for name, audit in self.audits.items()
        }

    def shown_counts(self, name: str) -> ScoreCounts:
        """The people of a model in steps; nothing in the document parts these people otherwise."""
        return self._shown_counts[name]

    @cached_property
    def _shown_counts(self) -> dict[str, ScoreCounts]:
        shown = {}
        for name, audit in self.audits.items():
            ratios, cutoff = self.drawn_ratios(name), self.answer(name).cutoff
            cutoffs = [] if ratios is None else ratios.curve.cutoffs.tolist()
            cutoffs += [] if cutoff is None else [cutoff]
            shown[name] = shown_counts(audit.counts, audit.comparison, self.min_group_size, cutoffs)
        return shown

    def drawn_ratios(self, name: str) -> RatioResult | None:
        """The selection ratios that a page draws of a model, also where they are not asked for.

        There are none where two labels are compared, which have no single curve, and for too many scores.
        """
        return self._drawn_ratios[name]

    @cached_property
    def _drawn_ratios(self) -> dict[str, RatioResult | None]:
        drawn: dict[str, RatioResult | None] = {}
        for name, audit in self.audits.items():
            stratum, *others = strata_of(audit.counts, audit.comparison).values()
            numbers = len(stratum) * sum(atoms.scores.size for atoms in stratum.values())
            drawn[name] = self.ratios(name)
            if drawn[name] is None and not others and numbers <= _MOST_NUMBERS:
                with suppress(InputError):  # no cutoff may be shown
                    cutoff = self.answer(name).cutoff
                    drawn[name] = RatioResult.of(audit, MIN_RATIO, self.min_group_size, cutoff)
        return drawn

    def sections(self, *names: str) -> tuple[Section, ...]:
        """Everything that the document says, in the one order of all its forms; or the sections of names."""
        return tuple(section for section in self._sections if not names or section.name in names)

    @cached_property
    def _sections(self) -> tuple[Section, ...]:
        first = [section for name in self.audits for section in self._first_sections(name)]
        last = [section for name in self.audits for section in self._last_sections(name)]
        return (*first, *self._shared_sections(), *last)

    def _first_sections(self, name: str) -> Iterator[Section]:
        """What is said of a model before all numbers."""
        audit, answer = self.audits[name], self.answer(name)
        steps = tuple((step.text, step.command) for step in answer.next_steps)
        shares = (shares_table(answer),)
        yield Section("answer", answer.headline, answer.sentences, steps, shares, model=name)
        windows = tuple(
            f"epsilon {finding.epsilon:g}: {finding.window.sentence_for(audit.higher_is)}"
            for finding in audit.findings
        )
        yield Section("windows", "Where the gap is largest", windows, model=name)

    def _shared_sections(self) -> Iterator[Section]:
        """The numbers of all models."""
        audits, paired = self.audits, self.paired
        if len(audits) > 1:
            table = models_table(audits)
            yield Section("models", table.caption, tables=(table,))
        if paired is not None:
            sentences = tuple(paired.sentence(name) for name in paired.found)
            yield Section("paired", "On the same people", sentences, (("Same people", paired.promise),))
        if self.explanation is not None:
            why = self.explanation
            gaps = tuple(gap.sentence for gap in (*why.features, *why.sets))
            yield Section("explained", "What carries the gap", (*why.sentences, *gaps, *why.notes))
        yield Section("findings", "MCDP", tables=(findings_table(audits),))
        epsilons = sum(len(audit.findings) for audit in audits.values())
        pairs = pairs_table(audits, max(1, MOST_LISTED // epsilons))
        yield Section("pairs", "Every pair of groups", tables=(pairs,))
        yield Section("groups", "Groups", tables=(groups_table(audits),))

    def _last_sections(self, name: str) -> Iterator[Section]:
        """What was left out of a model's audit, what else was asked for, and what it rests on."""
        audit, ratios = self.audits[name], self.ratios(name)
        breakdown, within = breakdown_of(audit, self.max_mcdp), audit.within_strata
        left_out = (f"{', '.join(map(str, audit.left_out))}.",) if audit.left_out else ()
        yield Section("left_out", "Left out as too small", left_out, model=name)
        yield Section("missing", "Missing values", audit.missing_rows.sentences, model=name)
        bounds = (*bounds_sentences(audit), *(() if breakdown is None else breakdown.sentences))
        yield Section("unknown_groups", "Unknown groups", bounds, model=name)
        sentences = () if within is None else tuple(within.sentences)
        tables = () if within is None else (strata_table(within, MOST_LISTED),)
        yield Section("strata", "Within strata", sentences, tables=tables, model=name)
        yield Section("ratios", "Selection ratios", () if ratios is None else ratios.sentences, model=name)
        date = None if audit.provenance is None else audit.provenance.date[:10]
        for scoring in filter(None, (self.scoring.get(name), self.selection.get(name))):
            facts, heading = tuple(scoring_facts(scoring, date)), f"{capitalised(scoring.name)}s"
            rates = tuple(scoring_tables(scoring))
            yield Section("scoring", heading, scoring.notes, facts, rates, model=name)
        yield Section("assumptions", "What is assumed", audit.assumptions, model=name)
        yield Section("audited", "What was audited", facts=tuple(header_rows(audit)), model=name)

    def check_sizes(self) -> None:
        """Raise an error where a group has too few people for what leaves the machine."""
        for audit in self.audits.values():
            check_disclosure(audit.counts, audit.comparison, self.min_group_size)

    def to_dict(self) -> dict[str, Any]:
        """The document as plain dictionaries and lists; docs/reference/audit.schema.json describes it."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "localparity": __version__,
            "title": self.title,
            "min_group_size": self.min_group_size,
            "audits": [self._audit(name) for name in self.audits],
            **({} if self.explanation is None else {"explanation": self.explanation.to_dict()}),
        }

    def to_json(self) -> str:
        """The document as JSON; groups that JSON cannot represent become text."""
        return json.dumps(self.to_dict(), indent=2, default=str, ensure_ascii=False)

    def _audit(self, name: str) -> dict[str, Any]:
        audit, paired, ratios = self.audits[name], self.paired, self.ratios(name)
        answer, breakdown = self.answer(name), breakdown_of(audit, self.max_mcdp)
        return {
            "name": name,
            **audit.to_dict(min_group_size=self.min_group_size),
            "answer": answer.to_dict(),
            "bound": None if answer.bound is None else asdict(answer.bound),
            "breakdown": None if breakdown is None else asdict(breakdown),
            "same_people": paired.to_dict(name) if paired is not None and name in paired.found else None,
            "impact_ratios": None if ratios is None else ratios.to_dict(),
            "scoring_rates": self.scoring[name].to_dict() if name in self.scoring else None,
            "selection_rates": self.selection[name].to_dict() if name in self.selection else None,
        }
