"""`fl.text.Generator`: the tokens of a plain loop over the network, whatever runs beside, was computed before, or is cut."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import Graph, Node, Value
from fastlayers.text import Generation, Generator
from fastlayers.text._decoder import last_only
from fastlayers.text._generator import _share

from . import networks
from .folders import byte_pairs, decoder, put, write_json

PROMPTS = ["the cat asks", "the dog", "a question . the dog gives", "日本語 und", "the cat asks", "🙂"]
CHAT = [{"role": "system", "content": " be brief "}, {"role": "user", "content": "the question"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder(tmp_path_factory.mktemp("decoder"))


@pytest.fixture(scope="module")
def network(folder: Path) -> fl.Model:
    return fl.load(folder / "model.onnx")


def logits_after(network: fl.Model, ids: list[int]) -> np.ndarray:
    """Logits of the token after these, with nothing known before."""
    t, past = len(ids), [np.zeros((1, 2, 0, 8), np.float32)] * 4
    found: np.ndarray = network(np.array([ids]), np.ones((1, t), np.int64), np.arange(t)[None], *past)[0][0, -1]
    return found


def plain(network: fl.Model, ids: list[int], count: int) -> list[int]:
    """The most probable tokens, with everything computed again for each."""
    found = list(ids)
    for _ in range(count):
        found.append(int(logits_after(network, found).argmax()))
    return found[len(ids) :]


def random_prompts(count: int, seed: int = 0) -> list[list[int]]:
    """Some of equal lengths, some with common beginnings."""
    rng = np.random.default_rng(seed)
    found: list[list[int]] = []
    for _ in range(count):
        begin = found[rng.integers(len(found))][: rng.integers(1, 12)] if found and rng.random() < 0.5 else []
        found.append([*begin, *rng.integers(5, 290, rng.integers(1, 20)).tolist()])
    return found


def test_greedy_tokens_are_those_of_a_plain_loop(folder: Path, network: fl.Model) -> None:
    made = Generator(folder)
    for ids in random_prompts(6):
        assert made.generate(ids, 12, ignore_eos=True) == plain(network, ids, 12)


@pytest.mark.parametrize("how", [{}, {"temperature": 1.0, "seed": 5, "top_p": 0.95}, {"repetition_penalty": 1.3}], ids=str)
def test_the_same_tokens_alone_in_any_batch_and_beside_others(folder: Path, how: dict[str, Any], threads: int) -> None:
    prompts = random_prompts(16, 1)
    alone = [Generator(folder, cache_bytes=0).generate(ids, 15, ignore_eos=True, **how) for ids in prompts]
    assert len({tuple(ids) for ids in alone}) > 12  # they differ
    made = Generator(folder)
    rng = np.random.default_rng(2)
    for _ in range(3):  # the second time all prompts are known
        order = rng.permutation(16)
        assert made.generate([prompts[i] for i in order], 15, ignore_eos=True, **how) == [alone[i] for i in order]
    found: dict[int, Any] = {}

    def run(i: int) -> None:
        found[i] = made.generate(prompts[i], 15, ignore_eos=True, **how)

    workers = [threading.Thread(target=run, args=(i,)) for i in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [found[i] for i in range(16)] == alone


def test_pieces_of_a_prompt_have_the_bits_of_the_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = np.random.default_rng(0).integers(0, 290, 150).tolist()
    want = Generator(folder, cache_bytes=0).generate(ids, 3, logprobs=20)
    for size in (1, 7, 64):
        monkeypatch.setattr("fastlayers.text._running.PIECE", size)
        assert Generator(folder, cache_bytes=0).generate(ids, 3, logprobs=20) == want


def test_a_known_beginning_is_not_computed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Generator(folder)
    ran: list[int] = []
    call = type(made._decoder).__call__

    def watched(self: Any, ids: np.ndarray, past: Any, at: int) -> Any:
        ran.append(ids.shape[1])
        return call(self, ids, past, at)

    monkeypatch.setattr(type(made._decoder), "__call__", watched)
    begin = list(range(10, 60))
    first = made.generate(begin, 4, ignore_eos=True)
    assert ran == [50, 1, 1, 1]
    ran.clear()
    assert made.generate([*begin, *first, 5], 1, ignore_eos=True) and ran == [2]  # the last token had not been read
    ran.clear()
    assert made.generate([*begin[:30], 7, 7], 1, ignore_eos=True) and ran == [2]
    ran.clear()
    assert made.generate(begin, 4, ignore_eos=True) == first and ran == [1, 1, 1, 1]


def test_what_is_known_is_bounded(folder: Path) -> None:
    made = Generator(folder, cache_bytes=60_000)
    alone = Generator(folder, cache_bytes=0)
    for ids in random_prompts(30, 3):
        assert made.generate(ids, 8, ignore_eos=True) == alone.generate(ids, 8, ignore_eos=True)
        assert made._prefixes is not None and 0 < made._prefixes.nbytes <= 60_000


def test_what_is_known_takes_a_share_of_the_weights(folder: Path) -> None:
    assert Generator(folder)._prefixes.most == 32 << 20  # type: ignore[union-attr]
    for weights, most in ((100 << 20, 32 << 20), (400 << 20, 100 << 20), (4 << 30, 256 << 20)):
        constants = {"w": np.broadcast_to(np.uint8(0), weights)}
        made = SimpleNamespace(_graph=SimpleNamespace(constants=constants))
        assert _share(made) == most  # type: ignore[arg-type]


def test_texts(folder: Path, network: fl.Model) -> None:
    made, tokenizer = Generator(folder), byte_pairs(folder)
    for prompt in PROMPTS:
        ids = made.encode(prompt)
        assert ids == tokenizer.encode(prompt).ids and ids[0] == 0
        want = made.generate(ids, 10)
        found = made.generate(prompt, 10)
        assert found == made.decode(ids + want)[len(made.decode(ids)) :] and isinstance(found, str)
        assert "".join(made.generate(prompt, 10, stream=True)) == found
        assert list(made.generate(ids, 10, stream=True)) == want
    assert made.generate(PROMPTS, 10) == [made.generate(prompt, 10) for prompt in PROMPTS]
    assert made.generate([], 10) == []


def test_ends(tmp_path: Path) -> None:
    """An end token ends a sequence, and is left out: those of generation_config.json, else config.json, and the tokenizer's."""
    folder = decoder(tmp_path)
    made = Generator(folder)
    ids = made.encode("the cat asks")
    free = made.generate(ids, 30, ignore_eos=True)
    write_json(folder / "config.json", {"eos_token_id": free[5]})
    at = free.index(free[5])
    assert Generator(folder).generate(ids, 30) == free[:at]
    assert Generator(folder).generate(ids, 30, ignore_eos=True) == free
    write_json(folder / "generation_config.json", {"eos_token_id": [free[9], 299]})
    assert Generator(folder).generate(ids, 30) == free[: free.index(free[9])]
    assert Generator(folder).generate(ids, 30, logprobs=0).finish == "stop"
    assert Generator(folder)._ends == {free[9], 299, 1}
    for wrong in ("x", -1, [True], [2**40]):
        write_json(folder / "generation_config.json", {"eos_token_id": wrong})
        with pytest.raises(fl.FormatError, match="eos_token_id"):
            Generator(folder)


