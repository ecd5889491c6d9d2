"""Depthwise convolution in 1 to 3 dimensions, native in both layouts.

Channels-last (`rows_task`): a row of the output is computed where its input is; only pixels whose taps reach into the padding
get a list of pointers, to the input or to zeros. With a channel multiplier the input rows are copied, each channel repeated.
Narrow planes of either layout go sixteen channels at a time (`_blocks.pyx`).
Channels-first (`plane_task`): planes of usual kernels are read where they are (`csrc/depthwise_plain.h`). Otherwise a band of padded
rows of one channel is copied to scratch, its columns sorted by their phase of the stride, so that neighbouring outputs read
neighbouring floats. Channels-last data of few channels goes that way too.
All add in the same order: results are equal bit for bit.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memset
cimport numpy as cnp

import numpy as np

from ._blocks cimport Blocks, blocks_task, plan_blocks
from ._engine cimport FL_KC, FL_PANEL, alloc, copied, fl_dw_copy, fl_dw_first, fl_dw_last, fl_kernels, level, need, parallel, release, workers
from ._fit cimport Fit, check_groups, fit_of, read_steps
from ._space cimport even, rounded, source_index

cnp.import_array()

cdef enum:
    TASK = 1 << 18   # multiply-adds of one task, about
    BAND = 6000      # floats of a band of padded rows: it stays in a first-level cache, the output next to it
    COLUMNS = 4096   # at most so many output columns in a band
    SLACK = 32       # floats past a band that may be read
    COST = 15        # an output's share of writing, in the operations that `workers` counts,
    READ = 16        # and that of an input


cdef Fit PACK = fit_of("depthwise_pack"), FIT = fit_of("depthwise")


@cython.final
cdef class PackedDepthwise:
    """Weights of a depthwise convolution for both layouts. Immutable; may be used by any number of threads at once."""
    cdef float *first  # [o][kd, kh, kw]
    cdef float *last   # [kd, kh, kw][o]
    cdef float *blocks # [o / 16][kd, kh, kw][16], of kernels of one plane, or NULL
    cdef float *bias   # [o], whole sixteens, zeros past the end and if there is none
    cdef readonly int64_t nbytes
    cdef int64_t channels, multiplier, taps
    cdef int64_t kernel[3]
    cdef int64_t stride[3]
    cdef int64_t dilation[3]

    def __dealloc__(self):
        release(self.first)
        release(self.last)
        release(self.blocks)
        release(self.bias)

    cdef int fits(self, tuple arrays, int layout, pads) except -1:
        cdef int64_t known[2]
        known[0], known[1] = self.channels, self.channels * self.multiplier
        return FIT.check_window(known, arrays, layout, pads, self.kernel, self.stride, self.dilation)


def depthwise_pack(cnp.ndarray weight__o1dhw, bias__o, stride, dilation, int64_t channels):
    """Weights (channels * multiplier, 1, kd, kh, kw) and bias (channels * multiplier,) or None, with stride and dilation."""
    PACK.check(NULL, (weight__o1dhw, bias__o), 0)
    cdef PackedDepthwise packed = PackedDepthwise.__new__(PackedDepthwise)
    cdef int64_t o = weight__o1dhw.shape[0], axis
    check_groups("depthwise_pack", "channels", channels, o)
    read_steps("depthwise_pack", stride, dilation, packed.stride, packed.dilation)
    packed.channels, packed.multiplier, packed.taps = channels, o // max(channels, <int64_t>1), 1
    for axis in range(3):
        packed.kernel[axis] = weight__o1dhw.shape[2 + axis]
        packed.taps *= packed.kernel[axis]
    flat = weight__o1dhw.reshape(o, packed.taps)
    packed.first, packed.last = copied(flat, "depthwise_pack"), copied(np.ascontiguousarray(flat.T), "depthwise_pack")
    cdef int64_t whole = (o + FL_PANEL - 1) // FL_PANEL * FL_PANEL
    bias = np.zeros(whole, np.float32)
    if bias__o is not None:
        bias[:o] = bias__o
    packed.bias = copied(bias, "depthwise_pack")
    packed.nbytes = (2 * o * packed.taps + whole) * sizeof(float)
    if packed.kernel[0] == 1 and packed.taps <= FL_KC:
        wide = np.zeros((whole, packed.taps), np.float32)
        wide[:o] = flat
        wide = wide.reshape(whole // FL_PANEL, FL_PANEL, packed.taps).transpose(0, 2, 1)
        packed.blocks = copied(np.ascontiguousarray(wide), "depthwise_pack")
        packed.nbytes += whole * packed.taps * sizeof(float)
    return packed


cdef struct Job:
    const fl_kernels *level
    const float *x
    float *out
    const float *residual
    const float *w           # [o][taps] or [taps][o]
    const float *bias
    int64_t channels, multiplier, ntaps
    int64_t size[3]          # of the input
    int64_t out_size[3]
    int64_t kernel[3]
    int64_t stride[3]
    int64_t dilation[3]
    int64_t before[3]
    int mode, code
    float a, b
    bint channels_last, in_place, planes
    bint plain               # planes are read where they are, padding left out: see csrc/depthwise_plain.h
    bint blocked             # instead of all below: sixteen channels at a time
    Blocks blocks
    double work
    # how the work is cut: `lanes` input channels, rows x cols outputs
    int64_t lanes, rows, cols, lane_tasks, row_tasks, col_tasks, tasks
    # floats between rows and between planes of a band; for plane_task also between neighbouring pixels of the input and between
    # the phases of a row
    int64_t pixel, row, plane, phase
    void *lists              # the plan's own memory: one of these
    int64_t *taps            # plane_task: offsets of the taps from an output's place in the band
    float *zeros             # rows_task: a row of the input's width in zeros
    # scratch of one worker, in bytes, and where its parts start
    char *scratch
    size_t scratch_size, at_out, at_residual, at_copies


cdef inline int64_t reach(const Job *job, int axis, int64_t outputs) noexcept nogil:
    """Padded input positions under `outputs` neighbouring outputs along an axis."""
    return (outputs - 1) * job.stride[axis] + (job.kernel[axis] - 1) * job.dilation[axis] + 1


cdef inline const float *moved(const float *p, int64_t offset) noexcept nogil:
    """p + offset, or NULL if there is no p."""
    if p == NULL:
        return NULL
    return p + offset


# ---- channels-first ------------------------------------------------------------------------------------------------------


cdef int64_t row_copies(const Job *job, fl_dw_copy *copies, int64_t from_, int64_t to, int64_t start,
                        int64_t wide) noexcept nogil:
    """Copies that make padded positions start .. start + wide - 1 of a row, sorted by phase; returns how many."""
    cdef int64_t w = job.size[2], step = job.stride[2], before = job.before[2], u, n, i, i0, i1, first, count = 0
    for u in range(min(step, wide)):
        n = (wide - u + step - 1) // step        # positions u, u + step, ... of which i0 .. i1 - 1 are in the input
        first = start + u - before
        i0 = min((step - 1 - first) // step, n) if first < 0 else 0
        i1 = max(min((w - first + step - 1) // step, n), i0) if first < w else i0
        if i1 > i0:
            copies[count].from_, copies[count].to, copies[count].n = from_ + (first + i0 * step) * job.pixel, to + i0, i1 - i0
            count += 1
        for i in range(n - (i1 - i0) if job.mode != 0 else 0):
            i = i if i < i0 else i + i1 - i0
            copies[count].from_ = from_ + source_index(start + u + i * step, before, w, job.mode) * job.pixel
            copies[count].to, copies[count].n = to + i, 1
            count += 1
        to += job.phase
    return count


cdef int64_t band_copies(const Job *job, fl_dw_copy *copies, int64_t od, int64_t oh, int64_t rows, int64_t ow,
                         int64_t cols) noexcept nogil:
    """Copies that make the padded rows of one channel under rows x cols outputs that start at (od, oh, ow); returns how many."""
    cdef int64_t high = reach(job, 1, rows), wide = reach(job, 2, cols), z, y, at_z, at_y, count = 0
    for z in range(job.kernel[0]):
        at_z = source_index(od * job.stride[0] + z * job.dilation[0], job.before[0], job.size[0], job.mode)
        for y in range(high):
            at_y = source_index(oh * job.stride[1] + y, job.before[1], job.size[1], job.mode)
            if at_z >= 0 and at_y >= 0:
                count += row_copies(job, copies + count, (at_z * job.size[1] + at_y) * job.size[2] * job.pixel,
                                    z * job.plane + y * job.row, ow * job.stride[2], wide)
    return count


cdef void plane_channel(const Job *job, char *scratch, fl_dw_first *p, int64_t channel, int64_t to) noexcept nogil:
    """One output channel of a band; `to`: where its first output is."""
    cdef int64_t pixel = job.channels * job.multiplier if job.channels_last else 1, y, j
    cdef float *row
    p.w, p.bias = job.w + channel * job.ntaps, job.bias[channel]
    if not job.channels_last:
        p.out, p.ldo = job.out + to, job.out_size[2]
        p.residual = moved(job.residual, to)
        job.level.depthwise_first(p)
        return
    p.out, p.ldo, p.residual = <float *>(scratch + job.at_out), p.cols, NULL
    if job.residual != NULL:
        p.residual = <const float *>(scratch + job.at_residual)
        for y in range(p.rows):
            job.level.gather(job.residual + to + y * job.out_size[2] * pixel, pixel, <float *>p.residual + y * p.cols, p.cols)
    job.level.depthwise_first(p)
    for y in range(p.rows):
        row = job.out + to + y * job.out_size[2] * pixel
        for j in range(p.cols):
            row[j * pixel] = p.out[y * p.cols + j]


cdef void plane_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef Job *job = <Job *>context
    # Even pieces: none is shorter than a vector unless the row is.
    cdef int64_t piece = number % job.col_tasks
    cdef int64_t ow = job.out_size[2] * piece // job.col_tasks
    cdef int64_t rest = number // job.col_tasks
    cdef int64_t oh = rest % job.row_tasks * job.rows
    rest = rest // job.row_tasks
    cdef int64_t od = rest % job.out_size[0]
    rest = rest // job.out_size[0]
    cdef int64_t c0 = rest % job.lane_tasks * job.lanes, image = rest // job.lane_tasks, c, k, o, to
    cdef int64_t rows = min(job.rows, job.out_size[1] - oh), cols = job.out_size[2] * (piece + 1) // job.col_tasks - ow
    cdef int64_t volume = job.size[0] * job.size[1] * job.size[2]
    cdef int64_t out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    cdef int64_t first = (od * job.out_size[1] + oh) * job.out_size[2] + ow, channels = job.channels * job.multiplier
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef fl_dw_copy *copies = <fl_dw_copy *>(scratch + job.at_copies)
    cdef int64_t ncopies = 0
    cdef fl_dw_first p
    p.plain = 0
    if job.plain:
        p.plain, p.h_in, p.w_in = job.stride[2], job.size[1], job.size[2]
        p.top, p.left, p.zeros = job.before[1] - oh * job.stride[1], job.before[2], job.zeros
    elif not job.in_place:  # all channels share the copies and the zeros around them
        memset(scratch, 0, job.at_out)
        ncopies = band_copies(job, copies, od, oh, rows, ow, cols)
    p.copies, p.source_step = copies, job.stride[2] * job.pixel
    p.taps, p.kh, p.kw = job.taps, job.kernel[0] * job.kernel[1], job.kernel[2]
    p.row, p.step = job.dilation[1] * job.row if job.kernel[0] == 1 else 0, job.stride[1] * job.row
    p.rows, p.cols, p.code, p.a, p.b = rows, cols, job.code, job.a, job.b
    for c in range(c0, min(job.channels, c0 + job.lanes)):
        p.source = job.x + (image * volume * job.channels + c if job.channels_last else (image * job.channels + c) * volume)
        p.x, p.ncopies = <float *>scratch, ncopies
        if job.in_place and not job.plain:
            p.x = <float *>p.source + (od * job.stride[0] * job.size[1] + oh * job.stride[1]) * job.row + ow
        for k in range(job.multiplier):  # the band is made once
            o = c * job.multiplier + k
            to = (image * out_volume + first) * channels + o if job.channels_last else (image * channels + o) * out_volume + first
            plane_channel(job, scratch, &p, o, to)
            p.ncopies = 0


cdef void plan_taps(Job *job) noexcept nogil:
    cdef int64_t z, y, x, t = 0, at
    for z in range(job.kernel[0]):
        for y in range(job.kernel[1]):
            for x in range(job.kernel[2]):
                at = x * job.dilation[2]
                job.taps[t] = (z * job.plane + y * job.dilation[1] * job.row
                               + at % job.stride[2] * job.phase + at // job.stride[2])
                t += 1


cdef bint is_plain(const Job *job) noexcept nogil:
    """Are planes read where they are, and is that faster than a padded copy and than sixteen channels at a time?"""
    cdef int64_t k = job.kernel[2], step = job.stride[2]
    if job.channels_last or job.mode != 0 or not job.size[0] == job.out_size[0] == job.kernel[0] == 1 or job.level.width < 8:
        return False
    if job.kernel[1] != k or job.stride[1] != step or step > 2 or job.dilation[1] != 1 or job.dilation[2] != 1 or job.out_size[1] < 4:
        return False
    if min(job.before[0], job.before[1], job.before[2]) < 0:
        return False
    # By columns of the result: 3x3@28 0.85 of the time, @22 1.07; with stride 2 3x3@16 0.52, @14 1.25, 5x5@28 0.69, @20 1.6.
    if k == 3:
        return job.out_size[2] >= 25 or step == 2 and job.out_size[2] >= 16
    return k == 5 and step == 2 and job.out_size[2] >= 25


cdef int64_t plan_plain(Job *job) noexcept nogil:
    """Tasks of several channels, or of rows of one."""
    cdef int64_t row = max(job.out_size[2] * job.ntaps, <int64_t>1)
    job.in_place, job.cols, job.col_tasks = True, job.out_size[2], 1
    job.rows = even(job.out_size[1], max(TASK // row, <int64_t>4))
    while job.rows < job.out_size[1] and 0 < job.out_size[1] % job.rows < 4:  # no piece may be lower than a group of rows
        job.rows += 1
    job.row_tasks = (job.out_size[1] + job.rows - 1) // job.rows
    job.lanes = max(min(job.channels, TASK // (job.rows * row * job.multiplier)), <int64_t>1)
    job.lane_tasks = (job.channels + job.lanes - 1) // job.lanes
    return job.row_tasks * job.lane_tasks


cdef int64_t plan_planes(Job *job, bint padded, bint residual) noexcept nogil:
    """Cuts bands that fit BAND and tasks of several channels; returns the number of tasks of an image."""
    cdef int64_t wide, each
    job.pixel = job.channels if job.channels_last else 1
    if job.plain:
        return plan_plain(job)
    job.cols = even(job.out_size[2], COLUMNS)
    wide = reach(job, 2, job.cols)
    job.phase = (wide + job.stride[2] - 1) // job.stride[2]
    job.row = job.phase * job.stride[2]
    job.in_place = not padded and not job.channels_last and job.stride[2] == 1 and job.cols >= job.level.width
    if job.in_place:
        job.row, job.phase = job.size[2], 0
    each = BAND // max(job.kernel[0] * job.row, <int64_t>1) - (job.kernel[1] - 1) * job.dilation[1]
    job.rows = even(job.out_size[1], max((each + job.stride[1] - 1) // job.stride[1], <int64_t>4))
    job.plane = job.dilation[0] * job.size[1] * job.row if job.in_place else reach(job, 1, job.rows) * job.row
    job.lanes = max(min(job.channels, TASK // max(job.rows * job.cols * job.multiplier * job.ntaps, <int64_t>1)), <int64_t>1)
    job.row_tasks, job.col_tasks = (job.out_size[1] + job.rows - 1) // job.rows, (job.out_size[2] + job.cols - 1) // job.cols
    job.lane_tasks = (job.channels + job.lanes - 1) // job.lanes
    job.at_out = 0 if job.in_place else rounded((job.kernel[0] * job.plane + SLACK) * sizeof(float))
    job.at_residual = job.at_out + (rounded((job.rows * job.cols + SLACK) * sizeof(float)) if job.channels_last else 0)
    job.at_copies = job.at_residual + (job.at_residual - job.at_out if residual else 0)
    job.scratch_size = job.at_copies
    if not job.in_place:  # a row is a copy a phase and, unless zeros surround it, one for each position in the padding
        each = min(job.stride[2], wide) + (wide if job.mode != 0 else 0)
        job.scratch_size += rounded(job.kernel[0] * reach(job, 1, job.rows) * each * sizeof(fl_dw_copy))
    return job.out_size[0] * job.row_tasks * job.col_tasks * job.lane_tasks


# ---- channels-last -------------------------------------------------------------------------------------------------------


cdef void fill_repeated(const Job *job, const float *x, float *to, int64_t od, int64_t oh, int64_t rows) noexcept nogil:
    """The padded rows under `rows` rows of outputs from (od, oh) on, each channel `multiplier` times. x: the image."""
    cdef int64_t high = reach(job, 1, rows), wide = reach(job, 2, job.out_size[2]), pixel = job.channels * job.multiplier
    cdef int64_t z, y, i, c, k, at_z, at_y, at
    cdef const float *from_
    cdef float *row
    for z in range(job.kernel[0]):
        at_z = source_index(od * job.stride[0] + z * job.dilation[0], job.before[0], job.size[0], job.mode)
        for y in range(high):
            at_y = source_index(oh * job.stride[1] + y, job.before[1], job.size[1], job.mode)
            row = to + z * job.plane + y * job.row
            for i in range(wide):
                at = source_index(i, job.before[2], job.size[2], job.mode)
                if at_z < 0 or at_y < 0 or at < 0:
                    memset(row + i * pixel, 0, pixel * sizeof(float))
                    continue
                from_ = x + ((at_z * job.size[1] + at_y) * job.size[2] + at) * job.channels
                for c in range(job.channels):
                    for k in range(job.multiplier):
                        row[i * pixel + c * job.multiplier + k] = from_[c]


cdef void border(const Job *job, fl_dw_last *p, const float **rows, const float **taps, int64_t start,
                 int64_t stop) noexcept nogil:
    """Pixels start .. stop - 1 of a row, whose taps reach into the padding. p.out, p.residual: the row's start."""
    cdef int64_t o, r, u, at
    cdef fl_dw_last q = p[0]
    q.taps, q.cols, q.kw = taps, 1, 1
    for o in range(start, stop):
        for u in range(job.kernel[2]):
            at = source_index(o * job.stride[2] + u * job.dilation[2], job.before[2], job.size[2], job.mode)
            for r in range(job.kernel[0] * job.kernel[1]):
                taps[r * job.kernel[2] + u] = rows[r] + at * p.c
                if at < 0:
                    taps[r * job.kernel[2] + u] = job.zeros
        q.out = p.out + o * p.c
        q.residual = moved(p.residual, o * p.c)
        job.level.depthwise_last(&q)


