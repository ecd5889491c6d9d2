"""Many elementwise operations as one step: block by block, each operation by the level's own function, so that values between two
of them stay in the first-level cache. `program.merged` describes them; a block's cut changes no bit of any function.
"""

from libc.stdint cimport int64_t
from libc.stddef cimport size_t
cimport numpy as cnp

from ._engine cimport FL_CLIP, FL_IDENTITY, FL_RELU, RELEASE_GIL, alloc, fl_broadcast, fl_kernels, level, parallel, release, workers
from ._space cimport run_length, runs_of
from ._step cimport make_step, volume

cdef extern from "math.h":
    float INFINITY

cdef extern from *:
    void __builtin_prefetch(const void *address, int writes) noexcept nogil

cnp.import_array()

cdef enum:
    BLOCK = 2048      # elements that all operations are done for, one after the other
    FAR_BLOCK = 512   # the same where memory has to be waited for: what is asked for ahead of time must not be too much
    RUN = 16384       # elements of a task
    SHORT = 16        # rows of inputs that broadcast must not be shorter
    INPUTS = 14
    OPERATIONS = 32
    SLOTS = 12        # results that are waited for at once
    AXES = 8
    LINE = 64
    FAR = 1 << 22     # bytes of the result and of inputs as large, from which on they are asked for ahead of time

# Kinds of operations, as `program.merged` numbers them.
cdef enum:
    UNARY
    BINARY
    WHERE
    CAST

ctypedef struct Operation:
    int kind, code, count
    int to              # a slot; -1: the result
    int of[3]           # slots, or -1 - an input's number
    int source, target  # of a cast
    int after           # the activation that follows an arithmetic one
    float a, b, lo, hi

ctypedef struct Input:
    bint dense          # it has the shape of the result
    int itemsize
    int64_t row, col    # from one row or column to the next, in items
    int64_t step[AXES]  # along an outer axis; 0 where it repeats itself

ctypedef struct Plan:
    const fl_kernels *table
    int operations, inputs, outer, slots
    bint far
    int64_t size, rows, cols, block
    int64_t extent[AXES]
    Input input[INPUTS]
    Operation operation[OPERATIONS]
    double work

ctypedef struct Job:
    const Plan *plan
    const char *const *operands
    char *out
    char *scratch
    int64_t each  # elements of one task

# What an operation reads: items with strides `row` and `col`.
ctypedef struct Source:
    const char *at
    int64_t row
    int col


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


# ---- running it ----

cdef void operate(const Plan *p, const Operation *o, const Source *of, char *to, int64_t rows, int64_t cols) noexcept nogil:
    """One operation on elements of so many rows and columns."""
    cdef fl_broadcast x
    cdef int first = 0
    if o.kind == UNARY:
        p.table.unary(o.code, o.a, o.b, <const float *>of[0].at, <float *>to, rows * cols)
    elif o.kind == CAST:
        p.table.cast(of[0].at, o.source, to, o.target, rows * cols)
    else:
        x.out, x.rows, x.cols = to, rows, cols
        if o.kind == WHERE:
            x.condition, x.condition_row, x.condition_col = <const unsigned char *>of[0].at, of[0].row, of[0].col
            first = 1
        x.a, x.a_row, x.a_col = <const float *>of[first].at, of[first].row, of[first].col
        x.b, x.b_row, x.b_col = <const float *>of[first + 1].at, of[first + 1].row, of[first + 1].col
        if o.kind == BINARY:
            p.table.binary(o.code, o.lo, o.hi, &x)
            if o.after != FL_IDENTITY:
                p.table.unary(o.after, o.a, o.b, <float *>to, <float *>to, rows * cols)
        else:
            p.table.where(&x)


