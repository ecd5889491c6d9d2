"""Rotary positions. Tasks are runs of positions, cut by shape alone."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport fl_kernels, level, parallel, workers

cnp.import_array()

cdef enum:
    TASK = 16384  # values of a task, or those of one position where that is more
    COST = 10     # operations a number, see `workers`

ctypedef struct Job:
    const fl_kernels *table
    const float *x
    const float *cos
    const float *sin
    float *out
    int64_t batch, outer, steps, inner, d, half
    int64_t entry  # from the angles of one entry of the batch to the next; 0: all share them
    int64_t size, tasks
    int interleaved
    double work


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t place, angle, at
    for place in range(number * job.size, min((number + 1) * job.size, job.batch * job.outer * job.steps)):
        angle = (place // (job.outer * job.steps) * job.entry + place % job.steps) * job.half
        at = place * job.inner * job.d
        job.table.rotary(job.x + at, job.cos + angle, job.sin + angle, job.out + at, job.inner, job.d, job.half, job.interleaved)


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.cos, job.sin, job.out = <const float *>operands[0], <const float *>operands[1], <const float *>operands[2], <float *>operands[3]
    parallel(task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


cdef int plan_rotary(Job *job, tuple x, tuple cos, bint interleaved) except -1:
    job.table = level()
    job.batch, job.outer, job.steps, job.inner, job.d = x
    job.half, job.interleaved = cos[2], interleaved
    job.entry = job.steps if cos[0] > 1 else 0
    job.work = <double>job.batch * job.outer * job.steps * job.inner * job.d * COST
    job.size = max(TASK // max(job.inner * job.d, <int64_t>1), <int64_t>1)
    job.tasks = (job.batch * job.outer * job.steps + job.size - 1) // job.size
    return 0


include "made/rotary.pxi"
