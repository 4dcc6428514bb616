"""What can be done after an audit: commands that work on the same file, with what the audit was told."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from localparity._io._table import as_table, unfit_features
from localparity._types import ScoreRange
from localparity.auditing._provenance import Provenance
from localparity.auditing._scale import as_data_range

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit


_USUAL_BOUND = 0.05
_MOST_FILES = 5
_ELSEWHERE = "Fit a model within the bound, with localparity repair, where its features and classes are"


@dataclass(frozen=True)
class Step:
    """What can be done, and the command that does it; "" where no command can."""

    text: str
    command: str


@dataclass(frozen=True, kw_only=True)
class AuditedFile:
    """What a command that goes on from an audit has to know of the files that were read.

    Attributes
    ----------
    paths : tuple of str
        The files, all on this machine.
    reading : mapping
        How they were read: the options of `open_table` that were given.
    missing : mapping
        What was done with rows that lack a value: the options of an audit that were given.
    score_range : tuple of float
        The range of the scores as they are in the file.
    features : tuple of str
        The columns without a use in the audit that a model may learn from.
    others : tuple of str
        The columns without a use that it may not, such as identifiers.
    """

    paths: tuple[str, ...]
    reading: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, Any] = field(default_factory=dict)
    score_range: ScoreRange = (0.0, 1.0)
    features: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Any, provenance: Provenance, options: Mapping[str, Any]) -> AuditedFile | None:
        """What is known of a source; None where it is not a few files on this machine."""
        paths = tuple(file.name for file in provenance.files if file.sha256 is not None)
        if not 0 < len(paths) == len(provenance.files) <= _MOST_FILES:
            return None
        table, columns = as_table(source), provenance.columns
        score_range = options.get("score_range", (0.0, 1.0))
        if score_range == "data":
            score = columns["score"]
            score_range = as_data_range(*table.range_of(str(score)), f"column {score!r}")
        used = {name for use in columns.values() for name in _listed(use)}
        rest, target = [name for name in table.columns if name not in used], _target(columns)
        unfit = dict.fromkeys(rest, "")
        if target is not None and len(paths) == 1:
            with suppress(ValueError):  # as where two columns have one name
                unfit = unfit_features(table, rest, target)
        return cls(
            paths=paths,
            reading=table.options,
            missing={name: options[name] for name in _MISSING if options.get(name) not in (None, "raise")},
            score_range=score_range,
            features=tuple(name for name in rest if name not in unfit),
            others=tuple(unfit),
        )


def _target(columns: Mapping[str, Any]) -> str | None:
    target: str | None = columns.get("target", columns.get("label"))
    return target


_MISSING = ("missing_groups", "missing_values", "missing")


def next_steps(audit: Audit, max_mcdp: float | None, *, within: bool) -> tuple[Step, ...]:
    """What the finding calls for, the most pressing first."""
    most = _USUAL_BOUND if max_mcdp is None else max_mcdp
    watch = Step("Watch the scores as new people are scored", _watch(audit, most))
    status = audit.verdict.status
    if status == "undecided":
        return (Step("Find out how many people it takes", _plan(audit, most)), *_that_work(watch))
    if status == "not found" and (max_mcdp is None or within):
        return (watch,)
    repair = _fit(audit, most, "repair", "repaired")
    if max_mcdp is not None and within:
        return (watch, *_that_work(Step("Or fit a model with a smaller disparity", repair)))
    if not repair:
        return (Step(_ELSEWHERE, ""), *_that_work(watch))
    train = Step("Or train one with a penalty on the disparity", _fit(audit, most, "train", "trained"))
    return (Step("Fit a model whose scores are repaired to a bound", repair), *_that_work(train, watch))


def _that_work(*steps: Step) -> tuple[Step, ...]:
    return tuple(step for step in steps if step.command)


def _plan(audit: Audit, most: float) -> str:
    sizes = ",".join(str(group.rows) for group in audit.groups[:20])
    return f"localparity plan --group-sizes {sizes}" + (f" --mcdp {most:g}" if 0.0 < most < 1.0 else "")


def _watch(audit: Audit, most: float) -> str:
    """The command that appends the file to a monitor; "" where a file has no scores."""
    columns, file = _columns(audit), audit.file
    if file is not None and "score" not in columns:
        return ""
    comparison = audit.comparison
    options = {
        "score": columns.get("score", "SCORE"),
        "group": columns.get("group", ["GROUP"]),
        "score_range": _range_text(audit),
        "label": columns.get("label", "LABEL") if comparison.needs_labels else None,
        "criterion": None if comparison.criterion == "demographic_parity" else comparison.criterion,
        "compare": None if comparison.compare == "between_groups" else comparison.compare,
        "epsilon": audit.findings[0].epsilon or None,
    }
    if file is not None:
        missing = dict(file.missing)
        if missing.get("missing_groups") == "bound":
            missing["missing_groups"] = "drop"
        options |= {**file.reading, **missing}
    return _command("monitor append history", _files(audit), options, max_mcdp=most)


def _fit(audit: Audit, most: float, command: str, out: str) -> str:
    """A command that fits a model; "" where the file lacks what that takes."""
    columns, file = _columns(audit), audit.file
    target = _target(columns)
    options: dict[str, Any] = {"target": target or "TARGET", "group": columns.get("group", ["GROUP"])}
    if file is not None:
        lacking = audit.missing.groups or audit.missing.labels or audit.missing.weights
        if target is None or lacking or not file.features or not {"encoding", "sheet"} >= set(file.reading):
            return ""
        unused = [columns[use] for use in ("score", "cluster") if use in columns]
        label = [columns["label"]] if columns.get("label", target) != target else []
        options |= {"weight": columns.get("weight"), "drop": [*unused, *label, *file.others], **file.reading}
    criterion = audit.comparison.criterion
    options["criterion"] = None if criterion == "demographic_parity" else criterion
    options["epsilon"] = audit.findings[0].epsilon or None
    return _command(command, _files(audit), options, max_mcdp=most, out=out)


def _columns(audit: Audit) -> dict[str, Any]:
    return {} if audit.provenance is None else dict(audit.provenance.columns)


def _files(audit: Audit) -> list[str]:
    if audit.file is not None:
        return list(audit.file.paths)
    named = [] if audit.provenance is None else [file.name for file in audit.provenance.files]
    return named if len(named) == 1 else ["FILE"]


def _range_text(audit: Audit) -> str | None:
    """The score range as a command takes it, where it is not 0 to 1."""
    if audit.file is None and audit.scale == "rank":
        return "LOW,HIGH"
    low, high = audit.score_range if audit.file is None else audit.file.score_range
    return None if (low, high) == (0.0, 1.0) else f"{low:.15g},{high:.15g}"


def _command(name: str, files: list[str], options: Mapping[str, Any], **last: Any) -> str:
    """A command as a shell takes it, without the options that are None."""
    words = ["localparity", *name.split(), *files]
    for option, value in (dict(options) | last).items():
        flag = "--missing-value" if option == "missing_values" else f"--{option.replace('_', '-')}"
        if value is True:
            words.append(flag)
        for each in _listed(value):
            words += [flag, f"{each:g}" if isinstance(each, float) else str(each)]
    return shlex.join(words)


def _listed(value: Any) -> list[Any]:
    """One value or several; none where there is no value, or only a flag."""
    if value is None or isinstance(value, bool):
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
