"""What a model card tells, what it withholds, and what it is read from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import localparity as lp
from localparity._io._files import seal_json
from localparity.models import RepairedClassifier, ScoreRepair
from localparity.models._card import _one_line
from localparity.models._rows import describe_rows
from localparity.results import Measured, ModelCard

CENSUS = lp.datasets.make_census(800, random_state=0)
X, Y, SEX = CENSUS.data.astype({"occupation": "category"}), CENSUS.target, CENSUS.sensitive_features
TREES = lp.models.LocalParityLGBMClassifier(0.0, n_estimators=3, n_jobs=1, random_state=0)
HELD_OUT = Measured(200, 0.7, 0.06, lp.results.Interval(0.02, 0.06, 0.09, 0.95), 0.04)


@pytest.fixture(scope="module")
def repaired() -> RepairedClassifier:
    return RepairedClassifier(TREES, max_mcdp=0.1, random_state=0).fit(X, Y, sensitive_features=SEX)


def test_an_estimator_tells_what_it_knows(repaired: RepairedClassifier) -> None:
    card = repaired.card()
    assert (card.estimator, card.needs_group, card.max_mcdp) == ("RepairedClassifier", True, 0.1)
    assert card.parameters["estimator"]["estimator"] == "LocalParityLGBMClassifier"
    assert card.parameters["estimator"]["n_estimators"] == 3
    assert set(card.versions) == {"python", "localparity", "numpy", "scikit-learn", "lightgbm"}
    assert card.versions["numpy"] == np.__version__
    assert card.fitted_on is not None
    assert (card.fitted_on.rows, sum(filter(None, card.fitted_on.groups.values()))) == (800, 800)
    assert card.promise == repaired.repair_.promise_


def test_a_network_tells_nothing_of_the_machine() -> None:
    network = lp.models.LocalParityClassifier(
        steps=2, hidden=(4,), device="cpu", random_state=np.random.default_rng(0)
    )
    card = network.fit(X, Y, sensitive_features=SEX).card()
    assert "torch" in card.versions
    assert "device" not in card.parameters
    assert card.parameters["random_state"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strength": 0.1}, ["Nothing is promised"]),
        ({"max_mcdp": 1.0}, ["MCDP(0) is", "within max_mcdp=1", "nothing is promised"]),
        (
            {"max_mcdp": 1.0, "confidence": 0.9},
            ["With probability 0.9", "at most 1 ", "people held out"],
        ),
        ({"max_mcdp": 0.0}, ["above max_mcdp=0", "out of 3"]),
        (
            {"max_mcdp": 0.0, "confidence": 0.9},
            ["max_mcdp=0 was not met", "With probability 0.9", "at most 0."],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::localparity.models.BoundNotMetWarning")
def test_a_bounded_classifier_tells_what_its_validation_part_said(
    options: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    model = lp.models.LocalParityLGBMClassifier(**options, n_estimators=2, n_jobs=1, random_state=0)
    model.fit(X, Y, sensitive_features=SEX)
    for word in words:
        assert word in model.promise_
    assert model.card().promise == model.promise_
    model.save(tmp_path)
    assert lp.load(tmp_path).promise_ == model.promise_


def test_what_is_written_is_read_again(repaired: RepairedClassifier, tmp_path: Path) -> None:
    card = replace(repaired.card(), held_out=HELD_OUT, file_sha256="ab", intended_use="Loans.")
    repaired.save(tmp_path, card)
    found = ModelCard.read(tmp_path)
    assert replace(found, model_sha256=None) == card
    told = (tmp_path / "model_card.md").read_text()
    for words in (
        "Loans.",
        "10.00%",
        "6.00% (2.00% to 9.00% at confidence 0.95)",
        "**Expected under parity:** 4.00%",
        "**Verdict on the bound:** ",
        "features and groups",
        "Group Female",
        "sha256 of the file:** ab",
    ):
        assert words in told, words


def test_a_card_is_not_needed_to_load(tmp_path: Path) -> None:
    repair = ScoreRepair().fit(CENSUS.score, sensitive_features=SEX)
    repair.save(tmp_path)
    (path,) = tmp_path.glob("data-*/model_card.json")
    other = json.loads(path.read_text()) | {"model_sha256": "ab"}
    for content, message in (
        (b"{", "model_card.json is damaged"),
        (b"[]", "model_card.json is damaged"),
        (b'{"estimator": 1}', "model_card.json is damaged"),
        (seal_json(other), "describes another model"),
        (seal_json(other | {"fitted_on": {"rows": 3}}), "model_card.json is damaged"),
        (seal_json(other | {"held_out": [1]}), "model_card.json is damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            ModelCard.read(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match=r"has no model card: model_card.json cannot be read"):
        ModelCard.read(tmp_path)
    assert lp.load(tmp_path).mcdp_ == repair.mcdp_


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        ([10, 20], [10, 20]),
        ([9, 20], [None, None]),
        ([9, 20, 30], [None, None, 30]),
        ([9, 8, 30], [None, None, 30]),
        ([1, 20, 20, 30], [None, None, None, 30]),
    ],
)
def test_a_small_group_is_withheld_and_cannot_be_computed(counts: list[int], shown: list[int | None]) -> None:
    codes = np.repeat(np.arange(len(counts)), counts)
    names = tuple("abcd"[: len(counts)])
    found = describe_rows(codes, names)
    assert list(found.groups.values()) == shown
    assert found.rows == sum(counts)
    card = replace(ScoreRepair().fit(CENSUS.score, sensitive_features=SEX).card(), fitted_on=found)
    assert ("withheld" in card.to_markdown()) == (None in shown)


def test_the_checksum_of_the_rows_is_that_of_their_values() -> None:
    codes, names, numbers = np.array([0, 1, 0]), ("a", "b"), np.array([[1, 2], [3, 4], [5, 7]])
    found = {
        describe_rows(codes, names, values, None).rows_sha256
        for values in (numbers, numbers.tolist(), numbers.astype(np.float32))
    }
    assert len(found) == 1
    frames = [X, X.assign(occupation=X["occupation"].astype(str)), X.iloc[::-1], X.assign(age=X["age"] + 1)]
    sums = [describe_rows(codes, names, frame).rows_sha256 for frame in frames]
    assert sums[0] == sums[1]
    assert len(set(sums)) == 3
    sparse = [csr_array(numbers), csr_array(numbers + 1)]
    assert len({describe_rows(codes, names, matrix).rows_sha256 for matrix in sparse}) == 2


def test_no_text_of_a_card_is_markup() -> None:
    assert _one_line("<b>|a*b*`c`\n[d](e)_f_") == r"\<b\>\|a\*b\*\`c\` \[d\](e)\_f\_"


def test_a_card_without_an_audit_asks_for_one() -> None:
    told = ScoreRepair().fit(CENSUS.score, sensitive_features=SEX).card()
    assert "No audit is recorded" in told.to_markdown()
    bare = replace(told, fitted_on=None, promise=None, max_mcdp=None, held_out=HELD_OUT).to_markdown()
    assert bare.count("not recorded") == 4
    assert "Verdict on the bound" not in bare
