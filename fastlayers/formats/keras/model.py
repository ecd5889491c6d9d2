"""Models: Sequential and Functional, at the top or as layers of others, and the call that turns a file into a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._tuples import NamedTuple
from ...errors import Error, FormatError, UnsupportedError
from ...ir.graph import Graph
from .._refused import unsupported
from ..budget import Budget
from ..source import Source
from . import functions, layers, moves, sorting
from .archive import parts
from .build import Build, Tensor, dims
from .calls import Call, calls, resolved
from .layer import Context, Layer, layer, tensors
from .weights import assign

__all__ = ["load_graph"]

TABLES = (functions, layers, moves, sorting)  # whose import fills the tables of layers and operations
FUNCTIONAL = ("Functional", "Model")


def load_graph(source: Source, budget: Budget) -> tuple[Graph, dict[str, str]]:
    """The model of a file as a graph of operators, and the file's metadata."""
    try:
        return _load(source, budget)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        if isinstance(error, Error):
            raise
        raise FormatError(f"{source.where}: its configuration is broken ({type(error).__name__}: {error!s:.160})") from None


def _load(source: Source, budget: Budget) -> tuple[Graph, dict[str, str]]:
    where = source.where
    found = parts(source, budget)
    context = Context(where, found.version, found.metadata.get("backend"))
    data = found.config
    if "class_name" not in data:
        raise FormatError(f"{where}: its configuration has no class_name")
    if data["class_name"] not in (*FUNCTIONAL, "Sequential") or "layers" not in _config(data):
        raise UnsupportedError(
            f"{where}: the model is of class {str(data['class_name'])[:80]!r}, whose code is not in the file: expected a "
            "Sequential or Functional model; its weights can be read with load_weights"
        )
    model = context.make(data)
    if context.refused:
        named = ((what, ", ".join(names[:8]) + ", ..." * (len(names) > 8)) for what, names in sorted(context.refused.items()))
        raise unsupported(where, map(": ".join, named))
    assign(model, found.weights, found.legacy, where)
    build = Build(where, budget)
    with model.fence():
        graph = _graph(model, build)
    return graph, found.metadata


def _config(data: dict[str, Any]) -> Any:
    config = data.get("config")
    return {"layers": config} if isinstance(config, list) else config if isinstance(config, dict) else {}


def _graph(model: Layer, b: Build) -> Graph:
    """The graph of the outermost model."""
    inputs: list[Tensor] = []
    given: Any
    if model.kind == "Sequential":
        given = _input(b, _first(model), inputs)
    else:
        by_name = {child.name: child for _, child in model.children}
        given = _mapped(model.config["input_layers"], lambda ref: _input(b, by_name[ref[0]], inputs))
    result = run_model(model, b, given)
    named: list[tuple[str, Tensor]]
    if model.kind == "Sequential":
        named = [(model.children[-1][1].name if model.children else "output", t) for t in tensors(result)]
    else:
        names: list[str] = []
        _mapped(model.config["output_layers"], lambda ref: names.append(ref[0]))
        named = list(zip(names, tensors(result), strict=True))
    return b.graph(inputs, named)


def _first(model: Layer) -> Layer:
    """The source of a Sequential's input shape: its InputLayer, or the first layer's own shape."""
    data = model.config["layers"]
    if not data:
        model.fail("it has no layers")
    first = data[0]
    if first.get("class_name") == "InputLayer":
        return model.context.make(first, model.path)
    for _, child in model.children[:1]:
        if _shape(child) is not None:
            return child
        if child.kind == "Sequential":
            return _first(child)
        if child.kind in FUNCTIONAL:
            inner = {c.name: c for _, c in child.children}
            return inner[_refs(child.config["input_layers"])[0][0]]
    built = model.config.get("build_input_shape", (model.data.get("build_config") or {}).get("input_shape"))
    if isinstance(built, (list, tuple)):
        model.config["batch_shape"] = list(built)
        return model
    return model.refuse("the shape of its input is not in the file: save the model after it was built")


def _shape(source: Layer) -> list[Any] | None:
    found = source.get("batch_shape", source.get("batch_input_shape"))
    if found is None and source.get("input_shape") is not None:
        found = [None, *source.get("input_shape")]
    if found is None and source.get("input_dim") is not None:  # Keras 1
        length = source.config.get("input_length")
        found = [None, source.get("input_dim")]
        if source.kind == "Embedding":
            found = [None, length]
        elif source.kind in ("LSTM", "GRU", "SimpleRNN", "Convolution1D"):
            found = [None, length, source.get("input_dim")]
    return list(found) if isinstance(found, (list, tuple)) else None


def _input(b: Build, source: Layer, inputs: list[Tensor]) -> Tensor:
    shape = _shape(source)
    if shape is None:
        source.refuse("the shape of the model's input is not in the file")
    if source.kind == "InputLayer" and (source.get("sparse") or source.get("ragged")):
        source.refuse("a sparse or ragged input")
    name = source.get("dtype", source.get("input_dtype", "float32"))
    name = name.get("config", {}).get("name") if isinstance(name, dict) else name
    if source.kind == "Embedding" and source.get("dtype") is not None:
        name = "float32"  # that is what the table has; Keras takes any dtype
    wide = {"bfloat16": "float32", "mixed_float16": "float32", "mixed_bfloat16": "float32"}.get(name, name)
    try:
        dtype = np.dtype(wide)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "fiub":
        source.refuse(f"an input of {str(name)[:40]}")
    made = b.input(source.name if source.kind == "InputLayer" else f"{source.name}_input", dims(shape, source.name), dtype)
    inputs.append(made)
    return made


# ---- models as layers ------------------------------------------------------------------------------------------------------