def test_stop_strings(folder: Path) -> None:
    made = Generator(folder)
    whole = made.generate("the cat asks", 20, temperature=1.0, seed=11)
    assert len(whole) > 15
    for stop in (whole[4:7], whole[9:10]):
        cut = whole[: whole.find(stop)]
        assert made.generate("the cat asks", 20, temperature=1.0, seed=11, stop=stop) == cut
        assert "".join(made.generate("the cat asks", 20, temperature=1.0, seed=11, stop=["none", stop], stream=True)) == cut
    one = made.generate("the cat asks", 20, temperature=1.0, seed=11, stop=whole[4:7], logprobs=0)
    assert one.finish == "stop" and one.text == whole[: whole.find(whole[4:7])]


def test_probabilities(folder: Path, network: fl.Model) -> None:
    made = Generator(folder)
    ids = made.encode("the cat")
    found = made.generate("the cat", 6, logprobs=3)
    assert isinstance(found, Generation) and found.finish == "length" and found.text == made.generate("the cat", 6)
    assert found.ids == made.generate(ids, 6)
    t = len(ids)
    logits = network(np.array([ids]), np.ones((1, t), np.int64), np.arange(t)[None], *[np.zeros((1, 2, 0, 8), np.float32)] * 4)[
        0
    ][0, -1]
    want = logits.astype(np.float64) - np.log(np.exp(logits.astype(np.float64)).sum())
    assert found.logprobs[0] == pytest.approx(want[found.ids[0]], abs=1e-9)
    assert found.top[0] == pytest.approx({int(i): want[i] for i in np.argsort(-want)[:3]}, abs=1e-9)
    pieces = list(made.generate("the cat", 6, logprobs=3, stream=True))
    assert [i for piece in pieces for i in piece.ids] == found.ids and "".join(piece.text for piece in pieces) == found.text
    assert [piece.finish for piece in pieces] == [None] * 5 + ["length"]


