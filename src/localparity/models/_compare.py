"""Train, repair, choose on validation data, report on test data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from localparity._types import ArrayLike, Criterion, FloatArray, Groups, Seed
from localparity._validation import as_choice, as_count, as_epsilon, as_fraction, as_probability, require
from localparity.counts import Comparison
from localparity.counts._comparison import CRITERIA
from localparity.models._bound import BoundCheck, choose
from localparity.models._card import audit_held_out
from localparity.models._encoding import with_categories
from localparity.models._frontier import Frontier, FrontierSettings, frontier_on
from localparity.models._outcomes import ModelComparison, Outcome, measure_shortfalls, outcome_name
from localparity.models._rows import TrainingRows, as_seed, check_training_rows
from localparity.models._sequence import accept_in_order

# The models that a comparison tries, fitted, and their scores on the validation and the test part.


REPAIR_SHARES = (1.0, 0.5, 0.0)
"""Of the bound: a repair that aims below it has room for how new people differ."""


class ComparisonRows(NamedTuple):
    """The rows that are trained on, those that settings are chosen on, and those that are reported."""

    train: TrainingRows
    validation: TrainingRows
    test: TrainingRows


class Candidate(NamedTuple):
    """A fitted model, its setting in words, and the scores that it is judged by and reported with."""

    setting: str
    model: Any
    validation: FloatArray
    test: FloatArray


class CompareSettings(NamedTuple):
    """What every method of a comparison is trained with."""

    max_mcdp: float
    epsilon: float
    criterion: Criterion
    seed: int
    booster: str
    steps: int


class CompareMethod(NamedTuple):
    """A method of a comparison.

    Attributes
    ----------
    make : callable
        Returns its models, not fitted, by their settings in words.
    is_repair : bool
        Whether the models have the bound themselves: one may be out of reach, and none is repaired again.
    """

    make: Callable[[CompareSettings], dict[str, Any]]
    is_repair: bool = False


def train(setting: str, model: Any, rows: ComparisonRows) -> Candidate:
    """Fit a model on the training part and score the others."""
    fitted = rows.train
    model.fit(
        fitted.features,
        fitted.targets,
        sensitive_features=fitted.named_groups,
        sample_weight=fitted.weights,
    )
    scores = [model.predict_proba(part.features)[:, 1] for part in (rows.validation, rows.test)]
    return Candidate(setting, model, *scores)


def repair(candidate: Candidate, share: float, rows: ComparisonRows, settings: CompareSettings) -> Candidate:
    """Repair a candidate to a share of the bound; one that is out of reach is a ValueError.

    The repair is fitted on the validation part. To be judged there too, each half of the validation part is
    repaired by what the other half was fitted to.
    """
    from localparity.models import RepairedClassifier, ScoreRepair

    bound = share * settings.max_mcdp
    options: dict[str, Any] = {"epsilon": settings.epsilon, "criterion": settings.criterion}
    part, scores = rows.validation, candidate.validation
    judged = np.empty_like(scores)
    halves = part.split(0.5, settings.seed)
    for fitted, other in (halves, halves[::-1]):
        half = part.take(fitted)
        of_half = ScoreRepair(bound, **options).fit(
            scores[fitted], half.labels, sensitive_features=half.named_groups, sample_weight=half.weights
        )
        judged[other] = of_half.transform(scores[other], sensitive_features=part.take(other).named_groups)
    model = RepairedClassifier(candidate.model, max_mcdp=bound, prefit=True, **options).fit(
        part.features, part.targets, sensitive_features=part.named_groups, sample_weight=part.weights
    )
    test = model.repair_.transform(candidate.test, sensitive_features=rows.test.named_groups)
    setting = f"repaired to {100.0 * bound:g}%"
    return Candidate(", ".join(filter(None, (candidate.setting, setting))), model, judged, test)


def _networks(method: str, strengths: Sequence[float], settings: CompareSettings) -> dict[str, Any]:
    require("torch", extra="train")
    from localparity.models import LocalParityClassifier

    return {
        _words(strength): LocalParityClassifier(
            method,
            strength,
            epsilon=settings.epsilon,
            criterion=settings.criterion,
            steps=settings.steps,
            device="cpu",
            random_state=settings.seed,
        )
        for strength in strengths
    }


def _trees(strengths: Sequence[float], settings: CompareSettings) -> dict[str, Any]:
    from localparity.models import LocalParityLGBMClassifier, LocalParityXGBClassifier

    kinds = {"lightgbm": LocalParityLGBMClassifier, "xgboost": LocalParityXGBClassifier}
    kind = kinds[settings.booster]
    options: dict[str, Any] = {"epsilon": settings.epsilon, "criterion": settings.criterion}
    return {_words(strength): kind(strength, random_state=settings.seed, **options) for strength in strengths}


def _group_blind(settings: CompareSettings) -> dict[str, Any]:
    from localparity.models import GroupBlindClassifier

    bounds = [share * settings.max_mcdp for share in REPAIR_SHARES if share]
    options: dict[str, Any] = {"epsilon": settings.epsilon, "criterion": settings.criterion}
    return {
        f"repaired to {100.0 * bound:g}%": GroupBlindClassifier(
            max_mcdp=bound, random_state=settings.seed, **options
        )
        for bound in bounds
    }


def _words(strength: float) -> str:
    return f"strength {strength:g}" if strength else ""


METHODS: dict[str, CompareMethod] = {
    "ERM": CompareMethod(partial(_networks, "erm", (0.0,))),
    "DiffMCDP": CompareMethod(partial(_networks, "diffmcdp", (0.1, 0.2, 0.4))),
    "boosted trees": CompareMethod(partial(_trees, (0.0,))),
    "penalised boosted trees": CompareMethod(partial(_trees, (0.1, 0.2, 0.3, 0.5))),
    "group-blind repair": CompareMethod(_group_blind, is_repair=True),
}
"""The methods of a comparison by their names."""


FRONTIER = "frontier"
"""What the comparison calls the best group-blind scores, beside its methods."""

_BOUNDS = 10
_PLAIN = ("ERM", "boosted trees")
_BOOSTERS = ("lightgbm", "xgboost")
_TEST, _VALIDATION = 0.25, 1.0 / 3.0  # of what is left: half to train on, a quarter each for the others


def compare(
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: Groups,
    sample_weight: ArrayLike | None = None,
    max_mcdp: float = 0.05,
    epsilon: float = 0.0,
    criterion: Criterion = "demographic_parity",
    booster: str = "lightgbm",
    steps: int = 200,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: Seed = None,
    on_method: Callable[[str], object] | None = None,
) -> ModelComparison:
    """Train ERM, DiffMCDP and boosted trees, plain and penalised, repair each, and compare them.

    A group-blind repair, which needs no group at prediction, is compared with them.

    Half of the rows are trained on. A quarter, the validation part, chooses each method's strength and the
    bound of each repair: the most accurate whose MCDP(epsilon) there is within `max_mcdp`, else the one with
    the least. The last quarter, the test part, is reported. Methods that do not need the group are measured
    there against the frontier, the best that group-blind scores fitted on the training part reach.

    The settings of a method are also tested on the test part, those of the least validation MCDP first, up to
    the first that is not known to be within `max_mcdp` (fixed-sequence testing; Angelopoulos et al. 2021,
    "Learn then Test"). Where some pass, the choice is among them, and the outcome has a `promise`. Methods
    share the error rate: with probability `confidence`, all settings that pass, of all methods, are within
    `max_mcdp` in the population, if the rows are an independent sample of it; with weights, approximately.
    The intervals of settings that pass are not adjusted for having passed.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        The features; text columns of a data frame are categories.
    y : array-like of shape (n_samples,)
        Two classes.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row; of several columns, the combinations that occur.
    sample_weight : array-like of shape (n_samples,), optional
        Weights that are not negative; a row of weight 0 counts as absent.
    max_mcdp : float
        The bound that methods are chosen for.
    epsilon : float
        The half-width of the windows.
    criterion : str
        Who is compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds".
    booster : str
        "lightgbm" or "xgboost".
    steps : int
        The number of steps that a network is trained for.
    confidence : float
        The probability with which each interval holds, and with which all promises hold together.
    n_resamples : int
        The number of resamples behind each interval and noise floor.
    random_state : int, Generator or None
        The same seed gives the same comparison.
    on_method : callable, optional
        Called with the name of each method before it is trained.

    Returns
    -------
    ModelComparison

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> found = compare(
    ...     census.data,
    ...     census.target,
    ...     sensitive_features=census.sensitive_features,
    ...     steps=20,
    ...     n_resamples=50,
    ...     random_state=0,
    ... )
    >>> [outcome.name for outcome in found.outcomes][:2]
    ['ERM', 'ERM, repaired']
    """
    settings = CompareSettings(
        as_fraction(max_mcdp, "max_mcdp"),
        as_epsilon(epsilon),
        as_choice(criterion, "criterion", CRITERIA),
        as_seed(random_state),
        as_choice(booster, "booster", _BOOSTERS),
        as_count(steps, "steps"),
    )
    confidence = as_probability(confidence)
    as_count(n_resamples, "n_resamples")
    table = with_categories(X.to_pandas() if hasattr(X, "to_pandas") else X)
    if not hasattr(table, "columns"):
        table = np.asarray(table)
    everyone = check_training_rows(None, table, y, sensitive_features, sample_weight)
    by_class = Comparison(settings.criterion).needs_labels
    rest, test = everyone.with_weight().hold_out(_TEST, settings.seed, by_class=by_class)
    rows = ComparisonRows(*rest.hold_out(_VALIDATION, settings.seed), test)
    report = _Report(rows, settings, confidence, n_resamples)
    for name in METHODS:
        if on_method is not None:
            on_method(name)
        report.add(name)
    if on_method is not None:
        on_method(FRONTIER)
    reachable = report.frontier()
    return ModelComparison(
        measure_shortfalls(report.outcomes, reachable),
        settings.max_mcdp,
        settings.epsilon,
        settings.criterion,
        (len(rows.train.labels), len(rows.validation.labels), len(rows.test.labels)),
        report.left_out,
        reachable,
        report.models,
        rest.describe(),
    )


class _Report:
    """Chooses among the candidates of each method and measures the chosen."""

    def __init__(
        self, rows: ComparisonRows, settings: CompareSettings, confidence: float, n_resamples: int
    ) -> None:
        self.rows, self.settings, self.confidence, self.n_resamples = rows, settings, confidence, n_resamples
        self.outcomes: list[Outcome] = []
        self.models: dict[str, Any] = {}
        self.left_out: dict[str, str] = {}
        self.on_validation, self.on_test = (
            BoundCheck(part, settings.max_mcdp, settings.epsilon, settings.criterion)
            for part in (rows.validation, rows.test)
        )
        sequences = sum(1 if method.is_repair else 2 for method in METHODS.values())
        self.tested = self.on_test._replace(confidence=1.0 - (1.0 - confidence) / sequences)

    def add(self, name: str) -> None:
        """Train a method, and add its outcome and that of its repair."""
        method = METHODS[name]
        models = method.make(self.settings)
        if method.is_repair:
            self._add_reached(name, [partial(train, *each, self.rows) for each in models.items()])
            return
        trained = [train(*each, self.rows) for each in models.items()]
        self._choose(name, trained)
        repairs = [
            partial(repair, candidate, share, self.rows, self.settings)
            for candidate, share in product(trained, REPAIR_SHARES)
        ]
        self._add_reached(name, repairs, is_repaired=True)

    def frontier(self) -> Frontier | None:
        """Return what group-blind scores reach on the test part, or None and note why nothing was found.

        The class is predicted by networks where those do better on the validation part, else by trees.
        """
        from localparity.models import GroupBlindClassifier

        settings = self.settings
        plain = (outcome for outcome in self.outcomes if outcome.name in _PLAIN)
        best = max(plain, key=lambda outcome: outcome.validation_average_precision).name
        estimator = METHODS[best].make(settings)[""] if best == _PLAIN[0] else None
        model = GroupBlindClassifier(estimator, criterion=settings.criterion, random_state=settings.seed)
        measured = FrontierSettings(
            settings.epsilon, settings.criterion, _BOUNDS, self.confidence, self.n_resamples, settings.seed
        )
        try:
            return frontier_on(model, self.rows.train, self.rows.test, measured)
        except ValueError as error:
            self.left_out[FRONTIER] = str(error)
            return None

    def _add_reached(
        self, name: str, attempts: Sequence[Callable[[], Candidate]], *, is_repaired: bool = False
    ) -> None:
        """Add the outcome of the attempts that reach their bounds; if none does, say why."""
        reached, refusals = list[Candidate](), list[str]()
        for attempt in attempts:
            try:
                reached.append(attempt())
            except ValueError as error:
                refusals.append(str(error))
        if reached:
            self._choose(name, reached, is_repaired=is_repaired)
        else:
            self.left_out[outcome_name(name, is_repaired=is_repaired)] = refusals[0]

    def _choose(self, name: str, candidates: list[Candidate], *, is_repaired: bool = False) -> None:
        """Add the outcome of the candidate that does best on the validation part, if some pass among them."""
        trials = [self.on_validation(0.0, candidate.validation) for candidate in candidates]
        reported = [self.on_test(0.0, candidate.test) for candidate in candidates]
        order = sorted(range(len(trials)), key=lambda place: trials[place].mcdp)
        passed, _ = accept_in_order(order, lambda place: self.tested(0.0, candidates[place].test).met)
        chosen = max(passed, key=lambda place: trials[place].average_precision) if passed else choose(trials)
        found = audit_held_out(
            self.rows.test,
            candidates[chosen].test,
            epsilon=self.settings.epsilon,
            criterion=self.settings.criterion,
            confidence=self.confidence,
            n_resamples=self.n_resamples,
            random_state=self.settings.seed,
        )
        outcome = Outcome(
            name,
            is_repaired,
            candidates[chosen].setting,
            trials[chosen].average_precision,
            trials[chosen].mcdp,
            trials[chosen].met,
            found.average_precision,
            found.interval,
            found.noise_floor,
            tuple((trial.mcdp, trial.average_precision) for trial in reported),
            promise=self.on_test.promise(self.confidence) if passed else "",
        )
        self.outcomes.append(outcome)
        self.models[outcome.name] = candidates[chosen].model
