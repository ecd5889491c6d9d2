"""Batched products of two run-time operands of bytes, over the packed product of `qconv`: b is packed for the call.

The C code multiplies uint8 by int8: rows of int8 are brought into scratch as a + 128, and uint8 b is packed as b - 128; the zero points
move along, and what they add to the sums is known before, but for the sums of each row of a, which are made where b's is not 0.
"""

from libc.stdint cimport int32_t, int64_t, int8_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

from ._engine cimport FL_PANEL, fl_qblock, fl_qrun, fl_quantized, level, with_scratch
from ._space cimport rounded
from ..table import KINDS

cnp.import_array()

cdef enum:
    COLS = 256          # columns of a task at most, and so many that
    PACKED = 1 << 18    # bytes of packed b stay in the cache
    ROWS = 240          # rows of a call of the level's `block`
    TASKS = 16          # tasks from which rows are not cut
    LEAST = 48          # rows of a task at least, since each packs its columns again

cdef int INT8 = KINDS["int8"], UINT8 = KINDS["uint8"]


cdef struct Job:
    const fl_quantized *level
    const uint8_t *a
    const uint8_t *b
    char *out
    int64_t m, n, k, quads, width
    int64_t a_step, b_step      # bytes from one entry of the batch to the next; 0 if there is one for all
    int64_t tasks, row_tasks, col_tasks
    int flip, right_signed, kind, item
    int32_t a_zero, b_zero, y_zero
    float factor
    double work
    char *scratch
    size_t at_numbers, at_sums, at_copy, scratch_size


cdef inline int64_t padded(int64_t n) noexcept nogil:
    """Whole panels."""
    return (n + FL_PANEL - 1) // FL_PANEL * FL_PANEL


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t j0 = number % job.col_tasks * job.width, row = number // job.col_tasks % job.row_tasks
    cdef int64_t entry = number // job.col_tasks // job.row_tasks, wide, i, rows, t
    cdef int64_t i0 = job.m * row // job.row_tasks, stop = job.m * (row + 1) // job.row_tasks, length = job.k
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const uint8_t **pointers = <const uint8_t **>scratch
    cdef int8_t *panels = <int8_t *>(scratch + rounded(ROWS * sizeof(void *)))
    cdef uint8_t *copy = <uint8_t *>(scratch + job.at_copy)
    cdef const uint8_t *a
    cdef int32_t *sums = <int32_t *>(scratch + job.at_numbers)
    cdef int32_t *offset
    cdef int32_t *zeros
    cdef float *factors
    cdef fl_qblock p
    cdef fl_qrun run
    p.n = min(job.width, job.n - j0)
    wide = padded(p.n)
    offset, zeros, factors = sums + wide, sums + 2 * wide, <float *>(sums + 3 * wide)
    for i in range(wide):
        offset[i], zeros[i], factors[i] = 0, job.b_zero, job.factor
    job.level.panels(job.b + entry * job.b_step + j0, job.n, job.k, p.n, job.right_signed, panels, sums)
    job.level.correct(offset, sums, zeros, job.a_zero, <int32_t>(<uint32_t>job.k * <uint32_t>job.a_zero), offset, NULL, 0, NULL, wide)
    run.offset, run.quads = 0, job.quads
    p.rows, p.runs, p.nruns, p.b, p.panel, p.ldc = pointers, &run, 1, panels, job.quads * 4 * FL_PANEL, job.n
    p.e.offset, p.e.scale, p.e.shift, p.e.kind, p.e.y_zero = offset, factors, NULL, job.kind, job.y_zero
    p.e.zero, p.e.rowsum = NULL, NULL
    while i0 < stop:
        rows = min(<int64_t>ROWS, stop - i0)
        a = job.a + entry * job.a_step + i0 * job.k
        for i in range(rows):
            pointers[i] = a + i * job.k
            if job.flip or job.k % 4:  # a quad may be read past a row's end
                pointers[i] = copy + i * job.quads * 4
                if job.flip:
                    job.level.flip(a + i * job.k, copy + i * job.quads * 4, job.k)
                else:
                    memcpy(copy + i * job.quads * 4, a + i * job.k, job.k)
                for t in range(job.k, job.quads * 4):
                    copy[i * job.quads * 4 + t] = 0
        if job.b_zero:
            p.e.zero, p.e.rowsum = zeros, <const int32_t *>(scratch + job.at_sums)
            job.level.rowsums(pointers, rows, &run, &length, 1, <int32_t *>(scratch + job.at_sums))
        p.m, p.out = rows, job.out + ((entry * job.m + i0) * job.n + j0) * job.item
        job.level.block(&p)
        i0 += rows


cdef int run_qmatmul(const void *plan, void *const *operands) noexcept nogil:
    """Operands: a, b, out."""
    cdef Job job = (<const Job *>plan)[0]
    job.a, job.b, job.out = <const uint8_t *>operands[0], <const uint8_t *>operands[1], <char *>operands[2]
    return with_scratch(task, &job, &job.scratch, job.scratch_size, job.tasks, job.work)


cdef int plan_qmatmul(Job *job, tuple a, tuple b, tuple out, options) except -1:
    cdef int64_t batch, wide
    cdef int source, right, a_zero, b_zero
    memset(job, 0, sizeof(Job))
    batch, job.m, job.n = out
    job.k = a[2]
    source, right, job.kind, a_zero, b_zero, job.y_zero, job.factor = options
    if b[0] == 1 and a[0] == batch:  # the rows of all entries are rows of one product
        job.m *= batch
        batch = 1
    job.level, job.quads = level().quantized, (job.k + 3) // 4
    job.a_step, job.b_step = job.m * job.k if a[0] != 1 else 0, job.k * job.n if b[0] != 1 else 0
    job.flip, job.right_signed, job.item = source == INT8, right == INT8, 1 if job.kind in (INT8, UINT8) else 4
    job.a_zero, job.b_zero = a_zero + (128 if source == INT8 else 0), b_zero - (0 if right == INT8 else 128)
    job.width = min(<int64_t>COLS, max(PACKED // max(job.k, <int64_t>1) // 64 * 64, <int64_t>64))
    job.col_tasks = (job.n + job.width - 1) // job.width
    job.row_tasks = 1 if batch * job.col_tasks >= TASKS else max(<int64_t>1, min(<int64_t>TASKS, job.m // LEAST))
    job.tasks = batch * job.col_tasks * job.row_tasks if job.m else 0
    job.work = 1.0 * batch * job.m * job.n * max(job.k, <int64_t>1)
    wide = padded(min(job.width, job.n))
    job.at_numbers = rounded(ROWS * sizeof(void *)) + rounded(wide * job.quads * 4)
    job.at_sums = job.at_numbers + rounded(4 * wide * sizeof(int32_t))
    job.at_copy = job.at_sums + (rounded(ROWS * sizeof(int32_t)) if job.b_zero else 0)
    job.scratch_size = job.at_copy + (rounded(ROWS * job.quads * 4) if job.flip or job.k % 4 else 0)
    return 0


include "made/qmatmul.pxi"
