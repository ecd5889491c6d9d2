/* Attention for up to FL_FEW_QUERIES queries of one head, as decoders ask for it token by token. Included by attention.h.
 *
 * Sixteen lanes for one query would be waste: here the keys of a block are in the lanes, for which they are transposed, and a query's
 * scores are a row. Every sum has the order that attention.h gives it, so both give the same bits: the exponentials of a row are
 * added in four chains that alternate. */
#define FL_FEW_QUERIES 8

typedef struct {
  float *q;      /* [rows][d]: scale q */
  float *turned; /* [at most FL_KC][FL_KEYS]: keys of the block, transposed */
  float *s;      /* [rows][FL_KEYS]: scores, then exponentials */
  float *sums;   /* [rows][width] */
  float *padded; /* as in attention.h */
  int64_t width;
  float largest[FL_FEW_QUERIES], total[FL_FEW_QUERIES], shrink[FL_FEW_QUERIES];
} fl_attention_row_state;

/* Reads keys once in their order, which is what processors recognize and go on with: by blocks that are transposed it is not, and asking
 * for them by prefetching gained nothing. Keys and values of 16 sequences in the shape of SmolLM2-135M, which come from memory, take
 * 9.8 ms a token, and took 13.1 (EPYC, Zen 4). */
static void fl_attention_row_read(const float *k, int64_t apart, int64_t n, int64_t d) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t t = 0; t < d; t += FL_PANEL)
      (void)((const volatile float *)k)[j * apart + t];
}

#if VW == 16
/* Scores of keys that are transposed in registers alone, sixteen at a time, since each sum waits for itself: eight of their numbers, by
 * which every query's sums go on. Of keys that are no whole block, the last ones are taken again with those before them. With the 16
 * registers of other levels this is slower than a transposition in memory. */
static void fl_attention_row_turned(const fl_attention *p, const fl_attention_row_state *w, int64_t j0, int64_t n) {
  typedef float half __attribute__((vector_size(32), aligned(4), may_alias));
  const int64_t d = p->d, apart = p->kj;
  for (int64_t j = 0; j < n; j += 2 * VT) {
    const int64_t at = j < n - 2 * VT ? j : n - 2 * VT;
    const float *k = p->k + (j0 + at) * apart;
    for (int64_t t = 0; t < d; t += VT) {
      float turned[2][VT * VT];
      FL_UNROLL for (int g = 0; g < 2; g++) vtranspose(k + g * VT * apart + t, apart, turned[g], VT);
      const float *q = w->q + t;
      half *s = (half *)(w->s + at);
      for (int64_t i = 0; i < p->rows; i++, q += d, s += FL_KEYS / VT) {
        __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
        if (t)
          sum[0] = (__m256)s[0], sum[1] = (__m256)s[1];
        FL_UNROLL for (int u = 0; u < VT; u++)
          FL_UNROLL for (int g = 0; g < 2; g++)
            sum[g] = _mm256_fmadd_ps(_mm256_set1_ps(q[u]), (__m256) * (const half *)(turned[g] + u * VT), sum[g]);
        s[0] = (half)sum[0], s[1] = (half)sum[1];
      }
    }
  }
}
#endif

/* Scores of n keys from j0 on; lanes beyond them hold anything. */
static void fl_attention_row_scores(const fl_attention *p, const fl_attention_row_state *w, int64_t j0, int64_t n) {
  if (p->kt == 1)
    fl_attention_row_read(p->k + j0 * p->kj, p->kj, n, p->d);
#if VW == 16
  if (p->kt == 1 && n >= 2 * VT && p->d % VT == 0 && 0 < p->d && p->d <= FL_KC) {
    fl_attention_row_turned(p, w, j0, n);
    return;
  }
#endif
  const int64_t whole = (n + FL_PANEL - 1) / FL_PANEL * FL_PANEL;
  fl_direct product = {.ai = p->d, .at = 1, .c = w->s, .ldc = FL_KEYS, .m = p->rows, .n = whole};
  for (int64_t t = 0; t == 0 || t < p->d; t += FL_KC) { /* once even if d is 0 */
    const float *k = p->k + j0 * p->kj + t * p->kt;
    product.a = w->q + t;
    product.k = p->d - t < FL_KC ? p->d - t : FL_KC;
    product.accumulate = t > 0;
    product.b = w->turned;
    product.bt = whole;
    if (p->kj == 1 && n == whole) {
      product.b = k;
      product.bt = p->kt;
    } else {
      if (n < whole)
        memset(w->turned, 0, (size_t)(product.k * whole) * 4);
      if (p->kj == 1)
        for (int64_t i = 0; i < product.k; i++)
          memcpy(w->turned + i * whole, k + i * p->kt, (size_t)n * 4);
      else
        fl_f32_transpose(k, p->kj, w->turned, whole, n, product.k);
    }
    fl_f32_direct(&product);
  }
}

