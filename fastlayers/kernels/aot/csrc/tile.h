/* One register tile of the packed matrix product. Included by gemm.h once for every size, with
 *   FL_TM  rows of the tile        FL_TP  panels of 16 columns that it walks at once
 * defined; makes fl_tile_<FL_TM>x<FL_TP> and undefines FL_TM.
 *
 * Computes  c[i, j] (+)= sum_k rows[i][k] b[k, j]  over one block of K, each element one chain of multiply-adds in the order of
 * k, so the result does not depend on the tile's size. Rows are read in place through one pointer each; the panels are
 * with stride `step`. With FL_TAPS defined they are not packed: term k of sixteen neighbouring columns is read at b + taps[k], where
 * they are in the caller's data, and there is one run. Columns are always whole panels here: gemm.h gives the last, partial one its own buffer. */
#define FL_TN (FL_TP * FL_PANEL / VW)
/* One term of every sum. */
#define FL_TERM(k, b)                                                                                                  \
  vf bv[FL_TN];                                                                                                        \
  FL_UNROLL for (int q = 0; q < FL_TP; q++)                                                                            \
    FL_UNROLL for (int j = 0; j < FL_PANEL / VW; j++) bv[q * (FL_PANEL / VW) + j] = vload((b) + q * step + j * VW);    \
  FL_UNROLL for (int i = 0; i < FL_TM; i++) {                                                                          \
    const vf s = vset(row[i][k]);                                                                                      \
    FL_UNROLL for (int j = 0; j < FL_TN; j++) acc[i][j] = vfma(s, bv[j], acc[i][j]);                                   \
    FL_IN_ORDER();                                                                                                     \
  }
#if defined(FL_TAPS) || VW < 8 /* the last activation that is done in registers: each takes code in every tile */
#define FL_LAST FL_RELU
#else
#define FL_LAST FL_CLIP
#endif
#ifdef FL_TAPS
#define FL_TILE_NAME FL_NAME4(fl_taps_, FL_TM, x, FL_TP)
#define FL_AT(k, u) (b + taps[(k) + (u)])
#else
#define FL_TILE_NAME FL_NAME4(fl_tile_, FL_TM, x, FL_TP)
#define FL_AT(k, u) (b + (u) * FL_PANEL)
#endif

static __attribute__((noinline)) void FL_TILE_NAME(const fl_block *p, const fl_tile *t) {
  vf acc[FL_TM][FL_TN];
  const float *row[FL_TM];
  FL_UNROLL for (int i = 0; i < FL_TM; i++) {
    row[i] = t->rows[i];
    FL_UNROLL for (int j = 0; j < FL_TN; j++) acc[i][j] = vset(0);
  }
  FL_UNROLL for (int i = 0; i < FL_TM; i++)
    FL_UNROLL for (int j = 0; j < FL_TP; j++) __builtin_prefetch(t->c + i * t->ldc + j * FL_PANEL, 1);
  const float *b = t->b;
#ifdef FL_TAPS
  const int64_t step = FL_PANEL, *taps = t->taps;
#else
  const float *ahead = t->ahead;
  const int64_t step = t->step, ahead_step = t->ahead_step;
#endif
  for (int64_t r = 0; r < p->nruns; r++) {
#ifndef FL_TAPS
    if (p->runs[r].length < 0) { /* terms that are left out */
      b -= p->runs[r].length * FL_PANEL;
      continue;
    }
#endif
    const int64_t end = p->runs[r].offset + p->runs[r].length;
    int64_t k = p->runs[r].offset;
    for (; k + FL_STEP <= end; k += FL_STEP) {
#ifndef FL_TAPS
      __builtin_prefetch(ahead, 0, 2);
      if (FL_TM > 3 && FL_TP > 1) /* all lines of its share; with one row 1.06 times as long, one panel 1.1 */
        for (int64_t at = FL_PANEL; at < FL_STEP * ahead_step; at += FL_PANEL)
          __builtin_prefetch(ahead + at, 0, 2);
      ahead += FL_STEP * ahead_step;
#endif
      FL_UNROLL for (int u = 0; u < FL_STEP; u++) {
        FL_TERM(k + u, FL_AT(k, u))
      }
#ifndef FL_TAPS
      b += FL_STEP * FL_PANEL;
#endif
    }
    for (; k < end; k++) {
      FL_TERM(k, FL_AT(k, 0))
#ifndef FL_TAPS
      b += FL_PANEL;
#endif
    }
  }
  float *c = t->c;
  if (p->accumulate)
    FL_UNROLL for (int i = 0; i < FL_TM; i++)
      FL_UNROLL for (int j = 0; j < FL_TN; j++) acc[i][j] = vload(c + i * t->ldc + j * VW) + acc[i][j];
  const fl_epilogue *e = p->epilogue;
  if (e) {
    if (t->bias && !e->bias_by_row)
      FL_UNROLL for (int j = 0; j < FL_TN; j++) {
        const vf v = vload(t->bias + j * VW);
        FL_UNROLL for (int i = 0; i < FL_TM; i++) acc[i][j] += v;
      }
    if (t->bias && e->bias_by_row)
      FL_UNROLL for (int i = 0; i < FL_TM; i++) {
        const vf v = vset(t->bias[i]);
        FL_UNROLL for (int j = 0; j < FL_TN; j++) acc[i][j] += v;
      }
    if (t->residual)
      FL_UNROLL for (int i = 0; i < FL_TM; i++)
        FL_UNROLL for (int j = 0; j < FL_TN; j++) acc[i][j] += vload(t->residual + i * t->ldr + j * VW);
    /* The bound comes first: vmax and vmin give the second operand where either is NaN, so NaN passes through. */
    if (e->code == FL_RELU)
      FL_UNROLL for (int i = 0; i < FL_TM; i++)
        FL_UNROLL for (int j = 0; j < FL_TN; j++) acc[i][j] = vmax(vset(0), acc[i][j]);
    if (FL_LAST == FL_CLIP && e->code == FL_CLIP) { /* behind the tile it is a store more: 16 -> 96 took 1.2 times as long */
      const vf low = vset(e->a), high = vset(e->b);
      FL_UNROLL for (int i = 0; i < FL_TM; i++)
        FL_UNROLL for (int j = 0; j < FL_TN; j++) acc[i][j] = vmin(high, vmax(low, acc[i][j]));
    }
  }
  FL_UNROLL for (int i = 0; i < FL_TM; i++)
    FL_UNROLL for (int j = 0; j < FL_TN; j++) vstore(c + i * t->ldc + j * VW, acc[i][j]);
  if (e && e->code > FL_LAST) /* while the tile is in the nearest cache */
    fl_tile_end(e, c, t->ldc, FL_TM, FL_TP * FL_PANEL);
}

#undef FL_TN
#undef FL_TERM
#undef FL_TILE_NAME
#undef FL_AT
#undef FL_LAST
#undef FL_TM
