"""From what a caller gives to the arrays that a program takes: names, kinds, shapes. Every error says which input and what was
expected.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._arguments import shown
from .._masked import is_masked
from ..errors import ArgumentError, DTypeError, LimitError, ShapeError
from ..ir.graph import Graph, Value

__all__ = ["by_name", "convert", "destination", "fits", "kind", "on_device", "placeholders", "shaped"]

_KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}
# The kinds that an input of a kind takes.
_TAKEN = {"float": ("float", "int", "bool"), "int": ("int", "bool"), "bool": ("bool",)}


def kind(dtype: np.dtype[Any]) -> str:
    """The kind of a dtype: float, int or bool; "" for what is no number."""
    return _KINDS.get(dtype.kind, "")


def by_name(inputs: Sequence[Value], feeds: Any, what: str = "run: feeds") -> list[Any]:
    """The values of a mapping in the order of the inputs: exactly their names."""
    if not isinstance(feeds, Mapping):
        raise DTypeError(f"{what} is of type {type(feeds).__name__}: expected a dict of arrays by name")
    names = [value.name for value in inputs]
    missing, unknown = [n for n in names if n not in feeds], [n for n in feeds if n not in names]
    if missing or unknown:
        parts = [f"lacks {missing}"] * bool(missing) + [f"has {unknown}, which is no input"] * bool(unknown)
        raise ArgumentError(f"{what} {' and '.join(parts)}: expected exactly {names}")
    return [feeds[name] for name in names]


def convert(value: Value, given: Any) -> Any:
    """One input as a contiguous array of the wanted dtype; a list of such for a sequence.

    Casts are within a kind, or upwards: integers and booleans become floats, as pictures of bytes do, and booleans integers.
    Floats never become integers, and integers that the wanted dtype cannot hold are refused.
    """
    if value.kind != "tensor":
        return _mapping(value, given) if "map" in value.kind else _nested(value, given)
    if value.dtype.kind == "O":
        return shaped(value, strings(f"run: input {value.name!r}", given))
    if given.__class__ is np.ndarray and given.dtype == value.dtype and given.dtype.isnative:
        flags = given.flags
        if flags.c_contiguous and flags.aligned:
            return shaped(value, given)
    if is_masked(given):
        raise DTypeError(f"run: input {value.name!r} is a masked array: expected a plain one, for example x.filled(0)")
    try:
        array = _read(value, given)
        if array.dtype != value.dtype:
            array = _cast(value, _widened(array), given)
        array = np.require(shaped(value, array), None, ["C", "A"])
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    except MemoryError as error:
        if isinstance(error, LimitError):
            raise
        raise LimitError(f"run: input {value.name!r}: no memory for a copy of it as {value.dtype}: {error}") from error


def strings(where: str, given: Any) -> np.ndarray:
    """An array of objects, each of which is a str, from anything that numpy takes for an array of strings."""
    try:
        array = given if isinstance(given, np.ndarray) else np.asarray(given, object)
        if array.dtype.kind not in "OU":
            raise TypeError(f"its dtype is {array.dtype}")
        made = np.empty(array.shape, object)
        for i, item in enumerate(array.flat):
            if not isinstance(item, str):
                raise TypeError(f"element {i} is of type {type(item).__name__}")
            made.flat[i] = str(item)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"{where} is to have strings, but {error}: expected an array or a list of str") from error
    return made


def _mapping(value: Value, given: Any) -> dict[Any, Any]:
    if not isinstance(given, Mapping):
        raise DTypeError(f"run: input {value.name!r} is of type {type(given).__name__}: expected a dict")
    return dict(given)


def _read(value: Value, given: Any) -> np.ndarray:
    from .._foreign import as_numpy

    try:
        return as_numpy(given)
    except MemoryError:
        raise
    except Exception as error:
        raise DTypeError(
            f"run: input {value.name!r} of type {type(given).__name__} cannot be read as an array ({error})"
        ) from error


def _widened(array: np.ndarray) -> np.ndarray:
    """An array of a type of the package ml_dtypes (bfloat16, float8_e4m3fn, int4, …) as one of numpy's, exactly."""
    if array.dtype.kind == "V" and array.dtype.type.__module__ == "ml_dtypes":
        name = array.dtype.name
        return array.astype(np.float32 if "float" in name else np.uint8 if name.startswith("u") else np.int8)
    return array


def _nested(value: Value, given: Any) -> Any:
    """A list of arrays, or None, where the input is of such a kind."""
    if given is None and value.kind.startswith("optional"):
        return None
    if "sequence" not in value.kind:
        return _element(value, given)
    if not isinstance(given, (list, tuple)):
        also = " or None" if value.kind.startswith("optional") else ""
        raise DTypeError(f"run: input {value.name!r} is of type {type(given).__name__}: expected a list of arrays{also}")
    return [_element(value._replace(name=f"{value.name}[{i}]"), array) for i, array in enumerate(given)]


def _element(value: Value, given: Any) -> np.ndarray:
    """An array of a list, of which a file may leave open what its elements are."""
    if value.dtype.kind != "V":
        return convert(Value(value.name, None, value.dtype), given)  # type: ignore[no-any-return]
    try:
        dtype = _read(value, given).dtype
    except DTypeError:
        dtype = np.dtype(np.float32)
    return convert(Value(value.name, None, dtype if kind(dtype) else np.dtype(np.float32)), given)  # type: ignore[no-any-return]


