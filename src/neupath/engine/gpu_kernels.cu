// Top k of a normalised sparse product on a GPU, exact, without writing a score that is not among the k best.
//
// M = left·right, with the targets renumbered as labels by ascending norm. A row of `left` lists middle nodes with
// weights; the postings of a middle node list its labels with values, ascending. `rank_light` adds up a row in a hash
// table of a warp, `rank_whole` and `rank_ordered` in an array of TILE sums of a block, tile by tile; all of it is
// shared memory. Tiles are visited from the query's own norm outwards, and none is visited that cannot reach the k-th
// score (Cauchy-Schwarz, as in `index_kernels.py`).
//
// Scores are equal to those of the CPU to the bit: `rank_light` and `rank_ordered` add up each target in the order of
// the query's row, and `rank_whole` adds whole numbers, whose sums are the same in any order. No product and sum may be
// fused: compile with --fmad=false.
//
// Constants: THREADS of a block and BLOCKS that share a processor; TILE, a multiple of 4·THREADS and at most 2¹⁶; SLOTS
// of a hash table, a power of 2; LIGHT_WARPS of a block of `rank_light`; MOST hits of a query, at most THREADS.

typedef long long Place;  // of an entry of a matrix: there may be more than 2³¹

enum Normalisation { NONE = 0, COSINE = 2, OVERLAP = 4, TVERSKY = 5 };  // see formula.py
struct Formula { int kind; double alpha, beta; };  // of Tversky's alone
enum { WARP = 32, QUAD = 4, STRETCH = WARP * QUAD, SHORT = 8 };
#define ALL_LANES 0xffffffffu
extern __shared__ double2 memory[];
#ifdef COUNT_POSTINGS  // for benchmarks
__device__ unsigned long long num_postings;
#define COUNT(length) atomicAdd(&num_postings, (unsigned long long)(length))
#else
#define COUNT(length)
#endif
#define SLACK 1e-9  // the share by which bounds are widened against rounding

// ---- Scores and their order ----------------------------------------------------------------------
__device__ double normalised(Formula formula, double m, double dx, double dy) {
    if (formula.kind == NONE) return m;
    if (formula.kind != COSINE) {
        double below = dx < dy ? dx : dy;
        if (formula.kind == TVERSKY) below = formula.alpha * dx + formula.beta * dy + (1.0 - formula.alpha - formula.beta) * m;
        return below > 0.0 ? m / below : 0.0;
    }
    double product = dx * dy;
    if (product > 1e-290 && product < 1e290) return m / sqrt(product);
    product = sqrt(dx) * sqrt(dy);
    return product > 0.0 ? m / product : 0.0;
}

__device__ bool ranks_before(double score, int row, double other_score, int other_row) {
    return score > other_score || (score == other_score && row < other_row);
}

// The sum m below which no target of norm dy or more reaches the score `least`.
__device__ double least_sum(Formula formula, double least, double dx, double dy) {
    if (formula.kind == NONE) return least * (1.0 - SLACK);
    if (formula.kind == COSINE) return least * sqrt(dx) * sqrt(dy) * (1.0 - SLACK);
    if (formula.kind == OVERLAP) return least * (dx < dy ? dx : dy) * (1.0 - SLACK);
    double share = 1.0 - least * (1.0 - formula.alpha - formula.beta) + SLACK;
    share = share > SLACK ? share : SLACK;
    return least * (1.0 - SLACK) / share * (formula.alpha * dx + formula.beta * dy);
}

// The highest score of a target whose norm lies between two, by Cauchy-Schwarz: m ≤ √(dx·dy).
// The overlap has no such bound: it is √(max / min) of both norms, so that any tile may hold the highest score.
__device__ double highest_score(Formula formula, double dx, double low, double high) {
    if (formula.kind == NONE) return sqrt(dx * high);
    if (formula.kind == COSINE) return 1.0;
    if (formula.kind == OVERLAP) return 1e300;
    double dy = formula.beta > 0.0 ? dx * (formula.alpha / formula.beta) : high;
    dy = dy < low ? low : dy > high ? high : dy;
    const double m = sqrt(dx * dy);
    const double below = formula.alpha * dx + formula.beta * dy + (1.0 - formula.alpha - formula.beta) * m;
    return below > 0.0 ? m / below * (1.0 + SLACK) : 1e300;
}

