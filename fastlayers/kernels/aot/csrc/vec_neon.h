/* Advanced SIMD of AArch64. Its own max and min give NaN where either operand is: selection keeps x86's rule. */
#include <arm_neon.h>
#define VW 4
#define VREGS 32
#include "vec.h"

FL_INLINE vf vfma(vf a, vf b, vf c) { return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
FL_INLINE vf vmax(vf a, vf b) { return vsel((vi)(a > b), a, b); }
FL_INLINE vf vmin(vf a, vf b) { return vsel((vi)(a < b), a, b); }
FL_INLINE vi vnear(vf x) { return (vi)vcvtnq_s32_f32((float32x4_t)x); }
FL_INLINE vf vfloat(vi x) { return (vf)vcvtq_f32_s32((int32x4_t)x); }
FL_INLINE vf vsqrt(vf x) { return (vf)vsqrtq_f32((float32x4_t)x); }
FL_INLINE vf vround(vf x) { return (vf)vrndnq_f32((float32x4_t)x); }

#define VT 4
FL_INLINE void vtranspose(const float *s, int64_t lds, float *d, int64_t ldd) {
  float32x4x2_t p = vtrnq_f32(vld1q_f32(s), vld1q_f32(s + lds));
  float32x4x2_t q = vtrnq_f32(vld1q_f32(s + 2 * lds), vld1q_f32(s + 3 * lds));
  vst1q_f32(d, vcombine_f32(vget_low_f32(p.val[0]), vget_low_f32(q.val[0])));
  vst1q_f32(d + ldd, vcombine_f32(vget_low_f32(p.val[1]), vget_low_f32(q.val[1])));
  vst1q_f32(d + 2 * ldd, vcombine_f32(vget_high_f32(p.val[0]), vget_high_f32(q.val[0])));
  vst1q_f32(d + 3 * ldd, vcombine_f32(vget_high_f32(p.val[1]), vget_high_f32(q.val[1])));
}
