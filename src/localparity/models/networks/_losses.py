"""Differentiable disparities of a batch, to add to anyone's loss."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from localparity._types import Criterion
from localparity._validation import (
    as_choice,
    as_count,
    as_epsilon,
    as_number,
    as_search,
    as_sharpness,
    as_temperature,
)
from localparity.counts._comparison import CRITERIA, labels_of
from localparity.models.networks._memory import ScoreMemory
from localparity.models.networks._replay import Replay
from localparity.models.networks._search import largest_gap, largest_window, threshold_grid
from localparity.models.networks._soft_cdf import contrasts, soft_gap

SEARCHES = ("exact", "probe", "frozen", "soft")
_ABCC_POINTS = 101
_PROBES = 100


class _DisparityLoss(nn.Module):
    """What the losses share: who is compared with whom, and on which scale the scores come."""

    def __init__(
        self,
        *,
        criterion: Criterion = "demographic_parity",
        from_logits: bool = False,
        n_groups: int | None = None,
    ) -> None:
        super().__init__()
        self.criterion = as_choice(criterion, "criterion", CRITERIA)
        self.from_logits = bool(from_logits)
        self.n_groups = None if n_groups is None else as_count(n_groups, "n_groups", at_least=2)

    def forward(
        self,
        y_score: Tensor,
        groups: Tensor,
        y_true: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """The disparity of the batch: a scalar that is not negative.

        Parameters
        ----------
        y_score : Tensor of shape (rows,)
            Scores, or logits with ``from_logits=True``.
        groups : Tensor of shape (rows,)
            The group of each row as a code from 0, below `n_groups` where that is given. Other codes are a
            ValueError; on a GPU and inside ``torch.func.vmap`` or ``torch.compile``, where to look at them
            with `n_groups` given would be to wait, the result is NaN instead.
        y_true : Tensor, optional
            Labels 0 and 1, where the criterion needs them.
        sample_weight : Tensor, optional
            Weights that are not negative.

        Returns
        -------
        Tensor
            A scalar; 0, with a gradient of zeros, where the batch lacks a group. With a memory, the value is
            the memory's.
        """
        if y_score.ndim != 1:
            shape = tuple(y_score.shape)
            raise ValueError(
                f"y_score has shape {shape} where one value a row is expected; squeeze(1) gives it"
            )
        for name, given in (("groups", groups), ("y_true", y_true), ("sample_weight", sample_weight)):
            if given is not None and given.shape != y_score.shape:
                raise ValueError(
                    f"{name} has shape {tuple(given.shape)} where y_score has {tuple(y_score.shape)}"
                )
        scores = torch.sigmoid(y_score) if self.from_logits else y_score
        return self._disparity(scores, groups, y_true, sample_weight)

    def _disparity(
        self, scores: Tensor, groups: Tensor, y_true: Tensor | None, sample_weight: Tensor | None
    ) -> Tensor:
        contrast = self._contrasts(groups, y_true, sample_weight, scores.dtype)
        return self._of_comparisons(scores, contrast).amax()

    def _of_comparisons(self, scores: Tensor, contrast: Tensor) -> Tensor:
        raise NotImplementedError

    def _contrasts(
        self, groups: Tensor, y_true: Tensor | None, sample_weight: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        contrast = self._contrasts_of(self._count(groups), groups, y_true, sample_weight, dtype)
        return self._of_known_codes(contrast, groups)

    def _contrasts_of(
        self,
        n_groups: int,
        groups: Tensor,
        y_true: Tensor | None,
        sample_weight: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor:
        if y_true is None and labels_of(self.criterion) != (None,):
            raise ValueError(f"y_true is None where criterion {self.criterion!r} needs the labels")
        return contrasts(
            groups,
            n_groups,
            criterion=self.criterion,
            y_true=y_true,
            sample_weight=sample_weight,
            dtype=dtype,
        )

    def _count(self, groups: Tensor, *others: Tensor) -> int:
        """How many groups there are: as given, or by the largest code of these and of others."""
        if self.n_groups is not None:
            if _is_readable(groups):
                _check_codes(groups, self.n_groups)
            return self.n_groups
        _check_codes(groups)
        return max(2, *(int(codes.max()) + 1 for codes in (groups, *others)))

    def _of_known_codes(self, contrast: Tensor, groups: Tensor) -> Tensor:
        """The contrasts, or NaN where a code that could not be looked at is no group's."""
        if self.n_groups is None or _is_readable(groups):
            return contrast
        unknown = (groups < 0) | (groups >= self.n_groups)
        return torch.where(unknown.any(), math.nan, contrast)


def _is_readable(groups: Tensor) -> bool:
    """Whether the codes can be looked at for nothing: on the CPU, and not inside a transform."""
    if groups.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    try:
        # A tensor inside a transform of torch.func has no memory of its own.
        return groups.data_ptr() is not None
    except RuntimeError:
        return False


