"""The one place where arrays and numbers are checked and normalised.

Every function takes the value and returns it in the one form that the rest of the package works on, or
raises a ``ValueError`` that names the argument, what was expected and what came.
"""

from localparity._validation._arrays import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    Column,
    FloatArray,
    Scores,
    as_labels,
    as_numbers,
    as_score_range,
    as_scores,
    as_vector,
    as_weights,
    at_ends,
    check_rows,
    held_ends,
    place,
    rounding,
    score_resolution,
)
from localparity._validation._groups import (
    Group,
    Grouping,
    as_groups,
    is_missing,
    sort_groups,
)
from localparity._validation._numbers import (
    as_choice,
    as_count,
    as_epsilon,
    as_epsilons,
    as_level,
    as_number,
    as_rng,
    as_strength,
    as_threshold,
    unknown_name,
)

__all__ = [
    "LEAST_WEIGHT",
    "MOST_WEIGHT",
    "Column",
    "FloatArray",
    "Group",
    "Grouping",
    "Scores",
    "as_choice",
    "as_count",
    "as_epsilon",
    "as_epsilons",
    "as_groups",
    "as_labels",
    "as_level",
    "as_number",
    "as_numbers",
    "as_rng",
    "as_score_range",
    "as_scores",
    "as_strength",
    "as_threshold",
    "as_vector",
    "as_weights",
    "at_ends",
    "check_rows",
    "held_ends",
    "is_missing",
    "place",
    "rounding",
    "score_resolution",
    "sort_groups",
    "unknown_name",
]
