"""The check of `..fits` in a few nanoseconds: do the arrays of a call fit each other and the packed weights?"""

from libc.stdint cimport int64_t

cdef enum:
    MOST_ARRAYS = 8
    MOST_AXES = 6
    LAYOUTS = 4    # sets of two flags
    WAYS = 2
    LETTERS = 26


# The axes of a kernel's arrays, read from `fits.FITS` once.
cdef class Fit:
    cdef str kernel
    cdef int arrays, known
    cdef signed char letters[LETTERS]                        # whose sizes a call brings along
    cdef signed char ranks[MOST_ARRAYS][LAYOUTS][WAYS]       # counts of axes; see _fit.pyx for those below 0
    cdef signed char axes[MOST_ARRAYS][LAYOUTS][WAYS][MOST_AXES]

    # Raises ShapeError unless `given`, a tuple of arrays, shapes or None, has the axes of the kernel's arrays in the layout `flags`,
    # and the `known` sizes.
    cdef int check(self, const int64_t *known, tuple given, int flags) except -1
    # The same of a kernel whose result has one place for each window of x.
    cdef int check_window(self, const int64_t *known, tuple given, int flags, pads, const int64_t *kernel, const int64_t *stride,
                          const int64_t *dilation) except -1
    cdef int agrees(self, const int64_t *known, tuple given, int flags, int64_t *sizes) except -1
    cdef int refuse(self, const int64_t *known, tuple given, int flags, window) except -1


cdef Fit fit_of(str kernel)
# Writes stride and dilation, three values each; ShapeError unless they are, from 1 up.
cdef int read_steps(str kernel, stride, dilation, int64_t *to_stride, int64_t *to_dilation) except -1
# ShapeError unless the channels fall into so many groups.
cdef int check_groups(str kernel, str name, int64_t groups, int64_t channels) except -1
# The last size of an array or a shape, 0 where there are no axes.
cdef int64_t last_size(given) except -1
