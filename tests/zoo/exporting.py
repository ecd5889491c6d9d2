"""What families of networks share: a network to a file, and the runs that its own runtime makes of it."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["NEAR", "Made", "distance", "exported", "itself", "put", "runs_of", "settled", "taken", "unlike"]

NEAR = 1e-6  # how far inputs are moved
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
        itself: how far the framework is from itself, with inputs moved by last bits; of what ONNX Runtime runs, `itself` says it.
    """

    file: bytes
    runs: list[Run]
    form: str = ""
    sets: list[list[dict[str, np.ndarray]]] | None = None
    batched: bool = False
    positional: bool = False
    itself: float = 0.0


def put(made: Made, path: Path) -> None:
    """Writes a plain network, which is nothing but its file and runs."""
    arrays = {
        f"{run}.{given}.{name}": x for run, parts in enumerate(made.runs) for given in (0, 1) for name, x in parts[given].items()
    }
    np.savez(path, network=np.frombuffer(made.file, np.uint8), **arrays)  # type: ignore[arg-type]


def taken(path: Path) -> Made:
    """The network that `put` wrote."""
    with np.load(path) as kept:
        runs: list[Run] = []
        for key in kept.files[1:]:
            run, given, name = key.split(".", 2)
            if int(run) == len(runs):
                runs.append(({}, {}))
            runs[int(run)][int(given)][name] = kept[key]
        return Made(kept["network"].tobytes(), runs)


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
    if x.node().kind() == "onnx::Not" or x.type().scalarType() == "Bool":
        x = g.op("Cast", x, to_i=7)
    return g.op("CumSum", x, dim)


def session_of(file: bytes, optimize: bool = True) -> Any:
    """ONNX Runtime's, on one thread."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def runs_of(file: bytes, feeds: list[dict[str, np.ndarray]]) -> list[Run]:
    """What ONNX Runtime makes of the sizes; of the first at least."""
    session = session_of(file)
    outputs = [o.name for o in session.get_outputs()]
    made = [(feeds[0], dict(zip(outputs, session.run(None, feeds[0]), strict=True)))]
    with contextlib.suppress(Exception):  # what the exporter has made of the first size may not run with another
        made.append((feeds[1], dict(zip(outputs, session.run(None, feeds[1]), strict=True))))
    return made


def distance(got: Any, want: Any) -> float:
    """How far two results are apart, as a share of the largest number; infinity where shapes differ."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return np.inf
    if want.dtype.kind in "iub":
        return float((got != want).mean()) if want.size else 0.0
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        largest = float(np.abs(b[np.isfinite(b)]).max(initial=0)) or 1.0
        return float(np.where(same, 0, np.abs(a - b) / largest).max(initial=0))


def itself(file: bytes, runs: list[Run]) -> float:
    """How far ONNX Runtime is from itself, with its optimizations and without, and with inputs moved by last bits.

    A sum that lands on the other side of a half is another integer, which the integers after it multiply: so a network of 8 bits
    has no result that is right to more than this.
    """
    plain, fused, rng = session_of(file, optimize=False), session_of(file), np.random.default_rng(1)
    apart = [0.0]
    for feeds, want in runs:
        moved = {
            n: (x + NEAR * rng.standard_normal(x.shape)).astype(x.dtype) if x.dtype.kind == "f" else x for n, x in feeds.items()
        }
        for session, given in ((plain, feeds), (plain, moved), (fused, moved)):
            got = session.run(list(want), given)
            apart += [distance(a, b) for a, b in zip(got, want.values(), strict=True)]
    return max(apart)


def settled(net: Any, *inputs: Any) -> Any:
    """A network somewhat as training leaves it, whose results depend on all of its weights and on what it is given.

    No weights are all alike, which hide what is before them: zeros in the last layer, or in what a branch is scaled by. With
    inputs, running means and variances are those of what comes of them: else activations vanish, or grow without bound.
    """
    import torch

    rng = np.random.default_rng(1)
    norms = [module for module in net.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for value in (*net.parameters(), *net.buffers()):
            if value.is_floating_point():
                value.copy_(torch.from_numpy(unlike(value.numpy(), rng)))
        net.eval()
        if inputs and norms:
            momenta = [norm.momentum for norm in norms]
            for norm in norms:
                norm.train()
                norm.momentum = 1.0
            net(*inputs)
            for norm, momentum in zip(norms, momenta, strict=True):
                norm.momentum = momentum
    return net.eval()


def unlike(value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Weights, drawn around their number where all are the same one."""
    if value.size < 2 or not (value == value.flat[0]).all() or not np.isfinite(value.flat[0]):
        return value
    near = value.flat[0] * rng.uniform(0.8, 1.2, value.shape) + rng.normal(0, 0.05, value.shape)
    return near.astype(value.dtype)
