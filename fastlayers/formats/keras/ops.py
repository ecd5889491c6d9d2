"""keras.ops in a model: operations that are no layers. TensorFlow's functions in models of Keras 2 are in `functions`."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from .activations import FUNCTIONS
from .build import BOOL, FLOAT16, FLOAT32, INT32, Build, Refused, Tensor
from .layer import OTHERS, Entry, Layer, mapped, not_read, tensors
from .layers.activation import score_mask
from .layers.attention import causal_mask
from .operation import OPERATIONS, Operation, listed, literal, put

__all__ = ["PLAIN", "called", "naturally", "words"]

# Words that need not be read, where they have one of these values.
PLAIN: dict[str, dict[str, tuple[Any, ...]]] = {
    "ConvertToTensor": {"sparse": (False,), "ragged": (False,)},
    "DotProductAttention": {"flash_attention": (False, True)},  # how it is computed
    "Moments": {"synchronized": (False, True)},  # between devices, in training
    "OneHot": {"sparse": (False,)},
}


def _run(this: Layer, b: Build, /, *args: Any, **kwargs: Any) -> Any:
    # An argument of None was left out, except for an axis, where it means all axes, and for a window, where it means no window.
    null = ("axis", "axes", "window")
    own = {k: v for k, v in this.config.items() if k not in ("name", "trainable") and (v is not None or k in null)}
    if this.kind == "NanToNum" and (first := tensors([list(args), kwargs])) and first[0].dtype == FLOAT16:
        most = float(np.finfo(FLOAT16).max)
        own = {"posinf": most, "neginf": -most, **own}
    return naturally(b, lambda *a, **kw: called(this.kind, b, *a, **kw), args, {**own, **kwargs})


def naturally(b: Build, function: Operation, args: Any, given: dict[str, Any]) -> Any:
    """A function's results, computed in float32: float16 again where all its floats were, and it names no dtype."""
    floats = [t for t in tensors([list(args), given]) if t.dtype.kind == "f"]
    half = bool(floats) and all(t.dtype == FLOAT16 for t in floats) and given.get("dtype") is None
    args, given = mapped((list(args), given), lambda t: b.floats(t) if t.dtype == FLOAT16 else t)
    result = function(*args, **given)
    return mapped(result, lambda t: b.cast(t, FLOAT16) if half and t.dtype == FLOAT32 else t)


def called(kind: str, b: Build, /, *args: Any, **given: Any) -> Any:
    """An operation, whose function must have a parameter for every word that it is given; null is as if left out."""
    operation, kept = OPERATIONS[kind], {}
    read, plain = words(operation), PLAIN.get(kind, {})
    for word, value in given.items():
        if word in read:
            kept[word] = value
        elif value is not None and (word not in plain or value not in plain[word]):
            raise Refused(f"{kind} with {word}={value!r:.80}, which is not read")
    return operation(b, *args, **kept)


def words(operation: Operation) -> set[str]:
    """The words that an operation reads: the names of its parameters, but for those that begin with an underscore."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    _, *parameters = inspect.signature(operation).parameters.values()  # the graph that is being written
    return {p.name for p in parameters if p.kind in named and p.name[0] != "_"} | getattr(operation, "words", set())


def _known(this: Layer) -> tuple[()]:
    if this.kind not in OPERATIONS:
        this.context.refuse(not_read("operation", this.kind), "/".join(this.path))
    return ()


OTHERS["operation"] = Entry(_run, _known, lambda this: (), lambda this: (), "drop", frozenset(), frozenset())


def _axes(value: Any) -> list[int] | None:
    return None if value is None else listed(value)


# ---- elementwise -------------------------------------------------------------------------------------------------------------


def _binary(op: str) -> Operation:
    return lambda b, x1, x2: b.two(op, literal(x1), literal(x2))


for _name, _op in {
    "Add": "Add", "Subtract": "Sub", "Multiply": "Mul", "Maximum": "Max", "Minimum": "Min", "Equal": "Equal",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual", "Less": "Less", "LessEqual": "LessOrEqual", "Power": "Pow",
}.items():  # fmt: skip
    OPERATIONS[_name] = _binary(_op)


@put("Divide", "TrueDivide")
def divide(b: Build, x1: Any, x2: Any) -> Tensor:
    """Always in floats."""
    a, c = b.together(literal(x1), literal(x2))
    return b.op("Div", b.floats(a), b.floats(c))


@put("DivideNoNan")
def divide_no_nan(b: Build, x1: Any, x2: Any) -> Tensor:
    """0 where the divisor is 0."""
    a, c = (b.floats(t) for t in b.together(literal(x1), literal(x2)))
    return b.op("Where", b.op("Equal", c, 0.0), 0.0, b.op("Div", a, c))


@put("FloorDivide")
def floor_divide(b: Build, x1: Any, x2: Any) -> Tensor:
    """Rounded down."""
    a, c = b.together(literal(x1), literal(x2))
    return b.cast(b.op("Floor", b.op("Div", b.floats(a), b.floats(c))), a.dtype)


@put("Mod")
def mod(b: Build, x1: Any, x2: Any) -> Tensor:
    """The remainder, of the divisor's sign."""
    a, c = b.together(literal(x1), literal(x2))
    if a.dtype.kind != "f":
        return b.op("Mod", a, c)
    return b.op("Sub", a, b.op("Mul", b.op("Floor", b.op("Div", a, c)), c))


