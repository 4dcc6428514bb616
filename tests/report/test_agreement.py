"""One name for one number: every form of an audit of six groups says the same of MCDP, and of whom."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import localparity as lp
from localparity._text import outward_percent
from localparity.auditing._document import Document
from localparity.report._terminal import TerminalDocument
from localparity.report.page._page import render_page

SIZES = {"north": 900, "south": 700, "east": 500, "west": 300, "islands": 60, "ships": 12}
Row = tuple[str, str, str, str]


def synthetic() -> lp.Audit:
    """The two largest groups differ most clearly; the smallest, by what may be chance, most."""
    rng = np.random.default_rng(5)
    shift = dict(zip(SIZES, (0.0, 0.12, 0.05, 0.05, 0.1, 0.25), strict=True))
    scores = np.concatenate([rng.normal(0.4 + shift[name], 0.15, size) for name, size in SIZES.items()])
    groups = np.repeat(list(SIZES), list(SIZES.values()))
    asked: dict[str, Any] = {"sensitive_features": groups, "n_resamples": 199, "random_state": 0}
    return lp.audit(None, np.clip(scores, 0.0, 1.0).round(3), **asked)


def compas() -> lp.Audit:
    path = Path(os.environ.get("LOCALPARITY_DATA", "")) / "compas" / "compas.csv"
    if not path.is_file():
        pytest.skip("LOCALPARITY_DATA has no compas/compas.csv")
    columns = {"score": "decile_score", "group": "race"}
    return lp.Audit.read(path, **columns, score_range=(1, 10), n_resamples=199, random_state=0)


@pytest.fixture(scope="module", params=[synthetic, compas], ids=["synthetic", "compas"])
def audit(request: pytest.FixtureRequest) -> lp.Audit:
    made: Callable[[], lp.Audit] = request.param
    return made()


def terminal(audit: lp.Audit, width: int = 160, *, verbose: bool = True) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(TerminalDocument(Document(audits={"scores": audit}), verbose))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def page(audit: lp.Audit) -> str:
    return render_page(Document(audits={"scores": audit}, max_mcdp=0.1))


def written(fraction: float) -> str:
    return f"{100 * fraction:.1f}%"


def of_json(audit: lp.Audit) -> list[Row]:
    (found,) = json.loads(audit.to_json())["audits"]
    rows = []
    for each in found["findings"]:
        low, high, p = each["interval"]["low"], each["interval"]["high"], each["test"]["p_value"]
        least = 1 / (1 + found["n_resamples"])
        p_text = "<= 0.005" if p <= least else f"{p:.4f}"
        rows.append((f"{each['epsilon']:g}", written(each["mcdp"]), outward_percent(low, high), p_text))
    return rows


def picked(header: list[str], lines: list[list[str]]) -> list[Row]:
    """The columns of a table that say how large MCDP is and how sure that is."""
    places = [header.index(name) for name in ("epsilon", "MCDP", "95% interval", "p-value")]
    return [tuple(cells[place] for place in places) for cells in lines]  # type: ignore[misc]


def of_lines(text: str, separator: str, start: str) -> list[Row]:
    """The table of a text from the line on that starts so."""
    lines = text[text.index(start) :].splitlines()
    cells = [
        [cell.strip() for cell in line.strip(separator).split(separator)]
        for line in lines
        if separator in line
    ]
    header = next(row for row in cells if "epsilon" in row)
    return picked(header, [row for row in cells if any(cell.endswith("%") for cell in row)][:4])


def of_html(html: str) -> list[Row]:
    rows = [
        [
            unescape(re.sub("<.*?>", "", cell)).strip()
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL)
    ]
    start = next(place for place, row in enumerate(rows) if "epsilon" in row)
    return picked(rows[start], rows[start + 1 :])


def test_every_form_shows_the_same_mcdp_interval_and_p_value(audit: lp.Audit) -> None:
    expected = of_json(audit)
    assert len(audit.pairs) == 15
    notebook = audit._repr_html_()
    assert notebook is not None
    found = {
        "repr": [tuple(re.split(r"\s{2,}", line.strip())[:4]) for line in repr(audit).splitlines()[-4:]],
        "notebook": of_html(notebook),
        "terminal": of_lines(terminal(audit).replace("┃", "│"), "│", "MCDP, the largest of all pairs"),
        "markdown": of_lines(
            audit.to_markdown().replace("\\<", "<"), "|", "**MCDP, the largest of all pairs"
        ),
        "page": of_html(re.findall(r'<table id="findings">.*?</table>', page(audit), re.DOTALL)[0]),
    }
    for name, rows in found.items():
        assert rows == expected, name


def forms(audit: lp.Audit) -> dict[str, str]:
    """Every form of an audit as text on one line, without markup."""
    texts = {
        "repr": repr(audit),
        "notebook": str(audit._repr_html_()),
        "terminal": terminal(audit, 80, verbose=False),
        "verbose": terminal(audit),
        "markdown": audit.to_markdown(max_mcdp=0.1).replace("\\", ""),
        "page": page(audit).split('id="numbers"')[0],
        "json": audit.to_json(max_mcdp=0.1),
    }
    return {name: " ".join(unescape(re.sub("<.*?>", "", text)).split()) for name, text in texts.items()}


def test_every_form_says_the_answer_in_the_same_words(audit: lp.Audit) -> None:
    answer = audit.answer
    for name, text in forms(audit).items():
        for sentence in (answer.headline, answer.rates, answer.sure):
            assert sentence in text, (name, sentence)


def test_every_form_with_a_bound_says_the_verdict_in_the_same_words(audit: lp.Audit) -> None:
    verdict = Document(audits={"scores": audit}, max_mcdp=0.1).answer("scores").verdict
    texts = forms(audit)
    for name in ("markdown", "page", "json"):
        assert str(verdict) in texts[name], name


def test_the_largest_gap_is_that_of_mcdp_and_named_with_its_people(audit: lp.Audit) -> None:
    worst, clearest = audit.worst_pair(audit.findings[0]), audit.most_significant
    assert worst != clearest, "the case must have two pairs to confuse"
    answer = Document(audits={"scores": audit}, max_mcdp=0.1).answer("scores")
    assert answer.largest.gap == audit.findings[0].mcdp
    assert answer.gap == clearest.mcdp[0]
    people = {group.group: group.rows for group in audit.groups}
    for group in worst.groups:
        assert f"{group} ({people[group]:,}" in str(answer.verdict)
    assert re.search("Clearest gap: |Clearly above it: ", str(answer.verdict))


@pytest.mark.parametrize("decide_by", ["upper", "lower"])
def test_an_end_of_the_interval_is_of_the_pair_that_has_it(audit: lp.Audit, decide_by: Any) -> None:
    (found,) = json.loads(audit.to_json(max_mcdp=0.01, decide_by=decide_by))["audits"]
    end = {"upper": "high", "lower": "low"}[decide_by]
    pair = max(audit.pairs, key=lambda pair: getattr(pair.intervals[0], end))
    assert found["bound"]["value"] == getattr(pair.intervals[0], end)
    rows = {group.group: group.rows for group in audit.groups}
    assert found["bound"]["between"] == " and ".join(
        f"{name} ({rows[name]:,} people)" for name in pair.groups
    )


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_pairs_keep_their_names_on_a_narrow_terminal(width: int, criterion: Any) -> None:
    rng = np.random.default_rng(0)
    names = np.array(["African-American", "Caucasian", "Hispanic", "Native American", "Asian"])
    groups = names[rng.integers(0, 5, 3000)]
    labels, scores = rng.integers(0, 2, 3000), rng.random(3000)
    asked: dict[str, Any] = {"sensitive_features": groups, "criterion": criterion, "n_resamples": 19}
    shown = terminal(lp.audit(labels, scores, **asked, random_state=0), width)
    table = shown[shown.index("Pairs, largest gap first") :]
    for name in " ".join(names).split():
        assert re.search(rf"│ [^│]*{re.escape(name)}\b", table), name
    assert "…" not in table
