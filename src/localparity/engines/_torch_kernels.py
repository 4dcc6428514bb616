"""Rows counted by cell and collected in CUDA kernels, which torch compiles where its runtime can.

A block counts in its shared memory. Where the places do not fit there, the blocks of one row of the launch
count a part of them, and the scores are read once for each part.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from localparity._scale import range_scale
from localparity._types import IntArray
from localparity.engines._torch_cells import (
    CellPlaces,
    CellTotals,
    DeviceRows,
    check_score,
    ends_of,
)

# The CUDA kernels that count and collect rows.
#
# What is compiled begins with their types: Score as it is stored, Number as it is computed with, Bits as wide
# as a Number, Code of a group and label, and Cell for the number of a cell. UNIT says that scores go from 0
# to 1, DEEP that the numbers of cells do not fit the fraction of a float, SELECTED that only some cells are
# counted, and WORDS how many words of bits mark the buckets of cells.


SOURCE = r"""
typedef unsigned long long Whole;

struct __align__(4 * sizeof(Score) < 16 ? 4 * sizeof(Score) : 16) Scores { Score at[4]; };
struct __align__(4 * sizeof(Code)) Codes { Code at[4]; };
struct Pack { Scores scores; Codes codes; };

// The score as a number; adding 0 turns -0.0 into 0.0.
__device__ Number number_of(Score score) {
#ifdef FLOAT16
    float single;
    asm("cvt.f32.f16 %0, %1;" : "=f"(single) : "h"(score));
    return single + 0.0f;
#else
    return score + (Number)0;
#endif
}

// The range of the scores and the number of cells. Every operation is rounded as numpy rounds it, and a
// number is rounded up by adding one so large that nothing is left of a fraction.
struct Grid {
    double cells, low, high, scale, origin, length, lowest, highest;

    __device__ bool holds(Number number) const {  // not NaN
#if UNIT
        return number >= (Number)0 && number <= (Number)1;
#else
        return (double)number >= lowest && (double)number <= highest;
#endif
    }

    // The cell on a grid of few cells, from 0 to 1 and of no more than 32 bits.
    __device__ int near(float number, float few) const {
        return __float_as_int(__fmaf_ru(number, few, 0x1p23f)) - 0x4B000000;
    }

    __device__ Cell cell_of(Number number) const {
#if UNIT && !DEEP && !defined(FLOAT64)
        return near(number, (float)cells);
#else
        return (Cell)deep(number, cells);
#endif
    }

    // The same on a finer grid, of at most 2^30 cells.
    __device__ int part_of(Number number, double parts) const {
#if UNIT && !defined(FLOAT64)
        return __float2int_ru(number * (float)parts);
#else
        return (int)deep(number, parts);
#endif
    }

    __device__ long long deep(Number number, double many) const {
        double fraction = number;
        if (!UNIT) {
            double inside = fmin(fmax(fraction, low), high);
            fraction = __ddiv_rn(__dsub_rn(__dmul_rn(inside, scale), origin), length);
        }
        return __double_as_longlong(__fma_ru(fraction, many, 0x1p52)) & ((1ll << 52) - 1);
    }
};

// The sum of the numbers of a warp's lanes up to and with each.
__device__ unsigned sum_of_lanes(unsigned number) {
    for (int away = 1; away < 32; away *= 2) {
        unsigned other = __shfl_up_sync(~0u, number, away);
        if (threadIdx.x % 32 >= away) number += other;
    }
    return number;
}

// The selected cells, ascending, and a bit for each bucket of cells with a selected one. `ranks` has how many
// such buckets come before each word of bits, and `starts` the first selected cell of each such bucket.
struct Selection {
    const long long *numbers, *starts;
    int size, shift;
    unsigned *bits, *ranks;

    __device__ void mark() const {
        for (int word = threadIdx.x; word < WORDS; word += blockDim.x) bits[word] = 0;
        __syncthreads();
        for (int slot = threadIdx.x; slot < size; slot += blockDim.x) {
            int bucket = (int)((numbers[slot] - 1) >> shift);
            atomicOr(&bits[bucket >> 5], 1u << (bucket & 31));
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            const int first = threadIdx.x * (WORDS / 32);
            unsigned mine = 0;
            for (int word = first; word < first + WORDS / 32; ++word) mine += __popc(bits[word]);
            unsigned before = sum_of_lanes(mine) - mine;
            for (int word = first; word < first + WORDS / 32; ++word) {
                ranks[word] = before;
                before += __popc(bits[word]);
            }
        }
        __syncthreads();
    }

