"""Winograd convolution, F(m x m, 3 x 3): tiles of the input are transformed, multiplied with transformed weights, and transformed back.

Of n x n inputs, n = m + 2, come m x m outputs with n^2 multiplications a pair of channels where the direct way takes 9 m^2: 16 instead of 36
(m = 2), 36 instead of 144 (m = 4). Each of the n^2 positions is a matrix product of its own, tiles x channels times channels x outputs.

Tiles are taken in blocks whose values stay in a second-level cache between the three stages. V holds a block's transformed inputs, M its
sums for some columns of outputs, both [tile][position][channel], so that a transform keeps to a few pages. Channels-first data is
transposed a few channels at a time, on its way in and out. Slices of depth are images of their own, whose planes are further apart
where data is channels-first. Every output is made by the same operations in the same order wherever its
block, layout and task begin: results are equal bit for bit.
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
from ._fit cimport Fit, fit_of
from ._panels cimport Panels, make_panels
from .gemm cimport panels_size

from .. import fits
from ...errors import ShapeError

cnp.import_array()

cdef enum:
    BUDGET = 131072   # floats of V and M that a block may have, if that makes LEAST tiles: 512 KB
    LEAST = 32        # tiles of a block: fewer do not repay reading all weights (8 images 512@7, F(4): 24 and 32 tiles took 6.4 and 5.0 ms)
    MOST = 128
    ALONE = 64        # up to so many tiles are one block, whose channels and columns are the tasks
    BLOCKS = 8        # wanted where there are more tiles, for as many threads
    WIDTH = 64        # columns of M
    MOST_SIDE = 4 + 2

cdef Fit PACK = fit_of("winograd_pack"), FIT = fit_of("winograd")
# Of its windows: kernel, stride, dilation
cdef int64_t[3] KERNEL = [1, 3, 3]
cdef int64_t[3] ONES = [1, 1, 1]


def weights_axis(int tile):
    """One axis of the transform of weights, (tile + 2, 3): powers of the points, divided as interpolation asks.

    The rows of the points a, -a, b, -b are multiplied by a, a, b, b on top, which the transform of the sums leaves out in turn.
    """
    if tile == 2:
        return np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    a, b = 2.0 / 3.0, 3.0 / 2.0
    rows = [[p**k * abs(p) / (2 * p * p * (p * p - q * q)) for k in range(3)] for p, q in ((a, b), (-a, b), (b, a), (-b, a))]
    return np.array([[1, 0, 0], *rows, [0, 0, 1]])


@cython.final
cdef class PackedWinograd:
    """Transformed weights in panels, position by position. Immutable; may be used by any number of threads at once."""
    cdef readonly Panels panels   # (m + 2)^2 x panels
    cdef float *bias   # whole panels, or NULL
    cdef int64_t o, c
    cdef int m

    def __dealloc__(self):
        release(self.bias)

    cdef int fits(self, tuple arrays, int layout, pads) except -1:
        cdef int64_t known[2]
        known[0], known[1] = self.c, self.o
        if len(pads) == 6 and (pads[0] or pads[1]):
            fits.whole_slices("winograd", pads)
        return FIT.check_window(known, arrays, layout, pads, KERNEL, ONES, ONES)


cdef void transform_weights(const float *w, int64_t o, int64_t c, int side, const double *axis, float *u) noexcept nogil:
    """u[position] = the panels of G w Gᵀ, formed in float64 and rounded once; columns past o are zero."""
    cdef int64_t panels = (o + FL_PANEL - 1) // FL_PANEL, size = panels * FL_PANEL * c, block, panel, k, klen, k0, j, at
    cdef int p, q, t
    cdef double half[MOST_SIDE][3][FL_PANEL]   # G w
    cdef double taps[9][FL_PANEL]
    cdef const float *tap
    cdef float *to
    for block in range((c + FL_KC - 1) // FL_KC):
        k0 = block * FL_KC
        klen = min(<int64_t>FL_KC, c - k0)
        for panel in range(panels):
            for k in range(klen):
                for j in range(FL_PANEL):
                    at = panel * FL_PANEL + j
                    tap = w + (at * c + k0 + k) * 9
                    for t in range(9):
                        taps[t][j] = tap[t] if at < o else 0
                for p in range(side):
                    for q in range(3):
                        for j in range(FL_PANEL):
                            half[p][q][j] = axis[3 * p + 0] * taps[q][j] + axis[3 * p + 1] * taps[3 + q][j] + axis[3 * p + 2] * taps[6 + q][j]
                for p in range(side):
                    for q in range(side):
                        to = u + (p * side + q) * size + panels * FL_PANEL * k0 + (panel * klen + k) * FL_PANEL
                        for j in range(FL_PANEL):
                            to[j] = <float>(axis[3 * q + 0] * half[p][0][j] + axis[3 * q + 1] * half[p][1][j] + axis[3 * q + 2] * half[p][2][j])


def winograd_pack(cnp.ndarray weight__oidhw, cnp.ndarray bias__o, int tile):
    """Weights (o, i, 1, 3, 3) of a convolution for tiles of tile x tile outputs, 2 or 4."""
    return winograd_restore(weight__oidhw, bias__o, tile, None)


def winograd_restore(cnp.ndarray weight__oidhw, cnp.ndarray bias__o, int tile, cnp.ndarray stored):
    """`winograd_pack` of weights that are there packed: `stored` is what ``packed.panels.array()`` of the same weights was, or None."""
    if tile != 2 and tile != 4:
        raise ShapeError(f"winograd_pack: tile is {tile}: expected 2 or 4")
    PACK.check(NULL, (weight__oidhw, bias__o), 0)
    cdef PackedWinograd packed = PackedWinograd.__new__(PackedWinograd)
    cdef int64_t o = weight__oidhw.shape[0], c = weight__oidhw.shape[1], size = panels_size(o, c), position
    cdef int points = (tile + 2) * (tile + 2)
    cdef double axis[3 * MOST_SIDE]
    packed.o, packed.c, packed.m = o, c, tile
    packed.panels = make_panels(points * size, stored, "winograd_pack")
    for position, row in enumerate(weights_axis(tile)):
        axis[3 * position], axis[3 * position + 1], axis[3 * position + 2] = row
    cdef const float *w = <const float *>cnp.PyArray_DATA(weight__oidhw)
    if stored is None:
        with nogil:
            transform_weights(w, o, c, tile + 2, axis, packed.panels.data)
    if bias__o is not None:
        wide = np.zeros(panels_size(o, 1), np.float32)
        wide[:o] = bias__o
        packed.bias = copied(wide, "winograd_pack")
    return packed


cdef struct Job:
    const fl_kernels *level
    const float *x
    const float *u
    float *bias
    const float *residual
    float *out
    int m, points
    int64_t images, depth    # images: the slices of all volumes, `depth` of each
    int64_t channels, out_channels
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
    bint alone               # there is one block, and all threads work on it
    double work
    int64_t v_point, v_tile, m_point, m_tile   # floats between positions and tiles of V and M
    # scratch in bytes: what all workers share (V, if `alone`), and what each has: V otherwise, M, and pieces of data that are transposed
    char *scratch
    size_t shared_size, own_size, at_m, at_part


cdef struct Block:
    int64_t image, row, col             # its first tile
    int64_t images, rows, cols, tiles   # how many there are


cdef Block block_of(const Job *job, int64_t number) noexcept nogil:
    cdef Block block
    block.col = number % job.col_blocks * job.block_cols
    number = number // job.col_blocks
    block.row = begin_of(number % job.row_blocks, job.row_blocks, job.tiles[0])
    block.rows = begin_of(number % job.row_blocks + 1, job.row_blocks, job.tiles[0]) - block.row
    block.image = number // job.row_blocks * job.block_images
    block.images = min(job.block_images, job.images - block.image)
    block.cols = min(job.block_cols, job.tiles[1] - block.col)
    block.tiles = block.images * block.rows * block.cols
    return block


cdef int64_t slice_at(const Job *job, int64_t image, int64_t channels, const int64_t *size, bint last) noexcept nogil:
    """Floats before the slice `image` of channels x depth x size values per volume."""
    cdef int64_t plane = size[0] * size[1]
    if last:
        return image * channels * plane
    return image // job.depth * channels * job.depth * plane + image % job.depth * plane


cdef void fill_row(const Job *job, const float *x, int64_t y, int64_t start, int64_t cols, int64_t c0, float *to) noexcept nogil:
    """Pixels start .. start + cols - 1 of row y of an image, FL_PANEL channels from c0 on; zeros for what is outside the image."""
    cdef int64_t height = job.size[0], width = job.size[1], volume = job.depth * height * width, c = min(<int64_t>FL_PANEL, job.channels - c0), i
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
    x += i * job.channels + c0
    for i in range(i1 - i0):
        if c == FL_PANEL:
            memcpy(to + i * FL_PANEL, x + i * job.channels, FL_PANEL * sizeof(float))
        else:
            memcpy(to + i * FL_PANEL, x + i * job.channels, c * sizeof(float))


cdef void transform(const Job *job, const Block *block, int64_t c0, float *v, float *part) noexcept nogil:
    """V of a block, FL_PANEL channels from c0 on. Rows of pixels are brought into `part`, a ring of m + 2 of them."""
    cdef const float *rows[MOST_SIDE]
    cdef const float *x
    cdef fl_wino_in p
    cdef int64_t image, r, i, y, first, side = job.m + 2, cols = block.cols * job.m + 2, start = block.col * job.m - job.before[1]
    p.m, p.rows, p.tiles, p.v, p.point, p.tile = job.m, rows, block.cols, v + c0, job.v_point, job.v_tile
    for image in range(block.images):
        x = job.x + slice_at(job, block.image + image, job.channels, job.size, job.x_last)
        for r in range(block.rows):
            y = (block.row + r) * job.m
            first = 0 if r == 0 else 2   # the row of tiles above has brought the first two rows of pixels
            for i in range(side):
                rows[i] = part + (y + i) % side * cols * FL_PANEL
                if i >= first:
                    fill_row(job, x, y + i - job.before[0], start, cols, c0, <float *>rows[i])
            job.level.winograd_in(&p)
            p.v += block.cols * job.v_tile


cdef const float *panels_at(const Job *job, int64_t q, int64_t k0, int64_t j0) noexcept nogil:
    """Weights of position q, from channel k0 on (a block of K begins there), for columns from j0 on."""
    cdef int64_t width = panels_size(job.out_channels, 1)
    return job.u + (q * job.channels + k0) * width + j0 * min(<int64_t>FL_KC, job.channels - k0)


cdef void multiply(const Job *job, const Block *block, int64_t j0, int64_t n, const float *v, float *sums) noexcept nogil:
    """M of a block: n columns from j0 on, whole panels."""
    cdef const float *rows[MOST]
    cdef fl_block p
    cdef fl_run run
    cdef int64_t i, q, k0
    for i in range(block.tiles):
        rows[i] = v + i * job.v_tile
    p.rows, p.m, p.n, p.runs, p.nruns, p.ldc, p.epilogue = rows, block.tiles, n, &run, 1, job.m_tile, NULL
    p.b = panels_at(job, 0, 0, j0)
    for q in range(job.points):
        p.c = sums + q * job.m_point
        k0 = 0
        while True:  # once even without channels: sums are zeros
            p.klen, p.accumulate = min(<int64_t>FL_KC, job.channels - k0), k0 > 0
            run.offset, run.length = q * job.v_point + k0, p.klen
            k0 += p.klen
            if k0 < job.channels:
                p.ahead = panels_at(job, q, k0, j0)
            elif q + 1 < job.points:
                p.ahead = panels_at(job, q + 1, 0, j0)
            else:
                p.ahead = panels_at(job, 0, 0, j0 + n if j0 + n < job.out_channels else 0)
            job.level.block(&p)
            p.b = p.ahead
            if k0 >= job.channels:
                break


cdef void from_planes(const Job *job, const float *planes, int64_t rows, int64_t cols, int64_t c, float *to) noexcept nogil:
    """rows x cols pixels of c planes like the output's, as pixels of FL_PANEL channels next to each other."""
    cdef int64_t width = job.out_size[1], volume = job.depth * job.out_size[0] * width, y, lines = 1 if cols == width else rows, n = rows * cols // lines
    for y in range(lines):
        job.level.transpose(planes + y * width, volume, to + y * n * FL_PANEL, FL_PANEL, c, n)


