"""The selection ratios that the page tells of: where every group's is high enough, and where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from localparity.audit._ratios import RatioResult
from localparity.counts._score_counts import strata_of
from localparity.report._tables import ReportTable, scoring_tables
from localparity.report.page._pictures import Curves, ratio_picture

if TYPE_CHECKING:
    from localparity.audit._document import Document

MIN_RATIO = 0.8
_MOST_NUMBERS = 20_000_000


@dataclass(frozen=True)
class Ratios:
    """A model's ratios: sentences and a picture."""

    name: str
    sentences: tuple[str, ...]
    picture: Curves
    confidence: float | None
    min_ratio: float


def ratios_of(document: Document) -> Iterator[Ratios]:
    """The ratios of each model, at cutoffs that rest on enough people.

    There are none where two labels are compared, which have no single curve, and for too many scores.
    """
    least = MIN_RATIO if document.min_ratio is None else document.min_ratio
    for name, audit in document.audits.items():
        stratum, *others = strata_of(audit.counts, audit.comparison).values()
        numbers = len(stratum) * sum(atoms.scores.size for atoms in stratum.values())
        if not others and numbers <= _MOST_NUMBERS:
            found = RatioResult.of(audit, least, document.disclosure_limit)
            picture = ratio_picture(found.curve, least)
            yield Ratios(name, found.sentences, picture, found.curve.confidence, least)


def scoring_of(document: Document) -> Iterator[tuple[str, list[ReportTable], tuple[str, ...]]]:
    """The tables of scoring rates of each model that has some, and what is said of them."""
    for place, (name, scoring) in enumerate(document.scoring.items()):
        tables = [replace(table, name=f"{table.name}-{place}") for table in scoring_tables(scoring)]
        yield name, tables, tuple(scoring.notes)
