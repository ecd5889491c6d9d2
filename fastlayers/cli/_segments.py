"""From probabilities, one per frame, to segments of speech. Knows neither the network nor how segments are shown."""

from __future__ import annotations

from collections.abc import Sequence

from .._tuples import NamedTuple

__all__ = ["Segment", "find_segments"]

# In seconds, except HYSTERESIS, which is a difference of probabilities. The values are those that silero-vad's users know.
HYSTERESIS = 0.15  # speech goes on until the probability falls this far below the threshold that began it
MIN_SPEECH = 0.25  # shorter speech is taken for a noise
MIN_SILENCE = 0.1  # a shorter pause does not end a segment
PADDING = 0.03  # added at both ends, so that soft onsets are not cut


class Segment(NamedTuple):
    """Speech from `start` to `end`, in samples; the end is the first sample that is no speech."""

    start: int
    end: int


def find_segments(
    probabilities: Sequence[float], *, frame: int, rate: int, length: int, threshold: float = 0.5
) -> tuple[Segment, ...]:
    """Segments of speech, in order and disjoint.

    Args:
        probabilities: of speech, one for each `frame` samples.
        frame: samples in a frame.
        rate: samples a second.
        length: samples in the recording; no segment goes beyond it.
        threshold: a segment begins where a probability reaches it; one that is open ends where the probability falls below
            `threshold` - 0.15 and does not come back to `threshold` within 100 ms.
    """
    padding = round(PADDING * rate)  # neighbours stay apart: a pause is longer than two paddings
    return tuple(
        Segment(max(s.start - padding, 0), min(s.end + padding, length))
        for s in _raw(probabilities, frame, length, MIN_SILENCE * rate, threshold)
        if s.end - s.start >= MIN_SPEECH * rate  # before padding, which would lengthen it
    )


def _raw(probabilities: Sequence[float], frame: int, length: int, min_silence: float, threshold: float) -> list[Segment]:
    low = max(threshold - HYSTERESIS, 0.01)
    found: list[Segment] = []
    start = quiet = -1  # first sample of the open segment, and of the silence that may end it
    for index, probability in enumerate(probabilities):
        now = index * frame
        if probability >= threshold:
            start, quiet = (now if start < 0 else start), -1
        elif start >= 0 and (quiet >= 0 or probability < low):
            quiet = now if quiet < 0 else quiet
            if now - quiet >= min_silence:
                found.append(Segment(start, quiet))
                start = quiet = -1
    if start >= 0:
        found.append(Segment(start, quiet if quiet >= 0 else length))
    return found
