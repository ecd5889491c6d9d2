"""Convolutions row by row of pixels: each is a row of the product, which has the weights as panels. The walk of all that no other takes."""

from libc.stdint cimport int64_t, uint16_t

from ._band cimport Band, Runs, blocks_of, end_runs, fill, multiply, no_runs
from ._conv cimport COLS, PIXELS, Job, Place, in_one_row, place_of, reach
from ._engine cimport FL_KC, FL_PANEL, fl_block, fl_epilogue, fl_kernels, fl_run, hands, need
from ._halves cimport HalfRows, half_multiply, halves_size
from ._inside cimport LARGEST, STRETCHES, Stretch, add_taps, stretches
from ._space cimport even, rounded, shared, width_of
from .gemm cimport columns_size, panels_size

cdef extern from "csrc/prefetch.h" nogil:
    void fl_prefetch_plane(const float *first, int64_t pitch, int64_t rows, int64_t n)

cdef enum:
    LEAST = 48    # pixels of a task that is cut for another thread


cdef int plan_rows(Job *job, int64_t images, bint residual, bint leave_out) except -1:
    cdef bint one = job.out_size[0] * job.out_size[1] * job.out_size[2] == 1
    # Where the layouts are one, nothing is transposed.
    job.band.last = job.band.last or job.band.channels == 1 or job.band.size[0] * job.band.size[1] * job.band.size[2] == 1
    job.out_last = job.out_last or job.out_channels == 1 or one
    job.in_place = not job.padded and not job.pairs and job.band.last
    job.by_block = in_one_row(job) and not job.band.last and not job.half
    job.epilogue.ldr = job.out_channels if job.out_last else job.out_size[0] * job.out_size[1] * job.out_size[2]
    job.cols = even(job.out_size[2], PIXELS)
    job.rows = even(job.out_size[1], max(PIXELS // job.cols, <int64_t>1))
    cut(job, images)
    cut_scratch(job, residual)
    return plan_lists(job, leave_out)


cdef void cut(Job *job, int64_t images) noexcept nogil:
    # Every task prepares its pixels again. That is 2 / width of the work of a 3x3 kernel, but 16 / width of a 1x1 kernel's.
    job.row_tasks, job.col_tasks = (job.out_size[1] + job.rows - 1) // job.rows, (job.out_size[2] + job.cols - 1) // job.cols
    job.tasks = images * job.groups * job.out_size[0] * job.row_tasks * job.col_tasks
    if job.k == job.band.ig:
        job.width = width_of(job.og, 2 * COLS, job.tasks, 2)
    else:
        job.width = width_of(job.og, COLS, job.tasks, 8)
    job.width_tasks = (job.og + job.width - 1) // job.width
    share(job, images)


cdef void share(Job *job, int64_t images) noexcept nogil:
    """Fewer pixels, and if they are few, fewer columns a task, where threads would have nothing to do."""
    cdef int64_t others = images * job.groups * job.out_size[0] * job.width_tasks
    cdef int most = hands(job.work)
    if job.out_size[1] > 1:
        job.rows = shared(job.out_size[1], job.rows, 1, max(LEAST // job.cols, <int64_t>1), others * job.col_tasks, most)
    else:
        job.cols = shared(job.out_size[2], job.cols, FL_PANEL, LEAST, others, most)
    job.row_tasks, job.col_tasks = (job.out_size[1] + job.rows - 1) // job.rows, (job.out_size[2] + job.cols - 1) // job.cols
    others = images * job.groups * job.out_size[0] * job.row_tasks * job.col_tasks
    # Pixels that are read where they are cost nothing twice.
    job.width = shared(job.og, job.width, FL_PANEL, (2 if job.in_place else 4) * FL_PANEL, others, most)
    job.width_tasks = (job.og + job.width - 1) // job.width
    job.tasks = others * job.width_tasks


cdef inline int64_t spread(int64_t floats) noexcept nogil:
    """Distance in scratch of pixels of so many floats: not a multiple of 1 KB, which would have few places in the nearest cache."""
    return floats + FL_PANEL if floats % 256 == 0 else floats


cdef void cut_scratch(Job *job, bint residual) noexcept nogil:
    """Scratch of one task: pointers to its pixels, padded input, and, where the output is channels-first, its sums and residual."""
    cdef int64_t high = reach(job, 1, job.rows), wide = reach(job, 2, job.cols)
    if job.in_place:
        job.pixel, job.band.row = job.band.channels, job.band.size[2] * job.band.channels
        job.band.plane = job.dilation[0] * job.band.size[1] * job.band.row
    elif job.by_block:  # its input is one block
        job.pixel = spread(min(job.k, <int64_t>FL_KC))
        job.band.row = job.band.plane = job.cols * job.pixel
    else:
        job.pixel, job.band.row = job.band.ig, wide * job.band.ig
        if job.band.row % 1024 == 0:  # rows a multiple of 4 KB apart share their cache lines' places
            job.band.row += FL_PANEL
        job.band.plane = high * job.band.row
    job.at_input = rounded(job.rows * job.cols * sizeof(float *))
    job.at_pairs = job.at_input + (0 if job.in_place else rounded(job.kernel[0] * job.band.plane * sizeof(float)))
    job.at_sums = job.at_pairs + (rounded(job.kernel[0] * job.band.plane * sizeof(uint16_t)) if job.pairs else 0)
    job.at_residual = job.at_sums
    if not job.out_last:
        job.at_residual += rounded(job.rows * job.cols * spread(panels_size(job.width, 1)) * sizeof(float))
    job.scratch_size = job.at_residual
    if not job.out_last and residual:
        job.scratch_size += job.at_residual - job.at_sums


cdef int plan_lists(Job *job, bint leave_out) except -1:
    """Lists of runs, of which each leaves out the taps that are before or after the input."""
    cdef Stretch depth[STRETCHES]
    cdef int64_t count = 1, blocks = blocks_of(job.k), i, od
    cdef size_t at_runs, at_lists
    depth[0].first, depth[0].stop = 0, job.kernel[0]
    if leave_out and 1 < job.kernel[0] <= LARGEST:
        count = stretches(job.out_size[0], job.band.size[0], job.band.before[0], job.kernel[0], job.stride[0], job.dilation[0], depth)
    job.room = job.kernel[0] * job.kernel[1] * job.kernel[2] + blocks
    at_runs = rounded(count * (blocks + 1) * sizeof(int64_t))
    at_lists = at_runs + rounded(count * job.room * sizeof(fl_run))
    job.lists = job.first = <int64_t *>need(at_lists + (job.out_size[0] * sizeof(int64_t) if count > 1 else 0), "conv")
    job.runs = <fl_run *>(<char *>job.lists + at_runs)
    plan_runs(job, depth, count)
    if count > 1:
        job.list_at = <int64_t *>(<char *>job.lists + at_lists)
        for i in range(count):
            for od in range(depth[i].start, depth[i].start + depth[i].size):
                job.list_at[od] = i
    return 0


cdef void plan_runs(Job *job, const Stretch *depth, int64_t count) noexcept nogil:
    """Taps in the order (kd, kh, kw): a list for each of `count` stretches of depth, of those that are in it."""
    cdef int64_t apart[3]
    cdef int64_t i
    cdef Stretch all_
    cdef Runs list
    all_.first, all_.stop = 0, job.k
    apart[0], apart[1], apart[2] = job.band.plane, job.dilation[1] * job.band.row, job.dilation[2] * job.pixel
    for i in range(count):
        list = no_runs(job.runs + i * job.room, job.first + i * (blocks_of(job.k) + 1))
        add_taps(&list, job.kernel, &depth[i], &all_, &all_, apart, job.band.ig)
        end_runs(&list)


cdef inline int64_t list_of(const Job *job, int64_t od) noexcept nogil:
    """Number of the list of runs for outputs at this depth."""
    return job.list_at[od] if job.list_at != NULL else 0


cdef void multiply_planes(const Job *job, fl_block *p, const float *planes, int64_t volume, float *pixels, const float *b, int64_t j0,
                          const fl_epilogue *e) noexcept nogil:
    """`multiply` of channels-first pixels: those of a block of K are transposed when it is its turn, and are in the nearer caches then."""
    cdef int64_t columns = panels_size(job.og, 1), k0 = 0
    cdef fl_run run
    p.runs, p.nruns, run.offset = &run, 1, 0
    while k0 < job.k:
        p.klen = run.length = min(<int64_t>FL_KC, job.k - k0)
        job.band.level.transpose(planes + k0 * volume, volume, pixels, job.pixel, p.klen, p.m)
        p.b = b + columns * k0 + j0 * p.klen
        p.accumulate = k0 > 0
        k0 += p.klen
        p.epilogue = e if k0 == job.k else NULL
        p.ahead = NULL if p.epilogue != NULL else p.b + (columns - j0) * p.klen + j0 * min(<int64_t>FL_KC, job.k - k0)
        job.band.level.block(p)


cdef void rows_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef const Band *band = &job.band
    cdef const fl_kernels *lv = band.level
    cdef Place at = place_of(job, number)
    cdef int64_t channel = at.group * job.og + at.j0, pixels = at.rows * at.cols, x, y, i, to
    cdef int64_t volume = band.size[0] * band.size[1] * band.size[2], out_volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef const float **row = <const float **>scratch
    cdef const float *base = job.x + at.image * volume * band.channels + at.group * band.ig * (1 if band.last else volume)
    cdef float *first = job.out + at.image * out_volume * job.out_channels
    cdef fl_epilogue e = job.epilogue
    cdef fl_block p
    cdef HalfRows half_rows
    cdef uint16_t *narrow = <uint16_t *>(scratch + job.at_pairs)
    cdef const float *planes = NULL

    if job.in_place:
        base += (at.od * job.stride[0] * band.size[1] + at.oh * job.stride[1]) * band.row + at.ow * job.stride[2] * job.pixel
    elif job.by_block:
        planes, base = base + at.ow, <const float *>(scratch + job.at_input)
    else:
        fill(band, base, <float *>(scratch + job.at_input), at.od * job.stride[0], job.dilation[0], job.kernel[0],
             at.oh * job.stride[1], reach(job, 1, at.rows), at.ow * job.stride[2], reach(job, 2, at.cols))
        base = <const float *>(scratch + job.at_input)
    if job.pairs:
        for i in range(job.kernel[0]):
            lv.halves.round(base + i * band.plane, reach(job, 1, at.rows) * band.row, narrow + i * band.plane)
    i = 0
    for y in range(at.rows):
        for x in range(at.cols):
            to = y * job.stride[1] * band.row + x * job.stride[2] * job.pixel
            row[i] = <const float *>(narrow + to) if job.pairs else base + to
            i += 1

    if e.bias != NULL:
        e.bias += at.group * panels_size(job.og, 1) + at.j0
    if job.out_last:
        first += at.first * job.out_channels + channel
        p.c, p.ldc = first, job.out_channels
        if e.residual != NULL:
            e.residual += first - job.out
    else:
        first += channel * out_volume + at.first
        p.c, p.ldc = <float *>(scratch + job.at_sums), spread(panels_size(at.width, 1))
        if e.residual != NULL:
            lv.transpose(e.residual + (first - job.out), out_volume, <float *>(scratch + job.at_residual), p.ldc, at.width, pixels)
            e.residual, e.ldr = <float *>(scratch + job.at_residual), p.ldc
        # The planes' lines are drawn in while the sums are made: the transposition at the end touches one page per channel. Eight 64@56
        # images took 1.87 ms each without, 1.57 with.
        fl_prefetch_plane(first, out_volume, at.width, pixels)
    # Scratch has room for whole panels, or half of one, which are faster than another part.
    p.rows, p.m, p.n = row, pixels, at.width if job.out_last else columns_size(lv, at.width)
    i = list_of(job, at.od)
    if job.half:
        half_rows.rows, half_rows.pairs, half_rows.runs = row, <const uint16_t *const *>row if job.pairs else NULL, job.runs
        half_rows.starts = NULL if job.k == band.ig else job.first
        half_multiply(lv, job.half, &half_rows, pixels, job.k, <const uint16_t *>job.b + at.group * halves_size(job.half, job.og, job.k),
                      job.og, at.j0, at.width, p.c, p.ldc, &e)
    elif job.by_block:
        multiply_planes(job, &p, planes, volume, <float *>base, job.b + at.group * panels_size(job.og, job.k), at.j0, &e)
    else:
        multiply(lv, &p, job.runs + i * job.room, job.first + i * (blocks_of(job.k) + 1), job.k, job.b + at.group * panels_size(job.og, job.k), job.og, at.j0, &e)
    if not job.out_last:
        lv.transpose(p.c, p.ldc, first, out_volume, pixels, at.width)
