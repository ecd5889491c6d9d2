"""Compiles and launches kernels, and has their reductions. Numba is imported here, in `_driver.py` and `_intrinsics.py`.

A kernel is a plain function whose annotations say what it takes: flat arrays (`F32`, `I32`, `I64`, `U8`, `U16`, `U32`, `U64`),
``int`` (64 bits), ``float`` (32 bits) and records of these, named tuples, which come by value. So there is one machine code of
it, which is compiled when it is first launched. Under Numba's simulator (``NUMBA_ENABLE_CUDASIM=1``) the same function runs as
Python, a thread a thread; what the simulator lacks has a twin here.
"""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias, overload

import numpy as np
from numba import types

from ..._locks import Lock
from ..records import type_of
from ._disk import identity, keep
from ._driver import (
    SIMULATED,
    current_stream,
    failure,
    foreign,
    numba_cuda,
    on_stream,
    order,
    processors,
    start,
    stream_pointer,
    synchronize,
)

__all__ = [
    "F32",
    "I32",
    "I64",
    "KERNELS",
    "MAKERS",
    "SIMULATED",
    "U8",
    "U16",
    "U32",
    "U64",
    "Kernel",
    "S",
    "T",
    "block_max",
    "block_sum",
    "cdiv",
    "cuda",
    "current_stream",
    "device",
    "devices",
    "f32",
    "failure",
    "foreign",
    "group_max",
    "group_sum",
    "kernel",
    "libdevice",
    "load1",
    "load4",
    "numba_cuda",
    "on_stream",
    "order",
    "per_function",
    "processors",
    "sized",
    "start",
    "store1",
    "store4",
    "stream_pointer",
    "synchronize",
    "threads",
]

# No flag but contraction: NaN, infinity, zeros' signs and the order of a sum are part of the contract.
OPTIONS: dict[str, Any] = {"fastmath": False}

# What annotations are made of; modules of kernels have them as text.
T: TypeAlias = Any
S: TypeAlias = Any
F32: TypeAlias = Any
I32: TypeAlias = Any
I64: TypeAlias = Any
U8: TypeAlias = Any
U16: TypeAlias = Any
U32: TypeAlias = Any
U64: TypeAlias = Any
_TYPES: dict[str, Any] = {
    "F32": types.float32[::1],
    "I32": types.int32[::1],
    "I64": types.int64[::1],
    "U8": types.uint8[::1],
    "U16": types.uint16[::1],
    "U32": types.uint32[::1],
    "U64": types.uint64[::1],
    "I8": types.int8[::1],
    "I16": types.int16[::1],
    "F16": types.float16[::1],
    "F64": types.float64[::1],
    "int": types.int64,
    "float": types.float32,
}

# In kernels a constant is f32(0.5): a bare 0.5 is a float64, and so is all that it touches.
f32 = np.float32

KERNELS: list[Kernel] = []
MAKERS: list[Any] = []
# Called with the name and the seconds of every kernel that was compiled, or read from the cache.
listeners: list[Callable[[str, float], None]] = []

_lock = Lock()
_simulator = Lock()  # it runs one kernel at a time


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def threads(wanted: int) -> int:
    """Threads of a block: as wanted; a single warp under the simulator, where each is a thread of the system."""
    return min(wanted, 32) if SIMULATED else wanted


