"""What families of networks share: a network to a file, and the runs that its own runtime makes of it."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Made", "exported", "runs_of", "settled"]

Run = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]


class Made(NamedTuple):
    """A file, and the runs that its own runtime made of it.

    Attributes:
        runs: feeds and results of each size.
        form: "", "half" or "quantized", which says how near results must be.
        sets: of a detector, whose results are rows in any order: for each run, what its own runtime gives for inputs that differ
            by as little as a rounding.
        batched: whether these rows are the second axis, after that of images.
        positional: whether names are the framework's, and inputs and outputs go by their order.
    """

    file: bytes
    runs: list[Run]
    form: str = ""
    sets: list[list[dict[str, np.ndarray]]] | None = None
    batched: bool = False
    positional: bool = False


def exported(net: Any, inputs: tuple[Any, ...], names: list[str], axes: dict[str, dict[int, str]]) -> bytes:
    import torch

    torch.onnx.register_custom_op_symbolic("aten::diff", _diff, 17)
    torch.onnx.register_custom_op_symbolic("aten::cumsum", _cumsum, 17)
    torch.backends.mha.set_fastpath_enabled(False)  # one operator for a layer of attention, which no exporter knows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        with torch.no_grad():
            torch.onnx.export(
                net,
                inputs,
                str(path),
                input_names=names,
                dynamic_axes=axes,
                dynamo=False,
                opset_version=17,
                do_constant_folding=True,
            )
        return path.read_bytes()


def _diff(g: Any, x: Any, n: Any, dim: Any, prepend: Any, append: Any) -> Any:
    """torch.diff, which transformers' masks use and torch's exporter lacks."""
    from torch.onnx import symbolic_helper

    axis = symbolic_helper._get_const(dim, "i", "dim")
    boolean = x.type().scalarType() == "Bool"  # whose differences are whether two differ
    parts = [part for part in (prepend, x, append) if not symbolic_helper._is_none(part)]
    made = g.op("Concat", *parts, axis_i=axis) if len(parts) > 1 else x
    for _ in range(symbolic_helper._get_const(n, "i", "n")):
        later = symbolic_helper._slice_helper(g, made, axes=[axis], starts=[1], ends=[9223372036854775807])
        earlier = symbolic_helper._slice_helper(g, made, axes=[axis], starts=[0], ends=[-1])
        made = g.op("Xor", later, earlier) if boolean else g.op("Sub", later, earlier)
    return made


def _cumsum(g: Any, x: Any, dim: Any, dtype: Any = None) -> Any:
    """torch.cumsum, also of booleans, which ONNX's does not take."""
    if x.node().kind() == "onnx::Not":
        x = g.op("Cast", x, to_i=7)
    return g.op("CumSum", x, dim)


def session_of(file: bytes) -> Any:
    """ONNX Runtime's, on one thread."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def runs_of(file: bytes, feeds: list[dict[str, np.ndarray]]) -> list[Run]:
    """What ONNX Runtime makes of the sizes; of the first at least."""
    session = session_of(file)
    outputs = [o.name for o in session.get_outputs()]
    made = [(feeds[0], dict(zip(outputs, session.run(None, feeds[0]), strict=True)))]
    with contextlib.suppress(Exception):  # what the exporter has made of the first size may not run with another
        made.append((feeds[1], dict(zip(outputs, session.run(None, feeds[1]), strict=True))))
    return made


def settled(net: Any) -> Any:
    """Running means and variances as training leaves them, else activations of deep networks grow without bound or vanish."""
    import torch

    generator = torch.Generator().manual_seed(1)
    for module in net.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.running_var is not None:
            module.running_mean.normal_(0, 0.1, generator=generator)
            module.running_var.uniform_(0.8, 1.2, generator=generator)
    return net.eval()
