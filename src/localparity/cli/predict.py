"""`localparity predict`: a model and a file of people in, their scores out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

import localparity as lp
from localparity._io._tables import Table, quote_text
from localparity.cli._features import read_features
from localparity.cli._options import ForceOption, PeopleArgument, check_file

_FORMATS = {".csv": "(FORMAT csv, HEADER)", ".parquet": "(FORMAT parquet)"}


def predict(
    model: Annotated[Path, typer.Argument(help="The folder of a model that `localparity train` wrote.")],
    file: PeopleArgument,
    out: Annotated[Path, typer.Option(help="The file of scores to write: .csv or .parquet.")],
    score: Annotated[str, typer.Option(help="What the column of scores is called.")] = "score",
    keep: Annotated[list[str] | None, typer.Option(help="A column of the file to write as well.")] = None,
    force: ForceOption = False,
) -> None:
    """Score the rows of a file with a model.

    Exit codes: 0 when it is done, 2 for wrong usage or input.
    """
    if out.suffix.lower() not in _FORMATS:
        raise typer.BadParameter(
            f"{str(out)!r} where a .csv or .parquet file is expected", param_hint="--out"
        )
    check_file(out, "--out", read=[file], replace=force)
    classifier = lp.models.LocalParityClassifier.load(model)
    encoder = classifier.encoder_
    texts = [
        name for name, known in zip(encoder.names_, encoder.categories_, strict=True) if known is not None
    ]
    table = Table(file)
    kept = table.read(numbers=[], values=keep) if keep else {}
    if score in kept:
        raise typer.BadParameter(f"{score!r} is a column that is kept", param_hint="--score")
    frame = read_features(table, encoder.names_, texts)
    scores = classifier.predict_proba(frame)[:, 1]
    _write(out, type(frame)({**kept, score: scores}))
    typer.echo(f"{len(scores):,} scores are in {out}")


def _write(path: Path, frame: Any) -> None:
    """Under a temporary name first, so that nothing half-written ever has the file's name."""
    import duckdb

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".localparity-") as folder:
        temporary = Path(folder) / path.name
        with duckdb.connect() as connection:
            connection.register("scored", frame)
            connection.execute(f"COPY scored TO {quote_text(str(temporary))} {_FORMATS[path.suffix.lower()]}")
        temporary.replace(path)
