/* Float weights as numbers of 8 or 4 bits that share a scale: a block of 32, as passes/few_bits.py defines it, to the bit. For any
 * processor: vectors of four floats, which all of them have. */
#ifndef FL_NBITS_ROUND_H
#define FL_NBITS_ROUND_H
#include <float.h>
#include <stdint.h>
#include <string.h>

#define FL_ROUND_BLOCK 32
#define FL_ROUND_PARTS 8
#define FL_ROUND_MAGIC 12582912.0f /* 3 * 2^22: what is added to it, and less than 2^21, becomes whole, halves even */

typedef float fl_four __attribute__((vector_size(16)));
typedef int32_t fl_fours __attribute__((vector_size(16)));

static inline fl_four fl_four_of(float v) { return (fl_four){v, v, v, v}; }
static inline fl_four fl_four_if(fl_fours which, fl_four a, fl_four b) { return (fl_four)((which & (fl_fours)a) | (~which & (fl_fours)b)); }
static inline fl_four fl_four_max(fl_four a, fl_four b) { return fl_four_if((fl_fours)(a > b), a, b); }
static inline float fl_four_sum(fl_four a) { return (a[0] + a[1]) + (a[2] + a[3]); }
static inline float fl_four_top(fl_four a) {
  const float x = a[0] > a[1] ? a[0] : a[1], y = a[2] > a[3] ? a[2] : a[3];
  return x > y ? x : y;
}

/* stats: adds the squares of the differences, and of the weights; the largest difference. Whether all weights are finite. */
static int fl_nbits_round(const float *w, int bits, uint8_t *to, float *scale, double *stats) {
  const float half = (float)(1 << (bits - 1));
  fl_four v[FL_ROUND_PARTS], most, least, lost = {0}, error = {0}, whole = {0}, far = {0};
  memcpy(v, w, sizeof v);
  most = v[0], least = -v[0];
  for (int t = 0; t < FL_ROUND_PARTS; t++) {
    most = fl_four_max(v[t], most);
    least = fl_four_max(-v[t], least);
    lost += v[t] * 0; /* NaN, of what is not finite */
  }
  if (fl_four_sum(lost) != 0) /* NaN is */
    return 0;
  const float high = fl_four_top(most), low = fl_four_top(least);
  const float sign = high > low ? 1.0f : -1.0f, largest = high > low ? high : low, opposite = high < low ? high : low;
  float s = opposite <= largest * ((half - 0.5f) / half) ? -sign * largest / half : largest / (half - 1);
  if ((s < 0 ? -s : s) < FLT_MIN)
    s = 0;
  *scale = s;
  const fl_four by = fl_four_of(s == 0 ? 1.0f : s), steps = fl_four_of(s), top = fl_four_of(half - 1), magic = fl_four_of(FL_ROUND_MAGIC);
  const fl_four up = fl_four_of(half);
  fl_fours numbers[FL_ROUND_PARTS];
  for (int t = 0; t < FL_ROUND_PARTS; t++) {
    fl_four q = v[t] / by + magic;
    q -= magic;
    q = fl_four_max(q, -up);
    q = -fl_four_max(-q, -top);
    numbers[t] = __builtin_convertvector(q + up, fl_fours);
    const fl_four d = v[t] - q * steps;
    error += d * d;
    whole += v[t] * v[t];
    far = fl_four_max(fl_four_max(d, -d), far);
  }
  const float farthest = fl_four_top(far);
  stats[0] += fl_four_sum(error);
  stats[1] += fl_four_sum(whole);
  stats[2] = farthest > stats[2] ? farthest : stats[2];
  for (int t = 0; t < FL_ROUND_PARTS; t++) {
    const fl_fours n = numbers[t];
    if (bits == 8) {
      const uint32_t four = (uint32_t)n[0] | (uint32_t)n[1] << 8 | (uint32_t)n[2] << 16 | (uint32_t)n[3] << 24;
      memcpy(to + 4 * t, &four, 4);
    } else {
      const uint16_t four = (uint16_t)(n[0] | n[1] << 4 | n[2] << 8 | n[3] << 12);
      memcpy(to + 2 * t, &four, 2);
    }
  }
  return 1;
}
#endif
