"""Write results/frontier.md and its figure from results/frontier.csv and results/reproduce/runs.csv.

Run it with ``python -m benchmarks.frontier_table``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from benchmarks.frontier import AWARE, RESULTS, RUNS
from localparity.paper._figures import panels, save
from localparity.report.displays._base import (
    COLOURS,
    INK,
    QUIET,
    finish,
    point_to_better,
    show_percent,
    write_beside,
)

NETWORKS = {
    "erm": "ERM",
    "advdebias": "AdvDebias",
    "diffdp": "DiffDP",
    "fairmixup": "FairMixup",
    "dralign": "DRAlign",
    "diffabcc": "DiffABCC",
    "diffmcdp": "DiffMCDP",
}
TITLES = {
    "adult": "Adult, sex",
    "bank": "Bank, age under 25",
    "utkface": "UTKFace, gender",
    "compas": "COMPAS, race (four groups)",
    "hmda": "HMDA, race (four groups, unknown one of them)",
    "census": "census, sex",
}
OURS = "group-blind repair"
VALUES = ("ap", "mcdp0", "mcdp5")
KEPT_AP = 0.95


def runs() -> pd.DataFrame:
    """All runs: those of `benchmarks.frontier`, and of the seven networks at their tuned settings."""
    found = pd.read_csv(RUNS, keep_default_na=False)
    trained = pd.read_csv(RESULTS / "reproduce" / "runs.csv")
    trained = trained[trained["preset"] == "tuned"]
    networks = pd.DataFrame(
        {
            "data": trained["dataset"],
            "seed": trained["seed"],
            "method": trained["method"].map(NETWORKS) + " (network)",
            "setting": "strength " + trained["strength"].map("{:g}".format),
        }
    )
    for part, column in (("validation", "val"), ("test", "test")):
        for name, metric in zip(VALUES, ("ap", "mcdp_0", "mcdp_0_05"), strict=True):
            networks[f"{part}_{name}"] = 100.0 * trained[f"{column}_{metric}"]
    return pd.concat([found, networks], ignore_index=True)


def means(found: pd.DataFrame) -> pd.DataFrame:
    """The mean over seeds of each setting that all five seeds have."""
    by = found.groupby(["data", "method", "setting"], sort=False)
    mean = by.mean(numeric_only=True).drop(columns="seed")
    return mean[by.size() == 5].reset_index()


def floor_of(found: pd.DataFrame, data: str) -> float:
    """The AP that a method has to keep: a share of that of the plain ingredients."""
    plain = found[(found["data"] == data) & (found["method"] == OURS) & (found["setting"] == "unrepaired")]
    return KEPT_AP * float(plain["test_ap"].mean())


def chosen(found: pd.DataFrame, data: str, method: str) -> pd.DataFrame:
    """Of each seed, the setting with the least validation MCDP(0) that keeps the AP there."""
    here = found[found["data"] == data]
    plain = here[(here["method"] == OURS) & (here["setting"] == "unrepaired")].set_index("seed")
    rows = []
    for seed, part in here[here["method"] == method].groupby("seed"):
        keeps = part[part["validation_ap"] >= KEPT_AP * plain.loc[seed, "validation_ap"]]
        rows.append(
            keeps.loc[keeps["validation_mcdp0"].idxmin()]
            if len(keeps)
            else part.loc[part["validation_ap"].idxmax()]
        )
    return pd.DataFrame(rows)


def beaten(found: pd.DataFrame, data: str, value: str) -> dict[str, tuple[int, float]]:
    """By method, how many settings keep the AP below the line of group-blind repair, and by how much."""
    mean = means(found[found["data"] == data])
    line = mean[mean["method"] == OURS].sort_values("test_ap")
    others = mean[~mean["method"].str.startswith(OURS) & (mean["test_ap"] >= floor_of(found, data))]
    at = np.interp(others["test_ap"], line["test_ap"], line[f"test_{value}"], right=np.inf)
    below = others.assign(by=np.minimum(at, 100.0) - others[f"test_{value}"])
    below = below[(below["by"] > 0.0) & (below["test_ap"] <= line["test_ap"].max())]
    return {method: (len(part), float(part["by"].max())) for method, part in below.groupby("method")}


NOTES = [
    "AP, MCDP(0) and MCDP(0.05) of test parts in percent, means over five seeds of the paper's split (40% of",
    "the rows to train on, 80% of UTKFace; the rest in halves for validation and test).",
    "",
    "The default learner has changed since: `ingredients.md` has both, `leaderboard.md` today's.",
    "",
    "- **Group-blind repair**: five pairs of LightGBM's trees (200 of 15 leaves), of class and group,",
    "  each fitted without a fold of the training part; multipliers fitted to out-of-fold predictions of the",
    "  training part alone; other rows get the mean of the five. 17 bounds. On UTKFace the pairs are five",
    "  networks with two heads (ResNet-18, 900 steps each, 14 bounds); the other networks there are single.",
    "- Penalised LightGBM and XGBoost: 16 settings each, one fit a setting (see boosting.md).",
    "- ExponentiatedGradient: 6 bounds, up to 6 rounds each, LightGBM; the mixture of its labels and, in a",
    "  kinder variant that fairlearn does not offer by itself, of its probabilities.",
    "- ThresholdOptimizer: 10 settings. EquiPy (FairWasserstein, 10 values of its epsilon) and group-aware",
    "  repair (`ScoreRepair`, 17 bounds) of the same out-of-fold trees. **These three need the group at",
    "  prediction.**",
    "- The seven networks: preset tuned, five to ten strengths of a setting that was searched for on",
    "  validation parts (see reproduce/README.md).",
    "",
    "Ingredients, smoothing, and the mean of counted and predicted shares were chosen on validation parts of",
    "Adult and Bank. Of seven kinds of trees and three ensembles, none beat 200 trees of 15 leaves by more",
    "than 0.2 points of AP on both; calibrating the probabilities changed nothing; smoothing over 1 to 3",
    "rates lies on one line; predicted shares take half a point off the MCDP of Bank, where 430 people are",
    "under 25. Nothing was tuned on COMPAS, HMDA, UTKFace or the census.",
    "",
    "Made by `python -m benchmarks.frontier`, `benchmarks.frontier_faces` and `benchmarks.frontier_table`.",
    "The runs, in `frontier.csv`, were made on x86_64 with 16 cores and an NVIDIA H200 at commit 918f7d1",
    "(the other methods at d280814). In COMPAS and HMDA, races of fewer than 1% of people count as other,",
    "or unknown.",
    "",
    "![AP against MCDP(0)](frontier.png)",
    "",
]


def lines(found: pd.DataFrame) -> Iterator[str]:
    """The page, line by line."""
    yield "# The frontier: group-blind repair beside every other method"
    yield ""
    yield from NOTES
    for data, title in TITLES.items():
        yield from [f"## {title}", ""]
        yield from bounds_table(found[found["data"] == data])
        yield from methods_table(found, data)
        for value, name in (("mcdp0", "MCDP(0)"), ("mcdp5", "MCDP(0.05)")):
            below = beaten(found, data, value)
            listed = [f"{one} ({count}, by up to {by:.2f})" for one, (count, by) in below.items()]
            yield f"Settings that keep 95% of the AP with a lower {name} than group-blind repair at that AP:"
            yield f"{'; '.join(listed) if listed else 'none'}."
            yield ""


def bounds_table(here: pd.DataFrame) -> Iterator[str]:
    """What group-blind repair reaches at each bound that is within reach at all seeds."""
    yield "| group-blind repair | AP | MCDP(0) | MCDP(0.05) |"
    yield "|---|---|---|---|"
    ours = means(here[here["method"] == OURS])
    for row in ours.sort_values("test_ap").itertuples():
        cells = [row.setting, f"{row.test_ap:.2f}", f"{row.test_mcdp0:.2f}", f"{row.test_mcdp5:.2f}"]
        yield f"| {' | '.join(cells)} |"
    yield ""


def methods_table(found: pd.DataFrame, data: str) -> Iterator[str]:
    """Each method at the settings that its validation parts choose."""
    yield "By validation parts, each method's least MCDP(0) at 95% of the unrepaired AP or, where no setting"
    yield "keeps it, its highest AP:"
    yield ""
    yield "| method | settings | group at prediction | AP | MCDP(0) | MCDP(0.05) | keeps the AP |"
    yield "|---|---|---|---|---|---|---|"
    here = found[found["data"] == data]
    rows = []
    for method in here["method"].unique():
        best = chosen(found, data, method)
        settings = here[here["method"] == method]["setting"].nunique()
        keeps = int((best["test_ap"] >= floor_of(found, data)).sum())
        cells = [f"{best[f'test_{name}'].mean():.2f} ± {best[f'test_{name}'].std():.2f}" for name in VALUES]
        needs = "yes" if method in AWARE else ""
        text = f"| {method} | {settings} | {needs} | {' | '.join(cells)} | {keeps} of {len(best)} |"
        rows.append((keeps < 3, best["test_mcdp0"].mean(), text))
    yield from (text for *_, text in sorted(rows))
    yield ""


SHOWN = {
    OURS: INK,
    "group-aware repair": COLOURS[5],
    "penalised LightGBM": COLOURS[2],
    "DiffMCDP (network)": COLOURS[1],
    "ExponentiatedGradient, probabilities": COLOURS[3],
}
"""The methods that the figure names; all others are grey."""


def draw(found: pd.DataFrame, path: Path) -> None:
    """AP against MCDP(0) of every setting on three data sets, with a line along the best of five methods."""
    mpl.use("Agg")
    figure, (axes,) = panels(3, height=4.0)
    figure.set_size_inches(13.0, 4.2)
    for ax, data in zip(axes, ("adult", "bank", "utkface"), strict=True):
        mean = means(found[found["data"] == data])
        top = float(mean["test_ap"].max()) / 100.0
        most = 1.1 * float(mean[mean["method"] == OURS]["test_mcdp0"].max()) / 100.0
        ax.set(xlabel="MCDP(0)", xlim=(0.0, most), ylim=(top - 0.14, top + 0.01))
        for method, part in mean.groupby("method", sort=False):
            points = np.array(sorted(zip(part["test_mcdp0"] / 100.0, part["test_ap"] / 100.0, strict=True)))
            colour = SHOWN.get(str(method), "0.8")
            ax.scatter(*points.T, s=9, color=colour, zorder=2 if method in SHOWN else 1, lw=0)
            if method in SHOWN:
                best = points[points[:, 1] >= np.maximum.accumulate(points[:, 1])]
                look = {"lw": 2.6, "zorder": 4} if method == OURS else {"lw": 1.6, "zorder": 3}
                ax.plot(*best.T, color=colour, **look)
        floor = floor_of(found, data) / 100.0
        ax.axhline(floor, color=QUIET, lw=0.8, ls=":")
        write_beside(ax, (ax.get_xlim()[1], floor), "95% of the plain AP", colour=QUIET, move=(-2.0, -6.0))
        show_percent(ax.xaxis)
        show_percent(ax.yaxis)
        finish(ax, TITLES[data])
        point_to_better(ax)
    axes[0].set_ylabel("average precision")
    names = [*SHOWN.items(), ("other methods", "0.6")]
    for place, (name, colour) in enumerate(names):
        axes[2].text(0.97, 0.42 - 0.06 * place, name, color=colour, ha="right", transform=axes[2].transAxes)
    save(figure, path.parent, path.stem, kinds=("png",))


def main() -> None:
    """Write the page and the figure."""
    found = runs()
    (RESULTS / "frontier.md").write_text("\n".join(lines(found)))
    draw(found, RESULTS / "frontier.png")


if __name__ == "__main__":
    main()
