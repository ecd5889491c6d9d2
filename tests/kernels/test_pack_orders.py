"""Packing of products' weights: from either order of memory and any address, on any number of threads, the same panels."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import Activation
from fastlayers.model.custom import forget

pytestmark = pytest.mark.without("reference", "jit")
F32 = np.dtype(np.float32)
SHAPES = [(1, 1), (16, 256), (15, 257), (130, 513), (700, 300), (3000, 130), (130, 3000), (0, 5), (5, 0)]


def panels_of(weight: np.ndarray) -> np.ndarray:
    """The panels of weights (n, k), by the contract."""
    n, k = weight.shape
    wide = np.zeros((-(-n // 16) * 16, k), np.float32)
    wide[:n] = weight
    blocks = [wide[:, i : i + 256] for i in range(0, k, 256)]
    return np.concatenate([np.zeros(0, np.float32), *(b.reshape(-1, 16, b.shape[1]).swapaxes(1, 2).ravel() for b in blocks)])


def placed(weight: np.ndarray, turned: bool, offset: int) -> np.ndarray:
    """The same matrix in an order of memory, beginning so many bytes after an aligned address."""
    memory = np.zeros(weight.nbytes + 64, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    flat = memory[begin : begin + weight.nbytes].view(np.float32)
    made = flat.reshape(weight.shape[::-1]).T if turned else flat.reshape(weight.shape)
    made[...] = weight
    return made


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_panels_are_the_same_from_any_order_and_address(shape: tuple[int, int], threads: int, variant: str) -> None:
    pack, before = dispatch.kernel("linear_pack"), fl.get_num_threads()
    weight = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    fl.set_num_threads(threads)
    try:
        for turned in (False, True):
            for offset in (0, 4, 1, 2):
                packed = pack(placed(weight, turned, offset), None)
                np.testing.assert_array_equal(packed.panels.array(), panels_of(weight))
    finally:
        fl.set_num_threads(before)


def test_others_are_refused(variant: str) -> None:
    pack = dispatch.kernel("linear_pack")
    with pytest.raises(fl.ArgumentError, match="has its elements apart"):
        pack(np.zeros((40, 40), np.float32)[::2, ::2], None)
    with pytest.raises(fl.DTypeError, match="expected float32"):
        pack(np.zeros((4, 4)), None)
    with pytest.raises(fl.DTypeError, match="expected float32"):
        pack(np.zeros((4, 4), ">f4"), None)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("n", [16, 37, 700])
def test_few_bits_are_the_same_on_any_number_of_threads(bits: int, n: int, variant: str) -> None:
    """Products with a matrix of ones and zeros give back its numbers, whatever the order in which they are packed."""
    rng, k, before = np.random.default_rng(bits), 96, fl.get_num_threads()
    numbers = rng.integers(0, 1 << bits, (n, k))
    apart = numbers.reshape(n, 3, -1, 8 // bits).astype(np.uint8) << np.arange(0, 8, bits, dtype=np.uint8)
    weight = np.bitwise_or.reduce(apart, -1).astype(np.uint8)
    zero = np.zeros((n, 3), np.float32)
    for threads in (1, 3):
        fl.set_num_threads(threads)
        packed = dispatch.kernel("nbits_pack")(weight, np.ones((n, 3), np.float32), zero, None, k, bits)
        out = np.empty((k, n), np.float32)
        dispatch.kernel("nbits")(np.eye(k, dtype=np.float32), packed, out, 0, Activation(0))
        np.testing.assert_array_equal(out, numbers.T)
    fl.set_num_threads(before)


@pytest.mark.parametrize("op", ["MatMul", "Gemm", "Linear"])
def test_nothing_is_copied_before(op: str, tmp_path: Path, variant: str) -> None:
    """The first run of a product of 4 MB of weights takes no such array, wherever these are in the file."""
    weight = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)
    graph = Graph((Value("x", (1, 1024), F32),), (Value("y", None, F32),), (Node(op, ("x", "w"), ("y",), {}),), {"w": weight})
    for optimize in (True, False):
        path = tmp_path / f"{optimize}.safetensors"
        fl.Model(graph, fl.model.model.Options(optimize=optimize)).save(path)
        model = fl.load(path, optimize=optimize)
        x = np.ones((1, 1024), np.float32)
        tracemalloc.start()
        try:
            found = model(x)
            assert tracemalloc.get_traced_memory()[1] < weight.nbytes / 2
        finally:
            tracemalloc.stop()
        want = x @ (weight.T if op == "Linear" else weight)
        np.testing.assert_allclose(found, want, atol=1e-3)


def test_a_run_that_is_to_end_packs_whole_matrices() -> None:
    """An operator of a run that is late packs for a model of its own, which lives on."""
    weight, made = np.random.default_rng(0).standard_normal((4096, 512)).astype(np.float32), []

    @fl.operator("Packs", "tests.pack", replace=True)
    def packs(x: np.ndarray) -> np.ndarray:
        time.sleep(0.05)
        made.append(dispatch.kernel("linear_pack")(weight, None))
        return x

    model = fl.compile(lambda x: fl.functional.relu(packs(x)), fl.graph.Input("x", (2,)))
    try:
        for _ in range(100):  # on a busy machine the time may be over before the operator begins
            with pytest.raises(fl.TimeoutError):
                model(np.ones(2), timeout=0.02)
            if made:
                break
        np.testing.assert_array_equal(made[-1].panels.array(), panels_of(weight))
    finally:
        forget("Packs", "tests.pack")
