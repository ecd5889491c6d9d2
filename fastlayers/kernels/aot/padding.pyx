"""Padding of the three space axes: whole rows are copied, positions in the padding are looked up."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy
cimport numpy as cnp

from ._engine cimport parallel, workers
from ._space cimport source_index

cnp.import_array()

cdef enum:
    TASK = 1 << 15  # floats of one task
    COST = 25       # a float written, in the operations that `workers` counts
    KEPT = 64       # positions of a row's border whose sources a task looks up once


cdef struct Job:
    const float *x
    float *out
    int64_t d, h, w, inner     # x: (o, d, h, w, inner)
    int64_t od, oh, ow         # out: (o, od, oh, ow, inner)
    int64_t before_d, before_h, before_w
    int mode
    float value
    int64_t rows, rows_a_task  # rows of out: o * od * oh
    double work


cdef inline void fill(float *out, int64_t n, float value) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = value


cdef void border(const Job *job, const float *row, float *out, int64_t start, int64_t stop, const int64_t *sources) noexcept nogil:
    """Pixels start .. stop of a padded row, none of which is in x; `sources`: where in x each of the first KEPT is."""
    cdef int64_t i, k
    if job.mode == 0:
        fill(out + start * job.inner, (stop - start) * job.inner, job.value)
        return
    for i in range(start, stop):
        k = sources[i - start] if i - start < KEPT else source_index(i, job.before_w, job.w, job.mode)
        if job.inner == 1:
            out[i] = row[k]
        else:
            memcpy(out + i * job.inner, row + k * job.inner, job.inner * sizeof(float))


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t r, plane, line, d, h, left = job.before_w, right = left + job.w
    cdef const float *row
    cdef const float *first  # the plane of x that rows come from
    cdef float *out
    cdef int64_t sources[2][KEPT]
    if job.mode != 0:
        for d in range(KEPT):
            sources[0][d] = source_index(d, left, job.w, job.mode) if d < left else 0
            sources[1][d] = source_index(right + d, left, job.w, job.mode) if right + d < job.ow else 0
    r = number * job.rows_a_task
    plane, line = r // job.oh, r % job.oh
    d = source_index(plane % job.od, job.before_d, job.d, job.mode)
    first = job.x + (plane // job.od * job.d + d) * job.h * job.w * job.inner
    for r in range(r, min(job.rows, r + job.rows_a_task)):
        if line == job.oh:
            line, plane = 0, plane + 1
            d = source_index(plane % job.od, job.before_d, job.d, job.mode)
            first = job.x + (plane // job.od * job.d + d) * job.h * job.w * job.inner
        h = line - job.before_h
        if h < 0 or h >= job.h:
            h = source_index(line, job.before_h, job.h, job.mode)
        line += 1
        out = job.out + r * job.ow * job.inner
        if d < 0 or h < 0:
            fill(out, job.ow * job.inner, job.value)
            continue
        row = first + h * job.w * job.inner
        border(job, row, out, 0, left, sources[0])
        memcpy(out + left * job.inner, row, job.w * job.inner * sizeof(float))
        border(job, row, out, right, job.ow, sources[1])


cdef void plan_pad(Job *job, const cnp.npy_intp *x, pads, int mode, float value):
    cdef int64_t o = x[0], d = x[1], h = x[2], w = x[3], inner = x[4]
    cdef int64_t after_d, after_h, after_w, floats
    job.before_d, after_d, job.before_h, after_h, job.before_w, after_w = pads
    job.d, job.h, job.w, job.inner, job.mode, job.value = d, h, w, inner, mode, value
    job.od, job.oh, job.ow = d + job.before_d + after_d, h + job.before_h + after_h, w + job.before_w + after_w
    job.rows = o * job.od * job.oh
    floats = job.ow * inner
    job.rows_a_task = max(<int64_t>1, TASK // floats) if floats else job.rows
    job.work = <double>COST * job.rows * floats


cdef int run_pad(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks
    cdef int threads
    if job.work == 0:
        return 0
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    tasks = (job.rows + job.rows_a_task - 1) // job.rows_a_task
    threads = workers(tasks, job.work)
    parallel(task, &job, tasks, threads)
    return 0


include "made/padding.pxi"
