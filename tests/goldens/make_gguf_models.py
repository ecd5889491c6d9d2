"""Makes gguf_models.npz: small networks of every architecture as llama.cpp's converter writes them, transformers' results, and
llama.cpp's own of the same weights in float32.

Weights of matrices are such as Q8_0 has, so that the files and the networks that were run have the same.

Run with torch 2.13, transformers 5.24, llama-cpp-python 0.3.36 and llama.cpp's source (which that one's source has in vendor):
python -m tests.goldens.make_gguf_models LLAMA_CPP [NAME ...]
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SIZES = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GROUPED = {**SIZES, "num_key_value_heads": 2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}  # fmt: skip
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0, 1.1, 1.5, 2.0],
        "long_factor": [1.0, 1.5, 3.0, 6.0], "partial_rotary_factor": 1.0, "original_max_position_embeddings": 16}  # fmt: skip
# By name: the class, and its configuration.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaForCausalLM", {**GROUPED, "tie_word_embeddings": False}),
    "llama tied, biased, scaled": ("LlamaForCausalLM", {
        **GROUPED, "tie_word_embeddings": True, "attention_bias": True, "rope_parameters": LLAMA3,
    }),
    "llama, linear": ("LlamaForCausalLM", {
        **GROUPED, "head_dim": 16, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0},
    }),
    "llama, mixtral": ("MixtralForCausalLM", {
        **GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 32,
    }),
    "qwen2": ("Qwen2ForCausalLM", {**GROUPED, "tie_word_embeddings": True}),
    "qwen2, yarn": ("Qwen2ForCausalLM", {**GROUPED, "rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0, "original_max_position_embeddings": 16,
    }}),
    "qwen3": ("Qwen3ForCausalLM", {**GROUPED, "head_dim": 16}),
    "qwen3moe": ("Qwen3MoeForCausalLM", {
        **GROUPED, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
        "norm_topk_prob": True,
    }),
    "smollm3": ("SmolLM3ForCausalLM", {**GROUPED, "num_hidden_layers": 4, "intermediate_size": 32}),
    "olmo2": ("Olmo2ForCausalLM", GROUPED),
    "gemma": ("GemmaForCausalLM", {**GROUPED, "head_dim": 16}),
    "gemma2": ("Gemma2ForCausalLM", {**GROUPED, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 4}),
    "gemma3": ("Gemma3ForCausalLM", {
        **GROUPED, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 4, "num_hidden_layers": 6,
        "intermediate_size": 32,
    }),
    "phi3": ("Phi3ForCausalLM", {**GROUPED, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                                               "partial_rotary_factor": 1.0}}),
    "phi3, long": ("Phi3ForCausalLM", {**GROUPED, "rope_parameters": LONG, "original_max_position_embeddings": 16}),
    "stablelm": ("StableLmForCausalLM", {**GROUPED, "use_qkv_bias": True}),
    "stablelm, norms, fused": ("StableLmForCausalLM", {
        **GROUPED, "use_qkv_bias": True, "qk_layernorm": True, "use_parallel_residual": True,
    }),
    "llama, fused": ("LlamaForCausalLM", {**GROUPED, "attention_bias": True, "num_hidden_layers": 1}),
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 50}),
    "gptneox": ("GPTNeoXForCausalLM", SIZES),
    "bert": ("BertModel", {**SIZES, "type_vocab_size": 2}),
}  # fmt: skip
# Words of older configurations, which the converter reads.
OLDER = {"GPT2Model": {"n_ctx": 64}, "GPTNeoXModel": {"rotary_pct": 0.25}}
IDS = np.array([[3, 17, 42, 8, 25, 11, 4, 49, 30]])


def as_q8_0(gguf: Any, model: Any) -> None:
    """Matrices become what Q8_0 has of them; the other weights get values that differ."""
    import torch

    kind = gguf.GGMLQuantizationType.Q8_0
    for name, weight in model.named_parameters():
        held = weight.detach().numpy()
        if held.ndim == 1:
            weight.data += torch.randn(held.shape) * 0.1
        elif "wpe" not in name and "position_embeddings" not in name and "token_type" not in name:
            turned = any(part in name for part in ("c_attn", "c_proj", "c_fc"))
            rows = np.ascontiguousarray(held.T if turned else held) * 4
            rows = gguf.quants.dequantize(gguf.quants.quantize(rows, kind), kind)
            weight.data = torch.from_numpy(np.ascontiguousarray(rows.T if turned else rows))


def converted(folder: Path, plain: bool, fused: bool) -> Path:
    """The file that the converter makes of a folder: of Q8_0, or as it is; queries, keys and values may be one tensor."""
    from conversion import get_model_class  # type: ignore[import-not-found]
    from conversion.base import ModelBase, ModelType, get_model_architecture, gguf  # type: ignore[import-not-found]

    kind = get_model_class(get_model_architecture(ModelBase.load_hparams(folder, False), ModelType.TEXT))
    kind.set_vocab = lambda self: self._set_vocab_none()
    modify = kind.modify_tensors

    def modified(*given: Any) -> Any:
        """The tensors, and those that newer converters lose: StableLM's norms are a generator that a generator returns."""
        lost = yield from modify(*given)
        yield from lost or ()

    kind.modify_tensors = modified
    types, out = gguf.LlamaFileType, folder / f"{'plain' if plain else 'model'}.gguf"
    made = kind(folder, types.ALL_F32 if plain else types.MOSTLY_Q8_0, out, eager=True, **({"fuse_qkv": True} if fused else {}))
    made.hparams.update(OLDER.get(type(made).__name__, {}))
    if plain and kind.__name__ not in ("LlamaModel", "SmolLM3Model"):  # which say it themselves
        made.gguf_writer.add_vocab_size(50)
    made.write()
    return Path(out)


