"""Damaged folders of models."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzzing import damaged, damaged_json, fuzz, read_or_refuse, sealed
from localparity import load
from localparity.datasets import make_census
from localparity.models import (
    GroupBlindClassifier,
    GroupBlindRepair,
    LocalParityClassifier,
    LocalParityLGBMClassifier,
    LocalParityXGBClassifier,
    ScoreRepair,
)
from localparity.models.trees._stock import StockTrees
from model_folders import data_file

CENSUS = make_census(300, random_state=0)
NUMBERS = CENSUS.data.select_dtypes("number")
MODELS = [
    LocalParityClassifier(hidden=(4,), steps=2, random_state=0),
    LocalParityXGBClassifier(0.1, n_estimators=2, random_state=0),
    LocalParityLGBMClassifier(0.1, n_estimators=2, random_state=0),
]


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    found = request.param.fit(NUMBERS, CENSUS.target, sensitive_features=CENSUS.sensitive_features)
    found.save(tmp_path)
    return found


def test_other_learned_values_are_refused(model: Any, tmp_path: Path) -> None:
    path = data_file(tmp_path)
    valid = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        assert content == valid or read_or_refuse(lambda: model.load(tmp_path), str(tmp_path)) is None

    fuzz(damaged(valid), check)


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_a_damaged_description_is_refused_or_works(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    valid = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        found = read_or_refuse(lambda: model.load(tmp_path), str(tmp_path))
        if found is not None:
            classes = read_or_refuse(lambda: found.predict(NUMBERS), "feature", "column")
            assert classes is None or classes.shape == (300,)

    fuzz(damaged(valid) | damaged_json(json.loads(valid)).map(sealed), check)


def test_tensors_that_lie_and_whose_checksum_fits_are_refused_or_work(tmp_path: Path) -> None:
    model = MODELS[0].fit(NUMBERS, CENSUS.target, sensitive_features=CENSUS.sensitive_features)
    model.save(tmp_path)
    path, description = data_file(tmp_path), json.loads((tmp_path / "model.json").read_bytes())
    valid = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        fitting = description | {"files": {path.name: hashlib.sha256(content).hexdigest()}}
        (tmp_path / "model.json").write_bytes(sealed(fitting))
        found = read_or_refuse(lambda: LocalParityClassifier.load(tmp_path), str(tmp_path))
        assert found is None or found.predict(NUMBERS).shape == (300,)

    fuzz(damaged(valid), check)


def test_a_damaged_repair_is_refused_or_works(tmp_path: Path) -> None:
    sex = CENSUS.sensitive_features
    ScoreRepair().fit(CENSUS.score, sensitive_features=sex).save(tmp_path)
    path, maps = tmp_path / "model.json", data_file(tmp_path)
    description, valid = path.read_bytes(), maps.read_bytes()

    def transform() -> None:
        found = read_or_refuse(lambda: load(tmp_path), str(tmp_path))
        if isinstance(found, ScoreRepair):
            told = "sensitive_features", "scores", "score_range"
            read_or_refuse(lambda: found.transform(CENSUS.score, sensitive_features=sex), *told)

    def check_description(content: bytes) -> None:
        path.write_bytes(content)
        transform()

    def check_maps(content: bytes) -> None:
        maps.write_bytes(content)
        fitting = json.loads(description) | {"files": {maps.name: hashlib.sha256(content).hexdigest()}}
        path.write_bytes(sealed(fitting))
        transform()

    fuzz(damaged_json(json.loads(description)).map(sealed), check_description)
    fuzz(damaged(valid), check_maps)


def test_a_damaged_group_blind_repair_is_refused_or_works(tmp_path: Path) -> None:
    women = CENSUS.data["occupation"].map({"care": 0.78, "office": 0.55, "technical": 0.4, "trades": 0.1})
    chances = np.column_stack([women, 1.0 - women])
    repair = GroupBlindRepair(0.2, min_group_size=5)
    repair.fit(CENSUS.score, sensitive_features=CENSUS.sensitive_features, group_probabilities=chances)
    repair.save(tmp_path)
    path = tmp_path / "model.json"
    valid = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        found = read_or_refuse(lambda: load(tmp_path), str(tmp_path))
        if isinstance(found, GroupBlindRepair):
            told = "group_probabilities", "criterion"
            scores = read_or_refuse(lambda: found.transform(CENSUS.score, group_probabilities=chances), *told)
            assert scores is None or np.isfinite(scores).all()

    fuzz(damaged(valid) | damaged_json(json.loads(valid)).map(sealed), check)


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_a_damaged_group_blind_classifier_is_refused_or_works(tmp_path: Path) -> None:
    trees = StockTrees(n_estimators=2, random_state=0)
    model = GroupBlindClassifier(trees, trees, max_mcdp=0.6, cv=2, random_state=0)
    model.fit(NUMBERS, CENSUS.target, sensitive_features=CENSUS.sensitive_features).save(tmp_path)
    path = tmp_path / "model.json"
    valid = path.read_bytes()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        found = read_or_refuse(lambda: load(tmp_path), str(tmp_path))
        if isinstance(found, GroupBlindClassifier):
            told = "feature", "column", "columns"
            classes = read_or_refuse(lambda: found.predict(NUMBERS), *told)
            assert classes is None or classes.shape == (300,)

    fuzz(damaged_json(json.loads(valid)).map(sealed), check)
