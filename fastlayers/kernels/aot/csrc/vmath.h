/* Vectorized exp, log, tanh, sigmoid, erf and their kin, over the vector layer: no tables, no branches, no calls.
 *
 * Every function is right for every float: NaN gives NaN, infinities and both zeros what the formula says, subnormals
 * included. A lane's result depends on that lane alone. The largest error against float64, in units of the last place of the
 * result (x86_v1 has no FMA; every 23rd float was tried, and tests/kernels/test_accuracy.py holds all levels to the bounds):
 *
 *   function      bound with FMA   without   domain
 *   vexp          1.05             1.0       all; gradual underflow, infinity above 88.72
 *   vexp_neg      1.05             1.0       x <= 0; gradual underflow
 *   vexp_flush    1.05 + 0.05 |x|  1.0       x <= 0; results below 2^-126 may be 0
 *   vexpm1_neg    1.0              1.05      x <= 0
 *   vlog          0.85             0.9       all; -infinity at 0, NaN below
 *   vlog1p_unit   1.45             1.45      0 <= x <= 1
 *   vsigmoid      2.5              2.5       all; gradual underflow
 *   vtanh         2.5              2.5       all; exactly 1 where tanh rounds to it, never beyond
 *   verf          1.5              1.6       all; exactly 1 where erf rounds to it, never beyond
 *   vnormal       see there                  all
 *
 * Polynomials are minimax fits whose coefficients were rounded to float one after the other, the rest fitted again each time.
 * Clamps are written vmax(bound, x): x86 gives the second operand where either is NaN, so NaN survives them.
 */
#ifndef FL_VMATH_H
#define FL_VMATH_H

#define FL_LN2_HIGH 0x1.63p-1f        /* ln 2 to 10 bits: its product with an exponent is exact without FMA as well */
#define FL_LN2_LOW -0x1.bd0106p-13f   /* the rest */
#define FL_NEAR 12582912.0f           /* 1.5 2^23: adding it leaves the nearest integer in the low bits of the sum */

#if defined(__FMA__) || defined(__aarch64__)
#define FL_FUSED 1
#else
#define FL_FUSED 0
#endif

typedef struct {
  vf q;    /* e^r - 1, relative error 2^-26 */
  vf n;
  vi bits; /* the low 23 bits hold n + bias */
} fl_exp_parts;

/* x = n ln 2 + r with |r| <= 0.3475. Without `fine`, r is off by up to 2^-29 n where multiplications are fused. */
FL_INLINE fl_exp_parts vexp_parts(vf x, float bias, int fine) {
  const vf t = vfma(x, vset(0x1.715476p+0f), vset(FL_NEAR + bias));
  const vf n = t - (FL_NEAR + bias);
  const vf r = fine || !FL_FUSED ? vfma(n, vset(-FL_LN2_LOW), vfma(n, vset(-FL_LN2_HIGH), x)) : vfma(n, vset(-0x1.62e430p-1f), x);
  vf p = vfma(vset(0x1.6b96f2p-10f), r, vset(0x1.1226d8p-7f));
  p = vfma(p, r, vset(0x1.5556f8p-5f));
  p = vfma(p, r, vset(0x1.5554b2p-3f));
  p = vfma(p, r, vset(0x1.fffffep-2f));
  return (fl_exp_parts){vfma(r * r, p, r), n, vbits(t)};
}

/* 2^n for n = -127 (which gives 0) .. 127, for parts with a bias of 127 more */
FL_INLINE vf vexp_scale(fl_exp_parts e) { return vfrom(e.bits << 23); }

FL_INLINE FL_UNUSED vf vexp(vf x) {
  const fl_exp_parts e = vexp_parts(vmin(vset(89.0f), vmax(vset(-104.5f), x)), 254, 1);
#ifdef __AVX512F__
  return (vf)_mm512_scalef_ps((__m512)(e.q + 1.0f), (__m512)e.n);
#else
  /* 2^n has no float for every n that is needed: n + 254 is halved, and each half is a biased exponent */
  const vi half = e.bits >> 1;
  const vf s = vfrom(half << 23);
  return vfma(s, e.q, s) * vfrom((e.bits - half) << 23);
#endif
}

