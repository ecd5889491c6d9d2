/* Operations on AMX's tiles of 16 rows of 64 bytes: the processor's own, or, with FL_TILES_EMULATED defined, the same in plain C, so that
 * what is built of them is tested on machines without them. Tiles are named by constants, 0 to 7, and belong to the thread.
 *
 *   fl_tile_config(p)            the shapes of all tiles, an fl_tile_shapes; their contents are zero then
 *   fl_tile_zero(t), fl_tile_load(t, p, stride), fl_tile_store(t, p, stride)
 *   fl_tile_dot(c, a, b)         c[i][j] += sum over k of a[i][k] b[k / 4][j][k % 4], uint8 by int8, exact in int32
 *   fl_tile_dot_signed(c, a, b)  the same, int8 by uint8
 *   fl_tile_dot_brain(c, a, b)   c[i][j] += e + o in float32, where e and o are the sums over k of a[i][2 k] b[k][2 j] and of
 *                                a[i][2 k + 1] b[k][2 j + 1] in bfloat16, from zero and in order, every product and its sum rounded once
 *                                to nearest, ties to even; subnormals, given and made, are zeros
 *   fl_tile_release()            at the end: a thread without tiles is switched faster, and may sleep deeper
 *
 * The emulation ends the program where the processor would: a tile without a shape, or shapes that do not fit each other. */
#ifndef FL_AMX_TILE_H
#define FL_AMX_TILE_H
#include <stdint.h>
#include <string.h>

typedef struct { /* as LDTILECFG reads it */
  uint8_t palette, start;
  uint8_t reserved[14];
  uint16_t bytes[16]; /* of a row */
  uint8_t rows[16];
} fl_tile_shapes;

#ifndef FL_TILES_EMULATED
#include <immintrin.h>
#define FL_TILED __attribute__((target("amx-tile,amx-int8,amx-bf16")))
#define fl_tile_config(p) _tile_loadconfig(p)
#define fl_tile_zero(t) _tile_zero(t)
#define fl_tile_load(t, p, stride) _tile_loadd(t, p, stride)
#define fl_tile_store(t, p, stride) _tile_stored(t, p, stride)
#define fl_tile_dot(c, a, b) _tile_dpbusd(c, a, b)
#define fl_tile_dot_signed(c, a, b) _tile_dpbsud(c, a, b)
#define fl_tile_dot_brain(c, a, b) _tile_dpbf16ps(c, a, b)
#define fl_tile_release() _tile_release()
/* GCC's tile loads do not say that they read memory: what was written before them has to be there. */
#define FL_TILE_WRITTEN() __asm__ volatile("" ::: "memory")
#else
#include <stdlib.h>
#define FL_TILED
#define FL_TILE_WRITTEN()

static _Thread_local fl_tile_shapes fl_tile_shape;
static _Thread_local uint8_t fl_tile_bytes[8][16][64];

static void fl_tile_need(int holds) {
  if (!holds)
    abort();
}
static void fl_tile_config(const fl_tile_shapes *p) {
  fl_tile_need(p->palette == 1 && !p->start);
  for (int t = 0; t < 16; t++)
    fl_tile_need(t < 8 ? p->rows[t] <= 16 && p->bytes[t] <= 64 && !p->rows[t] == !p->bytes[t] : !p->rows[t] && !p->bytes[t]);
  fl_tile_shape = *p;
  memset(fl_tile_bytes, 0, sizeof fl_tile_bytes);
}
static void fl_tile_release(void) { memset(&fl_tile_shape, 0, sizeof fl_tile_shape); }
static void fl_tile_zero(int t) {
  fl_tile_need(fl_tile_shape.rows[t]);
  memset(fl_tile_bytes[t], 0, sizeof fl_tile_bytes[t]);
}
static void fl_tile_load(int t, const void *p, int64_t stride) {
  fl_tile_zero(t); /* rows and bytes past the shape are zero */
  for (int i = 0; i < fl_tile_shape.rows[t]; i++)
    memcpy(fl_tile_bytes[t][i], (const char *)p + i * stride, fl_tile_shape.bytes[t]);
}
static void fl_tile_store(int t, void *p, int64_t stride) {
  fl_tile_need(fl_tile_shape.rows[t]);
  for (int i = 0; i < fl_tile_shape.rows[t]; i++)
    memcpy((char *)p + i * stride, fl_tile_bytes[t][i], fl_tile_shape.bytes[t]);
}
static void fl_tile_fit(int c, int a, int b) {
  const fl_tile_shapes *s = &fl_tile_shape;
  fl_tile_need(s->rows[c] && s->rows[a] == s->rows[c] && s->bytes[b] == s->bytes[c] && s->rows[b] * 4 == s->bytes[a] && s->bytes[c] % 4 == 0);
}
static void fl_tile_dot_bytes(int c, int a, int b, int is_signed) {
  const fl_tile_shapes *s = &fl_tile_shape;
  fl_tile_fit(c, a, b);
  for (int i = 0; i < s->rows[c]; i++) {
    uint32_t sum[16];
    memcpy(sum, fl_tile_bytes[c][i], 64);
    for (int k = 0; k < s->bytes[a]; k++)
      for (int j = 0; j < s->bytes[c] / 4; j++) {
        const uint8_t x = fl_tile_bytes[a][i][k], y = fl_tile_bytes[b][k / 4][4 * j + k % 4];
        sum[j] += (uint32_t)(is_signed ? (int8_t)x * y : x * (int8_t)y);
      }
    memcpy(fl_tile_bytes[c][i], sum, 64);
  }
}
static inline void fl_tile_dot(int c, int a, int b) { fl_tile_dot_bytes(c, a, b, 0); }
static inline void fl_tile_dot_signed(int c, int a, int b) { fl_tile_dot_bytes(c, a, b, 1); }
static float fl_tile_flush(float x) { return x > -0x1p-126f && x < 0x1p-126f ? x * 0 : x; }
static float fl_tile_brain(int t, int row, int at) {
  uint16_t half;
  memcpy(&half, &fl_tile_bytes[t][row][2 * at], 2);
  const uint32_t bits = (uint32_t)half << 16;
  float x;
  memcpy(&x, &bits, 4);
  return fl_tile_flush(x);
}
/* Products of two bfloat16 have 16 bits: rounding their sum with a float32 first to double changes nothing. */
static float fl_tile_add(float a, float b, float c) { return fl_tile_flush((float)((double)a * b + fl_tile_flush(c))); }
static void fl_tile_dot_brain(int c, int a, int b) {
  const fl_tile_shapes *s = &fl_tile_shape;
  fl_tile_fit(c, a, b);
  for (int i = 0; i < s->rows[c]; i++) {
    float sum[16], two[2][16] = {{0}};
    memcpy(sum, fl_tile_bytes[c][i], 64);
    for (int k = 0; k < s->bytes[a] / 4; k++)
      for (int h = 0; h < 2; h++) {
        const float x = fl_tile_brain(a, i, 2 * k + h);
        for (int j = 0; j < s->bytes[c] / 4; j++)
          two[h][j] = fl_tile_add(x, fl_tile_brain(b, k, 2 * j + h), two[h][j]);
      }
    for (int j = 0; j < s->bytes[c] / 4; j++)
      sum[j] = fl_tile_add(1, sum[j], fl_tile_flush(two[0][j] + two[1][j]));
    memcpy(fl_tile_bytes[c][i], sum, 64);
  }
}
#endif
#endif
