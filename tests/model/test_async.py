"""Model.arun: runs in other threads while the event loop goes on, as many as may, with a time limit that counts the wait."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.model import hop
from fastlayers.model.custom import forget
from tests.program.graphs import graph, node, normal

DOMAIN = "tests.async"
MOST = 60  # seconds, of what is to come at once


def small() -> fl.Model:
    return fl.Model(graph({"x": ("n", 4)}, [node("h = Linear(x, w)"), node("y = Relu(h)")], ["y"], {"w": normal(3, 4)}))


class Gate:
    """An operator that waits until it is let through."""

    def __init__(self) -> None:
        self.open, self.begun, self.names = threading.Event(), threading.Semaphore(0), set[str]()

        @fl.operator("Wait", DOMAIN, replace=True)
        def wait(x: np.ndarray) -> np.ndarray:
            self.names.add(threading.current_thread().name)
            self.begun.release()
            assert self.open.wait(MOST)
            return x

        self.model = fl.compile(lambda x: fl.functional.relu(wait(x)), fl.graph.Input("x", (2,)))
        self.open.set()
        self.model(np.ones(2))  # bound
        self.open.clear()
        self.begun, self.names = threading.Semaphore(0), set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    made, before = Gate(), fl.get_num_threads()
    fl.set_num_threads(2)
    yield made
    made.open.set()
    fl.set_num_threads(before)
    forget("Wait", DOMAIN)


def test_it_gives_what_run_gives() -> None:
    model, xs = small(), [normal(n, 4) for n in range(1, 30)]

    async def all_at_once() -> list[dict[str, np.ndarray]]:
        return await asyncio.gather(*(model.arun({"x": x}) for x in xs))

    for x, got in zip(xs, asyncio.run(all_at_once()), strict=True):
        np.testing.assert_array_equal(got["y"], model(x))
    out = np.empty((1, 3), np.float32)
    got = asyncio.run(model.arun(xs[0], ["y", "h"], timeout=MOST))
    np.testing.assert_array_equal(got["h"], model.run(xs[0], ["h"])["h"])
    assert asyncio.run(model.arun(xs[0], out={"y": out}))["y"] is out


def test_the_loop_goes_on_meanwhile(gate: Gate) -> None:
    async def main() -> Any:
        run = asyncio.create_task(gate.model.arun(np.ones(2)))
        while not gate.begun.acquire(blocking=False):
            await asyncio.sleep(0)
        assert not run.done()  # and we are here
        gate.open.set()
        return await run

    assert next(iter(asyncio.run(main()).values())).tolist() == [1, 1]
    assert all(name.startswith("fastlayers") for name in gate.names)


def test_a_time_limit_holds_in_the_middle_of_a_run_and_before_it(gate: Gate) -> None:
    """Two threads are held up; others wait for one, and are never begun."""

    async def main() -> None:
        held = [asyncio.create_task(gate.model.arun(np.ones(2))) for _ in range(2)]
        for _ in held:
            while not gate.begun.acquire(blocking=False):
                await asyncio.sleep(0)
        with pytest.raises(fl.TimeoutError, match=r"it is not done after timeout=0\.05 seconds"):
            await gate.model.arun(np.ones(2), timeout=0.05)  # waits for a thread
        waiting = asyncio.create_task(gate.model.arun(np.ones(2)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.open.set()
        await asyncio.gather(*held)
        assert len(await gate.model.arun(np.ones(2))) == 1

    asyncio.run(main())
    assert sum(gate.begun.acquire(blocking=False) for _ in range(10)) == 1  # the last one; neither of those given up


def test_a_run_that_cannot_be_ended_is_not_waited_for(gate: Gate) -> None:
    async def main() -> None:
        with pytest.raises(fl.TimeoutError):
            await gate.model.arun(np.ones(2), timeout=0.05)  # in the middle of a step of Python
        gate.open.set()

    asyncio.run(main())


def test_errors_come_through() -> None:
    model = small()
    for feeds, timeout, error in (
        ({"q": 1}, None, fl.ArgumentError),
        ({"x": normal(1, 5)}, None, fl.ShapeError),
        (normal(1, 4), -1, fl.ArgumentError),
        (normal(1, 4), "soon", fl.DTypeError),
    ):
        with pytest.raises(error):
            asyncio.run(model.arun(feeds, timeout=timeout))  # type: ignore[arg-type]


def test_what_is_raised_reaches_who_waits_and_ends_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """StopIteration too, which a future cannot hold; and what nobody waits for."""

    def failing(error: BaseException) -> Callable[[float | None], None]:
        def fails(left: float | None) -> None:
            raise error

        return fails

    def waits(left: float | None) -> None:
        assert let.wait(MOST)

    async def stays() -> list[Any]:
        runs = [asyncio.create_task(hop.in_thread(run, None)) for run in (waits, lambda left: 7)]
        await asyncio.sleep(0.01)
        runs[0].cancel()
        let.set()
        return await asyncio.gather(*runs, return_exceptions=True)

    for error, told in ((StopIteration(3), RuntimeError), (SystemExit(3), SystemExit), (KeyError(3), KeyError)):
        with pytest.raises(told):
            asyncio.run(hop.in_thread(failing(error), None))
    let, done = threading.Event(), threading.Event()
    cancelled, seven = asyncio.run(stays())
    assert isinstance(cancelled, asyncio.CancelledError) and seven == 7
    before = fl.get_num_threads()
    shown: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", shown.append)
    for _ in range(2 * before):
        hop.submit(lambda: os.environ["LOST"])
    hop.submit(lambda: hop.submit(done.set))
    assert done.wait(MOST)
    assert all(args.exc_type is KeyError for args in shown) and len(shown) >= 2 * before - 1


def test_the_interpreter_ends_once_what_was_begun_is_done() -> None:
    code = """
import os, threading, time
from fastlayers.model import hop
begun = threading.Event()
def work():
    begun.set()
    time.sleep(0.2)
    os.write(1, b"done\\n")  # at once: words and line ends of several prints may alternate
for _ in range(3):
    hop.submit(work)
begun.wait()
os.write(1, b"ends\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=MOST, check=True)
    assert sorted(done.stdout.split()) == ["done", "done", "done", "ends"] and done.stderr == ""


def test_threads_are_as_many_as_calls_may_use(gate: Gate) -> None:
    gate.open.set()
    for count in (1, 3):
        fl.set_num_threads(count)
        asyncio.run(gate.model.arun(np.ones(2)))
        assert list(hop._made) == [count]
        assert [t.name for t in hop._made[count].threads] == ["fastlayers_0"], "one run needs one"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_threads_of_its_own() -> None:
    model, x = small(), normal(2, 4)
    want = asyncio.run(model.arun(x))["y"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks next to threads
        child = os.fork()
    if child == 0:
        signal.alarm(MOST)
        os._exit(0 if np.array_equal(asyncio.run(model.arun(x))["y"], want) else 1)
    assert os.waitpid(child, 0)[1] == 0
