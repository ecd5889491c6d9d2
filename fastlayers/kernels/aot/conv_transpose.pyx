"""Transposed convolution in 1 to 3 dimensions: an ordinary convolution with stride 1 for each phase of the stride.

Output position p of the full result takes taps t with t * dilation = p (mod stride), from the inputs (p - t * dilation) / stride. So the
positions of one phase, p mod stride, form a convolution with a part of the taps over neighbouring inputs, and no sum is ever added to
in memory. A task brings the inputs under a tile of outputs into scratch, makes the phases of its rows one after another, their columns
interleaved as they are stored, and transposes or copies the rows to the output.

Few output channels would leave most of a panel empty. Where all phases along w read the same inputs (the kernel's width is a multiple
of the stride), they are made at once then, as columns of one product: see `merged`. The order of a sum is the same either way: taps
by ascending input (kd, kh, kw), then the group's channels; so results do not depend on it, nor on layouts and threads.
"""

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

import numpy as np

from ._band cimport Band, Runs, add_run, blocks_of, end_runs, fill, multiply, no_runs
from ._engine cimport (
    FL_KC, FL_PANEL,
    copied, fl_block, fl_epilogue, fl_run, hands, level, need, release, with_scratch,
)
from ._fit cimport Fit, check_groups, fit_of, read_steps
from ._space cimport even, rounded, shared, width_of
from .gemm cimport pack_all, panels_size

from ...errors import LimitError, ShapeError

cnp.import_array()

cdef extern from "csrc/prefetch.h" nogil:
    void fl_prefetch_plane(const float *first, int64_t pitch, int64_t rows, int64_t n)

cdef enum:
    PIXELS = 256    # rows of one product at most,
    SUMS = 1 << 16  # and the sums of one phase of rows (256 KB): they stay in a second-level cache
    COLS = 256
    LEAST = 48      # pixels of a phase in a task that is cut for another thread
    FEW = 8         # outputs of a phase in a row: fewer make products of their own too short
    COST = 30       # an output's share of reading and writing, in the operations that `workers` counts
    PHASES = 1 << 16  # of the stride at most: each has a table, and its own product


cdef struct Phase:
    # The taps of one phase along one axis, by ascending input: tap - m * every reads input q + first + m * step.
    int64_t count, tap, first


cdef struct Axis:
    int64_t stride, every, step
    Phase *phases  # one for every value of p mod stride


cdef Fit PACK = fit_of("conv_transpose_pack"), FIT = fit_of("conv_transpose")


@cython.final
cdef class PackedConvTranspose:
    """Weights of a transposed convolution in panels, phase by phase. Immutable; may be used by any number of threads at once."""
    cdef float *b           # [phase d][phase h][phase w, unless merged][group]: panels
    cdef int64_t *starts    # where the weights of such a triple of phases begin
    cdef float *bias        # groups x whole panels, or NULL
    cdef readonly int64_t nbytes
    cdef int64_t groups, ig, og, ntaps
    cdef int64_t columns    # of a product: og, or og of every phase along w
    cdef bint merged
    cdef Axis axes[3]

    cdef int fits(self, x, out, int layout, pads) except -1:
        cdef int64_t known[2]
        known[0], known[1] = self.groups * self.ig, self.groups * self.og
        if len(pads) != 6:
            raise ShapeError(f"conv_transpose: pads are {tuple(pads)}: expected six values, two for each of d, h and w")
        return FIT.check(known, (x, out), layout)

    def __dealloc__(self):
        cdef int axis
        release(self.b)
        release(self.starts)
        release(self.bias)
        for axis in range(3):
            release(self.axes[axis].phases)


