"""Sums, extremes, products and norms over the middle of three axes, sums of blocks. Tasks are slices, or strips of columns, cut by shape alone."""

from libc.stdint cimport int32_t, int64_t
cimport numpy as cnp

from ._engine cimport fl_kernels, level, parallel, workers

from ...errors import ShapeError

cdef extern from "csrc/running.h":
    void fl_running_f32(const float *x, float *out, int64_t n, int64_t inner, int exclusive, int reverse) noexcept nogil
    void fl_running_i32(const int32_t *x, int32_t *out, int64_t n, int64_t inner, int exclusive, int reverse) noexcept nogil
    void fl_running_i64(const int64_t *x, int64_t *out, int64_t n, int64_t inner, int exclusive, int reverse) noexcept nogil
    ctypedef struct fl_blocks:
        int64_t size[3]
        int64_t kernel[3]
        int64_t stride[3]
        int64_t dilation[3]
        int64_t before[3]
        int64_t places[3]
    void fl_col2im(const fl_blocks *b, const float *x, float *out, void (*mix)(const float *const *, const float *, int64_t, float *, int64_t) noexcept nogil) noexcept nogil

cnp.import_array()

cdef enum:
    TASK = 16384  # values of a task, or one row where that is more
    GROUP = 16    # rows that are best taken together
    NARROW = 65   # slices of fewer columns are not cut: see csrc/reduce.h
    STRIP = 128   # columns of a strip at least: what the kernel takes at a time

cdef struct Reduction:
    const fl_kernels *level
    const float *x
    float *out
    int64_t outer, n, inner
    int code         # of table.REDUCE
    int64_t size     # slices of [n][inner] a task, or columns of one slice
    int64_t strips   # tasks a slice
    int64_t tasks
    double work


# Operations a number (see `workers`) by code: the memory alone costs 5.
cdef double COST[10]
COST[:] = [5, 5, 6, 6, 5, 5, 5, 5, 5, 25]


cdef void rows_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Reduction *job = <const Reduction *>context
    cdef int64_t first = number * job.size
    job.level.reduce_rows(job.code, job.x + first * job.n, job.n, job.out + first, min(job.size, job.outer - first), job.n)


cdef void columns_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Reduction *job = <const Reduction *>context
    cdef int64_t slice, first
    if job.strips > 1:
        slice, first = number // job.strips, number % job.strips * job.size
        job.level.reduce_columns(job.code, job.x + slice * job.n * job.inner + first, job.n, job.inner,
                                 job.out + slice * job.inner + first, min(job.size, job.inner - first))
        return
    for slice in range(number * job.size, min(job.outer, (number + 1) * job.size)):
        job.level.reduce_columns(job.code, job.x + slice * job.n * job.inner, job.n, job.inner, job.out + slice * job.inner, job.inner)


cdef void plan_reduce(Reduction *job, const cnp.npy_intp *x, int op) noexcept:
    cdef int64_t outer = x[0], n = x[1], inner = x[2], length = max(n, <int64_t>1)
    job.level = level()
    job.outer, job.n, job.inner, job.code = outer, n, inner, op
    job.strips, job.tasks = 1, 0
    job.work = COST[op] * outer * length * inner
    if inner == 1:
        job.size = max(TASK // length // GROUP * GROUP, min(TASK // length, <int64_t>GROUP), <int64_t>1)
    elif inner >= NARROW and inner * length > TASK:
        job.size = max((TASK // length + STRIP - 1) // STRIP * STRIP, <int64_t>STRIP)
        job.strips = (inner + job.size - 1) // job.size
        job.tasks = outer * job.strips
    if job.strips == 1:
        if inner > 1:
            job.size = max(TASK // (length * inner), <int64_t>1)
        job.tasks = (outer + job.size - 1) // job.size if inner > 0 else 0


cdef int run_reduce(const void *plan, void *const *operands) noexcept nogil:
    cdef Reduction job = (<const Reduction *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    parallel(rows_task if job.inner == 1 else columns_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


# ---- running sums: one slice after the other, on one thread ----

ctypedef struct Running:
    int64_t outer, n, inner
    int source, exclusive, reverse
    double work


cdef void plan_running_sum(Running *job, const cnp.npy_intp *x, int source, bint exclusive, bint reverse) noexcept:
    cdef int64_t outer = x[0], n = x[1], inner = x[2]
    job.outer, job.n, job.inner = outer, n, inner
    job.source, job.exclusive, job.reverse = source, exclusive, reverse
    job.work = 10.0 * outer * n * inner


cdef int run_running(const void *plan, void *const *operands) noexcept nogil:
    cdef const Running *job = <const Running *>plan
    cdef int64_t o, at
    for o in range(job.outer):
        at = o * job.n * job.inner
        if job.source == 8:
            fl_running_i64(<const int64_t *>operands[0] + at, <int64_t *>operands[1] + at, job.n, job.inner, job.exclusive, job.reverse)
        elif job.source == 7:
            fl_running_i32(<const int32_t *>operands[0] + at, <int32_t *>operands[1] + at, job.n, job.inner, job.exclusive, job.reverse)
        else:
            fl_running_f32(<const float *>operands[0] + at, <float *>operands[1] + at, job.n, job.inner, job.exclusive, job.reverse)
    return 0


# ---- blocks added up to an image: a task is a plane ----

ctypedef struct Blocks:
    const fl_kernels *level
    fl_blocks blocks
    const float *x
    float *out
    int64_t planes, values, pixels   # values of the blocks of a plane
    double work


cdef int plan_col2im(Blocks *job, const cnp.npy_intp *x, const cnp.npy_intp *out, size, kernel, stride, dilation, pads) except -1:
    cdef fl_blocks *b = &job.blocks
    cdef int64_t taps = 1, places = 1, i
    job.pixels = 1
    for i in range(3):
        b.size[i], b.kernel[i], b.stride[i], b.dilation[i], b.before[i] = size[i], kernel[i], stride[i], dilation[i], pads[2 * i]
        b.places[i] = (b.size[i] + b.before[i] + <int64_t>pads[2 * i + 1] - b.dilation[i] * (b.kernel[i] - 1) - 1) // b.stride[i] + 1
        taps, places, job.pixels = taps * b.kernel[i], places * b.places[i], job.pixels * b.size[i]
    if x[1] != taps or x[2] != places or out[1] != job.pixels:
        raise ShapeError(f"col2im: blocks of {x[1]} values at {x[2]} places, {out[1]} pixels: expected {taps}, {places} and {job.pixels}")
    job.level, job.planes, job.values = level(), x[0], taps * places
    job.work = job.planes * (60.0 * job.values + 10.0 * job.pixels)
    return 0


cdef void col2im_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Blocks *job = <const Blocks *>context
    fl_col2im(&job.blocks, job.x + number * job.values, job.out + number * job.pixels, job.level.mix)


cdef int run_col2im(const void *plan, void *const *operands) noexcept nogil:
    cdef Blocks job = (<const Blocks *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    parallel(col2im_task, &job, job.planes, workers(job.planes, job.work))
    return 0


include "made/reduce.pxi"
