"""Rules of mathematics: elementwise functions, comparisons, choices, reductions, positions of extremes, changes of dtype."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .call import Call

__all__ = ["RULES"]

Rule = Callable[[Call], str | tuple[str, ...]]

# Operators that differ in their names alone.
_SAME = {
    "ABS": "Abs", "ADD": "Add", "ADD_N": "Sum", "BITWISE_XOR": "BitwiseXor", "CEIL": "Ceil", "COS": "Cos", "DIV": "Div",
    "ELU": "Elu", "EQUAL": "Equal", "EXP": "Exp", "FLOOR": "Floor", "GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual",
    "HARD_SWISH": "HardSwish", "LESS": "Less", "LESS_EQUAL": "LessOrEqual", "LOG": "Log", "LOGICAL_AND": "And",
    "LOGICAL_NOT": "Not", "LOGICAL_OR": "Or", "LOGISTIC": "Sigmoid", "MAXIMUM": "Max", "MINIMUM": "Min", "MUL": "Mul",
    "NEG": "Neg", "POW": "Pow",
    "PRELU": "PRelu", "RELU": "Relu", "ROUND": "Round", "SELECT_V2": "Where", "SIGN": "Sign", "SIN": "Sin", "SQRT": "Sqrt",
    "SUB": "Sub", "TANH": "Tanh",
}  # fmt: skip
_REDUCTIONS = {"MEAN": "Mean", "SUM": "Sum", "REDUCE_MAX": "Max", "REDUCE_MIN": "Min", "REDUCE_PROD": "Prod"}
_BOUNDS = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


_TWO = frozenset(
    {"ADD", "BITWISE_XOR", "DIV", "EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR",
     "MAXIMUM", "MINIMUM", "MUL", "POW", "PRELU", "SUB"}
)  # fmt: skip


def _plain(op: str) -> Rule:
    def rule(c: Call) -> str:
        count = {"ADD_N": len(c.inputs), "SELECT_V2": 3}.get(c.op) or 1 + (c.op in _TWO)
        return c.activated(c.e.node(op, *(c.x(i) for i in range(count))))

    return rule


def _clip(c: Call) -> str:
    low, high = _BOUNDS[c.op]
    return c.e.node("Clip", c.x(0), c.scalar(low, c.x(0)), c.scalar(high, c.x(0)))


def _square(c: Call) -> str:
    x = c.x(0)
    if c.op == "SQUARED_DIFFERENCE":
        x = c.e.node("Sub", x, c.x(1))
    return c.e.node("Mul", x, x)


def _floor_div(c: Call) -> str:
    """Rounded down; the difference to a multiple is exact in integers."""
    x, y = c.x(0), c.x(1)
    if c.e.dtype(x).kind == "f":
        return c.e.node("Floor", c.e.node("Div", x, y))
    return c.e.node("Div", c.e.node("Sub", x, c.e.node("Mod", x, y)), y)


def _select(c: Call) -> str:
    """A vector of conditions chooses whole slices along the first axis."""
    condition, rank = c.x(0), c.e.rank(c.x(1))
    if c.e.rank(condition) == 1 and rank is not None and rank > 1:
        condition = c.e.node("Unsqueeze", condition, c.e.ints(range(1, rank)))
    return c.e.node("Where", condition, c.x(1), c.x(2))


def _axes(c: Call) -> str:
    """The axes of a reduction, each once: a file may name one twice."""
    if c.constant(1) is None:
        return c.x(1)
    rank = c.e.rank(c.x(0))
    axes = c.ints(1, "axes")
    if rank is not None:
        axes = sorted({c.axis(a, rank) for a in axes})
    return c.e.ints(axes)


def _reduce(c: Call) -> str:
    """No axes mean that nothing is reduced."""
    return c.e.node(
        f"Reduce{_REDUCTIONS[c.op]}", c.x(0), _axes(c), keepdims=int(bool(c.options["keep_dims"])), noop_with_empty_axes=1
    )


def _reduce_bool(op: str) -> Rule:
    def rule(c: Call) -> str:
        numbers = c.cast(c.x(0), np.dtype(np.int32))
        found = c.e.node(op, numbers, _axes(c), keepdims=int(bool(c.options["keep_dims"])), noop_with_empty_axes=1)
        return c.cast(found, np.dtype(np.bool_))

    return rule


def _arg(op: str) -> Rule:
    return lambda c: c.cast(c.e.node(op, c.x(0), axis=c.number(1, "the axis"), keepdims=0), c.dtype())


def _cumsum(c: Call) -> str:
    return c.e.node("CumSum", c.x(0), c.x(1), exclusive=int(c.options["exclusive"]), reverse=int(c.options["reverse"]))


def _top_k(c: Call) -> tuple[str, ...]:
    values, indices = c.e.many("TopK", (c.x(0), c.e.node("Reshape", c.x(1), c.e.ints([1]))), ("", ""), {"axis": -1})
    return values, c.cast(indices, c.dtype(1)) if len(c.outputs) > 1 else indices


RULES: dict[str, Rule] = {
    **{name: _plain(op) for name, op in _SAME.items()},
    **dict.fromkeys(_BOUNDS, _clip),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "ARG_MAX": _arg("ArgMax"),
    "ARG_MIN": _arg("ArgMin"),
    "CAST": lambda c: c.cast(c.x(0), c.dtype()),
    "CUMSUM": _cumsum,
    "FLOOR_DIV": _floor_div,
    "FLOOR_MOD": lambda c: c.e.node("Mod", c.x(0), c.x(1)),
    "GELU": lambda c: c.e.node("Gelu", c.x(0), approximate="tanh" if c.options["approximate"] else "none"),
    "LEAKY_RELU": lambda c: c.e.node("LeakyRelu", c.x(0), alpha=c.options["alpha"]),
    "NOT_EQUAL": lambda c: c.e.node("Not", c.e.node("Equal", c.x(0), c.x(1))),
    "REDUCE_ALL": _reduce_bool("ReduceMin"),
    "REDUCE_ANY": _reduce_bool("ReduceMax"),
    "RIGHT_SHIFT": lambda c: c.e.node("BitShift", c.x(0), c.x(1), direction="RIGHT"),
    "RSQRT": lambda c: c.e.node("Reciprocal", c.e.node("Sqrt", c.x(0))),
    "SELECT": _select,
    "SQUARE": _square,
    "SQUARED_DIFFERENCE": _square,
    "TOPK_V2": _top_k,
}
