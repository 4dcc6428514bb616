"""A monitor's page: what there is to say now, MCDP over time, and every period."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from localparity._types import Compare, Criterion
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.monitoring import Monitor
from localparity.monitoring._monitor import asked_of
from localparity.report._written import write_new
from localparity.report.page._frame import render_frame, script_json
from localparity.report.page._monitor_document import MonitorDocument
from localparity.report.page._time_picture import time_picture


def write_monitor_page(
    path: str | PathLike[str],
    monitor: Monitor,
    *,
    title: str | None = None,
    epsilon: float | None = None,
    criterion: Criterion | None = None,
    compare: Compare | None = None,
    min_group_size: int | None = None,
    confidence: float | None = None,
    max_mcdp: float | None = None,
    alarm_rate: float | None = None,
    force: bool = False,
) -> None:
    """Write what a monitor found over time as one page that opens anywhere, offline.

    The page says first whether there is an alarm, how large MCDP is now and since the start. Then come a
    chart of all periods, in which each can be chosen, and tables. It asks nothing of any network. Needs the
    extra `report`.

    Parameters
    ----------
    path : path
        Where to write it. The file is written whole or not at all.
    monitor : Monitor
        The monitor.
    title : str, optional
        The page's heading.
    epsilon, criterion, compare, confidence, max_mcdp, alarm_rate
        What is asked, as in `Monitor.series`: what is not given is what the monitor keeps.
    min_group_size : int, default=10
        The fewest people that each group must have; of other periods nothing is said.
    force : bool
        Overwrite the file if it exists.

    Examples
    --------
    >>> import datetime, pathlib, tempfile
    >>> import localparity as lp
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> monitor = lp.monitoring.Monitor(folder / "kept")
    >>> for day in (1, 2):
    ...     census = lp.datasets.make_census(500, random_state=day)
    ...     sex = census.sensitive_features
    ...     batch = lp.Predictions.from_arrays(None, census.score, sensitive_features=sex)
    ...     _ = monitor.append(batch, at=datetime.datetime(2026, 5, day), batch_id=str(day))
    >>> lp.report.write_monitor_page(folder / "page.html", monitor, max_mcdp=0.1)
    >>> (folder / "page.html").stat().st_size < 3_000_000
    True
    """
    path = Path(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} already exists; pass force=True to overwrite")
    people: dict[str, Any] = {
        "epsilon": epsilon,
        "criterion": criterion,
        "compare": compare,
        "min_group_size": min_group_size,
        "confidence": confidence,
    }
    bound = {"max_mcdp": max_mcdp, "alarm_rate": alarm_rate}
    asked = asked_of(monitor, people | bound, min_group_size=DISCLOSURE_LIMIT)
    series = monitor.series(**asked)
    if not series:
        raise ValueError(f"{monitor.location} has no periods")
    whole = monitor.since_start(**{name: asked[name] for name in people})
    document = MonitorDocument(
        monitor, title or f"Local disparity over time: {monitor.name}", series, whole, asked
    )
    write_new(path, render_monitor_page(document).encode(), force=force)


def render_monitor_page(document: MonitorDocument) -> str:
    """The page as text."""
    newest, whole = document.series[-1], document.whole
    return render_frame(
        "monitor",
        document.data(),
        title=document.title,
        header_rows=document.header(),
        answers=document.answers(),
        every=document.monitor.every,
        confidence=document.asked["confidence"],
        epsilon=document.asked["epsilon"],
        bound=document.max_mcdp,
        n_periods=len(document.series),
        picture=time_picture(document.series, document.max_mcdp),
        tables=document.tables(),
        notes=document.notes(),
        numbers=script_json(
            {"newest": asdict(newest), "since_start": asdict(whole), "asked": document.asked}
        ),
    )
