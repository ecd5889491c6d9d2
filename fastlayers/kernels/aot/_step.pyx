"""Steps: kernels whose sizes, weights and parameters are fixed, so that running them is one call through a pointer."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy
cimport cython
cimport numpy as cnp

from ._engine cimport RELEASE_GIL, need, release
from ._stop cimport Stop, stop_begin, stop_end, stop_raise

from ...errors import LimitError, ShapeError, UnsupportedError

cnp.import_array()

cdef enum:
    MOST = 16


@cython.final
cdef class Step:
    """One call of a kernel that waits for its arrays. Immutable; may be run by any number of threads at once."""

    def __dealloc__(self):
        release(self.plan)

    def __call__(self, *arrays):
        """Runs the step on contiguous arrays (None where the plan was made for None), in the order of the kernel's array arguments."""
        cdef void *operands[MOST]
        cdef int i
        if len(arrays) != self.operands:
            raise ValueError(f"step: {len(arrays)} arrays: expected {self.operands}")
        for i in range(self.operands):
            operands[i] = NULL if arrays[i] is None else cnp.PyArray_DATA(<cnp.ndarray?>arrays[i])
        try:
            run_plan(self.run, self.plan, operands, self.work, "step")
        except ShapeError:
            if self.indices is None:
                raise
            raise index_error("step: index", <const int64_t *>operands[<int>self.indices[0]], self.indices) from None


cdef int axes_of(tuple shape) except -1:
    if len(shape) > MOST_AXES:
        raise UnsupportedError(f"run: an array has {len(shape)} axes: at most {MOST_AXES} are supported")
    return len(shape)


@cython.final
cdef class PythonStep:
    """A NumPy fallback: a function of arrays, made over the run's memory, whose results are copied into it."""

    def __init__(self, function, store, tuple inputs, tuple outputs):
        self.function, self.store, self.inputs, self.outputs = function, store, inputs, outputs
        for spec in inputs + outputs:
            if spec is not None:
                axes_of(spec[0])


@cython.final
cdef class UsersStep:
    """A compiled step of a user's function, and the same function as a NumPy fallback: its errors come from there."""

    def __init__(self, Step step, PythonStep instead):
        self.step, self.instead = step, instead


@cython.final
cdef class Kept:
    """Packed weights and memory of a step."""

    def __cinit__(self, packed):
        self.packed = packed

    def __dealloc__(self):
        release(self.block)


cdef Step make_step(fl_step_fn run, const void *plan, size_t bytes, int operands, double work, object keep):
    cdef Step step = Step.__new__(Step)
    step.plan = need(bytes, "step")
    memcpy(step.plan, plan, bytes)
    step.run, step.operands, step.work, step.keep = run, operands, work, keep
    return step


def foreign_step(size_t address, bytes plan, int operands, double work, object keep):
    """A step of a C function that was compiled elsewhere; see `fl_step_fn`. What it does with its operands is not checked."""
    if operands > MOST:
        raise ValueError(f"step: {operands} operands: expected at most {MOST}")
    return make_step(<fl_step_fn><void *>address, <const char *>plan, len(plan), operands, work, keep)


cdef int run_plan(fl_step_fn run, const void *plan, void *const *operands, double work, str what) except -1:
    cdef int failed
    cdef Stop memory
    cdef Stop *stop
    if work < RELEASE_GIL:
        failed = run(plan, operands)
    else:
        stop = stop_begin(&memory, work)
        try:
            with nogil:
                failed = run(plan, operands)
            stop_raise(stop)
        finally:
            stop_end(stop)
    if failed == -2:
        raise ShapeError(f"{what}: index out of range")
    if failed:
        raise LimitError(f"{what}: no memory for scratch")
    return 0


cdef object out_of_range(str what, const int64_t *indices, int64_t count, int64_t least, int64_t most):
    cdef int64_t i
    for i in range(count):
        if not least <= indices[i] <= most:
            return ShapeError(f"{what} {indices[i]} is out of range: expected {least} to {most}")
    return ShapeError(f"{what} out of range")


cdef object index_error(str what, const int64_t *indices, tuple found):
    cdef int64_t i, size
    cdef int k, axes
    _, count, least, most = found
    if not isinstance(most, tuple):
        return out_of_range(what, indices, count, least, most)
    axes = len(most)
    for i in range(<int64_t>count):
        for k in range(axes):
            size = most[k]
            if not -size <= indices[i * axes + k] < size:
                return ShapeError(f"{what} {indices[i * axes + k]} is out of range: expected {-size} to {size - 1}")
    return ShapeError(f"{what} out of range")


cdef int64_t volume(tuple shape) except -1:
    cdef int64_t total = 1
    for size in shape:
        total *= <int64_t>size
    return total


cdef int dims_of(tuple shape, cnp.npy_intp *to) except -1:
    cdef int i
    for i in range(len(shape)):
        to[i] = shape[i]
    return 0


cdef int sizes_of(tuple shape, int axes, cnp.npy_intp *to, str what) except -1:
    if len(shape) != axes:
        raise ShapeError(f"{what} has shape {shape}: expected {axes} axes")
    return dims_of(shape, to)
