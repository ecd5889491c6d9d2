"""Writes fastlayers/data/silero_vad_16k.safetensors: the weights that are in it, and `fastlayers.cli.vad` as a graph.

    python -m tests.goldens.make_example

Weights keep the names and shapes that `VoiceActivity` has for them, so the same file serves `load` and `load_state_dict`. Inputs
and outputs are named and shaped like those of silero-vad's own ONNX file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.cli import demo, vad
from fastlayers.formats import own
from fastlayers.graph.record import record
from fastlayers.ir.graph import Graph, Node

ABOUT = {"name": "silero_vad", "origin": "silero-vad 6.2.3", "license": "MIT"}


class Published(fl.Layer):
    """The network with the interface that silero-vad publishes: state (2, n, 128), and the one rate that it is for."""

    def __init__(self, net: vad.VoiceActivity) -> None:
        self.net = net

    def forward(self, input: Any, state: Any, sr: Any) -> dict[str, Any]:
        input = record("OneOf", input, sr, values=(vad.RATE,), name="sr")
        probability, new = self.net(input, vad.State(state[0], state[1]))
        return {
            "output": fl.functional.reshape(probability, (-1, 1)),
            "stateN": fl.functional.concat([new.h[None], new.c[None]], 0),
        }


def network() -> Graph:
    """The graph, its weights named as in the file."""
    made = fl.graph.Input
    inputs = (made("input", ("n", vad.CONTEXT + vad.FRAME)), made("state", (2, "n", 128)), made("sr", (), np.int64))
    graph = fl.graph.trace(Published(demo.load_network()), *inputs)

    def plain(name: str | None) -> str | None:
        return name.removeprefix("net.") if name in graph.constants else name

    nodes = tuple(Node(n.op, tuple(map(plain, n.inputs)), n.outputs, n.attributes) for n in graph.nodes)
    constants = {name.removeprefix("net."): array for name, array in graph.constants.items()}
    return Graph(graph.inputs, graph.outputs, nodes, constants, graph.values)


if __name__ == "__main__":
    own.save(network(), {"optimize": True}, ABOUT, fl.example("silero_vad"), {})
