/* The product of bytes with weights of few bits. Included by nbits.h for each way to multiply: FL_NBITS_WAY, its name; with FL_NBITS_DOT
 * defined the processor adds products of quads of bytes to an int32 itself. All ways have the same bits. */
#define FL_NBITS_(a) FL_NAME4(fl_nbits_, FL_NBITS_WAY, _, a)
#ifdef FL_NBITS_DOT
#define FL_NBITS_PANELS (VW == 16 ? 4 : 2) /* of a tile of one row: chains enough for what the instruction takes */
#define FL_NBITS_WIDE (VW == 16 ? 4 : 1)   /* of four: totals are in the stack, but memory is read once, in its order */
#else
#define FL_NBITS_PANELS 1
#define FL_NBITS_WIDE 1
#endif

/* acc + w0 x0 + .. + w3 x3 in each lane; w: its four unsigned bytes, x: four signed ones, the same for all lanes */
FL_INLINE FL_DOT_TARGET vi FL_NBITS_(quads)(const int bits, vi acc, vi w, const int8_t *x) {
  const vi quad = vseti((int32_t)fl_quad_bits((const uint8_t *)x));
#ifdef FL_NBITS_SIGNED
  return FL_NBITS_DOT(acc, bits == 8 ? w ^ (int32_t)0x80808080 : w, quad);
#elif defined(FL_NBITS_DOT)
  (void)bits;
  return FL_NBITS_DOT(acc, w, quad);
#else
#if VW == 8
  if (bits < 8) /* two products are at most 2 * 15 * 127 */
    return acc + vmadd((vq)_mm256_maddubs_epi16((__m256i)w, (__m256i)quad), (vq)vseti(0x10001));
#endif
  (void)bits;
  typedef uint16_t vuq __attribute__((vector_size(VW * 4)));
  const vq even = (vq)quad << 8 >> 8, odd = (vq)quad >> 8;
  return acc + vmadd((vq)((vuq)w & 255), even) + vmadd((vq)((vuq)w >> 8), odd);
#endif
}

/* A tile of rows whose numbers have so many bytes: as many lines are multiplied, and a block's sums of a row's lines become one. */
FL_INLINE FL_DOT_TARGET void FL_NBITS_(tile)(const int digits, const int bits, const int zeros, const int rows, const int panels,
                                             const fl_nbits *p, int64_t i0, int64_t j0) {
  const int width = panels * (FL_PANEL / VW), terms = 32 / bits, lines = rows * digits;
  const int64_t side = fl_nbits_side(p, j0), line = side * 64, whole = p->block / terms * line, step = side * p->record;
  const int32_t mask = bits == 4 ? 0x0f0f0f0f : 0x03030303;
  const uint8_t *from[4], *scales[4];
  const void *origins[4];
  const int8_t *x[6];
  vf total[4][FL_NBITS_MOST];
  FL_UNROLL for (int t = 0; t < panels; t++) {
    from[t] = fl_nbits_at(p, fl_nbits_within(p, j0 + t));
    scales[t] = fl_nbits_scales_at(p, fl_nbits_within(p, j0 + t), side);
    origins[t] = fl_nbits_zeros_at(p, fl_nbits_within(p, j0 + t));
  }
  FL_UNROLL for (int r = 0; r < lines; r++) x[r] = p->q + (i0 * digits + r) * p->blocks * p->block;
  FL_UNROLL for (int r = 0; r < rows; r++)
    FL_UNROLL for (int v = 0; v < width; v++) total[r][v] = vset(0);
  for (int64_t block = 0, at = 0, k = 0; block < p->blocks; block++, at += step - whole) {
    vi acc[6][FL_NBITS_MOST];
    FL_UNROLL for (int r = 0; r < lines; r++) {
      const int64_t of = (i0 * digits + r) * p->blocks + block;
      int32_t start = zeros ? 0 : p->starts[of];
#ifdef FL_NBITS_SIGNED
      start += bits == 8 ? 128 * (int32_t)p->sums[of] : 0;
#endif
      FL_UNROLL for (int v = 0; v < width; v++) acc[r][v] = vseti(start);
    }
    for (const int64_t end = at + whole; at < end; at += line, k += terms)
      FL_UNROLL for (int v = 0; v < width; v++) {
        const int32_t *words = (const int32_t *)(from[v / (FL_PANEL / VW)] + at) + v % (FL_PANEL / VW) * VW;
        const vi word = fl_nbits_load(words);
        FL_UNROLL for (int s = 0; s < 8 / bits; s++) {
          const vi w = bits == 8 ? word : (vi)((vu)word >> (s * bits)) & mask;
          FL_UNROLL for (int r = 0; r < lines; r++) acc[r][v] = FL_NBITS_(quads)(bits, acc[r][v], w, x[r] + k + 4 * s);
        }
      }
    FL_UNROLL for (int t = 0; t < panels; t++) {
      vf z[FL_PANEL / VW];
      if (zeros)
        fl_nbits_zeros_of(p, origins[t], block, z);
      FL_UNROLL for (int q = 0; q < FL_PANEL / VW; q++) {
        const int v = t * (FL_PANEL / VW) + q;
        const vf s = fl_nbits_scales(p, scales[t] + block * step, q * VW);
        FL_UNROLL for (int r = 0; r < rows; r++) {
          vf f = vset(0);
          FL_UNROLL for (int d = 0; d < digits; d++) {
            vf g = vfloat(acc[r * digits + d][v]);
            if (zeros)
              g = vfma(-z[q], vset(p->sums[((i0 + r) * digits + d) * p->blocks + block]), g);
            f = d ? vfma(g, vset(d == 1 ? 0x100 : 0x10000), f) : g;
          }
          total[r][v] = vfma(f, s * vset(p->steps[(i0 + r) * p->blocks + block]), total[r][v]);
        }
      }
    }
  }
  vf done[4][FL_NBITS_MOST]; /* so that sums may be in registers */
  FL_UNROLL for (int r = 0; r < rows; r++)
    FL_UNROLL for (int v = 0; v < width; v++) done[r][v] = total[r][v];
  fl_nbits_done(p, i0, j0, rows, panels, done);
}

