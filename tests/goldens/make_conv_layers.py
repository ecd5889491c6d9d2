"""Writes conv_layers.npz: what torch computes, in float64, for the calls of conv_layer_cases.py.

Run from the root of the repository: ``python -m tests.goldens.make_conv_layers``; made with torch 2.13. Labels are seeds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .conv_layer_cases import FUNCTIONS, LAYERS
from .make_front import run_function, run_layer


def main() -> None:
    results = {case.label: run_layer(case) for case in LAYERS}
    results.update({case.label: run_function(case) for case in FUNCTIONS})
    found = {f"{label}#{i}": array for label, parts in results.items() for i, array in enumerate(parts)}
    np.savez_compressed(Path(__file__).with_name("conv_layers.npz"), **found)


if __name__ == "__main__":
    main()
