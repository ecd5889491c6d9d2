"""Weights of a graph as its kernels take them: packed once, or read from where an earlier process has stored them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .._lazy import imported
from .._locks import Lock
from ..ir.graph import Graph, Node
from ..kernels.dispatch import Variant
from ..operators.builder import Parts, contiguous

__all__ = ["PACKED_FORMAT", "Weights"]

# Raise it when packed weights are differently than before: those stored in files are then packed again.
PACKED_FORMAT = 1
# Pack kernels of the compiled engine that take matrices in either order, and at any address.
_VIEWS = frozenset({"linear_pack", "linear_half_pack"})


class Weights:
    """Packed weights by node, kernel and whatever else decides them. May be used from any number of threads at once.

    Args:
        variant: whose kernels pack.
        lock: taken while weights are packed.
        graph: where stored weights belong.
        stored: weights that have been packed before, as `named` named them.
    """

    def __init__(self, variant: Variant, lock: Lock, graph: Graph, stored: Mapping[str, np.ndarray] | None) -> None:
        self._variant, self._lock, self._stored = variant, lock, stored or {}
        self._places = _places(graph) if stored else {}
        self._packed: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._packed)

    @property
    def nbytes(self) -> int:
        """The number of bytes that the packed weights take, about."""
        return sum(_bytes_of(packed) for packed in list(self._packed.values()))

    def pack(self, key: Any, kernel: str, arguments: Callable[[], tuple[Any, ...] | Parts]) -> Any:
        """Packed weights, made once for a key; with None made again and not retained."""
        if key is None:
            return self._made(kernel, arguments())
        found = self._packed.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._packed.get(key)  # another thread may have made it meanwhile
            if found is None:
                name = _stored_name(self._places, key)
                stored = None if name is None else self._stored.get(name)
                given = arguments()
                if stored is not None and kernel in self._variant.restores and not isinstance(given, Parts):
                    found = self._variant.restores[kernel](*self._prepared(kernel, given), stored)
                else:
                    found = self._made(kernel, given)
                self._packed[key] = found
            return found

    def _made(self, kernel: str, given: tuple[Any, ...] | Parts) -> Any:
        if isinstance(given, Parts):
            if self._variant.steps:  # the compiled engine
                found = imported("fastlayers.kernels.aot.nbits").nbits_pack_parts(given.count, given)
                if found is not None:
                    return found
            given = given.whole()
        return self._variant.kernels[kernel](*self._prepared(kernel, given))

    def _prepared(self, kernel: str, arguments: Iterable[Any]) -> list[Any]:
        """Arguments as pack kernels take them; those of products take matrices as they are in a file."""
        views = kernel in _VIEWS and bool(self._variant.steps)
        return [
            contiguous(a) if isinstance(a, np.ndarray) and not (views and a.ndim == 2 and _whole(a)) else a for a in arguments
        ]

    def adopt(self, node: Node, kernel: str, packed: Any) -> None:
        """Takes what a pack kernel has made of a node's weights already, so that it is not in memory twice."""
        self._packed.setdefault((id(node), kernel, None), packed)

    def named(self, graph: Graph) -> dict[str, np.ndarray]:
        """All that have been packed so far and can be stored, by a name that says where in the graph they belong."""
        places = _places(graph)
        with self._lock:
            panels = {key: getattr(packed, "panels", None) for key, packed in self._packed.items()}
        named = {_stored_name(places, key): found for key, found in panels.items() if found is not None}
        return {name: found.array() for name, found in named.items() if name is not None}


def _whole(matrix: np.ndarray) -> bool:
    return matrix.flags.c_contiguous or matrix.flags.f_contiguous


def _bytes_of(packed: Any) -> int:
    """Bytes of packed weights; those in panels count where these are not in a mapped file."""
    panels = getattr(packed, "panels", None)
    return int(getattr(packed if panels is None else panels, "nbytes", 0))


def _places(graph: Graph, prefix: str = "") -> dict[int, str]:
    """The place of each node: its number, after that of the node and the name of the branch that it belongs to."""
    found = {}
    for i, node in enumerate(graph.nodes):
        found[id(node)] = f"{prefix}{i}"
        for name, attribute in node.attributes.items():
            if isinstance(attribute, Graph):
                found.update(_places(attribute, f"{prefix}{i}.{name}."))
    return found


def _stored_name(places: Mapping[int, str], key: Any) -> str | None:
    """The name of packed weights in a file; None if their node is none of the file's."""
    node, kernel, more = key
    return None if node not in places else f"packed/{places[node]}/{kernel}" + (f"/{more}" if more is not None else "")
