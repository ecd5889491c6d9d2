/* Checks the functions of one level's table against plain loops, without Python: for levels whose machine is only emulated.
 *
 *   gcc -DFL_NO_MODULE -DSOURCE='"_neon.c"' -Ifastlayers/kernels/aot/csrc tests/neon.c -lm        see tests/neon.sh
 *
 * Every operand is in a malloc of its own size, so that a memory checker can look on. The bounds here are wide (the Python tests
 * hold the ulp); what they catch is a wrong intrinsic, lane order or remainder. */
#include SOURCE
#pragma GCC optimize("O1") /* the loops below are to be plain */
#include "bytes.h"

static void check_transpose(int64_t rows, int64_t cols) {
  float *x = numbers(rows * cols), *y = fresh(rows * cols);
  table.transpose(x, cols, y, rows, rows, cols);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++)
      check("transpose", y[j * rows + i], x[i * cols + j], 0, i * cols + j);
  free(x), free(y);
}

/* One block of the product: k in two runs with a gap, bias, residual, ReLU; accumulate adds to what c holds. */
static void check_block(const fl_kernels *level, int64_t m, int64_t n, int64_t k, int accumulate) {
  const int64_t gap = 3, lda = k + gap, panels = (n + FL_PANEL - 1) / FL_PANEL, half = k / 2;
  float *x = numbers(m * lda), *w = numbers(n * k), *b = fresh(panels * k * FL_PANEL), *bias = fresh(panels * FL_PANEL);
  float *residual = numbers(m * n), *c = numbers(m * n), *before = fresh(m * n), *plain = numbers(n);
  memset(bias, 0, (size_t)(panels * FL_PANEL) * 4);
  memcpy(bias, plain, (size_t)n * 4);
  memcpy(before, c, (size_t)(m * n) * 4);
  for (int64_t p = 0; p < panels; p++)
    for (int64_t i = 0; i < k; i++)
      for (int64_t j = 0; j < FL_PANEL; j++)
        b[(p * k + i) * FL_PANEL + j] = p * FL_PANEL + j < n ? w[(p * FL_PANEL + j) * k + i] : 0;
  const float **rows = malloc((size_t)(m > 0 ? m : 1) * sizeof *rows);
  for (int64_t i = 0; i < m; i++)
    rows[i] = x + i * lda;
  const fl_run runs[] = {{0, half}, {half + gap, k - half}};
  const fl_epilogue epilogue = {.bias = bias, .residual = residual, .ldr = n, .code = FL_RELU};
  const fl_block block = {.rows = rows, .m = m, .n = n, .runs = runs, .nruns = 2, .klen = k, .b = b, .c = c, .ldc = n,
                          .accumulate = accumulate, .epilogue = &epilogue};
  level->block(&block);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = accumulate ? before[i * n + j] : 0;
      for (int64_t q = 0; q < k; q++)
        sum += (double)x[i * lda + (q < half ? q : q + gap)] * w[j * k + q];
      check("block", c[i * n + j], fmax(0, sum + plain[j] + residual[i * n + j]), 2e-5, i * n + j);
    }
  /* And with columns that are not packed, in one run, read in any order. */
  const int64_t width = panels * FL_PANEL + 1;
  float *plane = fresh(k * width + FL_PANEL), *again = fresh(m * n);
  int64_t *taps = malloc((size_t)(k > 0 ? k : 1) * sizeof *taps);
  for (int64_t i = 0; i < k; i++)
    for (int64_t j = 0; j < width; j++)
      plane[i * width + j] = j < n ? w[j * k + (k - 1 - i)] : 0;
  for (int64_t i = 0; i < k; i++)
    taps[i] = (k - 1 - i) * width;
  const fl_run whole = {0, k};
  fl_block other = block;
  other.runs = &whole, other.nruns = 1, other.b = plane, other.c = again, other.accumulate = 0, other.epilogue = NULL;
  level->block_at(&other, taps);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t q = 0; q < k; q++)
        sum += (double)x[i * lda + q] * w[j * k + q];
      check("block_at", again[i * n + j], sum, 2e-5, i * n + j);
    }
  free(plane), free(again), free(taps);
  free(x), free(w), free(b), free(bias), free(residual), free(c), free(before), free(plain), free(rows);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double unary(int code, double a, double b, double x) {
  switch (code) {
  case FL_RELU: return fmax(0, x);
  case FL_CLIP: return fmin(fmax(x, a), b);
  case FL_LEAKY_RELU: return x >= 0 ? x : a * x;
  case FL_ELU: return x > 0 ? x : a * expm1(x);
  case FL_SELU: return b * (x > 0 ? x : a * expm1(x));
  case FL_SIGMOID: return sigmoid(x);
  case FL_TANH: return tanh(x);
  case FL_GELU: return 0.5 * x * (1 + erf(x * sqrt(0.5)));
  case FL_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  case FL_SILU: return x * sigmoid(x);
  case FL_HARDSIGMOID: return fmin(fmax(a * x + b, 0), 1);
  case FL_HARDSWISH: return x * fmin(fmax(x / 6 + 0.5, 0), 1);
  case FL_SOFTPLUS: return a * x > b ? x : log1p(exp(a * x)) / a;
  case FL_SOFTSIGN: return x / (1 + fabs(x));
  case FL_MISH: return x * tanh(log1p(exp(x)));
  case FL_EXP: return exp(x);
  case FL_LOG: return log(x);
  case FL_ERF: return erf(x);
  case FL_SQRT: return sqrt(x);
  case FL_SQUARE: return x * x;
  case FL_NEGATIVE: return -x;
  case FL_ABS: return fabs(x);
  case FL_RECIPROCAL: return 1 / x;
  case FL_FLOOR: return floor(x);
  case FL_CEIL: return ceil(x);
  case FL_ROUND: return rint(x);
  case FL_SIGN: return (x > 0) - (x < 0);
  case FL_SIN: return sin(x);
  case FL_COS: return cos(x);
  case FL_CELU: return x > 0 ? x : a * expm1(x / a);
  case FL_SHRINK: return x < -a ? x + b : x > a ? x - b : 0;
  case FL_THRESHOLD: return x > a ? x : b;
  case FL_TANHSHRINK: return x - tanh(x);
  case FL_LOGSIGMOID: return -log1p(exp(-x));
  case FL_QUICK_GELU: return x * sigmoid(a * x);
  default: return x;
  }
}

