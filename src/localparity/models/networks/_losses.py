"""Differentiable disparities of a batch, to add to any loss."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed, nn

from localparity._types import Criterion
from localparity._validation import (
    InputError,
    as_choice,
    as_count,
    as_epsilon,
    as_number,
    as_search,
    as_sharpness,
    as_temperature,
    setting,
)
from localparity.counts._comparison import CRITERIA, labels_of
from localparity.models.networks._smoothed_gap import (
    contrasts,
    largest_gap,
    largest_window,
    soft_gap,
    threshold_grid,
)

_GROUPS = "sensitive_features"
_CODES = "torch.as_tensor(np.unique(groups, return_inverse=True)[1])"


def check_batch(y_score: Any, sensitive_features: Any, y_true: Any, sample_weight: Any) -> None:
    """Raise a ValueError unless a batch consists of tensors of one length, and has rows."""
    columns = {_GROUPS: sensitive_features, "y_true": y_true, "sample_weight": sample_weight}
    columns = {name: values for name, values in columns.items() if values is not None}
    for name, values in {"y_score": y_score, **columns}.items():
        if not isinstance(values, Tensor):
            advice = _CODES if name == _GROUPS else f"torch.as_tensor({name})"
            raise InputError(f"must be a tensor, got {type(values).__name__}; use {advice}", name)
    if y_score.ndim != 1:
        advice = {
            1: "; use y_score.squeeze(1)",
            2: "; use y_score[:, 1], or y_score[:, 1] - y_score[:, 0] for the logits of two classes",
        }.get(y_score.shape[1] if y_score.ndim == 2 else 0, "")
        raise InputError(f"must have shape (n_samples,), got {tuple(y_score.shape)}{advice}", "y_score")
    if not len(y_score):
        advice = "gather the rows of several processes with localparity.models.networks.gather_rows"
        raise InputError(f"is empty; leave out batches without rows, or {advice}", "y_score")
    for name, values in columns.items():
        if values.shape != y_score.shape:
            advice = f"; use {name}.squeeze(1)" if values.shape == (len(y_score), 1) else ""
            raise InputError(
                f"has shape {tuple(values.shape)}, {setting('y_score')} has {tuple(y_score.shape)}{advice}",
                name,
            )


def is_readable(tensor: Tensor) -> bool:
    """Whether values can be read at no cost: on the CPU, and not inside a transform or a compilation."""
    if tensor.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    try:
        # A tensor inside ``torch.func`` has no memory.
        return tensor.data_ptr() is not None
    except RuntimeError:
        return False


def gather_rows(values: Tensor) -> Tensor:
    """Gather the rows of all processes, one process after the other; gradients flow to the process's own.

    Parameters
    ----------
    values : Tensor of shape (n_samples, ...)
        This process's rows; the processes may have different numbers of them.

    Returns
    -------
    Tensor
        The same on every process; `values` itself if there is one process.

    Examples
    --------
    >>> import torch
    >>> gather_rows(torch.tensor([0.1, 0.2]))
    tensor([0.1000, 0.2000])
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return values
    gathered: Tensor = _Gather.apply(values)  # type: ignore[no-untyped-call]
    return gathered


class _Gather(torch.autograd.Function):
    """Every process computes the same loss, whose gradients are then averaged over the processes.

    So the gradient of a gathered row is multiplied by their number.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        size = torch.tensor([len(values)], device=values.device)
        sizes = [torch.zeros_like(size) for _ in range(distributed.get_world_size())]
        distributed.all_gather(sizes, size)
        counts = [int(size) for size in sizes]
        padded = values.new_zeros((max(counts), *values.shape[1:]))
        padded[: len(values)] = values
        parts = [torch.empty_like(padded) for _ in counts]
        distributed.all_gather(parts, padded)
        start = sum(counts[: distributed.get_rank()])
        ctx.own = slice(start, start + len(values))
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0][ctx.own] * distributed.get_world_size()


class ScoredRows(NamedTuple):
    """Scores with the groups' codes, labels and weights, as the losses compute with them."""

    scores: Tensor
    groups: Tensor
    y_true: Tensor
    sample_weight: Tensor


