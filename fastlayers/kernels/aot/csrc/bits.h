/* A float32 and its bits. */
#ifndef FL_BITS_H
#define FL_BITS_H
#include "kernels.h"

FL_INLINE uint32_t fl_bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
FL_INLINE float fl_float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
#endif
