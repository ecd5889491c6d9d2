/* Products with weights of 2, 4 or 8 bits that stay packed (nbits_types.h); ../../README.md says what is summed in which order.
 *
 *   exact    weights become floats in registers: (q - zero) * scale, rounded once, as `panels` writes them for products of many rows
 *   integer  rows are integers with a step a block: of one byte, or of three, which hold what floats do; sums of bytes are exact
 *
 * Bits, rows and whether there are zero points are constants of each tile: nbits_integer.h. */

#include "nbits_parts.h"

/* By how much, and under which mask, floats of 8 bits are shifted: of several rows, where there are 32 registers, by vectors, which takes an
 * instruction less. */
FL_INLINE vi fl_nbits_shift8(const fl_nbits *p, const int rows) {
  vi by = vseti(24 - p->shift);
#if VW == 16
  if (rows > 1)
    __asm__("" : "+v"(by));
#endif
  (void)rows;
  return by;
}
FL_INLINE vi fl_nbits_mask8(const fl_nbits *p) { return vseti(INT32_MIN | 127 << p->shift); }

/* Byte i of every lane, a float of 8 bits, but for p->factor. */
FL_INLINE vf fl_nbits_float8(vi by, vi mask, vi v, int i) { return (vf)((vi)((vu)v << (24 - i * 8)) >> by & mask); }

/* The lowest bits of byte i of every lane, less `z`, which is what `table` has taken away already where there are no zero points. */
FL_INLINE vf fl_nbits_term(const int bits, const int zeros, vi v, int i, vf z, vf table) {
  const int shift = i * 8;
#if VW == 16
  if (bits < 8) { /* the permutation reads four bits of each lane */
    const vf w = (vf)_mm512_permutexvar_ps((__m512i)(vi)((vu)v >> shift), (__m512)table);
    return zeros ? w - z : w;
  }
#else
  (void)table;
#endif
  const vi q = bits == 8 && i == 3 ? (vi)((vu)v >> shift) : (vi)((vu)v >> shift) & ((1 << bits) - 1);
  (void)zeros;
  return vfloat(q) - z;
}

/* What four bits stand for, of weights of 4 or 2 bits. */
FL_INLINE vf fl_nbits_table(const int bits, const int zeros) {
  vf table;
  for (int i = 0; i < VW; i++)
    table[i] = (float)((i & ((1 << bits) - 1)) - (zeros ? 0 : 1 << (bits - 1)));
  return table;
}

/* The weights of `klen` terms from k0 on (of a chunk: k0 is a multiple of 16) as floats, panels [klen][16] of n columns. */
FL_INLINE void fl_nbits_panels_of(const int bits, const fl_nbits *p, int64_t k0, int64_t klen, float *to) {
  const int terms = 32 / bits;
  const vf table = fl_nbits_table(bits, 1);
  for (int64_t j = 0; j * FL_PANEL < p->n; j++) {
    const int64_t side = fl_nbits_side(p, j), line = side * 64, step = side * p->record;
    const uint8_t *panel = fl_nbits_at(p, j), *scales = fl_nbits_scales_at(p, j, side);
    const void *const origins = fl_nbits_zeros_at(p, j);
    for (int64_t k = k0; k < k0 + klen;) {
      const int64_t block = k / p->block, rest = k0 + klen - k, end = (block + 1) * p->block - k < rest ? (block + 1) * p->block : k + rest;
      const uint8_t *from = panel + block * step;
      vf s[FL_PANEL / VW], z[FL_PANEL / VW];
      fl_nbits_zeros_of(p, origins, block, z);
      FL_UNROLL for (int i = 0; i < FL_PANEL / VW; i++) s[i] = fl_nbits_scales(p, scales + block * step, i * VW);
      from += (k - block * p->block) / terms * line;
      for (; k + terms <= end; k += terms, from += line, to += terms * FL_PANEL)
        FL_UNROLL for (int i = 0; i < FL_PANEL / VW; i++) {
          vi v = viload((const int32_t *)from + i * VW);
          for (int t = 0; t < terms; t += 4, v = (vi)((vu)v >> bits)) /* not unrolled where that takes much code */
            FL_UNROLL for (int u = 0; u < 4; u++)
              vstore(to + (t + u) * FL_PANEL + i * VW, fl_nbits_term(bits, 1, v, u, z[i], table) * s[i]);
        }
      for (int t = 0; k < end; k++, t++, to += FL_PANEL) /* the last terms: less than a group */
        for (int i = 0; i < FL_PANEL; i++) {
          const uint32_t v = ((const uint32_t *)from)[i];
          to[i] = ((float)(v >> (t % 4 * 8 + t / 4 * bits) & ((1 << bits) - 1)) - z[i / VW][i % VW]) * s[i / VW][i % VW];
        }
    }
  }
}

