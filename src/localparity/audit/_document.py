"""The audits of one model or several as one document, from which every form of it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from localparity._types import Criterion
from localparity._version import __version__
from localparity.audit._answers import Answers
from localparity.audit._missing import breakdown_of
from localparity.audit._ratios import RatioResult
from localparity.counts import ScoreCounts
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.metrics import ScoringRates

if TYPE_CHECKING:
    from localparity.audit._audit import Audit, DecideBy
    from localparity.audit._same_people import PairedModels

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
            raise ValueError("audits must have at least one model, got none")

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
