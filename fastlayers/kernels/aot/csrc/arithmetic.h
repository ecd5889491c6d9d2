/* Functions of two arrays of one dtype, element by element, for every dtype but float16: what masks, positions, hashes and float64
 * networks compute. Plain loops, compiled for the baseline, so that all levels give the same bits. Integers wrap around as numpy's do;
 * dividing by 0 gives 0, as there. An operand may be the result's memory. */
#ifndef FL_ARITHMETIC_H
#define FL_ARITHMETIC_H
#include <math.h>
#include <stdint.h>
#include "../made/codes.h"

/* Powers wrap around. A power below 0 is cut off: of 1 and -1 something is left; that of 0 is the least number, as if infinity
 * were cast. */
static inline uint64_t fl_a_power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1)
      result *= base;
  return result;
}
static inline uint64_t fl_a_signed_power(int64_t base, int64_t exponent, uint64_t least) {
  if (exponent >= 0)
    return fl_a_power((uint64_t)base, (uint64_t)exponent);
  return base == 1 ? 1 : base == -1 ? (exponent & 1 ? (uint64_t)-1 : 1) : base == 0 ? least : 0;
}
static inline double fl_a_mod_f64(double a, double b) {
  const double r = fmod(a, b);
  return r == 0 ? copysign(0, b) : (r < 0) != (b < 0) ? r + b : r; /* NaN is not 0, and NaN + b is NaN */
}
static inline float fl_a_mod_f32(float a, float b) {
  const float r = fmodf(a, b);
  return r == 0 ? copysignf(0, b) : (r < 0) != (b < 0) ? r + b : r;
}

#define FL_A_EACH(T, O, e)                                                                        \
  do {                                                                                            \
    const T *x = (const T *)a, *y = (const T *)b;                                                 \
    O *z = (O *)out;                                                                              \
    for (int64_t i = 0; i < n; i++) {                                                             \
      const T s = x[i], t = y[i];                                                                 \
      z[i] = (O)(e);                                                                              \
    }                                                                                             \
  } while (0); break
#define FL_A_COMPARED(T)                                                                          \
  case FL_A_EQUAL: FL_A_EACH(T, uint8_t, s == t);                                                 \
  case FL_A_NOT_EQUAL: FL_A_EACH(T, uint8_t, s != t);                                             \
  case FL_A_LESS: FL_A_EACH(T, uint8_t, s < t);                                                   \
  case FL_A_LESS_EQUAL: FL_A_EACH(T, uint8_t, s <= t);                                            \
  case FL_A_GREATER: FL_A_EACH(T, uint8_t, s > t);                                                \
  case FL_A_GREATER_EQUAL: FL_A_EACH(T, uint8_t, s >= t);
/* W: unsigned and not narrower than unsigned int, in which sums wrap around. */
#define FL_A_INTEGERS(T, W)                                                                       \
  FL_A_COMPARED(T)                                                                                \
  case FL_A_ADD: FL_A_EACH(T, T, (W)s + (W)t);                                                    \
  case FL_A_SUBTRACT: FL_A_EACH(T, T, (W)s - (W)t);                                               \
  case FL_A_MULTIPLY: FL_A_EACH(T, T, (W)s * (W)t);                                               \
  case FL_A_MINIMUM: FL_A_EACH(T, T, s < t ? s : t);                                              \
  case FL_A_MAXIMUM: FL_A_EACH(T, T, s > t ? s : t);                                              \
  case FL_A_AND: FL_A_EACH(T, T, s & t);                                                          \
  case FL_A_OR: FL_A_EACH(T, T, s | t);                                                           \
  case FL_A_XOR: FL_A_EACH(T, T, s ^ t);
#define FL_A_SIGNED(name, T, W, BITS, LEAST)                                                      \
  static void fl_arithmetic_##name(int op, const void *a, const void *b, void *out, int64_t n) {  \
    switch (op) {                                                                                 \
      FL_A_INTEGERS(T, W)                                                                         \
    case FL_A_DIVIDE: FL_A_EACH(T, T, t == 0 ? 0 : t == -1 ? (T)(0 - (W)s) : s / t);              \
    case FL_A_FMOD: FL_A_EACH(T, T, t == 0 || t == -1 ? 0 : s % t);                               \
    case FL_A_MOD: FL_A_EACH(T, T, t == 0 || t == -1 || s % t == 0 ? 0 : (s < 0) != (t < 0) ? s % t + t : s % t); \
    case FL_A_POWER: FL_A_EACH(T, T, fl_a_signed_power(s, t, (uint64_t)LEAST));                   \
    case FL_A_LEFT: FL_A_EACH(T, T, t < 0 || t >= BITS ? 0 : (W)s << t);                          \
    case FL_A_RIGHT: FL_A_EACH(T, T, t < 0 || t >= BITS ? (s < 0 ? -1 : 0) : s >> t);             \
    case FL_A_PRELU: FL_A_EACH(T, T, s < 0 ? (W)s * (W)t : (W)s);                                 \
    default: break;                                                                               \
    }                                                                                             \
  }
