/* Reductions over the middle of three axes: sums, extremes, products and norms; see enum fl_reduce_code for the formulas.
 *
 * Rows: the axis is the last one, n floats of a row; rows have stride ldx. Element e goes to lane e % 32, whatever the level's
 * width; a lane's chain is broken after 16 terms, so that long sums stay accurate; at the end the lanes are folded by halves. A group
 * of VW rows is folded at once (FL_TREE), so that short rows cost little more than their loads.
 * Columns: `inner` values are after the axis, and the vectors along them; row r goes to lane r % 32 of its column, and all else is as
 * above: a column has the bits that it would have as a row, whatever stands next to it. Where inner is at most 64, rows are taken as one,
 * so that vectors are full.
 * The order depends on n alone: levels with a fused multiply-add agree bit for bit but for the exponential.
 * NaN anywhere in a row gives NaN. log_sum_exp subtracts the largest number first; what is infinite or NaN then is the result.
 */
enum { FL_LANE_COUNT = 32, FL_LANE_CHAIN = 16, FL_LANE_TERMS = 4, FL_NARROW = 64, FL_WIDE = 128 };

/* What happens to one number: the ten codes need seven loops. */
enum { FL_KIND_SUM, FL_KIND_MAX, FL_KIND_MIN, FL_KIND_PROD, FL_KIND_SQUARE, FL_KIND_ABS, FL_KIND_EXP, FL_KIND_DEVIATION };
typedef vf (*fl_reduce_group_fn)(const float *x, int64_t ldx, int64_t rows, int64_t n, int64_t after, const float *m);

/* A number that changes no result where it is taken in; for DEVIATION that is m. */
FL_INLINE vf fl_reduce_neutral(const int kind) {
  return vset(kind == FL_KIND_MAX || kind == FL_KIND_EXP ? -(float)INFINITY
              : kind == FL_KIND_MIN                      ? (float)INFINITY
              : kind == FL_KIND_PROD                     ? 1.0f
                                                         : 0.0f);
}
FL_INLINE vf fl_reduce_start(const int kind) { return kind == FL_KIND_EXP ? vset(0) : fl_reduce_neutral(kind); }

/* Takes x in; m: the largest number of the row for EXP, its mean for DEVIATION */
FL_INLINE vf fl_reduce_take(vf acc, vf x, vf m, const int kind) {
  switch (kind) {
  case FL_KIND_MAX: return vmaxn(x, acc);
  case FL_KIND_MIN: return vminn(x, acc);
  case FL_KIND_PROD: return acc * x;
  case FL_KIND_SQUARE: return vfma(x, x, acc);
  case FL_KIND_ABS: return acc + vabs(x);
  case FL_KIND_EXP: return acc + vexp_flush(x - m);
  case FL_KIND_DEVIATION: return vfma(x - m, x - m, acc);
  default: return acc + x;
  }
}
FL_INLINE vf fl_reduce_merge(vf a, vf b, const int kind) {
  return kind == FL_KIND_MAX ? vmaxn(a, b) : kind == FL_KIND_MIN ? vminn(a, b) : kind == FL_KIND_PROD ? a * b : a + b;
}

/* From the folded values of n terms to the result; m: the largest number, for log_sum_exp. */
FL_INLINE vf fl_reduce_end(int code, vf s, vf m, int64_t n) {
  switch (code) {
  case FL_REDUCE_MEAN: return s / (float)n;
  case FL_REDUCE_L2: return vsqrt(s);
  case FL_REDUCE_LOG_SUM: return vlog(s);
  case FL_REDUCE_LOG_SUM_EXP: return vsel((vi)(vabs(m) < (float)INFINITY), m + vlog(s), m);
  default: return s;
  }
}

static const uint8_t fl_reduce_kinds[FL_REDUCE_COUNT] = {
    [FL_REDUCE_SUM] = FL_KIND_SUM,           [FL_REDUCE_MEAN] = FL_KIND_SUM, [FL_REDUCE_MAX] = FL_KIND_MAX,
    [FL_REDUCE_MIN] = FL_KIND_MIN,           [FL_REDUCE_PROD] = FL_KIND_PROD, [FL_REDUCE_SUM_SQUARE] = FL_KIND_SQUARE,
    [FL_REDUCE_L1] = FL_KIND_ABS,            [FL_REDUCE_L2] = FL_KIND_SQUARE, [FL_REDUCE_LOG_SUM] = FL_KIND_SUM,
    [FL_REDUCE_LOG_SUM_EXP] = FL_KIND_EXP,
};

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* The last n % VW floats of a row, and after them what changes nothing. `inside`: a whole vector may be read, since other rows
 * follow. */
