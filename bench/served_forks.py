"""Do forks answer while other threads are anywhere in the package? ``python -m bench.served_forks [1000 [scene ...]]`` forks that
often in each scene and prints how many children made their first call.

In each scene threads do one thing all the time: serve known sizes, or sizes not seen before; pick outputs by name; load
weights and call layers; switch kernels. Every fork is at another moment; the child does the same thing once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import numpy as np

import fastlayers as fl

SECONDS_A_CHILD = 60
Scene = tuple[int, Callable[[int], object]]  # how many threads do it, and what: by a number that grows


def _model(net: fl.Layer, *shape: int | str) -> fl.Model:
    rng = np.random.default_rng(0)
    net.load_state_dict({name: rng.standard_normal(sizes) / 6 for name, sizes in net.tensor_shapes().items()})
    return fl.compile(net, fl.graph.Input("x", shape))


def scenes() -> dict[str, Scene]:
    """Work of the threads, by name."""
    lstm = _model(fl.LSTM(32, 32), "t", 1, 32)
    encoder = _model(fl.Sequential(*[fl.TransformerEncoderLayer(16, 2, 32, batch_first=True) for _ in range(4)]), "n", "t", 16)
    layers = fl.Sequential(*[fl.Linear(16, 16) for _ in range(20)])
    state = {name: np.ones(sizes, np.float32) for name, sizes in layers.tensor_shapes().items()}
    rng = np.random.default_rng(1)

    def call(model: fl.Model, *shape: int) -> object:
        return model(np.zeros(shape, np.float32))

    def load(_: int) -> object:
        layers.load_state_dict(state)
        return layers(np.zeros((1, 16), np.float32))

    def switch(turn: int) -> object:
        with fl.kernels.use("reference" if turn % 2 else "aot"):
            return load(turn)

    def compile(_: int) -> object:
        return call(_model(fl.Linear(16, 16), "n", 16), 2, 16)

    return {
        "known sizes": (1, lambda turn: call(lstm, 1 + turn % 2, 1, 32)),
        "new sizes": (1, lambda turn: call(lstm, 1 + turn % 300, 1, 32)),
        "random lengths": (4, lambda _: call(encoder, 1, int(rng.integers(1, 300)), 16)),
        "names": (1, lambda turn: lstm.run({"x": np.zeros((5, 1, 32), np.float32)}, [lstm.outputs[turn % 2].name])),
        "layers": (1, load),
        "new models": (2, compile),
        "switching kernels": (1, switch),
    }


def answers(work: Callable[[int], object], turn: int) -> bool:
    """Does a forked child do the work?"""
    with warnings.catch_warnings():
        # Since 3.12 Python warns of forks in a process with threads: whether they work is the question here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(SECONDS_A_CHILD)  # a child that hangs dies of it
            work(turn)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


@contextmanager
def busy(threads: int, work: Callable[[int], object]) -> Iterator[None]:
    """Meanwhile so many threads do the work, turn after turn."""
    stop, begun = threading.Event(), threading.Barrier(threads + 1)

    def serve() -> None:
        begun.wait()
        for turn in count(1):
            if stop.is_set():
                return
            work(turn)

    workers = [threading.Thread(target=serve) for _ in range(threads)]
    for worker in workers:
        worker.start()
    begun.wait()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def count_answers(scene: Scene, forks: int) -> int:
    """Counts the children that answered, of so many."""
    threads, work = scene
    good = 0
    with busy(threads, work):
        for turn in range(forks):
            time.sleep(0.0001 * (turn % 30))
            good += answers(work, 1000 + turn)
    return good


def main() -> None:
    """Prints a line a scene; fails if a child did not answer."""
    forks = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    wanted = sys.argv[2:]
    bad = 0
    for name, scene in scenes().items():
        if not wanted or name in wanted:
            good = count_answers(scene, forks)
            bad += forks - good
            print(f"{name}: {good} of {forks} forked children answer", flush=True)
    raise SystemExit(bad > 0)


if __name__ == "__main__":
    main()
