/* Depthwise convolution in both layouts: see fl_dw_last and fl_dw_first in kernels.h for the operands.
 *
 * Every output is one chain of multiply-adds over its taps in order (blocks of FL_KC taps, added in order), then bias, residual,
 * relu; so neither layout nor path nor place in a vector shows in the result. Other activations run over what was just written.
 * Paths: kernels of usual shape keep an input in a register for all the outputs that need it (`shared`); any other shape walks a
 * list of taps for eight vectors at a time (`listed`).
 * Remainders: channels-last pixels go in groups of 8, 4, 2 and 1; the last vector of lanes and the last group of rows start early
 * and compute some outputs a second time. Channels-first rows shorter than a vector are stored whole all the same: what spills
 * over is in later rows, which are stored later; only the vectors that would pass the end of the output are stored in part. */

FL_INLINE vf fl_dw_end(vf sum, vf bias, const float *residual, int code) {
  sum += bias;
  if (residual)
    sum += vload(residual);
  return code == FL_RELU ? vmax(vset(0), sum) : sum; /* NaN passes: vmax gives its second operand */
}

/* ---- channels-last: a vector is VW channels of one pixel ---------------------------------------------------------------- */

/* P pixels from pixel o on, channels from i on; kernel rows of kw neighbours, pixels with stride s. */
FL_INLINE void fl_dw_last_shared(const fl_dw_last *p, int64_t o, int64_t i, const int P, const int kw, const int s) {
  const int64_t c = p->c, at = o * p->step + i;
  const float *w = p->w + i;
  vf acc[8];
  FL_UNROLL for (int q = 0; q < P; q++) acc[q] = vset(0);
  for (int64_t t = 0; t < p->ntaps; t += kw) {
    const float *x = p->taps[t] + at;
    vf k[8];
    FL_UNROLL for (int u = 0; u < kw; u++) k[u] = vload(w + u * c);
    w += kw * c;
    FL_UNROLL for (int u = 0; u < (P - 1) * s + kw; u++) {
      const vf v = vload(x + u * c);
      FL_UNROLL for (int q = 0; q < P; q++)
        if (u - q * s >= 0 && u - q * s < kw)
          acc[q] = vfma(k[u - q * s], v, acc[q]);
    }
  }
  const vf bias = vload(p->bias + i);
  FL_UNROLL for (int q = 0; q < P; q++) {
    const int64_t to = (o + q) * c + i;
    vstore(p->out + to, fl_dw_end(acc[q], bias, p->residual ? p->residual + to : 0, p->code));
  }
}

/* P pixels and C vectors of channels, any list of taps. */
FL_INLINE void fl_dw_last_listed(const fl_dw_last *p, int64_t o, int64_t i, const int P, const int C) {
  const int64_t c = p->c;
  vf total[8], acc[8];
  FL_UNROLL for (int q = 0; q < P * C; q++) total[q] = vset(0);
  for (int64_t t0 = 0; t0 < p->ntaps; t0 += FL_KC) {
    const int64_t t1 = t0 + FL_KC < p->ntaps ? t0 + FL_KC : p->ntaps;
    FL_UNROLL for (int q = 0; q < P * C; q++) acc[q] = vset(0);
    for (int64_t t = t0; t < t1; t++) {
      const float *x = p->taps[t] + o * p->step + i, *w = p->w + t * c + i;
      FL_UNROLL for (int u = 0; u < C; u++) {
        const vf k = vload(w + u * VW);
        FL_UNROLL for (int q = 0; q < P; q++) acc[q * C + u] = vfma(k, vload(x + q * p->step + u * VW), acc[q * C + u]);
      }
    }
    FL_UNROLL for (int q = 0; q < P * C; q++) total[q] = t0 ? total[q] + acc[q] : acc[q];
  }
  FL_UNROLL for (int q = 0; q < P; q++)
    FL_UNROLL for (int u = 0; u < C; u++) {
      const int64_t to = (o + q) * c + i + u * VW;
      vstore(p->out + to,
             fl_dw_end(total[q * C + u], vload(p->bias + i + u * VW), p->residual ? p->residual + to : 0, p->code));
    }
}

