"""Pools over boxes of images: quantized bins with their largest number, and averages or largest of bilinear samples.

A task is one box. Bilinear samples on a grid are products of weights along the rows and along the columns, as is which of them are in
the image: an average is a sum over rows and columns whose weights are added up once for all channels.
"""

from libc.math cimport ceil, floor, round
from libc.stdint cimport int64_t
from libc.string cimport memset
cimport numpy as cnp

from ._engine cimport alloc, fl_bins, fl_kernels, level, parallel, release, with_scratch, workers
from ._once cimport fl_once, fl_once_f32
from ._space cimport rounded
from ._step cimport make_step, run_plan

from ...errors import ShapeError

cnp.import_array()

cdef enum:
    MEAN = 1   # a number of table.REDUCE; the other is the maximum


cdef struct Job:
    const fl_kernels *level
    const float *x
    const float *boxes
    const int64_t *images
    float *out
    int64_t n, c, h, w, count, ph, pw    # images, channels, sizes; boxes and bins
    int64_t samples
    int op
    bint last, align
    double scale, offset, least
    size_t scratch
    char *memory
    double work


cdef inline double limited(double v) noexcept nogil:
    """A coordinate that fits an integer; NaN is far outside."""
    return -1e9 if not v > -1e9 else 1e9 if v > 1e9 else v


cdef inline int64_t image_of(const Job *job, int64_t k) noexcept nogil:
    """The image of box k, or -1 if there is none: tasks take another one then, since all were looked at before they began."""
    cdef double v
    cdef int64_t image
    if job.align:
        image = fl_once(job.images + k)
        return image if 0 <= image < job.n else -1
    v = fl_once_f32(job.boxes + 5 * k)
    return <int64_t>v if 0 <= v < job.n and v == floor(v) else -1


# ---- quantized bins -------------------------------------------------------------------------------------------------------


cdef void bins_of(int64_t *to, int64_t count, double first, double last, double scale, int64_t size) noexcept nogil:
    """Bins of a box along an axis, clipped to the image."""
    cdef int64_t start = <int64_t>round(limited(<float>first * <float>scale)), end = <int64_t>round(limited(<float>last * <float>scale)), i
    cdef float each = <float>max(end - start + 1, <int64_t>1) / <float>count
    for i in range(count):
        to[2 * i] = min(max(<int64_t>floor(<float>i * each) + start, <int64_t>0), size)
        to[2 * i + 1] = min(max(<int64_t>ceil(<float>(i + 1) * each) + start, <int64_t>0), size)


