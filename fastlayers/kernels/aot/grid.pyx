"""Images read at given positions, between their pixels: nearest, linear or cubic, along one, two or three axes.

A task is a few positions of one image: where each one's neighbours are, and the share of each, is found once for all channels.
"""

from libc.math cimport rint
from libc.stdint cimport int64_t
from libc.string cimport memset
cimport numpy as cnp

from ._engine cimport with_scratch
from ._once cimport fl_once_f32
from ._space cimport rounded

cnp.import_array()

cdef enum:
    ZEROS = 0         # codes of table.BORDERS
    REFLECTION = 2
    PIXELS = 2        # of `aligned`
    PLACES = 32       # of a task
    AXES = 3

cdef double FAR = <double>(<int64_t>1 << 40)   # where positions end, so that they remain integers
# The cubic's parameter, and what its polynomials have of it. As floats: with a number written there, they would be doubles.
cdef float CUBIC = -0.75, P2 = 1.25, P3 = 2.25, P4 = -3, P5 = -3.75, P8 = -6, ONE = 1


cdef struct Job:
    const float *x
    const float *grid
    float *out
    int64_t n, c, pixels, places, tasks   # images, channels; tasks of one image
    int64_t size[AXES]
    int axes, mode, border, corners
    int aligned
    size_t scratch
    char *memory
    double work


cdef inline float pixel(const Job *job, float place, int64_t count) noexcept nogil:
    """A place along an axis in pixels. Every result is rounded to a float, as in numpy: a fused multiply-add, or a double that is retained,
    would move what is on an edge."""
    cdef float at = <float>(place + 1)
    if job.aligned == PIXELS:
        at = place
    elif job.aligned:
        at = <float>(at / 2)
        at = <float>(at * <double>(count - 1))
    else:
        at = <float>(at * <double>count)
        at = <float>(at - 1)
        at = <float>(at / 2)
    return <float>-FAR if at < -FAR else <float>FAR if at > FAR else at


cdef inline int64_t inside(const Job *job, int64_t at, int64_t count) noexcept nogil:
    """A whole position as an index, or -1 for zeros."""
    cdef int64_t span
    if 0 <= at < count:
        return at
    if job.border == ZEROS:
        return -1
    if job.border == REFLECTION:
        span = max(2 * (count - 1), <int64_t>1) if job.aligned else 2 * count
        at %= span
        if at < 0:
            at += span
        at = min(at, span - at if job.aligned else span - 1 - at)
    return 0 if at < 0 else count - 1 if at >= count else at


cdef inline float near(float s) noexcept nogil:
    return (P2 * s - P3) * s * s + ONE


cdef inline float far(float s) noexcept nogil:
    return ((CUBIC * s - P5) * s + P8) * s - P4


cdef inline void neighbours(const Job *job, float at, int64_t count, int64_t *index, float *share) noexcept nogil:
    """The indices (-1: zeros) along an axis, and the share of each."""
    cdef int64_t low
    cdef float t
    cdef int i
    if at != at:
        for i in range(job.mode):
            index[i], share[i] = inside(job, -1, count), at
        return
    if job.mode == 1:
        index[0], share[0] = inside(job, <int64_t>rint(at), count), 1
        return
    low = <int64_t>at
    if low > at:
        low -= 1
    t = <float>(at - low)
    if job.mode == 2:
        share[0], share[1] = <float>(1 - t), t
    else:
        share[0], share[1], share[2], share[3] = far(<float>(t + 1)), near(t), near(<float>(1 - t)), far(<float>(2 - t))
        low -= 1
    for i in range(job.mode):
        index[i] = inside(job, low + i, count)


