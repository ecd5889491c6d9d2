/* Softmax and log-softmax: y = exp(x - m) / s or (x - m) - log(s), with m the largest x and s the sum of exp(x - m).
 *
 * Two forms: over the last axis, row by row; and over an axis with `inner` numbers behind it, along which the vectors lie.
 * y must not overlap x. A row that holds NaN or +infinity, or nothing but -infinity, becomes NaN in every element (x - m is NaN
 * somewhere, and so is s). Terms below 2^-126 of the largest count as 0. The order of every sum depends on n and inner alone: in
 * rows every lane is a chain, in the other form see fl_f32_softmax_inner. A chain of additions is broken after FL_CHAIN terms, so that
 * long sums stay accurate. Remainders are partial vectors of the same code; lanes past the end hold
 * -infinity, which adds exactly 0.
 */
#include "lanes.h"

#define FL_CHAIN 16

/* The steps on R rows at once, the folds of one behind those of the other: `whole` floats of each in whole vectors, rows n apart.
 * m: the largest of a row, in every lane; the rest of the row is in m before. */
FL_INLINE void fl_rows_max(const float *x, int64_t n, int64_t whole, vf *m, const int R) {
  vf p[2], q[2];
  int64_t i = 0;
  FL_UNROLL for (int r = 0; r < R; r++) {
    p[r] = m[r];
    q[r] = vset(-(float)INFINITY);
  }
  for (; i + 2 * VW <= whole; i += 2 * VW)
    FL_UNROLL for (int r = 0; r < R; r++) {
      p[r] = vmax(p[r], vload(x + r * n + i));
      q[r] = vmax(q[r], vload(x + r * n + i + VW));
    }
  FL_UNROLL for (int r = 0; r < R; r++) {
    if (i < whole)
      p[r] = vmax(p[r], vload(x + r * n + i));
    p[r] = vmax(p[r], q[r]);
    FL_FOLD(p[r], vmax);
    m[r] = p[r];
  }
}

/* y = exp(x - m) if `keep`. s: the sum, in every lane; that of the rest of the row is in s before. */
FL_INLINE void fl_rows_exp(const float *x, int64_t n, int64_t whole, const vf *m, float *y, vf *s, const int R, const int keep) {
  for (int64_t i = 0; i < whole;) {
    const int64_t end = whole - i < FL_CHAIN * VW ? whole : i + FL_CHAIN * VW;
    vf chain[2];
    FL_UNROLL for (int r = 0; r < R; r++) chain[r] = vset(0);
    for (; i < end; i += VW)
      FL_UNROLL for (int r = 0; r < R; r++) {
        const vf e = vexp_flush(vload(x + r * n + i) - m[r]);
        chain[r] += e;
        if (keep)
          vstore(y + r * n + i, e);
      }
    FL_UNROLL for (int r = 0; r < R; r++) s[r] += chain[r];
  }
  FL_UNROLL for (int r = 0; r < R; r++) { FL_FOLD(s[r], fl_add); }
}

/* The last, partial vector of a row stays in a register: reading a masked store back would stall. */
FL_INLINE void fl_softmax_rows(const float *x, float *y, int64_t n, const int R, const int logarithm) {
  const int64_t rest = n % VW, whole = n - rest;
  vf tail[2], m[2], s[2];
  FL_UNROLL for (int r = 0; r < R; r++)
    m[r] = tail[r] = rest ? vget_part(x + r * n + whole, rest, -(float)INFINITY) : vset(-(float)INFINITY);
  fl_rows_max(x, n, whole, m, R);
  FL_UNROLL for (int r = 0; r < R; r++) {
    tail[r] -= m[r];
    s[r] = rest ? vexp_flush(tail[r]) : vset(0);
    tail[r] = logarithm ? tail[r] : s[r];
  }
  fl_rows_exp(x, n, whole, m, y, s, R, !logarithm);
  FL_UNROLL for (int r = 0; r < R; r++) s[r] = logarithm ? vlog(s[r]) : 1.0f / s[r];
  for (int64_t i = 0; i < whole; i += VW)
    FL_UNROLL for (int r = 0; r < R; r++) {
      const int64_t at = r * n + i;
      vstore(y + at, logarithm ? (vload(x + at) - m[r]) - s[r] : vload(y + at) * s[r]);
    }
  if (rest)
    FL_UNROLL for (int r = 0; r < R; r++) vput_part(y + r * n + whole, logarithm ? tail[r] - s[r] : tail[r] * s[r], rest);
}

