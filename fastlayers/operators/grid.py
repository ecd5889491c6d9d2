"""Images read at any places: GridSample, and AffineGrid, which makes such places."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..graph.ir import Shape
from ._base import Spec, View, register, unknown
from ._shapes import known, need_kind
from .unary import wide

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
Corner = tuple[np.ndarray, np.ndarray | None]  # whole positions on an axis, and the share of what lies there

MODES = {"linear": 2, "bilinear": 2, "nearest": 1, "cubic": 4, "bicubic": 4}  # neighbours on an axis
PADDINGS = ("zeros", "border", "reflection")
MOST_CORNERS = 256  # neighbours of a place; each is a pass over the result
FAR = float(1 << 40)  # where places end, so that they remain whole numbers
CUBIC = -0.75

# ---- GridSample ------------------------------------------------------------------------------------------------------


def _sample_infer(n: View) -> list[Spec]:
    """x (n, c, d1, …, dr) at grid (n, o1, …, or, r), whose last axis counts from the last axis of x on."""
    need_kind(n, "f", 1)
    mode, padding = n.get("mode", "linear"), n.get("padding_mode", "zeros")
    if mode not in MODES or padding not in PADDINGS:
        raise n.fail(
            f"mode is {mode!r}, padding_mode {padding!r}: expected one of {', '.join(MODES)}, and of {', '.join(PADDINGS)}"
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


def _places(n: View, grid: np.ndarray, sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Places in pixels, an array (n, count) an axis; -1 and 1 are the edges, or the middles of the outermost pixels."""
    flat = grid.reshape(grid.shape[0], -1, grid.shape[-1])
    found = []
    for axis, size in enumerate(sizes):
        g = flat[:, :, len(sizes) - 1 - axis]
        at = (g + 1) / 2 * (size - 1) if n.get("align_corners", 0) else ((g + 1) * size - 1) / 2
        found.append(np.clip(at, -FAR, FAR))
    return found


def _neighbours(mode: str, at: np.ndarray) -> list[Corner]:
    if MODES[mode] == 1:
        return [(np.rint(at), None)]
    low = np.floor(at)
    t = at - low
    if MODES[mode] == 2:
        return [(low, 1 - t), (low + 1, t)]

    def near(s: np.ndarray) -> Any:
        return ((CUBIC + 2) * s - (CUBIC + 3)) * s * s + 1

    def far(s: np.ndarray) -> Any:
        return ((CUBIC * s - 5 * CUBIC) * s + 8 * CUBIC) * s - 4 * CUBIC

    return [(low - 1, far(t + 1)), (low, near(t)), (low + 1, near(1 - t)), (low + 2, far(2 - t))]


