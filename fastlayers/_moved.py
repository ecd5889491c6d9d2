"""Modules under the names that they had: importing one, or unpickling what was defined in it, gives what is there now.

The finder is asked last, so what is there is found as fast as without it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._lazy import imported

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = ["MOVED", "install"]

# The old name below fastlayers, and where its contents are; what was split is looked for in each.
MOVED: dict[str, str] = {
    "functional.adaptive": "functional.pooling_adaptive",
    "functional.channelwise": "functional.normalization",
    "functional.elementwise": "functional.arithmetic functional.activation",
    "functional.further": "functional.activation functional.activation_softmax",
    "functional.gated": "functional.activation_gated",
    "functional.hierarchical": "functional.tree",
    "functional.joining": "functional.movement",
    "functional.layout": "functional.shape",
    "functional.lp_pooling": "functional.pooling_lp",
    "functional.mel": "functional.spectral_mel",
    "functional.separable": "functional.conv_separable",
    "functional.short_time": "functional.spectral_short_time",
    "functional.time_pooling": "functional.pooling_time",
    "graph.ir": "ir.graph",
    "graph.passes": "passes",
    "layers.channelwise": "layers.normalization",
    "layers.further": "layers.activation",
    "layers.hierarchical": "layers.tree functional.tree_classes",
    "functional._tree": "functional.tree_classes",
    "layers.layout": "layers.shape",
    "layers.multihead": "layers.attention_multihead",
    "layers.separable": "layers.conv_separable",
    "model._load": "model.loading",
    "model._origin": "model.origin",
    "stream.stream": "model.stream",
    "stream.windows": "model.stream_windows",
}


class _Moved:
    """Finds and loads the names of `MOVED`; has what the classes of `importlib.abc` have, which takes long to import."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        if package != __package__ or rest not in MOVED:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """A module as any."""

    def exec_module(self, module: ModuleType) -> None:
        """What is asked of the module is looked for where it is now."""
        homes = [f"{__package__}.{home}" for home in MOVED[module.__name__.partition(".")[2]].split()]
        told = f"{module.__name__} is now {' and '.join(homes)}: import it from there"
        warnings.warn(told, DeprecationWarning, stacklevel=2)

        def fetch(name: str) -> Any:
            for home in homes:
                found = getattr(imported(home), name, None)
                if found is not None:
                    return found
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__getattr__ = fetch  # type: ignore[method-assign]


def install() -> None:
    """Has Python ask for old names, once."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