static __attribute__((noinline)) void fl_softmax_all(const float *x, float *y, int64_t rows, int64_t n) {
  int64_t row = 0;
  for (; row + 2 <= rows; row += 2)
    fl_softmax_rows(x + row * n, y + row * n, n, 2, 0);
  if (row < rows)
    fl_softmax_rows(x + row * n, y + row * n, n, 1, 0);
}
static __attribute__((noinline)) void fl_log_softmax_all(const float *x, float *y, int64_t rows, int64_t n) {
  int64_t row = 0;
  for (; row + 2 <= rows; row += 2)
    fl_softmax_rows(x + row * n, y + row * n, n, 2, 1);
  if (row < rows)
    fl_softmax_rows(x + row * n, y + row * n, n, 1, 1);
}

static void fl_f32_softmax_rows(const float *x, float *y, int64_t rows, int64_t n, int logarithm) {
  if (n > 0)
    (logarithm ? fl_log_softmax_all : fl_softmax_all)(x, y, rows, n);
}

/* The steps of the other form on w columns of one row; m and s have one number a column. */
FL_INLINE vf fl_at(const float *p, int64_t i, int64_t w) { return i + VW <= w ? vload(p + i) : vget_part(p + i, w - i, 0); }
FL_INLINE void fl_put(float *p, int64_t i, int64_t w, vf v) {
  if (i + VW <= w)
    vstore(p + i, v);
  else
    vput_part(p + i, v, w - i);
}
static void fl_columns_max(const float *x, float *m, int64_t w) {
  for (int64_t i = 0; i < w; i += VW)
    fl_put(m, i, w, vmax(fl_at(m, i, w), fl_at(x, i, w)));
}
static void fl_columns_exp(const float *x, const float *m, float *s, float *y, int64_t w) {
  for (int64_t i = 0; i < w; i += VW) {
    const vf e = vexp_flush(fl_at(x, i, w) - fl_at(m, i, w));
    fl_put(s, i, w, fl_at(s, i, w) + e);
    fl_put(y, i, w, e);
  }
}
static void fl_columns_sum(const float *x, const float *m, float *s, int64_t w) {
  for (int64_t i = 0; i < w; i += VW)
    fl_put(s, i, w, fl_at(s, i, w) + vexp_flush(fl_at(x, i, w) - fl_at(m, i, w)));
}
static void fl_columns_add(const float *part, float *s, int64_t w) {
  for (int64_t i = 0; i < w; i += VW)
    fl_put(s, i, w, fl_at(s, i, w) + fl_at(part, i, w));
}
static void fl_columns_scale(float *y, const float *s, int64_t w) {
  for (int64_t i = 0; i < w; i += VW)
    fl_put(y, i, w, fl_at(y, i, w) * fl_at(s, i, w));
}
static void fl_columns_less(const float *x, const float *m, const float *s, float *y, int64_t w) {
  for (int64_t i = 0; i < w; i += VW)
    fl_put(y, i, w, (fl_at(x, i, w) - fl_at(m, i, w)) - fl_at(s, i, w));
}

/* A strip of `w` columns: rows are `step` floats apart; after `rows` whole ones may come one of `last` < w columns.
 * The columns repeat with the period `each`: i, i + each, ... hold parts of one result. */
#define FL_STRIP 512
typedef struct {
  const float *x;
  float *y;
  int64_t rows, step, w, last, each;
} fl_strip;

