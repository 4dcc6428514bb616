"""The CUDA kernels that count and collect rows.

What is compiled begins with their types: Score as it is stored, Number as it is computed with, Bits as wide
as a Number, Code of a group and label, and Cell for the number of a cell. UNIT says that scores go from 0 to
1, DEEP that the numbers of cells do not fit the fraction of a float, SELECTED that only some cells are
counted, and WORDS how many words of bits mark the buckets of cells.
"""

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

// `noted` begins as zeros: how many rows come after the first one with a score outside of the range or a code
// that is none, itself included, and the inverted bits of the one score at each place.
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
            good = good && (i >= size || (grid.holds(number[i]) && (unsigned)at[i] < (unsigned)n_keys));
        }
        if (!good) {
            for (int i = size - 1; i >= 0; --i)
                if (!grid.holds(number[i]) || (unsigned)at[i] >= (unsigned)n_keys)
                    atomicMax(noted, n - row - i);
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
