"""Caches that a graph is given and gives back with new keys and values, and the graph that writes these where the cache is.

before                                                      after
out, present = GroupQueryAttention(q, k, v, past, ends)     out = GroupQueryAttention(q, k, v, cache, counts, slots, in_place)
out, present = Attention(q, k, v, mask, past)               out = Attention(q, k, v, mask, cache, counts, slots, in_place)
present = Concat(past, k)                                   out = ScaledAttention(q, cache, mask, k, counts, slots, in_place)
out = ScaledAttention(q, present, mask)

`cache` has room for more keys than there are, so its size, on which bindings depend, changes seldom. The number of keys is a
value: `counts` (b,), with the `slots` (b, g, s) of the new ones and the `places` (b, s) of the queries. What the graph makes of
sizes and masks to get there, a few nodes, is apart (`before`): it runs in numpy, and its results are inputs of `main`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .._tuples import NamedTuple
from ..ir.graph import Graph, Node, Value, captured
from ..operators import FLOAT32, INT64
from ..operators.attention.in_place import IN_PLACE
from .before import Before, asks_sizes, before

__all__ = ["COUNTS", "PLACES", "SLOTS", "Caches", "find"]

COUNTS, PLACES, SLOTS = "~counts", "~places", "~slots."  # names of inputs, the last with a number of heads after it
SIZES = "~sizes"  # after the name of a cache
_ENDS, _AXES = ([0], [3], [-4], [-1]), ([0], [1], [3], [-4], [-3], [-1])  # axes that do not grow


class _Site(NamedTuple):
    """An operator that appends to caches: names of its `pasts` and `presents`, keys first, how many heads they have, and the mask
    that has a value for each key. `made`: the node instead of it. `ends`: the values that say how long sequences are, if they do.
    """

    pasts: tuple[str, str]
    presents: tuple[str, str]
    heads: int
    mask: str | None
    made: Node
    ends: tuple[str, ...] = ()


class Caches(NamedTuple):
    """A graph with caches, apart.

    Attributes:
        pasts: positions of the caches among the graph's inputs; `heads`: how many of keys each has.
        presents: where each of them is among the graph's outputs.
        ends: values that say how long sequences are, as GroupQueryAttention has them; none where all entries have as many keys.
        before: what gives these, and the inputs `made` of `main`. Of those, `masks` are to be as long as the caches.
        main: the rest. Of its inputs, `given` are of the graph, by position, then come `made`, the three sorts above, the caches.
        results: of each output of the graph: its position among those of `main`; -1: a cache's, -2: a result of `before`.
        steps: the input, by position, whose second axis is the queries'.
    """

    pasts: tuple[int, ...]
    heads: tuple[int, ...]
    presents: tuple[int, ...]
    ends: tuple[str, ...]
    before: Before
    main: Graph
    given: tuple[int, ...]
    made: tuple[str, ...]
    masks: frozenset[str]
    results: tuple[int, ...]
    steps: int


class _Net:
    """A graph with what is asked about it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.inputs = {v.name: i for i, v in enumerate(graph.inputs)}
        self.outputs = {v.name: i for i, v in enumerate(graph.outputs)}
        self.producers = {name: node for node in graph.nodes for name in node.outputs if name}
        self.readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in {name for name in node.inputs if name} | captured(node):
                self.readers.setdefault(name, []).append(node)

    def alone(self, name: str | None, reader: Node) -> bool:
        """Whether a value is no output, and one node reads it, but for those that ask for its shape."""
        readers = [node for node in self.readers.get(name or "", ()) if not asks_sizes(node)]
        return name is not None and readers == [reader] and reader.inputs.count(name) == 1 and name not in self.outputs

    def are_caches(self, pasts: tuple[str | None, ...], presents: tuple[str, ...], reader: Node) -> bool:
        """Whether a node takes these inputs of the graph, and gives its outputs, with which nothing else has to do."""
        values = [self.graph.inputs[self.inputs[name]] for name in pasts if name in self.inputs]
        return (
            len({*pasts, *presents}) == 4
            and len([v for v in values if v.dtype == FLOAT32 and v.kind == "tensor"]) == 2
            and all(self.alone(name, reader) for name in pasts)
            and all(name in self.outputs and not self.readers.get(name) for name in presents)
        )

    def heads(self, past: str) -> int:
        """The number of heads of a cache's keys; 0 if that is not known."""
        shape = self.graph.inputs[self.inputs[past]].shape
        return shape[1] if shape is not None and len(shape) == 4 and isinstance(shape[1], int) else 0


