"""Networks of GGUF: what llama.cpp's converter writes gives transformers' results, in every type; what is wrong is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ArgumentError, Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats import transformers

from ..each import each
from .gguf_build import BLOCKS, HALVES, blocks, gguf

GOLDEN = Path(__file__).parent.parent / "goldens" / "gguf_models.npz"


def goldens() -> Iterator[tuple[str, bytes]]:
    """The converter's files by their names."""
    with np.load(GOLDEN) as file:
        for name in file.files:
            if name.endswith("/file"):
                yield name.removesuffix("/file"), file[name].tobytes()


NAMES = [name for name, _ in goldens()]
IDS = np.array([[3, 17, 42, 8, 25, 11, 4, 49, 30]])


def results(model: fl.Model, ids: np.ndarray, past: Mapping[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
    """The outputs, of ids that follow what `past` has seen."""
    feeds: dict[str, Any] = {"input_ids": ids}
    seen = next(iter(past.values())).shape[2] if past else 0
    for given in model.inputs:
        name, shape = given.name, given.shape
        if name == "attention_mask":
            feeds[name] = np.ones((len(ids), seen + ids.shape[1]), np.int64)
        elif name == "position_ids":
            feeds[name] = np.arange(seen, seen + ids.shape[1])[None].repeat(len(ids), 0)
        elif name == "token_type_ids":
            feeds[name] = np.zeros_like(ids)
        elif name.startswith("past"):
            kept = past[name.replace("past_key_values", "present")] if past else None
            feeds[name] = np.zeros((len(ids), shape[1], 0, shape[3]), np.float32) if kept is None else kept
    return dict(model.run(feeds))


@pytest.mark.parametrize("name", NAMES)
def test_what_the_converter_writes(name: str) -> None:
    with np.load(GOLDEN) as file:
        content, wanted, own = file[f"{name}/file"].tobytes(), file[f"{name}/wanted"], file.get(f"{name}/llama.cpp")
    arch = name.partition(",")[0].partition(" ")[0]
    model = fl.load(content, precision="strict")  # which rounds nothing to bytes
    found = results(model, IDS)
    output = "last_hidden_state" if arch == "bert" else "logits"
    np.testing.assert_allclose(found[output], wanted, rtol=0, atol=1e-5 * max(1, np.abs(wanted).max()))
    assert model.metadata["architecture"] == arch
    if arch != "bert":
        if name != "phi3, long":  # llama.cpp takes the factors of long texts where there is room for one
            table = 1e-3 if arch.startswith(("gemma", "gpt")) else 1e-5  # of GELU, in float16
            np.testing.assert_allclose(found[output], own, rtol=0, atol=table)
            np.testing.assert_array_equal(found[output].argmax(-1), own.argmax(-1))
        first = results(model, IDS[:, :5])
        rest = results(model, IDS[:, 5:], {key: value for key, value in first.items() if key != "logits"})
        np.testing.assert_allclose(rest["logits"], wanted[:, 5:], rtol=0, atol=1e-5 * max(1, np.abs(wanted).max()))


# ---- every type ---------------------------------------------------------------------------------------------------------

HEADS, KV, WIDTH, INNER, WORDS = 4, 2, 256, 512, 40
METADATA: dict[str, Any] = {
    "general.architecture": "llama", "general.name": "small", "llama.block_count": 1, "llama.context_length": 64,
    "llama.embedding_length": WIDTH, "llama.feed_forward_length": INNER, "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV, "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.freq_base": 10000.0,
    "tokenizer.ggml.tokens": ["a"] * WORDS,
}  # fmt: skip
SHAPES = {
    "token_embd": (WORDS, WIDTH), "output": (WORDS, WIDTH), "blk.0.attn_q": (WIDTH, WIDTH), "blk.0.attn_k": (128, WIDTH),
    "blk.0.attn_v": (128, WIDTH), "blk.0.attn_output": (WIDTH, WIDTH), "blk.0.ffn_gate": (INNER, WIDTH),
    "blk.0.ffn_up": (INNER, WIDTH), "blk.0.ffn_down": (WIDTH, INNER),
}  # fmt: skip
PLAIN = {"F32": (0, "<f4"), "F16": (1, "<f2"), "BF16": (30, "")}
NORMS = ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm")


def tensors(kind: str, tied: bool = False) -> dict[str, tuple[int, tuple[int, ...], bytes]]:
    made = {}
    for seed, (name, shape) in enumerate(SHAPES.items()):
        if name == "output" and tied:
            continue
        count = shape[0] * shape[1]
        if kind in BLOCKS:
            number, terms, _ = BLOCKS[kind]
            raw = blocks(kind, count // terms, seed)
            for at in HALVES[kind]:
                raw[:, at : at + 2] = (np.abs(raw[:, at : at + 2].copy().view("<f2")) * np.float16(SMALLER[kind])).view(np.uint8)
            made[f"{name}.weight"] = number, shape, raw.tobytes()
        else:
            values = np.random.default_rng(seed).normal(0, 0.05, count).astype(np.float32)
            held = (values.view(np.uint32) >> 16).astype("<u2") if kind == "BF16" else values.astype(PLAIN[kind][1])
            made[f"{name}.weight"] = PLAIN[kind][0], shape, held.tobytes()
    for seed, name in enumerate(NORMS):
        made[f"{name}.weight"] = 0, (WIDTH,), np.random.default_rng(seed + 50).uniform(0.5, 1.5, WIDTH).astype("<f4").tobytes()
    return made


# Few-bit scales that leave sums of a few hundred products near 1.
SMALLER = {"Q4_0": 0.1, "Q4_1": 0.1, "Q5_0": 0.06, "Q5_1": 0.06, "Q8_0": 0.01, "Q4_K": 0.004, "Q5_K": 0.003, "Q6_K": 0.0007}


def as_folder(content: bytes) -> dict[str, np.ndarray]:
    """A checkpoint's arrays: names of Llama, and rotary halves instead of pairs."""
    made = {}
    names = {"token_embd": "model.embed_tokens", "output": "lm_head", "output_norm": "model.norm"}
    inner = {
        "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }  # fmt: skip
    for name, array in fl.load_weights(content).items():
        stem = name.removesuffix(".weight")
        last = stem.rpartition(".")[2]
        if last in ("attn_q", "attn_k"):
            heads = HEADS if last == "attn_q" else KV
            half = len(array) // heads // 2
            array = np.stack([array[h * 2 * half + i + 2 * j] for h in range(heads) for i in range(2) for j in range(half)])
        made[f"{names[stem] if stem in names else f'model.layers.0.{inner[last]}'}.weight"] = array
    return made


def by_arrays(content: bytes) -> fl.Model:
    from fastlayers.formats.budget import Budget
    from fastlayers.model.model import Model

    words = {
        "model_type": "llama", "vocab_size": WORDS, "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": 1,
        "num_attention_heads": HEADS, "num_key_value_heads": KV, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": "output.weight" not in fl.load_weights(content),
    }  # fmt: skip
    return Model(transformers.network(words, as_folder(content), head="CausalLM", budget=Budget(1 << 30, "load")))


@pytest.mark.parametrize("kind", [*BLOCKS, "F32", "F16", "BF16"])
def test_every_type_beside_its_arrays(kind: str) -> None:
    content = gguf(tensors(kind), METADATA)
    wanted = results(by_arrays(content), IDS % WORDS)
    exact, found = (results(fl.load(content, precision=p), IDS % WORDS) for p in ("strict", "default"))
    assert found.keys() == exact.keys() == wanted.keys() and len(found) == 3
    for name, want in wanted.items():
        np.testing.assert_allclose(exact[name], want, rtol=0, atol=2e-5 * max(1, np.abs(want).max()))
        # x is rounded to steps of 1/127 of the largest of its group, half a step at most: errors of a few hundred terms add up
        # as roots do, through seven products.
        np.testing.assert_allclose(found[name], want, rtol=0, atol=2**-5 * np.abs(want).max())
    assert 0.1 < np.abs(wanted["logits"]).max() < 100


def test_blocks_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(tensors("Q4_0", tied=True), METADATA))
    assert fl.load(path, max_bytes=100_000)  # for what describes it
    model = fl.load(path)
    held = {name: array for name, array in model._graph.constants.items() if array.ndim > 1}
    assert {array.dtype.name for array in held.values()} == {"uint8"} and len(held) == len(SHAPES) - 1
    kinds = [node.op for node in model._graph.nodes]
    assert kinds.count("BlockLinear") == len(SHAPES) - 1 and kinds.count("BlockEmbedding") == 1
    table = next(node for node in model._graph.nodes if node.op == "BlockEmbedding")
    assert [node.op for node in model._graph.nodes if table.inputs[0] in node.inputs] == ["BlockEmbedding", "BlockLinear"]
    results(model, IDS % WORDS)
    assert fl.memory().packed >= sum(array.nbytes for array in held.values())


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_K", "Q6_K"])
def test_the_same_bits_in_every_batch_on_threads_and_from_a_saved_file(kind: str, tmp_path: Path, kept_threads: None) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(tensors(kind, tied=True), METADATA))
    model = fl.load(path)
    many = np.random.default_rng(0).integers(0, WORDS, (5, 7))
    wanted = results(model, many)
    fl.set_num_threads(2)
    model.save(tmp_path / "saved")
    for other in (model, fl.load(path, mmap=False), fl.load(tmp_path / "saved")):
        for rows in (slice(0, 5), slice(3, 4)):
            for name, array in results(other, many[rows]).items():
                np.testing.assert_array_equal(array, wanted[name][rows])


@pytest.mark.parametrize("kind", ["Q4_0", "Q5_1", "Q8_0", "Q4_K", "Q6_K"])
def test_matrices_are_packed_in_parts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part after the other gives the bits of the whole, also where some parts alone have scales that fit into two bytes."""
    made = tensors(kind)
    zero = blocks(kind, 64 * WIDTH // BLOCKS[kind][1], 1) * np.uint8(0)
    number, shape, raw = made["blk.0.ffn_up.weight"]
    made["blk.0.ffn_up.weight"] = number, shape, zero.tobytes() + raw[zero.nbytes :]
    wanted = results(fl.load(gguf(made, METADATA)), IDS % WORDS)
    monkeypatch.setattr("fastlayers.operators.quantized.ggml._AT_ONCE", 64 * WIDTH)
    found = results(fl.load(gguf(made, METADATA)), IDS % WORDS)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


PARTS = [f"model-{i:05}-of-00003.gguf" for i in (1, 2, 3)]


def in_parts(folder: Path, **lies: Any) -> Path:
    """A model in three files, of which the first has the metadata alone; `lies` are pairs of the second."""
    names = list(made := tensors("Q4_0"))
    parts: list[list[str]] = [[], names[:5], names[5:]]
    for i, (file, inside) in enumerate(zip(PARTS, parts, strict=True)):
        said = {"split.no": i, "split.count": 3, "split.tensors.count": len(names)}
        pairs = {**METADATA, **said} if not i else {**said, **(lies if i == 1 else {})}
        (folder / file).write_bytes(gguf({name: made[name] for name in inside}, pairs))
    return folder / PARTS[0]


@pytest.mark.parametrize("mmap", [True, False])
def test_several_files(tmp_path: Path, mmap: bool) -> None:
    whole = gguf(tensors("Q4_0"), METADATA)
    path = in_parts(tmp_path)
    want, got = (results(fl.load(source, mmap=mmap), IDS % WORDS) for source in (whole, path))
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array)
    arrays = fl.load_weights(path, mmap=mmap)
    assert all((arrays[name] == array).all() for name, array in fl.load_weights(whole).items())
    (tmp_path / "blobs").mkdir()  # a cache has links to files that are together
    (tmp_path / "s").mkdir()
    for i, name in enumerate(PARTS):
        (tmp_path / name).rename(tmp_path / "blobs" / str(i))
        (tmp_path / "s" / name).symlink_to(tmp_path / "blobs" / str(i))
    np.testing.assert_array_equal(results(fl.load(tmp_path / "s" / PARTS[0]), IDS % WORDS)["logits"], want["logits"])


def test_parts_that_do_not_fit(tmp_path: Path) -> None:
    def refused(words: str, file: str = PARTS[0]) -> None:
        for read in (fl.load, fl.load_weights):
            with pytest.raises(FormatError) as caught:
                read(tmp_path / file)
            assert words in str(caught.value)

    in_parts(tmp_path)
    refused("is file 2 of 3: expected 'model-00001-of-00003.gguf'", PARTS[1])
    (tmp_path / PARTS[0]).rename(tmp_path / "model.gguf")
    refused("split.no is 0 and split.count 3: another file is called 'model.gguf'", "model.gguf")
    (tmp_path / "model.gguf").rename(tmp_path / PARTS[1])
    refused("another file is called 'model-00002-of-00003.gguf'", PARTS[1])
    in_parts(tmp_path, **{"split.no": 2})
    refused("split.no and split.count are (2, 3): expected (1, 3)")
    in_parts(tmp_path, **{"split.count": 4})
    refused("split.no and split.count are (1, 4)")
    in_parts(tmp_path)
    second = tmp_path / PARTS[1]
    second.write_bytes(gguf({"output.weight": tensors("Q4_0")["output.weight"]}, {"split.no": 1, "split.count": 3}))
    refused("split.tensors.count is 12: the 3 files have 8 tensors")
    content = second.read_bytes().replace(b"split.no" + bytes([4, 0, 0, 0, 1]), b"split.no" + bytes([4, 0, 0, 0, 2]))
    (tmp_path / PARTS[2]).write_bytes(content)
    refused("has tensors that a file before it has: 'output.weight'")
    (tmp_path / PARTS[2]).unlink()
    refused("'model-00003-of-00003.gguf' is not there, next to it")
    (tmp_path / PARTS[2]).symlink_to("/etc/hostname")
    refused("'model-00003-of-00003.gguf' is a link that leads out of its folder")
    (tmp_path / PARTS[0]).write_bytes(changed({"split.count": 1 << 20}))
    refused("split.count is")


# ---- what is refused ----------------------------------------------------------------------------------------------------


def changed(metadata: Mapping[str, Any] | None = None, without: str = "", **others: Any) -> bytes:
    """A llama with other metadata (None takes a pair out), and without or with other tensors."""
    pairs = {key: value for key, value in {**METADATA, **(metadata or {})}.items() if value is not None}
    made = {**tensors("Q4_0"), **others.get("tensors", {})}
    return gguf({name: tensor for name, tensor in made.items() if name != without}, pairs)


F32_2 = (0, (2,), bytes(8))
REFUSED: dict[str, tuple[bytes, type[Error], str]] = {
    "no architecture": (changed({"general.architecture": None}), UnsupportedError, "architecture is None: supported are"),
    "another architecture": (changed({"general.architecture": "rwkv7"}), UnsupportedError, "is 'rwkv7': supported are bert"),
    "an architecture that is a list": (changed({"general.architecture": ["llama"]}), UnsupportedError, "architecture is "),
    "a part": (changed({"split.count": 2}), UnsupportedError, "is one of 2 files: pass the path of the first"),
    "a vocabulary": (gguf({}, METADATA), FormatError, "is it a vocabulary alone?"),
    "no width": (changed({"llama.embedding_length": None}), FormatError, "has no llama.embedding_length: expected an integer"),
    "a width that is text": (changed({"llama.embedding_length": "256"}), UnsupportedError, "embedding_length is '256'"),
    "heads by layer": (changed({"llama.attention.head_count": [4]}), UnsupportedError, "llama.attention.head_count is "),
    "no heads": (changed({"llama.attention.head_count": 0}), FormatError, "head_count is 0"),
    "3 heads": (changed({"llama.attention.head_count": 3}), FormatError, "parts of 3 heads"),
    "0 heads of keys": (changed({"llama.attention.head_count_kv": 0}), FormatError, "parts of 0 heads"),
    "2**31 blocks": (changed({"llama.block_count": 1 << 31}), FormatError, "num_hidden_layers"),
    "a million blocks": (changed({"llama.block_count": 1_000_000}), LimitError, "num_hidden_layers is 1000000"),
    "another width": (changed({"llama.embedding_length": 128}), FormatError, "has shape (40, 256): expected (40, 128)"),
    "no block": (changed({"llama.block_count": 0}), FormatError, "num_hidden_layers is 0"),
    "experts without a number to choose": (changed({"llama.expert_count": 8}), FormatError, "has no llama.expert_used_count"),
    "a scaling that is not known": (changed({"llama.rope.scaling.type": "ntk"}), UnsupportedError, "rope.scaling.type is 'ntk'"),
    "a scaling without a factor": (changed({"llama.rope.scaling.type": "linear"}), FormatError, "llama.rope.scaling.factor"),
    "a scale that nothing reads": (changed({"llama.logit_scale": 0.5}), UnsupportedError, "llama: llama.logit_scale=0.5"),
    "windows": (changed({"llama.attention.sliding_window": 8}), UnsupportedError, "llama.attention.sliding_window=8"),
    "a share of a head that is rotated": (changed({"llama.rope.dimension_count": 32}), UnsupportedError, "dimension_count=32"),
    "other values": (changed({"llama.attention.value_length": 32}), UnsupportedError, "value_length=32"),
    "attention to all": (changed({"llama.attention.causal": False}), UnsupportedError, "attention.causal=False"),
    "no table": (changed(without="token_embd.weight"), FormatError, "has no matrix 'token_embd.weight', which llama needs"),
    "a missing matrix": (changed(without="blk.0.ffn_up.weight"), FormatError, "'model.layers.0.mlp.up_proj.weight'"),
    "a tensor that nobody knows": (changed(tensors={"blk.0.attn_rel_b.weight": F32_2}), UnsupportedError,
                                   "tensors that llama is not known to have: 'blk.0.attn_rel_b.weight'"),
    "a tensor that is no weight": (changed(tensors={"blk.0.attn_q.scale": F32_2}), UnsupportedError, "'blk.0.attn_q.scale'"),
    "a block too many": (changed(tensors={"blk.1.attn_norm.weight": (0, (256,), bytes(1024))}), FormatError,
                         "weights that its network does not know: 'model.layers.1.input_layernorm.weight'"),
    "a matrix of three axes": (changed(tensors={"output.weight": (2, (1, 40, 256), bytes(40 * 8 * 18))}), FormatError, "lm_head"),
    "a matrix of queries, keys and values of 255 rows": (
        changed(without="blk.0.attn_q.weight", tensors={"blk.0.attn_qkv.weight": (2, (255, 256), bytes(255 * 8 * 18))}),
        FormatError, "expected rows for 1 parts of 8 heads"),
    "queries, keys and values twice": (
        changed(tensors={"blk.0.attn_qkv.weight": (2, (512, 256), bytes(512 * 8 * 18))}), FormatError, "attn_qkv.weight'"),
    "frequencies of two axes": (changed(tensors={"rope_freqs.weight": (0, (2, 1), bytes(8))}), FormatError, "a vector of F32"),
    "frequencies of another length": (changed(tensors={"rope_freqs.weight": F32_2}), FormatError, "32 positive numbers"),
    "frequencies of 0": (changed(tensors={"rope_freqs.weight": (0, (32,), bytes(128))}), FormatError, "32 positive numbers"),
    "an experts' tensor of two axes": (changed({"general.architecture": "qwen3moe"}, tensors={"blk.0.ffn_up_exps.weight": F32_2}),
                                       FormatError, "qwen3moe."),
}  # fmt: skip


@each("what", REFUSED)
def test_what_is_refused(what: str) -> None:
    content, kind, words = REFUSED[what]
    with pytest.raises(kind) as caught:
        fl.load(content)
    assert words in str(caught.value), str(caught.value)


def test_scales_that_are_no_numbers_are_refused() -> None:
    model = fl.load(changed(tensors={"output.weight": (2, (40, 256), b"\xff" * (40 * 8 * 18))}))
    with pytest.raises(ArgumentError, match="Q4_0: blocks have scales or minima that are NaN or infinite"):
        results(model, IDS % WORDS)


def test_words_that_change_nothing() -> None:
    words = {
        "vocab_size": 40, "pooling_type": 1, "attention.causal": True, "rope.dimension_count": 64, "attention.key_length": 64,
        "attention.value_length": 64, "attention.sliding_window": 0, "rope.scaling.type": "none",
    }  # fmt: skip
    more = fl.load(changed({f"llama.{key}": value for key, value in words.items()}))
    np.testing.assert_array_equal(results(more, IDS % WORDS)["logits"], results(fl.load(changed()), IDS % WORDS)["logits"])


def test_the_format_that_is_asked_for(tmp_path: Path) -> None:
    assert fl.load(changed(), format="gguf").metadata == {"model_type": "llama", "architecture": "llama", "name": "small"}
    with pytest.raises(FormatError, match="format='onnx' was asked for, but the content is gguf"):
        fl.load(changed(), format="onnx")
