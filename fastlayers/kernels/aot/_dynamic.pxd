"""The step and the zero point of values that are quantized by their own range."""

from libc.stdint cimport int32_t, uint8_t

from ._engine cimport fl_quantized


cdef inline void range_to_steps(const fl_quantized *level, int kind, float low, float high, float *step, uint8_t *zero) noexcept nogil:
    """Computes step and zero point of the range low .. high, 0 among it, in the kind uint8."""
    cdef float below = 0 - low
    cdef int32_t none = 0
    step[0] = 1 if low == high else (high - low) / <float>255
    level.quantize(&below, step, &none, 0, kind, zero, 1)
