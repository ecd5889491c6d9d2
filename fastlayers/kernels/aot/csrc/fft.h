/* Fourier transforms of rows. Several rows at a time are each in a lane of vectors; or one row alone is cut into as many columns as fill
 * vectors. Both do the same sums in the same order (see ../../fft_tables.py), so a row has the same bits either way.
 *
 * An inverse transform is the transform with real and imaginary parts exchanged, before and after. */
#include "fft_types.h"
#include "fft_pass.h"

/* Complex values as vectors with stride `step`: of lanes one value per vector, of planes a vector's values one after the other. */
typedef struct {
  float *re, *im;
  int64_t step;
} fl_fft_view;

FL_INLINE fl_fft_view fl_fft_lanes(float *p) { return (fl_fft_view){p, p + VW, 2 * VW}; }
FL_INLINE fl_fft_view fl_fft_planes(const fl_fft *f, float *p) { return (fl_fft_view){p, p + f->plane, VW}; }
FL_INLINE vf fl_fft_table(int lanes, const float *t, int64_t v) { return lanes ? vset(t[v]) : vload(t + v * VW); }
FL_INLINE int64_t fl_fft_up(int64_t n) { return (n + FL_PANEL - 1) / FL_PANEL * FL_PANEL; }
FL_INLINE int64_t fl_fft_blocks(int64_t n) { return (n + VW - 1) / VW; }

/* ---- rows in and out ---------------------------------------------------------------------------------------------------------- */

FL_INLINE void fl_fft_weigh(float *to, const float *x, const float *window, int64_t points, int a, int b) {
  for (int64_t j = 0; j < points; j++) {
    const float w = window == NULL ? 1 : window[j];
    to[2 * j + a] = x[2 * j] * w;
    to[2 * j + b] = x[2 * j + 1] * w;
  }
}

FL_INLINE void fl_fft_widen(float *to, const float *x, const float *window, int64_t points) {
  for (int64_t j = 0; j < points; j++) {
    to[2 * j] = window == NULL ? x[j] : x[j] * window[j];
    to[2 * j + 1] = 0;
  }
}

/* Frame `row` as pairs, in `to`: what it has, weighed, and zeros to the end of `floats`. */
static void fl_fft_stage(const fl_fft *p, int64_t row, float *to, int64_t floats) {
  const int64_t frame = row % p->frames * p->stride, left = p->length - frame;
  const float *x = p->x + row / p->frames * p->length + frame, *w = p->window;
  const int64_t have = left < 0 ? 0 : left < p->reads ? left : p->reads;
  int64_t done = have;
  switch (p->op) {
  case FL_FFT:
  case FL_IFFT: {
    const int flip = p->op == FL_IFFT;
    const int64_t whole = have / 2;
    if (flip)
      fl_fft_weigh(to, x, w, whole, 1, 0);
    else if (w == NULL)
      memcpy(to, x, (size_t)whole * 8);
    else
      fl_fft_weigh(to, x, w, whole, 0, 1);
    done = 2 * whole;
    if (have % 2) {
      to[done + flip] = x[done] * (w == NULL ? 1 : w[whole]);
      to[done + !flip] = 0;
      done += 2;
    }
    break;
  }
  case FL_RFFT:
  case FL_FFT_REAL:
  case FL_IFFT_REAL: /* whose result is that of the other, with other signs */
    if (!p->pairs) {
      fl_fft_widen(to, x, w, have);
      done = 2 * have;
    } else if (w == NULL)
      memcpy(to, x, (size_t)have * 4);
    else
      for (int64_t j = 0; j < have; j++)
        to[j] = x[j] * w[j];
    break;
  default: /* half of a spectrum; the imaginary parts of its ends are not looked at */
    memcpy(to, x, (size_t)have * 4);
    if (have > 1)
      to[1] = 0;
    if (p->pairs) {
      if (have == p->reads)
        to[have - 1] = 0;
    } else {
      memset(to + have, 0, (size_t)(2 * p->n - have) * 4);
      for (int64_t j = p->n / 2; j > 0; j--) {
        const float re = to[2 * j], im = to[2 * j + 1];
        to[2 * j] = im, to[2 * j + 1] = re;
        to[2 * (p->n - j)] = -im, to[2 * (p->n - j) + 1] = re;
      }
      const float re = to[0];
      to[0] = 0, to[1] = re;
      done = 2 * p->n;
    }
  }
  memset(to + done, 0, (size_t)(floats - done) * 4);
}

