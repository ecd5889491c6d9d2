"""Reading values that another thread may change; see csrc/once.h."""

from libc.stdint cimport int64_t


cdef extern from "csrc/once.h" nogil:
    int64_t fl_once(const int64_t *at)
    int fl_once32(const int *at)
    float fl_once_f32(const float *at)
    int64_t fl_row(int64_t i, int64_t n)
