"""Attention: cuts batch, heads and queries into tasks. Which keys may be left out is found first, once a mask and once a head."""

from libc.math cimport INFINITY, NAN, fmax
from libc.stddef cimport size_t
from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport (
    FL_ATTENTION_SCRATCH, FL_PANEL, FL_QUERIES,
    alloc, fl_attention, fl_kernels, level, parallel, release, workers,
)
from ._once cimport fl_once

cnp.import_array()

cdef enum:
    COST = 40  # operations of a score next to its multiply-adds, see `workers`

cdef struct Job:
    const fl_kernels *table
    fl_attention part                   # what all tasks share
    const float *q
    const float *k
    const float *v
    const float *mask
    const int64_t *lengths              # NULL, or how many keys an entry of the batch has
    float *out
    int64_t batch, heads, groups        # heads of queries, and of keys and values, an entry of the batch
    int64_t rows, blocks                # queries of a head, and the tasks that they make
    int64_t q_head, k_head, v_head, out_head  # from one head to the next
    int64_t mask_b, mask_h, mask_rows   # axes of the mask
    int64_t strips, tiles               # for each mask `attention_tiles` finds strips x tiles values; 0: there is nothing to find
    int64_t bounds                      # heads of keys an entry of the batch that are bounded one by one: all, or 1 for all together
    int causal                          # does causality forbid any key?
    int measured                        # are lengths given?
    double work
    float *found                        # tiles of all masks, then a bound of each head of keys
    float *scratch
    int64_t scratch_size                # floats per worker


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef inline int64_t keys_of(const Job *job, int64_t entry) noexcept nogil:
    """The keys of an entry of the batch."""
    cdef int64_t keys
    if job.lengths == NULL:
        return job.part.keys
    keys = fl_once(job.lengths + entry)
    return least(job.part.keys, keys if keys > 0 else 0)