@put("NotEqual")
def not_equal(b: Build, x1: Any, x2: Any) -> Tensor:
    """Elementwise: whether two values differ."""
    return b.op("Not", b.two("Equal", literal(x1), literal(x2)))


def _logical(op: str) -> Operation:
    return lambda b, x1, x2: b.op(op, b.cast(b.operand(x1, BOOL), BOOL), b.cast(b.operand(x2, BOOL), BOOL))


for _name, _op in {"LogicalAnd": "And", "LogicalOr": "Or", "LogicalXor": "Xor"}.items():
    OPERATIONS[_name] = _logical(_op)
OPERATIONS["LogicalNot"] = lambda b, x: b.op("Not", b.cast(x, BOOL))


def _float(op: str) -> Operation:
    return lambda b, x: b.op(op, b.floats(x))


for _name, _op in {
    "Exp": "Exp", "Log": "Log", "Sqrt": "Sqrt", "Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Sinh": "Sinh", "Cosh": "Cosh",
    "Tanh": "Tanh", "Arcsin": "Asin", "Arccos": "Acos", "Arctan": "Atan", "Arcsinh": "Asinh", "Arccosh": "Acosh",
    "Arctanh": "Atanh",
    "Floor": "Floor", "Ceil": "Ceil", "Erf": "Erf", "Isnan": "IsNaN", "Isinf": "IsInf", "Reciprocal": "Reciprocal",
}.items():  # fmt: skip
    OPERATIONS[_name] = _float(_op)
for _name, _op in {"Negative": "Neg", "Absolute": "Abs", "Abs": "Abs", "Sign": "Sign"}.items():
    OPERATIONS[_name] = lambda b, x, _op=_op: b.op(_op, x)
OPERATIONS.update(
    Square=lambda b, x: b.op("Mul", x, x),
    Rsqrt=lambda b, x: b.op("Reciprocal", b.op("Sqrt", b.floats(x))),
    Log1p=lambda b, x: b.op("Log", b.op("Add", b.floats(x), 1.0)),
    Expm1=lambda b, x: b.op("Sub", b.op("Exp", b.floats(x)), 1.0),
    Log2=lambda b, x: b.op("Mul", b.op("Log", b.floats(x)), 1 / float(np.log(2))),
    Log10=lambda b, x: b.op("Mul", b.op("Log", b.floats(x)), 1 / float(np.log(10))),
    Logaddexp=lambda b, x1, x2: b.op(
        "ReduceLogSumExp", b.op("Concat", *(b.unsqueeze(t, 0) for t in _alike(b, x1, x2)), axis=0), b.ints(0), keepdims=0
    ),
)


def _alike(b: Build, x1: Any, x2: Any) -> list[Tensor]:
    """Two tensors broadcast to one shape."""
    a, c = (b.floats(t) for t in b.together(literal(x1), literal(x2)))
    zero = b.op("Mul", b.op("Sub", a, c), 0.0)
    return [b.op("Add", a, zero), b.op("Add", c, zero)]


