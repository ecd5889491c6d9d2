/* Softmax and log-softmax: y = exp(x - m) / s or (x - m) - log(s), with m the largest x and s the sum of exp(x - m).
 *
 * Two forms: over the last axis, row by row; and over an axis with `inner` values after it, along which the vectors are.
 * y must not overlap x. A row that holds NaN or +infinity, or nothing but -infinity, becomes NaN in every element (x - m is NaN
 * somewhere, and so is s). Terms below 2^-126 of the largest count as 0. The order of every sum depends on n alone: element i
 * belongs to lane i % VW, whose sum begins with the last, partial vector and takes in chains of FL_CHAIN terms, so that long sums stay
 * accurate; lanes are folded by halves. It is the same in both forms: a column has the bits that it would have as a row. Remainders are partial vectors of the same code; lanes past the end hold
 * -infinity, which adds exactly 0.
 */
#include "lanes.h"

#define FL_CHAIN 16

/* The steps on R rows at once, the folds of one after those of the other: `whole` floats of each in whole vectors, rows with stride n.
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

/* The steps before and after a pair of rows in `fl_rows_exp`: those before are multiplied by `scale`, those after give their largest, `next`.
 * It computes more than it moves, so both cost little in between, and what is read first is not read on its own. */
typedef struct {
  vf scale[2], next[2];
  const float *after;
} fl_flow;

/* y = exp(x - m) if `keep`. s: the sum, in every lane; that of the rest of the row is in s before. If `far`, later rows are prefetched. */
FL_INLINE void fl_rows_exp(const float *x, int64_t n, int64_t whole, const vf *m, float *y, vf *s, const int R, const int keep,
                           fl_flow *flow, const int far) {
  for (int64_t i = 0; i < whole;) {
    const int64_t end = whole - i < FL_CHAIN * VW ? whole : i + FL_CHAIN * VW;
    vf chain[2];
    FL_UNROLL for (int r = 0; r < R; r++) chain[r] = vset(0);
    for (; i < end; i += VW)
      FL_UNROLL for (int r = 0; r < R; r++) {
        const vf e = vexp_flush(vload(x + r * n + i) - m[r]);
        if (flow) {
          float *before = y + (r - R) * n + i;
          vstore(before, vload(before) * flow->scale[r]);
          flow->next[r] = vmax(flow->next[r], vload(flow->after + r * n + i));
        }
        if (far) {
          __builtin_prefetch(x + (2 * R + r) * n + i, 0, 2);
          __builtin_prefetch(y + (R + r) * n + i, 1, 2);
        }
        chain[r] += e;
        if (keep)
          vstore(y + r * n + i, e);
      }
    FL_UNROLL for (int r = 0; r < R; r++) s[r] += chain[r];
  }
  FL_UNROLL for (int r = 0; r < R; r++) {
    FL_FOLD(s[r], fl_add);
    if (flow) {
      FL_FOLD(flow->next[r], vmax);
    }
  }
}

/* The last, partial vector of a row stays in a register: reading a masked store back would stall. */
FL_INLINE vf fl_row_tail(const float *x, int64_t whole, int64_t rest) {
  return rest ? vget_part(x + whole, rest, -(float)INFINITY) : vset(-(float)INFINITY);
}

/* The last step on whole vectors of R rows. */
FL_INLINE void fl_rows_scale(const float *x, float *y, int64_t n, int64_t whole, const vf *m, const vf *s, const int R,
                             const int logarithm) {
  for (int64_t i = 0; i < whole; i += VW)
    FL_UNROLL for (int r = 0; r < R; r++) {
      const int64_t at = r * n + i;
      vstore(y + at, logarithm ? (vload(x + at) - m[r]) - s[r] : vload(y + at) * s[r]);
    }
}

FL_INLINE void fl_softmax_rows(const float *x, float *y, int64_t n, const int R, const int logarithm) {
  const int64_t rest = n % VW, whole = n - rest;
  vf tail[2], m[2], s[2];
  FL_UNROLL for (int r = 0; r < R; r++) m[r] = tail[r] = fl_row_tail(x + r * n, whole, rest);
  fl_rows_max(x, n, whole, m, R);
  FL_UNROLL for (int r = 0; r < R; r++) {
    tail[r] -= m[r];
    s[r] = rest ? vexp_flush(tail[r]) : vset(0);
    tail[r] = logarithm ? tail[r] : s[r];
  }
  fl_rows_exp(x, n, whole, m, y, s, R, !logarithm, NULL, 0);
  FL_UNROLL for (int r = 0; r < R; r++) s[r] = logarithm ? vlog(s[r]) : 1.0f / s[r];
  fl_rows_scale(x, y, n, whole, m, s, R, logarithm);
  if (rest)
    FL_UNROLL for (int r = 0; r < R; r++) vput_part(y + r * n + whole, logarithm ? tail[r] - s[r] : tail[r] * s[r], rest);
}