/* exp(x) for x <= 0: one multiplication by 2^-24 brings gradual underflow */
FL_INLINE FL_UNUSED vf vexp_neg(vf x) {
  const fl_exp_parts e = vexp_parts(vmax(vset(-104.5f), x), 127 + 24, 1);
  const vf s = vexp_scale(e);
  return vfma(s, e.q, s) * 0x1p-24f;
}

/* exp(x) for x <= 0, where results below 2^-126 may as well be 0; for an x that was itself rounded, which costs 10 times more */
FL_INLINE FL_UNUSED vf vexp_flush(vf x) {
  const fl_exp_parts e = vexp_parts(vmax(vset(-88.0f), x), 127, 0);
  const vf s = vexp_scale(e);
  return vfma(s, e.q, s);
}

/* exp(x) - 1 for x <= 0, with a small relative error near 0 */
FL_INLINE FL_UNUSED vf vexpm1_neg(vf x) {
  const fl_exp_parts e = vexp_parts(vmax(vset(-40.0f), x), 127, 0);
  const vf s = vexp_scale(e);
  return vfma(s, e.q, s - 1.0f);
}

/* 2^-24 / (2^-24 + 2^-24 exp(-x)): the common factor keeps the denominator finite down to where the result vanishes */
FL_INLINE FL_UNUSED vf vsigmoid(vf x) {
  const fl_exp_parts e = vexp_parts(-vmin(vset(60.0f), vmax(vset(-104.5f), x)), 127 - 24, 1);
  const vf s = vexp_scale(e);
  return 0x1p-24f / (vfma(s, e.q, s) + 0x1p-24f);
}

/* log(1 + f) - (f - f^2 / 2) for 1 + f in [sqrt(1/2), sqrt(2)] */
FL_INLINE vf vlog_tail(vf f, vf f2) {
  vf p = vfma(vset(-0x1.38c974p-4f), f, vset(0x1.055eaep-3f));
  p = vfma(p, f, vset(-0x1.0d8246p-3f));
  p = vfma(p, f, vset(0x1.22d930p-3f));
  p = vfma(p, f, vset(-0x1.54728ap-3f));
  p = vfma(p, f, vset(0x1.99a01cp-3f));
  p = vfma(p, f, vset(-0x1.000226p-2f));
  p = vfma(p, f, vset(0x1.555554p-2f));
  return p * (f2 * f);
}

