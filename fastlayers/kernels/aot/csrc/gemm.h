/* The packed matrix product over one block of K: walks groups of panels, and under each the rows in tiles of even height.
 *
 * A tile of m rows and p panels keeps m * p * 16 / VW sums in registers. Two multiply-adds start a cycle and each takes four, so
 * eight sums or more keep the units busy: few rows walk more panels at once. x86_v4 walks several panels even with many rows, since one
 * panel is one register there, and the larger the tile, the less its beginning and end weigh (8x32 165, 6x64 170, 8x48 172 GF/s). Rows are cut into tiles whose heights differ by at most one: 8 rows are 4 + 4
 * and not 6 + 2, whose second tile would wait for its own sums. */

/* Pieces of one tile's operands, with its place in the block already applied. */
typedef struct {
  const float *const *rows;
  const float *b;
  int64_t step; /* floats between packed panels */
  float *c;
  int64_t ldc;
  const float *bias, *residual;
  int64_t ldr;
  const float *ahead; /* next panels, prefetched while this tile runs: `ahead_step` floats per step of k */
  int64_t ahead_step;
  const int64_t *taps; /* where the terms of unpacked panels are from `b` */
  int64_t m;           /* rows, which fl_tile_half asks */
} fl_tile;

/* Terms a turn of the inner loop: its counters compete with the multiply-adds for ports. With the 16 registers of x86_v3 GCC moves loads
 * of four terms so far ahead that a sum goes to memory in each turn: 94 GF/s, and 103 with two. */
#define FL_STEP (VW == 8 ? 2 : 4)

typedef void (*fl_tile_fn)(const fl_block *, const fl_tile *);

/* Over a tile, what it does not do in registers: one function, of which every tile has a call. */
static __attribute__((noinline)) void fl_tile_end(const fl_epilogue *e, float *c, int64_t ldc, int rows, int n) {
  for (int i = 0; i < rows; i++, c += ldc)
    fl_f32_unary(e->code, e->a, e->b, c, c, n);
}

/* Tiles by number of panels, with the tallest of each. */
typedef struct {
  int panels, rows;
  const fl_tile_fn *tiles;
} fl_shape;

#include "shapes.h"
#define FL_TAPS
#include "shapes.h"
#undef FL_TAPS

#ifdef __AVX2__
/* The tallest tile over the first half of a panel, for a last one of at most eight columns: a vector of eight takes half the time of one
 * of sixteen, or of two (24 results: 0.8 of the time). Sums are those of tile.h. */
#define FL_HALF_PANEL (FL_PANEL / 2)
typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));
static __attribute__((noinline)) void fl_tile_half(const fl_block *p, const fl_tile *t) {
  __m256 acc[FL_MR];
  const float *row[FL_MR], *b = t->b;
  FL_UNROLL for (int i = 0; i < FL_MR; i++) {
    row[i] = t->rows[i < t->m ? i : 0]; /* a lower tile's result goes to a buffer of full height */
    acc[i] = _mm256_setzero_ps();
  }
  for (int64_t r = 0; r < p->nruns; r++) {
    if (p->runs[r].length < 0) {
      b -= p->runs[r].length * FL_PANEL;
      continue;
    }
    const int64_t end = p->runs[r].offset + p->runs[r].length;
    for (int64_t k = p->runs[r].offset; k < end; k++, b += FL_PANEL) {
      const __m256 v = *(const v8 *)b;
      FL_UNROLL for (int i = 0; i < FL_MR; i++) acc[i] = _mm256_fmadd_ps(_mm256_broadcast_ss(row[i] + k), v, acc[i]);
    }
  }
  float *c = t->c;
  const fl_epilogue *e = p->epilogue;
  FL_UNROLL for (int i = 0; i < FL_MR; i++) {
    if (p->accumulate)
      acc[i] = *(const v8 *)(c + i * t->ldc) + acc[i];
    if (e && t->bias)
      acc[i] += *(const v8 *)t->bias;
    if (e && t->residual)
      acc[i] += *(const v8 *)(t->residual + i * t->ldr);
    if (e && e->code == FL_RELU)
      acc[i] = _mm256_max_ps(_mm256_setzero_ps(), acc[i]);
    *(v8 *)(c + i * t->ldc) = acc[i];
  }
  if (e && e->code > FL_RELU)
    fl_tile_end(e, c, t->ldc, FL_MR, FL_HALF_PANEL);
}
#endif

