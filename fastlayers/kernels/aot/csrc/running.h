/* Running sums along the middle of three axes. */
#ifndef FL_RUNNING_H
#define FL_RUNNING_H

#include <stdint.h>

/* out[n] = x[0] + ... + x[n], of columns of n values with stride `inner`; `reverse`: from the end on; `exclusive`: without x[n] itself. */
#define FL_RUNNING(NAME, T, W)                                                                                       \
  static void NAME(const T *x, T *out, int64_t n, int64_t inner, int exclusive, int reverse) {                       \
    for (int64_t i = 0; i < inner; i++) {                                                                            \
      W sum = 0;                                                                                                     \
      for (int64_t k = 0; k < n; k++) {                                                                              \
        const int64_t at = (reverse ? n - 1 - k : k) * inner + i;                                                    \
        const W with = sum + (W)x[at];                                                                               \
        out[at] = (T)(exclusive ? sum : with);                                                                       \
        sum = with;                                                                                                  \
      }                                                                                                              \
    }                                                                                                                \
  }
FL_RUNNING(fl_running_f32, float, float)
FL_RUNNING(fl_running_i32, int32_t, uint32_t)
FL_RUNNING(fl_running_i64, int64_t, uint64_t)

#endif
