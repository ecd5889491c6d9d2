"""What draws the documentation's pictures: well-formed SVG with every number and label in it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from docs._svg import COLOURS, bar, colour, document, heat_map, line, text

NAMESPACE = "{http://www.w3.org/2000/svg}"


def test_heat_map() -> None:
    values = np.array([[0.0, 0.25, 1.0], [0.5, 0.5, 0.0]])
    svg, width, height = heat_map(values, ["a", "<b>"], ["x", "y & z", "w"], "a title", 5, 7, cell=20)
    root = ElementTree.fromstring(document([svg, line(0, 0, 1, 1), text(3, 4, "more")], width, height))
    squares = root.findall(f"{NAMESPACE}rect[{NAMESPACE}title]")
    assert [s.get("fill-opacity") for s in squares] == ["0", "0.25", "1", "0.5", "0.5", "0"]
    assert [s[0].text for s in squares][:2] == ["a - x: 0.000", "a - y & z: 0.250"] and len(squares) == 6
    assert colour(0) == "#ffffff"
    assert {t.text for t in root.findall(f"{NAMESPACE}text")} == {"a", "<b>", "x", "y & z", "w", "a title", "more"}
    assert all(float(s.get("x", "nan")) + 20 <= width + 5 and float(s.get("y", "nan")) + 20 <= height + 7 for s in squares)
    with pytest.raises(ValueError, match="one label each"):
        heat_map(values, ["a"], ["x"], "")


def test_the_pictures_are_well_formed_narrow_and_follow_the_dark() -> None:
    pictures = sorted((Path(__file__).parent.parent / "docs").rglob("*.svg"))
    assert len(pictures) > 12
    for picture in pictures:
        written = picture.read_text(encoding="utf-8")
        root = ElementTree.fromstring(written)
        assert "prefers-color-scheme:dark" in written and "data-theme=dark" in written, (
            f"{picture.name}: drawn by an older _svg.py"
        )
        sizes = [float(t.get("font-size", "0")) for t in root.iter(f"{NAMESPACE}text")]
        width = float(root.get("width", "inf"))
        if picture.name != "hierarchical.svg":  # which scrolls
            assert min(sizes) * min(1, 360 / width) > 9.5, f"{picture.name}: letters too small on a telephone"
        for one in root.iter(f"{NAMESPACE}text"):
            if not one.get("transform"):
                beyond = {"start": 1.0, "middle": 0.5, "end": 0.0}[one.get("text-anchor", "start")]
                right = float(one.get("x", "0")) + beyond * 0.5 * float(one.get("font-size", "0")) * len(one.text or "")
                assert right <= width, f"{picture.name}: {one.text!r} ends beyond the picture"
    assert len(list((Path(__file__).parent.parent / "docs").glob("attention-?.svg"))) == 3


def test_colours_have_names_for_both_themes() -> None:
    root = ElementTree.fromstring(document([bar(0, 0, 5, 5, "ours"), text(0, 0, "a"), line(0, 0, 1, 1)], 10, 10))
    style = root.findtext(f"{NAMESPACE}style") or ""
    for name, (light, dark) in COLOURS.items():
        assert f".fl-{name}{{" in style and light in style and dark in style
    used = [e.get("class") for e in root if e.get("class")]
    assert used == ["fl-paper", "fl-ours", "fl-ink", "fl-rule"]