def _check_codes(groups: Tensor, n_groups: int | None = None) -> None:
    """Every code is a group's."""
    lowest = int(groups.min())
    if lowest < 0:
        raise ValueError(f"groups must hold codes >= 0, got {lowest}")
    if n_groups is not None and (highest := int(groups.max())) >= n_groups:
        raise ValueError(f"groups must hold codes below n_groups, which is {n_groups}, got {highest}")


class DPLoss(_DisparityLoss):
    """The largest difference of two groups' mean scores.

    Parameters
    ----------
    criterion : str
        Which people are compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds", the worse of the two labels.
    from_logits : bool
        Whether the loss takes logits.
    n_groups : int, optional
        How many groups there are; None reads it from the largest code in the batch, which
        ``torch.func.vmap``, ``torch.compile`` and CUDA graphs cannot do.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> loss = lp.losses.DPLoss()
    >>> loss(torch.tensor([0.2, 0.4, 0.9]), torch.tensor([0, 0, 1]))
    tensor(0.6000)
    """

    def _of_comparisons(self, scores: Tensor, contrast: Tensor) -> Tensor:
        return (contrast @ scores).abs()


class ABCCLoss(_DisparityLoss):
    """The area between two groups' smoothed cumulative distributions, for the worst pair.

    The area is the trapezoid rule's over 101 points of [0, 1].

    Parameters
    ----------
    temperature : float
        The steepness of the sigmoid that stands for a step.
    criterion, from_logits, n_groups
        As for `DPLoss`.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> loss = lp.losses.ABCCLoss(temperature=100.0)
    >>> round(float(loss(torch.tensor([0.2, 0.4, 0.9]), torch.tensor([0, 0, 1]))), 3)
    0.6
    """

    def __init__(
        self,
        temperature: float = 20.0,
        *,
        criterion: Criterion = "demographic_parity",
        from_logits: bool = False,
        n_groups: int | None = None,
    ) -> None:
        super().__init__(criterion=criterion, from_logits=from_logits, n_groups=n_groups)
        self.temperature = as_temperature(temperature)

    def _of_comparisons(self, scores: Tensor, contrast: Tensor) -> Tensor:
        points = torch.linspace(0.0, 1.0, _ABCC_POINTS, dtype=scores.dtype, device=scores.device)
        return torch.trapezoid(soft_gap(scores, contrast, points, self.temperature).abs(), points)


