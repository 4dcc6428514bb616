"""`localparity predict`: a model and a file of people in, their scores out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from localparity._io._duckdb import connect, quote_name, quote_text
from localparity._io._files import replacing
from localparity._validation import require
from localparity.auditing._files import Scorer
from localparity.cli._commands import print_result
from localparity.cli._options import (
    EncodingOption,
    ForceOption,
    PeopleArgument,
    RemoteOption,
    SheetOption,
    check_file,
    open_file,
)

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_FORMATS = {".csv": "FORMAT csv, HEADER", ".parquet": "FORMAT parquet"}


def predict(
    model: Annotated[Path, typer.Argument(help="The folder of a saved model.")],
    file: PeopleArgument,
    out: Annotated[Path, typer.Option(help="The file of scores to write: .csv or .parquet.")],
    group: Annotated[
        list[str] | None, typer.Option(help="The column of the groups, for a model that needs them.")
    ] = None,
    score: Annotated[str, typer.Option(help="The name of the column of scores.")] = "score",
    keep: Annotated[list[str] | None, typer.Option(help="A column of the file to write as well.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
    force: ForceOption = False,
    encoding: EncodingOption = None,
    sheet: SheetOption = None,
    allow_remote: RemoteOption = False,
) -> None:
    """Score the rows of a file with a model.

    Exit codes: 0 when it is done, 2 for bad usage or input.
    """
    if out.suffix.lower() not in _FORMATS:
        raise typer.BadParameter(f"must be a .csv or .parquet file, got {str(out)!r}", param_hint="--out")
    check_file(out, "--out", read=[file], replace=force)
    scorer = Scorer.load(model)
    if scorer.needs_group != bool(group):
        needs = "is not needed by this model" if group else "must be given: this model needs the groups"
        raise typer.BadParameter(needs, param_hint="--group")
    table = open_file(file, encoding=encoding, sheet=sheet, allow_remote=allow_remote)
    kept = table.read(numbers=[], values=keep) if keep else {}
    if score in kept:
        raise typer.BadParameter(f"{score!r} is a column that is kept", param_hint="--score")
    scores = scorer.score(table, group or [])
    _write(out, require("pandas", extra="data").DataFrame({**kept, score: scores}))
    rows = len(scores)
    print_result({"rows": rows, "out": str(out)}, f"{rows:,} scores are in {out}", json=json)


def _write(path: Path, frame: Any) -> None:
    """Write under a temporary name first, so that a half-written file never has the file's name."""
    import duckdb

    with replacing(path) as temporary:
        target, form = quote_text(str(temporary.absolute())), _FORMATS[path.suffix.lower()]
        try:
            with connect() as connection:
                connection.register("scored", frame)
                rows = "scored" if path.suffix.lower() == ".parquet" else _without_formulas(connection)
                connection.execute(f"COPY (FROM {rows}) TO {target} ({form}, USE_TMP_FILE false)")
        except duckdb.Error as error:
            raise OSError(f"{path} cannot be written: {error}") from error


def _without_formulas(connection: Any) -> str:
    """The SQL of rows in which no text is a formula to a spreadsheet: those get an apostrophe in front."""
    starts = ", ".join(map(quote_text, _FORMULA))
    columns = []
    for name, kind, *_ in connection.execute("DESCRIBE scored").fetchall():
        kept, shown = quote_name(name), quote_name("'" + name if name.startswith(_FORMULA) else name)
        if kind == "VARCHAR":
            formula = f"{kept}[1] IN ({starts}) AND TRY_CAST({kept} AS DOUBLE) IS NULL"
            kept = f"CASE WHEN {formula} THEN chr(39) || {kept} ELSE {kept} END"
        columns.append(f"{kept} AS {shown}")
    return f"(SELECT {', '.join(columns)} FROM scored)"
