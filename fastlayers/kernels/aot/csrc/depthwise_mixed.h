/* Convolutions in groups of 2, 4 or 8 channels to as many results, sixteen channels at a time: fl_dw_block with `mix` channels a group.
 *
 * A panel of results would be empty but for one group's. Here the lanes of a vector are the results of several groups, and what they
 * are multiplied by is a pixel's sixteen channels with channel t of every group in all its lanes: a shuffle, next to which multiply-adds
 * go on. Two rows of outputs share each: a shuffle for two multiply-adds. Order of a sum, kernel rows, columns, then channels: conv's.
 * Remainders: places past `cols` are computed and not stored, from what is behind the row; a last row goes alone. */

#if defined(__AVX512F__)
#define FL_MIX(x, lanes, offset) (vf)_mm512_permutexvar_ps((__m512i)(lanes), (__m512)vload((x) + (offset)))
#elif defined(__AVX2__)
#define FL_MIX(x, lanes, offset) (vf)_mm256_permutevar8x32_ps((__m256)vload((x) + (offset)), (__m256i)(lanes))
#else
/* Lanes may be in the next vector. */
static vf fl_mix_lanes(const float *x, vi lanes) {
  float to[VW];
  for (int i = 0; i < VW; i++)
    to[i] = x[lanes[i]];
  return vload(to);
}
#define FL_MIX(x, lanes, offset) fl_mix_lanes(x, lanes)
#endif

/* What a row of the band adds to P outputs of row 0, if `first`, and of row 1, if `second`, with the kernel rows w0 and w1. */
FL_INLINE void fl_mix_row(const fl_dw_block *p, const float *x, const float *w0, const float *w1, vi lanes, int64_t i, vf *acc0, vf *acc1,
                          const int P, const int first, const int second) {
  const int64_t apart = p->step * FL_PANEL, mix = p->mix;
  for (int64_t u = 0; u < p->kw; u++, x += p->tap_step) {
    vi at = lanes;
    for (int64_t t = 0; t < mix; t++, at += 1) {
      vf k0 = vset(0), k1 = k0;
      if (first)
        k0 = vload(w0);
      if (second)
        k1 = vload(w1);
      w0 += FL_PANEL;
      w1 += FL_PANEL;
      FL_UNROLL for (int q = 0; q < P; q++) {
        const vf v = FL_MIX(x + q * apart, at, i);
        if (first)
          acc0[q] = vfma(k0, v, acc0[q]);
        if (second)
          acc1[q] = vfma(k1, v, acc1[q]);
      }
    }
  }
}

/* The results of `width` sums of row y, from place o and lane i on. */
static __attribute__((noinline)) void fl_mix_end(const fl_dw_block *p, int64_t y, int64_t o, int64_t i, const vf *acc, int64_t width) {
  const vf bias = vload(p->bias + i);
  float *out = p->out + y * p->out_row + o * p->out_pixel + i;
  const float *residual = p->residual ? p->residual + y * p->residual_row + o * p->residual_pixel + i : 0;
  for (int64_t q = 0; q < width && o + q < p->cols; q++) {
    vf v = fl_dw_end(acc[q], bias, residual ? residual + q * p->residual_pixel : 0, p->code);
    if (p->code == FL_CLIP)
      v = vmin(vset(p->b), vmax(vset(p->a), v));
    vstore(out + q * p->out_pixel, v);
  }
}

FL_INLINE void fl_mix_some(const fl_dw_block *p, const int P) {
  const int64_t s = p->down / p->band_row, together = p->row_step == p->band_row, row = p->kw * p->mix * FL_PANEL;
  for (int64_t y = 0; y < p->rows;) {
    const int64_t both = together && y + 1 < p->rows;
    for (int64_t o = 0; o < p->cols; o += P)
      for (int64_t i = 0; i < FL_PANEL; i += VW) {
        const float *x = p->band + y * p->down + o * p->step * FL_PANEL, *w = p->weight + i;
        vf acc0[8], acc1[8];
        vi lanes;
        for (int j = 0; j < VW; j++)
          lanes[j] = (int32_t)((j + (VW < 8 ? i : 0)) / p->mix * p->mix); /* from x, or, where a shuffle can take them, from x + i */
        FL_UNROLL for (int q = 0; q < P; q++) acc0[q] = acc1[q] = vset(0);
        for (int64_t r = 0; r < p->kh + (both ? s : 0); r++, x += p->row_step, w += row) {
          if (!both || r < s) {
            if (r < p->kh)
              fl_mix_row(p, x, w, w, lanes, i, acc0, acc1, P, 1, 0);
          } else if (r < p->kh)
            fl_mix_row(p, x, w, w - s * row, lanes, i, acc0, acc1, P, 1, 1);
          else
            fl_mix_row(p, x, w - s * row, w - s * row, lanes, i, acc0, acc1, P, 0, 1);
        }
        vf sums[16]; /* those in registers have no address */
        FL_UNROLL for (int q = 0; q < P; q++) {
          sums[q] = acc0[q];
          sums[8 + q] = acc1[q];
        }
        fl_mix_end(p, y, o, i, sums, P);
        if (both)
          fl_mix_end(p, y + 1, o, i, sums + 8, P);
      }
    y += 1 + both;
  }
}

