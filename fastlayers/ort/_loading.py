"""From a path or bytes, and options, to a Model; what goes wrong becomes the error that onnxruntime raises."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from ..errors import Error, FormatError, LimitError, UnsupportedError
from ..formats import MAX_BYTES
from ..formats.budget import Budget
from ..formats.endings import named_for_another
from ..formats.source import open_source
from ..ir.graph import Graph
from ..model.loading import load
from ..model.model import Model
from ._enums import GraphOptimizationLevel
from ._errors import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    NoSuchFile,
    NotImplemented,
    OrtError,
    RuntimeException,
)
from ._options import SessionOptions
from ._overridden import remade

__all__ = ["model_of"]


def model_of(source: str | bytes, options: SessionOptions, threads: int) -> Model:
    """The model of a file or of bytes.

    Raises:
        OrtError: it cannot be loaded; which one is said in `_errors`.
        UnsupportedError: an option cannot be had.
    """
    if options._canceled:
        raise ModelLoadCanceled("Graph loading canceled due to user request.")
    plain = options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        model = load(source, num_threads=threads, optimize=not plain)
        if options._initializers:
            model = _with(model, options._initializers)
    except Exception as error:
        raise _as_there(error, source) from error
    if path := options.optimized_model_filepath:
        if wrong := named_for_another(path):  # a program written for onnxruntime goes on
            warnings.warn(f"InferenceSession: optimized_model_filepath: {wrong}", stacklevel=5)
        model._write(path)
    return model


def _with(model: Model, values: dict[str, Any]) -> Model:
    """The model with other weights."""
    graph = model._graph
    constants = dict(graph.constants)
    for name, value in values.items():
        old = constants.get(name)
        new = value._feed()
        if old is None:
            raise InvalidArgument(f"The initializer '{name}' is not one of the model's: expected one of its weights")
        if new.dtype != old.dtype or new.shape != old.shape:
            raise InvalidArgument(
                f"The initializer '{name}' is {value.data_type()} of shape {list(new.shape)}: expected {old.dtype} of "
                f"{list(old.shape)}"
            )
        constants[name] = np.array(new)
    return remade(model, Graph(graph.inputs, graph.outputs, graph.nodes, constants, graph.values))


def _as_there(error: Exception, source: str | bytes) -> BaseException:
    """The error that onnxruntime raises for a model that cannot be loaded."""
    if isinstance(error, OrtError) or not isinstance(error, (Error, OSError)):
        return error
    where = f"Load model from {source} failed:" if isinstance(source, str) else ""
    text = str(error)
    if isinstance(error, FileNotFoundError) and isinstance(source, str) and not os.path.exists(source):
        return NoSuchFile(f"{where}Load model {source} failed. File doesn't exist")
    if isinstance(error, OSError) and not isinstance(error, Error):
        if isinstance(error, IsADirectoryError):
            return InvalidProtobuf(f"{where}Protobuf parsing failed. ({text})")
        return Fail(f"{where}system error number {error.errno} ({text})")
    if isinstance(error, LimitError):
        return RuntimeException(where + text)
    if (isinstance(source, bytes) and not source) or text.endswith("is empty (0 bytes)"):
        return InvalidArgument(f"{where}No graph was found in the protobuf.")
    if "external" in text or "its data is in another file" in text:
        return Fail(f"{where}External data path validation failed: {text}")
    parsed = _parsed(source)
    if parsed is None:
        failed = "Protobuf parsing failed." if where else "Failed to load model because protobuf parsing failed."
        return InvalidProtobuf(f"{where}{failed} ({text})")
    if isinstance(error, FormatError):
        if "of no known format" in text:  # it is ONNX all the same
            return Fail(f"{where}Unsupported model IR version: {parsed.ir_version}")
        if "which nothing writes" in text:
            return InvalidArgument(
                f"{where}Invalid model. A node input is not a graph input, initializer, or output of a previous node. ({text})"
            )
        return InvalidGraph(f"{where}This is an invalid model. {text}")
    if isinstance(error, UnsupportedError):
        return _unsupported(where, text, parsed)
    return InvalidGraph(f"{where}This is an invalid model. {text}")


def _parsed(source: str | bytes) -> Any:
    """The content as protobuf reads it; None if it is no ONNX at all."""
    from ..formats.onnx.parse import Parser

    try:
        budget = Budget(MAX_BYTES, "load")
        return Parser(open_source(source, caller="load", mapped=True, budget=budget), budget).model()
    except (Error, OSError):
        return None


def _unsupported(where: str, text: str, model: Any) -> OrtError:
    """Is it an unknown operator, one of another domain, or one of ONNX that is not here?"""
    from ..formats.onnx.schema import schemas

    functions = {(f.domain, f.name) for f in model.functions}
    for node in model.graph.nodes:
        if (node.domain, node.op_type) in functions:
            continue
        if node.domain and f"{node.op_type} of domain {node.domain}" in text:
            return Fail(f"{where}Fatal error: {node.domain}:{node.op_type}(-1) is not a registered function/op ({text})")
        if not node.domain and node.op_type not in schemas():
            return InvalidGraph(
                f"{where}This is an invalid model. In Node, {node.name!r}, Error No Op registered for {node.op_type} with "
                f"domain_version of {node.opset} ({text})"
            )
    if "version" in text and "operators" in text:
        return Fail(where + text)
    return NotImplemented(f"{where}Could not find an implementation for what the model needs: {text}")
