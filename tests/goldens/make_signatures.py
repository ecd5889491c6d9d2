"""Writes torch_signatures.json: arguments and defaults of torch's layers and functions that fastlayers has under the same names.

Run where torch is installed: ``python -m tests.goldens.make_signatures``. Read by tests/layers/test_torch_signatures.py.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import torch

import fastlayers as fl
from fastlayers._lazy import by_name
from fastlayers.functional._homes import HOMES as FUNCTIONS
from fastlayers.layers.homes import HOMES as LAYERS

PAGE = Path(__file__).parent / "torch_signatures.json"
# Constructors that take ``*args``: their base's arguments, less the first, the mode.
_RECURRENT = ("RNN", "LSTM", "GRU")
Arguments = list[list[Any]]


def of_function(name: str) -> Arguments:
    """Arguments of a function of torch.nn.functional, from its signature or, where it is compiled, its docstring."""
    function = getattr(torch.nn.functional, name)
    if "max_pool" in name:  # one of two functions, chosen by a flag
        function = getattr(torch.nn.functional, f"{name}_with_indices")
    try:
        return _plain(inspect.signature(function))
    except ValueError:
        told = re.search(rf"\b{name}\((.*?)\) *->", function.__doc__, re.DOTALL)
        assert told is not None, name
        return _plain(inspect.signature(eval(f"lambda {' '.join(told[1].split()).replace('*,', '')}: 0", {})))


def of_layer(name: str) -> Arguments:
    """Arguments of a layer's constructor."""
    kind = getattr(torch.nn, name)
    if name in _RECURRENT:
        base = _plain(inspect.signature(torch.nn.RNNBase.__init__))[1:]
        if name == "RNN":
            base.insert(3, ["nonlinearity", "tanh"])
        return [argument for argument in base if name == "LSTM" or argument[0] != "proj_size"]
    return _plain(inspect.signature(kind.__init__))


def _plain(signature: inspect.Signature) -> Arguments:
    """Names with defaults, a function by its name; what takes any number is left out."""
    found: Arguments = []
    for p in signature.parameters.values():
        if p.name == "self" or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        default = getattr(p.default, "__name__", p.default)
        found.append([p.name] if p.default is p.empty else [p.name, default])
    return found


def main() -> None:
    """Writes the file."""
    functions = sorted(name for name in by_name(FUNCTIONS) if callable(getattr(torch.nn.functional, name, None)))
    layers = sorted(name for name in by_name(LAYERS) if isinstance(getattr(torch.nn, name, None), type) and hasattr(fl, name))
    told = {"functional": {name: of_function(name) for name in functions}, "nn": {name: of_layer(name) for name in layers}}
    parts = (
        f'"{kind}": {{\n' + ",\n".join(f'"{name}": {json.dumps(arguments)}' for name, arguments in found.items()) + "\n}"
        for kind, found in told.items()
    )
    PAGE.write_text(f'{{"torch": "{torch.__version__.partition("+")[0]}",\n' + ",\n".join(parts) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
