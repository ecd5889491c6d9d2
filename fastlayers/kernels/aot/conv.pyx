"""Convolution in 1 to 3 dimensions over the packed matrix product, without an im2col matrix.

A pixel's taps are a few runs of consecutive floats in padded channels-last data (one a kernel row, since kw * c numbers of a row lie side
by side), so an output pixel is a row of the product, given by one pointer and a list of runs that all pixels share. A task pads (and, for
channels-first data, transposes) the few input rows that it needs into scratch that stays in cache; data that needs neither is read in place.

Channels-first data with few taps (a 1x1 kernel, or few channels) swap roles instead: the weights' rows are broadcast and pixels are the
panels, packed or read where they lie, so that neither side is transposed. See `swapped` for the choice. Few results a group go along lines of pixels: see `_lines.pyx`. All walks add in
the same order: results are equal bit for bit.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

import numpy as np

from ._band cimport Band, Runs, add_run, blocks_of, end_runs, fill, multiply, no_runs
from ._engine cimport (
    FL_KC, FL_PANEL,
    alloc, copied, fl_block, fl_epilogue, fl_kernels, fl_panels, fl_run, level, need, parallel, release, workers,
)
from ._fit cimport Fit, check_groups, fit_of, read_steps
from ._lines cimport Lines, cheaper, few, lines_task, plan_lines
from ._space cimport even, rounded, source_index, width_of
from ._panels cimport Panels, make_panels
from ._step cimport Kept, dims_of, make_step, run_plan
from .gemm cimport pack_all, panels_size

cnp.import_array()

cdef extern from "csrc/prefetch.h" nogil:
    void fl_prefetch_plane(const float *first, int64_t pitch, int64_t rows, int64_t n)

# Pixels and columns of one task: the sums of a task (256 KB) and a block of weights (256 KB) stay in a second-level cache.
cdef enum:
    PIXELS = 256
    COLS = 256
    STRIP = 64    # pixels of swapped roles that are packed at once: four panels
    MOST = 12     # results of swapped roles that go along lines
    FEW = 128  # pixels: below, the last panel's empty columns cost more than transposing (measured: 49 pixels 1.3, 196 pixels 0.9 times as long)


cdef Fit PACK = fit_of("conv_pack"), FIT = fit_of("conv")


@cython.final
cdef class PackedConv:
    """Weights of a convolution in panels, K in the order (kd, kh, kw, c). Immutable; may be used by any number of threads at once."""
    cdef readonly Panels panels   # groups x panels
    cdef float *bias   # groups x whole panels, or NULL
    cdef const float *rows   # [o][kd, kh, kw, i]: the same weights unpacked, or NULL where roles are never swapped
    cdef object owner        # of `rows`
    cdef float *bias_rows
    cdef int64_t groups, ig, og, k
    cdef int64_t kernel[3]
    cdef int64_t stride[3]
    cdef int64_t dilation[3]

    def __dealloc__(self):
        release(self.bias)
        release(self.bias_rows)

    cdef int fits(self, tuple arrays, int layout, pads) except -1:
        cdef int64_t known[2]
        known[0], known[1] = self.groups * self.ig, self.groups * self.og
        return FIT.check_window(known, arrays, layout, pads, self.kernel, self.stride, self.dilation)


def conv_pack(cnp.ndarray weight__oidhw, cnp.ndarray bias__o, stride, dilation, int64_t groups):
    """Weights (o, i / groups, kd, kh, kw) of a convolution with its stride, dilation and groups."""
    return conv_restore(weight__oidhw, bias__o, stride, dilation, groups, None)


def conv_restore(cnp.ndarray weight__oidhw, cnp.ndarray bias__o, stride, dilation, int64_t groups, cnp.ndarray stored):
    """`conv_pack` of weights that are there packed: `stored` is what ``packed.panels.array()`` of the same weights was, or None."""
    PACK.check(NULL, (weight__oidhw, bias__o), 0)
    cdef PackedConv packed = PackedConv.__new__(PackedConv)
    cdef int64_t o = weight__oidhw.shape[0], axis, g, size, width
    check_groups("conv_pack", "groups", groups, o)
    read_steps("conv_pack", stride, dilation, packed.stride, packed.dilation)
    packed.groups, packed.ig, packed.og = groups, weight__oidhw.shape[1], o // max(groups, <int64_t>1)
    packed.k = packed.ig
    for axis in range(3):
        packed.kernel[axis] = weight__oidhw.shape[2 + axis]
        packed.k *= packed.kernel[axis]
    size, width = panels_size(packed.og, packed.k), panels_size(packed.og, 1)
    packed.panels = make_panels(groups * size, stored, "conv_pack")
    cdef bint swap = few(packed.og)
    swap = swap or swapped(packed.k, packed.ig, packed.og, packed.kernel[0] * packed.kernel[1] == 1 and packed.stride[2] == 1)
    cdef cnp.ndarray ordered
    cdef const float *w
    if stored is None or swap:
        ordered = np.ascontiguousarray(weight__oidhw.transpose(0, 2, 3, 4, 1))
        w = <const float *>cnp.PyArray_DATA(ordered)
    if stored is None:
        pack_all(w, groups, packed.og, packed.k, packed.panels.data)
    if swap:
        # Those of a 1x1 kernel are in this order already: an array that cannot change is kept instead of copied.
        packed.owner = ordered if not ordered.flags.writeable else ordered.copy()
        packed.rows = <const float *>cnp.PyArray_DATA(<cnp.ndarray>packed.owner)
    if bias__o is not None:
        wide = np.zeros((groups, width), np.float32)
        wide[:, :packed.og] = bias__o.reshape(groups, packed.og)
        packed.bias, packed.bias_rows = copied(wide, "conv_pack"), copied(bias__o, "conv_pack")
    return packed


cdef bint swapped(int64_t k, int64_t ig, int64_t og, bint alone) noexcept nogil:
    """Can it pay to make panels of channels-first pixels? Yes for 1x1 kernels, and for images with few channels and many outputs, where
    transposing the output is most of the work beside the sums: 3 -> 32 with stride 2 took 0.63 of the time, 3 -> 64 (7x7) 0.86, but
    64 -> 128 with stride 2 1.2 times as long. And for sequences with stride 1 (`alone`), whose taps lie side by side: 11 taps of 32
    channels took 0.95 of the time."""
    return k <= ig or ig <= 8 and k < 4 * (ig + og) or alone and ig <= 32


cdef struct Job:
    Band band               # the input of one image and group
    const float *x
    float *out
    const float *b
    fl_epilogue epilogue    # of the whole output: residual points at its start
    int64_t groups, og, k, out_channels
    int64_t out_size[3]
    int64_t kernel[3]
    int64_t stride[3]
    int64_t dilation[3]
    bint out_last           # is the output channels-last?
    bint in_place           # channels-last data without padding: pixels are read where they are
    bint swap
    bint along              # instead of all below: along lines of pixels
    Lines lines
    double work
    # how the work is cut: rows x cols output pixels, `width` columns of the product
    int64_t rows, cols, width, row_tasks, col_tasks, width_tasks, tasks
    int64_t pixel           # floats between neighbouring pixels, or, if roles are swapped, channels; see Band for rows and planes
    void *lists             # the plan's own memory: these runs and starts, or taps
    fl_run *runs
    int64_t *first
    # instead, if roles are swapped: where each term of K lies, from the pixel; and, in scratch, the columns of one phase of the stride
    int64_t *taps
    int64_t phase
    bint packing            # all pixels are packed into panels; else only those that are no whole panel of their row
    # scratch of one worker, in bytes, and where its parts start
    char *scratch
    size_t scratch_size, at_input, at_sums, at_residual, at_rest


cdef inline int64_t reach(const Job *job, int axis, int64_t outputs) noexcept nogil:
    """Padded input positions under `outputs` neighbouring outputs along an axis."""
    return (outputs - 1) * job.stride[axis] + (job.kernel[axis] - 1) * job.dilation[axis] + 1


cdef void plan_runs(Job *job) noexcept nogil:
    """Taps in the order (kd, kh, kw)."""
    cdef int64_t z, y, x
    cdef Runs list = no_runs(job.runs, job.first)
    for z in range(job.kernel[0]):
        for y in range(job.kernel[1]):
            for x in range(job.kernel[2]):
                add_run(&list, z * job.band.plane + y * job.dilation[1] * job.band.row + x * job.dilation[2] * job.pixel, job.band.ig)
    end_runs(&list)


cdef struct Place:
    # Where a task's pixels lie: image, group, first pixel and extent, first column of the product and their number.
    int64_t image, group, od, oh, ow, rows, cols, j0, width
    int64_t first  # the first pixel's number in its image


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


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef const Band *band = &job.band
    cdef const fl_kernels *lv = band.level
    cdef Place at = place_of(job, number)
    cdef int64_t channel = at.group * job.og + at.j0, pixels = at.rows * at.cols, x, y, i
    cdef int64_t volume = band.size[0] * band.size[1] * band.size[2], out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const float **row = <const float **>scratch
    cdef const float *base = job.x + at.image * volume * band.channels + at.group * band.ig * (1 if band.last else volume)
    cdef float *first = job.out + at.image * out_volume * job.out_channels
    cdef fl_epilogue e = job.epilogue
    cdef fl_block p

    if job.in_place:
        base += (at.od * job.stride[0] * band.size[1] + at.oh * job.stride[1]) * band.row + at.ow * job.stride[2] * job.pixel
    else:
        fill(band, base, <float *>(scratch + job.at_input), at.od * job.stride[0], job.dilation[0], job.kernel[0],
             at.oh * job.stride[1], reach(job, 1, at.rows), at.ow * job.stride[2], reach(job, 2, at.cols))
        base = <const float *>(scratch + job.at_input)
    i = 0
    for y in range(at.rows):
        for x in range(at.cols):
            row[i] = base + y * job.stride[1] * band.row + x * job.stride[2] * job.pixel
            i += 1

    if e.bias != NULL:
        e.bias += at.group * panels_size(job.og, 1) + at.j0
    if job.out_last:
        first += at.first * job.out_channels + channel
        p.c, p.ldc = first, job.out_channels
        if e.residual != NULL:
            e.residual += first - job.out
    else:
        first += channel * out_volume + at.first
        p.c, p.ldc = <float *>(scratch + job.at_sums), panels_size(at.width, 1)
        if e.residual != NULL:
            lv.transpose(e.residual + (first - job.out), out_volume, <float *>(scratch + job.at_residual), p.ldc, at.width, pixels)
            e.residual, e.ldr = <float *>(scratch + job.at_residual), p.ldc
        # The planes' lines are drawn in while the sums are made: the transposition at the end touches a page a channel. Eight 64@56
        # images took 1.87 ms each without, 1.57 with.
        fl_prefetch_plane(first, out_volume, at.width, pixels)
    # Scratch has room for whole panels, which are faster than a part of one.
    p.rows, p.m, p.n = row, pixels, at.width if job.out_last else p.ldc
    multiply(lv, &p, job.runs, job.first, job.k, job.b + at.group * panels_size(job.og, job.k), job.og, at.j0, &e)
    if not job.out_last:
        lv.transpose(p.c, p.ldc, first, out_volume, pixels, at.width)


cdef int64_t rows_that_fill(int64_t rows, int64_t all_rows, int64_t left) noexcept nogil:
    """From `rows` to twice as many: the number of which `left` pixels each fill strips best. 11x11 3 -> 96 from 224 took 0.9 of the time."""
    cdef int64_t best = rows, most = min(2 * rows, all_rows), i
    for i in range(rows, most + 1):
        if left * i * strips(left * best) >= left * best * strips(left * i):
            best = i
    return best


cdef inline int64_t strips(int64_t pixels) noexcept nogil:
    """Pixels of whole strips."""
    return (pixels + STRIP - 1) // STRIP * STRIP


cdef void plan_taps(Job *job) noexcept nogil:
    """Offsets of the terms of K in scratch [c][z][y][phase][column], or straight in the data."""
    cdef int64_t z, y, x, c, t = 0, at
    for z in range(job.kernel[0]):
        for y in range(job.kernel[1]):
            for x in range(job.kernel[2]):
                at = x * job.dilation[2]
                at = z * job.band.plane + y * job.dilation[1] * job.band.row + at % job.stride[2] * job.phase + at // job.stride[2]
                for c in range(job.band.ig):
                    job.taps[t] = c * job.pixel + at
                    t += 1


cdef void fill_phases(const Job *job, const float *x, float *to, int64_t od, int64_t oh, int64_t rows, int64_t ow, int64_t cols) noexcept nogil:
    """Padded input under rows x cols output pixels, channels-first, the columns of each row sorted by their phase of the stride."""
    cdef int64_t high = reach(job, 1, rows), wide = reach(job, 2, cols)
    cdef int64_t w = job.band.size[2], step = job.stride[2], start = ow * step, before = job.band.before[2], c, z, y, u, n, i, i0, i1, at, at_z, at_y
    cdef const float *from_
    cdef float *row
    for c in range(job.band.ig):
        for z in range(job.kernel[0]):
            at_z = source_index(od * job.stride[0] + z * job.dilation[0], job.band.before[0], job.band.size[0], job.band.mode)
            for y in range(high):
                at_y = source_index(oh * job.stride[1] + y, job.band.before[1], job.band.size[1], job.band.mode)
                row = to + c * job.pixel + z * job.band.plane + y * job.band.row
                if at_z < 0 or at_y < 0:
                    memset(row, 0, step * job.phase * sizeof(float))
                    continue
                from_ = x + ((c * job.band.size[0] + at_z) * job.band.size[1] + at_y) * w
                for u in range(min(step, wide)):
                    n = (wide - u + step - 1) // step  # columns u, u + step, ... of which i0 .. i1 - 1 are inside
                    i0 = min(max((before - start - u + step - 1) // step if before > start + u else 0, <int64_t>0), n)
                    i1 = max(min((before + w - start - u + step - 1) // step if before + w > start + u else 0, n), i0)
                    job.band.level.gather(from_ + start + u + i0 * step - before, step, row + u * job.phase + i0, i1 - i0)
                    i = 0 if i0 > 0 else i1
                    while i < n:
                        at = source_index(start + u + i * step, before, w, job.band.mode)
                        row[u * job.phase + i] = 0 if at < 0 else from_[at]
                        i = i + 1 if i + 1 != i0 else i1


cdef void swapped_task(void *context, int64_t number, int worker) noexcept nogil:
    """Channels-first, roles swapped: out[o, pixel] = sum_k w[o, k] tap_k[pixel]. Whole panels of a row of pixels are read where they
    lie in scratch; the others, and all if `packing`, are packed block by block of K."""
    cdef const Job *job = <const Job *>context
    cdef Place at = place_of(job, number)
    cdef const Band *band = &job.band
    cdef int64_t volume = band.size[0] * band.size[1] * band.size[2], out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    cdef int64_t channel = at.group * job.og + at.j0, i, y, x, count, left, start = 0 if job.packing else at.cols // FL_PANEL * FL_PANEL
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const float **row = <const float **>scratch
    cdef int64_t *offsets = <int64_t *>(scratch + job.at_residual)
    cdef float *sums
    cdef float *c
    cdef fl_epilogue e = job.epilogue
    cdef fl_panels from_
    cdef fl_block p
    cdef fl_run run

    from_.base = job.x + (at.image * band.channels + at.group * band.ig) * volume
    if job.in_place:
        from_.base += at.od * band.plane + at.oh * band.row + at.ow
    else:
        fill_phases(job, from_.base, <float *>(scratch + job.at_input), at.od, at.oh, at.rows, at.ow, at.cols)
        from_.base = <const float *>(scratch + job.at_input)
    p.m = at.width
    for i in range(p.m):
        row[i] = job.b + (channel + i) * job.k
    if e.bias != NULL:
        e.bias += channel
    p.rows, p.runs, p.nruns, p.ahead, p.ldc = row, &run, 1, NULL, out_volume
    p.c = c = job.out + (at.image * job.out_channels + channel) * out_volume + at.first
    if e.residual != NULL:
        e.residual += (at.image * job.out_channels + channel) * out_volume + at.first
    if start > 0:
        read_rows(job, &at, &p, &e, from_.base, start)
    if start == at.cols:
        return
    count = 0
    for y in range(at.rows):
        for x in range(start, at.cols):
            offsets[count] = y * job.stride[1] * band.row + x
            count += 1
    from_.slack, from_.b, from_.pixels = not job.in_place, <float *>(scratch + job.at_sums), offsets
    if job.packing:
        pack_pixels(job, &p, &e, &from_, count)
        return
    sums = p.c = <float *>(scratch + job.at_rest)
    p.ldc = panels_size(count, 1)
    pack_pixels(job, &p, &e, &from_, count)
    left = at.cols - start
    for i in range(p.m):
        for y in range(at.rows):
            memcpy(c + i * out_volume + y * job.out_size[2] + start, sums + i * p.ldc + y * left, left * sizeof(float))


cdef void pack_pixels(const Job *job, fl_block *p, fl_epilogue *e, fl_panels *from_, int64_t count) noexcept nogil:
    """The sums of `count` pixels, in order at p.c. A few panels at a time are made and used while the nearest cache holds them."""
    cdef int64_t blocks = blocks_of(job.k), start = 0, i, k0
    cdef fl_run *run = <fl_run *>p.runs
    p.b = from_.b
    while start < count:
        from_.n = p.n = min(<int64_t>STRIP, count - start)
        for i in range(blocks):
            k0 = i * FL_KC
            p.klen = min(<int64_t>FL_KC, job.k - k0)
            run.offset, run.length = k0, p.klen
            from_.taps, from_.klen = job.taps + k0, p.klen
            job.band.level.panels(from_)
            p.accumulate, p.epilogue = i > 0, e if i == blocks - 1 else NULL
            job.band.level.block(p)
        start += STRIP
        from_.pixels += STRIP
        p.c += STRIP
        if e.residual != NULL:
            e.residual += STRIP


cdef void read_rows(const Job *job, const Place *at, fl_block *p, fl_epilogue *e, const float *base, int64_t cols) noexcept nogil:
    """The sums of the first `cols` pixels of each row without packing, in strips that the nearest cache holds."""
    cdef int64_t y, x, k0, i, blocks = blocks_of(job.k)
    cdef const float *residual = e.residual
    cdef float *c = p.c
    cdef fl_run *run = <fl_run *>p.runs
    for y in range(at.rows):
        x = 0
        while x < cols:
            p.n = min(<int64_t>STRIP, cols - x)
            p.b, p.c = base + y * job.stride[1] * job.band.row + x, c + y * job.out_size[2] + x
            if residual != NULL:
                e.residual = residual + y * job.out_size[2] + x
            for i in range(blocks):
                k0 = i * FL_KC
                p.klen = min(<int64_t>FL_KC, job.k - k0)
                run.offset, run.length = k0, p.klen
                p.accumulate, p.epilogue = i > 0, e if i == blocks - 1 else NULL
                job.band.level.block_at(p, job.taps)
            x += STRIP


cdef bint dense(const Job *job) noexcept nogil:
    """A 1x1 kernel with stride 1: every pixel of the input is a pixel of the output."""
    return job.k == job.band.ig and job.stride[0] == 1 and job.stride[1] == 1 and job.stride[2] == 1


cdef void plan_rows(Job *job, bint residual) noexcept nogil:
    """Scratch of one task: pointers to its pixels, padded input, and, where the output is channels-first, its sums and residual."""
    cdef int64_t high = reach(job, 1, job.rows), wide = reach(job, 2, job.cols)
    if job.in_place:
        job.pixel, job.band.row = job.band.channels, job.band.size[2] * job.band.channels
        job.band.plane = job.dilation[0] * job.band.size[1] * job.band.row
    else:
        job.pixel, job.band.row = job.band.ig, wide * job.band.ig
        if job.band.row % 1024 == 0:  # rows a multiple of 4 KB apart share their cache lines' places
            job.band.row += FL_PANEL
        job.band.plane = high * job.band.row
    job.at_input = rounded(job.rows * job.cols * sizeof(float *))
    job.at_sums = job.at_input + (0 if job.in_place else rounded(job.kernel[0] * job.band.plane * sizeof(float)))
    job.at_residual = job.at_sums
    if not job.out_last:
        job.at_residual += rounded(job.rows * job.cols * panels_size(job.width, 1) * sizeof(float))
    job.scratch_size = job.at_residual
    if not job.out_last and residual:
        job.scratch_size += job.at_residual - job.at_sums


cdef void plan_swapped(Job *job) noexcept nogil:
    """Scratch of one task with swapped roles: pointers to weights, padded input by phases, panels (`at_sums`), offsets of pixels."""
    cdef int64_t high = reach(job, 1, job.rows), wide = reach(job, 2, job.cols)
    if job.in_place:
        job.phase, job.band.row, job.band.plane = 0, job.band.size[2], job.band.size[1] * job.band.size[2]
        job.pixel = job.band.size[0] * job.band.plane
    else:
        job.phase = (wide + job.stride[2] - 1) // job.stride[2]
        job.band.row = job.phase * job.stride[2]
        job.band.plane = high * job.band.row
        job.pixel = job.kernel[0] * job.band.plane
    job.at_input = rounded(job.width * sizeof(float *))
    job.at_sums = job.at_input
    if not job.in_place:
        job.at_sums += rounded((job.band.ig * job.pixel + FL_PANEL) * sizeof(float))
    if not job.packing and job.out_size[2] % FL_PANEL == 0:  # whole panels in every task
        job.scratch_size = job.at_sums
        return
    job.at_residual = job.at_sums + rounded((STRIP * min(job.k, <int64_t>FL_KC) + FL_PANEL) * sizeof(float))
    job.at_rest = job.scratch_size = job.at_residual + rounded(job.rows * job.cols * sizeof(int64_t))
    if not job.packing:
        job.scratch_size += rounded(job.width * panels_size(job.rows * min(job.cols, <int64_t>FL_PANEL), 1) * sizeof(float))


cdef int plan_along(Job *job, PackedConv packed, int64_t images, bint residual) except -1:
    cdef Lines *lines = &job.lines
    cdef int64_t axis
    lines.band, lines.groups, lines.og, lines.k, lines.out_channels = job.band, job.groups, job.og, job.k, job.out_channels
    for axis in range(3):
        lines.out_size[axis], lines.kernel[axis] = job.out_size[axis], job.kernel[axis]
        lines.stride[axis], lines.dilation[axis] = job.stride[axis], job.dilation[axis]
    lines.band.last = job.band.last and job.band.channels > 1
    lines.out_last = job.out_last and job.out_channels > 1
    lines.w, lines.epilogue = packed.rows, job.epilogue
    lines.epilogue.bias, lines.epilogue.bias_by_row = packed.bias_rows, True
    job.lists = need(job.k * sizeof(int64_t), "conv")
    plan_lines(lines, images, residual, <int64_t *>job.lists)
    job.tasks, job.scratch_size = lines.tasks, lines.scratch_size
    return 0


cdef int plan_conv(Job *job, PackedConv packed, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, int mode, bint x_last,
                   bint out_last, bint residual, activation) except -1:
    """Everything about a call but where its arrays lie. Gives the plan `lists`, which the caller releases."""
    cdef int64_t axis, images = x[0], most = PIXELS, blocks
    cdef size_t starts, bytes
    cdef bint padded = False
    memset(job, 0, sizeof(Job))
    job.band.level = level()
    job.groups, job.band.ig, job.og, job.k = packed.groups, packed.ig, packed.og, packed.k
    job.band.channels, job.out_channels = packed.groups * packed.ig, packed.groups * packed.og
    for axis in range(3):
        job.band.size[axis], job.out_size[axis] = x[axis + (1 if x_last else 2)], out[axis + (1 if out_last else 2)]
        job.kernel[axis], job.stride[axis], job.dilation[axis] = packed.kernel[axis], packed.stride[axis], packed.dilation[axis]
        job.band.before[axis] = pads[2 * axis]
        padded = padded or pads[2 * axis] != 0 or pads[2 * axis + 1] != 0
    job.band.mode, job.band.last, job.out_last = mode, x_last, out_last
    job.work = 2.0 * images * job.out_size[0] * job.out_size[1] * job.out_size[2] * job.out_channels
    if job.work == 0:
        return 0  # no task at all
    job.work *= job.k
    job.swap = packed.rows != NULL and not x_last and not out_last
    if job.k == job.band.ig and not dense(job) or job.out_size[0] * job.out_size[1] * job.out_size[2] < FEW:
        job.swap = False
    if job.band.ig > 8 and job.k > job.band.ig and job.out_size[2] % FL_PANEL and job.out_size[2] < 4 * PIXELS:
        job.swap = False  # a short sequence that would be packed: see below
    job.epilogue.bias, job.epilogue.bias_by_row = packed.bias_rows if job.swap else packed.bias, job.swap
    job.epilogue.code, job.epilogue.a, job.epilogue.b = activation
    if packed.rows != NULL and few(job.og):
        plan_along(job, packed, images, residual)
        # Roles swapped as above are as fast with more results, few terms or a stride: they write where the result lies.
        job.along = not job.swap or job.og <= MOST and job.k >= 64 and job.k > job.band.ig and job.stride[2] == 1
        if job.along and (job.swap or cheaper(&job.lines, x_last)):
            return 0
        release(job.lists)
        job.along = False
    if not job.swap:  # where the layouts are one, nothing is transposed
        job.band.last = x_last or job.band.channels == 1 or job.band.size[0] * job.band.size[1] * job.band.size[2] == 1
        job.out_last = out_last or job.out_channels == 1 or job.out_size[0] * job.out_size[1] * job.out_size[2] == 1
    job.in_place = not padded and (job.band.last or job.swap and dense(job))
    if job.in_place and job.swap:  # a plain product: pixels are one row
        job.band.size[2] = job.out_size[2] = job.band.size[0] * job.band.size[1] * job.band.size[2]
        job.band.size[0] = job.band.size[1] = job.out_size[0] = job.out_size[1] = 1
    job.b = packed.rows if job.swap else packed.panels.data
    job.epilogue.ldr = job.out_channels if job.out_last else job.out_size[0] * job.out_size[1] * job.out_size[2]

    if job.swap:
        most = min(max(PIXELS * FL_KC // max(job.k, <int64_t>1), <int64_t>PIXELS), <int64_t>4 * PIXELS)  # few terms: longer panels
    job.cols = even(job.out_size[2], most)
    if job.swap and job.cols < job.out_size[2]:
        job.cols = panels_size(job.cols, 1)
    # Whole panels of a row are read where they lie: 3 -> 64 (7x7) took 0.9 of the time. What is left of the rows is packed together.
    # Rows of one panel and a part are packed whole: few sums at a time are slow (28 wide, 3 -> 32: 0.83 of the time).
    job.packing = job.in_place or job.out_size[2] % FL_PANEL != 0 and (residual or job.cols < 2 * FL_PANEL)
    job.rows = even(job.out_size[1], max(most // job.cols, <int64_t>1))
    if job.swap and not job.in_place:
        job.rows = rows_that_fill(job.rows, job.out_size[1], job.cols if job.packing else job.cols % FL_PANEL)
    job.row_tasks, job.col_tasks = (job.out_size[1] + job.rows - 1) // job.rows, (job.out_size[2] + job.cols - 1) // job.cols
    # Every task prepares its pixels anew. That is 2 / width of the work of a 3x3 kernel, but 16 / width of a 1x1 kernel's.
    job.tasks = images * job.groups * job.out_size[0] * job.row_tasks * job.col_tasks
    if job.k == job.band.ig:
        job.width = width_of(job.og, 2 * COLS, job.tasks, 2)
    else:
        job.width = width_of(job.og, COLS, job.tasks, 8)
    job.width_tasks = (job.og + job.width - 1) // job.width
    job.tasks *= job.width_tasks
    if job.swap:
        plan_swapped(job)
        job.lists = job.taps = <int64_t *>need(job.k * sizeof(int64_t), "conv")
        plan_taps(job)
    else:
        plan_rows(job, residual)
        blocks = blocks_of(job.k)
        starts = rounded((blocks + 1) * sizeof(int64_t))
        bytes = starts + (job.kernel[0] * job.kernel[1] * job.kernel[2] + blocks) * sizeof(fl_run)
        job.lists = job.first = <int64_t *>need(bytes, "conv")
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
    if job.along:
        job.lines.x, job.lines.out, job.lines.epilogue.residual, job.lines.scratch = job.x, job.out, job.epilogue.residual, job.scratch
        parallel(lines_task, &job.lines, job.tasks, threads)
    else:
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
    packed.fits((x, out, residual), x_last | out_last << 1, pads)
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
    packed.fits((x, out, residual), x_last | out_last << 1, pads)
    cdef Kept kept = Kept(packed)
    dims_of(x, x_dims)
    dims_of(out, out_dims)
    plan_conv(&job, packed, x_dims, out_dims, pads, mode, x_last, out_last, residual is not None, activation)
    kept.block = job.lists
    return make_step(run_conv, &job, sizeof(Job), 3, job.work, kept)
