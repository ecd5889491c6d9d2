/* The packed product with AVX512-VNNI, which multiplies quads of bytes (uint8 by int8) and adds them to int32 exactly. Not every
 * processor of the level has it: `fl_has_dot` asks. Included by quantized.h. */
#include <cpuid.h>

#define FL_DOT_TARGET __attribute__((target("avx512vnni")))
#define FL_DOT(acc, a, b) (vi) _mm512_dpbusd_epi32((__m512i)(acc), (__m512i)(a), (__m512i)(b))

FL_INLINE vi fl_quad(const uint8_t *p) { return vseti((int32_t)fl_quad_bits(p)); }

/* The bits of cpuid's leaf 7 that say what the processor has beyond the level. */
static unsigned fl_more(void) {
  static unsigned known; /* bit 0: asked; threads that ask at once find the same */
  unsigned found = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!found) {
    unsigned a, b, c = 0, d;
    found = (__get_cpuid_count(7, 0, &a, &b, &c, &d) ? c : 0) | 1u;
    __atomic_store_n(&known, found, __ATOMIC_RELAXED);
  }
  return found;
}
static int fl_has_dot(void) { return fl_more() >> 11 & 1; }

/* Entries of a table for whole vectors of bytes, with AVX512-VBMI; returns how many are done. */
static __attribute__((target("avx512vbmi"))) int64_t fl_q_lookup_wide(const uint8_t *x, const uint8_t *table, uint8_t *y, int64_t n) {
  int64_t i = 0;
  if (!(fl_more() >> 1 & 1))
    return 0;
  const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64);
  const __m512i c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
  for (; i + 64 <= n; i += 64) {
    const __m512i at = _mm512_loadu_si512(x + i);
    const __m512i low = _mm512_permutex2var_epi8(a, at, b), high = _mm512_permutex2var_epi8(c, at, d);
    _mm512_storeu_si512(y + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
  return i;
}

/* Four vectors of sums as 64 bytes: those of 4, 2 or 1 rows of 1, 2 or 4 panels. What is too large for int32 is cut off before it is
 * converted, what is too small, and NaN, becomes the least int32 there; both are cut off as they are packed. */
FL_INLINE __m512i fl_dot_bytes(const vi *sums, const __m512i *offset, const __m512 *scale, const int panels, __m512 most, __m512i zero,
                               int is_signed) {
  __m512i v[4];
  FL_UNROLL for (int t = 0; t < 4; t++) {
    const __m512 f = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32((__m512i)sums[t], offset[t % panels])), scale[t % panels]);
    v[t] = _mm512_cvtps_epi32(_mm512_min_ps(most, f)); /* NaN is kept */
  }
  const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero);
  const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero);
  /* a lane of 128 bits has four columns of each vector */
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  return _mm512_permutexvar_epi32(order, is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high));
}

#define FL_TP 1
#define FL_TALLEST 12
#include "quantized_tiles.h"
#define FL_TP 2
#define FL_TALLEST 12
#include "quantized_tiles.h"
#define FL_TP 4
#define FL_TALLEST 6
#include "quantized_tiles.h"

static void fl_q_block_dot(const fl_qblock *p) {
  static const fl_qtile_fn one[] = {0, fl_dot_1x1, fl_dot_2x1, fl_dot_3x1, fl_dot_4x1, fl_dot_5x1, fl_dot_6x1, fl_dot_7x1, fl_dot_8x1, fl_dot_9x1, fl_dot_10x1, fl_dot_11x1, fl_dot_12x1};
  static const fl_qtile_fn two[] = {0, fl_dot_1x2, fl_dot_2x2, fl_dot_3x2, fl_dot_4x2, fl_dot_5x2, fl_dot_6x2, fl_dot_7x2, fl_dot_8x2, fl_dot_9x2, fl_dot_10x2, fl_dot_11x2, fl_dot_12x2};
  static const fl_qtile_fn four[] = {0, fl_dot_1x4, fl_dot_2x4, fl_dot_3x4, fl_dot_4x4, fl_dot_5x4, fl_dot_6x4};
  if (p->m <= 6)
    fl_qwalk(p, one, four, 6, 4);
  else
    fl_qwalk(p, one, two, 12, 2);
}

