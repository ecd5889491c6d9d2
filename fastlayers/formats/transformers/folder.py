"""A checkpoint's folder: config.json, and weights in safetensors or pytorch_model.bin, one file or several with an index."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from ...errors import FormatError, UnsupportedError
from ...ir.graph import Graph
from .. import safetensors_index
from .._table import choose
from ..budget import Budget
from ..elsewhere import in_folder
from ..source import open_source, quote
from . import family_of, network

__all__ = ["load_graph", "read_json"]

CONFIG = "config.json"
_FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_LONGEST = 1 << 24  # bytes of a config.json; those with ten thousand labels have less
_DEEPEST = 32  # levels of objects and lists
_PARSE_FACTOR = 48  # bytes of memory for a byte of JSON; see `safetensors`


def load_graph(path: str, *, max_bytes: int, mmap: bool, narrow: bool = False) -> tuple[Graph, dict[str, str]]:
    """The network of the folder, and its metadata: `model_type` and the first of `architectures`."""
    where = f"load: {path if len(path) <= 120 else '...' + path[-120:]}"
    budget = Budget(max_bytes, "load")
    budget.narrow = narrow
    if not os.path.isfile(os.path.join(path, CONFIG)):
        expected = f"expected a checkpoint of transformers, or a file{in_folder(path)}"
        raise FormatError(f"{where}: is a folder without {CONFIG}: {expected}")
    config = read_json(path, CONFIG, where, budget)
    kind = config.get("model_type")
    _no_code(path, config, where)
    graph = network(config, _weights(path, where, mmap, budget), where=where, budget=budget)
    named = config.get("architectures")
    metadata = {"model_type": str(kind)}
    if isinstance(named, list) and named and isinstance(named[0], str):
        metadata["architecture"] = named[0]
    return graph, metadata


def read_json(path: str, name: str, where: str, budget: Budget) -> dict[str, Any]:
    """A file of the folder that has one object; size and depth have limits, no key may come twice."""
    source = open_source(_inside(path, name, where), caller=where, mapped=False, budget=budget)
    where = f"{where}: {name}"
    if len(source) > _LONGEST:
        raise FormatError(f"{where}: has {len(source)} bytes, at most {_LONGEST} are allowed")
    budget.check(len(source) * _PARSE_FACTOR, f"{where}: its {len(source)} bytes")
    text = bytes(source.view)
    depth = deepest = 0
    for byte in _STRING.sub(b"", text).translate(None, _OTHERS):
        depth += 1 if byte in b"{[" else -1
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        raise FormatError(f"{where}: is nested {deepest} levels deep, at most {_DEEPEST} are allowed")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            raise FormatError(f"{where}: an object has a key more than once")
        return found

    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=pairs)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: is not valid JSON: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{where}: is {quote(found)}: expected an object")
    return found


_OTHERS = bytes(sorted(set(range(256)) - set(b"{}[]")))
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def _inside(path: str, name: str, where: str) -> str:
    """The path of a file of the folder. Links of a cache lead to the files' own folder, which is next to the folder's."""
    full = os.path.join(path, name)
    real, folder = os.path.realpath(full), os.path.realpath(path)
    cache = os.path.join(os.path.dirname(os.path.dirname(folder)), "blobs")  # models--x/snapshots/hash -> models--x/blobs
    if os.path.dirname(real) not in (folder, cache):
        raise FormatError(f"{where}: {quote(name)} is a link that leads out of the folder")
    return full


def _no_code(path: str, config: dict[str, Any], where: str) -> None:
    """Raises if the network is Python code in the folder and no family here describes it; such code is never read."""
    scripts = sorted(name for name in os.listdir(path) if name.endswith(".py"))
    given = config.get("auto_map")
    known = getattr(family_of(config, where), "AUTO_MAP", "") if isinstance(given, dict) else ""
    if (
        known
        and given
        and all(isinstance(name, str) and re.fullmatch(known, name.rpartition("--")[2]) for name in given.values())
    ):
        return
    if given is not None or scripts:
        said = f"auto_map of {CONFIG}" if given is not None else quote(scripts[0])
        raise UnsupportedError(
            f"{where}: its network is Python code ({said}), and nothing in a folder is executed: export it "
            "as ONNX where it is trusted"
        )


def _weights(path: str, where: str, mmap: bool, budget: Budget) -> dict[str, Any]:
    """The arrays of the folder by name."""
    name = next((name for name in _FILES if os.path.lexists(os.path.join(path, name))), None)
    if name is None:
        raise FormatError(f"{where}: has no weights: expected one of {', '.join(_FILES)}")
    source = open_source(_inside(path, name, where), caller="load", mapped=mmap, budget=budget)
    if not len(source):
        raise FormatError(f"{source.where}: is empty (0 bytes)")
    wanted = safetensors_index.NAME if name.endswith(".json") else "torch" if name.endswith(".bin") else "safetensors"
    return choose(source, wanted).load_weights(source, budget)
