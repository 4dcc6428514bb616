"""``python -m mutation``: try the mutants, write the results, and fail where a survivor is not explained."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mutation.mutants import Mutant, mutants_of
from mutation.report import unexplained, write_results
from mutation.selection import KERNELS, ROOT, WORK, baseline, environment, load_ahead, state_of_tests

PACKAGES = ("counts", "metrics", "uncertainty")
OUTCOMES = WORK / "outcomes.jsonl"


def main() -> int:
    """The command."""
    options = _options()
    if options.fresh:
        OUTCOMES.unlink(missing_ok=True)
    files = [name for name in _files() if any(part in name for part in options.files or [""])]
    mutants = [mutant for name in files for mutant in mutants_of(ROOT / name, name)]
    chosen = mutants
    if options.sample is not None:
        # The order of the digests is as good as chance, and the same each time.
        digests = {
            mutant.digest for mutant in sorted(mutants, key=lambda each: each.digest)[: options.sample]
        }
        chosen = [mutant for mutant in mutants if mutant.digest in digests]
    if not options.report:
        for name in files:
            _try_file(name, [mutant for mutant in chosen if mutant.file == name], options.jobs)
    known = _known()
    rows = [(mutant, known.get(mutant.digest)) for mutant in chosen]
    whole = options.sample is None and not options.files
    if whole:
        write_results(rows)
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


def _known() -> dict[str, dict[str, Any]]:
    """What is known of each mutant, by its digest; the last word counts."""
    if not OUTCOMES.exists():
        return {}
    rows = [json.loads(line) for line in OUTCOMES.read_text().splitlines() if line.endswith("}")]
    return {row["digest"]: row for row in rows}


def _is_done(row: dict[str, Any] | None) -> bool:
    return row is not None and (row["result"] != "survived" or row["state"] == state_of_tests())


def _try_file(name: str, mutants: Sequence[Mutant], jobs: int) -> None:
    """Try what no earlier run has killed, in a process of its own that the compiler is on or off in.

    What has survived is tried again when a test has changed.
    """
    known = _known()
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
        _try_mutants(name, left, jobs, compiled=compiled)
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _try_mutants(name: str, mutants: Sequence[Mutant], jobs: int, *, compiled: bool) -> None:
    load_ahead()
    from mutation.execution import Trial, outcomes

    source, known = (ROOT / name).read_text(), baseline(compiled=compiled)

    def trial(mutant: Mutant) -> Trial:
        return Trial(mutant, {test: known.seconds[test] for test in known.tests_of(mutant, source)})

    ((_, control),) = outcomes([trial(Mutant(name, 1, "", "", "", 0, source))], jobs=1)
    if control.result != "survived":
        raise RuntimeError(f"the tests fail on {name} as it is: {control}")
    trials = [trial(mutant) for mutant in mutants]
    with OUTCOMES.open("a") as file:
        for done, (mutant, outcome) in enumerate(outcomes(trials, jobs), 1):
            row = {"digest": mutant.digest, "state": state_of_tests(), **outcome._asdict()}
            file.write(json.dumps(row) + "\n")
            file.flush()
            if outcome.result == "survived":
                print(f"survived: {name}:{mutant.line} {mutant.was} -> {mutant.now}", flush=True)
            if done % 50 == 0 or done == len(trials):
                print(f"{name}: {done} of {len(trials)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
