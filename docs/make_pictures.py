"""Draws the pictures of the documentation from real computations. Run from the root: ``python -m docs.make_pictures FOLDER``.

FOLDER has MiniLM's ``model.safetensors`` (see examples/minilm.py). Writes docs/attention-1.svg to -3.svg.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl

from ._svg import document, heat_map

HERE = Path(__file__).parent
WORDS = ["[CLS]", "the", "kitten", "is", "resting", "on", "a", "rug", ".", "[SEP]"]
IDS = np.array([[101, 1996, 18401, 2003, 8345, 2006, 1037, 20452, 1012, 102]])


def attention_weights(folder: str) -> np.ndarray:
    """Weights (6 layers, 12 heads, 10, 10) of MiniLM's heads on `WORDS`."""
    sys.path.insert(0, str(HERE.parent / "examples"))
    from minilm import MiniLM

    net: Any = MiniLM(fl.load_weights(Path(folder) / "model.safetensors"))
    x, found = net.embeddings(IDS), []
    for layer in net.encoder.layers:
        found.append(layer.self_attn(x, x, x, average_attn_weights=False)[1][0])
        x = layer(x)
    return np.stack(found)


def striking(weights: np.ndarray) -> list[tuple[str, tuple[int, int]]]:
    """The heads that look most at the word before, at the word after, and from one of three words at the other two."""
    before = np.diagonal(weights, -1, 2, 3)[..., :8].mean(-1)
    after = np.diagonal(weights, 1, 2, 3)[..., 1:].mean(-1)
    nouns = weights[..., [2, 4, 7], :][..., [2, 4, 7]] * (1 - np.eye(3))
    return [
        (name, tuple(int(i) for i in np.unravel_index(score.argmax(), score.shape)))  # type: ignore[misc]
        for name, score in (("the word before", before), ("the word after", after), ("kitten, resting, rug", nouns.sum((-1, -2))))
    ]


def main(folder: str) -> None:
    weights = attention_weights(folder)
    for i, (name, (layer, head)) in enumerate(striking(weights), 1):
        title = f"layer {layer + 1}, head {head + 1}: {name}"
        svg, width, height = heat_map(weights[layer, head], WORDS, WORDS, title, 4, 4)
        (HERE / f"attention-{i}.svg").write_text(document([svg], width + 8, height + 8), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
