/* Transforms of Winograd convolution, F(m x m, 3 x 3) for m = 2 and 4: a tile of n x n inputs, n = m + 2, becomes n x n numbers, which the
 * packed product multiplies with the weights' n x n, position by position; its sums become m x m outputs.
 *
 * Both transforms are one of an axis applied to the columns and then to the rows of a tile, on whole vectors of channels: data is
 * channels-last. They evaluate polynomials at the points 0, 1, -1 and infinity (m = 2), or 0, a, -a, b, -b and infinity (m = 4) with a =
 * 2/3 and b = 3/2: those keep sums four times nearer to the right ones than the usual 1 and 2, and since ab = 1 few constants do. What
 * could be a factor of a transform's row is one of the weights' transform instead (winograd.pyx). */

#define FL_WINO_A (2.0f / 3)
#define FL_WINO_B (3.0f / 2)

/* One axis of the inputs. */
FL_INLINE void fl_wino_in2(const vf *d, vf *o) {
  o[0] = d[0] - d[2];
  o[1] = d[1] + d[2];
  o[2] = d[2] - d[1];
  o[3] = d[3] - d[1];
}

FL_INLINE void fl_wino_in4(const vf *d, vf *o) {
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

/* One axis of the sums. */
FL_INLINE void fl_wino_out2(const vf *s, vf *y) {
  y[0] = s[0] + (s[1] + s[2]);
  y[1] = (s[1] - s[2]) + s[3];
}

FL_INLINE void fl_wino_out4(const vf *s, vf *y) {
  const vf a = vset(FL_WINO_A), b = vset(FL_WINO_B), aa = vset(FL_WINO_A * FL_WINO_A), bb = vset(FL_WINO_B * FL_WINO_B);
  const vf p = s[1] + s[2], q = s[1] - s[2], r = s[3] + s[4], t = s[3] - s[4];
  y[0] = vfma(b, p, vfma(a, r, s[0]));
  y[1] = q + t;
  y[2] = vfma(a, p, b * r);
  y[3] = vfma(aa, q, vfma(bb, t, s[5]));
}

FL_INLINE void fl_wino_in_axis(int m, const vf *d, vf *o) {
  if (m == 2)
    fl_wino_in2(d, o);
  else
    fl_wino_in4(d, o);
}

FL_INLINE void fl_wino_out_axis(int m, const vf *s, vf *y) {
  if (m == 2)
    fl_wino_out2(s, y);
  else
    fl_wino_out4(s, y);
}

/* Both axes go in groups of rows or columns whose sums share terms: what is between the axes then stays in registers, and what is loaded
 * twice costs less than storing that would. */

/* One vector of channels of one tile. */
FL_INLINE void fl_wino_in_vector(int m, const float *const *rows, int64_t at, float *v, int64_t point) {
  const int n = m + 2;
  FL_UNROLL for (int g = 0; g <= n / 2; g++) { /* columns 0; 1, 2; 3, 4; 5 */
    const int j0 = g ? 2 * g - 1 : 0, j1 = 2 * g < n - 1 ? 2 * g : n - 1;
    vf d[6], o[6], half[2][6];
    FL_UNROLL for (int i = 0; i < n; i++) {
      FL_UNROLL for (int j = 0; j < n; j++) d[j] = vload(rows[i] + at + j * FL_PANEL);
      fl_wino_in_axis(m, d, o);
      half[0][i] = o[j0];
      half[1][i] = o[j1];
    }
    FL_UNROLL for (int j = j0; j <= j1; j++) {
      fl_wino_in_axis(m, half[j - j0], o);
      FL_UNROLL for (int i = 0; i < n; i++) vstore(v + (i * n + j) * point, o[i]);
    }
  }
}

FL_INLINE void fl_wino_in_tiles(const fl_wino_in *p, int m) {
  const float *rows[6];
  memcpy(rows, p->rows, (size_t)(m + 2) * sizeof *rows);
  const int64_t tiles = p->tiles, tile = p->tile, point = p->point;
  float *v = p->v;
  for (int64_t t = 0; t < tiles; t++)
    for (int c = 0; c < FL_PANEL; c += VW)
      fl_wino_in_vector(m, rows, t * m * FL_PANEL + c, v + t * tile + c, point);
}

static void fl_f32_winograd_in(const fl_wino_in *p) {
  if (p->m == 2)
    fl_wino_in_tiles(p, 2);
  else
    fl_wino_in_tiles(p, 4);
}

/* One vector of channels of one tile, whose first rows x cols outputs are wanted; `left` < VW channels if it is not a whole one, else 0. */
FL_INLINE void fl_wino_out_vector(const fl_wino_out *p, int m, const float *s, int64_t at, int64_t rows, int64_t cols, int64_t c,
                                  int64_t left) {
  const int n = m + 2;
  const int64_t point = p->point, row = p->row, pixel = p->pixel;
  const vf bias = p->bias ? vload(p->bias + c) : vset(0);
  const float *residual = p->residual ? p->residual + at + c : 0;
  float *out = p->out + at + c;
  const int biased = p->bias != 0, relu = p->code == FL_RELU;
  FL_UNROLL for (int g = 0; g < 2; g++) { /* rows 0, 2; 1, 3 */
    vf d[6], y[4], half[2][6];
    FL_UNROLL for (int j = 0; j < n; j++) {
      FL_UNROLL for (int i = 0; i < n; i++) d[i] = vload(s + (i * n + j) * point + c);
      fl_wino_out_axis(m, d, y);
      half[0][j] = y[g];
      half[1][j] = y[m == 4 ? g + 2 : g];
    }
    FL_UNROLL for (int i = g; i < m; i += 2) {
      if (i >= rows)
        break;
      fl_wino_out_axis(m, half[i / 2], y);
      FL_UNROLL for (int j = 0; j < m; j++) {
        if (j >= cols)
          break;
        const int64_t to = i * row + j * pixel;
        vf r = biased ? y[j] + bias : y[j];
        if (residual)
          r += left ? vget_part(residual + to, left, 0) : vload(residual + to);
        if (relu) /* the bound first, so that NaN passes through */
          r = vmax(vset(0), r);
        if (left)
          vput_part(out + to, r, left);
        else
          vstore(out + to, r);
      }
    }
  }
}

FL_INLINE void fl_wino_out_tiles(const fl_wino_out *p, int m) {
  for (int64_t t = 0; t < p->tiles; t++) {
    const float *s = p->s + t * p->tile;
    const int64_t at = t * m * p->pixel, cols = p->cols - t * m;
    int64_t c = 0;
    for (; c + VW <= p->c; c += VW)
      fl_wino_out_vector(p, m, s, at, p->rows, cols, c, 0);
    if (c < p->c)
      fl_wino_out_vector(p, m, s, at, p->rows, cols, c, p->c - c);
  }
}

static void fl_f32_winograd_out(const fl_wino_out *p) {
  if (p->m == 2)
    fl_wino_out_tiles(p, 2);
  else
    fl_wino_out_tiles(p, 4);
  if (p->code <= FL_RELU)
    return;
  const int64_t together = p->pixel == p->c ? p->cols : 1; /* pixels that are next to each other */
  for (int64_t i = 0; i < p->rows; i++)
    for (int64_t j = 0; j < p->cols; j += together) {
      float *y = p->out + i * p->row + j * p->pixel;
      fl_f32_unary(p->code, p->a, p->b, y, y, together * p->c);
    }
}
