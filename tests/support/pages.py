"""Pages of documentation as programs: their Python and their commands run, and give what they show.

A page's examples share their names and a folder, from the first to the last. Python stands after ``>>>``; a
command stands after ``$`` in a block `console`, where ``echo $?`` gives the exit code of the one before it.
An ellipsis stands for whatever is not shown, and spaces and line breaks do not count.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
from contextlib import chdir
from pathlib import Path
from typing import Any

from typed_commands import run_merged

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

# In reStructuredText a block ends with the first line that is not indented, in Markdown with its fence.
_RST = re.compile(r"^\.\. code-block:: console\n\n((?:[ ]{3}.*\n|\n)+)", re.MULTILINE)
_MARKDOWN = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run_page(path: Path, folder: Path) -> int:
    """Run a page's examples in a folder; how many there were."""
    text = path.read_text(encoding="utf-8")
    pattern = _RST if path.suffix == ".rst" else _MARKDOWN
    pieces = pattern.split(text)
    names: dict[str, Any] = {"__name__": path.stem}
    commands, lineno = _Commands(folder, path.name), 0
    ran = 0
    for i, piece in enumerate(pieces):
        ran += commands.run(piece) if i % 2 else _run_python(piece, names, path, lineno)
        lineno += piece.count("\n") + (2 if pattern is _RST else 1)
    return ran


def _run_python(text: str, names: dict[str, Any], path: Path, lineno: int) -> int:
    test = doctest.DocTestParser().get_doctest(text, names, path.name, str(path), lineno)
    complaints: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=complaints.append, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, "".join(complaints)
    return len(test.examples)


class _Commands:
    def __init__(self, folder: Path, page: str) -> None:
        self.folder, self.page, self.code = folder, page, 0

    def run(self, block: str) -> int:
        lines = [line[3:] if line.startswith("   ") else line for line in block.splitlines()]
        commands = re.findall(r"^\$ ((?:.*\\\n)*.*)\n?((?:(?!^\$ ).*\n?)*)", "\n".join(lines), re.MULTILINE)
        for command, expected in commands:
            found = self._output(command.replace("\\\n", " "))
            if expected.strip():
                shown = expected.strip() + "\n"
                agrees = doctest.OutputChecker().check_output(shown, found.strip() + "\n", FLAGS)
                assert agrees, f"{self.page}: $ {command}\nexpected\n{shown}\ncame\n{found}"
            else:
                assert self.code == 0, f"{self.page}: $ {command}\nended with {self.code}:\n{found}"
        return len(commands)

    def _output(self, command: str) -> str:
        if command == "echo $?":
            return str(self.code)
        program, *arguments = shlex.split(command)
        assert program == "localparity", f"{self.page}: a test cannot run {command!r}"
        known = ("LOCALPARITY_DATA", "HOME", "JAVA_HOME")
        kept = {name: os.environ[name] for name in known if name in os.environ}
        with chdir(self.folder):
            self.code, found = run_merged(*arguments, COLUMNS="100", PATH=os.defpath, NO_COLOR="1", **kept)
        return found
