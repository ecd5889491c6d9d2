/* Kernels on quantized values: the packed product of bytes, depthwise convolution, conversions, sums of two arrays.
 *
 * Layouts and contracts are in quantized_table.h. Rests of vectors go through buffers on the stack. */
#include "lanes.h"
#include "quantized_finish.h"

typedef int16_t vq __attribute__((vector_size(VW * 4)));
typedef uint16_t vuh1 __attribute__((vector_size(VW * 2)));
typedef int16_t vsh1 __attribute__((vector_size(VW * 2)));

/* a[2i] b[2i] + a[2i + 1] b[2i + 1] */
FL_INLINE vi vmadd(vq a, vq b) {
#if VW == 16
  return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif VW == 8
  return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__aarch64__)
  const int16x8_t p = (int16x8_t)a, q = (int16x8_t)b;
  return (vi)vpaddq_s32(vmull_s16(vget_low_s16(p), vget_low_s16(q)), vmull_high_s16(p, q));
#else
  return (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#endif
}

/* ---- the packed product --------------------------------------------------------------------------------------------------- */

#define FL_QV (FL_PANEL * 2 / VW) /* vectors of sums that a panel takes where bytes are widened */
#if VW == 16
#define FL_QROWS 8
#elif VW == 8 || VREGS == 32
#define FL_QROWS 3
#else
#define FL_QROWS 1
#endif

FL_INLINE uint32_t fl_quad_bits(const uint8_t *p) {
  uint32_t q;
  memcpy(&q, p, sizeof q);
  return q;
}
/* a quad in every 8 bytes, widened; bytes widened */
#if VW == 16
FL_INLINE vq fl_quad16(const uint8_t *p) { return (vq)_mm512_cvtepu8_epi16(_mm256_set1_epi32((int)fl_quad_bits(p))); }
FL_INLINE vq fl_widen16(const int8_t *p) { return (vq)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p)); }
#elif VW == 8
FL_INLINE vq fl_quad16(const uint8_t *p) { return (vq)_mm256_cvtepu8_epi16(_mm_set1_epi32((int)fl_quad_bits(p))); }
FL_INLINE vq fl_widen16(const int8_t *p) { return (vq)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)); }
#elif defined(__aarch64__)
FL_INLINE vq fl_quad16(const uint8_t *p) { return (vq)vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(fl_quad_bits(p)))); }
FL_INLINE vq fl_widen16(const int8_t *p) { return (vq)vmovl_s8(vld1_s8(p)); }
#else
FL_INLINE vq fl_quad16(const uint8_t *p) {
  return (vq)_mm_unpacklo_epi8(_mm_set1_epi32((int)fl_quad_bits(p)), _mm_setzero_si128());
}
FL_INLINE vq fl_widen16(const int8_t *p) {
  const __m128i v = _mm_loadl_epi64((const __m128i *)p);
  return (vq)_mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8);
}
#endif

typedef void (*fl_qtile_fn)(const fl_qblock *p, const uint8_t *const *rows, const int8_t *b, int64_t i0, int64_t j0);

#define FL_DOT_TARGET
#define FL_TP 1
#define FL_TALLEST FL_QROWS
#include "quantized_tiles.h"
#undef FL_DOT_TARGET

/* Tiles of up to `most` rows and `panels` panels over the whole block; heights are even. */
FL_INLINE void fl_qwalk(const fl_qblock *p, const fl_qtile_fn *tiles, const fl_qtile_fn *wide, int64_t most, int64_t panels) {
  const int64_t count = (p->m + most - 1) / most, low = count ? p->m / count : 0, high = count ? p->m % count : 0;
  for (int64_t j = 0; j < p->n;) {
    const int whole = p->n - j >= (panels - 1) * FL_PANEL + 1;
    const int8_t *b = p->b + j / FL_PANEL * p->panel;
    int64_t i = 0;
    for (int64_t t = 0; t < count; t++) {
      const int64_t m = low + (t < high);
      (whole ? wide : tiles)[m](p, p->rows + i, b, i, j);
      i += m;
    }
    j += whole ? panels * FL_PANEL : FL_PANEL;
  }
}

