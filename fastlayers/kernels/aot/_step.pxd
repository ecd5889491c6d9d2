"""A step: one call of a kernel with everything fixed but where its arrays are. Programs are made of them; see ../README.md."""

from libc.stdint cimport int64_t
cimport numpy as cnp

# Does the work of a plan on `operands`, one pointer for every array argument of the kernel in their order (NULL for None).
# Returns 0, or -1 where there is no memory for scratch, or -2 where an operand that holds indices has one out of range. It needs no GIL and may run on several threads at once.
ctypedef int (*fl_step_fn)(const void *plan, void *const *operands) noexcept nogil


cdef class Step:
    cdef fl_step_fn run
    cdef void *plan       # never changed after it was made
    cdef readonly int operands
    cdef readonly double work   # operations, as `_engine.workers` counts them (about 100 a nanosecond)
    cdef object keep      # what the plan points into: packed weights
    cdef tuple indices    # of a step that may return -2: (number of the operand that holds indices, how many, least, most), or
                          # (number of the operand, how many tuples, 0, the sizes of the axes that a tuple's indices are of)


cdef enum:
    MOST_AXES = 32   # of arrays that a program makes

# The number of axes of a shape, if it may have so many.
cdef int axes_of(tuple shape) except -1

cdef class PythonStep:
    cdef object function, store
    cdef tuple inputs, outputs   # of (shape, dtype), or None

cdef class UsersStep:
    cdef readonly Step step
    cdef PythonStep instead


# What a plan points into: packed weights, and a block of memory (see _engine.alloc) that dies with this object.
cdef class Kept:
    cdef object packed
    cdef void *block


# A step with a copy of the `bytes` at `plan`. Where a plan owns more than its own bytes, `keep` is the object that frees it.
cdef Step make_step(fl_step_fn run, const void *plan, size_t bytes, int operands, double work, object keep)

# Runs a plan from Python's side of a kernel: releases the GIL for much work, raises in the name of `what`: LimitError for no memory,
# ShapeError for an index out of range.
cdef int run_plan(fl_step_fn run, const void *plan, void *const *operands, double work, str what) except -1

# The error for the first of `count` indices that is not within least .. most.
cdef object out_of_range(str what, const int64_t *indices, int64_t count, int64_t least, int64_t most)

# The error for the first index out of range, as `Step.indices` describes them.
cdef object index_error(str what, const int64_t *indices, tuple found)

# The number of elements of a shape.
cdef int64_t volume(tuple shape) except -1

# Writes a shape's sizes to `to`, which has room for them.
cdef int dims_of(tuple shape, cnp.npy_intp *to) except -1

# What the ways in from Python ask of the arguments (codegen/pairs.py). The data and the shape of an array, NULL and None of None:
cdef inline void *data_of(cnp.ndarray array) noexcept:
    return NULL if array is None else cnp.PyArray_DATA(array)


cdef inline tuple shape_of(cnp.ndarray array):
    return None if array is None else (<object>array).shape


# the sizes of a shape, which must be as many as its kernel has axes.
cdef int sizes_of(tuple shape, int axes, cnp.npy_intp *to, str what) except -1