def sized(items: int, block: int, waves: int = 8) -> int:
    """Blocks of a kernel that strides over `items`: one per item and thread, at most what the GPU holds `waves` times over."""
    return max(1, min(cdiv(items, block), waves * processors() * max(1, 2048 // block) if not SIMULATED else 3))


def _single(value: Any, kind: Any) -> Any:
    """A number as the GPU gets it, for the simulator: floats have 32 bits, a record's too."""
    if isinstance(kind, types.BaseTuple):
        return type(value)(*map(_single, value, kind))
    return f32(value) if kind == types.float32 else value


class Kernel:
    """A function that runs on the GPU, compiled at its first launch.

    `most_threads`, where it is set: of a block, for which the compiler then leaves registers enough.
    """

    most_threads = 0
    key = ""  # what its maker was given

    def __init__(self, function: Callable[..., None], kinds: Mapping[str, str]) -> None:
        self.function, self.name = function, f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        names = {name: kinds.get(kind, kind) for name, kind in inspect.get_annotations(function).items()}
        inner, record = function.__globals__, types.BaseTuple.from_types
        self.signature = types.void(*(type_of(kind, inner, _TYPES, record) for name, kind in names.items() if name != "return"))
        self._made: Any = None
        self._configured: dict[Any, Any] = {}
        self.__doc__ = function.__doc__
        KERNELS.append(self)

    def launch(self, grid: int | tuple[int, ...], block: int | tuple[int, ...], *arguments: Any) -> None:
        """Runs the kernel on the current stream: flat device arrays as `DeviceArray.flat`, scalars, records."""
        if self._made is None:
            self.compile()
        if SIMULATED:
            given = [_single(a, kind) for a, kind in zip(arguments, self.signature.args, strict=True)]
            with _simulator:
                self._made[grid, block](*given)
            return
        try:
            configured = self._configured.get((grid, block, stream_pointer()))
            if configured is None:
                configured = self._configure(grid, block)
            configured(*arguments)
        except Exception as error:  # the driver's errors have many types
            raise failure(self.name, error) from error

    def _configure(self, grid: Any, block: Any) -> Any:
        """The kernel with its grid, made once. Numba warns of every small one."""
        from numba.cuda.core import config as settings

        with _lock:
            before, settings.CUDA_LOW_OCCUPANCY_WARNINGS = settings.CUDA_LOW_OCCUPANCY_WARNINGS, 0
            try:
                made = self._made[grid, block, current_stream()]
            finally:
                settings.CUDA_LOW_OCCUPANCY_WARNINGS = before
            if len(self._configured) >= 256:
                self._configured.clear()
            self._configured[grid, block, stream_pointer()] = made
        return made

    def _options(self) -> dict[str, Any]:
        return {**OPTIONS, "launch_bounds": self.most_threads} if self.most_threads else OPTIONS

    def compile(self) -> None:
        """Compiles the function for this GPU."""
        with _lock:
            if self._made is None:
                if SIMULATED:
                    self._made = numba_cuda.jit(_quiet(self.function))
                    return
                before = time.perf_counter()
                made = numba_cuda.jit(**self._options())(self.function)
                keep(made, self.function, f"{self.name} {self.key}")
                made.compile(self.signature)
                made._specialized = True  # as of a function that is compiled where it is defined
                made.disable_compile()
                self._made = made
                for listen in listeners:
                    listen(self.name, time.perf_counter() - before)

    def ptx(self, capability: tuple[int, int]) -> str:
        """The kernel as PTX for a compute capability; needs no GPU, only the compiler's packages."""
        from numba.cuda import dispatcher

        before = dispatcher.get_current_device
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)  # of functions that it calls
        try:
            return str(numba_cuda.compile_ptx(self.function, self.signature, cc=capability, **self._options())[0])
        finally:
            dispatcher.get_current_device = before


def _quiet(function: Callable[..., None]) -> Callable[..., None]:
    """numpy's warnings about infinity and NaN are silent, in every thread of the simulator."""

    def run(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            function(*arguments)

    return run


@overload
def kernel(function: Callable[..., None]) -> Kernel: ...
@overload
def kernel(**kinds: str) -> Callable[[Callable[..., None]], Kernel]: ...
def kernel(function: Any = None, **kinds: str) -> Any:
    """The decorator of what is launched: see `Kernel`. Names end in _kernel. ``kernel(T="U32")``: the annotation T means U32."""
    return Kernel(function, kinds) if function is not None else lambda f: Kernel(f, kinds)


def device(function: Callable[..., Any]) -> Any:
    """The decorator of a function that kernels call."""
    return function if SIMULATED else numba_cuda.jit(device=True, **OPTIONS)(function)


def devices(functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """`device` for a table of functions, each of which takes its name there: compiled kernels are kept by the names of theirs."""
    for name, function in functions.items():
        function.__name__ = function.__qualname__ = name
    return {name: device(function) for name, function in functions.items()}


@overload
def per_function(maker: Callable[..., Kernel]) -> Callable[..., Kernel]: ...
@overload
def per_function(*, samples: Sequence[tuple[Any, ...]]) -> Callable[[Callable[..., Kernel]], Callable[..., Kernel]]: ...
def per_function(maker: Any = None, *, samples: Sequence[tuple[Any, ...]] | None = None) -> Any:
    """The decorator of what makes a kernel for given device functions or sizes: each kernel is made, and compiled, once.

    `samples`: arguments of kernels whose code the tests read; those of one elementwise function need none.
    """
    if maker is None:
        return lambda maker: _kept(maker, samples)
    return _kept(maker, None)


def _kept(maker: Callable[..., Kernel], samples: Sequence[tuple[Any, ...]] | None) -> Any:
    kept: dict[Any, Kernel] = {}

    def make(*arguments: Any) -> Kernel:
        found = kept.get(arguments)
        if found is None:
            with _lock:
                found = kept.get(arguments)
                if found is None:
                    found = maker(*arguments)
                    found.key = f"{maker.__name__}{identity(arguments)}"
                    kept[arguments] = found
        return found

    make.__name__, make.__doc__, make.__module__ = maker.__name__, maker.__doc__, maker.__module__
    make.samples = samples  # type: ignore[attr-defined]
    MAKERS.append(make)
    return make


libdevice: Any = None if SIMULATED else importlib.import_module("numba.cuda.libdevice")

cuda: Any = numba_cuda

if SIMULATED:
    from ._simulated import block_max, block_sum, group_max, group_sum, load1, load4, store1, store4, within

    cuda = within
else:
    from ._intrinsics import load1, load4, store1, store4

    @device
    def group_sum(value: Any, width: int) -> Any:
        """The sum of what `width` (1, 2, 4 .. 32) neighbouring threads have. All threads of the block call it."""
        step = width >> 1
        while step > 0:
            value += cuda.shfl_xor_sync(0xFFFFFFFF, value, step)
            step >>= 1
        return value

    @device
    def group_max(value: Any, width: int) -> Any:
        """The largest, NaN if one is. All threads of the block call it."""
        step = width >> 1
        while step > 0:
            other = cuda.shfl_xor_sync(0xFFFFFFFF, value, step)
            value = value if value > other or value != value else other
            step >>= 1
        return value

    @device
    def block_sum(value: Any, scratch: Any) -> Any:
        """The sum over the block, in a fixed order, for every thread; `scratch`: 32 shared values. All threads call it; they are
        numbered by x alone, and are whole warps.
        """
        lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
        value = group_sum(value, 32)
        if lane == 0:
            scratch[warp] = value
        cuda.syncthreads()
        value = scratch[lane] if lane < cuda.blockDim.x >> 5 else f32(0)
        value = group_sum(value, 32)
        cuda.syncthreads()  # scratch may be used again
        return value

    @device
    def block_max(value: Any, scratch: Any) -> Any:
        """The largest of the block, NaN if one is; else as `block_sum`."""
        lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
        value = group_max(value, 32)
        if lane == 0:
            scratch[warp] = value
        cuda.syncthreads()
        value = scratch[lane] if lane < cuda.blockDim.x >> 5 else f32(-np.inf)
        value = group_max(value, 32)
        cuda.syncthreads()
        return value
