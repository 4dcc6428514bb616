"""Smoothed cumulative distributions of the groups' scores, and their gaps.

Everything is written with masks and fixed shapes, so that it works under ``torch.func.vmap``,
``torch.compile`` and CUDA graphs.
"""

from __future__ import annotations

import math
from itertools import combinations

import torch
from torch import Tensor

from localparity._types import Criterion
from localparity.counts._comparison import labels_of


def contrasts(
    groups: Tensor,
    n_groups: int,
    *,
    criterion: Criterion = "demographic_parity",
    y_true: Tensor | None = None,
    sample_weight: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """For each comparison, each row's signed share: positive in the one group, negative in the other.

    A comparison is a pair of groups among the people that the criterion compares. The shares of each group
    sum to one, so that ``contrasts @ scores`` is a difference of means; a comparison that lacks one of its
    groups is all zeros. Groups are codes from 0; a row with a code outside ``range(n_groups)`` is ignored.
    The result has shape (comparisons, rows).
    """
    weights = torch.ones_like(groups, dtype=dtype) if sample_weight is None else sample_weight.to(dtype)
    rows = []
    for label in labels_of(criterion):
        counted = weights if label is None or y_true is None else weights * (y_true == label)
        members = [counted * (groups == group) for group in range(n_groups)]
        totals = [member.sum() for member in members]
        shares = [
            member / total.clamp_min(torch.finfo(dtype).tiny)
            for member, total in zip(members, totals, strict=True)
        ]
        for first, second in combinations(range(n_groups), 2):
            both = (totals[first] > 0) & (totals[second] > 0)
            rows.append((shares[first] - shares[second]) * both)
    return torch.stack(rows)


def soft_gap(scores: Tensor, contrast: Tensor, thresholds: Tensor, temperature: float) -> Tensor:
    r"""The smoothed gap of each comparison at thresholds.

    .. math::
        \tilde\Delta(t) = \sum_i c_i \sigma(\tau (t - p_i))

    Thresholds are the same for all comparisons, shape (points,), or each comparison's own, shape
    (comparisons, points), which is the shape of the result. As the temperature grows, the smoothed gap
    tends to the gap.
    """
    below = torch.sigmoid(temperature * (thresholds[..., None] - scores))
    if thresholds.ndim == 1:
        return contrast @ below.T
    return (below @ contrast[..., None])[..., 0]


def gap_slopes(
    scores: Tensor, contrast: Tensor, thresholds: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """The first and second derivative of `soft_gap` in the threshold, each comparison at its own points."""
    below = torch.sigmoid(temperature * (thresholds[..., None] - scores))
    bump = below * (1.0 - below)
    first = (bump @ contrast[..., None])[..., 0] * temperature
    second = ((bump * (1.0 - 2.0 * below)) @ contrast[..., None])[..., 0] * temperature**2
    return first, second


# The smoothed gap bends over lengths of 1/temperature, so a grid of an eighth of that sees every peak; the
# best peaks are then brought to machine precision by zooming in and by Newton's steps. Past a certain
# temperature the gap is a staircase, whose stairs a grid can miss: the middles between neighbouring scores
# join the grid.


_LARGEST_GRID = 1024
_PEAKS = 8
_ZOOM_POINTS = 9
_ZOOMS = 2
_NEWTON_STEPS = 3
_WINDOW_GRID = 4.0
_WINDOW_POINTS = 33
_WINDOW_ZOOMS = 12
_LEVEL = 1e-6
_HAIR = 1e-6
_STAIRCASE = 128.0


@torch.no_grad()
def largest_gap(scores: Tensor, contrast: Tensor, temperature: float) -> Tensor:
    """For each comparison, the threshold in [0, 1] with the largest absolute smoothed gap, as a column."""
    points = threshold_grid(scores, temperature)
    height = soft_gap(scores, contrast, points, temperature).abs()
    rising = torch.nn.functional.pad(height, (1, 1), value=-1.0)
    peaks = torch.where((height >= rising[:, :-2]) & (height >= rising[:, 2:]), height, height - 2.0)
    indices = peaks.topk(min(_PEAKS, points.numel()), dim=-1).indices
    best = points[indices]
    reach = torch.maximum(
        best - points[(indices - 1).clamp_min(0)], points[(indices + 1).clamp_max(points.numel() - 1)] - best
    )
    offsets = torch.linspace(-1.0, 1.0, _ZOOM_POINTS, dtype=scores.dtype, device=scores.device)
    for _ in range(_ZOOMS):
        nearby = (best[..., None] + reach[..., None] * offsets).clamp(0.0, 1.0)
        values = soft_gap(scores, contrast, nearby.flatten(1), temperature).abs().view(nearby.shape)
        best = nearby.gather(-1, values.argmax(-1, keepdim=True))[..., 0]
        reach = reach * (2.0 / (_ZOOM_POINTS - 1))
    best, value = _newton(scores, contrast, best, temperature)
    return best.gather(-1, value.argmax(-1, keepdim=True))


def _newton(scores: Tensor, contrast: Tensor, points: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """The points after a few of Newton's steps, each taken only where it climbs, and their absolute gaps."""
    value = soft_gap(scores, contrast, points, temperature).abs()
    for _ in range(_NEWTON_STEPS):
        first, second = gap_slopes(scores, contrast, points, temperature)
        step = torch.where(second == 0.0, 0.0, first / torch.where(second == 0.0, 1.0, second))
        moved = (points - step.clamp(-1.0, 1.0)).clamp(0.0, 1.0)
        reached = soft_gap(scores, contrast, moved, temperature).abs()
        points = torch.where(reached > value, moved, points)
        value = torch.maximum(value, reached)
    return points, value


def threshold_grid(scores: Tensor, temperature: float) -> Tensor:
    """Thresholds from 0 to 1 that are dense enough for a temperature."""
    wanted = max(64, math.ceil(8.0 * temperature))
    points = torch.linspace(
        0.0, 1.0, min(wanted, _LARGEST_GRID) + 1, dtype=scores.dtype, device=scores.device
    )
    if wanted <= _LARGEST_GRID:
        return points
    ordered = scores.sort().values
    middles = 0.5 * (ordered[1:] + ordered[:-1])
    return torch.cat([points, scores, middles]).sort().values


@torch.no_grad()
def largest_window(
    scores: Tensor, contrast: Tensor, temperature: float, epsilon: float
) -> tuple[Tensor, Tensor]:
    r"""For each comparison, the max-min point of MCDP(epsilon) as two thresholds and their shares.

    The window that carries the largest smallest gap usually has the same gap at both ends. How the value
    moves with the scores is then a mean of how the two ends move, with the shares that keep the window in
    balance, :math:`\lambda g'(l) + (1 - \lambda) g'(r) = 0`. Where the smallest gap lies inside the window,
    or the window is cut by the score range, one point has all of the share. Where every window has a
    threshold without a gap, there is no share, and MCDP(epsilon) is 0.

    Both have shape (comparisons, 2).
    """
    signed = torch.cat([contrast, -contrast])
    grid = threshold_grid(scores, _WINDOW_GRID * temperature)
    floor = _valleys(grid, soft_gap(scores, signed, grid, temperature))
    centres = _centres(grid, scores, temperature, epsilon)[None].expand(len(signed), -1)
    reach = torch.full_like(centres[:, :1], 1.0 / max(64, math.ceil(8.0 * temperature)))
    offsets = torch.linspace(-1.0, 1.0, _ZOOM_POINTS, dtype=scores.dtype, device=scores.device)
    for _ in range(_WINDOW_ZOOMS):
        values = _window_minimum(scores, signed, centres, temperature, epsilon, inside=(grid, floor))
        value, index = values.max(-1, keepdim=True)
        best = centres.gather(-1, index)
        centres = (best + reach * offsets).clamp(0.0, 1.0)
        reach = reach * (2.0 / (_ZOOM_POINTS - 1))
    positive, negative = value.chunk(2)
    above, below = best.chunk(2)
    best = torch.where(positive >= negative, above, below)
    sided = torch.where(positive >= negative, contrast, -contrast)
    ends = torch.cat([best - epsilon, best + epsilon], dim=-1).clamp(0.0, 1.0)
    return _balance(scores, sided, ends, temperature, _lowest(scores, sided, ends, temperature, grid))


def _centres(grid: Tensor, scores: Tensor, temperature: float, epsilon: float) -> Tensor:
    """The centres to begin with: the grid and, on a staircase, the windows that start or end at a stair."""
    if temperature <= _STAIRCASE:
        return grid
    reach = epsilon + 8.0 / temperature
    return torch.cat([grid, scores + reach, scores - reach]).clamp(0.0, 1.0)


def _valleys(grid: Tensor, height: Tensor) -> Tensor:
    """The heights on the grid, at a local minimum that of the parabola through it and its neighbours."""
    left, middle, right = height[:, :-2], height[:, 1:-1], height[:, 2:]
    bend = left + right - 2.0 * middle
    valley = (left > middle) & (right > middle)
    dip = torch.where(valley, (right - left).square() / (8.0 * torch.where(valley, bend, 1.0)), 0.0)
    return height - torch.nn.functional.pad(dip, (1, 1))


def _window_minimum(
    scores: Tensor,
    contrast: Tensor,
    centres: Tensor,
    temperature: float,
    epsilon: float,
    *,
    inside: tuple[Tensor, Tensor],
) -> Tensor:
    """The smallest gap in the windows around the centres: at their ends and on the grid inside.

    Among windows with the same valley inside, the one with the higher ends comes first by a hair, so that its
    ends do not pass for the smallest gap.
    """
    low, high = (centres - epsilon).clamp_min(0.0), (centres + epsilon).clamp_max(1.0)
    ends = soft_gap(scores, contrast, torch.cat([low, high], dim=-1), temperature)
    at_ends = torch.minimum(ends[:, : centres.shape[1]], ends[:, centres.shape[1] :])
    grid, floor = inside
    covered = (grid >= low[..., None]) & (grid <= high[..., None])
    within = torch.where(covered, floor[:, None, :], torch.inf).amin(-1)
    return torch.minimum(at_ends, within) + _HAIR * at_ends


def _lowest(scores: Tensor, contrast: Tensor, ends: Tensor, temperature: float, grid: Tensor) -> Tensor:
    """The threshold inside the window with the smallest gap: the best of the grid, then zoomed in on."""
    low, high = ends[:, :1], ends[:, 1:]
    height = soft_gap(scores, contrast, grid, temperature)
    height = torch.where((grid >= low) & (grid <= high), height, torch.inf)
    candidates = torch.cat([grid[height.argmin(-1, keepdim=True)].clamp(low, high), ends], dim=-1)
    reach = torch.full_like(low, 1.0 / max(64, math.ceil(8.0 * temperature)))
    offsets = torch.linspace(-1.0, 1.0, _WINDOW_POINTS, dtype=scores.dtype, device=scores.device)
    for _ in range(_WINDOW_ZOOMS):
        heights = soft_gap(scores, contrast, candidates, temperature)
        lowest = candidates.gather(-1, heights.argmin(-1, keepdim=True))
        candidates = (lowest + reach * offsets).clamp(low, high)
        reach = reach * (2.0 / (_WINDOW_POINTS - 1))
    return lowest


def _balance(
    scores: Tensor, contrast: Tensor, ends: Tensor, temperature: float, lowest: Tensor
) -> tuple[Tensor, Tensor]:
    """The ends of the window with their shares, or its lowest point where they do not balance."""
    slopes, _ = gap_slopes(scores, contrast, ends, temperature)
    rise, fall = slopes[:, :1].clamp_min(0.0), (-slopes[:, 1:]).clamp_min(0.0)
    heights = soft_gap(scores, contrast, ends, temperature)
    least = soft_gap(scores, contrast, lowest, temperature)
    noise = 16.0 * torch.finfo(scores.dtype).eps
    level = (heights - least).amax(-1, keepdim=True) <= _LEVEL * (rise + fall) + noise
    balanced = level & (ends[:, :1] > 0.0) & (ends[:, 1:] < 1.0) & (rise > 0.0) & (fall > 0.0)
    share = torch.where(balanced, fall / (rise + fall).clamp_min(torch.finfo(scores.dtype).tiny), 1.0)
    shares = torch.cat([share, 1.0 - share], dim=-1) * (least > 0.0)
    return torch.where(balanced, ends, lowest), shares