static void fl_q_block_pairs(const fl_qblock *p) {
  static const fl_qtile_fn tiles[] = {
      0, fl_pairs_1x1,
#if FL_QROWS > 1
      fl_pairs_2x1, fl_pairs_3x1,
#endif
#if FL_QROWS > 3
      fl_pairs_4x1, fl_pairs_5x1, fl_pairs_6x1, fl_pairs_7x1, fl_pairs_8x1,
#endif
  };
  fl_qwalk(p, tiles, tiles, FL_QROWS, 1);
}

#if defined(__AVX512F__)
#include "quantized_dot.h"
#endif

static void fl_q_block(const fl_qblock *p) {
#if defined(__AVX512F__)
  if (fl_has_dot()) {
    fl_q_block_dot(p);
    return;
  }
#endif
  fl_q_block_pairs(p);
}

static void fl_q_rowsums(const uint8_t *const *rows, int64_t m, const fl_qrun *runs, const int64_t *lengths, int64_t nruns, int32_t *out) {
  for (int64_t i = 0; i < m; i++) {
    int32_t total = 0;
    for (int64_t r = 0; r < nruns; r++) {
      const uint8_t *x = rows[i] + runs[r].offset;
      for (int64_t k = 0; k < lengths[r]; k++)
        total += x[k];
    }
    out[i] = total;
  }
}

static void fl_q_panels(const uint8_t *b, int64_t ld, int64_t k, int64_t n, int is_signed, int8_t *to, int32_t *sums) {
  const vi less = vseti(is_signed ? 0 : 128);
  for (int64_t j = 0; j < n; j += FL_PANEL) {
    const int64_t left = n - j;
    vi sum[FL_PANEL / VW], word[FL_PANEL / VW];
    FL_UNROLL for (int q = 0; q < FL_PANEL / VW; q++) sum[q] = (vi){0};
    for (int64_t t = 0; t < k; t += 4, to += 4 * FL_PANEL) {
      FL_UNROLL for (int q = 0; q < FL_PANEL / VW; q++) word[q] = (vi){0};
      for (int r = 0; r < 4 && t + r < k; r++) {
        const uint8_t *x = b + (t + r) * ld + j;
        uint8_t rest[FL_PANEL];
        if (left < FL_PANEL) {
          memset(rest, is_signed ? 0 : 128, sizeof rest);
          memcpy(rest, x, (size_t)left);
          x = rest;
        }
        FL_UNROLL for (int q = 0; q < FL_PANEL / VW; q++) {
          const vi v = is_signed ? vwidens(x + q * VW) : vwiden(x + q * VW) - less;
          sum[q] += v;
          word[q] |= (v & 255) << 8 * r;
        }
      }
      FL_UNROLL for (int q = 0; q < FL_PANEL / VW; q++) vistore((int32_t *)to + q * VW, word[q]);
    }
    FL_UNROLL for (int q = 0; q < FL_PANEL / VW; q++) vistore(sums + j + q * VW, sum[q]);
  }
}

static void fl_q_flip(const uint8_t *x, uint8_t *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = x[i] ^ 0x80;
}

/* ---- depthwise ------------------------------------------------------------------------------------------------------------- */

#define FL_QPIXELS (VREGS == 32 && VW < 16 ? 2 : VW == 16 ? 4 : VW == 8 ? 2 : 1) /* worked on together */

