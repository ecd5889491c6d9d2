"""State that workers of one server share: which models were loaded or unloaded since they began, and which worker has a
sequence.

Made before they are forked. A worker that a client asks to load a model does so, and then tells the others by a number in
shared memory that each reads before it answers.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import shutil
import tempfile
import zlib

from ..errors import LimitError

__all__ = ["Shared"]

_SIZE = 1 << 20
_HEAD = 16  # the number of the last change, and the length of the text after it


class Shared:
    """Shared state of one server; `worker` is set in each worker after the fork."""

    def __init__(self, workers: int) -> None:
        self.workers, self.worker, self.made_by = workers, 0, os.getpid()
        self.folder = tempfile.mkdtemp(prefix="fastlayers-serve-")
        os.mkdir(self.counters)
        self._memory = mmap.mmap(-1, _SIZE)
        self._file = os.path.join(self.folder, "lock")
        self.seen = 0

    @property
    def counters(self) -> str:
        """The folder of Prometheus' client."""
        return os.path.join(self.folder, "counters")

    def socket_of(self, worker: int) -> str:
        """The path of the socket by which other workers reach one."""
        return os.path.join(self.folder, f"{worker}.sock")

    def owner(self, name: str, version: str, sequence: int | str) -> int:
        """The worker that keeps a sequence."""
        return zlib.crc32(json.dumps([name, version, sequence]).encode()) % self.workers

    # ---- changes ----------------------------------------------------------------------------------------------------

    def changed(self) -> bool:
        """Whether another worker has changed something that `news` was not asked for yet."""
        return int.from_bytes(self._memory[:8], "little") != self.seen

    def news(self) -> dict[str, str]:
        """Lists the models to load or unload to catch up with the other workers: "load" or "unload" by name."""
        with self._locked():
            latest, changes = self._read()
        found = {name: action for name, (number, action) in changes.items() if number > self.seen}
        self.seen = latest
        return found

    def publish(self, name: str, action: str) -> None:
        """Tells the others what this worker has done."""
        with self._locked():
            latest, changes = self._read()
            changes[name] = (latest + 1, action)
            text = json.dumps(changes).encode()
            if len(text) > _SIZE - _HEAD:
                raise LimitError("serve: too many models were loaded and unloaded: start the server again")
            self._memory[_HEAD : _HEAD + len(text)] = text
            self._memory[8:16] = len(text).to_bytes(8, "little")
            self._memory[:8] = (latest + 1).to_bytes(8, "little")
            if self.seen == latest:
                self.seen = latest + 1

    def _read(self) -> tuple[int, dict[str, tuple[int, str]]]:
        length = int.from_bytes(self._memory[8:16], "little")
        changes = json.loads(self._memory[_HEAD : _HEAD + length]) if length else {}
        return int.from_bytes(self._memory[:8], "little"), {name: (number, what) for name, (number, what) in changes.items()}

    def _locked(self) -> _Locked:
        return _Locked(self._file)

    def close(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


class _Locked:
    """Meanwhile no other worker reads or writes; a worker that dies lets go."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *exception: object) -> None:
        os.close(self._file)
