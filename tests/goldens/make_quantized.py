"""Writes quantized.npz: small networks as onnxruntime.quantization writes them, and what ONNX Runtime computes with them.

    python tests/goldens/make_quantized.py        (torch, onnx and onnxruntime are needed)

Each network has its file's bytes ("<name>.model"), inputs ("<name>.x") and outputs ("<name>.y"). Those of graphs of
QuantizeLinear and DequantizeLinear are computed as they are written, without ONNX Runtime's own rewrites, from which its results
differ by a step here and there (52 of 640 outputs of the first). One thread: dynamic LSTMs share scales among what a thread does.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

QDQ, OPERATORS, U8, S8 = QuantFormat.QDQ, QuantFormat.QOperator, QuantType.QUInt8, QuantType.QInt8
STATIC: dict[str, dict[str, Any]] = {
    "qdq": {"quant_format": QDQ, "activation_type": U8, "weight_type": S8, "per_channel": True},
    "qdq_int8": {"quant_format": QDQ, "activation_type": S8, "weight_type": S8},
    "operators": {"quant_format": OPERATORS, "activation_type": U8, "weight_type": S8, "per_channel": True},
    "operators_uint8": {"quant_format": OPERATORS, "activation_type": U8, "weight_type": U8},
}


class Convolutions(torch.nn.Module):
    """Strides, depthwise and plain kernels, a residual, pools, a sigmoid, concatenation, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, 2, 1)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.point, self.plain = torch.nn.Conv2d(8, 12, 1), torch.nn.Conv2d(12, 12, 3, padding=1)
        self.last, self.linear = torch.nn.Conv2d(12, 10, 1), torch.nn.Linear(10, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.hardtanh(self.depthwise(torch.relu(self.first(x))), 0, 6)
        y = self.point(x)
        y = torch.nn.functional.max_pool2d(y + torch.relu(self.plain(y)), 2)
        y = torch.sigmoid(self.last(y))
        y = torch.nn.functional.avg_pool2d(torch.cat([y, y * 0.5], 1)[:, 5:15], 2)
        return torch.softmax(self.linear(torch.nn.functional.adaptive_avg_pool2d(y, 1).flatten(1)), -1)


class Perceptron(torch.nn.Module):
    """Linear layers over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = torch.nn.Linear(9, 20), torch.nn.Linear(20, 20), torch.nn.Linear(20, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x))
        return self.last(x + torch.nn.functional.leaky_relu(self.second(x), 0.1))


class Recurrent(torch.nn.Module):
    """A bidirectional LSTM and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.linear = torch.nn.LSTM(6, 8, bidirectional=True), torch.nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.lstm(x)[0])


class Data(CalibrationDataReader):
    """Inputs one after the other."""

    def __init__(self, x: np.ndarray) -> None:
        self.rest = iter([{"x": one[None]} for one in x])

    def get_next(self) -> Any:
        return next(self.rest, None)


