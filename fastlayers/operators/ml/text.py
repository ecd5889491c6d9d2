"""Strings: constants of them, and StringNormalizer, StringConcat, StringSplit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from .._base import INT64, Spec, View, register
from .._traits import EACH, PLAIN, uncounted
from ..shapes import broadcast, need_kind

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
STRING = np.dtype(object)


def strings(values: Any, shape: Any = None) -> np.ndarray:
    """An array of strings."""
    made = np.empty(len(values), object)
    made[:] = list(values)
    return made if shape is None else made.reshape(shape)


def _constant_infer(n: View) -> list[Spec]:
    values, shape = n.get("values", ()), n.get("shape", ())
    if not all(isinstance(d, int) and d >= 0 for d in shape) or math.prod(shape) != len(values):
        raise n.fail(f"shape is {tuple(shape)[:8]} for {len(values)} strings: expected as many")
    if not all(isinstance(value, str) for value in values):
        raise n.wrong_dtype("a value is no string")
    return [Spec(tuple(shape), STRING)]


register("StringConstant", _constant_infer, lambda n: (strings(n.get("values", ()), n.get("shape", ())),), traits=PLAIN)

# ---- StringNormalizer ------------------------------------------------------------------------------------------------


def _normalizer_infer(n: View) -> list[Spec]:
    """x (c,) or (1, c) without its stop words, in upper or lower case; one empty string if nothing is left."""
    need_kind(n, "O", 0)
    if n.get("locale", "") not in ("", "C", "en_US", "en_US.UTF-8", "C.UTF-8"):
        raise UnsupportedError(f"{n.where}: locale is {n.get('locale')!r:.80}: only 'en_US' is supported")
    shape = n.shape(0)
    if shape is not None and (len(shape) not in (1, 2) or (len(shape) == 2 and isinstance(shape[0], int) and shape[0] != 1)):
        raise n.fail(f"x has shape {shape}: expected (c,) or (1, c)")
    if shape is not None and not n.get("stopwords", ()) and isinstance(shape[-1], int) and shape[-1]:
        return [n.spec(0)]
    return [Spec(None if shape is None else (*shape[:-1], None), STRING)]


def _normalizer_run(n: View, x: np.ndarray) -> Arrays:
    change, stop = n.get("case_change_action", "NONE"), n.get("stopwords", ())
    if n.get("is_case_sensitive", 0):
        words = set(stop)
        kept = [item for item in x.reshape(-1) if item not in words]
    else:
        words = {word.lower() for word in stop}
        kept = [item for item in x.reshape(-1) if item.lower() not in words]
    if change != "NONE":
        kept = [item.lower() if change == "LOWER" else item.upper() for item in kept]
    return (strings(kept or [""], (*x.shape[:-1], len(kept) or 1)),)


register("StringNormalizer", _normalizer_infer, _normalizer_run, traits=PLAIN._replace(counts=uncounted))

# ---- StringConcat, StringSplit ---------------------------------------------------------------------------------------


def _concat_infer(n: View) -> list[Spec]:
    need_kind(n, "O")
    return [Spec(broadcast(n, [n.shape(0), n.shape(1)]), STRING)]


register("StringConcat", _concat_infer, lambda n, a, b: (np.asarray(a + b, object),), traits=EACH)


def _split_infer(n: View) -> list[Spec]:
    """x's pieces along a new axis, filled up to the string with most of them, and their counts."""
    need_kind(n, "O", 0)
    shape = n.shape(0)
    return [Spec(None if shape is None else (*shape, None), STRING), Spec(shape, INT64)]


def _split_run(n: View, x: np.ndarray) -> Arrays:
    delimiter, most = n.get("delimiter") or None, n.get("maxsplit")
    parts = [item.split(delimiter, -1 if most is None else most) if item else [] for item in x.reshape(-1)]
    width = max(map(len, parts), default=0)
    padded = [piece for pieces in parts for piece in (*pieces, *[""] * (width - len(pieces)))]
    counts = np.asarray([len(pieces) for pieces in parts], np.int64).reshape(x.shape)
    return strings(padded, (*x.shape, width)), counts


register("StringSplit", _split_infer, _split_run, traits=PLAIN._replace(counts=uncounted))
