"""Convolutions with swapped roles, of channels-first data: the weights' rows are broadcast and pixels are the panels."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ._band cimport Band, blocks_of
from ._conv cimport PIXELS, Job, Place, in_one_row, place_of, reach
from ._engine cimport FL_KC, FL_PANEL, fl_block, fl_epilogue, fl_panels, fl_run
from ._rows cimport cut
from ._space cimport even, rounded, source_index
from .gemm cimport panels_size

cdef enum:
    STRIP = 64    # pixels that are packed at once: four panels
    FEW_RESULTS = 64  # a group: as few read pixels where they are, where nothing else speaks for packing them


cdef bint swapped(int64_t k, int64_t ig, int64_t og, bint alone) noexcept nogil:
    """Can it pay to make panels of channels-first pixels? Yes for 1x1 kernels, and for images with few channels and many outputs, where
    transposing the output is most of the work next to the sums: 3 -> 32 with stride 2 took 0.63 of the time, 3 -> 64 (7x7) 0.86, but
    64 -> 128 with stride 2 1.2 times as long. And for sequences with stride 1 (`alone`), whose taps are next to each other: 11 taps of 32
    channels took 0.95 of the time."""
    return k <= ig or ig <= 8 and k < 4 * (ig + og) or alone and ig <= 32


cdef int64_t rows_that_fill(int64_t rows, int64_t all_rows, int64_t left) noexcept nogil:
    """From `rows` to twice as many: the number of which `left` pixels each fill strips best. 11x11 3 -> 96 from 224 took 0.9 of the time."""
    cdef int64_t best = rows, most = min(2 * rows, all_rows), i
    for i in range(rows, most + 1):
        if left * i * strips(left * best) >= left * best * strips(left * i):
            best = i
    return best


cdef inline int64_t strips(int64_t pixels) noexcept nogil:
    """Pixels of whole strips."""
    return (pixels + STRIP - 1) // STRIP * STRIP


cdef void plan_taps(Job *job) noexcept nogil:
    """Offsets of the terms of K in scratch [c][z][y][phase][column], or straight in the data."""
    cdef int64_t z, y, x, c, t = 0, at
    for z in range(job.kernel[0]):
        for y in range(job.kernel[1]):
            for x in range(job.kernel[2]):
                at = x * job.dilation[2]
                at = z * job.band.plane + y * job.dilation[1] * job.band.row + at % job.stride[2] * job.phase + at // job.stride[2]
                for c in range(job.band.ig):
                    job.taps[t] = c * job.pixel + at
                    t += 1


cdef void fill_phases(const Job *job, const float *x, float *to, int64_t od, int64_t oh, int64_t rows, int64_t ow, int64_t cols) noexcept nogil:
    """Padded input under rows x cols output pixels, channels-first, the columns of each row sorted by their phase of the stride."""
    cdef int64_t high = reach(job, 1, rows), wide = reach(job, 2, cols)
    cdef int64_t w = job.band.size[2], step = job.stride[2], start = ow * step, before = job.band.before[2], c, z, y, u, n, i, i0, i1, at, at_z, at_y
    cdef const float *from_
    cdef float *row
    for c in range(job.band.ig):
        for z in range(job.kernel[0]):
            at_z = source_index(od * job.stride[0] + z * job.dilation[0], job.band.before[0], job.band.size[0], job.band.mode)
            for y in range(high):
                at_y = source_index(oh * job.stride[1] + y, job.band.before[1], job.band.size[1], job.band.mode)
                row = to + c * job.pixel + z * job.band.plane + y * job.band.row
                if at_z < 0 or at_y < 0:
                    memset(row, 0, step * job.phase * sizeof(float))
                    continue
                from_ = x + ((c * job.band.size[0] + at_z) * job.band.size[1] + at_y) * w
                for u in range(min(step, wide)):
                    n = (wide - u + step - 1) // step  # columns u, u + step, ... of which i0 .. i1 - 1 are inside
                    i0 = min(max((before - start - u + step - 1) // step if before > start + u else 0, <int64_t>0), n)
                    i1 = max(min((before + w - start - u + step - 1) // step if before + w > start + u else 0, n), i0)
                    job.band.level.gather(from_ + start + u + i0 * step - before, step, row + u * job.phase + i0, i1 - i0)
                    i = 0 if i0 > 0 else i1
                    while i < n:
                        at = source_index(start + u + i * step, before, w, job.band.mode)
                        row[u * job.phase + i] = 0 if at < 0 else from_[at]
                        i = i + 1 if i + 1 != i0 else i1


cdef void swapped_task(void *context, int64_t number, int worker) noexcept nogil:
    """Channels-first, roles swapped: out[o, pixel] = sum_k w[o, k] tap_k[pixel]. Whole panels of a row of pixels are read where they
    are in scratch; the others, and all if `packing`, are packed block by block of K."""
    cdef const Job *job = <const Job *>context
    cdef Place at = place_of(job, number)
    cdef const Band *band = &job.band
    cdef int64_t volume = band.size[0] * band.size[1] * band.size[2], out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    cdef int64_t channel = at.group * job.og + at.j0, i, y, x, count, left, start = 0 if job.packing else at.cols // FL_PANEL * FL_PANEL
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const float **row = <const float **>scratch
    cdef int64_t *offsets = <int64_t *>(scratch + job.at_residual)
    cdef float *sums
    cdef float *c
    cdef fl_epilogue e = job.epilogue
    cdef fl_panels from_
    cdef fl_block p
    cdef fl_run run

    from_.base = job.x + (at.image * band.channels + at.group * band.ig) * volume
    if job.in_place:
        from_.base += at.od * band.plane + at.oh * band.row + at.ow
    else:
        fill_phases(job, from_.base, <float *>(scratch + job.at_input), at.od, at.oh, at.rows, at.ow, at.cols)
        from_.base = <const float *>(scratch + job.at_input)
    p.m = at.width
    for i in range(p.m):
        row[i] = job.b + (channel + i) * job.k
    if e.bias != NULL:
        e.bias += channel
    p.rows, p.runs, p.nruns, p.ahead, p.ldc = row, &run, 1, NULL, out_volume
    p.c = c = job.out + (at.image * job.out_channels + channel) * out_volume + at.first
    if e.residual != NULL:
        e.residual += (at.image * job.out_channels + channel) * out_volume + at.first
    if start > 0:
        read_rows(job, &at, &p, &e, from_.base, start)
    if start == at.cols:
        return
    count = 0
    for y in range(at.rows):
        for x in range(start, at.cols):
            offsets[count] = y * job.stride[1] * band.row + x
            count += 1
    from_.slack, from_.b, from_.pixels = not job.in_place, <float *>(scratch + job.at_sums), offsets
    if job.packing:
        pack_pixels(job, &p, &e, &from_, count)
        return
    sums = p.c = <float *>(scratch + job.at_rest)
    p.ldc = panels_size(count, 1)
    pack_pixels(job, &p, &e, &from_, count)
    left = at.cols - start
    for i in range(p.m):
        for y in range(at.rows):
            memcpy(c + i * out_volume + y * job.out_size[2] + start, sums + i * p.ldc + y * left, left * sizeof(float))


cdef void pack_pixels(const Job *job, fl_block *p, fl_epilogue *e, fl_panels *from_, int64_t count) noexcept nogil:
    """The sums of `count` pixels, in order at p.c. A few panels at a time are made and used while the nearest cache holds them."""
    cdef int64_t blocks = blocks_of(job.k), start = 0, i, k0
    cdef fl_run *run = <fl_run *>p.runs
    p.b = from_.b
    while start < count:
        from_.n = p.n = min(<int64_t>STRIP, count - start)
        for i in range(blocks):
            k0 = i * FL_KC
            p.klen = min(<int64_t>FL_KC, job.k - k0)
            run.offset, run.length = k0, p.klen
            from_.taps, from_.klen = job.taps + k0, p.klen
            job.band.level.panels(from_)
            p.accumulate, p.epilogue = i > 0, e if i == blocks - 1 else NULL
            job.band.level.block(p)
        start += STRIP
        from_.pixels += STRIP
        p.c += STRIP
        if e.residual != NULL:
            e.residual += STRIP


cdef void read_rows(const Job *job, const Place *at, fl_block *p, fl_epilogue *e, const float *base, int64_t cols) noexcept nogil:
    """The sums of the first `cols` pixels of each row without packing, in strips that the nearest cache holds."""
    cdef int64_t y, x, k0, i, blocks = blocks_of(job.k)
    cdef const float *residual = e.residual
    cdef float *c = p.c
    cdef fl_run *run = <fl_run *>p.runs
    for y in range(at.rows):
        x = 0
        while x < cols:
            p.n = min(<int64_t>STRIP, cols - x)
            p.b, p.c = base + y * job.stride[1] * job.band.row + x, c + y * job.out_size[2] + x
            if residual != NULL:
                e.residual = residual + y * job.out_size[2] + x
            for i in range(blocks):
                k0 = i * FL_KC
                p.klen = min(<int64_t>FL_KC, job.k - k0)
                run.offset, run.length = k0, p.klen
                p.accumulate, p.epilogue = i > 0, e if i == blocks - 1 else NULL
                job.band.level.block_at(p, job.taps)
            x += STRIP


cdef void plan_swapped(Job *job, int64_t images, bint residual) noexcept nogil:
    cdef int64_t most = min(max(PIXELS * FL_KC // max(job.k, <int64_t>1), <int64_t>PIXELS), <int64_t>4 * PIXELS)  # few terms: longer panels
    job.in_place = in_one_row(job)
    job.epilogue.ldr = job.out_size[0] * job.out_size[1] * job.out_size[2]
    job.cols = even(job.out_size[2], most)
    if job.cols < job.out_size[2]:
        job.cols = panels_size(job.cols, 1)
    # Whole panels of a row are read where they are: 3 -> 64 (7x7) took 0.9 of the time. What is left of the rows is packed together.
    # Rows of one panel and a part are packed whole: few sums at a time are slow (28 wide, 3 -> 32: 0.83 of the time).
    # Of a 1x1 kernel, pixels that meet few weights are not worth packing: 32 -> 16 (112x112) took 0.63 of the time, 96 -> 24 (56x56)
    # 0.72, 64 -> 64 0.84, 64 -> 256 1.02.
    job.packing = job.in_place and job.og > FEW_RESULTS or job.out_size[2] % FL_PANEL != 0 and (residual or job.cols < 2 * FL_PANEL)
    job.rows = even(job.out_size[1], max(most // job.cols, <int64_t>1))
    if not job.in_place and not (job.packing and job.cols < job.out_size[2]):  # packed pixels are next to each other in the result
        job.rows = rows_that_fill(job.rows, job.out_size[1], job.cols if job.packing else job.cols % FL_PANEL)
    cut(job, images)
    scratch_of(job)


cdef void scratch_of(Job *job) noexcept nogil:
    """Scratch of one task with swapped roles: pointers to weights, padded input by phases, panels (`at_sums`), offsets of pixels."""
    cdef int64_t high = reach(job, 1, job.rows), wide = reach(job, 2, job.cols)
    if job.in_place:
        job.phase, job.band.row, job.band.plane = 0, job.band.size[2], job.band.size[1] * job.band.size[2]
        job.pixel = job.band.size[0] * job.band.plane
    else:
        job.phase = (wide + job.stride[2] - 1) // job.stride[2]
        job.band.row = job.phase * job.stride[2]
        job.band.plane = high * job.band.row
        job.pixel = job.kernel[0] * job.band.plane
    job.at_input = rounded(job.width * sizeof(float *))
    job.at_sums = job.at_input
    if not job.in_place:
        job.at_sums += rounded((job.band.ig * job.pixel + FL_PANEL) * sizeof(float))
    if not job.packing and job.out_size[2] % FL_PANEL == 0:  # whole panels in every task
        job.scratch_size = job.at_sums
        return
    job.at_residual = job.at_sums + rounded((STRIP * min(job.k, <int64_t>FL_KC) + FL_PANEL) * sizeof(float))
    job.at_rest = job.scratch_size = job.at_residual + rounded(job.rows * job.cols * sizeof(int64_t))
    if not job.packing:
        job.scratch_size += rounded(job.width * panels_size(job.rows * min(job.cols, <int64_t>FL_PANEL), 1) * sizeof(float))
