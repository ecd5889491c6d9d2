/* Depthwise convolution of sixteen channels at a time: see fl_dw_block in kernels.h for the operands.
 *
 * The padded pixels are brought into scratch, sixteen channels next to each other: so every load is a whole cache line, a pixel that is
 * loaded serves all outputs of its row that read it, and the border is computed like the rest. Order of a sum: as in depthwise.h.
 * Remainders: rows go in groups of even width, at most 8 pixels; channels past `lanes` are computed and not to be used. */

#include "depthwise_mixed.h"

/* A row of the band where each channel has `many` results, which are lanes next to each other. */
static __attribute__((noinline)) void fl_dw_block_repeat(const fl_dw_block *p, const float *x, float *to) {
  for (int64_t j = 0; j < FL_PANEL; j += VW) {
    const int64_t from = (p->skip + j) / p->many, left = p->held - from;
    int32_t at[VW];
    vi lanes;
    for (int64_t i = 0; i < VW; i++)
      at[i] = (int32_t)((p->skip + j + i) / p->many - from);
    memcpy(&lanes, at, sizeof lanes);
    for (int64_t i = 0; i < p->w; i++) {
      float part[VW];
      const float *pixel = x + i * p->x_pixel + from;
      if (left < VW) {
        vstore(part, left > 0 ? vget_part(pixel, left, 0) : vset(0));
        pixel = part;
      }
      vstore(to + i * FL_PANEL + j, FL_MIX(pixel, lanes, 0));
    }
  }
}

static void fl_dw_block_in(const fl_dw_block *p) {
  for (int64_t y = 0; y < p->band_rows; y++) {
    float *to = p->band + y * p->band_row;
    if (y < p->top || y >= p->top + p->h) {
      memset(to, 0, (size_t)p->band_row * 4);
      continue;
    }
    const float *x = p->x + (y - p->top) * p->x_row;
    memset(to, 0, (size_t)p->left * FL_PANEL * 4);
    to += p->left * FL_PANEL;
    if (p->many > 1) {
      fl_dw_block_repeat(p, x, to);
      to += p->w * FL_PANEL;
    } else
      for (int64_t i = 0; i < p->w; i++, x += p->x_pixel, to += FL_PANEL)
        for (int64_t j = 0; j < FL_PANEL; j += VW) {
          const int64_t lanes = p->lanes - j;
          vstore(to + j, lanes >= VW ? vload(x + j) : lanes > 0 ? vget_part(x + j, lanes, 0) : vset(0));
        }
    memset(to, 0, (size_t)(p->band_row - (p->left + p->w) * FL_PANEL) * 4);
  }
}

/* P pixels from pixel o of row y on, a vector of channels from i on. kw = 0: any kernel, else its width, without dilation. */
FL_INLINE void fl_dw_block_some(const fl_dw_block *p, int64_t y, int64_t o, int64_t i, const int P, const int kw, const int s) {
  const int64_t apart = (kw ? s : p->step) * FL_PANEL;
  const float *x = p->band + y * p->down + o * apart + i, *w = p->weight + i;
  vf acc[8];
  FL_UNROLL for (int q = 0; q < P; q++) acc[q] = vset(0);
  for (int64_t r = 0; r < p->kh; r++, x += p->row_step) {
    if (kw) {
      vf k[8];
      FL_UNROLL for (int u = 0; u < kw; u++) k[u] = vload(w + u * FL_PANEL);
      FL_UNROLL for (int u = 0; u < (P - 1) * s + kw; u++) {
        const vf v = vload(x + u * FL_PANEL);
        FL_UNROLL for (int q = 0; q < P; q++)
          if (u - q * s >= 0 && u - q * s < kw)
            acc[q] = vfma(k[u - q * s], v, acc[q]);
      }
    } else {
      for (int64_t u = 0; u < p->kw; u++) {
        const vf k = vload(w + u * FL_PANEL);
        FL_UNROLL for (int q = 0; q < P; q++) acc[q] = vfma(k, vload(x + u * p->tap_step + q * apart), acc[q]);
      }
    }
    w += p->kw * FL_PANEL;
  }
  const vf bias = vload(p->bias + i);
  float *out = p->out + y * p->out_row + o * p->out_pixel + i;
  const float *residual = p->residual ? p->residual + y * p->residual_row + o * p->residual_pixel + i : 0;
  FL_UNROLL for (int q = 0; q < P; q++) acc[q] = fl_dw_end(acc[q], bias, residual ? residual + q * p->residual_pixel : 0, p->code);
  if (p->code == FL_CLIP)
    FL_UNROLL for (int q = 0; q < P; q++) acc[q] = vmin(vset(p->b), vmax(vset(p->a), acc[q]));
  FL_UNROLL for (int q = 0; q < P; q++) vstore(out + q * p->out_pixel, acc[q]);
}

#define FL_DW_WIDTH(P) \
  case P: fl_dw_block_some(p, y, o, i, P, kw, s); break;
FL_INLINE void fl_dw_block_rows(const fl_dw_block *p, const int kw, const int s) {
  const int64_t groups = (p->cols + 7) / 8;
  for (int64_t y = 0; y < p->rows; y++)
    for (int64_t g = 0, o = 0; g < groups; g++) {
      const int64_t width = p->cols / groups + (g < p->cols % groups);
      for (int64_t i = 0; i < FL_PANEL; i += VW)
        switch (width) {
          FL_DW_WIDTH(8)
          FL_DW_WIDTH(7)
          FL_DW_WIDTH(6)
          FL_DW_WIDTH(5)
          FL_DW_WIDTH(4)
          FL_DW_WIDTH(3)
          FL_DW_WIDTH(2)
          FL_DW_WIDTH(1)
        default: break;
        }
      o += width;
    }
}
#undef FL_DW_WIDTH

#define FL_DW_BLOCK(kw, s) \
  static __attribute__((noinline)) void fl_dw_block_##kw##_##s(const fl_dw_block *p) { \
    const fl_dw_block local = *p; \
    fl_dw_block_rows(&local, kw, s); \
  }
FL_DW_BLOCK(0, 0)
FL_DW_BLOCK(3, 1)
FL_DW_BLOCK(3, 2)
FL_DW_BLOCK(5, 1)
FL_DW_BLOCK(5, 2)
FL_DW_BLOCK(7, 1)
#undef FL_DW_BLOCK

static void fl_f32_depthwise_block(const fl_dw_block *p) {
  fl_dw_block_in(p);
  if (p->mix) {
    fl_mix(p);
    return;
  }
  const int64_t kw = p->tap_step == FL_PANEL ? p->kw : 0, s = p->step;
  if (kw == 3 && s <= 2)
    (s == 1 ? fl_dw_block_3_1 : fl_dw_block_3_2)(p);
  else if (kw == 5 && s <= 2)
    (s == 1 ? fl_dw_block_5_1 : fl_dw_block_5_2)(p);
  else if (kw == 7 && s == 1)
    fl_dw_block_7_1(p);
  else
    fl_dw_block_0_0(p);
}
