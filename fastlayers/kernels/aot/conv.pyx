"""Convolution in 1 to 3 dimensions over the packed matrix product, without an im2col matrix: its weights, and which way it goes.

A pixel's taps are a few runs of consecutive floats in padded channels-last data (one per kernel row, since kw * c values of a row are
adjacent), so an output pixel is a row of the product, given by one pointer and a list of runs that all pixels share. A task pads (and, for
channels-first data, transposes) the few input rows that it needs into scratch that stays in cache; data that needs neither is read in place.

That is `_rows.pyx`. Channels-first data with few taps (a 1x1 kernel, or few channels) swap roles instead: the weights' rows are broadcast and pixels are the
panels, packed or read where they are, so that neither side is transposed: see `_swapped.pyx`. Few results a group go along lines of
pixels: see `_lines.pyx`. Where many taps are in the padding, it is left out: see `_inside.pyx`. Groups of up to 8 channels go sixteen channels at a
time, as depthwise convolutions do: see `_blocks.pyx`. All walks add in the same order: results are equal bit for bit. `plan_as` chooses.
"""

cimport cython
from libc.math cimport fmax
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset
cimport numpy as cnp

import numpy as np

from ._blocks cimport Blocks, blocks_task, plan_blocks
from ._conv cimport BLOCKS, INSIDE, LINES, PIXELS, ROWS, SWAPPED, Job, dense
from ._engine cimport FL_BRAIN, FL_FINE, FL_KC, FL_PANEL, WEIGHT_WORK, alloc, copied, level, need, parallel, release, workers
from ._fit cimport Fit, check_groups, fit_of, read_steps
from ._halves cimport halves_size, pack_halves
from ._inside cimport Inside, inside_task, plan_inside, turn_task
from ._lines cimport Lines, cheaper, few, lines_task, plan_lines
from ._rows cimport plan_rows, rows_task
from ._step cimport Step
from ._swapped cimport plan_swapped, plan_taps, swapped, swapped_task
from .gemm cimport Panels, make_panels, pack_all, panels_size

from ...errors import ArgumentError
from ..halves import rounded as rounded_weights
from ..table import CONV_WALKS, HALVES

cnp.import_array()

cdef enum:
    MOST = 12     # results of swapped roles that go along lines
    WIDE = 40  # columns from which on lines are good at groups of few channels
    FEW = 128  # pixels: below, the last panel's empty columns cost more than transposing (measured: 49 pixels 1.3, 196 pixels 0.9 times as long)


cdef int FORCED = -1  # the walk that `force_walk` asks for
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


cdef bint can_block(const Job *job, PackedConv packed) noexcept nogil:
    if packed.mixed == NULL or job.band.mode != 0 or job.band.last != job.out_last or job.band.level.width < 8:
        return False
    if job.half and job.band.level.halves.native(job.half) <= 1:
        return False
    if job.band.level.fine == NULL and job.k > FL_FINE:  # one chain, where strict precision breaks it
        return False
    return job.band.size[0] == job.out_size[0] == 1 and job.band.before[0] == 0 and min(job.band.before[1], job.band.before[2]) >= 0


cdef bint by_blocks(const Job *job) noexcept nogil:
    """Are sixteen channels of several groups at a time faster than panels and lines? By what part of their lanes and columns counts.
    Measured on 6 to 256 channels, 1x1 to 5x5, 4 to 56 pixels a side and sequences, channels-last and channels-first."""
    cdef int64_t ig = job.band.ig, cols = job.out_size[2], sevens = even_up(cols, 7), eights = even_up(cols, 8)
    cdef double share = <double>job.band.channels * cols / (panels_size(job.band.channels, 1) * min(sevens, eights))
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


cdef bint plan_as(Job *job, PackedConv packed, int walk, int64_t images, bint residual, bint forced) except -1:
    """Plans the call by one walk, if it can be walked so and, unless it is `forced`, if no other is expected to be faster. They are asked
    from the last to the first. The choice depends on shapes, weights that are finite, and the level."""
    job.walk = walk
    if walk == BLOCKS:
        if not can_block(job, packed) or not (forced or by_blocks(job)):
            return False
        plan_mixed(job, packed, images, residual)
    elif walk == LINES:
        if packed.rows == NULL or not few(job.og):  # without weights by rows if `half`
            return False
        plan_along(job, packed, images, residual)
        if not forced and not by_lines(job, packed):
            release(job.lists)
            job.lists = NULL
            return False
    elif walk == INSIDE:
        if job.half or not packed.finite or job.band.mode != 0 or not (forced or not by_swapping(job, packed)):
            return False
        job.pieces.always = forced
        return plan_pieces(job, packed, images, residual)
    elif walk == SWAPPED:
        if not can_swap(job, packed) or not (forced or by_swapping(job, packed)):
            return False
        job.b, job.epilogue.bias, job.epilogue.bias_by_row = packed.rows, packed.bias_rows, True
        plan_swapped(job, images, residual)
        job.lists = job.taps = <int64_t *>need(job.k * sizeof(int64_t), "conv")
        plan_taps(job)
    else:
        plan_rows(job, images, residual, packed.finite and job.band.mode == 0 and not job.half)
    return True


cdef inline bint can_swap(const Job *job, PackedConv packed) noexcept nogil:
    return packed.swaps and job.k > 0 and not job.half and not job.band.last and not job.out_last


