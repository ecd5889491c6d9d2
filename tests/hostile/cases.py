"""What a malicious file is: who makes it, which check it aims at, and which error it must get."""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import fastlayers as fl
from fastlayers.errors import DTypeError, Error, FormatError, LimitError, ShapeError, UnsupportedError

__all__ = [
    "ANY_OF_OURS", "REFUSED", "ROWS", "Case", "Sweep", "Told", "contents", "damaged", "every_case", "fixed", "network", "sweeps",
    "table", "weights",
]  # fmt: skip

Reader = Callable[..., Any]
Content = bytes | Path

# The errors that a file may get; ShapeError and the like are for arguments and for graphs whose sizes do not fit together.
REFUSED: tuple[type[Error], ...] = (FormatError, UnsupportedError, LimitError)
ANY_OF_OURS: tuple[type[Error], ...] = (*REFUSED, ShapeError, DTypeError)

# The rows of the table of attacks; every one must have cases.
ROWS = (
    "pickle", "scanner bypass", "safetensors", "onnx", "keras", "keras h5", "hdf5", "zip bomb", "npy", "tflite", "flax", "gguf",
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
    """One malicious file.

    `make` is given an empty folder, the model's own, and returns the content, or the path of what it has written there; the
    folder next to it (``folder.parent``) is forbidden ground, where secrets and targets of links may be put. A content is read
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

    def refuses(self, error: str | None, message: str) -> bool:
        """Whether an error is the one that must come, by its class's name and its message."""
        kinds = self.error if isinstance(self.error, tuple) else (self.error,)
        return error in [kind.__name__ for kind in kinds] and self.match in message


class Told(NamedTuple):
    """A small file of a sweep of which is told what it must get: an error that `match` (a pattern) is found in, or none."""

    name: str
    content: bytes
    error: type[Error] | None
    match: str = ""


@dataclass(frozen=True)
class Sweep:
    """Many small files of one kind, read from memory one after the other in one child: a case each would take a process each.

    Of damaged ones each gives a result or one of `errors`; the others say what they must get.
    """

    row: str
    name: str
    contents: Callable[[], Iterable[bytes | Told]]
    errors: tuple[type[Error], ...] = REFUSED
    read: Reader = weights
    may_load: bool = True  # False: every one must be refused


def table(row: str, name: str, files: Mapping[str, tuple[bytes, type[Error] | None, str]], **options: Any) -> Sweep:
    """A sweep of files by their names, each with its error and words that are in it."""

    def told() -> Iterator[Told]:
        return (Told(what, content, error, re.escape(words)) for what, (content, error, words) in files.items())

    return Sweep(row, name, told, **options)


def damaged(content: bytes) -> Iterator[bytes]:
    """A small valid file cut at every byte, with every byte replaced by 0 and by 255, and with a rest after its beginnings."""
    yield from (content[:length] for length in range(1, len(content)))
    for at in range(len(content)):
        yield from (content[:at] + bytes([value]) + content[at + 1 :] for value in (0, 255) if content[at] != value)
    for length in (4, 8, 9, 16, 30, len(content)):
        yield from (content[:length] + rest for rest in (b"\0", bytes(100), b"\xff" * 100, b"(" * 100, content))


Refusal = type[Error] | tuple[type[Error], ...]


def contents(
    row: str, files: Mapping[str, tuple[Callable[[], bytes], Refusal | None, str]], read: Reader = network
) -> list[Case | Sweep]:
    """Cases of one content each: {name: (what makes it, the error, what is in its message)}; None for one that must load."""

    def case(name: str, make: Callable[[], bytes], error: Refusal | None, match: str) -> Case:
        return Case(row, name, lambda folder: make(), FormatError if error is None else error, match, read, error is None)

    return [case(name, *file) for name, file in files.items()]


def sweeps(row: str, name: str, make: Callable[[], bytes], read: Reader = network, step: int = 1) -> list[Case | Sweep]:
    """A small valid file cut off, with bytes replaced, with garbage after each beginning: every `step` bytes."""

    def cut() -> Iterable[bytes]:
        whole = make()
        return (whole[:length] for length in range(0, len(whole), step))

    def replaced() -> Iterable[bytes]:
        whole = make()
        return (whole[:at] + byte + whole[at + 1 :] for at in range(0, len(whole), step) for byte in (b"\0", b"\xff"))

    def continued() -> Iterable[bytes]:
        whole, rng = make(), random.Random(name)
        return (whole[:at] + rng.randbytes(len(whole) - at) for at in range(0, len(whole), 7 * step))

    return [
        Sweep(row, f"{name}: {what}", files, ANY_OF_OURS, read)
        for what, files in (("cut off", cut), ("a byte replaced", replaced), ("garbage after its beginning", continued))
    ]


def every_case() -> list[Case | Sweep]:
    """All cases of the modules ``make_*`` next to this one, each of which has a list CASES."""
    found: list[Case | Sweep] = []
    for module in sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)])):
        if module.startswith("make_"):
            found += importlib.import_module(f"{__package__}.{module}").CASES
    return found
