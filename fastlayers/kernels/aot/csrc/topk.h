/* The k largest (or least) of n elements with their positions, in order; of equal ones the first comes first. An element and its position
 * are one integer: the higher half orders the elements (reversed for the largest, so that the least integers are wanted), the lower
 * half is the position. So no two are equal, and any way to select and sort gives the same. NaN is more than all values, -0 equals 0. */
#ifndef FL_TOPK_H
#define FL_TOPK_H
#include <stdint.h>
#include <string.h>
#include "../made/codes.h"

typedef unsigned __int128 fl_wide;

/* ---- keys: unsigned, in the order of the elements ---- */

static inline uint32_t fl_key_f32(uint32_t b) {
  const uint32_t size = b << 1;
  if (size > 0xff000000u) return 0xffffffffu;
  if (size == 0) return 0x80000000u;
  return b >> 31 ? ~b : b | 0x80000000u;
}
static inline uint64_t fl_key_f64(uint64_t b) {
  const uint64_t size = b << 1;
  if (size > 0xffe0000000000000u) return 0xffffffffffffffffu;
  if (size == 0) return 0x8000000000000000u;
  return b >> 63 ? ~b : b | 0x8000000000000000u;
}
static inline uint32_t fl_key_f16(uint16_t b) {
  const uint16_t size = (uint16_t)(b << 1);
  if (size > 0xf800u) return 0xffffu;
  if (size == 0) return 0x8000u;
  return b >> 15 ? (uint16_t)~b : b | 0x8000u;
}
#define FL_KEY_SAME(b) (b)
#define FL_KEY_I8(b) ((uint32_t)((b) ^ 0x80u))
#define FL_KEY_I16(b) ((uint32_t)((b) ^ 0x8000u))
#define FL_KEY_I32(b) ((b) ^ 0x80000000u)
#define FL_KEY_I64(b) ((b) ^ 0x8000000000000000u)

/* ---- the least k of integers ---- */

#define FL_SELECTION(name, T)                                                                     \
  /* Sorts a, with as much scratch: runs by insertion, then merged. */                            \
  static void fl_sort_##name(T *a, T *spare, int64_t n) {                                         \
    enum { RUN = 12 };                                                                            \
    for (int64_t first = 0; first < n; first += RUN) {                                            \
      const int64_t end = first + RUN < n ? first + RUN : n;                                      \
      for (int64_t i = first + 1; i < end; i++) {                                                 \
        const T v = a[i];                                                                         \
        int64_t j = i;                                                                            \
        for (; j > first && v < a[j - 1]; j--)                                                    \
          a[j] = a[j - 1];                                                                        \
        a[j] = v;                                                                                 \
      }                                                                                           \
    }                                                                                             \
    T *from = a, *to = spare;                                                                     \
    for (int64_t run = RUN; run < n; run *= 2) {                                                  \
      for (int64_t first = 0; first < n; first += 2 * run) {                                      \
        const int64_t middle = first + run < n ? first + run : n;                                 \
        const int64_t end = first + 2 * run < n ? first + 2 * run : n;                            \
        int64_t i = first, j = middle, k = first;                                                 \
        while (i < middle && j < end) {                                                           \
          const int second = from[j] < from[i];                                                   \
          to[k++] = second ? from[j] : from[i];                                                   \
          j += second, i += !second;                                                              \
        }                                                                                         \
        memcpy(to + k, from + i, (size_t)(middle - i) * sizeof(T));                               \
        memcpy(to + k + (middle - i), from + j, (size_t)(end - j) * sizeof(T));                   \
      }                                                                                           \
      T *other = from;                                                                            \
      from = to, to = other;                                                                      \
    }                                                                                             \
    if (from != a)                                                                                \
      memcpy(a, from, (size_t)n * sizeof(T));                                                     \
  }                                                                                               \
  /* Puts the least k of a first, in any order. What defeats the choice of pivots is sorted. */   \
  static void fl_select_##name(T *a, T *spare, int64_t n, int64_t k) {                            \
    int64_t low = 0, high = n; /* the border is among low .. high */                            \
    for (int round = 0; high - low > 16 && k > low && k < high; round++) {                        \
      if (round > 64) {                                                                           \
        fl_sort_##name(a + low, spare, high - low);                                               \
        return;                                                                                   \
      }                                                                                           \
      const T x = a[low], y = a[low + (high - low) / 2], z = a[high - 1];                         \
      const T pivot = x < y ? (y < z ? y : x < z ? z : x) : (x < z ? x : y < z ? z : y);          \
      int64_t i = low, j = high - 1;                                                              \
      while (i <= j) {                                                                            \
        while (a[i] < pivot) i++;                                                                 \
        while (pivot < a[j]) j--;                                                                 \
        if (i <= j) {                                                                             \
          const T swap = a[i];                                                                    \
          a[i++] = a[j], a[j--] = swap;                                                           \
        }                                                                                         \
      }                                                                                           \
      if (k <= j + 1) high = j + 1;                                                               \
      else if (k > i) low = i;                                                                    \
      else return;                                                                                \
    }                                                                                             \
    if (k > low && k < high)                                                                      \
      fl_sort_##name(a + low, spare, high - low);                                                 \
  }
FL_SELECTION(u64, uint64_t)
FL_SELECTION(u128, fl_wide)

enum { FL_SKIPPED = 32, FL_FEW = 16 };

/* Candidates that are retained at once: twice what is wanted, or all. */
static inline int64_t fl_topk_room(int64_t n, int64_t k) { return n < 64 || k > n / 4 ? n : 2 * k < 32 ? 32 : 2 * k; }

