"""`transpose` against numpy, exactly: it only moves numbers."""

from __future__ import annotations

import os

import numpy as np
import pytest

from fastlayers.kernels import dispatch

from ..guard import guarded, guarded_empty
from .space import bits

# Around the register blocks (4 and 8) and the strips (32), few rows and few columns, sizes that are cut into tasks.
SIDES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 67)
LARGE = ((0, 3, 4), (1000, 3, 5), (3, 3, 12345), (3, 12345, 3), (2, 257, 300), (1, 1024, 128), (1, 64, 4096))


def run(x: np.ndarray, out: np.ndarray) -> None:
    x.flags.writeable = False
    dispatch.kernel("transpose")(x, out)


@pytest.mark.parametrize("rows", SIDES)
def test_sides(variant: str, rows: int) -> None:
    for cols in SIDES:
        x = np.random.default_rng(rows).integers(0, 2**32, (2, rows, cols), np.uint32).view(np.float32)
        out = np.ones((2, cols, rows), np.float32)
        run(x, out)
        np.testing.assert_array_equal(bits(out), bits(x.transpose(0, 2, 1)))


@pytest.mark.parametrize(
    "shape", [(0, 3, 4), (1000, 3, 5), (3, 3, 12345), (3, 12345, 3), (2, 257, 300), (1, 1024, 128), (1, 64, 4096)]
)
def test_large_and_many(variant: str, threads: int, shape: tuple[int, int, int]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = np.full((shape[0], shape[2], shape[1]), np.nan, np.float32)
    run(x, out)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1))


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.parametrize("edge", ["start", "end"])
def test_stays_inside_its_operands(variant: str, edge: str) -> None:
    for rows, cols in ((1, 9), (2, 11), (3, 17), (5, 9), (17, 3), (9, 5), (9, 10), (33, 41), (8, 8), (7, 1)):
        x = np.random.default_rng(0).standard_normal((1, rows, cols)).astype(np.float32)
        out = guarded_empty((1, cols, rows), edge)
        run(guarded(x, edge), out)
        np.testing.assert_array_equal(out, x.transpose(0, 2, 1))
