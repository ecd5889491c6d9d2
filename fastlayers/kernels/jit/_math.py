"""Vectorized exp, log, tanh, sigmoid, erf and their kin: the formulas of `aot/csrc/vmath.h` and `double.h`, where their bounds
and reasons are told. No tables, no branches, no calls; a lane's result depends on that lane alone.

Clamps are written most(bound, x): where either is NaN the second one stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ._vector import F32, F64, FUSED, I64, Emit, V

__all__ = ["FUNCTIONS", "exp", "exp_flush", "log", "power", "sigmoid", "sigmoid_divisor", "tanh", "tanh_fraction"]

_h = float.fromhex
_LN2_HIGH, _LN2_LOW, _NEAR = _h("0x1.63p-1"), _h("-0x1.bd0106p-13"), 12582912.0


def _series(e: Emit, x: V, *coefficients: float | str) -> V:
    """A polynomial, the highest power first."""
    numbers = [_h(c) if isinstance(c, str) else c for c in coefficients]
    p: V | float = numbers[0]
    for c in numbers[1:]:
        p = e.fma(p, x, c)
    assert isinstance(p, V)
    return p


def _exp_parts(e: Emit, x: V, bias: float, fine: bool) -> tuple[V, V, V]:
    """exp(x) = 2^n (1 + q): q, n, and bits whose low 23 hold n + bias."""
    t = e.fma(x, _h("0x1.715476p+0"), _NEAR + bias)
    n = t - (_NEAR + bias)
    exact = fine or not FUSED
    r = e.fma(n, -_LN2_LOW, e.fma(n, -_LN2_HIGH, x)) if exact else e.fma(n, _h("-0x1.62e430p-1"), x)
    p = _series(e, r, "0x1.6b96f2p-10", "0x1.1226d8p-7", "0x1.5556f8p-5", "0x1.5554b2p-3", "0x1.fffffep-2")
    return e.fma(r * r, p, r), n, e.bits(t)


def _scale(e: Emit, bits: V) -> V:
    return e.floats(bits << 23)


def exp(e: Emit, x: V) -> V:
    q, _, bits = _exp_parts(e, e.least(89.0, e.most(-104.5, x)), 254, True)
    half = bits >> 1
    s = _scale(e, half)
    return e.fma(s, q, s) * _scale(e, bits - half)


def _exp_negative(e: Emit, x: V) -> V:
    """exp(x) for x <= 0."""
    q, _, bits = _exp_parts(e, e.most(-104.5, x), 127 + 24, True)
    s = _scale(e, bits)
    return e.fma(s, q, s) * 2.0**-24


def exp_flush(e: Emit, x: V) -> V:
    """exp(x) for x <= 0, where results below 2^-126 may as well be 0."""
    q, _, bits = _exp_parts(e, e.most(-88.0, x), 127, False)
    s = _scale(e, bits)
    return e.fma(s, q, s)


def _expm1_negative(e: Emit, x: V) -> V:
    q, _, bits = _exp_parts(e, e.most(-40.0, x), 127, False)
    s = _scale(e, bits)
    return e.fma(s, q, s - 1.0)


def sigmoid(e: Emit, x: V) -> V:
    q, _, bits = _exp_parts(e, -e.least(60.0, e.most(-104.5, x)), 127 - 24, True)
    s = _scale(e, bits)
    return 2.0**-24 / (e.fma(s, q, s) + 2.0**-24)


def sigmoid_divisor(e: Emit, x: V) -> V:
    """1 / sigmoid(x), such that the product of two is finite."""
    q, _, bits = _exp_parts(e, -e.least(87.0, e.most(-86.0, x)), 127, False)
    s = _scale(e, bits)
    return e.fma(s, q, s) + 1.0


def _log_tail(e: Emit, f: V, f2: V) -> V:
    """log(1 + f) - (f - f^2 / 2)."""
    p = _series(
        e, f, "-0x1.38c974p-4", "0x1.055eaep-3", "-0x1.0d8246p-3", "0x1.22d930p-3", "-0x1.54728ap-3", "0x1.99a01cp-3",
        "-0x1.000226p-2", "0x1.555554p-2",
    )  # fmt: skip
    return p * (f2 * f)


def log(e: Emit, x: V) -> V:
    tiny = x < 2.0**-126
    i = e.bits(e.select(tiny, x * 2.0**23, x)) - 0x3F3504F3
    n = e.convert((i >> 23) - e.select(tiny, e.constant(i.kind, 23), 0), F32, "sitofp")
    f = e.floats((i & 0x7FFFFF) + 0x3F3504F3) - 1.0
    f2 = f * f
    y = e.fma(n, _LN2_LOW, _log_tail(e, f, f2))
    y = e.fma(n, _LN2_HIGH, f + e.fma(f2, -0.5, y))
    y = e.select(x < math.inf, y, x)
    y = e.select(x.equals(0.0), -math.inf, y)
    return e.select(x < 0.0, math.nan, y)


def _log1p_unit(e: Emit, x: V) -> V:
    """log(1 + x) for 0 <= x <= 1."""
    high = x > 0.41421357
    f = e.select(high, e.fma(x, 0.5, -0.5), x)
    f2 = f * f
    y = _log_tail(e, f, f2) + e.select(high, e.f(_LN2_LOW), 0.0)
    return e.select(high, e.f(_LN2_HIGH), 0.0) + (f + e.fma(f2, -0.5, y))


def tanh_fraction(e: Emit, x: V) -> tuple[V, V]:
    """tanh(x) as a fraction."""
    m = _expm1_negative(e, -2.0 * e.absolute(x))
    return e.signed(m, x), m + 2.0


def tanh(e: Emit, x: V) -> V:
    m = _expm1_negative(e, -2.0 * e.absolute(x))
    return e.signed(m / (2.0 + m), x)


def _exp2_parts(e: Emit, t: V) -> tuple[V, V]:
    rounded = t + (_NEAR + 127)
    r = t - (rounded - (_NEAR + 127))
    p = _series(e, r, "0x1.5bd898p-10", "0x1.3ce8c0p-7", "0x1.c6b6dcp-5", "0x1.ebf9c2p-3", "0x1.62e42ap-1")
    return _scale(e, e.bits(rounded)), p * r


def _erf(e: Emit, x: V) -> V:
    a, u = e.least(4.0, e.absolute(x)), x * x
    p = _series(e, u, "-0x1.3cb530p-11", "0x1.47d50ep-8", "-0x1.b6a3b4p-6", "0x1.ce1bfap-4", "-0x1.8126eep-2", "0x1.06eba6p-3")
    near = e.fma(p, x, x)
    t = _series(
        e, a, "0x1.303d7cp-12", "-0x1.2479b8p-8", "0x1.090636p-5", "-0x1.344660p-3", "-0x1.d65350p-1", "-0x1.a09520p+0",
        "-0x1.90678cp-13",
    )  # fmt: skip
    s, q = _exp2_parts(e, t)
    return e.select(a < 0.875, near, e.signed((1.0 - s) - s * q, x))


def _normal(e: Emit, x: V) -> V:
    """The normal distribution's share below x."""
    t = _series(
        e, e.absolute(x), "-0x1.45f394p-19", "0x1.220b2ap-15", "-0x1.573dd0p-13", "-0x1.8fda38p-13", "0x1.d37958p-8",
        "-0x1.ae71f8p-5", "-0x1.d63658p-2", "-0x1.26aefap+0", "-0x1.fffffep-1",
    )  # fmt: skip
    s, q = _exp2_parts(e, e.most(-127.0, t))
    tail = e.fma(s, q, s)
    return e.select(x < 0.0, tail, 1.0 - tail)


