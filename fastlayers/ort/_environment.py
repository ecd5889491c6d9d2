"""Functions of the whole process: threads, the log, what there is and which version it is."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from .._arguments import shown
from ..errors import DTypeError, UnsupportedError
from . import version as VERSION
from ._devices import EP_DEVICE, OrtArenaCfg, OrtEpDevice, OrtMemoryInfo
from ._errors import Fail, OrtRuntimeError

__all__ = [
    "VERSION", "create_and_register_allocator", "create_and_register_allocator_v2", "disable_telemetry_events",
    "enable_telemetry_events", "get_build_info", "get_device", "get_ep_devices", "get_version_string", "has_collective_ops",
    "pool_size", "preload_dlls", "print_debug_info", "register_execution_provider_library", "set_default_logger_callback",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed",
    "unregister_execution_provider_library",
]  # fmt: skip

_SEVERITIES = (10, 20, 30, 40, 50)  # of the log of Python, for verbose, info, warning, error and fatal
_pool = [0]


def _number(what: str, value: Any) -> int:
    if not isinstance(value, (int, np.integer)):
        raise DTypeError(f"{what}(): incompatible function arguments: {shown(value)}: expected an int")
    return int(value)


def pool_size() -> int:
    """The size that `set_global_thread_pool_sizes` was given."""
    return _pool[0]


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """The most threads that one run uses, of sessions whose options say ``use_per_session_threads = False``; the second number
    changes nothing.
    """
    what = "set_global_thread_pool_sizes"
    _number(what, inter_op_num_threads)
    _pool[0] = max(0, _number(what, intra_op_num_threads))


def get_device() -> str:
    """ "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """The version of onnxruntime whose interface this is."""
    return VERSION


def get_build_info() -> str:
    """The version of fastlayers."""
    from .._version import __version__

    return f"ORT Build Info: fastlayers {__version__} in place of onnxruntime {VERSION}"


def has_collective_ops() -> bool:
    """False."""
    return False


def get_ep_devices() -> list[OrtEpDevice]:
    """The processor."""
    return [EP_DEVICE]


def set_seed(seed: int) -> None:
    """Cannot be had, which a warning says: random operators without a seed draw other values in every run."""
    _number("set_seed", seed)
    warnings.warn("set_seed: random operators draw other values in every run unless the model gives them a seed", stacklevel=2)


def set_default_logger_severity(severity: int) -> None:
    """From which severity on fastlayers writes to its log, "fastlayers" of Python's `logging`: 0 (verbose) to 4 (fatal)."""
    number = _number("set_default_logger_severity", severity)
    if not 0 <= number <= 4:
        raise OrtRuntimeError(
            "severity >= 0 && severity <= 4 was false. Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal"
        )
    import logging

    logging.getLogger("fastlayers").setLevel(_SEVERITIES[number])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Changes nothing."""
    _number("set_default_logger_verbosity", verbosity)


def set_default_logger_callback(callback: Any) -> None:
    """Cannot be had, but for None: the log is Python's, and takes handlers.

    Raises:
        UnsupportedError: for a function.
    """
    if callback is not None:
        raise UnsupportedError('set_default_logger_callback: not supported: logging.getLogger("fastlayers") takes handlers')


def enable_telemetry_events() -> None:
    """Changes nothing: nothing is ever sent."""


def disable_telemetry_events() -> None:
    """Changes nothing: nothing is ever sent."""


def create_and_register_allocator(memory: OrtMemoryInfo, arena: OrtArenaCfg | None) -> None:
    """Changes nothing: memory is not managed by arenas."""


def create_and_register_allocator_v2(
    provider: str, memory: OrtMemoryInfo, options: dict[str, str], arena: OrtArenaCfg | None = None
) -> None:
    """Changes nothing: memory is not managed by arenas."""


def register_execution_provider_library(name: str, path: str) -> None:
    """Cannot be had.

    Raises:
        UnsupportedError: always.
    """
    raise UnsupportedError(f"register_execution_provider_library: providers of libraries ({shown(path)}) are not supported")


def unregister_execution_provider_library(name: str) -> None:
    """There is none that could be.

    Raises:
        Fail: always.
    """
    raise Fail(f"Execution provider library: {name} was not registered.")


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Changes nothing: no libraries of a GPU are needed."""


def print_debug_info() -> None:
    """Prints versions and the machine."""
    import platform

    from .. import kernels
    from .._version import __version__

    print(f"fastlayers {__version__} in place of onnxruntime {VERSION}", f"kernels: {kernels.current()}", sep="\n")
    print(f"platform: {platform.platform()}", f"Python: {sys.version}", f"numpy: {np.__version__}", sep="\n")
