"""`make instructions`: how many instructions a row the hot loops take, held to a baseline.

A count does not depend on how busy the machine is. It is the slope between two sizes, so that starting up,
compiling and the interpreter cancel, and the loops are compiled for a plain processor, so that it does not
depend on which one there is. ``python -m benchmarks.instructions --renew`` writes the baseline anew.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numba
import numpy as np

import localparity as lp
from benchmarks._draws import draw_scores
from localparity._compiled import MANY

BASELINE = Path(__file__).with_suffix(".json")
CACHE = Path(sys.prefix) / "instructions-cache"
SIZES = (8_000, 24_000)
TOLERANCE = 0.05

_EPSILONS = np.array([0.0, 0.01, 0.05, 0.1])
# A function of the C library that nothing else calls: callgrind writes down its count whenever it is entered.
_MARK, _ENTERED = "lcong48", "lcong48_r"
_PLAIN = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_CACHE_DIR": str(CACHE),
    "NPY_DISABLE_CPU_FEATURES": " ".join(np._core._multiarray_umath.__cpu_dispatch__),
    "OPENBLAS_CORETYPE": "NEHALEM",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX,-ERMS,-FSRM,-AVX512F,-AVX512VL,-AVX_Fast_Unaligned_Load",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "ignore",
}

Call = Callable[[], object]


def calls(rows: int) -> dict[str, Call]:
    """What is counted, by its name: together they run every compiled loop.

    Counts keep their curves, so that each call takes new ones.
    """
    scores, groups = draw_scores(rows, "disparity")
    labels = np.random.default_rng(1).integers(0, 2, rows)
    predictions = lp.Predictions.from_arrays(labels, scores, sensitive_features=groups)
    counts = lp.ScoreCounts.from_predictions(predictions)
    coarse = lp.counts.bounded(counts, max_scores=1, level=20)
    objective = lp.models.MCDPObjective(labels, sensitive_features=groups, temperature=20.0, search="exact")
    margins = np.log(scores / (1.0 - scores))
    repair = lp.models.ScoreRepair(max_mcdp=0.02)
    ages = np.random.default_rng(2).integers(18, 90, rows)
    return {
        "the profile of arrays": lambda: lp.mcdp_profile(None, scores, sensitive_features=groups).values,
        "the profile of counts": lambda: lp.mcdp_profile(replace(counts)).values,
        "the worst windows": lambda: lp.gap_curve(replace(counts), groups=(0, 1)).worst_window(),
        "bounds on a grid": lambda: lp.mcdp_bounds(replace(coarse), epsilon=0.01),
        "the worst split": lambda: lp.worst_split(
            lp.Predictions.from_arrays(None, scores, sensitive_features=ages), n_resamples=0
        ),
        "a boosting objective": lambda: objective(margins),
        "a repair fitted": lambda: repair.fit(scores, sensitive_features=groups),
        "a repair applied": lambda: repair.fit(scores, sensitive_features=groups).transform(
            scores, sensitive_features=groups
        ),
    }


def run_marked() -> None:
    """Run every call at both sizes, each between two marks."""
    scores, groups = draw_scores(MANY, "disparity")
    lp.mcdp_profile(None, scores, sensitive_features=groups).values  # noqa: B018, so many that all is compiled
    mark = partial(getattr(ctypes.CDLL(None), _MARK), (ctypes.c_ushort * 7)())
    for rows in SIZES:
        for call in calls(rows).values():
            call()
            mark()
            call()
            mark()


def count() -> dict[str, float]:
    """The instructions a row of each call."""
    child = [sys.executable, "-m", "benchmarks.instructions", "--marked"]
    environment = {**os.environ, **_PLAIN}
    subprocess.run(child, env=environment, check=True)  # compiles, for callgrind to find it compiled
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        tool = ["valgrind", "--tool=callgrind", f"--dump-before={_ENTERED}", f"--callgrind-out-file={out}"]
        subprocess.run([*tool, *child], env=environment, check=True, capture_output=True)
        numbers = range(1, 1 + len(list(out.parent.glob("out.*"))))
        dumps = [_total(Path(f"{out}.{number}")) for number in numbers]
    names, between = list(calls(SIZES[0])), dumps[1::2]
    small, large = between[: len(names)], between[len(names) :]
    rows = SIZES[1] - SIZES[0]
    return {name: round((b - a) / rows, 1) for name, a, b in zip(names, small, large, strict=True)}


def _total(dump: Path) -> int:
    found = re.search(r"^totals: (\d+)$", dump.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def versions() -> dict[str, str]:
    """What the counts depend on."""
    return {"numba": numba.__version__, "numpy": np.__version__}


def main() -> None:
    """Count, and compare with the baseline or write it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--renew", action="store_true", help="write the baseline")
    parser.add_argument("--marked", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.marked:
        run_marked()
    elif shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed (Debian's package valgrind), so instructions cannot be counted")
    elif given.renew:
        baseline = {"versions": versions(), "instructions a row": count()}
        BASELINE.write_text(json.dumps(baseline, indent=1) + "\n")
    else:
        sys.exit(compare(count(), json.loads(BASELINE.read_text())))


def compare(found: dict[str, float], baseline: dict[str, dict[str, object]]) -> str | None:
    """Print what was counted beside the baseline; what is wrong, or None."""
    before = {name: float(str(value)) for name, value in baseline["instructions a row"].items()}
    more = {name: found[name] / before[name] - 1.0 for name in before if name in found}
    for name, change in more.items():
        print(f"{found[name]:10.1f} instructions a row, {change:+7.1%}: {name}")
    renew = "if that is meant, run `python -m benchmarks.instructions --renew` and commit the baseline"
    if found.keys() != before.keys() or baseline["versions"] != versions():
        return f"the baseline has other calls, or {baseline['versions']} and not {versions()}; {renew}"
    slower = ", ".join(name for name, change in more.items() if change > TOLERANCE)
    return f"over {TOLERANCE:.0%} more instructions than before: {slower}; {renew}" if slower else None


if __name__ == "__main__":
    main()
