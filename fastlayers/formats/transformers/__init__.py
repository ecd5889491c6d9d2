"""Checkpoints of transformers: a folder with config.json and safetensors becomes a graph with the inputs and outputs of optimum's
ONNX. Nothing in a folder is executed.

`folder` reads it; `families` says which module writes a family's network; `build` has the layers, `decoder`, `rotary` and `heads`
what families share. `config` and `weights` refuse by name what no module reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._lazy import imported
from ...errors import FormatError, UnsupportedError
from ..budget import Budget
from ..source import quote

if TYPE_CHECKING:
    from ...ir.graph import Graph

__all__ = ["FAMILIES", "NAME", "family_of", "network"]

NAME = "transformers"
# The module of each model_type; "": of that name.
FAMILIES: dict[str, str] = {
    **dict.fromkeys(
        (
            "albert",
            "bert",
            "distilbert",
            "electra",
            "gpt2",
            "gpt_neox",
            "modernbert",
            "mpnet",
            "olmo2",
            "roberta",
            "stablelm",
            "t5",
        ),
        "",
    ),
    **dict.fromkeys(("camembert", "xlm-roberta"), "roberta"),
    **dict.fromkeys(("llama", "mistral", "mixtral", "phi3", "qwen2", "qwen3", "qwen3_moe", "smollm3"), "llama"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text"), "gemma"),
    "deberta-v2": "deberta",
    **dict.fromkeys(("gte", "new", "nomic_bert"), "nomic"),
}
# Ends of architectures' names that say the head otherwise than by "For".
_HEADS = {"LMHeadModel": "CausalLM", "DoubleHeadsModel": "CausalLM", "ForPreTraining": "", "EncoderModel": "", "Model": ""}


def network(
    config: Mapping[str, Any], weights: Mapping[str, Any], *, head: str | None = None, where: str = "load", budget: Budget
) -> Graph:
    """The network that a configuration says, with weights by transformers' names.

    Args:
        config: the words of a config.json.
        weights: arrays. The matrix of a linear layer, or a table of words, may be of few bits: anything with a `shape`, of which
            `linear(network, x, bias)` and `rows(network, ids)` write the nodes and return the result's name.
        head: "CausalLM", "MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering", "" for none; None: as
            `architectures` says, and else none for encoders and "CausalLM" for decoders.
        where: begins the errors.
        budget: pays for weights that are widened.

    Raises:
        UnsupportedError: a family, a head or a word that is not known.
        FormatError: weights are missing, are more than the network has, or have other shapes.
    """
    family = family_of(config, where)
    from .build import Network
    from .config import Config
    from .weights import Weights

    words, arrays = Config(config, where), Weights(weights, where, budget)
    prefix = getattr(family, "PREFIX", ())
    arrays.begin((prefix,) if isinstance(prefix, str) else prefix)
    if head is None:
        head = _head(words, hasattr(family, "CAUSAL"))
    n = Network(words, arrays, head)
    with np.errstate(all="ignore"):  # weights may be of any kind
        family.write(n)
    words.check()
    arrays.check(getattr(family, "OTHERS", ""))
    return n.graph()


def family_of(config: Mapping[str, Any], where: str) -> Any:
    """The module that writes the family's network."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise UnsupportedError(f"{where}: model_type is {quote(kind)}: supported are {', '.join(sorted(FAMILIES))}")
    return imported(f"{__package__}.{FAMILIES[kind] or kind}")


def _head(c: Any, causal: bool) -> str:
    """The head that `architectures` names."""
    given = c.value("architectures")
    if given is None:
        return "CausalLM" if causal else ""
    if not isinstance(given, list) or not given or not all(isinstance(name, str) for name in given):
        raise FormatError(f"{c.where}: architectures is {quote(given)}: expected a list of names")
    name: str = given[0]
    for end, head in _HEADS.items():
        if name.endswith(end):
            return head
    return name.partition("For")[2]
