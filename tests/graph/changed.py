"""Graphs that passes may not understand: those of the tests with one attribute, rank, dtype or input of a node changed."""

from __future__ import annotations

import importlib
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from fastlayers import passes
from fastlayers.errors import Error
from fastlayers.ir.graph import Graph, Node
from fastlayers.kernels import dispatch
from fastlayers.passes import fold
from fastlayers.passes._net import Net
from fastlayers.program import Program
from fastlayers.program.steps import steps

__all__ = ["Changed", "alike", "changes", "changes_of", "rebuilt", "unharmed"]


class Changed(NamedTuple):
    """A graph with one thing changed, what it is given, and what was changed."""

    graph: Graph
    given: list[np.ndarray]
    what: str


def rebuilt(made: Graph, **parts: Any) -> Graph:
    """The graph with other parts."""
    whole = {name: getattr(made, name) for name in ("inputs", "outputs", "nodes", "constants", "values")}
    return Graph(**{**whole, **parts})


def _array(a: np.ndarray, how: str) -> np.ndarray:
    """A constant or an input as another one."""
    forms = {
        "float64": lambda: a.astype(np.float64),
        "float16": lambda: a.astype(np.float16),
        "int64": lambda: a.astype(np.int64),
        "one axis more": lambda: a[None],
        "more axes than others have": lambda: a.reshape((1,) * max(6 - a.ndim, 0) + a.shape),
        "an axis after": lambda: a[..., None],
        "one axis less": lambda: (
            a.reshape(a.shape[1:]) if a.ndim and a.shape[0] == 1 else a[..., 0] if a.ndim and a.shape[-1] else a
        ),
        "one element": lambda: a.reshape(-1)[:1],
        "no axes": lambda: a.reshape(-1)[0] if a.size else a,
        "empty": lambda: a[:0] if a.ndim else a,
        "negative": lambda: -a if a.dtype.kind == "f" else a,
        "not a number": lambda: np.full_like(a, np.nan) if a.dtype.kind == "f" else a,
    }
    with np.errstate(all="ignore"):
        return np.array(forms[how](), order="C")


_ARRAYS = ("float64", "float16", "int64", "one axis more", "more axes than others have", "an axis after", "one axis less",
           "one element", "no axes", "empty", "negative", "not a number")  # fmt: skip


