"""The scores of a part of a data set, and their metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity.metrics import abcc, delta_dp, mcdp_profile
from localparity.metrics._mcdp import PAPER_EPSILONS


def mcdp_name(epsilon: float) -> str:
    """The metric's name at an epsilon."""
    return f"mcdp_{epsilon:g}".replace(".", "_")


METRIC_NAMES = ("ap", "delta_dp", "delta_dp_mean", "abcc", *map(mcdp_name, PAPER_EPSILONS))


class PartScores:
    """The scores of a validation or test part.

    Parameters
    ----------
    score : ndarray of shape (n_samples,)
        Scores in [0, 1], kept as float32.
    group : ndarray of shape (n_samples,)
        The groups, kept as text.
    label : ndarray of shape (n_samples,)
        Labels 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> import localparity as lp
    >>> part = lp.paper.PartScores(np.array([0.1, 0.9]), np.array(["f", "m"]), np.array([0, 1]))
    >>> part.measure("test")["test_mcdp_0"]
    1.0
    """

    def __init__(self, score: NDArray[Any], group: NDArray[Any], label: NDArray[Any]) -> None:
        self.score = score.astype(np.float32)
        self.group = group.astype(str)
        self.label = label.astype(np.int8)

    def measure(self, part: str) -> dict[str, float]:
        """Compute average precision and the disparities.

        Parameters
        ----------
        part : str
            The part's name, with which the names of the metrics start.

        Returns
        -------
        dict of str to float
            The metrics, as fractions.
        """
        from sklearn.metrics import average_precision_score

        codes = np.unique(self.group, return_inverse=True)[1]
        compared: dict[str, Any] = {"y_score": self.score, "sensitive_features": codes}
        profile = mcdp_profile(None, **compared)
        found = {
            "ap": float(average_precision_score(self.label, self.score)),
            "delta_dp": delta_dp(None, **compared, threshold=0.5),
            "delta_dp_mean": delta_dp(None, **compared),
            "abcc": abcc(None, **compared),
            **{mcdp_name(epsilon): float(profile(epsilon)) for epsilon in PAPER_EPSILONS},
        }
        return {f"{part}_{name}": value for name, value in found.items()}

    def group_sizes(self) -> list[int]:
        """Count the people in each group.

        Returns
        -------
        list of int
            The counts, in the order of the groups' names.
        """
        return [int((self.group == group).sum()) for group in np.unique(self.group)]
