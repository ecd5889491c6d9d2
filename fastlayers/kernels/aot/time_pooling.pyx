"""Mean or maximum over the valid steps of every sequence. What is after a length, or is masked, is never read into a result.

A task is one sequence, or a strip of its channels; where steps in between are masked, or short ones are apart, the valid ones are copied.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

from ._engine cimport alloc, fl_kernels, level, parallel, release, workers
from ._once cimport fl_once
from ._space cimport rounded
from ._step cimport make_step, run_plan

cnp.import_array()

cdef enum:
    TASK = 1 << 15   # values of a task, about
    STRIP = 128      # channels of a strip at least: what the reduction takes at a time
    NARROW = 64      # rows of fewer values must be without gaps: see csrc/reduce.h


cdef struct Job:
    const fl_kernels *level
    const float *x
    const int64_t *lengths
    const uint8_t *mask
    float *out
    int64_t n, t, c, row, step   # floats between sequences, and between the steps of one
    int code
    int64_t width, strips
    bint gather                  # valid steps are copied even if none is between them
    size_t scratch
    char *memory
    double work


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t i = number // job.strips, c0 = number % job.strips * job.width, cols = min(job.width, job.c - c0)
    cdef int64_t steps = job.t if job.lengths == NULL else min(max(fl_once(job.lengths + i), <int64_t>0), job.t)
    cdef int64_t first = 0, count = steps, step, k
    cdef const float *x = job.x + i * job.row + c0
    cdef const uint8_t *mask = job.mask
    cdef float *out = job.out + i * job.c + c0
    cdef float *rows
    if mask != NULL:
        mask += i * job.t
        while first < steps and not mask[first]:
            first += 1
        while steps > first and not mask[steps - 1]:
            steps -= 1
        count = 0
        for k in range(first, steps):
            count += mask[k] != 0
    if count == 0:
        memset(out, 0, cols * sizeof(float))
        return
    x, step = x + first * job.step, job.step
    if count < steps - first or job.gather:
        rows = <float *>(job.memory + worker * job.scratch)
        step = 0
        for k in range(first, steps):
            if mask == NULL or mask[k]:
                memcpy(rows + step * cols, x + (k - first) * job.step, cols * sizeof(float))
                step += 1
        x, step = rows, cols
    job.level.reduce_columns(job.code, x, count, step, out, cols)


cdef int run_time(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = job.n * job.strips, i
    cdef int threads = workers(tasks, job.work)
    job.memory = NULL
    job.x, job.lengths, job.mask = <const float *>operands[0], <const int64_t *>operands[1], <const uint8_t *>operands[2]
    job.out = <float *>operands[3]
    if job.lengths != NULL:
        for i in range(job.n):
            if not 0 <= job.lengths[i] <= job.t:
                return -2
    if tasks == 0:
        return 0
    if job.mask != NULL or job.gather:
        job.memory = <char *>alloc(threads * job.scratch)
        if job.memory == NULL:
            return -1
    parallel(task, &job, tasks, threads)
    release(job.memory)
    return 0


cdef void plan_time(Job *job, int64_t a, int64_t b, int64_t c, int op, bint batch_first) noexcept:
    job.level, job.code, job.c = level(), op, c
    job.n, job.t = (a, b) if batch_first else (b, a)
    job.row, job.step = (b * c, c) if batch_first else (c, b * c)
    job.width, job.gather = c, c < NARROW and job.step != c
    if job.t * c > TASK and c > STRIP:
        job.width = max((TASK // job.t + STRIP - 1) // STRIP * STRIP, <int64_t>STRIP)
    job.strips = (c + job.width - 1) // job.width if c > 0 else 0
    job.scratch = rounded(job.t * job.width * sizeof(float))
    job.work = 6.0 * job.n * job.t * c


def time_pool(cnp.ndarray x, cnp.ndarray lengths__n, cnp.ndarray mask__nt, cnp.ndarray out__nc, int op, bint batch_first):
    """out[n] = the mean or the largest (op of table.REDUCE) of x[n, t], or x[t, n], over t < lengths[n] with mask[n, t]; 0 of none."""
    cdef Job job
    cdef void *operands[4]
    plan_time(&job, cnp.PyArray_DIM(x, 0), cnp.PyArray_DIM(x, 1), cnp.PyArray_DIM(x, 2), op, batch_first)
    operands[0], operands[3] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(out__nc)
    operands[1] = NULL if lengths__n is None else cnp.PyArray_DATA(lengths__n)
    operands[2] = NULL if mask__nt is None else cnp.PyArray_DATA(mask__nt)
    run_plan(run_time, &job, operands, job.work, "time_pool: lengths")


def time_pool_step(tuple x, lengths__n, mask__nt, tuple out__nc, int op, bint batch_first):
    """The step of `time_pool`: shapes instead of arrays."""
    cdef Job job
    plan_time(&job, x[0], x[1], x[2], op, batch_first)
    return make_step(run_time, &job, sizeof(Job), 4, job.work, None)


include "made/time_pooling.pxi"