/* The same of weights that are codes: a group of columns' terms at a time, each looked up. */
FL_INLINE void fl_nbits_codes_of(const int bits, const fl_nbits *p, int64_t k0, int64_t klen, float *to) {
  const int terms = 32 / bits;
  const vi by = fl_nbits_shift8(p, 4), mask = fl_nbits_mask8(p);
  for (int64_t j = 0; j * FL_PANEL < p->n; j++) {
    const int64_t side = fl_nbits_side(p, j), line = side * 64, step = side * p->record;
    const uint8_t *panel = fl_nbits_at(p, j), *scales = fl_nbits_scales_at(p, j, side);
    for (int64_t k = k0; k < k0 + klen;) {
      const int64_t block = k / p->block, rest = k0 + klen - k, end = (block + 1) * p->block - k < rest ? (block + 1) * p->block : k + rest;
      const uint8_t *from = panel + block * step + (k - block * p->block) / terms * line;
      vf s[FL_PANEL / VW];
      FL_UNROLL for (int i = 0; i < FL_PANEL / VW; i++) s[i] = fl_nbits_scales(p, scales + block * step, i * VW);
      for (; bits == 8 && p->factor != 0 && k + terms <= end; k += terms, from += line, to += terms * FL_PANEL)
        FL_UNROLL for (int i = 0; i < FL_PANEL / VW; i++) {
          const vi v = viload((const int32_t *)from + i * VW);
          FL_UNROLL for (int t = 0; t < 4; t++) vstore(to + t * FL_PANEL + i * VW, fl_nbits_float8(by, mask, v, t) * (s[i] * p->factor));
        }
      for (; k < end; from += line)
        for (int t = 0; t < terms && k < end; t++, k++, to += FL_PANEL) {
#if VW == 16
          if (bits == 4) {
            const vu v = (vu)viload((const int32_t *)from) >> (t % 4 * 8 + t / 4 * bits);
            vstore(to, (vf)_mm512_permutexvar_ps((__m512i)(vi)v, (__m512)vload(p->codes)) * s[0]);
            continue;
          }
#endif
          for (int i = 0; i < FL_PANEL; i++)
            to[i] = p->codes[from[i * 4 + t % 4] >> (t / 4 * bits) & ((1 << bits) - 1)] * s[i / VW][i % VW];
        }
    }
  }
}

static void fl_f32_nbits_panels(const fl_nbits *given, int64_t k0, int64_t klen, float *to) {
  const fl_nbits own = *given, *const p = &own; /* which no store to `to` may change */
  if (p->codes) {
    p->bits == 8 ? fl_nbits_codes_of(8, p, k0, klen, to) : fl_nbits_codes_of(4, p, k0, klen, to);
    return;
  }
  if (p->bits == 8)
    fl_nbits_panels_of(8, p, k0, klen, to);
  else if (p->bits == 4)
    fl_nbits_panels_of(4, p, k0, klen, to);
  else
    fl_nbits_panels_of(2, p, k0, klen, to);
}

/* The step of a block of three bytes a number, a power of two from 2^-126 on, and what a step is of 1. Its largest number becomes no more
 * than 127 * 0x10101, for which 2 / 1.00394 leaves room. */
FL_INLINE float fl_nbits_step_of_three(float largest, float *by) {
  uint32_t bits;
  float step;
  largest *= 1.00394f;
  memcpy(&bits, &largest, 4);
  bits = bits >> 23 < 23 ? 1 : (bits >> 23) - 22;
  bits <<= 23;
  memcpy(&step, &bits, 4);
  *by = 1 / step;
  return step;
}

/* m rows of k floats as integers, in blocks: see fl_nbits. A block whose largest value is not finite has the step NaN; one of bytes
 * whose step would be subnormal is zeros. */
