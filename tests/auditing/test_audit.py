"""The audit: every number of it against the function it comes from, and a real table checked by hand."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import localparity as lp


@pytest.fixture(scope="module")
def census() -> Any:
    return lp.datasets.make_census(2000, random_state=2, as_frame=False)


@pytest.fixture(scope="module")
def found(census: Any) -> lp.Audit:
    return lp.audit(
        None,
        census.score,
        sensitive_features=census.sensitive_features,
        epsilons=[0.1, 0, 0.05],
        threshold=0.5,
        n_resamples=50,
        random_state=0,
    )


def test_every_number_is_that_of_its_function(census: Any, found: lp.Audit) -> None:
    options = {"sensitive_features": census.sensitive_features}
    assert [finding.epsilon for finding in found.findings] == [0.0, 0.05, 0.1]
    for finding in found.findings:
        epsilon = finding.epsilon
        assert finding.mcdp == lp.mcdp(None, census.score, epsilon=epsilon, **options)
        assert finding.interval == lp.mcdp_interval(None, census.score, epsilon=epsilon, **options)
        expected = lp.permutation_test(
            None, census.score, epsilon=epsilon, n_resamples=50, random_state=0, **options
        )
        assert finding.test == expected  # nothing was as large at any epsilon, so adjusting changes nothing
        assert finding.window == lp.mcdp_profile(None, census.score, **options).worst_window(epsilon)
    (pair,) = found.pairs
    assert pair.abcc == lp.abcc(None, census.score, **options)
    assert pair.delta_dp == lp.delta_dp(None, census.score, threshold=0.5, **options)
    means = {group.group: group.mean_score for group in found.groups}
    assert means["Male"] == pytest.approx(census.score[census.sensitive_features == "Male"].mean())


def test_forms(found: lp.Audit) -> None:
    pd = pytest.importorskip("pandas")
    plain = found.to_dict()
    assert plain["findings"][0]["window"]["sentence"] == found.findings[0].window.sentence
    assert json.loads(found.to_json())["audits"][0]["findings"][1]["mcdp"] == found.findings[1].mcdp
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["mcdp"].tolist() == list(found.pairs[0].mcdp)


def test_groups_of_any_kind_become_json() -> None:
    pd = pytest.importorskip("pandas")
    groups = [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")]
    found = lp.audit(None, [0.1, 0.2], sensitive_features=np.array(groups, dtype=object), n_resamples=0)
    assert "2021-01-01" in found.to_json(min_group_size=1)
    assert found.findings[0].test is None


def test_passes(found: lp.Audit) -> None:
    finding = found.findings[0]
    assert found.passes(finding.mcdp)
    assert not found.passes(finding.mcdp - 0.001)
    assert not found.passes(finding.mcdp, decide_by="upper")
    assert found.passes(finding.interval.high, decide_by="upper")
    assert found.passes(finding.interval.low, decide_by="lower")
    assert found.passes(found.findings[2].mcdp, epsilon=0.1)
    with pytest.raises(ValueError, match=r"epsilon .*got 0.2"):
        found.passes(0.1, epsilon=0.2)
    with pytest.raises(ValueError, match=r"max_mcdp .*got 10"):
        found.passes(10)
    with pytest.raises(ValueError, match=r"decide_by .*got 'p'"):
        found.passes(0.1, decide_by="p")  # type: ignore[arg-type]


def test_bootstrap_intervals(census: Any) -> None:
    options: dict[str, Any] = {
        "sensitive_features": census.sensitive_features,
        "n_resamples": 40,
        "random_state": 0,
    }
    found = lp.audit(None, census.score, epsilons=[0.05], method="bootstrap", **options)
    assert found.findings[0].interval == lp.mcdp_interval(
        None, census.score, epsilon=0.05, method="bootstrap", **options
    )


def test_small_groups_are_left_out_and_named() -> None:
    scores = np.linspace(0, 1, 24)
    groups = ["a"] * 11 + ["b"] * 11 + ["c"] * 2
    options: dict[str, Any] = {"sensitive_features": groups, "n_resamples": 0, "min_group_size": 5}
    found = lp.audit(None, scores, **options)
    assert [(left.group, left.fewer_than) for left in found.left_out] == [("c", 5)]
    assert len(found.pairs) == 1
    with pytest.raises(ValueError, match="min_group_size=12 leaves 0 of 3 groups"):
        lp.audit(None, scores, **{**options, "min_group_size": 12})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilons": []}, "epsilons .*got none"),
        ({"epsilons": [0.1, -1]}, r"epsilons must be .* got -1"),
        ({"method": "x"}, "method .*got 'x'"),
        ({"higher_is": "x"}, "higher_is .*got 'x'"),
        ({"threshold": "x"}, "threshold .*got 'x'"),
        (
            {"method": "bootstrap", "n_resamples": 0},
            "n_resamples must be >= 19 .* got 0",
        ),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lp.audit(None, [0.1, 0.2], sensitive_features=[0, 1], **{"n_resamples": 5, **options})


@pytest.fixture(scope="module")
def compas(data_folder: Path) -> lp.Audit:
    rows = lp.Predictions.read(
        data_folder / "compas" / "compas.csv",
        score="decile_score",
        group=["race", "sex"],
        score_range=(1, 10),
    )
    counts = lp.ScoreCounts.from_predictions(rows)
    return lp.audit(counts, epsilons=[0.0, 0.05], random_state=0, higher_is="worse")


def test_tiny_cells_do_not_silence_the_audit_of_large_ones(compas: lp.Audit) -> None:
    """Cells of two and four people set the maximum and its null distribution: p was 0.37."""
    assert compas.findings[0].mcdp == 0.75
    assert compas.findings[0].test is not None
    assert compas.findings[0].test.p_value <= 0.01
    men = {("African-American", "Male"), ("Caucasian", "Male")}
    (large,) = [pair for pair in compas.pairs if set(pair.groups) == men]
    assert compas.most_significant is large
    assert large.p_values is not None
    assert max(large.p_values) <= 0.01
    assert 0.15 < large.intervals[0].low < large.mcdp[0] < large.intervals[0].high < 0.4
    small = {group.group: group.rows for group in compas.groups if group.too_small}
    assert small.items() >= {("Asian", "Female"): 2, ("Native American", "Female"): 4}.items()
    assert max(small.values()) < 20
    answer = compas.answer
    assert answer.headline == (
        "African-American × Males are 27 points more likely than Caucasian × Males to score above "
        "5, which is the worse outcome"
    )
    assert (answer.largest.gap, answer.largest.too_small) == (0.75, True)
    assert sum(row.too_small for row in answer.pairs) == sum(pair.too_small for pair in compas.pairs)
    # Those too small to judge come last, whatever they measure.
    assert [pair.too_small for pair in compas.pairs] == sorted(pair.too_small for pair in compas.pairs)


def test_every_pair_and_epsilon_has_its_interval_and_p_value_in_every_form(compas: lp.Audit) -> None:
    pytest.importorskip("pandas")
    (plain,) = json.loads(compas.to_json(min_group_size=1))["audits"]
    assert len(compas.pairs) == len(plain["pairs"]) == 66
    for pair, written in zip(compas.pairs, plain["pairs"], strict=True):
        assert written["p_values"] == list(pair.p_values or ())
        assert [each["high"] for each in written["intervals"]] == [each.high for each in pair.intervals]
        assert (written["too_small"], written["radius"]) == (pair.too_small, pair.radius)
    assert plain["answer"]["status"] == "disparity"
    assert any("independent" in sentence for sentence in plain["assumptions"])
    frame = compas.to_frame()
    assert len(frame) == 132
    assert frame["p_value"].between(0.0009, 1.0).all()
    assert (frame["low"] <= frame["mcdp"]).all()
    worst = [max(pair.intervals[place].low for pair in compas.pairs) for place in (0, 1)]
    assert worst == [finding.interval.low for finding in compas.findings]


def test_a_pass_that_says_nothing_is_an_error() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(600), np.repeat(["a", "b"], 300)
    scores[:300] **= 2
    options: dict[str, Any] = {"sensitive_features": groups, "n_resamples": 0, "epsilons": [0.0, 0.05]}
    with pytest.warns(UserWarning, match=r"less than a tenth of score_range \(0, 100\)"):
        found = lp.audit(None, scores, score_range=(0, 100), **options)
    assert [finding.too_wide for finding in found.findings] == [False, True]
    with pytest.warns(UserWarning, match="less than a tenth"):
        nothing = lp.audit(None, scores, score_range=(0, 100), **{**options, "epsilons": [0.05]})
    assert nothing.answer.status == "undecided"
    assert nothing.answer.sure == "Nothing was tested."
    assert not found.passes(0.1)
    with pytest.raises(ValueError, match=r"MCDP\(0.05\) is 0 whatever the groups"):
        found.passes(0.1, epsilon=0.05)
    assert not lp.audit(None, scores, **options).findings[1].too_wide


def test_people_are_no_groups() -> None:
    scores = np.linspace(0, 1, 60)
    with pytest.raises(ValueError, match="sensitive_features has 60 groups in 60 rows"):
        lp.audit(None, scores, sensitive_features=np.arange(60))


def test_too_many_groups_are_named_before_the_work() -> None:
    scores, many = np.linspace(0, 1, 3600), np.repeat(np.arange(1200), 3)
    with pytest.raises(ValueError, match="1,200 groups, of which at most 1,000"):
        lp.audit(None, scores, sensitive_features=many)
    found = lp.audit(None, scores, sensitive_features=many, compare="to_overall", n_resamples=0)
    assert len(found.pairs) == 1200
    assert found.answer.status == "undecided"


@pytest.mark.parametrize(
    ("criterion", "labels"),
    [
        ("demographic_parity", [("0", "1")]),
        ("equal_opportunity", [("1",)]),
        ("predictive_equality", [("0",)]),
        ("equalized_odds", [("0",), ("1",)]),
    ],
)
def test_a_real_table_by_hand(data_folder: Path, criterion: str, labels: list[tuple[str, ...]]) -> None:
    """The COMPAS deciles: MCDP of every pair from the table's counts, ten scores, with a pencil."""
    path = data_folder / "compas" / "compas.csv"
    predictions = lp.Predictions.read(
        path, score="decile_score", group="race", label="two_year_recid", score_range=(1, 10)
    )
    counts = lp.ScoreCounts.from_predictions(predictions)
    found = lp.audit(counts, criterion=criterion, n_resamples=0)  # type: ignore[arg-type]
    with path.open() as file:
        rows = list(csv.DictReader(file))
    tables = [
        Counter((row["race"], int(row["decile_score"])) for row in rows if row["two_year_recid"] in among)
        for among in labels
    ]
    assert len(found.groups) == 6 * len(labels)
    for pair in found.pairs:
        table = tables[0] if len(tables) == 1 else tables[pair.label or 0]
        below = {
            race: [sum(table[race, s] for s in range(1, decile + 1)) for decile in range(1, 11)]
            for race in pair.groups
        }
        first, second = ([Fraction(n, counted[-1]) for n in counted] for counted in below.values())
        gaps = [abs(a - b) for a, b in zip(first, second, strict=True)]
        # A window of half-width 0.05 x 9 fits into one decile, and so does one of 0; one of 0.1 x 9 needs two
        # deciles in a row, or the lowest alone.
        expected = {0.0: max(gaps), 0.01: max(gaps), 0.05: max(gaps)}
        expected[0.1] = max(gaps[0], *(min(gaps[i : i + 2]) for i in range(9)))
        for finding, value in zip(found.findings, pair.mcdp, strict=True):
            assert value == float(expected[finding.epsilon])


