"""Constants of more axes than what they are combined with give a result of more axes: no pass may take one for a number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph
from fastlayers.passes._net import Net
from tests.each import each
from tests.formats import onnx_build as build
from tests.program.graphs import graph, node, normal

from .changed import Changed, alike, rebuilt, unharmed
from .rewrites import BN, CONV, IMAGE, PADS, B, C, W
from .test_changed import PATTERNS, Pattern, lines, made
from .test_elementwise_pass import TREES
from .test_elementwise_pass import C as TREE_CONSTANTS
from .test_fusion import CHAIN, LIMITS, NODES
from .test_passes import GELUS, LAST, LN, NORMED, NUMBERS, OF_TANH, SCALE, SCORES, TANHS, TURN, Q
from .test_quantized_pass import CONSTANTS, X
from .test_rms_norm_pass import ENDS, MEAN
from .test_rms_norm_pass import NUMBERS as RMS

MOST = 6  # axes, more than anything here has
GATE = {"three": np.float32(3), "lo": np.float32(0), "hi": np.float32(6), "six": np.float32(6)}
Y = ["y = QuantizeLinear(h, ys, yz)"]  # bytes, whose sums may be rounded to the next step
MAPS = {"k": normal(C, 1, 1), "f": np.float32(2), **CONV, **BN, **CHAIN, **LIMITS}


def _more() -> Iterator[tuple[str, Pattern]]:
    """What other tests of passes rewrite, beside the patterns of test_changed."""
    for name, end in GELUS.items():
        for scaled in ("d = Div(x, root)", "d = Mul(inverse, x)"):
            yield f"gelu, {name}, {scaled}", ({"x": (3, 7)}, lines(scaled, "e = Erf(d)", "o = Add(e, one)", *end), NUMBERS)
    for name, text in TANHS.items():
        yield f"gelu by tanh, {name}", ({"x": (3, 7)}, lines(*text.split("|")), OF_TANH)
    for i, text in enumerate((
        "a = Add(x, three)|c = Clip(a, lo, hi)|d = Div(c, six)|y = Mul(x, d)",
        "a = Add(three, x)|c = Clip(a, lo, hi)|d = Mul(x, c)|y = Div(d, six)",
        "a = Add(x, three)|c = Clip(a, lo, hi)|e = Div(x, six)|y = Mul(e, c)",
    )):  # fmt: skip
        yield f"hardswish {i}", ({"x": (3, 7)}, lines(*text.split("|")), GATE)
    for name, nodes in ENDS.items():
        yield f"rms, {name}", ({"x": (3, 8)}, [*MEAN, *nodes, *lines("y = Mul(n, w)")], RMS)
    normed = {"two differences": [*NORMED[:2], "d2 = Sub(x, m)", "q = Pow(d2, p2)", *NORMED[3:]],
              "a product": [*NORMED[:2], "q = Mul(d, d)", *NORMED[3:]]}  # fmt: skip
    for name, texts in normed.items():
        yield f"layer norm, {name}", ({"x": (2, 3, 8)}, lines(*texts, "k = Mul(w, n)", "y = Add(b, k)"), LN)
    for name, texts in SCORES.items():
        inputs = Q | ({"mask": (2, 1, 5, 6)} if "mask" in name else {})
        yield f"attention, {name}", (inputs, [TURN, *lines(*texts), *LAST], SCALE)
        if "mask" in name:
            yield f"attention, constant {name}", (Q, [TURN, *lines(*texts), *LAST], SCALE | {"mask": normal(5, 6)})
    for name, call in NODES.items():
        yield f"{name} after a layer", ({"x": (3, 5)}, lines("h = MatMul(x, w)", f"y = {call}"), LIMITS | {"w": W})
        table = lines(*X, f"h = {call.replace('(h', '(xd')}", *Y)
        yield f"{name} of bytes", ({"x": (3, 4)}, table, CONSTANTS | LIMITS)
    for op, order in (("Mul", "h, k"), ("Add", "k, h"), ("Sub", "h, k"), ("Div", "h, f"), ("Mul", "f, h"), ("Pow", "h, two")):
        yield f"{op} {order} after Conv", ({"x": IMAGE}, lines("h = Conv(x, w, b)", f"y = {op}({order})"), MAPS)
        between = lines("a = Conv(x, w)", "h = Atan(a)", f"g = {op}({order})", "y = Conv(g, u)", Conv=PADS)
        yield f"{op} {order} between Conv", ({"x": IMAGE}, between, MAPS)
        before = lines(f"g = {op}({order.replace('h', 'x')})", "y = BatchNormalization(g, s, t, m, v)")
        yield f"{op} {order} before BatchNormalization", ({"x": (2, C, 5)}, before, MAPS)
        summed = lines("h = MatMul(x, w)", "g = MatMul(x, w)", f"q = {op}({order})", "y = Add(q, g)")
        yield f"{op} {order} and a residual", ({"x": (3, 5)}, summed, {"w": W, "k": B, "f": np.float32(2), "two": np.float32(2)})
    number = [*lines("h = Conv(x, w, b)"), node("top = ReduceMax(h)", keepdims=0), *lines("q = Mul(top, f)", "y = Add(h, q)")]
    yield "a number after Conv", ({"x": IMAGE}, number, MAPS)
    for name, texts in TREES.items():
        if "m" not in " ".join(texts).replace("Tanh", "").replace("Mul", "").replace("Max", "").replace("Min", ""):
            yield f"tree, {name}", ({"x": (24, 40), "z": (24, 40)}, lines(*texts), TREE_CONSTANTS)
    dynamic = [*lines("q, r, z = DynamicQuantizeLinear(x)", "t = MatMulInteger(q, m, z, wz)"), node("f = Cast(t)", to=1),
               *lines("a = Mul(r, ws)", "y = Mul(f, a)")]  # fmt: skip
    yield "dynamic product", ({"x": (3, 5)}, dynamic, CONSTANTS)
    scaled = [*lines("q, r, z = DynamicQuantizeLinear(x)", "t = MatMulInteger(q, m, z, wz)", "e = Reshape(r, whole)"),
              node("f = Cast(t)", to=1), *lines("a = Mul(e, ws)", "y = Mul(f, a)")]  # fmt: skip
    for axes in range(MOST):
        yield f"dynamic product, {axes} axes", ({"x": (3, 5)}, scaled, CONSTANTS | {"whole": np.ones(axes, np.int64)})
    for rows in (3, 4):
        yield f"gemm of {rows} rows", ({"x": (rows, 5)}, lines("y = Gemm(x, w, b)", Gemm={"beta": 0.5}), {"w": W, "b": B})
    square = [*X, "wd = DequantizeLinear(m, ws, wz)", "h = Gemm(xd, wd, bf)", *Y]
    yield "gemm of bytes", ({"x": (6, 5)}, lines(*square), CONSTANTS)
    yield "gemm of bytes to floats", ({"x": (6, 5)}, lines(*square[:-2], "y = Gemm(xd, wd, bf)"), CONSTANTS)
    stored = "bd = DequantizeLinear(b, bs)"
    yield "gemm of bytes and a stored bias", ({"x": (6, 5)}, lines(stored, *square[:-2], "h = Gemm(xd, wd, bd)", *Y), CONSTANTS)
    conv = lines(*X, "wd = DequantizeLinear(w, ws, wz)", "c = Conv(xd, wd, bf)", "h = Clip(c, zero, six)", *Y)
    yield "convolution of bytes", ({"x": (2, 4, 7, 6)}, conv, CONSTANTS | LIMITS)
    sums = lines(*X, "ud = DequantizeLinear(one, zs, zz)", "h = Add(xd, ud)", *Y)
    yield "sum of bytes", ({"x": (2, 4, 7, 6)}, sums, CONSTANTS | {"one": np.uint8(50)})
    for text in ("y = Expand(x, shape)", "y = Reshape(x, shape)"):
        yield text, ({"x": (3, 7)}, lines("h = Abs(x)", text.replace("x,", "h,")), {"shape": np.array([3, 7])})
    yield "tile", ({"x": (3, 7)}, lines("h = Abs(x)", "y = Tile(h, ones)"), {"ones": np.array([1, 1])})
    for op, number in (("Add", 0), ("Sub", 0), ("Mul", 1), ("Div", 1), ("Pow", 1), ("Max", -np.inf), ("Min", np.inf)):
        nothing = lines("h = Abs(x)", f"y = {op}(h, k)")
        yield f"{op} of what does nothing", ({"x": (3, 7)}, nothing, {"k": np.float32(number)})


MORE = dict(_more())
NAMES = [*PATTERNS, *MORE]


def whole(name: str) -> tuple[Graph, list[np.ndarray]]:
    if name in PATTERNS:
        return made(name)
    inputs, nodes, constants = MORE[name]
    used = {name for n in nodes for name in n.inputs}
    given = [np.abs(normal(*shape, seed=i)) + np.float32(0.1) for i, shape in enumerate(inputs.values())]
    return graph(inputs, nodes, ["y"], {k: v for k, v in constants.items() if k in used}), given


def wider(name: str) -> Iterator[tuple[bool, Changed]]:
    """The pattern, and with every constant in turn of more axes of size 1, in front or behind; and whether it has one more than
    any input, or one behind.
    """
    made, given = whole(name)
    yield True, Changed(made, given, "as it is")
    for key, array in made.constants.items():
        more = [(1,) * k for k in range(1, MOST + 1 - array.ndim)]
        for shape in dict.fromkeys([*((*m, *array.shape) for m in more), *((*array.shape, *m) for m in more)]):
            constants = {**made.constants, key: array.reshape(shape)}
            least = len(shape) == 1 + max(a.ndim for a in given) or shape == (*array.shape, 1)
            yield least, Changed(rebuilt(made, constants=constants), given, f"{key}: {shape}")


@each("name", NAMES)
def test_axes_of_a_constant_are_the_results(name: str) -> None:
    for least, changed in wider(name):
        if least:
            unharmed(changed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@each("name", NAMES)
def test_every_number_of_axes(name: str, known: bool) -> None:
    for _, (form, given, what) in wider(name):
        inputs = form.inputs if known else tuple(value._replace(shape=None) for value in form.inputs)
        unharmed(Changed(rebuilt(form, inputs=inputs), given, what))


def _file(made: Graph) -> bytes:
    """The graph as an ONNX model."""
    nodes = []
    for n in made.nodes:
        attributes = {k: list(v) if isinstance(v, tuple) else v for k, v in n.attributes.items()}
        nodes.append(build.node(n.op, " ".join(i or "_" for i in n.inputs), " ".join(n.outputs), **attributes))
    inputs = [build.value_info(v.name, v.shape, build.TYPES[v.dtype.str[1:]]) for v in made.inputs]
    constants = [build.tensor(array, name) for name, array in made.constants.items()]
    graph = build.graph(nodes, inputs, [build.field(1, "y")], constants)
    return build.model(graph, opset=23, ir=11)


@pytest.mark.onnxruntime
@pytest.mark.exhaustive
def test_beside_onnxruntime() -> None:
    """Wherever it runs the graph, we give the same, or refuse it without passes too."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # it drops such axes itself
    ran = 0
    for name in NAMES:
        for _, (form, given, what) in wider(name):
            content, feeds = _file(form), {v.name: a for v, a in zip(form.inputs, given, strict=True)}
            try:
                want = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
            except Exception:  # bounds of more axes, operators that it does not have
                continue
            try:
                got = fl.load(content).run(feeds)["y"]
            except fl.ShapeError as error:  # of an operator that asks for a vector, or one number
                with pytest.raises(type(error)):
                    fl.load(content, optimize=False).run(feeds)
                continue
            alike(got, want, f"{name}, {what}")
            ran += 1
    assert ran > 1000


@each("axes", range(4))
@each("rank", [None, *range(4)])
def test_a_number_has_no_more_axes_than_what_is_beside_it(rank: int | None, axes: int) -> None:
    made = graph({"x": (1,) * (rank or 0)}, lines("y = Abs(x)"), ["y"], {"c": np.full((1,) * axes, 3, np.float32), "many": B})
    if rank is None:
        made = rebuilt(made, inputs=tuple(value._replace(shape=None) for value in made.inputs))
    net = Net(made, {}, {})
    assert net.scalar("c", "x") == (3 if axes <= (rank or 0) else None)
    assert net.parameter("c") == 3
    assert net.scalar("many", "x") is net.parameter("many") is net.scalar("x", "c") is net.scalar(None, "x") is None
