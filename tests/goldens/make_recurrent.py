"""Makes recurrent.npz: LSTM, GRU and simple RNN by torch 2.13 (in float64) and, what torch lacks, by onnxruntime 1.31 (float32).

Run ``python -m tests.goldens.make_recurrent`` where torch, onnx and onnxruntime are installed; seed 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
# Our gates' places in the order of ONNX: its LSTM has i o f c for our i f g o, its GRU z r h for our r z n.
ONNX_ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
ONNX_NAMES = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "leaky_relu": "LeakyRelu", "hardsigmoid": "HardSigmoid"}
ONNX_NAMES |= {"elu": "Elu", "softsign": "Softsign", "softplus": "Softplus"}

HARD = ["hardsigmoid", 0.2, 0.5]
# "shape" is steps, batch, inputs, hidden; "flags" name what is true; "activations" are those of each direction. A state is
# given unless "zero". No length is 0: torch refuses it, and onnxruntime gives zeros instead of the state before.
CASES: tuple[dict[str, Any], ...] = (
    {"by": "torch", "kernel": "lstm", "shape": (1, 3, 5, 7), "flags": "zero"},
    {"by": "torch", "kernel": "lstm", "shape": (9, 3, 4, 6), "directions": 2},
    {"by": "torch", "kernel": "lstm", "shape": (9, 1, 1, 17), "flags": "batch_first"},
    {"by": "torch", "kernel": "lstm", "shape": (12, 2, 3, 4), "directions": 2, "flags": "batch_first no_bias zero"},
    {"by": "torch", "kernel": "lstm", "shape": (40, 1, 2, 5)},
    {"by": "torch", "kernel": "lstm", "shape": (8, 5, 3, 6), "directions": 2, "lengths": (3, 8, 1, 5, 5)},
    {"by": "torch", "kernel": "gru", "shape": (1, 3, 5, 7), "flags": "zero"},
    {"by": "torch", "kernel": "gru", "shape": (9, 3, 4, 6), "directions": 2},
    {"by": "torch", "kernel": "gru", "shape": (30, 1, 3, 7), "flags": "batch_first no_bias"},
    {"by": "torch", "kernel": "gru", "shape": (8, 5, 3, 6), "directions": 2, "lengths": (3, 8, 1, 5, 5), "flags": "batch_first"},
    {"by": "torch", "kernel": "rnn", "shape": (9, 3, 4, 6), "directions": 2},
    {"by": "torch", "kernel": "rnn", "shape": (7, 2, 3, 5), "activations": [[["relu"]]], "flags": "batch_first zero"},
    {"by": "torch", "kernel": "rnn", "shape": (8, 4, 3, 9), "directions": 2, "lengths": (8, 2, 2, 7)},
    {"by": "onnxruntime", "kernel": "lstm", "shape": (6, 2, 3, 7), "flags": "peephole"},
    {"by": "onnxruntime", "kernel": "lstm", "shape": (6, 3, 3, 5), "directions": 2, "flags": "peephole", "lengths": (6, 1, 4)},
    {"by": "onnxruntime", "kernel": "lstm", "shape": (6, 2, 3, 6), "clip": 0.5},
    {"by": "onnxruntime", "kernel": "lstm", "shape": (5, 2, 3, 6), "clip": 1.0, "flags": "peephole reverse"},
    {"by": "onnxruntime", "kernel": "lstm", "shape": (6, 2, 3, 6), "flags": "couple_input_forget"},
    {"by": "onnxruntime", "kernel": "lstm", "shape": (6, 2, 3, 5), "flags": "couple_input_forget peephole zero"},
    {"by": "onnxruntime", "kernel": "lstm", "shape": (5, 2, 3, 4), "directions": 2,
     "activations": [[HARD, ["relu"], ["softsign"]], [["sigmoid"], ["leaky_relu", 0.1], ["elu", 1.0]]]},
    {"by": "onnxruntime", "kernel": "gru", "shape": (6, 2, 3, 7), "flags": "early"},
    {"by": "onnxruntime", "kernel": "gru", "shape": (6, 3, 3, 5), "directions": 2, "flags": "early", "lengths": (2, 6, 3)},
    {"by": "onnxruntime", "kernel": "gru", "shape": (6, 1, 3, 5), "flags": "early reverse", "clip": 0.5},
    {"by": "onnxruntime", "kernel": "gru", "shape": (6, 2, 3, 6), "clip": 0.5},
    {"by": "onnxruntime", "kernel": "gru", "shape": (6, 3, 3, 5), "flags": "reverse", "lengths": (2, 6, 1)},
    {"by": "onnxruntime", "kernel": "gru", "shape": (5, 2, 3, 4), "directions": 2,
     "activations": [[HARD, ["softsign"]], [["sigmoid"], ["leaky_relu", 0.1]]]},
    {"by": "onnxruntime", "kernel": "gru", "shape": (5, 2, 3, 4), "flags": "early", "activations": [[HARD, ["elu", 0.5]]]},
    {"by": "onnxruntime", "kernel": "rnn", "shape": (6, 3, 3, 5), "flags": "reverse", "lengths": (2, 6, 1)},
    {"by": "onnxruntime", "kernel": "rnn", "shape": (6, 2, 3, 5), "directions": 2, "activations": [[["softplus"]], [HARD]]},
    {"by": "onnxruntime", "kernel": "rnn", "shape": (6, 2, 3, 5), "clip": 0.25},
)  # fmt: skip


def arrays(case: dict[str, Any], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The inputs of a case by the names of the kernels' arguments."""
    (steps, batch, inputs, hidden), d, flags = case["shape"], case.get("directions", 1), case.get("flags", "").split()
    g = GATES[case["kernel"]] * hidden

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    result = {
        "x": normal(*((batch, steps) if "batch_first" in flags else (steps, batch)), inputs),
        "w_ih": normal(d, g, inputs, scale=inputs**-0.5),
        "w_hh": normal(d, g, hidden, scale=hidden**-0.5),
    }
    if "no_bias" not in flags:
        result |= {"b_ih": normal(d, g), "b_hh": normal(d, g)}
    if "zero" not in flags:
        result["h0"] = np.tanh(normal(d, batch, hidden))
        if case["kernel"] == "lstm":
            result["c0"] = normal(d, batch, hidden)
    if "peephole" in flags:
        result["peephole"] = normal(d, 3 * hidden)
    if "lengths" in case:
        result["lengths"] = np.array(case["lengths"], np.int32)
    return result


