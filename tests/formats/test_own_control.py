"""Our own file with loops in it, changed as somebody malicious would: an error of ours, at the latest when it runs."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.model.model import Model
from tests.program.test_stages import decoder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path: Path = tmp_path_factory.mktemp("own") / "m.safetensors"
    Model(decoder()).save(path)
    return path.read_bytes()


def edited(saved: bytes, change: Callable[[Any, int], Any]) -> bytes:
    """The file with its graph changed; `change` gets the graph and the position of the loop."""
    (length,) = struct.unpack("<Q", saved[:8])
    head = copy.deepcopy(json.loads(saved[8 : 8 + length]))
    graph = json.loads(head["__metadata__"]["graph"])
    change(graph, next((i for i, node in enumerate(graph["nodes"]) if node[0] == "Loop"), -1))
    head["__metadata__"]["graph"] = json.dumps(graph)
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + saved[8 + length :]


def body(graph: Any, at: int) -> Any:
    return graph["nodes"][at][3]["body"]["graph"]


CHANGES: dict[str, tuple[Callable[[Any, int], Any], type[Exception], str]] = {
    "an output less": (lambda g, at: body(g, at)["outputs"].pop(), fl.FormatError, "has 2 outputs, more than its body gives"),
    "an input more": (
        lambda g, at: body(g, at)["inputs"].append(["j", None, "float32"]), fl.FormatError, "has 4 inputs and 3 outputs",
    ),
    "a name of nothing": (lambda g, at: body(g, at)["nodes"][1][1].__setitem__(0, "z"), fl.FormatError, "reads 'z', which"),
    "an output of nothing": (lambda g, at: g["outputs"][0].__setitem__(0, "zz"), fl.FormatError, "gives 'zz', which nothing"),
    "no graph": (lambda g, at: g["nodes"][at][3].__setitem__("body", 3), fl.FormatError, "expected a graph for body"),
    "another operator": (lambda g, at: g["nodes"][at].__setitem__(0, "If"), fl.FormatError, "expected one, the condition"),
    "a scan of nothing": (
        lambda g, at: (g["nodes"][at].__setitem__(0, "Scan"), g["nodes"][at][3].__setitem__("num_scan_inputs", "a")),
        fl.FormatError, "broken",
    ),
    "an unknown kind": (lambda g, at: g["inputs"][0].append("heap"), fl.FormatError, "of an unknown kind"),
    "no end": (lambda g, at: g["nodes"][at][1].__setitem__(0, None), fl.LimitError, "takes more than 50 iterations"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_changed(saved: bytes, name: str) -> None:
    change, error, text = CHANGES[name]
    with pytest.raises(error, match=text):
        fl.load(edited(saved, change), max_rounds=50)(np.ones((2, 8), np.float32), np.array(3))


def test_unchanged(saved: bytes) -> None:
    fl.load(edited(saved, lambda g, at: None), max_rounds=50)(np.ones((2, 8), np.float32), np.array(3))