def test_a_file_is_audited_as_arrays_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = {
        "p": rng.random(300).round(3),
        "sex": np.where(np.arange(300) % 3, "f", "m"),
        "y": rng.integers(0, 2, 300),
        "w": rng.integers(1, 4, 300),
        "home": [f"h{row // 2:03d}" for row in range(300)],
    }
    path = tmp_path / "scores.csv"
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    asked: dict[str, Any] = {"criterion": "equalized_odds", "n_resamples": 19, "random_state": 0}
    arrays: dict[str, Any] = {"sensitive_features": rows["sex"], **asked}
    columns: dict[str, Any] = {"score": "p", "group": "sex", "label": "y", **asked}
    for names, more in (
        ({}, {}),
        ({"weight": "w"}, {"sample_weight": rows["w"]}),
        ({"cluster": "home"}, {"cluster": rows["home"]}),
    ):
        found = lp.Audit.read(path, **columns, **names)
        assert found.provenance is not None
        assert found.provenance.files[0].name == str(path)
        assert (
            replace(found, provenance=None, file=None).to_json()
            == lp.audit(rows["y"], rows["p"], **arrays, **more).to_json()
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "pandas"}, "engine .*got 'pandas'"),
        ({"engine": "spark", "cluster": "home"}, "cluster .*got 'spark'"),
        ({"score": "q"}, "'q'"),
        ({"confidence": 95}, "confidence .*got 95"),
    ],
)
def test_wrong_options_of_a_file_are_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("p,sex\n0.1,f\n0.2,m\n")
    with pytest.raises(ValueError, match=message):
        lp.Audit.read(path, **{"score": "p", "group": "sex", **options})


