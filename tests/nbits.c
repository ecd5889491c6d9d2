/* Checks a level's products with weights of few bits alone, as neon.c checks everything: tests/kernels/test_nbits_ways.py compiles it
 * for the levels of this machine. */
#define FL_TILES_EMULATED
#include SOURCE
#include "amx_nbits.h"
#pragma GCC optimize("O1") /* the loops below are to be plain */
#include "bytes.h"
#include "neon_nbits.h"

int main(void) {
  check_all_nbits();
#ifdef FL_NBITS_DOT
  printf("level %s, dot %d: %d checks, %d failures\n", table.name, fl_nbits_has_dot(), checks, failures);
#else
  printf("level %s: %d checks, %d failures\n", table.name, checks, failures);
#endif
  return failures != 0;
}
