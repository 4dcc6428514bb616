"""skore: MCDP among a report's metrics, and a bound on it among its checks."""

from __future__ import annotations

from typing import Any, Unpack

from localparity._types import ArrayLike, Compare, Criterion, FloatArray, Groups, Rows
from localparity._validation import as_epsilon, as_fraction
from localparity.auditing import Audit, audit
from localparity.auditing._audit import DecideBy
from localparity.auditing._options import AuditArguments
from localparity.auditing._wording import bound_result
from localparity.integrations._columns import named_columns
from localparity.metrics import mcdp

__all__ = ["McdpCheck", "mcdp_metric"]


def mcdp_metric(
    estimator: Any,
    X: Rows,
    y: ArrayLike,
    *,
    sensitive_features: Groups,
    epsilon: float = 0.0,
    criterion: Criterion = "demographic_parity",
    compare: Compare = "between_groups",
    min_group_size: int = 1,
) -> float:
    """MCDP of a classifier's probability of label 1, for ``report.metrics.add``.

    Parameters
    ----------
    estimator : classifier
        A fitted classifier with `predict_proba`; skore passes that of the report.
    X : array-like or data frame
        The features; skore passes those of the part that is measured.
    y : array-like
        The labels 0 and 1 of the same rows.
    sensitive_features : str, list of str or array-like
        A column of `X`, a list of columns, or the group of each row. A pandas Series or data frame is
        aligned with `X` by its index, so that it serves the training part and the test part.
    epsilon : float
        The half-width of the windows.
    criterion, compare : str
        Who is compared, as in `localparity.mcdp`.
    min_group_size : int
        The fewest rows that a group may have.

    Returns
    -------
    float

    Examples
    --------
    >>> import skore
    >>> from sklearn.linear_model import LogisticRegression
    >>> import localparity as lp
    >>> from localparity.integrations.skore import mcdp_metric
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> X = census.data[["education_years", "hours_per_week"]]
    >>> model = LogisticRegression().fit(X, census.target)
    >>> report = skore.EstimatorReport(model, X_test=X, y_test=census.target, pos_label=1)
    >>> report.metrics.add(
    ...     mcdp_metric, greater_is_better=False, sensitive_features=census.sensitive_features, epsilon=0.05
    ... )
    >>> 0.0 < report.metrics.mcdp_metric() < 1.0
    True
    """
    return mcdp(
        y,
        _scores(estimator, X),
        sensitive_features=_groups(sensitive_features, X),
        epsilon=epsilon,
        criterion=criterion,
        compare=compare,
        min_group_size=min_group_size,
    )


class McdpCheck:
    """A bound on MCDP of the test part, for ``report.checks.add``.

    An issue is reported exactly where `Audit.passes` returns False, with the place of the worst window.

    Parameters
    ----------
    max_mcdp : float
        The most that MCDP may be, a fraction in [0, 1].
    sensitive_features : str, list of str or array-like
        The groups, as in `mcdp_metric`.
    epsilon : float
        The half-width of the windows.
    decide_by : str
        What is compared with the bound: "estimate", "upper" or "lower", as in `Audit.passes`.
    code : str
        What the check is called in the summary and in ``ignore``; two checks in one report need two codes.
    **options
        Others of `localparity.audit`, such as ``criterion`` and ``confidence``.

    Examples
    --------
    >>> import skore
    >>> from sklearn.linear_model import LogisticRegression
    >>> import localparity as lp
    >>> from localparity.integrations.skore import McdpCheck
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> X = census.data[["education_years", "hours_per_week"]]
    >>> model = LogisticRegression().fit(X, census.target)
    >>> report = skore.EstimatorReport(model, X_test=X, y_test=census.target, pos_label=1)
    >>> check = McdpCheck(0.01, sensitive_features=census.sensitive_features)
    >>> report.checks.add([check])
    >>> print(check.check_function(report))
    MCDP(0) is ..., above the bound of 1.00%. With a threshold ...
    """

    title = "Local disparity above the bound"
    docs_url = None
    severity = "issue"
    slow = False

    def __init__(
        self,
        max_mcdp: float,
        *,
        sensitive_features: Groups,
        epsilon: float = 0.0,
        decide_by: DecideBy = "estimate",
        code: str = "LP001",
        **options: Unpack[AuditArguments],
    ) -> None:
        self.max_mcdp = as_fraction(max_mcdp, "max_mcdp")
        self.sensitive_features = sensitive_features
        self.epsilon = as_epsilon(epsilon)
        self.decide_by = decide_by
        self.code = code
        self.report_types = ["estimator"]
        self.options: AuditArguments = {"random_state": 0, **options, "epsilons": [self.epsilon]}

    def check_function(self, report: Any) -> str | None:
        """Return what is above the bound, or None where nothing is; skore calls this.

        Parameters
        ----------
        report : skore.EstimatorReport
            The report that the check was added to.

        Returns
        -------
        str or None
        """
        found = self._audit(report)
        bound = bound_result(found, self.max_mcdp, self.decide_by)
        return None if bound.within else f"{bound.sentence}. {found.findings[0].window.sentence}"

    def _audit(self, report: Any) -> Audit:
        estimator, X = report.estimator_, report.X_test
        if not hasattr(estimator, "predict_proba") or len(estimator.classes_) != 2:
            from skore import CheckNotApplicable

            raise CheckNotApplicable("the estimator is no classifier of two classes with predict_proba")
        return audit(
            report.y_test,
            _scores(estimator, X),
            sensitive_features=_groups(self.sensitive_features, X),
            **self.options,
        )


def _scores(estimator: Any, X: Rows) -> FloatArray:
    """The probability of label 1."""
    scores: FloatArray = estimator.predict_proba(X)[:, 1]
    return scores


def _groups(sensitive_features: Groups, X: Rows) -> Any:
    """The group of each row of X."""
    groups = named_columns(sensitive_features, X, "sensitive_features")
    if hasattr(groups, "reindex") and hasattr(X, "index"):
        return groups.reindex(X.index)
    return groups
