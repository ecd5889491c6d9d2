"""A GGUF file as a folder: its network, its tokenizer, and its metadata as transformers' words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._arguments import as_path
from .._lazy import imported
from ..errors import UnsupportedError
from ..formats.gguf import metadata
from ..model.loading import load
from ..model.model import Model
from ._folder import Folder, check_model
from ._settings import Settings
from ._tokens import Missing, Tokenizer, package

__all__ = ["File"]

_POOLING = {1: "mean", 2: "cls", 3: "lasttoken"}


class File(Folder):
    """A GGUF file, with the network's configuration and the tokenizer's in transformers' words. Arguments as for `Folder`."""

    def __init__(self, path: Any, what: str, model: Model | None, options: Mapping[str, Any] | None = None) -> None:
        self.what, self.path = what, as_path(what, path)
        self.inner = self.path
        check_model(what, model)
        self._given = metadata(self.path)
        self.model = load(self.path, **options or {}) if model is None else model
        get = self._given.get
        arch = get("general.architecture")
        ends = [get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
        self.config = Settings(f"{what}: {self.path}", {
            "max_position_embeddings": get(f"{arch}.context_length"), "eos_token_id": [i for i in ends if i is not None] or None,
        })  # fmt: skip
        tokens = get("tokenizer.ggml.tokens") or []
        roles = {"bos": "bos", "eos": "eos", "unk": "unknown", "sep": "seperator", "pad": "padding", "cls": "cls", "mask": "mask"}
        ids = {role: get(f"tokenizer.ggml.{name}_token_id") for role, name in roles.items()}
        named = {f"{role}_token": tokens[i] for role, i in ids.items() if type(i) is int and 0 <= i < len(tokens)}
        self.words = Settings(f"{what}: {self.path}", {"chat_template": get("tokenizer.chat_template"), **named})
        pooling = get(f"{arch}.pooling_type")
        self.pooling = _POOLING.get(pooling, "mean") if type(pooling) is int else "mean"

    def settings(self, name: str) -> Settings:
        """No file of that name: an object without values."""
        return Settings(f"{self.what}: {self.path}: {name}", {})

    def tokenizer(self, cut: bool = True) -> Any:
        """The tokenizer of the file's vocabulary."""
        where = f"{self.what}: {self.path}: vocabulary"
        found = package(where)
        if isinstance(found, Missing):
            return found
        try:
            made = imported(f"{__package__}._vocabulary").vocabulary(self._given, where)
            return Tokenizer(made, where, self.longest() if cut else None)
        except UnsupportedError as error:  # ids go in and come out nevertheless
            return Missing(error)
