"""Pages of documentation as programs: their Python and their commands run, and give what they show.

A page's examples share their names and a folder, from the first to the last. Python stands after ``>>>``; a
command stands after ``$`` in a block `console`, where ``echo $?`` gives the exit code of the one before it.
An ellipsis stands for whatever is not shown, and spaces and line breaks do not count.
"""

from __future__ import annotations

import doctest
import gzip
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = {"_build", "gallery", "generated"}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

# In reStructuredText a block ends with the first line that is not indented, in Markdown with its fence.
_RST = re.compile(r"^\.\. code-block:: console\n\n((?:[ ]{3}.*\n|\n)+)", re.MULTILINE)
_MARKDOWN = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


# Public files that a page tells its reader to download, and where the data folder has them.
_DOWNLOADS = {
    "hmda_test.csv": Path("hmda", "hmda_2018_sample.csv.gz"),
    "compas-scores-two-years.csv": Path("compas", "compas_features.csv"),
}

# Runs a command, given its words without the program's name; its exit code, and what it printed.
RunCommand = Callable[[list[str]], tuple[int, str]]


def all_pages() -> list[Path]:
    """The pages that people write."""
    return sorted(path for path in DOCS.rglob("*.rst") if not GENERATED & set(path.relative_to(DOCS).parts))


def has_examples(path: Path) -> bool:
    """Whether there is anything to run."""
    text = path.read_text(encoding="utf-8")
    return ">>>" in text or "code-block:: console" in text


def missing_download(path: Path) -> Path | None:
    """A file that the page starts from and LOCALPARITY_DATA does not have."""
    wanted = [_source(name) for name in _DOWNLOADS if name in path.read_text(encoding="utf-8")]
    return next((source for source in wanted if not source.is_file()), None)


def _source(name: str) -> Path:
    return Path(os.environ.get("LOCALPARITY_DATA", ""), _DOWNLOADS[name])


def run_page(path: Path, folder: Path, run_command: RunCommand | None = None) -> int:
    """Run a page's examples in a folder, its commands in this process by default; how many there were."""
    text = path.read_text(encoding="utf-8")
    pattern = _RST if path.suffix == ".rst" else _MARKDOWN
    pieces = pattern.split(text)
    names: dict[str, Any] = {"__name__": path.stem}
    for name in _DOWNLOADS:
        if name in text:
            content = _source(name).read_bytes()
            (folder / name).write_bytes(
                gzip.decompress(content) if _source(name).suffix == ".gz" else content
            )
    commands, lineno = _Commands(folder, path.name, run_command or _run_here), 0
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
    def __init__(self, folder: Path, page: str, run_command: RunCommand) -> None:
        self.folder, self.page, self.run_command, self.code = folder, page, run_command, 0

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
        with chdir(self.folder):
            self.code, found = self.run_command(arguments)
        return found


def _environment() -> dict[str, str]:
    names = ("LOCALPARITY_DATA", "HOME", "JAVA_HOME")
    known = {name: os.environ[name] for name in names if name in os.environ}
    return {"COLUMNS": "100", "PATH": os.defpath, "NO_COLOR": "1", **known}


def _run_here(arguments: list[str]) -> tuple[int, str]:
    from typed_commands import run_merged

    return run_merged(*arguments, **_environment())


def run_installed(arguments: list[str]) -> tuple[int, str]:
    """Run the command that is installed with this Python; how long it says that it will take depends on the machine."""
    program = Path(sys.executable).with_name("localparity")
    done = subprocess.run(
        [program, *arguments], env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, re.sub(r"^.* takes about .*; Ctrl-C stops\n", "", done.stdout, flags=re.MULTILINE)


if __name__ == "__main__":  # python pages.py PAGE, in an environment that has no pytest
    run_page(Path(sys.argv[1]), Path.cwd(), run_installed)
