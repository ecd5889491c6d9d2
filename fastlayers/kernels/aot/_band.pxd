"""Parts that convolution and transposed convolution share: the padded input of a task, and the product over taps that are in
it."""

from libc.stdint cimport int64_t

from ._engine cimport fl_block, fl_epilogue, fl_kernels, fl_run


# Part of a padded input, brought into scratch channels-last: `ig` channels a pixel, pixels next to each other.
cdef struct Band:
    const fl_kernels *level
    int64_t size[3]        # of the input
    int64_t before[3]      # padded positions ahead of it; below 0 where its beginning is left out
    int64_t channels, ig   # of the input, and those of them that are brought in
    int mode               # of padding: a number of table.PAD_MODES
    bint last              # is the input channels-last?
    int64_t row, plane     # floats between rows and between planes of the band


# Fills `planes` planes (padded positions z, z + step, ...), in each `rows` rows from y on, in each `cols` pixels from start on.
# x: the first of the wanted channels in the image's first pixel.
cdef void fill(const Band *band, const float *x, float *to, int64_t z, int64_t step, int64_t planes, int64_t y, int64_t rows,
               int64_t start, int64_t cols) noexcept nogil

# Lists of runs under construction: neighbours become one run, which is cut where a block of K ends.
# The runs of block i are first[i] .. first[i + 1] - 1; `runs` has room for those added and one per block, `first` for blocks + 1.
cdef struct Runs:
    fl_run *runs
    int64_t *first
    int64_t count, block, room

cdef Runs no_runs(fl_run *runs, int64_t *first) noexcept nogil
cdef void add_run(Runs *list, int64_t offset, int64_t length) noexcept nogil  # below 0: so many terms that are left out
cdef void end_runs(Runs *list) noexcept nogil

# Blocks of K; one even of a sum without terms, for its epilogue.
cdef int64_t blocks_of(int64_t k) noexcept nogil

# p.c = epilogue(product of p.m rows, whose taps `runs` and `first` list, and p.n columns of packed weights). b: the weights of all
# n_all columns, of which j0 is the first that is wanted.
cdef void multiply(const fl_kernels *level, fl_block *p, const fl_run *runs, const int64_t *first, int64_t k, const float *b,
                   int64_t n_all, int64_t j0, const fl_epilogue *epilogue) noexcept nogil
