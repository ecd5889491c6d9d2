/* The matrix product with both operands read where they are: for products too small or too short-lived to be worth packing.
 *
 * Computes  c[i, j] (+)= sum_t a[i * ai + t * at] b[t * bt + j]  over one block of K, each element one chain of multiply-adds in the
 * order of t, from zero: the bits of fl_f32_block. Values of a are broadcast, so a may as well be transposed (ai = 1); sixteen
 * neighbours of b are a panel. Tiles have the sizes of gemm.h, for the same reasons.
 * Assumes: k is at most FL_KC; c overlaps neither a nor b; n is a multiple of FL_PANEL: callers pad what is not. */
#define FL_PV (FL_PANEL / VW) /* vectors of a panel */

FL_INLINE void fl_direct_tile(const fl_direct *p, const float *a, const float *b, float *c, const float *factor, const int rows,
                              const int panels) {
  vf acc[FL_MR][8 * FL_PV];
  const float *row[FL_MR];
  FL_UNROLL for (int i = 0; i < rows; i++) {
    row[i] = a + i * p->ai;
    FL_UNROLL for (int j = 0; j < panels * FL_PV; j++) acc[i][j] = vset(0);
  }
  const int64_t k = p->k, at = p->at, bt = p->bt;
  for (int64_t t = 0, u = 0; t < k; t++, u += at, b += bt) {
    vf bv[8 * FL_PV];
    FL_UNROLL for (int j = 0; j < panels * FL_PV; j++) bv[j] = vload(b + j * VW);
    FL_UNROLL for (int i = 0; i < rows; i++) {
      const vf s = vset(row[i][u]);
      FL_UNROLL for (int j = 0; j < panels * FL_PV; j++) acc[i][j] = vfma(s, bv[j], acc[i][j]);
      FL_IN_ORDER();
    }
  }
  const int64_t ldc = p->ldc;
  if (factor) {
    FL_UNROLL for (int i = 0; i < rows; i++)
      FL_UNROLL for (int j = 0; j < panels * FL_PV; j++) acc[i][j] = vfma(vset(factor[i]), vload(c + i * ldc + j * VW), acc[i][j]);
  } else if (p->accumulate) {
    FL_UNROLL for (int i = 0; i < rows; i++)
      FL_UNROLL for (int j = 0; j < panels * FL_PV; j++) acc[i][j] = vload(c + i * ldc + j * VW) + acc[i][j];
  }
  FL_UNROLL for (int i = 0; i < rows; i++)
    FL_UNROLL for (int j = 0; j < panels * FL_PV; j++) vstore(c + i * ldc + j * VW, acc[i][j]);
}

typedef void (*fl_direct_fn)(const fl_direct *, const float *a, const float *b, float *c, const float *factor);
#define FL_DIRECT(rows, panels)                                                                                                  \
  static __attribute__((noinline)) void fl_direct_##rows##x##panels(const fl_direct *p, const float *a, const float *b, float *c, \
                                                                    const float *factor) {                                       \
    fl_direct_tile(p, a, b, c, factor, rows, panels);                                                                            \
  }
#define FL_DIRECT_3(panels) FL_DIRECT(1, panels) FL_DIRECT(2, panels) FL_DIRECT(3, panels)
#define FL_DIRECT_6(panels) FL_DIRECT_3(panels) FL_DIRECT(4, panels) FL_DIRECT(5, panels) FL_DIRECT(6, panels)
#define FL_DIRECT_8(panels) FL_DIRECT_6(panels) FL_DIRECT(7, panels) FL_DIRECT(8, panels)
#define FL_NAMES_1(p) 0, fl_direct_1x##p
#define FL_NAMES_2(p) FL_NAMES_1(p), fl_direct_2x##p
#define FL_NAMES_3(p) FL_NAMES_2(p), fl_direct_3x##p
#define FL_NAMES_6(p) FL_NAMES_3(p), fl_direct_4x##p, fl_direct_5x##p, fl_direct_6x##p
#define FL_NAMES_8(p) FL_NAMES_6(p), fl_direct_7x##p, fl_direct_8x##p

/* One line for each of gemm.h's fl_shapes. */
#if VW == 16
FL_DIRECT_8(1) FL_DIRECT_8(2) FL_DIRECT_8(3) FL_DIRECT_6(4) FL_DIRECT(1, 8)
static const fl_direct_fn fl_directs[][FL_MR + 1] = {{FL_NAMES_8(1)}, {FL_NAMES_8(2)}, {FL_NAMES_8(3)}, {FL_NAMES_6(4)}, {FL_NAMES_1(8)}};
#elif VW == 8
FL_DIRECT_6(1) FL_DIRECT_3(2) FL_DIRECT(1, 4)
static const fl_direct_fn fl_directs[][FL_MR + 1] = {{FL_NAMES_6(1)}, {FL_NAMES_3(2)}, {FL_NAMES_1(4)}};
#elif VREGS == 32
FL_DIRECT_6(1) FL_DIRECT(1, 2) FL_DIRECT(2, 2)
static const fl_direct_fn fl_directs[][FL_MR + 1] = {{FL_NAMES_6(1)}, {FL_NAMES_2(2)}};
#else
FL_DIRECT_3(1) FL_DIRECT(1, 2)
static const fl_direct_fn fl_directs[][FL_MR + 1] = {{FL_NAMES_3(1)}, {FL_NAMES_1(2)}};
#endif

static void fl_f32_direct(const fl_direct *p) {
  const int64_t panels = p->n / FL_PANEL;
  for (int64_t j = 0; j < panels;) {
    const fl_shape *shape = fl_pick(p->m, panels - j);
    const fl_direct_fn *tiles = fl_directs[shape - fl_shapes];
    const int64_t count = (p->m + shape->rows - 1) / shape->rows;
    for (int64_t tile = 0, i = 0; tile < count; tile++) {
      const int64_t m = p->m / count + (tile < p->m % count); /* even heights */
      tiles[m](p, p->a + i * p->ai, p->b + j * FL_PANEL, p->c + i * p->ldc + j * FL_PANEL, p->factor ? p->factor + i : 0);
      i += m;
    }
    j += shape->panels;
  }
}

/* The same in blocks of FL_FINE terms. */
static void fl_f32_fine_direct(const fl_direct *p) {
  fl_direct part = *p;
  int64_t left = p->k;
  do {
    part.k = left < FL_FINE ? left : FL_FINE;
    fl_f32_direct(&part);
    left -= part.k;
    part.a += part.k * p->at;
    part.b += part.k * p->bt;
    part.factor = 0;
    part.accumulate = 1;
  } while (left > 0);
}
