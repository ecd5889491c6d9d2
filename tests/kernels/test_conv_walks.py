"""Ways over the results of a direct convolution: which is taken, that each can be forced, and that all give the same bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from fastlayers.kernels import dispatch
from fastlayers.kernels.table import CONV_WALKS

from .space import FIRST, LAST, RELU, bits, run
from .test_conv import AWKWARD, other, problem

compiled = pytest.mark.without("reference", "jit", "cuda")


@pytest.fixture(autouse=True)
def _as_chosen() -> Iterator[None]:
    yield
    if dispatch.engine() is not None:
        from fastlayers.kernels.aot.conv import force_walk

        force_walk(None)


def walk(i: int, layout: tuple[bool, bool]) -> str:
    """The way that a step of problem i goes."""
    from fastlayers.kernels.aot.conv import walk_of

    p, step = problem(i), dispatch.step("conv")
    packed = dispatch.kernel("conv_pack")(p.weight, p.bias, p.stride, p.dilation, p.groups)
    x, out = (
        (s[0], *s[2:], s[1]) if last else s for s, last in zip((p.x.shape, p.out_shape), layout, strict=True)
    )  # fmt: skip
    assert step is not None
    return walk_of(step(x, packed, out, p.pads, p.mode, *layout, out, RELU))


@compiled
def test_every_way_has_the_bits_of_all_others(variant: str) -> None:
    from fastlayers.kernels.aot.conv import force_walk

    chosen: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for i in range(len(AWKWARD)):
        for layout in (FIRST, LAST):
            force_walk(None)
            chosen[walk(i, layout)] += 1
            y = bits(run("conv", problem(i), layout, other(i), RELU))
            for name in CONV_WALKS:
                force_walk(name)
                if walk(i, layout) == name:
                    taken[name] += 1
                    np.testing.assert_array_equal(bits(run("conv", problem(i), layout, other(i), RELU)), y, err_msg=f"{name} {i}")
    # Blocks are for registers of eight lanes and more.
    ways = set(CONV_WALKS) - ({"blocks"} if variant in ("aot/x86_v1", "aot/neon") else set())
    assert set(chosen) == set(taken) == ways
    assert taken["rows"] == sum(chosen.values())  # rows can be gone over in any case
    assert all(taken[name] > chosen[name] for name in ways)  # where another is chosen, too


@compiled
def test_steps_of_other_kernels_go_no_way(variant: str) -> None:
    from fastlayers.kernels.aot.conv import force_walk, walk_of

    step = dispatch.step("softmax")
    assert step is not None
    with pytest.raises(ValueError, match="walk_of: a step of another kernel: expected one of conv"):
        walk_of(step((2, 3, 4), (2, 3, 4)))
    with pytest.raises(ValueError, match="not in tuple"):
        force_walk("diagonals")
