"""Every figure of the paper that a store has the runs for."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from localparity._io._files import reading, write_whole
from localparity._types import FloatArray
from localparity._validation import require
from localparity.metrics import abcc, delta_dp, gap_curve, mcdp, mcdp_profile
from localparity.paper._data import DATA_SETS
from localparity.paper._runs import TITLES
from localparity.paper._selection import (
    Item,
    MethodRuns,
    by_data_set,
    by_grid,
    by_strength,
    by_variant,
    choose_runs,
    records_of,
)
from localparity.paper._store import PartScores, Record, Store
from localparity.paper._tables import METRIC_TITLES, published
from localparity.predictions import Predictions
from localparity.report import SharesDisplay
from localparity.report.displays._base import COLOURS, QUIET, finish, show_percent, styled, thin_steps
from localparity.uncertainty import noise_floor

# What the figures share: colours, sizes, and how they are written.


_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY, _BLACK = COLOURS
_COLOUR_OF = dict(zip(TITLES, (_BLACK, _SKY, _BLUE, _GREEN, _ORANGE, _PINK, _RED), strict=True))
_MARKER_OF = dict(zip(TITLES, "osD^vP*", strict=True))
_DASHES = ("-", "--", ":", "-.")
FORMATS = ("png", "svg", "pdf")
FLOOR_TITLE = "expected under parity"
PUBLISHED_TITLE = "hollow: the paper's"
FRONTIER_TITLE = "group-blind repair"
_WIDTH, _HEIGHT = 3.4, 2.7
_FLOOR = {"color": QUIET, "ls": (0, (1, 1.5)), "lw": 1.2, "label": FLOOR_TITLE}


def looks_of(methods: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The look of each method in turn; the further forms of one differ in the line."""
    forms: Counter[str] = Counter()
    for method in methods:
        yield look_of(method, forms[method])
        forms[method] += 1


def look_of(method: str, form: int = 0) -> dict[str, Any]:
    """The colour, marker and line of a method."""
    ours = method == "diffmcdp"
    return {
        "color": _COLOUR_OF[method],
        "marker": _MARKER_OF[method],
        "ls": _DASHES[form % len(_DASHES)],
        "lw": 1.8 if ours else 1.1,
        "ms": 7.0 if ours else 4.0,
        "zorder": 4 if ours else 3,
    }


def panels(columns: int, rows: int = 1, *, height: float = _HEIGHT) -> tuple[Any, list[list[Any]]]:
    """A figure with one or more rows of axes."""
    figure_class = require("matplotlib.figure", extra="report").Figure
    with styled():
        figure = figure_class(figsize=(_WIDTH * columns, height * rows), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False).tolist()


def legend_below(
    figure: Any, axes: Sequence[Any], *, last: Sequence[str] = (FRONTIER_TITLE, PUBLISHED_TITLE, FLOOR_TITLE)
) -> None:
    """One legend for several axes, below them: each name once, some of them last."""
    handles: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    names = sorted(handles, key=lambda name: name in last)
    figure.legend(
        [handles[name] for name in names],
        names,
        loc="outside lower center",
        ncols=_columns_that_fit(names, 72.0 * figure.get_figwidth()),
        frameon=False,
        fontsize="small",
        handlelength=1.8,
        columnspacing=1.2,
    )


