/* Kernels on quantized values: the packed product of bytes, depthwise convolution, conversions, sums of two arrays.
 *
 * Layouts and contracts are in quantized_table.h. Rests of vectors go through buffers on the stack. */
#include "lanes.h"
#include "quantized_table.h"

typedef int16_t vq __attribute__((vector_size(VW * 4)));
typedef uint8_t vub __attribute__((vector_size(VW)));
typedef int8_t vsb __attribute__((vector_size(VW)));
typedef uint16_t vuh1 __attribute__((vector_size(VW * 2)));
typedef int16_t vsh1 __attribute__((vector_size(VW * 2)));

/* Keeps a product from being contracted with the sum that follows. */
#if defined(__AVX512F__)
#define FL_APART(v) __asm__("" : "+v"(v))
#elif defined(__aarch64__)
#define FL_APART(v) __asm__("" : "+w"(v))
#else
#define FL_APART(v) __asm__("" : "+x"(v))
#endif

FL_INLINE vi viload(const int32_t *p) { return (vi)vload((const float *)p); }
FL_INLINE void vistore(int32_t *p, vi v) { vstore((float *)p, (vf)v); }

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

/* Bytes, unsigned and signed, as int32; int32 as bytes, their upper bits dropped. GCC 12 makes the general form of pieces. */
#if VW == 16
FL_INLINE vi vwiden(const uint8_t *p) { return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)); }
FL_INLINE vi vwidens(const uint8_t *p) { return (vi)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)); }
FL_INLINE void vnarrow(uint8_t *p, vi v) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)v)); }
#elif VW == 8
FL_INLINE vi vwiden(const uint8_t *p) { return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
FL_INLINE vi vwidens(const uint8_t *p) { return (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
FL_INLINE void vnarrow(uint8_t *p, vi v) {
  const __m256i low = (__m256i)(v & 255);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
}
#else
FL_INLINE vi vwiden(const uint8_t *p) {
  vub v;
  memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, vi);
}
FL_INLINE vi vwidens(const uint8_t *p) {
  vsb v;
  memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, vi);
}
FL_INLINE void vnarrow(uint8_t *p, vi v) {
  const vub y = __builtin_convertvector(v, vub);
  memcpy(p, &y, sizeof y);
}
#endif

/* round(f) + zero in lo .. hi; NaN becomes lo */
FL_INLINE vi fl_round_to(vf f, int32_t zero, int32_t lo, int32_t hi) {
  f = vmin(vmax(f, vset((float)(lo - zero))), vset((float)(hi - zero)));
  return vnear(f) + zero;
}
FL_INLINE void fl_limits(int kind, int32_t *lo, int32_t *hi) {
  *lo = kind == FL_INT8 ? -128 : kind == FL_INT16 ? -32768 : 0;
  *hi = kind == FL_INT8 ? 127 : kind == FL_UINT8 ? 255 : kind == FL_INT16 ? 32767 : 65535;
}

/* Sixteen sums of row i from column j on to where they belong, `left` of them at most. */
static __attribute__((noinline)) void fl_qfinish(const fl_qepilogue *e, const int32_t *sum, int64_t i, int64_t j, void *out, int64_t at,
                                                 int64_t left) {
  const int64_t n = left < FL_PANEL ? left : FL_PANEL;
  uint8_t bytes[FL_PANEL];
  int32_t words[FL_PANEL];
  int32_t lo, hi;
  fl_limits(e->kind, &lo, &hi);
  FL_UNROLL for (int t = 0; t < FL_PANEL / VW; t++) {
    vi v = viload(sum + t * VW) + viload(e->offset + j + t * VW);
    if (e->zero)
      v -= viload(e->zero + j + t * VW) * e->rowsum[i];
    if (e->kind == FL_INT32) {
      vistore(n == FL_PANEL ? (int32_t *)out + at + t * VW : words + t * VW, v);
      continue;
    }
    vf f = vfloat(v) * vload(e->scale + j + t * VW);
    if (e->kind == FL_FLOAT32) {
      if (e->shift) {
        FL_APART(f);
        f = f + vload(e->shift + j + t * VW);
      }
      vistore(n == FL_PANEL ? (int32_t *)out + at + t * VW : words + t * VW, vbits(f));
    } else
      vnarrow(n == FL_PANEL ? (uint8_t *)out + at + t * VW : bytes + t * VW, fl_round_to(f, e->y_zero, lo, hi));
  }
  if (n < FL_PANEL) {
    if (e->kind == FL_INT32 || e->kind == FL_FLOAT32)
      memcpy((int32_t *)out + at, words, (size_t)n * 4);
    else
      memcpy((uint8_t *)out + at, bytes, (size_t)n);
  }
}

/* What most sums become, whole panels of bytes from weights without zero points: m rows of sums, `ldsum` numbers apart. */
static __attribute__((noinline)) void fl_qfinish_bytes(const fl_qepilogue *e, const int32_t *sums, int64_t ldsum, int64_t m, int64_t j,
                                                       uint8_t *out, int64_t ldc) {
  vi offset[FL_PANEL / VW];
  vf scale[FL_PANEL / VW];
  int32_t lo, hi;
  fl_limits(e->kind, &lo, &hi);
  const vf least = vset((float)(lo - e->y_zero)), most = vset((float)(hi - e->y_zero));
  FL_UNROLL for (int t = 0; t < FL_PANEL / VW; t++) {
    offset[t] = viload(e->offset + j + t * VW);
    scale[t] = vload(e->scale + j + t * VW);
  }
  for (int64_t i = 0; i < m; i++, sums += ldsum, out += ldc)
    FL_UNROLL for (int t = 0; t < FL_PANEL / VW; t++) {
      const vf f = vfloat(viload(sums + t * VW) + offset[t]) * scale[t];
      vnarrow(out + t * VW, vnear(vmin(vmax(f, least), most)) + e->y_zero);
    }
}
FL_INLINE int fl_plain_bytes(const fl_qepilogue *e, int64_t left) {
  return left >= FL_PANEL && !e->zero && (e->kind == FL_UINT8 || e->kind == FL_INT8);
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
#define FL_TM 1
#include "quantized_tile.h"
#if FL_QROWS > 1
#define FL_TP 1
#define FL_TM 2
#include "quantized_tile.h"
#define FL_TP 1
#define FL_TM 3
#include "quantized_tile.h"
#endif
#if FL_QROWS > 3
#define FL_TP 1
#define FL_TM 4
#include "quantized_tile.h"
#define FL_TP 1
#define FL_TM 5
#include "quantized_tile.h"
#define FL_TP 1
#define FL_TM 6
#include "quantized_tile.h"
#define FL_TP 1
#define FL_TM 7
#include "quantized_tile.h"
#define FL_TP 1
#define FL_TM 8
#include "quantized_tile.h"
#endif
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

static void fl_q_flip(const uint8_t *x, uint8_t *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = x[i] ^ 0x80;
}

/* ---- depthwise ------------------------------------------------------------------------------------------------------------- */

#define FL_QPIXELS (VREGS == 32 && VW < 16 ? 2 : VW == 16 ? 4 : VW == 8 ? 2 : 1) /* worked on together */

static void fl_q_depthwise(const fl_qdepthwise *p) {
  const int64_t wide = (p->c + FL_PANEL - 1) / FL_PANEL * FL_PANEL;
  for (int64_t j = 0; j < p->c; j += FL_PANEL) {
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

static void fl_q_binary(const fl_qbinary *p, const uint8_t *a, const uint8_t *b, int each, uint8_t *y, int64_t n) {
  int32_t lo, hi;
  fl_limits(p->is_signed ? FL_INT8 : FL_UINT8, &lo, &hi);
  for (int64_t i = 0; i < n; i += VW) {
    uint8_t as[VW] = {0}, bs[VW] = {0}, ys[VW];
    const int64_t m = n - i < VW ? n - i : VW;
    const uint8_t *pa = a + i, *pb = b + i;
    if (m < VW) {
      memcpy(as, pa, (size_t)m);
      pa = as;
    }
    if (!each)
      memset(bs, b[0], VW);
    else if (m < VW)
      memcpy(bs, pb, (size_t)m);
    if (!each || m < VW)
      pb = bs;
    const vi va = (p->is_signed ? vwidens(pa) : vwiden(pa)) - p->a_zero, vb = (p->is_signed ? vwidens(pb) : vwiden(pb)) - p->b_zero;
    vf f;
    if (p->multiply) {
      f = vfloat(va) * vfloat(vb); /* exact: 18 bits at most */
      FL_APART(f);
      f = f * p->scale;
    } else
      f = fl_q_fused(vfloat(va), p->a_scale, fl_q_fused(vfloat(vb), p->b_scale, vset(p->scale)));
    const vi v = fl_round_to(f, p->zero, lo, hi);
    vnarrow(m < VW ? ys : y + i, v);
    if (m < VW)
      memcpy(y + i, ys, (size_t)m);
  }
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

static const fl_quantized fl_quantized_table = {
    .block = fl_q_block,
    .depthwise = fl_q_depthwise,
    .rowsums = fl_q_rowsums,
    .flip = fl_q_flip,
    .quantize = fl_q_quantize,
    .dequantize = fl_q_dequantize,
    .requantize = fl_q_requantize,
    .range = fl_q_range,
    .binary = fl_q_binary,
    .add = fl_q_add,
    .larger = fl_q_larger,
};
