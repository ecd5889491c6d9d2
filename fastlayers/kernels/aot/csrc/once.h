/* Values that say where memory is read, in arrays that another thread may change meanwhile: they were looked at before anything was
 * written, so each is read once more, into a local, and whatever it is by then stays within bounds. What such a race computes is
* undefined; that it reads and writes where it may is ours. `volatile` keeps the compiler from reading again what it has compared. */
#ifndef FL_ONCE_H
#define FL_ONCE_H
#include <stdint.h>

static inline int64_t fl_once(const int64_t *at) { return *(const volatile int64_t *)at; }
static inline int fl_once32(const int *at) { return *(const volatile int *)at; }
static inline float fl_once_f32(const float *at) { return *(const volatile float *)at; }

/* Row i of n > 0, counted from the end if i is below 0; row 0 where there is no such row. */
static inline int64_t fl_row(int64_t i, int64_t n) {
  const int64_t row = i < 0 ? i + n : i;
  return (uint64_t)row < (uint64_t)n ? row : 0;
}
#endif
