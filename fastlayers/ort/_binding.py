"""IOBinding: inputs and outputs that stay bound from run to run, also to memory given by its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import shown
from ..errors import ArgumentError, DTypeError, ShapeError
from ._errors import Fail, OrtError, OrtRuntimeError
from ._values import OrtDevice, OrtValue, OrtValueVector, at, dtype_of

if TYPE_CHECKING:
    from ._core import Core
    from ._options import RunOptions

__all__ = ["IOBinding", "SessionIOBinding"]


class SessionIOBinding:
    """The inner object of an `IOBinding`."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._inputs: dict[str, Any] = {}
        self._targets: dict[str, OrtValue | None] = {}
        self._results: dict[str, OrtValue] = {}

    def bind_input(self, name: str, *given: Any) -> None:
        """An array; or a device, an element type, a shape and an address."""
        if len(given) == 1:
            self._bind_array(name, given[0])
            return
        device, kind, shape, address = given
        if name not in self._core._by_name:
            raise OrtRuntimeError(f"Error when binding input: Failed to find input name in the mapping: {name}")
        if device.device_type() != 0:
            raise OrtRuntimeError(
                "Error when binding input: There's no data transfer registered for copying tensors from that device: expected "
                "memory of the processor"
            )
        dtype, number = dtype_of(f"bind_input: {name!r}", kind)
        self._inputs[name] = OrtValue._of(at(f"bind_input: {name!r}", address, shape, dtype), number)

    def _bind_array(self, name: str, array: Any) -> None:
        if name not in self._core._by_name:
            raise OrtRuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        if not isinstance(array, np.ndarray):
            raise OrtRuntimeError(f"Unable to create OrtValue from the given python object: {shown(array)}")
        self._inputs[name] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Binds an OrtValue to an input."""
        if name not in self._core._by_name:
            raise OrtRuntimeError(f"Error when binding input: Failed to find input name in the mapping: {name}")
        if not isinstance(value, OrtValue):
            raise DTypeError(f"bind_ortvalue_input: {name!r} is of type {type(value).__name__}: expected OrtValue")
        self._inputs[name] = value

    def bind_output(self, name: str, device: OrtDevice, kind: Any = None, shape: Any = None, address: Any = None) -> None:
        """Memory for an output, or none for fresh memory in every run."""
        if device.device_type() != 0:
            raise OrtRuntimeError("Error when binding output: expected memory of the processor: no other device is there")
        if address is None:
            self._bind_output(name, None)
            return
        dtype, number = dtype_of(f"bind_output: {name!r}", kind)
        self._bind_output(name, OrtValue._of(at(f"bind_output: {name!r}", address, shape, dtype), number))

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """A value that an output is written into."""
        if not isinstance(value, OrtValue):
            raise DTypeError(f"bind_ortvalue_output: {name!r} is of type {type(value).__name__}: expected OrtValue")
        self._bind_output(name, value)

    def _bind_output(self, name: str, target: OrtValue | None) -> None:
        if not isinstance(name, str):
            raise DTypeError(f"bind_output(): incompatible function arguments: name is {shown(name)}: expected a str")
        self._targets[name] = target
        self._results.pop(name, None)

    def run(self, options: RunOptions | None) -> None:
        """Runs the model on what is bound."""
        try:
            self._run(options)
        except OrtError as error:
            raise OrtRuntimeError(f"Error in execution: {error.text}") from error

    def _run(self, options: RunOptions | None) -> None:
        core, names = self._core, list(self._targets)
        core._names(names)
        if not names:
            raise Fail("At least one output should be requested.")
        if missing := [name for name in core._required if name not in self._inputs]:
            raise Fail(f"Missing Input: {', '.join(missing)}")
        arrays = {name: core._checked(name, value) for name, value in self._inputs.items()}
        for spec in core._inputs:
            arrays.setdefault(spec.name, None)
        outputs = {spec.name: spec for spec in core.outputs_meta}
        for name, target in self._targets.items():
            if target is not None and target.data_type() != outputs[name].type:
                raise Fail(f"Unexpected output data type. Actual: ({target.data_type()}) , expected: ({outputs[name].type})")
        memories = {name: target._array() for name, target in self._targets.items() if target is not None}
        direct = {name: memory for name, memory in memories.items() if _apart(memory, [*arrays.values(), *memories.values()])}
        try:
            found = core._given(arrays, names, direct or None, options)
        except Fail as error:
            if isinstance(error.__cause__, ShapeError) and "out for" in str(error.__cause__):
                told = f"has another shape than the computed output shape for this run ({error.__cause__})"
                raise Fail(f"The output OrtValue provided {told}") from error
            raise
        for name, result in zip(names, found, strict=True):
            target = self._targets[name]
            if target is None:
                self._results[name] = OrtValue._of(result)
                continue
            memory = target._array()
            if memory is not result:
                if memory.shape != np.shape(result):
                    raise Fail(
                        f"The output OrtValue provided for output '{name}' has shape {_shape(memory.shape)} but the computed "
                        f"output shape for this run is {_shape(np.shape(result))}."
                    )
                memory[...] = result
            self._results[name] = target

    def get_outputs(self) -> OrtValueVector:
        """The outputs of the last run, in the order in which they were bound."""
        return OrtValueVector(self._results[name] for name in self._targets if name in self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run as their own arrays."""
        return [np.array(value._data) if value.is_tensor() else value._data for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        """Binds no inputs any more."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Binds no outputs any more."""
        self._targets.clear()
        self._results.clear()

    def synchronize_inputs(self) -> None:
        """Changes nothing: there is nothing to wait for."""

    def synchronize_outputs(self) -> None:
        """Changes nothing: there is nothing to wait for."""


def _shape(sizes: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, sizes)) + "}"


