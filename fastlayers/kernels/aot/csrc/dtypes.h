/* Sizes of elements of the dtypes that table.KINDS numbers. */
#ifndef FL_DTYPES_H
#define FL_DTYPES_H
#include "../made/codes.h"

static inline int fl_bytes_of(int kind) {
  switch (kind) {
  case FL_INT8: case FL_UINT8: case FL_BOOL: return 1;
  case FL_FLOAT16: case FL_INT16: case FL_UINT16: return 2;
  case FL_FLOAT32: case FL_INT32: case FL_UINT32: return 4;
  default: return 8;
  }
}
static inline int fl_is_float(int kind) { return kind == FL_FLOAT16 || kind == FL_FLOAT32 || kind == FL_FLOAT64; }
#endif
