"""Resampling of up to three axes by tables of weighted taps: rows along the last axis, then sums of rows.

Where a row of the input serves many rows of the result, it is resampled along the last axis once and kept in a ring; else rows are
summed first. A task makes some rows of one array's result, or all of several arrays. Few channels next to each other are taken as positions.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

from ._engine cimport fl_kernels, fl_taps, level, need, release, with_scratch
from ._fit cimport Fit, fit_of
from ._space cimport rounded

from .. import fits

cnp.import_array()

cdef enum:
    TASK = 1 << 15   # values written by one task, about
    NARROW = 16      # channels below which they are positions of the last axis


cdef Fit FIT = fit_of("resize")


@cython.final
cdef class Tables:
    """Packed: for each axis its taps. Never changed once it was made."""
    cdef fl_taps axes[3]
    cdef void *blocks[9]
    cdef int used
    cdef bint copies[3]      # one tap of weight 1 each
    cdef bint same[3]        # the axis stays as it is
    cdef int64_t inner, c    # values of a position, as given and as the last axis has them
    cdef int64_t reach       # positions under the taps of one output of the middle axis, at most
    cdef int64_t sizes[7]    # d, h, w, i of x, and d, h, w of out

    cdef int fits(self, x, out) except -1:
        return FIT.check(self.sizes, (x, out), 0)

    def __dealloc__(self):
        cdef int i
        for i in range(self.used):
            release(self.blocks[i])

    cdef void *room(self, size_t bytes) except NULL:
        self.blocks[self.used] = need(bytes + 64, "resize")
        self.used += 1
        return self.blocks[self.used - 1]

    cdef int lay(self, int axis, object given, int64_t size, int64_t repeat) except -1:
        """The taps of an axis; repeat: every position stands for so many values next to each other."""
        cdef fl_taps *p = &self.axes[axis]
        cdef int64_t o, t, n, r
        cdef cnp.ndarray index = given[0]
        cdef cnp.ndarray weight = given[1]
        cdef const int64_t *from_ = <const int64_t *>cnp.PyArray_DATA(index)
        cdef const float *factor = NULL if weight is None else <const float *>cnp.PyArray_DATA(weight)
        cdef int32_t *to
        cdef float *w = NULL
        p.taps, n = cnp.PyArray_DIM(index, 0), cnp.PyArray_DIM(index, 1)
        p.n, p.size = n * repeat, size * repeat
        p.pitch = (p.n + 15) // 16 * 16
        to = <int32_t *>self.room(p.taps * p.pitch * sizeof(int32_t))
        memset(to, 0, p.taps * p.pitch * sizeof(int32_t))
        if factor != NULL:
            w = <float *>self.room(p.taps * p.pitch * sizeof(float))
            memset(w, 0, p.taps * p.pitch * sizeof(float))
        for t in range(p.taps * n):
            if not 0 <= from_[t] < size:
                fits.places_of("resize_pack", axis, given[0], size)
        for t in range(p.taps):
            for o in range(n):
                for r in range(repeat):
                    to[t * p.pitch + o * repeat + r] = <int32_t>(from_[t * n + o] * repeat + r)
                    if factor != NULL:
                        w[t * p.pitch + o * repeat + r] = factor[t * n + o]
        p.index, p.weight = to, w
        return 0

    cdef int lay_windows(self, int64_t width) except -1:
        """Makes the taps' index relative to two vectors, where these hold the taps of `width` neighbouring outputs of the last
        axis."""
        cdef fl_taps *p = &self.axes[2]
        cdef int32_t *index = <int32_t *>p.index
        cdef int32_t *base
        cdef int64_t v, o, t, low, high
        cdef int pass_
        if self.c > 1 or p.n == 0 or p.size == 0:
            return 0
        base = <int32_t *>self.room((p.n // width + 1) * sizeof(int32_t))
        for pass_ in range(2):
            for v in range((p.n + width - 1) // width):
                low, high = p.size, 0
                for t in range(p.taps):
                    for o in range(v * width, min(p.n, (v + 1) * width)):
                        low, high = min(low, <int64_t>index[t * p.pitch + o]), max(high, <int64_t>index[t * p.pitch + o])
                if pass_ == 0:
                    low = max(min(low, p.size - 2 * width), <int64_t>0)
                    if high - low >= 2 * width:
                        return 0
                    base[v] = <int32_t>low
                else:
                    for t in range(p.taps):
                        for o in range(v * width, min(p.n, (v + 1) * width)):
                            index[t * p.pitch + o] -= base[v]
        # The second pass finds other extremes once a vector was changed, but looks at each vector before it changes it.
        p.base = base
        return 0


def resize_pack(axes, size):
    """axes: for d, h, w (index, weight), each [taps][outputs], int64 and float32 (None: one tap of weight 1), or None for an axis
    that stays; size: (d, h, w, i) of x."""
    cdef Tables tables = Tables.__new__(Tables)
    cdef int axis
    cdef int64_t o, t, low, high
    cdef const fl_taps *h
    fits.tables_of("resize_pack", axes, size, False)  # positions are looked at where they are copied
    for axis, number in enumerate(fits.resized_sizes(axes, size)):
        tables.sizes[axis] = number
    tables.inner = size[3]
    tables.c = tables.inner if tables.inner >= NARROW else 1
    for axis in range(3):
        tables.same[axis] = axes[axis] is None
        if axes[axis] is not None:
            tables.lay(axis, axes[axis], size[axis], tables.inner if axis == 2 and tables.c == 1 else 1)
            tables.copies[axis] = axes[axis][1] is None
        else:
            tables.copies[axis] = True
            tables.axes[axis].n = tables.axes[axis].size = size[axis]
            if axis == 2 and tables.c == 1:
                tables.axes[axis].n = tables.axes[axis].size = size[axis] * tables.inner
            tables.axes[axis].taps = 1
    if not tables.same[2]:
        tables.lay_windows(level().width)
    h = &tables.axes[1]
    tables.reach = 1
    if not tables.same[1]:
        for o in range(h.n):
            low, high = h.size, 0
            for t in range(h.taps):
                low, high = min(low, <int64_t>h.index[t * h.pitch + o]), max(high, <int64_t>h.index[t * h.pitch + o])
            tables.reach = max(tables.reach, high - low + 1)
    return tables


cdef struct Job:
    const fl_kernels *level
    const float *x
    float *out
    fl_taps d, h, w
    bint same_d, same_h, same_w, copies
    bint rows_first             # sums of rows come first, then the last axis
    int64_t outer, c, row, out_row, rows   # floats of a row of x and of out, rows of an array's result
    int64_t x_size, reach
    int64_t rows_each, outer_each, bands, tasks
    size_t line, scratch
    char *memory
    double work


cdef int64_t taps_of(const fl_taps *p, bint same, int64_t o, int64_t *at, float *weight) noexcept nogil:
    """Positions and weights of the taps of output o that count."""
    cdef int64_t t, count = 0
    if same:
        at[0], weight[0] = o, 1
        return 1
    for t in range(p.taps):
        weight[count] = 1 if p.weight == NULL else p.weight[t * p.pitch + o]
        at[count] = p.index[t * p.pitch + o]
        count += weight[count] != 0
    return count


cdef void rows_of(const Job *job, const float *x, float *out, int64_t first, int64_t last, char *memory) noexcept nogil:
    """Rows first .. last - 1 of one array's result."""
    cdef int64_t taps = job.d.taps * job.h.taps, r, i, j, nd, nh, count, key, slot
    cdef const float **rows = <const float **>memory
    cdef float *weights = <float *>(memory + taps * sizeof(void *))
    cdef float *wd = weights + taps
    cdef float *wh = wd + job.d.taps
    cdef int64_t *at_d = <int64_t *>(memory + rounded(taps * (sizeof(void *) + sizeof(float)) + (job.d.taps + job.h.taps) * sizeof(float)))
    cdef int64_t *at_h = at_d + job.d.taps
    cdef int64_t *tags = at_h + job.h.taps
    cdef float *line = <float *>(<char *>at_d + rounded((job.d.taps + job.h.taps + job.d.taps * job.reach) * sizeof(int64_t)))
    cdef float *ring = <float *>(<char *>line + job.line)
    cdef const float *source
    for i in range(job.d.taps * job.reach):
        tags[i] = -1
    for r in range(first, last):
        nd = taps_of(&job.d, job.same_d, r // job.h.n, at_d, wd)
        nh = taps_of(&job.h, job.same_h, r % job.h.n, at_h, wh)
        count = 0
        for i in range(nd):
            for j in range(nh):
                key = at_d[i] * job.h.size + at_h[j]
                rows[count], weights[count] = x + key * job.row, wd[i] * wh[j]
                if not job.same_w and not job.rows_first and not job.copies:
                    slot = i * job.reach + at_h[j] % job.reach
                    if tags[slot] != key:
                        job.level.taps(&job.w, rows[count], ring + slot * job.out_row, job.c)
                        tags[slot] = key
                    rows[count] = ring + slot * job.out_row
                count += 1
        if job.copies:
            # The same row as before: written once, then copied.
            if r > first and rows[0] == source:
                memcpy(out, out - job.out_row, job.out_row * sizeof(float))
            elif job.same_w:
                memcpy(out, rows[0], job.out_row * sizeof(float))
            else:
                job.level.taps(&job.w, rows[0], out, job.c)
            source = rows[0]
        elif job.same_w or not job.rows_first:
            if count == 1 and weights[0] == 1:
                memcpy(out, rows[0], job.out_row * sizeof(float))
            else:
                job.level.mix(rows, weights, count, out, job.out_row)
        elif count == 1 and weights[0] == 1:
            job.level.taps(&job.w, rows[0], out, job.c)
        else:
            job.level.mix(rows, weights, count, line, job.row)
            job.level.taps(&job.w, line, out, job.c)
        out += job.out_row


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t array = number // job.bands * job.outer_each, end = min(job.outer, array + job.outer_each)
    cdef int64_t first = number % job.bands * job.rows_each, last = min(job.rows, first + job.rows_each)
    while array < end:
        rows_of(job, job.x + array * job.x_size, job.out + (array * job.rows + first) * job.out_row, first, last,
                job.memory + worker * job.scratch)
        array += 1


cdef int run_resize(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    return with_scratch(task, &job, &job.memory, job.scratch, job.tasks, job.work)


cdef void plan_resize(Job *job, Tables packed, tuple given, const cnp.npy_intp *x) except *:
    cdef int64_t taps, outer = x[0]
    packed.fits(given[0], given[1])
    memset(job, 0, sizeof(Job))
    job.level = level()
    job.d, job.h, job.w = packed.axes[0], packed.axes[1], packed.axes[2]
    job.same_d, job.same_h, job.same_w = packed.same[0], packed.same[1], packed.same[2]
    job.copies = packed.copies[0] and packed.copies[1] and packed.copies[2]
    job.outer, job.c, job.reach = outer, packed.c, packed.reach
    job.row, job.out_row, job.rows = job.w.size * packed.c, job.w.n * packed.c, job.d.n * job.h.n
    job.x_size = job.d.size * job.h.size * job.row
    # Rows of x that are resampled along the last axis, if that comes first, against rows of the result.
    job.rows_first = job.d.taps * min(job.h.size, job.h.n * job.h.taps) > job.h.n
    job.rows_each = min(max(TASK // max(job.out_row, <int64_t>1), <int64_t>1), max(job.rows, <int64_t>1))
    job.outer_each = 1
    if job.rows_each == job.rows:
        job.outer_each = max(TASK // max(job.rows * job.out_row, <int64_t>1), <int64_t>1)
    job.bands = (job.rows + job.rows_each - 1) // job.rows_each
    job.tasks = (outer + job.outer_each - 1) // job.outer_each * job.bands if outer * job.rows * job.out_row > 0 else 0
    taps = job.d.taps * job.h.taps
    job.line = rounded(max(job.row, job.out_row) * sizeof(float))
    job.scratch = rounded(taps * (sizeof(void *) + sizeof(float)) + (job.d.taps + job.h.taps) * sizeof(float))
    job.scratch += rounded((job.d.taps + job.h.taps + job.d.taps * job.reach) * sizeof(int64_t)) + job.line
    if not (job.same_w or job.rows_first or job.copies):
        job.scratch += rounded(job.d.taps * job.reach * job.out_row * sizeof(float))
    job.work = <double>outer * job.rows * job.out_row * (10 + 3 * (taps + job.w.taps))


include "made/resize.pxi"