def find(graph: Graph) -> Caches | None:
    """The caches of a graph; None if it has none that can grow where they are."""
    net = _Net(graph)
    if any(name.startswith("~") or name.endswith(SIZES) for name in (*net.inputs, *net.producers)):
        return None
    sites = {id(node): site for node in graph.nodes if (site := _site(net, node)) is not None}
    pasts = [name for site in sites.values() for name in site.pasts]
    if not sites or len({site.ends for site in sites.values()}) != 1 or len(set(pasts)) < len(pasts):
        return None
    return _apart(net, sites)


# ---- operators -----------------------------------------------------------------------------------------------------------


def _site(net: _Net, node: Node) -> _Site | None:
    found = None
    if node.op == "GroupQueryAttention":
        found = _grouped(net, node)
    elif node.op == "Attention":
        found = _attention(net, node)
    elif node.op == "ScaledAttention":
        found = _scaled(net, node)
    return None if found is None or found.heads < 1 else found


def _replaced(node: Node, *inputs: str | None) -> Node:
    return Node(node.op, inputs, node.outputs[:1], {**node.attributes, "in_place": IN_PLACE})


def _grouped(net: _Net, node: Node) -> _Site | None:
    q, k, v, past_k, past_v, ends, total, cos, sin, places, bias, sink = (*node.inputs, *(None,) * 12)[:12]
    if len(node.outputs) != 3 or sink or node.attributes.get("smooth_softmax", 0) or not ends or not total:
        return None
    if not net.are_caches((past_k, past_v), node.outputs[1:], node):
        return None
    heads = int(node.attributes.get("kv_num_heads", 0))
    inputs = (q, k, v, past_k, past_v, COUNTS, None, cos, sin, places or PLACES, bias, None, f"{SLOTS}{heads}")
    return _Site((str(past_k), str(past_v)), node.outputs[1:], heads, bias, _replaced(node, *inputs), (ends, total))


def _attention(net: _Net, node: Node) -> _Site | None:
    q, k, v, mask, past_k, past_v, lengths = (*node.inputs, *(None,) * 7)[:7]
    if len(node.outputs) != 3 or lengths or not net.are_caches((past_k, past_v), node.outputs[1:], node):
        return None
    heads = net.heads(str(past_k))
    made = _replaced(node, q, k, v, mask, past_k, past_v, COUNTS, f"{SLOTS}{heads}")
    return _Site((str(past_k), str(past_v)), node.outputs[1:], heads, mask, made)


def _scaled(net: _Net, node: Node) -> _Site | None:
    """Keys and values that are concatenations, which may be repeated for several heads of queries each."""
    if node.attributes.get("transposed") or len(node.inputs) < 3:
        return None
    found = []
    for name in node.inputs[1:3]:
        reader, maker = node, net.producers.get(name or "")
        wanted = "Reshape"
        while maker is not None and maker.op == wanted and net.alone(name, reader):
            wanted = {"Reshape": "Expand", "Expand": "Unsqueeze"}.get(wanted, "")
            if maker.op == "Unsqueeze" and _constant(net, maker.inputs[1]) not in ([2], [-3]):
                return None
            reader, name = maker, maker.inputs[0]
            maker = net.producers.get(name or "")
        if reader is not node and reader.op != "Unsqueeze":
            return None
        readers = [n for n in net.readers.get(name or "", ()) if not asks_sizes(n)]
        if maker is None or maker.op != "Concat" or len(maker.inputs) != 2 or readers != [reader] or name not in net.outputs:
            return None
        past = maker.inputs[0]
        value = None if past not in net.inputs else net.graph.inputs[net.inputs[past]]
        if value is None or value.shape is None or len(value.shape) != 4 or value.dtype != FLOAT32 or not net.alone(past, maker):
            return None
        if maker.attributes.get("axis") not in (2, -2):
            return None
        found.append((str(past), str(name), maker.inputs[1]))
    (past_k, present_k, k), (past_v, present_v, v) = found
    heads, mask = net.heads(past_k), node.inputs[3] if len(node.inputs) > 3 else None
    made = _replaced(node, node.inputs[0], past_k, past_v, mask, k, v, COUNTS, f"{SLOTS}{heads}")
    return _Site((past_k, past_v), (present_k, present_v), heads, mask, made)


def _constant(net: _Net, name: str | None) -> list[int] | None:
    array = net.graph.constants.get(name or "")
    return None if array is None or array.size > 8 else [int(i) for i in array.reshape(-1)]


# ---- the two graphs ------------------------------------------------------------------------------------------------------


