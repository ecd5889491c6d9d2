/* Functions of one array, element by element, that have no kernel of vectors: tests for NaN and infinity, bits, integers' signs, rarer
 * functions of the mathematical library, and all of float64. Plain loops, compiled for the baseline, so that all levels give the same
 * bits. x may be out where both have one size. */
#ifndef FL_FUNCTIONS_H
#define FL_FUNCTIONS_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "../made/codes.h"

/* atan without branches, so that loops of it become vectors: of |x| above tan(3/8 pi) as pi/2 + atan(-1/x), above tan(pi/8) as
 * pi/4 + atan((x - 1) / (x + 1)); the rest is a polynomial. Within 2 ulp. */
static inline uint32_t fl_f_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float fl_f_chosen(uint32_t mask, float a, float b) {
  const uint32_t bits = (fl_f_bits(a) & mask) | (fl_f_bits(b) & ~mask);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline float fl_f_atan_f32(float s) {
  const float x = fabsf(s);
  const uint32_t far = -(uint32_t)(x > 2.414213562f), middle = -(uint32_t)(x > 0.4142135624f);
  const float p = fl_f_chosen(far, -1, fl_f_chosen(middle, x - 1, x)), q = fl_f_chosen(far, x, fl_f_chosen(middle, x + 1, 1));
  const float begin = fl_f_chosen(far, 1.570796327f, fl_f_chosen(middle, 0.7853981634f, 0));
  const float rest = fl_f_chosen(far, -4.37113883e-8f, fl_f_chosen(middle, -2.18556941e-8f, 0));
  const float t = p / q, z = t * t;
  const float y = (((8.05374449538e-2f * z - 1.38776856032e-1f) * z + 1.99777106478e-1f) * z - 3.33329491539e-1f) * z * t + t;
  return copysignf(begin + (y + rest), s);
}
#define fl_f_atan_f64 atan

#define FL_F_EACH(T, O, e)                                                                        \
  do {                                                                                            \
    const T *x = (const T *)from;                                                                 \
    O *y = (O *)to;                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                             \
      const T s = x[i];                                                                           \
      y[i] = (O)(e);                                                                              \
    }                                                                                             \
  } while (0); break
/* Of floats as bits: `B` their unsigned twin, `INF` the bits of infinity. */
#define FL_F_TESTS(B, INF)                                                                        \
  case FL_F_IS_NAN: FL_F_EACH(B, uint8_t, (B)(s << 1) > (B)((B)INF << 1));                        \
  case FL_F_IS_INF: FL_F_EACH(B, uint8_t, (B)(s << 1) == (B)((B)INF << 1));                       \
  case FL_F_IS_POSITIVE_INF: FL_F_EACH(B, uint8_t, s == (B)INF);                                  \
  case FL_F_IS_NEGATIVE_INF: FL_F_EACH(B, uint8_t, s == (B)((B)INF | ((B)1 << (8 * sizeof(B) - 1))));
#define FL_F_FLOATS(name, T, B, INF, f)                                                           \
  static void fl_function_##name(int op, const void *from, void *to, int64_t n) {                 \
    switch (op) {                                                                                 \
      FL_F_TESTS(B, INF)                                                                          \
    case FL_F_NEGATIVE: FL_F_EACH(T, T, -s);                                                      \
    case FL_F_ABS: FL_F_EACH(T, T, f(fabs)(s));                                                   \
    case FL_F_SIGN: FL_F_EACH(T, T, s != s ? s : (T)((s > 0) - (s < 0)));                         \
    case FL_F_RELU: FL_F_EACH(T, T, s < 0 ? 0 : s);                                               \
    case FL_F_TAN: FL_F_EACH(T, T, f(tan)(s));                                                    \
    case FL_F_ASIN: FL_F_EACH(T, T, f(asin)(s));                                                  \
    case FL_F_ACOS: FL_F_EACH(T, T, f(acos)(s));                                                  \
    case FL_F_ATAN: FL_F_EACH(T, T, fl_f_atan_##name(s));                                                  \
    case FL_F_SINH: FL_F_EACH(T, T, f(sinh)(s));                                                  \
    case FL_F_COSH: FL_F_EACH(T, T, f(cosh)(s));                                                  \
    case FL_F_ASINH: FL_F_EACH(T, T, f(asinh)(s));                                                \
    case FL_F_ACOSH: FL_F_EACH(T, T, f(acosh)(s));                                                \
    case FL_F_ATANH: FL_F_EACH(T, T, f(atanh)(s));                                                \
    case FL_F_EXP: FL_F_EACH(T, T, f(exp)(s));                                                    \
    case FL_F_LOG: FL_F_EACH(T, T, f(log)(s));                                                    \
    case FL_F_SQRT: FL_F_EACH(T, T, f(sqrt)(s));                                                  \
    case FL_F_RECIPROCAL: FL_F_EACH(T, T, 1 / s);                                                 \
    case FL_F_FLOOR: FL_F_EACH(T, T, f(floor)(s));                                                \
    case FL_F_CEIL: FL_F_EACH(T, T, f(ceil)(s));                                                  \
    case FL_F_ROUND: FL_F_EACH(T, T, f(rint)(s));                                                 \
    case FL_F_SIN: FL_F_EACH(T, T, f(sin)(s));                                                    \
    case FL_F_COS: FL_F_EACH(T, T, f(cos)(s));                                                    \
    case FL_F_TANH: FL_F_EACH(T, T, f(tanh)(s));                                                  \
    case FL_F_SIGMOID: FL_F_EACH(T, T, 1 / (1 + f(exp)(-s)));                                     \
    case FL_F_ERF: FL_F_EACH(T, T, f(erf)(s));                                                    \
    default: break;                                                                               \
    }                                                                                             \
  }
