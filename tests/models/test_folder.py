"""Every estimator comes back from its folder, and nothing else does."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import zipfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import localparity as lp
from localparity._io._files import seal_json
from localparity._text import percent
from localparity.models import RepairedClassifier, ScoreRepair
from localparity.results import ModelCard
from model_folders import data_file

CENSUS = lp.datasets.make_census(800, random_state=0)
X, Y, SEX = CENSUS.data.astype({"occupation": "category"}), CENSUS.target, CENSUS.sensitive_features
FIXED = ["model.json", "model_card.json", "model_card.md"]
OLD = np.where(X["age"] > 40, 1, 0)
CLASSIFIERS = {
    "network": lp.models.LocalParityClassifier(hidden=(8,), steps=3, random_state=0),
    "lightgbm": lp.models.LocalParityLGBMClassifier(n_estimators=3, n_jobs=1, random_state=0),
    "xgboost": lp.models.LocalParityXGBClassifier(n_estimators=3, n_jobs=1, random_state=0),
}


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_load_brings_back_any_classifier(kind: str, tmp_path: Path) -> None:
    model = CLASSIFIERS[kind].fit(X, Y, sensitive_features=SEX)
    model.save(tmp_path)
    again = lp.load(tmp_path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert again.text_features_ == model.text_features_ == ["occupation"]
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "groups", [SEX, OLD, OLD.astype(bool), pd.DataFrame({"sex": SEX, "old": OLD})], ids=lambda g: str(type(g))
)
@pytest.mark.parametrize("score_range", [(0.0, 1.0), (-1.0, 2.0)])
def test_load_brings_back_a_repair(groups: Any, score_range: tuple[float, float], tmp_path: Path) -> None:
    repair = ScoreRepair(max_mcdp=0.1, epsilon=0.01, score_range=score_range)
    repair.fit(CENSUS.score, sensitive_features=groups).save(tmp_path)
    again = lp.load(tmp_path)
    assert again.get_params() == repair.get_params()
    for name in ("groups_", "mcdp_", "unrepaired_mcdp_", "margin_", "promise_"):
        assert getattr(again, name) == getattr(repair, name)
    np.testing.assert_array_equal(
        again.transform(CENSUS.score, sensitive_features=groups),
        repair.transform(CENSUS.score, sensitive_features=groups),
    )


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_load_brings_back_a_repaired_classifier(kind: str, tmp_path: Path) -> None:
    model = RepairedClassifier(CLASSIFIERS[kind], max_mcdp=0.2, random_state=0)
    model.fit(X, Y, sensitive_features=SEX).save(tmp_path)
    again = lp.load(tmp_path)
    assert isinstance(again, RepairedClassifier)
    found = again.predict_proba(X, sensitive_features=SEX)
    np.testing.assert_array_equal(found, model.predict_proba(X, sensitive_features=SEX))
    assert again.repair_.promise_ == model.repair_.promise_
    data_file(tmp_path, "maps.npy").write_bytes(b"other maps")
    with pytest.raises(ValueError, match=r"model.json is damaged: the sha256 of repair/maps.npy"):
        lp.load(tmp_path)


def pipeline(classifier: Any) -> Any:
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["occupation"]), remainder="passthrough"
    )
    return make_pipeline(columns, classifier)


def of_scikit_learn(classifier: Any) -> RepairedClassifier:
    model = RepairedClassifier(pipeline(classifier), max_mcdp=0.2, random_state=0)
    return model.fit(X, Y, sensitive_features=SEX)


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(max_iter=2000),
        RandomForestClassifier(5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
        CalibratedClassifierCV(LogisticRegression(max_iter=2000)),
        KNeighborsClassifier(),
        make_pipeline(SimpleImputer(), LogisticRegression(max_iter=2000)),  # which keeps a dtype
    ],
)
def test_load_brings_back_a_repaired_pipeline_of_scikit_learn(classifier: Any, tmp_path: Path) -> None:
    pytest.importorskip("skops")
    model = of_scikit_learn(classifier)
    model.save(tmp_path)
    again = lp.load(tmp_path)
    assert isinstance(again, RepairedClassifier)
    found = again.predict_proba(X, sensitive_features=SEX)
    np.testing.assert_array_equal(found, model.predict_proba(X, sensitive_features=SEX))
    assert again.repair_.promise_ == model.repair_.promise_
    data_file(tmp_path, "estimator.skops").write_bytes(b"another pipeline")
    with pytest.raises(ValueError, match=r"model.json is damaged: the sha256 of estimator/estimator.skops"):
        lp.load(tmp_path)


class Own(LogisticRegression):
    """A classifier of somebody's own."""


