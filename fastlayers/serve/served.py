"""One version of a model as it is served: what it takes, which of its requests may run together, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, TimeoutError, UnsupportedError
from ..model import Model, TensorSpec, load
from . import logs
from .config import Config
from .datatypes import datatype

__all__ = ["Served"]

# A value that a batch shares, such as a rate, is compared byte by byte: not more of them than this.
SHARED_BYTES = 1024
# Signatures of which batches have been compared with lone runs; what comes later runs alone.
MOST_SIGNATURES = 64


class Served:
    """A loaded model; never changed but for what is known of its batches."""

    def __init__(self, name: str, version: str, path: Path, config: Config, most: int, delay: float) -> None:
        """Loads it.

        Args:
            most: rows of a batch unless `config` says otherwise.
            delay: seconds that a request waits for others, unless `config` says otherwise.
        """
        self.name, self.version, self.config = name, version, config
        self.model: Model = load(path, zipmap=False)
        for spec in (*self.model.inputs, *self.model.outputs):
            if type(spec) is not TensorSpec or datatype(spec.dtype) is None:
                raise UnsupportedError(
                    f"serve: {name}: {spec.name!r} is a {type(spec).__name__} of {spec.dtype}: only plain tensors are served"
                )
        self.platform = f"{path.suffix[1:]}_fastlayers"
        self.most = config.batch or most
        self.delay = delay if config.delay is None else config.delay
        self.axes = _axes(self.model, config.axes)
        if not self.axes:
            self.most = 1
        # What a signature has shown: whether its batches have the bits of lone runs.
        self.proven: set[Any] = set()
        # Loops take as long as their inputs say, whatever their sizes.
        self.loops = any(node.op in ("Loop", "Scan") for node in self.model._main.graph.nodes)
        self.closed = False

    def signature(self, feeds: Mapping[str, np.ndarray]) -> tuple[Any, int]:
        """What requests must have in common to run together, and how many rows this one has; None: it runs alone."""
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
        """One request, alone."""
        return self.model.run(feeds, timeout=timeout)

    def together(
        self, requests: Sequence[tuple[Mapping[str, np.ndarray], int]], signature: Any, timeout: float
    ) -> list[dict[str, np.ndarray]] | None:
        """The answers of requests of one signature and so many rows, run as one; None if they must run alone.

        The first batch of a signature is compared with lone runs, bit by bit: a network may mix what its file calls a batch.
        """
        joined = {
            spec.name: requests[0][0][spec.name]
            if (axis := self.axes.get(spec.name)) is None
            else np.concatenate([feeds[spec.name] for feeds, _ in requests], axis=axis)
            for spec in self.model.inputs
        }
        total = sum(rows for _, rows in requests)
        results = self.model.run(joined, timeout=timeout)
        for name, array in results.items():
            if array.ndim <= self.axes[name] or array.shape[self.axes[name]] != total:
                self._no_batches(f"output {name!r} has shape {array.shape} for {total} rows")
                return None
        answers = []
        at = 0
        for _, rows in requests:
            answers.append({n: a[(slice(None),) * self.axes[n] + (slice(at, at + rows),)] for n, a in results.items()})
            at += rows
        if signature not in self.proven:
            if len(self.proven) >= MOST_SIGNATURES:
                return None
            alone = [self.run(feeds, timeout) for feeds, _ in requests]
            if not all(same_bits(a[n], b[n]) for a, b in zip(alone, answers, strict=True) for n in a):
                self._no_batches("a batch and lone runs differ")
                return alone
            self.proven.add(signature)
        return answers

    def _no_batches(self, why: str) -> None:
        self.most = 1
        logs.event("batching off", level="warning", model=self.name, version=self.version, why=why)

    def stream(self) -> Any:
        """A stream of the model, as its configuration says."""
        return self.model.stream(**self.config.stream)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal to the bit, NaN among them."""
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and (a.tobytes() == b.tobytes() if a.dtype.kind != "O" else bool((a == b).all()))
    )


def _axes(model: Model, given: Mapping[str, int] | None) -> dict[str, int]:
    """The axis of the batch of each input and output that has one; empty if requests cannot run together.

    Without a configuration it is the named axis that stands first in an input, wherever else it has that name.
    """
    specs = (*model.inputs, *model.outputs)
    if given is not None:
        if unknown := sorted(set(given) - {spec.name for spec in specs}):
            raise ArgumentError(f"serve: [batch] axes has {unknown}: expected names of inputs and outputs")
        found = dict(given)
    else:
        names = {spec.shape[0] for spec in model.inputs if spec.shape and isinstance(spec.shape[0], str)}
        if len(names) != 1:
            return {}
        name = names.pop()
        found = {}
        for spec in specs:
            at = [i for i, size in enumerate(spec.shape or ()) if size == name]
            if len(at) > 1:
                return {}
            if at:
                found[spec.name] = at[0]
    if any(spec.name not in found for spec in model.outputs) or not any(spec.name in found for spec in model.inputs):
        return {}
    # Of an input without the axis one value serves all rows, so its sizes must be known to hold for any number of them.
    return found


def late(seconds: float) -> TimeoutError:
    """The error of a request that has waited for so long."""
    return TimeoutError(f"the request was not done after {seconds:g} seconds")
