"""Draws the pictures of docs/tutorials from real computations. Run from the root: ``python -m docs.make_tutorials FOLDER``.

FOLDER is all-MiniLM-L6-v2's, as docs/tutorials/search.md has it. Sizes and times are those of docs/explanation/speed.md.
"""

from __future__ import annotations

import re
import sys
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import fastlayers as fl

from ._svg import bar, document, heat_map, line, text

HERE = Path(__file__).parent / "tutorials"
WIDTH, LEFT = 380, 8


def columns(tops: np.ndarray, heights: np.ndarray, across: float, colour: str) -> str:
    """Thin columns next to each other, as one shape."""
    wide = f"{across * 0.8:.2f}"
    drawn = (
        f"M{LEFT + i * across:.1f} {y:.1f}h{wide}v{h:.1f}h-{wide}z" for i, (y, h) in enumerate(zip(tops, heights, strict=True))
    )
    return f"<path class='fl-{colour}' d='{''.join(drawn)}'/>"


def speech() -> str:
    """The loudness of the recording, and below it the probability of each frame."""
    with wave.open(fl.example("speech")) as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16) / 32768
    found = [p.item() for p in fl.load(fl.example("silero_vad")).stream(size=512, overlap=64)(sound.astype(np.float32), 16000)]
    across = (WIDTH - 2 * LEFT) / len(found)
    loud = np.array([np.abs(part).max() for part in np.array_split(sound, len(found))])
    parts = [text(LEFT, 18, "the recording", 12)]
    heights = 60 * loud / loud.max() + 1
    parts.append(columns(55 - heights / 2, heights, across, "soft"))
    parts.append(text(LEFT, 108, "probability of speech", 12))
    heights = 60 * np.array(found) + 0.5
    parts.append(columns(175 - heights, heights, across, "ours"))
    parts.append(line(LEFT, 145, WIDTH - LEFT, 145))
    for second in range(int(len(sound) / 16000) + 1):
        parts.append(text(LEFT + second / 0.032 * across, 192, f"{second} s", 11, "middle" if second else "start"))
    return document(parts, WIDTH, 200)


def search(folder: str, sentences: Sequence[str]) -> str:
    """Similarities of all sentences with each other."""
    encoder = fl.text.Encoder(folder)
    vectors = encoder.encode(list(sentences))
    short = [re.sub(r"^(\w+ \w+).*", r"\1 ...", sentence) for sentence in sentences]
    svg, width, height = heat_map(np.clip(encoder.similarity(vectors, vectors), 0, 1), short, short, "", 4, -16, cell=30)
    return document([svg], max(width, 370), height - 10)


def bars(title: str, groups: Mapping[str, Mapping[str, float]], unit: str, colours: Mapping[str, str]) -> str:
    """Values as bars with their names, in groups."""
    most = max(value for group in groups.values() for value in group.values())
    parts, y = [text(LEFT, 18, title, 13)], 30
    for name, group in groups.items():
        if name:
            parts.append(text(LEFT, y + 13, name, 12))
            y += 20
        for label, value in group.items():
            width = 190 * value / most
            parts.append(text(LEFT, y + 12, label, 12))
            parts.append(bar(LEFT + 95, y, max(width, 1), 15, colours[label]))
            parts.append(text(LEFT + 100 + width, y + 12, f"{value:g} {unit}", 12))
            y += 20
        y += 6
    return document(parts, WIDTH, y)


def main(folder: str) -> None:
    page = (HERE / "search.md").read_text(encoding="utf-8")
    sentences = re.findall(r'^    "(.*)",$', page, flags=re.MULTILINE)
    (HERE / "speech.svg").write_text(speech(), encoding="utf-8")
    (HERE / "search.svg").write_text(search(folder, sentences), encoding="utf-8")
    sizes = {"": {"fastlayers": 68, "onnxruntime": 129, "XGBoost": 392}}
    colours = {"fastlayers": "ours", "onnxruntime": "second", "XGBoost": "third"}
    title = "The function unpacked; AWS Lambda allows 250 MB"
    (HERE / "function.svg").write_text(bars(title, sizes, "MB", colours), encoding="utf-8")
    waits = {
        f"{n} thread{'s' * (n > 1)}": {"fastlayers": ours, "onnxruntime": theirs}
        for n, ours, theirs in ((1, 0.11, 0.29), (8, 5.1, 24), (32, 12, 58))
    }
    title = "silero-vad: 99 of 100 calls take at most"
    (HERE / "load.svg").write_text(bars(title, waits, "ms", colours), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