def test_seeds(folder: Path) -> None:
    made = Generator(folder)
    ids = [3, 4, 5]
    found = [made.generate(ids, 12, temperature=1.5, seed=seed) for seed in range(8)]
    assert len({tuple(one) for one in found}) > 6
    assert made.generate(ids, 12, temperature=1.5) != made.generate(ids, 12, temperature=1.5)
    # The choice is of the position in the sequence: a sequence that goes on later goes on as it would have.
    first = made.generate(ids, 5, temperature=1.5, seed=1, ignore_eos=True)
    rest = made.generate(ids + first, 7, temperature=1.5, seed=1, ignore_eos=True)
    assert first + rest == made.generate(ids, 12, temperature=1.5, seed=1, ignore_eos=True)


def test_messages(folder: Path) -> None:
    made = Generator(folder)
    text = "<|system|>be brief</s><|user|>the question</s><|assistant|>"
    assert made.encode(CHAT) == byte_pairs(folder).encode(text, add_special_tokens=False).ids
    found = made.generate(CHAT, 8)
    assert isinstance(found, str) and made.generate([CHAT, "the cat"], 8) == [found, made.generate("the cat", 8)]
    assert made.encode(CHAT, add_generation_prompt=False) == made.encode(CHAT)[:-1]


def test_the_context_is_a_limit(tmp_path: Path) -> None:
    made = Generator(decoder(tmp_path, max_position_embeddings=20))
    found = made.generate([5] * 15, 100, ignore_eos=True, logprobs=0)
    assert len(found.ids) == 5 and found.finish == "length"
    with pytest.raises(fl.ArgumentError, match="prompt has 20 tokens: the network takes 20"):
        made.generate([5] * 20)


def test_ids_go_in_without_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want = Generator(folder).generate([3, 4, 5], 5)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    made = Generator(folder)
    assert made.generate([3, 4, 5], 5) == want
    assert made.generate([3, 4, 5], 5, logprobs=1).text == ""
    for call in (lambda: made.generate("text"), lambda: made.generate([3], stop="x"), lambda: made.decode([3])):
        with pytest.raises(fl.MissingExtraError, match="tokenizers"):
            call()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(fl.MissingExtraError, match="needs jinja2"):
        made.encode(CHAT)


def test_only_the_last_positions_logits_are_made(folder: Path, network: fl.Model) -> None:
    short = last_only(network)
    assert short is not network and short.outputs["logits"].shape == ("n", 1, short.outputs["logits"].shape[-1])
    ids = np.array([[3, 4, 5], [7, 8, 9]])
    feeds = [ids, np.ones((2, 3), np.int64), np.tile(np.arange(3), (2, 1)), *[np.zeros((2, 2, 0, 8), np.float32)] * 4]
    for a, b in zip(short(*feeds), network(*feeds), strict=True):
        np.testing.assert_array_equal(a, b[:, -1:] if a.ndim == 3 else b)


