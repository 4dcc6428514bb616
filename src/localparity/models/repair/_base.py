"""Classifiers that a repair wraps: checked, and fitted on some rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from localparity._types import Criterion, Seed
from localparity._validation import InputError, as_fraction, require, setting
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._score_counts import strata_of
from localparity.metrics._gap_curve import gap_curves
from localparity.metrics._within import within_bound
from localparity.models._folder import Files, FolderMixin, parse_files
from localparity.models._rows import TrainingRows
from localparity.predictions import Names
from localparity.uncertainty._bands import band_radius, repair_radii
from localparity.uncertainty._resampling import Draws

if TYPE_CHECKING:
    from localparity.models.repair._score_repair import ScoreRepair


_SKOPS = "estimator.skops"
_SKLEARN_TYPES = {
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
}
"""What fitted estimators of scikit-learn hold beside estimators, which skops trusts by itself."""


def check_wrapped(**estimators: Any) -> None:
    """Raise a ValueError for an estimator, by the name of its parameter, without probabilities."""
    for name, estimator in estimators.items():
        if estimator is not None and not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"must have predict_proba, got a {type(estimator).__name__}; "
                "wrap it in sklearn.calibration.CalibratedClassifierCV",
                name,
            )


def fit_wrapped(estimator: Any, rows: TrainingRows, targets: NDArray[Any], *, weighted: bool) -> Any:
    """Return a fitted copy of an estimator; it gets the groups if its `fit` takes them."""
    options: dict[str, Any] = {}
    if has_fit_parameter(estimator, "sensitive_features"):
        options["sensitive_features"] = rows.named_groups
    if weighted:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise InputError(
                f"must be None: {type(estimator).__name__}.fit does not take it", "sample_weight"
            )
        options["sample_weight"] = rows.weights
    return clone(estimator).fit(rows.features, targets, **options)


def dump_parts(**parts: Any) -> Files:
    """Return the files of fitted estimators, each in a folder that has the name of its parameter.

    Several of a kind are numbered. Those of scikit-learn are saved by skops.
    """
    files: Files = {}
    for name, given in parts.items():
        several = isinstance(given, list)
        for place, part in enumerate(given if several else [given]):
            found = part._dump_files() if isinstance(part, FolderMixin) else {_SKOPS: _dump(part, name)}
            folder = f"{name}/{place}" if several else name
            files |= {f"{folder}/{path}": content for path, content in found.items()}
    return files


def parse_part(files: Files, folder: str) -> Any:
    """Return the estimator whose files `dump_parts` put into a folder."""
    start = f"{folder}/"
    found = {path.removeprefix(start): files[path] for path in files if path.startswith(start)}
    return _parse(found[_SKOPS], f"{start}{_SKOPS}") if _SKOPS in found else parse_files(found)


def _dump(estimator: Any, name: str) -> bytes:
    """Return an estimator of scikit-learn in the format of skops, which holds no code."""
    skops = require("skops.io", extra="skops")
    try:
        content: bytes = skops.dumps(estimator)
        unknown = _unknown_types(content)
    except TypeError as error:
        unknown = [str(error)]
    if unknown:
        raise InputError(
            f"is a {type(estimator).__name__} with {', '.join(unknown)}, which only pickle could "
            "save; save it by other means, and repair_ alone",
            name,
        )
    return content


def _parse(content: bytes, name: str) -> Any:
    """Return the estimator that `_dump` wrote; types that it does not write are refused, and not made."""
    skops = require("skops.io", extra="skops")
    try:
        unknown = _unknown_types(content)
        if not unknown:
            return skops.loads(content, trusted=sorted(_SKLEARN_TYPES))
    except Exception as error:  # whatever skops or scikit-learn says of content that was made to harm
        raise InputError(f"cannot be read: {error}", name) from error
    raise InputError(f"must have types of scikit-learn alone, got {', '.join(unknown)}", name)


def _unknown_types(content: bytes) -> list[str]:
    skops = require("skops.io", extra="skops")
    return sorted(set(skops.get_untrusted_types(data=content)) - _SKLEARN_TYPES)


# What a repair promises for people it was not fitted on, and the message for a bound out of reach.


NAMES = Names("y", "scores", "sensitive_features", "sample_weight")
"""What a repair's messages call its arguments."""

AMONG = {
    "demographic_parity": "",
    "equal_opportunity": " of people with label 1",
    "predictive_equality": " of people with label 0",
    "equalized_odds": " of people with either label",
}


