"""Copies between any strides, rows picked by number (what reordering, slicing, joining, repeating and looking up come to), and casts."""

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memcpy
cimport numpy as cnp

from ._engine cimport RELEASE_GIL, fl_kernels, fl_move, level, parallel, workers
from ._once cimport fl_once, fl_row
from ._space cimport run_length, runs_of
from ._step cimport Step, make_step, out_of_range, run_plan

from ...errors import ShapeError, UnsupportedError
from ..table import KINDS

cnp.import_array()

cdef enum:
    MOST = 64         # axes of an array
    TASK = 1 << 17    # bytes of one task: what it reads and writes fits a second-level cache
    UNIT = 32         # pieces of a block begin at multiples of this many rows or columns

cdef double COST = 7  # a byte moved, in the operations that `workers` counts


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


# ---- strided copies ----

cdef inline void swap(int64_t *values, int i, int j) noexcept nogil:
    values[i], values[j] = values[j], values[i]


cdef int ordered(Copy *plan, int rank, int64_t *n, int64_t *x, int64_t *out) noexcept nogil:
    """Axes by falling steps of out, without those of size 1, all steps of out positive, neighbours merged. Returns how many are left."""
    cdef int i, j, count = 0
    for i in range(rank):
        if n[i] != 1:
            n[count], x[count], out[count] = n[i], x[i], out[i]
            if out[count] < 0:  # from the other end
                plan.x_start += (n[count] - 1) * x[count]
                plan.out_start += (n[count] - 1) * out[count]
                x[count], out[count] = -x[count], -out[count]
            count += 1
    for i in range(1, count):
        j = i
        while j > 0 and out[j - 1] < out[j]:
            swap(n, j, j - 1)
            swap(x, j, j - 1)
            swap(out, j, j - 1)
            j -= 1
    rank, count = count, 0
    for i in range(rank):
        j = count - 1
        if count and x[j] == x[i] * n[i] and out[j] == out[i] * n[i]:
            n[j], x[j], out[j] = n[j] * n[i], x[i], out[i]
        else:
            n[count], x[count], out[count] = n[i], x[i], out[i]
            count += 1
    return count


