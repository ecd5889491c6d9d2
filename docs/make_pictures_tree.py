"""Draws hierarchical softmax as a tree, from a real computation. Run from the root: ``python -m docs.make_pictures_tree``.

The classes are the letters of the English text in README.md, and the tree is Huffman's for how often each comes up. Given
the letter before, the weights of a node are those that make the text most likely (with half a letter more everywhere): logarithms
of how much oftener the path went left there than right. Writes docs/hierarchical.svg.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np

import fastlayers as fl

from ._svg import colour, document, line, text

HERE = Path(__file__).parent
LETTERS = "abcdefghijklmnopqrstuvwxyz"
AFTER = "t"
ACROSS, DOWN, TOP = 30, 38, 60


def layer_of(words: str) -> fl.HierarchicalSoftmax:
    """The layer that tells the next letter from the one before, given as one of 26."""
    inside = [pair for pair in itertools.pairwise(words) if " " not in pair]
    pairs = np.array([[LETTERS.index(letter) for letter in pair] for pair in inside])
    layer = fl.HierarchicalSoftmax(26, 26, counts=np.bincount(pairs[:, 1], minlength=26))
    sides = np.full((2, 25, 26), 0.5)
    for before, letter in pairs:
        points, codes = layer.tree.path(int(letter))
        sides[codes, points, before] += 1
    layer.load_state_dict({"weight": np.log(sides[0] / sides[1])})
    return layer


def places(tree: fl.ClassTree) -> tuple[dict[int, tuple[float, int]], int]:
    """Where each node, and each class as -1 - class, stands: (column, level); and how many columns there are."""
    found: dict[int, tuple[float, int]] = {}
    columns = 0

    def visit(child: int, level: int) -> float:
        nonlocal columns
        if child < 0:
            column = float(columns)
            columns += 1
        else:
            column = (visit(int(tree.left[child]), level + 1) + visit(int(tree.right[child]), level + 1)) / 2
        found[child] = (column, level)
        return column

    visit(int(tree.order[0]), 0)
    return found, columns


def draw(layer: fl.HierarchicalSoftmax) -> str:
    """The tree after one letter: the darker and thicker, the more probable."""
    tree = layer.tree
    shares = np.exp(layer(np.eye(26, dtype=np.float32)[LETTERS.index(AFTER)]))
    share = {-1 - c: float(shares[c]) for c in range(26)}
    for node in tree.order[::-1]:
        share[int(node)] = share[int(tree.left[node])] + share[int(tree.right[node])]
    at, columns = places(tree)
    spot = {child: (25 + column * ACROSS, TOP + level * DOWN) for child, (column, level) in at.items()}
    parts = [text(12, 24, f"The letter after {AFTER!r}: shares go down the tree and sum to {share[int(tree.order[0])]:.6f}", 14)]
    for node in tree.order:
        for child in (int(tree.left[node]), int(tree.right[node])):
            parts.append(line(*spot[int(node)], *spot[child], "rule", 1 + 9 * share[child]))
    for child, (x, y) in spot.items():
        label = f"{share[child]:.4f}" if child >= 0 else f"{LETTERS[-1 - child]}: {share[child]:.4f}"
        size = 6 if child >= 0 else 11
        place = f"cx='{x:g}' cy='{y:g}' r='{size}' fill='{colour(share[child] ** 0.5)}'"
        parts.append(f"<circle {place} stroke='#555'><title>{label}</title></circle>")
        if child < 0:
            parts.append(text(x, y + 4, LETTERS[-1 - child], 12, "middle", fill="#fff" if share[child] > 0.15 else "#222"))
            parts.append(text(x, y + 25, f"{100 * share[child]:.1f}", 9, "middle"))
    return document(parts, 50 + (columns - 1) * ACROSS, TOP + tree.depth * DOWN + 40)


def main() -> None:
    readme = (HERE.parent / "README.md").read_text(encoding="utf-8")
    words = re.sub(r"[^a-z]+", " ", re.sub(r"```.*?```|`[^`]*`|\|.*", " ", readme, flags=re.DOTALL).lower())
    (HERE / "hierarchical.svg").write_text(draw(layer_of(words)), encoding="utf-8")


if __name__ == "__main__":
    main()
