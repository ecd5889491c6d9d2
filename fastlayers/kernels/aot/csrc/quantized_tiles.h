/* Tiles of FL_TP panels, of 1 to FL_TALLEST rows: see quantized_tile.h. Undefines both. */

#define FL_TM 1
#include "quantized_tile.h"
#if FL_TALLEST >= 2
#define FL_TM 2
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 3
#define FL_TM 3
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 4
#define FL_TM 4
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 5
#define FL_TM 5
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 6
#define FL_TM 6
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 7
#define FL_TM 7
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 8
#define FL_TM 8
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 9
#define FL_TM 9
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 10
#define FL_TM 10
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 11
#define FL_TM 11
#include "quantized_tile.h"
#endif
#if FL_TALLEST >= 12
#define FL_TM 12
#include "quantized_tile.h"
#endif
#undef FL_TP
#undef FL_TALLEST
