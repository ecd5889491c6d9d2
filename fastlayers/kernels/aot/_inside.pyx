"""Convolutions many of whose taps are in padding of zeros: at 28x28, dilation 24 leaves one and a half of nine inside. And those in
groups of few channels: of channels-last pixels, a padded copy would take a few numbers each time.

Outputs fall into rectangles that all read the same taps inside the input; each rectangle is a product over those taps alone. So no
padding is made: pixels are read where they are, channels-last (channels-first data is transposed once, at the start). The terms that
are left out would have added zeros, so sums are those of `conv`, in its order and blocks, and which are left out depends on an
output's place alone. Weights that are not finite would make NaN of zeros: with these, `conv` pads.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ._band cimport Runs, add_run, blocks_of, end_runs, multiply, no_runs
from ._engine cimport fl_block, fl_epilogue, fl_run, need
from ._space cimport even, rounded, width_of
from .gemm cimport columns_size, panels_size

cdef enum:
    PIXELS = 256     # pixels and columns of one task, as in `conv`
    COLS = 256
    TILE = 6         # rows of a tile: a piece's pixels count as whole tiles
    EACH = 8         # and so many more
    COPY = 350       # multiply-adds that bringing a pixel of one group into scratch takes
    ALONE = 4        # neighbouring results from which on whole panels go to their place at once
    TURN = 256       # pixels of a task that transposes
    MOST = 1 << 16   # pieces, and runs in all lists


cdef int64_t stretches(int64_t out, int64_t size, int64_t before, int64_t kernel, int64_t stride, int64_t dilation,
                       Stretch *to) noexcept nogil:
    cdef int64_t count = 0, o = 0, t, at, end, first, stop
    while o < out:
        first, stop, end = kernel, 0, out
        for t in range(kernel):
            at = o * stride - before + t * dilation
            if 0 <= at < size:
                first, stop = min(first, t), t + 1
            # The tap enters with the first output that reads 0 or more, and leaves with the first that reads `size` or more.
            if at < 0:
                end = min(end, o + (stride - 1 - at) // stride)
            elif at < size:
                end = min(end, o + (size - at + stride - 1) // stride)
        to[count].start, to[count].size = o, end - o
        to[count].first, to[count].stop = min(first, stop), stop
        count += 1
        o = end
    return count


cdef void add_taps(Runs *list, const int64_t *kernel, const Stretch *z, const Stretch *y, const Stretch *x, const int64_t *apart,
                   int64_t length) noexcept nogil:
    cdef int64_t i, j, k
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            for k in range(kernel[2]):
                if z.first <= i < z.stop and y.first <= j < y.stop and x.first <= k < x.stop:
                    add_run(list, i * apart[0] + j * apart[1] + k * apart[2], length)
                else:
                    add_run(list, 0, -length)


cdef inline int64_t taps(const Stretch *s) noexcept nogil:
    return s.stop - s.first


cdef int plan_inside(Inside *job, int64_t images, bint residual, void **lists) except -1:
    cdef Stretch axes[3][STRETCHES]
    cdef int64_t kinds[3]
    cdef int64_t axis, i, j, z, pieces = 0, most = 0, rows, cols, numbers
    cdef double left = 0, deep = 0, most_left
    cdef size_t at_first, at_runs
    cdef Stretch *h
    cdef Stretch *w
    lists[0] = NULL
    for axis in range(3):
        if job.kernel[axis] > LARGEST:
            return 0
        kinds[axis] = stretches(job.out_size[axis], job.band.size[axis], job.band.before[axis], job.kernel[axis], job.stride[axis],
                                job.dilation[axis], axes[axis])
    for z in range(kinds[0]):
        deep += <double>axes[0][z].size * taps(&axes[0][z])
    for i in range(kinds[1]):
        for j in range(kinds[2]):
            h, w = &axes[1][i], &axes[2][j]
            left += <double>((h.size * w.size + TILE - 1) // TILE * TILE + EACH) * taps(h) * taps(w)
            cols = even(w.size, PIXELS)
            rows = even(h.size, max(PIXELS // cols, <int64_t>1))
            most = max(most, rows * cols)
            pieces += job.out_size[0] * ((h.size + rows - 1) // rows) * ((w.size + cols - 1) // cols)
    numbers = kinds[0] * kinds[1] * kinds[2]
    job.blocks = blocks_of(job.k)
    job.room = job.kernel[0] * job.kernel[1] * job.kernel[2] + job.blocks
    # The share is of taps in a plane: those that depth leaves out need no pieces, so they do not count.
    most_left = 0.85 * job.kernel[1] * job.kernel[2]
    if job.groups > 1 and job.band.last:
        most_left += COPY * <double>(job.stride[1] * job.stride[2]) / (max(job.band.ig, <int64_t>1) * panels_size(job.og, 1))
    if deep == 0 or left > most_left * job.out_size[1] * job.out_size[2] and not job.always:
        return 0
    if pieces > MOST or numbers * job.room > MOST:
        return 0
    at_first = rounded(pieces * sizeof(Piece))
    at_runs = at_first + rounded(numbers * (job.blocks + 1) * sizeof(int64_t))
    lists[0] = need(at_runs + numbers * job.room * sizeof(fl_run), "conv")
    job.pieces = <Piece *>lists[0]
    job.first, job.runs = <int64_t *>(<char *>lists[0] + at_first), <fl_run *>(<char *>lists[0] + at_runs)
    fill_lists(job, axes[0], axes[1], axes[2], kinds)
    job.npieces, job.images = pieces, images
    job.tasks = images * job.groups * pieces
    job.width = width_of(job.og, COLS, job.tasks, 8)
    job.width_tasks = (job.og + job.width - 1) // job.width
    job.tasks *= job.width_tasks
    job.turned = job.turns = 0
    if not job.band.last:
        job.turned = images * volume_of(job) * job.band.channels
        job.turns = images * ((volume_of(job) + TURN - 1) // TURN)
    job.at_workers = rounded(job.turned * sizeof(float))
    job.at_sums = rounded(most * sizeof(float *))
    job.at_residual = job.at_sums + rounded(most * panels_size(job.width, 1) * sizeof(float))
    job.scratch_size = job.at_residual + (job.at_residual - job.at_sums if residual else 0)
    return 0


cdef inline int64_t volume_of(const Inside *job) noexcept nogil:
    return job.band.size[0] * job.band.size[1] * job.band.size[2]


cdef void fill_lists(Inside *job, const Stretch *zs, const Stretch *ys, const Stretch *xs, const int64_t *kinds) noexcept nogil:
    """Runs of all triples of stretches, and pieces that name them."""
    cdef int64_t apart[3]
    cdef int64_t z, i, j, m, n, od, rows, cols, number = 0
    cdef Piece *piece = job.pieces
    cdef Runs list
    apart[2] = job.dilation[2] * job.band.channels
    apart[1] = job.dilation[1] * job.band.size[2] * job.band.channels
    apart[0] = job.dilation[0] * job.band.size[1] * job.band.size[2] * job.band.channels
    for z in range(kinds[0]):
        for i in range(kinds[1]):
            for j in range(kinds[2]):
                list = no_runs(job.runs + number * job.room, job.first + number * (job.blocks + 1))
                add_taps(&list, job.kernel, &zs[z], &ys[i], &xs[j], apart, job.band.ig)
                end_runs(&list)
                cols = even(xs[j].size, PIXELS)
                rows = even(ys[i].size, max(PIXELS // cols, <int64_t>1))
                for od in range(zs[z].start, zs[z].start + zs[z].size):
                    for m in range((ys[i].size + rows - 1) // rows):
                        for n in range((xs[j].size + cols - 1) // cols):
                            piece.od, piece.oh, piece.ow, piece.number = od, ys[i].start + m * rows, xs[j].start + n * cols, number
                            piece.rows, piece.cols = min(rows, ys[i].size - m * rows), min(cols, xs[j].size - n * cols)
                            piece += 1
                number += 1


cdef void turn_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Inside *job = <const Inside *>context
    cdef int64_t volume = volume_of(job), each = (volume + TURN - 1) // TURN, channels = job.band.channels
    cdef int64_t first = number % each * TURN, image = number // each * volume * channels
    job.band.level.transpose(job.x + image + first, volume, <float *>job.scratch + image + first * channels, channels, channels,
                             min(<int64_t>TURN, volume - first))


cdef void inside_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Inside *job = <const Inside *>context
    cdef int64_t j0 = number % job.width_tasks * job.width, rest = number // job.width_tasks
    cdef int64_t group = rest % job.groups, width = min(job.width, job.og - j0), y, x, i = 0
    rest = rest // job.groups
    cdef const Piece *at = job.pieces + rest % job.npieces
    cdef int64_t image = rest // job.npieces
    cdef int64_t out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2], channel = group * job.og + j0, to
    cdef int64_t pixel = job.band.channels, line = job.band.size[2] * job.band.channels, plane = job.band.size[1] * line
    cdef char *scratch = job.scratch + job.at_workers + worker * job.scratch_size
    cdef const float **row = <const float **>scratch
    cdef float *made = <float *>(scratch + job.at_sums)
    cdef float *residual = <float *>(scratch + job.at_residual)
    cdef const float *base = <const float *>job.scratch if job.turned else job.x
    cdef fl_epilogue e = job.epilogue
    cdef fl_block p
    base += image * volume_of(job) * pixel + group * job.band.ig + (at.od * job.stride[0] - job.band.before[0]) * plane
    base += (at.oh * job.stride[1] - job.band.before[1]) * line + (at.ow * job.stride[2] - job.band.before[2]) * pixel
    for y in range(at.rows):
        for x in range(at.cols):
            row[i] = base + y * job.stride[1] * line + x * job.stride[2] * pixel
            i += 1
    if e.bias != NULL:
        e.bias += group * panels_size(job.og, 1) + j0
    # Where the outputs are: those of a pixel next to each other, or those of a channel.
    to = (at.od * job.out_size[1] + at.oh) * job.out_size[2] + at.ow
    to = to * job.out_channels + channel if job.out_last else channel * out_volume + to
    to += image * out_volume * job.out_channels
    p.rows, p.m, p.n, p.c = row, at.rows * at.cols, columns_size(job.band.level, width), made
    p.ldc = e.ldr = panels_size(width, 1)
    if job.out_last and p.ldc == width and at.cols >= ALONE:
        p.c, p.m = job.out + to, at.cols
        p.ldc = e.ldr = job.out_channels
        if e.residual != NULL:
            e.residual += to
        for y in range(at.rows):
            product(job, at, &p, &e, group, j0)
            p.rows += at.cols
            p.c += job.out_size[2] * job.out_channels
            if e.residual != NULL:
                e.residual += job.out_size[2] * job.out_channels
        return
    if e.residual != NULL:
        residual_rows(job, at, width, e.residual + to, residual)
        e.residual = residual
    product(job, at, &p, &e, group, j0)
    finished_rows(job, at, width, made, job.out + to)


cdef void product(const Inside *job, const Piece *at, fl_block *p, const fl_epilogue *e, int64_t group, int64_t j0) noexcept nogil:
    multiply(job.band.level, p, job.runs + at.number * job.room, job.first + at.number * (job.blocks + 1), job.k,
             job.b + group * panels_size(job.og, job.k), job.og, j0, e)


cdef void residual_rows(const Inside *job, const Piece *at, int64_t width, const float *x, float *to) noexcept nogil:
    """A piece's residual, from x on, in place of its sums."""
    cdef int64_t w = job.out_size[2], out_volume = job.out_size[0] * job.out_size[1] * w, ld = panels_size(width, 1), y, i
    for y in range(at.rows):
        if job.out_last:
            for i in range(at.cols):
                memcpy(to + (y * at.cols + i) * ld, x + (y * w + i) * job.out_channels, width * sizeof(float))
        else:
            job.band.level.transpose(x + y * w, out_volume, to + y * at.cols * ld, ld, width, at.cols)


cdef void finished_rows(const Inside *job, const Piece *at, int64_t width, const float *made, float *to) noexcept nogil:
    """A piece's results, to their place, which begins at `to`."""
    cdef int64_t w = job.out_size[2], out_volume = job.out_size[0] * job.out_size[1] * w, ld = panels_size(width, 1), y, i
    for y in range(at.rows):
        if job.out_last:
            for i in range(at.cols):
                memcpy(to + (y * w + i) * job.out_channels, made + (y * at.cols + i) * ld, width * sizeof(float))
        else:
            job.band.level.transpose(made + y * at.cols * ld, ld, to + y * w, out_volume, at.cols, width)
