/* Part of neon.c: a step of an LSTM, a GRU or an RNN next to its formula. */

/* One step of a cell of random weights, twice `blocks` of K at most, next to the formula. */
static void check_recurrent(int kind, int standard, int64_t rows, int64_t hidden) {
  static const char *names[] = {"lstm", "gru", "gru early", "rnn"};
  const int64_t inputs = 5, blocks = (hidden + FL_PANEL - 1) / FL_PANEL, hp = blocks * FL_PANEL;
  const int gates = kind == FL_LSTM ? 4 : kind == FL_RNN ? 1 : 3, early = kind == FL_GRU_EARLY;
  const int64_t all = blocks * gates;
  float *w = numbers(gates * hidden * inputs), *r = numbers(gates * hidden * hidden), *x = numbers(rows * inputs);
  float *packed_w = fresh(all * inputs * FL_PANEL), *packed_r = fresh(all * hidden * FL_PANEL), *bias = fresh(all * FL_PANEL);
  float *late_bias = numbers(hp), *xg = fresh(rows * all * FL_PANEL), *h = numbers(rows * hp), *c = numbers(rows * hp);
  float *next = fresh(rows * hp), *spare = fresh(2 * rows * hp), *before = fresh(rows * hp);
  memcpy(before, c, (size_t)(rows * hp) * 4);
  for (int64_t i = 0; i < gates * hidden * hidden; i++)
    r[i] /= 8; /* sums of a few hundred terms stay near 1 */
  for (int64_t u = 0; u < blocks; u++)
    for (int g = 0; g < gates; g++)
      for (int64_t j = 0; j < FL_PANEL; j++) {
        const int64_t unit = u * FL_PANEL + j, panel = u * gates + g, in = unit < hidden;
        /* the early GRU has the panels of n after all those of r and z */
        const int64_t at = !early ? panel : g < 2 ? u * 2 + g : u, count = !early ? all : g < 2 ? 2 * blocks : blocks;
        float *to = packed_r + (early && g == 2 ? 2 * blocks * hidden * FL_PANEL : 0);
        bias[panel * FL_PANEL + j] = in ? 0.1f * (float)g : 0;
        for (int64_t k = 0; k < inputs; k++)
          packed_w[(panel * inputs + k) * FL_PANEL + j] = in ? w[(g * hidden + unit) * inputs + k] : 0;
        for (int64_t k = 0; k < hidden; k++) {
          const int64_t k0 = k / FL_KC * FL_KC, klen = hidden - k0 < FL_KC ? hidden - k0 : FL_KC;
          to[(count * k0 + at * klen + k - k0) * FL_PANEL + j] = in ? r[(g * hidden + unit) * hidden + k] : 0;
        }
      }
  const float **pointers = malloc((size_t)rows * sizeof *pointers);
  for (int64_t i = 0; i < rows; i++)
    pointers[i] = x + i * inputs;
  const fl_recurrent_input input = {.rows = pointers, .m = rows, .inputs = inputs, .gates = gates, .blocks = blocks, .last = blocks, .w = packed_w,
                                    .bias = bias, .xg = xg, .xg_block = rows * gates * FL_PANEL, .xg_row = gates * FL_PANEL};
  table.recurrent_input(&input);
  fl_cell cell = {.kind = kind, .gates = gates, .standard = standard, .hidden = hidden, .hp = hp, .terms = hidden, .tp = hp, .r = packed_r,
                        .late = packed_r + 2 * blocks * hidden * FL_PANEL, .bias = late_bias, .gate = {FL_SIGMOID, 0, 0},
                        .cell = {FL_TANH, 0, 0}, .out = {FL_TANH, 0, 0}};
  fl_recurrent_step step = {.cell = &cell, .rows = rows, .xg = xg, .xg_block = input.xg_block, .xg_row = input.xg_row,
                                  .h = h, .h_next = next, .c = c, .spare = spare, .backwards = (int)(rows & 1),
                            .first = 0, .last = blocks};
  if (early || rows % 2) {
    table.recurrent_step(&step);
  } else { /* in two parts */
    step.last = blocks / 2;
    table.recurrent_step(&step);
    step.first = step.last, step.last = blocks;
    table.recurrent_step(&step);
    step.first = 0;
  }
  double *z = malloc((size_t)(2 * hidden + 1) * sizeof *z), *rh = z + hidden;
  for (int64_t i = 0; i < rows; i++)
    for (int turn = early ? 0 : 1; turn < 2; turn++) /* the early GRU needs all of r before n */
      for (int64_t u = 0; u < hidden; u++) {
        double a[4], b[4];
        for (int g = 0; g < gates; g++) {
          a[g] = 0.1f * (float)g, b[g] = 0;
          for (int64_t k = 0; k < inputs; k++)
            a[g] += (double)x[i * inputs + k] * w[(g * hidden + u) * inputs + k];
          for (int64_t k = 0; k < hidden; k++)
            b[g] += (early && g == 2 ? turn ? rh[k] : 0 : (double)h[i * hp + k]) * r[(g * hidden + u) * hidden + k];
        }
        const double old = h[i * hp + u];
        double want;
        if (!turn) {
          rh[u] = sigmoid(a[0] + b[0]) * old, z[u] = sigmoid(a[1] + b[1]);
          continue;
        }
        if (kind == FL_LSTM) {
          const double state = sigmoid(a[1] + b[1]) * before[i * hp + u] + sigmoid(a[0] + b[0]) * tanh(a[2] + b[2]);
          check("lstm c", c[i * hp + u], state, 4e-6, u);
          want = sigmoid(a[3] + b[3]) * tanh(state);
        } else if (kind == FL_RNN) {
          want = tanh(a[0] + b[0]);
        } else {
          const double n = tanh(a[2] + (early ? b[2] : sigmoid(a[0] + b[0]) * (b[2] + late_bias[u])));
          const double keep = early ? z[u] : sigmoid(a[1] + b[1]);
          want = (1 - keep) * n + keep * old;
        }
        check(names[kind], next[i * hp + u], want, 4e-6, u);
      }
  if (kind == FL_LSTM) { /* the same step with projections: as many values as units, so that R stays */
    float *p = numbers(hidden * hidden), *packed_p = fresh(blocks * hidden * FL_PANEL), *projected = fresh(rows * hp);
    for (int64_t u = 0; u < blocks * FL_PANEL; u++)
      for (int64_t k = 0; k < hidden; k++) {
        const int64_t k0 = k / FL_KC * FL_KC, klen = hidden - k0 < FL_KC ? hidden - k0 : FL_KC, panel = u / FL_PANEL;
        packed_p[(blocks * k0 + panel * klen + k - k0) * FL_PANEL + u % FL_PANEL] = u < hidden ? p[u * hidden + k] / 8 : 0;
      }
    memcpy(c, before, (size_t)(rows * hp) * 4);
    cell.project = packed_p, step.h_next = projected;
    table.recurrent_step(&step);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t u = 0; u < hidden; u++) {
        double sum = 0;
        for (int64_t k = 0; k < hidden; k++)
          sum += (double)next[i * hp + k] * (p[u * hidden + k] / 8);
        check("lstm projected", projected[i * hp + u], sum, 4e-6, u);
      }
    free(p), free(packed_p), free(projected);
  }
  free(w), free(r), free(x), free(packed_w), free(packed_r), free(bias), free(late_bias), free(xg), free(h), free(c), free(next);
  free(spare), free(before), free(pointers), free(z);
}

static double binary(int op, double a, double b) {
  switch (op) {
  case FL_ADD: return a + b;
  case FL_SUBTRACT: return a - b;
  case FL_MULTIPLY: return a * b;
  case FL_DIVIDE: return a / b;
  case FL_POWER: return pow(a, b);
  case FL_MINIMUM: return isnan(a) || isnan(b) ? NAN : fmin(a, b);
  case FL_MAXIMUM: return isnan(a) || isnan(b) ? NAN : fmax(a, b);
  case FL_PRELU: return a >= 0 ? a : a * b;
  default: return (a - b) * (a - b);
  }
}
