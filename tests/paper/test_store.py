"""The store: whole runs or none, damage set aside, other versions refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import localparity as lp
from localparity._io._files import seal_json, sha256_of
from localparity.paper import Run, Store
from localparity.paper import _runs as _grids
from localparity.paper._store import DamagedRunWarning, OutdatedRunWarning, PartScores, Record

RUN = Run("adult", "diffmcdp", 0.3, 0)


def trained(run: Run = RUN, seed: int = 0) -> tuple[Record, PartScores]:
    rng = np.random.default_rng(seed)
    part = PartScores(rng.random(200), np.where(rng.random(200) < 0.4, "f", "m"), rng.random(200) < 0.5)
    metrics = {**part.measure("val"), **part.measure("test")}
    return Record(run, metrics, 1.5, "cpu", {"localparity": lp.__version__, "torch": "2.13.0"}), part


def files(store: Store) -> list[str]:
    return sorted(path.name for path in store.runs.iterdir())


def test_what_is_added_comes_back(tmp_path: Path) -> None:
    store, (given, scores) = Store(tmp_path / "store"), trained()
    assert RUN not in store
    store.add(given, scores)
    assert RUN in store
    (record,) = store.records()
    assert record == given
    part = store.scores(RUN)
    assert part.score.dtype == np.float32
    for name in ("score", "group", "label"):
        np.testing.assert_array_equal(getattr(part, name), getattr(scores, name))
    assert part.measure("test").items() <= record.metrics.items()


def test_the_same_scores_are_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("first", "second"):
        store = Store(tmp_path / name)
        store.add(*trained())
        contents.append({path.name: path.read_bytes() for path in store.runs.iterdir()})
    assert contents[0] == contents[1]


def test_a_dry_look_makes_no_folder(tmp_path: Path) -> None:
    assert Store(tmp_path / "store").missing([RUN]) == [RUN]
    assert not (tmp_path / "store").exists()


def test_an_interrupted_write_leaves_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import localparity.paper._store as module

    store, write = Store(tmp_path / "store"), module.write_whole

    def interrupt(path: Path, content: bytes) -> None:
        if path.suffix == ".json" and path.parent.name == "runs":
            raise KeyboardInterrupt
        write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_whole", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.add(*trained())
    assert RUN not in store
    assert store.records() == []
    store.add(*trained())
    assert RUN in store


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)


def lose_a_field(path: Path) -> None:
    facts = json.loads(path.read_bytes())
    del facts["seconds"]
    path.write_bytes(seal_json(facts))


def write_a_number_as_a_text(path: Path) -> None:
    facts = json.loads(path.read_bytes())
    facts["metrics"]["test_ap"] = "0.77"
    path.write_bytes(seal_json(facts))


@pytest.mark.parametrize(
    ("kind", "harm", "problem"),
    [
        ("json", cut, "JSONDecodeError"),
        ("json", write_a_number_as_a_text, "test_ap must be a number from 0 to 1, got '0.77'"),
        ("json", lose_a_field, "seconds is missing"),
        ("parquet", cut, "checksum of its scores"),
        ("parquet", change, "checksum of its scores"),
        ("parquet", Path.unlink, "FileNotFoundError"),
    ],
)
def test_a_damaged_run_is_named_set_aside_and_counts_as_missing(
    tmp_path: Path, kind: str, harm: object, problem: str
) -> None:
    store = Store(tmp_path / "store")
    store.add(*trained())
    store.add(*trained(Run("adult", "erm", 0.0, 0)))
    (path,) = store.runs.glob(f"*diffmcdp*.{kind}")
    harm(path)  # type: ignore[operator]
    with pytest.warns(DamagedRunWarning) as warned:
        assert store.missing([RUN, Run("adult", "erm", 0.0, 0)]) == [RUN]
    name = path.with_suffix(".json").name
    assert name in str(warned[0].message)
    assert problem in str(warned[0].message)
    assert f"{name}.damaged" in files(store)
    assert [record.run.method for record in store.records()] == ["erm"]
    store.add(*trained())
    assert RUN in store
    assert f"{name}.damaged" in files(store)


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text('{"format": 7, "localparity": "9.0"}')
    with pytest.raises(ValueError, match=r"newer localparity, in format 7; this version reads format 1"):
        Store(tmp_path)
    (tmp_path / "store.json").write_text("{")
    with pytest.raises(ValueError, match=r"store\.json"):
        Store(tmp_path)


def test_a_folder_of_other_files_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"is not a store: it has files and no store\.json"):
        Store(tmp_path)


def test_a_folder_in_which_a_killed_writer_began_is_a_store(tmp_path: Path) -> None:
    (tmp_path / f".store.json.{'0' * 32}").touch()
    assert Store(tmp_path).records() == []


def test_runs_of_another_version_are_not_added_to(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.check_version()
    store.add(*trained())
    store.check_version()
    mark = store.folder / "store.json"
    mark.write_bytes(seal_json(json.loads(mark.read_text()) | {"localparity": "0.0.9"}))
    with pytest.raises(ValueError, match=rf"0\.0\.9.* {re.escape(lp.__version__)}"):
        store.check_version()
    assert len(Store(store.folder).records()) == 1


def test_runs_with_settings_that_changed_since_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    store.add(*trained())
    monkeypatch.setitem(_grids._SETTINGS["paper"], "adult", {"diffmcdp": {"steps": 151}})
    with pytest.warns(OutdatedRunWarning, match="1 runs in .* changed"):
        assert store.records() == []
    assert store.missing([Run("adult", "diffmcdp", 0.3, 0)]) != []


@pytest.mark.parametrize("content", [b"", b"PAR1 no Parquet PAR1"])
def test_scores_that_are_no_table_under_a_checksum_that_fits_are_named(
    content: bytes, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    store.add(*trained())
    (scores,), (path,) = store.runs.glob("*.parquet"), store.runs.glob("*.json")
    scores.write_bytes(content)
    facts = json.loads(path.read_text()) | {"scores_sha256": sha256_of(content)}
    path.write_bytes(seal_json(facts))
    with pytest.raises(ValueError, match=r"\.parquet is damaged"):
        store.scores(RUN)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metrics", "x"),
        ("metrics", {"test_abcc": 1e308}),
        ("metrics", {"test_ap": -1}),
        ("versions", "x"),
        ("versions", {"torch": 2}),
        ("device", 1),
        ("start", 0.5),
        ("seconds", 10**400),
        ("seconds", float("nan")),
    ],
)
def test_facts_of_another_kind_are_set_aside(name: str, value: object, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(*trained())
    (path,) = store.runs.glob("*.json")
    path.write_bytes(seal_json(json.loads(path.read_text()) | {name: value}))
    with pytest.warns(DamagedRunWarning):
        assert RUN not in store
