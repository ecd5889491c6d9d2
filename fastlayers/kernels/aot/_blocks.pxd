"""Depthwise convolutions sixteen channels at a time, of either layout: see csrc/depthwise_block.h."""

from libc.stdint cimport int64_t

from ._engine cimport fl_dw_block, fl_kernels


# A call of `depthwise` that works by blocks. Its caller fills in the first part, then asks plan_blocks for the others.
cdef struct Blocks:
    const fl_kernels *level
    int64_t channels         # of the result
    int64_t many             # results of a channel of the input; more than one where channels are last alone
    bint last                # are the channels last?
    int64_t mix              # channels of a group, of which each result has all: 2, 4 or 8; 0: depthwise
    bint pairs               # of those: is w in bfloat16, [block][taps][pairs of channels][16][2]?
    int64_t size[2]          # height and width, as below
    int64_t out_size[2]
    int64_t kernel[2]
    int64_t stride[2]
    int64_t dilation[2]
    int64_t before[2]
    int code
    float a, b
    const float *w           # [block][taps][16], or [block][taps][mix][16]
    const float *bias        # whole blocks
    const float *x
    float *out
    const float *residual

    fl_dw_block call         # what all tasks share
    int64_t rows, bands, lane_tasks, tasks
    # scratch of one worker, in bytes, and where its parts start
    char *scratch
    size_t scratch_size, at_in, at_out, at_residual


cdef void plan_blocks(Blocks *job, int64_t images, bint residual) noexcept nogil

# One task: the context is Blocks.
cdef void blocks_task(void *context, int64_t number, int worker) noexcept nogil
