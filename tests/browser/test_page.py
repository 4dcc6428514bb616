"""The page as a reader meets it: in a browser, from a file, with the network off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import localparity as lp
from localparity.counts._disclosure import DISCLOSURE_LIMIT, shown_counts
from localparity.report.page._page import GLOSSARY
from looks import LOOKS

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
LAPTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}}

OpenPage = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def audit(folder: Path) -> lp.Audit:
    """An audit of a file, on a page beside it."""
    census = lp.datasets.make_census(3000, random_state=0)
    path = folder / "scores.csv"
    frame = census.data.assign(p=census.score, sex=census.sensitive_features, y=census.target)
    frame.to_csv(path, index=False)
    found = lp.Audit.read(path, score="p", group="sex", label="y", random_state=0, n_resamples=99)
    found.to_html(folder / "one.html", max_mcdp=0.1)
    return found


@pytest.fixture(scope="module")
def six(folder: Path) -> lp.Audit:
    """Six groups with whole scores, one of which has few people."""
    rng = np.random.default_rng(0)
    names = np.array(["African-American", "Caucasian", "Hispanic", "Other", "Asian", "Native American"])
    groups = np.repeat(names, [1800, 1200, 600, 400, 60, 18])
    shift = dict(zip(names, (2, 0, 0, 0, 0, 2), strict=True))
    scores = np.clip(rng.integers(1, 9, groups.size) + np.vectorize(shift.get)(groups), 1, 10)
    asked: dict[str, Any] = {"sensitive_features": groups, "score_range": (1, 10), "n_resamples": 99}
    found = lp.audit(None, scores, **asked, random_state=0)
    found.to_html(folder / "six.html")
    return found


@pytest.fixture(scope="module")
def several(folder: Path) -> dict[str, lp.Audit]:
    """Two models of fourteen groups, 91 pairs."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 14, 4000)
    places = ("North", "East", "South", "West", "Up", "Down", "Here")
    names = np.array([f"{place} and beyond × {sex}" for place in places for sex in "fm"])
    asked: dict[str, Any] = {"sensitive_features": names[codes], "random_state": 0, "n_resamples": 39}
    found = {
        name: lp.audit(None, rng.beta(2, 3 + power * codes / 9), **asked)
        for name, power in (("one", 1), ("two", 0.2))
    }
    lp.report.write_page(folder / "several.html", found, max_mcdp=0.3)
    return found


def shown(page: Any, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(selector).all_text_contents()]


def told(page: Any, name: str) -> float:
    return float(page.locator("output").first.get_attribute(f"data-{name}"))


def settle(page: Any) -> None:
    page.evaluate("new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")


def test_the_first_screen_answers_the_six_questions(
    open_page: OpenPage, audit: lp.Audit, folder: Path
) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    answer = lp.auditing._answer.answer_of(audit, 0.1)
    assert page.title() == page.locator("h1").text_content() == answer.headline
    header = " ".join(shown(page, "header"))
    for text in (*answer.about, answer.rates, answer.sure, answer.verdict):
        assert text in header
    steps = [step for step in answer.next_steps if step.command[:12] in ("", "localparity ")]
    assert page.locator(".next li").count() == len(steps)
    assert shown(page, ".next code") == [step.command for step in steps if step.command]
    for selector in ("h1", ".rates", ".verdict", ".plot", ".control", ".next li"):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] + box["height"] <= 800, selector


def test_the_foot_has_where_it_comes_from(open_page: OpenPage, audit: lp.Audit, folder: Path) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    foot, provenance = " ".join(shown(page, "footer")), audit.provenance
    assert provenance is not None
    for text in (
        str(folder / "scores.csv"), "3,000", "2: Female, Male", provenance.date, provenance.call,
        str(provenance.files[0].sha256), f"localparity {lp.__version__}", "99, seed 0", "score p;",
    ):  # fmt: skip
        assert text in foot


