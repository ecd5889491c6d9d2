"""Makes flax.msgpack: what flax.serialization.to_bytes writes: arrays of all dtypes, one in chunks, and what is no array.

Run with flax 0.12.8 and its jax: python tests/goldens/make_flax.py
"""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp  # type: ignore[import-not-found]
import numpy as np
from flax import serialization  # type: ignore[import-not-found]

HERE = Path(__file__).parent
NAMES = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
)  # fmt: skip


def main() -> None:
    numbers = np.arange(6).reshape(2, 3) - 2
    tree = {
        "params": {
            "Dense_0": {"kernel": numbers.astype(np.float32) / 4, "bias": jnp.asarray([1.5, -2.0, 3.0], jnp.bfloat16)},
            "dtypes": {name: (numbers % 2 if name == "bool" else abs(numbers)).astype(name) for name in NAMES},
            "eight": jnp.asarray([0.5, -448.0], jnp.float8_e4m3fn),
            "empty": np.zeros((0, 3), np.float32),
            "scalar": np.float32(2.5),
        },
        "list": [np.int32(1), np.arange(3)],
        "step": 7, "rate": 0.1, "name": "adam", "nothing": None, "yes": True, "complex": 1 + 2j,
    }  # fmt: skip
    serialization.MAX_CHUNK_SIZE = 64
    tree["params"]["long"] = np.arange(40, dtype=np.float32).reshape(5, 8)
    (HERE / "flax.msgpack").write_bytes(serialization.to_bytes(tree))


if __name__ == "__main__":
    main()
