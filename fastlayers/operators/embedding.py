"""Rows of a table by number, as layers look them up: unlike Gather, no number counts from the end, unless `wraps`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels.halves import STORED, widened
from ..kernels.table import ARITHMETIC, HALVES, KINDS
from ..rules.weights import table_rule
from ._base import FLOAT32, INT64, Spec, View, register
from ._traits import Traits
from .calls import indexable, indices
from .fused import half_of
from .shapes import need_kind

__all__: list[str] = []


def _infer(n: View) -> list[Spec]:
    need_kind(n, "iu", 1)
    weight, ids = n.shape(0), n.shape(1)
    if weight is not None:
        table_rule(n.where, weight)
    return [Spec(None if weight is None or ids is None else (*ids, weight[1]), FLOAT32 if half_of(n) else n.spec(0).dtype)]


def _run(n: View, weight: np.ndarray, ids: np.ndarray) -> Sequence[np.ndarray]:
    least = -len(weight) if n.get("wraps", 0) else 0
    wrong = ids[(ids < least) | (ids >= len(weight))]
    if wrong.size:
        raise n.fail(f"id {wrong.reshape(-1)[0]} is out of range: expected {least} to {len(weight) - 1}")
    return (widened(weight[ids], half_of(n)),)


def _lower(n: View, b: Any) -> Any:
    """Inputs: weight, ids."""
    half = half_of(n)
    if n.spec(0).dtype not in (FLOAT32, STORED.get(half)) or not indexable(n, 1):
        return False
    if n.spec(0).dtype == FLOAT32 and (n.spec(1).dtype != INT64 or n.get("wraps", 0)):
        return False
    count, width = math.prod(n.sizes(1)), n.sizes(0)[1]
    if n.spec(0).dtype != FLOAT32:
        table, out = b.input(0), b.output(0)
        rows = b.temp((1, count, width), table.dtype)
        b.call("gather", table.view((1, *table.shape)), indices(n, b, 1).view((count,)), rows, 2)
        rows, out = rows.view((count * width,)), out.view((count * width,))
        if half == HALVES["float16"]:
            b.call("cast", rows, out, KINDS["float16"], KINDS["float32"])
        else:  # the upper halves
            words = b.temp(rows.shape, np.dtype(np.uint32))
            b.call("cast", rows, words, KINDS["uint16"], KINDS["uint32"])
            by, bits = b.constant(np.array(16, np.uint32)), out._replace(dtype=words.dtype)
            b.call("arithmetic", words, by, bits, ARITHMETIC["left"], KINDS["uint32"])
        return True
    b.call("embedding", b.input(0), b.input(1).view((count,)), b.output(0).view((count, width)))
    return True


register("Embedding", _infer, _run, _lower, Traits(time="gather", halves=(0,)))
