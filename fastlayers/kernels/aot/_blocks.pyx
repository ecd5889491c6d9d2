"""Depthwise convolutions sixteen channels at a time, of either layout, for planes that fill vectors badly.

Rows of narrow planes are no whole vectors, their borders are most of them, and a stride of 2 leaves every other number unused. Across
channels none of that matters. Channels-first planes are transposed to begin with, and their results at the end, in scratch that
stays in the nearest caches: a task has a band of rows. Sums have the order of `depthwise`: results are equal bit for bit.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ._engine cimport FL_CLIP, FL_PANEL, fl_dw_block
from ._space cimport even, rounded

cdef enum:
    BAND = 24576  # floats of a band, about
    MORE = 7      # pixels past a row's outputs that groups of channels read
    WIDE = 16     # columns from which on rows are transposed one by one: shorter ones together, and then copied to their positions


cdef void plan_blocks(Blocks *job, int64_t images, bint residual) noexcept nogil:
    cdef fl_dw_block *p = &job.call
    cdef int64_t wide = max((job.out_size[1] - 1) * job.stride[1] + (job.kernel[1] - 1) * job.dilation[1] + 1, job.before[1] + job.size[1])
    cdef int64_t tall = (job.kernel[0] - 1) * job.dilation[0] + 1, pixels
    if job.mix:
        wide = max(wide, (job.out_size[1] + MORE - 1) * job.stride[1] + (job.kernel[1] - 1) * job.dilation[1] + 1)
    p.band_row, p.mix, p.many = wide * FL_PANEL, job.mix + (FL_PANEL if job.pairs else 0), job.many
    p.left, p.w = job.before[1], job.size[1]
    p.kh, p.kw, p.step = job.kernel[0], job.kernel[1], job.stride[1]
    p.row_step, p.tap_step, p.down = job.dilation[0] * p.band_row, job.dilation[1] * FL_PANEL, job.stride[0] * p.band_row
    p.cols, p.code, p.a, p.b = job.out_size[1], job.code, job.a, job.b
    job.rows = even(job.out_size[0], max((BAND // p.band_row - tall) // job.stride[0] + 1, <int64_t>4))
    job.bands = (job.out_size[0] + job.rows - 1) // job.rows
    job.lane_tasks = (job.channels + FL_PANEL - 1) // FL_PANEL
    job.tasks = images * job.lane_tasks * job.bands
    tall = (job.rows - 1) * job.stride[0] + tall
    pixels = job.rows * job.out_size[1]
    job.at_in = rounded(tall * p.band_row * sizeof(float))
    job.at_out = job.at_in + (0 if job.last else rounded(min(tall, job.size[0]) * job.size[1] * FL_PANEL * sizeof(float)))
    job.at_residual = job.at_out + rounded(pixels * FL_PANEL * sizeof(float))
    job.scratch_size = job.at_residual + (rounded(pixels * FL_PANEL * sizeof(float)) if residual else 0)


cdef void fill_planes(const Blocks *job, const fl_dw_block *p, const float *x) noexcept nogil:
    """The band of channels-first planes, each row transposed in place; x: its first row that is in the input."""
    cdef int64_t first = p.left * FL_PANEL, end = first + p.w * FL_PANEL, y
    cdef float *to = p.band
    for y in range(p.band_rows):
        if y < p.top or y >= p.top + p.h or p.lanes < FL_PANEL:
            memset(to, 0, p.band_row * sizeof(float))
        else:
            memset(to, 0, first * sizeof(float))
            memset(to + end, 0, (p.band_row - end) * sizeof(float))
        if p.top <= y < p.top + p.h:
            job.level.transpose(x + (y - p.top) * p.w, job.size[0] * p.w, to + first, FL_PANEL, p.lanes, p.w)
        to += p.band_row


cdef void blocks_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Blocks *job = <const Blocks *>context
    cdef fl_dw_block p = job.call
    cdef int64_t oh = number % job.bands * job.rows, rest = number // job.bands
    cdef int64_t first = rest % job.lane_tasks * FL_PANEL, image = rest // job.lane_tasks
    cdef int64_t h = job.size[0], w = job.size[1], c = job.channels, space = job.out_size[0] * p.cols, y, i, to
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef float *made = <float *>(scratch + job.at_out)
    cdef float *residual = <float *>(scratch + job.at_residual)
    cdef float *out
    p.lanes, p.rows = min(<int64_t>FL_PANEL, c - first), min(job.rows, job.out_size[0] - oh)
    p.band = <float *>scratch
    p.weight, p.bias = job.w + first * p.kh * p.kw * max(job.mix, <int64_t>1) // (2 if job.pairs else 1), job.bias + first
    # Input rows y .. y + h - 1 are in the band.
    p.band_rows = (p.rows - 1) * job.stride[0] + (p.kh - 1) * job.dilation[0] + 1
    y = oh * job.stride[0] - job.before[0]
    p.top = min(max(-y, <int64_t>0), p.band_rows)
    y = max(y, <int64_t>0)
    p.h = max(min(h - y, p.band_rows - p.top), <int64_t>0)
    if job.last:
        i = first // max(job.many, <int64_t>1)
        p.x_pixel = c // max(job.many, <int64_t>1)
        p.skip, p.held, p.x_row = first - i * job.many, p.x_pixel - i, w * p.x_pixel
        p.x = job.x + (image * h + y) * p.x_row + i
        to = (image * space + oh * p.cols) * c + first
    elif w >= WIDE:
        fill_planes(job, &p, job.x + ((image * c + first) * h + y) * w)
        p.band_rows = 0  # it is made
        to = (image * c + first) * space + oh * p.cols
    else:
        p.x, p.x_pixel, p.x_row = <const float *>(scratch + job.at_in), FL_PANEL, w * FL_PANEL
        if p.h > 0:
            job.level.transpose(job.x + ((image * c + first) * h + y) * w, h * w, <float *>p.x, FL_PANEL, p.lanes, p.h * w)
        to = (image * c + first) * space + oh * p.cols
    out = job.out + to
    # Results go to scratch first unless they are whole blocks of pixels, and finished.
    if job.last and p.lanes == FL_PANEL and p.code <= FL_CLIP:
        p.out, p.out_pixel, p.out_row = out, c, p.cols * c
        p.residual = NULL
        if job.residual != NULL:
            p.residual, p.residual_pixel, p.residual_row = job.residual + to, c, p.cols * c
        job.level.depthwise_block(&p)
        return
    p.out, p.out_pixel, p.out_row = made, FL_PANEL, p.cols * FL_PANEL
    p.residual = NULL
    if job.residual != NULL:
        p.residual, p.residual_pixel, p.residual_row = residual, FL_PANEL, p.cols * FL_PANEL
        if job.last:
            for i in range(p.rows * p.cols):
                memcpy(residual + i * FL_PANEL, job.residual + to + i * c, p.lanes * sizeof(float))
        else:
            job.level.transpose(job.residual + to, space, residual, FL_PANEL, p.lanes, p.rows * p.cols)
    job.level.depthwise_block(&p)
    if job.code > FL_CLIP:
        job.level.unary(job.code, job.a, job.b, made, made, p.rows * p.cols * FL_PANEL)
    if job.last:
        for i in range(p.rows * p.cols):
            memcpy(out + i * c, made + i * FL_PANEL, p.lanes * sizeof(float))
    else:
        job.level.transpose(made, FL_PANEL, out, space, p.rows * p.cols, p.lanes)
