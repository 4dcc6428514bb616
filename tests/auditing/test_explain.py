"""What carries a gap, against sums over cells written out, and in populations whose truth is known."""

from __future__ import annotations

import json
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import localparity as lp
from localparity.auditing import _explain
from localparity.cli._app import app
from localparity.models import _folder


def people(rows: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """A text and a number that the group and the score depend on, and a number that neither depends on."""
    rng = np.random.default_rng(seed)
    number = rng.standard_normal(rows)
    job = rng.choice(["nurse", "clerk", "driver"], rows, p=[0.3, 0.4, 0.3])
    group = rng.random(rows) < 1 / (1 + np.exp(-number - 1.5 * (job == "nurse")))
    score = 1 / (1 + np.exp(-number - (job == "nurse") - 0.5 * rng.standard_normal(rows)))
    table = pd.DataFrame({"job": job, "number": number, "noise": rng.standard_normal(rows)})
    return table, np.where(group, "b", "a"), score.round(3)


def standardised_mcdp(scores: np.ndarray, groups: np.ndarray, cells: np.ndarray) -> float:
    """The largest gap between the groups' mean distributions over cells: every cutoff, cell and group in turn."""
    largest = 0.0
    for cutoff in np.unique(scores):
        shares = dict.fromkeys(np.unique(groups), 0.0)
        for cell in np.unique(cells):
            for group in shares:
                here = (cells == cell) & (groups == group)
                shares[group] += np.mean(cells == cell) * np.mean(scores[here] <= cutoff)
        largest = max(largest, max(shares.values()) - min(shares.values()))
    return largest


@pytest.mark.parametrize("seed", range(3))
def test_what_remains_is_the_sum_over_categories(seed: int) -> None:
    table, group, score = people(seed=seed)
    why = lp.explain(score, table[["job"]], sensitive_features=group, random_state=0)
    (gap,) = why.features
    expected = standardised_mcdp(score, group, table["job"].to_numpy())
    total = lp.mcdp(None, score, sensitive_features=group)
    assert gap.remaining.estimate == pytest.approx(expected, abs=1e-12)
    assert gap.explained.estimate == pytest.approx(total - expected, abs=1e-12)
    assert gap.remaining.low <= expected <= gap.remaining.high
    assert why.total.estimate == total


def test_what_remains_in_one_column_is_what_strata_give() -> None:
    table, group, score = people()
    (gap,) = lp.explain(score, table[["job"]], sensitive_features=group, random_state=0).features
    rows = lp.Predictions.from_arrays(None, score, sensitive_features=group)
    strata = lp.within_strata(rows, table["job"], n_resamples=0)
    assert gap.remaining.estimate == pytest.approx(strata.standardised[0], abs=1e-12)


def test_the_order_and_the_sets() -> None:
    table, group, score = people(3000)
    why = lp.explain(score, table, sensitive_features=group, random_state=0)
    assert [gap.name for gap in why.features][-1] == "noise"
    nothing = why.features[-1].explained
    assert nothing.low <= 0.0 <= nothing.high
    assert [len(gap.features) for gap in why.sets] == [2, 3]
    assert set(why.sets[0].features) == {"job", "number"}
    assert why.sets[0].remaining.estimate < min(gap.remaining.estimate for gap in why.features)
    assert sum(why.shares.values()) == pytest.approx(why.sets[1].explained.estimate)
    assert "Among people alike in" in why.sentences[1]
    assert json.loads(json.dumps(why.to_dict()))["rows"] == 3000


def test_a_seed_gives_the_same_numbers() -> None:
    table, group, score = people()
    first, second = (lp.explain(score, table, sensitive_features=group, random_state=7) for _ in range(2))
    assert first == second


def test_groups_that_do_not_overlap_have_no_number() -> None:
    table, group, score = people()
    role = np.where(group == "a", "wife", "husband")
    role[::3] = "child"
    why = lp.explain(score, table.assign(role=role), sensitive_features=group, random_state=0)
    gap = next(gap for gap in why.features if gap.name == "role")
    assert gap.remaining is None
    assert gap.explained is None
    assert "do not overlap" in str(gap.reason)
    lost = [np.mean(role[group == name] != "child") for name in "ab"]
    assert gap.without_counterpart == pytest.approx(max(lost))
    assert gap.group_auc.estimate > 0.8
    assert all("role" not in gap.features for gap in why.sets)


def test_few_people_without_a_counterpart_are_left_out() -> None:
    table, group, score = people(2000)
    job = table["job"].where(~((group == "a") & (np.arange(2000) % 20 == 0)), "monk")
    (gap,) = lp.explain(score, job.to_frame(), sensitive_features=group, random_state=0).features
    alike = (job != "monk").to_numpy()
    assert gap.without_counterpart == pytest.approx(np.mean(~alike[group == "a"]))
    assert gap.remaining.estimate == pytest.approx(
        standardised_mcdp(score[alike], group[alike], job[alike].to_numpy()), abs=1e-12
    )
    assert "left out" in gap.sentence


def of_rare_jobs(share: float) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """People of three common jobs, and of jobs of two people each, of whom one group has the better paid."""
    table, group, score = people(2000)
    rare = np.random.default_rng(1).random(2000) < share
    paid = score > np.median(score)
    group = np.where(rare, np.where(paid, "b", "a"), group)
    place = np.arange(2000) // 2 % 500
    own = np.array([f"job {number} {is_paid}" for number, is_paid in zip(place, paid, strict=True)])
    return table.assign(job=np.where(rare, own, table["job"])), group, score


def test_people_of_rare_categories_have_no_counterpart() -> None:
    table, group, score = of_rare_jobs(0.05)
    common = table["job"].isin(["nurse", "clerk", "driver"]).to_numpy()
    why = lp.explain(score, table, sensitive_features=group, random_state=0)
    gap = next(gap for gap in why.features if gap.name == "job")
    assert gap.without_counterpart == pytest.approx(max(np.mean(~common[group == name]) for name in "ab"))
    assert gap.remaining.estimate == pytest.approx(
        standardised_mcdp(score[common], group[common], table["job"].to_numpy()[common]), abs=1e-12
    )
    for both in why.sets:  # people who are alike in several features are alike in each
        assert both.without_counterpart >= gap.without_counterpart - 1e-12
    table, group, score = of_rare_jobs(0.3)
    (gap,) = lp.explain(score, table[["job"]], sensitive_features=group, random_state=0).features
    assert gap.remaining is None
    assert "do not overlap" in str(gap.reason)


def test_many_categories_of_enough_people_are_cells_of_their_own() -> None:
    rng = np.random.default_rng(0)
    job = rng.integers(0, 260, 12_000)
    better = job % 2 == 0
    group = np.where(rng.random(12_000) < np.where(better, 0.7, 0.3), "b", "a")
    score = (0.4 * better + 0.6 * rng.random(12_000)).round(2)
    jobs = pd.DataFrame({"job": [f"job {number}" for number in job]})
    (gap,) = lp.explain(score, jobs, sensitive_features=group, random_state=0).features
    expected = lp.within_strata(
        lp.Predictions.from_arrays(None, score, sensitive_features=group), jobs["job"], n_resamples=0
    )
    assert gap.without_counterpart == 0.0
    assert gap.remaining.estimate == pytest.approx(expected.standardised[0], abs=1e-12)


def test_columns_that_cannot_explain_are_named() -> None:
    table, group, score = people()
    label = (score > 0.5).astype(int)
    wrong = table.assign(one=1, id=range(600), key=[f"k{i}" for i in range(600)], p=score, y=label, who=group)
    wrong["noisy"] = score + 0.002 * np.random.default_rng(0).standard_normal(600)
    wrong.loc[::50, "noisy"] = np.nan
    wrong = wrong.assign(points=100 * score, risk=1 - score, band=np.digitize(score, [0.3, 0.7]))
    wrong["blank"] = np.nan
    wrong["some_id"] = np.where(np.arange(600) % 10 == 0, np.nan, np.arange(600))
    why = lp.explain(score, wrong, sensitive_features=group, y_true=label, random_state=0)
    assert why.left_out == {
        "one": "is constant",
        "blank": "has no values",
        "id": "looks like an identifier",
        "key": "looks like an identifier",
        "p": "is the score",
        "y": "is the label",
        "who": "is the group",
        "noisy": "is all but the score",
        "points": "follows from the score",
        "risk": "follows from the score",
        "band": "follows from the score",
        "some_id": "looks like an identifier",
    }
    with pytest.raises(ValueError, match="column 'one' is constant"):
        lp.explain(score, wrong[["one"]], sensitive_features=group)
    with pytest.raises(ValueError, match=r"allow must .* column 'one' is constant"):
        lp.explain(score, wrong[["one", "job"]], sensitive_features=group, allow=["job", "one"])


def test_a_feature_that_some_people_of_one_score_differ_in_does_not_follow_from_it() -> None:
    table, group, score = people()
    coarse = score.round(1)
    table["half"] = np.where(coarse == 0.5, np.arange(600) > 300, coarse > 0.5)
    sorted_by_it = np.argsort(table["half"].to_numpy(), kind="stable")
    why = lp.explain(coarse[sorted_by_it], table.iloc[sorted_by_it], sensitive_features=group[sorted_by_it])
    assert why.left_out == {}
    lp.explain(np.random.default_rng(0).permutation(600) / 600, table, sensitive_features=group)  # no ties


def test_texts_that_stand_for_ranges_of_scores_are_named() -> None:
    table, group, score = people()
    table["risk"] = np.array(["some", "low", "high"])[np.digitize(score, [0.3, 0.7])]
    why = lp.explain(score, table, sensitive_features=group, random_state=0)
    assert why.left_out == {"risk": "follows from the score"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitive_features": ["a"] * 600}, "at least two groups"),
        ({"min_group_size": 590}, "at least two groups of 590 people, got 0"),
        ({"criterion": "equalized_odds"}, "people of one label"),
        ({"criterion": "equal_opportunity"}, "y_true"),
        ({"allow": ["age"]}, "allow must be columns of X, got 'age'"),
        ({"confidence": 1.5}, "confidence"),
        ({"X": pd.DataFrame(index=range(600))}, "X must have at least one column"),
        ({"model": 3}, "model must be a function or have predict_proba, got int"),
        ({"y_score": [0.5] * 3, "sensitive_features": ["a", "b", "a"]}, "X has 600 rows, y_score has 3"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, object], message: str) -> None:
    table, group, score = people()
    arguments = {"y_score": score, "X": table, "sensitive_features": group} | change
    with pytest.raises(ValueError, match=message):
        lp.explain(**arguments)


def test_missing_values_are_a_cell_of_their_own() -> None:
    table, group, score = people()
    table.loc[::4, "job"] = None
    (gap,) = lp.explain(score, table[["job"]], sensitive_features=group, random_state=0).features
    cells = table["job"].fillna("none").to_numpy()
    assert gap.remaining.estimate == pytest.approx(standardised_mcdp(score, group, cells), abs=1e-12)
    table.loc[::5, "number"] = np.nan
    assert lp.explain(score, table, sensitive_features=group, random_state=0).sets[0].remaining is not None


def test_labels_choose_who_is_compared() -> None:
    table, group, score = people(1200)
    label = (np.random.default_rng(1).random(1200) < 0.5).astype(int)
    why = lp.explain(
        score,
        table[["job"]],
        sensitive_features=group,
        y_true=label,
        criterion="equal_opportunity",
        random_state=0,
    )
    own = label == 1
    expected = standardised_mcdp(score[own], group[own], table["job"].to_numpy()[own])
    assert why.rows == own.sum()
    assert why.features[0].remaining.estimate == pytest.approx(expected, abs=1e-12)


def test_whole_weights_count_as_copies_and_clusters_undo_them() -> None:
    table, group, score = people()
    once = lp.explain(score, table[["job"]], sensitive_features=group, random_state=0).features[0]
    weighted = lp.explain(
        score, table[["job"]], sensitive_features=group, sample_weight=np.full(600, 3.0), random_state=0
    ).features[0]
    copies = lp.explain(
        np.tile(score, 3),
        pd.concat([table[["job"]]] * 3),
        sensitive_features=np.tile(group, 3),
        cluster=np.tile(np.arange(600), 3),
        random_state=0,
    ).features[0]
    for other in (weighted, copies):
        assert other.remaining.estimate == pytest.approx(once.remaining.estimate, abs=1e-12)
        assert other.remaining.high - other.remaining.low == pytest.approx(
            once.remaining.high - once.remaining.low, rel=0.1
        )


def test_three_groups_have_the_gap_of_the_worst_pair() -> None:
    table, _, score = people(900)
    group = np.random.default_rng(0).choice(["a", "b", "c"], 900)
    score = np.where(group == "c", score**2, score)
    (gap,) = lp.explain(score, table[["job"]], sensitive_features=group, random_state=0).features
    expected = standardised_mcdp(score, group, table["job"].to_numpy())
    assert gap.remaining.estimate == pytest.approx(expected, abs=1e-12)


def test_small_groups_are_left_out_and_the_pair_is_named() -> None:
    table, _, score = people(900)
    group = np.repeat(["a", "b", "c", "tiny"], [300, 300, 280, 20])
    score = np.where(group == "c", score**2, score)
    why = lp.explain(score, table[["job"]], sensitive_features=group, random_state=0)
    large = group != "tiny"
    gaps = {
        pair: lp.mcdp(None, score[mine], sensitive_features=group[mine])
        for pair in combinations("abc", 2)
        for mine in [np.isin(group, pair)]
    }
    assert why.total.estimate == lp.mcdp(None, score[large], sensitive_features=group[large])
    assert set(why.pair) == set(max(gaps, key=gaps.get))
    assert why.groups_left_out == ("tiny",)
    first, _, last = why.sentences
    assert f"The largest gap is {100 * why.total.estimate:.0f} points" in first
    assert first.endswith(f", between {why.pair[0]} and {why.pair[1]}.")
    assert last == "Left out (fewer than 50 people): tiny."
    alone = lp.explain(score[large], table[["job"]][large], sensitive_features=group[large], random_state=0)
    assert (alone.total, alone.groups_left_out) == (why.total, ())


def test_of_many_people_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_explain, "MOST_ROWS", 400)
    table, group, score = people()
    why = lp.explain(score, table, sensitive_features=group, random_state=0)
    assert (why.rows, why.sampled_from) == (400, 600)
    assert "A random 400 of 600 people were compared." in why.sentences


