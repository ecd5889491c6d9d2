"""Windows that slide over space, and shapes with the three spatial axes that kernels know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .._tuples import NamedTuple
from .._windows import same_padding

__all__ = ["Copy", "Three", "Window", "five", "three", "three_pads"]


Three = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class Window(NamedTuple):
    """A window that slides: one number an axis. `pads` are pairs (before, after), None while they depend on sizes."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...] | None

    @property
    def reach(self) -> tuple[int, ...]:
        """The number of positions that a window spans, along each axis."""
        return _reach(self.kernel, self.dilation)

    def padded(self, space: Sequence[int], lower: bool = False) -> Window:
        """The window with its padding for an image of these sizes, if that depends on them; see `same_padding`."""
        if self.pads is not None:
            return self
        kernel, stride, dilation, _ = self
        pads = [same_padding(size, reach, s, lower) for size, reach, s in zip(space, self.reach, stride, strict=True)]
        return Window(kernel, stride, dilation, tuple(pads))

    def in_three(self) -> Three:
        """Kernel, stride, dilation and pads as kernels take them."""
        kernel, stride, dilation, pads = self
        ones = (1,) * (3 - len(kernel))
        return ones + kernel, ones + stride, ones + dilation, three_pads(pads or ())


class Copy(NamedTuple):
    """Arguments of the kernel `copy`: a shape, and the first place and the strides of its values in source and result."""

    shape: tuple[int, ...]
    x_offset: int
    x_strides: tuple[int, ...]
    out_offset: int
    out_strides: tuple[int, ...]


@lru_cache(1024)  # a network has few windows, and asks for each several times: while it is loaded, optimized and bound
def _reach(kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)])


def three(values: Sequence[int]) -> tuple[int, ...]:
    """Values for three axes, of which missing ones have 1."""
    return (*(1,) * (3 - len(values)), *values)


def three_pads(pads: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Padding for three axes, flat."""
    flat: tuple[int, ...] = (0, 0) * (3 - len(pads))
    for pair in pads:
        flat += pair
    return flat


def five(shape: Sequence[int], last: bool, axes: int = 0) -> tuple[int, ...]:
    """A shape with a batch and three spatial axes, of one that has so many (0: it has a batch), channels first or last."""
    axes = axes or len(shape) - 2
    batch, ones, inner = shape[0] if len(shape) == axes + 2 else 1, (1,) * (3 - axes), shape[-1 - axes :]
    return (batch, *ones, *inner) if last else (batch, inner[0], *ones, *inner[1:])
