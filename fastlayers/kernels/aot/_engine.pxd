"""What the driver's modules share: the level's table, threads, scratch memory, results. See csrc/*.h for each contract."""

from libc.stdint cimport int32_t, int64_t
cimport numpy as cnp

from ._quantised cimport fl_quantised


cdef extern from "csrc/fft_types.h" nogil:
    enum:
        FL_FFT_ROWS
    ctypedef struct fl_fft_part:
        int64_t n
        int passes
        int *radix
        const float **roots
    ctypedef struct fl_fft:
        const float *x
        const float *window
        float *out
        int64_t length, frames, stride, size, n, reads, writes
        int op, pairs
        float scale
        fl_fft_part first, second
        const float *middle
        const float *chirp
        const float *filter
        const float *fold
        int64_t plane, room, lanes

cdef extern from "csrc/kernels.h" nogil:
    enum:
        FL_PANEL
        FL_KC
        FL_IDENTITY
        FL_RELU
        FL_CLIP
        FL_SQRT
        FL_SQUARE
        FL_ABS
        FL_UNARY_COUNT
        FL_POWER
        FL_DIVIDE
    ctypedef struct fl_run:
        int64_t offset, length
    ctypedef struct fl_epilogue:
        const float *bias
        int bias_by_row
        const float *residual
        int64_t ldr
        int code
        float a, b
    ctypedef struct fl_block:
        const float *const *rows
        int64_t m, n
        const fl_run *runs
        int64_t nruns, klen
        const float *b
        const float *ahead
        float *c
        int64_t ldc
        int accumulate
        const fl_epilogue *epilogue
    ctypedef struct fl_direct:
        const float *a
        int64_t ai, at
        const float *b
        int64_t bt
        float *c
        int64_t ldc, m, n, k
        const float *factor
        int accumulate
    ctypedef struct fl_panels:
        const float *base
        const int64_t *taps
        const int64_t *pixels
        int64_t klen, n
        int slack
        float *b
    enum fl_cell_kind:
        FL_LSTM
        FL_GRU
        FL_GRU_EARLY
        FL_RNN
    ctypedef struct fl_function:
        int code
        float a, b
    ctypedef struct fl_cell:
        int kind, gates, standard, coupled
        int64_t hidden, hp, terms, tp
        const float *r
        const float *late
        const float *bias
        const float *peephole
        const float *project
        fl_function gate, cell, out
        float clip
    ctypedef struct fl_recurrent_step:
        const fl_cell *cell
        int64_t rows
        const float *xg
        int64_t xg_block, xg_row
        const float *h
        float *h_next
        float *c
        float *spare
        int backwards
        int64_t first, last
    ctypedef struct fl_recurrent_input:
        const float *const *rows
        int64_t m, inputs, gates, blocks
        const float *w
        const float *bias
        float *xg
        int64_t xg_block, xg_row
    enum:
        FL_QUERIES
    int64_t FL_ATTENTION_SCRATCH(int64_t d, int64_t e)
    ctypedef struct fl_attention:
        const float *q
        int64_t qi
        const float *k
        int64_t kj, kt
        const float *v
        int64_t vj
        const float *mask
        int64_t mi, mj
        const float *tiles
        int64_t tiles_strip
        float *out
        int64_t oi
        int64_t rows, keys, d, e
        int64_t last
        float scale
        float bound
        float empty
        int zeros
        float *scratch
    ctypedef struct fl_dw_last:
        const float *const *taps
        int64_t ntaps, kw, step
        const float *w
        const float *bias
        const float *residual
        float *out
        int64_t c, cols
        int code
        float a, b
    ctypedef struct fl_dw_copy:
        int64_t from_ "from", to, n
    ctypedef struct fl_dw_first:
        float *x
        const float *source
        const fl_dw_copy *copies
        int64_t ncopies, source_step
        const int64_t *taps
        int64_t kh, kw, row, step
        const float *w
        float bias
        const float *residual
        float *out
        int64_t ldo, rows, cols
        int code
        float a, b
    ctypedef struct fl_dw_block:
        const float *x
        int64_t x_row, x_pixel, lanes
        float *band
        int64_t band_rows, band_row, top, h, left, w
        int64_t kh, kw, row_step, tap_step, down, step
        const float *weight
        const float *bias
        const float *residual
        int64_t residual_row, residual_pixel
        float *out
        int64_t out_row, out_pixel, rows, cols
        int code
    ctypedef struct fl_broadcast:
        const unsigned char *condition
        const float *a
        const float *b
        void *out
        int64_t rows, cols
        int64_t condition_row, a_row, b_row
        int condition_col, a_col, b_col
    ctypedef struct fl_move:
        const void *x
        void *out
        int size
        int64_t rows, cols, x_row, x_col, out_row, out_col
    ctypedef struct fl_wino_in:
        int m
        const float *const *rows
        int64_t tiles
        float *v
        int64_t point, tile
    ctypedef struct fl_wino_out:
        int m
        const float *s
        int64_t point, tile
        int64_t tiles, rows, cols, c
        const float *bias
        const float *residual
        float *out
        int64_t row, pixel
        int code
        float a, b
    ctypedef struct fl_pool_row:
        int64_t from_ "from", nz, ny
        const float *scale
    ctypedef struct fl_pool:
        const float *x
        const fl_pool_row *rows
        int64_t nrows, step_z, step_y, runs, run, run_step
        float *line
        float *spare
        int64_t pitch, left, kw, tap, step
        float *out
        int64_t ldo, out_pixel, first, cols, c
        int average
        int gathered
        const int32_t *masks
        int64_t period
    ctypedef struct fl_bins:
        const int64_t *z
        const int64_t *y
        const int64_t *x
        int64_t ny, nx, plane, row, cols, c
        int average
        float *line
    ctypedef struct fl_taps:
        int64_t n, taps, pitch
        const int32_t *index
        const float *weight
        const int32_t *base
        int64_t size
    ctypedef struct fl_affine:
        const float *x
        const float *scale
        const float *shift
        float *y
        int64_t channels, inner
        int code
        float a, b
    ctypedef struct fl_lrn:
        int64_t channels, inner, before, after
        float alpha, beta, bias
    ctypedef struct fl_tree_place:
        double log
        int64_t child

    enum:
        FL_LINEAR_STRIP
    ctypedef struct fl_linear:
        const float *q
        const float *k
        const float *v
        const float *gate
        const float *beta
        float *state
        float *out
        int64_t steps, d, e, cols, heads, gates
        int64_t q_step, k_step, v_step, gate_step, beta_step, out_step
        float scale

    ctypedef struct fl_kernels:
        int abi
        const char *name
        int width, mr
        void (*block)(const fl_block *p) noexcept nogil
        void (*block_at)(const fl_block *p, const int64_t *taps) noexcept nogil
        void (*direct)(const fl_direct *p) noexcept nogil
        void (*attention)(const fl_attention *p) noexcept nogil
        void (*attention_tiles)(const float *mask, int64_t stride, int64_t rows, int64_t n, float *tiles) noexcept nogil
        float (*magnitude)(const float *x, int64_t n) noexcept nogil
        int (*masked_scores)(const float *x, float scale, const float *mask, int64_t mj, int64_t seen, float *y, int64_t n) noexcept nogil
        void (*additive_scores)(const float *q, const float *k, const float *scale, int64_t n, int64_t u, float *out) noexcept nogil
        void (*rotary)(const float *x, const float *cos, const float *sin, float *out, int64_t rows, int64_t d, int64_t half,
                       int paired) noexcept nogil
        void (*fft)(const fl_fft *p, int64_t first, int64_t last, float *scratch) noexcept nogil
        void (*linear)(const fl_linear *p) noexcept nogil
        void (*panels)(const fl_panels *p) noexcept nogil
        void (*gather)(const float *from_, int64_t step, float *to, int64_t n) noexcept nogil
        void (*unary)(int code, float a, float b, const float *x, float *y, int64_t n) noexcept nogil
        void (*prelu)(const float *x, const float *slope, int each, float *y, int64_t n) noexcept nogil
        void (*gated)(int code, const float *a, const float *g, float *y, int64_t n) noexcept nogil
        void (*softmax_rows)(const float *x, float *y, int64_t rows, int64_t n, int logarithm) noexcept nogil
        void (*softmax_inner)(const float *x, float *y, int64_t n, int64_t inner, int64_t columns, int logarithm) noexcept nogil
        void (*recurrent_input)(const fl_recurrent_input *p) noexcept nogil
        void (*recurrent_step)(const fl_recurrent_step *p) noexcept nogil
        void (*depthwise_last)(const fl_dw_last *p) noexcept nogil
        void (*depthwise_first)(const fl_dw_first *p) noexcept nogil
        void (*depthwise_block)(const fl_dw_block *p) noexcept nogil
        void (*winograd_in)(const fl_wino_in *p) noexcept nogil
        void (*winograd_out)(const fl_wino_out *p) noexcept nogil
        void (*reduce_rows)(int code, const float *x, int64_t ldx, float *out, int64_t rows, int64_t n) noexcept nogil
        void (*reduce_columns)(int code, const float *x, int64_t n, int64_t inner, float *out, int64_t columns) noexcept nogil
        void (*pool)(const fl_pool *p) noexcept nogil
        void (*bins)(const fl_bins *p, const float *x, float *out, int64_t first, int64_t last) noexcept nogil
        void (*taps)(const fl_taps *p, const float *x, float *out, int64_t c) noexcept nogil
        void (*mix)(const float *const *rows, const float *weight, int64_t count, float *out, int64_t n) noexcept nogil
        void (*layer_norm)(const float *x, const float *weight, const float *bias, float *y, int64_t rows, int64_t n, float epsilon,
                           int rms) noexcept nogil
        void (*group_norm)(const float *x, const float *weight, const float *bias, float *y, int64_t first, int64_t rows,
                           int64_t groups, int64_t channels, int64_t inner, float epsilon) noexcept nogil
        void (*affine)(const fl_affine *p, int64_t start, int64_t end) noexcept nogil
        void (*lrn)(const fl_lrn *p, const float *x, float *y, int64_t columns, float *squares) noexcept nogil
        void (*transpose)(const float *src, int64_t lds, float *dst, int64_t ldd, int64_t rows, int64_t cols) noexcept nogil
        void (*binary)(int op, float lo, float hi, const fl_broadcast *p) noexcept nogil
        void (*compare)(int op, const fl_broadcast *p) noexcept nogil
        void (*where)(const fl_broadcast *p) noexcept nogil
        void (*move)(const fl_move *p) noexcept nogil
        int (*within)(const int64_t *indices, int64_t m, int64_t n) noexcept nogil
        void (*take)(const void *x, int64_t n, const int64_t *indices, int64_t m, int64_t bytes, void *out) noexcept nogil
        void (*cast)(const void *from_, int source, void *to, int target, int64_t n) noexcept nogil
        float (*tree_path)(const float *x, const float *weight, const float *bias, int64_t d, const int64_t *points,
                           const int64_t *codes, int64_t length) noexcept nogil
        void (*tree_spread)(const float *sums, const int64_t *order, const int64_t *left, const int64_t *right, int64_t m, double *logs,
                            float *out) noexcept nogil
        int64_t (*tree_best)(const float *x, const float *weight, const float *bias, int64_t d, const int64_t *left,
                             const int64_t *right, int64_t root, fl_tree_place *stack, float *log) noexcept nogil
        const fl_quantised *quantised
        double (*probe_fma)(int64_t rounds) noexcept nogil
        float (*probe_read)(const float *x, int64_t n) noexcept nogil

