"""Second operands of a wanted size: constants, and what is computed from sizes, from integer inputs, and from float inputs.

Those from sizes and integers are known when a model is bound, though not when it is loaded: what is packed of them belongs to one
binding alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .maker import Maker, Refused, Sizes

__all__ = ["condition", "dims", "operand", "scalar"]

DEEPEST = 3  # operands that are made of operands


def scalar(m: Maker, sizes: Sizes) -> str:
    """Integers of one axis and one element: a size, from wherever it can be had."""
    fixed = m.fixed(sizes)
    if fixed is not None and m.chance(0.8):
        return m.ints(fixed)
    found: list[Callable[[], str]] = []
    for name in list(m.values):
        if name in m.constants:
            continue
        if name in m.steering:
            if tuple(int(a.reshape(-1)[0]) for a in m.live(name)) == sizes:
                found.append(lambda name=name: _flat(m, name))  # type: ignore[misc]
            continue
        for axis in range(m.rank(name)):
            if m.sizes(name, axis) == sizes:
                found.append(lambda name=name, axis=axis: m.one("Shape", name, start=axis, end=axis + 1))  # type: ignore[misc]
    if found:
        return m.pick(*found)()  # type: ignore[no-any-return]
    if fixed is not None:
        return m.ints(fixed)
    for factor in (2, 3, 4, 5, 6, 8):  # what has been repeated or reshaped
        if all(s % factor == 0 for s in sizes):
            return m.one("Mul", scalar(m, tuple(s // factor for s in sizes)), m.ints(factor), exact=True)
    for more in (1, 2, -1, -2, 3):
        other = tuple(s - more for s in sizes)
        if min(other) >= 0 and any(m.sizes(n, a) == other for n in m.values for a in range(m.rank(n))):
            return m.one("Add", scalar(m, other), m.ints(more), exact=True)
    raise Refused("no such size")


def _flat(m: Maker, name: str) -> str:
    return name if m.rank(name) == 1 else m.one("Reshape", name, m.ints(1))


def dims(m: Maker, shape: Sequence[Sizes]) -> str:
    """A list of integers: these sizes."""
    if not shape:
        return m.ints()
    if all(m.fixed(s) is not None for s in shape) and m.chance(0.7):
        return m.ints(*(s[0] for s in shape))
    if len(shape) > 1 and m.chance(0.4):  # the shape of something that is there
        whole = [n for n in m.values if n not in m.constants and m.shape(n) == tuple(shape)]
        if whole:
            return m.one("Shape", m.pick(*whole))
    parts = [scalar(m, s) for s in shape]
    return parts[0] if len(parts) == 1 else m.one("Concat", *parts, axis=0)


def condition(m: Maker) -> str:
    """A boolean of one element that sizes or integer inputs decide."""
    names = [n for n in m.values if n not in m.constants and n not in m.steering and m.rank(n)]
    if m.steering and m.chance(0.5):
        name = m.pick(*m.steering)
        whole = m.one("Reshape", name, m.ints(1))
        middle = int(np.median([a.item() for a in m.live(name)]))
    else:
        name = m.pick(*names)
        axis = int(m.random.integers(m.rank(name)))
        whole = m.one("Shape", name, start=axis, end=axis + 1)
        middle = int(np.median(m.sizes(name, axis)))
    return m.one(m.pick("Less", "Greater"), whole, m.ints(middle))


def operand(m: Maker, shape: Sequence[Sizes], known: bool = False) -> str:
    """A float value of this shape. `known`: only what is known when the model is bound."""
    old = [n for n in m.values if m.kind(n) == "f" and m.shape(n) == tuple(shape) and (not known or n in m.constants)]
    if old and m.chance(0.15):  # shared with another node
        return str(m.pick(*old))
    if m.depth >= DEEPEST:
        raise Refused("operands of operands")
    ways = list(WAYS) if known else [*WAYS, _from_floats]
    m.depth += 1
    try:
        for i in m.random.permutation(len(ways)):
            try:
                found = ways[i](m, tuple(shape))
            except Refused:
                continue
            if m.shape(found) == tuple(shape) and m.kind(found) == "f":
                return str(found)
    finally:
        m.depth -= 1
    raise Refused("no such operand")


def _scale(shape: Sequence[Sizes]) -> float:
    """Such that a product keeps the size of its elements."""
    terms = shape[:-1] if len(shape) < 3 else shape[1:]
    return max(float(np.prod([max(s) for s in terms])), 1.0) ** -0.5 if len(shape) > 1 else 1.0


def _constant(m: Maker, shape: Sequence[Sizes]) -> str:
    if any(m.fixed(s) is None for s in shape):
        raise Refused("it has no fixed size")
    return m.weights(*(s[0] for s in shape))


def _cut(m: Maker, shape: Sequence[Sizes]) -> str:
    """The first rows and columns of a constant."""
    if not shape:
        raise Refused("it has no axes")
    whole = m.weights(*(max(s) + int(m.random.integers(3)) for s in shape), scale=_scale(shape))
    return m.one("Slice", whole, m.ints(*(0,) * len(shape)), dims(m, shape))


def _rows(m: Maker, shape: Sequence[Sizes]) -> str:
    """Rows of a table, by a range of their numbers."""
    if not shape or any(m.fixed(s) is None for s in shape[1:]):
        raise Refused("only rows can be chosen")
    table = m.weights(max(shape[0]) + 2, *(s[0] for s in shape[1:]), scale=_scale(shape))
    return m.one("Gather", table, _range(m, shape[0]), axis=0)


def _range(m: Maker, sizes: Sizes) -> str:
    end = m.one("Squeeze", scalar(m, sizes), m.ints(0))
    return m.one("Range", m.constant(np.int64(0)), end, m.constant(np.int64(1)))


def _filled(m: Maker, shape: Sequence[Sizes]) -> str:
    """One number everywhere, in a triangle or a running sum."""
    number = np.array([_scale(shape) * m.random.choice([0.5, 1, -1])], np.float32)
    ones = m.one("ConstantOfShape", dims(m, shape), value=number)
    if len(shape) < 2 or m.chance(0.2):
        return ones
    if m.chance(0.6):
        return m.one("Trilu", ones, upper=int(m.random.integers(2)))
    running = m.one("CumSum", ones, m.constant(np.int64(m.random.integers(len(shape)))))
    return m.one("Mul", running, m.constant(np.float32(1 / max(max(s) for s in shape))))


def _spots(m: Maker, shape: Sequence[Sizes]) -> str:
    """Ones on a diagonal, or at places of a list."""
    if len(shape) != 2:
        raise Refused("it is no matrix")
    if m.chance(0.5):
        zeros = m.one("ConstantOfShape", dims(m, shape), value=np.zeros(1, np.float32))
        return m.one("EyeLike", zeros, k=int(m.random.integers(-1, 2)))
    numbers = _range(m, shape[0])
    return m.one("OneHot", numbers, scalar(m, shape[1]), m.constant(np.array([0, 0.5], np.float32)), axis=-1)


def _numbered(m: Maker, shape: Sequence[Sizes]) -> str:
    """0, 1, 2, … in the shape, squashed."""
    count = m.one("ReduceProd", dims(m, shape), None, keepdims=0, exact=True)
    numbers = m.one("Range", m.constant(np.int64(0)), count, m.constant(np.int64(1)))
    wave = m.one("Sin", m.one("Cast", numbers, to=1), exact=False)
    scaled = m.one("Mul", wave, m.constant(np.float32(_scale(shape))))
    return m.one("Reshape", scaled, dims(m, shape))


def _scaled(m: Maker, shape: Sequence[Sizes]) -> str:
    """Another operand times an integer input."""
    if not m.steering:
        raise Refused("there is no integer input")
    number = m.one("Cast", m.one("Reshape", m.pick(*m.steering), m.ints()), to=1)
    part = m.one("Div", number, m.constant(np.float32(max(p[n] for p in m.places for n in m.steering) + 1)), exact=False)
    return m.one("Mul", operand(m, shape, known=True), part)


def _chosen(m: Maker, shape: Sequence[Sizes]) -> str:
    """One of two, by a size or an integer input: in branches, in a list, or outside of the branches."""
    if any(m.fixed(s) is None for s in shape) or m.chance(0.4):
        return m.branches(condition(m), lambda: operand(m, shape, True), lambda: operand(m, shape, True))
    fixed = [s[0] for s in shape]
    if m.steering and m.chance(0.5):
        pair = m.constant(np.stack([m.constants[m.weights(*fixed, scale=_scale(shape))] for _ in range(2)]))
        place = m.one("Mod", m.one("Reshape", m.pick(*m.steering), m.ints()), m.constant(np.int64(2)), exact=True)
        return m.one("Gather", pair, place, axis=0)
    one, two = m.weights(*fixed, scale=_scale(shape)), m.weights(*fixed, scale=_scale(shape))
    return m.branches(condition(m), lambda: one, lambda: two)


def _spread(m: Maker, shape: Sequence[Sizes]) -> str:
    """One row over all, or padded."""
    if not shape or m.fixed(shape[-1]) is None:
        raise Refused("no row is fixed")
    row = m.weights(shape[-1][0], scale=_scale(shape))
    if len(shape) == 1 and m.chance(0.5):
        return row
    return m.one("Expand", row, dims(m, shape))


def _padded(m: Maker, shape: Sequence[Sizes]) -> str:
    """A constant with padding as wide as a size asks for."""
    if not shape or any(min(s) < 1 for s in shape):
        raise Refused("nothing to pad")
    core = m.weights(*(min(s) for s in shape), scale=_scale(shape))
    after = m.one("Sub", dims(m, shape), m.ints(*(min(s) for s in shape)), exact=True)
    pads = m.one("Concat", m.ints(*(0,) * len(shape)), after, axis=0)
    return m.one("Pad", core, pads, m.constant(np.float32(0.25)))


def _turned(m: Maker, shape: Sequence[Sizes]) -> str:
    """An operand, transposed."""
    if len(shape) < 2:
        raise Refused("it has one axis")
    order = [int(i) for i in m.random.permutation(len(shape))]
    back = operand(m, [shape[i] for i in order], known=True)
    return m.one("Transpose", back, perm=tuple(int(i) for i in np.argsort(order)))


def _from_floats(m: Maker, shape: Sequence[Sizes]) -> str:
    """From a float input, so that it changes with every call."""
    floats = [v.name for v in m.inputs if v.dtype.kind == "f"]
    if not floats:
        raise Refused("there is no float input")
    mean = m.one("ReduceMean", m.pick(*floats), None, keepdims=0)
    return m.one("Mul", operand(m, shape, known=True), m.one("Sigmoid", mean))


# A constant several times, so that models are mostly usual ones.
WAYS: tuple[Callable[[Maker, Sequence[Sizes]], str], ...] = (
    _constant, _constant, _constant, _cut, _cut, _rows, _filled, _filled, _spots, _numbered, _scaled, _scaled, _chosen, _chosen,
    _spread, _padded, _turned,
)  # fmt: skip
