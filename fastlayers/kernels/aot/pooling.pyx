"""Max and average pooling in one to three dimensions, native in both layouts.

A task makes rows of outputs of some images (channels-first: of some planes, one of each channel). What a window covers along an axis
is looked up in tables that the plan holds. Channels-last images of many channels are cut into blocks of channels, so that a line (see
csrc/pooling.h) stays in a first-level cache; where neighbouring windows start at neighbouring pixels, their channels are taken as
columns. A window that is the whole image is a reduction.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
cimport numpy as cnp

from ._engine cimport alloc, fl_kernels, fl_pool, fl_pool_row, level, need, parallel, release, workers
from ._space cimport even, rounded
from ._step cimport make_step, run_plan
from .reduce cimport Reduction, plan_reduce, run_reduce

cnp.import_array()

cdef enum:
    REDUCE_MEAN = 1
    REDUCE_MAX = 2
    TASK = 1 << 15   # numbers read by one task, about
    LINE = 8192      # floats of a line at most, about, and of all lines of a call a half of it
    ROWS = 16        # lines of a call
    BLOCK = 64       # channels of a block at least, and of what no block divides
    NARROW = 16      # channels below which the averages of a row have a factor each
    SLACK = 32       # floats at the end of a line that no window reaches
    SHORT = 64       # neighbouring windows of rows shorter than this, with at most TAPS columns, are taken as one row
    TAPS = 8


ctypedef struct Axis:
    int64_t size, out, kernel, stride, dilation, before, after


cdef int64_t reach(const Axis *axis, int64_t outputs) noexcept nogil:
    """Padded positions under `outputs` neighbouring outputs."""
    return (outputs - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1


cdef int64_t below(const Axis *axis, int64_t start, int64_t limit) noexcept nogil:
    """How many places of a window that starts at position `start` of the image lie before `limit`."""
    return min((limit - start + axis.dilation - 1) // axis.dilation, axis.kernel) if start < limit else 0


cdef int64_t inside(const Axis *axis, int64_t o, int64_t *first) noexcept nogil:
    """How many places of window o lie in the image; first: the position of the first of them."""
    cdef int64_t start = o * axis.stride - axis.before, skipped = below(axis, start, 0)
    first[0] = start + skipped * axis.dilation
    return below(axis, start, axis.size) - skipped


cdef int64_t counted(const Axis *axis, int64_t o, bint include_pad) noexcept nogil:
    """How many places of window o an average is divided by."""
    cdef int64_t first
    return below(axis, o * axis.stride - axis.before, axis.size + axis.after) if include_pad else inside(axis, o, &first)


@cython.final
cdef class Windows:
    """Tables of a plan: the input rows of every row of outputs, and the factors of averages. Never changed once it was made."""
    cdef fl_pool_row *rows
    cdef float *scales
    cdef int32_t *masks

    def __dealloc__(self):
        release(self.rows)
        release(self.scales)
        release(self.masks)

    cdef int lay_rows(self, const Axis *axes, int64_t pixel) except -1:
        """One entry for each row of outputs; pixel: floats between neighbouring pixels."""
        cdef int64_t od, oh, z, y, at_z, at_y, row = axes[2].size * pixel
        self.rows = <fl_pool_row *>need(axes[0].out * axes[1].out * sizeof(fl_pool_row), "pooling")
        for od in range(axes[0].out):
            z = inside(&axes[0], od, &at_z)
            for oh in range(axes[1].out):
                y = inside(&axes[1], oh, &at_y)
                entry = &self.rows[od * axes[1].out + oh]
                entry.from_, entry.nz, entry.ny, entry.scale = (at_z * axes[1].size + at_y) * row, z, y, NULL
        return 0

    cdef int lay_masks(self, const Axis *w, int64_t period) except -1:
        """-1 for the columns of rows without gaps whose taps lie in their row, else 0; `period` of them for each tap."""
        cdef int64_t tap, i, at
        self.masks = <int32_t *>need(w.kernel * period * sizeof(int32_t), "pooling")
        for tap in range(w.kernel):
            for i in range(period):
                at = i % w.size - w.before + tap * w.dilation
                self.masks[tap * period + i] = -1 if 0 <= at < w.size else 0
        return 0

    cdef int lay_scales(self, const Axis *axes, bint include_pad, int64_t repeat, bint share_rows) except -1:
        """1 / divisor for each column, `repeat` times; neighbouring rows that divide by the same may share the factors."""
        cdef int64_t rows = axes[0].out * axes[1].out, width = axes[2].out * repeat, tables = 0, last = -1, r, o, i, share
        cdef float *table = NULL
        for r in range(rows):
            share = counted(&axes[0], r // axes[1].out, include_pad) * counted(&axes[1], r % axes[1].out, include_pad)
            tables, last = tables + (share != last or not share_rows), share
        self.scales, last, tables = <float *>need(tables * width * sizeof(float), "pooling"), -1, 0
        for r in range(rows):
            share = counted(&axes[0], r // axes[1].out, include_pad) * counted(&axes[1], r % axes[1].out, include_pad)
            if share != last or not share_rows:
                table, last, tables = self.scales + tables * width, share, tables + 1
                for o in range(axes[2].out):
                    for i in range(repeat):
                        table[o * repeat + i] = <float>1 / <float>(share * counted(&axes[2], o, include_pad))
            self.rows[r].scale = table
        return 0


cdef struct Job:
    const fl_kernels *level
    const float *x
    float *out
    const fl_pool_row *rows
    int64_t images, pixel             # of an image: floats between neighbouring pixels
    int64_t x_image, out_image        # floats of an image
    int64_t nrows
    Axis w
    bint flat                         # the channels of a row's pixels are columns of one channel
    bint joined                       # rows of outputs, and of lines, lie without gaps: see fl_pool.masks
    fl_pool call                      # what all calls have in common
    # how the work is cut: images and rows of a task, columns, channels of a block, lines of a call
    int64_t images_each, rows_each, cols, lanes, lines, bands, pieces, blocks, tasks
    size_t scratch
    char *memory
    double work


cdef void fill(float *p, int64_t n, float value) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        p[i] = value


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t j0 = number % job.pieces * job.cols
    cdef int64_t rest = number // job.pieces
    cdef int64_t c0 = rest % job.blocks * job.lanes, lanes
    rest = rest // job.blocks
    cdef int64_t y0 = rest % job.bands * job.rows_each, y1 = min(job.nrows, y0 + job.rows_each)
    cdef int64_t image = rest // job.bands * job.images_each, last = min(job.images, image + job.images_each), y
    cdef int64_t cols = min(job.cols, job.w.out - j0), start = j0 * job.w.stride - job.w.before
    cdef int64_t from_ = min(max(start, <int64_t>0), job.w.size)
    cdef int64_t n = max(min(start + reach(&job.w, cols), job.w.size) - from_, <int64_t>0)
    cdef float nothing = 0 if job.call.average else -INFINITY
    cdef const float *x
    cdef fl_pool p = job.call
    lanes = min(job.lanes, job.pixel - c0)
    p.c, p.cols, p.first = lanes, cols, j0
    if job.flat:
        p.c, p.out_pixel, p.cols, p.first = 1, 1, cols * lanes, j0 * lanes
    p.tap, p.step = job.w.dilation * lanes, 1 if job.flat else job.w.stride * lanes
    p.runs, p.run, p.run_step = 1, n * lanes, 0
    if lanes < job.pixel:
        p.runs, p.run, p.run_step = n, lanes, job.pixel
    p.left = (from_ - start) * lanes if n > 0 else 0
    p.line = <float *>(job.memory + worker * job.scratch)
    p.spare = p.line + job.lines * p.pitch
    if job.joined:
        p.pitch = job.w.size
        fill(p.line, p.left, nothing)
        fill(p.line + p.left + job.lines * n, job.scratch // sizeof(float) - p.left - job.lines * n, nothing)
    for y in range(0 if job.joined else min(job.lines, y1 - y0)):
        fill(p.line + y * p.pitch, p.left, nothing)
        fill(p.line + y * p.pitch + p.left + n * lanes, p.pitch - p.left - n * lanes, nothing)
    while image < last:
        x = job.x + image * job.x_image + from_ * job.pixel + c0
        y = y0
        while y < y1:
            p.x, p.rows, p.nrows = x, job.rows + y, min(job.lines, y1 - y)
            p.out = job.out + image * job.out_image + (y * job.w.out + j0) * job.pixel + c0
            job.level.pool(&p)
            y += job.lines
        image += 1


cdef int run_pool(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    cdef int threads = workers(job.tasks, job.work)
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    if job.tasks == 0:
        return 0
    job.memory = <char *>alloc(threads * job.scratch)
    if job.memory == NULL:
        return -1
    parallel(task, &job, job.tasks, threads)
    release(job.memory)
    return 0


cdef void cut(Job *job, const Axis *axes) noexcept:
    """Columns, channels and rows of tasks and calls: by shapes alone, though here no cut shows in a result."""
    cdef fl_pool *call = &job.call
    cdef int64_t row, most = max(LINE // max(reach(&job.w, job.w.out), <int64_t>1), <int64_t>BLOCK)
    job.lanes = job.pixel
    if job.pixel > most:
        job.lanes = (even(job.pixel, most) + NARROW - 1) // NARROW * NARROW
    job.cols = max((LINE // job.lanes - reach(&job.w, 1)) // job.w.stride + 1, <int64_t>1)
    job.cols = even(job.w.out, max(job.cols, <int64_t>NARROW) if job.pixel < NARROW else job.cols)
    row = reach(&job.w, job.cols) * job.lanes
    call.pitch = (row + SLACK + 15) // 16 * 16
    job.lines = max(min(LINE // 2 // call.pitch, <int64_t>ROWS), <int64_t>1)
    row *= axes[0].kernel * min(axes[1].kernel, axes[1].stride)  # numbers read for a row of outputs
    job.rows_each = min(even(job.nrows, max(TASK // row, <int64_t>1)), job.nrows)
    if job.nrows * row <= 2 * TASK:
        job.rows_each = job.nrows
    job.rows_each = max(job.rows_each, <int64_t>1)
    job.images_each = max(TASK // (job.rows_each * row), <int64_t>1) if job.rows_each == job.nrows else 1
    job.bands, job.pieces = (job.nrows + job.rows_each - 1) // job.rows_each, (job.w.out + job.cols - 1) // job.cols
    job.blocks = (job.pixel + job.lanes - 1) // job.lanes
    job.tasks = (job.images + job.images_each - 1) // job.images_each * job.bands * job.pieces * job.blocks
    job.scratch = rounded((job.lines + 1) * call.pitch * sizeof(float))


cdef bint whole(const Axis *axes, bint average, bint include_pad) noexcept:
    """Is there one window, and does it hold every place of the image once and, for an average, count no other?"""
    cdef int64_t axis, first
    cdef const Axis *a
    for axis in range(3):
        a = &axes[axis]
        if a.out != 1 or inside(a, 0, &first) != a.size or (a.dilation > 1 and a.size > 1):
            return False
        if average and counted(a, 0, include_pad) != a.size:
            return False
    return True


cdef object pooling(bint as_step, x, out, tuple in_shape, tuple out_shape, kernel, stride, dilation, pads, bint include_pad,
                    bint channels_last, bint average):
    """Plans, and makes the step or runs the plan."""
    cdef Job job
    cdef Reduction reduction
    cdef Axis axes[3]
    cdef void *operands[2]
    cdef int64_t space = 1 if channels_last else 2, n = in_shape[0], c = in_shape[4 if channels_last else 1], axis, volume, outputs
    cdef Windows windows
    if not as_step:
        operands[0], operands[1] = cnp.PyArray_DATA(<cnp.ndarray>x), cnp.PyArray_DATA(<cnp.ndarray>out)
    for axis in range(3):
        axes[axis] = Axis(in_shape[space + axis], out_shape[space + axis], kernel[axis], stride[axis], dilation[axis],
                          pads[2 * axis], pads[2 * axis + 1])
    volume, outputs = axes[0].size * axes[1].size * axes[2].size, axes[0].out * axes[1].out * axes[2].out
    if whole(axes, average, include_pad):
        plan_reduce(&reduction, n if channels_last else n * c, volume, c if channels_last else 1,
                    REDUCE_MEAN if average else REDUCE_MAX)
        if as_step:
            return make_step(run_reduce, &reduction, sizeof(Reduction), 2, reduction.work, None)
        run_plan(run_reduce, &reduction, operands, reduction.work, "pooling")
        return None
    memset(&job, 0, sizeof(Job))
    windows = Windows.__new__(Windows)
    job.work = n * c * (10.0 * volume + outputs * (10.0 + 2.0 * axes[0].kernel * axes[1].kernel * axes[2].stride + 2.0 * axes[2].kernel))
    if n * c * outputs > 0:
        job.level, job.w, job.nrows = level(), axes[2], axes[0].out * axes[1].out
        job.images, job.pixel = n * (1 if channels_last else c), c if channels_last else 1
        job.x_image, job.out_image = volume * job.pixel, outputs * job.pixel
        cut(&job, axes)
        job.flat = axes[2].stride == 1 and 1 < job.pixel == job.lanes and (not average or job.pixel < NARROW)
        windows.lay_rows(axes, job.pixel)
        job.call.gathered = job.pixel == 1 and axes[2].dilation == 1 and (
            (axes[2].stride > 2 and axes[2].kernel >= 8) or (axes[2].out < 16 and axes[2].kernel >= 32))
        job.joined = (job.pixel == 1 and axes[2].stride == 1 and axes[2].out == axes[2].size < SHORT and not job.call.gathered
                      and axes[2].kernel <= TAPS)
        if job.joined:
            # Rows behind each other are a multiple of all vectors after so many: 16 / gcd(columns, 16).
            job.call.period = axes[2].size
            while job.call.period % 16:
                job.call.period *= 2
            windows.lay_masks(&axes[2], job.call.period)
            job.call.masks = windows.masks
        if average:
            windows.lay_scales(axes, include_pad, job.pixel if job.flat else 1, not job.joined)
        job.rows = windows.rows
        job.call.step_y = axes[1].dilation * axes[2].size * job.pixel
        job.call.step_z = axes[0].dilation * axes[1].size * axes[2].size * job.pixel
        job.call.kw, job.call.ldo, job.call.out_pixel = axes[2].kernel, axes[2].out * job.pixel, job.pixel
        job.call.average = average
    if as_step:
        return make_step(run_pool, &job, sizeof(Job), 2, job.work, windows)
    run_plan(run_pool, &job, operands, job.work, "pooling")
    return None


def max_pool(cnp.ndarray x, cnp.ndarray out, kernel, stride, dilation, pads, bint channels_last):
    """out = the largest number of each window; NaN if one of them is NaN, -infinity if none lies in the image."""
    pooling(False, x, out, (<object>x).shape, (<object>out).shape, kernel, stride, dilation, pads, False, channels_last, False)


def max_pool_step(tuple x, tuple out, kernel, stride, dilation, pads, bint channels_last):
    """The step of `max_pool`: shapes instead of arrays."""
    return pooling(True, None, None, x, out, kernel, stride, dilation, pads, False, channels_last, False)


def avg_pool(cnp.ndarray x, cnp.ndarray out, kernel, stride, dilation, pads, bint include_pad, bint channels_last):
    """out = the sum of each window divided by how many of its places lie in the image (include_pad: in image and pads)."""
    pooling(False, x, out, (<object>x).shape, (<object>out).shape, kernel, stride, dilation, pads, include_pad, channels_last, True)


def avg_pool_step(tuple x, tuple out, kernel, stride, dilation, pads, bint include_pad, bint channels_last):
    """The step of `avg_pool`: shapes instead of arrays."""
    return pooling(True, None, None, x, out, kernel, stride, dilation, pads, include_pad, channels_last, True)
