"""Convolution in 1 to 3 dimensions over the packed matrix product, without an im2col matrix.

A pixel's taps are a few runs of consecutive floats in padded channels-last data (one per kernel row, since kw * c values of a row are
adjacent), so an output pixel is a row of the product, given by one pointer and a list of runs that all pixels share. A task pads (and, for
channels-first data, transposes) the few input rows that it needs into scratch that stays in cache; data that needs neither is read in place.

Channels-first data with few taps (a 1x1 kernel, or few channels) swap roles instead: the weights' rows are broadcast and pixels are the
panels, packed or read where they are, so that neither side is transposed: see `_swapped.pyx`. Few results a group go along lines of
pixels: see `_lines.pyx`. Where many taps are in the padding, it is left out: see `_inside.pyx`. Groups of up to 8 channels go sixteen channels at a
time, as depthwise convolutions do: see `_blocks.pyx`. All walks add in the same order: results are equal bit for bit.
"""

cimport cython
from libc.math cimport fmax
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset
cimport numpy as cnp

import numpy as np

from ._band cimport Band, Runs, blocks_of, end_runs, fill, multiply, no_runs
from ._blocks cimport Blocks, blocks_task, plan_blocks
from ._conv cimport COLS, PIXELS, Job, Place, place_of, reach
from ._engine cimport (
    FL_BRAIN, FL_FINE, FL_KC, FL_PANEL, WEIGHT_WORK,
    alloc, copied, fl_block, fl_epilogue, fl_kernels, fl_run, hands, level, need, parallel, release, workers,
)
from ._fit cimport Fit, check_groups, fit_of, read_steps
from ._halves cimport HalfRows, half_multiply, halves_size, pack_halves
from ._inside cimport LARGEST, STRETCHES, Inside, Stretch, add_taps, inside_task, plan_inside, stretches, turn_task
from ._lines cimport Lines, cheaper, few, lines_task, plan_lines
from ._space cimport even, rounded, shared, width_of
from ._panels cimport Panels, make_panels
from ._swapped cimport dense, plan_swapped, plan_taps, rows_that_fill, swapped, swapped_task
from .gemm cimport columns_size, pack_all, panels_size

from ...errors import ArgumentError
from ..halves import rounded as rounded_weights
from ..table import HALVES

cnp.import_array()

cdef extern from "csrc/prefetch.h" nogil:
    void fl_prefetch_plane(const float *first, int64_t pitch, int64_t rows, int64_t n)

cdef enum:
    LEAST = 48    # pixels of a task that is cut for another thread
    MOST = 12     # results of swapped roles that go along lines
    FEW_RESULTS = 64  # a group: as few read pixels where they are, where nothing else speaks for packing them
    WIDE = 40  # columns from which on lines are good at groups of few channels
    FEW = 128  # pixels: below, the last panel's empty columns cost more than transposing (measured: 49 pixels 1.3, 196 pixels 0.9 times as long)


cdef Fit PACK = fit_of("conv_pack"), FIT = fit_of("conv")


