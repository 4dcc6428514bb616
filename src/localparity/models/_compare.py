"""Train, repair, choose on validation data, report on test data."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from localparity._types import Criterion, FloatArray
from localparity._validation import as_choice, as_count, as_epsilon, as_fraction, as_probability
from localparity.counts._comparison import CRITERIA
from localparity.models._bound import Judge, choose
from localparity.models._candidates import METHODS, REPAIR_SHARES, Asked, Candidate, repaired
from localparity.models._outcomes import ModelComparison, Outcome, mark_frontier
from localparity.models._parts import Parts, make_parts
from localparity.uncertainty import mcdp_interval, permutation_test

_BOOSTERS = ("lightgbm", "xgboost")


def compare(
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    max_mcdp: float = 0.05,
    epsilon: float = 0.0,
    criterion: Criterion = "demographic_parity",
    booster: str = "lightgbm",
    steps: int = 200,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    on_method: Callable[[str], object] | None = None,
) -> ModelComparison:
    """Train ERM, DiffMCDP and boosted trees, plain and penalised, repair each, and compare them.

    Half of the rows are trained on. A quarter, the validation part, chooses each method's strength and the
    bound of each repair: the most accurate whose MCDP(epsilon) there is within `max_mcdp`, else the one with
    the least. The last quarter, which chooses nothing, is reported.

    Parameters
    ----------
    X : pandas.DataFrame
        The features; texts are taken as categories.
    y : array-like
        Two classes.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row.
    sample_weight : array-like, optional
        Weights that are not negative.
    max_mcdp : float
        The bound that methods are chosen for.
    epsilon : float
        The half-width of the windows.
    criterion : str
        Which people are compared.
    booster : str
        "lightgbm" or "xgboost".
    steps : int
        How many steps a network is trained for.
    confidence : float
        The probability with which the intervals hold.
    n_resamples : int
        How many resamples each interval and noise floor takes.
    random_state : int
        The same seed gives the same comparison.
    on_method : callable, optional
        Told the name of each method before it is trained.

    Returns
    -------
    ModelComparison

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> found = compare(
    ...     census.data, census.target, sensitive_features=census.sensitive_features, steps=20, n_resamples=50
    ... )
    >>> [outcome.name for outcome in found.outcomes][:2]
    ['ERM', 'ERM, repaired']
    """
    seed = as_count(random_state, "random_state", at_least=0)
    asked = Asked(
        as_fraction(max_mcdp, "max_mcdp"),
        as_epsilon(epsilon),
        as_choice(criterion, "criterion", CRITERIA),
        seed,
        as_choice(booster, "booster", _BOOSTERS),
        as_count(steps, "steps"),
    )
    confidence = as_probability(confidence)
    as_count(n_resamples, "n_resamples")
    parts = make_parts(X, y, sensitive_features, sample_weight, seed)
    report = _Report(parts, asked, confidence, n_resamples)
    for name, method in METHODS.items():
        if on_method is not None:
            on_method(name)
        report.add(name, list(method(parts, asked)))
    return ModelComparison(
        mark_frontier(report.outcomes),
        asked.max_mcdp,
        asked.epsilon,
        asked.criterion,
        (len(parts.train.X), len(parts.validation.X), len(parts.test.X)),
        report.left_out,
    )


class _Report:
    """Chooses among the candidates of each method and measures the chosen."""

    def __init__(self, parts: Parts, asked: Asked, confidence: float, n_resamples: int) -> None:
        self.parts, self.asked, self.confidence, self.n_resamples = parts, asked, confidence, n_resamples
        self.outcomes: list[Outcome] = []
        self.left_out: dict[str, str] = {}
        rows = parts.validation.rows
        self.judge = Judge(
            rows.labels, rows.groups, rows.weights, asked.max_mcdp, None, asked.epsilon, asked.criterion
        )

    def add(self, name: str, candidates: list[Candidate]) -> None:
        """The outcome of a method and, where it can be repaired, of its repair."""
        self.outcomes.append(self._outcome(name, candidates, is_repaired=False))
        mended, refusals = list[Candidate](), list[str]()
        for one, share in product(candidates, REPAIR_SHARES):
            try:
                mended.append(repaired(one, self.parts, self.asked, share))
            except ValueError as error:
                refusals.append(str(error))
        if mended:
            self.outcomes.append(self._outcome(name, mended, is_repaired=True))
        else:
            self.left_out[f"{name}, repaired"] = refusals[0]

    def _outcome(self, name: str, candidates: list[Candidate], *, is_repaired: bool) -> Outcome:
        trials = [self.judge(0.0, candidate.validation) for candidate in candidates]
        chosen = choose(trials)
        points = [self._point(candidate.test) for candidate in candidates]
        test, asked = self.parts.test.rows, self.asked
        rows = (test.labels, candidates[chosen].test)
        options: dict[str, Any] = {
            "sensitive_features": test.groups,
            "epsilon": asked.epsilon,
            "n_resamples": self.n_resamples,
            "random_state": asked.seed,
            "criterion": asked.criterion,
            "sample_weight": test.weights,
        }
        interval = mcdp_interval(*rows, confidence=self.confidence, method="bootstrap", **options)
        return Outcome(
            name,
            is_repaired,
            candidates[chosen].setting,
            trials[chosen].average_precision,
            trials[chosen].mcdp,
            trials[chosen].met,
            points[chosen][1],
            interval,
            permutation_test(*rows, **options).null_mean,
            tuple(points),
        )

    def _point(self, scores: FloatArray) -> tuple[float, float]:
        rows = self.parts.test.rows
        judge = self.judge._replace(labels=rows.labels, groups=rows.groups, weights=rows.weights)
        found = judge(0.0, scores)
        return found.mcdp, found.average_precision
