"""Elementwise kernels. Work is cut into runs of the flat output; an element's result never depends on the cut."""

from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int64_t
from libc.stddef cimport size_t
cimport numpy as cnp

from ._engine cimport FL_UNARY_COUNT, RELEASE_GIL, alloc, fl_kernels, level, parallel, release, workers
from ._step cimport make_step, run_plan, volume

cnp.import_array()

cdef enum:
    RUN = 16384  # elements of a task: 64 KB stay in the second-level cache, and hide the cost of a claim
    NARROW = 64  # planes of PReLU below this many elements get a slope an element instead of a call each

# Operations an element (see `workers`) by code: the memory alone costs 10.
cdef double COST[FL_UNARY_COUNT]
COST[:] = [10, 10, 10, 10, 40, 40, 35, 45, 50, 45, 35, 10, 10, 80, 20, 50, 35, 40, 45, 15, 10, 10, 10, 20, 10, 10, 10, 10, 200,
           200, 45, 10, 10, 50, 80, 35]

ctypedef struct Job:
    const fl_kernels *table
    const float *x
    const float *slope
    float *out
    int64_t size, outer, channels, inner
    int code, gate
    float a, b
    double work


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


cdef void spread(Run function, const Job *job) noexcept nogil:
    """A lone thread takes everything in one call."""
    cdef Tasks tasks
    cdef int64_t count = (job.size + RUN - 1) // RUN
    cdef int threads = workers(count, job.work)
    if threads == 1 and job.work < RELEASE_GIL:
        function(job, 0, job.size)
    else:
        tasks.job = job
        tasks.run = function
        parallel(task, &tasks, count, threads)


cdef void plan_unary(Job *job, int64_t size, activation):
    job.table = level()
    job.size = size
    job.code = <object>PyTuple_GET_ITEM(activation, 0)
    job.a = <object>PyTuple_GET_ITEM(activation, 1)
    job.b = <object>PyTuple_GET_ITEM(activation, 2)
    job.work = COST[job.code] * size


cdef int run_unary(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    spread(unary_run, &job)
    return 0


def unary(cnp.ndarray x, cnp.ndarray out, activation):
    """out = f(x), f given by code and parameters; out may be x."""
    cdef Job job
    cdef void *operands[2]
    plan_unary(&job, cnp.PyArray_SIZE(out), activation)
    operands[0], operands[1] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(out)
    run_plan(run_unary, &job, operands, job.work, "unary")


def unary_step(tuple x, tuple out, activation):
    """The step of `unary`: shapes instead of arrays."""
    cdef Job job
    plan_unary(&job, volume(out), activation)
    return make_step(run_unary, &job, sizeof(Job), 2, job.work, None)


cdef void plan_gated(Job *job, int64_t size, int64_t inner, activation, int gate):
    job.table = level()
    job.size, job.inner, job.gate = size, inner, gate
    job.code = <object>PyTuple_GET_ITEM(activation, 0)
    job.work = (COST[job.code] + 5) * size


cdef int run_gated(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    spread(gated_run, &job)
    return 0


def gated(cnp.ndarray x__o2i, cnp.ndarray out__oi, activation, int gate):
    """out = x[:, 1 - gate] * f(x[:, gate]), f without parameters."""
    cdef Job job
    cdef void *operands[2]
    plan_gated(&job, cnp.PyArray_SIZE(out__oi), cnp.PyArray_DIM(out__oi, 1), activation, gate)
    operands[0], operands[1] = cnp.PyArray_DATA(x__o2i), cnp.PyArray_DATA(out__oi)
    run_plan(run_gated, &job, operands, job.work, "gated")


def gated_step(tuple x__o2i, tuple out__oi, activation, int gate):
    """The step of `gated`: shapes instead of arrays."""
    cdef Job job
    plan_gated(&job, volume(out__oi), out__oi[1], activation, gate)
    return make_step(run_gated, &job, sizeof(Job), 2, job.work, None)


cdef void plan_prelu(Job *job, int64_t outer, int64_t channels, int64_t inner) noexcept:
    job.table = level()
    job.size, job.channels, job.inner = outer * channels * inner, channels, inner
    job.work = 12.0 * job.size


cdef int run_prelu(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    cdef float *row = NULL
    cdef int64_t c, i
    job.x, job.slope, job.out = <const float *>operands[0], <const float *>operands[1], <float *>operands[2]
    if job.size == 0:
        return 0
    if 1 < job.inner < NARROW and job.channels > 1:
        row = <float *>alloc(<size_t>(job.channels * job.inner) * sizeof(float))
    if row != NULL:  # else a call a plane does, more slowly
        for c in range(job.channels):
            for i in range(job.inner):
                row[c * job.inner + i] = job.slope[c]
        job.slope = row
    spread(prelu_rows_run if row != NULL or job.inner == 1 else prelu_planes_run, &job)
    release(row)
    return 0


def prelu(cnp.ndarray x__oci, cnp.ndarray slope__c, cnp.ndarray out__oci):
    """out = x where x >= 0, else slope[c] x."""
    cdef Job job
    cdef void *operands[3]
    plan_prelu(&job, cnp.PyArray_DIM(out__oci, 0), cnp.PyArray_DIM(out__oci, 1), cnp.PyArray_DIM(out__oci, 2))
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(x__oci), cnp.PyArray_DATA(slope__c), cnp.PyArray_DATA(out__oci)
    run_plan(run_prelu, &job, operands, job.work, "prelu")


def prelu_step(tuple x__oci, tuple slope__c, tuple out__oci):
    """The step of `prelu`: shapes instead of arrays."""
    cdef Job job
    plan_prelu(&job, out__oci[0], out__oci[1], out__oci[2])
    return make_step(run_prelu, &job, sizeof(Job), 3, job.work, None)
