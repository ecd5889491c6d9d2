"""Places of the nodes of a network's picture: layers from left to right, in bands below each other, edges through gutters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from .._tuples import NamedTuple

__all__ = ["HEIGHT", "WIDTH", "Layout", "Place", "layout"]

WIDTH, HEIGHT = 116.0, 34.0  # of a node
ACROSS, DOWN = 34.0, 12.0  # between nodes
GUTTER = 26.0  # between bands
MARGIN = 30.0
SWEEPS = 4


class Place(NamedTuple):
    """The upper left corner of a node, and its band."""

    x: float
    y: float
    band: int


class Layout(NamedTuple):
    """Positions by node, paths of edges, and the size of all."""

    places: Mapping[int, Place]
    paths: Sequence[str]
    width: float
    height: float


def layout(count: int, edges: Sequence[tuple[int, int]], widest: float = 1100.0) -> Layout:
    """Places `count` nodes whose edges go from lower to higher indices.

    Each node is one layer after the last one that it reads; within a layer nodes are ordered by where what they read and give
    is. As many layers as `widest` allows are next to each other; the rest go on below, as lines of a text do.
    """
    edges = sorted({(a, b) for a, b in edges if 0 <= a < b < count})
    depth = _depths(count, edges)
    chains, layers = _chains(count, edges, depth)
    _order(layers, chains)
    per = max(1, int((widest - 2 * MARGIN + ACROSS) // (WIDTH + ACROSS)))
    places: dict[int, Place] = {}
    tops, y = [], MARGIN
    for band, start in enumerate(range(0, len(layers), per)):
        stack = layers[start : start + per]
        tall = max(len(layer) for layer in stack)
        tops.append(y)
        for column, layer in enumerate(stack):
            free = (tall - len(layer)) * (HEIGHT + DOWN) / 2
            for row, node in enumerate(layer):
                places[node] = Place(MARGIN + column * (WIDTH + ACROSS), y + free + row * (HEIGHT + DOWN), band)
        y += tall * (HEIGHT + DOWN) - DOWN + GUTTER
    width = 2 * MARGIN + min(per, max(len(layers), 1)) * (WIDTH + ACROSS) - ACROSS
    paths = [_path(chain, places, tops, width, number, count) for number, chain in enumerate(chains)]
    return Layout({n: p for n, p in places.items() if n < count}, paths, width, y - GUTTER + MARGIN)


def _depths(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    depth = [0] * count
    for a, b in sorted(edges, key=lambda edge: edge[1]):  # values are in an order in which they can run
        depth[b] = max(depth[b], depth[a] + 1)
    return depth


def _chains(count: int, edges: Sequence[tuple[int, int]], depth: Sequence[int]) -> tuple[list[list[int]], list[list[int]]]:
    """Edges as chains of nodes, one per layer, of which all but the ends are only bends; and the nodes of each layer. Edges that
    leave one node share their bends.
    """
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for node, at in enumerate(depth):
        layers[at].append(node)
    bends: dict[tuple[int, int], int] = {}
    chains, number = [], count
    for a, b in edges:
        chain = [a]
        for at in range(depth[a] + 1, depth[b]):
            if (a, at) not in bends:
                bends[a, at] = number
                layers[at].append(number)
                number += 1
            chain.append(bends[a, at])
        chains.append([*chain, b])
    return chains, layers


def _order(layers: list[list[int]], chains: Sequence[Sequence[int]]) -> None:
    """Puts each node where its neighbours are, on the average, from left to right and back."""
    before: dict[int, set[int]] = {}
    after: dict[int, set[int]] = {}
    for chain in chains:
        for a, b in pairwise(chain):
            before.setdefault(b, set()).add(a)
            after.setdefault(a, set()).add(b)
    for sweep in range(SWEEPS):
        near, order = (before, layers) if sweep % 2 == 0 else (after, layers[::-1])
        at: dict[int, float] = {}
        for layer in order:
            middle = {n: [at[m] for m in near.get(n, ()) if m in at] for n in layer}
            old = {n: i / max(len(layer) - 1, 1) for i, n in enumerate(layer)}
            layer.sort(key=lambda n: sum(middle[n]) / len(middle[n]) if middle[n] else old[n])
            at.update((n, (i + 0.5) / len(layer)) for i, n in enumerate(layer))


def _path(chain: Sequence[int], places: Mapping[int, Place], tops: Sequence[float], width: float, number: int, count: int) -> str:
    """The path of an edge as SVG has it: curves within a band, straight lines through the gutter from one band to the next."""
    first = places[chain[0]]
    parts = [f"M{first.x + WIDTH:.4g} {first.y + HEIGHT / 2:.4g}"]
    for a, b in pairwise(chain):
        here, there = places[a], places[b]
        x, y = here.x + WIDTH, here.y + HEIGHT / 2
        if a >= count:
            parts.append(f"L{x:.6g} {y:.6g}")
        to_x, to_y = there.x, there.y + HEIGHT / 2
        if here.band == there.band:
            bend = (to_x - x) / 2
            parts.append(f"C{x + bend:.6g} {y:.6g} {to_x - bend:.6g} {to_y:.6g} {to_x:.6g} {to_y:.6g}")
        else:
            lane = number % 5 * 3.0
            gutter = tops[there.band] - GUTTER + 5 + lane
            right, left = width - MARGIN + 6 + lane, MARGIN - 8 - lane
            turns = ((right, y), (right, gutter), (left, gutter), (left, to_y), (to_x, to_y))
            parts += [f"L{at:.6g} {down:.6g}" for at, down in turns]
    return "".join(parts)