@pytest.mark.parametrize("as_array", [False, True])
def test_what_a_model_uses(as_array: bool) -> None:
    table, group, _ = people(1500)
    X = table[["number", "noise"]].to_numpy() if as_array else table[["number", "noise"]]

    def model(X: object) -> np.ndarray:
        return 1 / (1 + np.exp(-np.asarray(X)[:, 0]))

    why = lp.explain(model(X), X, sensitive_features=group, model=model, random_state=0)
    number, noise = ("x0", "x1") if as_array else ("number", "noise")
    assert why.uses[noise] == pytest.approx(why.total.estimate)
    assert why.uses[number] < 0.5 * why.total.estimate


def test_allowed_features_come_first() -> None:
    table, group, score = people(2000)
    why = lp.explain(score, table, sensitive_features=group, allow=["job", "number"], random_state=0)
    assert why.allowed.features == ("job", "number")
    assert why.sentences[1] == why.allowed.sentence


def test_the_command_says_what_the_library_does(tmp_path: Path) -> None:
    table, group, score = people(1500)
    path = tmp_path / "scores.csv"
    table.assign(p=score, sex=group, id=range(1500)).to_csv(path, index=False)
    arguments = ["explain", str(path), "--score", "p", "--group", "sex"]
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert "Not used: id (looks like an identifier)" in shown.output
    done = CliRunner().invoke(app, [*arguments, "--features", "job,number", "--json"])
    why = lp.explain(score, table[["job", "number"]], sensitive_features=group, random_state=0)
    assert (
        json.loads(done.output)["features"][0]["remaining"]["estimate"] == why.features[0].remaining.estimate
    )
    both = CliRunner().invoke(app, [*arguments, "--model", "model/"])
    assert both.exit_code == 2
    assert "give --score or --model" in both.output


