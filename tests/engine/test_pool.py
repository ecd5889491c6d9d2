"""The pool of threads: every task runs once, under a number of its own, whoever else wants the pool; idle, it costs nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench import idle

TASKS = (0, 1, 2, 3, 7, 64, 257)
THREADS = (1, 2, 3, 8)
STEPS = 2_000


def expected_marks(tasks: int, steps: int) -> np.ndarray:
    """What the probe's generator leads to, task by task, in numpy."""
    mark = np.arange(tasks, dtype=np.uint64)
    for _ in range(steps):
        mark = mark * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return mark


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("tasks", TASKS)
def test_every_task_runs_once(engine: Any, tasks: int, threads: int) -> None:
    done = engine.parallel_probe(tasks, threads, STEPS)
    assert (done["runs"] == 1).all()
    assert (done["worker"] >= 0).all() and (done["worker"] < threads).all()
    np.testing.assert_array_equal(done["mark"], expected_marks(tasks, STEPS))


def test_workers_share_the_tasks(run_script: Callable[[str], str]) -> None:
    script = """
        assert engine.pool_workers() == 0, "started before it was needed"
        engine.parallel_probe(8, 1)
        engine.parallel_probe(1, 8)
        assert engine.pool_workers() == 0, "one task or one thread needs no worker"
        # 20 ms of work in small pieces, as often as it takes: the system decides when a new thread first runs.
        seen = set()
        for _ in range(200):
            seen |= set(engine.parallel_probe(200, 3, 60_000)["worker"].tolist())
            if len(seen) == 3:
                break
        assert seen == {0, 1, 2}, seen
        assert engine.pool_workers() == 2
        engine.parallel_probe(3, 2)
        assert engine.pool_workers() == 2, "workers stay"
    """
    run_script(script)


def test_every_worker_begins_with_its_own_stretch(run_script: Callable[[str], str]) -> None:
    """So that it finds in its cache what it wrote in the step before; tasks dealt out in turn would never fall so."""
    script = """
        end = time.monotonic() + 30  # a worker that has no processor is helped with all of its own
        while time.monotonic() < end:
            worker = engine.parallel_probe(40, 2, 3_000)["worker"]
            if worker.tolist() == [0] * 20 + [1] * 20:
                break
        else:
            raise AssertionError(worker)
    """
    run_script(script)


@pytest.mark.parametrize("channels", [384, 576])
def test_small_work_calls_a_worker_only_where_runs_are_close(run_script: Callable[[str], str], channels: int) -> None:
    """Work of about 40 and 60 us: alone after a pause, for two where another run has ended just now."""
    script = f"""
        import numpy as np
        import fastlayers as fl
        fl.set_num_threads(2)
        layer = fl.DepthwiseConv2d({channels}, 3, padding=1)
        layer.load_state_dict({{name: np.ones(shape, np.float32) for name, shape in layer.tensor_shapes().items()}})
        x = np.ones((1, {channels}, 14, 14), np.float32)
        model = fl.compile(layer, x)
        for _ in range(5):
            time.sleep(0.01)
            alone = model(x)
        assert engine.pool_workers() == 0, "called after a pause"
        for _ in range(2000):  # one of them follows the one before at once, whatever else the machine does
            np.testing.assert_array_equal(model(x), alone)
            model(x)
        assert engine.pool_workers() == 1, "not called"
    """
    run_script(script)


def test_steps_of_a_profile_keep_to_the_models_threads(run_script: Callable[[str], str]) -> None:
    script = """
        import numpy as np
        import fastlayers as fl
        fl.set_num_threads(2)
        layer = fl.Linear(200, 300)  # whose weights are packed by one thread, as larger ones are not
        layer.load_state_dict({name: np.ones(shape, np.float32) for name, shape in layer.tensor_shapes().items()})
        x = np.ones((2000, 200), np.float32)
        model = fl.compile(layer, x)
        model.num_threads = 1
        assert model.profile(x, runs=3).threads == 1
        assert engine.pool_workers() == 0, "steps ran on two"
        model.num_threads = 2
        model.profile(x, runs=3)
        assert engine.pool_workers() == 1
    """
    run_script(script)


def test_most_threads(run_script: Callable[[str], str]) -> None:
    script = """
        done = engine.parallel_probe(2_000, 10_000, 1_000, 0, 3)
        assert (done["runs"] == 3).all() and done["worker"].max() < 256
        assert engine.pool_workers() <= 255, engine.pool_workers()
    """
    run_script(script)


