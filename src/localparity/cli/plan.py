"""`localparity plan`: group sizes in, the least disparity that an audit of them finds out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as RichTable

import localparity as lp
from localparity._text import percent
from localparity._validation import as_fraction
from localparity.cli._commands import print_json
from localparity.cli._options import SeedOption, parse_epsilons, parse_numbers
from localparity.results import Detectable

GroupSizesOption = Annotated[
    str, typer.Option(help="The people of each group, separated by commas, such as 300,500.")
]
MOST_PAIRS = 10


def plan(
    group_sizes: GroupSizesOption,
    mcdp: Annotated[
        float | None, typer.Option(help="Also say how many people it takes to find this MCDP.")
    ] = None,
    monitor: Annotated[
        int | None,
        typer.Option(
            metavar="PERIODS",
            help="Plan for a monitor that has been quiet for this many periods: how many more it takes to "
            "find --mcdp. Group sizes are those of one period.",
        ),
    ] = None,
    max_mcdp: Annotated[float, typer.Option(help="With --monitor, its bound.")] = 0.0,
    power: Annotated[float, typer.Option(help="The probability of finding it.")] = 0.8,
    confidence: Annotated[float, typer.Option(help="1 minus the probability of a false finding.")] = 0.95,
    epsilon: Annotated[
        str, typer.Option(help="The epsilons of the audit, with 0 among them.")
    ] = "0,0.01,0.05,0.1",
    resamples: Annotated[int, typer.Option(help="How many times the groups are reshuffled.")] = 10_000,
    seed: SeedOption = 0,
    jobs: Annotated[int, typer.Option(help="How many resamples run at a time; -1 for all cores.")] = -1,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Say how large a disparity an audit of groups of these sizes can find.

    With --mcdp, also how many people it takes to find one of that size; with --monitor, how many periods.

    Exit codes: 0 when it is done, 2 for bad usage or input.
    """
    sizes = _parse_sizes(group_sizes)
    if mcdp is not None:
        as_fraction(mcdp, "--mcdp")
    if monitor is not None:
        if mcdp is None:
            raise typer.BadParameter("needs --mcdp", param_hint="--monitor")
        _plan_monitor(
            sizes,
            mcdp=mcdp,
            max_mcdp=max_mcdp,
            quiet=monitor,
            power=power,
            alarm_rate=round(1.0 - confidence, 12),
            seed=seed,
            json=json,
        )
        return
    options: dict[str, Any] = {
        "power": power,
        "confidence": confidence,
        "epsilons": parse_epsilons(epsilon),
        "n_resamples": resamples,
        "random_state": seed,
        "n_jobs": jobs,
    }
    found = lp.minimum_detectable(sizes, **options)
    needed = None if mcdp is None else lp.rows_needed(sizes, mcdp=mcdp, **options)
    if json:
        print_json({**_plain(found, mcdp, needed), "epsilons": options["epsilons"]})
    else:
        console = Console(highlight=False)
        _show(console, found, mcdp, needed)
        console.print(
            f"To find: an audit at epsilon {epsilon} reports a disparity, with an adjusted p-value of at "
            f"most {1.0 - found.confidence:.3g}. The groups are assumed to differ at a single cutoff, the "
            "hardest case; a shift of a whole group is found more often. Rows are assumed to be "
            "independent.",
            style="dim",
        )


def _plan_monitor(
    sizes: list[int],
    *,
    mcdp: float,
    max_mcdp: float,
    quiet: int,
    power: float,
    alarm_rate: float,
    seed: int,
    json: bool,
) -> None:
    """Say how many periods a monitor takes to find a drift."""
    needed = lp.monitoring.periods_needed(
        sizes,
        mcdp=mcdp,
        max_mcdp=max_mcdp,
        quiet=quiet,
        power=power,
        alarm_rate=alarm_rate,
        random_state=seed,
    )
    if json:
        known = {"group_sizes": sizes, "mcdp": mcdp, "max_mcdp": max_mcdp, "quiet_periods": quiet}
        print_json({**known, "power": power, "alarm_rate": alarm_rate, "periods_needed": needed})
        return
    console = Console(highlight=False)
    listed = _listed(sizes)
    within = "does not find" if needed is None else "finds"
    took = "3,000 periods" if needed is None else f"{needed:,} period{'s' if needed > 1 else ''}"
    console.print(
        f"After {quiet:,} quiet periods, a monitor with a bound of {percent(max_mcdp)} that sees {listed} "
        f"people a period {within} an MCDP(0) of {percent(mcdp)} within {took} with a probability of "
        f"{100 * power:g}%.",
        style="bold",
    )
    console.print(
        f"The probability of any false alarm, ever, is at most {alarm_rate:.3g}. The groups are taken to "
        "differ most at the median score. Rows are assumed to be independent.",
        style="dim",
    )


def _listed(sizes: Sequence[int]) -> str:
    return " and ".join([", ".join(f"{size:,}" for size in sizes[:-1]), f"{sizes[-1]:,}"])


def _parse_sizes(text: str) -> list[int]:
    """The group sizes: whole numbers with commas between them."""
    numbers = parse_numbers(text, "--group-sizes")
    for number in numbers:
        if not number.is_integer() or number < 1:
            raise typer.BadParameter(
                f"must be whole numbers >= 1, got {number:g}", param_hint="--group-sizes"
            )
    return [int(number) for number in numbers]


def _plain(found: Detectable, mcdp: float | None, needed: tuple[int, ...] | None) -> dict[str, object]:
    """The plan as plain dictionaries and lists."""
    plain: dict[str, object] = {
        "group_sizes": list(found.group_sizes),
        "power": found.power,
        "confidence": found.confidence,
        "detectable_mcdp": found.mcdp,
        "pairs": [{"groups": list(pair), "detectable_mcdp": value} for pair, value in found.pairs.items()],
    }
    if needed is not None:
        plain |= {"mcdp": mcdp, "group_sizes_needed": list(needed), "rows_needed": sum(needed)}
    return plain


def _show(console: Console, found: Detectable, mcdp: float | None, needed: tuple[int, ...] | None) -> None:
    sizes = found.group_sizes
    listed = _listed(sizes)
    chance = f"with a probability of {100 * found.power:g}%"
    if found.mcdp is None:
        first = f"Some groups of {listed} people are too small: no disparity between them is found {chance}."
    else:
        first = f"An audit of groups of {listed} people finds an MCDP(0) of {percent(found.mcdp)} {chance}."
    console.print(first, style="bold")
    if len(sizes) > 2:
        console.print(_pairs_table(found))
    if mcdp is not None and needed is not None:
        console.print(
            f"Finding an MCDP(0) of {percent(mcdp)} takes {sum(needed):,} people: {_listed(needed)}.",
            style="bold",
        )


def _pairs_table(found: Detectable) -> RichTable:
    """What is found between two groups, those between which the most is needed first."""
    shown = RichTable(
        title="The least MCDP(0) found, by the sizes of the groups that differ", title_justify="left"
    )
    for name in ("group", "other group", "MCDP(0)"):
        shown.add_column(name, justify="right")
    by_sizes = {
        tuple(sorted((found.group_sizes[a], found.group_sizes[b]))): found.pairs[a, b]
        for a, b in combinations(range(len(found.group_sizes)), 2)
    }
    order = sorted(by_sizes.items(), key=lambda item: -(2.0 if item[1] is None else item[1]))
    for (few, many), value in order[:MOST_PAIRS]:
        shown.add_row(f"{few:,}", f"{many:,}", "too small" if value is None else percent(value))
    return shown
