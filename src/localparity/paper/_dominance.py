"""Whether any baseline does as well as DiffMCDP with less disparity."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from localparity.paper._data import DATA_SETS
from localparity.paper._results_table import METRIC_TITLES
from localparity.paper._selection import Selection, by_data_set, by_grid, by_variant
from localparity.paper._store import Record

_COMPARED = ("mcdp_0", "mcdp_0_05")


class Better(NamedTuple):
    """A baseline at a strength with at least DiffMCDP's AP and less of a disparity, in percent."""

    variant: str
    strength: float
    ap: float
    metric: str
    value: float


def best_form(selections: Sequence[Selection]) -> Selection | None:
    """The form of DiffMCDP with the lowest mean validation MCDP(0) among those that the rule chose."""
    forms = [each for each in selections if each.method == "diffmcdp" and each.chosen and not each.failed]
    return min(
        forms,
        key=lambda each: statistics.fmean(record.metrics["val_mcdp_0"] for record in each.chosen.values()),
        default=None,
    )


def better_baselines(ours: Selection, records: Sequence[Record]) -> list[Better]:
    """Baselines at any strength whose mean test AP is at least ours and whose MCDP is lower.

    Parameters
    ----------
    ours : Selection
        What the rule chose of DiffMCDP.
    records : sequence of Record
        All runs of the same data set and preset.

    Returns
    -------
    list of Better
    """
    found = []
    bar = ours.measured("ap")
    assert bar is not None
    for variant, runs in by_variant(records):
        if runs[0].run.method == "diffmcdp":
            continue
        for strength in sorted({record.run.strength for record in runs}):
            own = [record for record in runs if record.run.strength == strength]
            means = {metric: _mean(own, metric) for metric in ("ap", *_COMPARED)}
            if means["ap"] < bar.mean:
                continue
            for metric in _COMPARED:
                measured = ours.measured(metric)
                assert measured is not None
                if means[metric] < measured.mean:
                    found.append(Better(variant, strength, means["ap"], metric, means[metric]))
    return found


def comparison(selections: Sequence[Selection], records: Sequence[Record]) -> list[str]:
    """For every data set and preset, the best form of DiffMCDP against every baseline at every strength.

    Parameters
    ----------
    selections : sequence of Selection
        What the rule chose.
    records : sequence of Record
        All runs.

    Returns
    -------
    list of str
        Lines of Markdown.
    """
    of_grid = dict(by_grid(records))
    lines: list[str] = []
    for own in by_data_set(selections):
        ours = best_form(own)
        if ours is None:
            continue
        values = {metric: ours.measured(metric) for metric in ("ap", *_COMPARED)}
        told = ", ".join(f"{METRIC_TITLES[name]} {each.mean:.2f}" for name, each in values.items() if each)
        lines += [
            "",
            f"{DATA_SETS[ours.dataset].title}, preset {ours.preset}: {ours.variant} has {told}.",
            "",
        ]
        better = better_baselines(ours, of_grid[ours.dataset, ours.preset])
        lines += [
            f"- {each.variant} at strength {each.strength:g} has AP {each.ap:.2f} and a lower "
            f"{METRIC_TITLES[each.metric]}, {each.value:.2f}"
            for each in better
        ] or ["- No baseline has at least that AP and a lower MCDP(0) or MCDP(0.05), at any strength."]
    return ["## DiffMCDP against the baselines", *lines, ""] if lines else []


def _mean(records: Sequence[Record], metric: str) -> float:
    return 100.0 * statistics.fmean(record.metrics[f"test_{metric}"] for record in records)
