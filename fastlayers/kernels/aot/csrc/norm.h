/* Normalization: rows to mean 0 and variance 1 (or root of mean square 1), one factor and one summand per channel, local response.
 *
 * Layer norm sums as reduce.h does, in two passes: the variance is that of the values less their mean. Rows are taken in groups that
 * stay in the first-level cache, whose statistics are folded at once; what a row becomes does not depend on its group.
 */
enum { FL_NORM_GROUP = 4096 }; /* floats of a group */

/* One vector of each of R rows; part: its lanes, or 0 for all. mean, scale: a number per row. */
FL_INLINE void fl_norm_vectors(const float *x, const vf *mean, const vf *scale, const float *weight, const float *bias, float *y,
                               int64_t n, int64_t i, int64_t part, const int R, const int rms) {
  const vf w = !weight ? vset(1) : part ? vget_part(weight + i, part, 0) : vload(weight + i);
  const vf b = !bias ? vset(0) : part ? vget_part(bias + i, part, 0) : vload(bias + i);
  FL_UNROLL for (int r = 0; r < R; r++) {
    const vf v = part ? vget_part(x + r * n + i, part, 0) : vload(x + r * n + i);
    vf t = (rms ? v : v - mean[r]) * scale[r];
    t = bias ? vfma(t, w, b) : weight ? t * w : t;
    if (part)
      vput_part(y + r * n + i, t, part);
    else
      vstore(y + r * n + i, t);
  }
}

FL_INLINE void fl_norm_rows(const float *x, const float *mean, const float *scale, const float *weight, const float *bias, float *y,
                            int64_t n, const int R, const int rms) {
  vf m[2], s[2];
  int64_t i = 0;
  FL_UNROLL for (int r = 0; r < R; r++) {
    m[r] = rms ? vset(0) : vset(mean[r]);
    s[r] = vset(scale[r]);
  }
  for (; i + VW <= n; i += VW)
    fl_norm_vectors(x, m, s, weight, bias, y, n, i, 0, R, rms);
  if (i < n)
    fl_norm_vectors(x, m, s, weight, bias, y, n, i, n - i, R, rms);
}

FL_INLINE void fl_layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t rows, int64_t n,
                             float epsilon, const int rms) {
  const int64_t fit = FL_NORM_GROUP / n, most = fit > VW ? VW : fit < 2 ? 2 : fit;
  for (int64_t done = 0; done < rows;) {
    const int64_t count = rows - done < most ? rows - done : most, after = (rows - done - count) * n;
    float mean[VW], scale[VW];
    vf square;
    if (rms) {
      square = fl_reduce_group_square(x, n, count, n, after, 0);
    } else {
      vstore(mean, fl_reduce_group_sum(x, n, count, n, after, 0) / (float)n);
      square = fl_reduce_group_deviation(x, n, count, n, after, mean);
    }
    vstore(scale, 1.0f / vsqrt(square / (float)n + epsilon));
    int64_t r = 0;
    for (; r + 2 <= count; r += 2)
      fl_norm_rows(x + r * n, mean + r, scale + r, weight, bias, y + r * n, n, 2, rms);
    if (r < count)
      fl_norm_rows(x + r * n, mean + r, scale + r, weight, bias, y + r * n, n, 1, rms);
    x += count * n;
    y += count * n;
    done += count;
  }
}

static void fl_f32_layer_norm(const float *x, const float *weight, const float *bias, float *y, int64_t rows, int64_t n,
                              float epsilon, int rms) {
  if (n <= 0)
    return;
  if (rms && bias)
    fl_layer_norm(x, weight, bias, y, rows, n, epsilon, 1);
  else if (rms)
    fl_layer_norm(x, weight, 0, y, rows, n, epsilon, 1);
  else if (weight && bias)
    fl_layer_norm(x, weight, bias, y, rows, n, epsilon, 0);
  else
    fl_layer_norm(x, weight, bias, y, rows, n, epsilon, 0);
}

/* ---- groups of channels ---------------------------------------------------------------------------------------------------- */

