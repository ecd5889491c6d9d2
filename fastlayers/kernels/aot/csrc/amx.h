/* The packed product of bytes by AMX's tiles: the same integers as quantized.h's, whose operands and epilogue it has.
 *
 * A packed panel, [quads][16 columns][4], is a column of tiles as it is: 16 quads are one tile of 64 terms. Rows are at any pointers and in
 * runs, so up to 32 of them are copied next to each other, FL_AMX_STEPS tiles of terms at once. Sums are in four tiles: of 17 to 32 rows
 * two by two panels, of fewer one by four. The last terms, where they are no whole tile, meet a copy of the panel's end with zeros after
 * it. Where there are more than FL_AMX_STEPS tiles of terms, the sums of FL_AMX_COLUMNS columns wait in between as int32. */
#include "amx_group.h"
#include "quantized_finish.h"

#define FL_AMX_LEAST 8     /* rows; fewer are read faster than tiles of weights are multiplied, so they stay with the level below */
#define FL_AMX_STEPS 16    /* tiles of terms, of 16 quads each */
#define FL_AMX_COLUMNS 256 /* whose sums are stored */
#define FL_AMX_GROUP 1024  /* sums in four tiles */

static void (*fl_amx_below)(const fl_qblock *p); /* the level's own product without tiles */

/* Quads `from` .. `from + count - 1` of m rows, as tiles of terms: [count / 16][FL_AMX_ROWS][16 quads]. */
static void fl_amx_copy(const fl_qblock *p, const uint8_t *const *rows, int64_t m, int64_t from, int64_t count, uint8_t *to) {
  const fl_qrun *first = p->runs;
  if (count == 0)
    return;
  for (; from >= first->quads; first++)
    from -= first->quads;
  for (int64_t i = 0; i < m; i++) {
    const fl_qrun *run = first;
    int64_t skip = from;
    for (int64_t at = 0; at < count;) {
      int64_t n = 16 - at % 16;
      n = n < count - at ? n : count - at;
      n = n < run->quads - skip ? n : run->quads - skip;
      uint8_t *y = to + (at / 16 * FL_AMX_ROWS + i) * 64 + at % 16 * 4;
      const uint8_t *x = rows[i] + run->offset + 4 * skip;
#if defined(__AVX512F__)
      const __mmask16 some = (__mmask16)((1u << n) - 1);
      _mm512_mask_storeu_epi32(y, some, _mm512_maskz_loadu_epi32(some, x));
#else
      memcpy(y, x, (size_t)n * 4);
#endif
      at += n, skip += n;
      if (skip == run->quads)
        run++, skip = 0;
    }
  }
}

FL_AMX_GROUPS(fl_amx, 0)

/* Finished sums of m rows and up to `wide` columns from column j on to where they belong. */
static void fl_amx_finish(const fl_qblock *p, const int32_t *sums, int64_t wide, int64_t i0, int64_t m, int64_t j) {
  for (const int64_t end = j + wide; j < end && j < p->n; j += FL_PANEL, sums += FL_PANEL)
    if (fl_plain_bytes(&p->e, p->n - j))
      fl_qfinish_bytes(&p->e, sums, wide, m, j, (uint8_t *)p->out + i0 * p->ldc + j, p->ldc);
    else
      for (int64_t i = 0; i < m; i++)
        fl_qfinish(&p->e, sums + i * wide, i0 + i, j, p->out, (i0 + i) * p->ldc + j, p->n - j);
}

/* Up to FL_AMX_ROWS rows from row i0 on. */
static FL_TILED void fl_amx_rows(const fl_qblock *p, int64_t i0, int64_t m, int64_t quads) {
  _Alignas(64) uint8_t x[FL_AMX_STEPS * FL_AMX_STEP];
  _Alignas(64) int32_t sums[FL_AMX_ROWS * FL_AMX_COLUMNS];
  _Alignas(64) uint8_t end[4 * 1024];
  const int64_t most = FL_AMX_STEPS * 16, both = m > 16, wide = both ? 2 * FL_PANEL : 4 * FL_PANEL;
  fl_amx_group g = {.x = x, .end = end, .panel = p->panel, .upper = both ? (m + 1) / 2 : m};
  fl_amx_shape(g.upper, m - g.upper);
  for (int64_t j0 = 0; j0 < p->n; j0 += FL_AMX_COLUMNS) {
    const int64_t n = p->n - j0 < FL_AMX_COLUMNS ? p->n - j0 : FL_AMX_COLUMNS;
    int64_t k = 0, count;
    do {
      count = quads - k < most ? quads - k : most;
      if (j0 == 0 || quads > most)
        fl_amx_copy(p, p->rows + i0, m, k, count, x);
      g.whole = count / 16, g.steps = (count + 15) / 16, g.goes_on = k > 0;
      g.sums = sums;
      for (int64_t j = 0; j < n; j += wide) {
        const int64_t left = (n - j + FL_PANEL - 1) / FL_PANEL, panels = left < wide / FL_PANEL ? left : wide / FL_PANEL;
        g.b = (const uint8_t *)p->b + (j0 + j) / FL_PANEL * p->panel + k * 64;
        if (g.steps > g.whole)
          for (int64_t q = 0; q < panels; q++) {
            const int64_t rest = (count - g.whole * 16) * 64;
            memcpy(end + q * 1024, g.b + q * p->panel + g.whole * 1024, (size_t)rest);
            memset(end + q * 1024 + rest, 0, (size_t)(1024 - rest));
          }
        FL_TILE_WRITTEN();
        (both ? fl_amx_two : fl_amx_one)[panels](&g);
        if (k + count == quads)
          fl_amx_finish(p, g.sums, wide, i0, m, j0 + j);
        if (quads > most)
          g.sums += FL_AMX_GROUP;
      }
      k += count;
    } while (k < quads);
  }
}

static FL_TILED void fl_amx_block(const fl_qblock *p) {
  const int64_t parts = (p->m + FL_AMX_ROWS - 1) / FL_AMX_ROWS;
  int64_t quads = 0;
  if (p->m < FL_AMX_LEAST) {
    fl_amx_below(p);
    return;
  }
  for (int64_t r = 0; r < p->nruns; r++)
    quads += p->runs[r].quads;
  for (int64_t part = 0; part < parts; part++) {
    const int64_t i0 = p->m * part / parts;
    fl_amx_rows(p, i0, p->m * (part + 1) / parts - i0, quads);
  }
  fl_tile_release();
}
