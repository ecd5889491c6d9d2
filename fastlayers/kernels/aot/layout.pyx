"""Changes of layout: cuts a batch of matrices into tasks for the level's `transpose`."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport RELEASE_GIL, fl_kernels, level, parallel, workers

cnp.import_array()

cdef enum:
    TASK = 1 << 15  # floats of one task: what it reads and writes fits a second-level cache
    COST = 30       # a float moved, in the operations that `workers` counts
    UNIT = 32       # pieces of a matrix begin at multiples of this many rows or columns


cdef struct Job:
    const fl_kernels *level
    const float *x
    float *out
    int64_t batch, rows, cols
    int64_t matrices  # of one task, or 1 where matrices are cut
    int64_t pieces    # tasks of one matrix, or 1


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef Job *job = <Job *>context
    cdef int64_t size = job.rows * job.cols, b, piece, start, stop
    if job.pieces == 1:
        for b in range(number * job.matrices, min(job.batch, (number + 1) * job.matrices)):
            job.level.transpose(job.x + b * size, job.cols, job.out + b * size, job.rows, job.rows, job.cols)
        return
    b, piece = number // job.pieces, number % job.pieces
    cdef int64_t units = (max(job.rows, job.cols) + UNIT - 1) // UNIT
    cdef const float *x = job.x + b * size
    cdef float *out = job.out + b * size
    start, stop = units * piece // job.pieces * UNIT, units * (piece + 1) // job.pieces * UNIT
    if job.rows >= job.cols:
        stop = min(stop, job.rows)
        job.level.transpose(x + start * job.cols, job.cols, out + start, job.rows, stop - start, job.cols)
    else:
        stop = min(stop, job.cols)
        job.level.transpose(x + start, job.cols, out + start * job.rows, job.rows, job.rows, stop - start)


def transpose(cnp.ndarray x__brc, cnp.ndarray out__bcr):
    """Swaps the last two axes: x (b, r, c) to out (b, c, r)."""
    cdef Job job
    cdef int64_t size, tasks, i
    cdef double work
    job.level = level()
    job.x, job.out = <const float *>cnp.PyArray_DATA(x__brc), <float *>cnp.PyArray_DATA(out__bcr)
    job.batch, job.rows, job.cols = cnp.PyArray_DIM(x__brc, 0), cnp.PyArray_DIM(x__brc, 1), cnp.PyArray_DIM(x__brc, 2)
    size = job.rows * job.cols
    if job.batch * size == 0:
        return
    job.pieces = (size + TASK - 1) // TASK
    job.matrices = max(<int64_t>1, TASK // size)
    tasks = job.batch * job.pieces if job.pieces > 1 else (job.batch + job.matrices - 1) // job.matrices
    work = <double>COST * job.batch * size
    if work < RELEASE_GIL:
        for i in range(tasks):
            task(&job, i, 0)
        return
    with nogil:
        parallel(task, &job, tasks, workers(tasks, work))
