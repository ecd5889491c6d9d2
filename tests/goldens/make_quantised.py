"""Writes quantised.npz: small networks as onnxruntime.quantization writes them, and what ONNX Runtime computes with them.

    python tests/goldens/make_quantised.py        (torch, onnx and onnxruntime are needed)

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


def main() -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
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
    np.savez_compressed(Path(__file__).with_name("quantised.npz"), **found)


if __name__ == "__main__":
    main()
