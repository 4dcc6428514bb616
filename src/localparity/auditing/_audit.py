"""Everything that is known of one set of predictions: how large the disparity is, where, and how sure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from typing import Any, Unpack

from localparity._io._table import as_table
from localparity._text import group_text
from localparity._types import (
    ArrayLike,
    Compare,
    Criterion,
    Group,
    Groups,
    HigherIs,
    IntervalMethod,
    MeasuredScale,
    Missing,
    MissingGroups,
    RangeOption,
    ScoreRange,
    Seed,
)
from localparity._validation import (
    InputError,
    as_count,
    as_threshold,
    require,
)
from localparity.auditing._answer import Answer, DecideBy, NotAssessed, answer_of, bound_result
from localparity.auditing._document import Document, DocumentKeywords, pair_records, plain_audit
from localparity.auditing._files import AuditColumns, Engine, Scorer, read_people, score_people
from localparity.auditing._findings import (
    Evidence,
    Finding,
    GroupSummary,
    LeftOut,
    PairSummary,
    summarise_groups,
)
from localparity.auditing._missing import NOTHING_MISSING, MissingRows
from localparity.auditing._options import AuditKeywords, AuditOptions
from localparity.auditing._people import People
from localparity.auditing._provenance import AuditedFile, Provenance, call_text
from localparity.auditing._tables import summary_of
from localparity.auditing._wording import assumptions_of
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._disclosure import DISCLOSURE_LIMIT, check_disclosure
from localparity.counts._score_counts import Data
from localparity.metrics import UnknownGroups
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.metrics._within import Verdict
from localparity.uncertainty import ImpactRatioCurve, WithinStrata
from localparity.uncertainty._bands import as_interval_method
from localparity.uncertainty._impact import impact_ratio_curve
from localparity.uncertainty._resampling import least_resamples


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
        All pairs with their intervals and p-values, the largest gap first and those too small to judge last.
    left_out : tuple of LeftOut
        The groups that were too small and left out.
    counts : ScoreCounts
        The counts of the groups that were compared, for figures; no part of what is written out.
    missing_rows : MissingRows
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
    At a cutoff of 0.2512, Males are at least 30 points more likely than Females to score
    above it.
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
    missing_rows: MissingRows = NOTHING_MISSING
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
        group: str | Sequence[str],
        score: str | None = None,
        label: str | None = None,
        weight: str | None = None,
        cluster: str | None = None,
        control: str | Sequence[str] | None = None,
        model: str | PathLike[str] | None = None,
        target: str | None = None,
        engine: Engine = "duckdb",
        allow_remote: bool = False,
        **options: Unpack[AuditKeywords],
    ) -> Audit:
        r"""Audit the scores in files, in a query or in a table of an engine, as the command does.

        Parameters
        ----------
        source : path, sequence of paths, query, relation, table, or table of Spark or Ibis
            CSV, TSV, Parquet, JSON lines or a workbook, also a glob; or what `open_table` returns.
        group : str or sequence of str
            The column of the groups; of several, the groups are the combinations that occur.
        score : str, optional
            The column of the scores; None where a model makes them.
        label, weight, cluster : str, optional
            The columns of the labels 0 and 1, of the weights, and of the person or household.
        control : str or sequence of str, optional
            The columns of the strata within which groups are compared too.
        model : path, optional
            The folder of a saved model that scores the people in the files.
        target : str, optional
            With a model, the column of its two classes, in place of labels.
        engine : str
            What counts the scores: "duckdb", "spark" or "ibis". Clusters need "duckdb".
        allow_remote : bool
            Whether files may be on other machines, which DuckDB then installs extensions for.
        **options
            The other arguments of `localparity.audit`, such as ``epsilons``, ``criterion`` or ``confidence``.

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
        if (score is None) == (model is None):
            count = "neither" if score is None else "both"
            raise InputError(f"must be a column, or model the folder of one, got {count}", "score")
        columns = AuditColumns(
            score=score,
            group=group,
            label=label,
            weight=weight,
            cluster=cluster,
            control=control,
            target=target,
        )
        folder = None if model is None else fspath(model)
        given = {**columns.named(), "control": control, "model": folder, **options}
        return read_audit(
            source,
            columns,
            AuditOptions(**options),
            call=call_text("lp.Audit.read", source, given),
            engine=engine,
            scorer=None if model is None else Scorer.load(model),
            allow_remote=allow_remote,
        )

    @property
    def rows(self) -> int:
        """How many rows were compared."""
        return sum(group.rows for group in self.groups)

    @property
    def confidence(self) -> float:
        """The probability with which the intervals hold."""
        return self.findings[0].interval.confidence

    @property
    def has_test(self) -> bool:
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
    def answer(self) -> Answer:
        """What was found, how sure that is and what can be done, in sentences and in numbers."""
        return answer_of(self)

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What the intervals and p-values take for granted, and over what they hold, in sentences."""
        return assumptions_of(self)

    def passes(
        self,
        max_mcdp: float,
        *,
        epsilon: float | None = None,
        decide_by: DecideBy = "estimate",
        required_groups: Sequence[str] = (),
        not_assessed: NotAssessed = "fail",
    ) -> bool:
        """Return whether MCDP is at most `max_mcdp`, and every group that is required was assessed.

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
        required_groups : sequence of str
            The groups that must be assessed, an intersection as "Female × Asian"; by default every group that
            occurs.
        not_assessed : str
            "fail" returns False where such a group has nobody or too few people, or where people have no
            group and could change the answer; "allow" does not.

        Returns
        -------
        bool
        """
        result = bound_result(
            self,
            max_mcdp,
            epsilon=epsilon,
            decide_by=decide_by,
            required_groups=required_groups,
            not_assessed=not_assessed,
        )
        return result.passes

    def verdict(self, max_mcdp: float, *, epsilon: float | None = None) -> Verdict:
        """Return what is known of the true MCDP and a bound.

        Parameters
        ----------
        max_mcdp : float
            The most that MCDP may be, a fraction in [0, 1].
        epsilon : float, optional
            One of the audit's epsilons; the smallest without it.

        Returns
        -------
        str
            "within" where the upper end of the interval is and every group that occurs was assessed, "above"
            where the lower end is, else "undecided".
        """
        return bound_result(self, max_mcdp, epsilon=epsilon).verdict

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
        return impact_ratio_curve(
            self.counts,
            reference=reference,
            higher_is=self.higher_is or "better",
            criterion=self.comparison.criterion,
            min_group_size=self.comparison.min_group_size,
            confidence=self.confidence if self.counts.exchangeable else None,
        )

    def to_dict(self, *, min_group_size: int = DISCLOSURE_LIMIT) -> dict[str, Any]:
        """Return the whole audit as plain dictionaries and lists.

        Parameters
        ----------
        min_group_size : int
            A group with fewer people is an error; `localparity.audit` leaves such groups out when it is
            given the same number. That of the audit counts where it is larger.

        Returns
        -------
        dict
        """
        limit = max(as_count(min_group_size, "min_group_size"), self.comparison.min_group_size)
        check_disclosure(self.counts, self.comparison, limit)
        return plain_audit(self)

    def to_json(self, **options: Unpack[DocumentKeywords]) -> str:
        """Return the whole audit as JSON, in the shape that the command prints.

        Parameters
        ----------
        **options
            ``max_mcdp``, the most that MCDP may be; ``decide_by``, ``required_groups`` and ``not_assessed``,
            as in `passes`; ``min_group_size``, as in `to_dict`; ``title``.

        Returns
        -------
        str
            Groups that JSON cannot represent become text.
        """
        return Document(audits={"scores": self}, **options).to_json()

    def to_markdown(self, **options: Unpack[DocumentKeywords]) -> str:
        """Return the audit as Markdown, for a pull request or a wiki.

        Parameters
        ----------
        **options
            Those of `to_json`.

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
        from localparity.report._markdown import to_markdown

        return to_markdown(Document(audits={"scores": self}, **options))

    def to_frame(self) -> Any:
        """Return all pairs at all epsilons, one row for each, as a frame of `library`, or of pandas."""
        rows = pair_records(self)
        if self.library in (None, "pandas"):
            return require("pandas", extra="data").DataFrame(rows)
        # Imported here: only those who have frames need it.
        import narwhals as nw

        columns = {name: [row[name] for row in rows] for name in rows[0]}
        for name in ("group_a", "group_b"):
            columns[name] = _of_one_type(columns[name])
        return nw.from_dict(columns, backend=self.library).to_native()  # type: ignore[arg-type]

    def to_html(
        self, path: str | PathLike[str], *, force: bool = False, **options: Unpack[DocumentKeywords]
    ) -> None:
        """Write the audit as one page that opens anywhere, offline; `localparity.report.write_page`.

        Parameters
        ----------
        path : path
            Where to write it.
        force : bool
            Overwrite the file if it exists.
        **options
            Those of `to_json`.

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

        write_page(path, {"scores": self}, force=force, **options)

    def __repr__(self) -> str:
        """The verdict, and MCDP of the worst pair at each epsilon."""
        return summary_of(self)

    def _repr_html_(self) -> str:
        """The first screen of the page, for a notebook."""
        from localparity.report.page._notebook import audit_html

        return audit_html(Document(audits={"scores": self}))

    def __rich_console__(self, *_: Any) -> Iterator[Any]:
        """The audit as `rich.print` shows it."""
        from localparity.report._terminal import TerminalDocument

        yield TerminalDocument(Document(audits={"Audit": self}))


def _of_one_type(groups: list[Any]) -> list[Any]:
    """Groups as they are, or their texts where a column of a frame could not hold all of them."""
    kinds = {type(group) for group in groups}
    return groups if len(kinds) == 1 and kinds <= {str, int, float, bool} else list(map(group_text, groups))


def audit(
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    control_features: Groups | None = None,
    epsilons: Sequence[float] = PAPER_EPSILONS,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    threshold: float | None = None,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    score_range: RangeOption = (0.0, 1.0),
    pos_label: Any = None,
    min_group_size: int = 1,
    missing_groups: MissingGroups = "raise",
    missing_values: str | Sequence[Any] = (),
    missing: Missing = "raise",
    confidence: float = 0.95,
    method: IntervalMethod | None = None,
    n_resamples: int = 1000,
    random_state: Seed = None,
    n_jobs: int | None = None,
    higher_is: HigherIs | None = None,
) -> Audit:
    """How large the disparity is, where it sits, for whom, and how sure that is.

    Parameters
    ----------
    y_true : array-like, Predictions, ScoreCounts or None
        Labels 0 and 1; None where the criterion does not need them. Predictions or ScoreCounts stand for all
        of the arrays.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row. Of several columns, the groups are the combinations that occur.
    control_features : array-like, data frame or mapping of columns, optional
        The stratum of each row, such as job, region or year: groups are compared within strata too.
    epsilons : sequence of float
        The half-widths of windows at which MCDP is reported.
    criterion : str
        Which people are compared: "demographic_parity" (everyone), "equal_opportunity" (label 1),
        "predictive_equality" (label 0) or "equalized_odds" (the worse of the two labels).
    compare : str
        "between_groups" takes the worst pair, "to_overall" compares each group with everyone.
    threshold : float, optional
        The threshold of delta-DP, in the scores' own units; None compares mean scores.
    sample_weight : array-like, optional
        Weights that are not negative.
    cluster : array-like, optional
        The person or household that each row belongs to; rows are assumed independent without it.
    score_range : tuple of float, "data" or "rank"
        The lowest and the highest score there can be, of which an epsilon is a fraction. "data" takes those
        of the scores themselves; "rank" replaces each score by the share of people at or below it, so that
        an epsilon is a share of people.
    pos_label : object, optional
        The label that counts as 1, the other one as 0; without it, labels are 0 and 1.
    min_group_size : int
        A group with fewer rows among the people compared is left out and named, as if it were not there.
        `Audit.to_json` and `Audit.to_html` need 10, or to be asked for less.
    missing_groups : str
        What is done with rows that have no group: an error that counts them ("raise"); left out and counted
        ("drop"); made a group ("group"); or left out, with the smallest and the largest MCDP that
        their groups could make ("bound").
    missing_values : str or sequence
        Values that mean no group, in addition to None, NaN and blanks.
    missing : str
        Whether a row without a score, label or weight is an error ("raise") or left out and counted ("drop").
    confidence : float
        The probability with which each interval holds; the lower ends of all pairs, labels and epsilons hold
        together.
    method : str, optional
        How intervals are made, "finite_sample" or "bootstrap", as in `mcdp_interval`; where the test does not
        reject parity for a pair, its interval goes down to 0.
    n_resamples : int
        How many resamples the test draws, and the bootstrap; 0 leaves the test out.
    random_state : int, Generator or None
        The same seed gives the same result.
    n_jobs : int, optional
        How many resamples run at a time, -1 for as many as there are cores.
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
    >>> audit = lp.audit(None, scores, sensitive_features=sex, epsilons=[0, 0.1], random_state=0)
    >>> [finding.mcdp for finding in audit.findings]
    [0.6666666666666666, 0.3333333333333333]
    """
    options = AuditOptions(
        epsilons=epsilons,
        criterion=criterion,
        compare=compare,
        score_range=score_range,
        threshold=threshold,
        pos_label=pos_label,
        min_group_size=min_group_size,
        missing_groups=missing_groups,
        missing_values=missing_values,
        missing=missing,
        confidence=confidence,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
        n_jobs=n_jobs,
        higher_is=higher_is,
    )
    people = People.of_arrays(
        options,
        y_true=y_true,
        y_score=y_score,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        cluster=cluster,
        control_features=control_features,
    )
    return audit_people(people, options)


def audit_people(
    people: People,
    options: AuditOptions,
    provenance: Provenance | None = None,
    file: AuditedFile | None = None,
) -> Audit:
    """The audit of people, whatever they were read from."""
    counts, left_out, missing_rows = people.compared(options)
    method = as_interval_method(options.method, counts)
    threshold = None if options.threshold is None else as_threshold(options.threshold, counts.score_range)
    evidence = Evidence.gather(counts, options, method=method, threshold=threshold)
    pairs, comparison = evidence.pairs(), options.comparison
    unknown = options.policy.bounds(people.counts, counts.groups, comparison, options.epsilon_array)
    return Audit(
        comparison=comparison,
        score_range=counts.score_range,
        method=method,
        n_resamples=options.n_resamples,
        threshold=threshold,
        higher_is=options.higher_is,
        groups=summarise_groups(counts, comparison, pairs),
        findings=evidence.findings(),
        pairs=pairs,
        left_out=left_out,
        counts=counts,
        missing_rows=missing_rows,
        scale=options.scale,
        unknown_groups=unknown,
        within_strata=None if people.strata is None else people.strata.compared(counts.groups, options),
        provenance=provenance,
        library=people.library,
        file=file,
    )


def read_audit(
    source: Any,
    columns: AuditColumns,
    options: AuditOptions,
    *,
    call: str,
    engine: Engine = "duckdb",
    scorer: Scorer | None = None,
    allow_remote: bool = False,
) -> Audit:
    """The audit of the scores in files or a table, or of those that a model gives the people in them."""
    if scorer is not None:
        source = as_table(source, allow_remote=allow_remote)
    provenance = Provenance.now(call, source=source, columns=columns.named(), seed=options.random_state)
    if scorer is None:
        people = read_people(source, columns, options, engine=engine, allow_remote=allow_remote)
    else:
        people = score_people(source, scorer, columns, options)
    file = AuditedFile.of(source, provenance, options) if engine == "duckdb" else None
    return audit_people(people, options, provenance, file)
