"""Vocabularies of GGUF as tokenizers of the package tokenizers. Imported where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from ..errors import FormatError, UnsupportedError
from ..formats.source import quote
from ._tokens import ours

__all__ = ["vocabulary"]

# How texts are cut before pairs of bytes are joined, by `tokenizer.ggml.pre`; "" is a file that does not say.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_CUTS: dict[str, tuple[str, ...]] = {
    "": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
    **dict.fromkeys(("gpt-2", "gpt-neox", "mpt", "olmo", "phi-2", "jina-v1-en", "roberta-bpe"), (_GPT2,)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), (r"\p{N}", _GPT2)),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "dbrx", "smaug-bpe", "falcon3"), (_LLAMA3.format(digits="{1,3}"),)),
    **dict.fromkeys(("qwen2", "stablelm2", "deepseek-r1-qwen"), (_LLAMA3.format(digits=""),)),
}
_WHOLE_WORDS = frozenset({"llama-bpe", "llama3", "llama-v3", "falcon3"})  # a word that is a token is not made of pairs
_SPACE = "▁"
# token_type
_UNKNOWN, _CONTROL, _USER, _BYTE = 2, 3, 4, 6


def vocabulary(given: Mapping[str, Any], where: str) -> Any:
    """The tokenizer of the package tokenizers that does what the metadata of a GGUF file says.

    Raises:
        UnsupportedError: its kind, or how it cuts texts, is not known.
        FormatError: it is broken.
    """
    kind = given.get("tokenizer.ggml.model")
    makes = {"gpt2": _byte_pairs, "llama": _pieces, "t5": _unigram, "bert": _word_pieces}
    if kind not in makes:
        raise UnsupportedError(f"{where}: tokenizer.ggml.model is {quote(kind)}: supported are {', '.join(makes)}")
    tokens = given.get("tokenizer.ggml.tokens")
    types = given.get("tokenizer.ggml.token_type", np.ones(len(tokens) if isinstance(tokens, list) else 0, np.int32))
    if not isinstance(tokens, list) or not all(isinstance(t, str) for t in tokens) or np.shape(types) != (len(tokens),):
        raise FormatError(f"{where}: expected tokenizer.ggml.tokens, and as many types of them")
    with ours(where):
        made = makes[kind](given, tokens, types, where)
        for control in (True, False):
            which = np.flatnonzero(np.isin(types, (_UNKNOWN, _CONTROL)) if control else types == _USER)
            added = [AddedToken(tokens[i], normalized=False, special=control) for i in which]
            (made.add_special_tokens if control else made.add_tokens)(added)
        around = _around(given, kind, len(tokens), where)
        if any(i is not None for i in around):
            first, last = ([] if i is None else [tokens[i]] for i in around)
            pair = [*first, "$A", *last, *(first if kind != "bert" else []), "$B:1", *(f"{t}:1" for t in last)]
            special = [(tokens[i], i) for i in around if i is not None]
            made.post_processor = processors.TemplateProcessing([*first, "$A", *last], pair, list(dict.fromkeys(special)))
    return made


def _around(given: Mapping[str, Any], kind: str, count: int, where: str) -> tuple[int | None, int | None]:
    """The ids that are put before and after a text."""
    pre = given.get("tokenizer.ggml.pre")
    defaults = {"llama": (True, False), "t5": (False, True), "bert": (True, True)}.get(kind, (pre in _WHOLE_WORDS, False))
    names = ("cls", "seperator") if kind == "bert" else ("bos", "eos")
    found = []
    for name, flag, default in zip(names, ("bos", "eos"), defaults, strict=True):
        wanted = given.get(f"tokenizer.ggml.add_{flag}_token", default)
        i = given.get(f"tokenizer.ggml.{name}_token_id", given.get(f"tokenizer.ggml.{flag}_token_id"))
        if wanted and i is not None and not (type(i) is int and 0 <= i < count):
            raise FormatError(f"{where}: tokenizer.ggml.{name}_token_id is {quote(i)}: expected 0 to {count - 1}")
        found.append(i if wanted else None)
    return found[0], found[1]


def _byte_pairs(given: Mapping[str, Any], tokens: Sequence[str], types: Any, where: str) -> Any:
    """GPT-2's: texts are cut, their bytes are letters, and pairs are joined in the order of a list."""
    pre, merges = given.get("tokenizer.ggml.pre", ""), given.get("tokenizer.ggml.merges")
    cuts = _CUTS.get("" if pre == "default" else pre)
    if cuts is None:
        raise UnsupportedError(f"{where}: tokenizer.ggml.pre is {quote(pre)}: supported are {', '.join(filter(None, _CUTS))}")
    pairs = [(left, right) for left, _, right in (str(m).partition(" ") for m in merges)] if isinstance(merges, list) else []
    if not pairs or not all(right for _, right in pairs):
        raise FormatError(f"{where}: expected tokenizer.ggml.merges, pairs with a space between")
    made = Tokenizer(models.BPE(_by_id(tokens), pairs, ignore_merges=pre in _WHOLE_WORDS))
    if pre == "qwen2":
        made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence([
        *(pre_tokenizers.Split(Regex(cut), "isolated") for cut in cuts), pre_tokenizers.ByteLevel(False, use_regex=False)
    ])  # fmt: skip
    made.decoder = decoders.ByteLevel()
    return made


