/* Reductions of integers and float64 down the columns of slices [n][inner], and positions of extremes of any dtype. Plain loops, compiled
 * for the baseline, over blocks of columns whose state stays in the nearest cache. Whole values are summed in 64 bits, wrap around, and
 * become their dtype at the end, as numpy's do; a mean is cut off toward 0. */
#ifndef FL_FOLDS_H
#define FL_FOLDS_H
#include <math.h>
#include <stdint.h>
#include "../made/codes.h"

enum { FL_FOLD_BLOCK = 32 };

/* A single column is taken as FL_FOLD_BLOCK columns, whose results are put together at the end. */
#define FL_O_DOWN(T, W, first, e, together)                                                       \
  for (int64_t i = 0; i < wide; i++)                                                              \
    sums[i] = (W)(first);                                                                         \
  for (int64_t k = 0; k < rows; k++)                                                              \
    for (int64_t i = 0; i < wide; i++) {                                                          \
      const W v = (W)x[k * step + begin + i], s = sums[i];                                        \
      sums[i] = (W)(e);                                                                           \
    }                                                                                             \
  for (int64_t i = 0; i < rest; i++) {                                                            \
    const W v = (W)x[rows * step + i], s = sums[i];                                               \
    sums[i] = (W)(e);                                                                             \
  }                                                                                               \
  for (int64_t i = count; i < wide; i++) {                                                        \
    const W v = sums[i], s = sums[0];                                                             \
    sums[0] = (W)(together);                                                                      \
  }                                                                                               \
  break
/* W: in which elements are summed; U: its twin in which sums wrap around (of doubles: double); LOW and HIGH: the extremes of none. */
#define FL_O_FOLD(name, T, W, U, LOW, HIGH, ABS, MEAN, MORE)                                      \
  static void fl_fold_##name(int op, const void *from, void *to, int64_t n, int64_t inner) {      \
    const T *x = (const T *)from;                                                                 \
    T *out = (T *)to;                                                                             \
    W sums[FL_FOLD_BLOCK];                                                                        \
    for (int64_t begin = 0; begin < inner; begin += FL_FOLD_BLOCK) {                              \
      const int64_t count = inner - begin < FL_FOLD_BLOCK ? inner - begin : FL_FOLD_BLOCK;        \
      const int64_t wide = inner == 1 ? FL_FOLD_BLOCK : count, step = inner == 1 ? FL_FOLD_BLOCK : inner; \
      const int64_t rows = inner == 1 ? n / FL_FOLD_BLOCK : n, rest = inner == 1 ? n % FL_FOLD_BLOCK : 0; \
      switch (op) {                                                                               \
      case FL_REDUCE_MAX: FL_O_DOWN(T, W, LOW, s > v || s != s ? s : v, s > v || s != s ? s : v);      \
      case FL_REDUCE_MIN: FL_O_DOWN(T, W, HIGH, s < v || s != s ? s : v, s < v || s != s ? s : v);     \
      case FL_REDUCE_PROD: FL_O_DOWN(T, W, 1, (U)s * (U)v, (U)s * (U)v);                               \
      case FL_REDUCE_L2:                                                                               \
      case FL_REDUCE_SUM_SQUARE: FL_O_DOWN(T, W, 0, (U)s + (U)v * (U)v, (U)s + (U)v);                  \
      case FL_REDUCE_L1: FL_O_DOWN(T, W, 0, (U)s + (U)ABS(v), (U)s + (U)v);                            \
      default: FL_O_DOWN(T, W, 0, (U)s + (U)v, (U)s + (U)v);                                      \
      }                                                                                           \
      for (int64_t i = 0; i < count; i++) {                                                       \
        const W s = sums[i];                                                                      \
        out[begin + i] = (T)(op == FL_REDUCE_MEAN ? MEAN(s, n) : MORE(s));                             \
      }                                                                                           \
    }                                                                                             \
  }
