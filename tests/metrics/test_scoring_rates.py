"""Scoring rates and impact ratios by category."""

from __future__ import annotations

import csv
import statistics
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import localparity as lp
from localparity.metrics._exact import count_for
from strategies import People, people

SCORES = [0.1, 0.3, 0.6, 0.4, 0.6, 0.8]
SEX = ["f", "f", "f", "m", "m", "m"]


def by_hand(
    rows: list[dict[str, str]], columns: list[str], median: float
) -> dict[Any, tuple[int, Fraction, Fraction | None]]:
    """The people, the scoring rate and the impact ratio of each category, counted row by row."""
    of = [tuple(row[name] for name in columns) for row in rows]
    size = Counter(of)
    above = Counter(key for key, row in zip(of, rows, strict=True) if int(row["decile_score"]) > median)
    rates = {key: Fraction(above[key], size[key]) for key in size}
    counted = {key for key in size if size[key] >= 10 and Fraction(size[key], len(rows)) >= Fraction(2, 100)}
    highest = max(rates[key] for key in counted)
    return {key: (size[key], rates[key], rates[key] / highest if key in counted else None) for key in size}


def test_every_number_of_compas_by_hand(data_folder: Path) -> None:
    path = data_folder / "compas" / "compas.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    median = statistics.median(int(row["decile_score"]) for row in rows)
    read = lp.Predictions.read(path, score="decile_score", group=["sex", "race"], score_range=(1, 10))
    found = lp.scoring_rates(read, columns=["sex", "race"])
    assert found.median == median == 4
    assert found.people == 7214
    assert [table.columns for table in found.tables] == [("sex",), ("race",), ("sex", "race")]
    for table in found.tables:
        expected = by_hand(rows, list(table.columns), median)
        assert table.unknown == 0
        assert len(table.categories) == len(expected)
        for each in table.categories:
            key = each.category if isinstance(each.category, tuple) else (each.category,)
            size, rate, ratio = expected[key]
            if each.people is None:
                assert table.columns == ("sex", "race")
                continue
            assert each.people == size
            assert each.share == pytest.approx(size / 7214, abs=1e-12)
            assert each.rate == pytest.approx(float(rate), abs=1e-12)
            assert each.impact_ratio == (None if ratio is None else pytest.approx(float(ratio), abs=1e-12))
    sex, race, both = ({each.category: each for each in table.categories} for table in found.tables)
    # 591 of 1,395 women and 2,726 of 5,819 men score above 4.
    assert sex["Female"].impact_ratio == pytest.approx(591 / 1395 / (2726 / 5819))
    assert race["Other"].impact_ratio == pytest.approx(79 / 377 / (2174 / 3696))
    # 18 people, the highest rate of all, are 0.25% of the data and not the highest of the table.
    assert (race["Native American"].people, race["Native American"].impact_ratio) == (18, None)
    assert both[("Female", "Asian")].people is None
    assert any("less than 2%" in note for note in found.notes)
    assert any("fewer than 10 people" in note for note in found.notes)
    assert not any("complian" in note for note in found.notes)


@given(people(n_groups=3, max_size=12))
def test_it_is_the_definition(drawn: People) -> None:
    found = lp.scoring_rates(
        lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups, missing_values=()),
        min_share=0,
        min_group_size=1,
    )
    median = statistics.median(drawn.exact_scores)
    assert found.median == pytest.approx(float(median), abs=1e-12)
    rates = [Fraction(sum(score > median for score, _ in sample), len(sample)) for sample in drawn.samples()]
    for each, rate in zip(found.tables[0].categories, rates, strict=True):
        assert each.rate == pytest.approx(float(rate))
        ratio = None if max(rates) == 0 else pytest.approx(float(rate / max(rates)))
        assert each.impact_ratio == ratio


