"""The counts of the paper's protocol, on the original files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import localparity as lp
from localparity.models._encoding import TableEncoder
from localparity.paper._data import paper_split


def test_adult(data_folder: Path) -> None:
    adult = lp.datasets.fetch_adult()
    assert adult.data.shape == (45222, 12)
    assert "sex" not in adult.data
    assert "fnlwgt" not in adult.data
    assert dict(zip(*np.unique(adult.sensitive_features, return_counts=True), strict=True)) == {
        "Female": 14695,
        "Male": 30527,
    }
    assert adult.target.sum() == 11208
    assert adult.feature_names == list(adult.data.columns)


def test_bank(data_folder: Path) -> None:
    bank = lp.datasets.fetch_bank()
    assert bank.data.shape == (41188, 19)
    assert "age" not in bank.data
    assert "duration" in bank.data
    assert dict(zip(*np.unique(bank.sensitive_features, return_counts=True), strict=True)) == {
        "25 and over": 40120,
        "under 25": 1068,
    }
    assert bank.target.sum() == 4640


@pytest.mark.parametrize(("name", "columns"), [("adult", 101), ("bank", 62)])
def test_the_preprocessing_has_the_papers_columns_and_the_split_the_references_rows(
    data_folder: Path, reference_folder: Path, name: str, columns: int
) -> None:
    bunch = getattr(lp.datasets, f"fetch_{name}")()
    split = paper_split(bunch.target, seed=0)
    encoder = TableEncoder().fit(bunch.data.iloc[split.train])
    encoded = encoder.transform(bunch.data.iloc[split.train])
    assert encoded.shape[1] == columns
    numbers = [place for place, known in enumerate(encoder.get_feature_names_out()) if "=" not in known]
    np.testing.assert_allclose(encoded[:, numbers].mean(0), 0.0, atol=1e-9)
    np.testing.assert_allclose(encoded[:, numbers].std(0), 1.0, atol=1e-9)
    published = np.load(reference_folder / "predictions" / f"{name}_diffdp_0.1_0.npz")
    np.testing.assert_array_equal(bunch.target[split.test], published["y"])
    first_group = {"adult": "Female", "bank": "under 25"}[name]
    np.testing.assert_array_equal(
        bunch.sensitive_features[split.test] == first_group, published["group"] == 0
    )


def test_plain_columns(data_folder: Path) -> None:
    bank = lp.datasets.fetch_bank(as_frame=False)
    data, target = bank.data, bank.target
    assert isinstance(data, dict)
    assert data["duration"].dtype == np.float64
    assert len(data["job"]) == len(target) == 41188


def test_parts_do_not_overlap_and_have_all_rows() -> None:
    y = np.arange(1000) % 4 == 0
    split = paper_split(y, seed=3)
    assert sorted(np.concatenate(split)) == list(range(1000))
    assert [len(part) for part in split] == [400, 300, 300]
    assert [y[part].sum() for part in split] == [100, 75, 75]
