"""The commands that write, what they start from, and what can be read from what they wrote."""

from __future__ import annotations

import hashlib
import re
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localparity.datasets import make_census

Parts = dict[str, Any]
"""What is read from an output, by its part: each part is as it was before a command or as it is after it."""

_TIMES = re.compile("\\d{4}-\\d\\d-\\d\\d(T[\\d:.+Z\u2060-]+)?")
"""Markdown joins the parts of a time, so that nothing is made of its colons."""


@dataclass(frozen=True)
class Command:
    """A command as it is typed, with {out} and {in} for its folders; `before` makes what it replaces."""

    name: str
    words: str
    before: str
    read: Callable[[Path], Parts]


def write_inputs(folder: Path) -> None:
    """The files that the commands read."""
    folder.mkdir()
    census = make_census(300, random_state=0)
    people = census.data.assign(
        income=census.target, sex=census.sensitive_features, score=census.score.round(3)
    )
    people.to_csv(folder / "people.csv", index=False)
    people[:200].to_csv(folder / "fewer.csv", index=False)


def read_file(name: str) -> Callable[[Path], Parts]:
    """What reads one file as its bytes, but for times."""
    return lambda out: _digest(out / name)


def read_files(out: Path) -> Parts:
    """Every file, but for those that begin with a point: they are read by nobody."""
    found: Parts = {}
    for path in sorted(out.rglob("[!.]*")):
        if path.is_file():
            found |= {f"{path.relative_to(out)}: {part}": value for part, value in _digest(path).items()}
    return found


def read_bundle(out: Path) -> Parts:
    """The files of a bundle, whose checksums fit."""
    path = out / "audit.zip"
    if not path.exists():
        return {"content": None}
    with zipfile.ZipFile(path) as bundle:
        files = {name: bundle.read(name) for name in bundle.namelist()}
    for line in files.pop("SHA256SUMS").decode().splitlines():
        expected, name = line.split("  ")
        assert hashlib.sha256(files[name]).hexdigest() == expected, name
    return {"content": [[name, _digest_of(content)] for name, content in files.items()]}


def _digest(path: Path) -> Parts:
    if not path.exists():
        return {"content": None}
    content = path.read_bytes()
    has_times = path.suffix in (".html", ".json", ".md", ".csv", ".svg")
    return {"content": _digest_of(content) if has_times else hashlib.sha256(content).hexdigest()}


def _digest_of(text: bytes) -> str:
    return hashlib.sha256(_TIMES.sub("", text.decode()).encode()).hexdigest()


def read_model(out: Path) -> Parts:
    """The scores of a model, and its card."""
    import localparity as lp
    from localparity.models._folder import needs_group

    folder = out / "model"
    if not (folder / "model.json").exists():
        return {"model": None, "card": None}
    model, census = lp.load(folder), make_census(20, random_state=1)
    given = {"sensitive_features": census.sensitive_features} if needs_group(model) else {}
    scores = model.predict_proba(census.data, **given)[:, 1].tolist()
    return {"model": scores, "card": lp.results.ModelCard.read(folder).to_dict()}


def read_comparison(out: Path) -> Parts:
    """A model and a figure."""
    return {**read_model(out), "figure": _digest(out / "figure.png")}


def read_monitor(out: Path) -> Parts:
    """The periods of a monitor, each a part of its own: some may be new and others still the old ones."""
    from localparity.monitoring import Monitor

    monitor = Monitor(out / "monitor")
    series = monitor.series() if monitor.version() else []
    whole = monitor.since_start().rows if series else 0
    found = {point.period: [point.rows, point.interval and point.interval.estimate] for point in series}
    return {**found, "since_start": whole}


def read_store(out: Path) -> Parts:
    """The runs of a store, each complete or absent."""
    from localparity.paper import Store
    from localparity.paper._store import DamagedRunWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedRunWarning)
        store = Store(out / "store")
        return {
            record.run.title: [record.metrics, store.scores(record.run).score.tolist()]
            for record in store.records()
        }


_ROWS = "--score score --group sex"
_PEOPLE = "{in}/people.csv --target income --group sex --drop score"
_TRAIN = f"train {_PEOPLE} --out {{out}}/model --force"
_BATCH = f"monitor append {{out}}/monitor {{in}}/people.csv {_ROWS} --at"
_REPRODUCE = "reproduce adult --methods erm --device cpu --quiet --store {out}/store --seeds"

