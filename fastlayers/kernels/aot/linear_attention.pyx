"""Linear attention. Tasks are strips of columns of one head's state, cut by shape alone."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

from ._engine cimport FL_LINEAR_STRIP, fl_kernels, fl_linear, level, parallel, workers
from ._stop cimport due_here

cnp.import_array()

cdef enum:
    STEPS = 256  # of a task, until it asks whether the run is to end

ctypedef struct Job:
    const fl_kernels *table
    fl_linear one            # what all heads have in common
    int64_t batch, groups, betas, strips
    const float *q
    const float *k
    const float *v
    const float *past
    const float *gate
    const float *beta
    float *out
    float *state
    double work


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef fl_linear p = job.one
    cdef int64_t first = number % job.strips * FL_LINEAR_STRIP, place = number // job.strips, row, steps = p.steps
    cdef int64_t b = place // job.groups, g = place % job.groups
    p.cols = min(p.e - first, <int64_t>FL_LINEAR_STRIP)
    p.q = job.q + b * steps * p.q_step + g * p.heads * p.d
    p.k = job.k + b * steps * p.k_step + g * p.d
    p.v = job.v + b * steps * p.v_step + g * p.e + first
    p.out = job.out + b * steps * p.out_step + g * p.heads * p.e + first
    p.state = job.state + place * p.d * p.e + first
    p.gate = NULL if job.gate == NULL else job.gate + b * steps * p.gate_step + g * p.gates
    p.beta = NULL if job.beta == NULL else job.beta + b * steps * p.beta_step + (g if job.betas > 1 else 0)
    for row in range(p.d):
        if job.past == NULL:
            memset(p.state + row * p.e, 0, p.cols * sizeof(float))
        else:
            memcpy(p.state + row * p.e, job.past + place * p.d * p.e + row * p.e + first, p.cols * sizeof(float))
    while steps > 0:  # the state is in memory after every step, so any cut gives the same bits
        p.steps = min(steps, <int64_t>STEPS)
        job.table.linear(&p)
        if due_here():
            return
        steps -= p.steps
        p.q, p.k, p.v, p.out = p.q + p.steps * p.q_step, p.k + p.steps * p.k_step, p.v + p.steps * p.v_step, p.out + p.steps * p.out_step
        p.gate = NULL if p.gate == NULL else p.gate + p.steps * p.gate_step
        p.beta = NULL if p.beta == NULL else p.beta + p.steps * p.beta_step


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    """Operands: q, k, v, past or NULL, gate or NULL, beta or NULL, out, state."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = job.batch * job.groups * job.strips
    job.q, job.k, job.v = <const float *>operands[0], <const float *>operands[1], <const float *>operands[2]
    job.past, job.gate, job.beta = <const float *>operands[3], <const float *>operands[4], <const float *>operands[5]
    job.out, job.state = <float *>operands[6], <float *>operands[7]
    parallel(task, &job, tasks, workers(tasks, job.work))
    return 0


cdef int plan_linear_attention(Job *job, tuple q, tuple k, tuple gate, tuple beta, tuple state, float scale) except -1:
    job.table = level()
    job.batch, job.groups, job.one.d, job.one.e = state
    job.one.steps, job.one.scale = q[1], scale
    job.one.heads = q[2] // max(job.groups * job.one.d, <int64_t>1)
    job.one.q_step, job.one.k_step, job.one.v_step = q[2], k[2], job.groups * job.one.e
    job.one.out_step = job.groups * job.one.heads * job.one.e
    job.one.gate_step = 0 if gate is None else gate[2]
    job.one.gates = 0 if gate is None else gate[2] // max(job.groups, <int64_t>1)
    job.one.beta_step = job.betas = 0 if beta is None else beta[2]
    job.strips = (job.one.e + FL_LINEAR_STRIP - 1) // FL_LINEAR_STRIP
    job.work = <double>job.batch * job.groups * job.one.steps * job.one.d * job.one.e * (6 + 2 * job.one.heads)
    return 0


include "made/linear_attention.pxi"
