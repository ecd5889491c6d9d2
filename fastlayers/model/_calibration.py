"""Ranges of a network's values over samples: a histogram of each, and nothing of the values themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..errors import ArgumentError, DTypeError, Error
from ..passes.quantized_pairs import Steps
from .model import Model

__all__ = ["MOST_BYTES", "Histogram", "Samples", "observe"]

MOST_BYTES = 64 << 20  # of values that are looked at in one run, and of samples that are kept, each
_BINS = 4096
_MOST_KEPT = 16
_SHRINKS = np.linspace(1.0, 0.4, 31)
_MOST_SHOWN = 3


class Histogram:
    """Counts of values in equal bins about zero, whose range doubles as larger values come."""

    def __init__(self) -> None:
        self.counts = np.zeros(_BINS, np.int64)
        self.reach = 0.0
        self.low = self.high = 0.0

    def add(self, array: np.ndarray) -> None:
        """Counts an array's values, which are finite."""
        if not array.size:
            return
        low, high = float(array.min()), float(array.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        largest = max(-low, high)
        if not self.reach:
            self.reach = 2.0 ** np.ceil(np.log2(largest)) if largest > np.finfo(np.float32).tiny else 0.0
        if not self.reach:
            return  # zeros, which any steps have
        while largest > self.reach:
            quarter = _BINS // 4
            joined = self.counts.reshape(-1, 2).sum(1)
            self.counts[:] = 0
            self.counts[quarter:-quarter] = joined
            self.reach *= 2
        places = (array.reshape(-1) * np.float32(_BINS / 2 / self.reach)).astype(np.int32)
        places += _BINS // 2
        places -= array.reshape(-1) < 0  # a conversion rounds towards zero
        self.counts += np.bincount(np.clip(places, 0, _BINS - 1, out=places), minlength=_BINS)

    def steps(self) -> Steps:
        """The steps of the least squared error: between rounding all values, and cutting off the largest."""
        if not self.reach:
            return Steps.between(self.low, self.high)
        middles = (np.arange(_BINS) + 0.5 - _BINS // 2) * (2 * self.reach / _BINS)
        best, found = np.inf, (self.low, self.high)
        for share in _SHRINKS:
            low, high = share * self.low, share * self.high
            off = np.maximum(low - middles, 0) + np.maximum(middles - high, 0)
            inside = self.counts[(middles >= low) & (middles <= high)].sum()
            error = float(self.counts @ off**2) + inside * ((high - low) / 255) ** 2 / 12
            if error < best:
                best, found = error, (low, high)
        return Steps.between(*found)


class Samples:
    """Samples as a caller gives them, one at a time, checked. Some are kept to measure errors on, chosen by a fixed seed.

    Args:
        model: whose inputs they are for.
        given: an iterable of arrays, tuples or dicts.
    """

    def __init__(self, model: Model, given: Any) -> None:
        if isinstance(given, (Mapping, str, bytes)) or (isinstance(given, np.ndarray) and given.ndim == 0):
            raise DTypeError(f"quantize: samples is of type {type(given).__name__}: expected an iterable of samples, such as [x]")
        try:
            self._left: Iterator[Any] = iter(given)
        except TypeError:
            raise DTypeError(
                f"quantize: samples is of type {type(given).__name__}: expected an iterable of arrays, tuples or dicts"
            ) from None
        self._model, self._rng = model, np.random.default_rng(0)
        self.kept: list[dict[str, np.ndarray]] = []
        self.count = 0

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        for sample in self._left:
            feeds = self._feeds(sample)
            self._keep(feeds)
            self.count += 1
            yield feeds

    def _feeds(self, sample: Any) -> dict[str, np.ndarray]:
        names, what = list(self._model.inputs.names), f"quantize: sample {self.count}"
        if isinstance(sample, (tuple, list)) and not isinstance(sample, Mapping):
            if len(sample) != len(names):
                raise ArgumentError(f"{what} has {len(sample)} arrays: expected {len(names)}, for {names}")
            sample = dict(zip(names, sample, strict=True))
        try:
            arrays = self._model._converted(sample)
        except Error as error:
            raise type(error)(f"{what}: {error}") from None
        for name, array in zip(names, arrays, strict=True):
            if isinstance(array, np.ndarray) and array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ArgumentError(f"{what}: input {name!r} has NaN or infinity: expected finite numbers")
        return dict(zip(names, arrays, strict=True))

    def _keep(self, feeds: dict[str, np.ndarray]) -> None:
        """Keeps a copy of a sample, in place of one at random once there are enough: each is as likely to stay."""
        size = sum(getattr(a, "nbytes", 0) for a in feeds.values())
        most = max(1, min(_MOST_KEPT, int(MOST_BYTES // max(size, 1))))
        place = len(self.kept) if len(self.kept) < most else int(self._rng.integers(0, self.count + 1))
        if place < most:
            self.kept[place : place + 1] = [{name: np.array(a) if isinstance(a, np.ndarray) else a for name, a in feeds.items()}]


def observe(
    models: Sequence[Model], inputs: Sequence[str], samples: Iterable[dict[str, Any]], told: Callable[[], None]
) -> dict[str, Steps]:
    """Steps for values, from runs over all samples; `told` is called after each.

    Args:
        models: have the values as outputs, a group of them each.
        inputs: inputs that are among the values.
    """
    found = {name: Histogram() for name in (*inputs, *(name for model in models for name in model.outputs.names))}
    for number, feeds in enumerate(samples):
        for name in inputs:
            found[name].add(feeds[name])
        for model in models:
            for name, array in model.run(feeds).items():
                if not np.isfinite(array).all():
                    raise ArgumentError(f"quantize: sample {number}: value {name!r} of the network is NaN or infinity there")
                found[name].add(array)
        told()
    return {name: histogram.steps() for name, histogram in found.items()}


class Outputs(NamedTuple):
    """Results of a network for the samples that were kept, and how far others' are from them."""

    names: tuple[str, ...]
    values: list[dict[str, np.ndarray]]

    def error(self, run: Callable[[dict[str, Any]], Mapping[str, np.ndarray]], samples: Sequence[dict[str, Any]]) -> float:
        """The largest relative error of an output over these samples."""
        off, whole = dict.fromkeys(self.names, 0.0), dict.fromkeys(self.names, 0.0)
        for feeds, want in zip(samples, self.values, strict=False):
            got = run(feeds)
            for name in self.names:
                if got[name].shape != want[name].shape:
                    return float("inf")
                off[name] += float(np.square(got[name] - want[name], dtype=np.float64).sum())
                whole[name] += float(np.square(want[name], dtype=np.float64).sum())
        return max((np.sqrt(off[n] / whole[n]) if whole[n] else float("inf") if off[n] else 0.0) for n in self.names)