/* P pixels from pixel o on, all channels: what they read is together, whatever the number of channels. kw = 0: listed. */
FL_INLINE void fl_dw_last_group(const fl_dw_last *p, int64_t o, const int P, const int kw, const int s) {
  for (int64_t i0 = 0; i0 < p->c; i0 += VW) {
    const int64_t i = i0 < p->c - VW ? i0 : p->c - VW;
    if (kw)
      fl_dw_last_shared(p, o, i, P, kw, s);
    else
      fl_dw_last_listed(p, o, i, P, 1);
  }
}

FL_INLINE void fl_dw_last_all(const fl_dw_last *p, const int kw, const int s) {
  int64_t o = 0;
  for (; o + 8 <= p->cols; o += 8)
    fl_dw_last_group(p, o, 8, kw, s);
  if (o + 4 <= p->cols) {
    fl_dw_last_group(p, o, 4, kw, s);
    o += 4;
  }
  if (o + 2 <= p->cols) {
    fl_dw_last_group(p, o, 2, kw, s);
    o += 2;
  }
  if (o < p->cols)
    fl_dw_last_group(p, o, 1, kw, s);
}

/* One pixel: the border of an image. Four vectors of channels at once keep the adders busy. */
static __attribute__((noinline)) void fl_dw_last_pixel(const fl_dw_last *p) {
  int64_t i = 0;
  for (; i + 4 * VW <= p->c; i += 4 * VW)
    fl_dw_last_listed(p, 0, i, 1, 4);
  for (; i < p->c; i += VW)
    fl_dw_last_listed(p, 0, i < p->c - VW ? i : p->c - VW, 1, 1);
}

#define FL_DW_LAST(kw, s) \
  static __attribute__((noinline)) void fl_dw_last_##kw##_##s(const fl_dw_last *p) { \
    const fl_dw_last local = *p; \
    fl_dw_last_all(&local, kw, s); \
  }
FL_DW_LAST(0, 0)
FL_DW_LAST(3, 1)
FL_DW_LAST(3, 2)
FL_DW_LAST(5, 1)
FL_DW_LAST(5, 2)
FL_DW_LAST(7, 1)
#undef FL_DW_LAST

static void fl_f32_depthwise_last(const fl_dw_last *p) {
  if (p->cols <= 0 || p->c <= 0)
    return;
  const int few = p->ntaps <= FL_KC, s = p->step == p->c ? 1 : p->step == 2 * p->c ? 2 : 0;
  if (p->cols == 1)
    fl_dw_last_pixel(p);
  else if (few && p->kw == 3 && s)
    (s == 1 ? fl_dw_last_3_1 : fl_dw_last_3_2)(p);
  else if (few && p->kw == 5 && s)
    (s == 1 ? fl_dw_last_5_1 : fl_dw_last_5_2)(p);
  else if (few && p->kw == 7 && s == 1)
    fl_dw_last_7_1(p);
  else
    fl_dw_last_0_0(p);
  if (p->code > FL_RELU)
    fl_f32_unary(p->code, p->a, p->b, p->out, p->out, p->cols * p->c);
}

/* ---- channels-first: a vector is VW pixels of one row ------------------------------------------------------------------ */

/* Makes the padded rows. Rows of small images are short: whole vectors, the last one overlapping, instead of calls of memcpy. */
static void fl_dw_first_fill(const fl_dw_first *p) {
  const int64_t step = p->source_step;
  for (int64_t m = 0; m < p->ncopies; m++) {
    const int64_t n = p->copies[m].n;
    const float *from = p->source + p->copies[m].from;
    float *restrict to = p->x + p->copies[m].to;
    int64_t i = 0;
    if (step != 1 || n < VW) {
      fl_f32_gather(from, step, to, n);
      continue;
    }
    for (; i < n - VW; i += VW)
      vstore(to + i, vload(from + i));
    vstore(to + n - VW, vload(from + n - VW));
  }
}

