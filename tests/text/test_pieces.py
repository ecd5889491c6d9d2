"""Text in pieces: whole characters, stop strings across tokens, and the same text as all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.text._pieces import Pieces
from fastlayers.text._tokens import open_tokenizer

from .folders import SPEECH, byte_pairs, word_pieces


@pytest.fixture(scope="module", params=["byte pairs", "word pieces", "metaspace"])
def tokenizer(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tokens")
    if request.param == "metaspace":  # as sentencepiece's: spaces are letters of words, bytes are tokens
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers

        words = ["<unk>", "<s>", *(f"<0x{i:02X}>" for i in range(256)), "▁", "▁the", "▁cat", "▁dog", "s", "▁a", "."]
        made = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, [], unk_token="<unk>", byte_fallback=True))
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        made.save(str(folder / "tokenizer.json"))
    else:
        (byte_pairs if request.param == "byte pairs" else word_pieces)(folder)
    return open_tokenizer(str(folder), "test", None, False)


def pieces(tokenizer: Any, prompt: list[int], ids: list[int], stops: tuple[str, ...] = ()) -> list[str]:
    made, found = Pieces(tokenizer, prompt, stops), []
    for token in ids:
        found.append(made.push(token))
        if made.stopped:
            return found
    return [*found, made.finish()]


def test_pieces_are_the_whole_text(tokenizer: Any) -> None:
    ids = tokenizer.encode([SPEECH], special=False)[0].ids
    for cut in (0, 1, 2, 7, 20):
        found = pieces(tokenizer, ids[:cut], ids[cut:])
        assert tokenizer.decode(ids[:cut]) + "".join(found) == tokenizer.decode(ids)
        assert not any("\ufffd" in piece for piece in found)


def test_pieces_of_any_ids_are_their_text(tokenizer: Any) -> None:
    """Also of bytes that are no text: what is certain is told, the rest at the end. Where bytes are tokens of their own, one that
    is no text makes all next to it none, also those that were told: these are left out.
    """
    rng = np.random.default_rng(0)
    size = tokenizer._made.get_vocab_size()
    bytes_ = tokenizer._made.token_to_id("<0xFF>")
    for _ in range(200):
        ids = rng.integers(5 if bytes_ is None else bytes_ + 1, size, 30).tolist()
        before = ids[:3]
        whole, start = tokenizer.decode(ids), tokenizer.decode(before)
        if whole.startswith(start):  # bytes at the border may make one character
            assert "".join(pieces(tokenizer, before, ids[3:])) == whole[len(start) :]


def test_stop_strings_across_tokens(tokenizer: Any) -> None:
    ids = tokenizer.encode(["the cat and the dog . the answer"], special=False)[0].ids
    text = tokenizer.decode(ids)
    whole = "".join(pieces(tokenizer, [], ids))
    for start in range(len(whole)):
        for length in (1, 2, 5):
            stop = whole[start : start + length]
            found = pieces(tokenizer, [], ids, (stop, "never there"))
            assert "".join(found) == whole[: whole.find(stop)], (stop, text)
    assert "".join(pieces(tokenizer, [], ids, ("answers", "dog . then"))) == whole  # what only began to be one comes in the end


def test_pieces_come_as_soon_as_they_are_certain(tmp_path: Path) -> None:
    byte_pairs(tmp_path)
    made = open_tokenizer(str(tmp_path), "test", None, False)
    ids = made.encode(["🙂a日"], special=False)[0].ids
    found = pieces(made, [], ids)
    assert [piece for piece in found if piece] == ["🙂", "a", "日"]
    assert pieces(made, [], ids[:-1])[-1].endswith("\ufffd")  # half a character is told at the end alone
    letters = [made.encode([c], special=False)[0].ids[0] for c in "abcd"]
    assert pieces(made, [], letters, ("bx",)) == ["a", "", "bc", "d", ""]