def _children(model: Layer) -> list[tuple[str, Layer]]:
    """Every layer of the model; operations are none, they have no weights and no place among the layers."""
    data = model.config["layers"]
    if model.kind == "Sequential":
        data = [item for item in data if item.get("class_name") != "InputLayer"]
    found: list[tuple[str, Layer]] = []
    for item in data:
        child = model.child(item)
        if isinstance(item.get("name"), str):
            child.name = item["name"]
        found.append(("operation" if child.operation else "layers/*", child))
    return found


@layer(
    "Sequential",
    "Functional",
    "Model",
    words="layers input_layers output_layers build_input_shape",
    children=_children,
    mask="own",
)
def run_model(model: Layer, b: Build, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
    """Calls the model on what its inputs get."""
    given = args[0] if len(args) == 1 else list(args)
    if mask is not None and isinstance(given, Tensor) and isinstance(mask, Tensor):
        given = given.masked(mask)
    if model.kind == "Sequential":
        value = given
        for _, child in model.children:
            value = child(b, value)
        return value
    if model.parsed is None:
        model.parsed = _Functional(model)
    return model.parsed.run(b, given)


def _refs(value: Any) -> list[list[Any]]:
    """References [layer, node, tensor] in nested lists and dicts, in order."""
    found: list[list[Any]] = []
    _mapped(value, found.append)
    return found


def _mapped(value: Any, change: Any) -> Any:
    """`change` of every reference in nested lists and dicts; the keys of dicts in order, as Keras flattens them."""
    if (
        isinstance(value, (list, tuple))
        and len(value) >= 3
        and isinstance(value[0], str)
        and all(isinstance(v, int) for v in value[1:3])
    ):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(value[key], change) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_mapped(item, change) for item in value]
    raise FormatError(f"a reference to a layer is {value!s:.80}: expected [name, node, tensor]")


class _Node(NamedTuple):
    """One call of a layer."""

    child: Layer
    number: int
    call: Call


class _Functional:
    """The calls of a Functional model, in an order that can be run."""

    def __init__(self, model: Layer) -> None:
        self.model = model
        self.layers: dict[str, Layer] = {}
        for _, child in model.children:
            if child.name in self.layers:
                model.fail(f"two layers have the name {child.name[:80]!r}")
            self.layers[child.name] = child
        self.outputs = _refs(model.config["output_layers"])
        data = {
            str(item.get("name", _config(item).get("name"))): item.get("inbound_nodes") or [] for item in model.config["layers"]
        }
        self.calls = {name: calls(child, data.get(name, [])) for name, child in self.layers.items()}
        self.offset = self._offsets()

    def _offsets(self) -> dict[str, int]:
        """The number of each layer's first call: 1 where the layer is a model, which was called when it was made."""
        most: dict[str, int] = {}
        for name, index, *_ in [ref for many in self.calls.values() for call in many for ref in call.reads] + self.outputs:
            most[name] = max(most.get(name, 0), index)
        return {
            name: 1 if self.layers[name].kind in (*FUNCTIONAL, "Sequential") and most.get(name, 0) >= len(many) > 0 else 0
            for name, many in self.calls.items()
        }

    def run(self, b: Build, given: Any) -> Any:
        done: dict[tuple[str, int], Any] = {}
        refs = _refs(self.model.config["input_layers"])
        for ref, value in zip(refs, self._inputs(given, refs), strict=True):
            for index in (0, 1):
                done[ref[0], index] = value
        nodes = [
            _Node(self.layers[name], i + self.offset[name], call)
            for name, many in self.calls.items()
            for i, call in enumerate(many)
            if self.layers[name].kind != "InputLayer"
        ]
        readers: dict[tuple[str, int], list[int]] = {}
        waiting: list[int] = []
        for at, node in enumerate(nodes):
            needs = {(name, index) for name, index, *_ in node.call.reads} - done.keys()
            waiting.append(len(needs))
            for need in needs:
                readers.setdefault(need, []).append(at)
        ready = [at for at, count in enumerate(waiting) if not count]
        ran = 0
        while ready:
            at = ready.pop(0)
            node, ran = nodes[at], ran + 1
            args, kwargs = resolved(node.call, lambda ref: self._value(done, ref))
            key = node.child.name, node.number
            done[key] = node.child(b, *args, **kwargs)
            for reader in readers.get(key, ()):
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        if ran < len(nodes):
            stuck = next(node for node, count in zip(nodes, waiting, strict=True) if count)
            self.model.fail(f"layer {stuck.child.name[:80]!r} reads an input that nothing writes, or takes part in a cycle")
        return _mapped(self.model.config["output_layers"], lambda ref: self._value(done, ref))

    def _inputs(self, given: Any, refs: Sequence[list[Any]]) -> list[Tensor]:
        if isinstance(given, dict):
            names = [ref[0] for ref in refs]
            if set(given) == set(names):
                return [given[name] for name in names]
        flat = tensors(given)
        if len(flat) != len(refs):
            self.model.fail(f"is called with {len(flat)} tensors: expected {len(refs)}")
        # A tensor of another kind is converted, as in Keras.
        return flat

    def _value(self, done: dict[tuple[str, int], Any], ref: Any) -> Tensor:
        name, index, position = ref[:3]
        if (name, index) not in done:
            self.model.fail(f"refers to call {index} of layer {str(name)[:80]!r}, which has no such call")
        found = tensors(done[name, index])
        if not 0 <= position < len(found):
            self.model.fail(f"reads output {position} of layer {str(name)[:80]!r}, which has {len(found)}")
        value: Tensor = found[position]
        return value


@layer("InputLayer", words="sparse ragged")
def input_layer(this: Layer, b: Build, x: Tensor) -> Tensor:
    """The input itself."""
    return x
