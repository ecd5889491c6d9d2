"""OrtValue: an array, a list of arrays or nothing, under onnxruntime's names; and devices, of which there is the processor."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import shown
from .._masked import is_masked
from ..errors import ArgumentError, DTypeError, Error, UnsupportedError
from ._described import TYPES
from ._errors import OrtRuntimeError

if TYPE_CHECKING:
    from ._enums_of_devices import OrtDeviceVendorId

__all__ = ["OrtDevice", "OrtValue", "OrtValueVector", "at", "copy_tensors", "type_of"]

# TensorProto.DataType, of what numpy has.
NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "object": 8, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15,
}  # fmt: skip
_NAMES = {number: name for name, number in NUMBERS.items()}
# And of what it has not: the type's name, and how many bytes an element takes. Only the first can be computed with.
BFLOAT16 = 16
_FOREIGN = {
    16: ("bfloat16", 2), 17: ("float8e4m3fn", 1), 18: ("float8e4m3fnuz", 1), 19: ("float8e5m2", 1), 20: ("float8e5m2fnuz", 1),
}  # fmt: skip
_ELSEWHERE = (
    "Can't allocate memory on the device using this package of OnnxRuntime. Please use the appropriate package of OnnxRuntime "
    "for your hardware to use this feature."
)
_DEVICES = {"cpu": 0, "cuda": 1, "dml": 1, "webgpu": 1, "gpu": 1, "cann": 2, "npu": 2}
_VENDORS = {"cuda": 0x10DE, "dml": 0x1414, "cann": 0x19E5}


def type_of(array: np.ndarray) -> str:
    """An array's type as onnxruntime names it: tensor(float)."""
    if array.dtype.kind in "OUS":
        return "tensor(string)"
    return f"tensor({TYPES.get(array.dtype.name, array.dtype.name)})"


