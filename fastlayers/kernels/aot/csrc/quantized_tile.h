/* One register tile of the packed product of bytes. Included by quantized_tiles.h, with
 *   FL_TM  rows, FL_TP  panels of 16 columns
 * defined, and FL_DOT where the processor multiplies quads of bytes itself; undefines FL_TM.
 *
 * With FL_DOT a vector of sums holds 16 columns. Without, bytes are widened to int16 and multiplied in pairs, so each column has two
 * sums, next to each other, which are added at the end. */
#ifdef FL_DOT
#define FL_TILE_NAME FL_NAME4(fl_dot_, FL_TM, x, FL_TP)
#define FL_TV FL_TP
#else
#define FL_TILE_NAME FL_NAME4(fl_pairs_, FL_TM, x, FL_TP)
#define FL_TV (FL_TP * FL_QV)
#endif

static FL_DOT_TARGET __attribute__((noinline)) void FL_TILE_NAME(const fl_qblock *p, const uint8_t *const *rows, const int8_t *b, int64_t i0,
                                                                 int64_t j0) {
  vi acc[FL_TM][FL_TV];
  const uint8_t *row[FL_TM];
  const int64_t panel = p->panel;
  FL_UNROLL for (int i = 0; i < FL_TM; i++) {
    row[i] = rows[i];
    FL_UNROLL for (int j = 0; j < FL_TV; j++) acc[i][j] = (vi){0};
  }
  for (int64_t r = 0; r < p->nruns; r++) {
    const int64_t start = p->runs[r].offset, end = start + 4 * p->runs[r].quads;
    for (int64_t k = start; k < end; k += 4, b += 64) {
#ifdef FL_DOT
      vi bv[FL_TP];
      FL_UNROLL for (int j = 0; j < FL_TP; j++) bv[j] = (vi)_mm512_loadu_si512(b + j * panel);
      FL_UNROLL for (int i = 0; i < FL_TM; i++) {
        const vi a = fl_quad(row[i] + k);
        FL_UNROLL for (int j = 0; j < FL_TP; j++) acc[i][j] = FL_DOT(acc[i][j], a, bv[j]);
      }
#else
      vq a[FL_TM];
      FL_UNROLL for (int i = 0; i < FL_TM; i++) a[i] = fl_quad16(row[i] + k);
      FL_UNROLL for (int j = 0; j < FL_TV; j++) {
        const vq bv = fl_widen16(b + j / FL_QV * panel + j % FL_QV * 2 * VW);
        FL_UNROLL for (int i = 0; i < FL_TM; i++) acc[i][j] += vmadd(a[i], bv);
      }
#endif
    }
  }
#ifdef FL_DOT
  if (fl_plain_bytes(&p->e, p->n - j0 - (FL_TP - 1) * FL_PANEL)) {
    int32_t lo, hi;
    fl_limits(p->e.kind, &lo, &hi);
    const __m512 most = _mm512_set1_ps((float)(hi - p->e.y_zero));
    const __m512i zero = _mm512_set1_epi16((int16_t)p->e.y_zero);
    __m512i offset[FL_TP];
    __m512 scale[FL_TP];
    FL_UNROLL for (int t = 0; t < FL_TP; t++) {
      offset[t] = _mm512_loadu_si512(p->e.offset + j0 + t * FL_PANEL);
      scale[t] = _mm512_loadu_ps(p->e.scale + j0 + t * FL_PANEL);
    }
    uint8_t *out = (uint8_t *)p->out + i0 * p->ldc + j0;
    FL_UNROLL for (int i = 0; i < FL_TM; i += 4 / FL_TP) {
      vi four[4];
      FL_UNROLL for (int t = 0; t < 4; t++) four[t] = acc[i + t / FL_TP < FL_TM ? i + t / FL_TP : i][t % FL_TP];
      const __m512i bytes = fl_dot_bytes(four, offset, scale, FL_TP, most, zero, lo < 0);
#if FL_TP == 4
      _mm512_storeu_si512(out + i * p->ldc, bytes);
#elif FL_TP == 2
      _mm256_storeu_si256((__m256i *)(out + i * p->ldc), _mm512_castsi512_si256(bytes));
      if (i + 1 < FL_TM)
        _mm256_storeu_si256((__m256i *)(out + (i + 1) * p->ldc), _mm512_extracti64x4_epi64(bytes, 1));
#else
      _mm_storeu_si128((__m128i *)(out + i * p->ldc), _mm512_castsi512_si128(bytes));
      if (i + 1 < FL_TM)
        _mm_storeu_si128((__m128i *)(out + (i + 1) * p->ldc), _mm512_extracti32x4_epi32(bytes, 1));
      if (i + 2 < FL_TM)
        _mm_storeu_si128((__m128i *)(out + (i + 2) * p->ldc), _mm512_extracti32x4_epi32(bytes, 2));
      if (i + 3 < FL_TM)
        _mm_storeu_si128((__m128i *)(out + (i + 3) * p->ldc), _mm512_extracti32x4_epi32(bytes, 3));
#endif
    }
    return;
  }
#endif
  int32_t sums[FL_TM][FL_TP][FL_PANEL];
  FL_UNROLL for (int i = 0; i < FL_TM; i++)
    FL_UNROLL for (int t = 0; t < FL_TP; t++)
#ifdef FL_DOT
      vistore(sums[i][t], acc[i][t]);
#else
      FL_UNROLL for (int q = 0; q < FL_QV / 2; q++) {
        const vi lo = acc[i][t * FL_QV + 2 * q], hi = acc[i][t * FL_QV + 2 * q + 1];
        vistore(sums[i][t] + q * VW, FL_LOW1(lo, hi) + FL_HIGH1(lo, hi));
      }
#endif
  for (int t = 0; t < FL_TP; t++) {
    const int64_t j = j0 + t * FL_PANEL;
    if (fl_plain_bytes(&p->e, p->n - j))
      fl_qfinish_bytes(&p->e, sums[0][t], FL_TP * FL_PANEL, FL_TM, j, (uint8_t *)p->out + i0 * p->ldc + j, p->ldc);
    else if (j < p->n)
      for (int i = 0; i < FL_TM; i++)
        fl_qfinish(&p->e, sums[i][t], i0 + i, j, p->out, (i0 + i) * p->ldc + j, p->n - j);
  }
}

#undef FL_TILE_NAME
#undef FL_TV
#undef FL_TM
