"""Products with weights of 2, 4 or 8 bits, which stay so: see csrc/nbits_types.h. Tasks are columns, of many rows some rows too."""

cimport cython
from libc.math cimport fmax
from libc.stdint cimport int32_t, int64_t, int8_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset
cimport numpy as cnp

import numpy as np

from ._engine cimport (
    FL_FINE, FL_KC, FL_NBITS_BYTES, FL_NBITS_FEW, FL_NBITS_FLOATS, FL_NBITS_HALF, FL_NBITS_PAIR, FL_NBITS_SIDE, FL_PANEL,
    alloc, copied, fl_block, fl_epilogue, fl_kernels, fl_nbits, fl_run, hands, level, need, parallel, parallel_whole, release, workers,
)
from ._fit cimport Fit, fit_of
from ._space cimport even, rounded, shared

from ...errors import ArgumentError
from ..fits import fits_bits
from ..table import NBITS_SUMS

cnp.import_array()

cdef enum:
    ROWS = 256     # of a task
    COLS = 256
    SOME_COLS = 128  # whose weights are floats at a time: a block of K of them (128 KB) stays in a second-level cache
    READ = 4       # a weight's share of reading, in the operations that `workers` counts
    ROUNDED = 16   # rows of a task that makes bytes of them
    PACK_WORK = 50 # operations that packing a byte takes, as `workers` counts

cdef Fit PACK = fit_of("nbits_pack"), FIT = fit_of("nbits")
cdef int INTEGER = NBITS_SUMS["integer"]


cdef extern from "csrc/nbits_round.h" nogil:
    enum:
        FL_ROUND_BLOCK
    int fl_nbits_round(const float *w, int bits, uint8_t *to, float *scale, double *stats)


cdef struct Job:
    const fl_kernels *level
    fl_nbits one
    int64_t k, n, row_tasks, col_tasks, width
    bint integer          # rows are integers, of so many bytes as one.digits says
    bint spread           # a block of K of the weights becomes floats: of many rows, and of codes that no register holds
    int code
    float a, b
    double work
    char *scratch         # of each worker
    size_t scratch_size
    int8_t *q             # rows as bytes, and what belongs to them
    float *steps
    float *sums
    int32_t *starts


cdef void round_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t i = number * ROUNDED, blocks = job.one.blocks
    cdef int32_t zero = 1 << (job.one.bits - 1) if job.one.kind == FL_NBITS_HALF else 0
    cdef int64_t line = i * job.one.digits
    job.level.nbits_rows(job.one.x + i * job.k, min(<int64_t>ROUNDED, job.one.m - i), job.k, job.one.block, zero, job.one.digits,
                         job.q + line * blocks * job.one.block, job.steps + i * blocks, job.sums + line * blocks, job.starts + line * blocks)


cdef void by_panels(const Job *job, const fl_nbits *p, float *scratch) noexcept nogil:
    """Many rows: a block of K of some columns becomes floats, which the product of floats takes."""
    cdef const float *rows[ROWS]
    cdef fl_run run
    cdef fl_block block
    cdef fl_epilogue e
    cdef fl_nbits some = p[0]
    cdef int64_t i, j = 0, k0, klen
    memset(&e, 0, sizeof(e))
    for i in range(p.m):
        rows[i] = p.x + i * p.pitch
    block.rows, block.m, block.runs, block.nruns, block.ldc, block.ahead, block.b = rows, p.m, &run, 1, p.ldc, NULL, scratch
    while j < p.n:
        some.n = min(<int64_t>SOME_COLS, p.n - j)
        block.n, block.c = some.n, p.out + j
        k0 = 0
        while k0 < job.k:
            klen = min(<int64_t>FL_KC, job.k - k0)
            job.level.nbits_panels(&some, k0, klen, scratch)
            run.offset, run.length, block.klen = k0, klen, klen
            block.accumulate = k0 > 0
            k0 += klen
            if k0 == job.k:
                e.bias = p.bias + j if p.bias != NULL else NULL
            block.epilogue = &e if k0 == job.k else NULL
            job.level.block(&block)
        move(&some, SOME_COLS)
        j += SOME_COLS


