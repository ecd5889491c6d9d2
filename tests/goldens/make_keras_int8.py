"""Makes keras_int8.npz: files of int8 Dense and EinsumDense layers as Keras 3.15 (torch) writes them, an input and its result.

Run ``python -m tests.goldens.make_keras_int8`` where it is installed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np


def make() -> dict[str, np.ndarray]:
    """ "<name> file" (bytes), "<name> x", "<name> y"."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    keras.utils.set_random_seed(0)
    rng, made = np.random.default_rng(0), {}
    layers = {
        "dense": (keras.layers.Dense(5, activation="relu"), (3, 8)),
        "dense without bias": (keras.layers.Dense(3, use_bias=False), (2, 4, 8)),
        "einsum": (keras.layers.EinsumDense("abc,cd->abd", (None, 6), bias_axes="d"), (2, 4, 8)),
        "einsum heads": (keras.layers.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de"), (2, 4, 8)),
        "einsum of two": (keras.layers.EinsumDense("abcd,cde->abe", (None, 7)), (2, 4, 2, 3)),
    }
    for name, (layer, shape) in layers.items():
        x = keras.Input(shape[1:])
        net = keras.Model(x, layer(x))
        net.quantize("int8")
        value = rng.standard_normal(shape).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "net.keras"
            net.save(path)
            made[f"{name} file"] = np.frombuffer(path.read_bytes(), np.uint8)
        made[f"{name} x"], made[f"{name} y"] = value, net(value).detach().numpy()
    return made


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("keras_int8.npz"), **make())