def shapley_by_orders(worth: dict[frozenset[str], float], names: tuple[str, ...]) -> dict[str, float]:
    """What each name adds, averaged over every order in which names can come."""
    shares = dict.fromkeys(names, 0.0)
    orders = list(permutations(names))
    for order in orders:
        for place, name in enumerate(order):
            added = worth[frozenset(order[: place + 1])] - worth[frozenset(order[:place])]
            shares[name] += added / len(orders)
    return shares


def test_shares_are_the_mean_over_every_order() -> None:
    table, group, score = people(1500)
    why = lp.explain(score, table, sensitive_features=group, random_state=0)
    names = why.sets[1].features
    worth = {frozenset[str](): 0.0}
    for size in (1, 2, 3):
        for part in combinations(names, size):
            allowed = lp.explain(score, table, sensitive_features=group, allow=part, random_state=0).allowed
            worth[frozenset(part)] = allowed.explained.estimate
    assert why.shares == pytest.approx(shapley_by_orders(worth, names), abs=1e-12)


def test_the_curve_before_and_after() -> None:
    table, group, score = people(1500)
    why = lp.explain(score, table[["job"]], sensitive_features=group, random_state=0)
    curve = why.curve
    assert curve.groups == ("a", "b")
    for cutoff, before, after in zip(curve.cutoffs, curve.before, curve.after, strict=True):
        low = score <= cutoff
        shares = [np.mean(low[group == name]) for name in "ab"]
        alike = [
            sum(
                np.mean(table["job"] == job) * np.mean(low[(group == name) & (table["job"] == job)])
                for job in table["job"].unique()
            )
            for name in "ab"
        ]
        assert before == pytest.approx(shares[0] - shares[1], abs=1e-12)
        assert after == pytest.approx(alike[0] - alike[1], abs=1e-12)
    for name in "ab":
        steps = np.diff([np.sum(score[group == name] <= cutoff) for cutoff in (-1.0, *curve.cutoffs)])
        assert steps.min() >= 10


