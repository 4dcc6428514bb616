"""The JSON of audits: versioned, of one shape, and as its schema says."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import localparity as lp
from localparity.auditing._document import FORMAT_VERSION, Document, RatioResult
from localparity.report._markdown import to_markdown

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "audit.schema.json"


def check(text: str) -> Any:
    """Parse JSON that must be as the schema says, without numbers that JSON does not have."""

    def refuse(name: str) -> Any:
        raise AssertionError(name)

    found = json.loads(text, parse_constant=refuse)
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    ).validate(found)
    return found


def people(groups: int, rows: int = 600) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, groups, rows)
    return rng.integers(0, 2, rows), rng.beta(2, 2 + codes), codes


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("compare", ["between_groups", "to_overall"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_resamples": 0, "epsilons": [0.2]},
        {"epsilons": [0.49], "threshold": 0.4},
        {"higher_is": "worse"},
        {"min_group_size": 70},
    ],
)
def test_real_audits_are_as_the_schema_says(criterion: Any, compare: Any, options: dict[str, Any]) -> None:
    labels, scores, groups = people(4)
    found = lp.audit(
        labels,
        scores,
        sensitive_features=groups,
        criterion=criterion,
        compare=compare,
        **{"n_resamples": 20, "random_state": 0, **options},
    )
    bound = None if options.get("epsilons") == [0.49] else 0.05
    (plain,) = check(found.to_json(max_mcdp=bound, min_group_size=1))["audits"]
    assert [each["mcdp"] for each in plain["findings"]] == [each.mcdp for each in found.findings]
    assert plain["rows"] == found.rows == sum(group.rows for group in found.groups)
    if bound is not None:
        assert plain["bound"]["passes"] == found.passes(bound)


@pytest.mark.parametrize("n_resamples", [0, 20])
def test_strata_are_as_the_schema_says(n_resamples: int) -> None:
    _, scores, groups = people(3)
    job = np.where(np.arange(groups.size) % 2, "cook", None)
    found = lp.audit(
        None, scores, sensitive_features=groups, control_features=job, n_resamples=n_resamples, random_state=0
    )
    check(found.to_json())


@pytest.mark.parametrize("resamples", [0, 20])
def test_audits_within_strata_are_as_the_schema_says(resamples: int) -> None:
    _, scores, groups = people(2)
    options: dict[str, Any] = {"control_features": np.arange(600) % 3, "n_resamples": resamples}
    found = lp.audit(None, scores, sensitive_features=groups, random_state=0, **options)
    (plain,) = check(found.to_json(min_group_size=1))["audits"]
    assert plain["within_strata"]["turned"] is False


def test_groups_of_several_columns_and_of_any_kind() -> None:
    _, scores, groups = people(2)
    columns = {"sex": np.where(groups, "f", "m"), "old": groups == 0}
    found = lp.audit(None, scores, sensitive_features=columns, n_resamples=0)
    check(found.to_json())
    check(lp.audit(None, scores, sensitive_features=groups / 2, n_resamples=0).to_json())


@pytest.mark.parametrize("decide_by", ["estimate", "upper", "lower"])
def test_the_bound_says_what_was_compared_with_it(decide_by: Any) -> None:
    _, scores, groups = people(2)
    found = lp.audit(None, scores, sensitive_features=groups, n_resamples=0)
    interval = found.findings[0].interval
    value = {"estimate": interval.estimate, "upper": interval.high, "lower": interval.low}[decide_by]
    for bound in (0.0, 0.3, 1.0):
        (plain,) = check(found.to_json(max_mcdp=bound, decide_by=decide_by))["audits"]
        word = "within" if interval.high <= bound else "above" if interval.low > bound else "undecided"
        assert plain["bound"] == {
            "max_mcdp": bound,
            "decide_by": decide_by,
            "epsilon": 0.0,
            "value": value,
            "verdict": word,
            "passes": value <= bound,
            "not_assessed": [],
            "between": "0 (278 people) and 1 (322 people)",
            "could_be_chance": False,
        }


def test_several_models_have_the_shape_of_one() -> None:
    _, scores, groups = people(2)
    audits = {
        name: lp.audit(None, scores**power, sensitive_features=groups, n_resamples=0)
        for name, power in (("a", 1), ("b", 2))
    }
    both = check(Document(audits=audits).to_json())
    one = check(Document(audits={"a": audits["a"]}).to_json())
    assert one["audits"] == both["audits"][:1]
    assert [audit["name"] for audit in both["audits"]] == ["a", "b"]


def test_the_schema_refuses_what_is_not_an_audit() -> None:
    _, scores, groups = people(2)
    plain = json.loads(lp.audit(None, scores, sensitive_features=groups, n_resamples=0).to_json())
    assert plain["version"] == FORMAT_VERSION
    changes = ({"version": 1}, {"more": 0}, {"audits": []})
    for change in changes:
        with pytest.raises(jsonschema.ValidationError):
            check(json.dumps({**plain, **change}))
    for name in plain["audits"][0]:
        without = copy.deepcopy(plain)
        del without["audits"][0][name]
        with pytest.raises(jsonschema.ValidationError, match=name):
            check(json.dumps(without))


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_written_is_as_the_schema_says(weighted: bool) -> None:
    labels, scores, groups = people(2)
    rows = lp.Predictions.from_arrays(
        labels, scores, sensitive_features=groups, sample_weight=scores + 1.0 if weighted else None
    )
    found = lp.audit(rows, n_resamples=20, random_state=0)
    scoring = {
        "m": lp.scoring_rates(
            lp.Predictions.from_arrays(None, scores, sensitive_features=groups, missing_values=()),
            columns=["group"],
        )
    }
    document = Document(audits={"m": found}, min_ratio=0.8, scoring=scoring)
    (plain,) = check(document.to_json())["audits"]
    ratios, result = plain["impact_ratios"], document.ratios("m")
    assert isinstance(result, RatioResult)
    assert ratios["sentences"] == list(result.sentences)
    assert ratios["safe_cutoffs"]["worst"]["ratio"] == result.safe.worst.ratio
    assert len(ratios["groups"][0]["ratios"]) == len(ratios["cutoffs"])
    assert ("ratios_low" in ratios["groups"][0]) is not weighted
    assert ("these numbers are estimates" in result.sentences[-1]) is weighted
    assert "The most accurate of them" in result.sentences[1] or not result.safe.by_band
    assert plain["scoring_rates"]["median"] == pytest.approx(np.median(scores), abs=0.01)
    shown = to_markdown(document)
    assert "Scoring rates by group" in shown
    assert "The lowest computed ratio" in shown


def test_few_cutoffs_of_a_small_group_are_said_to_be_few() -> None:
    """A group of 38 left 11 of 13,432 cutoffs, and nothing said why the safe ones began so high."""
    rng = np.random.default_rng(0)
    groups = np.array([*["a"] * 3000, *["b"] * 3000, *["c"] * 150])
    found = lp.audit(rng.integers(0, 2, 6150), rng.random(6150), sensitive_features=groups, n_resamples=0)
    result = Document(audits={"m": found}, min_ratio=0.8).ratios("m")
    assert result is not None
    sentences = result.sentences
    assert any(re.search(r"^Ratios are computed at only \d+ of [\d,]+ cutoffs", each) for each in sentences)
    start = re.search(r"Any cutoff from (\S+)", " ".join(sentences))
    best = re.search(r"The most accurate of them, ([\d.]+), is", " ".join(sentences))
    assert start is None or best is None or float(best[1]) >= float(start[1])


def test_without_a_ratio_nothing_is_said_of_ratios() -> None:
    _, scores, groups = people(2)
    found = lp.audit(None, scores, sensitive_features=groups, n_resamples=0)
    (plain,) = check(Document(audits={"m": found}).to_json())["audits"]
    assert plain["impact_ratios"] is None
    assert plain["scoring_rates"] is None
