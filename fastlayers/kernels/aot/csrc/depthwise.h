/* Depthwise convolution in both layouts: see fl_dw_last and fl_dw_first in kernels.h for the operands.
 *
 * Every output is one chain of multiply-adds over its taps in order (blocks of FL_KC taps, added in order), then bias, residual, relu;
 * so neither the layout nor the path nor the place in a vector shows in the result. Other activations run over what was just written.
 * Paths: kernels of usual shape keep an input in a register for all the outputs that need it (`shared`); any other shape walks a
 * list of taps for eight vectors at a time (`listed`).
 * Remainders: the last group of pixels, rows or lanes starts early and computes some outputs a second time. Channels-first rows
 * shorter than a vector are stored whole all the same: what spills over lies in later rows, which are stored later; only the
 * vectors that would pass the end of the output are stored in part. */

FL_INLINE vf fl_dw_end(vf sum, vf bias, const float *residual, int code) {
  sum += bias;
  if (residual)
    sum += vload(residual);
  return code == FL_RELU ? vmax(vset(0), sum) : sum; /* NaN passes: vmax gives its second operand */
}

/* ---- channels-last: a vector is VW channels of one pixel ---------------------------------------------------------------- */

/* P pixels from pixel o on, channels from i on; kernel rows of kw neighbours, pixels s input pixels apart. */
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

/* All pixels of one vector of channels, in groups of P, or one by one where there are fewer. kw = 0: listed. */
FL_INLINE void fl_dw_last_lane(const fl_dw_last *p, int64_t i, const int P, const int kw, const int s) {
  if (p->cols >= P) {
    for (int64_t o = 0; o < p->cols; o += P) {
      const int64_t from = o < p->cols - P ? o : p->cols - P;
      if (kw)
        fl_dw_last_shared(p, from, i, P, kw, s);
      else
        fl_dw_last_listed(p, from, i, P, 1);
    }
  } else {
    for (int64_t o = 0; o < p->cols; o++)
      fl_dw_last_listed(p, o, i, 1, 1);
  }
}

FL_INLINE void fl_dw_last_all(const fl_dw_last *p, const int P, const int kw, const int s) {
  for (int64_t i = 0; i < p->c; i += VW) {
    const int64_t from = i < p->c - VW ? i : p->c - VW;
    if (p->cols >= P)
      fl_dw_last_lane(p, from, P, kw, s);
    else
      fl_dw_last_lane(p, from, P / 2, kw, s);
  }
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
  static __attribute__((noinline)) void fl_dw_last_##kw##_##s(const fl_dw_last *p) { fl_dw_last_all(p, 8, kw, s); }
FL_DW_LAST(0, 0)
FL_DW_LAST(3, 1)
FL_DW_LAST(3, 2)
FL_DW_LAST(5, 1)
FL_DW_LAST(5, 2)
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
  else
    fl_dw_last_0_0(p);
  if (p->code > FL_RELU)
    fl_f32_unary(p->code, p->a, p->b, p->out, p->out, p->cols * p->c);
}

/* ---- channels-first: a vector is VW pixels of one row ------------------------------------------------------------------ */

/* Writes the vector of sums that belongs at out[y, j]. */
FL_INLINE void fl_dw_first_store(const fl_dw_first *p, int64_t y, int64_t j, vf sum) {
  const int64_t to = y * p->ldo + j;
  const vf bias = vset(p->bias);
  if (p->cols >= VW || (p->rows - y) * p->ldo >= VW) {
    vstore(p->out + to, fl_dw_end(sum, bias, p->residual ? p->residual + to : 0, p->code));
    return;
  }
  float residual[VW];
  if (p->residual)
    vstore(residual, vload_part(p->residual + to, p->cols, 0));
  vstore_part(p->out + to, fl_dw_end(sum, bias, p->residual ? residual : 0, p->code), p->cols);
}