def expected(model: bytes, x: np.ndarray, as_written: bool) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if as_written:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def node(
    op: str, inputs: list[Any], constants: tuple[int, ...], outputs: int = 1, domain: str = "com.microsoft", **attributes: Any
) -> dict[str, np.ndarray]:
    """A model of one node, its inputs, and its outputs; `constants` are the positions of those inputs that the file has."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    made = onnx.helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    kinds = {n: onnx.helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in zip(names, inputs, strict=True) if n}
    given = {n: a for i, (n, a) in enumerate(zip(names, inputs, strict=True)) if n and i not in constants}
    graph = onnx.helper.make_graph(
        [made], "g", [onnx.helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in given.items()],
        [onnx.helper.make_tensor_value_info(f"y{i}", onnx.TensorProto.UNDEFINED, None) for i in range(outputs)],
        [onnx.numpy_helper.from_array(inputs[i], names[i]) for i in constants if inputs[i] is not None],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    model = onnx.shape_inference.infer_shapes(model) if not domain else model
    for i, value in enumerate(model.graph.output):
        if not value.type.tensor_type.elem_type:
            value.type.tensor_type.elem_type = RESULTS.get(op, (kinds[names[0]],) * 3)[i]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = {"model": np.frombuffer(model.SerializeToString(), np.uint8), **given}
    return {**found, **{f"y{i}": y for i, y in enumerate(session.run(None, given))}}


FLOAT = onnx.TensorProto.FLOAT
RESULTS = dict.fromkeys(("QAttention", "DynamicQuantizeLSTM", "MatMulNBits", "MatMulIntegerToFloat"), (FLOAT,) * 3)
RESULTS["QLinearConcat"] = RESULTS["QLinearWhere"] = (onnx.TensorProto.UINT8,)


def nodes(rng: np.random.Generator) -> dict[str, dict[str, np.ndarray]]:
    """ONNX Runtime's own operators, one by one."""

    def u8(*shape: int) -> np.ndarray:
        return np.asarray(rng.integers(0, 256, shape), np.uint8)

    def i8(*shape: int) -> np.ndarray:
        return np.asarray(rng.integers(-128, 128, shape), np.int8)

    def scale(*shape: int) -> np.ndarray:
        return np.asarray(rng.uniform(0.005, 0.03, shape), np.float32)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    one = np.asarray(0.4, np.float32)
    return {
        "add": node("QLinearAdd", [u8(3, 4), scale(), u8(), u8(4), scale(), u8(), scale(), u8()], (1, 2, 4, 5, 6, 7)),
        "multiply": node("QLinearMul", [i8(3, 4), scale(), i8(), i8(3, 1), scale(), i8(), scale(), i8()], (1, 2, 4, 5, 6, 7)),
        "sigmoid": node("QLinearSigmoid", [u8(30), scale(), u8(), np.asarray(1 / 256, np.float32), u8()], (1, 2, 3, 4)),
        "leaky": node("QLinearLeakyRelu", [i8(30), scale(), i8(), scale(), i8()], (1, 2, 3, 4), alpha=0.1),
        "softmax": node("QLinearSoftmax", [u8(3, 5), scale(), u8(), np.asarray(1 / 256, np.float32), u8()], (1, 2, 3, 4),
                        axis=-1, opset=13),
        "global": node("QLinearGlobalAveragePool", [u8(2, 3, 4, 5), scale(), u8(), scale(), u8()], (1, 2, 3, 4)),
        "average": node("QLinearAveragePool", [u8(1, 3, 7, 6), scale(), u8(), scale(), u8()], (1, 2, 3, 4), kernel_shape=[3, 2],
                        pads=[1, 0, 1, 1], strides=[2, 2]),
        "concat": node("QLinearConcat", [scale(), u8(), u8(2, 3), scale(), u8(), u8(2, 2), scale(), u8()], (0, 1, 3, 4, 6, 7),
                       axis=1),
        "where": node("QLinearWhere", [normal(3, 1) > 0, u8(3, 4), scale(), u8(), u8(4), scale(), u8(), scale(), u8()],
                      (2, 3, 5, 6, 7, 8)),
        "gemm": node("QGemm", [u8(5, 9), scale(), u8(), i8(7, 9), scale(7), np.zeros(7, np.int8),
                               rng.integers(-999, 999, 7).astype(np.int32), one, u8()], (1, 2, 3, 4, 5, 6, 7, 8), transB=1),
        "matmul": node("QLinearMatMul", [i8(2, 5, 9), scale(), i8(), i8(9, 7), scale(7), i8(7), one, i8()], (1, 2, 3, 4, 5, 6, 7),
                       domain=""),
        "conv": node("QLinearConv", [u8(1, 4, 6, 5), scale(), u8(), i8(6, 2, 3, 3), scale(6), np.zeros(6, np.int8), one, u8(),
                                     rng.integers(-999, 999, 6).astype(np.int32)], (1, 2, 3, 4, 5, 6, 7, 8), domain="", group=2,
                     pads=[1, 0, 2, 1], strides=[2, 1]),
        "to_float": node("MatMulIntegerToFloat", [u8(2, 5, 9), i8(9, 7), scale(), scale(7), u8(), i8(7), normal(7)],
                         (1, 3, 5, 6)),
        "dynamic": node("DynamicQuantizeMatMul", [normal(2, 5, 9), i8(9, 7), scale(7), i8(7), normal(7)], (1, 2, 3, 4)),
        "nibbles": node("MatMulNBits", [normal(2, 3, 40), u8(7, 3, 8), scale(7, 3), u8(7, 2), None, normal(7)], (1, 2, 3, 5),
                        K=40, N=7, block_size=16, bits=4, accuracy_level=1),
        "attention": node("QAttention", [u8(2, 5, 8), i8(8, 24), normal(24), scale(), scale(), np.array([3, 5], np.int32), u8(),
                                         i8(), normal(2, 2, 2, 3, 4)], (1, 2, 3, 4, 6, 7), 2, num_heads=2, unidirectional=1),
        "lstm": node("DynamicQuantizeLSTM", [normal(7, 1, 5), i8(2, 5, 16), i8(2, 4, 16), normal(2, 32), None, normal(2, 1, 4),
                                             normal(2, 1, 4), None, scale(2) / 4, np.zeros(2, np.int8), scale(2) / 4,
                                             np.zeros(2, np.int8)], (1, 2, 3, 8, 9, 10, 11), 3, direction="bidirectional",
                     hidden_size=4),
    }  # fmt: skip


def main() -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for name, arrays in nodes(np.random.default_rng(1)).items():
        found.update({f"node_{name}/{key}": array for key, array in arrays.items()})
    nets = {
        "convolutions": (Convolutions(), rng.standard_normal((4, 3, 17, 18)).astype(np.float32)),
        "perceptron": (Perceptron(), rng.standard_normal((4, 5, 9)).astype(np.float32)),
        "recurrent": (Recurrent(), rng.standard_normal((6, 1, 6)).astype(np.float32)),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (net, x) in nets.items():
            plain, ready, made = (str(Path(folder) / f"{name}{end}.onnx") for end in ("", "_ready", "_made"))
            file = io.BytesIO()
            axes = None if name == "recurrent" else {"x": {0: "n"}}
            given = torch.from_numpy(x if name == "recurrent" else x[:1])
            torch.onnx.export(net.eval(), given, file, opset_version=17, dynamo=False, input_names=["x"], dynamic_axes=axes)  # type: ignore[arg-type]
            Path(plain).write_bytes(file.getvalue())
            quant_pre_process(plain, ready, skip_symbolic_shape=True)
            ways = {} if name == "recurrent" else dict(STATIC)
            if name == "perceptron":
                ways = {key: way for key, way in ways.items() if key in ("qdq", "operators")}
            for way, options in ways.items():
                quantize_static(ready, made, Data(x), **options)
                found[f"{name}_{way}.model"] = np.frombuffer(Path(made).read_bytes(), np.uint8)
            quantize_dynamic(ready, made)
            found[f"{name}_dynamic.model"] = np.frombuffer(Path(made).read_bytes(), np.uint8)
            for key in [k for k in found if k.startswith(name)]:
                own = key.removesuffix(".model")
                found[f"{own}.x"] = x
                found[f"{own}.y"] = expected(found[key].tobytes(), x, "qdq" in own)
    np.savez_compressed(Path(__file__).with_name("quantized.npz"), **found)


if __name__ == "__main__":
    main()
