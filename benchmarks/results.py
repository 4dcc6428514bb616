"""`make results`: make anew what is cheap of results/, and list the rest with its age and command.

What is cheap is computed from runs that are under results/ themselves. The rest takes minutes to hours, a
quiet machine or a GPU. It is listed with the commit and the age of its last change, and with the number of
changes to the package since; most files name the commits that they measured themselves.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHEAP = {
    "equal.csv equal.md equal.png": ("-m", "benchmarks.equal_table"),
    "frontier.md frontier.png": ("-m", "benchmarks.frontier_table"),
}
SEARCHED = (
    "how preset tuned was chosen: benchmarks/tuning.py until 86f8f13d; since then benchmarks.equal_search"
)
COMMANDS = {
    "attacks": "python -m benchmarks.attacks",
    "bands": "python -m benchmarks.bands",
    "boosting": "python -m benchmarks.boosting",
    "campaign": "make campaign",
    "cold_start": "make bench",
    "curves": "make bench",
    "duckdb_scale": "make bench-scale",
    "equal_search": "python -m benchmarks.equal_search search FOLDER DATA",
    "equal_test": "python -m benchmarks.equal_search test FOLDER DATA",
    "explain": "python -m benchmarks.explain",
    "faithful": "python -m benchmarks.faithful REFERENCE.csv STORE",
    "faults": "make faults",
    "frontier": "python -m benchmarks.frontier, benchmarks.frontier_faces",
    "frontier_census": "python -m benchmarks.frontier_census",
    "gpu_scale": "python -m benchmarks.gpu_scale",
    "gpu_step": "python -m benchmarks.gpu_step",
    "ground": "make bench",
    "impact": "make promises",
    "ingredients": "python -m benchmarks.ingredients",
    "intervals": "make promises",
    "leaderboard": "python -m benchmarks.leaderboard",
    "monitor_delays": "python -m benchmarks.monitors",
    "monitor_scale": "python -m benchmarks.monitor_scale --write",
    "monitors": "python -m benchmarks.monitors",
    "mutants": "make mutants",
    "others": "python -m benchmarks.others",
    "paired": "python -m benchmarks.paired",
    "power": "python -m benchmarks.power",
    "promised": "python -m benchmarks.promised",
    "promises": "make promises",
    "ratio": "python -m benchmarks.ratio",
    "reproduce": "localparity reproduce (results/reproduce/README.md)",
    "search": SEARCHED,
    "search-utkface": SEARCHED,
    "search_cost": "python -m benchmarks.search_cost",
    "selection": "make promises",
    "spark_scale": "make bench-scale",
    "speed": "make bench",
    "tuning": SEARCHED,
}


def costly() -> dict[str, str]:
    """The files that are only listed, and the command that renews each."""
    cheap = {name for names in CHEAP for name in names.split()}
    names = sorted(path.name for path in (ROOT / "results").iterdir() if path.name not in cheap)
    return {name: COMMANDS[Path(name).stem] for name in names}


def git(*words: str) -> list[str]:
    """The words that git answers."""
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()


def main() -> None:
    for names, arguments in CHEAP.items():
        subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True)
        print(f"made anew: {names}")
    print("last change, its age, and the changes to the package since:")
    for name, command in costly().items():
        day, commit = git("log", "-1", "--format=%cs %h", "--", f"results/{name}")
        days = (date.today() - date.fromisoformat(day)).days
        (changes,) = git("rev-list", "--count", f"{commit}..HEAD", "--", "src")
        print(f"{name:22} {commit} {days:4d} days {changes:>5}  {command}")


if __name__ == "__main__":
    main()
