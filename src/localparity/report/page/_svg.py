"""Drawings as inline SVG: step curves with direct labels, and values over time.

The box of a drawing is the region of its data. Places are shares of it, so that a drawing is as wide as its
column, and texts keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

import numpy as np

from localparity._scale import fractions_of
from localparity._text import number_text, points
from localparity._types import FloatArray, ScoreRange

_UNITS = 1000
_LONGEST_NAME = 28
_FAR_LEFT, _FAR_RIGHT, _WIDE_GAP = 0.2, 0.75, 0.2
_WORDS, _LINE = 0.2, 0.05
"""How wide a few words are, and half a line of them, as shares of a drawing."""
_WHOLE_RANGE = 0.95
"""A window of so much of the range is not shaded: it would colour the whole drawing."""
_FEW_SCORES = 21
"""Few whole scores are drawn as points: nobody scores between them."""


@dataclass
class Drawing:
    """A drawing of fractions, from 0 to `top`, over a range of numbers."""

    x_range: ScoreRange
    top: float = 1.0
    parts: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def x(self, number: float) -> float:
        """The place of a number, as a share of the width."""
        return float(fractions_of(np.array([number]), self.x_range)[0])

    def y(self, fraction: float) -> float:
        """The place of a fraction, as a share of the height."""
        return 1.0 - fraction / self.top

    def line(self, kind: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A straight line between two points, each a number and a fraction."""
        (x1, y1), (x2, y2) = start, end
        places = {"x1": self.x(x1), "y1": self.y(y1), "x2": self.x(x2), "y2": self.y(y2)}
        self._add("line", kind, "", places)

    def text(self, kind: str, x: float, y: float, text: str, *, dx: float = 0.0, dy: float = 0.0) -> None:
        """A text at a number and a fraction, moved by so many pixels and ems."""
        inside = f'<tspan dx="{dx:g}" dy="{dy:g}em">{escape(text)}</tspan>'
        self._add("text", kind, inside, {"x": self.x(x), "y": self.y(y)})

    def box(self, kind: str, low: float, high: float) -> None:
        """A stretch of numbers over the whole height."""
        left, right = self.x(low), self.x(high)
        self._add("rect", kind, "", {"x": left, "y": 0.0, "width": right - left, "height": 1.0})

    def circle(self, kind: str, x: float, y: float, radius: float) -> None:
        """A dot."""
        self.parts.append(
            f'<circle class="{kind}" cx="{_share(self.x(x))}" cy="{_share(self.y(y))}" r="{radius:g}"/>'
        )

    def _add(self, element: str, kind: str, inside: str, places: dict[str, float]) -> None:
        told = " ".join(f'{name}="{_share(place)}"' for name, place in places.items())
        self.parts.append(f'<{element} class="{kind}" {told}>{inside}</{element}>')

    def steps(self, kind: str, xs: FloatArray, ys: FloatArray) -> None:
        """A step function; it breaks where there is no number."""
        self._path(kind, _step_points(self._points(xs, ys)))

    def curve(self, kind: str, xs: FloatArray, ys: FloatArray) -> None:
        """A line from point to point; it breaks where there is no number, and one alone is a dot."""
        drawn, pen = [], False
        for x, y in self._points(xs, ys):
            drawn.append(
                "" if math.isnan(y) else f"{'L' if pen else 'M'}{x:.1f},{y:.1f}{'' if pen else 'h0'}"
            )
            pen = not math.isnan(y)
        self._path(kind, "".join(drawn))

    def band(self, kind: str, xs: FloatArray, low: FloatArray, high: FloatArray, *, steps: bool) -> None:
        """The area between two curves, with a part for each stretch that has numbers."""
        known = np.flatnonzero(~np.isnan(low))
        for run in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
            there, back = self._points(xs[run], high[run]), self._points(xs[run], low[run])
            there, back = (_corners(there), _corners(back)) if steps else (there, back)
            outline = [*there, *reversed(back)]
            if outline:
                self._path(kind, "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in outline) + "Z")

    def _points(self, xs: FloatArray, ys: FloatArray) -> list[tuple[float, float]]:
        places = _UNITS * fractions_of(xs, self.x_range)
        heights = _UNITS * (1.0 - np.clip(ys, 0.0, self.top) / self.top)
        return list(zip(places.tolist(), heights.tolist(), strict=True))

    def _path(self, kind: str, path: str) -> None:
        self.paths.append(f'<path class="{kind}" d="{path}"/>')

    def axes(self, x_marks: Iterable[tuple[float, str]], y_marks: Iterable[tuple[float, str]]) -> None:
        """Marks along the bottom and the left, with the lines that the eye follows."""
        low, high = self.x_range
        for y, text in y_marks:
            self.line("grid" if y else "axis", (low, y), (high, y))
            self.text("tick end", low, y, text, dx=-8, dy=0.35)
        for x, text in x_marks:
            self.text("tick middle", x, 0.0, text, dy=1.5)

    def svg(self, label: str) -> str:
        """The whole drawing, with what it shows in words."""
        curves = (
            f'<svg class="curves" viewBox="0 0 {_UNITS} {_UNITS}" preserveAspectRatio="none" '
            f'width="100%" height="100%">{"".join(self.paths)}</svg>'
        )
        return (
            f'<svg class="plot" role="img" aria-label="{escape(label)}">{curves}{"".join(self.parts)}</svg>'
        )


def _share(place: float) -> str:
    return f"{100.0 * place:.2f}%"


def _step_points(points: Sequence[tuple[float, float]]) -> str:
    drawn, pen = [], False
    for x, y in points:
        if not math.isnan(y):
            drawn.append(f"H{x:.1f}V{y:.1f}" if pen else f"M{x:.1f},{y:.1f}")
        pen = not math.isnan(y)
    return "".join(drawn)


def _corners(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners of a step function."""
    corners = [corner for (_, level), (x, y) in pairwise(points) for corner in ((x, level), (x, y))]
    return [*points[:1], *corners]


def round_marks(low: float, high: float, steps: int = 4) -> list[float]:
    """Round numbers of a range, in at least so many equal steps.

    Examples
    --------
    >>> round_marks(0.0, 1.0), round_marks(1.0, 10.0)
    ([0.0, 0.25, 0.5, 0.75, 1.0], [2.0, 4.0, 6.0, 8.0, 10.0])
    """
    longest = (high - low) / steps * (1.0 + 1e-9)
    tens = 10.0 ** math.floor(math.log10(longest))
    step = max(part * tens for part in (1.0, 2.0, 2.5, 5.0) if part * tens <= longest)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]


def score_marks(score_range: ScoreRange, *, whole: bool) -> list[tuple[float, str]]:
    """Marks of scores: every whole number of a few, round numbers of other scores."""
    low, high = score_range
    few = whole and high - low <= 10
    marks = [float(score) for score in range(math.ceil(low), math.floor(high) + 1)] if few else []
    return [(mark, number_text(mark, 4)) for mark in marks or round_marks(low, high)]


def round_top(highest: float) -> float:
    """The top of an axis of fractions that holds a number."""
    return next(top for top in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0) if top >= min(highest, 1.0))


def percent_marks(top: float) -> list[tuple[float, str]]:
    """Round percentages from 0 to the top.

    Examples
    --------
    >>> percent_marks(0.4)
    [(0.0, '0%'), (0.1, '10%'), (0.2, '20%'), (0.3, '30%'), (0.4, '40%')]
    """
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if top / step <= 5.0 + 1e-9)
    return [(round(step * i, 2), f"{100 * step * i:.0f}%") for i in range(math.floor(top / step + 1e-9) + 1)]


@dataclass(frozen=True, kw_only=True)
class RateCurves:
    """The share of two groups above each cutoff, and where they are told apart.

    Attributes
    ----------
    score_range, whole : tuple of float, bool
        The range of the scores, and whether scores are whole numbers.
    names : tuple of str
        The two groups.
    cutoffs, shares : ndarray, tuple of ndarray
        The cutoffs at which shares step, and the shares of each group above them.
    cutoff, rates : float, tuple of float
        The cutoff that is marked, and the two shares there.
    max_mcdp : float or None
        The bound, from which the marked gap is told apart.
    window : tuple of float or None
        Where the groups differ most.
    chance : float or None
        The gap that chance explains, where no difference was found.
    """

    score_range: ScoreRange
    whole: bool
    names: tuple[str, str]
    cutoffs: FloatArray
    shares: tuple[FloatArray, FloatArray]
    cutoff: float
    rates: tuple[float, float]
    max_mcdp: float | None = None
    window: tuple[float, float] | None = None
    chance: float | None = None

    @property
    def label(self) -> str:
        """What is drawn, in words."""
        rates = zip(self.names, share_texts(self.rates), strict=True)
        at = " and ".join(f"{share} of {name}" for name, share in rates)
        return f"Share above each cutoff: {at} score above {number_text(self.cutoff, 6)}."

    def drawing(self) -> Drawing:
        """The curves, each with its name at the cutoff, and a bracket between them."""
        drawing = Drawing(self.score_range)
        drawing.axes(score_marks(self.score_range, whole=self.whole), percent_marks(1.0))
        few = self.whole and self.cutoffs.size <= _FEW_SCORES
        (bottom, top), (low, high) = self.score_range, self.window or (0.0, 0.0)
        if 0.0 < high - low < _WHOLE_RANGE * (top - bottom):
            drawing.box(
                "window", *((max(low - 0.5, self.score_range[0]), high - 0.5) if few else (low, high))
            )
        if self.chance is not None:
            middle = (self.shares[0] + self.shares[1]) / 2.0
            ends = middle - self.chance / 2.0, middle + self.chance / 2.0
            drawing.band("chance", self.cutoffs, *ends, steps=not few)
        for kind, shares in zip(("first", "second"), self.shares, strict=True):
            if not few:
                drawing.steps(kind, self.cutoffs, shares)
                continue
            drawing.curve(kind, self.cutoffs, shares)
            for cutoff, share in zip(self.cutoffs.tolist(), shares.tolist(), strict=True):
                drawing.circle(kind, cutoff, share, 3.5)
        self._mark(drawing)
        return drawing

    def _mark(self, drawing: Drawing) -> None:
        """The bracket and the labels; the script moves them with the cutoff.

        Curves fall from left to right: there is room on the right above them, and on the left below.
        """
        high, low = self.rates
        place = drawing.x(self.cutoff)
        left, right = place > _FAR_RIGHT, place < _FAR_LEFT
        if self.chance is None:
            drawing.line("bracket", (self.cutoff, low), (self.cutoff, high))
            size = points(high - low, self.max_mcdp) if high > low else ""
            room = self._has_room(left=left)
            spot = (high + low) / 2.0 if room else high
            drawing.text(
                f"points{' end' * left}", self.cutoff, spot, size, **_moved(left, 0.35 if room else -1.65)
            )
        else:
            drawing.text("direct", self.cutoff, high, "shaded: within chance", dx=10, dy=-2.1)
        first, second = (
            f"{shortened(name)} {share}"
            for name, share in zip(self.names, share_texts(self.rates), strict=True)
        )
        drawing.text(f"name first{' end' * left}", self.cutoff, high, first, **_moved(left, -0.4))
        below = -0.4 if right and high - low >= _WIDE_GAP else 1.0
        drawing.text(
            f"name second{' end' * (not right)}", self.cutoff, low, second, **_moved(not right, below)
        )

    def _has_room(self, *, left: bool) -> bool:
        """Whether the curves leave room for a few words next to the middle of the bracket."""
        (bottom, top), middle = self.score_range, sum(self.rates) / 2.0
        end = self.cutoff + (-1.0 if left else 1.0) * _WORDS * (top - bottom)
        place = np.searchsorted(self.cutoffs, end, side="right") - 1
        if place < 0:
            return False
        upper, lower = sorted((float(shares[place]) for shares in self.shares), reverse=True)
        return lower < middle - _LINE if left else upper > middle + _LINE


def _moved(left: bool, dy: float = 0.35) -> dict[str, float]:
    return {"dx": -10.0 if left else 10.0, "dy": dy}


def shortened(name: str) -> str:
    """A name that fits on a drawing."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def share_texts(rates: tuple[float, float]) -> list[str]:
    """Two shares in percent; with a decimal where whole ones would differ by another number of points.

    Examples
    --------
    >>> share_texts((0.59, 0.35)), share_texts((0.594, 0.356))
    (['59%', '35%'], ['59.4%', '35.6%'])
    """
    first, second = (100.0 * rate for rate in rates)
    decimals = 0 if round(abs(round(first) - round(second))) == round(abs(first - second)) else 1
    return [f"{first:.{decimals}f}%", f"{second:.{decimals}f}%"]
