"""The picture of hierarchical softmax: drawn from the layer's numbers."""

from __future__ import annotations

import itertools
import xml.dom.minidom

import numpy as np

from docs.make_pictures_tree import AFTER, LETTERS, draw, layer_of

WORDS = "the tent that the ant took to the street at ten"


def test_shares_are_those_of_the_text() -> None:
    """With half a letter too much at every node, which few letters make felt."""
    layer = layer_of(WORDS * 200)
    shares = np.exp(layer(np.eye(26)[LETTERS.index(AFTER)]))
    pairs = [b for a, b in itertools.pairwise(WORDS * 200) if a == AFTER and b != " "]
    want = np.array([pairs.count(c) for c in LETTERS]) / len(pairs)
    np.testing.assert_allclose(shares, want, atol=0.005)


def test_the_picture_has_every_letter() -> None:
    picture = xml.dom.minidom.parseString(draw(layer_of(WORDS)))
    assert len(picture.getElementsByTagName("circle")) == 51
    shown = [t.firstChild.data for t in picture.getElementsByTagName("text") if t.firstChild is not None]
    assert set(LETTERS) <= set(shown)
