"""What an audit found, in plain words."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localparity._validation import Group
from localparity.metrics._groups import group_text

if TYPE_CHECKING:
    from localparity._audit import Audit
    from localparity._summaries import Finding

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


@dataclass(frozen=True)
class Verdict:
    """Whether there is a disparity, how large and where, and how sure that is.

    Attributes
    ----------
    certain : bool
        Whether the disparity can be told from chance.
    headline, where, how_sure : str
        A sentence each.
    """

    certain: bool
    headline: str
    where: str
    how_sure: str


def percent(fraction: float) -> str:
    """A fraction as people read it.

    Examples
    --------
    >>> percent(0.29984)
    '29.98%'
    """
    return f"{100.0 * fraction:.2f}%"


def pair_text(groups: Sequence[Group]) -> str:
    """Two groups in a table's cell; a name that runs from right to left keeps to itself.

    Examples
    --------
    >>> pair_text(("Female", "Male"))
    'Female and Male'
    """
    return " and ".join(_kept_apart(group_text(group)) for group in groups)


def _kept_apart(name: str) -> str:
    right_to_left = any(unicodedata.bidirectional(character) in {"R", "AL", "AN"} for character in name)
    return f"\u2068{name}\u2069" if right_to_left else name


def p_value_text(finding: Finding) -> str:
    """The p-value of a finding, or a dash where no test was made."""
    return "-" if finding.test is None else f"{finding.test.p_value:.4f}"


def interval_text(finding: Finding) -> str:
    """The interval of a finding."""
    return f"{percent(finding.interval.low)} to {percent(finding.interval.high)}"


def verdict(audit: Audit) -> Verdict:
    """The verdict on an audit, at its smallest epsilon.

    A disparity is certain where the test against parity rejects it at the audit's level or, where no test was
    made, where the interval keeps clear of 0.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(5000, random_state=0)
    >>> audit = lp.audit(None, census.score, sensitive_features=census.sensitive_features, random_state=0)
    >>> print(verdict(audit).headline)
    There is a disparity: MCDP(0) is 30.02%.
    """
    finding = audit.findings[0]
    level = finding.interval.level
    test = finding.test
    certain = finding.interval.low > 0.0 if test is None else test.p_value <= 1.0 - level
    opening = "There is a disparity" if certain else "No disparity can be told from chance"
    how_sure = f"The {100 * level:g}% interval goes from {interval_text(finding)}; "
    if test is None:
        how_sure += "no test against parity was made."
    else:
        how_sure += (
            f"the p-value against parity is {p_value_text(finding)}. "
            f"At these group sizes, parity itself would measure {percent(test.null_mean)} on average."
        )
    headline = f"{opening}: MCDP({finding.epsilon:g}) is {percent(finding.mcdp)}."
    return Verdict(certain, headline, finding.window.sentence, how_sure)
