"""What a random graph grows by: one more node over the values that are there, with operands from `operands`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .maker import Maker, Refused, Sizes
from .operands import condition, dims, operand, scalar

__all__ = ["RULES", "Rule"]

Rule = Callable[[Maker, str], list[str]]  # takes a float value; gives new ones

SMOOTH = ("Tanh", "Sigmoid", "Relu", "Neg", "Abs", "Erf", "Softsign", "Gelu", "HardSwish", "Identity", "Elu", "Softplus", "Mish")


def unary(m: Maker, x: str) -> list[str]:
    """An element alone."""
    return m.node(m.pick(*SMOOTH), x)


def chain(m: Maker, x: str) -> list[str]:
    """Several in a row, each of which may take the memory of the one before, and one that is wanted later."""
    first = m.one(m.pick("Tanh", "Relu"), x)
    second = m.one("Neg", first)
    third = m.one("Add", second, first) if m.chance(0.5) else m.one("Sigmoid", second)
    return [first, third, m.one("Mul", third, second)]


def binary(m: Maker, x: str) -> list[str]:
    """With another value of its shape, or an operand of some of its last axes."""
    same = [n for n in m.values if m.kind(n) == "f" and m.shape(n) == m.shape(x)]
    keep = int(m.random.integers(m.rank(x) + 1))
    other = m.pick(*same) if m.chance(0.5) else operand(m, m.shape(x)[keep:])
    return m.node(m.pick("Add", "Sub", "Mul", "Max", "Min"), *m.pick((x, other), (other, x)))


def _features(m: Maker, x: str) -> Sizes:
    """How many columns a product should have: a few, or as many as a size."""
    if m.chance(0.25):
        return m.pick(*m.shape(x))  # type: ignore[no-any-return]
    return m.same(int(m.pick(1, 3, 8, 16, 17)))


def matmul(m: Maker, x: str) -> list[str]:
    """By a matrix, from either side."""
    if m.rank(x) < 1:
        raise Refused("a scalar")
    if m.rank(x) >= 2 and m.chance(0.3):
        return m.node("MatMul", operand(m, (_features(m, x), m.shape(x)[-2])), x)
    weight = operand(m, (m.shape(x)[-1], _features(m, x)))
    found = m.node("MatMul", x, weight)
    if m.chance(0.4):
        found += m.node("Add", found[0], operand(m, (m.shape(found[0])[-1],)))
    if m.chance(0.3):
        found += m.node("MatMul", m.one("Tanh", x), weight)  # shared
    return found


def gemm(m: Maker, x: str) -> list[str]:
    """Gemm and its kin."""
    if m.rank(x) != 2:
        x = m.one("Flatten", x, axis=max(m.rank(x) - 1, 0))
    turned, columns = int(m.random.integers(2)), _features(m, x)
    shape = (m.shape(x)[1], columns)
    inputs = [x, operand(m, shape[::-1] if turned else shape)]
    if m.chance(0.6):
        inputs.append(operand(m, m.pick((columns,), (m.same(1), columns), ())))
    return m.node("Gemm", *inputs, transB=turned, alpha=float(m.pick(1.0, 0.5)), beta=float(m.pick(1.0, 2.0)))


def _image(m: Maker, x: str, least: int = 1) -> str:
    """A value of images, sequences or volumes with not too many channels."""
    fitting = [
        n for n in m.values if m.kind(n) == "f" and 3 <= m.rank(n) <= 5 and max(m.sizes(n, 1)) <= 32 and m.fixed(m.sizes(n, 1))
    ]
    if m.rank(x) < 3 or m.fixed(m.sizes(x, 1)) is None or max(m.sizes(x, 1)) > 32:
        if not fitting:
            raise Refused("no image")
        x = m.pick(*fitting)
    if any(min(m.sizes(x, i)) < least for i in range(2, m.rank(x))):
        raise Refused("too small")
    return x


def conv(m: Maker, x: str) -> list[str]:
    """A convolution whose weights may be as long as a size, or as an integer input says."""
    x = _image(m, x)
    axes, channels = m.rank(x) - 2, m.sizes(x, 1)[0]
    each = m.pick(1, channels, channels) if m.chance(0.4) else channels
    groups = channels // each
    outputs = groups * int(m.pick(1, 2)) if groups > 1 else int(m.pick(1, 4, 8, 16))
    kernel = [m.same(int(m.pick(1, 1, 2, 3, 3, 5))) for _ in range(axes)]
    if m.steering and m.chance(0.15):
        values = tuple(int(a.reshape(-1)[0]) for a in m.live(m.steering[0]))
        if min(values) > 0:
            kernel[-1] = values
    if m.chance(0.2):
        kernel = [m.same(3)] * axes
    small = [m.fixed(k) or 1 for k in kernel]
    pads = [int(m.random.integers(k)) for k in small]
    inputs = [x, operand(m, (m.same(outputs), m.same(each), *kernel))]
    if m.chance(0.5):
        inputs.append(operand(m, (m.same(outputs),)))
    attributes: dict[str, Any] = {"group": groups, "pads": (*pads, *pads), "strides": (int(m.pick(1, 1, 1, 2)),) * axes}
    if m.chance(0.2):
        attributes = {"group": groups, "auto_pad": "SAME_UPPER"}
    elif m.chance(0.2):
        attributes["dilations"] = (2,) * axes
    return m.node("Conv", *inputs, **attributes)


def conv_transpose(m: Maker, x: str) -> list[str]:
    """A transposed one."""
    x = _image(m, x)
    axes, channels = m.rank(x) - 2, m.sizes(x, 1)[0]
    groups = channels if m.chance(0.4) else 1
    kernel = [m.same(int(m.pick(2, 3, 4))) for _ in range(axes)]
    weight = operand(m, (m.same(channels), m.same(int(m.pick(1, 2, 4)) if groups == 1 else 1), *kernel))
    return m.node("ConvTranspose", x, weight, group=groups, strides=(int(m.pick(1, 2)),) * axes)


def pool(m: Maker, x: str) -> list[str]:
    """Windows without weights."""
    x = _image(m, x)
    axes = m.rank(x) - 2
    op = m.pick("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool")
    if op.startswith("Global"):
        return m.node(op, x)
    kernel = tuple(int(m.pick(1, 2, 3)) for _ in range(axes))
    pads = tuple(k // 2 for k in kernel)
    return m.node(op, x, kernel_shape=kernel, strides=(int(m.pick(1, 2)),) * axes, pads=(*pads, *pads))


def norm(m: Maker, x: str) -> list[str]:
    """Normalizations, with weights an element of an axis."""
    if m.rank(x) < 2:
        raise Refused("one axis")
    last, second = (m.shape(x)[-1],), (m.shape(x)[1],)
    kind = int(m.random.integers(6))
    if kind == 0:
        return m.node("LayerNormalization", x, operand(m, last), operand(m, last), axis=-1, epsilon=0.1)
    if kind == 1:
        return m.node("RMSNormalization", x, operand(m, last), axis=-1, epsilon=0.1)
    if kind == 2:
        variance = m.one("Add", m.one("Abs", operand(m, second)), m.constant(np.float32(0.5)))
        return m.node("BatchNormalization", x, operand(m, second), operand(m, second), operand(m, second), variance)
    if kind == 3 and m.rank(x) > 2:
        return m.node("InstanceNormalization", x, operand(m, second), operand(m, second), epsilon=0.1)
    if kind == 4 and m.rank(x) > 2:
        return m.node("GroupNormalization", x, operand(m, second), operand(m, second), num_groups=1, epsilon=0.1)
    return m.node("PRelu", x, operand(m, m.pick(last, (m.same(1),))))


def gather(m: Maker, x: str) -> list[str]:
    """Rows by constants, ranges, integer inputs; tables that sizes cut."""
    ids = [v.name for v in m.inputs if v.dtype.kind == "i" and v.name not in m.steering]
    if ids and m.chance(0.5):
        return m.node("Gather", operand(m, (m.same(9), m.same(int(m.pick(4, 8))))), m.pick(*ids))
    axis = int(m.random.integers(m.rank(x))) if m.rank(x) else 0
    if not m.rank(x) or min(m.sizes(x, axis)) < 1:
        raise Refused("nothing to gather")
    if m.chance(0.4):
        end = m.one("Squeeze", scalar(m, m.sizes(x, axis)), m.ints(0))
        rows = m.one("Range", m.constant(np.int64(0)), end, m.constant(np.int64(m.pick(1, 2))))
        return m.node("Gather", x, rows, axis=axis)
    return m.node("Gather", x, m.pick(m.constant(np.int64(-1)), m.ints(0), m.ints(-1, 0)), axis=axis)


def recurrent(m: Maker, x: str) -> list[str]:
    """LSTM, GRU and RNN over the first axis."""
    fitting = [
        n for n in m.values if m.kind(n) == "f" and m.rank(n) == 3 and max(m.sizes(n, 2)) <= 32 and max(m.sizes(n, 0)) <= 16
    ]
    if not fitting:
        raise Refused("no sequence")
    x = m.pick(*fitting)
    if m.chance(0.5):
        x = m.one("Transpose", x, perm=(1, 0, 2))
    op, gates = m.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    both = 2 if m.chance(0.3) else 1
    h = int(m.pick(4, 8))
    w = operand(m, (m.same(both), m.same(gates * h), m.shape(x)[2]))
    r = operand(m, (m.same(both), m.same(gates * h), m.same(h)))
    inputs = [x, w, r]
    if m.chance(0.5):
        inputs.append(operand(m, (m.same(both), m.same(2 * gates * h))))
    found = m.node(op, *inputs, outputs=2, hidden_size=h, direction="bidirectional" if both == 2 else "forward")
    return [m.one("Squeeze", found[0], m.ints(1)) if both == 1 else found[0], found[1]]


def attention(m: Maker, x: str) -> list[str]:
    """Scores of all steps, with a mask of a size, made of its parts."""
    if m.rank(x) < 2:
        raise Refused("one axis")
    width = m.shape(x)[-1]
    q, k = (m.one("MatMul", x, operand(m, (width, m.same(8)))) for _ in range(2))
    order = (*range(m.rank(x) - 2), m.rank(x) - 1, m.rank(x) - 2)
    scores = m.one("MatMul", q, m.one("Transpose", k, perm=order))
    scores = m.one("Mul", scores, m.constant(np.float32(0.3)))
    if m.chance(0.6):
        scores = m.one("Add", scores, operand(m, m.shape(scores)[-2:]))
    return m.node("MatMul", m.one("Softmax", scores, axis=-1), x)


def reshape(m: Maker, x: str) -> list[str]:
    """Other axes."""
    rank = m.rank(x)
    kind = int(m.random.integers(5))
    if kind == 0 and rank > 1:
        return m.node("Transpose", x, perm=tuple(int(i) for i in m.random.permutation(rank)))
    if kind == 1:
        return m.node("Flatten", x, axis=int(m.random.integers(rank + 1)))
    if kind == 2 and rank < 5:
        return m.node("Unsqueeze", x, m.ints(int(m.random.integers(rank + 1))))
    if kind == 3 and rank > 1:
        axis = int(m.random.integers(rank - 1))
        kept = dims(m, m.shape(x)[:axis]) if axis else None
        rest = dims(m, m.shape(x)[axis + 2 :]) if axis + 2 < rank else None
        parts = [p for p in (kept, m.ints(-1), rest) if p is not None]
        return m.node("Reshape", x, m.one("Concat", *parts, axis=0) if len(parts) > 1 else parts[0])
    for axis, sizes in enumerate(m.shape(x)):
        factor = next((f for f in (2, 3, 4) if all(s % f == 0 and s for s in sizes)), 0)
        if factor and rank < 5:
            shape = [*m.shape(x)[:axis], m.same(factor), tuple(s // factor for s in sizes), *m.shape(x)[axis + 1 :]]
            return m.node("Reshape", x, dims(m, shape) if m.chance(0.3) else _with_rest(m, shape))
    raise Refused("nothing to reshape")


def _with_rest(m: Maker, shape: list[Sizes]) -> str:
    rest = int(m.random.integers(len(shape)))
    return m.one("Concat", *(m.ints(-1) if i == rest else scalar(m, s) for i, s in enumerate(shape)), axis=0)


def cut(m: Maker, x: str) -> list[str]:
    """Slices whose ends are constants, sizes or integer inputs; and splits."""
    if not m.rank(x):
        raise Refused("a scalar")
    axis = int(m.random.integers(m.rank(x)))
    if m.chance(0.3) and min(m.sizes(x, axis)) > 1:
        lengths = m.one("Concat", m.ints(1), m.one("Sub", scalar(m, m.sizes(x, axis)), m.ints(1), exact=True), axis=0)
        return m.node("Split", x, lengths, outputs=2, axis=axis)
    end = m.pick(*m.steering, None, None)
    if end is None:
        bounds = m.pick(
            (m.ints(1), m.ints(1 << 40)), (m.ints(0), m.ints(2)), (m.ints(-2), m.ints(1 << 40)), (m.ints(0), m.ints(-1))
        )
        return m.node("Slice", x, *bounds, m.ints(axis), m.ints(1))
    stop = m.one("Reshape", end, m.ints(1))
    if m.chance(0.4):  # as long at every place, but elsewhere
        return m.node("Slice", x, stop, m.one("Add", stop, m.ints(int(m.pick(1, 2)))), m.ints(axis))
    return m.node("Slice", x, m.ints(0), m.one("Neg", stop) if m.chance(0.2) else stop, m.ints(axis))


def widen(m: Maker, x: str) -> list[str]:
    """Pad, Tile and Expand."""
    rank = m.rank(x)
    if not rank:
        return m.node("Expand", x, dims(m, (m.pick(*(s for n in m.values for s in m.shape(n))),)))
    axis, kind = int(m.random.integers(rank)), int(m.random.integers(3))
    count = m.one("Reshape", m.pick(*m.steering), m.ints(1)) if m.steering and m.chance(0.6) else m.ints(2)
    if kind == 0:
        parts = [count if i == axis + rank * int(m.chance(0.5)) else m.ints(0) for i in range(2 * rank)]
        return m.node("Pad", x, m.one("Concat", *parts, axis=0), m.constant(np.float32(m.pick(0, 0.5))), mode="constant")
    parts = [count if i == axis else m.ints(1) for i in range(rank)]
    repeats = m.one("Concat", *parts, axis=0) if rank > 1 else parts[0]
    if kind == 1:
        return m.node("Tile", x, repeats)
    return m.node("Expand", m.one("Unsqueeze", x, m.ints(0)), m.one("Concat", count, dims(m, m.shape(x)), axis=0))


def _but(shape: tuple[Sizes, ...], axis: int) -> tuple[Sizes, ...]:
    return shape[:axis] + shape[axis + 1 :]


def concat(m: Maker, x: str) -> list[str]:
    """Parts that are computed, inputs, constants, there twice, or joined before; as keys and values of a decoder are."""
    rank = m.rank(x)
    if not rank:
        raise Refused("a scalar")
    axis = int(m.random.integers(rank))
    fitting = [n for n in m.values if m.kind(n) == "f" and m.rank(n) == rank and _but(m.shape(n), axis) == _but(m.shape(x), axis)]
    parts = [x, *(m.pick(*fitting) for _ in range(int(m.random.integers(1, 3))))]
    if m.chance(0.5):
        parts[-1] = m.one(m.pick("Relu", "Tanh"), parts[-1])
    if m.chance(0.3):
        parts.append(parts[int(m.random.integers(len(parts)))])
    order = m.random.permutation(len(parts))
    found = m.node("Concat", *(parts[i] for i in order), axis=axis)
    if m.chance(0.3):
        found += m.node("Concat", m.one("Tanh", x), found[0], axis=axis)
    return found


def resize(m: Maker, x: str) -> list[str]:
    """Images of another size: by factors, to sizes, of which integer inputs may be."""
    x = _image(m, x)
    axes, kind = m.rank(x) - 2, int(m.random.integers(3))
    mode = m.pick("nearest", "linear", "linear", "cubic")
    places = m.pick("half_pixel", "asymmetric", "align_corners")
    if kind == 0:
        factors = m.constant(np.array([1, 1, *(float(m.pick(1, 2, 1.5)) for _ in range(axes))], np.float32))
        return m.node("Resize", x, None, factors, mode=mode, coordinate_transformation_mode=places)
    if kind == 1 and m.steering:
        number = m.one("Cast", m.one("Reshape", m.pick(*m.steering), m.ints(1)), to=1)
        factor = m.one("Add", m.one("Div", number, m.constant(np.array([16], np.float32))), m.constant(np.array([1], np.float32)))
        factors = m.one("Concat", m.constant(np.ones(1 + axes, np.float32)), factor, axis=0)
        return m.node("Resize", x, None, factors, mode=mode, coordinate_transformation_mode=places)
    wanted = [m.pick(*(s for n in m.values for s in m.shape(n) if max(s) < 24 and min(s))) for _ in range(axes)]
    whole = m.one("Concat", dims(m, m.shape(x)[:2]), dims(m, wanted), axis=0)
    return m.node("Resize", x, None, None, whole, mode=mode, coordinate_transformation_mode=places)


def reduction(m: Maker, x: str) -> list[str]:
    """Sums and their kin over an axis."""
    if not m.rank(x):
        raise Refused("a scalar")
    axis = int(m.random.integers(m.rank(x)))
    op = m.pick("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2", "Softmax", "CumSum", "LogSoftmax", "ReduceLogSumExp")
    if op in ("Softmax", "LogSoftmax"):
        return m.node(op, x, axis=axis)
    if op == "CumSum":
        return m.node(op, x, m.constant(np.int64(axis)), exclusive=int(m.chance(0.3)), reverse=int(m.chance(0.3)))
    return m.node(op, x, m.ints(axis), keepdims=int(m.chance(0.5)))


def select(m: Maker, x: str) -> list[str]:
    """Where, TopK and ScatterElements, by masks and numbers without rounding."""
    kind = int(m.random.integers(3))
    if kind == 0 and m.rank(x) >= 2:
        mask = m.one("Greater", operand(m, m.shape(x)[-2:], known=True), m.constant(np.float32(0.01)))
        return m.node("Where", mask, x, m.constant(np.float32(-1)))
    exact = [n for n in m.exact if n in m.values and m.kind(n) == "f" and m.rank(n)] + [
        v.name for v in m.inputs if v.dtype.kind == "f"
    ]
    x = m.pick(*exact)
    if not m.rank(x):
        raise Refused("a scalar")
    if kind == 1 and m.steering:
        return m.node("TopK", x, m.one("Reshape", m.pick(*m.steering), m.ints(1)), outputs=2, axis=-1)[:1]
    place = m.one("ArgMax", x, axis=-1, keepdims=1, exact=True)
    return [m.one("Cast", place, to=1), m.one("GatherElements", x, place, axis=-1)]


def branch(m: Maker, x: str) -> list[str]:
    """An If between two ways to go on."""

    def way() -> str:
        rule = m.pick(unary, matmul, binary, concat, cut, norm, reduction)
        return rule(m, x)[-1]  # type: ignore[no-any-return]

    return [m.branches(condition(m), way, way)]


def branch_of_weights(m: Maker, x: str) -> list[str]:
    """An If that chooses the weights of a product which follows it."""
    if not m.rank(x):
        raise Refused("a scalar")
    shape = (m.shape(x)[-1], m.same(int(m.pick(3, 8))))
    weight = m.branches(condition(m), lambda: operand(m, shape, True), lambda: operand(m, shape, True))
    return [*m.node("MatMul", x, weight), *m.node("MatMul", m.one("Neg", x), weight)]


def quantized(m: Maker, x: str) -> list[str]:
    """Products of integers: of numbers without rounding, so that nothing rounds the other way."""
    ids = [v.name for v in m.inputs if v.dtype.kind == "i" and v.name not in m.steering and m.rank(v.name)]
    if not ids:
        raise Refused("no integers")
    x = m.pick(*ids)
    small = m.one("Cast", x, to=2)
    columns = _features(m, x)
    weight = m.one("Mul", operand(m, (m.shape(x)[-1], columns), known=True), m.constant(np.float32(20)))
    if m.chance(0.5):
        scale, zero = m.constant(np.float32(0.125)), m.constant(np.int8(0))
        turned = m.one("QuantizeLinear", weight, scale, zero, exact=True)
        number = m.one("Cast", x, to=1)
        return m.node(
            "MatMul", number, m.one("Mul", m.one("DequantizeLinear", turned, scale, zero), m.constant(np.float32(0.05)))
        )
    whole = m.one("Cast", m.one("Floor", weight, exact=True), to=3)
    found = m.one("MatMulInteger", small, whole, m.constant(np.uint8(3)), exact=True)
    return m.node("Mul", m.one("Cast", found, to=1), m.constant(np.float32(0.01)))


def einsum(m: Maker, x: str) -> list[str]:
    """A sum of products by letters."""
    if not 2 <= m.rank(x) <= 4:
        raise Refused("axes")
    letters = "abcd"[: m.rank(x)]
    axis = int(m.random.integers(m.rank(x)))
    columns = _features(m, x)
    equation = f"{letters},{letters[axis]}z->{letters.replace(letters[axis], 'z')}"
    return m.node("Einsum", x, operand(m, (m.shape(x)[axis], columns)), equation=equation)


def alone(m: Maker, x: str) -> list[str]:
    """Sizes that depend on numbers: the model runs in stages from here on."""
    exact = [v.name for v in m.inputs if v.dtype.kind == "i" and v.name not in m.steering]
    if not exact or m.chance(0.7):
        raise Refused("not now")
    found = m.one("NonZero", m.pick(*exact), exact=True)
    return m.node("Cast", found, to=1)


RULES: tuple[Rule, ...] = (
    unary, chain, binary, binary, matmul, matmul, gemm, conv, conv, conv_transpose, pool, norm, gather, recurrent, attention,
    reshape, reshape, cut, widen, concat, concat, resize, reduction, select, branch, branch_of_weights, quantized, einsum, alone,
)  # fmt: skip
