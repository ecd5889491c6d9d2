"""Near misses of every fused pattern beside ONNX Runtime: ``python -m tests.graph.misses --seconds 3600 --seed 0``.

A pattern of the tests of passes, or two one after the other, is changed in up to three places, written as an ONNX file, and run
by `fastlayers.load` and by onnxruntime without optimizations, whose result is what the file means.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value
from tests.formats import onnx_build as build
from tests.program.graphs import graph
from tests.random_walk import walk

from .changed import Changed, alike, changes_of, rebuilt
from .test_changed import PATTERNS, Pattern
from .test_changed import values as drawn
from .test_constant_ranks import MORE

__all__ = ["kind_of", "one", "serialized"]

EVERY: dict[str, Pattern] = {**PATTERNS, **MORE}
NAMES = tuple(EVERY)
OPSET = 21
HALF = 2**-10  # a unit in the last place of float16
LARGE = 20  # from here on a sigmoid is nearly 0, and an angle has lost a digit
_NUMBERS = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}


class Meant(NamedTuple):
    """Operators whose results may be others than onnxruntime's, whether large values or NaN must be there, and why."""

    ops: frozenset[str]
    special: bool
    why: str


MEANT = (
    Meant(frozenset({"MatMulInteger"}), False, "onnxruntime saturates sums of pairs where the processor has no VNNI"),
    Meant(frozenset({"DynamicQuantizeLinear"}), True, "what is not finite has no scale"),
    Meant(frozenset({"ThresholdedRelu", "Shrink"}), True, "NaN passes"),
    Meant(frozenset({"ReduceMax", "MaxPool", "QuantizeLinear"}), True, "onnxruntime passes over NaN, or has some number for it"),
    Meant(frozenset({"Clip"}), True, "a bound that is NaN gives NaN, as in numpy; onnxruntime passes over it"),
    Meant(frozenset({"Ceil", "Floor", "Round", "Sign"}), False, "a step, where rounding decides"),
    Meant(frozenset({"Erf", "Gelu"}), True, "onnxruntime rounds the tail of GELU to 0, and 0 times infinity is NaN"),
    Meant(frozenset({"Sigmoid"}), True, "onnxruntime's reaches 0"),
    Meant(frozenset({"Cos", "Sin"}), True, "large angles turn by as much as they are rounded"),
    Meant(frozenset({"Sqrt"}), True, "the root of -0, where -0 and what is little below it are both right"),
)


def kind_of(seed: int) -> str:
    """The pattern of a seed."""
    return NAMES[seed % len(NAMES)]


@cache
def _made(name: str) -> tuple[Graph, list[np.ndarray]]:
    inputs, nodes, constants = EVERY[name]
    return graph(inputs, nodes, ["y"], constants), drawn(inputs)


