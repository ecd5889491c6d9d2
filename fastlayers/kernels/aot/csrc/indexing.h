/* Rows picked and replaced by number along any axes. A row is where its position in a grid and a tuple of indices say:
 *
 *   row of position p = sum over grid axes of p_a step_a  +  sum over the tuple of index_k stride_k
 *
 * so GatherElements has rows of one element, the grid of its indices and tuples of one; GatherND has tuples of several, and no steps but
 * those of its batch. Offsets are computed a chunk at a time, separately from what is moved by them. Indices are checked before anything is
 * written; each is read once more then, and held within bounds (once.h). */
#ifndef FL_INDEXING_H
#define FL_INDEXING_H
#include <stdint.h>
#include <string.h>
#include "dtypes.h"
#include "once.h"

enum { FL_GRID = 8, FL_OFFSETS = 512 };

typedef struct {
  int axes, count;                               /* of the grid, and indices of a tuple */
  int64_t shape[FL_GRID], step[FL_GRID];         /* of the grid; steps count rows */
  int64_t size[FL_GRID], stride[FL_GRID];        /* of the axes that the indices are of */
  int64_t total;                                 /* positions of the grid */
} fl_grid;

static int fl_grid_within(const fl_grid *g, const int64_t *indices) {
  int wrong = 0;
  if (g->count == 1) {
    const uint64_t n = (uint64_t)g->size[0];
    for (int64_t i = 0; i < g->total; i++)
      wrong |= (uint64_t)indices[i] + n >= 2 * n; /* without a sign, so that nothing overflows */
    return !wrong;
  }
  for (int64_t i = 0; i < g->total; i++)
    for (int k = 0; k < g->count; k++) {
      const uint64_t n = (uint64_t)g->size[k];
      wrong |= (uint64_t)indices[i * g->count + k] + n >= 2 * n;
    }
  return !wrong;
}

/* The rows of positions first .. first + n - 1. */
static void fl_grid_rows(const fl_grid *g, const int64_t *indices, int64_t first, int64_t n, int64_t *to) {
  int64_t at[FL_GRID], base = 0, rest = first;
  const int last = g->axes - 1;
  for (int a = last; a >= 0; a--) {
    at[a] = rest % g->shape[a];
    rest /= g->shape[a];
    base += at[a] * g->step[a];
  }
  indices += first * g->count;
  while (n > 0) {
    const int64_t left = g->shape[last] - at[last], run = left < n ? left : n, step = g->step[last];
    if (g->count == 1) {
      const int64_t size = g->size[0], stride = g->stride[0];
      for (int64_t i = 0; i < run; i++)
        to[i] = base + i * step + fl_row(fl_once(indices + i), size) * stride;
    } else {
      for (int64_t i = 0; i < run; i++) {
        int64_t row = base + i * step;
        for (int k = 0; k < g->count; k++)
          row += fl_row(fl_once(indices + i * g->count + k), g->size[k]) * g->stride[k];
        to[i] = row;
      }
    }
    n -= run, to += run, indices += run * g->count;
    base += run * step, at[last] += run;
    for (int a = last; a > 0 && at[a] == g->shape[a]; a--) { /* the next row of the grid */
      base += g->step[a - 1] - at[a] * g->step[a];
      at[a] = 0, at[a - 1]++;
    }
  }
}

#define FL_PICK(T)                                                                                \
  for (int64_t i = 0; i < n; i++)                                                                 \
    ((T *)out)[i] = ((const T *)x)[rows[i]];                                                      \
  break
/* out[i] = x[rows[i]], rows of `bytes` bytes. */
static void fl_pick_rows(const char *x, const int64_t *rows, int64_t n, int64_t bytes, char *out) {
  switch (bytes) {
  case 1: FL_PICK(uint8_t);
  case 2: FL_PICK(uint16_t);
  case 4: FL_PICK(uint32_t);
  case 8: FL_PICK(uint64_t);
  default:
    for (int64_t i = 0; i < n; i++)
      memcpy(out + i * bytes, x + rows[i] * bytes, (size_t)bytes);
  }
}

#define FL_PICK_ONE(T)                                                                            \
  {                                                                                               \
    const T *from = (const T *)x + base;                                                          \
    T *to = (T *)out;                                                                             \
    for (int64_t i = 0; i < run; i++)                                                             \
      to[i] = from[i * step + fl_row(fl_once(indices + i), size) * stride];                       \
  }                                                                                               \
  break
/* Both at once for tuples of one index and rows of 1, 2, 4 or 8 bytes. */
static void fl_pick_elements(const fl_grid *g, const char *x, const int64_t *indices, int64_t first, int64_t n, int64_t bytes, char *out) {
  const int last = g->axes - 1;
  const int64_t step = g->step[last], size = g->size[0], stride = g->stride[0];
  while (n > 0) {
    int64_t rest = first / g->shape[last], column = first % g->shape[last], base = column * step;
    const int64_t left = g->shape[last] - column, run = left < n ? left : n;
    for (int a = last - 1; a >= 0; a--) {
      base += rest % g->shape[a] * g->step[a];
      rest /= g->shape[a];
    }
    switch (bytes) {
    case 1: FL_PICK_ONE(uint8_t);
    case 2: FL_PICK_ONE(uint16_t);
    case 4: FL_PICK_ONE(uint32_t);
    default: FL_PICK_ONE(uint64_t);
    }
    first += run, n -= run, indices += run, out += run * bytes;
  }
}

