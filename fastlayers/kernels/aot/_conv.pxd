"""The plan of a convolution, which the walks of `conv` share, and where the pixels of one of its tasks are."""

from libc.stdint cimport int64_t

from ._band cimport Band
from ._blocks cimport Blocks
from ._engine cimport fl_epilogue, fl_run
from ._inside cimport Inside
from ._lines cimport Lines

# Pixels and columns of one task: the sums of a task (256 KB) and a block of weights (256 KB) stay in a second-level cache.
cdef enum:
    PIXELS = 256
    COLS = 256


# The ways over a convolution's results, by the names of `table.CONV_WALKS`; the last is asked first. See `conv.plan_as`.
cdef enum:
    ROWS = 0
    SWAPPED = 1
    LINES = 2
    INSIDE = 3
    BLOCKS = 4


cdef struct Job:
    Band band               # the input of one image and group
    const float *x
    float *out
    const float *b
    fl_epilogue epilogue    # of the whole output: residual points at its start
    int64_t groups, og, k, out_channels
    int64_t out_size[3]
    int64_t kernel[3]
    int64_t stride[3]
    int64_t dilation[3]
    bint out_last           # is the output channels-last?
    bint padded             # is there any padding?
    int half                # how the weights are stored: fl_half_kind
    bint pairs              # whether the band is rounded too: fl_half_block
    double work
    int walk                # which of these has the plan; that of rows and of swapped roles follows
    Lines lines
    Inside pieces
    Blocks blocks
    bint in_place           # channels-last data without padding: pixels are read where they are
    bint by_block           # a plain product of channels-first data, which is transposed block by block of K
    # how the work is cut: rows x cols output pixels, `width` columns of the product
    int64_t rows, cols, width, row_tasks, col_tasks, width_tasks, tasks
    int64_t pixel           # floats between neighbouring pixels, or, if roles are swapped, channels; see Band for rows and planes
    void *lists             # the plan's own memory: these runs and starts, or taps
    fl_run *runs            # those of list i begin at i * room, and at i * (blocks + 1) in `first`
    int64_t *first
    int64_t *list_at        # by depth, or NULL: there is one list
    int64_t room
    # instead, if roles are swapped: where each term of K is, from the pixel; and, in scratch, the columns of one phase of the stride
    int64_t *taps
    int64_t phase
    bint packing            # all pixels are packed into panels; else only those that are no whole panel of their row
    # scratch of one worker, in bytes, and where its parts start
    char *scratch
    size_t scratch_size, at_input, at_pairs, at_sums, at_residual, at_rest


cdef inline int64_t reach(const Job *job, int axis, int64_t outputs) noexcept nogil:
    """Padded input positions under `outputs` neighbouring outputs along an axis."""
    return (outputs - 1) * job.stride[axis] + (job.kernel[axis] - 1) * job.dilation[axis] + 1


cdef inline bint dense(const Job *job) noexcept nogil:
    """A 1x1 kernel with stride 1: every pixel of the input is a pixel of the output."""
    return job.k == job.band.ig > 0 and job.stride[0] == 1 and job.stride[1] == 1 and job.stride[2] == 1


cdef inline bint in_one_row(Job *job) noexcept nogil:
    """A plain product: if so, its pixels are made one row."""
    if job.padded or not dense(job):
        return False
    job.band.size[2] = job.out_size[2] = job.band.size[0] * job.band.size[1] * job.band.size[2]
    job.band.size[0] = job.band.size[1] = job.out_size[0] = job.out_size[1] = 1
    return True


cdef struct Place:
    # Where a task's pixels are: image, group, first pixel and extent, first column of the product and their number.
    int64_t image, group, od, oh, ow, rows, cols, j0, width
    int64_t first  # the first pixel's number in its image


cdef inline Place place_of(const Job *job, int64_t number) noexcept nogil:
    cdef Place at
    cdef int64_t rest = number // job.width_tasks
    at.j0 = number % job.width_tasks * job.width
    at.width = min(job.width, job.og - at.j0)
    at.ow = rest % job.col_tasks * job.cols
    rest = rest // job.col_tasks
    at.oh = rest % job.row_tasks * job.rows
    rest = rest // job.row_tasks
    at.od = rest % job.out_size[0]
    rest = rest // job.out_size[0]
    at.group, at.image = rest % job.groups, rest // job.groups
    at.rows, at.cols = min(job.rows, job.out_size[1] - at.oh), min(job.cols, job.out_size[2] - at.ow)
    at.first = (at.od * job.out_size[1] + at.oh) * job.out_size[2] + at.ow
    return at
