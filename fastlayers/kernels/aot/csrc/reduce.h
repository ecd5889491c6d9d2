/* Reductions over the middle of three axes: sums, extremes, products and norms; see enum fl_reduce_code for the formulas.
 *
 * Rows: the axis is the last one, n floats of a row; rows lie ldx floats apart. Element e goes to lane e % 32, whatever the level's
 * width; a lane's chain is broken after 16 terms, so that long sums stay accurate; at the end the lanes are folded by halves. A group
 * of VW rows is folded at once (FL_TREE), so that short rows cost little more than their loads.
 * Columns: `inner` numbers lie behind the axis, and the vectors along them: a chain down n, broken after 256 terms. Where inner is
 * below 64, k = 128 / inner rows are taken as one, so that vectors are full, and their parts are added by halves at the end.
 * Either order depends on n and inner alone: levels with a fused multiply-add agree bit for bit but for the exponential.
 * NaN anywhere in a row gives NaN. log_sum_exp subtracts the largest number first; what is infinite or NaN then is the result.
 */
enum { FL_LANE_COUNT = 32, FL_LANE_CHAIN = 16, FL_COLUMN_CHAIN = 256, FL_NARROW = 64, FL_WIDE = 128 };

/* What happens to one number: the ten codes need seven loops. */
enum { FL_KIND_SUM, FL_KIND_MAX, FL_KIND_MIN, FL_KIND_PROD, FL_KIND_SQUARE, FL_KIND_ABS, FL_KIND_EXP, FL_KIND_DEVIATION };
typedef vf (*fl_reduce_group_fn)(const float *x, int64_t ldx, int64_t rows, int64_t n, int64_t after, const float *m);
typedef void (*fl_reduce_strip_fn)(const float *x, int64_t ld, int64_t n, const float *m, float *out, int64_t w);

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
  case FL_KIND_EXP: return acc + vexp_flush(x - m); /* in columns alone */
  case FL_KIND_DEVIATION: return vfma(x - m, x - m, acc);
  default: return acc + x;
  }
}
FL_INLINE vf fl_reduce_merge(vf a, vf b, const int kind) {
  return kind == FL_KIND_MAX ? vmaxn(a, b) : kind == FL_KIND_MIN ? vminn(a, b) : kind == FL_KIND_PROD ? a * b : a + b;
}

/* From the folded numbers of n terms to the result; m: the largest number, for log_sum_exp. */
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

/* The last n % VW floats of a row, and behind them what changes nothing. `inside`: a whole vector may be read, since other rows
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

/* At most VW rows, folded: lane r belongs to row r. `after`: floats that may be read behind the last row; m: a number a row. */
FL_INLINE vf fl_reduce_group(const float *x, int64_t ldx, int64_t rows, int64_t n, int64_t after, const float *m, const int kind) {
  const int64_t rest = n % VW;
  const vi mask = vmask_part(rest);
  vf v[VW];
  for (int64_t r = rows; r < VW; r++)
    v[r] = fl_reduce_start(kind);
  for (int64_t r = 0; r < rows; r++)
    v[r] = fl_reduce_row(x + r * ldx, n, vset(kind == FL_KIND_DEVIATION ? m[r] : 0), mask, (rows - 1 - r) * ldx + after >= VW - rest, kind);
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
FL_REDUCE_GROUP(deviation, FL_KIND_DEVIATION)
#undef FL_REDUCE_GROUP

/* The sums of exp(x - m): rows one by one, in the order of softmax. */
static __attribute__((noinline)) vf fl_reduce_group_exp(const float *x, int64_t ldx, int64_t rows, int64_t n, int64_t after,
                                                        const float *m) {
  const int64_t rest = n % VW, whole = n - rest;
  float sums[VW];
  vstore(sums, vset(0));
  (void)after;
  for (int64_t r = 0; r < rows; r++) {
    const float *row = x + r * ldx;
    const vf largest = vset(m[r]);
    vf s = rest ? vexp_flush(vget_part(row + whole, rest, -(float)INFINITY) - largest) : vset(0);
    fl_rows_exp(row, 0, whole, &largest, 0, &s, 1, 0);
    sums[r] = s[0];
  }
  return vload(sums);
}

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

/* U vectors of columns, the last one of `part` lanes unless that is 0, down n rows that lie ld floats apart. */
FL_INLINE void fl_reduce_down(const float *x, int64_t ld, int64_t n, const float *m, float *out, int64_t part, const int U,
                              const int kind) {
  vf acc[8], total[8], shift[8];
  FL_UNROLL for (int u = 0; u < U; u++) {
    acc[u] = total[u] = fl_reduce_start(kind);
    shift[u] = kind != FL_KIND_EXP ? vset(0) : part ? vget_part(m + u * VW, part, 0) : vload(m + u * VW);
  }
  for (int64_t r = 0; r < n;) {
    const int64_t end = n - r < FL_COLUMN_CHAIN ? n : r + FL_COLUMN_CHAIN;
    if (r)
      FL_UNROLL for (int u = 0; u < U; u++) {
        total[u] = r == FL_COLUMN_CHAIN ? acc[u] : fl_reduce_merge(total[u], acc[u], kind);
        acc[u] = fl_reduce_start(kind);
      }
    for (; r < end; r++)
      FL_UNROLL for (int u = 0; u < U; u++) {
        const float *p = x + r * ld + u * VW;
        acc[u] = fl_reduce_take(acc[u], part ? vget_part(p, part, fl_reduce_neutral(kind)[0]) : vload(p), shift[u], kind);
      }
  }
  FL_UNROLL for (int u = 0; u < U; u++) {
    const vf y = n > FL_COLUMN_CHAIN ? fl_reduce_merge(total[u], acc[u], kind) : acc[u];
    if (part)
      vput_part(out + u * VW, y, part);
    else
      vstore(out + u * VW, y);
  }
}

#define FL_REDUCE_STRIP(name, kind, U)                                                                                          \
  static __attribute__((noinline)) void fl_reduce_strip_##name(const float *x, int64_t ld, int64_t n, const float *m, float *out, \
                                                               int64_t w) {                                                     \
    int64_t i = 0;                                                                                                              \
    for (; i + U * VW <= w; i += U * VW)                                                                                        \
      fl_reduce_down(x + i, ld, n, m + i, out + i, 0, U, kind);                                                                 \
    for (; i + VW <= w; i += VW)                                                                                                \
      fl_reduce_down(x + i, ld, n, m + i, out + i, 0, 1, kind);                                                                 \
    if (i < w)                                                                                                                  \
      fl_reduce_down(x + i, ld, n, m + i, out + i, w - i, 1, kind);                                                             \
  }
