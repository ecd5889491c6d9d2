"""Attention whose scores are wanted as an array: the weights that they become, and the scores of additive attention."""

from libc.math cimport NAN
from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport fl_kernels, level, parallel, workers
from ._once cimport fl_once

cnp.import_array()

cdef enum:
    TASK = 16384       # values of a task, or one row where that is more
    COST = 80          # operations a weight, see `workers`
    COST_TANH = 60     # operations a hyperbolic tangent

ctypedef struct Weights:
    const fl_kernels *table
    const float *x
    const float *mask
    const int64_t *lengths
    float *scores
    float *out
    int64_t batch, heads, rows, keys, size, tasks  # size: rows per task
    int64_t mask_b, mask_h, mask_r, mj             # steps of the mask, 0 along axes of size 1
    int64_t offset
    float scale, empty
    int causal
    double work

ctypedef struct Additive:
    const fl_kernels *table
    const float *q
    const float *k
    const float *scale
    float *out
    int64_t batch, rows, keys, units, size, tasks
    double work


cdef void weights_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Weights *job = <const Weights *>context
    cdef int64_t row, entry, head, seen, i, limit = job.batch * job.heads * job.rows, n = job.keys
    cdef const float *mask
    for row in range(number * job.size, min((number + 1) * job.size, limit)):
        entry, head, i = row // (job.heads * job.rows), row // job.rows % job.heads, row % job.rows
        mask = NULL if job.mask == NULL else job.mask + entry * job.mask_b + head * job.mask_h + i * job.mask_r
        seen = n if job.lengths == NULL else min(n, max(fl_once(job.lengths + entry), <int64_t>0))
        if job.causal:
            seen = min(seen, max(i + job.offset + 1, <int64_t>0))
        if job.table.masked_scores(job.x + row * n, job.scale, mask, job.mj, seen, job.scores + row * n, n):
            job.table.softmax_rows(job.scores + row * n, job.out + row * n, 1, n, 0)
        else:
            for i in range(n):
                job.out[row * n + i] = job.empty


cdef int run_attention_weights(const void *plan, void *const *operands) noexcept nogil:
    cdef Weights job = (<const Weights *>plan)[0]
    job.x, job.mask, job.lengths = <const float *>operands[0], <const float *>operands[1], <const int64_t *>operands[2]
    job.scores, job.out = <float *>operands[3], <float *>operands[4]
    parallel(weights_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


cdef int plan_attention_weights(Weights *job, tuple x, tuple mask, float scale, bint causal, int64_t offset, int empty) except -1:
    cdef int64_t b, h, r, k
    job.table = level()
    job.batch, job.heads, job.rows, job.keys = x
    job.scale, job.causal, job.empty = scale, causal, NAN if empty else 0
    job.offset = max(-job.rows, min(offset, job.keys))
    job.mask_b = job.mask_h = job.mask_r = job.mj = 0
    if mask is not None:
        b, h, r, k = mask
        job.mj = k > 1
        job.mask_r, job.mask_h, job.mask_b = k if r > 1 else 0, r * k if h > 1 else 0, h * r * k if b > 1 else 0
    job.work = <double>job.batch * job.heads * job.rows * job.keys * COST
    job.size = max(TASK // max(job.keys, <int64_t>1), <int64_t>1)
    job.tasks = (job.batch * job.heads * job.rows + job.size - 1) // job.size if job.keys else 0
    return 0


cdef void additive_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Additive *job = <const Additive *>context
    cdef int64_t row, entry
    for row in range(number * job.size, min((number + 1) * job.size, job.batch * job.rows)):
        entry = row // job.rows
        job.table.additive_scores(job.q + row * job.units, job.k + entry * job.keys * job.units, job.scale, job.keys, job.units,
                                  job.out + row * job.keys)


cdef int run_additive_scores(const void *plan, void *const *operands) noexcept nogil:
    cdef Additive job = (<const Additive *>plan)[0]
    job.q, job.k, job.scale = <const float *>operands[0], <const float *>operands[1], <const float *>operands[2]
    job.out = <float *>operands[3]
    parallel(additive_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


cdef int plan_additive_scores(Additive *job, tuple q, tuple k) except -1:
    job.table = level()
    job.batch, job.rows, job.units = q
    job.keys = k[1]
    job.work = <double>job.batch * job.rows * job.keys * (job.units + 1) * COST_TANH
    job.size = max(TASK // max(job.keys * job.units, <int64_t>1), <int64_t>1)
    job.tasks = (job.batch * job.rows + job.size - 1) // job.size
    return 0


include "made/scores.pxi"