#define FL_O_SIGN(v) ((v) < 0 ? 0 - (uint64_t)(v) : (uint64_t)(v))
#define FL_O_NO_SIGN(v) (v)
#define FL_O_CUT(s, n) ((n) ? (s) / (n) : 0)
#define FL_O_CUT_U(s, n) ((n) ? (s) / (uint64_t)(n) : 0)
#define FL_O_QUOTIENT(s, n) ((s) / (double)(n))
#define FL_O_WHOLE(s) (s)
#define FL_O_ROOT(s) (op == FL_REDUCE_L2 ? sqrt(s) : op == FL_REDUCE_LOG_SUM ? log(s) : (s))
#define FL_O_SIGNED(name, T, LOW, HIGH) FL_O_FOLD(name, T, int64_t, uint64_t, LOW, HIGH, FL_O_SIGN, FL_O_CUT, FL_O_WHOLE)
#define FL_O_UNSIGNED(name, T, HIGH) FL_O_FOLD(name, T, uint64_t, uint64_t, 0, HIGH, FL_O_NO_SIGN, FL_O_CUT_U, FL_O_WHOLE)
FL_O_SIGNED(i8, int8_t, INT8_MIN, INT8_MAX)
FL_O_SIGNED(i16, int16_t, INT16_MIN, INT16_MAX)
FL_O_SIGNED(i32, int32_t, INT32_MIN, INT32_MAX)
FL_O_SIGNED(i64, int64_t, INT64_MIN, INT64_MAX)
FL_O_UNSIGNED(u8, uint8_t, UINT8_MAX)
FL_O_UNSIGNED(u16, uint16_t, UINT16_MAX)
FL_O_UNSIGNED(u32, uint32_t, UINT32_MAX)
FL_O_UNSIGNED(u64, uint64_t, UINT64_MAX)
FL_O_UNSIGNED(bool, uint8_t, 1)
FL_O_FOLD(f64, double, double, double, -INFINITY, INFINITY, fabs, FL_O_QUOTIENT, FL_O_ROOT)

/* out[i] = fold of x[n, i] over n, of the dtype `kind`. */
static void fl_fold(int op, int kind, const void *x, void *out, int64_t n, int64_t inner) {
  switch (kind) {
  case FL_FLOAT64: fl_fold_f64(op, x, out, n, inner); break;
  case FL_INT8: fl_fold_i8(op, x, out, n, inner); break;
  case FL_INT16: fl_fold_i16(op, x, out, n, inner); break;
  case FL_INT32: fl_fold_i32(op, x, out, n, inner); break;
  case FL_INT64: fl_fold_i64(op, x, out, n, inner); break;
  case FL_UINT8: fl_fold_u8(op, x, out, n, inner); break;
  case FL_BOOL: fl_fold_bool(op, x, out, n, inner); break;
  case FL_UINT16: fl_fold_u16(op, x, out, n, inner); break;
  case FL_UINT32: fl_fold_u32(op, x, out, n, inner); break;
  case FL_UINT64: fl_fold_u64(op, x, out, n, inner); break;
  default: break;
  }
}

