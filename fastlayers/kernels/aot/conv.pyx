"""Convolution in 1 to 3 dimensions over the packed matrix product, without an im2col matrix.

A pixel's taps are a few runs of consecutive floats in padded channels-last data (one a kernel row, since kw * c numbers of a row lie side
by side), so an output pixel is a row of the product, given by one pointer and a list of runs that all pixels share. A task pads (and, for
channels-first data, transposes) the few input rows that it needs into scratch that stays in cache; data that needs neither is read in place.

Channels-first data with few taps (a 1x1 kernel, or few channels) swap roles instead: the weights' rows are broadcast and pixels are the
panels, so that neither side is transposed. See `swapped` for the choice. Both walks add in the same order: results are equal bit for bit.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

import numpy as np

from ._engine cimport (
    FL_KC, FL_PANEL,
    alloc, copied, fl_block, fl_epilogue, fl_kernels, fl_panels, fl_run, level, need, parallel, release, workers,
)
from ._space cimport even, rounded, source_index
from ._step cimport Kept, dims_of, make_step, run_plan
from .gemm cimport pack_panels, panels_size

cnp.import_array()

cdef extern from "csrc/prefetch.h" nogil:
    void fl_prefetch_plane(const float *first, int64_t pitch, int64_t rows, int64_t n)

# Pixels and columns of one task: the sums of a task (256 KB) and a block of weights (256 KB) stay in a second-level cache.
cdef enum:
    PIXELS = 256
    COLS = 256
    STRIP = 64    # pixels of swapped roles that are packed at once: four panels
    FEW = 128  # pixels: below, the last panel's empty columns cost more than transposing (measured: 49 pixels 1.3, 196 pixels 0.9 times as long)


@cython.final
cdef class PackedConv:
    """Weights of a convolution in panels, K in the order (kd, kh, kw, c). Immutable; may be used by any number of threads at once."""
    cdef float *b      # groups x panels
    cdef float *bias   # groups x whole panels, or NULL
    cdef float *rows   # [o][kd, kh, kw, i]: the same weights unpacked, or NULL where roles are never swapped
    cdef float *bias_rows
    cdef int64_t groups, ig, og, k
    cdef int64_t kernel[3]
    cdef int64_t stride[3]
    cdef int64_t dilation[3]

    def __dealloc__(self):
        release(self.b)
        release(self.bias)
        release(self.rows)
        release(self.bias_rows)


def conv_pack(cnp.ndarray weight__oidhw, cnp.ndarray bias__o, stride, dilation, int64_t groups):
    """Weights (o, i / groups, kd, kh, kw) of a convolution with its stride, dilation and groups."""
    cdef PackedConv packed = PackedConv.__new__(PackedConv)
    cdef int64_t o = weight__oidhw.shape[0], axis, g, size, width
    packed.groups, packed.ig, packed.og = groups, weight__oidhw.shape[1], o // groups
    packed.k = packed.ig
    for axis in range(3):
        packed.kernel[axis], packed.stride[axis], packed.dilation[axis] = weight__oidhw.shape[2 + axis], stride[axis], dilation[axis]
        packed.k *= packed.kernel[axis]
    cdef cnp.ndarray ordered = np.ascontiguousarray(weight__oidhw.transpose(0, 2, 3, 4, 1))
    cdef const float *w = <const float *>cnp.PyArray_DATA(ordered)
    size, width = panels_size(packed.og, packed.k), panels_size(packed.og, 1)
    packed.b = <float *>need(groups * size * sizeof(float), "conv_pack")
    for g in range(groups):
        pack_panels(w + g * packed.og * packed.k, packed.og, packed.k, packed.k, 1, packed.b + g * size)
    if swapped(packed.k, packed.ig, packed.og):
        packed.rows = copied(ordered, "conv_pack")
    if bias__o is not None:
        wide = np.zeros((groups, width), np.float32)
        wide[:, :packed.og] = bias__o.reshape(groups, packed.og)
        packed.bias, packed.bias_rows = copied(wide, "conv_pack"), copied(bias__o, "conv_pack")
    return packed


cdef bint swapped(int64_t k, int64_t ig, int64_t og) noexcept nogil:
    """Can it pay to make panels of channels-first pixels? Yes for 1x1 kernels, and for images with few channels and many outputs, where
    transposing the output is most of the work beside the sums: 3 -> 32 with stride 2 took 0.63 of the time, 3 -> 64 (7x7) 0.86, but
    64 -> 128 with stride 2 1.2 times as long."""
    return k <= ig or ig <= 8 and k < 4 * (ig + og)


cdef struct Job:
    const fl_kernels *level
    const float *x
    float *out
    const float *b
    const float *bias
    fl_epilogue epilogue    # of the whole output: residual points at its start
    int64_t groups, ig, og, k, channels, out_channels
    int64_t size[3]         # of the input
    int64_t out_size[3]
    int64_t kernel[3]
    int64_t stride[3]
    int64_t dilation[3]
    int64_t before[3]
    int mode
    bint x_last, out_last   # channels-last
    bint in_place           # channels-last data without padding: pixels are read where they are
    bint swap
    double work
    # how the work is cut: rows x cols output pixels, `width` columns of the product
    int64_t rows, cols, width, row_tasks, col_tasks, width_tasks, tasks
    # floats between neighbouring pixels, rows, and the planes that neighbouring taps along depth read
    int64_t pixel, row, plane
    void *lists             # the plan's own memory: these runs and starts, or taps
    # runs of every block of K; the runs of block i are first[i] .. first[i + 1] - 1
    fl_run *runs
    int64_t *first
    int64_t blocks
    # instead, if roles are swapped: where each term of K lies, from the pixel; and, in scratch, the columns of one phase of the stride
    int64_t *taps
    int64_t phase
    # scratch of one worker, in bytes, and where its parts start
    char *scratch
    size_t scratch_size, at_input, at_sums, at_residual


cdef void plan_runs(Job *job) noexcept nogil:
    """Taps in the order (kd, kh, kw), neighbours merged into one run, cut where a block of K ends."""
    cdef int64_t z, y, x, offset, left, take, room = FL_KC, runs = 0, blocks = 0
    cdef fl_run *last
    job.first[0] = 0
    for z in range(job.kernel[0]):
        for y in range(job.kernel[1]):
            for x in range(job.kernel[2]):
                offset = z * job.plane + y * job.dilation[1] * job.row + x * job.dilation[2] * job.pixel
                left = job.ig
                while left > 0:
                    if room == 0:
                        blocks += 1
                        job.first[blocks] = runs
                        room = FL_KC
                    take = min(left, room)
                    last = &job.runs[runs - 1]
                    if runs > job.first[blocks] and last.offset + last.length == offset:
                        last.length += take
                    else:
                        job.runs[runs].offset, job.runs[runs].length = offset, take
                        runs += 1
                    offset += take
                    left -= take
                    room -= take
    job.first[job.blocks] = runs


cdef void fill_row(const Job *job, const float *x, int64_t step, float *to, int64_t start, int64_t cols) noexcept nogil:
    """Padded positions start .. start + cols - 1 of one input row, channels-last. x: the row's first element of the group's first channel;
    `step` floats lie between channels (channels-first) or the row's pixels lie `channels` apart (channels-last)."""
    cdef int64_t w = job.size[2], ig = job.ig, before = job.before[2]
    cdef int64_t i0 = min(max(before - start, <int64_t>0), cols), i1 = max(min(before + w - start, cols), i0), i, c, at
    cdef const float *inner = x + (start + i0 - before) * (job.channels if job.x_last else 1)
    if job.x_last:
        if ig == job.channels:
            memcpy(to + i0 * ig, inner, (i1 - i0) * ig * sizeof(float))
        else:
            for i in range(i1 - i0):
                memcpy(to + (i0 + i) * ig, inner + i * job.channels, ig * sizeof(float))
    elif ig == 1:
        memcpy(to + i0, inner, (i1 - i0) * sizeof(float))
    else:
        job.level.transpose(inner, step, to + i0 * ig, ig, ig, i1 - i0)
    i = 0 if i0 > 0 else i1
    while i < cols:
        at = source_index(start + i, before, w, job.mode)
        if at < 0:
            memset(to + i * ig, 0, ig * sizeof(float))
        elif job.x_last:
            memcpy(to + i * ig, x + at * job.channels, ig * sizeof(float))
        else:
            for c in range(ig):
                to[i * ig + c] = x[c * step + at]
        i = i + 1 if i + 1 != i0 else i1


