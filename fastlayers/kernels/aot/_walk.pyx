"""The walk of a recurrent layer through time: slabs of sequences, chunks of time, tasks; a step is the level's.

Time goes in chunks: first the input product of a chunk, whose sums a cache holds until the steps read them, then its steps. Sequences
are sorted by falling length, so those that a step concerns are the first ones; where all lengths are equal the order stays. A step
counts in the order of the walk, a time along x and out; where there is a mask, the length is the number of its steps, and a table has
their times.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ._engine cimport FL_GRU_EARLY, FL_LOCKSTEP_PARTS, FL_LSTM, FL_PANEL, FL_RNN, alloc, fl_cell, fl_recurrent_input, fl_recurrent_step
from ._once cimport fl_once32
from ._engine cimport lockstep, parallel, release, run_begin, run_end, workers
from ._stop cimport due_here

cdef enum:
    SLAB = 256         # most sequences that walk together: scratch is bounded
    CHUNK_ROWS = 256   # rows of one input product, if it is more than one step
    PRODUCT_ROWS = 64  # fewest rows of a task of it, if it is cut by rows
    WALK_ROWS = 8      # fewest sequences of a task of the walk
    SPLIT = 3 << 16    # fewest bytes of R for which a step of few sequences is cut by units, at the price of a barrier a step
    PART_BLOCKS = 4    # fewest blocks of units of a part
    LONG_STEP = 100000 # operations of a step, a microsecond, from which on each asks whether the run is to end


cdef struct Slab:
    const Walk *plan
    const Arrays *arrays
    int64_t rows               # sequences
    int64_t *order             # their positions in the batch, longest first
    int64_t *lengths           # in that order
    int *times                 # NULL, or [rows][steps], in that order: when a sequence has its steps
    int64_t first, count       # the chunk: steps first .. first + count
    int64_t *offsets           # row of xg where each step of the chunk begins; the last is their number
    int64_t base, together     # directions base .. base + together are being worked on
    int64_t products, walks    # tasks of each direction
    int64_t shares             # into which the rows of a product are cut; 1 if its units are
    int64_t parts              # into which the units of each step are cut; 1: they are not
    float *xg                  # a block of `chunk` floats a direction
    int64_t chunk
    float *states              # `state` floats a direction: h twice, for steps alternate, c, and what FL_GRU_EARLY needs
    int64_t state


cdef inline const Direction *direction_of(const Slab *p, int64_t d) noexcept nogil:
    return p.plan.directions + d


cdef inline bint backwards(const Slab *p, int64_t d) noexcept nogil:
    return d == 1 or p.plan.reverse


cdef inline int64_t padded(const Slab *p) noexcept nogil:
    return p.plan.directions.cell.hp


cdef inline int64_t columns(const Slab *p) noexcept nogil:
    return padded(p) * p.plan.directions.cell.gates


cdef inline int64_t padded_h(const Slab *p) noexcept nogil:
    return p.plan.directions.cell.tp


cdef inline float *h_of(const Slab *p, int64_t d, int64_t step) noexcept nogil:
    """h before `step`, [rows][tp]: a step reads all of it before the last unit is done, so two buffers alternate."""
    return p.states + (d - p.base) * p.state + (step & 1) * p.rows * padded_h(p)


cdef inline float *c_of(const Slab *p, int64_t d) noexcept nogil:
    return p.states + (d - p.base) * p.state + 2 * p.rows * padded_h(p)


cdef inline int64_t time_of(const Slab *p, int64_t d, int64_t j, int64_t step) noexcept nogil:
    cdef int64_t k = p.lengths[j] - 1 - step if backwards(p, d) else step
    return k if p.times == NULL else p.times[j * p.plan.steps + k]


cdef inline int64_t active(const Slab *p, int64_t step) noexcept nogil:
    """Number of sequences of the slab that are longer than `step`."""
    cdef int64_t n = p.rows
    while n and p.lengths[n - 1] <= step:
        n -= 1
    return n


cdef inline double operations(const Slab *p, int64_t rows, int64_t terms) noexcept nogil:
    return 2.0 * rows * columns(p) * terms


cdef int walk(const Walk *plan, const Arrays *arrays) noexcept nogil:
    cdef int64_t slabs = (plan.batch + SLAB - 1) // SLAB, i, begin
    for i in range(slabs):
        begin = plan.batch * i // slabs
        if walk_slab(plan, arrays, begin, plan.batch * (i + 1) // slabs - begin):
            return -1
    return 0


cdef int walk_slab(const Walk *plan, const Arrays *arrays, int64_t begin, int64_t rows) noexcept nogil:
    cdef Slab p
    cdef int64_t hp = plan.directions.cell.hp, longest = max(<int64_t>1, min(plan.steps, CHUNK_ROWS // rows))
    cdef int threads = workers(plan.count * max(<int64_t>1, rows // WALK_ROWS), plan.work), parts = parts_of(plan, rows)
    p.plan, p.arrays, p.rows = plan, arrays, rows
    p.parts = parts
    threads = max(threads, parts)
    p.together = plan.count if threads > 1 else 1
    p.chunk = longest * rows * hp * plan.directions.cell.gates
    cdef bint spare = plan.directions.cell.kind == FL_GRU_EARLY or plan.directions.cell.project != NULL
    p.state = rows * (2 * plan.directions.cell.tp + (3 if spare else 1) * hp)
    cdef size_t floats = p.together * (p.chunk + p.state)
    cdef size_t times = rows * plan.steps if arrays.mask != NULL else 0
    p.xg = <float *>alloc((floats + times) * sizeof(float) + (2 * rows + longest + 1) * sizeof(int64_t))
    if p.xg == NULL:
        return -1
    p.states = p.xg + p.together * p.chunk
    p.order = <int64_t *>(p.xg + floats)
    p.lengths = p.order + rows
    p.offsets = p.lengths + rows
    p.times = <int *>(p.offsets + longest + 1) if arrays.mask != NULL else NULL
    sort(&p, begin)
    if p.times != NULL:
        list_times(&p)
    if (arrays.lengths != NULL or arrays.mask != NULL) and arrays.out != NULL:
        clear_tails(&p)
    if threads > 1:
        run_begin()
    p.base = 0
    while p.base < plan.count:
        load_states(&p)
        p.first = 0
        while p.first < p.lengths[0] and plan.hidden:
            run_chunk(&p, longest, threads)
            p.first += p.count
        store_states(&p)
        p.base += p.together
    if threads > 1:
        run_end()
    release(p.xg)
    return 0


cdef void run_chunk(Slab *p, int64_t longest, int threads) noexcept nogil:
    """The input product, cut by rows, or by units if rows are few; then the steps, cut by sequences, or by units. Neither mix, so any
    cut gives the same bits: there is one task a thread, since each reads all of the weights, or of x."""
    cdef int64_t s, rows, units
    cdef int most
    p.count = min(longest, p.lengths[0] - p.first)
    p.offsets[0] = 0
    for s in range(p.count):
        p.offsets[s + 1] = p.offsets[s] + active(p, p.first + s)
    rows = p.offsets[p.count]
    p.shares, units = max(<int64_t>1, rows // PRODUCT_ROWS), padded(p) // (FL_PANEL * PART_BLOCKS)
    most = workers(p.together * max(p.shares, units), p.together * operations(p, rows, p.plan.inputs))
    p.products = (most + p.together - 1) // p.together
    p.shares = p.products if p.products <= p.shares else 1
    p.walks = max(<int64_t>1, min((threads + p.together - 1) // p.together, p.rows // WALK_ROWS))
    parallel(product_task, p, p.together * p.products, most)
    if p.parts == 1:
        parallel(walk_task, p, p.together * p.walks, threads)
        return
    lockstep(units_of_step, p, p.count, p.parts, p.parts)


cdef void sort(Slab *p, int64_t begin) noexcept nogil:
    """Fills order and lengths, longest first, else as they come; a length out of range is taken for the nearest in it."""
    cdef const int *given = p.arrays.lengths
    cdef int64_t j, i, length
    for j in range(p.rows):
        if p.arrays.mask != NULL:
            length = count_steps(p, begin + j)
        else:
            length = p.plan.steps if given == NULL else min(p.plan.steps, max(<int64_t>0, <int64_t>fl_once32(given + begin + j)))
        i = j
        while i and p.lengths[i - 1] < length:
            p.lengths[i], p.order[i] = p.lengths[i - 1], p.order[i - 1]
            i -= 1
        p.lengths[i], p.order[i] = length, begin + j


cdef int64_t count_steps(const Slab *p, int64_t row) noexcept nogil:
    cdef const unsigned char *mask = p.arrays.mask + row * p.plan.steps
    cdef int64_t t, count = 0
    for t in range(p.plan.steps):
        count += mask[t] != 0
    return count


cdef void list_times(const Slab *p) noexcept nogil:
    """Fills times; only the first lengths[j] of a sequence are read, which are times of x whatever has become of the mask since its
    steps were counted."""
    cdef const unsigned char *mask
    cdef int *to
    cdef int64_t j, t, count
    for j in range(p.rows):
        mask, to, count = p.arrays.mask + p.order[j] * p.plan.steps, p.times + j * p.plan.steps, 0
        for t in range(p.plan.steps):
            if mask[t]:
                to[count] = <int>t
                count += 1
        for t in range(count, p.lengths[j]):
            to[t] = 0


cdef void clear_tails(const Slab *p) noexcept nogil:
    """Zeros in out where a sequence has no step."""
    cdef const Walk *plan = p.plan
    cdef int64_t j, d, t
    for j in range(p.rows):
        for t in range(0 if p.times != NULL else p.lengths[j], plan.steps):
            if p.times != NULL and p.arrays.mask[p.order[j] * plan.steps + t]:
                continue
            for d in range(plan.count):
                memset(p.arrays.out + t * plan.out_time + p.order[j] * plan.out_row + d * plan.out_direction, 0,
                       plan.outs * sizeof(float))


cdef void load_states(const Slab *p) noexcept nogil:
    cdef int64_t d
    memset(p.states, 0, p.together * p.state * sizeof(float))
    for d in range(p.base, p.base + p.together):
        load(p, d, p.arrays.h0, p.plan.outs, h_of(p, d, 0), padded_h(p))
        load(p, d, p.arrays.c0, p.plan.hidden, c_of(p, d), padded(p))


cdef void load(const Slab *p, int64_t d, const float *from__dbh, int64_t size, float *to, int64_t stride) noexcept nogil:
    cdef int64_t j
    if from__dbh != NULL:
        for j in range(p.rows):
            memcpy(to + j * stride, from__dbh + (d * p.plan.batch + p.order[j]) * size, size * sizeof(float))


cdef void store_states(const Slab *p) noexcept nogil:
    """The states after the last step of each sequence."""
    cdef int64_t d, j, to, hidden = p.plan.hidden, outs = p.plan.outs
    for d in range(p.base, p.base + p.together):
        for j in range(p.rows):
            to = d * p.plan.batch + p.order[j]
            if p.arrays.hn != NULL:
                memcpy(p.arrays.hn + to * outs, h_of(p, d, p.lengths[j]) + j * padded_h(p), outs * sizeof(float))
            if p.arrays.cn != NULL:
                memcpy(p.arrays.cn + to * hidden, c_of(p, d) + j * padded(p), hidden * sizeof(float))


cdef inline void xg_strides(const Slab *p, int64_t *block, int64_t *row) noexcept nogil:
    """One block of units after the other, so that a step of many rows reads runs; a lone row, and a cell with one gate, has its
    blocks next to each other, so that one product makes them all."""
    cdef int64_t width = p.plan.directions.cell.gates * FL_PANEL, rows = p.offsets[p.count]
    block[0], row[0] = rows * width, width
    if rows == 1 or p.plan.directions.cell.kind == FL_RNN:
        block[0], row[0] = width, columns(p)


cdef void product_task(void *context, int64_t task, int worker) noexcept nogil:
    """An even share of the rows, or of the units, of a direction's xg."""
    cdef const Slab *p = <const Slab *>context
    cdef int64_t d = p.base + task // p.products, part = task % p.products, share = part if p.shares > 1 else 0, step = 0, r, j
    cdef int64_t rows = p.offsets[p.count], begin = rows * share // p.shares, end = rows * (share + 1) // p.shares
    cdef const Direction *direction = direction_of(p, d)
    cdef const float *pointers[CHUNK_ROWS]
    cdef fl_recurrent_input call
    for r in range(begin, end):
        while p.offsets[step + 1] <= r:
            step += 1
        j = r - p.offsets[step]
        pointers[r - begin] = p.arrays.x + time_of(p, d, j, p.first + step) * p.plan.x_time + p.order[j] * p.plan.x_row
    xg_strides(p, &call.xg_block, &call.xg_row)
    call.rows, call.m = pointers, end - begin
    call.inputs, call.gates, call.blocks = p.plan.inputs, direction.cell.gates, padded(p) // FL_PANEL
    call.first, call.last = 0, call.blocks
    if p.shares == 1:
        call.first, call.last = call.blocks * part // p.products, call.blocks * (part + 1) // p.products
    call.w, call.bias, call.half = direction.w, direction.bias, direction.cell.half
    call.halves = p.plan.level.halves
    call.xg = p.xg + (d - p.base) * p.chunk + begin * call.xg_row
    p.plan.level.recurrent_input(&call)


