"""Weights of 16 bits: packed panels of floats become panels of half the size; see csrc/half.h."""

from libc.stdint cimport int64_t, uint16_t

from ._engine cimport fl_epilogue, fl_kernels, fl_run


# Elements of k x n weights in panels: whole panels of 16 columns, and for pairs of terms a last one without a partner has one.
cdef int64_t halves_size(int kind, int64_t n, int64_t k) noexcept nogil

# Rounds what `pack_panels` has made of k x n weights.
cdef void pack_halves(int kind, const float *panels, int64_t n, int64_t k, uint16_t *to) noexcept nogil

# As `gemm.product`, with weights of 16 bits.
cdef void half_product(const fl_kernels *level, int kind, const float *x, int64_t ldx, int64_t m, int64_t k, const uint16_t *b,
                       int64_t n_all, int64_t j0, int64_t n, float *out, int64_t ldc, const fl_epilogue *epilogue) noexcept nogil


# Rows of a product whose terms are in several places: see fl_half_block.
cdef struct HalfRows:
    const float *const *rows
    const uint16_t *const *pairs
    const fl_run *runs
    const int64_t *starts

# `half_product` of such rows.
cdef void half_multiply(const fl_kernels *level, int kind, const HalfRows *x, int64_t m, int64_t k, const uint16_t *b, int64_t n_all, int64_t j0,
                        int64_t n, float *out, int64_t ldc, const fl_epilogue *epilogue) noexcept nogil
