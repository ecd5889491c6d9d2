from typing import Any

class Ledger:
    nbytes: int

class Chunk:
    # The arguments of the constructor: Cython's __cinit__ takes them.
    def __init__(self, calls: list[Any], links: list[Any], keep: object, ledger: Ledger, nbytes: int) -> None: ...
    def repeated(self, moved: list[tuple[int, int, int, int]], links: list[Any]) -> Chunk | None: ...

def layout(values: list[tuple[int, int, int, int]], calls: int) -> tuple[list[int], int]: ...