@put("NanToNum")
def nan_to_num(b: Build, x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Numbers in place of NaN and infinities, of which the largest ones are that there are."""
    if x.dtype.kind != "f":
        return x
    most = float(np.finfo(np.float32).max)
    for sign, number in ((1, most if posinf is None else posinf), (-1, -most if neginf is None else neginf)):
        infinite = b.op("IsInf", x, detect_positive=int(sign > 0), detect_negative=int(sign < 0))
        x = b.op("Where", infinite, b.operand(number, x.dtype), x)
    return b.op("Where", b.op("IsNaN", x), b.operand(nan, x.dtype), x)


@put("Round")
def rounded(b: Build, x: Tensor, decimals: int = 0) -> Tensor:
    """To a number of decimals, halves to even."""
    if not decimals:
        return b.op("Round", b.floats(x))
    return b.op("Div", b.op("Round", b.op("Mul", b.floats(x), float(10.0**decimals))), float(10.0**decimals))


@put("Clip")
def clip(b: Build, x: Tensor, x_min: Any, x_max: Any) -> Tensor:
    """Between two bounds."""
    if isinstance(x_min, (int, float)) and isinstance(x_max, (int, float)) and x.dtype == FLOAT32:
        return b.op("Clip", x, float(x_min), float(x_max))
    return b.two("Min", b.two("Max", x, literal(x_min)), literal(x_max))


@put("Where")
def where(b: Build, condition: Any, x1: Any, x2: Any) -> Tensor:
    """x1 where the condition holds, else x2."""
    return b.op("Where", b.cast(b.operand(literal(condition), BOOL), BOOL), *b.together(literal(x1), literal(x2)))


@put("Select")
def select(b: Build, condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """The choice of the first condition that holds, else the default."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"{len(condlist)} conditions and {len(choicelist)} choices")
    result: Any = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(b, condition, choice, result)
    return result  # type: ignore[no-any-return]


@put("Cast")
def cast(b: Build, x: Any, dtype: Any = "float32") -> Tensor:
    """Another dtype; bfloat16 is float32 with its values, and float64 float32."""
    return b.cast_to(b.operand(x), dtype if isinstance(dtype, str) else str(dtype))


@put("ConvertToTensor")
def convert_to_tensor(b: Build, x: Any, dtype: Any = None) -> Tensor:
    """The tensor, or an array as one."""
    x = b.operand(literal(x))
    return x if dtype is None else cast(b, x, dtype)  # type: ignore[no-any-return]


@put("SaturateCast")
def saturate_cast(b: Build, x: Tensor, dtype: Any) -> Tensor:
    """Another dtype; what it cannot hold becomes the nearest that it can."""
    name = dtype if isinstance(dtype, str) else str(dtype)
    if name == "bool" or x.dtype == BOOL:
        raise Refused("saturate_cast of or to booleans")
    if name in ("float32", "float64", "bfloat16") or x.dtype == np.dtype(name):
        return cast(b, x, name)  # type: ignore[no-any-return]
    info: Any = np.finfo(name) if name == "float16" else np.iinfo(name)
    if x.dtype.kind == "f":
        # The bounds as floats that the integers hold: 2147483648 is none of int32's.
        low, high = np.float32(info.min), np.float32(info.max)
        high = high if int(high) <= int(info.max) else np.nextafter(high, np.float32(0))
        return b.cast(b.op("Clip", x, low.reshape(()), high.reshape(())), name)
    own = np.iinfo(x.dtype)
    low, high = (np.array(min(max(v, own.min), own.max), x.dtype) for v in (int(info.min), int(info.max)))
    return b.cast(b.op("Clip", x, low, high), name)


OPERATIONS.update(dict.fromkeys(("Copy", "Identity"), lambda b, x: x))
OPERATIONS["StopGradient"] = lambda b, variable: variable
# Class names of activations: their functions take what the operations' constructors do.
_ACTIVATIONS = {
    "Relu": "relu", "Relu6": "relu6", "Sigmoid": "sigmoid", "Softplus": "softplus", "Softsign": "softsign", "Silu": "silu",
    "LogSigmoid": "log_sigmoid", "LeakyRelu": "leaky_relu", "HardSigmoid": "hard_sigmoid", "HardSilu": "hard_silu", "Elu": "elu",
    "Selu": "selu", "Gelu": "gelu", "Celu": "celu", "Glu": "glu", "TanhShrink": "tanh_shrink", "HardTanh": "hard_tanh",
    "HardShrink": "hard_shrink", "SoftShrink": "soft_shrink", "Threshold": "threshold", "Softmax": "softmax",
    "LogSoftmax": "log_softmax", "SparsePlus": "sparse_plus", "Sparsemax": "sparsemax", "SparseSigmoid": "sparse_sigmoid",
}  # fmt: skip


def _activation(function: str) -> Operation:
    def run(b: Build, x: Tensor, *args: Any, **given: Any) -> Tensor:
        return FUNCTIONS[function](b, b.floats(x), *args, **given)

    run.words = words(FUNCTIONS[function])  # type: ignore[attr-defined]
    return run


for _name, _function in _ACTIVATIONS.items():
    OPERATIONS[_name] = _activation(_function)


@put("Squareplus")
def squareplus(_: Build, /, x: Tensor, b: float = 4.0) -> Tensor:
    """(x + sqrt(x² + b)) / 2."""
    return FUNCTIONS["squareplus"](_, _.floats(x), b)


# ---- reductions --------------------------------------------------------------------------------------------------------------


def _reduction(op: str, floats: bool) -> Operation:
    def run(b: Build, x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        x = b.operand(x)
        return b.reduce(op, b.floats(x) if floats or x.dtype == BOOL else x, _axes(axis), bool(keepdims))

    return run


def _extreme(op: str) -> Operation:
    def run(b: Build, x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
        found: Tensor = _reduction(op, False)(b, x, axis, keepdims)
        return found if initial is None else b.two(op, found, literal(initial))

    return run


@put("Prod")
def prod(b: Build, x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The product, computed in another dtype if one is named."""
    x = b.operand(x)
    found: Tensor = _reduction("Prod", False)(b, x if dtype is None else cast(b, x, dtype), axis, keepdims)
    return found


for _name, _op, _floats in (
    ("Mean", "Mean", True), ("Sum", "Sum", False), ("Amax", "Max", False), ("Amin", "Min", False),
    ("Logsumexp", "LogSumExp", True),
):  # fmt: skip
    OPERATIONS[_name] = _reduction(_op, _floats)
OPERATIONS.update(Max=_extreme("Max"), Min=_extreme("Min"))


@put("Average")
def average(b: Build, x: Any, weights: Any = None, axis: Any = None) -> Tensor:
    """The mean; of values with weights, the sum of their products by the sum of the weights."""
    x = b.floats(b.operand(x))
    if weights is None:
        return b.reduce("Mean", x, _axes(axis))
    w = b.floats(b.operand(literal(weights)))
    if w.rank != x.rank:  # one for each place of the axis
        if axis is None or len(listed(axis)) != 1 or w.rank != 1:
            raise Refused(f"average along axis {axis!r:.40} with weights of {w.rank} axes, of an array of {x.rank}")
        at = x.axis(listed(axis)[0])
        w = b.unsqueeze(w, *(a for a in range(x.rank) if a != at))
    wide = b.op("Expand", w, b.op("Shape", x)) if w.shape != x.shape else w
    return b.op("Div", b.reduce("Sum", b.op("Mul", x, w), _axes(axis)), b.reduce("Sum", wide, _axes(axis)))


def variance(b: Build, x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of squares around the mean."""
    x = b.floats(x)
    centred = b.op("Sub", x, b.reduce("Mean", x, _axes(axis), True))
    return b.reduce("Mean", b.op("Mul", centred, centred), _axes(axis), bool(keepdims))


OPERATIONS["Var"] = variance
OPERATIONS["Std"] = lambda b, x, axis=None, keepdims=False: b.op("Sqrt", variance(b, x, axis, keepdims))


@put("Moments")
def moments(b: Build, x: Tensor, axes: Any = None, keepdims: bool = False) -> list[Tensor]:
    """Mean and variance."""
    return [b.reduce("Mean", b.floats(x), _axes(axes), bool(keepdims)), variance(b, x, axes, keepdims)]


def _any(op: str) -> Operation:
    def run(b: Build, x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        return b.cast(b.reduce(op, b.cast(b.cast(x, BOOL), INT32), _axes(axis), bool(keepdims)), BOOL)

    return run


OPERATIONS.update(Any=_any("Max"), All=_any("Min"))


def _arg(op: str) -> Operation:
    def run(b: Build, x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        if axis is None:
            x, axis = b.reshape(x, -1), 0
        return b.cast(b.op(op, x, axis=x.axis(axis), keepdims=int(bool(keepdims))), INT32)

    return run


OPERATIONS.update(Argmax=_arg("ArgMax"), Argmin=_arg("ArgMin"))


def _running(op: str) -> Operation:
    def run(b: Build, x: Tensor, axis: Any = None, dtype: Any = None) -> Tensor:
        x = x if dtype is None else cast(b, x, dtype)
        if axis is None:
            x, axis = b.reshape(x, -1), 0
        return b.op(op, x, b.constant(np.array(x.axis(axis), np.int64)))

    return run


OPERATIONS.update(Cumsum=_running("CumSum"), Cumprod=_running("CumProd"))


@put("Norm")
def norm(b: Build, x: Tensor, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The length of vectors."""
    if ord not in (None, 1, 2, "euclidean") or (axis is not None and len(listed(axis)) > 1 and ord is not None):
        raise Refused(f"ord is {ord!r}")
    return b.reduce("L1" if ord == 1 else "L2", b.floats(x), _axes(axis), bool(keepdims))


@put("Normalize")
def normalize(b: Build, x: Tensor, axis: Any = -1, order: Any = 2, epsilon: float = 1e-12) -> Tensor:
    """Vectors of length 1."""
    if order != 2:
        raise Refused(f"order is {order!r}")
    squares = b.reduce("SumSquare", b.floats(x), listed(axis), True)
    return b.op("Div", b.floats(x), b.op("Sqrt", b.op("Max", squares, float(epsilon))))


# ---- products ----------------------------------------------------------------------------------------------------------------


@put("Matmul")
def matmul(b: Build, x1: Any, x2: Any) -> Tensor:
    """Products of matrices."""
    return b.op("MatMul", *(b.floats(t) for t in b.together(x1, x2)))


@put("Dot")
def dot(b: Build, x1: Tensor, x2: Any) -> Tensor:
    """numpy's dot, where it is a product of matrices."""
    x2 = b.operand(x2)
    if x1.rank == 0 or x2.rank == 0:
        return b.two("Mul", x1, x2)
    if x2.rank > 2:
        raise Refused("dot with a second operand of more than 2 axes")
    product: Tensor = matmul(b, x1, x2)
    return product


@put("Einsum")
def einsum(b: Build, *operands: Any, subscripts: Any = None) -> Tensor:
    """An Einstein sum; TensorFlow names the equation first."""
    if subscripts is None:
        subscripts, *rest = operands
        operands = tuple(rest)
    return b.op("Einsum", *(b.floats(t) for t in tensors(operands)), equation=str(subscripts).replace(" ", ""))


@put("DotProductAttention")
def dot_product_attention(
    b: Build, query: Tensor, key: Tensor, value: Tensor, bias: Any = None, mask: Any = None, scale: Any = None,
    is_causal: bool = False,
) -> Tensor:  # fmt: skip
    """Attention of (n, t, heads, size) tensors."""
    q, k, v = b.transpose(query, 0, 2, 1, 3), b.transpose(key, 0, 2, 3, 1), b.transpose(value, 0, 2, 1, 3)
    if q.sizes[1] != v.sizes[1]:
        raise Refused("fewer heads of keys than of queries")
    scores = b.op("Mul", b.op("MatMul", q, k), float(scale) if scale is not None else q.size(3) ** -0.5)
    scores = scores if bias is None else b.op("Add", scores, bias)
    if is_causal:
        scores = b.op("Add", scores, score_mask(b, causal_mask(b, query, key)))
    if mask is not None:
        scores = b.op("Add", scores, score_mask(b, mask))
    return b.transpose(b.op("MatMul", b.op("Softmax", scores, axis=3), v), 0, 2, 1, 3)