FL_INLINE FL_UNUSED vf vlog(vf x) {
  const vi tiny = (vi)(x < 0x1p-126f);
  /* From the bits of sqrt(1/2) on; unsigned, since those of a negative x wrap around. */
  const vi i = (vi)((vu)vbits(vsel(tiny, x * 0x1p23f, x)) - 0x3f3504f3u);
  const vf n = vfloat((i >> 23) - (tiny & 23));
  const vf f = vfrom((i & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const vf f2 = f * f;
  vf y = vfma(n, vset(FL_LN2_LOW), vlog_tail(f, f2));
  y = vfma(n, vset(FL_LN2_HIGH), f + vfma(f2, vset(-0.5f), y));
  y = vsel((vi)(x < (float)INFINITY), y, x); /* infinity and NaN */
  y = vsel((vi)(x == 0.0f), vset(-(float)INFINITY), y);
  return vfrom(vbits(y) | (vi)(x < 0.0f)); /* all bits set: NaN */
}

/* log(1 + x) for 0 <= x <= 1: log(x), or log(2) + log((1 + x) / 2), whose fraction (x - 1) / 2 is exact */
FL_INLINE FL_UNUSED vf vlog1p_unit(vf x) {
  const vi high = (vi)(x > 0.41421357f);
  const vf f = vsel(high, vfma(x, vset(0.5f), vset(-0.5f)), x);
  const vf f2 = f * f;
  const vf y = vlog_tail(f, f2) + vfrom(high & vbits(vset(FL_LN2_LOW)));
  return vfrom(high & vbits(vset(FL_LN2_HIGH))) + (f + vfma(f2, vset(-0.5f), y));
}

/* -m / (2 + m) with m = exp(-2 |x|) - 1, whose relative error is small near 0 too */
FL_INLINE FL_UNUSED vf vtanh(vf x) {
  const vf m = vexpm1_neg(-2.0f * vabs(x));
  return vsign(m / (2.0f + m), x);
}

/* 2^t for -127 <= t <= 0 as s (1 + q), to a relative 2^-23; s is 0 at the lower end */
typedef struct {
  vf s, q;
} fl_exp2_parts;
FL_INLINE fl_exp2_parts vexp2_parts(vf t) {
  const vf rounded = t + (FL_NEAR + 127);
  const vf r = t - (rounded - (FL_NEAR + 127));
  vf p = vfma(vset(0x1.5bd898p-10f), r, vset(0x1.3ce8c0p-7f));
  p = vfma(p, r, vset(0x1.c6b6dcp-5f));
  p = vfma(p, r, vset(0x1.ebf9c2p-3f));
  p = vfma(p, r, vset(0x1.62e42ap-1f));
  return (fl_exp2_parts){vfrom(vbits(rounded) << 23), p * r};
}

/* Near 0 an odd polynomial; beyond, 1 - 2^t, t a polynomial that fits log2(1 - erf): both are evaluated, one is chosen */
FL_INLINE FL_UNUSED vf verf(vf x) {
  const vf a = vmin(vset(4.0f), vabs(x)), u = x * x;
  vf p = vfma(vset(-0x1.3cb530p-11f), u, vset(0x1.47d50ep-8f));
  p = vfma(p, u, vset(-0x1.b6a3b4p-6f));
  p = vfma(p, u, vset(0x1.ce1bfap-4f));
  p = vfma(p, u, vset(-0x1.8126eep-2f));
  p = vfma(p, u, vset(0x1.06eba6p-3f));
  const vf near = vfma(p, x, x);
  vf t = vfma(vset(0x1.303d7cp-12f), a, vset(-0x1.2479b8p-8f));
  t = vfma(t, a, vset(0x1.090636p-5f));
  t = vfma(t, a, vset(-0x1.344660p-3f));
  t = vfma(t, a, vset(-0x1.d65350p-1f));
  t = vfma(t, a, vset(-0x1.a09520p+0f));
  t = vfma(t, a, vset(-0x1.90678cp-13f));
  const fl_exp2_parts e = vexp2_parts(t);
  const vf far = (1.0f - e.s) - e.s * e.q;
  return vsel((vi)(a < 0.875f), near, vsign(far, x));
}

/* The normal distribution's share below x: 2^t or 1 - 2^t, where the polynomial t in |x| fits log2 of the share below -|x| and goes
 * to -infinity with |x|. The share is 0 below -10.2. The error is 2^-23 |t| of the smaller share and 1.5 units. */
FL_INLINE FL_UNUSED vf vnormal(vf x) {
  const vf a = vabs(x);
  vf t = vfma(vset(-0x1.45f394p-19f), a, vset(0x1.220b2ap-15f));
  t = vfma(t, a, vset(-0x1.573dd0p-13f));
  t = vfma(t, a, vset(-0x1.8fda38p-13f));
  t = vfma(t, a, vset(0x1.d37958p-8f));
  t = vfma(t, a, vset(-0x1.ae71f8p-5f));
  t = vfma(t, a, vset(-0x1.d63658p-2f));
  t = vfma(t, a, vset(-0x1.26aefap+0f));
  t = vfma(t, a, vset(-0x1.fffffep-1f));
  const fl_exp2_parts e = vexp2_parts(vmax(vset(-127.0f), t));
  const vf tail = vfma(e.s, e.q, e.s);
  return vsel((vi)(x < 0.0f), tail, 1.0f - tail);
}
#endif
