/* Conversions between dtypes (enum fl_kind), as numpy's astype does them: integers wrap around, floats lose what is
 * after the point, anything but 0 (NaN too) is true, and floats round to nearest, ties to even, once. A float beyond the range of an
 * integer gives its end (of int32 at least: what is left of that wraps around), NaN the lower end.
 *
 * Pairs with float32 have their own loops; the others go through blocks of doubles, or of int64 from a whole number. */
#include "bits.h"


FL_INLINE uint64_t fl_bits_of_double(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* ---- float16, by its bits: 1 sign, 5 exponent (from 2^-14 on), 10 fraction ------------------------------------------------------ */

/* Below 2^-14 the sum with 2^-1 leaves multiples of 2^-24, rounded, in its last bits; else what is shifted out rounds. NaN is quiet. */
FL_INLINE uint16_t fl_half_of(float x) {
  const uint32_t bits = fl_bits_of(x), size = bits & 0x7fffffff;
  const uint32_t small = fl_bits_of(fl_float_of(size) + 0.5f) - fl_bits_of(0.5f);
  const uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
  const uint32_t large = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : 0x7c00;
  const uint32_t half = size < 113u << 23 ? small : size < 143u << 23 ? normal : large;
  return (uint16_t)(half | (bits >> 16 & 0x8000));
}
FL_INLINE uint16_t fl_half_of_double(double x) {
  const uint64_t bits = fl_bits_of_double(x), size = bits & 0x7fffffffffffffff;
  const uint64_t small = fl_bits_of_double(fabs(x) + 0x1p28) - fl_bits_of_double(0x1p28);
  const uint64_t normal = (size - (1008ull << 52) + 0x1ffffffffff + (size >> 42 & 1)) >> 42;
  const uint64_t large = size > 0x7ff0000000000000 ? 0x7e00 | (size >> 42 & 0x3ff) : 0x7c00;
  const uint64_t half = size < 1009ull << 52 ? small : size < 1039ull << 52 ? normal : large;
  return (uint16_t)(half | (bits >> 48 & 0x8000));
}
/* Subnormals: the fraction as a float of 2^-14 and more, less 2^-14. */
FL_INLINE float fl_of_half(uint16_t half) {
  const uint32_t size = half & 0x7fff, bits = (size << 13) + (112u << 23);
  const uint32_t small = fl_bits_of(fl_float_of(bits + (1u << 23)) - 0x1p-14f);
  const uint32_t large = (bits + (112u << 23)) | (size > 0x7c00 ? 0x400000 : 0);
  const uint32_t magnitude = size < 0x400 ? small : size < 0x7c00 ? bits : large;
  return fl_float_of(magnitude | (uint32_t)(half & 0x8000) << 16);
}

static void fl_cast_f32_f16(const void *from, void *to, int64_t n) {
  const float *x = from;
  uint16_t *y = to;
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; i++)
    y[i] = fl_half_of(x[i]);
}
static void fl_cast_f16_f32(const void *from, void *to, int64_t n) {
  const uint16_t *x = from;
  float *y = to;
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
  for (; i < n; i++)
    y[i] = fl_of_half(x[i]);
}

/* ---- all others --------------------------------------------------------------------------------------------------------------- */

/* Floats as integers, limited first: C leaves open what others become. NaN fails both comparisons. */
FL_INLINE int32_t fl_int_of(float x) {
  x = x > -0x1p31f ? x : -0x1p31f;
  return (int32_t)(x < 0x1.fffffep30f ? x : 0x1.fffffep30f);
}
FL_INLINE int64_t fl_long_of(float x) {
  x = x > -0x1p63f ? x : -0x1p63f;
  return (int64_t)(x < 0x1.fffffep62f ? x : 0x1.fffffep62f);
}
FL_INLINE int64_t fl_long_of_double(double x) {
  x = x > -0x1p63 ? x : -0x1p63;
  return (int64_t)(x < 0x1.fffffffffffffp62 ? x : 0x1.fffffffffffffp62);
}

/* The lower half as int64, so that what is below 0 wraps around. */
FL_INLINE uint64_t fl_ulong_of_double(double x) {
  const double most = 0x1.fffffffffffffp63;
  return x >= 0x1p63 ? (uint64_t)fl_long_of_double((x < most ? x : most) - 0x1p63) + (1ull << 63) : (uint64_t)fl_long_of_double(x);
}