/* Channels from j on, a multiple of FL_PANEL. */
static void fl_q_depthwise_pairs(const fl_qdepthwise *p, int64_t j) {
  const int64_t wide = (p->c + FL_PANEL - 1) / FL_PANEL * FL_PANEL;
  for (; j < p->c; j += FL_PANEL) {
    const int part = p->c - j < FL_PANEL;
    int64_t o = 0;
    if (fl_plain_bytes(&p->e, p->c - j))
      for (; o + FL_QPIXELS <= p->cols; o += FL_QPIXELS) {
        vi sum[FL_QPIXELS][FL_PANEL / VW];
        FL_UNROLL for (int q = 0; q < FL_QPIXELS; q++)
          FL_UNROLL for (int t = 0; t < FL_PANEL / VW; t++) sum[q][t] = (vi){0};
        for (int64_t u = 0; u < p->pairs; u++) {
          const uint8_t *x = p->taps[2 * u] + o * p->step + j, *y = p->taps[2 * u + 1] + o * p->step + j;
          const int16_t *w = p->w + (u * wide + j) * 2;
          FL_UNROLL for (int t = 0; t < FL_PANEL / VW; t++) {
            const vq weight = (vq)vload((const float *)(w + t * VW * 2));
            FL_UNROLL for (int q = 0; q < FL_QPIXELS; q++)
              sum[q][t] += vmadd((vq)(vwiden(x + q * p->step + t * VW) | vwiden(y + q * p->step + t * VW) << 16), weight);
          }
        }
        fl_qfinish_bytes(&p->e, (const int32_t *)sum, FL_PANEL, FL_QPIXELS, j, (uint8_t *)p->out + o * p->ldc + j, p->ldc);
      }
    for (; o < p->cols; o++) {
      vi sum[FL_PANEL / VW];
      FL_UNROLL for (int t = 0; t < FL_PANEL / VW; t++) sum[t] = (vi){0};
      for (int64_t u = 0; u < p->pairs; u++) {
        const uint8_t *x = p->taps[2 * u] + o * p->step + j, *y = p->taps[2 * u + 1] + o * p->step + j;
        const int16_t *w = p->w + (u * wide + j) * 2;
        uint8_t rest[2][FL_PANEL];
        if (part) {
          memcpy(rest[0], x, (size_t)(p->c - j));
          memcpy(rest[1], y, (size_t)(p->c - j));
          x = rest[0], y = rest[1];
        }
        FL_UNROLL for (int t = 0; t < FL_PANEL / VW; t++) {
          const vq both = (vq)(vwiden(x + t * VW) | vwiden(y + t * VW) << 16);
          sum[t] += vmadd(both, (vq)vload((const float *)(w + t * VW * 2)));
        }
      }
      fl_qfinish(&p->e, (const int32_t *)sum, 0, j, p->out, o * p->ldc + j, p->c - j);
    }
  }
}

static void fl_q_depthwise(const fl_qdepthwise *p) {
#if defined(__AVX512F__)
  fl_q_depthwise_pairs(p, p->bytes && fl_plain_bytes(&p->e, FL_PANEL) && fl_has_dot() ? fl_q_depthwise_dot(p) : 0);
#else
  fl_q_depthwise_pairs(p, 0);
#endif
}

/* ---- conversions ------------------------------------------------------------------------------------------------------------- */

FL_INLINE void fl_qput(void *y, int kind, int64_t i, vi v) {
  if (kind == FL_UINT8 || kind == FL_INT8)
    vnarrow((uint8_t *)y + i, v);
  else {
    const vuh1 h = __builtin_convertvector(v, vuh1);
    memcpy((uint16_t *)y + i, &h, sizeof h);
  }
}

static void fl_q_quantize(const float *x, const float *scale, const int32_t *zero, int each, int kind, void *y, int64_t n) {
  const int64_t size = kind == FL_UINT8 || kind == FL_INT8 ? 1 : 2;
  int32_t lo, hi;
  fl_limits(kind, &lo, &hi);
  for (int64_t i = 0; i < n; i += VW) {
    float xs[VW] = {0}, ss[VW] = {0};
    int32_t zs[VW] = {0}, ys[VW];
    const int64_t m = n - i < VW ? n - i : VW;
    const float *px = x + i, *ps = scale + i;
    const int32_t *pz = zero + i;
    if (m < VW) {
      memcpy(xs, px, (size_t)m * 4);
      px = xs;
      if (each) {
        memcpy(ss, ps, (size_t)m * 4);
        memcpy(zs, pz, (size_t)m * 4);
        ps = ss, pz = zs;
      }
    }
    const vf s = each ? vload(ps) : vset(scale[0]);
    const vi z = each ? viload(pz) : vseti(zero[0]);
    const vf f = vload(px) / s;
    const vi v = vnear(vmin(vmax(f, vfloat(lo - z)), vfloat(hi - z))) + z;
    fl_qput(m < VW ? (void *)ys : y, kind, m < VW ? 0 : i, v);
    if (m < VW)
      memcpy((uint8_t *)y + i * size, ys, (size_t)(m * size));
  }
}

FL_INLINE vi fl_qget(const void *x, int kind, int64_t i) {
  if (kind == FL_UINT8)
    return vwiden((const uint8_t *)x + i);
  if (kind == FL_INT8)
    return vwidens((const uint8_t *)x + i);
  if (kind == FL_INT32)
    return viload((const int32_t *)x + i);
  vuh1 u;
  vsh1 s;
  memcpy(&u, (const uint16_t *)x + i, sizeof u);
  memcpy(&s, &u, sizeof s);
  return kind == FL_INT16 ? __builtin_convertvector(s, vi) : __builtin_convertvector(u, vi);
}

