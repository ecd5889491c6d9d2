"""Shapes of real networks, one file a kernel file, which bench/ times and tests/ hold every variant to the reference with.

A module of this package has ``CASES``, a tuple of `Case`. A test fails if a kernel of ``table.KERNELS`` has none.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KERNELS


class Case(NamedTuple):
    """One call of a kernel.

    `arguments(rng)` gives the kernel's arguments by name; "packed" is given as the arguments of the pack kernel, also by name,
    and outputs ("out", "hn", "cn") as arrays of the right shape.
    """

    kernel: str
    label: str
    arguments: Callable[[np.random.Generator], dict[str, Any]]
    flops: float = 0.0  # a multiply-add is two
    moved: float = 0.0  # bytes that must be read and written

    @property
    def id(self) -> str:
        return f"{self.kernel} {self.label}"


class Prepared(NamedTuple):
    """A case made ready under the current variant: `call()` runs the kernel alone; `outputs` hold what it wrote."""

    call: Callable[[], None]
    outputs: dict[str, np.ndarray]


def normal(rng: np.random.Generator, *shape: int, fan_in: int = 1) -> np.ndarray:
    """Standard normal float32 values, divided by the root of `fan_in`, so that sums stay near 1."""
    return np.asarray(rng.standard_normal(shape) / np.sqrt(fan_in), np.float32)


def prepare(case: Case, fill: float | None = None, as_step: bool = False) -> Prepared:
    """Packs the weights and returns a call without arguments. Arrays are the same in every variant: the label is the seed.

    `fill` is put into the outputs that are floats; `as_step` calls the compiled engine's step, made beforehand, in place of
    the kernel.
    """
    arguments = case.arguments(np.random.default_rng(zlib.crc32(case.id.encode())))
    entry = next(k for k in KERNELS if k.name == case.kernel)
    names = entry.arguments
    if "packed" in names:
        pack = next(k for k in KERNELS if k.name == f"{case.kernel}_pack")
        arguments["packed"] = dispatch.kernel(pack.name)(*(arguments["packed"][_plain(a)] for a in pack.arguments))
    kernel = dispatch.kernel(case.kernel)
    values = tuple(arguments[_plain(name)] for name in names)
    outputs = {name: arguments[name] for name in ("out", "hn", "cn") if arguments.get(name) is not None}
    if fill is not None:
        for array in outputs.values():
            array.fill(fill if array.dtype.kind == "f" else 1)
    if as_step:
        step = dispatch.step(case.kernel)(*(v.shape if isinstance(v, np.ndarray) else v for v in values))
        arrays = [values[i] for i in entry.arrays]
        return Prepared(lambda: step(*arrays), outputs)
    return Prepared(lambda: kernel(*values), outputs)


def all_cases() -> list[Case]:
    """Every case of every kernel file."""
    files = dict.fromkeys(k.file for k in KERNELS)
    return [case for file in files for case in importlib.import_module(f"{__name__}.{file}").CASES]


def _plain(argument: str) -> str:
    """The name of a kernel's argument without its axis letters: "x__mk" is "x"."""
    return argument.split("__")[0]
