"""The first screen, the pictures and the words: what a reader without statistics meets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity.auditing._wording import Answers
from localparity.report.page._data import _MOST_LISTED
from localparity.report.page._page import GLOSSARY

OpenPage = Callable[..., Any]

LAPTOP = {"viewport": {"width": 1280, "height": 800}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("first")


@pytest.fixture(scope="module")
def audit(folder: Path) -> lp.Audit:
    """An audit of a file, on a page beside it."""
    census = lp.datasets.make_census(3000, random_state=0)
    path = folder / "scores.csv"
    census.data.assign(p=census.score, sex=census.sensitive_features).to_csv(path, index=False)
    found = lp.Audit.read(path, score="p", group="sex", random_state=0, n_resamples=99)
    found.to_html(folder / "one.html", max_mcdp=0.1)
    return found


@pytest.fixture(scope="module")
def several(folder: Path) -> dict[str, lp.Audit]:
    """Two models of fourteen groups, 91 pairs."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 14, 4000)
    names = np.array(
        [
            f"{place} and beyond × {sex}"
            for place in ("North", "East", "South", "West", "Up", "Down", "Here")
            for sex in "fm"
        ]
    )
    found = {
        name: lp.audit(
            None,
            rng.beta(2, 3 + power * codes / 9),
            sensitive_features=names[codes],
            random_state=0,
            n_resamples=39,
        )
        for name, power in (("one", 1), ("two", 0.2))
    }
    lp.report.write_page(folder / "several.html", found, max_mcdp=0.3)
    return found


def shown(page: Any, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(selector).all_text_contents()]


def test_the_first_screen_answers_the_six_questions(
    open_page: OpenPage, audit: lp.Audit, folder: Path
) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    expected = Answers.of(audit, 0.1).answers
    assert shown(page, ".answer dt") == [answer.question for answer in expected]
    told = shown(page, ".answer dd")
    for answer, text in zip(expected, told, strict=True):
        assert text.startswith(f"{answer.short} {answer.text}")
    for part in [*page.locator(".answer").all(), page.locator("#picture")]:
        box = part.bounding_box()
        assert box["y"] + box["height"] <= 800
    header = " ".join(shown(page, "header dl"))
    provenance = audit.provenance
    assert provenance is not None
    for text in (
        str(folder / "scores.csv"), "3,000", "2: Female, Male", provenance.date, provenance.call,
        str(provenance.files[0].sha256), f"localparity {lp.__version__}", "99, seed 0", "score p; group sex",
    ):  # fmt: skip
        assert text in header


def test_it_opens_at_five_hundredths_with_the_window_in_sight(
    open_page: OpenPage, audit: lp.Audit, folder: Path
) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    assert page.locator("#epsilon-shown").text_content() == "0.05"
    window = audit.finding(0.05).window
    assert page.locator("#window").text_content() == window.sentence
    assert page.locator("#gap svg .mark-rect path").count() == 1
    box = page.locator("#picture rect.window").bounding_box()
    scale = page.locator("#picture .axis").bounding_box()
    for place, end in ((box["x"], window.low), (box["x"] + box["width"], window.high)):
        assert (place - scale["x"]) / scale["width"] == pytest.approx(end, abs=0.01)
    assert page.locator("#picture").get_attribute("aria-label").endswith(window.sentence)


def test_groups_that_steps_would_distort_are_in_the_tables_only(open_page: OpenPage, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "few", "fewer"], [900, 600, 30, 18])
    scores = rng.random(groups.size)
    audit = lp.audit(None, scores, sensitive_features=groups, random_state=0, n_resamples=39)
    audit.to_html(tmp_path / "page.html")
    page = open_page(tmp_path / "page.html", **LAPTOP)
    assert shown(page, "#pair option") == ["\u2068a\u2069 and \u2068b\u2069"]
    assert "would be too coarse: few, fewer." in " ".join(shown(page, "section#explore > .about"))
    assert page.locator("#ranked-0 tbody tr").count() == 6
    page.locator("#typed").fill("0.5")
    off = float(page.locator("#off").text_content().split("within ")[1].split()[0]) / 100
    for group, name in (("a", "rate-a"), ("b", "rate-b")):
        told = float(page.locator(f"#{name}").get_attribute("value"))
        assert abs(told - np.mean(scores[groups == group] > 0.5)) <= off < 0.04


