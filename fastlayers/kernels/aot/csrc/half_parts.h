/* What products with weights of 16 bits share: where panels are, bfloat16 rounded from float32, and what becomes of sums. Included by
 * half.h and amx_half.h, after a level's vector header; `fl_f32_unary` is defined before. */

FL_INLINE int64_t fl_half_even(int kind, int64_t k) { return kind == FL_HALF ? k : k + (k & 1); }
FL_INLINE int64_t fl_half_klen(int64_t k, int64_t k0) { return k - k0 < FL_KC ? k - k0 : FL_KC; }

/* Where a panel of the block of K that begins with k0 is. */
FL_INLINE const uint16_t *fl_half_at(const fl_half_block *p, int64_t panel, int64_t k0, int64_t klen) {
  return p->b + (p->panels * k0 + panel * fl_half_even(p->kind, klen)) * FL_PANEL;
}

/* VW float16 as floats. */
FL_INLINE vf fl_half_wide(const uint16_t *p) {
#if VW == 16
  return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
#elif VW == 8
  return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
#elif defined(__aarch64__)
  return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else
  vu h;
  FL_UNROLL for (int i = 0; i < VW; i++) h[i] = p[i];
  /* as fl_of_half: what is below 2^-14 as a float of 2^-14 and more, less 2^-14 */
  const vu size = h & 0x7fff, bits = (size << 13) + (112u << 23);
  const vi small = (vi)((vf)(bits + (1u << 23)) - 0x1p-14f);
  const vi large = (vi)((bits + (112u << 23)) | ((vu)(size > 0x7c00) & 0x400000));
  const vi some = vseli((vi)(size < 0x400), small, vseli((vi)(size < 0x7c00), (vi)bits, large));
  return (vf)(some | (vi)((h & 0x8000) << 16));
#endif
}

/* ---- rounding ------------------------------------------------------------------------------------------------------------ */

FL_INLINE uint16_t fl_brain_of(float x) {
  const uint32_t bits = fl_bits_of(x);
  return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#if VW == 16
#include <cpuid.h>
#define FL_BRAIN_TARGET __attribute__((target("avx512bf16")))

/* Not every processor of the level has AVX512-BF16. */
static int fl_has_brain(void) {
  static int known; /* 1: no, 2: yes; threads that ask at once find the same */
  int found = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!found) {
    unsigned a = 0, b, c, d;
    found = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 5) ? 2 : 1;
    __atomic_store_n(&known, found, __ATOMIC_RELAXED);
  }
  return found == 2;
}

/* Terms k0 .. k0 + klen - 1 of m rows in bfloat16, [row][FL_KC], with zeros up to `padded` of them, a multiple of 16. As in the
 * instruction, subnormals become 0. */
static FL_BRAIN_TARGET void fl_brain_rows(const float *const *rows, int64_t m, int64_t k0, int64_t klen, int64_t padded, uint16_t *to) {
  for (int64_t i = 0; i < m; i++, to += FL_KC) {
    const float *x = rows[i] + k0;
    int64_t t = 0;
    for (; t + 32 <= klen; t += 32)
      _mm512_storeu_si512(to + t, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + t + 16), _mm512_loadu_ps(x + t)));
    for (; t < padded; t += 16) {
      const int64_t left = klen - t;
      const __mmask16 some = left >= 16 ? 0xffff : left <= 0 ? 0 : (__mmask16)((1u << left) - 1);
      _mm256_storeu_si256((__m256i *)(to + t), (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, x + t)));
    }
  }
}
#endif

