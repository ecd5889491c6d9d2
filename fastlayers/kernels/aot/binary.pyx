"""Arithmetic, comparisons and choices with broadcasting: merges axes once, then walks out in pieces of two axes.

Work is cut into runs of the flat output; an element's result never depends on the cut. Where rows are too short to be walked, the
operands that repeat themselves are written out first, a chunk at a time, once for all chunks if they begin again within one.
"""

from cpython.tuple cimport PyTuple_GET_ITEM
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
cimport numpy as cnp

from ._dtypes cimport fl_bytes_of
from ._engine cimport (
    FL_A_DIVIDE, FL_A_EQUAL, FL_A_FMOD, FL_A_MOD, FL_A_POWER, FL_CLIP, FL_DIVIDE, FL_I_EQUAL, FL_IDENTITY, FL_POWER, FL_RELU, RELEASE_GIL,
    fl_broadcast, fl_kernels, fl_move, level, parallel, workers,
)
from ._space cimport run_length, runs_of

from ...errors import UnsupportedError

cdef extern from "csrc/integer.h":
    ctypedef struct fl_integers:
        const void *a
        const void *b
        void *out
        int64_t rows, cols, a_row, b_row
        int a_col, b_col
    void fl_integer(int op, int size, const fl_integers *p) noexcept nogil

cdef extern from "csrc/arithmetic.h":
    void fl_arithmetic(int op, int kind, const void *a, const void *b, void *out, int64_t n) noexcept nogil
    void fl_choose(int size, const unsigned char *condition, const void *a, const void *b, void *out, int64_t n) noexcept nogil

cnp.import_array()

cdef enum:
    AXES = 8       # that are left once neighbours are merged
    RUN = 16384    # items of a task: three arrays of 64 KB stay in the second-level cache
    CHUNK = 1024   # items that repeated operands are written out for
    SHORT = 16     # rows below this many items are too short
    PASS = 4096    # items that an activation follows up on while they are in the first-level cache

ctypedef struct Job:
    const fl_kernels *table
    int kind                 # one of KIND_..., below
    int op
    int source               # of KIND_ARITHMETIC: the dtype
    float lo, hi             # limits of the result, if it is arithmetic
    int code                 # the activation that follows, or FL_IDENTITY
    float a, b
    int count                # operands
    int64_t size, each, rows, cols  # `each`: of one task
    int outer                # axes outside of rows and columns
    int64_t extent[AXES]
    int64_t step[3][AXES]    # of an operand along an outer axis, in items; 0 where it repeats itself
    int64_t row[3]
    int64_t col[3]
    int64_t period[3]        # items of out after which an operand begins again
    bint dense[3]            # it has the shape of out
    int itemsize[3]
    bint short_rows
    const char *operand[3]   # condition, if there is one, a, b
    char *out
    int out_itemsize
    double work

cdef enum:
    KIND_BINARY
    KIND_COMPARE
    KIND_WHERE
    KIND_INTEGER
    KIND_ARITHMETIC
    KIND_CHOOSE


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


# ---- the plan ----

cdef int plan_axes(Job *job, tuple shapes, tuple shape) except -1:
    """Merges the axes of `shape` that all operands walk alike; the last two that are left become rows and columns."""
    cdef int64_t n, size
    cdef int64_t step[3]
    cdef int64_t extent[AXES + 2]
    cdef int64_t steps[3][AXES + 2]
    cdef int64_t stride[3]
    cdef int axis, k, have = 0, rank = len(shape), place
    cdef bint merge
    job.table = level()
    job.count = len(shapes)
    job.size = 1
    for k in range(job.count):
        stride[k] = 1
    for axis in range(1, rank + 1):  # from the last one on: extent[0] will be the columns
        n = shape[rank - axis]
        job.size *= n
        merge = have > 0
        for k in range(job.count):
            place = len(<tuple>shapes[k]) - axis
            size = (<tuple>shapes[k])[place] if place >= 0 else 1
            step[k] = stride[k] if size != 1 else 0
            stride[k] *= size
            merge = merge and step[k] == steps[k][have - 1] * extent[have - 1]
        if n == 1:
            continue
        if merge:
            extent[have - 1] *= n
            continue
        if have == AXES + 2:
            raise UnsupportedError(f"more than {AXES + 2} axes that cannot be merged: shape {shape}")
        extent[have] = n
        for k in range(job.count):
            steps[k][have] = step[k]
        have += 1
    job.cols = extent[0] if have > 0 else 1
    job.rows = extent[1] if have > 1 else 1
    job.outer = max(have - 2, 0)
    for axis in range(job.outer):
        job.extent[axis] = extent[have - 1 - axis]
    for k in range(job.count):
        job.col[k] = steps[k][0] if have > 0 else 0
        job.row[k] = steps[k][1] if have > 1 else 0
        job.period[k] = n = 1
        job.dense[k] = True
        for axis in range(have):
            n *= extent[axis]
            if steps[k][axis]:
                job.period[k] = n
            else:
                job.dense[k] = False
        for axis in range(job.outer):
            job.step[k][axis] = steps[k][have - 1 - axis]
    job.short_rows = job.cols < SHORT and have > 1
    return 0