/* Parameters (a, b) as functions that have some expect them. */
static void parameters(int code, float *a, float *b) {
  *a = *b = 0;
  if (code == FL_CLIP)
    *a = -0.5f, *b = 6;
  else if (code == FL_LEAKY_RELU || code == FL_ELU)
    *a = 0.25f;
  else if (code == FL_SELU)
    *a = 1.6732632f, *b = 1.0507010f;
  else if (code == FL_HARDSIGMOID)
    *a = 1.0f / 6, *b = 0.5f;
  else if (code == FL_SOFTPLUS)
    *a = 1, *b = 20;
}

static void check_unary(int code, int64_t n) {
  char what[32];
  snprintf(what, sizeof what, "unary %d", code);
  float a, b, *x = numbers(n), *y = fresh(n);
  parameters(code, &a, &b);
  for (int64_t i = 0; i < n; i++)
    x[i] *= 12;
  if (n > 4)
    x[0] = NAN, x[1] = 0, x[2] = INFINITY, x[3] = -0.0f;
  table.unary(code, a, b, x, y, n);
  for (int64_t i = 0; i < n; i++)
    /* C's fmax drops NaN, ours keeps it; x times a limit that is 0 at infinity is NaN in the formula and in no activation's limit */
    check(what, y[i], isnan(x[i]) ? NAN : unary(code, a, b, x[i]), 4e-6, i);
  free(x), free(y);
}