FL_INLINE int64_t fl_strip_columns(const fl_strip *p, int64_t row) { return row < p->rows ? p->w : p->last; }

/* copies the first period over the others */
FL_INLINE void fl_strip_repeat(const fl_strip *p, float *v) {
  for (int64_t i = p->each; i < p->w; i++)
    v[i] = v[i - p->each];
}

/* m: the largest of each column, the same in all that belong together */
static void fl_strip_max(const fl_strip *p, float *m) {
  memcpy(m, p->x, (size_t)p->w * 4);
  for (int64_t r = 1; r < p->rows + (p->last > 0); r++)
    fl_columns_max(p->x + r * p->step, m, fl_strip_columns(p, r));
  for (int64_t i = p->each; i < p->w; i += p->each)
    for (int64_t j = 0; j < p->each; j++)
      m[j] = m[j] > m[i + j] ? m[j] : m[i + j];
  fl_strip_repeat(p, m);
}

/* y = exp(x - m) unless a logarithm is asked for; s: 1 / sum, or its logarithm */
static void fl_strip_exp(const fl_strip *p, const float *m, float *s, int logarithm) {
  float part[FL_STRIP];
  const int64_t rows = p->rows + (p->last > 0);
  memset(s, 0, (size_t)p->w * 4);
  for (int64_t r = 0; r < rows;) {
    const int64_t end = rows - r < FL_CHAIN ? rows : r + FL_CHAIN;
    memset(part, 0, (size_t)p->w * 4);
    for (; r < end; r++) {
      if (logarithm)
        fl_columns_sum(p->x + r * p->step, m, part, fl_strip_columns(p, r));
      else
        fl_columns_exp(p->x + r * p->step, m, part, p->y + r * p->step, fl_strip_columns(p, r));
    }
    fl_columns_add(part, s, p->w);
  }
  for (int64_t i = p->each; i < p->w; i += p->each)
    for (int64_t j = 0; j < p->each; j++)
      s[j] += s[i + j];
  for (int64_t i = 0; i < p->each; i += VW)
    fl_put(s, i, p->each, logarithm ? vlog(fl_at(s, i, p->each)) : 1.0f / fl_at(s, i, p->each));
  fl_strip_repeat(p, s);
}

static void fl_softmax_strip(const fl_strip *p, int logarithm) {
  float m[FL_STRIP], s[FL_STRIP];
  fl_strip_max(p, m);
  fl_strip_exp(p, m, s, logarithm);
  for (int64_t r = 0; r < p->rows + (p->last > 0); r++) {
    if (logarithm)
      fl_columns_less(p->x + r * p->step, m, s, p->y + r * p->step, fl_strip_columns(p, r));
    else
      fl_columns_scale(p->y + r * p->step, s, fl_strip_columns(p, r));
  }
}

/* Wide rows are cut into strips that stay in the second-level cache over the three passes. Narrow ones are taken `k` at a time,
 * as one row of k times the columns, so that vectors are full: a column's k parts are then added in order at the end. */
static void fl_f32_softmax_inner(const float *x, float *y, int64_t n, int64_t inner, int64_t columns, int logarithm) {
  if (n <= 0 || columns <= 0)
    return;
  const int64_t k = columns < inner || inner > 32 ? 1 : n < 128 / inner ? n : 128 / inner;
  if (k > 1) {
    const fl_strip all = {x, y, n / k, k * inner, k * inner, n % k * inner, inner};
    fl_softmax_strip(&all, logarithm);
    return;
  }
  int64_t width = 32768 / n / 16 * 16;
  width = width < 64 ? 64 : width > FL_STRIP ? FL_STRIP : width;
  for (int64_t i = 0; i < columns; i += width) {
    const int64_t w = columns - i < width ? columns - i : width;
    const fl_strip strip = {x + i, y + i, n, inner, w, 0, w};
    fl_softmax_strip(&strip, logarithm);
  }
}
