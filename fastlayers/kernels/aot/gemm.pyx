"""Linear layers: packs weights into panels once, and walks blocks of rows, columns and K over the level's `block`."""

cimport cython
from libc.math cimport fmax
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memcpy, memset
cimport numpy as cnp
import numpy as np

from ._engine cimport (
    FL_KC, FL_PANEL, WEIGHT_WORK,
    empty, enabled, FL_HALF, fl_block, fl_epilogue, fl_kernels, fl_run, hands, level, need, parallel, parallel_whole, release, workers,
)
from ._fit cimport Fit, fit_of
from ._halves cimport half_product, halves_size, pack_halves
from ._space cimport even, shared
from ._step cimport make_step, run_plan

from ...errors import ArgumentError, DTypeError, FormatError
from ..halves import STORED
from ..table import HALF_KINDS

cnp.import_array()

# Rows and columns of one task. A block of K of ROWS rows (256 KB) and the ROWS x COLS sums (256 KB) stay in a second-level cache.
cdef enum:
    ROWS = 256
    COLS = 256
    FEW_ROWS = 32  # of a task that is cut for another thread
    HALF_COLS = 1024  # of a task with weights of 16 bits: x is rounded for each
    WIDE = 8          # panels that are packed at a time where these are columns of the weights
    PACK_WORK = 50    # operations that packing a weight takes, as `workers` counts

cdef Fit PACK = fit_of("linear_pack"), FIT = fit_of("linear")


cdef int64_t panels_size(int64_t n, int64_t k) noexcept nogil:
    return (n + FL_PANEL - 1) // FL_PANEL * FL_PANEL * k


cdef struct Packing:
    const fl_kernels *level
    const char *w         # at any address: files have weights wherever these are
    float *b
    int64_t groups, n, k
    int64_t stride_n, stride_k  # bytes; one of them is that of a float
    int64_t pieces        # of a group