/* Softmax of `pairs` times two rows. */
FL_INLINE void fl_softmax_pairs(const float *x, float *y, int64_t pairs, int64_t n, const int far) {
  enum { R = 2 };
  const int64_t rest = n % VW, whole = n - rest, step = R * n;
  vf tail[R], m[R], s[R];
  fl_flow flow;
  FL_UNROLL for (int r = 0; r < R; r++) flow.next[r] = tail[r] = fl_row_tail(x + r * n, whole, rest);
  fl_rows_max(x, n, whole, flow.next, R);
  for (int64_t p = 0; p < pairs; p++, x += step, y += step) {
    vf kept[R];
    flow.after = p + 1 < pairs ? x + step : x; /* after the last ones those again */
    FL_UNROLL for (int r = 0; r < R; r++) {
      m[r] = flow.next[r];
      kept[r] = s[r] = rest ? vexp_flush(tail[r] - m[r]) : vset(0);
      flow.next[r] = tail[r] = fl_row_tail(flow.after + r * n, whole, rest);
    }
    if (p > 0)
      fl_rows_exp(x, n, whole, m, y, s, R, 1, &flow, far);
    else {
      fl_rows_exp(x, n, whole, m, y, s, R, 1, NULL, 0);
      if (pairs > 1)
        fl_rows_max(flow.after, n, whole, flow.next, R);
    }
    FL_UNROLL for (int r = 0; r < R; r++) {
      s[r] = flow.scale[r] = 1.0f / s[r];
      if (rest)
        vput_part(y + r * n + whole, kept[r] * s[r], rest);
    }
  }
  fl_rows_scale(x - step, y - step, n, whole, m, s, R, 0);
}

enum {
  FL_FLOWING = 1024
}; /* values of a row at most: of 2048 all that is read and written is in the same sets of a near cache (1.5 times as long) */
#define FL_SOFTMAX_ALL(name, far) \
  static __attribute__((noinline)) void name(const float *x, float *y, int64_t rows, int64_t n) { \
    const int64_t pairs = n > FL_FLOWING ? 1 : rows / 2; \
    for (; rows > 1; rows -= 2 * pairs, x += 2 * pairs * n, y += 2 * pairs * n) \
      fl_softmax_pairs(x, y, pairs, n, far); \
    if (rows) \
      fl_softmax_rows(x, y, n, 1, 0); \
  }
FL_SOFTMAX_ALL(fl_softmax_near, 0)
FL_SOFTMAX_ALL(fl_softmax_far, 1)
#undef FL_SOFTMAX_ALL

static __attribute__((noinline)) void fl_log_softmax_all(const float *x, float *y, int64_t rows, int64_t n) {
  int64_t row = 0;
  for (; row + 2 <= rows; row += 2)
    fl_softmax_rows(x + row * n, y + row * n, n, 2, 1);
  if (row < rows)
    fl_softmax_rows(x + row * n, y + row * n, n, 1, 1);
}

