"""Train, repair, choose on validation data, report on test data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from localparity._progress import Forecast
from localparity._types import ArrayLike, Criterion, FloatArray, Groups, Seed
from localparity._validation import (
    InputError,
    as_choice,
    as_count,
    as_fraction,
    as_probability,
    require,
    setting,
)
from localparity.models._bound import Bound, accept_in_order, choose
from localparity.models._dominance import Baseline, BaselineRule
from localparity.models._encoding import with_categories
from localparity.models._frontier import Frontier, FrontierSettings, frontier_on
from localparity.models._outcomes import ModelComparison, Outcome, measure_shortfalls
from localparity.models._rows import TrainingRows, as_seed, check_training_rows
from localparity.uncertainty._bands import check_resamples

REPAIR_SHARES = (1.0, 0.5, 0.0)
"""Of the bound: a repair that aims below it has room for how new people differ."""

BASELINE_SHARES = (0.75, 0.5, 0.25)
"""Of the baseline's MCDP: how far repairs also go that look for an alternative to it."""


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


MakeCandidate = Callable[[], Candidate]


class CompareSettings(NamedTuple):
    """What every method of a comparison is trained and measured with."""

    bound: Bound
    seed: int
    booster: str
    network_steps: int | None = None
    confidence: float = 0.95
    n_resamples: int = 1000
    margin: float = 0.0
    baseline_mcdp: float | None = None

    @property
    def aims(self) -> tuple[float, ...]:
        """The bounds that repairs aim at, the widest first."""
        aims = {share * self.bound.max_mcdp for share in REPAIR_SHARES}
        if self.baseline_mcdp is not None:
            aims |= {share * self.baseline_mcdp for share in BASELINE_SHARES}
        return tuple(sorted(aims, reverse=True))

    def shared(self) -> dict[str, Any]:
        """Return the parameters that all models have."""
        return {"epsilon": self.bound.epsilon, "criterion": self.bound.criterion, "random_state": self.seed}


class CompareMethod(NamedTuple):
    """How a method's models are made, by their settings in words, and how long a fit takes, about.

    A repair has the bound itself: it may be out of reach, and is not repaired again. A network is trained
    only for those who ask for it, and its fit takes so long per step.
    """

    make: Callable[[CompareSettings], dict[str, Any]]
    is_repair: bool = False
    is_network: bool = False
    cost: float = 1.0


def train_candidate(setting: str, model: Any, rows: ComparisonRows) -> Candidate:
    """Fit a model on the training part and score the others."""
    model._fit_rows(rows.train)
    scores = [model.predict_proba(part.features)[:, 1] for part in (rows.validation, rows.test)]
    return Candidate(setting, model, *scores)


def repair_candidate(
    candidate: Candidate, aim: float, rows: ComparisonRows, settings: CompareSettings
) -> Candidate:
    """Repair a candidate to a bound; one that is out of reach is a ValueError.

    The repair is fitted on the validation part. To be judged there too, each half of the validation part is
    repaired by what the other half was fitted to.
    """
    from localparity.models import RepairedClassifier, ScoreRepair

    _, epsilon, criterion, *_ = settings.bound
    part, scores = rows.validation, candidate.validation
    judged = np.empty_like(scores)
    halves = part.split(0.5, settings.seed)
    for fitted, other in (halves, halves[::-1]):
        half = ScoreRepair(aim, epsilon=epsilon, criterion=criterion)
        half._fit_rows(part.take(fitted), scores[fitted])
        judged[other] = half._map(scores[other], part.take(other).grouping)
    model = RepairedClassifier(
        candidate.model, max_mcdp=aim, epsilon=epsilon, criterion=criterion, prefit=True
    )
    model._fit_rows(part)
    test = model.repair_._map(candidate.test, rows.test.grouping)
    setting = _repaired_to(aim)
    return Candidate(", ".join(filter(None, (candidate.setting, setting))), model, judged, test)


def _networks(method: str, strengths: Sequence[float], settings: CompareSettings) -> dict[str, Any]:
    require("torch", extra="train")
    from localparity.models import LocalParityClassifier

    options = {"steps": settings.network_steps, "device": "cpu", **settings.shared()}
    return {_words(strength): LocalParityClassifier(method, strength, **options) for strength in strengths}


