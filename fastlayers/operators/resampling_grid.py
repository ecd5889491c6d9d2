"""Images read at any positions: GridSample, and AffineGrid, which makes such positions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.graph import Shape
from ..kernels.reference.grid import grid_sample
from ..kernels.table import BORDERS
from ._base import FLOAT32, Spec, View, register, unknown
from ._traits import PLAIN, Traits
from .activation import wide
from .calls import copy
from .fused import IDENTITY
from .shapes import known, need_kind

if TYPE_CHECKING:
    from .builder import Builder

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]

MODES = {"linear": 2, "bilinear": 2, "nearest": 1, "cubic": 4, "bicubic": 4}  # neighbours on an axis
MOST_CORNERS = 256  # neighbours of a place; each is a pass over the result
MOST_AXES = 3  # that the kernel has

# ---- GridSample ------------------------------------------------------------------------------------------------------


def _sample_infer(n: View) -> list[Spec]:
    """x (n, c, d1, …, dr) at grid (n, o1, …, or, r), whose last axis counts from the last axis of x on."""
    need_kind(n, "f", 1)
    mode, padding = n.get("mode", "linear"), n.get("padding_mode", "zeros")
    if mode not in MODES or padding not in BORDERS:
        raise n.fail(
            f"mode is {mode!r}, padding_mode {padding!r}: expected one of {', '.join(MODES)}, and of {', '.join(BORDERS)}"
        )
    x, grid, dtype = n.shape(0), n.shape(1), n.spec(0).dtype
    if x is None or grid is None:
        return [Spec(None, dtype)]
    axes = len(x) - 2
    if axes < 1 or len(grid) != len(x) or not _may_be(grid[-1], axes) or not _may_be(grid[0], x[0]):
        raise n.fail(f"x has shape {x}, grid {grid}: expected (n, c, sizes…) and (n, sizes…, {max(axes, 1)}), as many axes")
    if MODES[mode] ** axes > MOST_CORNERS:
        raise n.fail(f"x has {axes} axes of positions: expected less for mode {mode!r}")
    return [Spec((x[0] if x[0] == grid[0] or isinstance(x[0], int) else grid[0], x[1], *grid[1:-1]), dtype)]


def _may_be(a: object, b: object) -> bool:
    return a == b or not isinstance(a, int) or not isinstance(b, int)


def _sample_run(n: View, x: np.ndarray, grid: np.ndarray) -> Arrays:
    (spec,) = _sample_infer(n)
    shape: Any = spec.shape
    sizes, count = x.shape[2:], math.prod(shape[2:])
    if not math.prod(sizes):
        if math.prod(shape):
            raise n.fail(f"x has shape {x.shape}: expected pixels to read")
        return (np.zeros(shape, x.dtype),)
    # Between integers are fractions, which are cut off at the end.
    pixels = wide(x) if x.dtype.kind in "fc" else x.astype(np.float64)
    places = wide(grid).reshape(*grid.shape[:1], count, len(sizes))
    if pixels.dtype.kind == "f":  # float32 for images of float32, as everyone has it
        places = places.astype(np.promote_types(places.dtype, pixels.dtype), copy=False)
    out = np.empty((*shape[:2], count), pixels.dtype)
    grid_sample(pixels.reshape(*shape[:2], math.prod(sizes)), places, out, sizes, *_options(n))
    return (out.reshape(shape).astype(x.dtype, copy=False),)


def _options(n: View) -> tuple[int, int, int]:
    return MODES[n.get("mode", "linear")], BORDERS[n.get("padding_mode", "zeros")], int(bool(n.get("align_corners", 0)))


def _sample_lower(n: View, b: Builder) -> Any:
    shape, sizes = n.sizes(0), n.sizes(0)[2:]
    if not n.float32() or len(sizes) > MOST_AXES or not math.prod(sizes):
        return False
    mode, border, aligned = _options(n)
    count = math.prod(n.sizes(1)[1:-1])
    x, grid = b.input(0).view((*shape[:2], math.prod(sizes))), b.input(1).view((shape[0], count, len(sizes)))
    b.call("grid_sample", x, grid, b.output(0).view((*shape[:2], count)), tuple(sizes), mode, border, aligned)
    return None


register("GridSample", _sample_infer, _sample_run, _sample_lower, traits=PLAIN)

# ---- AffineGrid ------------------------------------------------------------------------------------------------------


def _affine_infer(n: View) -> list[Spec]:
    """theta (n, r, r + 1) and the size (n, c, d1, …, dr) of an image, r being 2 or 3: positions (n, d1, …, dr, r)."""
    need_kind(n, "f", 0)
    theta, length, size, dtype = n.shape(0), n.shape(1), known(n, 1), n.spec(0).dtype
    axes = _axes(n, theta, length)
    if size is None:
        return [unknown(None if axes is None else axes + 2, dtype)]
    if any(s < 1 for s in size) or (theta is not None and not _may_be(theta[0], size[0])):
        raise n.fail(f"theta has shape {theta}, the size is {tuple(size)}: expected sizes from 1 up, the first that of theta")
    return [Spec((size[0], *size[2:], len(size) - 2), dtype)]


def _axes(n: View, theta: Shape | None, length: Shape | None) -> int | None:
    """Number of axes of positions."""
    lengths = {length[0] - 2} if length is not None and len(length) == 1 and isinstance(length[0], int) else {2, 3}
    rows = (
        {2, 3} if theta is None or len(theta) != 3 else {a for a in (2, 3) if _may_be(theta[1], a) and _may_be(theta[2], a + 1)}
    )
    found = lengths & rows & {2, 3}
    if not found or (theta is not None and len(theta) != 3) or (length is not None and len(length) != 1):
        raise n.fail(f"theta has shape {theta}, the size {length}: expected (n, 2, 3) and 4 values, or (n, 3, 4) and 5")
    return found.pop() if len(found) == 1 else None


def _steps(n: View, count: int) -> np.ndarray:
    """Positions along an axis."""
    i = np.arange(count, dtype=np.float64)
    return 2 * i / max(count - 1, 1) - (count > 1) if n.get("align_corners", 0) else (2 * i + 1) / count - 1


def _affine_run(n: View, theta: np.ndarray, size: np.ndarray) -> Arrays:
    sizes = [int(s) for s in size.reshape(-1)[2:]]
    grid = np.meshgrid(*[_steps(n, count) for count in sizes], indexing="ij")
    points = np.stack([*reversed(grid), np.ones_like(grid[0])], axis=-1).reshape(-1, len(sizes) + 1)
    made = points.astype(wide(theta).dtype) @ np.swapaxes(wide(theta), 1, 2)
    return (made.reshape(theta.shape[0], *sizes, len(sizes)).astype(theta.dtype, copy=False),)


def _affine_lower(n: View, b: Builder) -> Any:
    """A row of positions is the first and last columns of theta times (x, 1), and the others times y and z: a product of what
    rows differ in and what they share.
    """
    size = known(n, 1)
    if size is None or not n.float32(0):
        return False
    batch, width = size[0], size[-1]
    axes, rows = len(size) - 2, math.prod(size[2:-1])
    *slow, last = [_steps(n, count) for count in size[2:]]
    theta, ones = b.input(0), np.ones((width, 1))
    ends, line = b.temp((batch, axes, 2)), b.temp((batch, width, axes))
    copy(b, theta, ends, ends.shape, 0, (axes * (axes + 1), axes + 1, axes), 0, (2 * axes, 2, 1))
    along = b.constant(np.concatenate([last[:, None], ones], 1).astype(FLOAT32)[None])
    b.call("matmul", along, ends, line, True, IDENTITY)
    parts, length = b.temp((batch, axes, width * axes)), width * axes
    copy(b, line, parts, (batch, length), 0, (length, 1), 0, (axes * length, 1))
    for i in range(1, axes):  # y, then z
        copy(b, theta, parts, (batch, width, axes), i, (axes * (axes + 1), 0, axes + 1), i * length, (axes * length, axes, 1))
    grid = np.meshgrid(*slow, indexing="ij")
    across = np.stack([np.ones_like(grid[0]), *reversed(grid)], axis=-1).astype(FLOAT32).reshape(1, rows, axes)
    return b.call("matmul", b.constant(across), parts, b.output(0).view((batch, rows, length)), False, IDENTITY)


register("AffineGrid", _affine_infer, _affine_run, _affine_lower, Traits(steers=(1,)))
