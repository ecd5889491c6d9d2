"""Blocks of Numba's simulator, quickly: the threads of a block alternate from barrier to barrier.

The simulator's own manager polls threads that all want to run at once, which takes a tenth of a second a block. Here one runs at
a time, the first to the last in one block and the last to the first in the next: so a barrier that is missing shows, since
whoever reads what another thread was to write finds nothing yet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

__all__ = ["install"]


class _Aborted(BaseException):
    """Ends a thread whose block has failed."""


class Turn(threading.Thread):
    """A thread of one block after the other; has what kernels ask the simulator's threads for."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.go, self.back = threading.Semaphore(0), threading.Semaphore(0)
        self.work: Callable[[], None] = lambda: None
        self.blockIdx: Any = None
        self.threadIdx: Any = None
        self.thread_id = 0
        self.turn = 0
        self.ended = self.abort = False
        self.exception: BaseException | None = None

    def run(self) -> None:
        while True:
            self.go.acquire()
            try:
                self.work()
            except _Aborted:
                pass
            except BaseException as error:
                self.exception = error
            self.ended = True
            self.back.release()

    def syncthreads(self) -> None:
        if not self.abort:
            self.back.release()
            self.go.acquire()
        if self.abort:
            raise _Aborted

    def step(self) -> None:
        """Lets it run to its next barrier, or to its end."""
        self.go.release()
        self.back.acquire()


class Blocks:
    """In the place of the simulator's BlockManager."""

    workers: ClassVar[list[Turn]] = []
    count = 0

    def __init__(self, f: Callable[..., None], grid_dim: Any, block_dim: Any, debug: bool) -> None:
        self.f, self.block_dim = f, block_dim

    def run(self, grid_point: Any, *arguments: Any) -> None:
        from numba.cuda.simulator.kernelapi import Dim3

        Blocks.count += 1
        points = list(np.ndindex(*self.block_dim))
        while len(self.workers) < len(points):
            self.workers.append(Turn())
            self.workers[-1].start()
        block = self.workers[: len(points)]
        for worker, point in zip(block, points, strict=True):
            worker.blockIdx, worker.threadIdx = Dim3(*grid_point), Dim3(*point)
            worker.thread_id = point[0] + self.block_dim[0] * (point[1] + self.block_dim[1] * point[2])
            worker.work = lambda: self.f(*arguments)
            worker.turn, worker.ended, worker.abort, worker.exception = 0, False, False, None
        live = block if Blocks.count % 2 else block[::-1]
        while live:
            for worker in live:
                worker.step()
                if worker.exception is not None:
                    self.stop(live)
                    raise worker.exception
            live = [worker for worker in live if not worker.ended]

    @staticmethod
    def stop(live: list[Turn]) -> None:
        for worker in live:
            if not worker.ended:
                worker.abort = True
                worker.step()


def install() -> None:
    """From now on, the simulator runs blocks this way, and launches are what a GPU takes."""
    from numba.cuda.simulator import kernel

    from fastlayers.kernels.cuda._cuda import Kernel

    kernel.BlockManager = Blocks
    launch = Kernel.launch

    def checked(self: Any, grid: Any, block: Any, *arguments: Any) -> None:
        check(self, grid, block, arguments)
        launch(self, grid, block, *arguments)

    Kernel.launch = checked  # type: ignore[method-assign]


def check(kernel: Any, grid: Any, block: Any, arguments: tuple[Any, ...]) -> None:
    """Numba looks at no argument of a kernel with a signature: an array of another dtype is read as if it were of this one."""
    for sizes, most in ((grid, (2**31 - 1, 65535, 65535)), (block, (1024, 1024, 64))):
        sizes = sizes if isinstance(sizes, tuple) else (sizes,)
        assert all(type(n) is int and 0 < n <= top for n, top in zip(sizes, most, strict=False)), (kernel.name, grid, block)
    assert len(arguments) == len(kernel.signature.args), kernel.name
    for value, kind in zip(arguments, kernel.signature.args, strict=True):
        check_argument(kernel, value, kind)


def check_argument(kernel: Any, value: Any, kind: Any) -> None:
    """An array, a number, or a record of them, of the kind that the kernel was made for."""
    if hasattr(kind, "instance_class"):
        assert type(value) is kind.instance_class, (kernel.name, value)
        for part, of in zip(value, kind, strict=True):
            check_argument(kernel, part, of)
    elif hasattr(kind, "dtype"):
        array = value._ary
        assert array.dtype == np.dtype(str(kind.dtype)), (kernel.name, array.dtype, kind)
        assert array.ndim == 1 and array.size and array.flags.c_contiguous and array.flags.aligned, kernel.name
    elif str(kind).startswith("int"):
        assert isinstance(value, (int, np.integer)) and -(2**63) <= int(value) < 2**63, (kernel.name, value)
    else:
        assert isinstance(value, (float, int, np.floating)), (kernel.name, value)
