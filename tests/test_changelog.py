"""A change of the public names is told of in CHANGELOG.md."""

from __future__ import annotations

import tomllib

from changelog import CHANGELOG, RELEASED, changes, newest_section, untold
from public_names import SNAPSHOT

SECTION = newest_section(CHANGELOG.read_text())
NOW, THEN = SNAPSHOT.read_text().splitlines(), RELEASED.read_text().splitlines()


def test_it_tells_of_every_change_of_a_public_name() -> None:
    if SECTION.date == "unreleased":
        silent = untold(SECTION.text, changes(THEN, NOW), [*THEN, *NOW])
        assert not silent, (
            f"CHANGELOG.md says nothing under {SECTION.version} about public names that were added, removed or "
            f"are called otherwise since the last release: {', '.join(silent)}; name each `in backticks`"
        )
    else:
        assert NOW == THEN, (
            f"{SECTION.version} is released and the public names are not those of it: begin a new section "
            "`## version (unreleased)` in CHANGELOG.md, or, to release, run `python tests/support/changelog.py`"
        )


def test_its_newest_section_is_of_this_version() -> None:
    project = tomllib.loads((CHANGELOG.parent / "pyproject.toml").read_text())["project"]
    assert project["version"] == SECTION.version


def test_the_newest_section_ends_where_the_next_begins() -> None:
    found = newest_section(
        "# Changelog\n\n## 0.2.0 (unreleased)\n\n- `new`\n\n## 0.1.0 (2026-12-01)\n\n- `old`\n"
    )
    assert found == ("0.2.0", "unreleased", "\n\n- `new`\n\n")


BEFORE = [
    "lp.mcdp(x)",
    "lp.gone()",
    "lp.Old",
    "lp.Old.method(self)",
    "lp.Kept",
    "lp.Kept.gone(self)",
    "lp.Kept.same",
]
AFTER = ["lp.mcdp(x, y)", "lp.New()", "lp.New.method(self)", "lp.Kept", "lp.Kept.new(self)", "lp.Kept.same"]


def test_what_came_went_or_is_called_otherwise_is_a_change() -> None:
    assert list(changes(BEFORE, AFTER)) == [
        "lp.Kept.gone",
        "lp.Kept.new",
        "lp.New",
        "lp.Old",
        "lp.gone",
        "lp.mcdp",
    ]
    assert not list(changes(AFTER, AFTER))


def test_a_name_is_told_of_in_backticks_with_or_without_its_modules() -> None:
    names, known = (
        ["lp.engines.Sketch", "lp.engines.Sketch.merge"],
        ["lp.engines.Sketch()", "lp.engines.Sketch.merge(self)"],
    )
    assert untold("a Sketch that merges, `merge`, `a Sketch`, `Sketches`", names, known) == names
    assert untold("`Sketch(k=3)`", names, known) == ["lp.engines.Sketch.merge"]
    assert untold("`engines.Sketch.merge`", names, known) == []
    assert untold("`lp.engines.Sketch`, `Sketch.merge(self)`", names, known) == []
