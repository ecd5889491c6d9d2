"""Elementwise kernels. Work is cut into runs of the flat output; an element's result never depends on the cut."""

from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int64_t
from libc.stddef cimport size_t
cimport numpy as cnp

from ._engine cimport FL_UNARY_COUNT, RELEASE_GIL, alloc, fl_kernels, level, parallel, release, workers
from ._space cimport run_length, runs_of

from ..table import UNARY

cnp.import_array()

cdef enum:
    RUN = 16384  # elements of a task: 64 KB stay in the second-level cache, and hide the cost of a claim
    NARROW = 64  # planes of PReLU below this many elements get a slope per element instead of a call each

cdef double COST[FL_UNARY_COUNT]  # operations per element (see `workers`) by code
cdef object row
for row in UNARY.values():
    COST[row.code] = row.cost

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
    """`slope` holds a whole row here: channels x inner values."""
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
    int64_t each


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Tasks *tasks = <const Tasks *>context
    tasks.run(tasks.job, number * tasks.each, least((number + 1) * tasks.each, tasks.job.size))


cdef void spread(Run function, const Job *job) noexcept nogil:
    """A lone thread takes everything in one call."""
    cdef Tasks tasks
    cdef int threads = workers(runs_of(job.size), job.work)
    if threads == 1 and job.work < RELEASE_GIL:
        function(job, 0, job.size)
    else:
        tasks.job = job
        tasks.run = function
        tasks.each = run_length(job.size, RUN, threads)
        parallel(task, &tasks, (job.size + tasks.each - 1) // tasks.each, threads)


cdef void plan_unary(Job *job, int64_t out, activation):
    """out = f(x), f given by code and parameters; out may be x."""
    job.table = level()
    job.size = out
    job.code = <object>PyTuple_GET_ITEM(activation, 0)
    job.a = <object>PyTuple_GET_ITEM(activation, 1)
    job.b = <object>PyTuple_GET_ITEM(activation, 2)
    job.work = COST[job.code] * out


cdef int run_unary(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    spread(unary_run, &job)
    return 0


cdef void plan_gated(Job *job, const cnp.npy_intp *out, activation, int gate):
    """out = x[:, 1 - gate] * f(x[:, gate]), f without parameters."""
    job.table = level()
    job.size, job.inner, job.gate = out[0] * out[1], out[1], gate
    job.code = <object>PyTuple_GET_ITEM(activation, 0)
    job.work = (COST[job.code] + 5) * job.size


cdef int run_gated(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    spread(gated_run, &job)
    return 0


cdef void plan_prelu(Job *job, const cnp.npy_intp *out) noexcept:
    """out = x where x >= 0, else slope[c] x."""
    job.table = level()
    job.size, job.channels, job.inner = out[0] * out[1] * out[2], out[1], out[2]
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


include "made/activation.pxi"
