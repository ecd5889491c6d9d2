"""The order of sums over K, exactly: blocks of 256 terms, and of 64 in strict precision, which are added in order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import product

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch

from .space import FIRST, IDENTITY, LAST, Layout, Problem, bits, random_problem, run

pytestmark = pytest.mark.without("reference", "jit", "cuda")  # strict precision has finer blocks in the compiled engine alone
BLOCK, FINE = 256, 64
LARGE = 2.0**24  # this and one is this again
LAYOUTS = (FIRST, LAST, (True, False), (False, True))
BOTH = pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])


def bound(strict: bool) -> AbstractContextManager[None]:
    return dispatch.variant()._replace(strict=strict).bound()


def total(terms: int, strict: bool) -> float:
    """Ones after LARGE: those of its block are lost, other blocks are added to it whole."""
    return LARGE + max(0, terms - (FINE if strict else BLOCK))


def linear(m: int, n: int, k: int) -> np.ndarray:
    w = np.ones((n, k), np.float32)
    w[:, 0] = LARGE
    out = np.full((m, n), np.nan, np.float32)
    packed = dispatch.kernel("linear_pack")(w, None)
    dispatch.kernel("linear")(np.ones((m, k), np.float32), packed, out, None, IDENTITY)
    return out


def matmul(m: int, n: int, k: int, transposed: bool) -> np.ndarray:
    a, b = np.ones((1, m, k), np.float32), np.ones((1, n, k) if transposed else (1, k, n), np.float32)
    a[:, :, 0] = LARGE
    out = np.full((1, m, n), np.nan, np.float32)
    dispatch.kernel("matmul")(a, b, out, transposed, IDENTITY)
    return out


def conv(
    shape: tuple[int, ...],
    kernel: tuple[int, int, int],
    results: int,
    stride: int,
    layout: Layout,
    dilation: int = 1,
    groups: int = 1,
) -> np.ndarray:
    """Windows that lie within the image."""
    weight = np.ones((results, shape[0] // groups, *kernel), np.float32)
    weight[:, 0, 0, 0, 0] = LARGE
    case = Problem(np.ones((1, *shape), np.float32), weight, None, (1, stride, stride), (1, dilation, dilation), groups=groups)
    return run("conv", case, layout)


# Rows and columns around tiles, half panels and what strict precision takes at once.
SIZES = ((1, 1), (1, 300), (3, 40), (7, 33), (13, 129), (50, 24), (70, 70))


@BOTH
def test_linear(variant: str, strict: bool) -> None:
    with bound(strict):
        for (m, n), k in product(SIZES, (1, 63, 64, 65, 256, 700)):
            np.testing.assert_array_equal(linear(m, n, k), total(k, strict) if k % 2 == 0 or k < FINE else total(k - 1, strict))


@BOTH
def test_matmul(variant: str, strict: bool) -> None:
    with bound(strict):
        for (m, n), transposed in product(SIZES, (False, True)):
            np.testing.assert_array_equal(matmul(m, n, 600, transposed), total(600, strict))


CONVS: dict[str, Callable[[Layout], np.ndarray]] = {
    "1x1": lambda layout: conv((400, 1, 5, 9), (1, 1, 1), 40, 1, layout),
    "1x1 with few pixels": lambda layout: conv((400, 1, 1, 2), (1, 1, 1), 40, 1, layout),
    "1x1 with few results": lambda layout: conv((400, 1, 20, 32), (1, 1, 1), 20, 1, layout),
    "few channels": lambda layout: conv((8, 1, 21, 40), (1, 7, 7), 40, 2, layout),
    "many channels": lambda layout: conv((40, 1, 9, 11), (1, 3, 3), 48, 1, layout),
    "few results": lambda layout: conv((40, 1, 33, 31), (1, 3, 3), 4, 1, layout),
    "dilated": lambda layout: conv((40, 1, 20, 21), (1, 3, 3), 48, 1, layout, 4),
    "volumes": lambda layout: conv((24, 5, 6, 7), (3, 3, 3), 20, 1, layout),
    "a sequence": lambda layout: conv((32, 1, 1, 90), (1, 1, 11), 20, 1, layout),
    "groups": lambda layout: conv((56, 1, 9, 14), (1, 5, 5), 56, 1, layout, groups=7),
}


@BOTH
def test_convolutions(variant: str, strict: bool) -> None:
    terms = {
        "1x1": 400,
        "1x1 with few pixels": 400,
        "1x1 with few results": 400,
        "few channels": 392,
        "volumes": 648,
        "a sequence": 352,
        "groups": 200,
    }
    with bound(strict):
        for (name, made), layout in product(CONVS.items(), LAYOUTS):
            np.testing.assert_array_equal(made(layout), total(terms.get(name, 360), strict), err_msg=f"{name} {layout}")


def test_strict_precision_gives_the_same_bits_everywhere(variant: str) -> None:
    """Batches, layouts and threads; padding of which whole blocks are left out; and near the right result."""
    rng = np.random.default_rng(5)
    cases = (
        random_problem(rng, (3, 40, 1, 17, 15), (48, 40, 1, 3, 3), pads=(0, 0, 1, 1, 1, 1)),
        random_problem(rng, (3, 40, 1, 17, 15), (6, 40, 1, 7, 7), pads=(0, 0, 3, 3, 3, 3)),
        random_problem(rng, (3, 300, 1, 17, 15), (20, 300, 1, 3, 3), pads=(0, 0, 9, 9, 9, 9), dilation=(1, 9, 9)),
        random_problem(rng, (3, 300, 1, 9, 7), (170, 300, 1, 1, 1)),
    )
    before = fl.get_num_threads()
    with bound(True):
        for case in cases:
            want = run("conv", case)
            with fl.kernels.use("reference"):
                np.testing.assert_allclose(want, run("conv", case), rtol=0, atol=2e-6)
            for threads, layout in product((1, 2), LAYOUTS):
                fl.set_num_threads(threads)
                try:
                    one = np.concatenate([run("conv", case._replace(x=case.x[i : i + 1]), layout) for i in range(3)])
                    np.testing.assert_array_equal(bits(want), bits(one))
                    np.testing.assert_array_equal(bits(want), bits(run("conv", case, layout)))
                finally:
                    fl.set_num_threads(before)


def test_models_sum_as_their_precision_says(variant: str) -> None:
    """Also one that is bound while another one runs in stages, which goes on as it was."""
    layer = fl.Linear(600, 20, bias=False)
    weight = np.ones((20, 600), np.float32)
    weight[:, 0] = LARGE
    layer.load_state_dict({"weight": weight})
    x = np.ones((3, 600), np.float32)
    models = [fl.compile(layer, x, precision=precision) for precision in ("default", "strict")]
    for strict, model in enumerate(models):
        np.testing.assert_array_equal(model(x), total(600, bool(strict)))
    with bound(True):
        with bound(False):
            np.testing.assert_array_equal(linear(3, 20, 600), total(600, False))
        np.testing.assert_array_equal(linear(3, 20, 600), total(600, True))
    np.testing.assert_array_equal(linear(3, 20, 600), total(600, False))