/* Adds the mask to row i and forbids what causality does; lanes beyond the n keys become -infinity. */
static void fl_attention_row_mask(const fl_attention *p, float *s, int64_t i, int64_t j0, int64_t n) {
  const float *mask = p->mask ? p->mask + i * p->mi + j0 * p->mj : 0;
  const int64_t seen = fl_clamp(p->last + i + 1 - j0, 0, n);
  for (int64_t j = 0; j < n; j += VW) {
    const int64_t left = n - j < VW ? n - j : VW;
    vf x = vload(s + j);
    if (mask)
      x += p->mj == 0 ? vset(*mask) : left < VW ? vget_part(mask + j, left, 0) : vload(mask + j);
    if (seen - j < VW)
      x = vsel(vmask_part(fl_clamp(seen - j, 0, VW)), x, vset(-(float)INFINITY));
    vstore(s + j, x);
  }
}

static void fl_attention_row_softmax(float *s, int64_t n, float *largest, float *total, float *shrink) {
  const vf lowest = vset(-(float)INFINITY), old = vset(*largest);
  vf m = old;
  for (int64_t j = 0; j < n; j += VW)
    m = vmax(m, vload(s + j));
  FL_FOLD(m, vmax);
  *largest = m[0];
  m = vsel((vi)(m == lowest), vset(0), m);
  for (int64_t j = 0; j < n; j += VW)
    vstore(s + j, vexp_flush(vload(s + j) - m));
  float sum[4] = {0, 0, 0, 0};
  for (int64_t j = 0; j < n; j += 4) /* lanes beyond n add 0 */
    for (int i = 0; i < 4; i++)
      sum[i] += s[j + i];
  const vf f = vexp_flush(old - m);
  *shrink = f[0];
  *total = vfma(vset(*total), f, vset((sum[0] + sum[1]) + (sum[2] + sum[3])))[0];
}

static void fl_attention_rows(const fl_attention *p) {
  fl_attention_row_state w;
  int64_t window[1][2];
  w.width = (p->e + FL_PANEL - 1) / FL_PANEL * FL_PANEL;
  w.q = p->scratch;
  w.turned = w.q + (p->rows * p->d + FL_PANEL - 1) / FL_PANEL * FL_PANEL;
  w.s = w.turned + (p->d < FL_KC ? p->d : FL_KC) * FL_KEYS;
  w.sums = w.s + p->rows * FL_KEYS;
  w.padded = w.sums + p->rows * w.width;
  for (int64_t i = 0; i < p->rows; i++) {
    for (int64_t t = 0; t < p->d; t++)
      w.q[i * p->d + t] = p->q[i * p->qi + t] * p->scale;
    w.largest[i] = -(float)INFINITY;
    w.total[i] = 0;
  }
  fl_attention_windows(p, window);
  for (int64_t j0 = window[0][0], n; j0 < window[0][1]; j0 += n) {
    const int64_t end = (j0 / FL_KEYS + 1) * FL_KEYS;
    n = (end < window[0][1] ? end : window[0][1]) - j0;
    fl_attention_row_scores(p, &w, j0, n);
    for (int64_t i = 0; i < p->rows; i++) {
      fl_attention_row_mask(p, w.s + i * FL_KEYS, i, j0, n);
      fl_attention_row_softmax(w.s + i * FL_KEYS, n, w.largest + i, w.total + i, w.shrink + i);
    }
    int64_t apart;
    const float *v = fl_attention_whole_panels(p, j0, n, w.width, w.padded, &apart);
    const fl_direct product = {.a = w.s, .ai = FL_KEYS, .at = 1, .b = v, .bt = apart, .c = w.sums, .ldc = w.width, .m = p->rows, .n = w.width, .k = n,
                               .factor = j0 > window[0][0] ? w.shrink : 0};
    fl_f32_direct(&product);
  }
  fl_attention_results(p, w.sums, w.width, w.total);
}
