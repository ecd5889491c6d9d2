"""Winograd convolution, F(m, k) and F(m x m, k x k): tiles of the input are transformed, multiplied with transformed weights, and
transformed back.

Of n inputs an axis, n = m + k - 1, come m outputs with n multiplications a pair of channels where the direct way takes k m. For two axes
that is 16 instead of 36 (m = 2, k = 3), 36 instead of 144 (m = 4, k = 3) or 100 (m = 2, k = 5), 64 instead of 400 (m = 4, k = 5) or 196
(m = 2, k = 7), for one 8 instead of 18 (m = 6, k = 3).
Each of the n or n^2 positions is a matrix product of its own, tiles x channels times channels x outputs. An axis without taps is a side
of 1; kernels along the depth alone take a volume for an image as high as it is deep and as wide as its slices have pixels. Taps along the
depth next to others are further terms of the products: those of an output's tile are the channels of the same tile in the slices around
it, each of which is transformed once for all of a block. Slices in the padding are left out where all weights are finite.

With a stride of 2 along height and width, three taps are two on the even pixels and one on the odd ones: 4 outputs of 9 inputs take
5 + 4 multiplications an axis instead of 12, in the plane 81 instead of 144. The four of the odd pixels have the same weight, so there are
36 matrices of weights for 81 positions. Depth may have any stride up to its taps.

Tiles are taken in blocks whose values stay in a second-level cache between the three stages. V holds a block's transformed inputs, M its
sums for some columns of outputs, both [tile][position][channel], so that a transform keeps to a few pages. Channels-first data is
transposed a few channels at a time, on its way in and out. Slices of depth are their own images, whose planes are further apart
where data is channels-first. Groups are their own convolutions, with their own blocks. Every output is made by the same operations
in the same order wherever its block, layout and task begin: results are equal bit for bit.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

import numpy as np

from ._engine cimport (
    FL_KC, FL_PANEL,
    alloc, copied, fl_block, fl_kernels, fl_run, fl_wino_in, fl_wino_out, hands, level, need, parallel, release, run_begin, run_end, workers,
)
from ._space cimport begin_of, even, pieces_for, rounded
from ._winograd cimport MOST_SIDE, MOST_TAPS, transform_weights
from ._fit cimport Fit, check_groups, fit_of, read_steps
from .gemm cimport Panels, make_panels, panels_size

from .. import fits
from ..winograd_points import check_tile, kinds, sides, terms_of, weights_axis

cnp.import_array()

cdef enum:
    BUDGET = 131072   # floats of V and M that a block may have, if that makes LEAST tiles: 512 KB
    LEAST = 32        # tiles of a block: fewer do not repay reading all weights (8 images 512@7, F(4): 24 and 32 tiles took 6.4 and 5.0 ms)
    MOST = 128
    ALONE = 64        # up to so many tiles are one block, whose channels and columns are the tasks
    BLOCKS = 8        # wanted where there are more tiles, for as many threads
    WIDTH = 64        # columns of M
    FEW = 8           # tiles along a row of a block that has many slices: fewer bring pixels in twice

cdef Fit PACK = fit_of("winograd_pack"), FIT = fit_of("winograd")
cdef int64_t[3] ONES = [1, 1, 1]   # dilation


@cython.final
cdef class PackedWinograd:
    """Transformed weights in panels, position by position. Immutable; may be used by any number of threads at once."""
    cdef readonly Panels panels   # groups x positions x panels
    cdef float *bias   # groups x whole panels, or NULL
    cdef int64_t groups, ig, og
    cdef int m
    cdef int side[2]   # positions of a tile along each axis, 1 where there are no taps
    cdef int kinds[2]  # and how many of those have weights of their own, the first ones; all others have those of the last one
    cdef int taps      # along the depth, as terms of the products
    cdef bint finite   # known to be, where these are several
    cdef int64_t kernel[3]
    cdef int64_t stride[3]

    def __dealloc__(self):
        release(self.bias)

    cdef int fits(self, tuple arrays, int layout, pads) except -1:
        cdef int64_t known[2]
        known[0], known[1] = self.groups * self.ig, self.groups * self.og
        if len(pads) == 6:
            if self.kernel[0] == 1 and (pads[0] or pads[1]):
                fits.whole_slices("winograd", pads)
            if self.taps < self.kernel[0] and any(pads[2:]):
                fits.whole_columns("winograd", pads)
        return FIT.check_window(known, arrays, layout, pads, self.kernel, self.stride, ONES)


def winograd_pack(cnp.ndarray weight__oidhw, cnp.ndarray bias__o, int tile, int64_t groups, stride=(1, 1, 1)):
    """Weights (o, i / groups, kd, kh, kw) of a convolution for tiles of `tile` outputs along each axis that has taps."""
    return winograd_restore(weight__oidhw, bias__o, tile, groups, stride, None)


def winograd_restore(cnp.ndarray weight__oidhw, cnp.ndarray bias__o, int tile, int64_t groups, stride, cnp.ndarray stored):
    """`winograd_pack` of weights that are there packed: `stored` is what ``packed.panels.array()`` of the same weights was, or None."""
    PACK.check(NULL, (weight__oidhw, bias__o), 0)
    cdef PackedWinograd packed = PackedWinograd.__new__(PackedWinograd)
    cdef int64_t o = weight__oidhw.shape[0], size, g, i
    cdef int[2] taps
    cdef double[2][MOST_SIDE * MOST_TAPS] axes
    cdef tuple kernel = (weight__oidhw.shape[2], weight__oidhw.shape[3], weight__oidhw.shape[4])
    cdef int64_t[3] dilation
    read_steps("winograd_pack", stride, (1, 1, 1), packed.stride, dilation)
    stride = tuple(stride)
    check_tile(kernel, tile, stride)
    check_groups("winograd_pack", "groups", groups, o)
    packed.groups, packed.ig, packed.og, packed.m = groups, weight__oidhw.shape[1], o // max(groups, <int64_t>1), tile
    packed.kernel[0], packed.kernel[1], packed.kernel[2] = kernel
    packed.side[0], packed.side[1] = sides(kernel, tile, stride)
    packed.kinds[0], packed.kinds[1] = kinds(kernel, tile, stride)
    packed.taps = terms_of(kernel)
    packed.finite = packed.taps > 1 and bool(np.isfinite(weight__oidhw).all())
    taps[0], taps[1] = kernel[0] // packed.taps * kernel[1], kernel[2]
    for axis in range(2):
        matrix = weights_axis(packed.side[axis], taps[axis]).ravel() if taps[axis] > 1 else (1.0,)
        for i, value in enumerate(matrix):
            axes[axis][i] = value
    size = packed.kinds[0] * packed.kinds[1] * panels_size(packed.og, packed.taps * packed.ig)
    packed.panels = make_panels(groups * size, stored, "winograd_pack")
    cdef const float *w = <const float *>cnp.PyArray_DATA(weight__oidhw)
    if stored is None:
        with nogil:
            for g in range(groups):
                transform_weights(w + g * packed.og * packed.ig * packed.taps * taps[0] * taps[1], packed.og, packed.ig, packed.taps,
                                  packed.kinds, taps, axes[0], axes[1], packed.panels.data + g * size)
    if bias__o is not None:
        wide = np.zeros((groups, panels_size(packed.og, 1)), np.float32)
        wide[:, :packed.og] = bias__o.reshape(groups, packed.og)
        packed.bias = copied(wide, "winograd_pack")
    return packed


cdef struct Job:
    const fl_kernels *level
    const float *x
    const float *u
    float *bias
    const float *residual
    float *out
    int m[2]                 # outputs of a tile along each axis
    int side[2]              # and its positions
    int step[2]              # inputs from one tile to the next
    int kinds[2]             # positions with weights of their own
    int points
    int64_t hop              # the stride along the depth
    int64_t depth            # slices of a volume of the input
    int64_t padded, zeros    # with those of zeros that are transformed, and how many of them are before the first
    int64_t images, out_depth   # images: the slices of all volumes of the result, `out_depth` of each
    int64_t taps, front      # along the depth, and slices before the first one that are left out
    int64_t groups, channels, out_channels   # of a group
    int64_t terms            # of the products: the channels of each tap along the depth
    int64_t size[2]          # of the input
    int64_t out_size[2]
    int64_t before[2]
    bint x_last, out_last
    int code
    float a, b
    # how the work is cut: blocks of images x rows x cols tiles, and pieces of the product's columns
    int64_t tiles[2]         # of an image
    int64_t block_images, block_rows, block_cols, image_blocks, row_blocks, col_blocks
    int64_t width, column_pieces  # the most columns of a piece
    bint alone               # there is one block of each group, and all threads work on it
    double work
    int64_t v_point, v_tile, m_point, m_tile   # floats between positions and tiles of V and M
    # scratch in bytes: what all workers share (V, if `alone`), and what each has: V otherwise, M, and pieces of data that are transposed
    char *scratch
    size_t shared_size, own_size, v_size, at_m, at_part


# Of an image, those along the depth that are not left out: from `first` up to `stop`, which read the slices from `source` on.
cdef struct Taps:
    int64_t first, stop, source


cdef struct Block:
    int64_t group
    int64_t image, row, col             # its first tile
    int64_t images, rows, cols, tiles   # how many there are
    int64_t source, sources             # the `padded` slices that it reads, counted through all volumes: the first, and how many


cdef Taps taps_of(const Job *job, int64_t image) noexcept nogil:
    cdef Taps taps
    cdef int64_t z = image % job.out_depth * job.hop - job.front   # the slice of its first tap
    taps.first = min(max(-z, <int64_t>0), job.taps)
    taps.stop = max(min(job.padded - z, job.taps), taps.first)
    taps.source = image // job.out_depth * job.padded + min(max(z + taps.first, <int64_t>0), job.padded)
    return taps


cdef void add_sources(const Job *job, Block *block) noexcept nogil:
    """The slices between a block's first and last one: with a stride up to the taps it reads all of them, but for some at a volume's end."""
    cdef Taps first = taps_of(job, block.image), last = taps_of(job, block.image + block.images - 1)
    block.source, block.sources = first.source, max(last.source + last.stop - last.first - first.source, <int64_t>0)


cdef Block block_of(const Job *job, int64_t number) noexcept nogil:
    cdef Block block
    cdef int64_t count = job.image_blocks * job.row_blocks * job.col_blocks
    block.group = number // count
    number = number % count
    block.col = number % job.col_blocks * job.block_cols
    number = number // job.col_blocks
    block.row = begin_of(number % job.row_blocks, job.row_blocks, job.tiles[0])
    block.rows = begin_of(number % job.row_blocks + 1, job.row_blocks, job.tiles[0]) - block.row
    block.image = number // job.row_blocks * job.block_images
    block.images = min(job.block_images, job.images - block.image)
    block.cols = min(job.block_cols, job.tiles[1] - block.col)
    block.tiles = block.images * block.rows * block.cols
    add_sources(job, &block)
    return block


cdef int64_t slice_at(const Job *job, int64_t group, int64_t image, int64_t channels, int64_t depth, const int64_t *size,
                      bint last) noexcept nogil:
    """Floats before the channels of a group in the slice `image`, of groups x channels x depth x size values per volume."""
    cdef int64_t plane = size[0] * size[1]
    if last:
        return image * job.groups * channels * plane + group * channels
    return (image // depth * job.groups + group) * channels * depth * plane + image % depth * plane


cdef void fill_row(const Job *job, const float *x, int64_t y, int64_t start, int64_t cols, int64_t c0, float *to) noexcept nogil:
    """Pixels start .. start + cols - 1 of row y of an image, FL_PANEL channels from c0 on; zeros for what is outside the image."""
    cdef int64_t height = job.size[0], width = job.size[1], volume = job.depth * height * width, c = min(<int64_t>FL_PANEL, job.channels - c0), i, apart
    cdef int64_t i0 = min(max(-start, <int64_t>0), cols), i1 = max(min(width - start, cols), i0)
    if y < 0 or y >= height or i0 == i1:
        memset(to, 0, cols * FL_PANEL * sizeof(float))
        return
    if c < FL_PANEL:
        memset(to, 0, cols * FL_PANEL * sizeof(float))
    else:
        memset(to, 0, i0 * FL_PANEL * sizeof(float))
        memset(to + i1 * FL_PANEL, 0, (cols - i1) * FL_PANEL * sizeof(float))
    to += i0 * FL_PANEL
    i = y * width + start + i0
    if not job.x_last:
        job.level.transpose(x + c0 * volume + i, volume, to, FL_PANEL, c, i1 - i0)
        return
    apart = job.groups * job.channels
    x += i * apart + c0
    for i in range(i1 - i0):
        if c == FL_PANEL:
            memcpy(to + i * FL_PANEL, x + i * apart, FL_PANEL * sizeof(float))
        else:
            memcpy(to + i * FL_PANEL, x + i * apart, c * sizeof(float))


cdef void transform(const Job *job, const Block *block, int64_t c0, float *v, float *part) noexcept nogil:
    """V of a block, FL_PANEL channels from c0 on. Rows of pixels are brought into `part`, a ring with the rows of a tile."""
    cdef const float *rows[MOST_SIDE]
    cdef const float *x
    cdef bint inside
    cdef fl_wino_in p
    cdef int64_t image, z, r, i, y, first, side = job.side[0], cols = (block.cols - 1) * job.step[1] + job.side[1]
    cdef int64_t start = block.col * job.step[1] - job.before[1]
    p.rows, p.tiles, p.v, p.point, p.tile = rows, block.cols, v + c0, job.v_point, job.v_tile
    for i in range(2):
        p.side[i], p.m[i] = job.side[i], job.step[i]
    for image in range(block.sources):
        z = (block.source + image) % job.padded - job.zeros
        inside = 0 <= z < job.depth
        x = job.x
        if inside:
            x += slice_at(job, block.group, (block.source + image) // job.padded * job.depth + z, job.channels, job.depth, job.size, job.x_last)
        for r in range(block.rows):
            y = (block.row + r) * job.step[0]
            first = 0 if r == 0 else side - job.step[0]   # the row of tiles above has brought the first rows of pixels
            for i in range(side):
                rows[i] = part + (y + i) % side * cols * FL_PANEL
                if i >= first:
                    fill_row(job, x, y + i - job.before[0] if inside else -1, start, cols, c0, <float *>rows[i])
            job.level.winograd_in(&p)
            p.v += block.cols * job.v_tile


cdef const float *panels_at(const Job *job, int64_t group, int64_t q, int64_t k0, int64_t j0) noexcept nogil:
    """Weights of position q, from term k0 on (a block of K begins there), for columns from j0 on."""
    cdef int64_t width = panels_size(job.out_channels, 1)
    if job.kinds[1] < job.side[1]:
        q = min(q // job.side[1], <int64_t>job.kinds[0] - 1) * job.kinds[1] + min(q % job.side[1], <int64_t>job.kinds[1] - 1)
    return job.u + ((group * job.kinds[0] * job.kinds[1] + q) * job.terms + k0) * width + j0 * min(<int64_t>FL_KC, job.terms - k0)


cdef int add_runs(const Job *job, const Taps *taps, int64_t k0, int64_t klen, int64_t at, int64_t apart, fl_run *runs) noexcept nogil:
    """Runs of terms k0 .. k0 + klen - 1, from `at` on and with slices `apart`; returns their number, or -1 if all are left out."""
    cdef int64_t k = k0, tap, channel, length
    cdef int count = 0
    cdef bint none = k0 > 0
    runs[0].offset, runs[0].length = at, 0
    while k < k0 + klen:
        tap, channel = k // job.channels, k % job.channels
        length = min(job.channels - channel, k0 + klen - k)
        if taps.first <= tap < taps.stop:
            runs[count].offset, runs[count].length = at + (tap - taps.first) * apart + channel, length
            none = False
        else:
            runs[count].offset, runs[count].length = 0, -length
        count += 1
        k += length
    return -1 if none else max(count, 1)


cdef void multiply(const Job *job, const Block *block, int64_t j0, int64_t n, const float *v, float *sums) noexcept nogil:
    """M of a block: n columns from j0 on, whole panels. Slices next to each other that read as many others are one product."""
    cdef const float *rows[MOST]
    cdef fl_block p
    cdef fl_run runs[MOST_TAPS]
    cdef Taps taps[MOST]
    cdef const float *ahead
    cdef const float *at
    cdef int64_t plane = block.rows * block.cols, image, first, i, q, k0
    for image in range(block.images):
        taps[image] = taps_of(job, block.image + image)
        at = v + (taps[image].source - block.source) * plane * job.v_tile
        for i in range(plane):
            rows[image * plane + i] = at + i * job.v_tile
    p.n, p.runs, p.ldc, p.epilogue = n, runs, job.m_tile, NULL
    p.b = panels_at(job, block.group, 0, 0, j0)
    for q in range(job.points):
        k0 = 0
        while True:  # once even without channels: sums are zeros
            p.klen, p.accumulate = min(<int64_t>FL_KC, job.terms - k0), k0 > 0
            if k0 + p.klen < job.terms:
                ahead = panels_at(job, block.group, q, k0 + p.klen, j0)
            elif q + 1 < job.points:
                ahead = panels_at(job, block.group, q + 1, 0, j0)
            else:
                ahead = panels_at(job, block.group, 0, 0, j0 + n if j0 + n < job.out_channels else 0)
            image = 0
            while image < block.images:
                first = image
                while image < block.images and taps[image].first == taps[first].first and taps[image].stop == taps[first].stop:
                    image += 1
                p.nruns = add_runs(job, &taps[first], k0, p.klen, q * job.v_point, plane * job.v_tile, runs)
                if p.nruns < 0:
                    continue
                p.rows, p.m = rows + first * plane, (image - first) * plane
                p.c = sums + q * job.m_point + first * plane * job.m_tile
                p.ahead = ahead if image == block.images else NULL
                job.level.block(&p)
            p.b = ahead
            k0 += p.klen
            if k0 >= job.terms:
                break


cdef void from_planes(const Job *job, const float *planes, int64_t rows, int64_t cols, int64_t c, float *to) noexcept nogil:
    """rows x cols pixels of c planes like the output's, as pixels of FL_PANEL channels next to each other."""
    cdef int64_t width = job.out_size[1], volume = job.out_depth * job.out_size[0] * width, y, lines = 1 if cols == width else rows, n = rows * cols // lines
    for y in range(lines):
        job.level.transpose(planes + y * width, volume, to + y * n * FL_PANEL, FL_PANEL, c, n)


