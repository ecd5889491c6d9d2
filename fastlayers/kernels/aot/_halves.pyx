"""Weights of 16 bits; see _halves.pxd."""

from libc.stdint cimport int64_t, uint16_t

from ._engine cimport FL_HALF, FL_KC, FL_PANEL, fl_epilogue, fl_half_block, fl_kernels, fl_run, level

cdef enum:
    ROWS = 256  # of a call of the level's `block`


cdef inline int64_t even(int kind, int64_t k) noexcept nogil:
    return k if kind == FL_HALF else k + (k & 1)


cdef int64_t halves_size(int kind, int64_t n, int64_t k) noexcept nogil:
    return (n + FL_PANEL - 1) // FL_PANEL * FL_PANEL * even(kind, k)  # blocks of K are even but for the last


cdef void pack_halves(int kind, const float *panels, int64_t n, int64_t k, uint16_t *to) noexcept nogil:
    cdef int64_t k0 = 0, klen, panel
    while k0 < k:
        klen = min(<int64_t>FL_KC, k - k0)
        for panel in range((n + FL_PANEL - 1) // FL_PANEL):
            level().halves.pack(kind, panels, klen, to)
            panels += klen * FL_PANEL
            to += even(kind, klen) * FL_PANEL
        k0 += klen


cdef void half_product(const fl_kernels *lv, int kind, const float *x, int64_t ldx, int64_t m, int64_t k, const uint16_t *b,
                       int64_t n_all, int64_t j0, int64_t n, float *out, int64_t ldc, const fl_epilogue *epilogue) noexcept nogil:
    cdef const float *rows[ROWS]
    cdef fl_half_block p
    cdef fl_epilogue e = epilogue[0]
    cdef int64_t m0 = 0, i
    cdef int tiles = 0
    p.tiles, p.pairs, p.runs, p.starts = &tiles, NULL, NULL, NULL
    p.kind, p.rows, p.k, p.b, p.n, p.ldc, p.epilogue = kind, rows, k, b, n, ldc, &e
    p.panels, p.first = (n_all + FL_PANEL - 1) // FL_PANEL, j0 // FL_PANEL
    while m0 < m:
        p.m = min(<int64_t>ROWS, m - m0)
        for i in range(p.m):
            rows[i] = x + (m0 + i) * ldx
        p.c = out + m0 * ldc
        if epilogue.residual != NULL:
            e.residual = epilogue.residual + m0 * e.ldr
        lv.halves.block(&p)
        m0 += p.m
    lv.halves.end(&tiles)


cdef void half_multiply(const fl_kernels *lv, int kind, const HalfRows *x, int64_t m, int64_t k, const uint16_t *b, int64_t n_all, int64_t j0,
                        int64_t n, float *out, int64_t ldc, const fl_epilogue *epilogue) noexcept nogil:
    cdef fl_half_block p
    cdef int tiles = 0
    p.tiles, p.rows, p.pairs, p.runs, p.starts = &tiles, x.rows, x.pairs, x.runs, x.starts
    p.kind, p.m, p.k, p.b, p.n, p.c, p.ldc, p.epilogue = kind, m, k, b, n, out, ldc, epilogue
    p.panels, p.first = (n_all + FL_PANEL - 1) // FL_PANEL, j0 // FL_PANEL
    lv.halves.block(&p)
    lv.halves.end(&tiles)