def _apart(memory: np.ndarray, others: list[Any]) -> bool:
    """Whether results can be written straight there: what shares memory with an input or with another output gets a copy."""
    if not memory.flags.writeable or not memory.flags.c_contiguous or not memory.flags.aligned:
        return False
    shared = sum(isinstance(other, np.ndarray) and np.may_share_memory(memory, other) for other in others)
    return shared == int(memory.size > 0)  # itself


class IOBinding:
    """Inputs and outputs of a session that are bound to memory; made by `Session.io_binding`."""

    def __init__(self, session: Any) -> None:
        self._session = session._sess
        self._iobinding = SessionIOBinding(session._sess)
        self._numpy_obj_references: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Binds an input to an array, whose elements are read in every run."""
        self._iobinding.bind_input(name, arr_on_cpu)
        self._numpy_obj_references[name] = arr_on_cpu

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Any, buffer_ptr: int) -> None:
        """Binds an input to memory that must stay where it is.

        Args:
            name: the input's.
            device_type: "cpu".
            device_id: 0.
            element_type: a type of numpy, or a number of onnx's TensorProto.
            shape: the sizes.
            buffer_ptr: the address of the first element.
        """
        self._iobinding.bind_input(name, OrtDevice.make(device_type, device_id), element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an input to a value."""
        self._iobinding.bind_ortvalue_input(name, ortvalue)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Any = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Binds an output: to memory that must stay where it is, or, without an address, to fresh memory in every run."""
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise ArgumentError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._iobinding.bind_output(name, OrtDevice.make(device_type, device_id), element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an output to a value, which is written into."""
        self._iobinding.bind_ortvalue_output(name, ortvalue)

    def synchronize_inputs(self) -> None:
        """Changes nothing: there is nothing to wait for."""

    def synchronize_outputs(self) -> None:
        """Changes nothing: there is nothing to wait for."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._iobinding.get_outputs())

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """The same."""
        return self._iobinding.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run as their own arrays."""
        return self._iobinding.copy_outputs_to_cpu()

    def clear_binding_inputs(self) -> None:
        """Binds no inputs any more."""
        self._iobinding.clear_binding_inputs()
        self._numpy_obj_references.clear()

    def clear_binding_outputs(self) -> None:
        """Binds no outputs any more."""
        self._iobinding.clear_binding_outputs()