#define FL_A_UNSIGNED(name, T, W, BITS)                                                           \
  static void fl_arithmetic_##name(int op, const void *a, const void *b, void *out, int64_t n) {  \
    switch (op) {                                                                                 \
      FL_A_INTEGERS(T, W)                                                                         \
    case FL_A_DIVIDE: FL_A_EACH(T, T, t == 0 ? 0 : s / t);                                        \
    case FL_A_FMOD:                                                                               \
    case FL_A_MOD: FL_A_EACH(T, T, t == 0 ? 0 : s % t);                                           \
    case FL_A_POWER: FL_A_EACH(T, T, fl_a_power(s, t));                                           \
    case FL_A_LEFT: FL_A_EACH(T, T, t >= BITS ? 0 : (W)s << t);                                   \
    case FL_A_RIGHT: FL_A_EACH(T, T, t >= BITS ? 0 : s >> t);                                     \
    case FL_A_PRELU: FL_A_EACH(T, T, s);                                                          \
    default: break;                                                                               \
    }                                                                                             \
  }
#define FL_A_FLOATS(name, T, POW, FMOD, MOD)                                                      \
  static void fl_arithmetic_##name(int op, const void *a, const void *b, void *out, int64_t n) {  \
    switch (op) {                                                                                 \
      FL_A_COMPARED(T)                                                                            \
    case FL_A_ADD: FL_A_EACH(T, T, s + t);                                                        \
    case FL_A_SUBTRACT: FL_A_EACH(T, T, s - t);                                                   \
    case FL_A_MULTIPLY: FL_A_EACH(T, T, s * t);                                                   \
    case FL_A_DIVIDE: FL_A_EACH(T, T, s / t);                                                     \
    case FL_A_MINIMUM: FL_A_EACH(T, T, s < t || s != s ? s : t);                                  \
    case FL_A_MAXIMUM: FL_A_EACH(T, T, s > t || s != s ? s : t);                                  \
    case FL_A_POWER: FL_A_EACH(T, T, POW(s, t));                                                  \
    case FL_A_FMOD: FL_A_EACH(T, T, FMOD(s, t));                                                  \
    case FL_A_MOD: FL_A_EACH(T, T, MOD(s, t));                                                    \
    case FL_A_PRELU: FL_A_EACH(T, T, s < 0 ? s * t : s);                                          \
    default: break;                                                                               \
    }                                                                                             \
  }
FL_A_SIGNED(i8, int8_t, uint32_t, 8, INT8_MIN)
FL_A_SIGNED(i16, int16_t, uint32_t, 16, INT16_MIN)
FL_A_SIGNED(i32, int32_t, uint32_t, 32, INT32_MIN)
FL_A_SIGNED(i64, int64_t, uint64_t, 64, INT64_MIN)
FL_A_UNSIGNED(u8, uint8_t, uint32_t, 8)
FL_A_UNSIGNED(u16, uint16_t, uint32_t, 16)
FL_A_UNSIGNED(u32, uint32_t, uint32_t, 32)
FL_A_UNSIGNED(u64, uint64_t, uint64_t, 64)
FL_A_FLOATS(f32, float, powf, fmodf, fl_a_mod_f32)
FL_A_FLOATS(f64, double, pow, fmod, fl_a_mod_f64)

/* out[i] = f(a[i], b[i]), of the dtype that `kind` says. */
static void fl_arithmetic(int op, int kind, const void *a, const void *b, void *out, int64_t n) {
  switch (kind) {
  case FL_FLOAT32: fl_arithmetic_f32(op, a, b, out, n); break;
  case FL_FLOAT64: fl_arithmetic_f64(op, a, b, out, n); break;
  case FL_INT8: fl_arithmetic_i8(op, a, b, out, n); break;
  case FL_INT16: fl_arithmetic_i16(op, a, b, out, n); break;
  case FL_INT32: fl_arithmetic_i32(op, a, b, out, n); break;
  case FL_INT64: fl_arithmetic_i64(op, a, b, out, n); break;
  case FL_UINT8:
  case FL_BOOL: fl_arithmetic_u8(op, a, b, out, n); break;
  case FL_UINT16: fl_arithmetic_u16(op, a, b, out, n); break;
  case FL_UINT32: fl_arithmetic_u32(op, a, b, out, n); break;
  case FL_UINT64: fl_arithmetic_u64(op, a, b, out, n); break;
  default: break;
  }
}

/* out[i] = condition[i] ? a[i] : b[i], of items of 1 or 2 bytes. */
static void fl_choose(int size, const uint8_t *condition, const void *a, const void *b, void *out, int64_t n) {
  if (size == 1) {
    const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
    for (int64_t i = 0; i < n; i++)
      ((uint8_t *)out)[i] = condition[i] ? x[i] : y[i];
  } else {
    const uint16_t *x = (const uint16_t *)a, *y = (const uint16_t *)b;
    for (int64_t i = 0; i < n; i++)
      ((uint16_t *)out)[i] = condition[i] ? x[i] : y[i];
  }
}
#endif