cdef void to_planes(const Job *job, const float *pixels, int64_t rows, int64_t cols, int64_t c, float *planes) noexcept nogil:
    """The other way round."""
    cdef int64_t width = job.out_size[1], volume = job.depth * job.out_size[0] * width, y, lines = 1 if cols == width else rows, n = rows * cols // lines
    for y in range(lines):
        job.level.transpose(pixels + y * n * FL_PANEL, FL_PANEL, planes + y * width, volume, n, c)


cdef void untransform(const Job *job, const Block *block, int64_t j0, int64_t n, const float *sums, float *part) noexcept nogil:
    """Outputs of a block out of M: n columns from j0 on. `part` holds a residual, and then outputs, that are transposed."""
    cdef int64_t height = job.out_size[0], width = job.out_size[1], oy = block.row * job.m, ox = block.col * job.m
    cdef int64_t rows = min(block.rows * job.m, height - oy), cols = min(block.cols * job.m, width - ox)
    cdef int64_t image, row, at, first, step = n if job.out_last else FL_PANEL, c0 = 0, c
    cdef fl_wino_out p
    p.m, p.point, p.tile, p.tiles, p.cols = job.m, job.m_point, job.m_tile, block.cols, cols
    p.code, p.a, p.b, p.residual = job.code, job.a, job.b, NULL
    while c0 < n:
        c = min(step, n - c0)
        p.s = sums + c0
        p.bias = NULL if job.bias == NULL else job.bias + j0 + c0
        for image in range(block.image, block.image + block.images):
            first = slice_at(job, image, job.out_channels, job.out_size, job.out_last)
            if job.out_last:
                at = first + (oy * width + ox) * job.out_channels + j0 + c0
                p.c, p.pixel, p.row, p.out = c, job.out_channels, width * job.out_channels, job.out + at
                if job.residual != NULL:
                    p.residual = job.residual + at
            else:
                at = first + ((j0 + c0) * job.depth * height + oy) * width + ox
                p.c, p.pixel, p.row, p.out = FL_PANEL, FL_PANEL, cols * FL_PANEL, part
                if job.residual != NULL:
                    from_planes(job, job.residual + at, rows, cols, c, part)
                    p.residual = part  # each number is read before its place is written
            for row in range(block.rows):
                p.rows = min(<int64_t>job.m, rows - row * job.m)
                job.level.winograd_out(&p)
                p.s += block.cols * p.tile
                p.out += job.m * p.row
                if p.residual != NULL:
                    p.residual += job.m * p.row
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
    cdef Block block = block_of(job, 0)
    cdef char *own = job.scratch + job.shared_size + worker * job.own_size
    transform(job, &block, number * FL_PANEL, <float *>job.scratch, <float *>(own + job.at_part))


