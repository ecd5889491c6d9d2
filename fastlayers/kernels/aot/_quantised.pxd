"""What a level exports for quantised numbers; see csrc/quantised_table.h."""

from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t

cdef extern from "csrc/quantised_table.h":
    ctypedef struct fl_qepilogue:
        const int32_t *offset
        const int32_t *zero
        const int32_t *rowsum
        const float *scale
        const float *shift
        int kind
        int32_t y_zero
    ctypedef struct fl_qrun:
        int64_t offset, quads
    ctypedef struct fl_qblock:
        const uint8_t *const *rows
        int64_t m, n
        const fl_qrun *runs
        int64_t nruns
        const int8_t *b
        int64_t panel
        void *out
        int64_t ldc
        fl_qepilogue e
    ctypedef struct fl_qdepthwise:
        const uint8_t *const *taps
        int64_t pairs, step, c, cols
        const int16_t *w
        void *out
        int64_t ldc
        fl_qepilogue e
    ctypedef struct fl_qbinary:
        int multiply, is_signed
        int32_t a_zero, b_zero, zero
        float a_scale, b_scale, scale
    ctypedef struct fl_quantised:
        void (*block)(const fl_qblock *p) noexcept nogil
        void (*depthwise)(const fl_qdepthwise *p) noexcept nogil
        void (*rowsums)(const uint8_t *const *rows, int64_t m, const fl_qrun *runs, const int64_t *lengths, int64_t nruns,
                        int32_t *out) noexcept nogil
        void (*flip)(const uint8_t *x, uint8_t *y, int64_t n) noexcept nogil
        void (*quantize)(const float *x, const float *scale, const int32_t *zero, int each, int kind, void *y, int64_t n) noexcept nogil
        void (*dequantize)(const void *x, int kind, const float *scale, const int32_t *zero, int each, float *y, int64_t n) noexcept nogil
        void (*requantize)(const int32_t *x, const float *by, int each, int32_t zero, int kind, void *y, int64_t n) noexcept nogil
        void (*range)(const float *x, int64_t n, float *low, float *high) noexcept nogil
        void (*binary)(const fl_qbinary *p, const uint8_t *a, const uint8_t *b, int each, uint8_t *y, int64_t n) noexcept nogil
        void (*add)(const uint8_t *x, int is_signed, int32_t *y, int64_t n) noexcept nogil
        void (*larger)(const uint8_t *x, int is_signed, uint8_t *y, int64_t n) noexcept nogil