cdef extern from "csrc/pool.h" nogil:
    ctypedef void (*fl_task_fn)(void *context, int64_t task, int worker) noexcept nogil


# The table of the selected level, or of the one that this thread binds a model for; never NULL while a kernel runs.
cdef const fl_kernels *level() noexcept nogil
# Is a compiled variant in use? Only objects that were made under it and are called without dispatch have to ask.
cdef bint enabled() noexcept nogil
# How many threads a job of `tasks` tasks and `work` operations (about: 100 a nanosecond) gets; also how many slots of scratch it needs.
cdef int workers(int64_t tasks, double work) noexcept nogil
# For plans, which cut a job of so much work: among how many threads at most. Later runs may have fewer; the most that there have been
# count, since a finer cut costs one thread nothing that could be measured (SqueezeNet, ShuffleNet, DenseNet-121, ResNet-50).
cdef int hands(double work) noexcept nogil
# Limits what `workers` gives to jobs of the calling thread (0: no limit); returns the limit before, which the caller puts back.
cdef int limit_threads(int most) noexcept nogil
# Runs the tasks on `threads` (a result of `workers`) threads.
cdef void parallel(fl_task_fn fn, void *context, int64_t tasks, int threads) noexcept nogil
# Brackets jobs that follow each other closely: in between, workers stay awake for some microseconds. Every begin has its end.
cdef void run_begin() noexcept nogil
# After a begin: the workers of a run of so much work are called, if that pays.
cdef void run_wake(double work) noexcept nogil
cdef void run_end() noexcept nogil
# Scratch: 64-byte aligned, NULL where there is no memory.
cdef void *alloc(size_t bytes) noexcept nogil
# Around the wait for the GIL at the end of a run that gave it up: who works in Python meanwhile hands it over (`give_way`).
cdef void want_gil() noexcept nogil
cdef void have_gil() noexcept nogil

cdef void release(void *block) noexcept nogil

# Around the wait for the GIL at the end of a run that gave it up: who works in Python meanwhile hands it over (`give_way`).
cdef void want_gil() noexcept nogil
cdef void have_gil() noexcept nogil
# The same with the GIL held, raising LimitError in the name of `what`; and a copy of a contiguous array in such memory.
cdef void *need(size_t bytes, str what) except? NULL
cdef float *copied(cnp.ndarray array, str what) except? NULL
# A new float32 array, not initialised, writable and C-contiguous; raises MemoryError.
cdef cnp.ndarray empty(int ndim, cnp.npy_intp *shape)
# Between the two, memory of this thread is counted, see `Counted`; and whether so many bytes are left where it is.
cdef object count_begin(int64_t most)
cdef int count_end(object begun) except -1
cdef bint has_room(size_t bytes) noexcept nogil
# Below this many operations (see `workers`) giving up the GIL costs more than it brings.
cdef double RELEASE_GIL
