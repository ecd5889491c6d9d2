/* What checks in C share: comparison, operands, and the check of a product of bytes. Included after a level. */
#include <stdio.h>
#include <stdlib.h>

static int failures, checks;

static void check(const char *what, double got, double want, double bound, long i) {
  checks++;
  if (isnan(got) && isnan(want))
    return;
  if (!(got == want || fabs(got - want) <= bound * fmax(1, fabs(want)))) {
    if (failures++ < 20)
      printf("%s: element %ld is %.9g, expected %.9g\n", what, i, got, want);
  }
}

static float *fresh(int64_t n) { return malloc((size_t)(n > 0 ? n : 1) * 4); }

/* Uniform in [-1, 1), the same on every machine. */
static float *numbers(int64_t n) {
  static uint32_t state = 1;
  float *x = fresh(n);
  for (int64_t i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    x[i] = (float)(int32_t)state / 2147483648.0f;
  }
  return x;
}

/* A product of bytes against plain sums: two runs, the second of which ends within a quad. Weights have zero points or none; results are
 * of every kind. */
static void check_bytes(void (*product)(const fl_qblock *), int64_t m, int64_t n, int64_t quads) {
  const int64_t half = quads / 2, lda = 4 * quads + 7, panels = (n + FL_PANEL - 1) / FL_PANEL, wide = panels * FL_PANEL;
  float *noise = numbers(m * lda + wide * quads * 4 + 8 * wide + 64);
  uint8_t *x = malloc((size_t)(m * lda + 1));
  int8_t *b = malloc((size_t)(wide * quads * 4 + 1));
  int32_t *offset = (int32_t *)fresh(wide), *zero = (int32_t *)fresh(wide), *rowsum = (int32_t *)fresh(m);
  float *scale = fresh(wide), *shift = fresh(wide);
  const uint8_t **rows = malloc((size_t)(m + 1) * sizeof *rows);
  for (int64_t i = 0; i < m * lda; i++)
    x[i] = (uint8_t)(noise[i] > 0.6f ? 255 : 255 * fabsf(noise[i]));
  for (int64_t i = 0; i < wide * quads * 4; i++)
    b[i] = (int8_t)(noise[i] < -0.7f ? -128 : 127 * noise[i]);
  for (int64_t j = 0; j < wide; j++) {
    offset[j] = (int32_t)(1000 * noise[j]), zero[j] = (int32_t)(100 * noise[j + 1]);
    scale[j] = 1e-3f * (1 + noise[j]), shift[j] = noise[j];
  }
  const fl_qrun runs[] = {{0, half}, {4 * half + 5, quads - half}};
  for (int64_t i = 0; i < m; i++)
    rows[i] = x + i * lda;
  for (int64_t i = 0; i < m; i++) {
    rowsum[i] = 0;
    for (int64_t k = 0; k < 4 * quads; k++)
      rowsum[i] += rows[i][k < 4 * half ? k : k + 5];
  }
  static const int kinds[] = {FL_INT32, FL_FLOAT32, FL_UINT8, FL_INT8};
  for (int way = 0; way < 8; way++) {
    const int kind = kinds[way % 4], item = kind == FL_INT32 || kind == FL_FLOAT32 ? 4 : 1;
    char *out = malloc((size_t)(m * n * item + 1));
    const fl_qblock block = {.rows = rows, .m = m, .n = n, .runs = runs, .nruns = 2, .b = b, .panel = quads * 64, .out = out, .ldc = n,
                             .e = {.offset = offset, .zero = way < 4 ? zero : NULL, .rowsum = way < 4 ? rowsum : NULL, .scale = scale, .shift = shift, .kind = kind, .y_zero = 3}};
    product(&block);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        int32_t sum = offset[j] - (way < 4 ? zero[j] * rowsum[i] : 0);
        for (int64_t k = 0; k < 4 * quads; k++) {
          const int64_t at = k < 4 * half ? k : k + 5;
          sum += (int32_t)b[j / 16 * quads * 64 + k / 4 * 64 + j % 16 * 4 + k % 4] * rows[i][at];
        }
        volatile float product = (float)sum * scale[j];
        const float steps = rintf(product) + 3, least = kind == FL_INT8 ? -128 : 0, most = least + 255;
        const int64_t e = i * n + j;
        if (kind == FL_INT32)
          check("bytes int32", ((int32_t *)out)[e], sum, 0, e);
        else if (kind == FL_FLOAT32)
          check("bytes float", ((float *)out)[e], product + shift[j], 0, e);
        else
          check("bytes", kind == FL_INT8 ? ((int8_t *)out)[e] : ((uint8_t *)out)[e], steps < least ? least : steps > most ? most : steps, 0, e);
      }
    free(out);
  }
  free(noise), free(x), free(b), free(offset), free(zero), free(rowsum), free(scale), free(shift), free(rows);
}