/* Columns from j on of an array of a number per column, padded to whole panels, in the order of a block's sums. */
FL_INLINE void fl_q_spread(const void *from, int64_t j, int64_t wide, __m512i *to) {
  int32_t all[64] = {0};
  memcpy(all, (const int32_t *)from + j, (size_t)(wide - j < 64 ? wide - j : 64) * 4);
  FL_UNROLL for (int t = 0; t < 4; t++) {
    int32_t some[16];
    for (int i = 0; i < 16; i++)
      some[i] = all[i / 4 * 16 + t * 4 + i % 4];
    to[t] = _mm512_loadu_si512(some);
  }
}

/* Pixels o .. o + count - 1 of 64 channels, or of those in `some`. */
FL_INLINE FL_DOT_TARGET void fl_q_pixels(const fl_qdepthwise *p, const int count, int64_t o, int64_t j, __mmask64 some, int64_t quad,
                                         const __m512i *offset, const __m512i *scale) {
  int32_t lo, hi;
  fl_limits(p->e.kind, &lo, &hi);
  const int64_t step = p->step, quads = (p->pairs + 1) / 2;
  const int8_t *w = p->bytes + j * 4;
  __m512i sum[2][4];
  FL_UNROLL for (int q = 0; q < count; q++)
    FL_UNROLL for (int t = 0; t < 4; t++) sum[q][t] = offset[t];
  for (int64_t u = 0; u < quads; u++, w += quad) {
    const uint8_t *const *tap = p->taps + 4 * u;
    FL_UNROLL for (int q = 0; q < count; q++) {
      __m512i x[4];
      FL_UNROLL for (int t = 0; t < 4; t++) x[t] = _mm512_maskz_loadu_epi8(some, tap[t] + (o + q) * step + j);
      const __m512i a = _mm512_unpacklo_epi8(x[0], x[1]), b = _mm512_unpackhi_epi8(x[0], x[1]);
      const __m512i c = _mm512_unpacklo_epi8(x[2], x[3]), d = _mm512_unpackhi_epi8(x[2], x[3]);
      sum[q][0] = _mm512_dpbusd_epi32(sum[q][0], _mm512_unpacklo_epi16(a, c), _mm512_loadu_si512(w));
      sum[q][1] = _mm512_dpbusd_epi32(sum[q][1], _mm512_unpackhi_epi16(a, c), _mm512_loadu_si512(w + 64));
      sum[q][2] = _mm512_dpbusd_epi32(sum[q][2], _mm512_unpacklo_epi16(b, d), _mm512_loadu_si512(w + 128));
      sum[q][3] = _mm512_dpbusd_epi32(sum[q][3], _mm512_unpackhi_epi16(b, d), _mm512_loadu_si512(w + 192));
    }
  }
  FL_UNROLL for (int q = 0; q < count; q++) {
    __m512i v[4];
    FL_UNROLL for (int t = 0; t < 4; t++) v[t] = (__m512i)fl_round_to(vfloat((vi)sum[q][t]) * (vf)scale[t], p->e.y_zero, lo, hi);
    const __m512i low = _mm512_packs_epi32(v[0], v[1]), high = _mm512_packs_epi32(v[2], v[3]);
    const __m512i y = lo < 0 ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    _mm512_mask_storeu_epi8((uint8_t *)p->out + (o + q) * p->ldc + j, some, y);
  }
}

/* Blocks of 64 channels, the last one if it has at least half of them; returns the first channel that is left. */
static FL_DOT_TARGET int64_t fl_q_depthwise_dot(const fl_qdepthwise *p) {
  const int64_t wide = (p->c + FL_PANEL - 1) / FL_PANEL * FL_PANEL, quad = (p->c + 63) / 64 * 256;
  int64_t j = 0;
  for (; p->c - j >= 32; j += 64) {
    const __mmask64 some = p->c - j >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (p->c - j)) - 1;
    __m512i offset[4], scale[4];
    fl_q_spread(p->e.offset, j, wide, offset);
    fl_q_spread(p->e.scale, j, wide, scale);
    int64_t o = 0;
    for (; o + 2 <= p->cols; o += 2)
      fl_q_pixels(p, 2, o, j, some, quad, offset, scale);
    if (o < p->cols)
      fl_q_pixels(p, 1, o, j, some, quad, offset, scale);
  }
  return j < p->c ? j : p->c;
}
#undef FL_DOT
#undef FL_DOT_TARGET
