/* The different elements of an array: where each comes first, which of them each element is, how often it is there. Integers that are close
 * together are counted, everything else is sorted (topk.h), so NaN is after all numbers and one with itself, and -0 is 0. */
#ifndef FL_DIFFERENT_H
#define FL_DIFFERENT_H
#include <stdint.h>
#include <string.h>
#include "topk.h"

/* Most distance between integers that are counted, for n of them. */
static inline int64_t fl_different_span(int64_t n) { return 4 * n + 1024; }

/* Bytes of scratch: first places, counts and new numbers of each, which one each is, then the elements in order with their positions and
 * what sorts them, or the elements as 64 bits and a table of them. */
static int64_t fl_different_room(int kind, int item, int64_t n) {
  const int64_t sorted = (item + 8 + (item == 8 ? 32 : 16)) * n + 16, counted = 8 * n + 8 * (fl_different_span(n) + 1);
  return 32 * n + 64 + (sorted > counted ? sorted : counted);
}

static int64_t fl_as_integer(int kind, const char *x) {
  switch (kind) {
  case FL_INT8: return *(const int8_t *)x;
  case FL_UINT8: case FL_BOOL: return *(const uint8_t *)x;
  case FL_INT16: return *(const int16_t *)x;
  case FL_UINT16: return *(const uint16_t *)x;
  case FL_INT32: return *(const int32_t *)x;
  case FL_UINT32: return *(const uint32_t *)x;
  default: return *(const int64_t *)x;
  }
}

/* What stands for an element: equal elements have the same. */
static uint64_t fl_element_key(int kind, const char *x) {
  switch (kind) {
  case FL_FLOAT32: return fl_key_f32(*(const uint32_t *)x);
  case FL_FLOAT16: return fl_key_f16(*(const uint16_t *)x);
  case FL_FLOAT64: return fl_key_f64(*(const uint64_t *)x);
  default: return (uint64_t)fl_as_integer(kind, x);
  }
}

/* Returns how many there are. Of what is not wanted the pointer is NULL; `ordered`: in their order, else as they come. */
static int64_t fl_different(int kind, int item, const char *x, int64_t n, int ordered, char *out, int64_t *first, int64_t *which,
                            int64_t *counts, char *scratch) {
  int64_t *at = (int64_t *)scratch, *often = at + n, *number = often + n, *of = number + n, *rest = of + n;
  int64_t found = 0, low = INT64_MAX, high = INT64_MIN;
  const int whole = kind != FL_FLOAT32 && kind != FL_FLOAT16 && kind != FL_FLOAT64 && kind != FL_UINT64;
  if (whole)
    for (int64_t i = 0; i < n; i++) {
      const int64_t v = rest[i] = fl_as_integer(kind, x + i * item);
      low = v < low ? v : low, high = v > high ? v : high;
    }
  if (whole && n && (uint64_t)high - (uint64_t)low <= (uint64_t)fl_different_span(n)) {
    int64_t *table = rest + n; /* how often, and then which one */
    const int64_t span = high - low + 1;
    memset(table, 0, (size_t)span * 8);
    for (int64_t i = 0; i < n; i++)
      table[rest[i] - low]++;
    for (int64_t v = 0; v < span; v++)
      if (table[v])
        often[found] = table[v], at[found] = -1, table[v] = found++;
    for (int64_t i = 0; i < n; i++) {
      const int64_t g = of[i] = table[rest[i] - low];
      at[g] = at[g] < 0 ? i : at[g];
    }
  } else if (n) {
    char *candidates = (char *)(((uintptr_t)(rest + n) + 15) & ~(uintptr_t)15), *values = candidates + (item == 8 ? 32 : 16) * n;
    uint64_t last = 0;
    fl_topk(kind == FL_BOOL ? FL_UINT8 : kind, x, n, 1, n, 1, values, rest, candidates);
    for (int64_t j = 0; j < n; j++) {
      const uint64_t key = fl_element_key(kind, values + j * item);
      if (!j || key != last)
        at[found] = rest[j], often[found++] = 0;
      last = key, often[found - 1]++, of[rest[j]] = found - 1;
    }
  }
  if (!ordered) {
    int64_t next = 0;
    for (int64_t i = 0; i < n; i++)
      if (at[of[i]] == i)
        number[of[i]] = next++;
  }
  for (int64_t g = 0; g < found; g++) {
    const int64_t to = ordered ? g : number[g];
    if (out)
      memcpy(out + to * item, x + at[g] * item, (size_t)item);
    if (first)
      first[to] = at[g];
    if (counts)
      counts[to] = often[g];
  }
  for (int64_t i = 0; which && i < n; i++)
    which[i] = ordered ? of[i] : number[of[i]];
  return found;
}
#endif
