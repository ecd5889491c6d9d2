/* Transforms of Winograd convolution, F(m, k) along one axis or F(m x m, k x k) along two: of n = m + k - 1 inputs an axis become as many
 * values, which the packed product multiplies with the weights' n, position by position; its sums become m outputs an axis.
 *
 * What is made of inputs depends on n alone, what is made of sums on n and m. Both work on whole vectors of channels: data is
 * channels-last; with two axes they do one and then the other. They evaluate polynomials at the points 0, infinity and
 *   n = 4: 1, -1        n = 6: a, -a, b, -b with a = 2/3, b = 3/2        n = 8: 1/2, -1/2, 1, -1, 2, -2.
 * Those of n = 6 keep sums four times nearer to the right ones than the usual 1 and 2; the product of the squares of all points is 1, so
 * few constants do. n = 8 magnifies errors more: along two axes it is for 5 and 7 taps alone, which gain the most. What could be a factor of a transform's row is one of
 * the weights' transform instead (kernels/winograd_points.py).
 *
 * With a stride of 2 and 3 taps, 4 outputs of 9 inputs along an axis: 2 taps on the even inputs, evaluated at 0, 1/2, -1, 2 and infinity,
 * and one on the four odd ones, which stay as they are. */

#define FL_WINO_A (2.0f / 3)
#define FL_WINO_B (3.0f / 2)
#define FL_WINO_MOST 9
#define FL_WINO_EVEN 5 /* values of the even inputs with a stride of 2 */

/* One axis of the inputs. */
FL_INLINE void fl_wino_in4(const vf *d, vf *o) {
  o[0] = d[0] - d[2];
  o[1] = d[1] + d[2];
  o[2] = d[2] - d[1];
  o[3] = d[3] - d[1];
}

FL_INLINE void fl_wino_in6(const vf *d, vf *o) {
  const vf a = vset(FL_WINO_A), b = vset(FL_WINO_B), aa = vset(-FL_WINO_A * FL_WINO_A), bb = vset(-FL_WINO_B * FL_WINO_B);
  const vf both = vset(-97.0f / 36); /* -(aa + bb) */
  const vf p = vfma(bb, d[2], d[4]), q = vfma(bb, d[1], d[3]), r = vfma(aa, d[2], d[4]), s = vfma(aa, d[1], d[3]);
  o[0] = vfma(both, d[2], d[0] + d[4]);
  o[1] = vfma(a, q, p);
  o[2] = vfma(-a, q, p);
  o[3] = vfma(b, s, r);
  o[4] = vfma(-b, s, r);
  o[5] = vfma(both, d[3], d[1] + d[5]);
}

/* The two rows of the points p and -p: (x + p) and (x - p) times x (x^2 - q^2) (x^2 - r^2), q and r being the others. */
FL_INLINE void fl_wino_in8_pair(const vf *d, float p, float qq, float rr, vf *o) {
  const vf sum = vset(-(qq + rr)), both = vset(qq * rr), at = vset(p);
  const vf even = vfma(sum, d[4], vfma(both, d[2], d[6])), odd = vfma(sum, d[3], vfma(both, d[1], d[5]));
  o[0] = vfma(at, odd, even);
  o[1] = vfma(-at, odd, even);
}

FL_INLINE void fl_wino_in8(const vf *d, vf *o) {
  const vf all = vset(21.0f / 4); /* the sum of the squares, and of their products */
  o[0] = vfma(all, d[4] - d[2], d[0] - d[6]);
  fl_wino_in8_pair(d, 0.5f, 1, 4, o + 1);
  fl_wino_in8_pair(d, 1, 0.25f, 4, o + 3);
  fl_wino_in8_pair(d, 2, 0.25f, 1, o + 5);
  o[7] = vfma(all, d[3] - d[5], d[7] - d[1]);
}

/* The even inputs with a stride of 2. */
FL_INLINE void fl_wino_in_even(const vf *d, vf *o) {
  const vf a = vset(-1.5f), half = vset(0.5f);
  o[0] = vfma(a, d[1] + d[2], d[0] + d[3]);
  o[1] = vfma(vset(-2), d[1], d[3] - d[2]);
  o[2] = vfma(vset(-2.5f), d[2], d[1] + d[3]);
  o[3] = vfma(half, d[2] - d[1], d[3]);
  o[4] = vfma(a, d[2] + d[3], d[1] + d[4]);
}

