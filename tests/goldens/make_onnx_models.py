"""Makes onnx_models.npz: small whole networks as ONNX files, their inputs, and what onnxruntime (1.31) makes of them.

Run ``python -m tests.goldens.make_onnx_models`` where onnx and onnxruntime are installed; seed 0.
Arrays: "<model>/file" (the bytes), "<model>/<number>/in/<name>" and "<model>/<number>/out/<name>" for two sets of inputs each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

F, I, B, D = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE  # noqa: E741
RNG = np.random.default_rng(0)


class Net:
    """Nodes and weights of one model, as they are written."""

    def __init__(self, opset: int) -> None:
        self.opset, self.nodes, self.weights, self.count = opset, [], {}, 0

    def add(self, op: str, *inputs: Any, outputs: int = 1, name: str = "", **attributes: Any) -> Any:
        """Appends a node; arrays among the inputs become weights. Returns the names of its outputs."""
        names = [self.weight(i) if isinstance(i, np.ndarray) else i for i in inputs]
        made = [name] if name else [f"v{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.nodes.append(helper.make_node(op, names, made, **attributes))
        return made[0] if len(made) == 1 else made

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def model(self, inputs: dict[str, tuple[int, Sequence[Any]]], outputs: dict[str, int], ir: int = 8) -> bytes:
        """The file; outputs are of unknown shape."""
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info(n, t, list(s)) for n, (t, s) in inputs.items()],
            [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
            [numpy_helper.from_array(a, n) for n, a in self.weights.items()],
        )  # fmt: skip
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir)
        return made.SerializeToString()  # type: ignore[no-any-return]


def w(*shape: int, scale: float | None = None) -> np.ndarray:
    """Normal numbers, scaled as weights are."""
    fan = int(np.prod(shape[1:])) or 1
    return (RNG.standard_normal(shape) * (fan**-0.5 if scale is None else scale)).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def norm(net: Net, x: str, c: int) -> str:
    return net.add("BatchNormalization", x, w(c) + 1, w(c), w(c), np.abs(w(c)) + 0.5, epsilon=1e-3)


def classifier(opset: int) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """Convolutions with batch normalization, a residual block, pools and softmax, as ResNets have them."""
    net = Net(opset)
    h = net.add("Relu", norm(net, net.add("Conv", "x", w(8, 3, 3, 3), pads=[1] * 4, strides=[2, 2]), 8))
    h = net.add("MaxPool", h, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    a = net.add("Relu", norm(net, net.add("Conv", h, w(8, 8, 3, 3), pads=[1] * 4), 8))
    a = norm(net, net.add("Conv", a, w(8, 8, 3, 3), pads=[1] * 4), 8)
    h = net.add("Relu", net.add("Add", a, h))
    h = net.add("Conv", h, w(12, 8, 1, 1), w(12), strides=[2, 2])
    h = net.add("Flatten", net.add("GlobalAveragePool", h))
    h = net.add("Gemm", h, w(5, 12), w(5), transB=1)
    net.add("Softmax", h, name="y", axis=1)
    sizes = [(1, 3, 32, 32), (3, 3, 19, 26)]
    return net.model({"x": (F, ["n", 3, "h", "w"])}, {"y": F}), [{"x": w(*s, scale=1)} for s in sizes]


def mobile(opset: int) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """A depthwise-separable block with HardSwish spelled out, and squeeze and excitation."""
    net = Net(opset)

    def swish(x: str) -> str:
        if opset >= 14:
            return net.add("HardSwish", x)
        clip = net.add("Clip", net.add("Add", x, np.array(3, np.float32)), np.array(0, np.float32), np.array(6, np.float32))
        return net.add("Div", net.add("Mul", x, clip), np.array(6, np.float32))

    h = swish(norm(net, net.add("Conv", "x", w(8, 3, 3, 3), pads=[0, 0, 1, 1], strides=[2, 2]), 8))
    e = swish(norm(net, net.add("Conv", h, w(16, 8, 1, 1)), 16))
    e = swish(norm(net, net.add("Conv", e, w(16, 1, 5, 5), pads=[2] * 4, group=16), 16))
    s = net.add("ReduceMean", e, axes=[2, 3], keepdims=1) if opset < 18 else net.add("ReduceMean", e, ints(2, 3), keepdims=1)
    s = net.add("Relu", net.add("Conv", s, w(4, 16, 1, 1), w(4)))
    s = net.add("HardSigmoid", net.add("Conv", s, w(16, 4, 1, 1), w(16)), alpha=1 / 6, beta=0.5)
    e = net.add("Mul", e, s)
    h = net.add("Add", norm(net, net.add("Conv", e, w(8, 16, 1, 1)), 8), h)
    net.add("Conv", h, w(6, 4, 3, 3), name="y", group=2)
    sizes = [(1, 3, 16, 16), (2, 3, 13, 21)]
    return net.model({"x": (F, ["n", 3, "h", "w"])}, {"y": F}), [{"x": w(*s, scale=1)} for s in sizes]


def inception(opset: int) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """Parallel paths that are joined, local response, LeakyRelu, a transposed convolution back to the size of the image."""
    net = Net(opset)
    h = net.add("LRN", net.add("Relu", net.add("Conv", "x", w(6, 2, 3, 3), w(6), pads=[1] * 4)), size=3)
    a = net.add("LeakyRelu", net.add("Conv", h, w(4, 6, 1, 1), w(4)), alpha=0.1)
    b = net.add("Relu", net.add("Conv", net.add("Conv", h, w(3, 6, 1, 1)), w(5, 3, 3, 3), auto_pad="SAME_UPPER"))
    c = net.add("Conv", net.add("AveragePool", h, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1), w(3, 6, 1, 1))
    d = net.add("MaxPool", h, kernel_shape=[3, 3], pads=[1] * 4)
    j = net.add("Concat", a, b, c, d, axis=1)
    j = norm(net, net.add("AveragePool", j, kernel_shape=[2, 2], strides=[2, 2]), 18)
    net.add("Tanh", net.add("ConvTranspose", j, w(18, 2, 3, 3), w(2), strides=[2, 2], pads=[1, 1, 0, 0]), name="y")
    sizes = [(1, 2, 8, 8), (2, 2, 10, 7)]
    return net.model({"x": (F, ["n", 2, "h", "w"])}, {"y": F}), [{"x": w(*s, scale=1)} for s in sizes]


def recurrent(op: str, opset: int) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """Both directions, lengths and first states as inputs, then a product of each step's result."""
    net, gates, hidden, size = Net(opset), {"RNN": 1, "GRU": 3, "LSTM": 4}[op], 7, 5
    weights = [
        w(2, gates * hidden, size, scale=0.4),
        w(2, gates * hidden, hidden, scale=0.4),
        w(2, 2 * gates * hidden, scale=0.4),
    ]
    states = ["h0", "c0"] if op == "LSTM" else ["h0"]
    extra = {"linear_before_reset": 1} if op == "GRU" else {}
    outs = net.add(
        op, "x", *weights, "lengths", *states, outputs=1 + len(states), direction="bidirectional", hidden_size=hidden, **extra
    )
    y = net.add("Transpose", outs[0], perm=[0, 2, 1, 3])
    y = net.add("Reshape", y, ints(0, 0, -1))
    net.add("Add", net.add("MatMul", y, w(2 * hidden, 3)), w(3), name="y")
    for i, _ in enumerate(states):
        net.add("Identity", outs[1 + i], name=f"last{i}")
    inputs = {"x": (F, ["t", "b", size]), "lengths": (TensorProto.INT32, ["b"]), **{s: (F, [2, "b", hidden]) for s in states}}
    feeds = []
    for t, b in ((6, 1), (9, 3)):
        lengths = np.array([t, *range(2, b + 1)], np.int32)
        feeds.append({"x": w(t, b, size, scale=1), "lengths": lengths, **{s: w(2, b, hidden, scale=0.5) for s in states}})
    return net.model(inputs, {"y": F, **{f"last{i}": F for i in range(len(states))}}), feeds


