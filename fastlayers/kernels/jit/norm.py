"""Normalization: rows to mean 0 and variance 1, one factor and one summand per channel, local response."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..table import Activation
from ._math import power
from ._njit import call, emitted, kernel
from ._records import Act, Int, Real
from ._threads import address, scratch, spread
from ._tile import zero
from ._unary import apply, spell
from ._vector import F32, WIDTH, Emit, Float, V

__all__ = ["affine", "group_norm", "layer_norm", "lrn"]

NUMBERS = 1 << 13  # of one task
STRIP = 128  # columns of one task of `lrn`


def _moments(e: Emit, x: V, n: V, epsilon: Float, rms: V) -> tuple[V, V]:
    """Shift and scale of a row: the value to subtract, and the factor that follows."""
    count = e.splat(e.convert(n, F32, "sitofp"))

    def load(i: V, mask: V | None) -> V:
        return e.load(e.at(x, i), mask=mask)

    def add(a: V, b: V) -> V:
        return a + b

    mean = e.var(e.f(0.0))
    with e.when(rms.equals(0)):
        mean.set(e.folded(n, 0.0, lambda so_far, i, mask: so_far + load(i, mask), add) / count)
    m = mean.get()

    def square(so_far: V, i: V, mask: V | None) -> V:
        d = load(i, mask) - m
        return e.fma(d, d, so_far)

    return m, 1.0 / e.root(e.folded(n, 0.0, square, add) / count + e.splat(epsilon))


@emitted
def _norm_row(e: Emit, x: V, weight: V, bias: V, y: V, n: V, epsilon: Float, rms: V) -> None:
    m, scale = _moments(e, x, n, epsilon, rms)

    def put(i: V, mask: V | None) -> None:
        value = e.var((e.load(e.at(x, i), mask=mask) - m) * scale)
        with e.when(weight.differs(0)):
            value.set(value.get() * e.load(e.at(weight, i), mask=mask))
        with e.when(bias.differs(0)):
            value.set(value.get() + e.load(e.at(bias, i), mask=mask))
        e.store(e.at(y, i), value.get(), mask)

    e.vectors(n, put)


@kernel
def _layer_norm(
    x: int, weight: int, bias: int, y: int, rows: int, n: int, epsilon: float, rms: int, step: int, first: int, last: int
) -> None:  # fmt: skip
    for row in range(first * step, min(rows, last * step)):
        _norm_row(x + 4 * row * n, weight, bias, y + 4 * row * n, n, epsilon, rms)


def layer_norm(
    x__on: np.ndarray, weight__n: np.ndarray | None, bias__n: np.ndarray | None, out__on: np.ndarray, epsilon: float, rms: bool
) -> None:
    """out = (x - mean) / sqrt(variance + epsilon) * weight + bias of each row; rms: x / sqrt(mean of x^2 + epsilon) instead."""
    rows, n = x__on.shape
    if not x__on.size:
        return
    step = max(1, NUMBERS // n)
    given = address(x__on), address(weight__n), address(bias__n), address(out__on), rows, n, epsilon, int(rms), step
    spread(-(-rows // step), x__on.size * 8.0, lambda first, last: _layer_norm(*given, first, last))


def _put_channel(e: Emit, x: V, y: V, n: V, m: V, scale: V, factor: V, shift: V) -> None:
    def put(i: V, mask: V | None) -> None:
        e.store(e.at(y, i), e.fma((e.load(e.at(x, i), mask=mask) - m) * scale, factor, shift), mask)

    e.vectors(n, put)


@emitted
def _norm_group(e: Emit, x: V, weight: V, bias: V, y: V, channels: V, inner: V, epsilon: Float) -> None:
    """A group of channels of `inner` values each, with a weight and a bias for each channel."""
    m, scale = _moments(e, x, channels * inner, epsilon, e.i64(0))
    with e.loop(0, channels) as c:
        factor, shift, at = e.var(e.f(1.0)), e.var(e.f(0.0)), c * inner
        with e.when(weight.differs(0)):
            factor.set(e.broadcast(e.at(weight, c)))
        with e.when(bias.differs(0)):
            shift.set(e.broadcast(e.at(bias, c)))

        _put_channel(e, e.at(x, at), e.at(y, at), inner, m, scale, factor.get(), shift.get())


@kernel
def _group_norm(
    x: int, weight: int, bias: int, y: int, groups: int, channels: int, inner: int, epsilon: float, all_groups: int, step: int,
    first: int, last: int,
) -> None:  # fmt: skip
    """Tasks: `step` groups of `channels` channels."""
    for group in range(first * step, min(all_groups, last * step)):
        at, c = 4 * group * channels * inner, 4 * (group % groups * channels)
        own, shift = weight + c if weight != 0 else 0, bias + c if bias != 0 else 0
        if inner == 1:
            _norm_row(x + at, own, shift, y + at, channels, epsilon, 0)
        else:
            _norm_group(x + at, own, shift, y + at, channels, inner, epsilon)


def group_norm(
    x__oci: np.ndarray,
    weight__c: np.ndarray | None,
    bias__c: np.ndarray | None,
    out__oci: np.ndarray,
    groups: int,
    epsilon: float,
) -> None:
    """out = (x - mean) / sqrt(variance + epsilon) * weight[c] + bias[c], with mean and variance of each group of channels."""
    o, channels, inner = x__oci.shape
    if not x__oci.size:
        return
    each = channels // groups
    step = max(1, NUMBERS // (each * inner))
    given = (
        *map(address, (x__oci, weight__c, bias__c, out__oci)), groups, each, inner, epsilon, o * groups, step
    )  # fmt: skip
    spread(-(-o * groups // step), x__oci.size * 8.0, lambda first, last: _group_norm(*given, first, last))


@emitted
def _affine_row(e: Emit, x: V, scale: V, shift: V, each: V, y: V, n: V) -> None:
    with e.builder.if_else(each.differs(0).v) as (then, otherwise):
        with then:

            def own(i: V, mask: V | None) -> None:
                a, b = e.load(e.at(scale, i), mask=mask), e.load(e.at(shift, i), mask=mask)
                e.store(e.at(y, i), e.fma(e.load(e.at(x, i), mask=mask), a, b), mask)

            e.vectors(n, own)
        with otherwise:
            a, b = e.broadcast(scale), e.broadcast(shift)

            def same(i: V, mask: V | None) -> None:
                e.store(e.at(y, i), e.fma(e.load(e.at(x, i), mask=mask), a, b), mask)

            e.vectors(n, same)


@kernel
def _affine(
    apply: int, x: int, scale: int, shift: int, y: int, channels: int, inner: int, act: Act, first: int, last: int
) -> None:
    """Tasks: with `inner` above 1 a channel of an o, in pieces; else all channels of an o."""
    cols = inner if inner > 1 else channels
    pieces = (cols + NUMBERS - 1) // NUMBERS
    for task in range(first, last):
        row, start = task // pieces, task % pieces * NUMBERS
        n = min(NUMBERS, cols - start)
        c = row % channels if inner > 1 else start
        to = y + 4 * (row * cols + start)
        _affine_row(x + 4 * (row * cols + start), scale + 4 * c, shift + 4 * c, 0 if inner > 1 else 1, to, n)
        if act.code != 0:
            call(apply, act, to, to, n)


def affine(x__oci: np.ndarray, scale__c: np.ndarray, shift__c: np.ndarray, out__oci: np.ndarray, activation: Activation) -> None:
    """out = f(x * scale[c] + shift[c]); out may be x."""
    o, channels, inner = x__oci.shape
    if not x__oci.size:
        return
    given = (
        apply.address, address(x__oci), address(scale__c), address(shift__c), address(out__oci), channels, inner,
        spell(activation),
    )  # fmt: skip
    rows, cols = (o * channels, inner) if inner > 1 else (o, channels)
    spread(rows * -(-cols // NUMBERS), x__oci.size * 4.0, lambda first, last: _affine(*given, first, last))


class Local(NamedTuple):
    """A local response normalization: channels in front of one and after it, and the formula's parameters."""

    before: Int
    after: Int
    alpha: Real
    beta: Real
    bias: Real


