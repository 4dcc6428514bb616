"""MCDP as a scikit-learn scorer."""

from __future__ import annotations

from typing import Any

from localparity._types import ArrayLike, Groups
from localparity._validation import as_epsilon
from localparity.metrics._mcdp import mcdp


def mcdp_scorer(epsilon: float = 0.0, **options: Any) -> Any:
    """A scikit-learn scorer that gives -MCDP(epsilon), so that greater is better.

    It scores with ``predict_proba`` (or ``decision_function``) of the positive class and asks for
    `sensitive_features` by metadata routing, which scikit-learn wants switched on with
    ``sklearn.set_config(enable_metadata_routing=True)``; without it, scoring is an error that says so.

    Parameters
    ----------
    epsilon : float
        The half-width of the windows.
    **options
        More arguments of `mcdp`, such as ``criterion="equal_opportunity"``.

    Returns
    -------
    scorer
        For ``scoring=`` of GridSearchCV, cross_validate and the like.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> X, y, sex = census.data[["age", "education_years"]], census.target, census.sensitive_features
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     found = cross_validate(
    ...         LogisticRegression(), X, y, scoring=lp.mcdp_scorer(0.05), params={"sensitive_features": sex}
    ...     )
    >>> bool((found["test_score"] < 0.0).all())
    True
    """
    import sklearn
    from sklearn.metrics import make_scorer

    scorer = make_scorer(
        _routed_mcdp,
        response_method=("predict_proba", "decision_function"),
        greater_is_better=False,
        epsilon=as_epsilon(epsilon),
        **options,
    )
    with sklearn.config_context(enable_metadata_routing=True):
        return scorer.set_score_request(sensitive_features=True)


def _routed_mcdp(
    y_true: ArrayLike, y_score: ArrayLike, *, sensitive_features: Groups | None = None, **options: Any
) -> float:
    """MCDP of what scikit-learn routed here."""
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features did not reach the scorer: call "
            "sklearn.set_config(enable_metadata_routing=True), pass sensitive_features to fit or in params, "
            "and keep the scorer's set_score_request(sensitive_features=True)"
        )
    value: float = mcdp(y_true, y_score, sensitive_features=sensitive_features, **options)
    return value
