"""Make what README shows and cannot compute itself: its picture, and what it says of results/.

Run ``python docs/make_readme_parts.py`` from the root of the repository after results/ has changed; the
picture needs the Adult data set (`localparity.datasets.fetch_adult`). Tests hold README to both.
"""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from pathlib import Path

import matplotlib as mpl

import localparity as lp
from localparity.models._encoding import TableEncoder
from localparity.paper._data import paper_split
from localparity.report.displays._base import styled

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
SCIPY = "scipy's ks_2samp"
FAIRLEARN = "fairlearn's demographic_parity_difference"
PICTURE = ROOT / "docs" / "_static" / "gap_curve.png"

sys.path.insert(0, str(Path(__file__).with_name("_extensions")))
from result_files import RESULTS, agrees, read_rows  # noqa: E402


def draw(path: Path) -> None:
    """Men and women above each cutoff of a logistic regression on Adult, on the paper's test part."""
    from matplotlib import pyplot as plt
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    adult = lp.datasets.fetch_adult()
    parts = paper_split(adult.target, seed=0)
    model = make_pipeline(TableEncoder(), LogisticRegression(max_iter=1000))
    model.fit(adult.data.iloc[parts.train], adult.target[parts.train])
    mpl.use("Agg")
    with styled(), mpl.rc_context({"font.size": 11}):
        figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
        groups = adult.sensitive_features[parts.test]
        lp.report.SharesDisplay.from_estimator(
            model, adult.data.iloc[parts.test], None, sensitive_features=groups, ax=ax
        )
        figure.savefig(path, dpi=160)
        plt.close(figure)


def markdown_table() -> str:
    """The methods with equal budgets, and how many rows agree with the published code."""
    found = [dict(zip(read_rows("equal.csv")[0], row, strict=True)) for row in read_rows("equal.csv")[1:]]
    names = ["", "ERM's AP", "DiffMCDP's AP", "MCDP(0)", "the best other method's", "difference", "p-value"]
    lines = [names, ["---"] * len(names), *(_equal_row(found, name) for name in ("Adult", "Bank", "UTKFace"))]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    _, *compared = read_rows("faithful.md")
    others = [row for row in compared if row[9] == "*"]
    replayed = sum(agrees(*row[10:]) for row in others)
    adult, bank = (_disparities(f"reproduce/results-{name}-paper.csv") for name in ("adult", "bank"))
    reproduced = _filled(
        "With the paper's settings, ERM and DiffMCDP are within the paper's deviations in AP and MCDP(0):",
        f"DiffMCDP's MCDP(0) is {adult[0]} on Adult (paper {adult[1]}) and {bank[0]} on Bank",
        f"(paper {bank[1]}). At these settings {len(compared) - len(others)} of {len(compared)} rows agree",
        "with the published code within 1.0 point of AP and 2.0 points of MCDP(0); of the other",
        f"{len(others)}, {'all' if replayed == len(others) else replayed} do when training starts from the",
        "same weights and batches",
        "([results/faithful.md](results/faithful.md)).",
    )
    return f"{table}\n{reproduced}"


def _equal_row(found: list[dict[str, str]], name: str) -> list[str]:
    """DiffMCDP on a data set beside the method with the lowest MCDP(0) of the others."""
    own = {row["method"]: row for row in found if row["data"] == name}
    ours = own.pop("DiffMCDP")
    best = min(own.values(), key=lambda row: float(row["MCDP(0)"]))
    spread, others = (f"{row['MCDP(0)']} ± {row['MCDP(0) deviation']}" for row in (ours, best))
    beside = best["less DiffMCDP's MCDP(0)"], best["p-value"]
    return [name, own["ERM"]["AP"], ours["AP"], spread, f"{others} ({best['method']})", *beside]


def _disparities(name: str) -> list[str]:
    """DiffMCDP's MCDP(0), measured and in the paper."""
    head, *rows = read_rows(name)
    found = next(dict(zip(head, row, strict=True)) for row in rows if row[0] == "DiffMCDP")
    columns = ("MCDP(0)", "MCDP(0), paper")
    return [f"{float(found[of]):.2f} ± {float(found[f'{of} deviation']):.2f}" for of in columns]