def _local(e: Emit, x: V, total: V, p: Local, put: Callable[[V], None]) -> None:
    """put(x / (bias + alpha total)^beta); the usual power is made of roots."""
    quarters = V(e, e.builder.fcmp_ordered("==", p.beta.v, e.constant(F32, 0.75).v))
    base = e.fma(e.splat(p.alpha), total, e.splat(p.bias))
    with e.builder.if_else(quarters.v) as (then, otherwise):
        with then:
            root = e.root(base)
            put(x / (root * e.root(root)))
        with otherwise:
            put(x / power(e, base, e.splat(p.beta)))


@emitted
def _lrn_strip(e: Emit, x: V, y: V, channels: V, inner: V, width: V, p: Local) -> None:
    def strip(column: V, mask: V | None) -> None:
        with e.loop(0, channels) as c:
            total = e.var(e.f(0.0))
            low, high = c - p.before, c + p.after + 1
            with e.loop(e.select(low < 0, e.i64(0), low), e.smaller(high, channels)) as t:
                v = e.load(e.at(x, t * inner + column), mask=mask)
                total.set(e.fma(v, v, total.get()))
            place = c * inner + column
            here = e.load(e.at(x, place), mask=mask)
            _local(e, here, total.get(), p, lambda value: e.store(e.at(y, place), value, mask))

    e.vectors(width, strip)


