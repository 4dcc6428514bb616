"""What counts as a mutant, which statement it is in, and which survivors are explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import report, selection
from mutation.mutants import Mutant, lines_of_statement, mutants_of
from mutation.report import Explanation, unexplained
from processes import ROOT

SOURCE = '''"""A file of 2 lines."""
@compiled
def double(number: int | None = 1, **options: int) -> int | float:
    """Two times 3."""
    if number < 0:
        return dict(
            **options,
            more=-number,
        )
    return number * 2


LIMIT = 4
'''


@pytest.fixture
def mutants(tmp_path: Path) -> list[Mutant]:
    pytest.importorskip("cosmic_ray")
    path = tmp_path / "double.py"
    path.write_text(SOURCE)
    return mutants_of(path, "src/double.py")


def test_every_change_of_what_runs_is_a_mutant_and_no_other(mutants: list[Mutant]) -> None:
    changes = {(mutant.line, mutant.function, "".join(mutant.now.split())) for mutant in mutants}
    assert changes == {
        (3, "double", "defdouble(number:int|None=2,**options:int)->int|float:"),
        (3, "double", "defdouble(number:int|None=0,**options:int)->int|float:"),
        (5, "double", "ifnumber<=0:"),
        (5, "double", "ifnumber>=0:"),
        (5, "double", "ifnumber<1:"),
        (5, "double", "ifnumber<-1:"),
        (5, "double", "ifnotnumber<0:"),
        (8, "double", "more=number,"),
        (10, "double", "returnnumber/2"),
        (10, "double", "returnnumber*3"),
        (10, "double", "returnnumber*1"),
        (13, "", "LIMIT=5"),
        (13, "", "LIMIT=3"),
    }
    assert (
        len({mutant.digest for mutant in mutants}) == len({mutant.key for mutant in mutants}) == len(mutants)
    )


@pytest.mark.parametrize(
    ("line", "lines"), [(3, None), (5, range(5, 6)), (8, range(6, 10)), (10, range(10, 11)), (13, None)]
)
def test_a_line_belongs_to_a_statement_or_runs_on_import(line: int, lines: range | None) -> None:
    assert lines_of_statement(SOURCE, line) == lines


def test_survivors_are_explained_and_explanations_have_survivors(
    mutants: list[Mutant], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        (mutant, {"result": "survived" if mutant.line == 10 else "killed", "by": ""}) for mutant in mutants
    ]
    known = [
        Explanation(
            "double.py", "double", "return number * 2", ("return number * …",), "any number would do"
        ),
        Explanation("double.py", "double", "if number < 0:", ("if number <= 0:",), "it was killed since"),
    ]
    monkeypatch.setattr(report, "explanations", lambda: known)
    assert unexplained(rows, whole=False) == [
        "src/double.py:10 survived and is not explained: return number * 2 -> return number / 2"
    ]
    assert unexplained(rows, whole=True)[1:] == [
        "double.py double: no survivor is explained by: if number < 0:"
    ]


def test_every_explanation_is_of_a_line_that_is_there() -> None:
    folders = [ROOT / folder for folder in selection.EXAMPLES]
    sources: dict[str, str] = {}
    for path in (path for folder in folders for path in folder.glob("*.py")):
        sources[path.name] = sources.get(path.name, "") + path.read_text()  # each folder has a _kernels.py
    for each in report.explanations():
        lines = " ".join(line.strip() for line in sources[each.file].splitlines())
        assert each.was in lines
        assert each.why
