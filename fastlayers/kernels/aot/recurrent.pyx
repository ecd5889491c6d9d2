"""LSTM, GRU and simple RNN: packs the weights of all directions, and hands whole sequences to the walk. Validates nothing.

The LSTM of bytes has a walk of its own, over the product of `qconv`: what it quantizes are the states of all sequences at once.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.string cimport memcpy, memset
cimport cython
cimport numpy as cnp

from ._dynamic cimport range_to_steps
from ._engine cimport (
    FL_GRU, FL_GRU_EARLY, FL_IDENTITY, FL_LSTM, FL_PANEL, FL_RNN,
    alloc, fl_cell, fl_function, fl_kernels, fl_qrun, fl_recurrent_step, level, need, release, run_begin, run_end, workers,
)
from ._fit cimport Fit, fit_of, last_size
from ._halves cimport halves_size, pack_halves
from ._once cimport fl_once32
from ._space cimport rounded
from ._stop cimport due_here
from ._walk cimport Arrays, Direction, Walk, walk
from .gemm cimport LARGE, pack_panels, panels_size
from .qconv cimport Job, PackedQConv, plan_call, run_qconv

import numpy as np

from ..fits import one_or_two
from ...errors import ArgumentError
from ..table import HALVES, KINDS, UNARY
from .qconv import qconv_pack

cnp.import_array()

cdef int UINT8 = KINDS["uint8"], FLOAT32 = KINDS["float32"]
cdef int SIGMOID = UNARY["sigmoid"].code
cdef int TANH = UNARY["tanh"].code

# Of all kinds of layers, by their names
cdef dict PACKS = {name: fit_of(name) for name in ("lstm_pack", "gru_pack", "rnn_pack")}
cdef Fit DYNAMIC_PACK = fit_of("dynamic_lstm_pack"), DYNAMIC = fit_of("dynamic_lstm")
cdef Fit LSTM = fit_of("lstm"), GRU = fit_of("gru"), RNN = fit_of("rnn")


@cython.final
cdef class PackedRecurrent:
    """Weights of all directions of a layer. Immutable; may be used by any number of threads at once."""
    cdef Direction directions[2]
    cdef readonly int64_t nbytes
    cdef int64_t count, inputs, hidden, outs
    cdef void *block   # what the directions point into
    cdef void *halves  # and, where weights have 16 bits, those

    cdef int fits(self, Fit fit, tuple arrays, bint batch_first, bint directions_apart) except -1:
        cdef int64_t known[5]
        known[0], known[1], known[2], known[3], known[4] = self.count, self.inputs, self.outs, self.hidden, self.count * self.outs
        return fit.check(known, arrays, batch_first | directions_apart << 1)

    def __dealloc__(self):
        release(self.block)
        release(self.halves)


# ---- packing -----------------------------------------------------------------------------------------------------------------

cdef fl_function function_of(activation):
    cdef fl_function f
    f.code, f.a, f.b = activation
    return f


cdef PackedRecurrent pack(str what, int kind, int gates, cnp.ndarray w_ih, cnp.ndarray w_hh, b_ih, b_hh, peephole, w_hr):
    """Packs everything but the functions. The gate's columns of W and of R come in the order [hp/16][gates][16]."""
    cdef int64_t known[2]
    known[0] = last_size(w_hh if w_hr is None else w_hr)
    known[0], known[1] = gates * known[0], 3 * known[0]
    given = (w_ih, w_hh, b_ih, b_hh, peephole, w_hr) if kind == FL_LSTM else (w_ih, w_hh, b_ih, b_hh)
    (<Fit>PACKS[what]).check(known, given, w_hr is not None)
    one_or_two(what, (<object>w_ih).shape)
    cdef PackedRecurrent p = PackedRecurrent.__new__(PackedRecurrent)
    p.count, p.inputs, p.outs = cnp.PyArray_DIM(w_ih, 0), cnp.PyArray_DIM(w_ih, 2), cnp.PyArray_DIM(w_hh, 2)
    p.hidden = cnp.PyArray_DIM(w_hh, 1) // gates
    cdef int64_t hp = panels_size(p.hidden, 1), columns = gates * hp, d
    cdef int64_t projection = p.hidden * panels_size(p.outs, 1) if w_hr is not None else 0
    cdef int64_t each = (p.inputs + p.outs + 1) * columns + 4 * hp + projection
    p.nbytes = p.count * each * sizeof(float)
    p.block = need(p.nbytes, what)
    cdef float *ordered = <float *>need(max((max(p.inputs, p.outs) + 1) * columns, projection) * sizeof(float), what)
    cdef float *at = <float *>p.block
    cdef Direction *directions = p.directions
    cdef const float *weights[6]
    cdef int64_t count = p.count, inputs = p.inputs, hidden = p.hidden, outs = p.outs
    for d, array in enumerate((w_ih, w_hh, b_ih, b_hh, peephole, w_hr)):
        weights[d] = floats(array)
    for d in range(count):
        if each < LARGE:
            fill(&directions[d], kind, gates, d, inputs, hidden, outs, weights, ordered, at + d * each, each)
        else:
            with nogil:
                fill(&directions[d], kind, gates, d, inputs, hidden, outs, weights, ordered, at + d * each, each)
    release(ordered)
    return p


