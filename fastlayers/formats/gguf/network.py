"""A GGUF file's network: its metadata and tensors in transformers' words and names, for `formats.transformers` to write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._arguments import listed
from ...errors import FormatError, LimitError, UnsupportedError
from .._arrays import Array, widened
from ..budget import Budget
from ..source import Source, quote
from .families import FAMILIES, Family, Words
from .matrix import Matrix, part
from .parse import File, Tensor
from .parts import whole
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

    file = whole(source, budget)
    arch = file.metadata.get("general.architecture")
    if not isinstance(arch, str) or arch not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise UnsupportedError(f"{file.where}: general.architecture is {quote(arch)}: supported are {known}")
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
            found[name] = read(tensor, budget)
    return found


def _weights(file: File, family: Family, words: Words, budget: Budget) -> dict[str, Any]:
    """Arrays and matrices by transformers' names."""
    made: dict[str, Any] = {}
    unknown = []
    for name, tensor in (found for each in file.tensors.values() for found in _split(family, words, each)):
        stem, _, end = name.rpartition(".")
        block = re.match(r"blk\.(\d{1,5})\.", stem)
        pattern = f"blk.{{i}}.{stem[block.end() :]}" if block else stem
        if (stem in _ROPE or pattern == "blk.{i}.attn_rot_embd") and end == "weight":
            continue  # frequencies: read, or those that follow from the words
        theirs = family.names.get(pattern)
        if theirs is None or end not in ("weight", "bias"):
            unknown.append(name)
            continue
        full = f"{theirs.replace('{i}', block[1]) if block else theirs}.{end}"
        kind = pattern.rpartition(".")[2]
        if "{e}" in full:
            made.update(_each(tensor, full, budget))
            continue
        found = _taken(tensor, _order(family, words, kind, tensor), budget)
        if family.shifted and kind.endswith("norm") and end == "weight":
            with np.errstate(all="ignore"):
                found = widened(np.asarray(found), budget, tensor.where) - np.float32(1)
        if end == "weight" and kind in family.turns.split() and not isinstance(found, Matrix):
            found = found.T
        made[full] = found
    if unknown:
        told = listed(list(map(quote, unknown)), 5)
        raise UnsupportedError(f"{file.where}: has tensors that {words.arch} is not known to have: {told}")
    return made


def _taken(tensor: Tensor, order: Array | None, budget: Budget) -> Any:
    """A tensor with its rows in an order."""
    if tensor.kind.blocks is not None and len(tensor.shape) == 2:
        return Matrix(tensor, budget, order)
    found = read(tensor, budget)
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


def _each(tensor: Tensor, name: str, budget: Budget) -> dict[str, Any]:
    """The matrices of a block's experts, or the vectors of its heads, which are one tensor."""
    axes = 2 if "norm" in name else 3
    if len(tensor.shape) != axes:
        raise FormatError(f"{tensor.where}: has shape {list(tensor.shape)}: expected {axes} axes, one for each expert or head")
    count, *shape = tensor.shape
    if count > _EXPERTS:
        raise LimitError(f"{tensor.where}: has {count} experts or heads: at most {_EXPERTS} are read")
    rows = shape[0] if axes == 3 else 1
    parts = (part(tensor, e * rows, rows, shape[-1])._replace(shape=tuple(shape)) for e in range(count))
    return {name.replace("{e}", str(e)): _taken(found, None, budget) for e, found in enumerate(parts)}


def _split(family: Family, words: Words, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The tensors of queries, keys and values that are one, and are three for transformers, with their names; others alone."""
    if ".attn_qkv." not in tensor.name or not tensor.shape or "blk.{i}.attn_q" not in family.names:
        yield tensor.name, tensor
        return
    heads, first = words.count("attention.head_count"), 0
    groups = words.count("attention.head_count_kv", heads)
    _divides(tensor, heads + 2 * groups if min(heads, groups) > 0 else 0, 1)
    for letter, count in zip("qkv", (heads, groups, groups), strict=True):
        rows, name = tensor.shape[0] // (heads + 2 * groups) * count, tensor.name.replace("_qkv", f"_{letter}")
        if words.has(name):
            raise FormatError(f"{tensor.where}: is there, and {quote(name)}, which is a part of it")
        yield name, part(tensor, first, rows, *tensor.shape[1:])
        first += rows