cdef void look(void *context, int64_t number, int worker) noexcept nogil:
    """A strip of a mask, or, after those, a head of keys and values, or all heads where they are among each other."""
    cdef const Job *job = <const Job *>context
    cdef const fl_attention *p = &job.part
    cdef int64_t strips = job.mask_b * job.mask_h * job.strips, row = number % job.strips * FL_PANEL if job.strips else 0
    if number < strips:
        job.table.attention_tiles(job.mask + (number // job.strips * job.mask_rows + row) * p.keys, p.keys,
                                  least(job.mask_rows - row, FL_PANEL), p.keys, job.found + number * job.tiles)
        return
    cdef int64_t head = number - strips, heads = job.groups // job.bounds
    # A key that is after the last is not looked at; where keys are transposed they are all mixed, and one too many does no harm.
    cdef int64_t keys = keys_of(job, head // job.bounds), k_keys = p.keys if p.kt > 1 else keys
    cdef float *bound = job.found + strips * job.tiles + head
    bound[0] = job.table.magnitude(job.k + head * p.keys * p.d * heads, k_keys * p.d * heads)
    if not job.table.magnitude(job.v + head * p.keys * p.e * heads, keys * p.e * heads) < INFINITY:
        bound[0] = INFINITY


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    """A block of queries of one head."""
    cdef const Job *job = <const Job *>context
    cdef fl_attention p = job.part
    cdef int64_t head = number // job.blocks, block = number % job.blocks, strips = (job.rows + FL_PANEL - 1) // FL_PANEL
    cdef int64_t entry = head // job.heads, plane
    cdef int64_t group = head % job.heads // (job.heads // job.groups)
    cdef int64_t first = strips * block // job.blocks * FL_PANEL, end = strips * (block + 1) // job.blocks * FL_PANEL
    p.rows = least(end, job.rows) - first
    p.q = job.q + entry * job.heads * job.rows * p.d + head % job.heads * job.q_head + first * p.qi
    p.k = job.k + entry * job.groups * p.keys * p.d + group * job.k_head
    p.v = job.v + entry * job.groups * p.keys * p.e + group * job.v_head
    p.out = job.out + entry * job.heads * job.rows * p.e + head % job.heads * job.out_head + first * p.oi
    p.scratch = job.scratch + worker * job.scratch_size
    if job.causal:
        p.last += first
    if job.mask != NULL:
        plane = (entry if job.mask_b > 1 else 0) * job.mask_h + (head % job.heads if job.mask_h > 1 else 0)
        p.mask = job.mask + plane * job.mask_rows * (p.keys if p.mj else 1) + first * p.mi
        if job.strips:
            p.tiles = job.found + (plane * job.strips + (first // FL_PANEL if p.mi else 0)) * job.tiles
    if job.found != NULL:
        p.bound = job.found[job.mask_b * job.mask_h * job.strips * job.tiles + entry * job.bounds + (group if job.bounds > 1 else 0)]
    p.keys = keys_of(job, entry)
    job.table.attention(&p)


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    """Operands: q, k, v, mask or NULL, lengths or NULL, out."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = job.batch * job.heads * job.blocks, looks = 0, found = 0
    cdef int threads = workers(tasks, job.work)
    if tasks * job.part.e == 0:
        return 0
    if job.causal or job.strips:
        looks = job.mask_b * job.mask_h * job.strips + job.batch * job.bounds
        found = job.mask_b * job.mask_h * job.strips * job.tiles + job.batch * job.bounds
    cdef float *memory = <float *>alloc(<size_t>(threads * job.scratch_size + found) * sizeof(float))
    if memory == NULL:
        return -1
    job.q, job.k, job.v = <const float *>operands[0], <const float *>operands[1], <const float *>operands[2]
    job.mask, job.lengths, job.out = <const float *>operands[3], <const int64_t *>operands[4], <float *>operands[5]
    job.scratch, job.found = memory, memory + threads * job.scratch_size if found else NULL
    parallel(look, &job, looks, threads if threads <= looks else 1)
    parallel(task, &job, tasks, threads)
    release(memory)
    return 0


cdef int plan_attention(Job *job, tuple q, tuple k, tuple v, tuple mask, bint lengths, float scale, bint causal, int64_t offset,
                        int empty, bint k_transposed, bint heads_last) except -1:
    """out = softmax(scale q kᵀ + mask) v, h / g neighbouring heads of queries for each head of keys and values."""
    cdef fl_attention *p = &job.part
    cdef int64_t mask_keys = 1, heads
    cdef bint q_last = heads_last and q[1] > 1  # a single query of each head: the order of axes makes no difference
    job.table = level()
    job.batch, job.measured = q[0], lengths
    job.rows, job.heads = (q[1], q[2]) if heads_last else (q[2], q[1])
    p.keys, job.groups = (v[1], v[2]) if heads_last else (v[2], v[1])
    p.d, p.e = q[3], v[3]
    p.kj, p.kt = 1 if k_transposed else p.d, p.keys if k_transposed else 1
    p.scale, p.bound, p.empty, p.zeros = scale, 0, NAN if empty == 1 else 0, empty == 2
    p.mask = p.tiles = NULL
    p.mi = p.mj = p.tiles_strip = job.strips = job.tiles = 0
    job.mask_b = job.mask_h = job.mask_rows = 1
    if mask:
        job.mask_b, job.mask_h, job.mask_rows, mask_keys = mask
    job.causal = causal and offset < p.keys - 1  # else the first query, and so all of them, sees everything
    p.last = max(offset, -job.rows) if job.causal else p.keys
    heads = job.heads
    if job.heads > job.groups > 0 and job.mask_h == job.mask_rows == 1 and not job.causal and not q_last:
        job.rows *= job.heads // job.groups  # heads that share their keys are one after the other
        job.heads = job.groups
    job.blocks = (job.rows + FL_QUERIES - 1) // FL_QUERIES
    p.qi, p.oi, p.vj = p.d, p.e, p.e
    job.q_head, job.out_head, job.k_head, job.v_head = job.rows * p.d, job.rows * p.e, p.keys * p.d, p.keys * p.e
    job.bounds = job.groups
    if q_last:
        p.qi, p.oi, job.q_head, job.out_head = heads * p.d, heads * p.e, p.d, p.e
    if heads_last:
        p.kj, p.vj, job.k_head, job.v_head, job.bounds = job.groups * p.d, job.groups * p.e, p.d, p.e, 1
    if mask_keys > 1:
        p.mj = 1
        # Values of a mask are low or not next to those of the row's other keys, which causality or lengths may forbid: then nothing is
        # left out for the mask's sake.
        if not job.causal and not lengths:
            job.strips, job.tiles = (job.mask_rows + FL_PANEL - 1) // FL_PANEL, (p.keys + FL_PANEL - 1) // FL_PANEL
    if job.mask_rows > 1:
        p.mi = mask_keys
        p.tiles_strip = job.tiles
    job.scratch_size = FL_ATTENTION_SCRATCH(p.d, p.e)
    job.work = job.batch * fmax((2.0 * (p.d + p.e) + COST) * job.heads * job.rows * p.keys * (0.5 if job.causal else 1),
                                8.0 * job.groups * p.keys * (p.d + p.e))  # few queries are bound by the reading of keys and values
    return 0


include "made/attention.pxi"
