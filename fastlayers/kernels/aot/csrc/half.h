/* Products with weights of 16 bits, which are widened, exactly, on their way into the registers: bound by memory, they take half the
 * time. Sums are float32's, formed in the order of gemm.h, so they are the bits that float32 weights of the same values give.
 *
 * Where the processor multiplies pairs of bfloat16 (half_dot.h), x is rounded to bfloat16 too, and sums are of pairs, unless the kind
 * is FL_BRAIN_EXACT. */

#include "half_parts.h"

#define FL_HALF_ROWS 48 /* rows of x that are rounded at once */
#define FL_HALF_WIDE 4  /* panels that are widened at once for several rows: 64 KB */

/* ---- packing ------------------------------------------------------------------------------------------------------------- */

static void fl_half_pack(int kind, const float *panel, int64_t klen, uint16_t *to) {
  if (kind == FL_HALF) {
    fl_cast_f32_f16(panel, to, klen * FL_PANEL);
    return;
  }
  for (int64_t t = 0; t < klen + (klen & 1); t++)
    for (int64_t j = 0; j < FL_PANEL; j++)
      to[(t / 2 * FL_PANEL + j) * 2 + t % 2] = t < klen ? fl_brain_of(panel[t * FL_PANEL + j]) : 0;
}

/* ---- widening ------------------------------------------------------------------------------------------------------------ */

/* the first and second of pairs */
FL_INLINE vi fl_pairs(const uint16_t *p) { return (vi)vload((const float *)(const void *)p); }
FL_INLINE vf fl_brain_first(vi pairs) { return (vf)((vu)pairs << 16); }
FL_INLINE vf fl_brain_second(vi pairs) { return (vf)((vu)pairs & 0xffff0000u); }

/* A panel of a block of K as floats, with the term that pairs it, if any. */
static void fl_half_widen(int kind, const uint16_t *b, int64_t klen, float *to) {
  if (kind == FL_HALF)
    for (int64_t i = 0; i < klen * FL_PANEL; i += VW)
      vstore(to + i, fl_half_wide(b + i));
  else
    for (int64_t t = 0; t < klen; t += 2)
      for (int64_t v = 0; v < FL_PANEL; v += VW) {
        const vi pairs = fl_pairs(b + (t * FL_PANEL + 2 * v));
        vstore(to + t * FL_PANEL + v, fl_brain_first(pairs));
        vstore(to + (t + 1) * FL_PANEL + v, fl_brain_second(pairs));
      }
}

/* ---- one row ------------------------------------------------------------------------------------------------------------- */

#if VW == 16
#define FL_HALF_MOST 8
#define FL_HALF_PART 1
#else
#define FL_HALF_MOST 4
#define FL_HALF_PART 2
#endif

/* Sums of a block of K for one row and `panels` panels, with stride `stream`; each is one chain in the order of k. */
FL_INLINE void fl_half_sums(const int kind, const int panels, const uint16_t *b, int64_t stream, const float *x, int64_t klen, float *sums) {
  for (int64_t lane = 0; lane < FL_PANEL; lane += FL_HALF_PART * VW) {
    const uint16_t *from = b + (kind == FL_HALF ? lane : 2 * lane);
    vf acc[FL_HALF_MOST][FL_HALF_PART];
    FL_UNROLL for (int q = 0; q < panels; q++)
      FL_UNROLL for (int v = 0; v < FL_HALF_PART; v++) acc[q][v] = vset(0);
    if (kind == FL_HALF)
      for (int64_t i = 0; i < klen; i++, from += FL_PANEL) {
        const vf s = vset(x[i]);
        FL_UNROLL for (int q = 0; q < panels; q++)
          FL_UNROLL for (int v = 0; v < FL_HALF_PART; v++)
            acc[q][v] = vfma(s, fl_half_wide(from + q * stream + v * VW), acc[q][v]);
      }
    else {
      int64_t i = 0;
      for (; i + 2 <= klen; i += 2, from += 2 * FL_PANEL) {
        const vf s = vset(x[i]), t = vset(x[i + 1]);
        FL_UNROLL for (int q = 0; q < panels; q++)
          FL_UNROLL for (int v = 0; v < FL_HALF_PART; v++) {
            const vi pairs = fl_pairs(from + q * stream + 2 * v * VW);
            acc[q][v] = vfma(s, fl_brain_first(pairs), acc[q][v]);
            acc[q][v] = vfma(t, fl_brain_second(pairs), acc[q][v]);
          }
      }
      if (i < klen) {
        const vf s = vset(x[i]);
        FL_UNROLL for (int q = 0; q < panels; q++)
          FL_UNROLL for (int v = 0; v < FL_HALF_PART; v++)
            acc[q][v] = vfma(s, fl_brain_first(fl_pairs(from + q * stream + 2 * v * VW)), acc[q][v]);
      }
    }
    FL_UNROLL for (int q = 0; q < panels; q++)
      FL_UNROLL for (int v = 0; v < FL_HALF_PART; v++) vstore(sums + q * FL_PANEL + lane + v * VW, acc[q][v]);
  }
}