cdef int plan_binary(Job *job, tuple a, tuple b, tuple out, int op, activation) except -1:
    cdef int code = <object>PyTuple_GET_ITEM(activation, 0)
    job.kind, job.op = KIND_BINARY, op
    job.code, job.lo, job.hi = FL_IDENTITY, -INFINITY, INFINITY
    job.a, job.b = <object>PyTuple_GET_ITEM(activation, 1), <object>PyTuple_GET_ITEM(activation, 2)
    if code == FL_RELU:
        job.lo = 0
    elif code == FL_CLIP:
        job.lo, job.hi = job.a, job.b
    else:
        job.code = code
    job.itemsize[0] = job.itemsize[1] = job.out_itemsize = sizeof(float)
    plan_axes(job, (a, b), out)
    job.work = <double>job.size * ((500 if op == FL_POWER else 20 if op == FL_DIVIDE else 13) + (0 if job.code == FL_IDENTITY else 50))
    return 0


cdef int plan_compare(Job *job, tuple a, tuple b, tuple out, int op) except -1:
    job.kind, job.op, job.code = KIND_COMPARE, op, FL_IDENTITY
    job.itemsize[0] = job.itemsize[1] = sizeof(float)
    job.out_itemsize = 1
    plan_axes(job, (a, b), out)
    job.work = 12.0 * job.size
    return 0


cdef int plan_where(Job *job, tuple condition, tuple a, tuple b, tuple out) except -1:
    job.kind, job.code = KIND_WHERE, FL_IDENTITY
    job.itemsize[0] = 1
    job.itemsize[1] = job.itemsize[2] = job.out_itemsize = sizeof(float)
    plan_axes(job, (condition, a, b), out)
    job.work = 15.0 * job.size
    return 0


cdef int plan_integer(Job *job, tuple a, tuple b, tuple out, int op, int source) except -1:
    """`source`: a number of table.KINDS, of booleans or integers of four or eight bytes."""
    job.kind, job.op, job.code = KIND_INTEGER, op, FL_IDENTITY
    job.itemsize[0] = job.itemsize[1] = 8 if source == 8 else 4 if source == 7 else 1
    job.out_itemsize = 1 if op >= FL_I_EQUAL else job.itemsize[0]
    plan_axes(job, (a, b), out)
    job.work = 15.0 * job.size
    return 0


cdef int plan_arithmetic(Job *job, tuple a, tuple b, tuple out, int op, int source) except -1:
    """`source`: a number of table.KINDS, but not float16. Operands that repeat themselves are always written out: one loop a function."""
    job.kind, job.op, job.source, job.code = KIND_ARITHMETIC, op, source, FL_IDENTITY
    job.itemsize[0] = job.itemsize[1] = fl_bytes_of(source)
    job.out_itemsize = 1 if op >= FL_A_EQUAL else fl_bytes_of(source)
    plan_axes(job, (a, b), out)
    job.short_rows = True
    job.work = <double>job.size * (2000 if op == FL_A_POWER else 500 if op in (FL_A_DIVIDE, FL_A_MOD, FL_A_FMOD) else 20)
    return 0


cdef int plan_choose(Job *job, tuple condition, tuple a, tuple b, tuple out, int itemsize) except -1:
    """`itemsize`: 1 or 2 bytes."""
    job.kind, job.code = KIND_CHOOSE, FL_IDENTITY
    job.itemsize[0] = 1
    job.itemsize[1] = job.itemsize[2] = job.out_itemsize = itemsize
    plan_axes(job, (condition, a, b), out)
    job.short_rows = True
    job.work = 15.0 * job.size
    return 0


# ---- running it ----

ctypedef struct Piece:
    int64_t rows, cols       # of out from `start` on: whole rows, or a part of one
    int64_t offset[3]        # of the operands' first items


