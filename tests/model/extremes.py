"""A random search for models that load and do not run: examples of every operator, files of TensorFlow Lite, and onnx's own
examples of nodes, with extreme values in place of attributes, shapes and indices.

What comes of one is an array or one of our errors. Anything else is a finding: another exception, a crash, a hang, or memory
beyond the limit. ``python -m tests.model.extremes nodes 1000 2000`` tries the seeds from 1000 to 2999 and prints findings;
instead of nodes: tflite, or onnx.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.errors import Error
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.model.model import Model, Options
from tests.operators.cases import Case, all_cases

MOST = 64 << 20  # bytes that a model may take
ROOM = 3 << 30  # of addresses that the process may take next to what it has: what is beyond the limit by far is no memory
INTS = (
    0, 1, -1, 2, -2, 3, 5, 7, 8, -7, 31, 64, 127, -128, 255, 256, 1000, 65535,
    1 << 16, 1 << 20, 1 << 24, -(1 << 24), (1 << 31) - 1,
    1 << 31, -(1 << 31), 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63),
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e-8, 1e8, 1e30, -1e30, float("inf"), float("-inf"), float("nan"), 3.0, 1e-45)


@cache
def cases() -> Sequence[Case]:
    return all_cases()


def _number(value: Any, random: np.random.Generator) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, np.integer)):
        return INTS[random.integers(len(INTS))]
    if isinstance(value, (float, np.floating)):
        return FLOATS[random.integers(len(FLOATS))]
    return value


def damaged_attribute(value: Any, random: np.random.Generator) -> Any:
    """The same kind of attribute with other numbers."""
    if isinstance(value, (tuple, list)) and value:
        made = list(value)
        kind = random.integers(4)
        if kind == 0:
            one = _number(made[0], random)
            return type(value)(one if type(v) is type(made[0]) else v for v in made)
        if kind == 1:
            return type(value)(made[:-1] if random.integers(2) else [*made, made[-1]])
        at = random.integers(len(made))
        made[at] = _number(made[at], random)
        return type(value)(made)
    if isinstance(value, np.ndarray):
        return damaged_array(value, random)
    return _number(value, random)


def damaged_array(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The same dtype with other values, or another shape."""
    made = np.array(array)
    kind = random.integers(6)
    if kind == 0:
        shape = list(made.shape)
        if shape and random.integers(3):
            shape[random.integers(len(shape))] = int(random.integers(0, 4))
        elif random.integers(2):
            shape.insert(int(random.integers(len(shape) + 1)), int(random.integers(0, 3)))
        else:
            shape = shape[1:]
        return np.resize(made, shape) if made.size else np.zeros(shape, made.dtype)
    if not made.size or made.dtype.kind not in "iufb":
        return made
    if made.dtype.kind == "b":
        return ~made
    info: Any = None if made.dtype.kind == "f" else np.iinfo(made.dtype)
    pool = FLOATS if info is None else [i for i in INTS if info.min <= i <= info.max]
    value = pool[random.integers(len(pool))]
    with np.errstate(all="ignore"):
        if kind < 4:
            made.reshape(-1)[random.integers(made.size)] = value
        else:
            made[...] = value
    return made


def damaged(seed: int) -> tuple[Graph, list[np.ndarray]]:
    """A model of one node and what it is fed."""
    random = np.random.default_rng(seed)
    item = cases()[random.integers(len(cases()))]
    inputs, attributes = list(item.inputs), dict(item.attributes)
    for _ in range(int(random.integers(1, 4))):
        present = [i for i, a in enumerate(inputs) if a is not None]
        later = [i for i in present if i >= item.data] or present
        if attributes and (random.integers(2) or not present):
            name = sorted(attributes)[random.integers(len(attributes))]
            attributes[name] = damaged_attribute(attributes[name], random)
        elif present:
            at = (later if random.integers(3) else present)[random.integers(len(later))]
            inputs[at] = damaged_array(inputs[at], random)  # type: ignore[arg-type]
    names = tuple(None if a is None else f"x{i}" for i, a in enumerate(inputs))
    node = Node(item.op, names, tuple(f"y{i}" for i in range(len(item.want))), attributes)
    fixed = (0, item.data, item.data, len(inputs))[random.integers(4)]
    feeds = [(n, a) for i, (n, a) in enumerate(zip(names, inputs, strict=True)) if a is not None and i < fixed]
    constants = {n: a for i, (n, a) in enumerate(zip(names, inputs, strict=True)) if a is not None and n and i >= fixed}
    given = tuple(
        Value(n, (None,) * a.ndim if random.integers(2) else a.shape, a.dtype)
        for n, a in feeds  # type: ignore[arg-type]
    )
    outputs = tuple(Value(n, None, np.dtype(np.void)) for n in node.outputs)
    return Graph(given, outputs, (node,), constants), [np.array(a, order="C") for _, a in feeds]


def trial(seed: int) -> Callable[[], Any]:
    """Loads and runs the model of a seed: with and without passes, compiled or by the reference, as the seed says."""
    graph, feeds = damaged(seed)
    random = np.random.default_rng(seed ^ 0x5EED)
    optimize = bool(random.integers(2))
    variant = dispatch.variant("reference" if random.integers(3) == 0 else "")

    def go() -> Any:
        model = Model(graph, Options(optimize=optimize, bodies=optimize, rounds=1000, most=MOST), variant=variant)
        for _ in range(2):
            made = model(*feeds)
        return made

    return go


