/* The packed matrix product over one block of K: walks groups of panels, and under each the rows in tiles of even height.
 *
 * A tile of m rows and p panels keeps m * p * 16 / VW sums in registers. Two multiply-adds start a cycle and each takes four, so
 * eight sums or more keep the units busy: few rows walk more panels at once (fl_wide). x86_v4 walks two panels even with many
 * rows, since one panel is one register there. Rows are cut into tiles whose heights differ by at most one: 8 rows are 4 + 4
 * and not 6 + 2, whose second tile would wait for its own sums. */

/* Pieces of one tile's operands, with its place in the block already applied. */
typedef struct {
  const float *const *rows;
  const float *b;
  float *c;
  int64_t ldc;
  const float *bias, *residual;
  int64_t ldr;
  const float *ahead; /* next panels, drawn towards the cache while this tile runs: `ahead_step` floats a step of k */
  int64_t ahead_step;
} fl_tile;

#if VW == 16 /* x86_v4 */
#define FL_MR 8
#define FL_P 2
#elif VW == 8 /* x86_v3 */
#define FL_MR 6
#define FL_P 1
#elif VREGS == 32 /* neon */
#define FL_MR 6
#define FL_P 1
#else /* x86_v1 */
#define FL_MR 3
#define FL_P 1
#endif

#define FL_TM 1
#define FL_TP 1
#include "tile.h"
#define FL_TM 2
#define FL_TP 1
#include "tile.h"
#define FL_TM 3
#define FL_TP 1
#include "tile.h"
#if FL_MR > 3
#define FL_TM 4
#define FL_TP 1
#include "tile.h"
#define FL_TM 5
#define FL_TP 1
#include "tile.h"
#define FL_TM 6
#define FL_TP 1
#include "tile.h"
#endif
#if VW == 4
#define FL_TM 1
#define FL_TP 2
#include "tile.h"
#elif VW == 8
#define FL_TM 1
#define FL_TP 4
#include "tile.h"
#define FL_TM 2
#define FL_TP 2
#include "tile.h"
#define FL_TM 3
#define FL_TP 2
#include "tile.h"
#else
#define FL_TM 7
#define FL_TP 1
#include "tile.h"
#define FL_TM 8
#define FL_TP 1
#include "tile.h"
#define FL_TM 1
#define FL_TP 2
#include "tile.h"
#define FL_TM 2
#define FL_TP 2
#include "tile.h"
#define FL_TM 3
#define FL_TP 2
#include "tile.h"
#define FL_TM 4
#define FL_TP 2
#include "tile.h"
#define FL_TM 5
#define FL_TP 2
#include "tile.h"
#define FL_TM 6
#define FL_TP 2
#include "tile.h"
#define FL_TM 7
#define FL_TP 2
#include "tile.h"
#define FL_TM 8
#define FL_TP 2
#include "tile.h"
#define FL_TM 1
#define FL_TP 8
#include "tile.h"
#define FL_TM 2
#define FL_TP 4
#include "tile.h"
#define FL_TM 3
#define FL_TP 4
#include "tile.h"
#define FL_TM 4
#define FL_TP 4
#include "tile.h"
#endif

typedef void (*fl_tile_fn)(const fl_block *, const fl_tile *);

/* Tiles by height (index 0 unused): one panel, FL_P panels, and the width of fl_wide for blocks of one short tile. */
#if VW == 16
static const fl_tile_fn fl_tiles_1[] = {0, fl_tile_1x1, fl_tile_2x1, fl_tile_3x1, fl_tile_4x1,
                                        fl_tile_5x1, fl_tile_6x1, fl_tile_7x1, fl_tile_8x1};
static const fl_tile_fn fl_tiles_p[] = {0, fl_tile_1x2, fl_tile_2x2, fl_tile_3x2, fl_tile_4x2,
                                        fl_tile_5x2, fl_tile_6x2, fl_tile_7x2, fl_tile_8x2};
static const fl_tile_fn fl_tiles_wide[] = {0, fl_tile_1x8, fl_tile_2x4, fl_tile_3x4, fl_tile_4x4,
                                           fl_tile_5x2, fl_tile_6x2, fl_tile_7x2, fl_tile_8x2};
