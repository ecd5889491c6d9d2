"""Models on the GPU: what goes in and out, what stays there, and the arrays of other libraries."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251
import threading
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.program import Program
from tests.operators.models import one

from .calls import numbers, requires_cuda

pytestmark = requires_cuda


def network() -> fl.Sequential:
    net = fl.Sequential(fl.Linear(6, 5), fl.Sigmoid(), fl.Softmax(-1), fl.GELU())
    net.load_state_dict({"0.weight": numbers(5, 6), "0.bias": numbers(5)})
    return net


@pytest.fixture
def model() -> fl.Model:
    return fl.compile(network(), fl.graph.Input("x", ("n", 6)), device="cuda")


def want(x: np.ndarray) -> np.ndarray:
    with fl.kernels.use("reference"):
        return np.asarray(network()(x))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many arrays went to the GPU and came from it."""
    from fastlayers.kernels.cuda._device import Array

    counts = {"there": 0, "back": 0}
    fill, take = Array.fill_from, Array.copy_to

    def fill_from(self: Any, array: np.ndarray) -> None:
        counts["there"] += 1
        fill(self, array)

    def copy_to(self: Any, array: np.ndarray) -> None:
        counts["back"] += 1
        take(self, array)

    monkeypatch.setattr(Array, "fill_from", fill_from)
    monkeypatch.setattr(Array, "copy_to", copy_to)
    return counts


def test_a_model_keeps_to_the_gpu_whatever_is_used(model: fl.Model) -> None:
    before = fl.kernels.current()
    assert model.variant == "cuda" and before != "cuda"
    for n in (1, 3, 0, 3):
        x = numbers(n, 6)
        got = model(x)
        assert type(got) is np.ndarray and got.flags.writeable
        np.testing.assert_allclose(got, want(x), rtol=0, atol=2e-6)
    assert fl.kernels.current() == before
    assert "cuda" in repr(model)


def test_arrays_on_the_gpu_give_arrays_on_the_gpu(model: fl.Model) -> None:
    x = numbers(3, 6)
    there = fl.cuda.array(x)
    assert isinstance(there, fl.cuda.DeviceArray) and there.shape == (3, 6) and there.dtype == np.float32
    got = model(there)
    assert isinstance(got, fl.cuda.DeviceArray)
    np.testing.assert_array_equal(got.numpy(), model(x))
    np.testing.assert_array_equal(np.asarray(model.run({"x": there})[model.outputs[0].name]), model(x))
    np.testing.assert_array_equal(there.numpy(), x)


def test_out(model: fl.Model) -> None:
    x, out = numbers(3, 6), np.empty((3, 5), np.float32)
    assert model(x, out=out) is out
    np.testing.assert_array_equal(out, model(x))
    with pytest.raises(fl.DTypeError, match="no out"):
        model(fl.cuda.array(x), out=out)


def test_only_inputs_and_outputs_travel(counted: dict[str, int]) -> None:
    """Elementwise functions alone: weights once, then nothing but x and y."""
    model = fl.compile(lambda x: fl.functional.tanh(fl.functional.gelu(x)), fl.graph.Input("x", ("n", 6)), device="cuda")
    x = numbers(2, 6)
    model(x)
    counted.update(there=0, back=0)
    model(x)
    assert counted == {"there": 1, "back": 1}
    there = fl.cuda.array(x)
    counted.update(there=0, back=0)
    model(there)
    assert counted == {"there": 0, "back": 0}


def test_wrong_inputs(model: fl.Model) -> None:
    with pytest.raises(fl.ShapeError, match="expected"):
        model(fl.cuda.array(numbers(3, 7)))
    with pytest.raises(fl.DTypeError, match="expected float32"):
        model(fl.cuda.array(np.zeros((3, 6))))
    with pytest.raises(fl.DTypeError, match="booleans"):
        fl.cuda.array(["a"])
    with pytest.raises(fl.DeviceError, match="expected 'cpu' or 'cuda'"):
        fl.compile(network(), numbers(1, 6), device="tpu")