static void check_rows(int64_t rows, int64_t n, int logarithm) {
  float *x = numbers(rows * n), *y = fresh(rows * n), *z = fresh(rows * n), *t = fresh(rows * n);
  for (int64_t i = 0; i < rows * n; i++)
    x[i] *= 20;
  table.softmax_rows(x, y, rows, n, logarithm);
  for (int64_t i = 0; i < rows; i++) {
    double sum = 0, top = -INFINITY;
    for (int64_t j = 0; j < n; j++)
      top = fmax(top, x[i * n + j]);
    for (int64_t j = 0; j < n; j++)
      sum += exp(x[i * n + j] - top);
    for (int64_t j = 0; j < n; j++) {
      const double d = x[i * n + j] - top;
      check("softmax_rows", y[i * n + j], logarithm ? d - log(sum) : exp(d) / sum, 4e-6, i * n + j);
    }
  }
  table.transpose(x, n, t, rows, rows, n); /* the same values down the columns */
  table.softmax_inner(t, z, n, rows, rows, logarithm);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < n; j++)
      check("softmax_inner", z[j * rows + i], y[i * n + j], 4e-6, i * n + j);
  free(x), free(y), free(z), free(t);
}

static void check_gated(int64_t n) {
  float *a = numbers(n), *g = numbers(n), *y = fresh(n), *s = numbers(n);
  table.gated(FL_SIGMOID, a, g, y, n);
  for (int64_t i = 0; i < n; i++)
    check("gated", y[i], a[i] * sigmoid(g[i]), 4e-6, i);
  table.prelu(a, s, 1, y, n);
  for (int64_t i = 0; i < n; i++)
    check("prelu each", y[i], a[i] >= 0 ? a[i] : (double)s[i] * a[i], 1e-7, i);
  if (n)
    table.prelu(a, s, 0, y, n);
  for (int64_t i = 0; i < n; i++)
    check("prelu", y[i], a[i] >= 0 ? a[i] : (double)s[0] * a[i], 1e-7, i);
  free(a), free(g), free(y), free(s);
}

#include "neon_winograd.h"
#include "neon_recurrent.h"
#include "neon_nbits.h"

static int compare(int op, float a, float b) {
  switch (op) {
  case FL_EQUAL: return a == b;
  case FL_NOT_EQUAL: return a != b;
  case FL_LESS: return a < b;
  case FL_LESS_EQUAL: return a <= b;
  case FL_GREATER: return a > b;
  default: return a >= b;
  }
}

/* Three rows; the columns of every operand are numbers of its own or one number for all. */
static void check_broadcast(int64_t n, int cc, int ac, int bc) {
  const int64_t an = ac ? 3 * n : 3, bn = bc ? 3 * n : 3, cn = cc ? 3 * n : 3;
  float *a = numbers(an), *b = numbers(bn), *y = fresh(3 * n);
  uint8_t *c = malloc((size_t)cn + 1), *z = malloc((size_t)(3 * n) + 1);
  for (int64_t i = 0; i < cn; i++)
    c[i] = i * 7 % 3 == 1;
  if (n > 4 && ac && bc)
    a[1] = NAN, b[2] = NAN, a[3] = b[3], a[4] = -2, b[4] = 3;
  const fl_broadcast p = {.condition = c, .a = a, .b = b, .rows = 3, .cols = n, .condition_row = cn / 3, .a_row = an / 3, .b_row = bn / 3,
                          .condition_col = cc, .a_col = ac, .b_col = bc};
  fl_broadcast to_floats = p, to_bytes = p;
  to_floats.out = y, to_bytes.out = z;
  for (int op = FL_ADD; op < FL_BINARY_COUNT; op++) {
    table.binary(op, -INFINITY, 2, &to_floats);
    for (int64_t i = 0; i < 3 * n; i++) {
      const double want = binary(op, a[ac ? i : i / n], b[bc ? i : i / n]);
      check("binary", y[i], want > 2 ? 2 : want, 1e-6, i);
    }
  }
  for (int op = FL_EQUAL; op < FL_COMPARE_COUNT; op++) {
    table.compare(op, &to_bytes);
    for (int64_t i = 0; i < 3 * n; i++)
      check("compare", z[i], compare(op, a[ac ? i : i / n], b[bc ? i : i / n]), 0, i);
  }
  table.where(&to_floats);
  for (int64_t i = 0; i < 3 * n; i++)
    check("where", y[i], c[cc ? i : i / n] ? a[ac ? i : i / n] : b[bc ? i : i / n], 0, i);
  free(a), free(b), free(c), free(y), free(z);
}