cdef int parts_of(const Walk *plan, int64_t rows) noexcept nogil:
    """Into how many parts the units of a step are cut. It pays where few sequences share the reading of a large R; a cell whose
    units wait for each other within a step stays whole."""
    cdef const fl_cell *cell = &plan.directions.cell
    if plan.count > 1 or rows >= 2 * WALK_ROWS or cell.kind == FL_GRU_EARLY or cell.project != NULL:
        return 1
    if cell.gates * cell.hp * cell.terms * <int64_t>(2 if cell.half else sizeof(float)) < SPLIT:
        return 1
    return workers(min(<int64_t>FL_LOCKSTEP_PARTS, cell.hp // (FL_PANEL * PART_BLOCKS)), plan.work)


cdef void walk_task(void *context, int64_t task, int worker) noexcept nogil:
    """An even share of the sequences through a direction's chunk."""
    cdef const Slab *p = <const Slab *>context
    cdef int64_t d = p.base + task // p.walks, share = task % p.walks, s
    cdef int64_t begin = p.rows * share // p.walks, end = p.rows * (share + 1) // p.walks
    cdef fl_recurrent_step call
    cdef int tiles = 0
    prepare(p, d, begin, &tiles, &call)
    call.first, call.last = 0, padded(p) // FL_PANEL
    cdef bint asks = operations(p, end - begin, p.plan.outs) > LONG_STEP
    for s in range(p.count):
        if asks and due_here() or not do_step(p, d, s, begin, end, &call):
            break
    p.plan.level.halves.end(&tiles)


cdef void units_of_step(void *context, int64_t step, int64_t part) noexcept nogil:
    """A part of the units of all sequences through one step of the only direction. A unit's values depend on no other unit of the
    step, so any cut gives the same bits."""
    cdef const Slab *p = <const Slab *>context
    cdef int64_t blocks = padded(p) // FL_PANEL
    cdef fl_recurrent_step call
    cdef int tiles = 0
    prepare(p, p.base, 0, &tiles, &call)
    call.first, call.last = blocks * part // p.parts, blocks * (part + 1) // p.parts
    do_step(p, p.base, step, 0, p.rows, &call)
    p.plan.level.halves.end(&tiles)


cdef void prepare(const Slab *p, int64_t d, int64_t begin, int *tiles, fl_recurrent_step *call) noexcept nogil:
    """Sets the values that all steps of the sequences from `begin` on have in common."""
    cdef float *c = c_of(p, d)
    call.cell = &direction_of(p, d).cell
    call.halves, call.tiles = p.plan.level.halves, tiles
    call.c, call.spare = c + begin * padded(p), c + (p.rows + 2 * begin) * padded(p)
    xg_strides(p, &call.xg_block, &call.xg_row)


cdef bint do_step(const Slab *p, int64_t d, int64_t s, int64_t begin, int64_t end, fl_recurrent_step *call) noexcept nogil:
    """Step s of the chunk for sequences begin .. end, and its output; whether there was any sequence that long."""
    cdef const Walk *plan = p.plan
    cdef int64_t step = p.first + s, tp = padded_h(p), j, at = 0, size = plan.outs
    cdef float *out
    call.rows = min(end, p.offsets[s + 1] - p.offsets[s]) - begin
    if call.rows <= 0:
        return False
    call.xg = p.xg + (d - p.base) * p.chunk + (p.offsets[s] + begin) * call.xg_row
    call.h, call.h_next = h_of(p, d, step) + begin * tp, h_of(p, d, step + 1) + begin * tp
    call.backwards = step & 1  # such a step begins with what the one before has left of R in the cache
    plan.level.recurrent_step(call)
    if p.parts > 1:
        at = call.first * FL_PANEL
        size = min(size, call.last * FL_PANEL) - at
    if p.arrays.out != NULL:  # the last block begins before `outs`
        for j in range(begin, begin + call.rows):
            out = p.arrays.out + time_of(p, d, j, step) * plan.out_time + p.order[j] * plan.out_row + d * plan.out_direction
            memcpy(out + at, call.h_next + (j - begin) * tp + at, size * sizeof(float))
    return True