def test_the_repr_is_the_table_that_a_person_wants() -> None:
    groups = ["a"] * 200 + ["b"] * 200
    found = lp.audit(None, [0.25] * 200 + [0.75] * 200, sensitive_features=groups, random_state=0)
    headline, sure, head, *rows = repr(found).splitlines()
    assert headline == found.answer.headline
    assert sure == f"{found.answer.rates}. {found.answer.sure}"
    assert head.split() == ["epsilon", "MCDP", "95%", "interval", "p-value"]
    assert [row.split()[:2] for row in rows] == [[f"{e:g}", "100.0%"] for e in (0, 0.01, 0.05, 0.1)]
    assert len(repr(found)) < 500


def test_groups_of_few_people_are_left_out_or_not_written() -> None:
    rng = np.random.default_rng(0)
    scores, groups = rng.random(45), ["a"] * 20 + ["b"] * 20 + ["few"] * 5
    options: dict[str, Any] = {"sensitive_features": groups, "n_resamples": 0}
    for write in (lp.Audit.to_json, lp.Audit.to_dict):
        with pytest.raises(ValueError, match=r"min_group_size=10.*'few'"):
            write(lp.audit(None, scores, **options))
    found = lp.audit(None, scores, min_group_size=10, **options)
    assert [str(left) for left in found.left_out] == ["few (fewer than 10)"]
    without = lp.audit(None, scores[:40], sensitive_features=groups[:40], n_resamples=0)
    assert found.findings == without.findings
    assert found.to_dict()["left_out"] == ({"group": "few", "fewer_than": 10},)
    with pytest.raises(ValueError, match=r"min_group_size=30 leaves 0 of 3 groups"):
        lp.audit(None, scores, min_group_size=30, **options)


def test_a_label_of_any_kind_counts_as_1(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores, groups, labels = rng.random(200).round(4), np.repeat(["a", "b"], 100), rng.integers(0, 2, 200)
    options: dict[str, Any] = {"criterion": "equal_opportunity", "n_resamples": 0}
    expected = lp.audit(labels, scores, sensitive_features=groups, **options)
    words = np.where(labels, "yes", "no")
    assert lp.audit(words, scores, sensitive_features=groups, pos_label="yes", **options) == expected
    path = tmp_path / "scores.csv"
    rows = [",".join(map(str, row)) for row in zip(scores, groups, words, strict=True)]
    path.write_text("\n".join(["p,g,y", *rows]))
    columns: dict[str, Any] = {"score": "p", "group": "g", "label": "y"}
    assert lp.Audit.read(path, **columns, pos_label="yes", **options).findings == expected.findings
    with pytest.raises(ValueError, match="control must be None with pos_label"):
        lp.Audit.read(path, **columns, control="y", pos_label="yes", **options)
