"""Reading torch's files with our own interpreter: nothing in them is imported, called or executed.

`archive` (zip) or `legacy` (stream) -> `machine` (opcodes; `allowed` says what calls give) -> `names` -> `tensors` (arrays)

Only the sniffing is imported with the package, the rest when the first file is read.
"""

from __future__ import annotations

from .._arrays import Array
from ..budget import Budget
from ..source import Source

NAME = "torch"
LOOKS = "a zip archive with data.pkl in a folder, or torch's magic number"


def sniff(source: Source) -> bool:
    """Whether torch.save or torch.jit.save wrote it, in the format of version 1.6 on or in the one before."""
    if source.starts_with(b"PK\x03\x04"):
        from . import archive

        return archive.sniff(source)
    if source.starts_with(b"\x80"):
        from . import legacy

        return legacy.sniff(source)
    return False


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every tensor by name; see `names` and `tensors`."""
    from . import archive, legacy

    if source.starts_with(b"\x80"):
        return legacy.load_weights(source, budget)
    return archive.load_weights(source, budget)
