"""Whether bands of impact ratios hold, and safe cutoffs are safe: results/impact.md.

Run it with ``LOCALPARITY_DATA=FOLDER python -m benchmarks.impact``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

import localparity as lp
from benchmarks import _designs as designs
from benchmarks._commit import current_commit
from benchmarks._designs import Design, Drawn, Floats, Rng

RESULTS = Path(__file__).parents[1] / "results" / "impact.md"
DRAWS = 1000
CONFIDENCE, MIN_RATIO, TAIL = 0.95, 0.8, 0.05
Survival = Callable[[Floats, bool], Floats]
"""For each group, the true share above cutoffs, or at and above them."""


class Setting(NamedTuple):
    """People drawn from distributions that are known at every cutoff."""

    what: str
    design: Design
    survival: Survival
    disclosed: bool = False


class Held(NamedTuple):
    """What one draw shows: whether the promises held, and where the band of the ratio lies in the tail."""

    rates: float
    ratios: float
    tail: float
    safe: float
    low: float
    uniform_low: float


def powers(exponents: tuple[float, ...], decimals: int | None = None) -> Survival:
    """The distribution function is y to some power; rounded scores go to the nearest."""

    def survival(cutoffs: Floats, at: bool) -> Floats:
        scores = cutoffs
        if decimals is not None:
            steps = np.rint(cutoffs * 10.0**decimals) + (-0.5 if at else 0.5)
            scores = np.clip(steps / 10.0**decimals, 0.0, 1.0)
        return 1.0 - scores[None, :] ** np.array(exponents)[:, None]

    return survival


def stepwise(scores: Floats, shares: Floats) -> Survival:
    """A few scores, of which each group has some shares."""
    above = 1.0 - np.cumsum(shares, axis=1)
    table = np.column_stack([np.ones(len(shares)), above])

    def survival(cutoffs: Floats, at: bool) -> Floats:
        return table[:, np.searchsorted(scores, cutoffs, side="left" if at else "right")]

    return survival


def thinned(sizes: tuple[int, int], ratio: float) -> tuple[Design, Survival]:
    """The first group's share above any cutoff is a ratio of the second's: the others have the score 0."""

    def draw(rng: Rng) -> Drawn:
        groups = np.repeat([0, 1], sizes)
        scores = rng.random(groups.size)
        scores[(groups == 0) & (rng.random(groups.size) >= ratio)] = 0.0
        return Drawn(scores, groups)

    def survival(cutoffs: Floats, at: bool) -> Floats:
        first = np.where((cutoffs <= 0.0) & at, 1.0, ratio * (1.0 - cutoffs))
        return np.stack([first, 1.0 - cutoffs])

    return draw, survival


DECILES = stepwise(np.arange(1.0, 11.0), np.array([np.full(10, 0.1), np.arange(1, 11) / 55]))
EDGE = np.array([[0.605, 0.395], [0.5, 0.5]])
SETTINGS = [
    Setting("y and y^2, 1,000 and 1,000", designs.powers((1000, 1000), (1.0, 2.0)), powers((1.0, 2.0))),
    Setting("parity, 1,000 and 1,000", designs.powers((1000, 1000), (1.0, 1.0)), powers((1.0, 1.0))),
    Setting("parity, 30 and 30", designs.powers((30, 30), (1.0, 1.0)), powers((1.0, 1.0))),
    Setting("y and y^2, 5 and 300", designs.powers((5, 300), (1.0, 2.0)), powers((1.0, 2.0))),
    Setting("y and y^1.2, 60 and 6,000", designs.powers((60, 6000), (1.0, 1.2)), powers((1.0, 1.2))),
    Setting("y and y^1.2, 4,000 and 16,000", designs.powers((4000, 16_000), (1.0, 1.2)), powers((1.0, 1.2))),
    Setting(
        "y and y^2 to one decimal, 200 and 200",
        designs.powers((200, 200), (1.0, 2.0), decimals=1),
        powers((1.0, 2.0), decimals=1),
    ),
    Setting("scores from 1 to 10, 200 and 200", designs.deciles((200, 200)), DECILES),
    Setting(
        "six groups of 200, one differs",
        designs.powers([200] * 6, [1.0] * 5 + [2.0]),
        powers((1.0,) * 5 + (2.0,)),
    ),
    Setting(
        "two scores, a ratio of 0.79, 1,000 and 1,000",
        designs.binary((1000, 1000), (0.605, 0.5)),
        stepwise(np.array([0.2, 0.8]), EDGE),
    ),
    Setting("a ratio of 0.79 at every cutoff, 2,000 and 2,000", *thinned((2000, 2000), 0.79)),
    Setting("a ratio of 0.79 at every cutoff, 100 and 10,000", *thinned((100, 10_000), 0.79)),
    Setting("a ratio of 0.9 at every cutoff, 20,000 and 20,000", *thinned((20_000, 20_000), 0.9)),
    Setting(
        "a ratio of 0.79, 500 and 500, handed on in steps of 10 people", *thinned((500, 500), 0.79), True
    ),
]


def draw(setting: Setting, rng: Rng) -> Held:
    """Draw people once, and compare bands and safe cutoffs with the truth at every cutoff."""
    drawn = setting.design(rng)
    curve = lp.impact_ratio_curve(
        lp.Predictions.from_arrays(None, drawn.scores, sensitive_features=drawn.groups),
        confidence=CONFIDENCE,
        **drawn.options,
    )
    curve = curve.disclosed() if setting.disclosed else curve
    # From a cutoff up to the next one the true rate falls from the one to the other, and the ratio is
    # monotone in these designs.
    ends = np.append(curve.cutoffs[1:], curve.score_range[1])
    rates = [setting.survival(curve.cutoffs, False), setting.survival(ends, True)]
    rates[1][:, -1] = setting.survival(ends[-1:], False)[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [rate / rate.max(axis=0) for rate in rates]
    low, high = curve.rate_bands
    held = [(low <= rate + 1e-12) & (rate <= high + 1e-12) for rate in rates]
    ratio_low, ratio_high = curve.ratio_bands
    inside = [
        np.isnan(ratio) | ((ratio_low <= ratio + 1e-12) & (ratio <= ratio_high + 1e-12)) for ratio in ratios
    ]
    tail = rates[0].max(axis=0) <= TAIL
    by_band = curve.safe_cutoffs(MIN_RATIO).by_band
    assert by_band is not None
    safe = True
    for each in by_band:
        places = (curve.cutoffs >= each.low) & (curve.cutoffs < each.high)
        safe &= all(np.nanmin(ratio[:, places], initial=1.0) >= MIN_RATIO - 1e-12 for ratio in ratios)
    at = int(np.argmin(np.abs(curve.rates.max(axis=0) - TAIL)))
    return Held(
        all(each.all() for each in held),
        all(each.all() for each in inside),
        all(each[:, tail].all() for each in inside),
        safe,
        float(ratio_low[:, at].min()),
        _uniform_low(curve, at),
    )


def _uniform_low(curve: lp.results.ImpactRatioCurve, at: int) -> float:
    """The same end by the inequality of Dvoretzky, Kiefer and Wolfowitz for each group."""
    share = (1.0 - CONFIDENCE) / len(curve.groups)
    radius = np.sqrt(log(2.0 / share) / (2.0 * curve.selection.sizes))
    low, high = np.maximum(curve.rates[:, at] - radius, 0.0), curve.rates[:, at] + radius
    return float(min(low[g] / np.delete(high, g).max() for g in range(low.size)))


def simulate(place: int, draws: int = DRAWS) -> Floats:
    """The means of what a setting's draws show."""
    seeds = np.random.SeedSequence([19, place]).spawn(draws)
    return np.mean([draw(SETTINGS[place], np.random.default_rng(seed)) for seed in seeds], axis=0)


