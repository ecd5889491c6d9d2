/* Products with weights of few bits against plain loops: rows as integers, sums of integers by every way to multiply that this
 * processor has, and by AMX's tiles in C where the includer has them, whose bits must agree, and exact sums. Included by neon.c and nbits.c. */

/* A number of the weights: all values of `bits` bits, the largest ones often (a product of quads must not saturate). */
static int nbits_number(int bits, int64_t k, int64_t j) {
  const int most = (1 << bits) - 1;
  return (int)(k * 7 + j * 13 + k * j) % 3 ? (int)((k * 31 + j * 17 + k * j * 5) % (most + 1)) : most;
}

static void check_nbits(int bits, int64_t block, int64_t blocks, int64_t m, int64_t n, int kind, int narrow, int digits) {
  const int64_t panels = (n + FL_PANEL - 1) / FL_PANEL, wide = panels * FL_PANEL, k = block * blocks - 5, padded = block * blocks;
  const int64_t whole = block * bits * 2, record = whole + FL_PANEL * (narrow ? 2 : 4);
  const int terms = 32 / bits;
  uint8_t *weights = calloc((size_t)(panels * blocks * record), 1), *bytes = malloc((size_t)(wide * blocks));
  float *scale = numbers(wide * blocks), *zero = numbers(wide * blocks), *bias = numbers(wide), *x = numbers(m * padded);
  float *part = fresh(m * k), *steps = fresh(m * blocks), *sums = fresh(m * digits * blocks), *out = fresh(m * n), *other = fresh(m * n);
  int8_t *q = malloc((size_t)(m * digits * padded));
  int32_t *starts = (int32_t *)fresh(m * digits * blocks);
  uint16_t *half = malloc((size_t)(wide * blocks) * 2);
  table.cast(scale, FL_FLOAT32, half, FL_FLOAT16, wide * blocks);
  if (narrow)
    table.cast(half, FL_FLOAT16, scale, FL_FLOAT32, wide * blocks);
  for (int64_t j = 0; j < wide; j++)
    for (int64_t b = 0; b < blocks; b++) {
      const int64_t first = j / FL_PANEL / FL_NBITS_SIDE * FL_NBITS_SIDE, side = panels - first < FL_NBITS_SIDE ? panels - first : FL_NBITS_SIDE;
      uint8_t *to = weights + (first * blocks + b * side) * record + (j / FL_PANEL - first) * 64;
      uint8_t *after = weights + (first * blocks + b * side) * record + side * whole + (j / FL_PANEL - first) * (record - whole);
      const int64_t at = (j / FL_PANEL * blocks + b) * FL_PANEL + j % FL_PANEL; /* of scales and zero points */
      for (int64_t t = 0; t < block; t++) {
        const int64_t group = t / terms, i = t % terms % 4, s = t % terms / 4;
        to[(group * side * FL_PANEL + j % FL_PANEL) * 4 + i] |= (uint8_t)(nbits_number(bits, b * block + t, j) << (s * bits));
      }
      if (narrow)
        memcpy(after + j % FL_PANEL * 2, half + at, 2);
      else
        memcpy(after + j % FL_PANEL * 4, scale + at, 4);
      bytes[at] = (uint8_t)((at * 11) % (1 << bits));
      zero[at] = kind == FL_NBITS_HALF ? (float)(1 << (bits - 1)) : kind == FL_NBITS_BYTES ? bytes[at] : 8 * zero[at];
    }
  for (int64_t i = 0; i < m; i++) {
    memset(x + i * padded + k, 0, (size_t)(padded - k) * 4);
    x[i * padded] = i % 2 ? -1 : 1; /* the largest: 127 and -127 */
    if (i == 1)
      for (int64_t t = 0; t < k; t++)
        x[i * padded + t] = -1;
    memcpy(part + i * k, x + i * padded, (size_t)k * 4);
  }
  table.nbits_rows(part, m, k, block, kind == FL_NBITS_HALF ? 1 << (bits - 1) : 0, digits, q, steps, sums, starts);
  const fl_nbits p = {.weights = weights, .zeros = kind == FL_NBITS_BYTES ? (void *)bytes : zero,
                      .panels = panels, .block = block, .blocks = blocks,
                      .record = record, .bits = bits, .kind = kind, .narrow = narrow, .m = m, .n = n, .chunk = FL_KC, .x = x,
                      .pitch = padded, .digits = digits, .q = q, .steps = steps, .sums = sums, .starts = starts, .bias = bias, .out = out, .ldc = n};
  fl_nbits again = p;
  again.out = other;
  const int some = digits == 1 || table.nbits_three(&p); /* ways that have such numbers */
  if (some)
    digits == 1 ? fl_nbits_integer_pairs(&p) : table.nbits_integer(&p);
#ifdef FL_TILES_EMULATED
  fl_amx_nbits_below = table.nbits_integer;
  if (some || m * digits >= 8) {
    fl_amx_nbits(&again);
    check("nbits_amx", some ? memcmp(out, other, (size_t)(m * n) * 4) : 0, 0, 0, bits);
    if (!some)
      memcpy(out, other, (size_t)(m * n) * 4);
  }
#endif
#ifdef FL_NBITS_DOT
  if (digits == 1 && fl_nbits_has_dot()) {
    fl_nbits_integer_dot(&again);
    check("nbits_dot", memcmp(out, other, (size_t)(m * n) * 4), 0, 0, bits);
  }
#endif
  if (digits == 1) {
    table.nbits_integer(&again);
    check("nbits_integer", memcmp(out, other, (size_t)(m * n) * 4), 0, 0, bits);
  }
  if (m <= FL_NBITS_FEW)
    table.nbits_exact(&again);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double total = bias[j], exact = bias[j], most = fabs(bias[j]);
      for (int64_t b = 0; b < blocks; b++) {
        const int64_t at = (j / FL_PANEL * blocks + b) * FL_PANEL + j % FL_PANEL, from = i * padded + b * block;
        double sum = 0, all = 0, floats = 0;
        for (int64_t t = 0; t < block; t++) {
          const double number = nbits_number(bits, b * block + t, j);
          double value = 0, weight = 1;
          for (int d = 0; d < digits; d++, weight *= 256)
            value += weight * q[(i * digits + d) * padded + b * block + t];
          sum += number * value, all += value;
          if (j == 0)
            check("nbits_rows", value * steps[i * blocks + b], x[from + t], steps[i * blocks + b] * 0.5001, b);
          floats += (number - zero[at]) * x[from + t], most += fabs((number - zero[at]) * scale[at] * x[from + t]);
        }
        double read = 0, weight = 1;
        for (int d = 0; d < digits; d++, weight *= 256)
          read += weight * sums[(i * digits + d) * blocks + b];
        check("nbits_sums", read, all, 0, b);
        total += (sum - zero[at] * all) * scale[at] * steps[i * blocks + b];
        exact += floats * scale[at];
      }
      if (digits == 3) /* a step is at most 2^-22 of the largest number of a block, which is no more than 1 */
        check("nbits_steps", steps[i * blocks] <= 0x1p-22, 1, 0, i);
#ifdef FL_TILES_EMULATED
      if (some || m * digits >= 8)
#else
      if (some)
#endif
        check("nbits_integer", out[i * n + j] / most, total / most, 1e-6, i * n + j);
      if (m <= FL_NBITS_FEW)
        check("nbits_exact", other[i * n + j] / most, exact / most, 1.6e-5, i * n + j); /* 256 roundings of 2^-24, all one way at worst */
    }
  free(weights), free(bytes), free(scale), free(zero), free(bias), free(x), free(part), free(steps), free(sums), free(out), free(other);
  free(q), free(starts), free(half);
}

static void check_all_nbits(void) {
  for (int bits = 2; bits <= 8; bits *= 2)
    for (int kind = FL_NBITS_HALF; kind <= FL_NBITS_FLOATS; kind++)
      for (int i = 0; i < 8; i++) {
        static const int64_t blocks[] = {16, 32, 256, 64};
        for (int digits = 1; digits <= 3; digits += 2) {
          check_nbits(bits, blocks[i % 4], 1 + i % 3, i % 2 ? 1 : 5, 1 + 23 * (i % 4), kind, i / 4, digits);
          check_nbits(bits, blocks[i % 4], 3, 3, 40, kind, i % 2, digits);
#ifdef FL_TILES_EMULATED /* around one tile of rows, and more than meet weights unpacked */
          check_nbits(bits, blocks[i % 4], 1 + i % 2, 8 + 9 * (i % 3), 130, kind, i % 2, digits);
          check_nbits(bits, blocks[i % 4], 1, i % 2 ? 16 : 67, 16, kind, i % 2, digits);
#endif
        }
      }
}
