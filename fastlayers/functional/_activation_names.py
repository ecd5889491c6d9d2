"""The one place that reads what `activation=` may be: a name, a name with parameters, or an activation layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from .._arguments import shown
from ..errors import ArgumentError, DTypeError, UnsupportedError
from ..ir.checks import number, single
from ..kernels.table import UNARY, Activation

__all__ = ["IDENTITY", "Spec", "above_zero", "normal_activation", "not_zero", "resolve", "specify"]

IDENTITY = Activation(0)

# A name of table.UNARY, alone if all parameters have their defaults, else with all of them.
Spec = str | tuple[str, dict[str, float]] | None


def above_zero(op: str, name: str, value: Any) -> float:
    """A number above 0."""
    found = number(op, name, value)
    if not found > 0:
        raise ArgumentError(f"{op}: {name} is {found}: expected a number above 0")
    return found


def not_zero(op: str, name: str, value: Any) -> float:
    """A number that something is divided by."""
    found = number(op, name, value)
    if found == 0:
        raise ArgumentError(f"{op}: {name} is 0: expected another number, the result is divided by it")
    return found


# Parameters that are not any number: NaN is no bound, infinity no factor of 0.
_READ: dict[tuple[str, str], Callable[[str, str, Any], float]] = {
    ("celu", "alpha"): above_zero,
    ("clip", "max"): partial(single, infinite=True),
    ("clip", "min"): partial(single, infinite=True),
    ("elu", "alpha"): single,
    ("softplus", "beta"): not_zero,
}

# Names that were asked for: each is one of a few.
_NAMED: dict[str, Activation] = {}

_ALIASES: dict[str, tuple[str, dict[str, float]]] = {
    "linear": ("identity", {}),
    "relu6": ("clip", {"min": 0.0, "max": 6.0}),
    "hardtanh": ("clip", {"min": -1.0, "max": 1.0}),
    "swish": ("silu", {}),
}


def resolve(op: str, spec: Any) -> Activation:
    """The kernel's form of an `activation=` argument.

    Args:
        op: the operation, for errors.
        spec: None, a name such as ``"relu"``, a pair such as ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as
            ``fastlayers.ReLU()``.

    Returns:
        Number and parameters; the identity for None.

    Raises:
        UnsupportedError: there is no elementwise function of that name.
        ArgumentError: it has no such parameter.
        DTypeError: `spec` is none of the above.
    """
    if spec is None:
        return IDENTITY
    if isinstance(spec, Activation):
        return spec
    if spec.__class__ is str and (known := _NAMED.get(spec)) is not None:
        return known
    found = _read(op, spec)
    if spec.__class__ is str:
        _NAMED[spec] = found
    return found


def _read(op: str, spec: Any) -> Activation:
    """`resolve` for names, pairs and layers."""
    name, given = _split(op, spec)
    if name == "gelu" and given.get("approximate") in ("none", "tanh"):
        name, given = ("gelu_tanh" if given["approximate"] == "tanh" else "gelu"), {}
    if name in _ALIASES:
        name, fixed = _ALIASES[name]
        given = {**fixed, **given}
    if name not in UNARY:
        names = ", ".join(sorted({*UNARY, *_ALIASES}))
        raise UnsupportedError(
            f"{op}: activation {name!r} is no elementwise function: expected one of {names}, or a layer after this one"
        )
    unary = UNARY[name]
    if unknown := sorted(set(given) - set(unary.parameters)):
        raise ArgumentError(f"{op}: activation {name!r} has no parameter {unknown}: expected some of {list(unary.parameters)}")
    values = [
        _READ.get((name, key), number)(op, f"activation parameter {key!r}", given.get(key, default))
        for key, default in zip(unary.parameters, unary.defaults, strict=True)
    ]
    return Activation(unary.code, *values)


def specify(activation: Activation) -> Spec:
    """An activation as plain data: what `resolve` turns back into it."""
    name, unary = next((n, u) for n, u in UNARY.items() if u.code == activation.code)
    values = (activation.a, activation.b)[: len(unary.parameters)]
    if name == "identity":
        return None
    return name if values == unary.defaults else (name, dict(zip(unary.parameters, values, strict=True)))


def normal_activation(attributes: dict[str, Any]) -> None:
    """Makes the attribute `activation` of a recorded operation plain data."""
    attributes["activation"] = specify(resolve("trace", attributes["activation"]))


def _split(op: str, spec: Any) -> tuple[str, Mapping[str, Any]]:
    """Name and given parameters."""
    made = getattr(spec, "_activation", None)
    if isinstance(made, Activation):
        spec = specify(made) or "identity"
    if isinstance(spec, str):
        return spec, {}
    if isinstance(spec, (tuple, list)) and len(spec) == 2 and isinstance(spec[0], str) and isinstance(spec[1], Mapping):
        return spec[0], spec[1]
    raise DTypeError(
        f"{op}: activation is {shown(spec)} of type {type(spec).__name__}: expected None, a name such as 'relu', a pair such as "
        "('leaky_relu', {'negative_slope': 0.2}) or an elementwise layer such as ReLU()"
    )
