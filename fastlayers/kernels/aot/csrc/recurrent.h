/* One step of LSTM, GRU and simple RNN for any number of rows, and the product W x + b that all steps need beforehand.
 *
 * A sum is (blocks of R h, added in order) + xg. Units are walked in groups of blocks of 16: the sums of a group for all rows, then
 * its gates while the sums are near. Sums are [rows][units][gates][16], so the panels of R that belong to a group are next to each other.
 * One row has separate sums (fl_row_sums), bound by the cache that R comes from; more rows take the tiles of the product.
 * Whatever made the sums, the gates are the same code, so a row's bits depend on no other row.
 * Remainder: none, since padded units have zero weights; their lanes hold what nothing reads (K ends at `hidden`). */

#define FL_STEP_ROWS 64 /* rows whose sums are on the stack: 16 KB */

/* ---- sums ---------------------------------------------------------------------------------------------------------------- */

/* Most panels of one row walked together, and vectors of each: all sums stay in registers, and eight chains or nearly as many hide
 * the latency of a multiply-add. */
#if VW == 16
#define FL_ROW_MOST 8
#define FL_ROW_PART 1
#elif VW == 8 || VREGS == 16
#define FL_ROW_MOST 6
#define FL_ROW_PART 2
#else
#define FL_ROW_MOST 6
#define FL_ROW_PART 4
#endif

/* Where the terms from k0 on of panel `first` begin in weights of `all` panels. */
FL_INLINE const float *fl_panel_at(const float *b, int64_t all, int64_t first, int64_t k0, int64_t klen) {
  return b + (all * k0 + first * klen) * FL_PANEL;
}
FL_INLINE int64_t fl_klen(int64_t k, int64_t k0) { return k - k0 < FL_KC ? k - k0 : FL_KC; }

/* Sums of `panels` panels from `first` on, for one row x of k terms; each panel is its own stream. */
FL_INLINE void fl_row_sums(const int panels, const float *b, int64_t all, int64_t first, const float *x, int64_t k, float *sums) {
  for (int64_t lane = 0; lane < FL_PANEL; lane += FL_ROW_PART * VW) {
    int64_t k0 = 0;
    do {
      const int64_t klen = fl_klen(k, k0), stream = klen * FL_PANEL;
      const float *from = fl_panel_at(b, all, first, k0, klen) + lane;
      vf acc[FL_ROW_MOST][FL_ROW_PART];
      FL_UNROLL for (int q = 0; q < panels; q++)
        FL_UNROLL for (int v = 0; v < FL_ROW_PART; v++) acc[q][v] = vset(0);
      for (int64_t i = 0; i < klen; i++, from += FL_PANEL) {
        const vf s = vset(x[k0 + i]);
        FL_UNROLL for (int q = 0; q < panels; q++)
          FL_UNROLL for (int v = 0; v < FL_ROW_PART; v++) acc[q][v] = vfma(s, vload(from + q * stream + v * VW), acc[q][v]);
      }
      FL_UNROLL for (int q = 0; q < panels; q++)
        FL_UNROLL for (int v = 0; v < FL_ROW_PART; v++) {
          float *sum = sums + q * FL_PANEL + lane + v * VW;
          vstore(sum, k0 ? vload(sum) + acc[q][v] : acc[q][v]);
        }
      k0 += klen;
    } while (k0 < k);
  }
}

typedef void (*fl_row_fn)(const float *b, int64_t all, int64_t first, const float *x, int64_t k, float *sums);
#define FL_ROW(n)                                                                                                                   \
  static __attribute__((noinline)) void fl_row_##n(const float *b, int64_t all, int64_t first, const float *x, int64_t k, float *sums) { \
    fl_row_sums(n, b, all, first, x, k, sums);                                                                                       \
  }
FL_ROW(1)
FL_ROW(2)
FL_ROW(3)
FL_ROW(4)
FL_ROW(5)
FL_ROW(6)
#if FL_ROW_MOST == 8
FL_ROW(7)
FL_ROW(8)
#endif
static const fl_row_fn fl_rows[] = {
    0, fl_row_1, fl_row_2, fl_row_3, fl_row_4, fl_row_5, fl_row_6,
#if FL_ROW_MOST == 8
    fl_row_7, fl_row_8,
#endif
};

