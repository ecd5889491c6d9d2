"""Text in, vectors, scores, labels or text out: networks with their tokenizers, from folders of transformers.

Needs the extra ``text`` (tokenizers, jinja2) for texts; without it, ids go in and come out.
"""

from typing import TYPE_CHECKING

from .._lazy import exports

if TYPE_CHECKING:
    from ._classifier import Classifier
    from ._cross_encoder import CrossEncoder
    from ._encoder import Encoder
    from ._generator import Generation, Generator
else:
    _HOMES = {"_classifier": "Classifier", "_cross_encoder": "CrossEncoder", "_encoder": "Encoder",
              "_generator": "Generation Generator"}  # fmt: skip
    __getattr__, __dir__ = exports(__name__, _HOMES)

__all__ = ["Classifier", "CrossEncoder", "Encoder", "Generation", "Generator"]