def test_a_balance_counted_twice_has_the_error_of_one() -> None:
    table, group, score = people(400)
    predictions = lp.Predictions.from_arrays(None, score, sensitive_features=group)
    rng = np.random.default_rng(0)
    those = _explain._People.of(predictions, np.arange(400), rng)
    cells = np.unique(table["job"], return_inverse=True)[1]
    balance = _explain._Balance(cells, np.ones(400))
    (once, one), (twice, two) = those.gaps([balance]), those.gaps([balance, balance])
    np.testing.assert_allclose(once, twice, atol=1e-15)
    np.testing.assert_allclose(one.T @ one, two.T @ two, atol=1e-18)
    np.testing.assert_allclose(once, those.weighted_gaps(those.mean_weights([balance])), atol=1e-15)


def test_models_of_the_two_halves_saw_different_people() -> None:
    table, group, score = people(500)
    predictions = lp.Predictions.from_arrays(None, score, sensitive_features=group)
    rng = np.random.default_rng(0)
    columns = _explain._columns_of(table, 500, ())
    those = _explain._People.of(predictions, np.arange(500), rng)
    search = _explain._Search(those, columns, np.arange(500), 0.95, rng)
    target, here = those.ranks.copy(), those.folds == 0
    for half, learned_from in enumerate(((1, 2), (3, 4))):
        other = np.where(np.isin(those.folds, learned_from), target, rng.permutation(target))
        first, second = (search._predicted(["number", "noise"], y)[:, half, here] for y in (target, other))
        np.testing.assert_array_equal(first, second)


