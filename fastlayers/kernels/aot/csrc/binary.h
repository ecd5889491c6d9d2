/* Functions of two values, comparisons and choices over broadcast operands: see fl_broadcast in kernels.h.
 *
 * Any alignment; out may be an operand that is not broadcast. A function is written once, for vectors (fl_v2_<name>); its loop is made
 * for each pair of column steps, 1 (the next number) or 0 (one number for the whole row). Against float64, rounded once, all are exact
 * but: squared difference 2 units in the last place, powers 0.51, those by 3 and -1/2 1.5 (tests/kernels/test_binary.py). */

/* ---- arithmetic ----------------------------------------------------------------------------------------------------------- */

FL_INLINE vf fl_v2_add(vf a, vf b) { return a + b; }
FL_INLINE vf fl_v2_subtract(vf a, vf b) { return a - b; }
FL_INLINE vf fl_v2_multiply(vf a, vf b) { return a * b; }
FL_INLINE vf fl_v2_divide(vf a, vf b) { return a / b; }
/* vmin and vmax give b where either is NaN */
FL_INLINE vf fl_v2_minimum(vf a, vf b) { return vsel((vi)(a != a), a, vmin(a, b)); }
FL_INLINE vf fl_v2_maximum(vf a, vf b) { return vsel((vi)(a != a), a, vmax(a, b)); }
FL_INLINE vf fl_v2_prelu(vf a, vf b) { return vsel((vi)(a >= 0), a, a * b); }
FL_INLINE vf fl_v2_squared_difference(vf a, vf b) { return (a - b) * (a - b); }
/* Powers with a constant exponent. The root of -0 is 0 and that of -infinity is infinity, as pow has it. */
FL_INLINE vf fl_v2_power_1(vf a, vf b) { (void)b; return a; }
FL_INLINE vf fl_v2_power_2(vf a, vf b) { (void)b; return a * a; }
FL_INLINE vf fl_v2_power_3(vf a, vf b) { (void)b; return a * a * a; }
FL_INLINE vf fl_v2_power_half(vf a, vf b) { (void)b; return vsqrt(vsel((vi)(a == -(float)INFINITY), -a, a)) + 0.0f; }
FL_INLINE vf fl_v2_power_minus_half(vf a, vf b) { return 1.0f / fl_v2_power_half(a, b); }
FL_INLINE vf fl_v2_power_minus_1(vf a, vf b) { (void)b; return 1.0f / a; }

typedef vf (*fl_v2_fn)(vf a, vf b);

/* Where a long row begins to be aligned: stores that cross lines take twice the time. In items; 0 for short rows. */
FL_INLINE int64_t fl_unaligned(const float *y, int64_t n) { return n < 8 * VW ? 0 : (int64_t)(-((uintptr_t)y / 4) % VW); }

/* The first n < VW values of a row, with the results limited as fl_v_clip does it: ReLU and the identity are cases of that. */
FL_INLINE void fl_v2_part(fl_v2_fn f, int ac, int bc, vf lo, vf hi, const float *a, const float *b, float *y, int64_t n) {
  const vf p = f(ac ? vget_part(a, n, 1) : vset(*a), bc ? vget_part(b, n, 1) : vset(*b));
  vput_part(y, vmin(hi, vmax(lo, p)), n);
}

FL_INLINE void fl_v2_row(fl_v2_fn f, int ac, int bc, vf lo, vf hi, const float *a, const float *b, float *y, int64_t n) {
  const vf a0 = vset(*a), b0 = vset(*b);
  int64_t i = fl_unaligned(y, n);
  if (i)
    fl_v2_part(f, ac, bc, lo, hi, a, b, y, i);
  for (; i + 2 * VW <= n; i += 2 * VW) {
    const vf p = f(ac ? vload(a + i) : a0, bc ? vload(b + i) : b0);
    const vf q = f(ac ? vload(a + i + VW) : a0, bc ? vload(b + i + VW) : b0);
    vstore(y + i, vmin(hi, vmax(lo, p)));
    vstore(y + i + VW, vmin(hi, vmax(lo, q)));
  }
  if (i + VW <= n) {
    vstore(y + i, vmin(hi, vmax(lo, f(ac ? vload(a + i) : a0, bc ? vload(b + i) : b0))));
    i += VW;
  }
  if (i < n)
    fl_v2_part(f, ac, bc, lo, hi, a + ac * i, b + bc * i, y + i, n - i);
}

FL_INLINE void fl_v2_rows(fl_v2_fn f, int ac, int bc, float lo, float hi, const fl_broadcast *p) {
  const float *a = p->a, *b = p->b;
  float *y = p->out;
  for (int64_t r = 0; r < p->rows; r++, a += p->a_row, b += p->b_row, y += p->cols)
    fl_v2_row(f, ac, bc, vset(lo), vset(hi), a, b, y, p->cols);
}

