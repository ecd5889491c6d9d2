from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ._nested import Nested
from ._plan import Chunk, Ledger

class Bound:
    inputs: int
    outputs: int
    arena: int
    work: float
    longest: float
    out_specs: tuple[Any, ...]
    used: int
    calls: int
    loops: bool
    counting: bool
    nbytes: int
    runs: int
    code: int | None
    nested: list[Nested]
    counts: list[int]
    # The arguments of the constructor: Cython's __cinit__ takes them.
    def __init__(
        self,
        chunks: list[Chunk],
        inputs: int,
        outputs: tuple[Any, ...],
        most: int,
        ledger: Ledger,
        nbytes: int,
        rounds: int,
        counted: tuple[tuple[int, int] | None, ...],
    ) -> None: ...
    def touch(self) -> None: ...
    def places(self) -> list[list[tuple[int, int]]]: ...
    def run(
        self, inputs: list[np.ndarray], outputs: Sequence[np.ndarray] | None = None, threads: int = 0, meter: Any = None
    ) -> Sequence[np.ndarray]: ...
    def profile(self, inputs: list[np.ndarray], repeat: int, threads: int = 0) -> np.ndarray: ...

class Runner:
    threads: int
    def __init__(self, names: tuple[str, ...], out_names: tuple[str, ...], by_value: tuple[int, ...], largest: int) -> None: ...
    def key(self, arrays: list[Any], plain: bool = False) -> bytes | None: ...
    def remember(self, key: bytes, bound: Bound) -> None: ...
    def forget(self, key: bytes) -> None: ...
    def run(self, feeds: Any) -> dict[str, np.ndarray] | None: ...
    def call(self, arrays: tuple[Any, ...], threads: int = 0, meter: Any = None) -> tuple[np.ndarray, ...] | None: ...
    def step(self, env: dict[str, Any], done: tuple[str, ...], threads: int, meter: Any) -> bool: ...

def rounds(
    runners: list[Runner],
    names: list[str],
    env: dict[Any, Any],
    handed: list[Any],
    parts: list[list[np.ndarray]],
    at: int,
    most: int,
    threads: int,
    meter: Any,
    n: Any,
) -> tuple[int, list[Any] | None, int]: ...

class LayerCalls:
    def __init__(
        self, runners: dict[int, tuple[Runner, ...]], module: ModuleType, generation: int, pair: bool, both: bool, whole: bool
    ) -> None: ...
    def call(self, x: Any, state: Any) -> Any: ...
