"""Everything that is known of one set of predictions: how large the disparity is, where, and how sure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, Literal, get_args

from localparity._types import Compare, Criterion, DataRange, Group, HigherIs, MeasuredScale, ScoreRange
from localparity._validation import InputError, as_choice, as_count, as_fraction, require, setting
from localparity.auditing._document import pair_rows
from localparity.auditing._files import Engine, read_people
from localparity.auditing._findings import Finding, GroupSummary, LeftOut, PairSummary
from localparity.auditing._missing import NOTHING_MISSING, MissingRows
from localparity.auditing._provenance import Provenance, call_text
from localparity.auditing._steps import AuditedFile
from localparity.auditing._wording import Verdict, assumptions_of, verdict_of
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._comparison import group_text
from localparity.counts._disclosure import DISCLOSURE_LIMIT, check_disclosure
from localparity.metrics import UnknownGroups
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.metrics._within import within_bound
from localparity.uncertainty import ImpactRatioCurve, WithinStrata
from localparity.uncertainty._impact import curve_of_counts
from localparity.uncertainty._resampling import least_resamples

DecideBy = Literal["estimate", "upper", "lower"]


@dataclass(frozen=True, repr=False)
class Audit:
    """The audit of one set of predictions. Make one with `localparity.audit` or `Audit.read`.

    Attributes
    ----------
    comparison : Comparison
        Which people, and which groups, were compared.
    score_range : tuple of float
        The range of the scores.
    method : str
        How the intervals were made: "finite_sample" or "bootstrap".
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
    missing : MissingRows
        How many rows had no group, score, label or weight, and what was done with them.
    scale : str
        What an epsilon is a share of: a given range ("score"), that of the scores ("data"), people ("rank").
    unknown_groups : UnknownGroups or None
        What the rows without a group could change, with ``missing_groups="bound"``.
    within_strata : WithinStrata or None
        The groups compared within strata, where there are control features.
    provenance : Provenance or None
        The files, the call, the time and the versions that it comes from; None for arrays.
    library : str or None
        The library of the data frames that were audited, such as "polars"; None for arrays.
    file : AuditedFile or None
        What commands that go on from the audited files need; no part of what is written out.

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

    comparison: Comparison
    score_range: ScoreRange
    method: str
    n_resamples: int
    threshold: float | None
    higher_is: HigherIs | None
    groups: tuple[GroupSummary, ...]
    findings: tuple[Finding, ...]
    pairs: tuple[PairSummary, ...]
    left_out: tuple[LeftOut, ...]
    counts: ScoreCounts = field(repr=False, compare=False)
    missing: MissingRows = NOTHING_MISSING
    scale: MeasuredScale = "score"
    unknown_groups: UnknownGroups | None = None
    within_strata: WithinStrata | None = None
    provenance: Provenance | None = field(default=None, compare=False)
    library: str | None = field(default=None, compare=False)
    file: AuditedFile | None = field(default=None, compare=False)

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        score: str,
        group: str | Sequence[str],
        label: str | None = None,
        weight: str | None = None,
        cluster: str | None = None,
        engine: Engine = "duckdb",
        score_range: DataRange = (0.0, 1.0),
        epsilons: Sequence[float] = PAPER_EPSILONS,
        criterion: Criterion = "demographic_parity",
        compare: Compare = "between_groups",
        allow_remote: bool = False,
        **options: Any,
    ) -> Audit:
        r"""Audit the scores in files, in a query or in a table of an engine, as the command does.

        Parameters
        ----------
        source : path, sequence of paths, query, relation, table, or table of Spark or Ibis
            CSV, TSV, Parquet, JSON lines or a workbook, also a glob; or what `open_table` returns.
        score : str
            The column of the scores.
        group : str or sequence of str
            The column of the groups; of several, the groups are the combinations that occur.
        label, weight, cluster : str, optional
            The columns of the labels 0 and 1, of the weights, and of the person or household.
        engine : str
            What counts the scores: "duckdb", "spark" or "ibis". Clusters need "duckdb".
        score_range : tuple of float or "data"
            The lowest and the highest score there can be; "data" takes those of the scores themselves.
        epsilons : sequence of float
            The half-widths of windows at which MCDP is reported.
        criterion, compare : str
            Who is compared, as in `localparity.audit`.
        allow_remote : bool
            Whether files may be on other machines, which DuckDB then installs extensions for.
        **options
            Others of `localparity.audit`, such as ``confidence``, and ``control``, the columns of strata.

        Returns
        -------
        Audit

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import localparity as lp
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.csv"
        >>> _ = path.write_text("p,sex\n0.1,f\n0.4,f\n0.6,m\n0.9,m\n")
        >>> lp.Audit.read(path, score="p", group="sex", random_state=0).findings[0].mcdp
        1.0
        """
        columns = {"score": score, "group": group, "label": label, "weight": weight, "cluster": cluster}
        asked: dict[str, Any] = {"epsilons": epsilons, "criterion": criterion, "compare": compare}
        call = call_text("lp.Audit.read", source, columns | asked | options)
        provenance = Provenance.now(call, source=source, columns=columns, seed=options.get("random_state"))
        counted = asked | {"score_range": score_range, "allow_remote": allow_remote}
        given = {**options, "score_range": score_range}
        data, missing, options = read_people(source, columns, engine, options, **counted)
        # Imported here: the function makes an object of this class.
        from localparity.auditing._auditing import audit

        found = audit(data, **asked, **options)
        file = AuditedFile.of(source, provenance, given) if engine == "duckdb" else None
        return replace(found, missing=missing.with_groups(found.missing), provenance=provenance, file=file)

    @property
    def rows(self) -> int:
        """How many rows were compared."""
        return sum(group.rows for group in self.groups)

    @property
    def confidence(self) -> float:
        """The probability with which the intervals hold."""
        return self.findings[0].interval.confidence

    @property
    def tested(self) -> bool:
        """Whether the test drew enough resamples to reject parity at the audit's confidence."""
        return self.n_resamples >= least_resamples(self.confidence)

    @property
    def most_significant(self) -> PairSummary:
        """The pair whose disparity at the smallest epsilon stands out most from chance."""
        return max(self.pairs, key=lambda pair: pair.strength)

    def worst_pair(self, finding: Finding) -> PairSummary:
        """Return the pair that a finding is about, with its own interval and p-value.

        Parameters
        ----------
        finding : Finding
            One of the audit's findings.

        Returns
        -------
        PairSummary
        """
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

    def passes(
        self, max_mcdp: float, *, epsilon: float | None = None, decide_by: DecideBy = "estimate"
    ) -> bool:
        """Return whether MCDP is at most `max_mcdp`.

        Parameters
        ----------
        max_mcdp : float
            The most that MCDP may be, a fraction in [0, 1].
        epsilon : float, optional
            One of the audit's epsilons; the smallest, which is the strictest, without it.
        decide_by : str
            What is compared with the bound: "estimate"; "upper", the upper end of the interval, so that a
            model above the bound passes with a probability of at most 1 - confidence; or "lower", so that a
            model within it fails with at most that probability.

        Returns
        -------
        bool
            True where it is within the bound.
        """
        max_mcdp = as_fraction(max_mcdp, "max_mcdp")
        finding = self.findings[0] if epsilon is None else self.finding(epsilon)
        if finding.vacuous:
            raise InputError(
                f"MCDP({finding.epsilon:g}) is 0 whatever the groups: the scores span no window so wide in "
                f"{setting('score_range')} {self.score_range}; give a smaller epsilon or the right "
                f"{setting('score_range')}"
            )
        ends = {"estimate": finding.mcdp, "upper": finding.interval.high, "lower": finding.interval.low}
        return within_bound(ends[as_choice(decide_by, "decide_by", get_args(DecideBy))], max_mcdp)

    def finding(self, epsilon: float) -> Finding:
        """Return the finding at one of the audit's epsilons.

        Parameters
        ----------
        epsilon : float
            One of the epsilons that the audit was asked for.

        Returns
        -------
        Finding
        """
        for finding in self.findings:
            if finding.epsilon == epsilon:
                return finding
        known = ", ".join(f"{finding.epsilon:g}" for finding in self.findings)
        raise InputError(f"must be one of the audit's ({known}), got {epsilon!r}", "epsilon")

    def impact_ratios(self, *, reference: Group | None = None) -> ImpactRatioCurve:
        """Return the selection rates and their ratios at every cutoff, as `impact_ratio_curve` does.

        Where a higher score is the worse outcome, people at or below a cutoff are selected. Rows with weights
        or clusters have no bands.

        Parameters
        ----------
        reference : hashable, optional
            The group that the others are compared with; the best-off group at each cutoff without it.

        Returns
        -------
        ImpactRatioCurve
        """
        direction: HigherIs = self.higher_is or "better"
        confidence = self.confidence if self.counts.exchangeable else None
        asked: dict[str, Any] = {"reference": reference, "higher_is": direction, "confidence": confidence}
        return curve_of_counts(self.counts, self.comparison, **asked)

    def to_dict(self, *, disclosure_limit: int = DISCLOSURE_LIMIT) -> dict[str, Any]:
        """Return the whole audit as plain dictionaries and lists.

        Parameters
        ----------
        disclosure_limit : int
            A group with fewer people is an error; `localparity.audit` leaves such groups out when asked to.

        Returns
        -------
        dict
        """
        check_disclosure(self.counts, self.comparison, as_count(disclosure_limit, "disclosure_limit"))
        # Imported here: a document is made of audits.
        from localparity.auditing._document import plain_audit

        return plain_audit(self)

    def to_json(
        self,
        *,
        max_mcdp: float | None = None,
        decide_by: DecideBy = "estimate",
        disclosure_limit: int = DISCLOSURE_LIMIT,
    ) -> str:
        """Return the whole audit as JSON, in the shape that the command prints.

        Parameters
        ----------
        max_mcdp : float, optional
            The most that MCDP may be; the JSON says whether it is.
        decide_by : str
            What is compared with it, as in `passes`.
        disclosure_limit : int
            A group with fewer people is an error, as in `to_dict`.

        Returns
        -------
        str
            Groups that JSON cannot represent become text.
        """
        from localparity.auditing._document import Document

        bound: dict[str, Any] = {"max_mcdp": max_mcdp, "decide_by": decide_by}
        return Document(audits={"scores": self}, **bound, disclosure_limit=disclosure_limit).to_json()

    def to_markdown(self, *, title: str = "Local disparity audit", **options: Any) -> str:
        """Return the audit as Markdown, for a pull request or a wiki.

        Parameters
        ----------
        title : str
            The heading.
        **options
            ``max_mcdp``, ``decide_by`` and ``disclosure_limit``, as in `to_json`.

        Returns
        -------
        str

        Examples
        --------
        >>> import localparity as lp
        >>> census = lp.datasets.make_census(2000, random_state=0)
        >>> found = lp.audit(None, census.score, sensitive_features=census.sensitive_features, random_state=0)
        >>> print(found.to_markdown(max_mcdp=0.1).splitlines()[0])
        # Local disparity audit
        """
        from localparity.auditing._document import Document
        from localparity.report._markdown import to_markdown

        return to_markdown(Document(audits={"scores": self}, title=title, **options))

    def to_frame(self) -> Any:
        """Return all pairs at all epsilons, one row for each, as a frame of `library`, or of pandas."""
        return pair_frame(self)

    def to_html(self, path: str | PathLike[str], **options: Any) -> None:
        """Write the audit as one page that opens anywhere, offline; `localparity.report.write_page`.

        Parameters
        ----------
        path : path
            Where to write it.
        **options
            ``title``, ``max_mcdp``, ``decide_by``, ``disclosure_limit`` and ``force``, as in `write_page`.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import localparity as lp
        >>> census = lp.datasets.make_census(2000, random_state=0)
        >>> found = lp.audit(None, census.score, sensitive_features=census.sensitive_features, random_state=0)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> found.to_html(path)
        >>> path.stat().st_size < 3_000_000
        True
        """
        from localparity.report import write_page

        write_page(path, {"scores": self}, **options)

    def __repr__(self) -> str:
        """The verdict, and MCDP of the worst pair at each epsilon."""
        from localparity.report._tables import summary_of

        return summary_of(self)

    def _repr_html_(self) -> str | None:
        """The verdict and the findings for a notebook; nothing without the extra `report`."""
        from localparity.report.page._page import notebook_summary

        return notebook_summary(self)

    def __rich_console__(self, *_: Any) -> Iterator[Any]:
        """The audit as `rich.print` shows it."""
        from localparity.report._terminal import terminal_parts

        yield from terminal_parts(self)


# The pairs of an audit as a data frame, of pandas or of the library whose frames were audited.


def pair_frame(audit: Audit) -> Any:
    """All pairs at all epsilons, a row for each."""
    rows = pair_rows(audit)
    if audit.library in (None, "pandas"):
        return require("pandas", extra="data").DataFrame(rows)
    # Imported here: only those who have frames need it.
    import narwhals as nw

    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for name in ("group_a", "group_b"):
        columns[name] = _of_one_type(columns[name])
    return nw.from_dict(columns, backend=audit.library).to_native()  # type: ignore[arg-type]


def _of_one_type(groups: list[Any]) -> list[Any]:
    """Groups as they are, or their texts where a column of a frame could not hold all of them."""
    kinds = {type(group) for group in groups}
    return groups if len(kinds) == 1 and kinds <= {str, int, float, bool} else list(map(group_text, groups))