def test_a_page_of_small_groups_has_no_charts_and_says_why(open_page: OpenPage, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    audit = lp.audit(None, rng.random(40), sensitive_features=["a", "b"] * 20, random_state=0)
    audit.to_html(tmp_path / "page.html")
    page = open_page(tmp_path / "page.html", charts=False, **LAPTOP)
    assert page.locator("#interactive").count() == 0
    assert "would be too coarse: a, b." in " ".join(shown(page, "section#explore > .about"))
    assert page.locator("#ranked-models .dot").count() == 1
    page.locator("#groups th button").first.click()
    assert page.locator("#groups th[aria-sort]").count() == 1


def test_steps_name_the_commands(open_page: OpenPage, audit: lp.Audit, folder: Path) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    page.get_by_role("link", name="The commands").click()
    assert shown(page, "#next code") == [
        step.command for step in Answers.of(audit, 0.1).steps if step.command
    ]


def test_a_typed_threshold_moves_the_slider(open_page: OpenPage, audit: lp.Audit, folder: Path) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    counts = lp.counts.disclosed(audit.counts)
    curve = lp.impact_ratio_curve(counts, confidence=None)
    for typed, used in (("0.3", 0.3), (" 0,25 ", 0.25), ("0.30004", 0.3)):
        page.locator("#typed").fill(typed)
        rates = [found.rate for found in curve.at(used)]
        told = [
            float(page.locator(f"#{name}").get_attribute("value")) for name in ("rate-a", "rate-b", "ratio")
        ]
        assert told == pytest.approx([*rates, min(rates) / max(rates)], abs=1e-9)
        assert ("nearest threshold" in page.locator("#typed-note").text_content()) == (typed == "0.30004")
    before = page.locator("#threshold").input_value()
    for wrong in ("", "high", "1.5", "-1"):
        page.locator("#typed").fill(wrong)
        assert page.locator("#typed").get_attribute("aria-invalid") == "true"
        assert "from 0 to 1" in page.locator("#typed-note").text_content()
        assert page.locator("#threshold").input_value() == before
    page.locator("#threshold").fill("700")
    assert page.locator("#typed").get_attribute("aria-invalid") == "false"
    assert page.locator("#typed").input_value() == "0.7"


def test_the_sliders_use_the_steps_that_may_be_shown(
    open_page: OpenPage, audit: lp.Audit, folder: Path
) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    epsilons = json.loads(page.locator("#page-data").text_content())["epsilons"]
    counts = lp.counts.disclosed(audit.counts)
    exact = {finding.epsilon: finding.mcdp for finding in audit.findings}
    assert set(exact) <= set(epsilons)
    for place in (*range(0, len(epsilons), 83), *(epsilons.index(epsilon) for epsilon in exact)):
        page.locator("#epsilon").fill(str(place))
        truth = exact.get(epsilons[place], lp.mcdp(counts, epsilon=epsilons[place]))
        assert float(page.locator("#mcdp").get_attribute("value")) == pytest.approx(truth, abs=1e-9)


def test_every_number_in_the_tables_is_the_library_s(
    open_page: OpenPage, several: dict[str, lp.Audit], folder: Path
) -> None:
    page = open_page(folder / "several.html", **LAPTOP)

    def numbers(table: str) -> list[list[float]]:
        script = """rows => rows.map(row => Array.from(row.children).flatMap(cell =>
            [cell.dataset.value, cell.dataset.high].filter(one => one !== undefined).map(Number)))"""
        return page.locator(f"#{table} tbody tr").evaluate_all(script)  # type: ignore[no-any-return]

    def ends(interval: Any) -> list[float]:
        return [interval.low, interval.high]

    findings = [
        [found.epsilon, found.mcdp, *ends(found.interval), found.test.p_value, found.test.null_mean]
        for audit in several.values()
        for found in audit.findings
        if found.test is not None
    ]
    pairs = [
        [
            pair.abcc,
            pair.delta_dp,
            found.epsilon,
            pair.mcdp[i],
            *ends(pair.intervals[i]),
            (pair.p_values or ())[i],
        ]
        for audit in several.values()
        for pair in audit.pairs[: _MOST_LISTED // (len(several) * len(audit.findings))]
        for i, found in enumerate(audit.findings)
    ]
    groups = [[group.rows, group.mean_score] for audit in several.values() for group in audit.groups]
    for name, expected in (("findings", findings), ("pairs", pairs), ("groups", groups)):
        assert np.array(numbers(name)) == pytest.approx(np.array(expected), abs=1e-9)
    for place, audit in enumerate(several.values()):
        ranked = [[pair.mcdp[0], *ends(pair.intervals[0])] for pair in audit.pairs]
        assert np.array(numbers(f"ranked-{place}")) == pytest.approx(np.array(ranked), abs=1e-9)
    models = [[audit.findings[0].mcdp, *ends(audit.findings[0].interval)] for audit in several.values()]
    assert np.array(numbers("ranked-models")) == pytest.approx(np.array(models), abs=1e-9)
    written = json.loads(page.locator("#numbers").text_content())
    for audit, plain in zip(several.values(), written["audits"], strict=True):
        assert [found["mcdp"] for found in plain["findings"]] == [found.mcdp for found in audit.findings]


@pytest.mark.parametrize("width", [1280, 760])
def test_ninety_one_pairs_are_readable(
    open_page: OpenPage, several: dict[str, lp.Audit], folder: Path, width: int
) -> None:
    page = open_page(folder / "several.html", viewport={"width": width, "height": 800})
    for place, audit in enumerate(several.values()):
        rows = page.locator(f"#ranked-{place} tbody tr")
        assert rows.count() == len(audit.pairs) == 91
        sizes = rows.evaluate_all(
            "rows => rows.map(row => [row.offsetHeight, row.querySelector('.line').offsetWidth])"
        )
        assert min(height for height, _ in sizes) >= 20
        assert min(wide for _, wide in sizes) >= 120
        script = "rows => rows.map(row => parseFloat(getComputedStyle(row).fontSize))"
        assert min(rows.evaluate_all(script)) >= 13
        places = rows.evaluate_all(
            """rows => rows.map(row => {
                const line = row.querySelector('.line').getBoundingClientRect();
                const dot = row.querySelector('.dot').getBoundingClientRect();
                return (dot.left + dot.width / 2 - line.left) / line.width;
            })"""
        )
        values = np.array([pair.mcdp[0] for pair in audit.pairs])
        scale = places[0] / values[0]
        assert np.array(places) == pytest.approx(scale * values, abs=0.01)
        hollow = rows.evaluate_all("rows => rows.map(row => row.querySelector('.hollow') !== null)")
        assert hollow == [not pair.significant_at(0, by_test=True) for pair in audit.pairs]


def test_models_stand_side_by_side(open_page: OpenPage, several: dict[str, lp.Audit], folder: Path) -> None:
    page = open_page(folder / "several.html", **LAPTOP)
    rows = page.locator("#side tbody tr")
    assert rows.count() == 7
    for place, audit in enumerate(several.values()):
        for number, answer in enumerate(Answers.of(audit, 0.3).answers):
            cell = rows.nth(number + 1).locator("td").nth(place).text_content()
            assert " ".join(cell.split()) == f"{answer.short} {answer.text}".strip()


def test_words_are_explained_on_hover_and_by_keyboard(
    open_page: OpenPage, audit: lp.Audit, folder: Path
) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    terms = page.locator(".term")
    assert terms.count() > 10
    for term in terms.all():
        word = term.get_attribute("href").removeprefix("#word-")
        assert term.get_attribute("data-is") == GLOSSARY[word]
        assert page.locator(f"[id='word-{word}'] dd").text_content() == GLOSSARY[word]
    term = page.locator(".answer .term").first
    content = "element => getComputedStyle(element, '::after').content"
    assert term.evaluate(content) == "none"
    term.hover()
    assert term.evaluate(content).strip('"') == GLOSSARY["disparity"]
    page.mouse.move(0, 0)
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.className") != "term":
        page.keyboard.press("Tab")
    assert page.locator(":focus").evaluate(content) != "none"


def test_ratios_are_the_library_s(open_page: OpenPage, audit: lp.Audit, folder: Path) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    told = " ".join(shown(page, "section:has(#ratios-heading)"))
    safe = audit.impact_ratios().disclosed(10).safe_cutoffs(0.8)
    assert safe.sentence in told
    assert safe.worst_sentence in told


@pytest.mark.parametrize("name", ["one", "several"])
def test_on_paper_controls_are_their_values(
    open_page: OpenPage, audit: lp.Audit, several: dict[str, lp.Audit], folder: Path, name: str
) -> None:
    page = open_page(folder / f"{name}.html", viewport={"width": 760, "height": 1000})
    assert not page.locator("#chosen").is_visible()
    page.emulate_media(media="print")
    for control in page.locator("select, input, button").all():
        if control.is_visible():
            assert control.evaluate("element => element.closest('thead') !== null")
    told = page.locator("#chosen").text_content()
    assert "epsilon 0.05; threshold 0.5." in told
    assert page.locator("#chosen").is_visible()
    assert page.locator(".sign").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    lines = """cells => cells.map(cell => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return new Set(Array.from(range.getClientRects(), (box) => box.top)).size;
    })"""
    numbers = "table.ranked td:nth-child(3), table.ranked td:nth-child(5)"
    assert set(page.locator(numbers).evaluate_all(lines)) <= {1}
    assert set(
        page.locator("thead").evaluate_all("all => all.map(one => getComputedStyle(one).display)")
    ) == {"table-header-group"}
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_without_scripts_the_first_screen_is_whole(browser: Any, audit: lp.Audit, folder: Path) -> None:
    page = browser.new_context(offline=True, java_script_enabled=False, **LAPTOP).new_page()
    page.goto((folder / "one.html").as_uri())
    assert page.locator("#picture").is_visible()
    assert page.locator(".answer").count() == 6
    page.context.close()


def test_the_first_screen_of_two_models_answers_them_too(
    open_page: OpenPage, several: dict[str, lp.Audit], folder: Path
) -> None:
    page = open_page(folder / "several.html", **LAPTOP)
    for row in page.locator("#side tbody tr").all():
        box = row.bounding_box()
        assert box["y"] + box["height"] <= 800


@pytest.mark.parametrize("name", [pytest.param("one", marks=pytest.mark.slow), "several"])
@pytest.mark.parametrize(
    "look", ["light", "dark", *(pytest.param(each, marks=pytest.mark.slow) for each in ("phone", "print"))]
)
def test_every_look_is_accessible(
    open_page: OpenPage,
    audit: lp.Audit,
    several: dict[str, lp.Audit],
    folder: Path,
    axe_source: str,
    name: str,
    look: str,
) -> None:
    options: dict[str, Any] = {
        "light": LAPTOP,
        "dark": {**LAPTOP, "color_scheme": "dark"},
        "phone": {"viewport": {"width": 360, "height": 740}},
        "print": {"viewport": {"width": 760, "height": 1000}, "color_scheme": "dark"},
    }[look]
    page = open_page(folder / f"{name}.html", **options)
    if look == "print":
        page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate(axe_source)
    # Rows are all of one kind, and judging each of a thousand takes a minute.
    found = page.evaluate("axe.run({exclude: ['tbody tr:nth-child(n+9)']})")
    problems = [
        (problem["id"], problem["nodes"][0]["html"])
        for problem in found["violations"]
        if problem["impact"] in {"serious", "critical"}
    ]
    assert problems == []