#define FL_PUT(T)                                                                                 \
  for (int64_t i = 0; i < n; i++)                                                                 \
    ((T *)out)[rows[i]] = ((const T *)updates)[i];                                                \
  break
#define FL_COMBINE(T, e)                                                                          \
  for (int64_t i = 0; i < n; i++) {                                                               \
    T *z = (T *)out + rows[i] * m;                                                                \
    const T *u = (const T *)updates + i * m;                                                      \
    for (int64_t j = 0; j < m; j++) {                                                             \
      const T s = z[j], t = u[j];                                                                 \
      z[j] = (T)(e);                                                                              \
    }                                                                                             \
  }                                                                                               \
  break
#define FL_COMBINED(T, W)                                                                         \
  {                                                                                               \
    const int64_t m = bytes / (int64_t)sizeof(T);                                                 \
    switch (op) {                                                                                 \
    case FL_S_ADD: FL_COMBINE(T, (W)s + (W)t);                                                    \
    case FL_S_MUL: FL_COMBINE(T, (W)s * (W)t);                                                    \
    case FL_S_MAX: FL_COMBINE(T, s > t || s != s ? s : t);                                        \
    case FL_S_MIN: FL_COMBINE(T, s < t || s != s ? s : t);                                        \
    default: break;                                                                               \
    }                                                                                             \
  }                                                                                               \
  break
/* out[rows[i]] = out[rows[i]] and updates[i] together, one after the other; rows of `bytes` bytes of the dtype `kind`. */
static void fl_scatter_rows(int op, int kind, const char *updates, const int64_t *rows, int64_t n, int64_t bytes, char *out) {
  if (op == FL_S_NONE) {
    switch (bytes) {
    case 1: FL_PUT(uint8_t);
    case 2: FL_PUT(uint16_t);
    case 4: FL_PUT(uint32_t);
    case 8: FL_PUT(uint64_t);
    default:
      for (int64_t i = 0; i < n; i++)
        memcpy(out + rows[i] * bytes, updates + i * bytes, (size_t)bytes);
    }
    return;
  }
  switch (kind) {
  case FL_FLOAT32: FL_COMBINED(float, float);
  case FL_FLOAT64: FL_COMBINED(double, double);
  case FL_INT8: FL_COMBINED(int8_t, uint32_t);
  case FL_INT16: FL_COMBINED(int16_t, uint32_t);
  case FL_INT32: FL_COMBINED(int32_t, uint32_t);
  case FL_INT64: FL_COMBINED(int64_t, uint64_t);
  case FL_UINT8: FL_COMBINED(uint8_t, uint32_t);
  case FL_UINT16: FL_COMBINED(uint16_t, uint32_t);
  case FL_UINT32: FL_COMBINED(uint32_t, uint32_t);
  case FL_UINT64: FL_COMBINED(uint64_t, uint64_t);
  default: break;
  }
}

#define FL_HOT(T)                                                                                 \
  {                                                                                               \
    const T off = ((const T *)values)[0], on = ((const T *)values)[1];                            \
    T *y = (T *)out;                                                                              \
    for (int64_t i = 0; i < n * inner; i++)                                                       \
      y[i] = off;                                                                                 \
    for (int64_t i = 0; i < inner; i++) {                                                         \
      const int64_t index = fl_once(indices + i), k = index < 0 ? index + n : index;              \
      if (k >= 0 && k < n)                                                                        \
        y[k * inner + i] = on;                                                                    \
    }                                                                                             \
  }                                                                                               \
  break
/* out[k, i] = values[k == indices[i]] for k < n, of items of `size` bytes; an index below 0 counts from the end. */
static void fl_one_hot(const int64_t *indices, const char *values, int64_t n, int64_t inner, int size, char *out) {
  switch (size) {
  case 1: FL_HOT(uint8_t);
  case 2: FL_HOT(uint16_t);
  case 4: FL_HOT(uint32_t);
  default: FL_HOT(uint64_t);
  }
}

#define FL_FOUND(T)                                                                               \
  for (int64_t i = 0; i < n; i++) {                                                               \
    to[found] = i;                                                                                \
    found += (((const T *)x)[i] & (T)mask) != 0;                                                  \
  }                                                                                               \
  break
/* Positions of those of n elements of a dtype that are not 0; returns how many. Room for n positions. */
static int64_t fl_found(int kind, const char *x, int64_t n, int64_t *to) {
  const int size = fl_bytes_of(kind);
  const uint64_t mask = ~(uint64_t)0 >> (64 - 8 * size + fl_is_float(kind)); /* not a float's sign */
  int64_t found = 0;
  switch (size) {
  case 1: FL_FOUND(uint8_t);
  case 2: FL_FOUND(uint16_t);
  case 4: FL_FOUND(uint32_t);
  default: FL_FOUND(uint64_t);
  }
  return found;
}

/* Positions in the flat array, at the begin of `at`, as positions along each axis: [axes][count], in their place. */
static void fl_unravel(int64_t *at, int64_t count, int axes, const int64_t *shape) {
  for (int64_t i = 0; axes > 1 && i < count; i++) {
    int64_t rest = at[i];
    for (int a = axes - 1; a >= 0; a--) {
      at[a * count + i] = a ? rest % shape[a] : rest;
      rest /= shape[a];
    }
  }
}
#endif
