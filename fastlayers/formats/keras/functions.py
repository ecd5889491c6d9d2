"""TensorFlow's functions in models of Keras 2: layers of the classes TFOpLambda and SlicingOpLambda, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import UnsupportedError
from .activations import FUNCTIONS
from .build import Build, Refused, Tensor
from .layer import Layer, layer
from .operation import OPERATIONS
from .ops import called, naturally, words

__all__: list[str] = []

# TensorFlow's name: the operation of keras.ops, and the words of its arguments that are spelled otherwise there.
_SAME: dict[str, tuple[str, dict[str, str]]] = {}


def _two(*names: str, to: str) -> None:
    _SAME.update({name: (to, {"x": "x1", "y": "x2", "a": "x1", "b": "x2"}) for name in names})


for _word, _to in {
    "add": "Add", "subtract": "Subtract", "multiply": "Multiply", "maximum": "Maximum", "minimum": "Minimum", "pow": "Power",
    "floordiv": "FloorDivide", "truediv": "Divide", "divide": "Divide", "greater": "Greater", "greater_equal": "GreaterEqual",
    "less": "Less", "less_equal": "LessEqual", "equal": "Equal", "not_equal": "NotEqual", "logical_and": "LogicalAnd",
    "logical_or": "LogicalOr", "floormod": "Mod", "divide_no_nan": "DivideNoNan",
}.items():  # fmt: skip
    _two(f"math.{_word}", _word, to=_to)
for _word, _to in {
    "add": "Add", "radd": "Add", "sub": "Subtract", "mul": "Multiply", "rmul": "Multiply", "truediv": "Divide", "pow": "Power",
    "floordiv": "FloorDivide", "gt": "Greater", "ge": "GreaterEqual", "lt": "Less", "le": "LessEqual", "eq": "Equal",
    "ne": "NotEqual", "and": "LogicalAnd", "or": "LogicalOr", "matmul": "Matmul", "mod": "Mod",
}.items():  # fmt: skip
    _two(f"__operators__.{_word}", to=_to)
_two("linalg.matmul", "matmul", to="Matmul")
for _word, _to in {
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "square": "Square", "abs": "Absolute", "negative": "Negative",
    "sin": "Sin", "cos": "Cos", "tan": "Tan", "tanh": "Tanh", "sigmoid": "Sigmoid", "floor": "Floor", "ceil": "Ceil",
    "round": "Round", "sign": "Sign", "erf": "Erf", "reciprocal": "Reciprocal", "log1p": "Log1p", "expm1": "Expm1",
    "is_nan": "Isnan", "logical_not": "LogicalNot", "softplus": "Softplus",
}.items():  # fmt: skip
    for _name in (f"math.{_word}", _word):
        _SAME[_name] = (_to, {})
_SAME["__operators__.neg"] = ("Negative", {})
for _word in ("relu", "relu6", "selu", "elu", "softplus", "softsign", "tanh", "sigmoid"):
    _SAME[f"nn.{_word}"] = ({"relu6": "Relu6", "tanh": "Tanh"}.get(_word, _word.capitalize()), {"features": "x"})
for _name, _to in (("nn.silu", "Silu"), ("nn.swish", "Silu"), ("nn.gelu", "Gelu"), ("nn.leaky_relu", "LeakyRelu")):
    _SAME[_name] = (_to, {"features": "x", "alpha": "negative_slope"})
_SAME["nn.softmax"] = _SAME["math.softmax"] = ("Softmax", {"logits": "x"})
_SAME["nn.log_softmax"] = ("LogSoftmax", {"logits": "x"})
_REDUCED = {"input_tensor": "x"}
for _word in ("mean", "sum", "max", "min", "prod", "any", "all"):
    for _name in (f"math.reduce_{_word}", f"reduce_{_word}"):
        _SAME[_name] = (_word.capitalize(), _REDUCED)
_SAME["math.reduce_logsumexp"] = ("Logsumexp", _REDUCED)
_SAME["math.reduce_variance"], _SAME["math.reduce_std"] = ("Var", _REDUCED), ("Std", _REDUCED)
_SAME["math.argmax"] = _SAME["argmax"] = ("Argmax", {"input": "x"})
_SAME["math.argmin"] = _SAME["argmin"] = ("Argmin", {"input": "x"})
_SAME["math.cumsum"] = _SAME["cumsum"] = ("Cumsum", {})
for _name, _to, _words in (
    ("cast", "Cast", {}), ("expand_dims", "ExpandDims", {"input": "x"}), ("squeeze", "Squeeze", {"input": "x"}),
    ("reshape", "Reshape", {"tensor": "x"}), ("transpose", "Transpose", {"a": "x", "perm": "axes"}),
    ("concat", "Concatenate", {"values": "xs"}), ("stack", "Stack", {"values": "x"}), ("unstack", "Unstack", {"value": "x"}),
    ("tile", "Tile", {"input": "x", "multiples": "repeats"}), ("repeat", "Repeat", {"input": "x"}),
    ("gather", "Take", {"params": "x"}), ("where", "Where", {"x": "x1", "y": "x2"}),
    ("one_hot", "OneHot", {"indices": "x", "depth": "num_classes"}),
    ("clip_by_value", "Clip", {"t": "x", "clip_value_min": "x_min", "clip_value_max": "x_max"}),
    ("zeros_like", "ZerosLike", {"input": "x"}), ("ones_like", "OnesLike", {"input": "x"}),
    ("identity", "Identity", {"input": "x"}),
    ("stop_gradient", "StopGradient", {"input": "x"}), ("einsum", "Einsum", {"equation": "subscripts"}),
    ("pad", "Pad", {"tensor": "x", "paddings": "pad_width"}), ("reverse", "Flip", {"tensor": "x"}),
    ("broadcast_to", "BroadcastTo", {"input": "x"}), ("image.resize", "Resize", {"method": "interpolation"}),
    ("math.l2_normalize", "Normalize", {}), ("nn.l2_normalize", "Normalize", {}),
):  # fmt: skip
    _SAME[_name] = (_to, _words)
# Words that change nothing here, and those that do unless they have these values.
_IGNORED = frozenset({"name", "validate_shape", "dtype_hint"})
_PLAIN: dict[str, Any] = {
    "preserve_aspect_ratio": False, "on_value": 1, "off_value": 0, "batch_dims": 0, "conjugate": False, "exclusive": False,
    "reverse": False, "a_is_sparse": False, "b_is_sparse": False,
}  # fmt: skip


def _name_of(this: Layer) -> str:
    return str(this.config.get("function", "none")).removeprefix("compat.v1.")


def _known(this: Layer) -> tuple[()]:
    name = _name_of(this)
    if this.kind == "TFOpLambda" and name not in _SAME and name not in _OWN:
        raise UnsupportedError(f"TensorFlow's function {name[:80]}")
    return ()


@layer("TFOpLambda", words="function", weights=_known, mask="drop")
def function(this: Layer, b: Build, /, *args: Any, **kwargs: Any) -> Any:
    """A function of TensorFlow."""
    return naturally(b, lambda *a, **kw: _run(_name_of(this), b, *a, **kw), args, kwargs)


def _run(name: str, b: Build, /, *args: Any, **kwargs: Any) -> Any:
    kwargs = {k: v for k, v in kwargs.items() if k not in _IGNORED and v is not None}
    if name in _OWN:
        for word, value in kwargs.items():
            if word not in words(_OWN[name]):
                raise Refused(f"{name} with {word}={value!r:.80}, which is not read")
        return _OWN[name](b, *args, **kwargs)
    to, spelt = _SAME[name]
    given = {spelt.get(k, k): v for k, v in kwargs.items()}
    for word, plain in _PLAIN.items():
        if (value := given.pop(word, plain)) != plain:
            raise Refused(f"{name} with {word}={value!r}")
    for word in ("transpose_a", "transpose_b", "adjoint_a", "adjoint_b"):
        if given.pop(word, False):
            at = 0 if word.endswith("a") else 1
            args = (*args, *([given.pop("x2")] if at == 1 and "x2" in given else []))
            turned = list(args)
            x = turned[at]
            turned[at] = b.transpose(x, *range(x.rank - 2), x.rank - 1, x.rank - 2)
            args = tuple(turned)
    if to == "Concatenate":
        given.setdefault("axis", args[1] if len(args) > 1 else 0)
        args = args[:1]
    if to == "Pad" and str(given.get("mode", "constant")).lower() != given.get("mode", "constant"):
        given["mode"] = str(given["mode"]).lower()
    if to == "LeakyRelu":
        given.setdefault("negative_slope", 0.2)
    if to in ("Argmax", "Argmin"):
        wanted = str(given.pop("output_type", "int64"))
        return b.cast_to(called(to, b, *args, **given), wanted)
    return called(to, b, *args, **given)


def _split(b: Build, value: Tensor, num_or_size_splits: Any, axis: int = 0) -> Any:
    """TensorFlow's split: a number of parts or their sizes."""
    if isinstance(num_or_size_splits, int):
        return OPERATIONS["Split"](b, value, num_or_size_splits, axis=axis)
    ends = [sum(num_or_size_splits[: i + 1]) for i in range(len(num_or_size_splits) - 1)]
    return OPERATIONS["Split"](b, value, ends, axis=axis)


def _add_n(b: Build, inputs: Any) -> Tensor:
    return b.op("Sum", *inputs)


def _squared_difference(b: Build, x: Any, y: Any) -> Tensor:
    difference = b.two("Sub", x, y)
    return b.op("Mul", difference, difference)


def _reversed(name: str) -> Callable[..., Any]:
    return lambda b, x, y: OPERATIONS[name](b, y, x)


_OWN: dict[str, Callable[..., Any]] = {
    "split": _split,
    "math.add_n": _add_n,
    "math.squared_difference": _squared_difference,
    "__operators__.rsub": _reversed("Subtract"),
    "__operators__.rtruediv": _reversed("Divide"),
    "keras.activations.hard_swish": lambda b, x: FUNCTIONS["hard_swish"](b, x),
}


@layer("SlicingOpLambda", words="function", mask="drop")
def slicing(this: Layer, b: Build, x: Tensor, slice_spec: Any = None) -> Tensor:
    """Numpy's indexing."""
    part: Tensor = OPERATIONS["GetItem"](b, x, slice_spec)
    return part
