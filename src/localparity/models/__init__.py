"""Models whose local disparity is penalised, repaired or kept within a bound.

Networks need the extra `train`, trees the extra `boost`; each is imported on first use.
"""

from typing import TYPE_CHECKING

from localparity._lazy import lazy_names

if TYPE_CHECKING:
    from localparity.models._bound import BoundNotMetWarning, Trial
    from localparity.models._compare import compare
    from localparity.models._encoding import UnseenValuesWarning
    from localparity.models._folder import load
    from localparity.models._outcomes import ModelComparison, Outcome
    from localparity.models.networks import (
        METHODS,
        LocalParityClassifier,
        Method,
        MethodOptions,
        Network,
        ScoredBatch,
        TensorRows,
        Trainer,
        TrainingPlan,
        gather_rows,
    )
    from localparity.models.repair import GroupBlindRepair, RepairedClassifier, ScoreMap, ScoreRepair
    from localparity.models.trees import (
        LocalParityLGBMClassifier,
        LocalParityXGBClassifier,
        MCDPObjective,
        TableClassifier,
        TableRegressor,
    )

__all__ = [
    "METHODS",
    "BoundNotMetWarning",
    "GroupBlindRepair",
    "LocalParityClassifier",
    "LocalParityLGBMClassifier",
    "LocalParityXGBClassifier",
    "MCDPObjective",
    "Method",
    "MethodOptions",
    "ModelComparison",
    "Network",
    "Outcome",
    "RepairedClassifier",
    "ScoreMap",
    "ScoreRepair",
    "ScoredBatch",
    "TableClassifier",
    "TableRegressor",
    "TensorRows",
    "Trainer",
    "TrainingPlan",
    "Trial",
    "UnseenValuesWarning",
    "compare",
    "gather_rows",
    "load",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_bound": ["BoundNotMetWarning", "Trial"],
        "_compare": ["compare"],
        "_encoding": ["UnseenValuesWarning"],
        "_folder": ["load"],
        "_outcomes": ["ModelComparison", "Outcome"],
        "networks": [
            "METHODS",
            "LocalParityClassifier",
            "Method",
            "MethodOptions",
            "Network",
            "ScoredBatch",
            "TensorRows",
            "Trainer",
            "TrainingPlan",
            "gather_rows",
        ],
        "repair": ["GroupBlindRepair", "RepairedClassifier", "ScoreMap", "ScoreRepair"],
        "trees": [
            "LocalParityLGBMClassifier",
            "LocalParityXGBClassifier",
            "MCDPObjective",
            "TableClassifier",
            "TableRegressor",
        ],
    },
)
