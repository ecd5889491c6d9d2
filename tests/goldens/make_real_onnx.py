"""Thins what ONNX Runtime answers for trained models into real_onnx.npz.

    python tests/goldens/make_real_onnx.py FOLDER     FOLDER has NAME.npz with in_* and out_*, one file a model

Inputs are stored as they are; of large outputs every so-many-th number is kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.examples.real_models import GOLDENS, MODELS, thinned  # noqa: E402


def main(folder: str) -> None:
    """Writes the file."""
    found = {}
    for real in MODELS:
        with np.load(Path(folder, f"{real.name}.npz")) as file:
            for key in file.files:
                if key.startswith("in_"):
                    found[f"{real.name}/{key}"] = file[key]
                else:
                    found[f"{real.name}/{key}"] = thinned(file[key])
                    found[f"{real.name}/shape_{key[4:]}"] = np.array(file[key].shape)
    np.savez_compressed(GOLDENS, **found)


if __name__ == "__main__":
    main(sys.argv[1])
