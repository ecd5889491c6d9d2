"""Arithmetic that all convolutions and `pad` share: padding as positions of the input, even pieces, parts of scratch."""

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


cdef inline int64_t even(int64_t n, int64_t most) noexcept nogil:
    """Height of even pieces of n, each at most `most` high; at least 1."""
    cdef int64_t pieces = max((n + most - 1) // most, <int64_t>1)
    return max((n + pieces - 1) // pieces, <int64_t>1)


cdef inline int64_t width_of(int64_t n, int64_t most, int64_t others, int64_t enough) noexcept nogil:
    """Columns of one task, at most `most` of n; fewer, but not below 65, where they and `others` other pieces are not `enough` tasks."""
    cdef int64_t width = min(n, most)
    while others * ((n + width - 1) // width) < enough and width > 128:
        width = (width // 2 + 15) // 16 * 16
    return width


cdef inline size_t rounded(size_t bytes) noexcept nogil:
    """Whole cache lines, and one more, so that parts of the scratch do not lie a multiple of 4 KB apart."""
    return (bytes + 127) // 64 * 64