/* c = x b + bias for m rows and `count` panels from `first` on; `next` is the panel that the next call begins with. */
static void fl_rows_sums(const float *const *rows, int64_t m, const float *b, int64_t all, int64_t first, int64_t count, int64_t next,
                         int64_t k, const float *bias, float *c, int64_t ldc) {
  const fl_epilogue epilogue = {.bias = bias, .code = FL_IDENTITY};
  int64_t k0 = 0;
  do {
    const int64_t klen = fl_klen(k, k0), k1 = k0 + klen;
    const fl_run run = {k0, klen};
    const fl_block block = {
        .rows = rows, .m = m, .n = count * FL_PANEL, .runs = &run, .nruns = 1, .klen = klen,
        .b = fl_panel_at(b, all, first, k0, klen),
        .ahead = k1 < k ? fl_panel_at(b, all, first, k1, fl_klen(k, k1)) : next < 0 ? 0 : fl_panel_at(b, all, next, 0, fl_klen(k, 0)),
        .c = c, .ldc = ldc, .accumulate = k0 > 0, .epilogue = bias && k1 == k ? &epilogue : 0};
    fl_f32_block(&block);
    k0 = k1;
  } while (k0 < k);
}

/* The same with weights of 16 bits, for any number of rows. */
static void fl_half_rows_sums(const fl_halves *halves, int *tiles, int kind, const float *const *rows, int64_t m, const float *b, int64_t all,
                              int64_t first, int64_t count, int64_t k, const float *bias, float *c, int64_t ldc) {
  const fl_epilogue epilogue = {.bias = bias, .code = FL_IDENTITY};
  const fl_half_block block = {.kind = kind, .rows = rows, .m = m, .k = k, .b = (const uint16_t *)(const void *)b, .panels = all,
                               .first = first, .n = count * FL_PANEL, .c = c, .ldc = ldc, .epilogue = bias ? &epilogue : 0, .tiles = tiles};
  halves->block(&block);
}

#define FL_INPUT_ROWS 24   /* whose sums of 16 bits are on the stack: 24 KB */
#define FL_INPUT_PANELS 16 /* which are summed at once: x is rounded for each such group */

/* xg by weights of 16 bits where the blocks of a row are apart. */
static void fl_half_input(const fl_recurrent_input *p, int *tiles) {
  const int64_t width = p->gates * FL_PANEL, most = FL_INPUT_PANELS / p->gates;
  float sums[FL_INPUT_ROWS * FL_INPUT_PANELS * FL_PANEL];
  for (int64_t u = p->first; u < p->last; u += most) {
    const int64_t units = p->last - u < most ? p->last - u : most;
    for (int64_t i0 = 0; i0 < p->m; i0 += FL_INPUT_ROWS) {
      const int64_t m = p->m - i0 < FL_INPUT_ROWS ? p->m - i0 : FL_INPUT_ROWS;
      fl_half_rows_sums(p->halves, tiles, p->half, p->rows + i0, m, p->w, p->blocks * p->gates, u * p->gates, units * p->gates, p->inputs,
                        p->bias + u * width, sums, units * width);
      for (int64_t q = 0; q < units; q++)
        for (int64_t i = 0; i < m; i++)
          for (int64_t v = 0; v < width; v += VW)
            vstore(p->xg + (u + q) * p->xg_block + (i0 + i) * p->xg_row + v, vload(sums + (i * units + q) * width + v));
    }
  }
}

static void fl_f32_recurrent_input(const fl_recurrent_input *p) {
  const int64_t panels = p->blocks * p->gates;
  int tiles = 0;
  /* where the blocks of a row are next to each other, one product makes them all */
  const int64_t together = p->xg_block == p->gates * FL_PANEL ? p->last - p->first : 1;
  if (p->half && p->xg_block != p->gates * FL_PANEL) {
    fl_half_input(p, &tiles);
    p->halves->end(&tiles);
    return;
  }
  for (int64_t u = p->first; u < p->last; u += together) {
    const int64_t first = u * p->gates, count = together * p->gates, next = u + together < p->last ? first + count : -1;
    const float *bias = p->bias + first * FL_PANEL;
    float *xg = p->xg + u * p->xg_block;
    if (p->half)
      fl_half_rows_sums(p->halves, &tiles, p->half, p->rows, p->m, p->w, panels, first, count, p->inputs, bias, xg, p->xg_row);
    else
      fl_rows_sums(p->rows, p->m, p->w, panels, first, count, next, p->inputs, bias, xg, p->xg_row);
  }
  if (p->half)
    p->halves->end(&tiles);
}

