"""The position of the largest or least number along the middle of three axes. Tasks are slices."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport parallel, workers

cnp.import_array()

cdef extern from "csrc/argmax.h" nogil:
    void fl_argmax_row(const float *x, int64_t *out, int64_t n, int least)
    void fl_argmax_pairs(const float *x, int64_t *out, int64_t rows, int least)
    void fl_argmax_columns(const float *x, int64_t *out, int64_t n, int64_t inner, int least)

cdef enum:
    TASK = 16384  # values of a task, or one slice where that is more
cdef double COST = 80  # operations a number, see `workers`


ctypedef struct Job:
    const float *x
    int64_t *out
    int64_t outer, n, inner, slices, tasks
    int least
    double work


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t slice, first = number * job.slices, last = min(job.outer, first + job.slices)
    if job.n == 2 and job.inner == 1:
        fl_argmax_pairs(job.x + 2 * first, job.out + first, last - first, job.least)
        return
    for slice in range(first, last):
        if job.inner == 1:
            fl_argmax_row(job.x + slice * job.n, job.out + slice, job.n, job.least)
        else:
            fl_argmax_columns(job.x + slice * job.n * job.inner, job.out + slice * job.inner, job.n, job.inner, job.least)


cdef void plan_argmax(Job *job, const cnp.npy_intp *x, bint reverse) noexcept:
    cdef int64_t outer = x[0], n = x[1], inner = x[2]
    job.outer, job.n, job.inner, job.least = outer if inner else 0, n, inner, reverse
    job.slices = max(TASK // max(n * inner, <int64_t>1), <int64_t>1)
    job.tasks = (job.outer + job.slices - 1) // job.slices
    job.work = COST * outer * n * inner


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out = <const float *>operands[0], <int64_t *>operands[1]
    parallel(task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


include "made/argmax.pxi"
