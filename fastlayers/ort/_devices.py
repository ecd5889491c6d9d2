"""Descriptions of the one device there is, the processor, and of its memory."""

from __future__ import annotations

from typing import Any, ClassVar

from .._arguments import shown
from ..errors import DTypeError, UnsupportedError
from ._enums_of_devices import OrtAllocatorType, OrtDeviceMemoryType, OrtHardwareDeviceType, OrtMemoryInfoDeviceType, OrtMemType
from ._providers import CPU

__all__ = ["EP_DEVICE", "MEMORY", "OrtArenaCfg", "OrtEpDevice", "OrtHardwareDevice", "OrtMemoryInfo"]


class OrtMemoryInfo:
    """A kind of memory."""

    __slots__ = ("allocator_type", "device_id", "device_mem_type", "device_vendor_id", "mem_type", "name")

    def __init__(
        self, name: str, allocator_type: OrtAllocatorType, device_id: int = 0, mem_type: OrtMemType = OrtMemType.DEFAULT
    ) -> None:
        if not isinstance(name, str):
            raise DTypeError(f"OrtMemoryInfo: incompatible constructor arguments: name is {shown(name)}: expected a str")
        self.name, self.device_id = name, int(device_id)
        self.allocator_type, self.mem_type = OrtAllocatorType(allocator_type), OrtMemType(mem_type)
        self.device_mem_type, self.device_vendor_id = OrtDeviceMemoryType.DEFAULT, 0

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        memory_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
        /,
    ) -> OrtMemoryInfo:
        """Memory of a device of a vendor's. What the host can reach counts as the processor's output."""
        kind = OrtDeviceMemoryType(memory_type)
        of_host = OrtMemType.CPU_OUTPUT if kind == OrtDeviceMemoryType.HOST_ACCESSIBLE else OrtMemType.DEFAULT
        made = OrtMemoryInfo(name, allocator_type, device_id, of_host)
        made.device_mem_type, made.device_vendor_id = kind, int(vendor_id)
        return made


class OrtArenaCfg:
    """Options of an arena's growth: stored, and of no effect, for there are none."""

    # Its attributes, with their defaults.
    NAMES: ClassVar[dict[str, int]] = {
        "max_mem": 0, "arena_extend_strategy": -1, "initial_chunk_size_bytes": -1, "max_dead_bytes_per_chunk": -1,
        "initial_growth_chunk_size_bytes": -1, "max_power_of_two_extend_bytes": -1,
    }  # fmt: skip

    def __init__(self, *arguments: Any) -> None:
        given = (
            arguments[0]
            if len(arguments) == 1 and isinstance(arguments[0], dict)
            else dict(zip(self.NAMES, arguments, strict=False))
        )
        if unknown := [name for name in given if name not in self.NAMES]:
            raise DTypeError(f"OrtArenaCfg: there is no {unknown}: expected some of {list(self.NAMES)}")
        for name, default in self.NAMES.items():
            setattr(self, name, given.get(name, default))


class OrtHardwareDevice:
    """The processor."""

    type = OrtHardwareDeviceType.CPU
    vendor = ""
    vendor_id = device_id = 0

    @property
    def metadata(self) -> dict[str, str]:
        """Nothing more is told."""
        return {}


class OrtEpDevice:
    """The processor, as what a provider runs on."""

    ep_name = CPU
    ep_vendor = "fastlayers"
    device = OrtHardwareDevice()

    @property
    def ep_metadata(self) -> dict[str, str]:
        """Nothing more is told."""
        return {}

    @property
    def ep_options(self) -> dict[str, str]:
        """Options of the provider: none."""
        return {}

    def create_sync_stream(self) -> Any:
        """Raises: the processor has no streams.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("OrtEpDevice.create_sync_stream: there are no streams of devices")

    def memory_info(self, kind: Any) -> OrtMemoryInfo:
        """Its memory."""
        return MEMORY


MEMORY = OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR)
EP_DEVICE = OrtEpDevice()
