"""``python -m faults``: try the faults, print how many there were, and fail where something was lost."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from faults.cases import Bench, Tally, memory_folder, try_command
from faults.commands import COMMANDS
from faults.forks import compile_preload
from faults.report import write_results

_LIBRARY = "LOCALPARITY_FAULTY"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--only", help="the command to try")
    parser.add_argument("--faults", type=int, help="try so many faults of each at random; all by default")
    parser.add_argument("--kills", type=int, default=200, help="random moments to kill each at")
    parser.add_argument("--write", action="store_true", help="write results/faults.md")
    options = parser.parse_args()
    if _LIBRARY not in os.environ:
        return _with_preload()
    library = Path(os.environ[_LIBRARY])
    tallies: dict[str, Tally] = {}
    from faults.stand_ins import installed

    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder, installed(Path(folder)):
        bench = Bench(Path(folder), library)
        for command in COMMANDS:
            if options.only is None or command.name == options.only:
                tally = tallies[command.name] = try_command(
                    bench, command, faults=options.faults, kills=options.kills
                )
                print(
                    f"{command.name}: {tally.outcomes.total()} cases, {len(tally.failures)} failed",
                    flush=True,
                )
                for failure in tally.failures[:10]:
                    print(f"  {failure}", flush=True)
                if options.write:
                    write_results(tallies)
    failed = sum(len(tally.failures) for tally in tallies.values())
    print(f"{sum(tally.outcomes.total() for tally in tallies.values()):,} cases, {failed} failed")
    return int(failed > 0)


def _with_preload() -> int:
    """Start again with the library that fails steps, in a process that starts no threads."""
    with tempfile.TemporaryDirectory() as folder:
        library = str(compile_preload(Path(folder)))
        given = {
            "LD_PRELOAD": library,
            _LIBRARY: library,
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        words = [sys.executable, "-m", "faults", *sys.argv[1:]]
        # Without the data sets that are at hand, `fetch` asks for them.
        known = {name: value for name, value in os.environ.items() if name != "LOCALPARITY_DATA"}
        return os.spawnve(os.P_WAIT, sys.executable, words, {**known, **given})


if __name__ == "__main__":
    sys.exit(main())
