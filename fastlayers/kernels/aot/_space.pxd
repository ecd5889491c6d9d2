"""Padding as index arithmetic, shared by convolution, depthwise convolution and `pad`: which input position a padded one reads."""

from libc.stdint cimport int64_t


cdef inline int64_t source_index(int64_t i, int64_t before, int64_t n, int mode) noexcept nogil:
    """Position of an axis of n that position i of the padded axis reads, or -1 for the constant (mode 0, zeros).

    Modes are those of table.PAD_MODES; reflection asks for pads < n, circular for pads <= n, replication for n > 0.
    """
    i -= before
    if 0 <= i < n:
        return i
    if mode == 1:
        return -i if i < 0 else 2 * (n - 1) - i
    if mode == 2:
        return 0 if i < 0 else n - 1
    if mode == 3:
        return i + n if i < 0 else i - n
    return -1
