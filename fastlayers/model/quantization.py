"""`quantize`: a network with weights, or weights and activations, of 8 bits or fewer, as long as its results stay near."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from .._arguments import checked, shown
from ..errors import ArgumentError, DTypeError, UnsupportedError
from ..ir.graph import Graph, Node, Value
from ..passes import linear
from ..passes.few_bits import FEW, few_bits, sizes_of
from ..passes.quantized_pairs import Layer, Steps, layers_of, paired, prepared, pruned, switched
from ..report.quantized import Quantization, QuantizedLayer
from ._calibration import MOST_BYTES, Outputs, Samples, observe
from .model import Model
from .values import with_outputs

__all__ = ["quantize"]

_BITS = {"int8": 8, "int4": 4}
_RUNS, _SECONDS = 5, 0.03  # of a layer that is measured
_WHOLE_RUNS, _WHOLE_SECONDS = 10, 0.3  # of a network that is done
_RACES = 3  # until the quantized one is faster
_SLOWER_BY = 1.1  # a layer in integers, before it stays in float32: conversions around it take time too
_FLOAT = np.dtype(np.float32)
_SLOWER, _KEPT, _FAR, _ALONE = "slower in integers", "asked for", "its error", "between floats"


@checked
def quantize(
    model: Any,
    samples: Any = None,
    *,
    max_error: float = 0.1,
    activations: bool = True,
    weights: str = "int8",
    keep: Sequence[str] = (),
    allow_slower: bool = False,
    progress: Any = None,
) -> Model:
    """Makes a network of integers of one of float32: smaller, faster, and at most so far off.

    With activations, convolutions and products with fixed weights work on bytes: weights are int8 with a scale for each output
    channel, what they multiply is uint8 with one scale a value, which comes from the samples; so do additions, pools and
    functions between convolutions. Without, matrices alone are stored in few bits, as by ``load(weights=...)``. What would be
    slower in integers on this machine stays in float32, and then layer by layer what adds most to the error for the time that
    it saves, until the bound holds.

    The relative error is ||q - f|| / ||f||: f are the float32 network's results, q the quantized one's, both norms over all
    elements of an output and all samples that are kept for this: of at most 16 samples and 64 MiB, chosen by a fixed seed. The
    output that is farthest off counts.

    Args:
        model: a model in float32, as `load` or `compile` made it.
        samples: an iterable, or generator, of what the network will see: for each run an array, a tuple with one for each
            input, or a dict of them by name; read once, one at a time. A few dozen do. None: weights alone, and `max_error`
            bounds the relative rounding error of each matrix.
        max_error: the largest relative error of the results.
        activations: whether activations are quantized too, if there are samples.
        weights: "int8", or for weights alone also "int4".
        keep: what stays in float32: names of layers (the values that they give) or of operators, such as "Gemm".
        allow_slower: whether a result that is not faster will do; layers are not measured then, and the same samples give the
            same network every time.
        progress: called with the share that is done, from 0 to 1.

    Returns:
        The quantized model; its `quantization` says what was done, as a table (``print``) and a page (``html()``).

    Raises:
        UnsupportedError: the network has nothing to quantize; or what came of it would be farther off than asked, or slower.
        ArgumentError: there are no samples, one has NaN or does not fit; `max_error` is not above 0; `keep` names nothing.

    >>> import numpy as np, fastlayers as fl
    >>> net = fl.Linear(64, 64)
    >>> _ = net.load_state_dict({"weight": np.eye(64), "bias": np.zeros(64)})
    >>> rng = np.random.default_rng(0)
    >>> samples = (rng.standard_normal((8, 64), np.float32) for _ in range(4))
    >>> small = fl.quantize(fl.compile(net, fl.graph.Input("x", ("n", 64))), samples, max_error=0.05, allow_slower=True)
    >>> [(layer.op, layer.stored) for layer in small.quantization.layers]
    [('Gemm', 'int8')]
    """
    if not isinstance(model, Model):
        raise DTypeError(f"quantize: model is of type {type(model).__name__}: expected a Model, as `load` and `compile` make")
    if not max_error > 0 or not np.isfinite(max_error):
        raise ArgumentError(f"quantize: max_error is {max_error!r}: expected a finite number above 0")
    both = samples is not None and activations
    expected = ("int8",) if both else tuple(_BITS)
    if weights not in expected:
        raise ArgumentError(f"quantize: weights is {shown(weights)}: expected {' or '.join(map(repr, expected))}")
    if progress is not None and not callable(progress):
        raise DTypeError(f"quantize: progress is of type {type(progress).__name__}: expected something to call with a number")
    if model.variant == "cuda":
        raise UnsupportedError("quantize: the model is for device 'cuda': expected one for 'cpu'")
    if done := sorted(
        {n.op for n in model._graph.nodes if "quantize" in n.op.lower() or "QLinear" in n.op or n.op == "MatMulNBits"}
    ):
        raise UnsupportedError(f"quantize: the network is quantized already: it has {', '.join(done)}: expected one in float32")
    if isinstance(keep, str):
        raise DTypeError(f"quantize: keep is the str {shown(keep)}: expected a list of names, such as [{shown(keep)}]")
    if both and model._options.strict:
        raise UnsupportedError("quantize: the model is precision='strict', which sums floats: expected 'default', or no samples")
    work = _Work(model, float(max_error), tuple(keep), allow_slower, progress or (lambda share: None))
    return work.activations(Samples(model, samples)) if both else work.weights(samples, _BITS[weights])


class _Work:
    """One call."""

    def __init__(self, model: Model, most: float, keep: tuple[str, ...], slower: bool, tell: Callable[[float], None]) -> None:
        self.model, self.most, self.keep, self.slower, self.tell = model, most, keep, slower, tell
        self.options = model._options._replace(half=0, bits=0, optimize=True, bodies=True)
        self.why: dict[int, str] = {}
        self.alone: dict[int, float] = {}
        self.times: dict[int, tuple[float, float]] = {}

    def made(self, graph: Graph) -> Model:
        """A model that runs as the given one does."""
        made = Model(graph, self.options, self.model.metadata, variant=self.model._variant)
        made.num_threads = self.model.num_threads
        return made

    # ---- activations ------------------------------------------------------------------------------------------------

    def activations(self, samples: Samples) -> Model:
        """Weights and activations."""
        given = iter(samples)
        first = next(given, None)
        if first is None:
            raise ArgumentError("quantize: there are no samples: expected at least one")
        specs = prepared(self.model._graph, {n: a.shape for n, a in first.items() if isinstance(a, np.ndarray)}).specs
        graph, layers = layers_of(prepared(self.model._graph))
        self.check(layers)
        every = range(len(layers))
        self.keep_float(graph, layers)
        if not self.slower:
            self.measure(graph, layers, {name: s.shape for name, s in specs.items() if s.static})
        on = pruned(layers, [i for i in every if i not in self.why])
        if not on:
            raise UnsupportedError(
                "quantize: every layer is slower in integers on this machine, or asked to stay: allow_slower=True accepts that"
            )
        self.why.update((i, _ALONE) for i in every if i not in on and i not in self.why)
        self.tell(0.1)
        steps = self.calibrate(graph, [layers[i] for i in on], specs, chain((first,), given))
        kept = samples.kept
        outputs = _outputs(self.model, kept)
        self.tell(0.5)
        on = self.within(graph, layers, on, steps, outputs, kept)
        found = self.made(paired(graph, layers, on, steps))
        error = outputs.error(found.run, kept)
        while error > self.most and on:  # by what rounding differs
            on = pruned(layers, self.without(on, max(1, len(on) // 16)))
            found = self.made(paired(graph, layers, on, steps))
            error = outputs.error(found.run, kept)
        if not [i for i in on if layers[i].kind in ("conv", "product")]:
            least = min(self.alone.values(), default=error)
            raise UnsupportedError(
                f"quantize: max_error is {self.most:.2e}: no layer stays within it: the one that adds least is off by {least:.2e}"
            )
        rows = [
            QuantizedLayer(
                layer.end, graph.nodes[layer.nodes[0]].op, "int8" if i in on else "float32",
                "" if i in on else self.why.get(i, _FAR), self.alone.get(i), self.times.get(i), _bytes(graph, layer, i in on),
            )
            for i, layer in enumerate(layers) if layer.kind != "move"
        ]  # fmt: skip
        return self.told(found, rows, (samples.count, len(kept)), error, kept[0], _size(graph))

    def check(self, layers: Sequence[Any]) -> None:
        """Raises where there is nothing to do."""
        if not layers:
            raise UnsupportedError("quantize: no convolution or product of the network has fixed float32 weights")

    def keep_float(self, graph: Graph, layers: Sequence[Layer]) -> None:
        """Notes the layers that the caller wants to stay."""
        used = set()
        for i, layer in enumerate(layers):
            names = {name for at in layer.nodes for name in (graph.nodes[at].op, *graph.nodes[at].outputs)}
            if found := names.intersection(self.keep):
                used |= found
                self.why[i] = _KEPT
        self.unknown(used)

    def unknown(self, used: Collection[str]) -> None:
        if left := [name for name in self.keep if name not in used]:
            raise ArgumentError(
                f"quantize: keep has {shown(left[0])}: expected the name of a layer that could be quantized, or of its operator"
            )

    def calibrate(
        self, graph: Graph, layers: Sequence[Layer], specs: Mapping[str, Any], samples: Iterable[dict[str, Any]]
    ) -> dict[str, Steps]:
        """The steps of every value that is rounded."""
        inputs = {v.name for v in graph.inputs}
        moved = {layer.end for layer in layers if layer.kind == "move"}
        names = dict.fromkeys(
            name for layer in layers for name in (*layer.inputs, *([] if layer.kind == "product" else [layer.end]))
            if name not in moved
        )  # fmt: skip
        groups: list[list[str]] = [[]]
        size = 0
        for name in (name for name in names if name not in inputs):
            spec = specs.get(name)
            more = 4 * int(np.prod(spec.shape)) if spec is not None and spec.static else 1 << 20
            if groups[-1] and size + more > MOST_BYTES:
                groups, size = [*groups, []], 0
            groups[-1].append(name)
            size += more
        models = [self.made(with_outputs(graph, group)) for group in groups if group]
        seen = 0

        def told() -> None:
            nonlocal seen
            seen += 1
            self.tell(0.1 + 0.4 * seen / (seen + 8))

        return observe(models, [n for n in names if n in inputs], samples, told)

    def within(
        self,
        graph: Graph,
        layers: list[Layer],
        on: list[int],
        steps: Mapping[str, Steps],
        outputs: Outputs,
        kept: list[dict[str, Any]],
    ) -> list[int]:
        """As many of the layers as the bound allows; notes what each adds alone to the error of the first sample."""
        chosen = [layers[i] for i in on]
        both, switches = switched(graph, chosen, steps)
        model = self.made(both)

        def error(which: Collection[int], some: list[dict[str, Any]]) -> float:
            set_ = {name: np.array(i in which) for name, i in zip(switches, on, strict=True)}
            return outputs.error(lambda feeds: model.run({**feeds, **set_}), some)

        for number, i in enumerate(on):
            if layers[i].kind != "move":
                self.alone[i] = error({i}, kept[:1])
            self.tell(0.5 + 0.3 * number / len(on))
        if error(on, kept) <= self.most:
            return on
        least, most = 0, len(self.alone)  # how many go: too few, enough
        while most - least > 1:
            middle = (least + most) // 2
            enough = error(pruned(layers, self.without(on, middle)), kept) <= self.most
            least, most = (least, middle) if enough else (middle, most)
        left = self.without(on, most)
        # One that goes late for the time that it saves may have sent away many that add little: these may come back.
        gone = sorted((i for i in on if i not in left), key=lambda i: self.alone.get(i, 0.0))
        least, most = 0, len(gone)
        while least < most:
            middle = (least + most + 1) // 2
            fits = error(pruned(layers, [*left, *gone[:middle]]), kept) <= self.most
            least, most = (middle, most) if fits else (least, middle - 1)
        return pruned(layers, [*left, *gone[:least]])

    def without(self, on: list[int], count: int) -> list[int]:
        """Those layers without so many that add most error for the time that they save; first those beyond the bound alone."""
        saved = {i: max(before - after, 1e-7) for i, (before, after) in self.times.items()}
        usual = float(np.median(list(saved.values()))) if saved else 1.0
        order = sorted(
            (i for i in on if i in self.alone),
            key=lambda i: (self.alone[i] <= self.most, -(self.alone[i] ** 2) / saved.get(i, usual)),
        )
        return [i for i in on if i not in set(order[:count])]

    def measure(self, graph: Graph, layers: Sequence[Layer], shapes: Mapping[str, Any]) -> None:
        """Times convolutions and products in float32 and in integers, and notes which are slower so."""
        known: dict[Any, tuple[float, float]] = {}
        for i, layer in enumerate(layers):
            shape = shapes.get(layer.inputs[0])
            if layer.kind not in ("conv", "product") or shape is None or i in self.why:
                continue
            nodes = [graph.nodes[at] for at in layer.nodes]
            weight = graph.constants[str(nodes[0].inputs[1])]
            key = [(n.op, tuple(sorted((k, str(v)) for k, v in n.attributes.items()))) for n in nodes], weight.shape, shape
            if str(key) not in known:
                known[str(key)] = self.both(graph, nodes, layer, shape)
            self.times[i] = before, after = known[str(key)]
            if after >= _SLOWER_BY * before:
                self.why[i] = _SLOWER
            self.tell(0.1 * i / len(layers))

    def both(self, graph: Graph, nodes: Sequence[Node], layer: Layer, shape: tuple[int, ...]) -> tuple[float, float]:
        """Times of a layer; a convolution's from bytes to bytes, as most of them stand."""
        x, end = layer.inputs[0], layer.end
        small = Graph((Value(x, shape, _FLOAT),), (Value(end, None, _FLOAT),), tuple(nodes), _read(graph, nodes))
        steps = {x: Steps.between(-4.0, 4.0), end: Steps.between(-4.0, 4.0)}
        made = paired(small, [layer._replace(nodes=tuple(range(len(nodes))))], (0,), steps)
        array = np.random.default_rng(0).standard_normal(shape, np.float32)
        if layer.kind == "conv":
            first, *inner, last = made.nodes
            ends = Value(first.outputs[0], shape, np.dtype(np.uint8)), Value(str(last.inputs[0]), None, np.dtype(np.uint8))
            q = next(n for n in reversed(inner) if n.op == "QuantizeLinear")
            before, after = (
                Node("DequantizeLinear", inner[0].inputs, (x,), {}),
                Node("QuantizeLinear", (end, *q.inputs[1:]), q.outputs, {}),
            )
            around = (before, *nodes, after)
            small = Graph(ends[:1], ends[1:], around, {**made.constants, **small.constants})
            made = Graph(ends[:1], ends[1:], tuple(inner), made.constants)
            array = (array * 32 + 128).clip(0, 255).astype(np.uint8)
        return _raced(self.made(small), self.made(made), {small.inputs[0].name: array}, {made.inputs[0].name: array})

    # ---- weights alone ----------------------------------------------------------------------------------------------

    def weights(self, samples: Any, bits: int) -> Model:
        """Weights alone."""
        kept: list[dict[str, Any]] = []
        count = 0
        if samples is not None:
            seen = Samples(self.model, samples)
            for _ in seen:
                pass
            kept, count = seen.kept, seen.count
            if not count:
                raise ArgumentError("quantize: there are no samples: expected at least one")
        net = prepared(self.model._graph)
        linear.apply(net)
        graph = net.graph()
        strict = self.options.strict
        found = few_bits(graph, bits, strict)
        errors = {n.outputs[0]: n.attributes["rounded"][0] for n in found.nodes if n.op in FEW}
        self.check(list(errors))
        ops = {name: node.op for node in graph.nodes for name in node.outputs}
        left = {name: _KEPT for name in errors if name in self.keep or ops.get(name) in self.keep}
        self.unknown({*left, *(ops.get(name, "") for name in left)})
        order = sorted((name for name in errors if name not in left), key=lambda name: -errors[name])
        error: float | None = None
        if not kept:
            gone = sum(errors[name] > self.most for name in order)
            result = self.made(few_bits(graph, bits, strict, left={*left, *order[:gone]}))
        else:
            outputs = _outputs(self.model, kept)
            gone = 0
            while True:
                result = self.made(few_bits(graph, bits, strict, left={*left, *order[:gone]}))
                error = outputs.error(result.run, kept)
                self.tell(0.9 * gone / max(len(order), 1))
                if error <= self.most or gone >= len(order):
                    break
                gone = min(len(order), max(gone + 1, gone + len(order) // 16))
        if gone >= len(order):
            raise UnsupportedError(
                f"quantize: max_error is {self.most:.2e}: no matrix stays within it: in {bits} bits the nearest one is off by "
                f"{min(errors.values()):.2e}"
            )
        left.update(dict.fromkeys(order[:gone], _FAR))
        sizes = {n.outputs[0]: (sizes_of(n, found.constants) or ("", 0, 0))[1:] for n in found.nodes if n.op in FEW}
        rows = [
            QuantizedLayer(
                name, ops.get(name, ""), "float32" if name in left else f"int{bits}", left.get(name, ""), errors[name], None,
                (sizes[name][0], sizes[name][0 if name in left else 1]),
            )
            for name in errors
        ]  # fmt: skip
        return self.told(result, rows, (count, len(kept)), error, kept[0] if kept else None, _size(graph))

    # ---- the end ----------------------------------------------------------------------------------------------------

    def told(
        self, found: Model, rows: list[QuantizedLayer], samples: tuple[int, int], error: float | None,
        sample: dict[str, Any] | None, size: int,
    ) -> Model:  # fmt: skip
        """The model with its report; raises where it is slower."""
        seconds = None if sample is None else _raced(self.model, found, sample, sample, _WHOLE_RUNS, _WHOLE_SECONDS)
        self.tell(1.0)
        if seconds is not None and seconds[1] > seconds[0] and not self.slower:
            reached = "" if error is None else f", with an error of {error:.2e}"
            raise UnsupportedError(
                f"quantize: the quantized network takes {seconds[1] * 1e3:.3f} ms a run, the float32 one {seconds[0] * 1e3:.3f}"
                f"{reached}: allow_slower=True accepts that"
            )
        found.quantization = Quantization(tuple(rows), samples, self.most, error, seconds, (size, _size(found._graph)))
        return found


def _outputs(model: Model, kept: Sequence[dict[str, Any]]) -> Outputs:
    """The float32 network's results."""
    values = [model.run(feeds) for feeds in kept]
    names = tuple(name for name, value in values[0].items() if isinstance(value, np.ndarray) and value.dtype.kind == "f")
    if not names:
        raise UnsupportedError("quantize: no output of the network is an array of floats, of which errors could be measured")
    return Outputs(names, [{name: value[name] for name in names} for value in values])


def _raced(
    before: Model, after: Model, first: dict[str, Any], second: dict[str, Any], runs: int = _RUNS, seconds: float = _SECONDS
) -> tuple[float, float]:
    """The best times of two models, which alternate; longer while the second is slower, since what else the machine does may be
    why.
    """
    best = [np.inf, np.inf]
    for _ in range(_RACES):
        began, done = time.perf_counter(), -1
        while done < runs or time.perf_counter() - began < seconds:
            for i, (model, feeds) in enumerate(((before, first), (after, second))):
                start = time.perf_counter()
                model.run(feeds)
                if done >= 0:  # the first packs weights
                    best[i] = min(best[i], time.perf_counter() - start)
            done += 1
        if best[1] <= best[0]:
            break
    return best[0], best[1]


def _read(graph: Graph, nodes: Iterable[Node]) -> dict[str, np.ndarray]:
    return {name: graph.constants[name] for node in nodes for name in node.inputs if name is not None and name in graph.constants}


def _size(graph: Graph) -> int:
    return sum(array.nbytes for array in graph.constants.values())


def _bytes(graph: Graph, layer: Layer, on: bool) -> tuple[int, int]:
    """Sizes of the weights of a layer, before and after."""
    before = (
        sum(a.nbytes for a in _read(graph, [graph.nodes[layer.nodes[0]]]).values()) if layer.kind in ("conv", "product") else 0
    )
    return before, before // 4 if on else before
