"""Makes normalization_layers.npz: torch's normalization layers (2.13, in float64), ONNX's operators (onnxruntime).

Run ``python -m tests.goldens.make_normalization_layers`` where they are installed. Inputs come from seeds: see `arrays`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

# layer, its arguments, keyword arguments, the shape of x
LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("BatchNorm1d", (5,), {}, (3, 5)),
    ("BatchNorm1d", (5,), {"eps": 1e-3, "affine": False}, (2, 5, 4)),
    ("BatchNorm2d", (3,), {}, (2, 3, 4, 5)),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, (2, 3, 4, 5)),
    ("BatchNorm3d", (2,), {"eps": 0.1}, (1, 2, 3, 2, 2)),
    ("GroupNorm", (3, 6), {}, (2, 6, 3, 5)),
    ("GroupNorm", (1, 4), {"affine": False, "eps": 1e-3}, (3, 4)),
    ("GroupNorm", (4, 4), {}, (1, 4, 7)),
    ("InstanceNorm1d", (3,), {"affine": True}, (2, 3, 5)),
    ("InstanceNorm1d", (3,), {}, (3, 5)),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, (2, 3, 4, 3)),
    ("InstanceNorm2d", (2,), {"eps": 0.5}, (2, 5, 3)),
    ("InstanceNorm3d", (2,), {"affine": True}, (2, 2, 2, 3, 2)),
    ("LayerNorm", (7,), {}, (2, 3, 7)),
    ("LayerNorm", ((3, 5),), {"eps": 1e-3}, (2, 3, 5)),
    ("LayerNorm", (7,), {"bias": False}, (4, 7)),
    ("LayerNorm", (6,), {"elementwise_affine": False}, (6,)),
    ("RMSNorm", (7,), {}, (2, 3, 7)),
    ("RMSNorm", ((2, 4),), {"eps": 1e-6}, (3, 2, 4)),
    ("LocalResponseNorm", (5,), {"alpha": 0.5, "k": 2.0}, (2, 9, 3, 2)),
    ("LocalResponseNorm", (4,), {"alpha": 0.5, "beta": 0.6}, (2, 7, 3)),
]
# operator, attributes, opset, shapes of its inputs
OPERATORS: list[tuple[str, dict[str, Any], int, tuple[tuple[int, ...], ...]]] = [
    ("GroupNormalization", {"num_groups": 3}, 21, ((2, 6, 4, 3), (6,), (6,))),
    ("GroupNormalization", {"num_groups": 3, "epsilon": 0.01}, 18, ((2, 6, 4), (3,), (3,))),
    ("InstanceNormalization", {"epsilon": 0.01}, 17, ((2, 4, 3, 5), (4,), (4,))),
    ("LayerNormalization", {"axis": 1}, 17, ((2, 3, 4), (3, 4), (3, 4))),
    ("MeanVarianceNormalization", {"axes": [0, 2]}, 13, ((2, 3, 4),)),
    ("LpNormalization", {"axis": 1, "p": 1}, 22, ((2, 3, 4),)),
    ("LpNormalization", {"axis": -1, "p": 2}, 22, ((2, 3, 4),)),
    ("LRN", {"size": 3, "alpha": 0.5}, 13, ((2, 5, 3, 2),)),
]


def arrays(number: int, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Normal numbers, positive ones for variances; the case's number is the seed."""
    rng = np.random.default_rng(number)
    made = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return {name: np.abs(a) + np.float32(0.1) if name == "running_var" else a for name, a in made.items()}


def model(op: str, attributes: dict[str, Any], opset: int, shapes: tuple[tuple[int, ...], ...]) -> bytes:
    """The operator alone as a file."""
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape) for i, shape in enumerate(shapes)]
    node = helper.make_node(op, [e.name for e in ends], ["y"], **attributes)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shapes[0])
    made = helper.make_model(helper.make_graph([node], op, ends, [y]), opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 10
    return bytes(made.SerializeToString())


def make() -> dict[str, np.ndarray]:
    """ "layer <number>" and "operator <number>"."""
    import onnxruntime
    import torch

    made = {}
    for i, (name, args, kwargs, shape) in enumerate(LAYERS):
        layer = getattr(torch.nn, name)(*args, **kwargs).eval().double()
        state = {k: v for k, v in layer.state_dict().items() if k != "num_batches_tracked"}
        given = arrays(i, {"x": shape, **{k: tuple(v.shape) for k, v in state.items()}})
        layer.load_state_dict({k: torch.tensor(given[k]).double() for k in state}, strict=False)
        with torch.no_grad():
            made[f"layer {i}"] = layer(torch.tensor(given["x"]).double()).numpy().astype(np.float32)
    for i, case in enumerate(OPERATORS):
        session = onnxruntime.InferenceSession(model(*case), providers=["CPUExecutionProvider"])
        given = arrays(100 + i, {f"x{k}": shape for k, shape in enumerate(case[3])})
        made[f"operator {i}"] = session.run(None, given)[0]
    return made


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("normalization_layers.npz"), **make())
