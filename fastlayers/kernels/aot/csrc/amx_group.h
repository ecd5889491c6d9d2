/* Groups of sums in AMX's tiles, of bytes (amx.h) and of bfloat16 (amx_half.h): 16 terms of four bytes, or of two bfloat16, are a tile.
 * Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 weights. Of 17 to 32 rows two by two panels are summed at once, of fewer one by four. */
#ifndef FL_AMX_GROUP_H
#define FL_AMX_GROUP_H
#include "amx_tile.h"
#include "kernels.h"

#define FL_AMX_ROWS 32                 /* of a group */
#define FL_AMX_STEP (FL_AMX_ROWS * 64) /* bytes from one tile of a row of bytes to the next */

/* The shapes of tiles for groups of so many rows in the upper and the lower tiles; `lower` is 0 if all are in one. */
static FL_TILED void fl_amx_shape(int64_t upper, int64_t lower) {
  fl_tile_shapes shapes = {.palette = 1};
  for (int t = 0; t < 8; t++) {
    const int64_t rows = t >= 6 ? 16 : lower && (t == 2 || t == 3 || t == 5) ? lower : upper;
    shapes.rows[t] = (uint8_t)rows, shapes.bytes[t] = 64;
  }
  fl_tile_config(&shapes);
}

/* What a group of sums is made of. */
typedef struct {
  const uint8_t *x;     /* rows: of bytes [steps][FL_AMX_ROWS][64], of bfloat16 [rows][FL_KC] */
  const uint8_t *b;     /* panels, with stride `panel` bytes */
  const uint8_t *end;   /* their last terms with zeros after them, stride 1024 bytes */
  int64_t panel, whole; /* whole tiles of terms; where there are more steps, the last one reads `end` */
  int64_t steps, upper;
  int32_t *sums; /* of bfloat16 float32 */
  int goes_on;   /* of bytes: sums are there already */
} fl_amx_group;

typedef void (*fl_amx_fn)(const fl_amx_group *g);

FL_INLINE FL_TILED void fl_amx_zero(void) {
  fl_tile_zero(0);
  fl_tile_zero(1);
  fl_tile_zero(2);
  fl_tile_zero(3);
}

/* Step s of the first panel: where it is whole, or its copy with zeros. */
FL_INLINE const uint8_t *fl_amx_terms(const fl_amx_group *g, int64_t s) { return s < g->whole ? g->b + s * 1024 : g->end; }

#define FL_AMX_PANEL(q) (b + (q) * apart)
#define FL_AMX_STRIDE (brain ? FL_KC * 2 : 64)          /* of rows */
#define FL_AMX_AT(s) ((s) * (brain ? 64 : FL_AMX_STEP)) /* a step of them */
#define FL_AMX_DOT(c, a, b) \
  do { \
    if (brain) \
      fl_tile_dot_brain(c, a, b); \
    else \
      fl_tile_dot(c, a, b); \
  } while (0)

/* 17 to 32 rows: sums[row][32] of two panels, or of one. */
FL_INLINE FL_TILED void fl_amx_two_by(const int brain, const int panels, const fl_amx_group *g) {
  int32_t *lower = g->sums + g->upper * 32;
  if (!brain && g->goes_on) {
    fl_tile_load(0, g->sums, 128);
    fl_tile_load(2, lower, 128);
    if (panels > 1) {
      fl_tile_load(1, g->sums + 16, 128);
      fl_tile_load(3, lower + 16, 128);
    }
  } else
    fl_amx_zero();
  for (int64_t s = 0; s < g->steps; s++) {
    const uint8_t *x = g->x + FL_AMX_AT(s), *b = fl_amx_terms(g, s);
    const int64_t apart = s < g->whole ? g->panel : 1024;
    fl_tile_load(4, x, FL_AMX_STRIDE);
    fl_tile_load(6, FL_AMX_PANEL(0), 64);
    FL_AMX_DOT(0, 4, 6);
    fl_tile_load(5, x + g->upper * FL_AMX_STRIDE, FL_AMX_STRIDE);
    FL_AMX_DOT(2, 5, 6);
    if (panels > 1) {
      fl_tile_load(7, FL_AMX_PANEL(1), 64);
      FL_AMX_DOT(1, 4, 7);
      FL_AMX_DOT(3, 5, 7);
    }
  }
  fl_tile_store(0, g->sums, 128);
  fl_tile_store(2, lower, 128);
  if (panels > 1) {
    fl_tile_store(1, g->sums + 16, 128);
    fl_tile_store(3, lower + 16, 128);
  }
}

/* Up to 16 rows: sums[row][64] of up to four panels. */
FL_INLINE FL_TILED void fl_amx_one_by(const int brain, const int panels, const fl_amx_group *g) {
  if (!brain && g->goes_on) {
    fl_tile_load(0, g->sums, 256);
    if (panels > 1)
      fl_tile_load(1, g->sums + 16, 256);
    if (panels > 2)
      fl_tile_load(2, g->sums + 32, 256);
    if (panels > 3)
      fl_tile_load(3, g->sums + 48, 256);
  } else
    fl_amx_zero();
  for (int64_t s = 0; s < g->steps; s++) {
    const uint8_t *b = fl_amx_terms(g, s);
    const int64_t apart = s < g->whole ? g->panel : 1024;
    fl_tile_load(4, g->x + FL_AMX_AT(s), FL_AMX_STRIDE);
    fl_tile_load(6, FL_AMX_PANEL(0), 64);
    FL_AMX_DOT(0, 4, 6);
    if (panels > 1) {
      fl_tile_load(7, FL_AMX_PANEL(1), 64);
      FL_AMX_DOT(1, 4, 7);
    }
    if (panels > 2) {
      fl_tile_load(6, FL_AMX_PANEL(2), 64);
      FL_AMX_DOT(2, 4, 6);
    }
    if (panels > 3) {
      fl_tile_load(7, FL_AMX_PANEL(3), 64);
      FL_AMX_DOT(3, 4, 7);
    }
  }
  fl_tile_store(0, g->sums, 256);
  if (panels > 1)
    fl_tile_store(1, g->sums + 16, 256);
  if (panels > 2)
    fl_tile_store(2, g->sums + 32, 256);
  if (panels > 3)
    fl_tile_store(3, g->sums + 48, 256);
}
#undef FL_AMX_PANEL
#undef FL_AMX_STRIDE
#undef FL_AMX_AT
#undef FL_AMX_DOT

/* Groups by how many panels they have: NAME_two[1 and 2], NAME_one[1 to 4]. */
#define FL_AMX_GROUP_FN(name, brain, by, panels) \
  static FL_TILED void name##_##by##_##panels(const fl_amx_group *g) { fl_amx_##by##_by(brain, panels, g); }
#define FL_AMX_GROUPS(name, brain) \
  FL_AMX_GROUP_FN(name, brain, two, 1) \
  FL_AMX_GROUP_FN(name, brain, two, 2) \
  FL_AMX_GROUP_FN(name, brain, one, 1) \
  FL_AMX_GROUP_FN(name, brain, one, 2) \
  FL_AMX_GROUP_FN(name, brain, one, 3) \
  FL_AMX_GROUP_FN(name, brain, one, 4) \
  static const fl_amx_fn name##_two[] = {0, name##_two_1, name##_two_2}; \
  static const fl_amx_fn name##_one[] = {0, name##_one_1, name##_one_2, name##_one_3, name##_one_4};
#endif
