/* Max and average pooling: rows of outputs, see fl_pool in kernels.h for the operands.
 *
 * Two steps, each along whole vectors: the input rows of a window are folded into a line, then the line's columns into outputs.
 * All lines of a call are made before the first one is used, so that no load waits for the stores under it. Both layouts run the same
 * two steps, so an average is one sum over the rows (planes first), and one of these over the columns; chains are broken after FL_KC
 * terms. The maximum of windows with NaN is NaN.
 * Columns: neighbours (step 1) are whole vectors, short rows of them as one row (`masks` take out what belongs to other rows); every
 * second one is shuffled out of two vectors; for other steps all positions are computed and those that count are picked. Long
 * windows, or few of them (`gathered`), are reduced one by one: see reduce.h for the order.
 * Remainders: the last vector starts early; what is shorter than a vector is a partial one. */

#define FL_POOL_FN static __attribute__((noinline)) void

FL_INLINE vf fl_pool_two(vf a, vf b, const int average) { return average ? a + b : vmaxn(b, a); }
/* A sum of nothing but -0 is 0: padding, which is 0, may have been left out or not. */
FL_INLINE vf fl_pool_mean(vf sum, vf scale) { return sum * scale + vset(0); }
FL_INLINE vf fl_pool_three(vf a, vf b, vf c, const int average) { return average ? (a + b) + c : vmaxn3(a, b, c); }

/* A grid of nz x ny positions that are folded into one number, for any number of neighbours. They are numbered from `at` on, `high` to a
 * plane: positions that are left out, in the padding, count where chains are broken. */
typedef struct {
  int64_t nz, ny, step_z, step_y, at, high;
} fl_pool_grid;

FL_INLINE vf fl_pool_get(const float *p, int64_t part) { return part ? vget_part(p, part, 0) : vload(p); }

/* U neighbouring vectors at x from 2 or 3 positions, or from any number if K = 0; part: lanes of the only vector, or 0 for all. */
FL_INLINE void fl_pool_fold(vf *acc, const float *x, const fl_pool_grid *g, int64_t part, const int U, const int K,
                            const int average) {
  if (K) {
    const int64_t step = g->ny == 1 ? g->step_z : g->step_y;
    FL_UNROLL for (int u = 0; u < U; u++) {
      const float *p = x + u * VW;
      const vf a = fl_pool_get(p, part), b = fl_pool_get(p + step, part);
      acc[u] = K == 2 ? fl_pool_two(a, b, average) : fl_pool_three(a, b, fl_pool_get(p + 2 * step, part), average);
    }
    return;
  }
  const int64_t count = g->nz * g->ny;
  vf chain[8];
  FL_UNROLL for (int u = 0; u < U; u++) acc[u] = chain[u] = vset(0);
  for (int64_t t = 0, y = 0, at = g->at; t < count;) {
    const int64_t end = (at / FL_KC + 1) * FL_KC, first = t;
    for (; t < count && at < end; t++, at++) {
      FL_UNROLL for (int u = 0; u < U; u++) {
        const vf v = fl_pool_get(x + u * VW, part);
        chain[u] = t == first ? v : fl_pool_two(chain[u], v, average);
      }
      x += g->step_y;
      if (++y == g->ny) {
        y = 0;
        at += g->high - g->ny;
        x += g->step_z - g->ny * g->step_y;
      }
    }
    FL_UNROLL for (int u = 0; u < U; u++) acc[u] = first ? fl_pool_two(acc[u], chain[u], average) : chain[u];
  }
}

/* n values, each folded from its positions around x, times a factor if there are some, its own if `each`. `slack`: after x may be
 * read. */
FL_INLINE void fl_pool_run(const float *x, const fl_pool_grid *g, float *to, int64_t n, const float *scale, const int each,
                           const int slack, const int K, const int average) {
  enum { U = 4 };
  vf acc[U];
  int64_t i = 0;
  const vf one = vset(average && scale && !each ? *scale : 1);
#define FL_POOL_SCALED(u) (average && scale ? fl_pool_mean(acc[u], each ? vload(scale + i + (u)*VW) : one) : acc[u])
  for (; i + U * VW <= n; i += U * VW) {
    fl_pool_fold(acc, x + i, g, 0, U, K, average);
    FL_UNROLL for (int u = 0; u < U; u++) vstore(to + i + u * VW, FL_POOL_SCALED(u));
  }
  while (i < n) {
    if (n >= VW) {
      i = i < n - VW ? i : n - VW;
      fl_pool_fold(acc, x + i, g, 0, 1, K, average);
      vstore(to + i, FL_POOL_SCALED(0));
    } else {
      fl_pool_fold(acc, x, g, slack ? 0 : n, 1, K, average);
      if (average && scale)
        acc[0] = fl_pool_mean(acc[0], each ? vget_part(scale, n, 0) : one);
      vput_part(to, acc[0], n);
    }
    i += VW;
  }
#undef FL_POOL_SCALED
}

