"""The zip file to sign and to file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import localparity as lp
from typed_commands import run_here

NAMES = ["report.html", "audit.json", "audit.md", "command.txt", "record.json"]


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    census = lp.datasets.make_census(300, random_state=0)
    path = tmp_path_factory.mktemp("bundle") / "scores.csv"
    census.data.assign(p=census.score, sex=census.sensitive_features).to_csv(path, index=False)
    return path


def opened(path: Path) -> dict[str, bytes]:
    """What is in a bundle, checked against its checksums."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    sums = found.pop("SHA256SUMS").decode()
    assert sums == "".join(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in found.items())
    return found


def test_the_command_writes_what_it_prints(
    scores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    options = ["--score", "p", "--group", "sex", "--resamples", "5", "--jobs", "1", "--max-mcdp", "0.9"]
    printed = {}
    for form in ("json", "markdown"):
        words = ["audit", scores, *options, "--format", form, "--out", tmp_path / f"{form}.zip"]
        assert run_here(monkeypatch, *words) == 0
        printed[form], err = capsys.readouterr()
        assert err.splitlines()[1] == f"bundle: {tmp_path / f'{form}.zip'}"
        found = opened(tmp_path / f"{form}.zip")
        assert list(found) == [*NAMES, "policy.toml"]
        assert found["command.txt"].decode() == f"localparity {' '.join(map(str, words))}\n"
        name = {"json": "audit.json", "markdown": "audit.md"}[form]
        assert found[name].decode() == printed[form]
        assert b"<!doctype html>" in found["report.html"]
    assert json.loads(printed["json"])["audits"][0]["bound"]["passes"]
    assert "the bound of 90 points: " in printed["markdown"]


SIZES = {"a": 3138, "b": 5113, "c": 311}


def audit_of(seed: int, labelled: bool, **options: object) -> lp.Audit:
    rng = np.random.default_rng(seed)
    groups = np.repeat(list(SIZES), list(SIZES.values()))
    score = rng.random(groups.size) ** np.where(groups == "a", 2.0, 1.0)
    y_true = rng.integers(0, 2, groups.size) if labelled else None
    return lp.audit(y_true, score, sensitive_features=groups, n_resamples=0, random_state=0, **options)


def numbers_above(audit: lp.Audit, folder: Path, **ratio: float) -> dict[str, set[int]]:
    """Every number of people of a group above a score that follows from page, JSON or record."""
    lp.report.write_bundle(folder / "a.zip", {"m": audit}, force=True, **ratio)
    files = opened(folder / "a.zip")
    above: dict[str, set[int]] = {name: {0, size} for name, size in SIZES.items()}
    for step in json.loads(files["record.json"])["counts"]["m"]["groups"]:
        above[step["group"]] |= {SIZES[step["group"]] - int(rows) for rows in np.cumsum(step["rows"])}
    plain = json.loads(files["audit.json"])["audits"][0]
    for group in plain["answer"]["groups"]:
        above[group["name"]].add(round(group["share_above"] * SIZES[group["name"]]))
    for group in plain["impact_ratios"]["groups"] if ratio else ():
        above[group["group"]] |= {round(rate * SIZES[group["group"]]) for rate in group["rates"]}
    texts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', files["report.html"].decode())
    (model,) = next(data["models"] for data in map(json.loads, texts) if "models" in data)
    for name, packed in zip(SIZES, model["shares"], strict=True):
        shares = np.frombuffer(base64.b64decode(packed), "<u4") / (2**32 - 1)
        above[name] |= set(np.rint(shares * SIZES[name]).astype(int).tolist())
    return above


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("ratio", [{}, {"min_ratio": 0.8}])
@pytest.mark.parametrize("seed", range(2))
def test_the_files_of_a_bundle_together_tell_of_nobody(
    seed: int, ratio: dict[str, float], labelled: bool, tmp_path: Path
) -> None:
    """Whoever subtracts what page, JSON and record say of a group finds no cell of fewer than ten people."""
    for name, told in numbers_above(audit_of(seed, labelled), tmp_path, **ratio).items():
        assert len(told) > 20, name
        assert np.diff(sorted(told)).min() >= 10, name


def test_bundles_with_other_epsilons_differ_around_their_cutoffs_alone(tmp_path: Path) -> None:
    """The differences of two audits tell of few people there, and nowhere else."""
    bundles = [numbers_above(audit_of(0, False, epsilons=[eps]), tmp_path) for eps in (0.0, 0.02, 0.1)]
    for name in SIZES:
        told = sorted(set().union(*(bundle[name] for bundle in bundles)))
        assert (np.diff(told) < 10).sum() <= 5 * len(bundles), name


def test_the_same_audit_gives_the_same_bytes(scores: Path, tmp_path: Path) -> None:
    audit = lp.Audit.read(scores, score="p", group="sex", n_resamples=5, random_state=0)
    for name in ("a.zip", "b.zip"):
        lp.report.write_bundle(tmp_path / name, {"model": audit}, title="Same")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with pytest.raises(FileExistsError, match=r"a\.zip already exists.*force=True"):
        lp.report.write_bundle(tmp_path / "a.zip", {"model": audit})
    lp.report.write_bundle(tmp_path / "a.zip", {"model": audit}, force=True)


def test_an_interrupted_write_leaves_nothing(
    scores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    audit = lp.Audit.read(scores, score="p", group="sex", n_resamples=0)
    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        lp.report.write_bundle(tmp_path / "audit.zip", {"model": audit})
    assert list(tmp_path.iterdir()) == []


def test_wrong_use_is_noticed_before_the_work(
    scores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["audit", scores, "--score", "p", "--group", "sex"]
    assert run_here(monkeypatch, *words, "--json", "--format", "markdown") == 2
    assert "--format: must be json with --json, got markdown" in capsys.readouterr().err
    assert run_here(monkeypatch, *words, "--out", scores, "--force") == 2
    assert "is the file that is read" in capsys.readouterr().err
    assert run_here(monkeypatch, *words, "--out", tmp_path) == 2
    out, err = capsys.readouterr()
    assert (out, "is a folder, not a file" in err) == ("", True)


def test_a_model_folder_cannot_put_another_file_into_a_bundle(scores: Path, tmp_path: Path) -> None:
    """Beside the model there may be a link to a secret, or a card that somebody wrote by hand."""
    audit = lp.Audit.read(scores, score="p", group="sex", n_resamples=5, random_state=0)
    model, secret = tmp_path / "model", tmp_path / "secret"
    secret.write_text("a secret")
    census = lp.datasets.make_census(300, random_state=0)
    repair = lp.models.ScoreRepair().fit(census.score, sensitive_features=census.sensitive_features)
    repair.save(model)
    lp.report.write_bundle(tmp_path / "whole.zip", {"model": audit}, model=model)
    expected = {name: (model / name).read_bytes() for name in ("model_card.json", "model_card.md")}
    for name in expected:
        (model / name).unlink()
    (model / "model_card.md").symlink_to(secret)
    (model / "model_card.json").write_text("<script>alert(1)</script>")
    lp.report.write_bundle(tmp_path / "evil.zip", {"model": audit}, model=model)
    for bundle in ("whole.zip", "evil.zip"):
        assert {name: opened(tmp_path / bundle)[name] for name in expected} == expected
    (card,) = model.glob("data-*/model_card.json")
    card.unlink()
    card.symlink_to(secret)
    with pytest.raises(ValueError, match=r"model_card.json cannot be read \(it is a link"):
        lp.report.write_bundle(tmp_path / "worse.zip", {"model": audit}, model=model)
    assert not (tmp_path / "worse.zip").exists()
    card.unlink()
    lp.report.write_bundle(tmp_path / "none.zip", {"model": audit}, model=model)
    assert not set(opened(tmp_path / "none.zip")) & set(expected)