class Harmful:
    """Runs something where pickle would load it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("harmed",)


def test_only_types_of_scikit_learn_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skops = pytest.importorskip("skops.io")
    model = of_scikit_learn(LogisticRegression(max_iter=2000))
    monkeypatch.chdir(tmp_path)
    for harmful, message in ((Own().fit([[0], [1]], [0, 1]), "Own"), (Harmful(), "Harmful"), (None, "zip")):
        content = b"no archive" if harmful is None else skops.dumps(harmful)
        monkeypatch.setattr("localparity.models.repair._base._dump", lambda *_, content=content: content)
        model.save(tmp_path / "model")
        with pytest.raises(ValueError, match=rf"estimator/estimator.skops .*{message}"):
            lp.load(tmp_path / "model")
    assert not (tmp_path / "harmed").exists()


def test_what_only_pickle_could_save_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    made = make_pipeline(FunctionTransformer(lambda table: table), LogisticRegression())
    for classifier, message in ((Own(), "estimator is a Own with .*Own"), (made, "estimator is a Pipeline")):
        model = RepairedClassifier(classifier, max_mcdp=0.2, random_state=0)
        model.fit(X[["age"]], Y, sensitive_features=SEX)
        with pytest.raises(ValueError, match=rf"{message}.*, which only pickle"):
            model.save(tmp_path / "model")
    dates = np.where(OLD == 1, np.datetime64("2020-01-01"), np.datetime64("2021-01-01"))
    with pytest.raises(ValueError, match=r"sensitive_features has .*2020.*JSON"):
        ScoreRepair().fit(CENSUS.score, sensitive_features=dates).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator": "Popen"}, "estimator must be one of .* got 'Popen'"),
        ({"estimator": "__builtins__"}, "estimator must be one of"),
        ({"estimator": "LocalParityClassifier"}, "model.json is damaged"),
        ({"files": {"../maps.npy": "0"}}, r"'../maps.npy' is not a file of the folder"),
        ({"files": {"/etc/hostname": "0"}}, r"'/etc/hostname' is not a file of the folder"),
        ({"files": {"": "0"}}, "is not a file of the folder"),
        ({"files": {}}, "'maps.npy' is missing"),
        ({"parameters": {"bound": 1}}, "model.json is damaged: .*bound"),
        ({"format": 1}, "model.json was written by localparity 0.1, in format 1; .* format 4"),
        ({"data": ".."}, r"data must be .* got '\.\.'"),
        ({"data": "data-0123456789ab"}, "maps.npy cannot be read"),
    ],
)
def test_descriptions_that_lie(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    ScoreRepair().fit(CENSUS.score, sensitive_features=SEX).save(tmp_path)
    path = tmp_path / "model.json"
    path.write_bytes(seal_json(json.loads(path.read_text()) | changes))
    with pytest.raises(ValueError, match=message):
        lp.load(tmp_path)


@pytest.mark.parametrize(
    "array", [[[0.2, 0.1], [0.3, 0.4]], [[0.1, 2.0], [0.1, 0.2]], [[0.1, 0.2], [np.nan, 0.3]]]
)
def test_maps_that_are_not_increasing_are_refused(array: Any, tmp_path: Path) -> None:
    ScoreRepair(max_mcdp=1.0).fit(CENSUS.score, sensitive_features=SEX).save(tmp_path)
    maps, path = data_file(tmp_path, "maps.npy"), tmp_path / "model.json"
    np.save(maps, np.hstack([array, array]))
    described = json.loads(path.read_text())
    described["files"]["maps.npy"] = hashlib.sha256(maps.read_bytes()).hexdigest()
    path.write_bytes(seal_json(described))
    with pytest.raises(ValueError, match=r"(knots|values) must ascend inside score_range"):
        lp.load(tmp_path)


def steps_until_killed(action: Callable[[], object], step: int) -> bool:
    """Whether a process of its own gets through an action that ends with its `step`-th step on the disk."""
    child = os.fork()
    if not child:
        seen = iter(range(step))

        def watch(event: str, arguments: Any) -> None:
            writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            is_step = writes or event in {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}
            if is_step and next(seen, None) is None:
                os._exit(9)

        sys.addaudithook(watch)
        action()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_interrupted_save_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    old, new = (ScoreRepair(bound).fit(CENSUS.score, sensitive_features=SEX) for bound in (0.05, 0.1))
    for step in count(0):
        folder = tmp_path / str(step)
        old.save(folder)
        (folder / "notes.txt").write_text("mine")
        done = steps_until_killed(lambda folder=folder: new.save(folder), step)
        found = lp.load(folder)
        expected = old if found.max_mcdp == 0.05 else new
        assert found.mcdp_ == expected.mcdp_
        assert ModelCard.read(folder).max_mcdp == found.max_mcdp
        shown = sorted(folder.glob("model_card.*"))
        assert len(shown) == 2 or not done
        for card in shown:
            bound = f'"max_mcdp": {found.max_mcdp}' if card.suffix == ".json" else percent(found.max_mcdp)
            assert bound in card.read_text().replace("\\", "")
        new.save(folder)
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        assert names == [data_file(folder).parent.name, *FIXED, "notes.txt"]
        if done:
            break
    assert step > 8
    assert found.max_mcdp == 0.1


def test_a_model_saved_twice_is_the_same_to_the_bit(tmp_path: Path) -> None:
    repair = ScoreRepair(random_state=0).fit(CENSUS.score, sensitive_features=SEX)
    for name in ("one", "other"):
        repair.save(tmp_path / name)
    one, other = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in files(tmp_path / name)}
        for name in ("one", "other")
    )
    assert one == other


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def model_folder(folder: Path) -> Path:
    ScoreRepair(random_state=0).fit(CENSUS.score, sensitive_features=SEX).save(folder)
    return folder


def replace_by(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", ["model.json", "maps.npy", "model_card.json"])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "it is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a link"),
        (lambda path: path.symlink_to("kept"), "it is a link"),
    ],
)
def test_pipes_devices_and_links_are_refused(name: str, make: Any, message: str, tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    path = folder / name if name == "model.json" else next(folder.glob(f"data-*/{name}"))
    path.with_name("kept").write_bytes(path.read_bytes())
    replace_by(path, make)
    with pytest.raises(ValueError, match=f"{name} cannot be read .{message}"):
        (ModelCard.read if name == "model_card.json" else lp.load)(folder)


def test_a_folder_of_files_that_is_a_link_is_refused(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    (data,) = folder.glob("data-*")
    data.rename(tmp_path / "elsewhere")
    data.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"maps.npy cannot be read \(it is a link"):
        lp.load(folder)


def test_a_huge_description_is_refused_unread(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    with (folder / "model.json").open("r+b") as file:
        file.truncate(5 * 2**30)
    with pytest.raises(ValueError, match=r"it has 5,368,709,120 bytes, more than"):
        lp.load(folder)


def test_a_pipeline_that_is_packed_is_refused(tmp_path: Path) -> None:
    """A few packed bytes may be gigabytes."""
    pytest.importorskip("skops")
    of_scikit_learn(LogisticRegression(max_iter=2000)).save(tmp_path)
    path = data_file(tmp_path, "estimator.skops")
    packed = io.BytesIO()
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in whole.namelist():
            archive.writestr(name, whole.read(name))
    path.write_bytes(packed.getvalue())
    facts = json.loads((tmp_path / "model.json").read_text())
    facts["files"]["estimator/estimator.skops"] = hashlib.sha256(packed.getvalue()).hexdigest()
    (tmp_path / "model.json").write_bytes(seal_json(facts))
    with pytest.raises(ValueError, match=r"estimator.skops cannot be read: .* must not be compressed"):
        lp.load(tmp_path)


@pytest.mark.parametrize("change", [{"estimator": "Other"}, {"model_sha256": "0" * 64}])
def test_a_card_of_another_model_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    (path,) = folder.glob("data-*/model_card.json")
    path.write_bytes(seal_json(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match="it describes another model than"):
        ModelCard.read(folder)
