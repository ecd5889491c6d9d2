"""Networks of onnxruntime-genai's builder beside onnxruntime: tiny language models with random weights, exported and run by both.

    python -m tests.formats.builder FOLDER [NAME ...]      every network, or those whose names have one of the words in them

A line each: how far the logits of a prompt and of three more tokens are from onnxruntime's, over the largest of them; the error
where it is refused; "builder:" or "onnxruntime:" where it is one of theirs. Needs transformers, torch, onnxruntime-genai and
onnxruntime. Weights of integer sums (accuracy level 4, the builder's default) differ by 1e-2 where a number that is rounded lies
between two integers: onnxruntime's sums before it differ by 1e-7, and it falls to the other side.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import fastlayers as fl

SIZES = {
    "vocab_size": 320, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
MOE: dict[str, Any] = {"num_local_experts": 4, "num_experts_per_tok": 2}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}  # fmt: skip
THREE = {"num_hidden_layers": 3, "layer_types": ["conv", "conv", "full_attention"]}
LONG = {"type": "longrope", "short_factor": [1.1] * 8, "long_factor": [2.0] * 8}
# Name: transformers' class before ForCausalLM, what its config has beside SIZES.
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {"tie_word_embeddings": False}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True}),
    "llama-scaled": ("Llama", {"rope_scaling": LLAMA3}),
    "llama-biased": ("Llama", {"attention_bias": True, "mlp_bias": True, "intermediate_size": 100}),
    "mistral": ("Mistral", {"head_dim": 16, "sliding_window": None}),
    "mistral-window": ("Mistral", {"head_dim": 16, "sliding_window": 8}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"head_dim": 32, "tie_word_embeddings": True}),
    "gemma": ("Gemma", {"head_dim": 16, "hidden_activation": "gelu_pytorch_tanh"}),
    "gemma2": ("Gemma2", {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16}),
    "gemma3": ("Gemma3", {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16, "num_hidden_layers": 6}),
    "phi": ("Phi", {"num_attention_heads": 2, "partial_rotary_factor": 0.5}),
    "phi3": ("Phi3", {"original_max_position_embeddings": 256, "sliding_window": None}),
    "phi3-window": ("Phi3", {"original_max_position_embeddings": 256, "sliding_window": 8}),
    "phi3-long": ("Phi3", {"original_max_position_embeddings": 64, "rope_scaling": LONG}),
    "smollm3": ("SmolLM3", {"no_rope_layers": [1, 1]}),
    "lfm2": ("Lfm2", {**THREE, "block_auto_adjust_ff_dim": False}),
    "lfm2-moe": ("Lfm2Moe", {**THREE, "num_experts": 8, "num_dense_layers": 1, "moe_intermediate_size": 64}),
    "gptoss": ("GptOss", {**MOE, "head_dim": 16, "sliding_window": 8, "intermediate_size": 64, "tie_word_embeddings": False}),
    "granite": ("Granite", {"embedding_multiplier": 2.0, "logits_scaling": 3.0, "residual_multiplier": 0.5}),
    "granite-hybrid": ("GraniteMoeHybrid", {"layer_types": ["attention"] * 2, "num_local_experts": 0}),
    "nemotron": ("Nemotron", {"num_attention_heads": 2, "partial_rotary_factor": 0.5}),
    "olmo": ("Olmo", {}),
    "ernie": ("Ernie4_5", {}),
    "hunyuan": ("HunYuanDenseV1", {"head_dim": 16}),
}  # fmt: skip
# Name: precision, options of the builder.
FORMS: dict[str, tuple[str, dict[str, str]]] = {
    "fp32": ("fp32", {}),
    "fp16": ("fp16", {}),
    "int4": ("int4", {}),
    "int8": ("int8", {}),
    "int4-level1": ("int4", {"accuracy_level": "1"}),
}
# Further forms, of these families alone.
FURTHER: dict[str, tuple[str, dict[str, str]]] = {
    "level4": ("int4", {"accuracy_level": "4"}),
    "16": ("int4", {"block_size": "16"}),
    "128": ("int4", {"block_size": "128"}),
    "256": ("int4", {"block_size": "256"}),
    "zeros": ("int4", {"is_symmetric": "false"}),
    "zeros8": ("int8", {"is_symmetric": "false"}),
    "rtn": ("int4", {"algo_config": "rtn"}),
    "rtn-zeros": ("int4", {"algo_config": "rtn", "is_symmetric": "false"}),
    "rtn-last": ("int4", {"algo_config": "rtn_last"}),
    "k-quant": ("int4", {"algo_config": "k_quant"}),
    "k-mixed": ("int4", {"algo_config": "k_quant_mixed"}),
    "k-linear": ("int4", {"algo_config": "k_quant_linear"}),
    "qdq": ("int4", {"use_qdq": "true"}),
    "qdq-zeros": ("int4", {"use_qdq": "true", "is_symmetric": "false"}),
    "gather": ("int4", {"op_types_to_quantize": "MatMul/Gather"}),
    "gather-rtn": ("int4", {"op_types_to_quantize": "MatMul/Gather", "algo_config": "rtn"}),
    "unfused": ("int4", {"fuse_qkv": "false"}),
    "pruned": ("int4", {"prune_lm_head": "true"}),
    "hidden": ("int4", {"include_hidden_states": "true"}),
    "headless": ("int4", {"exclude_lm_head": "true"}),
    "embedless": ("int4", {"exclude_embeds": "true"}),
    "fused-mlp": ("int4", {"fuse_mlp_gate_up": "true"}),
}
_MOE_FORMS = {
    "experts8": ("int4", {"moe_quant_type": "int8"}),
    "experts-row": ("int4", {"qmoe_block_size": "0"}),
    "experts128": ("int4", {"qmoe_block_size": "128"}),
}


def networks() -> dict[str, tuple[str, str, dict[str, str]]]:
    """Name of a network: family, precision, options."""
    found = {f"{family}-{form}": (family, *what) for family in FAMILIES for form, what in FORMS.items()}
    for family in ("llama", "llama-tied", "qwen2"):
        found |= {f"{family}-{form}": (family, *what) for form, what in FURTHER.items()}
    for family in ("gptoss", "lfm2-moe"):
        found |= {f"{family}-{form}": (family, *what) for form, what in _MOE_FORMS.items()}
    found["mistral-window-full"] = ("mistral-window", "int4", {"windowed_kv_cache": "false"})
    return found


def checkpoint(family: str, folder: Path) -> None:
    """Random weights and a tokenizer as transformers saves them."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    name, further = FAMILIES[family]
    known = "Gemma3Text" if name == "Gemma3" else name
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForCausalLM")(getattr(transformers, f"{known}Config")(**{**SIZES, **further}))
    for weights in model.parameters():
        if weights.ndim > 1:
            torch.nn.init.normal_(weights, std=0.15)
        else:
            torch.nn.init.normal_(weights, 0.0 if name.startswith("Gemma") else 0.5, 0.2)
    model.eval().save_pretrained(folder)
    if name == "GptOss":
        _mxfp4(folder / "model.safetensors", model.config)
    words = Tokenizer(models.BPE({chr(i): i for i in range(SIZES["vocab_size"])}, []))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)


