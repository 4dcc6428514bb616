"""The share of each category beyond the median score, as New York City's rule on hiring tools asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from localparity._types import ArrayLike, Group, Groups, HigherIs, ScoreRange
from localparity._validation import (
    NO_GROUP,
    Blanks,
    InputError,
    as_choice,
    as_count,
    as_fraction,
    as_texts,
    group_columns,
    is_missing_group,
)
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import group_text
from localparity.counts._disclosure import DISCLOSURE_LIMIT, in_steps, suppressed
from localparity.counts._score_counts import Data, ScoreCounts, as_counts
from localparity.metrics._window import number_text
from localparity.predictions import check_predictions

SOURCE = "Rules of the City of New York, title 6, sections 5-300 and 5-301"


@dataclass(frozen=True)
class CategoryRate:
    """A category: how many people it has, how many of them are better off than the median, and the ratio.

    Attributes
    ----------
    category : hashable
        The category, a tuple for an intersection.
    people : int or None
        How many people there are; None where few people would follow from it.
    share : float or None
        Their share of the people in the table.
    scoring_rate : float or None
        The share of them with a score above the median; below it where a higher score is worse.
    impact_ratio : float or None
        The scoring rate over the highest of the table; None where the category is not in the calculation.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> found = lp.scoring_rates(None, scores, sensitive_features=sex, disclosure_limit=1)
    >>> found.tables[0].categories[0]
    CategoryRate(category='f', people=3, share=0.5, scoring_rate=0.3333333333333333, impact_ratio=0.5)
    """

    category: Group
    people: int | None
    share: float | None
    scoring_rate: float | None
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
    >>> import localparity as lp
    >>> groups = {"sex": ["f", "m", None, "m"]}
    >>> found = lp.scoring_rates(None, [0.1, 0.3, 0.6, 0.8], sensitive_features=groups, disclosure_limit=1)
    >>> found.tables[0].columns, found.tables[0].unknown
    (('sex',), 1)
    """

    columns: tuple[str, ...]
    categories: tuple[CategoryRate, ...]
    unknown: int | None


@dataclass(frozen=True)
class ScoringRates:
    """Scoring rates and impact ratios by category, as `scoring_rates` finds them.

    Attributes
    ----------
    median : float
        The median of all scores, or the mean of the scores around it that `disclosure_limit` people have.
    people : int
        How many people there are, those without a category among them.
    tables : tuple of CategoryTable
        One for each column, and one for the intersections of all where there are several.
    min_share : float
        Categories with a smaller share of a table have no impact ratio.
    disclosure_limit : int
        Categories of fewer people are not shown.
    higher_is : str
        Whether a higher score is the "better" or the "worse" outcome.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> found = lp.scoring_rates(None, census.score, sensitive_features={"sex": census.sensitive_features})
    >>> [(each.category, each.people, round(each.impact_ratio, 3)) for each in found.tables[0].categories]
    [('Female', 485, 0.613), ('Male', 515, 1.0)]
    """

    median: float
    people: int
    tables: tuple[CategoryTable, ...]
    min_share: float
    disclosure_limit: int
    higher_is: HigherIs = "better"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers are, what was left out, and what they do not say."""
        median = f"the median of all {self.people:,} scores, about {number_text(self.median, 4)}"
        side = "above" if self.higher_is == "better" else "below"
        found = [
            f"The scoring rate is the share of a category with a score {side} {median}, which counts as the "
            f"better outcome. The impact ratio is the scoring rate over the highest one of the table "
            f"({SOURCE})."
        ]
        every = [each for table in self.tables for each in table.categories]
        if any(each.share is not None and each.share < self.min_share for each in every):
            few = f"less than {100.0 * self.min_share:g}% of the people in a table"
            found.append(
                f"Categories with {few} have no ratio and do not count as the highest; section 5-301(d) "
                "allows this if the reason is given."
            )
        if any(each.people is None for each in every):
            found.append(
                f"Categories of fewer than {self.disclosure_limit} people are not shown and do not count "
                "as the highest; nor are others shown from which their numbers would follow."
            )
        found.append("These are facts about the data given, not a finding that a tool or its use is lawful.")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as plain dictionaries and lists, with the notes.

        Returns
        -------
        dict
        """
        return {**asdict(self), "notes": list(self.notes), "source": SOURCE}

    def __str__(self) -> str:
        """The tables as text."""
        lines = []
        for table in self.tables:
            lines.append(f"{' × '.join(table.columns)}: people, scoring rate, impact ratio")
            for each in table.categories:
                ratio = "-" if each.impact_ratio is None else f"{each.impact_ratio:.3f}"
                numbers = "not shown"
                if each.people is not None and each.scoring_rate is not None:
                    numbers = f"{each.people:,}, {each.scoring_rate:.3f}, {ratio}"
                lines.append(f"  {group_text(each.category)}: {numbers}")
            few = f"fewer than {self.disclosure_limit}"
            lines.append(f"  unknown: {few if table.unknown is None else f'{table.unknown:,}'}")
        return "\n".join([*lines, *self.notes])


