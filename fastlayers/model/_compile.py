"""`compile`: a function of layers becomes a Model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._arguments import checked, shown
from ..errors import DTypeError
from ..graph._trace import trace
from .loading import checked_device
from .model import Model, Options
from .precision import storage

__all__ = ["compile"]


@checked
def compile(
    function: Callable[..., Any],
    *inputs: Any,
    precision: str = "default",
    weights: str = "float32",
    num_threads: int = 0,
    require_native: bool = False,
    device: str = "cpu",
    streaming: bool = False,
    variant: str | None = None,
) -> Model:
    """Records a layer, or a function of layers, once, and makes a model of it: the same runtime as a loaded file.

    Args:
        function: called once with symbolic values; see `graph.trace`.
        *inputs: one per argument: an example array, whose shape is taken, or a `graph.Input` whose sizes may be names.
        precision: as in `load`.
        weights: as in `load`.
        num_threads: as in `load`.
        require_native: as in `load`.
        device: as in `load`.
        streaming: as in `load`.
        variant: as in `load`.

    Returns:
        The model, with the weights that the layers have now.

    Raises:
        DTypeError: the function takes more inputs, or fewer; a tuple of sizes is given for one.
        UnsupportedError: the function decides by values, or returns something else than symbolic values.

    >>> import numpy as np, fastlayers as fl
    >>> net = fl.Sequential(fl.Linear(2, 3), fl.ReLU())
    >>> _ = net.load_state_dict({"0.weight": np.ones((3, 2)), "0.bias": np.zeros(3)})
    >>> model = fl.compile(net, fl.graph.Input("x", ("n", 2)))
    >>> model(np.ones((1, 2)))
    array([[2., 2., 2.]], dtype=float32)
    """
    checked_device("compile", device, variant)
    half, bits = storage("compile", precision, weights)
    if hasattr(type(function), "named_parameters"):
        raise DTypeError("compile: function is a network of torch: torch.onnx.export writes it to a file, see docs/export.md")
    for i, value in enumerate(inputs):
        if isinstance(value, tuple) and len(value) > 1 and all(type(size) is int for size in value):
            raise DTypeError(
                f"compile: input {i} is the tuple {shown(value)}: expected an example array, or for a shape "
                f"fl.graph.Input('x', {shown(value)})"
            )
    try:
        graph = trace(function, *inputs)
    except TypeError as error:
        _check_count(function, inputs)
        raise error
    strict = precision == "strict"
    options = Options(strict=strict, native=require_native, half=half, bits=bits, streaming=streaming, variant=variant or "")
    model = Model(graph, options, device=device)
    model.num_threads = num_threads
    return model


def _check_count(function: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """Raises if the function takes another number of inputs."""
    import inspect

    try:
        inspect.signature(function).bind(*inputs)
    except ValueError:  # a builtin's, whose signature is unknown
        return
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise DTypeError(
            f"compile: {name} cannot be called with {len(inputs)} inputs: {error}: expected an example array, or a "
            "fl.graph.Input('x', shape), for each argument"
        ) from None
