/* Elementwise functions: y[i] = f(x[i]), PReLU, and gated units.
 *
 * Operands are contiguous and of any alignment; y may be x. A function is written once, for one vector (fl_v_<name>), and FL_MAP
 * makes its loop. The remainder goes through the same code as a partial vector, so a result does not depend on its place.
 * Error bounds beyond those of vmath.h, in units in the last place of the result (tests/kernels/test_accuracy.py):
 *   leaky ReLU, PReLU   0.5                 SiLU          3 + 2^-140 (exp(x) is subnormal there)
 *   ELU (alpha = 1)     1.5                 mish          4 + 2^-140
 *   softsign            1.5                 GELU          3 + 2^-24
 *   SELU                2                   GELU (tanh)   3 + 2^-23: below 0 the sigmoid's argument has lost digits
 *   softplus            2.5                 hard sigmoid  0.5 + 2^-24 (it rounds twice without FMA)
 *   hard swish          2.5                 sine, cosine  0.51
 *   ReLU, clip, square, negative, abs, reciprocal, floor, ceil, round, sign      exact
 */
#include "part.h"

FL_INLINE vf fl_v_relu(vf x, vf a, vf b) { (void)a, (void)b; return vmax(vset(0), x); }
FL_INLINE vf fl_v_clip(vf x, vf a, vf b) { return vmin(b, vmax(a, x)); }
FL_INLINE vf fl_v_leaky_relu(vf x, vf a, vf b) { (void)b; return vsel((vi)(x >= 0), x, a * x); }
/* Above 0 the second part is 0, below the first: nothing is selected. */
FL_INLINE vf fl_v_elu(vf x, vf a, vf b) { (void)b; return vfma(a, vexpm1_neg(vmin(vset(0), x)), vmax(vset(0), x)); }
/* a arrives multiplied by b: see fl_f32_unary */
FL_INLINE vf fl_v_selu(vf x, vf ab, vf b) { return vfma(ab, vexpm1_neg(vmin(vset(0), x)), b * vmax(vset(0), x)); }
FL_INLINE vf fl_v_sigmoid(vf x, vf a, vf b) { (void)a, (void)b; return vsigmoid(x); }
FL_INLINE vf fl_v_tanh(vf x, vf a, vf b) { (void)a, (void)b; return vtanh(x); }
FL_INLINE vf fl_v_gelu(vf x, vf a, vf b) { (void)a, (void)b; return x * vnormal(x); }
/* 0.5 (1 + tanh(u)) = sigmoid(2 u), which keeps its relative precision below 0 */
FL_INLINE vf fl_v_gelu_tanh(vf x, vf a, vf b) {
  (void)a, (void)b;
  return x * vsigmoid(x * vfma(x * x, vset(0.07135481627f), vset(1.595769122f)));
}
FL_INLINE vf fl_v_silu(vf x, vf a, vf b) { (void)a, (void)b; return x * vsigmoid(x); }
FL_INLINE vf fl_v_hardsigmoid(vf x, vf a, vf b) { return vmin(vset(1), vmax(vset(0), vfma(a, x, b))); }
/* x + 3 is exact where it nearly cancels, x / 6 + 1/2 is not. A sixth has two parts: rounded to one it is too large by 2e-8, and layer after
 * layer errs to the same side (DeepLab on MobileNet-v3: 1.5 times the error). */
