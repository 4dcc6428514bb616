"""The maximal local disparity over splits of a sensitive feature that is a number, as a loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from localparity._types import Criterion
from localparity._validation import as_count, as_numbers
from localparity.models.networks._losses import MCDPLoss


class SplitMCDPLoss(MCDPLoss):
    """The largest `MCDPLoss` between people at or below a split of a feature, such as age, and people above.

    Parameters
    ----------
    splits : sequence of float
        Where the feature is split; `at_quantiles` chooses them.
    temperature, epsilon, search, sharpness
        As for `MCDPLoss`; without ``search="frozen"``, since each split has a maximiser of its own.
    criterion, from_logits
        As for `DPLoss`.

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
        temperature: float = 20.0,
        epsilon: float = 0.0,
        *,
        search: str = "exact",
        sharpness: float = 8.0,
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
    def at_quantiles(cls, feature: Any, n_splits: int = 9, **options: Any) -> SplitMCDPLoss:
        """A loss whose splits part the people of a feature into groups of one size.

        Parameters
        ----------
        feature : array-like
            One number a row of the training data.
        n_splits : int
            How many splits; where the feature's values repeat, there may be fewer.
        **options
            More arguments of the loss.

        Returns
        -------
        SplitMCDPLoss

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

    def _contrasts(
        self, groups: Tensor, y_true: Tensor | None, sample_weight: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        """A comparison of the two sides of each split; here `groups` is the feature itself."""
        # Rounded as the feature is, so that whoever is at a split stays there.
        splits = self.splits.to(groups.dtype) if groups.is_floating_point() else self.splits
        sides = (groups[None, :] > splits[:, None]).long()
        between = super()._contrasts
        return torch.cat([between(side, y_true, sample_weight, dtype) for side in sides])