def _pieces(given: Mapping[str, Any], tokens: Sequence[str], types: Any, where: str) -> Any:
    """Sentencepiece's pairs: those are joined first whose token has the highest score; bytes where no token is known."""
    ids, scores = _by_id(tokens), _scores(given, len(tokens), where)
    pairs = []
    for token, i in ids.items():
        if types[i] in (_CONTROL, _UNKNOWN, _BYTE):
            continue
        found = [(ids[token[:n]], ids[token[n:]], n) for n in range(1, len(token)) if token[:n] in ids and token[n:] in ids]
        pairs += [(-scores[i], i, a, b, token, n) for a, b, n in found]
    merges = [(token[:n], token[n:]) for *_, token, n in sorted(pairs)]
    unknown = [tokens[i] for i in np.flatnonzero(types == _UNKNOWN)[:1]]
    made = Tokenizer(models.BPE(ids, merges, unk_token=unknown[0] if unknown else None, fuse_unk=True, byte_fallback=True))
    prefix = bool(given.get("tokenizer.ggml.add_space_prefix", True))
    spaces = normalizers.Replace(" ", _SPACE)
    made.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), spaces]) if prefix else spaces
    made.decoder = decoders.Sequence([
        decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *([decoders.Strip(" ", 1, 0)] if prefix else [])
    ])  # fmt: skip
    return made


def _unigram(given: Mapping[str, Any], tokens: Sequence[str], types: Any, where: str) -> Any:
    """Sentencepiece's most probable tokens."""
    scores = _scores(given, len(tokens), where)
    unknown = given.get("tokenizer.ggml.unknown_token_id")
    made = Tokenizer(models.Unigram(list(zip(tokens, map(float, scores), strict=True)), unknown, False))
    charsmap = given.get("tokenizer.ggml.precompiled_charsmap")
    steps: list[Any] = []
    if charsmap is not None:
        steps.append(normalizers.Precompiled(np.asarray(charsmap).astype(np.uint8).tobytes()))
    steps.append(normalizers.Strip(False, True))
    if given.get("tokenizer.ggml.remove_extra_whitespaces", False):
        steps.append(normalizers.Replace(Regex(" {2,}"), _SPACE))
    made.normalizer = normalizers.Sequence(steps)
    scheme = "always" if given.get("tokenizer.ggml.add_space_prefix", True) else "never"
    made.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, scheme)
    made.decoder = decoders.Metaspace(_SPACE, scheme)
    return made


def _word_pieces(given: Mapping[str, Any], tokens: Sequence[str], types: Any, where: str) -> Any:
    """BERT's: words begin with a mark in GGUF, and pieces within them with another one in tokenizers."""
    marked = list(tokens)
    for i in np.flatnonzero(types == 1).tolist():
        marked[i] = tokens[i][1:] if tokens[i].startswith(_SPACE) else f"##{tokens[i]}"
    unknown = [tokens[i] for i in (given.get("tokenizer.ggml.unknown_token_id"),) if type(i) is int and 0 <= i < len(tokens)]
    made = Tokenizer(models.WordPiece(_by_id(marked), unk_token=unknown[0] if unknown else "[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    return made


def _by_id(tokens: Sequence[str]) -> dict[str, int]:
    return {token: i for i, token in enumerate(tokens)}


def _scores(given: Mapping[str, Any], count: int, where: str) -> Any:
    scores: Any = given.get("tokenizer.ggml.scores")
    if np.shape(scores) != (count,):
        raise FormatError(f"{where}: expected tokenizer.ggml.scores, one per token")
    return np.asarray(scores, np.float64).tolist()
