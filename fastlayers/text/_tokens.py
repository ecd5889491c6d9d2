"""Texts as ids of tokens, and back: the package tokenizers, which reads the ``tokenizer.json`` of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._extras import install
from .._lazy import imported
from .._tuples import NamedTuple
from ..errors import Error, FormatError, MissingExtraError
from ..formats.source import quote
from ._settings import Settings, file_in, read_bytes, read_settings

__all__ = ["Missing", "Tokenizer", "Tokens", "open_tokenizer", "ours", "package", "special_tokens"]

MOST = 256 << 20  # bytes of tokenizer.json: those of 260,000 tokens have 35 MB
_AT_ONCE = 64  # texts: what the package makes of each takes a hundred bytes a token, and as much for what is cut off
_SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class Tokens(NamedTuple):
    """Tokens of one text, or of a pair: ids and which text each is of (int32); where each is in the text, and which are special,
    if that was asked for."""

    ids: np.ndarray
    types: np.ndarray
    offsets: Sequence[tuple[int, int]] = ()
    special: Sequence[int] = ()


@contextmanager
def ours(where: str) -> Iterator[None]:
    """Meanwhile errors of tokenizers, which has no classes for them, are ours; it also raises panics, which are no Exception."""
    try:
        yield
    except Error:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise FormatError(f"{where}: {type(error).__name__}: {str(error)[:200]!a}") from None


class Tokenizer:
    """A tokenizer with the folder's settings. May be used by any number of threads at once: nothing in it changes.

    Args:
        made: a Tokenizer of the package tokenizers.
        where: beginning of errors.
        most: tokens that a text, or a pair, is truncated to; None: never.
        lower: whether texts are in lower case first.
    """

    def __init__(self, made: Any, where: str, most: int | None = None, lower: bool = False) -> None:
        self.where, self.lower = where, lower
        with ours(where):
            made.no_padding()
            if most is None:
                made.no_truncation()
            else:
                made.enable_truncation(most, strategy="longest_first")
            self._made = made
            self.special = {token.content: i for i, token in made.get_added_tokens_decoder().items() if token.special}

    def encode(self, texts: Sequence[Any], special: bool = True, places: bool = False) -> list[Tokens]:
        """Tokens of texts, or of pairs of them, with special ones around them; and their places in the text if wanted."""
        if self.lower:
            texts = [text.lower() if isinstance(text, str) else tuple(part.lower() for part in text) for text in texts]
        with ours(f"{self.where}: tokenizing"):
            found: list[Tokens] = []
            for i in range(0, len(texts), _AT_ONCE):
                for e in self._made.encode_batch(list(texts[i : i + _AT_ONCE]), add_special_tokens=special):
                    more = (e.offsets, e.special_tokens_mask) if places else ()
                    found.append(Tokens(np.array(e.ids, np.int32), np.array(e.type_ids, np.int32), *more))
            return found

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        """The text of ids."""
        with ours(f"{self.where}: decoding"):
            return str(self._made.decode([int(i) for i in ids], skip_special_tokens=skip_special))


class Missing:
    """In place of a tokenizer that is not there: every use raises the error that says why."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.special: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        raise self._error


def package(where: str) -> Any:
    """The package tokenizers, or a `Missing` where it is not installed."""
    try:
        return imported("tokenizers")
    except ImportError:
        return Missing(MissingExtraError(f"{where}: needs tokenizers, which is not installed: {install('text')}"))


def open_tokenizer(folder: str, what: str, most: int | None, lower: bool) -> Any:
    """The tokenizer of a folder, or a `Missing` where there is none, or no package that reads it."""
    path = file_in(folder, "tokenizer.json")
    where = f"{what}: {os.path.join(folder, 'tokenizer.json')}"
    if path is None:
        return Missing(FormatError(f"{where}: is not there: texts need it; ids of tokens can be passed without"))
    found = package(where)
    if isinstance(found, Missing):
        return found
    content = read_bytes(path, what, MOST)
    with ours(where):
        made = found.Tokenizer.from_str(content.decode("utf-8"))
    return Tokenizer(made, where, most, lower)


def special_tokens(settings: Settings, folder: str, what: str) -> dict[str, str]:
    """Special tokens by their roles (``bos_token``, ...), as tokenizer_config.json or special_tokens_map.json has them."""
    found: dict[str, str] = {}
    for source in (read_settings(folder, "special_tokens_map.json", what), settings):
        for name in _SPECIAL:
            value = source.values.get(name)
            if isinstance(value, dict):
                value = value.get("content")
            if value is None:
                continue
            if not isinstance(value, str):
                raise FormatError(f"{source.where}: {name} is {quote(value)}: expected a text")
            found[name] = value
    return found