def test_a_small_group_without_counterparts_does_not_overlap() -> None:
    table, _, score = people(2000)
    group = np.where(np.arange(2000) % 20 == 0, "few", "many")
    job = table["job"].where((group != "few") | (np.arange(2000) % 40 > 0), "monk")
    (gap,) = lp.explain(score, job.to_frame(), sensitive_features=group, random_state=0).features
    assert gap.without_counterpart == pytest.approx(0.5)
    assert "50% of a group has no counterpart" in str(gap.reason)


def test_weights_that_depend_on_the_group_leave_what_remains_as_it_is() -> None:
    table, group, score = people(6000, seed=3)
    names = table[["job", "number"]]
    kept = (group == "a") | (np.random.default_rng(0).random(6000) < 0.4)
    allow = ["job", "number"]
    whole = lp.explain(score, names, sensitive_features=group, allow=allow, random_state=0).allowed
    part = lp.explain(
        score[kept],
        names[kept],
        sensitive_features=group[kept],
        sample_weight=np.where(group == "a", 1.0, 2.5)[kept],
        allow=allow,
        random_state=0,
    ).allowed
    assert part.remaining.estimate == pytest.approx(whole.remaining.estimate, abs=0.02)


def test_few_clusters_are_refused() -> None:
    table, group, score = people()
    with pytest.raises(ValueError, match="cluster must have at least 20 values, got 6"):
        lp.explain(score, table, sensitive_features=group, cluster=np.arange(600) % 6)