/* ---- gates --------------------------------------------------------------------------------------------------------------- */

/* Rows `row` .. row + rows of the blocks `unit` .. unit + units, from their sums, which may be overwritten. */
typedef void (*fl_gates)(const fl_recurrent_step *p, int64_t row, int64_t rows, int64_t unit, int64_t units, float *sums);

/* Walks rows j and blocks u, and with them s, the block's sums. */
#define FL_EACH_BLOCK(gates, s)                                                                                                \
  float *s = sums;                                                                                                             \
  for (int64_t j = row; j < row + rows; j++)                                                                                   \
    for (int64_t u = unit; u < unit + units; u++, s += (gates) * FL_PANEL)

FL_INLINE const float *fl_xg(const fl_recurrent_step *p, int64_t j, int64_t u) { return p->xg + u * p->xg_block + j * p->xg_row; }
FL_INLINE int64_t fl_place(const fl_recurrent_step *p, int64_t j, int64_t u) { return j * p->cell->hp + u * FL_PANEL; }

/* sigmoid(x) = 1 / d, tanh(x) = n / d. As fractions, gates that meet in a product share one division; |n| <= 1, and the clamp keeps
 * a product of two d finite: sigmoid ends at 2^-124. Multiply-adds are spelled out, so that every place gets the same bits. */
FL_INLINE vf fl_sigmoid_d(vf x) {
  const fl_exp_parts e = vexp_parts(-vmin(vset(87.0f), vmax(vset(-86.0f), x)), 127, 0);
  const vf s = vexp_scale(e);
  return vfma(s, e.q, s) + 1.0f;
}
typedef struct {
  vf n, d;
} fl_fraction;
FL_INLINE fl_fraction fl_tanh(vf x) {
  const vf m = vexpm1_neg(-2.0f * vabs(x));
  return (fl_fraction){vsign(m, x), m + 2.0f};
}

/* c = sigmoid(f) c + sigmoid(i) tanh(g)      h = sigmoid(o) tanh(c)
 * In two turns: one chain from i to h is too long for a processor to have several under way. */
static void fl_lstm_gates(const fl_recurrent_step *p, int64_t row, int64_t rows, int64_t unit, int64_t units, float *sums) {
  {
    FL_EACH_BLOCK(4, s) {
      const float *x = fl_xg(p, j, u);
      float *c = p->c + fl_place(p, j, u);
      for (int v = 0; v < FL_PANEL; v += VW) {
        const vf in = fl_sigmoid_d(vload(s + v) + vload(x + v));
        const vf forget = fl_sigmoid_d(vload(s + FL_PANEL + v) + vload(x + FL_PANEL + v));
        const fl_fraction cell = fl_tanh(vload(s + 2 * FL_PANEL + v) + vload(x + 2 * FL_PANEL + v));
        vstore(c + v, vload(c + v) / forget + cell.n / (in * cell.d));
      }
    }
  }
  FL_EACH_BLOCK(4, s) {
    const float *x = fl_xg(p, j, u), *c = p->c + fl_place(p, j, u);
    float *h = p->h_next + fl_place(p, j, u);
    for (int v = 0; v < FL_PANEL; v += VW) {
      const vf out = fl_sigmoid_d(vload(s + 3 * FL_PANEL + v) + vload(x + 3 * FL_PANEL + v));
      const fl_fraction state = fl_tanh(vload(c + v));
      vstore(h + v, state.n / (out * state.d));
    }
  }
}

/* h = (1 - z) n + z h      r, z = sigmoid(..)      n = tanh(W_n x + b + r (R_n h + b_n))
 * With z = 1 / (1 + e) that is (e n + h) / (1 + e). In two turns, as above. */