def test_copies_and_threads(model: fl.Model) -> None:
    x = numbers(2, 6)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.variant == "cuda"
        np.testing.assert_array_equal(other(x), model(x))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda n=n: found.append((n, model(numbers(n, 6))))) for n in (1, 2, 3, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for n, got in found:
        np.testing.assert_array_equal(got, model(numbers(n, 6)))


def test_load(tmp_path: Any, model: fl.Model) -> None:
    model.save(tmp_path / "m.safetensors")
    loaded = fl.load(tmp_path / "m.safetensors", device="cuda")
    x = numbers(2, 6)
    assert loaded.variant == "cuda"
    np.testing.assert_array_equal(loaded(x), model(x))
    assert "runs in" in loaded.summary({"x": (2, 6)})


def test_what_runs_on_the_host_is_shown_and_computed() -> None:
    """Trees have no kernel on the GPU; what is around them has."""
    tree, weight = fl.ClassTree.balanced(4), numbers(3, 5)

    def function(x: Any) -> Any:
        return fl.functional.relu(fl.functional.hierarchical_log_softmax(fl.functional.tanh(x), weight, tree))

    x = numbers(2, 5)
    model = fl.compile(function, x, device="cuda")
    assert "tree_distribution (host)" in model.summary()
    assert "unary (host)" not in model.summary()
    with fl.kernels.use("reference"):
        want = function(x)
    np.testing.assert_allclose(model(x), want, rtol=0, atol=2e-6)
    np.testing.assert_allclose(model(fl.cuda.array(x)).numpy(), want, rtol=0, atol=2e-6)


def test_every_result_of_the_host_comes_back() -> None:
    arrays = [numbers(1, 4, 6, seed=i) for i in range(3)]
    made = one("LinearAttention", arrays, 2, q_num_heads=2, kv_num_heads=2, update_rule="linear")
    states = [Program(made, dispatch.variant(name)).binding(arrays).run(arrays)[1] for name in ("cuda", "")]
    np.testing.assert_allclose(*states, rtol=0, atol=2e-6)


def test_functions_and_layers_take_host_arrays() -> None:
    x = numbers(2, 6)
    with fl.kernels.use("cuda"):
        np.testing.assert_allclose(network()(x), want(x), rtol=0, atol=2e-6)
        operations = fl.kernels.info()["operations"]
    assert operations["unary"] == "cuda"


def everything(x: Any) -> Any:
    """A convolution, a pool, an LSTM, a norm, attention and a product, with what is between them."""
    f = fl.functional
    y = f.max_pool2d(f.conv2d(x, numbers(4, 2, 3, 3), numbers(4), padding=1, activation="relu"), 2)
    y = f.reshape(f.permute(y, (0, 2, 3, 1)), (2, 6, 4))
    weights = (numbers(16, 4, scale=0.5), numbers(16, 4, seed=1, scale=0.5), numbers(16), numbers(16, seed=1))
    y = f.lstm(y, None, *weights, batch_first=True)[0] + y
    y = f.layer_norm(y, (4,), numbers(4), numbers(4, seed=2))
    y = f.scaled_dot_product_attention(y, y, y, is_causal=True)
    return f.softmax(f.linear(y, numbers(3, 4), numbers(3)), -1), f.mean_over_time(y, batch_first=True)


def test_a_network_of_many_layers_stays_on_the_gpu(counted: dict[str, int]) -> None:
    x = numbers(2, 2, 4, 6)
    model = fl.compile(everything, x, device="cuda")
    assert "(host)" not in model.summary() and "numpy: nothing" in model.summary(), model.summary()
    with fl.kernels.use("reference"):
        want = everything(x)
    for got, expected in zip(model(x), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=5e-6)
    there = fl.cuda.array(x)
    model(there)
    counted.update(there=0, back=0)
    got = model(there)
    assert counted == {"there": 0, "back": 0}
    np.testing.assert_allclose(got[0].numpy(), want[0], rtol=0, atol=5e-6)


# ---- other libraries -------------------------------------------------------------------------------------------------


class Foreign:
    """What torch's and CuPy's arrays show of themselves."""

    def __init__(self, array: Any, strides: tuple[int, ...] | None = None, **more: Any) -> None:
        there = fl.cuda.array(array)
        self.array = there
        self.__cuda_array_interface__ = {**there.__cuda_array_interface__, "strides": strides, **more}


def test_cuda_array_interface_without_a_copy(model: fl.Model) -> None:
    x = numbers(3, 6)
    foreign = Foreign(x)
    there = fl.cuda.array(foreign)
    assert there.pointer == foreign.array.pointer
    np.testing.assert_array_equal(model(foreign).numpy(), model(x))
    np.testing.assert_array_equal(fl.cuda.array(Foreign(x, strides=(24, 4))).numpy(), x)
    pointer = there.pointer
    del foreign
    assert there.pointer == pointer
    np.testing.assert_array_equal(there.numpy(), x)


def test_cuda_array_interface_that_cannot_be_taken() -> None:
    with pytest.raises(fl.ShapeError, match="contiguous"):
        fl.cuda.array(Foreign(numbers(4, 6), strides=(4, 16)))
    with pytest.raises(fl.DTypeError, match="masked"):
        fl.cuda.array(Foreign(numbers(3, 6), mask=object()))
    with pytest.raises(fl.DTypeError, match="dtype"):
        fl.cuda.array(Foreign(numbers(3, 6), typestr="<c8"))


def test_dlpack_both_ways() -> None:
    from fastlayers.kernels.cuda import _dlpack, _exchange

    for x in (numbers(3, 4), np.arange(5), np.array(True), np.float16([1, 2])):
        x = np.asarray(x)
        there = fl.cuda.array(x)
        back = _exchange._from_dlpack(there, "x")
        assert back.pointer == there.pointer and back.shape == x.shape and back.dtype == x.dtype
        np.testing.assert_array_equal(back.numpy(), x)
        living = len(_dlpack.living)
        capsule = there.__dlpack__()
        assert len(_dlpack.living) == living + 1
        del capsule, back
        assert len(_dlpack.living) == living - 1
    with pytest.raises(BufferError):
        there.__dlpack__(copy=True)


def test_dlpack_with_numpy() -> None:
    from fastlayers.kernels.cuda._cuda import SIMULATED

    if not SIMULATED:
        pytest.skip("only the simulator's memory is numpy's")
    there = fl.cuda.array(numbers(3, 4))
    np.testing.assert_array_equal(np.from_dlpack(there), numbers(3, 4))


def test_memory_is_used_again() -> None:
    from fastlayers.kernels.cuda import _device

    pointers = set()
    for _ in range(5):
        array = _device.empty((1000,))
        pointers.add(array.pointer)
        del array
    assert len(pointers) == 1
    first, second = _device.empty((1000,)), _device.empty((1000,))
    assert first.pointer != second.pointer


def test_streams(model: fl.Model) -> None:
    x = numbers(2, 6)
    with fl.cuda.stream(None):
        np.testing.assert_array_equal(model(x), model(x))
    with pytest.raises(fl.DTypeError, match="expected a stream"), fl.cuda.stream("first"):
        pass
    fl.cuda.synchronize()


def test_a_kernel_that_fails_in_the_simulator_leaves_it_usable() -> None:
    from fastlayers.kernels.cuda import activation
    from fastlayers.kernels.cuda._cuda import SIMULATED, cuda, kernel
    from fastlayers.kernels.table import Activation

    if not SIMULATED:
        pytest.skip("on a GPU, what is read past an array's end is not noticed")

    def broken_kernel(n: int) -> None:
        cuda.syncthreads()
        if cuda.threadIdx.x == 5:
            raise ZeroDivisionError

    broken_kernel.__annotations__ = {"n": "int", "return": "None"}
    with pytest.raises(ZeroDivisionError):
        kernel(broken_kernel).launch(1, 32, 0)
    x = numbers(7)
    activation.unary(x, x, Activation(0))
    np.testing.assert_array_equal(x, numbers(7))
