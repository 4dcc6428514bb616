"""The page as a file: whole or not at all, small, and nothing in it but text and its own scripts."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import localparity as lp
from localparity.auditing._document import Document
from localparity.report.page._page import pair_dots, render_page


@pytest.fixture(scope="module")
def audit() -> lp.Audit:
    scores, groups = [0.1, 0.3, 0.5, 0.4, 0.6, 0.9] * 5, ["f", "f", "f", "m", "m", "m"] * 5
    return lp.audit(None, scores, sensitive_features=groups, n_resamples=20, random_state=0)


def test_the_numbers_are_in_the_page_as_json(audit: lp.Audit, tmp_path: Path) -> None:
    audit.to_html(tmp_path / "report.html", title="A title")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    numbers = re.search(r'id="numbers">(.*?)</script>', text, re.DOTALL)
    assert numbers is not None
    assert json.loads(numbers[1]) == json.loads(audit.to_json()) | {"title": "A title"}
    assert f"<title>{audit.answer.headline}</title>" in text
    assert "<bdi>A title</bdi>" in text


def test_a_page_is_the_same_every_time(audit: lp.Audit) -> None:
    pages = {render_page(Document(audits={"scores": audit}, title="Same")) for _ in range(2)}
    assert len(pages) == 1


def test_nothing_in_the_page_points_elsewhere(audit: lp.Audit) -> None:
    text = render_page(Document(audits={"scores": audit}, title="Alone"))
    without_scripts = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"https?:|<link|<img|\bsrc=|@import|url\(", without_scripts)
    assert text.count("<script") == text.count("</script>") == 3
    assert "default-src 'none'" in text


def test_a_file_that_is_there_stays_without_force(audit: lp.Audit, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"report\.html already exists.*force=True"):
        audit.to_html(path)
    assert path.read_text() == "mine"
    audit.to_html(path, force=True)
    assert "<!doctype html>" in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_written(audit: lp.Audit, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match=r"file/report\.html cannot be written: "):
        audit.to_html(tmp_path / "file" / "report.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="cannot be written: Is a directory"):
        audit.to_html(tmp_path / "folder", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_an_interrupted_write_leaves_nothing(
    audit: lp.Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        audit.to_html(tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_no_model_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"audits.*at least one"):
        render_page(Document(audits={}))


def test_notes_tell_what_was_left_out_and_what_is_uncertain() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "few"], [200, 200, 3])
    predictions = lp.Predictions.from_arrays(None, rng.random(403), sensitive_features=groups)
    exact = lp.ScoreCounts.from_predictions(predictions)
    counts = lp.ScoreCounts(exact.atoms, rank_error=0.01)
    options = {"min_group_size": 10, "n_resamples": 0, "threshold": 0.5}
    audits = {
        name: lp.audit(counts, method="finite_sample", **options)  # type: ignore[arg-type]
        for name in ("one", "two")
    }
    text = render_page(Document(audits=audits), {"Source": "a survey"})
    for note in (
        "Left out as too small, one",
        "few (fewer than 10)",
        "off by 1 points",
        "a survey",
        "shares above 0.5",
    ):
        assert note in text


def test_a_page_of_six_groups_is_small_and_short() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, 6000)
    scores = rng.beta(2, 3 + codes / 3)
    audit = lp.audit(None, scores, sensitive_features=codes, n_resamples=99, random_state=0)
    text = render_page(Document(audits={"scores": audit}, max_mcdp=0.1))
    assert len(text.encode()) < 300_000
    body = text[text.index("<body>") : text.index('<script type="application/json"')]
    before = re.sub(r"<details.*?</details>|<footer>.*?</footer>", " ", body, flags=re.DOTALL)
    assert len(re.sub(r"<[^>]*>", " ", before).split()) <= 700


def test_many_pairs_keep_a_page_small() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(42), 5)
    audit = lp.audit(None, rng.random(groups.size), sensitive_features=groups, n_resamples=0)
    text = render_page(Document(audits={"scores": audit}, min_group_size=1))
    assert len(audit.pairs) == 861
    assert len(text.encode()) < 3_000_000
    assert text.count("<tr") < 2_000


def test_an_audit_shows_itself_in_a_notebook(audit: lp.Audit) -> None:
    census = lp.datasets.make_census(2000, random_state=0)
    large = lp.audit(None, census.score, sensitive_features=census.sensitive_features, n_resamples=0)
    html = large._repr_html_()
    assert html is not None
    assert large.answer.headline in html
    assert 'class="plot"' in html
    assert "<script" not in html
    selectors = re.findall(
        r"^([^{}@]+)\{", html[html.index("<style>") + 7 : html.index("</style>")], re.MULTILINE
    )
    assert len(selectors) > 50
    assert all(".localparity" in one for selector in selectors for one in selector.split(","))
    odd = lp.audit(None, [0.1, 0.9], sensitive_features=["<b>", "c"], n_resamples=0)._repr_html_()
    assert odd is not None
    assert "<b>" not in odd


def test_rich_prints_an_audit(audit: lp.Audit) -> None:
    from rich.console import Console

    console = Console(width=120, file=io.StringIO())
    console.print(audit)
    assert "People of group m are 67 points more likely" in console.file.getvalue()  # type: ignore[attr-defined]


def test_many_clear_pairs_are_folded_and_none_is_lost() -> None:
    rng, shift = np.random.default_rng(0), np.linspace(0.0, 0.4, 7)
    groups = np.repeat(list("abcdefg"), 400)
    scores = np.clip(rng.normal(0.3 + np.repeat(shift, 400), 0.1), 0.0, 1.0).round(3)
    audit = lp.audit(None, scores, sensitive_features=groups, n_resamples=99, random_state=0)
    shown = pair_dots(audit.answer)
    clear, more = shown[0], shown[1]
    assert (clear.is_open, len(clear.rows)) == (True, 8)
    assert (more.is_open, more.caption) == (False, f"{len(more.rows)} more that differ clearly")
    assert len(clear.rows) + len(more.rows) == audit.answer.states["clear"] > 8
    assert sum(len(dots.rows) for dots in shown) == 21


def test_a_score_that_many_share_leaves_the_chart_and_its_cutoff() -> None:
    """A tenth of both groups have one score, which trees often give, and three people score just below it."""
    rng = np.random.default_rng(0)
    scores = np.round(np.r_[[0.0011] * 3, [0.0012] * 200, rng.beta(2, 3, 1797), rng.beta(3, 2, 2000)], 4)
    scores[2000:2203] = scores[:203]
    audit = lp.audit(None, scores, sensitive_features=np.repeat(["f", "m"], 2000), n_resamples=99)
    text = render_page(Document(audits={"scores": audit}))
    assert 'class="plot"' in text
    assert f'Share above <span class="at">{audit.answer.cutoff_text}</span>' in text


def test_groups_that_are_too_small_to_draw_keep_the_cutoff_and_say_why() -> None:
    scores = np.linspace(0.0, 0.8, 60)
    audit = lp.audit(
        None, [*scores, *scores + 0.2], sensitive_features=np.repeat(["f", "m"], 60), n_resamples=0
    )
    text = render_page(Document(audits={"scores": audit}))
    assert "No chart: the groups have too few people" in text
    assert f'Share above <span class="at">{audit.answer.cutoff_text}</span>' in text
