"""The walk of a recurrent layer through time, the same for every kind of cell."""

from libc.stdint cimport int64_t

from ._engine cimport fl_cell, fl_kernels


# One direction: its cell, and the weights of the product that all steps need beforehand, columns in the order of the cell's R.
cdef struct Direction:
    fl_cell cell
    const float *w
    const float *bias


# A call but for its arrays. Strides are floats from one time, sequence, direction to the next.
cdef struct Walk:
    const fl_kernels *level
    const Direction *directions
    int64_t count              # of directions
    int64_t steps, batch, inputs
    int64_t hidden, outs       # sizes of c and of h, which differ with projections
    int64_t x_time, x_row
    int64_t out_time, out_row, out_direction
    bint masked                # lengths are a mask
    bint reverse               # the only direction runs backwards; of two, the second always does
    double work


# The arrays of a call; at most one of `lengths` and `mask` is there. They, `out`, the states before and after may be NULL, c0 and cn
# for cells without a c.
cdef struct Arrays:
    const float *x
    const float *h0
    const float *c0
    const int *lengths
    const unsigned char *mask  # [batch][steps], not 0: the sequence has that step
    float *out
    float *hn
    float *cn


# Runs all directions; -1 where there is no memory for scratch.
cdef int walk(const Walk *plan, const Arrays *arrays) noexcept nogil