def test_people_without_a_category_are_counted_and_not_in_the_table() -> None:
    sex = ["f", None, "f", "m", "m", "m"]
    race = ["x", "y", "unknown", "x", "y", "x"]
    found = lp.scoring_rates(
        lp.Predictions.from_arrays(
            None, SCORES, sensitive_features={"sex": sex, "race": race}, missing_values="unknown"
        ),
        min_group_size=1,
    )
    assert found.people == 6
    assert [table.unknown for table in found.tables] == [1, 1, 2]
    women, men = found.tables[0].categories
    # The median is that of all six scores.
    assert found.median == 0.5
    assert (women.people, women.rate, men.people, men.rate) == (
        2,
        0.5,
        3,
        pytest.approx(2 / 3),
    )
    assert [each.category for each in found.tables[2].categories] == [("f", "x"), ("m", "x"), ("m", "y")]
    few = lp.scoring_rates(
        lp.Predictions.from_arrays(
            None,
            SCORES * 20,
            sensitive_features=[None, *(SEX * 20)[1:]],
            score_range=(0, 1),
            missing_values=(),
        )
    )
    assert few.tables[0].unknown is None


def test_columns_that_lack_a_value_each_count_their_own() -> None:
    groups = {"sex": ["f", None, "f", "m", "m", "m"], "race": ["x", "y", "x", "x", "y", "x"]}
    rows = lp.Predictions.from_arrays(None, SCORES, sensitive_features=groups, missing_values=())
    found = lp.scoring_rates(rows, min_group_size=1)
    assert [table.columns for table in found.tables] == [
        ("category 1",),
        ("category 2",),
        ("category 1", "category 2"),
    ]
    assert [table.unknown for table in found.tables] == [1, 0, 1]
    one = lp.scoring_rates(lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX), min_group_size=1)
    assert one.tables[0].columns == ("category",)
    assert one.to_dict()["tables"][0]["categories"][0]["impact_ratio"] == 0.5


def test_nobody_above_the_median_has_no_ratio() -> None:
    found = lp.scoring_rates(
        lp.Predictions.from_arrays(None, [0.5] * 6, sensitive_features=SEX, missing_values=()),
        min_group_size=1,
    )
    assert [each.impact_ratio for each in found.tables[0].categories] == [None, None]
    small = lp.scoring_rates(
        lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX, missing_values=())
    )
    assert [each.people for each in small.tables[0].categories] == [None, None]


def test_frames_and_tables_of_columns() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"sex": SEX, "race": ["x", "y"] * 3})
    options: dict[str, Any] = {"min_group_size": 1, "columns": ["sex", "race"]}
    found, again = (
        lp.scoring_rates(lp.Predictions.from_arrays(None, SCORES, sensitive_features=columns), **options)
        for columns in (frame, frame.to_numpy())
    )
    assert found == again


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="columns must have 1 names, got 2"):
        lp.scoring_rates(
            lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX, missing_values=()),
            columns=["a", "b"],
        )
    with pytest.raises(ValueError, match=r"min_share .*got 2"):
        lp.scoring_rates(
            lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX, missing_values=()), min_share=2
        )
    weighted = lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX, sample_weight=[2.0] * 6)
    with pytest.raises(ValueError, match="rows of weight 1"):
        lp.scoring_rates(weighted)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 60_000)
    scores = rng.random(60_000) ** (1.0 + 0.3 * groups)
    predictions = lp.Predictions.from_arrays(None, scores, sensitive_features=groups)
    counts = count_for(predictions, lp.Comparison(), np.array([0.0, 0.05]))
    with pytest.raises(ValueError, match="must have every score"):
        lp.scoring_rates(counts)


@given(people(max_size=20))
def test_where_higher_is_worse_scores_are_turned_round(given: People) -> None:
    """The table called a score above the median the better outcome, whatever --higher-is said."""
    options: dict[str, Any] = {"min_group_size": 1, "min_share": 0.0}
    rows = lp.Predictions.from_arrays(None, given.scores, sensitive_features=given.groups)
    other = lp.Predictions.from_arrays(
        None, -np.asarray(given.scores), sensitive_features=given.groups, score_range=(-1, 0)
    )
    turned = lp.scoring_rates(other, **options)
    found = lp.scoring_rates(rows, **options, higher_is="worse")
    assert found.tables == turned.tables
    assert "score below the median" in found.notes[0]
    assert found.to_dict()["higher_is"] == "worse"


