"""Records a function of layers once: from symbolic calls to a `Graph`. Runs no kernel and rewrites nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, UnsupportedError
from ..ir.graph import Graph, Node, Value
from ..ir.names import Names
from ..operators import Spec
from ..operators.graphs import GraphBuilder
from .record import record
from .symbol import Call, Input, Label, Symbol

__all__ = ["trace"]


def trace(function: Callable[..., Any], *inputs: Any) -> Graph:
    """Records what a function, or a layer, does with its arguments.

    Args:
        function: called once, with symbolic values by position; returns a symbolic value, or a tuple, list or dict of them (also
            nested: LSTM's ``(out, (h, c))``). Its outputs are named ``output``, or ``output_0``, ... or by the keys of a dict.
        *inputs: one a positional argument: a `Symbol` made by `Input`, an array (its shape and dtype are taken, and the name
            ``input_<i>``), or a tuple or list of these for an argument that is one, such as LSTM's ``(h0, c0)``.

    Returns:
        The graph. Arrays that the function used, such as weights, are its constants; what does not lead to an output is left out.

    Raises:
        UnsupportedError: the function decides by the values of a symbolic value, or returns something else than symbolic values.

    >>> import numpy as np, fastlayers as fl
    >>> fl.graph.trace(lambda x: fl.functional.relu(x) * 2, fl.graph.Input("x", ("n", 3)))
    in  x float32['n', 3]
        relu = Relu(x)
        multiply = Mul(relu, const)
    out multiply float32['n', 3]
    """
    if not callable(function):
        raise DTypeError(f"trace: function is of type {type(function).__name__}: expected a function, or a layer")
    symbols: list[Symbol] = []
    result = function(*(_symbolic(value, symbols) for value in inputs))
    outputs = _distinct(_flatten(result), symbols)
    if len({symbol.name for symbol in symbols}) != len(symbols):
        raise UnsupportedError(f"trace: inputs are named {[s.name for s in symbols]}: expected names that differ")
    named = [(str(symbol.name), symbol) for symbol in symbols]
    return _Builder(named, _weights(function)).build(outputs, isinstance(result, dict))


def body_graph(inputs: Sequence[tuple[str, Symbol]], outputs: Sequence[Symbol]) -> Graph:
    """The graph from some symbolic values, by the names that they have in it, to others: what a loop runs."""
    distinct = _distinct([("output", symbol) for symbol in outputs], [symbol for _, symbol in inputs])
    return _Builder(inputs, {}).build(distinct, False)


def _symbolic(value: Any, symbols: list[Symbol]) -> Any:
    if isinstance(value, (tuple, list)) and not all(isinstance(v, (int, float)) for v in value):
        return type(value)(_symbolic(v, symbols) for v in value)
    if not isinstance(value, Symbol):
        from .arrays import as_array  # functional imports this package

        array = as_array(value, "trace", f"input {len(symbols)}")
        value = Input(f"input_{len(symbols)}", array.shape, array.dtype)
    elif value.call is not None or value.name is None:
        raise UnsupportedError(f"trace: {value!r} is the result of an operation: expected inputs made by fastlayers.graph.Input")
    symbols.append(value)
    return value


def _flatten(result: Any, name: str = "output") -> list[tuple[str, Symbol]]:
    """The results with their default names, nested tuples opened."""
    if isinstance(result, Symbol):
        return [(name, result)]
    if isinstance(result, dict):
        return [pair for key, value in result.items() for pair in _flatten(value, str(key))]
    if isinstance(result, (tuple, list)):
        return [pair for i, value in enumerate(result) for pair in _flatten(value, f"{name}_{i}")]
    raise UnsupportedError(
        f"trace: the function returned {type(result).__name__}: expected symbolic values, or a tuple, list or dict of them"
    )


def _distinct(outputs: list[tuple[str, Symbol]], inputs: list[Symbol]) -> list[tuple[str, Symbol]]:
    """The outputs with a copy in place of an input, or of a value that is an output already: each name is one array."""
    seen = {id(symbol) for symbol in inputs}
    distinct = []
    for name, symbol in outputs:
        distinct.append((name, record("Identity", symbol) if id(symbol) in seen else symbol))
        seen.add(id(symbol))
    return distinct


def _weights(function: Any) -> dict[int, tuple[str, np.ndarray]]:
    """The names of a layer's own weights, by identity."""
    named = getattr(function, "_named_arrays", None)
    return {id(array): (name, array) for name, array in (named() if named is not None else ())}


class _Builder:
    """Gives names to everything that leads to the outputs, and puts it in order."""

    def __init__(self, inputs: Sequence[tuple[str, Symbol]], weights: Mapping[int, tuple[str, np.ndarray]]) -> None:
        self._inputs = [symbol for _, symbol in inputs]
        self._weights = weights
        self._names: dict[int, str] = {id(symbol): name for name, symbol in inputs}
        self._e = GraphBuilder(None, Names((name for name, _ in inputs), first=1))
        self._hints: dict[Label, str] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def build(self, outputs: list[tuple[str, Symbol]], named: bool) -> Graph:
        calls = self._calls([symbol for _, symbol in outputs])
        needed = {id(symbol) for _, symbol in outputs}.union(id(value) for call in calls for value in call.inputs)
        fixed: dict[int, str] = {}
        if named:
            for name, symbol in outputs:
                if symbol.call is not None and id(symbol) not in fixed:
                    fixed[id(symbol)] = self._e.name(name)
        for call in calls:
            hint = self._hint(call)
            made = []
            for i, (result, spec) in enumerate(zip(call.outputs, call.specs, strict=True)):
                name = self._output(call, hint, i, result is not None and id(result) in needed)
                if result is not None and name:
                    self._names[id(result)] = name = fixed.get(id(result), name)
                    self._kept.append(result)
                made.append(name)
                if name:
                    self._e.specs[name] = Spec(*spec)
            names = tuple(self._input(value) for value in call.inputs)
            self._e.nodes.append(Node(call.op, names, tuple(made), call.attributes))

        def value(symbol: Symbol) -> Value:
            return Value(self._names[id(symbol)], symbol.shape, symbol.dtype)

        return self._e.graph([value(s) for s in self._inputs], [value(s) for _, s in outputs])

    def _calls(self, outputs: list[Symbol]) -> list[Call]:
        """Every call that the outputs need, in the order in which they were recorded, which can be run."""
        found: dict[int, Call] = {}
        known = {id(symbol) for symbol in self._inputs}
        waiting = [symbol.call for symbol in outputs if id(symbol) not in known]
        while waiting:
            call = waiting.pop()
            if call is not None and call.order not in found:
                found[call.order] = call
                waiting += [value.call for value in call.inputs if isinstance(value, Symbol) and id(value) not in known]
        for symbol in [*outputs, *(v for call in found.values() for v in call.inputs if isinstance(v, Symbol))]:
            if symbol.call is None and id(symbol) not in known:
                raise UnsupportedError(
                    f"trace: {symbol!r} is used but is not one of the inputs that were given: pass it as an argument"
                )
        return [found[order] for order in sorted(found)]

    def _hint(self, call: Call) -> str:
        """The name of the function that recorded the operator, one for all of its operators; else that of the operator."""
        if call.label is None:
            return self._e.name(call.op)
        if call.label not in self._hints:
            self._hints[call.label] = self._e.name(call.label.name)
        return self._hints[call.label]

    def _output(self, call: Call, hint: str, i: int, needed: bool) -> str:
        """The name of one output; none for one inside of a function that nothing reads."""
        if call.label is None:
            return hint if len(call.specs) == 1 else f"{hint}.{i}"
        if i in call.places:
            return hint if call.places[i] < 0 else f"{hint}.{call.places[i]}"
        return self._e.name(f"{hint}~") if needed else ""

    def _input(self, value: Any) -> str | None:
        if value is None:
            return None
        if id(value) in self._names:
            return self._names[id(value)]
        self._kept.append(value)
        from .arrays import is_constant  # functional imports this package

        hint = self._weights[id(value)][0] if id(value) in self._weights else "const"
        name = self._names[id(value)] = self._e.constant(value if is_constant(value) else value.copy(), hint)
        return name
