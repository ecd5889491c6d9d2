"""Activation functions by the names that Keras gives them, and as what recurrent layers apply to their gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .build import Build, Tensor
from .words import unread

if TYPE_CHECKING:
    from .layer import Layer

__all__ = ["activated", "gate"]

Function = Callable[..., Tensor]


def _plain(op: str, **attributes: Any) -> Function:
    return lambda b, x: b.op(op, x, **attributes)


def _relu(b: Build, x: Tensor, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Tensor:
    """Keras' relu: x from the threshold on, at most max_value, and negative_slope * (x - threshold) below the threshold."""
    slope = float(negative_slope or 0.0)
    if not threshold:
        y = b.op("Relu", x) if not slope else b.op("LeakyRelu", x, alpha=slope)
    elif not slope:
        y = (
            b.op("ThresholdedRelu", x, alpha=float(threshold))
            if threshold > 0
            else b.op("Where", b.op("Greater", x, threshold), x, 0.0)
        )
        if threshold > 0 and max_value is not None and max_value < threshold:
            return b.op("Where", b.op("GreaterOrEqual", x, threshold), b.op("Min", x, max_value), 0.0)
    else:
        y = b.op("Where", b.op("GreaterOrEqual", x, threshold), x, b.op("Mul", b.op("Sub", x, threshold), slope))
    if max_value is None:
        return y
    if not slope and not threshold:
        return b.op("Clip", x, 0.0, float(max_value))
    return b.op("Min", y, float(max_value))


def _hard_sigmoid(b: Build, x: Tensor, old: bool = False) -> Tensor:
    return b.op("HardSigmoid", x, alpha=0.2 if old else 1 / 6, beta=0.5)


def _softmax(b: Build, x: Tensor, axis: Any = -1) -> Tensor:
    axis = list(range(x.rank)) if axis is None else axis
    if isinstance(axis, (list, tuple)) and len(axis) == 1:
        axis = axis[0]
    if isinstance(axis, int):
        return b.op("Softmax", x, axis=x.axis(axis))
    axes = sorted(x.axes(axis))
    e = b.op("Exp", b.op("Sub", x, b.reduce("Max", x, axes, True)))
    return b.op("Div", e, b.reduce("Sum", e, axes, True))


def _gelu(b: Build, x: Tensor, approximate: bool = False) -> Tensor:
    return b.op("Gelu", x, approximate="tanh" if approximate else "none")


def _glu(b: Build, x: Tensor, axis: int = -1) -> Tensor:
    a, gates = b.many("Split", 2, x, axis=x.axis(axis), num_outputs=2)
    return b.op("Mul", a, b.op("Sigmoid", gates))


def _squareplus(b: Build, x: Tensor, b_: float = 4.0) -> Tensor:
    return b.op("Mul", b.op("Add", x, b.op("Sqrt", b.op("Add", b.op("Mul", x, x), float(b_)))), 0.5)


def _threshold(b: Build, x: Tensor, threshold: float, default_value: float) -> Tensor:
    return b.op("Where", b.op("Greater", x, float(threshold)), x, float(default_value))


def _sparse_plus(b: Build, x: Tensor) -> Tensor:
    """0 up to -1, (x + 1)² / 4 up to 1, then x."""
    square = b.op("Add", x, 1.0)
    middle = b.op("Mul", b.op("Mul", square, square), 0.25)
    inner = b.op("Where", b.op("Less", x, 1.0), middle, x)
    return b.op("Where", b.op("LessOrEqual", x, -1.0), 0.0, inner)


def _log_sigmoid(b: Build, x: Tensor) -> Tensor:
    return b.op("Neg", b.op("Softplus", b.op("Neg", x)))


def _sparsemax(b: Build, x: Tensor, axis: int = -1) -> Tensor:
    """max(x - t, 0), where Keras finds t from the sum of the running sums, not from the last of them as the paper has it."""
    at = x.axis(axis)
    size = b.shape_of(x, at)
    z, _ = b.many("TopK", 2, x, b.ints(size) if isinstance(size, int) else size, axis=at)
    place = b.constant(np.array(at, np.int64))
    running, counted = b.op("CumSum", z, place), b.op("CumSum", b.op("Add", b.op("Mul", z, 0.0), 1.0), place)
    within = b.op("Greater", b.op("Sub", z, b.op("Div", b.op("Sub", running, 1.0), counted)), 0.0)
    total = b.reduce("Sum", b.op("Where", within, running, 0.0), [at], True)
    return b.op("Relu", b.op("Sub", x, b.op("Div", b.op("Sub", total, 1.0), b.reduce("Sum", b.floats(within), [at], True))))


