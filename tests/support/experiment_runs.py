"""A small data set and a short training under Adult's and Bank's names, so that a run takes a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from localparity.datasets import make_census
from localparity.paper import _data
from localparity.paper import _runs as _grids

SHORT = {"search": "frozen", "steps": 20, "hidden": (16, 8), "batch_size": 128, "learning_rate": 0.02}
NAMES = ("adult", "bank")


def load_census() -> _data.Samples:
    census = make_census(1500, random_state=0)
    return _data.Samples(census.data, census.target, census.sensitive_features)


@contextmanager
def installed() -> Iterator[None]:
    """The small data set in the place of the real ones."""
    from localparity.paper._train import prepare

    settings = _grids._SETTINGS["paper"]
    kept = [(_data.DATA_SETS[name], settings[name]) for name in NAMES]
    for name in NAMES:
        _data.DATA_SETS[name] = _data.DataSet(name.title(), "table", load_census, 0.4)
        settings[name] = {_grids._ALL: SHORT}
    try:
        yield
    finally:
        for name, (data, own) in zip(NAMES, kept, strict=True):
            _data.DATA_SETS[name], settings[name] = data, own
        _data.load_samples.cache_clear()
        prepare.cache_clear()


if __name__ == "__main__":
    from localparity.cli import main

    with installed():
        main()
