"""One version of a model as it is served: what it takes, which of its requests may run together, and how."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, Error, TimeoutError, UnsupportedError
from ..model import Model, TensorSpec, load
from ..text.opened import opened, pack
from . import logs
from .config import Config
from .datatypes import datatype

__all__ = ["Served"]

# A value that a batch shares, such as a rate, is compared byte by byte: not more of them than this.
SHARED_BYTES = 1024
# Runs that keep all other requests waiting: what they compute (see `Program.known_work`: half a millisecond), and what they read.
INLINE_WORK, INLINE_BYTES = 5e7, 1 << 20


class Served:
    """A loaded model."""

    def __init__(
        self,
        name: str,
        version: str,
        path: Path,
        config: Config,
        most: int,
        delay: float,
        cache: int | None = None,
        completions: int = 16,
        storage: Mapping[str, Any] | None = None,
    ) -> None:
        """Loads it.

        Args:
            most: rows of a batch unless `config` says otherwise.
            delay: seconds that a request waits for others, unless `config` says otherwise.
            cache: bytes for what a decoder knows of earlier prompts; None: as `Generator` has it.
            completions: the most sequences of a decoder that grow at once.
            storage: `precision` and `weights` of `fastlayers.load`.
        """
        self.name, self.version, self.config = name, version, config
        # The Encoder, CrossEncoder, Classifier or Generator that the model is, or the reason why it is none.
        self.text: Any = "it is no text model: it has no tokenizer"
        self.batch: Any = None  # completions that grow together
        self.model: Model = self._opened(path, cache, completions, storage or {})
        for spec in (*self.model.inputs, *self.model.outputs):
            if type(spec) is not TensorSpec or datatype(spec.dtype) is None:
                raise UnsupportedError(
                    f"serve: {name}: {spec.name!r} is a {type(spec).__name__} of {spec.dtype}: only plain tensors are served"
                )
        self.platform = f"{'transformers' if path.is_dir() else path.suffix[1:]}_fastlayers"
        self.created = int(time.time())
        self.most = config.batch or most
        self.delay = delay if config.delay is None else config.delay
        # Requests run together along these axes; the graph must show that their rows are independent.
        self.axes: dict[str, int] = {}
        try:
            self.axes = _axes(self.model, config.axes)
        except UnsupportedError as error:
            self._no_batches(str(error))
        self.closed = False
        self._stream: Any = None

    def _opened(self, path: Path, cache: int | None, completions: int, storage: Mapping[str, Any]) -> Model:
        if path.is_dir() or path.suffix == ".gguf":
            try:
                self.text, model = opened(path, cache, completions, **storage)
            except (ArgumentError, UnsupportedError) as error:
                if path.is_dir():
                    raise
                self.text, model = str(error), load(path, **storage)
            if isinstance(self.text, str):
                logs.event("text off", level="warning", model=self.name, version=self.version, why=self.text)
            return model
        return load(path, zipmap=False, **storage)

    def pack(self) -> None:
        """Packs the weights, which the first request would do, where they are the same for requests of all sizes: those of text
        models, and of networks whose batch alone is open."""
        inputs = self.model.inputs
        with suppress(Error):  # a network that takes no such sizes: its requests will see
            if not isinstance(self.text, str):
                pack(self.text)
            else:
                shapes = {x.name: [1 if i == self.axes.get(x.name) else n for i, n in enumerate(x.shape or ())] for x in inputs}
                if all(x.shape is not None and all(type(n) is int for n in shapes[x.name]) for x in inputs):
                    self.model.prepare(shapes)

    def signature(self, feeds: Mapping[str, np.ndarray]) -> tuple[Any, int]:
        """Key that requests must share to run together, and the number of rows of this one; None: it runs alone."""
        if self.most == 1:
            return None, 1
        parts: list[Any] = []
        rows = set()
        for spec in self.model.inputs:
            array, axis = feeds[spec.name], self.axes.get(spec.name)
            if axis is None:
                if array.nbytes > SHARED_BYTES or array.dtype.kind == "O":
                    return None, 1
                parts.append((array.shape, array.tobytes()))
            elif array.ndim <= axis:
                return None, 1
            else:
                rows.add(array.shape[axis])
                parts.append(array.shape[:axis] + array.shape[axis + 1 :])
        if len(rows) != 1 or not 0 < (count := rows.pop()) < self.most:
            return None, 1
        return tuple(parts), count

    def run(self, feeds: Mapping[str, np.ndarray], timeout: float) -> dict[str, np.ndarray]:
        """One request, or several that were joined."""
        return self.model.run(feeds, timeout=timeout)

    def quick(self, feeds: Mapping[str, np.ndarray]) -> bool:
        """Whether a run is known to be short before it begins: these sizes, and the values that decide sizes, ran before."""
        work = self.model._main.known_work([feeds[spec.name] for spec in self.model.inputs])
        return work is not None and work <= INLINE_WORK

    def joined(self, requests: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Requests of one signature as one."""
        return {
            spec.name: requests[0][spec.name]
            if (axis := self.axes.get(spec.name)) is None
            else np.concatenate([feeds[spec.name] for feeds in requests], axis=axis)
            for spec in self.model.inputs
        }

    def apart(self, results: Mapping[str, np.ndarray], rows: Sequence[int]) -> list[dict[str, np.ndarray]] | None:
        """The answers of requests of so many rows that ran as one; None if they must run alone."""
        total = sum(rows)
        for name, array in results.items():
            if array.ndim <= self.axes[name] or array.shape[self.axes[name]] != total:
                self._no_batches(f"output {name!r} has shape {array.shape} for {total} rows")
                return None
        answers = []
        at = 0
        for count in rows:
            answers.append({n: a[(slice(None),) * self.axes[n] + (slice(at, at + count),)] for n, a in results.items()})
            at += count
        return answers

    def _no_batches(self, why: str) -> None:
        self.most = 1
        logs.event("batching off", level="warning", model=self.name, version=self.version, why=why)

    @property
    def streams(self) -> bool:
        """Whether `stream` answers at once."""
        return self._stream is not None

    def stream(self) -> Any:
        """A new stream of the model, as its configuration says. The first call takes long: the network is rewritten."""
        if self._stream is None:
            self._stream = self.model.stream(**self.config.stream)
        return self._stream.clone()


def _axes(model: Model, given: Mapping[str, int] | None) -> dict[str, int]:
    """The axis of the batch of each input that has one, and of every output.

    Raises:
        UnsupportedError: the rows of a batch are not shown to be independent.
        ArgumentError: the configuration names what is not there, or says another axis of an output than the graph.
    """
    specs = {spec.name for spec in (*model.inputs, *model.outputs)}
    if given is None:
        return model.batch_axes()
    if unknown := sorted(set(given) - specs):
        raise ArgumentError(f"serve: [batch] axes has {unknown}: expected names of inputs and outputs")
    found = model.batch_axes({name: axis for name, axis in given.items() if name in model.inputs.names})
    if wrong := {name: axis for name, axis in given.items() if found.get(name) != axis}:
        raise ArgumentError(f"serve: [batch] axes has {wrong}: by the graph they are { ({name: found[name] for name in wrong}) }")
    return found


def late(seconds: float) -> TimeoutError:
    """The error of a request that has waited for so long."""
    return TimeoutError(f"the request was not done after {seconds:g} seconds")