def _cast(value: Value, array: np.ndarray, given: Any) -> np.ndarray:
    have, want = kind(array.dtype), kind(value.dtype)
    if have not in _TAKEN.get(want, ()):
        if array.ndim == 0 and array.dtype.kind in "OSU" and not isinstance(given, (np.ndarray, np.generic)):
            what = f"{shown(given)} of type {type(given).__name__}"
            file = "; files are not opened: read it, and give its values" * isinstance(given, (str, bytes, os.PathLike))
            raise DTypeError(f"run: input {value.name!r} is {what}: expected an array of {value.dtype}{file}")
        taken = " or ".join(_TAKEN[want]) if want else value.dtype.name
        hint = "" if array.dtype.kind in "SU" else f"; convert it yourself, for example with .astype({value.dtype.name!r})"
        raise DTypeError(
            f"run: input {value.name!r} has dtype {array.dtype}: expected {value.dtype} or another {taken} dtype{hint}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        made = array.astype(value.dtype)
    if have == want == "int" and not np.can_cast(array.dtype, value.dtype) and not np.array_equal(made, array):
        raise DTypeError(f"run: input {value.name!r} of dtype {array.dtype} has values that {value.dtype} cannot hold")
    return made


def shaped(value: Value, array: np.ndarray) -> np.ndarray:
    """The array, if an input may have its shape; one of a single element is taken for a scalar, as ONNX Runtime takes it."""
    if value.shape == () and array.ndim and array.size == 1:
        return array.reshape(())
    fits(value, array.shape)
    return array


def fits(value: Value, shape: tuple[int, ...], what: str = "run") -> None:
    """Raises unless an input may have this shape."""
    want = value.shape
    if want is None:
        return
    if len(shape) != len(want) or any(isinstance(d, int) and d != size for d, size in zip(want, shape, strict=True)):
        expected = f"{tuple('?' if d is None else d for d in want)}"  # from a file, which may give it a thousand axes
        raise ShapeError(f"{what}: input {value.name!r} has shape {shape}: expected {expected:.500}")


def destination(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], inputs: Sequence[np.ndarray]) -> np.ndarray:
    """A caller's own array for an output, if the result can be written straight into it."""
    if not isinstance(array, np.ndarray) or is_masked(array):
        raise DTypeError(f"run: out for {name!r} is of type {type(array).__name__}: expected a numpy array")
    if array.dtype != dtype:
        raise DTypeError(f"run: out for {name!r} has dtype {array.dtype}: expected {dtype}")
    if array.shape != shape:
        raise ShapeError(f"run: out for {name!r} has shape {array.shape}: expected {shape}")
    if not array.flags.writeable or not array.flags.c_contiguous or not array.flags.aligned:
        raise ArgumentError(f"run: out for {name!r} is read-only or not C-contiguous: expected a writable C-contiguous array")
    if any(np.may_share_memory(array, given) for given in inputs):
        raise ArgumentError(f"run: out for {name!r} shares memory with an input: expected memory of its own")
    return array


def on_device(graph: Graph, by_value: Sequence[int], given: Sequence[Any], out: Any) -> list[Any]:
    """Inputs on the device that they are on; those whose values decide sizes are brought to the host."""
    from ..program.on_device import feed, is_on_device

    arrays: list[Any] = []
    for i, (value, array) in enumerate(zip(graph.inputs, given, strict=True)):
        if not is_on_device(array):
            arrays.append(convert(value, array))
            continue
        if out is not None:
            raise DTypeError(f"run: input {value.name!r} is on the GPU, so results are too: expected no out")
        array = feed(array, f"run: input {value.name!r}")
        if array.dtype != value.dtype:
            raise DTypeError(f"run: input {value.name!r} on the GPU has dtype {array.dtype}: expected {value.dtype}")
        fits(value, array.shape)
        arrays.append(array.numpy() if i in by_value else array)
    return arrays


def only_values(graph: Graph) -> dict[str, int]:
    """Inputs that must be one of a few numbers, each with the first of them: what stands for them where values are not given."""
    return {str(node.inputs[1]): int(node.attributes["values"][0]) for node in graph.nodes if node.op == "OneOf"}


def placeholders(graph: Graph, by_value: Sequence[int], shapes: Any, what: str) -> list[np.ndarray]:
    """Arrays of these shapes that take no memory; arrays among `shapes` are taken as they are. One input's shape may be alone."""
    from ..ir.checks import sequence

    inputs, only = graph.inputs, only_values(graph)
    if len(inputs) == 1 and (isinstance(shapes, np.ndarray) or _is_shape(shapes)):
        shapes = [shapes]
    given = by_name(inputs, shapes, f"{what}: shapes") if isinstance(shapes, Mapping) else sequence(what, "shapes", shapes)
    if len(given) != len(inputs):
        raise ArgumentError(f"{what}: {len(given)} shapes were given: expected {len(inputs)}")
    arrays = []
    for i, (value, shape) in enumerate(zip(inputs, given, strict=True)):
        if isinstance(shape, np.ndarray) or value.kind != "tensor":
            arrays.append(convert(value, shape))
            continue
        if i in by_value and value.name not in only:
            raise ArgumentError(
                f"{what}: the values of input {value.name!r} decide sizes: expected an array instead of the shape {shape}"
            )
        if not isinstance(shape, (tuple, list)) or not all(isinstance(d, (int, np.integer)) and d >= 0 for d in shape):
            raise ShapeError(
                f"{what}: the shape of input {value.name!r} is {shown(shape)}: expected a tuple of sizes, or an array"
            )
        fits(value, tuple(shape), what)
        arrays.append(np.broadcast_to(np.array(only.get(value.name, 0), value.dtype), tuple(shape)))
    return arrays


def _is_shape(shapes: Any) -> bool:
    """Whether it is one shape, and not several."""
    return isinstance(shapes, (tuple, list)) and bool(shapes) and all(isinstance(d, (int, np.integer)) for d in shapes)
