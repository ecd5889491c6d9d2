"""Weights of a model as kernels read them, for ``save(packed=True)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from .model import Model

__all__ = ["packed_arrays"]


def packed_arrays(model: Model) -> dict[str, np.ndarray]:
    """Packed weights by name, for the sizes that ran or were prepared; where all sizes are fixed, for these.

    Variants other than the compiled engine have none that a file could hold.

    Raises:
        ArgumentError: nothing is packed yet, and sizes are open.
    """
    program = model._main
    if model._variant.steps and not program.ran:
        shapes = {spec.name: spec.shape for spec in model.inputs}
        if any(shape is None or not all(isinstance(d, int) for d in shape) for shape in shapes.values()):
            raise ArgumentError(
                "save: packed=True writes weights as kernels read them, which depends on sizes, and the model has not run: "
                f"call it, or model.prepare(shapes), before; its inputs have the shapes {shapes}"
            )
        model.prepare(shapes)
    return program.packed_arrays()
