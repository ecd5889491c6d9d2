/* What products with weights of 16 bits share: where panels are, bfloat16 rounded from float32, and what becomes of sums. Included by
 * half.h and amx_half.h, after a level's vector header; `fl_f32_unary` is defined before. */

FL_INLINE int64_t fl_half_even(int kind, int64_t k) { return kind == FL_BRAIN ? k + (k & 1) : k; }
FL_INLINE int64_t fl_half_klen(int64_t k, int64_t k0) { return k - k0 < FL_KC ? k - k0 : FL_KC; }

/* Where a panel of the block of K that begins with k0 is. */
FL_INLINE const uint16_t *fl_half_at(const fl_half_block *p, int64_t panel, int64_t k0, int64_t klen) {
  return p->b + (p->panels * k0 + panel * fl_half_even(p->kind, klen)) * FL_PANEL;
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
    for (int64_t t = 0; t < padded; t += 16) {
      const int64_t left = klen - t;
      const __mmask16 some = left >= 16 ? 0xffff : left <= 0 ? 0 : (__mmask16)((1u << left) - 1);
      _mm256_storeu_si256((__m256i *)(to + t), (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, x + t)));
    }
  }
}
#endif

/* ---- results ------------------------------------------------------------------------------------------------------------- */

/* A block's sums [m][lds] into rows i0 .. i0 + m and up to lds columns from j0 on; bias, residual and function after the last one. */
static void fl_half_store(const fl_half_block *p, const float *sums, int64_t lds, int64_t i0, int64_t m, int64_t j0, int begins, int ends) {
  const int64_t cols = p->n - j0 < lds ? p->n - j0 : lds, whole = cols / VW * VW;
  const fl_epilogue *e = ends ? p->epilogue : 0;
  const float *bias = e && e->bias ? e->bias + j0 : 0;
  const int relu = e && e->code == FL_RELU;
  for (int64_t i = 0; i < m; i++) {
    const float *s = sums + i * lds, *residual = e && e->residual ? e->residual + (i0 + i) * e->ldr + j0 : 0;
    float *c = p->c + (i0 + i) * p->ldc + j0;
    for (int64_t j = 0; j < whole; j += VW) {
      vf v = vload(s + j);
      if (!begins)
        v = vload(c + j) + v;
      if (bias)
        v = v + vload(bias + j);
      if (residual)
        v = v + vload(residual + j);
      vstore(c + j, relu ? vmax(vset(0), v) : v); /* NaN passes */
    }
    for (int64_t j = whole; j < cols; j++) {
      float v = begins ? s[j] : c[j] + s[j];
      if (bias)
        v = v + bias[j];
      if (residual)
        v = v + residual[j];
      c[j] = relu && 0 > v ? 0 : v;
    }
    if (e && e->code > FL_RELU)
      fl_f32_unary(e->code, e->a, e->b, c, c, cols);
  }
}