    // Whether a bucket, the first of which is number 1, has a selected cell.
    __device__ bool marked(int bucket) const {
        return bucket > 0 && bits[(bucket - 1) >> 5] >> ((bucket - 1) & 31) & 1;
    }

    __device__ bool may_hold(Cell cell) const { return marked((int)((cell - 1) >> shift) + 1); }

    // The place of a cell of such a bucket among the selected ones, -1 where it is none of them.
    __device__ int find(Cell cell) const {
        Cell bucket = (cell - 1) >> shift;
        int rank = ranks[bucket >> 5] + __popc(bits[bucket >> 5] & ((1u << (bucket & 31)) - 1));
        if (!shift) return rank;
        int begin = (int)starts[rank], end = (int)starts[rank + 1] - 1;
        while (begin < end) {
            int middle = (begin + end) >> 1;
            if (numbers[middle] < cell) begin = middle + 1; else end = middle;
        }
        return numbers[begin] == cell ? begin : -1;
    }
};

__device__ Pack load(const Score* scores, const Code* codes, Whole pack, int aligned) {
    Pack found;
    if (aligned) {
        found.scores = ((const Scores*)scores)[pack];
        found.codes = ((const Codes*)codes)[pack];
    } else {
        for (int i = 0; i < 4; ++i) {
            found.scores.at[i] = scores[4 * pack + i];
            found.codes.at[i] = codes[4 * pack + i];
        }
    }
    return found;
}

// The one score at a place: all bits set before the first, all but the last after two that differ.
__device__ void see(Bits* only, Bits bits) {
    const Bits none = ~(Bits)0, several = none - 1;
    Bits seen = *(volatile Bits*)only;
    if (seen == several || seen == bits) return;
    if (seen == none) seen = atomicCAS(only, none, bits);
    if (seen != none && seen != bits) *(volatile Bits*)only = several;
}

__device__ Bits bits_of(Number number) {
#ifdef FLOAT64
    return (Bits)__double_as_longlong(number);
#else
    return __float_as_uint(number);
#endif
}

__device__ double score_of(Bits bits) {
#ifdef FLOAT64
    return __longlong_as_double((long long)bits);
#else
    return (double)__uint_as_float(bits);
#endif
}

