"""Arithmetic, comparisons and choices with broadcasting: rows of one compiled function, walked over the outer axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..table import BINARY, COMPARE, Activation
from ._math import power
from ._njit import call, emitted, inner, kernel
from ._records import IDENTITY, Act
from ._threads import address, spread
from ._unary import apply, spell
from ._vector import I8, Emit, Integer, V

__all__ = ["MULTIPLY", "PRELU", "binary", "compare", "row", "where"]

MULTIPLY, PRELU = BINARY["multiply"], BINARY["prelu"]
CHUNK = 8192  # values of a row in one task

_FUNCTIONS = {
    "add": lambda e, a, b: a + b,
    "subtract": lambda e, a, b: a - b,
    "multiply": lambda e, a, b: a * b,
    "divide": lambda e, a, b: a / b,
    "power": power,
    "minimum": lambda e, a, b: e.least_nan(a, b),
    "maximum": lambda e, a, b: e.most_nan(a, b),
    "prelu": lambda e, a, b: e.select(a >= 0.0, a, a * b),
    "squared_difference": lambda e, a, b: (a - b) * (a - b),
}


def _minus_infinity_turned(e: Emit, a: V) -> V:
    return e.select(a.equals(float("-inf")), -a, a)


# Powers with one exponent for all, by codes after those of BINARY. The root of -0 is 0, that of -infinity infinity, as in
# C's pow.
_POWERS = {
    1.0: lambda e, a, b: a,
    2.0: lambda e, a, b: a * a,
    3.0: lambda e, a, b: a * a * a,
    0.5: lambda e, a, b: e.root(_minus_infinity_turned(e, a)) + 0.0,
    -0.5: lambda e, a, b: 1.0 / (e.root(_minus_infinity_turned(e, a)) + 0.0),
    -1.0: lambda e, a, b: 1.0 / a,
}
_POWER_CODES = {exponent: len(BINARY) + i for i, exponent in enumerate(_POWERS)}
_COMPARISONS = {
    "equal": lambda a, b: a.equals(b),
    "not_equal": lambda a, b: a.differs(b),
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}
_COMPARE_FIRST = len(BINARY) + len(_POWERS)  # of the comparisons' codes
_WHERE = _COMPARE_FIRST + len(COMPARE)


def _operand(e: Emit, place: V, step: V, element: Any = None) -> tuple[V, V]:
    """An address and a step: a single number of memory is read once, into a vector that is then read at every turn."""
    kind = e.vector(element or e.f(0).kind.element)
    with e.builder.goto_entry_block():
        buffer = e.builder.alloca(kind)
    one = step.equals(0)
    with e.when(one):
        e.builder.store(e.splat(e.load(place, kind.element)).v, buffer)
    return e.select(one, V(e, e.builder.ptrtoint(buffer, place.kind)), place), step


@emitted
def _row(e: Emit, code: V, a: V, b: V, a_step: V, b_step: V, y: V, n: V) -> None:
    (a, a_step), (b, b_step) = _operand(e, a, a_step), _operand(e, b, b_step)

    def case(function: Callable[[V, V], V], compared: bool) -> Callable[[], None]:
        def body(i: V, mask: V | None) -> None:
            p, q = e.load(e.at(a, i * a_step), mask=mask), e.load(e.at(b, i * b_step), mask=mask)
            if compared:
                e.store(y + i, e.convert(function(p, q), I8, "zext"), mask)
            else:
                e.store(e.at(y, i), function(p, q), mask)

        return lambda: e.vectors(n, body)

    cases = {BINARY[name]: case(partial(function, e), False) for name, function in _FUNCTIONS.items()}
    cases |= {_POWER_CODES[exponent]: case(partial(function, e), False) for exponent, function in _POWERS.items()}
    cases |= {_COMPARE_FIRST + COMPARE[name]: case(function, True) for name, function in _COMPARISONS.items()}
    e.switch(code, cases)


@emitted
def _choose(e: Emit, c: V, a: V, b: V, c_step: V, a_step: V, b_step: V, y: V, n: V) -> None:
    (c, c_step), (a, a_step), (b, b_step) = _operand(e, c, c_step, I8), _operand(e, a, a_step), _operand(e, b, b_step)

    def body(i: V, mask: V | None) -> None:
        chosen = e.load(c + i * c_step, e.vector(I8), mask).differs(0)
        p, q = e.load(e.at(a, i * a_step), mask=mask), e.load(e.at(b, i * b_step), mask=mask)
        e.store(e.at(y, i), e.select(chosen, p, q), mask)

    e.vectors(n, body)


@inner
def row(code: int, a: int, b: int, a_step: int, b_step: int, y: int, n: int) -> None:
    """y[i] = f(a[i * a_step], b[i * b_step]) for n values, the steps 0 or 1; y may be an operand."""
    _row(code, a, b, a_step, b_step, y, n)


@inner
def choice(c: int, a: int, b: int, c_step: int, a_step: int, b_step: int, y: int, n: int) -> None:
    """y[i] = a[i] where c[i], else b[i]; steps as in `row`."""
    _choose(c, a, b, c_step, a_step, b_step, y, n)


@emitted
def _integer(e: Emit, place: V, index: V) -> Integer:
    return e.load(e.at(place, index, 8), index.kind)


class Plan(NamedTuple):
    """A walk over rows: `function` makes them, or `other` where it chooses; `other` is the activation else. `size`: bytes of a
    result. The table has a line for each axis: size, and steps of c, a, b; the last line is that of the columns."""

    function: int
    other: int
    code: int
    size: int
    table: int
    axes: int
    cols: int


@kernel
def _walk(p: Plan, act: Act, c: int, a: int, b: int, y: int, first: int, last: int) -> None:
    """Tasks: chunks of rows."""
    chunks = (p.cols + CHUNK - 1) // CHUNK
    c_step, a_step, b_step = (
        _integer(p.table, 4 * p.axes + 1),
        _integer(p.table, 4 * p.axes + 2),
        _integer(p.table, 4 * p.axes + 3),
    )
    for task in range(first, last):
        rest, start = task // chunks, task % chunks * CHUNK
        n = min(CHUNK, p.cols - start)
        to = y + (rest * p.cols + start) * p.size
        c_at, a_at, b_at = start * c_step, start * a_step, start * b_step
        for axis in range(p.axes - 1, -1, -1):
            count = _integer(p.table, 4 * axis)
            i = rest % count
            rest //= count
            c_at += i * _integer(p.table, 4 * axis + 1)
            a_at += i * _integer(p.table, 4 * axis + 2)
            b_at += i * _integer(p.table, 4 * axis + 3)
        if p.code == _WHERE:
            call(p.other, c + c_at, a + 4 * a_at, b + 4 * b_at, c_step, a_step, b_step, to, n)
        else:
            call(p.function, p.code, a + 4 * a_at, b + 4 * b_at, a_step, b_step, to, n)
        if act.code != 0:
            call(p.other, act, to, to, n)


def _lines(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> list[list[int]]:
    """Axes as (size, step of each operand in items), neighbours that are walked as one taken together, those of size 1 left
    out."""
    rank = len(shape)
    lines: list[list[int]] = []
    steps = []
    for sizes in operands:
        strides, step = [0] * rank, 1
        for axis in range(1, len(sizes) + 1):
            size = sizes[-axis]
            strides[-axis] = 0 if size == 1 else step
            step *= size
        steps.append(strides)
    for axis in range(rank):
        line = [shape[axis], *(strides[axis] for strides in steps)]
        if line[0] == 1:
            continue
        if lines and all(outer == inner * line[0] for outer, inner in zip(lines[-1][1:], line[1:], strict=True)):
            lines[-1] = [lines[-1][0] * line[0], *line[1:]]
        else:
            lines.append(line)
    return lines or [[1] + [0] * len(operands)]


@lru_cache(maxsize=256)
def _plan(
    shape: tuple[int, ...], operands: tuple[tuple[int, ...], ...], code: int, other: int, size: int
) -> tuple[Plan, np.ndarray]:
    """The plan of a call, and what owns its table: making them takes longer than a small operation."""
    lines = _lines(shape, operands)
    whole = [[line[0], *([0] * (3 - len(operands))), *line[1:]] for line in lines]
    if any(step not in (0, 1) for step in whole[-1][1:]):
        whole.append([1, 0, 0, 0])
    table = np.array(whole, np.int64)
    return Plan(row.address, other, code, size, address(table), len(whole) - 1, whole[-1][0]), table


def _run(code: int, operands: Sequence[np.ndarray | None], out: np.ndarray, act: Act, other: int) -> None:
    size = out.size
    if not size:
        return
    sizes = tuple([array.shape for array in operands if array is not None])
    kept = _plan(out.shape, sizes, code, other, out.itemsize)
    cols = kept[0].cols
    given = (kept[0], act, *map(address, operands), address(out))
    spread(size // cols * -(-cols // CHUNK), size * 4.0, lambda first, last: _walk(*given, first, last))
    del kept  # the table was to live until here, whatever the cache drops


def binary(a: np.ndarray, b: np.ndarray, out: np.ndarray, op: int, activation: Activation) -> None:
    """out = f(a, b), f a number of table.BINARY, then the activation; a and b broadcast. out may be one that has its shape."""
    if op == BINARY["power"] and b.size == 1:
        op = _POWER_CODES.get(float(b.reshape(-1)[0]), op)
    act = spell(activation)
    _run(op, (None, a, b), out, act, apply.address if act.code else 0)


def compare(a: np.ndarray, b: np.ndarray, out: np.ndarray, op: int) -> None:
    """out = a ? b as booleans, the comparison a number of table.COMPARE; a and b broadcast."""
    _run(_COMPARE_FIRST + op, (None, a, b), out, IDENTITY, 0)


def where(condition: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out = a where the condition (booleans) holds, else b; all three broadcast. out may be a or b if that has its shape."""
    _run(_WHERE, (condition, a, b), out, IDENTITY, choice.address)
