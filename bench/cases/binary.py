"""Arithmetic between tensors of real networks: residuals, gates, masks, normalizations written out, boxes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.table import ARITHMETIC, BINARY, COMPARE, INTEGER, KINDS, UNARY, Activation

from . import Case, normal

Shape = tuple[int, ...]


def _label(name: str, *shapes: Shape) -> str:
    return " ".join([name, *("x".join(map(str, shape)) or "one" for shape in shapes)])


def _together(*shapes: Shape) -> Shape:
    return np.broadcast_shapes(*shapes)


def _binary(name: str, a: Shape, b: Shape, activation: str = "identity", exponent: float | None = None) -> Case:
    out = _together(a, b)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x, y = normal(rng, *a), normal(rng, *b)
        if name == "power":
            x, y = np.abs(x), y if exponent is None else np.full(b, exponent, np.float32)
        if name == "divide":
            y = np.asarray(np.copysign(np.abs(y) + np.float32(0.5), y))
        code = UNARY[activation].code
        return {"a": x, "b": y, "out": np.empty(out, np.float32), "op": BINARY[name], "activation": Activation(code)}

    words = [name] + [activation] * (activation != "identity") + [str(exponent)] * (exponent is not None)
    return Case("binary", _label(" ".join(words), a, b), arguments, moved=4.0 * (math.prod(a) + math.prod(b) + math.prod(out)))


def _compare(name: str, a: Shape, b: Shape) -> Case:
    out = _together(a, b)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {"a": normal(rng, *a), "b": normal(rng, *b), "out": np.empty(out, np.bool_), "op": COMPARE[name]}

    return Case("compare", _label(name, a, b), arguments, moved=4.0 * (math.prod(a) + math.prod(b)) + math.prod(out))


def _where(condition: Shape, a: Shape, b: Shape) -> Case:
    out = _together(condition, a, b)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        holds = rng.integers(0, 2, condition).astype(np.bool_)
        return {"condition": holds, "a": normal(rng, *a), "b": normal(rng, *b), "out": np.empty(out, np.float32)}

    moved = math.prod(condition) + 4.0 * (math.prod(a) + math.prod(b) + math.prod(out))
    return Case("where", _label("", condition, a, b).strip(), arguments, moved=moved)


def _integer(name: str, a: Shape, b: Shape, dtype: str = "int64") -> Case:
    out = _together(a, b)
    kind: Any = np.bool_ if INTEGER[name] >= INTEGER["equal"] else np.dtype(dtype)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x, y = (rng.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype) for shape in (a, b))
        return {"a": x, "b": y, "out": np.empty(out, kind), "op": INTEGER[name], "source": KINDS[dtype]}

    moved = np.dtype(dtype).itemsize * (math.prod(a) + math.prod(b)) + np.dtype(kind).itemsize * math.prod(out)
    return Case("integer", _label(f"{name} {dtype}", a, b), arguments, moved=float(moved))


def _arithmetic(name: str, a: Shape, b: Shape, dtype: str) -> Case:
    out = _together(a, b)
    kind: Any = np.bool_ if ARITHMETIC[name] >= ARITHMETIC["equal"] else np.dtype(dtype)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x, y = (rng.integers(1, 9, shape).astype(dtype) for shape in (a, b))
        return {"a": x, "b": y, "out": np.empty(out, kind), "op": ARITHMETIC[name], "source": KINDS[dtype]}

    moved = np.dtype(dtype).itemsize * (math.prod(a) + math.prod(b)) + np.dtype(kind).itemsize * math.prod(out)
    return Case("arithmetic", _label(f"{name} {dtype}", a, b), arguments, moved=float(moved))


def _choose(condition: Shape, a: Shape, b: Shape, dtype: str) -> Case:
    out = _together(condition, a, b)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        holds = rng.integers(0, 2, condition).astype(np.bool_)
        x, y = (rng.integers(0, 2, shape).astype(dtype) for shape in (a, b))
        return {"condition": holds, "a": x, "b": y, "out": np.empty(out, dtype), "itemsize": np.dtype(dtype).itemsize}

    moved = math.prod(condition) + np.dtype(dtype).itemsize * (math.prod(a) + math.prod(b) + math.prod(out))
    return Case("choose", _label(dtype, condition, a, b), arguments, moved=float(moved))


CASES: tuple[Case, ...] = (
    _arithmetic("add", (128, 768), (768,), "float64"),
    _arithmetic("divide", (1, 8400), (), "int64"),
    _arithmetic("mod", (1, 8400), (), "int64"),
    _arithmetic("equal", (128, 128), (128, 1), "uint8"),
    _choose((1, 1, 128, 128), (1, 12, 128, 128), (), "bool"),
    _binary("add", (1, 64, 56, 56), (1, 64, 56, 56)),
    _binary("add", (1, 64, 56, 56), (1, 64, 56, 56), "relu"),
    _binary("add", (128, 768), (768,)),
    _binary("add", (12, 128, 128), (1, 1, 128)),
    _binary("add", (64, 4, 49, 49), (4, 49, 49)),
    _binary("add", (1, 128, 3072), (3072,), "gelu"),
    _binary("subtract", (128, 768), (128, 1)),
    _binary("multiply", (1, 72, 28, 28), (1, 72, 1, 1)),
    _binary("multiply", (1, 240, 7, 7), (1, 240, 1, 1)),
    _binary("multiply", (1, 784, 72), (1, 1, 72)),
    _binary("multiply", (128, 768), ()),
    _binary("multiply", (), (1000,)),
    _binary("multiply", (8400, 2), (8400, 1)),
    _binary("multiply", (1, 3, 40, 40, 2), (1, 3, 1, 1, 2)),
    _binary("add", (8400, 4), (4,)),
    _binary("add", (3, 5, 7), (3, 1, 7)),
    _binary("divide", (12, 128, 128), ()),
    _binary("divide", (128, 768), (128, 1)),
    _binary("minimum", (64, 1024), ()),
    _binary("maximum", (64, 1024), (64, 1024)),
    _binary("prelu", (1, 64, 56, 56), (64, 1, 1)),
    _binary("squared_difference", (128, 768), (128, 1)),
    _binary("power", (128, 768), (), exponent=2.0),
    _binary("power", (128, 3072), (), exponent=3.0),
    _binary("power", (128, 1), (), exponent=-0.5),
    _binary("power", (64, 256), (256,)),
    _compare("greater_equal", (64, 1024), ()),
    _compare("equal", (12, 128, 128), (128, 128)),
    _where((1, 1, 128, 128), (12, 128, 128), ()),
    _where((64, 1024), (64, 1024), (64, 1024)),
    _where((128, 1), (), (128, 768)),
    _integer("add", (1, 512), (1, 1)),
    _integer("subtract", (512,), ()),
    _integer("multiply", (3, 5, 7), (3, 1, 7), "int32"),
    _integer("minimum", (64, 64), (64, 1)),
    _integer("maximum", (), (1000,), "int32"),
    _integer("and", (1, 1, 128, 128), (4, 1, 1, 128), "bool"),
    _integer("or", (40, 3), (3,), "bool"),
    _integer("xor", (1000,), (), "bool"),
    _integer("equal", (1, 2048, 1), (257,), "int32"),
    _integer("not_equal", (4, 128), (), "int64"),
    _integer("less", (1, 128), (128, 1)),
    _integer("less_equal", (1, 128), (128, 1), "int32"),
    _integer("greater", (8400, 2), (8400, 1)),
    _integer("greater_equal", (2, 100), (2, 100), "int32"),
)
