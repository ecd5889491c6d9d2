from typing import Any

from ._step import Step
from .run import Bound

_Body = tuple[Any, Any, Any]  # a bound program or None, the operand of each input, and where each result comes from

class Nested:
    step: Step
    where: str
    bodies: tuple[Bound, ...]
    loops: bool

def branch_step(where: str, sides: tuple[_Body, ...], results: int, arena: int, operands: int) -> Nested: ...
def loop_step(
    where: str,
    body: _Body,
    carried: int,
    grown: int,
    results: int,
    count_bytes: int,
    settled: int,
    scanned: tuple[int, ...] | None = None,
    backwards: tuple[bool, ...] = (),
) -> Nested: ...
