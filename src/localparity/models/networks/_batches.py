"""Training rows as tensors, and the order in which batches take them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class TensorRows(NamedTuple):
    """Rows to train on or to evaluate, as tensors.

    Parameters
    ----------
    features : Tensor of shape (n_samples, ...)
        What the network takes.
    labels, groups, weights : Tensor of shape (n_samples,)
        Labels 0 and 1 as floating-point numbers, groups as codes from 0, and weights >= 0.

    Examples
    --------
    >>> import localparity as lp
    >>> labels, groups = torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0, 1, 1])
    >>> rows = lp.models.networks.TensorRows(torch.eye(3), labels, groups, weights=torch.ones(3))
    >>> rows.take(torch.tensor([2, 0])).groups
    tensor([1, 0])
    """

    features: Tensor
    labels: Tensor
    groups: Tensor
    weights: Tensor

    def take(self, rows: Tensor) -> TensorRows:
        """Select rows.

        Parameters
        ----------
        rows : Tensor of int
            Their numbers, in the order wanted.

        Returns
        -------
        TensorRows
        """
        return TensorRows(*(column[rows] for column in self))


class Batches:
    """Epochs of shuffled rows, in batches of equal size.

    Rows left at the end of an epoch that do not fill a batch are skipped; if there are fewer rows than a
    batch has, every batch is all of them.
    """

    def __init__(self, rows: int, batch_size: int, seed: int) -> None:
        self.rows, self.batch_size = rows, batch_size
        self.generator = torch.Generator().manual_seed(seed)
        self.order = torch.arange(0)

    def draw(self) -> Tensor:
        """The row numbers of the next batch."""
        if len(self.order) < min(self.batch_size, self.rows):
            self.order = torch.randperm(self.rows, generator=self.generator)
        batch, self.order = self.order[: self.batch_size], self.order[self.batch_size :]
        return batch


class BalancedBatches(Batches):
    """Batches with equally many rows of each group, group after group.

    Each group has its own epochs; a group with fewer rows than its share of a batch is drawn with
    replacement. A batch has no more rows than there are.
    """

    def __init__(self, groups: Tensor, n_groups: int, batch_size: int, seed: int) -> None:
        super().__init__(len(groups), batch_size, seed)
        self.members = [torch.nonzero(groups == group)[:, 0].cpu() for group in range(n_groups)]
        self.orders = [self.order] * n_groups
        self.share = max(1, min(batch_size, len(groups)) // n_groups)

    def draw(self) -> Tensor:
        """The row numbers of the next batch."""
        return torch.cat([self._of_group(group) for group in range(len(self.members))])

    def _of_group(self, group: int) -> Tensor:
        members = self.members[group]
        if len(members) < self.share:
            indices = torch.randint(len(members), (self.share,), generator=self.generator)
            return members[indices]
        if len(self.orders[group]) < self.share:
            self.orders[group] = members[torch.randperm(len(members), generator=self.generator)]
        batch, self.orders[group] = self.orders[group][: self.share], self.orders[group][self.share :]
        return batch


def balancing_weights(rows: TensorRows, n_groups: int) -> TensorRows:
    """The rows with weights that undo what balanced batches do to the groups' shares."""
    shares = torch.stack([(rows.groups == group).float().mean() for group in range(n_groups)])
    factor = shares[rows.groups] * n_groups
    return rows._replace(weights=rows.weights * factor.to(rows.weights))