FL_INLINE vf fl_reduce_tail(const float *p, int64_t rest, vf m, vi mask, int inside, const int kind) {
  const vf neutral = kind == FL_KIND_DEVIATION ? m : fl_reduce_neutral(kind);
#if VW == 4 /* where the partial load is made of scalars */
  if (inside)
    return vsel(mask, vload(p), neutral);
#endif
  (void)mask, (void)inside;
  return vget_part(p, rest, neutral[0]);
}

/* One row as a vector that is still to be folded. */
FL_INLINE vf fl_reduce_row(const float *x, int64_t n, vf m, vi mask, int inside, const int kind) {
  enum { U = FL_LANE_COUNT / VW };
  vf acc[U], total[U];
  int64_t i = 0;
  int broken = 0;
  FL_UNROLL for (int u = 0; u < U; u++) acc[u] = fl_reduce_start(kind);
  while (i + FL_LANE_COUNT <= n) {
    const int64_t most = i + FL_LANE_COUNT * FL_LANE_CHAIN, end = most < n ? most : n;
    if (i) {
      FL_UNROLL for (int u = 0; u < U; u++) {
        total[u] = broken ? fl_reduce_merge(total[u], acc[u], kind) : acc[u];
        acc[u] = fl_reduce_start(kind);
      }
      broken = 1;
    }
    for (; i + FL_LANE_COUNT <= end; i += FL_LANE_COUNT)
      FL_UNROLL for (int u = 0; u < U; u++) acc[u] = fl_reduce_take(acc[u], vload(x + i + u * VW), m, kind);
  }
  FL_UNROLL for (int u = 0; u < U; u++) {
    const int64_t left = n - i - u * VW;
    if (left >= VW)
      acc[u] = fl_reduce_take(acc[u], vload(x + i + u * VW), m, kind);
    else if (left > 0)
      acc[u] = fl_reduce_take(acc[u], fl_reduce_tail(x + i + u * VW, left, m, mask, inside, kind), m, kind);
  }
  if (broken)
    FL_UNROLL for (int u = 0; u < U; u++) acc[u] = fl_reduce_merge(total[u], acc[u], kind);
  FL_UNROLL for (int w = U / 2; w; w /= 2)
    FL_UNROLL for (int u = 0; u < w; u++) acc[u] = fl_reduce_merge(acc[u], acc[u + w], kind);
  return acc[0];
}

/* At most VW rows, folded: lane r belongs to row r. `after`: floats that may be read after the last row; m: a number per row. */
FL_INLINE vf fl_reduce_group(const float *x, int64_t ldx, int64_t rows, int64_t n, int64_t after, const float *m, const int kind) {
  const int64_t rest = n % VW;
  const vi mask = vmask_part(rest);
  vf v[VW];
  for (int64_t r = rows; r < VW; r++)
    v[r] = fl_reduce_start(kind);
  for (int64_t r = 0; r < rows; r++)
    v[r] = fl_reduce_row(x + r * ldx, n, vset(kind == FL_KIND_DEVIATION || kind == FL_KIND_EXP ? m[r] : 0), mask, (rows - 1 - r) * ldx + after >= VW - rest, kind);
  if (kind == FL_KIND_MAX) {
    FL_TREE(v, vmaxn);
  } else if (kind == FL_KIND_MIN) {
    FL_TREE(v, vminn);
  } else if (kind == FL_KIND_PROD) {
    FL_TREE(v, fl_multiply);
  } else {
    FL_TREE(v, fl_add);
  }
  return v[0];
}

#define FL_REDUCE_GROUP(name, kind)                                                                                             \
  static __attribute__((noinline)) vf fl_reduce_group_##name(const float *x, int64_t ldx, int64_t rows, int64_t n,              \
                                                             int64_t after, const float *m) {                                   \
    return fl_reduce_group(x, ldx, rows, n, after, m, kind);                                                                    \
  }
FL_REDUCE_GROUP(sum, FL_KIND_SUM)
FL_REDUCE_GROUP(max, FL_KIND_MAX)
FL_REDUCE_GROUP(min, FL_KIND_MIN)
FL_REDUCE_GROUP(prod, FL_KIND_PROD)
FL_REDUCE_GROUP(square, FL_KIND_SQUARE)
FL_REDUCE_GROUP(abs, FL_KIND_ABS)
FL_REDUCE_GROUP(exp, FL_KIND_EXP)
FL_REDUCE_GROUP(deviation, FL_KIND_DEVIATION)
#undef FL_REDUCE_GROUP

