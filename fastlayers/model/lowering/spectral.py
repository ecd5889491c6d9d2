"""Fourier transforms and spectrograms: ONNX's DFT and STFT, and OverlapAdd for the way back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...functional._short_time import Frames, frames_of, whole_window
from ...functional._spectral import scale_of
from ...functional.spectral import transform_axis
from ...graph.ir import Node
from ._base import LOWER, Lowering, rule


def _transform(s: Lowering, node: Node, x: str) -> None:
    name, get = node.op, node.attributes
    at = transform_axis(name, s.shapes[node.inputs[0] or ""], get["dim"])
    points = None if get["n"] is None else _count(s, get["n"])
    inverse, half = name in ("ifft", "irfft"), "rfft" in name
    if name == "rfft":
        x = s.add("Unsqueeze", (x, s.ints(-1)), s.name("reals"))
    wide = s.name("reals") if name == "irfft" else node.outputs
    parts = {} if half else {"parts": 2}
    made = s.add("DFT", (x, points, _count(s, at)), wide, inverse=int(inverse), onesided=int(half), norm=get["norm"], **parts)
    if name == "irfft":
        s.add("Squeeze", (made, s.ints(-1)), node.outputs)


def _count(s: Lowering, value: int) -> str:
    """A constant integer."""
    name = s.name("count")
    s.constants[name] = np.array(value, np.int64)
    return name


for _name in ("fft", "ifft", "rfft", "irfft"):
    LOWER[_name] = _transform


def _frames(node: Node) -> Frames:
    get = node.attributes
    names = ("n_fft", "hop_length", "win_length", "center", "pad_mode", "normalized", "onesided")
    return frames_of(node.op, *(get.get(name, "reflect") for name in names))


def _window(s: Lowering, node: Node, f: Frames, window: str | None) -> str | None:
    """The window of a whole transform; one that is shorter and comes when the model runs gets its zeros then."""
    if window is None or window in s.constants:
        whole = whole_window(node.op, f, None if window is None else s.constants[window])
        if whole is None:
            return None
        name = s.name("window")
        s.constants[name] = whole
        return name
    if f.win == f.n_fft:
        return window
    before = (f.n_fft - f.win) // 2
    return s.add("Pad", (window, s.ints(before, f.n_fft - f.win - before), s.scalar(0.0)), s.name("window"))


def _stft_of(s: Lowering, node: Node, f: Frames, x: str, window: str | None) -> tuple[str, bool]:
    """(n, frames, frequencies, 2), and whether x had no batch."""
    alone = s.rank(node) == 1
    if alone:
        x = s.add("Unsqueeze", (x, s.ints(0)), s.name("batch"))
    if f.around:
        mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[f.pad_mode]
        x = s.add("Pad", (x, s.ints(0, f.around, 0, f.around), s.scalar(0.0)), s.name("padded"), mode=mode)
    inputs = (x, _count(s, f.hop), _window(s, node, f, window), _count(s, f.n_fft))
    made = s.add("STFT", inputs, s.name("stft"), onesided=int(f.onesided))
    if f.normalized:
        made = s.add("Mul", (made, s.scalar(scale_of("ortho", False, f.n_fft))), s.name("stft"))
    return made, alone


def _turned(s: Lowering, node: Node, made: str, alone: bool, rank: int) -> None:
    """Frequencies before frames, and no batch where x had none."""
    out: Any = s.name("turned") if alone else node.outputs
    turned = s.add("Transpose", (made,), out, perm=(0, 2, 1, 3)[:rank])
    if alone:
        s.add("Squeeze", (turned, s.ints(0)), node.outputs)


@rule
def _stft(s: Lowering, node: Node, x: str, window: str | None) -> None:
    made, alone = _stft_of(s, node, _frames(node), x, window)
    _turned(s, node, made, alone, 4)


@rule
def _spectrogram(s: Lowering, node: Node, x: str, window: str | None) -> None:
    made, alone = _stft_of(s, node, _frames(node), x, window)
    made = s.add("ReduceSumSquare", (made, s.ints(-1)), s.name("power"), keepdims=0)
    if node.attributes["power"] == 1:
        made = s.add("Sqrt", (made,), s.name("magnitude"))
    _turned(s, node, made, alone, 3)


@rule
def _istft(s: Lowering, node: Node, x: str, window: str | None) -> None:
    f, alone = _frames(node), s.rank(node) == 3
    if alone:
        x = s.add("Unsqueeze", (x, s.ints(0)), s.name("batch"))
    x = s.add("Transpose", (x,), s.name("frames"), perm=(0, 2, 1, 3))
    norm = "ortho" if f.normalized else "backward"
    points, at = _count(s, f.n_fft), _count(s, 2)
    reals = s.add("DFT", (x, points, at), s.name("reals"), inverse=1, onesided=1, norm=norm, bins=f.bins)
    pieces = s.add("Squeeze", (reals, s.ints(-1)), s.name("pieces"))
    out: Any = s.name("signal") if alone else node.outputs
    places = {"step": f.hop, "offset": f.around}
    if node.attributes["length"] is not None:
        places["length"] = node.attributes["length"]
    made = s.add("OverlapAdd", (pieces, _window(s, node, f, window)), out, **places)
    if alone:
        s.add("Squeeze", (made, s.ints(0)), node.outputs)
