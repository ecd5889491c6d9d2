/* What becomes of the sums of bytes: vectors of bytes as int32 and back, rounding, and the epilogue of quantized_table.h. Included by
 * quantized.h and amx.h, after a level's vector header. */
#ifndef FL_QUANTIZED_FINISH_H
#define FL_QUANTIZED_FINISH_H
#include "kernels.h"

typedef uint8_t vub __attribute__((vector_size(VW)));
typedef int8_t vsb __attribute__((vector_size(VW)));

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

/* Four vectors of values within int8, or within uint8, as 4 VW bytes. */
FL_INLINE void vnarrow4(uint8_t *p, const int is_signed, const vi *v) {
#if VW == 16
  const __m512i low = _mm512_packs_epi32((__m512i)v[0], (__m512i)v[1]), high = _mm512_packs_epi32((__m512i)v[2], (__m512i)v[3]);
  const __m512i bytes = is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, bytes));
#else
  (void)is_signed;
  FL_UNROLL for (int t = 0; t < 4; t++) vnarrow(p + t * VW, v[t]);
#endif
}

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

/* What most sums become, whole panels of bytes from weights without zero points: m rows of sums with stride `ldsum`. */
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
#endif
