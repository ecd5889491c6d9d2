/* The tiles of a level, and FL_PICK, which of them to use when m rows meet `left` whole panels. Included by gemm.h twice: for packed
 * panels, and with FL_TAPS defined for panels that are read where they are. */
#ifdef FL_TAPS
#define FL_SHAPES fl_taps_shapes
#define FL_PICK fl_taps_pick
#define FL_TILES(panels, rows) fl_taps_##panels##of_##rows
#else
#define FL_SHAPES fl_shapes
#define FL_PICK fl_pick
#define FL_TILES(panels, rows) fl_tiles_##panels##of_##rows
#endif
#if VW == 16 /* x86_v4 */
#define FL_TP 1
#define FL_ROWS 8
#include "tiles.h"
#define FL_TP 2
#define FL_ROWS 8
#include "tiles.h"
#define FL_TP 3
#define FL_ROWS 8
#include "tiles.h"
#define FL_TP 4
#define FL_ROWS 6
#include "tiles.h"
#define FL_TP 8
#define FL_ROWS 1
#include "tiles.h"
static const fl_shape FL_SHAPES[] = {{1, 8, FL_TILES(1, 8)}, {2, 8, FL_TILES(2, 8)}, {3, 8, FL_TILES(3, 8)}, {4, 6, FL_TILES(4, 6)}, {8, 1, FL_TILES(8, 1)}};
#ifndef FL_TAPS
#define FL_MR 8
#endif
static const fl_shape *FL_PICK(int64_t m, int64_t left) {
  if (m == 1 && left >= 8)
    return &FL_SHAPES[4];
  if (left >= 4 && left != 5 && (m <= 6 || m > 8))
    return &FL_SHAPES[3];
  return &FL_SHAPES[left >= 5 || left == 3 ? 2 : left >= 2 ? 1 : 0];
}
#elif VW == 8 /* x86_v3 */
#define FL_TP 1
#define FL_ROWS 6
#include "tiles.h"
#define FL_TP 2
#define FL_ROWS 3
#include "tiles.h"
#define FL_TP 4
#define FL_ROWS 1
#include "tiles.h"
static const fl_shape FL_SHAPES[] = {{1, 6, FL_TILES(1, 6)}, {2, 3, FL_TILES(2, 3)}, {4, 1, FL_TILES(4, 1)}};
#ifndef FL_TAPS
#define FL_MR 6
#endif
static const fl_shape *FL_PICK(int64_t m, int64_t left) {
  return &FL_SHAPES[m == 1 && left >= 4 ? 2 : m <= 3 && left >= 2 ? 1 : 0];
}
#elif VREGS == 32 /* neon */
#define FL_TP 1
#define FL_ROWS 6
#include "tiles.h"
#define FL_TP 2
#define FL_ROWS 2
#include "tiles.h"
static const fl_shape FL_SHAPES[] = {{1, 6, FL_TILES(1, 6)}, {2, 2, FL_TILES(2, 2)}};
#ifndef FL_TAPS
#define FL_MR 6
#endif
static const fl_shape *FL_PICK(int64_t m, int64_t left) { return &FL_SHAPES[m <= 2 && left >= 2]; }
#else /* x86_v1 */
#define FL_TP 1
#define FL_ROWS 3
#include "tiles.h"
#define FL_TP 2
#define FL_ROWS 1
#include "tiles.h"
static const fl_shape FL_SHAPES[] = {{1, 3, FL_TILES(1, 3)}, {2, 1, FL_TILES(2, 1)}};
#ifndef FL_TAPS
#define FL_MR 3
#endif
static const fl_shape *FL_PICK(int64_t m, int64_t left) { return &FL_SHAPES[m == 1 && left >= 2]; }
#endif
#undef FL_SHAPES
#undef FL_PICK
#undef FL_TILES