@pytest.mark.parametrize("look", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_it_is_short(open_page: OpenPage, six: lp.Audit, folder: Path, look: dict[str, Any]) -> None:
    page = open_page(folder / "six.html", **look)
    words = page.evaluate("[...document.querySelectorAll('header, main')].map((e) => e.innerText).join(' ')")
    assert len(words.split()) <= 700
    if look is LAPTOP:
        assert page.evaluate("document.documentElement.scrollHeight") <= 3 * 800
        return
    box = page.locator("#chart .plot").bounding_box()
    assert box["y"] + box["height"] <= 844
    sizes = page.locator("#chart .plot text").evaluate_all(
        "all => all.map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)"
    )
    assert min(sizes) >= 12
    for text in page.locator("#chart .plot text").all():
        place = text.bounding_box()
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= 390


def test_the_cutoff_moves_everything(open_page: OpenPage, audit: lp.Audit, folder: Path) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    answer = audit.answer
    parted = [*audit.impact_ratios().disclosed(cutoff=answer.cutoff).cutoffs, answer.cutoff]
    counts = shown_counts(audit.counts, audit.comparison, DISCLOSURE_LIMIT, parted)
    curve = lp.impact_ratio_curve(counts, confidence=None)
    assert answer.first is not None
    assert answer.second is not None
    assert told(page, "first") == pytest.approx(answer.first.share_above, abs=1e-9)
    assert told(page, "second") == pytest.approx(answer.second.share_above, abs=1e-9)
    field = page.locator("[type=text]")
    assert float(field.input_value()) == answer.cutoff
    for typed, used in (("0.3", 0.3), (" 0,25 ", 0.25), ("0.3004", 0.3)):
        field.fill(typed)
        rates = {str(found.group): found.rate for found in curve.at(used)}
        expected = [rates[answer.first.name], rates[answer.second.name]]
        assert [told(page, "first"), told(page, "second")] == pytest.approx(expected, abs=1e-9)
        assert told(page, "ratio") == pytest.approx(min(expected) / max(expected), abs=1e-9)
        for row in page.locator("[data-key]").all():
            cell = row.locator("td[data-value]")
            name = row.locator("bdi").text_content()
            assert float(cell.get_attribute("data-value")) == pytest.approx(rates[name], abs=1e-9)
            assert (
                float(cell.get_attribute("data-low")) <= rates[name] <= float(cell.get_attribute("data-high"))
            )
            scale, dot = row.locator(".line").bounding_box(), row.locator(".dot").bounding_box()
            place = (dot["x"] + dot["width"] / 2 - scale["x"]) / scale["width"]
            assert place == pytest.approx(rates[name], abs=0.01)
        assert shown(page, ".at") == [f"{used:g}"]
    before = page.locator("[type=range]").input_value()
    for wrong in ("", "high", "1.5", "-1"):
        field.fill(wrong)
        assert field.get_attribute("aria-invalid") == "true"
        assert page.locator("[type=range]").input_value() == before
    field.fill("0.7")
    assert field.get_attribute("aria-invalid") is None


def test_the_bracket_and_its_labels_stand_at_the_cutoff(
    open_page: OpenPage, audit: lp.Audit, folder: Path
) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    for cutoff in ("0.1", "0.45", "0.95"):
        page.locator("[type=text]").fill(cutoff)
        plot, bracket = page.locator("#chart .plot").bounding_box(), page.locator(".bracket").bounding_box()
        assert (bracket["x"] - plot["x"]) / plot["width"] == pytest.approx(float(cutoff), abs=0.005)
        rates = [told(page, "first"), told(page, "second")]
        assert bracket["height"] / plot["height"] == pytest.approx(abs(rates[0] - rates[1]), abs=0.01)
        size = shown(page, ".plot .points")[0].split()  # where the groups do not differ there is none
        assert size[:1] == ([f"{100 * abs(rates[0] - rates[1]):.0f}"] if rates[0] != rates[1] else [])
        for label in page.locator("#chart .plot .name").all():
            box = label.bounding_box()
            assert plot["x"] - 60 <= box["x"]
            assert box["x"] + box["width"] <= plot["x"] + plot["width"] + 20
    page.mouse.move(plot["x"] + 0.6 * plot["width"], plot["y"] + 50)
    page.mouse.down()
    page.mouse.move(plot["x"] + 0.2 * plot["width"], plot["y"] + 60)
    page.mouse.up()
    assert float(page.locator("[type=text]").input_value()) == pytest.approx(0.2, abs=0.011)


def test_the_keyboard_reaches_the_cutoff_in_five_tabs_and_operates_it(
    open_page: OpenPage, audit: lp.Audit, folder: Path
) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    presses = 0
    while page.evaluate("document.activeElement.type") != "range":
        page.keyboard.press("Tab")
        presses += 1
        assert presses <= 5
    page.keyboard.press("Home")
    assert page.locator("[type=text]").input_value() == "0"
    page.keyboard.press("ArrowRight")
    assert page.locator("[type=text]").input_value() == "0.01"
    assert page.locator("[type=range]").get_attribute("aria-valuetext").startswith("cutoff 0.01: ")
    page.keyboard.press("End")
    assert told(page, "first") == 0.0


def test_whole_scores_have_whole_cutoffs(open_page: OpenPage, six: lp.Audit, folder: Path) -> None:
    """Deciles: a 7 that was typed became 7.003."""
    page = open_page(folder / "six.html", **LAPTOP)
    assert page.locator("[type=range]").get_attribute("max") == "9"
    page.locator("[type=text]").fill("7")
    page.locator("[type=text]").blur()
    assert page.locator("[type=text]").input_value() == "7"
    page.locator("[type=range]").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("[type=text]").input_value() == "8"


def test_the_state_is_in_the_address(open_page: OpenPage, audit: lp.Audit, folder: Path) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    page.locator("[type=text]").fill("0.35")
    page.locator("[type=text]").blur()
    assert page.evaluate("location.hash") == "#cutoff=0.35"
    rates = told(page, "first"), told(page, "second")
    other = open_page(folder / "one.html", "#cutoff=0.35", **LAPTOP)
    assert (told(other, "first"), told(other, "second")) == rates
    wrong = open_page(folder / "one.html", "#cutoff=nonsense", **LAPTOP)
    assert float(wrong.locator("[type=text]").input_value()) == audit.answer.cutoff
    assert wrong.locator("[type=text]").get_attribute("aria-invalid") is None


def test_every_number_is_the_library_s(
    open_page: OpenPage, several: dict[str, lp.Audit], folder: Path
) -> None:
    page = open_page(folder / "several.html", **LAPTOP)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")

    def numbers(selector: str) -> list[list[float]]:
        script = """rows => rows.map(row => Array.from(row.children).flatMap(cell =>
            [cell.dataset.value, cell.dataset.low, cell.dataset.high].filter(one => one !== undefined).map(Number)))"""
        return page.locator(f"{selector} tbody tr").evaluate_all(script)  # type: ignore[no-any-return]

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
        for pair in audit.pairs[: 600 // (len(several) * len(audit.findings))]
        for i, found in enumerate(audit.findings)
    ]
    groups = [[group.rows, group.mean_score] for audit in several.values() for group in audit.groups]
    for name, expected in (("findings", findings), ("pairs", pairs), ("groups", groups)):
        assert np.array(numbers(f"#{name}")) == pytest.approx(np.array(expected), abs=1e-9)
    for place, audit in enumerate(several.values()):
        dots = [one for one in numbers(f"#model-{place} .dots") if one]
        shares = [[row.share_above, row.low, row.high] for row in audit.answer.groups]
        gaps = [[pair.gap, pair.low, pair.high] for pair in audit.answer.pairs]
        assert sorted(dots) == pytest.approx(np.array(sorted(shares + gaps)), abs=1e-9)
    models = sorted([audit.findings[0].mcdp, *ends(audit.findings[0].interval)] for audit in several.values())
    assert np.array(numbers("#chart > .dots")) == pytest.approx(np.array(models), abs=1e-9)
    written = json.loads(page.locator("#numbers").text_content())
    for audit, plain in zip(several.values(), written["audits"], strict=True):
        assert [found["mcdp"] for found in plain["findings"]] == [found.mcdp for found in audit.findings]


def test_pairs_that_could_be_chance_are_folded(open_page: OpenPage, six: lp.Audit, folder: Path) -> None:
    page = open_page(folder / "six.html", **LAPTOP)
    states = six.answer.states
    assert sum(states.values()) == 15
    visible = [row for row in page.locator("h2:has-text('Pairs') ~ .dots tbody tr").all() if row.is_visible()]
    assert len(visible) == states["clear"] + states["differs, size unknown"]
    assert page.locator("tr.chance").count() == states["not shown"] > 0
    assert not page.locator("tr.chance").first.is_visible()
    (row,) = page.locator("tr:has-text('Native American')").filter(has_text="few people").all()[:1]
    assert row.locator(".dot").count() == 0


def test_models_are_ranked_with_the_bound(
    open_page: OpenPage, several: dict[str, lp.Audit], folder: Path
) -> None:
    page = open_page(folder / "several.html", **LAPTOP)
    assert shown(page, "#chart > .dots th bdi") == ["two", "one"]
    assert page.title().startswith("two differs least: ")
    assert page.locator("#chart > .dots .limit").count() == 2
    page.locator("#model-1 > summary").click()
    page.locator("#model-1 [type=text]").fill("0.2")
    assert page.locator("#model-1 .at").text_content() == "0.2"
    assert page.locator("#model-0 .at").text_content() != "0.2"


def test_words_are_explained_once_and_escape_closes_them(
    open_page: OpenPage, audit: lp.Audit, folder: Path
) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    words = [term.get_attribute("href").removeprefix("#word-") for term in page.locator(".term").all()]
    assert len(words) == len(set(words)) > 5
    for word in words:
        assert page.locator(f"[id='word-{word}'] + dd").text_content() == GLOSSARY[word]
    term, tip = page.locator("header .term").first, page.locator("#tip")
    term.hover()
    assert not tip.is_visible()
    term.focus()
    page.keyboard.press("Enter")
    assert tip.text_content() == GLOSSARY[words[0]]
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_ratios_are_the_library_s(open_page: OpenPage, audit: lp.Audit, folder: Path) -> None:
    page = open_page(folder / "one.html", **LAPTOP)
    fold = page.locator("details:has-text('Selection ratios')").first
    assert not fold.evaluate("fold => fold.open")
    safe = audit.impact_ratios().disclosed(10).safe_cutoffs(0.8)
    assert safe.sentence in " ".join(fold.text_content().split())
    assert safe.worst_sentence in " ".join(fold.text_content().split())
    page.locator("[type=text]").fill("0.2")
    assert fold.locator(".plot .direct").text_content() == "0.8"


def test_a_long_name_stays_on_a_narrow_screen(open_page: OpenPage, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(["African-American × Male", "Caucasian × Male"], 500)
    scores = rng.integers(1, 9, 1000) + 2 * (np.arange(1000) < 500)
    asked: dict[str, Any] = {"sensitive_features": groups, "score_range": (1, 10), "n_resamples": 0}
    lp.audit(None, scores, **asked).to_html(tmp_path / "long.html")
    page = open_page(tmp_path / "long.html", **PHONE)
    for cutoff in range(1, 11):
        page.locator("[type=text]").fill(str(cutoff))
        for label in page.locator("#chart .plot .name").all():
            box = label.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390


@pytest.mark.parametrize(("name", "pages"), [("one", 4), ("six", 5)])
def test_on_paper_there_are_two_pages_and_an_appendix(
    open_page: OpenPage, audit: lp.Audit, six: lp.Audit, folder: Path, name: str, pages: int
) -> None:
    page = open_page(folder / f"{name}.html", viewport={"width": 760, "height": 1000})
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.count(b"/Type /Page\n") <= pages
    page.emulate_media(media="print")
    for control in page.locator("input, output, button").all():
        assert not control.is_visible() or control.evaluate("element => element.closest('thead') !== null")
    sign = page.locator(".sign").bounding_box()
    assert sign["y"] + sign["height"] < 1000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("details:not(.numbers)[open]").count() == 0, "the folds are as they were"


def test_without_scripts_the_first_screen_is_whole(browser: Any, audit: lp.Audit, folder: Path) -> None:
    page = browser.new_context(offline=True, java_script_enabled=False, **LAPTOP).new_page()
    page.goto((folder / "one.html").as_uri())
    assert page.locator(".plot").first.is_visible()
    assert page.locator(".plot .points").first.text_content().endswith("points")
    assert not page.locator(".control").is_visible()
    page.context.close()


def test_tables_sort_by_every_column_both_ways(
    open_page: OpenPage, several: dict[str, lp.Audit], folder: Path
) -> None:
    page = open_page(folder / "several.html")
    page.locator("summary:text-is('All numbers')").click()
    for table in ("models", "findings", "groups"):
        headers = page.locator(f"#{table} thead th")
        for column in range(headers.count()):
            header = headers.nth(column)
            numeric = "number" in (header.get_attribute("class") or "")
            for direction in ("descending", "ascending") if numeric else ("ascending", "descending"):
                header.locator("button").click()
                assert header.get_attribute("aria-sort") == direction
                script = "(rows, column) => rows.map(row => row.children[column].textContent)"
                cells = page.locator(f"#{table} tbody tr").evaluate_all(script, column)
                parts = [cell.removeprefix("<= ").split()[0].rstrip("%").replace(",", "") for cell in cells]
                keys = list(map(float, parts)) if numeric else cells
                assert keys == sorted(keys, reverse=direction == "descending")


@pytest.mark.parametrize("name", ["one", "six", "several"])
@pytest.mark.parametrize(("look", "options", "paper"), LOOKS)
def test_every_look_is_accessible(
    open_page: OpenPage,
    audit: lp.Audit,
    six: lp.Audit,
    several: dict[str, lp.Audit],
    folder: Path,
    axe_source: str,
    name: str,
    look: str,
    options: dict[str, Any],
    paper: str,
) -> None:
    page = open_page(folder / f"{name}.html", **options)
    if look == "print":
        page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}-{look}.png", full_page=True)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    page.evaluate(axe_source)
    # Rows are all of one kind, and judging each of a thousand takes a minute.
    found = page.evaluate("axe.run({exclude: ['tbody tr:nth-child(n+9)']})")
    assert [(problem["id"], problem["nodes"][0]["html"]) for problem in found["violations"]] == []
    assert len(found["passes"]) > 20


def test_names_are_text_and_run_nothing(open_page: OpenPage, tmp_path: Path) -> None:
    names = [
        "<img src=x onerror=alert(1)>",
        "</script><script>alert(2)</script>",
        "שלום عليكم",
        '🦊 & "co" {{7*7}}',
    ]
    rng = np.random.default_rng(0)
    groups = np.repeat(names, 30)
    scores: NDArray[np.float64] = rng.random(groups.size)
    asked: dict[str, Any] = {"sensitive_features": groups, "n_resamples": 5, "random_state": 0}
    audits = {name: lp.audit(None, scores, **asked) for name in names}
    path, column = tmp_path / "odd.html", '"; drop table'
    notes = {"Column of the groups": column, names[0]: names[1]}
    lp.report.write_page(path, audits, title=f"By {column}", notes=notes, min_group_size=1)
    page = open_page(path)
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    for name in names:
        assert page.locator("#groups").get_by_text(name, exact=True).count() == 2 * len(names)
    alone = tmp_path / "alone.html"
    audits[names[0]].to_html(alone, min_group_size=1, title=f"By {column}")
    page = open_page(alone)
    assert f"By {column}" in " ".join(shown(page, ".about"))
    page.locator("[type=text]").fill("0.5")
    assert page.locator("img").count() == 0


def test_no_other_script_can_run(browser: Any, audit: lp.Audit, folder: Path, tmp_path: Path) -> None:
    """The page lets its own script run and nothing else, whatever text would get into it."""
    text = (folder / "one.html").read_text(encoding="utf-8")
    changed = tmp_path / "changed.html"
    button = """<main><b id="b" onclick="this.textContent = 'ran'">x</b>"""
    changed.write_text(text.replace('<main id="model-0">', button), encoding="utf-8")
    page = browser.new_page()
    page.set_default_timeout(300_000)
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.goto(changed.as_uri())
        page.locator("#b").click()
    assert page.locator("#b").text_content() == "x"
    page.close()


def test_forty_groups_stay_small(open_page: OpenPage, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, 20_000)
    scores = rng.beta(2, 3 + codes / 40)
    names = np.array([f"Department {code // 2:02d} × {'women' if code % 2 else 'men'}" for code in range(40)])
    audit = lp.audit(None, scores, sensitive_features=names[codes], epsilons=[0.0], n_resamples=0)
    path = tmp_path / "many.html"
    audit.to_html(path, min_group_size=1)
    assert path.stat().st_size < 1.5e6
    page = open_page(path, viewport={"width": 1280, "height": 600})
    assert page.evaluate("document.querySelectorAll('*').length") < 20_000
    page.locator("[type=text]").fill("0.4")
    cells = page.locator("[data-key] td[data-value]").evaluate_all(
        "all => all.map(one => Number(one.dataset.value))"
    )
    exact = [np.mean(scores[codes == code] > 0.4) for code in range(40)]
    assert sorted(cells) == pytest.approx(sorted(exact), abs=1e-9)
