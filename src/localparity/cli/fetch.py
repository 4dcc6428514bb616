"""`localparity fetch`: a data set of the paper into the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import localparity as lp
from localparity.cli._options import check_folder
from localparity.datasets._fetch import cache_folder

_FETCH = {"adult": lp.datasets.fetch_adult, "bank": lp.datasets.fetch_bank}


def fetch(
    dataset: Annotated[Literal["adult", "bank"], typer.Argument(help="Which data set.")],
    data_home: Annotated[
        Path | None, typer.Option(help="The cache folder, in place of the user's own.")
    ] = None,
) -> None:
    """Download a data set, check it, and keep it for `reproduce` and for `localparity.datasets`.

    Files that are in the folder named by LOCALPARITY_DATA, or in the cache, are checked and not downloaded.
    Exit codes: 0 when it is there, 2 when it cannot be had.
    """
    if data_home is not None:
        check_folder(data_home, "--data-home")
    people = _FETCH[dataset](data_home=data_home, as_frame=False)
    kept = cache_folder(data_home) / dataset
    place = f"in {kept}" if kept.is_dir() else "in the folder named by LOCALPARITY_DATA"
    typer.echo(f"{dataset}: {len(people.target):,} people, {place}")
