"""Runs that end early: at a deadline, by Ctrl-C, or by a fork within a signal's handler. What a run costs is told by processor
time, for others may use the machine as well.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.model.custom import forget
from fastlayers.model.model import Model, Options

ROOT = Path(__file__).parents[2]
FLOAT = np.dtype(np.float32)


@pytest.fixture
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = fl.get_num_threads()
    fl.set_num_threads(request.param)
    yield request.param
    fl.set_num_threads(before)


def product() -> tuple[fl.Model, np.ndarray]:
    """One step of some seconds: a product whose tasks take milliseconds."""
    net = fl.Linear(4096, 4096, bias=False)
    net.load_state_dict({"weight": np.full((4096, 4096), 0.5, np.float32)})
    return fl.compile(net, fl.graph.Input("x", ("n", 4096))), np.ones((8192, 4096), np.float32)


def walk() -> tuple[fl.Model, np.ndarray]:
    """One step of some seconds: a recurrence."""
    net = fl.LSTM(8, 256)
    net.load_state_dict({name: np.zeros(shape, np.float32) for name, shape in net.tensor_shapes().items()})
    return fl.compile(lambda x: net(x)[1][0], fl.graph.Input("x", ("t", 1, 8))), np.ones((200_000, 1, 8), np.float32)


def chain() -> tuple[fl.Model, np.ndarray]:
    """Many steps of some milliseconds."""
    nodes = [Node("Exp" if i % 2 else "Neg", (f"v{i}",), (f"v{i + 1}",), {}) for i in range(2000)]
    graph = Graph((Value("v0", ("n",), FLOAT),), (Value("v2000", ("n",), FLOAT),), tuple(nodes), {})
    return fl.Model(graph), np.ones(4_000_000, np.float32)


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
@pytest.mark.parametrize("make", [product, walk, chain])
def test_a_deadline_ends_a_step_and_a_chain(make: Callable[[], tuple[fl.Model, np.ndarray]], threads: int) -> None:
    model, long = make()
    short = long[:3]
    want = model(short)
    model.prepare([long.shape])
    begin = time.process_time()
    with pytest.raises(fl.TimeoutError, match=r"^run: it is not done after timeout=0\.1 seconds"):
        model(long, timeout=0.1)
    # The whole run takes more than two seconds.
    assert time.process_time() - begin < 0.2 * threads + 0.3
    np.testing.assert_array_equal(model(short), want)
    np.testing.assert_array_equal(model(short, timeout=1000), want)
    with pytest.raises(TimeoutError):
        model.run({model.inputs[0].name: long}, timeout=0)


def test_results_under_a_deadline_are_the_same() -> None:
    rng = np.random.default_rng(0)
    net = fl.Sequential(fl.Conv2d(8, 32, 3), fl.ReLU(), fl.Conv2d(32, 8, 3))
    net.load_state_dict({name: rng.standard_normal(shape) for name, shape in net.tensor_shapes().items()})
    model, x = fl.compile(net, fl.graph.Input("x", ("n", 8, 64, 64))), rng.standard_normal((8, 8, 64, 64)).astype(np.float32)
    want = model(x)
    for timeout in (60, np.float32(60), float("inf"), 1e30):
        np.testing.assert_array_equal(model(x, timeout=timeout), want)


@pytest.mark.parametrize(
    ("timeout", "error"), [("1", fl.DTypeError), (True, fl.DTypeError), (-1, fl.ArgumentError), (float("nan"), fl.ArgumentError)]
)
def test_a_bad_timeout(timeout: Any, error: type[Exception]) -> None:
    model = fl.compile(fl.ReLU(), fl.graph.Input("x", ("n",)))
    with pytest.raises(error, match=r"^run: timeout is .*expected a number of seconds"):
        model(np.ones(3, np.float32), timeout=timeout)


def test_a_deadline_is_one_threads_own() -> None:
    model, long = product()
    done = []
    thread = threading.Thread(target=lambda: done.append(model(long[:64])))
    thread.start()
    with pytest.raises(fl.TimeoutError):
        model(long, timeout=0.05)
    thread.join()
    assert done[0].shape == (64, 4096)


def slow_steps(variant: str) -> tuple[fl.Model, list[int]]:
    """A model of many steps, each of which says that it has begun and takes half a second."""
    begun: list[int] = []

    def slow(x: np.ndarray) -> np.ndarray:
        begun.append(len(begun))
        time.sleep(0.5)
        return x

    step = fl.operator(f"Slow{variant}", "test.deadline")(slow)
    with fl.kernels.use(variant):
        return fl.compile(lambda x: step(step(step(step(x)))), fl.graph.Input("x", ("n",))), begun


@pytest.fixture(autouse=True)
def _no_operators_stay() -> Iterator[None]:
    yield
    for variant in fl.kernels.available():
        forget(f"Slow{variant}", "test.deadline")


@pytest.mark.without("cuda")  # nobody waits for the GPU between steps
def test_a_deadline_between_steps_of_numpy(variant: str) -> None:
    model, begun = slow_steps(variant)
    with pytest.raises(fl.TimeoutError):
        model(np.ones(3, np.float32), timeout=0.25)
    assert begun == [0]


def loop(rounds: int) -> fl.Model:
    """A Loop of so many rounds, which doubles its value."""
    body = Graph(
        (Value("i", (), np.dtype(np.int64)), Value("go", (), np.dtype(np.bool_)), Value("a", ("n",), FLOAT)),
        (Value("on", (), np.dtype(np.bool_)), Value("b", ("n",), FLOAT)),
        (Node("Identity", ("go",), ("on",), {}), Node("Add", ("a", "a"), ("b",), {})),
        {},
    )
    node = Node("Loop", ("most", "always", "x"), ("y",), {"body": body})
    constants = {"most": np.array(rounds, np.int64), "always": np.array(True)}
    graph = Graph((Value("x", ("n",), FLOAT),), (Value("y", ("n",), FLOAT),), (node,), constants)
    return Model(graph, Options(rounds=rounds))


@pytest.mark.parametrize("staged", [False, True])
def test_a_deadline_within_a_loop(staged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if staged:
        monkeypatch.setattr("fastlayers.program.program.DEEPEST", 0)
    model = loop(1 << 40)  # some days
    begin = time.process_time()
    with pytest.raises(fl.TimeoutError):
        model(np.ones(3, np.float32), timeout=0.2)
    assert time.process_time() - begin < 5


def test_a_stream_goes_on_from_where_it_was() -> None:
    net = fl.LSTM(8, 64)
    rng = np.random.default_rng(0)
    net.load_state_dict({name: rng.standard_normal(shape) / 4 for name, shape in net.tensor_shapes().items()})
    model = fl.compile(lambda x: net(x)[0], fl.graph.Input("x", ("t", 1, 8)))
    stream, x = model.stream(axis=0), rng.standard_normal((20, 1, 8)).astype(np.float32)
    first = stream(x[:7], timeout=60)
    with pytest.raises(fl.TimeoutError):
        stream(x[7:], timeout=0)
    np.testing.assert_array_equal(np.concatenate([first, stream.run({"x": x[7:]}, timeout=60)[stream.outputs[0].name]]), model(x))


SIGNAL = """
    import os, signal, sys, threading, time
    import numpy as np
    import fastlayers as fl
    from tests.model.test_deadline import {make}
    fl.set_num_threads({threads})
    model, long = {make}()
    want = model(long[:3])
    model.prepare([long.shape])
    {handler}
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    begin = time.process_time()
    try:
        {call}
        print("done")
    except BaseException as error:
        print(type(error).__name__)
    assert time.process_time() - begin < 0.2 * {threads} + {more}, time.process_time() - begin
    assert (model(long[:3]) == want).all()
    sys.stdout.flush()
