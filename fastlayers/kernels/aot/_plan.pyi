from collections.abc import Iterator
from typing import Any

class Ledger:
    nbytes: int

class Chunk:
    count: int
    # The arguments of the constructor: Cython's __cinit__ takes them.
    def __init__(self, calls: list[Any], links: list[Any], keep: object, ledger: Ledger, nbytes: int) -> None: ...
    @staticmethod
    def repeated(
        chunks: list[Chunk],
        moved: list[tuple[int, int, int, int]],
        numbers: Iterator[int],
        constants: dict[int, int] | None,
        steps: dict[int, Any],
        keep: object,
    ) -> Chunk | None: ...

def layout(values: list[tuple[int, int, int, int]], calls: int) -> tuple[list[int], int]: ...