cdef void columns_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef Block block = block_of(job, 0)
    columns(job, &block, number, <const float *>job.scratch, job.scratch + job.shared_size + worker * job.own_size)


cdef int64_t pieces(int64_t n, int64_t length) noexcept nogil:
    return (n + length - 1) // length


cdef int64_t apart(int64_t floats) noexcept nogil:
    """At least so many floats: tiles must not be a multiple of 1 KB apart, where they would share their cache lines' places."""
    return floats + (FL_PANEL if floats % 256 == 0 else 0)


cdef void cut(Job *job, int most_hands) noexcept nogil:
    """Cuts tiles into blocks and columns into pieces."""
    cdef int64_t image_tiles = job.tiles[0] * job.tiles[1], tiles = job.images * image_tiles, most
    cdef int64_t panels = pieces(job.out_channels, FL_PANEL)
    job.alone = tiles <= ALONE
    job.column_pieces = pieces_for(panels, WIDTH // FL_PANEL, 1, 1, most_hands if job.alone else 1)
    job.width = pieces(panels, job.column_pieces) * FL_PANEL
    if job.alone:
        most = ALONE
    else:
        most = BUDGET // max(job.points * (panels_size(job.channels, 1) + job.width), <int64_t>1)
        most = min(max(min(most, pieces(tiles, BLOCKS)), <int64_t>LEAST), <int64_t>MOST)
    job.block_images, job.block_rows, job.block_cols = 1, 1, even(job.tiles[1], most)
    if job.block_cols == job.tiles[1]:
        job.block_rows = even(job.tiles[0], max(most // job.block_cols, <int64_t>1))
        if job.block_rows == job.tiles[0]:
            job.block_images = even(job.images, max(most // image_tiles, <int64_t>1))
    job.image_blocks = pieces(job.images, job.block_images)
    job.row_blocks, job.col_blocks = pieces(job.tiles[0], job.block_rows), pieces(job.tiles[1], job.block_cols)
    if not job.alone and job.block_images == 1:
        job.row_blocks = pieces_for(job.tiles[0], job.block_rows, pieces(LEAST, 4 * job.block_cols), job.image_blocks * job.col_blocks, most_hands)
        job.block_rows = pieces(job.tiles[0], job.row_blocks)


cdef int plan_winograd(Job *job, PackedWinograd packed, tuple given, tuple x, tuple out, pads, bint x_last, bint out_last,
                       activation) except -1:
    cdef int axis, at = 2 if x_last else 3, to = 2 if out_last else 3
    cdef int64_t tiles, inputs, outputs
    cdef size_t v_size
    packed.fits(given, x_last | out_last << 1, pads)
    memset(job, 0, sizeof(Job))
    job.level = level()
    job.u, job.bias, job.m, job.points = packed.panels.data, packed.bias, packed.m, (packed.m + 2) * (packed.m + 2)
    job.depth = x[1 if x_last else 2]
    job.images, job.channels, job.out_channels = x[0] * job.depth, packed.c, packed.o
    job.x_last, job.out_last = x_last, out_last
    job.code, job.a, job.b = activation
    for axis in range(2):
        job.size[axis], job.out_size[axis], job.before[axis] = x[at + axis], out[to + axis], pads[2 + 2 * axis]
        job.tiles[axis] = pieces(job.out_size[axis], job.m)
    tiles = job.images * job.tiles[0] * job.tiles[1]
    if tiles == 0 or job.out_channels == 0:
        return 0  # nothing to do, as image_blocks = 0 says
    # What both transforms do for a number of V or M costs about as much as eight multiply-adds of the product.
    job.work = 2.0 * tiles * job.points * (<double>job.channels * job.out_channels + 8.0 * (job.channels + job.out_channels))
    cut(job, hands(job.work))
    job.v_point, job.m_point = panels_size(job.channels, 1), job.width
    job.v_tile, job.m_tile = apart(job.points * job.v_point), apart(job.points * job.m_point)
    v_size = rounded(job.block_images * job.block_rows * job.block_cols * job.v_tile * sizeof(float))
    if job.alone:
        job.shared_size = v_size
    else:
        job.at_m = v_size
    job.at_part = job.at_m + rounded(job.block_images * job.block_rows * job.block_cols * job.m_tile * sizeof(float))
    inputs = (job.m + 2) * (job.block_cols * job.m + 2)
    outputs = 0 if out_last else job.block_rows * job.m * job.block_cols * job.m
    job.own_size = job.at_part + rounded(max(inputs, outputs) * FL_PANEL * sizeof(float))
    return 0


cdef int run_winograd(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, residual or NULL."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t blocks = job.image_blocks * job.row_blocks * job.col_blocks, channel_tasks, column_tasks
    cdef int threads
    if blocks == 0:
        return 0
    channel_tasks, column_tasks = pieces(job.channels, FL_PANEL), job.column_pieces
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
