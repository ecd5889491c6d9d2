"""Products of quantized values as other modules plan and run them."""

cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t
cimport numpy as cnp

from ._engine cimport fl_kernels, fl_qepilogue, fl_qrun, fl_quantized


@cython.final
cdef class PackedQConv:
    cdef readonly int64_t nbytes
    cdef int8_t *panels     # [groups][panels][quads][16][4]; NULL if depthwise
    cdef int16_t *taps      # of a depthwise kernel, zero points taken away: [pairs of taps][whole panels of channels][2]
    cdef int8_t *bytes      # the same for products of quads of bytes (csrc/quantized_table.h); NULL if some are none
    cdef int32_t *bias      # these have [groups][whole panels] values
    cdef int32_t *sums      # of the weights
    cdef int32_t *zero      # NULL where all are 0
    cdef float *factor      # NULL: the result is int32
    cdef float *shift
    cdef int64_t groups, ig, og, quads, terms
    cdef bint depthwise
    cdef int64_t kernel[3]
    cdef int64_t stride[3]
    cdef int64_t dilation[3]

    cdef int fits(self, tuple arrays, int layout, pads) except -1


cdef struct Job:
    const fl_kernels *table
    const fl_quantized *level
    const uint8_t *x
    char *out
    const uint8_t *x_zero
    const float *x_scale
    const int8_t *panels
    const int16_t *taps
    const int8_t *bytes
    const int32_t *bias
    const int32_t *sums
    const float *factor
    fl_qepilogue epilogue
    int64_t groups, ig, og, quads, terms, channels, out_channels, item
    int64_t size[3]
    int64_t out_size[3]
    int64_t kernel[3]
    int64_t stride[3]
    int64_t dilation[3]
    int64_t before[3]
    bint x_last, out_last, in_place, depthwise
    uint8_t flip, fill  # what makes int8 uint8; x's zero point, so changed: what padding holds
    double work
    # how the work is cut, as in `conv`
    int64_t rows, cols, width, row_tasks, col_tasks, width_tasks, tasks
    int64_t pixel, row, plane  # bytes between pixels, rows and planes of what is read
    int64_t nruns
    void *lists                # the plan's own memory: runs and their lengths
    fl_qrun *runs
    int64_t *lengths
    char *scratch
    size_t scratch_size, at_band, at_flat, at_out, at_sums


# Everything about a call but where its arrays are. Gives the plan `lists`, which the caller releases.
cdef int plan_call(Job *job, PackedQConv packed, const cnp.npy_intp *x, const cnp.npy_intp *out, pads, bint x_last, bint out_last,
                   int source, int target, int value) except -1

# Operands: x, its zero point or NULL, its scale or NULL, out.
cdef int run_qconv(const void *plan, void *const *operands) noexcept nogil