cdef int plan_axis(Axis *axis, int64_t kernel, int64_t stride, int64_t dilation) except -1:
    cdef int64_t a = stride, b = dilation, t
    cdef Phase *phase
    while b:
        a, b = b, a % b
    axis.stride, axis.every, axis.step = stride, stride // a, dilation // a
    axis.phases = <Phase *>need(stride * sizeof(Phase), "conv_transpose_pack")
    memset(axis.phases, 0, stride * sizeof(Phase))
    for t in range(kernel):
        phase = &axis.phases[t * dilation % stride]
        phase.count, phase.tap, phase.first = phase.count + 1, t, -(t * dilation // stride)
    return 0


cdef list taps_of(const Axis *axis, int64_t phase):
    cdef const Phase *p = &axis.phases[phase]
    return [p.tap - m * axis.every for m in range(p.count)]


cdef bint mergeable(const Axis *axis, int64_t og) noexcept nogil:
    """Do all phases read the same inputs, and are their columns together fewer panels?"""
    cdef int64_t r
    for r in range(axis.stride):
        if axis.phases[r].count != axis.phases[0].count or axis.phases[r].first != axis.phases[0].first:
            return False
    return panels_size(axis.stride * og, 1) < axis.stride * panels_size(og, 1)


def conv_transpose_pack(cnp.ndarray weight__ipdhw, cnp.ndarray bias__o, stride, dilation, int64_t groups):
    """Weights (c, o / groups, kd, kh, kw) of a transposed convolution with its stride, dilation and groups."""
    cdef PackedConvTranspose packed = PackedConvTranspose.__new__(PackedConvTranspose)
    cdef int64_t axis, g, rd, rh, rw, k, n, number = 0, total = 0, along
    cdef int64_t known[1]
    cdef int64_t steps[2][3]
    cdef cnp.ndarray part
    cdef const float *w
    known[0] = groups * weight__ipdhw.shape[1] if weight__ipdhw.ndim > 1 else 0
    check_groups("conv_transpose_pack", "groups", groups, weight__ipdhw.shape[0] if weight__ipdhw.ndim > 0 else 0)
    PACK.check(known, (weight__ipdhw, bias__o), 0)
    read_steps("conv_transpose_pack", stride, dilation, steps[0], steps[1])
    if stride[0] * stride[1] * stride[2] > PHASES:
        raise LimitError(f"conv_transpose: stride is {tuple(stride)}: expected a product of at most {PHASES}, its number of phases")
    packed.groups, packed.ig, packed.og = groups, weight__ipdhw.shape[0] // max(groups, <int64_t>1), weight__ipdhw.shape[1]
    packed.ntaps = 1
    for axis in range(3):
        plan_axis(&packed.axes[axis], weight__ipdhw.shape[2 + axis], stride[axis], dilation[axis])
        packed.ntaps *= weight__ipdhw.shape[2 + axis]
    packed.merged = mergeable(&packed.axes[2], packed.og)
    along = 1 if packed.merged else packed.axes[2].stride
    packed.columns = n = packed.og * (packed.axes[2].stride if packed.merged else 1)
    k = packed.ntaps * packed.ig // (packed.axes[2].stride // along)  # every tap belongs to one phase
    packed.nbytes = groups * panels_size(n, k) * sizeof(float)
    packed.b = <float *>need(packed.nbytes, "conv_transpose_pack")
    packed.starts = <int64_t *>need(packed.axes[0].stride * packed.axes[1].stride * along * sizeof(int64_t), "conv_transpose_pack")
    whole = weight__ipdhw.reshape((groups, packed.ig, packed.og, *np.shape(weight__ipdhw)[2:]))
    for rd in range(packed.axes[0].stride):
        some = whole[:, :, :, taps_of(&packed.axes[0], rd)]
        for rh in range(packed.axes[1].stride):
            less = some[:, :, :, :, taps_of(&packed.axes[1], rh)]
            for rw in range(along):
                columns = range(packed.axes[2].stride) if packed.merged else (rw,)
                phases = np.stack([less[:, :, :, :, :, taps_of(&packed.axes[2], r)] for r in columns], 1)
                part = np.ascontiguousarray(phases.transpose(0, 1, 3, 4, 5, 6, 2), np.float32)  # g, phase, o, kd, kh, kw, c
                k = part.shape[3] * part.shape[4] * part.shape[5] * packed.ig
                packed.starts[number] = total
                number += 1
                w = <const float *>cnp.PyArray_DATA(part)
                pack_all(w, groups, n, k, packed.b + total)
                total += groups * panels_size(n, k)
    if bias__o is not None:
        wide = np.zeros((groups, panels_size(n, 1)), np.float32)
        wide[:, :n] = np.tile(bias__o.reshape(groups, packed.og), (1, n // max(packed.og, <int64_t>1)))
        packed.bias = copied(wide, "conv_transpose_pack")
    return packed


cdef struct Part:
    # One product of a task: its phase's weights and runs, and where in the band the first tap of the first output reads.
    const float *b
    int64_t k, at
    fl_run *runs
    int64_t *first


cdef struct Job:
    Band band              # the input of one image and group
    const float *x
    float *out
    const float *bias
    fl_epilogue epilogue
    int64_t groups, og, columns, out_channels
    bint merged
    int64_t out_size[3]
    int64_t before[3]
    bint out_last          # is the output channels-last?
    bint direct            # products write to it, without scratch in between
    Axis axes[3]
    double work
    # how the work is cut: `rows` rows of outputs of every phase along h, `cols` of every phase along w, `width` columns of the product
    int64_t rows, cols, width, row_tasks, col_tasks, width_tasks, tasks
    int64_t margin         # positions ahead of the first wanted output in a row of sums: merged phases begin at a multiple of the stride
    int64_t pitch          # floats between neighbouring outputs there
    int64_t high, wide     # input positions that outputs in the same place read, over all phases
    void *lists            # the plan's own memory
    Part *parts            # [phase d][place of the output h][place w, unless merged]
    # scratch of one worker, in bytes, and where its parts start
    char *scratch
    size_t scratch_size, at_input, at_sums


cdef inline int64_t floor_div(int64_t a, int64_t b) noexcept nogil:
    return a // b - (1 if a % b < 0 else 0)  # this division is C's


cdef inline int64_t modulo(int64_t a, int64_t b) noexcept nogil:
    return a - floor_div(a, b) * b


cdef inline const Phase *phase_at(const Job *job, int axis, int64_t place) noexcept nogil:
    """The phase of the output at `place`."""
    return &job.axes[axis].phases[modulo(place + job.before[axis], job.axes[axis].stride)]


cdef inline int64_t first_input(const Job *job, int axis, int64_t place) noexcept nogil:
    """The first input that the output at `place` reads."""
    return floor_div(place + job.before[axis], job.axes[axis].stride) + phase_at(job, axis, place).first


cdef int64_t first_of_all(const Job *job, int axis, int64_t places) noexcept nogil:
    """The first input that one of the first `places` outputs reads."""
    cdef int64_t place, least = INT64_MAX
    for place in range(places):
        if phase_at(job, axis, place).count:
            least = min(least, first_input(job, axis, place))
    return least


cdef int64_t last_of_all(const Job *job, int axis, int64_t places) noexcept nogil:
    """The last input that one of the first `places` outputs reads."""
    cdef int64_t place, most = INT64_MIN
    for place in range(places):
        if phase_at(job, axis, place).count:
            most = max(most, first_input(job, axis, place) + (phase_at(job, axis, place).count - 1) * job.axes[axis].step)
    return most


cdef struct Rows:
    # Rows of the output with stride `stride`: where they begin, and how many pixels and channels of them are meant.
    int64_t image, od, oh, ow, pixels, channel, channels


cdef inline float *output(const Job *job, const Rows *to, int64_t y) noexcept nogil:
    cdef int64_t at = (to.od * job.out_size[1] + to.oh + y * job.axes[1].stride) * job.out_size[2] + to.ow
    cdef int64_t volume = job.out_size[0] * job.out_size[1] * job.out_size[2]
    if job.out_last:
        return job.out + (to.image * volume + at) * job.out_channels + to.channel
    return job.out + (to.image * job.out_channels + to.channel) * volume + at


cdef void put(const Job *job, const Rows *to, int64_t y, const float *sums) noexcept nogil:
    """Moves finished sums to row y of the output."""
    cdef int64_t x
    cdef float *at = output(job, to, y)
    if not job.out_last:
        job.band.level.transpose(sums, job.pitch, at, job.out_size[0] * job.out_size[1] * job.out_size[2], to.pixels, to.channels)
    elif job.pitch == job.out_channels and to.channels == job.out_channels:
        memcpy(at, sums, to.pixels * job.pitch * sizeof(float))
    else:
        for x in range(to.pixels):
            memcpy(at + x * job.out_channels, sums + x * job.pitch, to.channels * sizeof(float))


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef const Band *band = &job.band
    cdef int64_t sh = job.axes[1].stride, sw = job.axes[2].stride
    cdef int64_t j0 = number % job.width_tasks * job.width, rest = number // job.width_tasks
    cdef int64_t width = min(job.width, job.columns - j0), channels = min(width, job.og)
    cdef int64_t uw = rest % job.col_tasks * job.cols
    rest = rest // job.col_tasks
    cdef int64_t uh = rest % job.row_tasks * job.rows
    rest = rest // job.row_tasks
    cdef int64_t od = rest % job.out_size[0]
    rest = rest // job.out_size[0]
    cdef int64_t group = rest % job.groups, image = rest // job.groups
    cdef int64_t volume = band.size[0] * band.size[1] * band.size[2], along = 1 if job.merged else sw
    cdef int64_t columns = panels_size(job.columns, 1)
    cdef char *scratch = job.scratch + worker * job.scratch_size
    cdef float *input = <float *>(scratch + job.at_input)
    cdef float *sums = <float *>(scratch + job.at_sums)
    cdef const float **row = <const float **>scratch
    cdef const float *base
    cdef const Part *part
    cdef const Phase *phase = phase_at(job, 0, od)
    cdef int64_t count, rows, place, x, y, i, v
    cdef fl_epilogue e = job.epilogue
    cdef fl_block p
    cdef Rows to

    rows = min(job.rows, (job.out_size[1] + sh - 1) // sh - uh)
    count = min(job.cols, (job.out_size[2] + sw - 1) // sw - uw) + (1 if job.margin else 0)
    fill(band, job.x + image * volume * band.channels + group * band.ig * (1 if band.last else volume), input,
         first_input(job, 0, od), job.axes[0].step, phase.count, uh, rows + job.high - 1, uw, count + job.wide - 1)
    if e.bias != NULL:
        e.bias += group * columns + j0
    to.od, to.image, to.channel, to.channels = od, image, group * job.og + j0, channels
    to.ow, to.pixels = uw * sw, min(job.cols * sw, job.out_size[2] - uw * sw)
    for place in range(sh):
        rows = min(job.rows, (job.out_size[1] - uh * sh - place + sh - 1) // sh)
        if rows <= 0:
            break
        to.oh = uh * sh + place
        if not job.direct and not job.out_last:
            for y in range(rows):
                fl_prefetch_plane(output(job, &to, y), job.out_size[0] * job.out_size[1] * job.out_size[2], channels, to.pixels)
        for v in range(along):
            part = &job.parts[((phase - job.axes[0].phases) * sh + place) * along + v]
            base = input + part.at
            i = 0
            for y in range(rows):
                for x in range(count):
                    row[i] = base + y * band.row + x * band.ig
                    i += 1
            p.n = width
            if job.direct:
                p.m = (to.pixels - v + sw - 1) // sw
                p.ldc = sw * job.out_channels
                for y in range(rows):
                    p.rows, p.c = row + y * count, output(job, &to, y) + v * job.out_channels
                    multiply(band.level, &p, part.runs, part.first, part.k, part.b + group * columns * part.k, job.columns, j0, &e)
            else:
                p.rows, p.m, p.c, p.ldc = row, i, sums + v * job.pitch, sw * job.pitch
                multiply(band.level, &p, part.runs, part.first, part.k, part.b + group * columns * part.k, job.columns, j0, &e)
        if not job.direct:
            for y in range(rows):
                put(job, &to, y, sums + (y * count * sw + job.margin) * job.pitch)


cdef void plan_part(const Job *job, PackedConvTranspose packed, int64_t rd, int64_t h, int64_t w, Part *part) noexcept:
    """The product of phase rd along d and the outputs at positions h and w. part.runs, part.first: room for the lists."""
    cdef const Phase *d = &job.axes[0].phases[rd]
    cdef const Phase *y = phase_at(job, 1, h)
    cdef const Phase *x = phase_at(job, 2, w)
    cdef int64_t across = job.axes[2].step * job.band.ig, down = job.axes[1].step * job.band.row, i, u, v, number
    cdef Runs list = no_runs(part.runs, part.first)
    for i in range(d.count):
        for u in range(y.count):
            for v in range(x.count):
                add_run(&list, i * job.band.plane + u * down + v * across, job.band.ig)
    end_runs(&list)
    part.k = d.count * y.count * x.count * job.band.ig
    number = (rd * job.axes[1].stride + (y - job.axes[1].phases)) * (1 if job.merged else job.axes[2].stride)
    part.b = packed.b + packed.starts[number + (0 if job.merged else x - job.axes[2].phases)]
    part.at = 0
    if part.k:  # in the band, input 0 - before comes first
        part.at = ((first_input(job, 1, h) + job.band.before[1]) * job.band.row
                   + (first_input(job, 2, w) + job.band.before[2]) * job.band.ig)


cdef int plan_parts(Job *job, PackedConvTranspose packed) except -1:
    """All products of a tile, in memory of the plan's own."""
    cdef int64_t along = 1 if job.merged else job.axes[2].stride, number = job.axes[0].stride * job.axes[1].stride * along, i, blocks
    cdef int64_t runs = packed.ntaps + packed.ntaps * packed.ig // FL_KC + number
    cdef fl_run *list
    cdef int64_t *first
    cdef size_t bytes = number * sizeof(Part) + runs * sizeof(fl_run) + (runs + number) * sizeof(int64_t)
    job.lists = job.parts = <Part *>need(bytes, "conv_transpose")
    list = <fl_run *>(job.parts + number)
    first = <int64_t *>(list + runs)
    for i in range(number):
        job.parts[i].runs, job.parts[i].first = list, first
        plan_part(job, packed, i // along // job.axes[1].stride, i // along % job.axes[1].stride, i % along, &job.parts[i])
        blocks = blocks_of(job.parts[i].k)
        list, first = list + first[blocks], first + blocks + 1
    return 0


cdef void share(Job *job, int64_t images, int64_t down, int64_t across) noexcept nogil:
    """Fewer rows, or columns where there is one row, a task where threads would have nothing to do."""
    cdef int64_t others = images * job.groups * job.out_size[0]
    cdef int most = hands(job.work)
    if down > 1:
        job.rows = shared(down, job.rows, 1, max(LEAST // job.cols, <int64_t>1), others * job.col_tasks, most)
    else:
        job.cols = shared(across, job.cols, FL_PANEL, LEAST, others, most)
    job.row_tasks, job.col_tasks = (down + job.rows - 1) // job.rows, (across + job.cols - 1) // job.cols


cdef int plan_call(Job *job, PackedConvTranspose packed, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, bint x_last,
                             bint out_last, activation) except -1:
    """Everything about a call but where its arrays are. Gives the plan `lists`, which the caller releases."""
    cdef int64_t axis, images = x[0], most, down, across, places, planes = 0, i
    memset(job, 0, sizeof(Job))
    job.band.level = level()
    job.groups, job.og, job.columns, job.merged = packed.groups, packed.og, packed.columns, packed.merged
    job.band.ig, job.band.channels, job.out_channels = packed.ig, packed.groups * packed.ig, packed.groups * packed.og
    job.work = images * job.out_channels
    for axis in range(3):
        job.axes[axis], job.before[axis] = packed.axes[axis], pads[2 * axis]
        job.band.size[axis], job.out_size[axis] = x[axis + (1 if x_last else 2)], out[axis + (1 if out_last else 2)]
        job.work *= job.out_size[axis]
    if job.work == 0:
        return 0  # no task at all
    job.work *= 2.0 * packed.ntaps * packed.ig / (job.axes[0].stride * job.axes[1].stride * job.axes[2].stride) + COST
    job.band.last, job.out_last = x_last, out_last
    job.epilogue.bias = packed.bias
    job.epilogue.code, job.epilogue.a, job.epilogue.b = activation

    down = (job.out_size[1] + job.axes[1].stride - 1) // job.axes[1].stride
    across = (job.out_size[2] + job.axes[2].stride - 1) // job.axes[2].stride
    job.margin = modulo(job.before[2], job.axes[2].stride) if job.merged else 0
    job.pitch = packed.og if job.merged else panels_size(min(packed.og, <int64_t>COLS), 1)
    most = min(max(SUMS // (job.axes[2].stride * job.pitch), <int64_t>FL_PANEL), <int64_t>PIXELS)
    job.cols = even(across, most)
    job.rows = even(down, max(most // job.cols, <int64_t>1))
    job.row_tasks, job.col_tasks = (down + job.rows - 1) // job.rows, (across + job.cols - 1) // job.cols
    share(job, images, down, across)
    job.tasks = images * job.groups * job.out_size[0] * job.row_tasks * job.col_tasks
    job.width = job.columns if job.merged else width_of(job.columns, COLS, job.tasks, 8)
    job.width_tasks = (job.columns + job.width - 1) // job.width
    job.tasks *= job.width_tasks
    job.direct = out_last and not job.merged and job.cols >= FEW

    for axis in range(1, 3):
        places = 1 if axis == 2 and job.merged else job.axes[axis].stride
        job.band.before[axis] = -first_of_all(job, axis, places)
        if axis == 1:
            job.high = last_of_all(job, axis, places) + job.band.before[axis] + 1
        else:
            job.wide = last_of_all(job, axis, places) + job.band.before[axis] + 1
    for i in range(job.axes[0].stride):
        planes = max(planes, job.axes[0].phases[i].count)
    most = job.rows * (job.cols + (1 if job.margin else 0))
    job.band.row = (job.cols + (1 if job.margin else 0) + job.wide - 1) * job.band.ig
    if job.band.row % 1024 == 0:  # rows a multiple of 4 KB apart fall into the same cache sets
        job.band.row += FL_PANEL
    job.band.plane = (job.rows + job.high - 1) * job.band.row
    job.at_input = rounded(most * sizeof(float *))
    job.at_sums = job.at_input + rounded(planes * job.band.plane * sizeof(float))
    job.scratch_size = job.at_sums
    if not job.direct:
        job.scratch_size += rounded(most * job.axes[2].stride * job.pitch * sizeof(float))
    return plan_parts(job, packed)


cdef int plan_conv_transpose(Job *job, void **owned, PackedConvTranspose packed, tuple given, const cnp.npy_intp *x, const cnp.npy_intp *out,
                             pads, bint x_last, bint out_last, activation) except -1:
    packed.fits(given[0], given[1], x_last | out_last << 1, pads)
    job.lists = NULL
    try:
        return plan_call(job, packed, x, out, pads, x_last, out_last, activation)
    finally:
        owned[0] = job.lists


cdef int run_conv_transpose(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out."""
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    return with_scratch(task, &job, &job.scratch, job.scratch_size, job.tasks, job.work)


include "made/conv_transpose.pxi"
