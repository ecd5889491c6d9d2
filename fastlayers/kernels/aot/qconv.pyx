"""Convolutions and products of quantized values over the packed product of bytes (csrc/quantized.h), in 1 to 3 dimensions.

A pixel's taps are runs of bytes in padded channels-last data, as in `conv`; a product of matrices is a 1x1 kernel over a row of pixels.
The C code multiplies uint8 by int8: int8 inputs are brought into scratch as x + 128, uint8 weights are packed as w - 128, and the zero points
move along. Padding holds x's zero point. What zero points add to the sums is known before they are made (see `correct`), but for the sums
of each pixel's values, which are made where weights have zero points.

Kernels with one channel a group, and as many groups as channels, multiply taps with vectors of channels instead (`depthwise`).
"""

from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

import numpy as np

from ._engine cimport (
    FL_PANEL, alloc, copied, fl_kernels, fl_move, fl_qblock, fl_qdepthwise, fl_qepilogue, fl_qrun, fl_quantized, level,
    need, parallel, release, workers,
)
from ._fit cimport Fit, check_groups, fit_of, read_steps
from ._space cimport even, rounded, source_index, width_of
from ..table import KINDS

cnp.import_array()

cdef enum:
    PIXELS = 240    # of one task: whole tiles of 12, 8 and 3 rows
    COLS = 256      # columns of one task
    BAND = 1 << 16  # bytes of padded input that a task of a depthwise kernel should not need more of

cdef int INT8 = KINDS["int8"], UINT8 = KINDS["uint8"]


cdef inline int64_t padded(int64_t n) noexcept nogil:
    """Whole panels."""
    return (n + FL_PANEL - 1) // FL_PANEL * FL_PANEL


cdef Fit PACK = fit_of("qconv_pack"), FIT = fit_of("qconv")


cdef class PackedQConv:
    """Weights of a convolution of bytes. Immutable; may be used by any number of threads at once."""

    def __dealloc__(self):
        release(self.panels)
        release(self.taps)
        release(self.bytes)
        release(self.bias)
        release(self.sums)
        release(self.zero)
        release(self.factor)
        release(self.shift)

    cdef int fits(self, tuple arrays, int layout, pads) except -1:
        cdef int64_t known[2]
        known[0], known[1] = self.groups * self.ig, self.groups * self.og
        return FIT.check_window(known, arrays, layout, pads, self.kernel, self.stride, self.dilation)


