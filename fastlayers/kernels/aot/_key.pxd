"""The key by which a program knows arrays that it was bound to."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy
cimport numpy as cnp


cdef inline int64_t write_key(PyObject **values, int count, const char *by_value, int64_t largest, char *to, int64_t room, bint plain) noexcept:
    """Writes the key that binds arrays: dtypes, shapes, and the values of those that are `by_value`. Returns its length, even
    beyond `room`; -1 for what is no array, or, if only `plain` ones will do, none that a program takes as it is."""
    cdef int64_t at = 0, nbytes, word
    cdef cnp.ndarray array
    cdef int i, ndim
    for i in range(count):
        if values[i] == NULL or not cnp.PyArray_CheckExact(<object>values[i]):
            return -1
        array = <cnp.ndarray>values[i]
        if (plain or by_value[i]) and not cnp.PyArray_ISCARRAY_RO(array):
            return -1
        ndim = cnp.PyArray_NDIM(array)
        nbytes = ndim * sizeof(cnp.npy_intp)
        if at + 8 + nbytes <= room:
            word = cnp.PyArray_TYPE(array) | ndim << 8 | <int64_t>cnp.PyArray_ITEMSIZE(array) << 16
            memcpy(to + at, &word, 8)
            if ndim:  # a scalar's sizes are at no address
                memcpy(to + at + 8, cnp.PyArray_DIMS(array), nbytes)
        at += 8 + nbytes
        if by_value[i] and cnp.PyArray_SIZE(array) <= largest:
            nbytes = cnp.PyArray_NBYTES(array)
            if at + nbytes <= room:
                memcpy(to + at, cnp.PyArray_DATA(array), nbytes)
            at += nbytes
    return at