class MCDPLoss(_DisparityLoss):
    r"""The maximal local disparity of smoothed cumulative distributions, for the worst pair.

    .. math::
        \max_{y_0} \min_{|y - y_0| \le \epsilon} |\tilde F_a(y) - \tilde F_b(y)|, \qquad
        \tilde F_g(y) = \frac{1}{n_g} \sum_{i \in g} \sigma(\tau (y - p_i))

    Where the maximum lies is found first and held constant in the gradient, which by the envelope theorem is
    the gradient of the maximum.

    Parameters
    ----------
    temperature : float
        The steepness of the sigmoid that stands for a step.
    epsilon : float
        The half-width of the windows; with ``search="exact"`` only.
    search : str
        "exact" finds the true maximiser; "probe" takes the best of 100 points between the lowest and the
        highest score; "frozen" keeps to `threshold`; "soft" takes a p-norm of the gap over all
        thresholds, with the power `sharpness`: with sharpness 1 it is the area between the distributions
        (ABCC), and with a growing one it goes to the maximum.
    threshold : float, optional
        Where ``search="frozen"`` measures the gap.
    sharpness : float
        The power of ``search="soft"``.
    memory : int
        How many recent rows are remembered. The thresholds and the gaps' signs there are then found in the
        memory, and the gradient, taken on the batch, is unbiased given them; the value is the memory's
        disparity. For small groups and small batches.
    criterion, from_logits, n_groups
        As for `DPLoss`.

    Examples
    --------
    >>> import torch
    >>> import localparity as lp
    >>> scores = torch.tensor([0.2, 0.4, 0.9], requires_grad=True)
    >>> loss = lp.losses.MCDPLoss(temperature=20.0)(scores, torch.tensor([0, 0, 1]))
    >>> loss.backward()
    >>> round(loss.item(), 2), bool((scores.grad[:2] < 0).all())
    (0.99, True)
    """

    threshold: Tensor

    def __init__(
        self,
        temperature: float = 20.0,
        epsilon: float = 0.0,
        *,
        search: str = "exact",
        threshold: float | None = None,
        sharpness: float = 8.0,
        memory: int = 0,
        criterion: Criterion = "demographic_parity",
        from_logits: bool = False,
        n_groups: int | None = None,
    ) -> None:
        super().__init__(criterion=criterion, from_logits=from_logits, n_groups=n_groups)
        self.temperature = as_temperature(temperature)
        self.epsilon = as_epsilon(epsilon)
        self.search = as_search(search, SEARCHES, self.epsilon)
        self.sharpness = as_sharpness(sharpness)
        if self.search == "frozen" and threshold is None:
            raise ValueError("threshold is None where search='frozen' needs a number")
        number = math.nan if threshold is None else as_number(threshold, "threshold")
        self.register_buffer("threshold", torch.tensor(number), persistent=False)
        rows = as_count(memory, "memory", at_least=0)
        self.memory = ScoreMemory(rows) if rows else None
        self._replayed = Replay(self._find)

    def _disparity(
        self, scores: Tensor, groups: Tensor, y_true: Tensor | None, sample_weight: Tensor | None
    ) -> Tensor:
        if self.memory is not None:
            return self._disparity_in(self.memory, scores, groups, y_true, sample_weight)
        # To count the groups of a batch is to wait for the GPU, which cannot be recorded.
        recordable = self.search == "exact" and self.n_groups is not None
        find = self._replayed if recordable else self._find
        contrast, thresholds, shares = find(scores.detach(), groups, y_true, sample_weight)
        gaps = soft_gap(scores, contrast, thresholds, self.temperature).abs()
        return (shares * gaps).sum(-1).amax()

    def _disparity_in(
        self,
        memory: ScoreMemory,
        scores: Tensor,
        groups: Tensor,
        y_true: Tensor | None,
        sample_weight: Tensor | None,
    ) -> Tensor:
        """The disparity of the memory, with the gradient of the batch at the memory's thresholds."""
        past = memory.rows(scores, groups, y_true, sample_weight)
        n_groups = self._count(groups, past.groups)
        contrast = self._contrasts_of(n_groups, groups, y_true, sample_weight, scores.dtype)
        contrast = self._of_known_codes(contrast, groups)
        remembered = self._contrasts_of(n_groups, past.groups, past.y_true, past.sample_weight, scores.dtype)
        thresholds, shares = self._where(past.scores, remembered)
        known = soft_gap(past.scores, remembered, thresholds, self.temperature)
        here = soft_gap(scores, contrast, thresholds, self.temperature)
        values = (shares * known.abs()).sum(-1)
        worst = values.argmax(keepdim=True)
        moving = (shares * known.sign() * here).sum(-1).gather(0, worst)[0]
        if self.training:
            memory.remember(scores, groups, y_true, sample_weight)
        return values.gather(0, worst)[0] + moving - moving.detach()

    def _find(
        self, scores: Tensor, groups: Tensor, y_true: Tensor | None, sample_weight: Tensor | None
    ) -> tuple[Tensor, ...]:
        """Who is compared with whom, at which thresholds, and with which shares of them."""
        contrast = self._contrasts(groups, y_true, sample_weight, scores.dtype)
        return contrast, *self._where(scores, contrast)

    def _where(self, scores: Tensor, contrast: Tensor) -> tuple[Tensor, Tensor]:
        """The thresholds at which each comparison's gap is taken, and their shares."""
        if self.search == "soft":
            return self._norm(scores, contrast)
        if self.epsilon > 0.0:
            return largest_window(scores, contrast, self.temperature, self.epsilon)
        if self.search == "exact":
            thresholds = largest_gap(scores, contrast, self.temperature)
        elif self.search == "probe":
            steps = torch.linspace(0.0, 1.0, _PROBES, dtype=scores.dtype, device=scores.device)
            points = scores.amin() + (scores.amax() - scores.amin()) * steps
            gaps = soft_gap(scores, contrast, points, self.temperature).abs()
            thresholds = points[gaps.argmax(-1, keepdim=True)]
        else:
            thresholds = self.threshold.to(scores).expand(len(contrast), 1)
        return thresholds, torch.ones_like(thresholds)

    def _norm(self, scores: Tensor, contrast: Tensor) -> tuple[Tensor, Tensor]:
        """The p-norm of the gap over [0, 1] as thresholds and shares.

        The norm is the sum of the gaps times its own derivatives in them (Euler), which are the shares.
        """
        points = threshold_grid(scores, self.temperature)
        widths = 0.5 * (torch.cat([points[1:], points[-1:]]) - torch.cat([points[:1], points[:-1]]))
        gaps = soft_gap(scores, contrast, points, self.temperature).abs()
        tiny = torch.finfo(scores.dtype).tiny ** 0.5
        relative = gaps / gaps.amax(-1, keepdim=True).clamp_min(tiny)
        norm = (widths * relative.pow(self.sharpness)).sum(-1, keepdim=True).clamp_min(tiny)
        return points, widths * relative.pow(self.sharpness - 1.0) * norm.pow(1.0 / self.sharpness - 1.0)
