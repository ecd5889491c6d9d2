"""The base of all layers: freezing, weights that are packed once a kernel variant, state dicts, snapshots for calls in flight.

A layer keeps its tensors in one `Weights` object; loading makes a new one and publishes it with one assignment. Packed weights
live in it, so they can never belong to other tensors, and every call takes the object once. A layer that holds layers runs on a
snapshot of itself, taken again after a load anywhere, so that a call never mixes old and new weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import _html
from .._arguments import Check, as_flag, checker
from .._locks import Lock
from ..errors import DTypeError, Error, UnsupportedError, WeightsError, refuses_shortage
from ..kernels import dispatch
from ._load import Loaded, as_tensor, load_into, named, read_only
from ._names import weight_norm

__all__ = ["Frozen", "Layer", "Weights", "WithWeight"]

L = TypeVar("L", bound="Layer")
_OURS = f"{__package__}."

# Guards publication (of weights, packed weights and snapshots), never a computation.
_lock = Lock()


class _Epoch:
    """Counts loads: a snapshot of another number is stale."""

    number = 0


class Weights:
    """The tensors of one layer and what was made of them for each kernel variant. Tensors never change; packed ones are added."""

    __slots__ = ("packed", "tensors")

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self.tensors: dict[str, np.ndarray] = {name: read_only(array) for name, array in tensors.items()}
        self.packed: dict[str, tuple[Any, Any]] = {}

    def __reduce__(self) -> tuple[type[Weights], tuple[dict[str, np.ndarray]]]:
        return Weights, (self.tensors,)


def _check_of(kind: type, method: str) -> Check:
    """A check of the arguments of a layer's own method by its annotations; networks that users write go unchecked."""
    name = f"_check{method}"
    found: Check | None = kind.__dict__.get(name)
    if found is None:
        function = getattr(kind, method)
        ours = hasattr(function, "__code__") and (function.__module__ or "").startswith(_OURS)
        found = checker(kind.__name__, function, 1)[1] if ours else _unchecked
        type.__setattr__(kind, name, found)
    return found


def _unchecked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Takes any arguments as they are."""
    return args, kwargs


class Frozen(type):
    """Checks what a layer of this library is made of, and freezes it once its constructor is through."""

    if not TYPE_CHECKING:  # type checkers and editors are to see each layer's own constructor

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            args, kwargs = _check_of(cls, "__init__")(args, kwargs)
            try:
                layer = super().__call__(*args, **kwargs)
            except TypeError as error:  # Python names the class that defines the constructor, which may be a private one
                own = f"{cls.__init__.__qualname__}()"
                if isinstance(error, Error) or not str(error).startswith(own):
                    raise
                raise TypeError(f"{cls.__name__}(){str(error).removeprefix(own)}") from None
            layer.__dict__["_sealed"] = True
            return layer

        @property
        def __signature__(cls) -> Any:
            """The constructor's, for `help`, `inspect.signature` and notebooks, which would take that of `__call__` above."""
            from inspect import signature  # which takes long to import

            made = signature(cls.__init__)
            return made.replace(parameters=list(made.parameters.values())[1:], return_annotation=made.empty)