/* ---- rows into lines ------------------------------------------------------------------------------------------------------- */

/* `rows` lines from y on, whose windows hold equally many rows of the image each. */
FL_INLINE void fl_pool_rows(const fl_pool *p, int64_t y, int64_t rows, const int K, const int average) {
  const fl_pool_row *row = p->rows + y;
  const fl_pool_grid g = {row->nz, row->ny, p->step_z, p->step_y, row->at, p->kh};
  const int64_t run = p->run, runs = p->runs, run_step = p->run_step, pitch = p->pitch;
  const float *x = p->x;
  float *line = p->line + y * pitch + p->left;
  if (pitch == run && row[rows - 1].from == row->from + (rows - 1) * run) { /* neighbours are one row */
    fl_pool_run(x + row->from, &g, line, rows * run, 0, 0, 0, K, average);
    return;
  }
  for (; rows--; row++, line += pitch)
    for (int64_t r = 0; r < runs; r++)
      fl_pool_run(x + row->from + r * run_step, &g, line + r * run, run, 0, 0, 0, K, average);
}

static void fl_pool_nothing(const fl_pool *p, int64_t y, int64_t rows) {
  for (; rows--; y++)
    for (int64_t i = 0; i < p->runs * p->run; i++)
      p->line[y * p->pitch + p->left + i] = p->average ? 0 : -(float)INFINITY;
}

/* ---- a line's columns into outputs ------------------------------------------------------------------------------------------- */

/* Single columns: neighbours. */
FL_INLINE void fl_pool_neighbours(const fl_pool *p, const int K, const int average) {
  const fl_pool_grid g = {1, p->kw, 0, p->tap, 0, p->kw};
  for (int64_t y = 0; y < p->nrows; y++)
    fl_pool_run(p->line + y * p->pitch, &g, p->out + y * p->ldo, p->cols, average ? p->rows[y].scale + p->first : 0, 1, 1, K,
                average);
}

/* The same for short rows without gaps in line and output: all rows as one. A mask is 0 where a tap reaches into another row. */
FL_INLINE void fl_pool_joined(const fl_pool *p, const int K, const int average) {
  const float *x = p->line, *scale = average ? p->rows->scale : 0, *masks = (const float *)p->masks;
  const vf nothing = vset(average ? 0 : -(float)INFINITY);
  const int64_t n = p->nrows * p->cols, period = p->period, tap = p->tap, kw = K ? K : p->kw;
  float *to = p->out;
#define FL_POOL_TAP(t) vsel((vi)vload(masks + (t)*period + i), vload(x + at + (t)*tap), nothing)
  for (int64_t start = 0; start < n; start += period)
    for (int64_t i = 0, at = start; i < period && at < n; i += VW, at += VW) {
      vf v = FL_POOL_TAP(0);
      if (K == 2)
        v = fl_pool_two(v, FL_POOL_TAP(1), average);
      else if (K == 3)
        v = fl_pool_three(v, FL_POOL_TAP(1), FL_POOL_TAP(2), average);
      else
        for (int64_t t = 1; t < kw; t++)
          v = fl_pool_two(v, FL_POOL_TAP(t), average);
      if (at + VW <= n)
        vstore(to + at, average ? fl_pool_mean(v, vload(scale + at)) : v);
      else
        vput_part(to + at, average ? fl_pool_mean(v, vget_part(scale + at, n - at, 0)) : v, n - at);
    }
#undef FL_POOL_TAP
}

/* Single columns: every second one, K = 2 or 3 neighbours each. */
FL_INLINE void fl_pool_second(const fl_pool *p, const int K, const int average) {
  const int64_t n = p->cols;
  for (int64_t y = 0; y < p->nrows; y++) {
    const float *x = p->line + y * p->pitch, *scale = average ? p->rows[y].scale + p->first : 0;
    float *to = p->out + y * p->ldo;
    for (int64_t i = 0; i < n; i += VW) {
      if (n >= VW && i > n - VW)
        i = n - VW;
      const vf a = vload(x + 2 * i), b = vload(x + 2 * i + VW), even = FL_LOW1(a, b), odd = FL_HIGH1(a, b);
      vf v;
      if (K == 2) {
        v = fl_pool_two(even, odd, average);
      } else {
        const vf c = vload(x + 2 * i + 2), d = vload(x + 2 * i + VW + 2);
        v = fl_pool_three(even, odd, FL_LOW1(c, d), average);
      }
      if (n >= VW)
        vstore(to + i, average ? fl_pool_mean(v, vload(scale + i)) : v);
      else
        vput_part(to, average ? fl_pool_mean(v, vget_part(scale, n, 0)) : v, n);
    }
  }
}

