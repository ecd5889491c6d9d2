"""One layer of a model: its configuration, its weights by name, its sublayers, and the entry of the table that says what it does.

To add a layer: in the file of its family under `layers/` a function that writes nodes, ``@layer("Name", weights=...)`` on it, and
a case in tests/goldens/make_keras_models.py. The function gets the layer, the graph that is being written and what the layer is
called with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from ..._tuples import NamedTuple
from ...errors import FormatError, LimitError, UnsupportedError
from ...operators.narrow import narrowed
from .build import BFLOAT16, FLOAT16, FLOAT32, Build, Refused, Tensor
from .operation import OPERATIONS
from .words import OBJECT, Words, unread

__all__ = ["LAYERS", "OTHERS", "Context", "Entry", "Layer", "layer"]

# Models, whose layers cast by themselves, and what gives whatever dtype it is given.
_AS_THEY_ARE = ("Sequential", "Functional", "Model", "InputLayer", "TFOpLambda", "SlicingOpLambda")
# Layers that hold their weights in float32 and compute in it, whatever their policy is.
_IN_FLOAT32 = (
    "BatchNormalization", "BatchNormalizationV1", "BatchNormalizationV2", "SyncBatchNormalization", "LayerNormalization",
    "GroupNormalization",
)  # fmt: skip
# What a quantizer of Keras does by default.
_BY_LARGEST = {"value_range": [-127, 127], "epsilon": 1e-07, "output_dtype": "int8"}
# Layers that take functions, which a file stores as code, or as names of code elsewhere: Keras itself loads them only if
# it is told to trust the file.
_GIVEN_CODE = ("Lambda", "AssociativeScan", "Cond", "ForiLoop", "JVP", "Map", "Scan", "Switch", "VectorizedMap", "WhileLoop")
DEEPEST = 32  # layers in layers
MOST_CALLS = 20_000  # of all layers: a few models that call one another twice stand for any number
F = TypeVar("F", bound=Callable[..., Any])


class Entry(NamedTuple):
    """A class of layers: how it runs, and what a file may say of it.

    `weights` names the layer's own weights in Keras' order, `fixed` those that are not trained, which come after; `children`
    gives its sublayers with the path that they have in a file. `mask`: "keep" hands the mask of the first input on, "drop" does
    not, "own" leaves it to `run`. `words` are those of the configuration that the others read, and `old` those that they read in
    files of Keras 1 alone; see `words`.
    """

    run: Callable[..., Any]
    weights: Callable[[Layer], Sequence[str]]
    fixed: Callable[[Layer], Sequence[str]]
    children: Callable[[Layer], Sequence[tuple[str, Layer]]]
    mask: str
    words: frozenset[str]
    old: frozenset[str]


LAYERS: dict[str, Entry] = {}
OTHERS: dict[str, Entry] = {}  # for a node that is no layer: "operation"


def not_read(what: str, kind: str) -> str:
    """The text of an error about a layer or an operation that is not read."""
    if kind in _GIVEN_CODE:
        return f"a function of Python's own ({kind}), which is never run"
    return f"{what} {kind[:80]}"


def _none(_: Layer) -> tuple[()]:
    return ()


def layer(
    *names: str,
    weights: Callable[[Layer], Sequence[str]] = _none,
    fixed: Callable[[Layer], Sequence[str]] = _none,
    children: Callable[[Layer], Sequence[tuple[str, Layer]]] = _none,
    mask: str = "keep",
    words: str = "",
) -> Callable[[F], F]:
    """Puts a function into the table under the names of classes: an `Entry`, its words as "... | those of Keras 1"."""

    def put(function: F) -> F:
        new, _, old = words.partition("|")
        for name in names:
            LAYERS[name] = Entry(function, weights, fixed, children, mask, frozenset(new.split()), frozenset(old.split()))
        return function

    return put


class Context:
    """State that all layers of a file share: Keras' version, what is refused, and the layers that are used more than once."""

    def __init__(self, where: str, version: tuple[int, int], backend: str | None) -> None:
        self.where, self.version, self.backend = where, version, backend
        self.refused: dict[str, list[str]] = {}
        self.shared: dict[Any, Layer] = {}
        self.count = 0

    @property
    def old(self) -> bool:
        """Whether Keras 1 or 2 wrote the file."""
        return self.version < (3, 0)

    def refuse(self, what: str, name: str) -> None:
        """Notes something that is not supported, and the layer that needs it."""
        self.refused.setdefault(what, []).append(name)

    def make(self, data: Any, path: Sequence[str] = (), checked: bool = True) -> Layer:
        """The layer that a serialized object describes. `checked`: that all it says is read."""
        if not isinstance(data, dict) or not isinstance(data.get("class_name"), str):
            raise FormatError(f"{self.where}: {'/'.join(path) or 'the model'}: expected a layer, got {data!s:.80}")
        identity = data.get("shared_object_id")
        if isinstance(identity, int) and identity in self.shared:
            return self.shared[identity]
        self.count += 1
        if len(path) > DEEPEST or self.count > 100_000:
            raise LimitError(f"{self.where}: layer nesting exceeds {DEEPEST} levels, or there are more than 100000 layers")
        made = Layer(self, data, path, checked)
        if isinstance(identity, int):
            self.shared[identity] = made
        return made


