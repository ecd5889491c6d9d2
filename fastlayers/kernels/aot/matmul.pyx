"""Batched products of two run-time operands: b is read where it is if that pays, and packed into panels for the call if not."""

from libc.math cimport fmax
from libc.stddef cimport size_t
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

from ._engine cimport (
    FL_IDENTITY, FL_KC, FL_PANEL, WEIGHT_WORK, fl_block, fl_direct, fl_epilogue, fl_kernels, fl_panels, fl_run, hands, level, with_scratch,
)
from ._space cimport shared
from .gemm cimport panels_size

cnp.import_array()

cdef enum:
    COLS = 256      # columns of a task: a block of K of them, packed, is 256 KB
    ROWS = 256      # rows of a call of the level's `block`
    LEAST = 512     # rows of a task at least, since each packs its columns again
    MANY = 128      # rows of a task that is cut for another thread and packs its columns
    TASKS = 16      # tasks from which rows are not cut
    NARROW = 64     # columns up to which b is read where it is, if they are next to each other,
    FEW = 16        # and rows up to which it is, if they do,
    FEW_ACROSS = 4  # and if they do not: then it is transposed piece by piece
    STRIP = 32      # columns of such a piece; also rows of a buffer of results
    TURN = 8        # rows of b that are transposed hand in hand: more of them, a power of two apart, would not stay in the cache

