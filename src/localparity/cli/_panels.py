"""The options of a command with many of them, in help: by what they are about."""

from __future__ import annotations

from typing import Any

_MANY = 30
_PANELS = {
    "Scores and columns": (
        "table", "score", "group", "label", "weight", "cluster", "person_id", "model", "target", "control",
        "split",
    ),
    "What is compared": (
        "epsilon", "criterion", "compare", "score_range", "scale", "threshold", "higher_is", "min_group_size",
        "small_groups", "disclosure_limit", "missing_groups", "missing_values", "missing", "normalise_groups",
    ),
    "Bounds and rules": ("max_mcdp", "decide_by", "min_ratio", "scoring"),
    "How sure": ("method", "confidence", "resamples", "seed", "jobs"),
    "Reading files": ("engine", "encoding", "decimal", "sheet", "allow_remote"),
    "Output": ("form", "json", "report", "out", "title", "force"),
}  # fmt: skip


def sort_into_panels(params: list[Any]) -> list[Any]:
    """The parameters of a command, each option with its panel where there are many."""
    if len(params) < _MANY:
        return params
    titles = {name: title for title, names in _PANELS.items() for name in names}
    order = list(titles)
    for param in params:
        if param.name in titles:
            param.rich_help_panel = titles[param.name]
    return sorted(params, key=lambda param: order.index(param.name) if param.name in titles else -1)
