/* Where the largest (or least) of n values is, down each column of a slice [n][inner]: the first of equals, the first NaN before all.
 * Columns are taken in blocks whose state stays in registers or the nearest cache. */
#ifndef FL_ARGMAX_H
#define FL_ARGMAX_H
#include <stdint.h>

enum { FL_ARGMAX_BLOCK = 64, FL_ARGMAX_LANES = 8 };

/* Whether any of these numbers (times `sign`) is above `best`, or is NaN. */
static int fl_argmax_above(const float *x, float sign, float best) {
  int32_t above[FL_ARGMAX_LANES] = {0}, any = 0;
  for (int64_t k = 0; k < FL_ARGMAX_BLOCK; k += FL_ARGMAX_LANES)
    for (int i = 0; i < FL_ARGMAX_LANES; i++)
      above[i] |= !(x[k + i] * sign <= best);
  for (int i = 0; i < FL_ARGMAX_LANES; i++)
    any |= above[i];
  return any;
}

static void fl_argmax_row(const float *x, int64_t *out, int64_t n, int least) {
  const float sign = least ? -1 : 1;
  float best = x[0] * sign;
  int64_t at = 0;
  for (int64_t k = 1; k < n && best == best; k++) {
    while (n - k >= FL_ARGMAX_BLOCK && !fl_argmax_above(x + k, sign, best))
      k += FL_ARGMAX_BLOCK;
    for (const int64_t end = n - k < FL_ARGMAX_BLOCK ? n : k + FL_ARGMAX_BLOCK; k < end && best == best; k++)
      if (!(x[k] * sign <= best)) {
        best = x[k] * sign;
        at = k;
      }
    k--;
  }
  *out = at;
}

/* Rows of two, as classifiers of two classes have them: no branches. */
static void fl_argmax_pairs(const float *x, int64_t *out, int64_t rows, int least) {
  for (int64_t i = 0; i < rows; i++) {
    const float a = x[2 * i], b = x[2 * i + 1];
    out[i] = (a == a) & ((least ? b < a : b > a) | (b != b));
  }
}

static void fl_argmax_columns(const float *x, int64_t *out, int64_t n, int64_t inner, int least) {
  float best[FL_ARGMAX_BLOCK];
  int32_t at[FL_ARGMAX_BLOCK];
  for (int64_t first = 0; first < inner; first += FL_ARGMAX_BLOCK) {
    const int64_t count = inner - first < FL_ARGMAX_BLOCK ? inner - first : FL_ARGMAX_BLOCK;
    for (int64_t i = 0; i < count; i++) {
      best[i] = x[first + i];
      at[i] = 0;
    }
    for (int64_t k = 1; k < n; k++) {
      const float *row = x + k * inner + first;
      for (int64_t i = 0; i < count; i++) {
        const float v = row[i], b = best[i];
        const int take = (b == b) & ((least ? v < b : v > b) | (v != v));
        best[i] = take ? v : b;
        at[i] = take ? (int32_t)k : at[i];
      }
    }
    for (int64_t i = 0; i < count; i++)
      out[first + i] = at[i];
  }
}
#endif