def damaged_tflite(seed: int) -> tuple[bytes, list[np.ndarray]]:
    """A file of which some small values, which may be options, sizes or indices, are others."""
    from tests.goldens.tflite_cases import CASES

    random = np.random.default_rng(seed)
    content, feeds = list(CASES.values())[random.integers(len(CASES))]
    made = bytearray(content)
    small = [i for i in range(0, len(made) - 3, 4) if 0 < int.from_bytes(made[i : i + 4], "little") < 64]
    for _ in range(int(random.integers(1, 4))):
        at = small[random.integers(len(small))]
        value = INTS[random.integers(len(INTS))]
        if random.integers(8) == 0:
            struct.pack_into("<f", made, int(random.integers(len(made) // 4)) * 4, FLOATS[random.integers(8)])
        elif random.integers(8) == 0:
            made[int(random.integers(len(made)))] = value & 255
        elif -(1 << 31) <= value < 1 << 31:
            struct.pack_into("<i", made, at, value)
    return bytes(made), feeds


@cache
def _onnx_examples() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [c for c in load_model_tests(kind="node") if c.data_sets and c.model.ByteSize() < 100_000]


def damaged_onnx(seed: int) -> tuple[bytes, list[np.ndarray]]:
    """One of onnx's own examples with other attributes, and other values of its inputs, which may be constants."""
    import onnx

    random = np.random.default_rng(seed)
    example = _onnx_examples()[random.integers(len(_onnx_examples()))]
    model = onnx.ModelProto()
    model.CopyFrom(example.model)
    graph, (given, _) = model.graph, example.data_sets[0]
    feeds = [np.asarray(a) if isinstance(a, np.ndarray) else a for a in given]
    for _ in range(int(random.integers(1, 4))):
        node = graph.node[random.integers(len(graph.node))]
        numbers = [a for a in node.attribute if a.type in (1, 2, 6, 7)]
        if numbers and random.integers(2):
            attribute = numbers[random.integers(len(numbers))]
            value = onnx.helper.get_attribute_value(attribute)
            wrong = damaged_attribute(list(value) if attribute.type > 5 else value, random)
            attribute.CopyFrom(onnx.helper.make_attribute(attribute.name, wrong, attr_type=attribute.type))
        else:
            arrays = [i for i, a in enumerate(feeds) if isinstance(a, np.ndarray) and a.dtype.kind in "iufb"]
            if arrays:
                at = arrays[-1 - min(int(random.integers(3)), len(arrays) - 1)]
                feeds[at] = damaged_array(feeds[at], random)
    kept = []
    for value, feed in zip(list(graph.input), feeds, strict=False):
        if isinstance(feed, np.ndarray) and random.integers(2) and feed.dtype.kind in "iufb" and feed.dtype.isbuiltin:
            graph.initializer.append(onnx.numpy_helper.from_array(feed, value.name))
            graph.input.remove(value)
            continue
        if isinstance(feed, np.ndarray):
            value.type.tensor_type.ClearField("shape")
        kept.append(feed)
    for value in graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return bytes(model.SerializeToString()), kept


def trial_of_file(make: Callable[[int], tuple[bytes, list[np.ndarray]]]) -> Callable[[int], Callable[[], Any]]:
    """Loads and runs the file of a seed."""

    def trial(seed: int) -> Callable[[], Any]:
        content, feeds = make(seed)

        def go() -> Any:
            with fl.kernels.use("reference" if seed % 3 == 0 else dispatch.available()[0]):
                model = fl.load(content, max_bytes=MOST, max_rounds=1000, optimize=bool(seed % 2))
                return model(*feeds)

        return go

    return trial


KINDS = {"nodes": trial, "tflite": trial_of_file(damaged_tflite), "onnx": trial_of_file(damaged_onnx)}


def outcome(go: Callable[[], Any], slow: float = float("inf")) -> str:
    """What went wrong: nothing if there are arrays, or an error of ours. So is what takes `slow` seconds."""
    started, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        go()
    except Error:
        pass
    except BaseException:
        return traceback.format_exc(limit=-6)
    grown, took = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, time.process_time() - started
    if grown << 10 > 6 * MOST:
        return f"took {grown >> 10} MB"
    return f"took {took:.1f} s" if took > slow else ""


def limited() -> None:
    """This process may take so much memory from now on."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def search(
    seeds: Sequence[int], make: Callable[[int], Callable[[], Any]], seconds: int = 60, slow: float = float("inf")
) -> dict[int, str]:
    """What went wrong, by seed. Every crash, and what takes `seconds`, costs one child."""
    found: dict[int, str] = {}
    rest = list(seeds)
    while rest:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(read)
                limited()
                for seed in rest:
                    signal.alarm(seconds)
                    os.write(write, f"\0{seed}\n".encode())
                    os.write(write, outcome(make(seed), slow).encode()[:3000])
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            parts = pipe.read().decode(errors="replace").split("\0")[1:]
        _, status = os.waitpid(child, 0)
        for part in parts:
            number, _, text = part.partition("\n")
            if text:
                found[int(number)] = text
        if status or not parts:
            last = int(parts[-1].partition("\n")[0]) if parts else rest[0]
            found[last] = f"died of signal {status & 127}, status {status}"
            rest = rest[rest.index(last) + 1 :]
        else:
            last = int(parts[-1].partition("\n")[0])
            rest = rest[rest.index(last) + 1 :]
    return found


if __name__ == "__main__":
    kind, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for start in range(first, first + count, 500):
        for number, said in search(range(start, min(start + 500, first + count)), KINDS[kind], 60, 4).items():
            print(f"---- {number}: {damaged(number)[0].nodes[0] if kind == 'nodes' else ''}\n{said}", flush=True)
    print(f"{count} tried")
