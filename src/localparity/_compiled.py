"""Loops in plain Python while there is little to do, and compiled by numba from then on.

Loading numba and what it has compiled takes half a second, and compiling for the first time on a machine
several, which is longer than a small file takes without. So each call runs as it is written until one comes
with many numbers, or until the calls have together taken most of that half second; from then on every call is
compiled. Either way gives the same bits, and only this module imports numba.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from threading import RLock
from time import thread_time
from types import FunctionType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

MANY = 1 << 16
"""The numbers given to a call from which on it is compiled; they take plain Python some 0.1 seconds."""

PATIENCE = 0.3
"""The seconds of processor time that all calls together may take in plain Python."""


def compiled(function: F, **options: Any) -> F:
    """A function of arrays and numbers that is compiled once that pays."""
    return cast(F, Kernel(function, options))


def compiled_fast(function: F) -> F:
    """The same, free to reorder a maximum of numbers none of which is NaN."""
    return compiled(function, fastmath={"nnan", "nsz"})


def compiled_inline(function: F) -> F:
    """The same, for a few lines that compiled loops run a row: their code becomes part of the loop's."""
    return compiled(function, forceinline=True)


class Kernel:
    """A loop over arrays, both as it is written and compiled."""

    _taken: ClassVar[float] = 0.0
    _lock: ClassVar[Any] = RLock()

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._options = {"nogil": True, **options}
        self._dispatcher: Any = None
        self._inside: Any = None

    def __call__(self, *values: Any) -> Any:
        """Run in the way that takes less time."""
        if Kernel._taken < PATIENCE and _count(values) < MANY:
            start = thread_time()
            try:
                return self.plain(*values)
            finally:
                Kernel._taken += thread_time() - start
        Kernel._taken = PATIENCE
        return self.fast(*values)

    def plain(self, *values: Any) -> Any:
        """Run as written; like compiled code it returns Python's numbers and says nothing of overflow."""
        with np.errstate(all="ignore"):
            return _as_python(self._function(*values))

    def fast(self, *values: Any) -> Any:
        """Run compiled."""
        try:
            return (self._dispatcher or self.dispatcher)(*values)
        except (AttributeError, ImportError):  # another version kept it on disk, with names that are gone
            self._forget()
            return self.dispatcher(*values)

    @property
    def dispatcher(self) -> Any:
        """What numba makes of it: without the interpreter's lock, kept on disk where there is a place."""
        with self._lock:
            if self._dispatcher is None:
                from numba import njit

                _watch_compiler()
                try:
                    self._dispatcher = njit(cache=True, **self._options)(self._function)
                except RuntimeError:  # neither the package's folder nor the user's can be written to
                    self._dispatcher = njit(**self._options)(self._function)
            return self._dispatcher

    def _forget(self) -> None:
        """Drop what is kept on disk; where that is not allowed, do without it."""
        from numba import njit
        from numba.core.caching import FunctionCache

        try:
            cache: Any = FunctionCache
            cache(self._function).flush()
        except (OSError, RuntimeError):
            self._dispatcher = njit(**self._options)(self._function)

    @property
    def _numba_type_(self) -> Any:
        """What a compiled kernel that calls this one calls: the same by another name.

        What is kept on disk of the caller has it too, and numba takes two of one name for the same.
        """
        with self._lock:
            if self._inside is None:
                from numba import njit

                inside = FunctionType(self._function.__code__, self._function.__globals__)
                inside.__qualname__ = f"{self._function.__qualname__}_inside"
                self._inside = njit(**self._options)(inside)
            return self._inside._numba_type_

    def __reduce__(self) -> str:
        """A process that is handed a kernel imports it."""
        return self._function.__qualname__


def plain_seconds() -> float:
    """The seconds that calls have taken in plain Python; once they are compiled, it grows no more."""
    return Kernel._taken


_under_way: list[object] = []


def is_compiling() -> bool:
    """Whether a loop is being compiled now, not only loaded from disk."""
    return bool(_under_way)


@cache
def _watch_compiler() -> None:
    from numba.core.event import Listener, register

    class Watcher(Listener):
        def on_start(self, event: object) -> None:
            _under_way.append(event)

        def on_end(self, event: object) -> None:
            _under_way.pop()

    subscribe: Any = register  # which has no types
    subscribe("numba:compile", Watcher())


def _count(given: Any) -> int:
    """How many numbers there are in arrays, tuples of them and numbers."""
    return sum(map(_count, given)) if isinstance(given, tuple) else getattr(given, "size", 1)


def _as_python(found: Any) -> Any:
    """The numbers of a result as Python's, as compiled code returns them; arrays stay."""
    if isinstance(found, tuple):
        parts = map(_as_python, found)
        return found._make(parts) if hasattr(found, "_make") else tuple(parts)
    return found.item() if isinstance(found, np.generic) else found
