"""The file of `SessionOptions.enable_profiling`: a Chrome trace with the events of onnxruntime, and its names for them."""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DeviceError, Error
from ..report import Limits, measured, values_of
from ..report.data import Report
from ._errors import Fail
from ._providers import CPU
from ._values import type_of

if TYPE_CHECKING:
    from ..model.model import Model

__all__ = ["Profiler"]

MOST = 1_000_000  # events, as there
_UNUSED = Limits(float("inf"), float("inf"))


class Profiler:
    """The events of a session. The file is written when profiling ends, at the latest when the session goes.

    Args:
        prefix: of the file's path; the time and ".json" follow.
        begin: when the session's making began, of `time.perf_counter_ns`.
    """

    def __init__(self, prefix: str, begin: int) -> None:
        self.start_ns = time.time_ns() - (time.perf_counter_ns() - begin)
        self._begin = begin
        seconds, rest = divmod(self.start_ns, 10**9)
        self.path = f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S', time.localtime(seconds))}_{rest // 10**6:03}.json"
        self._events: list[dict[str, Any]] = []
        try:
            with open(self.path, "w", encoding="utf-8"):
                pass
        except OSError as error:
            raise Fail(f"profile: cannot write {self.path!r}: {error.strerror}") from error

    def session(self, name: str, begin: int, end: int) -> None:
        """An event of the session: loading, or a run."""
        self._add("Session", name, begin, end - begin, {})

    def kept_by(self, owner: Any) -> None:
        """Ends with it."""
        self._finalizer = weakref.finalize(owner, _write, self.path, self._events)

    def end(self) -> str:
        """Writes the file; its path, or "" if that was done before."""
        return self.path if self._finalizer() else ""

    @property
    def going(self) -> bool:
        """Whether it has not ended."""
        return self._finalizer.alive

    def steps(self, model: Model, arrays: dict[str, Any], begin: int) -> None:
        """Runs the model once more, for the times of its steps, which are put where the run began. What has none, since numpy
        runs all of it or it failed, has no events.
        """
        try:
            given = [np.ascontiguousarray(array) for array in model._converted(arrays)]
            sides = values_of(model.inputs), values_of(model.outputs)
            report = measured(model._main.binding(list(given)), *sides, given, 1, model.num_threads, 1, _UNUSED)
        except (DeviceError, Error):
            return
        self._nodes(report, given, begin)

    def _nodes(self, report: Report, given: list[Any], begin: int) -> None:
        # By the segment and the number of a value: a plan's first are its inputs. Weights' are not told.
        shapes: dict[tuple[int, int], dict[str, list[int]]] = {}
        if not report.staged:
            shapes = {(0, i): {type_of(array)[7:-1]: list(array.shape)} for i, array in enumerate(given)}
        at, stretch, shift = begin, -1, begin
        for index, row in enumerate(report.steps):
            step = row.step
            out = {type_of(np.empty(0, step.dtype))[7:-1]: list(step.shape)} if step.dtype else {}
            nbytes = int(np.prod(step.shape, dtype=np.int64)) * np.dtype(step.dtype).itemsize if step.dtype else 0
            for made in step.makes:
                shapes[row.stretch, made] = out
            if not row.seconds:
                continue
            if row.stretch != stretch:  # a part of a network that runs in stages: each was timed alone
                stretch, shift = row.stretch, at
            first = max(at, shift + round(1e9 * row.begins[0]))
            taken = round(1e9 * row.seconds[0])
            at = first + taken
            weights = 4 * step.parameters
            told = {
                "op_name": step.op, "provider": CPU, "node_index": str(index), "output_size": str(nbytes),
                "parameter_size": str(weights), "activation_size": str(max(0, step.bytes - weights - nbytes)),
                "input_type_shape": [shapes[row.stretch, read] for read in step.reads if (row.stretch, read) in shapes],
                "output_type_shape": [out], "kernels": row.where,
            }  # fmt: skip
            self._add("Node", f"{step.name}_kernel_time", first, taken, told)

    def _add(self, category: str, name: str, begin: int, taken: int, told: dict[str, Any]) -> None:
        if len(self._events) < MOST:
            self._events.append(
                {
                    "cat": category, "pid": os.getpid(), "tid": threading.get_native_id(), "dur": taken // 1000,
                    "ts": (begin - self._begin) // 1000, "ph": "X", "name": name, "args": told,
                }
            )  # fmt: skip


def _write(path: str, events: list[dict[str, Any]]) -> bool:
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n")
    events.clear()
    return True
