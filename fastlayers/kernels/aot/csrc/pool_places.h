/* The largest element of every window with its position in the plane, of one row of outputs. Positions outside the image are none: a window
 * that has no other gives the least number and the position -1. The first of equals counts, and the first NaN before all. */
#ifndef FL_POOL_PLACES_H
#define FL_POOL_PLACES_H
#include <math.h>
#include <stdint.h>
#include "../made/codes.h"

/* Taps first .. last - 1 of `taps` are in an axis of `size`, of a window that begins at `start`. */
static inline void fl_places_inside(int64_t start, int64_t step, int64_t taps, int64_t size, int64_t *first, int64_t *last) {
  *first = 0, *last = taps;
  if (start >= 0 && start + (taps - 1) * step < size) /* as most are: a division costs as much as a window */
    return;
  *first = start < 0 ? (-start + step - 1) / step : 0;
  *last = start < size ? (size - start + step - 1) / step : 0;
  *last = *last < taps ? *last : taps;
}

typedef struct {
  int64_t size[3], kernel[3], stride[3], dilation[3], before[3]; /* d h w */
  int64_t cols, base;                                            /* outputs of a row; what is added to positions */
} fl_places;

/* Windows that are taken together, tap by tap, where all of their taps are in the image: no comparison waits for another. */
enum { FL_PLACES_TOGETHER = 8 };

#define FL_PLACES(name, T, LEAST)                                                                 \
  static void fl_places_##name(const fl_places *p, const void *plane, int64_t z, int64_t y, void *to, int64_t *at) { \
    const T *x = (const T *)plane;                                                                \
    T *out = (T *)to;                                                                             \
    int64_t first[3], last[3];                                                                    \
    const int small = p->size[0] * p->size[1] * p->size[2] <= INT32_MAX;                          \
    const int64_t z0 = z * p->stride[0] - p->before[0], y0 = y * p->stride[1] - p->before[1];     \
    fl_places_inside(z0, p->dilation[0], p->kernel[0], p->size[0], first, last);                  \
    fl_places_inside(y0, p->dilation[1], p->kernel[1], p->size[1], first + 1, last + 1);          \
    for (int64_t j = 0; j < p->cols; j++) {                                                       \
      const int64_t x0 = j * p->stride[2] - p->before[2];                                         \
      T best = LEAST;                                                                             \
      int64_t place = -1;                                                                         \
      const int64_t beyond = x0 + (FL_PLACES_TOGETHER - 1) * p->stride[2] + (p->kernel[2] - 1) * p->dilation[2]; \
      if (x0 >= 0 && beyond < p->size[2] && j + FL_PLACES_TOGETHER <= p->cols && small) {         \
        T most[FL_PLACES_TOGETHER];                                                               \
        int32_t where[FL_PLACES_TOGETHER];                                                        \
        for (int l = 0; l < FL_PLACES_TOGETHER; l++)                                              \
          most[l] = LEAST, where[l] = -1;                                                         \
        for (int64_t a = first[0]; a < last[0]; a++)                                              \
          for (int64_t b = first[1]; b < last[1]; b++) {                                          \
            int64_t tap = ((z0 + a * p->dilation[0]) * p->size[1] + y0 + b * p->dilation[1]) * p->size[2] + x0; \
            for (int64_t c = 0; c < p->kernel[2]; c++, tap += p->dilation[2])                     \
              for (int l = 0; l < FL_PLACES_TOGETHER; l++) {                                      \
                const T v = x[tap + l * p->stride[2]];                                            \
                const int take = (where[l] < 0) | ((most[l] == most[l]) & ((v > most[l]) | (v != v))); \
                most[l] = take ? v : most[l];                                                     \
                where[l] = take ? (int32_t)(tap + l * p->stride[2]) : where[l];                   \
              }                                                                                   \
          }                                                                                       \
        for (int l = 0; l < FL_PLACES_TOGETHER; l++)                                              \
          out[j + l] = most[l], at[j + l] = where[l] + p->base;                                   \
        j += FL_PLACES_TOGETHER - 1;                                                              \
        continue;                                                                                 \
      }                                                                                           \
      fl_places_inside(x0, p->dilation[2], p->kernel[2], p->size[2], first + 2, last + 2);        \
      for (int64_t a = first[0]; a < last[0]; a++)                                                \
        for (int64_t b = first[1]; b < last[1]; b++) {                                            \
          const int64_t row = ((z0 + a * p->dilation[0]) * p->size[1] + y0 + b * p->dilation[1]) * p->size[2] + x0; \
          for (int64_t c = first[2]; c < last[2]; c++) {                                          \
            const T v = x[row + c * p->dilation[2]];                                              \
            const int take = (place < 0) | ((best == best) & ((v > best) | (v != v)));            \
            best = take ? v : best;                                                               \
            place = take ? row + c * p->dilation[2] : place;                                      \
          }                                                                                       \
        }                                                                                         \
      out[j] = best;                                                                              \
      at[j] = place + p->base;                                                                    \
    }                                                                                             \
  }
FL_PLACES(f32, float, -INFINITY)
FL_PLACES(f64, double, -INFINITY)
FL_PLACES(i8, int8_t, INT8_MIN)
FL_PLACES(u8, uint8_t, 0)

static void fl_pool_places(int kind, const fl_places *p, const void *plane, int64_t z, int64_t y, void *out, int64_t *at) {
  switch (kind) {
  case FL_FLOAT32: fl_places_f32(p, plane, z, y, out, at); break;
  case FL_FLOAT64: fl_places_f64(p, plane, z, y, out, at); break;
  case FL_INT8: fl_places_i8(p, plane, z, y, out, at); break;
  case FL_UINT8: fl_places_u8(p, plane, z, y, out, at); break;
  default: break;
  }
}
#endif