class ScoreMemory(nn.Module):
    """A ring buffer of the last rows scored, which show what a batch is too small to show.

    The group of an empty slot is -1.
    """

    scores: Tensor
    groups: Tensor
    y_true: Tensor
    sample_weight: Tensor
    written: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("scores", torch.zeros(size))
        self.register_buffer("groups", torch.full((size,), -1, dtype=torch.int64))
        self.register_buffer("y_true", torch.zeros(size))
        self.register_buffer("sample_weight", torch.zeros(size))
        self.register_buffer("written", torch.zeros((), dtype=torch.int64))
        self.begun = False

    def rows(self, batch: ScoredRows) -> ScoredRows:
        """The rows remembered; before there are any, the batch itself."""
        if not self.begun:
            return batch._replace(scores=batch.scores.detach())
        return ScoredRows(self.scores.to(batch.scores), self.groups, self.y_true, self.sample_weight)

    @torch.no_grad()
    def remember(self, batch: ScoredRows) -> None:
        """Write the batch over the oldest rows."""
        size, count = len(self.scores), len(batch.scores)
        slots = (self.written + torch.arange(count, device=self.scores.device))[-size:] % size
        for name, values in batch._asdict().items():
            buffer = getattr(self, name)
            buffer[slots] = values[-size:].to(buffer)
        self.written += count
        self.begun = True


SEARCHES = ("exact", "probe", "frozen", "soft")
# The paper's value for tables: the sigmoid spans a few tenths of the score range, so that most rows of a
# batch have a gradient. A higher temperature follows MCDP more closely and moves fewer rows.
DEFAULT_TEMPERATURE = 10.0
# The paper's objective is the maximum, and only this search is sure to find it.
DEFAULT_SEARCH = "exact"
DEFAULT_SHARPNESS = 8.0
_ABCC_POINTS = 101
_PROBES = 100


