"""Makes gguf.npz: random blocks of every quantized type that is read, and what gguf.quants.dequantize makes of them.

Run with gguf 0.19.0: python -m tests.goldens.make_gguf
"""

from __future__ import annotations

from pathlib import Path

import gguf  # type: ignore[import-not-found]
import numpy as np

from ..formats.gguf_build import BLOCKS, blocks


def main() -> None:
    held = {}
    for i, (name, (number, terms, size)) in enumerate(BLOCKS.items()):
        raw = np.concatenate([blocks(name, 3, i), blocks(name, 2, i + 100, wild=True)])
        made = gguf.quants.dequantize(raw.reshape(1, -1), gguf.GGMLQuantizationType(number))
        assert raw.shape[1] == size and made.shape == (1, terms * len(raw))
        held[f"{name}/raw"], held[f"{name}/bits"] = raw, made.view(np.uint32)[0]
    np.savez_compressed(Path(__file__).parent / "gguf.npz", **held)


if __name__ == "__main__":
    main()
