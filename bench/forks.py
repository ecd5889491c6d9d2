"""Do forks answer after threaded use? ``python -m bench.forks [200]`` forks that often and prints how many children finished.

It forks from the main thread and from another, with the pool idle and with the pool busy; each child runs threaded work itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings

from fastlayers.kernels.aot import _engine

SECONDS_A_CHILD = 20


def answers() -> bool:
    """Does a forked child finish threaded work on workers of its own?"""
    with warnings.catch_warnings():
        # Since 3.12 Python warns of forks in a process with threads: whether they work is the question here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(SECONDS_A_CHILD)  # a child that hangs dies of it
            fresh = _engine.pool_workers() == 0
            done = _engine.parallel_probe(8, 2, 20_000, 3, 5)
            results = [_engine.empty_array((300, 300)) for _ in range(3)]
            right = (done["runs"] == 5).all() and (done["inner"] == 5).all() and all(r.shape == (300, 300) for r in results)
            code = 0 if fresh and right and _engine.pool_workers() == 1 else 2
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def count_answers(forks: int) -> int:
    """Counts the forks that answered, of so many: a quarter each from the main thread or another, with the pool idle or in
    use."""
    stop = threading.Event()

    def use_pool() -> None:
        while not stop.is_set():
            _engine.parallel_probe(16, 2, 5_000)
            _engine.empty_array((200, 200))

    good = 0
    _engine.parallel_probe(16, 2, 50_000)
    for busy in (False, True):
        if busy:
            user = threading.Thread(target=use_pool)
            user.start()
        for thread in (False, True):
            share = [forks * (2 * busy + thread + k) // 4 for k in (0, 1)]
            answered: list[bool] = []

            def fork_some(count: int = share[1] - share[0], answered: list[bool] = answered) -> None:
                answered.extend(answers() for _ in range(count))

            if thread:
                forker = threading.Thread(target=fork_some)
                forker.start()
                forker.join()
            else:
                fork_some()
            good += sum(answered)
    stop.set()
    user.join()
    # The parent goes on, with its own workers.
    alive = _engine.parallel_probe(16, 2, 50_000)
    return good if (alive["runs"] == 1).all() and _engine.pool_workers() == 1 else -1


def main() -> int:
    forks = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    good = count_answers(forks)
    how_many = "all" if good == forks else f"(only {good} of them)"
    print(f"{forks} forks after threaded use {how_many} answer")
    return 0 if good == forks else 1


if __name__ == "__main__":
    sys.exit(main())
