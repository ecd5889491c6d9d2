import numpy as np

class Step:
    operands: int
    work: float
    def __call__(self, *arrays: np.ndarray | None) -> None: ...

class Kept: ...

def foreign_step(address: int, plan: bytes, operands: int, work: float, keep: object) -> Step: ...
