"""threadpoolctl finds the compiled engine among the libraries that it limits, wherever it was imported first."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["offer"]

PREFIX = "_engine."  # of the file, _engine.cpython-311-x86_64-linux-gnu.so, and a symbol that no other of that name has
SYMBOL = "fl_run_wake"

_offered: Any = None  # the module that has been told


def offer(get: Callable[[], int], limit: Callable[[int], None]) -> None:
    """Registers the engine with threadpoolctl, if the process has imported that and has not been told: nothing is imported here.

    Args:
        get: the number of threads.
        limit: sets it; the number that was there before is given back by the same call.
    """
    global _offered
    module: Any = sys.modules.get("threadpoolctl")
    if module is None or module is _offered:
        return
    # It may be half imported, or older than 3.2, which registers nothing.
    base, register = getattr(module, "LibController", None), getattr(module, "register", None)
    if base is None or register is None:
        return

    class Controller(base):  # type: ignore[misc, valid-type]
        """The engine's pool of threads, for threadpoolctl."""

        user_api = internal_api = "fastlayers"
        filename_prefixes = (PREFIX,)
        check_symbols = (SYMBOL,)

        def get_num_threads(self) -> int:
            return get()

        def set_num_threads(self, num_threads: int) -> None:
            limit(num_threads)

        def get_version(self) -> str | None:
            return getattr(sys.modules.get(__package__), "__version__", None)

    register(Controller)
    _offered = module
