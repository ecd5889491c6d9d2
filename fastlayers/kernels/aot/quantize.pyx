"""Conversions to quantized values and back, tables of 256 bytes, sums and products of two quantized arrays, and pools of bytes."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset
cimport numpy as cnp

from ._dynamic cimport range_to_steps
from ._engine cimport alloc, fl_qbinary, fl_quantized, level, parallel, release, workers
from ...errors import ShapeError
from ..quantized_add import factors
from ..table import BINARY, KINDS, REDUCE

cnp.import_array()

cdef enum:
    RUN = 1 << 14  # values of a task

cdef int BYTES[16]
for _name, _code in KINDS.items():
    BYTES[_code] = int(_name.lstrip("boluintfa") or 8) // 8
cdef int INT8 = KINDS["int8"], MEAN = REDUCE["mean"], MULTIPLY = BINARY["multiply"]


cdef const fl_quantized *functions() noexcept nogil:
    return level().quantized


# ---- quantize and dequantize ----

cdef struct Scale:
    const fl_quantized *level
    const char *x
    char *out
    const float *step
    const int32_t *zero
    int64_t o, c, i, pieces
    int kind
    bint back   # dequantize
    double work


cdef void scale_task(void *context, int64_t number, int worker) noexcept nogil:
    """A piece of the neighbours that share a scale; or, where there is one neighbour, of the channels next to each other."""
    cdef const Scale *job = <const Scale *>context
    cdef int64_t n = job.i if job.i > 1 else job.c, line = number // job.pieces, first = number % job.pieces * RUN
    cdef int64_t channel = line % job.c if job.i > 1 else first, start = line * n + first, count = min(<int64_t>RUN, n - first)
    if job.back:
        job.level.dequantize(job.x + start * BYTES[job.kind], job.kind, job.step + channel, job.zero + channel, job.i == 1,
                             <float *>job.out + start, count)
    else:
        job.level.quantize(<const float *>job.x + start, job.step + channel, job.zero + channel, job.i == 1, job.kind,
                           job.out + start * BYTES[job.kind], count)


cdef void plan_quantize(Scale *job, const cnp.npy_intp *x, int target) noexcept:
    plan_scale(job, x, target, False)


cdef void plan_dequantize(Scale *job, const cnp.npy_intp *x, int source) noexcept:
    plan_scale(job, x, source, True)


cdef int run_scale(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, step, zero, out."""
    cdef Scale job = (<const Scale *>plan)[0]
    cdef int64_t tasks = 0 if job.o * job.c * job.i == 0 else job.o * (job.c if job.i > 1 else 1) * job.pieces
    job.x, job.step, job.zero, job.out = <const char *>operands[0], <const float *>operands[1], <const int32_t *>operands[2], <char *>operands[3]
    parallel(scale_task, &job, tasks, workers(tasks, job.work))
    return 0


cdef void plan_scale(Scale *job, const cnp.npy_intp *x, int kind, bint back) noexcept:
    cdef int64_t o = x[0], c = x[1], i = x[2]
    memset(job, 0, sizeof(Scale))
    job.level, job.kind, job.back = functions(), kind, back
    job.work = 20.0 * o * c * i
    if c == 1:  # one scale for all
        i, o = i * o, 1
        job.pieces = (i + RUN - 1) // RUN
        if i == 1:
            job.pieces = 1
    else:
        job.pieces = ((i if i > 1 else c) + RUN - 1) // RUN
    job.o, job.c, job.i = o, c, i


# ---- dynamic ----

cdef struct Dynamic:
    const fl_quantized *level
    const float *x
    uint8_t *out
    float *ranges  # of each task
    float step
    int32_t zero
    int kind
    int64_t n
    double work


cdef void range_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef Dynamic *job = <Dynamic *>context
    cdef float *found = job.ranges + 2 * number
    found[0] = found[1] = 0
    job.level.range(job.x + number * RUN, min(<int64_t>RUN, job.n - number * RUN), found, found + 1)


cdef void dynamic_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef Dynamic *job = <Dynamic *>context
    job.level.quantize(job.x + number * RUN, &job.step, &job.zero, 0, job.kind, job.out + number * RUN, min(<int64_t>RUN, job.n - number * RUN))