static void fl_f32_nbits_rows(const float *x, int64_t m, int64_t k, int64_t block, int32_t zero, int digits, int8_t *q, float *steps,
                              float *sums, int32_t *starts) {
  const int64_t blocks = (k + block - 1) / block, wide = blocks * block;
  for (int64_t i = 0; i < m * blocks; i++) {
    const int64_t row = i / blocks * digits, at = i % blocks, k0 = at * block, klen = k - k0 < block ? k - k0 : block;
    const float *from = x + i / blocks * k + k0;
    int8_t *const to = q + row * wide + k0;
    float part[256];
    if (klen < block) {
      memset(part, 0, sizeof part);
      memcpy(part, from, (size_t)klen * 4);
      from = part;
    }
    vi most = {0}, total[3] = {{0}}; /* magnitudes as integers: NaN is the largest */
    for (int64_t t = 0; t < block; t += VW) {
      const vi a = vbits(vabs(vload(from + t)));
      most = vseli((vi)(a > most), a, most);
    }
    int32_t top = 0;
    for (int t = 0; t < VW; t++)
      top = most[t] > top ? most[t] : top;
    float largest, step, by;
    memcpy(&largest, &top, 4);
    step = largest / 127, by = 127 / largest;
    if (digits > 1)
      step = fl_nbits_step_of_three(largest, &by);
    if (top >= 0x7f800000 || step < 0x1p-126f)
      step = top >= 0x7f800000 ? NAN : 0, by = 0, from = memset(part, 0, sizeof part);
    for (int64_t t = 0; t < block; t += VW) {
      vi v = vnear(vload(from + t) * by);
      for (int d = 0; d < digits; d++) {
        const vi low = d + 1 < digits ? (vi)((vu)v << 24) >> 24 : v;
        total[d] += low;
        vnarrow((uint8_t *)to + d * wide + t, low);
        v = (v - low) >> 8;
      }
    }
    steps[i] = step;
    for (int d = 0; d < digits; d++) {
      const int64_t line = (row + d) * blocks + at;
      int32_t sum = 0;
      for (int t = 0; t < VW; t++)
        sum += total[d][t];
      sums[line] = (float)sum, starts[line] = -zero * sum;
    }
  }
}

/* Loads a vector of weights once: GCC makes a load of every use that an instruction can take from memory, and loads are what holds up a row. */
FL_INLINE vi fl_nbits_load(const int32_t *words) {
  vi v = viload(words);
#if VW == 16
  __asm__("" : "+v"(v));
#endif
  return v;
}

typedef void (*fl_nbits_fn)(const fl_nbits *p, int64_t i, int64_t j);

/* The last panel where there is no panel j: a tile may hang over, and its results there are not wanted. */
FL_INLINE int64_t fl_nbits_within(const fl_nbits *p, int64_t j) { return j * FL_PANEL < p->n ? j : (p->n - 1) / FL_PANEL; }

/* Tiles of one row and of `rows` (NULL where there are none), from `least` on, some panels at a time: `one` of a tile of one row, `more`, of
 * which that is a multiple, of several. Each tile is code of its own, and a wheel has little room: two rows are two tiles of one, and levels of
 * processors that few have left have no others. */
FL_INLINE void fl_nbits_walk(const fl_nbits *p, const fl_nbits_fn *tiles, const int rows, const int least, const int one, const int more) {
  for (int64_t j = 0; j * FL_PANEL < p->n; j += one)
    for (int64_t i = 0; i < p->m;) {
      const int t = p->m - i >= least && tiles[1];
      for (int64_t q = j; q < j + one && q * FL_PANEL < p->n; q += t ? more : one)
        tiles[t](p, i, q);
      i += t ? rows : 1;
    }
}

/* Vectors of four panels; no tile has more panels, nor more rows. */
#define FL_NBITS_MOST (4 * FL_PANEL / VW)

/* The sums of a tile as results: one function, for tiles are many, and have no room for it. */
static __attribute__((noinline)) void fl_nbits_done(const fl_nbits *p, int64_t i0, int64_t j0, int rows, int panels,
                                                    const vf total[][FL_NBITS_MOST]) {
  for (int t = 0; t < panels && (j0 + t) * FL_PANEL < p->n; t++)
    for (int r = 0; r < rows && i0 + r < p->m; r++)
      fl_nbits_finish(p, i0 + r, j0 + t, total[r] + t * (FL_PANEL / VW));
}

