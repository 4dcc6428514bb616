"""Models whose local disparity is penalised, repaired or kept within a bound.

Networks need the extra `train`, trees the extra `boost`; each is imported on first use.
"""

from typing import TYPE_CHECKING

from localparity._lazy import lazy_names

if TYPE_CHECKING:
    from localparity.models._bound import BoundNotMetWarning, Trial
    from localparity.models._card import HeldOutAudit, ModelCard
    from localparity.models._compare import compare
    from localparity.models._encoding import UnseenValuesWarning
    from localparity.models._folder import load
    from localparity.models._frontier import Frontier, frontier
    from localparity.models._outcomes import ModelComparison, Outcome
    from localparity.models._rows import FittedOn
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
    from localparity.models.repair import (
        GroupBlindClassifier,
        GroupBlindRepair,
        RepairedClassifier,
        ScoreMap,
        ScoreRepair,
    )
    from localparity.models.trees import (
        LocalParityLGBMClassifier,
        LocalParityXGBClassifier,
        MCDPObjective,
        TableClassifier,
    )

__all__ = [
    "METHODS",
    "BoundNotMetWarning",
    "FittedOn",
    "Frontier",
    "GroupBlindClassifier",
    "GroupBlindRepair",
    "HeldOutAudit",
    "LocalParityClassifier",
    "LocalParityLGBMClassifier",
    "LocalParityXGBClassifier",
    "MCDPObjective",
    "Method",
    "MethodOptions",
    "ModelCard",
    "ModelComparison",
    "Network",
    "Outcome",
    "RepairedClassifier",
    "ScoreMap",
    "ScoreRepair",
    "ScoredBatch",
    "TableClassifier",
    "TensorRows",
    "Trainer",
    "TrainingPlan",
    "Trial",
    "UnseenValuesWarning",
    "compare",
    "frontier",
    "gather_rows",
    "load",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_bound": ["BoundNotMetWarning", "Trial"],
        "_card": ["HeldOutAudit", "ModelCard"],
        "_compare": ["compare"],
        "_encoding": ["UnseenValuesWarning"],
        "_folder": ["load"],
        "_frontier": ["Frontier", "frontier"],
        "_outcomes": ["ModelComparison", "Outcome"],
        "_rows": ["FittedOn"],
        "networks": [
            "LocalParityClassifier",
            "METHODS",
            "Method",
            "MethodOptions",
            "Network",
            "ScoredBatch",
            "TensorRows",
            "Trainer",
            "TrainingPlan",
            "gather_rows",
        ],
        "repair": [
            "GroupBlindClassifier",
            "GroupBlindRepair",
            "RepairedClassifier",
            "ScoreMap",
            "ScoreRepair",
        ],
        "trees": [
            "LocalParityLGBMClassifier",
            "LocalParityXGBClassifier",
            "MCDPObjective",
            "TableClassifier",
        ],
    },
)