def at(what: str, address: Any, shape: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """The memory at an address as an array; the caller answers for it."""
    if not isinstance(address, (int, np.integer)) or isinstance(address, bool) or address < 0:
        raise DTypeError(f"{what}: buffer_ptr is {shown(address)}: expected an address")
    sizes = sizes_of(what, shape)
    size = int(np.prod(sizes, dtype=object)) * dtype.itemsize
    if size == 0:
        return np.empty(sizes, dtype)
    if address == 0:
        raise ArgumentError(f"{what}: buffer_ptr is 0: expected the address of {size} bytes")
    memory: Any = (ctypes.c_char * size).from_address(int(address))
    array: np.ndarray = np.ndarray(sizes, dtype, memory)
    return array


def sizes_of(what: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints."""
    try:
        sizes = tuple(int(size) for size in shape)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"{what}: incompatible function arguments: shape is {shown(shape)}: expected ints ({error})") from error
    if any(size < 0 for size in sizes):
        raise OrtRuntimeError(f"{what}: Tensor shape.Size() must be >= 0: shape is {shown(shape)}")
    return sizes


def dtype_of(what: str, kind: Any) -> tuple[np.dtype[Any], int]:
    """The dtype of an element type, which is one of numpy's or a number of ONNX, and that number."""
    if isinstance(kind, (int, np.integer)) and not isinstance(kind, (bool, type)):
        if int(kind) in _FOREIGN:
            return np.dtype(f"u{_FOREIGN[int(kind)][1]}"), int(kind)
        kind = _NAMES.get(int(kind), "")
    try:
        dtype = np.dtype(kind)
    except TypeError as error:
        raise OrtRuntimeError(f"{what}: Not a valid numpy type: {shown(kind)}") from error
    if dtype.name not in NUMBERS or dtype.kind == "O" or kind == "":
        raise OrtRuntimeError(f"{what}: Not a valid numpy type: {shown(kind)}")
    return dtype, NUMBERS[dtype.name]


class OrtDevice:
    """A device by its values; arrays can be on the processor alone."""

    def __init__(self, kind: Any, memory: int = 0, vendor: int = 0, number: int = 0) -> None:
        if isinstance(kind, OrtDevice):
            kind, memory, vendor, number = kind._numbers
        if isinstance(kind, bool) or not isinstance(kind, int):
            raise ArgumentError("`Provided object` needs to be of type `onnxruntime.capi.onnxruntime_pybind11_state.OrtDevice`")
        self._numbers: tuple[int, int, int, int] = (kind, memory, vendor, number)

    def _get_c_device(self) -> OrtDevice:
        return self

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int | OrtDeviceVendorId = -1) -> OrtDevice:
        """The device of a name, such as "cpu" or "cuda".

        Raises:
            Error: there is no such name.
        """
        if ort_device_name not in _DEVICES:
            raise Error(f"Unsupported device type: {ort_device_name}")
        vendor = _VENDORS.get(ort_device_name, 0) if vendor_id < 0 else int(vendor_id)
        return OrtDevice(_DEVICES[ort_device_name], 0, vendor, int(device_id))

    @staticmethod
    def cpu() -> int:
        """The number of processors as devices."""
        return 0

    @staticmethod
    def cuda() -> int:
        """The number of GPUs as devices."""
        return 1

    @staticmethod
    def default_memory() -> int:
        """The number of a device's ordinary memory."""
        return 0

    def device_type(self) -> int:
        """0 for the processor."""
        return self._numbers[0]

    def device_mem_type(self) -> int:
        """0 for ordinary memory."""
        return self._numbers[1]

    def device_vendor_id(self) -> int:
        """The PCI vendor's number, 0 for none."""
        return self._numbers[2]

    def device_id(self) -> int:
        """The number of the device among several."""
        return self._numbers[3]


def _here(name: str, number: int, vendor: int) -> None:
    if OrtDevice.make(name.lower(), number, vendor).device_type() != 0:
        raise OrtRuntimeError(_ELSEWHERE)


class OrtValue:
    """An input or output: a tensor in the memory of a numpy array, a list of tensors, or an optional without a value.

    >>> import numpy as np, fastlayers.ort as ort
    >>> value = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    >>> value.shape(), value.data_type(), value.device_name()
    ([2, 3], 'tensor(float)', 'cpu')
    """

    __slots__ = ("__weakref__", "_data", "_number")

    # Its parts have a separate class there; here it is one.
    _session: Any = None
    _is_webgpu_buffer = False

    def __init__(self, ortvalue: OrtValue, numpy_obj: Any = None, session: Any = None) -> None:
        if not isinstance(ortvalue, OrtValue):
            raise ArgumentError(
                "`Provided ortvalue` needs to be of type `onnxruntime.capi.onnxruntime_pybind11_state.OrtValue`: "
                f"{shown(ortvalue)} is of type {type(ortvalue).__name__}; ortvalue_from_numpy takes arrays"
            )
        self._data: Any = ortvalue._data
        self._number: int = ortvalue._number

    @classmethod
    def _of(cls, data: Any, number: int = 0) -> OrtValue:
        """A value of what a run takes or gives."""
        made = cls.__new__(cls)
        made._data, made._number = data, number
        if not number and isinstance(data, np.ndarray):
            made._number = NUMBERS.get(data.dtype.name, 0)
        return made

    @property
    def _ortvalue(self) -> OrtValue:
        return self

    @property
    def _numpy_obj(self) -> Any:
        return self._data

    def _get_c_value(self) -> OrtValue:
        return self

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """A tensor in the memory of the array, or in a copy if that is not C-contiguous.

        Raises:
            OrtRuntimeError: it is no array of values, or the device is not the processor.
        """
        _here(device_type if isinstance(device_type, str) else "cpu", device_id, vendor_id)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.name not in NUMBERS or numpy_obj.dtype.kind == "O":
            raise OrtRuntimeError(
                "Creation of OrtValues is currently only supported from non-string numpy arrays: "
                f"got {getattr(numpy_obj, 'dtype', type(numpy_obj).__name__)}"
            )
        if is_masked(numpy_obj):
            raise OrtRuntimeError("ortvalue_from_numpy: a masked array was given: expected a plain one, for example x.filled(0)")
        native = numpy_obj if numpy_obj.dtype.isnative else numpy_obj.astype(numpy_obj.dtype.newbyteorder("="))
        return cls._of(np.require(native, None, ["C", "A"]))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """The array's bytes as elements of a type of ONNX that numpy may lack.

        Raises:
            OrtRuntimeError: elements of that type have another size, or there is no such type.
        """
        what = "ortvalue_from_numpy_with_onnx_type"
        if not isinstance(data, np.ndarray):
            raise DTypeError(f"{what}: incompatible function arguments: {shown(data)}: expected an array")
        dtype, number = dtype_of(what, onnx_element_type)
        if data.dtype.itemsize != dtype.itemsize:
            raise OrtRuntimeError(
                f"{what}: Items size in the incoming array: {data.dtype.itemsize} specified by onnxtype: {dtype.itemsize}"
            )
        return cls._of(np.ascontiguousarray(data).view(dtype).reshape(data.shape), number)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: Any = None,
    ) -> OrtValue:
        """A tensor of fresh memory; what is in it is not said.

        Raises:
            OrtRuntimeError: there is no such type, a size is negative, or the device is not the processor.
        """
        what = "ortvalue_from_shape_and_type"
        if memory_info is None:
            _here(device_type, device_id, vendor_id)
        dtype, number = dtype_of(what, element_type)
        return cls._of(np.empty(sizes_of(what, shape), dtype), number)

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: Any) -> OrtValue:
        """Cannot be had.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("OrtValue: sparse tensors are not supported: expected a dense array")

    def as_sparse_tensor(self) -> Any:
        """Cannot be had: no value is one.

        Raises:
            OrtRuntimeError: always.
        """
        raise OrtRuntimeError("OrtValue: it is no sparse tensor")

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """A tensor in the memory of what has ``__dlpack__``, or of a capsule of it.

        Raises:
            DTypeError: it has none.
        """
        try:
            array = np.from_dlpack(data if hasattr(data, "__dlpack__") else _Capsule(data))
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
            raise DTypeError(f"OrtValue.from_dlpack: {shown(data)} gives no tensor of the processor: {error}") from error
        return cls.ortvalue_from_numpy(array)

    def _array(self) -> np.ndarray:
        if not isinstance(self._data, np.ndarray):
            raise OrtRuntimeError(f"OrtValue: Only OrtValues that are Tensors are currently supported: it is {self.data_type()}")
        return self._data

    def numpy(self) -> np.ndarray:
        """The tensor as an array in the same memory.

        Raises:
            OrtRuntimeError: it is no tensor, or of a type that numpy lacks.
        """
        if self._number in _FOREIGN:
            raise OrtRuntimeError(f"No corresponding Numpy type for Tensor Type. {_FOREIGN[self._number][0]}")
        return self._array()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if copy is not None:
            return np.array(array, dtype=dtype, copy=copy)
        return array if dtype is None else np.asarray(array, dtype=dtype)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.numpy().__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array().ctypes.data)

    def device_name(self) -> str:
        """ "cpu"."""
        return "cpu"

    def shape(self) -> list[int]:
        """The sizes of a tensor."""
        return list(self._array().shape)

    def data_type(self) -> str:
        """The type as onnxruntime names it, such as "tensor(float)" or "seq(tensor(int64))"."""
        if self._number in _FOREIGN:
            return f"tensor({_FOREIGN[self._number][0]})"
        if isinstance(self._data, np.ndarray):
            return type_of(self._data)
        if isinstance(self._data, (list, tuple)):
            first = self._data[0] if len(self._data) else np.empty(0, np.float32)
            return f"seq({type_of(first)})" if isinstance(first, np.ndarray) else "seq(map)"
        return "optional" if self._data is None else "map"

    def element_type(self) -> int:
        """The number of the type of a tensor's elements, as in onnx's TensorProto."""
        self._array()
        return self._number

    def tensor_size_in_bytes(self) -> int:
        """The bytes that a tensor takes."""
        return self._array().nbytes

    def has_value(self) -> bool:
        """Whether it is not an optional without a value."""
        return self._data is not None

    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self._data, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Whether it is a sparse tensor: none is."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a list of tensors."""
        return isinstance(self._data, (list, tuple)) and all(isinstance(item, np.ndarray) for item in self._data)

    def update_inplace(self, data: Any) -> None:
        """Writes an array's, or another value's, elements into this one's memory.

        Raises:
            DTypeError: it is neither, or of another type.
            OrtRuntimeError: it has another number of elements.
        """
        target, number = self._array(), self._number
        given = data._array() if isinstance(data, OrtValue) else data
        if not isinstance(given, np.ndarray):
            raise DTypeError("data must be a numpy.ndarray or an OrtValue.")
        if given.size != target.size:
            raise OrtRuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        if given.dtype != target.dtype or (isinstance(data, OrtValue) and data._number != number):
            raise DTypeError(f"OrtValue.update_inplace: data is {type_of(given)}: expected {self.data_type()}")
        target[...] = given.reshape(target.shape)

    def _feed(self) -> Any:
        """The array that a model takes for a value."""
        if self._number == BFLOAT16:
            return (self._data.astype(np.uint32) << 16).view(np.float32)
        if self._number in _FOREIGN:
            raise UnsupportedError(f"OrtValue: inputs of type {self.data_type()} are not supported: give them as float32")
        return self._data


class _Capsule:
    """A raw capsule, as an object that numpy takes."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **ignored: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class OrtValueVector(list[OrtValue]):
    """Several values."""

    def push_back(self, value: OrtValue) -> None:
        """Adds one."""
        self.append(value)

    def shrink_to_fit(self) -> None:
        """Changes nothing."""

    def reserve(self, number: int) -> None:
        """Changes nothing."""

    def to_numpy(self) -> list[np.ndarray]:
        """All as arrays."""
        return [value.numpy() for value in self]


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Writes the elements of each value of `src` into the one of `dst` in its place.

    Raises:
        ArgumentError: they are not equally many.
    """
    if len(src) != len(dst):
        raise ArgumentError(f"copy_tensors: {len(src)} values are given for {len(dst)}: expected as many")
    for source, target in zip(src, dst, strict=True):
        target.update_inplace(source)
