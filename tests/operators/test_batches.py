"""Every operator's examples among others: what does not depend on its neighbours has the same bits whatever their number.

Which axes are independent is found out: there are more elements along some axes of the inputs, and the result begins with what
it was. Results are numbers of the same bits, or NaN for NaN, whose sign and payload are not specified.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.program import Program
from tests.kernels.space import bits, but_for_nan, with_extremes

from .cases import Case, all_cases
from .test_cases import expected, graph_of

TIMES = (2, 9)
RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout")
Axes = dict[int, int]  # of some inputs, one each


def random_like(a: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if a.dtype.kind == "f":
        return rng.standard_normal(shape).astype(a.dtype)
    return rng.choice(a.reshape(-1), shape) if a.size else np.zeros(shape, a.dtype)


def data_of(item: Case) -> dict[int, np.ndarray]:
    """Inputs that may grow, by number."""
    return {i: a for i, a in enumerate(item.inputs[: item.data]) if a is not None and a.ndim and a.size}


def growths(item: Case) -> Iterator[Axes]:
    """One axis of one input, of two whose sizes agree there, or of all."""
    data = data_of(item)
    places = [(i, axis) for i, a in data.items() for axis in range(a.ndim)]
    for i, axis in places:
        yield {i: axis}
    for (i, p), (j, q) in itertools.combinations(places, 2):
        if i != j and data[i].shape[p] == data[j].shape[q]:
            yield {i: p, j: q}
    for size in {size for a in data.values() for size in a.shape} if len(data) > 2 else ():
        yield {i: a.shape.index(size) for i, a in data.items() if size in a.shape}


def grown(item: Case, axes: Axes, times: int, rng: np.random.Generator) -> Case:
    inputs = list(item.inputs)
    for i, axis in axes.items():
        a = np.asarray(inputs[i])
        more = (*a.shape[:axis], a.shape[axis] * (times - 1), *a.shape[axis + 1 :])
        inputs[i] = np.concatenate([a, random_like(a, more, rng)], axis)
    return item._replace(inputs=tuple(inputs))


def independent(before: np.ndarray, after: np.ndarray, times: int) -> int | None:
    """The axis along which `after` begins with `before`, or None."""
    if before.ndim != after.ndim:
        return None
    changed = [k for k in range(before.ndim) if before.shape[k] != after.shape[k]]
    if len(changed) != 1 or after.shape[changed[0]] != times * before.shape[changed[0]]:
        return None
    first = np.take(after, range(before.shape[changed[0]]), changed[0])
    if before.dtype.kind == "O":
        return changed[0] if (first == before).all() else None
    return changed[0] if np.allclose(first, before, rtol=1e-5, atol=1e-6, equal_nan=True) else None


def run(item: Case, threads: int) -> list[np.ndarray]:
    fl.set_num_threads(threads)
    graph, given = graph_of(item, item.data)
    return [np.asarray(y) for y in Program(graph, dispatch.variant()).binding(given).run(given)]


def compared(item: Case, axes: Axes, times: int, rng: np.random.Generator) -> bool:
    """Whether the axes were independent; then the bits are equal, or the test has failed."""
    wide = grown(item, axes, times, rng)
    try:
        pairs = list(zip(expected(item), expected(wide), strict=True))
        found = [independent(np.asarray(a), np.asarray(b), times) for a, b in pairs]
        if None in found:
            return False
        few, many, threaded = run(item, 1), run(wide, 1), run(wide, 2)
    except (fl.Error, ValueError, IndexError):  # other inputs do not go with these
        return False
    for a, b, c, axis in zip(few, many, threaded, found, strict=False):
        what = f"{item.id}, {axes}, {times} times"
        np.testing.assert_array_equal(bits(c), bits(b), f"{what}: threads")
        np.testing.assert_array_equal(bits(np.take(b, range(a.shape[axis or 0]), axis)), bits(a), what)
    return True


def not_finite(item: Case, axes: Axes, rng: np.random.Generator) -> bool:
    """The same where values are NaN or infinite: numbers have the same bits next to them, and NaN is NaN, of any sign."""
    wide = grown(item, axes, TIMES[-1], rng)
    few, many = list(item.inputs), list(wide.inputs)
    for i, a in data_of(wide).items():
        if a.dtype == np.float32:
            many[i] = with_extremes(a, rng)
            few[i] = np.ascontiguousarray(many[i][tuple(map(slice, np.shape(few[i])))])
    item, wide = item._replace(inputs=tuple(few)), wide._replace(inputs=tuple(many))
    try:
        with np.errstate(all="ignore"):
            found = [
                independent(np.asarray(a), np.asarray(b), TIMES[-1]) for a, b in zip(expected(item), expected(wide), strict=True)
            ]
            results = run(item, 1), run(wide, 2)
    except (fl.Error, ValueError):  # what is no index, no size
        return False
    for a, b, axis in zip(*results, found, strict=False):
        if axis is None:  # equal by chance before: Unique has fewer of what is there twice
            continue
        b = np.take(b, range(a.shape[axis]), axis)
        np.testing.assert_array_equal(but_for_nan(b), but_for_nan(a), f"{item.id}, not finite")
    return None not in found


@pytest.mark.usefixtures("kept_threads")
@pytest.mark.without("reference")  # numpy's sums promise no order
def test_bits_do_not_depend_on_neighbours(variant: str) -> None:
    rng, count, strange = np.random.default_rng(0), 0, 0
    for item in all_cases():
        floats = {i: a for i, a in data_of(item).items() if a.dtype == np.float32}
        if item.op in RANDOM or not floats:
            continue
        inputs = [random_like(floats[i], a.shape, rng) if a is not None and i in floats else a for i, a in enumerate(item.inputs)]
        given = item._replace(inputs=tuple(inputs))
        apart = [axes for axes in growths(given) if all(compared(given, axes, times, rng) for times in TIMES)]
        count += len(apart)
        strange += sum(not_finite(given, axes, rng) for axes in apart[:1])
    assert count > 1000 and strange > 500
