"""The packed product for other modules of the driver: packing panels, and the walk over blocks of K."""

from libc.stdint cimport int64_t
cimport numpy as cnp

from ._engine cimport fl_epilogue, fl_kernels


cdef enum:
    LARGE = 1 << 16  # values that are packed from which on the GIL is given up

# Floats of k x n weights in panels: whole panels of 16 columns.
cdef int64_t panels_size(int64_t n, int64_t k) noexcept nogil

# Columns that a product of n computes: whole panels, or half of the last one where vectors of eight are there.
cdef inline int64_t columns_size(const fl_kernels *level, int64_t n) noexcept nogil:
    return (n + 7) // 8 * 8 if level.width >= 8 else panels_size(n, 1)

# Packs w [n][k] into b: [K / 256][N / 16][klen][16], columns past n zero; on this thread.
cdef void pack_panels(const float *w, int64_t n, int64_t k, float *b) noexcept nogil

# The same for `groups` matrices, one after the other, with the GIL held; where that takes long it is given up, and all threads work.
cdef void pack_all(const float *w, int64_t groups, int64_t n, int64_t k, float *b) noexcept

# out[i, j] = epilogue(sum_k x[i, k] b[k, j]) for m rows (any number) on the calling thread. b is the packed weights of all `n_all`
# columns and `j0` (a multiple of 16) the first of the n columns that are wanted; out and the epilogue point at that column.
cdef void product(const fl_kernels *level, const float *x, int64_t ldx, int64_t m, int64_t k, const float *b, int64_t n_all, int64_t j0,
                  int64_t n, float *out, int64_t ldc, const fl_epilogue *epilogue) noexcept nogil


# Memory of packed weights: made here, or borrowed from an array, such as a part of a mapped file that has them packed already.
cdef class Panels:
    cdef float *data
    cdef object owner        # the array that was borrowed, or None
    cdef size_t bytes


# `count` floats for `what`: those of `stored`, which must be as many, or new ones, not initialized, if it is None.
cdef Panels make_panels(size_t count, cnp.ndarray stored, str what)
