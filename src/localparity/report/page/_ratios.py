"""The selection ratios that the page tells of: where every group's is high enough, and where it is not."""

from __future__ import annotations

from dataclasses import dataclass

from localparity.report.page._data import PageModel
from localparity.report.page._pictures import Curves, ratio_picture

MIN_RATIO = 0.8
_MOST_CUTOFFS = 2000
_MOST_NUMBERS = 20_000_000


@dataclass(frozen=True)
class Ratios:
    """A model's ratios: two sentences and a picture."""

    name: str
    safe: str
    worst: str
    picture: Curves
    confidence: float | None


def ratios_of(model: PageModel, limit: int) -> Ratios | None:
    """The ratios of a model, at cutoffs that rest on enough people.

    None where two labels are compared, which have no single curve, and where there are too many scores.
    """
    audit = model.audit
    stratum = next(iter(model.exact.values()))
    numbers = len(stratum) * sum(atoms.scores.size for atoms in stratum.values())
    if len(audit.comparison.labels) > 1 or numbers > _MOST_NUMBERS:
        return None
    curve = audit.impact_ratios().disclosed(limit, most=_MOST_CUTOFFS)
    safe = curve.safe_cutoffs(MIN_RATIO)
    picture = ratio_picture(curve, MIN_RATIO)
    return Ratios(model.name, safe.sentence, safe.worst_sentence, picture, curve.confidence)
