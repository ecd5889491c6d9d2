"""Padding into scratch, lists of runs, and the walk over blocks of K with them."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ._engine cimport FL_KC, fl_block, fl_epilogue, fl_kernels, fl_run
from ._space cimport source_index
from .gemm cimport panels_size


cdef void fill_row(const Band *band, const float *x, int64_t step, float *to, int64_t start, int64_t cols) noexcept nogil:
    """Padded positions start .. start + cols - 1 of one input row. x: the row's first element of the first channel; `step` floats are
    between channels (channels-first), or pixels are `channels` apart (channels-last)."""
    cdef int64_t w = band.size[2], ig = band.ig, before = band.before[2]
    cdef int64_t i0 = min(max(before - start, <int64_t>0), cols), i1 = max(min(before + w - start, cols), i0), i, c, at
    cdef const float *inner = x + (start + i0 - before) * (band.channels if band.last else 1)
    if band.last:
        if ig == band.channels:
            memcpy(to + i0 * ig, inner, (i1 - i0) * ig * sizeof(float))
        else:
            for i in range(i1 - i0):
                memcpy(to + (i0 + i) * ig, inner + i * band.channels, ig * sizeof(float))
    elif ig == 1:
        memcpy(to + i0, inner, (i1 - i0) * sizeof(float))
    else:
        band.level.transpose(inner, step, to + i0 * ig, ig, ig, i1 - i0)
    i = 0 if i0 > 0 else i1
    while i < cols:
        at = source_index(start + i, before, w, band.mode)
        if at < 0:
            memset(to + i * ig, 0, ig * sizeof(float))
        elif band.last:
            memcpy(to + i * ig, x + at * band.channels, ig * sizeof(float))
        else:
            for c in range(ig):
                to[i * ig + c] = x[c * step + at]
        i = i + 1 if i + 1 != i0 else i1


cdef void fill(const Band *band, const float *x, float *to, int64_t z, int64_t step, int64_t planes, int64_t y, int64_t rows,
               int64_t start, int64_t cols) noexcept nogil:
    cdef int64_t i, j, at_z, at_y
    cdef int64_t volume = band.size[0] * band.size[1] * band.size[2], pitch = band.size[2] * (band.channels if band.last else 1)
    for i in range(planes):
        at_z = source_index(z + i * step, band.before[0], band.size[0], band.mode)
        for j in range(rows):
            at_y = source_index(y + j, band.before[1], band.size[1], band.mode)
            if at_z < 0 or at_y < 0:
                memset(to + i * band.plane + j * band.row, 0, cols * band.ig * sizeof(float))
            else:
                fill_row(band, x + (at_z * band.size[1] + at_y) * pitch, volume, to + i * band.plane + j * band.row, start, cols)


cdef Runs no_runs(fl_run *runs, int64_t *first) noexcept nogil:
    cdef Runs list
    list.runs, list.first, list.count, list.block, list.room = runs, first, 0, 0, FL_KC
    first[0] = 0
    return list


cdef void add_run(Runs *list, int64_t offset, int64_t length) noexcept nogil:
    cdef fl_run *last
    cdef int64_t take, sign = -1 if length < 0 else 1, rest = sign * length
    while rest > 0:
        if list.room == 0:
            list.block += 1
            list.first[list.block] = list.count
            list.room = FL_KC
        take = min(rest, list.room)
        last = &list.runs[list.count - 1]
        if list.count > list.first[list.block] and sign * last.length > 0 and (sign < 0 or last.offset + last.length == offset):
            last.length += sign * take
        else:
            list.runs[list.count].offset, list.runs[list.count].length = offset, sign * take
            list.count += 1
        offset += take if sign > 0 else 0
        rest -= take
        list.room -= take


cdef void end_runs(Runs *list) noexcept nogil:
    list.first[list.block + 1] = list.count


cdef int64_t blocks_of(int64_t k) noexcept nogil:
    return max((k + FL_KC - 1) // FL_KC, <int64_t>1)


cdef void multiply(const fl_kernels *level, fl_block *p, const fl_run *runs, const int64_t *first, int64_t k, const float *b,
                   int64_t n_all, int64_t j0, const fl_epilogue *epilogue) noexcept nogil:
    cdef int64_t blocks = blocks_of(k), columns = panels_size(n_all, 1), i, k0
    for i in range(blocks):
        k0 = i * FL_KC
        p.klen = min(<int64_t>FL_KC, k - k0)
        p.runs, p.nruns = runs + first[i], first[i + 1] - first[i]
        if 0 < i < blocks - 1 and p.nruns == 1 and p.runs[0].length < 0:
            continue  # nothing is added
        p.b = b + columns * k0 + j0 * p.klen
        p.ahead = NULL
        if i + 1 < blocks:
            p.ahead = p.b + (columns - j0) * p.klen + j0 * min(<int64_t>FL_KC, k - k0 - p.klen)
        p.accumulate = i > 0
        p.epilogue = epilogue if i == blocks - 1 else NULL
        level.block(p)