def _columns_that_fit(names: Sequence[str], points: float) -> int:
    """The most columns of a legend that fit into a width; matplotlib fills them one after the other."""
    for columns in range(len(names), 1, -1):
        length, longer = divmod(len(names), columns)
        ends = [length * end + min(end, longer) for end in range(1, columns + 1)]
        parts = [names[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        if sum(42.0 + 5.0 * max(map(len, part)) for part in parts) <= points:
            rows = -(-len(names) // columns)
            return -(-len(names) // rows)
    return 1


def corner_text(ax: Any, text: str, *, x: float = 0.97, y: float = 0.05) -> None:
    """Numbers in a corner of the axes."""
    ax.text(
        x,
        y,
        text,
        transform=ax.transAxes,
        ha="right" if x > 0.5 else "left",
        va="top" if y > 0.5 else "bottom",
        fontsize="small",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
    )


def save(figure: Any, out: Path, name: str, *, kinds: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in each format; the same figure gives the same bytes."""
    matplotlib = require("matplotlib", extra="report")
    written = []
    with matplotlib.rc_context({"svg.hashsalt": "localparity", "pdf.fonttype": 42}):
        for kind in kinds:
            content = BytesIO()
            stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
            figure.savefig(content, format=kind, dpi=200, metadata=stamp)
            path = out / f"{name}.{kind}"
            write_whole(path, content.getvalue())
            written.append(path)
    return written


# Pairs of groups with their metrics (Figures 1 and 7).


def draw_cdfs(ax: Any, part: PartScores, title: str = "") -> None:
    """The shares of two groups above each cutoff, and the difference of means, ABCC and MCDP(0)."""
    rows = Predictions.from_arrays(None, part.score, sensitive_features=part.group)
    SharesDisplay.from_predictions(rows, ax=ax)
    numbers = {"means differ": delta_dp(rows), "ABCC": abcc(rows), "MCDP(0)": mcdp(rows)}
    corner_text(ax, "\n".join(f"{name} {value:.2%}" for name, value in numbers.items()), y=0.95)
    finish(ax, title)


def toy_scores(rows: int = 2000) -> PartScores:
    """Men at both ends of the scores and women in the middle: the same mean, and far apart."""
    from scipy.stats import beta

    places = (np.arange(rows) + 0.5) / rows
    scores = np.concatenate([beta.ppf(places, 0.55, 0.6), beta.ppf(places, 5.0, 5.6)])
    return PartScores(scores, np.repeat(["Male", "Female"], rows), np.zeros(2 * rows))


# The frontier beside the methods of the paper: group-blind repair, at every bound.


def read_frontier(path: Path) -> dict[str, FloatArray]:
    """The frontier of every data set in a CSV of `benchmarks.frontier`.

    A row has MCDP(0) and AP on the test parts at a bound, means over the seeds; the lowest MCDP(0) is first.
    """
    points: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    with path.open(encoding="utf-8", newline="") as stream, reading(str(path)):
        for row in csv.DictReader(stream):
            if row["method"] == FRONTIER_TITLE:
                values = [float(row["test_mcdp0"]) / 100.0, float(row["test_ap"]) / 100.0]
                points[row["data"]][row["setting"]].append(values)
    return {
        dataset: np.array(sorted(np.mean(values, axis=0).tolist() for values in settings.values()))
        for dataset, settings in points.items()
    }


def draw_frontier(ax: Any, points: FloatArray) -> None:
    """A broad line below the methods."""
    ax.plot(*points.T, color="0.45", lw=2.5, alpha=0.6, zorder=2, label=FRONTIER_TITLE)


# MCDP over epsilon for every method, with a band over the seeds (Figure 4).


PROFILE_EPSILONS = np.linspace(0.0, 0.15, 61)


def draw_profiles(
    ax: Any,
    store: Store,
    selections: Sequence[MethodRuns],
    *,
    floor: tuple[FloatArray, FloatArray] | None = None,
    title: str = "",
) -> None:
    """MCDP(epsilon) of the selected run of every method: mean and deviation over the seeds.

    `floor` is epsilons, and the MCDP expected under parity at each.
    """
    drawn = [selection for selection in selections if selection.chosen]
    looks = looks_of(selection.method for selection in drawn)
    for selection, look in zip(drawn, looks, strict=True):
        profiles = []
        for record in selection.chosen.values():
            part = store.scores(record.run)
            profiles.append(mcdp_profile(None, part.score, sensitive_features=part.group)(PROFILE_EPSILONS))
        mean = np.mean(profiles, axis=0)
        ax.plot(PROFILE_EPSILONS, mean, label=selection.variant, markevery=(5, 10), **look)
        if len(profiles) > 1:
            spread = np.std(profiles, axis=0, ddof=1)
            area = {"color": look["color"], "alpha": 0.12, "lw": 0}
            ax.fill_between(PROFILE_EPSILONS, mean - spread, mean + spread, **area)
    if floor is not None:
        ax.plot(*floor, **_FLOOR)
    ax.set_xlim(0.0, PROFILE_EPSILONS[-1])
    ax.set_xticks([0.0, 0.05, 0.1, 0.15])
    ax.set_ylim(0.0, None)
    ax.set_xlabel("epsilon, half of a window's width")
    ax.set_ylabel("MCDP(epsilon)")
    show_percent(ax.yaxis)
    finish(ax, title)


# Average precision against a disparity, for every method and strength (Figures 3 and 6, appendix).


_COLLAPSED = 0.9


def draw_trade_off(
    ax: Any, records: Sequence[Record], metric: str, *, floor: float | None = None, title: str = ""
) -> None:
    """The test AP of methods against a disparity: up and to the left is better.

    Each marker is the mean over the seeds at one strength, with the deviation on both axes; a line joins a
    method's strengths. Strengths whose mean AP is below 90% of the highest are not drawn, so that the others
    can be distinguished, and a note says whose they are. `floor` is the disparity expected under parity.
    """
    variants = [(variant, by_strength(own)) for variant, own in by_variant(records)]
    precision = {
        (variant, strength): _mean_and_deviation(runs, "test_ap")[0]
        for variant, strengths in variants
        for strength, runs in strengths.items()
    }
    least = _COLLAPSED * max(precision.values())
    looks = looks_of(own[0].run.method for _, own in by_variant(records))
    left_out: list[str] = []
    for (variant, strengths), look in zip(variants, looks, strict=True):
        drawn = {
            strength: runs for strength, runs in strengths.items() if precision[variant, strength] >= least
        }
        if len(drawn) < len(strengths):
            left_out.append(f"{variant}: {len(strengths) - len(drawn)} below")
        draw_strengths(ax, drawn, metric, variant, look)
    if left_out:
        corner_text(ax, "\n".join(left_out), x=0.03)
    _finish_trade_off(ax, metric, floor, title)


def draw_temperatures(
    ax: Any,
    records: Mapping[float, Sequence[Record]],
    metric: str,
    *,
    floor: float | None = None,
    title: str = "",
) -> None:
    """The trade-off of one method at several temperatures, as `draw_trade_off` draws it."""
    ramp = require("matplotlib", extra="report").colormaps["viridis_r"]
    for index, (temperature, own) in enumerate(sorted(records.items())):
        colour = ramp(0.15 + 0.75 * index / max(1, len(records) - 1))
        marker = {"color": colour, "marker": "osD^vP"[index % 6], "lw": 1.3, "ms": 5.0}
        look = {**look_of("diffmcdp"), **marker}
        draw_strengths(ax, by_strength(own), metric, f"temperature {temperature:g}", look)
    _finish_trade_off(ax, metric, floor, title)


def draw_published(ax: Any, dataset: str, metric: str) -> None:
    """The paper's value of every method on a data set, as hollow markers."""
    for method in TITLES:
        theirs = published(dataset, method)
        if metric in theirs:
            look = {**look_of(method), "ls": "none", "mfc": "white", "zorder": 2}
            x, y = theirs[metric].mean / 100.0, theirs["ap"].mean / 100.0
            ax.plot([x], [y], label=PUBLISHED_TITLE if method == "erm" else None, **look)


def draw_strengths(
    ax: Any, strengths: Mapping[float, Sequence[Record]], metric: str, name: str, look: Mapping[str, Any]
) -> None:
    """A line through the strengths of one method, with error bars."""
    if not strengths:
        return
    (x, x_spread), (y, y_spread) = (
        np.array([_mean_and_deviation(own, f"test_{name}") for own in strengths.values()]).T
        for name in (metric, "ap")
    )
    bars = {"elinewidth": 0.7, "capsize": 1.5, "capthick": 0.7, "ecolor": (look["color"], 0.4)}
    ax.errorbar(x, y, xerr=x_spread, yerr=y_spread, label=name, **bars, **look)


def _mean_and_deviation(records: Sequence[Record], name: str) -> tuple[float, float]:
    values = np.array([record.metrics[name] for record in records])
    return float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else 0.0


def _finish_trade_off(ax: Any, metric: str, floor: float | None, title: str) -> None:
    if floor is not None:
        ax.axvline(floor, zorder=1, **_FLOOR)
    ax.set_xlim(0.0, None)
    ax.margins(y=0.08)
    ax.set_xlabel(METRIC_TITLES[metric])
    ax.set_ylabel("average precision")
    show_percent(ax.xaxis)
    show_percent(ax.yaxis)
    finish(ax, title)


# The worst windows of several epsilons on one gap curve (Figure 2).


WINDOW_EPSILONS = (0.0, 0.02, 0.05)


def draw_windows(
    ax: Any, part: PartScores, epsilons: Sequence[float] = WINDOW_EPSILONS, title: str = ""
) -> None:
    """The absolute gap at every threshold, and for each epsilon the window that carries MCDP(epsilon)."""
    curve = gap_curve(Predictions.from_arrays(None, part.score, sensitive_features=part.group))
    drawn = thin_steps(curve.knots, np.abs(curve.gap))
    thresholds = np.union1d(curve.knots[drawn], [0.0, 1.0])
    ax.step(thresholds, np.abs(curve(thresholds)), where="post", color="black", lw=1.1, zorder=3)
    for epsilon, colour in zip(epsilons, COLOURS[1:], strict=False):
        window = curve.worst_window(epsilon)
        least = abs(window.gap)
        name = f"MCDP({epsilon:g}) is {least:.2%}"
        if epsilon == 0.0:
            ax.plot([window.low], [least], "o", color=colour, label=name, zorder=5)
            continue
        width = window.high - window.low
        ax.bar(window.low, least, width, align="edge", color=colour, alpha=0.25, lw=0)
        ax.plot([window.low, window.high], [least, least], color=colour, lw=2.0, label=name, zorder=4)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, None)
    ax.set_xlabel("threshold")
    ax.set_ylabel("absolute gap")
    show_percent(ax.yaxis)
    ax.legend(frameon=False, fontsize="small")
    finish(ax, title)


_EPSILON_OF = {"mcdp_0": 0.0, "mcdp_0_01": 0.01, "mcdp_0_05": 0.05, "mcdp_0_1": 0.1}
_RESAMPLES = 200


def write_figures(store: Store, out: Path, *, frontier: Path | None = None) -> list[Path]:
    """Draw every figure that the store has the runs for, as PNG, SVG and PDF, and return the paths.

    `frontier` is a CSV of `benchmarks.frontier`, which Figure 3 then has as a line.
    """
    records = records_of(store)
    drawing = _Drawing(store, records, out, {} if frontier is None else read_frontier(frontier))
    for preset in sorted({record.run.preset for record in records}):
        drawing.of_preset(preset)
    return drawing.written


class _Drawing:
    """The figures of a store, and what several of them need."""

    def __init__(
        self, store: Store, records: Sequence[Record], out: Path, frontier: dict[str, FloatArray]
    ) -> None:
        self.store, self.records, self.out, self.frontier = store, records, out, frontier
        self.written: list[Path] = []
        self.floors: dict[tuple[str, str, float], float] = {}
        self.selections = choose_runs(records)
        self.grids = by_grid(records)

    def of_preset(self, preset: str) -> None:
        """The figures of a preset's runs."""
        chosen = {own[0].dataset: own for own in by_data_set(self.selections) if own[0].preset == preset}
        self.cdf_pairs(chosen, preset)
        self.windows(chosen, preset)
        self.trade_offs(preset)
        self.profiles(chosen, preset)
        self.temperatures(preset)
        self.methods_side_by_side(chosen, preset)

    def cdf_pairs(self, chosen: dict[str, list[MethodRuns]], preset: str) -> None:
        """Figure 1: small delta-DP and large ABCC; large and small local disparity."""
        mixed, ours = (self._scores(chosen.get("adult", []), method) for method in ("fairmixup", "diffmcdp"))
        if mixed is None or ours is None:
            return
        parts = {
            "(a) small delta-DP, large ABCC": toy_scores(),
            "(b) FairMixup on Adult": mixed,
            "(c) DiffMCDP on Adult": ours,
        }
        self._row(f"figure-1-{preset}", parts, lambda ax, title: draw_cdfs(ax, parts[title], title))

    def windows(self, chosen: dict[str, list[MethodRuns]], preset: str) -> None:
        """Figure 2: the windows of several epsilons on one gap curve."""
        part = self._scores(chosen.get("bank", []), "fairmixup")
        if part is not None:
            figure, ((ax,),) = panels(1, height=2.9)
            draw_windows(ax, part, title="FairMixup on Bank")
            self.written += save(figure, self.out, f"figure-2-{preset}")

    def trade_offs(self, preset: str) -> None:
        """Figure 3 and those of the appendix."""
        datasets = [dataset for dataset, of in self.grids if of == preset]
        for name, metric in (("figure-3", "mcdp_0"), ("ap-delta-dp", "delta_dp"), ("ap-abcc", "abcc")):
            pairs = [(dataset, metric) for dataset in datasets]
            self._row(f"{name}-{preset}", pairs, partial(self._trade_off, preset))
        for dataset in datasets:
            pairs = [(dataset, metric) for metric in ("mcdp_0_01", "mcdp_0_05", "mcdp_0_1")]
            self._row(f"ap-mcdp-epsilon-{dataset}-{preset}", pairs, partial(self._trade_off, preset))

    def profiles(self, chosen: dict[str, list[MethodRuns]], preset: str) -> None:
        """Figure 4: MCDP over epsilon."""
        epsilons = PROFILE_EPSILONS[::6]

        def draw(ax: Any, dataset: str) -> None:
            floor = np.array([self._floor(dataset, preset, float(epsilon)) for epsilon in epsilons])
            title = DATA_SETS[dataset].title
            draw_profiles(ax, self.store, chosen[dataset], floor=(epsilons, floor), title=title)

        self._row(f"figure-4-{preset}", chosen, draw)

    def temperatures(self, preset: str) -> None:
        """Figure 6: the effect of the temperature, where it was run."""
        of_data: dict[str, dict[float, list[Record]]] = defaultdict(lambda: defaultdict(list))
        for record in self.records:
            run = record.run
            if run.method == "diffmcdp" and run.preset == preset and run.search is None:
                of_data[run.dataset][run.settings.temperature].append(record)

        def draw(ax: Any, dataset: str) -> None:
            floor, title = self._floor(dataset, preset, 0.0), DATA_SETS[dataset].title
            draw_temperatures(ax, of_data[dataset], "mcdp_0", floor=floor, title=title)

        several = [dataset for dataset, own in of_data.items() if len(own) > 1]
        if several:
            self._row(f"figure-6-{preset}", several, draw)

    def methods_side_by_side(self, chosen: dict[str, list[MethodRuns]], preset: str) -> None:
        """Figure 7: two groups under ERM, DiffDP and DiffMCDP, on every data set that has them."""
        for dataset, selections in chosen.items():
            parts = {method: self._scores(selections, method) for method in ("erm", "diffdp", "diffmcdp")}
            if None in parts.values():
                continue

            def draw(ax: Any, method: str, parts: Any = parts, data: str = DATA_SETS[dataset].title) -> None:
                draw_cdfs(ax, parts[method], f"{TITLES[method]} on {data}")

            self._row(f"figure-7-{dataset}-{preset}", parts, draw)

    def _row(self, name: str, items: Collection[Item], draw: Callable[[Any, Item], None]) -> None:
        """Save a row of panels, one for each item, with one legend below them."""
        figure, (axes,) = panels(len(items))
        for ax, item in zip(axes, items, strict=True):
            draw(ax, item)
        legend_below(figure, axes)
        self.written += save(figure, self.out, name)

    def _trade_off(self, preset: str, ax: Any, pair: tuple[str, str]) -> None:
        """A data set's trade-off between average precision and a metric."""
        (dataset, metric), epsilon = pair, _EPSILON_OF.get(pair[1])
        floor = None if epsilon is None else self._floor(dataset, preset, epsilon)
        draw_published(ax, dataset, metric)
        title = DATA_SETS[dataset].title
        draw_trade_off(ax, self.grids[dataset, preset], metric, floor=floor, title=title)
        if metric == "mcdp_0" and dataset in self.frontier:
            draw_frontier(ax, self.frontier[dataset])

    def _scores(self, selections: Iterable[MethodRuns], method: str) -> PartScores | None:
        """The test scores of a method's selected run at its first seed, or None."""
        for selection in selections:
            if selection.method == method and selection.chosen:
                return self.store.scores(selection.chosen[min(selection.chosen)].run)
        return None

    def _floor(self, dataset: str, preset: str, epsilon: float) -> float:
        """The MCDP expected under parity at the test part's group sizes, with the scores of the first run."""
        key = dataset, preset, epsilon
        if key not in self.floors:
            part = self.store.scores(self.grids[dataset, preset][0].run)
            scores = part.score.astype(np.float64) if epsilon else None
            sizes = part.group_sizes()
            floor = noise_floor(sizes, epsilon, scores=scores, n_resamples=_RESAMPLES, random_state=0)
            self.floors[key] = float(floor)
        return self.floors[key]
