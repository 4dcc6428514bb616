"""`localparity audit --scoring-rates`: the categories of a file, those that are not known among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from localparity._io._tables import Table, as_group_columns
from localparity.audit._scale import ScoreScale
from localparity.engines._missing import without_missing
from localparity.engines._table import ScoreColumns
from localparity.metrics import ScoringRates, scoring_rates


def check_scoring(given: Mapping[str, Any]) -> None:
    """Check that nothing is asked for that scoring rates do not have."""
    options = {f"--{name}": given[name] for name in ("model", "weight", "cluster", "split")}
    options |= {"--engine spark": given["engine"] == "spark", "--scale rank": given["scale"] == "rank"}
    options["several --score"] = len(given["score"] or []) > 1
    for option, value in options.items():
        if given["scoring"] and value:
            raise typer.BadParameter(f"cannot be used with {option}", param_hint="--scoring-rates")


def scoring_rates_of(
    tables: Mapping[str, Table], columns: Mapping[str, Any], asked: Mapping[str, Any]
) -> dict[str, ScoringRates]:
    """The scoring rates of files, in which rows without a category count as unknown."""
    score = columns["score"]
    names = as_group_columns(score, columns["group"])
    options: dict[str, Any] = {"disclosure_limit": asked["disclosure_limit"]}
    scale = ScoreScale.of(asked["scale"], asked["score_range"])
    found = {}
    for file, table in tables.items():
        named = ScoreColumns(score, names)
        scored = without_missing(table, named, groups="raise", missing=asked["missing"], texts=())
        values = scored.read(numbers=[score], groups=names)
        categories = {name: values[name] for name in names}
        options["missing_values"] = table.as_joined(asked["missing_values"])
        options["score_range"] = scale.range_of(None, values[score])
        found[file] = scoring_rates(None, values[score], sensitive_features=categories, **options)
    return found
