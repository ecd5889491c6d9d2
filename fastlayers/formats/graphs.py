"""Reading whole networks: tells the format from the content, and returns a graph of operators."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ArgumentError, FormatError, UnsupportedError
from ..ir.graph import Graph
from .budget import Budget
from .source import Source, SourceLike, open_source, quote
from .weights import check_format, limit

__all__ = ["load_graph"]

FORMATS = ("onnx", "tflite", "keras", "gguf", "fastlayers", "transformers")


def load_graph(
    source: SourceLike, *, format: str | None, max_bytes: Any, mmap: bool, narrow: bool = False
) -> tuple[Graph, dict[str, str], dict[str, Any]]:
    """The graph, the file's metadata, and the options that our own file carries, or "about", what an ONNX file says of itself
    besides; see `model.load`.
    """
    check_format(format, "load")
    if format is not None and format not in FORMATS:
        raise ArgumentError(f"load: format={quote(format)} is not known: expected one of {', '.join(FORMATS)}")
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        from .transformers import NAME
        from .transformers.folder import load_graph as read

        if format not in (None, NAME):
            raise FormatError(f"load: format={format!r} was asked for, but the source is a folder")
        return *read(os.fsdecode(source), max_bytes=limit(max_bytes, "load"), mmap=bool(mmap), narrow=narrow), {}
    if format == "transformers":
        raise FormatError(f"load: format={format!r} was asked for: expected a folder with config.json and weights")
    budget = Budget(limit(max_bytes, "load"), "load")
    opened = open_source(source, caller="load", mapped=bool(mmap), budget=budget)
    if not len(opened):
        raise FormatError(f"{opened.where}: is empty (0 bytes)")
    # A format's module is imported if the content may be of it: most processes read one.
    from . import _table

    if _table.may_be(opened, "safetensors"):
        from . import own

        if own.sniff(opened):
            _insisted(opened, format, own.NAME)
            return own.load_graph(opened, budget)
    if _table.may_be(opened, "gguf"):
        from . import gguf

        if gguf.sniff(opened):
            _insisted(opened, format, gguf.NAME)
            budget.narrow = narrow
            return *gguf.load_graph(opened, budget), {}
    if _table.may_be(opened, "tflite"):
        from . import tflite

        if tflite.sniff(opened):
            _insisted(opened, format, tflite.NAME)
            return *tflite.load_graph(opened, budget), {}
    if format == "onnx" or _table.may_be(opened, "onnx"):
        from . import onnx

        if format == onnx.NAME or onnx.sniff(opened):
            _insisted(opened, format, onnx.NAME)
            graph, metadata, about = onnx.load_graph(opened, budget)
            return graph, metadata, {"about": about}
    from . import keras

    if format == keras.NAME or keras.is_model(opened):
        _insisted(opened, format, keras.NAME)
        return *keras.load_graph(opened, budget), {}
    _refuse(opened)
    raise AssertionError


def _insisted(source: Source, format: str | None, found: str) -> None:
    if format is not None and format != found:
        raise FormatError(f"{source.where}: format={format!r} was asked for, but the content is {found}")


def _refuse(source: Source) -> None:
    """The content is no network: is it weights alone?"""
    from . import _table, foreign

    found = next((f for f in _table.candidates(source) if f.sniff(source)), None)
    if found is not None:
        torch = found.NAME == "torch"
        also = "; a network of torch is read as ONNX: torch.onnx.export, see docs/export.md" if torch else ""
        if torch and foreign.script(source):
            raise UnsupportedError(
                f"{source.where}: is a program of TorchScript, which is not run: export the network as ONNX, "
                "torch.onnx.export, see docs/export.md; load_weights reads its arrays"
            )
        raise UnsupportedError(
            f"{source.where}: is a {found.NAME} file, which holds weights alone: read them with load_weights, and put them into "
            f"layers with load_state_dict{also}"
        )
    foreign.refuse(source)
    raise FormatError(
        f"{source.where}: the content is of no known format: expected a model of ONNX, TensorFlow Lite, Keras or GGUF, "
        "or a file that Model.save wrote"
    )
