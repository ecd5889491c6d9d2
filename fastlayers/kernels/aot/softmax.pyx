"""Softmax and log-softmax over the middle of three axes. Tasks are rows, or strips of columns, cut by shape alone."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport fl_kernels, level, parallel, workers

cnp.import_array()

cdef enum:
    TASK = 16384  # elements of a task, or one row where that is more
    STRIP = 512   # columns of a task at least: a multiple of what the kernel takes at a time
    COST = 60     # operations an element, see `workers`
    NEAR = 262144 # elements that a second-level cache holds with their results; of more the next rows are prefetched,
    SHORT = 2048  # if they have at most so many: with longer ones the cache is too small again, and the processor sees what comes

ctypedef struct Job:
    const fl_kernels *table
    const float *x
    float *y
    int64_t outer, n, inner
    int64_t size     # rows (inner == 1) or columns a task
    int64_t strips   # tasks a slice (inner > 1)
    int64_t tasks
    int logarithm
    double work


cdef void rows_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t first = number * job.size, offset = first * job.n
    job.table.softmax_rows(job.x + offset, job.y + offset, min(job.size, job.outer - first), job.n, job.logarithm)


cdef void columns_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t first = number % job.strips * job.size, offset = number // job.strips * job.n * job.inner + first
    job.table.softmax_inner(job.x + offset, job.y + offset, job.n, job.inner, min(job.size, job.inner - first), job.logarithm)


cdef void plan(Job *job, const cnp.npy_intp *out, int logarithm) noexcept:
    cdef int64_t outer = out[0], n = out[1], inner = out[2]
    job.table = level()
    job.outer, job.n, job.inner, job.logarithm = outer, n, inner, logarithm
    job.work = <double>outer * n * inner * COST
    job.size, job.strips, job.tasks = 1, 1, 0
    if job.work == 0:
        return
    if inner == 1:
        if not logarithm and n <= SHORT and outer * n > NEAR:
            job.logarithm = -1
        job.size = max(TASK // n, <int64_t>1)
        job.tasks = (outer + job.size - 1) // job.size
    else:
        job.size = max((TASK // n + STRIP - 1) // STRIP * STRIP, <int64_t>STRIP)
        job.strips = (inner + job.size - 1) // job.size
        job.tasks = outer * job.strips


cdef void plan_softmax(Job *job, const cnp.npy_intp *out) noexcept:
    """out = exp(x) / sum over n of exp(x)."""
    plan(job, out, 0)


cdef void plan_log_softmax(Job *job, const cnp.npy_intp *out) noexcept:
    """out = x - log(sum over n of exp(x))."""
    plan(job, out, 1)


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.y = <const float *>operands[0], <float *>operands[1]
    parallel(rows_task if job.inner == 1 else columns_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


include "made/softmax.pxi"
