"""What a hostile file is: who makes it, which check it aims at, and which error it must get."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastlayers as fl
from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError

__all__ = ["REFUSED", "ROWS", "Case", "Sweep", "every_case", "fixed", "network", "weights"]

Reader = Callable[..., Any]
Content = bytes | Path

# The errors that a file may get; ShapeError and the like are for arguments and for graphs whose sizes do not fit together.
REFUSED: tuple[type[Error], ...] = (FormatError, UnsupportedError, LimitError)

# The rows of the table of attacks; every one must have cases.
ROWS = (
    "pickle", "scanner bypass", "safetensors", "onnx", "keras", "keras h5", "hdf5", "zip bomb", "npy", "tflite", "flax",
    "fastlayers", "any",
)  # fmt: skip


def weights(source: Any, **options: Any) -> Any:
    """Reads the arrays of `source`, every one to its end."""
    found = fl.load_weights(source, **options)
    for array in found.values():
        array.tobytes()
    return found


def network(source: Any, **options: Any) -> Any:
    """Reads the network of `source`."""
    return fl.load(source, **options)


def fixed(content: bytes) -> Callable[[Path], bytes]:
    """The maker of a content that is known."""
    return lambda folder: content


@dataclass(frozen=True)
class Case:
    """One hostile file.

    `make` is given an empty folder, the model's own, and returns the content, or the path of what it has written there; the
    folder beside it (``folder.parent``) is forbidden ground, where secrets and targets of links may be put. A content is read
    from memory and from a file. `error` is what must come, and `match` is in its message. `valid` is for a twin that must
    load: that what is refused is refused for what is wrong with it, and for nothing else.
    """

    row: str
    name: str
    make: Callable[[Path], Content]
    error: type[Error] | tuple[type[Error], ...] = FormatError
    match: str = ""
    read: Reader = weights
    valid: bool = False


@dataclass(frozen=True)
class Sweep:
    """Many small damaged files of one kind, read from memory one after the other: each gives a result or one of `errors`."""

    row: str
    name: str
    contents: Callable[[], Iterable[bytes]]
    errors: tuple[type[Error], ...] = REFUSED
    read: Reader = weights
    may_load: bool = True  # False: every one must be refused


def every_case() -> list[Case | Sweep]:
    """All cases of the modules ``make_*`` beside this one, each of which has a list CASES."""
    found: list[Case | Sweep] = []
    for module in sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)])):
        if module.startswith("make_"):
            found += importlib.import_module(f"{__package__}.{module}").CASES
    return found
