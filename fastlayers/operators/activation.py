"""Elementwise functions of one array: activations, mathematics, rounding, tests for NaN and infinity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.checks import differ
from ..kernels import table
from ..kernels.table import UNARY, Activation
from ..rules.weights import slopes_rule
from ._base import BOOL, FLOAT32, Spec, View, register
from ._traits import EACH, function
from .calls import activation, arithmetic, has, in_place, integer, number, unary
from .calls import function as mapped
from .shapes import like, need_kind, need_number, same_dtype

__all__: list[str] = []

INFINITY = float("inf")
SELU = UNARY["selu"].defaults
Arrays = tuple[np.ndarray, ...]


def _infer(kinds: str, dtype: np.dtype[Any] | None = None) -> Callable[[View], list[Spec]]:
    """The rule of an operator whose result has the input's shape; its dtype is the input's, or `dtype`."""

    def infer(n: View) -> list[Spec]:
        need_kind(n, kinds, 0)
        return [like(n.spec(0), dtype)]

    return infer


def wide(x: np.ndarray) -> np.ndarray:
    """float16 as float32, in which numpy is faster and loses nothing."""
    return x.astype(FLOAT32) if x.dtype == np.float16 else x


# ---- functions that the engine has -----------------------------------------------------------------------------------

# Operator: what makes its function, or None if these attributes give one that the engine does not have.
FUNCTIONS: dict[str, Callable[[View], Activation | None]] = {
    "Relu": lambda n: activation("relu"),
    "LeakyRelu": lambda n: activation("leaky_relu", n.get("alpha", 0.01)),
    "Elu": lambda n: activation("elu", n.get("alpha", 1.0)),
    "Selu": lambda n: activation("selu", n.get("alpha", SELU[0]), n.get("gamma", SELU[1])),
    "Celu": lambda n: activation("celu", n.get("alpha", 1.0)) if n.get("alpha", 1.0) > 0 else None,
    "Sigmoid": lambda n: activation("sigmoid"),
    "HardSigmoid": lambda n: activation("hardsigmoid", n.get("alpha", 0.2), n.get("beta", 0.5)),
    "HardSwish": lambda n: activation("hardswish"),
    "Swish": lambda n: activation("silu") if n.get("alpha", 1.0) == 1.0 else activation("quick_gelu", n.get("alpha", 1.0)),
    "Tanh": lambda n: activation("tanh"),
    "Softplus": lambda n: activation("softplus", 1.0, INFINITY),
    "Softsign": lambda n: activation("softsign"),
    "Mish": lambda n: activation("mish"),
    "Gelu": lambda n: activation("gelu_tanh" if n.get("approximate", "none") == "tanh" else "gelu"),
    "Erf": lambda n: activation("erf"),
    "Exp": lambda n: activation("exp"),
    "Log": lambda n: activation("log"),
    "Sqrt": lambda n: activation("sqrt"),
    "Neg": lambda n: activation("negative"),
    "Abs": lambda n: activation("abs"),
    "Sign": lambda n: activation("sign"),
    "Reciprocal": lambda n: activation("reciprocal"),
    "Floor": lambda n: activation("floor"),
    "Ceil": lambda n: activation("ceil"),
    "Round": lambda n: activation("round"),
    "Sin": lambda n: activation("sin"),
    "Cos": lambda n: activation("cos"),
    "ThresholdedRelu": lambda n: activation("threshold", n.get("alpha", 1.0), 0.0),
    "Shrink": lambda n: activation("shrink", n.get("lambd", 0.5), n.get("bias", 0.0)),
}
# Those whose results are from -1 to 1.
_LIMITED = frozenset(("Sigmoid", "HardSigmoid", "Tanh", "Softsign", "Erf", "Sin", "Cos", "Sign"))
# Those that have a separate reference below.
_OWN = frozenset(("ThresholdedRelu", "Shrink"))


def _celu(n: View, x: np.ndarray) -> np.ndarray:
    alpha = n.get("alpha", 1.0)
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


def _swish(n: View, x: np.ndarray) -> np.ndarray:
    from ..kernels.reference.activation import evaluate

    return np.asarray(x * evaluate(n.get("alpha", 1.0) * x, Activation(UNARY["sigmoid"].code)))


# What the engine cannot do with every attribute, for float64.
OTHERS: dict[str, Callable[[View, np.ndarray], np.ndarray]] = {"Celu": _celu, "Swish": _swish}
# Where numpy's own function is exact, or right for integers too.
NUMPY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "Sqrt": np.sqrt,
    "Neg": np.negative,
    "Abs": np.abs,
    "Sign": np.sign,
    "Reciprocal": lambda x: np.asarray(1 / x, x.dtype),
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Sin": lambda x: np.asarray(np.sin(wide(x)), x.dtype),
    "Cos": lambda x: np.asarray(np.cos(wide(x)), x.dtype),
}
SIGNED, ANY = "fi", "fiu"
KINDS = {"Relu": ANY, "Neg": SIGNED, "Abs": ANY, "Sign": ANY, "Erf": ANY}


def _engine_run(n: View, x: np.ndarray) -> Arrays:
    simple = NUMPY.get(n.op)
    if simple is not None:
        return (simple(x),)
    from ..kernels.reference.activation import evaluate

    function = FUNCTIONS[n.op](n)
    made = evaluate(x, function) if function is not None else OTHERS[n.op](n, x.astype(np.float64))
    return (made.astype(x.dtype),)


# Names in table.FUNCTIONS of those that are there for other dtypes than float32.
_WIDER = {
    **{op: op.lower() for op in ("Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt", "Abs", "Sign", "Reciprocal", "Floor")},
    **{op: op.lower() for op in ("Ceil", "Round", "Sin", "Cos")},
    "Neg": "negative",
}


def _engine_lower(n: View, b: Any) -> Any:
    if n.float32(0) or n.op not in _WIDER:
        return unary(n, b, FUNCTIONS[n.op](n))
    return mapped(n, b, _WIDER[n.op])


def _gelu_infer(n: View) -> list[Spec]:
    if n.get("approximate", "none") not in ("none", "tanh"):
        raise n.fail(f"approximate is {n.get('approximate')!r}: expected 'none' or 'tanh'")
    return _infer("f")(n)


def _celu_infer(n: View) -> list[Spec]:
    if n.get("alpha", 1.0) == 0:
        raise n.fail("alpha is 0: the input is divided by it")
    return _infer("f")(n)


for _name in (name for name in FUNCTIONS if name not in _OWN):
    _rule = {"Gelu": _gelu_infer, "Celu": _celu_infer}.get(_name) or _infer(KINDS.get(_name, "f"))
    register(_name, _rule, _engine_run, _engine_lower, function(FUNCTIONS[_name])._replace(limited=_name in _LIMITED))

# ---- functions of the mathematical library -----------------------------------------------------------------------------------

for _name, _function in {
    "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
    "Sinh": np.sinh, "Cosh": np.cosh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
}.items():  # fmt: skip

    def _trigonometric(n: View, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray] = _function) -> Arrays:
        return (function(wide(x)).astype(x.dtype, copy=False),)

    def _trigonometric_lower(n: View, b: Any) -> Any:
        return mapped(n, b, n.op.lower())

    register(_name, _infer("f"), _trigonometric, _trigonometric_lower, EACH)


def _thresholded_run(n: View, x: np.ndarray) -> Arrays:
    return (np.where(x <= x.dtype.type(n.get("alpha", 1.0)), x.dtype.type(0), x),)  # NaN stays


def _shrink_run(n: View, x: np.ndarray) -> Arrays:
    # Integers are compared and moved as floats, and cut off afterwards.
    bias, lambd = n.get("bias", 0.0), n.get("lambd", 0.5)
    y = x.astype(np.float64) if x.dtype.kind != "f" or x.dtype == np.float64 else x.astype(FLOAT32)
    return (
        np.where(
            y < -lambd, y + y.dtype.type(bias), np.where(y > lambd, y - y.dtype.type(bias), np.where(y == y, y.dtype.type(0), y))
        ).astype(x.dtype),
    )


def _is_inf_run(n: View, x: np.ndarray) -> Arrays:
    found = np.isinf(x)
    if not n.get("detect_negative", 1):
        found &= x > 0
    if not n.get("detect_positive", 1):
        found &= x < 0
    return (found,)


def _is_inf_lower(n: View, b: Any) -> Any:
    signs = bool(n.get("detect_positive", 1)), bool(n.get("detect_negative", 1))
    key = {(True, True): "is_inf", (True, False): "is_positive_inf", (False, True): "is_negative_inf"}.get(signs)
    return False if key is None else mapped(n, b, key)


register("ThresholdedRelu", _infer("f"), _thresholded_run, _engine_lower, function(FUNCTIONS["ThresholdedRelu"]))
register("Shrink", _infer(ANY), _shrink_run, _engine_lower, function(FUNCTIONS["Shrink"]))
register("IsNaN", _infer("f", BOOL), lambda n, x: (np.isnan(x),), lambda n, b: mapped(n, b, "is_nan"), EACH)
register("IsInf", _infer("f", BOOL), _is_inf_run, _is_inf_lower, EACH)
register(
    "Not",
    _infer("b"),
    lambda n, x: (np.logical_not(x),),
    lambda n, b: integer(n, b, "xor", b.constant(np.ones((), np.bool_))),
    EACH,
)
register("BitwiseNot", _infer("iu"), lambda n, x: (np.invert(x),), lambda n, b: mapped(n, b, "not"), EACH)

# ---- with bounds and slopes as inputs --------------------------------------------------------------------------------


def _clip_infer(n: View) -> list[Spec]:
    need_kind(n, ANY, 0)
    need_number(n, 1)
    need_number(n, 2)
    return [n.spec(0)]


def _clip_run(n: View, x: np.ndarray, low: np.ndarray | None = None, high: np.ndarray | None = None) -> Arrays:
    if low is not None:
        x = np.maximum(x, low.astype(x.dtype).reshape(()))
    if high is not None:
        x = np.minimum(x, high.astype(x.dtype).reshape(()))
    return (x,)


def _bounds(n: View) -> Activation | None:
    """The function, where its bounds are known."""
    bounds = [-INFINITY, INFINITY]
    for i in (1, 2):
        if n.has(i):
            value = n.value(i)
            if value is None or value.size != 1:
                return None
            bounds[i - 1] = float(value.reshape(-1)[0])
    return activation("clip", *bounds)


def _clip_lower(n: View, b: Any) -> Any:
    if not n.float32(0) and (n.has(1) or n.has(2)):
        return _clip_whole(n, b)
    function = _bounds(n)
    return _clip_computed(n, b) if function is None else unary(n, b, function)


def _clip_whole(n: View, b: Any) -> Any:
    """Integers and float64; bounds may be there only when the model runs."""
    dtype = n.spec(0).dtype
    if dtype == np.float16 or any(n.has(i) and n.spec(i).dtype != dtype for i in (1, 2)):
        return False
    # CUDA has its own kernel for the integers that networks compute shapes with.
    kernel, codes = ("integer", "INTEGER") if dtype.name in ("int32", "int64") else ("arithmetic", "ARITHMETIC")
    x, out = b.input(0), b.output(0)
    for i, key in ((1, "maximum"), (2, "minimum")):
        if n.has(i):
            b.call(kernel, x, b.input(i).view(()), out, number(codes, key), table.KINDS[dtype.name])
            x = out
    return True


def _clip_computed(n: View, b: Any) -> Any:
    """Bounds that are there only when the model runs."""
    if not n.float32():
        return False
    x, out = b.input(0), b.output(0)
    for i, key in ((1, "maximum"), (2, "minimum")):
        if n.has(i):
            b.call("binary", x, b.input(i).view(()), out, number("BINARY", key), activation("identity"))
            x = out
    return True


def _prelu_infer(n: View) -> list[Spec]:
    need_kind(n, ANY)
    same_dtype(n)
    x, slope = n.shape(0), n.shape(1)
    if x is None or slope is None:
        return [n.spec(0)]
    many, lead = [i for i, size in enumerate(slope) if size != 1], len(x) - len(slope)
    if lead >= 0 and len(many) == 1:  # as functions have them, one a channel
        slopes_rule(n.where, x, slope[many[0]], x[lead + many[0]])
    elif lead < 0 or any(differ(slope[i], x[lead + i]) for i in many):
        raise n.fail(f"weight has shape {slope}, x {x}: expected one that broadcasts to x")
    return [n.spec(0)]


def _prelu_run(n: View, x: np.ndarray, slope: np.ndarray) -> Arrays:
    y = wide(x)
    return (np.where(x < 0, slope * y, y).astype(x.dtype, copy=False),)


def _prelu_lower(n: View, b: Any) -> Any:
    """Slopes along one axis, or a single one, have a kernel; others broadcast."""
    if not n.float32():
        return arithmetic(n, b, "prelu")
    shape, slope, code = n.sizes(0), n.sizes(1), number("BINARY", "prelu")
    wide_axes = [i for i, size in enumerate(slope) if size != 1]
    if len(wide_axes) > 1 and (code is None or not has("binary")):
        return False
    x, s = b.input(0), b.input(1)
    if len(wide_axes) > 1:
        return b.call("binary", x, s, b.output(0, over=in_place(b, shape, x, s)), code, activation("identity"))
    axis = len(shape) - len(slope) + wide_axes[0] if wide_axes else len(shape)
    count = shape[axis] if wide_axes else 1
    size, inner = int(np.prod(shape, dtype=np.int64)), int(np.prod(shape[axis + 1 :], dtype=np.int64))
    split: Sequence[int] = (size // (count * inner) if size else 0, count, inner) if wide_axes else (1, 1, size)
    out = b.output(0, over=in_place(b, shape, x, s))
    return b.call("prelu", x.view(split), s.view((count,)), out.view(split))


register("Clip", _clip_infer, _clip_run, _clip_lower, function(_bounds))
register("PRelu", _prelu_infer, _prelu_run, _prelu_lower, EACH)
