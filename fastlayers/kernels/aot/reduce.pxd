"""Reductions as other modules plan and run them: pooling does, where a window is the whole image."""

from libc.stdint cimport int64_t

from ._engine cimport fl_kernels

ctypedef struct Reduction:
    const fl_kernels *level
    const float *x
    float *out
    int64_t outer, n, inner
    int code
    int64_t size     # slices of [n][inner] a task, or columns of one slice
    int64_t strips   # tasks a slice
    int64_t tasks
    double work

# code: a number of table.REDUCE. Operands of the run: x [outer][n][inner], out [outer][inner].
cdef void plan_slices(Reduction *job, int64_t outer, int64_t n, int64_t inner, int code) noexcept
cdef int run_reduce(const void *plan, void *const *operands) noexcept nogil
