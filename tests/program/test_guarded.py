"""Every step within programs whose values are against forbidden pages (see guarded.py): the same bits as without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from bench.cases import Case, all_cases
from fastlayers import functional as F
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KERNELS
from fastlayers.operators import OPERATORS
from fastlayers.operators.builder import INPUT, OUTPUT, Builder
from fastlayers.program import Program
from fastlayers.program import segment as programs
from fastlayers.program.memory import LARGEST
from fastlayers.program.trace import Record, Route, Trace
from tests.formats import test_onnx_models as onnx_models
from tests.formats import test_tflite as tflite
from tests.graph import test_compiled as functions
from tests.graph.examples import EXAMPLES
from tests.operators import test_cases as operators
from tests.stream.nets import filled

from .graphs import normal
from .guarded import guard

pytestmark = pytest.mark.skipif(
    os.name != "posix" or not dispatch.levels(), reason="guard pages are POSIX's, steps the compiled engine's"
)
KERNEL = {k.name: k for k in KERNELS}
# Of the bench cases, those of at most so many operations and bytes, and the smallest of each kernel.
MOST = 5e5


# Every level, each edge on the widest.
_LEVELS = dispatch.levels() or ("none",)
LAYOUTS = [(_LEVELS[0], "start"), *((level, "end") for level in _LEVELS)]


@pytest.fixture(params=LAYOUTS, ids="-".join)
def edge(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where values are; the test runs under a level."""
    level, edge = request.param
    with fl.kernels.use(f"aot/{level}"):
        yield edge


@pytest.fixture(params=["end", "start"])
def widest(request: pytest.FixtureRequest) -> str:
    """Where values are, on the widest level."""
    return str(request.param)


def same(got: Sequence[np.ndarray], want: Sequence[np.ndarray], what: str) -> None:
    """The same bytes: 0 is not -0, and NaN is NaN."""
    for a, b in zip(got, want, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), what
        assert np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)), what


def step_program(case: Case) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
    """A bench case as a bound program of one call, its inputs, and what its kernel writes to results full of 0xFF."""
    entry = KERNEL[case.kernel]
    names = [name.split("__")[0] for name in entry.arguments]
    given = case.arguments(np.random.default_rng(zlib.crc32(case.id.encode())))
    if "packed" in names:
        pack = KERNEL[f"{case.kernel}_pack"].arguments
        given["packed"] = dispatch.kernel(f"{case.kernel}_pack")(*(given["packed"][name.split("__")[0]] for name in pack))
    builder = Builder(lambda *_: None)
    arguments, inputs, outputs, specs = [], [], [], []
    for name in names:
        value = given[name]
        if isinstance(value, np.ndarray):
            ref = builder.temp(value.shape, value.dtype)
            if name in entry.results:
                ref.buffer.space, ref.buffer.index = OUTPUT, len(outputs)
                value.reshape(-1).view(np.uint8).fill(0xFF)
                outputs.append(value)
                specs.append((value.shape, value.dtype))
            else:
                ref.buffer.space, ref.buffer.index = INPUT, len(inputs)
                inputs.append(value)
            arguments.append(ref)
        else:
            arguments.append(value)
    builder.call(case.kernel, *arguments)
    from fastlayers.kernels.aot._plan import Ledger

    trace = Trace(Route(), [], [], [], {}, [])
    trace.last, trace.ends, trace.outputs = Record(builder.calls, [], [], {}, 0, None), {}, specs
    bound = programs.bound(trace, dispatch.variant().steps, len(inputs), LARGEST, 1, Ledger(), 0)
    dispatch.kernel(case.kernel)(*(given[name] for name in names))
    return bound, inputs, outputs


def test_every_step(edge: str) -> None:
    with guard(edge) as record:
        for case in sorted(all_cases(), key=lambda case: case.flops + case.moved):
            if case.flops + case.moved < MOST or case.kernel not in record.kernels:
                bound, inputs, want = step_program(case)
                for threads in (1, 2):
                    same(bound.run(inputs, None, threads), want, case.id)
    assert set(record.kernels) == {k.name for k in KERNELS if not k.name.endswith("_pack")}


