"""CUDA graphs: many small kernels, recorded once and launched together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

Inputs = tuple[Tensor | None, ...]
Outputs = tuple[Tensor, ...]
_STEPS_BEFORE_RECORDING = 3


class _Recording(NamedTuple):
    graph: Any
    inputs: Inputs
    outputs: Outputs


class Replay:
    """A function of tensors that needs no gradients; on a GPU its kernels are launched together.

    A search over a batch is some two hundred tiny kernels, and launching them takes longer than running them.
    They are recorded as a CUDA graph, once for each shape of the inputs. On the CPU, inside the transforms of
    ``torch.func`` and while something else is being recorded, the function is called as it is. It takes
    tensors or None, all of fixed shape, and returns a tuple of tensors.
    """

    def __init__(self, function: Callable[..., Outputs]) -> None:
        self.function = function
        self.recordings: dict[Any, _Recording] = {}

    @torch.no_grad()
    def __call__(self, *inputs: Tensor | None) -> Outputs:
        """Call the function, or replay it."""
        if not _can_record(inputs):
            return self.function(*inputs)
        key = tuple(None if given is None else (given.shape, given.dtype, given.device) for given in inputs)
        if key not in self.recordings:
            self.recordings[key] = self._record(inputs)
        recording = self.recordings[key]
        for place, given in zip(recording.inputs, inputs, strict=True):
            if place is not None and given is not None:
                place.copy_(given)
        recording.graph.replay()
        # The next call writes to the same memory.
        return tuple(output.clone() for output in recording.outputs)

    def __getstate__(self) -> dict[str, Any]:
        return {"function": self.function, "recordings": {}}

    def _record(self, inputs: Inputs) -> _Recording:
        places = tuple(None if given is None else given.detach().clone() for given in inputs)
        _on_side_stream(lambda: self.function(*places))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            outputs = self.function(*places)
        return _Recording(graph, places, outputs)


class RecordedStep:
    """A training step that is recorded after a few calls and replayed from then on.

    The step takes nothing, changes tensors in place and returns one: always the same kernels on the same
    memory. With ``recorded=False`` it is called every time.
    """

    def __init__(self, step: Callable[[], Tensor], *, recorded: bool) -> None:
        self.step, self.recorded = step, recorded
        self.calls = 0
        self.graph: Any = None

    def __call__(self) -> Tensor:
        """Take the step."""
        if not self.recorded:
            return self.step()
        self.calls += 1
        if self.calls <= _STEPS_BEFORE_RECORDING:
            taken: Tensor = _on_side_stream(self.step)
            return taken
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
                self.result = self.step()
        self.graph.replay()
        return self.result.clone()


def is_readable(*tensors: Tensor) -> bool:
    """Whether values can be read at no cost: on the CPU, and not inside a transform or a compilation."""
    return all(tensor.device.type == "cpu" for tensor in tensors) and _have_memory(tensors)


def _can_record(inputs: Inputs) -> bool:
    given = [tensor for tensor in inputs if tensor is not None]
    if not all(tensor.is_cuda for tensor in given) or torch.cuda.is_current_stream_capturing():
        return False
    return _have_memory(given)


def _have_memory(tensors: Any) -> bool:
    """Whether the tensors are real ones: inside ``torch.func`` and ``torch.compile`` they have no memory."""
    if torch.compiler.is_compiling():
        return False
    try:
        return all(tensor.data_ptr() is not None for tensor in tensors)
    except RuntimeError:
        return False


def _on_side_stream(work: Callable[[], Any]) -> Any:
    """Do it on a stream of its own, as CUDA requires before a recording."""
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        done = work()
    torch.cuda.current_stream().wait_stream(aside)
    return done
