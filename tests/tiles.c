/* Checks the products of bytes and of bfloat16 by AMX's tiles (csrc/amx.h, amx_half.h), which are emulated, against plain sums, without
 * Python: every operand is in a malloc of its own size, for a memory checker. tests/kernels/test_amx.py compiles and runs it. */
#define FL_TILES_EMULATED
#include FL_VECTORS
#include "kernels.h"

static void (*fl_f32_unary)(int code, float a, float b, const float *x, float *y, int64_t n); /* no check needs it */
#include "amx.h"
#include "amx_half.h"

#pragma GCC optimize("O1") /* the loops below are to be plain */
#include "bytes.h"

static int below;

/* What has fewer rows than tiles are for. */
static void few(const fl_qblock *p) {
  (void)p;
  below++;
}

static void few_halves(const fl_half_block *p) {
  (void)p;
  below++;
}

static float wide(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

/* A product with weights in bfloat16, its rows apart; first with bias, residual and ReLU, then without. */
static void check_halves(int64_t m, int64_t n, int64_t k, int *tiles) {
  const int64_t panels = (n + FL_PANEL - 1) / FL_PANEL, size = panels * FL_PANEL * (k + k % 2);
  float *bias = numbers(panels * FL_PANEL), *residual = numbers(m * n), *noise = numbers(size);
  uint16_t *b = malloc((size_t)size * 2 + 1);
  const float **rows = malloc((size_t)(m + 1) * sizeof *rows);
  for (int64_t i = 0; i < m; i++)
    rows[i] = numbers(k);
  for (int64_t i = 0; i < size; i++)
    b[i] = fl_brain_of(noise[i]);
  if (k % 2) { /* what makes a pair of the last term is zero */
    const int64_t k0 = (k - 1) / FL_KC * FL_KC, panel = (k - k0 + 1) * FL_PANEL;
    for (int64_t j = 0; j < panels * FL_PANEL; j++)
      b[panels * FL_PANEL * k0 + (j / FL_PANEL + 1) * panel - 2 * FL_PANEL + j % FL_PANEL * 2 + 1] = 0;
  }
  for (int way = 0; way < 2; way++) {
    float *out = fresh(m * n);
    const fl_epilogue e = {.bias = bias, .residual = residual, .ldr = n, .code = FL_RELU};
    const fl_half_block block = {.kind = FL_BRAIN, .rows = rows, .m = m, .k = k, .b = b, .panels = panels, .n = n, .c = out, .ldc = n,
                                 .epilogue = way ? 0 : &e, .tiles = tiles};
    fl_amx_half_block(&block);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = way ? 0 : bias[j] + residual[i * n + j];
        for (int64_t t = 0; t < k; t++) {
          const int64_t k0 = t / FL_KC * FL_KC, klen = fl_half_klen(k, k0);
          const uint16_t *panel = fl_half_at(&block, j / FL_PANEL, k0, klen);
          sum += (double)wide(fl_brain_of(rows[i][t])) * wide(panel[((t - k0) / 2 * FL_PANEL + j % FL_PANEL) * 2 + (t - k0) % 2]);
        }
        check("halves", out[i * n + j], way || sum > 0 ? sum : 0, 1e-5, i * n + j);
      }
    free(out);
  }
  for (int64_t i = 0; i < m; i++)
    free((float *)rows[i]);
  free(bias), free(residual), free(noise), free(b), free(rows);
}

int main(void) {
  /* rows around one tile, two and more; columns around panels, pairs, fours and what is kept of sums; terms around tiles and what is copied */
  static const int64_t rows[] = {8, 15, 16, 17, 31, 32, 33, 67}, columns[] = {1, 15, 16, 17, 33, 50, 64, 100};
  static const int64_t quads[] = {0, 1, 2, 7, 15, 16, 17, 31, 33, 100};
  fl_amx_below = few;
  for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++)
    for (int j = 0; j < (int)(sizeof columns / sizeof *columns); j++)
      check_bytes(fl_amx_block, rows[i], columns[j], quads[(3 * i + j) % 10]);
  for (int q = 0; q < 10; q++)
    check_bytes(fl_amx_block, 9 + 11 * (q % 3), 35, quads[q]);
  static const int64_t many[] = {255, 256, 257, 271, 512, 530};
  for (int q = 0; q < 6; q++)
    check_bytes(fl_amx_block, q % 2 ? 17 : 10, q < 3 ? 300 : 70, many[q]);
  check_bytes(fl_amx_block, 8, 0, 5);
  const fl_qblock seven = {.m = 7}, none = {.m = 0};
  fl_amx_block(&seven);
  fl_amx_block(&none);
  check("few rows", below, 2, 0, 0);

  static const int64_t terms[] = {0, 1, 2, 31, 32, 33, 63, 255, 256, 257, 300, 513};
  static const int64_t few_rows[] = {1, 2, 15, 16, 17, 32, 33, 64, 65, 100};
  const fl_halves others = {.block = few_halves};
  int tiles = 0;
  fl_amx_halves_below = &others;
  for (int i = 0; i < 10; i++)
    for (int j = 0; j < 8; j++)
      check_halves(few_rows[i], columns[j], terms[(5 * i + j) % 12], &tiles);
  for (int q = 0; q < 12; q++)
    check_halves(1 + 9 * (q % 3), 35, terms[q], &tiles);
  check("tiles are kept", tiles, 19, 0, 0);
  fl_amx_half_end(&tiles), fl_amx_half_end(&tiles);
  check("tiles are released", tiles + fl_tile_shape.rows[0], 0, 0, 0);
  check_halves(3, 0, 5, &tiles), check_halves(0, 3, 5, &tiles);
  check("nothing to do", tiles, 0, 0, 0);
  const fl_half_block half = {.kind = FL_HALF, .m = 3, .n = 3};
  fl_amx_half_block(&half);
  check("float16", below, 3, 0, 0);

  printf("tiles: %d checks, %d failures\n", checks, failures);
  return failures != 0;
}