WRONG = {
    "a constant": ({"one": 1}, "one (is constant)"),
    "an id": ({"id": range(600)}, "id (looks like an identifier)"),
    "the score": ({"copy": None}, "copy (is the score)"),
    "the label": ({"outcome": "y"}, "outcome (is the label)"),
    "the group": ({"gender": "sex"}, "gender (is the group)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_command_names_columns_that_cannot_explain(case: str, tmp_path: Path) -> None:
    table, group, score = people()
    columns, message = WRONG[case]
    frame = table[["job"]].assign(p=score, sex=group, y=(score > 0.5).astype(int))
    ((name, value),) = columns.items()
    copies = {"the score": "p", "the label": "y", "the group": "sex"}
    frame[name] = frame[copies[case]] if case in copies else value
    frame.to_csv(tmp_path / "people.csv", index=False)
    words = ["explain", str(tmp_path / "people.csv"), "--score", "p", "--group", "sex", "--label", "y"]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert f"Not used: {message}" in done.output
    alone = CliRunner().invoke(app, [*words, "--features", name])
    assert alone.exit_code == 2
    assert f"--features must have a feature that can explain a gap; column {name!r}" in alone.output


def test_the_command_names_a_person_without_a_group_and_what_may_not_explain(tmp_path: Path) -> None:
    table, group, score = people()
    words = ["explain", str(tmp_path / "people.csv"), "--score", "p", "--group", "sex"]
    frame = table.assign(p=score, sex=group, one=1)
    frame.to_csv(tmp_path / "people.csv", index=False)
    for allowed, message in {"one": "column 'one' is constant", "sex": "columns of --features"}.items():
        done = CliRunner().invoke(app, [*words, "--allow", allowed])
        assert done.exit_code == 2
        assert "--allow must be" in done.output
        assert message in done.output
    frame.loc[4, "sex"] = None
    frame.to_csv(tmp_path / "people.csv", index=False)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "column 'sex' has no value at data row 5" in done.output


def test_the_command_needs_a_feature(tmp_path: Path) -> None:
    _, group, score = people()
    pd.DataFrame({"p": score, "sex": group}).to_csv(tmp_path / "people.csv", index=False)
    done = CliRunner().invoke(
        app, ["explain", str(tmp_path / "people.csv"), "--score", "p", "--group", "sex"]
    )
    assert done.exit_code == 2
    assert "no column left for a feature" in done.output


def test_the_command_refuses_one_group(tmp_path: Path) -> None:
    table, _, score = people()
    table.assign(p=score, sex="f").to_csv(tmp_path / "people.csv", index=False)
    words = ["explain", str(tmp_path / "people.csv"), "--score", "p", "--group", "sex"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "two groups" in done.output


def test_page_notebook_and_json_say_the_same(tmp_path: Path) -> None:
    table, group, score = people(1500)
    table.assign(p=score, sex=group).to_csv(tmp_path / "people.csv", index=False)
    page = tmp_path / "page.html"
    words = ["explain", str(tmp_path / "people.csv"), "--score", "p", "--group", "sex", "--report", str(page)]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    why = lp.explain(score, table, sensitive_features=group, random_state=0)
    html, notebook = page.read_text(encoding="utf-8"), why._repr_html_()
    plain = json.loads(done.stdout)
    for sentence in why.sentences:
        assert sentence in html
        assert sentence in notebook
        assert sentence in plain["sentences"]
    for gap, told in zip((*why.features, *why.sets), plain["features"] + plain["sets"], strict=True):
        value = f'data-value="{gap.remaining.estimate:.12g}"'
        assert value in html
        assert value in notebook
        assert told["remaining"]["estimate"] == gap.remaining.estimate
    assert "What carries the gap" in html
    audit = lp.audit(None, score, sensitive_features=group, random_state=0)
    document = json.loads(audit.to_json(explanation=why))
    assert document["explanation"]["total"] == plain["total"]
    assert "What carries the gap" in audit.to_markdown(explanation=why)
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 2
    assert "already exists" in again.output


def test_a_model_is_read_once_and_its_card_records_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lightgbm")
    table, group, score = people(1000)
    frame = table.assign(sex=group, y=(score > 0.5).astype(int))
    frame.to_csv(tmp_path / "people.csv", index=False)
    model = lp.models.LocalParityLGBMClassifier(0.0, random_state=0)
    model.fit(table, frame["y"], sensitive_features=group).save(tmp_path / "model")
    loads = []
    load = _folder.load
    monkeypatch.setattr(_folder, "load", lambda folder: loads.append(folder) or load(folder))
    words = ["explain", str(tmp_path / "people.csv"), "--group", "sex", "--model", str(tmp_path / "model")]
    done = CliRunner().invoke(app, [*words, "--record"])  # by the model's features, not by y
    assert done.exit_code == 0, done.output
    assert len(loads) == 1
    card = lp.results.ModelCard.read(tmp_path / "model")
    assert "Among people alike in" in card.explained[1]
    assert "What carries the gap" in card.to_markdown()
    assert lp.load(tmp_path / "model").predict_proba(table).shape == (1000, 2)
    wrong = CliRunner().invoke(app, [*words[:4], "--score", "y", "--record"])
    assert wrong.exit_code == 2
    assert "--record" in wrong.output


def test_columns_of_few_values_tell_apart_what_the_cells_do() -> None:
    cells = np.random.default_rng(0).integers(0, 1000, 5000)
    columns = _explain._model_inputs(cells, 4)
    assert max(column.max() for column in columns) <= 250
    together = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1]
    np.testing.assert_array_equal(together, np.unique(cells, return_inverse=True)[1])
    few = np.arange(100)
    assert _explain._model_inputs(few, 4)[0] is few
