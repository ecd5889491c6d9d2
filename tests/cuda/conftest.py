"""Under the simulator, blocks run as `simulator.py` says."""

from __future__ import annotations

import os

if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
    from .simulator import install

    install()