/* Terms of m rows that are in bfloat16 already, [row][FL_KC], with zeros up to `padded` of them. */
static inline void fl_half_gather(const uint16_t *const *rows, int64_t m, const fl_run *runs, int64_t nruns, int64_t padded, uint16_t *to) {
  for (int64_t i = 0; i < m; i++, to += FL_KC) {
    uint16_t *at = to;
    for (int64_t r = 0; r < nruns; r++) {
      const uint16_t *x = rows[i] + runs[r].offset;
      const int64_t length = runs[r].length;
#if VW == 16
      for (int64_t t = 0; t < length; t += 32) {
        const __mmask32 some = length - t >= 32 ? 0xffffffff : (__mmask32)((1u << (length - t)) - 1);
        _mm512_mask_storeu_epi16(at + t, some, _mm512_maskz_loadu_epi16(some, x + t));
      }
#else
      memcpy(at, x, (size_t)length * 2);
#endif
      at += length;
    }
    memset(at, 0, (size_t)(to + padded - at) * 2);
  }
}

/* ---- results ------------------------------------------------------------------------------------------------------------- */

/* The function of an epilogue, unless it was applied with the rest. */
static void fl_half_function(const fl_half_block *p, int64_t i0, int64_t m, int64_t j0, int64_t cols) {
  const fl_epilogue *e = p->epilogue;
  for (int64_t i = i0; i < i0 + m && e->code > FL_RELU; i++)
    fl_f32_unary(e->code, e->a, e->b, p->c + i * p->ldc + j0, p->c + i * p->ldc + j0, cols);
}

/* Sums [m][lds] with the epilogue but its function, if that is not relu, into c; they may be c. */
static void fl_half_finish(const float *sums, int64_t lds, int64_t m, int64_t cols, float *c, int64_t ldc, int add, const fl_epilogue *e,
                           const float *bias, const float *residual) {
  const int64_t whole = cols / VW * VW, ldr = residual ? e->ldr : 0;
  const int relu = e && e->code == FL_RELU;
  const vf least = vset(relu ? 0 : -__builtin_inff()); /* NaN passes */
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < whole; j += VW) {
      vf v = vload(sums + i * lds + j);
      if (add)
        v = vload(c + i * ldc + j) + v;
      if (bias)
        v = v + vload(bias + j);
      if (residual)
        v = v + vload(residual + i * ldr + j);
      vstore(c + i * ldc + j, vmax(least, v));
    }
#if VW == 16
  const __mmask16 some = (__mmask16)((1u << (cols - whole)) - 1);
  for (int64_t i = 0; i < m && some; i++) {
    vf v = (vf)_mm512_maskz_loadu_ps(some, sums + i * lds + whole);
    if (add)
      v = (vf)_mm512_maskz_loadu_ps(some, c + i * ldc + whole) + v;
    if (bias)
      v = v + (vf)_mm512_maskz_loadu_ps(some, bias + whole);
    if (residual)
      v = v + (vf)_mm512_maskz_loadu_ps(some, residual + i * ldr + whole);
    _mm512_mask_storeu_ps(c + i * ldc + whole, some, (__m512)vmax(least, v));
  }
#else
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = whole; j < cols; j++) {
      float v = add ? c[i * ldc + j] + sums[i * lds + j] : sums[i * lds + j];
      if (bias)
        v = v + bias[j];
      if (residual)
        v = v + residual[i * ldr + j];
      c[i * ldc + j] = relu && 0 > v ? 0 : v;
    }
#endif
}

/* A block's sums [m][lds] into rows i0 .. i0 + m and up to lds columns from j0 on; bias, residual and function after the last one. */
static void fl_half_store(const fl_half_block *p, float *sums, int64_t lds, int64_t i0, int64_t m, int64_t j0, int begins, int ends) {
  const int64_t cols = p->n - j0 < lds ? p->n - j0 : lds, ldc = p->ldc;
  const fl_epilogue *e = ends ? p->epilogue : 0;
  const float *bias = e && e->bias ? e->bias + j0 : 0, *residual = e && e->residual ? e->residual + i0 * e->ldr + j0 : 0;
  float *c = p->c + i0 * ldc + j0;
  fl_half_finish(sums, lds, m, cols, c, ldc, !begins, e, bias, residual);
  if (e)
    fl_half_function(p, i0, m, j0, cols);
}
