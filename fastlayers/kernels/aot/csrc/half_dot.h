/* Products of pairs of bfloat16 with AVX512-BF16. `fl_has_brain` asks for it. Included by half.h.
 *
 * x is rounded to bfloat16. A sum over a block of K is one chain of pairs in order, from zero, whatever the tile: its bits depend on no
 * other row. The instruction takes subnormals for zeros. */
/* Where a tile's sums go to, as they are or added to what is there; and `fetch` panels that come later, fetched meanwhile. Tiles of
 * FL_BRAIN_ENDS add a bias and a residual, where these are not NULL, and do a relu, in registers. */
typedef struct {
  float *to;
  int64_t ld;
  int add, fetch;
  const uint16_t *ahead;
  const float *bias, *residual;
  int64_t ldr;
  int relu;
} fl_brain_sums;
#define FL_BRAIN_ENDS(m, panels) ((m) >= 4 && (panels) >= 3) /* with others it would be more code than it gains */
/* A tile's rows, of which `runs` say where the terms are: pairs, each within one run. */
typedef void (*fl_brain_fn)(const uint16_t *const *rows, const fl_run *runs, int64_t nruns, const uint16_t *b, int64_t stream,
                            const fl_brain_sums *s);

FL_INLINE FL_BRAIN_TARGET void fl_brain_tile(const int m, const int panels, const uint16_t *const *rows, const fl_run *runs, int64_t nruns,
                                             const uint16_t *b, int64_t stream, const fl_brain_sums *s) {
  const uint16_t *ahead = s->ahead, *x[8];
  const int fetch = s->fetch;
  __m512 acc[8][8];
  FL_UNROLL for (int i = 0; i < m; i++) {
    x[i] = rows[i];
    FL_UNROLL for (int q = 0; q < panels; q++) acc[i][q] = _mm512_setzero_ps();
  }
  for (int64_t r = 0; r < nruns; r++) {
    const int64_t end = runs[r].offset + runs[r].length;
    for (int64_t t = runs[r].offset; t < end; t += 2, b += 2 * FL_PANEL, ahead += 2 * FL_PANEL) {
      __m512i bv[8];
      for (int q = 0; q < fetch; q++)
        __builtin_prefetch(ahead + q * stream);
      FL_UNROLL for (int q = 0; q < panels; q++) bv[q] = _mm512_loadu_si512(b + q * stream);
      FL_UNROLL for (int i = 0; i < m; i++) {
        int32_t pair;
        memcpy(&pair, x[i] + t, 4);
        const __m512i a = _mm512_set1_epi32(pair);
        FL_UNROLL for (int q = 0; q < panels; q++) acc[i][q] = _mm512_dpbf16_ps(acc[i][q], (__m512bh)a, (__m512bh)bv[q]);
      }
    }
  }
#define FL_ALL(change) FL_UNROLL for (int i = 0; i < m; i++) FL_UNROLL for (int q = 0; q < panels; q++) change;
  if (s->add)
    FL_ALL(acc[i][q] = _mm512_add_ps(_mm512_loadu_ps(s->to + i * s->ld + q * FL_PANEL), acc[i][q]))
  if (FL_BRAIN_ENDS(m, panels)) {
    if (s->bias)
      FL_ALL(acc[i][q] = _mm512_add_ps(acc[i][q], _mm512_loadu_ps(s->bias + q * FL_PANEL)))
    if (s->residual)
      FL_ALL(acc[i][q] = _mm512_add_ps(acc[i][q], _mm512_loadu_ps(s->residual + i * s->ldr + q * FL_PANEL)))
    if (s->relu) /* NaN passes */
      FL_ALL(acc[i][q] = _mm512_max_ps(_mm512_setzero_ps(), acc[i][q]))
  }
  FL_ALL(_mm512_storeu_ps(s->to + i * s->ld + q * FL_PANEL, acc[i][q]))
#undef FL_ALL
}

#define FL_BRAIN(m, p)                                                                                                                   \
  static FL_BRAIN_TARGET __attribute__((noinline)) void fl_brain_##m##x##p(const uint16_t *const *rows, const fl_run *runs, int64_t nruns, \
                                                                           const uint16_t *b, int64_t stream, const fl_brain_sums *s) {     \
    fl_brain_tile(m, p, rows, runs, nruns, b, stream, s);                                                                                  \
  }
#define FL_BRAIN_ROWS(p) FL_BRAIN(1, p) FL_BRAIN(2, p) FL_BRAIN(3, p) FL_BRAIN(4, p) FL_BRAIN(5, p) FL_BRAIN(6, p)
FL_BRAIN_ROWS(1)
FL_BRAIN_ROWS(2)
FL_BRAIN_ROWS(3)
FL_BRAIN_ROWS(4)
FL_BRAIN(1, 8)
#define FL_BRAIN_LIST(p) {0, fl_brain_1x##p, fl_brain_2x##p, fl_brain_3x##p, fl_brain_4x##p, fl_brain_5x##p, fl_brain_6x##p}
static const fl_brain_fn fl_brains[4][7] = {FL_BRAIN_LIST(1), FL_BRAIN_LIST(2), FL_BRAIN_LIST(3), FL_BRAIN_LIST(4)};

/* How many of the panels that are left a tile takes: several rows want three at least, where that can be. */
FL_INLINE int64_t fl_brain_panels(int64_t m, int64_t left) {
  if (m == 1)
    return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
  return left <= 4 ? left : left % 4 == 1 || left % 4 == 2 ? 3 : 4;
}