def transformer(opset: int) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """An encoder block as exporters spell it: sizes read from shapes, heads split by Reshape, LayerNorm and GELU by parts."""
    net, d, heads = Net(opset), 16, 2

    def layer_norm(x: str) -> str:
        if opset >= 17:
            return net.add("LayerNormalization", x, w(d) + 1, w(d), axis=-1)
        mean = {"axes": [-1]}
        c = net.add("Sub", x, net.add("ReduceMean", x, **mean))
        v = net.add("ReduceMean", net.add("Pow", c, np.array(2, np.float32)), **mean)
        n = net.add("Div", c, net.add("Sqrt", net.add("Add", v, np.array(1e-5, np.float32))))
        return net.add("Add", net.add("Mul", n, w(d) + 1), w(d))

    def linear(x: str, a: int, b: int) -> str:
        return net.add("Add", w(b), net.add("MatMul", x, w(b, a).T.copy()))

    h = net.add("Gather", w(20, d, scale=1), "tokens")
    shape = net.add("Shape", "tokens")
    zero, one = np.array(0, np.int64), np.array(1, np.int64)

    def size(i: np.ndarray) -> str:
        n = net.add("Gather", shape, i, axis=0)
        return net.add("Unsqueeze", n, axes=[0]) if opset < 13 else net.add("Unsqueeze", n, ints(0))

    split = net.add("Concat", size(zero), size(one), ints(heads), ints(d // heads), axis=0)
    joined = net.add("Concat", size(zero), size(one), ints(d), axis=0)
    normed = layer_norm(h)
    q, k, v = (net.add("Reshape", linear(normed, d, d), split) for _ in range(3))
    q, v = (net.add("Transpose", i, perm=[0, 2, 1, 3]) for i in (q, v))
    k = net.add("Transpose", k, perm=[0, 2, 3, 1])
    scores = net.add("Div", net.add("MatMul", q, k), np.array((d // heads) ** 0.5, np.float32))
    mask = net.add("Cast", "mask", to=F)
    mask = net.add("Mul", net.add("Sub", np.array(1, np.float32), mask), np.array(-10000, np.float32))
    axes = [1, 2]
    mask = net.add("Unsqueeze", mask, axes=axes) if opset < 13 else net.add("Unsqueeze", mask, ints(*axes))
    p = net.add("Softmax", net.add("Add", scores, mask), axis=3)
    o = net.add("Reshape", net.add("Transpose", net.add("MatMul", p, v), perm=[0, 2, 1, 3]), joined)
    h = net.add("Add", linear(o, d, d), h)
    f = linear(layer_norm(h), d, 4 * d)
    if opset >= 20:
        f = net.add("Gelu", f)
    else:
        erf = net.add("Add", net.add("Erf", net.add("Div", f, np.array(2**0.5, np.float32))), np.array(1, np.float32))
        f = net.add("Mul", net.add("Mul", f, erf), np.array(0.5, np.float32))
    net.add("Add", h, linear(f, 4 * d, d), name="y")
    feeds = []
    for b, s in ((1, 5), (3, 9)):
        mask_ = np.arange(s)[None] < RNG.integers(1, s + 1, (b, 1))
        feeds.append({"tokens": RNG.integers(0, 20, (b, s)), "mask": mask_.astype(np.int64)})
    return net.model({"tokens": (I, ["b", "s"]), "mask": (I, ["b", "s"])}, {"y": F}), feeds


def branches(opset: int, by_number: bool) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """`If`, by the size of an input, or by an input's number; each branch reads a value around it."""
    net = Net(opset)
    h = net.add("Relu", net.add("Gemm", "x", w(6, 4), w(6), transB=1))
    if by_number:
        condition = net.add("Equal", "mode", np.array(2, np.int64))
    else:
        condition = net.add("Greater", net.add("Size", "x"), np.array(10, np.int64))

    def branch(op: str, weight: np.ndarray) -> Any:
        nodes = [helper.make_node(op, [h, "k"], ["r"]), helper.make_node("Tanh", ["r"], ["out"])]
        return helper.make_graph(
            nodes, op, [], [helper.make_tensor_value_info("out", F, None)], [numpy_helper.from_array(weight, "k")]
        )

    net.add("If", condition, name="y", then_branch=branch("MatMul", w(6, 3)), else_branch=branch("Add", w(6)))
    inputs: dict[str, Any] = {"x": (F, ["n", 4])}
    feeds: list[dict[str, np.ndarray]] = [{"x": w(2, 4, scale=1)}, {"x": w(5, 4, scale=1)}]
    if by_number:
        inputs["mode"] = (I, [])
        feeds = [{**f, "mode": np.array(2 + i, np.int64)} for i, f in enumerate(feeds)]
    return net.model(inputs, {"y": F}), feeds


def shapes(opset: int) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """Arithmetic on sizes that decides reshapes, slices and a range; floats and integers."""
    net = Net(opset)
    shape = net.add("Shape", "x")
    rows = net.add("Slice", shape, ints(0), ints(1)) if opset >= 10 else net.add("Slice", shape, starts=[0], ends=[1])
    half = net.add("Div", rows, ints(2))
    top = net.add("Slice", "x", ints(0), half) if opset >= 10 else net.add("Slice", "x", starts=[0], ends=[2])
    flat = net.add("Reshape", top, net.add("Concat", ints(-1), ints(6), axis=0))
    net.add("Gather", flat, ints(5, 0, 3), name="y", axis=1)
    double = net.add("Mul", shape, ints(2, 1, 1))
    net.add("Identity", double, name="sizes")
    last = net.add("Squeeze", rows, axes=[0]) if opset < 13 else net.add("Squeeze", rows, ints(0))
    net.add("Range", np.array(0, np.int64), last, np.array(1, np.int64), name="count") if opset >= 11 else net.add(
        "Cast", last, name="count", to=I
    )
    sizes = [(4, 3, 4), (6, 2, 6)]
    return net.model({"x": (F, ["n", "a", "b"])}, {"y": F, "sizes": I, "count": I}), [{"x": w(*s, scale=1)} for s in sizes]


def doubles(opset: int) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """float64 all through."""
    net = Net(opset)
    h = net.add("Add", net.add("MatMul", "x", w(5, 4).astype(float)), w(4).astype(float))
    h = net.add("Relu", h)
    net.add("Sqrt", net.add("Add", net.add("Mul", h, h), np.array(0.5)), name="y")
    return net.model({"x": (D, ["n", 5])}, {"y": D}), [{"x": w(n, 5, scale=1).astype(float)} for n in (2, 7)]


def integers(opset: int) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    """int64 all through, with sums beyond float's 53 bits."""
    net = Net(opset)
    h = net.add("Add", net.add("Mul", "x", "x"), np.array((1 << 60) + 1, np.int64))
    net.add(
        "Where", net.add("Less", "x", np.array(0, np.int64)), net.add("Neg", h), net.add("Transpose", "x", perm=[0, 1]), name="y"
    )
    net.add("ArgMax", "x", name="best", axis=1, keepdims=0)
    return net.model({"x": (I, ["n", 6])}, {"y": I, "best": I}), [{"x": RNG.integers(-99, 99, (n, 6))} for n in (1, 4)]


MODELS: dict[str, tuple[Any, ...]] = {
    **{f"classifier {v}": (classifier, v) for v in (7, 9, 13, 21)},
    **{f"mobile {v}": (mobile, v) for v in (11, 17, 21)},
    **{f"inception {v}": (inception, v) for v in (9, 13)},
    **{f"{op.lower()} {v}": (recurrent, op, v) for op, v in (("RNN", 9), ("GRU", 13), ("LSTM", 7), ("LSTM", 21))},
    **{f"transformer {v}": (transformer, v) for v in (11, 13, 17, 21)},
    "branch by size 13": (branches, 13, False), "branch by number 13": (branches, 13, True), "branch by number 21": (branches,
         21, True),
    **{f"shapes {v}": (shapes, v) for v in (11, 13, 21)},
    "doubles 13": (doubles, 13), "integers 13": (integers, 13),
}  # fmt: skip


def make() -> dict[str, np.ndarray]:
    """The arrays of the golden file."""
    import onnxruntime

    arrays: dict[str, np.ndarray] = {}
    for name, (function, *arguments) in MODELS.items():
        data, feeds = function(*arguments)
        arrays[f"{name}/file"] = np.frombuffer(data, np.uint8)
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        for i, feed in enumerate(feeds):
            arrays.update((f"{name}/{i}/in/{key}", array) for key, array in feed.items())
            results = session.run(None, feed)
            arrays.update((f"{name}/{i}/out/{o.name}", r) for o, r in zip(session.get_outputs(), results, strict=True))
    return arrays


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("onnx_models.npz"), **make())
