"""Can CUDA be used here? Answered without importing Numba and without starting the driver, which a fork would not survive."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

from ..._extras import install
from ...errors import DeviceError, Error, MissingExtraError

__all__ = ["problem"]

SIMULATOR = "NUMBA_ENABLE_CUDASIM"


def problem(what: str) -> Error | None:
    """The error that `what` must raise, or None where there is a GPU (or Numba's simulator of one)."""
    if not _installed():
        return MissingExtraError(f"{what} needs Numba's CUDA target, which is not installed: {install('cuda')}")
    if os.environ.get(SIMULATOR, "0") not in ("", "0"):
        return None
    reason = _missing_gpu()
    return None if reason is None else DeviceError(f"{what}: CUDA cannot be used on this machine: {reason}")


def _installed() -> bool:
    """Numba and its CUDA target, which is its own package or, in older versions, a part of it."""
    spec = importlib.util.find_spec("numba")
    if spec is None:
        return False
    inside = any(Path(folder, "cuda").is_dir() for folder in spec.submodule_search_locations or ())
    return inside or importlib.util.find_spec("numba_cuda") is not None


def _missing_gpu() -> str | None:
    """Why there is no GPU to use, or None if there is one."""
    windows = sys.platform == "win32"
    if _load("nvcuda.dll" if windows else "libcuda.so.1") is None:
        return "no NVIDIA driver was found (expected one with a GPU of compute capability 7.5 or later)"
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU"
    # NVIDIA's management library counts GPUs without starting the driver in this process.
    library = _load("nvml.dll" if windows else "libnvidia-ml.so.1")
    if library is None:
        return None  # the driver itself will say it at the first call
    if library.nvmlInit_v2() != 0:
        return "the NVIDIA driver does not answer"
    try:
        count = ctypes.c_uint(0)
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0 or not count.value:
            return "the NVIDIA driver knows of no GPU"
    finally:
        library.nvmlShutdown()
    return None


def _load(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None
