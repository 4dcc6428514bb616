"""From what a caller has, arrays or data that was checked or counted before, to what metrics work on."""

from __future__ import annotations

from typing import Any

from localparity._types import ArrayLike, Groups, ScoreRange
from localparity._validation import NO_BLANKS, Blanks
from localparity.counts._comparison import Comparison, require_labels
from localparity.counts._score_counts import ScoreCounts
from localparity.predictions import Predictions, check_predictions

Data = Predictions | ScoreCounts


def as_data(
    comparison: Comparison,
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None,
    sensitive_features: Groups | None,
    *,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    keep_labels: bool = False,
    blanks: Blanks = NO_BLANKS,
) -> Data:
    """The arguments that all metrics share, checked; labels where the criterion needs them, or all given."""
    if not isinstance(y_true, Predictions | ScoreCounts):
        require_labels(comparison, y_true)
        if y_score is None:
            raise ValueError("y_score must be the score of each row, got None")
        return check_predictions(
            y_true if comparison.needs_labels or keep_labels else None,
            y_score,
            sensitive_features,
            sample_weight=sample_weight,
            cluster=cluster,
            score_range=score_range,
            blanks=blanks,
        )
    if isinstance(y_true, Predictions):
        require_labels(comparison, y_true.labels)
    arrays = {
        "y_score": y_score,
        "sensitive_features": sensitive_features,
        "sample_weight": sample_weight,
        "cluster": cluster,
    }
    for name, given in arrays.items():
        if given is not None:
            raise ValueError(f"{name} must be None with {type(y_true).__name__}, which has it already")
    if score_range not in ((0.0, 1.0), y_true.score_range):
        raise ValueError(
            f"score_range is {score_range}, that of the {type(y_true).__name__} is {y_true.score_range}"
        )
    return y_true


def as_counts(data: Data) -> ScoreCounts:
    """Predictions counted; counts as they are."""
    return data if isinstance(data, ScoreCounts) else ScoreCounts.from_predictions(data)


def input_counts(
    comparison: Comparison,
    y_true: ArrayLike | Data | None,
    y_score: ArrayLike | None,
    sensitive_features: Groups | None,
    **options: Any,
) -> ScoreCounts:
    """What a function was given, counted; options as in `as_data`."""
    return as_counts(as_data(comparison, y_true, y_score, sensitive_features, **options))