#define FL_F_OF_F32(name) name##f
#define FL_F_OF_F64(name) name
FL_F_FLOATS(f32, float, uint32_t, 0x7f800000u, FL_F_OF_F32)
FL_F_FLOATS(f64, double, uint64_t, 0x7ff0000000000000u, FL_F_OF_F64)

static void fl_function_f16(int op, const void *from, void *to, int64_t n) {
  switch (op) {
    FL_F_TESTS(uint16_t, 0x7c00u)
  case FL_F_NEGATIVE: FL_F_EACH(uint16_t, uint16_t, s ^ 0x8000u);
  case FL_F_ABS: FL_F_EACH(uint16_t, uint16_t, s & 0x7fffu);
  case FL_F_RELU: FL_F_EACH(uint16_t, uint16_t, s > 0x8000u && s <= 0xfc00u ? 0 : s); /* NaN and -0 stay */
  default: break;
  }
}
#define FL_F_SIGNED(name, T, W)                                                                   \
  static void fl_function_##name(int op, const void *from, void *to, int64_t n) {                 \
    switch (op) {                                                                                 \
    case FL_F_NOT: FL_F_EACH(T, T, ~s);                                                           \
    case FL_F_NEGATIVE: FL_F_EACH(T, T, 0 - (W)s);                                                \
    case FL_F_ABS: FL_F_EACH(T, T, s < 0 ? 0 - (W)s : (W)s);                                      \
    case FL_F_SIGN: FL_F_EACH(T, T, (s > 0) - (s < 0));                                           \
    case FL_F_RELU: FL_F_EACH(T, T, s > 0 ? s : 0);                                               \
    default: break;                                                                               \
    }                                                                                             \
  }
#define FL_F_UNSIGNED(name, T)                                                                    \
  static void fl_function_##name(int op, const void *from, void *to, int64_t n) {                 \
    switch (op) {                                                                                 \
    case FL_F_NOT: FL_F_EACH(T, T, ~s);                                                           \
    case FL_F_SIGN: FL_F_EACH(T, T, s > 0);                                                       \
    case FL_F_ABS:                                                                                \
    case FL_F_RELU: memmove(to, from, (size_t)n * sizeof(T)); break;                              \
    default: break;                                                                               \
    }                                                                                             \
  }
FL_F_SIGNED(i8, int8_t, uint32_t)
FL_F_SIGNED(i16, int16_t, uint32_t)
FL_F_SIGNED(i32, int32_t, uint32_t)
FL_F_SIGNED(i64, int64_t, uint64_t)
FL_F_UNSIGNED(u8, uint8_t)
FL_F_UNSIGNED(u16, uint16_t)
FL_F_UNSIGNED(u32, uint32_t)
FL_F_UNSIGNED(u64, uint64_t)

/* to[i] = f(from[i]), of the dtype that `kind` says. */
static void fl_function_of(int op, int kind, const void *from, void *to, int64_t n) {
  switch (kind) {
  case FL_FLOAT32: fl_function_f32(op, from, to, n); break;
  case FL_FLOAT64: fl_function_f64(op, from, to, n); break;
  case FL_FLOAT16: fl_function_f16(op, from, to, n); break;
  case FL_INT8: fl_function_i8(op, from, to, n); break;
  case FL_INT16: fl_function_i16(op, from, to, n); break;
  case FL_INT32: fl_function_i32(op, from, to, n); break;
  case FL_INT64: fl_function_i64(op, from, to, n); break;
  case FL_UINT8: fl_function_u8(op, from, to, n); break;
  case FL_UINT16: fl_function_u16(op, from, to, n); break;
  case FL_UINT32: fl_function_u32(op, from, to, n); break;
  case FL_UINT64: fl_function_u64(op, from, to, n); break;
  default: break;
  }
}
#endif