// `noted` begins as zeros: how many rows come after the first one with a score outside of the range, itself
// included, and the inverted bits of the one score at each place.
extern "C" __global__ void __launch_bounds__(1024, 2) count(
    const Score* __restrict__ scores, const Code* __restrict__ codes, double n_rows, int aligned,
    double cells, double low, double high, double scale, double origin, double length, double lowest,
    double highest, const long long* __restrict__ numbers, const long long* __restrict__ starts, int selected,
    int shift, int first, int n_keys, int split_bits, int n_places, int tile, Whole* noted) {
    extern __shared__ Whole memory[];
    Bits* only = (Bits*)memory;
    unsigned* rows = (unsigned*)(only + tile);
    unsigned* bits = rows + n_keys * tile;
    const int begin = blockIdx.y * tile;
    const int width = min(tile, n_places - begin);
    for (int place = threadIdx.x; place < tile; place += blockDim.x) only[place] = ~(Bits)0;
    for (int place = threadIdx.x; place < n_keys * tile; place += blockDim.x) rows[place] = 0;
    const Grid grid = {cells, low, high, scale, origin, length, lowest, highest};
    const Selection selection = {numbers, starts, selected, shift, bits, bits + WORDS};
    if (SELECTED) selection.mark();
    __syncthreads();

    const Whole n = (Whole)n_rows, step = (Whole)gridDim.x * blockDim.x;
    const Whole thread = (Whole)blockIdx.x * blockDim.x + threadIdx.x;
    auto take = [&](const Pack& found, Whole row, int size) {
        Number number[4];
        int place[4], at[4];
        bool good = true, fresh = false;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            number[i] = number_of(found.scores.at[i]);
            at[i] = (int)found.codes.at[i] - first;
            good = good && (i >= size || grid.holds(number[i]));
        }
        if (!good) {
            for (int i = size - 1; i >= 0; --i)
                if (!grid.holds(number[i])) atomicMax(noted, n - row - i);
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            Cell cell = grid.cell_of(number[i]);
#if SELECTED
            Cell parent = ((cell - 1) >> split_bits) + 1;
            int slot = selection.may_hold(parent) ? selection.find(parent) : -1;
            int part = (int)((cell - 1) & (((Cell)1 << split_bits) - 1));
            place[i] = slot < 0 ? -1 : (slot << split_bits) + part - begin;
#else
            place[i] = (int)cell - begin;
#endif
            bool inside = i < size && (unsigned)place[i] < (unsigned)width;
            at[i] = inside ? at[i] * tile + place[i] : -1;
            Bits seen = *(volatile Bits*)&only[inside ? place[i] : 0];
            fresh = fresh || (inside && seen != ~(Bits)0 - 1 && seen != bits_of(number[i]));
        }
        if (fresh)
            for (int i = 0; i < 4; ++i)
                if (at[i] >= 0) see(&only[place[i]], bits_of(number[i]));
        if (at[0] >= 0 && at[0] == at[1] && at[0] == at[2] && at[0] == at[3]) {
            atomicAdd(&rows[at[0]], 4);
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (at[i] >= 0) atomicAdd(&rows[at[i]], 1);
    };

    for (Whole pack = thread; pack < n / 4; pack += step)
        take(load(scores, codes, pack, aligned), 4 * pack, 4);
    if (thread == 0 && n % 4) {
        Pack found = {};
        for (int i = 0; i < n % 4; ++i) {
            found.scores.at[i] = scores[n / 4 * 4 + i];
            found.codes.at[i] = codes[n / 4 * 4 + i];
        }
        take(found, n / 4 * 4, n % 4);
    }
    __syncthreads();

    Whole *only_of = noted + 1 + begin, *rows_of = noted + 1 + n_places + begin;
    for (int place = threadIdx.x; place < width; place += blockDim.x) {
        if (only[place] == ~(Bits)0) continue;
        bool one = only[place] != ~(Bits)0 - 1;
        double clamped = one ? fmin(fmax(score_of(only[place]), low), high) : 0.0;
        Whole bits = one ? ~(Whole)__double_as_longlong(clamped) : 1;
        Whole seen = atomicCAS(&only_of[place], 0, bits);
        if (seen != 0 && seen != bits) atomicExch(&only_of[place], 1);
        for (int key = 0; key < n_keys; ++key) {
            unsigned found = rows[key * tile + place];
            if (found) atomicAdd(&rows_of[(Whole)key * n_places + place], (Whole)found);
        }
    }
}