def _floor(e: Emit, x: V) -> V:
    y = e.nearest(x)
    return e.select(y > x, y - 1.0, y)


def _softplus(e: Emit, x: V, a: V, b: V) -> V:
    t = a * x
    return e.select(t > b, x, (e.most(0.0, t) + _log1p_unit(e, _exp_negative(e, -e.absolute(t)))) * (1.0 / a))


def _hardswish(e: Emit, x: V) -> V:
    """A sixth has two parts: rounded to one it is too large by 2e-8, and layer after layer errs to the same side."""
    t = e.least(6.0, e.most(0.0, x + 3.0))
    return x * e.fma(t, e.f(_h("0x1.555556p-3")), t * _h("-0x1.555556p-28"))


def _mish(e: Emit, x: V) -> V:
    w = _exp_negative(e, -e.absolute(x))
    above = x > 0.0
    k = e.select(above, e.fma(2.0, w, 1.0), w * (w + 2.0))
    return x * (k / (k + e.select(above, 2.0 * (w * w), 2.0)))


# ---- in doubles

_NEAREST = 1.5 * 2.0**52
_SIGN = -(2**63)


def power(e: Emit, base: V, exponent: V) -> V:
    """a^b, right as C's pow is."""
    a, b = e.convert(base, F64, "fpext"), e.convert(exponent, F64, "fpext")
    x = e.absolute(a)
    half_root, one = 0x3FE6A09E667F3BCD, 0x3FF0000000000000
    k = (e.bits(x) - half_root + one).logical_shift(52)
    whole_part = e.floats(k | 0x4330000000000000) - (2.0**52 + 1023)
    m = e.floats(e.bits(x) - (k << 52) + one)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = _series(e, z, *(1 / n for n in (13, 11, 9, 7, 5, 3, 1)))
    t = whole_part + s * series * _h("0x1.71547652b82fep+1")
    t = e.select(x.equals(0.0), -math.inf, e.select(x.equals(math.inf), math.inf, t))
    t = e.select(x.equals(1.0), 0.0, b * t)
    t = e.select(t > -200.0, t, -200.0)
    t = e.select(t < 200.0, t, 200.0)
    rounded = t + _NEAREST
    u = (t - (rounded - _NEAREST)) * _h("0x1.62e42fefa39efp-1")
    y = _series(e, u, *(1 / math.factorial(n) for n in range(9, -1, -1)))
    y = y * e.floats((e.bits(rounded) << 52) + one)
    large = e.absolute(b) >= 2.0**24
    whole = large | ((b + _NEAREST) - _NEAREST).equals(b)
    half = b * 0.5
    even = large | ((half + _NEAREST) - _NEAREST).equals(half)
    y = e.select(whole & ~even, e.floats(e.bits(y) | (e.bits(a) & _SIGN)), y)
    y = e.select((a < 0.0) & (x < math.inf) & ~whole, math.nan, y)
    y = e.select(a.differs(a) | b.differs(b), math.nan, y)
    y = e.select(b.equals(0.0) | a.equals(1.0), 1.0, y)
    return e.convert(y, F32, "fptrunc")