typedef void (*fl_binary_fn)(float lo, float hi, const fl_broadcast *p);
#define FL_BINARY(name)                                                                                                       \
  static __attribute__((noinline)) void fl_binary_##name(float lo, float hi, const fl_broadcast *p) {                         \
    switch (p->a_col * 2 + p->b_col) {                                                                                        \
    case 3: fl_v2_rows(fl_v2_##name, 1, 1, lo, hi, p); break;                                                                 \
    case 2: fl_v2_rows(fl_v2_##name, 1, 0, lo, hi, p); break;                                                                 \
    case 1: fl_v2_rows(fl_v2_##name, 0, 1, lo, hi, p); break;                                                                 \
    default: fl_v2_rows(fl_v2_##name, 0, 0, lo, hi, p);                                                                       \
    }                                                                                                                         \
  }
/* for powers, which look at the base alone */
#define FL_POWER(name)                                                                                                        \
  static __attribute__((noinline)) void fl_binary_##name(float lo, float hi, const fl_broadcast *p) {                         \
    if (p->a_col)                                                                                                             \
      fl_v2_rows(fl_v2_##name, 1, 0, lo, hi, p);                                                                              \
    else                                                                                                                      \
      fl_v2_rows(fl_v2_##name, 0, 0, lo, hi, p);                                                                              \
  }
FL_BINARY(add)
FL_BINARY(subtract)
FL_BINARY(multiply)
FL_BINARY(divide)
FL_BINARY(minimum)
FL_BINARY(maximum)
FL_BINARY(prelu)
FL_BINARY(squared_difference)
FL_POWER(power_1)
FL_POWER(power_2)
FL_POWER(power_3)
FL_POWER(power_half)
FL_POWER(power_minus_half)
FL_POWER(power_minus_1)

static void fl_binary_power(float lo, float hi, const fl_broadcast *p) {
  static const struct {
    float exponent;
    fl_binary_fn rows;
  } known[] = {{1, fl_binary_power_1}, {2, fl_binary_power_2}, {3, fl_binary_power_3}, {0.5f, fl_binary_power_half},
               {-0.5f, fl_binary_power_minus_half}, {-1, fl_binary_power_minus_1}};
  const float *a = p->a, *b = p->b;
  float *y = p->out;
  if (p->b_col == 0 && (p->b_row == 0 || p->rows == 1))
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
      if (*b == known[i].exponent) {
        known[i].rows(lo, hi, p);
        return;
      }
  for (int64_t r = 0; r < p->rows; r++, a += p->a_row, b += p->b_row, y += p->cols) {
    fl_power_row(a, p->a_col, b, p->b_col, y, p->cols);
    fl_map_clip(lo, hi, y, y, y, p->cols);
  }
}

static void fl_f32_binary(int op, float lo, float hi, const fl_broadcast *p) {
  static const fl_binary_fn table[FL_BINARY_COUNT] = {
      [FL_ADD] = fl_binary_add,
      [FL_SUBTRACT] = fl_binary_subtract,
      [FL_MULTIPLY] = fl_binary_multiply,
      [FL_DIVIDE] = fl_binary_divide,
      [FL_POWER] = fl_binary_power,
      [FL_MINIMUM] = fl_binary_minimum,
      [FL_MAXIMUM] = fl_binary_maximum,
      [FL_PRELU] = fl_binary_prelu,
      [FL_SQUARED_DIFFERENCE] = fl_binary_squared_difference,
  };
  if (p->rows > 0 && p->cols > 0)
    table[op](lo, hi, p);
}

/* ---- comparisons and choices ------------------------------------------------------------------------------------------------ */

/* Plain loops, which the compiler packs to bytes better than vectors written out would; ac and bc are constants where it is inlined. */
typedef int (*fl_s2_fn)(float a, float b);
FL_INLINE int fl_s2_equal(float a, float b) { return a == b; }
FL_INLINE int fl_s2_not_equal(float a, float b) { return a != b; }
FL_INLINE int fl_s2_less(float a, float b) { return a < b; }
FL_INLINE int fl_s2_less_equal(float a, float b) { return a <= b; }

FL_INLINE void fl_s2_row(fl_s2_fn f, int ac, int bc, const float *restrict a, const float *restrict b, uint8_t *restrict y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = (uint8_t)f(a[ac * i], b[bc * i]);
}
FL_INLINE void fl_s2_rows(fl_s2_fn f, int ac, int bc, const fl_broadcast *p) {
  for (int64_t r = 0; r < p->rows; r++)
    fl_s2_row(f, ac, bc, p->a + r * p->a_row, p->b + r * p->b_row, (uint8_t *)p->out + r * p->cols, p->cols);
}
#define FL_COMPARE(name)                                                                                                      \
  static __attribute__((noinline)) void fl_compare_##name(const fl_broadcast *p) {                                            \
    switch (p->a_col * 2 + p->b_col) {                                                                                        \
    case 3: fl_s2_rows(fl_s2_##name, 1, 1, p); break;                                                                         \
    case 2: fl_s2_rows(fl_s2_##name, 1, 0, p); break;                                                                         \
    case 1: fl_s2_rows(fl_s2_##name, 0, 1, p); break;                                                                         \
    default: fl_s2_rows(fl_s2_##name, 0, 0, p);                                                                               \
    }                                                                                                                         \
  }
FL_COMPARE(equal)
FL_COMPARE(not_equal)
FL_COMPARE(less)
FL_COMPARE(less_equal)

static void fl_f32_compare(int op, const fl_broadcast *p) {
  fl_broadcast swapped = *p;
  swapped.a = p->b, swapped.a_row = p->b_row, swapped.a_col = p->b_col;
  swapped.b = p->a, swapped.b_row = p->a_row, swapped.b_col = p->a_col;
  if (p->rows <= 0 || p->cols <= 0)
    return;
  switch (op) {
  case FL_EQUAL: fl_compare_equal(p); break;
  case FL_NOT_EQUAL: fl_compare_not_equal(p); break;
  case FL_LESS: fl_compare_less(p); break;
  case FL_LESS_EQUAL: fl_compare_less_equal(p); break;
  case FL_GREATER: fl_compare_less(&swapped); break;
  default: fl_compare_less_equal(&swapped);
  }
}

/* VW bytes as a mask: -1 where they are not 0 */
FL_INLINE vi vmask_bytes(const uint8_t *p) {
#if defined(__AVX512F__)
  return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)) != 0;
#elif defined(__AVX2__)
  return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)) != 0;
#else
  uint32_t bytes;
  memcpy(&bytes, p, sizeof bytes);
#if defined(__SSE2__)
  const __m128i zero = _mm_setzero_si128();
  return (vi)_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128((int)bytes), zero), zero) != 0;
#else
  return (vi)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(bytes)))) != 0;
