"""Convolutions many of whose taps are in padding of zeros: no product is formed with those."""

from libc.stdint cimport int64_t

from ._band cimport Band, Runs
from ._engine cimport fl_epilogue, fl_run

cdef enum:
    LARGEST = 7              # taps of an axis, for which stretches are found
    STRETCHES = 16           # of such an axis: each tap's entering and leaving begins one


# Neighbouring outputs along an axis that read the same taps inside the input.
cdef struct Stretch:
    int64_t start, size      # outputs
    int64_t first, stop      # taps


# The stretches of an axis with at most LARGEST taps; returns how many.
cdef int64_t stretches(int64_t out, int64_t size, int64_t before, int64_t kernel, int64_t stride, int64_t dilation, Stretch *to) noexcept nogil

# The taps of three stretches as runs, the others as gaps, in the order (kd, kh, kw). apart: floats between taps along each axis.
cdef void add_taps(Runs *list, const int64_t *kernel, const Stretch *z, const Stretch *y, const Stretch *x, const int64_t *apart,
                   int64_t length) noexcept nogil


# Outputs that all read the same taps.
cdef struct Piece:
    int64_t od, oh, ow, rows, cols
    int64_t number           # of their runs


# A call of `conv` that works piece by piece. Its caller fills in the first block, then asks plan_inside for the others.
cdef struct Inside:
    Band band                # the input
    int64_t groups, og, k, out_channels
    int64_t out_size[3]
    int64_t kernel[3]
    int64_t stride[3]
    int64_t dilation[3]
    bint out_last
    bint always              # also where little of the work is with padding
    const float *b
    fl_epilogue epilogue     # of the whole output: residual points at its start
    const float *x
    float *out

    int64_t images, npieces, width, width_tasks, tasks
    Piece *pieces            # and the runs of list i: runs[i * room ..], blocks + 1 starts in first[i * (blocks + 1) ..]
    int64_t *first
    fl_run *runs
    int64_t room, blocks
    # Channels-first input is transposed ahead of all, so many floats at so many tasks.
    int64_t turned, turns
    # scratch: what is transposed, then of one worker, in bytes, and where its parts start
    char *scratch
    size_t at_workers, scratch_size, at_sums, at_residual


# Plans, if much of the work is with padding: then `lists` is the plan's own memory, else NULL.
cdef int plan_inside(Inside *job, int64_t images, bint residual, void **lists) except -1

# Tasks: the context is Inside, with x, out, residual and scratch set. First all of turn_task, if there are any, then all of the other.
cdef void turn_task(void *context, int64_t number, int worker) noexcept nogil
cdef void inside_task(void *context, int64_t number, int worker) noexcept nogil
