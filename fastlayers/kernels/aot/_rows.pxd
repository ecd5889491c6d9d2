"""Convolutions row by row of pixels: each is a row of the product, which has the weights as panels."""

from libc.stdint cimport int64_t

from ._conv cimport Job

# Cuts the work into tasks of `rows` x `cols` pixels, or fewer, and so many columns of the product.
cdef void cut(Job *job, int64_t images) noexcept nogil

# Cuts the work and makes the lists of runs, the plan's own memory; `leave_out`: the taps that are before or after the input in depth.
cdef int plan_rows(Job *job, int64_t images, bint residual, bint leave_out) except -1

# One task: the context is Job, with x, out, residual and scratch set.
cdef void rows_task(void *context, int64_t number, int worker) noexcept nogil