static void fl_q_dequantize(const void *x, int kind, const float *scale, const int32_t *zero, int each, float *y, int64_t n) {
  const int64_t size = kind == FL_INT32 ? 4 : kind == FL_UINT8 || kind == FL_INT8 ? 1 : 2;
  int64_t i = 0;
  for (; i + VW <= n; i += VW) {
    const vi v = fl_qget(x, kind, i) - (each ? viload(zero + i) : vseti(zero[0]));
    vstore(y + i, vfloat(v) * (each ? vload(scale + i) : vset(scale[0])));
  }
  for (; i < n; i++) {
    int32_t one[VW];
    memcpy(one, (const uint8_t *)x + i * size, (size_t)size);
    const vi v = fl_qget(one, kind, 0);
    y[i] = (float)(v[0] - zero[each ? i : 0]) * scale[each ? i : 0];
  }
}

static void fl_q_requantize(const int32_t *x, const float *by, int each, int32_t zero, int kind, void *y, int64_t n) {
  int32_t lo, hi;
  fl_limits(kind, &lo, &hi);
  int64_t i = 0;
  for (; i + VW <= n; i += VW)
    vnarrow((uint8_t *)y + i, fl_round_to(vfloat(viload(x + i)) * (each ? vload(by + i) : vset(by[0])), zero, lo, hi));
  for (; i < n; i++) {
    const vi v = fl_round_to(vset((float)x[i] * by[each ? i : 0]), zero, lo, hi);
    ((uint8_t *)y)[i] = (uint8_t)v[0];
  }
}

static void fl_q_range(const float *x, int64_t n, float *low, float *high) {
  vf lo = vset(*low), hi = vset(*high);
  int64_t i = 0;
  /* vmin and vmax give the second operand where the first is NaN */
  for (; i + VW <= n; i += VW) {
    const vf v = vload(x + i);
    lo = vmin(v, lo), hi = vmax(v, hi);
  }
  for (int t = 0; t < VW; t++) {
    *low = lo[t] < *low ? lo[t] : *low;
    *high = hi[t] > *high ? hi[t] : *high;
  }
  for (; i < n; i++) {
    *low = x[i] < *low ? x[i] : *low;
    *high = x[i] > *high ? x[i] : *high;
  }
}

static void fl_q_correct(const int32_t *bias, const int32_t *sums, const int32_t *zeros, int32_t zero, int32_t times, int32_t *to,
                         const float *factor, float step, float *scale, int64_t n) {
  for (int64_t i = 0; i < n; i += VW) {
    vi v = viload(bias + i) - viload(sums + i) * zero;
    if (zeros)
      v += viload(zeros + i) * times;
    vistore(to + i, v);
    if (factor)
      vstore(scale + i, vload(factor + i) * step);
  }
}

/* ---- two arrays, and folds ------------------------------------------------------------------------------------------------------ */

/* x factor + added, rounded once; x is a byte */
FL_INLINE vf fl_q_fused(vf x, float factor, vf added) {
#if VW >= 8 || defined(__aarch64__)
  return vfma(x, vset(factor), added);
#else /* the product is exact as a double */
  FL_UNROLL for (int i = 0; i < VW; i++) x[i] = (float)((double)x[i] * factor + added[i]);
  return x;
#endif
}

/* p->multiply and p->is_signed are constants where this is called. */
FL_INLINE vi fl_q_both(const fl_qbinary *p, const int is_signed, vi va, vi vb) {
  int32_t lo, hi;
  fl_limits(is_signed ? FL_INT8 : FL_UINT8, &lo, &hi);
  va -= p->a_zero, vb -= p->b_zero;
  vf f;
  if (p->multiply) {
    f = vfloat(va) * vfloat(vb); /* exact: 18 bits at most */
    FL_APART(f);
    f = f * p->scale;
  } else
    f = fl_q_fused(vfloat(va), p->a_scale, fl_q_fused(vfloat(vb), p->b_scale, vset(p->scale)));
  return fl_round_to(f, p->zero, lo, hi);
}

