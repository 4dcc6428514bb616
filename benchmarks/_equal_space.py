"""The settings that every method may have in the search with equal budgets, and how they are drawn."""

from __future__ import annotations

import random
from typing import Any

SEED = 22
METHODS = ("erm", "advdebias", "diffdp", "fairmixup", "dralign", "diffabcc", "diffmcdp")
TABLES = ("adult", "bank")

_TABLE = {
    "hidden": ([256, 256], [512, 256, 64], [1024, 512, 128]),
    "dropout": (0.2, 0.35, 0.5, 0.6, 0.7),
    "steps": (300, 600, 900),
    "batch_size": (512, 1024, 2048),
}
_IMAGE = {"steps": (225, 450), "batch_size": (256, 512)}
# Roughly where each method keeps 95% of ERM's average precision, by earlier searches on validation parts.
_MIDDLE = {
    "adult": dict(zip(METHODS[1:], (2.0, 0.3, 0.6, 0.3, 0.35, 0.3), strict=True)),
    "bank": dict(zip(METHODS[1:], (0.9, 1.0, 0.4, 1.0, 1.2, 0.35), strict=True)),
    "utkface": dict(zip(METHODS[1:], (1.0, 0.8, 1.2, 0.8, 1.2, 1.2), strict=True)),
}


def draw_settings(dataset: str, method: str, number: int) -> dict[str, Any]:
    """The settings of a method on a data set with this number, from 0.

    Network, batches, learning rate and steps are the same for all methods; what a method alone has is drawn
    after them.
    """
    shared = random.Random(f"{SEED} {dataset} {number}")
    own = random.Random(f"{SEED} {dataset} {number} {method}")
    space = _TABLE if dataset in TABLES else _IMAGE
    plan: dict[str, Any] = {"schedule": "cosine", "learning_rate": _log_uniform(shared, 3e-4, 3e-3)}
    plan |= {name: shared.choice(space[name]) for name in ("steps", "batch_size")}
    settings: dict[str, Any] = {"plan": plan, "options": {"balanced": shared.random() < 0.5}}
    if dataset in TABLES:
        settings |= {name: shared.choice(space[name]) for name in ("hidden", "dropout")}
    else:
        plan |= {"precision": "bfloat16", "weight_decay": shared.choice((0.0, 0.01, 0.1))}
        settings["augment"] = shared.random() < 0.75
    settings["options"] |= _own_options(own, dataset, method)
    return settings


def search_strengths(dataset: str, method: str, n_strengths: int) -> list[float]:
    """As many strengths, from a third of the middle to three times it."""
    return [0.0] if method == "erm" else spread(_MIDDLE[dataset][method], 10.0, n_strengths)


def spread(middle: float, ratio: float, number: int) -> list[float]:
    """Strengths around a middle in equal steps of their logarithm; the last is `ratio` times the first."""
    return [float(f"{middle * ratio ** (place / (number - 1) - 0.5):.4g}") for place in range(number)]


def _own_options(own: random.Random, dataset: str, method: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if method in ("diffabcc", "diffmcdp"):
        options["temperature"] = _log_uniform(own, 5.0, 160.0)
    if method == "diffmcdp":
        options["search"] = own.choice(("exact", "soft"))
        options["sharpness"] = own.choice((2.0, 4.0, 8.0))
        options["memory"] = own.choice((0, 0, 4096))
    if method == "dralign":
        low, high = (0.0125, 0.2) if dataset in TABLES else (0.0005, 0.008)
        options["alignment"] = _log_uniform(own, low, high)
    return options


def _log_uniform(source: random.Random, low: float, high: float) -> float:
    return float(f"{low * (high / low) ** source.random():.3g}")
