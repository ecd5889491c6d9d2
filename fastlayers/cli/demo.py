"""``fastlayers demo``: the speech in a recording, how fast it was found, and by which kernels."""

from __future__ import annotations

import shutil
from time import perf_counter
from typing import Any, TextIO

import numpy as np

import fastlayers as fl

from ..errors import FormatError, UnsupportedError
from . import vad
from ._draw import draw, printable
from ._model import tell
from ._segments import Segment, find_segments
from ._wav import Recording, read_wav

__all__ = ["load_network", "load_recording", "probabilities", "run"]


def run(file: str | None, threshold: float, out: TextIO, model: str | None = None, as_json: bool = False) -> int:
    """Prints the segments of speech in `file`, or in the packaged recording; returns the exit code.

    `model` is silero-vad's ONNX file, which then does the work instead of the packaged network; their weights differ.
    """
    samples = load_recording(file)
    before = fl.get_num_threads()
    fl.set_num_threads(1)  # a frame is too little work for two, and the figure below is for one
    try:
        found, seconds = probabilities(vad.Exported(model or fl.example("silero_vad")), samples)
    finally:
        fl.set_num_threads(before)
    segments = find_segments(found, frame=vad.FRAME, rate=vad.RATE, length=len(samples), threshold=threshold)
    if as_json:
        spans = [{"start": s.start / vad.RATE, "end": s.end / vad.RATE} for s in segments]
        per = seconds / len(found)
        tell(out, {"speech": spans, "frames": len(found), "seconds_a_frame": per, "variant": fl.kernels.current()})
        return 0
    encoding = out.encoding or "ascii"
    lines = _report(file, samples, found, segments, seconds, encoding)
    out.writelines(printable(line, encoding).rstrip() + "\n" for line in lines)
    return 0


def load_network() -> vad.VoiceActivity:
    """The network of layers with the packaged weights."""
    net = vad.VoiceActivity()
    weights = fl.load_weights(fl.example("silero_vad"))  # next to them are the small constants of the file's graph
    net.load_state_dict({name: weights[name] for name in net.tensor_shapes()})
    return net


def load_recording(file: str | None = None) -> np.ndarray:
    """The samples (n,) of a 16 kHz mono WAV file, or of the packaged one."""
    file = fl.example("speech") if file is None else file
    return _mono(file, read_wav(file))


def probabilities(net: vad.VoiceActivity | vad.Exported, samples: np.ndarray) -> tuple[list[float], float]:
    """The probability of speech in every frame, and the seconds that the network took for all of them."""
    found: list[float] = []
    state: Any = net.initial()
    net(np.zeros((1, vad.CONTEXT + vad.FRAME), np.float32), state)  # packs the weights
    start = perf_counter()
    for window in vad.windows(samples):
        probability, state = net(window, state)
        found.append(probability.item())
    return found, perf_counter() - start


def _mono(name: str, recording: Recording) -> np.ndarray:
    samples, rate = recording
    if rate != vad.RATE or samples.shape[1] != 1:
        raise UnsupportedError(
            f"{name}: {samples.shape[1]} channel(s) at {rate} Hz, expected 1 channel at {vad.RATE} Hz; "
            f"`ffmpeg -i IN -ac 1 -ar {vad.RATE} OUT.wav` converts"
        )
    if not len(samples):
        raise FormatError(f"{name}: the recording has no samples")
    return np.ascontiguousarray(samples[:, 0])


def _report(
    file: str | None, samples: np.ndarray, found: list[float], segments: tuple[Segment, ...], seconds: float, encoding: str
) -> list[str]:
    duration = len(samples) / vad.RATE
    # One column less than the terminal has: some consoles break a line that fills the last one.
    width = max(shutil.get_terminal_size().columns - 1, 8)
    name = file if file is not None else "the packaged recording (LibriVox, Sense and Sensibility)"
    lines = [f"{name}: {duration:.2f} s", *draw(samples, segments, width, encoding)]
    lines += [f"speech  {s.start / vad.RATE:8.2f} s to {s.end / vad.RATE:8.2f} s" for s in segments] or ["no speech found"]
    frame_us = seconds / len(found) * 1e6
    lines.append(
        f"{duration / seconds:.0f} times faster than real time: {len(found)} frames of {vad.FRAME * 1000 // vad.RATE} ms in "
        f"{seconds * 1e3:.1f} ms, {frame_us:.0f} us a frame, one thread"
    )
    return [*lines, f"variant={fl.kernels.current()}"]