@cython.final
cdef class PackedConv:
    """Weights of a convolution in panels, K in the order (kd, kh, kw, c). Immutable; may be used by any number of threads at once."""
    cdef readonly Panels panels   # groups x panels; None if `half`
    cdef uint16_t *halves    # NULL unless `half`
    cdef int half            # how the weights are stored: fl_half_kind
    cdef float *bias   # groups x whole panels, or NULL
    cdef const float *rows   # [o][kd, kh, kw, i]: the same weights unpacked, or NULL where panels of results are always as fast
    cdef object owner        # of `rows`
    cdef float *bias_rows
    cdef float *mixed        # [block][kh, kw][i][16]: sixteen results of several groups next to each other, or NULL
    cdef float *mixed_bias   # whole blocks
    cdef bint swaps          # may roles be swapped as `_swapped.pyx` does?
    cdef bint finite         # known to be: weights that may meet padding often
    cdef int64_t groups, ig, og, k
    cdef int64_t kernel[3]
    cdef int64_t stride[3]
    cdef int64_t dilation[3]

    def __dealloc__(self):
        release(self.bias)
        release(self.bias_rows)
        release(self.mixed)
        release(self.mixed_bias)
        release(self.halves)

    @property
    def nbytes(self):
        """Bytes of the weights."""
        if not self.half:
            return self.panels.nbytes
        return self.groups * halves_size(self.half, self.og, self.k) * sizeof(uint16_t)

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
    cdef int64_t o = weight__oidhw.shape[0], axis, size, width
    check_groups("conv_pack", "groups", groups, o)
    read_steps("conv_pack", stride, dilation, packed.stride, packed.dilation)
    packed.groups, packed.ig, packed.og = groups, weight__oidhw.shape[1], o // max(groups, <int64_t>1)
    packed.k = packed.ig
    for axis in range(3):
        packed.kernel[axis] = weight__oidhw.shape[2 + axis]
        packed.k *= packed.kernel[axis]
    if packed.kernel[0] > 1 or groups > 1 or max(dilation) > 1:
        packed.finite = bool(np.isfinite(weight__oidhw).all())
    size, width = panels_size(packed.og, packed.k), panels_size(packed.og, 1)
    packed.panels = make_panels(groups * size, stored, "conv_pack")
    packed.swaps = swapped(packed.k, packed.ig, packed.og, packed.kernel[0] * packed.kernel[1] == 1 and packed.stride[2] == 1)
    cdef bint rows = packed.swaps or few(packed.og)
    cdef cnp.ndarray ordered
    cdef const float *w
    if stored is None or rows:
        ordered = np.ascontiguousarray(weight__oidhw.transpose(0, 2, 3, 4, 1))
        w = <const float *>cnp.PyArray_DATA(ordered)
    if stored is None:
        pack_all(w, groups, packed.og, packed.k, packed.panels.data)
    if rows:
        # Those of a 1x1 kernel are in this order already: an array that cannot change is kept instead of copied.
        packed.owner = ordered if not ordered.flags.writeable else ordered.copy()
        packed.rows = <const float *>cnp.PyArray_DATA(<cnp.ndarray>packed.owner)
    if bias__o is not None:
        wide = np.zeros((groups, width), np.float32)
        wide[:, :packed.og] = bias__o.reshape(groups, packed.og)
        packed.bias, packed.bias_rows = copied(wide, "conv_pack"), copied(bias__o, "conv_pack")
    if groups > 1 and packed.kernel[0] == 1 and packed.ig == packed.og and packed.ig in (2, 4, 8) and packed.k <= FL_KC:
        pack_mixed(packed, weight__oidhw, bias__o)
    return packed


def conv_half_pack(cnp.ndarray weight__oidhw, cnp.ndarray bias__o, stride, dilation, int64_t groups, int half):
    """`conv_pack` with weights stored in 16 bits; `half` is one of `table.HALVES`."""
    if half not in HALVES.values():
        raise ArgumentError(f"conv_half_pack: half is {half}: expected one of {HALVES}")
    cdef PackedConv packed = conv_restore(weight__oidhw, bias__o, stride, dilation, groups, None)
    cdef int64_t each = halves_size(half, packed.og, packed.k), size = panels_size(packed.og, packed.k), g
    packed.halves = <uint16_t *>need(groups * each * sizeof(uint16_t), "conv_half_pack")
    with nogil:
        for g in range(groups):
            pack_halves(half, packed.panels.data + g * size, packed.og, packed.k, packed.halves + g * each)
    packed.half, packed.panels, packed.rows, packed.owner = half, None, NULL, None
    if packed.mixed != NULL:
        release(packed.mixed)
        packed.mixed = pairs_mixed(weight__oidhw, packed.k) if half == FL_BRAIN else NULL
    return packed