cdef void one_row(const Job *job, fl_dw_last *p, const float **rows, const float **taps) noexcept nogil:
    """A row of outputs from the input rows that its kernel rows read. p.out, p.residual: the row's start."""
    cdef int64_t w = job.size[2], step = job.stride[2], before = job.before[2], ow = job.out_size[2]
    cdef int64_t room = w + before - reach(job, 2, 1)
    cdef int64_t i0 = min((before + step - 1) // step, ow), i1 = max(min(room // step + 1 if room >= 0 else 0, ow), i0), r, u
    cdef fl_dw_last q = p[0]
    if i0 > 0:
        border(job, p, rows, taps, 0, i0)
    if i1 > i0:
        for r in range(job.kernel[0] * job.kernel[1]):
            for u in range(job.kernel[2]):
                taps[r * job.kernel[2] + u] = rows[r] + (i0 * step - before + u * job.dilation[2]) * p.c
        q.taps, q.cols = taps, i1 - i0
        q.out, q.residual = p.out + i0 * p.c, moved(p.residual, i0 * p.c)
        job.level.depthwise_last(&q)
    if i1 < ow:
        border(job, p, rows, taps, i1, ow)


cdef void repeated_row(const Job *job, fl_dw_last *p, const float *band, const float **taps, int64_t y) noexcept nogil:
    """Row y of the outputs over a band that `fill_repeated` made."""
    cdef int64_t z, r, u, t = 0
    for z in range(job.kernel[0]):
        for r in range(job.kernel[1]):
            for u in range(job.kernel[2]):
                taps[t] = band + z * job.plane + (y * job.stride[1] + r * job.dilation[1]) * job.row + u * job.dilation[2] * p.c
                t += 1
    p.taps, p.cols = taps, job.out_size[2]
    job.level.depthwise_last(p)


cdef void rows_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef Job *job = <Job *>context
    cdef int64_t oh = number % job.row_tasks * job.rows
    cdef int64_t rest = number // job.row_tasks
    cdef int64_t od = rest % job.out_size[0], image = rest // job.out_size[0]
    cdef int64_t rows = min(job.rows, job.out_size[1] - oh), pixel = job.channels * job.multiplier, y, z, r, at_z, at_y, to
    cdef const float *x = job.x + image * job.size[0] * job.size[1] * job.size[2] * job.channels
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const float **taps = <const float **>scratch
    cdef const float **kernel_rows = taps + job.ntaps
    cdef fl_dw_last p
    p.ntaps, p.kw, p.step = job.ntaps, job.kernel[2] if job.dilation[2] == 1 else 1, job.stride[2] * pixel
    p.w, p.bias, p.c, p.code, p.a, p.b = job.w, job.bias, pixel, job.code, job.a, job.b
    if job.multiplier > 1:
        fill_repeated(job, x, <float *>(scratch + job.at_out), od, oh, rows)
    for y in range(rows):
        to = ((image * job.out_size[0] + od) * job.out_size[1] + oh + y) * job.out_size[2] * pixel
        p.out, p.residual = job.out + to, moved(job.residual, to)
        if job.multiplier > 1:
            repeated_row(job, &p, <const float *>(scratch + job.at_out), taps, y)
            continue
        for z in range(job.kernel[0]):
            at_z = source_index(od * job.stride[0] + z * job.dilation[0], job.before[0], job.size[0], job.mode)
            for r in range(job.kernel[1]):
                at_y = source_index((oh + y) * job.stride[1] + r * job.dilation[1], job.before[1], job.size[1], job.mode)
                kernel_rows[z * job.kernel[1] + r] = x + (at_z * job.size[1] + at_y) * job.size[2] * pixel
                if at_z < 0 or at_y < 0:
                    kernel_rows[z * job.kernel[1] + r] = job.zeros
        one_row(job, &p, kernel_rows, taps)


cdef int64_t plan_rows(Job *job) noexcept nogil:
    """Cuts bands of rows; returns the number of tasks of an image."""
    cdef int64_t pixel = job.channels * job.multiplier
    job.rows = even(job.out_size[1], max(TASK // max(job.out_size[2] * pixel * job.ntaps, <int64_t>1), <int64_t>1))
    job.row_tasks = (job.out_size[1] + job.rows - 1) // job.rows
    job.at_out = rounded(2 * job.ntaps * sizeof(float *))
    job.scratch_size = job.at_out
    if job.multiplier > 1:
        job.row = reach(job, 2, job.out_size[2]) * pixel
        job.plane = reach(job, 1, job.rows) * job.row
        job.scratch_size += rounded(job.kernel[0] * job.plane * sizeof(float))
    return job.out_size[0] * job.row_tasks


# ---- sixteen channels at a time ------------------------------------------------------------------------------------------


cdef bint by_blocks(const Job *job) noexcept nogil:
    """Are blocks of channels faster than rows? Measured on 1 to 112 pixels a side at two levels, ratios of times next to it."""
    cdef int64_t cols = job.out_size[2], step = job.stride[2]
    if job.size[0] != 1 or job.out_size[0] != 1 or job.before[0] != 0 or min(job.before[1], job.before[2]) < 0:
        return False
    if job.multiplier > 1:
        return job.channels_last and not job.planes  # 7x7 48->96@28 with stride 2: 0.24, 3x3 0.37, 7x7 192->384@7 0.27
    if job.out_size[1] < 4:  # a sequence, or nearly
        return job.ntaps >= 5 and (not job.channels_last or job.kernel[2] > 7)  # 5@100 0.65; channels-last 9@200 0.77, 7@100 1.13
    if job.channels_last:
        if job.ntaps >= 49:
            return True  # 7x7@7 0.36, @28 0.6, @56 0.85
        if job.ntaps >= 25:
            return cols <= (40 if step == 1 else 8)  # 5x5@7 0.4, @28 0.87; stride 2 @14 0.83, @28 1.05
        return step == 1 and 5 <= cols <= 20  # 3x3@7 0.86, @20 0.78, @28 0.97; stride 2 @28 1.8
    if step > 1:
        return cols <= 24  # 3x3@14 0.3, @28 0.6, @56 1
    if cols % FL_PANEL == 0:
        return False  # whole vectors: 3x3@16 1.2, 5x5@32 1.37
    return cols <= (64 if job.ntaps >= 25 else 18)  # 5x5@7 0.32, @28 0.92, 7x7@56 0.85; 3x3@7 0.4, @18 0.8, @28 1.4


cdef void plan_all_blocks(Job *job, PackedDepthwise packed, int64_t images, bint residual) noexcept nogil:
    cdef Blocks *p = &job.blocks
    cdef int axis
    p.level, p.channels, p.many = job.level, job.channels * job.multiplier, job.multiplier
    p.last, p.code, p.a, p.b = job.channels_last, job.code, job.a, job.b
    p.w, p.bias = packed.blocks, packed.bias
    for axis in range(2):
        p.size[axis], p.out_size[axis], p.before[axis] = job.size[1 + axis], job.out_size[1 + axis], job.before[1 + axis]
        p.kernel[axis], p.stride[axis], p.dilation[axis] = job.kernel[1 + axis], job.stride[1 + axis], job.dilation[1 + axis]
    plan_blocks(p, images * job.out_size[0], residual)
    job.tasks, job.scratch_size = p.tasks, p.scratch_size


# ---- both ----------------------------------------------------------------------------------------------------------------


cdef int plan_call(Job *job, PackedDepthwise packed, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, int mode,
                        bint channels_last, bint residual, activation) except -1:
    """Everything about a call but where its arrays are. Gives the plan `lists`, which the caller releases."""
    cdef int64_t axis, space = 1 if channels_last else 2
    cdef bint padded = False
    cdef size_t bytes
    memset(job, 0, sizeof(Job))
    job.level = level()
    job.channels, job.multiplier, job.ntaps = packed.channels, packed.multiplier, packed.taps
    for axis in range(3):
        job.size[axis], job.out_size[axis] = x[space + axis], out[space + axis]
        job.kernel[axis], job.stride[axis], job.dilation[axis] = packed.kernel[axis], packed.stride[axis], packed.dilation[axis]
        job.before[axis] = pads[2 * axis]
        padded = padded or pads[2 * axis] != 0 or pads[2 * axis + 1] > 0  # below 0: the last positions of x are not read
    job.mode, job.channels_last = mode, channels_last
    job.code, job.a, job.b = activation
    job.work = <double>out[0] * out[1] * out[2] * out[3] * out[4]
    if job.work == 0:
        return 0  # no task at all
    job.work *= 2.0 * packed.taps + COST + READ * packed.stride[1] * packed.stride[2]
    job.planes = not channels_last or packed.channels * packed.multiplier < job.level.width
    job.w, job.bias = packed.first if job.planes else packed.last, packed.bias
    job.plain = job.planes and is_plain(job)
    job.blocked = not job.plain and packed.blocks != NULL and mode == 0 and by_blocks(job)
    if job.blocked:
        plan_all_blocks(job, packed, x[0], residual)
        return 0
    if job.planes:
        job.tasks = x[0] * plan_planes(job, padded, residual)
        bytes = job.ntaps * sizeof(int64_t)
        job.lists = job.taps = <int64_t *>need(bytes + (job.size[2] * sizeof(float) if job.plain else 0), "depthwise")
        if job.plain:
            job.zeros = <float *>(job.taps + job.ntaps)
            memset(job.zeros, 0, job.size[2] * sizeof(float))
        plan_taps(job)
        return 0
    job.tasks = x[0] * plan_rows(job)
    if job.multiplier == 1:
        bytes = (max(job.size[2], <int64_t>1) * job.channels + SLACK) * sizeof(float)
        job.lists = job.zeros = <float *>need(bytes, "depthwise")
        memset(job.zeros, 0, bytes)
    return 0


cdef int plan_depthwise(Job *job, void **owned, PackedDepthwise packed, tuple given, const cnp.npy_intp *x, const cnp.npy_intp *out, pads,
                        int mode, bint channels_last, bint residual, activation) except -1:
    packed.fits(given, channels_last, pads)
    job.lists = NULL
    try:
        return plan_call(job, packed, x, out, pads, mode, channels_last, residual, activation)
    finally:
        owned[0] = job.lists


cdef int run_depthwise(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, residual or NULL."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int threads = workers(job.tasks, job.work)
    if job.tasks == 0:
        return 0
    job.x, job.out, job.residual = <const float *>operands[0], <float *>operands[1], <const float *>operands[2]
    job.scratch = <char *>alloc(threads * job.scratch_size)
    if job.scratch == NULL:
        return -1
    if job.blocked:
        job.blocks.x, job.blocks.out, job.blocks.residual, job.blocks.scratch = job.x, job.out, job.residual, job.scratch
        parallel(blocks_task, &job.blocks, job.tasks, threads)
    else:
        parallel(plane_task if job.planes else rows_task, &job, job.tasks, threads)
    release(job.scratch)
    return 0


include "made/depthwise.pxi"
