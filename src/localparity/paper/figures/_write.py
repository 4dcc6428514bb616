"""Every figure of the paper that a store has the runs for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from localparity._types import FloatArray
from localparity.paper._data import DATA_SETS
from localparity.paper._selection import Selection, by_data_set, by_grid, records_of, select
from localparity.paper._store import Record, Store
from localparity.paper.figures._cdfs import draw_cdfs, toy_scores
from localparity.paper.figures._frontier import draw_frontier, read_frontier
from localparity.paper.figures._profiles import EPSILONS, draw_profiles
from localparity.paper.figures._style import legend_below, panels, save
from localparity.paper.figures._trade_offs import draw_published, draw_temperatures, draw_trade_off
from localparity.paper.figures._windows import draw_windows
from localparity.uncertainty import noise_floor

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
        self.selections = select(records)
        self.grids = dict(by_grid(records))

    def of_preset(self, preset: str) -> None:
        """The figures of a preset's runs."""
        chosen = {own[0].dataset: own for own in by_data_set(self.selections) if own[0].preset == preset}
        self.cdf_pairs(chosen, preset)
        self.windows(chosen, preset)
        self.trade_offs(preset)
        self.profiles(chosen, preset)
        self.temperatures(preset)
        self.methods_side_by_side(chosen, preset)

    def cdf_pairs(self, chosen: dict[str, list[Selection]], preset: str) -> None:
        """Figure 1: small delta-DP and large ABCC; large and small local disparity."""
        pair = [self._scores(chosen.get("adult", []), method) for method in ("fairmixup", "diffmcdp")]
        if None in pair:
            return
        figure, ((left, middle, right),) = panels(3)
        draw_cdfs(left, toy_scores(), "(a) small delta-DP, large ABCC")
        draw_cdfs(middle, pair[0], "(b) FairMixup on Adult")
        draw_cdfs(right, pair[1], "(c) DiffMCDP on Adult")
        legend_below(figure, [left, middle, right])
        self._save(figure, f"figure-1-{preset}")

    def windows(self, chosen: dict[str, list[Selection]], preset: str) -> None:
        """Figure 2: the windows of several epsilons on one gap curve."""
        part = self._scores(chosen.get("bank", []), "fairmixup")
        if part is not None:
            figure, ((ax,),) = panels(1, height=2.9)
            draw_windows(ax, part, title="FairMixup on Bank")
            self._save(figure, f"figure-2-{preset}")

    def trade_offs(self, preset: str) -> None:
        """Figure 3 and those of the appendix."""
        datasets = [dataset for dataset, of in self.grids if of == preset]
        for name, metric in (("figure-3", "mcdp_0"), ("ap-delta-dp", "delta_dp"), ("ap-abcc", "abcc")):
            figure, (axes,) = panels(len(datasets))
            for ax, dataset in zip(axes, datasets, strict=True):
                self._trade_off(ax, dataset, preset, metric, DATA_SETS[dataset].title)
                if metric == "mcdp_0" and dataset in self.frontier:
                    draw_frontier(ax, self.frontier[dataset])
            legend_below(figure, axes)
            self._save(figure, f"{name}-{preset}")
        for dataset in datasets:
            figure, (axes,) = panels(3)
            for ax, metric in zip(axes, ("mcdp_0_01", "mcdp_0_05", "mcdp_0_1"), strict=True):
                self._trade_off(ax, dataset, preset, metric, DATA_SETS[dataset].title)
            legend_below(figure, axes)
            self._save(figure, f"ap-mcdp-epsilon-{dataset}-{preset}")

    def profiles(self, chosen: dict[str, list[Selection]], preset: str) -> None:
        """Figure 4: MCDP over epsilon."""
        figure, (axes,) = panels(len(chosen))
        for ax, (dataset, selections) in zip(axes, chosen.items(), strict=True):
            epsilons = EPSILONS[::6]
            floor = np.array([self._floor(dataset, preset, float(epsilon)) for epsilon in epsilons])
            draw_profiles(ax, self.store, selections, floor=(epsilons, floor), title=DATA_SETS[dataset].title)
        legend_below(figure, axes)
        self._save(figure, f"figure-4-{preset}")

    def temperatures(self, preset: str) -> None:
        """Figure 6: the effect of the temperature, where it was run."""
        found: dict[str, dict[float, list[Record]]] = {}
        for record in self.records:
            run = record.run
            if run.method == "diffmcdp" and run.preset == preset and run.search is None:
                of = found.setdefault(run.dataset, {})
                of.setdefault(run.settings["temperature"], []).append(record)
        found = {dataset: own for dataset, own in found.items() if len(own) > 1}
        if not found:
            return
        figure, (axes,) = panels(len(found))
        for ax, (dataset, own) in zip(axes, found.items(), strict=True):
            floor = self._floor(dataset, preset, 0.0)
            draw_temperatures(ax, own, "mcdp_0", floor=floor, title=DATA_SETS[dataset].title)
        legend_below(figure, axes)
        self._save(figure, f"figure-6-{preset}")

    def methods_side_by_side(self, chosen: dict[str, list[Selection]], preset: str) -> None:
        """Figure 7: group CDFs under ERM, DiffDP and DiffMCDP, on every data set that has them."""
        for dataset, selections in chosen.items():
            own = [self._scores(selections, method) for method in ("erm", "diffdp", "diffmcdp")]
            if None in own:
                continue
            figure, (axes,) = panels(3)
            for ax, part, title in zip(axes, own, ("ERM", "DiffDP", "DiffMCDP"), strict=True):
                draw_cdfs(ax, part, f"{title} on {DATA_SETS[dataset].title}")
            legend_below(figure, axes)
            self._save(figure, f"figure-7-{dataset}-{preset}")

    def _trade_off(self, ax: Any, dataset: str, preset: str, metric: str, title: str) -> None:
        floor = None
        if metric in _EPSILON_OF:
            floor = self._floor(dataset, preset, _EPSILON_OF[metric])
        draw_published(ax, dataset, metric)
        draw_trade_off(ax, self.grids[dataset, preset], metric, floor=floor, title=title)

    def _scores(self, selections: Iterable[Selection], method: str) -> Any:
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
            found = noise_floor(
                part.group_sizes(),
                epsilon,
                scores=part.score.astype(np.float64) if epsilon else None,
                n_resamples=_RESAMPLES,
                random_state=0,
            )
            self.floors[key] = float(found)
        return self.floors[key]

    def _save(self, figure: Any, name: str) -> None:
        self.written += save(figure, self.out, name)