// A warp gathers the rows that it finds in a buffer of its own, and writes a buffer at a time.
extern "C" __global__ void __launch_bounds__(128) collect(
    const Score* __restrict__ scores, const Code* __restrict__ codes, double n_rows, int aligned,
    double cells, double low, double high, double scale, double origin, double length, double lowest,
    double highest, const long long* __restrict__ numbers, const long long* __restrict__ starts, int selected,
    int shift, Score* to_scores, Code* to_codes, double capacity, Whole* found) {
    __shared__ Score kept_scores[4][768];
    __shared__ Code kept_codes[4][768];
    __shared__ unsigned bits[2 * WORDS];
    const Grid grid = {cells, low, high, scale, origin, length, lowest, highest};
    const Selection selection = {numbers, starts, selected, shift, bits, bits + WORDS};
    selection.mark();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int kept = 0;

    const float few = (float)(cells / (double)(1ll << shift));
    auto is_inside = [&](Score score) {
        Number number = number_of(score);
#if UNIT && !defined(FLOAT64)
        if (!selection.marked(grid.near(number, few))) return false;
        return !shift || selection.find(grid.cell_of(number)) >= 0;
#else
        Cell cell = grid.cell_of(number);
        return selection.may_hold(cell) && selection.find(cell) >= 0;
#endif
    };
    // Where a lane with so many rows writes them; `kept` is the same in all lanes.
    auto place = [&](int mine) {
        int upto = sum_of_lanes(mine);
        int at = kept + upto - mine;
        kept += __shfl_sync(~0u, upto, 31);
        return at;
    };
    auto put = [&](int at, Score score, Code code) {
        kept_scores[warp][at] = score;
        kept_codes[warp][at] = code;
    };
    auto write = [&]() {
        Whole base = 0;
        if (lane == 0) base = atomicAdd(found, (Whole)kept);
        base = __shfl_sync(~0u, base, 0);
        __syncwarp();
        for (int i = lane; i < kept; i += 32)
            if (base + i < (Whole)capacity) {
                to_scores[base + i] = kept_scores[warp][i];
                to_codes[base + i] = kept_codes[warp][i];
            }
        __syncwarp();
        kept = 0;
    };

    const Whole n = (Whole)n_rows, step = (Whole)gridDim.x * blockDim.x;
    const Whole thread = (Whole)blockIdx.x * blockDim.x + threadIdx.x;
    for (Whole pack = thread; pack - lane < n / 4; pack += 4 * step) {
        Pack rows[4];
        unsigned inside = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (pack + j * step < n / 4) rows[j] = load(scores, codes, pack + j * step, aligned);
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (pack + j * step < n / 4)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    inside |= (unsigned)is_inside(rows[j].scores.at[i]) << (4 * j + i);
        if (!__any_sync(~0u, inside)) continue;
        int at = place(__popc(inside));
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (inside >> (4 * j + i) & 1) put(at++, rows[j].scores.at[i], rows[j].codes.at[i]);
        if (kept >= 256) write();
    }
    if (blockIdx.x == 0 && warp == 0) {
        Whole row = n / 4 * 4 + lane;
        bool inside = row < n && is_inside(scores[row]);
        int at = place(inside);
        if (inside) put(at, scores[row], codes[row]);
    }
    if (kept) write();
}
"""


# The CUDA kernel that counts the parts of cells; it is compiled after those above, whose types it uses.


PART_SOURCE = r"""
// Counts rows by the parts of selected cells, which are too many for a block to hold, in `rows`, all but one
// of each cell: so many rows may have the `hot` one, where there is any, that they would queue up there.
extern "C" __global__ void __launch_bounds__(512) cut(
    const Score* __restrict__ scores, const Code* __restrict__ codes, double n_rows, int aligned,
    double cells, double low, double high, double scale, double origin, double length, double lowest,
    double highest, const long long* __restrict__ numbers, const long long* __restrict__ starts, int selected,
    int shift, int first, int n_keys, int split_bits, double parts, const int* __restrict__ hot,
    int n_hot, unsigned* rows) {
    extern __shared__ unsigned words[];
    int* hot_of = (int*)(words + 2 * WORDS);
    unsigned* hot_rows = (unsigned*)(hot_of + n_hot);
    for (int slot = threadIdx.x; slot < n_hot; slot += blockDim.x) hot_of[slot] = hot[slot];
    for (int i = threadIdx.x; i < n_keys * n_hot; i += blockDim.x) hot_rows[i] = 0;
    const Grid grid = {cells, low, high, scale, origin, length, lowest, highest};
    const Selection selection = {numbers, starts, selected, shift, words, words + WORDS};
    selection.mark();

    auto is_inside = [&](Score score) { return selection.may_hold(grid.cell_of(number_of(score))); };
    auto count_row = [&](Score score, Code code) {
        Number number = number_of(score);
        int slot = selection.find(grid.cell_of(number));
        int part = (grid.part_of(number, parts) - 1) & ((1 << split_bits) - 1);
        int at = ((int)code - first) * selected + slot;
        if (n_hot && part == hot_of[slot])
            atomicAdd(&hot_rows[at], 1);
        else
            atomicAdd(&rows[((unsigned)at << split_bits) + part], 1);
    };

    const Whole n = (Whole)n_rows, step = (Whole)gridDim.x * blockDim.x;
    const Whole thread = (Whole)blockIdx.x * blockDim.x + threadIdx.x;
    for (Whole pack = thread; pack < n / 4; pack += 4 * step) {
        Pack found[4];
        unsigned inside = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (pack + j * step < n / 4) found[j] = load(scores, codes, pack + j * step, aligned);
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (pack + j * step < n / 4)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    inside |= (unsigned)is_inside(found[j].scores.at[i]) << (4 * j + i);
        // Read again from the cache: few rows are inside, and registers have no numbers.
        for (; inside; inside &= inside - 1) {
            int at = __ffs(inside) - 1;
            Whole row = 4 * (pack + (at >> 2) * step) + (at & 3);
            count_row(scores[row], codes[row]);
        }
    }
    if (thread < n % 4 && is_inside(scores[n / 4 * 4 + thread]))
        count_row(scores[n / 4 * 4 + thread], codes[n / 4 * 4 + thread]);
    __syncthreads();
    for (int i = threadIdx.x; i < n_keys * n_hot; i += blockDim.x)
        if (hot_rows[i]) atomicAdd(&rows[((unsigned)i << split_bits) + hot_of[i % selected]], hot_rows[i]);
}
"""


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


def count_places(torch: Any, rows: DeviceRows, grid: CellPlaces) -> CellTotals:
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
        *_rows_on(torch, rows, grid),
        *(rows.first, grid.n_keys, grid.level - within, n_places, tile, noted),
    ]
    blocks = min(2 * properties.multi_processor_count, rows.size // 4096 + 1)
    with torch.cuda.device(device):
        shared = tile * place_bytes + _SELECTION_BYTES
        _kernel(torch, "count", rows, grid)((blocks, tiles, 1), (1024, 1, 1), arguments, shared)
    if grid.within is None and (after := int(noted[0])):
        check_score(rows.scores, rows.size - after, grid.score_range)
    only = torch.bitwise_not(noted[1 : n_places + 1]).view(torch.float64)
    return CellTotals(only, noted[n_places + 1 :].view(grid.n_keys, n_places))


def count_parts(torch: Any, rows: DeviceRows, grid: CellPlaces, hot: IntArray) -> Any:
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
        *_rows_on(torch, rows, coarse),
        *(rows.first, grid.n_keys, grid.level - level, 2.0**grid.level),
        *(torch.from_numpy(hot.astype(np.int32)).to(device), hot.size, counted),
    ]
    blocks = min(2 * properties.multi_processor_count, rows.size // 8192 + 1)
    with torch.cuda.device(device):
        shared = _SELECTION_BYTES + 4 * hot.size * (1 + grid.n_keys)
        _kernel(torch, "cut", rows, coarse)((blocks, 1, 1), (512, 1, 1), arguments, shared)
    return counted


def collect_rows(torch: Any, rows: DeviceRows, grid: CellPlaces, capacity: int) -> DeviceRows | None:
    """The rows inside the selection of a grid, None where they are more than a capacity."""
    device = rows.scores.device
    scores, codes = (torch.empty(capacity, dtype=part.dtype, device=device) for part in rows[:2])
    found = torch.zeros(1, dtype=torch.int64, device=device)
    blocks = 16 * torch.cuda.get_device_properties(device).multi_processor_count
    arguments = [
        *_rows_on(torch, rows, grid),
        *(scores, codes, float(capacity), found),
    ]
    with torch.cuda.device(device):
        _kernel(torch, "collect", rows, grid)(
            (min(blocks, rows.size // 2048 + 1), 1, 1), (128, 1, 1), arguments
        )
    size = int(found)
    return None if size > capacity else DeviceRows(scores[:size], codes[:size], first=rows.first)


def _kernel(torch: Any, name: str, rows: DeviceRows, grid: CellPlaces) -> Any:
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


def _rows_on(torch: Any, rows: DeviceRows, grid: CellPlaces) -> list[Any]:
    """What a kernel is told of the rows, of the range of scores and the number of cells, and of the selected
    cells: their numbers, where those of a bucket begin, how many there are, and how many bits a bucket spans.

    Whole numbers are passed in 32 bits, and floats in 64.
    """
    packs = {part: min(16, 4 * part.element_size()) for part in rows[:2] if part is not None}
    aligned = all(part.data_ptr() % size == 0 for part, size in packs.items())
    scale, (low, high) = range_scale(grid.score_range), grid.score_range
    level, numbers = grid.within or (0, np.empty(0, dtype=np.int64))
    shift = max(0, level - _BUCKET_BITS)
    starts = np.flatnonzero(np.diff((numbers - 1) >> shift, prepend=-1))
    selection = torch.from_numpy(np.concatenate([numbers, starts, [numbers.size]])).to(rows.scores.device)
    return [
        *(rows.scores, rows.codes, float(rows.size), int(aligned)),
        *(2.0**grid.level, low, high, scale, scale * low, scale * high - scale * low),
        *ends_of(rows.scores, grid.score_range),
        *(selection, selection[numbers.size :], numbers.size, shift),
    ]