def test_every_operator(widest: str) -> None:
    with guard(widest) as record:
        for item in operators.CASES:
            made, given = operators.graph_of(item, item.data)
            program = Program(made, dispatch.variant())
            results = program.binding(given).run(given)
            for got, want in zip(results, operators.expected(item), strict=False):
                if not OPERATORS[item.op].traits.volatile:
                    operators.close(got, want, item.ulp)
    assert len(record.kernels) > 40, record.kernels  # the rest stands in no operator's lowering


# Networks of awkward sizes: a function of a batch of n, and the shape of its input without n.
def convolutions() -> tuple[Callable[..., Any], tuple[int, ...]]:
    wide, strided = filled(fl.Conv2d(3, 17, 3, padding=1)), filled(fl.Conv2d(17, 7, (5, 3), stride=2, padding=(2, 1)))
    depth, up = filled(fl.Conv2d(7, 7, 3, padding=1, groups=7)), filled(fl.ConvTranspose2d(7, 5, 3, stride=2))
    norm, one = filled(fl.BatchNorm2d(17)), filled(fl.Conv2d(5, 5, 1))

    def net(x: Any) -> Any:
        y = F.relu(strided(F.silu(norm(wide(x)))))
        y = F.gelu(up(F.hardswish(depth(y)) + y))
        return F.concat([one(y), F.max_pool2d(y, 3, 1, 1), F.avg_pool2d(y, 3, 1, 1)], 1), F.adaptive_avg_pool2d(y, (2, 3))

    return net, (3, 13, 11)


def winograd() -> tuple[Callable[..., Any], tuple[int, ...]]:
    layers = [filled(fl.Conv2d(a, b, 3, padding=1), a) for a, b in ((16, 33), (33, 19))]
    return lambda x: layers[1](F.relu(layers[0](x))), (16, 23, 21)


def sequences() -> tuple[Callable[..., Any], tuple[int, ...]]:
    lstm, gru = filled(fl.LSTM(7, 13, bidirectional=True, batch_first=True)), filled(fl.GRU(26, 5, batch_first=True))
    rnn, front = filled(fl.RNN(5, 3, batch_first=True)), filled(fl.Conv1d(6, 7, 3, padding=1))

    def net(x: Any) -> Any:
        y, _ = lstm(F.permute(front(x), (0, 2, 1)))
        z, state = gru(y)
        return rnn(z)[0], state

    return net, (6, 9)


def attention() -> tuple[Callable[..., Any], tuple[int, ...]]:
    norm, many = filled(fl.LayerNorm(12)), filled(fl.MultiheadAttention(12, 3, batch_first=True))
    first, second = filled(fl.Linear(12, 29)), filled(fl.Linear(29, 12))

    def net(x: Any) -> Any:
        y = norm(x)
        y = x + many(y, y, y)[0]
        return F.softmax(y + second(F.gelu(first(norm(y)))), -1)

    return net, (17, 12)


NETWORKS = (convolutions, winograd, sequences, attention)


def agree(network: Callable[[], Any], edge: str, batches: Sequence[int]) -> None:
    function, shape = network()
    record = fl.graph.Input("x", ("n", *shape))
    given = [normal(n, *shape, seed=n) for n in batches]
    for x in given:
        x.flags.writeable = False
    plain = fl.compile(function, record)
    wanted = [plain(x) for x in given]
    with guard(edge):
        made = fl.compile(function, record)
        for x, want in zip(given, wanted, strict=True):
            results = (made(x), want)
            same(*(r if isinstance(r, tuple) else (r,) for r in results), f"{x.shape}")


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_batches_that_change(network: Callable[[], Any], edge: str) -> None:
    agree(network, edge, (1, 5, 0, 2, 7, 1, 2))


def test_threads_share_the_steps(widest: str, threads: int) -> None:
    agree(winograd, widest, (3, 16))  # enough work for two


