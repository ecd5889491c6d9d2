"""Strided copies as other modules plan and run them."""

from libc.stdint cimport int64_t

from ._engine cimport fl_kernels

cdef enum:
    AXES = 8

ctypedef struct Copy:
    const fl_kernels *table
    int item                       # bytes of one
    int outer                      # axes outside of the two that the level's `move` takes at once
    int64_t size[AXES]
    int64_t x_step[AXES]           # in items, as all that follows
    int64_t out_step[AXES]
    int64_t x_start, out_start
    int64_t rows, cols, x_row, x_col, out_row, out_col
    int64_t blocks                 # of rows x cols; 0 where there is nothing to do
    int64_t group, pieces          # blocks of one task and 1, or 1 and the tasks of one block
    double work

# Plans the copy of `rank` axes. At most AXES of them may be left once neighbours are merged: returns -1 where there are more.
cdef int plan_copy(Copy *plan, int rank, const int64_t *shape, const int64_t *x_steps, const int64_t *out_steps, int item) noexcept
# Operands: x, out.
cdef int run_copy(const void *plan, void *const *operands) noexcept nogil
