"""What can be done after an audit: options of the same call, and commands that work on the same files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localparity.auditing._provenance import AuditedFile, target_of

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit


_USUAL_BOUND = 0.05
_FEWEST_FEATURES = 2
"""A file with fewer columns next to scores, groups and classes is one of scores, not of people to fit on."""
_ELSEWHERE = "Fit a model within the bound, with localparity repair, where its features and classes are"


@dataclass(frozen=True)
class Step:
    """What can be done, and the option, call or command that does it; "" where there is none."""

    text: str
    command: str


def next_steps(
    audit: Audit, status: str, max_mcdp: float | None, *, within: bool = False
) -> tuple[Step, ...]:
    """Options of the same command, or calls of the audit, then the commands that the finding asks for."""
    if audit.provenance is not None and audit.provenance.call.startswith("localparity "):
        again = [Step("charts", "--report page.html"), Step("", "--json")]
        again += [Step("pass/fail", "--max-mcdp 0.10")] if max_mcdp is None else []
    else:
        again = [Step("", 'audit.to_html("page.html")'), Step("", "audit.to_json()")]
        again += [Step("", "audit.passes(0.10)")] if max_mcdp is None else []
    return (*again, *_commands(audit, status, max_mcdp, within))


def _commands(audit: Audit, status: str, max_mcdp: float | None, within: bool) -> tuple[Step, ...]:
    """Commands on the audited files, the most pressing first; arrays have none."""
    most = _USUAL_BOUND if max_mcdp is None else max_mcdp
    if status == "undecided":
        steps = [Step("Find out how many people it takes", _plan(audit, most))]
    elif max_mcdp is not None and within:
        steps = [Step("Or fit a model with a smaller disparity", _fit(audit, most, "repair", "repaired"))]
    elif status == "none found" and max_mcdp is None:
        steps = []
    else:
        why = Step("Find out which features carry the gap", _explain(audit))
        steps = [
            why,
            Step("Fit a model whose scores are repaired to a bound", _fit(audit, most, "repair", "repaired")),
            Step("Or train one with a penalty on the disparity", _fit(audit, most, "train", "trained")),
        ]
        if not steps[1].command:
            return (*_that_work(why), Step(_ELSEWHERE, ""), *_that_work(_watch(audit, most)))
    return _that_work(*steps, _watch(audit, most))


def _that_work(*steps: Step) -> tuple[Step, ...]:
    return tuple(step for step in steps if step.command)


def _plan(audit: Audit, most: float) -> str:
    sizes = ",".join(str(group.rows) for group in audit.groups[:20])
    return f"localparity plan --group-sizes {sizes}" + (f" --mcdp {most:g}" if 0.0 < most < 1.0 else "")


def _watch(audit: Audit, most: float) -> Step:
    """Append the files to a monitor, where they have scores."""
    text, file, columns = "Watch the scores as new people are scored", audit.file, _columns(audit)
    if file is None or "score" not in columns:
        return Step(text, "")
    comparison, missing = audit.comparison, dict(file.missing)
    if missing.get("missing_groups") == "bound":
        missing["missing_groups"] = "drop"
    low, high = file.score_range
    options = {
        "score": columns["score"],
        "group": columns["group"],
        "score_range": None if (low, high) == (0.0, 1.0) else f"{low:.15g},{high:.15g}",
        "label": columns["label"] if comparison.needs_labels else None,
        "compare": None if comparison.compare == "between_groups" else comparison.compare,
        **_question(audit),
        **file.reading,
        **missing,
    }
    return Step(text, _command("monitor append history", file, options, max_mcdp=most))


def _explain(audit: Audit) -> str:
    """A command that explains the gap; "" where the file has no other columns, or lacks values."""
    columns, file, missing = _columns(audit), audit.file, audit.missing_rows
    if file is None or "score" not in columns or len(file.paths) > 1:
        return ""
    if not (file.features or file.others) or audit.comparison.criterion == "equalized_odds":
        return ""
    if missing.groups or missing.labels or missing.weights:
        return ""
    low, high = file.score_range
    options = {use: columns.get(use) for use in ("score", "group", "label", "weight", "cluster")}
    options["score_range"] = None if (low, high) == (0.0, 1.0) else f"{low:.15g},{high:.15g}"
    options["criterion"] = _question(audit)["criterion"]
    return _command("explain", file, options)


def _fit(audit: Audit, most: float, command: str, out: str) -> str:
    """A command that fits a model; "" where the file lacks what that takes."""
    columns, file = _columns(audit), audit.file
    target = target_of(columns)
    missing = audit.missing_rows
    if file is None or target is None or missing.groups or missing.labels or missing.weights:
        return ""
    if len(file.features) < _FEWEST_FEATURES or not {"encoding", "sheet"} >= set(file.reading):
        return ""
    unused = [columns[use] for use in ("score", "cluster") if use in columns]
    label = [columns["label"]] if columns.get("label", target) != target else []
    options = {
        "target": target,
        "group": columns["group"],
        "weight": columns.get("weight"),
        "drop": [*unused, *label, *file.others],
        **file.reading,
        **_question(audit),
    }
    return _command(command, file, options, max_mcdp=most, out=out)


def _question(audit: Audit) -> dict[str, Any]:
    criterion = audit.comparison.criterion
    return {
        "criterion": None if criterion == "demographic_parity" else criterion,
        "epsilon": audit.findings[0].epsilon or None,
    }


def _columns(audit: Audit) -> dict[str, Any]:
    return {} if audit.provenance is None else dict(audit.provenance.columns)


def _command(name: str, file: AuditedFile, options: Mapping[str, Any], **last: Any) -> str:
    """A command as a shell takes it, without the options that are None."""
    words = ["localparity", *name.split(), *file.paths]
    for option, value in (dict(options) | last).items():
        flag = "--missing-value" if option == "missing_values" else f"--{option.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not None:
            values = value if isinstance(value, list | tuple) else [value]
            words += [word for one in values for word in (flag, _word(one))]
    return shlex.join(words)


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
