"""Rows counted by cell and collected in CUDA kernels, which torch compiles where its runtime can.

A block counts in its shared memory. Where the places do not fit there, the blocks of one row of the launch
count a part of them, and the scores are read once for each part.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from localparity._validation import range_scale
from localparity.engines._torch_cells import CellTotals, Grid
from localparity.engines._torch_rows import TensorRows, ends_of, outside

_SCORES = {"float16": ("unsigned short", "float"), "float32": ("float",) * 2, "float64": ("double",) * 2}
_CODES = {"torch.uint8": "unsigned char", "torch.int8": "signed char", "torch.int32": "int"}
_BUCKET_BITS = 13
_BUCKET_BYTES = 2**_BUCKET_BITS // 8

_SOURCE = r"""
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

// NaN is not inside.
__device__ bool inside_ends(Number number, double lowest, double highest) {
#if UNIT
    return number >= (Number)0 && number <= (Number)1;
#else
    return (double)number >= lowest && (double)number <= highest;
#endif
}

// The range of the scores and the number of cells. Every operation is rounded as numpy rounds it.
struct Grid {
    double cells, low, high, scale, origin, length;

    __device__ Cell cell_of(Number number) const {
#if UNIT
        return (Cell)ceil(number * (Number)cells);  // a power of two: exact
#else
        double inside = fmin(fmax((double)number, low), high);
        double fraction = __ddiv_rn(__dsub_rn(__dmul_rn(inside, scale), origin), length);
        return (Cell)ceil(__dmul_rn(fraction, cells));
#endif
    }
};

// The selected cells, ascending, and a bit for each bucket of cells with a selected one.
struct Selection {
    const long long* numbers;
    int size, shift;
    const unsigned* buckets;

    __device__ void mark(unsigned* bits) const {
        for (int word = threadIdx.x; word < BUCKETS / 32; word += blockDim.x) bits[word] = 0;
        __syncthreads();
        for (int slot = threadIdx.x; slot < size; slot += blockDim.x) {
            int bucket = (int)((numbers[slot] - 1) >> shift);
            atomicOr(&bits[bucket >> 5], 1u << (bucket & 31));
        }
        __syncthreads();
    }

    __device__ bool in_bucket(Cell cell) const {
        if (cell < 1) return false;
        int bucket = (int)((cell - 1) >> shift);
        return buckets[bucket >> 5] >> (bucket & 31) & 1;
    }