cdef int run_dynamic(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, step, zero."""
    cdef Dynamic job = (<const Dynamic *>plan)[0]
    cdef int64_t tasks = (job.n + RUN - 1) // RUN, i
    cdef int threads = workers(tasks, job.work)
    cdef float low = 0, high = 0
    cdef uint8_t zero = 0
    job.x, job.out = <const float *>operands[0], <uint8_t *>operands[1]
    job.ranges = <float *>alloc((2 * tasks + 1) * sizeof(float))
    if job.ranges == NULL:
        return -1
    parallel(range_task, &job, tasks, threads)
    for i in range(tasks):
        low, high = min(low, job.ranges[2 * i]), max(high, job.ranges[2 * i + 1])
    release(job.ranges)
    range_to_steps(job.level, job.kind, low, high, &job.step, &zero)
    job.zero = zero
    (<float *>operands[2])[0], (<uint8_t *>operands[3])[0] = job.step, zero
    parallel(dynamic_task, &job, tasks, threads)
    return 0


cdef void plan_dynamic_quantize(Dynamic *job, int64_t x) noexcept:
    memset(job, 0, sizeof(Dynamic))
    job.level, job.n, job.work, job.kind = functions(), x, 30.0 * x, KINDS["uint8"]


# ---- tables ----

cdef struct Lookup:
    const fl_quantized *level
    const uint8_t *x
    const uint8_t *table
    uint8_t *out
    int64_t n
    double work


cdef void lookup_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Lookup *job = <const Lookup *>context
    job.level.lookup(job.x + number * RUN, job.table, job.out + number * RUN, min(<int64_t>RUN, job.n - number * RUN))


cdef int run_lookup(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, table, out."""
    cdef Lookup job = (<const Lookup *>plan)[0]
    cdef int64_t tasks = (job.n + RUN - 1) // RUN
    job.x, job.table, job.out = <const uint8_t *>operands[0], <const uint8_t *>operands[1], <uint8_t *>operands[2]
    parallel(lookup_task, &job, tasks, workers(tasks, job.work))
    return 0


cdef int plan_lookup(Lookup *job, int64_t x, int64_t table, int64_t out) except -1:
    if table != 256:
        raise ShapeError(f"lookup: table has {table} bytes: expected 256, one for each byte that x may hold")
    if x != out:
        raise ShapeError(f"lookup: out has {out} elements: expected {x}, the size of x")
    memset(job, 0, sizeof(Lookup))
    job.level, job.n, job.work = functions(), x, 15.0 * x
    return 0


# ---- two arrays ----

cdef struct Binary:
    const fl_quantized *level
    const uint8_t *a
    const uint8_t *b
    uint8_t *out
    int64_t o, m, i, pieces, lines, b_o, b_m
    int each
    fl_qbinary p
    double work


cdef void binary_task(void *context, int64_t number, int worker) noexcept nogil:
    """A piece of a line, or some short lines."""
    cdef const Binary *job = <const Binary *>context
    cdef int64_t line = number // job.pieces * job.lines, first = number % job.pieces * RUN, start, from_
    cdef int64_t stop = min(line + job.lines, job.o * job.m), count = min(<int64_t>RUN, job.i - first)
    while line < stop:
        start, from_ = line * job.i + first, line // job.m * job.b_o + line % job.m * job.b_m + (first if job.each else 0)
        job.level.binary(&job.p, job.a + start, job.b + from_, job.each, job.out + start, count)
        line += 1


cdef int run_binary(const void *plan, void *const *operands) noexcept nogil:
    """Operands: a, b, out."""
    cdef Binary job = (<const Binary *>plan)[0]
    cdef int64_t tasks = (job.o * job.m + job.lines - 1) // job.lines * job.pieces
    job.a, job.b, job.out = <const uint8_t *>operands[0], <const uint8_t *>operands[1], <uint8_t *>operands[2]
    parallel(binary_task, &job, tasks, workers(tasks, job.work))
    return 0


cdef int plan_qbinary(Binary *job, const cnp.npy_intp *a, const cnp.npy_intp *b, int op, options) except -1:
    memset(job, 0, sizeof(Binary))
    job.level = functions()
    job.o, job.m, job.i = a[0], a[1], a[2]
    job.each = b[2] == a[2]
    job.b_m = b[2] if b[1] > 1 else 0
    job.b_o = b[1] * b[2] if b[0] > 1 else 0
    if b[0] == a[0] and b[1] == a[1] and job.each:  # of one shape: one row
        job.i, job.o, job.m = a[0] * a[1] * a[2], 1, 1
    job.pieces = (job.i + RUN - 1) // RUN
    job.lines = 1 if job.i == 0 else max(<int64_t>1, RUN // job.i)
    job.p.multiply = op == MULTIPLY
    source, job.p.a_zero, job.p.b_zero, job.p.zero, job.p.a_scale, job.p.b_scale, job.p.scale = options
    if not job.p.multiply:
        job.p.a_zero, job.p.b_zero, job.p.zero = 0, 0, 0
        job.p.a_scale, job.p.b_scale, job.p.scale = factors(options)
    job.p.is_signed = source == INT8
    job.work = 10.0 * a[0] * a[1] * a[2]
    return 0


# ---- pools ----

cdef struct Pool:
    const fl_quantized *level
    const uint8_t *x
    uint8_t *out
    int64_t c, tasks
    int64_t size[3]
    int64_t out_size[3]
    int64_t kernel[3]
    int64_t stride[3]
    int64_t dilation[3]
    int64_t before[3]
    int64_t after[3]
    int mean, source, include_pad
    int32_t x_zero, zero
    float x_scale, scale
    double work
    int32_t *sums  # of each worker


cdef inline int64_t tap_from(const Pool *job, int axis, int64_t start, int64_t low) noexcept nogil:
    """The first tap of a window beginning at `start` that is at `low` or after it."""
    cdef int64_t d = job.dilation[axis]
    return min((low - start + d - 1) // d, job.kernel[axis]) if start < low else 0


cdef inline int64_t inside(const Pool *job, int axis, int64_t o, bint padded) noexcept nogil:
    """Number of taps of output o in the image, or in it and its padding."""
    cdef int64_t start = o * job.stride[axis] - job.before[axis], low = -job.before[axis] if padded else 0
    cdef int64_t high = job.size[axis] + (job.after[axis] if padded else 0)
    return tap_from(job, axis, start, high) - tap_from(job, axis, start, low)


cdef void pool_task(void *context, int64_t number, int worker) noexcept nogil:
    """One row of outputs, channels-last."""
    cdef const Pool *job = <const Pool *>context
    cdef int64_t y = number % job.out_size[1], rest = number // job.out_size[1], z = rest % job.out_size[0], image = rest // job.out_size[0]
    cdef int64_t start[3]
    cdef int64_t low[3]
    cdef int64_t high[3]
    cdef int64_t at[3]
    cdef int64_t x, kz, ky, kx, c = job.c, i, count
    cdef int axis
    cdef uint8_t *out = job.out + number * job.out_size[2] * c
    cdef const uint8_t *from_
    cdef int32_t *sums = job.sums + worker * c if job.mean else NULL
    cdef int is_signed = job.source == INT8
    cdef float by
    at[0], at[1] = z, y
    for x in range(job.out_size[2]):
        at[2] = x
        for axis in range(3):
            start[axis] = at[axis] * job.stride[axis] - job.before[axis]
            low[axis], high[axis] = tap_from(job, axis, start[axis], 0), tap_from(job, axis, start[axis], job.size[axis])
        if job.mean:
            memset(sums, 0, c * sizeof(int32_t))
        else:
            memset(out, 0x80 if is_signed else 0, c)
        for kz in range(low[0], high[0]):
            for ky in range(low[1], high[1]):
                for kx in range(low[2], high[2]):
                    i = (image * job.size[0] + start[0] + kz * job.dilation[0]) * job.size[1] + start[1] + ky * job.dilation[1]
                    from_ = job.x + (i * job.size[2] + start[2] + kx * job.dilation[2]) * c
                    if job.mean:
                        job.level.add(from_, is_signed, sums, c)
                    else:
                        job.level.larger(from_, is_signed, out, c)
        if job.mean:
            count = (high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2])
            for i in range(c):
                sums[i] -= <int32_t>(job.x_zero * count)
            if job.include_pad:
                count = inside(job, 0, z, True) * inside(job, 1, y, True) * inside(job, 2, x, True)
            by = job.scale * <float>count
            by = job.x_scale / by
            job.level.requantize(sums, &by, 0, job.zero, job.source, out, c)
        out += c


cdef int run_pool(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out."""
    cdef Pool job = (<const Pool *>plan)[0]
    cdef int threads = workers(job.tasks, job.work)
    if job.tasks == 0 or job.c == 0 or job.out_size[2] == 0:
        return 0
    job.x, job.out, job.sums = <const uint8_t *>operands[0], <uint8_t *>operands[1], NULL
    if job.mean:
        job.sums = <int32_t *>alloc(threads * job.c * sizeof(int32_t))
        if job.sums == NULL:
            return -1
    parallel(pool_task, &job, job.tasks, threads)
    release(job.sums)
    return 0


cdef int plan_qpool(Pool *job, const cnp.npy_intp *x, const cnp.npy_intp *out, kernel, stride, dilation, pads, int op, int source,
                    options) except -1:
    cdef int axis
    memset(job, 0, sizeof(Pool))
    job.level, job.c, job.mean, job.source = functions(), x[4], op == MEAN, source
    job.x_zero, job.x_scale, job.scale, job.zero, job.include_pad = options
    job.tasks, job.work = x[0] * out[1] * out[2], 3.0 * x[0] * out[1] * out[2] * out[3] * x[4]
    for axis in range(3):
        job.size[axis], job.out_size[axis] = x[1 + axis], out[1 + axis]
        job.kernel[axis], job.stride[axis], job.dilation[axis] = kernel[axis], stride[axis], dilation[axis]
        job.before[axis], job.after[axis] = pads[2 * axis], pads[2 * axis + 1]
        job.work *= job.kernel[axis]
    return 0


include "made/quantize.pxi"
