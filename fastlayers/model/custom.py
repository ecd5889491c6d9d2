"""Users' own operations: a function of theirs becomes an operator of recorded functions and of ONNX's custom domains."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._arguments import as_flag, shown
from ..errors import ArgumentError, DTypeError, ShapeError
from ..formats.onnx.canonical import DOMAINS
from ..formats.onnx.schema import NEWEST, Attribute, Schema
from ..graph.ops import op
from ..graph.symbol import Call
from ..ir.graph import Node
from ..operators import FLOAT32, OPERATORS, Operator, Spec, Traits, View

if TYPE_CHECKING:
    from ..operators.builder import Builder

__all__ = ["operator"]

F = TypeVar("F", bound=Callable[..., Any])
Infer = Callable[..., Any]

# Those that users have registered.
_DECLARED: set[str] = set()
# What an attribute's default, or annotation, makes of it in an ONNX file.
_TYPES: dict[type, str] = {bool: "i", int: "i", float: "f", str: "s"}


def operator(
    name: str, domain: str = "", infer: Infer | None = None, replace: bool = False, batched: bool = False
) -> Callable[[F], F]:
    """Registers a function of arrays as an operator: decorate it with ``@fl.operator("Name", "my.domain")``.

    The result is called like any function of `functional`: with arrays it computes, with the symbolic values of `compile` it is
    recorded. ONNX files may have nodes of this name in this domain. In a program it is a step of Python between two native
    ones; or, if ``numba.njit`` stands below this decorator and the compiled engine runs, a compiled step itself: it is called
    through its C address, without Python or its lock (if inputs are there and results are arrays).

    Parameters without a default are the operator's inputs, in order: contiguous arrays, which must not be changed, or None where
    a file leaves one out. Those with a default, or after a ``*``, are its attributes: bool, int, float, str, or a tuple of
    these. Calls on arrays, and recorded functions, convert inputs to float32; ONNX files hand over what they have. The result
    is an array, or a tuple, of the dtype that the function gave it in calls, and of that of the first input in models. The
    function may be called from several threads at once, and must give the same for the same.

    Args:
        name: of the operator.
        domain: in which ONNX files may use it; without one they may not.
        infer: gives the shape of the result, or a list of shapes if there are several, for the inputs' shapes (None for one that
            was left out) and attributes. In recorded functions a size may be a name. By default the result has the shape of the
            first input.
        replace: whether a function that was registered by this name before makes way, as in a notebook whose cells are run
            again; models that were made with it are to be made again. Operators of the library never make way.
        batched: whether row i of every result, along axis 0, depends on row i of the inputs alone, so that requests may run
            together (`Model.batch_axes`, ``fastlayers serve``).

    Returns:
        The decorator.

    Raises:
        DTypeError: what is decorated is no function, has no inputs, or an attribute of another type.
        ArgumentError: the name is taken.

    >>> import numpy as np, fastlayers as fl
    >>> @fl.operator("Doubled", "com.example")
    ... def doubled(x, *, times=1):
    ...     return x * np.float32(2**times)
    >>> doubled(np.ones(2, np.float32), times=3)
    array([8., 8.], dtype=float32)
    >>> model = fl.compile(lambda x: fl.functional.relu(doubled(x)), fl.graph.Input("x", ("n",)))
    >>> model(np.array([-1.0, 1.0]))
    array([0., 2.], dtype=float32)
    """
    if not isinstance(name, str) or not isinstance(domain, str) or not name:
        raise DTypeError(f"operator: name and domain are {shown(name)} and {shown(domain)}: expected strings, the name not empty")
    key = f"{domain}::{name}"
    as_flag("operator", "replace", replace)
    traits = Traits(rows=as_flag("operator", "batched", batched))

    def declare(function: F) -> F:
        tensors, attributes = _parameters(function, name)
        call = _by_position(function)
        if key in _DECLARED:
            if not replace:
                raise ArgumentError(
                    f"operator: {name} of domain {domain!r} is registered already: expected another name, or replace=True"
                )
            forget(name, domain)
        elif key in OPERATORS or name in DOMAINS.get(domain, {}):
            raise ArgumentError(f"operator: {name} of domain {domain!r} is the library's own: expected another name")

        def rule(**values: Any) -> Any:
            return _shapes(name, infer, [values.pop(tensor) for tensor in tensors], values)

        def infer_specs(n: View) -> list[Spec]:
            first = n.spec(0)
            given = [None if s is None else s.shape for s in n.inputs]
            given += [None] * (len(tensors) - len(given))
            known = all(s is None or s.static for s in n.inputs)
            if (
                infer is not None and not known
            ):  # some sizes are names alone: the user's function is not asked before they are numbers
                return [Spec(None, first.dtype)] * len(n.node.outputs)
            found = _shapes(name, infer, given, _given(n))
            shapes = found if isinstance(found, list) else [found]
            return [Spec(tuple(shape), first.dtype) for shape in shapes]

        def run(n: View, *arrays: np.ndarray | None) -> Sequence[np.ndarray]:
            given = [*map(seen, arrays), *([None] * (len(tensors) - len(arrays)))]
            result = call(*given, **_given(n))
            results = [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]
            wanted = infer_specs(View(n.node, [None if a is None else Spec(a.shape, a.dtype) for a in arrays], arrays))
            got, expected = [a.shape for a in results], [spec.shape for spec in wanted]
            if got != expected:
                raise ShapeError(f"{n.where}: the function returned the shapes {got}: expected {expected}, as `infer` has it")
            return [a.astype(spec.dtype, copy=False) for a, spec in zip(results, wanted, strict=True)]

        def seen(array: np.ndarray | None) -> np.ndarray | None:
            if array is None or hasattr(function, "py_func"):  # Numba would compile again for arrays that cannot be written
                return array
            view: np.ndarray = array.view()
            view.flags.writeable = False
            return view

        def lowered(n: View, b: Builder) -> None:
            inputs = [b.optional(i) for i in range(len(tensors))]
            outputs = [b.output(i) for i in range(len(n.node.outputs))]
            native = None if None in inputs else partial(_compiled, function, [*inputs], outputs, _given(n))
            b.python(partial(run, n), inputs, outputs, native)

        def records(*inputs: Any, **values: Any) -> Any:
            # The user's rule also takes sizes known by name alone, for which the operator's own rule would wait.
            found = _shapes(name, infer, [None if v is None else v.shape for v in inputs], values)
            shapes = found if isinstance(found, list) else [found]
            made = Call(key, inputs, values).give([(shape, FLOAT32) for shape in shapes])
            return made if isinstance(found, list) else made[0]

        recorded = op(key, " ".join(tensors), rule, records)(_plain(function, call, tensors, name))
        OPERATORS[key] = Operator(
            key, infer_specs, run, lowered if hasattr(function, "py_func") else None, traits, frozenset(attributes)
        )
        if domain:
            schema = Schema(1, 1, len(tensors), None, attributes)

            def turn(node: Node, version: int, make: Any) -> list[Node]:
                return [Node(key, node.inputs, node.outputs, node.attributes)]

            DOMAINS.setdefault(domain, {})[name] = (schema, turn)
        _DECLARED.add(key)
        return recorded  # type: ignore[return-value]

    return declare


def forget(name: str, domain: str = "") -> None:
    """Takes an operator out of every list again; models that were made with it keep working no longer."""
    key = f"{domain}::{name}"
    _DECLARED.discard(key)
    OPERATORS.pop(key, None)
    DOMAINS.get(domain, {}).pop(name, None)


def _compiled(function: Any, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """The C function that Numba makes of a user's, or None."""
    from ..kernels.jit.users import compiled

    def kinds(refs: Sequence[Any]) -> list[tuple[int, np.dtype[Any]]]:
        return [(len(ref.shape), ref.dtype) for ref in refs]

    return compiled(function, kinds(inputs), kinds(outputs), attributes)


