"""onnxruntime's Python interface over fastlayers, for code that is written for onnxruntime: its names, types, checks and errors.

``import fastlayers.ort as onnxruntime`` in one's own code; `install()` for packages that import onnxruntime by name; and
``python -m fastlayers.ort script.py`` without a change of any code. What is the same and what is not: docs/onnxruntime.md.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .._lazy import by_name, exports

if TYPE_CHECKING:
    from ._binding import IOBinding as IOBinding
    from ._binding import SessionIOBinding as SessionIOBinding
    from ._described import ModelMetadata as ModelMetadata
    from ._described import NodeArg as NodeArg
    from ._devices import *
    from ._enums import ExecutionMode as ExecutionMode
    from ._enums import ExecutionOrder as ExecutionOrder
    from ._enums import GraphOptimizationLevel as GraphOptimizationLevel
    from ._enums_of_devices import *
    from ._environment import *
    from ._errors import *
    from ._options import RunOptions as RunOptions
    from ._options import SessionOptions as SessionOptions
    from ._providers import get_all_providers as get_all_providers
    from ._providers import get_available_providers as get_available_providers
    from ._stand_in import install as install
    from ._stand_in import uninstall as uninstall
    from ._values import OrtDevice as OrtDevice
    from ._values import OrtValue as OrtValue
    from ._values import copy_tensors as copy_tensors
    from .session import InferenceSession as InferenceSession
    from .session import Session as Session

# The version of onnxruntime whose Python module this is checked against, and what packages ask beside it.
__version__ = version = "1.32.0"
package_name, cuda_version = "onnxruntime", ""
import_capi_exception = None

_HOMES = {
    "_binding": "IOBinding SessionIOBinding",
    "_described": "ModelMetadata NodeArg",
    "_devices": "OrtArenaCfg OrtEpDevice OrtHardwareDevice OrtMemoryInfo",
    "_enums": "ExecutionMode ExecutionOrder GraphOptimizationLevel",
    "_enums_of_devices": (
        "ArenaExtendStrategy OrtAllocatorType OrtCompileApiFlags OrtDeviceMemoryType OrtDeviceVendorId "
        "OrtExecutionProviderDevicePolicy OrtHardwareDeviceType OrtMemType OrtMemoryInfoDeviceType OrtSparseFormat"
    ),
    "_environment": (
        "create_and_register_allocator create_and_register_allocator_v2 disable_telemetry_events enable_telemetry_events "
        "get_build_info get_device get_ep_devices get_version_string has_collective_ops preload_dlls print_debug_info "
        "register_execution_provider_library set_default_logger_callback set_default_logger_severity "
        "set_default_logger_verbosity set_global_thread_pool_sizes set_seed unregister_execution_provider_library"
    ),
    "_errors": (
        "DeviceReset EPFail EngineError Fail InvalidArgument InvalidGraph InvalidProtobuf ModelLoadCanceled ModelLoaded "
        "ModelRequiresCompilation NoModel NoSuchFile NotFound NotImplemented OrtError OrtRuntimeError RuntimeException"
    ),
    "_options": "RunOptions SessionOptions",
    "_providers": "get_all_providers get_available_providers",
    "_stand_in": "install uninstall",
    "_values": "OrtDevice OrtValue OrtValueVector copy_tensors",
    "session": "InferenceSession Session",
}
# Classes that say that they cannot be had.
_CANNOT = (
    "AdapterFormat LoraAdapter ModelCompiler ModelPackage ModelPackageComponentContext ModelPackageContext ModelPackageOptions "
    "ModelPackageWriteMode OrtEpAssignedNode OrtEpAssignedSubgraph OrtEpContextData OrtEpContextDataBuffer "
    "OrtExternalInitializerInfo OrtSyncStream SparseTensor"
)
_ABSENT = _CANNOT.split()
# Modules of onnxruntime's package that hold what is here, for those who ask for them by name.
_INSTALLED = ("backend", "capi", "transformers")
# Folders of onnxruntime's package that are no part of running a model.
_ELSEWHERE = ("datasets", "experimental", "quantization", "tools", "training")

TOLD = ("__version__", "cuda_version", "import_capi_exception", "package_name", "version")

__all__ = sorted([*by_name(_HOMES), *_ABSENT])

_fetch, _names = exports(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        from ._absent import ABSENT

        value: Any = ABSENT[name]
    elif name in _INSTALLED:
        raise AttributeError(
            f"fastlayers.ort has no {name!r}: what that holds is in fastlayers.ort itself; onnxruntime's modules are there after "
            "fastlayers.ort.install()"
        )
    elif name in _ELSEWHERE:
        raise AttributeError(f"fastlayers.ort has no {name!r}: it runs models; for that install onnxruntime itself")
    else:
        return _fetch(name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*_names(), *__all__, *TOLD})
