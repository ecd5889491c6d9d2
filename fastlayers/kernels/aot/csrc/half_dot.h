/* Products of pairs of bfloat16 with AVX512-BF16. `fl_has_brain` asks for it. Included by half.h.
 *
 * x is rounded to bfloat16. A sum over a block of K is one chain of pairs in order, from zero, whatever the tile: its bits depend on no
 * other row. The instruction takes subnormals for zeros. */
/* Where a tile's sums go to, as they are or added to what is there; and `fetch` panels that come later, fetched meanwhile. */
typedef struct {
  float *to;
  int64_t ld;
  int add, fetch;
  const uint16_t *ahead;
} fl_brain_sums;
typedef void (*fl_brain_fn)(const uint16_t *x, const uint16_t *b, int64_t stream, int64_t pairs, const fl_brain_sums *s);

FL_INLINE FL_BRAIN_TARGET void fl_brain_tile(const int m, const int panels, const uint16_t *x, const uint16_t *b, int64_t stream, int64_t pairs,
                                             const fl_brain_sums *s) {
  const uint16_t *ahead = s->ahead;
  const int fetch = s->fetch;
  __m512 acc[8][8];
  FL_UNROLL for (int i = 0; i < m; i++)
    FL_UNROLL for (int q = 0; q < panels; q++) acc[i][q] = _mm512_setzero_ps();
  for (int64_t t = 0; t < pairs; t++, b += 2 * FL_PANEL, ahead += 2 * FL_PANEL, x += 2) {
    __m512i bv[8];
    for (int q = 0; q < fetch; q++)
      __builtin_prefetch(ahead + q * stream);
    FL_UNROLL for (int q = 0; q < panels; q++) bv[q] = _mm512_loadu_si512(b + q * stream);
    FL_UNROLL for (int i = 0; i < m; i++) {
      int32_t pair;
      memcpy(&pair, x + i * FL_KC, 4);
      const __m512i a = _mm512_set1_epi32(pair);
      FL_UNROLL for (int q = 0; q < panels; q++) acc[i][q] = _mm512_dpbf16_ps(acc[i][q], (__m512bh)a, (__m512bh)bv[q]);
    }
  }
  FL_UNROLL for (int i = 0; i < m; i++)
    FL_UNROLL for (int q = 0; q < panels; q++) {
      float *to = s->to + i * s->ld + q * FL_PANEL;
      _mm512_storeu_ps(to, s->add ? _mm512_add_ps(_mm512_loadu_ps(to), acc[i][q]) : acc[i][q]);
    }
}

#define FL_BRAIN(m, p)                                                                                                                       \
  static FL_BRAIN_TARGET __attribute__((noinline)) void fl_brain_##m##x##p(const uint16_t *x, const uint16_t *b, int64_t stream, int64_t pairs, \
                                                                           const fl_brain_sums *s) {                                         \
    fl_brain_tile(m, p, x, b, stream, pairs, s);                                                                                             \
  }
#define FL_BRAIN_ROWS(p) FL_BRAIN(1, p) FL_BRAIN(2, p) FL_BRAIN(3, p) FL_BRAIN(4, p) FL_BRAIN(5, p) FL_BRAIN(6, p)
FL_BRAIN_ROWS(1)
FL_BRAIN_ROWS(2)
FL_BRAIN_ROWS(4)
FL_BRAIN(1, 8)
#define FL_BRAIN_LIST(p) {0, fl_brain_1x##p, fl_brain_2x##p, fl_brain_3x##p, fl_brain_4x##p, fl_brain_5x##p, fl_brain_6x##p}
static const fl_brain_fn fl_brains[3][7] = {FL_BRAIN_LIST(1), FL_BRAIN_LIST(2), FL_BRAIN_LIST(4)};

static __attribute__((noinline)) void fl_half_pairs(const fl_half_block *p) {
  _Alignas(64) uint16_t x[FL_HALF_ROWS * FL_KC];
  float sums[8 * FL_PANEL * 3];
  const int64_t panels = (p->n + FL_PANEL - 1) / FL_PANEL, chunks = (p->m + FL_HALF_ROWS - 1) / FL_HALF_ROWS;
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    const int64_t i0 = p->m * chunk / chunks, m = p->m * (chunk + 1) / chunks - i0, tiles = (m + 5) / 6;
    int64_t k0 = 0;
    do {
      const int64_t klen = fl_half_klen(p->k, k0), pairs = (klen + 1) / 2, stream = 2 * pairs * FL_PANEL;
      const int begins = k0 == 0, ends = k0 + klen == p->k;
      fl_brain_rows(p->rows + i0, m, k0, klen, (klen + 15) / 16 * 16, x);
      for (int64_t j = 0; j < panels;) {
        const uint16_t *b = fl_half_at(p, p->first + j, k0, klen);
        const int64_t left = panels - j, count = m == 1 && left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        const int whole = p->n - j * FL_PANEL >= count * FL_PANEL && !(ends && p->epilogue);
        /* Panels of a block of K are next to each other, a stream each: where one ends, no hardware foresees the next. Several rows hide
         * the time that it takes; each tile fetches some. */
        const int64_t some = m == 1 || left == count ? 0 : (count + tiles - 1) / tiles;
        for (int64_t tile = 0; tile < tiles; tile++) {
          const int64_t at = m * tile / tiles, rows = m * (tile + 1) / tiles - at, later = count + tile * some;
          fl_brain_sums s = {.to = sums, .ld = count * FL_PANEL, .fetch = tile * some < count ? (int)some : 0, .ahead = b + later * stream};
          if (whole)
            s.to = p->c + (i0 + at) * p->ldc + j * FL_PANEL, s.ld = p->ldc, s.add = !begins;
          (count == 8 ? fl_brain_1x8 : fl_brains[count / 2][rows])(x + at * FL_KC, b, stream, pairs, &s);
          if (!whole)
            fl_half_store(p, sums, count * FL_PANEL, i0 + at, rows, j * FL_PANEL, begins, ends);
        }
        j += count;
      }
      k0 += klen;
    } while (k0 < p->k);
  }
}
#undef FL_BRAIN
#undef FL_BRAIN_ROWS
#undef FL_BRAIN_LIST
