"""Small things in the place of what takes long and writes nothing, or asks the network."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import experiment_runs
import localparity as lp

_BANK = b'"age";"duration";"campaign";"pdays";"previous";"emp.var.rate";"cons.price.idx";"cons.conf.idx";'
_BANK += b'"euribor3m";"nr.employed";"y"\n' + b"".join(
    b'%d;1;1;1;1;1;1;1;1;1;"%s"\n' % (age, b"yes" if age % 3 else b"no") for age in range(20, 60)
)


def _save_figure(figure: Any, target: Any, **options: Any) -> None:
    """What a figure says, without drawing it."""
    texts = [axes.get_title() for axes in figure.axes]
    target.write(repr((options["format"], texts, [len(axes.lines) for axes in figure.axes])).encode() * 50)


def _compared_once(folder: Path) -> Callable[..., Any]:
    """A comparison that is kept, in a folder, for the next process that asks for the same number of steps."""
    compare = lp.models.compare

    def compare_once(*arguments: Any, **options: Any) -> Any:
        kept = folder / f"comparison-{options.get('network_steps')}.pickle"
        if not kept.exists():
            kept.write_bytes(pickle.dumps(compare(*arguments, **options)))
        return pickle.loads(kept.read_bytes())

    return compare_once


def _few_trees(grow: Callable[..., Any]) -> Callable[..., Any]:
    """What grows three trees, however many it is asked for."""

    def grow_few(self: Any, objective: Any, pace: Any, watched: Any) -> Any:
        return grow(self, objective, pace._replace(steps=min(pace.steps, 3)), watched)

    return grow_few


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Short trainings, figures that are not drawn, a download."""
    from matplotlib.figure import Figure

    from localparity.cli import demo
    from localparity.datasets import _fetch
    from localparity.models.trees._boosters import _LightGBMBackend

    with ExitStack() as stack:
        stack.enter_context(experiment_runs.installed())
        for owner, name, stand_in in (
            (Figure, "savefig", _save_figure),
            (_LightGBMBackend, "grow", _few_trees(_LightGBMBackend.grow)),
            (lp.models, "compare", _compared_once(folder)),
            (demo, "_train", lambda *_: {}),
            (_fetch, "_download", lambda _: _BANK),
            (_fetch, "_check", lambda *_: None),
        ):
            stack.enter_context(patch.object(owner, name, stand_in))
        yield
