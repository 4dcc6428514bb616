"""Columns of numbers out of a stream of Arrow record batches, without a copy and without a library.

The structures are those of the Arrow C data and stream interfaces, which stay the same for good:
https://arrow.apache.org/docs/format/CDataInterface.html
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, py_object
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DTYPES = {b"f": "f4", b"g": "f8", b"C": "u1"}
"""The dtypes of columns by Arrow's formats: those that queries here select."""

Batch = dict[str, NDArray[Any] | None]
"""The columns of a record batch by name; None for one in which a value is missing."""


class _Schema(Structure):
    _fields_ = (
        ("format", c_char_p),
        ("name", c_char_p),
        ("metadata", c_char_p),
        ("flags", c_int64),
        ("n_children", c_int64),
        ("children", POINTER(c_void_p)),
        ("dictionary", c_void_p),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("private_data", c_void_p),
    )


class _Array(Structure):
    _fields_ = (
        ("length", c_int64),
        ("null_count", c_int64),
        ("offset", c_int64),
        ("n_buffers", c_int64),
        ("n_children", c_int64),
        ("buffers", POINTER(c_void_p)),
        ("children", POINTER(c_void_p)),
        ("dictionary", c_void_p),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("private_data", c_void_p),
    )


class _Stream(Structure):
    _fields_ = (
        ("get_schema", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("get_next", CFUNCTYPE(c_int, c_void_p, c_void_p)),
        ("get_last_error", CFUNCTYPE(c_char_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("private_data", c_void_p),
    )


_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


class _Batch:
    """A record batch, released with the last array that shows its memory."""

    def __init__(self) -> None:
        self.array = _Array()

    def __del__(self) -> None:
        if self.array.release:
            self.array.release(byref(self.array))


class _Column:
    """A column's memory, and the batch that it belongs to."""

    def __init__(self, batch: _Batch, place: int, dtype: str) -> None:
        self._batch = batch
        column = _Array.from_address(batch.array.children[place])
        start = (column.buffers[1] or 0) + (batch.array.offset + column.offset) * np.dtype(dtype).itemsize
        self.whole = column.null_count == 0 or not column.buffers[0]
        self.__array_interface__ = {
            "version": 3,
            "typestr": np.dtype(dtype).str,
            "shape": (batch.array.length,),
            "data": (start, True),
        }


class ArrowStream:
    """The record batches of an Arrow C stream, given the capsule that ``__arrow_c_stream__`` returns.

    Its columns are numbers. Closing it ends the query behind it.
    """

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule
        schema = _Schema()
        self._check(self._stream.get_schema(byref(self._stream), byref(schema)))
        columns = [_Schema.from_address(schema.children[place]) for place in range(schema.n_children)]
        formats = {column.name.decode(): column.format for column in columns}
        schema.release(byref(schema))
        for name, kind in formats.items():
            if kind not in _DTYPES:
                raise TypeError(f"column {name!r} must be numbers, got {kind.decode()!r}")
        self._columns = {name: _DTYPES[kind] for name, kind in formats.items()}

    @property
    def _stream(self) -> _Stream:
        """The stream, which the capsule owns."""
        return _Stream.from_address(_pointer(self._capsule, b"arrow_array_stream"))

    def close(self) -> None:
        """Release the stream."""
        if self._stream.release:
            self._stream.release(byref(self._stream))

    def next_batch(self) -> Batch | None:
        """The next batch, and None after the last one."""
        batch = _Batch()
        self._check(self._stream.get_next(byref(self._stream), byref(batch.array)))
        if not batch.array.release:
            return None
        columns = {
            name: _Column(batch, place, dtype) for place, (name, dtype) in enumerate(self._columns.items())
        }
        return {name: np.asarray(column) if column.whole else None for name, column in columns.items()}

    def _check(self, code: int) -> None:
        if code:
            message = self._stream.get_last_error(byref(self._stream))
            raise OSError((message or b"").decode(errors="replace"))
