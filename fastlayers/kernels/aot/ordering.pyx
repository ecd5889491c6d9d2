"""The largest or least elements of any dtype with their positions, positions of extremes, and reductions of integers and float64, along
the middle of three axes; different elements. Tasks are slices, cut by shapes alone. See csrc/topk.h, csrc/folds.h and csrc/argmax.h."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._dtypes cimport fl_bytes_of
from ._engine cimport alloc, parallel, release, with_scratch, workers

from ...errors import UnsupportedError

cnp.import_array()

cdef extern from "csrc/topk.h" nogil:
    int64_t fl_topk_room(int64_t n, int64_t k)
    void fl_topk(int kind, const void *x, int64_t n, int64_t inner, int64_t k, int least, void *out, int64_t *at, void *scratch)

cdef extern from "csrc/folds.h" nogil:
    void fl_fold(int op, int kind, const void *x, void *out, int64_t n, int64_t inner)
    void fl_place(int kind, const void *x, int64_t *out, int64_t n, int64_t inner, int least, int last)

cdef extern from "csrc/argmax.h" nogil:
    void fl_argmax_row(const float *x, int64_t *out, int64_t n, int least)
    void fl_argmax_pairs(const float *x, int64_t *out, int64_t rows, int least)
    void fl_argmax_columns(const float *x, int64_t *out, int64_t n, int64_t inner, int least)

cdef extern from "csrc/different.h" nogil:
    int64_t fl_different_room(int kind, int item, int64_t n)
    int64_t fl_different(int kind, int item, const char *x, int64_t n, int ordered, char *out, int64_t *first, int64_t *which, int64_t *counts,
                         char *scratch)

cdef enum:
    TASK = 16384  # elements of a task, or one slice where that is more


ctypedef struct Job:
    const char *x
    char *out
    int64_t *at
    char *scratch
    int64_t outer, n, inner, k, slices, tasks
    int64_t room               # bytes of scratch for one worker
    int op, kind, item, least, last
    double work


cdef void plan_slices(Job *job, int64_t outer, int64_t n, int64_t inner, int kind, double cost) noexcept:
    job.outer, job.n, job.inner, job.kind, job.item = outer if inner else 0, n, inner, kind, fl_bytes_of(kind)
    job.slices = max(TASK // max(n * inner, <int64_t>1), <int64_t>1)
    job.tasks = (job.outer + job.slices - 1) // job.slices
    job.work = cost * outer * n * inner


# ---- the largest ----

cdef void topk_task(void *context, int64_t number, int worker) noexcept nogil:
    """Some columns of one slice, or of some slices."""
    cdef const Job *job = <const Job *>context
    cdef int64_t column, slice, i
    for column in range(number * job.slices, min((number + 1) * job.slices, job.outer * job.inner)):
        slice, i = column // job.inner, column % job.inner
        fl_topk(job.kind, job.x + (slice * job.n * job.inner + i) * job.item, job.n, job.inner, job.k, job.least,
                job.out + (slice * job.k * job.inner + i) * job.item, job.at + slice * job.k * job.inner + i,
                job.scratch + worker * job.room)


cdef int plan_topk(Job *job, const cnp.npy_intp *x, const cnp.npy_intp *out, int source, bint reverse) except -1:
    """The k largest x[o, n, i] over n (the least if `reverse`) and their n, the best first; of equals the first comes first, and NaN is
    more than every number. `source`: the dtype, a number of table.KINDS."""
    cdef int64_t k = out[1]
    plan_slices(job, x[0], x[1], x[2], source, 100)
    if job.n >= <int64_t>1 << 32:
        raise UnsupportedError(f"topk: an axis of {job.n} elements: expected less than 2^32")
    job.k, job.least = k, reverse
    job.slices = max(TASK // max(job.n, <int64_t>1), <int64_t>1)  # columns
    job.tasks = (job.outer * job.inner + job.slices - 1) // job.slices if k else 0
    job.room = (2 * (16 if job.item == 8 else 8) * fl_topk_room(job.n, k) + 63) // 64 * 64
    return 0


cdef int run_topk(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, indices."""
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out, job.at = <const char *>operands[0], <char *>operands[1], <int64_t *>operands[2]
    return with_scratch(topk_task, &job, &job.scratch, job.room, job.tasks, job.work)