#define FL_NBITS_NAMED(name, digits, bits, zeros, rows, panels)                                                                   \
  static FL_DOT_TARGET __attribute__((noinline)) void FL_NBITS_(name)(const fl_nbits *p, int64_t i, int64_t j) {                  \
    FL_NBITS_(tile)(digits, bits, zeros, rows, panels, p, i, j);                                                                  \
  }
#define FL_NBITS_TILE(bits, zeros, rows, panels) FL_NBITS_NAMED(rows##_##bits##_##zeros, 1, bits, zeros, rows, panels)
FL_NBITS_TILE(2, 1, 1, FL_NBITS_PANELS)
FL_NBITS_TILE(4, 1, 1, FL_NBITS_PANELS)
FL_NBITS_TILE(8, 1, 1, FL_NBITS_PANELS)
#if defined(FL_NBITS_DOT) || VW == 8
#define FL_NBITS_OF(bits, zeros) {FL_NBITS_(1_##bits##_##zeros), FL_NBITS_(4_##bits##_##zeros)}
FL_NBITS_TILE(4, 1, 4, FL_NBITS_WIDE)
FL_NBITS_TILE(8, 1, 4, FL_NBITS_WIDE)
#else
#define FL_NBITS_OF(bits, zeros) {FL_NBITS_(1_##bits##_##zeros), NULL}
#endif
#if defined(FL_NBITS_DOT) && VW == 16 /* without zero points, sums begin with what these would take away: the same bits, for less work */
FL_NBITS_TILE(4, 0, 1, FL_NBITS_PANELS)
FL_NBITS_TILE(4, 0, 4, FL_NBITS_WIDE)
FL_NBITS_TILE(8, 0, 1, FL_NBITS_PANELS)
#define FL_NBITS_THREE(bits, zeros)                                      \
  FL_NBITS_NAMED(three_1_##bits##_##zeros, 3, bits, zeros, 1, 4) \
  FL_NBITS_NAMED(three_2_##bits##_##zeros, 3, bits, zeros, 2, 4)
FL_NBITS_THREE(4, 0)
FL_NBITS_THREE(4, 1)
FL_NBITS_THREE(8, 1)
#endif

static void FL_NAME4(fl_nbits_integer_, FL_NBITS_WAY, , )(const fl_nbits *p) {
#if defined(FL_NBITS_DOT) && VW == 16
  static const fl_nbits_fn plain[2][2] = {FL_NBITS_OF(4, 0), {FL_NBITS_(1_8_0), FL_NBITS_(4_8_1)}};
  static const fl_nbits_fn three[3][2] = {
      {FL_NBITS_(three_1_4_0), FL_NBITS_(three_2_4_0)}, {FL_NBITS_(three_1_4_1), FL_NBITS_(three_2_4_1)}, {FL_NBITS_(three_1_8_1), FL_NBITS_(three_2_8_1)}};
  if (p->digits > 1) {
    fl_nbits_walk(p, three[p->bits == 8 ? 2 : p->kind != FL_NBITS_HALF], 2, 2, 4, 4);
    return;
  }
  if (p->kind == FL_NBITS_HALF && p->bits >= 4) {
    fl_nbits_walk(p, plain[p->bits / 8], 4, 4, FL_NBITS_PANELS, FL_NBITS_WIDE);
    return;
  }
#endif
  static const fl_nbits_fn tiles[3][2] = {{FL_NBITS_(1_2_1), NULL}, FL_NBITS_OF(4, 1), FL_NBITS_OF(8, 1)};
  fl_nbits_walk(p, tiles[p->bits / 4], 4, 4, FL_NBITS_PANELS, FL_NBITS_WIDE);
}

#undef FL_NBITS_
#undef FL_NBITS_NAMED
#undef FL_NBITS_TILE
#undef FL_NBITS_OF
#undef FL_NBITS_PANELS
#undef FL_NBITS_WIDE
