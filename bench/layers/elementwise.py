"""Activations, arithmetic, softmax and gated units: the layer, or the function where there is no layer, next to torch's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, normal, np

SHAPE = (256, 1024)
# Layers with their arguments; torch's have the same names and arguments.
LAYERS: list[tuple[str, tuple[Any, ...]]] = [
    *((name, ()) for name in ("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "GELU", "SiLU", "Sigmoid", "Tanh", "Hardsigmoid")),
    *((name, ()) for name in ("Hardswish", "Softplus", "Softsign", "Mish", "Hardtanh", "GLU")),
    *((name, ()) for name in ("CELU", "Hardshrink", "Softshrink", "Tanhshrink", "LogSigmoid")),
    ("Threshold", (0.1, 0.5)),
    ("Softmin", (-1,)),
    ("GELU", ("tanh",)),
    ("Softmax", (-1,)),
    ("LogSoftmax", (-1,)),
    ("Softmax", (0,)),
]
# Functions with the name that torch has for them, and how many operands they take.
FUNCTIONS: list[tuple[str, str, int]] = [
    *((name, name, 1) for name in ("exp", "erf", "sqrt", "relu", "sigmoid", "tanh", "log")),
    *((name, f"nn.functional.{name}", 1) for name in ("relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "hardsigmoid")),
    *((name, f"nn.functional.{name}", 1) for name in ("hardswish", "softplus", "softsign", "mish", "hardtanh", "glu")),
    *((name, f"nn.functional.{name}", 1) for name in ("celu", "hardshrink", "softshrink", "tanhshrink", "logsigmoid")),
    ("swish", "nn.functional.silu", 1),
    *((name, name, 2) for name in ("add", "subtract", "multiply", "divide")),
]


def layer(name: str, arguments: tuple[Any, ...]) -> Pair:
    x = normal(np.random.default_rng(1), *SHAPE)
    keywords = {"approximate": "tanh"} if arguments == ("tanh",) else {}
    mine = getattr(fl, name)(*(() if keywords else arguments), **keywords)

    def theirs(torch: Any) -> Any:
        net, tx = getattr(torch.nn, name)(*(() if keywords else arguments), **keywords), torch.tensor(x)
        return lambda: net(tx)

    return Pair(lambda: mine(x), theirs)


def function(name: str, other: str, operands: int) -> Pair:
    rng = np.random.default_rng(1)
    values = [normal(rng, *SHAPE) for _ in range(operands)]
    if name in ("log", "sqrt"):
        values = [np.abs(v) for v in values]
    mine = getattr(fl.functional, name)

    def theirs(torch: Any) -> Any:
        run = torch
        for part in other.split("."):
            run = getattr(run, part)
        tensors = [torch.tensor(v) for v in values]
        return lambda: run(*tensors)

    return Pair(lambda: mine(*values), theirs)


def call(ours: Callable[[np.ndarray], Any], theirs: Callable[[Any, Any], Any] | None = None) -> Pair:
    x = normal(np.random.default_rng(1), *SHAPE)

    def prepared(torch: Any) -> Any:
        tx = torch.tensor(x)
        return lambda: theirs(torch, tx)  # type: ignore[misc]

    return Pair(lambda: ours(x), None if theirs is None else prepared)


def below(library: Any, x: Any) -> Any:
    """The same call of both libraries."""
    return library.threshold(x, 0.1, 0.5)


def prelu(stateless: bool) -> Pair:
    slope = np.full(SHAPE[1], 0.2, np.float32)
    mine = fl.PReLU(SHAPE[1])
    mine.load_state_dict({"weight": slope})
    return call(
        (lambda x: fl.functional.prelu(x, slope)) if stateless else mine,
        lambda torch, x: torch.nn.functional.prelu(x, torch.from_numpy(slope)),
    )


ROWS = [
    *(Row((name,), " ".join(map(str, (*args, "256x1024"))), partial(layer, name, args)) for name, args in LAYERS),
    *(Row((name,), "256x1024", partial(function, name, other, n)) for name, other, n in FUNCTIONS),
    Row(("clip",), "256x1024", partial(call, lambda x: fl.functional.clip(x, -1, 1), lambda t, x: t.clamp(x, -1, 1))),
    Row(("softmax",), "256x1024", partial(call, lambda x: fl.functional.softmax(x, -1), lambda t, x: t.softmax(x, -1))),
    Row(
        ("log_softmax",), "256x1024", partial(call, lambda x: fl.functional.log_softmax(x, -1), lambda t, x: t.log_softmax(x, -1))
    ),
    Row(("PReLU",), "256x1024", partial(prelu, False)),
    Row(("prelu",), "256x1024", partial(prelu, True)),
    Row(("threshold",), "256x1024", partial(call, partial(below, fl.functional), lambda t, x: below(t, x))),
    Row(("softmin",), "256x1024", partial(call, fl.functional.softmin, lambda t, x: t.nn.functional.softmin(x, -1))),
    Row(("QuickGELU",), "256x1024", partial(call, fl.QuickGELU(), lambda t, x: x * t.sigmoid(1.702 * x))),
    Row(("quick_gelu",), "256x1024", partial(call, fl.functional.quick_gelu, lambda t, x: x * t.sigmoid(1.702 * x))),
    Row(("SwiGLU",), "256x1024", partial(call, fl.SwiGLU())),
    Row(("swiglu",), "256x1024", partial(call, fl.functional.swiglu)),
]
