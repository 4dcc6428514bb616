"""Rows counted by cell and collected in CUDA kernels, which torch compiles where its runtime can.

A block counts in its shared memory. Where the places do not fit there, the blocks of one row of the launch
count a part of them, and the scores are read once for each part.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from localparity._types import IntArray, ScoreRange
from localparity._validation import range_scale
from localparity.engines import _torch_cells
from localparity.engines._refine import CellSelection
from localparity.engines._torch_cells import Blocks, CellTotals, Grid
from localparity.engines._torch_part_source import PART_SOURCE
from localparity.engines._torch_rows import TensorRows, UnknownCodeError, check_score, ends_of
from localparity.engines._torch_source import SOURCE

_SCORES = {"float16": ("unsigned short", "float"), "float32": ("float",) * 2, "float64": ("double",) * 2}
_CODES = {"torch.uint8": "unsigned char", "torch.int8": "signed char", "torch.int32": "int"}
_BUCKET_BITS = 14
_WORDS = 2**_BUCKET_BITS // 32
_SELECTION_BYTES = 8 * _WORDS


def can_compile(torch: Any, scores: Any) -> bool:
    """Whether the device of some scores is a GPU that torch compiles these kernels for."""
    if scores.device.type != "cuda" or not torch.version.cuda or _compiler(torch) is None:
        return False
    try:
        kinds = {"UNIT": True, "DEEP": False, "SELECTED": False}
        _compiled(torch, "count", scores.device, scores.dtype, torch.uint8, **kinds)
    except (OSError, RuntimeError):  # without NVRTC
        return False
    return True


def count_places(torch: Any, rows: TensorRows, grid: Grid) -> CellTotals:
    """Count rows without weights by the places of a grid."""
    n_places, device = grid.n_places, rows.scores.device
    properties = torch.cuda.get_device_properties(device)
    place_bytes = 4 * grid.n_keys + max(4, rows.scores.element_size())
    room = (properties.shared_memory_per_block_optin - _SELECTION_BYTES) // place_bytes
    tiles = -(-n_places // room)
    tile = -(-n_places // tiles)
    noted = torch.zeros(1 + n_places * (1 + grid.n_keys), dtype=torch.int64, device=device)
    within = grid.level if grid.within is None else grid.within.level
    arguments = [
        *_of_rows(rows),
        *_of_range(grid.score_range, grid.level, rows.scores),
        *_of_selection(torch, grid.within, device),
        *(rows.first, grid.n_keys, grid.level - within, n_places, tile, noted),
    ]
    blocks = min(2 * properties.multi_processor_count, rows.size // 4096 + 1)
    with torch.cuda.device(device):
        shared = tile * place_bytes + _SELECTION_BYTES
        _kernel(torch, "count", rows, grid)((blocks, tiles, 1), (1024, 1, 1), arguments, shared)
    if grid.within is None and (after := int(noted[0])):
        row = rows.size - after
        check_score(rows.scores, row, grid.score_range)
        raise UnknownCodeError(row)
    only = torch.bitwise_not(noted[1 : n_places + 1]).view(torch.float64)
    return CellTotals(only, noted[n_places + 1 :].view(grid.n_keys, n_places))


def count_parts(torch: Any, rows: TensorRows, grid: Grid, hot: IntArray) -> Any:
    """Count rows without weights, a row for each key, by the places of a grid within a selection.

    There may be millions of them. `hot` has the part of each selected cell that so many rows may have that
    they are better counted apart, and -1 where there is none.
    """
    assert grid.within is not None
    level, device, coarse = grid.within.level, rows.scores.device, grid._replace(level=grid.within.level)
    properties = torch.cuda.get_device_properties(device)
    room = (properties.shared_memory_per_block_optin - _SELECTION_BYTES) // (4 + 4 * grid.n_keys)
    if (hot < 0).all() or hot.size > room:
        hot = hot[:0]
    counted = torch.zeros((grid.n_keys, grid.n_places), dtype=torch.int32, device=device)
    arguments = [
        *_of_rows(rows),
        *_of_range(grid.score_range, level, rows.scores),
        *_of_selection(torch, grid.within, device),
        *(rows.first, grid.n_keys, grid.level - level, 2.0**grid.level),
        *(torch.from_numpy(hot.astype(np.int32)).to(device), hot.size, counted),
    ]
    blocks = min(2 * properties.multi_processor_count, rows.size // 8192 + 1)
    with torch.cuda.device(device):
        shared = _SELECTION_BYTES + 4 * hot.size * (1 + grid.n_keys)
        _kernel(torch, "cut", rows, coarse)((blocks, 1, 1), (512, 1, 1), arguments, shared)
    return counted


def bound_blocks(torch: Any, parts: Any, blocks: Blocks) -> Any:
    """The rows of each key in blocks of parts, then the least and the greatest gap of each pair inside."""
    if blocks.width % 32:
        return _torch_cells.bound_blocks(torch, parts, blocks)
    n_keys, n_cells, n_pairs = *blocks.before.shape, blocks.sides.shape[1]
    sides = blocks.sides.transpose(1, 0, 2)
    given = [blocks.starts, blocks.before.ravel(), blocks.sizes, sides.ravel().astype(np.float64)]
    shape = (n_keys + 2 * n_pairs, n_cells * blocks.splits)
    found = torch.empty(shape, dtype=torch.float64, device=parts.device)
    arguments = [
        *(parts, float(parts.shape[1]), torch.from_numpy(np.concatenate(given)).to(parts.device)),
        *(n_cells, blocks.splits, blocks.width, n_keys, n_pairs, found),
    ]
    kinds = {"UNIT": True, "DEEP": False, "SELECTED": False}
    with torch.cuda.device(parts.device):
        kernel = _compiled(torch, "bound", parts.device, torch.float32, torch.uint8, **kinds)
        kernel((-(-n_cells // 4), n_keys + n_pairs, 1), (128, 1, 1), arguments)
    return found


def collect_rows(torch: Any, rows: TensorRows, grid: Grid, capacity: int) -> TensorRows | None:
    """The rows inside the selection of a grid, None where they are more than a capacity."""
    device = rows.scores.device
    scores, codes = (torch.empty(capacity, dtype=part.dtype, device=device) for part in rows[:2])
    found = torch.zeros(1, dtype=torch.int64, device=device)
    blocks = 16 * torch.cuda.get_device_properties(device).multi_processor_count
    arguments = [
        *_of_rows(rows),
        *_of_range(grid.score_range, grid.level, rows.scores),
        *_of_selection(torch, grid.within, device),
        *(scores, codes, float(capacity), found),
    ]
    with torch.cuda.device(device):
        _kernel(torch, "collect", rows, grid)(
            (min(blocks, rows.size // 2048 + 1), 1, 1), (128, 1, 1), arguments
        )
    size = int(found)
    return None if size > capacity else TensorRows(scores[:size], codes[:size], first=rows.first)


def _kernel(torch: Any, name: str, rows: TensorRows, grid: Grid) -> Any:
    """The kernel compiled for the dtypes of the rows and for the range and the level of a grid."""
    kinds = {
        "UNIT": grid.score_range == (0.0, 1.0),
        "DEEP": grid.level > 22,
        "SELECTED": grid.within is not None,
    }
    return _compiled(torch, name, rows.scores.device, rows.scores.dtype, rows.codes.dtype, **kinds)


def _compiler(torch: Any) -> Any:
    """What compiles a kernel; torch has it since 2.9, under a name that is not public yet."""
    names = ("compile_kernel", "_compile_kernel")
    return next((getattr(torch.cuda, name) for name in names if hasattr(torch.cuda, name)), None)


@cache
def _compiled(torch: Any, name: str, device: Any, scores: Any, codes: Any, **kinds: bool) -> Any:
    """The kernel compiled for some dtypes, for the range from 0 to 1 or any, and for cells beyond an int."""
    dtype = str(scores).removeprefix("torch.")
    score, number = _SCORES[dtype]
    types = {
        "Score": score,
        "Number": number,
        "Bits": "unsigned" if number == "float" else "unsigned long long",
        "Code": _CODES[str(codes)],
        "Cell": "long long" if kinds["DEEP"] else "int",
    }
    names = [
        f"{dtype.upper()} 1",
        *(f"{kind} {int(holds)}" for kind, holds in kinds.items()),
        f"WORDS {_WORDS}",
    ]
    lines = [f"#define {each}" for each in names] + [
        f"typedef {kind} {each};" for each, kind in types.items()
    ]
    with torch.cuda.device(device):
        source = SOURCE if name in ("count", "collect") else SOURCE + PART_SOURCE
        kernel = _compiler(torch)("\n".join(lines) + source, name)
        if name in ("count", "cut"):
            kernel.set_shared_memory_config(
                torch.cuda.get_device_properties(device).shared_memory_per_block_optin
            )
        return kernel


def _of_rows(rows: TensorRows) -> list[Any]:
    """What a kernel is told of the rows; whole numbers are passed in 32 bits, and floats in 64."""
    packs = {part: min(16, 4 * part.element_size()) for part in rows[:2] if part is not None}
    aligned = all(part.data_ptr() % size == 0 for part, size in packs.items())
    return [rows.scores, rows.codes, float(rows.size), int(aligned)]


def _of_range(score_range: ScoreRange, level: int, scores: Any) -> list[Any]:
    """What a kernel is told of the range of scores and of how many cells it is cut into."""
    scale = range_scale(score_range)
    low, high = score_range
    ends = ends_of(scores, score_range)
    return [2.0**level, low, high, scale, scale * low, scale * high - scale * low, *ends]


def _of_selection(torch: Any, within: CellSelection | None, device: Any) -> list[Any]:
    """What a kernel is told of selected cells: their numbers, where those of a bucket begin, how many there
    are, and how many bits a bucket spans.
    """
    if within is None:
        nothing = torch.empty(0, dtype=torch.int64, device=device)
        return [nothing, nothing, 0, 0]
    level, numbers = within
    shift = max(0, level - _BUCKET_BITS)
    starts = np.flatnonzero(np.diff((numbers - 1) >> shift, prepend=-1))
    found = torch.from_numpy(np.concatenate([numbers, starts, [numbers.size]])).to(device)
    return [found, found[numbers.size :], numbers.size, shift]
