"""`localparity audit --split`: the cutoff of a number, such as age, with the largest disparity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from localparity._io._tables import Table
from localparity._validation import warn_of_unmatched
from localparity.audit._scale import as_data_range
from localparity.audit._wording import p_value_text
from localparity.cli._printing import note, print_json, print_line
from localparity.engines._missing import count_missing, without_missing
from localparity.engines._table import ScoreColumns
from localparity.metrics._window import percent
from localparity.uncertainty import WorstSplit

_NOT_WITH = ("group", "model", "weight", "cluster", "report", "out", "person_id", "method")
_NEEDED = {"scale": "score", "decide_by": "estimate", "engine": "duckdb"}


def check_split_and_classes(given: Mapping[str, Any]) -> None:
    """Check the options of an audit that say what is compared."""
    _check_split(given)
    _check_classes(given)


def _check_split(given: Mapping[str, Any]) -> None:
    """Check that there are groups or a number to split, and no options that a split has no use for."""
    if given["split"] is None:
        if not given["group"]:
            needed = "must name the column of the groups, or --split one of numbers, got neither"
            raise typer.BadParameter(needed, param_hint="--group")
        return
    unused = [f"--{_option(name)}" for name in _NOT_WITH if given[name]]
    unused += [f"--{_option(name)} {given[name]}" for name, need in _NEEDED.items() if given[name] != need]
    if given["form"] in ("markdown", "junit"):
        unused.append(f"--format {given['form']}")
    if unused:
        raise typer.BadParameter(f"cannot be used with {unused[0]}", param_hint="--split")


def _check_classes(given: Mapping[str, Any]) -> None:
    """Check that several scores are those of classes in one file, of which no labels say which is right."""
    score = given["score"] or []
    if len(score) < 2:
        return
    repeated = next((name for name in score if score.count(name) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(f"{repeated!r} is named twice", param_hint="--score")
    others = [f"--{_option(name)}" for name in ("label", "person_id", "split") if given[name]]
    others += ["several files"] if len(given["files"]) > 1 else []
    if others:
        raise typer.BadParameter(
            f"must be one column with {others[0]}, got {len(score)}", param_hint="--score"
        )


def _option(name: str) -> str:
    return "id" if name == "person_id" else name.replace("_", "-")


def audit_splits(
    tables: Mapping[str, Table],
    feature: str,
    score: str,
    asked: Mapping[str, Any],
    *,
    json: bool,
) -> bool:
    """Print the worst split of each file; whether all are within the bound."""
    found = {file: _worst_split(table, feature, score, asked) for file, table in tables.items()}
    epsilons, max_mcdp = asked["epsilons"], asked["max_mcdp"]
    if json:
        print_json({file: _plain(split, feature, epsilons) for file, split in found.items()})
    else:
        for file, split in found.items():
            for line in _told(split, file, feature, epsilons):
                print_line(line)
    for file, split in found.items():
        if max_mcdp is not None:
            verdict, relation = ("pass", "within") if split.mcdp <= max_mcdp else ("fail", "above")
            whose = f"{file}: " if len(found) > 1 else ""
            value = percent(split.mcdp)
            note(f"{verdict}: {whose}MCDP(0) is {value}, {relation} the bound of {percent(max_mcdp)}")
    return max_mcdp is None or all(split.mcdp <= max_mcdp for split in found.values())


def _worst_split(table: Table, feature: str, score: str, asked: Mapping[str, Any]) -> WorstSplit:
    from localparity.uncertainty import worst_split  # which imports numba

    score_range, label = asked["score_range"], asked["label"]
    if score_range == "data":
        score_range = as_data_range(*table.range_of(score), f"column {score!r}")
    table.check([score, feature])
    columns = ScoreColumns(score, (feature,), label, None, score_range)
    drop = {"missing": asked["missing"], "groups": "drop" if asked["missing_groups"] == "drop" else "raise"}
    texts = tuple(asked["missing_values"])
    if texts:
        warn_of_unmatched(count_missing(table, columns, texts).unmatched)
    kept = without_missing(table, columns, texts=texts, **drop)
    rows = kept.read(numbers=[score, feature, *([label] if label else [])])
    table.warn()
    return worst_split(
        rows[label] if label else None,
        rows[score],
        sensitive_features=rows[feature],
        criterion=asked["criterion"],
        score_range=score_range,
        min_group_size=max(asked["min_group_size"], asked["disclosure_limit"]),
        n_resamples=asked["n_resamples"],
        random_state=asked["random_state"],
        n_jobs=asked["n_jobs"],
    )


def _plain(found: WorstSplit, feature: str, epsilons: list[float]) -> dict[str, Any]:
    return {
        "feature": feature,
        "split": found.split,
        "rows": list(found.sizes),
        "mcdp": found.mcdp,
        "p_value": None if found.test is None else found.p_value,
        "least_rows": found.least,
        "clearest": None if found.clearest is None else _plain(found.clearest, feature, epsilons),
        "at_this_split": [{"epsilon": each, "mcdp": found.curve.mcdp(each)} for each in epsilons],
        "sentence": found.window.sentence,
    }


def _told(found: WorstSplit, file: str, feature: str, epsilons: list[float]) -> list[str]:
    others = ", ".join(f"MCDP({each:g}) {percent(found.curve.mcdp(each))}" for each in epsilons if each > 0.0)
    lines = [
        f"{file}: of all splits of {feature} with at least {found.least:,} people on either side, that at "
        f"{_numbers(found, 'has the largest MCDP(0),')}.",
        found.window.sentence,
        *([f"At this split: {others}."] if others else []),
    ]
    if found.clearest is not None:
        lines.append(
            "The clearest split, which stands out most from chance, is that at "
            f"{_numbers(found.clearest, 'with an MCDP(0) of')}."
        )
    if found.test is not None:
        lines.append(
            f"P-values allow for the search over all splits; without a disparity it would find "
            f"{percent(found.test.null_mean)} on average."
        )
    return [*lines, "Rows are assumed to be independent: one row for each person."]


def _numbers(found: WorstSplit, has: str) -> str:
    """Where a split is, its MCDP, its people and its p-value."""
    low, high = found.sizes
    test = "" if found.test is None else f"; p-value {p_value_text(found.p_value)}"
    return f"{found.split:g} {has} {percent(found.mcdp)}: {low:,} people at or below it, {high:,} above{test}"
