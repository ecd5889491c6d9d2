"""Dropout: the identity in inference, or random zeros from a seed, for estimates of uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..graph.arrays import as_float32
from ..graph.ops import op
from ..ir.checks import integer, integers, number, sequence
from ..ir.graph import Shape
from ._recorded import same

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["dropout"]

_KEY = 2**64  # seeds and streams are taken modulo this: each is one half of the generator's key


def probability(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    found = number(name, "p", value)
    if not 0 <= found <= 1:
        raise ArgumentError(f"{name}: p is {found}: expected 0 to 1")
    return found


def _agree(training: bool, seed: Any) -> None:
    """Refuses a seed without `training`, which would drop nothing, and the reverse."""
    if training is (seed is None):
        raise ArgumentError(f"dropout: training is {training}, seed {seed}: expected True with an int, or False and None")


def dropout_rule(x: Shape, p: Any, training: Any, seed: Any, noise_shape: Any) -> Shape:
    """Checks the arguments of a recorded `dropout` and returns the shape of its result."""
    probability("dropout", p)
    _agree(training, seed)
    if training:
        raise UnsupportedError("dropout: training=True cannot be recorded: compile the network alone, and use MonteCarlo without")
    return x


@op("dropout", "x", dropout_rule, same("Identity"))
def dropout(
    x: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    seed: int | None = None,
    noise_shape: Sequence[int] | None = None,
) -> np.ndarray:
    """The values themselves: nothing is dropped unless `training` is set, whose default is True in torch and False here.

    With ``training=True``, which needs a seed, a share of them is zero: ``x * keep / (1 - p)``. Philox, a generator that counts,
    decides: number i of the noise, in C order, is dropped if draw i of the key `seed`, 53 bits as a number from 0 to 1, is below
    `p`. So equal seeds give equal results, whatever the number of threads.

    Args:
        x: any shape, any real dtype.
        p: the share that is dropped; 1 gives zeros.
        training: whether anything is dropped.
        inplace: torch's argument, which changes nothing: the result is always a fresh array.
        seed: an int; given if `training` is set, and only then.
        noise_shape: the shape of the noise, as in Keras: its sizes are those of x, or 1 where all along an axis share their fate.

    Returns:
        float32, the shape of x; a fresh array.

    Raises:
        ArgumentError: `p` is out of range, there is a `seed` without `training` or the reverse, or `noise_shape` does not fit.
        DTypeError: x is complex or not numeric.
        UnsupportedError: x is symbolic and `training` is set.

    >>> import fastlayers as fl
    >>> fl.functional.dropout([1.0, 2.0, 3.0])
    array([1., 2., 3.], dtype=float32)
    """
    x = as_float32(x, "dropout", "x")
    p = probability("dropout", p)
    if seed is not None:
        seed = integer("dropout", "seed", seed)
    _agree(training, seed)
    if seed is None:
        return np.array(x)
    return drop(x, p, seed, 0, noise_shape)


def _noise(noise_shape: Any, axes: int) -> tuple[int, ...]:
    """The sizes of the noise, one per axis of x."""
    return integers("dropout", "noise_shape", sequence("dropout", "noise_shape", noise_shape), axes, 0)


def drop(x: np.ndarray, p: float, seed: int, stream: int, noise_shape: Sequence[int] | None) -> np.ndarray:
    """`dropout` of a float32 array with one of many streams of a seed."""
    shape = x.shape if noise_shape is None else _noise(noise_shape, x.ndim)
    if any(a not in (1, b) for a, b in zip(shape, x.shape, strict=True)):
        raise ShapeError(f"dropout: noise_shape is {shape}, x has shape {x.shape}: expected 1 or the size of x in every axis")
    if p == 1:
        return np.zeros(x.shape, np.float32)
    count = int(np.prod(shape))
    raw: np.ndarray = np.random.Philox(key=seed % _KEY + stream % _KEY * _KEY).random_raw(count)
    draws = raw >> np.uint64(11)
    kept = np.where(draws >= np.uint64(round(p * 2**53)), np.float32(1 / (1 - p)), np.float32(0)).reshape(shape)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(kept != 0, x * kept, np.float32(0)))
