"""What agrees with the paper and what does not, as it follows from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from localparity.paper._data import DATA_SETS
from localparity.paper._methods import TITLES
from localparity.paper._published import METRICS, published
from localparity.paper._results_table import METRIC_TITLES, is_outside
from localparity.paper._selection import Selection, by_data_set


def findings(selections: Sequence[Selection]) -> list[str]:
    """What could not be reproduced, as it follows from the numbers.

    Parameters
    ----------
    selections : sequence of Selection
        What the rule chose of every data set and method.

    Returns
    -------
    list of str
        Lines of Markdown; none where there is nothing to compare.
    """
    lines: list[str] = []
    for own in by_data_set([each for each in selections if each.preset == "paper"]):
        plain = {each.method: each for each in own if each.variant == TITLES[each.method] and each.chosen}
        theirs = {method: published(own[0].dataset, method) for method in plain}
        if not any(theirs.values()):
            continue
        lines += _differences(plain)
        missing = [title for method, title in TITLES.items() if method not in plain]
        if missing:
            lines += ["", f"{DATA_SETS[own[0].dataset].title} has no chosen run of {', '.join(missing)}."]
        ours = sorted(plain, key=lambda method: _mean(plain[method]))
        paper = sorted(plain, key=lambda method: theirs[method]["mcdp_0"].mean)
        lines += ["", f"Order in MCDP(0), {DATA_SETS[own[0].dataset].title}, lowest first:", ""]
        lines += [f"- here: {_order(ours)}", f"- in the paper: {_order(paper)}", ""]
    lines += _failures(selections)
    return ["## What could not be reproduced", "", *lines] if lines else []


def _differences(plain: dict[str, Selection]) -> list[str]:
    lines = []
    for method, selection in plain.items():
        for metric in METRICS:
            if is_outside(selection, metric):
                measured, theirs = selection.measured(metric), published(selection.dataset, method)[metric]
                assert measured is not None
                lines.append(
                    f"- {DATA_SETS[selection.dataset].title}, {TITLES[method]}: {METRIC_TITLES[metric]} is "
                    f"{measured.mean:.2f} where the paper has {theirs.mean:.2f} ± {theirs.deviation:.2f}"
                )
    return lines or [
        "Every value in the table is within the paper's deviation, or 1.0 point where that is larger."
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


def _mean(selection: Selection) -> float:
    measured = selection.measured("mcdp_0")
    assert measured is not None
    return measured.mean
