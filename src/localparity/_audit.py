"""Everything that is known of one set of predictions: how large the disparity is, where, and how sure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np

from localparity._docs import documented
from localparity._evidence import Evidence
from localparity._optional import require
from localparity._summaries import (
    Finding,
    GroupSummary,
    LeftOut,
    PairSummary,
    check_group_count,
    summarise_groups,
    warn_of_narrow_scores,
    without_small_groups,
)
from localparity._validation import (
    as_choice,
    as_count,
    as_epsilons,
    as_fraction,
    as_level,
    as_threshold,
)
from localparity._wording import HigherIs, Verdict, assumptions_of, verdict_of
from localparity.metrics import ScoreCounts
from localparity.metrics._comparison import check_predictions
from localparity.metrics._criteria import Criterion
from localparity.metrics._groups import Compare
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.uncertainty._bands import IntervalMethod, as_interval_method
from localparity.uncertainty._resampling import Draws, least_resamples

SmallGroups = Literal["raise", "drop"]
DecideBy = Literal["estimate", "upper", "lower"]


@dataclass(frozen=True)
class Audit:
    """The audit of one set of predictions. Make one with `localparity.audit` or `Audit.from_counts`.

    Attributes
    ----------
    criterion, compare : str
        Which people, and which groups, were compared.
    score_range : tuple of float
        The range of the scores.
    method : str
        How the intervals were made: "dkw" or "bootstrap".
    n_resamples : int
        How many resamples the test drew; 0 where none was made.
    threshold : float or None
        The threshold of delta-DP; None compares mean scores.
    higher_is : str or None
        Whether a higher score is the "better" or the "worse" outcome; None says neither.
    groups : tuple of GroupSummary
        The groups.
    findings : tuple of Finding
        MCDP of the worst pair at each epsilon, from the smallest epsilon to the largest.
    pairs : tuple of PairSummary
        All pairs, each with its intervals and p-values: the worst first, those too small to judge last.
    left_out : tuple of LeftOut
        The groups that were too small and left out.
    counts : ScoreCounts
        The counts of the groups that were compared, for figures; no part of what is written out.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(5000, random_state=0)
    >>> audit = lp.audit(None, census.score, sensitive_features=census.sensitive_features, random_state=0)
    >>> audit.passes(0.10), audit.passes(0.50)
    (False, True)
    >>> print(audit.findings[0].window.sentence)
    With a threshold from 0.2512 up to, but not including, 0.2513, people in Female are at least 30.0 points
    more likely to be at or below it than people in Male.
    """

    criterion: str
    compare: str
    score_range: tuple[float, float]
    method: str
    n_resamples: int
    threshold: float | None
    higher_is: HigherIs | None
    groups: tuple[GroupSummary, ...]
    findings: tuple[Finding, ...]
    pairs: tuple[PairSummary, ...]
    left_out: tuple[LeftOut, ...]
    counts: ScoreCounts = field(repr=False, compare=False)

    @classmethod
    def from_counts(
        cls,
        counts: ScoreCounts,
        *,
        epsilons: Sequence[float] = PAPER_EPSILONS,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        threshold: float | None = None,
        min_group_size: int = 1,
        small_groups: SmallGroups = "raise",
        level: float = 0.95,
        method: IntervalMethod | None = None,
        n_resamples: int = 1000,
        random_state: Any = None,
        n_jobs: int | None = None,
        higher_is: HigherIs | None = None,
        on_resample: Callable[[], object] | None = None,
    ) -> Audit:
        """Audit counts, wherever they were made; the parameters are those of `localparity.audit`."""
        at = np.unique(as_epsilons(epsilons, "epsilons"))
        if not at.size:
            raise ValueError("epsilons is empty")
        as_choice(small_groups, "small_groups", get_args(SmallGroups))
        if higher_is is not None:
            as_choice(higher_is, "higher_is", get_args(HigherIs))
        n_resamples = as_count(n_resamples, "n_resamples", at_least=0)
        threshold = None if threshold is None else as_threshold(threshold, counts.score_range)
        found_method = as_interval_method(method, counts)
        left_out: tuple[LeftOut, ...] = ()
        if small_groups == "drop":
            counts, left_out = without_small_groups(counts, criterion, min_group_size)
        check_group_count(counts, compare)
        warn_of_narrow_scores(counts, stacklevel=3)
        evidence = Evidence.gather(
            counts,
            counts.gap_curves(criterion, compare, min_group_size=min_group_size),
            at,
            criterion=criterion,
            compare=compare,
            level=as_level(level),
            method=found_method,
            draws=Draws(n_resamples, random_state, n_jobs, on_resample),
        )
        pairs = evidence.pairs(threshold)
        return cls(
            criterion=criterion,
            compare=compare,
            score_range=counts.score_range,
            method=found_method,
            n_resamples=n_resamples,
            threshold=threshold,
            higher_is=higher_is,
            groups=summarise_groups(counts, criterion, pairs),
            findings=evidence.findings(),
            pairs=pairs,
            left_out=left_out,
            counts=counts,
        )

    @property
    def level(self) -> float:
        """The probability with which the intervals hold."""
        return self.findings[0].interval.level

    @property
    def tested(self) -> bool:
        """Whether the test drew enough resamples to reject parity at the audit's level."""
        return self.n_resamples >= least_resamples(self.level)

    @property
    def most_significant(self) -> PairSummary:
        """The pair whose disparity at the smallest epsilon stands out most from chance."""
        return max(self.pairs, key=lambda pair: pair.strength)

    def worst_pair(self, finding: Finding) -> PairSummary:
        """The pair that a finding is about, with its own interval and p-value."""
        who = (finding.window.groups, finding.window.label)
        return next(pair for pair in self.pairs if (pair.groups, pair.label) == who)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether there is a disparity, how large, where, and how sure that is, in words."""
        return verdict_of(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the intervals and p-values take for granted, and over what they hold, in sentences."""
        return assumptions_of(self)

    def passes(self, bound: float, *, epsilon: float | None = None, decide_by: DecideBy = "estimate") -> bool:
        """Whether MCDP is at most `bound`.

        Parameters
        ----------
        bound : float
            The most that MCDP may be, a fraction in [0, 1].
        epsilon : float, optional
            One of the audit's epsilons; the smallest, which is the strictest, without it.
        decide_by : str
            "estimate" decides by the estimate; "upper" asks that the upper end of the interval is within the
            bound, so that a model above it passes with a probability of at most 1 - level; "lower" asks it of
            the lower end, so that a model within it fails with a probability of at most 1 - level.

        Returns
        -------
        bool
            True where it is within the bound.
        """
        bound = as_fraction(bound, "bound")
        finding = self.findings[0] if epsilon is None else self.finding(epsilon)
        if finding.vacuous:
            raise ValueError(
                f"MCDP({finding.epsilon:g}) is 0 whatever the groups: the scores span no window so "
                f"wide in score_range {self.score_range}; give a smaller epsilon or the right score_range"
            )
        ends = {
            "estimate": finding.mcdp,
            "upper": finding.interval.high,
            "lower": finding.interval.low,
        }
        return ends[as_choice(decide_by, "decide_by", get_args(DecideBy))] <= bound

    def finding(self, epsilon: float) -> Finding:
        """The finding at one of the audit's epsilons."""
        for finding in self.findings:
            if finding.epsilon == epsilon:
                return finding
        known = ", ".join(f"{finding.epsilon:g}" for finding in self.findings)
        raise ValueError(f"epsilon is {epsilon!r} where one of the audit's ({known}) is expected")

    def to_dict(self) -> dict[str, Any]:
        """The whole audit as plain dictionaries and lists."""
        found = asdict(replace(self, counts=ScoreCounts({}), pairs=()))
        del found["counts"]
        for finding, plain in zip(self.findings, found["findings"], strict=True):
            plain["window"]["sentence"] = finding.window.sentence_for(self.higher_is)
        # A page of pairs is written field by field: there may be half a million.
        found["pairs"] = [
            {
                **vars(pair),
                "intervals": [{"low": each.low, "high": each.high} for each in pair.intervals],
                "window": vars(pair.window),
                "too_small": pair.too_small,
            }
            for pair in self.pairs
        ]
        found |= {"verdict": asdict(self.verdict), "assumptions": list(self.assumptions)}
        return found

    def to_json(self) -> str:
        """The whole audit as JSON; groups that JSON has no form for become text."""
        return json.dumps(self.to_dict(), indent=2, default=str, ensure_ascii=False)

    def to_frame(self) -> Any:
        """All pairs at all epsilons as a pandas data frame, a row for each."""
        rows = [
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
            for pair in self.pairs
            for i, finding in enumerate(self.findings)
        ]
        return require("pandas", extra="data").DataFrame(rows)

    def to_html(
        self, path: str | PathLike[str], *, title: str = "Local disparity audit", force: bool = False
    ) -> None:
        """Write the audit as one page that opens anywhere, offline; `localparity.report.write_page`.

        Parameters
        ----------
        path : path
            Where to write it.
        title : str
            The page's heading.
        force : bool
            Whether a file that is there already is replaced.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import localparity as lp
        >>> found = lp.audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=["a", "a", "b", "b"])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> found.to_html(path)
        >>> path.stat().st_size < 3_000_000
        True
        """
        from localparity.report import write_page

        write_page(path, {"scores": self}, title=title, force=force)

    def _repr_html_(self) -> str | None:
        """The verdict and the findings for a notebook; nothing without the extra `report`."""
        from localparity.report._page import notebook_summary

        return notebook_summary(self)

    def __rich_console__(self, *_: Any) -> Iterator[Any]:
        """The audit as `rich.print` shows it."""
        from localparity.report._terminal import terminal_parts

        yield from terminal_parts(self)


