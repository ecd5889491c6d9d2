"""Makes norm.npz: layer, RMS and batch normalization by torch (2.13, in float64); local response by onnxruntime and onnx.

Run ``python -m tests.goldens.make_norm`` where they are installed; seed 0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

ROWS = (5, 37)
EPSILON = 1e-3
IMAGE = (2, 11, 6)
# size, alpha, beta, bias
RESPONSES: tuple[tuple[int, float, float, float], ...] = (
    (5, 1e-4, 0.75, 1.0),
    (3, 0.5, 0.75, 2.0),
    (4, 0.5, 0.6, 1.5),
    (1, 1.0, 1.0, 0.5),
    (2, 0.1, 0.75, 1.0),
    (30, 3.0, 0.5, 1.0),
)


def response(x: np.ndarray, size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    """LRN by onnxruntime, or by the operator set's own reference where the size is even."""
    import onnxruntime
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    # The reference counts images where it should count channels: as many of them as there are channels make it right.
    images = np.concatenate([x] * 6)[:11].reshape(11, 11, 2, 3)
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=alpha, beta=beta, bias=bias)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, images.shape) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "lrn", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 10
    if size % 2:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        y = session.run(None, {"x": images})[0]
    else:
        y = ReferenceEvaluator(model).run(None, {"x": images})[0]
    return np.asarray(y, np.float32)[:2].reshape(x.shape)


def make() -> dict[str, np.ndarray]:
    """x, weight, bias and "layer", "layer plain", "rms", "rms plain"; image, scale, shift and "affine"; "lrn <number>"."""
    import torch

    torch.manual_seed(0)
    functional = torch.nn.functional
    x = torch.randn(ROWS) * 3 + torch.tensor([0.0, 1.0, 100.0, -1000.0, 0.0])[:, None]
    x[4] = 7  # no variance
    weight, bias = torch.randn(ROWS[1]), torch.randn(ROWS[1])
    image = torch.randn(IMAGE) * 4
    mean, variance, gamma, beta = torch.randn(11), torch.rand(11) + 0.5, torch.randn(11), torch.randn(11)
    d, w, b = x.double(), weight.double(), bias.double()
    norm = functional.batch_norm(image.double(), *(t.double() for t in (mean, variance, gamma, beta)), eps=EPSILON)
    scale = gamma.double() / (variance.double() + EPSILON).sqrt()
    arrays = {
        "x": x,
        "weight": weight,
        "bias": bias,
        "layer": functional.layer_norm(d, ROWS[1:], w, b, EPSILON),
        "layer plain": functional.layer_norm(d, ROWS[1:], eps=EPSILON),
        "rms": functional.rms_norm(d, ROWS[1:], w, EPSILON),
        "rms plain": functional.rms_norm(d, ROWS[1:], eps=EPSILON),
        "image": image,
        "scale": scale,
        "shift": beta.double() - mean.double() * scale,
        "affine": norm.relu(),
    }
    golden = {name: value.float().numpy() for name, value in arrays.items()}
    for number, parameters in enumerate(RESPONSES):
        golden[f"lrn {number}"] = response(golden["image"], *parameters)
    return golden


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("norm.npz"), **make())
