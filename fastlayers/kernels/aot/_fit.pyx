"""The check of `..fits` in a few nanoseconds; what does not fit is told by that module's own check, in Python."""

from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t
cimport cython
cimport numpy as cnp

from ...errors import ShapeError
from .. import fits

cnp.import_array()

cdef enum:
    NONE = -2     # there is no such way
    ONE = -1      # one element, however many axes
    DIGIT = 32    # with this added, an axis is a size

# The letters of the space of x and of out
cdef int[3] SPACE = [ord(letter) - ord("a") for letter in "dhw"]
cdef int[3] PLACES = [ord(letter) - ord("a") for letter in "xyz"]


cdef Fit fit_of(str kernel):
    cdef Fit fit = Fit.__new__(Fit)
    cdef int i, layout, way, j
    entry = fits.FITS[kernel]
    fit.kernel, fit.arrays, fit.known = kernel, len(entry.axes), len(entry.known)
    if fit.arrays > MOST_ARRAYS:
        raise ValueError(f"{kernel}: more than {MOST_ARRAYS} arrays")
    for i, letter in enumerate(entry.known):
        fit.letters[i] = ord(letter) - ord("a")
    for i, layouts in enumerate(entry.axes.values()):
        for layout in range(LAYOUTS):
            fit.ranks[i][layout][1] = NONE
            for way, axes in enumerate(layouts[layout % len(layouts)].split("|")):
                fit.ranks[i][layout][way] = ONE if axes == "1" else len(axes)
                for j, axis in enumerate(axes):
                    fit.axes[i][layout][way][j] = DIGIT + int(axis) if axis.isdigit() else ord(axis) - ord("a")
    return fit


cdef inline int rank_of(PyObject *item) except -1:
    if isinstance(<object>item, tuple):
        return <int>PyTuple_GET_SIZE(<object>item)
    if not cnp.PyArray_Check(<object>item):
        raise TypeError(f"expected an array, a shape or None, got {type(<object>item).__name__}")
    return cnp.PyArray_NDIM(<cnp.ndarray>item)


cdef inline int64_t size_of(PyObject *item, int axis) except? -1:
    if isinstance(<object>item, tuple):
        return <object>PyTuple_GET_ITEM(<object>item, axis)
    return cnp.PyArray_DIM(<cnp.ndarray>item, axis)


cdef tuple three(const int64_t *values):
    return values[0], values[1], values[2]


@cython.final
cdef class Fit:
    """The axes of a kernel's arrays."""

    cdef int agrees(self, const int64_t *known, tuple given, int flags, int64_t *sizes) except -1:
        cdef int i, j, way, rank
        cdef int64_t size
        cdef signed char axis
        cdef PyObject *item
        if PyTuple_GET_SIZE(given) != self.arrays:
            raise ValueError(f"{self.kernel}: {len(given)} arrays: expected {self.arrays}")
        for i in range(LETTERS):
            sizes[i] = -1
        for i in range(self.known):
            sizes[self.letters[i]] = known[i]
        for i in range(self.arrays):
            item = PyTuple_GET_ITEM(given, i)
            if <object>item is None:
                continue
            rank = rank_of(item)
            way = 0 if self.ranks[i][flags][0] == rank else 1
            if self.ranks[i][flags][0] == ONE:
                for j in range(rank):
                    if size_of(item, j) != 1:
                        return False
                continue
            if self.ranks[i][flags][way] != rank:
                return False
            for j in range(rank):
                axis, size = self.axes[i][flags][way][j], size_of(item, j)
                if axis >= DIGIT:
                    if size != axis - DIGIT:
                        return False
                elif sizes[axis] < 0:
                    sizes[axis] = size
                elif sizes[axis] != size:
                    return False
        return True

    cdef int check(self, const int64_t *known, tuple given, int flags) except -1:
        cdef int64_t sizes[LETTERS]
        if not self.agrees(known, given, flags, sizes):
            self.refuse(known, given, flags, None)
        return 0

    cdef int check_window(self, const int64_t *known, tuple given, int flags, pads, const int64_t *kernel, const int64_t *stride,
                          const int64_t *dilation) except -1:
        cdef int64_t sizes[LETTERS]
        cdef int64_t left
        cdef int i
        cdef bint fine = len(pads) == 6 and self.agrees(known, given, flags, sizes)
        for i in range(3 if fine else 0):
            # What is left of x and its padding once the first window has been read.
            left = sizes[SPACE[i]] + <int64_t>pads[2 * i] + <int64_t>pads[2 * i + 1] - dilation[i] * (kernel[i] - 1) - 1
            fine = fine and sizes[PLACES[i]] == (0 if left < 0 else left // stride[i] + 1)
        if not fine:
            self.refuse(known, given, flags, (three(kernel), three(stride), three(dilation), tuple(pads)))
        return 0

    cdef int refuse(self, const int64_t *known, tuple given, int flags, window) except -1:
        fits.compare(self.kernel, tuple([known[i] for i in range(self.known)]), given, flags, window)
        raise ShapeError(f"{self.kernel}: its arrays do not fit its packed weights")  # not reached: both checks say the same


cdef int read_steps(str kernel, stride, dilation, int64_t *to_stride, int64_t *to_dilation) except -1:
    cdef int i
    if len(stride) != 3 or len(dilation) != 3:
        fits.steps_of(kernel, stride, dilation)
    for i in range(3):
        to_stride[i], to_dilation[i] = stride[i], dilation[i]
        if to_stride[i] < 1 or to_dilation[i] < 1:
            fits.steps_of(kernel, stride, dilation)
    return 0


cdef int check_groups(str kernel, str name, int64_t groups, int64_t channels) except -1:
    if groups < 1 or channels % groups:
        fits.divides(kernel, name, groups, channels)
    return 0


cdef int64_t last_size(given) except -1:
    cdef tuple shape = given if isinstance(given, tuple) else given.shape
    return shape[len(shape) - 1] if shape else 0