/* A result of pairs to where it belongs. */
static void fl_fft_give(const fl_fft *p, const float *z, float *out) {
  const float scale = p->scale;
  const int64_t n = p->writes;
  if (p->op == FL_IRFFT && !p->pairs)
    for (int64_t j = 0; j < n; j++)
      out[j] = z[2 * j + 1] * scale;
  else if (p->op == FL_FFT_REAL || p->op == FL_IFFT_REAL) {
    const float up = p->op == FL_FFT_REAL ? scale : -scale; /* the second half mirrors the first */
    for (int64_t j = 0; 2 * j <= p->size; j++) {
      out[2 * j] = z[2 * j] * scale;
      out[2 * j + 1] = z[2 * j + 1] * up;
    }
    for (int64_t j = p->size / 2 + 1; j < p->size; j++) {
      out[2 * j] = z[2 * (p->size - j)] * scale;
      out[2 * j + 1] = z[2 * (p->size - j) + 1] * -up;
    }
  } else if (p->op == FL_IFFT || p->op == FL_IRFFT)
    for (int64_t j = 0; j < n / 2; j++) {
      out[2 * j] = z[2 * j + 1] * scale;
      out[2 * j + 1] = z[2 * j] * scale;
    }
  else
    for (int64_t j = 0; j < n; j++)
      out[j] = z[j] * scale;
}

/* ---- what is done to points one by one ----------------------------------------------------------------------------------------- */

/* to = from * table, real and imaginary parts exchanged before the product, or after it, or not */
FL_INLINE void fl_fft_multiply(int lanes, fl_fft_view from, fl_fft_view to, const float *table, int64_t apart, int64_t points, int before,
                               int after) {
  const int64_t count = lanes ? points : fl_fft_blocks(points);
  for (int64_t v = 0; v < count; v++) {
    fl_vc z = {vload(from.re + v * from.step), vload(from.im + v * from.step)};
    if (before)
      z = (fl_vc){z.im, z.re};
    z = fl_vc_mul(z, fl_fft_table(lanes, table, v), fl_fft_table(lanes, table + apart, v));
    vstore(to.re + v * to.step, after ? z.im : z.re);
    vstore(to.im + v * to.step, after ? z.re : z.im);
  }
}

/* Number n - k of a view, which has n + 1 of them */
FL_INLINE fl_vc fl_fft_mirror(int lanes, fl_fft_view z, int64_t v, int64_t n) {
  if (lanes)
    return (fl_vc){vload(z.re + (n - v) * z.step), vload(z.im + (n - v) * z.step)};
  float re[VW], im[VW];
  for (int64_t i = 0; i < VW; i++) {
    const int64_t at = n - v * VW - i;
    re[i] = z.re[at < 0 ? 0 : at], im[i] = z.im[at < 0 ? 0 : at];
  }
  return (fl_vc){vload(re), vload(im)};
}

/* Values 0 .. n of half the spectrum of reals from the spectrum of n pairs of them, whose first number comes again as number n; or
 * (`back`) the other way round, times 2, with parts exchanged: values 0 .. n - 1. */
FL_INLINE void fl_fft_fold(int lanes, fl_fft_view from, fl_fft_view to, const float *table, int64_t apart, int64_t n, int back) {
  const int64_t points = back ? n : n + 1, count = lanes ? points : fl_fft_blocks(points);
  for (int64_t v = 0; v < count; v++) {
    const fl_vc z = {vload(from.re + v * from.step), vload(from.im + v * from.step)}, y = fl_fft_mirror(lanes, from, v, n);
    const vf wr = fl_fft_table(lanes, table, v), wi = fl_fft_table(lanes, table + apart, v);
    const vf half = vset(back ? 1.0f : 0.5f);
    const vf er = (z.re + y.re) * half, ei = (z.im - y.im) * half, dr = (z.re - y.re) * half, di = (z.im + y.im) * half;
    const vf a = back ? vfma(-wr, di, vfma(wi, dr, er)) : vfma(wi, dr, vfma(wr, di, er));
    const vf b = back ? vfma(wi, di, vfma(wr, dr, ei)) : vfma(-wr, dr, vfma(wi, di, ei));
    vstore(to.re + v * to.step, back ? b : a);
    vstore(to.im + v * to.step, back ? a : b);
  }
}

/* ---- several rows, each in a lane ---------------------------------------------------------------------------------------------- */

