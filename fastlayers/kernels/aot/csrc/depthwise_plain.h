/* Depthwise convolutions of channels-first planes that are read where they are: 3x3 with strides of 1 and 2, 5x5 with 2.
 *
 * No padded copy is made: lanes outside a row are masked off, and rows outside the plane are a row of zeros. With a stride of 2, two
 * vectors are loaded and their even and odd lanes are two taps. Order of a sum: as in depthwise.h, so results are its, bit for bit.
 * The 5x5 kernel with a stride of 1 is left out: sixteen channels at a time are as fast. 144@56 with stride 2 took 0.6 of the time of
 * copied bands, 64@112 0.65, 32@112 with stride 1 0.75 (AMD Zen 4).
 * Remainders: the last vector of a row and the last group of rows start early; rows shorter than a vector spill as in depthwise.h. */

#if !defined(__AVX512F__) && !defined(__AVX2__)
/* Lanes before .. stop - 1 of a vector, 0 elsewhere: no instruction does this here, and in line it would be most of this file's code. */
static __attribute__((noinline)) vf fl_dw_edge(const float *from, int64_t before, int64_t stop) {
  float lanes[VW] = {0};
  for (int64_t i = before; i < stop; i++)
    lanes[i] = from[i];
  return vload(lanes);
}
#endif

/* Positions at .. at + VW - 1 of a row of w floats, 0 for those outside of it. */
FL_INLINE vf fl_dw_span(const float *row, int64_t at, int64_t w, const int inside) {
  if (inside)
    return vload(row + at);
  const int64_t before = at < 0 ? (at > -VW ? -at : VW) : 0, left = w - at, stop = left < VW ? (left > 0 ? left : 0) : VW;
#if defined(__AVX512F__)
  const uint32_t lanes = (0xffffu << before) & (0xffffu >> (VW - stop));
  return (vf)_mm512_maskz_loadu_ps((__mmask16)lanes, row + at);
#elif defined(__AVX2__)
  const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return (vf)_mm256_maskload_ps(row + at, (__m256i)((lane >= (int32_t)before) & (lane < (int32_t)stop)));
#else
  return fl_dw_edge(row + at, before, stop);
#endif
}

/* Every second lane of a and b, from the first or the second on, in an order that whole groups of four allow and shuffles over all
 * lanes do not pay for; FL_DW_ORDER brings sums of such vectors into the usual one. */
#if VW == 16
#define FL_DW_EVEN(a, b) FL_LANES2(a, b, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30)
#define FL_DW_ODD(a, b) FL_LANES2(a, b, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31)
#define FL_DW_ORDER(v) FL_LANES(v, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)
#elif VW == 8
#define FL_DW_EVEN(a, b) FL_LANES2(a, b, 0, 2, 8, 10, 4, 6, 12, 14)
#define FL_DW_ODD(a, b) FL_LANES2(a, b, 1, 3, 9, 11, 5, 7, 13, 15)
#define FL_DW_ORDER(v) FL_LANES(v, 0, 1, 4, 5, 2, 3, 6, 7)
#else
#define FL_DW_EVEN(a, b) FL_LOW1(a, b)
#define FL_DW_ODD(a, b) FL_HIGH1(a, b)
#define FL_DW_ORDER(v) v
#endif

/* Where a vector's taps may leave their row: nowhere, by the columns before the middle one, by those after it, or anywhere. */
enum { FL_DW_INSIDE, FL_DW_LEFT, FL_DW_RIGHT, FL_DW_ANYWHERE };

FL_INLINE int fl_dw_side(int64_t at, int64_t w, const int k, const int s) {
  const int64_t stop = at + k - 1 + s * VW; /* of all that is loaded */
  if (at >= 0)
    return stop <= w ? FL_DW_INSIDE : stop - (s == 1 ? k / 2 : VW) <= w ? FL_DW_RIGHT : FL_DW_ANYWHERE;
  return at + k / 2 >= 0 && stop <= w ? FL_DW_LEFT : FL_DW_ANYWHERE;
}

