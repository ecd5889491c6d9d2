"""Random models of ai.onnx.ml, in onnxruntime and here: ``python -m tests.formats.classical.walk --seconds 3600 --seed 0``.

Trees, products, support vectors, scalers and encoders, over rows whose values are the thresholds and the values next to them.
Labels are onnxruntime's, scores are within `check.EXACT` or `check.ROUNDED` of the largest one, and a row has the same bits in
any batch. `check.DIFFERENCES` says where onnxruntime is not followed. Prints each fault with its seed, and what was refused;
exit status 1 if there was a fault.
"""

from __future__ import annotations

import sys

from tests.random_walk import walk

from .check import kind_of, one

if __name__ == "__main__":
    sys.exit(walk("python -m tests.formats.classical.walk", __doc__, one, kind_of))
