"""Non-maximum suppression. A task is one class of one image; see csrc/suppression.h."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport alloc, parallel, release, workers

from ...errors import ShapeError

cnp.import_array()

cdef extern from "csrc/suppression.h" nogil:
    void fl_corners(const float *boxes, int64_t n, int centred, float *to)
    int64_t fl_suppression_scratch(int64_t n, int64_t most)
    int64_t fl_suppressed(const float *sides, const float *scores, int64_t n, int64_t most, float threshold, int above, float least,
                          int64_t *found, char *scratch)


ctypedef struct Job:
    const float *boxes
    const float *scores
    int64_t *out
    int64_t images, classes, n, most
    float threshold, least
    bint above, centred
    float *sides        # of all images
    int64_t *counts     # of all tasks
    int64_t *found      # `most` of every task
    char *scratch
    int64_t room        # bytes of scratch for one worker
    double work


cdef void corners_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    fl_corners(job.boxes + number * job.n * 4, job.n, job.centred, job.sides + number * job.n * 5)


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    job.counts[number] = fl_suppressed(job.sides + number // job.classes * job.n * 5, job.scores + number * job.n, job.n, job.most,
                                       job.threshold, job.above, job.least, job.found + number * job.most, job.scratch + worker * job.room)


cdef int plan_suppress(Job *job, tuple boxes, tuple scores, tuple out, int64_t size, double value, least, bint mode) except -1:
    job.images, job.classes, job.n = scores
    job.most = max(min(size, job.n), <int64_t>0)
    if boxes != (job.images, job.n, 4) or out != (job.images * job.classes * job.most, 3) or job.n >= <int64_t>1 << 32:
        raise ShapeError(f"suppress: boxes have shape {boxes}, scores {scores}, out {out}: expected (images, count, 4), "
                         f"(images, classes, count) and ({job.images * job.classes * job.most}, 3)")
    job.threshold, job.above, job.least, job.centred = value, least is not None, -INFINITY if least is None else least, mode
    job.room = (fl_suppression_scratch(job.n, job.most) + 63) // 64 * 64
    job.work = <double>job.images * job.classes * job.n * (300 + 4.0 * min(job.most, <int64_t>300))
    return 0


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    """Operands: boxes, scores, out, count."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = job.images * job.classes, t, i, at = 0
    cdef int threads = workers(tasks, job.work)
    job.boxes, job.scores, job.out = <const float *>operands[0], <const float *>operands[1], <int64_t *>operands[2]
    (<int64_t *>operands[3])[0] = 0
    if tasks == 0 or job.most == 0:
        return 0
    job.sides = <float *>alloc(job.images * job.n * 20)
    job.counts = <int64_t *>alloc(tasks * 8)
    job.found = <int64_t *>alloc(tasks * job.most * 8)
    job.scratch = <char *>alloc(threads * job.room)
    if job.sides != NULL and job.counts != NULL and job.found != NULL and job.scratch != NULL:
        parallel(corners_task, &job, job.images, min(threads, <int>min(job.images, <int64_t>1024)))
        parallel(task, &job, tasks, threads)
        for t in range(tasks):
            for i in range(job.counts[t]):
                job.out[3 * at], job.out[3 * at + 1], job.out[3 * at + 2] = t // job.classes, t % job.classes, job.found[t * job.most + i]
                at += 1
        (<int64_t *>operands[3])[0] = at
    else:
        at = -1
    release(job.sides)
    release(job.counts)
    release(job.found)
    release(job.scratch)
    return -1 if at < 0 else 0


include "made/suppression.pxi"
