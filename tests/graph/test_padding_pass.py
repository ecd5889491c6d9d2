"""Zeros around an image go into the convolution that reads it; everything else around it stays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.program.graphs import node, normal

from .rewrites import check, ops

X, W = {"x": (2, 3, 6, 5)}, normal(4, 3, 3, 3)


def pads(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


SPACE = pads(0, 0, 1, 2, 0, 0, 0, 3)


@pytest.mark.parametrize("own", [{}, {"pads": (1, 0, 2, 1)}, {"auto_pad": "VALID"}])
def test_zeros_go_into_the_convolution(own: dict[str, object]) -> None:
    for text, more in (("h = Pad(x, p)", {}), ("h = Pad(x, p, z)", {"z": np.float32(0)})):
        found = check(X, [node(text), node("y = Conv(h, w)", **own)], {"w": W, "p": SPACE, **more})
        assert ops(found) == ["Conv"]
        before = own.get("pads", (0, 0, 0, 0))
        assert found.nodes[0].attributes["pads"] == tuple(np.add(before, (1, 2, 0, 3)))  # type: ignore[call-overload]


def test_channels_last() -> None:
    last = pads(0, 1, 2, 0, 0, 0, 3, 0)
    nodes = [node("h = Pad(x, p)"), node("y = Conv(h, w)", x_last=True, out_last=True)]
    assert ops(check({"x": (2, 6, 5, 3)}, nodes, {"w": W, "p": last})) == ["Conv"]


@pytest.mark.parametrize(
    ("text", "attributes", "constants", "conv"),
    [
        ("h = Pad(x, p, z)", {}, {"p": SPACE, "z": np.float32(1)}, {}),
        ("h = Pad(x, p)", {"mode": "edge"}, {"p": SPACE}, {}),
        ("h = Pad(x, p)", {}, {"p": pads(0, 0, -1, 2, 0, 0, 0, 3)}, {}),
        ("h = Pad(x, p)", {}, {"p": pads(1, 0, 0, 0, 0, 0, 0, 0)}, {}),
        ("h = Pad(x, p, z, a)", {}, {"p": pads(1, 1), "z": np.float32(0), "a": pads(3)}, {}),
        ("h = Pad(x, p)", {}, {"p": SPACE}, {"auto_pad": "SAME_UPPER"}),
    ],
)
def test_what_stays(text: str, attributes: dict[str, object], constants: dict[str, np.ndarray], conv: dict[str, object]) -> None:
    nodes = [node(text, **attributes), node("y = Conv(h, w)", **conv)]
    assert ops(check(X, nodes, {"w": W, **constants})) == ["Pad", "Conv"]


def test_a_second_reader() -> None:
    nodes = [node("h = Pad(x, p)"), node("y = Conv(h, w)"), node("z = Relu(h)")]
    assert "Pad" in ops(check(X, nodes, {"w": W, "p": SPACE}, ("y", "z")))


def test_channels_that_are_added_stay() -> None:
    nodes = [node("h = Pad(x, p)"), node("y = Conv(h, w)")]
    assert ops(check({"x": (2, 2, 6, 5)}, nodes, {"w": W, "p": pads(0, 0, 0, 0, 0, 1, 0, 0)})) == ["Pad", "Conv"]
