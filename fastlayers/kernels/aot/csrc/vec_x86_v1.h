/* SSE2: what every x86-64 processor has. No fused multiply-add: vfma rounds twice. */
#include <emmintrin.h>
#define VW 4
#define VREGS 16
#include "vec.h"

FL_INLINE vf vfma(vf a, vf b, vf c) { return a * b + c; }
FL_INLINE vf vmax(vf a, vf b) { return (vf)_mm_max_ps((__m128)a, (__m128)b); }
FL_INLINE vf vmin(vf a, vf b) { return (vf)_mm_min_ps((__m128)a, (__m128)b); }
FL_INLINE vi vnear(vf x) { return (vi)_mm_cvtps_epi32((__m128)x); }
FL_INLINE vf vfloat(vi x) { return (vf)_mm_cvtepi32_ps((__m128i)x); }
FL_INLINE vf vsqrt(vf x) { return (vf)_mm_sqrt_ps((__m128)x); }
/* sums with 2^23 have no digits after the point; values from there on have none anyway */
FL_INLINE vf vround(vf x) {
  const vf whole = (vabs(x) + 0x1p23f) - 0x1p23f;
  return vsel((vi)(vabs(x) < 0x1p23f), vsign(whole, x), x);
}

#define VT 4
FL_INLINE void vtranspose(const float *s, int64_t lds, float *d, int64_t ldd) {
  __m128 a = _mm_loadu_ps(s), b = _mm_loadu_ps(s + lds), c = _mm_loadu_ps(s + 2 * lds), e = _mm_loadu_ps(s + 3 * lds);
  _MM_TRANSPOSE4_PS(a, b, c, e);
  _mm_storeu_ps(d, a);
  _mm_storeu_ps(d + ldd, b);
  _mm_storeu_ps(d + 2 * ldd, c);
  _mm_storeu_ps(d + 3 * ldd, e);
}
