"""Layer, RMS and group normalization, unfolded batch normalization, local response. Tasks are rows or runs of values, cut by shape alone."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport alloc, fl_affine, fl_kernels, fl_lrn, level, parallel, release, workers
from ._space cimport rounded

cnp.import_array()

cdef enum:
    TASK = 16384   # values of a task, or one row where that is more
    GROUP = 16     # rows that are best taken together
    FEW = 64       # fewer channels than this, with nothing after them, are repeated, so that vectors are full
    REPEATED = 4096  # values of a row that is made of repeated factors, at most
    STRIP = 512    # columns of local response at a time: the channels of a window stay in the first-level cache
    NARROW = 64    # fewer columns than this: whole rows at a time

cdef double NORM_COST = 15  # operations a number, see `workers`
cdef double LRN_COST = 60


# ---- layer norm ------------------------------------------------------------------------------------------------------------


ctypedef struct LayerNorm:
    const fl_kernels *level
    const float *x
    const float *weight
    const float *bias
    float *out
    int64_t rows, n, size, tasks
    float epsilon
    int rms
    double work


cdef void layer_norm_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const LayerNorm *job = <const LayerNorm *>context
    cdef int64_t first = number * job.size
    job.level.layer_norm(job.x + first * job.n, job.weight, job.bias, job.out + first * job.n, min(job.size, job.rows - first),
                         job.n, job.epsilon, job.rms)


cdef void plan_layer_norm(LayerNorm *job, const cnp.npy_intp *x, float epsilon, bint rms) noexcept:
    cdef int64_t rows = x[0], n = x[1]
    cdef int64_t each = TASK // max(n, <int64_t>1)
    job.level = level()
    job.rows, job.n, job.epsilon, job.rms = rows, n, epsilon, rms
    job.size = each // GROUP * GROUP if each >= GROUP else max(each, <int64_t>2)
    job.tasks = (rows + job.size - 1) // job.size
    job.work = NORM_COST * rows * n


cdef int run_layer_norm(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, weight or NULL, bias or NULL, out."""
    cdef LayerNorm job = (<const LayerNorm *>plan)[0]
    job.x, job.weight, job.bias = <const float *>operands[0], <const float *>operands[1], <const float *>operands[2]
    job.out = <float *>operands[3]
    parallel(layer_norm_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


# ---- groups of channels ----------------------------------------------------------------------------------------------------


ctypedef struct GroupNorm:
    const fl_kernels *level
    const float *x
    const float *weight
    const float *bias
    float *out
    int64_t rows, groups, channels, inner, n, size, tasks  # rows: groups of all images; channels, n: of one group
    float epsilon
    double work


cdef void group_norm_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const GroupNorm *job = <const GroupNorm *>context
    cdef int64_t first = number * job.size
    job.level.group_norm(job.x + first * job.n, job.weight, job.bias, job.out + first * job.n, first,
                         min(job.size, job.rows - first), job.groups, job.channels, job.inner, job.epsilon)


cdef void plan_group_norm(GroupNorm *job, const cnp.npy_intp *x, int64_t groups, float epsilon) noexcept:
    cdef int64_t outer = x[0], channels = x[1], inner = x[2]
    cdef int64_t each
    job.level = level()
    job.groups, job.channels, job.inner = groups, channels // max(groups, <int64_t>1), inner  # no groups of no channels
    job.rows, job.n, job.epsilon = outer * groups, job.channels * inner, epsilon
    each = TASK // max(job.n, <int64_t>1)
    job.size = each // GROUP * GROUP if each >= GROUP else max(each, <int64_t>1)
    job.tasks = (job.rows + job.size - 1) // job.size
    job.work = NORM_COST * outer * channels * inner


cdef int run_group_norm(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, weight or NULL, bias or NULL, out."""
    cdef GroupNorm job = (<const GroupNorm *>plan)[0]
    job.x, job.weight, job.bias = <const float *>operands[0], <const float *>operands[1], <const float *>operands[2]
    job.out = <float *>operands[3]
    parallel(group_norm_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


# ---- one factor and one summand per channel ----------------------------------------------------------------------------------------


ctypedef struct Affine:
    const fl_kernels *level
    fl_affine call
    int64_t size, tasks
    int64_t repeat, each  # factors are laid out as [repeat][channels][each] first, unless both are 1
    double work


cdef void affine_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Affine *job = <const Affine *>context
    job.level.affine(&job.call, number * TASK, min(job.size, (number + 1) * TASK))


cdef void plan_affine(Affine *job, const cnp.npy_intp *out, activation):
    cdef int64_t outer = out[0], channels = out[1], inner = out[2]
    job.level = level()
    job.size = outer * channels * inner
    job.tasks = (job.size + TASK - 1) // TASK
    job.call.channels, job.call.inner, job.repeat, job.each = channels, inner, 1, 1
    job.call.code, job.call.a, job.call.b = activation
    job.work = (12.0 if job.call.code < 4 else 50.0) * job.size
    # Short runs of one factor become runs of factors, if there are enough rows to pay for that.
    if job.size and inner < GROUP and channels * inner <= REPEATED and outer > 1:
        job.each = inner
        if channels * inner < FEW:
            job.repeat = min((2 * FEW) // (channels * inner), outer)
    if job.each * job.repeat > 1:
        job.call.channels, job.call.inner = channels * job.each * job.repeat, 1


cdef void repeat(const float *x, float *out, int64_t times, int64_t channels, int64_t each) noexcept nogil:
    cdef int64_t t, c, i
    for t in range(times):
        for c in range(channels):
            for i in range(each):
                out[(t * channels + c) * each + i] = x[c]


cdef int run_affine(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, scale, shift, out."""
    cdef Affine job = (<const Affine *>plan)[0]
    cdef float *factors = NULL
    cdef int64_t row = job.call.channels, channels = row // (job.repeat * job.each)
    job.call.x, job.call.y = <const float *>operands[0], <float *>operands[3]
    job.call.scale, job.call.shift = <const float *>operands[1], <const float *>operands[2]
    if job.repeat * job.each > 1:
        factors = <float *>alloc(2 * row * sizeof(float))
        if factors == NULL:
            return -1
        repeat(job.call.scale, factors, job.repeat, channels, job.each)
        repeat(job.call.shift, factors + row, job.repeat, channels, job.each)
        job.call.scale, job.call.shift = factors, factors + row
    parallel(affine_task, &job, job.tasks, workers(job.tasks, job.work))
    release(factors)
    return 0


# ---- local response ----------------------------------------------------------------------------------------------------------


ctypedef struct Response:
    const fl_kernels *level
    const float *x
    float *out
    fl_lrn call
    int64_t outer, slice, strips, rows, tasks  # rows: slices of a task where they are not cut into strips
    size_t scratch                             # bytes of a padded row a worker, 0 for strips
    char *memory
    double work


cdef void lrn_strips_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Response *job = <const Response *>context
    cdef int64_t first = number % job.strips * STRIP, at = number // job.strips * job.slice + first
    job.level.lrn(&job.call, job.x + at, job.out + at, min(<int64_t>STRIP, job.call.inner - first), NULL)


cdef void lrn_rows_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Response *job = <const Response *>context
    cdef int64_t row
    for row in range(number * job.rows, min(job.outer, (number + 1) * job.rows)):
        job.level.lrn(&job.call, job.x + row * job.slice, job.out + row * job.slice, job.call.inner,
                      <float *>(job.memory + worker * job.scratch))


cdef void plan_lrn(Response *job, const cnp.npy_intp *x, int64_t size, float alpha, float beta, float bias) noexcept:
    cdef int64_t outer = x[0], channels = x[1], inner = x[2]
    cdef int64_t last = max(channels - 1, <int64_t>0)
    job.level = level()
    job.outer, job.slice = outer, channels * inner
    job.call.channels, job.call.inner = channels, inner
    job.call.before, job.call.after = min((size - 1) // 2, last), min(size - 1 - (size - 1) // 2, last)
    job.call.alpha, job.call.beta, job.call.bias = alpha / size, beta, bias
    job.work = (LRN_COST + 3.0 * size) * outer * job.slice
    job.strips, job.rows, job.scratch, job.tasks = 1, 1, 0, 0
    if outer * job.slice == 0:
        return
    if inner >= NARROW:
        job.strips = (inner + STRIP - 1) // STRIP
        job.tasks = outer * job.strips
    else:
        job.rows = max(TASK // job.slice, <int64_t>1)
        job.tasks = (outer + job.rows - 1) // job.rows
        job.scratch = rounded(((job.call.before + channels + job.call.after) * inner + GROUP) * sizeof(float))


cdef int run_lrn(const void *plan, void *const *operands) noexcept nogil:
    cdef Response job = (<const Response *>plan)[0]
    cdef int threads = workers(job.tasks, job.work)
    job.x, job.out, job.memory = <const float *>operands[0], <float *>operands[1], NULL
    if job.scratch:
        job.memory = <char *>alloc(threads * job.scratch)
        if job.memory == NULL:
            return -1
    parallel(lrn_rows_task if job.scratch else lrn_strips_task, &job, job.tasks, threads)
    release(job.memory)
    return 0


include "made/norm.pxi"
