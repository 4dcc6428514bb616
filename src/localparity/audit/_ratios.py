"""What an audit says of selection ratios: which cutoffs keep them large enough, and where they are lowest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localparity.metrics._window import number_text, percent
from localparity.uncertainty import ImpactRatioCurve, SafeCutoffs

if TYPE_CHECKING:
    from localparity.audit._audit import Audit

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