FL_INLINE void fl_wino_in9(const vf *d, vf *o) {
  const vf even[FL_WINO_EVEN] = {d[0], d[2], d[4], d[6], d[8]};
  fl_wino_in_even(even, o);
  FL_UNROLL for (int i = 0; i < 4; i++) o[FL_WINO_EVEN + i] = d[2 * i + 1];
}

/* One axis of the sums. */
FL_INLINE void fl_wino_out4(const vf *s, vf *y) {
  y[0] = s[0] + (s[1] + s[2]);
  y[1] = (s[1] - s[2]) + s[3];
}

FL_INLINE void fl_wino_out6(int m, const vf *s, vf *y) {
  const vf a = vset(FL_WINO_A), b = vset(FL_WINO_B), aa = vset(FL_WINO_A * FL_WINO_A), bb = vset(FL_WINO_B * FL_WINO_B);
  const vf p = s[1] + s[2], q = s[1] - s[2], r = s[3] + s[4], t = s[3] - s[4];
  y[0] = vfma(b, p, vfma(a, r, s[0]));
  y[1] = m == 2 ? (q + t) + s[5] : q + t;
  if (m == 2)
    return;
  y[2] = vfma(a, p, b * r);
  y[3] = vfma(aa, q, vfma(bb, t, s[5]));
}

FL_INLINE void fl_wino_out8(int m, const vf *s, vf *y) {
  const vf half = vset(0.5f), two = vset(2);
  const vf p = s[1] + s[2], q = s[1] - s[2], r = s[3] + s[4], t = s[3] - s[4], u = s[5] + s[6], v = s[5] - s[6];
  y[0] = vfma(two, p, vfma(half, u, s[0] + r));
  y[1] = m == 2 ? ((q + v) + t) + s[7] : (q + v) + t;
  if (m == 2)
    return;
  y[2] = vfma(half, p, vfma(two, u, r));
  y[3] = vfma(vset(0.25f), q, vfma(vset(4), v, m == 4 ? t + s[7] : t));
  if (m == 4)
    return;
  y[4] = vfma(vset(0.125f), p, vfma(vset(8), u, r));
  y[5] = vfma(vset(0.0625f), q, vfma(vset(16), v, t + s[7]));
}

FL_INLINE void fl_wino_out9(const vf *s, vf *y) {
  const vf half = vset(0.5f), two = vset(2);
  y[0] = (s[0] + s[5]) + (s[1] + s[2] + s[3]);
  y[1] = vfma(half, s[1], vfma(two, s[3], s[6] - s[2]));
  y[2] = vfma(vset(0.25f), s[1], vfma(vset(4), s[3], s[7] + s[2]));
  y[3] = vfma(vset(0.125f), s[1], vfma(vset(8), s[3], s[8] - s[2])) + s[4];
}

FL_INLINE void fl_wino_in_axis(int n, const vf *d, vf *o) {
  if (n == 4)
    fl_wino_in4(d, o);
  else if (n == 6)
    fl_wino_in6(d, o);
  else
    fl_wino_in8(d, o);
}

FL_INLINE void fl_wino_out_axis(int n, int m, const vf *s, vf *y) {
  if (n == 4)
    fl_wino_out4(s, y);
  else if (n == 6)
    fl_wino_out6(m, s, y);
  else if (n == 8)
    fl_wino_out8(m, s, y);
  else
    fl_wino_out9(s, y);
}

/* What follows an output's transform. `left` < VW channels if it is not a whole vector, else 0. */
typedef struct {
  const float *residual;
  float *out;
  vf bias;
  int biased, relu;
  int64_t left;
} fl_wino_end;

FL_INLINE fl_wino_end fl_wino_end_of(const fl_wino_out *p, int64_t at, int64_t c, int64_t left) {
  fl_wino_end e;
  e.bias = p->bias ? vload(p->bias + c) : vset(0);
  e.residual = p->residual ? p->residual + at + c : 0;
  e.out = p->out + at + c;
  e.biased = p->bias != 0;
  e.relu = p->code == FL_RELU;
  e.left = left;
  return e;
}

FL_INLINE int64_t fl_wino_left(const fl_wino_out *p, int64_t c) { return c + VW > p->c ? p->c - c : 0; }

