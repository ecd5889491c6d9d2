/* Weighted taps: what resampling is made of, see fl_taps in kernels.h.
 *
 * Along the axis whose neighbours are next to each other, VW outputs at a time are picked out of a window of 2 VW inputs by shuffles, one for
 * each tap, where the plan found that they all are in one; else one by one. With channels next to each other, and across rows, whole vectors
 * are multiplied by one weight. A tap of weight 0 is left out, so that a NaN that counts for nothing does not show.
 * Remainders: the tables of taps are padded to whole vectors, what is loaded and stored are partial vectors. */

#if defined(__AVX512F__)
#define FL_PICK(a, b, lane) (vf)_mm512_permutex2var_ps((__m512)(a), (__m512i)(lane), (__m512)(b))
#elif defined(__AVX2__)
#define FL_PICK(a, b, lane)                                                                                                      \
  vsel((lane) > 7, (vf)_mm256_permutevar8x32_ps((__m256)(b), (__m256i)(lane)),                                                    \
       (vf)_mm256_permutevar8x32_ps((__m256)(a), (__m256i)(lane)))
#endif

#ifdef FL_PICK
/* K taps an output (0: p->taps); `copy`: one tap of weight 1. */
FL_INLINE void fl_taps_picked(const fl_taps *p, const float *x, float *out, const int K, const int copy) {
  const int64_t taps = K ? K : p->taps;
  const int few = p->size < 2 * VW;
  vf a = vset(0), b = vset(0);
  if (few) { /* the whole row is one window */
    a = p->size < VW ? vget_part(x, p->size, 0) : vload(x);
    b = p->size > VW ? vget_part(x + VW, p->size - VW, 0) : b;
  }
  for (int64_t o = 0; o < p->n; o += VW) {
    if (!few) {
      const float *from = x + p->base[o / VW];
      a = vload(from);
      b = vload(from + VW);
    }
    vf acc = vset(0);
    FL_UNROLL for (int64_t t = 0; t < taps; t++) {
      vi lane;
      memcpy(&lane, p->index + t * p->pitch + o, sizeof lane);
      const vf v = FL_PICK(a, b, lane);
      if (copy) {
        acc = v;
        continue;
      }
      const vf w = vload(p->weight + t * p->pitch + o);
      acc = vsel((vi)(w != 0), vfma(w, v, acc), acc);
    }
    if (p->n - o < VW)
      vput_part(out + o, acc, p->n - o);
    else
      vstore(out + o, acc);
  }
}
#endif

FL_INLINE void fl_taps_single(const fl_taps *p, const float *x, float *out, const int K, const int copy) {
  const int64_t taps = K ? K : p->taps;
  for (int64_t o = 0; o < p->n; o++) {
    const float *from = x + (p->base ? p->base[o / VW] : 0);
    float acc = 0;
    if (copy)
      acc = from[p->index[o]];
    else
      for (int64_t t = 0; t < taps; t++) {
        const float w = p->weight[t * p->pitch + o];
        if (w != 0)
          acc += w * from[p->index[t * p->pitch + o]];
      }
    out[o] = acc;
  }
}

/* count vectors of n values, each times its weight: the sum. */
FL_INLINE void fl_mix_of(const float *const *rows, const float *weight, int64_t count, float *out, int64_t n, const int K) {
  const int64_t taps = K ? K : count;
  int64_t i = 0;
  for (; i + VW <= n; i += VW) {
    vf acc = vload(rows[0] + i) * vset(weight[0]);
    FL_UNROLL for (int64_t t = 1; t < taps; t++) acc = vfma(vset(weight[t]), vload(rows[t] + i), acc);
    vstore(out + i, acc);
  }
  if (i < n) {
    vf acc = vget_part(rows[0] + i, n - i, 0) * vset(weight[0]);
    for (int64_t t = 1; t < taps; t++)
      acc = vfma(vset(weight[t]), vget_part(rows[t] + i, n - i, 0), acc);
    vput_part(out + i, acc, n - i);
  }
}

static void fl_f32_mix(const float *const *rows, const float *weight, int64_t count, float *out, int64_t n) {
  if (count == 2)
    fl_mix_of(rows, weight, count, out, n, 2);
  else if (count == 4)
    fl_mix_of(rows, weight, count, out, n, 4);
  else if (count > 0)
    fl_mix_of(rows, weight, count, out, n, 0);
  else
    memset(out, 0, sizeof(float) * (size_t)n);
}

static void fl_f32_taps(const fl_taps *p, const float *x, float *out, int64_t c) {
  enum { MOST = 8 };
  if (c > 1) {
    const float *rows[MOST];
    float weight[MOST];
    for (int64_t o = 0; o < p->n; o++) {
      int64_t count = 0;
      if (!p->weight) {
        memcpy(out + o * c, x + p->index[o] * c, sizeof(float) * (size_t)c);
        continue;
      }
      for (int64_t t = 0, made = 0; t <= p->taps; t++) {
        if (t < p->taps && p->weight[t * p->pitch + o] != 0) {
          rows[count] = x + p->index[t * p->pitch + o] * c;
          weight[count++] = p->weight[t * p->pitch + o];
        }
        if (count == MOST || (t == p->taps && (count > made || !made))) { /* what was made so far is one of the next terms */
          fl_f32_mix(rows, weight, count, out + o * c, c);
          rows[0] = out + o * c;
          weight[0] = 1;
          count = made = 1;
        }
      }
    }
    return;
  }
#ifdef FL_PICK
  if (p->base) {
    if (!p->weight)
      fl_taps_picked(p, x, out, 1, 1);
    else if (p->taps == 2)
      fl_taps_picked(p, x, out, 2, 0);
    else if (p->taps == 4)
      fl_taps_picked(p, x, out, 4, 0);
    else
      fl_taps_picked(p, x, out, 0, 0);
    return;
  }
#endif
  if (!p->weight)
    fl_taps_single(p, x, out, 1, 1);
  else if (p->taps == 2)
    fl_taps_single(p, x, out, 2, 0);
  else if (p->taps == 4)
    fl_taps_single(p, x, out, 4, 0);
  else
    fl_taps_single(p, x, out, 0, 0);
}
