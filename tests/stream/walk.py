"""Random networks over sequences, whole and in pieces: ``python -m tests.stream.walk --seconds 3600 --seed 0``.

A model that was loaded for streaming gives the bits of the whole for every cut, precision and number of threads; the stream of
any other model gives the same bits for every cut, and the whole up to rounding. Prints each fault with its seed and its network,
and what there was of each kind; exit status 1 if there was a fault.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node
from fastlayers.kernels.table import HALVES
from fastlayers.model.model import Options
from tests.program.graphs import graph, node

__all__ = ["PRECISIONS", "TOLERANCES", "Case", "draw", "drawn_kind", "faults"]

PRECISIONS = ("default", "strict", *HALVES)
# How far the whole may be from its pieces where it runs other algorithms, as a part of its largest value. Where the processor
# multiplies bfloat16, each factor of either is rounded to 8 bits or is not (docs/precision.md), and layers after it magnify that.
TOLERANCES = {precision: 2**-5 if precision == "bfloat16" else 2e-4 for precision in PRECISIONS}
LONGEST = 4000  # steps
MOST = 3_000_000  # values of an input


class Case(NamedTuple):
    """A network, the axes of time of its input and of its result, and sequences for it."""

    graph: Graph
    axis: int
    result_axis: int
    sequences: list[np.ndarray]
    told: str


class _Net:
    """A network that grows; its last value has channels along axis 1, unless `last` says that they come last."""

    def __init__(self, rng: np.random.Generator, channels: int, space: tuple[int, ...], at: int) -> None:
        self.rng, self.channels, self.space, self.at = rng, channels, list(space), at
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}
        self.value, self.count, self.told = "x", 0, [f"{channels} channels, space {space}, time {at}"]
        self.reach = self.pace = 1

    # ---- what rules use ----

    def some(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def array(self, *shape: int, scale: float = 1.0) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = (self.rng.standard_normal(shape) * scale).astype(np.float32)
        return name

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def add(self, call: str, **attributes: Any) -> str:
        """``"Op(_, w)"``: the last value is called _; the new one takes its place."""
        self.count += 1
        made = f"v{self.count}"
        self.nodes.append(node(f"{made} = {call.replace('_', self.value, 1)}", **attributes))
        self.value = made
        return made

    def wait(self, reach: int, step: int) -> None:
        """Steps that the first result needs, and between results."""
        self.reach += (reach - 1) * self.pace
        self.pace *= step

    @property
    def axes(self) -> int:
        return len(self.space)

    def window(self, most: int, strides: bool = True, dilated: bool = True) -> dict[str, Any]:
        """A window along space: any along time, padded before it; small ones along other axes, padded as they need it."""
        kernel, stride, dilation, before, behind = [], [], [], [], []
        if self.channels <= 32 and self.axes < 3 and self.chance(0.03):
            most = 300 if self.axes == 1 else 60
        for axis, size in enumerate(self.space):
            timed = axis == self.at
            k = int(self.rng.integers(1, most + 1)) if timed else int(self.rng.integers(1, min(5, size) + 1))
            d = self.some(1, 1, 1, 2, 3) if dilated and (timed or (k - 1) * 2 < size) else 1
            d = min(d, 2) if not timed else d
            reach = (k - 1) * d + 1
            s = self.some(1, 1, 1, 2, 3) if strides else 1
            kernel.append(k)
            dilation.append(d)
            stride.append(min(s, reach))
            p = self.some(0, reach - 1, int(self.rng.integers(reach))) if timed else reach // 2
            before.append(p)
            behind.append(0 if timed else reach // 2)
        return {"kernel_shape": tuple(kernel), "strides": tuple(stride), "dilations": tuple(dilation), "pads": (*before, *behind)}

    def slide(self, window: dict[str, Any]) -> None:
        for axis in range(self.axes):
            reach = (window["kernel_shape"][axis] - 1) * window["dilations"][axis] + 1
            step, pads = window["strides"][axis], window["pads"]
            if axis == self.at:
                self.wait(reach - pads[axis], step)
            else:
                self.space[axis] = (self.space[axis] + pads[axis] + pads[self.axes + axis] - reach) // step + 1

    # ---- rules ----

    def conv(self) -> bool:
        c, rng = self.channels, self.rng
        kind = self.some("full", "full", "full", "groups", "depthwise", "one")
        groups = c if kind == "depthwise" else self.some(*[g for g in range(1, c + 1) if c % g == 0]) if kind == "groups" else 1
        out = groups * self.some(1, 1, 2) if kind == "depthwise" else groups * max(1, int(rng.integers(8, 97)) // groups)
        window = self.window(1 if kind == "one" else 12 if self.axes == 1 else 5 if self.axes == 2 else 3)
        k = window["kernel_shape"]
        if kind == "depthwise" and self.axes == 2 and self.chance(0.3):  # a product of a column and a row
            window = self.window(9, dilated=False)
            k = window["kernel_shape"]
            self.constants[f"c{len(self.constants)}"] = (
                rng.standard_normal((out, 1, k[0], 1)) * rng.standard_normal((out, 1, 1, k[1]))
            ).astype(np.float32)
            weight = f"c{len(self.constants) - 1}"
        else:
            weight = self.array(out, c // groups, *k, scale=1 / np.sqrt(max(1, c // groups * np.prod(k))))
        quantized = self.chance(0.1)
        if quantized:
            weight = self._quantized(weight)
        bias = f", {self.array(out)}" if self.chance(0.7) else ""
        self.add(f"Conv(_, {weight}{bias})", group=groups, **window)
        self.channels = out
        self.slide(window)
        self.told.append(f"conv {kind} {c}>{out} g{groups} {window}" + " int8" * quantized)
        if self.chance(0.5):
            self.activation()
        return True

    def _quantized(self, weight: str) -> str:
        """Weights of 8 bits, which become floats."""
        values = self.constants.pop(weight)
        scale = np.float32(abs(values).max() / 127 + 1e-6)
        self.constants[weight] = np.round(values / scale).astype(np.int8)
        name, zero = self.constant(scale), self.constant(np.int8(0))
        self.count += 1
        self.nodes.append(node(f"v{self.count} = DequantizeLinear({weight}, {name}, {zero})"))
        return f"v{self.count}"

    def residual(self) -> bool:
        """What a convolution, padded before the first step, adds to its input."""
        c = self.channels
        window = self.window(6 if self.axes == 1 else 3, strides=False)
        reach = (window["kernel_shape"][self.at] - 1) * window["dilations"][self.at] + 1
        pads = list(window["pads"])
        pads[self.at] = reach - 1
        window["pads"] = tuple(pads)
        kept, space = self.value, list(self.space)
        self.slide(window)
        if self.space != space:
            self.space = space
            return False
        weight = self.array(c, c, *window["kernel_shape"], scale=1 / np.sqrt(c * np.prod(window["kernel_shape"])))
        self.add(f"Conv(_, {weight}, {self.array(c)})", **window)
        self.add(f"Add(_, {kept})")
        self.told.append(f"residual {window}")
        return True

    def pool(self) -> bool:
        op = self.some("AveragePool", "AveragePool", "MaxPool", "LpPool")
        window = self.window(self.some(3, 8, 40, 100) if self.axes == 1 else 4, dilated=op != "LpPool")
        if self.chance(0.3):  # an axis that is not time goes
            k = list(window["kernel_shape"])
            pads, dilations = list(window["pads"]), list(window["dilations"])
            for axis, size in enumerate(self.space):
                if axis != self.at:
                    k[axis], pads[axis], pads[self.axes + axis], dilations[axis] = size, 0, 0, 1
            window.update(kernel_shape=tuple(k), pads=tuple(pads), dilations=tuple(dilations))
        attributes: dict[str, Any] = dict(window)
        if op == "AveragePool":
            if self.chance(0.5):
                attributes["count_include_pad"] = 1
            else:
                window["pads"] = attributes["pads"] = (0,) * 2 * self.axes
                if any(k > s for i, (k, s) in enumerate(zip(window["kernel_shape"], self.space, strict=True)) if i != self.at):
                    return False
        if op == "LpPool":
            attributes["p"] = self.some(1, 2, 3)
            if self.chance(0.5) and self.axes == 1:  # a root of what is negative is NaN
                self.add("Abs(_)")
        self.add(f"{op}(_)", **attributes)
        self.slide(window)
        self.told.append(f"{op} {attributes}")
        return True

    def activation(self) -> bool:
        op = self.some("Relu", "Tanh", "Sigmoid", "Elu", "Softplus", "HardSwish", "Erf", "Exp")
        self.add(f"{op}(_)")
        self.told.append(op)
        return True

    def normal(self) -> bool:
        c = self.channels
        variance = self.constant(np.abs(self.rng.standard_normal(c)).astype(np.float32) + 0.5)
        self.add(f"BatchNormalization(_, {self.array(c)}, {self.array(c)}, {self.array(c)}, {variance})")
        self.told.append("batch norm")
        return True

    def across(self) -> bool:
        """Over the channels of each step."""
        if self.chance(0.5):
            self.add("Softmax(_)", axis=1)
        elif self.chance(0.5):
            self.add("LRN(_)", size=self.some(1, 3, 5))
        else:
            kept, axes = self.value, self.constant(np.array([1]))
            self.add(f"{self.some('ReduceMean', 'ReduceL2', 'ReduceSum', 'ReduceLogSumExp', 'ReduceMax')}(_, {axes})")
            self.add(f"Sub({kept}, _)")
        self.told.append(self.nodes[-1].op)
        return True

    def padded(self) -> bool:
        if self.reach > 1:
            return False
        pads = [0] * (2 * (2 + self.axes))
        pads[2 + self.at] = n = int(self.rng.integers(1, 4))
        self.add(f"Pad(_, {self.constant(np.array(pads))})")
        self.told.append(f"pad {n}")
        return True

    def sums(self) -> bool:
        self.add(f"CumSum(_, {self.constant(np.array(2 + self.at))})")
        self.add("Tanh(_)")
        self.told.append("cumsum")
        return True

    def steps(self) -> bool:
        """Over (time, n, channels): recurrent layers, products, normalizations."""
        if self.axes != 1:
            return False
        self.add("Transpose(_)", perm=(2, 0, 1))
        c, h = self.channels, int(self.rng.integers(4, 70))
        kind = self.some("LSTM", "GRU", "RNN", "MatMul", "LayerNormalization", "Softmax")
        if kind in ("LSTM", "GRU", "RNN"):
            gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
            w, r = self.array(1, gates * h, c, scale=1 / np.sqrt(c)), self.array(1, gates * h, h, scale=1 / np.sqrt(h))
            more = {"linear_before_reset": self.some(0, 1)} if kind == "GRU" else {}
            self.add(f"{kind}(_, {w}, {r}, {self.array(1, 2 * gates * h)})", hidden_size=h, **more)
            self.add(f"Squeeze(_, {self.constant(np.array([1]))})")
            self.channels = h
        elif kind == "MatMul":
            self.add(f"MatMul(_, {self.array(c, h, scale=1 / np.sqrt(c))})")
            if self.chance(0.7):
                self.add(f"Add(_, {self.array(h)})")
            self.channels = h
        elif kind == "LayerNormalization":
            self.add(f"LayerNormalization(_, {self.array(c)}, {self.array(c)})", axis=-1)
        else:
            self.add("Softmax(_)", axis=-1)
        self.add("Transpose(_)", perm=(1, 2, 0))
        self.told.append(f"{kind} {c}>{self.channels}")
        return True

    def flattened(self) -> bool:
        """All axes but time become channels."""
        if self.axes == 1 or self.channels * np.prod([s for i, s in enumerate(self.space) if i != self.at]) > 400:
            return False
        others = [i for i in range(self.axes) if i != self.at]
        self.add("Transpose(_)", perm=(0, 1, *(2 + i for i in others), 2 + self.at))
        self.channels *= int(np.prod([self.space[i] for i in others]))
        self.add(f"Reshape(_, {self.constant(np.array([0, self.channels, -1]))})")
        self.space, self.at = [0], 0
        self.told.append("flattened")
        return True


_RULES: tuple[tuple[Callable[[_Net], bool], int], ...] = (
    (_Net.conv, 10), (_Net.pool, 4), (_Net.residual, 3), (_Net.steps, 3), (_Net.flattened, 2), (_Net.normal, 1),
    (_Net.across, 1), (_Net.activation, 1), (_Net.sums, 1), (_Net.padded, 1),
)  # fmt: skip


def draw(seed: int, longest: int = LONGEST) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    axes = int(rng.choice([1, 1, 1, 2, 2, 3]))
    channels = int(rng.integers(1, 4)) if rng.random() < 0.2 else int(rng.integers(8, 97 if axes < 3 else 33))
    at, most = int(rng.integers(axes)), (0, 24, 9)[axes - 1]
    space = tuple(0 if i == at else int(rng.integers(1, most)) for i in range(axes))
    net = _Net(rng, channels, space, at)
    rules = [rule for rule, weight in _RULES for _ in range(weight)]
    wanted, tries = int(rng.choice([1, 1, 2, 3, 4])), 0
    while wanted and tries < 30:
        tries += 1
        wanted -= rules[int(rng.integers(len(rules)))](net)
    batch = int(rng.choice([1, 1, 2, 3]))
    shape = (batch, channels, *("time" if i == at else d for i, d in enumerate(space)))
    made = graph({"x": shape}, net.nodes, [net.value], net.constants)
    each = batch * channels * int(np.prod([d for i, d in enumerate(space) if i != at]))
    longest = max(net.reach + net.pace, min(longest, MOST // each))
    lengths = {net.reach, net.reach + net.pace, *(int(net.reach + longest ** rng.random()) for _ in range(2))}
    sequences = [_sequence(rng, tuple(length if d == "time" else d for d in shape)) for length in sorted(lengths)]
    return Case(made, 2 + at, 2 + net.at, sequences, "; ".join(net.told))


def drawn_kind(seed: int) -> tuple[str, bool]:
    """The precision of a seed, and whether its model is loaded for streaming."""
    return PRECISIONS[seed % 4], seed // 4 % 4 != 3


def _sequence(rng: np.random.Generator, shape: Any) -> np.ndarray:
    x: np.ndarray = rng.standard_normal(shape).astype(np.float32)
    kind = rng.random()
    if kind < 0.1:
        x[rng.random(shape) < 0.5] = 0.0
        x[rng.random(shape) < 0.3] = -0.0
    elif kind < 0.15:
        x[rng.random(shape) < 0.01] = rng.choice(np.array([np.nan, np.inf, -np.inf], np.float32))
    return x


def _cuts(rng: np.random.Generator, length: int) -> Iterator[list[int]]:
    """Ways to cut a sequence, as lists of sizes: all at once, at random, in equal ones, and single steps of short ones."""
    yield [length]
    ends = np.sort(rng.integers(0, length + 1, int(rng.integers(1, 7))))
    yield np.diff(ends, prepend=0, append=length).tolist()
    size = int(rng.integers(1, 40)) if length < 400 else int(rng.integers(40, 400))
    yield [size] * (length // size) + [length % size]
    if length <= 40:
        yield [1] * length


def _streamed(stream: fl.Stream, x: np.ndarray, sizes: Sequence[int], axis: int, result_axis: int) -> np.ndarray:
    stream.reset()
    return np.concatenate([stream(piece) for piece in np.split(x, np.cumsum(sizes)[:-1], axis)], result_axis)


def _bits(array: np.ndarray, zeros: bool = False) -> bytes:
    """Equal for equal bits; all NaN count as one, and zeros of both signs if `zeros` says so."""
    return np.where(np.isnan(array), np.float32(np.nan), array + 0.0 if zeros else array).tobytes()


def faults(case: Case, seed: int, precision: str, streaming: bool) -> Iterator[str]:
    """What is wrong with a case."""
    options = Options(strict=precision == "strict", half=HALVES.get(precision, 0), streaming=streaming)
    model = fl.Model(case.graph, options)
    stream, rng = model.stream(axis=case.axis), np.random.default_rng(seed)
    bits = partial(_bits, zeros=any("MaxPool" in n.op for n in case.graph.nodes))  # which gives either of them
    for x in case.sequences:
        length = x.shape[case.axis]
        model.num_threads = 1
        whole = model(x)
        first, want = whole, bits(whole) if streaming else b""
        for threads in (1, 2):
            model.num_threads = stream._model.num_threads = threads
            if bits(model(x)) != bits(whole):
                yield f"{length} steps: {threads} threads give other bits of the whole"
            for sizes in _cuts(rng, length):
                got = _streamed(stream, x, sizes, case.axis, case.result_axis)
                if got.shape != whole.shape:
                    yield f"{length} steps in {_short(sizes)}: shape {got.shape}, the whole has {whole.shape}"
                    return
                if not want:
                    first, want = got, bits(got)
                    yield from _near(got, whole, length, TOLERANCES[precision])
                if bits(got) != want:
                    places = np.unique(np.argwhere(~((got == first) | ((got != got) & (first != first))))[:, case.result_axis])
                    worst = np.nanmax(np.abs(got.astype(np.float64) - first))
                    yield (
                        f"{length} steps in {_short(sizes)}, {threads} threads: {places.size} of {got.shape[case.result_axis]} "
                        f"steps differ, by {worst:.2g}: {places[:8].tolist()}"
                    )
                    return


def _near(got: np.ndarray, whole: np.ndarray, length: int, tolerance: float) -> Iterator[str]:
    """Values that are not finite are spread by Winograd's tiles: only those that both have count."""
    both = np.isfinite(got) & np.isfinite(whole)
    if not both.any() or not np.isfinite(got).all():
        return
    worst, size = float(np.abs(got - whole)[both].max()), float(np.abs(whole)[both].max())
    if worst > tolerance * max(size, 1e-3):
        yield f"{length} steps: the whole is {worst:.2g} away, its largest value is {size:.2g}"


def _short(sizes: Sequence[int]) -> str:
    return str(list(sizes)) if len(sizes) < 12 else f"{len(sizes)} pieces, the first of {sizes[0]}"


def main() -> int:
    """Runs what the command line says."""
    parser = argparse.ArgumentParser("python -m tests.stream.walk", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1 << 60, help="at most so many")
    given = parser.parse_args()
    end, seed, count = time.monotonic() + given.seconds, given.seed, Counter[str]()
    while time.monotonic() < end and seed < given.seed + given.cases:
        case = draw(seed)
        precision, streaming = drawn_kind(seed)
        kind = f"{precision}{', for streaming' * streaming}"
        count[kind] += 1
        for fault in faults(case, seed, precision, streaming):
            count["faults"] += 1
            print(f"seed {seed}, {kind}: {fault}\n    {case.told}", flush=True)
        seed += 1
    wrong = count.pop("faults", 0)
    print(f"seeds {given.seed} to {seed - 1}: {seed - given.seed} cases, {wrong} faults; {dict(count)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