/* n values of one channel */
FL_INLINE void fl_group_run(const float *x, float *y, int64_t n, vf mean, vf scale, vf shift) {
  int64_t i = 0;
  for (; i + VW <= n; i += VW)
    vstore(y + i, vfma(vload(x + i) - mean, scale, shift));
  if (i < n)
    vput_part(y + i, vfma(vget_part(x + i, n - i, 0) - mean, scale, shift), n - i);
}

static void fl_f32_group_norm(const float *x, const float *weight, const float *bias, float *y, int64_t first, int64_t rows,
                              int64_t groups, int64_t channels, int64_t inner, float epsilon) {
  const int64_t n = channels * inner;
  if (n <= 0)
    return;
  const int64_t fit = FL_NORM_GROUP / n, most = fit > VW ? VW : fit < 1 ? 1 : fit;
  for (int64_t done = 0; done < rows;) {
    const int64_t count = rows - done < most ? rows - done : most, after = (rows - done - count) * n;
    float mean[VW], scale[VW];
    vstore(mean, fl_reduce_group_sum(x, n, count, n, after, 0) / (float)n);
    vstore(scale, 1.0f / vsqrt(fl_reduce_group_deviation(x, n, count, n, after, mean) / (float)n + epsilon));
    for (int64_t r = 0; r < count; r++) {
      const int64_t c = (first + done + r) % groups * channels;
      if (inner == 1) {
        fl_norm_rows(x + r * n, mean + r, scale + r, weight ? weight + c : 0, bias ? bias + c : 0, y + r * n, n, 1, 0);
        continue;
      }
      for (int64_t k = 0; k < channels; k++)
        fl_group_run(x + r * n + k * inner, y + r * n + k * inner, inner, vset(mean[r]),
                     vset(weight ? scale[r] * weight[c + k] : scale[r]), vset(bias ? bias[c + k] : 0));
    }
    x += count * n;
    y += count * n;
    done += count;
  }
}

/* ---- one factor and one summand per channel -------------------------------------------------------------------------------------- */

/* y = f(x * scale + shift), each number with its own factor and summand, or all with the first; f is ReLU or nothing. */
FL_INLINE vf fl_affine_one(vf x, const float *scale, const float *shift, int64_t i, int64_t part, const int each, const int relu) {
  const vf a = !each ? vset(*scale) : part ? vget_part(scale + i, part, 0) : vload(scale + i);
  const vf b = !each ? vset(*shift) : part ? vget_part(shift + i, part, 0) : vload(shift + i);
  const vf v = vfma(x, a, b);
  return relu ? vmax(vset(0), v) : v;
}
FL_INLINE void fl_affine_run(const float *x, const float *scale, const float *shift, float *y, int64_t n, const int each,
                             const int relu) {
  int64_t i = 0;
  for (; i + 2 * VW <= n; i += 2 * VW) {
    const vf a = fl_affine_one(vload(x + i), scale, shift, i, 0, each, relu);
    const vf b = fl_affine_one(vload(x + i + VW), scale, shift, i + VW, 0, each, relu);
    vstore(y + i, a);
    vstore(y + i + VW, b);
  }
  for (; i + VW <= n; i += VW)
    vstore(y + i, fl_affine_one(vload(x + i), scale, shift, i, 0, each, relu));
  if (i < n)
    vput_part(y + i, fl_affine_one(vget_part(x + i, n - i, 0), scale, shift, i, n - i, each, relu), n - i);
}

/* Values start .. end - 1 of an array of any number of channels of `inner` values. */
FL_INLINE void fl_affine_range(const fl_affine *p, int64_t start, int64_t end, const int relu) {
  if (p->inner == 1) {
    int64_t c = start % p->channels;
    while (start < end) {
      const int64_t n = p->channels - c < end - start ? p->channels - c : end - start;
      fl_affine_run(p->x + start, p->scale + c, p->shift + c, p->y + start, n, 1, relu);
      start += n;
      c = 0;
    }
    return;
  }
  int64_t c = start / p->inner % p->channels, n = p->inner - start % p->inner;
  while (start < end) {
    n = n < end - start ? n : end - start;
    fl_affine_run(p->x + start, p->scale + c, p->shift + c, p->y + start, n, 0, relu);
    start += n;
    n = p->inner;
    c = c + 1 < p->channels ? c + 1 : 0;
  }
}

