"""Configuration next to a model: ``config.toml`` in its folder, or ``NAME.toml`` next to its file.

[batch]
max = 8                       # rows; 1: no batching
delay_ms = 2
axes = {input = 0, state = 1} # of inputs and outputs, where the file does not name the axis of the batch
[stream]                      # as the arguments of Model.stream
size = 512
overlap = 64
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import FormatError, UnsupportedError

tomllib: Any
try:
    tomllib = importlib.import_module("tomllib")
except ImportError:  # Python 3.10
    tomllib = None

__all__ = ["Config", "read"]

_KEYS = {
    "batch": {"max": int, "delay_ms": (int, float), "axes": dict},
    "stream": {"size": int, "overlap": int, "batch": int, "axis": (int, str), "input": (str, list), "state": dict},
}
LARGEST = 1 << 20


class Config(NamedTuple):
    """None stands for what the server does by itself."""

    batch: int | None = None
    delay: float | None = None
    axes: dict[str, int] | None = None
    stream: Mapping[str, Any] = MappingProxyType({})


def read(path: Path) -> Config:
    """The configuration of a file; that of no file is empty.

    Raises:
        FormatError: it is no TOML, or has names or values of which none is known.
        UnsupportedError: this Python reads no TOML.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
    except FileNotFoundError:
        return Config()
    if tomllib is None:
        raise UnsupportedError(f"serve: {path.name}: reading TOML needs Python 3.11 or later")
    if len(text) > LARGEST:
        raise FormatError(f"serve: {path.name}: has more than {LARGEST} bytes")
    try:
        found = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"serve: {path.name}: {error!s:.200}") from None
    for table, values in found.items():
        if table not in _KEYS or not isinstance(values, dict):
            raise FormatError(f"serve: {path.name}: has {table!r}: expected the tables {list(_KEYS)}")
        for key, value in values.items():
            kind: Any = _KEYS[table].get(key)
            if kind is None or not isinstance(value, kind) or isinstance(value, bool):
                raise FormatError(
                    f"serve: {path.name}: [{table}] has {key} = {value!r:.50}: expected some of {list(_KEYS[table])}"
                )
    batch = found.get("batch", {})
    axes = batch.get("axes")
    if axes is not None and not all(type(axis) is int and 0 <= axis < 32 for axis in axes.values()):
        raise FormatError(f"serve: {path.name}: [batch] axes is {axes!r:.100}: expected names with indices of axes")
    most, delay = batch.get("max"), batch.get("delay_ms")
    if (most is not None and most < 1) or (delay is not None and not 0 <= delay <= 60_000):
        raise FormatError(f"serve: {path.name}: [batch] has max = {most} and delay_ms = {delay}: expected from 1, and 0 to 60000")
    return Config(most, None if delay is None else delay / 1000, axes, found.get("stream", {}))
