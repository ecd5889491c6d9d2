"""Graphs by hand whose bindings share much from one place of a walk to the next, or change much at once.

Each builder takes a `Maker` and returns the outputs' names. They ask for what a binding may get wrong when it keeps parts of an
earlier one, when values are inside of others, take the place of others, or are other views of them, and when a node is computed
beforehand at one size and in each run at another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .maker import Maker, Place
from .operands import dims, scalar

__all__ = ["BUILDERS", "PLACES", "built"]

Builder = Callable[[Maker], Sequence[str]]

# One size at a time, then all; back to the first; a size of one, one that folds no more, and none.
PLACES: tuple[Place, ...] = (
    {"n": 2, "t": 3, "p": 2, "k": 1},
    {"n": 2, "t": 4, "p": 2, "k": 1},
    {"n": 2, "t": 4, "p": 5, "k": 1},
    {"n": 2, "t": 4, "p": 5, "k": 2},
    {"n": 3, "t": 4, "p": 5, "k": 2},
    {"n": 2, "t": 3, "p": 2, "k": 1},
    {"n": 1, "t": 1, "p": 1, "k": 0},
    {"n": 1, "t": 130, "p": 3, "k": 2},
    {"n": 2, "t": 4, "p": 0, "k": 3},
    {"n": 1, "t": 130, "p": 4, "k": 2},
    {"n": 2, "t": 3, "p": 2, "k": 2},
)


def built(
    builder: Builder, seed: int = 0, places: Sequence[Place] = PLACES, optional: Sequence[int] = ()
) -> tuple[Maker, list[str]]:
    """A builder's graph, still open, and its outputs."""
    m = Maker(seed, places, optional, 1 << 20, 1e4)
    return m, list(builder(m))


def cache(m: Maker) -> list[str]:
    """A decoder's step: keys and values of the past before new ones, which are outputs as well."""
    x = m.input("x", "n", "t", 8)
    past_k, past_v = m.input("past_k", "n", "p", 8), m.input("past_v", "n", "p", 8)
    q, k, v = (m.one("MatMul", x, m.weights(8, 8)) for _ in range(3))
    keys, values = m.one("Concat", past_k, k, axis=1), m.one("Concat", past_v, v, axis=1)
    scores = m.one("MatMul", q, m.one("Transpose", keys, perm=(0, 2, 1)))
    ones = m.one("ConstantOfShape", dims(m, m.shape(scores)[1:]), value=np.ones(1, np.float32))
    late = m.one(
        "Trilu", ones, m.one("Squeeze", m.one("Add", m.one("Shape", past_k, start=1, end=2), m.ints(1)), m.ints(0)), upper=1
    )
    scores = m.one("Sub", scores, m.one("Mul", late, m.constant(np.float32(40))))
    mixed = m.one("MatMul", m.one("Softmax", scores, axis=-1), values)
    return [m.one("Add", x, m.one("MatMul", mixed, m.weights(8, 8))), keys, values]


def nested_concats(m: Maker) -> list[str]:
    """Parts in wholes that are parts themselves; some depend on one size alone, some on two."""
    x, y = m.input("x", 1, "t", 4), m.input("y", 1, "p", 4)
    a, b, c = m.one("Relu", x), m.one("Tanh", y), m.one("MatMul", x, m.weights(4, 4))
    inner = m.one("Concat", a, b, axis=1)
    middle = m.one("Concat", c, inner, axis=1)
    return [m.one("Relu", m.one("Concat", middle, m.one("Neg", b), axis=1)), m.one("Neg", inner)]


def one_part_in_two_wholes(m: Maker) -> list[str]:
    """A value is a part of two, of one of them twice, and of an output."""
    x, y = m.input("x", 1, "t", 4), m.input("y", 1, "p", 4)
    a, b = m.one("Relu", x), m.one("Relu", y)
    return [m.one("Concat", a, b, axis=1), m.one("Neg", m.one("Concat", b, a, a, axis=1)), a]


def parts_beside(m: Maker) -> list[str]:
    """Columns next to one another, which cannot be made in place for more than one row; they can for one."""
    x, y = m.input("x", "n", 4), m.input("y", "n", "p")
    return [m.one("Neg", m.one("Concat", m.one("Relu", x), m.one("Tanh", y), m.one("MatMul", x, m.weights(4, 3)), axis=1))]


def part_that_is_an_output(m: Maker) -> list[str]:
    """An output that is a part of another output, and one that is a view of the whole; next to them what alone knows a size."""
    x, y, z = m.input("x", 1, "t", 4), m.input("y", 1, "p", 4), m.input("z", "n", 4)
    a = m.one("MatMul", x, m.weights(4, 4))
    whole = m.one("Concat", a, m.one("Relu", y), axis=1)
    return [a, whole, m.one("Reshape", whole, m.ints(-1)), m.one("Tanh", m.one("MatMul", z, m.weights(4, 4)))]