def _trees(strengths: Sequence[float], settings: CompareSettings) -> dict[str, Any]:
    from localparity.models import LocalParityLGBMClassifier, LocalParityXGBClassifier

    kinds = {"lightgbm": LocalParityLGBMClassifier, "xgboost": LocalParityXGBClassifier}
    kind = kinds[settings.booster]
    return {_words(strength): kind(strength, **settings.shared()) for strength in strengths}


def _group_blind(settings: CompareSettings) -> dict[str, Any]:
    from localparity.models import GroupBlindClassifier

    return {
        _repaired_to(aim): GroupBlindClassifier(max_mcdp=aim, **settings.shared())
        for aim in settings.aims
        if aim
    }


def _repaired_to(aim: float) -> str:
    return f"repaired to {100.0 * aim:.3g}%"


def _words(strength: float) -> str:
    return f"strength {strength:g}" if strength else ""


# How long things take, about, where a fit of boosted trees takes 1.
_STEP, _REPAIR, _CHOICE, _FRONTIER, _PAIRED = 0.08, 0.1, 0.6, 6.0, 1.0

METHODS: dict[str, CompareMethod] = {
    "ERM": CompareMethod(partial(_networks, "erm", (0.0,)), is_network=True, cost=_STEP),
    "DiffMCDP": CompareMethod(partial(_networks, "diffmcdp", (0.1, 0.2, 0.4)), is_network=True, cost=_STEP),
    "boosted trees": CompareMethod(partial(_trees, (0.0,))),
    "penalised boosted trees": CompareMethod(partial(_trees, (0.1, 0.2, 0.3, 0.5))),
    "group-blind repair": CompareMethod(_group_blind, is_repair=True, cost=5.0),
}
"""The methods of a comparison by their names."""


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
    y_score: ArrayLike | None = None,
    margin: float = 0.01,
    max_mcdp: float = 0.05,
    epsilon: float = 0.0,
    criterion: Criterion = "demographic_parity",
    booster: str = "lightgbm",
    network_steps: int | None = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: Seed = None,
) -> ModelComparison:
    """Train boosted trees and, on request, networks, repair each, and compare them and a group-blind repair.

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

    With `y_score` the methods are alternatives to a model that exists, the baseline. Repairs also aim at
    three quarters, half and a quarter of its MCDP. The validation part chooses of each method the setting
    with the least MCDP whose average precision and accuracy are known there to be lower by `margin` at most.
    On the test part an alternative dominates the baseline if its MCDP(0) is surely lower, and its average
    precision and accuracy are surely not lower by more than `margin`. The alternatives share the error rate:
    with probability `confidence`, in large samples, none is wrongly said to dominate. It is assumed that the
    baseline was not trained on these rows.

    Parameters
    ----------
    X, y, sensitive_features, sample_weight
        The rows, their classes, groups and weights, as in `LocalParityClassifier.fit`.
    y_score : array-like, optional
        The scores of the baseline, in [0, 1], row by row: for the second of the classes in their order.
    margin : float
        How much lower than the baseline's average precision and accuracy may be and count as not worse.
    max_mcdp : float
        The bound that methods are chosen for.
    epsilon, criterion
        The half-width of the windows, and who is compared, as in `mcdp`.
    booster : str
        "lightgbm" or "xgboost".
    network_steps : int, optional
        The number of steps that networks (ERM and DiffMCDP) are trained for; 200 is a start. By default there
        are none, as they take most of the time.
    confidence : float
        The probability with which each interval holds, and with which all promises hold together.
    n_resamples, random_state
        The number of resamples behind each interval and noise floor; the same seed gives the same comparison.

    Returns
    -------
    ModelComparison

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> rows, options = (census.data, census.target), {"n_resamples": 50, "random_state": 0}
    >>> comparison = compare(*rows, sensitive_features=census.sensitive_features, **options)
    >>> [outcome.name for outcome in comparison.outcomes][:2]
    ['boosted trees', 'boosted trees, repaired']
    """
    bound = Bound.checked(max_mcdp, epsilon, criterion)
    settings = CompareSettings(
        bound,
        as_seed(random_state),
        as_choice(booster, "booster", _BOOSTERS),
        None if network_steps is None else as_count(network_steps, "network_steps"),
        as_probability(confidence),
        as_count(n_resamples, "n_resamples"),
        as_fraction(margin, "margin"),
    )
    if y_score is not None and epsilon > 0.0:
        raise InputError(f"must be 0 with {setting('y_score')}, got {epsilon:g}", "epsilon")
    table = with_categories(X.to_pandas() if hasattr(X, "to_pandas") else X)
    if not hasattr(table, "columns"):
        table = np.asarray(table)
    everyone = check_training_rows(None, table, y, sensitive_features, sample_weight, y_score=y_score)
    everyone = everyone.with_weight()._replace(weighted=True)
    rest, test = everyone.hold_out(_TEST, settings.seed, by_class=bound.by_class)
    rows = ComparisonRows(*rest.hold_out(_VALIDATION, settings.seed), test)
    candidates = _Candidates(rows, settings)
    candidates.add_all()
    reachable, fitted_on = candidates.reachable, rest.describe()
    for model in candidates.models.values():
        model._fitted_on = fitted_on
    return ModelComparison(
        measure_shortfalls(candidates.outcomes, reachable),
        *bound[:3],
        (rows.train.size, rows.validation.size, rows.test.size),
        candidates.left_out,
        reachable,
        candidates.models,
        fitted_on,
        candidates.baseline,
    )


