/* Where products with weights of few bits (nbits_types.h) find blocks, scales and zero points, and where results go. Included by nbits.h and
 * amx_nbits.h, after half_parts.h and quantized_finish.h. */

#ifndef FL_NBITS_PARTS_H
#define FL_NBITS_PARTS_H

/* 16 zero points of a block, as floats */
FL_INLINE void fl_nbits_zeros_of(const fl_nbits *p, const void *zeros, int64_t block, vf *z) {
  FL_UNROLL for (int j = 0; j < FL_PANEL / VW; j++) {
    if (p->kind == FL_NBITS_BYTES)
      z[j] = vfloat(vwiden((const uint8_t *)zeros + block * FL_PANEL + j * VW));
    else if (p->kind == FL_NBITS_FLOATS)
      z[j] = vload((const float *)zeros + block * FL_PANEL + j * VW);
    else
      z[j] = vset((float)(1 << (p->bits - 1)));
  }
}

/* VW scales from lane j on, of the 16 that begin at `scales` */
FL_INLINE vf fl_nbits_scales(const fl_nbits *p, const uint8_t *scales, int j) {
  return p->narrow ? fl_half_wide((const uint16_t *)scales + j) : vload((const float *)scales + j);
}

/* Panels next to panel j that alternate with it, itself among them: as many for all panels of a tile. */
FL_INLINE int64_t fl_nbits_side(const fl_nbits *p, int64_t j) {
  const int64_t left = p->panels - j / FL_NBITS_SIDE * FL_NBITS_SIDE;
  return left < FL_NBITS_SIDE ? left : FL_NBITS_SIDE;
}

/* The first group of panel j (its next one is `side` * 64 bytes on, its next block `side` records), and the scales of its first block. */
FL_INLINE const uint8_t *fl_nbits_at(const fl_nbits *p, int64_t j) {
  return p->weights + j / FL_NBITS_SIDE * FL_NBITS_SIDE * p->blocks * p->record + j % FL_NBITS_SIDE * 64;
}
FL_INLINE const uint8_t *fl_nbits_scales_at(const fl_nbits *p, int64_t j, int64_t side) {
  const int64_t all = p->block * p->bits * 2;
  return p->weights + j / FL_NBITS_SIDE * FL_NBITS_SIDE * p->blocks * p->record + side * all + j % FL_NBITS_SIDE * (p->record - all);
}

/* Where the zero points of panel j are. */
FL_INLINE const void *fl_nbits_zeros_at(const fl_nbits *p, int64_t j) {
  return (const uint8_t *)p->zeros + j * p->blocks * FL_PANEL * (p->kind == FL_NBITS_FLOATS ? 4 : 1);
}

/* sums [16] of row i as results of panel j */
FL_INLINE void fl_nbits_finish(const fl_nbits *p, int64_t i, int64_t j, const vf *sums) {
  const int64_t left = p->n - j * FL_PANEL;
  float *out = p->out + i * p->ldc + j * FL_PANEL, part[FL_PANEL];
  float *to = left < FL_PANEL ? part : out;
  FL_UNROLL for (int t = 0; t < FL_PANEL / VW; t++)
    vstore(to + t * VW, p->bias ? sums[t] + vload(p->bias + j * FL_PANEL + t * VW) : sums[t]);
  if (left < FL_PANEL)
    memcpy(out, part, (size_t)left * 4);
}
#endif