def repair() -> str:
    """What a repair to a quarter of the disparity keeps, beside a blend."""
    start = "AP of repair less that of a blend, adult"
    what, *_, detail = [row for row in read_rows("repair.csv") if row[0].startswith(start)][2]
    kept, blended, whole = (f"{float(found):.3f}" for found in re.findall(r"\d\.\d+", detail))
    return _filled(
        f"On Adult, a repair to an MCDP(0) of {what.rpartition(' ')[2]}, a quarter of what it was,",
        f"keeps an AP of {kept} of {whole}, where a linear blend with the barycentre keeps {blended}",
        "([results/repair.csv](results/repair.csv)).",
    )


def scale() -> str:
    """How long an audit by DuckDB takes."""
    found = json.loads((RESULTS / "duckdb_scale.json").read_text(encoding="utf-8"))
    return _filled(
        f"On two cores, {_power(found['rows'])} rows of Parquet were counted to an exact MCDP in",
        f"{found['count_over_scan']:.1f} times the time of DuckDB's own filtered scan of them, and audited",
        f"with intervals and p-values in {found['audit_s']:.1f} seconds and",
        f"{found['audit_peak_gb']:.1f} GB of memory",
        "(`make bench-scale`; [results/duckdb_scale.json](results/duckdb_scale.json)).",
    )


def speed() -> str:
    """How long MCDP takes beside the sort, and what others take for less."""
    found = {row[0]: float(row[1]) for row in read_rows("speed.csv")[1:]}
    few, all_of_them = (
        [found[f"{what}, two groups, {rows} rows"] for rows in ("1e+06", "1e+08")]
        for what in ("MCDP at four epsilons", "the whole profile")
    )
    head, *lines = read_rows("curves.csv")
    points = [dict(zip(head, line, strict=True)) for line in lines]
    sorts = {(point["series"], int(point["rows"])): float(point["over_sort"]) for point in points}
    many = _most(sorts, SCIPY, FAIRLEARN)
    return _filled(
        f"MCDP at four epsilons of 10^8 scores takes {few[1]:.2f} times as long as `np.sort` of them, on",
        f"one core, and of 10^6 scores {few[0]:.2f} times; MCDP at every epsilon takes",
        f"{all_of_them[1]:.1f} sorts. scipy's `ks_2samp`, which is MCDP(0), takes",
        f"{sorts[SCIPY, many]:.1f} sorts of {_power(many)} scores,",
        "and fairlearn's `demographic_parity_difference`, which looks at one threshold,",
        f"{sorts[FAIRLEARN, many]:.1f}. (`make bench`; [results/speed.csv](results/speed.csv) has the bars,",
        "also those that are not met, and [results/curves.csv](results/curves.csv) what others take.)",
    )


def _filled(*parts: str) -> str:
    text = textwrap.fill(" ".join(parts), 120, break_long_words=False, break_on_hyphens=False)
    return f"{text}\n"


def _most(found: dict[tuple[str, int], float], *names: str) -> int:
    """The most rows at which all of these were measured."""
    return max(rows for _, rows in found if all((other, rows) in found for other in names))


def _power(rows: int) -> str:
    return f"10^{round(math.log10(rows))}"


PARTS = {"results": markdown_table, "repair": repair, "scale": scale, "speed": speed}


def with_parts(readme: str) -> str:
    """README with its parts made anew."""
    for name, make in PARTS.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        part = f"\n{make()}\n"
        readme, places = place.subn(lambda found, part=part: found[1] + part + found[2], readme)
        if places != 1:
            raise ValueError(f"README.md has {places} places for its part {name} where one is expected")
    return readme


if __name__ == "__main__":
    README.write_text(with_parts(README.read_text(encoding="utf-8")), encoding="utf-8")
    draw(PICTURE)