class Layer(metaclass=Frozen):
    """A function with weights. Base of all layers, and of networks that users write.

    A network is a subclass that makes its layers in ``__init__`` (as attributes, or in lists) and uses them in ``forward``; its
    state dict joins the names of attributes with dots, as torch does. After ``__init__`` a layer cannot be changed but by
    `load_state_dict`; it may be called from any number of threads at once.

    >>> import numpy as np, fastlayers as fl
    >>> class Net(fl.Layer):
    ...     def __init__(self):
    ...         self.up, self.down = fl.Linear(2, 3, activation="relu"), fl.Linear(3, 1)
    ...     def forward(self, x):
    ...         return self.down(self.up(x))
    >>> list(Net().tensor_shapes())
    ['up.weight', 'up.bias', 'down.weight', 'down.bias']
    """

    _shapes: Mapping[str, tuple[int, ...]]  # of the layer's own tensors, by name
    _weights: Weights
    _fast: Any  # a call for plain arrays in which hardly any Python happens, which returns None for others; None if there is none
    _snapshot: tuple[int, Any] | None
    _sealed: bool
    _bound: bool

    if not TYPE_CHECKING:  # as above

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            # Here, not in __init__, which subclasses need not call; in the instance, where reading is fastest.
            layer = super().__new__(cls)
            layer.__dict__.update(_shapes={}, _weights=Weights({}), _fast=None, _snapshot=None, _sealed=False, _bound=False)
            return layer

    def __setattr__(self, name: str, value: Any) -> None:
        if self._sealed:
            raise AttributeError(
                f"{type(self).__name__}: cannot set {name!r}: layers do not change after they are made; see load_state_dict"
            )
        object.__setattr__(self, name, value)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from .._habits import LAYER, advice

            if told := advice(LAYER, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{told}")
            return object.__getattribute__(self, name)  # whatever went wrong is told again

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}: cannot delete {name!r}: layers do not change after they are made")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The layer's results; networks that users write define it."""
        raise UnsupportedError(f"{type(self).__name__}: define forward(self, ...) to say what the layer computes")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`forward`, all of whose layers have the weights of one and the same load."""
        if kwargs or len(args) > 1:
            args, kwargs = _check_of(type(self), "forward")(args, kwargs)
        return self._settled().forward(*args, **kwargs)

    def _settled(self: L) -> L:
        """This layer with the weights of one load, whatever is loaded meanwhile."""
        if self._bound:
            return self
        snapshot = self._snapshot
        if snapshot is not None and snapshot[0] == _Epoch.number:
            return snapshot[1]  # type: ignore[no-any-return]
        with _lock:
            copy = self._copy()
            object.__setattr__(self, "_snapshot", (_Epoch.number, copy))
        return copy

    def _copy(self: L) -> L:
        """A copy, and copies of the layers below, that no load reaches; weights and packed weights are shared."""
        copy: L = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        for name, value in self.__dict__.items():
            if isinstance(value, Layer):
                copy.__dict__[name] = value._copy()
            elif _layers_in(value):
                copy.__dict__[name] = type(value)(layer._copy() for layer in value)
        copy.__dict__.update(_snapshot=None, _bound=True, _sealed=True)
        return copy

    def _children(self) -> Iterator[tuple[str, Layer]]:
        """The layers below with their names: attributes, and ``name.0``, ``name.1``, ... for those in lists and tuples."""
        for name, value in self.__dict__.items():
            if isinstance(value, Layer):
                yield name, value
            elif _layers_in(value):
                yield from ((f"{name}.{i}", layer) for i, layer in enumerate(value))

    def _leaves(self, prefix: str = "") -> Iterator[tuple[str, Layer]]:
        """This layer and all below it that have their own tensors, each with the prefix of its tensors' names."""
        if self._shapes:
            yield prefix, self
        for name, child in self._children():
            yield from child._leaves(f"{prefix}{name}.")

    def _named_arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        """Every tensor that is there, by the name that it has in the state dict."""
        for prefix, layer in self._settled()._leaves():
            yield from ((prefix + name, array) for name, array in layer._weights.tensors.items())

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the tensors that `load_state_dict` wants, whether or not they have been loaded."""
        return {prefix + name: shape for prefix, layer in self._leaves() for name, shape in layer._shapes.items()}

    def state_dict(self) -> dict[str, np.ndarray]:
        """The layer's tensors by torch's names: read-only float32 arrays.

        Raises:
            WeightsError: some have not been loaded.
        """
        found = dict(self._named_arrays())
        if missing := [name for name in self.tensor_shapes() if name not in found]:
            raise WeightsError(f"{type(self).__name__}.state_dict: {', '.join(missing)} not loaded: call load_state_dict first")
        return {name: found[name] for name in self.tensor_shapes()}

    def load_state_dict(self, weights: Mapping[str, Any], strict: bool = True, prefix: str = "") -> Loaded:
        """Takes the layer's tensors from a mapping, all or none of them.

        Args:
            weights: arrays by torch's names, such as ``"0.weight"``; any real dtype, converted to float32 and copied where
                needed. A weight under weight normalization (``weight_g`` and ``weight_v``, or ``parametrizations``) is multiplied
                out; a layer's docstring names what else it takes.
            strict: whether missing and left-over names are errors; ``num_batches_tracked`` may always be left over. Wrong shapes
                and dtypes are errors in any case.
            prefix: only names that begin with it are looked at, without it: ``"encoder."`` loads part of a larger network.

        Returns:
            ``(missing_keys, unexpected_keys)``, as torch does.

        Raises:
            WeightsError: names are missing or left over, or shapes or dtypes are wrong; the message lists all of them, and the
                layer is as it was before.

        >>> import numpy as np, fastlayers as fl
        >>> layer = fl.Linear(2, 1)
        >>> layer.load_state_dict({"weight": np.ones((1, 2)), "bias": np.zeros(1)})
        Loaded(missing_keys=[], unexpected_keys=[])
        >>> layer(np.array([1.0, 2.0]))
        array([3.], dtype=float32)
        """
        strict = as_flag(f"{type(self).__name__}.load_state_dict", "strict", strict)
        given = named(type(self).__name__, weights, prefix)
        self._rename(given, "")
        return self._take("load_state_dict", given, strict, prefix)

    def load_keras(self, weights: Sequence[Any]) -> Loaded:
        """Takes the layer's tensors from the list that Keras' ``get_weights()`` returns for the same layer, or the same layers.

        A layer says in its docstring what Keras' list holds; a network takes the lists of its layers one after the other, in the
        order in which its layers are declared.

        Args:
            weights: arrays in Keras' order and layout; any real dtype.

        Returns:
            ``(missing_keys, unexpected_keys)``, both empty.

        Raises:
            WeightsError: there are too few or too many arrays, or shapes are wrong; the message lists all that were expected, and
                the layer is as it was before.
            UnsupportedError: Keras has no such layer.

        >>> import numpy as np, fastlayers as fl
        >>> layer = fl.Linear(2, 3)
        >>> layer.load_keras([np.ones((2, 3)), np.zeros(3)])
        Loaded(missing_keys=[], unexpected_keys=[])
        """
        name = type(self).__name__
        if isinstance(weights, (str, bytes, Mapping)) or not isinstance(weights, Sequence):
            raise DTypeError(f"{name}.load_keras: weights of type {type(weights).__name__}: expected a list of arrays")
        slots = list(self._keras_slots())
        arrays = [as_tensor(value, f"{name}.load_keras", f"weights[{i}]") for i, value in enumerate(weights)]
        wanted = [(prefix + label, shape) for prefix, layer in slots for label, shape in layer._keras().items()]
        if [a.shape for a in arrays] != [shape for _, shape in wanted]:
            raise WeightsError(
                f"{name}.load_keras: weights has shapes {[a.shape for a in arrays]}: "
                f"expected {len(wanted)}: " + ", ".join(f"{label} {shape}" for label, shape in wanted)
            )
        given: dict[str, Any] = {}
        for prefix, layer in slots:
            labels = list(layer._keras())
            mine, arrays = arrays[: len(labels)], arrays[len(labels) :]
            converted = layer._from_keras(dict(zip(labels, mine, strict=True)))
            given.update((prefix + label, np.asarray(array, order="C")) for label, array in converted.items())
        return self._take("load_keras", given, True, "")

    def _keras(self) -> dict[str, tuple[int, ...]]:
        """The arrays of Keras' list for this layer: what Keras calls them, and their shapes. Layers with tensors define it."""
        raise UnsupportedError(f"{type(self).__name__}.load_keras: Keras has no such layer: use load_state_dict")

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """From Keras' arrays, whose shapes are right, to this layer's tensors (and those of layers below it) by name.

        As they are, where `_keras` has our names and layouts; other layers define it.
        """
        return given

    def _keras_slots(self, prefix: str = "") -> Iterator[tuple[str, Layer]]:
        """The layers that have a list of Keras' each: this one, if it says so itself or has tensors, else those below."""
        if type(self)._keras is not Layer._keras or self._shapes:
            yield prefix, self
        else:
            for name, child in self._children():
                yield from child._keras_slots(f"{prefix}{name}.")

    def _rename(self, given: dict[str, Any], prefix: str) -> None:
        """Brings what files call tensors to this library's names, here and in the layers below. `given` may be changed."""
        self._convert(given, prefix)
        for name, child in self._children():
            child._rename(given, f"{prefix}{name}.")

    def _convert(self, given: dict[str, Any], prefix: str) -> None:
        """Replaces tensors in `given` that begin with `prefix` and that a file names or cuts otherwise: see `layers._names`."""
        for name in self._shapes:
            weight_norm(given, prefix, type(self).__name__, name)

    def _take(self, method: str, given: Mapping[str, Any], strict: bool, prefix: str) -> Loaded:
        """Checks all tensors and publishes them."""
        leaves = list(self._leaves())
        shapes = {p + name: shape for p, layer in leaves for name, shape in layer._shapes.items()}
        tensors, result = load_into(f"{type(self).__name__}.{method}", shapes, given, strict, prefix)
        fresh = []
        for p, layer in leaves:
            mine = {name: tensors[p + name] for name in layer._shapes if p + name in tensors}
            fresh.append((layer, mine))
        with _lock:
            for layer, mine in fresh:
                if mine:
                    object.__setattr__(layer, "_weights", Weights({**layer._weights.tensors, **mine}))
                    object.__setattr__(layer, "_fast", None)
            _Epoch.number += 1
        return result

    def _tensors(self) -> dict[str, np.ndarray]:
        """This layer's own tensors; raises if one is missing."""
        return self._complete(self._weights)

    def _complete(self, weights: Weights) -> dict[str, np.ndarray]:
        tensors = weights.tensors
        if len(tensors) < len(self._shapes):
            missing = [name for name in self._shapes if name not in tensors]
            raise WeightsError(f"{self!r}: called without weights: {', '.join(missing)} missing: call load_state_dict first")
        return tensors

    def _packed(self) -> Any:
        """The result of `_pack` for the current kernel variant; made once."""
        weights = self._weights
        made, fast = weights.packed.get(dispatch.current()) or self._make_packed(weights)
        self._quicken(weights, fast)
        return made

    def _quicken(self, weights: Weights, fast: Any) -> None:
        """From now on `fast` is asked first, if there is one and the layer still has the weights that it was made of."""
        if fast is not None and self._fast is not fast:
            with _lock:
                if self._weights is weights:
                    object.__setattr__(self, "_fast", fast)

    @refuses_shortage("packing a layer's weights")
    def _make_packed(self, weights: Weights) -> tuple[Any, Any]:
        tensors = self._complete(weights)
        while True:
            before, variant = dispatch.generation, dispatch.current()
            made = self._pack(tensors)
            if before == dispatch.generation:  # else kernels of two variants may be mixed
                return weights.packed.setdefault(variant, made)

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        """Asks the current variant for (what a call needs, a call for plain arrays that returns None for others, or None)."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_fast", "_snapshot")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _arguments(self) -> str:
        """The constructor's arguments as `__repr__` shows them."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._children()]
        inside = "\n  " + "\n  ".join(lines) + "\n" if lines else self._arguments()
        return f"{type(self).__name__}({inside})"

    def _repr_html_(self) -> str:
        """A table for notebooks: a line for every layer inside, with its tensors, and whether they have been loaded."""
        rows = []
        loaded = dict(self._named_arrays())
        for prefix, layer in self._leaves():
            tensors = [f"{name} {list(shape)}" for name, shape in layer._shapes.items()]
            missing = [name for name in layer._shapes if prefix + name not in loaded]
            size = sum(math.prod(shape) for shape in layer._shapes.values())
            state = f"{', '.join(missing)} not loaded" if missing else ""
            rows.append((prefix.removesuffix("."), repr(layer), ", ".join(tensors), f"{size:,}" if size else "", state))
        name = type(self).__name__
        return f"<p><b>{_html.clean(name)}</b></p>{_html.table(['', 'layer', 'tensors', 'parameters', ''], rows, 3)}"


class WithWeight(Layer):
    """A layer with a tensor `weight`, and perhaps `bias`."""

    @property
    def weight(self) -> np.ndarray | None:
        """The tensor, read-only float32; None before it is loaded."""
        return self._weights.tensors.get("weight")

    @property
    def bias(self) -> np.ndarray | None:
        """The tensor, read-only float32; None before it is loaded, and if the layer has none."""
        return self._weights.tensors.get("bias")


def _layers_in(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(v, Layer) for v in value)
