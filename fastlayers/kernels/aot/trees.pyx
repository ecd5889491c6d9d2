"""Ensembles of decision trees. Tasks are blocks of rows; see csrc/trees.h for the walk."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

from ._engine cimport level, need, release, with_scratch
from ._step cimport make_step, run_plan

from ...errors import DTypeError
from ..tree_layout import check_fit, trees_of
from ..tree_tops import tops_of

cnp.import_array()

cdef extern from "csrc/trees_types.h" nogil:
    enum:
        FL_TREE_AVERAGE
        FL_TREE_SUM
        FL_TREE_LANES
        FL_TREE_ROWS
    ctypedef void (*fl_tree_tops_fn)(const void *p, const float *x, int64_t rows, int nan, uint8_t *ways) noexcept nogil
    fl_tree_tops_fn fl_tree_tops
    ctypedef struct fl_trees:
        const void *nodes
        const void *weight
        const int32_t *missing
        const int32_t *roots
        const int32_t *depth
        const int32_t *target
        const int64_t *start
        int64_t trees, targets, columns, steps
        int kind, op
        fl_tree_tops_fn tops
        const uint8_t *top_feature
        const float *top_split
        const uint64_t *top_missing
        const int32_t *exits
        int64_t storeys, used
    ctypedef struct fl_f32_trees_node:
        pass
    ctypedef struct fl_f64_trees_node:
        pass
    void fl_f32_trees_rows(const fl_trees *p, const float *x, int64_t rows, double *sums, char *seen)
    void fl_f64_trees_rows(const fl_trees *p, const double *x, int64_t rows, double *sums, char *seen)
    void fl_f32_trees_lay(void *to, int64_t nodes, int64_t leaves, const int32_t *feature, const void *split, const int32_t *child)
    void fl_f64_trees_lay(void *to, int64_t nodes, int64_t leaves, const int32_t *feature, const void *split, const int32_t *child)

cdef enum:
    SUMS = 8192        # of a task, about
    FEW_ROWS = 64      # of a task at least, where there are as many
    MANY_TASKS = 32
cdef double STEP_COST = 200   # operations of a row's step, see `workers`: about 2 ns


ctypedef struct Job:
    fl_trees trees
    bint wide                 # double
    const char *x
    const double *base
    char *out
    int64_t m, rows, tasks    # rows of a task
    size_t scratch            # bytes per worker
    char *memory
    double work


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t first = number * job.rows, n = job.trees.targets, i, j
    cdef int64_t rows = min(job.rows, job.m - first)
    cdef double *sums = <double *>(job.memory + worker * job.scratch)
    cdef char *seen = NULL
    cdef double total
    memset(sums, 0, rows * n * sizeof(double))
    if job.trees.op > FL_TREE_SUM:
        seen = <char *>(sums + job.rows * n)
        memset(seen, 0, rows * n)
    if job.wide:
        fl_f64_trees_rows(&job.trees, <const double *>job.x + first * job.trees.columns, rows, sums, seen)
    else:
        fl_f32_trees_rows(&job.trees, <const float *>job.x + first * job.trees.columns, rows, sums, seen)
    for i in range(rows):
        for j in range(n):
            total = sums[i * n + j]
            if job.trees.op == FL_TREE_AVERAGE and job.trees.trees:
                total = total / job.trees.trees
            if job.base != NULL:
                total += job.base[j]
            if job.wide:
                (<double *>job.out)[(first + i) * n + j] = total
            else:
                (<float *>job.out)[(first + i) * n + j] = <float>total


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, base or NULL, out."""
    cdef Job job = (<const Job *>plan)[0]
    job.x, job.base, job.out = <const char *>operands[0], <const double *>operands[1], <char *>operands[2]
    return with_scratch(task, &job, &job.memory, job.scratch, job.tasks, job.work)


