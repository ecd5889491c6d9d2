/* Bins: the mean or the largest number of boxes of an image that are anywhere, see fl_bins in kernels.h.
 *
 * As in pooling.h the rows of a bin are folded into a line along whole vectors, then the line's columns, which are as many values
 * one by one (channels first), or vectors of channels (last). The maximum of bins with NaN is NaN. Remainders: partial vectors. */

FL_INLINE vf fl_bins_two(vf a, vf b, const int average) { return average ? a + b : vmaxn(b, a); }

/* The line of n values under a box of rows: where they are if it is one row, else in p->line. */
FL_INLINE const float *fl_bins_line(const fl_bins *p, const float *x, int64_t z0, int64_t z1, int64_t y0, int64_t y1,
                                    const int average) {
  const int64_t n = p->cols * p->c;
  if (z1 - z0 == 1 && y1 - y0 == 1)
    return x + z0 * p->plane + y0 * p->row;
  for (int64_t i = 0; i < n; i += VW) {
    const int64_t part = n - i < VW ? n - i : 0;
    vf acc = vset(0);
    int first = 1;
    for (int64_t z = z0; z < z1; z++)
      for (int64_t y = y0; y < y1; y++) {
        const float *from = x + z * p->plane + y * p->row + i;
        const vf v = part ? vget_part(from, part, 0) : vload(from);
        acc = first ? v : fl_bins_two(acc, v, average);
        first = 0;
      }
    if (part)
      vput_part(p->line + i, acc, part);
    else
      vstore(p->line + i, acc);
  }
  return p->line;
}

/* One bin of a line, columns x0 .. x1, for all channels. */
FL_INLINE void fl_bins_one(const float *line, int64_t x0, int64_t x1, int64_t c, float scale, float *out, const int average) {
  if (c == 1) {
    int64_t i = x0 + 1;
    float acc = line[x0];
    if (x1 - x0 >= 4 * VW) { /* two chains of vectors, then what is left */
      vf a = vload(line + x0), b = vload(line + x0 + VW);
      for (i = x0 + 2 * VW; i + 2 * VW <= x1; i += 2 * VW) {
        a = fl_bins_two(a, vload(line + i), average);
        b = fl_bins_two(b, vload(line + i + VW), average);
      }
      a = fl_bins_two(a, b, average);
      if (average) {
        FL_FOLD(a, fl_add);
      } else {
        FL_FOLD(a, vmaxn);
      }
      acc = a[0];
    }
    for (; i < x1; i++)
      acc = average ? acc + line[i] : line[i] > acc || line[i] != line[i] ? line[i] : acc;
    *out = average ? acc * scale : acc;
    return;
  }
  for (int64_t j = 0; j < c; j += VW) {
    const int64_t part = c - j < VW ? c - j : 0;
    const float *from = line + x0 * c + j;
    vf acc = part ? vget_part(from, part, 0) : vload(from);
    for (int64_t i = x0 + 1; i < x1; i++) {
      from += c;
      acc = fl_bins_two(acc, part ? vget_part(from, part, 0) : vload(from), average);
    }
    if (average)
      acc *= vset(scale);
    if (part)
      vput_part(out + j, acc, part);
    else
      vstore(out + j, acc);
  }
}

FL_INLINE void fl_bins_rows(const fl_bins *p, const float *x, float *out, int64_t first, int64_t last, const int average) {
  for (int64_t r = first; r < last; r++, out += p->nx * p->c) {
    const int64_t *z = p->z + r / p->ny * 2, *y = p->y + r % p->ny * 2;
    const int64_t rows = (z[1] - z[0]) * (y[1] - y[0]);
    const float *line = rows > 0 ? fl_bins_line(p, x, z[0], z[1], y[0], y[1], average) : x;
    for (int64_t o = 0; o < p->nx; o++) {
      const int64_t x0 = p->x[2 * o], x1 = p->x[2 * o + 1];
      if (rows > 0 && x1 > x0)
        fl_bins_one(line, x0, x1, p->c, 1 / (float)(rows * (x1 - x0)), out + o * p->c, average);
      else
        memset(out + o * p->c, 0, sizeof(float) * (size_t)p->c);
    }
  }
}

static void fl_f32_bins(const fl_bins *p, const float *x, float *out, int64_t first, int64_t last) {
  if (p->average)
    fl_bins_rows(p, x, out, first, last, 1);
  else
    fl_bins_rows(p, x, out, first, last, 0);
}
