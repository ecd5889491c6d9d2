"""RNN, GRU and LSTM of ONNX. Weights are put into the kernels' order of gates here, once:

====  =======  =================
      ONNX     kernels (torch's)
====  =======  =================
LSTM  i o f c  i f g o
GRU   z r h    r z n
P     i o f    i f o
====  =======  =================

X is (t, b, i), or (b, t, i) with layout=1; Y is (t, d, b, h), or (b, t, d, h); states are (d, b, h), or (b, d, h).
The attribute `joined`, of recorded layers, means torch's conventions: Y is (t, b, d h) or (b, t, d h), states are (d, b, h) in
both layouts, the gates are in the kernels' order already, `options` (instead of `activations` and its like) are the kernel's,
sequence_lens may be a mask of booleans (b, t), and input 8 of an LSTM are the weights of projections, (d, q, h): h then has the
size q.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import recurrent
from ..calls.machine import Machine, reference
from ..ir.checks import same_shape
from ..ir.graph import Shape
from ..kernels.halves import widened
from ..kernels.table import UNARY, Activation, GruOptions, LstmOptions, RnnOptions
from ..rules.weights import gates_rule, state_rule, valid_rule
from ._base import Spec, View, register
from ._costs import recurrent as multiply_adds
from ._traits import Traits
from .fused import activation, half_of, taken

if TYPE_CHECKING:
    from .builder import Builder, Ref

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
# Positions in ONNX's order of the kernels' gates.
ORDER = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}
PEEPHOLES = (0, 2, 1)
_HALVES = (1, 2, 8)
_DEFAULT = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
# ONNX's names of activations (any case) with UNARY's, and the defaults of alpha and beta where they differ.
_NAMES = {
    "relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid", "affine": None, "leakyrelu": "leaky_relu", "hardsigmoid": "hardsigmoid",
    "elu": "elu", "softsign": "softsign", "softplus": "softplus",
}  # fmt: skip
_DEFAULTS = {"hardsigmoid": (0.2, 0.5), "leaky_relu": (0.01,), "elu": (1.0,)}


def directions_of(n: View) -> int:
    direction = n.get("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        raise n.fail(f"direction is {direction!r}: expected forward, reverse or bidirectional")
    return 2 if direction == "bidirectional" else 1


def infer_layer(n: View) -> list[Spec]:
    x, w, r = n.shape(0), n.shape(1), n.shape(2)
    dtype, d, gates = n.spec(0).dtype, directions_of(n), GATES[n.op]
    if r is None or x is None or w is None:
        return [Spec(None, dtype)] * len(n.node.outputs)
    if len(x) != 3 or len(w) != 3 or len(r) != 3:
        raise n.fail(f"X, W and R have shapes {x}, {w} and {r}: expected three axes each")
    if any(isinstance(s[0], int) and s[0] != d for s in (w, r)):
        raise n.fail(f"W and R have shapes {w} and {r}: expected {d} direction(s)")
    projection = n.shape(8) if n.has(8) else None
    outs, hidden, _ = gates_rule(n.where, gates, x[2], w[1:], r[1:], None if projection is None else projection[1:])
    batch_first = bool(n.get("layout", 0))
    batch, steps = (x[0], x[1]) if batch_first else (x[1], x[0])
    valid = n.shape(4) if n.has(4) else None
    masked = valid is not None and n.spec(4).dtype == np.bool_
    valid_rule(n.where, None if masked else valid, valid if masked else None, (batch,), steps)
    # By ONNX's own names: B are both biases next to each other, which functions have one by one.
    size = hidden if isinstance(hidden, int) else None
    wants: dict[int, tuple[str, Shape]] = {3: ("B", (d, None if size is None else 2 * gates * size))}
    if n.op == "LSTM":
        wants |= {7: ("P", (d, None if size is None else 3 * size)), 8: ("weight_hr", (d, outs, hidden))}
    for i, (name, want) in wants.items():
        shape = n.shape(i) if n.has(i) else None
        if shape is not None:
            same_shape(n.where, name, shape, want, "with an axis of directions first")
    apart = batch_first and not n.get("joined")
    states = [(batch, d, size) if apart else (d, batch, size) for size in (outs, hidden)]
    for i, name, state in zip((5, 6) if n.op == "LSTM" else (5,), ("h0", "c0"), states, strict=False):
        state_rule(n.where, name, n.shape(i) if n.has(i) else None, state, x)
    if n.get("joined"):
        wide = d * outs if isinstance(outs, int) else None
        y: Any = (batch, steps, wide) if batch_first else (steps, batch, wide)
    else:
        y = (batch, steps, d, outs) if batch_first else (steps, d, batch, outs)
    return [Spec(y, dtype), *(Spec(state, dtype) for state in states)][: len(n.node.outputs)]


def _activations(n: View, d: int) -> tuple[tuple[Activation, ...], ...] | None:
    """The functions of each direction; None where one has no kernel."""
    count = len(_DEFAULT[n.op])
    names = tuple(n.get("activations") or _DEFAULT[n.op] * d)
    if len(names) != count * d:
        raise n.fail(f"activations has {len(names)} names: expected {count * d}")
    alphas, betas = list(n.get("activation_alpha") or ()), list(n.get("activation_beta") or ())
    found = []
    for name in names:
        plain = _NAMES.get(str(name).lower())
        if plain is None:
            return None
        unary = UNARY[plain]
        values = list(_DEFAULTS.get(plain, unary.defaults))
        # Each function takes from the lists what it has parameters for, in order.
        if plain in _DEFAULTS:
            values[0] = alphas.pop(0) if alphas else values[0]
            if len(values) > 1:
                values[1] = betas.pop(0) if betas else values[1]
        found.append(Activation(unary.code, *values))
    return tuple(tuple(found[i * count : (i + 1) * count]) for i in range(d))


def options_of(n: View, d: int) -> Any:
    """The kernel's options, or None where a function has no kernel."""
    options, half = _functions(n, d), half_of(n)
    return options._replace(half=half) if half and options is not None else options


