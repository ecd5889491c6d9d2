"""Elementwise arithmetic of two or more arrays that broadcast to one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.table import ARITHMETIC, KINDS, Activation
from ._base import FLOAT32, Spec, View, register
from ._traits import EACH, Quantized, function, one_input
from .activation import wide
from .calls import activation, arithmetic, float32_constant, has, in_place, integer, number
from .fused import finished, fused
from .shapes import broadcast, need_kind, same_dtype

__all__ = ["binary_lower"]

Arrays = tuple[np.ndarray, ...]
NUMBERS = "fiu"


def _infer(n: View) -> list[Spec]:
    if not n.inputs:
        raise n.fail("has no inputs: expected at least one")
    need_kind(n, NUMBERS)
    return [Spec(broadcast(n, [n.shape(i) for i in range(len(n.inputs))]), same_dtype(n))]


def _pair_infer(n: View) -> list[Spec]:
    if len(n.inputs) != 2:
        raise n.fail(f"has {len(n.inputs)} inputs: expected 2")
    return _infer(n)


# ---- two arrays ------------------------------------------------------------------------------------------------------


def binary_lower(n: View, b: Any, table: str, key: str, kernel: str = "binary") -> Any:
    """Two float32 arrays through `binary` or `compare`, with the number that a table gives the operation."""
    code = number(table, key)
    if code is None or not has(kernel) or not n.float32():
        return integer(n, b, key)
    x, y = b.input(0), b.input(1)
    if kernel == "compare":
        return b.call("compare", x, y, b.output(0), code)
    return b.call("binary", x, y, b.output(0, over=_over(n, b, x, y)), code, fused(n))


def _over(n: View, b: Any, *operands: Any) -> Any:
    shape = broadcast(n, [ref.shape for ref in operands])
    return in_place(b, shape, *operands)  # type: ignore[arg-type]


def truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b; integers are cut off toward zero, as in C."""
    if a.dtype.kind == "f":
        return np.asarray(np.divide(a, b))
    return np.asarray((a - np.fmod(a, b)) // b)


def _add(n: View, a: np.ndarray, b: np.ndarray) -> Arrays:
    return (finished(n, np.add(a, b)),)


def _sub(n: View, a: np.ndarray, b: np.ndarray) -> Arrays:
    return (finished(n, np.subtract(a, b)),)


def _mul(n: View, a: np.ndarray, b: np.ndarray) -> Arrays:
    return (finished(n, np.multiply(a, b)),)


def _div(n: View, a: np.ndarray, b: np.ndarray) -> Arrays:
    return (finished(n, truncated(a, b)),)


def _mod(n: View, a: np.ndarray, b: np.ndarray) -> Arrays:
    return (np.fmod(a, b) if n.get("fmod", 0) else np.mod(a, b),)


Line = tuple[np.ndarray, np.ndarray]


def _line(factor: Callable[[np.ndarray], Any], summand: Callable[[np.ndarray], Any], commutes: bool) -> Any:
    """Returns the trait `line`, with a constant as either input if the operation commutes, else as the second only."""

    def line(values: np.ndarray, at: int) -> Line | None:
        whole = np.ones_like(values)
        with np.errstate(all="ignore"):
            return (whole * factor(values), whole * summand(values)) if at or commutes else None

    return line


_ONE = EACH._replace(epilogue=("activation",))
_TRAITS = {
    "Add": _ONE._replace(line=_line(lambda c: 1, lambda c: c, True), quantized=Quantized("QLinearAdd", "pair")),
    "Sub": _ONE._replace(line=_line(lambda c: 1, lambda c: -c, False)),
    "Mul": _ONE._replace(line=_line(lambda c: c, lambda c: 0, True), quantized=Quantized("QLinearMul", "pair")),
    "Div": _ONE._replace(line=_line(lambda c: 1 / c, lambda c: 0, False)),
    "Mod": EACH,
}
for _name, _run, _key in (("Add", _add, "add"), ("Sub", _sub, "subtract"), ("Mul", _mul, "multiply"), ("Div", _div, "divide")):

    def _two(n: View, b: Any, key: str = _key) -> Any:
        return binary_lower(n, b, "BINARY", key)

    register(_name, _pair_infer, _run, _two, _TRAITS[_name])


def _mod_lower(n: View, b: Any) -> Any:
    return arithmetic(n, b, "fmod" if n.get("fmod", 0) else "mod")


register("Mod", _pair_infer, _mod, _mod_lower, _TRAITS["Mod"])


# ---- powers: the exponent may be of another dtype --------------------------------------------------------------------


def _pow_infer(n: View) -> list[Spec]:
    need_kind(n, NUMBERS)
    return [Spec(broadcast(n, [n.shape(0), n.shape(1)]), n.spec(0).dtype)]


def _pow_run(n: View, x: np.ndarray, y: np.ndarray) -> Arrays:
    if x.dtype.kind == "f":
        # For a single exponent of 0.5 numpy computes a square root, which differs from the power at -infinity.
        exponents = np.array(np.broadcast_to(y.astype(np.float64), np.broadcast_shapes(x.shape, y.shape)))
        return (np.asarray(np.power(x.astype(np.float64), exponents), x.dtype),)
    if y.dtype.kind == "f":
        return (np.power(x.astype(np.float64), y).astype(x.dtype),)
    # Whole powers wrap around; those below 0 are cut off, element by element.
    whole = (
        np.power(x.astype(np.int64), np.maximum(y, 0).astype(np.int64))
        if x.dtype != np.uint64
        else np.power(x, np.maximum(y, 0).astype(x.dtype))
    )
    below = np.power(x.astype(np.float64), np.minimum(y, 0).astype(np.float64))
    return (np.where(y < 0, below.astype(x.dtype), whole.astype(x.dtype)),)


def _power(n: View) -> Activation | None:
    """The function that a known exponent of 1 or 2 makes, where it does not change the shape."""
    exponent, shape = n.value(1), n.shape(0)
    if exponent is None or exponent.size != 1 or exponent.ndim > (0 if shape is None else len(shape)):
        return None
    name = {1.0: "identity", 2.0: "square"}.get(float(exponent.reshape(())))
    return None if name is None else activation(name)


def _pow_lower(n: View, b: Any) -> Any:
    exponent, code = n.value(1), number("BINARY", "power")
    if not n.float32(0) or (exponent is None and not n.float32(1)):
        return _pow_wide(n, b)
    x, simple = b.input(0), _power(n)
    if simple == activation("identity"):
        return b.alias(0, x)
    if simple is not None:
        return b.call("unary", x, b.output(0, over=x), simple)
    if code is None or not has("binary"):
        return False
    y = b.input(1) if exponent is None or exponent.dtype == FLOAT32 else b.constant(exponent.astype(FLOAT32))
    return b.call("binary", x, y, b.output(0, over=_over(n, b, x, y)), code, activation("identity"))


def _pow_wide(n: View, b: Any) -> Any:
    """Computes powers of other dtypes in one that holds both: float64 if either is a float, else int64, whose lower bits are
    any integer's."""
    dtypes = n.spec(0).dtype, n.spec(1).dtype
    kinds = {dtype.kind for dtype in dtypes}
    if any(dtype.name not in KINDS or dtype.kind == "b" for dtype in dtypes) or np.dtype(np.float16) in dtypes:
        return False
    wide = dtypes[0] if dtypes[0] == dtypes[1] and "f" not in kinds else np.dtype(np.float64 if "f" in kinds else np.int64)
    if wide.kind == "i" and np.uint64 in dtypes:
        return False
    out = b.output(0)
    operands = []
    for i, dtype in enumerate(dtypes):
        ref = b.input(i)
        if dtype != wide:
            given, ref = ref, b.temp(ref.shape, wide)
            b.call("cast", given, ref, KINDS[dtype.name], KINDS[wide.name])
        operands.append(ref)
    made = out if out.dtype == wide else b.temp(out.shape, wide)
    b.call("arithmetic", *operands, made, ARITHMETIC["power"], KINDS[wide.name])
    if made is not out:
        b.call("cast", made, out, KINDS[wide.name], KINDS[out.dtype.name])
    return True


register("Pow", _pow_infer, _pow_run, _pow_lower, function(_power))

# ---- any number of arrays --------------------------------------------------------------------------------------------


def _fold(function: Callable[..., Any]) -> Callable[..., Arrays]:
    def run(n: View, *arrays: np.ndarray) -> Arrays:
        result = arrays[0]
        for array in arrays[1:]:
            result = function(result, array)
        return (result,)

    return run


def _sum_run(n: View, *arrays: np.ndarray) -> Arrays:
    total = wide(arrays[0])
    for array in arrays[1:]:
        total = np.add(total, wide(array))
    if n.op == "Mean":
        total = total / total.dtype.type(len(arrays))
    return (np.asarray(total, arrays[0].dtype),)


def _many_lower(n: View, b: Any) -> Any:
    key = {"Sum": "add", "Mean": "add", "Max": "maximum", "Min": "minimum"}[n.op]
    code, divide, count = number("BINARY", key), number("BINARY", "divide"), len(n.inputs)
    if code is None or divide is None or not has("binary") or not n.float32():
        return _chained(n, b, key)
    refs = [b.input(i) for i in range(count)]
    if count == 1:
        return b.alias(0, refs[0])
    shape = broadcast(n, [n.shape(i) for i in range(count)])
    out = b.output(0, over=in_place(b, shape, *refs))  # type: ignore[arg-type]
    total = refs[0]
    for i in range(1, count):
        both = broadcast(n, [total.shape, refs[i].shape])
        last = total if total is out else out if both == shape else b.temp(both)
        b.call("binary", total, refs[i], last, code, activation("identity"))
        total = last
    if n.op == "Mean":
        b.call("binary", total, float32_constant(b, count), out, divide, activation("identity"))
    return None


def _chained(n: View, b: Any, key: str) -> Any:
    """Other dtypes than float32, an input after the other."""
    dtype, count = n.spec(0).dtype, len(n.inputs)
    if count == 2 and n.op != "Mean":
        return integer(n, b, key)
    if dtype == np.float16 or dtype.kind == "b" or (n.op == "Mean" and dtype.kind != "f"):
        return False
    refs = [b.input(i) for i in range(count)]
    if count == 1:
        return b.alias(0, refs[0])
    shape, out, source = broadcast(n, [n.shape(i) for i in range(count)]), b.output(0), KINDS[dtype.name]
    total = refs[0]
    for ref in refs[1:]:
        both = broadcast(n, [total.shape, ref.shape])
        last = total if total is out else out if both == shape else b.temp(both, dtype)
        b.call("arithmetic", total, ref, last, ARITHMETIC[key], source)
        total = last
    if n.op == "Mean":
        b.call("arithmetic", total, b.constant(np.array(count, dtype)), out, ARITHMETIC["divide"], source)
    return None


_MANY = EACH._replace(nothing=one_input)
register("Sum", _infer, _sum_run, _many_lower, _MANY)
register("Mean", _infer, _sum_run, _many_lower, _MANY)
register("Max", _infer, _fold(np.maximum), _many_lower, _MANY)
register("Min", _infer, _fold(np.minimum), _many_lower, _MANY)
