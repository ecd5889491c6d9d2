"""Pools over windows, bins, whole maps and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...functional._geometry import channels_last
from ...functional._pools import Pool, pool
from ...functional.adaptive import bins
from ...graph.ir import Node
from ._base import LOWER, Lowering


def with_batch(s: Lowering, node: Node, x: str, axes: int, make: Callable[[str, Any], Any]) -> None:
    """Makes a node that wants a batch; where x has none, one is put around it."""
    if s.rank(node) == axes + 2:
        make(x, node.outputs)
        return
    zero = s.ints(0)
    made = make(s.add("Unsqueeze", (x, zero), s.name("batch")), s.name("batch"))
    s.add("Squeeze", (made, zero), node.outputs)


def _window(place: Pool) -> dict[str, Any]:
    """The attributes that all pools over windows share."""
    found: dict[str, Any] = {"kernel_shape": place.kernel, "strides": place.stride, "dilations": place.dilation}
    if place.padding is None:
        found["auto_pad"] = "SAME_UPPER"
    else:
        found["pads"] = (*(before for before, _ in place.padding), *(after for _, after in place.padding))
    if place.ceil:
        found["ceil_mode"] = 1
    if place.last:
        found["x_last"] = True
    return found


def _pool(s: Lowering, node: Node, x: str) -> None:
    get, axes, operator = dict(node.attributes), int(node.op[-2]), {"m": "MaxPool", "a": "AveragePool", "l": "LpPool"}[node.op[0]]
    get.pop("return_indices", None)
    own: dict[str, Any] = {}
    include, override = get.pop("count_include_pad", False), get.pop("divisor_override", None)
    if operator == "LpPool":
        own = {"p": float(get.pop("norm_type")), **({} if get.pop("norm") else {"scaled": True})}
    place = pool(node.op, axes, **{"dilation": 1, **get})
    if include and place.padding is not None:
        own["count_include_pad"] = 1
    if override is not None:
        own["divisor"] = override
    with_batch(s, node, x, axes, lambda x, out: s.add(operator, (x,), out, **_window(place), **own))


def _adaptive(s: Lowering, node: Node, x: str) -> None:
    get, axes = node.attributes, int(node.op[-2])
    own: dict[str, Any] = {"x_last": True} if channels_last(node.op, get["layout"], axes) else {}
    sizes = tuple(size or 0 for size in bins(node.op, axes, get["output_size"]))
    op = "mean" if "avg" in node.op else "max"
    with_batch(s, node, x, axes, lambda x, out: s.add("AdaptivePool", (x,), out, sizes=sizes, reduce=op, **own))


for _axes in (1, 2, 3):
    LOWER.update({f"{kind}_pool{_axes}d": _pool for kind in ("max", "avg", "lp")})
    LOWER.update({f"adaptive_{kind}_pool{_axes}d": _adaptive for kind in ("max", "avg")})


def _global(s: Lowering, node: Node, x: str) -> None:
    rank = s.rank(node)
    last = channels_last(node.op, node.attributes["layout"], rank - 2)
    keep, space = node.attributes["keepdims"], s.ints(*range(2, rank))
    operator, own = "GlobalAveragePool" if "avg" in node.op else "GlobalMaxPool", {"x_last": True} if last else {}
    if keep and not last:
        s.add(operator, (x,), node.outputs)
        return
    # The operator's result has its channels first in both layouts.
    flat = s.add("Squeeze", (s.add(operator, (x,), s.name("map"), **own), space), s.name("flat") if keep else node.outputs)
    if keep:
        s.add("Unsqueeze", (flat, s.ints(*range(1, rank - 1))), node.outputs)


def _over_time(s: Lowering, node: Node, x: str, lengths: str | None, mask: str | None) -> None:
    if mask is not None and s.dtype(mask).kind != "b":
        mask = s.add("Cast", (mask,), s.name("mask"), to=9)
    op = "mean" if "mean" in node.op else "max"
    s.add("TimePool", (x, lengths, mask), node.outputs, reduce=op, batch_first=bool(node.attributes["batch_first"]))


LOWER.update(global_avg_pool=_global, global_max_pool=_global, mean_over_time=_over_time, max_over_time=_over_time)