FL_INLINE void fl_wino_put(const fl_wino_end *e, vf y, int64_t to) {
  vf r = e->biased ? y + e->bias : y;
  if (e->residual)
    r += e->left ? vget_part(e->residual + to, e->left, 0) : vload(e->residual + to);
  if (e->relu) /* the bound first, so that NaN passes through */
    r = vmax(vset(0), r);
  if (e->left)
    vput_part(e->out + to, r, e->left);
  else
    vstore(e->out + to, r);
}

/* `count` outputs next to each other: one function, where inlining it everywhere gains nothing. */
static __attribute__((noinline)) void fl_wino_put_all(const fl_wino_end *e, const vf *y, int64_t count, int64_t to, int64_t step) {
  for (int64_t i = 0; i < count; i++)
    fl_wino_put(e, y[i], to + i * step);
}

/* ---- one axis ----------------------------------------------------------------------------------------------------------- */

/* `step` floats are between pixels along the axis, `next` between tiles. */
FL_INLINE void fl_wino_in_line(const fl_wino_in *p, int n, int64_t next) {
  const float *at[FL_WINO_MOST];
  for (int i = 0; i < n; i++) at[i] = p->side[0] > 1 ? p->rows[i] : p->rows[0] + i * FL_PANEL;
  const int64_t tiles = p->tiles, tile = p->tile, point = p->point;
  for (int64_t t = 0; t < tiles; t++)
    for (int c = 0; c < FL_PANEL; c += VW) {
      vf d[FL_WINO_MOST], o[FL_WINO_MOST];
      FL_UNROLL for (int i = 0; i < n; i++) d[i] = vload(at[i] + t * next + c);
      fl_wino_in_axis(n, d, o);
      FL_UNROLL for (int i = 0; i < n; i++) vstore(p->v + t * tile + i * point + c, o[i]);
    }
}

/* One vector of channels of one tile, of which the first `count` outputs are wanted. */
FL_INLINE void fl_wino_out_line_vector(const fl_wino_out *p, int n, int m, const float *s, int64_t at, int64_t step, int64_t count,
                                       int64_t c, int64_t left) {
  const fl_wino_end e = fl_wino_end_of(p, at, c, left);
  vf d[FL_WINO_MOST], y[FL_WINO_MOST];
  FL_UNROLL for (int i = 0; i < n; i++) d[i] = vload(s + i * p->point + c);
  fl_wino_out_axis(n, m, d, y);
  fl_wino_put_all(&e, y, count < m ? count : m, 0, step);
}

FL_INLINE void fl_wino_out_line(const fl_wino_out *p, int n, int m) {
  const int down = p->m[0] > 1;
  const int64_t step = down ? p->row : p->pixel, next = down ? p->pixel : m * p->pixel;
  for (int64_t t = 0; t < p->tiles; t++) {
    const float *s = p->s + t * p->tile;
    const int64_t count = down ? p->rows : p->cols - t * m;
    for (int64_t c = 0; c < p->c; c += VW)
      fl_wino_out_line_vector(p, n, m, s, t * next, step, count, c, fl_wino_left(p, c));
  }
}

/* ---- two axes -----------------------------------------------------------------------------------------------------------
 * Both go in groups of rows or columns whose sums share terms: what is between the axes then stays in registers, and what is loaded
 * twice costs less than storing that would. */

/* One vector of channels of one tile. */
FL_INLINE void fl_wino_in_vector(int n, const float *const *rows, int64_t at, float *v, int64_t point) {
  FL_UNROLL for (int g = 0; g <= n / 2; g++) { /* columns 0; 1, 2; 3, 4; 5 */
    const int j0 = g ? 2 * g - 1 : 0, j1 = 2 * g < n - 1 ? 2 * g : n - 1;
    vf d[6], o[6], half[2][6];
    FL_UNROLL for (int i = 0; i < n; i++) {
      FL_UNROLL for (int j = 0; j < n; j++) d[j] = vload(rows[i] + at + j * FL_PANEL);
      fl_wino_in_axis(n, d, o);
      half[0][i] = o[j0];
      half[1][i] = o[j1];
    }
    FL_UNROLL for (int j = j0; j <= j1; j++) {
      fl_wino_in_axis(n, half[j - j0], o);
      FL_UNROLL for (int i = 0; i < n; i++) vstore(v + (i * n + j) * point, o[i]);
    }
  }
}

