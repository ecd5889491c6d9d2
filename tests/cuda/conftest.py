"""Collected where there is a GPU or Numba's simulator.

Under the simulator, blocks run as `simulator.py` says; under compute-sanitizer, each array has memory of its own.
"""

from __future__ import annotations

import os

from fastlayers.kernels import dispatch

# Neither a GPU nor Numba's simulator: nothing here can run.
collect_ignore_glob = [] if "cuda" in dispatch.available() else ["test_*.py"]

if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
    from .simulator import install

    install()

if os.environ.get("FASTLAYERS_EXACT_MEMORY"):
    import numpy as np

    from fastlayers.kernels.cuda import _device, _driver, _memory

    def _exact(nbytes: int) -> _memory.Block:
        """What is read past its end is no longer a neighbour's, or what was there before."""
        return _memory.Block(_driver.numba_cuda.device_array(max(nbytes, 8), np.uint8))

    _device.lent = _device.kept = _exact
