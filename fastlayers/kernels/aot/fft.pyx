"""Fourier transforms, and sums of overlapping frames. A task is up to FL_FFT_ROWS frames, or a piece of a row of the sum."""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memset
cimport numpy as cnp

from ._engine cimport FL_FFT_ROWS, fl_fft, fl_fft_part, fl_kernels, level, parallel, with_scratch, workers
from ._fit cimport Fit, fit_of
from ._space cimport rounded

from ..fft_tables import reads, tables_of, window_fits, writes

cnp.import_array()

cdef enum:
    LANES = 4096   # points up to which rows are taken next to each other: more leave the second-level cache
    PIECE = 4096   # values of a task of `overlap_add`

ctypedef struct Job:
    const fl_kernels *table
    fl_fft one
    int64_t rows, tasks
    size_t scratch
    char *memory
    double work


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t first = number * FL_FFT_ROWS
    job.table.fft(&job.one, first, min(first + FL_FFT_ROWS, job.rows), <float *>(job.memory + worker * job.scratch))


cdef int run_fft(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, window or NULL, out."""
    cdef Job job = (<const Job *>plan)[0]
    job.one.x, job.one.window, job.one.out = <const float *>operands[0], <const float *>operands[1], <float *>operands[2]
    return with_scratch(task, &job, &job.memory, job.scratch, job.tasks, job.work)


cdef inline int64_t up(int64_t n) noexcept nogil:
    return (n + 15) // 16 * 16


cdef int lay(fl_fft_part *part, int64_t n, tuple factors, const float **roots) except -1:
    """A part, whose passes' roots begin at `roots`, which is moved after them."""
    cdef int i, radix
    cdef int64_t places = n
    part.n, part.passes = n, len(factors)
    for i in range(part.passes):
        radix = factors[i]
        places //= radix
        part.radix[i], part.roots[i] = radix, roots[0]
        roots[0] += 2 * (places * (radix - 1) + (radix if radix > 5 else 0))
    return 0


cdef inline const float *numbers(table) except? NULL:
    return NULL if table is None else <const float *>cnp.PyArray_DATA(<cnp.ndarray>table)


@cython.final
cdef class PackedFFT:
    """A plan. Immutable; may be used by any number of threads at once."""
    cdef fl_fft one
    cdef int64_t points      # of what is computed
    cdef readonly object tables
    cdef readonly int64_t nbytes

    cdef int plan(self, Job *job, tuple given, int64_t stride) except -1:
        cdef int64_t known[2]
        cdef int64_t a = self.one.second.n, b = self.one.first.n, wide, lanes
        cdef tuple x = given[0], out = given[2]
        known[0], known[1] = self.one.size, self.one.writes
        FFT_FIT.check(known, given, 0)
        window_fits(self.one.op, given[1], stride)
        memset(job, 0, sizeof(Job))
        job.table, job.one = level(), self.one
        job.one.length, job.one.frames, job.one.stride = x[1], out[1], stride
        job.rows = out[0] * out[1]
        job.tasks = (job.rows + FL_FFT_ROWS - 1) // FL_FFT_ROWS
        job.one.lanes = LANES
        # Whole vectors and blocks of register transposes are read and written: 16 more along every axis are enough.
        wide = max(self.points, self.one.n + 1) + 48
        job.one.plane = up(wide)
        lanes = (2 * wide + 32) * job.table.width if a == 1 or self.points <= 4 * LANES else 0
        job.one.room = up(max(lanes, max(2 * job.one.plane, max((b + 16) * up(a), (a + 16) * up(b)) * 2)) + 16)
        job.scratch = rounded(3 * job.one.room * sizeof(float))
        job.work = <double>job.rows * self.points * (40 if self.one.chirp == NULL else 80)
        return 0


cdef Fit FFT_FIT = fit_of("fft"), SUM_FIT = fit_of("overlap_add")


def fft_pack(int64_t size, int op, double scale):
    """A plan of transforms of `size` points; `op` is a number of `fft_tables.KINDS`, results are multiplied by `scale`."""
    cdef PackedFFT packed = PackedFFT.__new__(PackedFFT)
    cdef const float *roots
    tables = tables_of(size, op, scale)
    packed.tables, packed.nbytes = tables, tables.nbytes
    packed.one.size, packed.one.n, packed.one.op, packed.one.scale = size, tables.n, op, scale
    packed.one.reads, packed.one.writes, packed.one.pairs = reads(size, op), writes(size, op), tables.fold is not None
    roots = numbers(tables.roots)
    lay(&packed.one.first, tables.b, tables.first, &roots)
    lay(&packed.one.second, tables.a, tables.second, &roots)
    packed.one.middle, packed.one.chirp = numbers(tables.middle), numbers(tables.chirp)
    packed.one.filter, packed.one.fold = numbers(tables.filter), numbers(tables.fold)
    packed.points = tables.b * tables.a
    return packed


# ---- overlap_add ---------------------------------------------------------------------------------------------------------

ctypedef struct Sum:
    const float *x
    const float *window
    float *out
    int64_t frames, size, length, stride, offset, pieces, tasks
    bint norm
    double work


cdef void sum_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Sum *job = <const Sum *>context
    cdef int64_t row = number // job.pieces, start = number % job.pieces * PIECE, end = min(start + PIECE, job.length), f, i, low, high
    cdef float *out = job.out + row * job.length + start
    cdef const float *x
    cdef const float *w
    cdef float squares[PIECE]
    memset(out, 0, (end - start) * sizeof(float))
    memset(squares, 0, sizeof(squares))
    # The first frame that reaches number `start`; each number is the sum of its frames in their order.
    f = max((start + job.offset - job.size) // job.stride if start + job.offset >= job.size else 0, <int64_t>0) if job.stride else 0
    while f < job.frames and f * job.stride - job.offset < end:
        low, high = max(f * job.stride - job.offset, start), min(f * job.stride - job.offset + job.size, end)
        x = job.x + (row * job.frames + f) * job.size + (low - f * job.stride + job.offset)
        w = job.window + (low - f * job.stride + job.offset) if job.window != NULL else NULL
        low, high = low - start, high - start
        if w == NULL:
            for i in range(high - low):
                out[low + i] += x[i]
                squares[low + i] += 1
        else:
            for i in range(high - low):
                out[low + i] += x[i] * w[i]
            if job.norm:
                for i in range(high - low):
                    squares[low + i] += w[i] * w[i]
        f += 1
    if job.norm:
        for i in range(end - start):
            out[i] /= squares[i]


cdef int run_sum(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, window or NULL, out."""
    cdef Sum job = (<const Sum *>plan)[0]
    job.x, job.window, job.out = <const float *>operands[0], <const float *>operands[1], <float *>operands[2]
    parallel(sum_task, &job, job.tasks, workers(job.tasks, job.work))
    return 0


cdef int plan_fft(Job *job, PackedFFT packed, tuple x, tuple window, tuple out, int64_t stride) except -1:
    return packed.plan(job, (x, window, out), stride)


cdef int plan_overlap_add(Sum *job, tuple x, tuple window, tuple out, int64_t stride, int64_t offset, bint norm) except -1:
    SUM_FIT.check(NULL, (x, window, out), 0)
    window_fits(0, None, stride)
    window_fits(0, None, offset)
    memset(job, 0, sizeof(Sum))
    job.frames, job.size, job.length, job.stride, job.offset, job.norm = x[1], x[2], out[1], stride, offset, norm
    job.pieces = (job.length + PIECE - 1) // PIECE
    job.tasks = out[0] * job.pieces
    job.work = 20.0 * x[0] * x[1] * x[2] + 20.0 * out[0] * out[1]
    return 0


include "made/fft.pxi"