def parts_that_stay(m: Maker) -> list[str]:
    """A value stays a part of one while another, which it could be a part of as well, is made again; and it is an output."""
    x, y, z = m.input("x", 1, "t", 4), m.input("y", 1, "p", 4), m.input("z", 1, "n", 4)
    a, b = m.one("MatMul", x, m.weights(4, 4)), m.one("Relu", y)
    first = m.one("Concat", a, b, axis=1)
    second = m.one("Concat", a, m.one("Tanh", z), b, axis=1)
    return [m.one("Neg", first), m.one("Neg", second), a, m.one("Tanh", z)]


def in_place(m: Maker) -> list[str]:
    """A chain that may stay in one place but for a link that is wanted later."""
    a = m.one("MatMul", m.input("x", "n", "t", 4), m.weights(4, 4))
    b = m.one("Relu", a)
    c = m.one("Neg", b)
    d = m.one("Softmax", c, axis=1)
    return [m.one("Add", m.one("Tanh", d), b), m.one("ReduceMax", d, m.ints(1))]


def views_of_inputs(m: Maker) -> list[str]:
    """Inputs, and other views of them, as outputs and as operands."""
    x, y = m.input("x", "n", "t", 4), m.input("y", "p", 4)
    flat = m.one("Reshape", x, m.one("Concat", m.one("Shape", x, start=0, end=1), m.ints(-1), axis=0))
    first = m.one("Slice", x, m.ints(0), m.ints(1), m.ints(0))
    return [flat, "x", m.one("Unsqueeze", y, m.ints(0)), m.one("Relu", first), m.one("Neg", flat), first]


def views_of_views(m: Maker) -> list[str]:
    """Reshapes and slices of a computed value, which is written to as well."""
    a = m.one("MatMul", m.input("x", 1, "t", 4), m.weights(4, 8))
    b = m.one("Reshape", a, m.ints(-1, 4))
    c = m.one("Slice", b, m.ints(1), m.ints(1 << 40), m.ints(0))
    d = m.one("Squeeze", a, m.ints(0))
    return [m.one("Relu", c), m.one("Add", d, m.weights(8)), m.one("Transpose", m.one("Unsqueeze", c, m.ints(0)), perm=(1, 0, 2))]


def weights_of_a_size(m: Maker) -> list[str]:
    """Products with what only one of the sizes decides, which folds at some sizes and does not at others."""
    x, y = m.input("x", "n", "t"), m.input("y", "n", "p")
    t, p = scalar(m, m.sizes(x, 1)), scalar(m, m.sizes(y, 1))
    triangle = m.one("Trilu", m.one("ConstantOfShape", m.one("Concat", t, t, axis=0), value=np.ones(1, np.float32)), upper=1)
    wide = m.one("ConstantOfShape", m.one("Concat", p, m.ints(3), axis=0), value=np.full(1, 0.5, np.float32))
    running = m.one("CumSum", wide, m.constant(np.int64(0)))
    scaled = m.one("Mul", x, m.constant(np.float32(1 / 16)))
    return [m.one("MatMul", scaled, triangle), m.one("MatMul", y, m.one("Mul", running, m.constant(np.float32(0.1))))]


def chosen_weights(m: Maker) -> list[str]:
    """A branch by a size and one by a number choose the weights of products, which two nodes share."""
    x = m.input("x", "n", "t", 4)
    k = m.steer("k", 0)
    one, two, three = m.weights(4, 4), m.weights(4, 4), m.weights(4, 4)
    by_size = m.one("Less", m.one("Shape", x, start=1, end=2), m.ints(4))
    by_number = m.one("Less", m.one("Reshape", k, m.ints(1)), m.ints(2))
    first = m.branches(by_size, lambda: one, lambda: two)
    second = m.branches(by_number, lambda: first, lambda: three)
    return [m.one("MatMul", x, first), m.one("MatMul", m.one("Tanh", x), second), m.one("MatMul", x, second)]


def branches_by_size(m: Maker) -> list[str]:
    """Other nodes at other sizes, with parts that are joined after."""
    x, y = m.input("x", 1, "t", 4), m.input("y", 1, "p", 4)
    long = m.one("Greater", m.one("Shape", x, start=1, end=2), m.ints(3))
    weight = m.weights(4, 4)
    a = m.branches(long, lambda: m.one("MatMul", x, weight), lambda: m.one("Relu", m.one("MatMul", x, m.weights(4, 4))))
    return [m.one("Concat", a, m.one("MatMul", y, weight), axis=1), m.one("Neg", a)]


def numpy_at_some_sizes(m: Maker) -> list[str]:
    """An integer input decides whether pads are negative, which kernels do not do; around it all stays."""
    x = m.input("x", 1, 4, "t", "n")
    k = m.steer("k", 1)
    a = m.one("Relu", x)
    cut = m.one("Sub", k, m.ints(1))
    b = m.one("Pad", a, m.one("Concat", m.ints(0, 0), cut, m.ints(0, 0, 0, 1, 1), axis=0), m.constant(np.float32(0.5)))
    c = m.one("Conv", b, m.weights(4, 4, 1, 1))
    return [m.one("Tanh", c), m.one("Conv", m.one("Tanh", a), m.weights(8, 4, 1, 1))]