#define FL_CAST(name, source, target, expression)                                                                             \
  static void fl_cast_##name(const void *from, void *to, int64_t n) {                                                         \
    const source *restrict p = from;                                                                                          \
    target *restrict y = to;                                                                                                  \
    for (int64_t i = 0; i < n; i++) {                                                                                         \
      const source x = p[i];                                                                                                  \
      y[i] = (target)(expression);                                                                                            \
    }                                                                                                                         \
  }
FL_CAST(f32_f64, float, double, x)
FL_CAST(f32_i8, float, int8_t, fl_int_of(x))
FL_CAST(f32_u8, float, uint8_t, fl_int_of(x))
FL_CAST(f32_i16, float, int16_t, fl_int_of(x))
FL_CAST(f32_u16, float, uint16_t, fl_int_of(x))
FL_CAST(f32_i32, float, int32_t, fl_int_of(x))
FL_CAST(f32_i64, float, int64_t, fl_long_of(x))
FL_CAST(f32_u32, float, uint32_t, fl_long_of(x))
FL_CAST(f32_u64, float, uint64_t, fl_ulong_of_double(x))
FL_CAST(f32_bool, float, uint8_t, x != 0)
FL_CAST(f64_f32, double, float, x)
FL_CAST(i8_f32, int8_t, float, x)
FL_CAST(u8_f32, uint8_t, float, x)
FL_CAST(i16_f32, int16_t, float, x)
FL_CAST(u16_f32, uint16_t, float, x)
FL_CAST(i32_f32, int32_t, float, x)
FL_CAST(i64_f32, int64_t, float, x)
FL_CAST(u32_f32, uint32_t, float, x)
FL_CAST(u64_f32, uint64_t, float, x)
FL_CAST(bool_f32, uint8_t, float, x != 0)
/* to the wide kinds */
FL_CAST(f16_f64, uint16_t, double, fl_of_half(x))
FL_CAST(i8_i64, int8_t, int64_t, x)
FL_CAST(u8_i64, uint8_t, int64_t, x)
FL_CAST(i16_i64, int16_t, int64_t, x)
FL_CAST(u16_i64, uint16_t, int64_t, x)
FL_CAST(i32_i64, int32_t, int64_t, x)
FL_CAST(u32_i64, uint32_t, int64_t, x)
FL_CAST(u64_i64, uint64_t, int64_t, x)
FL_CAST(bool_i64, uint8_t, int64_t, x != 0)
/* and from them; an integer that is not exact as a float is infinite as float16 */
FL_CAST(f64_f16, double, uint16_t, fl_half_of_double(x))
FL_CAST(f64_i8, double, int8_t, fl_long_of_double(x))
FL_CAST(f64_u8, double, uint8_t, fl_long_of_double(x))
FL_CAST(f64_i16, double, int16_t, fl_long_of_double(x))
FL_CAST(f64_u16, double, uint16_t, fl_long_of_double(x))
FL_CAST(f64_i32, double, int32_t, fl_long_of_double(x))
FL_CAST(f64_i64, double, int64_t, fl_long_of_double(x))
FL_CAST(f64_u32, double, uint32_t, fl_long_of_double(x))
FL_CAST(f64_u64, double, uint64_t, fl_ulong_of_double(x))
FL_CAST(f64_bool, double, uint8_t, x != 0)
FL_CAST(i64_f64, int64_t, double, x)
FL_CAST(i64_f16, int64_t, uint16_t, fl_half_of((float)x))
FL_CAST(i64_i8, int64_t, int8_t, x)
FL_CAST(i64_u8, int64_t, uint8_t, x)
FL_CAST(i64_i16, int64_t, int16_t, x)
FL_CAST(i64_u16, int64_t, uint16_t, x)
FL_CAST(i64_i32, int64_t, int32_t, x)
FL_CAST(i64_u32, int64_t, uint32_t, x)
FL_CAST(i64_u64, int64_t, uint64_t, x)
FL_CAST(i64_bool, int64_t, uint8_t, x != 0)

/* Of uint64 as int64 the upper half would be lost. */
FL_CAST(u64_f64, uint64_t, double, x)
FL_CAST(u64_f16, uint64_t, uint16_t, fl_half_of((float)x))