cdef int plan_copy(Copy *plan, int rank, const int64_t *shape, const int64_t *x_steps, const int64_t *out_steps, int item) noexcept:
    cdef int64_t n[MOST]
    cdef int64_t x[MOST]
    cdef int64_t out[MOST]
    cdef int64_t items = 1, block
    cdef int i, row
    for i in range(rank):
        n[i], x[i], out[i] = shape[i], x_steps[i], out_steps[i]
        items *= n[i]
    plan.table, plan.item = level(), item
    plan.outer, plan.blocks = 0, 0
    plan.work = COST * items * item
    if items == 0:
        return 0
    rank = ordered(plan, rank, n, x, out)
    if rank > AXES:
        return -1
    plan.rows = plan.cols = 1
    plan.x_row = plan.x_col = plan.out_row = plan.out_col = 1
    if rank:
        rank -= 1  # columns: what is closest in out
        plan.cols, plan.x_col, plan.out_col = n[rank], x[rank], out[rank]
    if rank:
        row = rank - 1  # rows: what is closest in x, unless those are the columns
        if plan.x_col != 1 and plan.out_col == 1:
            for i in range(rank):
                if x[i] == 1:
                    row = i
        plan.rows, plan.x_row, plan.out_row = n[row], x[row], out[row]
        for i in range(rank):
            if i != row:
                plan.size[plan.outer], plan.x_step[plan.outer], plan.out_step[plan.outer] = n[i], x[i], out[i]
                plan.outer += 1
    block = plan.rows * plan.cols
    plan.blocks = items // block
    plan.pieces = (block * item + TASK - 1) // TASK
    plan.group = max(<int64_t>1, TASK // (block * item))
    return 0


cdef void move_blocks(const Copy *plan, const char *x, char *out, int64_t first, int64_t count, fl_move *move) noexcept nogil:
    """Blocks first .. first + count - 1: the first one's position takes divisions, those of the others follow by counting."""
    cdef int64_t at[AXES]
    cdef int64_t rest = first
    cdef int i
    x += plan.x_start * plan.item
    out += plan.out_start * plan.item
    for i in range(plan.outer - 1, -1, -1):
        at[i] = rest % plan.size[i]
        rest //= plan.size[i]
        x += at[i] * plan.x_step[i] * plan.item
        out += at[i] * plan.out_step[i] * plan.item
    while True:
        move.x, move.out = x, out
        plan.table.move(move)
        count -= 1
        if count == 0:
            return
        i = plan.outer - 1
        while at[i] == plan.size[i] - 1:
            x -= at[i] * plan.x_step[i] * plan.item
            out -= at[i] * plan.out_step[i] * plan.item
            at[i] = 0
            i -= 1
        at[i] += 1
        x += plan.x_step[i] * plan.item
        out += plan.out_step[i] * plan.item


ctypedef struct CopyJob:
    const Copy *plan
    const char *x
    char *out


cdef void copy_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const CopyJob *job = <const CopyJob *>context
    cdef const Copy *plan = job.plan
    cdef int64_t first = number * plan.group, piece, units, start, stop
    cdef const char *x = job.x
    cdef char *out = job.out
    cdef fl_move move
    move.size = plan.item
    move.rows, move.x_row, move.out_row = plan.rows, plan.x_row, plan.out_row
    move.cols, move.x_col, move.out_col = plan.cols, plan.x_col, plan.out_col
    if plan.pieces == 1:
        move_blocks(plan, x, out, first, least(plan.group, plan.blocks - first), &move)
        return
    piece = number % plan.pieces
    units = (max(plan.rows, plan.cols) + UNIT - 1) // UNIT
    start, stop = units * piece // plan.pieces * UNIT, units * (piece + 1) // plan.pieces * UNIT
    if plan.rows >= plan.cols:
        move.rows = least(stop, plan.rows) - start
        x += start * plan.x_row * plan.item
        out += start * plan.out_row * plan.item
    else:
        move.cols = least(stop, plan.cols) - start
        x += start * plan.x_col * plan.item
        out += start * plan.out_col * plan.item
    move_blocks(plan, x, out, number // plan.pieces, 1, &move)


cdef int run_copy(const void *plan, void *const *operands) noexcept nogil:
    cdef CopyJob job
    cdef int64_t tasks
    cdef int threads
    job.plan, job.x, job.out = <const Copy *>plan, <const char *>operands[0], <char *>operands[1]
    tasks = job.plan.blocks * job.plan.pieces if job.plan.pieces > 1 else (job.plan.blocks + job.plan.group - 1) // job.plan.group
    if job.plan.blocks == 0:
        return 0
    threads = workers(tasks, job.plan.work)
    parallel(copy_task, &job, tasks, threads)
    return 0


cdef int plan_of(Copy *plan, shape, int64_t x_offset, x_strides, int64_t out_offset, out_strides, int itemsize) except -1:
    """The plan of tuples as `copy` takes them."""
    cdef int64_t n[MOST]
    cdef int64_t x[MOST]
    cdef int64_t out[MOST]
    cdef int i, rank = len(shape)
    if rank > MOST:
        raise UnsupportedError(f"copy: {rank} axes: expected at most {MOST}")
    for i in range(rank):
        n[i], x[i], out[i] = shape[i], x_strides[i], out_strides[i]
    plan.x_start, plan.out_start = x_offset, out_offset
    if plan_copy(plan, rank, n, x, out, itemsize) < 0:
        raise UnsupportedError(f"copy: more than {AXES} axes that cannot be merged: shape {shape}")
    return 0


def copy(cnp.ndarray x, cnp.ndarray out, shape, x_offset, x_strides, out_offset, out_strides, itemsize):
    """out[out_offset + Σ i out_strides] = x[x_offset + Σ i x_strides] for all i < shape; offsets and strides count items."""
    cdef Copy plan
    cdef void *operands[2]
    plan_of(&plan, shape, x_offset, x_strides, out_offset, out_strides, itemsize)
    operands[0], operands[1] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(out)
    run_plan(run_copy, &plan, operands, plan.work, "copy")


def copy_step(tuple x, tuple out, shape, x_offset, x_strides, out_offset, out_strides, itemsize):
    """The step of `copy`: shapes instead of arrays."""
    cdef Copy plan
    plan_of(&plan, shape, x_offset, x_strides, out_offset, out_strides, itemsize)
    return make_step(run_copy, &plan, sizeof(Copy), 2, plan.work, None)


# ---- rows by number ----

ctypedef struct Gather:
    const fl_kernels *table
    const char *x
    const int64_t *indices
    char *out
    int64_t o, n, m, bytes         # bytes of a row
    int64_t least                  # the lowest index: -n, or 0 where none may count from the end
    int64_t group, pieces          # rows of one task and 1, or 1 and the tasks of one row
    double work


cdef void gather_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Gather *job = <const Gather *>context
    cdef int64_t row = number * job.group, stop = least(row + job.group, job.o * job.m), o, j, count, start
    if job.pieces > 1:
        o, j, start = number // job.pieces // job.m, number // job.pieces % job.m, number % job.pieces * TASK
        row = fl_row(fl_once(job.indices + j), job.n) + o * job.n
        memcpy(job.out + (o * job.m + j) * job.bytes + start, job.x + row * job.bytes + start, least(TASK, job.bytes - start))
        return
    while row < stop:
        o, j = row // job.m, row % job.m
        count = least(job.m - j, stop - row)
        job.table.take(job.x + o * job.n * job.bytes, job.n, job.indices + j, count, job.bytes, job.out + row * job.bytes)
        row += count


cdef void plan_gather(Gather *job, int64_t o, int64_t n, int64_t inner, int64_t m, int itemsize, int64_t least) noexcept:
    job.table = level()
    job.least = least
    job.o, job.n, job.m, job.bytes = o, n, m, inner * itemsize
    job.pieces = (job.bytes + TASK - 1) // TASK
    job.group = max(<int64_t>1, TASK // max(job.bytes, <int64_t>1))
    job.work = COST * (<double>o * m * job.bytes + m)


cdef int run_gather(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, indices, out. Returns -2 for an index out of range, before anything is written."""
    cdef Gather job = (<const Gather *>plan)[0]
    cdef int64_t i, tasks, below = 0
    cdef int threads
    job.x, job.indices, job.out = <const char *>operands[0], <const int64_t *>operands[1], <char *>operands[2]
    if not job.table.within(job.indices, job.m, job.n):
        return -2
    if job.least == 0:
        for i in range(job.m):
            below |= job.indices[i]
        if below < 0:
            return -2
    if job.o * job.m * job.bytes == 0:
        return 0
    tasks = job.o * job.m * job.pieces if job.pieces > 1 else (job.o * job.m + job.group - 1) // job.group
    threads = workers(tasks, job.work)
    parallel(gather_task, &job, tasks, threads)
    return 0


cdef int run_rows(const Gather *job, void *const *operands, str what, str noun) except -1:
    try:
        run_plan(run_gather, job, operands, job.work, what)
    except ShapeError:
        raise out_of_range(f"{what}: {noun}", <const int64_t *>operands[1], job.m, job.least, job.n - 1) from None
    return 0


cdef Step rows_step(const Gather *job):
    cdef Step step = make_step(run_gather, job, sizeof(Gather), 3, job.work, None)
    step.indices = (1, job.m, job.least, job.n - 1)
    return step


def gather(cnp.ndarray x__oni, cnp.ndarray indices__m, cnp.ndarray out__omi, int itemsize):
    """out[o, j] = x[o, indices[j]]; an index below 0 counts from the end, ShapeError if one is out of range."""
    cdef Gather job
    cdef void *operands[3]
    cdef cnp.npy_intp *shape = cnp.PyArray_DIMS(x__oni)
    plan_gather(&job, shape[0], shape[1], shape[2], cnp.PyArray_DIM(indices__m, 0), itemsize, -shape[1])
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(x__oni), cnp.PyArray_DATA(indices__m), cnp.PyArray_DATA(out__omi)
    run_rows(&job, operands, "gather", "index")


def gather_step(tuple x__oni, tuple indices__m, tuple out__omi, int itemsize):
    """The step of `gather`: shapes instead of arrays."""
    cdef Gather job
    plan_gather(&job, x__oni[0], x__oni[1], x__oni[2], indices__m[0], itemsize, -<int64_t>x__oni[1])
    return rows_step(&job)


def take_probe(cnp.ndarray x, cnp.ndarray indices):
    """For tests: rows of bytes by their values, without the look at these that a kernel takes first."""
    out = np.empty((indices.shape[0], x.shape[1]), np.uint8)
    level().take(cnp.PyArray_DATA(x), x.shape[0], <const int64_t *>cnp.PyArray_DATA(indices), indices.shape[0], x.shape[1],
                 cnp.PyArray_DATA(<cnp.ndarray>out))
    return out


def embedding(cnp.ndarray weight__vd, cnp.ndarray ids__m, cnp.ndarray out__md):
    """out[j] = weight[ids[j]]; ShapeError if an id is out of range, and one below 0 is."""
    cdef Gather job
    cdef void *operands[3]
    plan_gather(&job, 1, cnp.PyArray_DIM(weight__vd, 0), cnp.PyArray_DIM(weight__vd, 1), cnp.PyArray_DIM(ids__m, 0), 4, 0)
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(weight__vd), cnp.PyArray_DATA(ids__m), cnp.PyArray_DATA(out__md)
    run_rows(&job, operands, "embedding", "id")


def embedding_step(tuple weight__vd, tuple ids__m, tuple out__md):
    """The step of `embedding`: shapes instead of arrays."""
    cdef Gather job
    plan_gather(&job, 1, weight__vd[0], weight__vd[1], ids__m[0], 4, 0)
    return rows_step(&job)


# ---- dtypes ----

cdef enum:
    RUN = 16384  # values of a task

cdef int BYTES[16]
for _name, _code in KINDS.items():
    BYTES[_code] = np.dtype(_name).itemsize

ctypedef struct Cast:
    const fl_kernels *table
    const char *x
    char *out
    int source, target
    int64_t size, each  # `each`: of one task
    double work


cdef void cast_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Cast *job = <const Cast *>context
    cdef int64_t first = number * job.each
    job.table.cast(job.x + first * BYTES[job.source], job.source, job.out + first * BYTES[job.target], job.target,
                   least(job.each, job.size - first))


cdef void plan_cast(Cast *job, int64_t out, int source, int target) noexcept:
    job.table = level()
    job.size, job.source, job.target = out, source, target
    job.work = 12.0 * out


cdef int run_cast(const void *plan, void *const *operands) noexcept nogil:
    cdef Cast job = (<const Cast *>plan)[0]
    cdef int threads = workers(runs_of(job.size), job.work)
    job.x, job.out = <const char *>operands[0], <char *>operands[1]
    job.each = run_length(job.size, RUN, threads)
    if threads == 1 and job.work < RELEASE_GIL:
        job.table.cast(job.x, job.source, job.out, job.target, job.size)
    else:
        parallel(cast_task, &job, (job.size + job.each - 1) // job.each, threads)
    return 0


include "made/movement.pxi"