FL_INLINE void fl_wino_in_tiles(const fl_wino_in *p, int n) {
  const float *rows[6];
  memcpy(rows, p->rows, (size_t)n * sizeof *rows);
  const int64_t tiles = p->tiles, tile = p->tile, point = p->point, next = p->m[1] * FL_PANEL;
  float *v = p->v;
  for (int64_t t = 0; t < tiles; t++)
    for (int c = 0; c < FL_PANEL; c += VW) fl_wino_in_vector(n, rows, t * next + c, v + t * tile + c, point);
}

/* A stride of 2: rows, and then columns; what is between them is in the nearest cache, so that loops stay short. */
static __attribute__((noinline)) void fl_wino_in_strided(const fl_wino_in *p) {
  const int64_t point = p->point;
  for (int64_t t = 0; t < p->tiles; t++)
    for (int c = 0; c < FL_PANEL; c += VW) {
      float *v = p->v + t * p->tile + c;
      vf half[FL_WINO_EVEN][FL_WINO_MOST], d[FL_WINO_MOST], o[FL_WINO_MOST];
      for (int i = 0; i < FL_WINO_MOST; i++) {
        const float *x = p->rows[i] + t * p->m[1] * FL_PANEL + c;
        FL_UNROLL for (int j = 0; j < FL_WINO_MOST; j++) d[j] = vload(x + j * FL_PANEL);
        fl_wino_in9(d, o);
        if (i % 2)
          FL_UNROLL for (int j = 0; j < FL_WINO_MOST; j++) vstore(v + ((FL_WINO_EVEN + i / 2) * FL_WINO_MOST + j) * point, o[j]);
        else
          FL_UNROLL for (int j = 0; j < FL_WINO_MOST; j++) half[i / 2][j] = o[j];
      }
      for (int j = 0; j < FL_WINO_MOST; j++) {
        FL_UNROLL for (int i = 0; i < FL_WINO_EVEN; i++) d[i] = half[i][j];
        fl_wino_in_even(d, o);
        FL_UNROLL for (int i = 0; i < FL_WINO_EVEN; i++) vstore(v + (i * FL_WINO_MOST + j) * point, o[i]);
      }
    }
}

/* Eight positions along both axes, in the same way. */
static __attribute__((noinline)) void fl_wino_in_eight(const fl_wino_in *p) {
  enum { N = 8 };
  const int64_t point = p->point;
  for (int64_t t = 0; t < p->tiles; t++)
    for (int c = 0; c < FL_PANEL; c += VW) {
      float *v = p->v + t * p->tile + c;
      vf half[N][N], d[N], o[N];
      for (int i = 0; i < N; i++) {
        const float *x = p->rows[i] + t * p->m[1] * FL_PANEL + c;
        FL_UNROLL for (int j = 0; j < N; j++) d[j] = vload(x + j * FL_PANEL);
        fl_wino_in8(d, half[i]);
      }
      for (int j = 0; j < N; j++) {
        FL_UNROLL for (int i = 0; i < N; i++) d[i] = half[i][j];
        fl_wino_in8(d, o);
        FL_UNROLL for (int i = 0; i < N; i++) vstore(v + (i * N + j) * point, o[i]);
      }
    }
}

static void fl_f32_winograd_in(const fl_wino_in *p) {
  const int n = p->side[0] > 1 ? p->side[0] : p->side[1];
  const int64_t next = p->m[1] * FL_PANEL;
  if (n == FL_WINO_MOST)
    fl_wino_in_strided(p);
  else if (p->side[0] > 1 && p->side[1] > 1) {
    if (n == 4)
      fl_wino_in_tiles(p, 4);
    else if (n == 6)
      fl_wino_in_tiles(p, 6);
    else
      fl_wino_in_eight(p);
  } else if (n == 4)
    fl_wino_in_line(p, 4, next);
  else if (n == 6)
    fl_wino_in_line(p, 6, next);
  else
    fl_wino_in_line(p, 8, next);
}