"""


def run_script(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers of signals here")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("make", ["product", "walk", "chain"])
@pytest.mark.parametrize("timeout", ["", pytest.param(", timeout=1000", marks=pytest.mark.exhaustive)])
def test_ctrl_c(make: str, threads: int, timeout: str) -> None:
    handler = "signal.signal(signal.SIGALRM, signal.default_int_handler)"
    text = SIGNAL.format(make=make, threads=threads, handler=handler, call=f"model(long{timeout})", more=0.3)
    assert run_script(text) == "KeyboardInterrupt\n"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers of signals here")
def test_ctrl_c_within_a_layer() -> None:
    handler = "signal.signal(signal.SIGALRM, signal.default_int_handler)"
    call = "fl.functional.linear(long, np.ones((4096, 4096), np.float32))"
    text = SIGNAL.format(make="product", threads=2, handler=handler, call=call, more=0.3)
    assert run_script(text) == "KeyboardInterrupt\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_handler_that_forks(threads: int) -> None:
    # The parent's run is done as if nothing had happened; the child's has lost its workers, and says so, or is done as well.
    handler = """
    def fork(*_):
        if os.fork() == 0:
            signal.alarm(100)
            global child
            child = True
    child = False

    def tell(what):  # both write to one pipe: each its line at once
        os.write(1, f"{child} {what}\\n".encode())

    signal.signal(signal.SIGALRM, fork)
    """
    call = "model(long[:1024])"
    text = SIGNAL.format(
        make="product", threads=threads, handler=textwrap.dedent(handler).replace("\n", "\n    "), call=call, more=1e3
    )
    text += "    if not child: os.wait()\n"
    text = text.replace('print("done")', 'tell("done")').replace("print(type(error).__name__)", "tell(error)")
    told = sorted(run_script(text).splitlines())
    assert told[0] == "False done"
    assert told[1] == "True done" or (threads > 1 and told[1].startswith("True run: a signal's handler has forked within it"))
