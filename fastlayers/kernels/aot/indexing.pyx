"""Rows picked, replaced and combined by number along any axes, and classes as vectors: GatherElements, GatherND, ScatterElements,
ScatterND, OneHot, ReverseSequence; rows that are chosen by conditions or between positions: Compress, NonZero,
Slice. See csrc/indexing.h.

What is picked is cut into runs of the result. What is replaced is cut into slices of the result that no two positions share, and else
done by one thread: one index may come twice, and the order of its updates is that of the positions.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy
cimport numpy as cnp

from ._engine cimport alloc, fl_kernels, level, parallel, release, workers
from ._step cimport Step, dims_of, index_error, make_step, run_plan, volume
from ._once cimport fl_once

from ...errors import ShapeError, UnsupportedError

cnp.import_array()

cdef extern from "csrc/indexing.h" nogil:
    enum:
        FL_GRID
        FL_OFFSETS
    ctypedef struct fl_grid:
        int axes, count
        int64_t shape[8]
        int64_t step[8]
        int64_t size[8]
        int64_t stride[8]
        int64_t total
    bint fl_grid_within(const fl_grid *g, const int64_t *indices)
    void fl_grid_rows(const fl_grid *g, const int64_t *indices, int64_t first, int64_t n, int64_t *to)
    void fl_pick_elements(const fl_grid *g, const char *x, const int64_t *indices, int64_t first, int64_t n, int64_t bytes, char *out)
    void fl_pick_rows(const char *x, const int64_t *rows, int64_t n, int64_t bytes, char *out)
    void fl_scatter_rows(int op, int kind, const char *updates, const int64_t *rows, int64_t n, int64_t bytes, char *out)
    void fl_one_hot(const int64_t *indices, const char *values, int64_t n, int64_t inner, int size, char *out)
    enum:
        BOOLEANS "FL_BOOL"
    int64_t fl_found(int kind, const char *x, int64_t n, int64_t *to)
    void fl_unravel(int64_t *at, int64_t count, int axes, const int64_t *shape)

cdef enum:
    TASK = 1 << 16    # bytes of one task

cdef double COST = 7  # a byte moved, in the operations that `workers` counts
cdef double PICK = 60 # and an index


ctypedef struct Job:
    const fl_kernels *table
    fl_grid grid
    const char *x
    const int64_t *indices
    const char *updates
    char *out
    int64_t bytes        # of a row
    int64_t size         # bytes of out
    int op, source
    int64_t positions    # of a task
    double work


cdef int plan_grid(fl_grid *grid, str what, shape, steps, size, stride) except -1:
    cdef int i
    if not len(shape) == len(steps) <= FL_GRID or not 1 <= len(size) == len(stride) <= FL_GRID:
        raise UnsupportedError(f"{what}: a grid of shape {shape} and indices of axes of sizes {size}: expected at most {FL_GRID} of each")
    grid.axes, grid.count, grid.total = max(<int>len(shape), 1), len(size), 1
    grid.shape[0], grid.step[0] = 1, 0
    for i in range(len(shape)):
        grid.shape[i], grid.step[i] = shape[i], steps[i]
        grid.total *= grid.shape[i]
    for i in range(grid.count):
        grid.size[i], grid.stride[i] = size[i], stride[i]
    return 0


cdef object spans(fl_grid *grid, int64_t given, int64_t rows, str what):
    """Raises unless every row that the grid can name is among `rows`, and there are as many indices as it reads."""
    cdef int64_t last = 0
    cdef int i
    for i in range(grid.axes):
        last += (grid.shape[i] - 1) * grid.step[i]
        if grid.step[i] < 0:
            raise ShapeError(f"{what}: a step of {grid.step[i]}: expected at least 0")
    for i in range(grid.count):
        last += (grid.size[i] - 1) * grid.stride[i]
        if grid.stride[i] < 0:
            raise ShapeError(f"{what}: a stride of {grid.stride[i]}: expected at least 0")
    if grid.total and min([grid.size[i] for i in range(grid.count)]) > 0 and last >= rows:
        raise ShapeError(f"{what}: indices may name row {last}: expected one below {rows}, the number of rows")
    if given != grid.total * grid.count:
        raise ShapeError(f"{what}: {given} indices: expected {grid.total * grid.count}")


# ---- picking ----

cdef int plan_pick(Job *job, int64_t given, int64_t nbytes, int64_t made, shape, x_strides, size, stride, int64_t itemsize) except -1:
    """`given`: how many indices; `nbytes`: of x; `made`: of out."""
    plan_grid(&job.grid, "pick", shape, x_strides, size, stride)
    job.table = level()
    job.bytes = itemsize
    if itemsize:
        spans(&job.grid, given, nbytes // itemsize, "pick")
        if made != job.grid.total * itemsize:
            raise ShapeError(f"pick: out has {made} bytes: expected {job.grid.total * itemsize}")
    job.positions = max(<int64_t>1, TASK // max(itemsize, <int64_t>1))
    job.work = job.grid.total * (PICK * job.grid.count + COST * itemsize)
    return 0


cdef void pick_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t rows[FL_OFFSETS]
    cdef int64_t first = number * job.positions, end = min(first + job.positions, job.grid.total), n
    if job.grid.count == 1 and job.grid.shape[job.grid.axes - 1] >= 16 and job.bytes in (1, 2, 4, 8):
        fl_pick_elements(&job.grid, job.x, job.indices + first, first, end - first, job.bytes, job.out + first * job.bytes)
        return
    while first < end:
        n = min(<int64_t>FL_OFFSETS, end - first)
        fl_grid_rows(&job.grid, job.indices, first, n, rows)
        fl_pick_rows(job.x, rows, n, job.bytes, job.out + first * job.bytes)
        first += n


cdef bint within(const Job *job) noexcept nogil:
    if job.grid.count == 1:
        return job.table.within(job.indices, job.grid.total, job.grid.size[0])
    return fl_grid_within(&job.grid, job.indices)


cdef int run_pick(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, indices, out. Returns -2 for an index out of range, before anything is written."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = (job.grid.total + job.positions - 1) // job.positions
    job.x, job.indices, job.out = <const char *>operands[0], <const int64_t *>operands[1], <char *>operands[2]
    if not within(&job):
        return -2
    if job.bytes == 0:
        return 0
    parallel(pick_task, &job, tasks, workers(tasks, job.work))
    return 0


cdef tuple of_indices(fl_grid *grid, int operand):
    return operand, grid.total, 0, tuple([grid.size[i] for i in range(grid.count)])


cdef int run_named(int (*run)(const void *, void *const *) noexcept nogil, Job *job, void **operands, int at, str what) except -1:
    try:
        run_plan(run, job, operands, job.work, what)
    except ShapeError:
        raise index_error(f"{what}: index", <const int64_t *>operands[at], of_indices(&job.grid, at)) from None
    return 0


def pick(cnp.ndarray x, cnp.ndarray indices, cnp.ndarray out, shape, x_strides, size, stride, int64_t itemsize):
    """out[p] = the row of x at Σ p_a x_strides_a + Σ indices[p, k] stride_k, for positions p of a grid of this shape.

    A row has `itemsize` bytes, strides count rows; an index below 0 counts from the end of its axis, which has `size`; ShapeError if one
    is out of range."""
    cdef Job job
    cdef void *operands[3]
    plan_pick(&job, cnp.PyArray_SIZE(indices), cnp.PyArray_NBYTES(x), cnp.PyArray_NBYTES(out), shape, x_strides, size, stride, itemsize)
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(indices), cnp.PyArray_DATA(out)
    run_named(run_pick, &job, operands, 1, "pick")


def pick_step(tuple x, tuple indices, tuple out, shape, x_strides, size, stride, int64_t itemsize):
    """The step of `pick`: shapes instead of arrays, of rows: the last axis of x and of out is one."""
    cdef Job job
    cdef Step step
    plan_pick(&job, volume(indices), <int64_t>x[0] * itemsize, <int64_t>out[0] * itemsize, shape, x_strides, size, stride, itemsize)
    step = make_step(run_pick, &job, sizeof(Job), 3, job.work, None)
    step.indices = of_indices(&job.grid, 1)
    return step


# ---- replacing ----

cdef int plan_scatter(Job *job, int64_t given, int64_t nbytes, int64_t updated, shape, out_strides, size, stride, int64_t itemsize,
                      int op, int source) except -1:
    """`given`: how many indices; `nbytes`: of x and out; `updated`: of the updates."""
    cdef int64_t slices = 1
    cdef int i
    plan_grid(&job.grid, "scatter", shape, out_strides, size, stride)
    job.table = level()
    job.bytes, job.size, job.op, job.source = itemsize, nbytes, op, source
    if itemsize:
        spans(&job.grid, given, nbytes // itemsize, "scatter")
        if updated != job.grid.total * itemsize:
            raise ShapeError(f"scatter: the updates have {updated} bytes: expected {job.grid.total * itemsize}")
    # Positions that differ along an axis with a step, before any without one, have their own rows.
    for i in range(job.grid.axes):
        if job.grid.step[i] == 0 or not beyond(&job.grid, i):
            break
        slices *= job.grid.shape[i]
    job.positions = max(job.grid.total // max(slices, <int64_t>1), <int64_t>1)
    while job.positions * itemsize < TASK and job.positions < job.grid.total:
        job.positions *= 2  # a slice is whole again, or some are
    if job.positions >= job.grid.total or slices == 1:
        job.positions = max(job.grid.total, <int64_t>1)
    job.work = COST * nbytes + job.grid.total * (PICK * job.grid.count + 2 * COST * itemsize)
    return 0


cdef bint beyond(fl_grid *grid, int axis) noexcept:
    """Whether neighbours along an axis of the grid have a larger stride than all that the axes after it and the indices reach."""
    cdef int64_t reach = 1
    cdef int i
    for i in range(axis + 1, grid.axes):
        reach += (grid.shape[i] - 1) * grid.step[i]
    for i in range(grid.count):
        reach += (grid.size[i] - 1) * grid.stride[i]
    return grid.step[axis] >= reach


cdef void copy_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t first = number * TASK
    memcpy(job.out + first, job.x + first, min(<int64_t>TASK, job.size - first))


cdef void scatter_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t rows[FL_OFFSETS]
    cdef int64_t first = number * job.positions, end = min(first + job.positions, job.grid.total), n
    while first < end:
        n = min(<int64_t>FL_OFFSETS, end - first)
        fl_grid_rows(&job.grid, job.indices, first, n, rows)
        fl_scatter_rows(job.op, job.source, job.updates + first * job.bytes, rows, n, job.bytes, job.out)
        first += n


cdef int run_scatter(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, indices, updates, out, which may be x. Returns -2 for an index out of range, before anything is written."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = (job.grid.total + job.positions - 1) // job.positions, copies = (job.size + TASK - 1) // TASK
    job.x, job.indices = <const char *>operands[0], <const int64_t *>operands[1]
    job.updates, job.out = <const char *>operands[2], <char *>operands[3]
    if not within(&job):
        return -2
    if job.x != job.out:
        parallel(copy_task, &job, copies, workers(copies, COST * job.size))
    if job.bytes:
        parallel(scatter_task, &job, tasks, workers(tasks, job.work))
    return 0


def scatter(cnp.ndarray x, cnp.ndarray indices, cnp.ndarray updates, cnp.ndarray out, shape, out_strides, size, stride, int64_t itemsize,
            int op, int source):
    """out = x, in which the row at Σ p_a out_strides_a + Σ indices[p, k] stride_k becomes updates[p], or (`op`, a number of table.SCATTER)
    itself and that together, for positions p of a grid one after the other. out may be x.

    A row has `itemsize` bytes, of the dtype that `source` (table.KINDS, but not float16 or bool) says where they are combined; else as `pick`."""
    cdef Job job
    cdef void *operands[4]
    plan_scatter(&job, cnp.PyArray_SIZE(indices), cnp.PyArray_NBYTES(out), cnp.PyArray_NBYTES(updates), shape, out_strides, size, stride,
                 itemsize, op, source)
    operands[0], operands[1] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(indices)
    operands[2], operands[3] = cnp.PyArray_DATA(updates), cnp.PyArray_DATA(out)
    run_named(run_scatter, &job, operands, 1, "scatter")


def scatter_step(tuple x, tuple indices, tuple updates, tuple out, shape, out_strides, size, stride, int64_t itemsize, int op, int source):
    """The step of `scatter`: shapes instead of arrays, of rows: the last axis of x, updates and out is one."""
    cdef Job job
    cdef Step step
    plan_scatter(&job, volume(indices), <int64_t>out[0] * itemsize, <int64_t>updates[0] * itemsize, shape, out_strides, size, stride,
                 itemsize, op, source)
    step = make_step(run_scatter, &job, sizeof(Job), 4, job.work, None)
    step.indices = of_indices(&job.grid, 1)
    return step


# ---- classes as vectors ----

ctypedef struct Hot:
    const int64_t *indices
    const char *values
    char *out
    int64_t outer, n, inner, slices
    int itemsize
    double work


cdef void hot_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Hot *job = <const Hot *>context
    cdef int64_t slice
    for slice in range(number * job.slices, min(job.outer, (number + 1) * job.slices)):
        fl_one_hot(job.indices + slice * job.inner, job.values, job.n, job.inner, job.itemsize,
                   job.out + slice * job.n * job.inner * job.itemsize)


cdef void plan_one_hot(Hot *job, const cnp.npy_intp *out, int itemsize) noexcept:
    cdef int64_t outer = out[0], n = out[1], inner = out[2]
    job.outer, job.n, job.inner, job.itemsize = outer, n, inner, itemsize
    job.slices = max(TASK // max(n * inner * itemsize, <int64_t>1), <int64_t>1)
    job.work = <double>outer * inner * (20 + COST * n * itemsize)


cdef int run_hot(const void *plan, void *const *operands) noexcept nogil:
    cdef Hot job = (<const Hot *>plan)[0]
    cdef int64_t tasks = (job.outer + job.slices - 1) // job.slices
    job.indices, job.values, job.out = <const int64_t *>operands[0], <const char *>operands[1], <char *>operands[2]
    parallel(hot_task, &job, tasks, workers(tasks, job.work))
    return 0


# ---- sequences reversed ----

ctypedef struct Reversal:
    const char *x
    const int64_t *lengths
    char *out
    int64_t batch, time, x_batch, x_time, bytes   # steps count rows of so many bytes
    double work


cdef void reverse_task(void *context, int64_t number, int worker) noexcept nogil:
    """A step in time of all sequences."""
    cdef const Reversal *job = <const Reversal *>context
    cdef int64_t i, length, from_
    for i in range(job.batch):
        length = fl_once(job.lengths + i)
        from_ = length - 1 - number if 0 <= length <= job.time and number < length else number
        memcpy(job.out + (i * job.x_batch + number * job.x_time) * job.bytes, job.x + (i * job.x_batch + from_ * job.x_time) * job.bytes, job.bytes)


cdef void plan_reverse(Reversal *job, int64_t a, int64_t b, bint batch_first, int64_t bytes) noexcept:
    job.batch, job.time, job.bytes = a if batch_first else b, b if batch_first else a, bytes
    job.x_batch, job.x_time = b if batch_first else 1, 1 if batch_first else b
    job.work = a * b * (20 + COST * bytes)


cdef int run_reverse(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, lengths, out. Returns -2 for a length out of range, before anything is written."""
    cdef Reversal job = (<const Reversal *>plan)[0]
    cdef int64_t i
    job.x, job.lengths, job.out = <const char *>operands[0], <const int64_t *>operands[1], <char *>operands[2]
    for i in range(job.batch):
        if not 0 <= job.lengths[i] <= job.time:
            return -2
    parallel(reverse_task, &job, job.time, workers(job.time, job.work))
    return 0


