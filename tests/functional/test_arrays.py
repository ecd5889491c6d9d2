"""The arrays that kernels get: what `as_float32` lets through as it is, and what it copies."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from fastlayers.graph.arrays import as_float32, is_constant


def test_what_kernels_take_is_not_copied() -> None:
    x = np.zeros((3, 4), np.float32)
    frozen = x.copy()
    frozen.flags.writeable = False
    for array in (x, x[1:], frozen, np.zeros(()).astype(np.float32), np.zeros((0, 2), np.float32)):
        assert as_float32(array, "op", "x") is array


def test_what_kernels_cannot_take_is_copied() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    misaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    misaligned[...] = x
    matrix = x.view(np.recarray)
    for array in (
        x.T,
        x[:, ::2],
        misaligned,
        x.astype(x.dtype.newbyteorder()),
        x.astype(np.float64),
        matrix,
        np.float64(3),
        3,
        True,
    ):
        got = as_float32(array, "op", "x")
        assert type(got) is np.ndarray
        assert got.dtype == np.float32 and got.dtype.isnative
        assert got.flags.c_contiguous and got.flags.aligned
        assert got.shape == np.shape(array)
        np.testing.assert_array_equal(got, np.asarray(array))


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("offset", [0, 4])
def test_memory_that_nobody_can_write_needs_no_copy(offset: int) -> None:
    assert is_constant(np.frombuffer(b"\0" * 16, np.float32, offset=offset))
    assert is_constant(np.frombuffer(memoryview(b"\0" * 16), np.float32, offset=offset))
    assert is_constant(frozen(np.zeros(4))[offset // 4 :])
    assert not is_constant(frozen(np.frombuffer(bytearray(16), np.float32, offset=offset)))
    assert not is_constant(np.zeros(4)[offset:])
    assert not is_constant(frozen(np.zeros(4)[offset // 4 :]))
    with mmap.mmap(-1, 16) as region:
        array = frozen(np.frombuffer(region, np.float32, offset=offset))
        assert not is_constant(array)
        del array