def margin_of(
    counts: ScoreCounts, criterion: Criterion, confidence: float, random_state: Seed = None
) -> float:
    """Return how much larger MCDP may be in the population than among the people fitted on.

    A person's repaired score is an increasing function of the score, so the share of a group whose repaired
    score is at most y is the share whose score is at most some s, of the population as of the people fitted
    on. The repaired gap at y is thus off by what the first group's distribution is off at one score, less
    what the second's is off at another: by no more than the widest band of all pairs (and labels).
    """
    comparison = Comparison(criterion)
    pairs, draws = gap_curves(counts, comparison), Draws(1000, random_state)
    return float(repair_radii(counts, comparison, pairs, confidence=confidence, draws=draws).max())


def sufficient_group_size(pairs: int, confidence: float, bound: float) -> int:
    """Return how many people of each group, no two with the same score, let a bound be promised.

    The least n for which the margin of two groups of n people, and one person's share beside it, are within
    the bound; the margin falls with the root of n. `pairs` pairs share the confidence.

    Examples
    --------
    >>> sufficient_group_size(1, 0.95, 0.05)
    2070
    """
    margin = float(band_radius((1.0, 1.0), (1.0 - confidence) / pairs))
    root = 0.5 * (math.sqrt(margin * margin + 4.0 * bound) - margin)
    return math.ceil(1.0 / (root * root))


def check_reached(repair: ScoreRepair, counts: ScoreCounts, reached: float) -> None:
    """Raise a ValueError where even the best repair leaves more than it aims for; say what would work."""
    bound = as_fraction(repair.max_mcdp, "max_mcdp")
    if within_bound(reached + repair.margin_, bound):
        return
    share, who = _largest_tie(counts, repair.criterion)
    if bound == 0.0 and repair.confidence is None and reached <= share:
        return  # the distributions coincide up to ties
    hint = f"use {setting('max_mcdp')} >= {round_up(reached + repair.margin_):g}"
    if repair.confidence is not None and not within_bound(repair.margin_ + share, bound):
        strata = strata_of(counts, Comparison(repair.criterion)).values()
        sizes = ", ".join(f"{atoms.size:,}" for stratum in strata for atoms in stratum.values())
        pairs = sum(math.comb(len(stratum), 2) for stratum in strata)
        margin = f"{setting(confidence=repair.confidence)} takes a margin of {repair.margin_:.4f}"
        why = f"{margin} for groups of {sizes}"
        if bound > 0.0:
            needed = sufficient_group_size(pairs, repair.confidence, bound)
            hint += f", or fit on {needed:,} people of each group with distinct scores"
    elif len(strata_of(counts, Comparison(repair.criterion))) > 1:
        why = f"one map per group for both labels leaves at least {reached:.4f}"
    else:
        why = f"people who share a score move together and leave at least {reached:.4f}: {who}"
    raise InputError(f"{setting(max_mcdp=bound)} is out of reach: {why}; {hint}")


def promise_sentence(repair: ScoreRepair, counts: ScoreCounts) -> str:
    """Return what holds after a repair, and for whom."""
    people = counts.size
    what = f"MCDP({repair.epsilon:g})"
    among = AMONG[repair.criterion]
    most = f"at most {max(repair.max_mcdp, repair.mcdp_):.4g}"
    if repair.confidence is None:
        return (
            f"{what}{among} is {most} among the {people:,} people fitted on; nothing is promised for "
            "others without a confidence."
        )
    about = "" if counts.exchangeable else "of about "
    return (
        f"With probability {about}{repair.confidence:g}, {what}{among} is {most} in the population that the "
        f"{people:,} people fitted on were drawn from, if they are an independent sample of it and their "
        "scores were not computed on rows that the model was trained on."
    )


def round_up(bound: float) -> float:
    """Return a number rounded up to four decimals.

    Examples
    --------
    >>> round_up(0.12), round_up(0.12 + 1e-16), round_up(0.12345)
    (0.12, 0.1201, 0.1235)
    """
    near = round(bound, 4)
    return near if near >= bound else (math.floor(1e4 * bound) + 1) / 1e4


def _largest_tie(counts: ScoreCounts, criterion: Criterion) -> tuple[float, str]:
    """Return the largest share of a group at one score, and a phrase that says who they are."""
    ties = []
    for stratum in strata_of(counts, Comparison(criterion)).values():
        for group, atoms in stratum.items():
            most = int(atoms.weights.argmax())
            share = float(atoms.weights[most] / atoms.weights.sum())
            ties.append(
                (share, f"{100 * share:.3g}% of group {group!r} have the score {atoms.scores[most]:g}")
            )
    return max(ties)
