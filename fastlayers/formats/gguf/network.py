"""A GGUF file's network: its metadata and tensors in transformers' words and names, for `formats.transformers` to write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import FormatError, LimitError, UnsupportedError
from .._arrays import Array
from ..budget import Budget
from ..source import Source, quote
from .families import FAMILIES, Family, Words
from .matrix import Matrix, part
from .parse import File, Tensor, parse
from .tensors import read

if TYPE_CHECKING:
    from ...ir.graph import Graph

__all__ = ["load_graph"]

_ROPE = ("rope_freqs", "rope_factors_long", "rope_factors_short")
_LONGEST = 1 << 16  # frequencies
_EXPERTS = 1 << 10  # of a block


def load_graph(source: Source, budget: Budget) -> tuple[Graph, dict[str, str]]:
    """The network, and its metadata: `model_type`, and the architecture and name that the file says."""
    from ..transformers import network

    file = parse(source, budget)
    arch = file.metadata.get("general.architecture")
    if not isinstance(arch, str) or arch not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise UnsupportedError(f"{file.where}: general.architecture is {quote(arch)}: supported are {known}")
    if file.metadata.get("split.count", 1) not in (0, 1):
        raise UnsupportedError(f"{file.where}: is a part of a model in several files: join them with llama-gguf-split --merge")
    if not file.tensors:
        raise FormatError(f"{file.where}: holds no tensors: is it a vocabulary alone?")
    family = FAMILIES[arch]
    words = Words(file, arch, _factors(file, budget))
    config: dict[str, Any] = {"model_type": family.kind}
    family.words(words, config)
    words.check()
    weights = _weights(file, family, words, budget)
    graph = network(config, weights, head=family.head, where=file.where, budget=budget)
    metadata = {"model_type": config["model_type"], "architecture": arch}
    if isinstance(name := file.metadata.get("general.name"), str):
        metadata["name"] = name
    return graph, metadata


def _factors(file: File, budget: Budget) -> dict[str, Array]:
    """Divisors of rotary embeddings' frequencies."""
    found = {}
    for name in _ROPE:
        tensor = file.tensors.get(f"{name}.weight")
        if tensor is not None:
            if len(tensor.shape) != 1 or tensor.shape[0] > _LONGEST or tensor.kind.name != "F32":
                raise FormatError(
                    f"{tensor.where}: is {tensor.kind.name} of shape {list(tensor.shape)}: expected a vector of F32"
                )
            found[name] = read(file, tensor, budget)
    return found


def _weights(file: File, family: Family, words: Words, budget: Budget) -> dict[str, Any]:
    """Arrays and matrices by transformers' names."""
    made: dict[str, Any] = {}
    unknown = []
    for name, tensor in file.tensors.items():
        stem, _, end = name.rpartition(".")
        block = re.match(r"blk\.(\d{1,5})\.", stem)
        pattern = f"blk.{{i}}.{stem[block.end() :]}" if block else stem
        if stem in _ROPE and end == "weight":
            continue
        theirs = family.names.get(pattern)
        if theirs is None or end not in ("weight", "bias"):
            unknown.append(name)
            continue
        whole = f"{theirs.replace('{i}', block[1]) if block else theirs}.{end}"
        kind = pattern.rpartition(".")[2]
        if "{e}" in whole:
            made.update(_experts(file, tensor, whole, budget))
            continue
        found = _taken(file, tensor, _order(family, words, kind, tensor), budget)
        if family.shifted and kind.endswith("norm") and end == "weight":
            found = np.asarray(found, np.float32) - np.float32(1)
        if end == "weight" and kind in family.turns.split() and not isinstance(found, Matrix):
            found = found.T
        made[whole] = found
    if unknown:
        more = f", and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise UnsupportedError(
            f"{file.where}: has tensors that {words.arch} is not known to have: {', '.join(map(quote, unknown[:5]))}{more}"
        )
    return made


def _taken(file: File, tensor: Tensor, order: Array | None, budget: Budget) -> Any:
    """A tensor with its rows in an order."""
    if tensor.kind.blocks is not None and len(tensor.shape) == 2:
        return Matrix(file, tensor, budget, order)
    found = read(file, tensor, budget)
    if order is None:
        return found
    ordered = budget.empty(found.shape, found.dtype, tensor.where)
    return np.take(found, order, 0, ordered)


def _order(family: Family, words: Words, kind: str, tensor: Tensor) -> Array | None:
    """Rows of the file in transformers' order, where that is another."""
    if not tensor.shape:
        return None
    rows = tensor.shape[0]
    if family.turned and kind in ("attn_q", "attn_k"):
        heads = words.count("attention.head_count")
        heads = heads if kind == "attn_q" else words.count("attention.head_count_kv", heads)
        _divides(tensor, heads, 2)
        return np.asarray(np.arange(rows, dtype=np.int32).reshape(heads, -1, 2).swapaxes(1, 2).ravel())
    if kind == family.gathered:
        heads = words.count("attention.head_count")
        _divides(tensor, heads, 3)
        return np.asarray(np.arange(rows, dtype=np.int32).reshape(3, heads, -1).swapaxes(0, 1).ravel())
    return None


def _divides(tensor: Tensor, heads: int, parts: int) -> None:
    if heads < 1 or not tensor.shape[0] or tensor.shape[0] % (heads * parts):
        raise FormatError(f"{tensor.where}: has shape {list(tensor.shape)}: expected rows for {parts} parts of {heads} heads")


def _experts(file: File, tensor: Tensor, name: str, budget: Budget) -> dict[str, Any]:
    """The matrices of a block's experts, which are one tensor."""
    if len(tensor.shape) != 3:
        raise FormatError(f"{tensor.where}: has shape {list(tensor.shape)}: expected (experts, rows, columns)")
    experts, rows, width = tensor.shape
    if experts > _EXPERTS:
        raise LimitError(f"{tensor.where}: has {experts} experts: at most {_EXPERTS} are read")
    return {name.replace("{e}", str(e)): _taken(file, part(tensor, e * rows, rows, width), None, budget) for e in range(experts)}
