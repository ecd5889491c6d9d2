"""onnxruntime's enumerations: names and values as there, printed as there."""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "ArenaExtendStrategy", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "OrtAllocatorType", "OrtCompileApiFlags",
    "OrtDeviceMemoryType", "OrtDeviceVendorId", "OrtExecutionProviderDevicePolicy", "OrtHardwareDeviceType", "OrtMemType",
    "OrtMemoryInfoDeviceType", "OrtSparseFormat",
]  # fmt: skip


class _Named(IntEnum):
    def __str__(self) -> str:  # IntEnum prints the number
        return f"{type(self).__name__}.{self.name}"


class GraphOptimizationLevel(_Named):
    """Levels of optimization: ORT_DISABLE_ALL runs the graph as it is written; all others are the same here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Named):
    """Nodes run in order, each on several threads, whatever is chosen."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Named):
    """The order of nodes is fixed when the model is loaded, whatever is chosen."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(_Named):
    """Kinds of allocators."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(_Named):
    """Kinds of memory."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtSparseFormat(_Named):
    """Formats of sparse tensors, of which there are none here."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtDeviceMemoryType(_Named):
    """Memory of devices."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtHardwareDeviceType(_Named):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtMemoryInfoDeviceType(_Named):
    """Kinds of devices that memory is on."""

    CPU = 0
    GPU = 1
    NPU = 3
    FPGA = 2


class OrtCompileApiFlags(_Named):
    """Flags of the model compiler, which there is not."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtExecutionProviderDevicePolicy(_Named):
    """The device to prefer: there is the processor alone."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class ArenaExtendStrategy(_Named):
    """Strategies by which arenas grow."""

    kNextPowerOfTwo = 0  # noqa: N815 - as it is called there
    kSameAsRequested = 1  # noqa: N815


class OrtDeviceVendorId(IntEnum):
    """PCI vendors."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086