def test_only_the_last_positions_logits_of_blocks_of_bits() -> None:
    """Their weights have three axes, but are one matrix."""
    rng = np.random.default_rng(0)
    floats = {"table": rng.standard_normal((30, 32)), "scales": rng.standard_normal((30, 2))}
    constants = {name: array.astype(np.float32) for name, array in floats.items()}
    constants["w"] = rng.integers(0, 255, (30, 2, 8)).astype(np.uint8)
    given = {"K": 32, "N": 30, "bits": 4, "block_size": 16}
    nodes = (Node("Gather", ("table", "input_ids"), ("h",), {}), Node("MatMulNBits", ("h", "w", "scales"), ("logits",), given))
    ids = (Value("input_ids", ("n", "t"), np.dtype(np.int64)),)
    whole = fl.Model(Graph(ids, (Value("logits", ("n", "t", 30), np.dtype(np.float32)),), nodes, constants))
    short = last_only(whole)
    x = rng.integers(0, 30, (2, 5))
    assert short.outputs["logits"].shape == ("n", 1, 30)
    np.testing.assert_array_equal(short(x), whole(x)[:, -1:])


def test_packed_weights_stay(folder: Path, network: fl.Model, tmp_path: Path) -> None:
    network.save(tmp_path / "packed.safetensors", packed=True)
    other = fl.load(tmp_path / "packed.safetensors")
    assert last_only(other) is other
    assert Generator(folder, model=other).generate([3, 4, 5], 5) == Generator(folder).generate([3, 4, 5], 5)


def test_arguments(folder: Path, tmp_path: Path) -> None:
    made = Generator(folder)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"prompt": 3}, fl.DTypeError, "prompt is of type int"),
        ({"prompt": ["a", 3.5]}, fl.DTypeError, "got 3.5 of type float"),
        ({"prompt": [[]]}, fl.DTypeError, "got \\[\\]"),
        ({"prompt": [-1]}, fl.ArgumentError, "ids"),
        ({"prompt": "a", "max_tokens": 0}, fl.ArgumentError, "max_tokens"),
        ({"prompt": "a", "temperature": -1.0}, fl.ArgumentError, "temperature"),
        ({"prompt": "a", "temperature": float("nan")}, fl.ArgumentError, "temperature"),
        ({"prompt": "a", "top_k": -1}, fl.ArgumentError, "top_k"),
        ({"prompt": "a", "top_p": 1.5}, fl.ArgumentError, "top_p"),
        ({"prompt": "a", "min_p": "x"}, fl.DTypeError, "min_p"),
        ({"prompt": "a", "repetition_penalty": 0.0}, fl.ArgumentError, "repetition_penalty"),
        ({"prompt": "a", "seed": -1}, fl.ArgumentError, "seed"),
        ({"prompt": "a", "stop": ""}, fl.DTypeError, "stop"),
        ({"prompt": "a", "stop": [3]}, fl.DTypeError, "stop"),
        ({"prompt": "a", "logprobs": -1}, fl.ArgumentError, "logprobs"),
        ({"prompt": ["a", "b"], "stream": True}, fl.ArgumentError, "stream is True, and there are 2 prompts"),
        ({"prompt": "a", "stream": "yes"}, fl.DTypeError, "stream"),
        ({"prompt": [{"role": object()}]}, fl.DTypeError, "messages has a value of type object"),
    ]  # fmt: skip
    for arguments, error, words in wrong:
        with pytest.raises(error, match=words):
            made.generate(**arguments)
    put(networks.encoder(300), tmp_path / "model.onnx")
    with pytest.raises(fl.UnsupportedError, match="expected input_ids, attention_mask, position_ids, past_key_values"):
        Generator(tmp_path)