cdef void fill(const Job *job, const float *x, float *to, int64_t od, int64_t oh, int64_t rows, int64_t ow, int64_t cols) noexcept nogil:
    """The padded input rows under rows x cols output pixels that start at (od, oh, ow). x: the group's first channel of the image."""
    cdef int64_t high = (rows - 1) * job.stride[1] + (job.kernel[1] - 1) * job.dilation[1] + 1
    cdef int64_t wide = (cols - 1) * job.stride[2] + (job.kernel[2] - 1) * job.dilation[2] + 1
    cdef int64_t z, y, at_z, at_y
    cdef int64_t step = job.size[0] * job.size[1] * job.size[2], pitch = job.size[2] * (job.channels if job.x_last else 1)
    for z in range(job.kernel[0]):
        at_z = source_index(od * job.stride[0] + z * job.dilation[0], job.before[0], job.size[0], job.mode)
        for y in range(high):
            at_y = source_index(oh * job.stride[1] + y, job.before[1], job.size[1], job.mode)
            if at_z < 0 or at_y < 0:
                memset(to + z * job.plane + y * job.row, 0, wide * job.ig * sizeof(float))
            else:
                fill_row(job, x + (at_z * job.size[1] + at_y) * pitch, step, to + z * job.plane + y * job.row,
                         ow * job.stride[2], wide)


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef Job *job = <Job *>context
    cdef int64_t j0 = number % job.width_tasks * job.width
    cdef int64_t rest = number // job.width_tasks
    cdef int64_t ow = rest % job.col_tasks * job.cols
    rest = rest // job.col_tasks
    cdef int64_t oh = rest % job.row_tasks * job.rows
    rest = rest // job.row_tasks
    cdef int64_t od = rest % job.out_size[0]
    rest = rest // job.out_size[0]
    cdef int64_t g = rest % job.groups, image = rest // job.groups
    cdef int64_t rows = min(job.rows, job.out_size[1] - oh), cols = min(job.cols, job.out_size[2] - ow)
    cdef int64_t width = min(job.width, job.og - j0), channel = g * job.og + j0, pixels = rows * cols
    cdef int64_t volume = job.size[0] * job.size[1] * job.size[2], out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    cdef int64_t x, first = (od * job.out_size[1] + oh) * job.out_size[2] + ow, i, y, k0
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const float **row = <const float **>scratch
    cdef const float *base
    cdef fl_epilogue e = job.epilogue
    cdef fl_block p

    base = job.x + (image * volume * job.channels + g * job.ig if job.x_last else (image * job.channels + g * job.ig) * volume)
    if job.in_place:
        base += od * job.stride[0] * job.size[1] * job.row + oh * job.stride[1] * job.row + ow * job.stride[2] * job.pixel
    else:
        fill(job, base, <float *>(scratch + job.at_input), od, oh, rows, ow, cols)
        base = <const float *>(scratch + job.at_input)
    i = 0
    for y in range(rows):
        for x in range(cols):
            row[i] = base + y * job.stride[1] * job.row + x * job.stride[2] * job.pixel
            i += 1

    if e.bias != NULL:
        e.bias += g * panels_size(job.og, 1) + j0
    if job.out_last:
        p.c, p.ldc = job.out + (image * out_volume + first) * job.out_channels + channel, job.out_channels
        if e.residual != NULL:
            e.residual += (image * out_volume + first) * job.out_channels + channel
    else:
        p.c, p.ldc = <float *>(scratch + job.at_sums), panels_size(width, 1)
        if e.residual != NULL:
            job.level.transpose(e.residual + (image * job.out_channels + channel) * out_volume + first, out_volume,
                                <float *>(scratch + job.at_residual), p.ldc, width, pixels)
            e.residual, e.ldr = <float *>(scratch + job.at_residual), p.ldc
        # The planes' lines are drawn in while the sums are made: the transposition at the end touches a page a channel. Eight 64@56
        # images took 1.87 ms each without, 1.57 with.
        fl_prefetch_plane(job.out + (image * job.out_channels + channel) * out_volume + first, out_volume, width, pixels)
    p.rows, p.m, p.n = row, pixels, width
    for i in range(job.blocks):
        k0 = i * FL_KC
        p.klen = min(<int64_t>FL_KC, job.k - k0)
        p.runs, p.nruns = job.runs + job.first[i], job.first[i + 1] - job.first[i]
        p.b = job.b + g * panels_size(job.og, job.k) + panels_size(job.og, 1) * k0 + j0 * p.klen
        p.ahead = NULL
        if i + 1 < job.blocks:
            p.ahead = p.b + (panels_size(job.og, 1) - j0) * p.klen + j0 * min(<int64_t>FL_KC, job.k - k0 - p.klen)
        p.accumulate = i > 0
        p.epilogue = &e if i == job.blocks - 1 else NULL
        job.level.block(&p)
    if not job.out_last:
        job.level.transpose(p.c, p.ldc, job.out + (image * job.out_channels + channel) * out_volume + first, out_volume, pixels, width)