def rows(draws: int = DRAWS) -> Iterator[str]:
    """The rows of the table."""
    for place, setting in enumerate(SETTINGS):
        found = Held(*simulate(place, draws).tolist())
        shares = " | ".join(f"{share:.1%}" for share in found[:4])
        yield f"| {setting.what} | {shares} | {found.low:.2f} | {found.uniform_low:.2f} |\n"


HEADING = """\
# Impact ratios: how often their bands hold, and safe cutoffs are safe

`python -m benchmarks.impact` at {commit}: {draws:,} draws a row from distributions that are known at every
cutoff, at a confidence of 95% and a least ratio of 0.8. The Monte Carlo error of a coverage of 95% is
{error:.1%}. Bands hold where the truth is inside at every cutoff and for every group; in the tail, at
cutoffs that select at most 5% of the best-off group. The last two columns are the lower end of the lowest
ratio where 5% of the best-off group are selected, on average: of these bands, and of bands of one width for
all cutoffs, by the inequality of Dvoretzky, Kiefer and Wolfowitz.

| design | rates hold | ratios hold | in the tail | safe cutoffs are safe | lower end | of one width |
|---|---|---|---|---|---|---|
"""


ADULT = """
## A model that passes at the median and fails among the top 5%

Boosted trees on Adult (LightGBM, penalty strength {strength:g}, half of the rows for training): on the other
half, MCDP(0) between women and men is {mcdp:.3f}. Where half of the people are selected, the ratio is
{middle};
among the top 5%, it is {top}.
{sentence}
"""


def real_case(strength: float = 0.4) -> str:
    """A model on real people, trained towards parity, at two cutoffs."""
    adult = lp.datasets.fetch_adult()
    order = np.random.default_rng(0).permutation(len(adult.target))
    half = order.size // 2
    sex, labels = np.asarray(adult.sensitive_features), np.asarray(adult.target)
    model = lp.models.LocalParityLGBMClassifier(strength=strength, temperature=20.0, random_state=0)
    train, test = order[:half], order[half:]
    model.fit(adult.data.iloc[train], labels[train], sensitive_features=sex[train])
    scores = model.predict_proba(adult.data.iloc[test])[:, 1]
    people = {"y_score": scores, "sensitive_features": sex[test]}
    curve = lp.impact_ratio_curve(labels[test], **people, confidence=CONFIDENCE)
    found = []
    for cutoff in np.quantile(scores, [0.5, 1.0 - TAIL]):
        worst = min(curve.at(float(cutoff)), key=lambda each: each.ratio)
        assert worst.ratio_interval is not None
        ends = f"{worst.ratio_interval.low:.2f} to {worst.ratio_interval.high:.2f}"
        found.append(f"{worst.ratio:.2f} (95% interval {ends})")
    return ADULT.format(
        strength=strength,
        mcdp=lp.mcdp(None, **people),
        middle=found[0],
        top=found[1],
        sentence=curve.safe_cutoffs(MIN_RATIO).sentence,
    )


def main() -> None:
    """Simulate, and write the table."""
    error = sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / DRAWS)
    lines = [HEADING.format(commit=current_commit(), draws=DRAWS, error=error)]
    for row in rows():
        lines.append(row)
        print(row, end="", flush=True)
    RESULTS.write_text("".join([*lines, real_case()]))


if __name__ == "__main__":
    main()
