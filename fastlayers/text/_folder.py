"""Opening a folder: its network, its tokenizer and its configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .._arguments import as_path
from ..errors import ArgumentError, DTypeError, UnsupportedError
from ..model.loading import load
from ..model.model import Model
from ._genai import Written, written
from ._settings import Settings, file_in, read_settings
from ._tokens import open_tokenizer

__all__ = ["Folder", "check_model"]

# Networks that exporters write next to, or instead of, weights.
ONNX = ("model.onnx", os.path.join("onnx", "model.onnx"))
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


class Folder:
    """A folder of a network and its tokenizer.

    Args:
        path: the folder.
        what: the name of who opens it, for errors.
        model: the network, where another one than the folder's own is to run.
        below: where the network is in the folder.
        options: of `load`, for the folder's own network.
    """

    # How a file that has no modules says that vectors of texts are made.
    pooling: str | None = None

    def __init__(
        self, path: Any, what: str, model: Model | None, below: str = "", options: Mapping[str, Any] | None = None
    ) -> None:
        self.what, self.path = what, as_path(what, path)
        if not os.path.isdir(self.path):
            from ..formats.elsewhere import at_nothing

            told = at_nothing(self.path)
            raise ArgumentError(f"{what}: {self.path!r}: expected a folder with config.json, or a GGUF file{told}")
        check_model(what, model)
        self.inner = os.path.join(self.path, below) if below else self.path
        genai = written(self.inner, what)
        self.config = read_settings(self.inner, "config.json", what) if genai is None else genai.config
        self.words = read_settings(self.inner, "tokenizer_config.json", what)
        self.model = _network(self.inner, genai, options or {}) if model is None else model

    def settings(self, name: str) -> Settings:
        """A JSON file of the folder."""
        return read_settings(self.path, name, self.what)

    def tokenizer(self, cut: bool = True) -> Any:
        """The tokenizer, which truncates as the folder says if `cut`."""
        more = read_settings(self.inner, "sentence_bert_config.json", self.what)
        most = more.size("max_seq_length") or self.longest() if cut else None
        return open_tokenizer(self.inner, self.what, most, more.get("do_lower_case", bool, False))

    def longest(self) -> int | None:
        """The most tokens of a text, by tokenizer and network; None if neither has a limit."""
        limits = (self.words.size("model_max_length"), _positions(self.config))
        return min((limit for limit in limits if limit is not None), default=None)


def check_model(what: str, model: Any) -> None:
    """Raises unless it is a model, or None."""
    if model is not None and not isinstance(model, Model):
        raise DTypeError(f"{what}: model is of type {type(model).__name__}: expected a Model, as fl.load returns")


def _positions(config: Settings) -> int | None:
    """Positions that a network has; XLNet's -1 means any."""
    return None if config.values.get("max_position_embeddings") == -1 else config.size("max_position_embeddings")


def _network(folder: str, genai: Written | None, options: Mapping[str, Any]) -> Model:
    """The network of a folder: of its weights where their family is known, else of the ONNX file that it has."""
    if genai is not None:
        return load(os.path.join(folder, genai.network), **options)
    exported = next((path for path in (file_in(folder, name) for name in ONNX) if path is not None), None)
    if any(file_in(folder, name) for name in _WEIGHTS) or exported is None:
        try:
            return load(folder, **options)
        except (UnsupportedError, IsADirectoryError):
            if exported is None:
                raise
    return load(exported, **options)