/* Columns first .. first + columns of x [n][inner]; `room` candidates, and as many of scratch after them. */
#define FL_TOPK(name, U, KEY, T, C, BITS)                                                         \
  static void fl_topk_##name(const void *from, int64_t n, int64_t inner, int64_t k, int least, void *out, int64_t *at, void *scratch) { \
    const U *x = (const U *)from;                                                                 \
    const int64_t room = fl_topk_room(n, k);                                                      \
    T *a = (T *)scratch, *spare = a + room;                                                       \
    const C turn = least ? 0 : (C)-1;                                                             \
    int64_t count = 0, until = 0;                                                                 \
    T bound = (T)-1;                                                                              \
    for (int64_t i = 0; i < n; i++) {                                                             \
      if (inner == 1 && BITS == 32 && i >= until && bound != (T)-1) { /* blocks that offer nothing */ \
        const C least_wanted = (C)(bound >> BITS);                                                \
        for (int any = 0; i + FL_SKIPPED <= n; i += FL_SKIPPED) {                                 \
          for (int64_t j = 0; j < FL_SKIPPED; j++)                                                \
            any |= ((C)KEY(x[i + j]) ^ turn) <= least_wanted;                                     \
          if (any)                                                                                \
            break;                                                                                \
        }                                                                                         \
        until = i + FL_SKIPPED;                                                                   \
        if (i >= n)                                                                               \
          break;                                                                                  \
      }                                                                                           \
      const T v = (T)(C)((C)KEY(x[i * inner]) ^ turn) << BITS | (T)(uint64_t)i;                   \
      if (v < bound && k <= FL_FEW) { /* few are stored in order */                               \
        int64_t j = count < k ? count++ : k - 1;                                                  \
        for (; j > 0 && v < a[j - 1]; j--)                                                        \
          a[j] = a[j - 1];                                                                        \
        a[j] = v;                                                                                 \
        bound = count == k ? a[k - 1] : bound;                                                    \
      } else if (v < bound) {                                                                     \
        a[count++] = v;                                                                           \
        if (count == room && i + 1 < n) {                                                         \
          fl_select_##C(a, spare, count, k);                                                      \
          count = k;                                                                              \
          bound = a[0];                                                                           \
          for (int64_t j = 1; j < k; j++)                                                         \
            bound = a[j] > bound ? a[j] : bound;                                                  \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
    if (count > k)                                                                                \
      fl_select_##C(a, spare, count, k);                                                          \
    if (k > FL_FEW)                                                                               \
      fl_sort_##C(a, spare, k);                                                                   \
    for (int64_t j = 0; j < k; j++) {                                                             \
      const int64_t i = (int64_t)(uint64_t)(a[j] & (((T)1 << BITS) - 1));                         \
      ((U *)out)[j * inner] = x[i * inner];                                                       \
      at[j * inner] = i;                                                                          \
    }                                                                                             \
  }
#define fl_select_uint32_t fl_select_u64
#define fl_sort_uint32_t fl_sort_u64
#define fl_select_uint64_t fl_select_u128
#define fl_sort_uint64_t fl_sort_u128
FL_TOPK(f32, uint32_t, fl_key_f32, uint64_t, uint32_t, 32)
FL_TOPK(f16, uint16_t, fl_key_f16, uint64_t, uint32_t, 32)
FL_TOPK(i8, uint8_t, FL_KEY_I8, uint64_t, uint32_t, 32)
FL_TOPK(u8, uint8_t, FL_KEY_SAME, uint64_t, uint32_t, 32)
FL_TOPK(i16, uint16_t, FL_KEY_I16, uint64_t, uint32_t, 32)
FL_TOPK(u16, uint16_t, FL_KEY_SAME, uint64_t, uint32_t, 32)
FL_TOPK(i32, uint32_t, FL_KEY_I32, uint64_t, uint32_t, 32)
FL_TOPK(u32, uint32_t, FL_KEY_SAME, uint64_t, uint32_t, 32)
FL_TOPK(f64, uint64_t, fl_key_f64, fl_wide, uint64_t, 64)
FL_TOPK(i64, uint64_t, FL_KEY_I64, fl_wide, uint64_t, 64)
FL_TOPK(u64, uint64_t, FL_KEY_SAME, fl_wide, uint64_t, 64)

/* One column; n is below 2^32. */
static void fl_topk(int kind, const void *x, int64_t n, int64_t inner, int64_t k, int least, void *out, int64_t *at, void *scratch) {
  switch (kind) {
  case FL_FLOAT32: fl_topk_f32(x, n, inner, k, least, out, at, scratch); break;
  case FL_FLOAT64: fl_topk_f64(x, n, inner, k, least, out, at, scratch); break;
  case FL_FLOAT16: fl_topk_f16(x, n, inner, k, least, out, at, scratch); break;
  case FL_INT8: fl_topk_i8(x, n, inner, k, least, out, at, scratch); break;
  case FL_INT16: fl_topk_i16(x, n, inner, k, least, out, at, scratch); break;
  case FL_INT32: fl_topk_i32(x, n, inner, k, least, out, at, scratch); break;
  case FL_INT64: fl_topk_i64(x, n, inner, k, least, out, at, scratch); break;
  case FL_UINT8: fl_topk_u8(x, n, inner, k, least, out, at, scratch); break;
  case FL_UINT16: fl_topk_u16(x, n, inner, k, least, out, at, scratch); break;
  case FL_UINT32: fl_topk_u32(x, n, inner, k, least, out, at, scratch); break;
  case FL_UINT64: fl_topk_u64(x, n, inner, k, least, out, at, scratch); break;
  default: break;
  }
}
#endif
