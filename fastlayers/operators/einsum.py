"""Einsum: sums of products whose axes are named by letters."""

from __future__ import annotations

import re

import numpy as np

from ..graph.ir import Dim, Shape
from ._base import FLOAT32, Spec, View, register
from ._shapes import broadcast, need_kind, same_dtype

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
    given = [a.astype(FLOAT32) if dtype == np.float16 else a for a in arrays]
    return (np.asarray(np.einsum(equation.replace("*", "..."), *given, optimize=True)).astype(dtype, copy=False),)


register("Einsum", _infer, _run)