@cython.final
cdef class PackedTrees:
    """Trees as the kernel walks them. Immutable; may be used by any number of threads at once."""
    cdef fl_trees trees
    cdef char *nodes
    cdef int32_t *missing
    cdef bint wide
    cdef readonly object layout      # holds the other arrays
    cdef object tops
    cdef readonly int64_t nbytes

    def __dealloc__(self):
        release(self.nodes)
        release(self.missing)

    cdef int plan(self, Job *job, x, base, out, int op) except -1:
        cdef int64_t n = self.trees.targets
        check_fit(self.layout, x, base, out)
        job.trees, job.wide = self.trees, self.wide
        job.trees.op, job.trees.columns = op, x[1]
        if self.tops is not None:
            job.trees.tops = fl_tree_tops if level().width == 16 else NULL
        job.m = x[0]
        # Whole groups of rows: a row's bits do not depend on how many. Every task reads all trees, which the next cache may not hold, so
        # tasks are large once they are many.
        job.rows = min(max(job.m // MANY_TASKS // FL_TREE_LANES * FL_TREE_LANES, <int64_t>FEW_ROWS), <int64_t>FL_TREE_ROWS)
        job.rows = min(max(SUMS // max(n, <int64_t>1) // FL_TREE_LANES * FL_TREE_LANES, <int64_t>FL_TREE_LANES), job.rows)
        job.tasks = (job.m + job.rows - 1) // job.rows
        job.scratch = (job.rows * n * (sizeof(double) + 1) + 127) // 64 * 64
        job.work = STEP_COST * job.m * (self.trees.steps + self.trees.trees + n)
        return 0


def tree_ensemble_pack(cnp.ndarray roots, cnp.ndarray feature, cnp.ndarray split, cnp.ndarray modes, cnp.ndarray yes, cnp.ndarray no,
                       cnp.ndarray missing, members, cnp.ndarray starts, cnp.ndarray targets, cnp.ndarray weight, int64_t size):
    """The trees, checked and laid out; see `tree_layout.trees_of`. `size`: the number of targets."""
    cdef PackedTrees packed = PackedTrees.__new__(PackedTrees)
    layout = trees_of(roots, feature, split, modes, yes, no, missing, members, starts, targets, weight, size)
    cdef cnp.ndarray features = layout.feature, splits = layout.split, child = layout.child, nan = layout.missing
    cdef cnp.ndarray first = layout.start, ids = layout.target, weights = layout.weight, tops = layout.roots, depth = layout.depth
    cdef int64_t nodes = cnp.PyArray_DIM(features, 0), leaves = cnp.PyArray_DIM(first, 0) - 1, i
    cdef size_t node
    nothing = features[:0]
    # What the nodes below hold is not retained twice.
    packed.layout = layout._replace(feature=nothing, split=nothing, child=nothing, missing=nothing)
    packed.wide = cnp.PyArray_TYPE(splits) == cnp.NPY_FLOAT64
    node = sizeof(fl_f64_trees_node) if packed.wide else sizeof(fl_f32_trees_node)
    packed.nodes = <char *>need((nodes + leaves + 1) * node, "tree_ensemble_pack")
    packed.missing = <int32_t *>need((nodes + leaves + 1) * sizeof(int32_t), "tree_ensemble_pack")
    packed.nbytes = (nodes + leaves + 1) * (node + sizeof(int32_t)) + packed.layout.nbytes
    if packed.wide:
        fl_f64_trees_lay(packed.nodes, nodes, leaves, <const int32_t *>cnp.PyArray_DATA(features), cnp.PyArray_DATA(splits),
                         <const int32_t *>cnp.PyArray_DATA(child))
    else:
        fl_f32_trees_lay(packed.nodes, nodes, leaves, <const int32_t *>cnp.PyArray_DATA(features), cnp.PyArray_DATA(splits),
                         <const int32_t *>cnp.PyArray_DATA(child))
    for i in range(leaves):
        packed.missing[leaves - 1 - i] = <int32_t>(-1 - i)
    memcpy(packed.missing + leaves, cnp.PyArray_DATA(nan), nodes * sizeof(int32_t))
    packed.trees.nodes, packed.trees.missing = packed.nodes + leaves * node, packed.missing + leaves
    packed.trees.weight, packed.trees.target = cnp.PyArray_DATA(weights), <const int32_t *>cnp.PyArray_DATA(ids)
    packed.trees.start = <const int64_t *>cnp.PyArray_DATA(first)
    packed.trees.roots, packed.trees.depth = <const int32_t *>cnp.PyArray_DATA(tops), <const int32_t *>cnp.PyArray_DATA(depth)
    packed.trees.trees, packed.trees.targets = cnp.PyArray_DIM(tops, 0), size
    packed.trees.steps, packed.trees.kind = int(layout.depth.sum(dtype="int64")), layout.kind
    packed.tops = tops_of(layout) if level().width == 16 else None
    if packed.tops is not None:
        keep_tops(packed, packed.tops.feature, packed.tops.split, packed.tops.missing, packed.tops.exits)
    return packed


cdef void keep_tops(PackedTrees packed, cnp.ndarray feature, cnp.ndarray split, cnp.ndarray missing, cnp.ndarray exits):
    packed.trees.top_feature = <const uint8_t *>cnp.PyArray_DATA(feature)
    packed.trees.top_split = <const float *>cnp.PyArray_DATA(split)
    packed.trees.top_missing = <const uint64_t *>cnp.PyArray_DATA(missing)
    packed.trees.exits = <const int32_t *>cnp.PyArray_DATA(exits)
    packed.trees.storeys, packed.trees.used = packed.tops.storeys, packed.layout.features
    packed.nbytes += packed.tops.nbytes


def tree_ensemble(cnp.ndarray x__mk, PackedTrees packed, base__n, cnp.ndarray out__mn, int op):
    """out[m, n] = base[n] + the sum, mean, least or largest (`op`) of what the leaves that row m of x reaches have for target n."""
    cdef Job job
    cdef void *operands[3]
    wanted = cnp.NPY_FLOAT64 if packed.wide else cnp.NPY_FLOAT32
    if cnp.PyArray_TYPE(x__mk) != wanted or cnp.PyArray_TYPE(out__mn) != wanted:
        raise DTypeError(f"tree_ensemble: x has dtype {x__mk.dtype}, out {out__mn.dtype}: expected {packed.layout.split.dtype}, as the trees have")
    packed.plan(&job, (<object>x__mk).shape, None if base__n is None else base__n.shape, (<object>out__mn).shape, op)
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(x__mk), NULL, cnp.PyArray_DATA(out__mn)
    if base__n is not None:
        operands[1] = cnp.PyArray_DATA(<cnp.ndarray>base__n)
    run_plan(run, &job, operands, job.work, "tree_ensemble")


def tree_ensemble_step(tuple x__mk, PackedTrees packed, base__n, tuple out__mn, int op):
    """The step of `tree_ensemble`: shapes instead of arrays."""
    cdef Job job
    packed.plan(&job, x__mk, base__n, out__mn, op)
    return make_step(run, &job, sizeof(Job), 3, job.work, packed)
