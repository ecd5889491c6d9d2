"""Recycled memory: blocks come back, stay apart, outlive no view and no bound; and results made of them are ordinary arrays."""

from __future__ import annotations

import copy
import gc
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import Activation

RECYCLED = 1 << 16  # bytes from which on results are recycled
MB = 1 << 20


@pytest.fixture(autouse=True)
def _empty_list(engine: Any) -> Iterator[None]:
    engine.memory_trim()
    yield
    engine.memory_trim()


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def floats(nbytes: int) -> tuple[int, ...]:
    return (nbytes // 4,)


@pytest.mark.parametrize(
    "shape",
    [(), (0,), (0, 3), (5, 0, 7), (1,), (3, 5), (127, 129), (128, 128), (131, 137), (2, 3, 257, 263), (1,) * 8 + (70_000,)],
)
def test_results_are_ordinary_arrays(engine: Any, shape: tuple[int, ...]) -> None:
    array = engine.empty_array(shape)
    assert array.shape == shape and array.dtype == np.float32
    assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    array[...] = np.arange(array.size, dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(array.ravel(), np.arange(array.size))
    copied = copy.deepcopy(array)
    assert copied.flags.owndata
    np.testing.assert_array_equal(copied, array)


def test_large_results_begin_on_a_line_and_at_different_places_of_a_page(engine: Any) -> None:
    results = [engine.empty_array(floats(2 * RECYCLED)) for _ in range(16)]
    assert all(address(r) % 64 == 0 for r in results)
    assert len({address(r) % 4096 for r in results}) == 16


def test_memory_comes_back(engine: Any) -> None:
    first = engine.empty_array(floats(MB))
    where = address(first)
    assert engine.memory_kept() == 0
    del first
    assert engine.memory_kept() == MB
    second = engine.empty_array(floats(MB - 1000))  # the same class
    assert address(second) == where and engine.memory_kept() == 0


def test_weights_share_chunks_that_go_with_the_last_of_them(engine: Any) -> None:
    """Blocks that live long are not retained, in whichever order they go, nor is a chunk that nobody uses."""
    before, kept = engine.memory_used(), engine.memory_kept()
    weight = np.ones((300, 512), np.float32)
    pack = dispatch.kernel("linear_pack")
    with fl.kernels.use("aot"):
        for order in (1, -1):
            packed = [pack(weight * i, None) for i in range(70)]  # 43 MB: two chunks
            used = engine.memory_used() - before
            assert 70 * weight.nbytes <= used <= 70 * (weight.nbytes * 304 // 300 + 4096)
            out = np.empty((1, 300), np.float32)
            for i in (0, 1, 69):
                dispatch.kernel("linear")(np.ones((1, 512), np.float32), packed[i], out, None, Activation(0))
                assert (out == 512 * i).all()
            while packed:
                packed.pop(0 if order > 0 else -1)
            del out
            assert engine.memory_used() <= before
    assert engine.memory_kept() == kept


def test_the_block_freed_last_is_taken_first(engine: Any) -> None:
    results = [engine.empty_array(floats(MB)) for _ in range(3)]
    order = [address(r) for r in results]
    while results:
        results.pop(0)
    again = [address(r) for r in [engine.empty_array(floats(MB)) for _ in range(3)]]
    assert again == order[::-1]


def test_a_block_of_the_next_class_will_do_but_no_larger_one(engine: Any) -> None:
    engine.empty_array(floats(MB))
    assert engine.memory_kept() == MB
    near = engine.empty_array(floats(MB - MB // 16))
    assert engine.memory_kept() == 0
    del near
    far = engine.empty_array(floats(MB // 2))
    assert engine.memory_kept() == MB
    del far


@pytest.mark.parametrize("nbytes", [RECYCLED, RECYCLED + 4, 3 * RECYCLED, 5 * MB + 12, 64 * MB])
def test_little_is_wasted(engine: Any, nbytes: int) -> None:
    result = engine.empty_array(floats(nbytes))
    del result
    assert nbytes <= engine.memory_kept() <= nbytes * 1.125


def test_views_keep_the_memory(engine: Any) -> None:
    result = engine.empty_array((300, 300))
    result[...] = 7
    views = [result[3:5], result.T, result.reshape(90, 1000)[:, ::7], memoryview(result)]
    del result
    while views:
        assert engine.memory_kept() == 0
        assert (np.asarray(views[0]) == 7).all()
        views.pop(0)
    assert engine.memory_kept() > 0


def test_a_result_cannot_be_resized_in_place(engine: Any) -> None:
    result = engine.empty_array((300, 300))
    with pytest.raises(ValueError, match="does not own its data"):
        result.resize((10, 10), refcheck=False)
    assert weakref.ref(result)() is result


def test_results_in_a_cycle_are_collected(engine: Any) -> None:
    gc.collect()  # what other tests have left
    engine.memory_trim()
    cycle: list[Any] = [engine.empty_array(floats(MB))]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert engine.memory_kept() == MB


@pytest.mark.parametrize(
    "shape", [(2**62,), (2**31, 2**31), (2**40, 2**40), (2**32, 2**32, 2**32), (2**61 - 1,), (2**60, 4, 4), (2**45,)]
)
def test_absurd_sizes_are_refused(engine: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(fl.errors.LimitError, match=r"no memory for a float32 result of shape \(") as caught:
        engine.empty_array(shape)
    assert isinstance(caught.value, MemoryError)


def test_weights_make_no_room_for_what_is_kept(run_script: Callable[[str], str]) -> None:
    script = """
        import fastlayers as fl
        net = fl.Sequential(*[fl.Linear(600, 600) for _ in range(30)])
        net.load_state_dict({name: np.ones(shape, np.float32) for name, shape in net.tensor_shapes().items()})
        net(np.ones((1, 600), np.float32))
        assert engine.memory_used() > 40e6, engine.memory_used()  # packed
        engine.memory_trim()
        for k in range(48):  # one at a time, each larger than all before
            engine.empty_array((int(65_536 * 2 ** (k / 8)) // 4,))
        assert 4e6 < engine.memory_kept() <= 16 << 20, engine.memory_kept()
    """
    run_script(script)


def test_what_is_kept_is_bounded_by_what_was_in_use(run_script: Callable[[str], str]) -> None:
    script = """
        for k in range(400):  # one at a time, of sizes that never fit each other
            engine.empty_array((80_000 + 50_000 * (k % 79),))
            assert engine.memory_kept() <= 2 * 4 * 80_000 * 1.125 * 80, engine.memory_kept()
        assert engine.memory_kept() <= 36e6, engine.memory_kept()
    """
    run_script(script)


@pytest.mark.parametrize("size", [80, 300, 1000])
def test_large_blocks_are_kept_as_long_as_they_are_needed(engine: Any, size: int) -> None:
    first = engine.empty_array(floats(size * MB))
    place = address(first)
    del first
    assert size * MB <= engine.memory_kept() <= size * MB * 1.125 + 1
    second = engine.empty_array(floats(size * MB))
    assert address(second) == place and engine.memory_kept() == 0
    # What is in use at one time bounds what is held: another size takes the place of this one.
    del second
    other = engine.empty_array(floats(size * MB * 2))
    assert engine.memory_kept() <= max(size * MB * 1.125, 256 * MB)
    del other
    engine.memory_trim()
    assert engine.memory_kept() == 0


def test_large_blocks_of_many_sizes_hold_no_more_than_the_largest(run_script: Callable[[str], str]) -> None:
    script = """
        MB = 1 << 20
        for k in range(60):
            size = 300 + 37 * k % 500
            a = engine.empty_array((size * MB // 4,))
            assert engine.memory_kept() + engine.memory_used() <= 1.125 * 800 * MB + 256 * MB
            del a
            assert engine.memory_kept() <= 1.125 * 800 * MB
    """
    run_script(script)


@pytest.mark.parametrize("then", [100, 100_000], ids=["small requests", "larger ones"])
def test_a_burst_is_forgotten(run_script: Callable[[str], str], then: int) -> None:
    script = f"""
        held = [engine.empty_array((40 << 18,)) for _ in range(20)]
        held.clear()
        assert engine.memory_kept() >= 800 << 20
        from fastlayers.kernels.aot._step import foreign_step
        small = {then} < 1000  # then the plan of a step, which goes to malloc
        end = time.monotonic() + 100
        # Two windows of requests and of time.
        while engine.memory_kept() > 32 << 20 and time.monotonic() < end:
            for _ in range(5000):
                foreign_step(0, bytes({then}), 0, 0.0, None) if small else engine.empty_array(({then},))
        assert engine.memory_kept() <= 32 << 20, engine.memory_kept()
    """
    run_script(script)


def test_random_sizes_do_not_grow(run_script: Callable[[str], str]) -> None:
    script = """
        def resident():
            for line in open("/proc/self/status"):
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) * 1024
        rng = np.random.default_rng(0)
        alive = [None] * 24
        total = most = 0
        sizes = np.exp(rng.uniform(np.log(1e3), np.log(2e6), 10_000)).astype(int)  # up to 8 MB each
        begin = resident() if os.path.exists("/proc/self/status") else None
        for k, n in enumerate(sizes):
            slot = int(rng.integers(24))
            alive[slot] = None
            a = alive[slot] = engine.empty_array((int(n),))
            a[::1024] = k  # touch every page
            assert engine.memory_kept() <= 256 << 20
            if begin is not None and k % 500 == 499:
                bound = sum(x.nbytes for x in alive if x is not None) * 1.3 + engine.memory_kept() + (64 << 20)
                assert resident() - begin < bound, (k, resident() - begin, bound)
        alive.clear()
        del a
        assert 0 < engine.memory_kept() <= 256 << 20
        engine.memory_trim()
        assert engine.memory_kept() == 0
        assert begin is None or resident() - begin < 64 << 20, resident() - begin
    """
    run_script(script)


def test_threads_never_share_a_block(engine: Any) -> None:
    wrong: list[int] = []
    turn = itertools.count(1)

    def work() -> None:
        held: list[tuple[np.ndarray, int]] = []
        for k in range(300):
            mark = next(turn)
            result = engine.empty_array((20_000 + 997 * (k % 13),))
            result[...] = mark
            held.append((result, mark))
            if len(held) > 4:
                old, expected = held.pop(0)
                if not (old == expected).all():
                    wrong.append(expected)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.parametrize(
    ("what", "rounds", "flags"),
    [
        ("hammer", 600, []),
        ("hammer", 150, ["-fsanitize=thread"]),
        ("hammer", 300, ["-fsanitize=address,undefined"]),
        ("fork", 100, []),
    ],
    ids=["plain", "thread sanitizer", "address sanitizer", "fork"],
)
def test_stress(stress: Callable[..., str], what: str, rounds: int, flags: list[str]) -> None:
    stress("memory_stress.c", what, str(rounds), flags=flags)


def test_weights_of_one_call_take_no_new_memory_each_time(engine: Any) -> None:
    """A function packs its weights for one call alone: their memory is there again for the next, without a fault of a page."""
    resource = pytest.importorskip("resource")
    if os.environ.get("FASTLAYERS_SANITIZE"):
        pytest.skip("AddressSanitizer's allocator keeps what is freed for a while, so that each call takes new pages")
    x, w = np.ones((8, 256), np.float32), np.ones((256, 256), np.float32)
    for _ in range(5):
        fl.functional.linear(x, w)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        fl.functional.linear(x, w)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 100
