"""Sizes of elements of the dtypes that table.KINDS numbers; see csrc/dtypes.h."""


cdef extern from "csrc/dtypes.h" nogil:
    int fl_bytes_of(int kind)
