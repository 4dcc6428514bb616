"""What a comparison found: outcomes side by side, and a recommendation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localparity._text import capitalised, percent, points, signed_points
from localparity._types import Criterion
from localparity.metrics._within import Verdict, verdict_on, within_bound
from localparity.models._bound import Measured
from localparity.models._card import ModelCard
from localparity.models._dominance import Baseline, PairedDifferences
from localparity.models._rows import FittedOn

if TYPE_CHECKING:
    from localparity.models._frontier import Frontier
    from localparity.report.displays._models import ComparisonDisplay


@dataclass(frozen=True)
class Outcome:
    """A method at the setting chosen on the validation part, and how it did on the test part.

    Attributes
    ----------
    method, setting : str
        The method, and the chosen setting in words.
    repaired : bool
        Whether its scores are repaired, which needs the group at prediction.
    validation : Measured
        How it does on the validation part, which the choice is made by.
    met : bool
        Whether MCDP of the validation part is within the bound.
    test : Measured
        How it does on the test part, with an interval and the noise floor.
    settings : tuple of tuple of float
        MCDP and average precision of the test part at every setting tried.
    shortfall : float, optional
        The average precision of the test part that is given up beyond what group-blind scores need at this
        MCDP; below 0 where it is above the frontier. None for repaired scores, which look at the group and
        may lie beyond it.
    promise : str
        What the test part shows of the bound in the population, in a sentence; empty where it shows nothing.
    tried : tuple of str
        The settings tried, in words.
    differences : PairedDifferences, optional
        How it differs from the baseline on the test part; None where there is no baseline.

    Examples
    --------
    >>> measured = Measured(500, average_precision=0.74, mcdp=0.049)
    >>> Outcome("ERM", True, "repaired to 5%", measured, True, measured, settings=()).name
    'ERM, repaired'
    """

    method: str
    repaired: bool
    setting: str
    validation: Measured
    met: bool
    test: Measured
    settings: tuple[tuple[float, float], ...]
    shortfall: float | None = None
    promise: str = ""
    tried: tuple[str, ...] = ()
    differences: PairedDifferences | None = None

    @property
    def name(self) -> str:
        """The method, and whether its scores are repaired."""
        return f"{self.method}, repaired" if self.repaired else self.method

    @property
    def title(self) -> str:
        """The name, with the setting."""
        return f"{self.name} ({self.setting})" if self.setting else self.name


def measure_shortfalls(outcomes: Sequence[Outcome], frontier: Frontier | None) -> tuple[Outcome, ...]:
    """Return the outcomes, those that do not need the group with what they give up beyond the frontier."""
    if frontier is None:
        return tuple(outcomes)
    return tuple(
        outcome
        if outcome.repaired
        else replace(outcome, shortfall=frontier.shortfall(outcome.test.mcdp, outcome.test.average_precision))
        for outcome in outcomes
    )


@dataclass(frozen=True)
class ModelComparison:
    """Methods side by side under one protocol.

    Attributes
    ----------
    outcomes : tuple of Outcome
        One for each method, and one for its repaired scores.
    max_mcdp, epsilon, criterion
        The bound, the half-width of the windows, and who is compared.
    rows : tuple of int
        The number of rows of the training, the validation and the test part.
    left_out : dict
        Repairs that were out of reach, and why.
    frontier : Frontier, optional
        The best average precision that group-blind scores, fitted on the training part, reach at each MCDP of
        the test part.
    models : dict
        The fitted model of each outcome, by its name.
    fitted_on : FittedOn, optional
        Who was trained and chosen on.
    baseline : Baseline, optional
        The model that the others are alternatives to, where its scores were given.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> rows, options = (census.data, census.target), {"n_resamples": 50, "random_state": 0}
    >>> comparison = lp.models.compare(*rows, sensitive_features=census.sensitive_features, **options)
    >>> comparison.rows, [outcome.name for outcome in comparison.outcomes][:2]
    ((500, 250, 250), ['boosted trees', 'boosted trees, repaired'])
    >>> comparison.recommended in comparison.outcomes, "on test data" in comparison.recommendation
    (True, True)
    """

    outcomes: tuple[Outcome, ...]
    max_mcdp: float
    epsilon: float
    criterion: Criterion
    rows: tuple[int, int, int]
    left_out: dict[str, str]
    frontier: Frontier | None = field(default=None, repr=False)
    models: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    fitted_on: FittedOn | None = field(default=None, repr=False)
    baseline: Baseline | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"ModelComparison({len(self.outcomes)} models, recommended: {self.recommended.name})"

    def _repr_html_(self) -> str:
        """The models for a notebook."""
        from localparity.report.page._notebook import comparison_html

        return comparison_html(self)

    @property
    def recommended(self) -> Outcome:
        """The most accurate on the validation part of those with a promise, or else within the bound there.

        Where there are none, the one with the least MCDP. Where some dominate a baseline, the first of those.
        """
        return self._best(self.outcomes)

    @property
    def recommended_without_group(self) -> Outcome:
        """The same among those that do not need the group at prediction."""
        return self._best([outcome for outcome in self.outcomes if not outcome.repaired])

    def _best(self, outcomes: Sequence[Outcome]) -> Outcome:
        return next((one for one in self.dominating if one in outcomes), None) or _best(outcomes)

    @property
    def dominating(self) -> tuple[Outcome, ...]:
        """The outcomes that dominate the baseline, the least MCDP of the validation part first."""
        baseline = self.baseline
        if baseline is None:
            return ()
        return tuple(
            outcome
            for outcome in sorted(self.outcomes, key=lambda outcome: outcome.validation.mcdp)
            if outcome.differences is not None and outcome.differences.dominates(baseline.margin)
        )

    @property
    def model(self) -> Any:
        """The fitted model of the recommended outcome."""
        return self.models[self.recommended.name]

    def card(self, outcome: Outcome | None = None) -> ModelCard:
        """Return the model card of an outcome's model, with what the test part shows.

        Parameters
        ----------
        outcome : Outcome, optional
            One of the outcomes; by default the recommended one.

        Returns
        -------
        ModelCard
        """
        chosen = self.recommended if outcome is None else outcome
        card: ModelCard = self.models[chosen.name].card()
        promise = (
            f"{chosen.promise or card.promise} It was chosen among {len(self.outcomes)} on validation data, "
            f"where its MCDP({self.epsilon:g}) is {chosen.validation.mcdp:.4f}."
        )
        if self.baseline is not None:
            promise += f" On test data it has {_beside(chosen, self.baseline)}."
        card = replace(card, fitted_on=self.fitted_on, max_mcdp=self.max_mcdp)
        return replace(card, promise=promise, held_out=chosen.test)

    def save(
        self, folder: str | Path, card: ModelCard | None = None, *, outcome: Outcome | None = None
    ) -> None:
        """Write a fitted model and its model card to a folder; `localparity.load` loads it.

        Parameters
        ----------
        folder : path
            Where to; what an earlier `save` wrote there is replaced.
        card : ModelCard, optional
            What people should know of the model; by default `card(outcome)`.
        outcome : Outcome, optional
            Whose model to write; by default that of the recommended outcome.
        """
        chosen = self.recommended if outcome is None else outcome
        self.models[chosen.name].save(folder, self.card(chosen) if card is None else card)

    @property
    def recommendation(self) -> str:
        """What to use and what to know about it, in a few sentences."""
        return " ".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer, sentence by sentence: what to use, or which alternatives dominate the baseline."""
        return tuple(self._for_bound() if self.baseline is None else self._against(self.baseline))

    def _for_bound(self) -> list[str]:
        """What to use, then what else is within the bound."""
        best, without = self.recommended, self.recommended_without_group
        floor = best.test.noise_floor
        assert floor is not None
        sentences = [self._opening(best), *self._within(best)]
        if best.repaired:
            ending = "the nearest" if _rank(best) > _rank(without) == 0 else "the best"
            sentences.append(f"It needs the group at prediction; without it, {ending} is {_words(without)}.")
        if self.frontier is not None:
            gives_up = self.frontier.describe(without.test.mcdp, without.test.average_precision)
            sentences.append(f"{capitalised(without.name)} {gives_up}.")
        if not within_bound(floor, self.max_mcdp):
            sentences.append(
                f"With so few rows {percent(floor)} is expected under parity, above the bound: "
                "only more rows can tell."
            )
        return sentences

    def _against(self, baseline: Baseline) -> Iterator[str]:
        """Which alternatives dominate the baseline, how sure that is, and what stays open."""
        tried, dominating = len(self.outcomes), self.dominating
        enough = f"neither AP nor accuracy is lower by more than {points(baseline.margin)}"
        if dominating:
            verb = "dominates" if len(dominating) == 1 else "dominate"
            yield (
                f"{len(dominating)} of {tried} alternatives {verb} the baseline: MCDP({self.epsilon:g}) is "
                f"surely lower, and {enough}."
            )
            best = dominating[0]
            yield f"The best by validation data is {best.title}, with {_beside(best, baseline)}."
        else:
            known = [one.differences for one in self.outcomes if one.differences is not None]
            lower = sum(one.mcdp.high < 0.0 for one in known)
            kept = sum(one.keeps_accuracy(baseline.margin) for one in known)
            yield f"None of {tried} alternatives is known to dominate the baseline."
            yield f"MCDP({self.epsilon:g}) is surely lower for {lower} of them; for {kept} surely {enough}."
        if dominating and dominating[0].repaired:
            others = [outcome.title for outcome in dominating if not outcome.repaired]
            ending = f"the best is {others[0]}" if others else "none is known to dominate"
            yield f"It needs the group at prediction; without it, {ending}."
        yield (
            f"With probability {baseline.confidence:g}, in large samples, none of the {tried} is wrongly "
            f"said to dominate: an end of an interval is wrong with probability {baseline.error:.2g} at most."
        )
        yield from self._left_open(baseline)

    def _left_open(self, baseline: Baseline) -> Iterator[str]:
        """What the frontier and the search do not tell."""
        if self.frontier is not None:
            reached = self.frontier.least_mcdp_at(baseline.test.average_precision)
            line = "do not reach" if reached is None else f"with an MCDP of {percent(reached)} or more reach"
            yield (
                f"On the estimated frontier, group-blind scores {line} the baseline's AP; better models of "
                "the class and of the group may reach more."
            )
        settings = sum(len(outcome.tried) for outcome in self.outcomes)
        methods = len({outcome.method for outcome in self.outcomes})
        yield f"{settings} settings of {methods} methods were tried; of other models nothing is known."
        yield (
            f"None of them was trained on the {self.rows[2]:,} people of the test data; it is assumed that "
            "the baseline was not either, which its scores do not show."
        )

    def _opening(self, best: Outcome) -> str:
        """What to use, or why nothing is clear."""
        bound, words = f"the bound of {percent(self.max_mcdp)}", _words(best)
        if not best.met and not best.promise:
            return f"No model is within {bound} on validation data; the nearest is {words}."
        if best not in self.within_on_test:
            return f"No clear choice: the model chosen on validation data is above {bound}: {words}."
        if best.promise and best.test.interval is not None:
            sure = best.test.interval.confidence
            return f"Use {words}. It is within {bound} for new people with probability {sure:g}."
        return f"Use {words}, within {bound}. No model is known to be within it for new people."

    def _within(self, best: Outcome) -> Iterator[str]:
        """Name the models within the bound on test data in addition to the recommended one."""
        others = [outcome for outcome in self.within_on_test if outcome != best]
        listed = "; ".join(
            f"{outcome.name} (AP {percent(outcome.test.average_precision)}, MCDP "
            f"{percent(outcome.test.mcdp)})"
            for outcome in others
        )
        is_within = best in self.within_on_test
        if listed:
            yield f"{'Also within' if is_within else 'Within'} the bound on test data: {listed}."
        if not is_within:
            yield (
                "To choose among these by the test data, test the choice on other data."
                if listed
                else "No model is within the bound on test data."
            )

    @property
    def within_on_test(self) -> tuple[Outcome, ...]:
        """The outcomes whose MCDP of the test part is within the bound, the most accurate there first."""
        within = [outcome for outcome in self.outcomes if within_bound(outcome.test.mcdp, self.max_mcdp)]
        return tuple(sorted(within, key=lambda outcome: -outcome.test.average_precision))

    @property
    def measured(self) -> dict[str, Measured]:
        """The test part under each outcome and the baseline, by their names, the least MCDP first."""
        tests = {outcome.name: outcome.test for outcome in self.outcomes}
        if self.baseline is not None:
            tests["the baseline"] = self.baseline.test
        return dict(sorted(tests.items(), key=lambda item: item[1].mcdp))

    def verdict(self, outcome: Outcome) -> Verdict | None:
        """Return what the test part says of an outcome and the bound; None where it has no interval.

        Parameters
        ----------
        outcome : Outcome
            One of the outcomes.

        Returns
        -------
        str or None
            "within", "above" or "undecided".
        """
        interval = outcome.test.interval
        return None if interval is None else verdict_on(interval, self.max_mcdp)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        values = asdict(replace(self, models={}))
        del values["models"]
        values["recommendation"] = self.recommendation
        values["recommended"] = self.recommended.name
        verdicts = {outcome.name: self.verdict(outcome) for outcome in self.outcomes}
        values["verdicts"] = {name: verdict for name, verdict in verdicts.items() if verdict is not None}
        values["within_on_test"] = [outcome.name for outcome in self.within_on_test]
        values["dominating"] = [outcome.name for outcome in self.dominating]
        return values

    def to_html(self, path: str | PathLike[str], *, about: Sequence[str] = (), force: bool = False) -> None:
        """Write the comparison as one page that opens anywhere, offline.

        Parameters
        ----------
        path : path
            Where to write it.
        about : sequence of str
            What was compared, such as the file and its columns; the first line of the page.
        force : bool
            Overwrite the file if it exists.
        """
        from localparity.report.page._comparison import write_comparison

        write_comparison(Path(path), self, about, force=force)

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw average precision against MCDP.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; None makes new ones.

        Returns
        -------
        ComparisonDisplay
        """
        from localparity.report.displays._models import ComparisonDisplay

        return ComparisonDisplay(self).plot(ax)


def _rank(outcome: Outcome) -> int:
    """Return 2 for an outcome with a promise, 1 for one within the bound on the validation part, else 0."""
    return 2 if outcome.promise else int(outcome.met)


def _best(outcomes: Sequence[Outcome]) -> Outcome:
    highest = max(map(_rank, outcomes))
    if highest == 0:
        return min(outcomes, key=lambda outcome: outcome.validation.mcdp)
    ranked = (outcome for outcome in outcomes if _rank(outcome) == highest)
    return max(ranked, key=lambda outcome: outcome.validation.average_precision)


def _beside(outcome: Outcome, baseline: Baseline) -> str:
    """How an outcome and the baseline do on the test part, with the interval of each difference."""
    test, other, found = outcome.test, baseline.test, outcome.differences
    assert found is not None
    compared = (
        ("MCDP", test.mcdp, other.mcdp, found.mcdp),
        ("AP", test.average_precision, other.average_precision, found.average_precision),
        ("accuracy", test.accuracy, other.accuracy, found.accuracy),
    )
    return ", ".join(
        f"{name} {percent(own or 0.0)} against {percent(base or 0.0)} "
        f"({signed_points(change.low, change.high)} points)"
        for name, own, base, change in compared
    )


def _words(outcome: Outcome) -> str:
    test, interval = outcome.test, outcome.test.interval
    ends = "" if interval is None else f" ({percent(interval.low)} to {percent(interval.high)})"
    return (
        f"{outcome.title}, with AP {percent(test.average_precision)} and MCDP "
        f"{percent(test.mcdp)}{ends} on test data"
    )
