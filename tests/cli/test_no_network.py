"""No command reaches another machine that was not asked for."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import localparity as lp
from typed_commands import BARE, run

FAR = "https://127.0.0.1:9/scores.csv"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    census = lp.datasets.make_census(200, random_state=0)
    classifier = lp.models.LocalParityLGBMClassifier(n_estimators=3)
    classifier.fit(census.data, census.target, sensitive_features=census.sensitive_features)
    folder = tmp_path_factory.mktemp("saved") / "model"
    classifier.save(folder)
    return folder


@pytest.mark.parametrize("source", [FAR, "s3://bucket/scores.parquet", "hf://datasets/x/y.csv"])
@pytest.mark.parametrize("command", ["audit", "monitor", "predict", "train", "repair", "compare"])
def test_a_file_on_another_machine_is_refused(tmp_path: Path, model: Path, command: str, source: str) -> None:
    of_people = ["--target", "y", "--group", "g"]
    words: dict[str, list[object]] = {
        "audit": [source, "--score", "p", "--group", "g"],
        "monitor": ["append", tmp_path / "kept", source, "--score", "p", "--group", "g"],
        "predict": [model, source, "--out", tmp_path / "scores.csv"],
        "train": [source, *of_people, "--out", tmp_path / "out"],
        "repair": [source, *of_people, "--max-mcdp", 0.1, "--out", tmp_path / "out"],
        "compare": [source, *of_people],
    }
    done = run(command, *words[command])
    assert done.returncode == 2
    assert done.stderr == f"error: {source} is on another machine; pass --allow-remote to fetch it\n"


def test_sources_of_the_library() -> None:
    named = {"score": "p", "group": "g"}
    for read in (lp.Audit.read, lp.Predictions.read, lp.engines.from_duckdb):
        with pytest.raises(ValueError, match=r"is on another machine; pass allow_remote=True"):
            read(FAR, **named)
    with pytest.raises(ValueError, match=r"is on another machine; pass allow_remote=True"):
        lp.Audit.read(FAR, **named, engine="spark")
    with pytest.raises(ValueError, match=r"requires the extension httpfs .* allow_remote=True"):
        lp.Audit.read(f"SELECT * FROM '{FAR}'", **named)


def test_where_it_is_allowed_what_is_fetched_is_said() -> None:
    done = run("audit", FAR, "--score", "p", "--group", "g", "--allow-remote")
    fetching, failed = done.stderr.splitlines()
    assert fetching.startswith(f"fetching {FAR}; DuckDB installs its extension")
    assert done.returncode == 2
    assert failed.startswith(f"error: {FAR} cannot be read: ")


EVERY_COMMAND = """
import sys
from localparity.cli import main

def typed(*words):
    sys.argv = ["localparity", *words]
    try:
        main()
    except SystemExit as left:
        assert not left.code or left.code == 1, words

people = ["people.csv", "--target", "income", "--group", "sex"]
typed("audit", "scores.csv", "--score", "p", "--group", "g", "--report", "page.html", "--resamples", "20")
typed("audit", "scores.csv", "--score", "p", "--group", "g", "--out", "audit.zip", "--resamples", "20")
typed("monitor", "append", "kept", "scores.csv", "--score", "p", "--group", "g", "--max-mcdp", "0.1")
typed("monitor", "show", "kept")
typed("monitor", "report", "kept", "--out", "monitor.html")
typed("monitor", "serve", "kept", "--textfile", "kept.prom")
typed("monitor", "prune", "kept", "--keep", "1")
typed("train", *people, "--steps", "3", "--out", "model")
typed("repair", *people, "--max-mcdp", "0.5", "--out", "repaired")
typed("predict", "model", "people.csv", "--out", "new.csv")
typed("compare", *people, "--network-steps", "3", "--resamples", "20")
typed("explain", "people.csv", "--score", "age", "--group", "sex", "--score-range", "0,200")
typed("verify", "audit.zip", "--data", "scores.csv")
typed("plan", "--group-sizes", "1000,1000")
typed("demo", "--rows", "1000", "--report", "demo.html")
typed("reproduce", "adult", "--store", "store", "--device", "cpu", "--dry-run")
"""


@pytest.mark.slow
def test_no_command_opens_a_connection(tmp_path: Path) -> None:
    """Seen by the kernel, since DuckDB and others do not connect through Python."""
    census = lp.datasets.make_census(600, random_state=0)
    people = census.data.assign(sex=census.sensitive_features, income=census.target)
    people.to_csv(tmp_path / "people.csv", index=False)
    rng = np.random.default_rng(0)
    rows = [f"{rng.random():.4f},{'ab'[i % 2]}" for i in range(300)]
    (tmp_path / "scores.csv").write_text("\n".join(["p,g", *rows]))
    strace = shutil.which("strace")
    assert strace, "strace must be installed"
    words = [strace, "-f", "-qq", "-e", "trace=connect,sendto,sendmsg", "-o", str(tmp_path / "calls")]
    done = subprocess.run(
        [*words, sys.executable, "-c", EVERY_COMMAND], cwd=tmp_path, env=BARE, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call for call in calls if re.search("AF_INET|sin6?_port", call)] == []
