"""What draws the documentation's pictures: well-formed SVG with every number and label in it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from docs._svg import colour, document, heat_map, line, text

NAMESPACE = "{http://www.w3.org/2000/svg}"


def test_heat_map() -> None:
    values = np.array([[0.0, 0.25, 1.0], [0.5, 0.5, 0.0]])
    svg, width, height = heat_map(values, ["a", "<b>"], ["x", "y & z", "w"], "a title", 5, 7, cell=20)
    root = ElementTree.fromstring(document([svg, line(0, 0, 1, 1), text(3, 4, "more")], width, height))
    squares = root.findall(f"{NAMESPACE}rect[{NAMESPACE}title]")
    assert [s[0].text for s in squares][:2] == ["a - x: 0.000", "a - y & z: 0.250"] and len(squares) == 6
    assert squares[0].get("fill") == colour(0) == "#ffffff"
    assert {t.text for t in root.findall(f"{NAMESPACE}text")} == {"a", "<b>", "x", "y & z", "w", "a title", "more"}
    assert all(float(s.get("x", "nan")) + 20 <= width + 5 and float(s.get("y", "nan")) + 20 <= height + 7 for s in squares)
    with pytest.raises(ValueError, match="one label each"):
        heat_map(values, ["a"], ["x"], "")


def test_the_picture_is_well_formed() -> None:
    root = ElementTree.parse(Path(__file__).parent.parent / "docs" / "attention.svg").getroot()
    assert len(root.findall(f"{NAMESPACE}rect[{NAMESPACE}title]")) == 300