/* P rows from y on and Q vectors from column j on; kernel of kh rows, output rows s kernel rows apart. kw = 0: known at run time. */
FL_INLINE void fl_dw_first_shared(const fl_dw_first *p, int64_t y, const int64_t *j, const int P, const int Q, const int kh,
                                  const int fixed, const int s) {
  const int64_t kw = fixed ? fixed : p->kw;
  vf acc[4][2];
  FL_UNROLL for (int q = 0; q < P; q++)
    FL_UNROLL for (int u = 0; u < Q; u++) acc[q][u] = vset(0);
  FL_UNROLL for (int r = 0; r < (P - 1) * s + kh; r++) {
    const float *x = p->x + y * p->step + r * p->row;
#define FL_DW_COLUMN(t) \
  { \
    vf v[2]; \
    FL_UNROLL for (int u = 0; u < Q; u++) v[u] = vload(x + j[u] + p->taps[t]); \
    FL_UNROLL for (int q = 0; q < P; q++) \
      if (r - q * s >= 0 && r - q * s < kh) { \
        const vf k = vset(p->w[(r - q * s) * kw + (t)]); \
        FL_UNROLL for (int u = 0; u < Q; u++) acc[q][u] = vfma(k, v[u], acc[q][u]); \
      } \
  }
    if (fixed) {
      FL_UNROLL for (int t = 0; t < fixed; t++) FL_DW_COLUMN(t)
    } else {
      for (int64_t t = 0; t < kw; t++)
        FL_DW_COLUMN(t)
    }
#undef FL_DW_COLUMN
  }
  FL_UNROLL for (int q = 0; q < P; q++)
    FL_UNROLL for (int u = 0; u < Q; u++) fl_dw_first_store(p, y + q, j[u], acc[q][u]);
}

/* Bands of four rows; the kernel's shape as above. */
FL_INLINE void fl_dw_first_bands(const fl_dw_first *p, const int Q, const int kh, const int fixed, const int s) {
  enum { P = 4 };
  const int64_t last = p->cols > VW ? p->cols - VW : 0;
  for (int64_t y0 = 0; y0 < p->rows; y0 += P) {
    const int64_t y = y0 < p->rows - P ? y0 : p->rows - P;
    int64_t j = 0;
    for (; Q > 1 && j + VW < p->cols; j += Q * VW) {
      const int64_t at[2] = {j, j + VW < last ? j + VW : last};
      fl_dw_first_shared(p, y, at, P, Q, kh, fixed, s);
    }
    for (; j < p->cols; j += VW) {
      const int64_t at[2] = {j < last ? j : last, 0};
      fl_dw_first_shared(p, y, at, P, 1, kh, fixed, s);
    }
  }
}

/* Any kernel: eight vectors at a time, in the order of rows and columns; the last one fills up its group. */
static __attribute__((noinline)) void fl_dw_first_listed(const fl_dw_first *p) {
  enum { P = 8 };
  const int64_t wide = (p->cols + VW - 1) / VW, count = p->rows * wide, last = p->cols > VW ? p->cols - VW : 0;
  const int64_t ntaps = p->kh * p->kw;
  for (int64_t n = 0; n < count; n += P) {
    int64_t y[P], j[P];
    const float *x[P];
    vf total[P], acc[P];
    FL_UNROLL for (int q = 0; q < P; q++) {
      const int64_t m = n + q < count ? n + q : count - 1;
      y[q] = m / wide;
      j[q] = m % wide * VW < last ? m % wide * VW : last;
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
    FL_UNROLL for (int q = 0; q < P; q++) fl_dw_first_store(p, y[q], j[q], total[q]);
  }
}

#define FL_DW_FIRST(kh, fixed, s, Q) \
  static __attribute__((noinline)) void fl_dw_first_##kh##_##s(const fl_dw_first *p) { fl_dw_first_bands(p, Q, kh, fixed, s); }
FL_DW_FIRST(3, 3, 1, 1)
FL_DW_FIRST(3, 3, 2, 1)
FL_DW_FIRST(5, 0, 1, 2)
FL_DW_FIRST(5, 0, 2, 2)
#undef FL_DW_FIRST

static void fl_f32_depthwise_first(const fl_dw_first *p) {
  if (p->cols <= 0 || p->rows <= 0)
    return;
  const int s = p->row && p->step == p->row ? 1 : p->row && p->step == 2 * p->row ? 2 : 0;
  const int shared = s && p->rows >= 4 && p->kh * p->kw <= FL_KC;
  if (shared && p->kh == 3 && p->kw == 3)
    (s == 1 ? fl_dw_first_3_1 : fl_dw_first_3_2)(p);
  else if (shared && p->kh == 5)
    (s == 1 ? fl_dw_first_5_1 : fl_dw_first_5_2)(p);
  else
    fl_dw_first_listed(p);
  if (p->code > FL_RELU)
    for (int64_t y = 0; y < (p->ldo == p->cols ? 1 : p->rows); y++)
      fl_f32_unary(p->code, p->a, p->b, p->out + y * p->ldo, p->out + y * p->ldo, p->ldo == p->cols ? p->rows * p->cols : p->cols);
}
