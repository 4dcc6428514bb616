"""Scoring and selection rates of each category, as New York City's rule on hiring tools asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from localparity._text import number_text, visible
from localparity._types import Group, HigherIs
from localparity._validation import (
    InputError,
    as_choice,
    as_count,
    as_fraction,
    as_threshold,
    is_missing_group,
)
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import Comparison
from localparity.counts._disclosure import DISCLOSURE_LIMIT, in_steps, suppressed
from localparity.counts._score_counts import Data, ScoreCounts, as_counts, checked_data

SOURCE = "Rules of the City of New York, title 6, sections 5-300 and 5-301"


@dataclass(frozen=True)
class CategoryRate:
    """A category: how many people it has, how many of them are selected or score better, and the ratio.

    Attributes
    ----------
    category : hashable
        The category, a tuple for an intersection.
    people : int or None
        How many people there are; None where few people would follow from it.
    share : float or None
        Their share of the people in the table.
    rate : float or None
        The share of them with a score above the median, or above the cutoff that selects; below the one, or
        at or below the other, where a higher score is worse.
    impact_ratio : float or None
        The rate over the highest of the table; None where the category is not in the calculation.

    Examples
    --------
    >>> CategoryRate("f", people=30, share=0.6, rate=0.4, impact_ratio=0.8).impact_ratio
    0.8
    """

    category: Group
    people: int | None
    share: float | None
    rate: float | None
    impact_ratio: float | None


@dataclass(frozen=True)
class CategoryTable:
    """The categories of one column, or the intersections of several.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    categories : tuple of CategoryRate
        The categories that occur.
    unknown : int or None
        How many people are not in the table, since the category is not known; None where they are few.

    Examples
    --------
    >>> CategoryTable(("sex",), categories=(), unknown=12).unknown
    12
    """

    columns: tuple[str, ...]
    categories: tuple[CategoryRate, ...]
    unknown: int | None


@dataclass(frozen=True)
class ScoringRates:
    """Rates and impact ratios by category, as `scoring_rates` finds them.

    Attributes
    ----------
    median : float or None
        The median of all scores, or the mean of the scores around it that `min_group_size` people have; None
        for selection rates.
    people : int
        How many people there are, those without a category among them.
    tables : tuple of CategoryTable
        One for each column, and one for the intersections of all where there are several.
    min_share : float
        Categories with a smaller share of a table have no impact ratio.
    min_group_size : int
        Categories of fewer people are not shown.
    higher_is : str
        Whether a higher score is the "better" or the "worse" outcome.
    cutoff : float or None
        The cutoff that selects people; None for scoring rates.
    decision : str or None
        The column of decisions that the rates are of, where there is one.
    data_source, distribution_date : str or None
        Where the data comes from and since when the tool is in use, as the public summary of an audit says.

    Examples
    --------
    >>> rates = ScoringRates(0.5, people=90, tables=(), min_share=0.02, min_group_size=10)
    >>> print(rates.notes[-1])
    These are facts about the data given, not a finding that a tool or its use is lawful.
    """

    median: float | None
    people: int
    tables: tuple[CategoryTable, ...]
    min_share: float
    min_group_size: int
    higher_is: HigherIs = "better"
    cutoff: float | None = None
    decision: str | None = None
    data_source: str | None = None
    distribution_date: str | None = None

    @property
    def name(self) -> str:
        """What the rates are called."""
        return "selection rate" if self.median is None else "scoring rate"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers are, what was left out, and what they do not say."""
        better = self.higher_is == "better"
        if self.median is not None:
            median = f"the median of all {self.people:,} scores, about {number_text(self.median, 4)}"
            who = (
                f"with a score {'above' if better else 'below'} {median}, which counts as the better outcome"
            )
        elif self.decision is not None:
            who = f"whom the column {visible(self.decision)} says were selected"
        else:
            who = f"with a score {'above' if better else 'at or below'} {number_text(self.cutoff or 0.0, 4)}"
        notes = [
            f"The {self.name} is the share of a category {who}. The impact ratio is the {self.name} over "
            f"the highest one of the table ({SOURCE})."
        ]
        every = [each for table in self.tables for each in table.categories]
        if self.excluded:
            few = f"less than {100.0 * self.min_share:g}% of the people in a table"
            notes.append(
                f"Categories with {few} have no ratio and do not count as the highest; section 5-301(d) "
                "allows this if the reason is given."
            )
        if any(each.people is None for each in every):
            notes.append(
                f"Categories of fewer than {self.min_group_size} people are not shown and do not count "
                "as the highest; nor are others shown from which their numbers would follow."
            )
        notes.append("These are facts about the data given, not a finding that a tool or its use is lawful.")
        return tuple(notes)

    @property
    def excluded(self) -> tuple[Group, ...]:
        """The categories without an impact ratio as their share is small."""
        every = [each for table in self.tables for each in table.categories]
        return tuple(
            each.category for each in every if each.share is not None and each.share < self.min_share
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as plain dictionaries and lists, with the notes."""
        return {**asdict(self), "notes": list(self.notes), "source": SOURCE}


def scoring_rates(
    data: Data,
    *,
    columns: Sequence[str] | None = None,
    min_share: float = 0.02,
    higher_is: HigherIs = "better",
    min_group_size: int = DISCLOSURE_LIMIT,
    cutoff: float | None = None,
) -> ScoringRates:
    r"""Scoring or selection rates and impact ratios by category: the table of New York City's Local Law 144.

    For a tool that scores applicants, the rule asks for the share of each category of sex, of race or
    ethnicity, and of their intersections that scores above the sample's median; for one that selects them,
    for the share that is selected. It asks for that share over the highest one, and for the number of people
    whose category is not known.

    Parameters
    ----------
    data : Predictions or ScoreCounts
        The people, whose groups are the categories: of several columns, each has a table, and so have the
        intersections. Rows without a value, which ``Predictions.from_arrays(..., missing_values=())`` keeps,
        are counted as unknown. Counts must have every score, and rows of weight 1.
    columns : sequence of str, optional
        What the columns of the categories are called.
    min_share : float
        Categories with a smaller share of the people in a table have no impact ratio, and do not count for
        the highest rate; 0 leaves none out.
    higher_is : str
        Whether a higher score is the "better" or the "worse" outcome for a person. Where it is worse, the
        rates are shares with a score below the median, as the rule gives for the scores turned round.
    min_group_size : int
        Categories of fewer people are not shown, nor are others from which these would follow.
    cutoff : float, optional
        Selection rates in place of scoring rates: people above the cutoff are selected; at or below it, where
        a higher score is worse. Decisions 0 and 1 are scores with a cutoff of 0.5.

    Returns
    -------
    ScoringRates

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> rows = lp.Predictions.from_arrays(None, scores, sensitive_features=sex)
    >>> rates = lp.scoring_rates(rows, min_group_size=1).tables[0].categories
    >>> [(rate.category, round(rate.rate, 3), rate.impact_ratio) for rate in rates]
    [('f', 0.333, 0.5), ('m', 0.667, 1.0)]
    >>> selected = lp.scoring_rates(rows, cutoff=0.35, min_group_size=1).tables[0].categories
    >>> [(rate.category, round(rate.rate, 3)) for rate in selected]
    [('f', 0.333), ('m', 1.0)]
    """
    as_choice(higher_is, "higher_is", ("better", "worse"))
    least, limit = as_fraction(min_share, "min_share"), as_count(min_group_size, "min_group_size")
    parts = _parts(as_counts(checked_data(data, Comparison(), unknown=True)), columns)
    everyone = Atoms.join(next(iter(parts.values())).atoms.values())
    if cutoff is None:
        better = Atoms.share_above if higher_is == "better" else Atoms.share_below
        rate = partial(better, threshold=_median(everyone))
    else:
        at = as_threshold(cutoff, next(iter(parts.values())).score_range, "cutoff")
        rate = partial(Atoms.share_above if higher_is == "better" else _share_at_or_below, threshold=at)
    tables = tuple(_table(names, counts, rate, least, limit) for names, counts in parts.items())
    median = _median(in_steps(everyone, limit)) if cutoff is None else None
    return ScoringRates(median, everyone.size, tables, least, limit, higher_is, cutoff)


def _share_at_or_below(atoms: Atoms, threshold: float) -> float:
    return 1.0 - atoms.share_above(threshold)


def _parts(counts: ScoreCounts, columns: Sequence[str] | None) -> dict[tuple[str, ...], ScoreCounts]:
    """The counts by each column of an intersection, and by all of them."""
    if counts.rank_error > 0.0:
        raise InputError(f"must have every score, got {counts!r}", argument="data")
    if not counts.exchangeable:
        raise InputError("must have rows of weight 1 without clusters", argument="data")
    width = max(len(group) if isinstance(group, tuple) else 1 for group in counts.groups)
    numbered = [f"category {place + 1}" for place in range(width)] if width > 1 else ["category"]
    names = numbered if columns is None else list(map(str, columns))
    if len(names) != width:
        raise InputError(f"must have {width} names, got {len(names)}", argument="columns")
    if width == 1:
        return {(names[0],): counts}
    parts: dict[tuple[str, ...], ScoreCounts] = {}
    for place, name in enumerate(names):
        atoms: dict[tuple[Group, int | None], list[Atoms]] = {}
        for (group, _), scores in counts.atoms.items():
            part = group[place] if isinstance(group, tuple) else group
            atoms.setdefault((part, None), []).append(scores)
        joined = {key: Atoms.join(scores) for key, scores in atoms.items()}
        parts[(name,)] = ScoreCounts(joined, counts.score_range, counts.resolution)
    return {**parts, tuple(names): counts}


def _median(atoms: Atoms) -> float:
    """The middle score, or the mean of the two in the middle."""
    below = np.cumsum(atoms.rows)
    middle = [(atoms.size - 1) // 2, atoms.size // 2]
    low, high = (float(score) for score in atoms.scores[np.searchsorted(below, middle, side="right")])
    return low if low == high else low + 0.5 * (high - low)


def _table(
    names: tuple[str, ...],
    counts: ScoreCounts,
    rate: Callable[[Atoms], float],
    min_share: float,
    limit: int,
) -> CategoryTable:
    """The rates of one column, or of the intersections of several."""
    parts: dict[Group, list[Atoms]] = {group: [] for group in counts.groups}
    for (group, _), atoms in counts.atoms.items():
        parts[group].append(atoms)
    of = {group: Atoms.join(atoms) for group, atoms in parts.items()}
    unknown = sum(of.pop(group).size for group in counts.groups if is_missing_group(group))
    people = {group: atoms.size for group, atoms in of.items()}
    cells = {group if isinstance(group, tuple) else (group,): size for group, size in people.items()}
    hidden = suppressed(cells, limit)
    total = sum(people.values())
    rates = {group: rate(atoms) for group, atoms in of.items()}
    counted = {group for group, size in people.items() if size >= max(limit, min_share * total)}
    highest = max((rates[group] for group in counted), default=0.0)
    categories = []
    for (group, size), cell in zip(people.items(), cells, strict=True):
        if cell in hidden:
            categories.append(CategoryRate(group, None, None, None, None))
            continue
        ratio = rates[group] / highest if group in counted and highest else None
        categories.append(CategoryRate(group, size, size / total, rates[group], ratio))
    return CategoryTable(names, tuple(categories), None if 0 < unknown < limit else unknown)
