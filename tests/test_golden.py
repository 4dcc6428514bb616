"""Files that earlier versions wrote: a change of a format is seen here, and old files stay readable or are named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import localparity as lp
from localparity.monitoring import ScoreSketch

GOLDEN = Path(__file__).parent / "golden"


def test_a_sketch_of_format_2_is_read() -> None:
    pytest.importorskip("datasketches")
    data = (GOLDEN / "sketch-2.bin").read_bytes()
    sketch = ScoreSketch.from_bytes(data)
    assert (sketch.k, sketch.size, sketch.labelled) == (8, 4, True)
    assert sketch.counts().groups == ("a", "b")
    assert lp.mcdp(sketch.counts(), criterion="equal_opportunity") == 1.0
    assert sketch.to_bytes() == data


def test_a_model_of_format_3_is_read() -> None:
    model = lp.load(GOLDEN / "model-3")
    assert model.transform([0.1, 0.9], sensitive_features=["f", "m"]).tolist() == pytest.approx([0.2, 0.65])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (1, "model.json was written by localparity 0.1, in format 1; .* 3: train the model again"),
        (9, "model.json was written by a newer localparity, in format 9; .* 3: update"),
        ("3", "model.json is damaged: its format must be a whole number, got '3'"),
    ],
)
def test_a_model_of_another_format_is_named(tmp_path: Path, found: object, message: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(GOLDEN / "model-3", folder)
    described = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**described, "format": found}))
    with pytest.raises(ValueError, match=message):
        lp.load(folder)
