"""Results in the caller's own arrays (`out=`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DTypeError, LimitError
from ..kernels.dispatch import empty
from .feeds import destination

__all__ = ["into"]


def into(binding: Any, arrays: Sequence[Any], names: Sequence[str], out: Mapping[str, Any], threads: int) -> Sequence[Any]:
    """Runs a binding; the results of `names`, those that `out` has in its arrays.

    Raises:
        ArgumentError: `out` has a name that is not asked for, or memory that belongs to another array.
        DTypeError, ShapeError: an array cannot hold its result.
    """
    if unknown := [name for name in out if name not in names]:
        raise ArgumentError(f"run: out has {unknown}, which is not asked for: expected some of {list(names)}")
    own = len(out) == len(names) or binding.program.gpu is None  # else what is not in `out` stays on the device
    if binding.staged or binding.counted or not own or any(_is_input(array, arrays) for array in out.values()):
        results = binding.run(arrays, None, threads)
        targets = {}
        for name, result in zip(names, results, strict=True):
            if name not in out:
                continue
            if not isinstance(result, np.ndarray):
                raise DTypeError(f"run: out has {name!r}, which is no array but a sequence or None: expected none for it")
            others = [a for a in arrays if not _same(out[name], a)]
            targets[name] = destination(name, out[name], result.shape, result.dtype, others)
        _apart(list(targets.values()))
        for name, result in zip(names, results, strict=True):
            if name in targets:
                targets[name][...] = result
        return [out.get(name, result) for name, result in zip(names, results, strict=True)]
    made = [
        destination(name, out[name], shape, dtype, arrays) if name in out else _fresh(shape, dtype)
        for name, (shape, dtype) in zip(names, binding.outputs, strict=True)
    ]
    _apart(made)
    binding.run(arrays, made, threads)
    return made


def _fresh(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Memory for a result that no array was given for."""
    try:
        return empty(shape) if dtype == np.float32 else np.empty(shape, dtype)
    except MemoryError as error:
        raise LimitError(f"run: no memory for an output of shape {shape}: {error}") from error


def _same(array: Any, given: Any) -> bool:
    """Whether two arrays are the same elements in memory."""
    both = isinstance(array, np.ndarray) and isinstance(given, np.ndarray) and array.size > 0
    return both and array.__array_interface__ == given.__array_interface__


def _is_input(array: Any, arrays: Sequence[Any]) -> bool:
    """Whether a result is to take the place of an input, as a cache does: it is computed first, and copied then."""
    return any(_same(array, given) for given in arrays)


def _apart(targets: Sequence[np.ndarray]) -> None:
    if len({id(t) for t in targets}) != len(targets) or any(
        np.may_share_memory(a, b) for i, a in enumerate(targets) for b in targets[i + 1 :]
    ):
        raise ArgumentError("run: arrays of out share memory: expected separate arrays for the outputs")
