"""Tells calls of functions apart, and runs those whose program is known: see `graph.eager`, which makes the programs.

Here, since a program of one small kernel takes less time than Python needs to look at five arguments.
"""

cimport numpy as cnp
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_AsTuple
from cpython.ref cimport PyObject

import numpy as np

cnp.import_array()

cdef enum:
    MOST_PARTS = 8  # of a sequence among the plain arguments: a longer one is data
    MOST_DEPTH = 3  # of sequences in sequences

cdef object FLOAT32 = np.dtype(np.float32), BOOL = np.dtype(np.bool_)


cdef bint told(list key, list arrays, object value, int depth) except -1:
    """Adds an argument to what calls are told apart by; 0 for one of a kind that they are not."""
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


def quick(dict runners, function, tuple args, dict kwargs):
    """The result of a call whose program is known for its sizes; None where none is yet, NotImplemented where there can be none.

    `runners` has by the key of a call a `run.Runner`, whether its result is a single array, and what keeps it alive; or None.
    """
    found = key_of(function, args, kwargs)
    if found is None:
        return NotImplemented
    cdef PyObject *entry = PyDict_GetItem(runners, (<tuple>found)[0])
    if entry == NULL:
        return None
    if <object>entry is None:
        return NotImplemented
    results = (<tuple><object>entry)[0].call((<tuple>found)[1])
    if results is None:
        return None
    return (<tuple>results)[0] if (<tuple><object>entry)[1] else results