cdef inline void move(fl_nbits *p, int64_t columns) noexcept nogil:
    """Goes on by whole panels, as many as alternate."""
    cdef int64_t panels = columns // FL_PANEL
    p.panels -= panels
    p.weights += panels * p.blocks * p.record
    if p.zeros != NULL:
        p.zeros = <const char *>p.zeros + columns * p.blocks * (4 if p.kind == FL_NBITS_FLOATS else 1)


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Job *job = <const Job *>context
    cdef int64_t row = number // job.col_tasks, col = number % job.col_tasks, i, line
    cdef int64_t i0 = job.one.m * row // job.row_tasks, i1 = job.one.m * (row + 1) // job.row_tasks, j0 = col * job.width
    cdef int64_t wide = job.one.blocks * job.one.block
    cdef fl_nbits p = job.one
    p.m, p.n = i1 - i0, min(job.width, job.n - j0)
    move(&p, j0)
    p.x, p.out = p.x + i0 * p.pitch, p.out + i0 * p.ldc + j0
    if p.bias != NULL:
        p.bias += j0
    if job.integer:
        line = i0 * p.digits
        p.q, p.steps, p.sums = job.q + line * wide, job.steps + i0 * p.blocks, job.sums + line * p.blocks
        p.starts = job.starts + line * p.blocks
        job.level.nbits_integer(&p)
    elif not job.spread:
        job.level.nbits_exact(&p)
    else:
        by_panels(job, &p, <float *>(job.scratch + worker * job.scratch_size))
    if job.code:
        for i in range(p.m):
            job.level.unary(job.code, job.a, job.b, p.out + i * p.ldc, p.out + i * p.ldc, p.n)


