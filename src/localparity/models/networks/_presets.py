"""Settings that go together, by name."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # What the paper's published code ran on tables.
    "paper": {
        "hidden": (512, 256, 64),
        "dropout": 0.5,
        "steps": 150,
        "batch_size": 1024,
        "learning_rate": 1e-3,
        "schedule": "steps",
        "temperature": 10.0,
        "search": "exact",
        "memory": 0,
        "balanced": False,
    },
    # The same network, trained for longer; chosen on the validation parts of Adult and Bank.
    "tuned": {
        "hidden": (512, 256, 64),
        "dropout": 0.6,
        "steps": 900,
        "batch_size": 1024,
        "learning_rate": 1e-3,
        "schedule": "cosine",
        "temperature": 80.0,
        "search": "exact",
        "memory": 0,
        "balanced": True,
    },
}

# In the middle of the strengths that the paper compares on Adult; used where none is given.
STRENGTHS: dict[str, float] = {
    "erm": 0.0,
    "advdebias": 0.6,
    "diffdp": 0.3,
    "fairmixup": 0.3,
    "dralign": 0.3,
    "diffabcc": 0.3,
    "diffmcdp": 0.2,
}
