"""Classes at the leaves of a binary tree: the probability of one, of all, and the most probable. Tasks are rows of x."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport fl_kernels, fl_tree_place, level, parallel, with_scratch, workers
from ._fit cimport Fit, fit_of, last_size
from ._once cimport fl_once, fl_row
from ._step cimport Step, make_step, out_of_range, run_plan

from ...errors import ShapeError

cnp.import_array()

cdef Fit PATH = fit_of("tree_log_prob"), SPREAD = fit_of("tree_distribution"), BEST = fit_of("tree_argmax")

cdef double NODE_COST = 40      # operations a node next to its product, see `workers`
cdef enum:
    PATH_TASK = 16              # rows of a task that follow one path each


ctypedef struct Tree:
    const fl_kernels *level
    const float *x              # or sums
    const float *weight
    const float *bias
    const int64_t *targets
    const int64_t *starts
    const int64_t *points
    const int64_t *codes
    const int64_t *order
    const int64_t *left
    const int64_t *right
    int64_t *ids
    float *out
    int64_t rows, d, m, n, depth, tasks
    size_t scratch              # bytes per worker
    char *memory
    double work


# ---- the probability of one class ------------------------------------------------------------------------------------------


cdef void path_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Tree *job = <const Tree *>context
    cdef int64_t row, target, start
    for row in range(number * PATH_TASK, min(job.rows, (number + 1) * PATH_TASK)):
        target = fl_row(fl_once(job.targets + row), job.n)
        start = job.starts[target]
        job.out[row] = job.level.tree_path(job.x + row * job.d, job.weight, job.bias, job.d, job.points + start, job.codes + start,
                                           job.starts[target + 1] - start)


cdef void plan_path(Tree *job, int64_t rows, int64_t d, int64_t n, int64_t nodes) noexcept:
    job.level = level()
    job.rows, job.d, job.n = rows, d, n
    job.tasks = (rows + PATH_TASK - 1) // PATH_TASK
    job.work = rows * (<double>nodes / max(n, <int64_t>1)) * (2.0 * d + NODE_COST)


cdef int run_path(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, weight, bias or NULL, targets, starts, points, codes, out. Returns -2 for a target out of range."""
    cdef Tree job = (<const Tree *>plan)[0]
    cdef int64_t i
    job.x, job.weight, job.bias = <const float *>operands[0], <const float *>operands[1], <const float *>operands[2]
    job.targets, job.starts = <const int64_t *>operands[3], <const int64_t *>operands[4]
    job.points, job.codes, job.out = <const int64_t *>operands[5], <const int64_t *>operands[6], <float *>operands[7]
    for i in range(job.rows):
        if not 0 <= job.targets[i] < job.n:
            return -2
    parallel(path_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


def tree_log_prob(cnp.ndarray x__bd, cnp.ndarray weight__md, bias__m, cnp.ndarray targets__b, cnp.ndarray starts__s,
                  cnp.ndarray points__p, cnp.ndarray codes__p, cnp.ndarray out__b):
    """out[b] = log of the probability of class targets[b]: the sum over its path of the log of the side taken; ShapeError if there
    is no such class."""
    cdef Tree job
    cdef void *operands[8]
    PATH.check(NULL, (x__bd, weight__md, bias__m, targets__b, starts__s, points__p, codes__p, out__b), 0)
    plan_path(&job, cnp.PyArray_DIM(x__bd, 0), cnp.PyArray_DIM(x__bd, 1), cnp.PyArray_DIM(starts__s, 0) - 1,
              cnp.PyArray_DIM(points__p, 0))
    operands[0], operands[1] = cnp.PyArray_DATA(x__bd), cnp.PyArray_DATA(weight__md)
    operands[2] = NULL if bias__m is None else cnp.PyArray_DATA(<cnp.ndarray>bias__m)
    operands[3], operands[4] = cnp.PyArray_DATA(targets__b), cnp.PyArray_DATA(starts__s)
    operands[5], operands[6], operands[7] = cnp.PyArray_DATA(points__p), cnp.PyArray_DATA(codes__p), cnp.PyArray_DATA(out__b)
    try:
        run_plan(run_path, &job, operands, job.work, "tree_log_prob")
    except ShapeError:
        raise out_of_range("tree_log_prob: class", <const int64_t *>operands[3], job.rows, 0, job.n - 1) from None


def tree_log_prob_step(tuple x__bd, tuple weight__md, bias__m, tuple targets__b, tuple starts__s, tuple points__p, tuple codes__p,
                       tuple out__b):
    """The step of `tree_log_prob`: shapes instead of arrays."""
    cdef Tree job
    cdef Step step
    PATH.check(NULL, (x__bd, weight__md, bias__m, targets__b, starts__s, points__p, codes__p, out__b), 0)
    plan_path(&job, x__bd[0], x__bd[1], starts__s[0] - 1, points__p[0])
    step = make_step(run_path, &job, sizeof(Tree), 8, job.work, None)
    step.indices = (3, job.rows, 0, job.n - 1)
    return step


# ---- all classes -----------------------------------------------------------------------------------------------------------


cdef void spread_task(void *context, int64_t row, int worker) noexcept nogil:
    cdef const Tree *job = <const Tree *>context
    job.level.tree_spread(job.x + row * job.m, job.order, job.left, job.right, job.m, <double *>(job.memory + worker * job.scratch),
                          job.out + row * (job.m + 1))


cdef int plan_tree_distribution(Tree *job, tuple given, const cnp.npy_intp *x) except -1:
    cdef int64_t rows = x[0], m = x[1], classes = last_size(given[0]) + 1
    SPREAD.check(&classes, given, 0)
    job.level = level()
    job.rows, job.m, job.tasks = rows, m, rows
    job.scratch = (m * sizeof(double) + 127) // 64 * 64
    job.work = NODE_COST * rows * m
    return 0


cdef int run_tree_distribution(const void *plan, void *const *operands) noexcept nogil:
    """Operands: sums, order, left, right, out."""
    cdef Tree job = (<const Tree *>plan)[0]
    job.x, job.order = <const float *>operands[0], <const int64_t *>operands[1]
    job.left, job.right, job.out = <const int64_t *>operands[2], <const int64_t *>operands[3], <float *>operands[4]
    return with_scratch(spread_task, &job, &job.memory, job.scratch, job.tasks, job.work)


# ---- the most probable class ---------------------------------------------------------------------------------------------------


cdef void best_task(void *context, int64_t row, int worker) noexcept nogil:
    cdef const Tree *job = <const Tree *>context
    job.ids[row] = job.level.tree_best(job.x + row * job.d, job.weight, job.bias, job.d, job.left, job.right,
                                       job.order[0] if job.m else -1, <fl_tree_place *>(job.memory + worker * job.scratch),
                                       job.out + row)


cdef int plan_tree_argmax(Tree *job, tuple given, const cnp.npy_intp *x, const cnp.npy_intp *order, int64_t depth) except -1:
    cdef int64_t rows = x[0], d = x[1], m = order[0]
    BEST.check(NULL, given, 0)
    job.level = level()
    job.rows, job.d, job.m, job.depth, job.tasks = rows, d, m, depth, rows
    job.scratch = ((depth + 2) * sizeof(fl_tree_place) + 127) // 64 * 64
    job.work = 4.0 * rows * (depth + 1) * (2.0 * d + NODE_COST)  # more paths than one are looked at
    return 0


cdef int run_tree_argmax(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, weight, bias or NULL, order, left, right, ids, out."""
    cdef Tree job = (<const Tree *>plan)[0]
    job.x, job.weight, job.bias = <const float *>operands[0], <const float *>operands[1], <const float *>operands[2]
    job.order, job.left = <const int64_t *>operands[3], <const int64_t *>operands[4]
    job.right, job.ids, job.out = <const int64_t *>operands[5], <int64_t *>operands[6], <float *>operands[7]
    return with_scratch(best_task, &job, &job.memory, job.scratch, job.tasks, job.work)


include "made/tree.pxi"
