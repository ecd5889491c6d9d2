/* Part of neon.c: the transforms of Winograd convolution next to the polynomials that they evaluate. Along one axis n = m + k - 1 values
 * are made of n inputs, m outputs of n sums. n = 9 is a stride of 2: five values of the even inputs, and the odd ones as they are. */

/* Points other than 0 and infinity; see fastlayers/kernels/winograd_points.py. */
static double winograd_point(int n, int i) {
  static const double of4[] = {1, -1}, of5[] = {0.5, -1, 2}, of6[] = {2.0 / 3, -2.0 / 3, 1.5, -1.5}, of8[] = {0.5, -0.5, 1, -1, 2, -2};
  return n == 4 ? of4[i] : n == 5 ? of5[i] : n == 6 ? of6[i] : of8[i];
}

/* The factor of input `column` in value `row`: a coefficient of the product of (x - q) over all other points q, 0 among them. At 0 its
 * sign is that which makes the first coefficient 1. An axis of one value is left as it is. */
static double winograd_in(int n, int row, int column) {
  if (n == 1)
    return 1;
  if (n == 9) {
    if (row >= 5)
      return column == 2 * (row - 5) + 1;
    return column % 2 ? 0 : winograd_in(5, row, column / 2);
  }
  double product[9] = {1};
  int degree = 0;
  for (int q = -1; q < n - 2; q++) {
    if (q == row - 1)
      continue;
    const double point = q < 0 ? 0 : winograd_point(n, q);
    for (int i = ++degree; i >= 0; i--)
      product[i] = (i ? product[i - 1] : 0) - point * product[i];
  }
  return product[column] / (row == 0 ? product[0] : 1);
}

/* The factor of sum `column` in output `row`: a power of the point, over its magnitude; infinity is in the last output alone. */
static double winograd_out(int n, int m, int row, int column) {
  if (n == 1)
    return 1;
  if (n == 9 && column >= 5)
    return row == column - 5;
  const int even = n == 9 ? 5 : n;
  if (column == 0 || column == even - 1)
    return row == (column ? m - 1 : 0);
  const double point = winograd_point(even, column - 1);
  return pow(point, row) / (n == 9 ? 1 : fabs(point));
}

static void check_winograd_in(const int side[2], const int m[2]) {
  enum { TILES = 3 };
  const int width = (TILES - 1) * m[1] + side[1], points = side[0] * side[1];
  float *x = numbers(side[0] * width * FL_PANEL), *v = fresh(TILES * points * FL_PANEL);
  const float *rows[FL_WINO_MOST];
  for (int i = 0; i < side[0]; i++)
    rows[i] = x + i * width * FL_PANEL;
  const fl_wino_in p = {.side = {side[0], side[1]}, .m = {m[0], m[1]}, .rows = rows, .tiles = TILES, .v = v, .point = FL_PANEL,
                        .tile = points * FL_PANEL};
  table.winograd_in(&p);
  for (int at = 0; at < TILES * points * FL_PANEL; at++) {
    const int t = at / FL_PANEL / points, q = at / FL_PANEL % points, c = at % FL_PANEL;
    double sum = 0, terms = 0;
    for (int i = 0; i < points; i++) {
      const double term = winograd_in(side[0], q / side[1], i / side[1]) * winograd_in(side[1], q % side[1], i % side[1]) *
                          rows[i / side[1]][(t * m[1] + i % side[1]) * FL_PANEL + c];
      sum += term, terms += fabs(term);
    }
    check("winograd_in", v[at], sum, 4e-7 * fmax(1, terms) / fmax(1, fabs(sum)), at);
  }
  free(x), free(v);
}

static void check_winograd_out(const int side[2], const int m[2], int rows, int cols, int c, int code) {
  const int tiles = (cols + m[1] - 1) / m[1], points = side[0] * side[1], wide = (c + FL_PANEL - 1) / FL_PANEL * FL_PANEL;
  float *s = numbers(tiles * points * wide), *bias = numbers(wide), *residual = numbers(rows * cols * c), *y = fresh(rows * cols * c);
  const fl_wino_out p = {.side = {side[0], side[1]}, .m = {m[0], m[1]}, .s = s, .point = wide, .tile = points * wide, .tiles = tiles,
                         .rows = rows, .cols = cols, .c = c, .bias = bias, .residual = residual, .out = y, .row = cols * c, .pixel = c,
                         .code = code};
  table.winograd_out(&p);
  for (int at = 0; at < rows * cols * c; at++) {
    const int row = at / c / cols, col = at / c % cols;
    double sum = bias[at % c] + residual[at], terms = fabs(sum);
    for (int i = 0; i < points; i++) {
      const double term = winograd_out(side[0], m[0], row, i / side[1]) * winograd_out(side[1], m[1], col % m[1], i % side[1]) *
                          s[(col / m[1] * points + i) * wide + at % c];
      sum += term, terms += fabs(term);
    }
    check("winograd_out", y[at], code == FL_RELU ? fmax(0, sum) : 1 / (1 + exp(-sum)), 4e-7 * fmax(1, terms) / fmax(1, fabs(sum)), at);
  }
  free(s), free(bias), free(residual), free(y);
}

static void check_winograd(const int64_t *sizes, int count) {
  /* Values and outputs along an axis; both axes have them, or one. */
  static const int lines[][2] = {{4, 2}, {6, 4}, {6, 2}, {8, 6}, {8, 4}, {8, 2}}, planes = 3;
  for (int form = 0; form < (int)(sizeof lines / sizeof *lines); form++)
    for (int axes = 1; axes <= (form < planes ? 3 : 2); axes++) {
      const int n = lines[form][0], most = lines[form][1];
      const int side[2] = {axes & 1 ? n : 1, axes & 2 ? n : 1}, m[2] = {axes & 1 ? most : 1, axes & 2 ? most : 1};
      check_winograd_in(side, m);
      for (int i = 1; i < count; i++)
        check_winograd_out(side, m, i % m[0] + 1, i, (int)sizes[i], i % 2 ? FL_RELU : FL_SIGMOID);
    }
  const int side[2] = {9, 9}, m[2] = {4, 4}, step[2] = {8, 8};
  check_winograd_in(side, step);
  for (int i = 1; i < count; i++)
    check_winograd_out(side, m, i % m[0] + 1, i, (int)sizes[i], i % 2 ? FL_RELU : FL_SIGMOID);
}
