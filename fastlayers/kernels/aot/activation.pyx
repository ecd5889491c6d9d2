"""Elementwise kernels. Work is cut into runs of the flat output; an element's result never depends on the cut."""

from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int64_t
from libc.stddef cimport size_t
cimport numpy as cnp

from ._engine cimport RELEASE_GIL, alloc, fl_kernels, level, parallel, release, workers

cnp.import_array()

cdef enum:
    RUN = 16384  # elements of a task: 64 KB stay in the second-level cache, and hide the cost of a claim
    NARROW = 64  # planes of PReLU below this many elements get a slope an element instead of a call each

# Operations an element (see `workers`) by code: the memory alone costs 10.
cdef double COST[20]
COST[:] = [10, 10, 10, 10, 40, 40, 35, 45, 50, 45, 35, 10, 10, 80, 20, 50, 35, 40, 45, 15]

ctypedef struct Job:
    const fl_kernels *table
    const float *x
    const float *slope
    float *out
    int64_t size, outer, channels, inner
    int code, gate
    float a, b


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef void unary_run(const Job *job, int64_t start, int64_t end) noexcept nogil:
    job.table.unary(job.code, job.a, job.b, job.x + start, job.out + start, end - start)


cdef void gated_run(const Job *job, int64_t start, int64_t end) noexcept nogil:
    cdef int64_t row, column, n
    cdef const float *x
    while start < end:
        row = start // job.inner
        column = start % job.inner
        n = least(job.inner - column, end - start)
        x = job.x + 2 * row * job.inner + column
        job.table.gated(job.code, x + (1 - job.gate) * job.inner, x + job.gate * job.inner, job.out + start, n)
        start += n


cdef void prelu_planes_run(const Job *job, int64_t start, int64_t end) noexcept nogil:
    cdef int64_t plane, n
    while start < end:
        plane = start // job.inner
        n = least((plane + 1) * job.inner, end) - start
        job.table.prelu(job.x + start, job.slope + plane % job.channels, 0, job.out + start, n)
        start += n


cdef void prelu_rows_run(const Job *job, int64_t start, int64_t end) noexcept nogil:
    """`slope` holds a whole row here: channels x inner numbers."""
    cdef int64_t width = job.channels * job.inner, column, n
    while start < end:
        column = start % width
        n = least(width - column, end - start)
        job.table.prelu(job.x + start, job.slope + column, 1, job.out + start, n)
        start += n


ctypedef void (*Run)(const Job *job, int64_t start, int64_t end) noexcept nogil

ctypedef struct Tasks:
    const Job *job
    Run run


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Tasks *tasks = <const Tasks *>context
    tasks.run(tasks.job, number * RUN, least((number + 1) * RUN, tasks.job.size))


cdef void run(Run function, const Job *job, double work) noexcept:
    """Small work keeps the GIL and this thread; a lone thread takes everything in one call."""
    cdef Tasks tasks
    cdef int64_t count = (job.size + RUN - 1) // RUN
    cdef int threads = workers(count, work)
    if work < RELEASE_GIL:
        function(job, 0, job.size)
        return
    with nogil:
        if threads == 1:
            function(job, 0, job.size)
        else:
            tasks.job = job
            tasks.run = function
            parallel(task, &tasks, count, threads)


def unary(cnp.ndarray x, cnp.ndarray out, activation):
    """out = f(x), f given by code and parameters; out may be x."""
    cdef Job job
    job.table = level()
    job.x = <const float *>cnp.PyArray_DATA(x)
    job.out = <float *>cnp.PyArray_DATA(out)
    job.size = cnp.PyArray_SIZE(out)
    job.code = <object>PyTuple_GET_ITEM(activation, 0)
    job.a = <object>PyTuple_GET_ITEM(activation, 1)
    job.b = <object>PyTuple_GET_ITEM(activation, 2)
    run(unary_run, &job, COST[job.code] * job.size)


def gated(cnp.ndarray x__o2i, cnp.ndarray out__oi, activation, int gate):
    """out = x[:, 1 - gate] * f(x[:, gate]), f without parameters."""
    cdef Job job
    job.table = level()
    job.x = <const float *>cnp.PyArray_DATA(x__o2i)
    job.out = <float *>cnp.PyArray_DATA(out__oi)
    job.size = cnp.PyArray_SIZE(out__oi)
    job.inner = cnp.PyArray_DIM(out__oi, 1)
    job.code = <object>PyTuple_GET_ITEM(activation, 0)
    job.gate = gate
    run(gated_run, &job, (COST[job.code] + 5) * job.size)


def prelu(cnp.ndarray x__oci, cnp.ndarray slope__c, cnp.ndarray out__oci):
    """out = x where x >= 0, else slope[c] x."""
    cdef Job job
    cdef float *row = NULL
    cdef int64_t c, i
    job.table = level()
    job.x = <const float *>cnp.PyArray_DATA(x__oci)
    job.slope = <const float *>cnp.PyArray_DATA(slope__c)
    job.out = <float *>cnp.PyArray_DATA(out__oci)
    job.size = cnp.PyArray_SIZE(out__oci)
    job.channels = cnp.PyArray_DIM(out__oci, 1)
    job.inner = cnp.PyArray_DIM(out__oci, 2)
    if job.size == 0:
        return
    if 1 < job.inner < NARROW and job.channels > 1:
        row = <float *>alloc(<size_t>(job.channels * job.inner) * sizeof(float))
    if row != NULL:
        for c in range(job.channels):
            for i in range(job.inner):
                row[c * job.inner + i] = job.slope[c]
        job.slope = row
    run(prelu_rows_run if row != NULL or job.inner == 1 else prelu_planes_run, &job, 12.0 * job.size)
    if row != NULL:
        release(row)
