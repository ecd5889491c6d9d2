/* The first n < VW floats of a vector, read and written without touching memory past them; the other lanes are `fill`. */
#ifndef FL_PART_H
#define FL_PART_H

/* -1 in the lanes below n, 0 in the others */
FL_INLINE FL_UNUSED vi vmask_part(int64_t n) {
  static const int32_t lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  vi lane;
  memcpy(&lane, lanes, sizeof lane);
  return (vi)(lane < (int32_t)n);
}

#if defined(__AVX512F__)
FL_INLINE FL_UNUSED vf vget_part(const float *p, int64_t n, float fill) {
  return (vf)_mm512_mask_loadu_ps((__m512)vset(fill), (__mmask16)((1u << n) - 1), p);
}
FL_INLINE FL_UNUSED void vput_part(float *p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v); }
#elif defined(__AVX2__)
FL_INLINE FL_UNUSED vf vget_part(const float *p, int64_t n, float fill) {
  const vi mask = vmask_part(n);
  return vsel(mask, (vf)_mm256_maskload_ps(p, (__m256i)mask), vset(fill));
}
FL_INLINE FL_UNUSED void vput_part(float *p, vf v, int64_t n) { _mm256_maskstore_ps(p, (__m256i)vmask_part(n), (__m256)v); }
#else
/* Four lanes: one to three floats, moved one by one rather than through a call of memcpy. */
FL_INLINE FL_UNUSED vf vget_part(const float *p, int64_t n, float fill) {
  vf v = vset(fill);
  if (n > 0)
    v[0] = p[0];
  if (n > 1)
    v[1] = p[1];
  if (n > 2)
    v[2] = p[2];
  return v;
}
FL_INLINE FL_UNUSED void vput_part(float *p, vf v, int64_t n) {
  if (n > 0)
    p[0] = v[0];
  if (n > 1)
    p[1] = v[1];
  if (n > 2)
    p[2] = v[2];
}
#endif
#endif
