"""Exported models in a real onnxruntime, against predict_proba."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import localparity as lp
from localparity.integrations.onnx import to_onnx

runtime = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*LeafSpec.* is deprecated:FutureWarning"
)  # inside torch's exporter

NUMBERS = ["age", "education_years", "hours_per_week"]


def people(*, texts: bool, seed: int = 0) -> tuple[pd.DataFrame, Any, Any]:
    census = lp.datasets.make_census(800, random_state=seed)
    table = census.data.astype({"occupation": object})
    table.loc[::7, "education_years"] = np.nan
    table.loc[::11, "occupation"] = None
    return table if texts else table[NUMBERS], census.target, census.sensitive_features


def encoded(model: Any, table: pd.DataFrame) -> Any:
    """The table as the file takes it: the place of each text among the categories."""
    columns = []
    for name, known in zip(table.columns, model.encoder_.categories_, strict=True):
        if known is None:
            columns.append(table[name].to_numpy(dtype=np.float64))
        else:
            values = table[name].astype(object).where(table[name].notna(), None)
            columns.append(np.array([known.index(value) for value in values], dtype=np.float64))
    return np.column_stack(columns)


def scores(path: Path, features: Any) -> Any:
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (found,) = session.run(["score"], {"features": features})
    return found


@pytest.mark.parametrize("texts", [False, True])
def test_a_network(texts: bool, tmp_path: Path) -> None:
    table, y, sex = people(texts=texts)
    model = lp.models.LocalParityClassifier(steps=30, random_state=0).fit(table, y, sensitive_features=sex)
    to_onnx(model, tmp_path / "model.onnx")
    others, *_ = people(texts=texts, seed=1)
    for some in (others, others[:1]):
        found = scores(tmp_path / "model.onnx", encoded(model, some))
        np.testing.assert_allclose(found, model.predict_proba(some)[:, 1], rtol=0.0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:values that fit did not see")
@pytest.mark.parametrize("kind", [lp.models.LocalParityLGBMClassifier, lp.models.LocalParityXGBClassifier])
def test_trees(kind: Any, tmp_path: Path) -> None:
    table, y, sex = people(texts=False)
    model = kind(strength=0.5, n_estimators=30, random_state=0).fit(table, y, sensitive_features=sex)
    model.save(tmp_path / "model")
    to_onnx(lp.load(tmp_path / "model"), tmp_path / "model.onnx")
    others, *_ = people(texts=False, seed=1)
    others.loc[::5, "age"] = np.nan
    for some in (others, others[:1]):
        found = scores(tmp_path / "model.onnx", some.to_numpy(dtype=np.float64))
        expected = model.predict_proba(some)[:, 1]
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-6)


def test_what_cannot_be_exported_is_named(tmp_path: Path) -> None:
    table, y, sex = people(texts=True)
    trees = lp.models.LocalParityXGBClassifier(n_estimators=2).fit(table, y, sensitive_features=sex)
    with pytest.raises(ValueError, match="numbers alone, got the text columns 'occupation'"):
        to_onnx(trees, tmp_path / "model.onnx")
    zeros = lp.models.LocalParityLGBMClassifier(n_estimators=2, booster_params={"zero_as_missing": True})
    zeros.fit(table[NUMBERS], y, sensitive_features=sex)
    with pytest.raises(ValueError, match="zeros as missing"):
        to_onnx(zeros, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match=r"model must be .*got a ScoreRepair"):
        to_onnx(lp.models.ScoreRepair(), tmp_path / "model.onnx")  # type: ignore[arg-type]
    assert not (tmp_path / "model.onnx").exists()
