"""A configuration whose words are counted: what no rule reads, and what is not known to be harmless, is refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..._arguments import listed
from ...errors import FormatError, LimitError, UnsupportedError
from ..source import quote

__all__ = ["Config"]

MOST_LAYERS = 2048

# Words, as patterns that match a whole word, that change no result.
_TRAINING = (
    r"\w*dropout\w*|\w*_pdrop|dropout|initializer_\w+|init_std|gradient_checkpointing|layerdrop|\w*aux_loss\w*|loss_\w+|"
    r"router_jitter_noise|label_smoothing|output_router_logits|sparse_pred\w+|cross_entropy\w*|seq_classif_\w+|embd_pdrop"
)
_HOW = (
    r"use_cache|cache_implementation|chunk_size_feed_forward|output_attentions|output_hidden_states|output_past|return_dict|"
    r"torchscript|use_bfloat16|torch_dtype|dtype|pretraining_tp|\w*attn_implementation\w*|deterministic_flash_attn|tf_legacy_loss|"
    r"reference_compile|repad_logits_with_grad|unpad_inputs|use_memory_efficient_attention|logn_attention_clip1|"
    r"fused_\w+|use_flash_attn|use_xentropy|flash_attn\w*|reorder_and_upcast_attn|use_cce|parallelization_\w+|loss"
)
_NAMES = (
    r"_name_or_path|name_or_path|model_type|architectures|auto_map|transformers_version|\w*_version|task_specific_params|"
    r"finetuning_task|problem_type|id2label|label2id|num_labels|_num_labels|custom_pipelines|sentence_transformers|language|"
    r"adapters?|summary_\w+|directionality|pooler_\w+|tokenizer_class|prefix|model_max_length|_commit_hash|"
    r"sbert_ce_default_activation_function|license|tags|classifier_pooling_\w+|emb_pooler|matryoshka_\w+|max_seq_len|"
    r"padding_idx|unsloth_\w+|transformers\.js_config|is_llama_config"
)
_TOKENS = (
    r"(bos|eos|pad|sep|cls|mask|unk|decoder_start|forced_bos|forced_eos|image|boi|eoi|audio)_token_(id|index)|\w*_tokens|"
    r"max_length|min_length|do_sample|early_stopping|num_beams|num_beam_groups|diversity_penalty|temperature|top_k|top_p|"
    r"typical_p|repetition_penalty|length_penalty|no_repeat_ngram_size|encoder_no_repeat_ngram_size|bad_words_ids|"
    r"num_return_sequences|output_scores|return_dict_in_generate|remove_invalid_values|exponential_decay_length_penalty"
)
_HARMLESS = re.compile("|".join((_TRAINING, _HOW, _NAMES, _TOKENS)))
# Words of which one value alone is known; it is the default.
_ONLY: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "cross_attention_hidden_size": (None,),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "tie_encoder_decoder": (False,),
    "pruned_heads": ({}, []),
    "rope_interleaved": (False,),
    "use_mrope": (False,),
}


class Config:
    """The words of a config.json.

    Args:
        words: what the file says.
        where: begins the errors.
    """

    def __init__(self, words: Mapping[str, Any], where: str) -> None:
        self.words, self.where = dict(words), where
        self.read: set[str] = set()

    def value(self, word: str, default: Any = None) -> Any:
        """A word's value of any type; null is the default."""
        self.read.add(word)
        found = self.words.get(word)
        return default if found is None else found

    def whole(self, word: str, default: Any = None, least: int = 1) -> Any:
        """An integer; None where the word is missing and there is no default, which a rule must have allowed."""
        found = self.value(word, default)
        if found is not None and (type(found) is not int or not least <= found < 1 << 31):
            self.wrong(word, found, f"an integer from {least}")
        return found

    def size(self, word: str, default: int | None = None) -> int:
        """An integer of at least 1 that must be there, unless there is a default."""
        found = self.whole(word, default)
        if found is None:
            raise FormatError(f"{self.where}: has no {word!r}: expected an integer from 1")
        return int(found)

    def layers(self, word: str = "num_hidden_layers") -> int:
        """The number of layers, which is not believed beyond what any network has."""
        found = self.size(word)
        if found > MOST_LAYERS:
            raise LimitError(f"{self.where}: {word} is {found}: at most {MOST_LAYERS} are allowed")
        return found

    def number(self, word: str, default: float, positive: bool = False) -> float:
        """A finite number."""
        found = self.value(word, default)
        if type(found) not in (int, float) or not abs(found) < 1e30 or (positive and found <= 0):
            self.wrong(word, found, "a positive number" if positive else "a number")
        return float(found)

    def flag(self, word: str, default: bool = False) -> bool:
        """True or false."""
        found = self.value(word, default)
        if type(found) is not bool:
            self.wrong(word, found, "true or false")
        return bool(found)

    def text(self, word: str, default: str) -> str:
        """A string."""
        found = self.value(word, default)
        if type(found) is not str:
            self.wrong(word, found, "a string")
        return str(found)

    def only(self, **words: Any) -> None:
        """Raises unless each of these words is missing or has this value."""
        for word, wanted in words.items():
            if self.value(word, wanted) != wanted:
                raise UnsupportedError(f"{self.where}: {word} is {quote(self.words[word])}: only {wanted!r} is supported")

    def unused(self, *words: str) -> None:
        """Notes words that change nothing in this family."""
        self.read.update(words)

    def wrong(self, word: str, found: Any, wanted: str) -> None:
        """Raises the error about a value."""
        raise FormatError(f"{self.where}: {word} is {quote(found)}: expected {wanted}")

    def check(self) -> None:
        """Raises if the file says what nothing has read, and what may change results."""
        unknown = []
        for word, value in self.words.items():
            if word in self.read or value is None or _HARMLESS.fullmatch(str(word)):
                continue
            if word in _ONLY and value in _ONLY[word]:
                continue
            unknown.append(f"{str(word)[:80]}={quote(value)}")
        if unknown:
            family = quote(self.words.get("model_type"))
            raise UnsupportedError(f"{self.where}: says what is not known of {family}: {listed(unknown, 8)}")