/* `cols` < 16 columns of m rows. A scorer has one or two, and calling memcpy for each row took half of its product's time. */
FL_INLINE void fl_part_rows(float *to, int64_t ldt, const float *from, int64_t ldf, int64_t m, int64_t cols) {
  if (cols == 1)
    for (int64_t i = 0; i < m; i++)
      to[i * ldt] = from[i * ldf];
  else if (cols == 2)
    for (int64_t i = 0; i < m; i++)
      memcpy(to + i * ldt, from + i * ldf, 8);
  else
    for (int64_t i = 0; i < m; i++)
      memcpy(to + i * ldt, from + i * ldf, (size_t)cols * 4);
}

/* The last panel where n is no multiple of 16: the tile works on whole panels in a buffer, the valid columns are copied. */
static __attribute__((noinline)) void fl_part_tile(const fl_block *p, const fl_tile *t, fl_tile_fn fn, int64_t m, int64_t cols) {
  float c[FL_MR * FL_PANEL], residual[FL_MR * FL_PANEL];
  fl_tile part = *t;
  part.c = c;
  part.ldc = FL_PANEL;
  if (p->accumulate) {
    memset(c, 0, sizeof(c));
    fl_part_rows(c, FL_PANEL, t->c, t->ldc, m, cols);
  }
  if (t->residual) {
    memset(residual, 0, sizeof(residual));
    fl_part_rows(residual, FL_PANEL, t->residual, t->ldr, m, cols);
    part.residual = residual;
    part.ldr = FL_PANEL;
  }
  fn(p, &part);
  fl_part_rows(t->c, t->ldc, c, FL_PANEL, m, cols);
}

/* The walk: over packed panels with stride `size`, or, with `taps`, over neighbouring columns at p->b + taps[k], with stride FL_PANEL. */
FL_INLINE void fl_walk(const fl_block *p, int64_t size, const int64_t *taps) {
  if (p->m <= 0 || p->n <= 0)
    return;
  const fl_epilogue *e = p->epilogue;
  const int64_t whole = p->n / FL_PANEL, rest = p->n % FL_PANEL, panels = whole + (rest > 0);
  for (int64_t j = 0; j < panels;) {
    const int part = j == whole;
    const fl_shape *shape = taps ? fl_taps_pick(p->m, whole - j) : fl_pick(p->m, whole - j); /* one panel if none is whole */
    const int64_t tiles = (p->m + shape->rows - 1) / shape->rows, low = p->m / tiles, high = p->m % tiles; /* `high` tiles of low + 1 */
    const int64_t next = j + shape->panels, step = (shape->panels * FL_PANEL + tiles - 1) / tiles;
    fl_tile t = {.rows = p->rows, .b = p->b + j * size, .step = size, .c = p->c + j * FL_PANEL, .ldc = p->ldc, .taps = taps};
    /* Each tile draws its share of the next panels, or of the next call's. */
    if (!taps) {
      t.ahead = next < panels ? p->b + next * size : p->ahead ? p->ahead : t.b;
      t.ahead_step = t.ahead == t.b ? 0 : step > 4 ? step : 4;
    }
    if (e && e->residual) {
      t.residual = e->residual + j * FL_PANEL;
      t.ldr = e->ldr;
    }
    if (e && e->bias)
      t.bias = e->bias_by_row ? e->bias : e->bias + j * FL_PANEL;
    for (int64_t tile = 0; tile < tiles; tile++) {
      const int64_t m = low + (tile < high);
#ifdef __AVX2__
      t.m = m;
      if (part && rest <= FL_HALF_PANEL && m > FL_MR / 2 && !taps && !(e && e->bias_by_row)) {
        if (rest == FL_HALF_PANEL && m == FL_MR)
          fl_tile_half(p, &t);
        else
          fl_part_tile(p, &t, fl_tile_half, m, rest);
      } else
#endif
      if (part)
        fl_part_tile(p, &t, shape->tiles[m], m, rest);
      else
        shape->tiles[m](p, &t);
      t.rows += m;
      t.c += m * t.ldc;
      if (t.residual)
        t.residual += m * t.ldr;
      if (t.bias && e->bias_by_row)
        t.bias += m;
      if (!taps)
        t.ahead += t.ahead_step * p->klen;
    }
    j = next;
  }
}