cdef int64_t next_piece(const Job *job, int64_t start, int64_t end, Piece *piece) noexcept nogil:
    """The largest piece that begins at item `start` of out; returns its size."""
    cdef int64_t row = start // job.cols, column = start % job.cols, block, at
    cdef int k, axis
    block, row = row // job.rows, row % job.rows
    if column or end - start < job.cols:
        piece.rows, piece.cols = 1, least(job.cols - column, end - start)
    else:
        piece.rows, piece.cols = least(job.rows - row, (end - start) // job.cols), job.cols
    for k in range(job.count):
        piece.offset[k] = row * job.row[k] + column * job.col[k]
    for axis in range(job.outer - 1, -1, -1):
        block, at = block // job.extent[axis], block % job.extent[axis]
        for k in range(job.count):
            piece.offset[k] += at * job.step[k][axis]
    return piece.rows * piece.cols


cdef void apply(const Job *job, const char *const *operands, const int64_t *row, const int64_t *col, int64_t rows, int64_t cols,
                char *out) noexcept nogil:
    cdef fl_broadcast p
    cdef fl_integers q
    cdef int a = 0
    if job.kind == KIND_INTEGER:
        q.a, q.b, q.out, q.rows, q.cols = operands[0], operands[1], out, rows, cols
        q.a_row, q.b_row, q.a_col, q.b_col = row[0], row[1], <int>col[0], <int>col[1]
        fl_integer(job.op, job.itemsize[0], &q)
        return
    if job.kind == KIND_ARITHMETIC:  # dense, of one row, as is the next
        fl_arithmetic(job.op, job.source, operands[0], operands[1], out, cols)
        return
    if job.kind == KIND_CHOOSE:
        fl_choose(job.out_itemsize, <const unsigned char *>operands[0], operands[1], operands[2], out, cols)
        return
    p.out, p.rows, p.cols = out, rows, cols
    if job.kind == KIND_WHERE:
        p.condition, p.condition_row, p.condition_col = <const unsigned char *>operands[0], row[0], <int>col[0]
        a = 1
    p.a, p.a_row, p.a_col = <const float *>operands[a], row[a], <int>col[a]
    p.b, p.b_row, p.b_col = <const float *>operands[a + 1], row[a + 1], <int>col[a + 1]
    if job.kind == KIND_BINARY:
        job.table.binary(job.op, job.lo, job.hi, &p)
    elif job.kind == KIND_COMPARE:
        job.table.compare(job.op, &p)
    else:
        job.table.where(&p)


cdef void by_rows(const Job *job, int64_t start, int64_t end) noexcept nogil:
    cdef const char *operands[3]
    cdef Piece piece
    cdef int64_t n
    cdef int k
    while start < end:
        n = next_piece(job, start, end, &piece)
        for k in range(job.count):
            operands[k] = job.operand[k] + piece.offset[k] * job.itemsize[k]
        apply(job, operands, job.row, job.col, piece.rows, piece.cols, job.out + start * job.out_itemsize)
        start += n


cdef void write_out(const Job *job, int k, int64_t start, int64_t end, char *to) noexcept nogil:
    """Writes operand k for items start .. end of out, one after the other."""
    cdef Piece piece
    cdef fl_move move
    cdef int64_t n
    move.size = job.itemsize[k]
    move.x_row, move.x_col, move.out_col = job.row[k], job.col[k], 1
    while start < end:
        n = next_piece(job, start, end, &piece)
        move.x, move.out = job.operand[k] + piece.offset[k] * job.itemsize[k], to
        move.rows, move.cols, move.out_row = piece.rows, piece.cols, piece.cols
        job.table.move(&move)
        to += n * job.itemsize[k]
        start += n


cdef void by_chunks(const Job *job, int64_t start, int64_t end) noexcept nogil:
    """All operands as if they had the shape of out."""
    cdef int64_t buffer[3][CHUNK]  # items of any size
    cdef const char *operands[3]
    cdef int64_t *rows = [0, 0, 0]
    cdef int64_t *cols = [1, 1, 1]
    cdef int64_t chunk = CHUNK, n
    cdef int k
    cdef bint first = True
    for k in range(job.count):  # periods are multiples of each other: the longest that fits decides
        if job.period[k] <= CHUNK:
            chunk = least(chunk, CHUNK // job.period[k] * job.period[k])
    while start < end:
        n = least(chunk, end - start)
        for k in range(job.count):
            if job.dense[k]:
                operands[k] = job.operand[k] + start * job.itemsize[k]
            else:
                operands[k] = <const char *>buffer[k]
                if first or job.period[k] > CHUNK:
                    write_out(job, k, start, start + n, <char *>buffer[k])
        apply(job, operands, rows, cols, 1, n, job.out + start * job.out_itemsize)
        first = False
        start += n


cdef void run_range(const Job *job, int64_t start, int64_t end) noexcept nogil:
    cdef int64_t stop
    cdef float *out = <float *>job.out
    while start < end:
        stop = end if job.code == FL_IDENTITY else least(start + PASS, end)
        if job.short_rows:
            by_chunks(job, start, stop)
        else:
            by_rows(job, start, stop)
        if job.code != FL_IDENTITY:
            job.table.unary(job.code, job.a, job.b, out + start, out + start, stop - start)
        start = stop


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    run_range(job, number * job.each, least((number + 1) * job.each, job.size))


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    """Operands: condition, if there is one, a, b, out."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int threads = workers(runs_of(job.size), job.work), k
    for k in range(job.count):
        job.operand[k] = <const char *>operands[k]
    job.out = <char *>operands[job.count]
    if threads == 1 and job.work < RELEASE_GIL:
        run_range(&job, 0, job.size)
    else:
        job.each = run_length(job.size, RUN, threads)
        parallel(task, &job, (job.size + job.each - 1) // job.each, threads)
    return 0


# ---- kernels and steps ----

include "made/binary.pxi"