def test_a_wrong_direction_is_named() -> None:
    wrong: Any = "lower"
    with pytest.raises(ValueError, match=r"higher_is must be .* got 'lower'"):
        lp.scoring_rates(
            lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX, missing_values=()),
            higher_is=wrong,
        )


def test_compas_is_worse_the_higher(data_folder: Path) -> None:
    """African-American 1.000 and Caucasian 0.592, a page said under "the worse outcome"."""
    path = data_folder / "compas" / "compas.csv"
    read = lp.Predictions.read(path, score="decile_score", group="race", score_range=(1, 10))
    found = lp.scoring_rates(read, columns=["race"], higher_is="worse")
    ratios = {each.category: each.impact_ratio for each in found.tables[0].categories}
    with path.open() as file:
        rows = [(row["race"], int(row["decile_score"])) for row in csv.DictReader(file)]
    below, size = Counter(race for race, score in rows if score < 4), Counter(race for race, _ in rows)
    best = max(below[race] / size[race] for race in size if size[race] >= 0.02 * len(rows))
    assert ratios["African-American"] == pytest.approx(
        below["African-American"] / size["African-American"] / best
    )
    assert ratios["African-American"] < ratios["Caucasian"] < 1.0 == ratios["Other"]


def selected_by_hand(
    rows: list[tuple[tuple[str, ...], bool]], place: int | None
) -> dict[Any, tuple[int, Fraction, Fraction]]:
    """Section 5-300: selected of a category over its people, over that of the most selected category."""
    of = [(key if place is None else key[place], chosen) for key, chosen in rows]
    rates = {}
    for category in {key for key, _ in of}:
        chosen = [chosen for key, chosen in of if key == category]
        rates[category] = (len(chosen), Fraction(sum(chosen), len(chosen)))
    most = max(rate for _, rate in rates.values())
    return {key: (size, rate, rate / most) for key, (size, rate) in rates.items()}


@pytest.mark.parametrize("higher_is", ["better", "worse"])
@given(data=st.data())
def test_selection_rates_are_those_of_the_rule(higher_is: Any, data: st.DataObject) -> None:
    cell = st.tuples(st.sampled_from("fm"), st.sampled_from("abc"), st.integers(0, 10))
    drawn = data.draw(st.lists(cell, min_size=2, max_size=40))
    cutoff = data.draw(st.integers(0, 10)) / 10
    scores = [score / 10 for *_, score in drawn]
    chosen = [score > cutoff if higher_is == "better" else score <= cutoff for score in scores]
    assume(any(chosen))
    columns = {"sex": [sex for sex, *_ in drawn], "race": [race for _, race, _ in drawn]}
    rows = lp.Predictions.from_arrays(None, scores, sensitive_features=columns, min_groups=1)
    options: Any = {"columns": ["sex", "race"], "min_group_size": 1, "min_share": 0.0}
    found = lp.scoring_rates(rows, cutoff=cutoff, higher_is=higher_is, **options)
    decided = lp.Predictions.from_arrays(
        None, np.array(chosen, float), sensitive_features=columns, min_groups=1
    )
    again = lp.scoring_rates(decided, cutoff=0.5, **options)
    assert (found.median, found.name, found.people) == (None, "selection rate", len(drawn))
    people = [((sex, race), one) for (sex, race, _), one in zip(drawn, chosen, strict=True)]
    for table, other, place in zip(found.tables, again.tables, (0, 1, None), strict=True):
        expected = selected_by_hand(people, place)
        assert {each.category for each in table.categories} == expected.keys()
        for each in (*table.categories, *other.categories):
            size, rate, ratio = expected[each.category]
            assert each.people == size
            assert (each.rate, each.impact_ratio) == pytest.approx((float(rate), float(ratio)), abs=1e-12)


def test_a_cutoff_is_a_number() -> None:
    rows = lp.Predictions.from_arrays(None, SCORES, sensitive_features=SEX)
    with pytest.raises(ValueError, match=r"cutoff must be"):
        lp.scoring_rates(rows, cutoff="high")  # type: ignore[arg-type]
