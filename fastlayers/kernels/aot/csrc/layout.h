/* dst[j * ldd + i] = src[i * lds + j] for i < rows, j < cols: a transposition between layouts.
 *
 * Assumes: src and dst do not overlap, lds >= cols, ldd >= rows; no alignment.
 * Wide on both sides: VT x VT blocks in registers. The last block of either axis starts early and overlaps the one before.
 * Few rows or few columns (images of three channels, say) without gaps between them: one loop with their number known to the
 * compiler, which interleaves or separates whole vectors; a plain loop for the rest. */

FL_INLINE void fl_interleave(const float *src, int64_t lds, float *restrict dst, int64_t ldd, int64_t rows, int64_t cols) {
  for (int64_t j = 0; j < cols; j++)
    FL_UNROLL for (int64_t i = 0; i < rows; i++) dst[j * ldd + i] = src[i * lds + j];
}

FL_INLINE void fl_separate(const float *restrict src, int64_t lds, float *dst, int64_t ldd, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; i++)
    FL_UNROLL for (int64_t j = 0; j < cols; j++) dst[j * ldd + i] = src[i * lds + j];
}

static void fl_transpose_few_rows(const float *src, int64_t lds, float *dst, int64_t ldd, int64_t rows, int64_t cols) {
  switch (rows == ldd ? rows : 0) {
  case 1: memcpy(dst, src, (size_t)cols * 4); break;
  case 2: fl_interleave(src, lds, dst, 2, 2, cols); break;
  case 3: fl_interleave(src, lds, dst, 3, 3, cols); break;
  case 4: fl_interleave(src, lds, dst, 4, 4, cols); break;
  case 5: fl_interleave(src, lds, dst, 5, 5, cols); break;
  case 6: fl_interleave(src, lds, dst, 6, 6, cols); break;
  case 7: fl_interleave(src, lds, dst, 7, 7, cols); break;
  default: fl_interleave(src, lds, dst, ldd, rows, cols);
  }
}

static void fl_transpose_few_cols(const float *src, int64_t lds, float *dst, int64_t ldd, int64_t rows, int64_t cols) {
  switch (cols == lds ? cols : 0) {
  case 1: memcpy(dst, src, (size_t)rows * 4); break;
  case 2: fl_separate(src, 2, dst, ldd, rows, 2); break;
  case 3: fl_separate(src, 3, dst, ldd, rows, 3); break;
  case 4: fl_separate(src, 4, dst, ldd, rows, 4); break;
  case 5: fl_separate(src, 5, dst, ldd, rows, 5); break;
  case 6: fl_separate(src, 6, dst, ldd, rows, 6); break;
  case 7: fl_separate(src, 7, dst, ldd, rows, 7); break;
  default: fl_separate(src, lds, dst, ldd, rows, cols);
  }
}

static void fl_f32_transpose(const float *src, int64_t lds, float *dst, int64_t ldd, int64_t rows, int64_t cols) {
  /* Strips of rows: a written line is whole before the next one is begun. Strips of columns lose up to a half where ldd is a
   * large power of two and all lines in work fall into the same sets; a copy through a buffer gains nothing on either. */
  enum { STRIP = 32 };
  if (rows < VT) {
    fl_transpose_few_rows(src, lds, dst, ldd, rows, cols);
    return;
  }
  if (cols < VT) {
    fl_transpose_few_cols(src, lds, dst, ldd, rows, cols);
    return;
  }
  for (int64_t i0 = 0; i0 < rows; i0 += STRIP) {
    const int64_t i1 = i0 + STRIP < rows ? i0 + STRIP : rows;
    for (int64_t j0 = 0; j0 < cols; j0 += VT) {
      const int64_t j = j0 < cols - VT ? j0 : cols - VT;
      for (int64_t ii = i0; ii < i1; ii += VT) {
        const int64_t i = ii < rows - VT ? ii : rows - VT;
        vtranspose(src + i * lds + j, lds, dst + j * ldd + i, ldd);
      }
    }
  }
}