FL_INLINE void fl_q_binary_of(const fl_qbinary *of, const int multiply, const int is_signed, const uint8_t *a, const uint8_t *b, int each,
                              uint8_t *y, int64_t n) {
  fl_qbinary p = *of; /* of our own: what is written through y cannot change it */
  p.multiply = multiply;
  uint8_t as[VW] = {0}, bs[VW] = {0}, ys[VW];
  if (!each)
    memset(bs, b[0], VW);
  const vi one = is_signed ? vwidens(bs) : vwiden(bs);
  int64_t i = 0;
  for (; i + 4 * VW <= n; i += 4 * VW) {
    vi v[4];
    FL_UNROLL for (int t = 0; t < 4; t++) {
      const uint8_t *pa = a + i + t * VW, *pb = b + i + t * VW;
      const vi va = is_signed ? vwidens(pa) : vwiden(pa), vb = !each ? one : is_signed ? vwidens(pb) : vwiden(pb);
      v[t] = fl_q_both(&p, is_signed, va, vb);
    }
    vnarrow4(y + i, is_signed, v);
  }
  for (; i + VW <= n; i += VW) {
    const vi va = is_signed ? vwidens(a + i) : vwiden(a + i), vb = !each ? one : is_signed ? vwidens(b + i) : vwiden(b + i);
    vnarrow(y + i, fl_q_both(&p, is_signed, va, vb));
  }
  if (i < n) {
    const int64_t m = n - i;
    memcpy(as, a + i, (size_t)m);
    if (each)
      memcpy(bs, b + i, (size_t)m);
    vnarrow(ys, fl_q_both(&p, is_signed, is_signed ? vwidens(as) : vwiden(as), is_signed ? vwidens(bs) : vwiden(bs)));
    memcpy(y + i, ys, (size_t)m);
  }
}

static void fl_q_binary(const fl_qbinary *p, const uint8_t *a, const uint8_t *b, int each, uint8_t *y, int64_t n) {
  if (n == 0)
    return;
  if (p->multiply)
    p->is_signed ? fl_q_binary_of(p, 1, 1, a, b, each, y, n) : fl_q_binary_of(p, 1, 0, a, b, each, y, n);
  else
    p->is_signed ? fl_q_binary_of(p, 0, 1, a, b, each, y, n) : fl_q_binary_of(p, 0, 0, a, b, each, y, n);
}

static void fl_q_add(const uint8_t *x, int is_signed, int32_t *restrict y, int64_t n) {
  if (is_signed)
    for (int64_t i = 0; i < n; i++)
      y[i] += (int8_t)x[i];
  else
    for (int64_t i = 0; i < n; i++)
      y[i] += x[i];
}

static void fl_q_larger(const uint8_t *x, int is_signed, uint8_t *restrict y, int64_t n) {
  const uint8_t flip = is_signed ? 0x80 : 0;
  for (int64_t i = 0; i < n; i++) {
    const uint8_t p = x[i] ^ flip, q = y[i] ^ flip;
    y[i] = (uint8_t)((p > q ? p : q) ^ flip);
  }
}

static void fl_q_lookup(const uint8_t *x, const uint8_t *table, uint8_t *y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  i = fl_q_lookup_wide(x, table, y, n);
#elif defined(__aarch64__)
  uint8x16x4_t part[4];
  for (int t = 0; t < 4; t++)
    part[t] = vld1q_u8_x4(table + 64 * t);
  for (; i + 16 <= n; i += 16) {
    const uint8x16_t at = vld1q_u8(x + i);
    uint8x16_t v = vqtbl4q_u8(part[0], at);
    for (int t = 1; t < 4; t++) /* places beyond the 64 of a part leave what is there */
      v = vqtbx4q_u8(v, part[t], vsubq_u8(at, vdupq_n_u8((uint8_t)(64 * t))));
    vst1q_u8(y + i, v);
  }
#endif
  for (; i < n; i++)
    y[i] = table[x[i]];
}

static const fl_quantized fl_quantized_table = {
    .block = fl_q_block,
    .depthwise = fl_q_depthwise,
    .rowsums = fl_q_rowsums,
    .panels = fl_q_panels,
    .flip = fl_q_flip,
    .quantize = fl_q_quantize,
    .dequantize = fl_q_dequantize,
    .requantize = fl_q_requantize,
    .range = fl_q_range,
    .correct = fl_q_correct,
    .binary = fl_q_binary,
    .add = fl_q_add,
    .larger = fl_q_larger,
    .lookup = fl_q_lookup,
};