cdef void pack_rows(const Packing *p, const char *w, float *b, int64_t first, int64_t last) noexcept nogil:
    """Panels of weights [n][k]: each goes along whole rows, so that a page of them is met once."""
    cdef float rows[FL_PANEL * FL_KC]
    cdef int64_t panels = (p.n + FL_PANEL - 1) // FL_PANEL, panel, k0, klen, cols, j
    cdef const char *source
    cdef float *to
    for panel in range(first, last):
        cols = min(<int64_t>FL_PANEL, p.n - panel * FL_PANEL)
        k0 = 0
        while k0 < p.k:
            klen = min(<int64_t>FL_KC, p.k - k0)
            source, to = w + panel * FL_PANEL * p.stride_n + k0 * sizeof(float), b + panels * FL_PANEL * k0 + panel * FL_PANEL * klen
            if cols < FL_PANEL:
                memset(to, 0, klen * FL_PANEL * sizeof(float))
            if <size_t>w % sizeof(float) == 0 and p.stride_n % sizeof(float) == 0:
                p.level.transpose(<const float *>source, p.stride_n // <int64_t>sizeof(float), to, FL_PANEL, cols, klen)
            else:
                for j in range(cols):
                    memcpy(rows + j * klen, source + j * p.stride_n, klen * sizeof(float))
                p.level.transpose(rows, klen, to, FL_PANEL, cols, klen)
            k0 += klen


cdef void pack_columns(const Packing *p, const char *w, float *b, int64_t first, int64_t last) noexcept nogil:
    """Strips of weights [k][n], which are WIDE panels of a block of K: a strip's terms are copied one after the other."""
    cdef int64_t panels = (p.n + FL_PANEL - 1) // FL_PANEL, wide = (panels + WIDE - 1) // WIDE, strip, k0, klen, t, panel, cols
    cdef int64_t before, after
    cdef const char *source
    cdef float *to
    for strip in range(first, last):
        k0, before = strip // wide * FL_KC, strip % wide * WIDE
        klen, after = min(<int64_t>FL_KC, p.k - k0), min(panels, before + WIDE)
        to = b + panels * FL_PANEL * k0 + before * FL_PANEL * klen
        for t in range(klen):
            source = w + (k0 + t) * p.stride_k + before * FL_PANEL * sizeof(float)
            for panel in range(after - before):
                cols = p.n - (before + panel) * FL_PANEL
                if cols >= FL_PANEL:
                    memcpy(to + (panel * klen + t) * FL_PANEL, source + panel * FL_PANEL * sizeof(float), FL_PANEL * sizeof(float))
                else:
                    memset(to + (panel * klen + t) * FL_PANEL, 0, FL_PANEL * sizeof(float))
                    memcpy(to + (panel * klen + t) * FL_PANEL, source + panel * FL_PANEL * sizeof(float), cols * sizeof(float))


cdef void pack_task(void *context, int64_t number, int worker) noexcept nogil:
    cdef const Packing *p = <const Packing *>context
    cdef int64_t group = number // p.pieces, piece = number % p.pieces, panels = (p.n + FL_PANEL - 1) // FL_PANEL, all
    cdef const char *w = p.w + group * p.n * p.k * sizeof(float)
    cdef float *b = p.b + group * panels_size(p.n, p.k)
    if p.stride_k == sizeof(float):
        pack_rows(p, w, b, panels * piece // p.pieces, panels * (piece + 1) // p.pieces)
    else:
        all = (p.k + FL_KC - 1) // FL_KC * ((panels + WIDE - 1) // WIDE)
        pack_columns(p, w, b, all * piece // p.pieces, all * (piece + 1) // p.pieces)


cdef void pack_panels(const float *w, int64_t n, int64_t k, float *b) noexcept nogil:
    cdef Packing p
    p.level = level()
    p.w, p.b, p.n, p.k, p.stride_n, p.stride_k = <const char *>w, b, n, k, k * sizeof(float), sizeof(float)
    pack_rows(&p, p.w, b, 0, (n + FL_PANEL - 1) // FL_PANEL)


cdef void pack_shared(Packing *p) noexcept:
    """All groups on the threads that are there, with the GIL given up, where that takes long."""
    cdef int64_t i, size = p.n * p.k
    p.level = level()
    p.pieces = max(<int64_t>1, min(size // LARGE, (p.n + FL_PANEL - 1) // FL_PANEL))
    if p.groups * size < LARGE:
        for i in range(p.groups):
            pack_task(p, i, 0)
    else:
        with nogil:
            parallel_whole(pack_task, p, p.groups * p.pieces, workers(p.groups * p.pieces, <double>PACK_WORK * p.groups * size))


cdef void pack_all(const float *w, int64_t groups, int64_t n, int64_t k, float *b) noexcept:
    cdef Packing p
    p.w, p.b, p.groups, p.n, p.k, p.stride_n, p.stride_k = <const char *>w, b, groups, n, k, k * sizeof(float), sizeof(float)
    pack_shared(&p)


cdef void product(const fl_kernels *lv, const float *x, int64_t ldx, int64_t m, int64_t k, const float *b, int64_t n_all, int64_t j0,
                  int64_t n, float *out, int64_t ldc, const fl_epilogue *epilogue) noexcept nogil:
    cdef const float *rows[ROWS]
    cdef fl_run run
    cdef fl_block p
    cdef fl_epilogue e = epilogue[0]
    cdef int64_t i, m0 = 0, k0, klen, left = m
    cdef int64_t panels = (n_all + FL_PANEL - 1) // FL_PANEL
    p.rows, p.runs, p.nruns, p.n, p.ldc = rows, &run, 1, n, ldc
    while left > 0:
        p.m = (left + (left + ROWS - 1) // ROWS - 1) // ((left + ROWS - 1) // ROWS)  # chunks of even height
        for i in range(p.m):
            rows[i] = x + (m0 + i) * ldx
        p.c = out + m0 * ldc
        if epilogue.residual != NULL:
            e.residual = epilogue.residual + m0 * e.ldr
        k0 = 0
        while True:  # once even if k is 0: the epilogue is applied
            klen = min(<int64_t>FL_KC, k - k0)
            run.offset, run.length, p.klen = k0, klen, klen
            p.b = b + panels * FL_PANEL * k0 + j0 * klen
            p.ahead = b + panels * FL_PANEL * (k0 + klen) + j0 * min(<int64_t>FL_KC, k - k0 - klen) if k0 + klen < k else NULL
            p.accumulate = k0 > 0
            p.epilogue = &e if k0 + klen == k else NULL
            lv.block(&p)
            k0 += klen
            if k0 >= k:
                break
        m0 += p.m
        left -= p.m


cdef struct Job:
    const fl_kernels *level
    const float *x
    const float *b
    float *out
    int64_t m, n, k, row_tasks, col_tasks, width
    int half  # how b is stored: fl_half_kind
    double work
    fl_epilogue epilogue


cdef void task(void *context, int64_t number, int worker) noexcept nogil:
    cdef Job *job = <Job *>context
    cdef int64_t row = number // job.col_tasks, col = number % job.col_tasks
    cdef int64_t i0 = job.m * row // job.row_tasks, i1 = job.m * (row + 1) // job.row_tasks
    cdef int64_t j0 = col * job.width, j1 = min(job.n, j0 + job.width)
    cdef fl_epilogue e = job.epilogue
    if e.bias != NULL:
        e.bias += j0
    if e.residual != NULL:
        e.residual += i0 * job.n + j0
    if job.half:
        half_product(job.level, job.half, job.x + i0 * job.k, job.k, i1 - i0, job.k, <const uint16_t *>job.b, job.n, j0, j1 - j0,
                     job.out + i0 * job.n + j0, job.n, &e)
        return
    product(job.level, job.x + i0 * job.k, job.k, i1 - i0, job.k, job.b, job.n, j0, j1 - j0, job.out + i0 * job.n + j0, job.n, &e)


cdef int run(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, out, residual or NULL."""
    cdef Job job = (<const Job *>plan)[0]
    cdef int64_t tasks = job.row_tasks * job.col_tasks
    cdef int threads = workers(tasks, job.work)
    job.x, job.out, job.epilogue.residual = <const float *>operands[0], <float *>operands[1], <const float *>operands[2]
    parallel(task, &job, tasks, threads)
    return 0


@cython.final
cdef class Panels:
    """Packed weights. Immutable once they are filled."""

    def __dealloc__(self):
        if self.owner is None:
            release(self.data)

    @property
    def nbytes(self):
        """Bytes of the panels, or 0 where they are those of a file."""
        return self.bytes if self.owner is None else 0

    def array(self):
        """The values as a read-only array over this memory."""
        cdef cnp.npy_intp shape = <cnp.npy_intp>(self.bytes // sizeof(float))
        cdef cnp.ndarray view = cnp.PyArray_SimpleNewFromData(1, &shape, cnp.NPY_FLOAT32, self.data)
        cnp.set_array_base(view, self)
        view.flags.writeable = False
        return view


cdef Panels make_panels(size_t count, cnp.ndarray stored, str what):
    cdef Panels panels = Panels.__new__(Panels)
    panels.bytes = count * sizeof(float)
    if stored is None:
        panels.data = <float *>need(panels.bytes, what)
        return panels
    if cnp.PyArray_TYPE(stored) != cnp.NPY_FLOAT32 or not cnp.PyArray_ISCARRAY_RO(stored) or <size_t>cnp.PyArray_SIZE(stored) != count:
        raise FormatError(f"{what}: stored weights are {stored.dtype} of shape {(<object>stored).shape}: expected {count} float32 values")
    panels.data, panels.owner = <float *>cnp.PyArray_DATA(stored), stored
    return panels


@cython.final
cdef class PackedLinear:
    """Weights of a linear layer in panels. Immutable; may be used by any number of threads at once."""
    cdef readonly Panels panels  # None if `half`
    cdef uint16_t *halves        # NULL unless `half`
    cdef float *bias
    cdef int64_t n, k
    cdef int half                # how the weights are stored: fl_half_kind

    def __dealloc__(self):
        release(self.bias)
        release(self.halves)

    @property
    def nbytes(self):
        """Bytes of the weights."""
        return halves_size(self.half, self.n, self.k) * sizeof(uint16_t) if self.half else self.panels.nbytes

    cdef void plan(self, Job *job, int64_t m, int code, float a, float b) noexcept:
        job.level = level()
        job.half = self.half
        job.b = <const float *>self.halves if self.half else self.panels.data
        job.m, job.n, job.k = m, self.n, self.k
        job.epilogue.bias, job.epilogue.bias_by_row = self.bias, 0
        job.epilogue.residual, job.epilogue.ldr = NULL, self.n
        job.epilogue.code, job.epilogue.a, job.epilogue.b = code, a, b
        # One row is bound by the memory that holds the weights: see WEIGHT_WORK.
        job.work = fmax(2.0 * m, <double>WEIGHT_WORK) * columns_size(job.level, self.n) * self.k if m else 0
        cdef int most = hands(job.work)
        cdef int64_t rows = even(m, ROWS)
        job.width = shared(self.n, HALF_COLS if self.half else COLS, FL_PANEL, 4 * FL_PANEL, (m + rows - 1) // rows, most)
        job.col_tasks = (self.n + job.width - 1) // job.width
        rows = shared(m, rows, 1, FEW_ROWS, job.col_tasks, most)
        job.row_tasks = (m + rows - 1) // rows

    cdef int fits(self, x, out, residual) except -1:
        cdef int64_t known[2]
        known[0], known[1] = self.k, self.n
        return FIT.check(known, (x, out, residual), 0)

    def bind(self, activation):
        """This layer with its activation, ready to be called from Python with nothing in between."""
        cdef BoundLinear bound = BoundLinear.__new__(BoundLinear)
        bound.packed = self
        bound.code, bound.a, bound.b = activation
        return bound


@cython.final
cdef class BoundLinear:
    """A packed linear layer and its activation."""
    cdef PackedLinear packed
    cdef int code
    cdef float a, b

    def call(self, x):
        """act(x Wᵀ + b) for a plain float32 C-contiguous ndarray whose last axis fits; None for anything else."""
        cdef cnp.ndarray array, out
        cdef cnp.npy_intp shape[32]
        cdef void *operands[3]
        cdef Job job
        cdef PackedLinear packed = self.packed
        cdef int i, ndim
        cdef int64_t m = 1
        if not cnp.PyArray_CheckExact(x) or not enabled():
            return None
        array = <cnp.ndarray>x
        ndim = cnp.PyArray_NDIM(array)
        if ndim == 0 or ndim > 32 or cnp.PyArray_TYPE(array) != cnp.NPY_FLOAT32 or not cnp.PyArray_ISCARRAY_RO(array):
            return None
        if cnp.PyArray_DIM(array, ndim - 1) != packed.k:
            return None
        for i in range(ndim - 1):
            shape[i] = cnp.PyArray_DIM(array, i)
            m *= shape[i]
        shape[ndim - 1] = packed.n
        out = empty(ndim, shape)
        packed.plan(&job, m, self.code, self.a, self.b)
        operands[0], operands[1], operands[2] = cnp.PyArray_DATA(array), cnp.PyArray_DATA(out), NULL
        run_plan(run, &job, operands, job.work, "linear")
        return out


def linear_pack(cnp.ndarray weight__nk, cnp.ndarray bias__n):
    """Weights (out, in), in either order of memory and at any address, and bias (out,) of ``y = x Wᵀ + b``."""
    return linear_restore(weight__nk, bias__n, None)


def linear_restore(cnp.ndarray weight__nk, cnp.ndarray bias__n, cnp.ndarray stored):
    """`linear_pack` of weights that are there packed: `stored` is what ``packed.panels.array()`` of the same weights was, or None."""
    PACK.check(NULL, (weight__nk, bias__n), 0)
    cdef PackedLinear packed = PackedLinear.__new__(PackedLinear)
    cdef int64_t n = cnp.PyArray_DIM(weight__nk, 0), k = cnp.PyArray_DIM(weight__nk, 1)
    packed.n, packed.k = n, k
    packed.panels = make_panels(panels_size(n, k), stored, "linear_pack")
    cdef Packing p
    if stored is None:
        if cnp.PyArray_TYPE(weight__nk) != cnp.NPY_FLOAT32 or not weight__nk.dtype.isnative:
            raise DTypeError(f"linear_pack: weight has dtype {weight__nk.dtype}: expected float32")
        p.w, p.b, p.groups, p.n, p.k = <const char *>cnp.PyArray_DATA(weight__nk), packed.panels.data, 1, n, k
        p.stride_n, p.stride_k = k * sizeof(float), sizeof(float)
        if not weight__nk.flags.c_contiguous:
            p.stride_n, p.stride_k = sizeof(float), n * sizeof(float)
            if not weight__nk.flags.f_contiguous:
                raise ArgumentError("linear_pack: weight has its elements apart: expected [n][k] or [k][n] in memory")
        pack_shared(&p)
    if bias__n is not None:
        packed.bias = <float *>need(panels_size(n, 1) * sizeof(float), "linear_pack")
        memset(packed.bias, 0, panels_size(n, 1) * sizeof(float))
        memcpy(packed.bias, cnp.PyArray_DATA(bias__n), n * sizeof(float))
    return packed


cdef struct Narrow:
    const uint16_t *w
    uint16_t *to
    int64_t n, k, stride_n, stride_k
    int half


cdef void narrow_task(void *context, int64_t panel, int worker) noexcept nogil:
    """A panel of weights that have 16 bits already."""
    cdef const Narrow *p = <const Narrow *>context
    cdef const uint16_t *w = p.w + panel * FL_PANEL * p.stride_n
    cdef int64_t panels = (p.n + FL_PANEL - 1) // FL_PANEL, cols = min(<int64_t>FL_PANEL, p.n - panel * FL_PANEL), k0 = 0, klen, size, t, j
    cdef int64_t pair = 1 if p.half == FL_HALF else 2
    cdef uint16_t *to
    while k0 < p.k:
        klen = min(<int64_t>FL_KC, p.k - k0)
        size = (klen + pair - 1) // pair * pair
        to = p.to + (panels * k0 + panel * size) * FL_PANEL
        if cols < FL_PANEL or size > klen:
            memset(to, 0, size * FL_PANEL * sizeof(uint16_t))
        for j in range(cols):
            for t in range(klen):
                to[(t // pair * FL_PANEL + j) * pair + t % pair] = w[j * p.stride_n + (k0 + t) * p.stride_k]
        k0 += klen


def linear_half_pack(cnp.ndarray weight__nk, cnp.ndarray bias__n, int half):
    """`linear_pack` with weights stored in 16 bits; `half` is one of `table.HALF_KINDS`. They may be so already: see `halves.STORED`."""
    if half not in HALF_KINDS.values():
        raise ArgumentError(f"linear_half_pack: half is {half}: expected one of {HALF_KINDS}")
    cdef Narrow p
    cdef int64_t panels
    stored = weight__nk.dtype == STORED[half]
    # float32 weights of none, for the bias, where they have 16 bits
    cdef PackedLinear packed = linear_restore(np.empty((weight__nk.shape[0], 0), np.float32) if stored else weight__nk, bias__n, None)
    packed.k = weight__nk.shape[1]
    packed.halves = <uint16_t *>need(halves_size(half, packed.n, packed.k) * sizeof(uint16_t), "linear_half_pack")
    if stored:
        PACK.check(NULL, (weight__nk, bias__n), 0)
        weight__nk = weight__nk if weight__nk.flags.aligned and weight__nk.flags.forc else np.ascontiguousarray(weight__nk)
        p.w, p.to, p.half, p.n, p.k = <const uint16_t *>cnp.PyArray_DATA(weight__nk), packed.halves, half, packed.n, packed.k
        p.stride_n, p.stride_k = p.k, 1
        if not weight__nk.flags.c_contiguous:
            p.stride_n, p.stride_k = 1, p.n
        panels = (p.n + FL_PANEL - 1) // FL_PANEL
        with nogil:
            parallel_whole(narrow_task, &p, panels, workers(panels, <double>PACK_WORK * p.n * p.k))
    else:
        with nogil:
            pack_halves(half, packed.panels.data, packed.n, packed.k, packed.halves)
    packed.half, packed.panels = half, None
    return packed


def linear(cnp.ndarray x__mk, PackedLinear packed, cnp.ndarray out__mn, residual__mn, activation):
    """``out = act(x Wᵀ + b + residual)``."""
    cdef Job job
    cdef void *operands[3]
    packed.fits(x__mk, out__mn, residual__mn)
    packed.plan(&job, cnp.PyArray_DIM(x__mk, 0), activation[0], activation[1], activation[2])
    operands[0], operands[1], operands[2] = cnp.PyArray_DATA(x__mk), cnp.PyArray_DATA(out__mn), NULL
    if residual__mn is not None:
        operands[2] = cnp.PyArray_DATA(<cnp.ndarray>residual__mn)
    run_plan(run, &job, operands, job.work, "linear")


def linear_step(tuple x__mk, PackedLinear packed, tuple out__mn, residual__mn, activation):
    """The step of `linear`: shapes instead of arrays."""
    cdef Job job
    packed.fits(x__mk, out__mn, residual__mn)
    packed.plan(&job, x__mk[0], activation[0], activation[1], activation[2])
    return make_step(run, &job, sizeof(Job), 3, job.work, packed)