static void fl_gru_gates(const fl_recurrent_step *p, int64_t row, int64_t rows, int64_t unit, int64_t units, float *sums) {
  {
    FL_EACH_BLOCK(3, s) {
      const float *x = fl_xg(p, j, u), *bias = p->cell->bias + u * FL_PANEL;
      float *n = s + 2 * FL_PANEL;
      for (int v = 0; v < FL_PANEL; v += VW) {
        const vf reset = fl_sigmoid_d(vload(s + v) + vload(x + v));
        vstore(n + v, (vload(n + v) + vload(bias + v)) / reset + vload(x + 2 * FL_PANEL + v));
      }
    }
  }
  FL_EACH_BLOCK(3, s) {
    const float *x = fl_xg(p, j, u) + FL_PANEL, *h = p->h + fl_place(p, j, u);
    float *to = p->h_next + fl_place(p, j, u);
    for (int v = 0; v < FL_PANEL; v += VW) {
      const vf keep = fl_sigmoid_d(vload(s + FL_PANEL + v) + vload(x + v)), e = keep - 1.0f;
      const fl_fraction n = fl_tanh(vload(s + 2 * FL_PANEL + v));
      vstore(to + v, vfma(e, n.n, vload(h + v) * n.d) / (keep * n.d));
    }
  }
}

/* The general forms, for any functions: the same operations through short buffers. */

/* n sums, clipped and sent through f, in place. */
static void fl_activate(const fl_cell *cell, const fl_function *f, float *t, int64_t n) {
  if (cell->clip > 0)
    fl_f32_unary(FL_CLIP, -cell->clip, cell->clip, t, t, n);
  fl_f32_unary(f->code, f->a, f->b, t, t, n);
}

FL_INLINE void fl_plus(const float *a, const float *b, float *to, int n) {
  for (int v = 0; v < n; v += VW)
    vstore(to + v, vload(a + v) + vload(b + v));
}

/* to += a b over one block */
FL_INLINE void fl_add_product(const float *a, const float *b, float *to) {
  for (int v = 0; v < FL_PANEL; v += VW)
    vstore(to + v, vfma(vload(a + v), vload(b + v), vload(to + v)));
}

static void fl_lstm_general(const fl_recurrent_step *p, int64_t row, int64_t rows, int64_t unit, int64_t units, float *sums) {
  const fl_cell *cell = p->cell;
  float t[4 * FL_PANEL], state[FL_PANEL], *in = t, *forget = t + FL_PANEL, *g = t + 2 * FL_PANEL, *out = t + 3 * FL_PANEL;
  FL_EACH_BLOCK(4, s) {
    const float *peephole = cell->peephole ? cell->peephole + u * FL_PANEL : 0;
    float *c = p->c + fl_place(p, j, u), *h = p->h_next + fl_place(p, j, u);
    fl_plus(s, fl_xg(p, j, u), t, 4 * FL_PANEL);
    if (peephole) {
      fl_add_product(peephole, c, in);
      fl_add_product(peephole + cell->hp, c, forget);
    }
    fl_activate(cell, &cell->gate, t, cell->coupled ? FL_PANEL : 2 * FL_PANEL);
    fl_activate(cell, &cell->cell, g, FL_PANEL);
    for (int v = 0; v < FL_PANEL; v += VW) {
      const vf keep = cell->coupled ? 1.0f - vload(in + v) : vload(forget + v);
      vstore(c + v, vfma(keep, vload(c + v), vload(in + v) * vload(g + v)));
    }
    if (peephole)
      fl_add_product(peephole + 2 * cell->hp, c, out);
    fl_activate(cell, &cell->gate, out, FL_PANEL);
    fl_f32_unary(cell->out.code, cell->out.a, cell->out.b, c, state, FL_PANEL);
    for (int v = 0; v < FL_PANEL; v += VW)
      vstore(h + v, vload(out + v) * vload(state + v));
  }
}

static void fl_gru_general(const fl_recurrent_step *p, int64_t row, int64_t rows, int64_t unit, int64_t units, float *sums) {
  const fl_cell *cell = p->cell;
  float t[3 * FL_PANEL], *reset = t, *keep = t + FL_PANEL, *n = t + 2 * FL_PANEL;
  FL_EACH_BLOCK(3, s) {
    const float *x = fl_xg(p, j, u), *h = p->h + fl_place(p, j, u);
    float *to = p->h_next + fl_place(p, j, u);
    fl_plus(s, x, t, 2 * FL_PANEL);
    fl_plus(s + 2 * FL_PANEL, cell->bias + u * FL_PANEL, n, FL_PANEL);
    fl_activate(cell, &cell->gate, t, 2 * FL_PANEL);
    for (int v = 0; v < FL_PANEL; v += VW)
      vstore(n + v, vfma(vload(reset + v), vload(n + v), vload(x + 2 * FL_PANEL + v)));
    fl_activate(cell, &cell->cell, n, FL_PANEL);
    for (int v = 0; v < FL_PANEL; v += VW)
      vstore(to + v, vfma(vload(keep + v), vload(h + v) - vload(n + v), vload(n + v)));
  }
}