cdef bint by_swapping(const Job *job, PackedConv packed) noexcept nogil:
    """Are panels of pixels expected to be faster than panels of weights?"""
    cdef int64_t pixels = job.out_size[0] * job.out_size[1] * job.out_size[2], lost
    if not can_swap(job, packed) or job.k == job.band.ig and not dense(job) or pixels < FEW:
        return False
    if job.k == job.band.ig and not job.padded:
        # Of a plain product, what columns of the last panel lose, and some 0.03, against transposing x and the result, which takes
        # as long as 11 multiply-adds. 14x14 256 -> 1024 by rows 0.98 of the time, 112 -> 672 1.02, 20x20 256 -> 256 1.04.
        lost = 100 * (panels_size(pixels, 1) - pixels) + 3 * pixels
        return job.band.ig * job.og * lost <= 1100 * (job.band.ig + job.og) * pixels
    # Steps of more than 4 are gathered one by one: patches of 16x16, 3 -> 192 and 768, by rows 0.69 and 0.74 of the time, of 4x4 1.01.
    if job.stride[2] > 4 and 2 * job.k >= job.og:  # a result of many more channels than it has terms is best written where it is
        return False
    # Not a short sequence that would be packed: see `plan_swapped`.
    return not (job.band.ig > 8 and job.k > job.band.ig and job.out_size[2] % FL_PANEL and job.out_size[2] < 4 * PIXELS)


cdef bint by_lines(const Job *job, PackedConv packed) noexcept nogil:
    """Are lines, which are planned, expected to be faster?"""
    if not by_swapping(job, packed):
        return cheaper(&job.lines, job.band.last)
    # Roles swapped are as fast with more results, few terms or a stride: they write where the result is.
    return job.og <= MOST and job.k >= 64 and job.k > job.band.ig and job.stride[2] == 1


cdef int plan_call(Job *job, PackedConv packed, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, int mode, bint x_last,
                   bint out_last, bint residual, activation) except -1:
    """Everything about a call but where its arrays are. Gives the plan `lists`, which the caller releases."""
    cdef int64_t axis, images = x[0]
    cdef int walk
    memset(job, 0, sizeof(Job))
    job.band.level = level()
    job.groups, job.band.ig, job.og, job.k = packed.groups, packed.ig, packed.og, packed.k
    job.band.channels, job.out_channels = packed.groups * packed.ig, packed.groups * packed.og
    for axis in range(3):
        job.band.size[axis], job.out_size[axis] = x[axis + (1 if x_last else 2)], out[axis + (1 if out_last else 2)]
        job.kernel[axis], job.stride[axis], job.dilation[axis] = packed.kernel[axis], packed.stride[axis], packed.dilation[axis]
        job.band.before[axis] = pads[2 * axis]
        job.padded = job.padded or pads[2 * axis] != 0 or pads[2 * axis + 1] != 0
    job.band.mode, job.band.last, job.out_last = mode, x_last, out_last
    job.work = 2.0 * images * job.out_size[0] * job.out_size[1] * job.out_size[2] * job.out_channels
    if job.work == 0:
        return 0  # no task at all
    job.work *= job.k
    job.work = fmax(job.work, <double>WEIGHT_WORK * job.out_channels * job.k)
    job.epilogue.code, job.epilogue.a, job.epilogue.b = activation
    job.half = packed.half
    job.pairs = job.k != job.band.ig and job.band.level.halves.native(job.half) != 0
    job.b, job.epilogue.bias = <const float *>packed.halves if job.half else packed.panels.data, packed.bias
    if FORCED >= 0 and plan_as(job, packed, FORCED, images, residual, True):
        return 0
    for walk in range(BLOCKS, ROWS - 1, -1):
        if plan_as(job, packed, walk, images, residual, False):
            return 0
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
    job.scratch = <char *>alloc((job.pieces.at_workers if job.walk == INSIDE else 0) + threads * job.scratch_size)
    if job.scratch == NULL:
        return -1
    if job.walk == INSIDE:
        job.pieces.x, job.pieces.out, job.pieces.scratch = job.x, job.out, job.scratch
        job.pieces.epilogue.residual = job.epilogue.residual
        if job.pieces.turns:
            parallel(turn_task, &job.pieces, job.pieces.turns, threads)
        parallel(inside_task, &job.pieces, job.tasks, threads)
    elif job.walk == BLOCKS:
        job.blocks.x, job.blocks.out, job.blocks.residual = job.x, job.out, job.epilogue.residual
        job.blocks.scratch = job.scratch
        parallel(blocks_task, &job.blocks, job.tasks, threads)
    elif job.walk == LINES:
        job.lines.x, job.lines.out, job.lines.epilogue.residual, job.lines.scratch = job.x, job.out, job.epilogue.residual, job.scratch
        parallel(lines_task, &job.lines, job.tasks, threads)
    else:
        parallel(swapped_task if job.walk == SWAPPED else rows_task, &job, job.tasks, threads)
    release(job.scratch)
    return 0


def force_walk(name):
    """Has convolutions go this way, one of `table.CONV_WALKS`, wherever they can; None: as is expected to be fastest."""
    global FORCED
    FORCED = -1 if name is None else CONV_WALKS.index(name)


def walk_of(Step step not None):
    """The name of the way that a step of `conv` goes."""
    if step.run != run_conv:
        raise ValueError("walk_of: a step of another kernel: expected one of conv")
    return CONV_WALKS[(<const Job *>step.plan).walk]


include "made/conv.pxi"
