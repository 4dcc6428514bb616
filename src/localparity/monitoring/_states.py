"""The states of a streaming metric, where torchmetrics is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localparity._validation import require

torch: Any = require("torch", extra="train")

_REDUCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "cat": lambda parts: torch.cat(parts),
    "sum": lambda parts: torch.stack(parts).sum(dim=0),
    "max": lambda parts: torch.stack(parts).amax(dim=0),
}


class StateMetric:
    """What `LocalDisparity` needs of `torchmetrics.Metric`, with the same meaning.

    Parameters
    ----------
    sync_on_compute : bool
        Whether a result is that of all processes.
    process_group : torch.distributed.ProcessGroup, optional
        The processes; all by default.
    """

    def __init__(self, *, sync_on_compute: bool = True, process_group: Any = None) -> None:
        self.process_group = process_group
        self._to_sync = sync_on_compute
        self._defaults: dict[str, Any] = {}
        self._reductions: dict[str, str] = {}
        self._cache: dict[str, Any] = {}
        self._is_synced = False

    def add_state(self, name: str, default: Any, dist_reduce_fx: str) -> None:
        """Add a tensor, or a list of them, and how those of several processes become one tensor."""
        self._defaults[name], self._reductions[name] = default, dist_reduce_fx
        self.reset()

    def reset(self) -> None:
        """Discard all batches."""
        for name, default in self._defaults.items():
            setattr(self, name, [] if isinstance(default, list) else default.clone())
        self._is_synced = False

    def sync(
        self,
        dist_sync_fn: Callable[..., list[Any]],
        process_group: Any = None,
        should_sync: bool = True,
        distributed_available: Callable[[], bool] | None = None,
    ) -> None:
        """Replace the states of this process by those of all processes."""
        available = distributed_available or _in_processes
        if not should_sync or not available():
            return
        self._cache = {name: getattr(self, name) for name in self._defaults}
        for name, reduction in self._reductions.items():
            parts = self._cache[name]
            own = torch.cat(parts or [torch.empty(0)]) if isinstance(parts, list) else parts
            gathered = dist_sync_fn(own, group=process_group or self.process_group)
            setattr(self, name, _REDUCTIONS[reduction](gathered))
        self._is_synced = True

    def unsync(self, should_unsync: bool = True) -> None:
        """Bring back the states of this process."""
        if should_unsync:
            vars(self).update(self._cache)
            self._is_synced = False


def _in_processes() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())