cdef void fill(Direction *direction, int kind, int gates, int64_t d, int64_t inputs, int64_t hidden, int64_t outs,
               const float *const *weights, float *ordered, float *w, int64_t each) noexcept nogil:
    """Direction d from its part of w_ih, w_hh, b_ih, b_hh, peephole and w_hr (some NULL), packed to the `each` floats at w; `ordered` is scratch."""
    cdef int64_t hp = panels_size(hidden, 1), columns = gates * hp, rows = gates * hidden, g
    cdef float *r = w + inputs * columns
    cdef float *bias = r + outs * columns
    cdef float *extra = bias + columns
    cdef const float *recurrent = weights[1] + d * rows * outs
    cdef fl_cell *cell = &direction.cell
    memset(w, 0, each * sizeof(float))
    cell.kind, cell.gates, cell.hidden, cell.hp = kind, gates, hidden, hp
    cell.terms, cell.tp = outs, panels_size(outs, 1)
    cell.r, cell.late, cell.bias, cell.peephole, cell.project = r, r + 2 * hidden * hp, extra, NULL, NULL
    direction.w, direction.bias = w, bias
    interleave(weights[0] + d * rows * inputs, inputs, hidden, 0, gates, ordered)
    pack_panels(ordered, columns, inputs, w)
    if kind == FL_GRU_EARLY:
        pack_gates(recurrent, hidden, outs, 0, 2, ordered, r)
        pack_gates(recurrent, hidden, outs, 2, 1, ordered, r + 2 * hidden * hp)
    else:
        pack_gates(recurrent, hidden, outs, 0, gates, ordered, r)
    if weights[2] != NULL:
        add_bias(weights[2] + d * rows, hidden, gates, gates, bias)
    if weights[3] != NULL:
        # GRU's n has a bias that its reset gate multiplies
        add_bias(weights[3] + d * rows, hidden, gates, 2 if kind == FL_GRU else gates, bias)
        if kind == FL_GRU:
            memcpy(extra, weights[3] + d * rows + 2 * hidden, hidden * sizeof(float))
    if weights[4] != NULL:
        cell.peephole = extra
        for g in range(3):
            memcpy(extra + g * hp, weights[4] + (d * 3 + g) * hidden, hidden * sizeof(float))
    if weights[5] != NULL:
        cell.project = extra + 4 * hp
        pack_gates(weights[5] + d * outs * hidden, outs, hidden, 0, 1, ordered, <float *>cell.project)


cdef void pack_gates(const float *w, int64_t hidden, int64_t terms, int first, int count, float *ordered, float *to) noexcept nogil:
    cdef int64_t columns = count * panels_size(hidden, 1)
    interleave(w, terms, hidden, first, count, ordered)
    pack_panels(ordered, columns, terms, to)


