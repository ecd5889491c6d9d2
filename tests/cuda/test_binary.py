"""Arithmetic, comparisons and choices with broadcasting."""

from __future__ import annotations

import numpy as np
import pytest

from fastlayers.kernels.table import BINARY, COMPARE, INTEGER, KINDS, Activation

from .calls import activation, agree, numbers, requires_cuda

pytestmark = requires_cuda
# The same shape, in quads and not; rows, columns and values that are broadcast; axes that merge; nothing at all.
SHAPES = (
    ((3, 4), (3, 4)),
    ((5, 7), (5, 7)),
    ((3, 8), (8,)),
    ((3, 7), (7,)),
    ((8,), (3, 8)),
    ((2, 3, 4), (1, 3, 1)),
    ((2, 3, 4), (2, 1, 4)),
    ((2, 1, 3, 1), (1, 5, 1, 4)),
    ((16,), (1,)),
    ((), (5,)),
    ((), ()),
    ((3, 0, 2), (1, 1, 2)),
)
FINITE = np.array([-2.5, -1, -0.0, 0.5, 1, 3], np.float32)
SPECIAL = np.concatenate([FINITE, np.float32([np.nan, np.inf, -np.inf])])


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("op", ["add", "divide"])
def test_shapes(shapes: tuple[tuple[int, ...], ...], op: str) -> None:
    a, b = (numbers(*shape, seed=i) for i, shape in enumerate(shapes))
    out = np.full(np.broadcast_shapes(*shapes), 77, np.float32)
    agree("binary", a, b, out, BINARY[op], Activation(0))
    agree("compare", a, b, np.empty(out.shape, bool), COMPARE["less"])
    condition = np.asarray(numbers(*shapes[1], seed=3) > 0)
    agree("where", condition, a, b, out)


@pytest.mark.parametrize("op", sorted(BINARY))
@pytest.mark.parametrize("numbers_", [FINITE, SPECIAL], ids=["finite", "special"])
def test_operations(op: str, numbers_: np.ndarray) -> None:
    a, b = numbers_[:, None], numbers_[None]
    with np.errstate(all="ignore"):
        # libdevice's pow is within 4 ulp
        agree("binary", a, b, np.empty((a.size, b.size), np.float32), BINARY[op], Activation(0), rtol=2e-6, atol=0)


@pytest.mark.parametrize("op", sorted(COMPARE))
def test_comparisons(op: str) -> None:
    agree("compare", SPECIAL[:, None], SPECIAL[None], np.empty((len(SPECIAL),) * 2, bool), COMPARE[op])


def test_activation_in_place() -> None:
    a = numbers(4, 12)
    for b in (numbers(12, seed=1), numbers(4, 12, seed=1), numbers(4, 1, seed=1)):
        agree("binary", a, b, a, BINARY["multiply"], activation("tanh"))
    agree("where", a > 0, a, numbers(1), a)


@pytest.mark.parametrize("op", sorted(INTEGER))
@pytest.mark.parametrize("dtype", ["bool", "int32", "int64"])
def test_integers(op: str, dtype: str) -> None:
    if dtype == "bool" and op not in ("and", "or", "xor", "equal", "not_equal"):
        pytest.skip("booleans have no such operation")
    most = np.iinfo(dtype).max if dtype != "bool" else 1
    a, b = (np.array(v).astype(dtype) for v in ([[0, 1, -3, 7, most]], [[2], [-5], [7], [most]]))
    result = bool if op in ("equal", "not_equal") or op.startswith(("less", "greater")) else dtype
    for x, y in ((a, b), (a, a), (b, a[:, :1])):
        out = np.empty(np.broadcast_shapes(x.shape, y.shape), result)
        agree("integer", x, y, out, INTEGER[op], KINDS[dtype], rtol=0, atol=0)