FUNCTIONS: dict[str, Function] = {
    "linear": lambda b, x: x,
    "relu": _relu,
    "relu6": lambda b, x: b.op("Clip", x, 0.0, 6.0),
    "elu": lambda b, x, alpha=1.0: b.op("Elu", x, alpha=float(alpha)),
    "selu": _plain("Selu"),
    "celu": lambda b, x, alpha=1.0: b.op("Celu", x, alpha=float(alpha)),
    "gelu": _gelu,
    "glu": _glu,
    "softplus": _plain("Softplus"),
    "sparsemax": _sparsemax,
    "softsign": _plain("Softsign"),
    "softmax": _softmax,
    "log_softmax": lambda b, x, axis=-1: b.op("LogSoftmax", x, axis=x.axis(axis)),
    "sigmoid": _plain("Sigmoid"),
    "tanh": _plain("Tanh"),
    "exponential": _plain("Exp"),
    "exp": _plain("Exp"),
    "hard_sigmoid": _hard_sigmoid,
    "hard_silu": _plain("HardSwish"),
    "hard_swish": _plain("HardSwish"),
    "silu": _plain("Swish"),
    "swish": _plain("Swish"),
    "mish": _plain("Mish"),
    "leaky_relu": lambda b, x, negative_slope=0.2, alpha=None: b.op(
        "LeakyRelu", x, alpha=float(negative_slope if alpha is None else alpha)
    ),
    "log_sigmoid": _log_sigmoid,
    "hard_shrink": lambda b, x, threshold=0.5: b.op("Shrink", x, lambd=float(threshold), bias=0.0),
    "soft_shrink": lambda b, x, threshold=0.5: b.op("Shrink", x, lambd=float(threshold), bias=float(threshold)),
    "tanh_shrink": lambda b, x: b.op("Sub", x, b.op("Tanh", x)),
    "hard_tanh": lambda b, x: b.op("Clip", x, -1.0, 1.0),
    "squareplus": _squareplus,
    "threshold": _threshold,
    "sparse_plus": _sparse_plus,
    "sparse_sigmoid": lambda b, x: b.op("Clip", b.op("Add", b.op("Mul", x, 0.5), 0.5), 0.0, 1.0),
}
# Layers that may stand where a function is expected, and how their configuration spells its arguments.
_LAYERS = {
    "ReLU": "relu", "LeakyReLU": "leaky_relu", "ELU": "elu", "Softmax": "softmax",
}  # fmt: skip
_WORDS = {
    "negative_slope": ("negative_slope", "alpha"), "max_value": ("max_value",), "threshold": ("threshold",), "alpha": ("alpha",),
    "axis": ("axis",), "approximate": ("approximate",), "default_value": ("default_value",),
}  # fmt: skip


def named(value: Any) -> tuple[str | None, dict[str, Any]]:
    """Name and arguments of an activation as a configuration has it; None if it is none of Keras' own, or says more."""
    if value is None:
        return "linear", {}
    if isinstance(value, str):
        return (value if value in FUNCTIONS else None), {}
    kind, config = value.get("class_name"), value.get("config")
    if kind == "function":
        name = config if isinstance(config, str) else value.get("registered_name")
        return (name if name in FUNCTIONS and ">" not in str(value.get("registered_name")) else None), {}
    if kind in _LAYERS and isinstance(config, dict):
        given: dict[str, Any] = {} if kind != "LeakyReLU" else {"negative_slope": 0.3}
        taken = {"ReLU": ("negative_slope", "max_value", "threshold"), "LeakyReLU": ("negative_slope",), "ELU": ("alpha",)}.get(
            kind, ("axis",)
        )
        if unread(kind, config, [spelt for word in taken for spelt in _WORDS[word]]):
            return None, {}
        for word in taken:
            found = next((config[w] for w in _WORDS[word] if config.get(w) is not None), None)
            if found is not None:
                given[word] = found
        return _LAYERS[kind], given
    return None, {}


def known(layer: Layer, *words: str) -> None:
    """Refuses activations that are not Keras' own; asked when the layer is made, so that all are told together."""
    from ...errors import UnsupportedError

    for word in words:
        name, _ = named(layer.config.get(word))
        if name is None:
            raise UnsupportedError(f"{word} {layer.config.get(word)!s:.80}")


def activated(layer: Layer, b: Build, x: Tensor, value: Any) -> Tensor:
    """An activation applied."""
    name, arguments = named(value)
    if name is None:
        layer.refuse(f"activation {value!s:.80}")
    if name == "hard_sigmoid":
        return _hard_sigmoid(b, x, layer.context.old)
    return FUNCTIONS[name](b, x, **arguments)


_GATES: dict[str, Any] = {
    "linear": ("identity",), "relu": ("relu",), "relu6": ("clip", 0.0, 6.0), "elu": ("elu", 1.0), "selu": ("selu",),
    "sigmoid": ("sigmoid",), "tanh": ("tanh",), "softplus": ("softplus",), "softsign": ("softsign",), "exponential": ("exp",),
    "silu": ("silu",), "swish": ("silu",), "gelu": ("gelu",), "mish": ("mish",), "hard_silu": ("hardswish",),
    "leaky_relu": ("leaky_relu", 0.2),
    "hard_swish": ("hardswish",),
}  # fmt: skip


def gate(layer: Layer, value: Any) -> tuple[Any, ...]:
    """An activation as the operators of recurrent layers take it: a kernel's name and its parameters."""
    name, arguments = named(value)
    if name == "hard_sigmoid":
        return ("hardsigmoid", 0.2 if layer.context.old else 1 / 6, 0.5)
    found: tuple[Any, ...] | None = None if arguments else _GATES.get(name or "")
    if found is None:
        layer.refuse(f"{value!s:.80} as an activation in a recurrent layer")
    return found