/* Items of every size: transposed, picked with a step, repeated, reversed; and rows by number. */
static void check_move(int size, int64_t rows, int64_t cols) {
  const int64_t step[] = {1, rows, 2 * cols + 1, 2, cols, 1, 1, 0, cols, -1}; /* of x: from row to row, from column to column */
  const int64_t n = rows * cols, most = (2 * cols + 1) * rows + 2 * cols;
  char *x = malloc((size_t)(most * size) + 1), *y = malloc((size_t)(n * size) + 1);
  for (int64_t i = 0; i < most * size; i++)
    x[i] = (char)(i * 31 % 127);
  for (int k = 0; k < 5; k++) {
    const int64_t first = step[2 * k + 1] < 0 ? cols - 1 : 0;
    const fl_move p = {.x = x + first * size, .out = y, .size = size, .rows = rows, .cols = cols, .x_row = step[2 * k],
                       .x_col = step[2 * k + 1], .out_row = cols, .out_col = 1};
    table.move(&p);
    for (int64_t i = 0; i < n; i++)
      check("move", memcmp(y + i * size, x + (first + i / cols * p.x_row + i % cols * p.x_col) * size, (size_t)size), 0, 0, i);
  }
  int64_t *indices = malloc((size_t)(rows + 1) * 8);
  for (int64_t i = 0; i < rows; i++)
    indices[i] = i % 2 ? -1 - i : rows - 1 - i;
  check("within", table.within(indices, rows, rows), 1, 0, 0);
  table.take(x, rows, indices, rows, cols * size, y);
  for (int64_t i = 0; i < n; i++)
    check("take", memcmp(y + i * size, x + ((rows - 1 - i / cols) * cols + i % cols) * size, (size_t)size), 0, 0, i);
  free(x), free(y), free(indices);
}

/* Whole values that every kind holds, there and back; fractions as float16 (pi is 3.140625 there). */
static void check_cast(int source, int target, int64_t n) {
  static const int bytes[] = {4, 8, 2, 1, 1, 2, 2, 4, 8, 1, 4, 8};
  float *x = fresh(n), *y = fresh(n);
  char *p = malloc((size_t)(n * bytes[source]) + 1), *q = malloc((size_t)(n * bytes[target]) + 1);
  const int flags = source == FL_BOOL || target == FL_BOOL;
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)(i * 7 % 100);
  table.cast(x, FL_FLOAT32, p, source, n);
  table.cast(p, source, q, target, n);
  table.cast(q, target, y, FL_FLOAT32, n);
  for (int64_t i = 0; i < n; i++)
    check("cast", y[i], flags ? x[i] != 0 : x[i], 0, i);
  for (int64_t i = 0; i < n; i++)
    x[i] = i % 2 ? 3.14159265f : -1e-7f;
  uint16_t *half = malloc((size_t)n * 2 + 1);
  table.cast(x, FL_FLOAT32, half, FL_FLOAT16, n);
  table.cast(half, FL_FLOAT16, y, FL_FLOAT32, n);
  for (int64_t i = 0; i < n; i++)
    check("half", y[i], i % 2 ? 3.140625 : -0x1p-23, 0, i);
  free(x), free(y), free(p), free(q), free(half);
}

static double reduced(int code, const float *x, int64_t step, int64_t n) {
  double sum = 0, top = -INFINITY, low = INFINITY, prod = 1, square = 0, size = 0, scaled = 0;
  for (int64_t i = 0; i < n; i++) {
    const double v = x[i * step];
    sum += v, prod *= v, square += v * v, size += fabs(v);
    top = v > top || isnan(v) ? v : top, low = v < low || isnan(v) ? v : low;
  }
  for (int64_t i = 0; i < n; i++)
    scaled += exp(x[i * step] - top);
  const double results[] = {sum, sum / n, top, low, prod, square, size, sqrt(square), log(sum), top + log(scaled)};
  return results[code];
}

static void check_reduce(int code, int64_t rows, int64_t n) {
  float *x = numbers(rows * n), *y = fresh(rows);
  for (int64_t i = 0; i < rows * n; i++)
    x[i] = code == FL_REDUCE_LOG_SUM ? fabsf(x[i]) : x[i];
  if (rows * n > 3 && (code == FL_REDUCE_MAX || code == FL_REDUCE_MIN))
    x[rows * n - 2] = NAN;
  table.reduce_rows(code, x, n, y, rows, n);
  for (int64_t i = 0; i < rows; i++)
    check("reduce_rows", y[i], reduced(code, x + i * n, 1, n), 4e-6, i);
  free(y);
  y = fresh(n); /* the same values down the columns */
  table.reduce_columns(code, x, rows, n, y, n);
  for (int64_t i = 0; i < n && rows > 0; i++)
    check("reduce_columns", y[i], reduced(code, x + i, n, rows), 4e-6, i);
  free(x), free(y);
}

