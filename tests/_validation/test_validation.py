"""Every check, and the message it gives; every kind of input that needs numpy alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import localparity as lp
from localparity import _validation as validation
from localparity._scale import representable_range

SCORES = [0.25, 0.5, 0.5, 1.0]
SEX = ["f", "m", "f", "m"]


def measure(y_score: Any = SCORES, sensitive_features: Any = SEX, **options: Any) -> float:
    return lp.mcdp(options.pop("y_true", None), y_score, sensitive_features=sensitive_features, **options)


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        np.array,
        lambda values: np.array(values, dtype=np.float32),
        lambda values: np.array(values)[:, None],
        lambda values: np.array(values, dtype=object),
    ],
)
def test_scores_of_any_kind(convert: Callable[[list[float]], Any]) -> None:
    assert measure(convert(SCORES)) == 0.5


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float16])
def test_scores_that_are_whole_numbers_or_truth_values(dtype: type) -> None:
    assert measure(np.array([0, 1, 0, 1], dtype=dtype)) == 1.0


@pytest.mark.parametrize(
    "groups",
    [
        [0, 1, 0, 1],
        [False, True, False, True],
        np.array([-100, 100, -100, 100], dtype=np.int8),
        np.array([7, 2**63 + 1, 7, 2**63 + 1], dtype=np.uint64),
        np.array([5, 10**12, 5, 10**12]),
        np.array([0.5, 1.5, 0.5, 1.5]),
        np.array(["f", "m", "f", "m"]),
        [0, "m", 0, "m"],
        {"sex": SEX},
        np.array(SEX)[:, None],
    ],
)
def test_groups_of_any_kind(groups: Any) -> None:
    assert measure(sensitive_features=groups) == 0.5


@pytest.mark.parametrize(
    "columns",
    [
        {"sex": ["f", "f", "m", "m"], "old": [True, False, True, True]},
        np.array([["f", "1"], ["f", "0"], ["m", "1"], ["m", "1"]]),
    ],
)
def test_several_columns_make_the_combinations_that_occur(columns: Any) -> None:
    found = validation.as_groups(columns, 4)
    assert len(found.names) == 3
    assert found.codes.tolist() == [1, 0, 2, 2]
    assert all(isinstance(name, tuple) for name in found.names)


def test_the_callers_arrays_stay_as_they_are() -> None:
    scores, groups = np.array([-0.0, 0.5, 0.25, 1.0]), np.array([0, 1, 0, 1])
    before = scores.copy()
    lp.mcdp(None, scores, sensitive_features=groups)
    lp.mcdp_profile(None, scores, sensitive_features=groups)
    assert scores.tobytes() == before.tobytes()
    assert scores.flags.writeable


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_score": [0.1, float("nan"), 0.3, 0.4]}, "y_score .*got nan at row 1"),
        ({"y_score": [0.1, 0.2, float("inf"), 0.4]}, "y_score .*got inf at row 2"),
        ({"y_score": [0.1, 1.2, 0.3, 0.4]}, r"y_score .*got 1.2 at row 1"),
        ({"y_score": [-0.1, 0.2, 0.3, 0.4]}, r"y_score .*got -0.1 at row 0"),
        ({"y_score": ["a", "b", "c", "d"]}, "y_score must be numbers"),
        ({"y_score": [[0.1], [0.1, 0.2]]}, "y_score cannot be read as an array"),
        (
            {"y_score": np.zeros((4, 2))},
            "y_score .*two columns",
        ),
        ({"y_score": np.zeros((4, 3))}, r"y_score .*got \(4, 3\)"),
        ({"y_score": np.ones(4) + 1j}, "y_score .*got complex128"),
        (
            {"y_score": np.ma.array(SCORES, mask=[0, 0, 0, 1])},
            "y_score .*row 3",
        ),
        (
            {"y_score": np.zeros((4, 2, 2))},
            r"y_score .*got \(4, 2, 2\)$",
        ),
        ({"y_score": []}, "y_score is empty"),
        ({"y_score": 0.5}, "y_score .*got a float"),
        ({"sensitive_features": object()}, "sensitive_features .*got a object"),
        ({"sensitive_features": ["f", "m", "f"]}, "sensitive_features has 3 rows, y_score has 4"),
        ({"sensitive_features": ["f"] * 4}, "sensitive_features .*got 'f' only"),
        ({"sensitive_features": None}, "sensitive_features .*got None"),
        ({"sensitive_features": ["f", None, "m", "m"]}, "sensitive_features has no value at row 1"),
        ({"sensitive_features": [0.5, 1.0, np.nan, 1.0]}, "sensitive_features has no value at row 2"),
        ({"sensitive_features": [float("nan"), "f", "m", "m"]}, "sensitive_features has no value at row 0"),
        ({"sensitive_features": np.array(["2020", "NaT", "2021", "2021"], "M8[D]")}, "has no value at row 1"),
        (
            {"sensitive_features": np.array([{}, {}, {}, {}])},
            r"sensitive_features must be hashable: .*dict",
        ),
        ({"sensitive_features": {}}, "sensitive_features has no columns"),
        (
            {"sensitive_features": {"sex": SEX, "age": [1, 2]}},
            r"sensitive_features\['age'\] has 2 rows",
        ),
        ({"sample_weight": [1, 1, -2, 1]}, "sample_weight .*got -2 at row 2"),
        ({"sample_weight": [1, 1e-20, 0, 1]}, "sample_weight .*got 1e-20 at row 1"),
        ({"sample_weight": [1, 1, 0, 1e20]}, r"sample_weight .*got 1e\+20 at row 3"),
        ({"sample_weight": [1, 1, np.nan, 1]}, "sample_weight .*got nan at row 2"),
        ({"sample_weight": [1, 1, 1]}, "sample_weight has 3 rows, y_score has 4"),
        ({"sample_weight": [0, 1, 0, 1]}, "sample_weight .*group 'f', got 0"),
        ({"sample_weight": [0, 0, 0, 0]}, "sample_weight .*group 'f', got 0"),
        ({"score_range": (1, 0)}, r"score_range .*got \(1.0, 0.0\)"),
        ({"score_range": (0, float("inf"))}, r"score_range .*got \(0.0, inf\)"),
        ({"score_range": 1}, r"score_range .*got 1"),
        ({"score_range": "ab"}, r"score_range .*got 'ab'"),
        ({"criterion": "fair"}, "criterion .*got 'fair'"),
        ({"compare": "all"}, "compare .*got 'all'"),
        (
            {"criterion": "equal_opportunity"},
            "criterion='equal_opportunity' needs y_true, got None",
        ),
        (
            {"criterion": "equalized_odds", "y_true": [0, 1, 2, 1]},
            "y_true .*got 2 at row 2",
        ),
        ({"criterion": "equalized_odds", "y_true": [0, 1, None, 1]}, "y_true .*got nan at row 2"),
        (
            {"criterion": "equalized_odds", "y_true": ["0", "1", "no", "1"]},
            "y_true .*got 'no'",
        ),
        ({"criterion": "equalized_odds", "y_true": [0, 1]}, "y_true has 2 rows, y_score has 4"),
        ({"criterion": "equal_opportunity", "y_true": [0, 1, 0, 1]}, "group 'f' has no rows with y_true = 1"),
        ({"min_group_size": 3}, "group 'f' has 2 rows, min_group_size is 3"),
        ({"min_group_size": 0}, "min_group_size .*got 0"),
        ({"min_group_size": 1.5}, "min_group_size .*got 1.5"),
    ],
)
def test_wrong_input_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure(**options)


def test_groups_without_an_order_are_sorted_by_their_text() -> None:
    assert validation.sort_groups([2, "a", 1]) == (1, 2, "a")


def test_labels_may_be_truth_values_and_floats() -> None:
    for labels in ([True, False], [1.0, 0.0], np.array([1, 0])):
        assert validation.as_labels(labels, 2).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("value", "message"),
    [("high", "bound .*got 'high'"), (float("nan"), "bound .*got nan")],
)
def test_a_number_is_a_number(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validation.as_number(value, "bound")


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1])
def test_a_level_lies_between_0_and_1(level: float) -> None:
    with pytest.raises(ValueError, match=f"confidence .*got {level:g}"):
        validation.as_probability(level)


def test_a_name_that_is_not_there_gets_the_nearest_ones() -> None:
    known = ["score", "Sex", "income"]
    assert "did you mean 'Sex'?" in str(validation.unknown_name("column", "sexx", known))
    assert "there is 'score', 'Sex', 'income'" in str(validation.unknown_name("column", "zzz", known))


def test_a_column_of_a_file_counts_its_rows_from_one() -> None:
    name = validation.FileColumn("p")
    with pytest.raises(ValueError, match=r"column 'p' .*got nan at data row 2"):
        validation.as_numbers([0.1, float("nan")], name)
    with pytest.raises(ValueError, match="column 'sex' has no value at data row 1"):
        validation.as_groups({"sex": [None, "f"], "age": [1, 2]}, 2, name)


def test_the_resolution_follows_the_dtype_and_the_range() -> None:
    double, single = np.finfo(np.float64).eps, np.finfo(np.float32).eps
    for kind in (list, np.array, lambda values: np.array(values, dtype=np.int64)):
        assert validation.as_scores(kind([0, 1]), (0.0, 1.0)).resolution == 4 * double
    found = validation.as_scores(np.array([0, 1], np.float32), (0.0, 1.0))
    assert found.values.dtype == np.float32
    assert found.resolution == 4 * single
    assert validation.as_scores([400], (300.0, 850.0)).resolution == 4 * double * 850 / 550


def test_what_is_not_equal_stays_apart() -> None:
    found = validation.as_groups([1, "1", 1, "1"], 4)
    assert found.codes[0] == found.codes[2] != found.codes[1]
    days = np.array(["2020-01-01", "2021-01-01"], dtype="M8[ns]")
    assert [day.year for day in validation.as_groups(days, 2).names] == [2020, 2021]  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", ["x", -1])
def test_a_seed_is_a_seed(seed: object) -> None:
    with pytest.raises(ValueError, match=r"random_state .*got "):
        validation.as_rng(seed)


def test_an_extended_float_is_held_to_what_is_kept_of_it() -> None:
    scores = np.array([0.7, 0.8], dtype=np.longdouble)
    assert lp.mcdp(None, scores, sensitive_features=["a", "b"], epsilon=0.05) == 0.0


@pytest.mark.parametrize("strength", [-0.1, np.inf])
def test_a_strength_is_a_weight(strength: float) -> None:
    assert validation.as_strength(0) == 0.0
    message = f"strength .*got {strength:g}"
    with pytest.raises(ValueError, match=message):
        validation.as_strength(strength)


def test_fraction() -> None:
    assert validation.as_fraction(1, "max_mcdp") == 1.0
    for value in (-0.1, 1.1):
        with pytest.raises(ValueError, match=rf"max_mcdp .*got {value:g}"):
            validation.as_fraction(value, "max_mcdp")


def test_temperature() -> None:
    assert validation.as_temperature(10) == 10.0
    assert validation.as_temperature(100, at_most=100.0) == 100.0
    with pytest.raises(ValueError, match=r"temperature .*got 0"):
        validation.as_temperature(0.0)
    with pytest.raises(ValueError, match=r"temperature .*got 101"):
        validation.as_temperature(101, at_most=100.0)
    with pytest.raises(ValueError, match=r"temperature .*got inf"):
        validation.as_temperature(float("inf"))


def test_sharpness() -> None:
    assert validation.as_sharpness(1) == 1.0
    with pytest.raises(ValueError, match=r"sharpness .*got 0\.5"):
        validation.as_sharpness(0.5)


def test_search_and_windows() -> None:
    assert validation.as_search("soft", ("exact", "soft"), 0.0) == "soft"
    assert validation.as_search("exact", ("exact", "soft"), 0.1) == "exact"
    with pytest.raises(ValueError, match=r"search='soft' .*got 0\.1"):
        validation.as_search("soft", ("exact", "soft"), 0.1)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), [0.1, -7]])
def test_an_epsilon_is_a_finite_number_from_0_on(value: Any) -> None:
    worst = value[-1] if isinstance(value, list) else value
    with pytest.raises(ValueError, match=rf"epsilons must be >= 0 and finite, got {float(worst)}"):
        validation.as_epsilons(value, "epsilons")
    assert validation.as_epsilons([0.0, 0.6, 3]).tolist() == [0.0, 0.6, 3.0]


def _wide_measures() -> dict[str, Any]:
    """What each door says of two groups at the two ends of the range: their gap is 1 on all of [0, 1)."""
    scores, people = [0.0, 0.0, 1.0, 1.0], {"sensitive_features": ["a", "a", "b", "b"]}
    rows = lp.Predictions.from_arrays(None, scores, **people)
    curve = lp.gap_curve(rows)
    repair = lp.models.ScoreRepair(max_mcdp=0.1, epsilon=0.6)
    return {
        "mcdp": lambda: lp.mcdp(None, scores, epsilon=0.6, **people),
        "approximate": lambda: lp.mcdp_approximate(None, scores, epsilon=0.6, **people),
        "profile": lambda: curve.profile()(0.6),
        "worst window": lambda: curve.profile().worst_window(0.6).gap,
        "interval": lambda: lp.mcdp_interval(None, scores, epsilon=0.6, **people).estimate,
        "permutation test": lambda: lp.permutation_test(None, scores, epsilon=0.6, **people).statistic,
        "audit": lambda: lp.audit(None, scores, epsilons=[0.0, 0.6], **people).findings[1].mcdp,
        "unknown groups": lambda: lp.unknown_groups(rows, epsilon=0.6).bounds[0].high,
        "repair": lambda: repair.fit(scores, **people).unrepaired_mcdp_,
    }


@pytest.mark.parametrize("measure", _wide_measures().values(), ids=_wide_measures())
def test_every_door_takes_a_wide_epsilon(measure: Any) -> None:
    assert measure() == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: lp.noise_floor([5, 5], 0.6),
        lambda: lp.mcdp_scorer(epsilon=0.6),
        lambda: lp.abcc_bound(0.1, 0.6, 1.0),
        lambda: lp.datasets.census_mcdp(0.6),
        lambda: lp.models.MCDPObjective([0, 1], epsilon=0.6, sensitive_features=["a", "b"]),
    ],
)
def test_so_does_what_measures_other_things(make: Any) -> None:
    assert make() is not None


def test_so_do_a_loss_and_a_metric() -> None:
    torch = pytest.importorskip("torch")
    assert lp.monitoring.LocalDisparity(epsilon=0.6) is not None
    loss = lp.losses.MCDPLoss(temperature=1000.0, epsilon=0.6)
    assert loss(torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor([0, 0, 1, 1])).item() <= 1.0


def test_a_figure_and_a_page_show_where_wide_profiles_end() -> None:
    curve = lp.gap_curve(lp.Predictions.from_arrays(None, [0.0, 1.0], sensitive_features=["a", "b"]))
    assert curve.profile()(np.array([0.6, 1.0])).tolist() == [1.0, 0.0]


def test_the_ends_of_a_range_that_a_dtype_cannot_hold_are_its_own() -> None:
    most = float(np.finfo(np.float32).max)
    assert representable_range((-1e308, 0.1), np.dtype(np.float32)) == (
        -most,
        float(np.float32(0.1)),
    )
    scores = np.array([0.0, most], np.float32)
    assert validation.as_scores(scores, (-1e308, 1e308)).values.tolist() == [0.0, most]


@pytest.mark.parametrize("kind", [str, object, np.int64])
def test_a_column_that_names_people_is_no_group(kind: Any) -> None:
    names = np.arange(120_000)
    groups = names if kind is np.int64 else np.array([f"p{name}" for name in names], dtype=kind)
    with pytest.raises(
        ValueError, match="sensitive_features has more than 10,000 groups; is it an identifier"
    ):
        validation.as_groups(groups, names.size)
    # As clusters they may be as many as there are rows.
    assert len(validation.as_groups(groups[:20_000], 20_000, at_most=20_000).names) == 20_000
    with pytest.raises(ValueError, match="sensitive_features has more than 10,000 groups"):
        validation.as_groups(np.tile(groups, 9), 9 * names.size)
    few = validation.as_groups(np.where(names % 2, groups[0], groups[1]), names.size)
    assert len(few.names) == 2


def test_a_number_that_no_library_counts_to_is_refused() -> None:
    with pytest.raises(ValueError, match=r"n_resamples must be <= 1000000, got 9223372036854775808"):
        lp.permutation_test(None, [0.1, 0.2], sensitive_features=["a", "b"], n_resamples=2**63)


def test_what_is_a_missing_value() -> None:
    class NoOrder:
        """As pandas' NA, which is neither equal to itself nor not."""

        def __ne__(self, other: object) -> bool:
            raise TypeError("it has no truth value")

    assert all(map(validation.is_missing, (None, float("nan"), np.datetime64("NaT"), NoOrder())))
    assert not any(map(validation.is_missing, (0, "", "nan", False)))


