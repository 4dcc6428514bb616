"""What ten thousand monitored periods cost: an append, a page, and the size of the page.

`python -m benchmarks.monitor_scale [--periods 10000] [--location FOLDER_OR_URL]` prints a line for each; with
`--write` it writes results/monitor_scale.md. Two groups of 200 people an hour. The periods are made by
appending them, so that an append among the first and among the last can be compared.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks._commit import current_commit
from localparity import Predictions
from localparity.monitoring import Monitor, Watch
from localparity.report import write_monitor_page

RESULTS = Path(__file__).parents[1] / "results" / "monitor_scale.md"
START = datetime(2026, 1, 1, tzinfo=UTC)
SEX = np.repeat(["f", "m"], 200)


def batch(number: int) -> Predictions:
    rng = np.random.default_rng(number)
    scores = np.clip(rng.beta(2.0, 3.0, SEX.size) + 0.05 * (SEX == "m"), 0.0, 1.0)
    return Predictions.from_arrays(None, scores, sensitive_features=SEX)


def fill(monitor: Monitor, periods: int) -> list[float]:
    """The seconds that each append takes."""
    seconds = []
    for number in range(periods):
        rows, at = batch(number), START + timedelta(hours=number)
        begun = time.perf_counter()
        monitor.append(rows, at=at, batch_id=str(number))
        seconds.append(time.perf_counter() - begun)
    return seconds


def write_page(path: Path, monitor: Monitor) -> float:
    """The seconds that a page takes."""
    begun = time.perf_counter()
    write_monitor_page(path, monitor, Watch(max_mcdp=0.1), force=True)
    return time.perf_counter() - begun


def measure(location: str, periods: int, page: Path) -> dict[str, str]:
    monitor = Monitor(location, every="hour")
    appends = fill(monitor, periods)
    first_page = write_page(page, monitor)
    monitor.append(batch(periods), at=START + timedelta(hours=periods), batch_id="one more")
    next_page = write_page(page, monitor)
    begun = time.perf_counter()
    monitor.series(Watch(max_mcdp=0.1, confidence=0.9), last=1)
    alarm = time.perf_counter() - begun
    few = max(1, min(100, periods // 2))
    return {
        f"append, median of the first {few}": f"{1000 * np.median(appends[:few]):.1f} ms",
        f"append, median of the last {few}": f"{1000 * np.median(appends[-few:]):.1f} ms",
        f"append, slowest of the last {few}": f"{1000 * max(appends[-few:]):.1f} ms",
        "looking for an alarm at the newest period": f"{alarm:.1f} s",
        "the first page": f"{first_page:.1f} s",
        "the next page, after one more batch": f"{next_page:.1f} s",
        "size of the page": f"{page.stat().st_size / 1e6:.2f} MB",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--periods", type=int, default=10_000)
    parser.add_argument("--location", help="a folder or a URL of a database; a temporary folder by default")
    parser.add_argument("--write", action="store_true", help="write results/monitor_scale.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        location = options.location or f"{folder}/kept"
        found = measure(location, options.periods, Path(folder) / "page.html")
    lines = [f"| {what} | {value} |" for what, value in found.items()]
    print("\n".join(lines))
    if options.write:
        RESULTS.write_text(
            f"# A monitor of {options.periods:,} periods\n\n"
            f"`python -m benchmarks.monitor_scale --write` at {current_commit()}: two groups of 200 people "
            "an hour.\n\n"
            "| what | |\n|---|---:|\n" + "\n".join(lines) + "\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
