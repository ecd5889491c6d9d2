"""Adaptive pooling: bin i of an axis reaches from floor(i * in / out) to ceil((i + 1) * in / out). Where all bins are alike it is pooling.

A task makes rows of bins of one image (channels-last), or all bins of some planes.
"""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport fl_bins, fl_kernels, level, need, with_scratch
from ._space cimport rounded
from ._step cimport Kept, make_step, run_plan
from .pooling cimport pooling

cnp.import_array()

cdef enum:
    MEAN = 1          # a number of table.REDUCE; the other is the maximum
    TASK = 1 << 15    # values read by one task, about


cdef struct Job:
    const fl_kernels *level
    const float *x
    float *out
    fl_bins call
    int64_t images, x_image, out_image, nrows   # nrows: rows of bins of an image
    int64_t images_each, rows_each, bands, tasks
    size_t scratch
    char *memory
    double work


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t image = number // job.bands * job.images_each, last = min(job.images, image + job.images_each)
    cdef int64_t first = number % job.bands * job.rows_each, end = min(job.nrows, first + job.rows_each)
    cdef fl_bins p = job.call
    p.line = <float *>(job.memory + worker * job.scratch)
    while image < last:
        job.level.bins(&p, job.x + image * job.x_image, job.out + image * job.out_image + first * p.nx * p.c, first, end)
        image += 1


cdef int run_adaptive(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out = <const float *>operands[0], <float *>operands[1]
    return with_scratch(task, &job, &job.memory, job.scratch, job.tasks, job.work)


cdef int64_t *lay(int64_t *to, int64_t size, int64_t out) noexcept nogil:
    """Writes the bins of an axis; what follows them."""
    cdef int64_t i
    for i in range(out):
        to[2 * i], to[2 * i + 1] = i * size // out, ((i + 1) * size + out - 1) // out
    return to + 2 * out


cdef object adaptive(bint as_step, x, out, tuple in_shape, tuple out_shape, int op, bint channels_last):
    cdef Job job
    cdef Kept kept
    cdef void *operands[2]
    cdef int64_t space = 1 if channels_last else 2, n = in_shape[0], c = in_shape[4 if channels_last else 1], axis, row
    cdef int64_t sizes[3]
    cdef int64_t outs[3]
    for axis in range(3):
        sizes[axis], outs[axis] = in_shape[space + axis], out_shape[space + axis]
    if all([outs[axis] > 0 and sizes[axis] > 0 and sizes[axis] % outs[axis] == 0 for axis in range(3)]):
        kernel = tuple([sizes[axis] // outs[axis] for axis in range(3)])
        return pooling(as_step, x, out, in_shape, out_shape, kernel, kernel, (1, 1, 1), (0,) * 6, 0, 1, channels_last, op == MEAN)
    kept = Kept(None)
    kept.block = need((outs[0] + outs[1] + outs[2] + 1) * 2 * sizeof(int64_t), "adaptive pooling")
    job.level = level()
    job.call.z = <int64_t *>kept.block
    job.call.y = lay(<int64_t *>kept.block, sizes[0], outs[0])
    job.call.x = lay(<int64_t *>job.call.y, sizes[1], outs[1])
    lay(<int64_t *>job.call.x, sizes[2], outs[2])
    job.call.ny, job.call.nx, job.call.cols, job.call.c = outs[1], outs[2], sizes[2], c if channels_last else 1
    job.call.row = sizes[2] * job.call.c
    job.call.plane, job.call.average = sizes[1] * job.call.row, op == MEAN
    job.images, job.nrows = n * (1 if channels_last else c), outs[0] * outs[1]
    job.x_image, job.out_image = sizes[0] * job.call.plane, job.nrows * outs[2] * job.call.c
    row = max(job.x_image // max(job.nrows, <int64_t>1), <int64_t>1)  # values read for a row of bins, about
    job.rows_each = max(min(job.nrows, TASK // row), <int64_t>1)
    job.images_each = max(TASK // max(job.x_image, <int64_t>1), <int64_t>1) if job.rows_each == job.nrows else 1
    job.bands = (job.nrows + job.rows_each - 1) // job.rows_each
    job.tasks = (job.images + job.images_each - 1) // job.images_each * job.bands if job.images * job.out_image > 0 else 0
    job.scratch = rounded(job.call.row * sizeof(float))
    job.work = 20.0 * job.images * (job.x_image + job.out_image)
    if as_step:
        return make_step(run_adaptive, &job, sizeof(Job), 2, job.work, kept)
    operands[0], operands[1] = cnp.PyArray_DATA(<cnp.ndarray>x), cnp.PyArray_DATA(<cnp.ndarray>out)
    run_plan(run_adaptive, &job, operands, job.work, "adaptive pooling")
    return None


def adaptive_pool(cnp.ndarray x, cnp.ndarray out, int op, bint channels_last):
    """out = the mean or the largest number of each bin (op of table.REDUCE): floor(i * in / out) to ceil((i + 1) * in / out)."""
    adaptive(False, x, out, (<object>x).shape, (<object>out).shape, op, channels_last)


def adaptive_pool_step(tuple x, tuple out, int op, bint channels_last):
    """The step of `adaptive_pool`: shapes instead of arrays."""
    return adaptive(True, None, None, x, out, op, channels_last)
