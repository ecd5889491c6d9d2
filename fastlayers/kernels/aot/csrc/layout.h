/* Transposition of a matrix of floats: VT x VT blocks in registers, columns in strips so that the written lines stay cached. */
static void fl_f32_transpose(const float *src, int64_t lds, float *dst, int64_t ldd, int64_t rows, int64_t cols) {
  enum { STRIP = 32 };
  for (int64_t j0 = 0; j0 < cols; j0 += STRIP) {
    const int64_t j1 = j0 + STRIP < cols ? j0 + STRIP : cols;
    int64_t i = 0;
    for (; i + VT <= rows; i += VT) {
      int64_t j = j0;
      for (; j + VT <= j1; j += VT)
        vtranspose(src + i * lds + j, lds, dst + j * ldd + i, ldd);
      for (; j < j1; j++)
        for (int64_t u = 0; u < VT; u++)
          dst[j * ldd + i + u] = src[(i + u) * lds + j];
    }
    for (; i < rows; i++)
      for (int64_t j = j0; j < j1; j++)
        dst[j * ldd + i] = src[i * lds + j];
  }
}
