"""From JAX: the network as ONNX by jax2onnx, or Flax's parameters alone as msgpack."""

from __future__ import annotations

import tempfile
from pathlib import Path

import flax.linen
import flax.serialization
import jax
import jax2onnx
import numpy as np

import fastlayers as fl


class Net(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = jax.nn.gelu(flax.linen.Dense(16)(x))
        return flax.linen.Dense(3)(x)


net, x = Net(), np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
parameters = net.init(jax.random.key(0), x)
folder = Path(tempfile.mkdtemp())

# A network; sizes that may change get names.
jax2onnx.to_onnx(
    lambda x: net.apply(parameters, x), inputs=[("batch", 8)], return_mode="file", output_path=str(folder / "net.onnx")
)

# Weights alone. Flax's kernels are (in, out), as Keras' are; torch's and ours (out, in).
(folder / "net.msgpack").write_bytes(flax.serialization.to_bytes(parameters))

want = np.asarray(net.apply(parameters, x[:1]))
print("net.onnx", "worst error", abs(fl.load(folder / "net.onnx")(x[:1]) - want).max())
weights = fl.load_weights(folder / "net.msgpack")
ours = fl.Sequential(fl.Linear(8, 16), fl.GELU("tanh"), fl.Linear(16, 3))
for i, layer in enumerate((ours[0], ours[2])):
    layer.load_keras([weights[f"params.Dense_{i}.{name}"] for name in ("kernel", "bias")])
print("net.msgpack", "worst error", abs(ours(x[:1]) - want).max())
