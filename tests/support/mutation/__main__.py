"""``python -m mutation``: try the mutants, write the results, and fail where a survivor is not explained."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mutation.mutants import Mutant, mutants_of
from mutation.report import unexplained, write_results
from mutation.selection import KERNELS, baseline, environment, load_ahead, state_of_tests
from processes import ROOT, Journal

PACKAGES = ("counts", "metrics", "uncertainty")


def main() -> int:
    """The command."""
    options = _options()
    journal = Journal("mutants", fresh=options.fresh)
    files = [name for name in _files() if any(part in name for part in options.files or [""])]
    mutants = [mutant for name in files for mutant in mutants_of(ROOT / name, name)]
    chosen = mutants
    if options.sample is not None:
        # The order of the digests is as good as chance, and the same each time.
        digests = set(sorted(mutant.digest for mutant in mutants)[: options.sample])
        chosen = [mutant for mutant in mutants if mutant.digest in digests]
    if not options.report:
        for name in files:
            _try_file(name, [mutant for mutant in chosen if mutant.file == name], options.jobs, journal)
    known = journal.known()
    rows = [(mutant, known.get(mutant.digest)) for mutant in chosen]
    whole = options.sample is None and not options.files
    if not options.files:
        write_results(rows, of=mutants)
    tried = [(mutant, row) for mutant, row in rows if row is not None]
    survivors = sum(row["result"] == "survived" for _, row in tried)
    print(f"{len(rows)} mutants, {len(tried) - survivors} killed, {survivors} survived")
    problems = unexplained(tried, whole=whole and len(tried) == len(rows))
    print(*problems, sep="\n")
    return 1 if problems or len(tried) < len(rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("files", nargs="*", help="parts of the names of the files to take; all without them")
    parser.add_argument("--sample", type=int, help="try this many mutants, the same ones each time")
    parser.add_argument("--jobs", type=int, default=1, help="how many are tried at a time")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run has killed")
    parser.add_argument("--report", action="store_true", help="try nothing, and write what is known so far")
    return parser.parse_args()


def _files() -> list[str]:
    folders = [ROOT / "src" / "localparity" / package for package in PACKAGES]
    return [str(path.relative_to(ROOT)) for folder in folders for path in sorted(folder.glob("*.py"))]


def _is_done(row: dict[str, Any] | None) -> bool:
    return row is not None and (row["result"] != "survived" or row["state"] == state_of_tests())


def _try_file(name: str, mutants: Sequence[Mutant], jobs: int, journal: Journal) -> None:
    """Try what no earlier run has killed, in a process of its own that the compiler is on or off in.

    What has survived is tried again when a test has changed.
    """
    known = journal.known()
    left = [mutant for mutant in mutants if not _is_done(known.get(mutant.digest))]
    if not left:
        return
    compiled = Path(name).name not in KERNELS
    baseline(compiled=compiled)
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            sys.exit(f"the mutants of {name} could not be tried")
        return
    code = 1
    try:
        os.environ.update(environment(compiled=compiled))
        load_ahead()
        for done, (mutant, outcome) in enumerate(_outcomes(name, left, jobs, compiled=compiled), 1):
            journal.add(mutant.digest, state=state_of_tests(), **outcome._asdict())
            if outcome.result == "survived":
                print(f"survived: {name}:{mutant.line} {mutant.was} -> {mutant.now}", flush=True)
            if done % 50 == 0 or done == len(left):
                print(f"{name}: {done} of {len(left)}", flush=True)
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _outcomes(name: str, mutants: Sequence[Mutant], jobs: int, *, compiled: bool) -> Iterator[Any]:
    """Try the file as it is, on which the tests must pass, and then its mutants."""
    from mutation.execution import Trial, outcomes

    source, measured = (ROOT / name).read_text(), baseline(compiled=compiled)

    def trial(mutant: Mutant) -> Trial:
        return Trial(mutant, {test: measured.seconds[test] for test in measured.tests_of(mutant, source)})

    ((_, control),) = outcomes([trial(Mutant(name, 1, "", "", "", 0, source))], jobs=1)
    if control.result != "survived":
        raise RuntimeError(f"the tests fail on {name} as it is: {control}")
    yield from outcomes([trial(mutant) for mutant in mutants], jobs)


if __name__ == "__main__":
    sys.exit(main())