class _DisparityLoss(nn.Module):
    """What the losses share: the comparison, the checks and the scale of the scores."""

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
        sensitive_features: Tensor,
        y_true: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the disparity of a batch.

        Parameters
        ----------
        y_score : Tensor of shape (n_samples,)
            Scores, or logits with ``from_logits=True``.
        sensitive_features : Tensor of shape (n_samples,)
            The group of each row as a code from 0, below `n_groups` if given. Other codes raise a ValueError;
            on a GPU and inside ``torch.func.vmap`` or ``torch.compile``, where checking them would block, the
            result is NaN instead.
        y_true : Tensor of shape (n_samples,), optional
            Labels 0 and 1, if the criterion needs them.
        sample_weight : Tensor of shape (n_samples,), optional
            Weights >= 0.

        Returns
        -------
        Tensor
            A scalar >= 0; 0, with a gradient of zeros, if the batch lacks a group. With a memory, the value
            is the memory's.
        """
        check_batch(y_score, sensitive_features, y_true, sample_weight)
        if y_true is None and labels_of(self.criterion) != (None,):
            raise InputError(f"criterion {self.criterion!r} needs {setting('y_true')}, got None")
        scores = torch.sigmoid(y_score) if self.from_logits else y_score
        labels = torch.zeros_like(y_score) if y_true is None else y_true
        weights = torch.ones_like(y_score) if sample_weight is None else sample_weight
        return self._disparity(ScoredRows(scores, sensitive_features, labels, weights))

    def _disparity(self, rows: ScoredRows) -> Tensor:
        return self._of_comparisons(rows.scores, self._contrasts(rows, self._count(rows.groups))).amax()

    def _of_comparisons(self, scores: Tensor, contrast: Tensor) -> Tensor:
        """The disparity of each comparison."""
        raise NotImplementedError

    def _contrasts(self, rows: ScoredRows, n_groups: int, *, checked: bool = True) -> Tensor:
        """The contrasts; if checked, NaN where a code that could not be read belongs to no group."""
        contrast = contrasts(
            rows.groups,
            n_groups,
            criterion=self.criterion,
            y_true=rows.y_true,
            sample_weight=rows.sample_weight,
            dtype=rows.scores.dtype,
        )
        if not checked or self.n_groups is None or is_readable(rows.groups):
            return contrast
        unknown = (rows.groups < 0) | (rows.groups >= self.n_groups)
        return torch.where(unknown.any(), math.nan, contrast)

    def _count(self, groups: Tensor, *others: Tensor) -> int:
        """The number of groups: as given, or one more than the largest code; other codes are refused."""
        if groups.is_floating_point() or groups.is_complex():
            reason = f"must be integers or booleans, got {groups.dtype}; use {_GROUPS}.long() for codes"
            raise InputError(reason, _GROUPS)
        if self.n_groups is not None and not is_readable(groups):
            return self.n_groups
        lowest, highest = (int(end) for end in torch.aminmax(groups))
        if lowest < 0:
            raise InputError(f"must hold codes >= 0, got {lowest}", _GROUPS)
        if self.n_groups is None:
            return max(2, highest + 1, *(int(codes.max()) + 1 for codes in others))
        if highest >= self.n_groups:
            raise InputError(f"must hold codes below n_groups={self.n_groups}, got {highest}", _GROUPS)
        return self.n_groups


class DPLoss(_DisparityLoss):
    """The largest difference between two groups' mean scores.

    Parameters
    ----------
    criterion : str, default="demographic_parity"
        Who is compared: "demographic_parity", "equal_opportunity", "predictive_equality" or
        "equalized_odds" (the worse of the two labels).
    from_logits : bool, default=False
        Whether the loss takes logits in place of scores.
    n_groups : int, optional
        The number of groups. None reads it from the largest code in the batch, which does not work under
        ``torch.func.vmap``, ``torch.compile`` and CUDA graphs.

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

    The area is computed by the trapezoidal rule on 101 points of [0, 1].

    Parameters
    ----------
    temperature : float, default=10.0
        The steepness of the sigmoid that replaces the step of a distribution. A higher one follows ABCC more
        closely and gives fewer rows a gradient.
    criterion, from_logits, n_groups
        As in `DPLoss`.

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
        temperature: float = DEFAULT_TEMPERATURE,
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

    The maximiser is found first and held constant in the gradient, which by the envelope theorem is the
    gradient of the maximum.

    Parameters
    ----------
    temperature : float, default=10.0
        The steepness of the sigmoid that replaces the step of a distribution. A higher one follows MCDP more
        closely and gives fewer rows a gradient.
    epsilon : float, default=0.0
        The half-width of the windows; above 0 with ``search="exact"`` only.
    search : str, default="exact"
        "exact" finds the true maximiser; "probe" takes the best of 100 points between the lowest and the
        highest score; "frozen" keeps to `threshold`; "soft" takes a p-norm of the gap over all
        thresholds, with the power `sharpness`: with sharpness 1 it is the area between the distributions
        (ABCC), and it tends to the maximum as the sharpness grows.
    threshold : float, optional
        Where ``search="frozen"`` measures the gap.
    sharpness : float, default=8.0
        The power of ``search="soft"``.
    memory : int, default=0
        The number of recent rows to remember. The thresholds and the signs of the gaps are then found in the
        memory, and the gradient, taken on the batch, is unbiased given them; the value is the memory's
        disparity. For small groups and small batches.
    criterion, from_logits, n_groups
        As in `DPLoss`.

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
        temperature: float = DEFAULT_TEMPERATURE,
        epsilon: float = 0.0,
        *,
        search: str = DEFAULT_SEARCH,
        threshold: float | None = None,
        sharpness: float = DEFAULT_SHARPNESS,
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
            raise ValueError("search='frozen' needs a threshold, got None")
        number = math.nan if threshold is None else as_number(threshold, "threshold")
        self.register_buffer("threshold", torch.tensor(number), persistent=False)
        rows = as_count(memory, "memory", at_least=0)
        self.memory = ScoreMemory(rows) if rows else None

    def _disparity(self, rows: ScoredRows) -> Tensor:
        if self.memory is not None:
            return self._disparity_in(self.memory, rows)
        contrast = self._contrasts(rows, self._count(rows.groups))
        thresholds, shares = self._where(rows.scores.detach(), contrast)
        gaps = soft_gap(rows.scores, contrast, thresholds, self.temperature).abs()
        return (shares * gaps).sum(-1).amax()

    def _disparity_in(self, memory: ScoreMemory, rows: ScoredRows) -> Tensor:
        """The disparity of the memory, with the gradient of the batch at the memory's thresholds."""
        past = memory.rows(rows)
        n_groups = self._count(rows.groups, past.groups)
        contrast = self._contrasts(rows, n_groups)
        remembered = self._contrasts(past, n_groups, checked=False)
        thresholds, shares = self._where(past.scores, remembered)
        known = soft_gap(past.scores, remembered, thresholds, self.temperature)
        here = soft_gap(rows.scores, contrast, thresholds, self.temperature)
        values = (shares * known.abs()).sum(-1)
        worst = values.argmax(keepdim=True)
        moving = (shares * known.sign() * here).sum(-1).gather(0, worst)[0]
        if self.training:
            memory.remember(rows)
        return values.gather(0, worst)[0] + moving - moving.detach()

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
