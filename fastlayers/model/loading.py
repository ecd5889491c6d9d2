"""`load`: a file becomes a Model. The format is inferred from the content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import checked
from ..errors import ArgumentError, DeviceError, FormatError
from ..formats import MAX_BYTES
from ..formats.graphs import load_graph
from ..formats.weights import limit
from ..ir.graph import Graph, Node, Value
from ..kernels import dispatch
from ..operators import MAX_ROUNDS
from ..program.memory import within_machine
from .model import Model, Options
from .origin import look, unchanged
from .precision import storage

if TYPE_CHECKING:
    from ..formats.source import SourceLike

__all__ = ["checked_device", "load"]


def checked_device(what: str, device: object, variant: object = None) -> None:
    """Raises unless models can be made for this device, and variant."""
    if device not in ("cpu", "cuda"):
        raise DeviceError(f"{what}: device is {device!r}: expected 'cpu' or 'cuda'")
    if device == "cuda":
        dispatch.start_cuda(f"{what}: device='cuda'")
    if variant is not None and (found := dispatch.resolve(variant, f"{what}: variant")) != "cuda" and device == "cuda":
        raise DeviceError(f"{what}: variant is {found!r}, device is 'cuda': expected one of them alone")


def _serialized(source: Any) -> Any:
    """The bytes of a ModelProto of the package onnx, and of what torch.onnx.export returns; anything else as it is."""
    kind = type(source)  # asked of the type: neither package need be there
    try:
        if hasattr(kind, "model_proto"):
            source = source.model_proto
        if hasattr(type(source), "SerializeToString"):
            return source.SerializeToString()
    except Exception as error:  # a third-party type may raise anything
        raise FormatError(f"load: <{kind.__name__}>: cannot be written as bytes: {error!s:.200}") from error
    return source


def without_zipmap(graph: Graph) -> Graph:
    """The graph whose outputs are arrays where ZipMap would make dicts of them."""
    zipped = {node.outputs[0] for node in graph.nodes if node.op == "ZipMap"}
    nodes = (Node("Identity", n.inputs[:1], n.outputs, {}) if n.op == "ZipMap" else n for n in graph.nodes)
    dtype = np.dtype(np.float32)
    outputs = (Value(v.name, (None, None), dtype) if v.name in zipped else v for v in graph.outputs)
    return Graph(graph.inputs, tuple(outputs), tuple(nodes), graph.constants, graph.values)


@checked
def load(
    source: SourceLike,
    *,
    format: str | None = None,
    device: str = "cpu",
    precision: str = "default",
    weights: str = "float32",
    max_bytes: int = MAX_BYTES,
    mmap: bool = True,
    optimize: bool = True,
    require_native: bool = False,
    num_threads: int = 0,
    max_rounds: int = MAX_ROUNDS,
    zipmap: bool = True,
    streaming: bool = False,
    variant: str | None = None,
) -> Model:
    """Reads a network and makes it ready to run.

    Args:
        source: a path, bytes, a binary file object, or a model that the package onnx, or torch.onnx.export, has in memory; or the
            folder of a checkpoint of transformers: see docs/how-to/checkpoints.md. Nothing in it is executed.
        format: "onnx", "tflite", "keras", "gguf", "fastlayers" or "transformers"; inferred from the content if None.
        device: "cpu", which means the kernel variant that is chosen now; or "cuda", an NVIDIA GPU: see docs/cuda.md.
        precision: "default"; "strict": direct algorithms only, no folding of one operation into another, and sums in shorter
            blocks, which err less; "float16" or "bfloat16": weights of products and recurrent layers, and tables of embeddings,
            are rounded to 16 bits and take half the memory, and half the time where reading them is what takes it. Sums are
            float32's; processors with AVX512-BF16 round what bfloat16 weights multiply to bfloat16 too, and 1x1 convolutions
            are such products under "bfloat16". See docs/explanation/exactness.md.
        weights: how weights are stored while the model runs, and by `Model.save`: "float32"; "float16" or "bfloat16", as with
            `precision`; "int8" or "int4": matrices of products, and tables of embeddings, of at least 16,384 weights have 8 or 4
            bits a weight, and a float32 scale for each 32 along the sum or the row, so that none is off by more than half of its
            scale; all others stay. What matrices multiply is rounded to 8 bits too, in blocks of 32 whose largest value is 127,
            and a block's sums are of integers; with precision="strict" nothing but the weights is rounded. `Model.summary` has
            sizes and errors. See docs/explanation/exactness.md.
        max_bytes: the most memory that reading may take, next to what is mapped from the file; and that afterwards each run may
            take for intermediate results and outputs, then at most three quarters of the machine's memory.
        mmap: whether a file is mapped into memory instead of read; a mapped file must not be shortened while the model lives.
            Pickles of a model of a mapped file name the file instead of carrying the weights, as long as it does not change, so
            that worker processes share it; with False they carry them.
        optimize: whether the graph is simplified and operations are fused; False runs it as it is written, for comparison.
        require_native: whether a model of which a step would run in numpy is an error, at the latest when it is first run.
        num_threads: the most threads that one call uses; 0 for the process's limit (`set_num_threads`).
        max_rounds: the most rounds that all loops of the network together may take in one call.
        zipmap: whether an output that ONNX's ZipMap makes is a list of dicts, one per row; False gives the array of its values.
        streaming: whether the model computes a whole sequence as its streams compute the pieces, so that both have the same
            bits: convolutions are direct, whatever the length of the sequence is. See docs/how-to/streaming.md.
        variant: the kernel variant that the model runs under, whatever `kernels.use` says: one of `kernels.available()`; None for
            the current one. See docs/explanation/variants.md.

    Returns:
        The model.

    Raises:
        FormatError: the content is broken, or not of the format.
        UnsupportedError: operators or options that are not supported; the message lists all of them. Also a file that holds
            weights alone.
        LimitError: more than `max_bytes` would be needed; runs raise it too.
        ShapeError, DTypeError: an operator of the network cannot take what it gets.
        DeviceError: there is no such device.

    >>> import fastlayers as fl
    >>> fl.load(b"not a model")
    Traceback (most recent call last):
        ...
    fastlayers.errors.FormatError: load: <bytes>: the content is of no known format: expected a model of ONNX, ...
    """
    checked_device("load", device, variant)
    half, bits = storage("load", precision, weights)
    if isinstance(max_rounds, bool) or not isinstance(max_rounds, (int, np.integer)) or max_rounds < 0:
        raise ArgumentError(f"load: max_rounds is {max_rounds!r}: expected an int of at least 0")
    origin = None
    if mmap:
        given = {"format": format, "device": device, "precision": precision, "weights": weights, "max_bytes": max_bytes,
                 "optimize": optimize, "require_native": require_native, "max_rounds": max_rounds, "zipmap": zipmap,
                 "streaming": streaming, "variant": variant}  # fmt: skip
        origin = look(source, given, load)
    source = _serialized(source)
    graph, metadata, stored = load_graph(
        source, format=format, max_bytes=max_bytes, mmap=mmap, narrow=not (half or bits or precision == "strict")
    )
    if not zipmap:
        graph = without_zipmap(graph)
    # Our own file has been optimized before it was written.
    packed, about = stored.pop("packed", None), stored.pop("about", {})
    options: dict[str, Any] = {**stored, "optimize": optimize and stored.get("optimize", True), "native": require_native}
    options["bodies"], options["rounds"] = optimize, int(max_rounds)
    options["most"] = within_machine(limit(max_bytes, "load"))
    options["strict"] = precision == "strict" or bool(stored.get("strict"))
    options["half"], options["bits"], options["variant"] = half, bits, variant or ""
    options["streaming"] = streaming or bool(stored.get("streaming"))
    model = Model(graph, Options(**options), metadata, packed, device)
    model.num_threads, model._about = num_threads, about
    if origin is not None and unchanged(origin):  # it has not changed meanwhile
        model._origin = origin
    return model