/* logarithm: 1 for log-softmax; -1 for a softmax of values that are not in a second-level cache, which has room for six rows. */
static void fl_f32_softmax_rows(const float *x, float *y, int64_t rows, int64_t n, int logarithm) {
  if (n > 0)
    (logarithm > 0 ? fl_log_softmax_all : logarithm ? fl_softmax_far : fl_softmax_near)(x, y, rows, n);
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

/* A strip of `w` columns: rows have stride `step`, and row r belongs to lane r % lanes. A row may also be VW rows of `each` values
 * one after the other (lanes = 1): then `whole` of them may be followed by one of `last` < w values. */
#define FL_STRIP 512
enum { FL_SUMS = 2048 }; /* values of all lanes of a strip */
typedef struct {
  const float *x;
  float *y;
  int64_t rows, whole; /* of all rows the last ones, from `whole` on, are the beginnings of sums */
  int64_t step, w, last, each, lanes;
} fl_strip;

FL_INLINE int64_t fl_strip_columns(const fl_strip *p, int64_t row) { return row < p->whole ? p->w : p->last; }

/* copies the first period over the others */
FL_INLINE void fl_strip_repeat(const fl_strip *p, float *v) {
  for (int64_t i = p->each; i < p->w; i++)
    v[i] = v[i - p->each];
}

/* m: the largest of each column, the same in all that belong together */
static void fl_strip_max(const fl_strip *p, float *m) {
  for (int64_t i = 0; i < p->w; i++)
    m[i] = -(float)INFINITY;
  for (int64_t r = 0; r < p->rows; r++)
    fl_columns_max(p->x + r * p->step, m, fl_strip_columns(p, r));
  for (int64_t i = p->each; i < p->w; i += p->each)
    for (int64_t j = 0; j < p->each; j++)
      m[j] = m[j] > m[i + j] ? m[j] : m[i + j];
  fl_strip_repeat(p, m);
}

/* Rows first .. end - 1: y = exp(x - m) unless a logarithm is asked for, added to their lanes' sums. */
FL_INLINE void fl_strip_add(const fl_strip *p, const float *m, float *s, int64_t first, int64_t end, int logarithm) {
  for (int64_t r = first; r < end; r++) {
    float *sum = s + r % p->lanes * p->w;
    if (logarithm)
      fl_columns_sum(p->x + r * p->step, m, sum, fl_strip_columns(p, r));
    else
      fl_columns_exp(p->x + r * p->step, m, sum, p->y + r * p->step, fl_strip_columns(p, r));
  }
}

/* s: 1 / sum, or its logarithm */
static void fl_strip_exp(const fl_strip *p, const float *m, float *s, int logarithm) {
  float part[FL_SUMS];
  int64_t lanes = p->lanes > 1 ? (p->rows < VW ? p->rows : VW) : p->w / p->each; /* those that are there */
  const size_t bytes = (size_t)(lanes * p->each) * 4;
  memset(s, 0, bytes);
  fl_strip_add(p, m, s, p->whole, p->rows, logarithm);
  for (int64_t r = 0, end; r < p->whole; r = end) {
    end = p->whole - r < FL_CHAIN * p->lanes ? p->whole : r + FL_CHAIN * p->lanes;
    memset(part, 0, bytes);
    fl_strip_add(p, m, part, r, end, logarithm);
    fl_columns_add(part, s, lanes * p->each);
  }
  for (int64_t h = VW / 2; h; h /= 2)
    if (lanes > h) {
      fl_columns_add(s + h * p->each, s, (lanes - h) * p->each);
      lanes = h;
    }
  for (int64_t i = 0; i < p->each; i += VW)
    fl_put(s, i, p->each, logarithm ? vlog(fl_at(s, i, p->each)) : 1.0f / fl_at(s, i, p->each));
  fl_strip_repeat(p, s);
}

static void fl_softmax_strip(const fl_strip *p, int logarithm) {
  float m[FL_STRIP], s[FL_SUMS];
  fl_strip_max(p, m);
  fl_strip_exp(p, m, s, logarithm);
  for (int64_t r = 0; r < p->rows; r++) {
    if (logarithm)
      fl_columns_less(p->x + r * p->step, m, s, p->y + r * p->step, fl_strip_columns(p, r));
    else
      fl_columns_scale(p->y + r * p->step, s, fl_strip_columns(p, r));
  }
}

/* Wide rows are cut into strips that stay in the second-level cache over the three passes. Narrow ones are taken VW at a time,
 * as one row of VW times the columns, so that vectors are full. */
static void fl_f32_softmax_inner(const float *x, float *y, int64_t n, int64_t inner, int64_t columns, int logarithm) {
  if (n <= 0 || columns <= 0)
    return;
  const int64_t whole = n / VW, rest = n % VW;
  if (columns == inner && inner <= FL_STRIP / VW) {
    const int64_t k = whole ? VW : n;
    const fl_strip all = {x, y, whole + (rest > 0), whole, k * inner, k * inner, rest * inner, inner, 1};
    fl_softmax_strip(&all, logarithm);
    return;
  }
  int64_t width = 32768 / n / 16 * 16;
  width = width < 64 ? 64 : width > FL_SUMS / VW ? FL_SUMS / VW : width;
  for (int64_t i = 0; i < columns; i += width) {
    const int64_t w = columns - i < width ? columns - i : width;
    const fl_strip strip = {x + i, y + i, n, n - rest, inner, w, w, w, VW};
    fl_softmax_strip(&strip, logarithm);
  }
}