def _mxfp4(path: Path, config: Any) -> None:
    """Adds random experts in the format of the published checkpoint, which the builder asks for."""
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(path)
    for i in range(config.num_hidden_layers):
        for key, n, k in (
            ("gate_up", 2 * config.intermediate_size, config.hidden_size),
            ("down", config.hidden_size, config.intermediate_size),
        ):
            at = f"model.layers.{i}.mlp.experts.{key}_proj"
            weights[f"{at}_blocks"] = torch.randint(0, 256, (config.num_local_experts, n, k // 32, 16), dtype=torch.uint8)
            weights[f"{at}_scales"] = torch.randint(123, 126, (config.num_local_experts, n, k // 32), dtype=torch.uint8)
    save_file(weights, path, {"format": "pt"})


def build(name: str, root: Path) -> Path:
    """The network as the builder writes it, made once."""
    import logging

    import onnxruntime_genai.models

    logging.disable()
    family, precision, options = networks()[name]
    source, target = root / "hf" / family, root / name
    if (target / "model.onnx").exists():
        return target
    if not (source / "config.json").exists():
        checkpoint(family, source)
    sys.path[:0] = [p for p in onnxruntime_genai.models.__path__ if p not in sys.path]
    import builder  # type: ignore[import-not-found]

    shutil.rmtree(target, ignore_errors=True)
    where = (str(source), str(target), precision, "cpu", str(root / "cache"))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        extra = builder.parse_extra_options("", *where, [f"{k}={v}" for k, v in options.items()])
        if family == "gemma3":  # as versions of transformers before the fifth have it, and the builder
            config = extra["hf_details"]["hf_config"]
            config.rope_parameters, config.rope_local_base_freq = {"rope_type": "default", "rope_theta": 1e6}, 1e4
        builder.create_model("", *where, **extra)
    return target


class Steps:
    """The inputs of a network for a prompt and for tokens after it."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.inputs = {i.name: i for i in session.get_inputs()}
        decoder = json.loads((folder / "genai_config.json").read_text())["model"]["decoder"]
        window = decoder.get("sliding_window", {}).get("window_size", 0)
        self.sizes = {"batch_size": 1, "kv_cache_dim": decoder["head_size"], "past_sliding_length": window + 3}
        if any(i.type == "tensor(float16)" for i in self.inputs.values()):  # no GroupQueryAttention: such caches grow, too
            del self.sizes["past_sliding_length"]
        self.caches = {n: self._empty(i) for n, i in self.inputs.items() if n.startswith("past")}
        self.total = 0

    def _empty(self, i: Any) -> np.ndarray:
        shape = [self.sizes.get(d, 0) if isinstance(d, str) else d for d in i.shape]
        return np.zeros(shape, {"tensor(float16)": np.float16, "tensor(int8)": np.int8}.get(i.type, np.float32))

    def feeds(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        before, self.total = self.total, self.total + ids.shape[1]
        given = {
            "input_ids": ids,
            "attention_mask": np.ones((1, self.total), np.int64),
            "position_ids": np.arange(before, self.total, dtype=np.int64)[None],
        }
        if "inputs_embeds" in self.inputs:
            half = self.inputs["inputs_embeds"].type == "tensor(float16)"
            table = np.random.default_rng(1).normal(0, 1, (SIZES["vocab_size"], SIZES["hidden_size"]))
            given["inputs_embeds"] = table[ids].astype(np.float16 if half else np.float32)
        return {k: v for k, v in given.items() if k in self.inputs} | self.caches

    def keep(self, results: dict[str, np.ndarray]) -> None:
        self.caches = {n: results[n.replace("past_key_values", "present").replace("past.", "present.")] for n in self.caches}


def compared(folder: Path) -> str:
    """The difference of fastlayers from onnxruntime, or the refusal."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.enable_mem_reuse = False  # the builder's names of sizes are wrong where the attention is not GroupQueryAttention
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    path = folder / "model.onnx"
    try:
        session = onnxruntime.InferenceSession(path, options)
    except Exception as error:
        session, refused = None, f"onnxruntime: {_line(error)}"
    try:
        model = fl.load(path)
    except Exception as error:
        return f"load: {_line(error)}" + (f" ({refused})" if session is None else "")
    if session is None:
        return refused
    names = [o.name for o in session.get_outputs()]
    ids = np.random.default_rng(0).integers(3, SIZES["vocab_size"], (1, 13)).astype(np.int64)
    theirs, ours, worst = Steps(session, folder), Steps(session, folder), 0.0
    for i in range(4):
        try:
            expected = dict(zip(names, session.run(None, theirs.feeds(ids)), strict=True))
        except Exception as error:
            return f"onnxruntime, run {i}: {_line(error)}"
        try:
            got = model.run(ours.feeds(ids))
        except Exception as error:
            return f"run {i}: {_line(error)}"
        theirs.keep(expected)
        ours.keep(got)
        first = np.asarray(expected[names[0]], np.float64)
        worst = max(worst, float(np.abs(first - got[names[0]]).max() / np.abs(first).max()))
        ids = (first[:, -1:].argmax(-1) % SIZES["vocab_size"]).astype(np.int64)
    return f"{worst:.1e}"


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[-200:]}"


def main(root: Path, words: list[str]) -> None:
    """Prints a line for each network."""
    for name in networks():
        if words and not any(word in name for word in words):
            continue
        try:
            folder = build(name, root)
        except Exception as error:
            print(f"{name:24s} builder: {_line(error)}", flush=True)
            if len(words) == 1:
                traceback.print_exc()
            continue
        print(f"{name:24s} {compared(folder)}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