def reverse_sequence(cnp.ndarray x, cnp.ndarray lengths, cnp.ndarray out, bint batch_first, int64_t itemsize):
    """x (batch, time, ...), or (time, batch, ...), of which the first lengths[b] steps of each sequence are reversed; itemsize:
    bytes of a step. ShapeError if a length is not from 0 to the number of steps."""
    cdef Reversal job
    cdef void *operands[3]
    plan_reverse(&job, cnp.PyArray_DIM(x, 0), cnp.PyArray_DIM(x, 1), batch_first, itemsize)
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(lengths), cnp.PyArray_DATA(out)
    try:
        run_plan(run_reverse, &job, operands, job.work, "reverse_sequence")
    except ShapeError:
        raise index_error("reverse_sequence: length", <const int64_t *>operands[1], (1, job.batch, 0, job.time)) from None


def reverse_sequence_step(tuple x, tuple lengths, tuple out, bint batch_first, int64_t itemsize):
    """The step of `reverse_sequence`: shapes instead of arrays."""
    cdef Reversal job
    cdef Step step
    plan_reverse(&job, x[0], x[1], batch_first, itemsize)
    step = make_step(run_reverse, &job, sizeof(Reversal), 3, job.work, None)
    step.indices = (1, job.batch, 0, job.time)
    return step