cdef int run_nbits(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = job.row_tasks * job.col_tasks, m = job.one.m, wide = job.one.blocks * job.one.block, i, lines = m * job.one.digits
    cdef int threads = workers(tasks, job.work)
    cdef size_t small = rounded(lines * job.one.blocks * 4), shared_size = 0
    cdef char *memory = NULL
    cdef const float *x = <const float *>operands[0]
    if tasks == 0:
        return 0
    job.one.x, job.one.out = x, <float *>operands[1]
    if job.integer:
        shared_size = 3 * small + rounded(lines * wide)
    elif job.spread:
        job.scratch_size = rounded(SOME_COLS * FL_KC * sizeof(float))
        shared_size = threads * job.scratch_size
    elif wide > job.k:
        shared_size = m * wide * sizeof(float)
    if shared_size:
        memory = <char *>alloc(shared_size)
        if memory == NULL:
            return -1
    if job.integer:
        job.steps, job.sums, job.starts = <float *>memory, <float *>(memory + small), <int32_t *>(memory + 2 * small)
        job.q = <int8_t *>(memory + 3 * small)
        parallel(round_task, &job, (m + ROUNDED - 1) // ROUNDED, min(<int64_t>threads, (m + ROUNDED - 1) // ROUNDED))
    elif job.spread:
        job.scratch = memory
    elif wide > job.k:
        memset(memory, 0, m * wide * sizeof(float))
        for i in range(m):
            memcpy(memory + i * wide * sizeof(float), x + i * job.k, job.k * sizeof(float))
        job.one.x, job.one.pitch = <const float *>memory, wide
    parallel(task, &job, tasks, threads)
    release(memory)
    return 0


cdef bint in_registers(int64_t m, const fl_nbits *p, int width) noexcept nogil:
    """Whether sums of floats of m rows have weights made in registers alone."""
    if p.codes != NULL and p.bits == 8:
        return p.factor != 0 and m <= (FL_NBITS_FEW if width == 16 else FL_NBITS_PAIR if width == 8 else 0)
    if p.codes != NULL and width != 16:
        return False
    return m <= (FL_NBITS_PAIR if width == 16 else FL_NBITS_FEW)


cdef int plan_nbits(Job *job, PackedBits packed, tuple given, int mode, activation) except -1:
    cdef int64_t known[2]
    cdef int64_t m, rows
    cdef int most
    known[0], known[1] = packed.k, packed.n
    FIT.check(known, given, 0)
    if mode not in NBITS_SUMS.values():
        raise ArgumentError(f"nbits: mode is {mode}: expected one of {NBITS_SUMS}")
    memset(job, 0, sizeof(Job))
    m = given[0][0] if isinstance(given[0], tuple) else cnp.PyArray_DIM(<cnp.ndarray>given[0], 0)
    job.level, job.one, job.k, job.n = level(), packed.one, packed.k, packed.n
    job.code, job.a, job.b = activation
    job.one.m, job.one.pitch, job.one.ldc, job.one.bias = m, packed.k, packed.n, packed.bias
    job.one.chunk = FL_KC if job.level.fine != NULL else FL_FINE
    # In strict precision nothing is rounded to bytes.
    job.spread = not in_registers(m, &packed.one, job.level.width)
    job.integer = job.level.fine != NULL and packed.one.codes == NULL
    job.one.digits = 1 if mode == INTEGER else 3
    if job.one.digits == 3 and job.integer:
        job.integer = job.level.nbits_three(&packed.one) != 0
    job.work = fmax((0.5 * job.one.digits if job.integer else 2.0) * m * packed.n * packed.k, <double>READ * packed.n * packed.k) if m else 0
    most = hands(job.work)
    rows = even(m, ROWS)
    job.width = shared(packed.n, COLS, FL_NBITS_SIDE * FL_PANEL, FL_NBITS_SIDE * FL_PANEL, (m + rows - 1) // rows, most)
    job.col_tasks = (packed.n + job.width - 1) // job.width
    job.row_tasks = (m + rows - 1) // rows
    return 0


@cython.final
cdef class PackedBits:
    """Weights in panels of columns. Immutable; may be used by any number of threads at once."""
    cdef fl_nbits one
    cdef uint8_t *weights
    cdef void *zeros
    cdef float *bias
    cdef float *codes
    cdef int64_t n, k
    cdef readonly int64_t nbytes

    def __dealloc__(self):
        release(self.weights)
        release(self.zeros)
        release(self.bias)
        release(self.codes)


cdef inline uint32_t turned(uint32_t all, int bits) noexcept nogil:
    """The terms of a group, lowest bits first, in the order of nbits_types.h: of each four, one goes to each byte."""
    cdef uint32_t to = 0, some
    cdef int s
    if bits == 8:
        return all
    for s in range(8 // bits):
        some = all >> (4 * bits * s)
        if bits == 4:
            some &= 0xffff
            some = (some | some << 8) & 0x00ff00ff
            some = (some | some << 4) & 0x0f0f0f0f
        else:
            some &= 0xff
            some = (some | some << 12) & 0x000f000f
            some = (some | some << 6) & 0x03030303
        to |= some << (bits * s)
    return to


cdef struct Packing:
    const uint8_t *w
    const char *scale
    uint8_t *to
    int64_t n, panels, blocks, bytes, record  # bytes of a block
    int bits, width  # width: bytes of a scale


cdef void pack_task(void *context, int64_t panel, int worker) noexcept nogil:
    cdef const Packing *p = <const Packing *>context
    cdef int64_t b, g, j, column, groups = p.bytes // 4, columns = min(<int64_t>FL_PANEL, p.n - panel * FL_PANEL)
    cdef int64_t first = panel // FL_NBITS_SIDE * FL_NBITS_SIDE, side = min(<int64_t>FL_NBITS_SIDE, p.panels - first)
    cdef uint8_t *to = p.to + first * p.blocks * p.record
    cdef uint8_t *scales
    cdef uint32_t word
    for b in range(p.blocks):
        scales = to + groups * side * FL_PANEL * 4 + (panel - first) * FL_PANEL * p.width
        memset(scales, 0, FL_PANEL * p.width)
        for g in range(groups):
            memset(to + (g * side + panel - first) * FL_PANEL * 4, 0, FL_PANEL * 4)
        for j in range(columns):
            column = (panel * FL_PANEL + j) * p.blocks + b
            for g in range(groups):
                memcpy(&word, p.w + column * p.bytes + 4 * g, 4)
                word = turned(word, p.bits)
                memcpy(to + ((g * side + panel - first) * FL_PANEL + j) * 4, &word, 4)
            memcpy(scales + j * p.width, p.scale + column * p.width, p.width)
        to += side * p.record


cdef cnp.ndarray panels_of(cnp.ndarray array):
    """Values (n, b) as [panels][b][16], those past n zero."""
    n, b = (<object>array).shape
    wide = np.zeros(((n + FL_PANEL - 1) // FL_PANEL * FL_PANEL, b), array.dtype)
    wide[:n] = array
    return np.ascontiguousarray(wide.reshape(-1, FL_PANEL, b).transpose(0, 2, 1))


cdef cnp.ndarray narrowed(cnp.ndarray scale):
    """Scales as float16, if that is what they all are; else as they came."""
    with np.errstate(over="ignore", under="ignore"):
        short = scale.astype(np.float16)
    return short if np.array_equal(short, scale) else scale


cdef int as_floats(PackedBits packed, cnp.ndarray weight, cnp.ndarray codes) except -1:
    """Finds out whether all codes that occur are floats of 8 bits: a sign, and 7 bits of exponent and fraction."""
    cdef const uint8_t *w = <const uint8_t *>cnp.PyArray_DATA(weight)
    cdef const uint8_t *other
    cdef cnp.ndarray apart
    cdef int64_t i, count = cnp.PyArray_SIZE(weight)
    cdef uint8_t seen
    code = np.arange(256, dtype=np.uint32)
    for shift in (20, 21):
        plain = ((code & 127) << shift | code >> 7 << 31).view(np.float32)
        with np.errstate(all="ignore"):
            factor = codes[8] / plain[8]
            apart = (plain * factor).view(np.uint32) != codes.view(np.uint32)
        other, seen = <const uint8_t *>cnp.PyArray_DATA(apart), 0
        for i in range(count):
            seen |= other[w[i]]
        if not seen and 1 <= factor <= 2.0**120 and np.frexp(factor)[0] == 0.5:  # the product with a scale is exact
            packed.one.shift, packed.one.factor = shift, factor
            return 0
    return 0


def nbits_pack(
    cnp.ndarray weight__nbq, cnp.ndarray scale__nb, cnp.ndarray zero__nb, cnp.ndarray bias__n, int64_t size, int bits,
    cnp.ndarray codes__v=None,
):
    """Weights (out, blocks, bytes of a block) with scales and zero points, or codes: see the reference."""
    return nbits_pack_parts(-1, ((weight__nbq, scale__nb, zero__nb, bias__n, size, bits, codes__v),))


def nbits_pack_parts(int64_t count, parts):
    """`nbits_pack` of `count` columns (-1: those of one part) whose arguments come in parts, each but the last of a multiple of 64
    columns: what is made of one on the way is gone when the next one comes. None if float16 has the scales of some parts alone.
    """
    cdef PackedBits packed = None
    cdef Packing p
    cdef cnp.ndarray weight, short, wide
    cdef int64_t size, at, done = 0, n, zeros = 0
    cdef int bits
    for weight__nbq, scale__nb, zero__nb, bias__n, size, bits, codes__v in parts:
        fits_bits((weight__nbq, scale__nb, zero__nb, bias__n, codes__v), size, bits)
        weight, short, n = weight__nbq, narrowed(scale__nb), len(weight__nbq)
        p.width, p.w, p.scale, p.n = short.itemsize, <const uint8_t *>cnp.PyArray_DATA(weight), <const char *>cnp.PyArray_DATA(short), n
        p.panels, p.blocks, p.bytes, p.bits = (n + FL_PANEL - 1) // FL_PANEL, cnp.PyArray_DIM(weight, 1), cnp.PyArray_DIM(weight, 2), bits
        p.record = p.bytes * FL_PANEL + FL_PANEL * p.width
        if packed is None:
            packed = PackedBits.__new__(PackedBits)
            packed.n, packed.k = n if count < 0 else count, size
            packed.one.bits, packed.one.blocks, packed.one.block = bits, p.blocks, p.bytes * 8 // bits
            packed.one.narrow, packed.one.record, packed.one.kind = p.width == 2, p.record, FL_NBITS_HALF
            packed.one.panels = (packed.n + FL_PANEL - 1) // FL_PANEL
            packed.nbytes = packed.one.panels * p.blocks * p.record
            packed.one.weights = packed.weights = <uint8_t *>need(packed.nbytes, "nbits_pack")
            if zero__nb is not None:
                packed.one.kind = FL_NBITS_BYTES if zero__nb.dtype == np.uint8 else FL_NBITS_FLOATS
                zeros = p.blocks * FL_PANEL * zero__nb.itemsize
                packed.one.zeros = packed.zeros = need(packed.one.panels * zeros, "nbits_pack")
            if bias__n is not None:
                packed.bias = <float *>need(packed.one.panels * FL_PANEL * sizeof(float), "nbits_pack")
                memset(packed.bias, 0, packed.one.panels * FL_PANEL * sizeof(float))
            if codes__v is not None:
                packed.one.codes = packed.codes = copied(codes__v, "nbits_pack")
                if bits == 8 and count < 0 and np.abs(scale__nb).max(initial=0) < 128:
                    as_floats(packed, weight, codes__v)
        elif p.record != packed.one.record or p.blocks != packed.one.blocks:
            return None
        if done % (FL_NBITS_SIDE * FL_PANEL) or done + n > packed.n:
            raise ArgumentError(f"nbits_pack: a part of {n} columns after {done} of {packed.n}: expected multiples of 64")
        at, done = done // FL_PANEL, done + n
        p.to = packed.weights + at * p.blocks * p.record
        with nogil:
            parallel_whole(pack_task, &p, p.panels, workers(p.panels, <double>PACK_WORK * p.panels * p.blocks * p.record))
        if zeros:
            wide = panels_of(zero__nb)
            memcpy(<char *>packed.zeros + at * zeros, cnp.PyArray_DATA(wide), cnp.PyArray_NBYTES(wide))
            packed.nbytes += zero__nb.nbytes
        if packed.bias != NULL:
            wide = bias__n
            memcpy(packed.bias + at * FL_PANEL, cnp.PyArray_DATA(wide), cnp.PyArray_NBYTES(wide))
    if packed is None or done != packed.n:
        raise ArgumentError(f"nbits_pack: parts have {done} columns: expected {count}")
    return packed


cdef struct Rounding:
    const char *w         # at any address
    uint8_t *numbers
    float *scales
    double *stats         # of each panel: see fl_nbits_round
    int64_t n, k, blocks, stride_n, stride_k
    int bits


cdef void round_panel(void *context, int64_t panel, int worker) noexcept nogil:
    cdef const Rounding *p = <const Rounding *>context
    cdef int64_t first = panel * FL_PANEL, rows = min(<int64_t>FL_PANEL, p.n - first), b, i, t, at, left
    cdef const char *source
    cdef double *stats = p.stats + 3 * panel
    cdef float block[FL_PANEL * FL_ROUND_BLOCK]
    memset(stats, 0, 3 * sizeof(double))
    for b in range(p.blocks):
        left = min(<int64_t>FL_ROUND_BLOCK, p.k - b * FL_ROUND_BLOCK)
        if left < FL_ROUND_BLOCK:
            memset(block, 0, sizeof(block))
        source = p.w + first * p.stride_n + b * FL_ROUND_BLOCK * p.stride_k
        if p.stride_k == sizeof(float):
            for i in range(rows):
                memcpy(block + i * FL_ROUND_BLOCK, source + i * p.stride_n, left * sizeof(float))
        else:
            for t in range(left):
                for i in range(rows):
                    memcpy(block + i * FL_ROUND_BLOCK + t, source + t * p.stride_k + i * p.stride_n, sizeof(float))
        for i in range(rows):
            at = (first + i) * p.blocks + b
            if not fl_nbits_round(block + i * FL_ROUND_BLOCK, p.bits, p.numbers + at * (FL_ROUND_BLOCK * p.bits // 8), p.scales + at, stats):
                stats[2] = -1  # not a difference
                return


def nbits_round(weight, int bits):
    """A float32 matrix (n, k), of any strides, in numbers of 8 or 4 bits with a scale for 32 along k; None if a weight is not finite.

    Returns (n, blocks, bytes of a block), (n, blocks), and stats: sums of squares of differences and of weights, the largest difference.
    """
    cdef Rounding p
    cdef cnp.ndarray w = weight, numbers, scales, stats
    cdef int64_t panels
    if w.ndim != 2 or weight.dtype != np.float32 or bits not in (4, 8):
        raise ArgumentError(f"nbits_round: weight has shape {weight.shape} and dtype {weight.dtype}, bits is {bits}: expected a float32 matrix, 8 or 4")
    p.n, p.k, p.stride_n, p.stride_k = weight.shape[0], weight.shape[1], weight.strides[0], weight.strides[1]
    p.blocks, panels, p.bits = (p.k + FL_ROUND_BLOCK - 1) // FL_ROUND_BLOCK, (p.n + FL_PANEL - 1) // FL_PANEL, bits
    numbers = np.empty((p.n, p.blocks, FL_ROUND_BLOCK * bits // 8), np.uint8)
    scales, stats = np.empty((p.n, p.blocks), np.float32), np.empty((panels, 3))
    p.w, p.numbers, p.scales = <const char *>cnp.PyArray_DATA(w), <uint8_t *>cnp.PyArray_DATA(numbers), <float *>cnp.PyArray_DATA(scales)
    p.stats = <double *>cnp.PyArray_DATA(stats)
    with nogil:
        parallel_whole(round_panel, &p, panels, workers(panels, <double>PACK_WORK * p.n * p.k))
    if (np.asarray(stats)[:, 2] < 0).any():
        return None
    return numbers, scales, stats


include "made/nbits.pxi"
