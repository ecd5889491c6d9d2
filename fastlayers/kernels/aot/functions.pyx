"""Functions of one array of any dtype that have no kernel of vectors: see csrc/functions.h. Tasks are runs of the flat array."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._dtypes cimport fl_bytes_of
from ._engine cimport FL_F_IS_NEGATIVE_INF, FL_F_TAN, parallel, workers


cnp.import_array()

cdef extern from "csrc/functions.h":
    void fl_function_of(int op, int kind, const void *x, void *out, int64_t n) noexcept nogil

cdef enum:
    RUN = 16384  # items of a task


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


cdef void plan_function(Job *job, int64_t out, int op, int source) noexcept:
    job.op, job.source, job.size = op, source, out
    job.itemsize = fl_bytes_of(source)
    job.out_itemsize = 1 if op <= FL_F_IS_NEGATIVE_INF else job.itemsize
    job.work = <double>out * (1000 if op >= FL_F_TAN else 10)


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = (job.size + RUN - 1) // RUN
    job.x, job.out = <const char *>operands[0], <char *>operands[1]
    parallel(task, &job, tasks, workers(tasks, job.work))
    return 0


include "made/functions.pxi"