cdef void to_planes(const Job *job, const float *pixels, int64_t rows, int64_t cols, int64_t c, float *planes) noexcept nogil:
    """The other way round."""
    cdef int64_t width = job.out_size[1], volume = job.out_depth * job.out_size[0] * width, y, lines = 1 if cols == width else rows, n = rows * cols // lines
    for y in range(lines):
        job.level.transpose(pixels + y * n * FL_PANEL, FL_PANEL, planes + y * width, volume, n, c)


cdef void untransform(const Job *job, const Block *block, int64_t j0, int64_t n, const float *sums, float *part) noexcept nogil:
    """Outputs of a block out of M: n columns from j0 on. `part` holds a residual, and then outputs, that are transposed."""
    cdef int64_t height = job.out_size[0], width = job.out_size[1], oy = block.row * job.m[0], ox = block.col * job.m[1]
    cdef int64_t rows = min(block.rows * job.m[0], height - oy), cols = min(block.cols * job.m[1], width - ox)
    cdef int64_t image, row, at, first, step = n if job.out_last else FL_PANEL, c0 = 0, c
    cdef int64_t apart = job.groups * job.out_channels   # of pixels
    cdef fl_wino_out p
    p.point, p.tile, p.tiles, p.cols = job.m_point, job.m_tile, block.cols, cols
    p.code, p.a, p.b, p.residual = job.code, job.a, job.b, NULL
    for c in range(2):
        p.side[c], p.m[c] = job.side[c], job.m[c]
    while c0 < n:
        c = min(step, n - c0)
        p.s = sums + c0
        p.bias = NULL if job.bias == NULL else job.bias + block.group * panels_size(job.out_channels, 1) + j0 + c0
        for image in range(block.image, block.image + block.images):
            first = slice_at(job, block.group, image, job.out_channels, job.out_depth, job.out_size, job.out_last)
            if job.out_last:
                at = first + (oy * width + ox) * apart + j0 + c0
                p.c, p.pixel, p.row, p.out = c, apart, width * apart, job.out + at
                if job.residual != NULL:
                    p.residual = job.residual + at
            else:
                at = first + ((j0 + c0) * job.out_depth * height + oy) * width + ox
                p.c, p.pixel, p.row, p.out = FL_PANEL, FL_PANEL, cols * FL_PANEL, part
                if job.residual != NULL:
                    from_planes(job, job.residual + at, rows, cols, c, part)
                    p.residual = part  # each number is read before its place is written
            for row in range(block.rows):
                p.rows = min(<int64_t>job.m[0], rows - row * job.m[0])
                job.level.winograd_out(&p)
                p.s += block.cols * p.tile
                p.out += job.m[0] * p.row
                if p.residual != NULL:
                    p.residual += job.m[0] * p.row
            if not job.out_last:
                to_planes(job, part, rows, cols, c, job.out + at)
        c0 += step


