"""The maximal local disparity over splits of a numeric sensitive feature, as a loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from localparity._types import ArrayLike, Criterion
from localparity._validation import as_count, as_numbers
from localparity.models.networks._losses import (
    DEFAULT_SEARCH,
    DEFAULT_SHARPNESS,
    DEFAULT_TEMPERATURE,
    MCDPLoss,
)
from localparity.models.networks._memory import ScoredRows


class SplitMCDPLoss(MCDPLoss):
    """The largest `MCDPLoss` over splits of a numeric feature, such as age.

    Each split compares the people at or below it with the people above it; the loss is called with the
    feature itself as `sensitive_features`.

    Parameters
    ----------
    splits : sequence of float
        Where the feature is split; `at_quantiles` chooses them.
    temperature : float, default=10.0
        The steepness of the sigmoid that replaces the step of a distribution. A higher one follows MCDP more
        closely and gives fewer rows a gradient.
    epsilon : float, default=0.0
        The half-width of the windows; above 0 with ``search="exact"`` only.
    search : str, default="exact"
        "exact", "probe" or "soft", as for `MCDPLoss`. "frozen" is refused, since each split has its own
        maximiser.
    sharpness : float, default=8.0
        The power of ``search="soft"``.
    criterion : str, default="demographic_parity"
        Who is compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds" (the worse of the two labels).
    from_logits : bool, default=False
        Whether the loss takes logits in place of scores.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> age = torch.tensor([20.0, 30.0, 40.0, 60.0])
    >>> loss = lp.losses.SplitMCDPLoss(splits=[25.0, 50.0], temperature=100.0)
    >>> round(loss(torch.tensor([0.2, 0.3, 0.4, 0.9]), age).item(), 2)
    1.0
    """

    splits: Tensor

    def __init__(
        self,
        splits: Sequence[float],
        temperature: float = DEFAULT_TEMPERATURE,
        epsilon: float = 0.0,
        *,
        search: str = DEFAULT_SEARCH,
        sharpness: float = DEFAULT_SHARPNESS,
        criterion: Criterion = "demographic_parity",
        from_logits: bool = False,
    ) -> None:
        super().__init__(
            temperature,
            epsilon,
            search=search,
            sharpness=sharpness,
            criterion=criterion,
            from_logits=from_logits,
            n_groups=2,
        )
        self.register_buffer("splits", torch.from_numpy(as_numbers(splits, "splits").copy()))

    @classmethod
    def at_quantiles(cls, feature: ArrayLike, n_splits: int = 9, **options: Any) -> SplitMCDPLoss:
        """Build a loss whose splits divide the people into groups of equal size.

        Parameters
        ----------
        feature : array-like of shape (n_samples,)
            The feature in the training data.
        n_splits : int, default=9
            The number of splits; there may be fewer if the feature's values repeat.
        **options
            Further arguments of `SplitMCDPLoss`.

        Returns
        -------
        SplitMCDPLoss
            The loss with these splits.

        Examples
        --------
        >>> import localparity as lp
        >>> lp.losses.SplitMCDPLoss.at_quantiles(range(1, 101), n_splits=3).splits.tolist()
        [25.0, 50.0, 75.0]
        """
        numbers = as_numbers(feature, "feature").copy()
        numbers.sort()
        parts = as_count(n_splits, "n_splits") + 1
        places = [-(-part * numbers.size // parts) - 1 for part in range(1, parts)]
        found = sorted({float(numbers[max(place, 0)]) for place in places} - {float(numbers[-1])})
        if not found:
            raise ValueError(f"feature has too few different values for n_splits={n_splits}")
        return cls(found, **options)

    def _contrasts(self, rows: ScoredRows) -> Tensor:
        """A comparison of the two sides of each split; the feature comes in place of the groups."""
        feature = rows.groups
        # Rounded as the feature is, so that a value at a split stays on its side.
        splits = self.splits.to(feature.dtype) if feature.is_floating_point() else self.splits
        sides = (feature[None, :] > splits[:, None]).long()
        between = super()._contrasts
        return torch.cat([between(rows._replace(groups=side)) for side in sides])
