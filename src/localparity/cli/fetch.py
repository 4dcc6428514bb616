"""`localparity fetch`: download a data set of the paper into the cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

import localparity as lp
from localparity.cli._commands import print_json, print_line
from localparity.cli._options import check_folder
from localparity.datasets._fetch import cache_folder

_FETCH = {"adult": lp.datasets.fetch_adult, "bank": lp.datasets.fetch_bank}


def fetch(
    dataset: Annotated[Literal["adult", "bank"], typer.Argument(help="Which data set.")],
    data_home: Annotated[
        Path | None, typer.Option(help="The cache folder; the user's own by default.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Download a data set, check it, and keep it for `reproduce` and for `localparity.datasets`.

    Files in the folder that LOCALPARITY_DATA names, or in the cache, are checked and not downloaded.
    Exit codes: 0 when the data set is there, 2 for wrong usage or a download that fails.
    """
    if data_home is not None:
        check_folder(data_home, "--data-home")
    rows = len(_FETCH[dataset](data_home=data_home, as_frame=False).target)
    local = Path(os.environ.get("LOCALPARITY_DATA", "")) / dataset
    folder = local if local.is_dir() else cache_folder(data_home) / dataset
    if json:
        print_json({"dataset": dataset, "rows": rows, "folder": str(folder)})
    else:
        print_line(f"{dataset}: {rows:,} people, in {folder}")
