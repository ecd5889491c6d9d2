/* The dtypes of table.KINDS for what is compiled once, for the baseline: the same numbers as enum fl_kind_code of kernels.h. */
#ifndef FL_DTYPES_H
#define FL_DTYPES_H

enum fl_dtype {
  FL_D_FLOAT32, FL_D_FLOAT64, FL_D_FLOAT16, FL_D_INT8, FL_D_UINT8, FL_D_INT16, FL_D_UINT16, FL_D_INT32, FL_D_INT64, FL_D_BOOL,
  FL_D_UINT32, FL_D_UINT64
};
#endif