COMMANDS = (
    Command(
        "audit --report",
        f"audit {{in}}/people.csv {_ROWS} --resamples 0 --report {{out}}/page.html --force",
        f"audit {{in}}/fewer.csv {_ROWS} --resamples 0 --report {{out}}/page.html",
        read_file("page.html"),
    ),
    Command(
        "audit --out",
        f"audit {{in}}/people.csv {_ROWS} --resamples 0 --out {{out}}/audit.zip --force",
        f"audit {{in}}/fewer.csv {_ROWS} --resamples 0 --out {{out}}/audit.zip",
        read_bundle,
    ),
    Command(
        "predict --out CSV",
        "predict {in}/model {in}/people.csv --out {out}/scores.csv --keep sex --force",
        "predict {in}/model {in}/fewer.csv --out {out}/scores.csv",
        read_file("scores.csv"),
    ),
    Command(
        "predict --out Parquet",
        "predict {in}/model {in}/people.csv --out {out}/scores.parquet --force",
        "predict {in}/model {in}/fewer.csv --out {out}/scores.parquet",
        read_file("scores.parquet"),
    ),
    Command("train network", f"{_TRAIN} --steps 3", f"{_TRAIN} --steps 2", read_model),
    Command(
        "train trees",
        f"{_TRAIN} --model lightgbm --strength 0.1",
        f"{_TRAIN} --model lightgbm --strength 0",
        read_model,
    ),
    Command(
        "repair",
        f"repair {_PEOPLE} --max-mcdp 0.3 --group-aware --out {{out}}/model --force",
        f"repair {_PEOPLE} --max-mcdp 0.2 --group-aware --out {{out}}/model",
        read_model,
    ),
    Command(
        "compare --out --figure",
        f"compare {_PEOPLE} --network-steps 3 --resamples 19 --out {{out}}/model --figure {{out}}/figure.png --force",
        f"compare {_PEOPLE} --network-steps 2 --resamples 19 --out {{out}}/model --figure {{out}}/figure.png",
        read_comparison,
    ),
    Command("monitor append", f"{_BATCH} 2026-05-18 --id b", f"{_BATCH} 2026-05-17 --id a", read_monitor),
    Command(
        "monitor append, same period",
        f"{_BATCH} 2026-05-17 --id b --allow-duplicate",
        f"{_BATCH} 2026-05-17 --id a",
        read_monitor,
    ),
    Command(
        "monitor append --keep --max-mcdp",
        f"{_BATCH} 2026-05-18 --id b --allow-duplicate --keep 1 --max-mcdp 0.9",
        f"{_BATCH} 2026-05-17 --id a",
        read_monitor,
    ),
    Command(
        "monitor report",
        "monitor report {in}/monitor --out {out}/page.html --force",
        "monitor report {in}/monitor --out {out}/page.html --epsilon 0.1 --force",
        read_file("page.html"),
    ),
    Command("monitor serve", "monitor serve {in}/monitor --textfile {out}/x.prom", "", read_file("x.prom")),
    Command("reproduce", f"{_REPRODUCE} 3", f"{_REPRODUCE} 1", read_store),
    Command(
        "reproduce tables",
        "reproduce tables --store {in}/store --out {out}/tables",
        "reproduce tables --store {in}/other --out {out}/tables",
        read_files,
    ),
    Command(
        "reproduce figures",
        "reproduce figures --store {in}/store --out {out}/figures",
        "reproduce figures --store {in}/other --out {out}/figures",
        read_files,
    ),
    Command("fetch", "fetch bank --data-home {out}/cache", "", read_files),
    Command("demo", "demo --rows 400 --report {out}/page.html --force", "", read_file("page.html")),
)

PREPARE = (
    f"monitor append {{in}}/monitor {{in}}/people.csv {_ROWS} --at 2026-05-17",
    "train {in}/people.csv --target income --group sex --drop score --out {in}/model --steps 3",
    "reproduce adult --methods erm,diffdp --device cpu --quiet --store {in}/store --seeds 2",
    "reproduce adult --methods erm,diffdp --device cpu --quiet --store {in}/other --seeds 1",
)
"""What the commands read beside tables."""
