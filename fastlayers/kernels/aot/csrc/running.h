/* Running sums along the middle of three axes. */
#ifndef FL_RUNNING_H
#define FL_RUNNING_H

#include <stdint.h>
#include <string.h>

/* out[n] = x[0] + ... + x[n], of columns of n values with stride `inner`; `reverse`: from the end on; `exclusive`: without x[n] itself.
 * Several columns go row by row: the sums so far are the row before. */
#define FL_RUNNING(NAME, T, W)                                                                                       \
  static void NAME##_row(const T *sums, const T *x, T *out, int64_t n) {                                             \
    typedef W lanes __attribute__((vector_size(16)));                                                                \
    enum { L = 16 / sizeof(T) };                                                                                     \
    int64_t i = 0;                                                                                                   \
    for (; i + L <= n; i += L) {                                                                                     \
      lanes a, b;                                                                                                    \
      memcpy(&a, sums + i, 16), memcpy(&b, x + i, 16);                                                               \
      a += b;                                                                                                        \
      memcpy(out + i, &a, 16);                                                                                       \
    }                                                                                                                \
    for (; i < n; i++)                                                                                               \
      out[i] = (T)((W)sums[i] + (W)x[i]);                                                                            \
  }                                                                                                                  \
  static void NAME(const T *x, T *out, int64_t n, int64_t inner, int exclusive, int reverse) {                       \
    W sum = 0;                                                                                                       \
    for (int64_t k = 0; k < n; k++) {                                                                                \
      const int64_t at = (reverse ? n - 1 - k : k) * inner, before = reverse ? at + inner : at - inner;              \
      if (inner == 1) {                                                                                              \
        const W with = sum + (W)x[at];                                                                               \
        out[at] = (T)(exclusive ? sum : with);                                                                       \
        sum = with;                                                                                                  \
      } else if (k) {                                                                                                \
        NAME##_row(out + before, x + (exclusive ? before : at), out + at, inner);                                    \
      } else {                                                                                                       \
        for (int64_t i = 0; i < inner; i++)                                                                          \
          out[at + i] = (T)(exclusive ? 0 : sum + (W)x[at + i]);                                                     \
      }                                                                                                              \
    }                                                                                                                \
  }
FL_RUNNING(fl_running_f32, float, float)
FL_RUNNING(fl_running_i32, int32_t, uint32_t)
FL_RUNNING(fl_running_i64, int64_t, uint64_t)

/* Blocks of `kernel` values at `places` places of an image of `size` pixels. */
typedef struct {
  int64_t size[3], kernel[3], stride[3], dilation[3], before[3], places[3];
} fl_blocks;

typedef void (*fl_mix_fn)(const float *const *rows, const float *weight, int64_t count, float *out, int64_t n); /* of a level: see taps.h */

enum { FL_BLOCK_ROWS = 16 };

/* The place of a block whose tap is `way` pixels before this one; below 0 if there is none. */
static inline int64_t fl_block_place(int64_t way, int64_t step, int64_t places) {
  if (step != 1) /* a division costs as much as four sums */
    way = way % step ? -1 : way / step;
  return way < places ? way : -1;
}

/* out[pixel] = the sum of what the blocks over it hold, x [kernel][places], in the order of the kernel's taps. Of blocks next to each other, the
 * rows of the taps of one column are added at once, in the order of the columns. */
static void fl_col2im(const fl_blocks *b, const float *x, float *out, fl_mix_fn mix) {
  const int64_t *size = b->size, *kernel = b->kernel, *places = b->places, step = b->stride[2];
  const int64_t all = places[0] * places[1] * places[2];
  memset(out, 0, (size_t)(size[0] * size[1] * size[2]) * sizeof(float));
  if (step == 1) {
    const float *parts[FL_BLOCK_ROWS];
    float ones[FL_BLOCK_ROWS];
    for (int i = 0; i < FL_BLOCK_ROWS; i++)
      ones[i] = 1;
    /* A column for all rows of the image: a row would wait for what was just written to it. */
    for (int64_t k = 0; k < kernel[2]; k++) {
      const int64_t first = k * b->dilation[2] - b->before[2], start = first < 0 ? 0 : first; /* the pixel of the first place */
      const int64_t end = first + places[2] < size[2] ? first + places[2] : size[2];
      float *to = out + start;
      for (int64_t line = 0, d = 0, h = 0; line < size[0] * size[1]; line++, to += size[2]) {
        int64_t count = 1;
        parts[0] = to;
        for (int64_t z = 0; z < kernel[0] && start < end; z++) {
          const int64_t i = fl_block_place(d + b->before[0] - z * b->dilation[0], b->stride[0], places[0]);
          for (int64_t y = 0; y < kernel[1] && i >= 0; y++) {
            const int64_t j = fl_block_place(h + b->before[1] - y * b->dilation[1], b->stride[1], places[1]);
            if (j < 0)
              continue;
            parts[count++] = x + ((z * kernel[1] + y) * kernel[2] + k) * all + (i * places[1] + j) * places[2] + start - first;
            if (count == FL_BLOCK_ROWS)
              mix(parts, ones, count, to, end - start), count = 1;
          }
        }
        if (count > 1)
          mix(parts, ones, count, to, end - start);
        if (++h == size[1])
          h = 0, d++;
      }
    }
    return;
  }
  for (int64_t tap = 0; tap < kernel[0] * kernel[1] * kernel[2]; tap++) {
    const int64_t z = tap / (kernel[1] * kernel[2]) * b->dilation[0] - b->before[0];
    const int64_t y = tap / kernel[2] % kernel[1] * b->dilation[1] - b->before[1];
    const int64_t first = tap % kernel[2] * b->dilation[2] - b->before[2];
    const int64_t i0 = first < 0 ? (-first + step - 1) / step : 0; /* places i0 .. i1 - 1 are in the image */
    const int64_t room = size[2] - first, most = room > 0 ? (room + step - 1) / step : 0, i1 = most < places[2] ? most : places[2];
    for (int64_t i = 0, d = z; i < places[0]; i++, d += b->stride[0])
      for (int64_t j = 0, h = y; j < places[1]; j++, h += b->stride[1], x += places[2]) {
        float *to = out + (d * size[1] + h) * size[2] + first;
        if (d < 0 || d >= size[0] || h < 0 || h >= size[1])
          continue;
        int64_t k = i0;
        for (; k + 4 <= i1; k += 4) { /* loads before stores: none waits for another pixel's */
          float *at = to + k * step;
          const float p = at[0] + x[k], q = at[step] + x[k + 1], r = at[2 * step] + x[k + 2], s = at[3 * step] + x[k + 3];
          at[0] = p, at[step] = q, at[2 * step] = r, at[3 * step] = s;
        }
        for (; k < i1; k++)
          to[k * step] += x[k];
      }
  }
}

#endif
