"""Convolutions with few results a group. A panel of the product is sixteen results of one pixel, and few leave most of it empty.

Here a panel is sixteen pixels instead: out[o, pixel] = sum_k w[o, k] tap_k[pixel], with the rows of the weights broadcast. A task brings
the padded input that it needs into scratch, channels-first and sorted by the phases of both strides, so that the taps of neighbouring
outputs are neighbours: sixteen of them are read where they are, at any tap's offset. All rows of outputs under a task are one line
if that makes fewer panels (`flat`): what is between the rows is computed too, and left out. Narrow images so fill vectors.
Sums have the order of `conv`: results are equal bit for bit.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ._band cimport Band, blocks_of
from ._engine cimport FL_KC, FL_PANEL, fl_block, fl_epilogue, fl_run
from ._space cimport even, rounded, source_index
from .gemm cimport columns_size, panels_size

cdef enum:
    COLS = 1024         # outputs of a line, about
    INPUT = 1 << 16     # floats of a task's input, about, unless most of them were needed by its neighbours too
    MOST = 3 << 16
    WORK = 1 << 22      # multiply-adds of a task, about
    STRIP = 192         # pixels that go through all of K together: their sums stay in a first-level cache
    MANY = 48           # results a group: of more, few of the last panel's positions are empty
    PART = 300          # multiply-adds that a panel takes longer, of which only a part is wanted


cdef bint few(int64_t og) noexcept nogil:
    return og <= MANY and 10 * panels_size(og, 1) >= 11 * og


cdef bint cheaper(const Lines *job, bint x_last) noexcept nogil:
    # In multiply-adds. Fitted to the times of 1 to 32 results a group of 1 to 256 channels, 1x1 to 3x3, 7 to 56 pixels a side.
    cdef double pixels = <double>job.out_size[1] * job.out_size[2], panels = panels_size(job.og, 1), line
    # Channels-last, the last eight results take half a panel; of eight alone with a stride of 1 lines are faster all the same.
    if x_last and job.out_last and (job.og > FL_PANEL or job.stride[2] > 1):
        panels = columns_size(job.band.level, job.og)
    line = job.row_tasks * job.col_tasks * (job.line if job.flat else job.rows * job.line)
    along = line * 1.1 * (job.og + 2.2) * job.k + 9 * pixels * job.band.ig
    across = pixels * (panels * job.k + (1 if x_last else 7) * job.band.ig + (PART if job.out_last and job.og < panels else 0))
    return along < 0.95 * across


cdef inline int64_t reach(const Lines *job, int axis, int64_t outputs) noexcept nogil:
    """Padded input positions under `outputs` neighbouring outputs along an axis."""
    return (outputs - 1) * job.stride[axis] + (job.kernel[axis] - 1) * job.dilation[axis] + 1


cdef inline int64_t phases(const Lines *job, int axis, int64_t outputs) noexcept nogil:
    """Positions of one phase of the stride among those."""
    return (reach(job, axis, outputs) + job.stride[axis] - 1) // job.stride[axis]


cdef void plan_lines(Lines *job, int64_t images, bint residual, int64_t *taps) noexcept nogil:
    cdef int64_t z, y, x, c, t = 0, at_y, at_x, each, halo, apart, high
    job.cols = even(job.out_size[2], COLS)
    if job.cols < job.out_size[2]:
        job.cols = panels_size(job.cols, 1)
    job.band.row = phases(job, 2, job.cols)
    # Floats of a row of outputs.
    each = max(job.band.ig * job.kernel[0] * job.stride[1] * job.stride[2] * job.band.row, <int64_t>1)
    halo = phases(job, 1, 1) - 1
    job.rows = max(INPUT // each - halo, min(halo + 1, MOST // each - halo))
    job.rows = min(job.rows, WORK // max(job.cols * job.k * job.og, <int64_t>1))
    job.rows = even(job.out_size[1], max(job.rows, <int64_t>1))
    job.row_tasks, job.col_tasks = (job.out_size[1] + job.rows - 1) // job.rows, (job.out_size[2] + job.cols - 1) // job.cols
    job.tasks = images * job.groups * job.out_size[0] * job.row_tasks * job.col_tasks
    high = phases(job, 1, job.rows)
    job.col_phase = high * job.band.row
    job.row_phase = job.stride[2] * job.col_phase
    job.band.plane = job.stride[1] * job.row_phase
    job.channel = job.kernel[0] * job.band.plane
    job.input = job.band.ig * job.channel
    # One line, or one per row.
    each, apart = panels_size((job.rows - 1) * job.band.row + job.cols, 1), panels_size(job.cols, 1)
    job.flat = each < job.rows * apart
    job.line, job.pitch = each if job.flat else apart, job.band.row if job.flat else apart
    job.at_input = rounded(job.og * sizeof(float *))
    job.at_sums = job.at_input + rounded((job.input + FL_PANEL) * sizeof(float))
    job.at_residual = job.at_sums + rounded(job.og * sums(job) * sizeof(float))
    job.scratch_size = job.at_residual + (job.at_residual - job.at_sums if residual else 0)
    job.taps = taps
    for z in range(job.kernel[0]):
        for y in range(job.kernel[1]):
            for x in range(job.kernel[2]):
                at_y, at_x = y * job.dilation[1], x * job.dilation[2]
                at_y = at_y % job.stride[1] * job.row_phase + at_y // job.stride[1] * job.band.row
                at_x = at_x % job.stride[2] * job.col_phase + at_x // job.stride[2]
                for c in range(job.band.ig):
                    taps[t] = c * job.channel + z * job.band.plane + at_y + at_x
                    t += 1


cdef inline int64_t sums(const Lines *job) noexcept nogil:
    """Floats between the sums of two results: an odd number of cache lines, which do not fall into the same cache sets."""
    return (job.line if job.flat else job.rows * job.line) | FL_PANEL


cdef void fill_line(const Lines *job, const float *x, float *to, int64_t start, int64_t wide) noexcept nogil:
    """Padded positions start .. start + wide - 1 of one input row, all channels. x: the row's first element; to: its place in the
    first channel's first phase."""
    cdef const Band *band = &job.band
    cdef int64_t w = band.size[2], step = job.stride[2], before = band.before[2], apart, u, n, i, i0, i1, c, at
    cdef const float *from_
    apart = band.channels if band.last else 1
    for u in range(step):
        n = max((wide - u + step - 1) // step, <int64_t>0)  # positions u, u + step, ... of which i0 .. i1 - 1 are inside
        i0 = min((before - start - u + step - 1) // step if before > start + u else 0, n)
        i1 = max(min((before + w - start - u + step - 1) // step if before + w > start + u else 0, n), i0)
        from_ = x + (start + u + i0 * step - before) * apart
        if band.last and band.ig > 1:
            if i1 > i0:
                band.level.transpose(from_, step * apart, to + i0, job.channel, i1 - i0, band.ig)
        else:
            for c in range(band.ig):
                band.level.gather(from_ + c * space(band), step * apart, to + c * job.channel + i0, i1 - i0)
        for c in range(band.ig):
            for i in range(i0):
                at = source_index(start + u + i * step, before, w, band.mode)
                to[c * job.channel + i] = 0 if at < 0 else x[c * (1 if band.last else space(band)) + at * apart]
            for i in range(i1, band.row):
                at = source_index(start + u + i * step, before, w, band.mode) if i < n else -1
                to[c * job.channel + i] = 0 if at < 0 else x[c * (1 if band.last else space(band)) + at * apart]
        to += job.col_phase


cdef inline int64_t space(const Band *band) noexcept nogil:
    return band.size[0] * band.size[1] * band.size[2]


cdef void fill_lines(const Lines *job, const float *x, float *to, int64_t od, int64_t oh, int64_t rows, int64_t ow,
                     int64_t cols) noexcept nogil:
    """The padded input under rows x cols outputs. x: the group's first channel of an image."""
    cdef const Band *band = &job.band
    cdef int64_t high = phases(job, 1, rows) * job.stride[1], wide = reach(job, 2, cols), z, y, c, u, at_z, at_y
    cdef int64_t pitch = band.size[2] * (band.channels if band.last else 1)
    cdef float *row
    for z in range(job.kernel[0]):
        at_z = source_index(od * job.stride[0] + z * job.dilation[0], band.before[0], band.size[0], band.mode)
        for y in range(high):
            at_y = -1
            if y < reach(job, 1, rows):
                at_y = source_index(oh * job.stride[1] + y, band.before[1], band.size[1], band.mode)
            row = to + z * band.plane + y % job.stride[1] * job.row_phase + y // job.stride[1] * band.row
            if at_z >= 0 and at_y >= 0:
                fill_line(job, x + (at_z * band.size[1] + at_y) * pitch, row, ow * job.stride[2], wide)
                continue
            for c in range(band.ig):
                for u in range(job.stride[2]):
                    memset(row + c * job.channel + u * job.col_phase, 0, band.row * sizeof(float))
    memset(to + job.input, 0, FL_PANEL * sizeof(float))


cdef void lines_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Lines *job = <const Lines *>context
    cdef const Band *band = &job.band
    cdef int64_t ow = number % job.col_tasks * job.cols, rest = number // job.col_tasks
    cdef int64_t oh = rest % job.row_tasks * job.rows
    rest = rest // job.row_tasks
    cdef int64_t od = rest % job.out_size[0]
    rest = rest // job.out_size[0]
    cdef int64_t channel = rest % job.groups * job.og, image = rest // job.groups, y, i
    cdef int64_t rows = min(job.rows, job.out_size[1] - oh), cols = min(job.cols, job.out_size[2] - ow)
    cdef int64_t volume = space(band), out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const float **row = <const float **>scratch
    cdef float *input = <float *>(scratch + job.at_input)
    cdef float *made = <float *>(scratch + job.at_sums)
    cdef float *residual = <float *>(scratch + job.at_residual)
    cdef int64_t first = (od * job.out_size[1] + oh) * job.out_size[2] + ow, to
    cdef const float *x = job.x + image * volume * band.channels + channel // job.og * band.ig * (1 if band.last else volume)
    cdef fl_epilogue e = job.epilogue
    cdef fl_block p
    fill_lines(job, x, input, od, oh, rows, ow, cols)
    for i in range(job.og):
        row[i] = job.w + (channel + i) * job.k
    if e.bias != NULL:
        e.bias += channel
    # Where the outputs are: those of a pixel next to each other, or those of a channel.
    to = image * out_volume * job.out_channels
    to += first * job.out_channels + channel if job.out_last else channel * out_volume + first
    if e.residual != NULL:
        residual_rows(job, e.residual + to, residual, rows, cols)
        e.residual, e.ldr = residual, sums(job)
    p.rows, p.m, p.ldc, p.ahead = row, job.og, sums(job), NULL
    if job.flat:
        one_line(job, &p, &e, input, made, residual, panels_size((rows - 1) * band.row + cols, 1))
    else:
        for y in range(rows):
            one_line(job, &p, &e, input + y * band.row, made + y * job.line, residual + y * job.line, panels_size(cols, 1))
    finished_rows(job, made, job.out + to, rows, cols)


cdef void residual_rows(const Lines *job, const float *x, float *to, int64_t rows, int64_t cols) noexcept nogil:
    """A task's residual, from x on, in place of its sums."""
    cdef int64_t w = job.out_size[2], out_volume = job.out_size[0] * job.out_size[1] * w, y, i
    for y in range(rows):
        if job.out_last:
            job.band.level.transpose(x + y * w * job.out_channels, job.out_channels, to + y * job.pitch, sums(job), cols, job.og)
            continue
        for i in range(job.og):
            memcpy(to + i * sums(job) + y * job.pitch, x + i * out_volume + y * w, cols * sizeof(float))


cdef void finished_rows(const Lines *job, const float *made, float *to, int64_t rows, int64_t cols) noexcept nogil:
    """A task's results, to their place, which begins at `to`."""
    cdef int64_t w = job.out_size[2], out_volume = job.out_size[0] * job.out_size[1] * w, y, i
    for y in range(rows):
        if job.out_last:
            job.band.level.transpose(made + y * job.pitch, sums(job), to + y * w * job.out_channels, job.out_channels, job.og, cols)
            continue
        for i in range(job.og):
            memcpy(to + i * out_volume + y * w, made + i * sums(job) + y * job.pitch, cols * sizeof(float))


cdef void one_line(const Lines *job, fl_block *p, fl_epilogue *e, const float *x, float *to, const float *residual,
                   int64_t n) noexcept nogil:
    """The sums of a line of n pixels, whole panels, strip by strip."""
    cdef int64_t blocks = blocks_of(job.k), start = 0, i, k0
    cdef fl_run run
    p.runs, p.nruns = &run, 1
    while start < n:
        p.n = min(<int64_t>STRIP, n - start)
        p.b, p.c = x + start, to + start
        if e.residual != NULL:
            e.residual = residual + start
        for i in range(blocks):
            k0 = i * FL_KC
            p.klen = min(<int64_t>FL_KC, job.k - k0)
            run.offset, run.length = k0, p.klen
            p.accumulate, p.epilogue = i > 0, e if i == blocks - 1 else NULL
            job.band.level.block_at(p, job.taps)
        start += STRIP
