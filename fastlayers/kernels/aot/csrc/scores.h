/* Scores of attention where they are wanted as an array: masked ones, and those of additive attention. */

/* y[j] = scale x[j] + mask[j * mj] for j < seen, else -infinity, for n values; mask may be NULL, y may be x. Returns whether any
 * of them is more than -infinity, or NaN. */
static int fl_f32_masked_scores(const float *x, float scale, const float *mask, int64_t mj, int64_t seen, float *y, int64_t n) {
  const vf lowest = vset(-(float)INFINITY);
  vi some = vseti(0);
  for (int64_t j = 0; j < n; j += VW) {
    const int64_t left = n - j < VW ? n - j : VW, open = seen - j < left ? seen - j : left;
    vf v = (left < VW ? vget_part(x + j, left, 0) : vload(x + j)) * vset(scale);
    if (mask)
      v += mj == 0 ? vset(*mask) : left < VW ? vget_part(mask + j, left, 0) : vload(mask + j);
    if (open < VW)
      v = vsel(vmask_part(open > 0 ? open : 0), v, lowest);
    some |= (vi)(v != lowest);
    if (left < VW)
      vput_part(y + j, v, left);
    else
      vstore(y + j, v);
  }
  int32_t lane[VW], any = 0;
  memcpy(lane, &some, sizeof lane);
  for (int i = 0; i < VW; i++)
    any |= lane[i];
  return any != 0;
}

/* out[j] = sum_t scale[t] tanh(q[t] + k[j * u + t]) for n keys; scale NULL: ones. Every lane is a chain; the last, partial vector of
 * a sum is padded with zeros, which add exactly 0. R keys at once: one tanh alone would wait for itself. */
FL_INLINE void fl_additive(const float *q, const float *k, const float *scale, int64_t u, float *out, const int R) {
  vf sum[4] = {{0}, {0}, {0}, {0}};
  int64_t t = 0;
  for (; t + VW <= u; t += VW) {
    const vf a = vload(q + t), s = scale ? vload(scale + t) : vset(1);
    FL_UNROLL for (int r = 0; r < R; r++) sum[r] = vfma(s, vtanh(a + vload(k + r * u + t)), sum[r]);
  }
  if (t < u) {
    const vf a = vget_part(q + t, u - t, 0), s = scale ? vget_part(scale + t, u - t, 0) : vset(1);
    FL_UNROLL for (int r = 0; r < R; r++) sum[r] = vfma(s, vtanh(a + vget_part(k + r * u + t, u - t, 0)), sum[r]);
  }
  FL_UNROLL for (int r = 0; r < R; r++) out[r] = vsum(sum[r]);
}

static void fl_f32_additive_scores(const float *q, const float *k, const float *scale, int64_t n, int64_t u, float *out) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4)
    fl_additive(q, k + j * u, scale, u, out + j, 4);
  for (; j < n; j++)
    fl_additive(q, k + j * u, scale, u, out + j, 1);
}