def by_llama_cpp(path: Path) -> np.ndarray:
    """llama.cpp's logits."""
    import llama_cpp  # type: ignore[import-not-found]

    model = llama_cpp.Llama(str(path), n_ctx=64, n_threads=1, verbose=False, logits_all=True, type_k=0, type_v=0)
    model.eval(IDS[0].tolist())
    rows = (llama_cpp.llama_get_logits_ith(model.ctx, i) for i in range(IDS.size))
    return np.array([[np.ctypeslib.as_array(row, (50,)).copy() for row in rows]])


def main() -> None:
    source, names = Path(sys.argv[1]), sys.argv[2:]
    sys.path[:0] = [str(source), str(source / "gguf-py")]
    import gguf  # type: ignore[import-not-found]
    import torch
    import transformers

    path = HERE / "gguf_models.npz"
    held: dict[str, Any] = dict(np.load(path)) if names else {}
    for name in names or CASES:
        kind, words = CASES[name]
        torch.manual_seed(0)
        model = getattr(transformers, kind)(getattr(transformers, kind).config_class(**words)).eval()
        as_q8_0(gguf, model)
        with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stderr(io.StringIO()):
            folder = Path(temporary)
            model.save_pretrained(folder)
            (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": dict.fromkeys(map(str, range(50)))},
                                                               "added_tokens": []}))  # fmt: skip
            content = converted(folder, False, "fused" in name).read_bytes()
            if kind != "BertModel":
                held[f"{name}/llama.cpp"] = by_llama_cpp(converted(folder, True, "fused" in name))
        with torch.no_grad():
            wanted = model(input_ids=torch.from_numpy(IDS))
        wanted = wanted.last_hidden_state if kind == "BertModel" else wanted.logits
        held[f"{name}/file"] = np.frombuffer(content, np.uint8)
        held[f"{name}/wanted"] = wanted.numpy()
        print(name, len(content), wanted.abs().max().item())
    np.savez_compressed(path, **held)


if __name__ == "__main__":
    main()
