"""ONNX Runtime's operators on quantized values other than products: each is the float operator between quantized values.

QLinearAdd                 ((a - za) sa + (b - zb) sb) / sc, every step rounded to float32, as floats are added
QLinearMul                 ((a - za) (b - zb)) * (sa sb / sc)
means (pools, ReduceMean)  the exact sum * (sx / (sy n)), of n values
others                     the function of float32
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...kernels.quantized_add import factors, fused
from ...kernels.reference.pooling import sum_pool
from ...kernels.table import REDUCE
from .._base import FLOAT32, OPERATORS, Spec, View, register
from .._layouts import ALIKE, maps
from .._traits import PLAIN, Layout, Sides, Traits
from ..pooling import _place, counted, pooled
from ..shapes import broadcast, same_dtype
from . import lowering as lower
from .parameters import (
    BYTES,
    Arrays,
    applied,
    array_spec,
    dequantized,
    factor,
    float_spec,
    need_integers,
    quantized,
    requantized,
    result_dtype,
    triple,
    whole,
    wrapped,
)

_Zero = np.ndarray | None


def _one(value: np.ndarray | None) -> Any:
    return 0 if value is None else value.reshape(())


def _finished(y: np.ndarray, scale: np.ndarray, zero: _Zero, dtype: np.dtype[Any]) -> Arrays:
    """Floats as quantized values."""
    return (quantized(y.astype(FLOAT32) / scale.astype(FLOAT32).reshape(()), _one(zero), dtype),)


def _floats(x: np.ndarray, scale: np.ndarray, zero: _Zero) -> np.ndarray:
    return dequantized(x, scale.reshape(()), None if zero is None else zero.reshape(()))


# ---- two operands -------------------------------------------------------------------------------------------------------------


def binary_infer(n: View) -> list[Spec]:
    """Inputs: a and b with their scales and zero points, the scale and the zero point of the result."""
    triple(n, 0)
    triple(n, 3)
    same_dtype(n, 0, 3)
    return [Spec(broadcast(n, [n.shape(0), n.shape(3)]), result_dtype(n, 7))]


def add_run(
    n: View, a: np.ndarray, a_scale: np.ndarray, a_zero: _Zero, b: np.ndarray, b_scale: np.ndarray, b_zero: _Zero,
    scale: np.ndarray, zero: _Zero = None,
) -> Arrays:  # fmt: skip
    """The sum."""
    given = [np.asarray(_one(v)) for v in (a_zero, b_zero, zero, a_scale, b_scale, scale)]
    p, q, r = factors((a.dtype, *given))
    return (quantized(fused(a, p, fused(b, q, r)), 0, a.dtype if zero is None else zero.dtype),)


def mul_run(
    n: View, a: np.ndarray, a_scale: np.ndarray, a_zero: _Zero, b: np.ndarray, b_scale: np.ndarray, b_zero: _Zero,
    scale: np.ndarray, zero: _Zero = None,
) -> Arrays:  # fmt: skip
    """The product."""
    total = wrapped(whole(a, a_zero if a_zero is None else _one(a_zero)) * whole(b, b_zero if b_zero is None else _one(b_zero)))
    by = factor(a_scale.reshape(()), b_scale.reshape(()), scale.reshape(()))
    return (requantized(total, by, _one(zero), a.dtype if zero is None else zero.dtype),)


def _pair_sides(n: View) -> Sides | None:
    """Both arrays have as many axes, and neither is constant."""
    a, b = n.shape(0), n.shape(3)
    if a is None or b is None or len(a) != len(b) or n.value(0) is not None or n.value(3) is not None:
        return None
    return Sides(((-1, 0, 3),))


_PAIR = Traits(layout=Layout("tied", _pair_sides, lambda x, out: {}))
register("QLinearAdd", binary_infer, add_run, lambda n, b: lower.binary_lower(n, b, "add"), _PAIR)
register("QLinearMul", binary_infer, mul_run, lambda n, b: lower.binary_lower(n, b, "multiply"), _PAIR)

# ---- functions of one array ----------------------------------------------------------------------------------------------------


def _unary_view(n: View, op: str, x: Spec, attributes: dict[str, Any] | None = None) -> View:
    return applied(n, op, [float_spec(x)], attributes)


def _function(name: str, op: str, attributes: Callable[[View], dict[str, Any]] = lambda n: {}) -> None:
    """An operator with inputs x, its scale and zero point, scale and zero point of the result."""

    def infer(n: View) -> list[Spec]:
        triple(n, 0)
        made = OPERATORS[op].infer(_unary_view(n, op, n.spec(0), attributes(n)))[0]
        return [Spec(made.shape, result_dtype(n, 4))]

    def run(n: View, x: np.ndarray, x_scale: np.ndarray, x_zero: _Zero, scale: np.ndarray, zero: _Zero = None) -> Arrays:
        floats = _floats(x, x_scale, x_zero)
        function = OPERATORS[op].run
        assert function is not None
        y = function(_unary_view(n, op, Spec(x.shape, x.dtype), attributes(n)), floats)[0]
        return _finished(np.asarray(y), scale, zero, x.dtype if zero is None else zero.dtype)

    def table(n: View, b: Any) -> Any:
        return lower.table_lower(n, b, run, (1, 2, 3, 4))

    def softmax(n: View, b: Any) -> Any:
        given = attributes(n)
        return lower.softmax_lower(n, b, given["axis"], given.get("flatten", False))

    register(name, infer, run, softmax if op == "Softmax" else table, PLAIN if op == "Softmax" else Traits(layout=ALIKE))


def _softmax_attributes(n: View) -> dict[str, Any]:
    old = n.get("opset", 13) < 13
    return {"axis": n.get("axis", 1 if old else -1), **({"flatten": True} if old else {})}


_function("QLinearSigmoid", "Sigmoid")
_function("QLinearLeakyRelu", "LeakyRelu", lambda n: {"alpha": n.get("alpha", 0.01)})
_function("QLinearSoftmax", "Softmax", _softmax_attributes)

# ---- means ----------------------------------------------------------------------------------------------------


def mean_of(total: np.ndarray, count: Any, x_scale: np.ndarray, scale: np.ndarray, zero: _Zero, dtype: np.dtype[Any]) -> Arrays:
    """Exact sums of so many values as quantized means."""
    steps = scale.reshape(()).astype(FLOAT32) * np.asarray(count, FLOAT32)
    return (requantized(wrapped(total), x_scale.reshape(()).astype(FLOAT32) / steps, _one(zero), dtype),)


def _last(n: View) -> bool:
    return bool(n.get("channels_last", 0) or n.get("x_last", False))


def pool_infer(n: View) -> list[Spec]:
    triple(n, 0)
    op = n.op.removeprefix("QLinear")
    given = {**n.node.attributes, "x_last": _last(n)}
    made = OPERATORS[op].infer(applied(n, op, [float_spec(n.spec(0))], given))[0]
    shape = made.shape
    if op == "GlobalAveragePool" and shape is not None and n.get("channels_last", 0):
        shape = (shape[0], *shape[2:], shape[1])
    return [Spec(shape, result_dtype(n, 4))]


def global_run(n: View, x: np.ndarray, x_scale: np.ndarray, x_zero: _Zero, scale: np.ndarray, zero: _Zero = None) -> Arrays:
    """The mean of each map."""
    axes = tuple(range(1, x.ndim - 1) if _last(n) else range(2, x.ndim))
    count = math.prod(x.shape[i] for i in axes)
    total = whole(x, None if x_zero is None else _one(x_zero)).sum(axes, keepdims=True)
    if _last(n) and not n.get("channels_last", 0):
        total = np.moveaxis(total, -1, 1)  # the pass of layouts leaves such results as they were
    return mean_of(total, count, x_scale, scale, zero, x.dtype if zero is None else zero.dtype)


def pool_run(n: View, x: np.ndarray, x_scale: np.ndarray, x_zero: _Zero, scale: np.ndarray, zero: _Zero = None) -> Arrays:
    """The mean of each window; padding stands for 0 where it counts."""
    wide = whole(x, None if x_zero is None else _one(x_zero))
    given = {**n.node.attributes, "x_last": _last(n)}
    view = applied(n, "AveragePool", [array_spec(wide)], given)
    (total,) = pooled(view, wide, sum_pool, 1.0)
    return mean_of(total, counted(view), x_scale, scale, zero, x.dtype if zero is None else zero.dtype)


def reduce_infer(n: View) -> list[Spec]:
    triple(n, 0)
    given = {"keepdims": n.get("keepdims", 1)}
    view = applied(n, "ReduceMean", [float_spec(n.spec(0)), Spec((len(n.get("axes") or ()),), np.dtype(np.int64))], given)
    view.values = [None, np.array(n.get("axes") or (), np.int64)]
    return [Spec(OPERATORS["ReduceMean"].infer(view)[0].shape, result_dtype(n, 4))]


def reduce_run(n: View, x: np.ndarray, x_scale: np.ndarray, x_zero: _Zero, scale: np.ndarray, zero: _Zero = None) -> Arrays:
    """Means over axes; over all if none are named."""
    axes = tuple(int(a) for a in n.get("axes") or range(x.ndim))
    total = whole(x, None if x_zero is None else _one(x_zero)).sum(axes, keepdims=bool(n.get("keepdims", 1)))
    count = math.prod(x.shape[a] for a in axes)
    return mean_of(np.asarray(total), count, x_scale, scale, zero, x.dtype if zero is None else zero.dtype)


def pool_lower(n: View, b: Any) -> Any:
    options, shape = lower.mean_options(n), n.sizes(0)
    if options is None:
        return False
    if n.op == "QLinearAveragePool":
        given = {**n.node.attributes, "x_last": _last(n)}
        _, place = _place(applied(n, "AveragePool", [float_spec(n.spec(0))], given))
        return lower.pool_lower(n, b, place, _last(n), "mean", options)
    return _mean_of_maps(n, b, shape, _last(n), options)


def _mean_of_maps(n: View, b: Any, shape: tuple[int, ...], last: bool, options: tuple[Any, ...]) -> Any:
    """Whole maps; where their place is of size 1, channels may be called last or first."""
    space = shape[1:-1] if last else shape[2:]
    if len(space) > 3:
        return False
    out, x = b.output(0), lower.with_last(b, b.input(0), last)
    to = out.view((shape[0], 1, 1, 1, shape[-1 if last else 1]))
    kernel = x.shape[1:4]
    ones = (1, 1, 1)
    kind = lower.kind_of(out.dtype)
    b.call("qpool", x, to, kernel, ones, ones, (0,) * 6, REDUCE["mean"], kind, options)
    return True


def reduce_lower(n: View, b: Any) -> Any:
    options, shape = lower.mean_options(n), n.sizes(0)
    axes = sorted(int(a) % max(len(shape), 1) for a in n.get("axes") or ())
    if options is None or len(shape) < 3 or axes not in (list(range(2, len(shape))), list(range(1, len(shape) - 1))):
        return False
    return _mean_of_maps(n, b, shape, axes[0] == 1, options)


_POOLED = Layout("tied", lambda n: None if n.get("channels_last", 0) else Sides(((0, -1),)), lambda x, out: {"x_last": x})
register("QLinearGlobalAveragePool", pool_infer, global_run, pool_lower, Traits(layout=maps(*BYTES)))
register("QLinearAveragePool", pool_infer, pool_run, pool_lower, Traits(layout=_POOLED))
register("QLinearReduceMean", reduce_infer, reduce_run, reduce_lower, PLAIN)

# ---- parts of others ----------------------------------------------------------------------------------------------------


def concat_infer(n: View) -> list[Spec]:
    """Inputs: scale and zero point of the result; then x, its scale and its zero point for each part."""
    if len(n.inputs) < 5 or len(n.inputs) % 3 not in (1, 2):
        raise n.fail(f"has {len(n.inputs)} inputs: expected a scale, a zero point and three for each part")
    parts = range(2, len(n.inputs), 3)
    for i in parts:
        triple(n, i)
    need_integers(n, 1)
    made = OPERATORS["Concat"].infer(applied(n, "Concat", [float_spec(n.spec(i)) for i in parts]))[0]
    return [Spec(made.shape, result_dtype(n, 1, 2))]


def concat_run(n: View, scale: np.ndarray, zero: _Zero, *inputs: np.ndarray) -> Arrays:
    """The parts one after the other."""
    given: list[Any] = [*inputs, None]  # the last zero point may be missing
    parts = [given[i : i + 3] for i in range(0, len(inputs), 3)]
    dtype = parts[0][0].dtype if zero is None else zero.dtype
    made = [_finished(_floats(*part), scale, zero, dtype)[0] for part in parts]
    return (np.concatenate(made, n.get("axis", 1)),)


def where_infer(n: View) -> list[Spec]:
    """Inputs: a condition; x and y with their scales and zero points; the scale and the zero point of the result."""
    triple(n, 1)
    triple(n, 4)
    if n.spec(0).dtype.kind != "b":
        raise n.wrong_dtype(f"input 0 has dtype {n.spec(0).dtype}: expected booleans")
    return [Spec(broadcast(n, [n.shape(i) for i in (0, 1, 4)]), result_dtype(n, 8, 1))]


def where_run(n: View, condition: np.ndarray, *inputs: np.ndarray | None) -> Arrays:
    """x where the condition holds, else y."""
    x, x_scale, x_zero, y, y_scale, y_zero, scale, zero = (*inputs, None)[:8]
    assert x is not None
    assert scale is not None
    dtype = x.dtype if zero is None else zero.dtype
    parts: Sequence[Any] = ((x, x_scale, x_zero), (y, y_scale, y_zero))
    made = [_finished(_floats(*part), scale, zero, dtype)[0] for part in parts]
    return (np.where(condition, *made),)


def where_lower(n: View, b: Any) -> Any:
    scale, zero, dtype = n.value(7), n.value(8), result_dtype(n, 8, 1)
    if scale is None:
        return False
    return lower.where_lower(n, b, lambda *part: _finished(_floats(*part), scale, zero, dtype)[0])


register("QLinearWhere", where_infer, where_run, where_lower, PLAIN)


def concat_lower(n: View, b: Any) -> Any:
    scale, zero, dtype = n.value(0), n.value(1), concat_infer(n)[0].dtype
    if scale is None:
        return False
    parts = range(2, len(n.inputs), 3)
    return lower.concat_lower(n, b, parts, lambda *part: _finished(_floats(*part), scale, zero, dtype)[0])


register("QLinearConcat", concat_infer, concat_run, concat_lower, PLAIN)

# ---- a table: what passes make of functions of one quantized array ------------------------------------------------------------


def table_infer(n: View) -> list[Spec]:
    """Inputs: x (int8 or uint8), and a table of 256 bytes, the results for the bytes 0 to 255 (also where x is int8)."""
    need_integers(n, 0, 1)
    table = n.shape(1)
    if table is not None and all(isinstance(d, int) for d in table) and math.prod(table) != 256:  # type: ignore[arg-type]
        raise n.fail(f"the table has shape {table}: expected 256 bytes")
    return [Spec(n.shape(0), n.spec(1).dtype)]


def table_run(n: View, x: np.ndarray, table: np.ndarray) -> Arrays:
    """The table's entry for every byte."""
    return (table.reshape(-1)[np.ascontiguousarray(x).view(np.uint8).reshape(x.shape)],)


def table_lower(n: View, b: Any) -> Any:
    x = b.input(0)
    b.call("lookup", x, b.input(1).view((256,)), b.output(0, over=x))
    return True


register("ByteTable", table_infer, table_run, table_lower, Traits(layout=ALIKE))
