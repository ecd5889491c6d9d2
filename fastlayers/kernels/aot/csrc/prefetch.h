/* Draws memory toward the second-level cache ahead of its use; never faults, whatever the address. */
#ifndef FL_PREFETCH_H
#define FL_PREFETCH_H
#include <stdint.h>

/* n floats of each of `rows` rows with stride `pitch` */
static inline void fl_prefetch_plane(const float *first, int64_t pitch, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < n; j += 16)
      __builtin_prefetch(first + i * pitch + j, 1, 2);
}
#endif
