"""The operations that a text of kernel calls is written in: done at once, on arrays, or recorded, on memory of a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..kernels import dispatch

__all__ = ["ARRAYS", "Machine", "of", "reference"]


class Machine(NamedTuple):
    """Memory and kernel calls, on arrays or on a program's references to memory. Both have a `shape`.

    Attributes:
        call: a kernel, by its name, with its arguments.
        view: the same memory in another shape.
        temp: memory for so many float32 values, for as long as calls use it.
        part: a shape given to values of flat memory, from one of them on.
        pack: packed weights, by the pack kernel, a function that gives its arguments, what tells them from others of the
            same weights, and whether they may outlive the sizes of this call.
    """

    call: Callable[..., Any]
    view: Callable[[Any, tuple[int, ...]], Any]
    temp: Callable[[tuple[int, ...]], Any]
    part: Callable[[Any, tuple[int, ...], int], Any]
    pack: Callable[..., Any]


def _part(array: np.ndarray, shape: tuple[int, ...], start: int) -> np.ndarray:
    return array[start : start + math.prod(shape)].reshape(shape)


ARRAYS = Machine(
    dispatch.call,
    np.ndarray.reshape,
    dispatch.empty,
    _part,
    lambda kernel, arguments, key=None, kept=True: dispatch.call(kernel, *arguments()),
)


def of(kernels: Mapping[str, Callable[..., Any]]) -> Machine:
    """The machine of one variant's kernels, whichever variant is in use."""
    return ARRAYS._replace(
        call=lambda kernel, *args: kernels[kernel](*args),
        pack=lambda kernel, arguments, key=None, kept=True: kernels[kernel](*arguments()),
    )


@cache
def reference() -> Machine:
    """The machine of reference kernels, whichever variant is in use: arrays may be of any dtype that these take."""
    return of(dispatch.variant("reference").kernels)