# ---- where the largest is ----

cdef void place_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t slice
    for slice in range(number * job.slices, min(job.outer, (number + 1) * job.slices)):
        fl_place(job.kind, job.x + slice * job.n * job.inner * job.item, job.at + slice * job.inner, job.n, job.inner, job.least, job.last)


cdef void plan_arg_extreme(Job *job, const cnp.npy_intp *x, int source, bint reverse, bint last) noexcept:
    """out[o, i] = the n, of at least one, of the largest x[o, n, i] (the least if `reverse`): the first of equals, or of NaN, or the last.
    `source`: the dtype, a number of table.KINDS, but not float16 or bool."""
    plan_slices(job, x[0], x[1], x[2], source, 100)
    job.least, job.last = reverse, last


cdef int run_arg_extreme(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.at = <const char *>operands[0], <int64_t *>operands[1]
    parallel(place_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


# ---- the same of float32, the first of equals ----

cdef void argmax_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef const float *x = <const float *>job.x
    cdef int64_t slice, first = number * job.slices, last = min(job.outer, first + job.slices)
    if job.n == 2 and job.inner == 1:
        fl_argmax_pairs(x + 2 * first, job.at + first, last - first, job.least)
        return
    for slice in range(first, last):
        if job.inner == 1:
            fl_argmax_row(x + slice * job.n, job.at + slice, job.n, job.least)
        else:
            fl_argmax_columns(x + slice * job.n * job.inner, job.at + slice * job.inner, job.n, job.inner, job.least)


cdef void plan_argmax(Job *job, const cnp.npy_intp *x, bint reverse) noexcept:
    plan_slices(job, x[0], x[1], x[2], 0, 80)
    job.least = reverse


cdef int run_argmax(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.at = <const char *>operands[0], <int64_t *>operands[1]
    parallel(argmax_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


# ---- reductions ----

cdef void fold_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t slice
    for slice in range(number * job.slices, min(job.outer, (number + 1) * job.slices)):
        fl_fold(job.op, job.kind, job.x + slice * job.n * job.inner * job.item, job.out + slice * job.inner * job.item, job.n, job.inner)


cdef void plan_fold(Job *job, const cnp.npy_intp *x, int op, int source) noexcept:
    """As `reduce`, but for log_sum_exp, of integers, booleans (the extremes) and float64, as `source` (table.KINDS) says. Integers are
    summed in 64 bits, and a mean of them is cut off toward 0."""
    plan_slices(job, x[0], x[1], x[2], source, 60)
    job.op = op


cdef int run_fold(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.out = <const char *>operands[0], <char *>operands[1]
    parallel(fold_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


# ---- different elements ----

cdef int plan_unique(Job *job, int64_t x, int source, bint mode) except -1:
    """`mode`: in order, else as they come."""
    if x >= <int64_t>1 << 32:
        raise UnsupportedError(f"unique: {x} elements: expected less than 2^32")
    job.n, job.kind, job.item, job.last = x, source, fl_bytes_of(source), mode
    job.work = 1000.0 * x
    return 0


cdef int run_unique(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, indices, inverse, counts, count; all but x and the last may be NULL."""
    cdef const Job *job = <const Job *>plan
    cdef char *scratch = <char *>alloc(fl_different_room(job.kind, job.item, job.n))
    if scratch == NULL:
        return -1
    (<int64_t *>operands[5])[0] = fl_different(job.kind, job.item, <const char *>operands[0], job.n, job.last, <char *>operands[1],
                                               <int64_t *>operands[2], <int64_t *>operands[3], <int64_t *>operands[4], scratch)
    release(scratch)
    return 0


include "made/ordering.pxi"