class Layer:
    """A layer of a model; its weights are put in by `weights.assign`."""

    def __init__(self, context: Context, data: dict[str, Any], path: Sequence[str], checked: bool = True) -> None:
        config = data.get("config")
        if isinstance(config, list):  # of Sequential, before Keras 2.2.3
            config = {"name": str(data.get("name", "sequential")), "layers": config}
        self.context, self.data, self.config = context, data, config if isinstance(config, dict) else {}
        self.kind: str = data["class_name"]
        named = self.config.get("name", data.get("name"))
        self.name = named if isinstance(named, str) else self.kind.lower()
        self.path = (*path, self.name)
        self.values: dict[str, np.ndarray] = {}
        self.rounded_weights: set[str] = set()
        self.parsed: Any = None  # the calls of a Functional model, once they were read
        self.own: list[str] = []
        self.fixed: list[str] = []
        self.children: list[tuple[str, Layer]] = []
        found = LAYERS.get(self.kind)
        operation = str(data.get("module", "")).startswith(("keras.src.ops", "keras.ops")) or (
            # Without a module: configurations of operations have no "trainable".
            "module" not in data and "trainable" not in self.config and "layers" not in self.config and self.kind != "InputLayer"
        )
        # In HDF5 nothing tells operations from layers of the same name but that these have a dtype policy.
        layer_too = self.kind in LAYERS and "dtype" not in self.config
        self.operation = operation and not context.old and (layer_too or self._is_operation())
        custom = data.get("registered_name")
        if self.operation:
            found = OTHERS["operation"]
        elif isinstance(custom, str) and ">" in custom:
            found = None
            self.kind = custom
        if found is None:
            context.refuse(not_read("layer", self.kind), "/".join(self.path))
            return
        self.entry = found
        if checked:
            self._all_read()
        if not self.operation:
            self.config = Words(self.config, found.words | found.old)
        with self.fence():
            try:
                self.own, self.fixed = list(found.weights(self)), list(found.fixed(self))
                self.children = list(found.children(self))
            except UnsupportedError as error:
                context.refuse(str(error), "/".join(self.path))
        policy = self.config.get("dtype")
        name = policy.get("config", {}).get("name") if isinstance(policy, dict) else policy
        mode = policy.get("config", {}).get("mode") if isinstance(policy, dict) else None
        found_mode = mode if isinstance(policy, dict) and "Quantized" in str(policy.get("class_name")) else None
        if (found_mode or self.config.get("quantization_config")) and not self.quantized:
            context.refuse(f"weights quantized as {str(found_mode or name)[:40]}", "/".join(self.path))
        # In which dtype the layer computes, "" for float32, in which all is computed here: see `rounded`.
        self.half = ""
        if not self.operation and self.kind not in _AS_THEY_ARE and isinstance(name, str):
            self.half = name.removeprefix("mixed_") if name.endswith("float16") else ""
        if self.config.get("lora_rank"):
            context.refuse("LoRA that was not merged", "/".join(self.path))

    @property
    def quantized(self) -> bool:
        """Whether a Dense or EinsumDense layer has int8 weights, and rounds what comes in to int8 by its largest number."""
        policy, how = self.config.get("dtype"), self.config.get("quantization_config")
        if self.kind not in ("Dense", "EinsumDense") or not isinstance(policy, dict):
            return False
        words = policy.get("config")
        if policy.get("class_name") != "QuantizedDTypePolicy" or words != {"mode": "int8", "source_name": "float32"}:
            return False
        inner = how.get("config") if isinstance(how, dict) else {}
        activations = inner.get("activation_quantizer") if isinstance(inner, dict) else None
        if activations is None:
            return how is None
        return bool(activations.get("class_name") == "AbsMaxQuantizer" and activations.get("config") == _BY_LARGEST)

    def _all_read(self) -> None:
        """Notes what the file says of the layer that nothing reads; what operations are called with is looked at in `ops`."""
        known = self.entry.words | self.entry.old if self.context.version < (2, 0) else self.entry.words
        words = {} if self.operation else unread(self.kind, self.config, known)
        beside = {word: value for word, value in self.data.items() if value is not None and word not in OBJECT}
        for word, value in {**beside, **words}.items():
            self.context.refuse(f"{self.kind[:80]} with {word!s:.80}={value!r:.80}, which is not read", "/".join(self.path))

    def _is_operation(self) -> bool:
        return self.kind in OPERATIONS or str(self.data.get("module", "")).startswith(("keras.src.ops", "keras.ops"))

    # ---- asking ----------------------------------------------------------------------------------------------------------

    def get(self, name: str, default: Any = None) -> Any:
        """A value of the configuration; null counts as left out."""
        found = self.config.get(name)
        return default if found is None else found

    def numbers(self, name: str, count: int, default: Any = 1) -> tuple[int, ...]:
        """An int for each of `count` axes, from one for all or a list."""
        value = self.get(name, default)
        found = (value,) * count if isinstance(value, int) else tuple(value)
        if len(found) != count or not all(isinstance(v, int) and v >= 0 for v in found):
            self.fail(f"{name} is {value!r:.80}: expected {count} values")
        return found

    def weight(self, name: str, *shape: int | None, optional: bool = False) -> np.ndarray:
        """A weight, which must have this shape (None: any size), in float32."""
        found = self.values.get(name)
        if found is None:
            self.fail(f"the file has no weight {name!r} for it")
        if shape and (found.ndim != len(shape) or any(w is not None and w != h for w, h in zip(shape, found.shape, strict=True))):
            self.fail(f"weight {name!r} has shape {found.shape}: expected {shape}")
        if found.dtype != FLOAT32:
            if found.dtype.kind not in "fiub":
                self.fail(f"weight {name!r} has dtype {found.dtype}: expected a numeric dtype")
            found = self.values[name] = found.astype(np.float32)
        if self.half and self.kind not in _IN_FLOAT32 and name not in self.rounded_weights:
            with np.errstate(over="ignore"):
                halves = found.astype(FLOAT16) if self.half == "float16" else narrowed(found, BFLOAT16)
            found = self.values[name] = halves.astype(np.float32)
            self.rounded_weights.add(name)
        return found

    def rounded(self, b: Build, x: Tensor) -> Tensor:
        """x as it comes into the layer and out of it: floats are rounded to the dtype in which the layer computes."""
        return b.cast_to(x, self.half) if self.half and x.dtype.kind == "f" else x

    def last(self) -> bool:
        """Whether channels come last."""
        old = {"tf": "channels_last", "th": "channels_first"}.get(str(dict.get(self.config, "dim_ordering")))  # of Keras 1
        given = self.get("data_format", old or "channels_last")
        if given not in ("channels_last", "channels_first"):
            self.fail(f"data_format is {given!r:.80}")
        return bool(given == "channels_last")

    def fail(self, text: str) -> NoReturn:
        """A FormatError that names the layer."""
        raise FormatError(f"{self.context.where}: layer {'/'.join(self.path)} ({self.kind}): {text}")

    def refuse(self, text: str) -> NoReturn:
        """An UnsupportedError that names the layer."""
        raise UnsupportedError(f"{self.context.where}: layer {'/'.join(self.path)} ({self.kind}): {text}")

    def fence(self) -> Fence:
        """Turns what a nonsensical configuration makes Python raise into a fastlayers error."""
        return Fence(self)

    def child(self, data: Any) -> Layer:
        """A sublayer."""
        return self.context.make(data, self.path)

    def inner(self, kind: str) -> Layer:
        """A sublayer that the layer makes for itself, of its own configuration, which has been looked at already."""
        data = {"class_name": kind, "config": {**self.config, "name": f"{self.name}_cell"}}
        return self.context.make(data, self.path, checked=False)

    # ---- calling ---------------------------------------------------------------------------------------------------------

    def __call__(self, b: Build, /, *args: Any, **kwargs: Any) -> Any:
        """Writes the layer's nodes; arguments are tensors, scalars, and lists and dicts of them."""
        kwargs = {k: v for k, v in kwargs.items() if v is not None and k != "training"}
        if not self.operation and self.kind not in _AS_THEY_ARE:
            # Whatever a layer computes in, it is computed in float32 here: what comes in and goes out is rounded.
            args, kwargs = mapped((args, kwargs), lambda t: b.floats(self.rounded(b, t)) if t.dtype.kind == "f" else t)
        b.path.append(self.name)
        b.calls += 1
        if len(b.path) > DEEPEST or b.calls > MOST_CALLS:
            raise LimitError(f"{self.context.where}: layers are called more than {DEEPEST} deep or {MOST_CALLS} times")
        try:
            with self.fence():
                result = mapped(self.entry.run(self, b, *args, **kwargs), lambda t: self.rounded(b, t))
        finally:
            b.path.pop()
        if self.entry.mask == "own":
            return result
        mask = None
        if self.entry.mask == "keep":
            mask = next((t.mask for t in tensors(args)[:1]), None)
        return mapped(result, lambda t: t.masked(mask))


class Fence:
    """See `Layer.fence`."""

    def __init__(self, owner: Layer) -> None:
        self.owner = owner

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if isinstance(error, (FormatError, UnsupportedError, LimitError)):
            return
        if isinstance(error, Refused):
            self.owner.refuse(str(error)[:200])
        if isinstance(error, (KeyError, ValueError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError)):
            raise FormatError(
                f"{self.owner.context.where}: layer {'/'.join(self.owner.path)} ({self.owner.kind}): configuration or call of "
                f"it is broken ({type(error).__name__}: {error!s:.160})"
            ) from None


def tensors(value: Any) -> list[Tensor]:
    """The tensors in nested lists and dicts, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for key in sorted(value) for t in tensors(value[key])]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(item)]
    return []


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Nested lists and dicts with every tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    return value
