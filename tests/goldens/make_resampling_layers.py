"""Writes resampling_layers.npz: what torch computes, in float64, for the calls of resampling_cases.py.

Run from the root of the repository: ``python -m tests.goldens.make_resampling_layers``; made with torch 2.13 and numpy 2.4.
Labels are seeds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .make_front import run_function, run_layer
from .resampling_cases import FUNCTIONS, LAYERS


def main() -> None:
    found = {case.label: run_layer(case)[0] for case in LAYERS}
    found.update({case.label: run_function(case)[0] for case in FUNCTIONS})
    np.savez_compressed(Path(__file__).with_name("resampling_layers.npz"), **found)


if __name__ == "__main__":
    main()
