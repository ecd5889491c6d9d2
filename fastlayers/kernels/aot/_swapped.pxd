"""Convolutions with swapped roles, of channels-first data: the weights' rows are broadcast and pixels are the panels."""

from libc.stdint cimport int64_t

from ._conv cimport Job

cdef bint swapped(int64_t k, int64_t ig, int64_t og, bint alone) noexcept nogil
cdef void plan_swapped(Job *job, int64_t images, bint residual) noexcept nogil
cdef void plan_taps(Job *job) noexcept nogil
cdef void swapped_task(void *context, int64_t number, int worker) noexcept nogil
