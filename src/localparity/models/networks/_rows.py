"""Training rows as tensors, and the order in which batches take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from localparity.models.networks._distributed import process_index, world_size


class Rows(NamedTuple):
    """Features, labels 0 and 1, group codes and weights, one a row.

    Examples
    --------
    >>> import localparity as lp
    >>> labels, groups = torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0, 1, 1])
    >>> rows = lp.models.Rows(torch.eye(3), labels, groups, weights=torch.ones(3))
    >>> rows.take(torch.tensor([2, 0])).groups
    tensor([1, 0])
    """

    features: Tensor
    labels: Tensor
    groups: Tensor
    weights: Tensor

    def take(self, rows: Tensor) -> Rows:
        """Some of the rows, in the given order."""
        return Rows(*(column[rows] for column in self))

    def compared(self) -> tuple[Tensor, Tensor, Tensor]:
        """Groups, labels and weights, as the losses take them."""
        return self.groups, self.labels, self.weights

    def to(self, device: torch.device) -> Rows:
        """The same rows on a device."""
        return Rows(*(column.to(device) for column in self))


class Batches:
    """Epoch after epoch of shuffled rows, in batches of the same size.

    What is left at the end of an epoch is too small for a batch and waits for a later epoch; with fewer rows
    than a batch has, every batch is all of them.

    Under several processes each takes its share of the same batch.

    Parameters
    ----------
    rows : int
        How many rows there are.
    batch_size : int
        How many of them a batch has.
    seed : int
        The same seed gives the same batches.

    Examples
    --------
    >>> batches = Batches(5, 3, seed=0)
    >>> len(batches.draw()), len(batches.draw())
    (3, 3)
    """

    def __init__(self, rows: int, batch_size: int, seed: int) -> None:
        self.rows, self.batch_size = rows, batch_size
        self.generator = torch.Generator().manual_seed(seed)
        self.order = torch.arange(0)

    @property
    def size(self) -> int:
        """How many rows every batch has."""
        return min(self.batch_size, self.rows)

    def draw(self) -> Tensor:
        """The row numbers of the next batch."""
        if len(self.order) < self.size:
            self.order = torch.randperm(self.rows, generator=self.generator)
        batch, self.order = self.order[: self.batch_size], self.order[self.batch_size :]
        return batch[process_index() :: world_size()]

    def state(self) -> dict[str, Tensor]:
        """Everything that the next batches depend on."""
        return {"order": self.order.clone(), "generator": self.generator.get_state()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from where `state` was taken."""
        self.order = state["order"]
        self.generator.set_state(state["generator"])


class BalancedBatches(Batches):
    """As many rows of each group in every batch, group after group.

    Each group has its own epochs; a group with fewer rows than its share of a batch is drawn with
    replacement.

    Parameters
    ----------
    groups : Tensor
        The group of each row as a code.
    n_groups : int
        How many groups there are.
    batch_size : int
        How many rows a batch has, over all groups; no more than there are.
    seed : int
        The same seed gives the same batches.

    Examples
    --------
    >>> batches = BalancedBatches(torch.tensor([0, 0, 0, 1]), 2, 4, seed=0)
    >>> batches.draw()[2:]
    tensor([3, 3])
    """

    def __init__(self, groups: Tensor, n_groups: int, batch_size: int, seed: int) -> None:
        super().__init__(len(groups), batch_size, seed)
        self.members = [torch.nonzero(groups == group)[:, 0].cpu() for group in range(n_groups)]
        self.orders = [self.order] * n_groups
        self.share = max(1, min(batch_size, len(groups)) // n_groups)

    @property
    def size(self) -> int:
        """How many rows every batch has."""
        return self.share * len(self.members)

    def draw(self) -> Tensor:
        """The row numbers of the next batch."""
        return torch.cat([self._of_group(group) for group in range(len(self.members))])

    def state(self) -> dict[str, Tensor]:
        """Everything that the next batches depend on."""
        orders = {f"order.{group}": order.clone() for group, order in enumerate(self.orders)}
        return {**super().state(), **orders}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from where `state` was taken."""
        super().restore(state)
        self.orders = [state[f"order.{group}"] for group in range(len(self.orders))]

    def _of_group(self, group: int) -> Tensor:
        members = self.members[group]
        if len(members) < self.share:
            places = torch.randint(len(members), (self.share,), generator=self.generator)
            return members[places][process_index() :: world_size()]
        if len(self.orders[group]) < self.share:
            self.orders[group] = members[torch.randperm(len(members), generator=self.generator)]
        batch, self.orders[group] = self.orders[group][: self.share], self.orders[group][self.share :]
        return batch[process_index() :: world_size()]


def balancing_weights(rows: Rows, n_groups: int) -> Rows:
    """The rows with weights that undo what balanced batches do to the groups' shares."""
    shares: Sequence[Tensor] = [(rows.groups == group).float().mean() for group in range(n_groups)]
    factor = torch.stack(list(shares))[rows.groups] * n_groups
    return rows._replace(weights=rows.weights * factor.to(rows.weights))
