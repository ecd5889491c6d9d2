"""Functions of one array of any dtype that have no kernel of vectors: see csrc/functions.h. Tasks are runs of the flat array."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport parallel, workers
from ._step cimport make_step, run_plan, volume

from ..table import KINDS

cnp.import_array()

cdef extern from "csrc/functions.h":
    enum:
        FL_F_IS_NEGATIVE_INF
        FL_F_TAN
    void fl_function_of(int op, int kind, const void *x, void *out, int64_t n) noexcept nogil

cdef enum:
    RUN = 16384  # items of a task

cdef int BYTES[16]
for _name, _code in KINDS.items():
    BYTES[_code] = 1 if _name == "bool" else int(_name.lstrip("uinfloat")) // 8


ctypedef struct Job:
    const char *x
    char *out
    int op, source, itemsize, out_itemsize
    int64_t size
    double work


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t first = number * RUN
    fl_function_of(job.op, job.source, job.x + first * job.itemsize, job.out + first * job.out_itemsize, min(<int64_t>RUN, job.size - first))


cdef void plan_function(Job *job, int64_t size, int op, int source) noexcept:
    job.op, job.source, job.size = op, source, size
    job.itemsize = BYTES[source]
    job.out_itemsize = 1 if op <= FL_F_IS_NEGATIVE_INF else job.itemsize
    job.work = <double>size * (1000 if op >= FL_F_TAN else 10)


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = (job.size + RUN - 1) // RUN
    job.x, job.out = <const char *>operands[0], <char *>operands[1]
    parallel(task, &job, tasks, workers(tasks, job.work))
    return 0


def function(cnp.ndarray x, cnp.ndarray out, int op, int source):
    """out = f(x), f a number of table.FUNCTIONS, of the dtype that `source` (table.KINDS) says; tests give booleans."""
    cdef Job job
    cdef void *operands[2]
    plan_function(&job, cnp.PyArray_SIZE(out), op, source)
    operands[0], operands[1] = cnp.PyArray_DATA(x), cnp.PyArray_DATA(out)
    run_plan(run, &job, operands, job.work, "function")


def function_step(tuple x, tuple out, int op, int source):
    """The step of `function`: shapes instead of arrays."""
    cdef Job job
    plan_function(&job, volume(out), op, source)
    return make_step(run, &job, sizeof(Job), 2, job.work, None)
