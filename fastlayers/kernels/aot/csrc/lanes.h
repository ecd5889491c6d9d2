/* Shuffles and folds of vectors, and the larger and smaller of two that keep NaN: what pooling, reductions and softmax share. */
#ifndef FL_LANES_H
#define FL_LANES_H

/* Lanes of v, or of a (0 .. VW-1) and b (VW .. 2VW-1), in the order given. */
#ifdef __clang__
#define FL_LANES(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#define FL_LANES2(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else /* GCC before 12 lacks the other */
#define FL_LANES(v, ...) __builtin_shuffle(v, (vi){__VA_ARGS__})
#define FL_LANES2(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif

/* FL_FOLD folds a vector by halves, in the order of vsum; every lane ends up with the result.
 * FL_LOW<w> and FL_HIGH<w> take the lower and the upper halves of all blocks of 2w lanes of a and b: op of the two folds two vectors
 * at once into blocks of w. FL_TREE does so for VW vectors down to one, whose lane i is what FL_FOLD makes of v[i]. */
#define FL_PAIRS(v, count, low, high, op)                                                                                        \
  FL_UNROLL for (int i_ = 0; i_ < (count); i_++) v[i_] = op(low(v[2 * i_], v[2 * i_ + 1]), high(v[2 * i_], v[2 * i_ + 1]))
#if VW == 16
#define FL_FOLD(v, op)                                                                                                           \
  v = op(v, FL_LANES(v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));                                                 \
  v = op(v, FL_LANES(v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));                                                 \
  v = op(v, FL_LANES(v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));                                                 \
  v = op(v, FL_LANES(v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14))
#define FL_LOW8(a, b) FL_LANES2(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
#define FL_HIGH8(a, b) FL_LANES2(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
#define FL_LOW4(a, b) FL_LANES2(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define FL_HIGH4(a, b) FL_LANES2(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#define FL_LOW2(a, b) FL_LANES2(a, b, 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29)
#define FL_HIGH2(a, b) FL_LANES2(a, b, 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31)
#define FL_LOW1(a, b) FL_LANES2(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define FL_HIGH1(a, b) FL_LANES2(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define FL_TREE(v, op)                                                                                                           \
  FL_PAIRS(v, 8, FL_LOW8, FL_HIGH8, op);                                                                                         \
  FL_PAIRS(v, 4, FL_LOW4, FL_HIGH4, op);                                                                                         \
  FL_PAIRS(v, 2, FL_LOW2, FL_HIGH2, op);                                                                                         \
  FL_PAIRS(v, 1, FL_LOW1, FL_HIGH1, op)
#elif VW == 8
#define FL_FOLD(v, op)                                                                                                           \
  v = op(v, FL_LANES(v, 4, 5, 6, 7, 0, 1, 2, 3));                                                                                \
  v = op(v, FL_LANES(v, 2, 3, 0, 1, 6, 7, 4, 5));                                                                                \
  v = op(v, FL_LANES(v, 1, 0, 3, 2, 5, 4, 7, 6))
#define FL_LOW4(a, b) FL_LANES2(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define FL_HIGH4(a, b) FL_LANES2(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#define FL_LOW2(a, b) FL_LANES2(a, b, 0, 1, 4, 5, 8, 9, 12, 13)
#define FL_HIGH2(a, b) FL_LANES2(a, b, 2, 3, 6, 7, 10, 11, 14, 15)
#define FL_LOW1(a, b) FL_LANES2(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define FL_HIGH1(a, b) FL_LANES2(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define FL_TREE(v, op)                                                                                                           \
  FL_PAIRS(v, 4, FL_LOW4, FL_HIGH4, op);                                                                                         \
  FL_PAIRS(v, 2, FL_LOW2, FL_HIGH2, op);                                                                                         \
  FL_PAIRS(v, 1, FL_LOW1, FL_HIGH1, op)
#else
#define FL_FOLD(v, op)                                                                                                           \
  v = op(v, FL_LANES(v, 2, 3, 0, 1));                                                                                            \
  v = op(v, FL_LANES(v, 1, 0, 3, 2))
#define FL_LOW2(a, b) FL_LANES2(a, b, 0, 1, 4, 5)
#define FL_HIGH2(a, b) FL_LANES2(a, b, 2, 3, 6, 7)
#define FL_LOW1(a, b) FL_LANES2(a, b, 0, 2, 4, 6)
#define FL_HIGH1(a, b) FL_LANES2(a, b, 1, 3, 5, 7)
#define FL_TREE(v, op)                                                                                                           \
  FL_PAIRS(v, 2, FL_LOW2, FL_HIGH2, op);                                                                                         \
  FL_PAIRS(v, 1, FL_LOW1, FL_HIGH1, op)
#endif

FL_INLINE vf fl_add(vf a, vf b) { return a + b; }
FL_INLINE vf fl_multiply(vf a, vf b) { return a * b; }

/* vmaxn, vminn: NaN where a or b is; of zeros of both signs either one. vmaxn3 does the same for three in fewer instructions. */
#if defined(__AVX512F__)
FL_INLINE vf vmaxn(vf a, vf b) {
  return (vf)_mm512_mask_max_ps((__m512)a, _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q), (__m512)a, (__m512)b);
}
FL_INLINE vf vminn(vf a, vf b) {
  return (vf)_mm512_mask_min_ps((__m512)a, _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q), (__m512)a, (__m512)b);
}
FL_INLINE vf vmaxn3(vf a, vf b, vf c) {
  const __mmask16 numbers = _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_ORD_Q);
  return (vf)_mm512_mask_max_ps((__m512)vset(NAN), numbers, (__m512)vmax(a, b), (__m512)c);
}
#elif defined(__aarch64__)
FL_INLINE vf vmaxn(vf a, vf b) { return (vf)vmaxq_f32((float32x4_t)a, (float32x4_t)b); }
FL_INLINE vf vminn(vf a, vf b) { return (vf)vminq_f32((float32x4_t)a, (float32x4_t)b); }
FL_INLINE vf vmaxn3(vf a, vf b, vf c) { return vmaxn(vmaxn(a, b), c); }
#else
/* vmax gives b where either is NaN: where a is, all bits are set. In vmaxn3 c is the b of the last one. */
FL_INLINE vf vmaxn(vf a, vf b) { return vfrom(vbits(vmax(a, b)) | (vi)(a != a)); }
FL_INLINE vf vminn(vf a, vf b) { return vfrom(vbits(vmin(a, b)) | (vi)(a != a)); }
#ifdef __AVX2__
#define FL_UNORDERED(a, b) (vi) _mm256_cmp_ps((__m256)(a), (__m256)(b), _CMP_UNORD_Q)
#else
#define FL_UNORDERED(a, b) (vi) _mm_cmpunord_ps((__m128)(a), (__m128)(b))
#endif
FL_INLINE vf vmaxn3(vf a, vf b, vf c) { return vfrom(vbits(vmax(vmax(a, b), c)) | FL_UNORDERED(a, b)); }
#endif
#endif
