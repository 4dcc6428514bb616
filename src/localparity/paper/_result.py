"""What a run gives: its metrics and the test scores they were measured on."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._io._files import parse_json, reading, write_whole
from localparity.metrics import abcc, delta_dp, mcdp_profile
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.paper._run import Run

FROM_SCRATCH, FROM_IMAGENET = "from scratch", "from ImageNet weights"


class Scored:
    """The scores of some people, with their groups and labels.

    Parameters
    ----------
    score : ndarray
        Scores in [0, 1], as float32.
    group : ndarray
        The groups' names.
    label : ndarray
        0 or 1.

    Examples
    --------
    >>> people = Scored(np.array([0.1, 0.9]), np.array(["f", "m"]), np.array([0, 1]))
    >>> people.measure("test")["test_mcdp_0"]
    1.0
    """

    def __init__(self, score: NDArray[Any], group: NDArray[Any], label: NDArray[Any]) -> None:
        self.score = score.astype(np.float32)
        self.group = group.astype(str)
        self.label = label.astype(np.int8)

    def measure(self, part: str) -> dict[str, float]:
        """Average precision and the disparities, as fractions, each name led by the part's."""
        from sklearn.metrics import average_precision_score

        codes = np.unique(self.group, return_inverse=True)[1]
        people: dict[str, Any] = {"y_score": self.score, "sensitive_features": codes}
        profile = mcdp_profile(None, **people)
        found = {
            "ap": float(average_precision_score(self.label, self.score)),
            "delta_dp": delta_dp(None, **people, threshold=0.5),
            "delta_dp_mean": delta_dp(None, **people),
            "abcc": abcc(None, **people),
            **{f"mcdp_{epsilon_name(epsilon)}": float(profile(epsilon)) for epsilon in PAPER_EPSILONS},
        }
        return {f"{part}_{name}": value for name, value in found.items()}


def epsilon_name(epsilon: float) -> str:
    """An epsilon as part of a column's name.

    Examples
    --------
    >>> epsilon_name(0.05)
    '0_05'
    """
    return f"{epsilon:g}".replace(".", "_")


@dataclass(frozen=True)
class Result:
    """What a run gives.

    Parameters
    ----------
    metrics : dict
        The metrics of the validation and of the test part, as fractions.
    test : Scored
        The test part's scores.
    seconds : float
        How long training took; of a stack, its share.
    device : str
        Where it was trained.
    versions : dict
        The versions of localparity and torch.
    start : str
        Where the network started: "from scratch" or "from ImageNet weights".
    """

    metrics: dict[str, float]
    test: Scored
    seconds: float
    device: str
    versions: dict[str, str]
    start: str = FROM_SCRATCH


def save_result(path: Path, run: Run, result: Result) -> None:
    """Write a run and what it gave as one .npz, to be added to a store elsewhere; needs no DuckDB."""
    facts = {
        "run": run.to_dict(),
        "key": run.key,
        "metrics": result.metrics,
        "seconds": result.seconds,
        "device": result.device,
        "versions": result.versions,
        "start": result.start,
    }
    content = BytesIO()
    test = result.test
    np.savez_compressed(
        content, facts=np.array(json.dumps(facts)), score=test.score, group=test.group, label=test.label
    )
    write_whole(path, content.getvalue())


def load_result(path: Path) -> tuple[Run, Result]:
    """The run and the result that `save_result` wrote."""
    breaks = (OSError, EOFError, MemoryError, zlib.error, zipfile.BadZipFile, NotImplementedError)
    with path.open("rb") as file, reading(str(path), *breaks):
        found = np.load(file, allow_pickle=False)
        facts = parse_json(str(found["facts"]).encode())
        test = Scored(found["score"], found["group"], found["label"])
        run = Run(**facts.pop("run"))
        if run.key != facts.pop("key"):
            raise ValueError(f"{path} was trained with settings that have changed since")
        return run, Result(test=test, **facts)
