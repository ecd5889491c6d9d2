/* Products of a few rows with weights of 16 bits: two panels are widened in registers and meet up to 8 rows at once, so that reading the
 * weights and multiplying go on together. Included by half.h for AVX-512; sums are in the order of fl_half_sums. */
#define FL_HALF_FEW 16 /* rows; more are worth panels that are widened into memory */

/* Sums [rows][panels][16] of a block of K; terms klen of the rows x begin at k0. */
FL_INLINE void fl_half_tile(const int kind, const int m, const int panels, const float *const *rows, int64_t k0, const uint16_t *b, int64_t stream, int64_t klen,
                            float *sums) {
  vf acc[8][2];
  const float *x[8];
  FL_UNROLL for (int i = 0; i < m; i++) {
    x[i] = rows[i] + k0;
    FL_UNROLL for (int q = 0; q < panels; q++) acc[i][q] = vset(0);
  }
  const int step = kind == FL_HALF ? 1 : 2; /* terms that are next to each other */
  for (int64_t t = 0; t < klen; t += step, b += step * FL_PANEL) {
    vf w[2][2];
    FL_UNROLL for (int q = 0; q < panels; q++) {
      if (kind == FL_HALF)
        w[0][q] = fl_half_wide(b + q * stream);
      else {
        const vi pairs = fl_pairs(b + q * stream);
        w[0][q] = fl_brain_first(pairs), w[1][q] = fl_brain_second(pairs);
      }
    }
    FL_UNROLL for (int s = 0; s < step; s++)
      if (s == 0 || t + 1 < klen)
        FL_UNROLL for (int i = 0; i < m; i++) {
          const vf v = vset(x[i][t + s]);
          FL_UNROLL for (int q = 0; q < panels; q++) acc[i][q] = vfma(v, w[s][q], acc[i][q]);
        }
  }
  FL_UNROLL for (int i = 0; i < m; i++)
    FL_UNROLL for (int q = 0; q < panels; q++) vstore(sums + (i * panels + q) * FL_PANEL, acc[i][q]);
}

typedef void (*fl_half_fn)(int kind, const float *const *rows, int64_t k0, const uint16_t *b, int64_t stream, int64_t klen, float *sums);
#define FL_HALF_TILE(m, q)                                                                                                             \
  static __attribute__((noinline)) void fl_half_##m##x##q(int kind, const float *const *rows, int64_t k0, const uint16_t *b,           \
                                                          int64_t stream, int64_t klen, float *sums) {                                 \
    if (kind == FL_HALF)                                                                                                               \
      fl_half_tile(FL_HALF, m, q, rows, k0, b, stream, klen, sums);                                                                    \
    else                                                                                                                               \
      fl_half_tile(FL_BRAIN, m, q, rows, k0, b, stream, klen, sums);                                                                   \
  }
FL_HALF_TILE(2, 1)
FL_HALF_TILE(2, 2)
FL_HALF_TILE(4, 1)
FL_HALF_TILE(4, 2)
FL_HALF_TILE(8, 1)
FL_HALF_TILE(8, 2)
#undef FL_HALF_TILE

static __attribute__((noinline)) void fl_half_few(const fl_half_block *p) {
  static const fl_half_fn tiles[3][2] = {{fl_half_2x1, fl_half_2x2}, {fl_half_4x1, fl_half_4x2}, {fl_half_8x1, fl_half_8x2}};
  const int64_t panels = (p->n + FL_PANEL - 1) / FL_PANEL, parts = (p->m + 7) / 8;
  int64_t k0 = 0;
  do {
    const int64_t klen = fl_half_klen(p->k, k0), stream = fl_half_even(p->kind, klen) * FL_PANEL;
    const int begins = k0 == 0, ends = k0 + klen == p->k;
    for (int64_t j = 0; j < panels; j += 2) {
      const uint16_t *b = fl_half_at(p, p->first + j, k0, klen);
      const int64_t two = panels - j > 1;
      for (int64_t part = 0; part < parts; part++) {
        const int64_t i0 = p->m * part / parts, m = p->m * (part + 1) / parts - i0;
        const float *rows[8];
        float sums[8 * 2 * FL_PANEL];
        for (int64_t i = 0; i < 8; i++)
          rows[i] = p->rows[i0 + (i < m ? i : 0)]; /* a tile of more rows than there are does the first one again */
        tiles[m <= 2 ? 0 : m <= 4 ? 1 : 2][two](p->kind, rows, k0, b, stream, klen, sums);
        fl_half_store(p, sums, (1 + two) * FL_PANEL, i0, m, j * FL_PANEL, begins, ends);
      }
    }
    k0 += klen;
  } while (k0 < p->k);
}
