"""``python -m faults``: try the faults, count them, and fail where something was lost; see ``make faults``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks._commit import current_commit

from faults.cases import Bench, Tally, try_command
from faults.commands import COMMANDS
from faults.machine import FAULTS, compile_preload
from processes import memory_folder
from results_page import Row, rows_of, write_page

_LIBRARY = "LOCALPARITY_FAULTY"
_OUTCOMES = ("done", "refused", "interrupted", "killed")
_TEXT = (
    f"Every command that writes, with a fault at every change that it makes to files ({', '.join(fault.name for fault in FAULTS)}), "
    "killed at random moments (`make faults`: at 200), into a read-only folder, with 64 open files, with little memory and with a "
    "clock that went back; each from an empty folder and over what an earlier command wrote. After each: what can be read is the old or the "
    "new one, the command typed again succeeds, and no other file is left than without a fault. `make faults` writes this table. Where "
    "fewer faults were tried than are possible, they were drawn at random (`python -m faults --only COMMAND --faults 200 --kills 20 --write`)."
)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--only", help="the command to try")
    parser.add_argument("--faults", type=int, help="try so many faults of each at random; all by default")
    parser.add_argument("--kills", type=int, default=200, help="random moments to kill each at")
    parser.add_argument(
        "--write", action="store_true", help="write results/faults.md, and go on where it stops"
    )
    options = parser.parse_args()
    if _LIBRARY not in os.environ:
        return _with_preload()
    from faults.stand_ins import installed

    total = failed = 0
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder, installed(Path(folder)):
        bench = Bench(Path(folder), Path(os.environ[_LIBRARY]))
        for command in COMMANDS:
            if options.only not in (None, command.name):
                continue
            if options.write and options.only is None and _is_done(command.name):
                continue
            tally = try_command(bench, command, faults=options.faults, kills=options.kills)
            cases = tally.outcomes.total()
            print(f"{command.name}: {cases} cases, {len(tally.failures)} failed", flush=True)
            print("".join(f"  {failure}\n" for failure in tally.failures[:10]), end="", flush=True)
            if options.write:
                _write(command.name, tally)
            total, failed = total + cases, failed + len(tally.failures)
    print(f"{total:,} cases, {failed} failed")
    return int(failed > 0)


def _is_done(name: str) -> bool:
    """Whether every fault of a command was tried at this commit, and none did harm."""
    row = rows_of("faults").get(f"`{name}`", {})
    whole = row.get("faults possible") == row.get("faults tried")
    return row.get("commit") == current_commit() and whole and row.get("failed") == 0


def _write(name: str, tally: Tally) -> None:
    """Write the row of a command beside those of the others."""
    row: Row = {
        "command": f"`{name}`",
        "commit": current_commit(),
        "changes to files": tally.steps,
        "faults possible": tally.possible,
        "faults tried": tally.tried,
        "cases": tally.outcomes.total(),
        **{outcome: tally.outcomes[outcome] for outcome in _OUTCOMES},
        "failed": len(tally.failures),
    }
    rows = [*({**rows_of("faults"), row["command"]: row}).values()]
    cases, failed = (sum(int(each[column]) for each in rows) for column in ("cases", "failed"))
    write_page(
        "faults", "Faults while files are written", _TEXT, rows, [f"{cases:,} cases, {failed} failed."]
    )


def _with_preload() -> int:
    """Start again with the library that fails steps, in a process that starts no threads."""
    with tempfile.TemporaryDirectory() as folder:
        library = str(compile_preload(Path(folder)))
        # Without the data sets that are at hand, `fetch` asks for them.
        environment = {name: value for name, value in os.environ.items() if name != "LOCALPARITY_DATA"}
        environment |= {"LD_PRELOAD": library, _LIBRARY: library}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return os.spawnve(
            os.P_WAIT, sys.executable, [sys.executable, "-m", "faults", *sys.argv[1:]], environment
        )


if __name__ == "__main__":
    sys.exit(main())