FL_INLINE vf fl_v_hardswish(vf x, vf a, vf b) {
  (void)a, (void)b;
  const vf t = vmin(vset(6), vmax(vset(0), x + 3.0f));
#if defined(__FMA__) || defined(__aarch64__)
  return x * vfma(t, vset(0x1.555556p-3f), t * -0x1.555556p-28f);
#else
  return x * (t / 6.0f);
#endif
}
/* log(1 + exp(t)) = max(t, 0) + log(1 + exp(-|t|)) */
FL_INLINE vf fl_v_softplus(vf x, vf a, vf b) {
  const vf t = a * x;
  return vsel((vi)(t > b), x, (vmax(vset(0), t) + vlog1p_unit(vexp_neg(-vabs(t)))) * (1.0f / a));
}
FL_INLINE vf fl_v_softsign(vf x, vf a, vf b) { (void)a, (void)b; return x / (1.0f + vabs(x)); }
/* tanh(log(1 + w)) = k / (k + 2), k = w (w + 2), w = exp(x); above 0 both are divided by w^2, so nothing overflows */
FL_INLINE vf fl_v_mish(vf x, vf a, vf b) {
  (void)a, (void)b;
  const vf w = vexp_neg(-vabs(x));
  const vi above = (vi)(x > 0);
  const vf k = vsel(above, vfma(vset(2), w, vset(1)), w * (w + 2.0f));
  return x * (k / (k + vsel(above, 2.0f * (w * w), vset(2))));
}
FL_INLINE vf fl_v_exp(vf x, vf a, vf b) { (void)a, (void)b; return vexp(x); }
FL_INLINE vf fl_v_log(vf x, vf a, vf b) { (void)a, (void)b; return vlog(x); }
FL_INLINE vf fl_v_erf(vf x, vf a, vf b) { (void)a, (void)b; return verf(x); }
FL_INLINE vf fl_v_sqrt(vf x, vf a, vf b) { (void)a, (void)b; return vsqrt(x); }
FL_INLINE vf fl_v_square(vf x, vf a, vf b) { (void)a, (void)b; return x * x; }
FL_INLINE vf fl_v_negative(vf x, vf a, vf b) { (void)a, (void)b; return -x; }
FL_INLINE vf fl_v_abs(vf x, vf a, vf b) { (void)a, (void)b; return vabs(x); }
FL_INLINE vf fl_v_reciprocal(vf x, vf a, vf b) { (void)a, (void)b; return 1.0f / x; }
FL_INLINE vf fl_v_round(vf x, vf a, vf b) { (void)a, (void)b; return vround(x); }
/* one less where rounding went up; 1 is not subtracted elsewhere, as -0 must stay */
FL_INLINE vf fl_v_floor(vf x, vf a, vf b) {
  (void)a, (void)b;
  const vf y = vround(x);
  return vsel((vi)(y > x), y - 1.0f, y);
}
FL_INLINE vf fl_v_ceil(vf x, vf a, vf b) { return -fl_v_floor(-x, a, b); }
FL_INLINE vf fl_v_sign(vf x, vf a, vf b) {
  (void)a, (void)b;
  return vsel((vi)(vabs(x) > 0), vsign(vset(1), x), x);
}
FL_INLINE vf fl_v_wave(vf x, int ahead) {
  vh half[2];
  memcpy(half, &x, sizeof x);
  half[0] = vsine(half[0], ahead);
  half[1] = vsine(half[1], ahead);
  memcpy(&x, half, sizeof x);
  return x;
}
FL_INLINE vf fl_v_sin(vf x, vf a, vf b) { (void)a, (void)b; return fl_v_wave(x, 0); }
FL_INLINE vf fl_v_cos(vf x, vf a, vf b) { (void)a, (void)b; return fl_v_wave(x, 1); }

FL_INLINE vf fl_v_celu(vf x, vf a, vf b) { (void)b; return vsel((vi)(x > 0), x, a * vexpm1_neg(-vabs(x / a))); }
/* what is NaN is neither less nor more, and stays */
FL_INLINE vf fl_v_shrink(vf x, vf a, vf b) {
  return vsel((vi)(x < -a), x + b, vsel((vi)(x > a), x - b, vsel((vi)(x == x), vset(0), x)));
}
FL_INLINE vf fl_v_threshold(vf x, vf a, vf b) { return vsel((vi)(x <= a), b, x); }
FL_INLINE vf fl_v_tanhshrink(vf x, vf a, vf b) { (void)a, (void)b; return x - vtanh(x); }
FL_INLINE vf fl_v_logsigmoid(vf x, vf a, vf b) {
  (void)a, (void)b;
  return vmin(vset(0), x) - vlog1p_unit(vexp_neg(-vabs(x)));
}
FL_INLINE vf fl_v_quick_gelu(vf x, vf a, vf b) { (void)b; return x * vsigmoid(a * x); }

