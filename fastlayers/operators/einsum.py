"""Einsum: sums of products whose axes are named by letters."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.graph import Dim, Shape
from ..kernels.table import REDUCE
from ._base import Spec, View, register
from ._traits import PLAIN
from .calls import MOST_AXES, copy, has, strides_of
from .fused import IDENTITY
from .shapes import broadcast, need_kind, same_dtype

if TYPE_CHECKING:
    from .builder import Builder, Ref

__all__: list[str] = []


def _terms(n: View) -> tuple[list[str], str | None]:
    """The inputs' letters and the result's, if they are given; "." stands for an ellipsis."""
    equation = str(n.get("equation", "")).replace(" ", "")
    if not re.fullmatch(r"(?:[A-Za-z.,]*)(?:->[A-Za-z.]*)?", equation):
        raise n.fail(f"equation {n.get('equation')!r}: expected letters, commas, ellipses and at most one arrow")
    left, arrow, right = equation.replace("...", "*").partition("->")
    terms = left.split(",")
    if "." in left + right or any(t.count("*") > 1 for t in (*terms, right)):
        raise n.fail(f"equation {n.get('equation')!r}: expected at most one ellipsis (...) in a term")
    if len(terms) != len(n.inputs):
        raise n.fail(f"equation {n.get('equation')!r} has {len(terms)} terms, the node {len(n.inputs)} inputs")
    if arrow and (len(set(right)) != len(right) or not set(right) <= {*left, "*"}):
        raise n.fail(f"equation {n.get('equation')!r}: expected letters of the inputs in the result, each once")
    return terms, right if arrow else None


def _infer(n: View) -> list[Spec]:
    need_kind(n, "fiu")
    dtype = same_dtype(n)
    terms, right = _terms(n)
    sizes: dict[str, Dim] = {}
    middle: list[Shape | None] = []
    for i, term in enumerate(terms):
        shape = n.shape(i)
        if shape is None:
            middle.append(None if "*" in term else ())
            sizes.update((letter, None) for letter in term if letter not in sizes)
            continue
        before, star, after = term.partition("*")
        extra = len(shape) - len(before) - len(after)
        if extra < 0 or (extra and not star):
            raise n.fail(f"input {i} has shape {shape}: its term {term.replace('*', '...')!r} is for another number of axes")
        middle.append(shape[len(before) : len(before) + extra])
        for letter, size in zip(before + after, shape[: len(before)] + shape[len(before) + extra :], strict=True):
            old = sizes.get(letter)
            if isinstance(old, int) and isinstance(size, int) and old != size and 1 not in (old, size):
                raise n.fail(f"letter {letter!r} has sizes {old} and {size}")
            sizes[letter] = size if old is None or old == 1 or (isinstance(size, int) and size != 1) else old
    ellipsis = broadcast(n, middle)
    if right is None:
        letters = "".join(terms).replace("*", "")
        right = ("*" if any("*" in t for t in terms) else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if "*" in right and ellipsis is None:
        return [Spec(None, dtype)]
    result: list[Dim] = []
    for letter in right:
        result.extend(ellipsis or () if letter == "*" else (sizes[letter],))
    return [Spec(tuple(result), dtype)]


def _run(n: View, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    terms, right = _terms(n)
    equation = ",".join(terms) + ("" if right is None else f"->{right}")
    dtype = arrays[0].dtype
    given = [a.astype(np.float64) if dtype.kind == "f" else a for a in arrays]
    return (np.asarray(np.einsum(equation.replace("*", "..."), *given, optimize=True)).astype(dtype, copy=False),)


# ---- two terms as a product of matrices ---------------------------------------------------------------------------------


def _letters(n: View) -> tuple[list[str], str] | None:
    """The letters of both terms and of the result; axes under an ellipsis have the signs "0" to "9", the last one "0"."""
    terms, right = _terms(n)
    if right is None or len(terms) != 2 or ("*" not in right and any("*" in term for term in terms)):
        return None
    hidden = [len(n.sizes(i)) - len(term) + 1 if "*" in term else 0 for i, term in enumerate(terms)]
    if max(hidden) > 10:
        return None
    made = [term.replace("*", "9876543210"[10 - count :]) for term, count in zip(terms, hidden, strict=True)]
    return made, right.replace("*", "9876543210"[10 - max(hidden) :])


def _laid(b: Builder, x: Ref, letters: str, order: str, sizes: dict[str, int]) -> Ref:
    """x with its axes in another order: as it is, if only axes of size 1 change positions."""
    if [c for c in letters if sizes[c] != 1] == [c for c in order if sizes[c] != 1]:
        return x
    strides = dict(zip(letters, strides_of([sizes[c] for c in letters]), strict=True))
    shape = [sizes[c] for c in order]
    made = b.temp(tuple(shape))
    copy(b, x, made, shape, 0, [strides[c] for c in order], 0, strides_of(shape))
    return made


def _summed(b: Builder, x: Ref, letters: str, kept: str, sizes: dict[str, int]) -> Ref:
    """x with the axes `kept`, over the others of which it is summed."""
    if kept == letters:
        return x
    lost = "".join(c for c in letters if c not in kept)
    made = b.temp(tuple(sizes[c] for c in kept))
    rows = _laid(b, x, letters, kept + lost, sizes).view((math.prod(made.shape), math.prod(sizes[c] for c in lost), 1))
    b.call("reduce", rows, made.view((math.prod(made.shape), 1)), REDUCE["sum"])
    return made


def _lower(n: View, b: Builder) -> Any:
    """Lowers to a product: axes of both terms and the result are batches, those of one term rows or columns; the others are
    summed over, those that one term alone has before the product."""
    found = _letters(n) if len(n.inputs) == 2 and n.float32() else None
    if found is None or not has("matmul", "copy", "reduce"):
        return False
    (p, q), r = found
    sizes = [dict(zip(letters, n.sizes(i), strict=True)) for i, letters in enumerate((p, q))]
    same = all(sizes[0][c] == sizes[1][c] for c in set(p) & set(q))
    once = len(set(p)) == len(p) <= MOST_AXES and len(set(q)) == len(q) <= MOST_AXES and len(r) <= MOST_AXES
    if not same or not once or 0 in (*n.sizes(0), *n.sizes(1)):
        return False
    every = {**sizes[0], **sizes[1]}
    kept = ["".join(c for c in letters if c in other or c in r) for letters, other in ((p, q), (q, p))]
    x, y = (_summed(b, b.input(i), letters, kept[i], every) for i, letters in enumerate((p, q)))
    p, q = kept
    batch, rows = ["".join(c for c in r if (c in q) == both and c in p) for both in (True, False)]
    columns, summed = "".join(c for c in r if c not in p), "".join(c for c in p if c not in r)
    count, m, k, w = (math.prod(every[c] for c in group) for group in (batch, rows, summed, columns))
    # Whichever way its axes are already, the second may be transposed; else its columns come last.
    turned = [c for c in q if every[c] != 1] == [c for c in batch + columns + summed if every[c] != 1]
    left = _laid(b, x, p, batch + rows + summed, every).view((count, m, k))
    shape = (count, w, k) if turned else (count, k, w)
    right = _laid(b, y, q, batch + (columns + summed if turned else summed + columns), every).view(shape)
    order = batch + rows + columns
    direct = [c for c in order if every[c] != 1] == [c for c in r if every[c] != 1]
    out = b.output(0).view((count, m, w)) if direct else b.temp((count, m, w))
    b.call("matmul", left, right, out, turned, IDENTITY)
    if not direct:
        strides = dict(zip(order, strides_of([every[c] for c in order]), strict=True))
        final = [every[c] for c in r]
        copy(b, out, b.output(0), final, 0, [strides[c] for c in r], 0, strides_of(final))
    return None


register("Einsum", _infer, _run, _lower, PLAIN)