def _functions(n: View, d: int) -> Any:
    """The options but for how weights are stored."""
    options = n.get("options")
    if options is not None:
        return options if isinstance(options, _KINDS[n.op]) else _restored(n, options)
    if _USUAL.isdisjoint(n.node.attributes):  # asked at every binding
        return _PLAIN[n.op]
    functions = _activations(n, d)
    if functions is None:
        return None
    padded = (functions * 2)[:2]
    clip = float(n.get("clip", 0.0))
    if n.op == "LSTM":
        return LstmOptions(padded, clip, bool(n.get("input_forget", 0)))  # type: ignore[arg-type]
    if n.op == "GRU":
        return GruOptions(padded, clip, bool(n.get("linear_before_reset", 0)))  # type: ignore[arg-type]
    return RnnOptions(tuple(f[0] for f in padded), clip)


def joined_options(op: str, recurrent: tuple[Any, ...], inner: tuple[Any, ...], reset_after: bool = True) -> Any:
    """The attribute `options` of a `joined` node: functions of the gates and of what they let through, each a name of UNARY's and
    its parameters. A simple RNN has the second alone.
    """
    gate, function = (Activation(UNARY[name].code, *(given or UNARY[name].defaults)) for name, *given in (recurrent, inner))
    if op == "LSTM":
        return LstmOptions(((gate, function, function),) * 2)
    if op == "GRU":
        return GruOptions(((gate, function),) * 2, reset_after=reset_after)
    return RnnOptions((function,) * 2)


def _restored(n: View, options: Any) -> Any:
    """The options of a graph that was saved: plain tuples by then."""
    kind = _KINDS[n.op]
    try:
        functions, *rest = options
        count = len(_DEFAULT[n.op])
        each = [(f,) if n.op == "RNN" else f for f in functions]
        first, second = (tuple(activation(n, f) for f in fs) for fs in each)
        if not len(first) == len(second) == count or not all(isinstance(v, (bool, int, float)) for v in rest):
            raise ValueError
        return kind((first[0], second[0]) if n.op == "RNN" else (first, second), *rest)
    except (TypeError, ValueError):
        raise n.fail(f"options are {options!r:.200}: expected those of a recurrent layer") from None


_KINDS: dict[str, Any] = {"LSTM": LstmOptions, "GRU": GruOptions, "RNN": RnnOptions}
_USUAL = frozenset({"activations", "activation_alpha", "activation_beta", "clip", "input_forget", "linear_before_reset"})
_PLAIN: dict[str, Any] = {"LSTM": LstmOptions(), "GRU": GruOptions(reset_after=False), "RNN": RnnOptions()}