/* The vector at `to`, of which only p->cols lanes belong to the output. */
static __attribute__((noinline)) void fl_dw_first_store_part(const fl_dw_first *p, int64_t to, vf sum) {
  float residual[VW];
  if (p->residual)
    vstore(residual, vget_part(p->residual + to, p->cols, 0));
  vput_part(p->out + to, fl_dw_end(sum, vset(p->bias), p->residual ? residual : 0, p->code), p->cols);
}

/* Writes the vector of sums that belongs at out[y, j]; whole vectors end before `limit`. */
FL_INLINE void fl_dw_first_store(const fl_dw_first *p, int64_t limit, int64_t y, int64_t j, vf sum) {
  const int64_t to = y * p->ldo + j;
  if (to + VW <= limit)
    vstore(p->out + to, fl_dw_end(sum, vset(p->bias), p->residual ? p->residual + to : 0, p->code));
  else
    fl_dw_first_store_part(p, to, sum);
}

/* Where whole vectors must end: only rows shorter than a vector can pass the output's end. */
FL_INLINE int64_t fl_dw_first_limit(const fl_dw_first *p) { return p->cols >= VW ? INT64_MAX : p->rows * p->ldo; }

/* P rows from y on and Q vectors from columns j on, of a kernel of kh rows and kw columns; output rows have a stride of s kernel rows.
 * k and tap: the weights and the offsets of the columns, in registers as far as they go if kw is a constant. */
FL_INLINE void fl_dw_first_shared(const fl_dw_first *p, int64_t limit, const float *k, const int64_t *tap, int64_t y,
                                  const int64_t *j, const int P, const int Q, const int kh, const int64_t kw, const int s) {
  vf acc[4][2];
  FL_UNROLL for (int q = 0; q < P; q++)
    FL_UNROLL for (int u = 0; u < Q; u++) acc[q][u] = vset(0);
  FL_UNROLL for (int r = 0; r < (P - 1) * s + kh; r++) {
    const float *x = p->x + y * p->step + r * p->row;
    for (int64_t t = 0; t < kw; t++) {
      vf v[2];
      FL_UNROLL for (int u = 0; u < Q; u++) v[u] = vload(x + j[u] + tap[t]);
      FL_UNROLL for (int q = 0; q < P; q++)
        if (r - q * s >= 0 && r - q * s < kh) {
          const vf w = vset(k[(r - q * s) * kw + t]);
          FL_UNROLL for (int u = 0; u < Q; u++) acc[q][u] = vfma(w, v[u], acc[q][u]);
        }
    }
  }
  FL_UNROLL for (int q = 0; q < P; q++)
    FL_UNROLL for (int u = 0; u < Q; u++) fl_dw_first_store(p, limit, y + q, j[u], acc[q][u]);
}

/* Bands of four rows; the kernel's shape as above. */
FL_INLINE void fl_dw_first_bands(const fl_dw_first *p, const float *k, const int64_t *tap, const int Q, const int kh,
                                 const int64_t kw, const int s) {
  enum { P = 4 };
  const int64_t last = p->cols > VW ? p->cols - VW : 0, limit = fl_dw_first_limit(p);
  for (int64_t y0 = 0; y0 < p->rows; y0 += P) {
    const int64_t y = y0 < p->rows - P ? y0 : p->rows - P;
    int64_t j = 0;
    for (; Q > 1 && j + VW < p->cols; j += Q * VW) {
      const int64_t at[2] = {j, j + VW < last ? j + VW : last};
      fl_dw_first_shared(p, limit, k, tap, y, at, P, Q, kh, kw, s);
    }
    for (; j < p->cols; j += VW) {
      const int64_t at[2] = {j < last ? j : last, 0};
      fl_dw_first_shared(p, limit, k, tap, y, at, P, 1, kh, kw, s);
    }
  }
}

