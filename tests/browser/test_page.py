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
from looks import LOOKS

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"

OpenPage = Callable[..., Any]


@pytest.fixture(scope="module")
def census() -> Any:
    return lp.datasets.make_census(3000, random_state=0, as_frame=False)


@pytest.fixture(scope="module")
def groups(census: Any) -> NDArray[Any]:
    """Three groups, so that there are three pairs."""
    return np.where(np.asarray(census.data["age"]) < 30, "young", census.sensitive_features)


def both_scores(census: Any) -> dict[str, NDArray[np.float64]]:
    """The census's own scores, and some that depend on age, so that another pair is the worst."""
    by_age = np.asarray(census.data["age"]) / 100
    return {"first": census.score, "second": 0.7 * by_age + 0.3 * census.score}


@pytest.fixture(scope="module")
def path(census: Any, groups: NDArray[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models with labels, on one page."""
    found = {}
    for name, score in both_scores(census).items():
        predictions = lp.Predictions.from_arrays(census.target, score, sensitive_features=groups)
        counts = lp.ScoreCounts.from_predictions(predictions)
        found[name] = lp.audit(counts, n_resamples=50, random_state=0)
    path = tmp_path_factory.mktemp("page") / "report.html"
    lp.report.write_page(path, found, min_group_size=1)
    return path


def page_data(page: Any) -> Any:
    return json.loads(page.locator("#page-data").text_content())


def value(page: Any, name: str) -> float:
    return float(page.locator(f"#{name}").get_attribute("value"))


def settle(page: Any) -> None:
    """Wait for two frames: charts draw what they are told in the first."""
    page.evaluate("new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")


def test_the_slider_for_epsilon_shows_mcdp(
    open_page: OpenPage, path: Path, census: Any, groups: NDArray[Any]
) -> None:
    page = open_page(path)
    epsilons = page_data(page)["epsilons"]
    assert len(epsilons) == 500
    windows = set()
    profile = lp.mcdp_profile(None, census.score, sensitive_features=groups)
    for place in range(0, len(epsilons), 23):
        page.locator("#epsilon").fill(str(place))
        truth = lp.mcdp(None, census.score, sensitive_features=groups, epsilon=epsilons[place])
        assert value(page, "mcdp") == pytest.approx(truth, abs=1e-9)
        assert page.locator("#mcdp").text_content() == f"{100 * truth:.2f}%"
        assert float(page.locator("#epsilon-shown").text_content()) == epsilons[place]
        window = page.locator("#window").text_content()
        assert window == profile.worst_window(epsilons[place]).sentence
        windows.add(window)
    assert len(windows) > 10


def test_the_slider_for_the_threshold_shows_both_selection_rates(
    open_page: OpenPage, path: Path, census: Any, groups: NDArray[Any]
) -> None:
    page = open_page(path)
    thresholds = page_data(page)["models"][0]["thresholds"]
    page.locator("#pair").select_option(label="\u2068Female\u2069 and \u2068Male\u2069")
    for place in range(0, len(thresholds), 61):
        page.locator("#threshold").fill(str(place))
        rates = [np.mean(census.score[groups == group] > thresholds[place]) for group in ("Female", "Male")]
        assert value(page, "rate-a") == pytest.approx(rates[0], abs=1e-9)
        assert value(page, "rate-b") == pytest.approx(rates[1], abs=1e-9)
        assert value(page, "difference") == pytest.approx(abs(rates[0] - rates[1]), abs=1e-9)
        if max(rates) > 0:
            assert value(page, "ratio") == pytest.approx(min(rates) / max(rates), abs=1e-6)


def test_pair_criterion_and_model_are_chosen(
    open_page: OpenPage, path: Path, census: Any, groups: NDArray[Any]
) -> None:
    page = open_page(path)
    page.locator("#epsilon").fill("50")
    epsilon = page_data(page)["epsilons"][50]
    pair_names = page_data(page)["models"][0]["pairs"]
    assert page.locator("#pair option").count() == 1 + len(pair_names) == 4
    scores = both_scores(census)
    for model, score in scores.items():
        page.locator("#model").select_option(label=model)
        for criterion in page.locator("#criterion option").evaluate_all("all => all.map(one => one.value)"):
            page.locator("#criterion").select_option(criterion)
            truth = lp.mcdp(
                census.target, score, sensitive_features=groups, epsilon=epsilon, criterion=criterion
            )
            assert value(page, "mcdp") == pytest.approx(truth, abs=1e-9)
    page.locator("#criterion").select_option("equal_opportunity")
    for number, pair in enumerate(page_data(page)["models"][1]["pairs"]):
        page.locator("#pair").select_option(str(number))
        kept = np.isin(groups, pair)
        truth = lp.mcdp(
            census.target[kept],
            scores["second"][kept],
            sensitive_features=groups[kept],
            epsilon=epsilon,
            criterion="equal_opportunity",
        )
        assert value(page, "mcdp") == pytest.approx(truth, abs=1e-9)
        assert page.locator(".first-name").first.text_content() == pair[0]
        assert page.locator("#window").text_content().startswith("Among people with label 1, with")


def test_the_window_is_drawn_where_it_is_told(open_page: OpenPage, path: Path, census: Any) -> None:
    page = open_page(path)
    page.locator("#epsilon").fill("100")
    low, high = page.locator("#window").text_content().split("from ")[1].split(" up to, but not including, ")
    high = high.split(", ")[0]
    settle(page)
    box = page.locator("#gap svg .mark-rect path").first.bounding_box()
    axis = page.locator("#gap svg .role-axis-domain line").first.bounding_box()
    scale = axis["width"]
    assert (box["x"] - axis["x"]) / scale == pytest.approx(float(low), abs=0.01)
    assert (box["x"] + box["width"] - axis["x"]) / scale == pytest.approx(float(high), abs=0.01)


def test_hovering_either_chart_tells_exact_values(
    open_page: OpenPage, path: Path, census: Any, groups: NDArray[Any]
) -> None:
    page = open_page(path)
    page.locator("#pair").select_option(label="\u2068Female\u2069 and \u2068Male\u2069")
    for chart in ("cdfs", "gap"):
        page.locator(f"#{chart} svg").hover(position={"x": 300, "y": 60})
        settle(page)
        lines = page.locator("#tip").text_content().split("\n")
        threshold = float(lines[0].removeprefix("threshold "))
        shares = [np.mean(census.score[groups == group] <= threshold) for group in ("Female", "Male")]
        told = [float(line.split()[-1].rstrip("%")) / 100 for line in lines[1:]]
        assert told == pytest.approx([*shares, shares[0] - shares[1]], abs=1e-3)
        for other in ("cdfs", "gap"):
            assert page.locator(f"#{other} svg .mark-rule line[stroke='var(--muted)']").count() == 1
    page.mouse.move(0, 0)
    page.locator("#tip").wait_for(state="hidden")


def test_the_profile_compares_models_on_the_same_pair(
    open_page: OpenPage, path: Path, census: Any, groups: NDArray[Any]
) -> None:
    page = open_page(path)
    orders = [model["pairs"] for model in page_data(page)["models"]]
    assert orders[0] != orders[1]
    for number, pair in enumerate(orders[0]):
        page.locator("#pair").select_option(str(number))
        page.locator("#profiles svg").hover(position={"x": 150, "y": 60})
        first, *lines = page.locator("#tip").text_content().split("\n")
        epsilon, kept = float(first.removeprefix("epsilon ")), np.isin(groups, pair)
        told = [float(line.split()[-1].rstrip("%")) / 100 for line in lines]
        truth = [
            lp.mcdp(None, score[kept], sensitive_features=groups[kept], epsilon=epsilon)
            for score in both_scores(census).values()
        ]
        assert told == pytest.approx(truth, abs=1e-6)


def test_tables_sort_by_every_column_both_ways(open_page: OpenPage, path: Path) -> None:
    page = open_page(path)
    for table in ("models", "findings", "pairs", "groups"):
        headers = page.locator(f"#{table} thead th")
        for column in range(headers.count()):
            header, numeric = (
                headers.nth(column),
                "number" in (headers.nth(column).get_attribute("class") or ""),
            )
            directions = ("descending", "ascending") if numeric else ("ascending", "descending")
            for direction in directions:
                header.locator("button").click()
                assert header.get_attribute("aria-sort") == direction
                cells = page.locator(f"#{table} tbody tr").evaluate_all(
                    "(rows, column) => rows.map(row => row.children[column].textContent)", column
                )
                keys = (
                    [
                        float(cell.removeprefix("<= ").split()[0].rstrip("%").replace(",", ""))
                        for cell in cells
                    ]
                    if numeric
                    else cells
                )
                assert keys == sorted(keys, reverse=direction == "descending")


def test_the_keyboard_is_enough(open_page: OpenPage, path: Path) -> None:
    page = open_page(path)
    page.locator("#epsilon").focus()
    page.keyboard.press("Home")
    before = value(page, "mcdp")
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    assert value(page, "mcdp") < before
    assert page.locator("#epsilon").get_attribute("aria-valuetext").startswith("epsilon 0.06: MCDP ")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "threshold"
    page.keyboard.press("End")
    assert value(page, "rate-a") == 0.0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "typed"


@pytest.mark.parametrize(("look", "options", "paper"), LOOKS)
def test_every_look_is_accessible(
    open_page: OpenPage, path: Path, axe_source: str, look: str, options: dict[str, Any], paper: str
) -> None:
    page = open_page(path, **options)
    if look == "print":
        page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for chart in ("cdfs", "gap", "profiles"):
        drawing = page.locator(f"#{chart} svg").bounding_box()
        for text in page.locator(f"#{chart} svg text").all():
            box = text.bounding_box()
            assert drawing["x"] - 1 <= box["x"]
            assert box["x"] + box["width"] <= drawing["x"] + drawing["width"] + 1
            assert box["y"] + box["height"] <= drawing["y"] + drawing["height"] + 1
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{look}.png", full_page=True)
    page.evaluate(axe_source)
    found = page.evaluate("axe.run()")
    problems = [
        (problem["id"], problem["nodes"][0]["html"])
        for problem in found["violations"]
        if problem["impact"] in {"serious", "critical"}
    ]
    assert problems == []
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
    scores = rng.random(groups.size)
    audits = {
        name: lp.audit(None, scores, sensitive_features=groups, n_resamples=5, random_state=0)
        for name in names
    }
    path = tmp_path / "odd.html"
    column = '"; drop table'
    notes = {"Column of the groups": column, names[0]: names[1]}
    lp.report.write_page(path, audits, title=f"By {column}", notes=notes, min_group_size=1)
    page = open_page(path)
    assert page.locator("h1").text_content() == f"By {column}"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 4
    for name in names:
        assert page.locator("#groups").get_by_text(name, exact=True).count() == 2 * len(names)
        page.locator("#model").select_option(label=name)
    for number in range(page.locator("#pair option").count() - 1):
        page.locator("#pair").select_option(str(number))
        first = page_data(page)["models"][0]["pairs"][number][0]
        assert page.locator(".first-name").first.text_content() == first
    page.locator("#cdfs svg").hover(position={"x": 200, "y": 60})
    assert page.locator("#tip").is_visible()


def test_no_other_script_can_run(browser: Any, path: Path, tmp_path: Path) -> None:
    """The page lets its own two scripts run and nothing else, whatever text would get into it."""
    text = path.read_text(encoding="utf-8")
    changed = tmp_path / "changed.html"
    button = """<main><b id="b" onclick="this.textContent = 'ran'">x</b>"""
    changed.write_text(text.replace("<main>", button), encoding="utf-8")
    page = browser.new_page()
    page.set_default_timeout(300_000)
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.goto(changed.as_uri())
        page.locator("#b").click()
    assert page.locator("#b").text_content() == "x"
    page.close()


def test_forty_groups_stay_small_and_draw_no_chart_at_first(open_page: OpenPage, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, 20_000)
    scores = rng.beta(2, 3 + codes / 40)
    names = np.array([f"Department {code // 2:02d} × {'women' if code % 2 else 'men'}" for code in range(40)])
    audit = lp.audit(None, scores, sensitive_features=names[codes], n_resamples=0)
    path = tmp_path / "many.html"
    audit.to_html(path, min_group_size=1)
    assert path.stat().st_size < 3e6
    page = open_page(path, charts=False, viewport={"width": 1280, "height": 600})
    # What takes a browser long; `make bench` measures the time.
    assert page.evaluate("document.querySelectorAll('.chart svg').length") == 0
    assert page.evaluate("document.querySelectorAll('*').length") < 10_000
    assert page.locator("#pair option").count() == 781
    epsilons = page_data(page)["epsilons"]
    for place in (0, 5, 20):
        page.locator("#epsilon").fill(str(place))
        truth = lp.mcdp(None, scores, sensitive_features=names[codes], epsilon=epsilons[place])
        assert value(page, "mcdp") == pytest.approx(truth, abs=1e-9)


def test_charts_are_drawn_when_they_are_near_and_for_paper(open_page: OpenPage, path: Path) -> None:
    charts = "document.querySelectorAll('.chart svg path').length"
    page = open_page(path, charts=False, viewport={"width": 1280, "height": 600})
    assert page.evaluate(charts) == 0
    assert page.evaluate("document.getElementById('mcdp').value") != ""
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.onPaper = {charts}; }})")
    page.pdf()
    assert page.evaluate("window.onPaper") > 10
    drawn = page.evaluate(charts)
    page.evaluate("document.getElementById('explore').scrollIntoView()")
    settle(page)
    assert page.evaluate(charts) == drawn
    other = open_page(path, charts=False, viewport={"width": 1280, "height": 600})
    other.locator("#explore").scroll_into_view_if_needed()
    other.wait_for_selector("html[data-charts=drawn]", state="attached")


def sentences_told(page: Any, step: int) -> list[tuple[float, str]]:
    """What the page says at some of the epsilons."""
    told = []
    for place, epsilon in list(enumerate(page_data(page)["epsilons"]))[::step]:
        page.locator("#epsilon").fill(str(place))
        told.append((epsilon, page.locator("#window").text_content()))
    return told


@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize(
    ("score_range", "decimals"),
    [((300, 850), 0), ((0, 60_000), 0), ((0, 60_000), 2), ((-1, 0), 3), ((0, 0.0001), 8)],
)
def test_words_are_the_library_s_in_other_ranges_too(
    open_page: OpenPage, tmp_path: Path, compare: Any, score_range: tuple[float, float], decimals: int
) -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, 400)
    low, high = score_range
    scores = np.round(low + (high - low) * rng.beta(2, 2 + groups / 4), decimals)
    options = {"sensitive_features": groups, "score_range": score_range}
    audit = lp.audit(None, scores, compare=compare, n_resamples=0, **options)
    audit.to_html(tmp_path / "range.html", min_group_size=1)
    page = open_page(tmp_path / "range.html")
    profile = lp.mcdp_profile(None, scores, compare=compare, **options)
    for epsilon, sentence in sentences_told(page, 31):
        window = profile.worst_window(epsilon)
        if window.gap > 0.0:
            assert sentence == window.sentence
        else:
            assert sentence.startswith("No window of this width")


def test_small_gaps_and_what_a_high_score_means_are_told_as_the_library_tells_them(
    open_page: OpenPage, tmp_path: Path
) -> None:
    groups = np.repeat(["a", "b"], 5000)
    scores = np.concatenate([np.arange(5000) % 10 + 1, np.arange(5000) % 10 + 1])
    scores[0] = 2  # one in 5,000 differs
    options = {"sensitive_features": groups, "score_range": (0, 11)}
    window = lp.gap_curve(lp.Predictions.from_arrays(None, scores, **options)).worst_window()
    assert "of 1, people in b are at least 0.02 points more" in window.sentence
    for higher_is in (None, "better", "worse"):
        path = tmp_path / f"{higher_is}.html"
        audit = lp.audit(None, scores, n_resamples=0, higher_is=higher_is, **options)
        audit.to_html(path, min_group_size=1)
        page = open_page(path)
        page.locator("#epsilon").fill("0")
        assert page.locator("#window").text_content() == window.sentence_for(higher_is)


@pytest.mark.parametrize("higher_is", [None, "better", "worse"])
def test_a_page_selects_in_one_direction_at_the_threshold_that_is_typed(
    open_page: OpenPage, tmp_path: Path, higher_is: Any
) -> None:
    """Deciles: 7 became 7.003, and people above it were selected, whatever the page said before."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], 500)
    scores = np.concatenate([rng.integers(1, 11, 500), rng.integers(1, 9, 500)])
    path = tmp_path / "deciles.html"
    asked: dict[str, Any] = {"sensitive_features": groups, "score_range": (1, 10), "n_resamples": 0}
    lp.audit(None, scores, **asked, higher_is=higher_is).to_html(path)
    page = open_page(path)
    page.locator("#typed").fill("7")
    page.locator("#typed").blur()
    assert page.locator("#typed").input_value() == "7"
    assert page.locator("#typed-note").text_content() == ""
    selected = scores <= 7 if higher_is == "worse" else scores > 7
    for name, group in (("rate-a", "a"), ("rate-b", "b")):
        assert value(page, name) == pytest.approx(selected[groups == group].mean(), abs=1e-9)
    side = "at or below" if higher_is == "worse" else "above"
    assert {each.text_content() for each in page.locator(".beyond").all()} == {side}
    assert f"People {side} a cutoff are selected" in page.locator("main").text_content()


def test_captions_speak_of_marks_that_are_drawn(
    open_page: OpenPage, path: Path, census: Any, tmp_path: Path
) -> None:
    page = open_page(path)
    page.locator("#pair").select_option("-1")
    assert page.locator("#of-findings").is_visible()
    assert page.locator("#of-parity").is_visible()
    page.locator("#pair").select_option("0")
    assert not page.locator("#of-findings").is_visible()
    assert not page.locator("#of-parity").is_visible()
    page.locator("#epsilon").fill("0")
    assert page.locator("li.of-window").is_visible()
    page.locator("#epsilon").fill(page.locator("#epsilon").get_attribute("max"))
    sentence = page.locator("#window").text_content()
    assert page.locator("li.of-window").is_visible() == ("No window" not in sentence)
    untested = tmp_path / "untested.html"
    groups = census.sensitive_features
    lp.audit(None, census.score, sensitive_features=groups, n_resamples=0).to_html(untested)
    page = open_page(untested)
    assert page.locator("#of-findings").is_visible()
    assert not page.locator("#of-parity").is_visible()