cdef void plan_taps(Job *job) noexcept nogil:
    """Offsets of the terms of K in scratch [c][z][y][phase][column], or straight in the data."""
    cdef int64_t z, y, x, c, t = 0, at
    for z in range(job.kernel[0]):
        for y in range(job.kernel[1]):
            for x in range(job.kernel[2]):
                at = x * job.dilation[2]
                at = z * job.plane + y * job.dilation[1] * job.row + at % job.stride[2] * job.phase + at // job.stride[2]
                for c in range(job.ig):
                    job.taps[t] = c * job.pixel + at
                    t += 1


cdef void fill_phases(const Job *job, const float *x, float *to, int64_t od, int64_t oh, int64_t rows, int64_t ow, int64_t cols) noexcept nogil:
    """Padded input under rows x cols output pixels, channels-first, the columns of each row sorted by their phase of the stride."""
    cdef int64_t high = (rows - 1) * job.stride[1] + (job.kernel[1] - 1) * job.dilation[1] + 1
    cdef int64_t wide = (cols - 1) * job.stride[2] + (job.kernel[2] - 1) * job.dilation[2] + 1
    cdef int64_t w = job.size[2], step = job.stride[2], start = ow * step, before = job.before[2], c, z, y, u, n, i, i0, i1, at, at_z, at_y
    cdef const float *from_
    cdef float *row
    for c in range(job.ig):
        for z in range(job.kernel[0]):
            at_z = source_index(od * job.stride[0] + z * job.dilation[0], job.before[0], job.size[0], job.mode)
            for y in range(high):
                at_y = source_index(oh * job.stride[1] + y, job.before[1], job.size[1], job.mode)
                row = to + c * job.pixel + z * job.plane + y * job.row
                if at_z < 0 or at_y < 0:
                    memset(row, 0, step * job.phase * sizeof(float))
                    continue
                from_ = x + ((c * job.size[0] + at_z) * job.size[1] + at_y) * w
                for u in range(min(step, wide)):
                    n = (wide - u + step - 1) // step  # columns u, u + step, ... of which i0 .. i1 - 1 are inside
                    i0 = min(max((before - start - u + step - 1) // step if before > start + u else 0, <int64_t>0), n)
                    i1 = max(min((before + w - start - u + step - 1) // step if before + w > start + u else 0, n), i0)
                    job.level.gather(from_ + start + u + i0 * step - before, step, row + u * job.phase + i0, i1 - i0)
                    i = 0 if i0 > 0 else i1
                    while i < n:
                        at = source_index(start + u + i * step, before, w, job.mode)
                        row[u * job.phase + i] = 0 if at < 0 else from_[at]
                        i = i + 1 if i + 1 != i0 else i1


cdef void swapped_task(void *context, int64_t number, int worker) noexcept nogil:
    """Channels-first, roles swapped: out[o, pixel] = sum_k w[o, k] tap_k[pixel], pixels packed into panels block by block of K."""
    cdef Job *job = <Job *>context
    cdef int64_t j0 = number % job.width_tasks * job.width
    cdef int64_t rest = number // job.width_tasks
    cdef int64_t ow = rest % job.col_tasks * job.cols
    rest = rest // job.col_tasks
    cdef int64_t oh = rest % job.row_tasks * job.rows
    rest = rest // job.row_tasks
    cdef int64_t od = rest % job.out_size[0]
    rest = rest // job.out_size[0]
    cdef int64_t g = rest % job.groups, image = rest // job.groups
    cdef int64_t rows = min(job.rows, job.out_size[1] - oh), cols = min(job.cols, job.out_size[2] - ow)
    cdef int64_t volume = job.size[0] * job.size[1] * job.size[2], out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    cdef int64_t first = (od * job.out_size[1] + oh) * job.out_size[2] + ow, channel = g * job.og + j0, i, y, x, k0, start
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const float **row = <const float **>scratch
    cdef int64_t *pixels = <int64_t *>(scratch + job.at_residual)
    cdef fl_epilogue e = job.epilogue
    cdef fl_panels from_
    cdef fl_block p
    cdef fl_run run

    from_.base = job.x + (image * job.channels + g * job.ig) * volume
    if job.in_place:
        from_.base += od * job.plane + oh * job.row + ow
    else:
        fill_phases(job, from_.base, <float *>(scratch + job.at_input), od, oh, rows, ow, cols)
        from_.base = <const float *>(scratch + job.at_input)
    i = 0
    for y in range(rows):
        for x in range(cols):
            pixels[i] = y * job.stride[1] * job.row + x
            i += 1
    from_.slack, from_.b = not job.in_place, <float *>(scratch + job.at_sums)

    p.m = min(job.width, job.og - j0)
    for i in range(p.m):
        row[i] = job.b + (channel + i) * job.k
    if e.bias != NULL:
        e.bias += channel
    p.rows, p.runs, p.nruns, p.b, p.ahead, p.ldc = row, &run, 1, from_.b, NULL, out_volume
    p.c = job.out + (image * job.out_channels + channel) * out_volume + first
    if e.residual != NULL:
        e.residual += (image * job.out_channels + channel) * out_volume + first
    # A few panels at a time are made and used while the nearest cache holds them.
    start = 0
    while start < rows * cols:
        from_.pixels, from_.n = pixels + start, min(<int64_t>STRIP, rows * cols - start)
        p.n = from_.n
        for i in range(job.blocks):
            k0 = i * FL_KC
            p.klen = min(<int64_t>FL_KC, job.k - k0)
            run.offset, run.length = k0, p.klen
            from_.taps, from_.klen = job.taps + k0, p.klen
            job.level.panels(&from_)
            p.accumulate = i > 0
            p.epilogue = &e if i == job.blocks - 1 else NULL
            job.level.block(&p)
        start += STRIP
        p.c += STRIP
        if e.residual != NULL:
            e.residual += STRIP


cdef bint dense(const Job *job) noexcept nogil:
    """A 1x1 kernel with stride 1: every pixel of the input is a pixel of the output."""
    return job.k == job.ig and job.stride[0] == 1 and job.stride[1] == 1 and job.stride[2] == 1


cdef int64_t cut(Job *job, int64_t images, int64_t pixel_tasks, int64_t most, int64_t enough) noexcept nogil:
    """Cuts the product's columns into at most `most`, narrower where there would not be `enough` tasks. Returns the number of tasks."""
    job.width = min(job.og, most)
    while images * job.groups * pixel_tasks * ((job.og + job.width - 1) // job.width) < enough and job.width > 128:
        job.width = (job.width // 2 + FL_PANEL - 1) // FL_PANEL * FL_PANEL
    job.width_tasks = (job.og + job.width - 1) // job.width
    return images * job.groups * pixel_tasks * job.width_tasks


cdef void plan_rows(Job *job, bint residual) noexcept nogil:
    """Scratch of one task: pointers to its pixels, padded input, and, where the output is channels-first, its sums and residual."""
    cdef int64_t high = (job.rows - 1) * job.stride[1] + (job.kernel[1] - 1) * job.dilation[1] + 1
    cdef int64_t wide = (job.cols - 1) * job.stride[2] + (job.kernel[2] - 1) * job.dilation[2] + 1
    if job.in_place:
        job.pixel, job.row = job.channels, job.size[2] * job.channels
        job.plane = job.dilation[0] * job.size[1] * job.row
    else:
        job.pixel, job.row = job.ig, wide * job.ig
        if job.row % 1024 == 0:  # rows a multiple of 4 KB apart share their cache lines' places
            job.row += FL_PANEL
        job.plane = high * job.row
    job.at_input = rounded(job.rows * job.cols * sizeof(float *))
    job.at_sums = job.at_input + (0 if job.in_place else rounded(job.kernel[0] * job.plane * sizeof(float)))
    job.at_residual = job.at_sums
    if not job.out_last:
        job.at_residual += rounded(job.rows * job.cols * panels_size(job.width, 1) * sizeof(float))
    job.scratch_size = job.at_residual
    if not job.out_last and residual:
        job.scratch_size += job.at_residual - job.at_sums


cdef void plan_swapped(Job *job) noexcept nogil:
    """Scratch of one task with swapped roles: pointers to weights, padded input by phases, panels (`at_sums`), offsets of pixels."""
    cdef int64_t high = (job.rows - 1) * job.stride[1] + (job.kernel[1] - 1) * job.dilation[1] + 1
    cdef int64_t wide = (job.cols - 1) * job.stride[2] + (job.kernel[2] - 1) * job.dilation[2] + 1
    if job.in_place:
        job.phase, job.row, job.plane = 0, job.size[2], job.size[1] * job.size[2]
        job.pixel = job.size[0] * job.plane
    else:
        job.phase = (wide + job.stride[2] - 1) // job.stride[2]
        job.row = job.phase * job.stride[2]
        job.plane = high * job.row
        job.pixel = job.kernel[0] * job.plane
    job.at_input = rounded(job.width * sizeof(float *))
    job.at_sums = job.at_input
    if not job.in_place:
        job.at_sums += rounded((job.ig * job.pixel + FL_PANEL) * sizeof(float))
    job.at_residual = job.at_sums + rounded((STRIP * min(job.k, <int64_t>FL_KC) + FL_PANEL) * sizeof(float))
    job.scratch_size = job.at_residual + rounded(job.rows * job.cols * sizeof(int64_t))


cdef int plan_conv(Job *job, PackedConv packed, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, int mode, bint x_last,
                   bint out_last, bint residual, activation) except -1:
    """Everything about a call but where its arrays lie. Gives the plan `lists`, which the caller releases."""
    cdef int64_t axis, images = x[0], most = PIXELS
    cdef size_t starts
    cdef bint padded = False
    memset(job, 0, sizeof(Job))
    job.level = level()
    job.groups, job.ig, job.og, job.k = packed.groups, packed.ig, packed.og, packed.k
    job.channels, job.out_channels = packed.groups * packed.ig, packed.groups * packed.og
    for axis in range(3):
        job.size[axis], job.out_size[axis] = x[axis + (1 if x_last else 2)], out[axis + (1 if out_last else 2)]
        job.kernel[axis], job.stride[axis], job.dilation[axis] = packed.kernel[axis], packed.stride[axis], packed.dilation[axis]
        job.before[axis] = pads[2 * axis]
        padded = padded or pads[2 * axis] != 0 or pads[2 * axis + 1] != 0
    job.mode, job.x_last, job.out_last = mode, x_last, out_last
    job.work = 2.0 * images * job.out_size[0] * job.out_size[1] * job.out_size[2] * job.out_channels
    if job.work == 0:
        return 0  # no task at all
    job.work *= job.k
    job.swap = packed.rows != NULL and not x_last and not out_last
    if job.k == job.ig and not dense(job) or job.out_size[0] * job.out_size[1] * job.out_size[2] < FEW:
        job.swap = False
    if not job.swap:  # where the layouts are one, nothing is transposed
        job.x_last = x_last or job.channels == 1 or job.size[0] * job.size[1] * job.size[2] == 1
        job.out_last = out_last or job.out_channels == 1 or job.out_size[0] * job.out_size[1] * job.out_size[2] == 1
    job.in_place = not padded and (job.x_last or job.swap and dense(job))
    if job.in_place and job.swap:  # a plain product: pixels are one row
        job.size[2] = job.out_size[2] = job.size[0] * job.size[1] * job.size[2]
        job.size[0] = job.size[1] = job.out_size[0] = job.out_size[1] = 1
    job.b = packed.rows if job.swap else packed.b
    job.epilogue.bias, job.epilogue.bias_by_row = packed.bias_rows if job.swap else packed.bias, job.swap
    job.epilogue.ldr = job.out_channels if job.out_last else job.out_size[0] * job.out_size[1] * job.out_size[2]
    job.epilogue.code, job.epilogue.a, job.epilogue.b = activation

    if job.swap:
        most = min(max(PIXELS * FL_KC // max(job.k, <int64_t>1), <int64_t>PIXELS), <int64_t>4 * PIXELS)  # few terms: longer panels
    job.cols = even(job.out_size[2], most)
    if job.swap and job.cols < job.out_size[2]:
        job.cols = panels_size(job.cols, 1)
    job.rows = even(job.out_size[1], max(most // job.cols, <int64_t>1))
    job.row_tasks, job.col_tasks = (job.out_size[1] + job.rows - 1) // job.rows, (job.out_size[2] + job.cols - 1) // job.cols
    # Every task prepares its pixels anew. That is 2 / width of the work of a 3x3 kernel, but 16 / width of a 1x1 kernel's.
    if job.k == job.ig:
        job.tasks = cut(job, images, job.out_size[0] * job.row_tasks * job.col_tasks, 2 * COLS, 2)
    else:
        job.tasks = cut(job, images, job.out_size[0] * job.row_tasks * job.col_tasks, COLS, 8)
    job.blocks = max((job.k + FL_KC - 1) // FL_KC, <int64_t>1)
    if job.swap:
        plan_swapped(job)
        job.lists = job.taps = <int64_t *>need(job.k * sizeof(int64_t), "conv")
        plan_taps(job)
    else:
        plan_rows(job, residual)
        starts = rounded((job.blocks + 1) * sizeof(int64_t))
        job.lists = job.first = <int64_t *>need(starts + (job.kernel[0] * job.kernel[1] * job.kernel[2] + job.blocks) * sizeof(fl_run), "conv")
        job.runs = <fl_run *>(<char *>job.lists + starts)
        plan_runs(job)
    return 0


cdef int run_conv(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, residual or NULL."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int threads = workers(job.tasks, job.work)
    if job.tasks == 0:
        return 0
    job.x, job.out, job.epilogue.residual = <const float *>operands[0], <float *>operands[1], <const float *>operands[2]
    job.scratch = <char *>alloc(threads * job.scratch_size)
    if job.scratch == NULL:
        return -1
    parallel(swapped_task if job.swap else task, &job, job.tasks, threads)
    release(job.scratch)
    return 0


def conv(cnp.ndarray x, PackedConv packed, cnp.ndarray out, pads, int mode, bint x_last, bint out_last, residual, activation):
    """Convolution with its epilogue. See README.md for the shapes."""
    cdef Job job
    cdef void *operands[3]
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(out), NULL
    if residual is not None:
        operands[2] = cnp.PyArray_DATA(<cnp.ndarray>residual)
    plan_conv(&job, packed, cnp.PyArray_DIMS(x), cnp.PyArray_DIMS(out), pads, mode, x_last, out_last, residual is not None, activation)
    try:
        run_plan(run_conv, &job, operands, job.work, "conv")
    finally:
        release(job.lists)


def conv_step(tuple x, PackedConv packed, tuple out, pads, int mode, bint x_last, bint out_last, residual, activation):
    """The step of `conv`: shapes instead of arrays."""
    cdef Job job
    cdef cnp.npy_intp x_dims[5]
    cdef cnp.npy_intp out_dims[5]
    cdef Kept kept = Kept(packed)
    dims_of(x, x_dims)
    dims_of(out, out_dims)
    plan_conv(&job, packed, x_dims, out_dims, pads, mode, x_last, out_last, residual is not None, activation)
    kept.block = job.lists
    return make_step(run_conv, &job, sizeof(Job), 3, job.work, kept)