__device__ Place find_label(const int* labels, Place begin, Place end, Place label) {
    while (begin < end) {
        Place middle = begin + (end - begin) / 2;
        if (labels[middle] < label) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

// ---- Heavy rows: sums of one tile after the other ------------------------------------------------
__device__ void load_quad(const unsigned* at, unsigned* quad) {
    uint4 four = *(const uint4*)at;
    quad[0] = four.x, quad[1] = four.y, quad[2] = four.z, quad[3] = four.w;
}
__device__ void load_quad(const double* at, double* quad) {
    double2 first = ((const double2*)at)[0], second = ((const double2*)at)[1];
    quad[0] = first.x, quad[1] = first.y, quad[2] = second.x, quad[3] = second.y;
}
__device__ void store_quad(unsigned* at, const unsigned* quad) {
    *(uint4*)at = make_uint4(quad[0], quad[1], quad[2], quad[3]);
}
__device__ void store_quad(double* at, const double* quad) {
    ((double2*)at)[0] = make_double2(quad[0], quad[1]);
    ((double2*)at)[1] = make_double2(quad[2], quad[3]);
}
__device__ unsigned at_least(double sum, unsigned) { return sum > 4294967295.0 ? 4294967295u : (unsigned)ceil(sum); }
__device__ double at_least(double sum, double) { return sum; }

struct Targets {
    const double* norms;  // by label, ascending; padded to whole tiles
    const int* rows;      // by label
    const Place* starts;  // of the postings of each middle node
    const int* labels;    // of the postings
    const int* tile_starts;  // (middle nodes, tiles + 1), counted from `starts`; null: search for them
    int num_tiles;
};

struct Queries {
    const Place* starts;  // rows of left
    const int* middles;
    const double* weights;
    const double* norms;
    const int* rows;
    const int* skipped;      // the target that each query leaves out; -1: none
    const int* first_tiles;  // where the best targets of each are likely
    const int* order;        // (count,) the queries to rank, heaviest first
    int count;
};

struct Best {
    int* rows;       // (queries, wanted)
    double* scores;  // (queries, wanted)
    int* sizes;      // (queries,)
    int wanted;
};

struct Lists {  // of postings within a tile, one per middle node
    Place* begins;
    int* lengths;
};

__device__ Place tile_begin(const Targets& targets, int middle, int tile) {
    const Place start = targets.starts[middle];
    if (targets.tile_starts) return start + targets.tile_starts[(Place)middle * (targets.num_tiles + 1) + tile];
    return find_label(targets.labels, start, targets.starts[middle + 1], (Place)tile * TILE);
}

// Add up a row's postings of a tile; return whether there are any. A posting of whole numbers is its label within the
// tile and, in the upper 16 bits, its value. Sums are the same in any order, so each thread adds the short lists of its
// entries of the row by itself, and all of them together add the long ones.
__device__ bool add_row(unsigned* sums, const Targets& targets, const unsigned* postings, const Queries& row,
                        Place row_begin, Place row_end, int tile, Lists lists, unsigned* weights) {
    __shared__ int num_lists;
    const Place last_label = (Place)(tile + 1) * TILE;
    bool touched = false;
    if (threadIdx.x == 0) num_lists = 0;
    __syncthreads();
    for (Place entry = row_begin + threadIdx.x; entry < row_end; entry += THREADS) {
        const int middle = row.middles[entry];
        const unsigned weight = (unsigned)row.weights[entry];
        Place place = tile_begin(targets, middle, tile);
        const Place end = targets.tile_starts ? tile_begin(targets, middle, tile + 1) : targets.starts[middle + 1];
        const Place begin = place, near = place + SHORT < end ? place + SHORT : end;
        const bool is_long = near < end && targets.labels[near] < last_label;
        const int at = is_long ? atomicAdd(&num_lists, 1) : THREADS;
        if (at < THREADS) {
            const Place last = targets.tile_starts ? end : find_label(targets.labels, near, end, last_label);
            lists.begins[at] = begin, lists.lengths[at] = (int)(last - begin), weights[at] = weight;
            touched = true;
            continue;
        }
        for (; place < end && targets.labels[place] < last_label; place++) {
            atomicAdd(sums + (postings[place] & 0xffffu), weight * (postings[place] >> 16));
            touched = true;
        }
        COUNT(place - begin);
    }
    touched = __syncthreads_or(touched);
    const int count = num_lists < THREADS ? num_lists : THREADS;
    for (int s = 0; s < count; s++) {
        const Place begin = lists.begins[s];
        const int length = lists.lengths[s];
        const unsigned weight = weights[s];
        // other warps begin with other lists, so that lists shorter than a block keep all of them busy
        const int lane = (threadIdx.x + s * STRETCH) % THREADS;
        for (int at = QUAD * lane - (int)(begin & 3); at < length; at += QUAD * THREADS) {  // quads are aligned
            unsigned quad[QUAD];
            load_quad(postings + (begin + at), quad);
            for (int i = 0; i < QUAD; i++)
                if (at + i >= 0 && at + i < length) atomicAdd(sums + (quad[i] & 0xffffu), weight * (quad[i] >> 16));
        }
        if (threadIdx.x == 0) COUNT(length);
    }
    __syncthreads();
    return touched;
}

// Other weights: lists are added one after the other, in the order of the row; labels are distinct within a list.
__device__ bool add_row(double* sums, const Targets& targets, const double* values, const Queries& row, Place row_begin,
                        Place row_end, int tile, Lists lists, double* weights) {
    const Place first_label = (Place)tile * TILE;
    bool touched = false;
    for (Place chunk = row_begin; chunk < row_end; chunk += THREADS) {
        const int count = row_end - chunk < THREADS ? (int)(row_end - chunk) : THREADS;
        bool has_some = false;
        if (threadIdx.x < count) {
            const int middle = row.middles[chunk + threadIdx.x];
            const Place begin = tile_begin(targets, middle, tile);
            lists.begins[threadIdx.x] = begin, weights[threadIdx.x] = row.weights[chunk + threadIdx.x];
            lists.lengths[threadIdx.x] = (int)(tile_begin(targets, middle, tile + 1) - begin);
            has_some = lists.lengths[threadIdx.x] > 0;
            COUNT(lists.lengths[threadIdx.x]);
        }
        if (!__syncthreads_or(has_some)) continue;
        touched = true;
        for (int s = 0; s < count; s++) {
            if (lists.lengths[s] == 0) continue;
            for (int i = threadIdx.x; i < lists.lengths[s]; i += THREADS) {
                const Place place = lists.begins[s] + i;
                sums[targets.labels[place] - first_label] += weights[s] * values[place];
            }
            __syncthreads();
        }
        __syncthreads();  // before the lists of the next chunk
    }
    __syncthreads();
    return touched;
}

template <typename Sum>
__device__ void rank_tiles(Targets targets, const Sum* postings, Queries queries, Best best, Formula formula,
                           int* next) {
    Sum* sums = (Sum*)memory;
    double* list_scores = (double*)(sums + TILE);  // the best so far, then new ones
    Place* begins = (Place*)(list_scores + MOST + THREADS);
    Sum* weights = (Sum*)(begins + THREADS);
    const Lists lists = {begins, (int*)(weights + THREADS)};
    int* list_rows = lists.lengths + THREADS;
    double* group_scores = (double*)begins;  // not needed at the same time
    __shared__ int shared_query, num_new;
    __shared__ double shared_bound;
    const int thread = threadIdx.x, wanted = best.wanted;

    for (int i = thread; i < TILE; i += THREADS) sums[i] = 0;
    while (true) {
        if (thread == 0) shared_query = atomicAdd(next, 1);
        __syncthreads();
        if (shared_query >= queries.count) return;
        const int q = queries.order[shared_query];
        const int query = queries.rows[q], skipped = queries.skipped[q];
        const Place row_begin = queries.starts[query], row_end = queries.starts[query + 1];
        const double dx = queries.norms[query];
        int held = 0, below = queries.first_tiles[q] - 1, above = queries.first_tiles[q];
        double least = 0.0;  // a score that at least `wanted` targets reach

        while (row_begin < row_end) {
            // -- The next tile, on the side where scores may be higher
            double lower = -1.0, upper = -1.0;
            if (below >= 0) {
                const double* norms = targets.norms + (Place)below * TILE;
                lower = highest_score(formula, dx, norms[0], norms[TILE - 1]);
            }
            if (above < targets.num_tiles) {
                const double* norms = targets.norms + (Place)above * TILE;
                upper = highest_score(formula, dx, norms[0], norms[TILE - 1]);
            }
            const double bound = upper >= lower ? upper : lower;
            if (bound < 0.0 || bound < least * (1.0 - SLACK)) break;
            const int tile = upper >= lower ? above++ : below--;
            const Place first_label = (Place)tile * TILE;

            if (!add_row(sums, targets, postings, queries, row_begin, row_end, tile, lists, weights)) continue;

            // -- Before any is held: the best of the groups are different targets, which all reach the last of them
            if (least == 0.0 && held < wanted) {
                double most = 0.0;
                for (int c = 0; c < TILE; c += QUAD * THREADS) {
                    const int at = c + QUAD * thread;
                    Sum quad[QUAD];
                    load_quad(sums + at, quad);
                    Sum m = 0;
                    for (int i = 0; i < QUAD; i++) m = quad[i] > m ? quad[i] : m;
                    if (m > 0) {
                        const double dy = targets.norms[first_label + (at | (STRETCH - 1))];  // the largest nearby
                        const double score = normalised(formula, (double)m, dx, dy);
                        most = score > most ? score : most;
                    }
                }
                int group = WARP;
                while (group > 1 && THREADS / group < 4 * wanted) group /= 2;
                for (int distance = group / 2; distance > 0; distance /= 2) {
                    const double other = __shfl_xor_sync(ALL_LANES, most, distance);
                    most = other > most ? other : most;
                }
                const int groups = THREADS / group;
                if (thread % group == 0) group_scores[thread / group] = most;
                if (thread == 0) shared_bound = 0.0;
                __syncthreads();
                if (thread < groups) {
                    most = group_scores[thread];
                    int rank = 0;
                    for (int other = 0; other < groups; other++)
                        rank += group_scores[other] > most || (group_scores[other] == most && other < thread);
                    if (rank == wanted) shared_bound = most * (1.0 - SLACK);  // one more: the query may be among them
                }
                __syncthreads();
                least = shared_bound;
            }

            // -- Offer the sums of this tile, and reset them; what finds no room stays for another round
            bool again = true;
            while (again) {
                if (thread == 0) num_new = 0;
                __syncthreads();
                const bool full = held == wanted;
                const double last_score = full ? list_scores[wanted - 1] : 0.0;
                const int last_row = full ? list_rows[wanted - 1] : 0;
                bool left_over = false;
                for (int c = 0; c < TILE; c += QUAD * THREADS) {
                    const int at = c + QUAD * thread;
                    Sum quad[QUAD];
                    load_quad(sums + at, quad);
                    Sum m = 0;
                    for (int i = 0; i < QUAD; i++) m = quad[i] > m ? quad[i] : m;
                    if (!(m > 0)) continue;
                    const double low = targets.norms[first_label + (at & ~(STRETCH - 1))];
                    const Sum enough = at_least(least_sum(formula, least, dx, low), (Sum)0);
                    bool keeps = false;
                    if (m >= enough) {
                        for (int i = 0; i < QUAD; i++) {
                            bool stays = false;
                            if (quad[i] > 0 && quad[i] >= enough) {
                                const Place label = first_label + at + i;
                                const double dy = targets.norms[label];
                                const double score = normalised(formula, (double)quad[i], dx, dy);
                                const int row = targets.rows[label];
                                if (row != skipped && score >= least &&
                                    (!full || ranks_before(score, row, last_score, last_row))) {
                                    const int place = atomicAdd(&num_new, 1);
                                    stays = place >= THREADS;
                                    if (!stays) list_scores[held + place] = score, list_rows[held + place] = row;
                                }
                            }
                            if (!stays) quad[i] = 0;
                            keeps |= stays;
                        }
                    }
                    if (!keeps) quad[0] = quad[1] = quad[2] = quad[3] = 0;
                    left_over |= keeps;
                    store_quad(sums + at, quad);
                }
                again = __syncthreads_or(left_over);
                const int added = num_new < THREADS ? num_new : THREADS;
                if (added == 0) continue;
                const int total = held + added;  // at most 2·THREADS
                double scores[2];
                int rows[2], ranks[2];
                for (int u = 0; u < 2; u++) {
                    const int own = thread + u * THREADS;
                    ranks[u] = wanted;
                    if (own >= total) continue;
                    scores[u] = list_scores[own], rows[u] = list_rows[own], ranks[u] = 0;
                    for (int other = 0; other < total; other++)
                        ranks[u] += ranks_before(list_scores[other], list_rows[other], scores[u], rows[u]);
                }
                __syncthreads();
                for (int u = 0; u < 2; u++)
                    if (ranks[u] < wanted) list_scores[ranks[u]] = scores[u], list_rows[ranks[u]] = rows[u];
                __syncthreads();
                held = total < wanted ? total : wanted;
                if (held == wanted && list_scores[wanted - 1] > least) least = list_scores[wanted - 1];
            }
        }

        for (int i = thread; i < wanted; i += THREADS) {
            best.scores[(Place)q * wanted + i] = i < held ? list_scores[i] : 0.0;
            best.rows[(Place)q * wanted + i] = i < held ? list_rows[i] : -1;
        }
        if (thread == 0) best.sizes[q] = held;
        __syncthreads();
    }
}

#define PARAMETERS                                                                                         \
    const double *norms, const int *rows, const Place *starts, const int *labels, const int *tile_starts,  \
        int num_tiles, const Place *left_starts, const int *left_middles, const double *left_weights,      \
        const double *left_norms, const int *query_rows, const int *skipped, const int *first_tiles,       \
        const int *order, int count, int *best_rows, double *best_scores, int *best_sizes, int wanted,     \
        int kind, double alpha, double beta, int *next
#define TARGETS {norms, rows, starts, labels, tile_starts, num_tiles}
#define QUERIES {left_starts, left_middles, left_weights, left_norms, query_rows, skipped, first_tiles, order, count}
#define BEST {best_rows, best_scores, best_sizes, wanted}
#define FORMULA {kind, alpha, beta}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) rank_whole(const unsigned* postings, PARAMETERS) {
    Targets targets = TARGETS;
    Queries queries = QUERIES;
    Best best = BEST;
    Formula formula = FORMULA;
    rank_tiles<unsigned>(targets, postings, queries, best, formula, next);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) rank_ordered(const double* values, PARAMETERS) {
    Targets targets = TARGETS;
    Queries queries = QUERIES;
    Best best = BEST;
    Formula formula = FORMULA;
    rank_tiles<double>(targets, values, queries, best, formula, next);
}

// ---- Light rows: a hash table per warp -----------------------------------------------------------
// A row has at most SLOTS / 2 additions.
extern "C" __global__ void __launch_bounds__(LIGHT_WARPS * WARP) rank_light(const double* values, PARAMETERS) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    double* sums = (double*)memory + warp * (SLOTS + MOST);
    double* list_scores = sums + SLOTS;
    int* keys = (int*)((double*)memory + LIGHT_WARPS * (SLOTS + MOST)) + warp * (SLOTS + MOST);
    int* list_rows = keys + SLOTS;
    const Formula formula = FORMULA;

    while (true) {
        int q = 0;
        if (lane == 0) q = atomicAdd(next, 1);
        q = __shfl_sync(ALL_LANES, q, 0);
        if (q >= count) return;
        q = order[q];
        const int query = query_rows[q];
        const Place row_begin = left_starts[query], row_end = left_starts[query + 1];
        const double dx = left_norms[query];

        // -- A table of twice as many slots as additions
        int work = 0;
        for (Place at = row_begin + lane; at < row_end; at += WARP) {
            const int middle = left_middles[at];
            work += (int)(starts[middle + 1] - starts[middle]);
        }
        for (int distance = WARP / 2; distance > 0; distance /= 2) work += __shfl_xor_sync(ALL_LANES, work, distance);
        int slots = WARP, shift = 32 - 5;
        while (slots < 2 * work) slots *= 2, shift--;
        for (int slot = lane; slot < slots; slot += WARP) keys[slot] = -1;
        __syncwarp();

        // -- Add up the row's postings, list after list; labels are distinct within a list
        for (Place chunk = row_begin; chunk < row_end; chunk += WARP) {
            int length = 0;
            Place begin = 0;
            double weight = 0.0;
            if (chunk + lane < row_end) {
                const int middle = left_middles[chunk + lane];
                weight = left_weights[chunk + lane], begin = starts[middle], length = (int)(starts[middle + 1] - begin);
            }
            const int lists = row_end - chunk < WARP ? (int)(row_end - chunk) : WARP;
            for (int s = 0; s < lists; s++) {
                const Place list_begin = __shfl_sync(ALL_LANES, begin, s);
                const int list_length = __shfl_sync(ALL_LANES, length, s);
                const double list_weight = __shfl_sync(ALL_LANES, weight, s);
                for (int i = lane; i < list_length; i += WARP) {
                    const int label = labels[list_begin + i];
                    const double added = list_weight * values[list_begin + i];
                    unsigned slot = ((unsigned)label * 2654435769u) >> shift;
                    while (true) {
                        const int before = atomicCAS(keys + slot, -1, label);
                        if (before == -1) sums[slot] = added;
                        if (before == label) sums[slot] += added;
                        if (before == -1 || before == label) break;
                        slot = (slot + 1) & (slots - 1);
                    }
                }
                __syncwarp();
            }
        }

        // -- Keep the best in a sorted list
        int held = 0;
        for (int base = 0; base < slots; base += WARP) {
            const int label = keys[base + lane];
            double score = 0.0;
            int row = -1;
            bool offered = label >= 0 && sums[base + lane] > 0.0;
            if (offered) {
                score = normalised(formula, sums[base + lane], dx, norms[label]), row = rows[label];
                offered = row != skipped[q];
                offered = offered && (held < wanted ||
                                      ranks_before(score, row, list_scores[wanted - 1], list_rows[wanted - 1]));
            }
            unsigned offers = __ballot_sync(ALL_LANES, offered);
            while (offers) {
                const int source = __ffs(offers) - 1;
                offers &= offers - 1;
                const double new_score = __shfl_sync(ALL_LANES, score, source);
                const int new_row = __shfl_sync(ALL_LANES, row, source);
                int at = 0;
                for (int i = 0; i < held; i += WARP) {
                    const bool earlier =
                        i + lane < held && ranks_before(list_scores[i + lane], list_rows[i + lane], new_score, new_row);
                    at += __popc(__ballot_sync(ALL_LANES, earlier));
                }
                if (at == wanted) continue;
                const int last = held < wanted ? held : wanted - 1;
                for (int i = last / WARP * WARP; i + WARP > at; i -= WARP) {  // move those behind it, the last first
                    const bool moves = i + lane >= at && i + lane < last;
                    const double moved_score = moves ? list_scores[i + lane] : 0.0;
                    const int moved_row = moves ? list_rows[i + lane] : 0;
                    __syncwarp();
                    if (moves) list_scores[i + lane + 1] = moved_score, list_rows[i + lane + 1] = moved_row;
                    __syncwarp();
                }
                if (lane == 0) list_scores[at] = new_score, list_rows[at] = new_row;
                held = last + 1;
                __syncwarp();
            }
        }
        for (int i = lane; i < wanted; i += WARP) {
            best_scores[(Place)q * wanted + i] = i < held ? list_scores[i] : 0.0;
            best_rows[(Place)q * wanted + i] = i < held ? list_rows[i] : -1;
        }
        if (lane == 0) best_sizes[q] = held;
        __syncwarp();
    }
}