def reordered(array: np.ndarray, order: Sequence[int], dtype: Any = np.float32) -> np.ndarray:
    """Blocks of axis 1 in another order."""
    blocks = array.reshape(array.shape[0], len(order), array.shape[1] // len(order), *array.shape[2:])[:, list(order)]
    return np.ascontiguousarray(blocks.reshape(array.shape), dtype)


def _widened(n: View, values: Sequence[np.ndarray | None]) -> Sequence[np.ndarray | None]:
    """Inputs, those that are stored in 16 bits as float32."""
    half = half_of(n)
    return [widened(a, half) if half and i in _HALVES and a is not None else a for i, a in enumerate(values)]


def _weights(n: View, values: Sequence[np.ndarray | None], options: Any) -> tuple[Any, ...]:
    """Arguments of the pack kernel."""
    values = _widened(n, values)
    w, r, b = values[1], values[2], values[3] if len(values) > 3 else None
    assert w is not None
    assert r is not None
    order: Sequence[int] = range(GATES[n.op]) if n.get("joined") else ORDER[n.op]
    half = None if b is None else b.shape[1] // 2
    biases = (None, None) if b is None else (reordered(b[:, :half], order), reordered(b[:, half:], order))
    packed: tuple[Any, ...] = (reordered(w, order), reordered(r, order), *biases)
    if n.op == "LSTM":
        peephole = values[7] if len(values) > 7 else None
        order = range(3) if n.get("joined") else PEEPHOLES
        packed += (None if peephole is None else reordered(peephole, order), values[8] if len(values) > 8 else None)
    return (*packed, options)


def _lower(n: View, b: Builder) -> Any:
    d = directions_of(n)
    fixed = (1, 2, 3, 7, 8) if n.op == "LSTM" else (1, 2, 3)
    options = options_of(n, d)
    if n.has(4) and n.spec(4).dtype not in ((np.int32, np.bool_) if n.get("joined") else (np.int32,)):
        return False
    if options is None or not taken(n, _HALVES, 0, 3, 5, 6, 7) or any(n.has(i) and n.value(i) is None for i in fixed):
        return False
    batch_first, joined = bool(n.get("layout", 0)), bool(n.get("joined"))
    if batch_first and not joined and d > 1 and any(n.has(i) or n.wants(i - 4) for i in (5, 6)):
        return False  # states (b, d, h) would have to be transposed
    x = b.input(0)
    batch, outs = x.shape[0 if batch_first else 1], n.sizes(2)[2]
    sizes = (outs, n.sizes(8)[2] if n.has(8) else outs)[: len(_states(n))]

    def given(i: int) -> Ref | None:
        ref = b.optional(i)
        return None if ref is None else ref.view((d, batch, sizes[i - 5]))

    before = [given(i) for i in _states(n)]
    out = b.output(0) if n.wants(0) else None
    after = [b.output(i).view((d, batch, size)) if n.wants(i) else None for i, size in enumerate(sizes, 1)]
    _call(b.machine, n, n.values, options, x, before, b.optional(4), out, after)
    return True


def _states(n: View) -> range:
    """Positions of the inputs that are states."""
    return range(5, 7 if n.op == "LSTM" else 6)


def _call(
    m: Machine, n: View, values: Sequence[Any], options: Any, x: Any, before: Sequence[Any], lengths: Any, out: Any, after: Any
) -> None:
    """The kernel call; states are (d, b, h)."""
    kind, flags = n.op.lower(), (bool(n.get("layout", 0)), n.get("direction", "forward") == "reverse", not n.get("joined"))
    packed = recurrent.pack(m, kind, lambda: _weights(n, values, options))
    recurrent.layer(m, kind, x, packed, before, lengths, out, after, *flags)


def _run(n: View, *arrays: np.ndarray | None) -> Sequence[np.ndarray]:
    """Through the reference kernels, in float32."""
    options = options_of(n, directions_of(n))
    if options is None:
        raise n.fail(f"activations {n.get('activations')} are not all known: expected some of {', '.join(sorted(_NAMES))}")
    floats = [
        *(None if a is None else np.ascontiguousarray(a, np.float32) for a in _widened(n, arrays)),
        *(None,) * (9 - len(arrays)),
    ]
    lengths = arrays[4] if len(arrays) > 4 else None
    lengths = None if lengths is None else np.ascontiguousarray(lengths, None if lengths.dtype == np.bool_ else np.int32)
    shapes: list[Any] = [spec.shape for spec in infer_layer(n)]
    made: list[np.ndarray] = [np.zeros(shape, np.float32) for shape in shapes]

    def led(states: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
        """Views (d, b, h) of states, one for each that the kernel has."""
        turned = bool(n.get("layout", 0)) and not n.get("joined")
        states = [*states, None, None][: len(_states(n))]
        return [s.swapaxes(0, 1) if turned and s is not None else s for s in states]

    _call(reference(), n, floats, options, floats[0], led(floats[5:7]), lengths, made[0], led(made[1:]))
    return [a.astype(n.spec(0).dtype) for a in made]


for _op in GATES:
    register(
        _op,
        infer_layer,
        _run,
        _lower,
        Traits(time="recurrent", work="products", multiply_adds=multiply_adds, weights=(1, 2, 3, 7, 8), halves=_HALVES),
    )