/* Single columns: any others. */
FL_INLINE void fl_pool_picked(const fl_pool *p, const int average) {
  const fl_pool_grid g = {1, p->kw, 0, p->tap, 0, p->kw};
  for (int64_t y = 0; y < p->nrows; y++) {
    const float *line = p->line + y * p->pitch;
    float *to = p->out + y * p->ldo;
    if (p->gathered) {
      fl_f32_reduce_rows(average ? FL_REDUCE_SUM : FL_REDUCE_MAX, line, p->step, to, p->cols, p->kw);
    } else {
      fl_pool_run(line, &g, p->spare, (p->cols - 1) * p->step + 1, 0, 0, 1, 0, average);
      fl_f32_gather(p->spare, p->step, to, p->cols);
    }
    for (int64_t i = 0; average && i < p->cols; i += VW)
      fl_put(to, i, p->cols, fl_pool_mean(fl_at(to, i, p->cols), fl_at(p->rows[y].scale + p->first, i, p->cols)));
  }
}

/* Pixels of c channels. */
FL_INLINE void fl_pool_pixels(const fl_pool *p, const int K, const int average) {
  const fl_pool_grid g = {1, p->kw, 0, p->tap, 0, p->kw};
  for (int64_t y = 0; y < p->nrows; y++)
    for (int64_t j = 0; j < p->cols; j++)
      fl_pool_run(p->line + y * p->pitch + j * p->step, &g, p->out + y * p->ldo + j * p->out_pixel, p->c,
                  average ? p->rows[y].scale + p->first + j : 0, 0, 1, K, average);
}

/* The copies tell the compiler that no store changes them. */
#define FL_POOL(K, average)                                                                                                      \
  FL_POOL_FN fl_pool_rows_##K##_##average(const fl_pool *p, int64_t y, int64_t rows) {                                           \
    fl_pool_rows(p, y, rows, K, average);                                                                                        \
  }                                                                                                                              \
  FL_POOL_OF(neighbours, K, average)                                                                                             \
  FL_POOL_FN fl_pool_joined_##K##_##average(const fl_pool *p) { fl_pool_joined(p, K, average); }                                 \
  FL_POOL_OF(pixels, K, average)
#define FL_POOL_OF(name, K, average)                                                                                             \
  FL_POOL_FN fl_pool_##name##_##K##_##average(const fl_pool *p) {                                                                \
    const fl_pool local = *p;                                                                                                    \
    fl_pool_##name(&local, K, average);                                                                                          \
  }
FL_POOL(0, 0)
FL_POOL(2, 0)
FL_POOL(3, 0)
FL_POOL(0, 1)
FL_POOL(2, 1)
FL_POOL(3, 1)
FL_POOL_FN fl_pool_picked_max(const fl_pool *p) { fl_pool_picked(p, 0); }
FL_POOL_FN fl_pool_picked_sum(const fl_pool *p) { fl_pool_picked(p, 1); }
FL_POOL_OF(second, 2, 0)
FL_POOL_OF(second, 3, 0)
FL_POOL_OF(second, 2, 1)
FL_POOL_OF(second, 3, 1)
#define FL_POOL_TABLE(name)                                                                                                      \
  {                                                                                                                              \
    {fl_pool_##name##_0_0, fl_pool_##name##_2_0, fl_pool_##name##_3_0},                                                          \
    {fl_pool_##name##_0_1, fl_pool_##name##_2_1, fl_pool_##name##_3_1},                                                          \
  }

static void fl_pool_lines(const fl_pool *p) {
  static void (*const table[2][3])(const fl_pool *, int64_t, int64_t) = FL_POOL_TABLE(rows);
  for (int64_t y = 0, next; y < p->nrows; y = next) {
    const int64_t nz = p->rows[y].nz, ny = p->rows[y].ny, at = p->rows[y].at, count = nz * ny;
    for (next = y + 1; next < p->nrows && p->rows[next].nz == nz && p->rows[next].ny == ny && p->rows[next].at == at;)
      next++;
    if (count)
      table[p->average][count == 2 || count == 3 ? count - 1 : 0](p, y, next - y);
    else
      fl_pool_nothing(p, y, next - y);
  }
}

static void fl_f32_pool(const fl_pool *p) {
  static void (*const table[3][2][3])(const fl_pool *) = {FL_POOL_TABLE(pixels), FL_POOL_TABLE(neighbours),
                                                          FL_POOL_TABLE(joined)};
  if (p->cols <= 0 || p->c <= 0)
    return;
  fl_pool_lines(p);
  const int of = p->kw == 2 || p->kw == 3 ? (int)p->kw - 1 : 0;
  if (p->out_pixel == 1 && p->step == 2 && p->tap == 1 && of)
    (p->average ? (of == 1 ? fl_pool_second_2_1 : fl_pool_second_3_1) : of == 1 ? fl_pool_second_2_0 : fl_pool_second_3_0)(p);
  else if (p->out_pixel == 1 && !p->masks && (p->step > 1 || p->gathered))
    (p->average ? fl_pool_picked_sum : fl_pool_picked_max)(p);
  else
    table[p->out_pixel > 1 ? 0 : p->masks ? 2 : 1][p->average][of](p);
}
#undef FL_POOL_FN
#undef FL_POOL
#undef FL_POOL_OF
#undef FL_POOL_TABLE