cdef void pool_task(void *context, int64_t k, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t *z = <int64_t *>(job.memory + worker * job.scratch)
    cdef int64_t *y = z + 2
    cdef int64_t *x = y + 2 * job.ph
    cdef int64_t image = max(image_of(job, k), <int64_t>0), c, plane = job.h * job.w, first, i
    cdef const float *box = job.boxes + 5 * k + 1
    cdef fl_bins p
    memset(&p, 0, sizeof(fl_bins))
    z[0], z[1] = 0, 1
    bins_of(y, job.ph, box[1], box[3], job.scale, job.h)
    bins_of(x, job.pw, box[0], box[2], job.scale, job.w)
    # Only the columns under the box are folded.
    first = x[0]
    for i in range(2 * job.pw):
        x[i] -= first
    p.z, p.y, p.x, p.ny, p.nx, p.cols = z, y, x, job.ph, job.pw, x[2 * job.pw - 1]
    p.line = <float *>(x + 2 * job.pw)
    p.c = job.c if job.last else 1
    p.row = job.w * p.c
    p.plane = job.h * p.row
    if job.last:
        job.level.bins(&p, job.x + (image * plane + first) * job.c, job.out + k * job.ph * job.pw * job.c, 0, job.ph)
        return
    for c in range(job.c):
        job.level.bins(&p, job.x + (image * job.c + c) * plane + first, job.out + (k * job.c + c) * job.ph * job.pw, 0, job.ph)


# ---- bilinear samples -----------------------------------------------------------------------------------------------------


cdef struct Grid:
    float start, length      # of an axis, and of each of its bins
    int64_t each, size       # samples of a bin, positions of the axis


cdef Grid grid(const Job *job, float first, float last, int64_t bins, int64_t size) noexcept nogil:
    """In single precision, as everybody has it: how many samples there are would differ."""
    cdef Grid g
    cdef float scale = <float>job.scale, offset = <float>job.offset, start = first * scale, end = last * scale
    start, end = <float>limited(start - offset), <float>limited(end - offset)
    g.length = max(end - start, <float>job.least) / <float>bins
    g.each = job.samples if job.samples > 0 else max(<int64_t>ceil(g.length), <int64_t>0)
    g.size, g.start = size, start
    return g


cdef inline bint sample(const Grid *g, int64_t bin, int64_t i, int64_t *low, int64_t *high, double *weight) noexcept nogil:
    """Sample i of an axis, which is in a bin: the positions around it and the weight of the higher one; False if it is outside."""
    cdef float within = (<float>(i - bin * g.each) + <float>0.5) * g.length / <float>g.each, before = <float>bin * g.length
    cdef float at = g.start + before + within
    if at < -1 or at > g.size or at != at:
        return False
    at = max(at, <float>0)
    low[0] = <int64_t>at
    if low[0] >= g.size - 1:
        low[0], high[0], weight[0] = g.size - 1, g.size - 1, 0
    else:
        high[0], weight[0] = low[0] + 1, at - low[0]
    return True


cdef void inside(const Grid *g, int64_t bin, int64_t *first, int64_t *last) noexcept nogil:
    """The samples of a bin that may be in the image: a huge box has no more of them than that."""
    cdef double a = 0, b = g.each, step = <double>g.length / g.each if g.each > 0 else 0
    first[0], last[0] = bin * g.each, (bin + 1) * g.each
    if step > 0:
        a, b = floor((-1 - g.start) / step) - 1, ceil((g.size - g.start) / step) + 1
        first[0], last[0] = max(first[0], <int64_t>limited(a)), min(last[0], <int64_t>limited(b))


cdef int64_t gathered(const Grid *g, int64_t bin, double *sums, int64_t *at, float *weight) noexcept nogil:
    """The positions under the samples of a bin, and the weight that each has in their mean."""
    cdef int64_t i, first, last, low = 0, high = 0, count = 0
    cdef double part = 0
    memset(sums, 0, g.size * sizeof(double))
    inside(g, bin, &first, &last)
    for i in range(first, last):
        if sample(g, bin, i, &low, &high, &part):
            sums[low] += 1 - part
            sums[high] += part
    for i in range(g.size):
        if sums[i] != 0:
            at[count], weight[count] = i, <float>(sums[i] / g.each)
            count += 1
    return count


cdef void align_task(void *context, int64_t k, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef char *memory = job.memory + worker * job.scratch
    cdef double *sums = <double *>memory
    cdef int64_t most = max(job.h, job.w), image = max(image_of(job, k), <int64_t>0), plane = job.h * job.w
    cdef int64_t *at_y = <int64_t *>(sums + most)
    cdef int64_t *at_x = at_y + job.h * job.ph
    cdef int64_t *ny = at_x + job.w * job.pw
    cdef int64_t *nx = ny + job.ph
    cdef const float **rows = <const float **>(nx + job.pw)
    cdef float *weights = <float *>(rows + plane)
    cdef float *wy = weights + plane
    cdef float *wx = wy + job.h * job.ph
    cdef const float *box = job.boxes + 4 * k
    cdef const float *x = job.x + image * plane * job.c
    cdef const float *line
    cdef float *out = job.out + k * job.c * job.ph * job.pw
    cdef Grid gy = grid(job, box[1], box[3], job.ph, job.h), gx = grid(job, box[0], box[2], job.pw, job.w)
    cdef int64_t i, j, a, b, c, count
    cdef float total, part
    if job.op != MEAN:
        largest(job, x, out, &gy, &gx)
        return
    for i in range(job.ph):
        ny[i] = gathered(&gy, i, sums, at_y + i * job.h, wy + i * job.h)
    for j in range(job.pw):
        nx[j] = gathered(&gx, j, sums, at_x + j * job.w, wx + j * job.w)
    for i in range(job.ph):
        for j in range(job.pw):
            if job.last:
                count = 0
                for a in range(ny[i]):
                    for b in range(nx[j]):
                        rows[count] = x + (at_y[i * job.h + a] * job.w + at_x[j * job.w + b]) * job.c
                        weights[count] = wy[i * job.h + a] * wx[j * job.w + b]
                        count += 1
                job.level.mix(rows, weights, count, out + (i * job.pw + j) * job.c, job.c)
                continue
            for c in range(job.c):
                total = 0
                for a in range(ny[i]):
                    line, part = x + c * plane + at_y[i * job.h + a] * job.w, 0
                    for b in range(nx[j]):
                        part += wx[j * job.w + b] * line[at_x[j * job.w + b]]
                    total += wy[i * job.h + a] * part
                out[(c * job.ph + i) * job.pw + j] = total


cdef void largest(const Job *job, const float *x, float *out, const Grid *gy, const Grid *gx) noexcept nogil:
    """The largest of the weighted corners of all samples of a bin; a sample outside has corners of 0."""
    cdef int64_t i, j, a, b, c, k, y0, y1, x0, x1, pixel = job.c if job.last else 1, bin = job.c if job.last else 1
    cdef int64_t channel = 1 if job.last else job.h * job.w, of = 1 if job.last else job.ph * job.pw
    cdef int64_t corners[4]
    cdef float weights[4]
    cdef double fy = 0, fx = 0
    cdef int64_t ly = 0, hy = 0, lx = 0, hx = 0
    cdef float v
    cdef float *to
    cdef bint fresh
    for i in range(job.ph):
        for j in range(job.pw):
            to, fresh = out + (i * job.pw + j) * bin, True
            inside(gy, i, &y0, &y1)
            inside(gx, j, &x0, &x1)
            if max(y1 - y0, <int64_t>0) < gy.each or max(x1 - x0, <int64_t>0) < gx.each or gy.each * gx.each == 0:
                fresh = False
                for c in range(job.c):
                    to[c * of] = 0
            for a in range(y0, y1):
                for b in range(x0, x1):
                    if sample(gy, i, a, &ly, &hy, &fy) and sample(gx, j, b, &lx, &hx, &fx):
                        corners[0], corners[1] = (ly * job.w + lx) * pixel, (ly * job.w + hx) * pixel
                        corners[2], corners[3] = (hy * job.w + lx) * pixel, (hy * job.w + hx) * pixel
                        weights[0], weights[1] = <float>((1 - fy) * (1 - fx)), <float>((1 - fy) * fx)
                        weights[2], weights[3] = <float>(fy * (1 - fx)), <float>(fy * fx)
                    else:
                        corners[0], corners[1], corners[2], corners[3] = 0, 0, 0, 0
                        weights[0], weights[1], weights[2], weights[3] = 0, 0, 0, 0
                    for c in range(job.c):
                        for k in range(4):
                            v = weights[k] * x[corners[k] + c * channel] if weights[k] != 0 else 0
                            if (fresh and k == 0) or v > to[c * of] or v != v:
                                to[c * of] = v
                    fresh = False


cdef int run_regions(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t k
    job.x, job.boxes = <const float *>operands[0], <const float *>operands[1]
    job.images = <const int64_t *>operands[2] if job.align else NULL
    job.out = <float *>operands[3 if job.align else 2]
    for k in range(job.count):
        if image_of(&job, k) < 0:
            return -2
    if job.count * job.c * job.ph * job.pw == 0:
        return 0
    if job.h * job.w == 0:
        memset(job.out, 0, job.count * job.c * job.ph * job.pw * sizeof(float))
        return 0
    return with_scratch(align_task if job.align else pool_task, &job, &job.memory, job.scratch, job.count, job.work)


cdef void plan_regions(Job *job, tuple x, tuple out, double scale, bint align, bint last):
    cdef int64_t space = 1 if last else 2, bins, positions
    memset(job, 0, sizeof(Job))
    job.level, job.scale, job.align, job.last = level(), scale, align, last
    job.n, job.h, job.w, job.c = x[0], x[space], x[space + 1], x[3 if last else 1]
    job.count, job.ph, job.pw = out[0], out[space], out[space + 1]
    bins, positions = job.ph + job.pw, job.h * job.ph + job.w * job.pw
    job.scratch = rounded((2 + 2 * bins) * sizeof(int64_t) + job.w * (job.c if last else 1) * sizeof(float))
    if align:
        job.scratch = rounded(max(job.h, job.w) * sizeof(double) + (positions + bins) * sizeof(int64_t)
                              + job.h * job.w * (sizeof(void *) + sizeof(float)) + positions * sizeof(float))
    job.work = 100.0 * job.count * job.c * job.ph * job.pw


def roi_pool(cnp.ndarray x, cnp.ndarray boxes__k5, cnp.ndarray out, double scale, bint channels_last):
    """out[k] = the largest number of each bin of box k, rounded to pixels; 0 of an empty bin. boxes: (image, x1, y1, x2, y2)."""
    cdef Job job
    cdef void *operands[3]
    plan_regions(&job, (<object>x).shape, (<object>out).shape, scale, False, channels_last)
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(boxes__k5), cnp.PyArray_DATA(out)
    run_plan(run_regions, &job, operands, job.work, "roi_pool: boxes")


def roi_pool_step(tuple x, tuple boxes__k5, tuple out, double scale, bint channels_last):
    """The step of `roi_pool`: shapes instead of arrays."""
    cdef Job job
    plan_regions(&job, x, out, scale, False, channels_last)
    return make_step(run_regions, &job, sizeof(Job), 3, job.work, None)


def roi_align(cnp.ndarray x, cnp.ndarray boxes__k4, cnp.ndarray images__k, cnp.ndarray out, double scale, double offset, double least,
              int64_t samples, int op, bint channels_last):
    """out[k] = the mean or the largest (op of table.REDUCE) of bilinear samples of each bin of box k, (x1, y1, x2, y2) * scale - offset,
    at least `least` long; samples along a bin, or 0 for one per pixel."""
    cdef Job job
    cdef void *operands[4]
    plan_regions(&job, (<object>x).shape, (<object>out).shape, scale, True, channels_last)
    job.offset, job.least, job.samples, job.op = offset, least, samples, op
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(boxes__k4), cnp.PyArray_DATA(images__k)
    operands[3] = cnp.PyArray_DATA(out)
    run_plan(run_regions, &job, operands, job.work, "roi_align: images")


def roi_align_step(tuple x, tuple boxes__k4, tuple images__k, tuple out, double scale, double offset, double least, int64_t samples,
                   int op, bint channels_last):
    """The step of `roi_align`: shapes instead of arrays."""
    cdef Job job
    plan_regions(&job, x, out, scale, True, channels_last)
    job.offset, job.least, job.samples, job.op = offset, least, samples, op
    return make_step(run_regions, &job, sizeof(Job), 4, job.work, None)


# ---- a part of an image, resized ------------------------------------------------------------------------------------------

cdef enum:
    AXES = 4

ctypedef struct Tap:
    int64_t low, high     # elements; low is -1 where the place is outside
    double first, second  # their weights

ctypedef struct Crop:
    const float *x
    float *out
    int64_t size[AXES]
    int64_t to[AXES]
    float value
    Tap *taps[AXES]
    double work


cdef void taps_of(Tap *to, int64_t size, int64_t out, float start, float end) noexcept nogil:
    """The two elements around each place from start to end, which are parts of the axis."""
    cdef int64_t i
    cdef float x, most = <float>(size - 1)
    cdef double low
    for i in range(out):
        if out == 1:
            x = <float>(0.5 * <double>(start + end) * <double>most)
        else:
            x = start * most + <float>i * (end - start) * most / <float>(out - 1)
        to[i].low = -1
        if 0 <= x <= most:
            low = ceil(<double>x) - 1
            to[i].first, to[i].second = <double><float>(1 - (x - low)), <double><float>(x - low)
            to[i].low, to[i].high = max(<int64_t>low, <int64_t>0), min(<int64_t>low + 1, size - 1)


cdef void crop_row(const Crop *job, const Tap *outer, float *out) noexcept nogil:
    """A row of the result: `outer` are the taps of its place on the other axes."""
    cdef int64_t i, k, row, count = job.to[AXES - 1]
    cdef int corner, corners = 0
    cdef double total, weight
    cdef const Tap *tap
    cdef bint outside = False
    cdef double weights[1 << (AXES - 1)]
    cdef const float *rows[1 << (AXES - 1)]
    for k in range(AXES - 1):
        outside = outside or outer[k].low < 0
    for corner in range(0 if outside else 1 << (AXES - 1)):
        weight, row = 1, 0
        for k in range(AXES - 1):
            weight *= outer[k].second if corner >> k & 1 else outer[k].first
            row = row * job.size[k] + (outer[k].high if corner >> k & 1 else outer[k].low)
        if weight != 0:
            weights[corners], rows[corners] = weight, job.x + row * job.size[AXES - 1]
            corners += 1
    for i in range(count):
        tap = job.taps[AXES - 1] + i
        if outside or tap.low < 0:
            out[i] = job.value
            continue
        total = 0
        for corner in range(corners):
            if tap.first != 0:
                total += weights[corner] * tap.first * rows[corner][tap.low]
            if tap.second != 0:
                total += weights[corner] * tap.second * rows[corner][tap.high]
        out[i] = <float>total


cdef void crop_task(void *context, int64_t number, int worker) noexcept nogil:
    """The rows of one plane."""
    cdef const Crop *job = <const Crop *>context
    cdef Tap outer[AXES - 1]
    cdef int64_t i
    outer[0], outer[1] = job.taps[0][number // job.to[1]], job.taps[1][number % job.to[1]]
    for i in range(job.to[2]):
        outer[2] = job.taps[2][i]
        crop_row(job, outer, job.out + (number * job.to[2] + i) * job.to[3])


cdef int plan_crop(Crop *job, const cnp.npy_intp *x, const cnp.npy_intp *out, double value) except -1:
    cdef int i
    job.value, job.work = <float>value, 300.0
    for i in range(AXES):
        job.size[i], job.to[i] = x[i], out[i]
        job.work *= out[i]
        if not x[i] and out[i]:
            raise ShapeError("crop: x has no elements: expected some, which out is made of")
    return 0


cdef int run_crop(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, roi, out."""
    cdef Crop job = (<const Crop *>plan)[0]
    cdef int64_t planes = job.to[0] * job.to[1], total = 0
    cdef const float *roi = <const float *>operands[1]
    cdef Tap *taps
    cdef int i
    if planes * job.to[2] * job.to[3] == 0:
        return 0
    for i in range(AXES):
        total += job.to[i]
    taps = <Tap *>alloc(total * sizeof(Tap))
    if taps == NULL:
        return -1
    job.x, job.out, total = <const float *>operands[0], <float *>operands[2], 0
    for i in range(AXES):
        job.taps[i] = taps + total
        total += job.to[i]
        taps_of(job.taps[i], job.size[i], job.to[i], roi[i], roi[AXES + i])
    parallel(crop_task, &job, planes, workers(planes, job.work))
    release(taps)
    return 0


include "made/regions.pxi"