typedef vf (*fl_v_fn)(vf x, vf a, vf b);
enum { FL_ALONE, FL_TIMES }; /* y = f(x), or y = f(x) * g */

/* The one loop: inlined into each FL_MAP with its function, so that the constants stay in registers. Two vectors a turn. */
FL_INLINE void fl_map(fl_v_fn f, int kind, float a, float b, const float *x, const float *g, float *y, int64_t n) {
  const vf va = vset(a), vb = vset(b);
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    vf p = f(vload(x + i), va, vb), q = f(vload(x + i + VW), va, vb);
    if (kind == FL_TIMES)
      p *= vload(g + i), q *= vload(g + i + VW);
    vstore(y + i, p);
    vstore(y + i + VW, q);
  }
  if (i + VW <= n) {
    vf p = f(vload(x + i), va, vb);
    if (kind == FL_TIMES)
      p *= vload(g + i);
    vstore(y + i, p);
    i += VW;
  }
  if (i < n) {
    vf p = f(vget_part(x + i, n - i, 0.0f), va, vb);
    if (kind == FL_TIMES)
      p *= vget_part(g + i, n - i, 0.0f);
    vput_part(y + i, p, n - i);
  }
}

FL_INLINE vf fl_v_identity(vf x, vf a, vf b) { (void)a, (void)b; return x; }

/* Every row of table.UNARY by its code and name: one function, and another for those that may gate; then the table of both. */
typedef void (*fl_map_fn)(float a, float b, const float *x, const float *g, float *y, int64_t n);
#define FL_MAP_AS(prefix, name, kind)                                                                                             \
  static __attribute__((noinline)) void prefix##name(float a, float b, const float *x, const float *g, float *y, int64_t n) { \
    fl_map(fl_v_##name, kind, a, b, x, g, y, n);                                                                                  \
  }
#define FL_MAP(code, name) FL_MAP_AS(fl_map_, name, FL_ALONE)
#define FL_MAP_GATE(code, name) FL_MAP(code, name) FL_MAP_AS(fl_gate_, name, FL_TIMES)
#define FL_UNARY_ROW(code, name) [code] = {fl_map_##name, 0},
#define FL_UNARY_ROW_GATE(code, name) [code] = {fl_map_##name, fl_gate_##name},

FL_UNARY_EACH(FL_MAP, FL_MAP_GATE)

static const struct {
  fl_map_fn map, gate;
} fl_unary_table[FL_UNARY_COUNT] = {FL_UNARY_EACH(FL_UNARY_ROW, FL_UNARY_ROW_GATE)};

static void fl_f32_unary(int code, float a, float b, const float *x, float *y, int64_t n) {
  if (code == FL_SELU)
    a *= b;
  fl_unary_table[code].map(a, b, x, x, y, n);
}

static void fl_f32_gated(int code, const float *a, const float *g, float *y, int64_t n) {
  fl_unary_table[code].gate(0, 0, g, a, y, n);
}

static void fl_f32_prelu(const float *x, const float *slope, int each, float *y, int64_t n) {
  if (!each) {
    fl_map_leaky_relu(slope[0], 0, x, x, y, n);
    return;
  }
  int64_t i = 0;
  for (; i + VW <= n; i += VW)
    vstore(y + i, fl_v_leaky_relu(vload(x + i), vload(slope + i), vset(0)));
  if (i < n)
    vput_part(y + i, fl_v_leaky_relu(vget_part(x + i, n - i, 0), vget_part(slope + i, n - i, 0), vset(0)), n - i);
}