def _far_angle(e: Emit, x: V) -> tuple[V, V]:
    """The rest of |x| divided by pi/2 for finite |x| from 2^28 on, and the quotient's last bits: doubles and integers, lane by
    lane.

    x = m 2^k; the bits of 2/pi that are worth 4 or more after the multiplication by 2^k do not count,
    the 96 after them are enough.
    """
    digits = (0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
    bits = e.convert(e.bits(x), I64, "zext")
    m = (bits & 0x7FFFFF) | 0x800000
    first = ((bits.logical_shift(23)) & 255) - 152

    def at(number: V) -> V:
        value: V = e.constant(number.kind, 0)
        for i, digit in enumerate(digits):
            value = e.select(number.equals(i), e.constant(number.kind, digit), value)
        return value

    place, shift = first >> 5, first & 31
    words = [at(place + i) for i in range(4)]
    window = [
        V(e, e.builder.lshr(e.builder.shl(((words[i] << 32) | words[i + 1]).v, shift.v), e.constant(shift.kind, 32).v))
        for i in range(3)
    ]
    product = (m * window[0] << 32) + m * window[1] + (m * window[2]).logical_shift(32)
    nearest = (product + (1 << 61)).logical_shift(62)
    rest = e.convert(product - (nearest << 62), F64, "sitofp")
    return rest * _h("0x1.921fb54442d18p-62"), nearest


def _wave(e: Emit, x: V, ahead: int) -> V:
    wide = e.convert(x, F64, "fpext")
    a = e.absolute(wide)
    rounded = a * _h("0x1.45f306dc9c883p-1") + _NEAREST
    n = rounded - _NEAREST
    r = a - n * _h("0x1.921fb5p+0")
    r = r - n * _h("0x1.110b46p-26")
    r = r - n * _h("0x1.1a62633145c07p-54")
    far = (a >= 2.0**28) & (a < math.inf)
    rest, quadrant = e.var(r), e.var(e.bits(rounded))
    with e.when(e.any(far)):
        far_rest, far_quadrant = _far_angle(e, x)
        rest.set(e.select(far, far_rest, r))
        quadrant.set(e.select(far, far_quadrant, e.bits(rounded)))
    r, q = rest.get(), quadrant.get() + ahead
    z = r * r
    s = _series(e, z, 1 / 6227020800.0, -1 / 39916800.0, 1 / 362880.0)
    s = r + r * z * (-1 / 6.0 + z * (1 / 120.0 + z * (-1 / 5040.0 + z * s)))
    c = _series(e, z, 1 / 479001600.0, -1 / 3628800.0)
    c = 1.0 + z * (-0.5 + z * (1 / 24.0 + z * (-1 / 720.0 + z * (1 / 40320.0 + z * c))))
    sign = e.constant(q.kind, 0) if ahead else e.bits(wide) & _SIGN
    y = e.select((q & 1).differs(0), c, s)
    return e.convert(e.floats((e.bits(y) ^ sign) ^ ((q & 2) << 62)), F32, "fptrunc")


# By the names of table.UNARY: (e, x, a, b) with the parameters in every lane; of SELU, a has been multiplied by b.
FUNCTIONS: dict[str, Callable[[Emit, V, V, V], V]] = {
    "identity": lambda e, x, a, b: x,
    "relu": lambda e, x, a, b: e.most(0.0, x),
    "clip": lambda e, x, a, b: e.least(b, e.most(a, x)),
    "leaky_relu": lambda e, x, a, b: e.select(x >= 0.0, x, a * x),
    "elu": lambda e, x, a, b: e.select(x > 0.0, x, a * _expm1_negative(e, e.least(0.0, x))),
    "selu": lambda e, x, a, b: e.select(x > 0.0, b * x, a * _expm1_negative(e, e.least(0.0, x))),
    "sigmoid": lambda e, x, a, b: sigmoid(e, x),
    "tanh": lambda e, x, a, b: tanh(e, x),
    "gelu": lambda e, x, a, b: x * _normal(e, x),
    "gelu_tanh": lambda e, x, a, b: x * sigmoid(e, x * e.fma(x * x, 0.07135481627, 1.595769122)),
    "silu": lambda e, x, a, b: x * sigmoid(e, x),
    "hardsigmoid": lambda e, x, a, b: e.least(1.0, e.most(0.0, e.fma(a, x, b))),
    # x + 3 is exact where it nearly cancels, x / 6 + 1/2 is not
    "hardswish": lambda e, x, a, b: _hardswish(e, x),
    "softplus": _softplus,
    "softsign": lambda e, x, a, b: x / (1.0 + e.absolute(x)),
    "mish": lambda e, x, a, b: _mish(e, x),
    "exp": lambda e, x, a, b: exp(e, x),
    "log": lambda e, x, a, b: log(e, x),
    "erf": lambda e, x, a, b: _erf(e, x),
    "sqrt": lambda e, x, a, b: e.root(x),
    "square": lambda e, x, a, b: x * x,
    "negative": lambda e, x, a, b: -x,
    "abs": lambda e, x, a, b: e.absolute(x),
    "reciprocal": lambda e, x, a, b: 1.0 / x,
    "floor": lambda e, x, a, b: _floor(e, x),
    "ceil": lambda e, x, a, b: -_floor(e, -x),
    "round": lambda e, x, a, b: e.nearest(x),
    "sign": lambda e, x, a, b: e.select(e.absolute(x) > 0.0, e.signed(e.f(1.0), x), x),
    "sin": lambda e, x, a, b: _wave(e, x, 0),
    "cos": lambda e, x, a, b: _wave(e, x, 1),
    "celu": lambda e, x, a, b: e.select(x > 0.0, x, a * _expm1_negative(e, -e.absolute(x / a))),
    # what is NaN is neither less nor more, and stays
    "shrink": lambda e, x, a, b: e.select(x < -a, x + b, e.select(x > a, x - b, e.select(x.equals(x), 0.0, x))),
    "threshold": lambda e, x, a, b: e.select(x <= a, b, x),
    "tanhshrink": lambda e, x, a, b: x - tanh(e, x),
    "logsigmoid": lambda e, x, a, b: e.least(0.0, x) - _log1p_unit(e, _exp_negative(e, -e.absolute(x))),
    "quick_gelu": lambda e, x, a, b: x * sigmoid(e, a * x),
}