cdef struct Job:
    const fl_kernels *level
    const float *a
    const float *b
    float *out
    int64_t m, n, k
    int64_t a_step, b_step          # floats from one entry of the batch to the next; 0 if there is one for all
    int64_t tasks, row_tasks, col_tasks, width
    bint transposed, packed
    double work
    float *scratch
    int64_t scratch_size            # floats per worker
    fl_epilogue epilogue


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef void pack(const Job *job, const float *b, int64_t klen, int64_t cols, float *to) noexcept nogil:
    """A block of K as panels; b points at its first number."""
    cdef int64_t taps[FL_KC]
    cdef int64_t pixels[COLS]
    cdef fl_panels p
    cdef int64_t i, panel
    if job.transposed:
        for panel in range((cols + FL_PANEL - 1) // FL_PANEL):
            i = panel * FL_PANEL
            if cols - i < FL_PANEL:
                memset(to + i * klen, 0, FL_PANEL * klen * sizeof(float))
            job.level.transpose(b + i * job.k, job.k, to + i * klen, FL_PANEL, least(FL_PANEL, cols - i), klen)
        return
    for i in range(klen):
        taps[i] = i * job.n
    for i in range(cols):
        pixels[i] = i
    p.base, p.taps, p.pixels, p.klen, p.n, p.slack, p.b = b, taps, pixels, klen, cols, 0, to
    job.level.panels(&p)


cdef void by_panels(const Job *job, const float *a, const float *b, int64_t m, int64_t cols, float *out, float *packed) noexcept nogil:
    """A task; b points at its first column."""
    cdef const float *rows[ROWS]
    cdef fl_run run
    cdef fl_block p
    cdef int64_t k0 = 0, chunk, r, i
    p.rows, p.runs, p.nruns, p.n, p.b, p.ahead, p.ldc = rows, &run, 1, cols, packed, NULL, job.n
    while True:  # once even if k is 0: the activation is applied
        p.klen = run.length = least(FL_KC, job.k - k0)
        run.offset = k0
        pack(job, b + k0 * (1 if job.transposed else job.n), p.klen, cols, packed)
        p.accumulate = k0 > 0
        p.epilogue = &job.epilogue if k0 + p.klen == job.k else NULL
        for chunk in range((m + ROWS - 1) // ROWS):
            r = chunk * ROWS
            p.m = least(ROWS, m - r)
            for i in range(p.m):
                rows[i] = a + (r + i) * job.k
            p.c = out + r * job.n
            job.level.block(&p)
        k0 += p.klen
        if k0 >= job.k:
            break


cdef void sums(const Job *job, const float *a, const float *b, int64_t m, int64_t cols, float *out, int64_t ldc,
               float *copy) noexcept nogil:
    """Some columns of a task, as whole panels: what is in the last beyond `cols` becomes zero. `copy` takes a block of K of b where
    its columns are not next to each other in whole panels."""
    cdef fl_direct p
    cdef int64_t k0 = 0, t, i, width = panels_size(cols, 1)
    p.ai, p.at, p.c, p.ldc, p.m, p.n, p.factor = job.k, 1, out, ldc, m, width, NULL
    while True:  # once even if k is 0
        p.k = least(FL_KC, job.k - k0)
        p.a, p.accumulate = a + k0, k0 > 0
        p.b, p.bt = copy, width
        if not job.transposed and cols == width:
            p.b, p.bt = b + k0 * job.n, job.n
        elif cols < width:
            memset(copy, 0, p.k * width * sizeof(float))
        if job.transposed:
            for i in range((cols + TURN - 1) // TURN):
                job.level.transpose(b + i * TURN * job.k + k0, job.k, copy + i * TURN, width, least(TURN, cols - i * TURN), p.k)
        elif cols < width:
            for t in range(p.k):
                memcpy(copy + t * width, b + (k0 + t) * job.n, cols * sizeof(float))
        job.level.direct(&p)
        k0 += p.k
        if k0 >= job.k:
            break


cdef void in_place(const Job *job, const float *a, const float *b, int64_t m, int64_t n, float *out, float *copy) noexcept nogil:
    """A task; b points at its first column."""
    cdef float part[STRIP * STRIP]
    cdef int64_t j = 0, cols, width, chunk, r, i
    while j < n:
        cols = least(STRIP, n - j) if job.transposed else n - j
        if cols > FL_PANEL:
            cols -= cols % FL_PANEL
        width = panels_size(cols, 1)
        if cols == width:
            sums(job, a, b + j * (job.k if job.transposed else 1), m, cols, out + j, job.n, copy)
        else:
            for chunk in range((m + STRIP - 1) // STRIP):
                r = chunk * STRIP
                sums(job, a + r * job.k, b + j * (job.k if job.transposed else 1), least(STRIP, m - r), cols, part, width, copy)
                for i in range(least(STRIP, m - r)):
                    memcpy(out + (r + i) * job.n + j, part + i * width, cols * sizeof(float))
        j += cols
    if job.epilogue.code != FL_IDENTITY:
        for i in range(m):
            job.level.unary(job.epilogue.code, job.epilogue.a, job.epilogue.b, out + i * job.n, out + i * job.n, n)


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t column = number % job.col_tasks, row = number // job.col_tasks % job.row_tasks
    cdef int64_t entry = number // job.col_tasks // job.row_tasks
    cdef int64_t i0 = job.m * row // job.row_tasks, m = job.m * (row + 1) // job.row_tasks - i0
    cdef int64_t j0 = column * job.width, cols = least(job.width, job.n - j0)
    cdef const float *a = job.a + entry * job.a_step + i0 * job.k
    cdef const float *b = job.b + entry * job.b_step + j0 * (job.k if job.transposed else 1)
    cdef float *out = job.out + (entry * job.m + i0) * job.n + j0
    if job.packed:
        by_panels(job, a, b, m, cols, out, job.scratch + worker * job.scratch_size)
    else:
        in_place(job, a, b, m, cols, out, job.scratch + worker * job.scratch_size)


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    """Operands: a, b, out."""
    cdef Job job = (<const Job *>plan)[0]
    job.a, job.b, job.out = <const float *>operands[0], <const float *>operands[1], <float *>operands[2]
    return with_scratch(task, &job, <char **>&job.scratch, job.scratch_size * sizeof(float), job.tasks, job.work)


cdef int plan_matmul(Job *job, tuple a, tuple b, tuple out, bint transpose_b, activation) except -1:
    """Shapes of the arguments."""
    cdef int64_t batch, cols, rows
    cdef int most
    batch, job.m, job.n = out
    job.k = a[2]
    job.level = level()
    job.transposed = transpose_b
    if b[0] == 1 and a[0] == batch:  # the rows of all entries are rows of one product
        job.m *= batch
        batch = 1
    job.a_step, job.b_step = job.m * job.k if a[0] != 1 else 0, job.k * job.n if b[0] != 1 else 0
    job.epilogue.bias, job.epilogue.bias_by_row, job.epilogue.residual, job.epilogue.ldr = NULL, 0, NULL, 0
    job.epilogue.code, job.epilogue.a, job.epilogue.b = activation
    job.packed = job.m > FEW_ACROSS if transpose_b else job.m > FEW and job.n > NARROW
    # Few rows are bound by the reading of b.
    job.work = batch * fmax(2.0 * job.m * job.n * job.k, <double>WEIGHT_WORK * job.n * job.k)
    most = hands(job.work)
    rows = job.m
    if batch * ((job.n + COLS - 1) // COLS) < TASKS:
        rows = (job.m + max(job.m // LEAST, 1) - 1) // max(job.m // LEAST, 1)
    job.width = shared(job.n, COLS, FL_PANEL, 4 * FL_PANEL, batch * ((job.m + rows - 1) // max(rows, 1)), most)
    job.col_tasks = (job.n + job.width - 1) // job.width
    rows = shared(job.m, rows, 1, MANY if job.packed else FEW, batch * job.col_tasks, most)
    job.row_tasks = (job.m + rows - 1) // max(rows, 1)
    job.tasks = batch * job.col_tasks * job.row_tasks if job.m else 0
    cols = min(job.n, job.width)
    if job.packed:
        job.scratch_size = panels_size(cols, FL_KC)
    elif transpose_b:
        job.scratch_size = STRIP * FL_KC
    else:
        job.scratch_size = FL_PANEL * FL_KC if job.n % FL_PANEL else 0
    return 0


include "made/matmul.pxi"