def _pixel(n: View, at: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Whole positions as indices, and which of them are inside (None: all are)."""
    padding = n.get("padding_mode", "zeros")
    at = np.nan_to_num(at, nan=-1.0)
    if padding == "reflection":
        if n.get("align_corners", 0):
            span = max(2 * (size - 1), 1)
            at = np.mod(at, span)
            at = np.minimum(at, span - at)
        else:  # around the edges, which lie half a pixel outside
            at = np.mod(at, 2 * size)
            at = np.minimum(at, 2 * size - 1 - at)
    inside = (at >= 0) & (at < size) if padding == "zeros" else None
    return np.clip(at, 0, size - 1).astype(np.int64), inside


def _sample_run(n: View, x: np.ndarray, grid: np.ndarray) -> Arrays:
    (spec,) = _sample_infer(n)
    shape: tuple[int, ...] = spec.shape  # type: ignore[assignment]
    sizes = x.shape[2:]
    if not math.prod(sizes):
        if math.prod(shape):
            raise n.fail(f"x has shape {x.shape}: expected pixels to read")
        return (np.zeros(shape, x.dtype),)
    # Between whole numbers lie others, which are cut off at the end.
    pixels = (wide(x) if x.dtype.kind in "fc" else x.astype(np.float64)).reshape(*x.shape[:2], -1)
    given = wide(grid)
    # float32 for images of float32, as everyone has it.
    places = _places(n, given.astype(np.promote_types(given.dtype, pixels.dtype)) if pixels.dtype.kind == "f" else given, sizes)
    corners = [_neighbours(n.get("mode", "linear"), at) for at in places]
    settled = [[(*_pixel(n, at, size), share) for at, share in axis] for axis, size in zip(corners, sizes, strict=True)]
    total: np.ndarray | None = None
    for corner in itertools.product(*settled):
        index = np.zeros(places[0].shape, np.int64)
        share: np.ndarray | None = None
        inside: np.ndarray | None = None
        for (at, there, part), size in zip(corner, sizes, strict=True):
            index = index * size + at
            share = part if share is None else share * part
            if there is not None:
                inside = there if inside is None else inside & there
        taken = np.take_along_axis(pixels, index[:, None], 2)
        if inside is not None:
            taken = np.where(inside[:, None], taken, taken.dtype.type(0))
        if share is not None:
            taken = taken * share.astype(taken.dtype, copy=False)[:, None]
        total = taken if total is None else total + taken
    assert total is not None
    return (total.reshape(shape).astype(x.dtype, copy=False),)


register("GridSample", _sample_infer, _sample_run)

# ---- AffineGrid ------------------------------------------------------------------------------------------------------


def _affine_infer(n: View) -> list[Spec]:
    """theta (n, r, r + 1) and the size (n, c, d1, …, dr) of an image, r being 2 or 3: places (n, d1, …, dr, r)."""
    need_kind(n, "f", 0)
    theta, length, size, dtype = n.shape(0), n.shape(1), known(n, 1), n.spec(0).dtype
    axes = _axes(n, theta, length)
    if size is None:
        return [unknown(None if axes is None else axes + 2, dtype)]
    if any(s < 1 for s in size) or (theta is not None and not _may_be(theta[0], size[0])):
        raise n.fail(f"theta has shape {theta}, the size is {tuple(size)}: expected sizes from 1 up, the first that of theta")
    return [Spec((size[0], *size[2:], len(size) - 2), dtype)]


def _axes(n: View, theta: Shape | None, length: Shape | None) -> int | None:
    """How many axes of positions there are."""
    lengths = {length[0] - 2} if length is not None and len(length) == 1 and isinstance(length[0], int) else {2, 3}
    rows = (
        {2, 3} if theta is None or len(theta) != 3 else {a for a in (2, 3) if _may_be(theta[1], a) and _may_be(theta[2], a + 1)}
    )
    found = lengths & rows & {2, 3}
    if not found or (theta is not None and len(theta) != 3) or (length is not None and len(length) != 1):
        raise n.fail(f"theta has shape {theta}, the size {length}: expected (n, 2, 3) and 4 numbers, or (n, 3, 4) and 5")
    return found.pop() if len(found) == 1 else None


def _affine_run(n: View, theta: np.ndarray, size: np.ndarray) -> Arrays:
    sizes = [int(s) for s in size.reshape(-1)[2:]]
    steps = []
    for count in sizes:
        i = np.arange(count, dtype=np.float64)
        steps.append(2 * i / max(count - 1, 1) - (count > 1) if n.get("align_corners", 0) else (2 * i + 1) / count - 1)
    grid = np.meshgrid(*steps, indexing="ij")
    points = np.stack([*reversed(grid), np.ones_like(grid[0])], axis=-1).reshape(-1, len(sizes) + 1)
    made = points.astype(wide(theta).dtype) @ np.swapaxes(wide(theta), 1, 2)
    return (made.reshape(theta.shape[0], *sizes, len(sizes)).astype(theta.dtype, copy=False),)


register("AffineGrid", _affine_infer, _affine_run, steers=(1,))
