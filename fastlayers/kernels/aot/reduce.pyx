"""Sums, extremes, products and norms over the middle of three axes. Tasks are slices, or strips of columns, cut by shape alone."""

from libc.stdint cimport int32_t, int64_t
cimport numpy as cnp

from ._engine cimport fl_kernels, level, parallel, workers

cdef extern from "csrc/running.h":
    void fl_running_f32(const float *x, float *out, int64_t n, int64_t inner, int exclusive, int reverse) noexcept nogil
    void fl_running_i32(const int32_t *x, int32_t *out, int64_t n, int64_t inner, int exclusive, int reverse) noexcept nogil
    void fl_running_i64(const int64_t *x, int64_t *out, int64_t n, int64_t inner, int exclusive, int reverse) noexcept nogil

cnp.import_array()

cdef enum:
    TASK = 16384  # values of a task, or one row where that is more
    GROUP = 16    # rows that are best taken together
    NARROW = 65   # slices of fewer columns are not cut: see csrc/reduce.h
    STRIP = 128   # columns of a strip at least: what the kernel takes at a time

cdef struct Reduction:
    const fl_kernels *level
    const float *x
    float *out
    int64_t outer, n, inner
    int code         # of table.REDUCE
    int64_t size     # slices of [n][inner] a task, or columns of one slice
    int64_t strips   # tasks a slice
    int64_t tasks
    double work


# Operations a number (see `workers`) by code: the memory alone costs 5.
cdef double COST[10]
COST[:] = [5, 5, 6, 6, 5, 5, 5, 5, 5, 25]


cdef void rows_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Reduction *job = <const Reduction *>context
    cdef int64_t first = number * job.size
    job.level.reduce_rows(job.code, job.x + first * job.n, job.n, job.out + first, min(job.size, job.outer - first), job.n)


cdef void columns_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Reduction *job = <const Reduction *>context
    cdef int64_t slice, first
    if job.strips > 1:
        slice, first = number // job.strips, number % job.strips * job.size
        job.level.reduce_columns(job.code, job.x + slice * job.n * job.inner + first, job.n, job.inner,
                                 job.out + slice * job.inner + first, min(job.size, job.inner - first))
        return
    for slice in range(number * job.size, min(job.outer, (number + 1) * job.size)):
        job.level.reduce_columns(job.code, job.x + slice * job.n * job.inner, job.n, job.inner, job.out + slice * job.inner, job.inner)


cdef void plan_reduce(Reduction *job, const cnp.npy_intp *x, int op) noexcept:
    cdef int64_t outer = x[0], n = x[1], inner = x[2], length = max(n, <int64_t>1)
    job.level = level()
    job.outer, job.n, job.inner, job.code = outer, n, inner, op
    job.strips, job.tasks = 1, 0
    job.work = COST[op] * outer * length * inner
    if inner == 1:
        job.size = max(TASK // length // GROUP * GROUP, min(TASK // length, <int64_t>GROUP), <int64_t>1)
    elif inner >= NARROW and inner * length > TASK:
        job.size = max((TASK // length + STRIP - 1) // STRIP * STRIP, <int64_t>STRIP)
        job.strips = (inner + job.size - 1) // job.size
        job.tasks = outer * job.strips
    if job.strips == 1:
        if inner > 1:
            job.size = max(TASK // (length * inner), <int64_t>1)
        job.tasks = (outer + job.size - 1) // job.size if inner > 0 else 0


cdef int run_reduce(const void *plan, void *const *operands) noexcept nogil:
    cdef Reduction job = (<const Reduction *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    parallel(rows_task if job.inner == 1 else columns_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


# ---- running sums: one slice after the other, on one thread ----

ctypedef struct Running:
    int64_t outer, n, inner
    int source, exclusive, reverse
    double work


cdef void plan_running_sum(Running *job, const cnp.npy_intp *x, int source, bint exclusive, bint reverse) noexcept:
    cdef int64_t outer = x[0], n = x[1], inner = x[2]
    job.outer, job.n, job.inner = outer, n, inner
    job.source, job.exclusive, job.reverse = source, exclusive, reverse
    job.work = 10.0 * outer * n * inner


cdef int run_running(const void *plan, void *const *operands) noexcept nogil:
    cdef const Running *job = <const Running *>plan
    cdef int64_t o, at
    for o in range(job.outer):
        at = o * job.n * job.inner
        if job.source == 8:
            fl_running_i64(<const int64_t *>operands[0] + at, <int64_t *>operands[1] + at, job.n, job.inner, job.exclusive, job.reverse)
        elif job.source == 7:
            fl_running_i32(<const int32_t *>operands[0] + at, <int32_t *>operands[1] + at, job.n, job.inner, job.exclusive, job.reverse)
        else:
            fl_running_f32(<const float *>operands[0] + at, <float *>operands[1] + at, job.n, job.inner, job.exclusive, job.reverse)
    return 0


include "made/reduce.pxi"
