"""Memory and streams: what is used again, when, and what waits for what."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from .calls import numbers, requires_cuda

pytestmark = requires_cuda


def test_memory_in_a_cycle_is_not_freed_before_it_is_lent_again() -> None:
    """A collector ends what only garbage holds before it tells the garbage."""
    from fastlayers.kernels.cuda import _device

    array = _device.empty((7000,))
    pointer = array.pointer
    ended = weakref.finalize(array.block.buffer, lambda: None)
    cycle: list[Any] = [array]
    cycle.append(cycle)
    del array, cycle
    gc.collect()
    assert ended.alive
    assert _device.empty((7000,)).pointer == pointer


def test_what_is_kept_is_not_lent() -> None:
    from fastlayers.kernels.cuda import _device

    kept = _device.upload(np.zeros(9000, np.float32))
    ended = weakref.finalize(kept.block.buffer, lambda: None)
    del kept
    gc.collect()
    assert not ended.alive


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """Who waits for what; the simulator has neither streams nor events."""
    from fastlayers.kernels import cuda
    from fastlayers.kernels.cuda import _device, _driver, _memory

    told: list[tuple[Any, ...]] = []

    def event() -> Any:
        told.append(("event", _driver.stream_pointer()))
        return _driver.stream_pointer(), len(told)

    for module in (_driver, _device, _memory, cuda):  # the package hands it to programs
        if hasattr(module, "event"):
            monkeypatch.setattr(module, "event", event)
    monkeypatch.setattr(_memory, "wait", lambda done, stream: told.append(("wait", done, stream)))
    monkeypatch.setattr(_memory, "order", lambda first, then: told.append(("order", first, then)) if first != then else None)
    monkeypatch.setattr(_driver, "_stream", lambda pointer: 0)
    return told


def waits(log: list[tuple[Any, ...]], of: int, by: int) -> bool:
    """Did stream `by` wait for an event of stream `of`?"""
    return any((e[0] == "wait" and e[1][0] == of and e[2] == by) or e == ("order", of, by) for e in log)


@pytest.fixture
def model() -> fl.Model:
    return fl.compile(lambda x: fl.functional.tanh(x), fl.graph.Input("x", ("n", 6)), device="cuda")


def test_results_of_a_stream_are_waited_for_by_others(model: fl.Model, log: list[tuple[Any, ...]]) -> None:
    there = fl.cuda.array(numbers(3, 6))
    with fl.cuda.stream(7):
        y = model(there)
        assert waits(log, 0, 7)  # for x
        log.clear()
        z = model(y)
        assert not waits(log, 0, 7) and not any(e[0] == "order" for e in log)
    log.clear()
    y.numpy()
    assert waits(log, 7, 0)
    log.clear()
    z.__dlpack__(stream=9)
    assert waits(log, 7, 9)
    log.clear()
    z.__dlpack__()
    assert waits(log, 7, 1)  # the default stream, where none is named
    log.clear()
    assert z.__cuda_array_interface__["stream"] == 1 and waits(log, 7, 0)


def test_memory_that_another_stream_reads_is_not_lent_before_it_is_done(model: fl.Model, log: list[tuple[Any, ...]]) -> None:
    there = fl.cuda.array(numbers(3, 6))
    with fl.cuda.stream(7):
        model(there)
    log.clear()
    del there
    gc.collect()
    assert waits(log, 7, 0)


def test_memory_that_others_have_seen_is_left_to_the_driver(log: list[tuple[Any, ...]]) -> None:
    for show in (lambda a: a.__cuda_array_interface__, lambda a: a.__dlpack__(stream=9)):
        there = fl.cuda.array(numbers(3, 6))
        ended = weakref.finalize(there.block.buffer, lambda: None)
        show(there)
        del there
        gc.collect()
        assert not ended.alive
    there = fl.cuda.array(numbers(3, 6))
    ended = weakref.finalize(there.block.buffer, lambda: None)
    there.__dlpack__(stream=1)
    del there
    gc.collect()
    assert ended.alive


def test_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastlayers.kernels.cuda import _driver

    fl.cuda.array(numbers(1))
    monkeypatch.setattr(_driver, "current_device", lambda: 5)
    with pytest.raises(fl.DeviceError, match="GPU is 5"):
        fl.cuda.array(numbers(1))


class Other:
    """An array that gives its memory by DLPack, or refuses."""

    def __init__(self, error: Exception | None = None) -> None:
        self.array, self.error = fl.cuda.array(numbers(3, 6)), error
        self.__cuda_array_interface__ = {k: v for k, v in self.array.__cuda_array_interface__.items() if k != "stream"}
        self.asked = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.array.__dlpack__(**options)


def test_an_interface_without_a_stream_is_passed_over_for_dlpack() -> None:
    other = Other()
    assert fl.cuda.array(other).pointer == other.array.pointer
    assert other.asked == 1
    with pytest.raises(fl.DTypeError, match="BufferError: it requires a gradient"):
        fl.cuda.array(Other(BufferError("it requires a gradient")))
