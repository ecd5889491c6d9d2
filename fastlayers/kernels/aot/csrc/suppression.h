/* The best boxes of one class, without those that overlap a better one: candidates by falling scores, the first of equals first, each
 * compared with the boxes that stay. Candidates are ordered a batch at a time: most classes want few of them. */
#ifndef FL_SUPPRESSION_H
#define FL_SUPPRESSION_H
#include <math.h>
#include <stdint.h>
#include "topk.h"

enum { FL_BATCH = 256, FL_TOGETHER = 16 };

/* A product that is not made one with the sum after it: others round it, too, and ties at the threshold are decided so. */
static inline float fl_rounded(float x) {
#if defined(__aarch64__)
  __asm__("" : "+w"(x));
#elif defined(__FMA__)
  __asm__("" : "+x"(x));
#endif
  return x;
}

/* Lower corners, upper corners and areas of n boxes [n][4] as five rows of n: of any two corners, or (centred) of centre and size. */
static void fl_corners(const float *boxes, int64_t n, int centred, float *to) {
  for (int64_t i = 0; i < n; i++)
    for (int side = 0; side < 2; side++) {
      const float p = boxes[4 * i + side], q = boxes[4 * i + 2 + side], half = q / 2;
      to[side * n + i] = centred ? p - half : p < q || p != p ? p : q;
      to[(2 + side) * n + i] = centred ? p + half : p > q || p != p ? p : q;
    }
  for (int64_t i = 0; i < n; i++)
    to[4 * n + i] = (to[2 * n + i] - to[i]) * (to[3 * n + i] - to[n + i]);
}

/* Does box i overlap one of `count` selected ones, whose rows have stride `room` and may be read up to the next FL_TOGETHER? */
static int fl_overlaps(const float *sides, int64_t n, int64_t i, const float *kept, int64_t room, int64_t count, float threshold) {
  const float y0 = sides[i], x0 = sides[n + i], y1 = sides[2 * n + i], x1 = sides[3 * n + i], area = sides[4 * n + i];
  const float *ky0 = kept, *kx0 = kept + room, *ky1 = kept + 2 * room, *kx1 = kept + 3 * room, *karea = kept + 4 * room;
  for (int64_t first = 0; first < count; first += FL_TOGETHER) {
    int any = 0;
    for (int64_t j = first; j < first + FL_TOGETHER; j++) {
      const float low_y = y0 > ky0[j] ? y0 : ky0[j], low_x = x0 > kx0[j] ? x0 : kx0[j];
      const float high_y = y1 < ky1[j] ? y1 : ky1[j], high_x = x1 < kx1[j] ? x1 : kx1[j];
      const float h = high_y - low_y, w = high_x - low_x;
      const float shared = fl_rounded((h > 0 ? h : 0) * (w > 0 ? w : 0));
      any |= (shared > 0) & (shared / (area + karea[j] - shared) > threshold);
    }
    if (any)
      return 1;
  }
  return 0;
}

static inline int64_t fl_kept_room(int64_t most) { return (most + FL_TOGETHER - 1) / FL_TOGETHER * FL_TOGETHER; }
static inline int64_t fl_suppression_scratch(int64_t n, int64_t most) { return 16 * n + 20 * fl_kept_room(most) + 64; }

/* Up to `most` boxes of n, by their values; returns how many. `scratch`: fl_suppression_scratch(n, most) bytes. Scores that are not
 * above `least` (`above`) or are NaN are left out. */
static int64_t fl_suppressed(const float *sides, const float *scores, int64_t n, int64_t most, float threshold, int above, float least,
                             int64_t *found, char *scratch) {
  uint64_t *keys = (uint64_t *)scratch, *spare = keys + n;
  float *kept = (float *)(spare + n);
  const int64_t room = fl_kept_room(most);
  int64_t count = 0, stays = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, scores + i, sizeof bits);
    keys[count] = (uint64_t)~fl_key_f32(bits) << 32 | (uint64_t)i;
    count += above ? scores[i] > least : scores[i] == scores[i];
  }
  for (int64_t j = 0; j < 5 * room; j++)
    kept[j] = 0; /* what is read of boxes that are not there shares nothing */
  for (int64_t first = 0; first < count && stays < most; first += FL_BATCH) {
    const int64_t batch = count - first < FL_BATCH ? count - first : FL_BATCH;
    fl_select_u64(keys + first, spare, count - first, batch);
    fl_sort_u64(keys + first, spare, batch);
    for (int64_t k = first; k < first + batch && stays < most; k++) {
      const int64_t i = (int64_t)(uint32_t)keys[k];
      if (fl_overlaps(sides, n, i, kept, room, stays, threshold))
        continue;
      for (int side = 0; side < 5; side++)
        kept[side * room + stays] = sides[side * n + i];
      found[stays++] = i;
    }
  }
  return stays;
}
#endif