#endif
#endif
}
FL_INLINE vi vmask_part_bytes(const uint8_t *p, int64_t n) {
  uint8_t bytes[VW] = {0};
  for (int64_t i = 0; i < n; i++)
    bytes[i] = p[i];
  return vmask_bytes(bytes);
}

FL_INLINE void fl_where_part(int cc, int ac, int bc, const uint8_t *c, const float *a, const float *b, float *y, int64_t n) {
  const vi m = cc ? vmask_part_bytes(c, n) : vseti(-(*c != 0));
  vput_part(y, vsel(m, ac ? vget_part(a, n, 0) : vset(*a), bc ? vget_part(b, n, 0) : vset(*b)), n);
}

FL_INLINE void fl_where_rows(int cc, int ac, int bc, const fl_broadcast *p) {
  const uint8_t *c = p->condition;
  const float *a = p->a, *b = p->b;
  float *y = p->out;
  for (int64_t r = 0; r < p->rows; r++, c += p->condition_row, a += p->a_row, b += p->b_row, y += p->cols) {
    const vi c0 = vseti(-(*c != 0));
    const vf a0 = vset(*a), b0 = vset(*b);
    int64_t i = fl_unaligned(y, p->cols);
    if (i)
      fl_where_part(cc, ac, bc, c, a, b, y, i);
    for (; i + VW <= p->cols; i += VW)
      vstore(y + i, vsel(cc ? vmask_bytes(c + i) : c0, ac ? vload(a + i) : a0, bc ? vload(b + i) : b0));
    if (i < p->cols)
      fl_where_part(cc, ac, bc, c + cc * i, a + ac * i, b + bc * i, y + i, p->cols - i);
  }
}

static void fl_f32_where(const fl_broadcast *p) {
  if (p->rows <= 0 || p->cols <= 0)
    return;
  switch (p->condition_col * 4 + p->a_col * 2 + p->b_col) {
  case 7: fl_where_rows(1, 1, 1, p); break;
  case 6: fl_where_rows(1, 1, 0, p); break;
  case 5: fl_where_rows(1, 0, 1, p); break;
  case 4: fl_where_rows(1, 0, 0, p); break;
  case 3: fl_where_rows(0, 1, 1, p); break;
  case 2: fl_where_rows(0, 1, 0, p); break;
  case 1: fl_where_rows(0, 0, 1, p); break;
  default: fl_where_rows(0, 0, 0, p);
  }
}
