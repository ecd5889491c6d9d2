"""Max pooling that says where each maximum was. Tasks are rows of outputs; see csrc/pool_places.h."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._dtypes cimport fl_bytes_of
from ._engine cimport parallel, workers

from ...errors import ShapeError

cnp.import_array()

cdef extern from "csrc/pool_places.h" nogil:
    ctypedef struct fl_places:
        int64_t size[3]
        int64_t kernel[3]
        int64_t stride[3]
        int64_t dilation[3]
        int64_t before[3]
        int64_t cols, base
    void fl_pool_places(int kind, const fl_places *p, const void *plane, int64_t z, int64_t y, void *out, int64_t *at)

cdef enum:
    TASK = 16384  # taps of a task, or one row where that is more


ctypedef struct Job:
    fl_places places
    const char *x
    char *out
    int64_t *at
    int64_t planes, depth, height, rows, area, group
    int kind, item
    double work


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef fl_places places = job.places
    cdef int64_t row, plane, rest
    for row in range(number * job.group, min((number + 1) * job.group, job.rows)):
        plane, rest = row // (job.depth * job.height), row % (job.depth * job.height)
        places.base = plane * job.area
        fl_pool_places(job.kind, &places, job.x + plane * job.area * job.item, rest // job.height, rest % job.height,
                       job.out + row * places.cols * job.item, job.at + row * places.cols)


cdef int plan_max_pool_places(Job *job, tuple x, tuple out, tuple indices, kernel, stride, dilation, pads, int source) except -1:
    cdef int64_t taps = 1
    cdef int i
    cdef bint fine = len(x) == len(out) == 5 and x[:2] == out[:2] and out == indices and len(pads) == 6
    for i in range(3 if fine else 0):
        job.places.size[i], job.places.kernel[i], job.places.stride[i] = x[2 + i], kernel[i], stride[i]
        job.places.dilation[i], job.places.before[i] = dilation[i], pads[2 * i]
        fine = fine and min(stride[i], dilation[i], kernel[i]) > 0 and min(pads[2 * i], pads[2 * i + 1]) >= 0
        taps *= job.places.kernel[i]
    if not fine:
        raise ShapeError(f"max_pool_places: x has shape {x}, out {out}, indices {indices}, kernel {kernel}, pads {pads}: "
                         "expected (n, c, d, h, w), equal shapes of out and indices, and pads of at least 0")
    job.planes = <int64_t>x[0] * <int64_t>x[1]
    job.depth, job.height, job.places.cols = out[2], out[3], out[4]
    job.area = job.places.size[0] * job.places.size[1] * job.places.size[2]
    job.rows = job.planes * job.depth * job.height
    job.group = max(TASK // max(taps * job.places.cols, <int64_t>1), <int64_t>1)
    job.kind, job.item = source, fl_bytes_of(source)
    job.work = <double>job.rows * job.places.cols * (taps * 150 + 200)
    return 0


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, indices."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = (job.rows + job.group - 1) // job.group
    job.x, job.out, job.at = <const char *>operands[0], <char *>operands[1], <int64_t *>operands[2]
    parallel(task, &job, tasks, workers(tasks, job.work))
    return 0


include "made/pool_places.pxi"
