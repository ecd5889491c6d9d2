/* Float weights as numbers of 8 or 4 bits that share a scale: a block of 32, as passes/few_bits.py defines it, to the bit. For any
 * processor: vectors are what the compiler makes of eight lanes. */
#ifndef FL_NBITS_ROUND_H
#define FL_NBITS_ROUND_H
#include <float.h>
#include <stdint.h>
#include <string.h>

#define FL_ROUND_BLOCK 32
#define FL_ROUND_LANES 8
#define FL_ROUND_MAGIC 12582912.0f /* 3 * 2^22: what is added to it, and less than 2^21, becomes whole, halves even */

/* stats: adds the squares of the differences, and of the weights; the largest difference. Whether all weights are finite. */
static int fl_nbits_round(const float *w, int bits, uint8_t *to, float *scale, double *stats) {
  const float half = (float)(1 << (bits - 1));
  float most[FL_ROUND_LANES], least[FL_ROUND_LANES], lost[FL_ROUND_LANES], error[FL_ROUND_LANES] = {0}, whole[FL_ROUND_LANES] = {0};
  float far[FL_ROUND_LANES] = {0}, high, low, nothing = 0, squares = 0, all = 0, farthest = 0;
  uint8_t numbers[FL_ROUND_BLOCK];
  for (int i = 0; i < FL_ROUND_LANES; i++)
    most[i] = w[i], least[i] = w[i], lost[i] = 0;
  for (int t = 0; t < FL_ROUND_BLOCK; t += FL_ROUND_LANES)
    for (int i = 0; i < FL_ROUND_LANES; i++) {
      const float v = w[t + i];
      most[i] = v > most[i] ? v : most[i];
      least[i] = v < least[i] ? v : least[i];
      lost[i] += v * 0; /* NaN, of what is not finite */
    }
  high = most[0], low = least[0];
  for (int i = 0; i < FL_ROUND_LANES; i++) {
    high = most[i] > high ? most[i] : high;
    low = least[i] < low ? least[i] : low;
    nothing += lost[i];
  }
  if (nothing != 0) /* NaN is */
    return 0;
  const float sign = high > -low ? 1.0f : -1.0f, largest = high > -low ? high : -low, opposite = high < -low ? high : -low;
  float s = opposite <= largest * ((half - 0.5f) / half) ? -sign * largest / half : largest / (half - 1);
  if ((s < 0 ? -s : s) < FLT_MIN)
    s = 0;
  *scale = s;
  const float by = s == 0 ? 1.0f : s;
  for (int t = 0; t < FL_ROUND_BLOCK; t += FL_ROUND_LANES)
    for (int i = 0; i < FL_ROUND_LANES; i++) {
      const float v = w[t + i];
      float q = v / by + FL_ROUND_MAGIC;
      q -= FL_ROUND_MAGIC;
      q = q < -half ? -half : q;
      q = q > half - 1 ? half - 1 : q;
      numbers[t + i] = (uint8_t)(int32_t)(q + half);
      const float d = v - q * s, a = d < 0 ? -d : d;
      error[i] += d * d;
      whole[i] += v * v;
      far[i] = a > far[i] ? a : far[i];
    }
  for (int i = 0; i < FL_ROUND_LANES; i++) {
    squares += error[i];
    all += whole[i];
    farthest = far[i] > farthest ? far[i] : farthest;
  }
  stats[0] += squares;
  stats[1] += all;
  stats[2] = farthest > stats[2] ? farthest : stats[2];
  if (bits == 8)
    memcpy(to, numbers, FL_ROUND_BLOCK);
  else
    for (int t = 0; t < FL_ROUND_BLOCK / 2; t++)
      to[t] = (uint8_t)(numbers[2 * t] | numbers[2 * t + 1] << 4);
  return 1;
}
#endif
