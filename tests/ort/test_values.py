"""OrtValue and IOBinding: whose memory it is, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
import fastlayers.ort as ort

from . import networks

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_values_share_the_memory_of_arrays() -> None:
    x = X.copy()
    value = ort.OrtValue.ortvalue_from_numpy(x)
    assert value.data_ptr() == x.ctypes.data and np.shares_memory(value.numpy(), x) and np.shares_memory(np.asarray(value), x)
    assert np.shares_memory(np.from_dlpack(value), x)  # type: ignore[arg-type]
    assert (value.shape(), value.element_type(), value.tensor_size_in_bytes()) == ([2, 3], 1, 24)
    assert value.is_tensor() and value.has_value() and not value.is_tensor_sequence() and not value.is_sparse_tensor()
    value.update_inplace(2 * x)
    np.testing.assert_array_equal(x, 2 * X)
    other = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    ort.copy_tensors([value], [other])
    np.testing.assert_array_equal(other.numpy(), x)
    np.testing.assert_array_equal(np.array(other, dtype=np.float64), x)
    np.testing.assert_array_equal(other.__array__(np.float64), x)
    assert ort.OrtValue(other).data_ptr() == other.data_ptr()
    with pytest.raises(fl.ArgumentError, match="expected as many"):
        ort.copy_tensors([value], [])


def test_what_is_not_contiguous_or_native_is_copied() -> None:
    for array in (X[:, ::2], np.asfortranarray(X), X.astype(">f4"), X[:0]):
        value = ort.OrtValue.ortvalue_from_numpy(array)
        np.testing.assert_array_equal(value.numpy(), array)
        assert value.numpy().dtype.isnative and value.numpy().flags.c_contiguous


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_types(dtype: str) -> None:
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros(3, dtype))
    again = ort.OrtValue.ortvalue_from_shape_and_type((3,), value.element_type())
    assert again.numpy().dtype == np.dtype(dtype) and again.data_type() == value.data_type()
    assert (
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(3, dtype), value.element_type()).data_type() == value.data_type()
    )


def test_dlpack() -> None:
    made = ort.OrtValue.from_dlpack(X.copy())
    np.testing.assert_array_equal(made.numpy(), X)
    np.testing.assert_array_equal(ort.OrtValue.from_dlpack(X.copy().__dlpack__()).numpy(), X)
    with pytest.raises(fl.DTypeError, match="gives no tensor of the processor"):
        ort.OrtValue.from_dlpack(5)


def test_bfloat16_is_computed_with() -> None:
    bits = (X.view(np.uint32) >> 16).astype(np.uint16)  # exact for small integers
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    assert value.data_type() == "tensor(bfloat16)"
    np.testing.assert_array_equal(value._feed(), X)
    with pytest.raises(fl.UnsupportedError, match="float8e4m3fn"):
        ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(3, np.uint8), 17)._feed()


def test_sequences() -> None:
    (value,) = ort.InferenceSession(networks.sequence()).run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(X[0])})
    assert value.is_tensor_sequence() and not value.is_tensor() and value.data_type() == "seq(tensor(float))"
    with pytest.raises(ort.OrtRuntimeError, match="Only OrtValues that are Tensors"):
        value.numpy()
    with pytest.raises(ort.OrtRuntimeError, match="no sparse tensor"):
        value.as_sparse_tensor()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ort.OrtValue.ortvalue_from_shape_and_type(5, np.float32), fl.DTypeError, "expected ints"),
        (lambda: ort.OrtValue.ortvalue_from_shape_and_type([2], 99), ort.OrtRuntimeError, "Not a valid numpy type"),
        (lambda: ort.OrtValue.ortvalue_from_shape_and_type([2], object), ort.OrtRuntimeError, "Not a valid numpy type"),
        (lambda: ort.OrtValue.ortvalue_from_numpy_with_onnx_type([1], 1), fl.DTypeError, "expected an array"),
        (
            lambda: ort.OrtValue.ortvalue_from_numpy(X).update_inplace([1]),
            fl.DTypeError,
            "must be a numpy.ndarray or an OrtValue",
        ),
        (lambda: ort.OrtValue.ortvalue_from_numpy(X).update_inplace(X.astype(int)), fl.DTypeError, r"expected tensor\(float\)"),
        (lambda: ort.OrtDevice("cpu"), fl.ArgumentError, "needs to be of type"),
        (lambda: ort.OrtValue.ortvalue_from_numpy(np.ma.array(X)), ort.OrtRuntimeError, "a masked array was given"),
        (
            lambda: ort.InferenceSession(networks.added()).run(None, {"x": np.ma.array(X), "s": np.array(5)}),
            ort.InvalidArgument,
            r"input 'x' is a masked array: expected a plain one, for example x.filled\(0\)",
        ),
        (lambda: ort.get_ep_devices()[0].create_sync_stream(), fl.UnsupportedError, "no streams"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_devices() -> None:
    device = ort.OrtDevice.make("cuda", 1)
    assert (device.device_type(), device.device_id(), device.device_vendor_id(), device.device_mem_type()) == (1, 1, 0x10DE, 0)
    assert ort.OrtDevice(device)._numbers == device._get_c_device()._numbers
    assert ort.OrtDevice.make("cpu", 0).device_type() == ort.OrtDevice.cpu() == 0 and ort.OrtDevice.cuda() == 1
    with pytest.raises(ort.OrtRuntimeError, match="no allocator"):
        ort.InferenceSession(networks.added()).create_ortvalue_from_shape_and_type([2], np.float32, "cuda")
    assert ort.InferenceSession(networks.added()).create_ortvalue_from_shape_and_type([2], np.float32, "cpu").shape() == [2]


def bound(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A run whose output is written to the memory of y."""
    session = ort.InferenceSession(networks.added())
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_cpu_input("s", np.array(5))
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    assert binding.get_outputs_as_ortvaluevector()[0].data_ptr() == (
        y.ctypes.data if y.size else binding.get_outputs()[0].data_ptr()
    )
    assert not np.shares_memory(binding.copy_outputs_to_cpu()[0], y)
    return y


