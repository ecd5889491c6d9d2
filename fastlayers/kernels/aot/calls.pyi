from collections.abc import Callable
from typing import Any

import numpy as np

from .run import Runner

def key_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], tuple[np.ndarray, ...]] | None: ...
def quick(
    runners: dict[Any, tuple[Runner, bool, Any] | None],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any: ...