def _given(n: View) -> dict[str, Any]:
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in n.node.attributes.items()}


def _shapes(name: str, infer: Infer | None, shapes: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    if infer is None:
        return shapes[0]
    try:
        found = infer(*shapes, **attributes)
    except (TypeError, ValueError, IndexError) as error:
        raise ShapeError(
            f"{name}: infer cannot tell the result's shape for inputs of the shapes {list(shapes)}: {error}"
        ) from error
    several = found if isinstance(found, list) else [found]
    if not several or not all(isinstance(shape, tuple) for shape in several):
        raise ShapeError(f"{name}: infer returned {found!r}: expected a shape (a tuple), or a list of shapes")
    return found


def _by_position(function: Any) -> Callable[..., Any]:
    """A caller of the function: Numba's functions take keyword-only parameters by position, and none of their defaults."""
    if not hasattr(function, "py_func") or not function.py_func.__code__.co_kwonlyargcount:
        return function  # type: ignore[no-any-return]
    from ..kernels.jit.users import positional

    signature, plain = inspect.signature(function.py_func), positional(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return plain(*bound.arguments.values())

    return call


def _plain(function: Callable[..., Any], call_it: Callable[..., Any], tensors: Sequence[str], name: str) -> Callable[..., Any]:
    """The function as it is called on arrays: its inputs become contiguous float32."""
    from ..graph.arrays import as_float32

    signature = inspect.signature(getattr(function, "py_func", function))

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for tensor in tensors:
            value = bound.arguments[tensor]
            bound.arguments[tensor] = None if value is None else as_float32(value, name, tensor)
        return call_it(*bound.args, **bound.kwargs)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", name)
    call.__doc__ = function.__doc__
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _parameters(function: Any, name: str) -> tuple[list[str], dict[str, Attribute]]:
    """The inputs' names, and the attributes as ONNX's schemas have them."""
    if not callable(function):
        raise DTypeError(f"operator: {name} is a {type(function).__name__}: expected a function")
    tensors: list[str] = []
    attributes: dict[str, Attribute] = {}
    for parameter in inspect.signature(getattr(function, "py_func", function)).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise DTypeError(f"operator: {name}: parameter {parameter} takes any number of values: expected inputs one by one")
        if parameter.kind is not parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            tensors.append(parameter.name)
            continue
        kind = _kind(parameter)
        if kind is None:
            raise DTypeError(
                f"operator: {name}: attribute {parameter}: expected a default (or an annotation) of bool, int, float or str, "
                "or a tuple of one of these as a default"
            )
        attributes[parameter.name] = Attribute(kind, parameter.default is parameter.empty, 0, NEWEST + 1)
    if not tensors:
        raise DTypeError(f"operator: {name} has no parameter without a default: expected one per input")
    return tensors, attributes


def _kind(parameter: inspect.Parameter) -> str | None:
    default = parameter.default
    if default is parameter.empty:
        annotations: dict[Any, str] = {**_TYPES, **{kind.__name__: code for kind, code in _TYPES.items()}}
        return annotations.get(parameter.annotation) if isinstance(parameter.annotation, (str, type)) else None
    if isinstance(default, (tuple, list)):
        kinds = {_TYPES.get(type(value)) for value in default}
        return f"{next(iter(kinds))}s" if len(kinds) == 1 and None not in kinds else None
    return _TYPES.get(type(default))
