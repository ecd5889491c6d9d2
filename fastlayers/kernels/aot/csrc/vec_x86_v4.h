/* AVX-512 (F, BW, DQ, VL). */
#include <immintrin.h>
#define VW 16
#define VREGS 32
#include "vec.h"

FL_INLINE vf vfma(vf a, vf b, vf c) { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
FL_INLINE vf vmax(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
FL_INLINE vf vmin(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
FL_INLINE vi vnear(vf x) { return (vi)_mm512_cvtps_epi32((__m512)x); }
FL_INLINE vf vfloat(vi x) { return (vf)_mm512_cvtepi32_ps((__m512i)x); }
FL_INLINE vf vsqrt(vf x) { return (vf)_mm512_sqrt_ps((__m512)x); }
FL_INLINE vf vround(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
#include "vec_avx_transpose.h"
