"""LSTM over a sequence: packing, the input product of many steps at once, and the walk through time. Validates nothing."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
cimport cython
cimport numpy as cnp

from ._engine cimport (
    FL_IDENTITY, FL_PANEL, RELEASE_GIL,
    alloc, fl_epilogue, fl_kernels, fl_lstm_step, level, parallel, release, workers,
)
from .gemm cimport pack_panels, panels_size, product

from ...errors import LimitError

cnp.import_array()

cdef enum:
    CHUNK_ROWS = 256   # rows of one input product: the walk reads its sums while a cache holds them, and scratch is bounded
    PRODUCT_ROWS = 64  # fewest rows of a task of it
    WALK_ROWS = 8      # fewest sequences of a task of the walk
    GROUP = 256        # columns of R that a batch's step multiplies at once: 256 KB a block of K


@cython.final
cdef class PackedLstm:
    """Weights of one direction, packed with the columns in the order of csrc/recurrent.h. Immutable, so any thread may use it."""
    cdef float *w      # one block: W_ih^T, R = W_hh^T, b_ih + b_hh
    cdef float *r
    cdef float *bias
    cdef int64_t inputs, hidden, columns

    def __dealloc__(self):
        release(self.w)


cdef struct Walk:
    # One call, and the part of time that is being worked on. "Step" counts in the order of the walk, "time" along x and out.
    const fl_kernels *level
    const float *w
    const float *r
    const float *bias
    int64_t steps, batch, inputs, hidden, hp, columns
    bint reverse
    const float *x
    int64_t x_time, x_row      # floats from one time, one sequence to the next
    float *out
    int64_t out_time, out_row
    int64_t first, count       # the chunk: steps first .. first + count
    int64_t products, walks    # tasks of its input product and of its walk
    float *gathered            # (count, batch, inputs): the chunk of x, where x has the batch first
    float *xg                  # (count, batch, columns): W x + b, in the order of time
    float *sums                # (batch, columns)
    float *h                   # (batch, hp), or (2, hp) where the step for one row changes between two
    float *c                   # (batch, hp)


def lstm_pack(cnp.ndarray w_ih__gi, cnp.ndarray w_hh__gh, b_ih__g, b_hh__g):
    """Packs W_ih (4h, i), W_hh (4h, h) and the sum of the biases (4h), each of which may be None."""
    cdef PackedLstm p = PackedLstm.__new__(PackedLstm)
    cdef int64_t inputs = cnp.PyArray_DIM(w_ih__gi, 1), hidden = cnp.PyArray_DIM(w_hh__gh, 1)
    p.inputs, p.hidden, p.columns = inputs, hidden, 4 * panels_size(hidden, 1)
    p.w = <float *>alloc((inputs + hidden + 1) * p.columns * sizeof(float))
    cdef float *rows = <float *>alloc((max(inputs, hidden) + 1) * p.columns * sizeof(float))
    if p.w == NULL or rows == NULL:
        release(rows)
        raise LimitError(f"lstm: no memory for packed weights of {inputs} inputs and {hidden} hidden units")
    p.r = p.w + inputs * p.columns
    p.bias = p.r + hidden * p.columns
    interleave(floats(w_ih__gi), inputs, p, rows)
    pack_panels(rows, p.columns, inputs, inputs, 1, p.w)
    interleave(floats(w_hh__gh), hidden, p, rows)
    pack_panels(rows, p.columns, hidden, hidden, 1, p.r)
    memset(p.bias, 0, p.columns * sizeof(float))
    for bias in (b_ih__g, b_hh__g):
        if bias is not None:
            interleave(floats(bias), 1, p, rows)
            for j in range(p.columns):
                p.bias[j] += rows[j]
    release(rows)
    return p


cdef void interleave(const float *w, int64_t terms, PackedLstm p, float *to):
    """Rows of w, [i f g o][hidden][terms], in the order [hp / 16][i f g o][16][terms]; units past hidden are zero."""
    cdef int64_t panel, unit, units
    for panel in range(p.columns // FL_PANEL):
        unit = panel // 4 * FL_PANEL
        units = min(p.hidden - unit, <int64_t>FL_PANEL)
        memset(to, 0, FL_PANEL * terms * sizeof(float))
        memcpy(to, w + (panel % 4 * p.hidden + unit) * terms, units * terms * sizeof(float))
        to += FL_PANEL * terms


cdef inline float *floats(array):
    return NULL if array is None else <float *>cnp.PyArray_DATA(<cnp.ndarray>array)


def lstm(cnp.ndarray x, PackedLstm packed, h0__bh, c0__bh, cnp.ndarray out, int64_t column,
         cnp.ndarray hn__bh, cnp.ndarray cn__bh, bint reverse, bint batch_first):
    """Runs a sequence through one direction; see reference/recurrent.py for the arguments."""
    cdef Walk walk
    cdef int axis = 1 if batch_first else 0
    cdef float *h0 = floats(h0__bh)
    cdef float *c0 = floats(c0__bh)
    cdef float *hn = floats(hn__bh)
    cdef float *cn = floats(cn__bh)
    walk.level = level()
    walk.w, walk.r, walk.bias = packed.w, packed.r, packed.bias
    walk.inputs, walk.hidden, walk.columns, walk.hp = packed.inputs, packed.hidden, packed.columns, packed.columns // 4
    walk.steps, walk.batch, walk.reverse = cnp.PyArray_DIM(x, axis), cnp.PyArray_DIM(x, 1 - axis), reverse
    walk.x, walk.out = floats(x), floats(out) + column
    walk.x_row, walk.out_row = walk.inputs, cnp.PyArray_DIM(out, 2)
    walk.x_time, walk.out_time = walk.x_row * walk.batch, walk.out_row * walk.batch
    if batch_first:
        walk.x_time, walk.out_time = walk.x_row, walk.out_row
        walk.x_row, walk.out_row = walk.x_row * walk.steps, walk.out_row * walk.steps
    cdef void *scratch = take_scratch(&walk)
    if scratch == NULL:
        raise LimitError(f"lstm: no memory to run {walk.batch} sequences of {walk.steps} steps")
    # Fewer than four sequences are bound by the reading of the weights and take as long as four.
    if operations(&walk, walk.steps * max(walk.batch, <int64_t>4), walk.inputs + walk.hidden) > RELEASE_GIL:
        with nogil:
            run(&walk, h0, c0, hn, cn)
    else:
        run(&walk, h0, c0, hn, cn)
    release(scratch)


cdef inline double operations(const Walk *p, int64_t rows, int64_t terms) noexcept nogil:
    return 8.0 * rows * p.hidden * terms


cdef inline bint gathers(const Walk *p) noexcept nogil:
    """Are the rows of a chunk of time apart in x?"""
    return p.x_row != p.inputs and p.batch > 1


cdef inline int64_t time_of(const Walk *p, int64_t step) noexcept nogil:
    return p.steps - 1 - step if p.reverse else step


cdef inline int64_t first_time(const Walk *p) noexcept nogil:
    """The earliest time of the chunk, where xg begins."""
    return p.steps - p.first - p.count if p.reverse else p.first


cdef inline float *state(const Walk *p, int64_t step) noexcept nogil:
    """h before `step`. The product has read all of h before the gates overwrite it; the step for one row needs two buffers."""
    return p.h + (step & 1) * p.hp if p.batch == 1 else p.h


cdef void *take_scratch(Walk *p) noexcept nogil:
    """Cuts one block into the walk's buffers; NULL where there is no memory."""
    p.first = 0
    p.count = max(<int64_t>1, min(p.steps, CHUNK_ROWS // max(p.batch, <int64_t>1)))
    cdef size_t rows = p.count * p.batch, columns = p.columns, hp = p.hp, batch = p.batch
    cdef size_t inputs = p.inputs if gathers(p) else 0
    p.xg = <float *>alloc(((rows + batch) * columns + (2 * batch + 1) * hp + rows * inputs) * sizeof(float))
    if p.xg != NULL:
        p.sums = p.xg + rows * columns
        p.h = p.sums + batch * columns
        p.c = p.h + (batch + 1) * hp
        p.gathered = p.c + batch * hp
    return p.xg


cdef void run(Walk *p, const float *h0, const float *c0, float *hn, float *cn) noexcept nogil:
    """Time in chunks: the input product of a chunk, cut by rows, then the walk through it, cut by sequences.

    Rows never mix, so any cut gives the same bits: there is one task a thread, since each reads all of the weights.
    """
    cdef int64_t longest = p.count
    load_state(p, h0, p.h)
    load_state(p, c0, p.c)
    if p.batch * p.hidden:
        while p.first < p.steps:
            p.count = min(longest, p.steps - p.first)
            p.products = workers(p.count * p.batch // PRODUCT_ROWS, operations(p, p.count * p.batch, p.inputs))
            p.walks = workers(p.batch // WALK_ROWS, operations(p, p.count * p.batch, p.hidden))
            parallel(product_task, p, p.products, <int>p.products)
            parallel(walk_task, p, p.walks, <int>p.walks)
            p.first += p.count
    store_state(p, state(p, p.steps), hn)
    store_state(p, p.c, cn)


cdef void load_state(const Walk *p, const float *state__bh, float *to) noexcept nogil:
    cdef int64_t j
    memset(to, 0, p.batch * p.hp * sizeof(float))
    if state__bh != NULL:
        for j in range(p.batch):
            memcpy(to + j * p.hp, state__bh + j * p.hidden, p.hidden * sizeof(float))


cdef void store_state(const Walk *p, const float *padded, float *to__bh) noexcept nogil:
    cdef int64_t j
    for j in range(p.batch):
        memcpy(to__bh + j * p.hidden, padded + j * p.hp, p.hidden * sizeof(float))


cdef void product_task(void *context, int64_t task, int worker) noexcept nogil:
    """An even share of the rows of xg; row r belongs to time r / batch of the chunk."""
    cdef const Walk *p = <const Walk *>context
    cdef int64_t rows = p.count * p.batch, begin = rows * task // p.products, end = rows * (task + 1) // p.products, r
    cdef const float *x = p.x + first_time(p) * p.x_time
    if gathers(p):
        for r in range(begin, end):
            memcpy(p.gathered + r * p.inputs, x + r // p.batch * p.x_time + r % p.batch * p.x_row, p.inputs * sizeof(float))
        x = p.gathered
    cdef fl_epilogue epilogue = fl_epilogue(bias=p.bias, bias_by_row=0, residual=NULL, ldr=0, code=FL_IDENTITY, a=0, b=0)
    product(p.level, x + begin * p.inputs, p.inputs, end - begin, p.inputs, p.w, p.columns, 0, p.columns,
            p.xg + begin * p.columns, p.columns, &epilogue)


cdef void walk_task(void *context, int64_t task, int worker) noexcept nogil:
    """An even share of the sequences through the chunk."""
    cdef const Walk *p = <const Walk *>context
    cdef int64_t begin = p.batch * task // p.walks, end = p.batch * (task + 1) // p.walks, step, j
    cdef const float *xg
    cdef const float *h
    cdef float *out
    for step in range(p.first, p.first + p.count):
        xg = p.xg + (time_of(p, step) - first_time(p)) * p.batch * p.columns
        if p.batch == 1:
            single_step(p, step, xg)
        else:
            batch_step(p, step, begin, end - begin, xg + begin * p.columns)
        h = state(p, step + 1)
        out = p.out + time_of(p, step) * p.out_time
        for j in range(begin, end):
            memcpy(out + j * p.out_row, h + j * p.hp, p.hidden * sizeof(float))


# Odd steps walk R backwards: they begin with what the step before has left in the cache.

cdef void single_step(const Walk *p, int64_t number, const float *xg) noexcept nogil:
    cdef fl_lstm_step step
    step.r, step.xg, step.hidden, step.hp, step.backwards = p.r, xg, p.hidden, p.hp, number & 1
    step.h, step.h_next, step.c = state(p, number), state(p, number + 1), p.c
    p.level.lstm_step(&step)


cdef void batch_step(const Walk *p, int64_t number, int64_t begin, int64_t rows, const float *xg) noexcept nogil:
    cdef float *sums = p.sums + begin * p.columns
    cdef float *h = p.h + begin * p.hp
    cdef fl_epilogue epilogue = fl_epilogue(bias=NULL, bias_by_row=0, residual=NULL, ldr=p.columns, code=FL_IDENTITY, a=0, b=0)
    cdef int64_t groups = (p.columns + GROUP - 1) // GROUP, i, column
    for i in range(groups):
        column = (groups - 1 - i if number & 1 else i) * GROUP
        epilogue.residual = xg + column
        product(p.level, h, p.hp, rows, p.hidden, p.r, p.columns, column, min(<int64_t>GROUP, p.columns - column),
                sums + column, p.columns, &epilogue)
    p.level.lstm_gates(sums, p.c + begin * p.hp, h, rows, p.hp)
