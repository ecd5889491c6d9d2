/* AVX2 with FMA and F16C (Haswell and Zen onwards). */
#include <immintrin.h>
#define VW 8
#define VREGS 16
#include "vec.h"

FL_INLINE vf vfma(vf a, vf b, vf c) { return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
FL_INLINE vf vmax(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
FL_INLINE vf vmin(vf a, vf b) { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
FL_INLINE vi vnear(vf x) { return (vi)_mm256_cvtps_epi32((__m256)x); }
FL_INLINE vf vfloat(vi x) { return (vf)_mm256_cvtepi32_ps((__m256i)x); }
FL_INLINE vf vsqrt(vf x) { return (vf)_mm256_sqrt_ps((__m256)x); }
FL_INLINE vf vround(vf x) { return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
#include "vec_avx_transpose.h"