/* Any other function runs over what was just written, a piece of the first-level cache at a time. */
static void fl_f32_affine(const fl_affine *p, int64_t start, int64_t end) {
  const fl_affine local = *p;
  if (p->code == FL_RELU) {
    fl_affine_range(&local, start, end, 1);
    return;
  }
  for (int64_t i = start; i < end;) {
    const int64_t stop = p->code == FL_IDENTITY || end - i < 4096 ? end : i + 4096;
    fl_affine_range(&local, i, stop, 0);
    if (p->code != FL_IDENTITY)
      fl_f32_unary(p->code, p->a, p->b, p->y + i, p->y + i, stop - i);
    i = stop;
  }
}

/* ---- local response -------------------------------------------------------------------------------------------------------- */

/* x / (bias + alpha * sum)^beta. `usual`: beta is 3/4, made of roots; else the power is exp(-beta log), and 1 for a beta of 0. */
FL_INLINE vf fl_lrn_end(const fl_lrn *p, vf x, vf sum, const int usual) {
  const vf d = vfma(sum, vset(p->alpha), vset(p->bias));
  if (usual) {
    const vf root = vsqrt(d);
    return x / (root * vsqrt(root));
  }
  return p->beta == 0 ? x : x * vexp(vlog(d) * -p->beta);
}

/* `columns` of the values after the axis, which are inner >= columns: windows add up squares from where they are. */
FL_INLINE void fl_lrn_planes(const fl_lrn *p, const float *x, float *y, int64_t columns, const int usual) {
  const int64_t inner = p->inner;
  for (int64_t c = 0; c < p->channels; c++) {
    const int64_t low = c < p->before ? -c : -p->before;
    const int64_t high = p->channels - 1 - c < p->after ? p->channels - 1 - c : p->after;
    const float *at = x + c * inner;
    float *to = y + c * inner;
    for (int64_t i = 0; i < columns; i += VW) {
      vf sum = vset(0);
      for (int64_t t = low; t <= high; t++) {
        const vf v = fl_at(at + t * inner, i, columns);
        sum = vfma(v, v, sum);
      }
      fl_put(to, i, columns, fl_lrn_end(p, fl_at(at, i, columns), sum, usual));
    }
  }
}

/* A whole row of channels * inner values, for few columns: channels have stride `inner`. `padded` has zeros for the
 * channels that are missing at both ends, which leaves every sum the bits that it has in planes. */
FL_INLINE void fl_lrn_row(const fl_lrn *p, const float *x, float *y, float *padded, const int usual) {
  const int64_t inner = p->inner, n = p->channels * inner, before = p->before * inner, after = p->after * inner;
  memset(padded, 0, (size_t)before * 4);
  memset(padded + before + n, 0, (size_t)(after + VW) * 4);
  memcpy(padded + before, x, (size_t)n * 4);
  for (int64_t i = 0; i < n; i += VW) {
    vf sum = vset(0);
    for (int64_t t = 0; t <= before + after; t += inner) {
      const vf v = vload(padded + i + t);
      sum = vfma(v, v, sum);
    }
    fl_put(y, i, n, fl_lrn_end(p, fl_at(x, i, n), sum, usual));
  }
}

static __attribute__((noinline)) void fl_lrn_usual(const fl_lrn *p, const float *x, float *y, int64_t columns, float *padded) {
  const fl_lrn local = *p;
  if (padded)
    fl_lrn_row(&local, x, y, padded, 1);
  else
    fl_lrn_planes(&local, x, y, columns, 1);
}
static __attribute__((noinline)) void fl_lrn_any(const fl_lrn *p, const float *x, float *y, int64_t columns, float *padded) {
  const fl_lrn local = *p;
  if (padded)
    fl_lrn_row(&local, x, y, padded, 0);
  else
    fl_lrn_planes(&local, x, y, columns, 0);
}

static void fl_f32_lrn(const fl_lrn *p, const float *x, float *y, int64_t columns, float *padded) {
  (p->beta == 0.75f ? fl_lrn_usual : fl_lrn_any)(p, x, y, columns, padded);
}
