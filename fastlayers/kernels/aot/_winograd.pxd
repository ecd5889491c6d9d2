"""The transform of weights for Winograd convolution, in float64 and rounded once."""

from libc.stdint cimport int64_t

from ._engine cimport FL_KC, FL_PANEL


cdef enum:
    MOST_SIDE = 9    # positions of a tile along an axis
    MOST_TAPS = 7    # along an axis
    MOST_ALL = 49    # and of a kernel's slice


cdef inline void one_axis(const double *by, int taps, const double *w, int64_t apart, double *to) noexcept nogil:
    """A position's weights for a panel of outputs: a row of an axis's transform times its taps, with a stride of `apart` panels."""
    cdef int j
    cdef int64_t n = apart * FL_PANEL
    if taps == 1:
        for j in range(FL_PANEL):
            to[j] = w[j]
    elif taps == 3:
        for j in range(FL_PANEL):
            to[j] = by[0] * w[j] + by[1] * w[n + j] + by[2] * w[2 * n + j]
    elif taps == 5:
        for j in range(FL_PANEL):
            to[j] = by[0] * w[j] + by[1] * w[n + j] + by[2] * w[2 * n + j] + by[3] * w[3 * n + j] + by[4] * w[4 * n + j]
    else:
        for j in range(FL_PANEL):
            to[j] = (by[0] * w[j] + by[1] * w[n + j] + by[2] * w[2 * n + j] + by[3] * w[3 * n + j] + by[4] * w[4 * n + j]
                     + by[5] * w[5 * n + j] + by[6] * w[6 * n + j])


cdef inline void transform_weights(const float *w, int64_t o, int64_t c, int64_t deep, const int *side, const int *taps, const double *down,
                                   const double *across, float *u) noexcept nogil:
    """u[position] = the panels of D w Aᵀ, formed in float64 and rounded once; columns past o are zero. Rows are the c channels of each of
    `deep` slices."""
    cdef int64_t panels = (o + FL_PANEL - 1) // FL_PANEL, terms = deep * c, size = panels * FL_PANEL * terms, block, panel, k, klen, k0, j, at, row
    cdef int64_t high = taps[0], wide = taps[1], all_ = high * wide
    cdef int p, q, t
    cdef double some[MOST_ALL][FL_PANEL]               # w
    cdef double half[MOST_SIDE][MOST_TAPS][FL_PANEL]   # D w
    cdef double whole[FL_PANEL]
    cdef const float *tap
    cdef float *to
    for block in range((terms + FL_KC - 1) // FL_KC):
        k0 = block * FL_KC
        klen = min(<int64_t>FL_KC, terms - k0)
        for panel in range(panels):
            for k in range(klen):
                row = (k0 + k) % c * deep + (k0 + k) // c
                for j in range(FL_PANEL):
                    at = panel * FL_PANEL + j
                    tap = w + (at * terms + row) * all_
                    for t in range(all_):
                        some[t][j] = tap[t] if at < o else 0
                for p in range(side[0]):
                    for q in range(wide):
                        one_axis(down + p * high, taps[0], some[q], wide, half[p][q])
                for p in range(side[0]):
                    for q in range(side[1]):
                        one_axis(across + q * wide, taps[1], half[p][0], 1, whole)
                        to = u + (p * side[1] + q) * size + panels * FL_PANEL * k0 + (panel * klen + k) * FL_PANEL
                        for j in range(FL_PANEL):
                            to[j] = <float>whole[j]
