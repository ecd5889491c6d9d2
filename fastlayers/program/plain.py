"""The plain executor: runs a plan call by call with the kernels of any variant. The compiled engine has a faster one
(`kernels.aot.run`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._deadline import check
from ..errors import LimitError, ours
from ..operators.builder import CONSTANT, INPUT, OUTPUT, Buffer, Call, Ref
from .trace import Plan

__all__ = ["execute", "fresh", "store"]


def execute(
    plan: Plan, kernels: Mapping[str, Callable[..., Any]], inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
) -> None:
    """Runs a plan. Inputs and outputs are contiguous arrays of the shapes and dtypes that it was made for."""
    memory: dict[int, np.ndarray] = {}

    def raw(buffer: Buffer) -> np.ndarray:
        found = memory.get(id(buffer))
        if found is None:
            if buffer.space == INPUT:
                found = inputs[buffer.index].reshape(-1).view(np.uint8)
            elif buffer.space == OUTPUT:
                found = outputs[buffer.index].reshape(-1).view(np.uint8)
            elif buffer.space == CONSTANT:
                found = buffer.array.reshape(-1).view(np.uint8)  # type: ignore[union-attr]
            else:
                found = np.empty(buffer.nbytes, np.uint8)
            memory[id(buffer)] = found
        return found

    def array(ref: Ref) -> np.ndarray:
        root, offset = ref.buffer.root()
        offset += ref.offset
        return raw(root)[offset : offset + ref.nbytes].view(ref.dtype).reshape(ref.shape)

    for number, call in enumerate(plan.calls):
        check()
        try:
            if isinstance(call, Call):
                with ours(lambda name=call.kernel: f"run: {name}"):  # type: ignore[misc]
                    kernels[call.kernel](*[array(a) if isinstance(a, Ref) else a for a in call.args])
            else:
                run = call.function  # type: ignore[union-attr] # branches and loops run in stages here
                results = run(*[None if r is None else array(r) for r in call.inputs])
                store(results, [None if r is None else array(r) for r in call.outputs])
        except LimitError:
            raise
        except MemoryError as error:
            raise LimitError(f"run: no memory for a step: {error}") from error
        for ref in call.args if isinstance(call, Call) else call.inputs:
            if isinstance(ref, Ref):
                root = ref.buffer.root()[0]
                if root.last == number and root.space not in (INPUT, OUTPUT, CONSTANT):
                    memory.pop(id(root), None)


def store(results: Sequence[np.ndarray], outputs: Sequence[np.ndarray | None]) -> None:
    """Copies what a NumPy fallback returned to where the program wants it."""
    with np.errstate(all="ignore"):  # a dtype may not have the numbers
        for result, out in zip(results, outputs, strict=False):
            if out is not None:
                out[...] = result


def fresh(results: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """The results as arrays, and lists of arrays, that nothing else holds."""
    held = {id(array) for value in inputs for array in (value if isinstance(value, list) else [value])}

    def own(value: Any) -> Any:
        if isinstance(value, list):
            return [own(v) for v in value]
        if isinstance(value, dict):  # of ZipMap, which makes new ones
            return value
        if value is None or (id(value) not in held and value.base is None and value.flags.c_contiguous and value.flags.writeable):
            held.add(id(value))
            return value
        return np.array(value, order="C")

    return [own(value) for value in results]
