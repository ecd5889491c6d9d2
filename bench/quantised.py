"""Products, convolutions and a whole network of bytes beside onnxruntime: one process, one thread, the two taking turns.

    python -m bench.quantised                       needs onnx and onnxruntime

The network is MobileNet's pattern (depthwise 3x3, 1x1) with weights at random, as exporters of QLinear operators write it.
A line says the best time of each, their ratio, and the largest difference of their results in steps.
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np

import fastlayers as fl

Constants = dict[str, np.ndarray]


class Network:
    """An ONNX model under construction: uint8 in, uint8 out."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.nodes: list[Any] = []
        self.constants: Constants = {}
        self.shape = shape
        self.rng = np.random.default_rng(len(shape))
        self.last = "x"

    def constant(self, value: Any, dtype: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.rng.integers(-127, 128, shape), np.int8)

    def node(self, op: str, *inputs: str, **attributes: Any) -> None:
        import onnx

        name = f"y{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(op, list(inputs), [name], **attributes))
        self.last = name

    def quant(self, scale: float = 1.0, zero: int = 128) -> tuple[str, str]:
        return self.constant(scale, np.float32), self.constant(zero, np.uint8)

    def conv(self, c: int, o: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        """Weights with a scale a channel, such that results spread over uint8."""
        spread = 1 / (40 * np.sqrt(c // groups * kernel**2) * 16)
        scales = self.constant(self.rng.uniform(0.7, 1.3, o) * spread, np.float32)
        zeros, bias = self.constant(np.zeros(o), np.int8), self.constant(self.rng.integers(-999, 999, o), np.int32)
        self.node(
            "QLinearConv", self.last, *self.quant(), self.weights(o, c // groups, kernel, kernel), scales, zeros, *self.quant(),
            bias, pads=[kernel // 2] * 4, strides=[stride] * 2, group=groups,
        )  # fmt: skip

    def product(self, k: int, n: int) -> None:
        scales = self.constant(self.rng.uniform(0.7, 1.3, n) / (640 * np.sqrt(k)), np.float32)
        zeros = self.constant(np.zeros(n), np.int8)
        self.node("QLinearMatMul", self.last, *self.quant(), self.weights(k, n), scales, zeros, *self.quant())

    def model(self) -> bytes:
        import onnx
        from onnx import TensorProto

        info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            self.nodes, "g", [info("x", TensorProto.UINT8, self.shape)], [info(self.last, TensorProto.UINT8, None)],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )  # fmt: skip
        opsets = [onnx.helper.make_opsetid("", 21)]
        made: bytes = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
        return made


def networks() -> dict[str, Network]:
    """By the names of their lines."""
    found = {}
    for c, o, size, kernel, stride, groups in (
        (64, 64, 56, 3, 1, 1), (128, 128, 28, 3, 1, 1), (256, 256, 14, 3, 1, 1), (64, 256, 56, 1, 1, 1), (512, 128, 28, 1, 1, 1),
        (3, 64, 224, 7, 2, 1), (3, 32, 224, 3, 2, 1), (32, 32, 112, 3, 1, 32), (144, 144, 56, 3, 2, 144),
        (576, 576, 14, 3, 1, 576),
    ):  # fmt: skip
        net = Network((1, c, size, size))
        net.conv(c, o, kernel, stride, groups)
        found[f"{kernel}x{kernel} {c}->{o}@{size} stride {stride} groups {groups}"] = net
    for m, k, n in ((1, 1024, 1024), (128, 768, 768), (128, 768, 3072)):
        net = Network((m, k))
        net.product(k, n)
        found[f"product {m}x{k}->{n}"] = net
    net, c = Network((1, 3, 224, 224)), 32
    net.conv(3, 32, 3, 2)
    for o, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1)):
        net.conv(c, c, 3, stride, c)
        net.conv(c, o, 1)
        c = o
    found["network"] = net
    return found


def main() -> None:
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    fl.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    print(f"variant={fl.kernels.info()['variant']}, onnxruntime {onnxruntime.__version__}")
    for name, net in networks().items():
        file = net.model()
        model = fl.load(file)
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        x = np.random.default_rng(0).integers(0, 256, net.shape).astype(np.uint8)
        feeds = {"x": x}
        wrong = np.abs(model(x).astype(int) - session.run(None, feeds)[0].astype(int)).max()
        ours = theirs = 1e9
        for _ in range(rounds):
            start = perf_counter()
            model(x)
            between = perf_counter()
            session.run(None, feeds)
            ours, theirs = min(ours, between - start), min(theirs, perf_counter() - between)
        times = f"{ours * 1e6:9.1f} us  onnxruntime {theirs * 1e6:9.1f} us  ratio {ours / theirs:.2f}"
        print(f"{name:44s} {times}  differs by {wrong}")


if __name__ == "__main__":
    main()