cdef float *pairs_mixed(weight, int64_t k) except? NULL:
    """Packs as `pack_mixed` does, in bfloat16, neighbouring channels of a lane next to each other."""
    o, whole = weight.shape[0], panels_size(weight.shape[0], 1)
    lanes = np.zeros((whole, k), np.uint16)
    lanes[:o] = (rounded_weights(weight, FL_BRAIN).view(np.uint32) >> 16).transpose(0, 2, 3, 4, 1).reshape(o, k)
    lanes = np.ascontiguousarray(lanes.reshape(whole // FL_PANEL, FL_PANEL, k // 2, 2).transpose(0, 2, 1, 3))
    return copied(lanes.view(np.float32), "conv_half_pack")


cdef int pack_mixed(PackedConv packed, cnp.ndarray weight__oidhw, cnp.ndarray bias__o) except -1:
    cdef int64_t o = weight__oidhw.shape[0], whole = panels_size(o, 1)
    lanes = np.zeros((whole, packed.k), np.float32)
    lanes[:o] = weight__oidhw.transpose(0, 2, 3, 4, 1).reshape(o, packed.k)
    lanes = lanes.reshape(whole // FL_PANEL, FL_PANEL, packed.k).transpose(0, 2, 1)
    packed.mixed = copied(np.ascontiguousarray(lanes), "conv_pack")
    bias = np.zeros(whole, np.float32)
    if bias__o is not None:
        bias[:o] = bias__o
    packed.mixed_bias = copied(bias, "conv_pack")
    return 0


cdef void plan_runs(Job *job, const Stretch *depth, int64_t count) noexcept nogil:
    """Taps in the order (kd, kh, kw): a list for each of `count` stretches of depth, of those that are in it."""
    cdef int64_t apart[3]
    cdef int64_t i
    cdef Stretch all_
    cdef Runs list
    all_.first, all_.stop = 0, job.k
    apart[0], apart[1], apart[2] = job.band.plane, job.dilation[1] * job.band.row, job.dilation[2] * job.pixel
    for i in range(count):
        list = no_runs(job.runs + i * job.room, job.first + i * (blocks_of(job.k) + 1))
        add_taps(&list, job.kernel, &depth[i], &all_, &all_, apart, job.band.ig)
        end_runs(&list)


cdef inline int64_t list_of(const Job *job, int64_t od) noexcept nogil:
    """Number of the list of runs for outputs at this depth."""
    return job.list_at[od] if job.list_at != NULL else 0


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef const Band *band = &job.band
    cdef const fl_kernels *lv = band.level
    cdef Place at = place_of(job, number)
    cdef int64_t channel = at.group * job.og + at.j0, pixels = at.rows * at.cols, x, y, i, to
    cdef int64_t volume = band.size[0] * band.size[1] * band.size[2], out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const float **row = <const float **>scratch
    cdef const float *base = job.x + at.image * volume * band.channels + at.group * band.ig * (1 if band.last else volume)
    cdef float *first = job.out + at.image * out_volume * job.out_channels
    cdef fl_epilogue e = job.epilogue
    cdef fl_block p
    cdef HalfRows half_rows
    cdef uint16_t *narrow = <uint16_t *>(scratch + job.at_pairs)

    if job.in_place:
        base += (at.od * job.stride[0] * band.size[1] + at.oh * job.stride[1]) * band.row + at.ow * job.stride[2] * job.pixel
    else:
        fill(band, base, <float *>(scratch + job.at_input), at.od * job.stride[0], job.dilation[0], job.kernel[0],
             at.oh * job.stride[1], reach(job, 1, at.rows), at.ow * job.stride[2], reach(job, 2, at.cols))
        base = <const float *>(scratch + job.at_input)
    if job.pairs:
        for i in range(job.kernel[0]):
            lv.halves.round(base + i * band.plane, reach(job, 1, at.rows) * band.row, narrow + i * band.plane)
    i = 0
    for y in range(at.rows):
        for x in range(at.cols):
            to = y * job.stride[1] * band.row + x * job.stride[2] * job.pixel
            row[i] = <const float *>(narrow + to) if job.pairs else base + to
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
        # The planes' lines are drawn in while the sums are made: the transposition at the end touches one page per channel. Eight 64@56
        # images took 1.87 ms each without, 1.57 with.
        fl_prefetch_plane(first, out_volume, at.width, pixels)
    # Scratch has room for whole panels, or half of one, which are faster than another part.
    p.rows, p.m, p.n = row, pixels, at.width if job.out_last else columns_size(lv, at.width)
    i = list_of(job, at.od)
    if job.half:
        half_rows.rows, half_rows.pairs, half_rows.runs = row, <const uint16_t *const *>row if job.pairs else NULL, job.runs
        half_rows.starts = NULL if job.k == band.ig else job.first
        half_multiply(lv, job.half, &half_rows, pixels, job.k, <const uint16_t *>job.b + at.group * halves_size(job.half, job.og, job.k),
                      job.og, at.j0, at.width, p.c, p.ldc, &e)
    else:
        multiply(lv, &p, job.runs + i * job.room, job.first + i * (blocks_of(job.k) + 1), job.k, job.b + at.group * panels_size(job.og, job.k), job.og, at.j0, &e)
    if not job.out_last:
        lv.transpose(p.c, p.ldc, first, out_volume, pixels, at.width)


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
    job.at_pairs = job.at_input + (0 if job.in_place else rounded(job.kernel[0] * job.band.plane * sizeof(float)))
    job.at_sums = job.at_pairs + (rounded(job.kernel[0] * job.band.plane * sizeof(uint16_t)) if job.pairs else 0)
    job.at_residual = job.at_sums
    if not job.out_last:
        job.at_residual += rounded(job.rows * job.cols * panels_size(job.width, 1) * sizeof(float))
    job.scratch_size = job.at_residual
    if not job.out_last and residual:
        job.scratch_size += job.at_residual - job.at_sums


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


cdef bint plan_pieces(Job *job, PackedConv packed, int64_t images, bint residual) except -1:
    """Plans to leave the padding out, and says whether that pays."""
    cdef Inside *inside = &job.pieces
    cdef int64_t axis
    inside.band, inside.groups, inside.og, inside.k, inside.out_channels = job.band, job.groups, job.og, job.k, job.out_channels
    for axis in range(3):
        inside.out_size[axis], inside.kernel[axis] = job.out_size[axis], job.kernel[axis]
        inside.stride[axis], inside.dilation[axis] = job.stride[axis], job.dilation[axis]
    inside.band.last = job.band.last or job.band.channels == 1
    inside.out_last, inside.b, inside.epilogue = job.out_last or job.out_channels == 1, packed.panels.data, job.epilogue
    plan_inside(inside, images, residual, &job.lists)
    job.tasks, job.scratch_size = inside.tasks, inside.scratch_size
    return job.lists != NULL


cdef int plan_lists(Job *job, bint leave_out) except -1:
    """Lists of runs, of which each leaves out the taps that are before or after the input."""
    cdef Stretch depth[STRETCHES]
    cdef int64_t count = 1, blocks = blocks_of(job.k), i, od
    cdef size_t at_runs, at_lists
    depth[0].first, depth[0].stop = 0, job.kernel[0]
    if leave_out and 1 < job.kernel[0] <= LARGEST:
        count = stretches(job.out_size[0], job.band.size[0], job.band.before[0], job.kernel[0], job.stride[0], job.dilation[0], depth)
    job.room = job.kernel[0] * job.kernel[1] * job.kernel[2] + blocks
    at_runs = rounded(count * (blocks + 1) * sizeof(int64_t))
    at_lists = at_runs + rounded(count * job.room * sizeof(fl_run))
    job.lists = job.first = <int64_t *>need(at_lists + (job.out_size[0] * sizeof(int64_t) if count > 1 else 0), "conv")
    job.runs = <fl_run *>(<char *>job.lists + at_runs)
    plan_runs(job, depth, count)
    if count > 1:
        job.list_at = <int64_t *>(<char *>job.lists + at_lists)
        for i in range(count):
            for od in range(depth[i].start, depth[i].start + depth[i].size):
                job.list_at[od] = i
    return 0


cdef void share(Job *job, int64_t images) noexcept nogil:
    """Fewer pixels, and if they are few, fewer columns a task, where threads would have nothing to do."""
    cdef int64_t others = images * job.groups * job.out_size[0] * job.width_tasks
    cdef int most = hands(job.work)
    if job.out_size[1] > 1:
        job.rows = shared(job.out_size[1], job.rows, 1, max(LEAST // job.cols, <int64_t>1), others * job.col_tasks, most)
    else:
        job.cols = shared(job.out_size[2], job.cols, FL_PANEL, LEAST, others, most)
    job.row_tasks, job.col_tasks = (job.out_size[1] + job.rows - 1) // job.rows, (job.out_size[2] + job.cols - 1) // job.cols
    others = images * job.groups * job.out_size[0] * job.row_tasks * job.col_tasks
    # Pixels that are read where they are cost nothing twice.
    job.width = shared(job.og, job.width, FL_PANEL, (2 if job.in_place else 4) * FL_PANEL, others, most)
    job.width_tasks = (job.og + job.width - 1) // job.width
    job.tasks = others * job.width_tasks


cdef bint by_blocks(const Job *job, PackedConv packed) noexcept nogil:
    """Are sixteen channels of several groups at a time faster than panels and lines? By what part of their lanes and columns counts.
    Measured on 6 to 256 channels, 1x1 to 5x5, 4 to 56 pixels a side and sequences, channels-last and channels-first."""
    cdef int64_t ig = job.band.ig, cols = job.out_size[2], sevens = even_up(cols, 7), eights = even_up(cols, 8)
    cdef double share = <double>job.band.channels * cols / (panels_size(job.band.channels, 1) * min(sevens, eights))
    if packed.mixed == NULL or job.band.mode != 0 or job.band.last != job.out_last or job.band.level.width < 8:
        return False
    if job.band.level.fine == NULL and job.k > FL_FINE:  # one chain, where strict precision breaks it
        return False
    if not job.band.size[0] == job.out_size[0] == 1 or job.band.before[0] != 0 or min(job.band.before[1], job.band.before[2]) < 0:
        return False
    if job.band.last:  # 3x3 in groups of 2, 4 and 8: 64@56 2.6, 1.7, 1.1 times as fast; 64@14 4.6, 2.5, 1.4; 24@14 g3 0.97
        if cols > WIDE:
            if ig == 8 and job.band.level.width < FL_PANEL:  # x86_v3: 64@56 0.94
                return False
            return share >= (0.6 if ig == 2 else 0.75 if ig == 4 else 0.92)
        return share >= (0.35 if ig == 2 else 0.45 if ig == 4 else 0.8)
    if job.kernel[1] == 1:  # 1x1 0.5, sequences 0.8
        return False
    if cols > WIDE:  # 64@56 1.28, 1.06, 0.98
        return share >= (0.8 if ig == 2 else 0.95) and ig < 8
    return share >= (0.35 if ig == 2 else 0.6 if ig == 4 else 0.8)  # 64@14 2.9, 1.8, 1.3


cdef inline int64_t even_up(int64_t n, int64_t of) noexcept nogil:
    return (n + of - 1) // of * of


cdef void plan_mixed(Job *job, PackedConv packed, int64_t images, bint residual) noexcept nogil:
    cdef Blocks *p = &job.blocks
    cdef int axis
    p.level, p.channels, p.last, p.mix, p.pairs = job.band.level, job.band.channels, job.band.last, job.band.ig, job.half != 0
    p.code, p.a, p.b, p.w, p.bias = job.epilogue.code, job.epilogue.a, job.epilogue.b, packed.mixed, packed.mixed_bias
    for axis in range(2):
        p.size[axis], p.out_size[axis], p.before[axis] = job.band.size[1 + axis], job.out_size[1 + axis], job.band.before[1 + axis]
        p.kernel[axis], p.stride[axis], p.dilation[axis] = job.kernel[1 + axis], job.stride[1 + axis], job.dilation[1 + axis]
    plan_blocks(p, images, residual)
    job.tasks, job.scratch_size = p.tasks, p.scratch_size


cdef int plan_call(Job *job, PackedConv packed, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, int mode, bint x_last,
                   bint out_last, bint residual, activation) except -1:
    """Everything about a call but where its arrays are. Gives the plan `lists`, which the caller releases."""
    cdef int64_t axis, images = x[0], most = PIXELS
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
    job.work = fmax(job.work, <double>WEIGHT_WORK * job.out_channels * job.k)
    job.epilogue.code, job.epilogue.a, job.epilogue.b = activation
    job.half = packed.half
    job.pairs = job.k != job.band.ig and job.band.level.halves.native(job.half) != 0
    job.blocked = by_blocks(job, packed) and (not job.half or job.band.level.halves.native(job.half) > 1)
    if job.blocked:
        plan_mixed(job, packed, images, residual)
        return 0
    job.swap = packed.swaps and not job.half and not x_last and not out_last
    if job.k == job.band.ig and not dense(job) or job.out_size[0] * job.out_size[1] * job.out_size[2] < FEW:
        job.swap = False
    if job.band.ig > 8 and job.k > job.band.ig and job.out_size[2] % FL_PANEL and job.out_size[2] < 4 * PIXELS:
        job.swap = False  # a short sequence that would be packed: see below
    job.epilogue.bias, job.epilogue.bias_by_row = packed.bias_rows if job.swap else packed.bias, job.swap
    if packed.rows != NULL and few(job.og):  # not `half`, which has none
        plan_along(job, packed, images, residual)
        # Roles swapped as above are as fast with more results, few terms or a stride: they write where the result is.
        job.along = not job.swap or job.og <= MOST and job.k >= 64 and job.k > job.band.ig and job.stride[2] == 1
        if job.along and (job.swap or cheaper(&job.lines, x_last)):
            return 0
        release(job.lists)
        job.along = False
    if not job.swap and not job.half and packed.finite and mode == 0:
        job.inside = plan_pieces(job, packed, images, residual)
        if job.inside:
            return 0
    if not job.swap:  # where the layouts are one, nothing is transposed
        job.band.last = x_last or job.band.channels == 1 or job.band.size[0] * job.band.size[1] * job.band.size[2] == 1
        job.out_last = out_last or job.out_channels == 1 or job.out_size[0] * job.out_size[1] * job.out_size[2] == 1
    job.in_place = not padded and not job.pairs and (job.band.last or job.swap and dense(job))
    if job.in_place and job.swap:  # a plain product: pixels are one row
        job.band.size[2] = job.out_size[2] = job.band.size[0] * job.band.size[1] * job.band.size[2]
        job.band.size[0] = job.band.size[1] = job.out_size[0] = job.out_size[1] = 1
    job.b = <const float *>packed.halves if job.half else packed.rows if job.swap else packed.panels.data
    job.epilogue.ldr = job.out_channels if job.out_last else job.out_size[0] * job.out_size[1] * job.out_size[2]

    if job.swap:
        most = min(max(PIXELS * FL_KC // max(job.k, <int64_t>1), <int64_t>PIXELS), <int64_t>4 * PIXELS)  # few terms: longer panels
    job.cols = even(job.out_size[2], most)
    if job.swap and job.cols < job.out_size[2]:
        job.cols = panels_size(job.cols, 1)
    # Whole panels of a row are read where they are: 3 -> 64 (7x7) took 0.9 of the time. What is left of the rows is packed together.
    # Rows of one panel and a part are packed whole: few sums at a time are slow (28 wide, 3 -> 32: 0.83 of the time).
    # Of a 1x1 kernel, pixels that meet few weights are not worth packing: 32 -> 16 (112x112) took 0.63 of the time, 96 -> 24 (56x56)
    # 0.72, 64 -> 64 0.84, 64 -> 256 1.02.
    job.packing = job.in_place and job.og > FEW_RESULTS or job.out_size[2] % FL_PANEL != 0 and (residual or job.cols < 2 * FL_PANEL)
    job.rows = even(job.out_size[1], max(most // job.cols, <int64_t>1))
    if job.swap and not job.in_place and not (job.packing and job.cols < job.out_size[2]):  # packed pixels are next to each other in the result
        job.rows = rows_that_fill(job.rows, job.out_size[1], job.cols if job.packing else job.cols % FL_PANEL)
    job.row_tasks, job.col_tasks = (job.out_size[1] + job.rows - 1) // job.rows, (job.out_size[2] + job.cols - 1) // job.cols
    # Every task prepares its pixels again. That is 2 / width of the work of a 3x3 kernel, but 16 / width of a 1x1 kernel's.
    job.tasks = images * job.groups * job.out_size[0] * job.row_tasks * job.col_tasks
    if job.k == job.band.ig:
        job.width = width_of(job.og, 2 * COLS, job.tasks, 2)
    else:
        job.width = width_of(job.og, COLS, job.tasks, 8)
    job.width_tasks = (job.og + job.width - 1) // job.width
    job.tasks *= job.width_tasks
    share(job, images)
    if job.swap:
        plan_swapped(job)
        job.lists = job.taps = <int64_t *>need(job.k * sizeof(int64_t), "conv")
        plan_taps(job)
    else:
        plan_rows(job, residual)
        plan_lists(job, packed.finite and mode == 0 and not job.half)
    return 0


cdef int plan_conv(Job *job, void **owned, PackedConv packed, tuple given, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, int mode,
                   bint x_last, bint out_last, bint residual, activation) except -1:
    packed.fits(given, x_last | out_last << 1, pads)
    job.lists = NULL
    try:
        return plan_call(job, packed, x, out, pads, mode, x_last, out_last, residual, activation)
    finally:
        owned[0] = job.lists


cdef int run_conv(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, residual or NULL."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int threads = workers(job.tasks, job.work)
    if job.tasks == 0:
        return 0
    job.x, job.out, job.epilogue.residual = <const float *>operands[0], <float *>operands[1], <const float *>operands[2]
    job.scratch = <char *>alloc((job.pieces.at_workers if job.inside else 0) + threads * job.scratch_size)
    if job.scratch == NULL:
        return -1
    if job.inside:
        job.pieces.x, job.pieces.out, job.pieces.scratch = job.x, job.out, job.scratch
        job.pieces.epilogue.residual = job.epilogue.residual
        if job.pieces.turns:
            parallel(turn_task, &job.pieces, job.pieces.turns, threads)
        parallel(inside_task, &job.pieces, job.tasks, threads)
    elif job.blocked:
        job.blocks.x, job.blocks.out, job.blocks.residual = job.x, job.out, job.epilogue.residual
        job.blocks.scratch = job.scratch
        parallel(blocks_task, &job.blocks, job.tasks, threads)
    elif job.along:
        job.lines.x, job.lines.out, job.lines.epilogue.residual, job.lines.scratch = job.x, job.out, job.epilogue.residual, job.scratch
        parallel(lines_task, &job.lines, job.tasks, threads)
    else:
        parallel(swapped_task if job.swap else task, &job, job.tasks, threads)
    release(job.scratch)
    return 0


include "made/conv.pxi"
