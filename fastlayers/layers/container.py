"""Layers one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, overload

import numpy as np

from ..errors import ArgumentError, DTypeError
from ._base import Layer

__all__ = ["Sequential"]


class Sequential(Layer):
    """Layers one after the other; a load replaces the weights of all of them at once.

    Args:
        *layers: the layers, named "0", "1", ... as in torch; or one mapping of names to layers, such as an OrderedDict.

    >>> import numpy as np, fastlayers as fl
    >>> net = fl.Sequential(fl.Linear(2, 3), fl.ReLU(), fl.Linear(3, 1))
    >>> list(net.tensor_shapes())
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *layers: Any) -> None:
        named = (
            dict(layers[0]) if len(layers) == 1 and isinstance(layers[0], Mapping) else {str(i): v for i, v in enumerate(layers)}
        )
        for name, layer in named.items():
            if not isinstance(layer, Layer):
                more = "; of a list, Sequential(*layers)" if isinstance(layer, (list, tuple)) else ""
                raise DTypeError(
                    f"Sequential: layer {name!r} is of type {type(layer).__name__}: expected a layer of fastlayers{more}"
                )
            if not isinstance(name, str) or not name or "." in name:
                raise ArgumentError(f"Sequential: a layer is named {name!r}: expected a str without a dot")
        self._names = tuple(named)
        self._list = tuple(named.values())

    def __call__(self, x: Any) -> np.ndarray:
        """Gives x to the first layer, its result to the second, and so on; returns the last result, of most layers one array."""
        for layer in self._settled()._list:
            x = layer(x)
        result: np.ndarray = x
        return result

    def fuse(self) -> Sequential:
        """A network of the same names that computes the same, each BatchNorm right after a convolution or Linear folded into it.

        The layer before gets new weights, formed in float64 and rounded once, and a bias. Sequentials inside are fused too. This
        network is not changed, and later loads into it do not reach the other. Compiled networks do this by themselves.

        Raises:
            WeightsError: weights are not loaded.

        >>> import numpy as np, fastlayers as fl
        >>> net = fl.Sequential(fl.Linear(2, 3), fl.BatchNorm1d(3))
        >>> _ = net.load_state_dict({name: np.ones(shape) for name, shape in net.tensor_shapes().items()})
        >>> list(net.fuse().tensor_shapes())
        ['0.weight', '0.bias']
        """
        from ._fuse import fused

        settled = self._settled()
        layers = fused([layer.fuse() if isinstance(layer, Sequential) else layer for layer in settled._list])
        return Sequential(dict(zip(settled._names, layers, strict=True)))

    def _children(self) -> Iterator[tuple[str, Layer]]:
        return zip(self._names, self._list, strict=True)

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._list)

    @overload
    def __getitem__(self, index: int | str) -> Layer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequential: ...

    def __getitem__(self, index: int | str | slice) -> Layer:
        """The layer at an index or of a name; a slice gives a `Sequential` of the same layers with their names."""
        if isinstance(index, slice):
            return Sequential(dict(zip(self._names[index], self._list[index], strict=True)))
        if isinstance(index, str):
            if index not in self._names:
                raise ArgumentError(f"Sequential: no layer is named {index!r}: expected one of {list(self._names)}")
            index = self._names.index(index)
        found: Layer = self._list[index]
        return found