/* One row of outputs of 3 x kw windows, padded by one, max or average, c channels a pixel. */
static void check_pool(int64_t w, int64_t c, int64_t kw, int64_t stride, int average) {
  const int64_t cols = (w + 2 - kw) / stride + 1, reach = (cols - 1) * stride + kw, pitch = reach * c + 32;
  if (w + 2 < kw)
    return;
  float *x = numbers(3 * w * c), *line = fresh(pitch), *spare = fresh(pitch), *y = fresh(cols * c), *scale = numbers(cols);
  for (int64_t i = 0; i < pitch; i++)
    line[i] = average ? 0 : -INFINITY;
  if (w > 2)
    x[c] = NAN;
  const fl_pool_row row = {0, 1, 3, 0, scale};
  const int64_t n = w < reach - 1 ? w : reach - 1;
  const fl_pool p = {.x = x, .rows = &row, .nrows = 1, .step_y = w * c, .runs = 1, .run = n * c, .line = line, .spare = spare,
                     .pitch = pitch, .left = c, .kh = 3, .kw = kw, .tap = c, .step = stride * c, .out = y, .ldo = cols * c, .out_pixel = c,
                     .cols = cols, .c = c, .average = average, .gathered = c == 1 && kw > 8};
  table.pool(&p);
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = 0; i < c; i++) {
      double want = average ? 0 : -INFINITY;
      for (int64_t t = 0; t < kw; t++)
        for (int64_t r = 0; r < 3; r++) {
          const int64_t at = j * stride + t - 1;
          const double v = at >= 0 && at < w ? x[(r * w + at) * c + i] : average ? 0 : -INFINITY;
          want = average ? want + v : v > want || isnan(v) ? v : want;
        }
      check("pool", y[j * c + i], average ? want * scale[j] : want, average ? 4e-6 : 0, j * c + i);
    }
  free(x), free(line), free(spare), free(y), free(scale);
}

static void check_norm(int64_t rows, int64_t n, int rms) {
  float *x = numbers(rows * n), *w = numbers(n), *b = numbers(n), *y = fresh(rows * n);
  table.layer_norm(x, w, b, y, rows, n, 1e-3f, rms);
  for (int64_t i = 0; i < rows; i++) {
    double mean = 0, square = 0;
    for (int64_t j = 0; j < n && !rms; j++)
      mean += x[i * n + j] / (double)n;
    for (int64_t j = 0; j < n; j++)
      square += (x[i * n + j] - mean) * (x[i * n + j] - mean) / n;
    for (int64_t j = 0; j < n; j++)
      check("layer_norm", y[i * n + j], (x[i * n + j] - mean) / sqrt(square + 1e-3) * w[j] + b[j], 1e-5, i * n + j);
  }
  const fl_affine each = {.x = x, .scale = w, .shift = b, .y = y, .channels = n, .inner = 1, .code = FL_RELU};
  table.affine(&each, 0, rows * n);
  for (int64_t i = 0; i < rows * n; i++)
    check("affine", y[i], fmax(0, (double)x[i] * w[i % n] + b[i % n]), 4e-7, i);
  const fl_lrn response = {.channels = n, .inner = 1, .before = n > 2 ? 1 : 0, .after = n > 2 ? 2 : 0, .alpha = 0.5f,
                           .beta = rms ? 0.75f : 0.6f, .bias = 1};
  float *squares = fresh(n + response.before + response.after + 16);
  for (int64_t i = 0; i < rows; i++)
    table.lrn(&response, x + i * n, y + i * n, 1, squares);
  for (int64_t i = 0; i < rows * n; i++) {
    double sum = 0;
    for (int64_t j = i % n - response.before; j <= i % n + response.after; j++)
      sum += j >= 0 && j < n ? (double)x[i / n * n + j] * x[i / n * n + j] : 0;
    check("lrn", y[i], x[i] / pow(1 + 0.5 * sum, rms ? 0.75 : 0.6), 4e-6, i);
  }
  free(x), free(w), free(b), free(y), free(squares);
}