def algorithms_by_size(m: Maker) -> list[str]:
    """Convolutions for which another algorithm is better at another size, and a product with few or many rows."""
    x = m.input("x", "n", 8, "t", 6)
    a = m.one("Conv", x, m.weights(16, 8, 3, 3), m.weights(16), pads=(1, 1, 1, 1))
    b = m.one("ConvTranspose", a, m.weights(16, 1, 2, 2, scale=0.5), group=16, strides=(2, 2))
    return [m.one("Relu", a), m.one("ReduceMean", b, m.ints(2, 3), keepdims=0)]


def only_one_input_changes(m: Maker) -> list[str]:
    """Two chains without a common node, and one value of both."""
    x, y = m.input("x", "n", "t", 4), m.input("y", "n", "p", 4)
    a = m.one("Softmax", m.one("MatMul", x, m.weights(4, 8)), axis=-1)
    b = m.one("Softmax", m.one("MatMul", y, m.weights(4, 8)), axis=-1)
    both = m.one("Add", m.one("ReduceMean", a, m.ints(1)), m.one("ReduceMax", m.one("Concat", b, a, axis=1), m.ints(1)))
    return [a, b, both]


def numbers_that_decide(m: Maker) -> list[str]:
    """Slices, tiles, pads and a TopK by an integer input; a Gather of weights by it."""
    x, k = m.input("x", "n", 6), m.steer("k", 0)
    number = m.one("Reshape", k, m.ints(1))
    part = m.one("Slice", x, m.ints(0), number, m.ints(1))
    table = m.constant(m.random.standard_normal((4, 6, 5)).astype(np.float32))
    weight = m.one("Gather", table, k, axis=0)
    cut = m.one("Slice", m.weights(6, 4), m.ints(0), number, m.ints(0))
    best = m.node("TopK", x, number, outputs=2, axis=1)[0]
    return [
        m.one("MatMul", x, weight),
        m.one("MatMul", part, cut),
        m.one("Tile", x, m.one("Concat", m.ints(1), number, axis=0)),
        best,
    ]


def places_by_number(m: Maker) -> list[str]:
    """Views of one size whose place in an input and in a computed value an integer input moves; one is a part of a whole."""
    x, y, k = m.input("x", 6, 4), m.input("y", "t", 4), m.steer("k", 1)
    a = m.one("MatMul", x, m.weights(4, 4))
    end = m.one("Add", k, m.ints(2))
    of_input, of_value = (m.one("Slice", v, k, end, m.ints(0)) for v in (x, a))
    row = m.one("Gather", a, m.one("Reshape", k, m.ints()), axis=0)
    whole = m.one("Concat", of_value, m.one("Relu", y), axis=0)
    return [m.one("Tanh", of_input), m.one("Tanh", of_value), m.one("Neg", row), whole, of_value]


def parts_that_may_be_empty(m: Maker) -> list[str]:
    """A number decides whether anything is joined to a value that is a part of a second one, too."""
    x, y, k = m.input("x", 1, "t", 4), m.input("y", 1, "p", 4), m.steer("k", 1)
    a, b = m.one("Relu", x), m.one("Tanh", y)
    some = m.one("Slice", b, m.ints(0), m.one("Sub", k, m.ints(1)), m.ints(1))
    first = m.one("Concat", a, some, axis=1)
    return [m.one("Neg", first), m.one("Concat", b, a, axis=1), m.one("Concat", some, a, first, axis=1)]


def recurrent(m: Maker) -> list[str]:
    """Recurrent layers whose weights a number scales, whose steps are a size."""
    x, k = m.input("x", "p", "n", 4), m.steer("k", 0)
    size = m.one("ConstantOfShape", m.one("Reshape", k, m.ints(1)), value=np.ones(1, np.float32))
    scale = m.one("Div", m.one("Cast", m.one("Add", k, m.constant(np.int64(1))), to=1), m.constant(np.float32(4)))
    w, r = m.weights(1, 16, 4), m.weights(1, 16, 4)
    y, last, _ = m.node("LSTM", x, m.one("Mul", w, scale), r, outputs=3, hidden_size=4)
    return [y, last, m.one("LSTM", x, w, m.one("Mul", r, scale), hidden_size=4), size]


BUILDERS: tuple[Builder, ...] = (
    cache, nested_concats, one_part_in_two_wholes, parts_beside, part_that_is_an_output, parts_that_stay, in_place,
    views_of_inputs, views_of_views, weights_of_a_size, chosen_weights, branches_by_size, numpy_at_some_sizes, algorithms_by_size,
    only_one_input_changes, numbers_that_decide, places_by_number, parts_that_may_be_empty, recurrent,
)  # fmt: skip
