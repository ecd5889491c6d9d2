"""Segments from probabilities, and the lines that draw them."""

from __future__ import annotations

import numpy as np
import pytest

from fastlayers.cli import _segments
from fastlayers.cli._draw import ASCII, BLOCKS, draw, printable
from fastlayers.cli._segments import Segment, find_segments

HIGH, MIDDLE, LOW = 0.9, 0.4, 0.1
PAD = 480  # 30 ms


def segments(*runs: tuple[float, int], threshold: float = 0.5, cut: int = 0) -> list[tuple[int, int]]:
    """Segments of runs of (probability, frames); the recording ends `cut` samples before its last frame does."""
    probabilities = [p for p, n in runs for _ in range(n)]
    length = len(probabilities) * 512 - cut
    return list(find_segments(probabilities, frame=512, rate=16000, length=length, threshold=threshold))


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], []),
        ([(LOW, 50)], []),
        ([(HIGH, 50)], [(0, 50 * 512)]),
        ([(LOW, 10), (HIGH, 20), (LOW, 10)], [(10 * 512 - PAD, 30 * 512 + PAD)]),
        ([(MIDDLE, 10), (HIGH, 20), (MIDDLE, 10)], [(10 * 512 - PAD, 40 * 512)]),  # the middle ends nothing, and begins nothing
        ([(LOW, 10), (HIGH, 7), (LOW, 10)], []),  # 224 ms
        ([(LOW, 10), (HIGH, 8), (LOW, 10)], [(10 * 512 - PAD, 18 * 512 + PAD)]),  # 256 ms
        ([(HIGH, 10), (LOW, 4), (HIGH, 10)], [(0, 24 * 512)]),  # seen as low for 96 ms when it comes back
        ([(HIGH, 10), (LOW, 5), (HIGH, 10)], [(0, 10 * 512 + PAD), (15 * 512 - PAD, 25 * 512)]),
        ([(HIGH, 10), (LOW, 1), (MIDDLE, 4), (HIGH, 10)], [(0, 10 * 512 + PAD), (15 * 512 - PAD, 25 * 512)]),
        ([(HIGH, 10), (LOW, 2)], [(0, 10 * 512 + PAD)]),  # the silence is too short to end it, the recording does
    ],
)
def test_segments(runs: list[tuple[float, int]], expected: list[tuple[int, int]]) -> None:
    assert segments(*runs) == expected


def test_no_segment_goes_beyond_the_recording() -> None:
    assert segments((HIGH, 20), cut=500) == [(0, 20 * 512 - 500)]
    assert segments((HIGH, 19), (LOW, 1), cut=300) == [(0, 20 * 512 - 300)]


def test_padding_keeps_neighbours_apart() -> None:
    assert 2 * _segments.PADDING < _segments.MIN_SILENCE
    found = find_segments([HIGH] * 100 + [LOW] * 30 + [HIGH] * 100, frame=64, rate=16000, length=230 * 64)
    assert found == (Segment(0, 100 * 64 + PAD), Segment(130 * 64 - PAD, 230 * 64))


def test_threshold() -> None:
    runs = ((LOW, 10), (0.6, 20), (LOW, 10))
    assert segments(*runs, threshold=0.7) == []
    assert segments(*runs, threshold=0.05) == [(0, 40 * 512)]


def recording() -> np.ndarray:
    """A second of silence, one that is 24 dB below the loudest, the loudest, one 60 dB below."""
    tone = np.sin(np.arange(16000, dtype=np.float32))
    return np.concatenate([0 * tone, 10 ** (-24 / 20) * tone, tone, 1e-3 * tone]).astype(np.float32)


def test_draw() -> None:
    level, marks = draw(recording(), [Segment(16000, 48000)], 8, "utf-8")
    assert level == "  ▄▄██▁▁"
    assert marks == "  ━━━━  "


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_draw_without_unicode(encoding: str) -> None:
    level, marks = draw(recording(), [Segment(16000, 48000)], 8, encoding)
    assert level == "  ;;##.."
    assert marks == "  ====  "


def test_symbols_fit() -> None:
    assert len(BLOCKS.steps) == len(ASCII.steps) == 9
    assert "".join(ASCII).isascii()


def test_draw_extremes() -> None:
    assert draw(np.zeros(100, np.float32), [], 10, "utf-8") == (" " * 10, " " * 10)
    assert draw(np.ones(3, np.float32), [Segment(0, 3)], 80, "utf-8") == ("███", "━━━")
    assert draw(np.ones(100, np.float32), [Segment(42, 43)], 1, "utf-8") == ("█", "━")
    marks = draw(np.ones(1000, np.float32), [Segment(512, 514)], 10, "utf-8")[1]
    assert marks == "     ━    "  # a segment much shorter than a column is still seen


def test_printable() -> None:
    assert printable("a ▁ \udcff", "ascii") == "a ? ?"
