"""What follows from the numbers: where they differ from the paper's, and which baselines beat DiffMCDP."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from localparity.paper._data import DATA_SETS
from localparity.paper._grids import TITLES
from localparity.paper._published import METRICS, published
from localparity.paper._results_table import METRIC_TITLES, is_outside
from localparity.paper._selection import Selection, by_data_set, by_grid, by_strength, by_variant
from localparity.paper._store import Record

_COMPARED = ("mcdp_0", "mcdp_0_05")


def findings(selections: Sequence[Selection]) -> list[str]:
    """What could not be reproduced, as lines of Markdown; none if there is nothing to compare."""
    lines: list[str] = []
    for own in by_data_set([each for each in selections if each.preset == "paper"]):
        plain = {each.method: each for each in own if each.variant == TITLES[each.method] and each.chosen}
        theirs = {method: published(own[0].dataset, method) for method in plain}
        if not any(theirs.values()):
            continue
        title = DATA_SETS[own[0].dataset].title
        lines += _differences(plain)
        missing = [title for method, title in TITLES.items() if method not in plain]
        if missing:
            lines += ["", f"{title} has no chosen run of {', '.join(missing)}."]
        ours = sorted(plain, key=lambda method: plain[method].mean("mcdp_0"))
        paper = sorted(plain, key=lambda method: theirs[method]["mcdp_0"].mean)
        lines += ["", f"Order in MCDP(0), {title}, lowest first:", ""]
        lines += [f"- here: {_order(ours)}", f"- in the paper: {_order(paper)}", ""]
    lines += _failures(selections)
    return ["## What could not be reproduced", "", *lines] if lines else []


def _differences(plain: dict[str, Selection]) -> list[str]:
    lines = []
    for method, selection in plain.items():
        for metric in METRICS:
            if is_outside(selection, metric):
                theirs = published(selection.dataset, method)[metric]
                lines.append(
                    f"- {DATA_SETS[selection.dataset].title}, {TITLES[method]}: {METRIC_TITLES[metric]} is "
                    f"{selection.mean(metric):.2f}, in the paper {theirs.mean:.2f} ± {theirs.deviation:.2f}"
                )
    return lines or [
        "Every value in the table is within the paper's deviation, or 1.0 point if that is larger."
    ]


def _failures(selections: Sequence[Selection]) -> list[str]:
    return [
        f"- {DATA_SETS[each.dataset].title}, preset {each.preset}, {each.variant}: no strength keeps 95% of "
        f"ERM's validation AP at {'seeds' if len(each.failed) > 1 else 'seed'} "
        f"{', '.join(map(str, each.failed))}, and nothing is reported there"
        for each in selections
        if each.failed
    ]


def _order(methods: Sequence[str]) -> str:
    return ", ".join(TITLES[method] for method in methods)


def comparison(selections: Sequence[Selection], records: Sequence[Record]) -> list[str]:
    """The best form of DiffMCDP against every baseline at every strength, as lines of Markdown."""
    runs_of = dict(by_grid(records))
    lines: list[str] = []
    for own in by_data_set(selections):
        ours = best_form(own)
        if ours is None:
            continue
        numbers = ", ".join(
            f"{METRIC_TITLES[metric]} {ours.mean(metric):.2f}" for metric in ("ap", *_COMPARED)
        )
        title = DATA_SETS[ours.dataset].title
        lines += ["", f"{title}, preset {ours.preset}: {ours.variant} has {numbers}.", ""]
        lines += better_baselines(ours, runs_of[ours.dataset, ours.preset]) or [
            "- No baseline has at least that AP and a lower MCDP(0) or MCDP(0.05), at any strength."
        ]
    return ["## DiffMCDP against the baselines", *lines, ""] if lines else []


def best_form(selections: Sequence[Selection]) -> Selection | None:
    """The form of DiffMCDP with the lowest mean validation MCDP(0), if one is chosen at every seed."""
    forms = [each for each in selections if each.method == "diffmcdp" and each.chosen and not each.failed]
    return min(forms, key=lambda each: each.mean("mcdp_0", "val"), default=None)


def better_baselines(ours: Selection, records: Sequence[Record]) -> list[str]:
    """A line for each baseline and strength whose mean test AP is at least ours and whose MCDP is lower."""
    lines = []
    for variant, runs in by_variant(records):
        if runs[0].run.method == "diffmcdp":
            continue
        for strength, own in by_strength(runs).items():
            means = {metric: _mean(own, metric) for metric in ("ap", *_COMPARED)}
            if means["ap"] < ours.mean("ap"):
                continue
            lines += [
                f"- {variant} at strength {strength:g} has AP {means['ap']:.2f} and a lower "
                f"{METRIC_TITLES[metric]}, {means[metric]:.2f}"
                for metric in _COMPARED
                if means[metric] < ours.mean(metric)
            ]
    return lines


def _mean(records: Sequence[Record], metric: str) -> float:
    return 100.0 * statistics.fmean(record.metrics[f"test_{metric}"] for record in records)