def test_outputs_are_written_where_they_are_bound() -> None:
    np.testing.assert_array_equal(bound(X, np.empty((2, 3), np.float32)), X + networks.ADDED)
    assert bound(X[:0], np.empty((0, 3), np.float32)).shape == (0, 3)


def test_an_output_may_be_bound_to_the_memory_of_an_input() -> None:
    """As decoders do with what they remember: it is read before it is written."""
    x = X.copy()
    np.testing.assert_array_equal(bound(x, x), X + networks.ADDED)
    both = np.concatenate([X, X])
    np.testing.assert_array_equal(bound(both[:2], both[1:3]), X + networks.ADDED)


def test_bound_arrays_are_read_in_every_run() -> None:
    session, x = ort.InferenceSession(networks.added()), X.copy()
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_cpu_input("s", np.array(5))
    binding.bind_output("y")
    for factor in (1, 2, 3):
        x[...] = X * factor
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), X * factor + networks.ADDED)
    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda b: b.bind_ortvalue_input("q", None), ort.OrtRuntimeError, "Failed to find input name in the mapping: q"),
        (lambda b: b.bind_ortvalue_input("x", X), fl.DTypeError, "expected OrtValue"),
        (lambda b: b.bind_ortvalue_output("y", X), fl.DTypeError, "expected OrtValue"),
        (lambda b: b.bind_input("x", "cuda", 0, np.float32, [2, 3], 8), ort.OrtRuntimeError, "no data transfer registered"),
        (lambda b: b.bind_output("y", "cuda"), ort.OrtRuntimeError, "expected memory of the processor"),
        (lambda b: b.bind_input("x", "cpu", 0, np.float32, [2, 3], 0), fl.ArgumentError, "buffer_ptr is 0: expected the address"),
        (lambda b: b.bind_input("x", "cpu", 0, np.float32, [2, 3], "8"), fl.DTypeError, "expected an address"),
        (lambda b: b.bind_input("x", "cpu", 0, np.float32, [2, -3], 8), ort.OrtRuntimeError, "must be >= 0"),
        (lambda b: b.bind_output(5), fl.DTypeError, "expected a str"),
    ],
)
def test_bindings_that_are_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(ort.InferenceSession(networks.added()).io_binding())