def _sized(net: _Net, sites: Mapping[int, _Site]) -> list[Node]:
    """The graph's nodes, with sizes of caches that never change asked of those that have room for more."""
    source: dict[str | None, tuple[str, tuple[list[int], ...]]] = {}
    nodes: list[Node] = []
    for node in net.graph.nodes:
        if id(node) in sites:
            site = sites[id(node)]
            if node.op == "ScaledAttention":  # keys and values that are repeated have other heads
                source.update((name, (past, _ENDS)) for name, past in zip(node.inputs[1:3], site.pasts, strict=True))
            source.update((name, (past, _AXES)) for name, past in zip((*site.pasts, *site.presents), site.pasts * 2, strict=True))
    asked: dict[str, Node] = {}
    for node in net.graph.nodes:
        shape = net.producers.get(node.inputs[0] or "") if node.op == "Gather" else None
        if shape is not None and shape.op == "Shape" and shape.inputs[0] in source and not shape.attributes:
            past, axes = source[shape.inputs[0]]
            if _constant(net, node.inputs[1]) in axes:
                if past not in asked:
                    asked[past] = Node("Shape", (past,), (f"{past}{SIZES}",), {})
                    nodes.append(asked[past])
                node = Node("Gather", (f"{past}{SIZES}", node.inputs[1]), node.outputs, node.attributes)
        nodes.append(node)
    return nodes


def _grows(net: _Net, nodes: Sequence[Node], sites: Mapping[int, _Site]) -> set[str]:
    """Values whose sizes change with the caches': all that is made of these, or of an input that is as long or called a mask."""
    found = {name for site in sites.values() for name in (*site.pasts, *site.presents)}
    values = [v for v in (*net.graph.inputs, *net.graph.outputs) if v.name in found and v.shape is not None and len(v.shape) == 4]
    names = {v.shape[2] for v in values if v.shape is not None and isinstance(v.shape[2], str)}
    for value in net.graph.inputs:
        if "mask" in value.name.lower() or not names.isdisjoint(value.shape or ()):
            found.add(value.name)
    for node in nodes:
        fixed = id(node) in sites or node.outputs[0].endswith(SIZES)
        if not fixed and not found.isdisjoint({name for name in node.inputs if name} | captured(node)):
            found.update(node.outputs)
    return found


def _apart(net: _Net, sites: Mapping[int, _Site]) -> Caches | None:
    pasts = {past: present for site in sites.values() for past, present in zip(site.pasts, site.presents, strict=True)}
    graph, all_nodes = net.graph, _sized(net, sites)
    grown = _grows(net, all_nodes, sites)
    heads = {past: site.heads for site in sites.values() for past in site.pasts}
    ends = next(iter(sites.values())).ends
    masks = {site.mask for site in sites.values() if site.mask}
    own = [Value(COUNTS, (None,), INT64), Value(PLACES, (None, None), INT64)]
    own += [Value(f"{SLOTS}{g}", (None, None, None), INT64) for g in dict.fromkeys(heads.values())]
    results = tuple(v for v in graph.outputs if v.name not in pasts.values() and v.name not in grown)
    reads, nodes = {v.name for v in results}, []
    for node in reversed(all_nodes):
        if reads.isdisjoint(node.outputs) or not grown.isdisjoint(node.outputs[:1]):
            continue
        site = sites.get(id(node))
        node = node if site is None else site.made
        nodes.append(node)
        reads |= {name for name in node.inputs if name} | captured(node)
        if site is None and not masks.isdisjoint(node.inputs):
            return None
    made = sorted((reads & grown) - pasts.keys())
    if not masks <= set(made) or not results:
        return None
    late = {*made, *ends, *(v.name for v in graph.outputs if v.name in grown and v.name not in pasts.values())}
    early = before(graph, late, {id(node) for node in graph.nodes if id(node) in sites})
    given = tuple(i for i, v in enumerate(graph.inputs) if v.name in reads and v.name not in grown)
    queries = [i for i in given if (shape := graph.inputs[i].shape) is not None and len(shape) in (2, 3)]
    if early is None or not queries or set(pasts) != reads & pasts.keys():
        return None
    unknown = [Value(name, None, np.dtype(np.void)) for name in made]
    at = [net.inputs[name] for name in pasts]
    taken = (*(graph.inputs[i] for i in given), *unknown, *own, *(graph.inputs[i] for i in at))
    places = {v.name: i for i, v in enumerate(results)}
    return Caches(
        tuple(at), tuple(heads.values()), tuple(net.outputs[name] for name in pasts.values()), ends, early,
        Graph(taken, results, tuple(nodes[::-1]), graph.constants, graph.values), given, tuple(made), frozenset(masks),
        tuple(-1 if v.name in pasts.values() else places.get(v.name, -2) for v in graph.outputs), queries[0],
    )  # fmt: skip
