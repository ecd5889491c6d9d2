"""Memory of packed weights: made here, or borrowed from an array, such as a part of a mapped file that has them packed already."""

cimport numpy as cnp


cdef class Panels:
    cdef float *data
    cdef object owner        # the array that was borrowed, or None
    cdef size_t bytes


# `count` floats for `what`: those of `stored`, which must be as many, or new ones, not initialized, if it is None.
cdef Panels make_panels(size_t count, cnp.ndarray stored, str what)