cdef void interleave(const float *w, int64_t terms, int64_t hidden, int first, int count, float *to) noexcept nogil:
    """Rows of w, [gates][hidden][terms], from gate `first` on, in the order [hp/16][count][16][terms]; units past hidden are zero."""
    cdef int64_t block, unit, units, g
    for block in range((hidden + FL_PANEL - 1) // FL_PANEL):
        unit = block * FL_PANEL
        units = min(hidden - unit, <int64_t>FL_PANEL)
        for g in range(first, first + count):
            memset(to, 0, FL_PANEL * terms * sizeof(float))
            memcpy(to, w + (g * hidden + unit) * terms, units * terms * sizeof(float))
            to += FL_PANEL * terms


cdef void add_bias(const float *b, int64_t hidden, int gates, int some, float *to) noexcept nogil:
    """Adds the biases [gates][hidden] of the first `some` gates to columns in the order [hp/16][gates][16]."""
    cdef int64_t g, unit
    for g in range(some):
        for unit in range(hidden):
            to[(unit // FL_PANEL * gates + g) * FL_PANEL + unit % FL_PANEL] += b[g * hidden + unit]


cdef inline float *floats(array):
    return NULL if array is None else <float *>cnp.PyArray_DATA(<cnp.ndarray>array)


cdef PackedRecurrent narrowed(str what, PackedRecurrent p, int half):
    """The layer with weights of 16 bits, if `half` is one of `table.HALVES`; biases and peepholes stay floats."""
    if not half:
        return p
    if half not in HALVES.values():
        raise ArgumentError(f"{what}: options.half is {half}: expected 0, or one of {HALVES}")
    cdef fl_cell *cell = &p.directions[0].cell
    cdef bint early = cell.kind == FL_GRU_EARLY, projects = cell.project != NULL
    cdef int64_t hp = cell.hp, columns = cell.gates * hp, first = 2 * hp if early else columns, d, each, extra = columns + 4 * hp
    cdef int64_t inputs = p.inputs, outs = p.outs, hidden = p.hidden, count = p.count
    # W, R (of early GRUs in two parts), projections
    cdef int64_t w = halves_size(half, columns, inputs), r = halves_size(half, first, outs)
    cdef int64_t late = halves_size(half, hp, outs) if early else 0, project = halves_size(half, outs, hidden) if projects else 0
    each = w + r + late + project
    p.halves = need(count * each * sizeof(uint16_t), what)
    cdef float *floats_ = <float *>need(count * extra * sizeof(float), what)
    cdef uint16_t *to
    cdef float *kept
    cdef Direction *direction
    with nogil:
        for d in range(count):
            direction, to, kept = &p.directions[d], <uint16_t *>p.halves + d * each, floats_ + d * extra
            cell = &direction.cell
            cell.half = half
            pack_halves(half, direction.w, columns, inputs, to)
            direction.w = <const float *>to
            to += w
            pack_halves(half, cell.r, first, outs, to)
            cell.r = <const float *>to
            to += r
            if early:
                pack_halves(half, cell.late, hp, outs, to)
                cell.late = <const float *>to
                to += late
            if projects:
                pack_halves(half, cell.project, outs, hidden, to)
                cell.project = <const float *>to
            memcpy(kept, direction.bias, columns * sizeof(float))
            memcpy(kept + columns, cell.bias, 4 * hp * sizeof(float))  # what begins there is peepholes' too
            direction.bias, cell.bias = kept, kept + columns
            if cell.peephole != NULL:
                cell.peephole = cell.bias
    release(p.block)
    p.block, p.nbytes = floats_, count * (each * sizeof(uint16_t) + extra * sizeof(float))
    return p


def lstm_pack(cnp.ndarray w_ih__dgi, cnp.ndarray w_hh__dgh, b_ih__dg, b_hh__dg, peephole__dp, w_hr__dqh, options):
    """Gates i f g o, peephole i f o; see reference/recurrent.py."""
    cdef PackedRecurrent p = pack("lstm_pack", FL_LSTM, 4, w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, peephole__dp, w_hr__dqh)
    for d in range(p.count):
        set_functions(&p.directions[d].cell, options, d)
    return narrowed("lstm_pack", p, options.half)


cdef int set_functions(fl_cell *cell, options, int d) except -1:
    """Sets the functions of an LSTM's cell in direction d, whose peephole is set before."""
    gate, inner, outer = options.activations[d]
    cell.gate, cell.cell, cell.out = function_of(gate), function_of(inner), function_of(outer)
    cell.clip, cell.coupled = options.clip, options.couple_input_forget
    cell.standard = (cell.gate.code == SIGMOID and cell.cell.code == TANH and cell.out.code == TANH and not cell.clip
                     and not cell.coupled and cell.peephole == NULL)
    return 0


def gru_pack(cnp.ndarray w_ih__dgi, cnp.ndarray w_hh__dgh, b_ih__dg, b_hh__dg, options):
    """Gates r z n; see reference/recurrent.py."""
    cdef int kind = FL_GRU if options.reset_after else FL_GRU_EARLY
    cdef PackedRecurrent p = pack("gru_pack", kind, 3, w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, None, None)
    cdef fl_cell *cell
    for d in range(p.count):
        cell = &p.directions[d].cell
        gate, inner = options.activations[d]
        cell.gate, cell.cell, cell.clip = function_of(gate), function_of(inner), options.clip
        cell.standard = cell.gate.code == SIGMOID and cell.cell.code == TANH and not cell.clip
    return narrowed("gru_pack", p, options.half)


def rnn_pack(cnp.ndarray w_ih__dgi, cnp.ndarray w_hh__dgh, b_ih__dg, b_hh__dg, options):
    """One gate; see reference/recurrent.py."""
    cdef PackedRecurrent p = pack("rnn_pack", FL_RNN, 1, w_ih__dgi, w_hh__dgh, b_ih__dg, b_hh__dg, None, None)
    for d in range(p.count):
        p.directions[d].cell.cell, p.directions[d].cell.clip = function_of(options.activations[d]), options.clip
    return narrowed("rnn_pack", p, options.half)


# ---- plans -------------------------------------------------------------------------------------------------------------------

cdef int plan_walk(Walk *plan, Fit fit, PackedRecurrent packed, tuple given, tuple x, tuple lengths, bint batch_first,
                   bint directions_apart, bint reverse) except -1:
    """Plans a walk over x, whose first two sizes matter; all else follows from the weights. Lengths of two axes are a mask."""
    cdef int64_t outs = packed.outs, count = packed.count, axis0, axis1
    packed.fits(fit, given, batch_first, directions_apart)
    axis0, axis1 = x[0], x[1]
    plan.level = level()
    plan.directions, plan.count, plan.inputs = packed.directions, count, packed.inputs
    plan.hidden, plan.outs, plan.masked, plan.reverse = packed.hidden, outs, lengths is not None and len(lengths) == 2, reverse
    if batch_first:
        plan.batch, plan.steps = axis0, axis1
        plan.x_time, plan.x_row = packed.inputs, packed.inputs * plan.steps
        plan.out_time, plan.out_row, plan.out_direction = count * outs, plan.steps * count * outs, outs
    else:
        plan.steps, plan.batch = axis0, axis1
        plan.x_time, plan.x_row = packed.inputs * plan.batch, packed.inputs
        plan.out_time, plan.out_row, plan.out_direction = plan.batch * count * outs, count * outs, outs
        if directions_apart:
            plan.out_row, plan.out_direction = outs, plan.batch * outs
    # Fewer than four sequences are bound by the reading of the weights and take as long as four.
    plan.work = 2.0 * plan.steps * max(plan.batch, <int64_t>4) * count * packed.directions[0].cell.gates * packed.hidden
    plan.work *= packed.inputs + outs
    return 0


cdef int plan_lstm(Walk *plan, PackedRecurrent packed, tuple given, tuple x, tuple lengths, bint batch_first, bint directions_apart,
                   bint reverse) except -1:
    return plan_walk(plan, LSTM, packed, given, x, lengths, batch_first, directions_apart, reverse)


cdef int run_lstm(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, h0, c0, lengths, out, hn, cn; all but x may be NULL."""
    cdef Arrays a
    a.x, a.h0, a.c0 = <const float *>operands[0], <const float *>operands[1], <const float *>operands[2]
    a.out, a.hn, a.cn = <float *>operands[4], <float *>operands[5], <float *>operands[6]
    set_lengths(<const Walk *>plan, operands[3], &a)
    return walk(<const Walk *>plan, &a)


cdef int plan_gru(Walk *plan, PackedRecurrent packed, tuple given, tuple x, tuple lengths, bint batch_first, bint directions_apart,
                  bint reverse) except -1:
    return plan_walk(plan, GRU, packed, given, x, lengths, batch_first, directions_apart, reverse)


cdef int plan_rnn(Walk *plan, PackedRecurrent packed, tuple given, tuple x, tuple lengths, bint batch_first, bint directions_apart,
                  bint reverse) except -1:
    return plan_walk(plan, RNN, packed, given, x, lengths, batch_first, directions_apart, reverse)


cdef int run_plain(const void *plan, void *const *operands) noexcept nogil:
    """Cells without c. Operands: x, h0, lengths, out, hn; all but x may be NULL."""
    cdef Arrays a
    a.x, a.h0 = <const float *>operands[0], <const float *>operands[1]
    a.out, a.hn, a.c0, a.cn = <float *>operands[3], <float *>operands[4], NULL, NULL
    set_lengths(<const Walk *>plan, operands[2], &a)
    return walk(<const Walk *>plan, &a)


cdef int run_gru(const void *plan, void *const *operands) noexcept nogil:
    return run_plain(plan, operands)


cdef int run_rnn(const void *plan, void *const *operands) noexcept nogil:
    return run_plain(plan, operands)


cdef inline void set_lengths(const Walk *plan, const void *lengths, Arrays *a) noexcept nogil:
    a.lengths = NULL if plan.masked else <const int *>lengths
    a.mask = <const unsigned char *>lengths if plan.masked else NULL


# ---- an LSTM of bytes --------------------------------------------------------------------------------------------------------

cdef enum:
    CHUNK_ROWS = 256  # of one input product, if it is more than one step


@cython.final
cdef class PackedDynamicLstm:
    """Weights of bytes of all directions. Immutable; may be used by any number of threads at once."""
    cdef fl_cell cells[2]
    cdef tuple products           # two lists, of W and of R: a PackedQConv each direction
    cdef fl_qrun runs[2]          # of these: all terms are one run
    cdef int64_t lengths[2]
    cdef int64_t count, inputs, hidden
    cdef readonly int64_t nbytes
    cdef float *peephole

    def __dealloc__(self):
        release(self.peephole)


cdef object of_blocks(array, int64_t hidden, int64_t hp):
    """Rows (4 hidden, ...) in the order [hp/16][4][16]; those of units past `hidden` are zero."""
    if array is None:
        return None
    wide = np.zeros((4, hp, *array.shape[1:]), array.dtype)
    wide[:, :hidden] = array.reshape(4, hidden, *array.shape[1:])
    return np.ascontiguousarray(wide.reshape(4, hp // FL_PANEL, FL_PANEL, *array.shape[1:]).swapaxes(0, 1)).reshape(4 * hp, *array.shape[1:])


def dynamic_lstm_pack(cnp.ndarray w_ih__dgi, cnp.ndarray w_hh__dgh, ih_zero__dg, hh_zero__dg, cnp.ndarray ih_scale__dg,
                      cnp.ndarray hh_scale__dg, b__dg, peephole__dp, options):
    """Gates i f g o, peephole i f o; see reference/recurrent.py."""
    cdef int64_t known[2]
    cdef int64_t hidden = last_size(w_hh__dgh), hp = panels_size(hidden, 1), g, k, d
    known[0], known[1] = 4 * hidden, 3 * hidden
    DYNAMIC_PACK.check(known, (w_ih__dgi, w_hh__dgh, ih_zero__dg, hh_zero__dg, ih_scale__dg, hh_scale__dg, b__dg, peephole__dp), 0)
    one_or_two("dynamic_lstm_pack", (<object>w_ih__dgi).shape)
    cdef PackedDynamicLstm p = PackedDynamicLstm.__new__(PackedDynamicLstm)
    cdef PackedQConv product
    cdef fl_cell *cell
    p.count, p.inputs, p.hidden = cnp.PyArray_DIM(w_ih__dgi, 0), cnp.PyArray_DIM(w_ih__dgi, 2), hidden
    p.products = [], []
    if peephole__dp is not None:
        p.peephole = <float *>need(p.count * 3 * hp * sizeof(float), "dynamic_lstm_pack")
        memset(p.peephole, 0, p.count * 3 * hp * sizeof(float))
    ones = 1, 1, 1
    for d in range(p.count):
        for k, (w, zero, scale, shift) in enumerate((
            (w_ih__dgi, ih_zero__dg, ih_scale__dg, b__dg), (w_hh__dgh, hh_zero__dg, hh_scale__dg, None),
        )):
            rows = [None if a is None else of_blocks(a[d], hidden, hp) for a in (w, zero, scale, shift)]
            product = qconv_pack(rows[0][:, :, None, None, None], rows[1], rows[2], None, rows[3], ones, ones, 1)
            p.products[k].append(product)
            p.nbytes += product.nbytes
        cell = &p.cells[d]
        cell.kind, cell.gates, cell.hidden, cell.hp, cell.terms, cell.tp = FL_LSTM, 4, hidden, hp, hidden, hp
        if p.peephole != NULL:
            cell.peephole = p.peephole + d * 3 * hp
            for g in range(3):
                memcpy(<float *>cell.peephole + g * hp, floats(peephole__dp) + (d * 3 + g) * hidden, hidden * sizeof(float))
        set_functions(cell, options, d)
    for k, terms in enumerate((p.inputs, hidden)):
        p.runs[k].offset, p.runs[k].quads, p.lengths[k] = 0, (terms + 3) // 4, terms
    return p


cdef struct DynamicLstm:
    const fl_kernels *level
    const fl_cell *cells
    int64_t count, steps, batch, inputs, hidden
    bint reverse               # the only direction runs backwards; of two, the second always does
    int64_t chunk              # steps of one input product
    Job chunks[2]              # the input product of each direction, for so many steps, for the last ones, and a step's R h
    Job rests[2]
    Job recurrent[2]
    double work


cdef int plan_product(Job *job, PackedDynamicLstm packed, int which, int64_t d, int64_t rows) except -1:
    """Product `which` of a direction for so many rows. Its one run is the packed weights', so that a plan owns nothing."""
    cdef PackedQConv product = packed.products[which][d]
    cdef cnp.npy_intp x[5]
    cdef cnp.npy_intp out[5]
    x[0] = x[1] = x[2] = out[0] = out[1] = out[2] = 1
    x[3], x[4], out[3], out[4] = rows, product.ig, rows, product.og
    plan_call(job, product, x, out, (0,) * 6, True, True, UINT8, FLOAT32, 0)
    release(job.lists)
    job.lists, job.runs, job.lengths = NULL, &packed.runs[which], &packed.lengths[which]
    return 0


cdef int plan_dynamic_lstm(DynamicLstm *plan, PackedDynamicLstm packed, tuple given, const cnp.npy_intp *x, bint reverse) except -1:
    cdef int64_t known[3]
    cdef int64_t d
    known[0], known[1], known[2] = packed.count, packed.inputs, packed.hidden
    DYNAMIC.check(known, given, 0)
    plan.level, plan.cells, plan.reverse = level(), packed.cells, reverse
    plan.count, plan.inputs, plan.hidden, plan.steps, plan.batch = packed.count, packed.inputs, packed.hidden, x[0], x[1]
    plan.chunk = max(<int64_t>1, min(plan.steps, CHUNK_ROWS // max(plan.batch, <int64_t>1)))
    plan.work = 0
    for d in range(packed.count):
        plan_product(&plan.chunks[d], packed, 0, d, plan.chunk * plan.batch)
        plan_product(&plan.rests[d], packed, 0, d, plan.steps % plan.chunk * plan.batch)
        plan_product(&plan.recurrent[d], packed, 1, d, plan.batch)
        plan.work += plan.chunks[d].work * (plan.steps // plan.chunk) + plan.rests[d].work + plan.steps * plan.recurrent[d].work
    return 0


# What a call of `dynamic_lstm` works with. A length out of range is taken for the nearest in it.
cdef struct Bytes:
    const DynamicLstm *plan
    const float *x
    float *out
    int64_t *lengths
    float *xg       # [steps of the chunk][batch][hp/16][4][16]
    float *sums     # R h of a step, the same for one
    float *h        # [batch][hp]
    float *c
    uint8_t *bytes  # what is multiplied: rows of x, or h
    float x_step
    uint8_t x_zero


cdef inline int64_t time_of(const Bytes *p, int64_t d, int64_t j, int64_t step) noexcept nogil:
    """When sequence j has its step; past its end the steps are in their order."""
    return p.lengths[j] - 1 - step if (d == 1 or p.plan.reverse) and step < p.lengths[j] else step


cdef void quantize_rows(const Bytes *p, const float *row, int64_t n, const float *step, uint8_t zero, uint8_t *to) noexcept nogil:
    cdef int32_t wide = zero
    p.plan.level.quantized.quantize(row, step, &wide, 0, UINT8, to, n)


cdef int input_product(Bytes *p, int64_t d, int64_t first, int64_t count) noexcept nogil:
    """W x + b of `count` steps of direction d, from step `first` on."""
    cdef const DynamicLstm *plan = p.plan
    cdef int64_t s, j, inputs = plan.inputs
    cdef void *operands[4]
    for s in range(count):
        for j in range(plan.batch):
            quantize_rows(p, p.x + (time_of(p, d, j, first + s) * plan.batch + j) * inputs, inputs, &p.x_step, p.x_zero,
                          p.bytes + (s * plan.batch + j) * inputs)
    operands[0], operands[1], operands[2], operands[3] = p.bytes, &p.x_zero, &p.x_step, p.xg
    return run_qconv(&plan.chunks[d] if count == plan.chunk else &plan.rests[d], operands)


cdef int one_step(Bytes *p, int64_t d, int64_t step, const float *xg) noexcept nogil:
    """The states of all sequences share a range; those of sequences that have ended stay what they are."""
    cdef const DynamicLstm *plan = p.plan
    cdef int64_t hidden = plan.hidden, hp = plan.cells.hp, batch = plan.batch, width = 4 * hp, j, first
    cdef float low = 0, high = 0, scale
    cdef uint8_t zero
    cdef void *operands[4]
    cdef float *to
    cdef fl_recurrent_step call
    for j in range(batch):
        plan.level.quantized.range(p.h + j * hp, hidden, &low, &high)
    range_to_steps(plan.level.quantized, UINT8, low, high, &scale, &zero)
    for j in range(batch):
        quantize_rows(p, p.h + j * hp, hidden, &scale, zero, p.bytes + j * hidden)
    operands[0], operands[1], operands[2], operands[3] = p.bytes, &zero, &scale, p.sums
    if run_qconv(&plan.recurrent[d], operands):
        return -1
    memset(&call, 0, sizeof(fl_recurrent_step))
    call.cell, call.xg_block, call.xg_row = &plan.cells[d], 4 * FL_PANEL, width
    j = 0
    while j < batch:
        first = j
        while j < batch and p.lengths[j] > step:
            j += 1
        if j > first:
            call.rows, call.xg, call.c, call.h_next = j - first, xg + first * width, p.c + first * hp, p.h + first * hp
            plan.level.recurrent_gates(&call, p.sums + first * width)
        j += 1  # this one has ended, or there is none
    if p.out != NULL:
        for j in range(batch):
            to = p.out + ((time_of(p, d, j, step) * plan.count + d) * batch + j) * hidden
            if p.lengths[j] > step:
                memcpy(to, p.h + j * hp, hidden * sizeof(float))
            else:
                memset(to, 0, hidden * sizeof(float))
    return 0


cdef void states(const Bytes *p, int64_t d, const float *given, float *state) noexcept nogil:
    cdef int64_t j, hidden = p.plan.hidden, hp = p.plan.cells.hp
    memset(state, 0, p.plan.batch * hp * sizeof(float))
    if given != NULL:
        for j in range(p.plan.batch):
            memcpy(state + j * hp, given + (d * p.plan.batch + j) * hidden, hidden * sizeof(float))


cdef void finals(const Bytes *p, int64_t d, const float *state, float *to) noexcept nogil:
    cdef int64_t j, hidden = p.plan.hidden, hp = p.plan.cells.hp
    if to != NULL:
        for j in range(p.plan.batch):
            memcpy(to + (d * p.plan.batch + j) * hidden, state + j * hp, hidden * sizeof(float))


cdef int run_direction(Bytes *p, int64_t d) noexcept nogil:
    cdef const DynamicLstm *plan = p.plan
    cdef int64_t first = 0, count, s
    while first < plan.steps:
        count = min(plan.chunk, plan.steps - first)
        if input_product(p, d, first, count):
            return -1
        for s in range(count):
            if due_here():
                return 0
            if one_step(p, d, first + s, p.xg + s * plan.batch * 4 * plan.cells.hp):
                return -1
        first += count
    return 0


cdef int run_dynamic_lstm(const void *plan, void *const *operands) noexcept nogil:
    """Operands: x, h0, c0, lengths, out, hn, cn; all but x may be NULL."""
    cdef const DynamicLstm *job = <const DynamicLstm *>plan
    cdef int64_t batch = job.batch, hp = job.cells.hp, d, j
    cdef size_t xg = rounded(job.chunk * batch * 4 * hp * sizeof(float)), sums = rounded(batch * 4 * hp * sizeof(float))
    cdef size_t state = rounded(batch * hp * sizeof(float))
    cdef size_t bytes_ = rounded(batch * max(job.chunk * job.inputs, job.hidden) + 4)
    cdef const int *lengths = <const int *>operands[3]
    cdef float low = 0, high = 0
    cdef int failed = 0
    cdef bint threads
    cdef Bytes p
    if batch * job.hidden == 0:  # out is empty too
        return 0
    threads = workers(job.recurrent[0].tasks, job.work) > 1
    p.plan, p.x, p.out = job, <const float *>operands[0], <float *>operands[4]
    cdef char *block = <char *>alloc(xg + sums + 2 * state + bytes_ + batch * sizeof(int64_t))
    if block == NULL:
        return -1
    p.xg, p.sums, p.h = <float *>block, <float *>(block + xg), <float *>(block + xg + sums)
    p.c, p.bytes = <float *>(block + xg + sums + state), <uint8_t *>(block + xg + sums + 2 * state)
    p.lengths = <int64_t *>(block + xg + sums + 2 * state + bytes_)
    for j in range(batch):
        p.lengths[j] = job.steps if lengths == NULL else min(job.steps, max(<int64_t>0, <int64_t>fl_once32(lengths + j)))
    job.level.quantized.range(p.x, job.steps * batch * job.inputs, &low, &high)
    range_to_steps(job.level.quantized, UINT8, low, high, &p.x_step, &p.x_zero)
    if threads:
        run_begin()
    for d in range(job.count):
        states(&p, d, <const float *>operands[1], p.h)
        states(&p, d, <const float *>operands[2], p.c)
        failed = run_direction(&p, d)
        if failed:
            break
        finals(&p, d, p.h, <float *>operands[5])
        finals(&p, d, p.c, <float *>operands[6])
    if threads:
        run_end()
    release(block)
    return failed


# ---- kernels -----------------------------------------------------------------------------------------------------------------

include "made/recurrent.pxi"
