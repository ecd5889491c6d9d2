"""Rows of a table by number, as layers look them up: unlike Gather, no number counts from the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..rules.weights import table_rule
from ._base import INT64, Spec, View, register
from ._traits import Traits
from .shapes import need_kind

__all__: list[str] = []


def _infer(n: View) -> list[Spec]:
    need_kind(n, "iu", 1)
    weight, ids = n.shape(0), n.shape(1)
    if weight is not None:
        table_rule(n.where, weight)
    return [Spec(None if weight is None or ids is None else (*ids, weight[1]), n.spec(0).dtype)]


def _run(n: View, weight: np.ndarray, ids: np.ndarray) -> Sequence[np.ndarray]:
    wrong = ids[(ids < 0) | (ids >= len(weight))]
    if wrong.size:
        raise n.fail(f"id {wrong.reshape(-1)[0]} is out of range: expected 0 to {len(weight) - 1}")
    return (weight[ids],)


def _lower(n: View, b: Any) -> Any:
    """Inputs: weight, ids."""
    if not n.float32(0) or n.spec(1).dtype != INT64:
        return False
    count, width = math.prod(n.sizes(1)), n.sizes(0)[1]
    b.call("embedding", b.input(0), b.input(1).view((count,)), b.output(0).view((count, width)))
    return True


register("Embedding", _infer, _run, _lower, Traits(time="gather"))
