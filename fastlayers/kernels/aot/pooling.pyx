"""Max, average, sum and Lp pooling in one to three dimensions, native in both layouts.

A task makes rows of outputs of some images (channels-first: of some planes, one of each channel). What a window covers along an axis
is looked up in tables that the plan holds. Channels-last images of many channels are cut into blocks of channels, so that a line (see
csrc/pooling.h) stays in a first-level cache; where neighbouring windows start at neighbouring pixels, their channels are taken as
columns. Planes of one result each are slices of one image. Lp pooling takes powers of some images at a time, sums them, takes roots.
The order of a sum depends on the window and the layout alone, never on how many windows there are: a sequence in pieces has the bits of
the whole.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
cimport numpy as cnp

from ._engine cimport (FL_ABS, FL_POWER, FL_SQRT, FL_SQUARE, alloc, fl_broadcast, fl_kernels, fl_pool, fl_pool_row, level, need, parallel,
                       release, with_scratch, workers)
from ._space cimport even, rounded
from ._step cimport make_step, run_plan

cnp.import_array()

cdef enum:
    INSIDE = 0       # what a sum is divided by: its positions in the image,
    PADDED = 1       # those in image and pads,
    NOTHING = 2      # nothing
    POWERS = 1 << 17 # powers that are in memory at a time, about
    TASK = 1 << 15   # values read by one task, about
    LINE = 8192      # floats of a line at most, about, and of all lines of a call a half of it
    ROWS = 16        # lines of a call
    BLOCK = 64       # channels of a block at least, and of what no block divides
    NARROW = 16      # channels below which the averages of a row have a factor each
    SLACK = 32       # floats at the end of a line that no window reaches
    SHORT = 64       # neighbouring windows of rows shorter than this, with at most TAPS columns, are taken as one row
    TAPS = 8
    LONG = 64        # columns from which on a window of single columns is reduced alone


ctypedef struct Axis:
    int64_t size, out, kernel, stride, dilation, before, after


cdef int64_t reach(const Axis *axis, int64_t outputs) noexcept nogil:
    """Padded positions under `outputs` neighbouring outputs."""
    return (outputs - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1


cdef int64_t below(const Axis *axis, int64_t start, int64_t limit) noexcept nogil:
    """Number of positions before `limit` of a window that starts at position `start` of the image."""
    return min((limit - start + axis.dilation - 1) // axis.dilation, axis.kernel) if start < limit else 0


cdef int64_t skipped(const Axis *axis, int64_t o) noexcept nogil:
    """Number of positions of window o before the image."""
    return below(axis, o * axis.stride - axis.before, 0)


cdef int64_t inside(const Axis *axis, int64_t o, int64_t *first) noexcept nogil:
    """Number of positions of window o in the image; first: the position of the first of them."""
    cdef int64_t start = o * axis.stride - axis.before, out = skipped(axis, o)
    first[0] = start + out * axis.dilation
    return below(axis, start, axis.size) - out


cdef int64_t counted(const Axis *axis, int64_t o, int divide) noexcept nogil:
    """Number of positions of window o that a sum is divided by."""
    cdef int64_t first
    if divide == NOTHING:
        return 1
    return below(axis, o * axis.stride - axis.before, axis.size + axis.after) if divide == PADDED else inside(axis, o, &first)


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
                entry.at = skipped(&axes[0], od) * axes[1].kernel + skipped(&axes[1], oh)
        return 0

    cdef int lay_masks(self, const Axis *w, int64_t period) except -1:
        """-1 for the columns of rows without gaps whose taps are in their row, else 0; `period` of them for each tap."""
        cdef int64_t tap, i, at
        self.masks = <int32_t *>need(w.kernel * period * sizeof(int32_t), "pooling")
        for tap in range(w.kernel):
            for i in range(period):
                at = i % w.size - w.before + tap * w.dilation
                self.masks[tap * period + i] = -1 if 0 <= at < w.size else 0
        return 0

    cdef int lay_scales(self, const Axis *axes, int divide, float factor, int64_t repeat, bint share_rows) except -1:
        """factor / divisor for each column, `repeat` times; neighbouring rows that divide by the same may share them."""
        cdef int64_t rows = axes[0].out * axes[1].out, width = axes[2].out * repeat, tables = 0, last = -1, r, o, i, share
        cdef float *table = NULL
        for r in range(rows):
            share = counted(&axes[0], r // axes[1].out, divide) * counted(&axes[1], r % axes[1].out, divide)
            tables, last = tables + (share != last or not share_rows), share
        self.scales, last, tables = <float *>need(tables * width * sizeof(float), "pooling"), -1, 0
        for r in range(rows):
            share = counted(&axes[0], r // axes[1].out, divide) * counted(&axes[1], r % axes[1].out, divide)
            if share != last or not share_rows:
                table, last, tables = self.scales + tables * width, share, tables + 1
                for o in range(axes[2].out):
                    for i in range(repeat):
                        table[o * repeat + i] = factor / <float>(share * counted(&axes[2], o, divide))
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
    bint joined                       # rows of outputs, and of lines, are without gaps: see fl_pool.masks
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
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    return with_scratch(task, &job, &job.memory, job.scratch, job.tasks, job.work)


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
    row *= axes[0].kernel * min(axes[1].kernel, axes[1].stride)  # values read for a row of outputs
    job.rows_each = min(even(job.nrows, max(TASK // row, <int64_t>1)), job.nrows)
    if job.nrows * row <= 2 * TASK:
        job.rows_each = job.nrows
    job.rows_each = max(job.rows_each, <int64_t>1)
    job.images_each = even(job.images, max(TASK // (job.rows_each * row), <int64_t>1)) if job.rows_each == job.nrows else 1
    job.bands, job.pieces = (job.nrows + job.rows_each - 1) // job.rows_each, (job.w.out + job.cols - 1) // job.cols
    job.blocks = (job.pixel + job.lanes - 1) // job.lanes
    job.tasks = (job.images + job.images_each - 1) // job.images_each * job.bands * job.pieces * job.blocks
    job.scratch = rounded((job.lines + 1) * call.pitch * sizeof(float))


cdef void lay_axes(Axis *axes, tuple in_shape, tuple out_shape, kernel, stride, dilation, pads, bint channels_last):
    cdef int64_t space = 1 if channels_last else 2, axis
    for axis in range(3):
        axes[axis] = Axis(in_shape[space + axis], out_shape[space + axis], kernel[axis], stride[axis], dilation[axis],
                          pads[2 * axis], pads[2 * axis + 1])


cdef Windows plan_pool(Job *job, const Axis *axes, int64_t n, int64_t c, bint average, int divide, float factor, bint channels_last):
    """Fills in a job whose windows are no reduction; what it points into."""
    cdef Windows windows = Windows.__new__(Windows)
    cdef int64_t volume = axes[0].size * axes[1].size * axes[2].size, outputs = axes[0].out * axes[1].out * axes[2].out
    memset(job, 0, sizeof(Job))
    job.work = n * c * (10.0 * volume + outputs * (10.0 + 2.0 * axes[0].kernel * axes[1].kernel * axes[2].stride + 2.0 * axes[2].kernel))
    job.level, job.w, job.nrows = level(), axes[2], axes[0].out * axes[1].out
    job.images, job.pixel = n * (1 if channels_last else c), c if channels_last else 1
    job.x_image, job.out_image = volume * job.pixel, outputs * job.pixel
    if n * c * outputs == 0:
        return windows
    cut(job, axes)
    job.flat = axes[2].stride == 1 and 1 < job.pixel == job.lanes and (not average or job.pixel < NARROW)
    windows.lay_rows(axes, job.pixel)
    job.call.gathered = job.pixel == 1 and axes[2].dilation == 1 and (
        (axes[2].stride > 2 and axes[2].kernel >= 8) or axes[2].kernel >= LONG)
    job.joined = (job.pixel == 1 and axes[2].stride == 1 and axes[2].out == axes[2].size < SHORT and not job.call.gathered
                  and axes[2].kernel <= TAPS)
    if job.joined:
        job.work *= 1.7  # rows' ends are masked: 5x5 256@13 34 us, 128@20 34
        # Rows after each other are a multiple of all vectors after so many: 16 / gcd(columns, 16).
        job.call.period = axes[2].size
        while job.call.period % 16:
            job.call.period *= 2
        windows.lay_masks(&axes[2], job.call.period)
        job.call.masks = windows.masks
    if average:
        windows.lay_scales(axes, divide, factor, job.pixel if job.flat else 1, not job.joined)
    job.rows = windows.rows
    job.call.step_y = axes[1].dilation * axes[2].size * job.pixel
    job.call.step_z = axes[0].dilation * axes[1].size * axes[2].size * job.pixel
    job.call.kh, job.call.kw, job.call.ldo, job.call.out_pixel = axes[1].kernel, axes[2].kernel, axes[2].out * job.pixel, job.pixel
    job.call.average = average
    return windows


cdef bint stacked(Axis *axes, int64_t planes) noexcept:
    """Makes the axes those of one image, whose slices are the `planes` channels-first images, where each has one result, of
    windows without padding along their depth."""
    cdef Axis *z = axes
    if axes[0].out * axes[1].out * axes[2].out != 1 or z.before != 0 or reach(z, 1) > z.size:
        return False
    z.size, z.out, z.stride, z.after = planes * z.size, planes, z.size, 0
    return True


cdef object pooling(bint as_step, x, out, tuple in_shape, tuple out_shape, kernel, stride, dilation, pads, int divide, float factor,
                    bint channels_last, bint average):
    """Plans, and makes the step or runs the plan."""
    cdef Job job
    cdef Axis axes[3]
    cdef void *operands[2]
    cdef int64_t n = in_shape[0], c = in_shape[4 if channels_last else 1]
    cdef Windows windows
    if not as_step:
        operands[0], operands[1] = cnp.PyArray_DATA(<cnp.ndarray>x), cnp.PyArray_DATA(<cnp.ndarray>out)
    lay_axes(axes, in_shape, out_shape, kernel, stride, dilation, pads, channels_last)
    if not channels_last and stacked(axes, n * c):
        n = c = 1
    windows = plan_pool(&job, axes, n, c, average, divide, factor, channels_last)
    if as_step:
        return make_step(run_pool, &job, sizeof(Job), 2, job.work, windows)
    run_plan(run_pool, &job, operands, job.work, "pooling")
    return None


def max_pool(cnp.ndarray x, cnp.ndarray out, kernel, stride, dilation, pads, bint channels_last):
    """out = the largest number of each window; NaN if one of them is NaN, -infinity if none is in the image."""
    pooling(False, x, out, (<object>x).shape, (<object>out).shape, kernel, stride, dilation, pads, NOTHING, 1, channels_last, False)


def max_pool_step(tuple x, tuple out, kernel, stride, dilation, pads, bint channels_last):
    """The step of `max_pool`: shapes instead of arrays."""
    return pooling(True, None, None, x, out, kernel, stride, dilation, pads, NOTHING, 1, channels_last, False)


def avg_pool(cnp.ndarray x, cnp.ndarray out, kernel, stride, dilation, pads, bint include_pad, bint channels_last):
    """out = the sum of each window divided by how many of its positions are in the image (include_pad: in image and pads)."""
    pooling(False, x, out, (<object>x).shape, (<object>out).shape, kernel, stride, dilation, pads, PADDED if include_pad else INSIDE, 1,
            channels_last, True)


def avg_pool_step(tuple x, tuple out, kernel, stride, dilation, pads, bint include_pad, bint channels_last):
    """The step of `avg_pool`: shapes instead of arrays."""
    return pooling(True, None, None, x, out, kernel, stride, dilation, pads, PADDED if include_pad else INSIDE, 1, channels_last, True)


def sum_pool(cnp.ndarray x, cnp.ndarray out, kernel, stride, dilation, pads, float factor, bint channels_last):
    """out = factor times the sum of each window."""
    pooling(False, x, out, (<object>x).shape, (<object>out).shape, kernel, stride, dilation, pads, NOTHING, factor, channels_last, True)


def sum_pool_step(tuple x, tuple out, kernel, stride, dilation, pads, float factor, bint channels_last):
    """The step of `sum_pool`: shapes instead of arrays."""
    return pooling(True, None, None, x, out, kernel, stride, dilation, pads, NOTHING, factor, channels_last, True)


# ---- Lp pooling -----------------------------------------------------------------------------------------------------------


cdef struct Lp:
    Job pool
    float p, root
    bint norm               # absolute values before the power
    double work


cdef struct Powers:
    const fl_kernels *level
    const float *x
    float *y
    int64_t n
    float exponent
    bint absolute


cdef void power_task(void *context, int64_t number, int worker) noexcept nogil:
    """y = x or |x| to the power `exponent`, for TASK / 2 values."""
    cdef const Powers *job = <const Powers *>context
    cdef int64_t first = number * (TASK // 2), n = min(job.n - first, <int64_t>(TASK // 2))
    cdef const float *x = job.x + first
    cdef float *y = job.y + first
    cdef fl_broadcast p
    if job.exponent == 2:
        job.level.unary(FL_SQUARE, 0, 0, x, y, n)
        return
    if job.exponent == 0.5:
        job.level.unary(FL_SQRT, 0, 0, x, y, n)
        return
    if job.absolute:
        job.level.unary(FL_ABS, 0, 0, x, y, n)
        x = y
    if job.exponent != 1:
        memset(&p, 0, sizeof(fl_broadcast))
        p.a, p.b, p.out, p.rows, p.cols, p.a_col = x, &job.exponent, y, 1, n, 1
        job.level.binary(FL_POWER, -INFINITY, INFINITY, &p)


cdef void powers(const Lp *job, const float *x, float *y, int64_t n, float exponent, bint absolute) noexcept nogil:
    cdef Powers each
    cdef int64_t tasks = (n + TASK // 2 - 1) // (TASK // 2)
    each.level, each.x, each.y, each.n, each.exponent, each.absolute = job.pool.level, x, y, n, exponent, absolute
    parallel(power_task, &each, tasks, workers(tasks, 10.0 * n if exponent == 2 or exponent == 0.5 else 100.0 * n))


cdef int run_lp_pool(const void *plan, void *const *operands) noexcept nogil:
    cdef Lp job = (<const Lp *>plan)[0]
    cdef int64_t images = job.pool.images, each = min(max(POWERS // max(job.pool.x_image, <int64_t>1), <int64_t>1), images), image = 0, n
    cdef int64_t groups = (images + job.pool.images_each - 1) // job.pool.images_each if job.pool.tasks else 1
    cdef int64_t tasks = job.pool.tasks // max(groups, <int64_t>1)
    cdef bint straight = job.p == 1 and not job.norm
    cdef void *parts[2]
    cdef float *scratch = NULL
    cdef int failed = 0
    if job.pool.tasks == 0:
        return 0
    if straight:
        each = images
    else:
        scratch = <float *>alloc(each * job.pool.x_image * sizeof(float))
        if scratch == NULL:
            return -1
    while image < images and failed == 0:
        n = min(each, images - image)
        parts[0], parts[1] = <void *>(<const float *>operands[0] + image * job.pool.x_image), scratch
        if not straight:
            powers(&job, <const float *>parts[0], scratch, n * job.pool.x_image, job.p, job.norm)
            parts[0] = scratch
        parts[1] = <float *>operands[1] + image * job.pool.out_image
        job.pool.images, job.pool.tasks = n, (n + job.pool.images_each - 1) // job.pool.images_each * tasks
        failed = run_pool(&job.pool, parts)
        if job.p != 1 and failed == 0:
            powers(&job, <const float *>parts[1], <float *>parts[1], n * job.pool.out_image, job.root, False)
        image += n
    release(scratch)
    return failed


cdef object lp_pooling(bint as_step, x, out, tuple in_shape, tuple out_shape, kernel, stride, dilation, pads, float p, bint norm,
                       bint channels_last):
    cdef Lp job
    cdef Axis axes[3]
    cdef void *operands[2]
    cdef int64_t n = in_shape[0], c = in_shape[4 if channels_last else 1]
    cdef float places
    cdef Windows windows
    if not as_step:
        operands[0], operands[1] = cnp.PyArray_DATA(<cnp.ndarray>x), cnp.PyArray_DATA(<cnp.ndarray>out)
    lay_axes(axes, in_shape, out_shape, kernel, stride, dilation, pads, channels_last)
    places = <float>(axes[0].kernel * axes[1].kernel * axes[2].kernel)
    windows = plan_pool(&job.pool, axes, n, c, True, NOTHING if norm else PADDED, 1 if norm else places, channels_last)
    job.p, job.root, job.norm = p, <float>(1 / <double>p), norm
    job.work = job.pool.work + 10.0 * n * c * axes[0].size * axes[1].size * axes[2].size
    if as_step:
        return make_step(run_lp_pool, &job, sizeof(Lp), 2, job.work, windows)
    run_plan(run_lp_pool, &job, operands, job.work, "pooling")
    return None


def lp_pool(cnp.ndarray x, cnp.ndarray out, kernel, stride, dilation, pads, float p, bint norm, bint channels_last):
    """out = (sum of |x|^p)^(1/p) of each window; without `norm` (s k / m)^(1/p), s the sum of x^p, k the positions of a window and m
    those of them in image and pads."""
    lp_pooling(False, x, out, (<object>x).shape, (<object>out).shape, kernel, stride, dilation, pads, p, norm, channels_last)


def lp_pool_step(tuple x, tuple out, kernel, stride, dilation, pads, float p, bint norm, bint channels_last):
    """The step of `lp_pool`: shapes instead of arrays."""
    return lp_pooling(True, None, None, x, out, kernel, stride, dilation, pads, p, norm, channels_last)
