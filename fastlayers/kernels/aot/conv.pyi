from typing import Any

import numpy as np

from ._step import Step

class PackedConv:
    panels: Any
    nbytes: int

def conv_pack(weight__oidhw: np.ndarray, bias__o: np.ndarray | None, stride: Any, dilation: Any, groups: int) -> PackedConv: ...
def conv_restore(
    weight__oidhw: np.ndarray, bias__o: np.ndarray | None, stride: Any, dilation: Any, groups: int, stored: np.ndarray | None
) -> PackedConv: ...
def conv_half_pack(
    weight__oidhw: np.ndarray, bias__o: np.ndarray | None, stride: Any, dilation: Any, groups: int, half: int
) -> PackedConv: ...
def force_walk(name: str | None) -> None: ...
def walk_of(step: Step) -> str: ...
