"""LSTM, GRU and simple RNN: packs the weights of all directions, and hands whole sequences to the walk. Validates nothing."""

from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memcpy, memset
cimport cython
cimport numpy as cnp

from ._engine cimport (
    FL_GRU, FL_GRU_EARLY, FL_IDENTITY, FL_LSTM, FL_PANEL, FL_RNN,
    alloc, fl_cell, fl_function, level, need, release,
)
from ._fit cimport Fit, fit_of, last_size
from ._halves cimport halves_size, pack_halves
from ._walk cimport Arrays, Direction, Walk, walk
from .gemm cimport LARGE, pack_panels, panels_size

from ..fits import one_or_two
from ...errors import ArgumentError
from ..table import HALVES, UNARY

cnp.import_array()

cdef int SIGMOID = UNARY["sigmoid"].code
cdef int TANH = UNARY["tanh"].code

# Of all kinds of layers, by their names
cdef dict PACKS = {name: fit_of(name) for name in ("lstm_pack", "gru_pack", "rnn_pack")}
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
    pack_panels(ordered, columns, inputs, inputs, 1, w)
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
    pack_panels(ordered, columns, terms, terms, 1, to)


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
    cdef fl_cell *cell
    for d in range(p.count):
        cell = &p.directions[d].cell
        gate, inner, outer = options.activations[d]
        cell.gate, cell.cell, cell.out = function_of(gate), function_of(inner), function_of(outer)
        cell.clip, cell.coupled = options.clip, options.couple_input_forget
        cell.standard = (cell.gate.code == SIGMOID and cell.cell.code == TANH and cell.out.code == TANH and not cell.clip
                         and not cell.coupled and cell.peephole == NULL)
    return narrowed("lstm_pack", p, options.half)


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
    """Of x's shape the first two axes matter; all else follows from the weights. Lengths of two axes are a mask."""
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


# ---- kernels -----------------------------------------------------------------------------------------------------------------

include "made/recurrent.pxi"
