"""A command with a fault: what must hold after it, and after it is typed again."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.commands import PREPARE, Command, write_inputs
from faults.machine import COUNT, FAULTS, READ_ONLY, Fault, armed, conditions, steps_taken
from processes import CommandLine, Ended, fork, import_what_it_needs, type_command

KILLED, INTERRUPTED, REFUSED = -9, 130, 2
_DIED = (127, -signal.SIGABRT, -signal.SIGSEGV)


@dataclass
class Tally:
    """What was tried of a command, and what went wrong."""

    steps: int = 0
    possible: int = 0
    tried: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Bench(CommandLine):
    """A folder with inputs and an output, and a library that fails steps below the output."""

    def __init__(self, folder: Path, library: Path) -> None:
        super().__init__(folder)
        self.library = library
        write_inputs(self.inputs)
        for text in PREPARE:
            self.type_well(text)

    def starts(self, command: Command) -> Iterator[tuple[str, Path]]:
        """Folders to start from: empty, and with what an earlier command wrote."""
        for name, text in (("nothing", ""), ("an older one", command.before)):
            if name == "nothing" or text:
                shutil.rmtree(self.out)
                self.out.mkdir()
                if text:
                    self.type_well(text)
                template = self.folder / "template"
                shutil.rmtree(template, ignore_errors=True)
                shutil.copytree(self.out, template)
                yield name, template

    def run(self, command: Command, arm: Callable[[], None] | None = None, **options: Any) -> Ended:
        """The command in a child."""
        return fork(lambda: type_command(self.words(command.words), arm), self.said, **options)

    def look(self, command: Command, *, again: bool = False) -> Any:
        """What can be read, where asked for after typing the command again; and the names of all files."""

        def act() -> Any:
            before = command.read(self.out)
            code = type_command(self.words(command.words)) if again else None
            after = command.read(self.out)
            names = (str(path.relative_to(self.out)) for path in self.out.rglob("*"))
            files = sorted(names)
            return {"before": before, "code": code, "after": after, "files": files}

        ended = fork(act, self.said)
        return ended.value if isinstance(ended.value, dict) else {"failed": ended.said[-500:]}


def try_command(
    bench: Bench, command: Command, *, faults: int | None = None, kills: int = 0, seed: int = 0
) -> Tally:
    """A command with every fault at every step, or so many of them, and killed at random moments."""
    tally, starts = Tally(), 2 if command.before else 1
    for start, template in bench.starts(command):
        rng = random.Random(seed)
        trial = _Trial(bench, command, template, tally, start)
        places = [
            (step, fault)
            for step, name in enumerate(trial.steps)
            for fault in FAULTS
            if name == "write" or not fault.writes_only
        ]
        tried = places if faults is None else rng.sample(places, min(faults // starts, len(places)))
        tally.possible, tally.tried = tally.possible + len(places), tally.tried + len(tried)
        for step, fault in tried:
            trial.fault(step, fault)
        trial.fault(0, READ_ONLY)
        for what, arm in conditions(bench.library).items():
            trial.condition(what, arm)
        for _ in range(kills // starts):
            trial.kill(rng.random() * 1.05 * trial.seconds)
        tally.steps += len(trial.steps)
    return tally


class _Trial:
    """A command that starts from a folder; at first without a fault."""

    def __init__(self, bench: Bench, command: Command, template: Path, tally: Tally, start: str) -> None:
        self.bench, self.command, self.template = bench, command, template
        self.tally, self.start = tally, start
        arm = armed(bench.library, bench.out, -1, COUNT)

        def counted() -> Any:
            code = type_command(bench.words(command.words), arm)
            return [code, steps_taken(bench.library)]

        self._renew()
        self.old = bench.look(command)["after"]
        import_what_it_needs(counted, bench.said)
        self._renew()
        begun = time.monotonic()
        ended = fork(counted, bench.said)
        self.seconds = time.monotonic() - begun
        if ended.value is None:
            raise RuntimeError(f"{command.name}: {ended}")
        self.code, self.steps = ended.value
        seen = bench.look(command, again=True)
        self.new, self.files, self.again = seen["before"], seen["files"], seen["code"]

    def _renew(self) -> None:
        """Make the output what its template is."""
        shutil.rmtree(self.bench.out)
        shutil.copytree(self.template, self.bench.out)

    def fault(self, step: int, fault: Fault) -> None:
        """Try a fault at a step."""
        self._renew()
        ended = self.bench.run(self.command, armed(self.bench.library, self.bench.out, step, fault))
        expected = {KILLED} if fault.killed else {self.code, REFUSED}
        if fault.name == "interrupted":
            expected = {self.code, INTERRUPTED}
        self._judge(f"{fault.name} at step {step} ({self.steps[step]})", ended, expected)

    def condition(self, what: str, arm: Callable[[], None]) -> None:
        """Try the command where something else is wrong with the machine."""
        self._renew()
        ended = self.bench.run(self.command, arm)
        # Libraries end a process that has no memory left, as a kill does.
        self._judge(what, ended, {self.code, REFUSED, *(_DIED if what == "little memory" else ())})

    def kill(self, seconds: float) -> None:
        """Kill the command at a moment."""
        self._renew()
        ended = self.bench.run(self.command, kill_after=seconds)
        self._judge(f"killed after {seconds:.3f} s", ended, {KILLED, self.code})

    def _judge(self, what: str, ended: Ended, expected: set[int]) -> None:
        outcome = {INTERRUPTED: "interrupted", REFUSED: "refused", self.code: "done"}.get(
            ended.code, "killed"
        )
        self.tally.outcomes[outcome] += 1
        problem = self._problem(ended, expected)
        if problem:
            self.tally.failures.append(f"{self.command.name}, over {self.start}, {what}: {problem}")

    def _problem(self, ended: Ended, expected: set[int]) -> str:
        if ended.code not in expected:
            return f"it ended with {ended.code}: {ended.said[-300:]}"
        if ended.code == REFUSED and not ended.said.strip().split("\n")[-1].startswith("error: "):
            return f"it said {ended.said[-300:]}"
        seen = self.bench.look(self.command, again=True)
        if "failed" in seen:
            return f"it cannot be read or typed again: {seen['failed']}"
        for part in {**self.old, **self.new, **seen["before"]}:
            value = seen["before"].get(part)
            if value not in (self.old.get(part), self.new.get(part)):
                return f"{part} is neither the old one nor the new one: {str(value)[:100]}"
            if ended.code == self.code and value != self.new.get(part):
                return f"{part} is not the new one, though it ended with {ended.code}"
        if seen["code"] != self.again:
            return f"typed again it ended with {seen['code']}"
        if seen["after"] != self.new:
            return "typed again it gave something else"
        if seen["files"] != self.files:
            return f"files differ in the end: {sorted(set(seen['files']) ^ set(self.files))}"
        return ""


CACHE = "monitor/notes/"
"""What a monitor remembers of its numbers, where it can; they are the same without it."""