class _Candidates:
    """Chooses among the candidates of each method and measures the chosen."""

    def __init__(self, rows: ComparisonRows, settings: CompareSettings) -> None:
        self.rows, self.settings = rows, settings
        self.outcomes: list[Outcome] = []
        self.models: dict[str, Any] = {}
        self.left_out: dict[str, str] = {}
        self.reachable: Frontier | None = None
        steps = settings.network_steps
        self.methods = {name: one for name, one in METHODS.items() if steps is not None or not one.is_network}
        self.n_choices = sum(1 if method.is_repair else 2 for method in self.methods.values())
        error = (1.0 - settings.confidence) / self.n_choices
        self.tested = settings.bound._replace(confidence=1.0 - error)
        self.baseline: Baseline | None = None
        self.rule = BaselineRule(
            settings.margin, settings.bound.criterion, 1.0 - 2.0 * error, settings.n_resamples, settings.seed
        )
        if rows.test.scores is not None:
            check_resamples(settings.n_resamples, self.rule.confidence)
            self.baseline = self._measured_baseline()
            self.settings = settings._replace(baseline_mcdp=self.baseline.validation.mcdp)

    def _measured_baseline(self) -> Baseline:
        """Return the baseline as it is measured on either part."""
        settings, validation, test = self.settings, self.rows.validation, self.rows.test
        assert validation.scores is not None
        assert test.scores is not None
        return Baseline(
            settings.bound.measure(validation, validation.scores),
            settings.bound.audit(test, test.scores, settings.confidence, settings.n_resamples, settings.seed),
            settings.margin,
            self.n_choices,
            settings.confidence,
        )

    def add_all(self) -> None:
        """Train all methods, add their outcomes and those of their repairs, and find the frontier."""
        made = {name: method.make(self.settings) for name, method in self.methods.items()}
        total = self._choice * self.n_choices + _FRONTIER
        for name, models in made.items():
            repairs = 0.0 if self.methods[name].is_repair else _REPAIR * len(self.settings.aims)
            total += len(models) * (self._cost(name) + repairs)
        with Forecast(total, f"comparing {len(made)} methods") as work:
            for name, models in made.items():
                self._add(name, models, work)
            with work.part(_FRONTIER):
                self.reachable = self._frontier()

    @property
    def _choice(self) -> float:
        """How long it takes to choose, and to compare with the baseline where there is one."""
        return _CHOICE + (0.0 if self.baseline is None else _PAIRED)

    def _cost(self, name: str) -> float:
        method = self.methods[name]
        return method.cost * (self.settings.network_steps or 1 if method.is_network else 1)

    def _add(self, name: str, models: Mapping[str, Any], work: Forecast) -> None:
        """Train a method, and add its outcome and that of its repair."""
        cost, fits = self._cost(name), [partial(train_candidate, *item, self.rows) for item in models.items()]
        if self.methods[name].is_repair:
            self._add_attained(name, fits, work, cost)
            return
        trained = list[Candidate]()
        for fit in fits:
            with work.part(cost):
                trained.append(fit())
        self._choose(name, trained)
        repairs = [
            partial(repair_candidate, candidate, aim, self.rows, self.settings)
            for candidate, aim in product(trained, self.settings.aims)
        ]
        work.advance(self._choice)
        self._add_attained(name, repairs, work, _REPAIR, is_repaired=True)

    def _frontier(self) -> Frontier | None:
        """Return what group-blind scores reach on the test part, or None and note why nothing was found.

        The class is predicted by networks where those do better on the validation part, else by trees.
        """
        from localparity.models import GroupBlindClassifier

        (_, epsilon, criterion, *_), seed = self.settings.bound, self.settings.seed
        plain = (outcome for outcome in self.outcomes if outcome.name in _PLAIN)
        best = max(plain, key=lambda outcome: outcome.validation.average_precision).name
        estimator = METHODS[best].make(self.settings)[""] if best == _PLAIN[0] else None
        model = GroupBlindClassifier(estimator, criterion=criterion, random_state=seed)
        confidence, n_resamples = self.settings.confidence, self.settings.n_resamples
        measured = FrontierSettings(epsilon, criterion, _BOUNDS, confidence, n_resamples, seed)
        try:
            return frontier_on(model, self.rows.train, self.rows.test, measured)
        except ValueError as error:
            self.left_out["frontier"] = str(error)
            return None

    def _add_attained(
        self,
        name: str,
        attempts: Sequence[MakeCandidate],
        work: Forecast,
        cost: float,
        *,
        is_repaired: bool = False,
    ) -> None:
        """Add the outcome of the attempts that attain their bounds; if none does, say why."""
        candidates, refusals = list[Candidate](), list[str]()
        for attempt in attempts:
            with work.part(cost):
                try:
                    candidates.append(attempt())
                except ValueError as error:
                    refusals.append(str(error))
        if candidates:
            self._choose(name, candidates, is_repaired=is_repaired)
        else:
            self.left_out[f"{name}, repaired" if is_repaired else name] = refusals[0]
        work.advance(self._choice)

    def _choose(self, name: str, candidates: list[Candidate], *, is_repaired: bool = False) -> None:
        """Add the outcome of the candidate that does best on the validation part, if some pass among them."""
        settings, test, bound = self.settings, self.rows.test, self.settings.bound
        on_validation = [bound.measure(self.rows.validation, one.validation) for one in candidates]
        on_test = [bound.measure(test, one.test) for one in candidates]
        order = sorted(range(len(candidates)), key=lambda index: on_validation[index].mcdp)

        def passes(index: int) -> bool:
            return self.tested.is_met(self.tested.measure(test, candidates[index].test))

        passed, _ = accept_in_order(order, passes)
        chosen = choose(on_validation, bound)
        if passed:
            chosen = max(passed, key=lambda index: on_validation[index].average_precision)
        differences = None
        if self.baseline is not None:
            scored = [one.validation for one in candidates]
            chosen = self.rule.choose(self.rows.validation, scored, on_validation)
            differences = self.rule.differences(test, candidates[chosen].test)
        promised = bound._replace(confidence=settings.confidence)
        scores = candidates[chosen].test
        outcome = Outcome(
            name,
            is_repaired,
            candidates[chosen].setting,
            on_validation[chosen],
            bound.is_met(on_validation[chosen]),
            bound.audit(test, scores, settings.confidence, settings.n_resamples, settings.seed),
            tuple((measured.mcdp, measured.average_precision) for measured in on_test),
            promise=promised.promise_of_test(test) if chosen in passed else "",
            tried=tuple(one.setting for one in candidates),
            differences=differences,
        )
        self.outcomes.append(outcome)
        self.models[outcome.name] = candidates[chosen].model
