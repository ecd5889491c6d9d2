"""safetensors: the JSON of the header changed and its length put right; the index of shards; our own file, JSON in that JSON."""

from __future__ import annotations

import struct
from random import Random

from . import blocks, text

__all__ = ["checkpoint", "index", "mutate", "own"]

_WORDS = (
    "F32", "F64", "F16", "BF16", "I64", "I32", "I8", "U8", "BOOL", "C64", "F8_E4M3", "F8_E5M2", "F4", "F6_E2M3", "F8_E8M0",
    "U64", "__metadata__",
    "dtype", "shape", "data_offsets",
)  # fmt: skip
_INDEX = (
    "model-00001-of-00002.safetensors",
    "weight_map",
    "metadata",
    "../model.safetensors",
    "/etc/passwd",
    "a/b.safetensors",
    "C:\\x",
    ".",
    "index.json",
)
_CHECKPOINT = (
    "bert", "llama", "gpt2", "t5", "modernbert", "qwen3_moe", "gemma3_text", "BertModel", "LlamaForCausalLM", "architectures",
    "model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "hidden_act", "gelu", "silu",
    "rope_parameters", "rope_theta", "auto_map", "Transformer", "Pooling", "Dense", "Normalize", "1_Pooling", "WordPiece", "BPE",
    "Unigram", "WordLevel", "type", "vocab", "merges", "pattern", "Regex", "(a*)*$", "max_input_chars_per_word", "Strip",
    "ByteLevel", "Sequence", "pretokenizers", "chat_template", "{{ messages }}", "{% for i in range(9999999) %}x{% endfor %}",
    "{{ ''.__class__ }}", "model_max_length", "prompts", "pooling_mode", "max_seq_length",
)  # fmt: skip
_OWN = (
    "tuple", "float", "array", "graph", "bytes", "inf", "nan", "ff", "zz", "nodes", "inputs", "outputs", "constants", "tensor",
    "sequence(tensor)",
    "optional(tensor)", "void", "fastlayers", "packed", "options", "metadata", "Add", "Relu", "Reshape", "Concat", "Loop", "If",
    "Scan", "Transpose",
    "Slice", "Gather", "MatMul", "Shape", "Expand", "Conv", "LSTM", "Identity", "Constant", "Cast", "Pad", "Resize",
    "StreamWindow", "StreamCut",
    "axis", "axes", "perm", "then_branch", "else_branch", "body", "optimize", "strict", "native",
)  # fmt: skip


def _split(content: bytes) -> tuple[bytes, bytes] | None:
    length = int.from_bytes(content[:8], "little")
    return (content[8 : 8 + length], content[8 + length :]) if 0 < length <= len(content) - 8 else None


def _joined(rng: Random, header: bytes, data: bytes) -> bytes:
    header += b" " * (-len(header) % 8)
    length = len(header) if rng.random() < 0.97 else rng.choice((blocks.number(rng), len(header) + rng.randint(-9, 9)))
    return struct.pack("<Q", length & (1 << 64) - 1) + header + data


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of a safetensors file."""
    parts = _split(content)
    if parts is None or rng.random() < 0.1:
        return blocks.mutate(rng, content, other)
    header, data = parts
    if rng.random() < 0.1:
        return _joined(rng, header, blocks.mutate(rng, data, other))
    return _joined(rng, text.changed(rng, header, _WORDS), data)


def checkpoint(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of a configuration, a tokenizer or an index of a checkpoint's folder."""
    return text.changed(rng, content, _CHECKPOINT + _INDEX)


def own(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of a file of Model.save: most are of the graph."""
    parts = _split(content)
    if parts is None or rng.random() < 0.03:
        return blocks.mutate(rng, content, other)
    header, data = parts
    if rng.random() < 0.1:
        return _joined(rng, text.changed(rng, header, _WORDS + _OWN), data)
    try:
        tree = text.parse(header)
        about = dict(tree)["__metadata__"]
        key = "graph" if rng.random() < 0.85 else rng.choice([k for k, _ in about])
        about[:] = [(k, _again(rng, v) if k == key else v) for k, v in about]
        header = text.dump(tree).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        header = text.changed(rng, header, _OWN)
    return _joined(rng, header, data)


def _again(rng: Random, value: str) -> str:
    return text.changed(rng, value.encode("utf-8", "surrogatepass"), _OWN).decode("utf-8", "replace")


def index(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of the index of shards."""
    return text.changed(rng, content, _INDEX)