/* One vector of channels of one tile, whose first rows x cols outputs are wanted. */
FL_INLINE void fl_wino_out_vector(const fl_wino_out *p, int n, int m, const float *s, int64_t at, int64_t rows, int64_t cols, int64_t c,
                                  int64_t left) {
  const int64_t point = p->point, row = p->row, pixel = p->pixel;
  const fl_wino_end e = fl_wino_end_of(p, at, c, left);
  FL_UNROLL for (int g = 0; g < 2; g++) { /* rows 0, 2; 1, 3 */
    vf d[6], y[4], half[2][6];
    FL_UNROLL for (int j = 0; j < n; j++) {
      FL_UNROLL for (int i = 0; i < n; i++) d[i] = vload(s + (i * n + j) * point + c);
      fl_wino_out_axis(n, m, d, y);
      half[0][j] = y[g];
      half[1][j] = y[m == 4 ? g + 2 : g];
    }
    FL_UNROLL for (int i = g; i < m; i += 2) {
      if (i >= rows)
        break;
      fl_wino_out_axis(n, m, half[i / 2], y);
      FL_UNROLL for (int j = 0; j < m; j++) {
        if (j >= cols)
          break;
        fl_wino_put(&e, y[j], i * row + j * pixel);
      }
    }
  }
}

FL_INLINE void fl_wino_out_tiles(const fl_wino_out *p, int n, int m) {
  for (int64_t t = 0; t < p->tiles; t++) {
    const float *s = p->s + t * p->tile;
    const int64_t at = t * m * p->pixel, cols = p->cols - t * m;
    for (int64_t c = 0; c < p->c; c += VW)
      fl_wino_out_vector(p, n, m, s, at, p->rows, cols, c, fl_wino_left(p, c));
  }
}

/* One vector of channels of one tile with more positions than registers: columns, and then rows. */
FL_INLINE void fl_wino_out_large_vector(const fl_wino_out *p, int n, int m, const float *s, int64_t at, int64_t rows, int64_t cols,
                                        int64_t c, int64_t left) {
  const int64_t point = p->point;
  const fl_wino_end e = fl_wino_end_of(p, at, c, left);
  vf d[FL_WINO_MOST], y[4], half[4][FL_WINO_MOST];
  for (int j = 0; j < n; j++) {
    FL_UNROLL for (int i = 0; i < n; i++) d[i] = vload(s + (i * n + j) * point + c);
    fl_wino_out_axis(n, m, d, y);
    FL_UNROLL for (int i = 0; i < m; i++) half[i][j] = y[i];
  }
  for (int i = 0; i < m && i < rows; i++) {
    fl_wino_out_axis(n, m, half[i], y);
    fl_wino_put_all(&e, y, cols < m ? cols : m, i * p->row, p->pixel);
  }
}

FL_INLINE void fl_wino_out_large(const fl_wino_out *p, int n, int m) {
  for (int64_t t = 0; t < p->tiles; t++) {
    const float *s = p->s + t * p->tile;
    const int64_t at = t * m * p->pixel, cols = p->cols - t * m;
    for (int64_t c = 0; c < p->c; c += VW)
      fl_wino_out_large_vector(p, n, m, s, at, p->rows, cols, c, fl_wino_left(p, c));
  }
}

static void fl_f32_winograd_out(const fl_wino_out *p) {
  const int m = p->m[0] > 1 ? p->m[0] : p->m[1], n = p->side[0] > 1 ? p->side[0] : p->side[1];
  if (p->side[0] > 1 && p->side[1] > 1) {
    if (n == FL_WINO_MOST)
      fl_wino_out_large(p, FL_WINO_MOST, 4);
    else if (n == 8 && m == 4)
      fl_wino_out_large(p, 8, 4);
    else if (n == 8)
      fl_wino_out_large(p, 8, 2);
    else if (n == 4)
      fl_wino_out_tiles(p, 4, 2);
    else if (m == 4)
      fl_wino_out_tiles(p, 6, 4);
    else
      fl_wino_out_tiles(p, 6, 2);
  } else if (n == 4)
    fl_wino_out_line(p, 4, 2);
  else if (n == 6 && m == 4)
    fl_wino_out_line(p, 6, 4);
  else if (n == 6)
    fl_wino_out_line(p, 6, 2);
  else if (m == 6)
    fl_wino_out_line(p, 8, 6);
  else if (m == 4)
    fl_wino_out_line(p, 8, 4);
  else
    fl_wino_out_line(p, 8, 2);
  if (p->code <= FL_RELU)
    return;
  const int64_t together = p->pixel == p->c ? p->cols : 1; /* pixels that are next to each other */
  for (int64_t i = 0; i < p->rows; i++)
    for (int64_t j = 0; j < p->cols; j += together) {
      float *y = p->out + i * p->row + j * p->pixel;
      fl_f32_unary(p->code, p->a, p->b, y, y, together * p->c);
    }
}