/* Where all gates of a group have one function, one call does them. */

/* The reset gate before the product: z and r h into spare .. */
static void fl_early_gates(const fl_recurrent_step *p, int64_t row, int64_t rows, int64_t unit, int64_t units, float *sums) {
  {
    FL_EACH_BLOCK(2, s) fl_plus(s, fl_xg(p, j, u), s, 2 * FL_PANEL);
  }
  fl_activate(p->cell, &p->cell->gate, sums, rows * units * 2 * FL_PANEL);
  FL_EACH_BLOCK(2, s) {
    const float *h = p->h + fl_place(p, j, u);
    float *keep = p->spare + fl_place(p, j, u), *reset = keep + p->rows * p->cell->hp;
    for (int v = 0; v < FL_PANEL; v += VW) {
      vstore(reset + v, vload(s + v) * vload(h + v));
      vstore(keep + v, vload(s + FL_PANEL + v));
    }
  }
}

/* .. then n from the product of r h. */
static void fl_early_new(const fl_recurrent_step *p, int64_t row, int64_t rows, int64_t unit, int64_t units, float *sums) {
  {
    FL_EACH_BLOCK(1, s) fl_plus(s, fl_xg(p, j, u) + 2 * FL_PANEL, s, FL_PANEL);
  }
  fl_activate(p->cell, &p->cell->cell, sums, rows * units * FL_PANEL);
  FL_EACH_BLOCK(1, s) {
    const float *keep = p->spare + fl_place(p, j, u), *h = p->h + fl_place(p, j, u);
    float *to = p->h_next + fl_place(p, j, u);
    for (int v = 0; v < FL_PANEL; v += VW)
      vstore(to + v, vfma(vload(keep + v), vload(h + v) - vload(s + v), vload(s + v)));
  }
}

/* h is the sums. */
static void fl_store_sums(const fl_recurrent_step *p, int64_t row, int64_t rows, int64_t unit, int64_t units, float *sums) {
  for (int64_t j = row; j < row + rows; j++, sums += units * FL_PANEL)
    memcpy(p->h_next + j * p->cell->tp + unit * FL_PANEL, sums, (size_t)(units * FL_PANEL) * 4);
}

static void fl_rnn_gates(const fl_recurrent_step *p, int64_t row, int64_t rows, int64_t unit, int64_t units, float *sums) {
  {
    FL_EACH_BLOCK(1, s) fl_plus(s, fl_xg(p, j, u), s, FL_PANEL);
  }
  fl_activate(p->cell, &p->cell->cell, sums, rows * units * FL_PANEL);
  fl_store_sums(p, row, rows, unit, units, sums);
}

/* ---- the walk over the units --------------------------------------------------------------------------------------------- */

/* A product by weights of `blocks` times `gates` panels: rows of h have stride `stride` and k terms. */
typedef struct {
  const float *h;
  int64_t stride, k;
  const float *w;
  int64_t blocks, first, last; /* all that there are, and which of them are wanted */
  int gates;
} fl_product;

/* All units of one row, at most `most` blocks a group. */
static void fl_walk_row(const fl_recurrent_step *p, const fl_product *w, int most, fl_gates apply) {
  const int64_t blocks = w->last - w->first, gates = w->gates, groups = (blocks + most - 1) / most;
  float sums[FL_ROW_MOST * FL_PANEL];
  for (int64_t i = 0; i < groups; i++) {
    const int64_t g = p->backwards ? groups - 1 - i : i, begin = blocks * g / groups, units = blocks * (g + 1) / groups - begin;
    const int64_t unit = w->first + begin;
    if (p->cell->half)
      fl_half_rows_sums(p->halves, p->tiles, p->cell->half, &w->h, 1, w->w, w->blocks * gates, unit * gates, units * gates, w->k, 0, sums,
                        units * gates * FL_PANEL);
    else
      fl_rows[units * gates](w->w, w->blocks * gates, unit * gates, w->h, w->k, sums);
    apply(p, 0, 1, unit, units, sums);
  }
}

/* All units of any number of rows. A group has four panels, or three: what the tiles with many rows walk at once. With weights of 16 bits
 * it has as many as there is room for, since h is rounded for each group. */