def test_functions() -> None:
    kernels: Counter[str] = Counter()
    for example in EXAMPLES:
        if functions.inputs(example):
            arrays = example.arrays()
            plain, feeds = functions.compiled(example, arrays)
            want = plain(*feeds)
            with guard("end") as record:
                made, _ = functions.compiled(example, arrays)
                got = made(*feeds)
            same(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), example.label)
            kernels.update(record.kernels)
    assert len(kernels) > 35, kernels


@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "as written"])
def test_networks_of_other_frameworks(optimize: bool) -> None:
    with guard("start" if optimize else "end") as record:
        for name in onnx_models.NAMES:
            onnx_models.agrees(fl.load(onnx_models.data(name), optimize=optimize), name)
        for case in tflite.goldens().values():
            tflite.answers(fl.load(case.content, optimize=optimize), case)
    assert record.programs > 300


# ---- what a guard finds, each in a process of its own -------------------------------------------------------------------------

BROKEN = """
import ctypes, sys
import numpy as np
import fastlayers as fl
from fastlayers.kernels.aot import _step
from fastlayers.kernels import dispatch
from fastlayers.program import Program, segment as programs
from fastlayers.operators.builder import Call
from tests.program.graphs import graph, node, normal
from tests.program.guarded import guard

what, edge = sys.argv[1:]
nodes = [node("a = Linear(x, w)"), node("b = Relu(a)"), node("c = Linear(b, w)"), node("y = Add(c, b)")]
made = graph({"x": ("n", 3)}, nodes, ["y"], {"w": normal(3, 3)})
with guard(edge):
    plain = programs.bound
    kept = []

    def bound(plan, steps, *rest):
        # Before the first call of unary comes a step that does what it should not; it names what unary names.
        def unary_step(x, out, activation):
            right = steps["unary"](x, out, activation)
            size = x[0] * x[1]

            def run(_, operands):
                at = ctypes.cast(operands, ctypes.POINTER(ctypes.c_void_p))
                read, written = (ctypes.cast(at[i], ctypes.POINTER(ctypes.c_float)) for i in (0, 1))
                if what == "reads past":
                    read[size if edge == "end" else -1]
                elif what == "writes past":
                    written[size if edge == "end" else -1] = 1.0
                elif what == "writes next to":
                    written[-1 if edge == "end" else size] = 1.0
                elif what == "writes an input":
                    read[0] = 1.0
                elif what == "writes too late":
                    late[0][0] = 1.0
                for i in range(size):
                    written[i] = max(read[i], 0.0)
                if what == "writes too late":
                    late[0] = read
                return 0

            function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(run)
            kept.append(function)
            return _step.foreign_step(ctypes.cast(function, ctypes.c_void_p).value, b"", 2, 0.0, right)

        return plain(plan, {**steps, "unary": unary_step}, *rest)

    programs.bound = bound
    late = [(ctypes.c_float * 1)()]
    program = Program(made, dispatch.variant())
    x = normal(5, 3)
    for _ in range(2):
        (y,) = program.binding([x]).run([x])
    b = np.maximum(x @ normal(3, 3).T, 0)
    np.testing.assert_allclose(y, b @ normal(3, 3).T + b, atol=1e-5)
    print("done")
"""
FAULTS = [
    ("nothing", "end", 0), ("reads past", "end", -signal.SIGSEGV), ("reads past", "start", -signal.SIGSEGV),
    ("writes past", "end", -signal.SIGSEGV), ("writes next to", "end", 1), ("writes an input", "end", -signal.SIGSEGV),
    ("writes too late", "end", -signal.SIGSEGV),
]  # fmt: skip


@pytest.mark.parametrize(("what", "edge", "status"), FAULTS)
def test_guards_find(what: str, edge: str, status: int) -> None:
    # Where tests run under AddressSanitizer, a fault is to end the process as it does elsewhere.
    surroundings = {**os.environ, "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:handle_segv=0"}
    command = [sys.executable, "-c", BROKEN, what, edge]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=surroundings)
    assert done.returncode == status, done.stderr
    assert ("bytes next to a value were written" in done.stderr) == (what == "writes next to")
    assert ("done" in done.stdout) == (what == "nothing")
