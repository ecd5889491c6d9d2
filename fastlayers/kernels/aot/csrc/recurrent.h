/* The recurrent step of an LSTM: sums of R h for one row, and the gates for any number of rows.
 *
 * Computes, per unit, with sums i f g o = (blocks of R h, added in order) + xg:
 *   c = sigmoid(f) c + sigmoid(i) tanh(g)      h = sigmoid(o) tanh(c)
 * Layout: units in blocks of 16, padded to hp; a row of sums, of xg and of R's columns is [hp/16][i f g o][16], so the four
 * panels of the packed product that belong to a block of units lie side by side. R is packed with its own K = hidden.
 * Assumes: h_next is not h. Remainder: none, since padded units have zero weights; their lanes hold something finite that
 * nobody reads (K ends at `hidden`).
 *
 * The step is bound by the cache that R comes from. It keeps all sums of FL_UNITS blocks (or of a part of one) in registers,
 * eight chains or more, enough to hide the latency of a multiply-add, and reads each panel as a stream of its own. */

/* Blocks of units walked together, and vectors of each of their panels: 4 * FL_UNITS * FL_PART sums, in registers. */
#if VW == 16
#define FL_UNITS 2
#define FL_PART 1
#elif VW == 8 || VREGS == 16
#define FL_UNITS 1
#define FL_PART 2
#else
#define FL_UNITS 1
#define FL_PART 4
#endif
#define FL_GATES (4 * FL_PANEL) /* floats of one block of units in a row of sums */

/* One piece of code for every way to the sums: whatever made them, the gates' bits are the same. */
static __attribute__((noinline)) void fl_f32_lstm_gates(const float *g, float *c, float *h, int64_t rows, int64_t hp) {
  const int64_t blocks = rows * (hp / FL_PANEL);
  for (int64_t u = 0; u < blocks; u++, g += FL_GATES, c += FL_PANEL, h += FL_PANEL)
    for (int64_t j = 0; j < FL_PANEL; j += VW) {
      const vf in = vsigmoid(vload(g + j)), forget = vsigmoid(vload(g + FL_PANEL + j));
      const vf cell = vtanh(vload(g + 2 * FL_PANEL + j)), out = vsigmoid(vload(g + 3 * FL_PANEL + j));
      const vf next = vfma(forget, vload(c + j), in * cell);
      vstore(c + j, next);
      vstore(h + j, out * vtanh(next));
    }
}

/* Sums of `units` blocks of units from block `unit` on, lanes `lane` .. lane + FL_PART * VW of each panel, into sums. */
FL_INLINE void fl_lstm_sums(const fl_lstm_step *p, int64_t unit, int64_t lane, const int units, float *sums) {
  const int64_t row = p->hp * 4;
  const float *xg = p->xg + unit * FL_GATES;
  int64_t k0 = 0;
  do {
    const int64_t klen = p->hidden - k0 < FL_KC ? p->hidden - k0 : FL_KC, stream = klen * FL_PANEL;
    const float *b = p->r + k0 * row + unit * 4 * stream + lane, *h = p->h + k0;
    vf acc[4 * FL_UNITS][FL_PART];
    FL_UNROLL for (int q = 0; q < 4 * units; q++)
      FL_UNROLL for (int v = 0; v < FL_PART; v++) acc[q][v] = vset(0);
    for (int64_t k = 0; k < klen; k++, b += FL_PANEL) {
      const vf s = vset(h[k]);
      FL_UNROLL for (int q = 0; q < 4 * units; q++)
        FL_UNROLL for (int v = 0; v < FL_PART; v++) acc[q][v] = vfma(s, vload(b + q * stream + v * VW), acc[q][v]);
    }
    const int last = k0 + klen == p->hidden;
    FL_UNROLL for (int q = 0; q < 4 * units; q++)
      FL_UNROLL for (int v = 0; v < FL_PART; v++) {
        float *sum = sums + q * FL_PANEL + lane + v * VW;
        vf total = k0 ? vload(sum) + acc[q][v] : acc[q][v];
        vstore(sum, last ? total + vload(xg + q * FL_PANEL + lane + v * VW) : total);
      }
    k0 += klen;
  } while (k0 < p->hidden);
}

FL_INLINE void fl_lstm_units(const fl_lstm_step *p, int64_t unit, const int units) {
  float sums[FL_UNITS * FL_GATES];
  for (int64_t lane = 0; lane < FL_PANEL; lane += FL_PART * VW)
    fl_lstm_sums(p, unit, lane, units, sums);
  fl_f32_lstm_gates(sums, p->c + unit * FL_PANEL, p->h_next + unit * FL_PANEL, 1, units * FL_PANEL);
}

static void fl_f32_lstm_step(const fl_lstm_step *p) {
  const int64_t blocks = p->hp / FL_PANEL, groups = blocks / FL_UNITS, rest = blocks % FL_UNITS;
  if (rest && p->backwards)
    fl_lstm_units(p, groups * FL_UNITS, 1);
  for (int64_t i = 0; i < groups; i++)
    fl_lstm_units(p, (p->backwards ? groups - 1 - i : i) * FL_UNITS, FL_UNITS);
  if (rest && !p->backwards)
    fl_lstm_units(p, groups * FL_UNITS, 1);
}
