"""Options about sizes: ``--shape`` in all its forms, and sizes to try where neither file nor user gives any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from .._arguments import LARGEST, shown
from .._tuples import NamedTuple
from ..errors import ArgumentError
from ..model.specs import Specs, TensorSpec

__all__ = ["Guess", "Sizes", "candidates", "given_sizes", "hint", "shown_name"]

# Sizes that networks are made for: of text, pictures and sound. What needs more steps than it is given says so, so they ascend.
TRIED = (1, 16, 32, 64, 100, 128, 224, 256, 320, 384, 512, 576, 640, 768, 1024, 1536, 2048, 4096, 8000, 16000, 48000)
MOST_ELEMENTS = 1 << 26  # of all inputs of a guess together
PICTURE = 224
LONGEST = 80  # characters of a name as it is
MOST_ALONE = 6  # open sizes up to which each is tried alone


class Sizes(NamedTuple):
    """Sizes from the command line: whole shapes by the names of inputs, and sizes by their own names."""

    shapes: Mapping[str, tuple[int, ...]]
    named: Mapping[str, int]


def given_sizes(texts: Sequence[str], inputs: Specs) -> Sizes:
    """``NAME=1,3,224,224`` for an input, ``NAME=2`` for a size of that name, ``1,3,224,224`` where one input can be meant.

    Raises:
        ArgumentError: it is none of these.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    named: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        sizes = _numbers(text, value)
        if not equals:
            name = _only(text, inputs)
        if name in inputs.names:
            shapes[name] = sizes
        elif name in _names(inputs):
            if len(sizes) != 1:
                raise ArgumentError(f"--shape {text}: {name!r} is the name of a size: expected one number")
            named[name] = sizes[0]
        else:
            sizes_too = f", or of the sizes {', '.join(_names(inputs))}" if _names(inputs) else ""
            raise ArgumentError(f"--shape {text}: expected NAME=..., with one of the names {', '.join(inputs.names)}{sizes_too}")
    return Sizes(shapes, named)


def _numbers(text: str, value: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in value.replace("x", ",").split(",") if part.strip())
    except ValueError:
        raise ArgumentError(f"--shape {text}: expected sizes separated by commas, such as 1,3,224,224") from None
    if any(not 0 <= size <= LARGEST for size in sizes):
        raise ArgumentError(f"--shape {text}: expected sizes of at least 0, and below 2**63")
    return sizes


def _only(text: str, inputs: Specs) -> str:
    """The input that a shape without a name is meant for."""
    found = inputs if len(inputs) == 1 else [spec for spec in inputs if _open(spec)]
    if len(found) != 1:
        raise ArgumentError(f"--shape {text}: the model has the inputs {', '.join(inputs.names)}: expected NAME={text}")
    return found[0].name


def _open(spec: TensorSpec) -> bool:
    return spec.shape is None or not all(isinstance(d, int) for d in spec.shape)


def _names(inputs: Sequence[TensorSpec]) -> list[str]:
    return list(dict.fromkeys(d for spec in inputs for d in spec.shape or () if isinstance(d, str)))


Unknown = str | tuple[str, int]  # a size by its name, or by its input and axis


class Guess(NamedTuple):
    """Shapes by the names of inputs; whether they are the only ones to try."""

    shapes: Mapping[str, tuple[int, ...]]
    only: bool


def candidates(inputs: Specs, sizes: Sizes) -> Iterator[Guess]:
    """Shapes to try, one after another; the only ones, if nothing is open.

    A batch is 1. What else is open gets the same size everywhere, larger and larger; and each open size alone, the others
    being 1, since inputs of several kinds (a sequence, a state) have sizes of several kinds.
    """
    unknown = _unknown(inputs, sizes)
    if not unknown:
        yield Guess(_shapes(inputs, sizes, {}), True)
        return
    # Of pictures, sizes that say something come first.
    pictures = any(spec.shape is not None and len(spec.shape) == 4 and _open_axes(spec) >= 2 for spec in inputs)
    for size in sorted(TRIED, key=lambda size: size < PICTURE) if pictures else TRIED:
        alone = [{name: size} for name in unknown] if size > 1 and 1 < len(unknown) <= MOST_ALONE else []
        for chosen in (dict.fromkeys(unknown, size), *alone):
            shapes = _shapes(inputs, sizes, chosen)
            if size == 1 or sum(map(math.prod, shapes.values())) <= MOST_ELEMENTS:
                yield Guess(shapes, False)


def _unknown(inputs: Specs, sizes: Sizes) -> list[Unknown]:
    """The sizes that are open, except those of batches."""
    batches = {spec.shape[0] for spec in inputs if spec.shape is not None and len(spec.shape) > 1}
    found: dict[Unknown, None] = {}
    for spec in inputs:
        if spec.name in sizes.shapes:
            continue
        if spec.shape is None:
            raise ArgumentError(f"the model leaves the rank of {spec.name} open: give --shape {spec.name}=...")
        for axis, size in enumerate(spec.shape):
            batch = (axis == 0 and len(spec.shape) > 1) or (isinstance(size, str) and size in batches)
            if not isinstance(size, int) and size not in sizes.named and not batch:
                found[size if isinstance(size, str) else (spec.name, axis)] = None
    return list(found)


def _shapes(inputs: Specs, sizes: Sizes, chosen: Mapping[Unknown, int]) -> dict[str, tuple[int, ...]]:
    def size(spec: TensorSpec, axis: int, told: int | str | None) -> int:
        if isinstance(told, int):
            return told
        if told is not None and told in sizes.named:
            return sizes.named[told]
        return chosen.get((spec.name, axis) if told is None else told, 1)

    found = {}
    for spec in inputs:
        made = tuple(size(spec, axis, told) for axis, told in enumerate(spec.shape or ()))
        found[spec.name] = sizes.shapes.get(spec.name, made)
    return found


def _open_axes(spec: TensorSpec) -> int:
    return sum(not isinstance(d, int) for d in (spec.shape or ())[1:])


def _guessed(spec: TensorSpec, sizes: Sizes) -> bool:
    return spec.name not in sizes.shapes and any(not isinstance(d, int) and d not in sizes.named for d in spec.shape or ())


def hint(inputs: Specs, sizes: Sizes, shapes: Mapping[str, tuple[int, ...]] | None) -> str:
    """The options that say what these shapes say; without shapes, what is to be filled in."""
    parts, unknown = [], _unknown(inputs, sizes)
    for spec in inputs:
        if not _guessed(spec, sizes):
            continue
        told = (
            shapes[spec.name]
            if shapes is not None
            else (
                d if isinstance(d, int) else "N" if (d if isinstance(d, str) else (spec.name, i)) in unknown else 1
                for i, d in enumerate(spec.shape or ())
            )
        )
        parts.append(f"--shape {shown_name(spec.name)}={','.join(map(str, told))}")
    return " ".join(parts)


def shown_name(name: str) -> str:
    """An input's name as an option takes it; quoted and shortened where it is none to be typed."""
    return name if name.isprintable() and " " not in name and len(name) <= LONGEST else shown(name)