#define FL_MIX_OF(P) \
  static __attribute__((noinline)) void fl_mix_##P(const fl_dw_block *p) { \
    const fl_dw_block local = *p; \
    fl_mix_some(&local, P); \
  }
#if VW == 16
/* The same with weights in bfloat16, [kh][kw][pairs of a group's channels][16][2], where the processor multiplies it: half as many shuffles
 * and multiply-adds. The band is rounded in its place. */
#define FL_MIX_PAIRS 16 /* added to `mix` */

FL_INLINE FL_BRAIN_TARGET void fl_mix_pairs_row(const fl_dw_block *p, const uint16_t *x, const uint16_t *w0, const uint16_t *w1, __m512i lanes,
                                                __m512 *acc0, __m512 *acc1, const int P, const int first, const int second) {
  const int64_t apart = p->step * FL_PANEL, mix = p->mix;
  for (int64_t u = 0; u < p->kw; u++, x += p->tap_step) {
    __m512i at = lanes;
    for (int64_t t = 0; t < mix; t += 2, w0 += 2 * FL_PANEL, w1 += 2 * FL_PANEL) {
      __m512i k0 = _mm512_setzero_si512(), k1 = k0;
      if (first)
        k0 = _mm512_loadu_si512(w0);
      if (second)
        k1 = _mm512_loadu_si512(w1);
      FL_UNROLL for (int q = 0; q < P; q++) {
        const __m512i pixel = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(x + q * apart)));
        const __m512bh v = (__m512bh)_mm512_permutexvar_epi32(at, pixel);
        if (first)
          acc0[q] = _mm512_dpbf16_ps(acc0[q], v, (__m512bh)k0);
        if (second)
          acc1[q] = _mm512_dpbf16_ps(acc1[q], v, (__m512bh)k1);
      }
      at = _mm512_add_epi32(at, _mm512_set1_epi32(1));
    }
  }
}

FL_INLINE FL_BRAIN_TARGET void fl_mix_pairs_some(const fl_dw_block *p, const int P) {
  const int64_t s = p->down / p->band_row, together = p->row_step == p->band_row, row = p->kw * p->mix * FL_PANEL;
  int32_t of_lane[16];
  for (int64_t j = 0; j < 16; j++)
    of_lane[j] = (int32_t)(j / p->mix * (p->mix / 2));
  const __m512i lanes = _mm512_loadu_si512(of_lane);
  for (int64_t y = 0; y < p->rows;) {
    const int64_t both = together && y + 1 < p->rows;
    for (int64_t o = 0; o < p->cols; o += P) {
      const uint16_t *x = (const uint16_t *)(const void *)p->band + y * p->down + o * p->step * FL_PANEL;
      const uint16_t *w = (const uint16_t *)(const void *)p->weight;
      __m512 acc0[8], acc1[8];
      FL_UNROLL for (int q = 0; q < P; q++) acc0[q] = acc1[q] = _mm512_setzero_ps();
      for (int64_t r = 0; r < p->kh + (both ? s : 0); r++, x += p->row_step, w += row) {
        if (!both || r < s) {
          if (r < p->kh)
            fl_mix_pairs_row(p, x, w, w, lanes, acc0, acc1, P, 1, 0);
        } else if (r < p->kh)
          fl_mix_pairs_row(p, x, w, w - s * row, lanes, acc0, acc1, P, 1, 1);
        else
          fl_mix_pairs_row(p, x, w - s * row, w - s * row, lanes, acc0, acc1, P, 0, 1);
      }
      vf sums[16];
      FL_UNROLL for (int q = 0; q < P; q++) {
        sums[q] = (vf)acc0[q];
        sums[8 + q] = (vf)acc1[q];
      }
      fl_mix_end(p, y, o, 0, sums, P);
      if (both)
        fl_mix_end(p, y + 1, o, 0, sums + 8, P);
    }
    y += 1 + both;
  }
}

static __attribute__((noinline)) FL_BRAIN_TARGET void fl_mix_pairs(const fl_dw_block *p) {
  fl_dw_block local = *p;
  local.mix -= FL_MIX_PAIRS;
  const int64_t last = (p->rows - 1) * p->down + (p->kh - 1) * p->row_step; /* row of the band; `band_rows` is 0 where it was made before */
  fl_half_round(p->band, last + p->band_row, (uint16_t *)(void *)p->band);
  fl_mix_pairs_some(&local, 7);
}
#endif

#if VREGS == 32
FL_MIX_OF(7) /* images are often 7 times a power of two wide */
FL_MIX_OF(8)
static void fl_mix(const fl_dw_block *p) {
#if VW == 16
  if (p->mix > FL_MIX_PAIRS) {
    fl_mix_pairs(p);
    return;
  }
#endif
  ((p->cols + 6) / 7 * 7 < (p->cols + 7) / 8 * 8 ? fl_mix_7 : fl_mix_8)(p);
}
#else /* two sums for each, and a third of the registers for the rest */
FL_MIX_OF(4)
static void fl_mix(const fl_dw_block *p) { fl_mix_4(p); }
#endif
#undef FL_MIX_OF