cdef void *block_of(array, dtype, groups, int64_t width) except? NULL:
    """Values of the channels, each group's padded to whole panels."""
    wide = np.zeros((groups, width), dtype)
    wide[:, : array.size // groups] = array.reshape(groups, -1)
    return copied(wide, "qconv_pack")


def qconv_pack(cnp.ndarray weight__oidhw, zero__o, factor__o, bias__o, shift__o, stride, dilation, int64_t groups):
    """Weights (o, i / groups, kd, kh, kw), int8 or uint8, with their zero points (o,) of the same dtype or None, the factors of their sums
    or None (float32), biases (int32) or None, and what is added to float results (float32) or None."""
    PACK.check(NULL, (weight__oidhw, zero__o, factor__o, bias__o, shift__o), 0)
    cdef PackedQConv packed = PackedQConv.__new__(PackedQConv)
    cdef int64_t o = weight__oidhw.shape[0], axis, width, run, nruns, g, p, r, t, j, columns, at, pairs
    cdef const int8_t *w
    cdef int8_t *to
    shape = (<object>weight__oidhw).shape
    check_groups("qconv_pack", "groups", groups, o)
    read_steps("qconv_pack", stride, dilation, packed.stride, packed.dilation)
    packed.groups, packed.ig, packed.og = groups, shape[1], o // max(groups, <int64_t>1)
    for axis in range(3):
        packed.kernel[axis] = shape[2 + axis]
    width = padded(packed.og)
    packed.depthwise = packed.ig == 1 and packed.og == 1 and groups > 1
    flip = 128 if weight__oidhw.dtype == np.uint8 else 0
    wide = weight__oidhw.transpose(0, 2, 3, 4, 1).astype(np.int32) - flip
    zero = None if zero__o is None else zero__o.astype(np.int32) - flip
    if zero is None and flip:
        zero = np.full(o, -flip, np.int32)
    packed.terms = wide[0].size if o else 0
    if packed.depthwise:
        width = padded(groups)
        if zero is not None:
            wide = wide - zero.reshape(-1, 1, 1, 1, 1)
        pairs = (packed.terms + 1) // 2
        taps = np.zeros((2 * pairs, width), np.int16)
        taps[: packed.terms, :groups] = wide.reshape(groups, -1).T
        packed.taps = <int16_t *>copied(np.ascontiguousarray(taps.reshape(pairs, 2, width).transpose(0, 2, 1)), "qconv_pack")
        packed.nbytes = taps.nbytes
        if -128 <= taps.min(initial=0) and taps.max(initial=0) <= 127:
            blocks = (groups + 63) // 64
            bytes_ = np.zeros(((packed.terms + 3) // 4 * 4, blocks * 64), np.int8)
            bytes_[: packed.terms, :groups] = wide.reshape(groups, -1).T
            bytes_ = bytes_.reshape(-1, 4, blocks, 4, 4, 4).transpose(0, 2, 4, 3, 5, 1)
            packed.bytes = <int8_t *>copied(np.ascontiguousarray(bytes_), "qconv_pack")
            packed.nbytes += bytes_.nbytes
        sums, zero, groups = wide.sum((1, 2, 3, 4)), None, 1
    else:
        run = packed.ig * (packed.kernel[2] if packed.dilation[2] == 1 else 1)
        nruns = packed.terms // run if run else 0
        packed.quads = nruns * ((run + 3) // 4)
        ordered = np.zeros((o, nruns, (run + 3) // 4 * 4), np.int8)
        ordered[:, :, :run] = wide.reshape(o, nruns, run)
        w = <const int8_t *>cnp.PyArray_DATA(<cnp.ndarray>ordered)
        packed.nbytes = groups * width * packed.quads * 4
        packed.panels = to = <int8_t *>need(packed.nbytes, "qconv_pack")
        with nogil:
            memset(to, 0, groups * width * packed.quads * 4)
            for g in range(groups):
                for p in range(width // FL_PANEL):
                    columns = min(<int64_t>FL_PANEL, packed.og - p * FL_PANEL)
                    for t in range(packed.quads):
                        for j in range(columns):
                            at = (g * packed.og + p * FL_PANEL + j) * packed.quads + t
                            memcpy(to + (t * FL_PANEL + j) * 4, w + at * 4, 4)
                    to += packed.quads * FL_PANEL * 4
        sums = wide.sum((1, 2, 3, 4))
    packed.sums = <int32_t *>block_of(sums, np.int32, groups, width)
    packed.bias = <int32_t *>block_of(np.zeros(o, np.int32) if bias__o is None else bias__o, np.int32, groups, width)
    if zero is not None and zero.any():
        packed.zero = <int32_t *>block_of(zero, np.int32, groups, width)
    if factor__o is not None:
        packed.factor = <float *>block_of(factor__o, np.float32, groups, width)
    if shift__o is not None:
        packed.shift = <float *>block_of(shift__o, np.float32, groups, width)
    return packed


cdef inline int64_t reach(const Job *job, int axis, int64_t outputs) noexcept nogil:
    return (outputs - 1) * job.stride[axis] + (job.kernel[axis] - 1) * job.dilation[axis] + 1


cdef void fill_row(const Job *job, const uint8_t *x, uint8_t *flat, uint8_t *to, int64_t start, int64_t cols) noexcept nogil:
    """Padded positions start .. start + cols - 1 of one input row, channels-last. x: the row's first pixel, first channel of the group."""
    cdef int64_t w = job.size[2], ig = job.channels if job.depthwise else job.ig, volume = job.size[0] * job.size[1] * w
    cdef int64_t i0 = min(max(job.before[2] - start, <int64_t>0), cols), i1 = max(min(job.before[2] + w - start, cols), i0), i
    cdef int64_t first = start + i0 - job.before[2], n = i1 - i0
    cdef fl_move move
    cdef uint8_t *inner = to + i0 * ig
    memset(to, job.fill, i0 * ig)
    memset(to + i1 * ig, job.fill, (cols - i1) * ig)
    if n <= 0:
        return
    if not job.x_last:
        move.x, move.out, move.size, move.rows, move.cols = x + first, inner, 1, n, ig
        move.x_row, move.x_col, move.out_row, move.out_col = 1, volume, ig, 1
        job.table.move(&move)
        if job.flip:
            memcpy(flat, inner, n * ig)
            job.level.flip(flat, inner, n * ig)
        return
    x += first * job.channels
    if ig == job.channels:
        if job.flip:
            job.level.flip(x, inner, n * ig)
        else:
            memcpy(inner, x, n * ig)
        return
    for i in range(n):
        if job.flip:
            job.level.flip(x + i * job.channels, inner + i * ig, ig)
        else:
            memcpy(inner + i * ig, x + i * job.channels, ig)


cdef void fill(const Job *job, const uint8_t *x, uint8_t *flat, uint8_t *to, int64_t od, int64_t oh, int64_t rows, int64_t ow,
               int64_t cols) noexcept nogil:
    """The padded input under rows x cols output pixels."""
    cdef int64_t z, y, at_z, at_y, high = reach(job, 1, rows), wide = reach(job, 2, cols)
    cdef int64_t pitch = job.size[2] * (job.channels if job.x_last else 1)
    cdef uint8_t *line
    for z in range(job.kernel[0]):
        at_z = source_index(od * job.stride[0] + z * job.dilation[0], job.before[0], job.size[0], 0)
        for y in range(high):
            at_y = source_index(oh * job.stride[1] + y, job.before[1], job.size[1], 0)
            line = to + z * job.plane + y * job.row
            if at_z < 0 or at_y < 0:
                memset(line, job.fill, wide * job.pixel)
            else:
                fill_row(job, x + (at_z * job.size[1] + at_y) * pitch, flat, line, ow * job.stride[2], wide)


cdef struct Place:
    int64_t image, group, od, oh, ow, rows, cols, j0, width, first


cdef Place place_of(const Job *job, int64_t number) noexcept nogil:
    cdef Place at
    cdef int64_t rest = number // job.width_tasks
    at.j0 = number % job.width_tasks * job.width
    at.width = min(job.width, job.og - at.j0)
    at.ow = rest % job.col_tasks * job.cols
    rest = rest // job.col_tasks
    at.oh = rest % job.row_tasks * job.rows
    rest = rest // job.row_tasks
    at.od = rest % job.out_size[0]
    rest = rest // job.out_size[0]
    at.group, at.image = rest % job.groups, rest // job.groups
    at.rows, at.cols = min(job.rows, job.out_size[1] - at.oh), min(job.cols, job.out_size[2] - at.ow)
    at.first = (at.od * job.out_size[1] + at.oh) * job.out_size[2] + at.ow
    return at


cdef const uint8_t *input_of(const Job *job, const Place *at, char *scratch) noexcept nogil:
    """Address of the first tap of the first pixel."""
    cdef int64_t volume = job.size[0] * job.size[1] * job.size[2]
    cdef const uint8_t *base = job.x + at.image * volume * job.channels + at.group * job.ig * (1 if job.x_last else volume)
    if job.in_place:
        return base + (at.od * job.stride[0] * job.size[1] + at.oh * job.stride[1]) * job.row + at.ow * job.stride[2] * job.pixel
    fill(job, base, <uint8_t *>scratch + job.at_flat, <uint8_t *>scratch + job.at_band, at.od, at.oh, at.rows, at.ow, at.cols)
    return <const uint8_t *>scratch + job.at_band


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef Place at = place_of(job, number)
    cdef int64_t out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2], x, y, i = 0
    cdef int64_t channel = at.group * job.og + at.j0, column = at.group * padded(job.og) + at.j0
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const uint8_t **row = <const uint8_t **>scratch
    cdef const uint8_t *base = input_of(job, &at, scratch)
    cdef char *first = job.out + at.image * out_volume * job.out_channels * job.item
    cdef fl_qblock p
    cdef fl_move move
    for y in range(at.rows):
        for x in range(at.cols):
            row[i] = base + y * job.stride[1] * job.row + x * job.stride[2] * job.pixel
            i += 1
    p.rows, p.m, p.n, p.runs, p.nruns, p.panel = row, i, at.width, job.runs, job.nruns, job.quads * 4 * FL_PANEL
    p.b = job.panels + (at.group * padded(job.og) + at.j0) // FL_PANEL * p.panel
    p.e = job.epilogue
    p.e.offset += column
    if p.e.scale != NULL:
        p.e.scale += column
    if p.e.shift != NULL:
        p.e.shift += column
    if p.e.zero != NULL:
        p.e.zero += column
        p.e.rowsum = <const int32_t *>(scratch + job.at_sums)
        job.level.rowsums(row, i, job.runs, job.lengths, job.nruns, <int32_t *>(scratch + job.at_sums))
    if job.out_last:
        p.out, p.ldc = first + (at.first * job.out_channels + channel) * job.item, job.out_channels
        job.level.block(&p)
        return
    p.out, p.ldc = scratch + job.at_out, at.width
    job.level.block(&p)
    if at.cols == job.out_size[2]:  # rows of pixels follow each other
        at.cols, at.rows = i, 1
    for y in range(at.rows):
        move.x, move.out = scratch + job.at_out + y * at.cols * at.width * job.item, first + (channel * out_volume + at.first + y * job.out_size[2]) * job.item
        move.size, move.rows, move.cols = <int>job.item, at.width, at.cols
        move.x_row, move.x_col, move.out_row, move.out_col = 1, at.width, out_volume, 1
        job.table.move(&move)


cdef void depthwise_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef Place at = place_of(job, number)
    cdef int64_t out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2], z, y, x, i, u
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const uint8_t **tap = <const uint8_t **>scratch
    cdef const uint8_t *base = input_of(job, &at, scratch)
    cdef fl_qdepthwise p
    p.taps, p.pairs, p.step, p.c, p.cols = tap, (job.terms + 1) // 2, job.stride[2] * job.pixel, job.channels, at.cols
    p.w, p.bytes, p.ldc, p.e = job.taps, job.bytes, job.channels, job.epilogue
    for i in range(at.rows):
        u = 0
        for z in range(job.kernel[0]):
            for y in range(job.kernel[1]):
                for x in range(job.kernel[2]):
                    tap[u] = base + z * job.plane + (i * job.stride[1] + y * job.dilation[1]) * job.row + x * job.dilation[2] * job.pixel
                    u += 1
        while u % 4:
            tap[u] = tap[u - 1]
            u += 1
        p.out = job.out + (at.image * out_volume + at.first + i * job.out_size[2]) * job.channels * job.item
        job.level.depthwise(&p)


cdef void plan_runs(Job *job) noexcept nogil:
    """Taps in the order (kd, kh, kw); those of a row next to each other where they are."""
    cdef int64_t z, y, x, wide = 1 if job.dilation[2] == 1 else job.kernel[2]
    cdef int64_t run = job.ig * (job.kernel[2] if job.dilation[2] == 1 else 1)
    job.nruns = 0
    for z in range(job.kernel[0]):
        for y in range(job.kernel[1]):
            for x in range(wide):
                job.runs[job.nruns].offset = z * job.plane + y * job.dilation[1] * job.row + x * job.dilation[2] * job.pixel
                job.runs[job.nruns].quads, job.lengths[job.nruns] = (run + 3) // 4, run
                job.nruns += 1


cdef int plan_call(Job *job, PackedQConv packed, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, bint x_last, bint out_last,
                    int source, int target, int value) except -1:
    """Everything about a call but where its arrays are. Gives the plan `lists`, which the caller releases."""
    cdef int64_t axis, images = x[0], run, count, wide, high, most
    cdef bint padding = False
    memset(job, 0, sizeof(Job))
    job.table = level()
    job.level = job.table.quantized
    job.panels, job.taps, job.bytes, job.bias, job.sums, job.factor = packed.panels, packed.taps, packed.bytes, packed.bias, packed.sums, packed.factor
    job.epilogue.zero, job.epilogue.shift, job.epilogue.kind, job.epilogue.y_zero = packed.zero, packed.shift, target, value
    job.depthwise, job.groups, job.ig, job.og = packed.depthwise, packed.groups, packed.ig, packed.og
    job.channels, job.out_channels = packed.groups * packed.ig, packed.groups * packed.og
    if job.depthwise:
        job.groups, job.og = 1, job.channels
    job.quads, job.terms, job.item = packed.quads, packed.terms, 1 if target in (INT8, UINT8) else 4
    for axis in range(3):
        job.size[axis], job.out_size[axis] = x[axis + (1 if x_last else 2)], out[axis + (1 if out_last else 2)]
        job.kernel[axis], job.stride[axis], job.dilation[axis] = packed.kernel[axis], packed.stride[axis], packed.dilation[axis]
        job.before[axis] = pads[2 * axis]
        padding = padding or pads[2 * axis] != 0 or pads[2 * axis + 1] != 0
    job.work = 1.0 * images * job.out_size[0] * job.out_size[1] * job.out_size[2] * job.out_channels
    if job.work == 0:
        return 0  # no task at all
    job.work *= max(job.terms, <int64_t>1)
    job.x_last = x_last or job.channels == 1 or job.size[0] * job.size[1] * job.size[2] == 1
    job.out_last = out_last or job.out_channels == 1 or job.out_size[0] * job.out_size[1] * job.out_size[2] == 1
    job.flip = 0x80 if source == INT8 else 0
    run = job.ig * (job.kernel[2] if job.dilation[2] == 1 else 1)
    # A quad may be read past a run's end, so runs of other lengths are read from scratch.
    job.in_place = job.x_last and not padding and not job.flip and (job.depthwise or run % 4 == 0)
    job.cols = even(job.out_size[2], PIXELS)
    most = PIXELS // job.cols
    if job.depthwise:
        job.cols = job.out_size[2]
        most = BAND // max(job.size[2] * job.channels * job.stride[1], <int64_t>1)
    job.rows = even(job.out_size[1], max(most, <int64_t>1))
    job.row_tasks, job.col_tasks = (job.out_size[1] + job.rows - 1) // job.rows, (job.out_size[2] + job.cols - 1) // job.cols
    job.tasks = images * job.groups * job.out_size[0] * job.row_tasks * job.col_tasks
    job.width = job.og if job.depthwise else width_of(job.og, COLS, job.tasks, 8)
    job.width_tasks = 1 if job.depthwise else (job.og + job.width - 1) // job.width
    job.tasks *= job.width_tasks
    high, wide = reach(job, 1, job.rows), reach(job, 2, job.cols)
    job.pixel = job.channels if job.in_place or job.depthwise else job.ig
    job.row = job.size[2] * job.channels if job.in_place else wide * job.pixel
    job.plane = job.dilation[0] * job.size[1] * job.row if job.in_place else high * job.row
    count = job.kernel[0] * job.kernel[1] * job.kernel[2]
    job.at_band = rounded((count + 3 if job.depthwise else job.rows * job.cols) * sizeof(void *))
    job.at_flat = job.at_band + (0 if job.in_place else rounded(job.kernel[0] * job.plane + 4))
    job.at_out = job.at_flat + (0 if job.in_place or not job.flip else rounded(wide * job.pixel))
    job.at_sums = job.at_out + (0 if job.out_last else rounded(job.rows * job.cols * job.width * job.item))
    job.scratch_size = job.at_sums + (0 if packed.zero == NULL else rounded(job.rows * job.cols * sizeof(int32_t)))
    if not job.depthwise:
        job.lists = need(count * (sizeof(fl_qrun) + sizeof(int64_t)), "qconv")
        job.runs = <fl_qrun *>job.lists
        job.lengths = <int64_t *>(job.runs + count)
        plan_runs(job)
    return 0


cdef void correct(Job *job, int32_t *offset, float *scale) noexcept nogil:
    """Computes the summand and the factor of the sums, once x's zero point and scale are known: sum (x - xz)(w - wz) = sum x w
    - xz sum w - wz sum x + terms xz wz."""
    cdef int zero = 0
    cdef bint scaled = job.factor != NULL and job.x_scale != NULL
    if job.x_zero != NULL:
        zero = job.x_zero[0]
    zero = (zero ^ job.flip) & 0xff
    job.fill = <uint8_t>zero
    job.level.correct(job.bias, job.sums, job.epilogue.zero, zero, <int32_t>(<uint32_t>job.terms * <uint32_t>zero), offset,
                      job.factor if scaled else NULL, job.x_scale[0] if scaled else 0, scale, job.groups * padded(job.og))
    job.epilogue.offset = offset
    if job.factor != NULL:
        job.epilogue.scale = scale if scaled else job.factor


cdef int plan_qconv(Job *job, void **owned, PackedQConv packed, tuple given, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, bint x_last,
                    bint out_last, int source, int target, int value) except -1:
    packed.fits(given, x_last | out_last << 1, pads)
    job.lists = NULL
    try:
        return plan_call(job, packed, x, out, pads, x_last, out_last, source, target, value)
    finally:
        owned[0] = job.lists


cdef int run_qconv(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, its zero point or NULL, its scale or NULL, out."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int threads = workers(job.tasks, job.work)
    cdef size_t numbers = rounded(job.groups * padded(job.og) * 4)
    cdef char *block
    if job.tasks == 0:
        return 0
    job.x, job.x_zero, job.x_scale, job.out = <const uint8_t *>operands[0], <const uint8_t *>operands[1], <const float *>operands[2], <char *>operands[3]
    block = <char *>alloc(threads * job.scratch_size + 2 * numbers)
    if block == NULL:
        return -1
    correct(&job, <int32_t *>block, <float *>(block + numbers))
    job.scratch = block + 2 * numbers
    parallel(depthwise_task if job.depthwise else task, &job, job.tasks, threads)
    release(block)
    return 0


include "made/qconv.pxi"
