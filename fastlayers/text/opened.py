"""Opening a folder or a GGUF file whose kind is not told: its network decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arguments import as_path
from ..errors import UnsupportedError
from ..model.model import Model
from ._classifier import Classifier
from ._cross_encoder import CrossEncoder
from ._encoder import Encoder
from ._generator import Generator
from ._open import open_folder
from ._pooling import read_modules
from ._tokens import Tokens

__all__ = ["network", "opened", "pack"]


def network(path: Any, **options: str) -> Model:
    """The network of a folder or a GGUF file, loaded with these options of `load`: what the classes take as `model`."""
    name = as_path("load", path)
    return open_folder(name, "load", None, read_modules(name, "load")[0], options).model


def opened(
    path: Any, cache_bytes: int | None = None, batch_size: int = 16, **options: str
) -> tuple[Encoder | CrossEncoder | Classifier | Generator | str, Model]:
    """A `Generator` of a network with a cache, a `CrossEncoder` of one with a score, a `Classifier` of one with other logits, an
    `Encoder` of any other, and of every folder with modules after the network; or why it is none of them; and the network.

    Raises:
        FormatError, UnsupportedError, ArgumentError: as `fastlayers.load` and these classes do.
    """
    what = "open"
    name = as_path(what, path)
    below, modules = read_modules(name, what)
    model = open_folder(name, what, None, below, options).model
    if any(name.startswith("past_key_values.") for name in model.inputs.names):
        kind: Any = Generator
    elif "logits" not in model.outputs.names or modules:
        kind = Encoder
    else:
        shape: Any = model.outputs["logits"].shape or ()
        kind = CrossEncoder if len(shape) == 2 and shape[1] == 1 else Classifier
    try:
        own = {"cache_bytes": cache_bytes, "batch_size": batch_size} if kind is Generator else {}
        found = kind(name, model=model, **own)
        return found, found.model
    except UnsupportedError as error:
        return str(error), model


def pack(text: Encoder | CrossEncoder | Classifier | Generator) -> None:
    """Packs the weights, which its first use would do: one token runs, and another one after it where there is a cache."""
    if isinstance(text, Generator):
        text.generate([0], 2, ignore_eos=True)
    else:
        text._network.run([Tokens(np.zeros(1, np.int32), np.zeros(1, np.int32))], [0])