static void fl_walk_rows(const fl_recurrent_step *p, const fl_product *w, fl_gates apply) {
  const int64_t parts = (p->rows + FL_STEP_ROWS - 1) / FL_STEP_ROWS, gates = w->gates, lines = gates * FL_PANEL;
  const int64_t panels = p->cell->half ? 4 * FL_STEP_ROWS / ((p->rows + parts - 1) / parts) : 4, most = panels / gates;
  const int64_t groups = (w->last - w->first + most - 1) / most;
  const float *rows[FL_STEP_ROWS];
  float sums[FL_STEP_ROWS * 4 * FL_PANEL];
  for (int64_t part = 0; part < parts; part++) {
    const int64_t row = p->rows * part / parts, count = p->rows * (part + 1) / parts - row;
    for (int64_t j = 0; j < count; j++)
      rows[j] = w->h + (row + j) * w->stride;
    for (int64_t i = 0; i < groups; i++) {
      const int turn = p->backwards ^ (part & 1);
      const int64_t g = turn ? groups - 1 - i : i, unit = w->first + g * most, units = w->last - unit < most ? w->last - unit : most;
      const int64_t next = i + 1 < groups ? (turn ? unit - most : unit + most) * gates : -1;
      for (int64_t j = row; j < row + count; j++) /* rows of xg are far apart: no hardware foresees them */
        for (int64_t u = unit; u < unit + units; u++)
          for (int64_t v = 0; v < lines; v += FL_PANEL)
            __builtin_prefetch(fl_xg(p, j, u) + v);
      if (p->cell->half)
        fl_half_rows_sums(p->halves, p->tiles, p->cell->half, rows, count, w->w, w->blocks * gates, unit * gates, units * gates, w->k, 0, sums,
                          units * lines);
      else
        fl_rows_sums(rows, count, w->w, w->blocks * gates, unit * gates, units * gates, next, w->k, 0, sums, units * lines);
      apply(p, row, count, unit, units, sums);
    }
  }
}

static void fl_walk_units(const fl_recurrent_step *p, fl_product w, int most, fl_gates apply) {
  if (p->rows == 1)
    fl_walk_row(p, &w, most, apply);
  else
    fl_walk_rows(p, &w, apply);
}

/* Four streams beat eight where R comes from the second-level cache: 5 % at 128 to 256 units. With projections the gates' h is not
 * yet the step's. */
static void fl_lstm_step(const fl_recurrent_step *p, fl_product r) {
  const fl_cell *cell = p->cell;
  fl_recurrent_step gates = *p;
  if (cell->project)
    gates.h_next = p->spare;
  fl_walk_units(&gates, r, cell->hp > 96 && !cell->half ? 1 : FL_ROW_MOST / 4, cell->standard ? fl_lstm_gates : fl_lstm_general);
  if (cell->project) {
    const int64_t blocks = cell->tp / FL_PANEL;
    const fl_product project = {p->spare, cell->hp, cell->hidden, cell->project, blocks, 0, blocks, 1};
    fl_walk_units(p, project, FL_ROW_MOST, fl_store_sums);
  }
}

static void fl_f32_recurrent_step(const fl_recurrent_step *p) {
  const fl_cell *cell = p->cell;
  const int64_t blocks = cell->hp / FL_PANEL;
  fl_product r = {p->h, cell->tp, cell->terms, cell->r, blocks, p->first, p->last, cell->gates};
  switch (cell->kind) {
  case FL_LSTM:
    fl_lstm_step(p, r);
    break;
  case FL_GRU:
    fl_walk_units(p, r, FL_ROW_MOST / 3, cell->standard ? fl_gru_gates : fl_gru_general);
    break;
  case FL_GRU_EARLY:
    r.gates = 2;
    fl_walk_units(p, r, FL_ROW_MOST / 2, fl_early_gates);
    fl_walk_units(p, (fl_product){p->spare + p->rows * cell->hp, cell->hp, cell->terms, cell->late, blocks, 0, blocks, 1},
                  FL_ROW_MOST, fl_early_new);
    break;
  default:
    fl_walk_units(p, r, FL_ROW_MOST, fl_rnn_gates);
  }
}

static void fl_f32_recurrent_gates(const fl_recurrent_step *p, float *sums) {
  (p->cell->standard ? fl_lstm_gates : fl_lstm_general)(p, 0, p->rows, 0, p->cell->hp / FL_PANEL, sums);
}