@documented
def audit(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    epsilons: Sequence[float] = PAPER_EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    threshold: float | None = None,
    sample_weight: Any = None,
    cluster: Any = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    min_group_size: int = 1,
    small_groups: SmallGroups = "raise",
    level: float = 0.95,
    method: IntervalMethod | None = None,
    n_resamples: int = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
    higher_is: HigherIs | None = None,
) -> Audit:
    """How large the disparity is, where it sits, for whom, and how sure that is.

    Parameters
    ----------
    epsilons : sequence of float
        The half-widths of windows at which MCDP is reported.
    threshold : float, optional
        The threshold of delta-DP, in the scores' own units; None compares mean scores.
    min_group_size : int
        A group with fewer rows among the people compared is too small.
    small_groups : str
        Whether a group that is too small is an error ("raise") or left out and named ("drop").
    level : float
        The probability with which the intervals of all pairs, labels and epsilons hold together.
    method : str, optional
        How intervals are made, "dkw" or "bootstrap", as in `mcdp_interval`; where the test does not reject
        parity for a pair, its interval goes down to 0.
    n_resamples : int
        How many resamples the test draws, and the bootstrap; 0 leaves the test out.
    higher_is : str, optional
        Whether a higher score is the "better" or the "worse" outcome for a person, for the sentences.

    Returns
    -------
    Audit
        Findings at each epsilon, all pairs, all groups.

    Examples
    --------
    >>> import localparity as lp
    >>> scores, sex = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9], ["f", "f", "f", "m", "m", "m"]
    >>> found = lp.audit(None, scores, sensitive_features=sex, epsilons=[0, 0.1], random_state=0)
    >>> [finding.mcdp for finding in found.findings]
    [0.6666666666666666, 0.3333333333333333]
    """
    predictions = check_predictions(
        y_true, y_score, sensitive_features, criterion, sample_weight, score_range, cluster
    )
    return Audit.from_counts(
        ScoreCounts.from_predictions(predictions),
        epsilons=epsilons,
        criterion=criterion,
        compare=compare,
        threshold=threshold,
        min_group_size=min_group_size,
        small_groups=small_groups,
        level=level,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
        higher_is=higher_is,
    )
