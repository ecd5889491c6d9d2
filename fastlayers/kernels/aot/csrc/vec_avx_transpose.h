/* The 8 x 8 transpose in AVX registers, for x86_v3 and x86_v4: 128-bit halves are loaded crosswise, so two shuffles finish. */
#define VT 8
FL_INLINE void vtranspose(const float *s, int64_t lds, float *d, int64_t ldd) {
  __m256 r[8];
  FL_UNROLL for (int i = 0; i < 4; i++) {
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(s + i * lds)), _mm_loadu_ps(s + (i + 4) * lds), 1);
    r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(s + i * lds + 4)), _mm_loadu_ps(s + (i + 4) * lds + 4), 1);
  }
  FL_UNROLL for (int h = 0; h < 2; h++) {
    const __m256 *q = r + 4 * h;
    __m256 t0 = _mm256_unpacklo_ps(q[0], q[1]), t1 = _mm256_unpackhi_ps(q[0], q[1]);
    __m256 t2 = _mm256_unpacklo_ps(q[2], q[3]), t3 = _mm256_unpackhi_ps(q[2], q[3]);
    _mm256_storeu_ps(d + (4 * h + 0) * ldd, _mm256_shuffle_ps(t0, t2, 0x44));
    _mm256_storeu_ps(d + (4 * h + 1) * ldd, _mm256_shuffle_ps(t0, t2, 0xee));
    _mm256_storeu_ps(d + (4 * h + 2) * ldd, _mm256_shuffle_ps(t1, t3, 0x44));
    _mm256_storeu_ps(d + (4 * h + 3) * ldd, _mm256_shuffle_ps(t1, t3, 0xee));
  }
}
