"""One thing compared with another, in one process, alternating: another engine, variant, model or function."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._extras import install
from .._tuples import NamedTuple
from ..errors import ArgumentError, MissingExtraError
from .timing import Times, Watch, take_turns, times_of

__all__ = ["Verdict", "beside", "session"]

LEAST_ROUNDS, MOST_ROUNDS = 9, 200
GROUPS = 3  # that must all agree


class Verdict(NamedTuple):
    """Outcome of measuring in turns. `ratio` is ours over theirs, the median of those of single turns: 1.2 is 20 % slower;
    `ratios` are those of thirds of the time.
    """

    ours: Times
    theirs: Times
    ratio: float
    ratios: tuple[float, ...]

    def slower(self, worse: float = 0.25) -> bool:
        """Whether ours is more than a share slower, by each third of the turns and by the fastest calls too. What else the
        machine did for a part of the time cannot make it so.
        """
        return min(*self.ratios, self.ours.best / self.theirs.best) > 1.0 + worse

    def sure(self, worse: float = 0.25) -> bool:
        """Whether all of them say the same."""
        found = {ratio > 1.0 + worse for ratio in (*self.ratios, self.ours.best / self.theirs.best)}
        return len(found) == 1

    def __str__(self) -> str:
        low, high = min(self.ratios), max(self.ratios)
        word, times = ("fast", 1 / self.ratio) if self.ratio <= 1.0 else ("slow", self.ratio)
        return f"{times:.2f} times as {word} ({low:.2f} to {high:.2f} of the time)"


def beside(ours: Callable[[], Any], theirs: Callable[[], Any], seconds: float = 2.0) -> Verdict:
    """Times two calls in turns of about equal length.

    Args:
        ours: what is judged.
        theirs: what it is compared with.
        seconds: how long, about.
    """
    for call in (ours, theirs):
        call()
    with Watch() as both:
        ours()
        theirs()
    pair = max(both.last, 1e-6)
    # Short turns, so that a change of the machine's pace falls upon both of a pair.
    burst = 0.0 if pair > 0.01 else 0.004
    rounds = int(min(max(seconds / max(pair, 2 * burst), LEAST_ROUNDS), MOST_ROUNDS))
    made: list[dict[str, Times]] = []
    for turn in range(rounds):
        order = {"ours": ours, "theirs": theirs} if turn % 2 == 0 else {"theirs": theirs, "ours": ours}
        made.append(take_turns(order, 1, burst))
    ratios = [times["ours"].best / times["theirs"].best for times in made]
    size = len(ratios) // GROUPS
    thirds = tuple(statistics.median(ratios[i * size : (i + 1) * size]) for i in range(GROUPS))
    ours_, theirs_ = (times_of([s for times in made for s in times[name].samples]) for name in ("ours", "theirs"))
    return Verdict(ours_, theirs_, statistics.median(ratios), thirds)


def session(path: str | os.PathLike[str], feeds: Mapping[str, np.ndarray], threads: int = 1) -> Callable[[], Any]:
    """A call of ONNX Runtime on the same file and arrays.

    Raises:
        MissingExtraError: it is not installed.
        ArgumentError: it cannot read the file.
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError(f"beside: onnxruntime is not installed: {install('compare')}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    try:
        made = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ArgumentError(f"beside: onnxruntime cannot load {os.fspath(path)!r}: {error}") from None
    given = dict(feeds)
    return lambda: made.run(None, given)