static const int fl_wide[] = {0, 8, 4, 4, 4, 2, 2, 2, 2};
#elif VW == 8
static const fl_tile_fn fl_tiles_1[] = {0, fl_tile_1x1, fl_tile_2x1, fl_tile_3x1, fl_tile_4x1, fl_tile_5x1, fl_tile_6x1};
#define fl_tiles_p fl_tiles_1
static const fl_tile_fn fl_tiles_wide[] = {0, fl_tile_1x4, fl_tile_2x2, fl_tile_3x2, fl_tile_4x1, fl_tile_5x1, fl_tile_6x1};
static const int fl_wide[] = {0, 4, 2, 2, 1, 1, 1};
#elif VREGS == 32
static const fl_tile_fn fl_tiles_1[] = {0, fl_tile_1x1, fl_tile_2x1, fl_tile_3x1, fl_tile_4x1, fl_tile_5x1, fl_tile_6x1};
#define fl_tiles_p fl_tiles_1
static const fl_tile_fn fl_tiles_wide[] = {0, fl_tile_1x2, fl_tile_2x1, fl_tile_3x1, fl_tile_4x1, fl_tile_5x1, fl_tile_6x1};
static const int fl_wide[] = {0, 2, 1, 1, 1, 1, 1};
#else
static const fl_tile_fn fl_tiles_1[] = {0, fl_tile_1x1, fl_tile_2x1, fl_tile_3x1};
#define fl_tiles_p fl_tiles_1
static const fl_tile_fn fl_tiles_wide[] = {0, fl_tile_1x2, fl_tile_2x1, fl_tile_3x1};
static const int fl_wide[] = {0, 2, 1, 1};
#endif

/* The last panel where n is no multiple of 16: the tile works on whole panels in a buffer, the valid columns are copied. */
static __attribute__((noinline)) void fl_part_tile(const fl_block *p, const fl_tile *t, fl_tile_fn fn, int64_t m, int64_t cols) {
  float c[FL_MR * FL_PANEL] = {0}, residual[FL_MR * FL_PANEL] = {0};
  fl_tile part = *t;
  part.c = c;
  part.ldc = FL_PANEL;
  if (p->accumulate)
    for (int64_t i = 0; i < m; i++)
      memcpy(c + i * FL_PANEL, t->c + i * t->ldc, (size_t)cols * 4);
  if (t->residual) {
    for (int64_t i = 0; i < m; i++)
      memcpy(residual + i * FL_PANEL, t->residual + i * t->ldr, (size_t)cols * 4);
    part.residual = residual;
    part.ldr = FL_PANEL;
  }
  fn(p, &part);
  for (int64_t i = 0; i < m; i++)
    memcpy(t->c + i * t->ldc, c + i * FL_PANEL, (size_t)cols * 4);
}

static void fl_f32_block(const fl_block *p) {
  if (p->m <= 0 || p->n <= 0)
    return;
  const fl_epilogue *e = p->epilogue;
  const int64_t panels = p->n / FL_PANEL, rest = p->n % FL_PANEL;
  const int64_t tiles = (p->m + FL_MR - 1) / FL_MR, low = p->m / tiles, high = p->m % tiles; /* `high` tiles of low + 1 rows */
  const int64_t floats = p->klen * FL_PANEL;
  for (int64_t j = 0; j < panels + (rest > 0);) {
    const int part = j == panels;
    const fl_tile_fn *fns = fl_tiles_1;
    int64_t width = 1;
    if (!part && tiles == 1 && panels - j >= fl_wide[p->m])
      width = fl_wide[p->m], fns = fl_tiles_wide;
    else if (!part && panels - j >= FL_P)
      width = FL_P, fns = fl_tiles_p;
    const int64_t last = j + width >= panels + (rest > 0);
    fl_tile t = {.rows = p->rows, .b = p->b + j * floats, .c = p->c + j * FL_PANEL, .ldc = p->ldc};
    /* Each tile draws its share of the next group of panels; after the last group there is nothing to draw. */
    t.ahead = last ? t.b : t.b + width * floats;
    t.ahead_step = last ? 0 : width * FL_PANEL / tiles > 4 ? width * FL_PANEL / tiles : 4;
    if (e && e->residual) {
      t.residual = e->residual + j * FL_PANEL;
      t.ldr = e->ldr;
    }
    if (e && e->bias)
      t.bias = e->bias_by_row ? e->bias : e->bias + j * FL_PANEL;
    for (int64_t i = 0, tile = 0; tile < tiles; tile++) {
      const int64_t m = low + (tile < high);
      if (part)
        fl_part_tile(p, &t, fns[m], m, rest);
      else
        fns[m](p, &t);
      i += m;
      t.rows += m;
      t.c += m * t.ldc;
      if (t.residual)
        t.residual += m * t.ldr;
      if (t.bias && e->bias_by_row)
        t.bias += m;
      if (!last)
        t.ahead += t.ahead_step * p->klen;
    }
    j += width;
  }
}
