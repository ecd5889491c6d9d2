/* Products with weights in bfloat16 by AMX's tiles: the operands of half.h, packed as for AVX512-BF16's pairs.
 *
 * A packed panel, [pairs][16 columns][2], is a column of tiles as it is: 16 pairs are one tile of 32 terms. x is rounded to bfloat16,
 * FL_AMX_HALF_ROWS rows of a block of K at once; what remains of the last tile of terms meets a copy of the panel's end with zeros after it.
 * Sums of a block of K stay in tiles, and blocks are added in order. A tile's row depends on no other row, and one row goes through tiles
 * too, so a row has the same bits in every batch: a tile of weights, 1 KB, takes 16 cycles however few rows it meets, which is as much as
 * a second-level cache gives.
 *
 * Tiles stay configured between calls that have the same number of rows: a configuration takes as long as a dozen products of tiles. */
#include "amx_group.h"
#include "bits.h"
#include "half_parts.h"

#define FL_AMX_HALF_ROWS (2 * FL_AMX_ROWS) /* rounded at once: 32 KB */

FL_AMX_GROUPS(fl_amx_half, 1)

static const fl_halves *fl_amx_halves_below; /* the level's own, without tiles */

static int fl_amx_half_native(int kind) { return kind == FL_BRAIN && fl_amx_halves_below->native(kind) ? 2 : kind == FL_BRAIN; }

/* As the instruction of AVX512-BF16, which every processor with these tiles has; not all that emulate them. */
static void fl_amx_half_round(const float *x, int64_t n, uint16_t *to) {
#if VW == 16
  if (fl_has_brain()) {
    fl_amx_halves_below->round(x, n, to);
    return;
  }
#endif
  for (int64_t t = 0; t < n; t++)
    to[t] = fl_brain_of(x[t] > -0x1p-126f && x[t] < 0x1p-126f ? x[t] * 0 : x[t]);
}

/* Terms k0 .. k0 + klen - 1 of m rows in bfloat16, [row][FL_KC], with zeros up to `padded` of them. */
static void fl_amx_round(const float *const *rows, int64_t m, int64_t k0, int64_t klen, int64_t padded, uint16_t *to) {
#if VW == 16
  if (fl_has_brain()) {
    fl_brain_rows(rows, m, k0, klen, padded, to);
    return;
  }
#endif
  for (int64_t i = 0; i < m; i++, to += FL_KC) {
    fl_amx_half_round(rows[i] + k0, klen, to);
    memset(to + klen, 0, (size_t)(padded - klen) * 2);
  }
}

/* A chunk of rows from row i0 on, in `parts` groups of `each` rows; rows past the last one are zeros. */
static FL_TILED void fl_amx_half_rows(const fl_half_block *p, int64_t i0, int64_t m, int64_t parts, int64_t each) {
  _Alignas(64) uint16_t x[FL_AMX_HALF_ROWS * FL_KC];
  _Alignas(64) float sums[FL_AMX_ROWS * 2 * FL_PANEL];
  _Alignas(64) uint8_t end[4 * 1024];
  const int both = each > 16;
  const int64_t wide = both ? 2 : 4, panels = (p->n + FL_PANEL - 1) / FL_PANEL;
  fl_amx_group g = {.end = end, .sums = (int32_t *)(void *)sums, .upper = both ? (each + 1) / 2 : each};
  int64_t k0 = 0;
  do {
    const int64_t klen = fl_half_klen(p->k, k0), pairs = (klen + 1) / 2;
    g.whole = pairs / 16, g.steps = (pairs + 15) / 16, g.panel = pairs * 64;
    if (p->pairs) {
      const int64_t *starts = p->starts + k0 / FL_KC;
      fl_half_gather(p->pairs + i0, m, p->runs + starts[0], starts[1] - starts[0], g.steps * 32, x);
    } else
      fl_amx_round(p->rows + i0, m, k0, klen, g.steps * 32, x);
    for (int64_t i = m; i < parts * each; i++)
      memset(x + i * FL_KC, 0, (size_t)g.steps * 64);
    for (int64_t j = 0; j < panels; j += wide) {
      const int64_t count = panels - j < wide ? panels - j : wide;
      g.b = (const uint8_t *)fl_half_at(p, p->first + j, k0, klen);
      if (g.steps > g.whole)
        for (int64_t q = 0; q < count; q++) {
          const int64_t rest = (pairs - g.whole * 16) * 64;
          memcpy(end + q * 1024, g.b + q * g.panel + g.whole * 1024, (size_t)rest);
          memset(end + q * 1024 + rest, 0, (size_t)(1024 - rest));
        }
      for (int64_t i = 0; i < m; i += each) {
        g.x = (const uint8_t *)(x + i * FL_KC);
        FL_TILE_WRITTEN();
        (both ? fl_amx_half_two : fl_amx_half_one)[count](&g);
        fl_half_store(p, sums, wide * FL_PANEL, i0 + i, m - i < each ? m - i : each, j * FL_PANEL, k0 == 0, k0 + klen == p->k);
      }
    }
    k0 += klen;
  } while (k0 < p->k);
}

static FL_TILED void fl_amx_half_block(const fl_half_block *p) {
  const int64_t chunks = (p->m + FL_AMX_HALF_ROWS - 1) / FL_AMX_HALF_ROWS;
  if (p->kind != FL_BRAIN) {
    fl_amx_halves_below->block(p);
    return;
  }
  if (p->n <= 0)
    return;
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    const int64_t i0 = p->m * chunk / chunks, m = p->m * (chunk + 1) / chunks - i0, parts = (m + FL_AMX_ROWS - 1) / FL_AMX_ROWS;
    const int64_t each = (m + parts - 1) / parts, upper = each > 16 ? (each + 1) / 2 : each;
    if (*p->tiles != each)
      fl_amx_shape(upper, each - upper), *p->tiles = (int)each;
    fl_amx_half_rows(p, i0, m, parts, each);
  }
}

static FL_TILED void fl_amx_half_end(int *tiles) {
  if (*tiles)
    fl_tile_release();
  *tiles = 0;
}