static float *fl_fft_transform_lanes(const fl_fft *p, float *x, float *y) {
  const int64_t b = p->first.n, a = p->second.n, wide = fl_fft_up(a);
  float *z = fl_fft_part_run(&p->first, x, y, a), *to = z == x ? y : x;
  if (a == 1)
    return z;
  for (int64_t k = 0; k < b; k++)
    for (int64_t c = 0; c < a; c++) {
      const fl_vc v = fl_vc_load(z + (k * a + c) * 2 * VW);
      const vf wr = vset(p->middle[k * wide + c]), wi = vset(p->middle[(b + k) * wide + c]);
      fl_vc_store(to + (c * b + k) * 2 * VW, fl_vc_mul(v, wr, wi));
    }
  return fl_fft_part_run(&p->second, to, z, b);
}

static float *fl_fft_lanes_run(const fl_fft *p, float *x, float *y) {
  if (p->chirp == NULL)
    return fl_fft_transform_lanes(p, x, y);
  const int64_t a = p->second.n, all = a * a, wide = fl_fft_up(a), apart = fl_fft_up(p->n);
  fl_fft_multiply(1, fl_fft_lanes(x), fl_fft_lanes(x), p->chirp, apart, p->n, 0, 0);
  memset(x + p->n * 2 * VW, 0, (size_t)((all - p->n) * 2 * VW) * 4);
  float *z = fl_fft_transform_lanes(p, x, y);
  for (int64_t k = 0; k < a; k++) {
    fl_fft_view row = fl_fft_lanes(z + k * a * 2 * VW);
    fl_fft_multiply(1, row, row, p->filter + k * wide, a * wide, a, 0, 1);
  }
  z = fl_fft_transform_lanes(p, z, z == x ? y : x);
  fl_fft_multiply(1, fl_fft_lanes(z), fl_fft_lanes(z), p->chirp, apart, p->n, 1, 0);
  return z;
}

/* [rows][cols] as [cols][rows], both in whole blocks of a register transpose */
FL_INLINE void fl_fft_transpose(const float *x, int64_t ldx, float *y, int64_t ldy, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; i += VT)
    for (int64_t j = 0; j < cols; j += VT)
      vtranspose(x + i * ldx + j, ldx, y + j * ldy + i, ldy);
}

static void fl_fft_several(const fl_fft *p, int64_t first, int64_t rows, float *x, float *y, float *lines) {
  const int unfold = p->op == FL_IRFFT && p->pairs, fold = p->pairs && !unfold;
  const int64_t n = p->n, apart = fl_fft_up(n + 1), in = fl_fft_up(2 * (n + unfold)), out = fl_fft_up(2 * (n + fold));
  for (int64_t r = 0; r < rows; r++)
    fl_fft_stage(p, first + r, lines + r * in, in);
  memset(lines + rows * in, 0, (size_t)((VW - rows) * in) * 4);
  fl_fft_transpose(lines, in, x, VW, VW, in);
  if (unfold) {
    fl_fft_fold(1, fl_fft_lanes(x), fl_fft_lanes(y), p->fold, apart, n, 1);
    float *t = x;
    x = y, y = t;
  }
  float *z = fl_fft_lanes_run(p, x, y);
  if (fold) {
    float *to = z == x ? y : x;
    memcpy(z + n * 2 * VW, z, 2 * VW * 4);
    fl_fft_fold(1, fl_fft_lanes(z), fl_fft_lanes(to), p->fold, apart, n, 0);
    z = to;
  }
  fl_fft_transpose(z, VW, lines, out, out, VW);
  for (int64_t r = 0; r < rows; r++)
    fl_fft_give(p, lines + r * out, p->out + (first + r) * p->writes);
}

/* ---- one row, in columns ------------------------------------------------------------------------------------------------------- */

/* [b][blocks of a] to [a][blocks of b]. */
static float *fl_fft_transform_one(const fl_fft *p, float *x, float *y) {
  const int64_t b = p->first.n, a = p->second.n, wide = fl_fft_up(a), ca = fl_fft_blocks(a), cb = fl_fft_blocks(b);
  float *z = fl_fft_part_run(&p->first, x, y, ca), *to = z == x ? y : x;
  for (int64_t k = 0; k < b; k++)
    for (int64_t c = 0; c < ca; c++) {
      float *at = z + (k * ca + c) * 2 * VW;
      const vf wr = vload(p->middle + k * wide + c * VW), wi = vload(p->middle + (b + k) * wide + c * VW);
      fl_vc_store(at, fl_vc_mul(fl_vc_load(at), wr, wi));
    }
  for (int64_t k = 0; k < b; k += VT)
    for (int64_t c = 0; c < a; c += VT) {
      const float *from = z + (k * ca + c / VW) * 2 * VW + c % VW;
      float *at = to + (c * cb + k / VW) * 2 * VW + k % VW;
      vtranspose(from, ca * 2 * VW, at, cb * 2 * VW);
      vtranspose(from + VW, ca * 2 * VW, at + VW, cb * 2 * VW);
    }
  return fl_fft_part_run(&p->second, to, z, cb);
}

