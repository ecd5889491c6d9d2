/* Where rows of x leave the tops of decision trees, with AVX-512: the questions of all nodes of up to six storeys are asked at once, 16 by
 * an instruction, since a row of at most 64 columns is in registers, where every node finds its column. Then the answers are followed, 8
 * rows at once. Walking asks 6 questions of 63, but each waits for the answer before it, and for memory: 500 trees of six storeys take
 * twice as long for 10,000 rows of 30 columns (Zen 4). Included by trees_types.h, which is compiled once: this function names the
 * instructions that it needs, and the driver calls it under levels of 16 lanes alone. */
#ifndef FL_TREE_TOPS_H
#define FL_TREE_TOPS_H

#define FL_TREE_ROWS 256 /* at once, at most */

/* The topmost storeys of a tree as a whole binary tree; see kernels/tree_tops.py. */
typedef struct {
  const uint8_t *feature; /* columns of x, all below `used` <= 64, of 64 nodes */
  const float *split;
  uint64_t missing;               /* bit k: NaN is a yes at node k */
  int64_t storeys, used, columns; /* columns: of a row of x */
} fl_tree_top;

/* The way out that each of at most FL_TREE_ROWS rows of x takes, 2^storeys and above; writes whole groups of 8. `nan`: x may have any. */
typedef void (*fl_tree_tops_fn)(const fl_tree_top *p, const float *x, int64_t rows, int nan, uint8_t *ways);

#if defined(__x86_64__)
#include <immintrin.h>
#define FL_TREE_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

static FL_TREE_TARGET void fl_tree_tops(const fl_tree_top *p, const float *x, int64_t rows, int nan, uint8_t *ways) {
  uint64_t asked[FL_TREE_ROWS]; /* the answers of a row: bit k is node k's */
  const int wide = p->used > 32;
  __m512i column[4];
  __m512 split[4];
  __mmask16 high[4], there[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; v++) {
    const int64_t left = p->used - 16 * v;
    column[v] = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p->feature + 16 * v)));
    split[v] = _mm512_loadu_ps(p->split + 16 * v);
    high[v] = _mm512_test_epi32_mask(column[v], _mm512_set1_epi32(32));
    there[v] = left >= 16 ? 0xffff : left > 0 ? (__mmask16)((1u << left) - 1) : 0;
  }
  for (int64_t r = 0; r < rows; r++, x += p->columns) {
    const __m512 x0 = _mm512_maskz_loadu_ps(there[0], x), x1 = _mm512_maskz_loadu_ps(there[1], x + 16);
    __mmask16 yes[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; v++) {
      __m512 value = _mm512_permutex2var_ps(x0, column[v], x1);
      if (wide) {
        const __m512 x2 = _mm512_maskz_loadu_ps(there[2], x + 32), x3 = _mm512_maskz_loadu_ps(there[3], x + 48);
        value = _mm512_mask_mov_ps(value, high[v], _mm512_permutex2var_ps(x2, column[v], x3));
      }
      yes[v] = _mm512_cmp_ps_mask(value, split[v], _CMP_LE_OQ);
      if (nan)
        yes[v] |= _mm512_mask_cmp_ps_mask((__mmask16)(p->missing >> 16 * v), value, value, _CMP_UNORD_Q);
    }
    asked[r] = _cvtmask64_u64(_mm512_kunpackd(_mm512_kunpackw(yes[3], yes[2]), _mm512_kunpackw(yes[1], yes[0])));
  }
  for (int64_t r = rows; r % 8; r++)
    asked[r] = 0;
  const __m512i one = _mm512_set1_epi64(1);
  for (int64_t r = 0; r < rows; r += 8) {
    const __m512i answers = _mm512_loadu_si512(asked + r);
    __m512i node = one;
    for (int64_t storey = 0; storey < p->storeys; storey++) /* 2 node + the answer of node */
      node = _mm512_ternarylogic_epi64(_mm512_add_epi64(node, node), _mm512_srlv_epi64(answers, node), one, 0xf8);
    _mm_storel_epi64((__m128i *)(ways + r), _mm512_cvtepi64_epi8(node));
  }
}
#else
#define fl_tree_tops NULL /* a row of x is in too many registers */
#endif
#endif
