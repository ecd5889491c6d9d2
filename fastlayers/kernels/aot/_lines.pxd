"""Convolutions with few results a group: vectors are along lines of pixels, and weights are broadcast."""

from libc.stdint cimport int64_t

from ._band cimport Band
from ._engine cimport fl_epilogue


# A call of `conv` that runs along lines. Its caller fills in the first block, then asks plan_lines for the others.
cdef struct Lines:
    Band band                # the input of one image and group; row and plane are those of one phase of the stride
    int64_t groups, og, k, out_channels
    int64_t out_size[3]
    int64_t kernel[3]
    int64_t stride[3]
    int64_t dilation[3]
    bint out_last
    const float *w           # [o][k]
    fl_epilogue epilogue     # of the whole output: residual points at its start
    const float *x
    float *out

    int64_t rows, cols, row_tasks, col_tasks, tasks
    # floats of scratch between phases of rows and of columns, between channels, and all of them
    int64_t row_phase, col_phase, channel, input
    bint flat                # a task's rows are one line, with what is between them computed too
    int64_t line, pitch      # sums of a line of a whole task, in whole panels; between rows of outputs in them
    int64_t *taps            # where each term of K is, from an output's place: the plan's own memory
    # scratch of one worker, in bytes, and where its parts start
    char *scratch
    size_t scratch_size, at_input, at_sums, at_residual


# Do panels of so many results a group have many empty positions?
cdef bint few(int64_t og) noexcept nogil

# Are lines expected to be faster than panels of results? Asked once all is planned.
cdef bint cheaper(const Lines *job, bint x_last) noexcept nogil

# Cuts the work. `taps` has room for k values.
cdef void plan_lines(Lines *job, int64_t images, bint residual, int64_t *taps) noexcept nogil

# One task: the context is Lines, with x, out, residual and scratch set.
cdef void lines_task(void *context, int64_t number, int worker) noexcept nogil
