"""Random calls of layers and functions, in torch and here: ``python -m tests.layers.walk --seconds 3600 --seed 0``.

Each layer and function that torch has too, with odd arguments and odd arrays, in torch's float64 with the same weights: shapes
are the same, values are within `check.TOLERANCE` of the largest one, NaN in the same places; what torch refuses, fastlayers
refuses with an error of its own. `differences.DIFFERENCES` has the exceptions, with their reasons. Prints each fault with its
seed, and what was refused; exit status 1 if there was a fault.
"""

from __future__ import annotations

import sys

from tests.random_walk import walk

from .check import kind_of, one

if __name__ == "__main__":
    sys.exit(walk("python -m tests.layers.walk", __doc__, one, kind_of))
