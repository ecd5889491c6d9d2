/* All tiles of FL_TP panels, 1 to FL_ROWS rows, and the table of them. Included by gemm.h, for unpacked panels with FL_TAPS defined;
 * undefines FL_TP and FL_ROWS. */
#ifdef FL_TAPS
#define FL_ONE(rows) FL_NAME4(fl_taps_, rows, x, FL_TP)
#define FL_ALL FL_NAME4(fl_taps_, FL_TP, of_, FL_ROWS)
#else
#define FL_ONE(rows) FL_NAME4(fl_tile_, rows, x, FL_TP)
#define FL_ALL FL_NAME4(fl_tiles_, FL_TP, of_, FL_ROWS)
#endif
#define FL_TM 1
#include "tile.h"
#if FL_ROWS >= 2
#define FL_TM 2
#include "tile.h"
#endif
#if FL_ROWS >= 3
#define FL_TM 3
#include "tile.h"
#endif
#if FL_ROWS >= 4
#define FL_TM 4
#include "tile.h"
#endif
#if FL_ROWS >= 5
#define FL_TM 5
#include "tile.h"
#endif
#if FL_ROWS >= 6
#define FL_TM 6
#include "tile.h"
#endif
#if FL_ROWS >= 7
#define FL_TM 7
#include "tile.h"
#endif
#if FL_ROWS >= 8
#define FL_TM 8
#include "tile.h"
#endif

static const fl_tile_fn FL_ALL[] = {
    0,
    FL_ONE(1),
#if FL_ROWS >= 2
    FL_ONE(2),
#endif
#if FL_ROWS >= 3
    FL_ONE(3),
#endif
#if FL_ROWS >= 4
    FL_ONE(4),
#endif
#if FL_ROWS >= 5
    FL_ONE(5),
#endif
#if FL_ROWS >= 6
    FL_ONE(6),
#endif
#if FL_ROWS >= 7
    FL_ONE(7),
#endif
#if FL_ROWS >= 8
    FL_ONE(8),
#endif
};
#undef FL_ONE
#undef FL_ALL
#undef FL_TP
#undef FL_ROWS
