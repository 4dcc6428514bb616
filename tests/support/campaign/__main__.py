"""``python -m campaign``: try the cases, print how they ended, and fail where one ended badly."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from campaign.arguments import BASES
from campaign.cases import make_case, problem_of
from campaign.report import write_results
from faults.cases import memory_folder
from faults.commands import write_inputs
from faults.forks import fork, import_what_it_needs, type_command
from faults.stand_ins import installed

MOST_SECONDS = 10.0
"""Of the processor, which other work does not change."""
_BATCH = 50
_PREPARE = (
    "train {in}/people.csv --target income --group sex --drop score --out {in}/model --steps 3",
    "train {in}/scored.csv --target y --group sex --out {in}/scorer --steps 3",
    "reproduce adult --methods erm --device cpu --quiet --store {in}/store --seeds 2",
    "monitor append {in}/monitor {in}/people.csv --score score --group sex --at 2026-05-17",
)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--write", action="store_true", help="write results/campaign.md")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "110", "TERM": "dumb"}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name, installed(Path(name)):
        folder = Path(name)
        os.environ["HOME"] = str(folder)
        _prepare(folder)
        numbers = range(options.first, options.first + options.cases)
        outcomes, failures = _try(folder, numbers, write=options.write)
    for (case, how), count in sorted(outcomes.items()):
        print(f"{count:7,}  {case}: {how}")
    print(f"{outcomes.total():,} cases in {time.monotonic() - begun:.0f} s, {len(failures)} failed")
    return int(bool(failures))


def _prepare(folder: Path) -> None:
    """The files that are read, and the modules that commands import."""
    inputs, said = folder / "in", folder / "said.txt"
    write_inputs(inputs)
    (inputs / "scored.csv").write_text(
        "p,sex,y\n" + "".join(f"0.{i:02d},{'fm'[i % 2]},{i // 3 % 2}\n" for i in range(60))
    )
    for text in (*_PREPARE, *BASES.values()):
        shutil.rmtree(folder / "out", ignore_errors=True)
        (folder / "out").mkdir()
        words = [
            word.replace("{in}", str(inputs)).replace("{out}", str(folder / "out")) for word in text.split()
        ]
        ended = import_what_it_needs(lambda words=words: type_command(words), said)  # type: ignore[misc]
        if ended.code not in (0, 1):
            raise RuntimeError(f"{text}: {ended}")


def _try(folder: Path, numbers: range, *, write: bool) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Try cases, many in a child; where one takes it along, the next child goes on after it."""
    outcomes, failures = Counter[tuple[str, str]](), list[str]()
    told, at = folder / "told.jsonl", numbers.start
    while at < numbers.stop:
        batch = range(at, min(at + _BATCH, numbers.stop))
        told.write_text("")
        ended = fork(lambda batch=batch: _try_batch(folder, batch, told), folder / "batch.txt", seconds=900)  # type: ignore[misc]
        lines = [json.loads(line) for line in told.read_text().splitlines()]
        if len(lines) < len(batch):
            case = make_case(at + len(lines), folder / "in", folder / "out")
            how = "a hang" if ended.code == -signal.SIGPROF else f"the process ended with {ended.code}"
            lines.append([at + len(lines), case.name, how, how, case.words, ended.said[-300:]])
        for number, name, how, problem, words, said in lines:
            outcomes[name, how] += 1
            if problem:
                failures.append(f"case {number}: {problem}: {words}: {said[-150:]!r}")
                print(failures[-1], flush=True)
        at += len(lines)
        if write:
            write_results(outcomes, failures)
    return outcomes, failures


def _try_batch(folder: Path, numbers: range, told: Path) -> int:
    """Try cases in this process, and write a line about each."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for number in numbers:
        case = make_case(number, folder / "in", folder / "out")
        os.chdir(folder / "out")
        said = folder / "case.txt"
        stream = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for standard in (1, 2):
            os.dup2(stream, standard)
        os.close(stream)
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        code = type_command(case.words)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.flush()
        sys.stderr.flush()
        text = said.read_text(errors="replace")
        how = {0: "done", 1: "above the bound", 2: "refused"}.get(code, f"exit code {code}")
        with told.open("a") as lines:
            lines.write(
                json.dumps([number, case.name, how, problem_of(case, code, text), case.words, text[-300:]])
                + "\n"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