cdef void columns(const Job *job, const Block *block, int64_t piece, const float *v, char *own) noexcept nogil:
    """The outputs of a block, one piece of the columns, out of V."""
    cdef int64_t panels = pieces(job.out_channels, FL_PANEL), j0 = begin_of(piece, job.column_pieces, panels) * FL_PANEL
    cdef int64_t n = min(begin_of(piece + 1, job.column_pieces, panels) * FL_PANEL, job.out_channels) - j0
    multiply(job, block, j0, panels_size(n, 1), v, <float *>(own + job.at_m))
    untransform(job, block, j0, n, <const float *>(own + job.at_m), <float *>(own + job.at_part))


cdef void block_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef Block block = block_of(job, number)
    cdef char *own = job.scratch + job.shared_size + worker * job.own_size
    cdef int64_t c0 = 0, piece
    while c0 < job.channels:
        transform(job, &block, c0, <float *>own, <float *>(own + job.at_part))
        c0 += FL_PANEL
    for piece in range(job.column_pieces):
        columns(job, &block, piece, <const float *>own, own)


cdef void channels_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t panels = pieces(job.channels, FL_PANEL), group = number // panels
    cdef Block block = block_of(job, group)
    cdef char *own = job.scratch + job.shared_size + worker * job.own_size
    transform(job, &block, number % panels * FL_PANEL, <float *>(job.scratch + group * job.v_size), <float *>(own + job.at_part))