#define FL_HALF_SUMS(panels)                                                                                                          \
  static __attribute__((noinline)) void fl_half_sums_##panels(int kind, const uint16_t *b, int64_t stream, const float *x, int64_t klen, \
                                                              float *sums) {                                                          \
    if (kind == FL_HALF)                                                                                                              \
      fl_half_sums(FL_HALF, panels, b, stream, x, klen, sums);                                                                        \
    else                                                                                                                              \
      fl_half_sums(FL_BRAIN, panels, b, stream, x, klen, sums);                                                                       \
  }
FL_HALF_SUMS(1)
FL_HALF_SUMS(2)
FL_HALF_SUMS(4)
#if FL_HALF_MOST == 8
FL_HALF_SUMS(8)
#endif

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

static void fl_half_one(const fl_half_block *p) {
  const int64_t panels = (p->n + FL_PANEL - 1) / FL_PANEL;
  int64_t k0 = 0;
  do {
    const int64_t klen = fl_half_klen(p->k, k0), stream = fl_half_even(p->kind, klen) * FL_PANEL;
    const int begins = k0 == 0, ends = k0 + klen == p->k;
    float sums[FL_HALF_MOST * FL_PANEL];
    for (int64_t j = 0; j < panels;) {
      const uint16_t *b = fl_half_at(p, p->first + j, k0, klen);
      const float *x = p->rows[0] + k0;
      int64_t count = 1;
#if FL_HALF_MOST == 8
      if (panels - j >= 8)
        fl_half_sums_8(p->kind, b, stream, x, klen, sums), count = 8;
      else
#endif
          if (panels - j >= 4)
        fl_half_sums_4(p->kind, b, stream, x, klen, sums), count = 4;
      else if (panels - j >= 2)
        fl_half_sums_2(p->kind, b, stream, x, klen, sums), count = 2;
      else
        fl_half_sums_1(p->kind, b, stream, x, klen, sums);
      fl_half_store(p, sums, count * FL_PANEL, 0, 1, j * FL_PANEL, begins, ends);
      j += count;
    }
    k0 += klen;
  } while (k0 < p->k);
}

/* Panels are widened once for all rows. */
static __attribute__((noinline)) void fl_half_many(const fl_half_block *p) {
  _Alignas(64) float wide[FL_HALF_WIDE * (FL_KC + 1) * FL_PANEL];
  const int64_t panels = (p->n + FL_PANEL - 1) / FL_PANEL;
  int64_t k0 = 0;
  do {
    const int64_t klen = fl_half_klen(p->k, k0);
    const fl_run run = {k0, klen};
    const int64_t *starts = p->starts ? p->starts + k0 / FL_KC : 0;
    for (int64_t j = 0; j < panels; j += FL_HALF_WIDE) {
      const int64_t count = panels - j < FL_HALF_WIDE ? panels - j : FL_HALF_WIDE, left = p->n - j * FL_PANEL;
      for (int64_t q = 0; q < count; q++) /* the term that makes a pair is where the next panel begins, or after the last */
        fl_half_widen(p->kind, fl_half_at(p, p->first + j + q, k0, klen), klen, wide + q * klen * FL_PANEL);
      fl_epilogue e = {.code = FL_IDENTITY};
      if (p->epilogue) {
        e = *p->epilogue;
        e.bias = e.bias ? e.bias + j * FL_PANEL : 0;
        e.residual = e.residual ? e.residual + j * FL_PANEL : 0;
      }
      const fl_block block = {.rows = p->rows, .m = p->m, .n = left < count * FL_PANEL ? left : count * FL_PANEL, .runs = starts ? p->runs + starts[0] : &run,
                              .nruns = starts ? starts[1] - starts[0] : 1, .klen = klen, .b = wide, .c = p->c + j * FL_PANEL, .ldc = p->ldc, .accumulate = k0 > 0,
                              .epilogue = p->epilogue && k0 + klen == p->k ? &e : 0};
      fl_f32_block(&block);
    }
    k0 += klen;
  } while (k0 < p->k);
}

#if VW == 16
#include "half_dot.h"
#include "half_few.h"
#endif

static void fl_half_product(const fl_half_block *p) {
  if (p->m <= 0 || p->n <= 0)
    return;
#if VW == 16
  if (p->kind == FL_BRAIN && fl_has_brain()) {
    fl_half_pairs(p);
    return;
  }
#endif
#if VW == 16
  if (!p->starts && p->m > 1 && p->m <= FL_HALF_FEW) {
    fl_half_few(p);
    return;
  }
#endif
  if (p->m == 1 && !p->starts)
    fl_half_one(p);
  else
    fl_half_many(p);
}

static void fl_half_end(int *tiles) { (void)tiles; } /* none to release */

#if VW == 16
static int fl_half_native(int kind) { return kind == FL_BRAIN && fl_has_brain() ? 2 : 0; }
static FL_BRAIN_TARGET void fl_half_round(const float *x, int64_t n, uint16_t *to) {
  for (int64_t t = 0; t < n; t += 16) {
    const __mmask16 some = n - t >= 16 ? 0xffff : (__mmask16)((1u << (n - t)) - 1);
    _mm256_mask_storeu_epi16(to + t, some, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, x + t)));
  }
}
#else
static int fl_half_native(int kind) { return (void)kind, 0; }
#define fl_half_round 0
#endif

static const fl_halves fl_halves_table = {
    .block = fl_half_product, .end = fl_half_end, .native = fl_half_native, .round = fl_half_round, .pack = fl_half_pack};
