"""An audit as Markdown: the library's numbers, and nothing in a name that acts."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt

import localparity as lp
from localparity._text import markdown_text, outward_percent, visible
from localparity.auditing._document import Document
from localparity.report._markdown import to_markdown


@pytest.fixture(scope="module")
def audit() -> lp.Audit:
    census = lp.datasets.make_census(2000, random_state=0)
    groups = np.where(census.data["age"] < 30, "young", census.sensitive_features)
    return lp.audit(None, census.score, sensitive_features=groups, n_resamples=50, random_state=0)


def cells(text: str, caption: str) -> list[list[str]]:
    """The rows of a table below its caption."""
    lines = text.split(f"**{caption}")[1].split("\n\n")[1].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_number_is_the_library_s(audit: lp.Audit) -> None:
    text = audit.to_markdown(max_mcdp=0.1)
    (digits,) = json.loads(text.split("```json\n")[1].split("```")[0]).values()
    for finding, told, row in zip(
        audit.findings, digits, cells(text, "MCDP, the largest of all"), strict=True
    ):
        assert finding.test is not None
        assert finding.test.p_value == 1 / 51
        interval = finding.interval
        assert told == {
            "epsilon": finding.epsilon,
            "mcdp": finding.mcdp,
            "low": interval.low,
            "high": interval.high,
            "p_value": finding.test.p_value,
        }
        assert row[1:3] == [f"{finding.epsilon:g}", f"{100 * finding.mcdp:.1f}%"]
        assert row[3:5] == [outward_percent(interval.low, interval.high), "\\<= 0.02"]
    pairs = cells(text, "Pairs, largest gap first")
    assert len(pairs) == len(audit.pairs) * len(audit.findings)
    assert pairs[-1][4] == f"{100 * audit.pairs[-1].mcdp[-1]:.1f}%"
    answer = Document(audits={"scores": audit}, max_mcdp=0.1).answer("scores")
    for sentence in answer.sentences:
        assert markdown_text(sentence) in text


def test_several_models_and_no_provenance(audit: lp.Audit) -> None:
    text = to_markdown(Document(audits={"one": audit, "t*o": audit}, title="Both"))
    assert text.startswith(f"# Both\n\n## one\n\n**{audit.answer.headline}.**\n")
    assert "## t\\*o" in text
    assert "**What was audited of t\\*o**" in text
    assert text.count("Rows compared: 2,000") == 2


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        "a|b\n\n# heading",
        "![x](https://host/x.png)",
        "``` end",
        "www.host.example and @somebody",
        "\x1b[2J\u202e",
    ],
)
def test_a_name_is_text_whatever_it_is(name: str) -> None:
    rng = np.random.default_rng(0)
    options: dict[str, Any] = {"sensitive_features": np.repeat([name, "b"], 50), "n_resamples": 0}
    found = lp.audit(None, rng.random(100), **options)
    text = to_markdown(Document(audits={name: found}, title=name))
    plain = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    without = re.sub(r"\\[^\w\s]", "", plain).replace("<details><summary>All digits</summary>", "")
    assert not re.search(r"[<`@]|\[|://|www\.", without.replace("</details>", ""))
    assert text.count("```") == 4
    assert len(re.findall(r"^# ", plain, flags=re.MULTILINE)) == 1
    assert not re.search("[\x1b\u202e]", text)
    for row in cells(text, "Groups"):
        assert len([cell for cell in row if cell]) >= 3


def test_escaping_leaves_ordinary_texts_alone() -> None:
    ordinary = "MCDP(0) is 30.02% - 5 of 6, at 12:30; it's Female × care."
    assert markdown_text(ordinary) == ordinary


GITHUB = {
    "a mention": ("@octocat", r"(?:^|\W)@[a-z0-9]"),
    "a team": ("hi @org/team", r"(?:^|\W)@[a-z0-9]"),
    "an issue": ("owner/repo#1 and #23", r"#\d"),
    "an issue by GH": ("GH-7 gh-8", r"\bGH-\d"),
    "an emoji": ("a :smile: b :+1:", r":[\w+-]+:"),
    "an e-mail": ("me@example.org", r"\w@\w"),
}


@pytest.mark.parametrize("kind", GITHUB)
def test_github_links_no_name(kind: str) -> None:
    """GitHub looks for these in what Markdown has made, so that a backslash does not help."""
    text, linked = GITHUB[kind]
    parser = MarkdownIt("gfm-like", {"linkify": False})
    html = parser.render(markdown_text(text))
    shown = re.sub("<[^>]*>", "", html)
    assert re.search(linked, text, re.IGNORECASE)
    assert not re.search(linked, shown, re.IGNORECASE)
    assert shown.replace("\u2060", "").strip() == text


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](https://x.example)", "![a](https://x.example)",
        "`code`", "**b** _i_ ~~s~~", "| a | b |", "# head", "$x^2$", "https://x.example", "www.x.example",
        "a\n\n- b", "[^1]", "<!-- c -->", "&lt;b&gt;", "\\*a\\*", "[!NOTE]", "<details>",
    ],
)  # fmt: skip
def test_markdown_makes_nothing_of_a_name(text: str) -> None:
    html = MarkdownIt("gfm-like", {"linkify": False}).render(f"| a |\n|---|\n| {markdown_text(text)} |")
    (cell,) = re.findall("<td>(.*)</td>", html)
    assert "<" not in cell
    assert unescape(cell).replace("\u2060", "") == visible(text)