/* ---- exact ------------------------------------------------------------------------------------------------------------------ */

FL_INLINE void fl_nbits_exact_tile(const int bits, const int zeros, const int rows, const int panels, const fl_nbits *p, int64_t i0,
                                   int64_t j0) {
  const int width = panels * (FL_PANEL / VW), terms = 32 / bits;
  const int64_t segment = p->block < p->chunk ? p->block : p->chunk, k1 = p->blocks * p->block;
  const int64_t side = fl_nbits_side(p, j0), line = side * 64, step = side * p->record;
  const uint8_t *from[4], *scales[4];
  const void *origins[4];
  const float *x[4];
  vf total[4][FL_NBITS_MOST];
  const vi by = fl_nbits_shift8(p, rows), mask = fl_nbits_mask8(p);
  const vf table = bits < 8 && p->codes ? vload(p->codes) : fl_nbits_table(bits, zeros); /* codes come here in tables of a vector alone */
  FL_UNROLL for (int t = 0; t < panels; t++) {
    from[t] = fl_nbits_at(p, fl_nbits_within(p, j0 + t));
    scales[t] = fl_nbits_scales_at(p, fl_nbits_within(p, j0 + t), side);
    origins[t] = fl_nbits_zeros_at(p, fl_nbits_within(p, j0 + t));
  }
  FL_UNROLL for (int r = 0; r < rows; r++) {
    x[r] = p->x + (i0 + r < p->m ? i0 + r : p->m - 1) * p->pitch; /* rows may hang over, as panels do */
    FL_UNROLL for (int v = 0; v < width; v++) total[r][v] = vset(0);
  }
  for (int64_t k0 = 0; k0 < k1; k0 += p->chunk) {
    const int64_t end = k0 + p->chunk < k1 ? k0 + p->chunk : k1;
    vf acc[4][FL_NBITS_MOST];
    FL_UNROLL for (int r = 0; r < rows; r++)
      FL_UNROLL for (int v = 0; v < width; v++) acc[r][v] = vset(0);
    for (int64_t k = k0; k < end;) {
      const int64_t block = k / p->block, last = k + segment < end ? k + segment : end;
      int64_t at = block * step;
      vf s[FL_NBITS_MOST], z[FL_NBITS_MOST];
      FL_UNROLL for (int t = 0; t < panels; t++) {
        fl_nbits_zeros_of(p, origins[t], block, z + t * (FL_PANEL / VW));
        FL_UNROLL for (int v = 0; v < FL_PANEL / VW; v++)
          s[t * (FL_PANEL / VW) + v] = fl_nbits_scales(p, scales[t] + at, v * VW) * (bits == 8 && !zeros ? p->factor : 1);
      }
      at += (k - block * p->block) / terms * line;
      for (; k < last; k += terms, at += line)
        FL_UNROLL for (int v = 0; v < width; v++) {
          const int32_t *words = (const int32_t *)(from[v / (FL_PANEL / VW)] + at) + v % (FL_PANEL / VW) * VW;
          vi word = fl_nbits_load(words);
          for (int t = 0; t < terms; t += 4, word = (vi)((vu)word >> bits))
            FL_UNROLL for (int u = 0; u < 4; u++) {
              const vf w = (bits == 8 && !zeros ? fl_nbits_float8(by, mask, word, u) : fl_nbits_term(bits, zeros, word, u, z[v], table)) * s[v];
              FL_UNROLL for (int r = 0; r < rows; r++) acc[r][v] = vfma(vset(x[r][k + t + u]), w, acc[r][v]);
            }
        }
    }
    FL_UNROLL for (int r = 0; r < rows; r++)
      FL_UNROLL for (int v = 0; v < width; v++) total[r][v] = k0 ? total[r][v] + acc[r][v] : acc[r][v];
  }
  fl_nbits_done(p, i0, j0, rows, panels, total);
}

/* Panels of a tile of one row: chains enough to hide what a multiply-add takes. Tiles of four rows have one panel, and only 256-bit vectors
 * have them: with wider ones few processors take floats but for codes and in strict precision, see `nbits_three`. Weights that are floats of 8
 * bits have tiles of two rows, and of four where registers do. */
