"""Every operator's examples: by numpy, by kernels, each node alone; and what is said of the results before they are there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import Error
from fastlayers.ir.graph import Dim, Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.operators import OPERATORS, Spec, View
from fastlayers.operators.meter import Meter
from fastlayers.operators.reference import run_operator
from fastlayers.program import Program

from ..each import each
from .cases import Case, all_cases

CASES = all_cases()
STRINGS = ("StringNormalizer", "StringSplit")  # how many they make, their strings say
# One test an operator, for all its cases: a failure shows which one in its locals.
BY_OPERATOR = {op: [c for c in CASES if c.op == op] for op in sorted({c.op for c in CASES})}
operators = each("op", BY_OPERATOR)


def node_of(item: Case) -> Node:
    names = tuple(None if a is None else f"x{i}" for i, a in enumerate(item.inputs))
    return Node(item.op, names, tuple(f"y{i}" for i in range(len(item.want))), item.attributes)


def specs_of(item: Case, size: Callable[[int], Dim] = lambda s: s) -> list[Spec | None]:
    return [None if a is None else Spec(tuple(map(size, a.shape)), a.dtype) for a in item.inputs]


def expected(item: Case) -> Sequence[np.ndarray]:
    """What `run` says."""
    return run_operator(node_of(item), View(node_of(item), specs_of(item), [None] * len(item.inputs)), item.inputs)


def close(got: np.ndarray, want: np.ndarray, ulp: float) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind in "fc" and ulp:
        np.testing.assert_allclose(got, want, rtol=ulp * 2.0**-23, atol=ulp * 2.0**-24)
    else:
        np.testing.assert_array_equal(got, want)


def graph_of(item: Case, constants: int) -> tuple[Graph, list[np.ndarray]]:
    """The node alone; its inputs from number `constants` on are constants, the ones before are given to the graph."""
    node = node_of(item)
    named = [(n, a) for n, a in zip(node.inputs, item.inputs, strict=True) if n is not None and a is not None]
    given = [(n, a) for n, a in named if int(n[1:]) < constants]
    inputs = tuple(Value(n, a.shape, a.dtype) for n, a in given)
    outputs = tuple(Value(n, None, np.dtype(np.void)) for n in node.outputs)
    return Graph(inputs, outputs, (node,), dict(named[len(given) :])), [np.array(a, order="C") for _, a in given]


def test_every_operator_has_a_case() -> None:
    # What a pass makes of other nodes, which are in an attribute, has tests/graph/test_elementwise_pass.py.
    assert set(OPERATORS) - {"Elementwise"} == {c.op for c in CASES}


def test_labels_are_unique() -> None:
    assert len({c.id for c in CASES}) == len(CASES)


@operators
def test_numpy(op: str) -> None:
    for item in BY_OPERATOR[op]:
        results = expected(item)
        assert len(results) >= len(item.want)
        for got, want in zip(results, item.want, strict=False):
            if want is not None:
                close(got, want, item.ulp)


def agrees(spec: Spec, result: np.ndarray, sizes: dict[str, int]) -> None:
    """Whatever the rule says is true."""
    assert spec.dtype == result.dtype
    if spec.shape is not None:
        assert len(spec.shape) == result.ndim
        for said, size in zip(spec.shape, result.shape, strict=True):
            assert said is None or (sizes[said] if isinstance(said, str) else said) == size


@operators
def test_rule(op: str) -> None:
    for item in BY_OPERATOR[op]:
        results = expected(item)
        for i in {0, item.data, len(item.inputs)}:  # what is known: everything, the parameters, nothing
            found = OPERATORS[op].infer(View(node_of(item), specs_of(item), [*[None] * i, *item.inputs[i:]]))
            assert len(found) >= len(results)
            for spec, result in zip(found, results, strict=False):
                agrees(spec, result, {})
                assert spec.static or i > item.data or op in ("NonMaxSuppression", "NonZero", "Compress", "Unique", *STRINGS)


# What is known of a size: all have names, all but 1 have names, nothing.
SIZES: dict[str, Callable[[int], Dim]] = {
    "names": lambda s: f"s{s}",
    "names and ones": lambda s: 1 if s == 1 else f"s{s}",
    "unknown": lambda s: None,
}
# Operators whose result may have any number of axes where sizes are not known, parameters or not.
RANKLESS = ("ConstantOfShape", "Expand", "GatherND", "Reshape", "Squeeze")


@operators
@each("sizes, known", itertools.product(SIZES, (True, False)))  # parameters that have values, and that have none
def test_rule_with_unknown_sizes(op: str, sizes: str, known: bool) -> None:
    for item in BY_OPERATOR[op]:
        specs = specs_of(item, SIZES[sizes])
        specs[item.data :] = specs_of(item)[item.data :]  # parameters are of known size
        values = [None if i < item.data or not known else a for i, a in enumerate(item.inputs)]
        found = OPERATORS[op].infer(View(node_of(item), specs, values))
        for spec, result in zip(found, expected(item), strict=False):
            agrees(spec, result, {f"s{s}": s for s in range(100)})
            assert spec.shape is not None or op in RANKLESS or not known


def with_ones(item: Case) -> Iterator[Case]:
    """The case, and what is left of it where one of the sizes of its data is 1, for each size in turn."""
    yield item
    for size in sorted({s for a in item.inputs[: item.data] if a is not None for s in a.shape if s > 1}):
        cut = [a if a is None else a[tuple(slice(1 if s == size else None) for s in a.shape)] for a in item.inputs[: item.data]]
        yield item._replace(inputs=(*cut, *item.inputs[item.data :]))


@operators
def test_rule_with_some_sizes_unknown(op: str) -> None:
    """Whatever is known of each size: 1 and an unknown one, and parameters of unknown size for data of known."""
    random = np.random.default_rng(0)
    for whole in BY_OPERATOR[op]:
        for item in with_ones(whole):
            try:
                results = expected(item)
                found = OPERATORS[op].infer(View(node_of(item), specs_of(item), item.inputs))
            except Error:
                continue
            if any(spec.static and spec.shape != result.shape for spec, result in zip(found, results, strict=False)):
                continue  # numpy would broadcast; the run says so
            for part in (0.2, 0.5, 0.8):
                specs = specs_of(item, lambda s, part=part: None if random.random() < part else s)
                values = [
                    a if spec is not None and spec.static and i >= item.data else None
                    for i, (a, spec) in enumerate(zip(item.inputs, specs, strict=True))
                ]
                for spec, result in zip(OPERATORS[op].infer(View(node_of(item), specs, values)), results, strict=False):
                    agrees(spec, result, {})


@operators
def test_rule_with_unknown_rank(op: str) -> None:
    for item in BY_OPERATOR[op]:
        specs = [None if a is None else Spec(None, a.dtype) for a in item.inputs]
        found = OPERATORS[op].infer(View(node_of(item), specs, [None] * len(specs)))
        for spec, result in zip(found, expected(item), strict=False):
            agrees(spec, result, {})


@operators
def test_program(op: str, variant: str) -> None:
    for item in BY_OPERATOR[op]:
        for constants in {item.data, len(item.inputs)}:
            graph, given = graph_of(item, constants)
            program = Program(graph, dispatch.variant())
            copies = [a.copy() for a in given]
            for got, want in zip(program.binding(given).run(given), expected(item), strict=False):
                close(got, want, item.ulp)
            for before, after in zip(copies, given, strict=True):
                np.testing.assert_array_equal(before, after)


@operators
def test_alone(op: str, variant: str) -> None:
    for item in BY_OPERATOR[op]:
        graph, given = graph_of(item, item.data)
        program = Program(graph, dispatch.variant())
        program.stages.cuts.update(range(len(graph.nodes)))
        for got, want in zip(program.stages.run(given, Meter()), expected(item), strict=False):
            close(got, want, item.ulp)


@pytest.mark.parametrize("op", [op for op, items in BY_OPERATOR.items() if any(c.native for c in items)])
def test_kernels_do_it_all(op: str) -> None:
    for item in BY_OPERATOR[op]:
        if item.native:
            graph, given = graph_of(item, item.data)
            Program(graph, dispatch.variant(), native=True).binding(given)


@operators
def test_read_only_inputs(op: str) -> None:
    for item in BY_OPERATOR[op]:
        frozen: list[Any] = [None if a is None else a.copy() for a in item.inputs]
        for a in frozen:
            if a is not None:
                a.flags.writeable = False
        run_operator(node_of(item), View(node_of(item), specs_of(item), [None] * len(frozen)), frozen)
