"""Softmax and log-softmax over the middle of three axes. Tasks are rows, or strips of columns, cut by shape alone."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport RELEASE_GIL, fl_kernels, fl_task_fn, level, parallel, workers

cnp.import_array()

cdef enum:
    TASK = 16384  # elements of a task, or one row where that is more
    STRIP = 512   # columns of a task at least: a multiple of what the kernel takes at a time
    COST = 60     # operations an element, see `workers`

ctypedef struct Job:
    const fl_kernels *table
    const float *x
    float *y
    int64_t outer, n, inner
    int64_t size     # rows (inner == 1) or columns a task
    int64_t strips   # tasks a slice (inner > 1)
    int logarithm


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef void rows_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t first = number * job.size, offset = first * job.n
    job.table.softmax_rows(job.x + offset, job.y + offset, least(job.size, job.outer - first), job.n, job.logarithm)


cdef void columns_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t first = number % job.strips * job.size, offset = number // job.strips * job.n * job.inner + first
    job.table.softmax_inner(job.x + offset, job.y + offset, job.n, job.inner, least(job.size, job.inner - first), job.logarithm)


cdef void run(cnp.ndarray x, cnp.ndarray out, int logarithm) noexcept:
    cdef Job job
    cdef int64_t count, number
    cdef fl_task_fn task
    cdef int threads
    job.table = level()
    job.x = <const float *>cnp.PyArray_DATA(x)
    job.y = <float *>cnp.PyArray_DATA(out)
    job.outer = cnp.PyArray_DIM(out, 0)
    job.n = cnp.PyArray_DIM(out, 1)
    job.inner = cnp.PyArray_DIM(out, 2)
    job.logarithm = logarithm
    cdef double work = <double>job.outer * job.n * job.inner * COST
    if work == 0:
        return
    if job.inner == 1:
        task = rows_task
        job.size = TASK // job.n if TASK > job.n else 1
        count = (job.outer + job.size - 1) // job.size
    else:
        task = columns_task
        job.size = (TASK // job.n + STRIP - 1) // STRIP * STRIP if TASK > job.n else STRIP
        job.strips = (job.inner + job.size - 1) // job.size
        count = job.outer * job.strips
    if work < RELEASE_GIL:
        for number in range(count):
            task(&job, number, 0)
        return
    threads = workers(count, work)
    with nogil:
        parallel(task, &job, count, threads)


def softmax(cnp.ndarray x__oni, cnp.ndarray out__oni):
    """out = exp(x) / sum over n of exp(x)."""
    run(x__oni, out__oni, 0)


def log_softmax(cnp.ndarray x__oni, cnp.ndarray out__oni):
    """out = x - log(sum over n of exp(x))."""
    run(x__oni, out__oni, 1)