#define FL_NBITS_ONE (VW == 16 ? 2 : 1)
#define FL_NBITS_FLOAT8 (VW == 16 ? 4 : 2)

#define FL_NBITS_EXACT(rows, bits, zeros, panels)                                                                                 \
  static __attribute__((noinline)) void fl_nbits_exact_##rows##_##bits##_##zeros(const fl_nbits *p, int64_t i, int64_t j) {       \
    fl_nbits_exact_tile(bits, zeros, rows, panels, p, i, j);                                                                      \
  }

FL_NBITS_EXACT(1, 8, 1, FL_NBITS_ONE)
FL_NBITS_EXACT(1, 4, 1, FL_NBITS_ONE)
FL_NBITS_EXACT(1, 2, 1, FL_NBITS_ONE)
#if VW == 8
FL_NBITS_EXACT(4, 8, 1, 1)
FL_NBITS_EXACT(4, 4, 1, 1)
#define FL_NBITS_EACH(bits, zeros) {fl_nbits_exact_1_##bits##_##zeros, fl_nbits_exact_4_##bits##_##zeros}
#else
#define FL_NBITS_EACH(bits, zeros) {fl_nbits_exact_1_##bits##_##zeros, NULL}
#endif
#if VW == 16 /* where a table has the zero point taken away already */
FL_NBITS_EXACT(1, 4, 0, 4)
#endif
#if VW >= 8 /* floats of 8 bits */
FL_NBITS_EXACT(1, 8, 0, FL_NBITS_FLOAT8)
FL_NBITS_EXACT(2, 8, 0, FL_NBITS_FLOAT8)
#if VW == 16
FL_NBITS_EXACT(4, 8, 0, FL_NBITS_FLOAT8)
#endif
#endif

static void fl_f32_nbits_exact(const fl_nbits *p) {
#if VW >= 8
  if (p->bits == 8 && p->codes) {
    static const fl_nbits_fn two[2] = {fl_nbits_exact_1_8_0, fl_nbits_exact_2_8_0};
#if VW == 16
    static const fl_nbits_fn four[2] = {NULL, fl_nbits_exact_4_8_0};
    if (p->m > 2) {
      fl_nbits_walk(p, four, 4, 1, FL_NBITS_FLOAT8, FL_NBITS_FLOAT8);
      return;
    }
#endif
    fl_nbits_walk(p, two, 2, 2, FL_NBITS_FLOAT8, FL_NBITS_FLOAT8);
    return;
  }
#endif
#if VW == 16
  static const fl_nbits_fn plain[2] = {fl_nbits_exact_1_4_0, NULL};
  if (p->kind == FL_NBITS_HALF && p->bits == 4) {
    fl_nbits_walk(p, plain, 1, 1, 4, 4);
    return;
  }
#endif
  static const fl_nbits_fn tiles[3][2] = {{fl_nbits_exact_1_2_1, NULL}, FL_NBITS_EACH(4, 1), FL_NBITS_EACH(8, 1)}; /* of 2 bits few are made */
  fl_nbits_walk(p, tiles[p->bits / 4], 4, 2, FL_NBITS_ONE, 1); /* making floats takes longer than rows that hang over */
}

/* ---- integer ---------------------------------------------------------------------------------------------------------------- */

#define FL_DOT_TARGET
#define FL_NBITS_WAY pairs
#include "nbits_integer.h"
#undef FL_NBITS_WAY
#undef FL_DOT_TARGET
#include "nbits_dot.h"
#ifdef FL_NBITS_DOT
#define FL_NBITS_WAY dot
#include "nbits_integer.h"
#undef FL_NBITS_WAY
#undef FL_DOT_TARGET
#endif

static int fl_f32_nbits_three(const fl_nbits *p) {
#if defined(FL_NBITS_DOT) && VW == 16
  return p->bits > 2 && !p->codes && fl_nbits_has_dot();
#else
  (void)p;
  return 0;
#endif
}

static void fl_f32_nbits_integer(const fl_nbits *p) {
#ifdef FL_NBITS_DOT
  if (fl_nbits_has_dot()) {
    fl_nbits_integer_dot(p);
    return;
  }
#endif
  fl_nbits_integer_pairs(p);
}