static const fl_reduce_group_fn fl_reduce_groups[] = {fl_reduce_group_sum,  fl_reduce_group_max,    fl_reduce_group_min,
                                                      fl_reduce_group_prod, fl_reduce_group_square, fl_reduce_group_abs,
                                                      fl_reduce_group_exp};

static void fl_f32_reduce_rows(int code, const float *x, int64_t ldx, float *out, int64_t rows, int64_t n) {
  const int kind = fl_reduce_kinds[code];
  for (int64_t r = 0; r < rows; r += VW) {
    const int64_t count = rows - r < VW ? rows - r : VW, after = (rows - r - count) * ldx;
    vf m = vset(0);
    float largest[VW];
    if (kind == FL_KIND_EXP) {
      m = fl_reduce_group_max(x + r * ldx, ldx, count, n, after, 0);
      vstore(largest, m);
    }
    const vf y = fl_reduce_end(code, fl_reduce_groups[kind](x + r * ldx, ldx, count, n, after, largest), m, n);
    if (count == VW)
      vstore(out + r, y);
    else
      vput_part(out + r, y, count);
  }
}

/* ---- columns ------------------------------------------------------------------------------------------------------------- */

/* Where the chains of some columns run: Q lanes with stride `apart`, down n rows of lanes with stride ld, and in the first
 * `more` of the Q lanes one term more, in the row of lanes `tail`. m: the largest number of each column, for EXP; on: where chains of one
 * lane have got to, which they go on from, or NULL. */
typedef struct {
  const float *x, *tail, *m, *on;
  int64_t ld, apart, n, more;
} fl_chains;

/* U vectors of columns from i on, the last one of `part` lanes unless that is 0. Q lanes, 1 or 4, become one. */
FL_INLINE void fl_reduce_down(const fl_chains *p, int64_t i, float *out, int64_t part, const int Q, const int U, const int kind) {
  const float neutral = fl_reduce_neutral(kind)[0], *x = p->x + i, *tail = p->tail + i;
  vf acc[4][8], shift[8];
  FL_UNROLL for (int u = 0; u < U; u++) {
    FL_UNROLL for (int q = 0; q < Q; q++) acc[q][u] = fl_reduce_start(kind);
    if (Q == 1 && p->on)
      acc[0][u] = part ? vget_part(p->on + i, part, 0) : vload(p->on + i + u * VW);
    shift[u] = kind != FL_KIND_EXP ? vset(0) : part ? vget_part(p->m + i, part, 0) : vload(p->m + i + u * VW);
  }
  for (int64_t r = 0; r < p->n; r++, x += p->ld)
    FL_UNROLL for (int q = 0; q < Q; q++)
      FL_UNROLL for (int u = 0; u < U; u++) {
        const float *at = x + q * p->apart + u * VW;
        acc[q][u] = fl_reduce_take(acc[q][u], part ? vget_part(at, part, neutral) : vload(at), shift[u], kind);
      }
  FL_UNROLL for (int q = 0; q < Q; q++)
    if (q < p->more)
      FL_UNROLL for (int u = 0; u < U; u++) {
        const float *at = tail + q * p->apart + u * VW;
        acc[q][u] = fl_reduce_take(acc[q][u], part ? vget_part(at, part, neutral) : vload(at), shift[u], kind);
      }
  if (Q == 4)
    FL_UNROLL for (int u = 0; u < U; u++) {
      const vf even = fl_reduce_merge(acc[0][u], acc[2][u], kind), odd = fl_reduce_merge(acc[1][u], acc[3][u], kind);
      acc[0][u] = fl_reduce_merge(even, odd, kind);
    }
  FL_UNROLL for (int u = 0; u < U; u++) {
    if (part)
      vput_part(out + i, acc[0][u], part);
    else
      vstore(out + i + u * VW, acc[0][u]);
  }
}

#define FL_REDUCE_STRIP(name, kind, Q, U)                                                                                       \
  static __attribute__((noinline)) void fl_reduce_strip_##name(const fl_chains *p, float *out, int64_t w) {                     \
    int64_t i = 0;                                                                                                              \
    for (; i + U * VW <= w; i += U * VW)                                                                                        \
      fl_reduce_down(p, i, out, 0, Q, U, kind);                                                                                 \
    for (; i + VW <= w; i += VW)                                                                                                \
      fl_reduce_down(p, i, out, 0, Q, 1, kind);                                                                                 \
    if (i < w)                                                                                                                  \
      fl_reduce_down(p, i, out, w - i, Q, 1, kind);                                                                             \
  }
