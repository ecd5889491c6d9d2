"""Loads and stores as LLVM code: of four floats at once, and of one, where Numba asks whether the index is negative."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.cuda.extending import intrinsic

__all__ = ["load1", "load4", "store1", "store4"]

_FOUR = ir.VectorType(ir.FloatType(), 4)
_LANE = ir.IntType(32)


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _FOUR.as_pointer(data.type.addrspace))


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def load4(typingctx: Any, a: Any, i: Any) -> Any:
    """a[i], .. a[i + 3] in one transaction; i is divisible by 4."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_place(context, builder, signature.args[0], *arguments))
        loaded.align = 16
        return cgutils.pack_array(builder, [builder.extract_element(loaded, _LANE(k)) for k in range(4)])

    return types.UniTuple(types.float32, 4)(a, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def store4(typingctx: Any, a: Any, i: Any, v: Any, w: Any, x: Any, y: Any) -> Any:
    """a[i], .. a[i + 3] = v, w, x, y in one transaction; i is divisible by 4."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector: Any = ir.Constant(_FOUR, ir.Undefined)
        for k in range(4):
            vector = builder.insert_element(vector, arguments[2 + k], _LANE(k))
        store = builder.store(vector, _place(context, builder, signature.args[0], *arguments[:2]))
        store.align = 16
        return context.get_dummy_value()

    four = (types.float32,) * 4
    return types.void(a, types.int64, *four), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def load1(typingctx: Any, a: Any, i: Any) -> Any:
    """a[i]; i is not negative."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(
            builder.gep(context.make_array(signature.args[0])(context, builder, arguments[0]).data, [arguments[1]])
        )

    return a.dtype(a, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def store1(typingctx: Any, a: Any, i: Any, v: Any) -> Any:
    """a[i] = v; i is not negative."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store(arguments[2], builder.gep(data, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(a, types.int64, a.dtype), generate
