"""Makes the goldens of the safetensors reader with the real writer: every dtype it has, and what torch makes of each in float32.

Run from the root of the repository: ``python -m tests.goldens.make_safetensors``.
Made with safetensors 0.8.0, torch 2.13.0, numpy 2.4.6. No seed: the small floats are all codes, the rest is counted up.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors import TensorSpec, serialize

HERE = Path(__file__).parent

KEPT = {
    "bool": torch.bool,
    "uint8": torch.uint8,
    "int8": torch.int8,
    "uint16": torch.uint16,
    "int16": torch.int16,
    "uint32": torch.uint32,
    "int32": torch.int32,
    "uint64": torch.uint64,
    "int64": torch.int64,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    "complex64": torch.complex64,
}
WIDENED = {
    "bfloat16": torch.bfloat16,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
    "float8_e4m3fnuz": torch.float8_e4m3fnuz,
    "float8_e5m2fnuz": torch.float8_e5m2fnuz,
    "float8_e8m0fnu": torch.float8_e8m0fnu,
}


def main() -> None:
    """Writes all_dtypes.safetensors and, as plain numpy arrays, the values that must come out of it."""
    tensors = {f"kept.{name}": torch.arange(-3, 3).abs().to(dtype).reshape(2, 3) for name, dtype in KEPT.items()}
    tensors |= {f"scalar.{name}": torch.tensor(1).to(dtype) for name, dtype in KEPT.items()}
    tensors["empty"] = torch.zeros(0, 3)
    for name, dtype in WIDENED.items():
        codes = torch.arange(256, dtype=torch.uint8)
        if dtype.itemsize == 2:  # all upper halves, with a few lower ones
            codes = torch.stack([codes.flip(0), codes], dim=1).reshape(-1)
        tensors[f"widened.{name}"] = codes.view(dtype)
    specs = {
        name: TensorSpec(dtype=str(t.dtype).removeprefix("torch."), shape=list(t.shape), data_ptr=t.data_ptr(), data_len=t.nbytes)
        for name, t in tensors.items()
    }
    (HERE / "all_dtypes.safetensors").write_bytes(serialize(specs, {"made by": "safetensors", "ünï": "cödé"}))
    expected = {name: (t.float() if name.startswith("widened.") else t).numpy() for name, t in tensors.items()}
    np.savez_compressed(HERE / "all_dtypes.npz", **expected)


if __name__ == "__main__":
    main()