/* Where the largest (or least) of each column is: the first of equals, or the last; the first (or last) NaN before all. */
#define FL_O_PLACE(name, T)                                                                       \
  /* Of a row: first what it is, in many maxima next to each other, then where. */                      \
  static int64_t fl_place_row_##name(const T *x, int64_t n, int least, int last) {                \
    T most[FL_FOLD_BLOCK];                                                                        \
    int nan = 0;                                                                                  \
    for (int64_t i = 0; i < FL_FOLD_BLOCK; i++)                                                   \
      most[i] = x[0];                                                                             \
    const int64_t whole = n / FL_FOLD_BLOCK * FL_FOLD_BLOCK;                                      \
    if (least)                                                                                    \
      for (int64_t k = 0; k < whole; k += FL_FOLD_BLOCK)                                          \
        for (int64_t i = 0; i < FL_FOLD_BLOCK; i++)                                               \
          most[i] = x[k + i] < most[i] ? x[k + i] : most[i], nan |= x[k + i] != x[k + i];         \
    else                                                                                          \
      for (int64_t k = 0; k < whole; k += FL_FOLD_BLOCK)                                          \
        for (int64_t i = 0; i < FL_FOLD_BLOCK; i++)                                               \
          most[i] = x[k + i] > most[i] ? x[k + i] : most[i], nan |= x[k + i] != x[k + i];         \
    T best = most[0];                                                                             \
    for (int64_t i = 1; i < FL_FOLD_BLOCK; i++)                                                   \
      best = (least ? most[i] < best : most[i] > best) ? most[i] : best;                          \
    for (int64_t i = whole; i < n; i++) {                                                         \
      best = (least ? x[i] < best : x[i] > best) ? x[i] : best;                                   \
      nan |= x[i] != x[i];                                                                        \
    }                                                                                             \
    for (int64_t k = 0; k < n; k += FL_FOLD_BLOCK) {                                              \
      const int64_t count = n - k < FL_FOLD_BLOCK ? n - k : FL_FOLD_BLOCK, first = last ? n - k - count : k; \
      int any = 0;                                                                                \
      for (int64_t i = 0; i < count; i++)                                                         \
        any |= nan ? x[first + i] != x[first + i] : x[first + i] == best;                         \
      for (int64_t j = 0; any && j < count; j++) {                                                \
        const int64_t i = first + (last ? count - 1 - j : j);                                     \
        if (nan ? x[i] != x[i] : x[i] == best)                                                    \
          return i;                                                                               \
      }                                                                                           \
    }                                                                                             \
    return 0;                                                                                     \
  }                                                                                               \
  static void fl_place_##name(const void *from, int64_t *out, int64_t n, int64_t inner, int least, int last) { \
    const T *x = (const T *)from;                                                                 \
    T best[FL_FOLD_BLOCK];                                                                        \
    int64_t at[FL_FOLD_BLOCK];                                                                    \
    if (inner == 1 && n >= FL_FOLD_BLOCK) {                                                       \
      *out = fl_place_row_##name(x, n, least, last);                                              \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t begin = 0; begin < inner; begin += FL_FOLD_BLOCK) {                              \
      const int64_t count = inner - begin < FL_FOLD_BLOCK ? inner - begin : FL_FOLD_BLOCK;        \
      for (int64_t i = 0; i < count; i++)                                                         \
        best[i] = x[begin + i], at[i] = 0;                                                        \
      for (int64_t k = 1; k < n; k++)                                                             \
        for (int64_t i = 0; i < count; i++) {                                                     \
          const T v = x[k * inner + begin + i], b = best[i];                                      \
          const int more = (least ? v < b : v > b) | (last & (v == b));                           \
          const int take = v != v ? last | (b == b) : (b == b) & more;                            \
          best[i] = take ? v : b;                                                                 \
          at[i] = take ? k : at[i];                                                               \
        }                                                                                         \
      for (int64_t i = 0; i < count; i++)                                                         \
        out[begin + i] = at[i];                                                                   \
    }                                                                                             \
  }
FL_O_PLACE(f32, float)
FL_O_PLACE(f64, double)
FL_O_PLACE(i8, int8_t)
FL_O_PLACE(i16, int16_t)
FL_O_PLACE(i32, int32_t)
FL_O_PLACE(i64, int64_t)
FL_O_PLACE(u8, uint8_t)
FL_O_PLACE(u16, uint16_t)
FL_O_PLACE(u32, uint32_t)
FL_O_PLACE(u64, uint64_t)

static void fl_place(int kind, const void *x, int64_t *out, int64_t n, int64_t inner, int least, int last) {
  switch (kind) {
  case FL_FLOAT32: fl_place_f32(x, out, n, inner, least, last); break;
  case FL_FLOAT64: fl_place_f64(x, out, n, inner, least, last); break;
  case FL_INT8: fl_place_i8(x, out, n, inner, least, last); break;
  case FL_INT16: fl_place_i16(x, out, n, inner, least, last); break;
  case FL_INT32: fl_place_i32(x, out, n, inner, least, last); break;
  case FL_INT64: fl_place_i64(x, out, n, inner, least, last); break;
  case FL_UINT8: fl_place_u8(x, out, n, inner, least, last); break;
  case FL_UINT16: fl_place_u16(x, out, n, inner, least, last); break;
  case FL_UINT32: fl_place_u32(x, out, n, inner, least, last); break;
  case FL_UINT64: fl_place_u64(x, out, n, inner, least, last); break;
  default: break;
  }
}
#endif
