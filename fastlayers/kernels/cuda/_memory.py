"""Memory on the GPU: what is lent and used again, what is retained, and which streams it is waited for by."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._locks import Lock
from ...errors import LimitError
from ._driver import SIMULATED, failure, numba_cuda, order, stream_pointer, wait

__all__ = ["Block", "kept", "lent", "trim"]

ALIGN = 512  # of our own memory
HELD = 2 << 30  # bytes of free memory that are not given to the driver, or an eighth of the GPU's


class _Loan:
    """Memory of the pool while a block has it. The pool holds it as well: a collector of garbage that finds a block in a cycle
    ends what the block alone holds, the memory and the events, before it tells the block, which then would lend what is freed.
    """

    __slots__ = ("buffer", "elsewhere", "made", "shown", "size", "stream")

    def __init__(self, buffer: Any, size: int, stream: int) -> None:
        self.buffer, self.size = buffer, size
        self.stream = stream  # whose work it was lent for
        self.made: Any = None  # when that was done, if the stream may be gone when others want to know
        self.elsewhere: dict[int, Any] = {}  # the last work of other streams with it
        self.shown = False  # to other libraries, whose work with it is unknown


class Block:
    """Memory: lent, which is reused once it is no longer referenced; retained; or another owner's, which it references."""

    __slots__ = ("buffer", "loan", "owner")

    def __init__(self, buffer: Any, owner: Any = None, loan: _Loan | None = None) -> None:
        self.buffer, self.owner, self.loan = buffer, owner, loan

    def __del__(self) -> None:
        if self.loan is not None and _pool is not None:  # None when the process ends
            _pool.give_back(self.loan)

    def ready(self, stream: int | None = None) -> None:
        """Makes a stream (the current one) wait for the work that this memory was lent for."""
        stream = stream_pointer() if stream is None else stream
        loan = self.loan
        if loan is None:
            if self.owner is not None:
                order(stream_pointer(), stream)
        elif loan.made is not None:
            wait(loan.made, stream)
        elif loan.stream == 0:
            order(0, stream)

    def used(self, done: Any) -> None:
        """Notes that the current stream has finished with this memory when the event `done` happens."""
        if self.loan is not None and self.away:
            self.loan.elsewhere[stream_pointer()] = done

    def finished(self, done: Any) -> None:
        """The work that it was lent for ends at the event `done`."""
        if self.loan is not None:
            self.loan.made = done

    @property
    def away(self) -> bool:
        """Was it lent for another stream's work?"""
        return self.loan is not None and self.loan.stream != stream_pointer()

    def shown(self, stream: int | None = None) -> int:
        """Another library sees it, whose `stream` waits, or is told which one to wait for."""
        loan = self.loan
        if stream is not None:
            self.ready(stream)
        if loan is None:
            return stream_pointer() or 1
        loan.shown = loan.shown or stream is None or stream not in (loan.stream, loan.stream or 1)
        if loan.made is not None:  # its stream may be gone
            wait(loan.made, 0)
            return 1
        return loan.stream or 1


class _Pool:
    """Memory that was used before, by stream and size: asking the driver costs a hundred microseconds and waits for the GPU.

    What is given back may still be read by work that is queued; its next user queues after that on the same stream.
    """

    def __init__(self) -> None:
        self._free: dict[Any, list[Any]] = {}
        self._lent: dict[int, _Loan] = {}
        self._held, self._most = 0, 0
        self._lock = Lock()  # the collector of garbage may give back within any of these

    def take(self, nbytes: int) -> Block:
        # Sizes are rounded up by at most an eighth, so that networks of changing lengths find them again.
        size = max(nbytes, ALIGN)
        step = max(ALIGN, 1 << max(size.bit_length() - 4, 0))
        size = -(-size // step) * step
        with self._lock:
            found = self._free.get((stream_pointer(), size))
            buffer = found.pop() if found else None
            self._held -= 0 if buffer is None else size
        loan = _Loan(self.make(size) if buffer is None else buffer, size, stream_pointer())
        with self._lock:
            self._lent[id(loan)] = loan
        return Block(loan.buffer, loan=loan)

    def make(self, size: int) -> Any:
        try:
            return numba_cuda.device_array(size, np.uint8)
        except Exception:
            self.clear()
        try:
            return numba_cuda.device_array(size, np.uint8)
        except MemoryError as error:  # of the simulator
            raise LimitError(f"cuda: no memory for {size} bytes") from error
        except Exception as error:
            raise failure(f"cuda: {size} bytes of memory", error) from error

    def give_back(self, loan: _Loan) -> None:
        with self._lock:
            self._lent.pop(id(loan), None)
        if loan.shown or (loan.elsewhere and loan.stream):
            return  # the driver frees it, once all streams are done
        try:
            for done in loan.elsewhere.values():
                wait(done, loan.stream)
        except Exception:
            return
        with self._lock:
            self._free.setdefault((loan.stream, loan.size), []).append(loan.buffer)
            self._held += loan.size
        if self._held > (self._most or self._limit()):
            self.clear()

    def _limit(self) -> int:
        try:
            self._most = HELD if SIMULATED else max(HELD, int(numba_cuda.current_context().get_memory_info().total) // 8)
        except Exception:
            return HELD
        return self._most

    def clear(self) -> None:
        """Gives all that is not used to the driver."""
        with self._lock:
            self._free, self._held = {}, 0


_pool = _Pool()
lent, trim = _pool.take, _pool.clear


def kept(nbytes: int) -> Block:
    """Memory that is not used again but freed, which waits for all streams: for what several may read."""
    return Block(_pool.make(max(nbytes, ALIGN)))