/* From the planes `line` and back. */
static void fl_fft_one_run(const fl_fft *p, float *x, float *y, float *line) {
  const int64_t b = p->first.n, a = p->second.n, ca = fl_fft_blocks(a), cb = fl_fft_blocks(b), apart = fl_fft_up(p->n);
  const fl_fft_view row = fl_fft_planes(p, line);
  if (p->chirp != NULL) {
    fl_fft_multiply(0, row, row, p->chirp, apart, p->n, 0, 0);
    for (int64_t i = p->n; i < a * a; i++)
      row.re[i] = row.im[i] = 0;
  }
  for (int64_t k = 0; k < b; k++)
    for (int64_t c = 0; c < ca; c++) {
      vstore(x + (k * ca + c) * 2 * VW, vload(row.re + k * a + c * VW));
      vstore(x + (k * ca + c) * 2 * VW + VW, vload(row.im + k * a + c * VW));
    }
  float *z = fl_fft_transform_one(p, x, y);
  if (p->chirp != NULL) {
    const int64_t wide = fl_fft_up(a);
    for (int64_t k = 0; k < a; k++) {
      fl_fft_view blocks = fl_fft_lanes(z + k * ca * 2 * VW);
      fl_fft_multiply(0, blocks, blocks, p->filter + k * wide, a * wide, a, 0, 1);
    }
    z = fl_fft_transform_one(p, z, z == x ? y : x);
  }
  for (int64_t k = 0; k < a; k++)
    for (int64_t c = 0; c < cb; c++) {
      vstore(row.re + k * b + c * VW, vload(z + (k * cb + c) * 2 * VW));
      vstore(row.im + k * b + c * VW, vload(z + (k * cb + c) * 2 * VW + VW));
    }
  if (p->chirp != NULL)
    fl_fft_multiply(0, row, row, p->chirp, apart, p->n, 1, 0);
}

static void fl_fft_alone(const fl_fft *p, int64_t number, float *x, float *y, float *line) {
  const int unfold = p->op == FL_IRFFT && p->pairs, fold = p->pairs && !unfold;
  const int64_t n = p->n, apart = fl_fft_up(n + 1), in = fl_fft_up(2 * (n + unfold)) / 2, out = fl_fft_up(2 * (n + fold)) / 2;
  fl_fft_view row = fl_fft_planes(p, unfold ? y : line);
  fl_fft_stage(p, number, x, 2 * in);
  for (int64_t j = 0; j < in; j++)
    row.re[j] = x[2 * j], row.im[j] = x[2 * j + 1];
  if (unfold)
    fl_fft_fold(0, row, fl_fft_planes(p, line), p->fold, apart, n, 1);
  fl_fft_one_run(p, x, y, line);
  row = fl_fft_planes(p, line);
  if (fold) {
    row.re[n] = row.re[0], row.im[n] = row.im[0];
    fl_fft_fold(0, row, fl_fft_planes(p, x), p->fold, apart, n, 0);
    row = fl_fft_planes(p, x);
  }
  for (int64_t j = 0; j < out; j++)
    y[2 * j] = row.re[j], y[2 * j + 1] = row.im[j];
  fl_fft_give(p, y, p->out + number * p->writes);
}

/* Frames first .. last - 1; scratch has three buffers of `room` floats. */
static void fl_f32_fft(const fl_fft *p, int64_t first, int64_t last, float *scratch) {
  float *x = scratch, *y = x + p->room, *line = y + p->room;
  while (first < last) {
    const int64_t rows = last - first < VW ? last - first : VW;
    if (p->second.n == 1 || (p->n <= p->lanes && 2 * rows > VW))
      fl_fft_several(p, first, rows, x, y, line);
    else
      for (int64_t r = 0; r < rows; r++)
        fl_fft_alone(p, first + r, x, y, line);
    first += rows;
  }
}
