"""Files that come with the package, to try it on: a small trained network and a recording that it understands."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from importlib.resources import as_file, files

from ._arguments import shown
from .errors import ArgumentError

__all__ = ["FILES", "example"]

FILES = {"silero_vad": "silero_vad_16k.safetensors", "speech": "speech_16k.wav"}
_unpacked = ExitStack()  # holds what had to be copied out of a zip; nothing, where the package is a folder
atexit.register(_unpacked.close)


def example(name: str) -> str:
    """The path of a file that comes with the package.

    >>> import fastlayers as fl
    >>> fl.load(fl.example("silero_vad")).inputs.names
    ['input', 'state', 'sr']

    Args:
        name: "silero_vad", a network that finds speech at 16 kHz (`load` takes it), or "speech", seven seconds of it as a
            WAV file. The network has the layers of silero-vad's ``silero_vad.onnx`` and other weights, which silero-vad
            publishes as safetensors: its probabilities differ, and ``sr`` must be 16000. Their licences are in the folder
            ``fastlayers/data``.

    Raises:
        ArgumentError: there is no file of that name.
    """
    chosen = FILES.get(name) if isinstance(name, str) else None
    if chosen is None:
        raise ArgumentError(f"example: name is {shown(name)}: expected one of {', '.join(map(repr, FILES))}")
    return str(_unpacked.enter_context(as_file(files("fastlayers") / "data" / chosen)))
