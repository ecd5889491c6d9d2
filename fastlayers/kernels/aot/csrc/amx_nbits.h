/* Products of integers with weights of few bits by AMX's tiles: the integers of nbits_integer.h, added as floats in its order.
 *
 * A tile of rows is lines of bytes where they are. A tile of weights is quads of terms of a panel: of 8 bits where they are, of fewer
 * unpacked, a block of four panels at once for up to FL_AMX_NBITS tiles of rows. A block's sums leave their tiles to be added. The last tile of rows
 * begins where it has as many as the others, so some of its results are made twice. */
#include "amx_group.h"
#include "nbits_parts.h"

#if !defined(__clang__) /* as short as can be: vectors are written as such */
#pragma GCC push_options
#pragma GCC optimize("O2")
#endif

#define FL_AMX_NBITS 4 /* tiles of rows that meet weights unpacked */

static void (*fl_amx_nbits_below)(const fl_nbits *p); /* of few lines */

/* sums[line][64] of a block of terms, of up to four panels; `line` bytes from one quad of terms to the next. */
static FL_TILED void fl_amx_nbits_sums(const int8_t *x, int64_t wide, const uint8_t *w, int64_t line, int64_t block, int64_t panels, int32_t *sums) {
  fl_amx_zero();
  for (int64_t k = 0; k < block; k += 64, w += 16 * line) {
    fl_tile_load(4, x + k, wide);
    fl_tile_load(5, w, line);
    fl_tile_dot_signed(0, 4, 5);
    if (panels > 1) {
      fl_tile_load(6, w + 64, line);
      fl_tile_dot_signed(1, 4, 6);
    }
    if (panels > 2) {
      fl_tile_load(5, w + 128, line);
      fl_tile_dot_signed(2, 4, 5);
    }
    if (panels > 3) {
      fl_tile_load(6, w + 192, line);
      fl_tile_dot_signed(3, 4, 6);
    }
  }
  fl_tile_store(0, sums, 256);
  fl_tile_store(1, sums + 16, 256);
  fl_tile_store(2, sums + 32, 256);
  fl_tile_store(3, sums + 48, 256);
}

/* What they add to totals[row][64] of `rows` rows from row i on, panels j .. j + panels - 1. */
static void fl_amx_nbits_add(const fl_nbits *p, int64_t i, int64_t rows, int64_t j, int64_t panels, int64_t block, const int32_t *sums, float *totals) {
  const int64_t side = fl_nbits_side(p, j);
  for (int64_t q = 0; q < panels; q++) {
    vf z[FL_PANEL / VW];
    fl_nbits_zeros_of(p, fl_nbits_zeros_at(p, j + q), block, z);
    for (int64_t r = 0; r < rows; r++)
      FL_UNROLL for (int v = 0; v < FL_PANEL / VW; v++) {
        const int64_t at = q * FL_PANEL + v * VW;
        const vf s = fl_nbits_scales(p, fl_nbits_scales_at(p, j + q, side) + block * side * p->record, v * VW);
        vf f = vset(0), by = vset(1);
        for (int64_t d = 0; d < p->digits; d++, by *= 256) {
          const int64_t line = r * p->digits + d, of = (i * p->digits + line) * p->blocks + block;
          const vi sum = viload(sums + line * 64 + at);
          const vf g = p->kind == FL_NBITS_HALF ? vfloat(sum + p->starts[of]) : vfma(-z[v], vset(p->sums[of]), vfloat(sum));
          f = d ? vfma(g, by, f) : g;
        }
        vstore(totals + r * 64 + at, vfma(f, s * vset(p->steps[(i + r) * p->blocks + block]), vload(totals + r * 64 + at)));
      }
  }
}

static FL_TILED void fl_amx_nbits(const fl_nbits *p) {
  _Alignas(64) uint8_t apart[4 * 256 * FL_PANEL];
  _Alignas(64) int32_t sums[16 * 64];
  _Alignas(64) float totals[FL_AMX_NBITS * 16 * 64];
  const int64_t most = 16 / p->digits, rows = p->m < most ? p->m : most, lines = rows * p->digits, all = (p->n + FL_PANEL - 1) / FL_PANEL;
  const int64_t wide = p->blocks * p->block, terms = p->block < 64 ? p->block : 64, quads = p->block / 4;
  fl_tile_shapes shapes = {.palette = 1};
  if (lines < 8) {
    fl_amx_nbits_below(p);
    return;
  }
  for (int t = 0; t < 7; t++)
    shapes.rows[t] = (uint8_t)(t > 4 ? terms / 4 : lines), shapes.bytes[t] = t == 4 ? (uint16_t)terms : 64;
  fl_tile_config(&shapes);
  for (int64_t j = 0; j < all; j += 4) {
    const int64_t panels = all - j < 4 ? all - j : 4, line = fl_nbits_side(p, j) * 64, step = line / 64 * p->record;
    for (int64_t i0 = 0; i0 < p->m; i0 += FL_AMX_NBITS * rows) {
      const int64_t end = i0 + FL_AMX_NBITS * rows < p->m ? i0 + FL_AMX_NBITS * rows : p->m;
      memset(totals, 0, sizeof totals);
      for (int64_t block = 0; block < p->blocks; block++) {
        const uint8_t *w = fl_nbits_at(p, j) + block * step;
        if (p->bits < 8) {
          const vu mask = (vu)vseti(p->bits == 4 ? 0x0f0f0f0f : 0x03030303);
          for (int64_t t = 0, per = 8 / p->bits; t < quads; t++)
            for (int64_t b = 0; b < line; b += 4 * VW) {
              const vu words = (vu)viload((const int32_t *)(const void *)(w + t / per * line + b));
              vistore((int32_t *)(void *)(apart + t * line + b), (vi)(words >> (uint32_t)(t % per * p->bits) & mask));
            }
          w = apart;
        }
        for (int64_t at = i0, u = 0; at < end; at += rows, u++) {
          const int64_t i = at + rows < p->m ? at : p->m - rows;
          FL_TILE_WRITTEN();
          fl_amx_nbits_sums(p->q + i * p->digits * wide + block * p->block, wide, w, line, p->block, panels, sums);
          fl_amx_nbits_add(p, i, rows, j, panels, block, sums, totals + u * 16 * 64);
        }
      }
      for (int64_t at = i0, u = 0; at < end; at += rows, u++)
        for (int64_t r = 0; r < rows; r++)
          for (int64_t q = 0; q < panels; q++)
            fl_nbits_finish(p, (at + rows < p->m ? at : p->m - rows) + r, j + q, (const vf *)(totals + (u * 16 + r) * 64 + q * FL_PANEL));
    }
  }
  fl_tile_release();
}

#if !defined(__clang__)
#pragma GCC pop_options
#endif
