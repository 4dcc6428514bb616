"""skore's own reports with our metric and our check."""

from __future__ import annotations

from typing import Any

import pytest
import skore
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import localparity as lp
from localparity.integrations.skore import McdpCheck, mcdp_metric

CENSUS = lp.datasets.make_census(1500, random_state=0)
FEATURES = ["education_years", "hours_per_week"]
SEX = CENSUS.data.assign(sex=CENSUS.sensitive_features)["sex"]
PEOPLE = CENSUS.data[FEATURES].assign(sex=SEX)
PARTS = train_test_split(PEOPLE, CENSUS.target, random_state=0)
X_TEST, Y_TEST = PARTS[1], PARTS[3]


def report(estimator: Any = None) -> skore.EstimatorReport:
    """A report on a pipeline that leaves the groups out."""
    if estimator is None:
        columns = make_column_transformer(("passthrough", FEATURES))
        estimator = make_pipeline(columns, LogisticRegression(max_iter=1000))
    names = ("X_train", "X_test", "y_train", "y_test")
    return skore.EstimatorReport(estimator, **dict(zip(names, PARTS, strict=True)))


def measured(found: skore.EstimatorReport, **options: Any) -> float:
    scores = found.estimator_.predict_proba(X_TEST)[:, 1]
    return lp.mcdp(Y_TEST, scores, sensitive_features=X_TEST["sex"], **options)


@pytest.mark.parametrize("groups", ["sex", SEX, X_TEST["sex"].to_numpy()], ids=["column", "series", "array"])
def test_a_report_measures_it(groups: Any) -> None:
    found = report()
    found.metrics.add(
        mcdp_metric,
        name="mcdp",
        greater_is_better=False,
        sensitive_features=groups,
        epsilon=0.05,
        criterion="equal_opportunity",
    )
    expected = measured(found, epsilon=0.05, criterion="equal_opportunity")
    assert found.metrics.mcdp() == expected
    assert found.metrics.summarize(metric=["mcdp"]).frame().to_numpy().ravel() == [expected]


def test_a_series_serves_both_parts() -> None:
    found = report()
    found.metrics.add(mcdp_metric, greater_is_better=False, sensitive_features=SEX)
    X_train = PARTS[0]
    scores = found.estimator_.predict_proba(X_train)[:, 1]
    expected = lp.mcdp(None, scores, sensitive_features=X_train["sex"])
    assert found.metrics.mcdp_metric(data_source="train") == expected


def test_the_check_finds_an_issue_exactly_where_the_audit_does() -> None:
    found = report()
    scores = found.estimator_.predict_proba(X_TEST)[:, 1]
    audit = lp.audit(None, scores, sensitive_features=X_TEST["sex"], epsilons=[0.05], random_state=0)
    interval = audit.findings[0].interval
    ends = {"estimate": interval.estimate, "upper": interval.high, "lower": interval.low}
    sections = {}
    for decide_by, at in ends.items():
        for bound in (max(at - 1e-12, 0.0), at, 0.9):
            asked: dict[str, Any] = {
                "epsilon": 0.05,
                "decide_by": decide_by,
                "code": f"{decide_by}-{bound!r}",
            }
            found.checks.add([McdpCheck(bound, sensitive_features="sex", **asked)])
            sections[asked["code"]] = "passed" if audit.passes(bound, decide_by=decide_by) else "issue"
    summary = found.checks.summarize(fast_mode=True).frame().set_index("code").loc[list(sections)]
    assert summary["section"].to_dict() == sections
    assert set(sections.values()) == {"passed", "issue"}
    assert summary["explanation"].dropna().str.contains("above the bound of").all()


def test_the_check_does_not_apply_to_regressors() -> None:
    columns = make_column_transformer(("passthrough", FEATURES))
    found = report(make_pipeline(columns, LinearRegression()))
    found.checks.add([McdpCheck(0.1, sensitive_features="sex")])
    summary = found.checks.summarize(fast_mode=True).frame().set_index("code")
    assert summary.loc["LP001", "section"] == "not_applicable"


def test_rows_without_a_group_are_an_error() -> None:
    found = report()
    found.metrics.add(mcdp_metric, greater_is_better=False, sensitive_features=SEX[:100])
    with pytest.raises(ValueError, match="sensitive_features"):
        found.metrics.mcdp_metric()


def test_a_wrong_bound_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"max_mcdp must be .* got 2"):
        McdpCheck(2.0, sensitive_features="sex")
