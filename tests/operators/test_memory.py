"""Views, results in place and parts written where they belong must never show: random graphs against numpy, and chosen ones."""

from __future__ import annotations

import numpy as np

from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.operators import OPERATORS, Spec, View
from fastlayers.operators.builder import Call, PythonCall
from fastlayers.operators.reference import run_operator
from fastlayers.program import Program

from ..each import each

FLOAT32 = np.dtype(np.float32)
MOST = 20000  # elements of an array


class Maker:
    """Collects nodes with what numpy makes of them. All operators are exact, so results must be equal bit for bit."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.arrays: dict[str, np.ndarray] = {}
        self.inputs: list[Value] = []
        self.constants: dict[str, np.ndarray] = {}
        self.nodes: list[Node] = []

    def input(self, *shape: int) -> str:
        name = f"in{len(self.inputs)}"
        self.inputs.append(Value(name, shape, FLOAT32))
        self.arrays[name] = self.numbers(*shape)
        return name

    def numbers(self, *shape: int) -> np.ndarray:
        return self.random.integers(-9, 10, shape).astype(np.float32)

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = self.arrays[name] = array
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: object) -> list[str]:
        node = Node(op, inputs, tuple(f"v{len(self.nodes)}_{i}" for i in range(outputs)), attributes)
        given = [self.arrays[n] for n in inputs]
        view = View(node, [Spec(a.shape, a.dtype) for a in given], given)
        assert all(s.static for s in OPERATORS[op].infer(view))
        self.nodes.append(node)
        self.arrays.update(zip(node.outputs, map(np.array, run_operator(node, view, given)), strict=True))
        return list(node.outputs)

    def check(self, *outputs: str, runs: int = 2) -> Program:
        """Runs everything; the outputs, inputs and fed arrays must be as numpy has them."""
        values = tuple(Value(n, None, FLOAT32) for n in outputs)
        program = Program(Graph(tuple(self.inputs), values, tuple(self.nodes), self.constants), dispatch.variant())
        feeds = [self.arrays[v.name].copy() for v in self.inputs]
        for _ in range(runs):
            results = program.binding(feeds).run(feeds)
            for name, got in zip(outputs, results, strict=True):
                np.testing.assert_array_equal(got, self.arrays[name], err_msg=f"{name} of {program.graph!r}")
            for value, feed in zip(self.inputs, feeds, strict=True):
                np.testing.assert_array_equal(feed, self.arrays[value.name])
        return program


def grow(maker: Maker, values: list[str]) -> list[str]:
    """One more node over values that are there."""
    random = maker.random
    x = str(random.choice(values))
    shape = maker.arrays[x].shape
    rank = len(shape)
    axis = int(random.integers(rank)) if rank else 0
    same = [v for v in values if maker.arrays[v].shape == shape]
    joinable = [v for v in values if maker.arrays[v].ndim == rank and _but(maker.arrays[v].shape, axis) == _but(shape, axis)]
    kind = int(random.integers(15))
    if kind <= 1:
        return maker.node(str(random.choice(["Relu", "Neg", "Abs", "Identity"])), x)
    if kind <= 3:
        return maker.node(str(random.choice(["Add", "Sub", "Max", "Min"])), x, str(random.choice(same)))
    if kind == 4:
        return maker.node("Sum", x, str(random.choice(same)), x)
    if kind == 5:
        return maker.node("Reshape", x, maker.ints(-1) if rank != 1 else maker.ints(1, -1, 1))
    if kind == 6 and rank:
        return maker.node("Transpose", x, perm=tuple(int(i) for i in random.permutation(rank)))
    if kind == 7 and rank and sum(maker.arrays[v].size for v in joinable) < MOST:
        return maker.node("Concat", *(str(v) for v in random.choice(joinable, int(random.integers(1, 4)))), axis=axis)
    if kind == 8 and rank and shape[axis] > 1:
        cut = int(random.integers(1, shape[axis]))
        return maker.node("Split", x, maker.ints(cut, shape[axis] - cut), outputs=2, axis=axis)
    if kind == 9 and rank and shape[axis] > 1:
        step = int(random.choice([1, 1, 2, -1]))
        bounds = (1, 1 << 40) if step > 0 else (-1, -(1 << 40))
        return maker.node("Slice", x, maker.ints(bounds[0]), maker.ints(bounds[1]), maker.ints(axis), maker.ints(step))
    if kind == 10:
        return maker.node("Unsqueeze", x, maker.ints(int(random.integers(rank + 1))))
    if kind == 11 and rank and maker.arrays[x].size:
        return maker.node("ReduceMax", x, maker.ints(axis), keepdims=int(random.integers(2)))
    if kind in (12, 13) and rank:
        x = maker.node("Relu", x)[0]
        first = maker.node("Slice", x, maker.ints(0), maker.ints(1), maker.ints(axis))[0]
        total = maker.node("Add", x, first)[0]  # a view of the first operand, broadcast over it
        return [first, total, *maker.node("Neg", total)]
    return maker.node("Add", x, maker.constant(maker.numbers(*shape)))


def _but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


@each("seed", range(60))
def test_random_graphs(seed: int, variant: str) -> None:
    maker = Maker(seed)
    random = maker.random
    values = [maker.input(*(int(s) for s in random.choice([1, 2, 3, 40], random.integers(1, 4)))) for _ in range(2)]
    for _ in range(int(random.integers(3, 25))):
        made = grow(maker, values)
        values += [v for v in made if maker.arrays[v].ndim < 6 and maker.arrays[v].size < MOST]
    chosen = {str(v) for v in random.choice(values, min(len(values), int(random.integers(1, 6))))}
    maker.check(values[-1], *sorted(chosen - {values[-1]}))


def calls(program: Program, *feeds: np.ndarray) -> list[str]:
    """What a binding does, call by call."""
    plan = program.binding(list(feeds)).plan
    assert plan is not None
    return [c.kernel if isinstance(c, Call) else "numpy" for c in plan.calls if isinstance(c, (Call, PythonCall))]


def done(maker: Maker, *outputs: str) -> list[str]:
    return calls(maker.check(*outputs), *(maker.arrays[v.name] for v in maker.inputs))


def test_views_cost_nothing(variant: str) -> None:
    maker = Maker(0)
    x = maker.node("Relu", maker.input(1, 6, 4))[0]
    a, b = maker.node("Split", x, maker.ints(2, 4), outputs=2, axis=1)
    c = maker.node("Unsqueeze", maker.node("Flatten", b, axis=2)[0], maker.ints(0))[0]
    d = maker.node("Transpose", c, perm=(1, 0, 2))[0]
    e = maker.node("Slice", d, maker.ints(1), maker.ints(3), maker.ints(0))[0]
    f = maker.node("Gather", e, maker.constant(np.array(-1, np.int64)))[0]
    assert done(maker, maker.node("Relu", f)[0], maker.node("Relu", a)[0]) == ["unary"] * 3


def test_parts_are_written_where_they_belong(variant: str) -> None:
    maker = Maker(0)
    x = maker.input(1, 2, 3)
    a, b = maker.node("Relu", x)[0], maker.node("Exp", maker.node("Relu", x)[0])[0]
    assert done(maker, maker.node("Concat", a, b, axis=1)[0]) == ["unary"] * 3


def test_a_part_that_is_there_twice_is_copied_once(variant: str) -> None:
    maker = Maker(0)
    a = maker.node("Relu", maker.input(2, 3))[0]
    assert done(maker, maker.node("Concat", a, a, axis=0)[0]) == ["unary", "copy"]


def test_parts_beside_one_another_are_copied(variant: str) -> None:
    maker = Maker(0)
    a = maker.node("Relu", maker.input(2, 3))[0]
    assert done(maker, maker.node("Concat", a, a, axis=1)[0]) == ["unary", "copy", "copy"]


def test_inputs_are_never_changed(variant: str) -> None:
    maker = Maker(0)
    x = maker.input(4, 4)
    flat = maker.node("Flatten", x)[0]
    maker.check(maker.node("Relu", flat)[0], maker.node("Neg", x)[0], flat)


def test_a_value_that_is_wanted_later_is_not_overwritten(variant: str) -> None:
    maker = Maker(0)
    a = maker.node("Neg", maker.input(4, 4))[0]
    b = maker.node("Relu", a)[0]
    flat = maker.node("Reshape", a, maker.ints(-1))[0]
    maker.check(b, maker.node("Relu", maker.node("Neg", flat)[0])[0])


def test_a_view_of_an_operand_is_not_overwritten_while_it_is_read(variant: str) -> None:
    maker = Maker(0)
    x = maker.node("Relu", maker.input(3, 40))[0]  # rows that no kernel takes at once
    row = maker.node("Slice", x, maker.ints(1), maker.ints(2), maker.ints(0))[0]
    maker.check(maker.node("Neg", maker.node("Add", x, row)[0])[0])  # the sum is no output, so it may be anywhere


def test_results_in_place_take_no_more_memory() -> None:
    with_one, with_many = Maker(0), Maker(0)
    sizes = []
    for maker, count in ((with_one, 2), (with_many, 9)):
        x = maker.input(64, 64)
        for _ in range(count):
            x = maker.node("Relu", x)[0]
        program = maker.check(maker.node("Neg", x)[0])
        plan = program.binding([maker.arrays["in0"]]).plan
        assert plan is not None
        sizes.append(plan.arena)
    assert sizes[0] == sizes[1] <= 64 * 64 * 4