# ---- chosen by conditions: on one thread, since where a row goes depends on all before it ----

ctypedef struct Found:
    int64_t outer, n, given, bytes   # rows of so many bytes; how many conditions there are
    cnp.npy_intp shape[FL_GRID]
    int axes, kind
    double work


cdef int plan_non_zero(Found *job, tuple x, int64_t out, int source) except -1:
    if not 0 < len(x) <= FL_GRID or out < len(x) * volume(x):
        raise UnsupportedError(f"non_zero: x has shape {x}, out {out} elements: expected 1 to {FL_GRID} axes, and a place for each of all positions")
    dims_of(x, job.shape)
    job.axes, job.kind, job.n = len(x), source, volume(x)
    job.work = 100.0 * job.n * job.axes
    return 0


cdef int run_non_zero(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, count."""
    cdef const Found *job = <const Found *>plan
    cdef int64_t *out = <int64_t *>operands[1]
    cdef int64_t count = fl_found(job.kind, <const char *>operands[0], job.n, out)
    fl_unravel(out, count, job.axes, <const int64_t *>job.shape)
    (<int64_t *>operands[2])[0] = count
    return 0


cdef int plan_compress(Found *job, const cnp.npy_intp *x, int64_t condition, int64_t out, int64_t itemsize) except -1:
    job.outer, job.n, job.bytes = x[0], x[1], x[2] * itemsize
    job.given = min(condition, job.n)
    if out < job.outer * job.given * x[2]:
        raise ShapeError(f"compress: out has {out} elements: expected {job.outer * job.given * x[2]}")
    job.work = 100.0 * job.given + COST * job.outer * job.given * job.bytes
    return 0


cdef int run_compress(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, condition, out, count."""
    cdef const Found *job = <const Found *>plan
    cdef int64_t *rows = <int64_t *>alloc(job.given * 8 + 8)
    cdef int64_t count, slice
    if rows == NULL:
        return -1
    count = fl_found(BOOLEANS, <const char *>operands[1], job.given, rows)
    for slice in range(job.outer if job.bytes else 0):
        fl_pick_rows(<const char *>operands[0] + slice * job.n * job.bytes, rows, count, job.bytes, <char *>operands[2] + slice * count * job.bytes)
    release(rows)
    (<int64_t *>operands[3])[0] = count
    return 0


cdef int plan_cut(Found *job, const cnp.npy_intp *x, int64_t out, int64_t itemsize) except -1:
    job.outer, job.n, job.bytes = x[0], x[1], x[2] * itemsize
    if out < job.outer * job.n * x[2]:
        raise ShapeError(f"cut: out has {out} elements: expected {job.outer * job.n * x[2]}")
    job.work = 50.0 + job.outer * (20 + job.bytes)  # how much is cut out is unknown
    return 0


cdef int run_cut(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, starts, ends, out, count."""
    cdef const Found *job = <const Found *>plan
    cdef int64_t start = fl_once(<const int64_t *>operands[1]), end = fl_once(<const int64_t *>operands[2]), count, slice
    start, end = start + (job.n if start < 0 else 0), end + (job.n if end < 0 else 0)
    start, end = min(max(start, <int64_t>0), job.n), min(max(end, <int64_t>0), job.n)
    count = max(end - start, <int64_t>0)
    for slice in range(job.outer):
        memcpy(<char *>operands[3] + slice * count * job.bytes, <const char *>operands[0] + (slice * job.n + start) * job.bytes, count * job.bytes)
    (<int64_t *>operands[4])[0] = count
    return 0


include "made/indexing.pxi"
