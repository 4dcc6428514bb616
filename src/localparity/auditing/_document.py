"""The audits of one model or several as one document, from which every form of it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from localparity._types import Criterion
from localparity._validation import InputError
from localparity._version import __version__
from localparity.auditing._missing import breakdown_of
from localparity.auditing._wording import Answers
from localparity.counts import ScoreCounts
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.metrics import ScoringRates
from localparity.metrics._window import number_text, percent
from localparity.uncertainty import ImpactRatioCurve, SafeCutoffs

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit, DecideBy
    from localparity.auditing._paired_models import PairedModels


# What an audit says of selection ratios: which cutoffs keep them large enough, and where they are lowest.


FEW_CUTOFFS = 10
"""Fewer cutoffs than this, of more, are so few that a curve through them would say what is not known."""


@dataclass(frozen=True)
class RatioResult:
    """The ratios of an audit at so few cutoffs that they may be handed on, and what follows from them.

    Attributes
    ----------
    curve : ImpactRatioCurve
        The ratios; every step rests on enough people.
    safe : SafeCutoffs
        The cutoffs that keep every ratio large enough, and the lowest ratio.
    disclosure_limit : int
        The fewest people of a step.
    cutoffs : int
        How many cutoffs there are, shown or not.
    """

    curve: ImpactRatioCurve
    safe: SafeCutoffs
    disclosure_limit: int
    cutoffs: int

    @classmethod
    def of(cls, audit: Audit, min_ratio: float, disclosure_limit: int) -> RatioResult:
        """The ratios of an audit.

        Examples
        --------
        >>> import localparity as lp
        >>> census = lp.datasets.make_census(5000, random_state=0)
        >>> audit = lp.audit(
        ...     None, census.score, sensitive_features=census.sensitive_features, random_state=0
        ... )
        >>> print(RatioResult.of(audit, 0.8, 10).sentences[0])
        Any cutoff from 0 up to, but not including, 0.1144 keeps every group's ratio at or above 0.8 with 95%
        confidence.
        """
        every = audit.impact_ratios()
        curve = every.disclosed(disclosure_limit)
        return cls(curve, curve.safe_cutoffs(min_ratio), disclosure_limit, every.cutoffs.size)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is safe, where the ratio is lowest, and what that rests on."""
        found = [self.safe.sentence, self.safe.worst_sentence]
        best = self.safe.best
        if best is not None and best.accuracy is not None and best.best_cutoff is not None:
            found.insert(
                1,
                f"The most accurate of them, {number_text(best.best_cutoff, 4)}, is right about the label of "
                f"{percent(best.accuracy)} of these people.",
            )
        selected = "above" if self.curve.higher_is == "better" else "at or below"
        over = "the group with the highest rate" if self.curve.reference is None else "the reference group"
        how = f"People {selected} a cutoff are selected; a ratio is a group's rate over that of {over}."
        if self.curve.confidence is None:
            sure = "Rows with weights or clusters have no intervals of ratios: these numbers are estimates."
        else:
            sure = "Intervals of ratios hold for all groups and cutoffs together, if rows are independent."
        none_safe = not (self.safe.by_estimate if self.safe.by_band is None else self.safe.by_band)
        computed = self.curve.cutoffs.size
        if computed < (self.cutoffs if none_safe else min(FEW_CUTOFFS, self.cutoffs)):
            found.append(
                f"Ratios are computed at {computed:,} of {self.cutoffs:,} cutoffs only, so that each "
                f"step of every group has at least {self.disclosure_limit} people; leaving out small "
                "groups allows more."
            )
        return (*found, f"{how} {sure}")

    def to_dict(self) -> dict[str, Any]:
        """The ratios as plain dictionaries and lists."""
        curve = self.curve.to_dict(disclosure_limit=self.disclosure_limit)
        return {"sentences": list(self.sentences), "safe_cutoffs": self.safe.to_dict(), **curve}


FORMAT, FORMAT_VERSION = "localparity-audit", 2


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
    told = {"verdict": asdict(audit.verdict), "assumptions": list(audit.assumptions)}
    return found | {"rows": audit.rows, "confidence": audit.confidence} | told


def pair_rows(audit: Audit) -> list[dict[str, Any]]:
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


@dataclass(frozen=True, kw_only=True)
class Document:
    """What is known of some models, whatever form it takes.

    Attributes
    ----------
    audits : mapping
        The audit of each model, by the model's name.
    title : str
        The heading.
    paired : PairedModels or None
        The models compared person by person, where all scored the same people.
    max_mcdp : float or None
        The bound, where there is one.
    decide_by : str
        What is compared with the bound, as in `Audit.passes`.
    disclosure_limit : int
        No group rests on fewer people than this.
    min_ratio : float or None
        The least ratio of selection rates that is safe; None says nothing of ratios.
    scoring : mapping
        The scoring rates of each model, where they are asked for.
    """

    audits: Mapping[str, Audit]
    title: str = "Local disparity audit"
    paired: PairedModels | None = None
    max_mcdp: float | None = None
    decide_by: DecideBy = "estimate"
    disclosure_limit: int = DISCLOSURE_LIMIT
    min_ratio: float | None = None
    scoring: Mapping[str, ScoringRates] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.audits:
            raise InputError("must have at least one model, got none", "audits")

    @property
    def first(self) -> Audit:
        """The first model's audit."""
        return next(iter(self.audits.values()))

    @property
    def criterion(self) -> Criterion:
        """Which people the first model's audit compares."""
        return self.first.comparison.criterion

    def answers(self, name: str) -> Answers:
        """The six questions, answered for a model."""
        return Answers.of(self.audits[name], self.max_mcdp, self.decide_by)

    def ratios(self, name: str) -> RatioResult | None:
        """The selection ratios of a model, where they are asked for."""
        if self.min_ratio is None:
            return None
        return RatioResult.of(self.audits[name], self.min_ratio, self.disclosure_limit)

    def to_dict(self) -> dict[str, Any]:
        """The document as plain dictionaries and lists; docs/reference/audit.schema.json describes it."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "localparity": __version__,
            "title": self.title,
            "disclosure_limit": self.disclosure_limit,
            "audits": [self._audit(name) for name in self.audits],
        }

    def to_json(self) -> str:
        """The document as JSON; groups that JSON cannot represent become text."""
        return json.dumps(self.to_dict(), indent=2, default=str, ensure_ascii=False)

    def _audit(self, name: str) -> dict[str, Any]:
        audit, paired, ratios = self.audits[name], self.paired, self.ratios(name)
        answers, breakdown = self.answers(name), breakdown_of(audit, self.max_mcdp)
        return {
            "name": name,
            **audit.to_dict(disclosure_limit=self.disclosure_limit),
            "bound": None if answers.bound is None else asdict(answers.bound),
            "breakdown": None if breakdown is None else asdict(breakdown),
            "answers": answers.to_list(),
            "same_people": paired.to_dict(name) if paired is not None and name in paired.found else None,
            "impact_ratios": None if ratios is None else ratios.to_dict(),
            "scoring_rates": self.scoring[name].to_dict() if name in self.scoring else None,
        }
