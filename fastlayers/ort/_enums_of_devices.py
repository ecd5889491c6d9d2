"""onnxruntime's enumerations of devices, memory and what else no plain session asks for: names and values as there."""

from __future__ import annotations

from enum import IntEnum

from ._enums import Named

__all__ = [
    "ArenaExtendStrategy", "OrtAllocatorType", "OrtCompileApiFlags", "OrtDeviceMemoryType", "OrtDeviceVendorId",
    "OrtExecutionProviderDevicePolicy", "OrtHardwareDeviceType", "OrtMemType", "OrtMemoryInfoDeviceType", "OrtSparseFormat",
]  # fmt: skip


class OrtAllocatorType(Named):
    """Kinds of allocators."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(Named):
    """Kinds of memory."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtSparseFormat(Named):
    """Formats of sparse tensors, of which there are none here."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtDeviceMemoryType(Named):
    """Memory of devices."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtHardwareDeviceType(Named):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtMemoryInfoDeviceType(Named):
    """Kinds of devices that memory is on."""

    CPU = 0
    GPU = 1
    NPU = 3
    FPGA = 2


class OrtCompileApiFlags(Named):
    """Flags of the model compiler, which there is not."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtExecutionProviderDevicePolicy(Named):
    """The device to prefer: there is the processor alone."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class ArenaExtendStrategy(Named):
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