def serialized(made: Graph) -> bytes:
    """An ONNX file of a graph whose operators are ONNX's."""

    def array(value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else int(value) if isinstance(value, bool) else value

    def node(n: Node) -> bytes:
        names = (" ".join(name or "_" for name in part) for part in (n.inputs, n.outputs))
        return build.node(n.op, *names, **{key: array(value) for key, value in n.attributes.items()})

    inputs = [build.value_info(v.name, v.shape, _NUMBERS[v.dtype.name]) for v in made.inputs]
    outputs = [build.field(1, v.name) for v in made.outputs]
    tensors = [build.tensor(a, name) for name, a in made.constants.items()]
    return build.model(build.graph([node(n) for n in made.nodes], inputs, outputs, tensors), opset=OPSET, ir=10)


# ---- changes of the structure -----------------------------------------------------------------------------------------


def _kept(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """A value within is an output too."""
    inner = [name for n in made.nodes[:-1] for name in n.outputs]
    name = str(rng.choice(inner)) if inner else made.outputs[0].name
    more = (Value(name, None, np.dtype(np.float32)),) if name not in {v.name for v in made.outputs} else ()
    return Changed(rebuilt(made, outputs=(*made.outputs, *more)), given, f"{name} is an output")


def _between(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """A node between a value and one of its readers."""
    at = int(rng.integers(len(made.nodes)))
    reader = made.nodes[at]
    places = [i for i, name in enumerate(reader.inputs) if name]
    if not places:
        return Changed(made, given, "nothing between")
    i, op = int(rng.choice(places)), str(rng.choice(["Identity", "Neg", "Abs", "Relu", "Sigmoid", "Sqrt"]))
    name = f"{reader.inputs[i]}.{len(made.nodes)}"
    inputs = (*reader.inputs[:i], name, *reader.inputs[i + 1 :])
    nodes = (Node(op, (reader.inputs[i],), (name,), {}), Node(reader.op, inputs, reader.outputs, reader.attributes))
    return Changed(rebuilt(made, nodes=(*made.nodes[:at], *nodes, *made.nodes[at + 1 :])), given, f"{op} before {reader.op}")


def _other(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """A reader reads another value than it did."""
    at = int(rng.integers(len(made.nodes)))
    reader, known = made.nodes[at], [v.name for v in made.inputs] + list(made.constants)
    known += [name for n in made.nodes[:at] for name in n.outputs]
    if not reader.inputs:
        return Changed(made, given, "no other value")
    i, name = int(rng.integers(len(reader.inputs))), str(rng.choice(known))
    inputs = (*reader.inputs[:i], name, *reader.inputs[i + 1 :])
    changed = Node(reader.op, inputs, reader.outputs, reader.attributes)
    return Changed(rebuilt(made, nodes=(*made.nodes[:at], changed, *made.nodes[at + 1 :])), given, f"{reader.op} of {name}")


def _fed(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """A constant becomes an input."""
    if not made.constants:
        return Changed(made, given, "no constant")
    name = str(rng.choice(list(made.constants)))
    array = made.constants[name]
    inputs = (*made.inputs, Value(name, tuple(f"{name}{i}" for i in range(array.ndim)), array.dtype))
    constants = {n: a for n, a in made.constants.items() if n != name}
    return Changed(rebuilt(made, inputs=inputs, constants=constants), [*given, array], f"{name} is an input")


def _frozen(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """An input becomes a constant."""
    i = int(rng.integers(len(made.inputs)))
    if len(made.inputs) < 2:
        return Changed(made, given, "one input")
    name = made.inputs[i].name
    inputs, rest = (*made.inputs[:i], *made.inputs[i + 1 :]), [*given[:i], *given[i + 1 :]]
    return Changed(rebuilt(made, inputs=inputs, constants={**made.constants, name: given[i]}), rest, f"{name} is a constant")


def _twice(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """A node stands there twice, and both are read."""
    at = int(rng.integers(len(made.nodes)))
    n = made.nodes[at]
    again = Node(n.op, n.inputs, tuple(f"{name}.again" for name in n.outputs), n.attributes)
    outputs = (*made.outputs, Value(again.outputs[0], None, np.dtype(np.float32)))
    return Changed(
        rebuilt(made, nodes=(*made.nodes[: at + 1], again, *made.nodes[at + 1 :]), outputs=outputs), given, f"{n.op} twice"
    )


def _values(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """Other data: of all magnitudes, zeros, and infinities or NaN in one place."""
    changed = []
    for array in given:
        array = array.copy()
        if array.dtype.kind == "f" and array.size:
            array *= array.dtype.type(10.0 ** rng.integers(-3, 4))
            array.flat[rng.integers(array.size)] = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf])
        changed.append(array)
    return Changed(made, changed, "other data")


def _sizes(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """Sizes of inputs are open, and the first axis has others."""
    count = int(rng.integers(0, 4))
    inputs = tuple(
        v._replace(shape=tuple(f"{v.name}{i}" for i in range(a.ndim))) for v, a in zip(made.inputs, given, strict=True)
    )
    first = [np.resize(a, (count, *a.shape[1:])) if a.ndim and a.shape[:1] == given[0].shape[:1] else a for a in given]
    return Changed(rebuilt(made, inputs=inputs), first, "open sizes")


def _parameters(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """One of the changes of `changed`: an attribute, an order, an array's rank or dtype."""
    groups: dict[str, list[partial[Changed]]] = {}
    for change in changes_of(made, given):  # constants are few, and what passes ask most of
        groups.setdefault(change.func.__name__, []).append(change)
    chosen = groups[str(rng.choice(list(groups)))]
    return chosen[int(rng.integers(len(chosen)))]()


_WAYS: tuple[Callable[..., Changed], ...] = (
    _parameters, _parameters, _parameters, _kept, _between, _other, _fed, _frozen, _twice, _values, _sizes,
)  # fmt: skip


def _followed(rng: np.random.Generator, made: Graph, given: list[np.ndarray]) -> Changed:
    """Another pattern reads what the first gives, if it takes that."""
    name = str(rng.choice(NAMES))
    second, more = _made(name)
    renamed = {n: f"{n}.b" for node in second.nodes for n in (*node.outputs, *node.inputs) if n}
    renamed |= {n: f"{n}.b" for n in second.constants} | {v.name: f"{v.name}.b" for v in second.inputs}
    renamed[second.inputs[0].name] = "y"
    nodes = tuple(
        Node(n.op, tuple(i and renamed[i] for i in n.inputs), tuple(renamed[o] for o in n.outputs), n.attributes)
        for n in second.nodes
    )
    joined = rebuilt(
        made, inputs=(*made.inputs, *(v._replace(name=renamed[v.name]) for v in second.inputs[1:])), nodes=(*made.nodes, *nodes),
        outputs=(Value("y.b", None, np.dtype(np.float32)),),
        constants={**made.constants, **{renamed[n]: a for n, a in second.constants.items()}},
    )  # fmt: skip
    return Changed(joined, [*given, *more[1:]], f"then {name}")


# ---- both ------------------------------------------------------------------------------------------------------------


def _theirs(data: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [np.asarray(y) for y in session.run(None, feeds)]


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error!s:.120}"


def _compared(changed: Changed) -> Iterator[tuple[str, str]]:
    data = serialized(changed.graph)
    feeds = {v.name: np.array(a, order="C") for v, a in zip(changed.graph.inputs, changed.given, strict=True)}
    try:
        want = _theirs(data, feeds)
    except Exception as error:  # onnxruntime's errors derive from Exception alone
        yield "refused by onnxruntime", type(error).__name__
        want = None
    try:
        got = list(fl.load(data).run(feeds).values())
    except fl.Error as error:
        if want is not None:
            yield "refused", _words(error)
        return
    except Exception as error:
        yield "fault", _words(error)
        return
    if want is not None:
        try:
            for a, b in zip(got, want, strict=True):
                alike(a, b, "")
        except AssertionError as error:
            why = _meant(changed, got, want)
            yield ("meant", why) if why else ("fault", " ".join(str(error).split())[:300])


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array[np.isfinite(array)]).max(initial=0))


def _apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Positions of different values."""
    return ~np.isclose(a, b, 1e-4, 1e-4 * _largest(b), equal_nan=True)


def _meant(changed: Changed, got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> str | None:
    """Why a result may differ, if it may."""
    ops = {n.op for n in changed.graph.nodes}
    pairs = [(a, b) for a, b in zip(got, want, strict=True) if a.shape == b.shape and a.dtype.kind == "f"]
    if "Cast" in ops and pairs and all(np.allclose(a, b, HALF, HALF * _largest(b), equal_nan=True) for a, b in pairs):
        return "a network of float16 is computed in float32 (docs/models.md)"
    if "Softmax" in ops and pairs and all((np.isnan(a) & np.isinf(b))[_apart(a, b)].all() for a, b in pairs):
        return "a weight below 2^-126 is 0, and 0 times infinity is NaN"
    arrays = (*changed.given, *want, *changed.graph.constants.values())
    special = "Sqrt" in ops or not all((abs(a) < LARGE).all() for a in arrays if a.dtype.kind == "f")
    return next((meant.why for meant in MEANT if meant.ops & ops and (special or not meant.special)), None)


def one(seed: int) -> tuple[str, str, Iterator[tuple[str, str]]]:
    """A case, in words, and what there is to say of it."""
    name, rng = kind_of(seed), np.random.default_rng(seed)
    made, given = _made(name)
    changed, told = Changed(made, given, ""), [name]
    if rng.random() < 0.2:
        changed = _followed(rng, made, given)
        told.append(changed.what)
    for _ in range(int(rng.choice([0, 1, 1, 1, 2, 3]))):
        way = _WAYS[int(rng.integers(len(_WAYS)))]
        changed = way(rng, changed.graph, list(changed.given))
        told.append(changed.what)
    return name, "; ".join(told) + "\n    " + _shown(changed.graph), _compared(changed)


def _shown(made: Graph) -> str:
    return "; ".join(
        f"{', '.join(n.outputs)} = {n.op}({', '.join(str(i) for i in n.inputs)}) {dict(n.attributes) or ''}" for n in made.nodes
    )


if __name__ == "__main__":
    sys.exit(walk("python -m tests.graph.misses", __doc__, one, kind_of))