def scoring_rates(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    columns: Sequence[str] | None = None,
    missing_values: str | Sequence[str] = (),
    min_share: float = 0.02,
    higher_is: HigherIs = "better",
    score_range: ScoreRange = (0.0, 1.0),
    disclosure_limit: int = DISCLOSURE_LIMIT,
) -> ScoringRates:
    r"""Scoring rates and impact ratios by category: the table of New York City's Local Law 144.

    For a tool that scores applicants, the rule asks for the share of each category of sex, of race or
    ethnicity, and of their intersections that scores above the sample's median; for that share over the
    highest one; and for the number of people whose category is not known.

    Parameters
    ----------
    y_true : Predictions, ScoreCounts or None
        None with arrays: labels are not used. Predictions or ScoreCounts stand for all of the arrays; the
        counts must have every score, and rows of weight 1.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The category of each row: of several columns, each has a table, and so have the intersections. Rows
        without a value are counted as unknown.
    columns : sequence of str, optional
        What the columns are called, where `sensitive_features` does not say.
    missing_values : str or sequence of str
        What stands for no value beside None, NaN and blanks, such as "Unknown".
    min_share : float
        Categories with a smaller share of the people in a table have no impact ratio, and do not count for
        the highest rate; 0 leaves none out.
    higher_is : str
        Whether a higher score is the "better" or the "worse" outcome for a person. Where it is worse, the
        rates are shares with a score below the median, as the rule gives for the scores turned round.
    score_range : tuple of float
        The lowest and the highest score there can be.
    disclosure_limit : int
        Categories of fewer people are not shown, nor are others from which these would follow.

    Returns
    -------
    ScoringRates

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8], ["f", "f", "f", "m", "m", "m"]
    >>> found = lp.scoring_rates(None, scores, sensitive_features={"sex": sex}, disclosure_limit=1)
    >>> print("\n".join(str(found).splitlines()[:4]))
    sex: people, scoring rate, impact ratio
      f: 3, 0.333, 0.500
      m: 3, 0.667, 1.000
      unknown: 0
    """
    as_choice(higher_is, "higher_is", ("better", "worse"))
    least, limit = as_fraction(min_share, "min_share"), as_count(disclosure_limit, "disclosure_limit")
    if isinstance(y_true, Data):
        parts = _parts_of_counts(as_counts(y_true), columns)
    else:
        blanks = Blanks(as_texts(missing_values, "missing_values"), kept=True)
        given = _columns(sensitive_features, columns)
        parts = {}
        for names, found in given.items():
            # A text may be in one column and not in another; the last part has all of them.
            options: dict[str, Any] = {"score_range": score_range, "min_groups": 1}
            options["blanks"] = blanks._replace(quiet=names != list(given)[-1])
            parts[names] = as_counts(check_predictions(None, y_score, found, **options))
    everyone = Atoms.join(next(iter(parts.values())).atoms.values())
    middle = _median(everyone)
    better = Atoms.share_above if higher_is == "better" else Atoms.share_below
    rate = partial(better, threshold=middle)
    tables = tuple(_table(names, counts, rate, least, limit) for names, counts in parts.items())
    return ScoringRates(_median(in_steps(everyone, limit)), everyone.size, tables, least, limit, higher_is)


Parts = dict[tuple[str, ...], Any]


def _columns(sensitive_features: Any, columns: Sequence[str] | None) -> Parts:
    """The columns one by one, and all together where there are several."""
    given = group_columns(sensitive_features)
    found = {"category": given[None]} if given.keys() == {None} else given
    names = _names(columns, list(found))
    parts: Parts = {(name,): column for name, column in zip(names, found.values(), strict=True)}
    return parts if len(names) == 1 else {**parts, tuple(names): found}


def _parts_of_counts(counts: ScoreCounts, columns: Sequence[str] | None) -> Parts:
    """The counts by each part of an intersection, and by all of them."""
    if counts.rank_error > 0.0:
        raise InputError(f"needs every score, got {counts!r}", "scoring_rates")
    if not counts.exchangeable:
        raise InputError("needs rows of weight 1 without clusters", "scoring_rates")
    width = max(len(group) if isinstance(group, tuple) else 1 for group in counts.groups)
    numbered = [f"category {place + 1}" for place in range(width)] if width > 1 else ["category"]
    names = _names(columns, numbered)
    if width == 1:
        return {(names[0],): counts}
    parts: Parts = {}
    for place, name in enumerate(names):
        atoms: dict[tuple[Group, int | None], list[Atoms]] = {}
        for (group, _), found in counts.atoms.items():
            part = group if group is NO_GROUP else group[place]  # type: ignore[index]
            atoms.setdefault((part, None), []).append(found)
        joined = {key: Atoms.join(found) for key, found in atoms.items()}
        parts[(name,)] = ScoreCounts(joined, counts.score_range, counts.resolution)
    return {**parts, tuple(names): counts}


def _names(columns: Sequence[str] | None, found: list[Any]) -> list[str]:
    names = list(map(str, found if columns is None else columns))
    if len(names) != len(found):
        raise InputError(f"must have {len(found)} names, got {len(names)}", "columns")
    return names


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
    of = {group: Atoms.join(found) for group, found in parts.items()}
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
