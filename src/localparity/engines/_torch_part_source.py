"""The CUDA kernels that count the parts of cells and bound the gap inside blocks of them.

They are compiled after those of `localparity.engines._torch_source`, whose types and functions they use.
"""

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

// Bounds the gap inside blocks of the parts of cells: for each cell, `splits` blocks of `width` parts, a
// multiple of 32. `given` has where the parts of each cell start, the rows of each key below each cell, the
// sizes of the keys, and whether each key is on each side of each pair. `found` gets the rows of each key
// in each block, and then the least and the greatest gap of each pair.
extern "C" __global__ void bound(
    const unsigned* __restrict__ rows, double n_parts, const double* __restrict__ given, int n_cells,
    int splits, int width, int n_keys, int n_pairs, double* found) {
    const int lane = threadIdx.x % 32, cell = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const int task = blockIdx.y, pair = task - n_keys;
    if (cell >= n_cells) return;
    const Whole stride = (Whole)n_parts, n_blocks = (Whole)n_cells * splits;
    const unsigned* parts = rows + (Whole)given[cell];
    const double *before = given + n_cells, *sizes = before + n_keys * n_cells;
    const double *one = sizes + n_keys + 2 * max(pair, 0) * n_keys, *two = one + n_keys;
    double below_one = 0, below_two = 0, size_one = 0, size_two = 0;
    for (int key = 0; key < n_keys; ++key) {
        below_one += one[key] * before[key * n_cells + cell];
        below_two += two[key] * before[key * n_cells + cell];
        size_one += one[key] * sizes[key];
        size_two += two[key] * sizes[key];
    }
    for (int split = 0; split < splits; ++split, parts += width) {
        double least = 1, most = -1;
        unsigned total = 0;
        for (int part = lane; part < width; part += 32) {
            if (pair < 0) {
                total += parts[task * stride + part];
                continue;
            }
            unsigned in_one = 0, in_two = 0;
            for (int key = 0; key < n_keys; ++key) {
                unsigned inside = parts[key * stride + part];
                if (one[key] != 0) in_one += inside;
                if (two[key] != 0) in_two += inside;
            }
            unsigned upto_one = sum_of_lanes(in_one), upto_two = sum_of_lanes(in_two);
            double end_one = below_one + upto_one, end_two = below_two + upto_two;
            least = fmin(least, (end_one - in_one) / size_one - end_two / size_two);
            most = fmax(most, end_one / size_one - (end_two - in_two) / size_two);
            below_one += __shfl_sync(~0u, upto_one, 31);
            below_two += __shfl_sync(~0u, upto_two, 31);
        }
        for (int away = 16; away; away /= 2) {
            least = fmin(least, __shfl_xor_sync(~0u, least, away));
            most = fmax(most, __shfl_xor_sync(~0u, most, away));
            total += __shfl_xor_sync(~0u, total, away);
        }
        if (lane) continue;
        Whole block = (Whole)cell * splits + split;
        found[task * n_blocks + block] = pair < 0 ? (double)total : least;
        if (pair >= 0) found[(task + n_pairs) * n_blocks + block] = most;
    }
}
"""
