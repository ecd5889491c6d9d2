"""Comparing a network's values with another engine's, in the order in which they are computed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._extras import install
from .._tuples import NamedTuple
from ..errors import ArgumentError, DTypeError, MissingExtraError, UnsupportedError
from ..formats import MAX_BYTES
from ..kernels import dispatch
from .loading import load
from .model import Model

__all__ = ["Row", "compared", "difference", "onnxruntime_values", "plain_values", "values"]


class Row(NamedTuple):
    """A value that was compared: its name, the operator that makes it ("" for none), its shape, how far it is off, and why."""

    name: str
    op: str
    shape: tuple[int, ...]
    error: float
    note: str


def difference(got: np.ndarray, want: np.ndarray) -> tuple[float, str]:
    """The error of `got`: the largest |got - want| as a part of max(1, the largest finite |want|), and a note.

    The error is infinite if shapes differ, or if one is NaN or an infinity where the other is not the same.
    """
    if got.shape != want.shape:
        return float("inf"), f"shape {got.shape}, expected {want.shape}"
    if not got.size:
        return 0.0, ""
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    finite = np.isfinite(b)
    same = np.where(finite, np.isfinite(a), (a == b) | (np.isnan(a) & np.isnan(b)))
    if not same.all():
        at = tuple(int(i) for i in np.argwhere(~same)[0])
        return float("inf"), f"{a[at]} at {at}, expected {b[at]}"
    off = np.abs(np.where(finite, a, 0.0) - np.where(finite, b, 0.0))
    at = tuple(int(i) for i in np.unravel_index(int(off.argmax()), off.shape))
    error = float(off[at]) / max(1.0, float(np.abs(np.where(finite, b, 0.0)).max()))
    return error, f"{a[at]:.7g} at {at}, expected {b[at]:.7g}" if error else ""


def values(model: Model) -> dict[str, str]:
    """Every value that the network's own nodes make, in their order, with its operator."""
    return {name: node.op for node in model._graph.nodes for name in node.outputs if name}


def compared(model: Model, feeds: Mapping[str, Any], want: Mapping[str, np.ndarray]) -> list[Row]:
    """A row for each array of `want`, in the order in which the network makes them.

    Args:
        model: the network.
        feeds: its inputs by name.
        want: what is expected, by the names of outputs or of values between.

    Raises:
        ArgumentError: the network has no value of such a name.
    """
    made = values(model)
    outputs = [spec.name for spec in model.outputs]
    order = {name: i for i, name in enumerate((*made, *outputs))}
    if unknown := [name for name in want if name not in order]:
        raise ArgumentError(
            f"compare: the network has no values {unknown[:5]}: expected some of its outputs {outputs}, or of those between"
        )
    names = sorted(want, key=order.__getitem__)
    got = model.run(feeds) if set(names) <= set(outputs) else model.run(feeds, outputs=names)
    rows = []
    for name in names:
        error, note = difference(got[name], np.asarray(want[name]))
        rows.append(Row(name, made.get(name, ""), got[name].shape, error, note))
    return rows


def plain_values(path: str | os.PathLike[str], feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Results of the numpy reference for the graph as the file has it: no passes, no compiled kernels."""
    with dispatch.switch("reference"):
        return load(path, optimize=False).run(feeds, outputs=list(names))


def onnxruntime_values(path: str | os.PathLike[str], feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, np.ndarray]:
    """ONNX Runtime's results for these values of an ONNX file, without its optimizations; it may not know some of them.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        UnsupportedError: the file is no ONNX model, or ONNX Runtime refuses it.
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError(f"compare: needs onnxruntime, which is not installed: {install('compare')}") from None
    from ..formats import onnx
    from ..formats.budget import Budget
    from ..formats.source import open_source

    budget = Budget(MAX_BYTES, "compare")
    source = open_source(path, caller="compare", mapped=True, budget=budget)
    if not onnx.sniff(source):
        raise UnsupportedError(
            f"{source.where}: is no ONNX model, and ONNX Runtime runs nothing else: compare with --against plain"
        )
    known = set(onnx.value_names(source, budget))
    wanted = [name for name in names if name in known]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    # Where a model that is given as bytes finds the files that hold its weights.
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    try:
        session = onnxruntime.InferenceSession(
            bytes(source.view) + onnx.more_outputs(wanted), options, providers=["CPUExecutionProvider"]
        )
        results = session.run(wanted, {spec.name: np.asarray(feeds[spec.name]) for spec in session.get_inputs()})
    except KeyError as error:
        raise ArgumentError(f"compare: ONNX Runtime wants the input {error}, which was not given") from None
    except Exception as error:  # onnxruntime's own errors derive from Exception alone
        raise UnsupportedError(f"compare: ONNX Runtime cannot run the file: {' '.join(str(error).split())[:300]}") from None
    found = {name: result for name, result in zip(wanted, results, strict=True) if isinstance(result, np.ndarray)}
    if text := [name for name, array in found.items() if array.dtype.kind not in "fiub"]:
        raise DTypeError(f"compare: these values are not numeric: {text[:5]}")
    return found
