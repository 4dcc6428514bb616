"""The paper's selection rule: which of a method's strengths is reported, seed by seed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from localparity.paper._runs import TITLES
from localparity.paper._store import METRIC_NAMES, Record, Store

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
KEPT_SHARE = 0.95
METRICS_NEEDED = [f"{part}_{name}" for part in ("val", "test") for name in METRIC_NAMES]


class SeedMean(NamedTuple):
    """A mean over seeds in percent, and the sample deviation if there are two seeds or more."""

    mean: float
    deviation: float | None


@dataclass
class MethodRuns:
    """A method's runs on a data set: the chosen run of each seed, and the seeds without one.

    A seed fails if no strength keeps 95% of ERM's validation AP.
    """

    dataset: str
    preset: str
    method: str
    variant: str
    chosen: dict[int, Record] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)

    def measured(self, metric: str, part: str = "test") -> SeedMean | None:
        """The mean of a metric over the seeds; None if the rule chose nothing."""
        return mean_over_seeds(record.metrics[f"{part}_{metric}"] for record in self.chosen.values())

    def mean(self, metric: str, part: str = "test") -> float:
        """The mean of a metric over the seeds, of which at least one has a chosen run."""
        measured = self.measured(metric, part)
        assert measured is not None
        return measured.mean

    @property
    def strengths(self) -> list[float]:
        """The chosen strengths, without repeats."""
        return sorted({record.run.strength for record in self.chosen.values()})


def mean_over_seeds(fractions: Iterable[float]) -> SeedMean | None:
    """Mean and deviation in percent."""
    values = [100.0 * fraction for fraction in fractions]
    if not values:
        return None
    return SeedMean(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)


def records_of(store: Store) -> list[Record]:
    """The records of a store, at least one."""
    records = store.records()
    if not records:
        raise ValueError(f"the store {store.folder} has no runs; train some with `localparity reproduce`")
    for record in records:
        lacking = [name for name in METRICS_NEEDED if name not in record.metrics]
        if lacking:
            raise ValueError(f"the run {record.run.title} in {store.folder} has no metric {lacking[0]!r}")
    return records


def choose_runs(records: Iterable[Record]) -> list[MethodRuns]:
    """For every data set, preset and method, the run of each seed that the paper's rule reports.

    Of a method's strengths it is the one with the lowest validation MCDP(0) among those whose validation AP
    is at least 95% of ERM's at the same seed. If no strength keeps that much, the seed counts as failed
    and nothing is reported in its place. Runs at other temperatures than the preset's are left out.
    """
    selections: list[MethodRuns] = []
    for (dataset, preset), runs in by_grid(records).items():
        accuracy = {
            record.run.seed: record.metrics["val_ap"] for record in runs if record.run.method == "erm"
        }
        for variant, own in by_variant(runs):
            selection = MethodRuns(dataset, preset, own[0].run.method, variant)
            for seed in sorted({record.run.seed for record in own} & accuracy.keys()):
                least = KEPT_SHARE * accuracy[seed]
                enough = [run for run in own if run.run.seed == seed and run.metrics["val_ap"] >= least]
                if enough:
                    selection.chosen[seed] = min(enough, key=lambda record: record.metrics["val_mcdp_0"])
                else:
                    selection.failed.append(seed)
            selections.append(selection)
    return selections


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items of each key, in the order in which the keys come first."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_grid(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """The records of each data set and preset, at the preset's temperature."""
    plain = [record for record in records if record.run.temperature is None]
    return dict(sorted(grouped(plain, lambda record: (record.run.dataset, record.run.preset)).items()))


def by_variant(records: Iterable[Record]) -> Iterator[tuple[str, list[Record]]]:
    """The records of each method and form of it, in the order of the paper's tables."""
    order = list(TITLES)
    variants = grouped(records, lambda record: (order.index(record.run.method), record.run.variant))
    for (_, variant), own in sorted(variants.items()):
        yield variant, own


def by_strength(records: Iterable[Record]) -> dict[float, list[Record]]:
    """The records of each strength, from the lowest on."""
    return dict(sorted(grouped(records, lambda record: record.run.strength).items()))


def by_data_set(selections: Iterable[MethodRuns]) -> list[list[MethodRuns]]:
    """The selections grouped by data set and preset."""
    return list(grouped(selections, lambda runs: (runs.dataset, runs.preset)).values())