cdef void columns_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t group = number // job.column_pieces
    cdef Block block = block_of(job, group)
    columns(job, &block, number % job.column_pieces, <const float *>(job.scratch + group * job.v_size),
            job.scratch + job.shared_size + worker * job.own_size)


cdef int64_t pieces(int64_t n, int64_t length) noexcept nogil:
    return (n + length - 1) // length


cdef int64_t apart(int64_t floats) noexcept nogil:
    """At least so many floats: tiles must not be a multiple of 1 KB apart, which would put them into the same cache sets."""
    return floats + (FL_PANEL if floats % 256 == 0 else 0)


cdef void cut(Job *job, int most_hands) noexcept nogil:
    """Cuts tiles into blocks and columns into pieces."""
    cdef int64_t image_tiles = job.tiles[0] * job.tiles[1], tiles = job.images * image_tiles, most
    # Where taps share what is transformed, larger blocks are faster (3x3x3 128@8x28: 0.9 of the time, 256@8x28 0.8).
    cdef int64_t some = 1 if job.taps == 1 else 2
    cdef int64_t panels = pieces(job.out_channels, FL_PANEL)
    # Groups are tasks enough where there are as many of them as threads; a panel of columns is one task.
    job.alone = tiles <= ALONE and job.groups < max(most_hands, 2) and panels > 1
    job.column_pieces = pieces_for(panels, WIDTH // FL_PANEL, 1, job.groups, most_hands if job.alone else 1)
    job.width = pieces(panels, job.column_pieces) * FL_PANEL
    if tiles <= ALONE:
        most = ALONE
    else:
        most = some * BUDGET // max(job.points * (panels_size(job.channels, 1) + job.width), <int64_t>1)
        most = min(max(min(most, pieces(tiles * job.groups, BLOCKS)), some * LEAST), <int64_t>MOST)
    job.block_images, job.block_rows, job.block_cols = 1, 1, even(job.tiles[1], most)
    if job.taps > 1:  # many slices, which share what they read
        if job.out_depth * image_tiles <= most:
            job.block_rows, job.block_cols = job.tiles[0], job.tiles[1]
            job.block_images = job.out_depth * even(job.images // job.out_depth, most // (job.out_depth * image_tiles))
        else:
            job.block_images = even(job.out_depth, max(most // min(job.tiles[1], <int64_t>FEW), <int64_t>1))
            job.block_cols = even(job.tiles[1], most // job.block_images)
            if job.block_cols == job.tiles[1]:
                job.block_rows = even(job.tiles[0], most // (job.block_images * job.block_cols))
    elif job.block_cols == job.tiles[1]:
        job.block_rows = even(job.tiles[0], max(most // job.block_cols, <int64_t>1))
        if job.block_rows == job.tiles[0]:
            job.block_images = even(job.images, max(most // image_tiles, <int64_t>1))
    job.image_blocks = pieces(job.images, job.block_images)
    job.row_blocks, job.col_blocks = pieces(job.tiles[0], job.block_rows), pieces(job.tiles[1], job.block_cols)
    if not job.alone and (job.block_images == 1 or job.taps > 1):
        job.row_blocks = pieces_for(job.tiles[0], job.block_rows, pieces(LEAST, 4 * job.block_images * job.block_cols),
                                    job.groups * job.image_blocks * job.col_blocks, most_hands)
        job.block_rows = pieces(job.tiles[0], job.row_blocks)


cdef int plan_winograd(Job *job, PackedWinograd packed, tuple given, tuple x, tuple out, pads, bint x_last, bint out_last,
                       activation) except -1:
    cdef int axis, at = 1 if x_last else 2, to = 1 if out_last else 2
    cdef int64_t tiles, sources = 0, inputs, outputs, at_image
    cdef int64_t[3] size, out_size
    cdef Block block
    cdef bint along = packed.taps < packed.kernel[0]   # is the depth an axis of tiles?
    packed.fits(given, x_last | out_last << 1, pads)
    memset(job, 0, sizeof(Job))
    job.level = level()
    job.u, job.bias, job.points = packed.panels.data, packed.bias, packed.side[0] * packed.side[1]
    for axis in range(3):
        size[axis], out_size[axis] = x[at + axis], out[to + axis]
    job.depth, job.out_depth, job.taps, job.front, job.hop = size[0], out_size[0], packed.taps, pads[0], packed.stride[0]
    if along:  # a volume is an image of d x (h * w) pixels
        job.depth, size[1], size[2], out_size[1], out_size[2] = 1, size[0], size[1] * size[2], out_size[0], out_size[1] * out_size[2]
        job.out_depth, job.front = 1, 0
    job.padded = job.depth
    if job.taps > 1 and not packed.finite:  # zeros times infinity are NaN
        job.padded, job.zeros, job.front = (job.out_depth - 1) * job.hop + job.taps, job.front, 0
    job.images, job.groups, job.channels, job.out_channels = x[0] * job.out_depth, packed.groups, packed.ig, packed.og
    job.terms = job.taps * job.channels
    job.x_last, job.out_last = x_last, out_last
    job.code, job.a, job.b = activation
    for axis in range(2):
        job.side[axis], job.m[axis] = packed.side[axis], packed.m if packed.side[axis] > 1 else 1
        job.kinds[axis], job.step[axis] = packed.kinds[axis], job.m[axis] * packed.stride[1 + axis]
        job.size[axis], job.out_size[axis] = size[1 + axis], out_size[1 + axis]
        job.before[axis] = pads[0 if along and axis == 0 else 2 + 2 * axis]
        job.tiles[axis] = pieces(job.out_size[axis], job.m[axis])
    tiles = job.images * job.tiles[0] * job.tiles[1]
    if tiles == 0 or job.out_channels == 0:
        return 0  # nothing to do, as image_blocks = 0 says
    # What both transforms do for a number of V or M costs about as much as eight multiply-adds of the product.
    job.work = 2.0 * tiles * job.groups * job.points * (<double>job.terms * job.out_channels + 8.0 * (job.channels + job.out_channels))
    cut(job, hands(job.work))
    job.v_point, job.m_point = panels_size(job.channels, 1), job.width
    job.v_tile, job.m_tile = apart(job.points * job.v_point), apart(job.points * job.m_point)
    for at_image in range(0, job.images, job.block_images):
        block.image, block.images = at_image, min(job.block_images, job.images - at_image)
        add_sources(job, &block)
        sources = max(sources, block.sources)
    job.v_size = rounded(sources * job.block_rows * job.block_cols * job.v_tile * sizeof(float))
    if job.alone:
        job.shared_size = job.groups * job.v_size
    else:
        job.at_m = job.v_size
    job.at_part = job.at_m + rounded(job.block_images * job.block_rows * job.block_cols * job.m_tile * sizeof(float))
    inputs = job.side[0] * ((job.block_cols - 1) * job.step[1] + job.side[1])
    outputs = 0 if out_last else job.block_rows * job.m[0] * job.block_cols * job.m[1]
    job.own_size = job.at_part + rounded(max(inputs, outputs) * FL_PANEL * sizeof(float))
    return 0


cdef int run_winograd(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, residual or NULL."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t blocks = job.groups * job.image_blocks * job.row_blocks * job.col_blocks, channel_tasks, column_tasks
    cdef int threads
    if blocks == 0:
        return 0
    channel_tasks, column_tasks = job.groups * pieces(job.channels, FL_PANEL), job.groups * job.column_pieces
    job.x, job.out, job.residual = <const float *>operands[0], <float *>operands[1], <const float *>operands[2]
    threads = workers(max(channel_tasks, column_tasks) if job.alone else blocks, job.work)
    job.scratch = <char *>alloc(job.shared_size + threads * job.own_size)
    if job.scratch == NULL:
        return -1
    if job.alone:
        run_begin()
        parallel(channels_task, &job, channel_tasks, threads)
        parallel(columns_task, &job, column_tasks, threads)
        run_end()
    else:
        parallel(block_task, &job, blocks, threads)
    release(job.scratch)
    return 0


include "made/winograd.pxi"