cdef bint corners_of(const Job *job, const float *place, int64_t *index, float *share) noexcept nogil:
    """The pixels that count for a place (-1: zeros), the first axis slowest, and their shares; whether there are four, all in the image."""
    cdef int64_t at[4]
    cdef int64_t row[4]
    cdef float part[4]
    cdef float above[4]
    cdef int axis, i, j, count = 1
    cdef float y, x
    if job.axes == 2 and job.mode == 2:   # what most are: the same without loops
        y, x = pixel(job, fl_once_f32(place + 1), job.size[0]), pixel(job, fl_once_f32(place), job.size[1])
        if 0 <= y < job.size[0] - 1 and 0 <= x < job.size[1] - 1:
            row[0], at[0] = <int64_t>y, <int64_t>x
            above[1], part[1] = <float>(y - row[0]), <float>(x - at[0])
            above[0], part[0] = <float>(1 - above[1]), <float>(1 - part[1])
            share[0], share[1], share[2], share[3] = above[0] * part[0], above[0] * part[1], above[1] * part[0], above[1] * part[1]
            index[0] = row[0] * job.size[1] + at[0]
            index[1], index[2], index[3] = index[0] + 1, index[0] + job.size[1], index[0] + job.size[1] + 1
            return True
        neighbours(job, y, job.size[0], row, above)
        neighbours(job, x, job.size[1], at, part)
        for i in range(2):
            for j in range(2):
                share[2 * i + j] = above[i] * part[j]
                index[2 * i + j] = -1 if row[i] | at[j] < 0 else row[i] * job.size[1] + at[j]
        return index[0] >= 0 and index[1] >= 0 and index[2] >= 0 and index[3] >= 0
    index[0], share[0] = 0, 1
    for axis in range(job.axes):
        neighbours(job, pixel(job, fl_once_f32(place + job.axes - 1 - axis), job.size[axis]), job.size[axis], at, part)
        # From the end on: what is written is after what is still read.
        for i in range(count - 1, -1, -1):
            for j in range(job.mode - 1, -1, -1):
                share[i * job.mode + j] = share[i] * part[j]
                index[i * job.mode + j] = -1 if index[i] < 0 or at[j] < 0 else index[i] * job.size[axis] + at[j]
        count *= job.mode
    i = count == 4
    for j in range(count):
        i = i and index[j] >= 0
    return i


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t *index = <int64_t *>(job.memory + worker * job.scratch)
    cdef float *share = <float *>(index + PLACES * job.corners)
    cdef int64_t image = number // job.tasks, first = number % job.tasks * PLACES, i, c, k
    cdef int64_t count = min(<int64_t>PLACES, job.places - first), corners = job.corners
    cdef const float *x = job.x + image * job.c * job.pixels
    cdef const float *w
    cdef const int64_t *at
    cdef float *out = job.out + image * job.c * job.places + first
    cdef float total
    cdef bint whole[PLACES]   # whether all that counts for a place is in the image
    for i in range(count):
        whole[i] = corners_of(job, job.grid + (image * job.places + first + i) * job.axes, index + i * corners, share + i * corners)
    for c in range(job.c):
        for i in range(count):
            at, w, total = index + i * corners, share + i * corners, 0
            if whole[i]:
                total = x[at[0]] * w[0] + x[at[1]] * w[1] + x[at[2]] * w[2] + x[at[3]] * w[3]
            elif job.mode == 1:
                total = x[at[0]] if at[0] >= 0 else 0
            else:
                for k in range(corners):
                    total += (x[at[k]] if at[k] >= 0 else 0) * w[k]
            out[i] = total
        x += job.pixels
        out += job.places


cdef int run_grid(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    if job.n * job.c * job.places == 0:
        return 0
    job.x, job.grid, job.out = <const float *>operands[0], <const float *>operands[1], <float *>operands[2]
    return with_scratch(task, &job, &job.memory, job.scratch, job.n * job.tasks, job.work)


cdef int plan_grid_sample(Job *job, tuple x, tuple out, tuple size, int mode, int border, int aligned) except -1:
    cdef int i
    memset(job, 0, sizeof(Job))
    job.n, job.c, job.pixels, job.places = x[0], x[1], x[2], out[2]
    job.axes, job.mode, job.border, job.aligned, job.corners = len(size), mode, border, aligned, 1
    for i in range(job.axes):
        job.size[i] = size[i]
        job.corners *= mode
    job.tasks = (job.places + PLACES - 1) // PLACES
    job.scratch = rounded(PLACES * job.corners * (sizeof(int64_t) + sizeof(float)))
    job.work = <double>job.n * job.places * job.corners * (job.c * 60.0 + 300)
    return 0


include "made/grid.pxi"