def test_an_epsilon_of_a_bound_is_one_number_below_one() -> None:
    assert validation.as_bounded_epsilon(0.25) == 0.25
    with pytest.raises(ValueError, match="epsilon must be one number, got an array of shape"):
        validation.as_bounded_epsilon([0.1, 0.2])
    with pytest.raises(ValueError, match="epsilon must be < 1 with max_mcdp, got 1: "):
        validation.as_bounded_epsilon(1.0)


@pytest.mark.parametrize(
    ("y_true", "pos_label", "labels"),
    [
        (["yes", "no", "no", "yes"], "yes", [1, 0, 0, 1]),
        (["no"] * 4, "no", [1] * 4),
        (["no"] * 4, "yes", [0] * 4),
    ],
)
def test_the_label_that_counts_as_one(y_true: list[str], pos_label: str, labels: list[int]) -> None:
    people = lp.Predictions.from_arrays(y_true, SCORES, sensitive_features=SEX, pos_label=pos_label)
    assert people.labels is not None
    assert people.labels.tolist() == labels


@pytest.mark.parametrize(
    ("y_true", "pos_label", "message"),
    [
        (["yes", "maybe", "yes", "yes"], "no", "pos_label must be one of 'maybe', 'yes', got 'no'"),
        (["a", "b", "c", "d"], "a", r"two labels with pos_label='a', got 'a', 'b', 'c', \.\.\."),
    ],
)
def test_labels_of_which_none_counts_as_one_are_named(
    y_true: list[str], pos_label: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        lp.Predictions.from_arrays(y_true, SCORES, sensitive_features=SEX, pos_label=pos_label)