@emitted
def _lrn_row(e: Emit, x: V, row: V, y: V, channels: V, p: Local) -> None:
    """One row whose neighbours are the channels; `row` has `before` zeros, and room for as many values, `after` and a vector."""
    middle = e.at(row, p.before)
    e.vectors(channels, lambda i, mask: e.store(e.at(middle, i), e.load(e.at(x, i), mask=mask)))
    with e.loop(0, p.after, WIDTH) as i:
        e.store(e.at(middle, channels + i), e.f(0.0))

    def put(i: V, mask: V | None) -> None:
        total = e.var(e.f(0.0))
        with e.loop(0, p.before + p.after + 1) as t:
            v = e.load(e.at(row, i + t))
            total.set(e.fma(v, v, total.get()))
        here = e.load(e.at(middle, i))
        _local(e, here, total.get(), p, lambda value: e.store(e.at(y, i), value, mask))

    e.vectors(channels, put)


@kernel
def _lrn(x: int, y: int, channels: int, inner: int, p: Local, first: int, last: int) -> None:
    strips = (inner + STRIP - 1) // STRIP
    for task in range(first, last):
        column = task % strips * STRIP
        at = 4 * (task // strips * channels * inner + column)
        _lrn_strip(x + at, y + at, channels, inner, min(STRIP, inner - column), p)


@kernel
def _lrn_rows(x: int, y: int, rows: int, channels: int, p: Local, row: int, step: int, first: int, last: int) -> None:
    zero(row, p.before)
    for r in range(first * step, min(rows, last * step)):
        at = 4 * r * channels
        _lrn_row(x + at, row, y + at, channels, p)


def lrn(x__oci: np.ndarray, out__oci: np.ndarray, size: int, alpha: float, beta: float, bias: float) -> None:
    """out = x / (bias + alpha / size * sum of x^2 over `size` channels around this one)^beta; even sizes look further ahead."""
    o, channels, inner = x__oci.shape
    if not x__oci.size:
        return
    places = address(x__oci), address(out__oci)
    before = (size - 1) // 2
    if inner > 1:
        given = *places, channels, inner, Local(before, size - 1 - before, alpha / size, beta, bias)
        spread(o * -(-inner // STRIP), x__oci.size * 20.0 + size, lambda first, last: _lrn(*given, first, last))
        return
    # A window reaches no further than all channels.
    local = Local(min(before, channels), min(size - 1 - before, channels), alpha / size, beta, bias)
    step = max(1, NUMBERS // channels)

    def run(first: int, last: int) -> None:
        row = scratch(local.before + channels + local.after + 3 * WIDTH)
        _lrn_rows(*places, o, channels, local, address(row), step, first, last)

    spread(-(-o // step), x__oci.size * 20.0 + size, run)