def _values(value: Any) -> Iterator[Any]:
    """Other values of an attribute."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (0, 1, -1, value + 1)
    elif isinstance(value, float):
        yield from (0.0, -1.0, value + 0.5)
    elif isinstance(value, str):
        yield from ("", "reflect", "tanh", "SAME_UPPER")
    elif isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
        yield from (value[::-1], value[:-1], (*value, 1), tuple(v + 1 for v in value), tuple(-v for v in value))


_MORE: dict[str, tuple[Any, ...]] = {
    "axis": (0, 1, -1, 2), "keepdims": (0,), "alpha": (0.0, -0.5, 2.0), "beta": (0.25,), "group": (2, 3),
    "strides": ((2, 2), (2,)), "dilations": ((2, 2),),
    "pads": ((1, 1, 1, 1), (0, 0, 1, 1), (-1, 0, 0, 0)), "auto_pad": ("SAME_UPPER", "VALID"),
    "transA": (1,), "transB": (1,), "perm": ((1, 0), (0, 2, 1), (0, 2, 1, 3)), "mode": ("reflect", "edge"), "ceil_mode": (1,),
    "flatten": (True,), "noop_with_empty_axes": (1,), "training_mode": (1,), "approximate": ("tanh",), "block_size": (2,),
    "count_include_pad": (1,), "to": (11,), "pad_mode": (1,), "epsilon": (0.5,), "x_last": (True,),
}  # fmt: skip


def _node_changes(node: Node) -> Iterator[tuple[Node, str]]:
    def made(attributes: Mapping[str, Any]) -> Node:
        return Node(node.op, node.inputs, node.outputs, attributes)

    for key, value in node.attributes.items():
        for other in _values(value):
            yield made({**node.attributes, key: other}), f"{node.op}: {key}={other!r}"
        if not isinstance(value, Graph):  # readers refuse a node without its graphs
            yield made({k: v for k, v in node.attributes.items() if k != key}), f"{node.op}: no {key}"
    for key, others in _MORE.items():
        for other in others:
            yield made({**node.attributes, key: other}), f"{node.op}: {key}={other!r}"
    if len(node.inputs) > 1:
        yield Node(node.op, node.inputs[::-1], node.outputs, node.attributes), f"{node.op}: inputs the other way round"
        yield Node(node.op, node.inputs[:-1], node.outputs, node.attributes), f"{node.op}: the last input is missing"
        yield Node(node.op, node.inputs[:1], node.outputs, node.attributes), f"{node.op}: the first input alone"
        twice = (node.inputs[0], *node.inputs[:1], *node.inputs[2:])
        yield Node(node.op, twice, node.outputs, node.attributes), f"{node.op}: x twice"
    yield Node(node.op, (*node.inputs, node.inputs[0]), node.outputs, node.attributes), f"{node.op}: one input more"


def _all(made: Graph, given: Sequence[np.ndarray]) -> Iterator[partial[Changed]]:
    """What makes each of them: of hundreds, a few are made."""

    def node(i: int, other: Node, what: str) -> Changed:
        return Changed(rebuilt(made, nodes=(*made.nodes[:i], other, *made.nodes[i + 1 :])), list(given), what)

    def constant(name: str, how: str) -> Changed:
        constants = {**made.constants, name: _array(made.constants[name], how)}
        return Changed(rebuilt(made, constants=constants), list(given), f"{name}: {how}")

    def fed(i: int, how: str) -> Changed:
        array, value = _array(given[i], how), made.inputs[i]
        opened = value._replace(shape=tuple(f"n{k}" for k in range(array.ndim)), dtype=array.dtype)
        inputs = (*made.inputs[:i], opened, *made.inputs[i + 1 :])
        return Changed(rebuilt(made, inputs=inputs), [*given[:i], array, *given[i + 1 :]], f"{value.name}: {how}")

    def rankless(i: int) -> Changed:
        value = made.inputs[i]
        inputs = (*made.inputs[:i], value._replace(shape=None), *made.inputs[i + 1 :])
        return Changed(rebuilt(made, inputs=inputs), list(given), f"{value.name}: no rank")

    for i, one in enumerate(made.nodes):
        yield from (partial(node, i, other, what) for other, what in _node_changes(one))
    for name in made.constants:
        yield from (partial(constant, name, how) for how in _ARRAYS)
    for i in range(len(made.inputs)):
        yield from (partial(fed, i, how) for how in _ARRAYS)
        yield partial(rankless, i)


def changes_of(made: Graph, given: Sequence[np.ndarray]) -> list[partial[Changed]]:
    """What makes each of them."""
    return list(_all(made, given))


def changes(made: Graph, given: Sequence[np.ndarray], count: int) -> list[Changed]:
    """So many of them, always the same ones of a graph."""
    every = changes_of(made, given)
    chosen = random.Random(zlib.crc32(repr(made).encode()))
    return [make() for make in chosen.sample(every, min(count, len(every)))]


def _run(made: Graph, given: Sequence[np.ndarray]) -> tuple[list[np.ndarray] | Error, set[str]]:
    """Results, or the error; and what runs in numpy."""
    try:
        binding = Program(made, dispatch.variant()).binding(given)
        results = [np.asarray(a) for a in binding.run(list(given))]
        plan = getattr(binding, "plan", None)
        return results, set() if plan is None else {s.op for s in steps(plan) if "numpy" in s.kernels}
    except Error as error:
        return error, set()


def _alone(name: str, graph: Graph) -> Graph:
    """The graph folded, and changed by one pass."""
    net = Net(graph, {}, {})
    with np.errstate(all="ignore"):
        fold.apply(net)
        importlib.import_module(f"{passes.__name__}.{name}").apply(net)
    return net.graph()


def unharmed(changed: Changed) -> None:
    """Fails unless passes leave the graph's meaning: the results of the graph as it is, or an error of the same kind; they never
    raise another one, and what ran in kernels still does. All passes together, and one of them alone.
    """
    want = _run(changed.graph, changed.given)
    wide = None if isinstance(want[0], Error) else _in_float32(changed)
    exact = want[0]
    if wide is not None and not isinstance(want[0], Error):
        with np.errstate(all="ignore"):
            exact = [a.astype(b.dtype) for a, b in zip(wide, want[0], strict=True)]
    chosen = passes.PASSES[zlib.crc32(changed.what.encode()) % len(passes.PASSES)].name
    forms: dict[str, Callable[[Graph], Graph]] = {"all": passes.optimize, chosen: partial(_alone, chosen)}
    for name, form in forms.items():
        with mock.patch.object(passes, "RAISES", True):
            try:
                made = form(changed.graph)
            except Error:
                if not isinstance(want[0], Error):
                    raise
                continue
        _compare(f"{changed.what} ({name})", made, changed.given, exact if name == "all" else want[0], want[1])


def _in_float32(changed: Changed) -> list[np.ndarray] | None:
    """What a graph of float16 values gives if they are float32: between operators that compute in float32 nothing is rounded, so
    it is near this and not near what rounds after each operator. None where the graph has no such form.
    """
    made, half = changed.graph, np.dtype(np.float16)
    if all(v.dtype != half for v in (*made.inputs, *made.constants.values())):
        return None
    wide = [v._replace(dtype=np.dtype(np.float32)) if v.dtype == half else v for v in made.inputs]
    constants = {n: a.astype(np.float32) if a.dtype == half else a for n, a in made.constants.items()}
    given = [a.astype(np.float32) if a.dtype == half else a for a in changed.given]
    results, _ = _run(rebuilt(made, inputs=tuple(wide), constants=constants), given)
    return None if isinstance(results, Error) else results


def _compare(what: str, made: Graph, given: Sequence[np.ndarray], want: list[np.ndarray] | Error, slow: set[str]) -> None:
    got, slower = _run(made, given)
    if isinstance(want, Error):
        assert isinstance(got, type(want)) or isinstance(want, type(got)), f"{what}: {got!r} instead of {want!r}"
        return
    assert not isinstance(got, Error), f"{what}: {got!r} in {made!r} where there was none"
    if not slow:
        assert not slower, f"{what}: {slower} run in numpy, as nothing did before, in {made!r}"
    for a, b in zip(got, want, strict=True):
        alike(a, b, f"{what}: {made!r}")


def alike(a: np.ndarray, b: np.ndarray, what: str) -> None:
    """Fails unless two results have the same shape and dtype, and values that are near."""
    assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{what}: {a.dtype} {a.shape}, expected {b.dtype} {b.shape}"
    if b.dtype.kind == "f" and b.size:
        finite = np.abs(b[np.isfinite(b)].astype(np.float64))
        near = 2e-3 if b.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(a, b, rtol=near, atol=near * max(1.0, finite.max() if finite.size else 1.0), err_msg=what)
    elif b.dtype.kind in "iu" and b.dtype.itemsize == 1:  # a sum of products may be rounded to the next step
        assert np.abs(a.astype(int) - b.astype(int)).max(initial=0) <= 1, what
    else:
        np.testing.assert_array_equal(a, b, err_msg=what)