/* Any kernel: eight vectors at a time, in the order of rows and columns; the last one fills up its group. */
static __attribute__((noinline)) void fl_dw_first_listed(const fl_dw_first *p) {
  enum { P = 8 };
  const int64_t limit = fl_dw_first_limit(p);
  const int64_t last = p->cols > VW ? p->cols - VW : 0, ntaps = p->kh * p->kw;
  int64_t row = 0, col = 0;
  while (row < p->rows) {
    int64_t y[P], j[P];
    const float *x[P];
    vf total[P], acc[P];
    for (int q = 0; q < P; q++) {
      if (row < p->rows) {
        y[q] = row;
        j[q] = col < last ? col : last;
        col += VW;
      } else {
        y[q] = y[q - 1];
        j[q] = j[q - 1];
      }
      if (col >= p->cols) {
        col = 0;
        row++;
      }
      x[q] = p->x + y[q] * p->step + j[q];
      total[q] = vset(0);
    }
    for (int64_t t0 = 0; t0 < ntaps; t0 += FL_KC) {
      const int64_t t1 = t0 + FL_KC < ntaps ? t0 + FL_KC : ntaps;
      FL_UNROLL for (int q = 0; q < P; q++) acc[q] = vset(0);
      for (int64_t t = t0; t < t1; t++) {
        const vf k = vset(p->w[t]);
        const int64_t tap = p->taps[t];
        FL_UNROLL for (int q = 0; q < P; q++) acc[q] = vfma(k, vload(x[q] + tap), acc[q]);
      }
      FL_UNROLL for (int q = 0; q < P; q++) total[q] = t0 ? total[q] + acc[q] : acc[q];
    }
    FL_UNROLL for (int q = 0; q < P; q++) fl_dw_first_store(p, limit, y[q], j[q], total[q]);
  }
}

/* The copies tell the compiler that no store changes them. */
#define FL_DW_FIRST_3(s) \
  static __attribute__((noinline)) void fl_dw_first_3_##s(const fl_dw_first *p) { \
    const fl_dw_first local = *p; \
    const int64_t tap[3] = {p->taps[0], p->taps[1], p->taps[2]}; \
    float k[9]; \
    memcpy(k, p->w, sizeof k); \
    fl_dw_first_bands(&local, k, tap, 1, 3, 3, s); \
  }
#define FL_DW_FIRST(kh, s) \
  static __attribute__((noinline)) void fl_dw_first_##kh##_##s(const fl_dw_first *p) { \
    const fl_dw_first local = *p; \
    fl_dw_first_bands(&local, p->w, p->taps, 2, kh, p->kw, s); \
  }
FL_DW_FIRST_3(1)
FL_DW_FIRST_3(2)
FL_DW_FIRST(5, 1)
FL_DW_FIRST(5, 2)
FL_DW_FIRST(7, 1)
#undef FL_DW_FIRST_3
#undef FL_DW_FIRST

#include "depthwise_plain.h"

static void fl_f32_depthwise_first(const fl_dw_first *p) {
  if (p->cols <= 0 || p->rows <= 0)
    return;
  fl_dw_first_fill(p);
  const int s = p->row && p->step == p->row ? 1 : p->row && p->step == 2 * p->row ? 2 : 0;
  const int shared = s && p->rows >= 4 && p->kh * p->kw <= FL_KC;
  if (p->plain)
    fl_dw_plain(p);
  else if (shared && p->kh == 3 && p->kw == 3)
    (s == 1 ? fl_dw_first_3_1 : fl_dw_first_3_2)(p);
  else if (shared && p->kh == 5)
    (s == 1 ? fl_dw_first_5_1 : fl_dw_first_5_2)(p);
  else if (shared && p->kh == 7 && s == 1)
    fl_dw_first_7_1(p);
  else
    fl_dw_first_listed(p);
  if (p->code > FL_RELU) {
    const int64_t pieces = p->ldo == p->cols ? 1 : p->rows, n = p->ldo == p->cols ? p->rows * p->cols : p->cols;
    for (int64_t y = 0; y < pieces; y++)
      fl_f32_unary(p->code, p->a, p->b, p->out + y * p->ldo, p->out + y * p->ldo, n);
  }
}