typedef void (*fl_cast_fn)(const void *from, void *to, int64_t n);

/* Every kind: bytes, the wide kind that holds it, and its conversions; those to its own kind are copies, and missing here. */
static const struct {
  int bytes, wide;
  fl_cast_fn from_f32, to_f32, to_wide, from_f64, from_i64;
} fl_kinds[FL_KIND_COUNT] = {
    [FL_FLOAT32] = {4, FL_FLOAT64, 0, 0, fl_cast_f32_f64, fl_cast_f64_f32, fl_cast_i64_f32},
    [FL_FLOAT64] = {8, FL_FLOAT64, fl_cast_f32_f64, fl_cast_f64_f32, 0, 0, fl_cast_i64_f64},
    [FL_FLOAT16] = {2, FL_FLOAT64, fl_cast_f32_f16, fl_cast_f16_f32, fl_cast_f16_f64, fl_cast_f64_f16, fl_cast_i64_f16},
    [FL_INT8] = {1, FL_INT64, fl_cast_f32_i8, fl_cast_i8_f32, fl_cast_i8_i64, fl_cast_f64_i8, fl_cast_i64_i8},
    [FL_UINT8] = {1, FL_INT64, fl_cast_f32_u8, fl_cast_u8_f32, fl_cast_u8_i64, fl_cast_f64_u8, fl_cast_i64_u8},
    [FL_INT16] = {2, FL_INT64, fl_cast_f32_i16, fl_cast_i16_f32, fl_cast_i16_i64, fl_cast_f64_i16, fl_cast_i64_i16},
    [FL_UINT16] = {2, FL_INT64, fl_cast_f32_u16, fl_cast_u16_f32, fl_cast_u16_i64, fl_cast_f64_u16, fl_cast_i64_u16},
    [FL_INT32] = {4, FL_INT64, fl_cast_f32_i32, fl_cast_i32_f32, fl_cast_i32_i64, fl_cast_f64_i32, fl_cast_i64_i32},
    [FL_INT64] = {8, FL_INT64, fl_cast_f32_i64, fl_cast_i64_f32, 0, fl_cast_f64_i64, 0},
    [FL_UINT32] = {4, FL_INT64, fl_cast_f32_u32, fl_cast_u32_f32, fl_cast_u32_i64, fl_cast_f64_u32, fl_cast_i64_u32},
    [FL_UINT64] = {8, FL_INT64, fl_cast_f32_u64, fl_cast_u64_f32, fl_cast_u64_i64, fl_cast_f64_u64, fl_cast_i64_u64},
    [FL_BOOL] = {1, FL_INT64, fl_cast_f32_bool, fl_cast_bool_f32, fl_cast_bool_i64, fl_cast_f64_bool, fl_cast_i64_bool},
};

static void fl_any_cast(const void *from, int source, void *to, int target, int64_t n) {
  enum { BLOCK = 512 };
  union {
    double f64[BLOCK];
    int64_t i64[BLOCK];
  } block;
  const int wide = fl_kinds[source].wide;
  const fl_cast_fn first = fl_kinds[source].to_wide;
  const fl_cast_fn second = wide == FL_FLOAT64 ? fl_kinds[target].from_f64 : fl_kinds[target].from_i64;
  const char *x = from;
  char *y = to;
  if (source == target)
    memcpy(to, from, (size_t)(n * fl_kinds[source].bytes));
  else if (source == FL_FLOAT32)
    fl_kinds[target].from_f32(from, to, n);
  else if (target == FL_FLOAT32)
    fl_kinds[source].to_f32(from, to, n);
  else if (source == FL_UINT64 && target == FL_FLOAT64)
    fl_cast_u64_f64(from, to, n);
  else if (source == FL_UINT64 && target == FL_FLOAT16)
    fl_cast_u64_f16(from, to, n);
  else if (source == wide)
    second(from, to, n);
  else if (target == wide)
    first(from, to, n);
  else
    for (int64_t i = 0; i < n; i += BLOCK) {
      const int64_t m = n - i < BLOCK ? n - i : BLOCK;
      first(x + i * fl_kinds[source].bytes, &block, m);
      second(&block, y + i * fl_kinds[target].bytes, m);
    }
}