/* Queries, keys and values with a mask that forbids, causality, and a key that is transposed where `turned`. */
static void check_attention(int64_t rows, int64_t keys, int64_t d, int64_t e, int turned) {
  /* Rows of q, v and out are apart, as those of one head do next to others. */
  const int64_t qi = d + 3, vj = e + 1, oi = e + 2;
  float *q = numbers(rows * qi), *k = numbers(keys * d), *v = numbers(keys * vj), *mask = numbers(rows * keys), *out = fresh(rows * oi);
  float *scratch = fresh(FL_ATTENTION_SCRATCH(d, e) + 16), *weight = fresh(keys);
  const int64_t tiles = (keys + 15) / 16, last = keys / 2;
  float *found = fresh((rows + 15) / 16 * tiles);
  for (int64_t i = 0; i < rows * keys; i++)
    mask[i] = mask[i] < -0.2f ? -1e9f : mask[i];
  for (int64_t i = 0; i < rows; i += 16)
    table.attention_tiles(mask + i * keys, keys, rows - i < 16 ? rows - i : 16, keys, found + i / 16 * tiles);
  const fl_attention p = {.q = q, .qi = qi, .k = k, .kj = turned ? 1 : d, .kt = turned ? keys : 1, .v = v, .vj = vj, .mask = mask, .mi = keys, .mj = keys > 1,
                          .tiles = turned ? found : 0, .tiles_strip = tiles, .out = out, .oi = oi, .rows = rows, .keys = keys, .d = d, .e = e,
                          .last = turned ? keys : last, .scale = 0.5f, .bound = table.magnitude(k, keys * d), .empty = 7,
                          .scratch = (float *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63)};
  table.attention(&p);
  for (int64_t i = 0; i < rows; i++) {
    const int64_t seen = turned || keys <= last + i + 1 ? keys : last + i + 1;
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < seen; j++) {
      double s = 0;
      for (int64_t t = 0; t < d; t++)
        s += (double)q[i * qi + t] * (turned ? k[t * keys + j] : k[j * d + t]);
      weight[j] = (float)(0.5 * s + mask[i * keys + j]);
      top = fmax(top, weight[j]);
    }
    for (int64_t j = 0; j < seen; j++)
      sum += exp(weight[j] - top);
    for (int64_t l = 0; l < e; l++) {
      double y = 0;
      for (int64_t j = 0; j < seen; j++)
        y += exp(weight[j] - top) / sum * v[j * vj + l];
      check("attention", out[i * oi + l], seen ? y : 7, 4e-6, i * e + l);
    }
  }
  free(q), free(k), free(v), free(mask), free(out), free(scratch), free(weight), free(found);
}

/* Depthwise sums of bytes, and conversions. */
static void check_depthwise_bytes(int64_t c, int64_t pairs) {
  const int64_t wide = (c + FL_PANEL - 1) / FL_PANEL * FL_PANEL, cols = 3, taps = 2 * pairs;
  float *noise = numbers(taps * (wide + c * cols));
  uint8_t *x = malloc((size_t)(taps * c * cols + 1));
  int16_t *w = malloc((size_t)(taps * wide + 1) * 2);
  int32_t *offset = (int32_t *)fresh(wide), *out = (int32_t *)fresh(c * cols);
  const uint8_t **tap = malloc((size_t)(taps + 1) * sizeof *tap);
  for (int64_t i = 0; i < taps * c * cols; i++)
    x[i] = (uint8_t)(255 * fabsf(noise[i]));
  for (int64_t i = 0; i < taps * wide; i++)
    w[i] = (int16_t)(255 * noise[i]);
  for (int64_t j = 0; j < wide; j++)
    offset[j] = (int32_t)j;
  for (int64_t t = 0; t < taps; t++)
    tap[t] = x + t * c * cols;
  const fl_qdepthwise p = {.taps = tap, .pairs = pairs, .step = c, .c = c, .cols = cols, .w = w, .out = out, .ldc = c,
                           .e = {.offset = offset, .kind = FL_INT32}};
  table.quantized->depthwise(&p);
  for (int64_t o = 0; o < cols; o++)
    for (int64_t j = 0; j < c; j++) {
      int32_t sum = offset[j];
      for (int64_t t = 0; t < taps; t++)
        sum += (int32_t)tap[t][o * c + j] * w[(t / 2 * wide + j) * 2 + t % 2];
      check("depthwise bytes", out[o * c + j], sum, 0, o * c + j);
    }
  const float step = 0.01f;
  const int32_t zero = 5;
  float *back = fresh(c);
  uint8_t *bytes = malloc((size_t)c + 1);
  table.quantized->quantize(noise, &step, &zero, 0, FL_INT8, bytes, c);
  table.quantized->dequantize(bytes, FL_INT8, &step, &zero, 0, back, c);
  for (int64_t i = 0; i < c; i++) {
    const float steps = rintf(noise[i] / step) + 5, want = steps > 127 ? 127 : steps;
    check("quantize", (int8_t)bytes[i], want, 0, i);
    check("dequantize", back[i], (want - 5) * step, 0, i);
  }
  free(noise), free(x), free(w), free(offset), free(out), free(tap), free(back), free(bytes);
}