/* Draws in where a tile's sums go, and what is added to them: pieces of rows, of which a processor foresees few. */
static void fl_half_draw(const fl_half_block *p, int64_t i0, int64_t m, int64_t j0, int64_t n) {
  const float *residual = p->epilogue ? p->epilogue->residual : 0;
  for (int64_t i = i0; i < i0 + m; i++)
    for (int64_t j = j0; j < j0 + n; j += FL_PANEL) {
      __builtin_prefetch(p->c + i * p->ldc + j, 1);
      if (residual)
        __builtin_prefetch(residual + i * p->epilogue->ldr + j);
    }
}

/* A block of K of m rows with all panels; its terms are where `runs` say. */
static void fl_half_pairs_rows(const fl_half_block *p, const uint16_t *const *rows, const fl_run *runs, int64_t nruns, int64_t i0, int64_t m,
                               int64_t k0, int64_t klen) {
  float sums[8 * FL_PANEL * 3];
  const int64_t panels = (p->n + FL_PANEL - 1) / FL_PANEL, tiles = (m + 5) / 6, stream = fl_half_even(FL_BRAIN, klen) * FL_PANEL;
  const int begins = k0 == 0, ends = k0 + klen == p->k;
  for (int64_t j = 0; j < panels;) {
    const uint16_t *b = fl_half_at(p, p->first + j, k0, klen);
    const int64_t left = panels - j, count = fl_brain_panels(m, left);
    const fl_epilogue *e = ends ? p->epilogue : 0;
    const int full = p->n - j * FL_PANEL >= count * FL_PANEL;
    /* Panels of a block of K are next to each other, a stream each: where one ends, no hardware foresees the next. Several rows hide
     * the time that it takes; each tile fetches some. */
    const int64_t some = m == 1 || left == count ? 0 : (count + tiles - 1) / tiles;
    for (int64_t tile = 0; tile < tiles; tile++) {
      const int64_t at = m * tile / tiles, height = m * (tile + 1) / tiles - at, later = count + tile * some;
      fl_brain_sums s = {.to = sums, .ld = count * FL_PANEL, .fetch = tile * some < count ? (int)some : 0, .ahead = b + later * stream};
      const int finished = e && full && FL_BRAIN_ENDS(height, count), whole = full && (!e || finished);
      if (whole)
        s.to = p->c + (i0 + at) * p->ldc + j * FL_PANEL, s.ld = p->ldc, s.add = !begins;
      if (finished) {
        s.bias = e->bias ? e->bias + j * FL_PANEL : 0;
        s.residual = e->residual ? e->residual + (i0 + at) * e->ldr + j * FL_PANEL : 0;
        s.ldr = e->ldr, s.relu = e->code == FL_RELU;
      }
      if (e && begins && e->residual)
        fl_half_draw(p, i0 + at, height, j * FL_PANEL, count * FL_PANEL);
      (count == 8 ? fl_brain_1x8 : fl_brains[count - 1][height])(rows + at, runs, nruns, b, stream, &s);
      if (!whole)
        fl_half_store(p, sums, count * FL_PANEL, i0 + at, height, j * FL_PANEL, begins, ends);
      else if (finished)
        fl_half_function(p, i0 + at, height, j * FL_PANEL, count * FL_PANEL);
    }
    j += count;
  }
}

/* Whether all terms of a block come in pairs that are next to each other. */
static int fl_half_paired(const fl_run *runs, int64_t nruns) {
  int64_t odd = 0;
  for (int64_t r = 0; r < nruns; r++)
    odd |= runs[r].length;
  return !(odd & 1);
}

static __attribute__((noinline)) void fl_half_pairs(const fl_half_block *p) {
  _Alignas(64) uint16_t x[FL_HALF_ROWS * FL_KC];
  const uint16_t *rows[FL_HALF_ROWS];
  for (int64_t i = 0; i < FL_HALF_ROWS; i++)
    rows[i] = x + i * FL_KC;
  const int64_t most = p->pairs ? 2 * FL_HALF_ROWS : FL_HALF_ROWS, chunks = (p->m + most - 1) / most;
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    const int64_t i0 = p->m * chunk / chunks, m = p->m * (chunk + 1) / chunks - i0;
    int64_t k0 = 0;
    do {
      const int64_t klen = fl_half_klen(p->k, k0);
      const fl_run whole = {0, fl_half_even(FL_BRAIN, klen)};
      if (p->pairs) {
        const fl_run *runs = p->runs + p->starts[k0 / FL_KC];
        const int64_t nruns = p->starts[k0 / FL_KC + 1] - p->starts[k0 / FL_KC];
        if (fl_half_paired(runs, nruns))
          fl_half_pairs_rows(p, p->pairs + i0, runs, nruns, i0, m, k0, klen);
        else
          for (int64_t at = 0; at < m; at += FL_HALF_ROWS) {
            const int64_t some = m - at < FL_HALF_ROWS ? m - at : FL_HALF_ROWS;
            fl_half_gather(p->pairs + i0 + at, some, runs, nruns, whole.length, x);
            fl_half_pairs_rows(p, rows, &whole, 1, i0 + at, some, k0, klen);
          }
      } else {
        fl_brain_rows(p->rows + i0, m, k0, klen, (klen + 15) / 16 * 16, x);
        fl_half_pairs_rows(p, rows, &whole, 1, i0, m, k0, klen);
      }
      k0 += klen;
    } while (k0 < p->k);
  }
}
#undef FL_BRAIN
#undef FL_BRAIN_ROWS
#undef FL_BRAIN_LIST
