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


cdef inline int64_t shared(int64_t n, int64_t piece, int64_t unit, int64_t least, int64_t others, int hands) noexcept nogil:
    """Length of even pieces of n, at most `piece`: a shorter one, but not below `least`, where those and `others` pieces of another
    axis leave some of so many hands without work at the end. All but the last are multiples of `unit`.

    For plans: what is computed does not depend on it, so it may follow from how many threads there are when a plan is made.
    """
    cdef int64_t count = (n + piece - 1) // piece if piece > 0 else 0, length, tasks, best = piece
    cdef double share, most = 0
    if hands <= 1 or count == 0 or n <= least:
        return piece
    length = piece
    while True:
        tasks = others * ((n + length - 1) // length)
        # What all hands do, of what they could do until the last one is done.
        share = <double>(others * n) / <double>((tasks + hands - 1) // hands * hands * length)
        if share > most + 0.03:
            most, best = share, length
        if share > 0.94 or tasks >= 8 * hands:
            return best
        if length <= unit:
            return best
        count += 1
        length = ((n + count - 1) // count + unit - 1) // unit * unit
        if length < least:
            return best


cdef enum:
    SHORT_RUN = 1024  # elements below which a stretch of them is not worth a task


cdef inline int64_t runs_of(int64_t n) noexcept nogil:
    """Number of tasks that n elements, cut anywhere, could be: for `workers`."""
    return (n + SHORT_RUN - 1) // SHORT_RUN


cdef inline int64_t run_length(int64_t n, int64_t most, int threads) noexcept nogil:
    """Length of even pieces of n elements, each at most `most`, a multiple of 64, as many for every thread."""
    cdef int64_t count = ((n + most - 1) // most + threads - 1) // threads * threads
    return min(most, max((n + count - 1) // max(count, <int64_t>1) + 63, <int64_t>64) // 64 * 64)


cdef inline int64_t begin_of(int64_t i, int64_t count, int64_t n) noexcept nogil:
    """Start of piece i of `count` that n is cut into: of two lengths, spread so that all stretches of as many pieces, which
    threads begin with, are about as long."""
    return i * n // count


cdef inline int64_t pieces_for(int64_t n, int64_t most, int64_t least, int64_t others, int hands) noexcept nogil:
    """Into how many pieces (see `begin_of`) n is cut: each at most `most`; more, but none below `least`, where those and `others`
    pieces of another axis leave some of so many hands without work at the end. See `shared`."""
    cdef int64_t count = max((n + most - 1) // most, <int64_t>1), best = count, load
    cdef double share, found = 0
    while True:
        if others == 1:
            load = (count + hands - 1) // hands * (n // count) + (n % count + hands - 1) // hands
        else:
            load = (others * count + hands - 1) // hands * ((n + count - 1) // count)
        share = <double>(others * n) / <double>(hands * max(load, 1))
        if share > found + 0.03:
            found, best = share, count
        if hands <= 1 or share > 0.94 or others * count >= 8 * hands:
            return best
        count += 1
        if n // count < least:
            return best


cdef inline size_t rounded(size_t bytes) noexcept nogil:
    """Whole cache lines, and one more, so that parts of the scratch are not a multiple of 4 KB apart."""
    return (bytes + 127) // 64 * 64
