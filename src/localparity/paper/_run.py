"""A run: what is trained on what, from which seed, and its key; and the runs of a grid."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from localparity._validation import as_choice, as_count, as_number, as_strength, as_temperature
from localparity.paper._grids import TITLES, check_names, settings_of, strengths_of

SEARCHES = ("exact", "probe", "frozen", "soft")


@dataclass(frozen=True)
class Run:
    """A data set, a method, its strength, a seed, a preset, and what differs from the preset.

    Parameters
    ----------
    dataset : str
        "adult", "bank", "utkface", "celeba-a" or "celeba-w".
    method : str
        One of the seven methods.
    strength : float
        The weight of the method's penalty.
    seed : int
        The seed of the split and of everything random in training.
    preset : str, default="paper"
        "paper" or "tuned".
    search : str, optional
        How DiffMCDP finds its threshold, in place of the preset's search.
    temperature : float, optional
        In place of the preset's temperature.

    Examples
    --------
    >>> run = Run("adult", "diffmcdp", 0.3, seed=0)
    >>> run.settings["search"], run.settings["steps"]
    ('frozen', 150)
    >>> run.key == Run("adult", "diffmcdp", 0.3, 0, search="frozen").key
    True
    >>> run.title
    'adult DiffMCDP 0.3 seed 0'
    """

    dataset: str
    method: str
    strength: float
    seed: int
    preset: str = "paper"
    search: str | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        check_names(self.dataset, self.method, self.preset)
        if self.search is not None:
            as_choice(self.search, "search", SEARCHES)
        object.__setattr__(self, "strength", as_strength(self.strength))
        object.__setattr__(self, "seed", as_count(self.seed, "seed", at_least=0))
        if self.temperature is not None:
            object.__setattr__(self, "temperature", as_temperature(self.temperature))

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that differ from the preset: the data set's and the run's own."""
        own = {"search": self.search, "temperature": self.temperature}
        given = {name: value for name, value in own.items() if value is not None}
        return {**settings_of(self.preset, self.dataset, self.method), **given}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every setting of the training, the preset's included."""
        from localparity.models.networks._presets import PRESETS

        return {**PRESETS[self.preset], **self.changes}

    @cached_property
    def key(self) -> str:
        """The hash of the configuration: two runs that train the same have the same key."""
        what = [self.dataset, self.method, self.strength, self.seed, self.preset, self.settings]
        text = json.dumps(what, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def variant(self) -> str:
        """The method and what was changed of it, as tables name it."""
        changes = [] if self.search is None else [self.search]
        if self.temperature is not None:
            changes.append(f"temperature {self.temperature:g}")
        return TITLES[self.method] + (f" ({', '.join(changes)})" if changes else "")

    @property
    def title(self) -> str:
        """The run as a progress bar names it."""
        return f"{self.dataset} {self.variant} {self.strength:g} seed {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON.

        Returns
        -------
        dict
            The arguments that make the same run.
        """
        return asdict(self)


def grid(
    dataset: str,
    *,
    preset: str = "paper",
    methods: Iterable[str] | None = None,
    strengths: Iterable[float] | None = None,
    seeds: int = 5,
    searches: Sequence[str] = (),
    temperatures: Sequence[float] = (),
) -> list[Run]:
    """List the runs of a data set: its methods, their strengths, the seeds.

    Parameters
    ----------
    dataset : str
        "adult", "bank", "utkface", "celeba-a" or "celeba-w".
    preset : str, default="paper"
        "paper" or "tuned".
    methods : iterable of str, optional
        Some of the seven, in place of all; ERM is always included, since selection compares with it.
    strengths : iterable of float, optional
        Some of the methods' strengths, in place of all.
    seeds : int, default=5
        The number of seeds, which are 0, 1, ...
    searches : sequence of str, default=()
        Further searches of DiffMCDP.
    temperatures : sequence of float, default=()
        Further temperatures of DiffMCDP.

    Returns
    -------
    list of Run
        Runs that all train differently.

    Examples
    --------
    >>> len(grid("adult")) + len(grid("bank"))
    310
    """
    chosen = tuple(TITLES) if methods is None else tuple(dict.fromkeys(["erm", *methods]))
    known = {method: strengths_of(preset, dataset, method) for method in chosen}
    if strengths is not None:
        known |= _only(known, [as_number(strength, "strengths") for strength in strengths])
    runs: dict[str, Run] = {}
    for seed in range(as_count(seeds, "seeds")):
        for method, of_method in known.items():
            for changes in _forms(method, searches, temperatures):
                for strength in of_method:
                    run = Run(dataset, method, strength, seed, preset, **changes)
                    runs.setdefault(run.key, run)
    return list(runs.values())


def _only(known: dict[str, tuple[float, ...]], wanted: Sequence[float]) -> dict[str, tuple[float, ...]]:
    """The strengths wanted, for the methods that have them; ERM keeps its own."""
    penalised = {method: strengths for method, strengths in known.items() if method != "erm"}
    there = sorted({strength for strengths in penalised.values() for strength in strengths})
    for strength in wanted:
        if strength not in there:
            choices = ", ".join(f"{value:g}" for value in there)
            raise ValueError(f"strengths of {', '.join(penalised)} must be among {choices}, got {strength:g}")
    return {
        method: tuple(value for value in strengths if value in wanted)
        for method, strengths in penalised.items()
    }


def _forms(method: str, searches: Sequence[str], temperatures: Sequence[float]) -> list[dict[str, Any]]:
    """The method as the preset has it, and its further forms."""
    forms: list[dict[str, Any]] = [{}]
    if method == "diffmcdp":
        forms += [{"search": search} for search in searches]
        forms += [{"temperature": temperature} for temperature in temperatures]
    return forms
