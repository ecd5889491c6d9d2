/* The packed product with AVX512-VNNI, which multiplies quads of bytes (uint8 by int8) and adds them to int32 exactly. Not every
 * processor of the level has it: `fl_has_dot` asks. Included by quantized.h. */
#include <cpuid.h>

#define FL_DOT_TARGET __attribute__((target("avx512vnni")))
#define FL_DOT(acc, a, b) (vi) _mm512_dpbusd_epi32((__m512i)(acc), (__m512i)(a), (__m512i)(b))

FL_INLINE vi fl_quad(const uint8_t *p) { return vseti((int32_t)fl_quad_bits(p)); }

static int fl_has_dot(void) {
  static int known; /* 1: no, 2: yes; threads that ask at once find the same */
  int found = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!found) {
    unsigned a, b, c = 0, d;
    found = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 11) ? 2 : 1;
    __atomic_store_n(&known, found, __ATOMIC_RELAXED);
  }
  return found == 2;
}

#define FL_TM 1
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 2
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 3
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 4
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 5
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 6
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 7
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 8
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 9
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 10
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 11
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 12
#define FL_TP 1
#include "quantized_tile.h"
#define FL_TM 1
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 2
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 3
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 4
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 5
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 6
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 7
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 8
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 9
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 10
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 11
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 12
#define FL_TP 2
#include "quantized_tile.h"
#define FL_TM 1
#define FL_TP 4
#include "quantized_tile.h"
#define FL_TM 2
#define FL_TP 4
#include "quantized_tile.h"
#define FL_TM 3
#define FL_TP 4
#include "quantized_tile.h"
#define FL_TM 4
#define FL_TP 4
#include "quantized_tile.h"
#define FL_TM 5
#define FL_TP 4
#include "quantized_tile.h"
#define FL_TM 6
#define FL_TP 4
#include "quantized_tile.h"

static void fl_q_block_dot(const fl_qblock *p) {
  static const fl_qtile_fn one[] = {0, fl_dot_1x1, fl_dot_2x1, fl_dot_3x1, fl_dot_4x1, fl_dot_5x1, fl_dot_6x1, fl_dot_7x1, fl_dot_8x1, fl_dot_9x1, fl_dot_10x1, fl_dot_11x1, fl_dot_12x1};
  static const fl_qtile_fn two[] = {0, fl_dot_1x2, fl_dot_2x2, fl_dot_3x2, fl_dot_4x2, fl_dot_5x2, fl_dot_6x2, fl_dot_7x2, fl_dot_8x2, fl_dot_9x2, fl_dot_10x2, fl_dot_11x2, fl_dot_12x2};
  static const fl_qtile_fn four[] = {0, fl_dot_1x4, fl_dot_2x4, fl_dot_3x4, fl_dot_4x4, fl_dot_5x4, fl_dot_6x4};
  if (p->m <= 6)
    fl_qwalk(p, one, four, 6, 4);
  else
    fl_qwalk(p, one, two, 12, 2);
}
#undef FL_DOT
#undef FL_DOT_TARGET