    // The place of a cell among the selected ones, -1 where it is none of them.
    __device__ int find(Cell cell) const {
        if (!in_bucket(cell)) return -1;
        int begin = 0, end = size - 1;
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

extern "C" __global__ void __launch_bounds__(1024) count(
    const Score* scores, const Code* codes, double n_rows, int aligned, int first, int n_keys, double lowest,
    double highest, double cells, double low, double high, double scale, double origin, double length,
    const long long* numbers, int selected, int shift, int split_bits, int n_places, int tile,
    Whole* first_outside, Whole* only_of, Whole* rows_of) {
    extern __shared__ Whole memory[];
    Bits* only = (Bits*)memory;
    unsigned* rows = (unsigned*)(only + tile);
    unsigned* buckets = rows + n_keys * tile;
    const int begin = blockIdx.y * tile;
    const int width = min(tile, n_places - begin);
    for (int place = threadIdx.x; place < tile; place += blockDim.x) only[place] = ~(Bits)0;
    for (int place = threadIdx.x; place < n_keys * tile; place += blockDim.x) rows[place] = 0;
    const Grid grid = {cells, low, high, scale, origin, length};
    const Selection selection = {numbers, selected, shift, buckets};
    if (selected) selection.mark(buckets);
    __syncthreads();

    int last = -1;
    unsigned run = 0;
    auto take = [&](Score score, Code code, Whole row) {
        Number number = number_of(score);
        if (!inside_ends(number, lowest, highest)) {
            atomicMin(first_outside, row);
            return;
        }
        Cell cell = grid.cell_of(number);
        int place = (int)cell;
        if (selected) {
            place = selection.find(((cell - 1) >> split_bits) + 1);
            if (place < 0) return;
            place = (place << split_bits) + (int)((cell - 1) & (((Cell)1 << split_bits) - 1));
        }
        place -= begin;
        if ((unsigned)place >= (unsigned)width) return;
        see(&only[place], bits_of(number));
        int at = ((int)code - first) * tile + place;
        if (at == last) {
            ++run;
            return;
        }
        if (run) atomicAdd(&rows[last], run);
        last = at;
        run = 1;
    };

    const Whole n = (Whole)n_rows, step = (Whole)gridDim.x * blockDim.x;
    const Whole thread = (Whole)blockIdx.x * blockDim.x + threadIdx.x;
    for (Whole pack = thread; pack < n / 4; pack += step) {
        Pack found = load(scores, codes, pack, aligned);
#pragma unroll
        for (int i = 0; i < 4; ++i) take(found.scores.at[i], found.codes.at[i], 4 * pack + i);
    }
    if (thread < n % 4) {
        Whole row = n / 4 * 4 + thread;
        take(scores[row], codes[row], row);
    }
    if (run) atomicAdd(&rows[last], run);
    __syncthreads();

    const Whole none = ~(Whole)0;
    for (int place = threadIdx.x; place < width; place += blockDim.x) {
        if (only[place] == ~(Bits)0) continue;
        bool one = only[place] != ~(Bits)0 - 1;
        double clamped = one ? fmin(fmax(score_of(only[place]), low), high) : 0.0;
        Whole bits = one ? (Whole)__double_as_longlong(clamped) : none - 1;
        Whole seen = atomicCAS(&only_of[begin + place], none, bits);
        if (seen != none && seen != bits) atomicExch(&only_of[begin + place], none - 1);
        for (int key = 0; key < n_keys; ++key) {
            unsigned found = rows[key * tile + place];
            if (found) atomicAdd(&rows_of[(Whole)key * n_places + begin + place], (Whole)found);
        }
    }
}

// A warp gathers the rows that it finds in a buffer of its own, and writes a buffer at a time.
extern "C" __global__ void __launch_bounds__(256) collect(
    const Score* scores, const Code* codes, double n_rows, int aligned, double cells, double low, double high,
    double scale, double origin, double length, const long long* numbers, int selected, int shift,
    Score* to_scores, Code* to_codes, double capacity, Whole* found) {
    __shared__ Score kept_scores[256 / 32][384];
    __shared__ Code kept_codes[256 / 32][384];
    __shared__ unsigned buckets[BUCKETS / 32];
    const Grid grid = {cells, low, high, scale, origin, length};
    const Selection selection = {numbers, selected, shift, buckets};
    selection.mark(buckets);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned before = (1u << lane) - 1;
    Score* warp_scores = kept_scores[warp];
    Code* warp_codes = kept_codes[warp];
    int kept = 0;

    auto write = [&]() {
        Whole base = 0;
        if (lane == 0) base = atomicAdd(found, (Whole)kept);
        base = __shfl_sync(~0u, base, 0);
        __syncwarp();
        for (int i = lane; i < kept; i += 32)
            if (base + i < (Whole)capacity) {
                to_scores[base + i] = warp_scores[i];
                to_codes[base + i] = warp_codes[i];
            }
        __syncwarp();
        kept = 0;
    };
    auto take = [&](bool there, Score score, Code code) {
        Cell cell = there ? grid.cell_of(number_of(score)) : 0;
        bool inside = shift ? selection.find(cell) >= 0 : selection.in_bucket(cell);
        unsigned mask = __ballot_sync(~0u, inside);
        if (inside) {
            int at = kept + __popc(mask & before);
            warp_scores[at] = score;
            warp_codes[at] = code;
        }
        kept += __popc(mask);
    };

    const Whole n = (Whole)n_rows, step = (Whole)gridDim.x * blockDim.x;
    const Whole thread = (Whole)blockIdx.x * blockDim.x + threadIdx.x;
    for (Whole pack = thread; pack - lane < n / 4; pack += step) {
        bool there = pack < n / 4;
        Pack rows = {};
        if (there) rows = load(scores, codes, pack, aligned);
#pragma unroll
        for (int i = 0; i < 4; ++i) take(there, rows.scores.at[i], rows.codes.at[i]);
        if (kept >= 256) write();
    }
    if (blockIdx.x == 0 && warp == 0) {
        Whole row = n / 4 * 4 + lane;
        bool there = row < n;
        take(there, there ? scores[row] : (Score)0, there ? codes[row] : (Code)0);
    }
    if (kept) write();
}
"""




def can_compile(torch: Any, rows: TensorRows) -> bool:
    """Whether these kernels can count the rows: without weights, on a GPU for which torch compiles."""
    if rows.weights is not None or rows.scores.device.type != "cuda" or not torch.version.cuda:
        return False
    try:
        _kernel(torch, "count", rows, Grid((0.0, 1.0), 1, 1))
    except (AttributeError, OSError, RuntimeError):  # an older torch, or no NVRTC
        return False
    return True


def count_places(torch: Any, rows: TensorRows, grid: Grid) -> CellTotals:
    """Count rows without weights by the places of a grid."""
    n_places, device = grid.n_places, rows.scores.device
    properties = torch.cuda.get_device_properties(device)
    room = properties.shared_memory_per_block_optin - _BUCKET_BYTES
    place_bytes = 4 * grid.n_keys + max(4, rows.scores.element_size())
    tiles = -(-n_places // (room // place_bytes))
    tile = -(-n_places // tiles)
    shared = tile * place_bytes + _BUCKET_BYTES
    blocks = properties.multi_processor_count * (2 if 2 * shared < room else 1)
    noted = torch.full((1 + n_places,), -1, dtype=torch.int64, device=device)
    noted[0] = rows.size
    counted = torch.zeros((grid.n_keys, n_places), dtype=torch.int64, device=device)
    kernel = _kernel(torch, "count", rows, grid)
    kernel.set_shared_memory_config(shared)
    within = grid.level if grid.within is None else grid.within.level
    arguments = [
        *_of_rows(rows),
        rows.first,
        grid.n_keys,
        *ends_of(rows.scores, grid.score_range),
        *_of_range(grid),
        *_of_selection(torch, grid, device),
        *(grid.level - within, n_places, tile),
        *(noted, noted[1:], counted),
    ]
    with torch.cuda.device(device):
        kernel((min(blocks, rows.size // 4096 + 1), tiles, 1), (1024, 1, 1), arguments, shared)
    if grid.within is None and (row := int(noted[0])) < rows.size:
        raise outside(rows.scores, row, grid.score_range)
    return CellTotals(noted[1:].view(torch.float64), counted)


def collect_rows(torch: Any, rows: TensorRows, grid: Grid, capacity: int) -> TensorRows | None:
    """The rows inside the selection of a grid, None where they are more than a capacity."""
    device = rows.scores.device
    scores, codes = (torch.empty(capacity, dtype=part.dtype, device=device) for part in rows[:2])
    found = torch.zeros(1, dtype=torch.int64, device=device)
    blocks = 8 * torch.cuda.get_device_properties(device).multi_processor_count
    arguments = [
        *_of_rows(rows),
        *_of_range(grid),
        *_of_selection(torch, grid, device),
        *(scores, codes, float(capacity), found),
    ]
    with torch.cuda.device(device):
        _kernel(torch, "collect", rows, grid)(
            (min(blocks, rows.size // 1024 + 1), 1, 1), (256, 1, 1), arguments
        )
    size = int(found)
    return None if size > capacity else TensorRows(scores[:size], codes[:size], first=rows.first)


def _kernel(torch: Any, name: str, rows: TensorRows, grid: Grid) -> Any:
    """The kernel compiled for the dtypes of the rows and for the range and the level of a grid."""
    unit = grid.score_range == (0.0, 1.0)
    return _compiled(torch, name, rows.scores.device, rows.scores.dtype, rows.codes.dtype, unit, grid.level > 30)


@cache
def _compiled(
    torch: Any, name: str, device: Any, scores: Any, codes: Any, unit: bool, deep: bool
) -> Any:
    """The kernel compiled for some dtypes, for the range from 0 to 1 or any, and for cells beyond an int."""
    dtype = str(scores).removeprefix("torch.")
    score, number = _SCORES[dtype]
    types = {
        "Score": score,
        "Number": number,
        "Bits": "unsigned" if number == "float" else "unsigned long long",
        "Code": _CODES[str(codes)],
        "Cell": "long long" if deep else "int",
    }
    names = [f"{dtype.upper()} 1", f"UNIT {int(unit)}", f"BUCKETS {2**_BUCKET_BITS}"]
    lines = [f"#define {each}" for each in names] + [f"typedef {kind} {each};" for each, kind in types.items()]
    with torch.cuda.device(device):
        return torch.cuda._compile_kernel("\n".join(lines) + _SOURCE, name)


def _of_rows(rows: TensorRows) -> list[Any]:
    """What a kernel is told of the rows; whole numbers are passed in 32 bits, and floats in 64."""
    packs = {part: min(16, 4 * part.element_size()) for part in rows[:2] if part is not None}
    aligned = all(part.data_ptr() % size == 0 for part, size in packs.items())
    return [rows.scores, rows.codes, float(rows.size), int(aligned)]


def _of_range(grid: Grid) -> list[float]:
    """What a kernel is told of the grid and its range."""
    scale = range_scale(grid.score_range)
    low, high = grid.score_range
    return [2.0**grid.level, low, high, scale, scale * low, scale * high - scale * low]


def _of_selection(torch: Any, grid: Grid, device: Any) -> list[Any]:
    """What a kernel is told of the selected cells: their numbers, how many, and how many bits a bucket spans."""
    if grid.within is None:
        return [torch.empty(0, dtype=torch.int64, device=device), 0, 0]
    level, numbers = grid.within
    return [torch.from_numpy(numbers).to(device), numbers.size, max(0, level - _BUCKET_BITS)]
