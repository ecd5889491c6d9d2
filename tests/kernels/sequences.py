"""Problems for the recurrent kernels: arrays, what runs them in any layout, and how results are compared."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import UNARY, Activation, GruOptions, LstmOptions, RnnOptions

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
KINDS = tuple(GATES)
DEFAULTS: dict[str, Any] = {"lstm": LstmOptions(), "gru": GruOptions(), "rnn": RnnOptions()}

# h is in [-1, 1]. A gate's sum of some hundred terms near 1 is off by a few 1e-7, exp and tanh by as much again; an LSTM
# keeps the errors of earlier steps from growing, the others carry on some of them. The worst of the tests is 2e-6 (LSTM: 1.2e-6).
TOLERANCE = {"lstm": 2e-6, "gru": 4e-6, "rnn": 4e-6}
# c grows by up to 1 a step and has the sums' errors relative to its size.
C_TOLERANCE = 4e-6


def function(name: str, *parameters: float) -> Activation:
    """An activation by its name, with its defaults where no parameters are given."""
    return Activation(UNARY[name].code, *(parameters or UNARY[name].defaults))


class Result(NamedTuple):
    """out is (t, b, d, h) whatever the layout was."""

    out: np.ndarray
    hn: np.ndarray
    cn: np.ndarray


class Problem(NamedTuple):
    """x is always (t, b, i) here; `run` lays it out. `weights` are the pack kernel's arguments but for the options; `lengths` may
    be a mask.
    """

    kernel: str
    x: np.ndarray
    weights: tuple[np.ndarray | None, ...]
    options: Any
    h0: np.ndarray | None
    c0: np.ndarray | None
    lengths: np.ndarray | None

    @property
    def hidden(self) -> int:
        w_hh = self.weights[1]
        assert w_hh is not None
        return int(w_hh.shape[1]) // GATES[self.kernel]

    @property
    def outs(self) -> int:
        """The size of h, which is that of c but for projections."""
        w_hh = self.weights[1]
        assert w_hh is not None
        return int(w_hh.shape[2])

    @property
    def directions(self) -> int:
        w_hh = self.weights[1]
        assert w_hh is not None
        return len(w_hh)


def problem(
    kernel: str,
    shape: tuple[int, int, int, int],
    directions: int = 1,
    options: Any = None,
    peephole: bool = False,
    lengths: Any = None,
    scale: float = 1.0,
    projections: int = 0,
) -> Problem:
    """Random arrays for steps, batch, inputs, hidden; the same for the same shape. `lengths` may be a mask (b, t)."""
    steps, batch, inputs, hidden = shape
    outs = projections or hidden
    rng = np.random.default_rng([*shape, directions])

    def normal(*shape: int, fan_in: int = 1) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(max(fan_in, 1))).astype(np.float32)

    d, g = directions, GATES[kernel] * hidden
    weights: tuple[np.ndarray | None, ...] = (
        *(normal(d, g, inputs, fan_in=inputs), normal(d, g, outs, fan_in=outs)),
        *(normal(d, g), normal(d, g)),
    )
    if kernel == "lstm":
        weights = (*weights, normal(d, 3 * hidden) if peephole else None)
        weights = (*weights, normal(d, outs, hidden, fan_in=hidden) if projections else None)
    x = normal(steps, batch, inputs) * np.float32(scale)
    states = np.tanh(normal(d, batch, outs)), normal(d, batch, hidden)
    lens = None if lengths is None else np.array(lengths)
    lens = lens if lens is None or lens.dtype == bool else lens.astype(np.int32)
    return Problem(kernel, x, weights, DEFAULTS[kernel] if options is None else options, states[0], states[1], lens)


def alone(p: Problem, j: int) -> Problem:
    """Sequence j of a problem by itself."""
    columns = ("x", "h0", "c0")
    parts = {name: np.ascontiguousarray(getattr(p, name)[:, j : j + 1]) for name in columns}
    return p._replace(lengths=None if p.lengths is None else p.lengths[j : j + 1], **parts)


def pack(p: Problem) -> Any:
    """The packed weights under the current variant."""
    return dispatch.kernel(f"{p.kernel}_pack")(*p.weights, p.options)


def call(p: Problem, packed: Any, x: Any, out: Any, hn: Any, cn: Any, *flags: bool, maker: Any = None) -> Any:
    """The kernel's arguments in their order, handed to it or to `maker`."""
    kernel = dispatch.kernel(p.kernel) if maker is None else maker
    if p.kernel == "lstm":
        return kernel(x, packed, p.h0, p.c0, p.lengths, out, hn, cn, *flags)
    return kernel(x, packed, p.h0, p.lengths, out, hn, *flags)


def run(p: Problem, batch_first: bool = False, apart: bool = False, reverse: bool = False, packed: Any = None) -> Result:
    """Runs the current variant."""
    (steps, batch, _), d, h = p.x.shape, p.directions, p.outs
    x = np.ascontiguousarray(p.x.swapaxes(0, 1)) if batch_first else p.x
    shape: tuple[int, ...] = (*x.shape[:2], d, h) if batch_first else (steps, d, batch, h)
    out = np.full(shape if apart else (*x.shape[:2], d * h), np.nan, np.float32)
    hn, cn = (np.full((d, batch, size), np.nan, np.float32) for size in (h, p.hidden))
    if p.kernel != "lstm":
        cn[...] = 0
    call(p, pack(p) if packed is None else packed, x, out, hn, cn, batch_first, apart, reverse)
    if not apart:
        out = out.reshape(*out.shape[:2], d, h)
    elif not batch_first:
        out = out.swapaxes(1, 2)
    return Result(np.ascontiguousarray(out.swapaxes(0, 1) if batch_first else out), hn, cn)


def reference(p: Problem, **layout: bool) -> Result:
    """Runs the reference."""
    before = dispatch.current()
    with fl.kernels.use("reference"):
        result = run(p, **layout)
    assert dispatch.current() == before
    return result


def assert_close(kernel: str, got: Result, want: Result, relative: float = 0) -> None:
    """`relative` is for functions whose results are not bounded."""
    np.testing.assert_allclose(got.out, want.out, rtol=relative, atol=TOLERANCE[kernel])
    np.testing.assert_allclose(got.hn, want.hn, rtol=relative, atol=TOLERANCE[kernel])
    np.testing.assert_allclose(got.cn, want.cn, rtol=C_TOLERANCE, atol=C_TOLERANCE)


def assert_same_bits(got: Result, want: Result) -> None:
    for name in Result._fields:
        np.testing.assert_array_equal(getattr(got, name).view(np.int32), getattr(want, name).view(np.int32), err_msg=name)
