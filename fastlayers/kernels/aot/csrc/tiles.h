/* All tiles of FL_TP panels, 1 to FL_ROWS rows, and the table of them. Included by gemm.h; undefines both. */
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

static const fl_tile_fn FL_NAME4(fl_tiles_, FL_TP, of_, FL_ROWS)[] = {
    0,
    FL_NAME4(fl_tile_, 1, x, FL_TP),
#if FL_ROWS >= 2
    FL_NAME4(fl_tile_, 2, x, FL_TP),
#endif
#if FL_ROWS >= 3
    FL_NAME4(fl_tile_, 3, x, FL_TP),
#endif
#if FL_ROWS >= 4
    FL_NAME4(fl_tile_, 4, x, FL_TP),
#endif
#if FL_ROWS >= 5
    FL_NAME4(fl_tile_, 5, x, FL_TP),
#endif
#if FL_ROWS >= 6
    FL_NAME4(fl_tile_, 6, x, FL_TP),
#endif
#if FL_ROWS >= 7
    FL_NAME4(fl_tile_, 7, x, FL_TP),
#endif
#if FL_ROWS >= 8
    FL_NAME4(fl_tile_, 8, x, FL_TP),
#endif
};
#undef FL_TP
#undef FL_ROWS