cdef int64_t sources(const Plan *p, const char *const *operands, int64_t start, int64_t end, Source *of, int64_t *cols) noexcept nogil:
    """Finds the inputs' values for the block that begins at element `start`: whole rows, or a part of one. Returns the rows."""
    cdef int64_t row = start // p.cols, column = start % p.cols, rows = 1, at, ahead, offset
    cdef int k, axis
    cdef const Input *x
    at, row = row // p.rows, row % p.rows
    cols[0] = least(p.block, end - start)
    if p.rows > 1 or p.outer:
        if column or cols[0] < p.cols:
            cols[0] = least(cols[0], p.cols - column)
        else:
            rows, cols[0] = least(cols[0] // p.cols, p.rows - row), p.cols
    for k in range(p.inputs):
        x = &p.input[k]
        if x.dense:
            of[k].at, of[k].row, of[k].col = operands[k] + start * x.itemsize, cols[0], 1
            if p.far:
                for ahead in range(rows * cols[0] * x.itemsize // LINE):
                    __builtin_prefetch(of[k].at + rows * cols[0] * x.itemsize + ahead * LINE, 0)
            continue
        offset = row * x.row + column * x.col
        if p.outer:
            ahead = at
            for axis in range(p.outer - 1, -1, -1):
                offset += ahead % p.extent[axis] * x.step[axis]
                ahead = ahead // p.extent[axis]
        of[k].at, of[k].row, of[k].col = operands[k] + offset * x.itemsize, x.row, <int>x.col
    return rows


cdef void run_range(const Job *job, int64_t start, int64_t end, char *scratch) noexcept nogil:
    cdef const Plan *p = job.plan
    cdef Source given[INPUTS]
    cdef Source of[3]
    cdef const Operation *o
    cdef int64_t rows, cols, n, ahead
    cdef int k, i
    cdef bint flat
    cdef char *to
    while start < end:
        rows = sources(p, job.operands, start, end, given, &cols)
        n = rows * cols
        if p.far:
            for ahead in range(n * <int64_t>sizeof(float) // LINE):
                __builtin_prefetch(job.out + start * <int64_t>sizeof(float) + ahead * LINE, 1)
        for i in range(p.operations):
            o = &p.operation[i]
            flat = True
            for k in range(o.count):
                if o.of[k] < 0:
                    of[k] = given[-1 - o.of[k]]
                    flat = flat and (of[k].row == cols * of[k].col)
                else:
                    of[k].at, of[k].row, of[k].col = scratch + o.of[k] * BLOCK * <int64_t>sizeof(float), cols, 1
            to = job.out + start * <int64_t>sizeof(float) if o.to < 0 else scratch + o.to * BLOCK * <int64_t>sizeof(float)
            operate(p, o, of, to, 1 if flat else rows, n if flat else cols)
        start += n


cdef inline size_t room(const Plan *p) noexcept nogil:
    return <size_t>(max(p.slots, 1) * BLOCK * <int64_t>sizeof(float))


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    run_range(job, number * job.each, least((number + 1) * job.each, job.plan.size), job.scratch + worker * room(job.plan))


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    """Operands: the inputs, then the result."""
    cdef Job job
    cdef int threads
    job.plan = <const Plan *>plan
    job.operands, job.out = <const char *const *>operands, <char *>operands[job.plan.inputs]
    threads = workers(runs_of(job.plan.size), job.plan.work)
    job.each = run_length(job.plan.size, RUN, threads)
    job.scratch = <char *>alloc(threads * room(job.plan))
    if job.scratch == NULL:
        return -1
    if threads == 1 and job.plan.work < RELEASE_GIL:
        run_range(&job, 0, job.plan.size, job.scratch)
    else:
        parallel(task, &job, (job.plan.size + job.each - 1) // job.each, threads)
    release(job.scratch)
    return 0


# ---- the plan ----

cdef bint plan_axes(Plan *p, tuple shapes, tuple shape) except -1:
    """Merges the axes of the result that all inputs walk alike; False if too many are left, or too short rows."""
    cdef int64_t n, size
    cdef int64_t step[INPUTS]
    cdef int64_t stride[INPUTS]
    cdef int64_t extent[AXES + 2]
    cdef int64_t steps[INPUTS][AXES + 2]
    cdef int axis, k, at, have = 0, rank = len(shape)
    cdef bint merge
    for k in range(p.inputs):
        stride[k] = 1
    for axis in range(1, rank + 1):  # from the last one on: extent[0] will be the columns
        n = shape[rank - axis]
        merge = have > 0
        for k in range(p.inputs):
            at = len(<tuple>shapes[k]) - axis
            size = (<tuple>shapes[k])[at] if at >= 0 else 1
            if size != 1 and size != n:
                return False
            step[k] = stride[k] if size != 1 else 0
            stride[k] *= size
            merge = merge and step[k] == steps[k][have - 1] * extent[have - 1]
        if n == 1:
            continue
        if merge:
            extent[have - 1] *= n
            continue
        if have == AXES + 2:
            return False
        extent[have] = n
        for k in range(p.inputs):
            steps[k][have] = step[k]
        have += 1
    p.cols = extent[0] if have > 0 else 1
    p.rows = extent[1] if have > 1 else 1
    p.outer = max(have - 2, 0)
    for axis in range(p.outer):
        p.extent[axis] = extent[have - 1 - axis]
    for k in range(p.inputs):
        p.input[k].col = steps[k][0] if have > 0 else 0
        p.input[k].row = steps[k][1] if have > 1 else 0
        for axis in range(p.outer):
            p.input[k].step[axis] = steps[k][have - 1 - axis]
        p.input[k].dense = stride[k] == p.size and stride[k] > 1
    return p.cols >= SHORT or have < 2


def elementwise_step(tuple shapes, tuple itemsizes, tuple shape, tuple operations, int slots, double work):
    """The step of `operations`, each (kind, code, to, of, parameters); None if it cannot be made.

    Args:
        shapes: of the inputs, which broadcast to `shape`.
        itemsizes: bytes of an element of each input.
        operations: `to` is a slot or -1 for the result, `of` has slots, or -1 - k for input k; parameters: (a, b) of a function,
            (code, a, b) of what follows arithmetic, (source, target) of a cast.
        slots: how many there are.
        work: see `_engine.workers`.
    """
    cdef Plan p
    cdef Operation *o
    cdef int k, i = 0
    cdef int64_t total
    if len(shapes) > INPUTS or len(operations) > OPERATIONS or slots > SLOTS:
        return None
    p.table = level()
    p.inputs, p.operations, p.slots, p.work = len(shapes), len(operations), slots, work
    p.size = volume(shape)
    if p.size == 0 or not plan_axes(&p, shapes, shape):
        return None
    total = 0
    for k in range(p.inputs):
        p.input[k].itemsize = itemsizes[k]
        total += p.size * p.input[k].itemsize if p.input[k].dense else 0
    p.far = total + p.size * <int64_t>sizeof(float) >= FAR
    p.block = BLOCK if not p.far else p.cols if FAR_BLOCK < p.cols <= 2 * FAR_BLOCK else FAR_BLOCK
    for kind, code, to, of, parameters in operations:
        o = &p.operation[i]
        i += 1
        o.kind, o.code, o.count, o.to = kind, code, len(of), to
        o.after, o.a, o.b, o.lo, o.hi, o.source, o.target = FL_IDENTITY, 0, 0, -INFINITY, INFINITY, 0, 0
        for k in range(len(of)):
            o.of[k] = of[k]
        if kind == UNARY:
            o.a, o.b = parameters
        elif kind == BINARY:
            o.after, o.a, o.b = parameters
            if o.after == FL_RELU:  # limits, as `binary` has them
                o.lo, o.after = 0, FL_IDENTITY
            elif o.after == FL_CLIP:
                o.lo, o.hi, o.after = o.a, o.b, FL_IDENTITY
        elif kind == CAST:
            o.source, o.target = parameters
    return make_step(run, &p, sizeof(Plan), p.inputs + 1, work, None)