enum { FL_DOWN = VW == 16 ? 4 : 8 }; /* vectors at once: 64 columns, and enough chains */
FL_REDUCE_STRIP(sum, FL_KIND_SUM, FL_DOWN)
FL_REDUCE_STRIP(max, FL_KIND_MAX, FL_DOWN)
FL_REDUCE_STRIP(min, FL_KIND_MIN, FL_DOWN)
FL_REDUCE_STRIP(prod, FL_KIND_PROD, FL_DOWN)
FL_REDUCE_STRIP(square, FL_KIND_SQUARE, FL_DOWN)
FL_REDUCE_STRIP(abs, FL_KIND_ABS, FL_DOWN)
FL_REDUCE_STRIP(exp, FL_KIND_EXP, 2) /* its constants take most of the registers */
#undef FL_REDUCE_STRIP
static const fl_reduce_strip_fn fl_reduce_strips[] = {fl_reduce_strip_sum,  fl_reduce_strip_max,    fl_reduce_strip_min,
                                                      fl_reduce_strip_prod, fl_reduce_strip_square, fl_reduce_strip_abs,
                                                      fl_reduce_strip_exp};

/* a[i] and b[i] become one in a[i], for i < n. */
static void fl_reduce_join(float *a, const float *b, int64_t n, int kind) {
  for (int64_t i = 0; i < n; i += VW)
    fl_put(a, i, n, fl_reduce_merge(fl_at(a, i, n), fl_at(b, i, n), kind));
}

/* All of n rows of `inner` < FL_NARROW columns, k rows at a time. */
static void fl_reduce_narrow(const float *x, int64_t n, int64_t inner, const float *m, float *out, int64_t k, int kind) {
  float part[FL_WIDE], last[FL_WIDE], shift[FL_WIDE];
  const int64_t w = k * inner, rest = n % k * inner;
  if (kind == FL_KIND_EXP) {
    memcpy(shift, m, (size_t)inner * 4);
    for (int64_t i = inner; i < w; i++)
      shift[i] = shift[i - inner];
  }
  fl_reduce_strips[kind](x, w, n / k, shift, part, w);
  if (rest) {
    fl_reduce_strips[kind](x + n / k * w, w, 1, shift, last, rest);
    fl_reduce_join(part, last, rest, kind);
  }
  for (; k > 1; k -= k / 2) /* the later half is added to the earlier one; an odd part in the middle waits */
    fl_reduce_join(part, part + (k - k / 2) * inner, k / 2 * inner, kind);
  memcpy(out, part, (size_t)inner * 4);
}

static void fl_reduce_columns(const float *x, int64_t n, int64_t inner, const float *m, float *out, int64_t columns, int kind) {
  const int64_t k = inner >= FL_NARROW ? 1 : n < FL_WIDE / inner ? n : FL_WIDE / inner;
  if (k > 1)
    fl_reduce_narrow(x, n, inner, m, out, k, kind);
  else
    fl_reduce_strips[kind](x, inner, n, m, out, columns);
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