int main(void) {
  static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 61, 67};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  for (int i = 0; i < SIZES; i++) {
    check_gated(sizes[i]);
    for (int code = FL_IDENTITY; code < FL_UNARY_COUNT; code++)
      check_unary(code, sizes[i]);
    for (int source = 0; source < FL_KIND_COUNT; source++)
      for (int target = 0; target < FL_KIND_COUNT; target++)
        check_cast(source, target, sizes[i]);
    for (int kind = 0; kind < 8; kind++)
      if (sizes[i])
        check_broadcast(sizes[i], kind & 1, kind >> 1 & 1, kind >> 2);
    for (int j = 0; j < SIZES; j++) {
      for (int size = 1; size <= 8; size *= 2)
        check_move(size, sizes[i], sizes[j]);
      check_transpose(sizes[i], sizes[j]);
      for (int code = 0; code < FL_REDUCE_COUNT && sizes[j] > 0; code++)
        check_reduce(code, sizes[i], sizes[j]);
      if (sizes[j] > 0)
        check_norm(sizes[i], sizes[j], i % 2);
      for (int kw = 1; kw < 12 && sizes[i] > 0; kw++)
        for (int stride = 1; stride < 4; stride++)
          check_pool(sizes[j], sizes[i], kw, stride, (i + kw) % 2);
      if (sizes[j] > 0)
        check_rows(sizes[i], sizes[j], i % 2);
      if (sizes[i] <= FL_QUERIES)
        check_attention(sizes[i], sizes[j] * 3, 5, sizes[j] % 40, i % 2);
      for (int64_t k = 1; k <= FL_KC; k *= 4)
        check_block(&table, sizes[i], sizes[j], k, j % 2), check_block(table.fine, sizes[i], sizes[j], k, i % 2);
    }
  }
  check_winograd(sizes, SIZES);
  static const int64_t units[] = {1, 15, 16, 17, 40, 96, 100, 113, 270};
  for (int kind = FL_LSTM; kind <= FL_RNN; kind++)
    for (int i = 0; i < (int)(sizeof units / sizeof *units); i++)
      for (int64_t rows = 1; rows < 80; rows = rows * 3 + 1)
        for (int standard = 0; standard < 2; standard++)
          check_recurrent(kind, standard, rows, units[i]);
  for (int i = 0; i < SIZES; i++)
    for (int j = 0; j < SIZES; j++) {
      check_bytes(table.quantized->block, sizes[i] % 30, sizes[j], 1 + (i + j) % 9);
      check_bytes(fl_q_block_pairs, sizes[i] % 30, sizes[j], 1 + (i + j) % 9); /* without the processor's own instruction */
      check_depthwise_bytes(sizes[i], 1 + j % 5);
    }
  check_all_nbits();
  const int right_probe = table.probe_fma(1000) > 0;
  printf("level %s: %d checks, %d failures%s\n", table.name, checks, failures, right_probe ? "" : ", and the probe did nothing");
  return failures || !right_probe;
}