def test_a_thread_that_is_refused_leaves_the_work_to_the_caller(run_script: Callable[[str], str]) -> None:
    pytest.importorskip("resource")
    script = """
        import resource
        # No address space for a single stack.
        size = 0
        if os.path.exists("/proc/self/statm"):
            size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        if size:
            resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
        done = engine.parallel_probe(100, 4, 100, 0, 50)
        assert (done["runs"] == 50).all()
        if size:
            assert engine.pool_workers() == 0, engine.pool_workers()
            assert (done["worker"] == 0).all()
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            time.sleep(1.1)  # how long a refusal is remembered
            engine.parallel_probe(100, 4)
            assert engine.pool_workers() == 3, engine.pool_workers()
    """
    run_script(script)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_nested_jobs(engine: Any, threads: int) -> None:
    done = engine.parallel_probe(50, threads, STEPS, 11, 4)
    assert (done["runs"] == 4).all()
    assert (done["inner"] == 4).all()


def test_many_callers_at_once(engine: Any) -> None:
    tasks, repeat = 33, 40
    want, wrong = expected_marks(tasks, STEPS), []

    def call(threads: int) -> None:
        for inner in range(6):
            done = engine.parallel_probe(tasks, threads, STEPS, inner, repeat)
            right = (done["runs"] == repeat).all() and (done["inner"] == repeat).all() and (done["mark"] == want).all()
            if not right or (done["worker"] >= threads).any():
                wrong.append((threads, inner))

    callers = [threading.Thread(target=call, args=(1 + k % 4,)) for k in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_idle_workers_use_no_processor_time(engine: Any) -> None:
    # Three workers that spun would use up to 0.9 s here; blocked ones use nothing, and the rest is room for the clock's grain.
    assert idle.idle_cost(0.3) < 0.02


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux gives threads a place of their own")
def test_workers_run_where_the_process_does(run_script: Callable[[str], str]) -> None:
    script = """
        from fastlayers import functional
        others = set(os.listdir("/proc/self/task"))  # numpy may have threads too

        def places():
            found = {}
            for tid in set(os.listdir("/proc/self/task")) - others:
                nice = open(f"/proc/self/task/{tid}/stat").read().rsplit(")", 1)[1].split()[16]
                found[tid] = sorted(os.sched_getaffinity(int(tid))), int(nice)
            return found

        cpus, niceness = sorted(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0)
        def bound():
            others.add(str(threading.get_native_id()))
            os.sched_setaffinity(threading.get_native_id(), cpus[:1])
            if os.geteuid() == 0:  # others may not become more urgent again
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)
            engine.parallel_probe(64, 3, 20_000)
        thread = threading.Thread(target=bound)
        thread.start()
        thread.join()

        def wait_for(place):
            end = time.monotonic() + 50
            x = np.ones((512, 512), np.float32)
            while set(map(str, places().values())) != {str(place)} and time.monotonic() < end:
                functional.linear(x, x)  # looks the place up, about once a second
                engine.parallel_probe(64, 3, 20_000)
            assert len(places()) == 2 and set(map(str, places().values())) == {str(place)}, (place, places())

        wait_for((cpus, niceness))
        # And where the process goes later.
        os.sched_setaffinity(0, cpus[:1])
        os.setpriority(os.PRIO_PROCESS, 0, niceness + 5)
        wait_for((cpus[:1], niceness + 5))
    """
    run_script(script)


@pytest.mark.parametrize("thread", [False, True])
def test_exit_while_workers_run(run_script: Callable[[str], str], thread: bool) -> None:
    script = f"""
        def work():
            while True:
                engine.parallel_probe(64, 4, 20_000)
        if {thread}:
            threading.Thread(target=work, daemon=True).start()
            time.sleep(0.02)
        engine.parallel_probe(64, 4, 20_000)
        print("end")
    """
    assert run_script(script) == "end\n"


@pytest.mark.parametrize("words", [("hammer", "300"), ("fork", "20"), ("exit",), ("steps", "100"), ("float",)], ids=" ".join)
def test_stress(stress: Callable[..., str], words: tuple[str, ...]) -> None:
    stress("pool_stress.c", *words, flags=[])


def test_stress_under_thread_sanitizer(stress: Callable[..., str]) -> None:
    stress("pool_stress.c", "hammer", "200", flags=["-fsanitize=thread"])