static __attribute__((noinline)) void fl_walk_panels(const fl_block *p, int64_t size) { fl_walk(p, size, NULL); }

static void fl_f32_block(const fl_block *p) { fl_walk_panels(p, p->klen * FL_PANEL); }

static __attribute__((noinline)) void fl_f32_block_at(const fl_block *p, const int64_t *taps) { fl_walk(p, FL_PANEL, taps); }

/* The same in blocks of FL_FINE terms: some columns at a time, whose sums stay in the nearest caches. */
enum { FL_FINE_COLUMNS = 128 }; /* whole panels */

FL_INLINE void fl_fine_columns(fl_block part, const int64_t *taps, int64_t size) {
  const fl_epilogue *e = part.epilogue;
  const fl_run *run = part.runs;
  const float *ahead = part.ahead;
  fl_run runs[FL_FINE];
  int64_t done = 0, left = part.klen; /* terms: of `run` done, of the block left */
  part.runs = runs;
  do {
    part.klen = left < FL_FINE ? left : FL_FINE;
    part.nruns = 0;
    for (int64_t room = part.klen; room > 0;) {
      const int gap = run->length < 0;
      const int64_t rest = (gap ? -run->length : run->length) - done, some = rest < room ? rest : room;
      if (some > 0)
        runs[part.nruns++] = gap ? (fl_run){0, -some} : (fl_run){run->offset + done, some};
      room -= some;
      done += some;
      if (some == rest)
        run++, done = 0;
    }
    left -= part.klen;
    part.epilogue = left ? NULL : e;
    part.ahead = left ? part.b + part.klen * FL_PANEL : ahead;
    if (taps)
      fl_f32_block_at(&part, taps);
    else {
      fl_walk_panels(&part, size);
      part.b += part.klen * FL_PANEL;
    }
    part.accumulate = 1;
  } while (left > 0);
}

FL_INLINE void fl_fine(const fl_block *p, const int64_t *taps) {
  const int64_t size = taps ? FL_PANEL : p->klen * FL_PANEL;
  fl_block part = *p;
  fl_epilogue e;
  if (p->epilogue) {
    e = *p->epilogue;
    part.epilogue = &e;
  }
  for (int64_t j = 0; j < p->n; j += FL_FINE_COLUMNS) {
    part.n = p->n - j < FL_FINE_COLUMNS ? p->n - j : FL_FINE_COLUMNS;
    part.ahead = j + FL_FINE_COLUMNS < p->n ? part.b + FL_FINE_COLUMNS / FL_PANEL * size : p->ahead;
    fl_fine_columns(part, taps, size);
    part.b += FL_FINE_COLUMNS / FL_PANEL * size;
    part.c += FL_FINE_COLUMNS;
    if (p->epilogue && e.bias && !e.bias_by_row)
      e.bias += FL_FINE_COLUMNS;
    if (p->epilogue && e.residual)
      e.residual += FL_FINE_COLUMNS;
  }
}

static void fl_f32_fine_block(const fl_block *p) { fl_fine(p, NULL); }

static void fl_f32_fine_block_at(const fl_block *p, const int64_t *taps) { fl_fine(p, taps); }
