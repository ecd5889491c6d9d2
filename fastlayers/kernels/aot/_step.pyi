from collections.abc import Callable
from typing import Any

import numpy as np

class Step:
    operands: int
    work: float
    def __call__(self, *arrays: np.ndarray | None) -> None: ...

class PythonStep:
    def __init__(
        self, function: Callable[..., Any], store: Callable[..., Any], inputs: tuple[Any, ...], outputs: tuple[Any, ...]
    ) -> None: ...

class UsersStep:
    step: Step
    def __init__(self, step: Step, instead: PythonStep) -> None: ...

class Kept: ...

def foreign_step(address: int, plan: bytes, operands: int, work: float, keep: object) -> Step: ...
