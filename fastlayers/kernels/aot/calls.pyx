"""Distinguishes calls of functions, and runs those whose program is known: see `graph.eager`, which makes the programs.

Here, since a program of one small kernel takes less time than Python needs to look at five arguments.
"""

cimport numpy as cnp
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_AsTuple
from cpython.ref cimport PyObject
from libc.string cimport memcmp

import numpy as np

cnp.import_array()

cdef enum:
    MOST_PARTS = 8  # of a sequence among the plain arguments: a longer one is data
    MOST_DEPTH = 3  # of sequences in sequences
    LONG = 65536    # bytes that are compared without the GIL

cdef object FLOAT32 = np.dtype(np.float32), BOOL = np.dtype(np.bool_)


cdef bint told(list key, list arrays, object value, int depth) except -1:
    """Adds an argument to what distinguishes calls; 0 for one of a kind that they are not."""
    cdef object kind = <object>(<PyObject *>value).ob_type
    cdef cnp.ndarray array
    if kind is cnp.ndarray:
        array = value
        if depth > 1 or (array.descr is not FLOAT32 and array.descr is not BOOL):
            return 0
        key.append(array.descr)
        key.append(value.shape)
        arrays.append(value)
        return 1
    key.append(kind)
    if value is None:
        return 1
    if kind is int or kind is str or kind is bool:
        key.append(value)
        return 1
    if kind is float:
        key.append(value if value else str(value))  # zeros are equal, whatever their signs
        return 1
    if kind is not tuple and kind is not list and kind is not dict:
        return 0
    if len(value) > MOST_PARTS or depth == MOST_DEPTH:
        return 0
    key.append(len(value))
    if kind is dict:
        key.extend(value)
        value = value.values()
    for part in value:
        if not told(key, arrays, part, depth + 1):
            return 0
    return 1


def key_of(function, tuple args, dict kwargs):
    """By what a call is known: the function, its arrays' shapes and dtypes, all other arguments and their types; and the arrays.

    None for a call without arrays of float32 or booleans, and with an argument that is neither such an array nor plain data.
    """
    cdef list key = [function], arrays = []
    for value in args:
        if not told(key, arrays, value, 0):
            return None
    for name, value in kwargs.items():
        key.append(name)
        if not told(key, arrays, value, 0):
            return None
    return (PyList_AsTuple(key), PyList_AsTuple(arrays)) if arrays else None


cdef tuple left(tuple arrays, tuple constants):
    """The arrays but for those at some positions, if these hold the values, bit for bit, that a program was made with; else None.

    `constants` are pairs of a position and a contiguous copy, of an array of the same shape and dtype.
    """
    cdef list rest = list(arrays)
    cdef cnp.ndarray given, kept
    cdef const void *a
    cdef const void *b
    cdef size_t size
    cdef int differ
    for pair in reversed(constants):
        given, kept = rest.pop(<Py_ssize_t>(<tuple>pair)[0]), (<tuple>pair)[1]
        if not cnp.PyArray_IS_C_CONTIGUOUS(given):
            return None
        a, b, size = cnp.PyArray_DATA(given), cnp.PyArray_DATA(kept), cnp.PyArray_NBYTES(given)
        if size < LONG:
            differ = memcmp(a, b, size)
        else:
            with nogil:
                differ = memcmp(a, b, size)
        if differ:
            return None
    return PyList_AsTuple(rest)


def quick(dict runners, function, tuple args, dict kwargs):
    """The result of a call if there is a program for its sizes; None if there is none yet, NotImplemented if there can be none.

    `runners` has by the key of a call None, or its plans (see `graph.eager.Plan`): one, or several that were made with
    other values of some of the arrays.
    """
    found = key_of(function, args, kwargs)
    if found is None:
        return NotImplemented
    cdef PyObject *entry = PyDict_GetItem(runners, (<tuple>found)[0])
    if entry == NULL:
        return None
    if <object>entry is None:
        return NotImplemented
    cdef tuple arrays = (<tuple>found)[1]
    for plan in <tuple><object>entry:
        constants = (<tuple>plan)[2]
        given = arrays if constants is None else left(arrays, <tuple>constants)
        if given is not None:
            results = (<tuple>plan)[0].call(given)
            if results is None:
                return None
            return (<tuple>results)[0] if (<tuple>plan)[1] else results
    return None
