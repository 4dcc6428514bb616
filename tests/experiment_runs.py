"""A small data set and a short training under Adult's name, so that a run takes a moment."""

from __future__ import annotations

from localparity.datasets import make_census
from localparity.experiments import _data, _grids

SHORT = {"search": "frozen", "steps": 20, "hidden": (16, 8), "batch_size": 128, "learning_rate": 0.02}


def load_census() -> _data.People:
    census = make_census(1500, random_state=0)
    return _data.People(census.data, census.target, census.sensitive_features)


def install() -> None:
    """Put the small data set in Adult's and Bank's place, for a process of its own."""
    for name in ("adult", "bank"):
        _data.DATA_SETS[name] = _data.DataSet(name.title(), "table", load_census, 0.4)
        _grids.SETTINGS["paper"][name] = SHORT


if __name__ == "__main__":
    from localparity.cli import main

    install()
    main()
