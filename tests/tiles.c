/* Checks the product of bytes by AMX's tiles (csrc/amx.h), which are emulated, against plain sums, without Python: every operand is in a
 * malloc of its own size, for a memory checker. tests/kernels/test_amx.py compiles and runs it. */
#define FL_TILES_EMULATED
#include FL_VECTORS
#include "amx.h"

#pragma GCC optimize("O1") /* the loops below are to be plain */
#include "bytes.h"

static int below;

/* What has fewer rows than tiles are for. */
static void few(const fl_qblock *p) {
  (void)p;
  below++;
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
  printf("tiles: %d checks, %d failures\n", checks, failures);
  return failures != 0;
}