enum { FL_DOWN = VW == 16 ? 4 : 8, FL_DOWN_FOUR = VW == 16 ? 4 : 2 }; /* vectors at once: enough chains for the units, which registers hold */
#define FL_REDUCE_STRIPS(name, kind, U, U_FOUR)                                                                                 \
  FL_REDUCE_STRIP(name, kind, 1, U)                                                                                             \
  FL_REDUCE_STRIP(name##_four, kind, 4, U_FOUR)
FL_REDUCE_STRIPS(sum, FL_KIND_SUM, FL_DOWN, FL_DOWN_FOUR)
FL_REDUCE_STRIPS(max, FL_KIND_MAX, FL_DOWN, FL_DOWN_FOUR)
FL_REDUCE_STRIPS(min, FL_KIND_MIN, FL_DOWN, FL_DOWN_FOUR)
FL_REDUCE_STRIPS(prod, FL_KIND_PROD, FL_DOWN, FL_DOWN_FOUR)
FL_REDUCE_STRIPS(square, FL_KIND_SQUARE, FL_DOWN, FL_DOWN_FOUR)
FL_REDUCE_STRIPS(abs, FL_KIND_ABS, FL_DOWN, FL_DOWN_FOUR)
FL_REDUCE_STRIPS(exp, FL_KIND_EXP, 2, 1) /* its constants take most of the registers */
#undef FL_REDUCE_STRIPS
#undef FL_REDUCE_STRIP
typedef void (*fl_reduce_strip_fn)(const fl_chains *p, float *out, int64_t w);
#define FL_BOTH(name) {fl_reduce_strip_##name, fl_reduce_strip_##name##_four}
static const fl_reduce_strip_fn fl_reduce_strips[][2] = {FL_BOTH(sum),    FL_BOTH(max), FL_BOTH(min), FL_BOTH(prod),
                                                         FL_BOTH(square), FL_BOTH(abs), FL_BOTH(exp)};
#undef FL_BOTH

/* a[i] and b[i] become one in a[i], for i < n. */
static void fl_reduce_join(float *a, const float *b, int64_t n, int kind) {
  for (int64_t i = 0; i < n; i += VW)
    fl_put(a, i, n, fl_reduce_merge(fl_at(a, i, n), fl_at(b, i, n), kind));
}

/* `lanes` (a power of two) rows of w become one, by halves. */
static void fl_reduce_fold(float *part, int64_t lanes, int64_t w, int kind) {
  for (int64_t h = lanes / 2; h; h /= 2)
    fl_reduce_join(part, part + h * w, h * w, kind);
}

/* n rows of some columns, with stride `inner`: of all columns where those are at most FL_NARROW. m: as in fl_chains. */
typedef struct {
  const float *x, *m;
  int64_t n, inner, columns;
} fl_columns;

/* The tail of n % lanes rows of narrow columns, with neutral values up to a whole row of lanes. */
static const float *fl_reduce_filled(const fl_columns *p, int64_t lanes, float *to, int kind) {
  const int64_t rest = p->n % lanes * p->inner;
  memcpy(to, p->x + p->n / lanes * lanes * p->inner, (size_t)rest * 4);
  for (int64_t i = rest; i < lanes * p->inner; i++)
    to[i] = fl_reduce_neutral(kind)[0];
  return to;
}

static const float *fl_reduce_repeat(const float *from, int64_t period, float *to, int64_t n) {
  for (int64_t i = 0; i < n; i += period)
    memcpy(to + i, from, (size_t)period * 4);
  return to;
}

/* Few rows: four lanes stay in registers until they are one, so that little is folded in memory. Lanes that n does not reach would add
 * nothing: no more of them are taken than there must be. */
static void fl_reduce_short(const fl_columns *p, float *out, int kind) {
  float part[FL_LANE_COUNT / 4 * FL_WIDE], filled[FL_LANE_COUNT * FL_NARROW], shift[FL_LANE_COUNT / 4 * FL_NARROW];
  const int64_t n = p->n, inner = p->inner, w = p->columns, quarter = n <= 4 ? 1 : n <= 8 ? 2 : n <= 16 ? 4 : 8, lanes = 4 * quarter;
  const int64_t rest = n % lanes;
  const fl_reduce_strip_fn strip = fl_reduce_strips[kind][1];
  fl_chains c = {p->x, p->x + n / lanes * lanes * inner, p->m, 0, lanes * inner, quarter * inner, n / lanes, rest};
  if (quarter == 1) {
    strip(&c, out, w);
    return;
  }
  if (inner <= FL_NARROW) {
    c.more = (rest + quarter - 1) / quarter;
    if (rest % quarter)
      c.tail = fl_reduce_filled(p, lanes, filled, kind);
    if (kind == FL_KIND_EXP)
      c.m = fl_reduce_repeat(p->m, inner, shift, quarter * inner);
    strip(&c, part, quarter * inner);
  } else {
    for (int64_t g = 0; g < quarter; g++, c.x += inner, c.tail += inner) {
      c.more = g < rest ? (rest - g + quarter - 1) / quarter : 0;
      strip(&c, part + g * w, w);
    }
  }
  fl_reduce_fold(part, quarter, w, kind);
  memcpy(out, part, (size_t)w * 4);
}

/* More rows, one after the other: all lanes of the columns are in memory, and take in FL_LANE_TERMS terms at a time. */
static void fl_reduce_long(const fl_columns *p, float *out, int kind) {
  float total[FL_LANE_COUNT * FL_WIDE], part[FL_LANE_COUNT * FL_WIDE], filled[FL_LANE_COUNT * FL_NARROW];
  float shift[FL_LANE_COUNT * FL_NARROW];
  const int64_t inner = p->inner, w = p->columns, rows = p->n / FL_LANE_COUNT, rest = p->n % FL_LANE_COUNT;
  const int narrow = inner <= FL_NARROW;
  const fl_reduce_strip_fn strip = fl_reduce_strips[kind][0];
  fl_chains c = {p->x, 0, p->m, 0, FL_LANE_COUNT * inner, 0, 0, 0};
  if (narrow && kind == FL_KIND_EXP)
    c.m = fl_reduce_repeat(p->m, inner, shift, FL_LANE_COUNT * inner);
  for (int64_t r = 0; r < rows; r += c.n) {
    float *to = r < FL_LANE_CHAIN ? total : part;
    c.n = rows - r < FL_LANE_TERMS ? rows - r : FL_LANE_TERMS; /* which chains are a multiple of */
    const int64_t after = r + c.n == rows ? rest : 0;
    c.x = p->x + r * FL_LANE_COUNT * inner;
    c.tail = c.x + c.n * FL_LANE_COUNT * inner;
    c.on = r % FL_LANE_CHAIN ? to : NULL;
    if (narrow) {
      c.more = after > 0;
      if (after)
        c.tail = fl_reduce_filled(p, FL_LANE_COUNT, filled, kind);
      strip(&c, to, FL_LANE_COUNT * inner);
    } else {
      for (int64_t g = 0; g < FL_LANE_COUNT; g++, c.x += inner, c.tail += inner) {
        c.more = g < after;
        strip(&c, to + g * w, w);
        c.on += c.on ? w : 0;
      }
    }
    if (to == part && ((r + c.n) % FL_LANE_CHAIN == 0 || r + c.n == rows))
      fl_reduce_join(total, part, FL_LANE_COUNT * w, kind);
  }
  fl_reduce_fold(total, FL_LANE_COUNT, w, kind);
  memcpy(out, total, (size_t)w * 4);
}

static void fl_reduce_columns(const float *x, int64_t n, int64_t inner, const float *m, float *out, int64_t columns, int kind) {
  const int few = n < FL_LANE_COUNT * FL_LANE_TERMS;
  const int64_t most = n <= 4 ? columns : FL_WIDE;
  for (int64_t i = 0; i < columns; i += most) {
    const fl_columns p = {x + i, m + i, n, inner, columns - i < most ? columns - i : most};
    (few ? fl_reduce_short : fl_reduce_long)(&p, out + i, kind);
  }
}

/* Strips of FL_STRIP columns at most: the second pass of log_sum_exp finds them in the second-level cache, if n allows. */
static void fl_f32_reduce_columns(int code, const float *x, int64_t n, int64_t inner, float *out, int64_t columns) {
  const int kind = fl_reduce_kinds[code];
  for (int64_t i = 0; i < columns; i += FL_STRIP) {
    const int64_t w = columns - i < FL_STRIP ? columns - i : FL_STRIP;
    float largest[FL_STRIP];
    if (kind == FL_KIND_EXP)
      fl_reduce_columns(x + i, n, inner, largest, largest, w, FL_KIND_MAX);
    fl_reduce_columns(x + i, n, inner, largest, out + i, w, kind);
    if (code == FL_REDUCE_SUM || (code >= FL_REDUCE_MAX && code <= FL_REDUCE_L1))
      continue;
    for (int64_t j = 0; j < w; j += VW) {
      const vf m = kind == FL_KIND_EXP ? fl_at(largest, j, w) : vset(0);
      fl_put(out + i, j, w, fl_reduce_end(code, fl_at(out + i, j, w), m, n));
    }
  }
}
