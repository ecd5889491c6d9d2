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
/* x + 3 is exact where it nearly cancels, x / 6 + 1/2 is not */
FL_INLINE vf fl_v_hardswish(vf x, vf a, vf b) {
  (void)a, (void)b;
  return x * (vmin(vset(6), vmax(vset(0), x + 3.0f)) * 0x1.555556p-3f);
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

typedef void (*fl_map_fn)(float a, float b, const float *x, const float *g, float *y, int64_t n);
#define FL_MAP(name)                                                                                                         \
  static __attribute__((noinline)) void fl_map_##name(float a, float b, const float *x, const float *g, float *y, int64_t n) { \
    fl_map(fl_v_##name, FL_ALONE, a, b, x, g, y, n);                                                                          \
  }
/* for the functions that may gate */
#define FL_MAP_GATE(name)                                                                                                      \
  FL_MAP(name)                                                                                                                 \
  static __attribute__((noinline)) void fl_gate_##name(float a, float b, const float *x, const float *g, float *y, int64_t n) { \
    fl_map(fl_v_##name, FL_TIMES, a, b, x, g, y, n);                                                                           \
  }

FL_INLINE vf fl_v_identity(vf x, vf a, vf b) { (void)a, (void)b; return x; }
FL_MAP_GATE(identity)
FL_MAP_GATE(relu)
FL_MAP(clip)
FL_MAP(leaky_relu)
FL_MAP(elu)
FL_MAP(selu)
FL_MAP_GATE(sigmoid)
FL_MAP_GATE(tanh)
FL_MAP_GATE(gelu)
FL_MAP_GATE(gelu_tanh)
FL_MAP_GATE(silu)
FL_MAP(hardsigmoid)
FL_MAP_GATE(hardswish)
FL_MAP(softplus)
FL_MAP_GATE(softsign)
FL_MAP_GATE(mish)
FL_MAP_GATE(exp)
FL_MAP_GATE(log)
FL_MAP_GATE(erf)
FL_MAP_GATE(sqrt)
FL_MAP(square)
FL_MAP(negative)
FL_MAP(abs)
FL_MAP(reciprocal)
FL_MAP(floor)
FL_MAP(ceil)
FL_MAP(round)
FL_MAP(sign)
FL_MAP(sin)
FL_MAP(cos)
FL_MAP(celu)
FL_MAP(shrink)
FL_MAP(threshold)
FL_MAP(tanhshrink)
FL_MAP(logsigmoid)
FL_MAP(quick_gelu)

static const struct {
  fl_map_fn map, gate;
} fl_unary_table[FL_UNARY_COUNT] = {
    [FL_IDENTITY] = {fl_map_identity, fl_gate_identity},
    [FL_RELU] = {fl_map_relu, fl_gate_relu},
    [FL_CLIP] = {fl_map_clip, 0},
    [FL_LEAKY_RELU] = {fl_map_leaky_relu, 0},
    [FL_ELU] = {fl_map_elu, 0},
    [FL_SELU] = {fl_map_selu, 0},
    [FL_SIGMOID] = {fl_map_sigmoid, fl_gate_sigmoid},
    [FL_TANH] = {fl_map_tanh, fl_gate_tanh},
    [FL_GELU] = {fl_map_gelu, fl_gate_gelu},
    [FL_GELU_TANH] = {fl_map_gelu_tanh, fl_gate_gelu_tanh},
    [FL_SILU] = {fl_map_silu, fl_gate_silu},
    [FL_HARD_SIGMOID] = {fl_map_hardsigmoid, 0},
    [FL_HARD_SWISH] = {fl_map_hardswish, fl_gate_hardswish},
    [FL_SOFTPLUS] = {fl_map_softplus, 0},
    [FL_SOFTSIGN] = {fl_map_softsign, fl_gate_softsign},
    [FL_MISH] = {fl_map_mish, fl_gate_mish},
    [FL_EXP] = {fl_map_exp, fl_gate_exp},
    [FL_LOG] = {fl_map_log, fl_gate_log},
    [FL_ERF] = {fl_map_erf, fl_gate_erf},
    [FL_SQRT] = {fl_map_sqrt, fl_gate_sqrt},
    [FL_SQUARE] = {fl_map_square, 0},
    [FL_NEGATIVE] = {fl_map_negative, 0},
    [FL_ABS] = {fl_map_abs, 0},
    [FL_RECIPROCAL] = {fl_map_reciprocal, 0},
    [FL_FLOOR] = {fl_map_floor, 0},
    [FL_CEIL] = {fl_map_ceil, 0},
    [FL_ROUND] = {fl_map_round, 0},
    [FL_SIGN] = {fl_map_sign, 0},
    [FL_SIN] = {fl_map_sin, 0},
    [FL_COS] = {fl_map_cos, 0},
    [FL_CELU] = {fl_map_celu, 0},
    [FL_SHRINK] = {fl_map_shrink, 0},
    [FL_THRESHOLD] = {fl_map_threshold, 0},
    [FL_TANHSHRINK] = {fl_map_tanhshrink, 0},
    [FL_LOGSIGMOID] = {fl_map_logsigmoid, 0},
    [FL_QUICK_GELU] = {fl_map_quick_gelu, 0},
};

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
