/* What the vector layer of every level offers beyond its own operations: types, loads, stores, selection, reductions.
 *
 * A level's header (vec_x86_v3.h, ...) defines VW (floats in a vector), VREGS (vector registers) and these, then includes this:
 *   vfma(a, b, c) = a b + c                     vmax(a, b), vmin(a, b): give b where either is NaN, as x86 does
 *   vnear(x): nearest int32, ties to even       vfloat(i): int32 to float     vsqrt(x)
 *   vround(x): nearest whole number, ties to even, as a float; -0 stays
 *   VT: side of a register transpose            vtranspose(src, lds, dst, ldd): a VT x VT block
 * Everything else in the kernels is plain C on GCC vector types (+, -, *, /, comparisons give vi masks of 0 and -1).
 */
#ifndef FL_VEC_H
#define FL_VEC_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#define FL_INLINE static inline __attribute__((always_inline))
#define FL_UNROLL _Pragma("GCC unroll 32")
#define FL_NAME4_(a, b, c, d) a##b##c##d
#define FL_NAME4(a, b, c, d) FL_NAME4_(a, b, c, d)
#define FL_UNUSED __attribute__((unused))
/* Keeps loads where they are written. On ARM nearly all registers of a tile hold sums and weights: GCC loads the values of all rows
 * first, and puts sums out to memory in every term for it. Elsewhere a value is read by the instruction that spreads it. */
#if defined(__aarch64__)
#define FL_IN_ORDER() __asm__ volatile("" ::: "memory")
#else
#define FL_IN_ORDER()
#endif

typedef float vf __attribute__((vector_size(VW * 4)));
typedef int32_t vi __attribute__((vector_size(VW * 4)));
typedef uint32_t vu __attribute__((vector_size(VW * 4)));
typedef float vf_u __attribute__((vector_size(VW * 4), aligned(4), may_alias));

FL_INLINE vf vload(const float *p) { return *(const vf_u *)p; }
FL_INLINE void vstore(float *p, vf v) { *(vf_u *)p = v; }
FL_INLINE vf vset(float x) { return x - (vf){0}; } /* x - 0 is x for every x, -0 and NaN among them; x + 0 is not */
FL_INLINE vi vseti(int32_t x) { return x - (vi){0}; }
FL_INLINE vi vbits(vf x) { return (vi)x; }
FL_INLINE vf vfrom(vi x) { return (vf)x; }
/* m ? a : b, m a mask of 0 and -1 */
FL_INLINE vf vsel(vi m, vf a, vf b) { return (vf)((m & (vi)a) | (~m & (vi)b)); }
FL_INLINE vi vseli(vi m, vi a, vi b) { return (m & a) | (~m & b); }
FL_INLINE vf vabs(vf x) { return (vf)((vi)x & 0x7fffffff); }
FL_INLINE vf vsign(vf magnitude, vf sign) { return (vf)(((vi)magnitude & 0x7fffffff) | ((vi)sign & (int32_t)0x80000000)); }

/* sum of the lanes in a fixed order: halves are added until one is left */
FL_INLINE FL_UNUSED float vsum(vf v) {
  float t[VW];
  vstore(t, v);
  for (int w = VW / 2; w; w /= 2)
    for (int i = 0; i < w; i++)
      t[i] += t[i + w];
  return t[0];
}
#endif