def by_torch(case: dict[str, Any], given: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """out, hn and for an LSTM cn; sequences with lengths are packed ones, padded with zeros afterwards."""
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    (steps, _, inputs, hidden), d, flags = case["shape"], case.get("directions", 1), case.get("flags", "").split()
    options: dict[str, Any] = {"nonlinearity": "relu"} if "activations" in case else {}
    batch_first, bias = "batch_first" in flags, "b_ih" in given
    kind = getattr(torch.nn, case["kernel"].upper())
    net = kind(inputs, hidden, bias=bias, batch_first=batch_first, bidirectional=d == 2, **options).double()
    tensors = {name: torch.from_numpy(array) for name, array in given.items()}
    names = {"weight_ih": "w_ih", "weight_hh": "w_hh", "bias_ih": "b_ih", "bias_hh": "b_hh"}
    net.load_state_dict(
        {f"{long}_l0{'_reverse' * k}": tensors[short][k] for k in range(d) for long, short in names.items() if short in given}
    )
    state = tuple(tensors[name].double() for name in ("h0", "c0") if name in given)
    x: Any = tensors["x"].double()
    if "lengths" in given:
        x = pack_padded_sequence(x, tensors["lengths"].long(), batch_first, enforce_sorted=False)
    with torch.no_grad():
        out, final = net(x, (state if case["kernel"] == "lstm" else state[0]) if state else None)
    if "lengths" in given:
        out = pad_packed_sequence(out, batch_first, total_length=steps)[0]
    return tuple(a.float().numpy() for a in (out, *(final if case["kernel"] == "lstm" else (final,))))


def by_onnxruntime(case: dict[str, Any], given: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Y, Y_h and for an LSTM Y_c."""
    import onnxruntime
    from onnx import TensorProto, helper

    kernel, d, flags = case["kernel"], case.get("directions", 1), case.get("flags", "").split()

    def gates(array: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
        parts = np.split(array, len(order), axis=1)
        return np.concatenate([parts[k] for k in order], axis=1)

    order = ONNX_ORDER[kernel]
    feeds = {"X": given["x"], "W": gates(given["w_ih"], order), "R": gates(given["w_hh"], order)}
    feeds["B"] = np.concatenate([gates(given["b_ih"], order), gates(given["b_hh"], order)], axis=1)
    names = {"sequence_lens": "lengths", "initial_h": "h0", "initial_c": "c0"}
    feeds |= {long: given[short] for long, short in names.items() if short in given}
    if "peephole" in given:
        feeds["P"] = gates(given["peephole"], (0, 2, 1))  # ours i f o, theirs i o f
    inputs = ["X", "W", "R", "B", "sequence_lens", "initial_h"] + ["initial_c", "P"] * (kernel == "lstm")
    attributes: dict[str, Any] = {"hidden_size": case["shape"][3]}
    attributes["direction"] = "bidirectional" if d == 2 else "reverse" if "reverse" in flags else "forward"
    if "clip" in case:
        attributes["clip"] = case["clip"]
    if "couple_input_forget" in flags:
        attributes["input_forget"] = 1
    if kernel == "gru":
        attributes["linear_before_reset"] = int("early" not in flags)
    if "activations" in case:
        chosen = [f for direction in case["activations"] for f in direction]
        attributes["activations"] = [ONNX_NAMES[name] for name, *_ in chosen]
        attributes["activation_alpha"] = [p[0] for _, *p in chosen if p]
        attributes["activation_beta"] = [p[1] for _, *p in chosen if len(p) > 1]
    outputs = ["Y", "Y_h"] + ["Y_c"] * (kernel == "lstm")
    node = helper.make_node(kernel.upper(), [n if n in feeds else "" for n in inputs], outputs, **attributes)
    types = {name: TensorProto.INT32 if name == "sequence_lens" else TensorProto.FLOAT for name in feeds}
    graph = helper.make_graph(
        [node],
        "golden",
        [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in feeds.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return tuple(session.run(outputs, feeds))


def make() -> dict[str, np.ndarray]:
    """The arrays of the golden file: "cases" (JSON), and each case's arrays under "<number>.<name>"."""
    rng = np.random.default_rng(0)
    result = {"cases": np.array(json.dumps(CASES))}
    for number, case in enumerate(CASES):
        given = arrays(case, rng)
        found = (by_torch if case["by"] == "torch" else by_onnxruntime)(case, given)
        given |= dict(zip(("out", "hn", "cn"), found, strict=False))
        result |= {f"{number}.{name}": array for name, array in given.items()}
    return result


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("recurrent.npz"), **make())