/* P rows of outputs from y on, VW columns from j on; weights k x k, rows and columns with stride s. */
FL_INLINE void fl_dw_plain_some(const fl_dw_first *p, const float *weight, int64_t limit, const float *const *rows, int64_t y, int64_t j,
                                const int P, const int k, const int s, const int side) {
  const int64_t at = j * s - p->left, w = p->w_in;
  vf acc[4];
  FL_UNROLL for (int q = 0; q < P; q++) acc[q] = vset(0);
  FL_UNROLL for (int r = 0; r < (P - 1) * s + k; r++) {
    const float *row = rows[r];
    vf v[6];
    FL_UNROLL for (int t = 0; t < k; t += s) {
      const int left = side == FL_DW_LEFT && t < k / 2, right = side == FL_DW_RIGHT && s == 1 && t >= k - k / 2;
      v[t] = fl_dw_span(row, at + t, w, side != FL_DW_ANYWHERE && !left && !right);
      if (s == 2) {
        const vf a = v[t], b = fl_dw_span(row, at + t + VW, w, side == FL_DW_INSIDE || side == FL_DW_LEFT);
        v[t] = FL_DW_EVEN(a, b);
        v[t + 1] = FL_DW_ODD(a, b);
      }
    }
    FL_UNROLL for (int q = 0; q < P; q++) if (r - q * s >= 0 && r - q * s < k) FL_UNROLL for (int t = 0; t < k; t++) acc[q] =
        vfma(vset(weight[(r - q * s) * k + t]), v[t], acc[q]);
  }
  FL_UNROLL for (int q = 0; q < P; q++) fl_dw_first_store(p, limit, y + q, j, s == 2 ? FL_DW_ORDER(acc[q]) : acc[q]);
}

FL_INLINE void fl_dw_plain_all(const fl_dw_first *p, const float *weight, const int k, const int s) {
  enum { P = 4 };
  const int64_t last = p->cols > VW ? p->cols - VW : 0, limit = fl_dw_first_limit(p);
  for (int64_t y0 = 0; y0 < p->rows; y0 += P) {
    const int64_t y = y0 < p->rows - P ? y0 : p->rows - P;
    const float *rows[3 * 2 + 5];
    FL_UNROLL for (int r = 0; r < (P - 1) * s + k; r++) {
      const int64_t at = y * s + r - p->top;
      rows[r] = at >= 0 && at < p->h_in ? p->source + at * p->w_in : p->zeros;
    }
    for (int64_t j0 = 0; j0 < p->cols; j0 += VW) {
      const int64_t j = j0 < last ? j0 : last;
      switch (fl_dw_side(j * s - p->left, p->w_in, k, s)) {
      case FL_DW_INSIDE:
        fl_dw_plain_some(p, weight, limit, rows, y, j, P, k, s, FL_DW_INSIDE);
        break;
      case FL_DW_LEFT:
        fl_dw_plain_some(p, weight, limit, rows, y, j, P, k, s, FL_DW_LEFT);
        break;
      case FL_DW_RIGHT:
        fl_dw_plain_some(p, weight, limit, rows, y, j, P, k, s, FL_DW_RIGHT);
        break;
      default:
        fl_dw_plain_some(p, weight, limit, rows, y, j, P, k, s, FL_DW_ANYWHERE);
      }
    }
  }
}

/* Weights in their own array: no store changes them. */
#define FL_DW_PLAIN(k, s) \
  static __attribute__((noinline)) void fl_dw_plain_##k##_##s(const fl_dw_first *p) { \
    const fl_dw_first local = *p; \
    float weight[(k) * (k)]; \
    memcpy(weight, p->w, sizeof weight); \
    fl_dw_plain_all(&local, weight, k, s); \
  }
FL_DW_PLAIN(3, 1)
FL_DW_PLAIN(3, 2)
FL_DW_PLAIN(5, 2)
#undef FL_DW_PLAIN

static void fl_dw_plain(const fl_dw_first *p) {
  if (p->kw == 3)
    (p->plain == 1 ? fl_dw_plain_3_1 : fl_dw_plain_3_2)(p);
  else
    fl_dw_plain_5_2(p);
}
